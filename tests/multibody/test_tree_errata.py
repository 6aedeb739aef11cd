"""Errata of the seed texts that concern rigid trees: the corrected form agrees with the kernel, the printed one does not.

Each algorithm is written down here as in the text, in plain matrices, with the errata as switches: `printed` names those that are put back.
Ids as in the digest: E0 spatial operator algebra, E1 docking mechanisms (chapters 1 and 2). Of E1.17 the oblique plane is tested, with
its normal made a unit vector; the indices that are misprinted there concern no kernel.
"""

import numpy as np
import pytest

from rt_kernels.multibody import Body, Tree
from rt_kernels.offline.tree_loops import ClosedTree
from tests.multibody.tree_cases import random_body, relative
from tests.offline.test_tree_loops import golden_state, platform

WRONG = 1e-4  # a printed form misses by more than this, relative
RIGHT = 1e-11


def S(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def turn(axis, angle):
    """Components from the parent side to the child side (the texts' direction)."""
    K = S(axis / np.linalg.norm(axis))
    return (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K).T


def fixed_tree(seed, n=7, chain=0.5):
    """Revolute and prismatic joints on a fixed base, no gravity."""
    rng = np.random.default_rng(seed)
    bodies = []
    for i in range(n):
        parent = None if i == 0 else f"b{i - 1}" if rng.random() < chain else f"b{rng.integers(0, i)}"
        bodies.append(random_body(rng, i, parent, "prismatic" if i % 3 == 1 else "revolute", motors=False))
    return bodies, Tree(bodies, gravity=(0, 0, 0)), rng


# ---- docking mechanisms, chapter 2: articulated bodies, inverse dynamics --------------------------------------------------


class BodyAxes:
    """(2.1.1)-(2.1.8) on body axes, order [translation; rotation]."""

    def __init__(self, bodies, q, v, f_ext):
        self.n = len(bodies)
        self.parent = [next((k for k, p in enumerate(bodies) if p.name == b.parent), -1) for b in bodies]
        self.B, self.P, self.eta, self.M, self.s, self.beta, self.r, self.om, self.bias = [], [], [], [], [], [], [], [], []
        for b, qj, vj, fe in zip(bodies, q, v, f_ext, strict=True):
            j = len(self.B)
            axis = b.axis / np.linalg.norm(b.axis)
            prismatic = b.joint == "prismatic"
            beta = (np.eye(3) if prismatic else turn(axis, qj)) @ b.R_PJ.T
            r = b.p_PJ_P + (b.R_PJ @ axis * qj if prismatic else 0)
            om_p0 = self.om[self.parent[j]] if self.parent[j] >= 0 else np.zeros(3)
            om_p = beta @ om_p0
            v_rel, om_rel = (axis * vj, np.zeros(3)) if prismatic else (np.zeros(3), axis * vj)
            om = om_p + om_rel
            self.eta.append(np.concatenate([beta @ S(om_p0) @ S(om_p0) @ r + 2 * S(om_p) @ v_rel, S(om_p) @ om_rel]))
            self.P.append(np.concatenate([axis, np.zeros(3)] if prismatic else [np.zeros(3), axis]))
            self.B.append(np.block([[beta, beta @ S(r).T], [np.zeros((3, 3)), beta]]))
            inertia = b.inertia + b.mass * (b.com @ b.com * np.eye(3) - np.outer(b.com, b.com))
            self.M.append(np.block([[b.mass * np.eye(3), b.mass * S(b.com).T], [b.mass * S(b.com), inertia]]))
            self.s.append(np.concatenate([fe[:3] - b.mass * S(om) @ S(om) @ b.com, fe[3:] - S(om) @ inertia @ om]))
            for values, x in ((self.beta, beta), (self.r, r), (self.om, om)):
                values.append(x)

    def forward(self, g, printed=()):
        M, s = [m.copy() for m in self.M], [x.copy() for x in self.s]
        a_I, qdd, a = [0.0] * self.n, np.zeros(self.n), []
        for j in reversed(range(self.n)):
            P, B, eta, up = self.P[j], self.B[j], self.eta[j], self.parent[j]
            a_I[j] = P @ M[j] @ P
            N = M[j] - np.outer(M[j] @ P, P @ M[j]) / a_I[j]
            n = N @ eta + M[j] @ P * (g[j] + P @ s[j]) / a_I[j] - s[j]
            if up >= 0:
                M[up] += self.handed(j, N) if "E1.29" not in printed else self.handed(j, N, transposed=True)
                s[up] -= B.T @ n
        for j in range(self.n):
            a_p = a[self.parent[j]] if self.parent[j] >= 0 else np.zeros(6)
            star = self.B[j] @ a_p + self.eta[j]
            used = self.B[j] @ star if "E1.20" in printed else star
            qdd[j] = (self.P[j] @ (-M[j] @ used + s[j]) + g[j]) / a_I[j]
            a.append(star + self.P[j] * qdd[j])
        return qdd

    def handed(self, j, N, transposed=False):
        """B^T N B in blocks: dM_tr = N_1 + N_tr with N_1 = N_tt S(r)^T on the parent's axes (E1.29 prints N_1^T)."""
        beta, r = self.beta[j], self.r[j]
        tt, tr, rr = (beta.T @ N[a, b] @ beta for a, b in ((slice(3), slice(3)), (slice(3), slice(3, 6)), (slice(3, 6), slice(3, 6))))
        N1, N2 = tt @ S(r).T, tr.T @ S(r).T
        dtr = (N1.T if transposed else N1) + tr
        return np.block([[tt, dtr], [dtr.T, S(r) @ N1 + N2 + N2.T + rr]])

    def inverse(self, qdd, printed=()):
        """Section 2.2; E1.21 prints I_j a_j + s_j instead of M_j a_j - s_j."""
        a, f = [], []
        for j in range(self.n):
            a_p = a[self.parent[j]] if self.parent[j] >= 0 else np.zeros(6)
            a.append(self.B[j] @ a_p + self.P[j] * qdd[j] + self.eta[j])
            f.append(self.M[j] @ a[j] + (self.s[j] if "E1.21" in printed else -self.s[j]))
        out = np.zeros(self.n)
        for j in reversed(range(self.n)):
            out[j] = self.P[j] @ f[j]
            if self.parent[j] >= 0:
                f[self.parent[j]] += self.B[j].T @ f[j]
        return out

    def wrenches(self, qdd, g, printed=()):
        """(2.1.2), (2.1.3): wrench of the joint on body j, (n, 6): P_j g_j + P_c r_c, the reactions r_c from the balance of the body.
        E1.18 prints there the wrench on the body before: -P_j g_j + P_c P_c^T (f^I + f^S)."""
        a, inertial = [], []
        for j in range(self.n):
            a_p = a[self.parent[j]] if self.parent[j] >= 0 else np.zeros(6)
            a.append(self.B[j] @ a_p + self.P[j] * qdd[j] + self.eta[j])
            inertial.append(self.s[j] - self.M[j] @ a[j])
        out, after = np.zeros((self.n, 6)), np.zeros((self.n, 6))
        for j in reversed(range(self.n)):
            loads = inertial[j] + after[j]
            reactions = loads - self.P[j] * (self.P[j] @ loads)
            out[j] = -self.P[j] * g[j] + reactions if "E1.18" in printed else self.P[j] * g[j] - reactions
            if self.parent[j] >= 0:
                after[self.parent[j]] -= self.B[j].T @ out[j]
        return out

    def mass_matrix(self, printed=()):
        """Columns by unit accelerations of a chain (2.2.5); E1.22 starts the wrenches one body too late."""
        A = np.zeros((self.n, self.n))
        for j in range(self.n):
            a, f = {}, {}
            for i in range(j, self.n):
                a[i] = self.P[j] if i == j else self.B[i] @ a[i - 1]
                f[i] = self.M[i] @ a[i] if i == j or i > j + ("E1.22" in printed) else np.zeros(6)
            for i in reversed(range(j, self.n)):
                A[i, j] = A[j, i] = self.P[i] @ f[i]
                if i > j:
                    f[i - 1] = f[i - 1] + self.B[i].T @ f[i]
        return A


def body_axes_case(seed, chain=0.5):
    bodies, tree, rng = fixed_tree(seed, chain=chain)
    q, v, g = rng.normal(size=(3, tree.nv))
    f_ext = rng.normal(size=(tree.n_bodies, 6))
    return BodyAxes(bodies, q, v, f_ext), tree, (q, v, g, f_ext)


@pytest.mark.parametrize("printed", ["", "E1.20", "E1.29"])
def test_articulated_bodies(printed):
    text, tree, (q, v, g, f_ext) = body_axes_case(1)
    error = relative(text.forward(g, {printed}), tree.forward_dynamics(q, v, g, f_ext))
    assert error < RIGHT if not printed else error > WRONG


@pytest.mark.parametrize("printed", ["", "E1.21"])
def test_recursive_inverse_dynamics(printed):
    text, tree, (q, v, a, f_ext) = body_axes_case(2)
    error = relative(text.inverse(a, {printed}), tree.inverse_dynamics(q, v, a, f_ext))
    assert error < RIGHT if not printed else error > WRONG


@pytest.mark.parametrize("printed", ["", "E1.18"])
def test_wrenches_of_the_joints(printed):
    text, tree, (q, v, g, f_ext) = body_axes_case(9)
    a = tree.forward_dynamics(q, v, g, f_ext)
    error = relative(text.wrenches(a, g, {printed}), tree.joint_reactions(q, v, a, f_ext))
    assert error < RIGHT if not printed else error > WRONG


@pytest.mark.parametrize("printed", ["", "E1.22"])
def test_mass_matrix_by_columns(printed):
    text, tree, (q, *_) = body_axes_case(3, chain=1.0)
    error = relative(text.mass_matrix({printed}), tree.mass_matrix(q))
    assert error < RIGHT if not printed else error > WRONG


# ---- spatial operator algebra: free base, torques and accelerations known, inertial axes ----


def spatial_operators(bodies, q, v, tau, beta_dot, known, printed=()):
    """Order [rotation; translation]; joint 0 free. Returns joint accelerations and torques. E0.4: D of the body
    numbered k + 1; E0.7: the wrong shift of a force; E0.10: P a missing; E0.11: nu = D^-1 z; E0.12: no a_k."""
    n = len(bodies)
    parent = [next((k for k, p in enumerate(bodies) if p.name == b.parent), -1) for b in bodies]
    R, w, H, Phi, a, P, z = [], [], [], [], [], [], []
    for k, b in enumerate(bodies):
        if k == 0:
            x, y, zq, wq = q[3:7]
            half = np.array([x, y, zq])
            Rk = np.eye(3) + 2 * wq * S(half) + 2 * S(half) @ S(half)
            wk, arm = Rk @ v[3:6], np.zeros(3)
            Hk, ak = None, np.zeros(6)
        else:
            p, axis = parent[k], b.axis / np.linalg.norm(b.axis)
            prismatic = b.joint == "prismatic"
            Rk = R[p] @ b.R_PJ @ (np.eye(3) if prismatic else turn(axis, q[6 + k]).T)
            arm = R[p] @ (b.p_PJ_P + (b.R_PJ @ axis * q[6 + k] if prismatic else 0))
            e, rate = Rk @ axis, v[5 + k]
            Hk = np.concatenate([np.zeros(3), e] if prismatic else [e, np.zeros(3)])
            dw, dv = Hk[:3] * rate, Hk[3:] * rate
            wk = w[p] + dw
            ak = np.concatenate([np.cross(w[p], dw), np.cross(w[p], np.cross(w[p], arm)) + 2 * np.cross(w[p], dv)])
            if "E0.12" in printed:
                ak = np.zeros(6)
        R.append(Rk)
        w.append(wk)
        H.append(Hk)
        a.append(ak)
        Phi.append(np.block([[np.eye(3), np.zeros((3, 3))], [-S(arm), np.eye(3)]]))
        l = Rk @ b.com
        J = Rk @ (b.inertia + b.mass * (b.com @ b.com * np.eye(3) - np.outer(b.com, b.com))) @ Rk.T
        P.append(np.block([[J, b.mass * S(l)], [-b.mass * S(l), b.mass * np.eye(3)]]))
        z.append(np.concatenate([np.cross(wk, J @ wk), b.mass * np.cross(wk, np.cross(wk, l))]))
    D, G, nu = [0.0] * n, [None] * n, [0.0] * n
    for k in range(n - 1, 0, -1):
        p = parent[k]
        F = Phi[k].T if "E0.7" not in printed else np.linalg.inv(Phi[k])
        other = k + 1 if "E0.4" in printed and k + 1 < n else k
        D[k] = H[other] @ P[other] @ H[other]
        G[k] = P[k] @ H[k] / D[k]
        if known[5 + k]:
            inside = H[k] * beta_dot[5 + k] + (a[k] if "E0.10" not in printed else 0)
            P[p] = P[p] + F @ P[k] @ Phi[k]
            z[p] = z[p] + F @ (P[k] @ inside + z[k])
        else:
            left = np.eye(6) - np.outer(G[k], H[k])
            nu[k] = (H[k] @ z[k] if "E0.11" in printed else tau[5 + k] - H[k] @ z[k]) / D[k]
            P[p] = P[p] + F @ left @ P[k] @ Phi[k]
            z[p] = z[p] + F @ (left @ (P[k] @ a[k] + z[k]) + G[k] * tau[5 + k])
    V_dot = [-np.linalg.solve(P[0], z[0])]
    acc, torque = np.zeros(5 + n), np.zeros(5 + n)
    acc[:3], acc[3:6] = R[0].T @ V_dot[0][3:] - np.cross(v[3:6], v[:3]), R[0].T @ V_dot[0][:3]
    for k in range(1, n):
        reached = Phi[k] @ V_dot[parent[k]]
        acc[5 + k] = beta_dot[5 + k] if known[5 + k] else nu[k] - G[k] @ (reached + a[k])
        V_dot.append(reached + H[k] * acc[5 + k] + a[k])
        torque[5 + k] = H[k] @ (P[k] @ V_dot[k] + z[k]) if known[5 + k] else tau[5 + k]
    return acc, torque


@pytest.mark.parametrize("printed", ["", "E0.4", "E0.7", "E0.10", "E0.11", "E0.12"])
def test_spatial_operator_recursion(printed):
    rng = np.random.default_rng(4)
    bodies = [random_body(rng, 0, None, "free")]
    bodies += [random_body(rng, i, f"b{rng.integers(0, i)}", "prismatic" if i % 3 == 0 else "revolute", motors=False) for i in range(1, 7)]
    # the base's joint placement is taken out: the text's base has none
    bodies[0].R_PJ, bodies[0].p_PJ_P = np.eye(3), np.zeros(3)
    tree = Tree(bodies, gravity=(0, 0, 0))
    q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv), 1.0)
    v, tau, beta_dot = rng.normal(size=(3, tree.nv))
    tau[:6] = 0.0
    known = np.zeros(tree.nv, bool)
    known[[7, 9]] = True
    torque, acc = tree.hybrid_dynamics(q, v, np.where(known, 0, tau), np.where(known, beta_dot, 0), known)
    found = spatial_operators(bodies, q, v, tau, beta_dot, known, {printed})
    error = max(relative(found[0], acc), relative(found[1], torque))
    assert error < RIGHT if not printed else error > WRONG


