"""Set-up of an EtherCAT segment: the session against a library made for the test (objects, registers, states), frames by a socket pair."""

import socket
import struct
import threading

import pytest

from drivers.drives.canopen_setup import DriveSetupError
from drivers.drives.cia402_ethercat import Cia402EthercatPort
from drivers.drives.ethercat_setup import INPUTS, OUTPUTS, EthercatSession
from drivers.raw_frames import ethercat_link

MODE, POSITION = 0x6060, 0x6064


class SdoError(Exception):
    def __init__(self, abort_code):
        super().__init__()
        self.abort_code, self.desc = abort_code, "object does not exist"


class Drive:
    """One slave: objects, registers, and a CiA 402 state machine driven by the control word of its frames."""

    def __init__(self, segment, place):
        self.segment, self.place = segment, place
        self.man, self.id = 0x9A, 0x30924
        self.state, self.al_status = 2, 0
        self.objects, self.log = {}, []
        self.registers = {0x400: struct.pack("<H", 2498), 0x004: b"\x03", 0x008: b"\x04\x00", 0x92C: struct.pack("<I", 0x80000010)}
        self.registers |= {0x010: struct.pack("<H", 0x1001 + place), 0x130: struct.pack("<H", 8)}
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

    def _fprd(self, address, size):
        return self.registers[address][:size].ljust(size, b"\0")

    def _fpwr(self, address, data):
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


class Segment:
    """Six drives, as library and as wire."""

    SdoError = SdoError

    def __init__(self, count=6):
        self.drives = [Drive(self, n) for n in range(count)]
        self.clocks, self.synced, self.states, self.closed, self.stubborn, self.refuses = False, [], [], False, None, None
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.near.setblocking(False)
        self.far.settimeout(0.05)
        self.short = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.answer)
        self.thread.start()

    def Master(self):  # noqa: N802
        return Master(self)

    def end(self):
        self.over.set()
        self.thread.join()
        self.near.close()
        self.far.close()

    def answer(self):
        while not self.over.is_set():
            try:
                f = bytearray(self.far.recv(2000))
            except (TimeoutError, OSError):
                continue
            f[6] |= 2
            lrw = 16 + 10
            for n, drive in enumerate(self.drives[:6]):
                f[lrw + 42 + 13 * n : lrw + 55 + 13 * n] = drive.cycle(bytes(f[lrw + 7 * n : lrw + 7 * n + 7]))
            at = lrw + 120
            struct.pack_into("<H", f, at, 18 - self.short)
            struct.pack_into("<QH", f, at + 12, 123_000, 6)
            struct.pack_into("<HH", f, at + 32, 8, 6)
            struct.pack_into("<HHHH", f, at + 46, 8, 0, 0, 1)
            self.far.send(bytes(f))


class Master:
    def __init__(self, segment):
        self.segment, self.slaves, self.state = segment, segment.drives, 2

    def open(self, interface):
        if interface == "gone":
            raise ConnectionError("could not open interface gone")

    def config_init(self):
        return len(self.slaves)

    def config_dc(self):
        self.segment.clocks = True

    def config_map(self):
        for n, drive in enumerate(self.slaves):
            drive.registers |= {0x810: b"\x00\x11", 0x818: b"\x00\x14"}
            out = struct.pack("<IHBBHBBB3x", 7 * n, 7, 0, 7, 0x1100, 0, 2, 1)
            into = struct.pack("<IHBBHBBB3x", 42 + 13 * n, 13, 0, 7, 0x1400, 0, 1, 1)
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


@pytest.fixture
def segment():
    made = []

    def make(**keys):
        made.append(Segment(**keys))
        return made[-1]

    yield make
    for one in made:
        one.end()


def opened(segment, **keys):
    """A port's session on this segment, opened; also in its failure it is closed by the caller."""
    port = Cia402EthercatPort(**{"interface": "eth1", "timeout_s": 1.0, "settle_s": 0.5, **keys})
    session = port.session_with(library=segment, open_socket=lambda _: (segment.near.dup(), bytes([2, 0, 0, 0, 0, 1])))
    assert isinstance(session, EthercatSession)
    port.open()
    return port


