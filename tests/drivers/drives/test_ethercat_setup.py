"""Set-up of an EtherCAT segment: the session against a library made for the test (objects, registers, states), frames by a socket pair."""

import importlib.metadata
import itertools
import os
import struct
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from drivers.drives import ethercat_setup
from drivers.drives.canopen_setup import DriveSetupError
from drivers.drives.cia402_ethercat import Cia402EthercatPort
from drivers.drives.ethercat_setup import INPUTS, OUTPUTS, EthercatNode, EthercatSession
from drivers.identity import WrongDeviceError
from drivers.raw_frames import ethercat_link
from hil_server.host.realtime_host import fifo_refusal
from tests.drivers.peers.ethercat_library import Segment, Terminal
from tests.drivers.plain_stand import SleptTime, placed, until

MODE = 0x6060


@pytest.fixture
def segment():
    made = []

    def make():
        made.append(Segment())
        return made[-1]

    yield make
    for one in made:
        one.end()


def opened(segment, **keys):
    """A port's session on this segment, its axes enabled; closed when they are not."""
    port = Cia402EthercatPort(**{"interface": "eth1", "timeout_s": 1.0, "settle_s": 0.5, **keys})
    segment.session = port.session_with(library=segment, open_socket=segment.open_socket)
    assert isinstance(segment.session, EthercatSession)
    port.open()
    assert all(not any(drive.controls) for drive in segment.drives), "nothing is enabled before the loop is about to begin"
    try:
        port.begin()
    except DriveSetupError:
        port.close()
        raise
    return port


def test_way_up_and_down(segment):
    one = segment()
    one.drives[0].registers[0x92C] = struct.pack("<I", 1_780_617_852)  # no one tells the reference the time
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
        assert drive.objects[0x6007, 0] == b"\x01\x00" and drive.objects[0x605E, 0] == b"\x02\x00"
        assert [c for c in drive.controls if c] == [0x06, 0x07, 0x0F]
        assert drive.target == drive.position
    assert one.synced == [(n, True, 1_000_000) for n in range(6)]
    assert one.states == [8]
    assert port.axes.phase_ns == (123_000 - 500_000) % 1_000_000
    assert one.session.errors == (one.SdoError,) and one.patience_us == {1_000_000}
    port.close()
    assert port.close_problems == [] and one.closed and one.states == [8, 4, 2, 1]
    assert all(drive.controls[-3:] == [0x07, 0x06, 0x00] for drive in one.drives)


def test_the_keeper_runs_on_the_loops_core_below_its_priority(segment):
    core = max(os.sched_getaffinity(0))
    port = opened(segment(), loop_core=core)
    priority = ethercat_setup.KEEPER_PRIORITY
    assert placed("drives keeper") == ({core}, 0 if fifo_refusal(priority) else priority)
    port.close()


def test_the_watchdog_is_an_output_of_a_slave_that_is_no_axis(segment, sample):
    one = segment()
    one.drives.append(Terminal(one, 6))
    port = opened(one, slaves=7, watchdog_slave=6, watchdog_outputs=[4, 5])
    assert set(one.drives[6].outputs) == {0}  # the keeper's frames say nothing
    aux = np.zeros(len(port.AUX))
    until(lambda: port.in_loop, lambda: port.read(sample, aux))
    for watchdog, outputs in ((1, 0b110000), (2, 0b100000), (3, 0b110000), (3, 0b010000), (3, 0b010000)):
        sample["watchdog"] = watchdog
        port.write(sample, aux)
        assert port.axes.frame()[26 + 120] == outputs
    port.close()
    assert one.closed and one.drives[6].outputs[-1] == 0


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"slaves": 7, "watchdog_slave": 6, "watchdog_outputs": [7, 8]}, r"slave 6 on eth1: has 8 digital outputs in one run, .* number 8"),
        ({"slaves": 7, "watchdog_slave": 7, "watchdog_outputs": [0, 1]}, r"7 slaves answer, 7 are expected .* the watchdog at 7"),
    ],
)
def test_a_watchdog_that_the_segment_does_not_have_is_refused(segment, keys, words):
    one = segment()
    one.drives.append(Terminal(one, 6))
    with pytest.raises(DriveSetupError, match=words):
        opened(one, **keys)
    assert one.closed and all(0x0F not in drive.controls for drive in one.drives)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"watchdog_slave": 6}, "watchdog_slave = 6, watchdog_outputs = .*: must both be given"),
        ({"watchdog_slave": 3, "watchdog_outputs": [0, 1]}, "watchdog_slave = 3: is an axis"),
    ],
)
def test_a_watchdog_that_cannot_be_is_refused(keys, words):
    with pytest.raises(ValueError, match=words):
        Cia402EthercatPort(interface="eth1", **keys)


