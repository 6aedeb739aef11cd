"""The stand's own phases, step by step on samples made by hand: the programmed moves against closed forms of the minimum-jerk move, what
holds, resumes, parks and trips a run, and what is reported of its end. The test between them is the docking's."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server import registry
from rt_kernels.block_check import first_beyond
from rt_kernels.context import Start
from rt_kernels.layout import CODES
from tests.first_sample import first_sample

PHASE, MOTION, END, COMMAND, SAFETY = (CODES[name] for name in ("phase", "motion", "end_cause", "command", "safety_state"))
DT = 0.01
SPEED = 0.1  # m/s, relative motion at first contact
START = Start(np.array([-0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([SPEED, 0.0, 0.0, 0.0, 0.0, 0.0]))
X_START = -0.9 - SPEED * (0.5 + 0.5 * 1.0)  # close_before_s = 0.5, no constant part, ramp_s = 1
RELEASE = 4
PEAK_RATE, PEAK_ACCELERATION = 1.875, 10.0 / math.sqrt(3.0)  # of the minimum-jerk step over unit time


def pose(x, angle_deg=0.0, axis="z"):
    return np.array([x, 0.0, 0.0, *Rotation.from_euler(axis, angle_deg, degrees=True).as_quat()])


class Stand:
    """A docking guidance on a stand that follows its setpoints: after each tick the achieved pose is the programmed one but for `error`."""

    def __init__(self, home, **keys):
        keys = dict(speed_max_m_s=0.2, turn_max_deg_s=50.0, acceleration_max_m_s2=10.0, turn_acceleration_max_deg_s2=1000.0, settle_s=0.1,
                    ramp_s=1.0, constant_s=0.0, close_before_s=0.5, contact_max_s=1.0, finish_at_region_end=False) | keys  # fmt: skip
        self.part = registry.part("guidance", "docking")(period_s=DT, start=START, **keys)
        self.sample = first_sample(safety_state=SAFETY["following"], X_TA_measured=home, X_TA=home, profile_X_TA=home)
        self.now = self.sample[0]
        self.error = None

    def tick(self, command=None, argument=0.0):
        """Returns the phase."""
        self.now["time_ns"] += round(DT * 1e9)
        self.now["command_code"] = COMMAND[command] if command else 0
        self.now["command_arg"] = argument
        self.part.step(self.sample)
        beyond = first_beyond(self.part.state_fields(), self.part.state_bounds())
        assert not beyond, f"a checkpoint of this tick could not be read: {beyond}"
        for name in ("X_TA", "X_TA_measured"):
            self.now[name] = self.now["profile_X_TA"]
        self.now["V_TA"] = self.now["profile_V_TA"]
        if self.error is not None:
            self.now["X_TA_measured"][:3] += self.error[:3]
            turned = Rotation.from_quat(self.error[3:]) * Rotation.from_quat(self.now["X_TA"][3:])
            self.now["X_TA_measured"][3:] = turned.as_quat()
        return self.phase

    def until(self, phase, most=3000):
        """Ticks up to the one that enters the phase; returns the highest programmed rates and accelerations on the way there."""
        peaks = np.zeros(4)
        for count in range(1, most):
            self.tick()
            V, A = self.now["profile_V_TA"], self.now["profile_A_TA"]
            peaks = np.maximum(peaks, [np.linalg.norm(part) for part in (V[:3], V[3:], A[:3], A[3:])])
            if self.phase == phase:
                assert self.now["phase_time"] == 0.0
                return count, peaks
        raise AssertionError(f"{self.phase}: no {phase}")

    @property
    def phase(self):
        return next(name for name, number in PHASE.items() if number == self.now["phase"])

    @property
    def end(self):
        return next(name for name, number in END.items() if number == self.now["end_cause"])


# ------------------------------------------------------------------------------------------------------------------- moves


@pytest.mark.parametrize(
    ("limits", "length", "angle_deg", "duration", "peak"),
    [
        (dict(speed_max_m_s=0.2), 0.8, 20.0, PEAK_RATE * 0.8 / 0.2, (0, 0.2)),
        (dict(turn_max_deg_s=5.0), 0.2, 20.0, PEAK_RATE * 20 / 5, (1, math.radians(5.0))),
        (dict(acceleration_max_m_s2=0.1), 0.3, 20.0, math.sqrt(PEAK_ACCELERATION * 0.3 / 0.1), (2, 0.1)),
        (dict(turn_acceleration_max_deg_s2=4.0), 0.2, 20.0, math.sqrt(PEAK_ACCELERATION * 20 / 4), (3, math.radians(4.0))),
    ],
    ids=["speed", "turn", "acceleration", "turn acceleration"],
)
def test_each_limit_of_the_programme_mode_governs_the_way_to_the_start(limits, length, angle_deg, duration, peak):
    stand = Stand(pose(X_START - length, angle_deg), **limits)
    assert stand.tick() == "position" and stand.now["phase_time"] == 0.0
    ticks, peaks = stand.until("approach")
    assert ticks * DT == pytest.approx(duration + 0.1, abs=1.01 * DT)  # with the rest after it
    which, value = peak
    assert 0.999 * value < peaks[which] <= value * (1 + 1e-12)
    np.testing.assert_allclose(stand.now["profile_X_TA"], pose(X_START), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("error", "arrives"),
    [
        (pose(0.0029), True),
        (pose(0.0031), False),
        (pose(0.0, 0.19, "y"), True),
        (pose(0.0, 0.21, "y"), False),
        (pose(0.0, -0.25, "x"), False),
    ],
    ids=["near", "too far", "turned a little", "turned too far", "rolled too far"],
)
def test_start_pose_is_reached_within_both_tolerances_or_the_miss_is_reported(error, arrives):
    stand = Stand(pose(X_START - 0.1), position_tolerance_m=0.003, angle_tolerance_deg=0.2)
    stand.tick()
    stand.error = error
    duration = PEAK_RATE * 0.1 / 0.2
    for k in range(1, 600):
        if stand.tick() != "position":
            assert arrives and k * DT == pytest.approx(duration + 0.1, abs=DT)
            return
        late = k * DT >= duration + 10 * 0.1 + 2.0
        if abs(k * DT - (duration + 3.0)) > DT:
            assert bool(stand.now["guidance_fault"] & 8) == late
    assert not arrives


def test_way_back_half_speed_away_then_full_speed_home():
    home = pose(X_START - 0.4, 10.0)
    stand = Stand(home, retreat_distance_m=0.25)
    stand.until("approach")
    while stand.now["phase_time"] < 0.8:
        stand.tick()
    rate = float(stand.now["V_TA"][0])
    assert stand.tick("stop") == "finish" and stand.end == "stopped" and rate > 0.5 * SPEED
    stand.until("retreat")
    assert stand.now["mechanism_command"] == RELEASE and np.abs(stand.now["profile_V_TA"]).max() == 0.0
    at_rest = stand.now["profile_X_TA"][0]
    ticks, peaks = stand.until("park")
    assert ticks * DT == pytest.approx(PEAK_RATE * 0.25 / 0.1 + 0.1, abs=1.01 * DT) and peaks[0] == pytest.approx(0.1, rel=1e-3)
    assert stand.now["profile_X_TA"][0] == pytest.approx(at_rest - 0.25, abs=1e-12)
    _, peaks = stand.until("ended")
    assert peaks[0] == pytest.approx(0.2, rel=1e-3)
    np.testing.assert_allclose(stand.now["profile_X_TA"], home, rtol=0, atol=1e-12)
    assert stand.now["mechanism_command"] == 0 and stand.end == "stopped"


# ---------------------------------------------------------------------------------------------------------------- commands


def test_start_waits_for_its_command_and_for_legs_that_are_known():
    stand = Stand(pose(X_START - 0.1), auto_start=False)
    stand.now["safety_state"] = SAFETY["not_armed"]
    for command in (None, "start", "hold", "resume"):
        assert stand.tick(command) == "idle" and stand.now["motion"] == MOTION["follow_profile"]
    stand.now["safety_state"] = SAFETY["following"]
    for command in (None, "hold", "resume", None):
        assert stand.tick(command) == "idle"
    assert stand.tick("start") == "position" and stand.end == "none"


def test_stop_before_the_start_ends_the_run_where_it_stands():
    stand = Stand(pose(X_START - 0.1), auto_start=False)
    stand.tick()
    assert stand.tick("stop") == "ended" and stand.end == "stopped"
    assert stand.tick("hold") == "ended" and stand.tick("start") == "ended"


@pytest.mark.parametrize("phase", ["position", "approach"])
def test_hold_before_the_loop_is_closed_is_taken_up_again(phase):
    stand = Stand(pose(X_START - 0.4))
    stand.until(phase)
    for _ in range(40):
        stand.tick()
    rate = float(stand.now["V_TA"][0])
    assert rate > 0.01 and stand.tick("hold") == "hold"
    for _ in range(30):
        assert stand.tick() == "hold" and stand.end == "none"
    assert np.abs(stand.now["profile_V_TA"]).max() == 0.0  # at rest
    before = stand.now["phase_time"]
    assert stand.tick("hold") == "hold" and stand.now["phase_time"] == before + DT  # held already: nothing begins again
    assert stand.tick("resume") == "position" and stand.end == "none"
    stand.until("approach")


def test_hold_of_the_closed_loop_goes_only_back():
    stand = Stand(pose(X_START - 0.1))
    stand.until("contact")
    assert stand.tick("hold") == "hold" and stand.end == "stopped"
    stand.tick("resume")
    stand.until("retreat")
    assert stand.end == "stopped"


def test_stop_while_held_goes_back():
    stand = Stand(pose(X_START - 0.4))
    stand.until("position")
    assert stand.tick("hold") == "hold"
    assert stand.tick("park") == "hold"
    stand.until("retreat")
    assert stand.end == "stopped"


@pytest.mark.parametrize(("command", "phase"), [("resume", "position"), ("stop", "retreat"), ("park", "retreat")])
def test_what_follows_a_hold_waits_until_the_platform_is_at_rest(command, phase):
    """No programmed rate ever jumps: the command comes in the middle of the braking, the next move begins at its end."""
    stand = Stand(pose(X_START - 0.4), acceleration_max_m_s2=0.5)
    stand.until("position")
    while stand.now["V_TA"][0] < 0.19:
        stand.tick()
    rates = [float(stand.now["profile_V_TA"][0])]

    def go(command=None):
        stand.tick(command)
        rates.append(float(stand.now["profile_V_TA"][0]))

    go("hold")
    braking = 1.5 * rates[0] / 0.5
    for k in range(20):
        go(command if k == 9 else None)
        assert stand.phase == "hold"
    while stand.phase == "hold":
        go()
    assert stand.phase == phase and rates[-1] == 0.0 and (len(rates) - 2) * DT == pytest.approx(braking, abs=1.01 * DT)
    while stand.phase == phase:
        go()
    assert np.abs(np.diff(rates)).max() <= 0.5 * DT * (1 + 1e-9)  # never more than the highest programmed acceleration


def test_another_hold_takes_back_what_waits():
    stand = Stand(pose(X_START - 0.4), acceleration_max_m_s2=0.5)
    stand.until("position")
    while stand.now["V_TA"][0] < 0.19:
        stand.tick()
    for command in ("hold", "resume", "hold"):
        assert stand.tick(command) == "hold"
    for _ in range(200):
        assert stand.tick() == "hold"
    assert stand.end == "none" and stand.tick("resume") == "position"


def test_first_cause_of_the_end_counts():
    stand = Stand(pose(X_START - 0.1))
    stand.until("finish")  # the time of the closed loop is over
    assert stand.end == "time"
    stand.tick("hold")
    assert stand.phase == "hold" and stand.end == "time"
    stand.tick("stop")
    stand.until("retreat")
    assert stand.end == "time"


def test_lost_record_parks_or_is_left_to_the_trip_it_asks_for():
    stand = Stand(pose(X_START - 0.1))
    stand.until("contact")
    assert stand.tick("record_lost", 1.0) == "contact" and stand.now["guidance_fault"] == 32
    assert stand.tick("record_lost", 0.0) == "finish" and stand.now["guidance_fault"] == 16 and stand.end == "record_lost"


# -------------------------------------------------------------------------------------------------------------------- trip


@pytest.mark.parametrize("phase", ["position", "contact", "finish"])
def test_trip_freezes_whatever_was_going_on_until_the_stand_is_held(phase):
    stand = Stand(pose(X_START - 0.1), fault_s=0.2)
    stand.until(phase)
    stand.now["faults"] = 1
    assert stand.tick("hold") == "fault" and stand.end == "tripped" and stand.now["motion"] == MOTION["freeze"]
    for _ in range(40):  # the legs are still being braked
        stand.now["safety_state"] = SAFETY["decelerating"]
        assert stand.tick("resume") == "fault"
    stand.now["safety_state"] = SAFETY["held"]
    assert stand.tick() == "ended" and stand.tick() == "ended" and stand.end == "tripped"


def test_trip_is_recorded_for_its_time():
    stand = Stand(pose(X_START - 0.1), fault_s=0.2)
    stand.until("position")
    stand.now["faults"], stand.now["safety_state"] = 1, SAFETY["held"]
    ticks, _ = 0, stand.tick()
    while stand.phase == "fault":
        stand.tick()
        ticks += 1
        assert ticks < 100
    assert ticks * DT == pytest.approx(0.2, abs=1.01 * DT)


def test_abort_reaches_the_safety_stage_and_changes_nothing_else():
    stand = Stand(pose(X_START - 0.1))
    stand.until("contact")
    assert stand.tick("abort") == "contact" and stand.now["guidance_fault"] == 1 and stand.end == "none"
    assert stand.tick() == "contact" and stand.now["guidance_fault"] == 0


# ---------------------------------------------------------------------------------------------------------------- recovery


def tripped(phase, **keys):
    """A stand that tripped in this phase and rests."""
    stand = Stand(pose(X_START - 0.1), **({"fault_s": 0.2, "recover_s": 5.0} | keys))
    stand.until(phase)
    for _ in range(3):
        stand.tick()
    stand.now["faults"] = 1
    assert stand.tick() == "fault"
    stand.now["safety_state"] = SAFETY["held"]
    return stand


def recovered(stand, moved=0.0):
    """The safety stage recovers the stand, which it finds `moved` (m) off: the run is held there."""
    stand.now["safety_state"] = SAFETY["recovering"]
    stand.now["X_TA_measured"][1] += moved
    here = stand.now["X_TA_measured"].copy()
    for _ in range(20):
        assert stand.tick("recover") == "fault" and stand.now["motion"] == MOTION["follow_profile"]
        np.testing.assert_array_equal(stand.now["profile_X_TA"], here)
        assert not stand.now["profile_V_TA"].any() and not stand.now["profile_A_TA"].any()
    stand.now["safety_state"], stand.now["faults"] = SAFETY["following"], 0
    assert stand.tick() == "hold" and stand.end == "tripped"
    for _ in range(30):
        assert stand.tick() == "hold"
        np.testing.assert_array_equal(stand.now["profile_X_TA"], here)
    return here


@pytest.mark.parametrize("way", ["park", "stop", "resume"])
@pytest.mark.parametrize(("phase", "by"), [("position", "park"), ("approach", "retreat"), ("contact", "retreat"), ("finish", "retreat"),
                                           ("retreat", "retreat"), ("park", "park")])  # fmt: skip
def test_recovered_run_is_held_where_it_is_and_told_goes_home(phase, by, way):
    stand = tripped(phase)
    retreat_to = stand.now["profile_X_TA"][0] - 0.25
    if phase == "retreat":  # what is left of it
        retreat_to = stand.part.fields()["state"]["stand"]["X_retreat"]["p"]["x"]
    here = recovered(stand, 0.02)
    stand.tick(way)
    assert stand.phase == by
    at = stand.now["profile_X_TA"].copy()
    np.testing.assert_allclose(at, here, rtol=0, atol=1e-12)
    if by == "retreat":
        stand.until("park")
        assert stand.now["profile_X_TA"][0] == pytest.approx(retreat_to, abs=1e-9) and stand.now["mechanism_command"] == RELEASE
    stand.until("ended")
    np.testing.assert_allclose(stand.now["profile_X_TA"], pose(X_START - 0.1), rtol=0, atol=1e-9)
    assert stand.end == "tripped"


def test_tripped_run_waits_for_the_operator_and_no_longer():
    stand = tripped("contact", recover_s=1.0)
    ticks = 0
    while stand.tick() == "fault":
        ticks += 1
    assert ticks * DT == pytest.approx(1.0, abs=2 * DT) and stand.phase == "ended"


@pytest.mark.parametrize("command", ["park", "stop", "record_lost"])
def test_operator_who_gives_up_ends_the_waiting(command):
    stand = tripped("contact")
    for _ in range(40):
        assert stand.tick() == "fault"
    assert stand.tick(command) == "ended" and stand.end == "tripped"


def test_attempt_restarts_the_waiting_and_an_abort_in_it_is_reported():
    stand = tripped("contact", recover_s=1.0)
    for _ in range(90):
        stand.tick()
    stand.now["safety_state"] = SAFETY["recovering"]
    assert stand.tick("abort") == "fault" and stand.now["guidance_fault"] == 1
    stand.now["safety_state"] = SAFETY["held"]
    for _ in range(95):
        assert stand.tick() == "fault" and stand.now["motion"] == MOTION["freeze"]


def test_pose_is_taken_again_while_a_drive_has_no_power():
    stand = tripped("contact")
    stand.now["safety_state"] = SAFETY["recovering"]
    stand.tick()
    first = float(stand.now["profile_X_TA"][1])
    stand.now["X_TA_measured"][1] = 0.03
    assert stand.tick() == "fault" and stand.now["profile_X_TA"][1] == first
    stand.now["drive_status"][4] = 1 << 5  # not enabled
    stand.now["X_TA_measured"][1] = 0.03
    stand.tick()
    assert stand.now["profile_X_TA"][1] == 0.03


def test_second_trip_after_a_recovery_ends_the_run_again():
    stand = tripped("contact", recover_s=0.5)
    recovered(stand)
    stand.tick("park")
    stand.now["faults"] = 1
    assert stand.tick() == "fault"
    stand.now["safety_state"] = SAFETY["held"]
    stand.until("ended")
    assert stand.end == "tripped"