# ---- docking mechanisms, chapter 1: one dependent chain, spherical cut --------------------------------------------------


def chain_sweep(legs, q, rates, ring, printed=()):
    """Section 1.3: H and h of a chain of one-axis joints with a spherical cut on the ring. `legs`: (kind, axis, g, l) per joint."""
    n = len(legs)
    tau, r_sum = np.eye(3), np.zeros(3)
    if "E1.2" in printed:
        tau = legs[0][2].copy()
    T, Rot, w, eps, om = np.zeros((3, n)), np.zeros((3, n)), np.zeros(3), np.zeros(3), np.zeros(3)
    for j, ((kind, axis, g, l), qj, vj) in enumerate(zip(legs, q, rates, strict=True)):
        th = g @ tau
        slide = axis * qj if kind == "P" else np.zeros(3)
        r, e0 = tau.T @ l + th.T @ slide, th.T @ axis
        Trel, Rrel = np.zeros((3, n)), np.zeros((3, n))
        (Trel if kind == "P" else Rrel)[:, j] = e0
        vrel, orel = Trel[:, j] * vj, Rrel[:, j] * vj
        T = T - S(tau.T @ l if "E1.7" in printed else r) @ Rot + Trel
        Rot = Rot + Rrel
        transport = (0 if "E1.8" in printed else S(eps)) + S(om) @ S(om)
        w = w + transport @ r + 2 * S(om) @ vrel
        eps, om = eps + S(om) @ orel, om + orel
        r_sum = r_sum + r
        tau = (turn(axis, qj) if kind == "R" else np.eye(3)) @ th
    tip = tau.T @ ring["tip"]
    T = T - S(tip) @ Rot
    w = w + ((0 if "E1.9" in printed else S(eps)) + S(om) @ S(om)) @ tip
    al, omega, l_N = ring["al"], ring["omega"], ring["l"]
    C_i = np.hstack([np.eye(3), al.T @ S(l_N).T])
    c = -w if "E1.6" in printed else al.T @ S(omega) @ S(omega) @ l_N - w
    H = np.linalg.solve(T, C_i)
    return H, np.linalg.solve(T, -c if "E1.5" in printed else c), r_sum + tip


