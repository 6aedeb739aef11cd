"""The port of ATI's sensor on CAN against a peer on a socket pair."""

import gc
import os
import struct
import time

import pytest

from drivers.wrench_sensors.ati_can import AtiCanPort
from rt_kernels.layout import BITS
from tests.drivers.peers.ati_can import NEWTON_METRE, POUND, AtiCanPeer
from tests.drivers.plain_stand import PassingTime

STATUS = BITS["sensor_status"]
KEYS = {"force_range_n": [20.0] * 3, "moment_range_n_m": [2.0] * 3, "no_data_ms": 10000.0, "stale_ms": 0.0, "timeout_s": 5.0,
        "pair_ms": 100.0, "answer_ticks": 2}  # fmt: skip
ERROR, PROT, BUSOFF, BUSERROR, RESTARTED, CRTL = 0x20000000, 0x08, 0x40, 0x80, 0x100, 0x04


def names(sample):
    return {name for name, bit in STATUS.items() if int(sample["wrench_status"][0]) & bit}


@pytest.fixture
def sensors():
    """Function (peer, keys) → the open port, the test speaking alone; `let_pass(port, ms)` of its time."""
    made = []

    def start(peer, **keys):
        port = AtiCanPort(link=peer.link, **{**KEYS, **keys})
        made.append((port, peer))
        peer.start()
        port.open()
        peer.let_go()
        port.begin()
        assert peer.asked() == 1
        return port

    start.let_pass = PassingTime().let_pass
    yield start
    for port, peer in made:
        port.close()
        peer.close()


@pytest.fixture
def pair(sensors):
    peer = AtiCanPeer()
    return sensors(peer), peer


def tick(port, peer, sample):
    """One tick; returns how many requests left."""
    port.read(sample)
    port.write(sample)
    return peer.asked()


def test_opens_with_the_sensors_own_matrix_and_scale(sensors, sample):
    peer = AtiCanPeer(base=0x20, units=(POUND, NEWTON_METRE), counts=(4000, 10000))
    port = sensors(peer, base_identifier=0x20, calibration_index=1)
    assert port.serial == "FT012345" and port.firmware == "2.7.9" and peer.calibration == 1
    assert port.matrix == peer.matrix
    assert port.sensor_scale == pytest.approx([4000 / 4.4482216152605] * 3 + [10000.0] * 3)
    peer.say((-100, 200, 300, 350, 500, 600))
    assert tick(port, peer, sample) == 1
    assert list(sample["wrench_raw"][0]) == peer.wrench((-100, 200, 300, 350, 500, 600))
    assert names(sample) == set() and sample["wrench_sequence"][0] == 1


@pytest.mark.parametrize(
    ("peer", "keys", "words"),
    [
        ({"base": 0x21}, {}, "opcode 0x5 is not answered"),
        ({"deaf": True}, {}, "opcode 0x5 is not answered"),
        ({"units": (9, 3)}, {}, "unit codes 9"),
        ({"counts": (0, 1)}, {}, "a scale is above zero"),
        ({}, {"calibration_index": 7}, "calibration 7 cannot be made active, 0 is"),
    ],
)
def test_what_cannot_be_is_a_connection_error(peer, keys, words):
    peer = AtiCanPeer(**{"base": 0x20, **peer}).start()
    port = AtiCanPort(link=peer.link, base_identifier=0x20, **{**KEYS, "timeout_s": 0.1, **keys})
    try:
        with pytest.raises(ConnectionError, match=words):
            port.open()
    finally:
        port.close()
        peer.close()


def test_a_sensor_that_restarted_by_itself_is_reset_at_open(sensors, sample):
    peer = AtiCanPeer()
    peer.status = 1
    port = sensors(peer)
    peer.say()
    tick(port, peer, sample)
    assert (0xC, b"") in peer.requests and names(sample) == set()


VIRTUAL_CAN = "vcan0"


@pytest.mark.skipif(not os.path.isdir(f"/sys/class/net/{VIRTUAL_CAN}"),
                    reason="no vcan0: modprobe vcan; ip link add vcan0 type vcan; ip link set vcan0 up")  # fmt: skip
def test_the_same_over_socketcan_with_the_kernels_stamps(sensors, sample):
    peer = AtiCanPeer(interface=VIRTUAL_CAN)
    port = sensors(peer)
    peer.say((-100, 200, 300, 350, 500, 600))
    assert tick(port, peer, sample) == 1
    assert list(sample["wrench_raw"][0]) == peer.wrench((-100, 200, 300, 350, 500, 600))
    assert names(sample) == set() and sample["wrench_age_ns"][0] > 0


def test_one_request_at_a_time_and_a_lost_one_is_asked_again(pair, sample):
    port, peer = pair
    assert tick(port, peer, sample) == 0  # the request of `begin` is still under way
    assert tick(port, peer, sample) == 1
    assert sample["wrench_lost_total"][0] == 1 and names(sample) == {"lost"}
    peer.say()
    assert tick(port, peer, sample) == 1
    # the answer may be that of the lost request: the last sample stands
    assert names(sample) == {"warning"} and port.counters()["doubted"] == 1 and port.counters()["records"] == 1


