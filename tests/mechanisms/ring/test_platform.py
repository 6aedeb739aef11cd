"""Ring on six legs: golden case, closed forms, momentum balance, differential screws. Printed formulas that are wrong are told apart."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.ring.platform import RingPlatform, leg_axes


def dcm(psi, theta, phi):
    """R_0N of yaw about Y, then pitch about Z, then roll about X."""
    return Rotation.from_euler("YZX", [psi, theta, phi]).as_matrix()


def golden_geometry():
    base, ring = [], []
    for k in range(6):
        a = np.radians(120 * (k // 2) + (-10 if k % 2 == 0 else 10))
        b = np.radians(120 * (k // 2) + (-50 if k % 2 == 0 else 50))
        base.append([0, np.cos(a), np.sin(a)])
        ring.append([0, 0.7 * np.cos(b), 0.7 * np.sin(b)])
    return np.array(base), np.array(ring)


BODY2 = (2.0, [0.3, 0, 0], np.diag([0.004, 0.24 - 2.0 * 0.09, 0.24 - 2.0 * 0.09]))
BODY3 = (1.5, [-0.25, 0, 0], np.diag([0.002, 0.125 - 1.5 * 0.0625, 0.125 - 1.5 * 0.0625]))
RING_POSITION = np.array([1.1, 0.03, -0.05])
RING_ROTATION = dcm(0.08, -0.05, 0.10)


def legs_of(kind, **extra):
    base, ring = golden_geometry()
    tables = []
    for k in range(6):
        axes = leg_axes(base[k], [1.1, 0, 0] + ring[k])
        tangent = np.cross([1.0, 0, 0], ring[k] / np.linalg.norm(ring[k]))
        table = dict(kind=kind, p_0J=base[k], R_0J=axes, p_NQ=ring[k], **extra)
        # ring-side axis of the universal joint: near the z axis of the nominal leg
        e = axes[:, 2] + 0.2 * tangent
        table["e_N"] = e / np.linalg.norm(e)
        if kind in ("UPS", "UCU"):
            table["links"] = [0, 1, 0] if kind == "UPS" else [0, 1, 0, 0]
            table["bodies"] = [None, BODY2, BODY3] if kind == "UPS" else [None, BODY2, None, BODY3]
        elif kind == "SPU":
            table["links"], table["bodies"] = [0, 0, 1, 0], [None, None, BODY2, BODY3]
        else:
            # crank of 0.5 m across, link to the ring
            table["R_0J"] = np.column_stack([axes[:, 2], axes[:, 0], axes[:, 1]])
            links = [0.5, 0, 1.2] if kind == "RUS" else [0.5, 0, 0, 1.2]
            crank = (1.2, [0.2, 0.01, 0], np.diag([0.01, 0.05, 0.06]))
            rod = (0.9, [0.5, 0, 0.02], np.diag([0.002, 0.1, 0.11]))
            table["links"] = links
            table["bodies"] = [crank, None, rod] if kind == "RUS" else [crank, None, None, rod]
            table["R_LU"] = Rotation.from_euler("zyx", [0.2, -0.3, 0.1]).as_matrix()
        tables.append(table)
    return tables


def platform(kind="UPS", **extra):
    return RingPlatform(legs_of(kind, **extra), 7.0, np.diag([0.9, 0.6, 0.7]))


def state(kind="UPS", seed=0):
    rng = np.random.default_rng(seed)
    p = RING_POSITION + rng.normal(scale=0.02, size=3)
    R = RING_ROTATION @ Rotation.from_rotvec(rng.normal(scale=0.03, size=3)).as_matrix()
    return p, R, rng.normal(scale=0.3, size=3), rng.normal(scale=0.4, size=3)


def test_golden_case_g1():
    legs = platform()
    v, w = np.array([0.2, -0.1, 0.3]), RING_ROTATION @ [0.1, -0.2, 0.15]
    F = np.concatenate([[10, -5, 3], RING_ROTATION @ [1, -2, 0.5]])
    out = legs.evaluate(RING_POSITION, RING_ROTATION, v, w, F, [[0, 0, 20.0 + 5 * k] for k in range(6)])
    L = [1.2325000402, 1.3407431808, 1.3217942382, 1.3129214665, 1.1771200707, 1.2874654601]
    np.testing.assert_allclose([p[2] + 1 for p in out["p"]], L, atol=1e-10)
    np.testing.assert_allclose(out["p"][0], [-0.0024102801, 0.0554455292, 0.2325000402], atol=1e-10)
    np.testing.assert_allclose(out["p_rate"][0], [-0.3267215090, -0.0511643141, 0.1335964196], atol=1e-10)
    np.testing.assert_allclose(out["p_accel"][0], [-4.7023600160, 3.9746170413, 8.5371236336], atol=1e-9)
    # the digest resolves the angular half in ring axes
    to_ring = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), RING_ROTATION.T]])
    np.testing.assert_allclose(np.diag(to_ring @ out["A"] @ to_ring.T),
                               [15.4385225208, 14.0944677849, 14.1097885472, 4.5122948317, 2.6622917041, 2.7690672702], atol=1e-9)
    np.testing.assert_allclose(to_ring @ out["b"],
                               [177.0690640556, 12.4864839350, 3.2742546130, 12.6039006426, -6.6392731859, 11.9949721493], atol=1e-9)
    np.testing.assert_allclose(to_ring @ out["u_dot"],
                               [11.4693418162, 0.8418692872, 0.2701855523, 2.7053678227, -2.5434485385, 4.3881839899], atol=1e-9)
    np.testing.assert_allclose(out["reaction"][0][:3], [-2.3856321505, 8.6976054898, 6.9070909453], atol=1e-9)
    want = [-176.5746404612, -19.0101753749, -1.7110730919, -16.1639839219, 15.3144998584, -25.2103009245]
    np.testing.assert_allclose(out["base_wrench"], want, atol=1e-9)
    # the printed base wrench, without the ring's reaction on the last link, is elsewhere
    assert abs(out["base_wrench"][0] - -196.64) > 20


KINDS = ["UPS", "UCU", "SPU", "RUS", "RSU"]
ORDER = {"UPS": "yzP", "UCU": "yzPx", "SPU": "yzxP", "RUS": "zzy", "RSU": "zzyx"}


def chain(table, p, rate, accel, base):
    """Slow twin: one leg with plain recursions. base = (w, alpha, a). Returns cut point, its acceleration, last frame, w, eps, bodies."""
    w, eps, a = (np.array(x, dtype=float) for x in base)
    x, R = np.zeros(3), np.eye(3)

    def move(r):
        nonlocal x, a
        x = x + r
        a = a + np.cross(eps, r) + np.cross(w, np.cross(w, r))

    move(np.asarray(table["p_0J"], dtype=float))
    R = np.asarray(table["R_0J"]).copy()
    bodies = []
    for j, joint in enumerate(ORDER[table["kind"]]):
        if j == 1 and table["kind"] in ("RUS", "RSU"):
            R = R @ table["R_LU"]
        axis = R[:, "xyz".index("x" if joint == "P" else joint)]
        if joint == "P":
            move(axis * p[j])
            a = a + 2 * np.cross(w, axis) * rate[j] + axis * accel[j]
        else:
            R = R @ Rotation.from_rotvec(np.eye(3)["xyz".index(joint)] * p[j]).as_matrix()
            eps = eps + axis * accel[j] + np.cross(w, axis) * rate[j]
            w = w + axis * rate[j]
        if table["bodies"][j] is not None:
            mass, centre, inertia = table["bodies"][j]
            keep = x, a
            move(R @ centre)
            J = R @ inertia @ R.T
            bodies.append((mass, x, a, J @ eps + np.cross(w, J @ w)))
            x, a = keep
        move(R @ np.array([np.atleast_1d(table["links"][j])[0], 0, 0]))
    return x, a, R, w, eps, bodies


@pytest.mark.parametrize("kind", KINDS)
def test_closed_forms_return_the_cut_point(kind):
    legs, tables = platform(kind), legs_of(kind)
    for seed in range(50):
        p_0N, R_0N, _, _ = state(kind, seed)
        p, cuts = legs.place(p_0N, R_0N)
        for k, table in enumerate(tables):
            want = p_0N + R_0N @ table["p_NQ"]
            x, _, R, *_ = chain(table, p[k], np.zeros(4), np.zeros(4), (np.zeros(3),) * 3)
            assert np.max(np.abs(x - want)) < 1e-13
            assert np.max(np.abs(cuts[k] - want)) < 1e-13
            if len(p[k]) == 4:
                # universal joint at the ring: the link's y axis is square to the ring's axis
                assert abs(R[:, 1] @ R_0N @ table["e_N"]) < 1e-13


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("moving_base", [False, True])
def test_base_wrench_is_external_wrench_less_rate_of_momentum(kind, moving_base):
    """And the accelerations satisfy the closure: cut point and, for universal joints, the axes."""
    extra = dict(lead=0.02, hand=-1.0, nut_inertia=3e-4) if kind in ("UPS", "UCU", "SPU") else {}
    legs, tables = platform(kind, **extra), legs_of(kind, **extra)
    for seed in range(8):
        rng = np.random.default_rng(100 + seed)
        p_0N, R_0N, v, w = state(kind, seed)
        F = rng.normal(scale=30.0, size=6)
        n = len(ORDER[kind])
        forces = rng.normal(scale=20.0, size=(6, n))
        base = tuple(rng.normal(scale=s, size=3) for s in (0.4, 0.8, 1.5)) if moving_base else (np.zeros(3),) * 3
        out = legs.evaluate(p_0N, R_0N, v, w, F, forces, *base)
        a_N, alpha_N = out["u_dot"][:3], out["u_dot"][3:]
        w0, alpha0, a0 = base
        # absolute motion of the ring
        absolute = a0 + np.cross(alpha0, p_0N) + np.cross(w0, np.cross(w0, p_0N)) + 2 * np.cross(w0, v) + a_N
        spin, spin_rate = w + w0, alpha_N + alpha0 + np.cross(w0, w)
        J = R_0N @ np.diag([0.9, 0.6, 0.7]) @ R_0N.T
        linear = 7.0 * absolute
        rate = np.concatenate([linear, np.cross(p_0N, linear) + J @ spin_rate + np.cross(spin, J @ spin)])
        for k, table in enumerate(tables):
            x, a, R, w_n, eps_n, bodies = chain(table, out["p"][k], out["p_rate"][k], out["p_accel"][k], base)
            l = R_0N @ table["p_NQ"]
            want = absolute + np.cross(spin_rate, l) + np.cross(spin, np.cross(spin, l))
            assert np.max(np.abs(a - want)) < 1e-10 * max(1.0, np.max(np.abs(want)))
            if n == 4:
                # second derivative of e1 . e2 = 0
                e1, e2 = R[:, 1], R_0N @ table["e_N"]
                v1, v2 = np.cross(w_n, e1), np.cross(spin, e2)
                a1 = np.cross(eps_n, e1) + np.cross(w_n, v1)
                a2 = np.cross(spin_rate, e2) + np.cross(spin, v2)
                assert abs(a1 @ e2 + 2 * v1 @ v2 + e1 @ a2) < 1e-10
            for mass, centre, accel, torque in bodies:
                rate += np.concatenate([mass * accel, np.cross(centre, mass * accel) + torque])
        external = np.concatenate([F[:3], F[3:] + np.cross(p_0N, F[:3])])
        want = external - rate
        assert np.max(np.abs(out["base_wrench"] - want)) < 1e-11 * np.max(np.abs(rate))


def test_momentum_twin_agrees_with_its_rate():
    """Momentum by the velocity recursion, differenced along the motion, against external wrench less base wrench (base at rest)."""
    legs = platform("UCU")
    p, R, v, w = state("UCU", 3)
    F, forces = np.array([5.0, -8, 3, 1, 2, -1]), np.tile([0, 0, 40.0, 0.3], (6, 1))
    out = legs.evaluate(p, R, v, w, F, forces)
    h = 1e-5

    def at(t):
        moved = Rotation.from_rotvec(t * w + 0.5 * t * t * out["u_dot"][3:]).as_matrix() @ R
        return legs.momentum(p + t * v + 0.5 * t * t * out["u_dot"][:3], moved, v + t * out["u_dot"][:3], w + t * out["u_dot"][3:])

    rate = (at(h) - at(-h)) / (2 * h)
    external = np.concatenate([F[:3], F[3:] + np.cross(p, F[:3])])
    np.testing.assert_allclose(out["base_wrench"], external - rate, atol=2e-6 * np.max(np.abs(rate)))


@pytest.mark.parametrize("kind", KINDS)
def test_power_balance(kind):
    """d(kinetic energy)/dt = external power + joint power, with the kinetic energy u' A* u / 2 (H is the same at a shifted time)."""
    legs = platform(kind)
    p, R, v, w = state(kind, 5)
    rng = np.random.default_rng(1)
    F, forces = rng.normal(scale=30.0, size=6), rng.normal(scale=20.0, size=(6, len(ORDER[kind])))
    out = legs.evaluate(p, R, v, w, F, forces)
    u = np.concatenate([v, w])
    h = 1e-5

    def kinetic(t):
        moved = Rotation.from_rotvec(t * w + 0.5 * t * t * out["u_dot"][3:]).as_matrix() @ R
        ut = u + t * out["u_dot"]
        A = legs.evaluate(p + t * v + 0.5 * t * t * out["u_dot"][:3], moved, ut[:3], ut[3:], F, forces)["A"]
        return 0.5 * ut @ A @ ut

    power = F @ u + sum(f @ r for f, r in zip(forces, out["p_rate"], strict=True))
    assert (kinetic(h) - kinetic(-h)) / (2 * h) == pytest.approx(power, rel=1e-7)


