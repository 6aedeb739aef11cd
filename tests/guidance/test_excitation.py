"""Programmed motion of an identification run: each part against its formula, consistent derivatives, phases and ends."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.guidance.excitation import Excitation
from rt_kernels.layout import BITS, CODES, FAULTS
from tests.first_sample import first_sample

PERIOD = 1e-3
PHASE, MOTION, COMMAND, END, STATE = (CODES[name] for name in ("phase", "motion", "command", "end_cause", "safety_state"))
X_0 = np.concatenate([[-0.9, 0.02, 0.03], Rotation.from_rotvec([0.1, -0.2, 0.3]).as_quat()])
DIRECTION = (0.6, -0.2, 0.3, 0.5, 0.1, -0.4)
SHORT = dict(direction=DIRECTION, slow_amplitude_m=0.01, slow_hz=2.0, slow_periods=1, lines_hz=(1.0, 2.5, 4.0), rate_rms_m_s=0.05,
             multisine_s=2.0, periods=1, chirp_hz=(0.5, 6.0), chirp_s=2.0, chirp_rate_m_s=0.04, fade_s=0.3)  # fmt: skip


class Run:
    def __init__(self, **keys):
        self.stage = Excitation(period_s=PERIOD, **SHORT | keys)
        self.s = first_sample(X_TA_measured=X_0, safety_state=STATE["not_armed"])

    def tick(self, **fields):
        for name, value in fields.items():
            self.s[name] = value
        self.stage.step(self.s)
        return self.s[0]

    def moving(self):
        self.tick(safety_state=STATE["following"])
        assert self.s["phase"][0] == PHASE["approach"]
        return self

    def through(self):
        """(time, profile pose, twist, acceleration) of every tick of the motion."""
        out = []
        while self.tick()["phase"] == PHASE["approach"]:
            out.append([self.s[name][0].copy() for name in ("profile_X_TA", "profile_V_TA", "profile_A_TA")])
        X, V, A = (np.array(column) for column in zip(*out, strict=True))
        return PERIOD * np.arange(len(X)), X, V, A


@pytest.fixture(scope="module")
def motion():
    run = Run().moving()
    return run.stage, *run.through()


def fade(t, length, over):
    x = np.clip(np.minimum(t, length - t) / over, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x * x)


def wanted(stage, t):
    """s(t) of the docstring's three formulas, faded; zero in the pauses."""
    s = np.zeros_like(t)
    for name, (begin, length) in stage.schedule.items():
        here = (t >= begin) & (t < begin + length)
        u = t[here] - begin
        if name == "slow":
            part = 0.01 * np.sin(2 * np.pi * 2.0 * u)
        elif name == "multisine":
            n = len(stage.lines)
            part = sum(a * np.sin(2 * np.pi * (f * u - 0.5 * k * (k + 1) / n)) for k, (f, a) in enumerate(stage.lines))
        else:
            rate = (6.0 - 0.5) / 2.0
            part = 0.04 / (2 * np.pi * (0.5 + rate * u)) * np.sin(2 * np.pi * (0.5 * u + 0.5 * rate * u * u))
        s[here] = part * fade(u, length, 0.3)
    return s


def test_motion_is_that_of_the_formulas_along_one_direction(motion):
    stage, t, X, _, _ = motion
    s = wanted(stage, t)
    assert np.abs(s).max() > 0.009
    np.testing.assert_allclose(X[:, :3], X_0[:3] + np.outer(s, DIRECTION[:3]), rtol=0, atol=1e-9)
    turned = Rotation.from_rotvec(np.outer(s, DIRECTION[3:])) * Rotation.from_quat(X_0[3:])
    assert np.abs((turned.inv() * Rotation.from_quat(X[:, 3:])).magnitude()).max() < 1e-8


def test_twist_and_acceleration_are_the_derivatives(motion):
    """Central differences along the direction, in the slow sine and the multisine."""
    stage, t, X, V, A = motion
    periodic = t < stage.schedule["chirp"][0]
    X, V, A = X[periodic], V[periodic], A[periodic]
    assert np.abs(V).max() > 0.05
    np.testing.assert_allclose((X[2:, :3] - X[:-2, :3]) / (2 * PERIOD), V[1:-1, :3], rtol=0, atol=1e-4)
    np.testing.assert_allclose((V[2:] - V[:-2]) / (2 * PERIOD), A[1:-1], rtol=0, atol=5e-3)
    np.testing.assert_allclose(V, np.outer(V @ DIRECTION / np.dot(DIRECTION, DIRECTION), DIRECTION), rtol=0, atol=1e-12)