@pytest.mark.parametrize(
    ("frames", "damage", "lost"),
    [
        (lambda p: p.second(), 1, 0),
        (lambda p: (p.first(), p.first(), p.second()), 2, 1),
        (lambda p: (p.say(), p.second()), 1, 0),
        (lambda p: (p.say(), p.say()), 2, 0),
        (lambda p: p.send(0x0, b"1234567"), 1, 1),
        (lambda p: (p.first(), p.send(0x1, b"12345")), 1, 1),
        (lambda p: (p.second(), p.first()), 1, 0),
    ],
)
def test_a_half_that_no_one_waits_for_is_damage(sensors, pair, sample, frames, damage, lost):
    """It ends the pair that has begun; a first half, the request too."""
    port, peer = pair
    frames(peer)
    tick(port, peer, sample)
    assert names(sample) == ({"corrupt", "lost"} if lost else {"corrupt"})
    assert (sample["wrench_corrupt_total"][0], sample["wrench_lost_total"][0]) == (damage, lost)
    for _ in range(3):
        tick(port, peer, sample)
        peer.say()
    sensors.let_pass(port, 10.0)  # no late half comes any more: it is back in step
    tick(port, peer, sample)
    tick(port, peer, sample)
    peer.say((101, 201, 301, 401, 501, 601))
    tick(port, peer, sample)
    assert list(sample["wrench_raw"][0]) == peer.wrench((101, 201, 301, 401, 501, 601))


def test_other_traffic_says_nothing(pair, sample):
    port, peer = pair
    peer.raw(0x181, b"12345678")
    peer.send(0x5, b"FT012345")
    peer.raw(peer.base, b"")
    peer.raw(0x80000000 | peer.base, b"12345678")
    peer.say()
    tick(port, peer, sample)
    assert names(sample) == set() and sample["wrench_corrupt_total"][0] == 0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (0, set()),
        (1 << 4, {"supply"}),
        (1 << 12 | 1 << 15, {"temperature"}),
        (1 << 14 | 1 << 15, {"warning"}),
        (1 << 0, {"device_fault"}),
        (1 << 6 | 1 << 15, {"device_fault"}),
        (1 << 15, {"device_fault"}),
        (1 << 9, {"device_fault"}),
    ],
)
def test_status_in_the_words_of_the_table(pair, sample, status, expected):
    port, peer = pair
    peer.status = status
    peer.say()
    tick(port, peer, sample)
    assert names(sample) == expected and sample["wrench_device_status"][0] == status


def test_saturation_is_reported_before_the_jump_is_believed(pair, sample):
    port, peer = pair
    peer.say((32767, 200, 300, 400, 500, 600))
    tick(port, peer, sample)
    assert names(sample) == {"saturated", "out_of_range", "corrupt"}
    assert list(sample["wrench_raw"][0]) == peer.wrench()
    peer.say((32767, 200, 300, 400, 500, 600))
    tick(port, peer, sample)
    assert names(sample) == {"saturated", "out_of_range"}
    assert list(sample["wrench_raw"][0]) == peer.wrench((32767, 200, 300, 400, 500, 600))


@pytest.mark.parametrize(("kind", "controller", "expected"), [
    (CRTL, 0x10, {"warning"}), (CRTL, 0x20, {"warning"}), (CRTL, 0x01, {"corrupt"}), (CRTL, 0x04, set()), (PROT, 0x31, {"corrupt"}),
    (BUSERROR, 0x00, {"corrupt"}), (RESTARTED, 0x31, set()),
])  # fmt: skip
def test_what_an_error_frame_of_the_controller_says(pair, sample, kind, controller, expected):
    port, peer = pair
    peer.raw(ERROR | kind, bytes([0, controller, 0, 0, 0, 0, 0, 0]))
    peer.say()
    tick(port, peer, sample)
    assert names(sample) == expected and sample["wrench_corrupt_total"][0] == ("corrupt" in expected)


def test_error_frames_and_bus_off_are_reported_and_end(pair, sample):
    port, peer = pair
    peer.raw(ERROR | PROT, bytes(8))
    peer.raw(ERROR | BUSERROR, bytes(8))
    peer.raw(ERROR | CRTL, bytes([0, 0x10, 0, 0, 0, 0, 0, 0]))
    peer.say()
    tick(port, peer, sample)
    assert names(sample) == {"corrupt", "warning"} and sample["wrench_corrupt_total"][0] == 2
    peer.raw(ERROR | BUSOFF, bytes(8))
    for _ in range(2):
        tick(port, peer, sample)
        assert "no_data" in names(sample)
    peer.raw(ERROR | RESTARTED, bytes(8))
    for _ in range(3):
        tick(port, peer, sample)
    assert "no_data" not in names(sample)
    peer.say()
    tick(port, peer, sample)
    assert names(sample) <= {"warning"}


def test_a_damaged_transport_record_and_a_far_end_that_is_gone(pair, sample):
    port, peer = pair
    peer.far.send(b"short")
    peer.far.send(struct.pack("=IB3x8s", peer.base, 9, bytes(8)))
    tick(port, peer, sample)
    assert sample["wrench_corrupt_total"][0] == 2 and names(sample) == {"corrupt"}
    peer.far.close()
    port.read(sample)
    port.write(sample)


