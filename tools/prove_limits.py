"""Proof that no setpoint leaves its limits: the one-step invariants of `rt_kernels/safety/limits.pyx`, over IEEE double arithmetic.

    python tools/prove_limits.py [--seconds S]        one line for each statement, exit 1 when one is refuted or not decided

What is to hold for every frame is in the docstring of `limits.pyx`, as (1) and (2). The formulas of the step stand here once more, written
over an arithmetic that is either Python's doubles or terms of an SMT solver; `tests/safety/test_proof.py` holds both against the compiled
step, bit by bit.

* `BITS`: statements about doubles as they are (theory of floating-point numbers, decided by bitwuzla), for every bit pattern of every
  length, rate, wanted rate and parameter, NaN and infinities included. Everything of (1), from (2).
* `REALS`: (2) is inductive, and how far rounding can move a frame. Here the solver for doubles gives up (two square roots and five
  products of 53-bit numbers in one formula), so each operation is what IEEE 754 says of it, the exact result times 1 + e with |e| <= u =
  2^-53, and the chain of inequalities is decided over the reals (z3), step by step.

Assumptions, not proven here:
  1. the compiler keeps to IEEE 754 binary64, round to nearest, no contraction (`-ffp-contract=off`, no `-ffast-math`); sqrt is correctly
     rounded. The comparison of bits is the test of it.
  2. rounding is monotone: p <= q gives fl(p) <= fl(q) (IEEE 754, 4.3). Used for the last step of (2), see `last step`.
  3. no underflow where a relative error is used: lengths are normal numbers whose differences are 0 or above 2^-80, and rates below
     2^-500 m/s move no leg. Flushing of denormal numbers to zero, which the loop switches on, therefore changes nothing.
  4. parameters as the constructor of `SafetyLimits` admits them (it computes the one inequality that is needed).
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

U = 2.0**-53


# ------------------------------------------------------------------------------------------------------------ arithmetics


class Doubles:
    """Python's floats."""

    add = staticmethod(lambda a, b: a + b)
    sub = staticmethod(lambda a, b: a - b)
    mul = staticmethod(lambda a, b: a * b)
    div = staticmethod(lambda a, b: a / b)
    sqrt = staticmethod(lambda a: math.sqrt(a) if a >= 0.0 else math.nan)
    neg = staticmethod(lambda a: -a)
    abs = staticmethod(abs)
    less = staticmethod(lambda a, b: a < b)
    equal = staticmethod(lambda a, b: a == b)
    both = staticmethod(lambda a, b: a and b)
    no = staticmethod(lambda a: not a)
    choose = staticmethod(lambda condition, a, b: a if condition else b)
    number = staticmethod(float)


class Terms:
    """Terms of z3's theory of floating-point numbers, round to nearest even."""

    def __init__(self) -> None:
        import z3

        rne, double = z3.RNE(), z3.Float64()
        self.add = lambda a, b: z3.fpAdd(rne, a, b)
        self.sub = lambda a, b: z3.fpSub(rne, a, b)
        self.mul = lambda a, b: z3.fpMul(rne, a, b)
        self.div = lambda a, b: z3.fpDiv(rne, a, b)
        self.sqrt = lambda a: z3.fpSqrt(rne, a)
        self.neg, self.abs, self.less, self.equal = z3.fpNeg, z3.fpAbs, z3.fpLT, z3.fpEQ
        self.both, self.no, self.choose = z3.And, z3.Not, z3.If
        self.number = lambda x: z3.FPVal(x, double)
        self.variable = lambda name: z3.FP(name, double)

    @staticmethod
    def value(term: Any) -> float:
        """The double that a term without variables stands for."""
        import struct

        import z3

        bits = z3.simplify(z3.fpToIEEEBV(z3.simplify(term)))
        return math.nan if not z3.is_bv_value(bits) else struct.unpack("<d", struct.pack("<Q", bits.as_long()))[0]


# ---------------------------------------------------------------------------------- the formulas of limits.pyx, line by line


def clip(m: Any, x: Any, low: Any, high: Any) -> Any:
    return m.choose(m.less(x, low), low, m.choose(m.less(high, x), high, x))


def braking_rate(m: Any, distance: Any, deceleration: Any, step: Any) -> Any:
    root = m.sqrt(m.add(m.mul(step, step), m.mul(m.mul(m.number(2.0), deceleration), distance)))
    rate = m.sub(root, step)
    return m.choose(m.less(m.number(0.0), rate), rate, m.number(0.0))


