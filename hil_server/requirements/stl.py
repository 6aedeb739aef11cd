"""Signal temporal logic: a formula over channels, its robustness over ticks that need not be evenly spaced.

The formula is read by `rtamt` (grammar and tree; group `requirements` of the package). Its evaluation is here, because rtamt's own takes
tens of microseconds a tick in Python, wants evenly spaced samples, and knows nothing of a run that is not over yet:

    x < c                 c - x; x > c: x - c; <=, >= the same; ==: -|x - c|; !=: |x - c|
    not, and, or          minus, smallest, largest; implies, iff, xor by them
    always[a,b] f         smallest f of the ticks from t + a to t + b; eventually[a,b]: largest; without an interval to the end
    historically, once    the same backward, from t - b to t - a
    f until[a,b] g        largest, over the ticks from t + a to t + b, of the smaller of g there and of f before there
    f since[a,b] g        the same backward

(Donze and Maler 2010). Times are seconds, or have their unit in the interval, as [100ms, 2s]. Signals are in SI units. What lies behind the
last tick of a run that is over counts for nothing; of one in progress it may be anything, so that there the robustness is an interval.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from hil_server.errors import ConfigurationError
from hil_server.requirements.expression import Channels, Expression, ExpressionError, expression
from hil_server.requirements.window import window_min
from hil_server.values import Given

WORDS = {
    "always", "eventually", "until", "unless", "historically", "once", "since", "next", "prev", "s_next", "s_prev", "and", "or", "not",
    "implies", "iff", "xor", "rise", "fall", "abs", "sqrt", "exp", "pow", "true", "false", "TRUE", "FALSE", "True", "False", "s", "ms",
    "us", "ns", "ps", "G", "F", "U", "H", "O", "S", "X", "Y",
}  # fmt: skip
TOKEN = re.compile(r"(?:norm|tilt|yaw|pitch|roll|min|max)\([^()]*\)|[A-Za-z_][\w.#]*(?:\[\d+\])?")
SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
Pair = tuple[np.ndarray, np.ndarray]  # lowest and highest robustness, (n,) each


class Operator(Protocol):
    """Of a comparison."""

    name: str


class Node(Protocol):
    """A node of rtamt's tree: what is read of the kinds in ARITHMETIC and TRUTHS."""

    name: str
    children: "list[Node]"
    operator: Operator
    var: str
    val: float
    begin: str
    begin_unit: str
    end: str
    end_unit: str


@dataclass(frozen=True)
class Formula:
    """A formula that was read. inputs: its signals, in the order of their numbers; tree: what rtamt made of it."""

    text: str
    inputs: tuple[Expression, ...]
    tree: Node

    def signals(self, records: np.ndarray) -> np.ndarray:
        """The signals of records (n,), (len(inputs), n) in SI."""
        return np.array([one.values(records) for one in self.inputs]).reshape(len(self.inputs), len(records))

    def robustness(self, times_ns: np.ndarray, signals: np.ndarray, closed: bool) -> tuple[float, float]:
        """Lowest and highest robustness at the first tick. closed: the run, or the stretch, is over: then both are one."""
        low, high = _Evaluation(times_ns, signals, closed).pair(self.tree)
        return float(low[0]), float(high[0])


def formula(text: str, signals: Given, known: Channels) -> Formula:
    """The formula in `text`. signals: names of its own for expressions. Raises ExpressionError, UnknownChannelError; ConfigurationError
    where rtamt is not installed."""
    named = {name: expression(str(of), known) for name, of in signals.items()}
    if clash := sorted(set(named) & WORDS):
        raise ExpressionError(f"{clash[0]!r} is a word of the formula's language, no name of a signal")
    inputs: dict[str, Expression] = {}

    def number(found: re.Match[str]) -> str:
        token = found[0]
        if token in WORDS:
            return token
        inputs.setdefault(token, named[token] if token in named else expression(token, known))
        return f"x{list(inputs).index(token)}"

    plain = TOKEN.sub(number, text)
    tree = _parsed(plain, len(inputs))
    _supported(tree)
    return Formula(text, tuple(inputs.values()), tree)


