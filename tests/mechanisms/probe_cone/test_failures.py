"""Failed parts of the central unit, each as configuration, in a docking through the line: the outcome by the text or mechanics."""

from functools import cache

import numpy as np
import pytest

from hil_server.config import SHIPPED, load_test
from hil_server.errors import ConfigurationError
from rt_kernels.codes import fault_names
from rt_kernels.layout import BITS, CODES
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone
from tests.docking_course import DT, PHASE, SEQUENCE, run, signal
from tests.mechanisms.probe_cone.shipped import pose
from tests.mechanisms.shipped import shipped

END = {number: name for name, number in CODES["end_cause"].items()}
LONG = "test.stand=stands/ideal_stand_long_unit.toml"
RELEASE = BITS["mechanism_command"]["release"]
UNITS = {"existing": (), "modified": (LONG, "test.mechanism=mechanisms/probe_cone_modified.toml")}
CENTRAL = ("active_vehicle.thrust_n=0.0", "initial_conditions.velocity_x_m_s=0.15", *(f"initial_conditions.{key}=0.0" for key in (
    "lateral_y_m", "lateral_z_m", "yaw_deg", "pitch_deg", "roll_deg", "velocity_y_m_s", "velocity_z_m_s", "rate_x_deg_s", "rate_y_deg_s",
    "rate_z_deg_s")))  # fmt: skip
# plateau of a clutch: the screw's friction k makes of its moment m the force i m/(1 - k)
RATIO, FRICTION = 0.25 * 2 * np.pi / 0.02, 0.05


def docked(*overrides, unit="existing", channels=(), seconds=4.0, central=True):
    """A docking with `overrides`, its channels without prefix, loop only."""
    given = (*UNITS[unit], *(CENTRAL if central else ()), f"guidance.contact_max_s={seconds}", *overrides)
    out = run(SHIPPED / "programmes" / "virtual_docking.toml", tuple(f"probe.{c}" for c in channels), given)
    loop = out["phase"] == PHASE["contact"]
    return {k.removeprefix("probe."): v[loop] for k, v in out.items()} | {"end": END[out["end_cause"][-1]], "last": out["faults"][-1]}


def plateau(out, slip):
    """Mean axial force while a clutch slips inwards at more than a quarter of its fastest."""
    rate = np.diff(out[slip], prepend=0.0)
    return out["F_T"][rate > 0.25 * rate.max(), 0].mean()


# --------------------------------------------------------------------------------------------------------------------- motors


@cache
def retraction_speed(*overrides):
    """Mean rate of the drive's shaft [rad/s], switched on 1.5 s after the impact already: nothing resists yet."""
    out = docked(*overrides, "guidance.drive_after_s=1.5", "guidance.brakes_after_s=0.1", channels=("drive_rate",), seconds=14.0)
    t = out["time"] - out["time"][np.argmax(out["sequence"] == SEQUENCE["retract"])]
    on = (out["sequence"] == SEQUENCE["retract"]) & (t > 4.0)
    return out["drive_rate"][on].mean()


def test_one_dead_motor_leaves_half_the_speed_and_two_leave_none():
    """The stopping clutch holds the dead motor's wheel; the differential gives the carrier half of the other wheel's rate (6.1.2)."""
    whole, a, b = retraction_speed(), retraction_speed("mechanism.motor_a_share=0.0"), retraction_speed("mechanism.motor_b_share=0.0")
    assert whole == pytest.approx(0.122, rel=0.02)
    assert a == pytest.approx(0.5 * whole, rel=0.02) and b == pytest.approx(a, rel=1e-6)
    assert abs(retraction_speed("mechanism.motor_a_share=0.0", "mechanism.motor_b_share=0.0")) == 0.0


# -------------------------------------------------------------------------------------------------------------------- dampers


def test_weak_clutch_slips_at_its_share_of_the_moment_and_further():
    # without the magnetic brakes, which add to it while the probe moves fast
    brakes = "mechanism.axial_brake_share=0.0"
    whole = docked(brakes, channels=("clutch_slip", "stroke"))
    weak = docked(brakes, "mechanism.clutch_share=0.5", channels=("clutch_slip", "stroke"))
    assert plateau(whole, "clutch_slip") == pytest.approx(64.0 * RATIO / (1 - FRICTION), rel=0.05)
    assert plateau(weak, "clutch_slip") == pytest.approx(32.0 * RATIO / (1 - FRICTION), rel=0.05)
    assert weak["clutch_slip"].max() > 1.5 * whole["clutch_slip"].max()
    assert weak["stroke"].min() < whole["stroke"].min()


