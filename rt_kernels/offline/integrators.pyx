"""Fixed-step integrators for q_dot = v, v_dot = a(t, q, v), with quaternions that keep their norm.

    symplectic_euler   v' = v + h a(q, v);  q' = q + h v'                                         order 1, limit omega h = 2
    two_step           q' = q + v h + (1/2 + psi) a h^2 - psi a_prev h^2;                          order 2 for psi = phi = 1/2
                       v' = v + (1 + phi) a h - phi a_prev h                                       limit omega h = 2 without damping
                       first step psi = phi = 0. With psi = phi = 1/2 and forces of position alone it is Stoermer-Verlet
                       (Tian et al. 2010, eq. (9); Zhai 1996). One force per step.
    rk4                classical, order 4, limit omega h = 2 sqrt(2)
    implicit_euler     (M + h C + h^2 K) a = f(q, v) - C v - K (q + h v) by the system's own solver, v' = v + h a, q' = q + h v';
                       order 1, stable for any step as far as springs and dampers go

A rotation is advanced by the exponential of a body-axis rotation vector, so the quaternion stays a unit one up to rounding, and the
rounding is taken out by q <- q (3 - q.q) / 2. RK4 integrates the rotation vector of the step, u_dot = w + u x w / 2 + u x (u x w) / 12
(Munthe-Kaas 1998). The position of a free joint is turned with the rotation at the middle of the step (RK4: at its stages).

Changing the step or the forces abruptly breaks the two-step formula: call `restart`. A switch inside a step costs order.
"""

import numpy as np

from cpython.ref cimport PyObject
from libc.stdlib cimport calloc, free

from rt_kernels.algebra cimport quat, vec3
from rt_kernels.multibody cimport flexible_recursion
from rt_kernels.multibody.flexible cimport FlexibleTree
from rt_kernels.multibody.flexible_recursion cimport Model


cdef enum Method:
    SYMPLECTIC_EULER = 0
    TWO_STEP = 1
    RK4 = 2
    IMPLICIT_EULER = 3


ctypedef void (*Accelerate)(void *state, double t, double h, const double *q, const double *v, double *a) noexcept nogil


cdef struct Rotation:
    int iq                # first number of the quaternion in q
    int iv                # first of the three body rates in v
    int jq, jv            # linear part of a free joint (position in parent axes, velocity in body axes), -1 without


cdef struct Stepper:
    int method
    int nq, nv
    int n_straight        # coordinates whose rate is a velocity: pairs below
    int *straight_q
    int *straight_v
    int n_rotations
    Rotation *rotation
    Accelerate accelerate
    void *state
    double h, psi, phi
    int fresh             # 1: the two-step method has no earlier acceleration
    double *work          # 12 nv + 2 nq


cdef struct TreeLoads:
    Model *model
    double *tau
    double *f_ext
    double *a_given
    unsigned char *known
    void *callback        # Python callable or NULL


# --- moves on the coordinate space ------------------------------------------------------------------------------------------------------


cdef inline void hold_norm(double *q) noexcept nogil:
    # one Newton step towards |q| = 1: no division, no root
    cdef double k = 0.5 * (3.0 - (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]))
    q[0] *= k; q[1] *= k; q[2] *= k; q[3] *= k


cdef inline void turn(const double *q, const double *u, double *out) noexcept nogil:
    """out = q exp(u), u a rotation vector in body axes."""
    cdef double d[4]
    quat.exponential(u, d)
    quat.multiply(q, d, out)
    hold_norm(out)


cdef void shift(const Stepper *s, const double *q, const double *u, double *out) noexcept nogil:
    """out = q moved by u (velocity coordinates): linear part of a free joint in body axes of the middle of the move."""
    cdef const Rotation *r
    cdef double half[3]
    cdef double middle[4]
    cdef int i
    for i in range(s.n_straight):
        out[s.straight_q[i]] = q[s.straight_q[i]] + u[s.straight_v[i]]
    for i in range(s.n_rotations):
        r = &s.rotation[i]
        if r.jq >= 0:
            vec3.scale(0.5, u + r.iv, half)
            turn(q + r.iq, half, middle)
            quat.rotate(middle, u + r.jv, half)
            vec3.add(q + r.jq, half, out + r.jq)
        turn(q + r.iq, u + r.iv, out + r.iq)


