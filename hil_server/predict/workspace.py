"""What the platform of a stand can reach, and how well.

About a given pose: how far each axis goes alone, and what ends it (a stroke end or the condition of the Jacobian); the largest box of
translations and rotations together; speeds that the leg rates allow and loads that the leg forces allow, axis by axis; maps of condition
and stroke margin over a plane. Everything is asked of the same kernel that runs in the loop (`rt_kernels.stewart.platform`).

Directions: translations along X, Y, Z of W; rotations about axes of W through the platform's origin: roll (X), yaw (Y), pitch (Z).
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hil_server.config import extends, named_file
from hil_server.config.checks import Table
from hil_server.errors import ConfigurationError, UsageError
from rt_kernels.algebra.arrays import quat_exponential, quat_multiply
from rt_kernels.stewart.platform import PARAMETERS, Platform, place_batch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHIPPED = Path(__file__).parents[2] / "stand_configs" / "stands"
AXES = ("x", "y", "z", "roll", "yaw", "pitch")
UNITS = ("m", "m", "m", "deg", "deg", "deg")
NEAR_SINGULAR = 2
# search: coarse steps up to a full leg or half a turn, then bisection
COARSE_STEPS = 400
TOLERANCE = 1e-6
MAP_POINTS = 61


@dataclass(frozen=True)
class AxisRange:
    """How far one axis goes from the pose, everything else kept. low, high: displacement [m or deg]; what ends it: "stroke",
    "condition", or "search" (nothing up to the end of the search). speed_max [m/s or deg/s], load_max [N or N.m] at the pose itself."""

    axis: str
    unit: str
    low: float
    high: float
    low_end: str
    high_end: str
    speed_max: float
    load_max: float


@dataclass(frozen=True)
class Map:
    """Over a plane of two axes of displacement (m or deg): arrays (n, n), first index along `first`. NaN where a leg is out of stroke."""

    first: str
    second: str
    first_values: np.ndarray
    second_values: np.ndarray
    condition: np.ndarray
    margin_m: np.ndarray


def load_platform(stand: str | Path) -> Platform:
    """The `[platform]` of a stand file, by path or by the name of a shipped stand.

    Raises `UsageError` when there is no such file, `ConfigurationError` with one line for every fault.
    """
    file = _stand_file(stand)
    document = extends.tables_of(file, "stand")
    if "platform" not in document:
        raise ConfigurationError(f"{file}: platform: the table [platform] is required and missing")
    faults = Table(PARAMETERS).faults(document["platform"], str(file), "platform")
    if faults:
        raise ConfigurationError(faults)
    try:
        platform: Platform = Platform.from_dict(document["platform"], file.stem)
    except ValueError as error:
        raise ConfigurationError(f"{file}: platform.{error}") from error
    return platform


def _stand_file(stand: str | Path) -> Path:
    file = named_file(stand, "stands")
    if file.is_file():
        return file
    shipped = ", ".join(sorted(f.stem for f in SHIPPED.glob("*.toml")))
    raise UsageError(f"{stand}: no such stand file, nor a shipped stand; shipped are {shipped}")


# -- questions ------------------------------------------------------------------------------------------------------------------


def displaced(X_WP: np.ndarray, displacements: np.ndarray) -> np.ndarray:
    """Poses (n, 7): X_WP displaced by (n, 6) x, y, z [m] and a rotation vector roll, yaw, pitch [deg], both in W axes."""
    turns = [quat_multiply(quat_exponential(np.radians(d[3:])), X_WP[3:]) for d in displacements]
    return np.column_stack([X_WP[:3] + displacements[:, :3], turns])


def reachable(platform: Platform, X_WP: np.ndarray, displacements: np.ndarray) -> np.ndarray:
    """Status bits (n,) of the displaced poses: 0 is reachable."""
    found: np.ndarray = place_batch(platform, displaced(X_WP, displacements))[0]
    return found


def axis_ranges(platform: Platform, X_WP: np.ndarray | None = None) -> list[AxisRange]:
    """Each axis alone, from the pose (neutral if none is given). The pose itself must be reachable, `ValueError` if not."""
    X = _start(platform, X_WP)
    J = platform.jacobian(X)
    loads = np.linalg.inv(J.T)
    ranges = []
    for i, (axis, unit) in enumerate(zip(AXES, UNITS, strict=True)):
        scale = 1.0 if unit == "m" else math.degrees(1.0)
        reach = platform.leg_length_max if unit == "m" else 180.0
        low, low_end = _end_of(platform, X, i, -reach)
        high, high_end = _end_of(platform, X, i, reach)
        speed = float(scale * platform.leg_rate_max / np.abs(J[:, i]).max())
        load = float(platform.leg_force_max / np.abs(loads[:, i]).max())
        ranges.append(AxisRange(axis, unit, low, high, low_end, high_end, speed, load))
    return ranges


def _end_of(platform: Platform, X: np.ndarray, axis: int, reach: float) -> tuple[float, str]:
    """Where the way along one axis first ends, coarsely and then by bisection, and what ends it."""
    steps = np.zeros((COARSE_STEPS, 6))
    steps[:, axis] = reach * np.arange(1, COARSE_STEPS + 1) / COARSE_STEPS
    status = reachable(platform, X, steps)
    beyond = np.flatnonzero(status)
    if not beyond.size:
        return reach, "search"
    bad = steps[beyond[0], axis]
    good = bad - reach / COARSE_STEPS
    found = status[beyond[0]]
    while abs(bad - good) > TOLERANCE:
        middle = np.zeros((1, 6))
        middle[0, axis] = 0.5 * (good + bad)
        here = reachable(platform, X, middle)[0]
        if here:
            bad, found = middle[0, axis], here
        else:
            good = middle[0, axis]
    return float(good), "condition" if found & NEAR_SINGULAR else "stroke"


def combined_reach(platform: Platform, X_WP: np.ndarray | None = None, half_box: np.ndarray | None = None) -> np.ndarray:
    """The largest box about the pose, all six axes at once: half sizes (6,) m and deg, in the proportions of `half_box`
    (1 m to 30 deg by default). Corners, face centres and points of an even grid between are asked for."""
    X = _start(platform, X_WP)
    shape = np.array([1.0, 1.0, 1.0, 30.0, 30.0, 30.0]) if half_box is None else np.asarray(half_box, dtype=float)
    if shape.shape != (6,) or not (np.isfinite(shape).all() and (shape >= 0.0).all() and shape.any()):
        raise ValueError(f"half_box: six numbers, none negative and not all zero, are needed (m, deg), given {shape.tolist()}")
    grid = np.array(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 6)).reshape(6, -1).T
    points = np.vstack([grid, 0.5 * grid])
    good, bad = 0.0, 1.0
    while not reachable(platform, X, bad * shape * points).any():
        good, bad = bad, 2.0 * bad
    while bad - good > 1e-4 * bad:
        middle = 0.5 * (good + bad)
        if reachable(platform, X, middle * shape * points).any():
            bad = middle
        else:
            good = middle
    return good * shape


def plane_map(platform: Platform, first: str, second: str, X_WP: np.ndarray | None = None, points: int = MAP_POINTS) -> Map:
    """Condition and stroke margin over two axes, as far as these go alone and a tenth more."""
    X = _start(platform, X_WP)
    for axis in (first, second):
        if axis not in AXES:
            raise ValueError(f"axis {axis!r} is not one of {', '.join(AXES)}")
    if first == second:
        raise ValueError(f"two different axes are needed, not {first!r} twice")
    ranges = {r.axis: r for r in axis_ranges(platform, X)}
    values = [np.linspace(1.1 * ranges[a].low, 1.1 * ranges[a].high, points) for a in (first, second)]
    displacements = np.zeros((points * points, 6))
    mesh = np.meshgrid(*values, indexing="ij")
    for axis, axis_values in zip((first, second), mesh, strict=True):
        displacements[:, AXES.index(axis)] = axis_values.ravel()
    _, _, margin, condition = place_batch(platform, displaced(X, displacements))
    condition[margin < 0.0] = math.nan
    return Map(first, second, values[0], values[1], condition.reshape(points, points), margin.reshape(points, points))


def _start(platform: Platform, X_WP: np.ndarray | None) -> np.ndarray:
    X = platform.neutral_pose if X_WP is None else np.asarray(X_WP, dtype=float)
    status = platform.place_legs(X, np.zeros(6))[0]
    if status:
        margin, condition = platform.margins(X).min(), platform.condition(X)
        raise ValueError(
            f"the pose itself cannot be taken: stroke margin {margin:.4g} m (limit 0 m), condition {condition:.4g} "
            f"(limit {platform.condition_max:g})"
        )
    return X


# -- picture and verb ----------------------------------------------------------------------------------------------------------


def draw(platform: Platform, file: str | Path, X_WP: np.ndarray | None = None) -> None:
    """A picture: reach of each axis; condition and stroke margin over y and z, and over yaw and pitch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    ranges = axis_ranges(platform, X_WP)
    _draw_ranges(axes[0, 0], [r for r in ranges if r.unit == "m"], "m")
    _draw_ranges(axes[1, 0], [r for r in ranges if r.unit == "deg"], "deg")
    for row, (first, second) in enumerate((("y", "z"), ("yaw", "pitch"))):
        found = plane_map(platform, first, second, X_WP)
        unit = UNITS[AXES.index(first)]
        for column, (values, words) in enumerate(((found.condition, "condition [-]"), (found.margin_m, "stroke margin [m]"))):
            ax = axes[row, 1 + column]
            shades = ax.pcolormesh(found.first_values, found.second_values, values.T, shading="nearest", cmap="viridis")
            ax.contour(found.first_values, found.second_values, found.margin_m.T, levels=[0.0], colors="tab:red")
            figure.colorbar(shades, ax=ax)
            ax.set(title=words, xlabel=f"{first} [{unit}]", ylabel=f"{second} [{unit}]")
    figure.suptitle(f"{platform.name}: reach about the pose; red line: stroke end")
    figure.savefig(file, dpi=110)