@lru_cache(maxsize=32)
def _parsed(text: str, count: int) -> Node:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the parser's run-time library
            import rtamt  # type: ignore[import-untyped]
    except ImportError as error:
        needed = "a requirement with stl needs rtamt: pip install 'hil-server[requirements]' (Python below 3.13)"
        raise ConfigurationError(needed) from error
    specification = rtamt.StlDenseTimeSpecification()
    for i in range(count):
        specification.declare_var(f"x{i}", "float")
    specification.spec = text
    try:
        specification.parse()
    except Exception as error:  # the parser's own, and what it trips over in a text that is none
        message = " ".join(str(error).split()).partition(" expecting ")[0].removeprefix("RTAMT Exception: ")
        if message.startswith(("Attempting full context", "Ambiguity", "Context sensitivity")):
            message = "it can be read in two ways: put its parts in parentheses, or its arithmetic into signals"
        raise ExpressionError(f"no formula: {message or type(error).__name__}") from None
    if len(specification.ast.specs) != 1:
        raise ExpressionError(f"{len(specification.ast.specs)} formulas, limit one")
    tree: Node = specification.ast.specs[0]
    return tree


def _supported(node: Node) -> None:
    """Raises ExpressionError for an operator that is not evaluated here, an interval that is none, a number where a truth has to be."""
    kind = type(node).__name__
    if kind in ARITHMETIC:
        raise ExpressionError(f"{node.name!r:.60} is not a condition: compare it, e.g. {node.name[:20]} > 0")
    if kind not in TRUTHS:
        raise ExpressionError(f"operator {kind} is not supported, limit {', '.join(sorted(TRUTHS))}")
    if kind.startswith("Timed"):
        begin, end = _interval(node)
        if not 0.0 <= begin <= end:
            raise ExpressionError(f"interval [{begin:g} s, {end:g} s] ends before it begins")
    for child in _children(node):
        if kind != "Predicate":
            _supported(child)
        else:
            _arithmetic(child)


def _arithmetic(node: Node) -> None:
    if type(node).__name__ not in ARITHMETIC:
        raise ExpressionError(f"{node.name!r:.60} stands where a number has to be")
    for child in _children(node):
        _arithmetic(child)


def _children(node: Node) -> list[Node]:
    """Operands; rtamt lists that of `not` twice."""
    children = list(getattr(node, "children", ()))
    return children[:1] if type(node).__name__ == "Neg" else children


def _interval(node: Node) -> tuple[float, float]:
    """Begin and end in s."""
    return float(node.begin) * SECONDS[node.begin_unit], float(node.end) * SECONDS[node.end_unit]


class _Evaluation:
    """One trace. An open one has one tick more, infinitely late, of which every comparison may be anything."""

    def __init__(self, times_ns: np.ndarray, signals: np.ndarray, closed: bool) -> None:
        self.closed, self.count = closed, len(times_ns)
        self.t = times_ns.astype(np.int64)
        self.signals = signals
        self.size = self.count + (not closed)

    def pair(self, node: Node) -> Pair:
        """Robustness of a node in every tick."""
        return TRUTHS[type(node).__name__](self, node)

    # numbers ------------------------------------------------------------------------------------------------------------
    def number(self, node: Node) -> np.ndarray:
        """Value of an arithmetic node in every tick, (count,)."""
        kind = type(node).__name__
        if kind == "Variable":
            found: np.ndarray = self.signals[int(node.var[1:])]
            return found
        if kind == "Constant":
            return np.full(self.count, float(node.val))
        with np.errstate(all="ignore"):
            result: np.ndarray = ARITHMETIC[kind](*(self.number(child) for child in _children(node)))
            return result

    def predicate(self, node: Node) -> Pair:
        """Distance of two numbers."""
        a, b = (self.number(child) for child in node.children)
        kind = node.operator.name
        if kind in ("LESS", "LEQ"):
            distance = b - a
        elif kind in ("GREATER", "GEQ"):
            distance = a - b
        else:
            distance = np.abs(a - b) if kind == "NEQ" else -np.abs(a - b)
        distance = np.where(np.isnan(distance), -np.inf, distance)
        if self.closed:
            return distance, distance
        return np.append(distance, -np.inf), np.append(distance, np.inf)

    # truths -------------------------------------------------------------------------------------------------------------
    def negation(self, node: Node) -> Pair:
        """Minus."""
        low, high = self.pair(node.children[0])
        return -high, -low

    def both(self, node: Node) -> Pair:
        """Smaller."""
        (a, b), (c, d) = (self.pair(child) for child in node.children)
        return np.minimum(a, c), np.minimum(b, d)

    def either(self, node: Node) -> Pair:
        """Larger."""
        (a, b), (c, d) = (self.pair(child) for child in node.children)
        return np.maximum(a, c), np.maximum(b, d)

    def implication(self, node: Node) -> Pair:
        """Not the one, or the other."""
        (a, b), (c, d) = (self.pair(child) for child in node.children)
        return np.maximum(-b, c), np.maximum(-a, d)

    def equal(self, node: Node) -> Pair:
        """Each implies the other."""
        (a, b), (c, d) = (self.pair(child) for child in node.children)
        return np.minimum(np.maximum(-b, c), np.maximum(-d, a)), np.minimum(np.maximum(-a, d), np.maximum(-c, b))

    def unequal(self, node: Node) -> Pair:
        """One of the two."""
        low, high = self.equal(node)
        return -high, -low

    # times --------------------------------------------------------------------------------------------------------------
    def windows(self, node: Node, forward: bool) -> tuple[np.ndarray, np.ndarray]:
        """First tick and one behind the last of the window of every tick."""
        n = self.size
        if not type(node).__name__.startswith("Timed"):
            at = np.arange(n)
            return (at, np.full(n, n)) if forward else (np.zeros(n, int), at + 1)
        begin, end = (round(1e9 * s) for s in _interval(node))
        if forward:
            first = np.searchsorted(self.t, self.t + begin, side="left")
            behind = np.searchsorted(self.t, self.t + end, side="right")
            if not self.closed:
                behind = np.where(self.t + end > self.t[-1], n, behind)  # it reaches behind what is known
        else:
            first = np.searchsorted(self.t, self.t - end, side="left")
            behind = np.searchsorted(self.t, self.t - begin, side="right")
        if not self.closed:
            first, behind = np.append(first, n - 1), np.append(behind, n)
        return first, behind

    def all_of(self, forward: bool) -> Callable[[Node], Pair]:
        """Smallest in the window."""

        def found(node: Node) -> Pair:
            low, high = self.pair(node.children[0])
            first, behind = self.windows(node, forward)
            return window_min(low, first, behind), window_min(high, first, behind)

        return found

    def any_of(self, forward: bool) -> Callable[[Node], Pair]:
        """Largest in the window."""

        def found(node: Node) -> Pair:
            low, high = self.pair(node.children[0])
            first, behind = self.windows(node, forward)
            return -window_min(-low, first, behind), -window_min(-high, first, behind)

        return found

    def until(self, node: Node) -> Pair:
        """Largest of the smaller of what comes and of what holds before."""
        first, behind = self.windows(node, True)
        a, b = (self.pair(child) for child in node.children)
        return _until(a[0], b[0], first, behind), _until(a[1], b[1], first, behind)

    def since(self, node: Node) -> Pair:
        """The same backward."""
        first, behind = self.windows(node, False)
        n = self.size
        a, b = (self.pair(child) for child in node.children)
        back = (n - behind)[::-1], (n - first)[::-1]
        low, high = (_until(x[::-1], y[::-1], *back)[::-1] for x, y in zip(a, b, strict=True))
        return low, high