@pytest.mark.parametrize("printed", ["", "E1.2", "E1.5", "E1.6", "E1.7", "E1.8", "E1.9"])
def test_loop_closure_by_separation_of_variables(printed):
    """A chain R R P with offsets and a tip, so that every term counts; the kernel's H and h come from its constrained accelerations."""
    rng = np.random.default_rng(5)
    frames = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(3)]
    frames = [f * np.linalg.det(f) for f in frames]
    kinds, axes, offsets = "RRP", np.eye(3)[[1, 2, 0]], rng.uniform(-0.5, 0.5, (3, 3))
    tip, head = np.array([0.4, 0.1, -0.2]), np.array([0.3, 0.2, -0.1])
    bodies = [Body("ring", None, "free", mass=3.0, inertia=np.eye(3))]
    for j, kind in enumerate(kinds):
        bodies.append(
            Body(
                f"b{j}",
                f"b{j - 1}" if j else None,
                "revolute" if kind == "R" else "prismatic",
                "",
                frames[j].T,
                offsets[j],
                axes[j],
                mass=1.0,
                inertia=np.eye(3),
            )
        )
    tree = Tree(bodies, gravity=(0, 0, 0))
    loops = ClosedTree(tree, [{"joint": "spherical", "bodies": ("b2", "ring"), "points": (tip, head)}], ["ring"])
    q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv), 0.7)
    R, p = tree.pose(q, "b2")
    ring_R, _ = tree.pose(q, "ring")
    q[:3] = p + R @ tip - ring_R @ head  # the ring is put where the chain ends
    v = loops.project(q, rng.normal(size=tree.nv))
    a, _ = loops.forward_dynamics(q, v, rng.normal(size=tree.nv))
    ring = {"al": ring_R.T, "omega": v[3:6], "l": head, "tip": tip}
    H, h, end = chain_sweep(list(zip(kinds, axes, frames, offsets, strict=True)), q[7:], v[6:], ring, {printed})
    u = np.concatenate([ring_R @ v[:3], v[3:6]])
    u_dot = np.concatenate([ring_R @ (a[:3] + np.cross(v[3:6], v[:3])), a[3:6]])
    error = max(relative(end, p + R @ tip), relative(H @ u, v[6:]), relative(H @ u_dot + h, a[6:]))
    assert error < 1e-10 if not printed else error > WRONG


