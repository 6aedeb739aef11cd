"""Which variable an outcome comes from: Sobol' indices, by SALib.

first order     share of the outcome's variance that one variable alone explains, out of any random sample of independent variables
                (random balance design with the Fourier test, RBD-FAST: Tarantola et al. 2006; bias taken off as in Tissot and
                Prieur 2012), with its 95 % interval
total           share that goes when the variable is fixed, its interactions included: only from the design of sampling "saltelli"
                (Saltelli et al. 2010), whose first-order indices are then given, too

Variables that are correlated have no such shares; then none are given.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hil_server.campaign.statistics import column, magnitude, unjudged
from hil_server.config.checks import line
from hil_server.errors import ConfigurationError
from hil_server.host.installation import with_group
from hil_server.values import Document

if TYPE_CHECKING:
    import pyarrow as pa

LEAST = 100  # fewest cases for a result
RESAMPLES = 60
SAMPLED = ("uniform", "latin_hypercube", "normal")


@dataclass(frozen=True)
class Index:
    """Of one variable on one outcome: first order and its 95 % half width; total likewise, nan where the design gives none."""

    key: str
    first: float
    first_half: float
    total: float = math.nan
    total_half: float = math.nan


def _library() -> Any:
    try:
        import SALib  # noqa: F401
        from SALib.analyze import rbd_fast, sobol
        from SALib.sample import sobol as sample
    except ImportError as error:
        raise ConfigurationError(f"sensitivity needs SALib: {with_group('campaign')}") from error
    return rbd_fast, sobol, sample


def _problem(keys: Sequence[str]) -> Document:
    return {"num_vars": len(keys), "names": list(keys), "bounds": [[0.0, 1.0]] * len(keys)}


def design_cases(wanted: int, variables: int, file: str) -> int:
    """Cases of the largest saltelli design that is not above `wanted`. Raises ConfigurationError when there is none."""
    rows = wanted // (variables + 2)
    if rows < 2:
        limit = f"at least {2 * (variables + 2)} for {variables} variables"
        raise ConfigurationError(line(file, "campaign.cases", "too few for sampling 'saltelli'", wanted, limit=limit, unit="-"))
    return int(2 ** math.floor(math.log2(rows)) * (variables + 2))


def design(keys: Sequence[str], cases: int, seed: int) -> np.ndarray:
    """The saltelli design in the unit cube, (cases, len(keys)); cases as of `design_cases`."""
    _, _, sample = _library()
    found: np.ndarray = sample.sample(_problem(keys), cases // (len(keys) + 2), calc_second_order=False, seed=seed)
    return found


def outcomes(table: "pa.Table") -> dict[str, np.ndarray]:
    """What a campaign's designer looks at, by name, (cases,) each; nan where a case has none."""
    captured, invalid = np.array(table["captured"].to_pylist(), bool), unjudged(table)
    return {
        "impact force": np.where(invalid, math.nan, magnitude(table, "impact_force_n")),
        "impact moment": np.where(invalid, math.nan, magnitude(table, "impact_moment_n_m")),
        "captured": np.where(invalid & ~captured, math.nan, captured.astype(float)),
        "capture after first contact": column(table, "capture_after_s"),
    }


def indices(u: np.ndarray, y: np.ndarray, keys: Sequence[str], saltelli: bool = False, seed: int = 1) -> list[Index]:
    """u: values of the variables (n, k), any monotone scale; y: outcome (n,). Cases without an outcome are left out; a saltelli design with
    one of them says nothing. Empty when there are too few, or when the outcome does not vary."""
    rbd_fast, sobol, _ = _library()
    fine = np.isfinite(y)
    if fine.sum() < LEAST or np.ptp(y[fine]) == 0.0 or (saltelli and not fine.all()):
        return []
    if saltelli:
        found = sobol.analyze(_problem(keys), y, calc_second_order=False, num_resamples=RESAMPLES, seed=seed)
        rows = zip(keys, found["S1"], found["S1_conf"], found["ST"], found["ST_conf"], strict=True)
        return [Index(key, *map(float, row)) for key, *row in rows]
    found = rbd_fast.analyze(_problem(keys), u[fine], y[fine], num_resamples=RESAMPLES, seed=seed)
    return [Index(key, float(s), float(c)) for key, s, c in zip(keys, found["S1"], found["S1_conf"], strict=True)]


def analysis(table: "pa.Table", keys: Sequence[str], sampling: str, seed: int) -> dict[str, list[Index]]:
    """Indices of every outcome of a campaign whose variables are independent; empty for a sample that has none (corners, expert cases)."""
    if sampling not in (*SAMPLED, "saltelli") or len(keys) < 2:
        return {}
    u = np.column_stack([column(table, key) for key in keys])
    rows = {name: indices(u, y, keys, sampling == "saltelli", seed) for name, y in outcomes(table).items()}
    return {name: row for name, row in rows.items() if row}