cdef void chart(const Stepper *s, const double *q, const double *u, double *out) noexcept nogil:
    """out = q moved by u; linear part of a free joint in parent axes."""
    cdef const Rotation *r
    cdef int i
    for i in range(s.n_straight):
        out[s.straight_q[i]] = q[s.straight_q[i]] + u[s.straight_v[i]]
    for i in range(s.n_rotations):
        r = &s.rotation[i]
        if r.jq >= 0:
            vec3.add(q + r.jq, u + r.jv, out + r.jq)
        turn(q + r.iq, u + r.iv, out + r.iq)


cdef void chart_rate(const Stepper *s, const double *q, const double *u, const double *v, double *rate) noexcept nogil:
    """u_dot of `chart` at the moved coordinates q."""
    cdef const Rotation *r
    cdef double a[3]
    cdef double b[3]
    cdef int i, k
    for i in range(s.n_straight):
        rate[s.straight_v[i]] = v[s.straight_v[i]]
    for i in range(s.n_rotations):
        r = &s.rotation[i]
        vec3.cross(u + r.iv, v + r.iv, a)
        vec3.cross(u + r.iv, a, b)
        for k in range(3):
            rate[r.iv + k] = v[r.iv + k] + 0.5 * a[k] + b[k] / 12.0
        if r.jq >= 0:
            quat.rotate(q + r.iq, v + r.jv, rate + r.jv)


# --- the step -----------------------------------------------------------------------------------------------------------------------------


cdef void advance(Stepper *s, double t, double *q, double *v) noexcept nogil:
    """One step of length s.h from time t, in place."""
    cdef int n = s.nv, m = s.nq, i
    cdef double h = s.h
    cdef double *a = s.work
    cdef double *before = a + n
    cdef double *u = before + n
    cdef double *w = u + n
    cdef double *ku = w + n            # 4 slopes of u
    cdef double *kv = ku + 4 * n       # 4 slopes of v
    cdef double *stage = kv + 4 * n
    cdef double *moved = stage + m
    cdef double psi, phi, k
    cdef int j
    if s.method == SYMPLECTIC_EULER or s.method == IMPLICIT_EULER:
        s.accelerate(s.state, t, h if s.method == IMPLICIT_EULER else 0.0, q, v, a)
        for i in range(n):
            v[i] += h * a[i]
            u[i] = h * v[i]
        shift(s, q, u, moved)
    elif s.method == TWO_STEP:
        s.accelerate(s.state, t, 0.0, q, v, a)
        psi = 0.0 if s.fresh else s.psi
        phi = 0.0 if s.fresh else s.phi
        if s.fresh:
            for i in range(n):
                before[i] = a[i]
        for i in range(n):
            u[i] = h * (v[i] + h * ((0.5 + psi) * a[i] - psi * before[i]))
            v[i] += h * ((1.0 + phi) * a[i] - phi * before[i])
            before[i] = a[i]
        s.fresh = 0
        shift(s, q, u, moved)
    else:
        for i in range(n):
            u[i] = 0.0
            w[i] = v[i]
        for i in range(m):
            stage[i] = q[i]
        for j in range(4):
            chart_rate(s, stage, u, w, ku + j * n)
            s.accelerate(s.state, t + (0.0 if j == 0 else (h if j == 3 else 0.5 * h)), 0.0, stage, w, kv + j * n)
            if j == 3:
                break
            k = h if j == 2 else 0.5 * h
            for i in range(n):
                u[i] = k * ku[j * n + i]
                w[i] = v[i] + k * kv[j * n + i]
            chart(s, q, u, stage)
        for i in range(n):
            u[i] = h / 6.0 * (ku[i] + 2.0 * (ku[n + i] + ku[2 * n + i]) + ku[3 * n + i])
            v[i] += h / 6.0 * (kv[i] + 2.0 * (kv[n + i] + kv[2 * n + i]) + kv[3 * n + i])
        chart(s, q, u, moved)
    for i in range(m):
        q[i] = moved[i]


# --- what is moved ------------------------------------------------------------------------------------------------------------------------


