"""Spatial vectors and inertias against Pinocchio and dense NumPy twins."""

import numpy as np
import pinocchio as pin
import pytest

from rt_kernels.algebra import arrays

RNG = np.random.default_rng(11)
COUNT = 40


def random_pose() -> np.ndarray:
    q = RNG.normal(size=4)
    return np.concatenate([RNG.uniform(-3, 3, 3), q / np.linalg.norm(q)])


def se3(X: np.ndarray) -> pin.SE3:
    return pin.SE3(pin.Quaternion(X[6], X[3], X[4], X[5]), X[:3])


def random_inertia() -> tuple[np.ndarray, pin.Inertia]:
    body = pin.Inertia.Random()
    J = body.inertia
    ours = arrays.inertia_from_centre(body.mass, body.lever, [J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]])
    return ours, body


def packed(M: np.ndarray) -> np.ndarray:
    return M[np.triu_indices(6)]


@pytest.mark.parametrize("case", range(COUNT))
def test_cross_products_and_transforms(case):
    X, V, U, F = random_pose(), RNG.normal(size=6), RNG.normal(size=6), RNG.normal(size=6)
    v, u, f = pin.Motion(V), pin.Motion(U), pin.Force(F)
    assert np.allclose(arrays.cross_motion(V, U), v.cross(u).vector, rtol=0, atol=1e-14)
    assert np.allclose(arrays.cross_force(V, F), v.cross(f).vector, rtol=0, atol=1e-14)
    assert np.allclose(arrays.motion_to_parent(X, V), se3(X).act(v).vector, rtol=0, atol=2e-14)
    assert np.allclose(arrays.motion_to_child(X, V), se3(X).actInv(v).vector, rtol=0, atol=2e-14)
    assert np.allclose(arrays.wrench_to_parent(X, F), se3(X).act(f).vector, rtol=0, atol=2e-14)
    # power of a force moved with the body: (V x U) . F + U . (V x* F) = 0
    assert arrays.cross_motion(V, U) @ F + U @ arrays.cross_force(V, F) == pytest.approx(0.0, abs=2e-14)


@pytest.mark.parametrize("case", range(COUNT))
def test_rigid_inertia(case):
    X, V = random_pose(), RNG.normal(size=6)
    ours, body = random_inertia()
    other, other_body = random_inertia()
    assert np.allclose(arrays.symmetric_full(arrays.symmetric_from_inertia(ours)), body.matrix(), rtol=0, atol=1e-14)
    assert np.allclose(arrays.inertia_apply(ours, V), (body * pin.Motion(V)).vector, rtol=0, atol=1e-13)
    moved = arrays.symmetric_full(arrays.symmetric_from_inertia(arrays.inertia_to_parent(X, ours)))
    assert np.allclose(moved, se3(X).act(body).matrix(), rtol=0, atol=1e-13)
    joined = arrays.symmetric_full(arrays.symmetric_from_inertia(arrays.inertia_add(ours, other)))
    assert np.allclose(joined, (body + other_body).matrix(), rtol=0, atol=1e-13)
    # energy does not depend on the frame
    there = arrays.kinetic_energy(arrays.inertia_to_parent(X, ours), arrays.motion_to_parent(X, V))
    assert there == pytest.approx(0.5 * body.vtiv(pin.Motion(V)), rel=1e-12)
    mass, centre, J = arrays.inertia_to_centre(ours)
    assert mass == body.mass and np.allclose(centre, body.lever, rtol=0, atol=1e-15)
    assert np.allclose(J, body.inertia[np.triu_indices(3)], rtol=0, atol=1e-14)


@pytest.mark.parametrize("case", range(COUNT))
def test_symmetric_six(case):
    X, x, u = random_pose(), RNG.normal(size=6), RNG.normal(size=6)
    G = RNG.normal(size=(6, 8))
    M = G @ G.T
    S = packed(M)
    assert np.array_equal(arrays.symmetric_full(S), M)
    assert np.allclose(arrays.symmetric_apply(S, x), M @ x, rtol=0, atol=2e-13)
    assert np.allclose(arrays.symmetric_full(arrays.symmetric_add_outer(-0.3, u, S)), M - 0.3 * np.outer(u, u), rtol=0, atol=1e-14)
    assert np.array_equal(arrays.symmetric_add(S, S), 2 * S)
    dual = se3(X).inverse().action  # motions from parent to child; its transpose brings forces back
    assert np.allclose(arrays.symmetric_full(arrays.symmetric_to_parent(X, S)), dual.T @ M @ dual, rtol=1e-13, atol=1e-12)
    exact = np.linalg.solve(M, x)
    assert np.linalg.norm(arrays.symmetric_solve(S, x) - exact) <= 1e-13 * np.linalg.cond(M) * np.linalg.norm(exact)


def test_solve_refuses_an_indefinite_matrix():
    with pytest.raises(ValueError, match="not positive definite"):
        arrays.symmetric_solve(packed(np.diag([1.0, 1, 1, 1, -1e-9, 1])), np.ones(6))
    with pytest.raises(ValueError, match="not positive definite"):
        arrays.symmetric_solve(packed(np.full((6, 6), np.nan)), np.ones(6))


def test_inertia_by_hand():
    """2 kg at (0, 0, 3) m: 18 kg.m2 about x and y."""
    assert np.array_equal(arrays.inertia_from_centre(2.0, [0, 0, 3], np.zeros(6)), [2, 0, 0, 6, 18, 0, 0, 18, 0, 0])
