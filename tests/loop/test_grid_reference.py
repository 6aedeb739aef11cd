"""The grid of the loop follows a reference clock: closed form of its deviation, limits, and the wall clock that runs on it."""

import time

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.clocks import WallClockPart
from rt_kernels.grid_reference import GridReference
from rt_kernels.loop import LoopLine
from rt_kernels.ring import SharedBlock

PERIOD = 1_000_000


def followed(reference, drift_ns, e0_ns, ticks, lost=()):
    """Deviations of a grid against a clock that gains `drift_ns` a tick; ticks in `lost` measure nothing."""
    e, course = float(e0_ns), []
    for k in range(ticks):
        course.append(e)
        if k not in lost:
            reference.measured(round(e), PERIOD)
        e += drift_ns - reference.step()
    return np.array(course)


@pytest.mark.parametrize("drift_ns", [50, -50])
def test_drift_of_50_ppm_in_closed_form(drift_ns):
    gain, e0 = 0.05, 20_000
    reference = GridReference(gain)
    found = followed(reference, drift_ns, e0, 1000)
    k, z = np.arange(1000), 1.0 - gain / 2.0
    expected = (e0 + k * (drift_ns - e0 * gain / 2.0) / z) * z**k
    # measured and corrected in whole nanoseconds: half of one each, of which the loop keeps no more than a few
    np.testing.assert_allclose(found, expected, rtol=0, atol=5.0)
    assert abs(found[-1]) <= 5.0
    assert abs(reference.rate_ns - drift_ns) < 0.5


def test_lost_frames_move_nothing_and_the_rate_is_kept():
    reference = GridReference()
    followed(reference, 50, 0, 2000)
    for _ in range(5):
        assert reference.step() == 0
    course = followed(reference, 50, 0, 40, lost=range(3, 8))
    # five ticks without a correction: the clock has gained five times its drift, no more
    assert abs(course[8] - course[3] - 5 * 50) <= 1.0 and np.max(np.abs(course)) < 300.0


def test_correction_and_rate_are_limited():
    reference = GridReference(integral_max_ns=500.0, step_max_ns=2000.0)
    for sign in (1, -1):
        for _ in range(1000):
            reference.measured(sign * 30_000, PERIOD)
            assert abs(reference.step()) <= 2000
        assert reference.rate_ns == sign * 500.0
        assert reference.step() == 0


def test_what_is_clipped_says_nothing_about_the_rate():
    reference = GridReference(integral_max_ns=500.0, step_max_ns=2000.0)
    for _ in range(1000):
        reference.measured(400_000, PERIOD)
        assert reference.step() == 2000
    assert reference.rate_ns == 0.0


def test_from_half_a_period_with_spikes_of_late_frames():
    """50 ppm, from 400 us, every 50th frame 200 us late: the grid stays within what one clipped correction a spike moves it."""
    reference, e, course = GridReference(), 400_000.0, []
    for k in range(3000):
        reference.measured(round(e + (200_000 if k % 50 == 0 else 0)), PERIOD)
        e += 50 - reference.step()
        course.append(e)
    assert np.max(np.abs(course[600:])) < 2500.0
    assert abs(reference.rate_ns - 50) < 50.0


@pytest.mark.parametrize("drift_ns", [50, -50])
def test_what_the_host_was_late_is_not_the_grids(drift_ns):
    """Frames leave 40 us after their point of the grid and up to 300 us more, and so they arrive: but for the slow mean of that the grid
    follows as if all came when they should."""
    reference, e, course = GridReference(), 20_000.0, []
    late = np.minimum(np.random.default_rng(1).exponential(30_000.0, 6000), 300_000.0)
    for k in range(6000):
        host_ns = 40_000 + int(late[k])
        reference.measured(round(e) + host_ns, PERIOD, host_ns)
        assert reference.deviation_ns == round(e) + host_ns
        e += drift_ns - reference.step()
        course.append(e)
    usual = np.mean(course[2000:])  # the mean of what is usual, in which the grid comes earlier
    assert -80_000 < usual < -40_000
    assert np.std(course[2000:]) < 2000.0 and abs(reference.rate_ns - drift_ns) < 30.0


@pytest.mark.parametrize(
    ("e", "wrapped"), [(0, 0), (499_999, 499_999), (500_000, -500_000), (-500_000, -500_000), (3_000_001, 1), (-1, -1)]
)
def test_deviation_is_wrapped_to_half_a_period(e, wrapped):
    reference = GridReference()
    reference.measured(e, PERIOD)
    assert reference.deviation_ns == wrapped


@pytest.mark.parametrize("keys", [{"gain": 0.0}, {"gain": 1.0}, {"integral_max_ns": 0.0}, {"step_max_ns": -1.0}])
def test_what_cannot_be_is_refused(keys):
    with pytest.raises(ValueError, match=next(iter(keys))):
        GridReference(**keys)


def test_a_grid_begins_in_the_phase_of_the_one_before():
    reference = GridReference()
    assert reference.next_point(123, PERIOD) == 123
    reference.begin(5_000_250)
    assert reference.next_point(9_000_000, PERIOD) == 9_000_250
    assert reference.next_point(9_000_250, PERIOD) == 9_000_250
    assert reference.next_point(1_000_000, PERIOD) == 1_000_250


def test_the_wall_clock_waits_where_its_reference_is_behind():
    """The grid is early by 40 ms against its reference and takes 0.9 of it back at once: the second tick cannot come before that."""
    period, early = 100_000_000, 40_000_000
    reference = GridReference(gain=0.9, step_max_ns=float(period))
    reference.measured(-early, period)
    stages = assembly.simulation(load_test()).line.stages
    block = SharedBlock.create(10, sum(channel.count for stage in stages.values() for channel in stage.AUX))
    clock = WallClockPart(period_ns=period, duration_ns=2 * period, priority=0, block=block, reference=reference)
    line = LoopLine(clock, [], stages, block)
    began = time.monotonic_ns()
    line.run()
    assert time.monotonic_ns() - began >= period + 0.9 * early  # a sleep ends late at times, never before its end
    assert reference.moved_ns == -0.9 * early
    assert clock.facts()["grid"] == {"moved_ns": -0.9 * early, "reference_gains_ppm": 1e6 * -0.9 * early / period}
    assert reference.rate_ns == -500.0  # its limit
    assert "grid" not in WallClockPart(period_ns=period, duration_ns=period, priority=0).facts()


def test_the_wall_clock_takes_it():
    keys = {"period_ns": PERIOD, "duration_ns": PERIOD, "priority": 0}
    WallClockPart(**keys, reference=GridReference())
    with pytest.raises(TypeError):
        WallClockPart(**keys, reference=1)