# ---- wrench of a parallel mechanism on its base (sections 2.3 and 2.4) ---------------------------------------------------------------


def base_wrench_of_legs(tree, q, v, a, tau, reactions, printed=()):
    """Section 2.4 on the golden platform: each leg is swept from its cut to the base, the component along a joint's axis being replaced by
    its drive force. E1.27 prints a cut without reaction: f^S_n = 0."""
    alone = tree.joint_reactions(q, v, a)  # what the legs need for their motion without the cut
    total = np.zeros(6)
    for k in range(6):
        rod, leg = tree.joint_names.index(f"rod{k}"), tree.joint_names.index(f"leg{k}")
        (R_rod, p_rod), (R_leg, p_leg) = tree.pose(q, f"rod{k}"), tree.pose(q, f"leg{k}")
        F3, M3 = R_rod @ alone[rod, :3], R_rod @ alone[rod, 3:]
        arm = p_rod - p_leg
        F2, M2 = R_leg @ alone[leg, :3] - F3, R_leg @ alone[leg, 3:] - M3 - np.cross(arm, F3)
        if "E1.27" not in printed:
            F3 = F3 + reactions[k, :3]  # the ring pushes the rod by -reactions: less is needed of the joint
        along = R_rod[:, 0]
        F3 = F3 - along * (along @ F3) + along * tau[tree.coordinates(f"rod{k}")[1]][0]
        F, M = F2 + F3, M2 + M3 + np.cross(arm, F3)
        second = R_leg[:, 2]
        M = M - second * (second @ M)
        first = tree.bodies[leg].R_PJ @ [0, 1, 0]
        M = M - first * (first @ M)
        total -= [*F, *(M + np.cross(p_leg, F))]
    return total


