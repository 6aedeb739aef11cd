"""Brings an EtherCAT segment from power-up to Operational and back: scan, identity, process data, distributed clocks, states, handover.

Python, before and after the loop; `pysoem` (optional group `ethercat`) does the states, the mailbox and the clocks. Frames of the process
data are ours from Safe-Operational on (`EthercatAxes.keep`): the map is read out of the FMMUs and pysoem's own exchange is not used.
In Operational nothing but the thread of this set-up uses pysoem.

Order: PREOP; identity; watchdog 0x420; process data 0x1600/0x1A00; objects of the profile; clocks (0x920 before SYNC0's start 0x990); map
and SAFEOP; our frames; clocks settled (0x92C); OP, the drives without power. They are enabled last before the loop and lose their power
first after it; then SAFEOP while our frames flow, PREOP, INIT: no watchdog ends a run.
"""

import importlib.metadata
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivers.drives.canopen_setup import DriveSetupError
from drivers.drives.supervision import Protection, objects_named, protect
from drivers.identity import alike, checked_count, identity_of
from drivers.raw_frames.ethercat_link import open_ethercat
from rt_kernels.doors import made_as, socket, threading, time

OUTPUTS = ((0x6040, 0, 16), (0x607A, 0, 32), (0x6060, 0, 8))
INPUTS = ((0x6041, 0, 16), (0x6064, 0, 32), (0x606C, 0, 32), (0x6077, 0, 16), (0x6061, 0, 8))
STATUS_WORD, POSITION, MODE_DISPLAY = 0x6041, 0x6064, 0x6061
INIT, PREOP, SAFEOP, OP = 1, 2, 4, 8
STATE_ERROR = 0x10  # with a state: it was not reached, or left
FEATURE_CLOCK, FEATURE_WIDE_CLOCK = 0x04, 0x08  # of register 0x008
KEEPER_PRIORITY = 60  # below the loop, where the right is there
AL_CONTROL, AL_STATUS = 0x120, 0x130  # registers: state; state, two unused bytes, status code
LIBRARY_ERRORS = ("SdoError", "MailboxError", "PacketError", "WkcError", "ConfigMapError", "EepromError")
FRAMES_TO_ACT = 3  # so many answers after a change it has been seen: one under way, one with it, one after it
CLOSING_STATE_S = 0.25
INSTALL = "pip install 'hil-server[ethercat]'"
_FORMATS = {1: "<B", -1: "<b", 2: "<H", -2: "<h", 4: "<I", -4: "<i"}


@dataclass(frozen=True)
class EthercatLayout:
    """Where everything is in our frame.

    logical: address of the image, `image` bytes of it; stations, outputs, inputs: of each axis, places in the image; expected: working
    counter of the LRW; clocks: slaves with a clock, reference: station of the first; slaves: all of them; phase_ns: reference time, modulo
    the period, at which a frame is to pass the reference; watchdog: where the outputs of its slave are, `watchdog_bytes` of them.
    """

    logical: int
    image: int
    stations: tuple[int, ...]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    expected: int
    clocks: int
    reference: int
    slaves: int
    phase_ns: int
    watchdog: int = 0
    watchdog_bytes: int = 0


