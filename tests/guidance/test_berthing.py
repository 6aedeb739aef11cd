"""Berthing guidance: the operator's rates, Step and Insert against their closed forms, hold, faults, the stick that comes back."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.context import Start
from rt_kernels.guidance.berthing import BerthingGuidance
from rt_kernels.layout import BITS, CODES
from tests.first_sample import first_sample

T = 0.001
COMMANDS, PHASE, MODE, FRAME = CODES["command"], CODES["phase"], CODES["arm_mode"], CODES["rate_frame"]
SUPERVISORY, MOTION, END, FOLLOWING = CODES["supervisory"], CODES["motion"], CODES["end_cause"], CODES["safety_state"]["following"]
START = [-0.5, 0.02, -0.01, *Rotation.from_euler("xyz", [3.0, -2.0, 1.0], degrees=True).as_quat()]


class Run:
    """The guidance alone: an arm that does at once what it is asked, or with a lag and a swing that a test puts in."""

    def __init__(self, **keys):
        start = Start(np.array(START), np.zeros(6))
        self.part = BerthingGuidance(period_s=T, start=start, **{"start_distance_m": 0.1, "sticks_required": False, "settle_s": 0.1} | keys)
        self.sample = first_sample(measured_leg=4.0, safety_state=FOLLOWING, X_TA=START, X_TA_measured=START, profile_X_TA=START)
        self.tick = 0
        self.lag, self.v = 0.0, np.zeros(6)

    def __getattr__(self, name):
        value = self.sample[name][0]
        return value.copy() if isinstance(value, np.ndarray) else value

    def step(self, command=None, *arguments):
        s = self.sample
        s["tick"], s["time_ns"] = self.tick, round(self.tick * T * 1e9)
        s["command_code"] = COMMANDS[command] if command else 0
        s["command_arg"] = 0.0
        s["command_arg"][0, : len(arguments)] = arguments
        self.part.step(s)
        self.tick += 1
        if s["motion"][0] == MOTION["follow_profile"]:
            for a, b in (("X_TA", "profile_X_TA"), ("V_TA", "profile_V_TA"), ("X_TA_measured", "profile_X_TA")):
                s[a] = s[b]
        else:
            self.move()

    def move(self):
        """The interface follows the rates, with the lag of a first-order arm; the axes are its own or the target's."""
        s = self.sample
        wanted = s["operator_rate"][0].copy()
        self.v += (wanted - self.v) * (T / self.lag if self.lag else 1.0)
        R = Rotation.from_quat(s["X_TA"][0, 3:]) if s["rate_frame"][0] == FRAME["interface"] else Rotation.identity()
        s["X_TA"][0, :3] += T * R.apply(self.v[:3])
        s["X_TA"][0, 3:] = (Rotation.from_rotvec(T * R.apply(self.v[3:])) * Rotation.from_quat(s["X_TA"][0, 3:])).as_quat()
        s["V_TA"][0, :3], s["V_TA"][0, 3:] = R.apply(self.v[:3]), R.apply(self.v[3:])

    def fly(self):
        """As far as the closed loop."""
        while self.phase != PHASE["contact"]:
            self.step()
            assert self.tick < 30_000
        return self

    def until(self, condition, seconds=120.0):
        while not condition(self):
            self.step()
            assert self.tick * T < seconds, "it never came"

    def stick(self, station, axes, buttons=1):
        self.sample["hand_axis"][0, 6 * station : 6 * station + 6] = axes
        self.sample["hand_buttons"][0, station] = buttons


def test_way_to_the_start_pose():
    run = Run(start_distance_m=0.4).fly()
    np.testing.assert_allclose(run.X_TA, np.array(START) - [0.4, 0, 0, 0, 0, 0, 0], atol=1e-12)
    run.step()
    assert (run.motion, run.arm_mode) == (MOTION["free"], MODE["hand"])
    assert not run.operator_rate.any()


