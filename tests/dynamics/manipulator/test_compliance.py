"""Compliance of the arm against golden values, finite elements and closed forms; payload modes and damping; dynamics of the arm."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

from rt_kernels.dynamics.manipulator.compliance import ArmCompliance
from rt_kernels.model.arm_segments import beam, hinge, lumped
from rt_kernels.model.beam_elements import Frame, Section
from rt_kernels.model.bodies import Body
from rt_kernels.model.elastic_payload import damping_matrix, payload_mass_matrix, payload_modes
from rt_kernels.multibody.tree import Tree

EI, GJ = 3.0e6, 1.5e6
# joint, axis, offset from the joint before, mass of its link, inertia about the centre of mass, centre of mass (mid-link, assumed)
SSRMS = [
    ("roll", (1, 0, 0), (1.3589, 0, 0), 105.98, (12.19, 12.13, 3.061), (0, 0, 0.3513)),
    ("yaw", (0, 0, 1), (0, 0, 0.7026), 105.98, (8.088, 3.061, 8.446), (0, -0.2846, 0)),
    ("pitch", (0, 1, 0), (0, -0.5692, 0), 314.88, (15.41, 2094.71, 2103.19), (3.555, -0.2375, 0)),
    ("elbow", (0, 1, 0), (7.11, -0.475, 0), 279.2, (9.522, 1966.28, 1966.28), (3.555, 0, 0)),
    ("wrist_pitch", (0, 1, 0), (7.11, 0, 0), 105.98, (8.305, 3.061, 8.0386), (0, -0.2846, 0)),
    ("wrist_yaw", (0, 0, 1), (0, -0.5692, 0), 105.98, (12.13, 12.13, 3.061), (0, 0, -0.3513)),
    ("wrist_roll", (1, 0, 0), (0, 0, -0.7026), 243.66, (9.336, 44.41, 44.41), (0.67945, 0, 0)),
]
Q = np.radians([0.0, 20.0, -60.0, 100.0, -50.0, 10.0, 0.0])


def ssrms(rotor=0.0):
    parents = [None, *(row[0] for row in SSRMS)]
    bodies = [Body(name, parent, axis=np.array(axis, dtype=float), p_PJ_P=np.array(offset, dtype=float), mass=mass,
                   inertia=np.diag(inertia), com=np.array(com, dtype=float), rotor_inertia=rotor, gear_ratio=1842.0)
              for parent, (name, axis, offset, mass, inertia, com) in zip(parents, SSRMS, strict=False)]
    return Tree([*bodies, Body("tip", "wrist_roll", "fixed", p_PJ_P=np.array([1.3589, 0, 0]))], gravity=(0.0, 0.0, 0.0))


BOOMS = [beam("pitch", (0, 0, 0), (7.11, 0, 0), EI, GJ), beam("elbow", (0, 0, 0), (7.11, 0, 0), EI, GJ)]
GOLDEN = np.zeros((6, 6))
GOLDEN[np.triu_indices(6)] = [
    9.200370e-05, 9.217390e-05, 9.049364e-05, 2.597062e-06, -1.669664e-05, 1.194463e-05,
    4.152029e-04, -3.567234e-05, 2.782365e-05, -2.042738e-06, 4.302028e-05,
    2.010348e-04, -8.628146e-06, -2.691684e-05, -5.543237e-07,
    6.639399e-06, -3.349153e-07, 0.0, 4.799055e-06, 0.0, 7.521546e-06]
GOLDEN = GOLDEN + np.triu(GOLDEN, 1).T


def test_golden_compliance():
    tree = ssrms()
    np.testing.assert_allclose(tree.pose(Q, "tip")[1], [11.641814, 2.276845, 1.830280], atol=6e-7)
    C = ArmCompliance(tree, "tip", BOOMS).compliance(Q)
    # seven printed digits
    np.testing.assert_allclose(C, GOLDEN, rtol=1e-6, atol=1e-16)
    assert np.array_equal(C, C.T)
    assert np.linalg.eigvalsh(C).min() > 0.0


def test_stiffness_is_the_inverse():
    arm = ArmCompliance(ssrms(), "tip", BOOMS)
    C, K = arm.compliance(Q), arm.stiffness(Q)
    assert np.array_equal(K, K.T)
    np.testing.assert_allclose(K @ C, np.eye(6), atol=1e-9)
    with pytest.raises(ValueError, match="a direction is rigid"):
        ArmCompliance(ssrms(), "tip", BOOMS[:1]).stiffness(Q)


def spring(k_b, k_t, axis):
    return k_b * (np.eye(3) - np.outer(axis, axis)) + k_t * np.outer(axis, axis)


@pytest.mark.parametrize("seed", range(4))
def test_against_finite_elements(seed):
    """Two booms of three elements each with EA, rigid parts between them, springs at the base and in the wrist."""
    rng = np.random.default_rng(seed)
    tree, q = ssrms(), rng.uniform(-1.5, 1.5, size=7)
    E, A, k = 70e9, 4e-3, (8e6, 5e6, 3e6, 2e6)
    section = Section(E=E, G=GJ / 5e-5, A=A, Iy=EI / E, Iz=EI / E, J=5e-5, density=0.0)
    arm = ArmCompliance(tree, "tip", [
        lumped("roll", (-1.3589, 0, 0), (-1.3589, 0, 0), k[0], k[1], axis=(1, 0, 0)),
        beam("pitch", (0, 0, 0), (7.11, 0, 0), EI, GJ, E * A), beam("elbow", (0, 0, 0), (7.11, 0, 0), EI, GJ, E * A),
        lumped("wrist_pitch", (0, 0, 0), (0, -0.5692, 0), k[2], k[3])])

    R, p = {}, {}
    for name in ("roll", "pitch", "elbow", "wrist_pitch", "tip"):
        R[name], p[name] = tree.pose(q, name)
    root = p["roll"] - R["roll"] @ [1.3589, 0, 0]
    boom = np.linspace(0.0, 7.11, 4)[:, None] * np.eye(3)[0]
    nodes = np.vstack([p["pitch"] + boom @ R["pitch"].T, p["elbow"] + boom @ R["elbow"].T, p["wrist_pitch"]])
    frame = Frame(nodes)
    for first in (0, 1, 2, 4, 5, 6):
        frame.beam(first, first + 1, section, up=rng.normal(size=3))
    base, elbow, wrist = frame.tie([0], root), frame.tie([3, 4], p["elbow"]), frame.tie([8], p["wrist_pitch"])
    assert elbow == 1
    K = frame.stiffness().toarray()
    at, left, right = frame.interface(base), frame.node_dofs(7), frame.interface(wrist)
    # the root spring turns with the first link at zero load; here it stands on the link's own axis
    K[np.ix_(at[3:], at[3:])] += spring(k[0], k[1], R["roll"][:, 0])
    turn = spring(k[2], k[3], R["wrist_pitch"][:, 1])
    K[np.ix_(left[3:], left[3:])] += turn
    K[np.ix_(right[3:], right[3:])] += turn
    K[np.ix_(left[3:], right[3:])] -= turn
    K[np.ix_(right[3:], left[3:])] -= turn
    # the root does not move, the wrist's two sides move together
    T = np.eye(len(K))
    T[right[:3], left[:3]] = 1.0
    keep = np.setdiff1d(np.arange(len(K)), np.concatenate([at[:3], right[:3]]))
    T = T[:, keep]
    lever = p["tip"] - p["wrist_pitch"]
    B = np.zeros((len(K), 6))           # displacement of E, axes of E, from that of the wrist
    B[right[:3], :3] = R["tip"]
    B[right[3:], :3] = np.cross(lever, R["tip"].T).T
    B[right[3:], 3:] = R["tip"]
    expected = (T.T @ B).T @ np.linalg.solve(T.T @ K @ T, T.T @ B)
    C = arm.compliance(q)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((C - expected) / scale).max() < 1e-6


def test_closed_forms():
    """One straight cantilever; the printed torsion and lumped terms lack or have a length too many."""
    tree = Tree([Body("link", mass=1.0, inertia=np.eye(3))], gravity=(0, 0, 0))
    L, EA = 3.0, 5e7
    C = ArmCompliance(tree, "link", [beam("link", (-L, 0, 0), (0, 0, 0), EI, GJ, EA)]).compliance([0.4])
    expected = np.diag([L / EA, L**3 / (3 * EI), L**3 / (3 * EI), L / GJ, L / EI, L / EI])
    expected[1, 5] = expected[5, 1] = L**2 / (2 * EI)
    expected[2, 4] = expected[4, 2] = -(L**2) / (2 * EI)
    np.testing.assert_allclose(C, expected, rtol=1e-14, atol=1e-22)
    C = ArmCompliance(tree, "link", [lumped("link", (-L, 0, 0), (0, 0, 0), 2e5, 1e5)]).compliance([0.0])
    expected = np.diag([0.0, L**2 / 2e5, L**2 / 2e5, 1e-5, 5e-6, 5e-6])
    expected[1, 5] = expected[5, 1] = L / 2e5
    expected[2, 4] = expected[4, 2] = -L / 2e5
    np.testing.assert_allclose(C, expected, rtol=1e-14, atol=1e-22)


def test_a_beam_in_parts_is_the_beam():
    tree, parts = ssrms(), np.array([0.0, 1.3, 4.0, 7.11])
    split = [beam("pitch", (a, 0, 0), (b, 0, 0), EI, GJ) for a, b in zip(parts, parts[1:], strict=False)]
    one, many = (ArmCompliance(tree, "tip", s).compliance(Q) for s in (BOOMS, [*split, BOOMS[1]]))
    np.testing.assert_allclose(many, one, rtol=0.0, atol=1e-14 * np.abs(one).max())


def test_locked_joint_is_rank_one_along_its_jacobian():
    tree = ssrms()
    C = ArmCompliance(tree, "tip", [hinge("elbow", (0, 0, 0), (0, 1, 0), 1.1e6)]).compliance(Q)
    R = tree.pose(Q, "tip")[0]
    a = np.kron(np.eye(2), R.T) @ tree.jacobian(Q, "tip")[:, 3]
    np.testing.assert_allclose(C, np.outer(a, a) / 1.1e6, atol=1e-12 * np.abs(C).max())


def test_errors_name_value_and_unit():
    with pytest.raises(ValueError, match=r"pitch: EI: 0.0 N.m2"):
        beam("pitch", (0, 0, 0), (1, 0, 0), 0.0, GJ)
    with pytest.raises(ValueError, match="segment of 0.0 m has no direction"):
        lumped("pitch", (0, 0, 0), (0, 0, 0), 1.0, 1.0)
    with pytest.raises(ValueError, match="axis .* is not along"):
        lumped("pitch", (0, 0, 0), (1, 0, 0), 1.0, 1.0, axis=(0, 1, 0))
    with pytest.raises(ValueError, match="segments: 0, limits 1...32"):
        ArmCompliance(ssrms(), "tip", [])
    with pytest.raises(ValueError, match="unknown frame"):
        ArmCompliance(ssrms(), "nose", BOOMS)


# ---- payload -----------------------------------------------------------------------------------------------------------------------------

MASS, INERTIA = 8015.0, np.diag([5532.85, 26811.43, 26811.43])
# the grapple fixture (origin of E) is at (-1.5, 1.2, 0) from the payload's centre of mass
P_EP = np.array([1.5, -1.2, 0.0])


def payload():
    return ArmCompliance(ssrms(), "tip", BOOMS).stiffness(Q), payload_mass_matrix(MASS, INERTIA, P_EP, np.eye(3))


def test_golden_frequencies():
    w, modes = payload_modes(*payload())
    np.testing.assert_allclose(w / (2 * np.pi), [0.069995, 0.090476, 0.445821, 0.535423, 1.487368, 2.217019], rtol=1e-5)
    K, M = payload()
    dense = np.sort(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real))
    np.testing.assert_allclose(w, dense, rtol=1e-6)


def test_mass_matrix_is_the_kinetic_energy():
    rng = np.random.default_rng(1)
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    M = payload_mass_matrix(MASS, INERTIA, P_EP, q)
    v, w = rng.normal(size=3), rng.normal(size=3)
    at_com = v + np.cross(w, P_EP)
    energy = 0.5 * MASS * at_com @ at_com + 0.5 * w @ q @ INERTIA @ q.T @ w
    assert 0.5 * np.concatenate([v, w]) @ M @ np.concatenate([v, w]) == pytest.approx(energy, rel=1e-13)


@pytest.mark.parametrize("delta", [0.1, 2.0])
def test_every_mode_decays_with_its_decrement(delta):
    """Peaks counted on an integrated free vibration of each mode; the printed sqrt(4 pi^2 + 1) misses at 2 by 3.6 %."""
    K, M = payload()
    C = damping_matrix(K, M, delta)
    assert np.linalg.eigvalsh(C).min() > 0.0
    w, modes = payload_modes(K, M)
    for k in range(6):
        zeta = delta / np.sqrt(4 * np.pi**2 + delta**2)
        period = 2 * np.pi / (w[k] * np.sqrt(1 - zeta**2))
        A = np.block([[np.zeros((6, 6)), np.eye(6)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
        start = np.concatenate([modes[:, k], np.zeros(6)])
        amplitude = modes[:, k] @ M

        def still(t, y, amplitude=amplitude):
            return amplitude @ y[6:]

        run = solve_ivp(lambda t, y, A=A: A @ y, (0.0, 2.2 * period), start, method="DOP853", rtol=1e-11, atol=1e-13, events=still)
        turns = [amplitude @ y[:6] for t, y in zip(run.t_events[0], run.y_events[0], strict=True) if t > 0.1 * period]
        peaks = [x for x in turns if x > 0.0]
        assert np.log(peaks[0] / peaks[1]) == pytest.approx(delta, rel=1e-6)


def test_payload_errors():
    with pytest.raises(ValueError, match="mass_kg: 0.0 kg"):
        payload_mass_matrix(0.0, INERTIA, P_EP, np.eye(3))
    with pytest.raises(ValueError, match="inertia: .* positive definite"):
        payload_mass_matrix(1.0, -INERTIA, P_EP, np.eye(3))
    with pytest.raises(ValueError, match="decrement: "):
        damping_matrix(*payload(), -0.1)


# ---- dynamics of the arm -----------------------------------------------------------------------------------------------------------------


def test_arm_tree_with_reflected_inertia_against_dense_mass_matrix():
    """Random poses, rates, joint torques and a wrench at the tip: forward dynamics against Pinocchio's dense mass matrix plus i^2 J."""
    tree, rotor = ssrms(rotor=1e-4), 1842.0**2 * 1e-4
    model = pin.Model()
    for k, (name, axis, offset, mass, inertia, com) in enumerate(SSRMS):
        place = pin.SE3(np.eye(3), np.array(offset, dtype=float))
        joint = model.addJoint(k, pin.JointModelRevoluteUnaligned(np.array(axis, dtype=float)), place, name)
        model.appendBodyToJoint(joint, pin.Inertia(mass, np.array(com, dtype=float), np.diag(inertia)), pin.SE3.Identity())
    model.gravity.linear[:] = 0.0
    data, rng = model.createData(), np.random.default_rng(2)
    for _ in range(100):
        q, v, tau = rng.uniform(-3, 3, 7), 0.1 * rng.normal(size=7), 500.0 * rng.normal(size=7)
        H = pin.crba(model, data, q)
        H = np.triu(H) + np.triu(H, 1).T + rotor * np.eye(7)
        wrench = 100.0 * rng.normal(size=6)                   # at the tip, axes and origin of the last link
        f = np.zeros((tree.n_bodies, 6))
        f[6] = wrench
        J = pin.computeJointJacobian(model, data, q, 7)
        expected = np.linalg.solve(H, tau + J.T @ wrench - pin.nonLinearEffects(model, data, q, v))
        a = tree.forward_dynamics(q, v, tau, f)
        assert np.abs(a - expected).max() < 1e-12 * max(1.0, np.abs(expected).max())
