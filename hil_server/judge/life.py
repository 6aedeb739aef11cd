"""Load spectra and use of life over many dockings: rain-flow counting of each component of a load (ASTM E1049-85, by the library rainflow).

A range D counts as 1/N(D) of a life, N(D) = N0 (D0/D)^m (Basquin), and the shares add up (Palmgren, Miner). Cycles at the resolution of the
sensor are left out: below a share of the largest range.

A docking's history is that of its closed loop; what the stand does by itself before and after is none. Each moment of it
(`hil_server.log.moments`) is counted once more as a history of its own: cycles that reach from one moment into the next are in the
whole only. A thinned log has every new peak of a moment, but not the smaller cycles between its records: its damage is a lower bound.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hil_server.errors import ConfigurationError, UsageError, reason_of
from hil_server.host.installation import with_group
from hil_server.judge.channels import channel
from hil_server.judge.run import Run
from hil_server.log.moments import MOMENTS, STAND

WRENCH = tuple(f"F_T[{i}]" for i in range(6))


@dataclass(frozen=True)
class Curve:
    """S-N curve N = cycles (range / D)^exponent. range: of the load, N or N.m, as a double amplitude."""

    exponent: float
    range: float
    cycles: float

    def damage(self, ranges: np.ndarray, counts: np.ndarray) -> float:
        """Share of the life that these cycles use."""
        return float(np.sum(counts / self.cycles * (ranges / self.range) ** self.exponent))


@dataclass(frozen=True)
class Spectrum:
    """Cycles of one component. ranges, counts: (n,), halves of cycles as 0.5; damage: share of a life, nan without a curve; by_moment:
    damage of each moment by itself; at_least: some log is thinned, cycles between its records are missing; not_available: why there is no
    spectrum, "" where there is one."""

    name: str
    ranges: np.ndarray
    counts: np.ndarray
    damage: float
    by_moment: dict[str, float] = field(default_factory=dict)
    at_least: bool = False
    not_available: str = ""

    def table(self, bins: int) -> list[tuple[float, float, float]]:
        """(from, to, cycles) in bins of equal width up to the largest range."""
        if not len(self.ranges):
            return []
        edges = np.linspace(0.0, float(self.ranges.max()), bins + 1)
        sums, _ = np.histogram(self.ranges, edges, weights=self.counts)
        return [(float(a), float(b), float(n)) for a, b, n in zip(edges, edges[1:], sums, strict=False)]


def curve(text: str) -> Curve:
    """`EXPONENT:RANGE@CYCLES`, as 5:8000@1e5. Raises UsageError."""
    try:
        exponent, _, rest = text.partition(":")
        load, _, cycles = rest.partition("@")
        found = Curve(float(exponent), float(load), float(cycles))
    except ValueError:
        found = Curve(0.0, 0.0, 0.0)
    if not (1.0 <= found.exponent <= 30.0 and found.range > 0.0 and found.cycles > 0.0):
        raise UsageError(f"--curve {text}: must be EXPONENT:RANGE@CYCLES, as 5:8000@1e5, the exponent within 1...30")
    return found


def cycles(values: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Ranges and counts of a load history (n,). least: ranges below it are no cycle, in the unit of the load. Raises ConfigurationError
    without the library."""
    try:
        import rainflow
    except ImportError as error:
        raise ConfigurationError(f"rain-flow counting needs rainflow: {with_group('campaign')}") from error
    found = [(size, count) for size, _, count, _, _ in rainflow.extract_cycles(turning_points(values, least)) if size >= least]
    ranges, counts = np.array(found, float).reshape(-1, 2).T
    return ranges, counts


def turning_points(values: np.ndarray, least: float) -> np.ndarray:
    """The history's turning points between which it moves by `least` or more, its first and last value among them."""
    if len(values) < 2:
        return values
    kept = [float(values[0])]
    extreme, rising = float(values[0]), 0
    for v in map(float, values[1:]):
        if rising == 0:
            if abs(v - kept[0]) >= least:
                rising, extreme = (1 if v > kept[0] else -1), v
        elif (v - extreme) * rising > 0.0:
            extreme = v
        elif abs(v - extreme) >= least:
            kept.append(extreme)
            extreme, rising = v, -rising
    return np.array([*kept, extreme])


def spectra(runs: Sequence[Run], names: Sequence[str] = WRENCH, sn: Curve | None = None, share: float = 0.05) -> list[Spectrum]:
    """Spectra of the channels over all runs together, the closed loop of each a load history of its own. share: cycles below this part
    of a channel's largest range are left out. Raises UsageError for a channel that a log does not have, ConfigurationError without the
    library; a channel that fails otherwise is not available, and says why."""
    at_least = any(run.thinning > 1 for run in runs)
    found = []
    for name in names:
        try:
            found.append(_spectrum(runs, name, sn, share, at_least))
        except (UsageError, ConfigurationError):
            raise
        except Exception as error:
            found.append(Spectrum(name, np.empty(0), np.empty(0), float("nan"), not_available=reason_of(error)))
    return found


def _spectrum(runs: Sequence[Run], name: str, sn: Curve | None, share: float, at_least: bool) -> Spectrum:
    courses = [(channel(run, name), run.moments) for run in runs if run.log.ticks]
    histories = [values[codes != STAND] for values, codes in courses if (codes != STAND).any()]
    least = share * max((float(np.ptp(h)) for h in histories), default=0.0)
    ranges, counts = _counted(histories, least)
    by_moment = {}
    for place, moment in enumerate(MOMENTS if sn is not None else ()):
        own = [values[codes == place] for values, codes in courses if (codes == place).any()]
        if own and sn is not None and place != STAND:
            by_moment[moment] = sn.damage(*_counted(own, least))
    damage = float("nan") if sn is None else sn.damage(ranges, counts)
    return Spectrum(name, ranges, counts, damage, by_moment, at_least)


def _counted(histories: Sequence[np.ndarray], least: float) -> tuple[np.ndarray, np.ndarray]:
    """Ranges and counts of all histories together; none where nothing varies."""
    parts = [cycles(history, least) for history in histories] if least > 0.0 or any(np.ptp(h) > 0.0 for h in histories) else []
    return tuple(np.concatenate([p[k] for p in parts]) if parts else np.empty(0) for k in (0, 1))  # type: ignore[return-value]


def draw(found: Sequence[Spectrum], path: str | os.PathLike[str]) -> None:
    """Cycles that reach or exceed a range, over the range, logarithmic: the usual load spectrum."""
    from hil_server.pages import figures

    drawn, axes = figures.figure(1, 4.0)
    for i, one in enumerate(found):
        if len(one.ranges):
            order = np.argsort(-one.ranges)
            axes[0].step(np.cumsum(one.counts[order]), one.ranges[order], where="post", color=figures.COLOURS[i % 6], label=one.name)
    axes[0].set_xscale("log")
    axes[0].set_xlabel("cycles that reach or exceed the range")
    axes[0].set_ylabel("range, N or N·m")
    axes[0].legend(fontsize=8)
    try:
        drawn.savefig(Path(path), dpi=110)
    except (OSError, ValueError) as error:
        raise UsageError(f"--picture {path}: {error}") from error
