"""What a campaign varies beside the initial conditions: any number of the test, its stand, its crafts, its docking unit.

    [[vary]]
    key = "active_vehicle.mass_kg"               # as `--set` names it; or a list of keys that one variable sets together
    distribution = "normal"                      # uniform, normal, table
    mean = 7000.0
    sigma = 200.0                                # cut at low and high, which are mean -+ 4 sigma when not given
    factor = true                                # the value multiplies what the test has, a list in every entry

    [[vary]]
    name = "failure"
    key = "mechanism.failed"                     # a table: one of the values, with weights; texts, too
    distribution = "table"
    values = ["none", "motor_1", "brake_2"]
    weights = [0.9, 0.05, 0.05]

    [[correlation]]                              # Gaussian copula: of the normal scores of two variables
    between = ["active_vehicle.mass_kg", "velocity_x_m_s"]
    coefficient = 0.6

A variable is a function of a number u in 0...1, its quantile; how the unit cube is filled is the sampling's affair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import norm

from hil_server.config import TestConfig, test_from_toml, toml_text
from hil_server.config.checks import Table, line, must_be
from hil_server.config.tables import INITIAL_CONDITIONS
from hil_server.errors import ConfigurationError
from hil_server.values import Document, Given, Value
from rt_kernels.parameters import Parameter

Numbers: TypeAlias = float | Sequence["Numbers"]
DISTRIBUTIONS = ("uniform", "normal", "table")
CUT = 4.0  # standard deviations at which a normal variable ends without given ends
EDGE = 1e-15  # quantiles of the copula's normal scores stay inside by this
VARY = Table(
    (
        Parameter("name", "str", "-", "column of the results (default: the key)", default=""),
        Parameter("distribution", "str", "-", "how the value is spread", default="uniform", choices=DISTRIBUTIONS),
        Parameter("low", "float", "-", "smallest value", default=None),
        Parameter("high", "float", "-", "largest value", default=None),
        Parameter("mean", "float", "-", "of a normal variable", default=None),
        Parameter("sigma", "float", "-", "standard deviation of a normal variable", default=None, low=0.0),
        Parameter("weights", "floats", "-", "of the values of a table; equal when not given", default=(), low=0.0),
        Parameter("factor", "bool", "-", "the value multiplies what the test has", default=False),
    )
)
CORRELATION = Table((Parameter("coefficient", "float", "-", "correlation of the normal scores", low=-0.999, high=0.999),))


@dataclass(frozen=True)
class Variable:
    """One varied quantity. keys: what it sets, as `--set` names them; low, high: its ends; mean, sigma: of a normal one; values, weights:
    of a table."""

    name: str
    keys: tuple[str, ...]
    distribution: str
    low: float
    high: float
    mean: float = 0.0
    sigma: float = 0.0
    values: tuple[Value, ...] = ()
    weights: tuple[float, ...] = ()
    factor: bool = False

    @property
    def numbers(self) -> bool:
        """Whether its values are numbers; what is not goes by its place in the table."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def ends(self) -> tuple[float, ...]:
        """The values at its two ends, of a table all of them; of one without numbers their places."""
        if self.values and not self.numbers:
            return tuple(map(float, range(len(self.values))))
        return tuple(float(v) for v in self.values if isinstance(v, int | float)) or (self.low, self.high)

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """Values at u (n,) in 0...1; of a table without numbers the places of the values."""
        if self.distribution == "uniform":
            found: np.ndarray = self.low + u * (self.high - self.low)
            return found
        if self.distribution == "normal":
            ends = norm.cdf((self.low - self.mean) / self.sigma), norm.cdf((self.high - self.mean) / self.sigma)
            found = np.clip(self.mean + self.sigma * norm.ppf(ends[0] + u * (ends[1] - ends[0])), self.low, self.high)
            return found
        place = np.minimum(np.searchsorted(np.cumsum(self.weights), u, side="right"), len(self.values) - 1)
        found = np.asarray(self.values, float)[place] if self.numbers else place.astype(float)
        return found

    def settings(self, value: float, base: Mapping[str, Numbers]) -> list[str]:
        """What `--set` would say for one value. base: what the test has at the keys of a factor."""
        chosen = value if self.numbers or not self.values else self.values[int(value)]
        return [f"{key}={toml_text.value(_scaled(base[key], value) if self.factor else chosen)}" for key in self.keys]

    def shown(self, value: float) -> str:
        """A value as a reader wants it."""
        return f"{value:.4g}" if self.numbers or not self.values else str(self.values[int(value)])


def _scaled(value: Numbers, factor: float) -> Numbers:
    if isinstance(value, int | float):
        return float(value) * factor
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r:.80} is no number")
    return [_scaled(v, factor) for v in value]


def initial_condition(key: str, low: float, high: float) -> Variable:
    """A key of the campaign's box."""
    return Variable(key, (f"initial_conditions.{key}",), "uniform", low, high)


def read(rows: object, file: str, faults: list[str]) -> tuple[Variable, ...]:
    """The variables of the tables [[vary]]; what is wrong with them is added to `faults`."""
    if rows is None:
        return ()
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        faults.append(must_be(file, "vary", "tables [[vary]]", rows))
        return ()
    found = [v for i, row in enumerate(rows) if (v := _variable(row, f"vary[{i}]", file, faults)) is not None]
    names = [v.name for v in found]
    for name in {n for n in names if names.count(n) > 1}:
        faults.append(line(file, "vary", "two variables of one name", name, limit="give each a `name`", unit="-"))
    return tuple(found)