def test_left_hand_moves_right_hand_turns():
    run = Run(coarse_m_s=0.019, coarse_deg_s=0.15, vernier_m_s=0.005, vernier_deg_s=0.04, frame="target").fly()
    run.stick(0, [0.5, -1.0, 0.25, 9.0, 9.0, 9.0])
    run.stick(1, [9.0, 9.0, 9.0, 1.0, 0.0, -0.5])
    run.step()
    np.testing.assert_allclose(run.operator_rate[:3], 0.019 * np.array([0.5, -1.0, 0.25]), rtol=1e-15)
    np.testing.assert_allclose(run.operator_rate[3:], np.radians(0.15) * np.array([1.0, 0.0, -0.5]), rtol=1e-15)
    assert (run.rate_frame, run.speed_mode) == (FRAME["target"], CODES["speed_mode"]["coarse"])
    run.step("speed_mode", 0)
    np.testing.assert_allclose(run.operator_rate[:3], 0.005 * np.array([0.5, -1.0, 0.25]), rtol=1e-15)
    run.step("speed_mode", 1)
    run.stick(0, [0.5, 0, 0, 0, 0, 0], buttons=3)
    run.step()
    assert run.operator_rate[0] == pytest.approx(0.0025) and run.speed_mode == CODES["speed_mode"]["vernier"]


@pytest.mark.parametrize(("source", "places"), [("right", (9, 10, 11)), ("right_first", (6, 7, 8)), ("left", (3, 4, 5))])
def test_where_the_rotations_come_from(source, places):
    run = Run(rotation_from=source).fly()
    run.sample["hand_axis"][0, list(places)] = [0.1, 0.2, 0.3]
    run.step()
    np.testing.assert_allclose(run.operator_rate[3:], np.radians(0.15) * np.array([0.1, 0.2, 0.3]), rtol=1e-15)


def profile(amplitude, rate, acceleration):
    """Duration and peak rate of a trapezoid, or of a triangle when it is too short."""
    peak = min(rate, np.sqrt(amplitude * acceleration))
    return amplitude / peak + peak / acceleration, peak


@pytest.mark.parametrize(("coordinate", "amplitude", "rate"), [(1, 0.04, 0.004), (2, -0.001, 0.01), (4, np.radians(-1.0), np.radians(0.1)),
                                                               (0, 0.02, 0.004)])  # fmt: skip
def test_step_is_a_trapezoid_in_the_axes_of_the_interface(coordinate, amplitude, rate):
    run = Run(settle_s=0.0, correction_gain_per_s=0.0).fly()
    run.step()
    begin = run.X_TA
    run.step("step", coordinate, amplitude, rate)
    assert run.supervisory == SUPERVISORY["step"] and run.rate_frame == FRAME["interface"]
    rates = [run.operator_rate[coordinate]]
    left = [run.supervisory_left]
    while run.supervisory == SUPERVISORY["step"]:
        run.step()
        rates.append(run.operator_rate[coordinate])
        left.append(run.supervisory_left)
    acceleration = 0.002 if coordinate < 3 else np.radians(0.02)
    duration, peak = profile(abs(amplitude), rate, acceleration)
    rates = np.sign(amplitude) * np.array(rates)
    moving = rates > 1e-3 * peak
    assert moving.sum() * T == pytest.approx(duration, rel=5e-3, abs=0.1)
    assert rates.max() == pytest.approx(peak, rel=1e-2) and rates.min() >= 0.0
    assert np.abs(np.diff(rates))[:-1].max() <= acceleration * T * (1 + 1e-9)
    # what the interface did, in its own axes at the beginning, and nothing else
    R = Rotation.from_quat(begin[3:])
    moved = R.inv().apply(run.X_TA[:3] - begin[:3])
    turned = R.inv().apply((Rotation.from_quat(run.X_TA[3:]) * R.inv()).as_rotvec())
    done = np.concatenate([moved, turned])
    tolerance = 0.0005 if coordinate < 3 else np.radians(0.02)
    assert done[coordinate] == pytest.approx(amplitude, abs=tolerance)
    np.testing.assert_allclose(np.delete(done, coordinate), 0.0, atol=1e-12)
    assert left[0] == pytest.approx(abs(amplitude), rel=1e-3) and abs(left[-1]) <= tolerance
    assert np.all(np.diff(left) <= 1e-12), "it counts down"