def _draw_ranges(ax: "Axes", ranges: list[AxisRange], unit: str) -> None:
    for place, r in enumerate(ranges):
        ax.barh(place, r.high - r.low, left=r.low, color="tab:blue", alpha=0.6)
        ax.text(r.low, place, f" {r.low:.3g} ({r.low_end})", va="center", fontsize=8)
        ax.text(r.high, place, f"{r.high:.3g} ({r.high_end}) ", va="center", ha="right", fontsize=8)
    ax.set_yticks(range(len(ranges)), [r.axis for r in ranges])
    ax.set(title="reach of each axis alone", xlabel=unit)


def summary(platform: Platform, X_WP: np.ndarray | None = None) -> dict[str, Any]:
    """Everything as plain numbers."""
    X = _start(platform, X_WP)
    half = combined_reach(platform, X)
    return {
        "stand": platform.name,
        "X_WP": X.tolist(),
        "leg_lengths_m": platform.leg_lengths(X).tolist(),
        "stroke_margin_m": float(platform.margins(X).min()),
        "condition": platform.condition(X),
        "condition_2": platform.condition(X, exact=True),
        "singular_value_min": platform.singularity_distance(X, exact=True),
        "axes": [asdict(r) for r in axis_ranges(platform, X)],
        "combined_half_m": float(half[0]),
        "combined_half_deg": float(half[3]),
    }
