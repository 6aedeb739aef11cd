"""Sequence of a docking with a central unit, from Python: one step per tick, commands to unit and craft."""

PHASES = ("approach", "press", "captured", "damping", "retract", "complete", "retreat", "manual")


cdef class DockingSequence:
    """State machine with the delays [s] of the text as defaults. Raises ValueError for a negative delay.

    `step(dt, ...)` takes the signals of a tick and returns (unit command bits, craft command bits); bits of the craft command: 1 attitude control on,
    2 press thrust, 4 retreat thrust; of the unit command: 1 drive on, 2 extra lateral brakes.
    """

    cdef Sequence timing
    cdef SequenceState state

    def __cinit__(self, double capture_timeout_s=10.0, double brakes_delay_s=2.0, double brakes_duration_s=30.0, double drive_delay_s=35.0):
        for name, value in (("capture_timeout_s", capture_timeout_s), ("brakes_delay_s", brakes_delay_s),
                            ("brakes_duration_s", brakes_duration_s), ("drive_delay_s", drive_delay_s)):
            if not value >= 0.0:
                raise ValueError(f"{name} must be at least 0 s, got {value}")
        self.timing = Sequence(capture_timeout_s, brakes_delay_s, brakes_duration_s, drive_delay_s)
        sequence_reset(&self.state)

    def step(self, double dt, bint DK1=False, bint DSG=False, bint DK2=False, bint complete=False, bint manual=False):
        sequence_step(&self.timing, &self.state, DK1, DSG, DK2, complete, manual, dt)
        return self.state.unit_command, self.state.craft_command

    @property
    def phase(self):
        return PHASES[self.state.phase]

    @property
    def times(self):
        """Model times [s]: now, first contact, capture, start of docking, start of the present phase; -1 if not yet."""
        s = self.state
        return {"now": s.time, "contact": s.contact_time, "capture": s.capture_time, "start": s.start_time, "phase": s.phase_start}
