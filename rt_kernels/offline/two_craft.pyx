# distutils: extra_compile_args = -O1
"""Two free rigid craft that meet through a docking mechanism, without stand and line: parameter studies of a unit, as fast as they go.

Yaskevich 2020 (4.2.1, 4.5): frames C, V (centres of mass), A, T (ports), N inertial. Momenta are the state: linear p, angular L about each
centre of mass, N axes; symplectic Euler, attitudes by the exponential. The wrenches on both craft come from the mechanism (F_A, F_T).
"""

import numpy as np

from rt_kernels.algebra cimport pose
from rt_kernels.algebra cimport quat
from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3
from rt_kernels.plugs cimport Mechanism, MechanismInput, MechanismOutput, MechanismPart


cdef struct Craft:
    double mass
    double inertia[9]
    double inverse[9]
    double X_port[7]      # port in the body
    double X[7]           # body in N
    double v[3]
    double L[3]
    double w[3]


cdef void spin(Craft *c) noexcept nogil:
    # w = R I^-1 R^T L
    quat.rotate_back(c.X + 3, c.L, c.w)
    rot3.apply(c.inverse, c.w, c.w)
    quat.rotate(c.X + 3, c.w, c.w)


cdef void port_motion(const Craft *c, double *X_NP, double *v, double *w) noexcept nogil:
    cdef double arm[3]
    cdef double t[3]
    pose.multiply(c.X, c.X_port, X_NP)
    vec3.sub(X_NP, c.X, arm)
    vec3.cross(c.w, arm, t)
    vec3.add(c.v, t, v)
    vec3.copy(c.w, w)


cdef void kick(Craft *c, const double *X_NP, const double *F_P, double h) noexcept nogil:
    # wrench at and in the port for h seconds, then the pose
    cdef double F[6]
    cdef double arm[3]
    cdef double t[3]
    cdef double dq[4]
    quat.rotate(X_NP + 3, F_P, F)
    quat.rotate(X_NP + 3, F_P + 3, F + 3)
    vec3.sub(X_NP, c.X, arm)
    vec3.cross(arm, F, t)
    vec3.add(F + 3, t, F + 3)
    vec3.add_scaled(c.v, h / c.mass, F, c.v)
    vec3.add_scaled(c.L, h, F + 3, c.L)
    spin(c)
    vec3.add_scaled(c.X, h, c.v, c.X)
    vec3.scale(h, c.w, t)
    quat.exponential(t, dq)
    quat.multiply(dq, c.X + 3, c.X + 3)
    quat.normalize(c.X + 3)