def test_an_arm_that_falls_short_is_taken_to_the_amplitude():
    """A tenth of every demanded motion is lost, as in play: the trapezoid alone ends at nine tenths, the correction takes it on."""

    def fly(gain):
        run = Run(correction_gain_per_s=gain, correction_max_s=60.0).fly()
        begin = run.X_TA[:3]
        move = run.move

        def short():
            run.sample["operator_rate"] *= 0.9
            move()

        run.move = short
        run.step("step", 1, 0.02, 0.01)
        run.until(lambda r: r.supervisory == SUPERVISORY["done"], 200.0)
        return np.linalg.norm(run.X_TA[:3] - begin), run.supervisory_left

    moved, left = fly(2.0)
    assert moved == pytest.approx(0.02, abs=0.0005) and left == pytest.approx(0.0, abs=0.0005)
    moved, left = fly(0.0)
    assert moved == pytest.approx(0.018, abs=1e-4) and left == pytest.approx(0.002, abs=1e-4)


def test_commands_wait_their_turn_and_no_more_than_the_queue_takes():
    run = Run().fly()
    for coordinate in (0, 1, 2, 1, 2, 1, 2, 1, 2, 1):
        run.step("step", coordinate, 0.001, 0.01)
    assert run.supervisory_queue == 7
    run.step("step", 5, 0.0, 0.01)
    run.step("step", 5, 0.01, 0.0)
    assert run.supervisory_queue == 7, "without travel or rate it is none"
    run.until(lambda r: r.supervisory == SUPERVISORY["done"] and r.supervisory_queue == 0)
    R = Rotation.from_quat(START[3:])
    moved = R.inv().apply(run.X_TA[:3] - START[:3] + [0.1, 0, 0])
    np.testing.assert_allclose(moved, [0.001, 0.004, 0.003], atol=0.001)


@pytest.mark.parametrize("end", ["force", "moment", "hold", "stick"])
def test_what_ends_a_running_command(end):
    run = Run(abort_force_n=300.0, abort_moment_n_m=200.0).fly()
    run.step("insert", 0.2, 0.005)
    run.step("step", 1, 0.01, 0.005)
    for _ in range(3000):
        run.step()
    assert run.supervisory == SUPERVISORY["insert"] and run.operator_rate[0] == pytest.approx(0.005)
    if end == "force":
        run.sample["F_T"][0, :3] = [200.0, 0.0, 200.0]
        run.step()
        assert run.supervisory == SUPERVISORY["insert"], "below the limit"
        run.sample["F_T"][0, :3] = [200.0, 100.0, 200.1]
    elif end == "moment":
        run.sample["F_T"][0, 3:] = [0.0, 200.1, 0.0]
    elif end == "stick":
        run.stick(0, [0.0, 0.1, 0.0, 0, 0, 0])
    run.step("hold" if end == "hold" else None)
    assert run.supervisory == SUPERVISORY["aborted"] and run.supervisory_queue == 0
    assert run.operator_rate[0] == 0.0
    assert run.arm_mode == MODE["hold" if end == "hold" else "hand"]


def test_hold_keeps_the_loop_closed_and_can_be_resumed():
    run = Run().fly()
    run.stick(0, [1.0, 0, 0, 0, 0, 0])
    run.step()
    assert run.operator_rate[0] > 0
    run.step("hold")
    for _ in range(100):
        run.step()
        assert (run.phase, run.motion, run.arm_mode) == (PHASE["hold"], MOTION["free"], MODE["hold"])
        assert not run.operator_rate.any()
    run.step("resume")
    assert (run.phase, run.arm_mode) == (PHASE["contact"], MODE["hand"])


def test_hold_with_the_platform_goes_only_back():
    run = Run(hold_stops_platform=True).fly()
    run.step("hold")
    assert (run.phase, run.motion) == (PHASE["hold"], MOTION["follow_profile"])
    run.step("resume")
    assert run.phase == PHASE["hold"]  # until the platform is at rest
    run.until(lambda r: r.phase == PHASE["retreat"])
    assert not run.sample["profile_V_TA"].any()
    run.until(lambda r: r.phase == PHASE["ended"])
    assert run.end_cause == END["stopped"]


TOUCHES = BITS["guidance_fault"]["hold_touches"]


