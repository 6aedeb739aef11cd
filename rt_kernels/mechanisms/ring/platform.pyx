"""Dynamics of a docking ring on up to six legs (Gough-Stewart, Hunt), reduced to the six degrees of freedom of the ring.

Source: dissertation on docking dynamics, ch. 1 (1.3.4), (1.4) and ch. 2 (2.3.4), (2.4), corrected:

* the ring-side point has its own centripetal acceleration: p'' = C_d^-1 (C_i u' + c), c = w_N x (w_N x l) - w_n (printed c = w_n, sign +);
* the chain's acceleration contains eps x r, and moments of prismatic joints use the whole vector between joints;
* leg angles by square roots of sums, not by ctg p1, which divides by zero in the nominal pose; the spin of a link is about its x axis;
* the ring's reaction on the last link is part of the wrench on the base (printed: zero).

Frames: everything is resolved in the base frame 0 (on the active craft: A), X along the docking axis. Ring: pose X_0N, velocities relative
to the base u = [v_N; w_N], both in base axes. Joint coordinates p: angles [rad], strokes [m]; p' = H u, p'' = H u' + h.
Reduction: A* = M_R + sum H^T A_k H, b* = s_R + sum H^T (b_k - A_k h_k), A* u' = b*; A_k, b_k from Kane's sums over the bodies with mass.
A moving base enters with its absolute angular velocity, its derivative, and the acceleration of its origin (less gravity).

Wrench on the base, at O_0: sum over legs of the ring's reaction lambda on the leg, less the rate of momentum of the leg's bodies. It equals
the external wrench on the ring less the rate of momentum of the whole mechanism.

Leg kinds: UPS, SPU, UCU (struts), RUS, RSU (crank and link). A differential ball screw joins stroke p3 and spin p4 of a UCU leg:
p_N = s i_N p3 + p4 turns the nut, i_N = 2 pi/lead, s = +1 or -1 the hand: A += I_N H_N^T H_N, b += H_N^T m_N, H_N = [0, 0, s i_N, 1],
m_N = s f_S/i_N; the spring feels p3 + s p4/i_N. (The text mixes the two hands: its p3 - p4/i_N is right for s = -1 only.)
The axial part of the joint effort contains the nut's inertia torque: it comes out of lambda by itself.
"""

import numpy as np

from libc.string cimport memset

from rt_kernels.algebra cimport quat

KINDS = {"UPS": UPS, "UCU": UCU, "SPU": SPU, "RUS": RUS, "RSU": RSU}
# joints of each kind: axis letters, P for the stroke (along x)
_JOINTS = {"UPS": "yzP", "UCU": "yzPx", "SPU": "yzxP", "RUS": "zzy", "RSU": "zzyx"}
_SPIN = {"UPS": -1, "UCU": 3, "SPU": 2, "RUS": -1, "RSU": 3}


cdef void _copy(object values, double *out, int n) except *:
    cdef double[::1] a = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    cdef int i
    if a.shape[0] != n:
        raise ValueError(f"{n} numbers needed, {a.shape[0]} given")
    for i in range(n):
        if not (a[i] == a[i] and -1e300 < a[i] < 1e300):
            raise ValueError(f"number {i} is not finite: {a[i]}")
        out[i] = a[i]


def leg_axes(p_base, p_ring, hint=(0.0, 0.3, 1.0)):
    """R_0J (3, 3) of a leg whose x axis points from its base joint to the nominal ring joint, y square to `hint` and x."""
    x = np.asarray(p_ring, dtype=float) - np.asarray(p_base, dtype=float)
    x = x / np.linalg.norm(x)
    y = np.cross(hint, x)
    if np.linalg.norm(y) < 1e-6:
        raise ValueError(f"hint: {tuple(hint)} is parallel to the leg")
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