def _variable(row: Document, path: str, file: str, faults: list[str]) -> Variable | None:
    row = dict(row)
    keys, values = row.pop("key", None), row.pop("values", [])
    keys = [keys] if isinstance(keys, str) else keys
    before = len(faults)
    if not isinstance(keys, list) or not keys or not all(isinstance(k, str) and "." in k for k in keys):
        faults.append(must_be(file, f"{path}.key", "a key of the test as active_vehicle.mass_kg, or a list of them", keys))
    faults += VARY.faults(row, file, path)
    if not isinstance(values, list):
        faults.append(must_be(file, f"{path}.values", "a list", values))
    if len(faults) > before:
        return None
    assert isinstance(keys, list)
    row = VARY.with_defaults(row)
    kind, low, high, weights = row["distribution"], row.get("low"), row.get("high"), tuple(map(float, row["weights"]))
    if kind == "table":
        weights = weights or (1.0,) * len(values)
        if not values or len(weights) != len(values) or sum(weights) <= 0.0:
            faults.append(line(file, f"{path}.weights", "do not belong to the values", list(weights), limit="a weight a value", unit="-"))
            return None
        if row["factor"] and not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
            faults.append(must_be(file, f"{path}.values", "numbers, for they are factors", values))
            return None
        weights = tuple(w / sum(weights) for w in weights)
        return Variable(row["name"] or keys[0], tuple(keys), kind, 0.0, 0.0, 0.0, 0.0, tuple(values), weights, row["factor"])
    if values:
        faults.append(line(file, f"{path}.values", "not of this distribution", values, limit="distribution = \"table\"", unit="-"))
        return None
    mean, sigma = row.get("mean"), row.get("sigma")
    if kind == "normal":
        if mean is None or not sigma:
            faults.append(must_be(file, path, "with `mean` and `sigma` above 0 for a normal variable", {"mean": mean, "sigma": sigma}))
            return None
        low, high = mean - CUT * sigma if low is None else low, mean + CUT * sigma if high is None else high
    if low is None or high is None or not low < high:
        given = f" (mean = {mean!r}, sigma = {sigma!r})" if kind == "normal" else ""
        faults.append(line(file, path, f"ends not in order{given}", [low, high], limit="low < high", unit="-"))
        return None
    return Variable(row["name"] or keys[0], tuple(keys), kind, low, high, mean or 0.0, sigma or 0.0, factor=row["factor"])


def correlations(rows: object, names: Sequence[str], file: str, faults: list[str]) -> np.ndarray | None:
    """Correlation matrix of the normal scores, (n, n), or None when nothing is correlated."""
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        faults.append(must_be(file, "correlation", "tables [[correlation]]", rows))
        return None
    R = np.eye(len(names))
    for i, row in enumerate(rows):
        row = dict(row)
        pair = row.pop("between", None)
        if not isinstance(pair, list) or len(pair) != 2 or any(name not in names for name in pair) or pair[0] == pair[1]:
            faults.append(must_be(file, f"correlation[{i}].between", f"two of {', '.join(names)}", pair))
        elif not (found := CORRELATION.faults(row, file, f"correlation[{i}]")):
            a, b = names.index(pair[0]), names.index(pair[1])
            R[a, b] = R[b, a] = row["coefficient"]
        else:
            faults += found
    if np.linalg.eigvalsh(R)[0] <= 1e-9:
        faults.append(line(file, "correlation", "cannot be together", R.tolist(), limit="a positive definite matrix", unit="-"))
        return None
    return R


def correlated(u: np.ndarray, R: np.ndarray | None) -> np.ndarray:
    """Independent u (n, d) in the unit cube with the Gaussian copula of R (d, d)."""
    if R is None:
        return u
    z = norm.ppf(np.clip(u, EDGE, 1.0 - EDGE)) @ np.linalg.cholesky(R).T
    found: np.ndarray = norm.cdf(z)
    return found


INITIAL = {p.key: p.default for p in INITIAL_CONDITIONS if p.kind == "float"}


def base_values(variables: Sequence[Variable], base: TestConfig, file: str) -> Document:
    """What the test has at the keys of the factors. Raises ConfigurationError for a key that has no number."""
    found = {}
    for key in (k for v in variables if v.factor for k in v.keys):
        at: Any = base.document
        try:
            for name in key.split("."):
                at = at[int(name)] if isinstance(at, list) and name.isdecimal() else _named(at, name)
            _scaled(at, 1.0)
        except (KeyError, IndexError, TypeError, ValueError):
            limit = "a number, or a list of numbers, that the test has"
            raise ConfigurationError(line(file, f"vary {key}", "nothing to be multiplied", None, limit=limit, unit="-")) from None
        found[key] = at
    return found


def end_faults(variables: Sequence[Variable], base: TestConfig, base_values: Given, file: str) -> list[str]:
    """What the test does not take at the ends of a variable, or of a table's values, each variable by itself: one line each."""
    text, found = base.as_toml(), []
    for v in variables:
        for end, value in zip(("",) * len(v.ends) if v.values else ("low ", "high "), v.ends, strict=True):
            try:
                test_from_toml(text, v.settings(value, base_values), label=f"[[vary]] {v.name} = {v.shown(value)}")
            except ConfigurationError as error:
                found += [f"{file}: vary {v.name}: {end}{v.shown(value)}: {fault}" for fault in error.faults]
    return list(dict.fromkeys(found))


def _named(at: Document | list[Document], name: str) -> Any:
    return next(item for item in at if item.get("name") == name) if isinstance(at, list) else at[name]
