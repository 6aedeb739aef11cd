"""Brings six CANopen axes from power-up to enabled and back, whatever their profile. Python, before and after the loop.

Objects and PDOs are set at `open`, while the axes are off. `enable` comes last before the loop: frames flow first (the keeper of
`drivers.drives.cyclic_axes`), then the axes are led up; `disable` comes first after it.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from drivers.drives.canopen_setup import DriveSetupError, Link, Node, unlimited
from drivers.drives.drive_channels import CHANNEL_PARAMETERS, DriveChannels
from drivers.drives.supervision import (
    SUPERVISION_PARAMETERS,
    Protection,
    check_scale,
    objects_named,
    protect,
)
from drivers.identity import alike, checked_count, compare
from drivers.raw_frames.can_link import link_names, open_link
from rt_kernels.doors import select, socket, threading, time
from rt_kernels.parameters import Parameter

# Of drives on any bus.
AXIS_PARAMETERS = (
    Parameter("counts_per_metre", "float", "1/m", "position counts of the drives per metre", 1e6, 1.0, 1e10),
    Parameter("zero_m", "floats", "m", "leg length at position 0 of each drive", (0.0,) * 6, -100.0, 100.0, shape=6),
    Parameter("held_within_m", "float", "m", "a drive further from where it was enabled, before its first setpoint, loses its power", 1e-3,
              1e-5, 0.01),
    Parameter("rate_window_periods", "int", "periods", "measured leg rate: difference over so many periods", 4, 1, 15),
    *SUPERVISION_PARAMETERS,
)
# Of CANopen drives.
COMMON_PARAMETERS = (
    Parameter("links", "str", "-", "CAN links, separated by blanks: interface (can0), udp:127.0.0.1:PORT, or fd:N"),
    Parameter("axis_link", "floats", "-", "which of the links each axis is on, from 0", (0, 0, 0, 0, 0, 0), 0, 2, shape=6),
    Parameter("axis_node", "floats", "-", "CANopen node of each axis", (1, 2, 3, 4, 5, 6), 1, 127, shape=6),
    *AXIS_PARAMETERS,
    Parameter("no_data_periods", "int", "periods", "so many periods without an actual value are no data", 3, 1, 1000),
    Parameter("receive_timeout_periods", "int", "periods", "the drive stops when no setpoint came for so long", 5, 2, 1000),
    Parameter("heartbeat_ms", "int", "ms", "heartbeat of the drives", 100, 10, 10000),
    Parameter("heartbeat_timeout_ms", "int", "ms", "a heartbeat silent for longer is lost; 0: three heartbeats", 0, 0, 60000),
    Parameter("server_node", "int", "-", "CANopen node of the server, whose heartbeat the drives watch", 127, 1, 127),
    Parameter("server_timeout_ms", "int", "ms", "a drive that does not hear the server's heartbeat for so long stops", 60, 10, 60000),
    Parameter("bitrate", "float", "bit/s", "bit rate of the buses, for the bus budget", 1e6, 1e4, 1e6),
    Parameter("timeout_s", "float", "s", "time for every answer during set-up", 1.0, 0.05, 60.0),
    *CHANNEL_PARAMETERS,
)


FRAME_BYTES = 16
CLOSING_ANSWER_S = 0.25  # a dead bus must not hold the end of a run
KEEPER_PRIORITY = 60  # below the loop, where the right is there
BEATS_IN_TIMEOUT = 3
SILENT_PERIODS = 20  # an axis that has not answered for so many is silent


class Profile(Protocol):
    """What differs between drive profiles during set-up."""

    def prepare(self, node: Node, axis: int) -> None:
        """Pre-operational: checks who it is, sets objects and PDOs."""

    def scale(self, node: Node, feed_m: float) -> list[tuple[float, str]]:
        """Position counts per metre as the drive says them, and where; feed_m: way of the leg in a turn of the shaft, 0 not known."""

    def check(self, node: Node) -> None:
        """Operational: refuses local control and another mode."""

    def standing(self, node: Node) -> tuple[int, int]:
        """Status word, and position in counts."""

    last_state: str
    """What comes last on the way up, in words."""

    def next_state(self, word: int) -> str:
        """What comes after the state of this status word on the way up, in words."""


class AxesSession:
    """Six axes on one to three links, from `open` to `close`. axes: CyclicAxes, configured; channels: what they say beside their position;
    protection: of each axis, settings for the drive's own protection; given: the port's parameters; loop_core: of the loop's
    thread, -1 any."""

    def __init__(self, profile: Profile, axes: Any, channels: DriveChannels, protection: Sequence[Sequence[Protection]],
                 given: Mapping[str, Any], loop_core: int = -1):  # fmt: skip
        self._loop_core = loop_core
        self._profile, self._axes, self.channels, self._protection, self._given = profile, axes, channels, protection, given
        self._names = link_names(given["links"])
        self.axis_link, self.axis_node = axis_places(given)
        checked_count(given["identity"], len(self.axis_node))
        self._answer_s: float = given["timeout_s"]
        self._left = objects_named(given["left_objects"])
        self._sockets: list[socket.socket] = []
        self._copies: list[tuple[socket.socket, socket.socket]] = []
        self._keeper: threading.Thread | None = None
        self._turn, self._asked = threading.Condition(), False
        self.notes: list[str] = []
        self.identities: list[dict[str, int]] = []

    @property
    def descriptors(self) -> list[int]:
        """File descriptors of the buses' sockets, in the order of the links."""
        return [s.fileno() for s in self._sockets]

    def open(self) -> None:
        """Sets all axes up and leaves them without power. Raises DriveSetupError (a ConnectionError) when one is missing, another one than
        expected, in local control, or refuses a value."""
        try:
            self._sockets = [open_link(name) for name in self._names]
            for _ in self._names:
                self._copies.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK))
            networks = self._connect(self._answer_s)
            try:
                nodes = self._nodes(networks)
                self._set_up(list(enumerate(nodes)))
                for node in nodes:
                    self._profile.check(node)
                standing = [self._profile.standing(node) for node in nodes]
                for axis, node in enumerate(nodes):
                    self.channels.read_first(node, axis)
                emergencies = [node.pending_emergency() for node in nodes]
            finally:
                for network in networks:
                    network.disconnect()
        except Exception:
            self._drop()
            raise
        words, positions = zip(*standing, strict=True)
        self._axes.listen(self.channels)
        self._axes.start(self.descriptors, words, positions, self.channels.first_values(), emergencies)

    def enable(self) -> None:
        """Frames flow from now on, then the axes are enabled where they are. Raises DriveSetupError for one that is not; then all are off
        again."""
        self._axes.lead_up()
        self._keeper = threading.Thread(target=self._keep, name="drives keeper", daemon=True)
        self._keeper.start()
        try:
            await_up(self._axes, self._profile, self._labels(), self._answer_s)
        except DriveSetupError as error:
            raise DriveSetupError("; ".join([str(error), *self.disable()])) from error

    def disable(self) -> list[str]:
        """Takes the power off all axes; frames flow until each says that it is off. Returns what did not work, empty when all did."""
        if self._keeper is None:
            return []
        problems = await_down(self._axes, self._labels(), self._answer_s)
        try:
            with self._beside_loop(min(self._answer_s, CLOSING_ANSWER_S) if problems else self._answer_s) as nodes:
                for node in nodes:
                    problems += quietly(self._let_go, [node])
        finally:
            self._axes.stop()
            self._keeper.join()
            self._keeper = None
        return problems

    @property
    def copies(self) -> list[int]:
        """Descriptors, one per link, to which the loop copies what nodes say to a set-up beside it."""
        return [into.fileno() for into, _ in self._copies]

    def set_up_again(self, axes: Sequence[int], left_s: Callable[[], float]) -> None:
        """While the loop runs: the nodes of these axes from pre-operational to operational with their PDOs; it does not enable them.
        left_s(): seconds that it may still take.

        The loop continues to read the links' sockets; what the nodes answer comes by its copies. Raises DriveSetupError."""
        with self._beside_loop(self._answer_s, left_s) as nodes:
            self._set_up([(axis, nodes[axis]) for axis in axes])

    def close(self) -> list[str]:
        """Takes the power off where that has not been done, pre-operational at the end. Returns what did not work, empty when all did."""
        problems = self.disable()
        self._axes.stop()
        self._drop()
        return problems

    def _keep(self) -> None:
        self._axes.keep(KEEPER_PRIORITY, self._loop_core)  # on descriptors of this session, which lives as long as its thread

    def _let_go(self, node: Node) -> None:
        """It no longer supervises the server, and takes no setpoint: one that does not answer either, and may still be enabled."""
        try:
            node.write(0x1016, 1, 4, 0, "consumer heartbeat time of the server", optional=True)
        finally:
            node.command_nmt("PRE-OPERATIONAL")

    def _labels(self) -> list[str]:
        return [f"node {node} on {self._names[link]}" for link, node in zip(self.axis_link, self.axis_node, strict=True)]

    def _connect(self, answer_s: float) -> list[Link]:
        return [Link(name, s, answer_s) for name, s in zip(self._names, self._sockets, strict=True)]

    @contextlib.contextmanager
    def _beside_loop(self, answer_s: float, left_s: Callable[[], float] = unlimited) -> Iterator[list[Node]]:
        """The nodes, asked while frames flow: one user at a time, the next one waits until the one before has its answer."""
        with self._turn:
            while self._asked:
                self._turn.wait()
            self._asked = True
        networks: list[Link] = []
        try:
            for _, copy in self._copies:
                while _waits(copy):  # of another set-up
                    copy.recv(FRAME_BYTES)
            self._axes.copy_to(self.copies)
            for name, (_, copy), link in zip(self._names, self._copies, self._sockets, strict=True):
                networks.append(Link(name, _BesideLoop(copy, link), answer_s, left_s))
            yield self._nodes(networks)
        finally:
            self._axes.copy_to(())
            for network in networks:
                network.disconnect()
            with self._turn:
                self._asked = False
                self._turn.notify()

    def _nodes(self, networks: Sequence[Link]) -> list[Node]:
        return [networks[link].node(node) for link, node in zip(self.axis_link, self.axis_node, strict=True)]

    def _set_up(self, axes: Sequence[tuple[int, Node]]) -> None:
        """Objects and PDOs of these axes' nodes, then operational."""
        nodes = [node for _, node in axes]
        missing: dict[str, list[str]] = {}
        for node in nodes:
            node.command_nmt("PRE-OPERATIONAL")
        for axis, node in axes:
            self._profile.prepare(node, axis)
            unknown = look_at(self._profile, node, axis, self.identities, self._given)
            for words in [*unknown, *protect(node, self._protection[axis], self._left)]:
                missing.setdefault(words, []).append(str(node))
            self.channels.prepare(node, axis)
        self.notes = [*notes_of(missing), *alike(self.identities)]
        for node in nodes:
            node.await_nmt("PRE-OPERATIONAL")
        for node in nodes:
            node.command_nmt("OPERATIONAL")
        for node in nodes:
            node.await_nmt("OPERATIONAL")

    def _drop(self) -> None:
        for s in (*self._sockets, *(s for pair in self._copies for s in pair)):
            s.close()
        self._sockets, self._copies = [], []


