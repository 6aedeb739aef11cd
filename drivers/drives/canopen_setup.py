"""Set-up of a CANopen node before the loop and after it: NMT, SDO, PDO mapping. Cyclic data do not pass through here.

Sources: CiA 301 (communication objects 0x1000...0x1A00); order of a PDO set-up: disable, mapping count 0, entries, count,
transmission type, enable. The `canopen` library does the SDO transfers over the link's `FrameBus`.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from drivers.identity import identity_of
from drivers.raw_frames.can_library import canopen
from drivers.raw_frames.can_link import FrameBus, FrameLink
from rt_kernels.doors import time

RPDO_COMMUNICATION, RPDO_MAPPING = 0x1400, 0x1600
TPDO_COMMUNICATION, TPDO_MAPPING = 0x1800, 0x1A00
COB_DISABLED = 0x80000000
EVERY_SYNC = 1
GENERIC_ERROR = 0x1000
ERROR_CLASS = 0xFF00  # of an emergency code: 0, when it takes one back

_FORMATS = {1: "<B", -1: "<b", 2: "<H", -2: "<h", 4: "<I", -4: "<i"}


class DriveSetupError(ConnectionError):
    """A node is not there, refuses an object, or does not reach a state. The message names link, node, object and what was expected."""


@dataclass(frozen=True)
class Pdo:
    """One process data object as it is to be set up. entries: (index, sub-index, bits). event_ms: deadline of an RPDO, 0 none."""

    receive: bool
    number: int
    cob_id: int
    entries: tuple[tuple[int, int, int], ...]
    transmission: int = EVERY_SYNC
    event_ms: int = 0


def unlimited() -> float:
    """Seconds that are left, of a set-up that nothing ends."""
    return math.inf


class Link:
    """One bus during set-up: a `canopen.Network` on an open socket, which stays open. answer_s: time for an answer; left_s: for all of
    them."""

    def __init__(self, name: str, link: FrameLink, answer_s: float, left_s: Callable[[], float] = unlimited):
        self.name = name
        self._answer_s, self._left_s = answer_s, left_s
        self.network = canopen.Network(FrameBus(link, name))
        self.network.NOTIFIER_CYCLE = 0.02  # how long disconnect() waits for its thread
        self.network.connect()

    def node(self, node_id: int) -> "Node":
        """The node with that number (1...127) on this bus."""
        return Node(self, node_id)

    def patience_s(self, least_s: float = 0.0) -> float:
        """How long the next answer may take, `least_s` at least where there is time. Raises DriveSetupError when none is left."""
        if (left_s := self._left_s()) <= 0.0:
            raise DriveSetupError(f"{self.name}: the set-up was broken off, the recovery is over")
        return min(max(self._answer_s, least_s), left_s)

    def disconnect(self) -> None:
        """Ends the set-up; the socket stays open."""
        self.network.disconnect()


class Node:
    """A remote node: typed reads and writes whose errors say what was meant, PDO set-up, NMT with confirmation."""

    def __init__(self, link: Link, node_id: int):
        self.link = link
        self.id = node_id
        self._remote = link.network.add_node(node_id)

    def __str__(self) -> str:
        return f"node {self.id} on {self.link.name}"

    def read(self, index: int, sub: int, size: int, meaning: str) -> int:
        """Value of an object; size in bytes, negative for a signed one. Raises DriveSetupError."""
        self._remote.sdo.RESPONSE_TIMEOUT = self.link.patience_s()
        try:
            data = self._remote.sdo.upload(index, sub)
        except canopen.sdo.exceptions.SdoError as error:
            raise DriveSetupError(f"{self}: reading {meaning} (0x{index:04X}:{sub}) failed: {error}") from error
        if len(data) < abs(size):
            raise DriveSetupError(f"{self}: {meaning} (0x{index:04X}:{sub}) has {len(data)} bytes instead of {abs(size)}")
        return struct.unpack(_FORMATS[size], data[: abs(size)])[0]

    def write(self, index: int, sub: int, size: int, value: int, meaning: str, optional: bool = False) -> bool:
        """Writes an object. With `optional` a node that does not have it is accepted (returns False). Raises DriveSetupError."""
        self._remote.sdo.RESPONSE_TIMEOUT = self.link.patience_s()
        try:
            self._remote.sdo.download(index, sub, struct.pack(_FORMATS[size], value))
        except canopen.SdoAbortedError as error:
            if optional and error.code in (0x06020000, 0x06090011):
                return False
            raise DriveSetupError(f"{self}: writing {meaning} (0x{index:04X}:{sub}) := {value} was refused: {error}") from error
        except canopen.sdo.exceptions.SdoError as error:
            raise DriveSetupError(f"{self}: writing {meaning} (0x{index:04X}:{sub}) := {value} failed: {error}") from error
        return True

    def identity(self) -> dict[str, int]:
        """Vendor, product code, revision and serial number, as the node says them; a part that it does not have is 0."""
        return identity_of(self)

    def set_pdo(self, pdo: Pdo) -> None:
        """Sets up one PDO in the order that CiA 301 asks for."""
        communication = (RPDO_COMMUNICATION if pdo.receive else TPDO_COMMUNICATION) + pdo.number - 1
        mapping = (RPDO_MAPPING if pdo.receive else TPDO_MAPPING) + pdo.number - 1
        name = f"{'RPDO' if pdo.receive else 'TPDO'}{pdo.number}"
        self.write(communication, 1, 4, COB_DISABLED | pdo.cob_id, f"{name} off")
        self.write(mapping, 0, 1, 0, f"{name} mapping count")
        for place, (index, sub, bits) in enumerate(pdo.entries, start=1):
            self.write(mapping, place, 4, index << 16 | sub << 8 | bits, f"{name} entry {place}")
        self.write(mapping, 0, 1, len(pdo.entries), f"{name} mapping count")
        self.write(communication, 2, 1, pdo.transmission, f"{name} transmission type")
        if pdo.receive:
            self.write(communication, 5, 2, pdo.event_ms, f"{name} receive time-out")
        self.write(communication, 1, 4, pdo.cob_id, f"{name} on")

    def disable_pdo(self, receive: bool, number: int, cob_id: int) -> None:
        """Switches a PDO off that the node may have on by default; a node without it is accepted."""
        communication = (RPDO_COMMUNICATION if receive else TPDO_COMMUNICATION) + number - 1
        self.write(communication, 1, 4, COB_DISABLED | cob_id, f"{'RPDO' if receive else 'TPDO'}{number} off", optional=True)

    def command_nmt(self, state: str) -> None:
        """Sends an NMT command by the name of its state (`OPERATIONAL`, `PRE-OPERATIONAL`, `RESET`)."""
        self._remote.nmt.state = state

    def await_nmt(self, state: str) -> None:
        """Waits until the node's heartbeat says `state`. Raises DriveSetupError after the time for answers, at least three heartbeats."""
        # The library believes its own command: only a state that came with a heartbeat counts.
        end = time.monotonic() + self.link.patience_s(least_s=0.5)
        last = "none"
        while (left := end - time.monotonic()) > 0:
            try:
                last = self._remote.nmt.wait_for_heartbeat(left)
            except canopen.nmt.NmtError:
                break
            if last == state:
                return
        raise DriveSetupError(f"{self}: no heartbeat with state {state} (last one: {last})")

    def pending_emergency(self) -> int:
        """Code of an emergency message that came during the set-up and was not taken back, else 0."""
        # The library forgets all errors at code 0; an error register that is not empty then says that others stand (CiA 301).
        log = self._remote.emcy.log
        if not log or not (log[-1].code & ERROR_CLASS or log[-1].register):
            return 0
        return next((e.code for e in reversed(log) if e.code & ERROR_CLASS), GENERIC_ERROR)
