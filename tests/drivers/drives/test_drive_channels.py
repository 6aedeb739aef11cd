"""What drives say beside their position: set-up against drives made of the `canopen` library, values frame by frame, silence, damage."""

import struct

import numpy as np
import pytest

from drivers.drives import cia402, cia408
from drivers.drives.bus_budget import frame_bits
from drivers.drives.canopen_setup import DriveSetupError
from drivers.drives.drive_channels import NAMES
from rt_kernels.layout import BITS, CODES
from tests.drivers.drives.test_can_axes import GOOD, PORTS, drive_bits
from tests.drivers.library_drives import LibraryDrives

RATED_N = 125000.0
PRESSURES = [
    {"channel": "leg_pressure_a", "object": "0x2600:2", "bits": 16, "unit": 1000.0},
    {"channel": "leg_pressure_b", "object": "0x2600:3", "bits": 16, "unit": 1000.0},
]
SUPPLY = {"channel": "supply_pressure", "object": "0x2600:5", "bits": 16, "unit": 1000.0}
STATUS = {"channel": "hydraulic_status", "object": "0x2600:6", "bits": 16}
CHANNELS = {
    402: [{"channel": "leg_force"}, *PRESSURES, {"channel": "leg_valve", "object": "0x2600:4", "bits": 16, "unit": 2.0**-14}, SUPPLY],
    408: [{"channel": "leg_force", "object": "0x2600:1", "bits": 16, "unit": 10.0}, *PRESSURES, {"channel": "leg_valve"}, STATUS, SUPPLY],
}
BITS_408 = {"valve_saturated_bit": 16, "supply_low_bit": 17, "hydraulics_blocked_bit": 18}
BITS_402 = {"valve_saturated_bit": 8, "supply_low_bit": 14, "hydraulics_blocked_bit": 15}


class Drives:
    """A port with channels on drives of the library; `tick` answers as the axes would and reads."""

    def __init__(self, kind, sample, **keys):
        self.kind, self.sample = kind, sample
        self.peer = LibraryDrives(kind)
        for n in range(1, 7):
            self.peer.put(n, 0x6076, 0, 4, int(RATED_N * 1000))
            for sub, value in enumerate((1200, 11000 + n, 10000, -8192, 20500), start=1):
                self.peer.put(n, 0x2600, sub, -2, value)
            self.peer.put(n, 0x2600, 6, 2, 0)
            self.peer.put(n, 0x6077, 0, -2, -100 * n)
            self.peer.put(n, 0x6301, 1, -2, 4096)
        self.port = PORTS[kind](links=self.peer.link, heartbeat_ms=20, timeout_s=8.0,
                                **{"channels": CHANNELS[kind], "channels_every": 5, "supply_axis": 3, **keys})  # fmt: skip
        self.peer.ports.append(self.port)

    def __enter__(self):
        self.port.open()
        self.peer.let_go()
        return self

    def __exit__(self, *_):
        self.peer.close()

    def tick(self, *frames, word=None):
        """frames: (identifier, data) beside the answers of all axes."""
        for n in range(1, 7):
            self.peer.answer(n, GOOD[self.kind] if word is None or n != 3 else word, 0)
        for identifier, data in frames:
            self.peer.send(identifier, data)
        self.port.read(self.sample)
        self.peer.take()
        return drive_bits(self.sample, 2)


@pytest.mark.parametrize("kind", [402, 408])
def test_set_up_maps_what_is_asked_for_and_reads_it_once(sample, kind):
    with Drives(kind, sample) as line:
        for n in range(1, 7):
            get = line.peer.get
            four = [get(n, 0x1A02, place, 4) for place in range(1, 5)]
            assert four == {402: [0x60770010, 0x26000210, 0x26000310, 0x26000410],
                            408: [0x26000110, 0x26000210, 0x26000310, 0x63010110]}[kind]  # fmt: skip
            assert (get(n, 0x1A02, 0, 1), get(n, 0x1802, 1, 4), get(n, 0x1802, 2, 1)) == (4, 0x380 + n, 5)
            # the second frame: the supply's pressure of one axis, the word of bits of all
            more = [get(n, 0x1A03, place, 4) for place in range(1, 1 + get(n, 0x1A03, 0, 1))] if get(n, 0x1803, 1, 4) < 1 << 31 else []
            supply = [0x26000510] if n == 4 else []
            assert more == (supply if kind == 402 else [0x26000610, *supply])
            # the first one is as ever
            assert [get(n, 0x1A00, place, 4) for place in (1, 2)] == [0x60410010, {402: 0x60640020, 408: 0x66010120}[kind]]
        line.port.read(sample)
        force = {402: -12500.0 * np.arange(1, 7), 408: np.full(6, 12000.0)}[kind]
        np.testing.assert_allclose(sample["leg_force"][0], force, rtol=1e-12)
        np.testing.assert_allclose(sample["leg_pressure_a"][0], 1e3 * (11000 + np.arange(1, 7)), rtol=1e-12)
        np.testing.assert_allclose(sample["leg_pressure_b"][0], 1e7, rtol=1e-12)
        np.testing.assert_allclose(sample["leg_valve"][0], {402: -0.5, 408: 0.25}[kind], rtol=1e-12)
        assert sample["supply_pressure"][0] == 20.5e6