cdef class TwoCraft:
    """Two craft and a mechanism.

    active, target: dicts of mass [kg], inertia (3, 3) about the centre [kg.m2], X_port (7,), X (7,), v (3,) [m/s, N], w (3,) [rad/s, body].
    """

    cdef Craft active
    cdef Craft target
    cdef MechanismPart mechanism
    cdef readonly double time

    def __init__(self, MechanismPart mechanism, active, target):
        self.mechanism = mechanism
        self._fill(&self.active, active)
        self._fill(&self.target, target)

    cdef void _fill(self, Craft *c, object t) except *:
        cdef int i
        c.mass = t["mass"]
        inertia = np.asarray(t["inertia"], dtype=float)
        flat, inverse = inertia.reshape(-1), np.linalg.inv(inertia).reshape(-1)
        for i in range(9):
            c.inertia[i], c.inverse[i] = flat[i], inverse[i]
        for i in range(7):
            c.X_port[i], c.X[i] = t["X_port"][i], t["X"][i]
        for i in range(3):
            c.v[i], c.w[i] = t["v"][i], t["w"][i]
        # L = R I w_body
        rot3.apply(c.inertia, c.w, c.L)
        quat.rotate(c.X + 3, c.L, c.L)
        spin(c)

    cdef void _relative(self, MechanismInput *inp, double *X_NA, double *X_NT) noexcept nogil:
        # X_TA, d/dt p_TA in T axes, relative rate in T axes, absolute rate of the active craft in A axes
        cdef double v_A[3]
        cdef double w_A[3]
        cdef double v_T[3]
        cdef double w_T[3]
        cdef double X_TN[7]
        cdef double t[3]
        cdef double arm[3]
        port_motion(&self.active, X_NA, v_A, w_A)
        port_motion(&self.target, X_NT, v_T, w_T)
        pose.inverse(X_NT, X_TN)
        pose.multiply(X_TN, X_NA, inp.X_TA)
        vec3.sub(X_NA, X_NT, arm)
        vec3.cross(w_T, arm, t)
        vec3.sub(v_A, v_T, arm)
        vec3.sub(arm, t, arm)
        quat.rotate_back(X_NT + 3, arm, inp.V_TA)
        vec3.sub(w_A, w_T, t)
        quat.rotate_back(X_NT + 3, t, inp.V_TA + 3)
        quat.rotate_back(X_NA + 3, w_A, inp.w_A)

    def relative_pose(self):
        """X_TA (7,)."""
        cdef MechanismInput inp
        cdef double X_NA[7]
        cdef double X_NT[7]
        self._relative(&inp, X_NA, X_NT)
        return np.array([inp.X_TA[i] for i in range(7)])

    def momentum(self):
        """Total linear momentum and angular momentum about the origin of N (6,), mechanism not included."""
        total = np.zeros(6)
        for c in (self._dict(&self.active), self._dict(&self.target)):
            p = c["mass"] * c["v"]
            total += np.concatenate([p, np.cross(c["p"], p) + c["L"]])
        return total

    cdef object _dict(self, Craft *c):
        return {"mass": c.mass, "v": np.array([c.v[i] for i in range(3)]), "p": np.array([c.X[i] for i in range(3)]),
                "L": np.array([c.L[i] for i in range(3)]), "w": np.array([c.w[i] for i in range(3)])}

    def kinetic_energy(self):
        """Of both craft [J]."""
        total = 0.0
        for c in (self._dict(&self.active), self._dict(&self.target)):
            total += 0.5 * c["mass"] * c["v"] @ c["v"] + 0.5 * c["L"] @ c["w"]
        return total

    def run(self, double duration, double dt, int every=1, unsigned int commands=0, long stop_signals=0, stop_aux=None):
        """Steps until `duration` [s] more has passed, all bits of `stop_signals` are set, or aux[stop_aux] >= 0.

        Returns a dict of arrays, one row per `every` ticks: t, X_TA (n, 7), V_TA (n, 6), F_T (n, 6), F_A (n, 6), signals, status, aux.
        """
        cdef Mechanism *plug = &self.mechanism.plug
        cdef MechanismInput inp
        cdef MechanismOutput out
        cdef double X_NA[7]
        cdef double X_NT[7]
        cdef bint last
        cdef Py_ssize_t n = <Py_ssize_t> (duration / dt + 0.5), i, row = 0
        cdef int j, width = sum(channel.count for channel in self.mechanism.AUX), watch = -1 if stop_aux is None else stop_aux
        rows = (n + every - 1) // every + 1
        t, log = np.zeros(rows), np.zeros((rows, 27 + width))
        cdef double[::1] t_view = t
        cdef double[:, ::1] view = log
        cdef double[::1] aux = np.zeros(max(width, 1))
        inp.dt = dt
        inp.commands = commands
        with nogil:
            for i in range(n):
                self._relative(&inp, X_NA, X_NT)
                plug.advance(plug.self, &inp, &out, &aux[0])
                kick(&self.active, X_NA, out.F_A, dt)
                kick(&self.target, X_NT, out.F_T, dt)
                self.time += dt
                last = stop_signals != 0 and (out.signals & stop_signals) == stop_signals
                last = last or (watch >= 0 and aux[watch] >= 0.0) or i == n - 1
                if last or i % every == 0:
                    t_view[row] = self.time
                    for j in range(7):
                        view[row, j] = inp.X_TA[j]
                    for j in range(6):
                        view[row, 7 + j] = inp.V_TA[j]
                        view[row, 13 + j] = out.F_T[j]
                        view[row, 19 + j] = out.F_A[j]
                    view[row, 25] = out.signals
                    view[row, 26] = out.status
                    for j in range(width):
                        view[row, 27 + j] = aux[j]
                    row += 1
                if last:
                    break
        log = log[:row]
        return {"t": t[:row], "X_TA": log[:, :7], "V_TA": log[:, 7:13], "F_T": log[:, 13:19], "F_A": log[:, 19:25],
                "signals": log[:, 25].astype(int), "status": log[:, 26].astype(int), "aux": log[:, 27:]}


def aux_index(mechanism, name):
    """First column of an auxiliary channel. Raises ValueError for an unknown name."""
    at = 0
    for channel in mechanism.AUX:
        if channel.name == name:
            return at
        at += channel.count
    raise ValueError(f"{name}: not a channel of this mechanism")


def first_contact(mechanism, q_TA, dy, dz, penetration=1e-6, far=-3.0, near=0.5):
    """Pose X_TA (7,) of first contact along X with the given lateral offsets and attitude: bisection of the axial distance until the
    deepest penetration lies in (0, penetration] (Yaskevich 2020 (4.5): "gradual iterative approach").
    Raises ValueError if nothing touches."""
    def depth(x):
        return mechanism.max_penetration([x, dy, dz, *q_TA])

    low = far
    # first step on a grid, since the search region may contain non-contact behind a contact
    for x in np.arange(far, near, 2e-3):
        if depth(x) > 0.0:
            high = x
            break
        low = x
    else:
        raise ValueError(f"no contact between x = {far} and {near} m")
    for _ in range(80):
        middle = 0.5 * (low + high)
        d = depth(middle)
        if d > penetration:
            high = middle
        elif d > 0.0:
            high = middle
            break
        else:
            low = middle
        if high - low < 1e-13:
            break
    return np.array([high, dy, dz, *q_TA])