cdef void build_leg(object table, Leg *leg) except *:
    """Fill `leg` from a table: kind, p_0J (3,), R_0J (3, 3), links (list of offsets along x, or vectors), bodies (list of None or
    (mass kg, centre (3,), inertia about the centre (3, 3))), p_NQ (3,), e_N (3,) for UCU, SPU, RSU, lead, hand, nut_inertia, elbow, R_LU."""
    cdef int j
    memset(leg, 0, sizeof(Leg))
    kind = table["kind"]
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r} is not one of {', '.join(KINDS)}")
    joints = _JOINTS[kind]
    leg.kind = KINDS[kind]
    leg.joints = len(joints)
    leg.spin = _SPIN[kind]
    leg.stroke = joints.find("P")
    leg.elbow = float(table.get("elbow", 1.0))
    leg.turned = kind in ("RUS", "RSU")
    _copy(table["R_0J"], leg.R_0J, 9)
    _copy(table.get("R_LU", np.eye(3)), leg.R_LU, 9)
    _copy(table["p_0J"], leg.p_0J, 3)
    _copy(table["p_NQ"], leg.p_NQ, 3)
    _copy(table.get("e_N", np.zeros(3)), leg.e_N, 3)
    if leg.spin >= 0 and abs(np.linalg.norm(table.get("e_N", np.zeros(3))) - 1.0) > 1e-9:
        raise ValueError("e_N: a unit vector is needed for a leg with a universal joint at the ring")
    for j in range(leg.joints):
        leg.prismatic[j] = joints[j] == "P"
        leg.axis[j] = "xyz".index("x" if joints[j] == "P" else joints[j])
        link = np.atleast_1d(np.asarray(table["links"][j], dtype=float))
        _copy(np.array([link[0], 0.0, 0.0]) if link.size == 1 else link, leg.link[j], 3)
        if leg.link[j][1] != 0.0 or leg.link[j][2] != 0.0:
            raise ValueError(f"links: joint {j}: offsets along x only, given {link.tolist()}")
        leg.length0 += leg.link[j][0]
        body = table["bodies"][j]
        if body is not None:
            mass, centre, inertia = body
            if not mass > 0.0:
                raise ValueError(f"bodies: mass {mass} kg of body {j} must be > 0 (None for a fictitious one)")
            leg.mass[j] = mass
            _copy(centre, leg.centre[j], 3)
            _copy(inertia, leg.inertia[j], 9)
    lead = float(table.get("lead", 0.0))
    if lead < 0.0:
        raise ValueError(f"lead: {lead} m, must be >= 0 m")
    leg.i_N = 2.0 * np.pi / lead if lead > 0.0 else 0.0
    leg.hand = float(table.get("hand", 1.0))
    leg.nut_inertia = float(table.get("nut_inertia", 0.0))
    if leg.hand not in (1.0, -1.0):
        raise ValueError(f"hand: {leg.hand}, must be +1 or -1")
    if leg.i_N > 0.0 and leg.stroke < 0:
        raise ValueError("lead: only a leg with a stroke has a ball screw")


