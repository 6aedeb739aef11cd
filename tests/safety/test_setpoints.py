"""Setpoints: stroke, rate, acceleration, braking, stalls, against closed forms."""

import numpy as np
import pytest

from rt_kernels.layout import CODES
from tests.safety.any_input import broken
from tests.safety.conftest import DELAYS, PERIOD, names

STATE, PHASE = CODES["safety_state"], CODES["phase"]
RATE, ACCELERATION = 0.5, 10.0
STEP = ACCELERATION * PERIOD


def started(stage, quiet, n, **keys):
    """A stage that has started, and n samples for it."""
    made = stage(**({"following_max_m": 1.0, "following_time_s": 10.0, "rate_excess_s": 10.0, "skipped_periods_max": 10_000} | keys))
    made.through(quiet(2, phase=PHASE["idle"]))
    return made, quiet(n)


def sent(made, samples):
    """Differences of the setpoints from frame to frame, the first one against the start."""
    before = samples["measured_leg"][0].copy()
    made.through(samples)
    return np.diff(samples["leg_setpoint"], axis=0, prepend=before[None])


# ----------------------------------------------------------------------------------------------------------- following


def test_a_demand_inside_the_limits_is_met_in_its_tick(stage, quiet):
    made, s = started(stage, quiet, 4000)
    t = np.arange(1, 4001) * PERIOD
    # 9.8 m/s2 and 0.49 m/s at the most, quintic start
    x = np.minimum(t / 0.5, 1.0)
    s["leg_demand"] += (0.024 * np.sin(20.0 * t) * (10 * x**3 - 15 * x**4 + 6 * x**5))[:, None]
    demand = s["leg_demand"].copy()
    made.through(s)
    assert np.abs(s["leg_setpoint"] - demand).max() < 1e-15 * 8
    assert not s["setpoint_status"].any() and not s["faults"].any()


def test_a_step_is_travelled_at_the_limits_and_without_overshoot(stage, quiet):
    """Off with the acceleration limit for a tick, then up to what half of it can stop at the demand; never beyond the demand."""
    made, s = started(stage, quiet, 3000)
    s["leg_demand"][:, 0] += 0.3
    step = sent(made, s)[:, 0]
    rate = step / PERIOD
    assert np.abs(np.diff(rate, prepend=0.0)).max() == pytest.approx(STEP, rel=1e-9)
    assert rate.max() == pytest.approx(RATE, rel=1e-9)
    y = s["leg_setpoint"][:, 0]
    assert np.all(np.diff(y) >= 0.0) and y[-1] == s["leg_demand"][-1, 0]
    # up with 10, down with 5 m/s2, the rest at 0.5 m/s
    expected = RATE / 10 + RATE / 5 + (0.3 - 0.5 * RATE**2 / 10 - 0.5 * RATE**2 / 5) / RATE
    assert np.flatnonzero(y == y[-1])[0] * PERIOD == pytest.approx(expected, abs=0.012)
    falling = np.diff(rate)[np.argmax(rate) + 400 :]
    assert falling.min() >= -STEP - 1e-9 and np.median(falling[falling < -1e-4]) == pytest.approx(-0.5 * STEP, rel=0.02)


def test_a_gap_is_closed_on_top_of_the_rate_of_the_demand(stage, quiet):
    made, s = started(stage, quiet, 1500)
    s["leg_demand"][:, 1] += 0.02 + 0.1 * PERIOD * np.arange(1500)
    demand = s["leg_demand"][:, 1].copy()
    step = sent(made, s)[:, 1]
    assert np.all(s["leg_setpoint"][:, 1] <= demand + 1e-15) and s["leg_setpoint"][-1, 1] == pytest.approx(demand[-1], abs=1e-14)
    assert step[-1] / PERIOD == pytest.approx(0.1, rel=1e-9)
    assert np.flatnonzero(demand - s["leg_setpoint"][:, 1] < 1e-9)[0] < 150


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_demand_that_is_no_number_is_not_followed(stage, quiet, bad):
    made, s = started(stage, quiet, 600)
    s["leg_demand"][:, 2] += 0.1 * PERIOD * np.arange(600)
    s["leg_demand"][300:, 2] = bad
    s_before = s["leg_setpoint"].copy()
    rate = sent(made, s) / PERIOD
    assert np.isfinite(s["leg_setpoint"]).all() and s_before.shape == rate.shape
    assert np.abs(np.diff(rate, axis=0)).max() <= STEP * (1 + 1e-9)
    assert "setpoint_not_finite" in names(s["faults"][300]) or abs(bad) < np.inf
    assert s["trip_tick"][-1] == 300 and s["safety_state"][-1] == STATE["held"]