class EthercatNode:
    """One slave as the profile sees it: mapped objects by the process data once they run, all others by SDO."""

    def __init__(self, session: "EthercatSession", axis: int, position: int, slave: Any):
        self._session, self.axis, self.position, self.slave = session, axis, position, slave

    def __str__(self) -> str:
        return f"slave {self.position} on {self._session.interface}"

    def read(self, index: int, sub: int, size: int, meaning: str) -> int:
        """Value of an object; size in bytes, negative for a signed one. Raises DriveSetupError."""
        place = (STATUS_WORD, POSITION, MODE_DISPLAY).index(index) if index in (STATUS_WORD, POSITION, MODE_DISPLAY) else -1
        if place >= 0 and self._session.running:
            self._session.await_frames(1)
            found: int = self._session.axes.inputs(self.axis)[place]
            return found
        try:
            data = self.slave.sdo_read(index, sub)
        except self._session.errors as error:
            raise DriveSetupError(f"{self}: reading {meaning} (0x{index:04X}:{sub}) failed: {_why(error)}") from error
        if len(data) < abs(size):
            raise DriveSetupError(f"{self}: {meaning} (0x{index:04X}:{sub}) has {len(data)} bytes instead of {abs(size)}")
        value: int = struct.unpack(_FORMATS[size], data[: abs(size)])[0]
        return value

    def write(self, index: int, sub: int, size: int, value: int, meaning: str, optional: bool = False) -> bool:
        """Writes an object. With `optional` a slave that does not have it is accepted (returns False). Raises DriveSetupError."""
        try:
            self.slave.sdo_write(index, sub, struct.pack(_FORMATS[size], value))
        except self._session.errors as error:
            if optional and getattr(error, "abort_code", 0) in (0x06020000, 0x06090011):
                return False
            raise DriveSetupError(f"{self}: writing {meaning} (0x{index:04X}:{sub}) := {value} was refused: {_why(error)}") from error
        return True

    def identity(self) -> dict[str, int]:
        """Vendor, product code, revision, serial number and station alias, as the slave says them; a part that it does not have is 0."""
        return identity_of(self) | {"alias": self.register(0x012, 2)}

    def set_pdo(self, mapping: int, assignment: int, entries: Sequence[tuple[int, int, int]]) -> None:
        """Maps the entries (index, sub-index, bits) and reads them back. Raises DriveSetupError when the slave keeps another mapping."""
        self.write(assignment, 0, 1, 0, "PDO assignment off")
        self.write(mapping, 0, 1, 0, "PDO mapping count")
        for place, (index, sub, bits) in enumerate(entries, start=1):
            self.write(mapping, place, 4, index << 16 | sub << 8 | bits, f"PDO entry {place}")
        self.write(mapping, 0, 1, len(entries), "PDO mapping count")
        self.write(assignment, 1, 2, mapping, "PDO assignment")
        self.write(assignment, 0, 1, 1, "PDO assignment on")
        count = self.read(mapping, 0, 1, "PDO mapping count")
        kept = [self.read(mapping, place, 4, "PDO entry") for place in range(1, count + 1)]
        if kept != [index << 16 | sub << 8 | bits for index, sub, bits in entries]:
            raise DriveSetupError(f"{self}: keeps another mapping in 0x{mapping:04X}: {', '.join(f'0x{entry:08X}' for entry in kept)}")

    def register(self, address: int, size: int) -> int:
        """A register of the slave controller, unsigned. Raises DriveSetupError."""
        try:
            return int.from_bytes(self.slave._fprd(address, size, self._session.timeout_us), "little")
        except self._session.errors as error:
            raise DriveSetupError(f"{self}: reading register 0x{address:03X} failed: {_why(error)}") from error

    def set_register(self, address: int, data: bytes) -> None:
        """Writes a register of the slave controller. Raises DriveSetupError."""
        try:
            self.slave._fpwr(address, data, self._session.timeout_us)
        except self._session.errors as error:
            raise DriveSetupError(f"{self}: writing register 0x{address:03X} failed: {_why(error)}") from error

    def mapped(self) -> list[tuple[int, int, int]]:
        """Active FMMUs of the process data, (logical address, bytes, 1 inputs or 2 outputs): those that begin at a sync manager. A slave
        with a mailbox has its process data at SM2 and SM3, and maps no mailbox; one without has them at SM0 and SM1."""
        begins = [self.register(0x800 + 8 * sm, 2) for sm in range(4)]
        found = []
        for number in range(self.register(0x004, 1)):
            raw = self.register(0x600 + 16 * number, 16).to_bytes(16, "little")
            logical, length, _, _, physical, _, kind, active = struct.unpack("<IHBBHBBB", raw[:13])
            if active & 1 and physical in begins:
                found.append((logical, length, kind))
        return found


