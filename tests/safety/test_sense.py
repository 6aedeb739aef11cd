"""Readings that no stand can have: each fault just below its limit and just above it."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.context import Mounting, Start
from rt_kernels.layout import BITS, CODES
from tests.safety.conftest import PERIOD, names

PHASE, MOTION, SIGNAL, DRIVE = CODES["phase"], CODES["motion"], BITS["mechanism_signal"], BITS["drive_status"]
START = Start(X_TA=(0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), V_TA=(0.12, 0.0, 0.0, 0.0, 0.0, 0.0))
RATE = 0.5  # m/s, of the legs


@pytest.fixture
def judged(stage, quiet):
    """Function (samples, **keys) → faults after two ticks of start and these samples, but for the note of a force without the flag of a
    contact."""

    def judge(samples, **keys):
        made = stage(start=START, **keys)
        start = quiet(2, phase=PHASE["idle"])
        start["measured_leg"] = samples["measured_leg"][0]
        made.through(start)
        made.through(samples)
        return names(samples["faults"][-1]) - {"tare_drift"}

    return judge


def jumping(samples, leg, way, at=3):
    """A measured leg that jumps and comes back after 20 ticks."""
    samples["measured_leg"][at : at + 20, leg] += way
    return samples


@pytest.mark.parametrize("leg", [0, 5])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_leg_is_not_faster_than_twice_its_limit(judged, quiet, leg, sign):
    most = 0.005 + 2.0 * RATE * PERIOD
    assert judged(jumping(quiet(40), leg, sign * (most - 1e-6))) == set()
    s = jumping(quiet(40), leg, sign * (most + 1e-6))
    assert judged(s) == {"leg_jump"}
    assert s["trip_tick"][-1] == 3
    assert judged(jumping(quiet(40), leg, sign * 0.015), leg_jump_m=0.0) == set()


def test_what_a_leg_did_while_it_was_not_heard_is_no_jump(judged, quiet):
    """Ten lost answers: eleven periods of way."""
    for way, fault in ((0.005 + 11 * 2.0 * RATE * PERIOD - 1e-6, set()), (0.005 + 11 * 2.0 * RATE * PERIOD + 1e-6, {"leg_jump"})):
        s = quiet(40)
        s["measured_leg"][13:, 2] += way
        s["drive_status"][3:13, 2] = DRIVE["stale"]
        assert judged(s, following_max_m=0.5) == fault


def test_a_length_that_is_not_a_number_is_no_jump_and_hides_none(judged, quiet):
    s = quiet(8)
    s["measured_leg"][3, 1] = np.nan
    assert judged(s.copy()) == set()
    s["measured_leg"][4:, 1] += 0.01
    assert judged(s) == {"leg_jump"}


def test_before_the_setpoints_start_the_legs_are_the_starts_to_judge(stage, quiet):
    s = quiet(4, phase=PHASE["idle"])
    s["measured_leg"][0, 2] += 0.01
    stage().through(s)
    assert not s["faults"].any()


@pytest.mark.parametrize("phase", ["position", "approach", "closing"])
def test_mean_force_before_the_loop_is_closed(judged, quiet, phase):
    """A constant force of one direction; its mean starts at zero and never overstates."""
    for force, stops in ((9.9, False), (10.6, True)):
        s = quiet(3000, phase=PHASE[phase], motion=MOTION["follow_profile"])
        s["F_T"][:, :3] = force * np.array([2 / 3, -2 / 3, 1 / 3])
        assert judged(s.copy()) == ({"tare_wrong"} if stops else set())
        s["contact"] = phase != "closing"  # above the threshold of a contact, too
        assert judged(s) == ({"tare_wrong"} if stops else set())
    assert judged(s, tare_max_n=0.0) == set()


def test_mean_force_in_the_closed_loop_does_not_stop(judged, quiet):
    s = quiet(3000)
    s["F_T"][:, 0] = 50.0
    assert judged(s) == set()


def test_a_contact_of_units_that_are_apart(judged, quiet):
    for before, fault in ((0.0299, set()), (0.0301, {"force_without_contact"})):
        s = quiet(30, contact=1)
        s["X_TA_measured"][:, 0] = START.X_TA[0] - before
        assert judged(s) == fault
        assert judged(s.copy(), apart_m=0.0) == set()
        s["mechanism_state"] = SIGNAL["DSG"]  # captured units hold each other at any distance
        assert judged(s) == set()
    s = quiet(30, contact=1, motion=MOTION["follow_profile"])
    s["X_TA_measured"][:, 0] = 0.0
    assert judged(s) == set()
    # a unit that has been thrown back drags at the target far in front; a loop that is closed again judges again
    s = quiet(30, contact=1)
    s["X_TA_measured"][:10, 0], s["X_TA_measured"][10:, 0] = START.X_TA[0] - 0.0299, START.X_TA[0] - 0.05
    assert judged(s) == set()
    s["motion"][10] = MOTION["follow_profile"]
    assert judged(s) == {"force_without_contact"}


COURSE = {"course_step_m": 0.01, "course_force_n": [50.0, 200.0, 400.0]}


def driven(quiet, share, depth=0.035, ticks=100, force=None):
    """Units that get `depth` into each other and out again, with `share` of the course's force."""
    s = quiet(2 * ticks)
    way = depth * np.concatenate([np.arange(ticks), np.arange(ticks)[::-1]]) / ticks
    s["X_TA_measured"][:, 0] = START.X_TA[0] + way
    least = np.array(COURSE["course_force_n"])[np.minimum((way / COURSE["course_step_m"] + 1e-9).astype(int), 2)]
    s["F_T"][:, 0] = share * least if force is None else force
    return s


