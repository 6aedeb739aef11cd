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

A rotation about one axis that is kept as (cos, sin) is turned by the angle of the step, its norm held likewise.

Changing the step or the forces abruptly breaks the two-step formula: call `restart`. A switch inside a step costs order.

Closed loops: the accelerations of a step are those of the loops, so a step leaves the loops open by its own error; after it the positions
are closed and the velocities projected (coordinate projection, which keeps the order of the method; Eich 1993).
"""

import numpy as np

from cpython.ref cimport PyObject
from libc.math cimport isfinite
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport (
    Quat, Vec3, add, cross, exponential, mul, put, put_quat, quat, quat_multiply, renormalized, rotate, vec, xyz,
)
from rt_kernels.multibody cimport flexible_recursion
from rt_kernels.multibody.flexible cimport FlexibleTree
from rt_kernels.multibody.flexible_recursion cimport Model
from rt_kernels.multibody.tree cimport Tree, TreeModel, TreeWork
from rt_kernels.offline.tree_loops cimport ClosedTree, Loops, loops_dynamics, loops_settle


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


cdef struct Circle:
    int iq                # cosine and sine of the angle in q
    int iv                # its rate in v
    int jq, jv            # linear part of a planar joint (position in parent axes, velocity in body axes), -1 without


cdef struct Stepper:
    int method
    int nq, nv
    int n_straight        # coordinates whose rate is a velocity: pairs below
    int *straight_q
    int *straight_v
    int n_rotations
    Rotation *rotation
    int n_circles
    Circle *circle
    Accelerate accelerate
    void *state
    double h, psi, phi
    int fresh             # 1: the two-step method has no earlier acceleration
    double *work          # 12 nv + 2 nq


cdef enum Failure:
    NONE = 0
    ASKED = 1             # the user's function raised: the error is kept
    SINGULAR = 2          # the loops have no unique acceleration
    OPEN = 3              # the loops do not close after the step
    NOT_FINITE = 4


cdef struct Plant:
    Model *flexible       # one of these three
    TreeModel *rigid
    Loops *loops
    TreeWork *work        # of the rigid tree
    int nv
    double *tau           # nv
    double *f_ext         # bodies x 6
    double *a_given       # nv
    unsigned char *known  # nv, NULL: nothing is given
    double *torque        # nv: tau, and what was found where the acceleration is given
    double *reaction      # cuts x 6
    void *asked           # the Motion whose functions are asked before each evaluation, or NULL
    int failed


# --- moves on the coordinate space ------------------------------------------------------------------------------------------------------


cdef inline Quat turn(Quat q, Vec3 u) noexcept nogil:
    """q exp(u), u a rotation vector in body axes; the norm is held by one Newton step, without division or root."""
    return renormalized(quat_multiply(q, exponential(u)))


cdef inline void turn_circle(const double *q, double angle, double *out) noexcept nogil:
    """out = (cos, sin) of q turned by `angle`, norm held as above."""
    cdef double sine, cosine, c, d, k
    sincos(angle, &sine, &cosine)
    c = q[0] * cosine - q[1] * sine
    d = q[1] * cosine + q[0] * sine
    k = 0.5 * (3.0 - (c * c + d * d))
    out[0] = k * c; out[1] = k * d


cdef void shift(const Stepper *s, const double *q, const double *u, double *out) noexcept nogil:
    """out = q moved by u (velocity coordinates): linear part of a free joint in body axes of the middle of the move."""
    cdef const Rotation *r
    cdef const Circle *c
    cdef Quat q_middle
    cdef double middle[2]
    cdef int i
    for i in range(s.n_straight):
        out[s.straight_q[i]] = q[s.straight_q[i]] + u[s.straight_v[i]]
    for i in range(s.n_rotations):
        r = &s.rotation[i]
        if r.jq >= 0:
            q_middle = turn(quat(q + r.iq), mul(0.5, vec(u + r.iv)))
            put(add(vec(q + r.jq), rotate(q_middle, vec(u + r.jv))), out + r.jq)
        put_quat(turn(quat(q + r.iq), vec(u + r.iv)), out + r.iq)
    for i in range(s.n_circles):
        c = &s.circle[i]
        if c.jq >= 0:
            turn_circle(q + c.iq, 0.5 * u[c.iv], middle)
            out[c.jq] = q[c.jq] + middle[0] * u[c.jv] - middle[1] * u[c.jv + 1]
            out[c.jq + 1] = q[c.jq + 1] + middle[1] * u[c.jv] + middle[0] * u[c.jv + 1]
        turn_circle(q + c.iq, u[c.iv], out + c.iq)


cdef void chart(const Stepper *s, const double *q, const double *u, double *out) noexcept nogil:
    """out = q moved by u; linear part of a free joint in parent axes."""
    cdef const Rotation *r
    cdef const Circle *c
    cdef int i
    for i in range(s.n_straight):
        out[s.straight_q[i]] = q[s.straight_q[i]] + u[s.straight_v[i]]
    for i in range(s.n_rotations):
        r = &s.rotation[i]
        if r.jq >= 0:
            put(add(vec(q + r.jq), vec(u + r.jv)), out + r.jq)
        put_quat(turn(quat(q + r.iq), vec(u + r.iv)), out + r.iq)
    for i in range(s.n_circles):
        c = &s.circle[i]
        if c.jq >= 0:
            out[c.jq] = q[c.jq] + u[c.jv]
            out[c.jq + 1] = q[c.jq + 1] + u[c.jv + 1]
        turn_circle(q + c.iq, u[c.iv], out + c.iq)


cdef void chart_rate(const Stepper *s, const double *q, const double *u, const double *v, double *rate) noexcept nogil:
    """u_dot of `chart` at the moved coordinates q."""
    cdef const Rotation *r
    cdef const Circle *c
    cdef Vec3 a, b
    cdef int i
    for i in range(s.n_straight):
        rate[s.straight_v[i]] = v[s.straight_v[i]]
    for i in range(s.n_rotations):
        r = &s.rotation[i]
        # v + u x v / 2 + u x (u x v) / 12
        a = cross(vec(u + r.iv), vec(v + r.iv))
        b = cross(vec(u + r.iv), a)
        put(add(add(vec(v + r.iv), mul(0.5, a)), xyz(b.x / 12.0, b.y / 12.0, b.z / 12.0)), rate + r.iv)
        if r.jq >= 0:
            put(rotate(quat(q + r.iq), vec(v + r.jv)), rate + r.jv)
    for i in range(s.n_circles):
        c = &s.circle[i]
        rate[c.iv] = v[c.iv]
        if c.jq >= 0:
            rate[c.jv] = q[c.iq] * v[c.jv] - q[c.iq + 1] * v[c.jv + 1]
            rate[c.jv + 1] = q[c.iq + 1] * v[c.jv] + q[c.iq] * v[c.jv + 1]


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


cdef void flexible_accelerate(void *state, double t, double h, const double *q, const double *v, double *a) noexcept nogil:
    cdef Plant *x = <Plant *>state
    if x.asked != NULL:
        ask(x, t, q, v)
    memcpy(a, x.a_given, x.nv * sizeof(double))
    flexible_recursion.hybrid_dynamics(x.flexible, h, q, v, x.tau, x.f_ext, x.known, a, x.torque)


cdef void rigid_accelerate(void *state, double t, double h, const double *q, const double *v, double *a) noexcept nogil:
    cdef Plant *x = <Plant *>state
    if x.asked != NULL:
        ask(x, t, q, v)
    memcpy(x.torque, x.tau, x.nv * sizeof(double))
    if x.known == NULL:
        x.rigid.kernels.forward_dynamics(x.rigid, x.work, q, v, x.tau, x.f_ext, a)
    else:
        memcpy(a, x.a_given, x.nv * sizeof(double))
        x.rigid.kernels.hybrid_dynamics(x.rigid, x.work, q, v, x.torque, a, x.known, x.f_ext)


cdef void closed_accelerate(void *state, double t, double h, const double *q, const double *v, double *a) noexcept nogil:
    cdef Plant *x = <Plant *>state
    if x.asked != NULL:
        ask(x, t, q, v)
    memcpy(x.torque, x.tau, x.nv * sizeof(double))
    memcpy(a, x.a_given, x.nv * sizeof(double))
    if not loops_dynamics(x.loops, q, v, x.torque, x.f_ext, x.known, a, x.reaction) and x.failed == NONE:
        x.failed = SINGULAR


cdef void ask(Plant *x, double t, const double *q, const double *v) noexcept with gil:
    """Loads and given accelerations of the user's functions of (t, q, v)."""
    motion = <Motion><PyObject *>x.asked
    if x.failed == NONE:
        try:
            (<Motion>motion)._ask(t, copied(q, (<Motion>motion).nq), copied(v, (<Motion>motion).nv))
        except Exception as error:
            (<Motion>motion)._error = error
            x.failed = ASKED


