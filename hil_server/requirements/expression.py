"""Expressions of channels, read by Python's own parser and never run by it: what is not listed here is refused.

    F_T[0]   abs(F_T[0])   norm(F_T[0:3])   max(abs(F_S[0:3]))   measured_leg[0] - leg_demand[0]   probe.stroke   tilt(X_TA)

Numbers, channels with an index or a range, + - * /, and

    abs(x)            of each component
    min, max          of the components of one argument, or of several arguments
    norm(v)           root of the sum of squares of the components
    tilt, roll(X)     of a pose (metres and a quaternion): angle between the two X axes; rotation about X
    yaw, pitch(X)     the other two angles of yaw about Y, pitch about Z, roll about X

A name that Python would not take stands in quotes: "latch_force#2". Everything is computed in SI units, whatever unit a channel has in the
table, and units are held together: metres are not added to newtons.
"""

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

import numpy as np

from hil_server.requirements.angles import tilt_of, yaw_pitch_roll
from hil_server.requirements.units import NUMBER, Unit, scalar_units, unit
from rt_kernels.layout import FIELDS
from rt_kernels.parameters import did_you_mean

LONGEST = 500  # characters of an expression
Values = Callable[[np.ndarray], np.ndarray]


class ExpressionError(ValueError):
    """An expression that cannot be; says why."""


class UnknownChannelError(ExpressionError):
    """A channel that is not there, perhaps because the parts of the run are not known yet. channel: its name."""

    def __init__(self, what: str, channel: str) -> None:
        super().__init__(what)
        self.channel = channel


@dataclass(frozen=True)
class Term:
    """A vector that is made of a record. units: of each component. values: records (n,) → (n, len(units)) in SI."""

    units: tuple[Unit, ...]
    values: Values


@dataclass(frozen=True)
class Expression:
    """A number that is made of a record. values: records (n,) → (n,) in SI."""

    text: str
    unit: Unit
    values: Values


Channels = Mapping[str, Term]


class Carried(Protocol):
    """An auxiliary channel of a run (`hil_server.log.record.AuxChannel`)."""

    @property
    def name(self) -> str:
        """Of the channel."""

    @property
    def unit(self) -> str:
        """As the table of channels writes it."""

    @property
    def count(self) -> int:
        """Doubles."""

    @property
    def offset(self) -> int:
        """Of the first one in the record's `aux`."""


def channels(aux: Iterable[Carried] = ()) -> dict[str, Term]:
    """Every channel of the table and of a run's auxiliary channels (`record.AuxChannel`), by name."""
    found = dict(_of_the_table())
    for channel in aux:
        name, text, count, at = channel.name, channel.unit, channel.count, channel.offset
        try:
            units = scalar_units(text, count)
        except ValueError:
            units = [text] * count
        found[name] = _channel(units, partial(_auxiliary, at, count))
    return found


@cache
def _of_the_table() -> dict[str, Term]:
    return {name: _channel(scalar_units(text, count), partial(_field, name, count)) for name, _, count, text, *_ in FIELDS}


def _field(name: str, count: int, records: np.ndarray) -> np.ndarray:
    return records[name].reshape(len(records), count)


def _auxiliary(at: int, count: int, records: np.ndarray) -> np.ndarray:
    found: np.ndarray = records["aux"][:, at : at + count]
    return found


def _channel(texts: list[str], values: Values) -> Term:
    units = tuple(unit(text) for text in texts)
    factors = np.array([u.factor for u in units])
    if (factors == 1.0).all():
        return Term(units, lambda r: values(r).astype(float, copy=False))
    return Term(units, lambda r: values(r) * factors)