cdef void tree_accelerate(void *state, double t, double h, const double *q, const double *v, double *a) noexcept nogil:
    cdef TreeLoads *x = <TreeLoads *>state
    cdef int i
    if x.callback != NULL:
        call_loads(x, t, q, v)
    if x.known != NULL:
        for i in range(x.model.nv):
            a[i] = x.a_given[i]
    flexible_recursion.hybrid_dynamics(x.model, h, q, v, x.tau, x.f_ext, x.known, a, NULL)


cdef void call_loads(TreeLoads *x, double t, const double *q, const double *v) noexcept with gil:
    """Offline use: `loads(t)` gives tau."""
    cdef int i
    cdef double[::1] tau
    motion = <Motion><PyObject *>x.callback
    try:
        tau = np.ascontiguousarray((<Motion>motion)._callback(t), dtype=np.float64)
        for i in range(x.model.nv):
            x.tau[i] = tau[i]
    except Exception as error:
        if (<Motion>motion).error is None:
            (<Motion>motion).error = error


cdef void python_accelerate(void *state, double t, double h, const double *q, const double *v, double *a) noexcept with gil:
    """Offline use: a = f(t, q, v) or, implicit, f(t, q, v, h)."""
    cdef int i
    motion = <Motion><PyObject *>state
    cdef Motion self = <Motion>motion
    cdef double[::1] out
    try:
        q_ = np.array([q[i] for i in range(self.nq)])
        v_ = np.array([v[i] for i in range(self.nv)])
        value = self._callback(t, q_, v_, h) if h > 0.0 else self._callback(t, q_, v_)
        out = np.ascontiguousarray(value, dtype=np.float64)
        for i in range(self.nv):
            a[i] = out[i]
    except Exception as error:
        if self.error is None:
            self.error = error
        for i in range(self.nv):
            a[i] = 0.0


_METHODS = {"symplectic_euler": SYMPLECTIC_EULER, "two_step": TWO_STEP, "rk4": RK4, "implicit_euler": IMPLICIT_EULER}