@pytest.mark.parametrize("kind", [402, 408])
def test_values_of_a_frame_are_held_until_the_next(sample, kind):
    with Drives(kind, sample) as line:
        line.tick()
        line.tick((0x383, struct.pack("<4h", -250, 123, -1, 16384)))
        unit = {402: RATED_N / 1000, 408: 10.0}[kind]
        for _ in range(3):
            assert sample["leg_force"][0, 2] == -250 * unit
            assert (sample["leg_pressure_a"][0, 2], sample["leg_pressure_b"][0, 2], sample["leg_valve"][0, 2]) == (123e3, -1e3, 1.0)
            assert sample["leg_pressure_b"][0, 1] == 1e7
            line.tick()
        supply = struct.pack("<h", 14000) if kind == 402 else struct.pack("<Hh", 0, 14000)
        assert line.tick((0x484, supply)) == set() and sample["supply_pressure"][0] == 14e6


@pytest.mark.parametrize("kind", [402, 408])
def test_what_is_not_asked_for_is_neither_mapped_nor_touched(sample, kind):
    for name in NAMES[:5]:
        sample[name] = 7.0
    with Drives(kind, sample, channels=()) as line:
        assert all(line.peer.get(n, base, 1, 4) >> 31 for n in range(1, 7) for base in (0x1802, 0x1803))
        before = line.port.counters()["link_ignored"][0]
        line.tick((0x383, bytes(8)))
        assert line.port.counters()["link_ignored"][0] == before + 1
        for _ in range(40):
            assert line.tick() == set()
        assert all((sample[name] == 7.0).all() for name in NAMES[:5])


def test_a_pdo_of_32_bit_objects(sample):
    wide = [{"channel": "leg_force", "object": "0x6601:1", "bits": 32, "unit": 0.5}]
    with Drives(408, sample, channels=wide) as line:
        line.tick((0x381, struct.pack("<i", -200001)))
        assert sample["leg_force"][0, 0] == -100000.5


def test_silence_of_a_slow_value_is_lost_then_no_data(sample):
    """Every fifth SYNC, one may come late: the second that is missing is lost, and each after it; three of them are no data."""
    with Drives(402, sample, channels=CHANNELS[402][:4], no_data_periods=3) as line:
        line.tick()
        line.tick((0x383, bytes(8)))
        seen = [line.tick() for _ in range(26)]
        lost = [k + 2 for k, bits in enumerate(seen) if "lost" in bits]  # ticks after the newest, itself 1
        none = [k + 2 for k, bits in enumerate(seen) if "no_data" in bits]
        assert lost == [10, 15, 20, 25] and none == list(range(20, 28))
        assert line.tick((0x383, bytes(8))) == set()
        assert [line.tick() for _ in range(8)] == [set()] * 8
        assert sample["drive_lost_total"][0, 2] == 4


def test_frames_of_a_wrong_length_are_damaged(sample):
    with Drives(408, sample) as line:
        line.tick()
        line.tick((0x383, struct.pack("<4h", 1, 2, 3, 4)))
        for identifier, data in ((0x383, bytes(7)), (0x483, bytes(4)), (0x484, bytes(2))):
            assert ("corrupt" in line.tick((identifier, data))) is (identifier != 0x484)
            assert sample["leg_force"][0, 2] == 10.0
        assert list(sample["drive_corrupt_total"][0]) == [0, 0, 2, 1, 0, 0]


@pytest.mark.parametrize(("bit", "name"), [(8, "valve_saturated"), (14, "supply_low"), (15, "hydraulics_blocked")])
def test_bits_of_the_status_word(sample, bit, name):
    with Drives(402, sample, **BITS_402) as line:
        line.tick()
        assert line.tick(word=GOOD[402] | 1 << bit) == {name} and sample["drive_device_status"][0, 2] == GOOD[402] | 1 << bit
        assert line.tick() == set()
    with Drives(402, sample) as line:  # a drive of which nothing is known
        line.tick()
        assert line.tick(word=GOOD[402] | 1 << bit) == set()