def test_the_clip_bits_say_which_limit_and_which_leg(stage, quiet):
    made, s = started(stage, quiet, 2)
    s["leg_demand"][1, 4] += 0.2
    made.through(s)
    assert s["setpoint_status"].tolist() == [0, 1 << 12 | 1 << 20] and names(s["faults"][1]) == {"acceleration_limit"}
    # a demand beyond the stroke: bit 0 of its leg, and the end of the stroke is what is followed
    beyond, inside = ([np.array(x) for x in made.follow([4.999], [0.0], [demand], [4.999], [1])] for demand in (5.2, 5.0))
    assert beyond[2] == inside[2] | 1 and beyond[0] == inside[0] and beyond[1] == inside[1]


# -------------------------------------------------------------------------------------------------------------- stroke


@pytest.mark.parametrize("braking", [0.5, 4.0, 10.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_leg_that_is_driven_at_its_stop_brakes_before_it_with_the_braking_acceleration(stage, quiet, sign, braking):
    made, s = started(stage, quiet, 9000, stroke_reserve_m=0.0, braking_m_s2=braking)
    end = 5.0 if sign > 0 else 3.0
    s["leg_demand"][:, 3] = end
    rate = sign * sent(made, s)[:, 3] / PERIOD
    left = sign * (end - s["leg_setpoint"][:, 3])
    assert left.min() >= 0.0 and left[-1] < 1e-6 and s["trip_tick"][-1] == -1
    # the gap law (5 m/s2) and the braking law, whichever is softer
    softer = min(braking, 0.5 * ACCELERATION)
    fast = rate > 0.02
    assert np.all(rate[fast] <= np.sqrt(2 * softer * left[fast]) + 1e-9)
    slowing = np.diff(rate)[np.argmax(rate) :]
    slowing = slowing[(slowing < -1e-5) & (rate[np.argmax(rate) : -1] > 0.1)]
    assert np.median(slowing) == pytest.approx(-softer * PERIOD, rel=0.02)


@pytest.mark.parametrize("braking", [0.5, 4.0, 10.0])
def test_no_rate_towards_a_stop_that_could_not_be_braked(stage, braking):
    """b(s) in closed form: v T + v^2/(2 d) = s, for the largest wanted rate."""
    made = stage(braking_m_s2=braking)
    s = np.array([1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2])
    v = RATE * np.ones(len(s))
    for _ in range(200):  # from any rate the limiter comes down to b in the end; take the state one step before
        v = np.minimum(v, np.sqrt((braking * PERIOD) ** 2 + 2 * braking * s) - braking * PERIOD)
    legs, rates, _ = made.move(5.0 - s, np.minimum(v, RATE), np.full(len(s), 1e3))
    np.testing.assert_allclose(np.where(v < RATE, rates * PERIOD + rates**2 / (2 * braking), s), s, rtol=1e-6)
    assert (legs <= 5.0).all()


# ------------------------------------------------------------------------------------------------------------- braking


def tripped(stage, quiet, rates, braking=4.0, n=1500, **fields):
    """Setpoints from the tick before an ABORT on, at which the legs have these rates."""
    rates = np.asarray(rates)
    made, s = started(stage, quiet, n + 300, braking_m_s2=braking)
    t = PERIOD * np.arange(n + 300)
    x = np.minimum(t / 0.2, 1.0)
    s["leg_demand"] += np.outer(0.5 * x**2 * 0.2 + np.maximum(t - 0.2, 0.0), rates)
    s["guidance_fault"][300] = 1
    for name, value in fields.items():
        s[name][300:] = value
    made.through(s)
    assert s["trip_tick"][-1] == 300 and s["faults"][-1] & 1 << 30
    return s["leg_setpoint"][299:], s["leg_rate_setpoint"][299:], s["safety_state"][299:]


@pytest.mark.parametrize("braking", [1.0, 4.0, 10.0])
def test_a_trip_brakes_in_the_distance_and_time_of_the_closed_form(stage, quiet, braking):
    v = 0.3
    y, rate, state = tripped(stage, quiet, [v, 0.0, 0.0, 0.0, 0.0, 0.0], braking)
    steps = v / (braking * PERIOD)
    # rates v - a, v - 2a, ... : sum of a falling series
    assert y[-1, 0] - y[0, 0] == pytest.approx(PERIOD * sum(v - k * braking * PERIOD for k in range(1, int(steps + 1e-6) + 1)), rel=1e-6)
    held = int(np.argmax(state == STATE["held"]))
    assert held == pytest.approx(steps, abs=1.01)
    assert np.all(np.diff(rate[:held, 0])[:-1] == pytest.approx(-braking * PERIOD, rel=1e-6))
    assert np.array_equal(y[held:], np.broadcast_to(y[-1], y[held:].shape)) and not rate[held:].any()


def test_a_trip_keeps_the_direction_of_the_platform(stage, quiet):
    rates = np.array([0.4, -0.2, 0.1, 0.05, -0.3, 0.0])
    y, rate, _ = tripped(stage, quiet, rates)
    moved = y[-1] - y[0]
    np.testing.assert_allclose(moved / moved[0], rates / rates[0], atol=1e-9)
    fast = np.abs(rate[:, 0]) > 1e-6
    np.testing.assert_allclose(rate[fast] / rate[fast][:, :1], np.broadcast_to(rates / rates[0], rate[fast].shape), atol=1e-9)


def test_a_slow_leg_beside_its_stop_is_braked_for_its_own_stroke(stage):
    """In the ratio of the rates leg 1 would travel 0.5 x 0.1/(2 x 4) = 6.25 mm; it has 3 mm."""
    made = stage()
    y, v = np.full((1, 6), 4.0), np.zeros((1, 6))
    v[0, 0], v[0, 1], y[0, 1] = 0.5, 0.1, 5.0 - 3e-3
    seen = [(y.copy(), v.copy())]
    for _ in range(300):
        y, v, rest = made.brake(y, v)
        seen.append((y, v))
    lengths, rates = np.array([a[0] for a, _ in seen]), np.array([b[0] for _, b in seen])
    assert rest[0] and lengths[:, 1].max() <= 5.0
    assert np.abs(np.diff(rates, axis=0)).max() <= 4.0 * PERIOD * (1 + 1e-9)
    np.testing.assert_allclose(np.diff(lengths, axis=0), rates[1:] * PERIOD, atol=1e-14)


def test_a_trip_in_a_stall_brakes_frame_by_frame(stage, quiet):
    """Stalls of any length while braking: a frame moves the legs by its own period only."""
    v = 0.4
    plain, rates, _ = tripped(stage, quiet, [v] * 6)
    stalled, rates_too, _ = tripped(stage, quiet, [v] * 6, periods=7)
    assert np.array_equal(plain, stalled) and np.array_equal(rates, rates_too)


# -------------------------------------------------------------------------------------------------------------- stalls


@pytest.mark.parametrize("missed", [2, 10, 80, 300])
def test_time_that_passed_in_a_stall_is_not_travelled(stage, quiet, missed):
    """0.3 m/s, then a stall: the demand has moved on by 0.3 m/s x the stall, the setpoint continues frame by frame and catches up."""
    made, s = started(stage, quiet, 2500, rate_excess_s=10.0)
    s["periods"][1000] = missed
    ticks = np.cumsum(s["periods"])
    x = np.minimum(ticks * PERIOD / 0.2, 1.0)
    s["leg_demand"] += (0.3 * (0.1 * x**2 + np.maximum(ticks * PERIOD - 0.2, 0.0)))[:, None]
    demand, measured = s["leg_demand"].copy(), s["measured_leg"].copy()
    made.through(s)
    step = np.diff(s["leg_setpoint"], axis=0, prepend=measured[:1])
    assert np.abs(step).max() <= RATE * PERIOD * (1 + 1e-9)
    assert np.abs(np.diff(step, axis=0)).max() <= ACCELERATION * PERIOD**2 * (1 + 1e-6)
    assert step[1000, 0] == pytest.approx(0.3 * PERIOD, abs=STEP * PERIOD * 1.001)
    # caught up without overshoot
    assert (s["leg_setpoint"] <= demand + 1e-12).all()
    np.testing.assert_allclose(s["leg_setpoint"][-1], demand[-1], atol=1e-12)
    s["measured_leg"] = measured
    assert not broken(s, made.constants)


def test_the_following_error_of_a_stall_is_not_the_drives(stage, quiet):
    """The drives stand at the last setpoint after a stall: nothing is expected to lag, and the time of the stall does not count."""
    lag = DELAYS.drive_lag_s + DELAYS.measured_leg_delay_s
    made, s = started(stage, quiet, 300, following_max_m=0.004, following_time_s=0.05)
    t = PERIOD * np.arange(1, 301)
    s["leg_demand"] += (0.3 * (0.5 * np.minimum(t, 0.1) ** 2 / 0.1 + np.maximum(t - 0.1, 0.0)))[:, None]
    # measured in a tick: where the frame of the tick before has taken the leg, less the lag
    before = np.concatenate([s["measured_leg"][:1], s["leg_demand"][:-1]])
    rate = np.diff(before, axis=0, prepend=before[:1]) / PERIOD
    s["measured_leg"] = before - lag * rate
    s["periods"][200] = 80
    s["measured_leg"][200] = before[200]
    made.through(s[:201])
    assert np.abs(s["following_error"][:201]).max() < 1e-9 and "following_error" not in names(s["faults"][200])
    # one tick with a following error after a stall: its own period counts, not the stall
    made, s = started(stage, quiet, 3, following_max_m=0.004, following_time_s=0.05)
    s["periods"][1] = 80
    s["measured_leg"][1:] += 0.005
    made.through(s)
    assert not s["faults"].any()
    s = quiet(60)
    s["measured_leg"] += 0.005
    made.through(s)
    assert names(s["faults"][-1]) == {"following_error"}
