"""Six EtherCAT slaves without a wire: what `pysoem` would say of them (objects, registers, states), and their answers to frames on a socket
pair. A drive goes through the states of CiA 402 as the control word of its frames asks."""

import contextlib
import socket
import struct
import threading
from types import SimpleNamespace

LOGICAL = 0x10000  # address at which the process image begins


class SdoError(Exception):
    def __init__(self, abort_code):
        super().__init__()
        self.abort_code, self.desc = abort_code, "object does not exist"


class Drive:
    """One slave: objects, registers, and a CiA 402 state machine driven by the control word of its frames."""

    def __init__(self, segment, place):
        self.segment, self.place = segment, place
        self.man, self.id = 0x9A, 0x30924
        self.state, self.al_status, self.stuck = 1, 0, False
        self.objects, self.log = {}, []
        self.registers = {0x400: struct.pack("<H", 2498), 0x004: b"\x03", 0x008: b"\x0c\x00", 0x92C: struct.pack("<I", 0x80000010)}
        self.registers |= {0x010: struct.pack("<H", 0x1001 + place), 0x012: struct.pack("<H", 40 + place), 0x130: struct.pack("<H", 8)}
        self.word, self.position, self.controls = 0x0250, 1000 * (place + 1), []
        self.target = None

    def sdo_read(self, index, sub):
        self.log.append(("read", index, sub))
        if (index, sub) not in self.objects:
            raise SdoError(0x06020000)
        return self.objects[index, sub]

    def sdo_write(self, index, sub, data):
        assert self.state == 2, "SDOs of the set-up belong to PREOP"
        self.log.append(("write", index, sub, data))
        self.objects[index, sub] = data

    def _fprd(self, address, size, timeout_us):
        self.segment.patience_us.add(timeout_us)
        return self.registers[address][:size].ljust(size, b"\0")

    def _fpwr(self, address, data, timeout_us):
        self.registers[address] = bytes(data)

    def dc_sync(self, act, cycle_ns):
        assert self.segment.clocks, "SYNC0 before the clocks' offsets exist"
        self.registers[0x990] = struct.pack("<Q", 100_000_000_000 + 123_000)
        self.segment.synced.append((self.place, act, cycle_ns))

    def cycle(self, outputs):
        control, self.target, self.mode = struct.unpack("<HiB", outputs)
        if not self.controls or self.controls[-1] != control:
            self.controls.append(control)
        if control & 0x80:
            self.word = 0x0250
        elif not self.word & 0x08 and not self.segment.stubborn == self.place:
            self.word = {0x06: 0x0231, 0x07: 0x0233, 0x0F: 0x1237}.get(control, 0x0250)
        return struct.pack("<Hiihb", self.word, self.position, 0, 0, 8)


class Terminal(Drive):
    """Eight digital outputs behind the drives, process data only: no mailbox, so they are at SM0, and no clock."""

    def __init__(self, segment, place):
        super().__init__(segment, place)
        self.registers |= {0x008: b"\x00\x00"}
        self.outputs = []

    def sdo_read(self, index, sub):
        raise SdoError(0x06010000)

    sdo_write = sdo_read


class Segment:
    """Six drives, and terminals behind them, as library and as wire."""

    SdoError = SdoError
    settings = SimpleNamespace(timeouts=SimpleNamespace(ret=2000, safe=20000, eeprom=20000, tx_mailbox=20000, rx_mailbox=700000))

    def __init__(self, count=6):
        self.drives = [Drive(self, n) for n in range(count)]
        self.patience_us = set()  # that the reads of registers were given
        self.clocks, self.synced, self.states, self.closed, self.stubborn, self.refuses = False, [], [], False, None, None
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.near.setblocking(False)
        self.far.settimeout(0.02)
        self.short = self.answered_frames = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.answer)
        self.thread.start()

    def Master(self):  # noqa: N802
        return Master(self)

    def open_socket(self, interface):
        """Stands for drivers.raw_frames.ethercat_link.open_ethercat."""
        return self.near.dup(), bytes([2, 0, 0, 0, 0, 1])

    def let_go(self):
        """Frames are no longer answered by themselves."""
        self.over.set()
        self.thread.join()
        self.far.setblocking(False)

    def end(self):
        self.let_go()
        self.near.close()
        self.far.close()

    def answer(self):
        while not self.over.is_set():
            with contextlib.suppress(TimeoutError, OSError):
                self.far.send(self.answered(self.far.recv(2000)))
                self.answered_frames += 1

    def answered(self, frame):
        """A frame as it comes back from the last slave: outputs 7 bytes each, then inputs 13 bytes each, then outputs of the terminals."""
        f = bytearray(frame)
        f[6] |= 2
        lrw = 16 + 10
        for n, drive in enumerate(self.drives[:6]):
            f[lrw + 42 + 13 * n : lrw + 55 + 13 * n] = drive.cycle(bytes(f[lrw + 7 * n : lrw + 7 * n + 7]))
        for n, terminal in enumerate(terminals := self.drives[6:]):
            terminal.outputs.append(f[lrw + 120 + n])
        at = lrw + 120 + len(terminals)
        struct.pack_into("<H", f, at, 18 + 2 * len(terminals) - self.short)
        struct.pack_into("<QH", f, at + 12, 123_000, 6)
        struct.pack_into("<HH", f, at + 32, 8, 6 + len(terminals))
        struct.pack_into("<HHHH", f, at + 46, 8, 0, 0, 1)
        return bytes(f)


class Master:
    def __init__(self, segment):
        self.segment, self.slaves, self.state = segment, segment.drives, 2

    def open(self, interface):
        if interface == "gone":
            raise ConnectionError("could not open interface gone")

    def config_init(self):
        for drive in self.slaves:
            drive.state = 1 if drive.stuck else 2
        return len(self.slaves)

    def config_dc(self):
        self.segment.clocks = True

    def config_map(self):
        for n, drive in enumerate(self.slaves):
            if isinstance(drive, Terminal):
                drive.registers |= {0x800: b"\x00\x0f", 0x808: b"", 0x810: b"", 0x818: b""}
                drive.registers |= {0x600: struct.pack("<IHBBHBBB3x", LOGICAL + 114 + n, 1, 0, 7, 0x0F00, 0, 2, 1), 0x610: b"", 0x620: b""}
                drive.state = 4
                continue
            drive.registers |= {0x800: b"\x00\x10", 0x808: b"\x80\x10", 0x810: b"\x00\x11", 0x818: b"\x00\x14"}
            out = struct.pack("<IHBBHBBB3x", LOGICAL + 7 * n, 7, 0, 7, 0x1100, 0, 2, 1)
            into = struct.pack("<IHBBHBBB3x", LOGICAL + 42 + 13 * n, 13, 0, 7, 0x1400, 0, 1, 1)
            drive.registers |= {0x600: out, 0x610: into, 0x620: struct.pack("<IHBBHBBB3x", 900, 1, 0, 0, 0x80D, 0, 1, 1)}
            drive.state = 4

    def write_state(self):
        self.segment.states.append(self.state)
        for drive in self.slaves:
            if self.segment.refuses == drive.place and self.state == 8:
                drive.state, drive.al_status = 0x14, 0x1B
            else:
                drive.state = self.state

    def read_state(self):
        pass

    def close(self):
        self.segment.closed = True
