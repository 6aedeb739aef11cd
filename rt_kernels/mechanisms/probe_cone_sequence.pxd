"""Sequence of a docking with a central unit: a state machine over the mechanism's discrete signals (dissertation, fig. 6.1.6).

Timers count model time from the first DK1 and from "start of docking" (DSG and DK2 both seen); a lost contact does not restart them.
"""

from libc.stdint cimport uint32_t

cdef enum Phase:
    APPROACH = 0
    PRESS = 1
    CAPTURED = 2
    DAMPING = 3
    RETRACT = 4
    COMPLETE = 5
    RETREAT = 6
    MANUAL = 7

# what the sequence asks of the craft
cdef enum CraftCommand:
    ATTITUDE_CONTROL = 1
    PRESS_THRUST = 2
    RETREAT_THRUST = 4

# bits of Sample.mechanism_command
cdef enum UnitCommand:
    DRIVE_ON = 1
    EXTRA_BRAKES = 2
    RELEASE = 4
    DRIVE_EXTEND = 8


cdef struct Sequence:
    double capture_timeout      # 10 s
    double brakes_delay         # 2 s
    double brakes_duration      # 30 s
    double drive_delay          # 35 s


cdef struct SequenceState:
    int phase
    double phase_start
    double contact_time         # first DK1, negative before
    double capture_time         # DSG
    double start_time           # t_S, negative before
    double time
    bint bottom_seen            # DK2, latched
    uint32_t unit_command
    uint32_t craft_command


cdef inline void enter(SequenceState *s, int phase) noexcept nogil:
    s.phase = phase
    s.phase_start = s.time


cdef inline void sequence_reset(SequenceState *s) noexcept nogil:
    s.phase = APPROACH
    s.phase_start = 0.0
    s.contact_time = -1.0
    s.capture_time = -1.0
    s.start_time = -1.0
    s.time = 0.0
    s.bottom_seen = False
    s.unit_command = 0
    s.craft_command = ATTITUDE_CONTROL


cdef inline void sequence_step(
    const Sequence *c, SequenceState *s, bint DK1, bint DSG, bint DK2, bint complete, bint manual, double dt
) noexcept nogil:
    """Advance by dt with the signals of this tick; `unit_command` and `craft_command` hold from now on."""
    s.time += dt
    if DK2:
        s.bottom_seen = True
    if manual and s.phase != MANUAL:
        enter(s, MANUAL)
    if s.phase == APPROACH and DK1:
        s.contact_time = s.time
        enter(s, PRESS)
    if s.phase == PRESS:
        if DSG:
            s.capture_time = s.time
            enter(s, CAPTURED)
        elif s.time - s.contact_time > c.capture_timeout:
            enter(s, RETREAT)
    if s.phase == CAPTURED and s.bottom_seen:
        s.start_time = s.time
        enter(s, DAMPING)
    # half a step of tolerance, so that a sum of steps is not late by its rounding
    if s.phase == DAMPING and s.time - s.start_time >= c.drive_delay - 0.5 * dt:
        enter(s, RETRACT)
    if s.phase == RETRACT and complete:
        enter(s, COMPLETE)
    # commands follow from the phase and from the time since t_S
    s.unit_command = 0
    s.craft_command = 0
    if s.phase == APPROACH:
        s.craft_command = ATTITUDE_CONTROL
    elif s.phase == PRESS:
        s.craft_command = ATTITUDE_CONTROL
    elif s.phase == RETREAT:
        s.craft_command = ATTITUDE_CONTROL | RETREAT_THRUST
    elif s.phase == RETRACT:
        s.unit_command = DRIVE_ON
    # pressed from the first contact until the head has been on the bottom
    if (s.phase == PRESS or s.phase == CAPTURED) and not s.bottom_seen:
        s.craft_command |= PRESS_THRUST
    if (s.phase == DAMPING or s.phase == RETRACT) and (
        c.brakes_delay - 0.5 * dt <= s.time - s.start_time < c.brakes_delay + c.brakes_duration - 0.5 * dt
    ):
        s.unit_command |= EXTRA_BRAKES