def next_rate(m: Any, p: Any, v: Any, down: Any, up: Any, wanted: Any) -> Any:
    """Rate of the next frame; down, up: what can be braked before either end."""
    zero = m.number(0.0)
    rate = m.choose(m.equal(m.sub(wanted, wanted), zero), wanted, zero)
    rate = m.choose(m.less(p.rate_max, m.abs(rate)), clip(m, rate, m.neg(p.rate_max), p.rate_max), rate)
    rate = clip(m, rate, m.neg(down), up)
    least, most = m.sub(v, p.rate_step), m.add(v, p.rate_step)
    inside = m.both(m.no(m.less(rate, least)), m.no(m.less(most, rate)))
    return m.choose(inside, rate, clip(m, rate, least, most))


def next_leg(m: Any, p: Any, y: Any, travel: Any) -> Any:
    return clip(m, m.add(y, travel), p.leg_min, p.leg_max)


def move_leg(m: Any, p: Any, y: Any, v: Any, wanted: Any) -> tuple[Any, Any]:
    """(y', v') of one frame."""
    down = braking_rate(m, m.sub(y, p.leg_min), p.braking, p.braking_step)
    up = braking_rate(m, m.sub(p.leg_max, y), p.braking, p.braking_step)
    rate = next_rate(m, p, v, down, up, wanted)
    return next_leg(m, p, y, m.mul(rate, p.period)), rate


def follow_leg(m: Any, p: Any, y: Any, v: Any, demand: Any, demand_before: Any, periods: Any) -> tuple[Any, Any]:
    """(y', v') of one frame towards a demand."""
    known = m.equal(demand, demand)
    target = m.choose(known, clip(m, demand, p.leg_min, p.leg_max), y)
    demand_rate = m.div(m.sub(target, demand_before), m.mul(p.period, periods))
    rate = m.div(m.sub(target, y), p.period)
    excess = m.sub(rate, demand_rate)
    allowed = braking_rate(m, m.mul(m.abs(excess), p.period), p.closing, p.closing_step)
    allowed = m.choose(m.less(allowed, p.rate_step), p.rate_step, allowed)
    slowed = m.add(demand_rate, m.choose(m.less(m.number(0.0), excess), allowed, m.neg(allowed)))
    return move_leg(m, p, y, v, m.choose(m.less(p.rate_step, m.abs(excess)), slowed, rate))


class Constants(NamedTuple):
    """Names of `SafetyLimits.constants`."""

    period: Any
    leg_min: Any
    leg_max: Any
    rate_max: Any
    rate_step: Any
    braking: Any
    braking_step: Any
    closing: Any
    closing_step: Any


# ------------------------------------------------------------------------------------------------------------- statements


class Statement(NamedTuple):
    """hypotheses and claim: terms of z3. It holds when the hypotheses without the claim have no model."""

    name: str
    hypotheses: list[Any]
    claim: Any


def bits() -> Iterator[Statement]:
    """(1) for every bit pattern. The square root and the product enter by what the first two statements say of them."""
    import z3

    m = Terms()
    names = ["y", "v", "w", "down", "up", "travel", "x", "q", *Constants._fields]
    var = {name: m.variable(name) for name in names}
    p = Constants(*(var[name] for name in Constants._fields))
    y, v, w, down, up, travel, x, q = (var[name] for name in names[:8])
    zero = m.number(0.0)

    def finite(a: Any) -> Any:
        return z3.Not(z3.Or(z3.fpIsNaN(a), z3.fpIsInf(a)))

    root = m.sub(m.sqrt(x), q)
    yield Statement("b is no NaN and not negative, whatever the distance", [], z3.fpGEQ(z3.If(z3.fpLT(zero, root), root, zero), zero))
    yield Statement("rate times period is a number", [finite(x), finite(q)], z3.Not(z3.fpIsNaN(m.mul(x, q))))

    least, most = m.sub(v, p.rate_step), m.add(v, p.rate_step)
    sane = [
        finite(p.rate_max), finite(p.rate_step), z3.fpGEQ(p.rate_max, zero), z3.fpGEQ(p.rate_step, zero),
        z3.fpLEQ(z3.fpNeg(p.rate_max), v), z3.fpLEQ(v, p.rate_max), finite(least), finite(most),
        z3.fpGEQ(down, zero), z3.fpGEQ(up, zero),
    ]  # fmt: skip
    can_brake = [z3.fpLEQ(least, up), z3.fpLEQ(z3.fpNeg(most), down)]
    rate = next_rate(m, p, v, down, up, w)
    yield Statement("(1) v' is finite", sane, finite(rate))
    yield Statement("(1) |v'| <= v_max", sane, z3.And(z3.fpLEQ(z3.fpNeg(p.rate_max), rate), z3.fpLEQ(rate, p.rate_max)))
    yield Statement("(1) v - A <= v' <= v + A", sane, z3.And(z3.fpLEQ(least, rate), z3.fpLEQ(rate, most)))
    yield Statement("(1) v' can be braked before either end", sane + can_brake, z3.And(z3.fpLEQ(z3.fpNeg(down), rate), z3.fpLEQ(rate, up)))
    still = next_rate(m, p, v, down, up, zero)
    yield Statement("a leg slower than A that is to stop, stops", [*sane, z3.fpLEQ(z3.fpAbs(v), p.rate_step)], z3.fpEQ(still, zero))

    stroke = [finite(p.leg_min), finite(p.leg_max), z3.fpLEQ(p.leg_min, y), z3.fpLEQ(y, p.leg_max)]
    leg = next_leg(m, p, y, travel)
    inside = z3.And(z3.fpLEQ(p.leg_min, leg), z3.fpLEQ(leg, p.leg_max))
    yield Statement("(1) y' is finite and inside the stroke", [*stroke, z3.Not(z3.fpIsNaN(travel))], z3.And(finite(leg), inside))


