"""Guidance of a docking, step by step on samples made by hand: what ends the press thrust, and what counts as complete."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server import registry
from rt_kernels.context import Start
from rt_kernels.layout import BITS, CODES
from tests.first_sample import first_sample

PHASE, SEQUENCE, END, SIGNAL = CODES["phase"], CODES["sequence"], CODES["end_cause"], BITS["mechanism_signal"]
REQUEST, FOLLOWING = BITS["control_request"], CODES["safety_state"]["following"]
DT, THRUST = 0.01, 250.0
START = Start(np.array([-0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0]))
POSES = ("X_TA_measured", "X_TA", "profile_X_TA")
RINGS = ("ring_aligned1", "ring_aligned2", "ring_aligned3")


class Run:
    """A guidance in its closed loop. `tick` gives it the unit's signals of that tick; seen signals stay in mechanism_state, as the event
    detection leaves them there."""

    def __init__(self, **keys):
        keys = dict(finish_on_capture=False, finish_at_region_end=False, settle_s=0.0, ramp_s=0.05, constant_s=0.0) | keys
        self.part = registry.part("guidance", "docking")(period_s=DT, start=START, **keys)
        self.sample = first_sample(measured_leg=4.0, safety_state=FOLLOWING, **dict.fromkeys(POSES, START.X_TA))
        self.seen, ticks = 0, 0
        while self.phase != "contact":
            self.tick()
            self.sample["X_TA_measured"] = self.sample["profile_X_TA"]
            ticks += 1
            assert ticks < 5000

    def place(self, X_TA):
        self.sample["X_TA"][0] = X_TA

    def tick(self, *signals, seconds=DT):
        for _ in range(round(seconds / DT)):
            word = sum(SIGNAL[name] for name in signals)
            self.seen |= word
            self.sample["signal_discrete"], self.sample["mechanism_state"] = word, self.seen
            self.sample["time_ns"] += round(DT * 1e9)
            self.part.step(self.sample)
        return self.sample[0]

    @property
    def phase(self):
        return next(name for name, number in PHASE.items() if number == self.sample["phase"][0])

    @property
    def thrust(self):
        """What is asked of the control: +THRUST, -THRUST or 0."""
        asked = int(self.sample["control_request"][0])
        return THRUST * (bool(asked & REQUEST["press"]) - bool(asked & REQUEST["retreat"]))

    @property
    def sequence(self):
        return next(name for name, number in SEQUENCE.items() if number == self.sample["sequence"][0])

    def retract(self):
        """From the first contact to the drive."""
        self.tick("DK1")
        self.tick("DK1", "DSG", "DK2", seconds=1.0)
        assert self.sequence == "retract" and self.sample["mechanism_command"][0] & 1


# ------------------------------------------------------------------------------------------------------------------ thrust


@pytest.mark.parametrize("bottom", [("DK2",), RINGS], ids=["head on the bottom", "rings in full contact"])
def test_press_thrust_ends_at_the_bottom_captured_or_not(bottom):
    run = Run()
    run.tick()
    assert run.thrust == 0.0
    run.tick("DK1")
    assert run.sequence == "press" and run.thrust == THRUST
    run.tick(seconds=1.0)  # contact lost on the way: pressed on
    assert run.thrust == THRUST
    run.tick("DK1", *bottom)
    assert run.sequence == "press" and run.thrust == 0.0
    run.tick("DK1", seconds=0.5)  # the head rebounds from the bottom, which was seen
    assert run.sequence == "press" and run.thrust == 0.0
    run.tick("DK1", "DSG")
    assert run.thrust == 0.0


def test_capture_before_the_bottom_presses_on():
    run = Run()
    run.tick("DK1")
    run.tick("DK1", "DSG")
    assert run.sequence == "captured" and run.thrust == THRUST
    run.tick("DSG", "DK2")
    assert run.sequence == "damping" and run.thrust == 0.0


def test_no_capture_after_the_bottom_still_reverses_the_thrust():
    run = Run(capture_limit_s=2.0)
    run.tick("DK1")
    run.tick("DK2", seconds=1.5)
    assert run.thrust == 0.0
    run.tick(seconds=1.0)
    assert run.sequence == "retreat" and run.thrust == -THRUST


# ---------------------------------------------------------------------------------------------------------------- complete


def turned(angle_deg, axis="y", y=0.0):
    """X_TA of a unit that is drawn in, tilted by an angle and off the axis by y."""
    return np.array([-0.3, y, 0.0, *Rotation.from_euler(axis, angle_deg, degrees=True).as_quat()])


DRAWN = ("DSG", "DK2", "pushers", "planes_together")


@pytest.mark.parametrize(
    ("X_TA", "signals"),
    [
        (turned(0.0), ("DSG", "DK2", "pushers")),  # one pusher of four
        (turned(0.6), DRAWN),
        (turned(-0.6, "z"), DRAWN),
        (turned(0.0, y=0.011), DRAWN),
        (turned(3.9, y=0.029), DRAWN),
    ],
    ids=["a sensor is missing", "yaw", "pitch", "offset", "both"],
)
def test_units_apart_are_not_complete_and_the_run_says_so_at_its_end(X_TA, signals):
    run = Run(drive_after_s=0.0, contact_max_s=6.0)
    run.retract()
    run.place(X_TA)
    run.tick(*signals, seconds=3.0)
    assert run.sequence == "retract" and run.phase == "contact"
    run.tick(*signals, seconds=3.0)
    assert run.phase in ("finish", "retreat") and run.sample["end_cause"][0] == END["not_aligned"]


def test_complete_when_all_sensors_say_so_and_the_ports_are_aligned_for_a_while():
    run = Run(drive_after_s=0.0, complete_hold_s=0.5)
    run.retract()
    run.place(turned(0.4, y=0.009))
    run.tick(*DRAWN, seconds=0.45)
    run.tick("DSG", "DK2", "pushers")  # one sensor opens for a moment: from the beginning again
    run.tick(*DRAWN, seconds=0.45)
    assert run.sequence == "retract"
    run.tick(*DRAWN, seconds=0.1)
    assert run.sequence == "complete" and run.phase == "finish" and run.sample["end_cause"][0] == END["complete"]


def test_roll_is_no_tilt():
    run = Run(drive_after_s=0.0, complete_hold_s=0.1)
    run.retract()
    run.place(turned(5.0, "x"))
    run.tick(*DRAWN, seconds=0.3)
    assert run.sequence == "complete"


def test_a_run_without_retraction_ends_by_time_as_before():
    run = Run(contact_max_s=2.0)
    run.tick("DK1", seconds=2.5)
    assert run.sample["end_cause"][0] == END["time"]


def test_moving_units_are_not_complete():
    run = Run(drive_after_s=0.0, complete_hold_s=0.1, complete_speed_m_s=1e-3, complete_rate_deg_s=0.1)
    run.retract()
    run.place(turned(0.0))
    for V in ([2e-3, 0, 0, 0, 0, 0], [0, 0, 0, 0, np.radians(0.2), 0]):
        run.sample["V_TA"][0] = V
        run.tick(*DRAWN, seconds=0.5)
        assert run.sequence == "retract"
    run.sample["V_TA"][0] = [9e-4, 0, 0, 0, 0, np.radians(0.09)]
    run.tick(*DRAWN, seconds=0.2)
    assert run.sequence == "complete"


def test_a_docked_probe_is_relieved_before_its_latches_are_drawn():
    """The drive extends it until the planes part; then release and separation, or the end of the run."""
    for undock in (True, False):
        run = Run(drive_after_s=0.0, complete_hold_s=0.1, relieve_limit_s=5.0, undock=undock, undock_after_s=1.0,
                  brakes_for_s=0.0)
        run.retract()
        run.place(turned(0.0))
        run.tick(*DRAWN, seconds=0.12)
        if undock:
            assert run.sequence == "complete" and run.sample["mechanism_command"][0] == 0
            run.tick(*DRAWN, seconds=1.0)
        run.tick(*DRAWN, seconds=2.0)
        assert run.sequence == "complete" and run.phase == "contact" and run.sample["mechanism_command"][0] == 1 | 8
        run.tick("DSG", "DK2", "pushers")
        if undock:
            assert run.sequence == "separation" and run.sample["mechanism_command"][0] == 4
        else:
            assert run.phase == "finish" and run.sample["end_cause"][0] == END["complete"]


# --------------------------------------------------------------------------------------------------------------- intervals


def command(run, name, argument=1.0):
    run.sample["command_code"], run.sample["command_arg"] = CODES["command"][name], argument
    run.tick()
    run.sample["command_code"] = 0


def test_a_violated_interval_stops_the_sequence_and_the_operator_completes_the_docking():
    """Captured, and never on the bottom: pressed on for the interval, then neither thrust nor drive; single commands draw the probe in."""
    run = Run(bottom_limit_s=2.0, complete_hold_s=0.1, contact_max_s=60.0)
    run.tick("DK1")
    run.tick("DK1", "DSG")
    run.tick("DSG", seconds=1.9)
    assert run.sequence == "captured" and run.thrust == THRUST
    run.tick("DSG", seconds=0.2)
    assert run.sequence == "manual" and run.thrust == 0.0 and run.sample["mechanism_command"][0] == 0
    run.tick("DSG", "DK2", seconds=5.0)  # the signal comes after all: the sequence does not continue by itself
    assert run.sequence == "manual" and run.sample["mechanism_command"][0] == 0
    command(run, "mechanism_drive")
    assert run.tick("DSG", "DK2")["mechanism_command"] & 1
    run.place(turned(0.0))
    run.tick(*DRAWN, seconds=0.2)
    assert run.sequence == "complete" and run.phase == "finish"


@pytest.mark.parametrize(("keys", "signals", "state"), [
    ({"retract_limit_s": 3.0, "drive_after_s": 0.0}, ("DK1", "DSG", "DK2"), "retract"),
    ({"retreat_limit_s": 3.0, "capture_limit_s": 0.1}, ("DK1",), "retreat"),
])  # fmt: skip
def test_retraction_and_retreat_have_their_intervals(keys, signals, state):
    run = Run(contact_max_s=60.0, **keys)
    run.tick("DK1")
    run.tick(*signals, seconds=2.9)
    assert run.sequence == state
    run.tick(*signals, seconds=0.3)
    assert run.sequence == "manual" and run.thrust == 0.0 and not run.sample["mechanism_command"][0] & 1


def test_a_relief_that_does_not_part_the_planes_stops_the_sequence():
    run = Run(drive_after_s=0.0, complete_hold_s=0.1, relieve_limit_s=2.0, contact_max_s=60.0, brakes_for_s=0.0)
    run.retract()
    run.place(turned(0.0))
    run.tick(*DRAWN, seconds=2.3)
    assert run.sequence == "manual" and run.phase == "contact" and run.sample["mechanism_command"][0] == 0


# ----------------------------------------------------------------------------------------------------------------- release


def finishing(**keys):
    run = Run(release_wait_s=1.0, finish_on_capture=True, after_capture_s=0.0, **keys)
    run.sample["capture_time"] = 0.0
    run.tick("DK1", "DSG", "latch1")
    while not run.sample["mechanism_command"][0] & 4:
        run.tick("DSG", "latch1")
    return run


@pytest.mark.parametrize("holds", ["DSG", "latch1", "latch4"])
def test_the_retreat_waits_for_the_sensors_of_the_latches(holds):
    run = finishing()
    run.tick(holds, seconds=0.5)
    assert run.phase == "finish" and run.sample["mechanism_command"][0] == 4
    run.tick()
    assert run.phase == "retreat" and run.sample["mechanism_command"][0] == 4


def test_what_is_not_released_is_held_until_the_operator_says_otherwise():
    run = finishing()
    noted = 0
    while run.phase == "finish":
        run.tick("latch1")
        noted += bool(run.sample["guidance_fault"][0] & BITS["guidance_fault"]["sequence_interval"])
    assert run.phase == "hold" and noted == 1
    run.tick("latch1", seconds=20.0)
    assert run.phase == "hold"
    command(run, "resume")
    run.tick("latch1", seconds=1.0)
    assert run.phase == "retreat"


# ------------------------------------------------------------------------------------------------------- approach, commands


def before_the_test(**keys):
    """A guidance with its sample, on a stand that follows its setpoints, at the start pose."""
    part = registry.part("guidance", "docking")(period_s=DT, start=START, settle_s=0.0, **keys)
    sample = first_sample(safety_state=FOLLOWING, **dict.fromkeys(POSES, part.approach(2)[0]))
    while sample["phase"][0] != PHASE["approach"]:
        part.step(sample)
        sample["X_TA_measured"] = sample["profile_X_TA"]
    return part, sample


def test_approach_is_a_smooth_step_of_the_rate_along_the_line():
    """Rate r(x) = 3 x^2 - 2 x^3 of the contact rate over ramp_s, x = t / ramp_s; then the contact rate for constant_s, until close_before_s
    ahead of the contact."""
    ramp, constant, close_before, V = 1.2, 0.7, 0.4, 0.1
    part, sample = before_the_test(ramp_s=ramp, constant_s=constant, close_before_s=close_before)
    ticks = 0
    while True:
        part.step(sample)
        ticks += 1
        t = ticks * DT
        x = min(t / ramp, 1.0)
        way = ramp * (x**3 - 0.5 * x**4) + max(t - ramp, 0.0)  # in seconds at the contact rate
        u = way - (close_before + constant + 0.5 * ramp)
        assert sample["profile_X_TA"][0, 0] == pytest.approx(START.X_TA[0] + V * u, abs=1e-12)
        assert sample["profile_V_TA"][0, 0] == pytest.approx(V * (3 * x**2 - 2 * x**3), abs=1e-12)
        assert sample["profile_A_TA"][0, 0] == pytest.approx(V * 6 * x * (1 - x) / ramp, abs=1e-12)
        if sample["phase"][0] != PHASE["approach"]:
            break
    assert sample["phase"][0] == PHASE["closing"] and t == pytest.approx(ramp + constant, abs=1.01 * DT)


def test_extra_brakes_run_for_their_time_after_the_start_of_docking():
    run = Run(brakes_after_s=0.2, brakes_for_s=0.3)
    run.tick("DK1")
    on = [bool(run.tick("DSG", "DK2")["mechanism_command"] & 2) for _ in range(80)]
    assert sum(on) * DT == pytest.approx(0.3, abs=1.01 * DT)
    first = on.index(True)
    assert first * DT == pytest.approx(0.2, abs=1.01 * DT) and all(on[first : first + sum(on)])


@pytest.mark.parametrize("lever", ["lever1_contact", "lever2_contact", "lever3_contact"])
def test_contact_of_any_alignment_lever_ends_the_reproduced_region(lever):
    ends, goes_on = Run(finish_at_region_end=True), Run()
    for one in (ends, goes_on):
        one.tick("DK1", "limiter_contact", "pushers")
        assert one.phase == "contact" and one.sample["guidance_fault"][0] == 0
        one.tick(lever)
    assert goes_on.phase == "contact" and goes_on.sample["guidance_fault"][0] == 0
    assert ends.phase == "finish" and ends.sample["end_cause"][0] == END["region"] and ends.sample["guidance_fault"][0] == 4


def test_latched_a_time_after_the_capture():
    run = Run(latch_on_capture=True, latch_after_s=0.3, after_capture_s=0.2)
    run.tick("DK1", seconds=0.5)
    run.sample["capture_time"] = 1e-9 * run.sample["time_ns"]
    ticks = 0
    while run.phase == "contact":
        run.tick("DSG")
        ticks += 1
        assert ticks < 100
    assert run.phase == "latched" and ticks * DT == pytest.approx(0.3, abs=1.01 * DT)
    run.tick("DSG", seconds=0.25)
    assert run.phase == "finish" and run.sample["end_cause"][0] == END["captured"]


def test_commands_of_the_mechanism_act_until_they_are_taken_back():
    run = Run()

    def command(name, argument):
        run.sample["command_code"], run.sample["command_arg"] = CODES["command"][name], argument
        run.tick()
        run.sample["command_code"] = 0
        return int(run.tick()["mechanism_command"])

    assert command("release", 1.0) == 4 and command("mechanism_drive", 1.0) == 5
    assert command("release", 0.0) == 1 and command("mechanism_drive", 0.0) == 0
    assert command("manual_mode", 1.0) == 0 and run.sequence == "manual" and run.phase == "contact"
    run.tick("DK1", "DSG", "DK2", seconds=0.2)
    assert run.sequence == "manual" and run.thrust == 0.0
    command("hold", 0.0)
    assert run.phase == "hold"


# ------------------------------------------------------------------------------------------------------- numbers of the text


def test_N7_no_capture_within_ten_seconds_reverses_the_thrust():
    run = Run(contact_max_s=60.0)
    run.tick(seconds=0.1)
    assert run.sequence == "approach" and run.thrust == 0.0
    run.tick("DK1")
    run.tick(seconds=9.9)  # contact is lost again: the timer continues
    assert run.sequence == "press" and run.thrust == THRUST
    run.tick("DK1", seconds=0.2)
    assert run.sequence == "retreat" and run.thrust == -THRUST


def test_N8_delays_after_start_of_docking():
    """Extra brakes from the 2nd to the 32nd second, drive from the 35th, counted from capture and bottom; both are latched."""
    run = Run(contact_max_s=60.0)
    run.tick("DK1")
    run.tick("DK1", "DK2")  # the bottom before the capture, then chatter
    commands = [int(run.tick("DSG")["mechanism_command"])]
    assert run.sequence == "damping" and run.thrust == 0.0
    commands += [int(run.tick("DSG")["mechanism_command"]) for _ in range(4000)]
    brakes, drive = (np.flatnonzero(np.array(commands) & bit) * DT for bit in (2, 1))
    assert brakes[0] == pytest.approx(2.0, abs=1.01 * DT) and brakes[-1] == pytest.approx(32.0, abs=2.01 * DT)
    assert drive[0] == pytest.approx(35.0, abs=1.01 * DT) and drive[-1] == pytest.approx(40.0) and run.sequence == "retract"


def test_attitude_control_is_asked_for_until_the_capture():
    run = Run()
    for signals in ((), ("DK1",)):
        assert run.tick(*signals)["control_request"] & REQUEST["attitude"]
    assert not run.tick("DSG")["control_request"] & REQUEST["attitude"] and run.sequence == "captured"