def test_force_at_each_new_depth_against_the_prediction(judged, quiet):
    assert judged(driven(quiet, 1.0), **COURSE) == set()
    assert judged(driven(quiet, 0.76), **COURSE) == set()
    assert judged(driven(quiet, 0.74), **COURSE) == {"contact_without_force"}
    assert judged(driven(quiet, 0.0)) == set()  # no prediction, nothing to judge
    assert judged(driven(quiet, 0.0), **COURSE, course_share=0.0) == set()


@pytest.mark.parametrize(("greatest", "floor"), [(1000.0, 100.0), (200.0, 50.0), (60.0, 20.0)])
def test_the_course_is_judged_from_a_quarter_of_its_greatest_force(judged, quiet, greatest, floor):
    for least, fault in ((floor - 0.1, set()), (floor, {"contact_without_force"})):
        s = driven(quiet, 0.0, depth=0.0099)
        assert judged(s, course_step_m=0.01, course_force_n=[least, greatest]) == fault


def test_the_course_of_a_small_force_and_of_the_way_back_is_not_judged(judged, quiet):
    assert judged(driven(quiet, 0.0, depth=0.0099), **COURSE) == set()
    s = driven(quiet, 1.0)
    s["F_T"][100:, 0] = 0.0  # it lets go where it turns
    assert judged(s, **COURSE) == set()


def test_a_stuck_force_that_was_enough_once_is_not_behind_the_end_of_the_course(judged, quiet):
    s = driven(quiet, 1.0, depth=0.06, force=250.0)  # 250 of 400
    assert judged(s, **COURSE) == {"contact_without_force"}
    assert START.X_TA[0] + 0.02 < s["X_TA_measured"][int(s["trip_tick"][-1]), 0] < START.X_TA[0] + 0.025


def captured(s, way, force, since=0):
    """Units that are captured from record `since` on, this deep in each other, with this axial force."""
    s["X_TA_measured"][:, 0], s["F_T"][:, 0] = START.X_TA[0] + way, force
    s["mechanism_state"][since:] |= BITS["mechanism_signal"]["DSG"]
    return s


def test_the_capture_has_a_course_of_its_own(judged, quiet):
    way = np.concatenate([np.full(50, 0.005), 0.035 * np.arange(150) / 150])
    least = np.array(COURSE["course_force_n"])[np.minimum((way / 0.01 + 1e-9).astype(int), 2)]
    keys = {"course_step_m": 0.01, "captured_force_n": COURSE["course_force_n"]}
    for share, fault in ((0.76, set()), (0.74, {"contact_without_force"})):
        assert judged(captured(quiet(200), way, share * least, since=50), **keys) == fault
    assert judged(captured(quiet(200), way, 0.0 * least, since=200), **keys) == set()  # of what is not captured the other one speaks
    # what was enough before the capture does not count since
    forgotten = captured(quiet(200), np.full(200, 0.025), np.where(np.arange(200) < 100, 1000.0, 100.0), since=100)
    assert judged(forgotten, **keys) == {"contact_without_force"}
    assert 100 < forgotten["trip_tick"][-1] < 130


