"""From the meshes of two docking units to the file that `rt_kernels.mechanisms.mesh` reads: distance field, samples, lines (set-up only).

The distances near the surface are exact (`rt_kernels.contact.distance_field.spread`). Beyond the band, a node has what is certain: the way
to the nearest node of the band less half a diagonal of a cell, in whole cells. The sign of a node there is that of the band before it.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt

from hil_server.config.files import Done, check_file, no_progress
from hil_server.errors import UsageError
from rt_kernels.contact.distance_field import DistanceField, spread
from rt_kernels.mechanisms.mesh.field_file import Arrays

Mesh = Any  # trimesh.Trimesh
UNITS_M = {"m": 1.0, "mm": 1e-3, "inch": 0.0254}
SIZE_M = (0.01, 10.0)  # of a docking unit
FACES_MAX, NODES_MAX, SAMPLES_MAX = 2_000_000, 30_000_000, 1_000_000
NODES_WANTED = 4e6
BAND_CELLS = 4.0  # beyond the deepest penetration: half the diagonal of the cells that an interpolation uses
LEAF = 16  # samples
CHUNK = 500  # triangles between two words of progress
CREASE_RAD, LINES_MAX = 0.5, 1500


def read_mesh(path: str | Path, unit: str = "m") -> Mesh:
    """A closed body out of a file of triangles (STL and what else trimesh reads), in m. Raises UsageError for a file that is none, for a
    body that is not closed, and for a size that no docking unit has."""
    try:
        import trimesh
    except ImportError:
        raise UsageError("reading a mesh needs trimesh: pip install 'hil-server[models]'") from None
    try:
        check_file(path)
        mesh = trimesh.load_mesh(str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # each of its readers has its own
        raise UsageError(f"{path}: is no mesh that can be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise UsageError(f"{path}: has no triangles: export the unit's surface as STL")
    if len(mesh.faces) > FACES_MAX:
        raise UsageError(f"{path}: {len(mesh.faces)} triangles, limit {FACES_MAX}: export it with a coarser chordal error")
    if not np.isfinite(mesh.vertices).all():
        raise UsageError(f"{path}: a vertex is no finite number: export the mesh again")
    mesh.apply_scale(UNITS_M[unit])
    size = float(mesh.extents.max())
    if not SIZE_M[0] <= size <= SIZE_M[1]:
        fits = [u for u, scale in UNITS_M.items() if SIZE_M[0] <= size / UNITS_M[unit] * scale <= SIZE_M[1]]
        what = f"--unit {' or '.join(fits)}" if fits else "export it in m or mm"
        raise UsageError(f"{path}: is {size:g} m large when read in {unit}, limit {SIZE_M[0]:g} ... {SIZE_M[1]:g} m: {what}")
    if not mesh.is_watertight or not mesh.is_winding_consistent:
        edges = np.unique(mesh.edges_sorted, axis=0, return_counts=True)[1]
        raise UsageError(f"{path}: is not watertight: {np.count_nonzero(edges != 2)} edges do not lie between two triangles: close the "
                         "body in the drawing program (export solids, not surfaces)")  # fmt: skip
    if mesh.volume < 0.0:
        mesh.invert()
    return mesh


def placed(mesh: Mesh, X: np.ndarray) -> Mesh:
    """A copy with the axes of the drawing at the pose X (4, 4) in those of its port."""
    copy = mesh.copy()
    copy.apply_transform(X)
    return copy


def wanted_cell(target: Mesh) -> float:
    """A cell [m] with which the grid of this body has some millions of nodes."""
    return float((np.prod(target.extents) / NODES_WANTED) ** (1.0 / 3.0))


def pseudonormals(mesh: Mesh) -> np.ndarray:
    """(n, 7, 3) of face, edges ab, bc, ca and vertices a, b, c of every triangle."""
    a, b, c = mesh.triangles.transpose(1, 0, 2)
    face = np.cross(b - a, c - a)
    face /= np.maximum(np.linalg.norm(face, axis=1), 1e-300)[:, None]
    sides = np.sort(mesh.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    _, of = np.unique(sides, axis=0, return_inverse=True)
    edge, vertex = np.zeros((of.max() + 1, 3)), np.zeros((len(mesh.vertices), 3))
    np.add.at(edge, of.ravel(), np.repeat(face, 3, axis=0))
    np.add.at(vertex, mesh.faces.ravel(), (mesh.face_angles[:, :, None] * face[:, None]).reshape(-1, 3))
    return np.ascontiguousarray(np.concatenate([face[:, None], edge[of.reshape(-1, 3)], vertex[mesh.faces]], axis=1))


def signed_distance(mesh: Mesh, cell: float, depth: float, done: Done = no_progress) -> Arrays:
    """`node`, `grid` and `box` of the field's file: distances up to `depth` [m] inside and as far as the interpolation needs. Raises
    UsageError for a grid that is too large."""
    band = depth + BAND_CELLS * cell
    low, high = mesh.bounds
    origin = low - band - cell
    shape = tuple(np.ceil((high + band + cell - origin) / cell).astype(int) + 1)
    if np.prod(shape, dtype=float) > NODES_MAX:
        raise UsageError(f"--cell-m {cell:g}: a grid of {' x '.join(map(str, shape))} nodes, limit {NODES_MAX}: take a larger cell, or "
                         "leave out of the mesh what never touches")  # fmt: skip
    found = np.full(shape, np.inf)
    triangles, normals = np.ascontiguousarray(mesh.triangles, float), pseudonormals(mesh)
    for first in range(0, len(triangles), CHUNK):
        spread(found, triangles[first : first + CHUNK], normals[first : first + CHUNK], np.ascontiguousarray(origin), cell, band)
        done(min(first + CHUNK, len(triangles)), len(triangles))
    near = np.isfinite(found)
    away = np.floor(distance_transform_edt(~near) - 0.5 * 3.0**0.5)
    # along z, the last node of the band before each one; before the first one all is outside
    last = np.maximum.accumulate(np.where(near, np.arange(shape[2]), 0), axis=2)
    inside = np.take_along_axis(np.where(near, found, 1.0), last, axis=2) < 0.0
    beyond = np.maximum(away * cell, band)
    node = np.where(near, found, np.where(inside, -beyond, beyond)).astype(np.float32)
    return {"node": node, "grid": np.array([*origin, cell, band]), "box": np.array([low, high])}


def surface_samples(mesh: Mesh, spacing: float) -> np.ndarray:
    """(n, 4) points of the surface, one in each cube of side `spacing` [m] and each direction of the normal, and the area of each. Raises
    UsageError for too many."""
    from trimesh import remesh

    if mesh.area / spacing**2 > SAMPLES_MAX:
        raise UsageError(f"--spacing-m {spacing:g}: about {mesh.area / spacing**2:.0f} samples, limit {SAMPLES_MAX}: take a larger spacing")
    vertices, faces = remesh.subdivide_to_size(mesh.vertices, mesh.faces, spacing, max_iter=30)
    corners = vertices[faces]
    centre = corners.mean(axis=1)
    normal = 0.5 * np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    keep = area > 0.0
    centre, normal, area = centre[keep], normal[keep] / area[keep, None], area[keep]
    side = np.argmax(np.concatenate([normal, -normal], axis=1), axis=1)
    _, of = np.unique(np.column_stack([np.floor(centre / spacing).astype(np.int64), side]), axis=0, return_inverse=True)
    of = of.ravel()
    total = np.bincount(of, area)
    mean = np.column_stack([np.bincount(of, area * x) for x in centre.T]) / total[:, None]
    # into the plane of the triangle that is nearest
    order = np.lexsort((np.linalg.norm(centre - mean[of], axis=1), of))
    nearest = order[np.r_[True, np.diff(of[order]) > 0]]
    mean -= np.einsum("ij,ij->i", mean - centre[nearest], normal[nearest])[:, None] * normal[nearest]
    return np.column_stack([mean, total])


def tree(samples: np.ndarray) -> Arrays:
    """`sample`, `ball` and `link`: halves along the longest axis, depth first."""
    balls: list[list[float]] = []
    links: list[list[int]] = []
    order: list[np.ndarray] = []

    def add(part: np.ndarray, first: int) -> None:
        p = samples[part, :3]
        centre, here = 0.5 * (p.min(axis=0) + p.max(axis=0)), len(balls)
        balls.append([*centre, float(np.linalg.norm(p - centre, axis=1).max()) * (1.0 + 1e-12)])
        links.append([0, first, len(part) if len(part) <= LEAF else 0])
        if len(part) <= LEAF:
            order.append(part)
        else:
            part, half = part[np.argsort(p[:, int(np.argmax(np.ptp(p, axis=0)))], kind="stable")], len(part) // 2
            add(part[:half], first)
            add(part[half:], first + half)
        links[here][0] = len(balls)

    add(np.arange(len(samples)), 0)
    return {"sample": samples[np.concatenate(order)], "ball": np.array(balls), "link": np.array(links, np.int32)}


def lines(mesh: Mesh) -> np.ndarray:
    """(k, 2, 3) creases of a body and its sections with the planes through X, for pictures."""
    from trimesh import intersections

    creases = mesh.vertices[mesh.face_adjacency_edges[mesh.face_adjacency_angles > CREASE_RAD]]
    cuts = [intersections.mesh_plane(mesh, normal, [0.0, 0.0, 0.0]) for normal in ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0])]
    found = np.concatenate([creases.reshape(-1, 2, 3), *(cut.reshape(-1, 2, 3) for cut in cuts)])
    longest = np.argsort(-np.linalg.norm(found[:, 1] - found[:, 0], axis=1), kind="stable")[:LINES_MAX]
    return np.asarray(found[np.sort(longest)], np.float32)


def unit_arrays(active: Mesh, target: Mesh, *, cell: float, spacing: float, depth: float, done: Done = no_progress) -> Arrays:
    """All of the file, of two closed bodies in the axes of their ports. cell: of the field; spacing: of the samples; depth: deepest valid
    penetration; m."""
    return {
        **signed_distance(target, cell, depth, done),
        **tree(surface_samples(active, spacing)),
        "active_lines": lines(active),
        "target_lines": lines(target),
    }


def field_of(arrays: Arrays) -> DistanceField:
    """The distance field of the file."""
    return DistanceField(arrays["node"], arrays["grid"][:3], float(arrays["grid"][3]), *arrays["box"])
