"""Payload on the elastic arm: its modes and decrements in time, statics, balance with the arm, contact, explicit Euler beside it."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.model.elastic_payload import damping_matrix, payload_mass_matrix, payload_modes
from rt_kernels.offline.payload_link import ElasticPayload

H = 5e-4
MASS, INERTIA = 8015.0, np.diag([5532.85, 26811.43, 26811.43])
P_PG = np.array([-1.5, 1.2, 0.0])
# golden compliance of the arm (axes of E, seven digits)
C = np.zeros((6, 6))
C[np.triu_indices(6)] = [
    9.200370e-05, 9.217390e-05, 9.049364e-05, 2.597062e-06, -1.669664e-05, 1.194463e-05,
    4.152029e-04, -3.567234e-05, 2.782365e-05, -2.042738e-06, 4.302028e-05,
    2.010348e-04, -8.628146e-06, -2.691684e-05, -5.543237e-07,
    6.639399e-06, -3.349153e-07, 0.0, 4.799055e-06, 0.0, 7.521546e-06]
C = C + np.triu(C, 1).T
K = np.linalg.inv(C)
K = 0.5 * (K + K.T)
M = payload_mass_matrix(MASS, INERTIA, -P_PG, np.eye(3))
X_PG = np.concatenate([P_PG, [0, 0, 0, 1]])


def pose(p, R):
    return np.concatenate([p, R.as_quat()])


def test_modes_in_time_have_frequency_and_decrement():
    """Each mode started alone with a micrometre: period between zero crossings and decay of the peaks, end effector turned in space.

    The step's own root z of z^2 - (2 - h^2 w^2 - h c) z + 1 - h c = 0 is met closely; it is h c/4 (6e-5 for the fastest mode) from the
    exact frequency.
    """
    R_NE = Rotation.from_rotvec([0.3, -0.8, 0.5])
    X_NE = pose([3.0, -2.0, 1.0], R_NE)
    w, modes = payload_modes(K, M)
    np.testing.assert_allclose(w / (2 * np.pi), [0.069995, 0.090476, 0.445821, 0.535423, 1.487368, 2.217019], rtol=1e-5)
    delta = 0.1
    zeta = delta / np.sqrt(4 * np.pi**2 + delta**2)
    body = ElasticPayload(MASS, INERTIA, X_PG, K, damping_matrix(K, M, delta))
    for k in range(6):
        size = 1e-6 / np.abs(modes[:, k]).max()
        twist = size * w[k] * modes[:, k]
        body.place(X_NE)
        X0 = body.state[0]
        body.set_state(X0, R_NE.apply(twist[:3] + np.cross(twist[3:], -P_PG)), twist[3:])
        path = body.run(X_NE, int(2.2 * 2 * np.pi / w[k] / H), H)
        # motion of the mode from the velocities: q' = Phi_k^T M [v_E; w]
        angular = path[:, 10:13]
        linear = R_NE.inv().apply(path[:, 7:10]) - np.cross(angular, -P_PG)
        rate = np.hstack([linear, angular]) @ M @ modes[:, k]
        t = H * np.arange(1, len(rate) + 1)
        at = np.nonzero(np.diff(np.sign(rate)))[0]
        zeros = t[at] - rate[at] * H / (rate[at + 1] - rate[at])
        frequency = np.pi / np.diff(zeros).mean()
        z = np.roots([1.0, -(2.0 - (H * w[k]) ** 2 - 2.0 * H * zeta * w[k]), 1.0 - 2.0 * H * zeta * w[k]])[0]
        assert frequency == pytest.approx(np.abs(np.angle(z)) / H, rel=1e-6)
        assert frequency == pytest.approx(w[k] * np.sqrt(1 - zeta**2), rel=6e-5)
        peaks = [np.abs(rate[a:b]).max() for a, b in zip(at, at[1:], strict=False)]
        decrement = -2.0 * np.pi * np.log(np.abs(z)) / np.abs(np.angle(z))
        assert 2.0 * np.log(peaks[0] / peaks[1]) == pytest.approx(decrement, abs=5e-5)
        assert decrement == pytest.approx(delta, rel=2e-4)


def test_without_damping_no_mode_grows():
    body = ElasticPayload(MASS, INERTIA, X_PG, K, np.zeros((6, 6)))
    X_NE = pose(np.zeros(3), Rotation.identity())
    w, modes = payload_modes(K, M)
    twist = 1e-6 * modes[:, 5] / np.abs(modes[:, 5]).max() * w[5]
    body.place(X_NE)
    body.set_state(body.state[0], twist[:3] + np.cross(twist[3:], -P_PG), twist[3:])
    path = body.run(X_NE, 80000, H)
    linear = path[:, 7:10] - np.cross(path[:, 10:13], -P_PG)
    rate = np.hstack([linear, path[:, 10:13]]) @ M @ modes[:, 5]
    # explicit Euler would grow by exp(h w^2 t/2), here by exp(1.9)
    assert np.abs(rate[-2000:]).max() == pytest.approx(np.abs(rate[:2000]).max(), rel=1e-3)


def test_a_newton_shows_the_compliance():
    """Constant measured force on the base port, damped to rest: the grapple moves by C times the reaction, carried to E."""
    R_NE = Rotation.from_rotvec([-0.4, 0.2, 1.1])
    X_NE = pose([1.0, 2.0, 3.0], R_NE)
    body = ElasticPayload(MASS, INERTIA, X_PG, K, damping_matrix(K, M, 8.0))
    body.place(X_NE)
    p_P = body.state[0][:3]
    R_NB = Rotation.from_rotvec([0.1, 0.7, -0.3])
    p_B = p_P + [0.4, 3.0, -0.2]
    F_B = np.array([1.0, -0.5, 0.3, 0.2, -0.1, 0.4]) * 1e-3
    X = body.run(X_NE, 400000, H, pose(p_B, R_NB), F_B)[-1]
    f, m = -R_NB.apply(F_B[:3]), -R_NB.apply(F_B[3:])
    load = np.concatenate([R_NE.inv().apply(f), R_NE.inv().apply(m + np.cross(p_B - X_NE[:3], f))])
    R_NP = Rotation.from_quat(X[3:7])
    moved = np.concatenate([R_NE.inv().apply(X[:3] + R_NP.apply(P_PG) - X_NE[:3]), (R_NE.inv() * R_NP).as_rotvec()])
    np.testing.assert_allclose(moved, C @ load, rtol=1e-4, atol=1e-6 * np.abs(C @ load).max())


def test_action_and_reaction_balance_for_any_deflection():
    rng = np.random.default_rng(3)
    D = damping_matrix(K, M, 0.1)
    for _ in range(20):
        R_PG = Rotation.from_rotvec(rng.normal(size=3))
        body = ElasticPayload(MASS, INERTIA, pose(P_PG, R_PG), K, D)
        R_NE = Rotation.from_rotvec(rng.normal(size=3))
        X_NE, V_NE = pose(rng.normal(size=3), R_NE), 0.1 * rng.normal(size=6)
        R_NP = R_NE * Rotation.from_rotvec(0.2 * rng.normal(size=3)) * R_PG.inv()
        p_P = X_NE[:3] - R_NP.apply(P_PG) + 0.3 * rng.normal(size=3)
        body.set_state(pose(p_P, R_NP), 0.1 * rng.normal(size=3), 0.1 * rng.normal(size=3))
        F_E, F_P = body.wrench(X_NE, V_NE)
        f, m = R_NE.apply(F_E[:3]), R_NE.apply(F_E[3:])
        about_origin = m + np.cross(X_NE[:3], f) + F_P[3:] + np.cross(p_P, F_P[:3])
        np.testing.assert_allclose(f, -F_P[:3], rtol=1e-12)
        assert np.abs(about_origin).max() < 1e-12 * np.abs(F_P).max() * 10


def test_carried_along_rigidly_there_is_no_wrench():
    """A common motion of arm and payload, also a fast turn, deflects nothing and damps nothing."""
    rng = np.random.default_rng(4)
    body = ElasticPayload(MASS, INERTIA, X_PG, K, damping_matrix(K, M, 0.1))
    R_NE = Rotation.from_rotvec(rng.normal(size=3))
    X_NE = pose(rng.normal(size=3), R_NE)
    body.place(X_NE)
    X_NP = body.state[0]
    v, w = rng.normal(size=3), rng.normal(size=3)
    body.set_state(X_NP, v + np.cross(w, X_NP[:3] - X_NE[:3]), Rotation.from_quat(X_NP[3:]).inv().apply(w))
    F_E, F_P = body.wrench(X_NE, np.concatenate([v, w]))
    assert np.abs(F_E).max() < 1e-9
    assert np.abs(F_P).max() < 1e-9


def test_a_free_payload_keeps_its_angular_momentum():
    inertia = np.diag([5532.85, 20000.0, 26811.43])
    body = ElasticPayload(MASS, inertia, X_PG, np.zeros((6, 6)), np.zeros((6, 6)))
    body.set_state(pose(np.zeros(3), Rotation.identity()), [0.1, 0, 0], [0.05, 0.02, -0.03])
    path = body.run(pose(np.zeros(3), Rotation.identity()), 40000, H)
    L = Rotation.from_quat(path[:, 3:7]).apply(path[:, 10:13] @ inertia)
    assert np.abs(L - L[0]).max() < 2e-4 * np.linalg.norm(L[0])
    np.testing.assert_allclose(path[-1, :3], [0.1 * 20.0, 0, 0], rtol=1e-9, atol=1e-12)


def test_errors_name_value_and_unit():
    D = np.zeros((6, 6))
    with pytest.raises(ValueError, match="mass: -1.0 kg"):
        ElasticPayload(-1.0, INERTIA, X_PG, K, D)
    with pytest.raises(ValueError, match="X_PG: norm of the quaternion 2.0"):
        ElasticPayload(MASS, INERTIA, np.concatenate([P_PG, [0, 0, 0, 2.0]]), K, D)
    with pytest.raises(ValueError, match="K: not symmetric"):
        ElasticPayload(MASS, INERTIA, X_PG, np.triu(K), D)
    with pytest.raises(ValueError, match="h: 0.0 s"):
        ElasticPayload(MASS, INERTIA, X_PG, K, D).run(X_PG, 1, 0.0)
