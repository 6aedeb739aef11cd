"""The variant with a movable limiter in whole dockings, through the line on the ideal stand."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.layout import CODES
from tests.docking_course import first, signal
from tests.mechanisms.probe_cone.shipped import SLIP_TRAVEL, docking

MOVABLE = dict(vx=0.10, miss=(0.03, -0.02), angles=(0.02, -0.02, 0.01), w=(0.0, 0.003, 0.003), duration=420.0, press=300.0)
GAPS = tuple(f"pusher{i}_gap" for i in range(1, 5))


def test_N14_course_with_the_movable_limiter():
    """Limiter after capture, full contact, pushers, brake 1 turned back by the drive while the nut stands still, then planes together."""
    out = docking("probe_cone_movable_limiter", ("plane_gap", *GAPS, "clutch_slip1", "stroke", "drive_angle", "movable_x"), **MOVABLE)
    t = out["time"]
    # the widest of the four gaps, and with it every one
    end = int(np.argmax(signal(out, "planes_together")))
    assert out["end"] == CODES["end_cause"]["complete"]
    assert out["plane_gap"][end] == pytest.approx(0.0005, abs=1e-4)
    assert max(out[gap][end] for gap in GAPS) == out["plane_gap"][end]
    slip1, stroke, drive = out["clutch_slip1"], out["stroke"], out["drive_angle"]
    assert slip1.max() > 1.0
    capture, start, pushers = (first(out, signal(out, name)) for name in ("DSG", "drive_running", "pushers"))
    assert capture < start < pushers
    # retraction at 1 mm/s while nothing resists
    on = (t > start + 10.0) & (t < pushers)
    assert np.polyfit(t[on], stroke[on], 1)[0] == pytest.approx(-1e-3, rel=0.05)
    # the limiter is pressed in and follows
    assert out["movable_x"].min() < 0.69 - 0.03
    # brake 1: turned back while the pushers pull; the probe stands still meanwhile
    back = np.flatnonzero((np.diff(slip1) < 0) & (t[1:] > pushers))
    assert len(back)
    travel = (slip1[back[0]] - slip1[back[-1] + 1]) * SLIP_TRAVEL
    elapsed = t[back[-1] + 1] - t[back[0]]
    assert travel > 0.002 and travel / elapsed == pytest.approx(1e-3, rel=0.35)
    moved = stroke[back[0]] - stroke[back[-1] + 1]
    assert abs(moved) < 0.5 * travel
    assert np.all(np.diff(drive)[back] > 0)


def test_N15_angular_amplitude_is_smaller_with_the_movable_limiter():
    """Limiter forward, no retraction, both models inside their range: the tilt between the craft reaches 8.8 deg with the fixed limiter and
    3.3 deg with the movable one. The text has "about 1.5 times" for its expert case and its own dimensions; the shipped, invented ones give
    2.7."""
    initial = dict(vx=0.10, miss=(0.0301, -0.02), angles=(0.02, -0.02, 0.01), w=(0.0, 0.005, 0.005), duration=180.0,
                   overrides=("mechanism.motor_stall_n_m=0.0",))
    amplitude = []
    for name in ("probe_cone_modified", "probe_cone_movable_limiter"):
        out = docking(name, ("over_limit",), **initial)
        assert out["over_limit"][-1] == 0.0
        axis = Rotation.from_quat(out["X_TA"][:, 3:]).as_matrix()[:, 0, 0]
        tilt = np.degrees(np.arccos(axis[out["time"] > first(out, signal(out, "DSG"))]))
        # swung out and on its way back: an amplitude, not a drift that was cut off
        assert tilt[-1] < 0.98 * tilt.max()
        amplitude.append(tilt.max())
    assert amplitude == [pytest.approx(8.80, rel=0.03), pytest.approx(3.27, rel=0.03)]
