"""Readings that no stand can have: each fault just below its limit and just above it."""

import numpy as np
import pytest

from rt_kernels.context import Start
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
    with pytest.raises(ValueError, match="course_force_n: 65 numbers, limit 64"):
        stage(start=START, course_force_n=[1.0] * 65, course_step_m=0.001)
    with pytest.raises(ValueError, match="course_force_n: needs course_step_m"):
        stage(start=START, course_force_n=[1.0])
