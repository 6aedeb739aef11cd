"""What the drives of a served hydraulic stand say beside their position: against the `canopen` library as a master of its own, against the
plant itself, and through the ports."""

import struct

import canopen
import numpy as np
import pytest
from canopen.sdo.exceptions import SdoAbortedError

from drivers.drives.bus_budget import PLANNING_LIMIT
from drivers.raw_frames.can_link import FrameBus, open_link
from drivers.simulated.plant import PlantPart
from drivers.simulated.stand_server import MACHINE_CHANNELS, make_plant
from tests.drivers.library_drives import object_dictionary
from tests.drivers.plain_stand import has, plant_tables, until
from tests.drivers.simulated.test_stand_server import DRIVES, Line

HYDRAULIC = {"machine": "hydraulic"}
AREA_M2 = 6.2e-3  # of both sides of the piston
RATED_N = 125000.0
STICTION_N = 450.0  # of a leg at rest: friction_static_n
PROFILES = ["cia402", "cia408"]


@pytest.fixture
def master(stand):
    """Function (profile, plant) → a stand and node 1 of it under the library's own master."""
    made = []

    def make(profile, plant=HYDRAULIC):
        one = stand(plant=plant, drives={"profile": profile})
        link = open_link(one.ports["drives"]["links"].split()[0])
        net = canopen.Network(FrameBus(link, "stand"))
        net.NOTIFIER_CYCLE = 0.02
        net.connect()
        made.append((net, link))
        node = net.add_node(1, object_dictionary(int(profile[3:])))
        node.sdo.RESPONSE_TIMEOUT = 2.0
        return one, net, node

    yield make
    for net, link in made:
        net.disconnect()
        link.close()


@pytest.fixture(scope="module")
def resting():
    """The same plant in process at rest: forces, pressures, spools, supply."""
    plant: PlantPart = make_plant(plant_tables(**HYDRAULIC))
    plant.advance(2000)
    return plant.machine.state()


def signed(data):
    return int.from_bytes(data, "little", signed=True)


@pytest.mark.parametrize("profile", PROFILES)
def test_objects_say_what_the_plant_is(master, resting, profile):
    _, _, node = master(profile)

    def read(index, sub):
        return signed(node.sdo.upload(index, sub))

    assert read(0x2600, 0) == 6
    assert 10.0 * read(0x2600, 1) == pytest.approx(resting["force"][0], abs=50.0)
    assert 1e3 * read(0x2600, 2) == pytest.approx(resting["pressure_a"][0], abs=1e4)
    assert 1e3 * read(0x2600, 3) == pytest.approx(resting["pressure_b"][0], abs=1e4)
    assert 1e3 * read(0x2600, 5) == 21e6
    assert AREA_M2 * 1e3 * (read(0x2600, 2) - read(0x2600, 3)) == pytest.approx(10.0 * read(0x2600, 1), abs=15.0)
    if profile == "cia402":
        assert int.from_bytes(node.sdo.upload(0x6076, 0), "little") == RATED_N * 1000  # mN
        assert RATED_N / 1000 * read(0x6077, 0) == pytest.approx(resting["force"][0], abs=150.0)
        assert abs(read(0x6078, 0)) <= 1
    else:
        assert abs(read(0x6301, 1)) <= 40 and node.sdo.upload(0x6301, 0) == b"\x03"
        # unit and prefix by CiA 303-2: Pa, 10^3
        assert (read(0x6381, 2), read(0x6381, 3)) == (0x22, 3)
        assert AREA_M2 * 1e3 * read(0x6381, 1) == pytest.approx(resting["force"][0], abs=50.0)
    # the six legs carry platform and unit: forces along the legs against weight is the machine's own test; here all six are alike
    assert np.ptp(resting["force"]) < 2500.0


@pytest.mark.parametrize("profile", PROFILES)
def test_library_maps_a_third_pdo_that_comes_with_every_fourth_sync(master, profile):
    one, net, node = master(profile)
    node.nmt.state = "PRE-OPERATIONAL"
    for number in (3, 4):
        node.tpdo[number].read()
        assert not node.tpdo[number].enabled
    pdo = node.tpdo[3]
    pdo.clear()
    for sub in (2, 3, 4, 5):
        pdo.add_variable(0x2600, sub)
    pdo.trans_type, pdo.cob_id, pdo.enabled = 4, 0x381, True
    pdo.save()
    heard = []
    pdo.add_callback(lambda message: heard.append([variable.raw for variable in message]))
    node.nmt.state = "OPERATIONAL"
    node.sdo[0x1017].raw = 10
    until(lambda: node.nmt.wait_for_heartbeat(2) == "OPERATIONAL", one.control.ping)
    for _ in range(20):
        net.sync.transmit()
        node.sdo.upload(0x6041, 0)  # the answer comes after those to SYNC
    until(lambda: len(heard) == 5, one.control.ping)
    for values in heard:
        assert values == pytest.approx([signed(node.sdo.upload(0x2600, sub)) for sub in (2, 3, 4, 5)], abs=10)


