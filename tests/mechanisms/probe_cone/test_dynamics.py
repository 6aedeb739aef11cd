"""Dynamics of the probe mechanism against Pinocchio: a tree with loop constraints, and the rate of its momentum."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import brentq

from rt_kernels.mechanisms.probe_cone.unit import ProbeCone, multibody_step

VALUES = {p.key: p.default for p in ProbeCone.PARAMETERS}
TINY = pin.Inertia.Zero()


def frame(x, hint):
    """Rotation whose first axis is along x."""
    x = x / np.linalg.norm(x)
    y = np.cross(hint, x)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


class Twin:
    """The mechanism as a Pinocchio tree with the rod ends of the four chains as point constraints."""

    def __init__(self, movable):
        v, self.movable = VALUES, movable
        m = self.model = pin.Model()
        m.gravity = pin.Motion.Zero()
        I3 = np.eye(3)

        def add(parent, joint, R=I3, p=(0, 0, 0), inertia=TINY, name=None):
            j = m.addJoint(parent, joint, pin.SE3(R, np.array(p, dtype=float)), name or f"j{m.njoints}")
            m.appendBodyToJoint(j, inertia, pin.SE3.Identity())
            return j

        def slender(mass, c, J):
            return pin.Inertia(mass, np.array([c, 0, 0]), np.diag([0.0, J, J]))

        root = add(0, pin.JointModelFreeFlyer())
        self.independent = [add(root, pin.JointModelRY())]
        Jx, Jt = v["body_inertia_kg_m2"]
        body = add(self.independent[0], pin.JointModelRZ(), inertia=pin.Inertia(
            v["body_mass_kg"], np.array([v["body_centre_x_m"], 0, 0]), np.diag([Jx, Jt, Jt])))
        self.independent.append(body)
        j = add(body, pin.JointModelRY(), p=(v["exit_x_m"], 0, 0))
        self.independent.append(j)
        for joint in (pin.JointModelRZ(), pin.JointModelRX()):
            j = add(j, joint)
            self.independent.append(j)
        Jx, Jt = v["probe_inertia_kg_m2"]
        j = add(j, pin.JointModelPX(), inertia=pin.Inertia(
            v["probe_mass_kg"], np.array([-v["probe_centre_m"], 0, 0]), np.diag([Jx, Jt, Jt])))
        self.independent.append(j)
        armature = {j: v["axial_inertia_kg_m2"] * (2 * np.pi / v["screw_lead_m"]) ** 2}
        if movable:
            Jx, Jt = v["limiter_inertia_kg_m2"]
            self.independent.append(add(body, pin.JointModelPX(), inertia=pin.Inertia(
                v["limiter_mass_kg"], np.array([v["limiter_centre_m"], 0, 0]), np.diag([Jx, Jt, Jt]))))
        self.ends, self.chains = [], []
        m1, s1, m2, d2, J = v["spring_link"]
        for a, b in zip(np.array(v["spring_base_m"]), np.array(v["spring_body_m"]), strict=True):
            g = frame(b - a, (0.3, 0.2, 1.0))
            j1 = add(root, pin.JointModelRY(), R=g, p=a)
            j2 = add(j1, pin.JointModelRZ(), inertia=slender(m1, s1, J))
            j3 = add(j2, pin.JointModelPX(), inertia=slender(m2, -d2, 0.0))
            self.ends.append((j3, b))
            self.chains.append(("spring", a, b, g, (j1, j2, j3)))
        I, mass, fraction, J = v["brake_link"]
        rows = zip(*(np.array(v[k]) for k in ("brake_base_m", "brake_tip_m", "brake_axis", "brake_body_m")), strict=True)
        for a, tip, n, b in rows:
            n = n / np.linalg.norm(n)
            arm, rod = tip - a, np.linalg.norm(b - tip)
            g = np.column_stack([arm / np.linalg.norm(arm), np.cross(n, arm / np.linalg.norm(arm)), n])
            crank = add(root, pin.JointModelRZ(), R=g, p=a, inertia=pin.Inertia(0.0, np.zeros(3), np.diag([0.0, 0.0, I])))
            h = frame(b - tip, (0.3, 0.2, 1.0))
            j1 = add(crank, pin.JointModelRY(), R=g.T @ h, p=(np.linalg.norm(arm), 0, 0))
            j2 = add(j1, pin.JointModelRZ(), inertia=slender(mass, fraction * rod, J))
            end = add(j2, pin.JointModelPX())                       # locked at the rod length: only carries the end point
            self.ends.append((end, b))
            self.chains.append(("brake", a, b, (g, h, n, np.linalg.norm(arm), rod), (crank, j1, j2, end)))
        self.body = body
        self.armature = np.zeros(m.nv)
        for j, value in armature.items():
            self.armature[m.joints[j].idx_v] = value
        self.data = m.createData()

    def columns(self, joints):
        return [self.model.joints[j].idx_v for j in joints]

    def configuration(self, q):
        m = self.model
        full = pin.neutral(m)
        for j, value in zip(self.independent, q, strict=False):
            full[m.joints[j].idx_q] = value
        pin.forwardKinematics(m, self.data, full)
        self.angles = []
        for kind, a, b, g, joints in self.chains:
            end = self.data.oMi[self.body] * b
            if kind == "spring":
                u = g.T @ (end - a)
                length = np.linalg.norm(u)
                values = np.arctan2(-u[2], u[0]), np.arcsin(u[1] / length), length
            else:
                G, h, n, arm, rod = g

                def tip(p, a=a, G=G, arm=arm):
                    return a + G @ np.array([arm * np.cos(p), arm * np.sin(p), 0.0])

                p = brentq(lambda p, tip=tip, end=end, rod=rod: np.linalg.norm(end - tip(p)) - rod, -0.8, 0.8, xtol=1e-15)
                c, s = np.cos(p), np.sin(p)
                turned = G @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ G.T @ h
                u = turned.T @ (end - tip(p)) / rod
                values = p, np.arctan2(-u[2], u[0]), np.arcsin(u[1]), rod
            self.angles.append(values)
            for j, value in zip(joints, values, strict=True):
                full[m.joints[j].idx_q] = value
        return full

    def solve(self, q, v, w0, Q):
        m, data = self.model, self.data
        full = self.configuration(q)
        locked = [0, 1, 2, 3, 4, 5] + [m.joints[c[4][3]].idx_v for c in self.chains if c[0] == "brake"]
        pin.computeJointJacobians(m, data, full)
        pin.forwardKinematics(m, data, full)

        def jacobian():
            rows = []
            for end, b in self.ends:
                Je = pin.getJointJacobian(m, data, end, pin.LOCAL_WORLD_ALIGNED)[:3]
                R = data.oMi[self.body].rotation
                Jb = pin.getJointJacobian(m, data, self.body, pin.LOCAL_WORLD_ALIGNED)
                rows.append(Je - (Jb[:3] - pin.skew(R @ b) @ Jb[3:]))
            return np.vstack(rows)

        J = jacobian()
        own = self.columns(self.independent)
        known = locked + own
        speed = np.zeros(m.nv)
        speed[3:6] = w0
        speed[own] = v[: len(own)]
        free = [i for i in range(m.nv) if i not in known]
        speed[free] = np.linalg.lstsq(J[:, free], -J[:, known] @ speed[known], rcond=None)[0]
        # constraint bias from accelerations at a = 0
        pin.forwardKinematics(m, data, full, speed, np.zeros(m.nv))
        gamma = []
        for end, b in self.ends:
            ae = pin.getClassicalAcceleration(m, data, end, pin.LOCAL_WORLD_ALIGNED).linear
            M = data.oMi[self.body]
            ab = pin.getClassicalAcceleration(m, data, self.body, pin.LOCAL_WORLD_ALIGNED)
            wb = pin.getVelocity(m, data, self.body, pin.LOCAL_WORLD_ALIGNED).angular
            r = M.rotation @ b
            gamma.append(ae - (ab.linear + np.cross(ab.angular, r) + np.cross(wb, np.cross(wb, r))))
        gamma = np.concatenate(gamma)
        M = pin.crba(m, data, full)
        M = np.triu(M) + np.triu(M, 1).T + np.diag(self.armature)
        nle = pin.nonLinearEffects(m, data, full, speed)
        tau = np.zeros(m.nv)
        tau[own] = Q[: len(own)]
        # locked coordinates have zero acceleration
        L = np.zeros((len(locked), m.nv))
        L[range(len(locked)), locked] = 1
        A = np.vstack([J, L])
        K = np.block([[M, A.T], [A, np.zeros((len(A), len(A)))]])
        # massless fictitious bodies leave zero rows that the constraints fix
        x = np.linalg.lstsq(K, np.concatenate([tau - nle, -gamma, np.zeros(len(locked))]), rcond=1e-14)[0]
        acc = x[: m.nv]
        return acc[own], full, speed


STATES = [
    # coordinates, rates, base rate
    ((0.0, 0.0, 0.0, 0.0, 0.0, 0.6, 0.08), (0.3, -0.2, 0.5, 0.4, 0.6, -0.1, 0.05), (0.0, 0.0, 0.0)),
    ((0.08, -0.05, 0.03, -0.02, 0.06, 0.52, 0.03), (0.3, -0.2, 0.5, 0.4, -0.6, -0.12, -0.2), (0.0, 0.0, 0.0)),
    ((-0.10, 0.07, -0.04, 0.05, -0.02, 0.45, -0.02), (0.5, 0.6, -0.4, 0.8, 0.3, 0.15, 0.1), (0.1, -0.3, 0.2)),
]


@pytest.mark.parametrize("movable", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_accelerations_and_base_wrench_against_pinocchio(state, movable):
    q, v, w0 = state
    if not movable:
        q, v = (*q[:6], 0.0), (*v[:6], 0.0)
    part = ProbeCone(limiter="movable" if movable else "fixed")
    twin = Twin(movable)
    rng = np.random.default_rng(3)
    Q = rng.normal(0, 50, 7) * (1, 1, 1, 1, 0.1, 5, 5)
    acc, wrench, M, _, chains = multibody_step(part, q, v, w0, Q)
    expected, full, speed = twin.solve(q, v, np.array(w0), Q)
    # closed-form chain coordinates and rates
    for i, (kind, _, _, _, joints) in enumerate(twin.chains):
        column = 2 if kind == "spring" else 0
        assert chains[i][0] == pytest.approx(twin.angles[i][column], abs=1e-12)
        assert chains[i][1] == pytest.approx(speed[twin.model.joints[joints[column]].idx_v], abs=1e-11)
    assert np.linalg.eigvalsh(M).min() > 0
    scale = np.abs(expected).max()
    assert acc == pytest.approx(expected, abs=1e-10 * scale)
    # T4: base wrench = external wrench (none here) less the rate of momentum
    rate = momentum_of(twin, full, speed, acc)
    assert wrench == pytest.approx(-rate, abs=1e-11 * np.abs(rate).max())


def momentum_of(twin, full, speed, acc):
    """Rate of momentum from Pinocchio for the kernel's own accelerations; dependent ones from the constraints."""
    m, data = twin.model, twin.data
    own = twin.columns(twin.independent)
    a = np.zeros(m.nv)
    a[own] = acc[: len(own)]
    locked = [m.joints[c[4][3]].idx_v for c in twin.chains if c[0] == "brake"]
    free = [i for i in range(6, m.nv) if i not in own and i not in locked]
    pin.computeJointJacobians(m, data, full)
    pin.forwardKinematics(m, data, full, speed, a)
    rows, rest = [], []
    for end, b in twin.ends:
        R = data.oMi[twin.body].rotation
        Je = pin.getJointJacobian(m, data, end, pin.LOCAL_WORLD_ALIGNED)[:3]
        ae = pin.getClassicalAcceleration(m, data, end, pin.LOCAL_WORLD_ALIGNED).linear
        ab = pin.getClassicalAcceleration(m, data, twin.body, pin.LOCAL_WORLD_ALIGNED)
        wb = pin.getVelocity(m, data, twin.body, pin.LOCAL_WORLD_ALIGNED).angular
        r = R @ b
        rows.append(Je[:, free])
        rest.append(ab.linear + np.cross(ab.angular, r) + np.cross(wb, np.cross(wb, r)) - ae)
    a[free] = np.linalg.lstsq(np.vstack(rows), np.concatenate(rest), rcond=None)[0]
    pin.computeCentroidalMomentumTimeVariation(m, data, full, speed, a)
    force = data.dhg.linear.copy()
    return np.concatenate([force, data.dhg.angular + np.cross(data.com[0], force)])