cdef void python_accelerate(void *state, double t, double h, const double *q, const double *v, double *a) noexcept with gil:
    """A system given as a function: a = f(t, q, v) or, implicit, f(t, q, v, h)."""
    cdef int i
    motion = <Motion><PyObject *>state
    cdef Motion self = <Motion>motion
    cdef double[::1] out
    try:
        q_, v_ = copied(q, self.nq), copied(v, self.nv)
        value = self._system(t, q_, v_, h) if h > 0.0 else self._system(t, q_, v_)
        out = _numbers("a", value, (self.nv,))
        for i in range(self.nv):
            a[i] = out[i]
    except Exception as error:
        if self.plant.failed == NONE:
            self._error = error
            self.plant.failed = ASKED
        for i in range(self.nv):
            a[i] = 0.0


cdef object copied(const double *x, int n):
    cdef double[::1] view
    out = np.empty(n)
    if n:
        view = out
        memcpy(&view[0], x, n * sizeof(double))
    return out


def _numbers(name, value, shape):
    """`value` as a new array of float64, checked. Raises ValueError with name, value and limit."""
    out = np.array(value, dtype=np.float64, order="C")
    if out.shape != shape:
        raise ValueError(f"{name}: shape {out.shape} given, {shape} expected")
    if not np.isfinite(out).all():
        index = np.argwhere(~np.isfinite(out))[0]
        raise ValueError(f"{name}: {out[tuple(index)]} at index {index.tolist()}, finite numbers expected")
    return out


