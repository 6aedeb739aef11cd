"""The proof of the one-step invariants, and that it is about the compiled step: the same bits."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import prove_limits as proof  # noqa: E402

REALS, BITS = list(proof.reals()), list(proof.bits())
WEIRD = [0.0, -0.0, 5e-324, 1e-300, 1e-12, 1e300, 1.7e308, math.inf, -math.inf, math.nan]


def named(statement):
    return statement.name


@pytest.mark.parametrize("statement", REALS, ids=named)
def test_inequalities_of_the_proof(statement):
    assert proof.by_z3(statement, 60.0) == "holds"


@pytest.mark.parametrize("statement", REALS + BITS, ids=named)
def test_the_hypotheses_contradict_nothing(statement):
    """From a contradiction everything follows: with the claim's opposite there is no model, with nothing there must be one."""
    possible = proof.Statement(statement.name, statement.hypotheses, _never())
    decide = proof.by_z3 if statement in REALS else proof.by_bitwuzla
    assert decide(possible, 60.0) == "refuted"


def _never():
    import z3

    return z3.BoolVal(False)


# the two that take the solver 10 s are left to the command
@pytest.mark.parametrize("statement", [s for s in BITS if s.name not in ("(1) |v'| <= v_max", "(1) v - A <= v' <= v + A")], ids=named)
def test_statements_about_every_bit_pattern(statement):
    assert proof.by_bitwuzla(statement, 100.0) == "holds"


def test_a_wrong_formula_is_refuted():
    """Acceleration clipped before the stroke, as it must not be: the solver finds the jump."""
    import z3

    m = proof.Terms()
    v, w, down, up = (m.variable(name) for name in ("v", "w", "down", "up"))
    p = proof.Constants(*(m.variable(name) for name in proof.Constants._fields))
    rate = proof.clip(m, proof.clip(m, w, m.sub(v, p.rate_step), m.add(v, p.rate_step)), m.neg(down), up)
    zero = m.number(0.0)
    sane = [z3.fpGEQ(down, zero), z3.fpGEQ(up, zero), z3.fpGEQ(p.rate_step, zero), z3.fpEQ(m.sub(w, w), zero), z3.fpEQ(m.sub(v, v), zero)]
    assert proof.by_bitwuzla(proof.Statement("", sane, z3.fpGEQ(rate, m.sub(v, p.rate_step))), 60.0) == "refuted"


# ------------------------------------------------------------------------------------------------------- the same bits


def states(rng, n, c):
    """Lengths and rates inside the limits, many of them at an end, at a limit, or one bit beside it."""
    y = rng.uniform(c["leg_min"], c["leg_max"], n)
    near = rng.integers(0, 4, n)
    y = np.where(near == 1, c["leg_max"] - 10.0 ** rng.uniform(-16, 0, n), y)
    y = np.where(near == 2, c["leg_min"] + 10.0 ** rng.uniform(-16, 0, n), y)
    y = np.clip(np.where(near == 3, np.nextafter(y, rng.choice([-10.0, 10.0], n)), y), c["leg_min"], c["leg_max"])
    v = rng.uniform(-1, 1, n) * c["rate_max"] * rng.choice([0.0, 1e-9, 1e-3, 1.0], n)
    v = np.where(rng.random(n) < 0.1, np.copysign(c["rate_max"], v), v)
    return y, v


def wanted(rng, n, c):
    w = rng.normal(0.0, 1.0, n) * 10.0 ** rng.uniform(-12, 4, n) * c["rate_max"]
    return np.where(rng.random(n) < 0.2, rng.choice(WEIRD, n), w)


def same_bits(a, b):
    return np.array_equal(np.asarray(a).view(np.uint64), np.asarray(b).view(np.uint64))