def test_external_wrench_passes_to_the_base():
    """Generalised forces of an external wrench on the probe: base wrench rises by the wrench less the change of momentum rate."""
    part = ProbeCone()
    q, v, w0 = STATES[1]
    q, v = (*q[:6], 0.0), (*v[:6], 0.0)
    W = np.array([100.0, -40.0, 30.0, 5.0, 20.0, -10.0])
    _, still, *_ = multibody_step(part, q, v, w0, np.zeros(7))
    _, loaded, *_ = multibody_step(part, q, v, w0, np.zeros(7), W)
    assert loaded - still == pytest.approx(W, abs=1e-12)


def test_E31_E34_printed_matrices_are_not_rotations():
    """The printed A_B2 has -s2 in element (1,2): not orthogonal; the kernel's probe axis is the first row of the right one."""
    q1, q2 = 0.3, 0.4
    s1, c1, s2, c2 = np.sin(q1), np.cos(q1), np.sin(q2), np.cos(q2)
    right = np.array([[c1 * c2, s2, -s1 * c2], [-c1 * s2, c2, s1 * s2], [s1, 0, c1]])
    printed = right.copy()
    printed[0, 1] = -s2
    assert right @ right.T == pytest.approx(np.eye(3), abs=1e-15)
    assert np.abs(printed @ printed.T - np.eye(3)).max() > 0.1
    part = ProbeCone()
    X = (-2.0, 0, 0, 0, 0, 0, 1.0)
    part.set_state((q1, q2, 0, 0, 0, 0.6, 0), np.zeros(7))
    _, rows = part.glide(X, np.zeros(6), 1e-9, 1)
    index = [a.name for a in part.AUX].index("probe.axis_x")
    assert rows[0, 13 + index : 16 + index] == pytest.approx(right[0], abs=1e-6)