class EthercatSession:
    """The axes of one segment, from `open` to `close`.

    profile, protection, loop_core: as for AxesSession; axes: EthercatAxes, configured; given: the port's parameters; period_ns: of the
    loop; library: pysoem, None: it is imported by `open`. open_socket: makes the socket of our frames.
    """

    def __init__(self, profile: Any, axes: Any, protection: Sequence[Sequence[Protection]], given: Mapping[str, Any], period_ns: int,
                 loop_core: int = -1, *,
                 library: Any = None, open_socket: Callable[[str], tuple[socket.socket, bytes]] = open_ethercat):  # fmt: skip
        self._profile, self.axes, self._protection, self._given, self._period_ns = profile, axes, protection, given, period_ns
        self._loop_core = loop_core
        checked_count(given["identity"], 6)
        self._left_objects = objects_named(given["left_objects"])
        self.notes: list[str] = []
        self.identities: list[dict[str, int]] = []
        self._library, self._open_socket = library, open_socket
        self.interface: str = given["interface"]
        self.answer_s: float = given["timeout_s"]
        self.errors: tuple[type[Exception], ...] = (Exception,)
        self._master: Any = None
        self._socket: socket.socket | None = None
        self._keeper: threading.Thread | None = None
        self._on = False
        self._time_left_s: Callable[[], float] = lambda: self.answer_s  # for one frame of the set-up, at most
        self._nodes: list[EthercatNode] = []
        self._all: list[EthercatNode] = []
        self._reference: EthercatNode | None = None

    @property
    def running(self) -> bool:
        """Whether our frames carry the process data."""
        return self._keeper is not None and self._keeper.is_alive()

    @property
    def timeout_us(self) -> int:
        """Time for one frame of the set-up."""
        return round(1e6 * max(0.001, min(self.answer_s, self._time_left_s())))

    def await_frames(self, count: int) -> None:
        """Waits for so many more answers. Raises DriveSetupError when they do not come."""
        wanted, end = self.axes.answered + count, time.monotonic() + self.answer_s
        while self.axes.answered < wanted:
            if time.monotonic() > end:
                raise DriveSetupError(f"EtherCAT on {self.interface}: our frames do not come back")
            time.sleep(0.0005)

    def open(self) -> None:
        """The segment Operational, its axes without power; frames flow until `close`. Raises DriveSetupError (a ConnectionError) when a
        slave is missing or too many, another one than expected, or refuses a value."""
        library = self._library or made_as("pysoem", _library)()
        self.errors = tuple(
            getattr(library, name) for name in LIBRARY_ERRORS if hasattr(library, name)
        ) or (Exception,)
        self._master = library.Master()
        _patient(library, self.answer_s)
        try:
            self._scan()
            self._prepare()
            self._clocks()
            layout = self._map()
            self._socket, source = self._open_socket(self.interface)
            self.axes.start(self._socket.fileno(), source, layout)
            self._keeper = threading.Thread(target=self._keep, name="drives keeper", daemon=True)
            self._keeper.start()
            self._settle()
            self._state(OP, "OP", ask=True)
            for node in self._nodes:
                self._profile.check(node)
        except Exception as error:
            self._drop()
            if type(error).__name__ in LIBRARY_ERRORS:
                raise DriveSetupError(f"EtherCAT on {self.interface}: set-up: {type(error).__name__} {error}".rstrip()
                                      + ": are frames lost or damaged? look at cables and connectors") from error  # fmt: skip
            raise

    def enable(self) -> None:
        """Enables all axes where they are. Raises DriveSetupError for one that is not enabled; then all are off again."""
        from drivers.drives.axes_session import await_up

        self._on = True
        self.axes.lead_up()
        try:
            await_up(self.axes, self._profile, [str(node) for node in self._nodes], self.answer_s)
        except DriveSetupError as error:
            raise DriveSetupError("; ".join([str(error), *self.disable()])) from error

    def disable(self) -> list[str]:
        """Takes the power off all axes; frames flow on. Returns what did not work."""
        from drivers.drives.axes_session import await_down

        if not self._on:
            return []
        self._on = False
        return await_down(self.axes, [str(node) for node in self._nodes], self.answer_s)

    def operational_again(self, left_s: Callable[[], float]) -> None:
        """Slaves that went to SAFEOP, as one does whose frames stayed away, acknowledge their error and go to OP (ETG.1000.6, 6.4).

        left_s(): seconds that this may still take. Raises DriveSetupError when a slave does not get there in that time, or has lost its
        set-up."""
        self._time_left_s = left_s
        try:
            for node in self._all:
                state = node.register(AL_STATUS, 2)
                if state & ~STATE_ERROR < SAFEOP:
                    raise DriveSetupError(f"{node}: has lost its set-up (state {state}): end this run and begin another")
                if state != OP:
                    self._lead(node, SAFEOP | STATE_ERROR, SAFEOP)  # the bit of the error, written, acknowledges it
                    self._lead(node, OP, OP)
        finally:
            self._time_left_s = lambda: self.answer_s

    def _lead(self, node: EthercatNode, asked: int, state: int) -> None:
        node.set_register(AL_CONTROL, struct.pack("<H", asked))
        while (found := node.register(AL_STATUS, 6)) & 0xFFFF != state:
            if self._time_left_s() <= 0.0:
                why = f"state {found & 0xFFFF}, AL status code 0x{found >> 32:04X}"
                raise DriveSetupError(f"{node}: does not return to state {state}: {why}")
            time.sleep(0.002)

    def close(self) -> list[str]:
        """Takes the power off where that has not been done; then SAFEOP, PREOP, INIT. Returns what did not work."""
        if self._master is None:
            return []
        problems = self.disable()
        self._drop()
        return problems

    def _keep(self) -> None:
        self.axes.keep(KEEPER_PRIORITY, self._loop_core)  # on the socket of this session, which lives as long as its thread

    def _scan(self) -> None:
        try:
            self._master.open(self.interface)
        except ConnectionError as error:
            raise DriveSetupError(f"EtherCAT on {self.interface}: {error}; is it there and up, and may raw sockets be opened?") from error
        self._master.always_release_gil = True
        count = self._master.config_init()
        if count <= 0:
            raise DriveSetupError(f"EtherCAT on {self.interface}: no slave answers")
        places = [int(place) for place in self._given["axis_slave"]]
        axis_of = {place: axis for axis, place in enumerate(places)}
        self._all = [EthercatNode(self, axis_of.get(i, -1), i, slave) for i, slave in enumerate(self._master.slaves)]
        expected = self._given["slaves"] or len(places)
        watchdog = self._given["watchdog_slave"]
        if count != expected or max(*places, watchdog) >= count:
            there = ", ".join(f"{i} vendor 0x{node.slave.man:X} product 0x{node.slave.id:X}" for i, node in enumerate(self._all))
            raise DriveSetupError(
                f"EtherCAT on {self.interface}: {count} slaves answer, {expected} are expected (drives.slaves, 0: one for each axis), the "
                f"axes at {places} (drives.axis_slave), the watchdog at {watchdog} (drives.watchdog_slave, -1: none); there are: {there}; "
                "look at the cables, or mend the stand file"
            )
        self._nodes = [self._all[place] for place in places]
        self._state(PREOP, "PREOP", ask=False)

    def _prepare(self) -> None:
        from drivers.drives.axes_session import look_at, notes_of

        missing: dict[str, list[str]] = {}
        self.identities = []
        for axis, node in enumerate(self._nodes):
            for words in look_at(self._profile, node, axis, self.identities, self._given):
                missing.setdefault(words, []).append(str(node))
        for axis, node in enumerate(self._nodes):
            unit_ms = (node.register(0x400, 2) + 2) * 40e-6
            steps = max(1, min(0xFFFF, round(self._given["watchdog_ms"] / unit_ms)))
            node.set_register(0x420, struct.pack("<H", steps))
            if (found := node.register(0x420, 2)) != steps:
                raise DriveSetupError(f"{node}: watchdog of the process data (register 0x420) reads back {found} instead of {steps}")
            node.set_pdo(0x1600, 0x1C12, OUTPUTS)
            node.set_pdo(0x1A00, 0x1C13, INPUTS)
            self._profile.prepare(node, axis)
            for words in protect(node, self._protection[axis], self._left_objects):
                missing.setdefault(words, []).append(str(node))
        self.notes = [*notes_of(missing), *alike(self.identities)]

    def _clocks(self) -> None:
        self._master.config_dc()
        for node in self._nodes:
            if not node.register(0x008, 2) & FEATURE_CLOCK:
                raise DriveSetupError(f"{node}: has no distributed clock")
            self._require_wide_clock(node)
            node.slave.dc_sync(True, self._period_ns)

    def _require_wide_clock(self, node: EthercatNode) -> None:
        """Refuses a clock whose time begins again every 4.3 s, no whole number of periods: SYNC0 would move by the rest each time."""
        if not node.register(0x008, 2) & FEATURE_WIDE_CLOCK:
            raise DriveSetupError(
                f"{node}: its distributed clock has 32 bits (register 0x008): drives, and the first slave with a clock, need one of 64"
            )

    def _map(self) -> EthercatLayout:
        self._master.config_map()
        self._state(SAFEOP, "SAFEOP", ask=False)
        fmmus = [node.mapped() for node in self._all]
        first = min((logical for one in fmmus for logical, _, _ in one), default=0)
        end = max((logical + length for one in fmmus for logical, length, _ in one), default=0)
        places: dict[int, list[int]] = {1: [], 2: []}
        for node in self._nodes:
            for kind, entries, name in ((2, OUTPUTS, "outputs"), (1, INPUTS, "inputs")):
                length = sum(bits for _, _, bits in entries) // 8
                one = [(logical, size) for logical, size, found in fmmus[node.position] if found == kind]
                if len(one) != 1 or one[0][1] != length:
                    raise DriveSetupError(f"{node}: its {name} are mapped as {one} instead of one run of {length} bytes")
                places[kind].append(one[0][0] - first)
        watchdog = self._watchdog_place(fmmus)
        clocks = [node for node in self._all if node.register(0x008, 2) & FEATURE_CLOCK]
        self._reference = clocks[0]
        self._require_wide_clock(self._reference)
        starts = {node.register(0x990, 8) % self._period_ns for node in self._nodes}
        if len(starts) != 1:
            raise DriveSetupError(f"EtherCAT on {self.interface}: SYNC0 does not come at one time in all drives: {sorted(starts)} ns")
        shift = round(self._given["sync_shift_periods"] * self._period_ns)
        return EthercatLayout(
            logical=first,
            image=end - first,
            stations=tuple(node.register(0x010, 2) for node in self._nodes),
            outputs=tuple(places[2]),
            inputs=tuple(places[1]),
            expected=sum(2 * any(k == 2 for _, _, k in one) + any(k == 1 for _, _, k in one) for one in fmmus),
            clocks=len(clocks),
            reference=self._reference.register(0x010, 2),
            slaves=len(self._all),
            phase_ns=(starts.pop() - shift) % self._period_ns,
            watchdog=watchdog[0] - first,
            watchdog_bytes=watchdog[1],
        )

    def _watchdog_place(self, fmmus: Sequence[Sequence[tuple[int, int, int]]]) -> tuple[int, int]:
        """Logical address and bytes of the outputs of the slave that has the watchdog; none: 0 bytes."""
        place = self._given["watchdog_slave"]
        if place < 0:
            return 0, 0
        outputs = [(logical, size) for logical, size, kind in fmmus[place] if kind == 2]
        most = 8 * outputs[0][1] if len(outputs) == 1 else 0
        if most <= max(self._given["watchdog_outputs"]):
            raise DriveSetupError(
                f"{self._all[place]}: has {most} digital outputs in one run, drives.watchdog_outputs asks for number "
                f"{max(self._given['watchdog_outputs']):g}, counted from 0: name another slave (drives.watchdog_slave) or other outputs"
            )
        return outputs[0]

    def _settle(self) -> None:
        """Waits until all frames come back whole, and the clocks agree with the reference: the first one, which has no reference itself."""
        followers = [node for node in self._nodes if node is not self._reference]
        end = time.monotonic() + max(self.answer_s, self._given["settle_s"])
        while True:
            self.await_frames(FRAMES_TO_ACT)
            counter, clocks, expected, all_clocks = self.axes.working_counters
            apart = max(node.register(0x92C, 4) & 0x7FFFFFFF for node in followers)
            if (counter, clocks) == (expected, all_clocks) and apart <= self._given["clock_tolerance_ns"]:
                return
            if time.monotonic() > end:
                raise DriveSetupError(
                    f"EtherCAT on {self.interface}: not settled: working counter {counter} of {expected}, clocks {clocks} of {all_clocks}, "
                    f"their largest difference {apart} ns"
                )
            time.sleep(0.005)

    def _state(self, state: int, name: str, ask: bool) -> None:
        if ask:
            self._master.state = state
            self._master.write_state()
        end = time.monotonic() + max(self.answer_s, 1.0)
        while True:
            self._master.read_state()
            if all(node.slave.state == state for node in self._all):
                return
            refused = next((node for node in self._all if node.slave.state & STATE_ERROR), None)
            if refused is not None or time.monotonic() > end:
                node = refused or next(node for node in self._all if node.slave.state != state)
                why = f"state {node.slave.state}, AL status code 0x{node.slave.al_status:04X}"
                raise DriveSetupError(f"{node}: does not reach {name}: {why}")
            time.sleep(0.005)

    def _drop(self) -> None:
        from drivers.drives.axes_session import quietly

        if self._keeper is not None:  # a slave whose frames end in Operational would say that its watchdog has run out
            quietly(lambda name: self._to(SAFEOP), [SAFEOP])
        self.axes.stop()
        if self._keeper is not None:
            self._keeper.join()
        self._keeper = None
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        if self._master is not None:
            quietly(self._to, [PREOP, INIT])
            quietly(lambda master: master.close(), [self._master])
        self._master = None

    def _to(self, state: int) -> None:
        """All slaves down to a state; waits for it, but not for a slave that is gone."""
        self._master.state = state
        self._master.write_state()
        end = time.monotonic() + CLOSING_STATE_S
        while time.monotonic() < end:
            self._master.read_state()
            if all(node.slave.state & ~STATE_ERROR <= state for node in self._all):
                return
            time.sleep(0.001)