@pytest.mark.parametrize("printed", ["", "E1.27"])
def test_base_wrench_of_the_platform(printed):
    tree, loops, _ = platform()
    q, v, tau, _ = golden_state(tree, loops)
    a, reactions = loops.forward_dynamics(q, v, tau)
    found = base_wrench_of_legs(tree, q, v, a, tau, reactions, {printed})
    expected = np.array([-176.5746404612, -19.0101753749, -1.7110730919, -16.1639839219, 15.3144998584, -25.2103009245])
    if printed:
        assert abs(found[0] + 196.64) < 0.01  # the digest's value of the printed form
    else:
        np.testing.assert_allclose(found, expected, atol=1e-8)


def gimballed_probe(rng):
    """A ring on a universal joint with a probe that slides in it, and four legs to the ring (universal, stroke, ball joint cut)."""
    inertia = np.diag([0.5, 0.6, 0.7])
    probe = [Body("ring", None, "universal", p_PJ_P=[0.4, 0.1, -0.2], axis=[0, 1, 0], axis2=[0, 0, 1], mass=6.0, com=[0.1, 0.02, 0],
                  inertia=inertia),
             Body("probe", "ring", "prismatic", p_PJ_P=[0.5, 0, 0], axis=[1, 0, 0], mass=3.0, com=[0.2, 0, 0.01],
                  inertia=inertia)]  # fmt: skip
    legs, cuts = [], []
    for k in range(4):
        around = np.array([0, np.cos(1.6 * k), np.sin(1.6 * k)])
        head = np.array([0.3, 0, 0]) + 0.3 * around
        axes = turn(rng.normal(size=3), 0.2).T
        legs += [Body(f"leg{k}", None, "universal", R_PJ=axes, p_PJ_P=0.8 * around - [0.3, 0, 0], axis=[0, 1, 0], axis2=[0, 0, 1], mass=1.5,
                      com=[0.3, 0, 0], inertia=0.1 * inertia),
                 Body(f"rod{k}", f"leg{k}", "prismatic", p_PJ_P=[0.6, 0, 0], axis=[1, 0, 0], mass=1.0, com=[-0.2, 0, 0],
                      inertia=0.1 * inertia)]  # fmt: skip
        cuts.append({"joint": "spherical", "bodies": (f"rod{k}", "ring"), "points": ((0, 0, 0), head)})
    return probe, legs, cuts


