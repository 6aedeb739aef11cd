"""A CANopen device in software and the bus it sits on, written from CiA 301 alone.

Independent of `drivers`: nothing here is imported from it or modelled on it. What CiA 301 demands of a device is demanded of the master,
so that a set-up that a real device would refuse is refused here: PDO parameters may only be written while the PDO is off, a mapping only
while its count is zero and only with objects that can be mapped, an SDO value must have the object's length, PDOs move only in state
operational.

A frame on the wire is `struct can_frame` of linux/can.h: identifier with flags (u32), length (u8), three bytes of padding, eight data
bytes, in the byte order of the host; one UDP datagram carries one frame. All CANopen values are little-endian.
"""

import contextlib
import select
import socket
import struct
from dataclasses import dataclass

CAN_FRAME = struct.Struct("=IB3x8s")
EXTENDED, REMOTE, ERROR = 0x80000000, 0x40000000, 0x20000000  # CAN_EFF_FLAG, CAN_RTR_FLAG, CAN_ERR_FLAG

# function codes of the pre-defined connection set (CiA 301, 7.3.5)
NMT, SYNC, EMCY, HEARTBEAT = 0x000, 0x080, 0x080, 0x700
TPDO, RPDO, SDO_ANSWER, SDO_REQUEST = (0x180, 0x280, 0x380, 0x480), (0x200, 0x300, 0x400, 0x500), 0x580, 0x600

# states as a heartbeat tells them
BOOT_UP, STOPPED, OPERATIONAL, PRE_OPERATIONAL = 0x00, 0x04, 0x05, 0x7F
_NMT_STATE = {1: OPERATIONAL, 2: STOPPED, 128: PRE_OPERATIONAL}

# SDO abort codes
NO_OBJECT, NO_SUB_INDEX, READ_ONLY, WRONG_LENGTH = 0x06020000, 0x06090011, 0x06010002, 0x06070010
NOT_NOW, NOT_MAPPABLE, MAPPED_TOO_LONG, BAD_VALUE, BAD_COMMAND = 0x06010000, 0x06040041, 0x06040042, 0x06090030, 0x05040001
_INVALID = 1 << 31  # of a PDO's COB-ID


@dataclass(frozen=True)
class Frame:
    """One CAN frame. `length` differs from the data's only where a test wants a frame that lies about it."""

    identifier: int
    data: bytes = b""
    length: int | None = None

    def packed(self) -> bytes:
        length = len(self.data) if self.length is None else self.length
        return CAN_FRAME.pack(self.identifier, length, self.data.ljust(8, b"\0")[:8])

    @classmethod
    def unpacked(cls, raw: bytes) -> "Frame":
        identifier, length, data = CAN_FRAME.unpack(raw)
        return cls(identifier, data[: min(length, 8)])