def test_E35_head_velocity_contains_the_extension_rate():
    """Finite differences of the head centre along a path of all coordinates."""
    part = ProbeCone()
    names = [a.name for a in part.AUX]
    head, rate = names.index("probe.head_x"), names.index("probe.head_v_x")
    q = np.array([0.08, -0.05, 0.03, -0.02, 0.06, 0.52, 0.0])
    v = np.array([0.3, -0.2, 0.5, 0.4, -0.6, -0.12, 0.0])
    X, V = (-2.0, 0.1, 0.2, 0, 0, 0, 1.0), (0.1, 0.02, -0.03, 0.02, 0.05, -0.04)
    place = []
    for e in (-1e-6, 1e-6):
        part.set_state(q + e * v, v)
        angle = np.linalg.norm(V[3:])
        turn = np.array(V[3:]) / angle * np.sin(angle * e / 2)
        pose = np.concatenate([np.array(X[:3]) + e * np.array(V[:3]), turn, [np.cos(angle * e / 2)]])
        place.append(part.glide(pose, V, 1e-12, 1)[1][0, 13 + head : 16 + head])
    part.set_state(q, v)
    row = part.glide(X, V, 1e-12, 1)[1][0]
    assert row[13 + rate : 16 + rate] == pytest.approx((place[1] - place[0]) / 2e-6, abs=1e-8)
    # without the term L' x1 it would be off by the extension rate
    assert abs(v[5]) > 0.1
