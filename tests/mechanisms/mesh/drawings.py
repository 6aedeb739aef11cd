"""Meshes of docking units, made as a drawing program would export them: closed bodies in metres, in the axes of their ports."""

import tempfile
from pathlib import Path

import numpy as np
import trimesh

from hil_server.config import unit_meshes
from rt_kernels.mechanisms.mesh import field_file

TO_X = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])  # the axis of revolution, Z, becomes X
X_TO_MINUS_Z = np.array([[0, 1, 0, 0], [0, 0, -1, 0], [-1, 0, 0, 0], [0, 0, 0, 1.0]])  # X of the port along -Z of a drawing


def revolved(profile, sections=192):
    """Body of revolution about X of a closed meridian, rows (x, rho)."""
    points = np.array([(rho, x) for x, rho in profile])
    body = trimesh.creation.revolve(points, sections=sections)
    body.apply_transform(TO_X)
    return body if body.volume > 0.0 else trimesh.Trimesh(body.vertices, body.faces[:, ::-1])


def cone(wall=0.03, sections=192):
    """The cavity of probe_cone_simple, with a wall around it."""
    return revolved([(-0.3, 0.4), (0.0, 0.055), (0.08, 0.055), (0.08, 0.0), (0.08 + wall, 0.0), (0.08 + wall, 0.055 + wall),
                     (0.0, 0.055 + wall), (-0.3, 0.4 + wall), (-0.3, 0.4)], sections)  # fmt: skip


def ball(radius, centre, subdivisions=4):
    body = trimesh.creation.icosphere(subdivisions=subdivisions, radius=radius)
    body.apply_translation(centre)
    return body


def plate(size=0.3, thick=0.02):
    """Its face is the plane x = 0, the solid behind it."""
    return trimesh.creation.box((thick, size, size), np.array(trimesh.transformations.translation_matrix([0.5 * thick, 0.0, 0.0])))


def unit_keys(folder, active, target, *, cell, spacing, depth=0.003, name="unit.npz", **keys):
    """The field of two bodies in a file, and the keys of a unit with it."""
    path = folder / name
    sha256 = field_file.write(path, unit_meshes.unit_arrays(active, target, cell=cell, spacing=spacing, depth=depth))
    return {"field": str(path), "field_sha256": sha256, "penetration_max_m": depth, **keys}


def example():
    """Keys of a unit: a sprung ball, a cone with a coarse field, a latch in its throat."""
    places = (("tip", "active", [0.6, 0.0, 0.0]), ("throat", "target", [0.02, 0.0, 0.0]))
    points = [{"name": name, "body": body, "position_m": place} for name, body, place in places]
    springs = {"head_mass_kg": 4.0, "axial_stiffness_n_per_m": 8e3, "axial_damping_n_s_per_m": 4e3, "lateral_stiffness_n_per_m": 2e4,
               "lateral_damping_n_s_per_m": 1.5e3}  # fmt: skip
    latch = {"active": "tip", "target": "throat", "radius_m": 0.05}
    return unit_keys(Path(tempfile.mkdtemp()), ball(0.04, [0.6, 0, 0]), cone(sections=96), cell=0.012, spacing=0.005,
                     head_m=[0.6, 0.0, 0.0], points=points, latches=[latch], **springs)  # fmt: skip


def wedge(rows, half_deg, at_deg=0.0, facets=8):
    """Convex piece of a ring about X: rows (x, inner radius, outer radius), over an angle that rows may narrow (fourth number)."""
    points = []
    for x, inner, outer, *narrower in rows:
        half = narrower[0] if narrower else half_deg
        for angle in np.radians(at_deg + np.linspace(-half, half, facets)):
            points += [[x, r * np.cos(angle), r * np.sin(angle)] for r in (inner, outer)]
    return trimesh.convex.convex_hull(np.array(points))


def petal_ring():
    """Active half of an androgynous unit: a ring with its face in x = 0 and three guide petals that lean inwards. The other half is the
    same, turned by 180 deg about Y, its petals between these."""
    ring = revolved([(-0.04, 0.3), (0.0, 0.3), (0.0, 0.4), (-0.04, 0.4), (-0.04, 0.3)], 120)
    rows = [(-0.035, 0.272, 0.311), (-0.012, 0.272, 0.303), (0.1, 0.2, 0.215, 7.7)]
    return trimesh.boolean.union([ring, *(wedge(rows, 17.7, at) for at in (30.0, 150.0, 270.0))])


def mate_of(half, gap=0.001):
    """The other half of an androgynous unit, docked; the faces stay apart by the gap, which springs bear."""
    mate = half.copy()
    mate.apply_transform(trimesh.transformations.rotation_matrix(np.pi, [0.0, 1.0, 0.0]))
    mate.apply_translation([gap, 0.0, 0.0])
    return mate


def hook():
    """A hook that catches a bar of 16 mm on the Y axis from below: outline in XZ, 20 mm wide; its ramp lifts it over the bar."""
    outline = [(-0.15, -0.034), (0.05, -0.034), (0.05, -0.03), (0.014, 0.004), (0.01, 0.004), (0.01, -0.0085), (-0.15, -0.0085)]
    parts = [[0, 1, 5, 6], [1, 2, 3, 4, 5]]
    bodies = [
        trimesh.convex.convex_hull(np.array([[outline[k][0], y, outline[k][1]] for k in part for y in (-0.01, 0.01)])) for part in parts
    ]
    return trimesh.boolean.union(bodies)


def bar():
    """The bar on two posts before a plate."""
    rod = trimesh.creation.cylinder(0.008, 0.1, sections=48)
    rod.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, [1.0, 0.0, 0.0]))

    def box(size, centre):
        return trimesh.creation.box(size, trimesh.transformations.translation_matrix(centre))

    posts = [box((0.09, 0.012, 0.024), (0.035, y, 0.0)) for y in (-0.05, 0.05)]
    return trimesh.boolean.union([rod, *posts, box((0.012, 0.12, 0.1), (0.08, 0.0, 0.0))])
