"""Ports of serial force sensors against peers on a pseudo-terminal, and their streams in damage."""

import math
import os
import random
import struct
import time

import pytest

from drivers.wrench_sensors.bota_serial import BotaSerialPort
from drivers.wrench_sensors.robotiq_ft300 import RobotiqFt300Port
from drivers.wrench_sensors.serial_stream import checksum_of
from rt_kernels.layout import BITS
from tests.drivers.peers.serial_sensors import BotaPeer, RobotiqPeer
from tests.drivers.plain_stand import PassingTime, until
from tests.fuzz.sensor_streams import Bota, Robotiq, crc16, fast_crc16

STATUS = BITS["sensor_status"]
RANGES = {"force_range_n": (500.0, 500.0, 1200.0), "moment_range_n_m": (15.0, 15.0, 12.0)}
SLOW = {"no_data_ms": 10000.0}


def names(status):
    return {name for name, bit in STATUS.items() if int(status) & bit}


@pytest.fixture
def lines():
    """Function (port class, peer, keys) → the open port, the test speaking alone; `let_pass(port, ms)` of its time."""
    made = []

    def start(cls, peer, **keys):
        port = cls(device=peer.device, **{"timeout_s": 5.0, **SLOW, **keys})
        made.append((port, peer))
        peer.start()
        port.open()
        peer.let_go()
        port.begin()
        return port

    start.let_pass = PassingTime().let_pass
    yield start
    for port, peer in made:
        port.close()
        peer.close()


def bota(lines, **keys):
    peer = BotaPeer()
    return lines(BotaSerialPort, peer, **{**RANGES, "stale_ms": 10000.0, **keys}), peer


def robotiq(lines, **keys):
    peer = RobotiqPeer()
    return lines(RobotiqFt300Port, peer, **{"stream_rate_hz": 0.0, "stale_ms": 0.0, **keys}), peer


def fed(cls, sensor, **keys):
    """A port that is never opened: for bytes."""
    return cls(**{**sensor.KEYS, **keys})


def bota_record(k, force=(1.0, 2.0, 3.0), status=0, temperature=30.0, period_us=1250, later_us=0):
    stamp = (period_us * k + later_us) % (1 << 32)
    return Bota.sealed(struct.pack("<BH6fIf", 0xAA, status, *force, 0.1, 0.2, 0.3, stamp, temperature))


# ---------------------------------------------------------------------------------------------------------------------- checksums


@pytest.mark.parametrize(("generator", "invert", "check"), [(0x8408, 0xFFFF, 0x906E), (0xA001, 0, 0x4B37)])
def test_checksum_gives_the_published_check_value(generator, invert, check):
    assert checksum_of(b"123456789", generator, invert) == check
    assert crc16(b"123456789", generator, invert) == fast_crc16(b"123456789", generator, invert) == check


# --------------------------------------------------------------------------------------------------------------------- Bota Systems


def test_bota_is_configured_by_its_dialogue_and_streams(lines, sample):
    port, peer = bota(lines, sinc_length=64, chop=True, fir=True)
    assert peer.commands == [b"C", b"c,0,1,0,4", b"f,64,1,0,0", b"R"]
    wrench = [-1.5, 100.0, -200.0, 3.0, -3.0, 0.5]
    peer.say(wrench=wrench)
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == wrench and names(sample["wrench_status"][0]) == set()
    assert 0 <= sample["wrench_age_ns"][0] < 60_000_000_000
    assert port.sensor_scale == (1.0,) * 6


def test_bota_that_streams_already_is_left_alone(lines, sample):
    peer = BotaPeer(streams=True)
    port = lines(BotaSerialPort, peer, configure=False, **RANGES)
    peer.say()
    port.read(sample)
    assert peer.commands == [] and names(sample["wrench_status"][0]) == set()
    assert sample["wrench_lost_total"][0] == sample["wrench_corrupt_total"][0] == 0