cdef class RingPlatform:
    """A ring on legs, for tests and offline use; every call runs the kernels of the header.

    legs: tables, see `build_leg`. ring_mass [kg], ring_inertia (3, 3) about the centre, ring axes [kg m^2].
    """

    cdef Leg leg[MAX_LEGS]
    cdef LegMotion motion[MAX_LEGS]
    cdef RingBody ring
    cdef readonly int count

    def __init__(self, legs, ring_mass, ring_inertia):
        if not 1 <= len(legs) <= MAX_LEGS:
            raise ValueError(f"legs: {len(legs)}, between 1 and {MAX_LEGS} needed")
        self.count = len(legs)
        for k, table in enumerate(legs):
            try:
                build_leg(table, &self.leg[k])
            except ValueError as error:
                raise ValueError(f"leg {k}: {error}") from None
        if not ring_mass > 0.0:
            raise ValueError(f"ring_mass: {ring_mass} kg, must be > 0 kg")
        self.ring.mass = ring_mass
        _copy(ring_inertia, self.ring.inertia, 9)

    def place(self, p_0N, R_0N):
        """Joint coordinates of every leg (list of arrays) and cut points (L, 3) from the chain. Raises ValueError outside the workspace."""
        cdef double p[3]
        cdef double R[9]
        cdef int k
        _copy(p_0N, p, 3)
        _copy(R_0N, R, 9)
        for k in range(self.count):
            if not place_leg(&self.leg[k], p, R, &self.motion[k]):
                raise ValueError(f"leg {k}: the pose is outside its workspace")
            spread_leg(&self.leg[k], &self.motion[k])
        return ([np.array([self.motion[k].p[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
                np.array([[self.motion[k].cut[i] for i in range(3)] for k in range(self.count)]))

    def evaluate(self, p_0N, R_0N, v_N, w_N, F_ring, forces, base_w=(0, 0, 0), base_alpha=(0, 0, 0), base_accel=(0, 0, 0)):
        """Everything of one state: v_N, w_N relative to the base, F_ring (6,) about the ring's centre, all in base axes; forces: per leg,
        one number per joint. Returns a dict: u_dot (6,), A (6, 6), b (6,), base_wrench (6,), p, p_rate, p_accel, reaction (lists)."""
        cdef double p[3]
        cdef double R[9]
        cdef double v[3]
        cdef double w[3]
        cdef double F[6]
        cdef double A[36]
        cdef double b[6]
        cdef double u[6]
        cdef double W[6]
        cdef BaseMotion base
        cdef int i, j, k
        self.place(p_0N, R_0N)
        _copy(p_0N, p, 3); _copy(R_0N, R, 9); _copy(v_N, v, 3); _copy(w_N, w, 3); _copy(F_ring, F, 6)
        _copy(base_w, base.w, 3); _copy(base_alpha, base.alpha, 3); _copy(base_accel, base.accel, 3)
        ring_terms(&self.ring, &base, p, R, v, w, F, A, b)
        for k in range(self.count):
            for j in range(self.leg[k].joints):
                self.motion[k].force[j] = forces[k][j]
            close_leg(&self.leg[k], R, v, w, &self.motion[k])
            leg_inertia(&self.leg[k], &base, &self.motion[k])
            reduce_leg(&self.leg[k], &self.motion[k], A, b)
        if not solve_ring(A, b, u):
            raise ValueError("generalised inertia is not positive definite")
        for i in range(6):
            W[i] = 0.0
        for k in range(self.count):
            react_on_base(&self.leg[k], u, &self.motion[k], W)
        full = np.array([[A[6 * max(i, j) + min(i, j)] for j in range(6)] for i in range(6)])
        return {
            "u_dot": np.array([u[i] for i in range(6)]), "A": full, "b": np.array([b[i] for i in range(6)]),
            "base_wrench": np.array([W[i] for i in range(6)]),
            "p": [np.array([self.motion[k].p[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
            "p_rate": [np.array([self.motion[k].p_rate[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
            "p_accel": [np.array([self.motion[k].p_accel[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
            "reaction": [np.array([self.motion[k].reaction[j] for j in range(4)]) for k in range(self.count)],
            "leg_A": [np.array([self.motion[k].A[i] for i in range(self.leg[k].joints**2)]).reshape(self.leg[k].joints, -1)
                      for k in range(self.count)],
            "leg_b": [np.array([self.motion[k].b[j] for j in range(self.leg[k].joints)]) for k in range(self.count)],
        }

    def momentum(self, p_0N, R_0N, v_N, w_N, base_w=(0, 0, 0), base_v=(0, 0, 0)):
        """Linear and angular momentum (6,) of ring and legs about the base origin, base axes, absolute motion (slow twin for tests)."""
        cdef double p[3]
        cdef double R[9]
        cdef double v[3]
        cdef double w[3]
        cdef int j, k
        self.place(p_0N, R_0N)
        _copy(p_0N, p, 3); _copy(R_0N, R, 9); _copy(v_N, v, 3); _copy(w_N, w, 3)
        w0, v0 = np.asarray(base_w, dtype=float), np.asarray(base_v, dtype=float)
        P, Q = np.asarray(p_0N, dtype=float), np.asarray(R_0N, dtype=float).reshape(3, 3)
        I = np.array([self.ring.inertia[j] for j in range(9)]).reshape(3, 3)
        linear = self.ring.mass * (np.asarray(v_N) + v0 + np.cross(w0, P))
        total = np.concatenate([linear, np.cross(P, linear) + Q @ I @ Q.T @ (np.asarray(w_N) + w0)])
        for k in range(self.count):
            close_leg(&self.leg[k], R, v, w, &self.motion[k])
            spin, speed, pole = w0.copy(), v0 + np.cross(w0, np.array(self.leg[k].p_0J)), np.array(self.leg[k].p_0J)
            for j in range(self.leg[k].joints):
                axis, here = np.array(self.motion[k].axis[j]), np.array(self.motion[k].pole[j])
                speed = speed + np.cross(spin, here - pole)
                if self.leg[k].prismatic[j]:
                    speed = speed + axis * self.motion[k].p_rate[j]
                else:
                    spin = spin + axis * self.motion[k].p_rate[j]
                pole = here
                if self.leg[k].mass[j] > 0.0:
                    B = np.array(self.motion[k].R[j]).reshape(3, 3)
                    arm = B @ np.array(self.leg[k].centre[j])
                    linear = self.leg[k].mass[j] * (speed + np.cross(spin, arm))
                    J = B @ np.array(self.leg[k].inertia[j]).reshape(3, 3) @ B.T
                    total += np.concatenate([linear, np.cross(pole + arm, linear) + J @ spin])
        return total