def test_fault_is_reset_before_enabling(segment):
    one = segment()
    one.drives[2].word = 0x0218
    port = opened(one)
    assert 0x80 in one.drives[2].controls and one.drives[2].controls[-1] == 0x0F
    port.close()


class PacketError(Exception):
    """By its name one of the library's."""


def fmmu(logical, size, physical, kind, active=1):
    return struct.pack("<IHBBHBBB3x", logical, size, 0, 7, physical, 0, kind, active)


def says(drive, registers):
    """The drive says so of these registers, whatever is written there."""
    read = drive._fprd
    drive._fprd = lambda address, size, timeout_us: (
        registers[address].ljust(size, b"\0") if address in registers else read(address, size, timeout_us)
    )


def narrow_terminal(segment):
    """Before the drives, with a clock of 32 bits: the reference of all."""
    one = Terminal(segment, 0)
    one.registers |= {0x008: b"\x04\0"}
    return one


@pytest.mark.parametrize(
    ("change", "keys", "words"),
    [
        (lambda s: None, {"interface": "gone"}, "EtherCAT on gone"),
        (lambda s: s.drives.clear(), {}, "no slave answers"),
        (lambda s: setattr(s.drives[0], "_fprd", Mock(side_effect=PacketError)), {}, "on eth1: set-up: PacketError: are frames lost"),
        (lambda s: s.drives.__delitem__(slice(1, 6)), {}, "1 slaves answer, 6 are expected"),
        (lambda s: s.drives.pop(), {}, "5 slaves answer, 6 are expected"),
        (lambda s: s.drives.append(type(s.drives[0])(s, 6)), {}, "7 slaves answer, 6 are expected .* 6 vendor 0x9A product 0x30924"),
        (lambda s: setattr(s.drives[3], "stuck", True), {}, "slave 3 on eth1: does not reach PREOP"),
        (lambda s: s.drives[1].registers.update({0x008: b"\0\0"}), {}, "slave 1 on eth1: has no distributed clock"),
        (lambda s: s.drives[1].registers.update({0x008: b"\x04\0"}), {}, "slave 1 on eth1: its distributed clock has 32 bits"),
        (lambda s: s.drives.insert(0, narrow_terminal(s)), {"slaves": 7, "axis_slave": range(1, 7)}, "slave 0 .* clock has 32 bits"),
        (lambda s: says(s.drives[2], {0x420: b"\x01\0"}), {}, r"slave 2 on eth1: watchdog .* reads back 1 instead of 100"),
        (lambda s: says(s.drives[3], {0x600: fmmu(0x10015, 8, 0x1100, 2)}), {}, r"slave 3 .* outputs are mapped as \[\(65557, 8\)\]"),
        (lambda s: says(s.drives[3], {0x600: bytes(16)}), {}, r"slave 3 on eth1: its outputs are mapped as \[\] instead of one run of 7"),
        (lambda s: says(s.drives[3], {0x620: fmmu(0x10100, 7, 0x1100, 2)}), {}, r"outputs are mapped as \[\(65557, 7\), \(65792, 7\)\]"),
        (lambda s: says(s.drives[5], {0x990: bytes(8)}), {}, r"SYNC0 does not come at one time in all drives: \[0, 123000\] ns"),
        (lambda s: setattr(s, "short", 3), {}, "working counter 15 of 18"),
        (lambda s: s.drives[5].registers.update({0x92C: struct.pack("<I", 5000)}), {}, "largest difference 5000 ns"),
        (lambda s: setattr(s, "refuses", 4), {}, "slave 4 on eth1: does not reach OP: state 20, AL status code 0x001B"),
        (lambda s: setattr(s, "stubborn", 2), {}, "slave 2 on eth1: state 'ready to switch on' was not reached"),
        (lambda s: setattr(s.drives[0], "word", 0x0050), {}, "slave 0 on eth1 is in local control"),
    ],
)
def test_what_is_wrong_is_reported_and_all_is_left_safe(segment, change, keys, words):
    one = segment()
    if "local" in words:
        one.stubborn = 0
    change(one)
    with pytest.raises(DriveSetupError, match=words):
        opened(one, **keys)
    assert one.closed or keys.get("interface") == "gone"
    assert all(0x0F not in drive.controls for drive in one.drives)