def test_bota_at_another_rate_is_refused_by_name(lines):
    with pytest.raises(ConnectionError, match=r"2500 us, sinc_length = 64 is one every 1250 us"):
        lines(BotaSerialPort, BotaPeer(streams=True, period_us=2500), configure=False, **RANGES)


def test_a_rate_that_does_not_fit_the_line_is_refused():
    with pytest.raises(ValueError, match=r"sinc_length = 64.*115200.*limit 165 or more"):
        BotaSerialPort(device="-", baud=115200, **RANGES)
    with pytest.raises(ValueError, match="baud = 19200"):
        BotaSerialPort(device="-", baud=19200, **RANGES)


def test_a_line_with_other_bytes_is_no_sensor():
    peer = RobotiqPeer(streams=True).start()
    port = BotaSerialPort(device=peer.device, configure=False, timeout_s=0.2, **RANGES)
    try:
        with pytest.raises(ConnectionError, match="bytes came"):
            port.open()
    finally:
        port.close()
        peer.close()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"status": 1}, {"warning"}),
        ({"status": 2}, {"out_of_range"}),
        ({"status": 4}, {"saturated"}),
        ({"status": 8}, {"device_fault"}),
        ({"status": 0x100}, {"device_fault"}),
        ({"temperature": 90.0}, {"temperature"}),
        ({"force": (501.0, 2.0, 3.0)}, {"out_of_range", "corrupt"}),
        ({"force": (math.nan, 2.0, 3.0)}, {"device_fault"}),
        ({}, set()),
    ],
)
def test_bota_status_in_the_words_of_the_table(changes, expected):
    port = fed(BotaSerialPort, Bota)
    port.feed(bota_record(1) + bota_record(2))
    records, seen = port.feed(bota_record(3, **changes))
    assert names(seen) == expected
    if "force" in changes:
        assert records == []
    else:
        assert names(records[0][1]) == expected


def test_stamps_tell_what_is_missing_old_and_repeated():
    port = fed(BotaSerialPort, Bota)
    start = (1 << 32) // 1250 - 3  # the stamp wraps on the way
    port.feed(b"".join(bota_record(start + k) for k in range(3)))
    records, seen = port.feed(bota_record(start + 6))
    assert len(records) == 1 and names(seen) == {"lost"} and port.counters()["lost"] == 3
    for old in (6, 4, 0):
        assert port.feed(bota_record(start + old)) == ([], 0)
    assert port.counters()["repeated"] == 3
    records, seen = port.feed(bota_record(start + 7))
    assert len(records) == 1 and not seen


@pytest.mark.parametrize(
    ("later_us", "status", "lost"),
    [
        (1250, set(), 0),
        (1250 + 500, set(), 0),  # nearer to one period than to two
        (1250 + 750, {"lost"}, 1),
        (2500, {"lost"}, 1),
        (687, set(), 0),  # more than half a period
        (563, {"corrupt"}, 0),
        (1, {"corrupt"}, 0),
        (0, set(), 0),  # the same again
        (-1, set(), 0),
        (-99_000, set(), 0),  # an old one
        (-120_000, {"corrupt"}, 0),
        (99_000, {"lost"}, 78),
        (120_000, {"corrupt"}, 0),
    ],
)
def test_a_stamp_continues_is_old_or_is_of_no_record_of_this_stream(later_us, status, lost):
    port = fed(BotaSerialPort, Bota)
    port.feed(b"".join(bota_record(k + 1000) for k in range(3)))
    records, seen = port.feed(bota_record(1002, later_us=later_us))
    assert names(seen) == status and port.counters()["lost"] == lost
    assert len(records) == (later_us > 0 and "corrupt" not in status)


@pytest.mark.parametrize("channel", range(3))
@pytest.mark.parametrize(("share", "believed"), [(0.24, True), (-0.24, True), (0.3, False), (-0.3, False)])
def test_how_far_a_channel_moves_from_record_to_record(channel, share, believed):
    port = fed(BotaSerialPort, Bota)
    port.feed(bota_record(1) + bota_record(2))
    force = [1.0, 2.0, 3.0]
    force[channel] += share * Bota.RANGES[channel]
    assert len(port.feed(bota_record(3, force=force))[0]) == believed