def test_stuck_clutch_does_not_slip_and_the_force_rises():
    """At 0.20 m/s, where a clutch has to slip (6.4: it limits the load at extreme speeds)."""
    fast = "initial_conditions.velocity_x_m_s=0.2"
    stuck, whole = (docked(fast, *o, channels=("clutch_slip",), seconds=2.0) for o in (("mechanism.clutch_share=20.0",), ()))
    assert whole["clutch_slip"].max() > 1.0 and stuck["clutch_slip"].max() == 0.0
    assert stuck["F_T"][:, 0].max() > 1.5 * whole["F_T"][:, 0].max()


def test_stuck_or_weak_brake_1_leaves_the_energy_to_brake_2():
    """6.4: brake 2 limits the load where brake 1 does not take it up; its plateau is four times that of brake 1."""
    channels = ("clutch_slip", "clutch_slip1")
    whole, stuck, weak = (docked(*o, unit="modified", channels=channels) for o in (
        (), ("mechanism.brake1_stuck=true",), ("mechanism.brake1_share=0.5",)))  # fmt: skip
    assert plateau(whole, "clutch_slip1") == pytest.approx(16.0 * RATIO / (1 - FRICTION), rel=0.05) and whole["clutch_slip"].max() == 0.0
    assert stuck["clutch_slip1"].max() == 0.0 and stuck["clutch_slip"].max() > 0.5
    assert plateau(stuck, "clutch_slip") == pytest.approx(64.0 * RATIO / (1 - FRICTION), rel=0.05)
    # half the moment does not suffice over the whole travel: it is used up, and brake 2 slips as well
    assert plateau(weak, "clutch_slip1") == pytest.approx(8.0 * RATIO / (1 - FRICTION), rel=0.08)
    assert weak["clutch_slip1"].max() == pytest.approx(13.675, abs=1e-3) and weak["F_T"][:, 0].max() > 1.5 * whole["F_T"][:, 0].max()


def test_dead_axial_brakes_lose_nothing_and_the_rebound_is_harder():
    whole, dead = (docked(*o, channels=("energy_lost_brake",), seconds=8.0) for o in ((), ("mechanism.axial_brake_share=0.0",)))
    assert whole["energy_lost_brake"][-1] > 5.0 and dead["energy_lost_brake"][-1] == 0.0
    assert dead["V_TA"][:, 0].min() < 1.1 * whole["V_TA"][:, 0].min() < 0.0


@pytest.mark.parametrize("number", [1, 2])
def test_dead_lateral_brake_gives_no_torque_and_a_stuck_one_holds_its_crank(number):
    channels = tuple(f"brake{i}_{c}" for i in (1, 2) for c in ("angle", "torque", "stop"))
    whole, dead, stuck = (docked(*o, channels=channels, seconds=4.0, central=False) for o in (
        (), (f"mechanism.lateral_brake{number}_share=0.0",), (f"mechanism.lateral_brake{number}_travel=0.0",)))  # fmt: skip
    assert np.abs(whole[f"brake{number}_torque"]).max() > 1.0 and np.abs(whole[f"brake{number}_stop"]).max() == 0.0
    assert np.abs(dead[f"brake{number}_torque"]).max() == 0.0 and np.abs(dead[f"brake{3 - number}_torque"]).max() > 1.0
    # as stiff as a crank stop, 4000 N.m/rad, all the way
    angle, stop = stuck[f"brake{number}_angle"], stuck[f"brake{number}_stop"]
    assert np.abs(angle).max() < 0.5 * np.abs(whole[f"brake{number}_angle"]).max()
    assert np.polyfit(angle, stop, 1)[0] == pytest.approx(4000.0, rel=0.02)


# ------------------------------------------------------------------------------------- by more than the scatter of the sound unit

SIGMA = {"lateral_y_m": 1e-3, "lateral_z_m": 1e-3, "yaw_deg": 0.02, "pitch_deg": 0.02, "roll_deg": 0.02, "velocity_x_m_s": 1e-3,
         "velocity_y_m_s": 5e-4, "velocity_z_m_s": 5e-4, "rate_x_deg_s": 0.005, "rate_y_deg_s": 0.005, "rate_z_deg_s": 0.005}  # fmt: skip
SHIPPED_CASE = (0.06, -0.04, 1.1, -0.9, 1.1, 0.12, 0.005, -0.005, 0.0, -0.1, 0.1)
EXPERT = (0.08, -0.06, 1.36, -1.36, 1.36, 0.15, 0.008, -0.008, 0.116, -0.228, 0.228)