def test_a_slave_that_left_op_is_led_back_and_what_cannot_be_is_named(segment):
    one = segment()
    port = opened(one)
    drive, asked = one.drives[2], []
    write = drive._fpwr

    def obeys(address, data, timeout_us):
        asked.append((address, *struct.unpack("<H", data)))
        drive.registers[0x130] = struct.pack("<H", asked[-1][1] & ~0x10)

    drive.registers[0x130], drive._fpwr = struct.pack("<HHH", 0x14, 0, 0x1B), obeys
    port.recover(lambda: 1.0)
    assert asked == [(0x120, 0x14), (0x120, 8)] and all(0x120 not in other.registers for other in one.drives)
    drive.registers[0x130] = struct.pack("<H", 2)
    with pytest.raises(DriveSetupError, match=r"slave 2 on eth1: has lost its set-up \(state 2\)"):
        port.recover(lambda: 1.0)
    drive.registers[0x130], drive._fpwr = struct.pack("<HHH", 0x14, 0, 0x1B), write
    left = itertools.chain([1.0] * 20, itertools.repeat(0.0))
    with pytest.raises(DriveSetupError, match="slave 2 on eth1: does not return to state 4: state 20, AL status code 0x001B"):
        port.recover(lambda: next(left))
    port.close()


def test_clocks_that_settle_late_are_waited_for(segment):
    one = segment()
    apart, read = iter([5000, 3000, 1001]), one.drives[4]._fprd
    one.drives[4]._fprd = lambda address, size, timeout_us: (
        struct.pack("<I", next(apart, 1000)) if address == 0x92C else read(address, size, timeout_us)
    )
    opened(one, settle_s=60.0).close()
    assert list(apart) == []


THERE = [{"vendor": 0x9A, "product": 0x30924, "revision": 1, "serial": 0, "alias": 40 + place} for place in range(6)]


def known(one):
    """The slaves say who they are, without a serial number."""
    for drive in one.drives:
        drive.objects |= {(0x1018, sub): struct.pack("<I", value) for sub, value in ((1, 0x9A), (2, 0x30924), (3, 1), (4, 0))}
    return one


@pytest.mark.parametrize(("first", "second"), [(i, j) for i in range(6) for j in range(i)])
def test_two_slaves_that_are_exchanged_are_named(segment, first, second):
    one = known(segment())
    one.drives[first], one.drives[second] = one.drives[second], one.drives[first]
    with pytest.raises(WrongDeviceError, match=rf"slave {second} on eth1: identity\[{second}\]\.alias is {40 + first} at the device, "
                       rf"{40 + second} in the stand file; it is the one of identity\[{first}\]"):  # fmt: skip
        opened(one, identity=THERE)
    assert one.closed and all(0x0F not in drive.controls for drive in one.drives)


@pytest.mark.parametrize(("key", "found"), [("vendor", 0x9A), ("product", 0x30924), ("revision", 1)])
def test_a_slave_of_another_make_is_refused(segment, key, found):
    one = known(segment())
    with pytest.raises(WrongDeviceError, match=rf"slave 3 on eth1: identity\[3\]\.{key} is {found} at the device, 7 in the stand file"):
        opened(one, identity=[row | ({key: 7} if place == 3 else {}) for place, row in enumerate(THERE)])
    assert one.closed and all(0x0F not in drive.controls for drive in one.drives)


def test_the_slaves_that_the_stand_file_says_are_taken(segment):
    port = opened(known(segment()), identity=THERE)
    assert port.identities == THERE
    port.close()


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


def test_an_interface_that_is_not_there_is_reported():
    with pytest.raises(ConnectionError, match="EtherCAT on nobody0: (there is no such interface|no right to raw sockets)"):
        ethercat_link.open_ethercat("nobody0")


def test_check_says_link_rights_and_library(monkeypatch, capsys):
    """The lines of `hil-server check` for this stand; what is missing makes its exit code 1."""
    from hil_server.config import load_test
    from hil_server.verbs.check import _buses

    config, summary = load_test(None, ["test.stand=stands/ethercat_stand.toml", "stand.drives.interface=nobody0"]), {"exit_code": 0}
    (row,) = _buses(config, summary)
    assert row["fits"] and summary["exit_code"] == 1
    reported = capsys.readouterr().out
    assert "fail EtherCAT nobody0: there is no such interface" in reported and "EtherCAT set-up: pysoem" in reported
    nobody_has_it = Mock(side_effect=importlib.metadata.PackageNotFoundError)
    monkeypatch.setattr(importlib.metadata, "version", nobody_has_it)
    assert ethercat_setup.library_findings() == [
        ("fail", "EtherCAT set-up", "pysoem is not installed", "pip install 'hil-server[ethercat]'")
    ]