@pytest.mark.parametrize("channel", range(3))
@pytest.mark.parametrize("sign", [1, -1])
def test_range_of_each_channel_on_both_sides(channel, sign):
    port = fed(BotaSerialPort, Bota, jump_share=2.0)
    port.feed(bota_record(1) + bota_record(2))
    for k, share, status in ((3, 0.99, set()), (4, 1.01, {"out_of_range"}), (5, 1.4, {"out_of_range"})):
        force = [1.0, 2.0, 3.0]
        force[channel] = sign * share * Bota.RANGES[channel]
        records, seen = port.feed(bota_record(k, force=force))
        assert len(records) == 1 and names(seen) == status


def test_after_a_gap_of_the_stamps_ages_begin_anew():
    """A device that stood still for more than a second: nothing is known of its clock from before."""
    port = fed(BotaSerialPort, Bota)
    for k in range(20):
        port.feed(bota_record(k + 1), 1_000_000_000 + 1_250_000 * k)
    for k in range(3):
        port.feed(bota_record(2000 + k), 9_000_000_000 + 1_250_000 * k)
    assert port.received_ns == 9_000_000_000 + 1_250_000 * 2


def test_a_restarted_device_costs_one_record():
    port = fed(BotaSerialPort, Bota)
    port.feed(b"".join(bota_record(k + 1_000_000) for k in range(3)))
    assert names(port.feed(bota_record(1))[1]) == {"corrupt"}
    records, seen = port.feed(bota_record(2))
    assert len(records) == 1 and not seen


def test_a_single_record_that_jumps_is_not_believed_and_a_true_jump_is():
    port = fed(BotaSerialPort, Bota)
    port.feed(bota_record(1) + bota_record(2))
    assert port.feed(bota_record(3, force=(300.0, 2.0, 3.0)))[0] == []
    assert [r[0][0] for r in port.feed(bota_record(4))[0]] == [1.0]
    found = [port.feed(bota_record(k, force=(300.0, 2.0, 3.0))) for k in (5, 6)]
    assert names(found[0][1]) == {"corrupt"} and [r[0][0] for r in found[1][0]] == [300.0]


def test_jumps_that_do_not_confirm_each_other_are_not_believed():
    """A second jump elsewhere, and the record of the first one again."""
    port = fed(BotaSerialPort, Bota)
    port.feed(bota_record(1) + bota_record(2))
    for k, force in ((3, 300.0), (4, -300.0), (4, -300.0)):
        assert port.feed(bota_record(k, force=(force, 2.0, 3.0)))[0] == []
    assert [r[0][0] for r in port.feed(bota_record(5, force=(-300.0, 2.0, 3.0)))[0]] == [-300.0]


def test_silence_a_standing_stamp_and_a_line_that_is_gone(lines, sample):
    port, peer = bota(lines, stale_ms=5000.0)
    for _ in range(5):
        peer.say(0)
        port.read(sample)
        assert names(sample["wrench_status"][0]) == set()
        lines.let_pass(port, 1100.0)
    peer.say(0)
    port.read(sample)
    assert names(sample["wrench_status"][0]) == {"stale"}
    peer.hang_up()
    port.read(sample)
    assert "no_data" in names(sample["wrench_status"][0])
    assert sample["wrench_age_ns"][0] > 0


def test_a_record_without_stamp_is_as_old_as_the_bytes_behind_it(lines, sample):
    port, peer = robotiq(lines)
    port.read(sample)
    lines.let_pass(port, 20.0)  # the last record before it was longer ago
    sent_ns = time.monotonic_ns()
    peer.raw(peer.record(peer.sent) + b"\x20\x4e" + bytes(8))
    port.read(sample)
    behind_ns = 10 * 10 / 19200 * 1e9
    assert sample["wrench_age_ns"][0] >= behind_ns and port.received_ns >= sent_ns - behind_ns - 1
    assert port.delays["sensor_delay_s"] == pytest.approx(16 * 10 / 19200)
    lines.let_pass(port, 20.0)
    sent_ns = time.monotonic_ns()
    peer.raw(peer.record(peer.sent + 1))
    port.read(sample)
    assert port.received_ns >= sent_ns  # nothing behind it: it came with the read