def test_the_pull_of_the_captured_units_by_the_way_out(judged, quiet):
    way = 0.03 - 0.05 * np.arange(200) / 200
    keys = {"course_step_m": 0.01, "captured_force_n": [1.0] * 3, "pulled_force_n": [0.0, 0.0, 0.0, 100.0, 200.0]}
    least = np.array(keys["pulled_force_n"])[np.minimum(((0.03 - way) / 0.01 + 1e-9).astype(int), 4)]
    for share, fault in ((0.76, set()), (0.74, {"contact_without_force"}), (-1.0, {"contact_without_force"})):
        assert judged(captured(quiet(200), way, -share * least), **keys) == fault


def test_units_further_aside_than_the_prediction(judged, quiet):
    keys = {"course_step_m": 0.01, "course_aside_m": [0.06, 0.04]}
    for depth, aside, fault in ((0.005, 0.0799, set()), (0.005, 0.0801, {"contact_without_force"}), (-0.005, 1.0, set()),
                                (0.03, 0.0549, set()), (0.03, 0.0551, {"contact_without_force"})):  # fmt: skip
        s = quiet(5)
        s["X_TA_measured"][:, 0], s["X_TA_measured"][:, 1:3] = START.X_TA[0] + depth, aside * np.array([0.6, -0.8])
        assert judged(s, **keys) == fault


def test_gaps_shorter_than_the_memory_are_none(judged, quiet):
    s = driven(quiet, 1.0)
    s["F_T"][60:78, 0] = 0.0
    assert judged(s, **COURSE) == set()
    s["F_T"][40:90, 0] = 0.0
    assert judged(s, **COURSE) == {"contact_without_force"}


@pytest.mark.parametrize(("predicted", "limit"), [(1000.0, 1200.0), (100.0, 200.0)])
def test_force_against_the_predicted_peak(judged, quiet, predicted, limit):
    wide = {"force_limit_n": [5000.0] * 3}
    for force, fault in ((limit - 0.1, set()), (limit + 0.1, {"force_beyond_prediction"})):
        s = quiet(5)
        s["F_T"][:, :3] = force * np.array([2 / 3, -2 / 3, 1 / 3])
        assert judged(s, predicted_force_n=predicted, limits=wide) == fault


def test_a_course_that_cannot_be_is_refused(stage):
    with pytest.raises(ValueError, match="course_force_n: 257 numbers, limit 256"):
        stage(start=START, course_force_n=[1.0] * 257, course_step_m=0.001)
    with pytest.raises(ValueError, match="course_force_n: needs course_step_m"):
        stage(start=START, course_force_n=[1.0])
    with pytest.raises(ValueError, match="course_aside_m: needs course_step_m"):
        stage(start=START, course_aside_m=[1.0])


# ------------------------------------------------------------------------------------------------- legs against the load cell
TURN = Rotation.from_euler("xyz", [10.0, -5.0, 8.0], degrees=True)  # of the platform
PORT = Rotation.from_euler("xyz", [30.0, 20.0, -40.0], degrees=True)  # of the fixed port, and of the one on the platform
HUNG = {
    unit: Mounting(unit_on_load_cell=unit, load_cell_on="floor", X_WF=(4.3, 0.0, 0.0, *PORT.as_quat()),
                   X_PM=(0.3, 0.0, 0.0, *PORT.inv().as_quat()))
    for unit in ("target", "active")
}  # fmt: skip
WEIGHT = np.array([30000.0, 0.0, 0.0, 100.0, -200.0, 300.0])  # of the platform on the legs: force, moment at P, W axes
CONTACT = 3000.0 * np.array([-2 / 3, 2 / 3, 1 / 3])  # on the platform, W axes
BEFORE, AFTER = 20, 400  # ticks; the second ones are eight times the averaging time
LEAST, MOST = 0.999, 1.001  # of what it is behind that time


@pytest.fixture
def weighed(judged, quiet, platform):
    """Function (unit on the load cell, share of the contact that the load cell shows, change(samples, directions of the legs), **keys) ->
    faults of a run whose platform carries its weight, and in the closed loop the contact."""

    def judge(unit="target", share=1.0, change=lambda s, n: None, limit=100.0, **keys):
        s = quiet(BEFORE + AFTER)
        s["motion"][:BEFORE] = MOTION["follow_profile"]
        s["X_WP_measured"] = (*platform.neutral_pose[:3], *TURN.as_quat())
        arms = TURN.apply(platform.platform_joints)
        n = platform.neutral_pose[:3] + arms - platform.base_joints
        n /= np.linalg.norm(n, axis=1)[:, None]
        J = np.hstack([n, np.cross(arms, n)])
        s["leg_force"] = np.linalg.solve(J.T, WEIGHT)
        s["leg_force"][BEFORE:] -= np.linalg.solve(J.T, [*CONTACT, 0.0, 0.0, 0.0])
        # the active unit exerts it on the target: what the platform feels is the reaction where it carries the active one
        on_target = PORT.inv().apply(-CONTACT) if unit == "target" else (TURN * PORT.inv()).inv().apply(CONTACT)
        s["F_T"][BEFORE:, :3] = share * on_target
        change(s, n)
        wide = {"force_limit_n": [1e5] * 3, "moment_limit_n_m": [1e5] * 3}
        return judged(s, mounting=HUNG[unit], leg_balance_n=limit, limits=wide, leg_jump_m=0.0, following_max_m=0.5, **keys)

    return judge