@cache
def loads(case, *failed, draw=0):
    """Largest compression, tension, force across, moment across of the first seconds; conditions with errors of SIGMA."""
    off = np.random.default_rng(draw).normal(0.0, list(SIGMA.values())) if draw else np.zeros(len(SIGMA))
    out = docked(*(f"initial_conditions.{key}={x}" for key, x in zip(SIGMA, case + off, strict=True)), *failed, central=False,
                 seconds=5.0 if case is EXPERT else 8.0)
    F = out["F_T"]
    return np.array([F[:, 0].max(), -F[:, 0].min(), np.hypot(F[:, 1], F[:, 2]).max(), np.hypot(F[:, 4], F[:, 5]).max()])


@pytest.mark.parametrize(("case", "failed", "load"), [
    (SHIPPED_CASE, "mechanism.clutch_share=0.5", 0), (SHIPPED_CASE, "mechanism.axial_brake_share=0.0", 1),
    (SHIPPED_CASE, "mechanism.lateral_brake1_travel=0.0", 3), (SHIPPED_CASE, "mechanism.friction_share=4.0", 0),
    (EXPERT, "mechanism.lateral_brake2_share=0.0", 3),
], ids=["clutch", "axial brakes", "lateral stuck", "lubrication", "lateral brake"])  # fmt: skip
def test_a_failed_part_changes_a_load_by_more_than_its_scatter(case, failed, load):
    sound = np.array([loads(case, draw=i)[load] for i in (1, 2, 3)])
    assert abs(loads(case, failed)[load] - sound.mean()) > 3.0 * sound.std(ddof=1), (loads(case, failed)[load], sound)


# --------------------------------------------------------------------------------------------------------- latches and sensors


def held(out):
    """Is the head still in the socket at the end of the loop? (its centre 0.437 m deep on the stops)"""
    return out["head_x"][-1] > 0.40


def test_one_jammed_latch_gives_no_capture_signal_though_three_hold_the_head():
    """DSG says that all latches have fired; without it the thrust is reversed 10 s after the first contact (6.1), against the latches."""
    channels = ("head_x", "latch2_phase", "latch1_phase")
    out = docked("mechanism.latch_jammed=2", "active_vehicle.thrust_n=300.0", channels=channels, seconds=13.0)
    assert not signal(out, "DSG").any() and (out["latch2_phase"] < 2).all() and out["latch1_phase"][-1] == 2
    assert out["sequence"][-1] == SEQUENCE["retreat"] and out["end"] == "time" and held(out)


def test_all_latches_jammed_the_ship_bounces_off_and_retreats():
    # on its way out the head touches latches and cone far in front of the nominal first contact
    out = docked("mechanism.latch_jammed=5", "active_vehicle.thrust_n=300.0", channels=("head_x",), seconds=60.0)
    assert not signal(out, "DSG").any() and out["end"] == "retreated" and not held(out)


def test_dead_capture_lever_holds_mechanically_and_says_nothing():
    channels = ("head_x", *(f"latch{k}_phase" for k in (1, 2, 3, 4)))
    out = docked("mechanism.capture_lever_dead=1", channels=channels, seconds=13.0)
    assert all(out[f"latch{k}_phase"][-1] == 2 for k in (1, 2, 3, 4)) and held(out)
    assert not signal(out, "DSG").any() and out["sequence"][-1] == SEQUENCE["retreat"]


def docked_by_hand(**failed):
    """The unit coaxial, latched, its planes 7 mm before they meet and so its pushers pressed by 13 mm. Returns part and pose."""
    part = ProbeCone(**(shipped("probe_cone_existing") | {"probe_start_m": 0.40} | failed))
    X, _ = part.glide(pose(-0.305 - 0.06), [0.1, 0, 0, 0, 0, 0], DT, int(round(0.06 / 0.1 / DT)))
    X, _ = part.glide(X, [-0.01, 0, 0, 0, 0, 0], DT, int(round(0.002 / 0.01 / DT)))
    return part, X


def test_a_dead_pusher_leaves_three_and_their_moment():
    """10 kN/m pressed by 13 mm at three of four places, 0.6 m from the axis."""
    free = {}
    for number in (0, 1, 3):
        part, X = docked_by_hand(pusher_dead=number)
        part.glide(X, np.zeros(6), DT, 200)
        free[number] = part.advance(X, np.zeros(6), DT, commands=RELEASE)["F_T"]
    for number, side in ((1, 1.0), (3, -1.0)):
        assert free[number][0] - free[0][0] == pytest.approx(-130.0, rel=1e-3)
        assert free[number][5] - free[0][5] == pytest.approx(side * 130.0 * 0.6, rel=1e-3)