def test_way_up_and_down(segment):
    one = segment()
    port = opened(one)
    for drive in one.drives:
        # mapping as the frame has it, assigned; 0x60C2 for 1 kHz; mode 8; watchdog of 10 ms in units of 100 us
        assert [struct.unpack("<I", drive.objects[0x1600, k])[0] for k in (1, 2, 3)] == [0x60400010, 0x607A0020, 0x60600008]
        assert [struct.unpack("<I", drive.objects[0x1A00, k])[0] for k in range(1, 6)] == [
            0x60410010, 0x60640020, 0x606C0020, 0x60770010, 0x60610008,
        ]  # fmt: skip
        assert drive.objects[0x1C12, 1] == b"\x00\x16" and drive.objects[0x1C13, 1] == b"\x00\x1a"
        assert (drive.objects[MODE, 0], drive.objects[0x60C2, 1], drive.objects[0x60C2, 2]) == (b"\x08", b"\x01", b"\xfd")
        assert drive.registers[0x420] == struct.pack("<H", 100)
        assert [c for c in drive.controls if c] == [0x06, 0x07, 0x0F]
        assert drive.target == drive.position
    assert one.synced == [(n, True, 1_000_000) for n in range(6)]
    assert one.states == [8]
    assert port.axes.phase_ns == (123_000 - 500_000) % 1_000_000
    port.close()
    assert port.close_problems == [] and one.closed and one.states[-1] == 1
    assert all(drive.controls[-3:] == [0x07, 0x06, 0x00] for drive in one.drives)


def test_fault_is_reset_before_enabling(segment):
    one = segment()
    one.drives[2].word = 0x0218
    port = opened(one)
    assert 0x80 in one.drives[2].controls and one.drives[2].controls[-1] == 0x0F
    port.close()


@pytest.mark.parametrize(
    ("change", "keys", "words"),
    [
        (lambda s: None, {"interface": "gone"}, "EtherCAT on gone"),
        (lambda s: s.drives.pop(), {}, "5 slaves"),
        (lambda s: None, {"vendor_id": 0x9B}, "slave 0 on eth1: vendor_id is 0x9A instead of 0x9B"),
        (lambda s: None, {"product_code": 7}, "product_code is 0x30924"),
        (lambda s: setattr(s.drives[3], "state", 1), {}, "slave 3 on eth1: does not reach PREOP"),
        (lambda s: s.drives[1].registers.update({0x008: b"\0\0"}), {}, "slave 1 on eth1: has no distributed clock"),
        (lambda s: setattr(s, "short", 3), {}, "working counter 15 of 18"),
        (lambda s: s.drives[5].registers.update({0x92C: struct.pack("<I", 5000)}), {}, "largest difference 5000 ns"),
        (lambda s: setattr(s, "refuses", 4), {}, "slave 4 on eth1: does not reach OP: state 20, AL status code 0x001B"),
        (lambda s: setattr(s, "stubborn", 2), {}, "slave 2 on eth1: state 'ready to switch on' was not reached"),
        (lambda s: setattr(s.drives[0], "word", 0x0050), {}, "slave 0 on eth1 is in local control"),
    ],
)
def test_what_is_wrong_is_said_and_all_is_left_safe(segment, change, keys, words):
    one = segment()
    if "local" in words:
        one.stubborn = 0
    change(one)
    with pytest.raises(DriveSetupError, match=words):
        opened(one, **keys)
    assert one.closed or keys.get("interface") == "gone"
    assert all(0x0F not in drive.controls for drive in one.drives)


def test_a_slave_that_keeps_its_own_mapping_is_refused(segment):
    one = segment()
    kept = one.drives[4].sdo_write
    one.drives[4].sdo_write = lambda index, sub, data: kept(index, sub, b"\x20\x00\x6c\x60" if (index, sub) == (0x1A00, 2) else data)
    with pytest.raises(DriveSetupError, match="slave 4 on eth1: keeps another mapping in 0x1A00: 0x60410010, 0x606C0020"):
        opened(one)


def test_process_data_are_as_long_as_the_frame_says():
    assert sum(bits for *_, bits in OUTPUTS) == 7 * 8 and sum(bits for *_, bits in INPUTS) == 13 * 8


def test_findings_name_what_is_missing():
    (found,) = ethercat_link.findings("nobody0")
    assert found[0] == "fail" and "there is no such interface" in found[2]
    levels = {item: level for level, item, *_ in ethercat_link.findings("lo")}
    assert levels["EtherCAT lo link"] in ("info", "fail") and "EtherCAT lo raw sockets" in levels


def test_an_interface_that_is_not_there_is_said():
    with pytest.raises(ConnectionError, match="EtherCAT on nobody0: (there is no such interface|no right to raw sockets)"):
        ethercat_link.open_ethercat("nobody0")