def test_lines_share_the_rate_and_the_schedule_is_that_of_the_keys(motion):
    stage = motion[0]
    rates = [2 * np.pi * f * a for f, a in stage.lines]
    assert rates == pytest.approx([rates[0]] * 3) and np.sqrt(0.5 * np.sum(np.square(rates))) == pytest.approx(0.05)
    assert [length for _, length in stage.schedule.values()] == pytest.approx([2 / 2.0 + 0.6, 2 * 2.0 + 0.6, 2.0])
    begins = [begin for begin, _ in stage.schedule.values()]
    assert begins == pytest.approx([0.3, 0.3 + 1.6 + 0.3, 0.3 + 1.6 + 0.3 + 4.6 + 0.3])


def test_it_waits_for_legs_and_arming_where_the_platform_stands():
    run = Run()
    for fields in ({"forward_kinematics_status": 4}, {"forward_kinematics_status": 0}):
        for _ in range(3):
            assert run.tick(**fields)["phase"] == PHASE["idle"]
    np.testing.assert_array_equal(run.s["profile_X_TA"][0], X_0)
    run.tick(forward_kinematics_status=4, safety_state=STATE["following"])
    assert run.s["phase"][0] == PHASE["idle"]
    run.tick(forward_kinematics_status=0)
    assert run.s["phase"][0] == PHASE["approach"] and run.s["phase_time"][0] == 0.0


def test_end_is_complete_in_time(motion):
    stage, t = motion[0], motion[1]
    begin, length = stage.schedule["chirp"]
    assert len(t) == pytest.approx((begin + length + 0.3) / PERIOD, abs=1.5)
    run = Run().moving()
    run.through()
    assert run.s["phase"][0] == PHASE["ended"] and run.s["end_cause"][0] == END["complete"]