@pytest.mark.parametrize("keys", [{}, {"braking_m_s2": 0.3}, {"braking_m_s2": 10.0, "period_s": 2.5e-4}, {"period_s": 0.01}])
def test_compiled_frame_and_formula_have_the_same_bits(stage, keys):
    made = stage(**keys)
    c, m, rng = made.constants, proof.Doubles, np.random.default_rng(1)
    n = 20_000
    y, v = states(rng, n, c)
    w = wanted(rng, n, c)
    p = proof.Constants(**c)
    legs, rates, _ = made.move(y, v, w)
    formula = [proof.move_leg(m, p, *map(float, one)) for one in zip(y, v, w, strict=True)]
    assert same_bits(legs, [leg for leg, _ in formula]) and same_bits(rates, [rate for _, rate in formula])


def test_compiled_following_and_formula_have_the_same_bits(stage):
    made = stage()
    c, m, rng = made.constants, proof.Doubles, np.random.default_rng(2)
    n = 20_000
    y, v = states(rng, n, c)
    before = np.clip(y + rng.normal(0.0, 1.0, n) * 10.0 ** rng.uniform(-9, -1, n), c["leg_min"], c["leg_max"])
    demand = before + rng.normal(0.0, 1.0, n) * 10.0 ** rng.uniform(-9, 0, n)
    demand = np.where(rng.random(n) < 0.1, rng.choice(WEIRD, n), demand)
    periods = rng.choice([1, 1, 1, 2, 80, 400], n)
    p = proof.Constants(**c)
    legs, rates, _ = made.follow(y, v, demand, before, periods)
    formula = [proof.follow_leg(m, p, *map(float, one)) for one in zip(y, v, demand, before, periods, strict=True)]
    assert same_bits(legs, [leg for leg, _ in formula]) and same_bits(rates, [rate for _, rate in formula])


def test_compiled_frame_and_terms_of_the_solver_have_the_same_bits(stage):
    """The terms that the statements are about, with numbers in them, computed by the solver's own arithmetic."""
    made = stage()
    c, rng = made.constants, np.random.default_rng(3)
    m = proof.Terms()
    n = 60
    y, v = states(rng, n, c)
    w = wanted(rng, n, c)
    p = proof.Constants(*(m.number(c[name]) for name in proof.Constants._fields))
    legs, rates, _ = made.move(y, v, w)
    for k in range(n):
        leg, rate = proof.move_leg(m, p, *(m.number(float(x)) for x in (y[k], v[k], w[k])))
        assert same_bits([m.value(leg), m.value(rate)], [legs[k], rates[k]]), (y[k], v[k], w[k])


# ------------------------------------------------------------------------------------- the same in numbers, from any state


@pytest.mark.parametrize("keys", [{}, {"braking_m_s2": 0.01}, {"braking_m_s2": 10.0, "period_s": 2.5e-4}])
def test_it_continues_holding_frame_after_frame(stage, keys):
    """Adversary: in each frame the wanted rate that is worst, for 2000 frames from many states; the second condition in every one."""
    made = stage(**keys)
    c, rng = made.constants, np.random.default_rng(4)
    n = 200
    y, v = rng.uniform(c["leg_min"], c["leg_max"], n), np.zeros(n)
    a, d = c["braking_step"], c["braking"]

    def b(s):
        return np.maximum(np.sqrt(a * a + 2 * d * s) - a, 0.0)

    wish = rng.choice([-1.0, 1.0], n)
    for _ in range(2000):
        wish = np.where(rng.random(n) < 0.003, -wish, wish)
        w = np.where(rng.random(n) < 0.01, rng.choice(WEIRD, n), wish * 1e9)
        y_new, v_new, _ = made.move(y, v, w)
        assert (y_new >= c["leg_min"]).all() and (y_new <= c["leg_max"]).all()
        assert (np.abs(v_new) <= c["rate_max"]).all()
        assert (v_new <= v + c["rate_step"]).all() and (v_new >= v - c["rate_step"]).all()
        assert (v_new - c["rate_step"] <= b(c["leg_max"] - y_new)).all() and (v_new + c["rate_step"] >= -b(y_new - c["leg_min"])).all()
        assert (np.abs(y_new - y - v_new * c["period"]) <= 64 * proof.U * c["leg_max"]).all()
        y, v = y_new, v_new


def test_parameters_that_rounding_would_eat_are_refused(stage):
    with pytest.raises(ValueError, match="lost in rounding"):
        stage(braking_m_s2=0.01, period_s=1e-6)