def test_a_stamped_record_arrived_when_its_stamp_says_however_late_it_is_read():
    """Records every 1.25 ms that are read late by turns, device and machine 50 ppm apart: the ages are those of the soonest read."""
    port = fed(BotaSerialPort, Bota)
    delays = [0, 300_000, 900_000, 100_000, 700_000, 1_200_000]
    for k in range(600):
        came = 1_000_000_000 + int(1_250_000 * k * 1.00005)
        late = delays[k % len(delays)]
        port.feed(bota_record(k + 1), came + late)
        if k > len(delays):
            assert port.received_ns == pytest.approx(came, abs=20_000), k


# ----------------------------------------------------------------------------------------------------------------------- Robotiq


def test_robotiq_is_asked_by_modbus_and_streams(lines, sample):
    port, peer = robotiq(lines)
    assert peer.requests == [struct.pack(">BBHH", 9, 3, 510, 4), struct.pack(">BBHHBH", 9, 16, 410, 1, 2, 0x0200)]
    assert port.serial == "FTS-0042"
    peer.say(counts=(-100, 250, 12345, 1000, -2000, 50))
    peer.say(counts=(-100, 250, 12345, 1000, -2000, 50))
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == [-1.0, 2.5, 123.45, 1.0, -2.0, 0.05]
    port.close()
    assert peer.asked() >= 50  # the stream is stopped again


def test_robotiq_that_refuses_is_a_connection_error():
    peer = RobotiqPeer().start()
    port = RobotiqFt300Port(device=peer.device, slave=10, timeout_s=0.2)
    try:
        with pytest.raises(ConnectionError, match="Modbus answer"):
            port.open()
    finally:
        port.close()
        peer.close()


def test_robotiq_names_the_channels_at_full_count(lines, sample):
    port, peer = robotiq(lines, jump_share=2.0)
    for counts, word in (((0, 1, 2, 3, 4, 5), 0), ((0, 1, 32767, 3, -32768, 5), 0b010100)):
        peer.say(counts=counts)
        peer.say(counts=counts)
        port.read(sample)
        assert sample["wrench_device_status"][0] == word and ("saturated" in names(sample["wrench_status"][0])) == bool(word)


def test_robotiq_full_count_is_saturated_and_beyond_the_range_is_reported():
    port = fed(RobotiqFt300Port, Robotiq, jump_share=2.0)
    port.feed(b"".join(RobotiqPeer.record(None, k) for k in (1, 2)))
    assert names(port.feed(RobotiqPeer.record(None, 3, counts=(32767, 0, 0, 0, 0, 0)))[1]) == {"saturated", "out_of_range"}
    assert names(port.feed(RobotiqPeer.record(None, 3, counts=(30100, 0, 0, 0, 0, 0)))[1]) == {"out_of_range"}
    assert names(port.feed(RobotiqPeer.record(None, 3, counts=(29900, 0, 0, 0, 0, 0)))[1]) == set()


def test_a_piece_of_a_stream_without_stamps_that_comes_twice_is_reported():
    port = fed(RobotiqFt300Port, Robotiq)
    records = [RobotiqPeer.record(None, k, counts=(k, 0, 0, 0, 0, 0)) for k in range(60)]
    assert not port.feed(b"".join(records[:40]))[1]
    assert not port.feed(records[39])[1]  # the last one again: nothing moved
    assert names(port.feed(records[30])[1]) == {"warning"}
    assert not port.feed(b"".join(records[40:]))[1]
    stamped = fed(BotaSerialPort, Bota)  # which tells an old record by its stamp
    assert not stamped.feed(b"".join(bota_record(k, force=(1.0 + k % 3, 2.0, 3.0)) for k in range(1, 13)))[1]


