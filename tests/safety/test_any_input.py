"""No input moves a setpoint beyond its limits: the short form of `tests.safety.any_input`, and the stage alone with random demands."""

import numpy as np
import pytest

from rt_kernels.layout import CODES
from tests.safety import any_input
from tests.safety.conftest import PERIOD


def test_random_days_of_the_assembled_line():
    ticks, days, tally, recovered = any_input.campaign(120_000, seed=2)
    assert ticks >= 120_000 and days > 20 and recovered > 3
    # the days are worth something: runs that tripped, that never started, that continued to the end
    states = {state for state, _, _ in tally}
    assert {CODES["safety_state"][name] for name in ("following", "held", "not_armed")} <= states
    assert max(furthest for _, _, furthest in tally) >= CODES["phase"]["hold"]


def demands(rng, n, low, high):
    """Six demands as no model would make them: ramps, jumps, steps beyond the stroke."""
    walk = np.cumsum(rng.normal(0.0, 1.0, (n, 6)) * 10.0 ** rng.uniform(-7, -2, (1, 6)), axis=0)
    jumps = np.cumsum((rng.random((n, 6)) < 2e-3) * rng.normal(0.0, 0.5, (n, 6)), axis=0)
    return np.clip(4.0 + walk + jumps, low, high)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("keys", [{}, {"braking_m_s2": 0.2}])
def test_random_demands_of_the_stage_alone(stage, quiet, seed, keys):
    """Demands anywhere inside the stroke for 20,000 ticks of stalls, then a bad one, and the trip that it is."""
    rng = np.random.default_rng(seed)
    n = 20_000
    made = stage(stroke_reserve_m=0.0, following_max_m=1.0, following_time_s=10.0, rate_excess_s=10.0, skipped_periods_max=10_000, **keys)
    s = quiet(n)
    s["phase"][:3] = CODES["phase"]["idle"]
    s["leg_demand"][3:] = demands(rng, n - 3, 3.0, 5.0)
    s["periods"] = np.where(rng.random(n) < 0.02, rng.integers(1, 500, n), 1)
    bad = int(rng.integers(n // 2, n - 500))
    s["leg_demand"][bad, int(rng.integers(6))] = rng.choice(any_input.WEIRD)
    # the drives are where they were sent
    given = s["measured_leg"].copy()
    made.through(s)
    assert not any_input.broken(s, made.constants), seed
    assert np.array_equal(s["measured_leg"], given)
    # it got to the limits: fast, hard, at both ends
    rate = np.abs(s["leg_rate_setpoint"])
    assert rate.max() == made.constants["rate_max"]
    assert np.abs(np.diff(s["leg_rate_setpoint"], axis=0)).max() > 0.999 * made.constants["rate_step"]
    assert s["trip_tick"][-1] > 0 and PERIOD == made.constants["period"]


def test_the_check_sees_what_it_is_for(stage, quiet):
    """Each kind of violation, made by hand in a good run."""
    made = stage()
    good = quiet(50)
    good["phase"][:3] = CODES["phase"]["idle"]
    made.through(good)
    c = made.constants
    assert not any_input.broken(good, c)
    step = c["rate_step"] * c["period"]
    for field, where, change, says in (
        ("leg_setpoint", (0, 0), -1.0, "before the start"),
        ("leg_setpoint", (20, 3), np.nan, "not finite"),
        ("leg_setpoint", (20, 3), 1.2, "outside"),
        ("leg_setpoint", (20, 3), 1.1 * c["rate_max"] * c["period"], "faster"),
        ("leg_setpoint", (20, 3), 1.01 * step, "setpoints beyond the acceleration"),
        ("leg_setpoint", (20, 3), 1e-12, "do not agree"),
        ("leg_rate_setpoint", (20, 3), 1.01 * c["rate_step"], "beyond the acceleration"),
        ("safety_state", (30,), 3, "not armed again"),
    ):
        bad = good.copy()
        bad[field][where] += change
        assert says in any_input.broken(bad, c), says