@pytest.mark.parametrize(("bit", "name"), [(0, "valve_saturated"), (1, "supply_low"), (2, "hydraulics_blocked")])
def test_bits_of_a_word_of_the_manufacturer(sample, bit, name):
    with Drives(408, sample, **BITS_408) as line:
        line.tick()
        assert line.tick((0x483, struct.pack("<H", 1 << bit))) == {name}
        assert line.tick() == {name}  # until the next word
        # reported and taken back in one tick
        assert line.tick((0x483, bytes(2))) == set()
        assert line.tick((0x483, struct.pack("<H", 1 << bit)), (0x483, bytes(2))) == {name}
        assert line.tick() == set()


@pytest.mark.parametrize(("kind", "enabled", "blocked"), [(402, 0x0F, 0x00), (408, 0x07, 0x01)])
def test_blocked_legs_lose_their_power(sample, kind, enabled, blocked):
    with Drives(kind, sample) as line:
        line.tick()
        for legs in ((), (3,), (1, 6), range(1, 7)):
            sample["safety_state"], sample["leg_setpoint"] = CODES["safety_state"]["held"], 0.25
            # clipped lengths, rates and accelerations block nothing
            sample["setpoint_status"] = 0x3F3F3F | sum(BITS["setpoint_status"][f"blocked{n}"] for n in legs)
            line.port.write(sample)
            sent = dict(line.peer.take())
            assert [struct.unpack("<Hi", sent[0x200 + n]) for n in range(1, 7)] == [
                (blocked if n in legs else enabled, 250000) for n in range(1, 7)
            ]


@pytest.mark.parametrize(
    ("kind", "keys", "says"),
    [
        (402, {"channels": [{"channel": "torque"}]}, "channels.0..channel"),
        (402, {"channels": [{"channel": "leg_pressure_a"}]}, "CiA 402 has no object for leg_pressure_a"),
        (408, {"channels": [{"channel": "leg_force"}]}, "CiA 408 has no object for leg_force"),
        (402, {"channels": [{"channel": "leg_force"}] * 2}, "leg_force is given twice"),
        (402, {"channels": [{"channel": "leg_force", "object": "0x2600:1", "unit": 1.0}]}, "needs bits and unit"),
        (402, {"channels": [{"channel": "leg_force", "object": "force", "bits": 16, "unit": 1.0}]}, "must be an index and a sub-index"),
        (402, {"channels": [{"channel": "leg_force", "object": "0x2600:1", "bits": 24, "unit": 1.0}]}, "must be 16 or 32"),
        (402, {"channels": [{"channel": name, "object": "0x2600:1", "bits": 32, "unit": 1.0} for name in NAMES[:5]]}, "more than 2 frames"),
        (402, {"valve_saturated_bit": 11}, "valve_saturated_bit = 11: CiA 402 has another meaning"),
        (408, {"supply_low_bit": 8}, "supply_low_bit = 8: CiA 408 has another meaning"),
        (408, {"channels": (), "supply_low_bit": 17}, "which is not among the channels"),
    ],
)
def test_wrong_channels_are_named(kind, keys, says):
    with pytest.raises(ValueError, match=says):
        PORTS[kind](links="can0", **{"channels": CHANNELS[kind], **keys})


def test_a_drive_without_the_object_or_without_a_rated_force_is_named(sample):
    line = Drives(402, sample, channels=[{"channel": "leg_force", "object": "0x2700:1", "bits": 16, "unit": 1.0}])
    with pytest.raises(DriveSetupError, match="node 1 .*reading leg_force .0x2700:1"):
        line.port.open()
    line.peer.close()
    line = Drives(402, sample)
    line.peer.put(5, 0x6076, 0, 4, 0)
    with pytest.raises(DriveSetupError, match="node 5 .*rated value of leg_force .0x6076. is 0"):
        line.port.open()
    line.peer.close()


def test_slow_values_are_in_the_bus_budget():
    """Three axes on one bus: 745 us a cycle at worst; eight bytes of each in ten cycles and two of the supply's axis."""
    plain, asked = (cia402.Cia402Port(links="can0 can1", axis_link=[0, 0, 0, 1, 1, 1], **keys).bus_loads()
                    for keys in ({}, {"channels": CHANNELS[402], "supply_axis": 4}))  # fmt: skip
    assert [load.cycle_us_max for load in plain] == [load.cycle_us_max for load in asked]
    eight, two = frame_bits(8)[1] * 1e-6, frame_bits(2)[1] * 1e-6
    for link, slow in ((0, 3 * eight), (1, 3 * eight + two)):
        assert asked[link].load_max - plain[link].load_max == pytest.approx(slow / 10 * 1000, rel=1e-12)
        assert asked[link].peak_max == pytest.approx(plain[link].load_max + eight * 1000, rel=1e-12)
        assert asked[link].fits and plain[link].fits
    # as often as the position they do not fit
    every = cia408.Cia408Port(links="can0 can1", axis_link=[0, 0, 0, 1, 1, 1], channels=CHANNELS[408], channels_every=1)
    assert not any(load.fits for load in every.bus_loads())