@pytest.mark.parametrize("count", [20, 45, 60])
def test_a_piece_is_looked_for_among_the_last_sixteen_records(count):
    port = fed(RobotiqFt300Port, Robotiq)
    records = [RobotiqPeer.record(None, k, counts=(k, 0, 0, 0, 0, 0)) for k in range(count)]
    port.feed(b"".join(records))
    state = port.snapshot()
    for back in range(1, 19):
        port.restore(state)
        assert names(port.feed(records[-1 - back])[1]) == ({"warning"} if back < 16 else set()), back


def test_a_stream_without_stamps_that_stands_is_stale_since_its_first_record(lines, sample):
    """The newest record of the set-up counts, too; one that moves is not stale."""
    port, peer = robotiq(lines, stale_ms=5000.0)
    first = peer.record(peer.sent - 1)
    lines.let_pass(port, 4500.0)
    for passed_ms, data, status in ((0.0, first, set()), (900.0, first, {"stale"}), (0.0, peer.record(7), set()), (4000.0, first, set())):
        lines.let_pass(port, passed_ms)
        peer.raw(data)
        port.read(sample)
        assert names(sample["wrench_status"][0]) - {"warning"} == status, passed_ms


def test_a_record_that_comes_byte_by_byte_is_one(lines, sample):
    port, peer = robotiq(lines)
    port.read(sample)
    before = port.counters()["records"]
    record = peer.record(peer.sent)
    for k in range(len(record)):
        peer.raw(record[k : k + 1])
        port.read(sample)
    assert port.counters()["records"] == before + 1 and names(sample["wrench_status"][0]) == set()


def test_a_line_at_its_end_is_gone(lines, sample):
    """An adapter that was unplugged: reading gives nothing for ever."""
    port, peer = robotiq(lines)
    line, = (int(n) for n in os.listdir("/proc/self/fd") if n.isdigit() and int(n) != peer.slave and leads_to(n, peer.device))
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), line)
    port.read(sample)
    assert names(sample["wrench_status"][0]) == {"no_data"}


def leads_to(number, device):
    """Whether a descriptor of this process is of that device; one that is closed meanwhile is not."""
    try:
        return os.readlink(f"/proc/self/fd/{number}") == device
    except OSError:
        return False


class Untimed(RobotiqFt300Port):
    """A port that takes the first records at whatever rate this machine brings them."""

    def _await_stream(self):
        self._begin_stream(2)


@pytest.fixture
def counted(lines, sample):
    """Function ((seconds, records), ...) → status names when so many records have come in so much time, one after the other; of a stream of
    one record a second. `counted.sample` is the sample. A machine that stands still for long is asked again."""
    port, made = lines(Untimed, RobotiqPeer(), stream_rate_hz=1.0, stale_ms=0.0), [0]

    def records(count):
        made[0] += count
        return b"".join(RobotiqPeer.record(None, k, counts=(k, 0, 0, 0, 0, 0)) for k in range(made[0] - count, made[0]))

    def after(*windows):
        while True:
            began, found = time.monotonic(), []
            port.begin()
            for seconds, count in windows:
                port.feed(records(count), time.monotonic_ns())
                lines.let_pass(port, 1e3 * seconds)
                port.read(sample)
                found.append(names(sample["wrench_status"][0]))
            if time.monotonic() - began < 0.15:
                return found

    after.sample = sample
    return after


def test_records_without_stamps_are_counted_over_a_second_or_more(counted):
    """Nine are expected in nine seconds: fewer than 8.1 are lost, more than 10.9 are of somebody else."""
    assert counted((0.0, 3)) == [set()], "a second is not over"
    assert [counted((9.0, n)) for n in (9, 10, 11)] == [[set()], [set()], [{"warning"}]]
    assert counted((9.0, 8)) == [{"lost"}] and counted.sample["wrench_lost_total"] == 1
    assert counted((9.0, 5)) == [{"lost"}]
    assert counted.sample["wrench_lost_total"] == 4 and counted.sample["wrench_sequence"] == 5 + 4
    # each counts for itself; a second and a half need not be over
    assert counted((9.0, 9), (0.0, 0), (9.0, 8)) == [set(), set(), {"lost"}]
    assert "lost" in counted((1.2, 0))[0]