class _BesideLoop:
    """A link whose frames the loop reads: received is what it copies, sent is on the link itself."""

    def __init__(self, copy: socket.socket, link: socket.socket):
        self._copy, self._link = copy, link

    def fileno(self) -> int:
        return self._copy.fileno()

    def recv(self, size: int) -> bytes:
        return self._copy.recv(size)

    def send(self, data: bytes) -> int:
        return self._link.send(data)


def axis_places(given: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Link and node of each axis. Raises ValueError for a link that is not there, or that no axis uses, and for a node of two axes."""
    links = link_names(given["links"])
    axis_link = [whole("axis_link", x) for x in given["axis_link"]]
    axis_node = [whole("axis_node", x) for x in given["axis_node"]]
    if set(axis_link) != set(range(len(links))):
        raise ValueError(f"axis_link = {axis_link}: must use each of the {len(links)} links in links = {given['links']!r}, numbered from 0")
    if given["server_node"] in axis_node:
        raise ValueError(f"server_node = {given['server_node']}: is the node of an axis (axis_node = {axis_node}); take another number")
    return axis_link, axis_node


def _waits(s: socket.socket) -> bool:
    return bool(select.select([s], [], [], 0.0)[0])


def look_at(profile: Any, node: Any, axis: int, identities: list[dict[str, int]], given: Mapping[str, Any]) -> list[str]:
    """Who the drive of an axis is, and its scale, against the stand file. Returns what cannot be compared. Raises WrongDeviceError,
    DriveSetupError."""
    found = node.identity()
    if axis == len(identities):
        identities.append(found)
    compare(node, axis, found, given["identity"])
    scales = profile.scale(node, given["feed_m"])
    check_scale(node, scales, given["counts_per_metre"])
    return [] if scales else ["no scale (0x6092 with drives.feed_m, 0x60A8, 0x6601), counts_per_metre is not compared"]


def notes_of(missing: Mapping[str, Sequence[str]]) -> list[str]:
    """One line for each thing that drives do not have: what, and which of them."""
    return [f"drives: {words}: {', '.join(who)}" for words, who in missing.items()]


def await_up(axes: Any, profile: Any, labels: Sequence[str], answer_s: float) -> None:
    """Waits until the keeper has led all axes up. Raises DriveSetupError for the first that says an emergency, or stays in a state for
    longer than an answer takes."""
    patience = max(answer_s, 0.5)
    words, end = None, 0.0
    while not axes.up:
        standing = [axes.standing(axis) for axis in range(len(labels))]
        if (seen := [word for word, *_ in standing]) != words:
            words, end = seen, time.monotonic() + patience
        elif time.monotonic() > end:
            # the last step is taken together: those who have come so far wait for one that has not
            off = [(label, word) for label, (word, _, enabled, *_) in zip(labels, standing, strict=True) if not enabled]
            label, word = next((one for one in off if profile.next_state(one[1]) != profile.last_state), off[0])
            raise DriveSetupError(f"{label}: {profile.next_state(word)} was not reached, status word is 0x{word:04X}")
        time.sleep(0.001)
    for axis, label in enumerate(labels):
        if code := axes.standing(axis)[1]:
            raise DriveSetupError(f"{label}: emergency message 0x{code:04X} is pending")


def await_down(axes: Any, labels: Sequence[str], answer_s: float) -> list[str]:
    """Has the keeper lead all axes down, and waits until each says that it is off; from one that has fallen silent no longer than
    `CLOSING_ANSWER_S`. Returns what did not work."""
    axes.lead_down()
    began = time.monotonic()
    while True:
        standing = [axes.standing(axis) for axis in range(len(labels))]
        on = [i for i, (_, _, _, off, _) in enumerate(standing) if not off]
        waited = time.monotonic() - began
        heard = any(standing[i][4] < SILENT_PERIODS for i in on)
        if not on or waited > (max(answer_s, 0.5) if heard else CLOSING_ANSWER_S):
            return [f"{labels[i]}: does not say that it is off, status word is 0x{standing[i][0]:04X}" for i in on]
        time.sleep(0.001)


def loop_rate(period_s: float) -> float:
    """Cycles per second of SYNC. Raises ValueError for a period that no bus can keep."""
    if not 0.00025 <= period_s <= 1.0:
        raise ValueError(f"period_s = {period_s}: SYNC can be sent every 0.00025...1 s")
    return 1.0 / period_s


def heartbeat_timeout_ns(heartbeat_ms: int, heartbeat_timeout_ms: int) -> int:
    """Consumer heartbeat time (CiA 301: longer than the producer's), by default three heartbeats. Raises ValueError for one too short."""
    if 0 < heartbeat_timeout_ms <= heartbeat_ms:
        raise ValueError(
            f"heartbeat_timeout_ms = {heartbeat_timeout_ms}: must be longer than heartbeat_ms = {heartbeat_ms}, or 0 for three heartbeats"
        )
    return 1_000_000 * (heartbeat_timeout_ms or 3 * heartbeat_ms)


def watchdog_of(given: Mapping[str, Any], place: str) -> list[int]:
    """The bits of the watchdog's output. place: the key that says which device has it. Raises ValueError where one of both is missing."""
    bits = [whole("watchdog_outputs", x) for x in given["watchdog_outputs"]]
    if (given[place] >= 0) != (max(bits) >= 0) or 0 <= bits[0] == bits[1]:
        raise ValueError(f"{place} = {given[place]}, watchdog_outputs = {bits}: must both be given, two different outputs, or neither")
    return bits


def whole(key: str, value: float) -> int:
    """A number of a list as it is, an int. Raises ValueError for one that is not whole."""
    if value != int(value):
        raise ValueError(f"{key} = {value}: must be a whole number")
    return int(value)


def quietly(action: Any, nodes: Sequence[Any]) -> list[str]:
    """The action on every node, also after one failed. Returns what failed."""
    problems = []
    for node in nodes:
        try:
            action(node)
        except Exception as error:  # a dying bus raises anything from OSError to CanError; the other axes come first
            problems.append(str(error))
    return problems