def reals() -> Iterator[Statement]:
    """(2) still holds, and the size of the rounding. Upper end of the stroke; the lower one is its mirror image."""
    import z3

    u = z3.RealVal(1) / 2**53
    # D = high - y and D' = high - y' exactly, D_, x, r, b as computed; V = v_max, e: how far y' lies beyond y + v' T
    d, T, a, V, H, y, v, D, D_, x, r, y1, e = z3.Reals("d T a V H y v D D_ x r y1 e")
    D1, D1_, x1, G, G1, K, t, s = z3.Reals("D1 D1_ x1 G G1 K t s")
    e1, e2 = z3.Reals("e1 e2")
    positive = [d > 0, T > 0, a > 0, V > 0, H > 0]

    # v' <= b(high - y): fl(fl(sqrt(fl(fl(a a) + fl(2 d D_)))) - a)
    yield Statement("root: x <= (a^2 + 2 d D)(1 + 4u)",
                    [*positive, D >= 0, D_ <= D * (1 + u), D_ >= 0, G == d * D, t == a * a, s == d * D_, s <= G * (1 + u), t > 0,
                     G >= 0, s >= 0, x <= (t * (1 + u) + 2 * s * (1 + u)) * (1 + u)],
                    x <= (t + 2 * G) * (1 + 4 * u))  # fmt: skip
    yield Statement("root: the bound on s above", [d > 0, D >= 0, D_ <= D * (1 + u), G == d * D, s == d * D_], s <= G * (1 + u))
    yield Statement("v' + a <= r (1 + u)", [a > 0, r >= a, v <= (r - a) * (1 + u)], v + a <= r * (1 + u))
    yield Statement("(v' + a)^2 <= (a^2 + 2 d D)(1 + 13u)",
                    [a > 0, v > 0, r > 0, v + a <= r * (1 + u), r * r <= x * (1 + u) * (1 + u), t >= 0, x <= t * (1 + 4 * u)],
                    (v + a) * (v + a) <= t * (1 + 13 * u))  # fmt: skip

    # y' = clip(fl(y + fl(v' T))): the clip to the lower end does not act on v' > 0 (rounding is monotone), that to the upper one helps
    yield Statement("y' <= y + v' T + e, e = 2u (H + v_max T)",
                    [H > 0, y <= H, y >= -H, s == v * T, t == V * T, s >= 0, s <= t, t <= H, e1 <= u, e1 >= -u, e2 <= u, e2 >= -u,
                     G == s * (1 + e1), y1 == (y + G) * (1 + e2)],
                    z3.And(y1 <= y + s + 2 * u * (H + t), y1 >= y + s - 2 * u * (H + t)))  # fmt: skip

    # the number under the root of the next frame
    yield Statement("next root: x' >= (a^2 + 2 d D')(1 - 4u)",
                    [t > 0, s >= 0, D1 >= 0, d > 0, D1_ >= D1 * (1 - u), G1 == d * D1, s == d * D1_, s >= G1 * (1 - u), G1 >= 0,
                     x1 >= (t * (1 - u) + 2 * s * (1 - u)) * (1 - u)],
                    x1 >= (t + 2 * G1) * (1 - 4 * u))  # fmt: skip
    yield Statement("next root: the bound on s above", [d > 0, D1 >= 0, D1_ >= D1 * (1 - u), G1 == d * D1, s == d * D1_], s >= G1 * (1 - u))
    # d T = a (1 + e1) by one rounding, hence d v' T <= a v' (1 + 2u); G = d D, G1 = d D'
    yield Statement("d D' >= d D - a v' (1 + 2u) - 2u K, K = d (H + v_max T)",
                    [d > 0, v > 0, T > 0, H > 0, V > 0, t == d * T, a >= t * (1 - u), a > 0, s == t * v, K == d * (H + V * T),
                     D1 >= D - v * T - 2 * u * (H + V * T), G == d * D, G1 == d * D1, s <= a * v * (1 + 2 * u)],
                    G1 >= G - a * v * (1 + 2 * u) - 2 * u * K)  # fmt: skip
    yield Statement("d T v' <= a v' (1 + 2u)", [t > 0, v > 0, a >= t * (1 - u), s == t * v], s <= a * v * (1 + 2 * u))
    yield Statement("v'^2 <= x'",
                    [a > 0, v > 0, v <= V, K > 0, (v + a) * (v + a) <= (a * a + 2 * G) * (1 + 13 * u),
                     G1 >= G - a * v * (1 + 2 * u) - 2 * u * K, a * a >= 32 * u * ((V + a) * (V + a) + K),
                     x1 >= (a * a + 2 * G1) * (1 - 4 * u)],
                    v * v <= x1)  # fmt: skip
    # last step: v' is a double and v' <= sqrt(x'), so v' <= fl(sqrt(x')) =: r'; a <= A, so fl(v' - A) <= fl(r' - a) <= b(high - y')
    yield Statement("last step: v' - A <= r' - a", [v > 0, r >= 0, v * v <= x1, r * r == x1, e >= a], v - e <= r - a)

    # how far the clip to the stroke moves a frame: v' T <= D and a little
    yield Statement("y + v' T <= high + 14u (2H + a T)",
                    [*positive, v > 0, D >= 0, D <= 2 * H, t == d * T, a <= t * (1 + u), a >= t * (1 - u), G == d * D,
                     (v + a) * (v + a) <= (a * a + 2 * G) * (1 + 13 * u), s == v * T, K == d * s, K >= v * a * (1 - 2 * u),
                     K <= v * a * (1 + 2 * u), y1 == a * T, x == d * y1, x >= a * a * (1 - 2 * u)],
                    K <= G + 14 * u * d * (2 * H + y1))  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- decisions