def held_before_contact(gap_m, lag_s, **keys):
    """Full stick forward until so far before the first contact, then held for two seconds: (reported before it, greatest X - contact)."""
    run = Run(**keys).fly()
    run.lag = lag_s
    run.stick(0, [1.0, 0, 0, 0, 0, 0])
    run.until(lambda r: r.X_TA[0] >= START[0] - gap_m)
    assert run.V_TA[0] > 0.01
    run.step("hold")
    reported, furthest = bool(run.guidance_fault & TOUCHES), run.X_TA[0]
    for _ in range(2000):
        run.step()
        furthest = max(furthest, run.X_TA[0])
        reported = reported or bool(run.guidance_fault & TOUCHES and run.X_TA[0] < START[0])
    assert run.phase == PHASE["hold"]
    return reported, float(furthest - START[0])


@pytest.mark.parametrize(("gap_m", "lag_s", "reported"), [(0.03, 0.1, False), (0.01, 0.1, False), (0.01, 1.0, True), (0.001, 0.5, True)])
def test_a_hold_of_the_arm_that_touches_is_reported_before_it_does(gap_m, lag_s, reported):
    """An arm that coasts by lag times rate: the guidance cannot brake it."""
    seen, beyond = held_before_contact(gap_m, lag_s)
    assert seen is reported and (beyond > 0.0) is reported
    assert not held_before_contact(gap_m, lag_s, hold_acceleration_max_m_s2=0.0)[0], "as before there was the key"


@pytest.mark.parametrize(("gap_m", "reported"), [(0.03, False), (0.006, False), (0.0001, True)])
def test_a_hold_of_the_platform_brakes_before_the_units_touch_or_says_that_it_cannot(gap_m, reported):
    seen, beyond = held_before_contact(gap_m, 0.0, hold_stops_platform=True, acceleration_max_m_s2=0.01)
    assert seen is reported and (beyond > 0.0) is reported
    if gap_m == 0.006:
        plain = held_before_contact(gap_m, 0.0, hold_stops_platform=True, acceleration_max_m_s2=0.01, hold_acceleration_max_m_s2=0.0)
        assert plain[1] > 0.0, "with the acceleration of the programme mode it runs on into the units"


def test_capture_ends_the_run_also_while_held():
    for held in (False, True):
        run = Run(after_capture_s=0.5).fly()
        if held:
            run.step("hold")
        run.sample["mechanism_state"] = BITS["mechanism_signal"]["DSG"]
        run.sample["capture_time"] = captured = run.tick * T
        run.until(lambda r: r.phase == PHASE["finish"])
        assert run.tick * T - captured == pytest.approx(0.5, abs=0.01)
        assert run.arm_mode == MODE["hold"]
        run.until(lambda r: r.phase == PHASE["ended"])
        assert run.end_cause == END["captured"]
        np.testing.assert_allclose(run.X_TA[:3], START[:3], atol=1e-12)


SIGNAL, INTERVAL, RELEASE = BITS["mechanism_signal"], BITS["guidance_fault"]["sequence_interval"], BITS["mechanism_command"]["release"]


def releasing(holds):
    """Captured, at rest, and the first tick of the release; this signal says that something holds."""
    run = Run(after_capture_s=0.0, release_wait_s=1.0).fly()
    run.sample["mechanism_state"], run.sample["capture_time"] = SIGNAL["DSG"], run.tick * T
    run.sample["signal_discrete"] = SIGNAL[holds]
    run.until(lambda r: r.mechanism_command == RELEASE)
    return run


@pytest.mark.parametrize("holds", ["DSG", "latch1", "latch4"])
def test_the_retreat_waits_for_the_sensors_of_the_latches(holds):
    run = releasing(holds)
    for _ in range(900):
        run.step()
        assert (run.phase, run.mechanism_command) == (PHASE["finish"], RELEASE)
    run.sample["signal_discrete"] = 0
    run.step()
    assert run.phase == PHASE["retreat"]
    run.until(lambda r: r.phase == PHASE["ended"])
    assert run.end_cause == END["captured"] and not run.guidance_fault


