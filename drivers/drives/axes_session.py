"""Brings six CANopen axes from power-up to enabled and back, whatever their profile. Python, before and after the loop."""

import select
import socket
from collections.abc import Sequence
from typing import Any, Protocol

from drivers.drives.canopen_setup import DriveSetupError, Link, Node
from drivers.drives.drive_channels import CHANNEL_PARAMETERS, DriveChannels
from drivers.raw_frames.can_link import link_names, open_link
from rt_kernels.parameters import Parameter

# Of drives on any bus.
AXIS_PARAMETERS = (
    Parameter("counts_per_metre", "float", "1/m", "position counts of the drives per metre", 1e6, 1.0, 1e10),
    Parameter("zero_m", "floats", "m", "leg length at position 0 of each drive", (0.0,) * 6, -100.0, 100.0, shape=6),
    Parameter("rate_window_periods", "int", "periods", "measured leg rate: difference over so many periods", 4, 1, 15),
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
    Parameter("bitrate", "float", "bit/s", "bit rate of the buses, for the bus budget", 1e6, 1e4, 1e6),
    Parameter("timeout_s", "float", "s", "time for every answer during set-up", 1.0, 0.05, 60.0),
    *CHANNEL_PARAMETERS,
)


FRAME_BYTES = 16
CLOSING_ANSWER_S = 0.25  # a dead bus must not hold the end of a run


class Profile(Protocol):
    """What differs between drive profiles during set-up."""

    def prepare(self, node: Node) -> None:
        """Pre-operational: checks who it is, sets objects and PDOs."""

    def clear_fault(self, node: Node) -> None:
        """Operational: leaves a fault state; refuses local control."""

    steps: Sequence[tuple[str, int, Any, bool]]
    """In this order on the way up: (name of the state, control word, test of the status word, target := actual before it)."""

    def step(self, node: Node, control_word: int) -> None:
        """Writes the control word."""

    def await_state(self, node: Node, name: str, reached: Any) -> int:
        """Waits for a state, returns the status word."""

    def hold_here(self, node: Node) -> int:
        """Target := actual position. Returns the position in counts."""

    def disable(self, node: Node) -> None:
        """All the way down, each state confirmed."""


class AxesSession:
    """Six axes on one to three links, from `open` to `close`. channels: what they say beside their position."""

    def __init__(
        self,
        profile: Profile,
        links: str,
        axis_link: Sequence[float],
        axis_node: Sequence[float],
        answer_s: float,
        channels: DriveChannels,
    ):
        self._profile = profile
        self.channels = channels
        self._names = link_names(links)
        self.axis_link = [_whole("axis_link", x) for x in axis_link]
        self.axis_node = [_whole("axis_node", x) for x in axis_node]
        self._answer_s = answer_s
        self._sockets: list[socket.socket] = []
        self._copies: list[tuple[socket.socket, socket.socket]] = []
        if set(self.axis_link) != set(range(len(self._names))):
            raise ValueError(
                f"axis_link = {self.axis_link}: must use each of the {len(self._names)} links in links = {links!r}, numbered from 0"
            )

    @property
    def descriptors(self) -> list[int]:
        """File descriptors of the buses' sockets, in the order of the links."""
        return [s.fileno() for s in self._sockets]

    def open(self) -> tuple[list[int], list[int]]:
        """Enables all axes where they are. Returns their status words and positions in counts.

        Raises DriveSetupError (a ConnectionError) when one is missing, in local control, or does not follow; then all are disabled again.
        """
        try:
            self._sockets = [open_link(name) for name in self._names]
            for _ in self._names:
                self._copies.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK))
            networks = self._connect(self._answer_s)
            try:
                nodes = self._nodes(networks)
                try:
                    return self._bring_up(nodes)
                except Exception:
                    quietly(self._profile.disable, nodes)
                    raise
            finally:
                for network in networks:
                    network.disconnect()
        except Exception:
            self._drop()
            raise

    @property
    def copies(self) -> list[int]:
        """Descriptors, one per link, to which the loop copies what nodes say to a set-up beside it."""
        return [into.fileno() for into, _ in self._copies]

    def set_up_again(self, axes: Sequence[int]) -> None:
        """While the loop runs: the nodes of these axes from pre-operational to operational with their PDOs; it does not enable them.

        The loop goes on to read the links' sockets; what the nodes answer comes by its copies. Raises DriveSetupError."""
        for _, copy in self._copies:
            while _waits(copy):  # of another set-up
                copy.recv(FRAME_BYTES)
        links = [_BesideLoop(copy, s) for (_, copy), s in zip(self._copies, self._sockets, strict=True)]
        networks = [Link(name, link, self._answer_s) for name, link in zip(self._names, links, strict=True)]
        try:
            nodes = self._nodes(networks)
            self._set_up([(axis, nodes[axis]) for axis in axes])
        finally:
            for network in networks:
                network.disconnect()

    def close(self) -> list[str]:
        """Disables all axes in order, pre-operational at the end. Returns what did not work, empty when all did."""
        if not self._sockets:
            return []
        networks = self._connect(min(self._answer_s, CLOSING_ANSWER_S))
        try:
            nodes = self._nodes(networks)
            problems = quietly(self._profile.disable, nodes)
            problems += quietly(lambda node: node.command_nmt("PRE-OPERATIONAL"), nodes)
            return problems
        finally:
            for network in networks:
                network.disconnect()
            self._drop()

    def _connect(self, answer_s: float) -> list[Link]:
        return [Link(name, s, answer_s) for name, s in zip(self._names, self._sockets, strict=True)]

    def _nodes(self, networks: Sequence[Link]) -> list[Node]:
        return [networks[link].node(node) for link, node in zip(self.axis_link, self.axis_node, strict=True)]

    def _bring_up(self, nodes: Sequence[Node]) -> tuple[list[int], list[int]]:
        profile = self._profile
        self._set_up(list(enumerate(nodes)))
        for node in nodes:
            profile.clear_fault(node)

        status, positions = enable_together(profile, nodes)
        for node in nodes:
            if code := node.pending_emergency():
                raise DriveSetupError(f"{node}: emergency message 0x{code:04X} is pending")
        for axis, node in enumerate(nodes):
            self.channels.read_first(node, axis)
        return status, positions

    def _set_up(self, axes: Sequence[tuple[int, Node]]) -> None:
        """Objects and PDOs of these axes' nodes, then operational."""
        nodes = [node for _, node in axes]
        for node in nodes:
            node.command_nmt("PRE-OPERATIONAL")
        for axis, node in axes:
            self._profile.prepare(node)
            self.channels.prepare(node, axis)
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


def _waits(s: socket.socket) -> bool:
    return bool(select.select([s], [], [], 0.0)[0])


def enable_together(profile: Any, nodes: Sequence[Any]) -> tuple[list[int], list[int]]:
    """The way up of a profile (`steps`): all axes take the same step before any takes the next one. Returns status words and positions."""
    status = [0] * len(nodes)
    positions = [0] * len(nodes)
    for name, control_word, reached, target_first in profile.steps:
        for i, node in enumerate(nodes):
            if target_first:
                positions[i] = profile.hold_here(node)
            profile.step(node, control_word)
        status = [profile.await_state(node, name, reached) for node in nodes]
    return status, positions


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


def _whole(key: str, value: float) -> int:
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
