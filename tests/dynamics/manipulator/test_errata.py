"""Errata of the berthing model (8.2): the corrected form agrees with an independent answer, the printed one misses it.

E15, E16 segment compliance, E18 deflection of the end, E23, E24 small angles, E25, E26 contact on the payload, E27 mass matrix at E.
Those of the drive are in test_joint_drive.py (E10-E13) and test_payload.py (E14), E22 in test_tree_errata.py, E28 in
test_compliance.py.
"""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

from rt_kernels.model.arm_segments import beam, lumped
from rt_kernels.model.elastic_payload import payload_mass_matrix
from rt_kernels.offline.payload_link import ElasticPayload
from tests.offline.test_payload_link import INERTIA, MASS, P_PG, C, K


def cross(a):
    return np.cross(np.eye(3), a)


def test_segment_constants_e15_e16():
    """Twist of a bar under a moment is m l/(G J); the end of a lumped segment turns by m/k whatever its length."""
    length, EI, GJ, k_b, k_t = 4.0, 3e6, 1.5e6, 2e5, 1e5
    _, _, _, c = beam("b", (0, 0, 0), (length, 0, 0), EI, GJ)
    assert c[3] == pytest.approx(length / GJ)
    assert c[3] != pytest.approx(1.0 / GJ, rel=0.5)  # printed
    _, _, _, c = lumped("b", (0, 0, 0), (length, 0, 0), k_b, k_t)
    assert c[4] == pytest.approx(1.0 / k_b)
    assert c[4] != pytest.approx(length / k_b, rel=0.5)  # printed
    # a moment's work is symmetric: displacement per moment = turn per force
    assert c[2] == pytest.approx(length * c[4])


def test_deflection_of_the_end_e18():
    """A long arm on one angular spring at its root, a moment at its end: its end turns by m/k and moves by l m/k; taking the deformed
    place on the deformed axes from the undeformed one, as printed, loses all of the motion."""
    length, k, m = 17.0, 2e5, 100.0
    phi = np.array([0.0, 0.0, m / k])
    tau_EN = np.eye(3)  # undeformed: all axes parallel
    r_EN = np.array([length, 0.0, 0.0])
    T = np.eye(3) - cross(phi)  # root -> deformed E
    r = T.T @ r_EN
    _, _, _, c = lumped("b", (0, 0, 0), (length, 0, 0), k, k)
    right = tau_EN @ r - r_EN
    assert right[1] == pytest.approx(c[2] * m, rel=1e-6)
    printed = T @ r - r_EN
    assert abs(printed[1]) < 1e-3 * c[2] * m


@pytest.mark.parametrize("axis", range(3))
def test_small_angles_e23_e24(axis):
    """A payload turned by a small angle about one axis of E feels a moment against that turn, of every grapple attitude."""
    rng = np.random.default_rng(axis)
    R_NE, R_PG = Rotation.from_rotvec(rng.normal(size=3)), Rotation.from_rotvec(rng.normal(size=3))
    angle = np.zeros(3)
    angle[axis] = 1e-5
    R_NG = R_NE * Rotation.from_rotvec(angle)
    R_NP = R_NG * R_PG.inv()
    stiff = np.diag([0.0, 0.0, 0.0, 2e5, 3e5, 4e5])
    body = ElasticPayload(MASS, INERTIA, np.concatenate([P_PG, R_PG.as_quat()]), stiff, np.zeros((6, 6)))
    p = np.array([1.0, 2.0, 3.0])
    body.set_state(np.concatenate([p - R_NP.apply(P_PG), R_NP.as_quat()]))
    F_E, _ = body.wrench(np.concatenate([p, R_NE.as_quat()]), np.zeros(6))
    np.testing.assert_allclose(F_E[3:], np.diag(stiff)[3:] * angle, atol=1e-9)
    # printed: psi = -t13, theta = t12, phi = t32 of one matrix; and tau_GF,E = tau_GF^T (tau_PL^T tau_N)
    t = (R_NE.inv() * R_NG).as_matrix()  # GF -> E
    mixed = np.array([t[2, 1], -t[0, 2], t[0, 1]])
    if axis:
        assert np.abs(mixed - angle).max() > 1e-5
    printed = (R_PG * R_NP * R_NE.inv()).as_matrix()
    vee = 0.5 * np.array([printed[2, 1] - printed[1, 2], printed[0, 2] - printed[2, 0], printed[1, 0] - printed[0, 1]])
    assert np.abs(vee - angle).max() > 0.01


def test_contact_on_the_payload_e25_e26():
    """The measured wrench acts on the base port at its origin B; what the payload gains in momentum, angular momentum about B too, is the
    opposite. Printed: the force with the other sign, and its moment with the payload's own port as arm."""
    h, steps = 5e-4, 20
    body = ElasticPayload(MASS, INERTIA, np.concatenate([P_PG, [0, 0, 0, 1]]), np.zeros((6, 6)), np.zeros((6, 6)))
    R_NP, p = Rotation.from_rotvec([0.3, -0.2, 0.5]), np.array([-3.2, 0.15, -0.1])
    body.set_state(np.concatenate([p, R_NP.as_quat()]))
    R_NB, p_B = Rotation.from_rotvec([-0.1, 0.2, 0.1]), np.array([0.1, 0.05, 0.0])
    F_B = np.array([-1000.0, 200.0, 100.0, 30.0, -20.0, 10.0])
    body.run(np.array([0, 0, 0, 0, 0, 0, 1.0]), steps, h, np.concatenate([p_B, R_NB.as_quat()]), F_B)
    X, v, w = body.state
    f, m = R_NB.apply(F_B[:3]), R_NB.apply(F_B[3:])
    R = Rotation.from_quat(X[3:])
    L = R.apply(INERTIA @ w)
    t = h * steps
    np.testing.assert_allclose(MASS * v, -f * t, rtol=1e-9)
    np.testing.assert_allclose(L, (-m - np.cross(p_B - p, f)) * t, rtol=1e-4)
    arm = R_NP.apply([3.0, 0.0, 0.0])  # l_PI
    assert np.abs((-m - np.cross(arm, f)) * t - L).max() > 0.05 * np.abs(L).max()


def test_mass_matrix_at_the_grapple_e27():
    """Printed: no mass in the off-diagonal blocks and the inertia not moved to E; its frequencies are those the notes give for it."""
    M = payload_mass_matrix(MASS, INERTIA, -P_PG, np.eye(3))
    arm = cross(-P_PG)
    # kinetic energy of a rigid body whose point E has the twist [v; w]
    rng = np.random.default_rng(1)
    v, w = rng.normal(size=(2, 3))
    v_P = v + np.cross(w, -P_PG)
    energy = 0.5 * (MASS * v_P @ v_P + w @ INERTIA @ w)
    V = np.concatenate([v, w])
    assert 0.5 * V @ M @ V == pytest.approx(energy, rel=1e-12)
    printed = np.block([[MASS * np.eye(3), arm.T], [arm, INERTIA]])
    assert 0.5 * V @ printed @ V != pytest.approx(energy, rel=1e-3)
    frequencies = np.sqrt(eigh(K, printed, eigvals_only=True)) / (2 * np.pi)
    np.testing.assert_allclose(frequencies, [0.083, 0.109, 0.429, 0.501, 1.334, 1.912], atol=6e-4)
    assert np.allclose(C, C.T)