@pytest.mark.parametrize("unit", ["target", "active"])
def test_legs_and_load_cell_weigh_the_same_contact(weighed, unit):
    assert weighed(unit) == set()
    for share in (0.0, 0.1, 3.0):
        assert weighed(unit, share) == {"leg_forces_differ"}
        assert weighed(unit, share, limit=0.0) == set()
    assert weighed(unit, 0.9, limit=300.0 * MOST) == set()
    assert weighed(unit, 0.9, limit=300.0 * LEAST) == {"leg_forces_differ"}


def test_an_exchanged_axis_of_the_load_cell_is_not_what_the_legs_weigh(weighed):
    def exchange(s, n):
        s["F_T"][:, [0, 1]] = s["F_T"][:, [1, 0]]

    assert weighed(change=exchange) == {"leg_forces_differ"}


def test_what_the_platform_needs_to_accelerate_is_not_the_contact_s(weighed):
    def accelerate(s, n):
        """A constant 0.5 m/s2 of 2000 kg for the length of the contact, by the legs alone."""
        s["V_WP_measured"][BEFORE:, 1] = 0.5 * PERIOD * np.arange(1, AFTER + 1)
        s["leg_force"][BEFORE:] += np.linalg.lstsq(n.T, [0.0, 2000.0 * 0.5, 0.0], rcond=None)[0]

    assert weighed(change=accelerate, moved_mass_kg=2000.0) == set()
    assert weighed(change=accelerate, moved_mass_kg=2000.0 * 0.89) == {"leg_forces_differ"}
    assert weighed(change=accelerate) == {"leg_forces_differ"}


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_friction_of_a_sliding_leg_is_known_and_of_a_resting_one_hides(weighed, sign):
    friction = {"leg_friction_n": 300.0, "leg_stiction_n": 300.0, "leg_viscous_n_s_per_m": 2000.0}

    def slide(s, n, rate=sign * 0.05):
        s["measured_leg_rate"][BEFORE:] = rate
        s["leg_force"][BEFORE:] += sign * 300.0 + 2000.0 * rate

    def rest(s, n):
        """Six legs that hold their whole friction: along X that is 300 N times the sum of their directions."""
        s["leg_force"][BEFORE:] += sign * 300.0

    assert weighed(change=slide, **friction) == set()
    assert weighed(change=slide) == weighed(change=slide, **(friction | {"leg_viscous_n_s_per_m": 0.0})) == {"leg_forces_differ"}
    assert weighed(change=rest, limit=1.0, **friction) == set()
    assert weighed(change=rest, limit=1.0, leg_friction_n=290.0, leg_stiction_n=290.0) == {"leg_forces_differ"}
    # a leg that slides hides no more than the difference of both
    assert weighed(change=slide, limit=1.0, **(friction | {"leg_friction_n": 200.0})) == set()
    assert weighed(change=slide, limit=1.0, **(friction | {"leg_friction_n": 200.0, "leg_stiction_n": 290.0})) == {"leg_forces_differ"}


def test_legs_that_say_no_force_are_not_held_against_the_cell(weighed):
    def silent(s, n):
        s["leg_force"] = 0.0

    def one_silent(s, n):
        s["leg_force"][BEFORE:, 4] = 0.0

    assert weighed(change=silent) == set()
    assert weighed(change=one_silent, share=1.0, limit=1500.0) == {"leg_forces_differ"}


def test_a_force_that_is_no_number_leaves_the_balance_as_it_was(weighed):
    def no_number(s, n):
        s["leg_force"][BEFORE + 5, 2] = s["measured_leg_rate"][BEFORE + 6, 1] = np.nan

    assert weighed(change=no_number) == {"leg_force_limit"}


def test_friction_at_rest_below_that_of_sliding_is_refused(stage):
    with pytest.raises(ValueError, match="leg_stiction_n: 10.0 N is below leg_friction_n = 20.0 N"):
        stage(leg_friction_n=20.0, leg_stiction_n=10.0)