@pytest.mark.parametrize("printed", ["", "E1.31"])
def test_base_wrench_of_a_gimballed_probe(printed):
    """Section 2.5, end. The legs load the ring by a moment about the centre of its universal joint. The independent chain under this
    moment gives (2.5.7), which E1.31 takes for the load of the base; missing are what the legs hand to the base, and the sum of the
    heads' forces, which the universal joint hands on. Against the momentum balance of the whole mechanism: no load but the base's."""
    rng = np.random.default_rng(10)
    probe, legs, cuts = gimballed_probe(rng)
    tree, alone, feet = (Tree(b, gravity=(0, 0, 0)) for b in (probe + legs, probe, legs))
    loops = ClosedTree(tree, cuts, ["ring", "probe"])
    q = tree.neutral()
    q[:3] = [0.1, -0.15, 0.05]
    q = loops.close(q)
    v = loops.project(q, rng.normal(size=tree.nv))
    a, reactions = loops.forward_dynamics(q, v, rng.normal(size=tree.nv))
    # what the whole mechanism receives from the base is the rate of its momentum: a central difference along the motion
    step = 1e-4
    momenta = [tree.momentum(tree.integrate(q, v + 0.5 * t * a, t), v + t * a, about=np.zeros(3)) for t in (-step, step)]
    expected = (momenta[1] - momenta[0]) / (2 * step)
    R, centre = tree.pose(q, "ring")
    load, on_ring, on_legs = np.zeros((2, 6)), np.zeros(6), np.zeros((8, 6))
    for k, cut in enumerate(cuts):
        force = reactions[k, :3]
        load[0, 3:] += R.T @ np.cross(R @ cut["points"][1], force)
        on_ring += [*force, *np.cross(centre, force)]
        on_legs[2 * k + 1, :3] = tree.pose(q, f"rod{k}")[0].T @ -force
    found = alone.base_wrench(q[:3], v[:3], a[:3], load)
    if not printed:
        found = found - on_ring + feet.base_wrench(q[3:], v[3:], a[3:], on_legs)
    error = relative(found, expected)
    assert error < 1e-6 if not printed else error > 0.1


@pytest.mark.parametrize("printed", ["", "E1.25"])
def test_ring_on_a_moving_base(printed):
    """(2.3.1): the ring's generalised force with base rotation and acceleration; E1.25 prints it without transport terms. The base is a
    planar and spherical joint whose motion is given, the ring a free joint on it."""
    rng = np.random.default_rng(8)
    base = Body("base", None, "free", mass=1.0, inertia=np.eye(3))
    ring = Body("ring", "base", "free", mass=7.0, inertia=np.diag([0.9, 0.6, 0.7]))
    tree = Tree([base, ring], gravity=(0, 0, 0))
    q = tree.integrate(tree.neutral(), rng.normal(size=12), 1.0)
    v, tau, a = rng.normal(size=(3, 12))
    known = np.arange(12) < 6
    _, found = tree.hybrid_dynamics(q, v, tau, a, known)
    # quantities of the text: base frame 0, om_0, eps_0, w_0 on its axes; ring's velocity relative to it on axes 0, omega on ring axes
    om_0, eps_0, w_0 = v[3:6], a[3:6], a[:3] + np.cross(v[3:6], v[:3])
    (R_0, p_0), (R_N, p_N) = tree.pose(q, "base"), tree.pose(q, "ring")
    al, r_N = (R_0.T @ R_N).T, R_0.T @ (p_N - p_0)
    v_N, omega = al.T @ v[6:9], v[9:12]
    f_E, m_E, m, I = al.T @ tau[6:9], tau[9:12], 7.0, ring.inertia
    if printed:
        s_f, s_m = f_E, m_E - S(omega) @ I @ omega
    else:
        om_a = omega + al @ om_0
        s_f = f_E - m * (w_0 + S(eps_0) @ r_N + S(om_0) @ S(om_0) @ r_N + 2 * S(om_0) @ v_N)
        s_m = m_E - S(om_a) @ I @ om_a - I @ (al @ eps_0 - S(omega) @ al @ om_0)
    v_dot, omega_dot = s_f / m, np.linalg.solve(I, s_m)  # relative velocity's rate on axes 0; on ring axes
    expected = np.concatenate([al @ v_dot - np.cross(omega, v[6:9]), omega_dot])
    error = relative(expected, found[6:])
    assert error < RIGHT if not printed else error > WRONG