@pytest.mark.parametrize("hand", [1.0, -1.0])
def test_differential_screw_adds_the_nut(hand):
    """T-08: A gains I_N H^T H, b gains H^T m_N, for both hands; equal to the second derivative of the nut's kinetic energy."""
    extra = dict(lead=0.03, hand=hand, nut_inertia=2e-4)
    with_nut, without = platform("UCU", **extra), platform("UCU")
    p, R, v, w = state("UCU", 7)
    i_N = 2 * np.pi / 0.03
    f_S = 300.0
    forces = np.tile([0, 0, f_S, hand * f_S / i_N], (6, 1))
    a = with_nut.evaluate(p, R, v, w, np.zeros(6), forces)
    b = without.evaluate(p, R, v, w, np.zeros(6), np.zeros((6, 4)))
    H = np.array([0, 0, hand * i_N, 1])
    for k in range(6):
        assert np.max(np.abs(a["leg_A"][k] - b["leg_A"][k] - 2e-4 * np.outer(H, H))) < 1e-13 * np.max(np.abs(a["leg_A"][k]))
        assert np.max(np.abs(a["leg_b"][k] - b["leg_b"][k] - H * hand * f_S / i_N)) < 1e-13 * f_S
        assert np.all(np.linalg.eigvalsh(a["leg_A"][k])[1:] > 0) and np.allclose(a["leg_A"][k], a["leg_A"][k].T, atol=0)
    # virtual work of the spring is f_S times the rate of the effective stroke p3 + s p4/i_N; the printed -1/i_N holds for s = -1 only
    rate = a["p_rate"][0]
    work = forces[0] @ rate
    assert work == pytest.approx(f_S * (rate[2] + hand * rate[3] / i_N), rel=1e-13)
    assert (abs(work - f_S * (rate[2] - rate[3] / i_N)) < 1e-12) == (hand == -1.0)


