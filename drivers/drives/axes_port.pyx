"""Six drives as a port: what every bus shares from `open` to `close`. A port of a bus gives its cyclic part and its set-up."""


cdef class AxesPort(PortPart):
    """Base of the ports of drives. A port has its set-up in `_session` and its cyclic part in `_exchange`."""

    CONTEXT = ("period_s", "platform", "loop_core")

    def open(self):
        self.close()
        self._session.open()

    def begin(self):
        """Last before the loop: enables the axes; what was counted until now is forgotten. Raises DriveSetupError (a ConnectionError)."""
        self._session.enable()
        self._exchange.begin()

    def end(self):
        """First after the loop: takes the power off all axes; frames flow until each says that it is off."""
        self.close_problems = self._session.disable()

    def close(self):
        problems = self._session.close()
        self.close_problems = self.close_problems + problems if problems else self.close_problems

    @property
    def in_loop(self):
        """Whether the loop has the bus (tests)."""
        return self._exchange.in_loop

    @property
    def notes(self):
        """What the drives lack of their own protection, and which of them answer alike, one line each; after `open`."""
        return self._session.notes

    @property
    def identities(self):
        """Who the drive of each axis is, as it says it; after `open`."""
        return self._session.identities

    @property
    def delay_origins(self):
        return {"setpoint_ticks": "derived"}  # by the protocol

    def counters(self):
        """Lost, late, damaged, ignored and not sent frames since the loop began."""
        return self._exchange.counters()
