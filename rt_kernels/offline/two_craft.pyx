# distutils: extra_compile_args = -O1
"""Two free rigid craft that meet through a docking mechanism, without stand and line: parameter studies of a unit, as fast as they go.

Yaskevich 2020 (4.2.1, 4.5): frames C, V (centres of mass), A, T (ports), N inertial. Momenta are the state: linear p, angular L about each
centre of mass, N axes; symplectic Euler, attitudes by the exponential. The wrenches on both craft come from the mechanism (F_A, F_T).
"""

import numpy as np

from rt_kernels.algebra.values cimport (
    Mat3, Pose, Vec3, Wrench, add, compose, cross, inverse, mat_vec, mul, put, put_pose, rotate, rotate_back, sub, turned, wrench,
)
from rt_kernels.plugs cimport Mechanism, MechanismInput, MechanismOutput, MechanismPart


cdef struct Craft:
    double mass
    Mat3 inertia
    Mat3 inverse
    Pose X_port           # port in the body
    Pose X                # body in N
    Vec3 v
    Vec3 L
    Vec3 w


cdef void spin(Craft *c) noexcept nogil:
    # w = R I^-1 R^T L
    c.w = rotate(c.X.q, mat_vec(c.inverse, rotate_back(c.X.q, c.L)))


cdef inline Pose port_pose(const Craft *c) noexcept nogil:
    return compose(c.X, c.X_port)


cdef inline Vec3 port_velocity(const Craft *c, Pose X_NP) noexcept nogil:
    return add(c.v, cross(c.w, sub(X_NP.p, c.X.p)))


cdef void kick(Craft *c, Pose X_NP, Wrench F_P, double h) noexcept nogil:
    # wrench at and in the port for h seconds, then the pose
    cdef Vec3 f = rotate(X_NP.q, F_P.f)
    cdef Vec3 m = add(rotate(X_NP.q, F_P.m), cross(sub(X_NP.p, c.X.p), f))
    c.v = add(c.v, mul(h / c.mass, f))
    c.L = add(c.L, mul(h, m))
    spin(c)
    c.X.p = add(c.X.p, mul(h, c.v))
    c.X.q = turned(c.X.q, c.w, h)


cdef object shown(const double *a, int n):
    return np.array([a[i] for i in range(n)])


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
        flat, inverted = inertia.reshape(-1), np.linalg.inv(inertia).reshape(-1)
        for i in range(9):
            (&c.inertia.xx)[i], (&c.inverse.xx)[i] = flat[i], inverted[i]
        for i in range(7):
            (&c.X_port.p.x)[i], (&c.X.p.x)[i] = t["X_port"][i], t["X"][i]
        for i in range(3):
            (&c.v.x)[i], (&c.w.x)[i] = t["v"][i], t["w"][i]
        # L = R I w_body
        c.L = rotate(c.X.q, mat_vec(c.inertia, c.w))
        spin(c)

    cdef void _relative(self, MechanismInput *inp, Pose *X_NA, Pose *X_NT) noexcept nogil:
        # X_TA, d/dt p_TA in T axes, relative rate in T axes, absolute rate of the active craft in A axes
        cdef Vec3 w_A = self.active.w, w_T = self.target.w
        cdef Vec3 v
        X_NA[0] = port_pose(&self.active)
        X_NT[0] = port_pose(&self.target)
        put_pose(compose(inverse(X_NT[0]), X_NA[0]), inp.X_TA)
        v = sub(port_velocity(&self.active, X_NA[0]), port_velocity(&self.target, X_NT[0]))
        put(rotate_back(X_NT.q, sub(v, cross(w_T, sub(X_NA.p, X_NT.p)))), inp.V_TA)
        put(rotate_back(X_NT.q, sub(w_A, w_T)), inp.V_TA + 3)
        put(rotate_back(X_NA.q, w_A), inp.w_A)

    def relative_pose(self):
        """X_TA (7,)."""
        cdef MechanismInput inp
        cdef Pose X_NA, X_NT
        self._relative(&inp, &X_NA, &X_NT)
        return shown(inp.X_TA, 7)

    def momentum(self):
        """Total linear momentum and angular momentum about the origin of N (6,), mechanism not included."""
        total = np.zeros(6)
        for c in (self._dict(&self.active), self._dict(&self.target)):
            p = c["mass"] * c["v"]
            total += np.concatenate([p, np.cross(c["p"], p) + c["L"]])
        return total

    cdef object _dict(self, Craft *c):
        return {"mass": c.mass, "v": shown(&c.v.x, 3), "p": shown(&c.X.p.x, 3), "L": shown(&c.L.x, 3), "w": shown(&c.w.x, 3)}

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
        cdef Pose X_NA, X_NT
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
                self._relative(&inp, &X_NA, &X_NT)
                plug.advance(plug.self, &inp, &out, &aux[0])
                kick(&self.active, X_NA, wrench(out.F_A), dt)
                kick(&self.target, X_NT, wrench(out.F_T), dt)
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