def test_a_step_after_the_release_begins_when_the_latches_have_let_go_or_not_at_all():
    def stepped(let_go_s, **keys):
        run, begun, noted = Run(**keys).fly(), 0, None
        run.sample["signal_discrete"] = SIGNAL["latch3"]
        run.step("release", 1)
        run.step("step", 0, -0.01, 0.005)
        for k in range(2000):
            begun += run.supervisory == SUPERVISORY["step"]
            if run.guidance_fault & INTERVAL:
                assert noted is None and run.supervisory == SUPERVISORY["aborted"]
                noted = k
            assert run.supervisory_queue == (1 if not begun and noted is None else 0)
            if k * T == let_go_s:
                run.sample["signal_discrete"] = 0
            run.step()
        return begun, noted, run.X_TA[0] - START[0] + 0.1

    begun, noted, moved = stepped(0.5, release_wait_s=1.0)
    assert begun == 1499 and noted is None and moved < -0.001
    assert stepped(np.inf, release_wait_s=1.0) == (0, pytest.approx(1000, abs=2), pytest.approx(0.0, abs=1e-12))
    assert stepped(np.inf)[0] == 2000, "without the key it pulls"


@pytest.mark.parametrize("end", ["resume", "time is up"])
def test_a_latch_that_stays_is_held_released_and_not_pulled_at(end):
    run = releasing("latch2")
    stands, noted = run.profile_X_TA, 0
    for _ in range(5000):
        run.step()
        noted += bool(run.guidance_fault & INTERVAL)
        assert run.mechanism_command == RELEASE
        np.testing.assert_array_equal(run.profile_X_TA, stands)
    assert (run.phase, run.end_cause, noted) == (PHASE["hold"], END["captured"], 1)
    if end == "resume":
        run.step("resume")
        assert run.phase == PHASE["retreat"]
    else:
        run.step("park", -1.0)
        assert run.phase == PHASE["ended"]
    assert run.end_cause == END["captured"]


def test_time_and_load_limits():
    run = Run(contact_max_s=2.0).fly()
    began = run.tick
    run.until(lambda r: r.phase == PHASE["finish"])
    assert (run.tick - began) * T == pytest.approx(2.0, abs=0.01) and run.end_cause == END["time"]
    for on in (False, True):
        run = Run(finish_on_overload=on).fly()
        run.sample["dynamics_status"] = 64
        run.step()
        assert (run.phase == PHASE["finish"]) == on
    assert run.end_cause == END["overload"]


def test_a_trip_freezes():
    run = Run().fly()
    run.step("insert", 0.2, 0.005)
    run.sample["faults"] = 1 << 9
    run.step()
    assert (run.phase, run.motion, run.arm_mode) == (PHASE["fault"], MOTION["freeze"], MODE["hold"])
    assert run.end_cause == END["tripped"] and not run.operator_rate.any()


def test_modes_of_the_manipulator():
    run = Run().fly()
    run.step("single_joint", 3, -0.002)
    assert (run.arm_mode, run.arm_target) == (MODE["single_joint"], 3) and run.operator_rate[0] == -0.002
    run.step("auto_sequence", 2)
    assert (run.arm_mode, run.arm_target) == (MODE["path"], 2) and not run.operator_rate.any()
    for _ in range(20):
        run.step()
    run.sample["dynamics_status"] = 128
    run.step()
    assert run.arm_mode == MODE["hand"], "the path is done"
    for name in ("brakes", "limp"):
        run.step(name, 1)
        assert run.arm_mode == MODE[name]
        run.step("step", 1, 0.01, 0.01)
        assert run.supervisory_queue == 0, "a braked or limp arm takes no Step"
        run.step(name, 0)
        assert run.arm_mode == MODE["hand"]
    run.step("release", 1)
    assert run.mechanism_command == 4


def test_a_missing_hand_controller_is_a_note():
    run = Run(sticks_required=True).fly()
    for status, noted in (([0, 0], True), ([1, 0], True), ([1, 1], False), ([1, 3], True)):
        run.sample["hand_status"] = status
        run.step()
        assert bool(run.guidance_fault & 2) == noted, status
    left_only = Run(sticks_required=True, rotation_from="left").fly()
    left_only.sample["hand_status"] = [1, 0]
    left_only.step()
    assert not left_only.guidance_fault & 2