class RefusalError(Exception):
    abort_code = 0x06020000


class OneSlave:
    """A slave that refuses every object with one abort code, and has registers."""

    def __init__(self, abort_code=0x06020000, registers=None):
        self.abort_code, self.registers = abort_code, registers or {}

    def sdo_write(self, index, sub, data):
        error = RefusalError(f"0x{self.abort_code:08X}")
        error.abort_code = self.abort_code
        raise error

    def _fprd(self, address, size, timeout_us):
        return self.registers.get(address, b"").ljust(size, b"\0")


def node_of(slave):
    return EthercatNode(SimpleNamespace(errors=(RefusalError,), timeout_us=1000, interface="eth1"), 0, 0, slave)


@pytest.mark.parametrize(("abort_code", "optional", "left"), [
    (0x06020000, True, True), (0x06090011, True, True), (0x06020000, False, False), (0x08000022, True, False),
])  # fmt: skip
def test_only_what_may_be_missing_and_is_missing_is_left(abort_code, optional, left):
    node = node_of(OneSlave(abort_code))
    if left:
        assert node.write(0x6007, 0, -2, 1, "abort connection option", optional=optional) is False
    else:
        with pytest.raises(DriveSetupError, match=rf"writing abort connection option .* := 1 was refused: abort 0x{abort_code:08X}$"):
            node.write(0x6007, 0, -2, 1, "abort connection option", optional=optional)


def test_an_object_that_is_too_short_is_refused_and_a_longer_one_is_read():
    def node(data):
        return node_of(SimpleNamespace(sdo_read=lambda index, sub: data))

    assert node(b"\xfe\xff\xff\xff\x00").read(0x607D, 1, -4, "lowest position") == -2
    with pytest.raises(DriveSetupError, match=r"slave 0 on eth1: lowest position \(0x607D:1\) has 3 bytes instead of 4"):
        node(b"\xfe\xff\xff").read(0x607D, 1, -4, "lowest position")


def test_an_error_without_an_abort_code_is_named():
    class LostError(RefusalError):
        abort_code = None

    node = node_of(SimpleNamespace(sdo_read=Mock(side_effect=LostError("no answer"))))
    with pytest.raises(DriveSetupError, match="failed: LostError no answer"):
        node.read(0x607D, 1, -4, "lowest position")


def test_entries_of_a_mapping_have_index_sub_index_and_bits():
    objects = {}
    slave = SimpleNamespace(sdo_write=lambda index, sub, data: objects.__setitem__((index, sub), data), sdo_read=lambda *at: objects[at])
    node_of(slave).set_pdo(0x1601, 0x1C12, [(0x60FE, 1, 32), (0x607A, 0, 32)])
    assert [struct.unpack("<I", objects[0x1601, place])[0] for place in (1, 2)] == [0x60FE0120, 0x607A0020]


def test_frames_run_as_long_as_their_thread_does(monkeypatch):
    session, _ = session_in(monkeypatch)
    assert not session.running
    over = threading.Event()
    session._keeper = threading.Thread(target=over.wait)
    session._keeper.start()
    assert session.running
    over.set()
    session._keeper.join()
    assert not session.running


def test_mapped_objects_are_read_from_the_frames_once_they_run():
    session, waited = node_of(None)._session, []
    session.running, session.await_frames = True, waited.append
    session.axes = SimpleNamespace(inputs=lambda axis: {3: (0x1237, -5, 8)}[axis])
    node = EthercatNode(session, 3, 0, SimpleNamespace(sdo_read=lambda index, sub: b"\x07\0\0\0"))
    objects = (0x6041, 0x6064, 0x6061, 0x6065)
    assert [node.read(index, 0, 4, "") for index in objects] == [0x1237, -5, 8, 7] and waited == [1, 1, 1]
    session.running = False
    assert [node.read(index, 0, 4, "") for index in objects] == [7] * 4


def test_an_fmmu_that_is_off_maps_nothing():
    registers = {0x004: b"\x03", 0x810: b"\x00\x11"}
    registers |= {0x600 + 16 * k: fmmu(0x100 * (k + 1), 11, 0x1100, 2, active=k != 1) for k in range(3)}
    assert node_of(OneSlave(registers=registers)).mapped() == [(0x100, 11, 2), (0x300, 11, 2)]