def by_bitwuzla(statement: Statement, seconds: float) -> str:
    """holds, refuted or undecided."""
    import bitwuzla
    import z3

    solver = z3.Solver()
    solver.add(*statement.hypotheses, z3.Not(statement.claim))
    text = "(set-logic QF_FP)\n" + solver.to_smt2().replace("(check-sat)", "")
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, round(seconds * 1000))
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(text, True, False)
    answer = parser.bitwuzla().check_sat()
    return {bitwuzla.Result.UNSAT: "holds", bitwuzla.Result.SAT: "refuted"}.get(answer, "undecided")


def by_z3(statement: Statement, seconds: float) -> str:
    """holds, refuted or undecided."""
    import z3

    solver = z3.Solver()
    solver.set("timeout", round(seconds * 1000))
    solver.add(*statement.hypotheses, z3.Not(statement.claim))
    answer = solver.check()
    return "holds" if answer == z3.unsat else "refuted" if answer == z3.sat else "undecided"


PARTS: tuple[tuple[str, Callable[[], Iterator[Statement]], Callable[[Statement, float], str]], ...] = (
    ("doubles", bits, by_bitwuzla),
    ("reals", reals, by_z3),
)


def prove(seconds: float = 60.0) -> Iterator[tuple[str, str, str, float]]:
    """(part, statement, verdict, seconds) one after the other."""
    for part, statements, decide in PARTS:
        for statement in statements():
            began = time.perf_counter()
            yield part, statement.name, decide(statement, seconds), time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="time for one statement")
    worst = 0
    for part, name, verdict, seconds in prove(parser.parse_args().seconds):
        print(f"{verdict:10s} {seconds:7.2f} s  {part:8s} {name}", flush=True)
        worst |= verdict != "holds"
    return worst


if __name__ == "__main__":
    sys.exit(main())
