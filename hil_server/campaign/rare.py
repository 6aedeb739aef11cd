"""The probability of a rare event, in far fewer cases than it has ones in: by openturns.

    [rare]
    outcome = "peak_fx_n"                # a column of the results, or impact_force_n, peak_force_n (closed loop), ...
    above = 4500.0                       # or below; the event
    method = "importance_sampling"       # subset_simulation
    level_cases = 2000                   # cases of a level

importance_sampling moves a normal density towards the event, level by level, until a tenth of its cases are in it (cross-entropy method:
Rubinstein and Kroese 2017; Geyer et al. 2019): few cases where the event lies on one side; below a thousand a level the interval is too
narrow, for the library takes the density it has chosen for given. subset_simulation goes there in levels of a tenth each by Markov chains
(Au and Beck 2001): also where the event lies on several sides, but with more cases, and the library's interval takes the chains for
independent, so that it is too narrow. Both work on standard normal variables, which the copula and the quantiles of the campaign's
variables turn into cases. `campaign.cases` is the most that are run. A case without the outcome (an error; never captured, for a time of
capture) counts as the event, and the result says how many there were.

A level's cases depend on the results of the levels before and on the seed alone: a study that was killed reads what is there and continues.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from hil_server.config.checks import Table, line
from hil_server.errors import ConfigurationError
from hil_server.host.installation import with_group
from hil_server.values import Document, Given
from rt_kernels.parameters import Parameter

METHODS = ("importance_sampling", "subset_simulation")
RARE = Table(
    (
        Parameter("outcome", "str", "-", "column of the results"),
        Parameter("above", "float", "-", "the event: the outcome is above this", default=None),
        Parameter("below", "float", "-", "the event: the outcome is below this", default=None),
        Parameter("method", "str", "-", "how it is sought", default=METHODS[0], choices=METHODS),
        Parameter("level_cases", "int", "-", "cases of a level", default=2000, low=100, high=100_000),
    )
)
LEVEL = 0.1  # share of a level's cases that the next one starts from
BEYOND = 1e30  # the outcome of a case that has none


@dataclass(frozen=True)
class Rare:
    """The event: outcome above (sign 1) or below (sign -1) the limit."""

    outcome: str
    limit: float
    sign: float
    method: str
    level_cases: int

    def of(self, row: Document) -> float:
        """The outcome of a row of the results, nan where it has none. Raises ConfigurationError when there is no such column."""
        if self.outcome not in row or isinstance(row[self.outcome], str):
            numbers = [k for k, v in row.items() if isinstance(v, int | float)]
            if row["error"]:
                return math.nan
            there = ", ".join(numbers)
            raise ConfigurationError(f"rare.outcome: no column {self.outcome!r}; there are: {there}")
        return float(row[self.outcome])

    @property
    def words(self) -> str:
        """`peak_fx_n above 4500`."""
        return f"{self.outcome} {'above' if self.sign > 0 else 'below'} {self.limit:g}"


def read_rare(table: Given | None, file: str, faults: list[str]) -> Rare | None:
    """The table [rare]; what is wrong with it is added to `faults`."""
    if table is None:
        return None
    if found := RARE.faults(table, file, "rare"):
        faults += found
        return None
    row = RARE.with_defaults(table)
    if ("above" in table) == ("below" in table):
        faults.append(line(file, "rare", "which side of the limit", table, limit="one of `above` and `below`", unit="-"))
        return None
    sign = 1.0 if "above" in table else -1.0
    return Rare(row["outcome"], float(row["above" if sign > 0 else "below"]), sign, row["method"], row["level_cases"])


def study(rare: Rare, at: Callable[[np.ndarray], np.ndarray], dimension: int, cases: int, seed: int,
          evaluate: Callable[[int, np.ndarray], Sequence[Document]]) -> Document:  # fmt: skip
    """Probability of the event. at: points of the unit cube (n, d) → values; cases: the most that are run;
    evaluate(first case, values (n, d)) → the rows of these cases.

    Returns probability, interval_95 (of the logarithm's normal approximation), coefficient_of_variation, cases, levels (cases of each),
    without_outcome. Raises ConfigurationError without openturns, or when the cases do not reach the event."""
    try:
        import openturns as ot
    except ImportError as error:
        raise ConfigurationError(f"[rare] needs openturns: {with_group('campaign')}") from error
    ot.RandomGenerator.SetSeed(seed)
    done, without, batches = 0, 0, []
    failed: BaseException | None = None

    def outcome(z: Sequence[Sequence[float]]) -> list[list[float]]:
        nonlocal done, without, failed
        try:
            if done + len(z) > cases:
                raise ConfigurationError(f"campaign.cases: {done} cases do not reach the event {rare.words}, limit {cases}; raise it")
            y = np.array([rare.sign * rare.of(row) for row in evaluate(done, at(norm.cdf(np.asarray(z))))])
        except BaseException as error:
            failed = error
            raise
        done += len(y)
        without += int(np.isnan(y).sum())
        batches.append(len(y))
        return [[BEYOND if math.isnan(v) else v] for v in y]

    function = ot.PythonFunction(dimension, 1, func_sample=outcome)
    event = ot.ThresholdEvent(ot.CompositeRandomVector(function, ot.RandomVector(ot.Normal(dimension))), ot.Greater(),
                              rare.sign * rare.limit)  # fmt: skip
    if rare.method == "subset_simulation":
        algorithm = ot.SubsetSampling(event)
        algorithm.setConditionalProbability(LEVEL)
    else:
        algorithm = ot.StandardSpaceCrossEntropyImportanceSampling(event, LEVEL)
    algorithm.setBlockSize(rare.level_cases)
    algorithm.setMaximumOuterSampling(1)
    try:
        algorithm.run()
    except Exception as error:
        if failed is not None:  # ours comes out of the library as one of its own
            raise failed from None
        why = " ".join(str(error).split())
        raise ConfigurationError(f"rare: openturns gives up after {done} cases: {why}; raise rare.level_cases") from error
    result = algorithm.getResult()
    p, v = float(result.getProbabilityEstimate()), float(result.getCoefficientOfVariation())
    if not p > 0.0:
        raise ConfigurationError(f"rare: none of {done} cases is the event {rare.words}; raise rare.level_cases")
    spread = math.exp(1.96 * math.sqrt(math.log1p(v * v)))
    return {"event": rare.words, "method": rare.method, "probability": p, "interval_95": (p / spread, min(1.0, p * spread)),
            "coefficient_of_variation": v, "cases": done, "levels": batches, "without_outcome": without}  # fmt: skip