# ------------------------------------------------------------------------------------------------- waiting, in time that only passes


def session_in(monkeypatch, course=lambda seconds: None, slaves=(), **given):
    """A session of these slaves without a segment, and its time, in which they do `course(seconds)`."""
    passing = SleptTime(course)
    monkeypatch.setattr(ethercat_setup, "time", passing)
    given = {"identity": [], "left_objects": "", "interface": "eth1", "timeout_s": 2.0, **given}
    session = EthercatSession(None, SimpleNamespace(answered=10), [], given, 1_000_000)
    session._all = [EthercatNode(session, n, n, slave) for n, slave in enumerate(slaves)]
    session._master = Mock()
    return session, passing


def test_frames_are_waited_for_but_not_for_ever(monkeypatch):
    def one_more(seconds):
        session.axes.answered += 1

    session, passing = session_in(monkeypatch, one_more)
    session.await_frames(3)
    assert session.axes.answered == 13 and passing.passed == pytest.approx(3 * 0.0005)
    silent, passing = session_in(monkeypatch)
    with pytest.raises(DriveSetupError, match="EtherCAT on eth1: our frames do not come back"):
        silent.await_frames(1)
    assert passing.passed == pytest.approx(2.0, abs=0.002)


@pytest.mark.parametrize(("timeout_s", "patience"), [(0.2, 1.0), (3.0, 3.0)])
def test_a_state_that_is_not_reached_has_its_time(monkeypatch, timeout_s, patience):
    slaves = [SimpleNamespace(state=state, al_status=0) for state in (2, 1, 2)]
    session, passing = session_in(monkeypatch, slaves=slaves, timeout_s=timeout_s)
    with pytest.raises(DriveSetupError, match="slave 1 on eth1: does not reach PREOP: state 1, AL status code 0x0000"):
        session._state(2, "PREOP", ask=False)
    assert passing.passed == pytest.approx(patience, abs=0.01) and not session._master.write_state.called


def test_a_state_that_is_refused_is_not_waited_for_and_who_has_refused_is_named(monkeypatch):
    slaves = [SimpleNamespace(state=state, al_status=code) for state, code in ((8, 0), (4, 0), (0x14, 0x1B))]
    session, passing = session_in(monkeypatch, slaves=slaves)
    with pytest.raises(DriveSetupError, match="slave 2 on eth1: does not reach OP: state 20, AL status code 0x001B"):
        session._state(8, "OP", ask=True)
    assert passing.passed == 0.0 and session._master.state == 8 and session._master.write_state.called


def test_at_the_end_a_state_is_waited_for_a_little(monkeypatch):
    slaves = [SimpleNamespace(state=8), SimpleNamespace(state=0x14)]

    def course(seconds):
        slaves[0].state = 8 if passing.passed < 0.1 else 4

    session, passing = session_in(monkeypatch, course, slaves)
    session._to(4)
    assert passing.passed == pytest.approx(0.1, abs=0.002) and session._master.state == 4
    session._to(2)  # no slave goes there
    assert passing.passed == pytest.approx(0.1 + ethercat_setup.CLOSING_STATE_S, abs=0.004)


@pytest.mark.parametrize(("answer_s", "patience"), [
    (10.0, {"ret": 100_000, "safe": 1_000_000, "eeprom": 1_000_000, "tx_mailbox": 1_000_000, "rx_mailbox": 10_000_000}),
    (0.01, {"ret": 2000, "safe": 20_000, "eeprom": 20_000, "tx_mailbox": 20_000, "rx_mailbox": 700_000}),
])  # fmt: skip
def test_the_library_waits_as_long_as_answers_may_take_and_never_shorter_than_by_itself(answer_s, patience):
    timeouts = SimpleNamespace(ret=2000, safe=20_000, eeprom=20_000, tx_mailbox=20_000, rx_mailbox=700_000)
    ethercat_setup._patient(SimpleNamespace(settings=SimpleNamespace(timeouts=timeouts)), answer_s)
    assert vars(timeouts) == patience


@pytest.mark.parametrize(("place", "found"), [(-1, (0, 0)), (0, (0x10000, 1)), (2, (0x10004, 2))])
def test_where_the_outputs_of_the_watchdog_are(monkeypatch, place, found):
    session, _ = session_in(monkeypatch, watchdog_slave=place, watchdog_outputs=[0, 7])
    fmmus = [[(0x10000, 1, 2), (0x10001, 1, 1)], [], [(0x10004, 2, 2)]]
    assert session._watchdog_place(fmmus) == found