def test_opposite_hands_cancel_the_spin_torque_on_the_ring():
    """Equal spring forces, struts in the nominal pose: the roll torque of the nuts vanishes with alternating hands, not with equal ones."""
    def roll_acceleration(hands):
        tables = legs_of("UCU", lead=0.03, nut_inertia=0.0)
        for table, hand in zip(tables, hands, strict=True):
            table["hand"] = hand
            radial = table["p_NQ"] / np.linalg.norm(table["p_NQ"])
            e = np.cross(table["R_0J"][:, 0], np.cross([1.0, 0, 0], radial))   # mirror images within a pair
            table["e_N"] = e / np.linalg.norm(e) * np.sign(e @ table["R_0J"][:, 2])
        legs = RingPlatform(tables, 7.0, np.diag([0.9, 0.6, 0.7]))
        forces = [[0, 0, 100.0, hand * 100.0 * 0.03 / (2 * np.pi)] for hand in hands]
        out = legs.evaluate([1.1, 0, 0], np.eye(3), np.zeros(3), np.zeros(3), np.zeros(6), forces)
        return out["b"][3]

    assert abs(roll_acceleration([1, -1] * 3)) < 1e-12
    assert abs(roll_acceleration([1, 1] * 3)) > 1e-3


def test_frozen_spin_and_weightless_nut_is_the_plain_platform():
    """O-5: nut inertia zero and no torque on the spins: UCU with an axisymmetric rod on its axis moves the ring as UPS does."""
    rod = (1.5, [-0.25, 0, 0], np.diag([0.0, 0.03, 0.03]))
    tables = {kind: legs_of(kind) for kind in ("UPS", "UCU")}
    for table in tables["UPS"]:
        table["bodies"][2] = rod
    for table in tables["UCU"]:
        table["bodies"][3] = rod
    p, R, v, w = state("UPS", 9)
    F = np.array([10.0, 4, -7, 1, -2, 3])
    a = RingPlatform(tables["UPS"], 7.0, np.diag([0.9, 0.6, 0.7])).evaluate(p, R, v, w, F, np.tile([0, 0, 60.0], (6, 1)))
    b = RingPlatform(tables["UCU"], 7.0, np.diag([0.9, 0.6, 0.7])).evaluate(p, R, v, w, F, np.tile([0, 0, 60.0, 0], (6, 1)))
    np.testing.assert_allclose(a["u_dot"], b["u_dot"], rtol=1e-11)
    np.testing.assert_allclose(a["base_wrench"], b["base_wrench"], rtol=1e-10, atol=1e-9)


def test_pose_outside_the_workspace_and_wrong_tables_are_named():
    legs = platform("RUS")
    with pytest.raises(ValueError, match="leg 0: the pose is outside its workspace"):
        legs.place([3.0, 0, 0], np.eye(3))
    with pytest.raises(ValueError, match="leg 0: kind: 'UPU'"):
        RingPlatform([dict(kind="UPU")], 7.0, np.eye(3))
    with pytest.raises(ValueError, match="leg 0: hand"):
        platform("UCU", lead=0.01, hand=0.5)
    with pytest.raises(ValueError, match="ring_mass: 0 kg"):
        RingPlatform(legs_of("UPS"), 0, np.eye(3))
