"""The port of ATI's sensor on CAN against a peer on a socket pair."""

import os
import struct

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
    "frames",
    [
        lambda p: p.second(),
        lambda p: (p.first(), p.first(), p.second()),
        lambda p: (p.say(), p.second()),
        lambda p: (p.say(), p.say()),
        lambda p: p.send(0x0, b"1234567"),
        lambda p: (p.first(), p.send(0x1, b"12345")),
        lambda p: (p.second(), p.first()),
    ],
)
def test_a_half_that_no_one_waits_for_is_damage(sensors, pair, sample, frames):
    port, peer = pair
    frames(peer)
    tick(port, peer, sample)
    assert "corrupt" in names(sample) and sample["wrench_corrupt_total"][0] >= 1
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
    assert sample["wrench_corrupt_total"][0] == 2
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