_METHODS = {"symplectic_euler": SYMPLECTIC_EULER, "two_step": TWO_STEP, "rk4": RK4, "implicit_euler": IMPLICIT_EULER}
_ROTATIONS = ("free", "spherical", "planar", "continuous")


cdef class Motion:
    """A system, an integrator and a step.

    system   Tree, FlexibleTree or ClosedTree, or a callable a = f(t, q, v) (with method "implicit_euler": f(t, q, v, h))
    method   "symplectic_euler" | "two_step" | "rk4" | "implicit_euler" (springs and dampers of a FlexibleTree)
    step     s
    nv       number of velocities, for a callable
    rotations  for a callable: [(first of q, first of v, "free" | "spherical" | "planar" | "continuous")] as `rotations()` of a tree
    psi, phi parameters of the two-step method; other values than 1/2 are weakly unstable without damping

    Loads and prescribed accelerations of a tree: `apply`. Raises ValueError naming the argument, the value and the limit.
    """

    cdef Stepper stepper
    cdef Plant plant
    cdef readonly int nq, nv
    cdef readonly object tree          # the Tree, FlexibleTree or ClosedTree, None: a callable
    cdef str _method
    cdef object _system, _values, _functions, _error
    cdef double[::1] _tau
    cdef double[:, ::1] _f_ext
    cdef double[::1] _a
    cdef double[::1] _torque
    cdef double[::1] _reaction
    cdef unsigned char[::1] _known
    cdef unsigned char[::1] _mask      # known, and what the tree holds

    def __cinit__(self, system, str method, double step, *, nv=None, rotations=(), double psi=0.5, double phi=0.5):
        cdef Stepper *s = &self.stepper
        if method not in _METHODS:
            raise ValueError(f"method: {method!r} is not one of {', '.join(_METHODS)}")
        if not (step > 0.0 and step < 1e6):
            raise ValueError(f"step: {step} s is not in (0, 1e6)")
        for name, value in (("psi", psi), ("phi", phi)):
            if not 0.0 <= value <= 2.0:
                raise ValueError(f"{name}: {value} is not in [0, 2]")
        if method == "implicit_euler" and isinstance(system, (Tree, ClosedTree)):
            raise ValueError(f"method: {method!r} takes springs and dampers, a {type(system).__name__} has none; one of "
                             f"{', '.join(name for name in _METHODS if name != method)} is needed")
        self._method, self._system = method, system
        s.method = _METHODS[method]
        s.h = step; s.psi = psi; s.phi = phi; s.fresh = 1
        if isinstance(system, (Tree, FlexibleTree, ClosedTree)):
            self.tree = system
            rotations = self._take_tree(system.tree if isinstance(system, ClosedTree) else system)
        else:
            if not callable(system) or nv is None:
                raise ValueError("system: a Tree, FlexibleTree or ClosedTree, or a callable with nv, is needed")
            rotations = list(rotations)
            for entry in rotations:
                if len(entry) != 3 or entry[2] not in _ROTATIONS:
                    raise ValueError(f"rotations: {entry!r} is not (first of q, first of v, one of {', '.join(_ROTATIONS)})")
            self.nv = nv
            self.nq = nv + len(rotations)
            s.accelerate = python_accelerate
            s.state = <PyObject *>self
        s.nq = self.nq; s.nv = self.nv
        s.rotation = <Rotation *>calloc(len(rotations) + 1, sizeof(Rotation))
        s.circle = <Circle *>calloc(len(rotations) + 1, sizeof(Circle))
        s.straight_q = <int *>calloc(max(self.nv, 1), sizeof(int))
        s.straight_v = <int *>calloc(max(self.nv, 1), sizeof(int))
        s.work = <double *>calloc(12 * self.nv + 2 * self.nq + 1, sizeof(double))
        if s.rotation == NULL or s.circle == NULL or s.straight_q == NULL or s.straight_v == NULL or s.work == NULL:
            raise MemoryError("no memory for the integrator")
        self._chart(rotations)

    cdef object _take_tree(self, object tree):
        """Size, kernels and rotations of a tree, without loads."""
        cdef Plant *x = &self.plant
        self.nq = tree.nq; self.nv = tree.nv
        if isinstance(self.tree, FlexibleTree):
            x.flexible = &(<FlexibleTree>tree).model
            self.stepper.accelerate = flexible_accelerate
        elif isinstance(self.tree, Tree):
            x.rigid = (<Tree>tree).model
            x.work = (<Tree>tree).work
            self.stepper.accelerate = rigid_accelerate
        else:
            x.loops = &(<ClosedTree>self.tree).loops
            self.stepper.accelerate = closed_accelerate
            self._reaction = np.zeros(6 * len(self.tree.cuts) + 1)
            x.reaction = &self._reaction[0]
        self.stepper.state = x
        x.nv = self.nv
        self._torque = np.zeros(self.nv + 1)
        x.torque = &self._torque[0]
        self.apply()
        return tree.rotations()

    cdef int _chart(self, list rotations) except -1:
        """Which coordinates are straight, which turn, and how."""
        cdef Stepper *s = &self.stepper
        cdef int i
        taken_q, taken_v = set(), set()
        for iq, iv, kind in rotations:
            if kind in ("free", "spherical"):
                linear = 3 if kind == "free" else 0
                s.rotation[s.n_rotations] = Rotation(iq + linear, iv + linear, iq if linear else -1, iv if linear else -1)
                s.n_rotations += 1
            else:
                linear = 2 if kind == "planar" else 0
                s.circle[s.n_circles] = Circle(iq + linear, iv + linear, iq if linear else -1, iv if linear else -1)
                s.n_circles += 1
            n = linear + (3 if kind in ("free", "spherical") else 1)
            taken_q.update(range(iq, iq + n + 1))
            taken_v.update(range(iv, iv + n))
        straight = list(zip([k for k in range(self.nq) if k not in taken_q], [k for k in range(self.nv) if k not in taken_v], strict=True))
        s.n_straight = len(straight)
        for i, (k_q, k_v) in enumerate(straight):
            s.straight_q[i] = k_q
            s.straight_v[i] = k_v
        return 0

    def __dealloc__(self):
        free(self.stepper.rotation)
        free(self.stepper.circle)
        free(self.stepper.straight_q)
        free(self.stepper.straight_v)
        free(self.stepper.work)

    def apply(self, tau=None, f_ext=None, known=None, a=None):
        """Loads of a tree from now on: tau (nv,), f_ext (bodies, 6), and accelerations a (nv,) given where known (nv,) is True.

        Each of tau, f_ext and a may be a function of (t, q, v), which is asked at every stage of a step.
        """
        if self.tree is None:
            raise ValueError("apply: only a tree takes loads")
        closed = isinstance(self.tree, ClosedTree)
        tree = self.tree.tree if closed else self.tree
        shapes = {"tau": (self.nv,), "f_ext": (tree.n_bodies, 6), "a": (self.nv,)}
        given = {"tau": tau, "f_ext": f_ext, "a": a}
        values = {name: np.zeros(shape) if given[name] is None or callable(given[name]) else _numbers(name, given[name], shape)
                  for name, shape in shapes.items()}
        mask = np.zeros(self.nv, dtype=np.uint8) if known is None else np.array(known, dtype=np.uint8)
        if mask.shape != (self.nv,):
            raise ValueError(f"known: shape {mask.shape} given, {(self.nv,)} expected")
        if mask[tree.nj:].any():
            raise ValueError("known: modal coordinates cannot have a given acceleration")
        if closed:
            self.tree.mask(mask)
        self._functions = {name: (value, shapes[name]) for name, value in given.items() if callable(value)}
        self._values, self._known, self._mask = values, mask, mask
        self._tau, self._f_ext, self._a = values["tau"], values["f_ext"], values["a"]
        self.plant.f_ext = &self._f_ext[0, 0]
        if self.nv:
            self.plant.tau, self.plant.a_given = &self._tau[0], &self._a[0]
        self.plant.asked = <PyObject *>self if self._functions else NULL

    def _ask(self, double t, q, v):
        """The user's functions at (t, q, v), into the loads."""
        for name, (function, shape) in self._functions.items():
            self._values[name][...] = _numbers(f"{name} at t = {t:g} s", function(t, q, v), shape)

    def _hold(self):
        """Before a run: the mask of given accelerations with what the tree holds now."""
        if self.tree is None:
            return
        mask = np.array(self._known)
        if isinstance(self.tree, ClosedTree):
            self.tree.check_locks()
        elif isinstance(self.tree, FlexibleTree):
            mask |= self.tree.locked
            self._values["a"][self.tree.locked] = 0.0
        self._mask = mask
        self.plant.known = &self._mask[0] if mask.any() else NULL

    def restart(self):
        """Forget the earlier acceleration of the two-step method (after a jump of state, load or step)."""
        self.stepper.fresh = 1

    def _state(self, q, v):
        """(q, v) as new arrays; those of closed loops must be closed."""
        q_, v_ = _numbers("state: q", q, (self.nq,)), _numbers("state: v", v, (self.nv,))
        if self.nv == 0:
            raise ValueError("state: the system has no coordinate")
        if isinstance(self.tree, ClosedTree):
            gap, rate = self.tree.gap(q_), np.abs(v_ - self.tree.project(q_, v_)).max()
            if not (gap < 1e-9 and rate <= 1e-9 * (1.0 + np.abs(v_).max())):
                raise ValueError(f"state: the loops are open by {gap:.3g}, velocities off by {rate:.3g}, limit 1e-9: `close` and `project` "
                                 "first")
        return q_, v_

    def evaluate(self, double t, q, v):
        """(tau, a) of a tree at one state under its loads: forces (nv,), found where the acceleration is given, and accelerations (nv,)."""
        if self.tree is None:
            raise ValueError("evaluate: only a tree has forces")
        cdef double[::1] q_, v_, a_
        q_, v_ = self._state(q, v)
        out = np.zeros(self.nv)
        a_ = out
        self._hold()
        self._error, self.plant.failed = None, NONE
        with nogil:
            self.stepper.accelerate(self.stepper.state, t, 0.0, &q_[0], &v_[0], &a_[0])
        if self.plant.failed != NONE:
            self._raise(0, t, np.asarray(q_), np.asarray(v_))
        if not np.isfinite(out).all():
            raise ValueError(f"evaluate: acceleration {int(np.argmin(np.isfinite(out)))} at t = {t:g} s is not finite: its coordinate "
                             "moves no mass, or the state is beyond all bounds")
        return np.array(self._torque[: self.nv]), out

    def run(self, q, v, Py_ssize_t steps, double t=0.0, Py_ssize_t every=0, bint torques=False):
        """Advance `steps` steps from time t.

        every = 0: returns the last (t, q, v). every = k: arrays (n,), (n, nq), (n, nv) with the start and every k-th step.
        torques: one more, the forces (nv,) or (n, nv) of a tree at these states, found where accelerations are given.

        Raises ValueError naming the step, its length and its limit when a coordinate is no longer finite or loops do not close.
        """
        if steps < 0 or every < 0:
            raise ValueError(f"steps: {steps} and every: {every} must be >= 0")
        q_, v_ = self._state(q, v)
        cdef double[::1] qm = q_
        cdef double[::1] vm = v_
        cdef Py_ssize_t k = 0, block, done = 0
        times, qs, vs = [t], [q_.copy()], [v_.copy()]
        while done < steps:
            block = min(every if every else steps, steps - done)
            self._hold()
            self._error, self.plant.failed = None, NONE
            with nogil:
                for k in range(block):
                    advance(&self.stepper, t + (done + k) * self.stepper.h, &qm[0], &vm[0])
                    if self.plant.loops != NULL and self.plant.failed == NONE and not loops_settle(self.plant.loops, &qm[0], &vm[0]):
                        self.plant.failed = OPEN
                    if self.plant.failed == NONE and not finite(&qm[0], self.nq) * finite(&vm[0], self.nv):
                        self.plant.failed = NOT_FINITE
                    if self.plant.failed != NONE:
                        break
            if self.plant.failed != NONE:
                self._raise(done + k + 1, t + (done + k) * self.stepper.h, qs[0], vs[0], q_, v_)
            done += block
            if every:
                times.append(t + done * self.stepper.h)
                qs.append(q_.copy())
                vs.append(v_.copy())
        if every:
            out = np.array(times), np.array(qs), np.array(vs)
            return (*out, np.array([self.evaluate(*state)[0] for state in zip(*out, strict=True)])) if torques else out
        out = t + steps * self.stepper.h, q_, v_
        return (*out, self.evaluate(*out)[0]) if torques else out

    def _raise(self, Py_ssize_t number, double t, q0, v0, q=None, v=None):
        """The error of a failed step; (q0, v0): where the run began, (q, v): where it ended."""
        self.stepper.fresh = 1
        if self.plant.failed == ASKED:
            raise self._error
        where = f"step {number} (from t = {t:g} s)"
        if self.plant.failed == SINGULAR:
            raise ValueError(f"{where}: the mechanism is singular")
        lost = "the loops do not close after it" if self.plant.failed == OPEN else f"{self._lost(q, v)} is not finite after it"
        raise ValueError(f"{where}: {lost}; its length is {self.stepper.h:g} s, the limit of {self._method} {self._limit(q0)}")

    def _lost(self, q, v):
        """Name of the first coordinate that is not finite."""
        for name, part, array in (("q", 0, q), ("v", 1, v)):
            for index in np.flatnonzero(~np.isfinite(array))[:1]:
                if self.tree is not None:
                    tree = self.tree.tree if isinstance(self.tree, ClosedTree) else self.tree
                    for joint in tree.joint_names:
                        if index in range(*tree.coordinates(joint)[part].indices(array.size)):
                            return f"{name}[{index}] (joint '{joint}')"
                    for body in tree.names:
                        if index in range(*tree.modal_coordinates(body)[part].indices(array.size)):
                            return f"{name}[{index}] (mode of body '{body}')"
                return f"{name}[{index}]"

    def _limit(self, q):
        """The stable step of the small vibrations about q, in words."""
        if not isinstance(self.tree, FlexibleTree):
            return "is not known: it has no springs of its own"
        limit = step_limit(self.tree, self._method, q, np.flatnonzero(self._mask), self.stepper.psi, self.stepper.phi)
        return f"is {limit:g} s for small vibrations about the start"


cdef bint finite(const double *x, int n) noexcept nogil:
    cdef int i
    for i in range(n):
        if not isfinite(x[i]):
            return 0
    return 1


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
    """Largest stable step in s of `method` for the small vibrations of a `FlexibleTree` at rest at q (with the damping its modes and joints
    have); inf without springs. locked: further coordinates that do not move, beside those that the tree holds."""
    from scipy.linalg import eigh

    keep = np.setdiff1d(np.arange(tree.nv), np.union1d(np.asarray(locked, dtype=int), np.flatnonzero(tree.locked)))
    if not keep.size:
        return np.inf
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
