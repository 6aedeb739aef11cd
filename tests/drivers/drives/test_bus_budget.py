"""Bus budget against the planning table (classic CAN, 1 Mbit/s), and stuffing against frames that are really stuffed."""

import random

import pytest

from drivers.drives.bus_budget import bus_load, frame_bits

# axes on the bus, RPDO bytes, TPDO bytes, RPDO frames, cycle us (unstuffed, worst), load % at 500 Hz, load % at 1 kHz
TABLE = [
    (6, 8, 8, 6, (1379, 1675), (69, 84), (138, 168)),
    (6, 6, 6, 6, (1187, 1435), (59, 72), (119, 144)),
    (6, 4, 4, 6, (995, 1195), (50, 60), (100, 120)),
    (3, 8, 8, 3, (713, 865), (36, 43), (71, 86)),
    (3, 6, 6, 3, (617, 745), (31, 37), (62, 74)),
    (2, 8, 8, 2, (491, 595), (25, 30), (49, 60)),
    (6, 8, 6, 2, (839, 1015), (42, 51), (84, 102)),
]


@pytest.mark.parametrize(("axes", "rpdo", "tpdo", "frames", "cycle", "slow", "fast"), TABLE)
def test_planning_table(axes, rpdo, tpdo, frames, cycle, slow, fast):
    at_500 = bus_load(axes, rpdo, tpdo, 500, 1e6, rpdo_frames=frames)
    at_1000 = bus_load(axes, rpdo, tpdo, 1000, 1e6, rpdo_frames=frames)
    assert (round(at_500.cycle_us_min, 6), round(at_500.cycle_us_max, 6)) == cycle
    # the table gives whole per cents
    for load, wanted in ((at_500, slow), (at_1000, fast)):
        assert abs(100 * load.load_min - wanted[0]) <= 0.55
        assert abs(100 * load.load_max - wanted[1]) <= 0.55
    assert at_1000.fits == (fast[1] <= 80)


def crc15(bits):
    register = 0
    for bit in bits:
        top = (register >> 14) & 1
        register = (register << 1) & 0x7FFF
        if bit ^ top:
            register ^= 0x4599
    return [register >> i & 1 for i in reversed(range(15))]


def stuffed_length(identifier, data):
    """Length of a frame bit by bit: header, data, CRC with stuffing; delimiters, acknowledge, end of frame, interframe space without."""
    bits = [0] + [identifier >> i & 1 for i in reversed(range(11))] + [0, 0, 0] + [len(data) >> i & 1 for i in reversed(range(4))]
    for byte in data:
        bits += [byte >> i & 1 for i in reversed(range(8))]
    bits += crc15(bits)
    count, run, last = 0, 0, None
    for bit in bits:
        run = run + 1 if bit == last else 1
        last = bit
        count += 1
        if run == 5:
            count += 1
            run, last = 1, 1 - bit
    return count + 1 + 2 + 7 + 3


@pytest.mark.parametrize("size", range(9))
def test_real_frames_lie_within_the_limits(size):
    low, high = frame_bits(size)
    source = random.Random(size)
    lengths = [stuffed_length(source.randrange(2048), source.randbytes(size)) for _ in range(300)]
    lengths += [stuffed_length(0, bytes(size)), stuffed_length(0x7FF, b"\xff" * size)]
    lengths.append(stuffed_length(0x1E1, b"\xf8\x3e\x0f\x83\xe0\xf8\x3e\x0f"[:size]))
    assert all(low <= n <= high for n in lengths)


@pytest.mark.parametrize("wrong", [dict(axes=0), dict(rpdo_bytes=9), dict(rate_hz=0), dict(bitrate=float("nan")), dict(rpdo_frames=-1)])
def test_wrong_numbers_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)).replace("rpdo_bytes", "data_bytes")):
        bus_load(**{**dict(axes=3, rpdo_bytes=6, tpdo_bytes=6, rate_hz=1000.0), **wrong})