cdef class Motion:
    """A system, an integrator and a step.

    system   FlexibleTree, or a callable a = f(t, q, v) (with method "implicit_euler": f(t, q, v, h))
    method   "symplectic_euler" | "two_step" | "rk4" | "implicit_euler"
    step     s
    nv       number of velocities, for a callable
    quaternions  for a callable: [(first of q, first of v, "free" | "spherical")] as `FlexibleTree.quaternions`
    loads    for a tree: callable tau = loads(t); otherwise set `tau`, `f_ext`, `known`, `a_given` between calls of `run` by `apply`
    psi, phi parameters of the two-step method; other values than 1/2 are weakly unstable without damping

    Raises ValueError naming the argument, the value and the limit.
    """

    cdef Stepper stepper
    cdef object _keep
    cdef object _callback
    cdef TreeLoads loads
    cdef public int nq, nv
    cdef public object tree
    cdef public object tau, f_ext, known, a_given, error
    cdef double[::1] _tau
    cdef double[:, ::1] _f
    cdef double[::1] _a
    cdef unsigned char[::1] _known
    cdef double _t

    def __cinit__(self, system, str method, double step, *, nv=None, quaternions=(), loads=None, double psi=0.5, double phi=0.5):
        cdef int i, k
        cdef Stepper *s = &self.stepper
        if method not in _METHODS:
            raise ValueError(f"method: {method!r} is not one of {', '.join(_METHODS)}")
        if not (step > 0.0 and step < 1e6):
            raise ValueError(f"step: {step} s is not in (0, 1e6)")
        for name, value in (("psi", psi), ("phi", phi)):
            if not 0.0 <= value <= 2.0:
                raise ValueError(f"{name}: {value} is not in [0, 2]")
        s.method = _METHODS[method]
        s.h = step; s.psi = psi; s.phi = phi; s.fresh = 1
        if isinstance(system, FlexibleTree):
            self.tree = system
            self.nq = system.nq; self.nv = system.nv
            quaternions = system.quaternions()
            self._callback = loads
            self.loads.model = &(<FlexibleTree>system).model
            s.accelerate = tree_accelerate
            s.state = &self.loads
            self.loads.callback = <PyObject *>self if loads is not None else NULL
            self.apply()
        else:
            if not callable(system) or nv is None:
                raise ValueError("system: a FlexibleTree, or a callable with nv, is needed")
            self._callback = system
            quaternions = list(quaternions)
            self.nv = nv
            self.nq = nv + len(quaternions)
            s.accelerate = python_accelerate
            s.state = <PyObject *>self
        s.nq = self.nq; s.nv = self.nv
        turning_q, turning_v = set(), set()
        s.rotation = <Rotation *>calloc(max(len(quaternions), 1), sizeof(Rotation))
        s.straight_q = <int *>calloc(max(self.nv, 1), sizeof(int))
        s.straight_v = <int *>calloc(max(self.nv, 1), sizeof(int))
        s.work = <double *>calloc(12 * self.nv + 2 * self.nq + 1, sizeof(double))
        if s.rotation == NULL or s.straight_q == NULL or s.straight_v == NULL or s.work == NULL:
            raise MemoryError("no memory for the integrator")
        for i, (iq, iv, kind) in enumerate(quaternions):
            free_joint = kind == "free"
            s.rotation[i].iq = iq + 3 if free_joint else iq
            s.rotation[i].iv = iv + 3 if free_joint else iv
            s.rotation[i].jq = iq if free_joint else -1
            s.rotation[i].jv = iv if free_joint else -1
            turning_q.update(range(iq, iq + (7 if free_joint else 4)))
            turning_v.update(range(iv, iv + (6 if free_joint else 3)))
        s.n_rotations = len(quaternions)
        straight = list(zip([k for k in range(self.nq) if k not in turning_q], [k for k in range(self.nv) if k not in turning_v],
                            strict=True))
        s.n_straight = len(straight)
        for i, (k_q, k_v) in enumerate(straight):
            s.straight_q[i] = k_q
            s.straight_v[i] = k_v

    def __dealloc__(self):
        free(self.stepper.rotation)
        free(self.stepper.straight_q)
        free(self.stepper.straight_v)
        free(self.stepper.work)

    def apply(self, tau=None, f_ext=None, known=None, a=None):
        """Loads of a tree from now on: tau (nv,), f_ext (bodies, 6), and accelerations a (nv,) given where known (nv,) is True."""
        if self.tree is None:
            raise ValueError("apply: only a tree takes loads")
        n = len(self.tree.names)
        self.tau = np.zeros(self.nv) if tau is None else np.array(tau, dtype=np.float64)
        self.f_ext = np.zeros((n, 6)) if f_ext is None else np.array(f_ext, dtype=np.float64)
        self.known = np.zeros(self.nv, dtype=np.uint8) if known is None else np.array(known, dtype=np.uint8)
        self.a_given = np.zeros(self.nv) if a is None else np.array(a, dtype=np.float64)
        for name, value, shape in (("tau", self.tau, (self.nv,)), ("f_ext", self.f_ext, (n, 6)), ("known", self.known, (self.nv,)),
                                   ("a", self.a_given, (self.nv,))):
            if value.shape != shape:
                raise ValueError(f"{name}: shape {value.shape} given, {shape} expected")
        if self.known[self.tree.nj:].any():
            raise ValueError("known: modal coordinates cannot have a given acceleration")
        self._tau, self._f, self._a, self._known = self.tau, self.f_ext, self.a_given, self.known
        if self.nv:
            self.loads.tau = &self._tau[0]
            self.loads.a_given = &self._a[0]
            self.loads.known = &self._known[0] if known is not None else NULL
        self.loads.f_ext = &self._f[0, 0]

    def restart(self):
        """Forget the earlier acceleration of the two-step method (after a jump of state, load or step)."""
        self.stepper.fresh = 1

    def run(self, q, v, Py_ssize_t steps, double t=0.0, Py_ssize_t every=0):
        """Advance `steps` steps from time t.

        every = 0: returns the last (t, q, v). every = k: arrays (n,), (n, nq), (n, nv) with the start and every k-th step.
        """
        q_, v_ = np.array(q, dtype=np.float64), np.array(v, dtype=np.float64)
        if q_.shape != (self.nq,) or v_.shape != (self.nv,):
            raise ValueError(f"state: shapes {q_.shape} and {v_.shape} given, ({self.nq},) and ({self.nv},) expected")
        if steps < 0 or every < 0:
            raise ValueError(f"steps: {steps} and every: {every} must be >= 0")
        cdef double[::1] qm = q_
        cdef double[::1] vm = v_
        cdef Py_ssize_t k, block, done = 0
        times, qs, vs = [t], [q_.copy()], [v_.copy()]
        if self.nv == 0:
            raise ValueError("run: the system has no coordinate")
        self.error = None
        while done < steps:
            block = min(every if every else steps, steps - done)
            with nogil:
                for k in range(block):
                    advance(&self.stepper, t + (done + k) * self.stepper.h, &qm[0], &vm[0])
            done += block
            if self.error is not None:
                raise self.error
            if every:
                times.append(t + done * self.stepper.h)
                qs.append(q_.copy())
                vs.append(v_.copy())
        if every:
            return np.array(times), np.array(qs), np.array(vs)
        return t + steps * self.stepper.h, q_, v_


