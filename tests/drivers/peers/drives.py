"""Two position drives in software, written from the device profiles: CiA 402 (electric) and CiA 408 (hydraulic).

A drive follows its setpoint exactly, one communication cycle later; what is of interest here is what it says about itself. Faults and
oddities are methods, so that a test reads as what happened to the drive.
"""

from tests.drivers.peers.canopen_device import Entry, Frame, Node


class Drive(Node):
    """What both profiles share. position: actual position in counts; jumps: the largest step of the setpoint while enabled, counts."""

    def __init__(self, number: int, device_type: int, position: int) -> None:
        super().__init__(number, device_type)
        self.position, self.largest_step = position, 0
        self.stuck = False
        self._last = position

    def follow(self, target: int) -> None:
        self.largest_step = max(self.largest_step, abs(target - self._last))
        self._last = target
        if not self.stuck:
            self.position = target


class Cia402Drive(Drive):
    """CiA 402 (IEC 61800-7-201): power drive state machine, cyclic synchronous position."""

    _STATUS = {"switch on disabled": 0x40, "ready to switch on": 0x21, "switched on": 0x23, "operation enabled": 0x27,
               "quick stop active": 0x07, "fault reaction active": 0x0F, "fault": 0x08}  # fmt: skip

    def __init__(self, number: int, position: int) -> None:
        super().__init__(number, 0x00020192, position)
        self.drive_state = "switch on disabled"
        self.remote = True  # bit 9: the control word is obeyed
        self.ignores_target = self.following_error = self.internal_limit = self.warning = False
        self._control = 0
        for index, bits, signed, writable in (
            (0x6040, 16, False, True), (0x6041, 16, False, False), (0x603F, 16, False, False), (0x6060, 8, True, True),
            (0x6061, 8, True, False), (0x6064, 32, True, False), (0x607A, 32, True, True), (0x606C, 32, True, False),
            (0x60FF, 32, True, True), (0x6071, 16, True, True), (0x6077, 16, True, False), (0x60B0, 32, True, True),
            (0x60B1, 32, True, True), (0x60B2, 16, True, True), (0x60F4, 32, True, False), (0x6065, 32, False, True),
            (0x6066, 16, False, True), (0x607F, 32, False, True), (0x6080, 32, False, True), (0x6085, 32, False, True),
            (0x605A, 16, True, True), (0x605B, 16, True, True), (0x605C, 16, True, True), (0x605D, 16, True, True),
            (0x605E, 16, True, True), (0x6007, 16, True, True), (0x60C5, 32, False, True), (0x60C6, 32, False, True),
            (0x60A8, 32, False, True), (0x6502, 32, False, False),
        ):  # fmt: skip
            self.add(index, 0, Entry(bits, signed=signed, writable=writable, mappable=True))
        self[0x605A, 0] = 2
        self[0x60A8, 0] = 0xFA010000  # a position count is a micrometre
        self[0x6502, 0] = 1 << 7  # supported modes: cyclic synchronous position
        limits = ((1, 32, True, -(1 << 31)), (2, 32, True, (1 << 31) - 1))
        feed = ((1, 32, False, 10_000), (2, 32, False, 1))  # ten millimetres in a turn
        outputs = ((1, 32, False, 0), (2, 32, False, 0))  # and which of them the bus commands
        for index, subs in ((0x60C2, ((1, 8, False, 1), (2, 8, True, -3))), (0x607D, limits), (0x6092, feed), (0x60FE, outputs)):
            self.add(index, 0, Entry(8, 2, writable=False))
            for sub, bits, signed, value in subs:
                self.add(index, sub, Entry(bits, value, signed=signed, mappable=index == 0x60FE))
        self._show()

    def written(self, index: int, sub: int) -> None:
        if index == 0x6040:
            self._obey(self[0x6040, 0])
        if index == 0x6060:
            self[0x6061, 0] = self[0x6060, 0]
        self._show()

    def _obey(self, word: int) -> None:
        edge, self._control = word & ~self._control, word
        state = self.drive_state
        if not self.remote or state in ("fault", "fault reaction active"):
            if self.remote and state == "fault" and edge & 0x80:
                self.drive_state, self[0x603F, 0] = "switch on disabled", 0
            return
        enabled = state in ("operation enabled", "quick stop active")
        if not word & 0x02:  # disable voltage
            new = "switch on disabled"
        elif not word & 0x04:  # quick stop
            new = "quick stop active" if enabled else "switch on disabled"
        elif word & 0x0F == 0x0F and state in ("ready to switch on", "switched on", "operation enabled"):
            new = "operation enabled" if state != "ready to switch on" else "switched on"
        elif word & 0x0F == 0x07 and state in ("ready to switch on", "switched on", "operation enabled"):
            new = "switched on"
        elif word & 0x07 == 0x06 and state != "quick stop active":
            new = "ready to switch on"
        else:
            new = state
        if new == "operation enabled" and state != new:
            self._last = self.position  # the first target is judged against where the drive stands
        self.drive_state = new

    def behave(self) -> None:
        if self._follows():
            self.follow(self[0x607A, 0] + self[0x60B0, 0])
        self._show()

    def pass_time(self, ms: float) -> list[Frame]:
        if self.drive_state == "fault reaction active":
            self.leave("fault")
        return super().pass_time(ms)

    def _follows(self) -> bool:
        return self.drive_state == "operation enabled" and self[0x6061, 0] == 8 and self.remote and not self.ignores_target

    def _show(self) -> None:
        word = self._STATUS[self.drive_state] | 0x10  # voltage is on
        for bit, on in ((7, self.warning), (9, self.remote), (11, self.internal_limit), (12, self._follows()), (13, self.following_error)):
            word |= on << bit
        self[0x6041, 0], self[0x6064, 0] = word, self.position

    def connection_lost(self) -> None:
        """Abort connection option code: nothing, malfunction, disable voltage, quick stop."""
        if self.drive_state == "operation enabled":
            reaction = {1: "fault reaction active", 2: "switch on disabled", 3: "quick stop active"}
            self.drive_state = reaction.get(self[0x6007, 0], self.drive_state)
            self._show()

    # what can happen to it
    def trip(self, code: int = 0x2310, register: int = 3) -> Frame:
        """Over-current: the drive goes to fault and sends its emergency."""
        self.drive_state, self[0x603F, 0], self[0x1001, 0] = "fault reaction active", code, register
        self._show()
        return self.emergency(code, register)

    def clear(self) -> Frame:
        """The fault is gone and was reset at the drive: it is enabled again."""
        self.drive_state, self[0x603F, 0], self[0x1001, 0] = "operation enabled", 0, 0
        self._show()
        return self.emergency(0, 0)

    def leave(self, state: str) -> None:
        self.drive_state = state
        self._show()

    def take_local(self) -> None:
        """The drive is taken over at its own panel: control word and setpoints of the bus are no longer obeyed."""
        self.remote = False
        self._show()


