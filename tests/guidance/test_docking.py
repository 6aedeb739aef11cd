"""Guidance of a docking, step by step on samples made by hand: what ends the press thrust, and what counts as complete."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server import registry
from rt_kernels.layout import CODES, SAMPLE_DTYPE

PHASE, CYCLOGRAM, END, SIGNAL = CODES["phase"], CODES["cyclogram"], CODES["end_cause"], CODES["mechanism_signal"]
DT, THRUST = 0.01, 250.0
START = {"X_TA": np.array([-0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]), "V_TA": np.array([0.1, 0.0, 0.0, 0.0, 0.0, 0.0])}
RINGS = ("ring_aligned1", "ring_aligned2", "ring_aligned3")


class Run:
    """A guidance in its closed loop. `tick` gives it the unit's signals of that tick; seen signals stay in mechanism_state, as the event
    detection leaves them there."""

    def __init__(self, **keys):
        vehicles = {"active": {"thrust_n": THRUST}}
        self.part = registry.part("guidance", "docking")(period_s=DT, start=START, vehicles=vehicles, finish_on_capture=False, settle_s=0.0,
                                                         finish_at_region_end=False, ramp_s=0.05, constant_s=0.0, **keys)  # fmt: skip
        self.sample = np.zeros(1, SAMPLE_DTYPE)
        self.seen, ticks = 0, 0
        self.place(START["X_TA"])
        for name in ("profile_X_TA", "X_TA_measured"):
            self.sample[name][0] = START["X_TA"]
        self.sample["measured_leg"] = 4.0
        self.sample["periods"] = 1
        while self.phase != "contact":
            self.tick()
            self.sample["X_TA_measured"] = self.sample["profile_X_TA"]
            ticks += 1
            assert ticks < 5000

    def place(self, X_TA):
        self.sample["X_TA"][0] = X_TA

    def tick(self, *signals, seconds=DT):
        for _ in range(round(seconds / DT)):
            word = sum(1 << SIGNAL[name] for name in signals)
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
        return float(self.sample["control_C"][0, 0])

    @property
    def cyclogram(self):
        return next(name for name, number in CYCLOGRAM.items() if number == self.sample["cyclogram"][0])

    def retract(self):
        """From the first contact to the drive."""
        self.tick("DK1")
        self.tick("DK1", "DSG", "DK2", seconds=1.0)
        assert self.cyclogram == "retract" and self.sample["mechanism_command"][0] & 1


# ------------------------------------------------------------------------------------------------------------------ thrust


@pytest.mark.parametrize("bottom", [("DK2",), RINGS], ids=["head on the bottom", "rings in full contact"])
def test_press_thrust_ends_at_the_bottom_captured_or_not(bottom):
    run = Run()
    run.tick()
    assert run.thrust == 0.0
    run.tick("DK1")
    assert run.cyclogram == "press" and run.thrust == THRUST
    run.tick(seconds=1.0)  # contact lost on the way: pressed on
    assert run.thrust == THRUST
    run.tick("DK1", *bottom)
    assert run.cyclogram == "press" and run.thrust == 0.0
    run.tick("DK1", seconds=0.5)  # the head rebounds from the bottom, which was seen
    assert run.cyclogram == "press" and run.thrust == 0.0
    run.tick("DK1", "DSG")
    assert run.thrust == 0.0


def test_capture_before_the_bottom_presses_on():
    run = Run()
    run.tick("DK1")
    run.tick("DK1", "DSG")
    assert run.cyclogram == "captured" and run.thrust == THRUST
    run.tick("DSG", "DK2")
    assert run.cyclogram == "damping" and run.thrust == 0.0


def test_no_capture_after_the_bottom_still_reverses_the_thrust():
    run = Run(capture_limit_s=2.0)
    run.tick("DK1")
    run.tick("DK2", seconds=1.5)
    assert run.thrust == 0.0
    run.tick(seconds=1.0)
    assert run.cyclogram == "retreat" and run.thrust == -THRUST


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
    assert run.cyclogram == "retract" and run.phase == "contact"
    run.tick(*signals, seconds=3.0)
    assert run.phase in ("finish", "retreat") and run.sample["end_cause"][0] == END["not_aligned"]


def test_complete_when_all_sensors_say_so_and_the_ports_are_aligned_for_a_while():
    run = Run(drive_after_s=0.0, complete_hold_s=0.5)
    run.retract()
    run.place(turned(0.4, y=0.009))
    run.tick(*DRAWN, seconds=0.45)
    run.tick("DSG", "DK2", "pushers")  # one sensor opens for a moment: from the beginning again
    run.tick(*DRAWN, seconds=0.45)
    assert run.cyclogram == "retract"
    run.tick(*DRAWN, seconds=0.1)
    assert run.cyclogram == "complete" and run.phase == "finish" and run.sample["end_cause"][0] == END["complete"]


def test_roll_is_no_tilt():
    run = Run(drive_after_s=0.0, complete_hold_s=0.1)
    run.retract()
    run.place(turned(5.0, "x"))
    run.tick(*DRAWN, seconds=0.3)
    assert run.cyclogram == "complete"


def test_a_run_without_retraction_ends_by_time_as_before():
    run = Run(contact_max_s=2.0)
    run.tick("DK1", seconds=2.5)
    assert run.sample["end_cause"][0] == END["time"]
