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