# ---- closed forms of leg coordinates (section 1.4) --------------------------------------------------


def ups_angles(r_S, printed=False):
    """p_1 about y, p_2 about z, so that the leg's x axis points along r_S. E1.14 prints ctg p_1 = -l/n and takes the positive cosine."""
    l, m, n = r_S
    rho, L = np.hypot(l, n), np.linalg.norm(r_S)
    if printed:
        if n == 0.0:
            raise ZeroDivisionError("ctg p_1 = -l/n")
        ctg = -l / n
        sine = np.sign(ctg) / np.sqrt(1 + ctg**2)
        cosine = np.sqrt(1 - sine**2)
    else:
        sine, cosine = -n / rho, l / rho
    return np.arctan2(sine, cosine), np.arctan2(m / L, rho / L)


def test_ups_closed_form():
    tree = Tree([Body("leg", None, "universal", axis=[0, 1, 0], axis2=[0, 0, 1], mass=1.0, inertia=np.eye(3))])
    rng = np.random.default_rng(6)
    for r_S in rng.normal(size=(100, 3)):
        R, _ = tree.pose(np.array(ups_angles(r_S)), "leg")
        np.testing.assert_allclose(R[:, 0] * np.linalg.norm(r_S), r_S, atol=1e-13)
    R, _ = tree.pose(np.array(ups_angles([-0.7, 0.2, 0.3], printed=True)), "leg")
    assert relative(R[:, 0] * np.linalg.norm([-0.7, 0.2, 0.3]), np.array([-0.7, 0.2, 0.3])) > WRONG  # beyond 90 degrees
    with pytest.raises(ZeroDivisionError):
        ups_angles([1.0, 0.1, 0.0], printed=True)  # the nominal pose of a leg
    assert ups_angles([1.0, 0.1, 0.0])[0] == 0.0


