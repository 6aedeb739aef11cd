"""What pysoem does for the set-up of an EtherCAT segment, on a raw socket of the world: pysoem has a socket and a clock of its own.

Names, arguments and errors are those of pysoem that `drivers.drives.ethercat_setup` uses. Registers: ETG.1000.
"""

import struct
from types import SimpleNamespace

from drivers.simulated import world
from rt_kernels.doors import socket, time

ETHERTYPE = 0x88A4
APWR, FPRD, FPWR, BRD, BWR = 2, 4, 5, 7, 8
INIT, PREOP, SAFEOP, ACKNOWLEDGE = 1, 2, 4, 0x10
CLOCK = 0x04  # of register 8
MAILBOX_FULL = 0x08
SDO_WRITE, SDO_READ, SDO_EXPEDITED = 0x23, 0x40, 0x02  # first byte of a request or an answer, CiA 301 7.2.4.3
OURS_BELOW = 0x80  # indices of frames
SYNC_AHEAD_NS = 100_000_000
settings = SimpleNamespace(timeouts=SimpleNamespace(ret=2000, safe=20000, eeprom=20000, tx_mailbox=20000, rx_mailbox=700000))


class WkcError(Exception):
    """No slave took it."""


class PacketError(Exception):
    """A frame did not come back."""


class MailboxError(Exception):
    """A mailbox has no answer, or another than asked for."""


class SdoError(Exception):
    """A slave refuses an object."""

    def __init__(self, abort_code: int):
        super().__init__()
        self.abort_code, self.desc = abort_code, f"object refused (0x{abort_code:08X})"


class Slave:
    """One place on the line, counted from 0."""

    def __init__(self, master: "Master", place: int):
        self._master, self._station, self._mailbox_counter = master, 0x1001 + place, 0
        self.state, self.al_status, self.process_data = 0, 0, (0, 0)
        master.ask(APWR, -place, 0x010, struct.pack("<H", self._station))
        for address, size in ((0x600, 64), (0x800, 32), (0x980, 2)):
            self._fpwr(address, bytes(size))
        self.man, self.id = (int.from_bytes(self._sii(word)[:4], "little") for word in (8, 10))
        boxes = struct.unpack("<4H", self._sii(24))
        self._out, self._out_bytes, self._in, self._in_bytes = boxes
        self._managers = [self._sii(66 + 4 * k) for k in range(4)]
        for k in range(2):
            self._fpwr(0x800 + 8 * k, self._managers[k][:7] + b"\0")

    def _fprd(self, address: int, size: int, timeout_us: int = 0) -> bytes:
        data, counter = self._master.ask(FPRD, self._station, address, bytes(size), timeout_us)
        if counter != 1:
            raise WkcError
        return data

    def _fpwr(self, address: int, data: bytes, timeout_us: int = 0) -> None:
        if self._master.ask(FPWR, self._station, address, data, timeout_us)[1] != 1:
            raise WkcError

    def _sii(self, word: int) -> bytes:
        self._fpwr(0x502, struct.pack("<HI", 0x0100, word))
        return self._fprd(0x508, 8)

    def look(self) -> None:
        """AL state and status code; what does not answer has none."""
        try:
            self.state, self.al_status = struct.unpack("<HxxH", self._fprd(0x130, 6))
        except (WkcError, PacketError):
            self.state, self.al_status = 0, 0

    def _sdo(self, request: bytes) -> bytes:
        self._mailbox_counter = self._mailbox_counter % 7 + 1
        box = struct.pack("<HHBBH", len(request) + 2, 0, 0, 0x03 | self._mailbox_counter << 4, 0x2000) + request
        self._fpwr(self._out, box.ljust(self._out_bytes, b"\0"))
        end = time.monotonic() + 1e-6 * settings.timeouts.rx_mailbox
        while not self._fprd(0x80D, 1)[0] & MAILBOX_FULL:
            if time.monotonic() > end:
                raise MailboxError
            time.sleep(0.0002)
        box = self._fprd(self._in, self._in_bytes)
        answer = box[8 : 6 + int.from_bytes(box[:2], "little")]
        if answer[:1] == b"\x80":
            raise SdoError(int.from_bytes(answer[4:8], "little"))
        if box[5] & 0x0F != 3 or answer[1:4] != request[1:4]:
            raise MailboxError
        return answer

    def sdo_read(self, index: int, sub: int) -> bytes:
        """Value of an object of at most four bytes, or of one answer."""
        answer = self._sdo(struct.pack("<BHBI", SDO_READ, index, sub, 0))
        if answer[0] & SDO_EXPEDITED:
            return answer[4 : 8 - (answer[0] >> 2 & 3)]
        return answer[8 : 8 + int.from_bytes(answer[4:8], "little")]

    def sdo_write(self, index: int, sub: int, data: bytes) -> None:
        """Writes an object of at most four bytes."""
        self._sdo(struct.pack("<BHB", SDO_WRITE + 4 * (4 - len(data)), index, sub) + data.ljust(4, b"\0"))

    @property
    def has_clock(self) -> bool:
        """Whether it has a distributed clock."""
        return bool(self._fprd(0x008, 1)[0] & CLOCK)

    def dc_sync(self, act: bool, cycle_ns: int) -> None:
        """SYNC0 from a whole number of cycles on."""
        self._fpwr(0x980, b"\0\0")
        now = int.from_bytes(self._fprd(0x910, 8), "little")
        begin = (now + SYNC_AHEAD_NS) // cycle_ns * cycle_ns + cycle_ns
        self._fpwr(0x990, struct.pack("<Q", begin))
        self._fpwr(0x9A0, struct.pack("<I", cycle_ns))
        self._fpwr(0x981, b"\3" if act else b"\0")

    def pdo_bytes(self, assignment: int) -> int:
        """Bytes of the process data that are assigned."""
        bits = 0
        for k in range(self.sdo_read(assignment, 0)[0]):
            mapping = int.from_bytes(self.sdo_read(assignment, k + 1), "little")
            bits += sum(self.sdo_read(mapping, j + 1)[0] for j in range(self.sdo_read(mapping, 0)[0]))
        return bits // 8

    def map(self, number: int, logical: int, size: int) -> None:
        """Its outputs (0) or inputs (1), `size` bytes, come to this place of the image."""
        start, _, control = struct.unpack("<HHB", self._managers[2 + number][:5])
        self._fpwr(0x810 + 8 * number, struct.pack("<HHBBBB", start, size, control, 0, 1, 0))
        self._fpwr(0x600 + 16 * number, struct.pack("<IHBBHBBB3x", logical, size, 0, 7, start, 0, 2 - number, 1))


