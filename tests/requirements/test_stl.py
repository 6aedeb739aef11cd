"""Formulas against brute force and against rtamt's own evaluation; live they give an interval that holds what comes."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil_server.log.record import record_dtype
from hil_server.requirements import MET, NOT_JUDGED, VIOLATED, Watch, read
from hil_server.requirements.declaration import faults_of
from hil_server.requirements.expression import channels
from hil_server.requirements.stl import formula
from rt_kernels.layout import CODES

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    rtamt = pytest.importorskip("rtamt")

KNOWN = channels()
ATOMS = ("F_T[0] < 5", "F_T[1] > F_T[0]", "abs(F_T[0]) - (2 * F_T[1]) >= 0.5")
INTERVALS = ("", "[0,3ms]", "[1ms,4ms]", "[2ms,2ms]", "[5ms,40ms]")

formulas = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds("not({})".format, inner),
        st.builds("({}) {} ({})".format, inner, st.sampled_from(("and", "or", "implies", "iff", "xor")), inner),
        st.builds("{}{}({})".format, st.sampled_from(("always", "eventually", "once", "historically")), st.sampled_from(INTERVALS), inner),
        st.builds("({}) {}{} ({})".format, inner, st.sampled_from(("until", "since")), st.sampled_from(INTERVALS), inner),
    ),
    max_leaves=4,
)


def records_of(values, ticks=None):
    found = np.zeros(len(values), record_dtype(0))
    found["F_T"][:, :2] = values
    found["time_ns"] = (np.arange(len(values)) if ticks is None else ticks) * 1_000_000
    found["phase"] = CODES["phase"]["contact"]
    return found


def evaluated(text, records, closed=True):
    one = formula(text, {}, KNOWN)
    return one.robustness(records["time_ns"], one.signals(records), closed)


def brute(node, t, x, i):
    """Robustness at tick i by the definition."""
    kind, inner = type(node).__name__.removeprefix("Timed"), node.children
    if kind in ("Variable", "Constant", "Abs", "Addition", "Subtraction", "Multiplication"):
        values = [brute(child, t, x, i) for child in inner]
        return {"Variable": lambda: x[int(node.var[1:]), i], "Constant": lambda: node.val, "Abs": lambda: abs(values[0]),
                "Addition": lambda: values[0] + values[1], "Subtraction": lambda: values[0] - values[1],
                "Multiplication": lambda: values[0] * values[1]}[kind]()  # fmt: skip
    if kind == "Predicate":
        a, b = (brute(child, t, x, i) for child in inner)
        return b - a if node.operator.name in ("LESS", "LEQ") else a - b
    if kind == "Neg":
        return -brute(inner[0], t, x, i)
    if kind in ("Conjunction", "Disjunction", "Implies", "Iff", "Xor"):
        a, b = (brute(child, t, x, i) for child in inner)
        both = min(max(-a, b), max(-b, a))
        return {"Conjunction": min(a, b), "Disjunction": max(a, b), "Implies": max(-a, b), "Iff": both, "Xor": -both}[kind]
    begin, end = 0.0, math.inf
    if type(node).__name__.startswith("Timed"):
        scale = {"": 1e9, "s": 1e9, "ms": 1e6}
        begin, end = float(node.begin) * scale[node.begin_unit], float(node.end) * scale[node.end_unit]
    back = kind in ("Once", "Historically", "Since")
    there = [j for j in range(len(t)) if begin <= ((t[i] - t[j]) if back else (t[j] - t[i])) <= end]
    if kind in ("Always", "Historically"):
        return min((brute(inner[0], t, x, j) for j in there), default=math.inf)
    if kind in ("Eventually", "Once"):
        return max((brute(inner[0], t, x, j) for j in there), default=-math.inf)
    best = -math.inf
    for j in there:
        between = range(j + 1, i + 1) if back else range(i, j)
        holds = min((brute(inner[0], t, x, k) for k in between), default=math.inf)
        best = max(best, min(brute(inner[1], t, x, j), holds))
    return best


@settings(max_examples=150, deadline=None)
@given(formulas, st.integers(0, 10**6))
def test_against_the_definition(text, seed):
    rng = np.random.default_rng(seed)
    ticks = np.sort(rng.choice(30, 9, replace=False))  # steps of any length
    records = records_of(rng.normal(3.0, 4.0, (9, 2)), ticks)
    one = formula(text, {}, KNOWN)
    low, high = one.robustness(records["time_ns"], one.signals(records), closed=True)
    assert low == high == pytest.approx(brute(one.tree, records["time_ns"].tolist(), one.signals(records), 0))


@pytest.mark.parametrize("text", [
    "always[0,3ms](x0 < 5)", "eventually[1ms,4ms](x1 > x0)", "always(x0 < 5 implies eventually[0,5ms](x1 > 2))", "(x0 < 5) until (x1 > 4)",
    "(x0 < 9) until[1ms,6ms] (x1 > 4)", "always[0,9ms](once[0,3ms](x0 < 1))", "eventually(historically[0,2ms](x0 > 0))",
    "always[2ms,8ms]((x0 < 8) since[0,4ms] (x1 > 2))", "not(always(abs(x0 - x1) <= 6)) or eventually[0,1ms](x0 > 100)",
])  # fmt: skip
@pytest.mark.parametrize("seed", range(4))
def test_against_rtamt(text, seed):
    """At the first tick of a trace that is longer than any window: behind its end the two differ by convention."""
    values = np.random.default_rng(seed).normal(3.0, 4.0, (60, 2))
    theirs = rtamt.StlDiscreteTimeSpecification()
    for name in ("x0", "x1"):
        theirs.declare_var(name, "float")
    theirs.set_sampling_period(1, "ms", 0.1)
    theirs.spec = text
    theirs.parse()
    wanted = theirs.evaluate({"time": list(range(60)), "x0": values[:, 0].tolist(), "x1": values[:, 1].tolist()})[0][1]
    assert evaluated(text.replace("x0", "F_T[0]").replace("x1", "F_T[1]"), records_of(values))[0] == pytest.approx(wanted)


@settings(max_examples=60, deadline=None)
@given(formulas, st.integers(0, 10**6), st.integers(1, 11))
def test_while_it_continues_the_interval_holds_what_comes(text, seed, known):
    records = records_of(np.random.default_rng(seed).normal(3.0, 4.0, (12, 2)))
    low, high = evaluated(text, records[:known], closed=False)
    end = evaluated(text, records)[0]
    assert low <= high
    if math.isfinite(end):  # a window with no tick in it, behind the end of the run, counts for nothing by convention
        assert low <= end <= high


def test_in_a_watch_live_and_at_the_end():
    values = np.zeros((3000, 2))
    values[1000:1600, 0] = 100.0
    records = records_of(values)
    row = {"name": "lets go", "stl": "always(force > 50 implies eventually[0,1] force < 5)", "signals": {"force": "norm(F_T[0:3])"}}
    watch, seen = Watch(read([row], [])), []
    for at in range(0, 3000, 100):
        watch.see(records[at : at + 100])
        watch._judges[0]._next_look = 0.0  # as often as one asks
        seen.append(watch.results(final=False)[0].verdict)
    assert set(seen) == {MET, NOT_JUDGED}  # met so far; open while the force is on and may still go
    assert seen[5] == seen[20] == MET and seen[12] == NOT_JUDGED
    final, = watch.results()
    assert final.verdict == MET and final.margin == 5.0
    values[1000:2500, 0] = 100.0
    watch = Watch(read([row], []))
    watch.see(records_of(values)[:2400])
    broken, = watch.results(final=False)
    assert broken.verdict == VIOLATED and broken.margin == -50.0 and "does not hold" in broken.words


@pytest.mark.parametrize(("text", "reported"), [
    ("always[0,2](", "no formula"), ("always[2,0](F_T[0] < 1)", "ends before it begins"), ("F_T[0]", "is not a condition"),
    ("always(F_T[0])", "is not a condition"), ("F_T[7] < 1", "outside"), ("rise(F_T[0] < 1)", "not supported"),
    ("(F_T[0] < 1) < 2", "number has to be"),
    ("next(F_T[0] < 1)", "not supported"), ("", "no formula"),
])  # fmt: skip
def test_refused(text, reported):
    found = faults_of([{"name": "x", "stl": text}])
    assert len(found) == 1 and reported in found[0] and "requirement[0].stl" in found[0], found


def test_names_of_its_own():
    assert "word of the formula's language" in faults_of([{"name": "x", "stl": "always(until < 1)", "signals": {"until": "F_T[0]"}}])[0]
    assert faults_of([{"name": "x", "stl": "always(some.channel < 1)"}]) == []  # perhaps a part has it
    assert formula("always(norm(F_T[0:3]) < 2 and tilt(X_TA) < 0.1)", {}, KNOWN).inputs[1].text == "tilt(X_TA)"