def test_status_word_of_cia402_says_whether_the_valve_is_blocked(master):
    one, _, node = master("cia402")
    node.sdo.download(0x6060, 0, b"\x08")

    def word():
        return struct.unpack("<H", node.sdo.upload(0x6041, 0))[0] & 0xC16F

    assert word() == 0x8040  # switch on disabled: no power, blocked
    for control, state in ((0x06, 0x8021), (0x07, 0x8023), (0x0F, 0x0027), (0x07, 0x8023), (0x0F, 0x0027), (0x00, 0x8040)):
        node.sdo.download(0x607A, 0, node.sdo.upload(0x6064, 0))
        node.sdo.download(0x6040, 0, struct.pack("<H", control))
        assert word() == state
    one.control.inject("supply_loss", 0)
    until(lambda: word() == 0xC040, one.control.ping)


def test_record_of_cia408_says_whether_the_valve_is_blocked(master):
    one, _, node = master("cia408")

    def after(control):
        node.sdo.download(0x6040, 0, struct.pack("<H", control))
        # a valve may be saturated for a moment: bit 0
        return node.sdo.upload(0x6041, 0)[0] & 0xF, node.sdo.upload(0x2600, 6)[0] & 0x6

    # INIT, DISABLED: the hydraulic fail-safe position; HOLD, ACTIVE: position control
    assert [after(control) for control in (0, 1, 3, 7, 1)] == [(0x8, 4), (0x9, 4), (0xB, 0), (0xF, 0), (0x9, 4)]
    one.control.inject("supply_loss", 0)
    until(lambda: node.sdo.upload(0x2600, 6)[0] & 0x6 == 6, one.control.ping)


@pytest.mark.parametrize("profile", PROFILES)
def test_axes_of_linear_drives_have_none_of_it(master, profile):
    one, _, node = master(profile, {})
    for index, sub in ((0x2600, 1), (0x6077, 0), (0x6076, 0), (0x6301, 1), (0x6381, 1), (0x1802, 1), (0x1A02, 0)):
        with pytest.raises(SdoAbortedError) as caught:
            node.sdo.upload(index, sub)
        assert caught.value.code == 0x06020000
    assert "channels" not in one.ports["drives"]
    for name in ("supply_loss", "line_burst", "valve_stuck"):
        with pytest.raises(ValueError, match="unknown fault or index"):
            one.control.inject(name, 0)


# --------------------------------------------------------------------------------------------------------- through the ports
@pytest.mark.parametrize("profile", PROFILES)
def test_ports_on_a_hydraulic_stand(stand, sample, resting, profile):
    one = stand(plant=HYDRAULIC, drives={"profile": profile, "axis_link": [0, 0, 0, 1, 1, 1]})
    with Line(one, profile, sample) as line:
        line.clean()
        line.until(lambda s: np.abs(s["leg_valve"]).max() < 0.01)
        # legs that have moved on their way to rest are held by friction, too
        np.testing.assert_allclose(sample["leg_force"][0], resting["force"], atol=STICTION_N)
        np.testing.assert_allclose(sample["leg_pressure_a"][0], resting["pressure_a"], atol=STICTION_N / AREA_M2)
        assert sample["supply_pressure"][0] > 20.9e6
        assert all(load.fits and load.load_max > 0.77 * PLANNING_LIMIT for load in line.drives.bus_loads())
        # legs move: spools open, and the platform follows
        line.motion = np.full(6, 0.02)
        line.until(lambda s: np.abs(s["leg_valve"]).max() > 0.02)
        line.until(lambda s: np.abs(s["measured_leg"] - line.home - 0.02).max() < 1e-3)
        one.control.inject("supply_loss", 0)
        for name in ("supply_low", "hydraulics_blocked"):
            line.until(lambda s, name=name: all(has(w, "drive_status", name) for w in s["drive_status"]))
        line.until(lambda s: s["supply_pressure"] < 5e6)


def test_stated_channels_fit_the_buses_of_three_axes():
    for profile, stated in MACHINE_CHANNELS.items():
        port = DRIVES[profile](links="can0 can1", axis_link=[0, 0, 0, 1, 1, 1], **stated)
        assert all(load.fits for load in port.bus_loads())


def test_the_stand_keeps_where_it_truly_was(stand, sample, tmp_path):
    one = stand(plant=HYDRAULIC, truth_file=str(tmp_path / "truth.npy"))
    with Line(one, "cia402", sample) as line:
        line.clean()
        line.motion = np.full(6, 0.01)
        line.until(lambda s: np.abs(s["measured_leg"] - line.home - 0.01).max() < 1e-3)
        last = sample["measured_leg"][0].copy()
    one.stop()
    truth = np.load(tmp_path / "truth.npy")
    assert truth.shape[1] == 19 and (np.diff(truth[:, 0]) >= 0).all()
    np.testing.assert_allclose(truth[0, 1:7], line.home, atol=1e-4)
    # it moves on after the last answer that was read: the answer is one of its rows
    assert np.abs(truth[:, 1:7] - last).max(axis=1).min() < 2e-4