def _until(holds: np.ndarray, comes: np.ndarray, first: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """max over j of min(comes[j], min of holds[i:j]) for first[i] <= j < behind[i]."""
    n = len(holds)
    if (behind == n).all() and (first == np.arange(n)).all():  # without an interval: from behind
        found, later = np.empty(n), -np.inf
        for i in range(n - 1, -1, -1):
            later = found[i] = max(comes[i], min(holds[i], later))
        return found
    found = np.full(n, -np.inf)
    for i in range(n):
        if first[i] < behind[i]:
            before = np.minimum.accumulate(np.concatenate([[np.inf], holds[i : behind[i] - 1]]))
            found[i] = np.minimum(comes[first[i] : behind[i]], before[first[i] - i :]).max()
    return found


ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "Variable": np.positive, "Constant": np.positive, "Abs": np.abs, "Sqrt": np.sqrt, "Exp": np.exp, "Pow": np.power,
    "Addition": np.add, "Subtraction": np.subtract, "Multiplication": np.multiply, "Division": np.divide,
}  # fmt: skip
TRUTHS: dict[str, Callable[[_Evaluation, Node], Pair]] = {
    "Predicate": _Evaluation.predicate, "Neg": _Evaluation.negation, "Conjunction": _Evaluation.both, "Disjunction": _Evaluation.either,
    "Implies": _Evaluation.implication, "Iff": _Evaluation.equal, "Xor": _Evaluation.unequal,
    **{f"{timed}Always": lambda e, node: e.all_of(True)(node) for timed in ("", "Timed")},
    **{f"{timed}Eventually": lambda e, node: e.any_of(True)(node) for timed in ("", "Timed")},
    **{f"{timed}Historically": lambda e, node: e.all_of(False)(node) for timed in ("", "Timed")},
    **{f"{timed}Once": lambda e, node: e.any_of(False)(node) for timed in ("", "Timed")},
    **{f"{timed}Until": _Evaluation.until for timed in ("", "Timed")},
    **{f"{timed}Since": _Evaluation.since for timed in ("", "Timed")},
}  # fmt: skip