# --- stability ----------------------------------------------------------------------------------------------------------------------------


def amplification(method, double w, double zeta=0.0, double psi=0.5, double phi=0.5):
    """Matrix that one step applies to (x, h v, h^2 a_prev) of x'' + 2 zeta omega x' + omega^2 x = 0, w = omega h."""
    a = np.array([-w * w, -2.0 * zeta * w, 0.0])
    x, v, old = np.eye(3)
    if method == "symplectic_euler":
        return np.array([x + v + a, v + a, a])
    if method == "two_step":
        return np.array([x + v + (0.5 + psi) * a - psi * old, v + (1.0 + phi) * a - phi * old, a])
    if method == "implicit_euler":
        a = (a - w * w * v) / (1.0 + 2.0 * zeta * w + w * w)
        return np.array([x + v + a, v + a, a])
    if method == "rk4":
        A = np.array([[0.0, 1.0, 0.0], a, [0.0, 0.0, 0.0]])
        return np.eye(3) + A @ (np.eye(3) + A / 2.0 @ (np.eye(3) + A / 3.0 @ (np.eye(3) + A / 4.0)))
    raise ValueError(f"method: {method!r} is not one of {', '.join(_METHODS)}")


def stability_limit(method, double zeta=0.0, double psi=0.5, double phi=0.5):
    """Largest omega h below which a step never amplifies an oscillator of damping ratio zeta; inf if there is none, 0 if any step does."""
    if not 0.0 <= zeta < 1e3:
        raise ValueError(f"zeta: {zeta} is not in [0, 1000)")

    def stable(w):
        M = amplification(method, w, zeta, psi, phi)
        return np.abs(np.linalg.eigvals(M[:2, :2] if method == "rk4" else M)).max() <= 1.0 + 1e-8

    grid = np.concatenate([np.linspace(0.05, 4.0, 80), np.geomspace(5.0, 1e6, 30)])
    low = 0.0
    for w in grid:
        if not stable(w):
            break
        low = w
    else:
        return np.inf
    if low == 0.0:
        return 0.0
    high = w
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


def step_limit(tree, method, q=None, locked=(), double psi=0.5, double phi=0.5):
    """Largest stable step in s of `method` for the small vibrations of a tree at rest at q (with the damping its modes and joints have)."""
    from scipy.linalg import eigh

    keep = np.setdiff1d(np.arange(tree.nv), np.asarray(locked, dtype=int))
    M = tree.mass_matrix(tree.neutral() if q is None else q)[np.ix_(keep, keep)]
    values, X = eigh(tree.stiffness_matrix()[np.ix_(keep, keep)], M)
    rates = np.einsum("ia,ij,ja->a", X, tree.damping_matrix()[np.ix_(keep, keep)], X)
    limit = np.inf
    for value, rate in zip(values, rates, strict=True):
        omega = np.sqrt(max(value, 0.0))
        if omega > 1e-9 * np.sqrt(values.max()):
            zeta = rate / (2.0 * omega)
            limit = min(limit, stability_limit(method, round(float(zeta), 9), psi, phi) / omega)
    return limit
