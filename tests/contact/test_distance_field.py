"""Distance field of closed meshes: against closed forms and trimesh's own signed distance; its bounds hold."""

import numpy as np
import pytest
import trimesh

from hil_server.config.unit_meshes import field_of, signed_distance
from rt_kernels.contact.distance_field import DistanceField
from tests.mechanisms.mesh.drawings import cone

CELL, DEPTH = 0.01, 0.005


def field(body, cell=CELL):
    return field_of(signed_distance(body, cell, DEPTH))


def around(rng, body, away, count):
    """Points at most `away` from the surface, and their signed distance by trimesh, positive outside."""
    on, faces = trimesh.sample.sample_surface(body, count, seed=3)
    p = on + rng.uniform(-away, away, (count, 1)) * body.face_normals[faces]
    return p, -trimesh.proximity.signed_distance(body, p)


def test_sphere_in_closed_form():
    """Value within 3e-5 of a cell's curvature error and the chords of the mesh, gradient along the radius."""
    rng = np.random.default_rng(1)
    ball = trimesh.creation.icosphere(subdivisions=5, radius=0.2)
    u = rng.normal(size=(4000, 3))
    u /= np.linalg.norm(u, axis=1)[:, None]
    r = rng.uniform(0.196, 0.22, 4000)
    phi, gradient = field(ball).at(u * r[:, None])
    assert np.abs(phi - (r - 0.2)).max() < 2e-4 and np.abs(np.median(phi - (r - 0.2))) < 6e-5  # chords: 0.2 (1 - cos(0.5 edge/0.2)) = 6e-5
    assert np.einsum("ij,ij->i", gradient, u).min() > 0.99 and np.abs(gradient - u).max() < 0.05


@pytest.mark.parametrize(
    ("body", "smooth"),
    [(trimesh.creation.box((0.3, 0.2, 0.1)), 1e-9), (cone(sections=96), 3e-4), (trimesh.creation.capsule(0.1, 0.04, count=(48, 48)), 3e-4)],
    ids=["box", "cone", "capsule"],
)  # fmt: skip
def test_against_trimesh(body, smooth):
    """On flat faces the distance itself, on round ones nearly, at sharp edges within a third of a cell; the sign everywhere."""
    p, d = around(np.random.default_rng(2), body, 0.005, 600)
    phi, _ = field(body).at(p)
    error = np.abs(phi - d)
    assert np.median(error) < smooth and error.max() < 0.3 * CELL
    assert np.all((phi < 0.0) == (d < 0.0), where=np.abs(d) > 0.3 * CELL)


def test_sign_at_a_sharp_edge():
    """Outside of a thin wedge, points beyond its edge have faces of both directions nearest: pseudonormals keep them outside."""
    wedge = trimesh.convex.convex_hull(np.array([[0, 0, -0.1], [0, 0, 0.1], [0.3, 0.02, -0.1], [0.3, 0.02, 0.1], [0.3, -0.02, -0.1],
                                                 [0.3, -0.02, 0.1]]))  # fmt: skip
    nodes = signed_distance(wedge, CELL, DEPTH)
    x = nodes["grid"][0] + CELL * np.arange(nodes["node"].shape[0])
    assert (nodes["node"][x < 0.0] > 0.0).all() and (nodes["node"] < 0.0).any()


def test_gradient_is_the_derivative_and_continuous():
    f, rng = field(trimesh.creation.box((0.3, 0.2, 0.1))), np.random.default_rng(4)
    p = rng.uniform([-0.16, -0.11, -0.06], [0.16, 0.11, 0.06], (500, 3))
    gradient, h = f.at(p)[1], 1e-6
    for axis in range(3):
        step = np.eye(3)[axis] * h
        assert (f.at(p + step)[0] - f.at(p - step)[0]) / (2 * h) == pytest.approx(gradient[:, axis], abs=1e-3)
    # across the face between two cells
    grid = signed_distance(trimesh.creation.box((0.3, 0.2, 0.1)), CELL, DEPTH)["grid"]
    face = grid[:3] + CELL * np.array([12.0, 9.3, 7.6])
    near = np.array([-1e-9, 1e-9])[:, None] * [1.0, 0.0, 0.0]
    assert f.at(face + near)[1][0] == pytest.approx(f.at(face + near)[1][1], abs=1e-5)


def test_far_is_certain_and_near_the_surface_rare():
    """No point of a ball that is reported to be far has phi <= 0 by trimesh or by the field, and no gradient is longer than 2."""
    body, rng = cone(sections=48), np.random.default_rng(5)
    f, radius = field(body), 0.03
    centres = rng.uniform(body.bounds[0] - 0.2, body.bounds[1] + 0.2, (1500, 3))
    far = f.far(centres, radius)
    u = rng.normal(size=(len(centres), 3))
    edge = centres + radius * u / np.linalg.norm(u, axis=1)[:, None]
    assert 0.3 < far.mean() < 0.95
    assert (f.at(edge[far])[0] > 0.0).all()
    d = -trimesh.proximity.signed_distance(body, centres)
    assert (d[far] > radius).all()
    assert far[d > radius + 5.0 * CELL].mean() > 0.95
    p, _ = around(rng, body, 0.02, 2000)
    assert np.linalg.norm(f.at(p)[1], axis=1).max() < 1.5


def test_outside_of_the_grid():
    f = field(trimesh.creation.box((0.1, 0.1, 0.1)))
    phi, gradient = f.at([[1.0, 0.0, 0.0]])
    assert phi[0] == np.inf and not gradient.any() and f.far([[1.0, 0.0, 0.0]], 0.5).all() and not f.far([[1.0, 0.0, 0.0]], 1.5).any()


def test_no_field_of_too_few_nodes():
    with pytest.raises(ValueError, match="at least 4 nodes"):
        DistanceField(np.zeros((4, 4, 3)), [0, 0, 0], 0.1, [0, 0, 0], [1, 1, 1])