def test_standing_gauges_are_stale_when_that_is_asked(sensors, sample):
    peer = AtiCanPeer()
    port = sensors(peer, stale_ms=5000.0)
    for _ in range(5):
        peer.say()
        tick(port, peer, sample)
        assert names(sample) == set()
        sensors.let_pass(port, 1100.0)
    peer.say()
    tick(port, peer, sample)
    assert names(sample) == {"stale"}


@pytest.mark.parametrize(("stands_ms", "status"), [(400, set()), (900, {"stale"}), (11000, {"no_data"})])
def test_gauges_that_stand_are_stale_since_the_first_of_them_and_moving_ones_are_not(sensors, sample, stands_ms, status):
    """The newest sample of the set-up counts, too. Silence is no data after ten seconds."""
    peer = AtiCanPeer()
    port = sensors(peer, stale_ms=5000.0)
    sensors.let_pass(port, 4500.0)
    if stands_ms < 10000:
        peer.say()
        tick(port, peer, sample)
        assert names(sample) == set()
    sensors.let_pass(port, float(stands_ms))
    if stands_ms < 10000:
        peer.say()
    tick(port, peer, sample)
    assert names(sample) - {"lost"} == status
    for k in range(3 if stands_ms < 10000 else 0):
        sensors.let_pass(port, 2000.0)
        peer.say((101 + k, 200, 300, 400, 500, 600))
        tick(port, peer, sample)
        assert names(sample) == set()


def test_a_sample_is_as_old_as_its_arrival(pair, sample):
    """Between two readings of the clock before it came and two before it was read."""
    port, peer = pair
    for _ in range(2):
        sent = time.monotonic_ns()
        peer.say()
        came = time.monotonic_ns()
        gc.collect()
        before = time.monotonic_ns()
        tick(port, peer, sample)
        assert before - came <= sample["wrench_age_ns"][0] <= time.monotonic_ns() - sent


def fed(**keys):
    """A port that is never opened, its counts a thousand in a newton and ten thousand in a newton metre, one gauge for each of the six."""
    port = AtiCanPort(link="fd:0", **KEYS, **keys)
    port.calibrate([[float(i == k) for k in range(6)] for i in range(6)], 1000.0, 10000.0)
    return port


def asked(port, gauges, at_ns=0, second_ns=None):
    """What the port makes of a request's answer: believed gauges, names of the status."""
    assert port.ask()
    first, second = (struct.pack("=IB3x8s", 0x7F0 | half, 8 - 2 * half, data) for half, data in (
        (0, struct.pack(">H3h", 0, *gauges[::2])), (1, struct.pack(">3h", *gauges[1::2]))))  # fmt: skip
    if second_ns is None:
        records, seen = port.feed(first + second, at_ns)
    else:
        port.feed(first, at_ns)
        records, seen = port.feed(second, second_ns)
    return [values for values, _ in records], {name for name, bit in STATUS.items() if seen & bit}


@pytest.mark.parametrize("channel", range(6))
@pytest.mark.parametrize("sign", [1, -1])
def test_range_of_each_channel_on_both_sides(channel, sign):
    port = fed(jump_share=2.0)
    for value, status in ((19_990, set()), (19_990, set()), (20_010, {"out_of_range"}), (29_000, {"out_of_range"})):
        gauges = [100 * (k != channel) + sign * value * (k == channel) for k in range(6)]
        assert asked(port, gauges)[1] == status


@pytest.mark.parametrize("full", [32767, -32768])
def test_a_gauge_at_either_end_of_its_count_is_saturated(full):
    port = fed(jump_share=2.0)
    assert "saturated" in asked(port, [0, 0, 0, full, 0, 0])[1]


@pytest.mark.parametrize(("second_ns", "believed"), [(100_000_000, True), (120_000_000, False)])
def test_the_halves_of_a_pair_come_within_their_time(second_ns, believed):
    port = fed()
    asked(port, [100] * 6)
    asked(port, [100] * 6)
    records, seen = asked(port, [100] * 6, at_ns=1_000_000_000, second_ns=1_000_000_000 + second_ns)
    assert (records, seen) == (([(100.0,) * 6], set()) if believed else ([], {"corrupt", "lost"}))


def test_what_jumped_while_no_sample_is_believed_is_believed_at_once_afterwards():
    port = fed()
    for _ in range(2):
        asked(port, [100] * 6)
    assert port.ask()
    port.feed(b"", 1_000_000_000)
    port.feed(b"", 1_001_000_000)  # lost
    jumped = [9000] * 6
    assert asked(port, jumped, at_ns=1_002_000_000) == ([], {"warning"})
    assert asked(port, jumped, at_ns=1_008_000_000) == ([(9000.0,) * 6], set())
    assert asked(port, [100] * 6, at_ns=1_009_000_000) == ([], {"corrupt"})
    assert (port.counters()["suspect"], port.counters()["doubted"], port.counters()["lost"]) == (1, 1, 1)
