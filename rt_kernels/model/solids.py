"""What a body looks like: points and the faces between them. For pictures only; nothing of it enters the dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Array = np.ndarray
AROUND = 16  # corners of a circle
TRIANGLES_MAX = 5000  # of a mesh: it stands in the configuration of every run
BOX_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


@dataclass(frozen=True)
class Solid:
    """points (n, 3) m, body axes; faces: numbers of the corners of each, two: a line; moves (n, 3, modes): how far each point goes per unit
    of each modal coordinate, None: it does not bend; what: in words what is drawn, "" as the file declares it."""

    points: Array
    faces: tuple[tuple[int, ...], ...]
    moves: Array | None = None
    what: str = ""


def box(edges: Sequence[float] | Array, rotation: Array | None = None, position: Array | None = None, what: str = "") -> Solid:
    """Edges (3,) m about a middle at `position`, turned by `rotation` (3, 3)."""
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * np.asarray(edges, float)
    return Solid(placed(corners, rotation, position), BOX_FACES, what=what)


def cylinder(radius: float, length: float, rotation: Array | None = None, position: Array | None = None) -> Solid:
    """Along x about a middle at `position`, turned by `rotation` (3, 3)."""
    angle = 2.0 * np.pi * np.arange(AROUND) / AROUND
    ring = np.column_stack([np.zeros(AROUND), radius * np.cos(angle), radius * np.sin(angle)])
    points = np.concatenate([ring - [0.5 * length, 0.0, 0.0], ring + [0.5 * length, 0.0, 0.0]])
    one, other = tuple(range(AROUND)), tuple(range(AROUND, 2 * AROUND))
    sides = tuple((k, (k + 1) % AROUND, AROUND + (k + 1) % AROUND, AROUND + k) for k in range(AROUND))
    return Solid(placed(points, rotation, position), (one, other, *sides))


def mesh(triangles: Array, rotation: Array | None = None, position: Array | None = None) -> Solid:
    """triangles (n, 9) m: x, y, z of the corners of each."""
    points, at = np.unique(np.asarray(triangles, float).reshape(-1, 3), axis=0, return_inverse=True)
    return Solid(placed(points, rotation, position), tuple(map(tuple, at.reshape(-1, 3).tolist())))


def bar(positions: Array, moves: Array, turns: Array, half_y: float, half_z: float, what: str = "") -> Solid:
    """A beam along x with a rectangular section. positions (n, 3) m of its stations, moves and turns (n, 3, modes) of them per unit of each
    modal coordinate."""
    arms = np.array([[0.0, y, z] for y, z in ((-half_y, -half_z), (half_y, -half_z), (half_y, half_z), (-half_y, half_z))])
    points = (positions[:, None] + arms).reshape(-1, 3)
    moved = moves[:, None] + np.cross(turns[:, None], arms[None, :, :, None], axisa=2, axisb=2, axisc=2)
    last = 4 * (len(positions) - 1)
    sides = tuple((i + k, i + (k + 1) % 4, i + 4 + (k + 1) % 4, i + 4 + k) for i in range(0, last, 4) for k in range(4))
    return Solid(points, ((0, 1, 2, 3), (last, last + 1, last + 2, last + 3), *sides), moved.reshape(len(points), 3, -1), what)


def of_mass(mass: float, first_moment: Array, second_moment: Array) -> Solid:
    """The box of even density with this mass and these moments about the origin (E = sum m rho rho^T): about its centre
    E = m diag(a^2, b^2, c^2) / 12 along the principal axes; a line goes from the origin to its middle."""
    centre = first_moment / mass
    squares, axes = np.linalg.eigh(second_moment / mass - np.outer(centre, centre))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    made = box(np.sqrt(np.maximum(12.0 * squares, 1e-6)), axes, centre, "box of its mass and inertia")
    return Solid(np.vstack([made.points, np.zeros(3), centre]), (*made.faces, (8, 9)), what=made.what)


def placed(points: Array, rotation: Array | None, position: Array | None) -> Array:
    """Points (n, 3) of a frame that stands at `position`, turned by `rotation`; None: not turned, not moved."""
    turned = points if rotation is None else points @ np.asarray(rotation).T
    there: Array = turned if position is None else turned + position
    return there


def read_stl(path: str | Path) -> list[list[float]]:
    """The triangles of an STL file, text or binary, rows of nine numbers as they stand there. Raises ValueError, OSError."""
    data = Path(path).read_bytes()
    count = int.from_bytes(data[80:84], "little")
    if len(data) == 84 + 50 * count:
        rows = np.frombuffer(data, np.dtype([("normal", "<f4", 3), ("corners", "<f4", 9), ("unused", "<u2")]), count, 84)["corners"]
    else:
        words = data.decode("ascii", "replace").split()
        numbers = [words[i + 1 : i + 4] for i, word in enumerate(words) if word == "vertex"]
        try:
            rows = np.array(numbers, float).reshape(-1, 9)
        except ValueError:
            raise ValueError(f"{path}: no STL file") from None
    if not 0 < len(rows) <= TRIANGLES_MAX or not np.isfinite(rows).all():
        raise ValueError(f"{path}: {len(rows)} triangles with finite corners, limit 1 ... {TRIANGLES_MAX}")
    found: list[list[float]] = rows.astype(float).tolist()
    return found