@dataclass
class Entry:
    """An object of the dictionary: its length in bits, its value (unsigned or signed), what may be done with it."""

    bits: int
    value: int = 0
    signed: bool = False
    writable: bool = True
    mappable: bool = False

    def encoded(self) -> bytes:
        return (self.value & ((1 << self.bits) - 1)).to_bytes(self.bits // 8, "little")

    def decode(self, raw: bytes) -> None:
        self.value = int.from_bytes(raw, "little", signed=self.signed)


class Node:
    """A CANopen device: NMT, SDO server, PDOs with mapping, heartbeat, emergency. A profile adds objects and `written`, `behave`.

    `handle(frame)` returns the answers to a frame, `sync()` those to a SYNC, `pass_time(ms)` what is due after so much time. With `watches`
    it judges that no one commands it any more (CiA 301): the consumer heartbeat time of one node, 1016h:1, watched from its first heartbeat
    on, after which it is in the state that 1029h:1 says; the event timer of RPDO 1, from its first frame on.
    """

    def __init__(self, number: int, device_type: int) -> None:
        self.number, self.state, self.objects = number, PRE_OPERATIONAL, {}
        self._held: dict[int, bytes] = {}  # RPDO number -> data that wait for the next SYNC
        self._syncs = self._silent_ms = 0
        self.watches = True
        self._unheard_ms: float | None = None  # since the newest heartbeat of the node that is watched
        self._uncommanded_ms: float | None = None  # since the newest RPDO 1
        self.refused: list[str] = []  # what the master asked and CiA 301 forbids
        add = self.add
        add(0x1000, 0, Entry(32, device_type, writable=False))
        add(0x1001, 0, Entry(8, 0, writable=False, mappable=True))
        add(0x1005, 0, Entry(32, SYNC))
        add(0x1006, 0, Entry(32))
        add(0x1007, 0, Entry(32))
        add(0x1014, 0, Entry(32, EMCY + number))
        add(0x1015, 0, Entry(16))
        for sub, value in enumerate((1, 0)):
            add(0x1016, sub, Entry(32 if sub else 8, value, writable=sub > 0))
        add(0x1017, 0, Entry(16))
        for sub, value in enumerate((4, 0x2BAD, 1, 1, number)):
            add(0x1018, sub, Entry(32 if sub else 8, value, writable=False))
        for sub, value in enumerate((1, 0)):
            add(0x1029, sub, Entry(8, value, writable=sub > 0))
        for k in range(4):
            for base, cob in ((0x1400, RPDO[k]), (0x1800, TPDO[k])):
                add(base + k, 0, Entry(8, 5, writable=False))
                add(base + k, 1, Entry(32, (cob + number) | _INVALID))
                add(base + k, 2, Entry(8, 255))
                add(base + k, 3, Entry(16))
                add(base + k, 5, Entry(16))
            for base in (0x1600, 0x1A00):
                add(base + k, 0, Entry(8))
                for sub in range(1, 9):
                    add(base + k, sub, Entry(32))
        for index, bits, signed in ((2, 8, True), (3, 16, True), (4, 32, True), (5, 8, False), (6, 16, False), (7, 32, False)):
            add(index, 0, Entry(bits, signed=signed, mappable=True))  # dummies for gaps in a mapping

    def add(self, index: int, sub: int, entry: Entry) -> None:
        self.objects[index, sub] = entry

    def __getitem__(self, key: tuple[int, int]) -> int:
        return self.objects[key].value

    def __setitem__(self, key: tuple[int, int], value: int) -> None:
        self.objects[key].value = value

    # what a profile fills in
    def written(self, index: int, sub: int) -> None:
        """An object was written by SDO or PDO."""

    def behave(self) -> None:
        """One communication cycle of the device's own life, after its actual values were sampled."""

    def connection_lost(self) -> None:
        """No one commands the device any more."""

    # frames the device sends of itself
    def boot_up(self) -> Frame:
        return Frame(HEARTBEAT + self.number, bytes([BOOT_UP]))

    def heartbeat(self, state: int | None = None) -> Frame:
        return Frame(HEARTBEAT + self.number, bytes([self.state if state is None else state]))

    def emergency(self, code: int, register: int = 1, vendor: bytes = b"") -> Frame:
        return Frame(EMCY + self.number, struct.pack("<HB5s", code, register, vendor))

    def pass_time(self, ms: float) -> list[Frame]:
        lost = self._watch(ms) if self.watches else []
        self._silent_ms += ms
        if not self[0x1017, 0] or self._silent_ms < self[0x1017, 0]:
            return lost
        self._silent_ms = 0.0
        return [*lost, self.heartbeat()]

    def _watch(self, ms: float) -> list[Frame]:
        if self._unheard_ms is not None:
            self._unheard_ms += ms
            if self._unheard_ms > self[0x1016, 1] & 0xFFFF:
                self._unheard_ms = None
                self.connection_lost()
                if self.state == OPERATIONAL:
                    self.state = {0: PRE_OPERATIONAL, 1: OPERATIONAL, 2: STOPPED}[self[0x1029, 1]]
                return [self.emergency(0x8130, 0x11)]
        if self._uncommanded_ms is not None and self.state == OPERATIONAL:
            self._uncommanded_ms += ms
            if self._uncommanded_ms > self[0x1400, 5]:
                self._uncommanded_ms = None
                self.connection_lost()
                return [self.emergency(0x8250, 0x11)]
        return []

    def handle(self, frame: Frame) -> list[Frame]:
        watched = self[0x1016, 1]
        if watched & 0xFFFF and frame.identifier == HEARTBEAT + (watched >> 16 & 0x7F):
            self._unheard_ms = 0.0
        if frame.identifier == NMT and len(frame.data) == 2 and frame.data[1] in (0, self.number):
            return self._network_command(frame.data[0])
        if frame.identifier == SDO_REQUEST + self.number and len(frame.data) == 8 and self.state != STOPPED:
            return [] if frame.data[0] >> 5 == 4 else [self._service(frame.data)]  # a client's abort has no answer
        if self.state == OPERATIONAL:
            for k in range(4):
                if frame.identifier == self[0x1400 + k, 1]:
                    return self._receive(k, frame.data)
        return []

    def _network_command(self, command: int) -> list[Frame]:
        if command in _NMT_STATE:
            self._uncommanded_ms = None
            self.state = _NMT_STATE[command]
            return []
        if command in (129, 130):  # reset node, reset communication: both end in a boot-up message
            self.state = PRE_OPERATIONAL
            for k in range(4):
                self.objects[0x1400 + k, 1].value |= _INVALID
                self.objects[0x1800 + k, 1].value |= _INVALID
            self[0x1017, 0] = 0
            return [self.boot_up()]
        return []

    # SDO, expedited transfers (CiA 301, 7.2.4)
    def _service(self, request: bytes) -> Frame:
        command, index, sub = struct.unpack_from("<BHB", request)
        entry = self.objects.get((index, sub))
        if entry is None:
            known = any(i == index for i, _ in self.objects)
            return self._abort(index, sub, NO_SUB_INDEX if known else NO_OBJECT)
        if command >> 5 == 2:  # initiate upload
            data = entry.encoded()
            answer = struct.pack("<BHB4s", 0x43 | (4 - len(data)) << 2, index, sub, data)
            return Frame(SDO_ANSWER + self.number, answer)
        if command >> 5 != 1 or not command & 2:  # initiate download, expedited
            return self._abort(index, sub, BAD_COMMAND)
        size = 4 - (command >> 2 & 3) if command & 1 else entry.bits // 8
        code = self._write(index, sub, entry, request[4 : 4 + size])
        if code:
            return self._abort(index, sub, code)
        return Frame(SDO_ANSWER + self.number, struct.pack("<BHB4x", 0x60, index, sub))

    def _abort(self, index: int, sub: int, code: int) -> Frame:
        self.refused.append(f"0x{index:04X}:{sub} 0x{code:08X}")
        return Frame(SDO_ANSWER + self.number, struct.pack("<BHBI", 0x80, index, sub, code))

    def _write(self, index: int, sub: int, entry: Entry, raw: bytes) -> int:
        if not entry.writable:
            return READ_ONLY
        if len(raw) != entry.bits // 8:
            return WRONG_LENGTH
        new = int.from_bytes(raw, "little")
        if 0x1400 <= index < 0x1404 or 0x1800 <= index < 0x1804:
            on = not self[index, 1] & _INVALID
            # while the PDO exists only its valid bit may change
            if on and not (sub == 1 and new & _INVALID) and sub in (1, 2, 3):
                return NOT_NOW
        if 0x1600 <= index < 0x1604 or 0x1A00 <= index < 0x1A04:
            code = self._map(index, sub, new)
            if code:
                return code
        entry.decode(raw)
        if index == 0x1016:
            self._unheard_ms = None
        self.written(index, sub)
        return 0

    def _map(self, index: int, sub: int, new: int) -> int:
        on = not self[index - 0x200, 1] & _INVALID
        if on or (sub and self[index, 0]):
            return NOT_NOW
        if sub:
            mapped = self.objects.get((new >> 16, new >> 8 & 0xFF))
            return 0 if mapped is not None and mapped.mappable and mapped.bits == new & 0xFF else NOT_MAPPABLE
        if new > 8:
            return BAD_VALUE
        return 0 if sum(self[index, k] & 0xFF for k in range(1, new + 1)) <= 64 else MAPPED_TOO_LONG

    # PDO (CiA 301, 7.2.2)
    def _mapped(self, base: int, k: int) -> list[tuple[int, int]]:
        entries = (self[base + k, sub] for sub in range(1, self[base + k, 0] + 1))
        return [(entry >> 16, entry >> 8 & 0xFF) for entry in entries]

    def _receive(self, k: int, data: bytes) -> list[Frame]:
        needed = sum(self.objects[key].bits for key in self._mapped(0x1600, k)) // 8
        if len(data) < needed:
            self.refused.append(f"RPDO{k + 1} of {len(data)} bytes, {needed} mapped")
            return [self.emergency(0x8210, 0x11)]
        self._held[k] = data[:needed]
        if k == 0 and self[0x1400, 5]:
            self._uncommanded_ms = 0.0
        if self[0x1400 + k, 2] > 240:
            self._act(k)
        return []

    def _act(self, k: int) -> None:
        data, keys = self._held.pop(k), self._mapped(0x1600, k)
        for index, sub in keys:
            entry = self.objects[index, sub]
            entry.decode(data[: entry.bits // 8])
            data = data[entry.bits // 8 :]
        for key in keys:
            self.written(*key)

    def sync(self) -> list[Frame]:
        """Setpoints that waited come into effect, actual values are sampled and sent, the device lives one cycle."""
        sent = []
        if self.state == OPERATIONAL:
            self._syncs += 1
            for k in sorted(self._held):
                self._act(k)
            for k in range(4):
                cob, kind = self[0x1800 + k, 1], self[0x1800 + k, 2]
                if not cob & _INVALID and 1 <= kind <= 240 and self._syncs % kind == 0:
                    sent.append(Frame(cob & 0x7FF, b"".join(self.objects[key].encoded() for key in self._mapped(0x1A00, k))))
        self.behave()
        return sent


class Bus:
    """Devices on one bus whose other end is a UDP socket on this machine. `errors` counts what came and is no frame."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes, self.master = nodes, None
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)  # a device that is held up loses nothing
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.errors = 0

    def close(self) -> None:
        self.socket.close()

    def received(self) -> list[Frame]:
        """Everything that lies in the socket."""
        frames = []
        with contextlib.suppress(BlockingIOError):
            while True:
                raw, self.master = self.socket.recvfrom(64)
                if len(raw) == CAN_FRAME.size:
                    frames.append(Frame.unpacked(raw))
                else:
                    self.errors += 1
        return frames

    def wait(self, timeout_s: float) -> bool:
        return bool(select.select([self.socket], [], [], timeout_s)[0])

    def send(self, frames: list[Frame]) -> None:
        self.send_raw([frame.packed() for frame in frames])

    def send_raw(self, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            self.socket.sendto(datagram, self.master)

    def answers(self, frame: Frame) -> list[Frame]:
        """What the devices of this bus answer to one frame of the master."""
        if frame.identifier == SYNC:
            return [answer for node in self.nodes for answer in node.sync()]
        return [answer for node in self.nodes for answer in node.handle(frame)]