@pytest.mark.parametrize(("cls", "sensor"), [(BotaSerialPort, Bota), (RobotiqFt300Port, Robotiq)])
def test_a_clean_stream_gives_every_record_in_whatever_pieces_it_comes(cls, sensor):
    rng = random.Random(1)
    made = sensor()
    records = made.records(rng)
    port, data, found, seen = fed(cls, sensor), b"".join(records), [], 0
    while data:
        cut = rng.randint(1, 60)
        believed, reported = port.feed(data[:cut])
        found += [values for values, _ in believed]
        seen |= reported
        data = data[cut:]
    assert found == [made.values(record) for record in records[1:]] and not seen


# ------------------------------------------------------------------------------------------------------------- begin and recovery


def test_records_lost_before_the_loop_and_one_that_was_cut_are_no_damage_of_the_run(lines, sample):
    """A terminal's buffer that ran over while no one read: whole records are missing and the next one is cut."""
    port, peer = bota(lines)
    peer.sent += 500
    peer.raw(peer.record(peer.sent)[9:])
    peer.say(peer.sent + 1)
    peer.say(peer.sent + 2)
    port.read(sample)
    assert names(sample["wrench_status"][0]) == set() and sample["wrench_sequence"][0] == 1
    assert sample["wrench_lost_total"][0] == sample["wrench_corrupt_total"][0] == 0
    # from then on both are reported
    peer.raw(peer.record(peer.sent + 3)[9:])
    peer.say(peer.sent + 4)
    port.read(sample)
    assert names(sample["wrench_status"][0]) == {"corrupt", "lost"} and sample["wrench_corrupt_total"][0] == 1
    assert port.counters()["skipped_bytes"] > 0


@pytest.mark.parametrize(
    ("cls", "peer", "keys"), [(BotaSerialPort, BotaPeer, RANGES), (RobotiqFt300Port, RobotiqPeer, {"stream_rate_hz": 0.0})]
)
def test_a_sensor_that_restarted_is_set_up_again_beside_the_loop(lines, sample, cls, peer, keys):
    peer = peer()
    port = lines(cls, peer, **keys)
    peer.say()
    port.read(sample)
    lines.let_pass(port, 10001.0)
    port.read(sample)
    assert names(sample["wrench_status"][0]) == {"no_data"}
    peer.heard, sequence = b"", int(sample["wrench_sequence"][0])
    peer.streaming.clear()
    peer.begin_again()
    port.recover(lambda: 60.0)
    until(lambda: (port.read(sample), sample["wrench_sequence"][0] > sequence)[1], os.sched_yield)  # the peer's thread streams
    assert sample["wrench_lost_total"][0] == sample["wrench_corrupt_total"][0] == 0


def test_a_sensor_that_speaks_is_left_alone_by_a_recovery(lines, sample):
    port, peer = bota(lines)
    peer.commands.clear()
    port.recover(lambda: 60.0)
    peer.say()
    port.read(sample)
    assert names(sample["wrench_status"][0]) == set() and peer.commands == [] and peer.asked() == 0


def test_a_sensor_that_is_not_there_any_more_says_so_and_is_looked_for_again(lines, sample):
    port, peer = bota(lines, no_data_ms=1.0)
    peer.hang_up()
    port.read(sample)
    assert names(sample["wrench_status"][0]) == {"no_data"}
    for _ in range(2):
        with pytest.raises(ConnectionError, match="no stream from the force sensor on /dev/pts"):
            port.recover(lambda: 60.0)
    port.read(sample)
    assert names(sample["wrench_status"][0]) == {"no_data"}