@pytest.mark.parametrize("printed", ["", "E1.15", "E1.16"])
def test_spin_of_a_leg_with_a_universal_head(printed):
    """tg p_3 = -psi(3,2)/psi(3,3) closes e_1 . e_2 = 0 (E1.16 prints psi(3,2)/psi(3,1)); cos = 1/sqrt(1 + tg^2) (E1.15 prints 1 + tg)."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        psi = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        tangent = psi[2, 1] / psi[2, 0] if printed == "E1.16" else -psi[2, 1] / psi[2, 2]
        cosine = 1 / np.sqrt(abs(1 + tangent)) if printed == "E1.15" else 1 / np.sqrt(1 + tangent**2)
        gap = abs(cosine * psi[2, 1] + tangent * cosine * psi[2, 2]) + abs(cosine**2 * (1 + tangent**2) - 1)
        if printed:
            if gap > WRONG:
                return
        else:
            assert gap < 1e-13
    assert not printed


def rus_angles(r, l12, l23, tilt, normal=None):
    """Section 1.4: hinge angle about z, then the two angles of the universal joint, its first axis tilted about the crank by `tilt`.

    r: ball joint from the hinge on the hinge's axes. `normal` puts E1.17 back: the second joint's angles are measured to the plane of
    the nominal pose, which stays with the base (here with a unit normal, the text has none)."""
    h, planar = r[2], np.hypot(r[0], r[1])
    f1 = np.arccos((l12**2 + planar**2 - (l23**2 - h**2)) / (2 * l12 * planar))
    p1 = f1 + np.arctan2(r[1], r[0])
    r12 = l12 * np.array([np.cos(p1), np.sin(p1), 0.0])
    if normal is not None:
        height = -normal @ r
        in_plane = r + height * normal
        l23_P = np.linalg.norm(in_plane - r12)
        cosine = -(l12**2 + l23_P**2 - in_plane @ in_plane) / (2 * l12 * l23_P)
        return np.array([p1, -np.arccos(cosine), np.arcsin(height / l23)])
    d = turn(np.array([1.0, 0, 0]), tilt) @ turn(np.array([0, 0, 1.0]), p1) @ (r - r12) / l23
    return np.array([p1, np.arctan2(d[1], d[0]), -np.arcsin(d[2])])


@pytest.mark.parametrize("printed", ["", "E1.17"])
def test_rus_closed_form(printed):
    """Crank and link of the digest's case: 0.25 and 0.40 m, plane of the nominal pose tilted by 31 degrees about the crank."""
    l12, l23, tilt, x, y, z = 0.25, 0.40, np.radians(31.0), *np.eye(3)
    R_LU = turn(x, tilt).T
    bodies = [Body("crank", axis=z, mass=1, inertia=np.eye(3)),
              Body("link", "crank", "universal", R_PJ=R_LU, p_PJ_P=[l12, 0, 0], axis=z, axis2=y, mass=1, inertia=np.eye(3))]  # fmt: skip
    tree = Tree(bodies)

    def end(q):
        R, p = tree.pose(q, "link")
        return p + R @ [l23, 0, 0]

    q = np.radians([100.0, -75.0, 0.0])
    nominal = end(q)
    normal = turn(z, q[0]).T @ R_LU @ z if printed else None
    for sign in (1.0, -1.0):  # in the nominal pose the printed form is exact
        np.testing.assert_allclose(rus_angles(nominal, l12, l23, tilt, normal) * [1, 1, sign], q, atol=1e-7)
    for move in ([0.05, 0, 0], [-0.05, 0.02, 0.02], [0, -0.03, 0.04]):
        found = rus_angles(nominal + move, l12, l23, tilt, normal)
        gaps = [np.linalg.norm(end(found * [1, 1, sign]) - nominal - move) for sign in (1.0, -1.0)]
        assert gaps[0] < 1e-13 if not printed else min(gaps) > WRONG


def planar_loop(p1, rate, acceleration, printed=()):
    """Secondary loop on a crank (section 1.3): angle and stroke of the strut to the crank's end, rates, accelerations.

    E1.12 prints p'' = H p1'' without the centripetal and Coriolis part h; E1.13 the velocity of the crank's end with S(l) for S(l)^T.
    """
    crank, foot = np.array([0.25, 0.04]), np.array([0.5, -0.2])
    s = np.array([[np.cos(p1), -np.sin(p1)], [np.sin(p1), np.cos(p1)]]) @ crank
    r = s - foot
    L = np.linalg.norm(r)
    e = r / L
    n, across = np.array([-e[1], e[0]]), np.array([-s[1], s[0]])
    if "E1.13" in printed:
        across = -across
    H = np.array([n @ across / L, e @ across])
    p, p_dot = np.array([np.arctan2(r[1], r[0]), L]), H * rate
    h = np.array([(-(rate**2) * (n @ s) - 2 * p_dot[1] * p_dot[0]) / L, -(rate**2) * (e @ s) + L * p_dot[0] ** 2])
    return p, p_dot, H * acceleration + (0 if "E1.12" in printed else h)


@pytest.mark.parametrize("printed", ["", "E1.12", "E1.13"])
def test_planar_secondary_loop(printed):
    """Against the strut of a tree that is put on the crank's end: positions by pose, rates and accelerations by differences in time."""
    rate, acceleration, step = 0.8, -0.5, 1e-4
    at = [planar_loop(0.3 + rate * t + 0.5 * acceleration * t * t, 0, 0)[0] for t in (-step, 0.0, step)]
    p, p_dot, p_ddot = planar_loop(0.3, rate, acceleration, {printed})
    z = [0.0, 0.0, 1.0]
    bodies = [Body("strut", axis=z, p_PJ_P=[0.5, -0.2, 0], mass=1, inertia=np.eye(3)),
              Body("end", "strut", "prismatic", axis=[1, 0, 0], mass=1, inertia=np.eye(3)),
              Body("crank", axis=z, mass=1, inertia=np.eye(3))]  # fmt: skip
    tree = Tree(bodies)
    q = np.array([*p, 0.3])
    R, _ = tree.pose(q, "crank")
    np.testing.assert_allclose(tree.pose(q, "end")[1], R @ [0.25, 0.04, 0.0], atol=1e-13)
    found = np.array([*p_dot, *p_ddot])
    expected = np.array([*(at[2] - at[0]) / (2 * step), *(at[2] - 2 * at[1] + at[0]) / step**2])
    error = np.abs(found - expected).max()
    assert error < 1e-6 if not printed else error > 1e-2