@pytest.mark.parametrize(("number", "fired"), [(0, []), (2, [2]), (5, [1, 2, 3, 4])])
def test_a_latch_that_is_not_drawn_in_stays_in_its_groove(number, fired):
    part, X = docked_by_hand(latch_stays=number)
    part.glide(X, np.zeros(6), DT, 200)
    for _ in range(20):
        out = part.advance(X, np.zeros(6), DT, commands=RELEASE)
    assert [k for k in (1, 2, 3, 4) if out["signals"] & BITS["mechanism_signal"][f"latch{k}"]] == fired


def test_without_the_bottom_sensor_the_docking_does_not_start_and_the_thrust_ends_with_its_interval():
    """The start of docking is capture and bottom together: the drive is never on; the ship is pressed on for the interval's time only."""
    out = docked("mechanism.dk2_dead=true", "active_vehicle.thrust_n=300.0", seconds=38.0)
    assert signal(out, "DSG").any() and out["sequence"][-1] == SEQUENCE["manual"] and not signal(out, "drive_running").any()
    captured, stopped = (out["time"][np.argmax(out["sequence"] == SEQUENCE[name])] for name in ("captured", "manual"))
    thrust = out["control_A"][:, 0]
    assert stopped - captured == pytest.approx(30.0, abs=0.01)
    assert fault_names(out["last"]) == ["sequence_interval"]  # a note: it stops nothing
    between = (out["time"] > captured + 0.01) & (out["time"] < stopped - 0.01)
    assert (thrust[between] == 300.0).all() and not thrust[out["time"] > stopped + 0.01].any()


def test_the_measured_force_stands_in_for_a_dead_contact_sensor():
    """On the stand the contact flag of the load cell says what DK1 does not: thrust and timers begin with the force."""
    whole, dead = (docked(*o, "active_vehicle.thrust_n=300.0", seconds=3.0, central=False) for o in ((), ("mechanism.dk1_dead=true",)))
    assert signal(whole, "DK1").any() and not signal(dead, "DK1").any()
    pressing = [out["time"][np.argmax(out["control_A"][:, 0] > 0.0)] for out in (whole, dead)]
    assert 0.0 <= pressing[1] - pressing[0] < 0.05
    assert signal(dead, "DSG").any() and dead["sequence"][-1] == whole["sequence"][-1] == SEQUENCE["damping"]


# ---------------------------------------------------------------------------------------------------------------- lubrication


def test_lost_lubrication_raises_the_plateau_by_the_screw_s_friction():
    """i m/(1 - k) with k = 0.20 instead of 0.05: 19 % more at the same slip moment; and the drive works against more friction."""
    dry = docked("mechanism.friction_share=4.0", unit="modified", channels=("clutch_slip1",))
    whole = docked(unit="modified", channels=("clutch_slip1",))
    expected = (1 - FRICTION) / (1 - 4 * FRICTION)
    assert plateau(dry, "clutch_slip1") / plateau(whole, "clutch_slip1") == pytest.approx(expected, rel=0.03)
    assert abs(retraction_speed("mechanism.friction_share=4.0")) < 0.95 * abs(retraction_speed())


def test_a_screw_that_locks_itself_is_refused():
    with pytest.raises(ValueError, match="friction_share: the ball screw would lock itself, friction 1, limit below 1"):
        ProbeCone(friction_share=10.0, screw_friction=0.1)
    with pytest.raises(ConfigurationError, match="latch_jammed"):
        load_test(SHIPPED / "programmes" / "virtual_docking.toml", ["mechanism.latch_jammed=6"])


# ------------------------------------------------------------------------------------------------------------------- validity


def test_what_left_its_valid_range_is_named_with_its_place():
    """At 0.5 m/s the head goes through the bottom's law at once: part, number, depth, limit, place in the target port, time."""
    names = tuple(f"invalid_{c}" for c in ("part", "number", "value", "limit", "at_x", "at_y", "at_z", "time"))
    out = docked("initial_conditions.velocity_x_m_s=0.5", "mechanism.penetration_max_m=0.0001", channels=names, seconds=2.0)
    assert out["end"] == "tripped" and "mechanism_invalid" in fault_names(out["last"])
    first = int(np.argmax(out["invalid_part"] > 0))
    part, number, value, limit, x, y, z, t = (float(out[n][-1]) for n in names)
    assert ProbeCone.INVALID[int(part)][:2] == ("head", "penetration") and number == 1 and value > limit == 0.0001
    assert x == pytest.approx(0.5, abs=0.01) and abs(y) < 1e-6 and abs(z) < 1e-6
    # remembered as it was first
    assert all(out[n][first] == out[n][-1] for n in names) and t > DT