class Master:
    """The set-up's end of the line. state: to be written to all slaves."""

    def __init__(self) -> None:
        self.slaves: list[Slave] = []
        self.state, self.always_release_gil, self._index = INIT, False, 0

    def open(self, interface: str) -> None:
        """Raises ConnectionError without such an interface."""
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
            self._socket.bind((interface, ETHERTYPE))
        except OSError as error:
            raise ConnectionError(f"could not open interface {interface}") from error

    def close(self) -> None:
        """The segment stays as it is."""
        self._socket.close()

    def ask(self, command: int, position: int, address: int, data: bytes, timeout_us: int = 0) -> tuple[bytes, int]:
        """Data and working counter of one datagram. Raises PacketError when it does not come back."""
        self._index = (self._index + 1) % OURS_BELOW
        head = struct.pack("<BBHHHH", command, self._index, position & 0xFFFF, address, len(data), 0)
        frame = b"\xff" * 6 + bytes(6) + struct.pack(">H", ETHERTYPE) + struct.pack("<H", 0x1000 | len(head) + len(data) + 2)
        end = time.monotonic() + 1e-6 * max(timeout_us, settings.timeouts.ret)
        self._empty()
        while (now := time.monotonic()) < end:
            self._socket.send((frame + head + data + b"\0\0").ljust(60, b"\0"))
            again = min(end, now + 1e-6 * settings.timeouts.ret)
            while came := self._came_until(again):
                if len(came) >= 28 + len(data) and came[16:18] == head[:2] and came[20:23] == head[4:7]:
                    return came[26 : 26 + len(data)], int.from_bytes(came[26 + len(data) : 28 + len(data)], "little")
        raise PacketError

    def _came_until(self, end: float) -> bytes:
        """The next frame, empty when none has come by then."""
        self._socket.settimeout(max(0.0, end - time.monotonic()))
        try:
            return self._socket.recv(2000)
        except (BlockingIOError, TimeoutError):
            return b""

    def _empty(self) -> None:
        """What came since the last question is the process data's."""
        while self._came_until(0.0):
            pass

    def config_init(self) -> int:
        """Scans the line and asks for PREOP; how many slaves there are."""
        try:
            count = self.ask(BRD, 0, 0x000, b"\0")[1]
        except PacketError:
            return 0
        self.state = INIT | ACKNOWLEDGE
        self.write_state()
        self.slaves = [Slave(self, place) for place in range(count)]
        self.state = PREOP
        self.write_state()
        return count

    def config_dc(self) -> None:
        """The clocks of all slaves show the time of the first that has one, less what a frame takes to come there."""
        clocks = [slave for slave in self.slaves if slave.has_clock]
        self.ask(BWR, 0, 0x900, bytes(4))
        local = [int.from_bytes(slave._fprd(0x918, 8), "little") for slave in clocks]
        ports = [struct.unpack("<2I", slave._fprd(0x900, 8)) for slave in clocks]
        around = [(back - out) & 0xFFFFFFFF for out, back in ports]
        for slave, own, loop in zip(clocks, local, around, strict=True):
            delay = (around[0] - loop) // 2
            slave._fpwr(0x920, struct.pack("<q", local[0] + delay - own))
            slave._fpwr(0x928, struct.pack("<I", delay))

    def config_map(self) -> None:
        """Outputs of all slaves, then inputs of all, from address 0; asks for SAFEOP."""
        sizes = [(slave.pdo_bytes(0x1C12), slave.pdo_bytes(0x1C13)) for slave in self.slaves]
        at, places = 0, ([], [])  # type: int, tuple[list[int], list[int]]
        for number in range(2):
            for slave, size in zip(self.slaves, sizes, strict=True):
                places[number].append(at)
                if size[number]:
                    slave.map(number, at, size[number])
                at += size[number]
        counter = sum(2 * (out > 0) + (into > 0) for out, into in sizes)
        world.watch_axes(at, counter, *(of_all[:6] for of_all in places))
        self.state = SAFEOP
        self.write_state()

    def write_state(self) -> None:
        """Asks all slaves for `state`."""
        self.ask(BWR, 0, 0x120, struct.pack("<H", self.state))

    def read_state(self) -> None:
        """How far each slave is."""
        for slave in self.slaves:
            slave.look()