def _patient(library: Any, answer_s: float) -> None:
    """An answer may come late on a machine that does other things too: pysoem's own limits are for one that does not."""
    timeouts = library.settings.timeouts
    for name, share in (("ret", 0.01), ("safe", 0.1), ("eeprom", 0.1), ("tx_mailbox", 0.1), ("rx_mailbox", 1.0)):
        setattr(timeouts, name, max(getattr(timeouts, name), round(1e6 * share * answer_s)))


def library_findings() -> list[tuple[str, str, str, str]]:
    """(level, item, found, remedy) about the library that sets the drives up."""
    try:
        return [("info", "EtherCAT set-up", f"pysoem {importlib.metadata.version('pysoem')}", "")]
    except importlib.metadata.PackageNotFoundError:
        return [("fail", "EtherCAT set-up", "pysoem is not installed", INSTALL)]


def _library() -> Any:
    try:
        import pysoem
    except ImportError as error:
        raise DriveSetupError(f"EtherCAT drives need pysoem for their set-up: {INSTALL}") from error
    return pysoem


def _why(error: Exception) -> str:
    code = getattr(error, "abort_code", None)
    return f"abort 0x{code:08X} {getattr(error, 'desc', '')}".strip() if code is not None else f"{type(error).__name__} {error}".strip()