class Cia408Drive(Drive):
    """CiA 408: device state machine D, H, M, R; closed-loop axis position from the bus."""

    INIT, DISABLED, HOLD, ACTIVE, FAULT_DISABLED, FAULT_HOLD, FAULT_REACTION = 0x8, 0x9, 0xB, 0xF, 0x1, 0x3, 0x7

    def __init__(self, number: int, position: int) -> None:
        super().__init__(number, 408, position)
        self.drive_state = self.INIT
        self.local = self.limit_touched = self.control_deviation = False
        self._control = 0
        for index, sub, bits, signed, writable in (
            (0x6040, 0, 16, False, True), (0x6041, 0, 16, False, False), (0x6042, 0, 8, True, True), (0x6043, 0, 8, True, True),
            (0x604F, 0, 8, False, True), (0x6300, 1, 16, True, True), (0x6301, 1, 16, True, False), (0x6600, 1, 32, True, True),
            (0x6601, 1, 32, True, False), (0x6610, 1, 32, True, False), (0x6614, 1, 32, True, True), (0x6650, 1, 32, True, False),
            (0x5700, 0, 8, True, True), (0x585C, 0, 8, True, True),
        ):  # fmt: skip
            self.add(index, sub, Entry(bits, signed=signed, writable=writable, mappable=True))
        for index in (0x6300, 0x6301, 0x6600, 0x6601):
            self.add(index, 0, Entry(8, 3, writable=False))
            self.add(index, 2, Entry(8, 1, writable=False))  # unit: metre
            self.add(index, 3, Entry(8, -6, signed=True, writable=False))  # prefix: micro
        self.add(0x3330, 0, Entry(32, 0x66000120))
        self.add(0x2830, 0, Entry(8, 0, writable=False))
        for sub in range(5):
            self.add(0x2831, sub, Entry(32 if sub else 8, 0 if sub else 4, writable=False))
        self[0x6042, 0], self[0x6043, 0] = 1, 9
        self._show()

    def written(self, index: int, sub: int) -> None:
        if index == 0x6040:
            self._obey(self[0x6040, 0])
        self._show()

    def _obey(self, word: int) -> None:
        edge, self._control = word & ~self._control, word
        if self.local:
            return
        lower = word & 0x7
        if not self.drive_state & 0x8:  # a fault: left by a rising edge of R while the lower bits hold the matching state
            if edge & 0x8 and lower == self.drive_state:
                self.drive_state |= 0x8
            return
        # the bits are levels: the device continues, state by state in the order D, H, M, until it is where they say
        steps = [0x0, 0x1, 0x3, 0x7]
        now, goal = steps.index(self.drive_state & 0x7), 3 if lower == 0x7 else 2 if lower & 0x3 == 0x3 else lower & 0x1
        if goal == 3 and now != 3:
            self._last = self.position  # the first setpoint is judged against where the drive stands
        self.drive_state = 0x8 | steps[goal]

    def behave(self) -> None:
        if self.drive_state == self.ACTIVE and not self.local and self[0x6043, 0] in (8, 9):
            self.follow(self[0x6600, 1])
        self._show()

    def pass_time(self, ms: float) -> list[Frame]:
        if self.drive_state == self.FAULT_REACTION:
            self.leave(self.FAULT_HOLD)
        return super().pass_time(ms)

    def _show(self) -> None:
        word = self.drive_state
        for bit, on in ((4, self.local), (10, self.limit_touched), (11, self.control_deviation)):
            word |= on << bit
        self[0x6041, 0], self[0x6601, 1] = word, self.position

    def connection_lost(self) -> None:
        if self.drive_state in (self.ACTIVE, self.HOLD):
            self.leave(self.FAULT_REACTION)

    # what can happen to it
    def trip(self, code: int = 0x8303, register: int = 0x81) -> Frame:
        """Axis position monitoring: fault reaction, then held at the hold setpoint, with an emergency."""
        self.drive_state, self[0x1001, 0], self[0x2831, 1] = self.FAULT_REACTION, register, 1 << 5
        self._show()
        return self.emergency(code, register)

    def clear(self) -> Frame:
        self.drive_state, self[0x1001, 0], self[0x2831, 1] = self.ACTIVE, 0, 0
        self._show()
        return self.emergency(0, 0)

    def leave(self, state: int) -> None:
        self.drive_state = state
        self._show()

    def take_local(self) -> None:
        self.local = True
        self._show()