def expression(text: str, known: Channels) -> Expression:
    """The expression in `text`. Raises ExpressionError, of which UnknownChannelError says that a channel is not known."""
    if len(text) > LONGEST:
        raise ExpressionError(f"{len(text)} characters, limit {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        term = _Reader(known).term(tree.body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"no expression: {getattr(error, 'msg', None) or type(error).__name__}") from None
    if len(term.units) != 1:
        raise ExpressionError(f"{len(term.units)} components: take one, as {text.strip()}[0], or max, min or norm of them")
    values = term.values
    return Expression(text, term.units[0], lambda r: values(r)[:, 0])


class _Reader:
    """Turns a tree of Python's parser into a Term."""

    def __init__(self, known: Channels) -> None:
        self.known = known

    def term(self, node: ast.AST) -> Term:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            number = float(node.value)
            return Term((NUMBER,), lambda r: np.full((len(r), 1), number))
        if isinstance(node, ast.Name | ast.Attribute) or isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.channel(_name(node))
        if isinstance(node, ast.Subscript):
            return self.components(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.term(node.operand)
            return Term(inner.units, lambda r: -inner.values(r)) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self.combined(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.called(node.func.id, [self.term(a) for a in node.args])
        raise ExpressionError(f"{ast.unparse(node)!r:.60} is not supported; allowed are numbers, channels, + - * /, {', '.join(FUNCTIONS)}")

    def channel(self, name: str) -> Term:
        if name not in self.known:
            raise UnknownChannelError(f"no channel {name!r}{did_you_mean(name, self.known)}", name)
        return self.known[name]

    def components(self, node: ast.Subscript) -> Term:
        whole, at = self.term(node.value), node.slice
        count = len(whole.units)
        if isinstance(at, ast.Slice):
            if at.step is not None:
                raise ExpressionError(f"{ast.unparse(node)!r}: a range has two ends, as [0:3]")
            start, stop = _whole(at.lower, 0, node), _whole(at.upper, count, node)
        else:
            start = _whole(at, None, node)
            stop = start + 1
        if not 0 <= start < stop <= count:
            raise ExpressionError(f"{ast.unparse(node)!r}: outside, limit [0] ... [{count - 1}]")
        return Term(whole.units[start:stop], lambda r: whole.values(r)[:, start:stop])

    def combined(self, node: ast.BinOp) -> Term:
        a, b = self.term(node.left), self.term(node.right)
        if len(a.units) != len(b.units) and 1 not in (len(a.units), len(b.units)):
            raise ExpressionError(f"{ast.unparse(node)!r}: {len(a.units)} components and {len(b.units)}")
        count = max(len(a.units), len(b.units))
        pairs = list(zip(a.units * (count // len(a.units)), b.units * (count // len(b.units)), strict=True))
        operation = OPERATIONS.get(type(node.op))
        if operation is None:
            raise ExpressionError(f"{ast.unparse(node)!r}: limit + - * /")
        if isinstance(node.op, ast.Add | ast.Sub):
            for p, q in pairs:
                _same(p, q, ast.unparse(node))
            units = tuple(p for p, _ in pairs)
        else:
            units = tuple(p * q if isinstance(node.op, ast.Mult) else p / q for p, q in pairs)

        def values(r: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                found: np.ndarray = operation(a.values(r), b.values(r))
                return found

        return Term(units, values)

    def called(self, name: str, given: list[Term]) -> Term:
        if name not in FUNCTIONS:
            raise ExpressionError(f"no function {name!r}, limit {', '.join(FUNCTIONS)}")
        if not given or len(given) > 1 and name not in ("min", "max"):
            raise ExpressionError(f"{name} takes one argument, got {len(given)}")
        first = given[0]
        if name == "abs":
            return Term(first.units, lambda r: np.abs(first.values(r)))
        if name in ("tilt", "yaw", "pitch", "roll"):
            return _angle(name, first)
        units = [u for term in given for u in term.units]
        for u in units[1:]:
            _same(units[0], u, name)
        if name == "norm":
            return Term((units[0],), lambda r: np.sqrt((first.values(r) ** 2).sum(axis=1, keepdims=True)))
        fold = np.min if name == "min" else np.max
        if len(given) > 1 and any(len(term.units) != 1 for term in given):
            raise ExpressionError(f"{name} takes one vector, or several numbers")
        return Term((units[0],), lambda r: fold(np.hstack([term.values(r) for term in given]), axis=1, keepdims=True))


FUNCTIONS = ("abs", "min", "max", "norm", "tilt", "yaw", "pitch", "roll")
OPERATIONS: dict[type, Callable[..., np.ndarray]] = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}


def _angle(name: str, pose: Term) -> Term:
    """The angle of a pose, rad."""
    if [u.text for u in pose.units] != ["m"] * 3 + ["-"] * 4:
        raise ExpressionError(f"{name} takes a pose, as X_TA: three metres and a quaternion")

    if name == "tilt":
        return Term((unit("rad"),), lambda r: tilt_of(pose.values(r))[:, None])
    column = ("yaw", "pitch", "roll").index(name)
    return Term((unit("rad"),), lambda r: yaw_pitch_roll(pose.values(r))[:, column : column + 1])


def _same(a: Unit, b: Unit, where: str) -> None:
    if not a.fits(b):
        raise ExpressionError(f"{where!r:.60}: units {a.text} and {b.text} do not go together")


def _name(node: ast.AST) -> str:
    """A dotted name, or one in quotes."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_name(node.value)}.{node.attr}"
    raise ExpressionError(f"{ast.unparse(node)!r:.60} is no channel")


def _whole(node: ast.AST | None, default: int | None, where: ast.AST) -> int:
    if node is None and default is not None:
        return default
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    raise ExpressionError(f"{ast.unparse(where)!r:.60}: an index is a whole number from 0 on, or a range, as [0:3]")