def test_skipped_periods_are_made_up_in_time():
    one, three = Run().moving(), Run().moving()
    for _ in range(300):
        for _ in range(3):
            one.tick()
        three.tick(periods=3)
    one.tick()
    three.tick(periods=1)
    np.testing.assert_allclose(three.s["profile_X_TA"], one.s["profile_X_TA"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("command", ["stop", "park"])
def test_stop_and_park_end_the_motion(command):
    run = Run().moving()
    run.tick(command_code=COMMAND[command])
    assert run.s["phase"][0] == PHASE["ended"] and run.s["end_cause"][0] == END["stopped"]


@pytest.mark.parametrize("held", ["held", "not_armed"])
def test_trip_freezes_until_the_stand_is_held(held):
    run = Run().moving()
    run.tick(faults=next(mask for name, mask, *_ in FAULTS if name == "operator_stop"))
    assert run.s["phase"][0] == PHASE["fault"] and run.s["motion"][0] == MOTION["freeze"] and run.s["end_cause"][0] == END["tripped"]
    assert run.tick()["phase"] == PHASE["fault"]
    run.tick(safety_state=STATE[held])
    assert run.s["phase"][0] == PHASE["ended"]


def test_lost_record_ends_it_or_is_left_to_the_trip():
    run = Run().moving()
    run.tick(command_code=COMMAND["record_lost"], command_arg=1.0)
    assert run.s["guidance_fault"][0] == BITS["guidance_fault"]["record_required"] and run.s["phase"][0] == PHASE["approach"]
    run.tick(command_code=COMMAND["record_lost"], command_arg=0.0)
    assert run.s["guidance_fault"][0] == BITS["guidance_fault"]["record_lost"]
    assert run.s["phase"][0] == PHASE["ended"] and run.s["end_cause"][0] == END["record_lost"]


def test_abort_reaches_the_safety_stage():
    run = Run().moving()
    run.tick(command_code=COMMAND["abort"])
    assert run.s["guidance_fault"][0] == BITS["guidance_fault"]["operator_stop"] and run.s["phase"][0] == PHASE["approach"]


@pytest.mark.parametrize(("lines", "says"), [((1.0, 2.3), "no multiple"), ((1.0,), "got 1"), (tuple(range(1, 34)), "got 33")])
def test_lines_that_cannot_be(lines, says):
    with pytest.raises(ValueError, match=says):
        Run(lines_hz=lines)


SIX = {"six_rate_rms_m_s": (0.02, 0.004), "six_hz": (0.5, 6.0), "six_period_s": 2.0, "six_periods": 1, "six_radius_m": 2.0, "high_s": 0.5,
       "high_hz": (20.0, 60.0), "poses": [[0.1, 0.0, 0.0, 0.0, 0.0, 0.2], [0.0, -0.1, 0.0, 0.1, 0.0, 0.0]], "move_s": 0.6, "still_s": 0.2,
       "tap_s": 0.5}  # fmt: skip


@pytest.fixture(scope="module")
def six():
    run = Run(**SIX).moving()
    schedule = run.stage.schedule
    t, X, V, A = run.through()
    turned = (Rotation.from_quat(X[:, 3:]) * Rotation.from_quat(X_0[3:]).inv()).as_rotvec()
    return run.stage, schedule, t, np.hstack([X[:, :3] - X_0[:3], turned]), V, A


def test_each_direction_answers_by_its_own_lines(six):
    """Over a period a direction moves on its lines alone, with its rate, turning ones over the radius; the second level is a fifth."""
    stage, schedule, t, q, V, _ = six
    n = round(2.0 / PERIOD)
    rates = []
    for level in ("six 1", "six 2"):
        first = round((schedule[level][0] + stage.fade_s) / PERIOD) + n
        lines = np.fft.rfft(q[first : first + n], axis=0)
        for direction in range(6):
            own = [round(f * 2.0) for f, d in stage.six_lines if d == direction]
            others = np.delete(np.abs(lines[:, direction]), [0, *own])
            assert len(own) == 2 and np.abs(lines[own, direction]).min() > 1e3 * others.max()
        rates.append(np.sqrt(np.mean(V[first : first + n] ** 2, axis=0)))
    assert rates[0] == pytest.approx([0.02] * 3 + [0.01] * 3, rel=0.02)
    assert rates[0] == pytest.approx(5.0 * rates[1], rel=1e-3)


def test_six_directions_have_consistent_derivatives(six):
    """Rate and angular rate are those of the pose, acceleration that of the rate, to the third order in the rotation vector; the chirps,
    whose rates leave out the slope of their amplitude, apart."""
    _, schedule, t, q, V, A = six
    exact = np.ones(len(t), bool)
    for name in ("chirp", "high"):
        begin, length = schedule[name]
        exact &= (t < begin - 2 * PERIOD) | (t > begin + length + 2 * PERIOD)
    R = Rotation.from_rotvec(q[:, 3:])
    w = (R[2:] * R[:-2].inv()).as_rotvec() / (2 * PERIOD)
    turning = np.abs(w - V[1:-1, 3:])[exact[1:-1]]
    assert turning.max() < 1e-3 * np.abs(V[exact, 3:]).max()
    moving = np.abs(np.gradient(q[:, :3], PERIOD, axis=0) - V[:, :3])[exact]
    assert moving[1:-1].max() < 1e-3 * np.abs(V[exact, :3]).max()
    calm = t > schedule["poses"][0]
    assert np.abs(np.gradient(V, PERIOD, axis=0) - A)[calm][2:-2].max() < 0.02 * np.abs(A[calm]).max()


def test_poses_are_reached_and_left_and_the_tap_is_still(six):
    _, schedule, t, q, V, _ = six
    begin, length = schedule["poses"]
    assert length == pytest.approx(3 * 0.8)
    for k, pose in enumerate((*SIX["poses"], [0.0] * 6)):
        at = (t > begin + 0.8 * k + 0.601) & (t < begin + 0.8 * k + 0.79)
        assert np.abs(q[at] - pose).max() < 1e-9 and np.abs(V[at]).max() < 1e-9
    tap = (t > schedule["tap"][0]) & (t < schedule["tap"][0] + 0.5)
    assert tap.sum() > 400 and np.abs(q[tap]).max() < 1e-12


@pytest.mark.parametrize(("keys", "says"), [({"six_rate_rms_m_s": (0.01,) * 7}, "at most 6 rates"),
                                            ({"poses": [[0.0] * 6] * 13}, "12 poses"),
                                            ({"six_hz": (1.0, 2.0)}, "12...256 lines")])  # fmt: skip
def test_six_directions_that_cannot_be(keys, says):
    with pytest.raises(ValueError, match=says):
        Run(**SIX | keys)


def test_without_a_person_the_platform_stands_where_it_was_armed():
    run = Run(auto_start=False)
    for n in range(300):
        here = X_0 + np.r_[1e-3 * n, np.zeros(6)]  # what is measured wanders
        seen = run.tick(safety_state=STATE["following"], X_TA_measured=here)
        assert seen["phase"] == PHASE["idle"] and seen["motion"] == MOTION["follow_profile"]
        np.testing.assert_array_equal(seen["profile_X_TA"], X_0)
    assert run.tick(command_code=COMMAND["start"])["phase"] == PHASE["approach"]
    np.testing.assert_allclose(run.tick(command_code=0)["profile_X_TA"], X_0, atol=1e-12)


@pytest.mark.parametrize("command", ["stop", "park"])
def test_who_waits_for_the_start_can_end_the_run(command):
    run = Run(auto_start=False)
    run.tick(safety_state=STATE["following"])
    ended = run.tick(command_code=COMMAND[command])
    assert ended["phase"] == PHASE["ended"] and ended["end_cause"] == END["stopped"]
    assert Run(auto_start=False).tick(command_code=COMMAND["start"])["phase"] == PHASE["idle"], "the setpoints have not started"
