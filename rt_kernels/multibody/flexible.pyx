# distutils: extra_compile_args = -O3
"""Tree of rigid and flexible bodies: Python face of the recursion. Equations, frames, sources: flexible_recursion.pyx."""

import numpy as np

from libc.stdlib cimport calloc, free

from rt_kernels.multibody cimport flexible_recursion as recursion
from rt_kernels.multibody.flexible_recursion cimport CONTINUOUS, FIXED, FREE, PRISMATIC, REVOLUTE, SCREW, SPHERICAL, Body, Model

from rt_kernels.model.craft_file import named, read_craft

_JOINTS = {"fixed": (FIXED, 0, 0), "revolute": (REVOLUTE, 1, 1), "prismatic": (PRISMATIC, 1, 1),
           "spherical": (SPHERICAL, 4, 3), "free": (FREE, 7, 6), "continuous": (CONTINUOUS, 2, 1), "screw": (SCREW, 1, 1)}


cdef class FlexibleTree:
    """Dynamics of a tree of `rt_kernels.model.craft.Link` (rigid and modal bodies).

    links    sequence of Link, any order, parents named
    gravity  (3,) m/s2, inertial axes
    rates    "exact" (port rate consistent with the exponential of the port rotation) or "first_order" (psi eta_dot)

    q is [joint coordinates | modal coordinates], v likewise, bodies in `names` order (parents first, otherwise as given).
    `f_ext` (bodies, 6): wrench on each body at its joint frame origin, body axes, force first. A massless link on a fixed joint
    marks a place on a flexible body where a force acts or a motion is read.

    Raises ValueError naming the link or argument, the value and the limit.
    """

    def __cinit__(self, links, gravity=(0.0, 0.0, 0.0), str rates="exact"):
        cdef Body *b
        cdef Body *parent = NULL
        cdef double *at
        cdef int i, s, sp
        cdef Py_ssize_t total = 0
        if rates not in ("exact", "first_order"):
            raise ValueError(f"rates: {rates!r} is not one of 'exact', 'first_order'")
        g = np.asarray(gravity, dtype=float)
        if g.shape != (3,) or not np.all(np.isfinite(g)):
            raise ValueError(f"gravity: three finite numbers in m/s2 expected, got {gravity!r}")
        links = _parents_first(links)
        for link in links:
            if link.joint not in _JOINTS:
                raise ValueError(f"link {link.name!r}: a tree with flexible bodies has no {link.joint} joint, limit {', '.join(_JOINTS)}")
            if link.joint == "continuous" and link.stiffness:
                raise ValueError(f"link {link.name!r}: stiffness = {link.stiffness} N.m/rad, limit 0: a continuous joint has no rest angle")
        self.links = tuple(links)
        self.names = tuple(link.name for link in links)
        self._index = {name: k for k, name in enumerate(self.names)}
        self._bodies = [link.body for link in links]
        self.model.n = len(links)
        self.model.first_order = rates == "first_order"
        for i in range(3):
            self.model.gravity[i] = g[i]
        self.model.body = <Body *>calloc(len(links), sizeof(Body))
        # sizes
        for link in links:
            s = link.body.n_modes
            sp = links[self._index[link.parent]].body.n_modes if link.parent is not None else 0
            total += s * 9 + s * s * 9 + s * 3 + s * s * 3 + 3 * s * s + s * 6 + s * s + 2 * s + s * 9 + 12 * sp
        self.pool_size = max(total, 1)
        self.pool = <double *>calloc(self.pool_size, sizeof(double))
        if self.model.body == NULL or self.pool == NULL:
            raise MemoryError("no memory for the tree")
        # coordinates: joints first, modes after
        iq = iv = 0
        for i, link in enumerate(links):
            b = &self.model.body[i]
            code, nq, nd = _JOINTS[link.joint]
            b.joint = code; b.nd = nd; b.iq = iq; b.iv = iv
            b.s = link.body.n_modes
            iq += nq; iv += nd
        self.model.nj = iv
        for i in range(self.model.n):
            b = &self.model.body[i]
            b.eq = iq; b.ev = iv
            iq += b.s; iv += b.s
        self.model.nq = iq; self.model.nv = iv
        self.nq = iq; self.nv = iv; self.nj = self.model.nj
        # constants
        at = self.pool
        for i, link in enumerate(links):
            b = &self.model.body[i]
            s = b.s
            b.parent = -1 if link.parent is None else self._index[link.parent]
            b.armature = link.armature; b.stiffness = link.stiffness; b.damping = link.damping; b.pitch = link.pitch
            body = link.body
            b.mass = body.mass
            _fill(b.axis, link.axis); _fill(b.d0, body.first_moment); _fill(b.E0, body.second_moment)
            p_port, R_port, phi, psi = np.zeros(3), np.eye(3), None, None
            if link.parent is not None:
                parent = &self.model.body[b.parent]
                p_port, R_port, phi, psi = self._bodies[b.parent].port_arrays(link.port)
            _fill(b.p_port, p_port)
            _fill(b.p_off, R_port @ link.position)
            _fill(b.R0, R_port @ link.rotation)
            at = _place(&b.N, at, body.N)
            at = _place(&b.Q, at, body.kernel_Q())
            at = _place(&b.P, at, body.P)
            at = _place(&b.Y, at, body.kernel_Y())
            at = _place(&b.Mee, at, body.modal_mass)
            at = _place(&b.K, at, body.stiffness)
            at = _place(&b.C, at, body.damping)
            b.Mem = at; at += 6 * s
            b.Maa = at; at += s * s
            b.ze = at; at += s
            b.y = at; at += s
            b.G = at; at += 9 * s
            if b.parent >= 0 and parent.s > 0 and phi is not None:
                at = _place(&b.phi, at, phi)
                at = _place(&b.psi, at, psi)
                b.J = at; at += 6 * parent.s
        recursion.prepare(&self.model)

    @classmethod
    def from_toml(cls, path):
        """Tree of a craft file, see `rt_kernels.model.craft_file`. Raises ValueError with file, body, key, value and limit."""
        craft = read_craft(path)
        with named(str(path)):
            return cls(craft.links, craft.gravity, craft.rates)

    def __dealloc__(self):
        free(self.model.body)
        free(self.pool)

    # --- arguments

    def _vector(self, str name, value, int size):
        array = np.ascontiguousarray(value, dtype=np.float64)
        if array.shape != (size,):
            raise ValueError(f"{name}: shape {array.shape} given, ({size},) expected")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name}: not finite at index {int(np.argmin(np.isfinite(array)))}")
        return array

    def _loads(self, f_ext):
        if f_ext is None:
            return np.zeros((self.model.n, 6))
        array = np.ascontiguousarray(f_ext, dtype=np.float64)
        if array.shape != (self.model.n, 6):
            raise ValueError(f"f_ext: shape {array.shape} given, ({self.model.n}, 6) expected (bodies; force first, body axes)")
        if not np.all(np.isfinite(array)):
            raise ValueError("f_ext: not finite")
        return array

    def index(self, str name):
        """Row of the named body in `f_ext`, `reactions` and `poses`."""
        if name not in self._index:
            raise ValueError(f"no body named {name!r}; there are {', '.join(self.names)}")
        return self._index[name]

    def q_slice(self, str name):
        """Slices of q that hold (joint, modes) of the named body."""
        cdef Body *b = &self.model.body[self.index(name)]
        nq = {code: nq for code, nq, _ in _JOINTS.values()}[b.joint]
        return slice(b.iq, b.iq + nq), slice(b.eq, b.eq + b.s)

    def v_slice(self, str name):
        """Slices of v that hold (joint, modes) of the named body."""
        cdef Body *b = &self.model.body[self.index(name)]
        return slice(b.iv, b.iv + b.nd), slice(b.ev, b.ev + b.s)

    def neutral(self):
        """q with all joints at zero and no deformation."""
        cdef int i
        q = np.zeros(self.nq)
        for i in range(self.model.n):
            if self.model.body[i].joint == SPHERICAL:
                q[self.model.body[i].iq + 3] = 1.0
            elif self.model.body[i].joint == FREE:
                q[self.model.body[i].iq + 6] = 1.0
            elif self.model.body[i].joint == CONTINUOUS:
                q[self.model.body[i].iq] = 1.0
        return q

    def quaternions(self):
        """[(first index in q, first index in v, 'free' | 'spherical')] of the joints that carry a quaternion."""
        cdef int i
        return [(self.model.body[i].iq, self.model.body[i].iv, "free" if self.model.body[i].joint == FREE else "spherical")
                for i in range(self.model.n) if self.model.body[i].joint in (SPHERICAL, FREE)]

    # --- dynamics

    def forward_dynamics(self, q, v, tau, f_ext=None, double step=0.0):
        """Accelerations (nv,) for given forces `tau` (nv,; modal part: loads beside -K eta - C eta_dot).

        `step` > 0 s: springs and dampers taken at the end of a step of that length (implicit linear Euler).
        """
        return self.hybrid_dynamics(q, v, tau, np.zeros(self.nv), np.zeros(self.nv, dtype=bool), f_ext, step)[1]

    def hybrid_dynamics(self, q, v, tau, a, known, f_ext=None, double step=0.0):
        """(tau, a) where `known` (nv,) booleans tell whose acceleration is given. Modal coordinates cannot be given: they are released."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef double[::1] tau_ = self._vector("tau", tau, self.nv)
        cdef double[:, ::1] f_ = self._loads(f_ext)
        mask = np.ascontiguousarray(known, dtype=np.uint8)
        if mask.shape != (self.nv,):
            raise ValueError(f"known: shape {mask.shape} given, ({self.nv},) expected")
        if mask[self.nj:].any():
            raise ValueError(f"known: modal coordinate {self.nj + int(np.argmax(mask[self.nj:]))} cannot have a given acceleration")
        if not step >= 0.0:
            raise ValueError(f"step: {step} s is not >= 0")
        if self.nv == 0:
            return np.zeros(0), np.zeros(0)
        given = self._vector("a", a, self.nv)
        result = np.where(mask, given, 0.0)
        forces = np.empty(self.nv)
        cdef double[::1] a_ = result
        cdef double[::1] t_ = forces
        cdef unsigned char[::1] k_ = mask
        with nogil:
            recursion.hybrid_dynamics(&self.model, step, &q_[0], &v_[0], &tau_[0], &f_[0, 0], &k_[0], &a_[0], &t_[0])
        if not np.isfinite(result).all():
            raise ValueError("q: a joint or mode of the links " + ", ".join(
                name for name in self.names if not all(np.isfinite(result[part]).all() for part in self.v_slice(name)))
                + " moves no mass in this configuration, or the state is beyond all bounds")
        return forces, result

    def inverse_dynamics(self, q, v, a, f_ext=None):
        """Forces (nv,) that give the accelerations `a` (nv,), modal ones included (zero there means: free vibration satisfied)."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef double[::1] a_ = self._vector("a", a, self.nv)
        cdef double[:, ::1] f_ = self._loads(f_ext)
        if self.nv == 0:
            return np.zeros(0)
        result = np.empty(self.nv)
        cdef double[::1] t_ = result
        with nogil:
            recursion.inverse_dynamics(&self.model, &q_[0], &v_[0], &a_[0], &f_[0, 0], &t_[0])
        return result

    def mass_matrix(self, q):
        """(nv, nv) mass matrix, armature included."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef Model bare = self.model
        cdef double[::1] zero = np.zeros(self.nv)
        cdef double[::1] unit = np.zeros(self.nv)
        result = np.empty((self.nv, self.nv))
        cdef double[:, ::1] M = result
        cdef int i
        for i in range(3):
            bare.gravity[i] = 0.0
        offset = np.empty(self.nv)
        cdef double[::1] o_ = offset
        if self.nv == 0:
            return result
        recursion.inverse_dynamics(&bare, &q_[0], &zero[0], &zero[0], NULL, &o_[0])
        for i in range(self.nv):
            unit[i] = 1.0
            recursion.inverse_dynamics(&bare, &q_[0], &zero[0], &unit[0], NULL, &M[i, 0])
            unit[i] = 0.0
        result -= offset[None, :]
        return 0.5 * (result + result.T)

    def stiffness_matrix(self):
        """(nv, nv) linear stiffness: joint springs and modal stiffness."""
        cdef int i
        K = np.zeros((self.nv, self.nv))
        for i in range(self.model.n):
            if self.model.body[i].nd == 1:
                K[self.model.body[i].iv, self.model.body[i].iv] = self.model.body[i].stiffness
            where = slice(self.model.body[i].ev, self.model.body[i].ev + self.model.body[i].s)
            K[where, where] = self._bodies[i].stiffness
        return K

    def damping_matrix(self):
        """(nv, nv) linear damping: joint dampers and modal damping."""
        cdef int i
        C = np.zeros((self.nv, self.nv))
        for i in range(self.model.n):
            if self.model.body[i].nd == 1:
                C[self.model.body[i].iv, self.model.body[i].iv] = self.model.body[i].damping
            where = slice(self.model.body[i].ev, self.model.body[i].ev + self.model.body[i].s)
            C[where, where] = self._bodies[i].damping
        return C

    def frequencies(self, q=None, locked=()):
        """Natural frequencies in Hz, ascending, at rest at q (neutral by default), rigid-body zeros included.

        locked: indices of velocity coordinates held fixed. Gravity and pre-stress do not enter.
        """
        from scipy.linalg import eigh

        keep = np.setdiff1d(np.arange(self.nv), np.asarray(locked, dtype=int))
        M = self.mass_matrix(self.neutral() if q is None else q)[np.ix_(keep, keep)]
        K = self.stiffness_matrix()[np.ix_(keep, keep)]
        return np.sqrt(np.clip(eigh(K, M, eigvals_only=True), 0.0, None)) / (2.0 * np.pi)

    def modes_at(self, str body, q=None):
        """Natural modes of the whole tree as the frame of one body shows them: (frequency_hz (nv,), shapes (nv, 6)).

        At rest at q (neutral by default), ascending, the rigid-body modes of a free craft first, at 0 Hz. shapes: mass-normalised
        displacement of the body's frame, its axes, translation [kg^-1/2] before rotation [rad m^-1 kg^-1/2]. Raises ValueError for an
        unknown body. Gravity and pre-stress do not enter.
        """
        from scipy.linalg import eigh

        rest = self.neutral() if q is None else q
        row = self.index(body)
        squares, vectors = eigh(self.stiffness_matrix(), self.mass_matrix(rest))
        # a free craft's rigid-body modes come out as rounding errors about zero
        squares[squares < 1e-9 * squares.max()] = 0.0
        shapes = np.array([self.twists(rest, np.ascontiguousarray(vector))[row] for vector in vectors.T])
        return np.sqrt(squares) / (2.0 * np.pi), shapes

    def balance(self, q, v):
        """dict: kinetic, potential (J), linear (3,) and angular (3,) momentum about the inertial origin, mass, centre (3,)."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef double out[12]
        if self.nv == 0:
            raise ValueError("balance: the tree has no coordinate")
        recursion.balance(&self.model, &q_[0], &v_[0], out)
        return {"kinetic": out[0], "potential": out[1], "linear": np.array([out[2], out[3], out[4]]),
                "angular": np.array([out[5], out[6], out[7]]), "mass": out[8],
                "centre": np.array([out[9], out[10], out[11]]) / out[8] if out[8] > 0.0 else np.zeros(3)}

    def poses(self, q):
        """(bodies, 3) positions and (bodies, 3, 3) rotations R_WB of the body frames."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] zero = np.zeros(self.nv)
        cdef int i, j
        p, R = np.empty((self.model.n, 3)), np.empty((self.model.n, 3, 3))
        if self.nv == 0:
            raise ValueError("poses: the tree has no coordinate")
        recursion.move(&self.model, &q_[0], &zero[0])
        recursion.place(&self.model)
        for i in range(self.model.n):
            for j in range(3):
                p[i, j] = self.model.body[i].pose[j]
            for j in range(9):
                R[i, j // 3, j % 3] = self.model.body[i].pose[3 + j]
        return p, R

    def twists(self, q, v):
        """(bodies, 6) twist of each body frame, body axes, linear first."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef int i, j
        out = np.empty((self.model.n, 6))
        if self.nv == 0:
            raise ValueError("twists: the tree has no coordinate")
        recursion.move(&self.model, &q_[0], &v_[0])
        for i in range(self.model.n):
            for j in range(6):
                out[i, j] = self.model.body[i].V[j]
        return out

    def reactions(self):
        """(bodies, 6) wrench that each joint carries to its body after the last call of a dynamics function, body axes at the joint."""
        cdef int i, j
        out = np.empty((self.model.n, 6))
        for i in range(self.model.n):
            for j in range(6):
                out[i, j] = self.model.body[i].F[j]
        return out


cdef void _fill(double *target, values):
    cdef double x
    cdef int i = 0
    for x in np.asarray(values, dtype=float).ravel():
        target[i] = x
        i += 1


cdef double *_place(double **pointer, double *at, values):
    cdef Py_ssize_t size = np.asarray(values).size
    pointer[0] = at
    _fill(at, values)
    return at + size


def _parents_first(links):
    """Links ordered so that each parent comes before its children; names unique, parents and ports known, no loop."""
    links = list(links)
    if not links:
        raise ValueError("links: at least one is needed")
    by_name = {}
    for link in links:
        if link.name in by_name:
            raise ValueError(f"link {link.name!r}: the name is used twice")
        by_name[link.name] = link
    for link in links:
        if link.parent is not None and link.parent not in by_name:
            raise ValueError(f"link {link.name!r}: parent {link.parent!r} does not exist")
        if link.parent is not None:
            by_name[link.parent].body.port_arrays(link.port)
    ordered, placed = [], set()
    while len(ordered) < len(links):
        ready = [link for link in links if link.name not in placed and (link.parent is None or link.parent in placed)]
        if not ready:
            left = sorted(set(by_name) - placed)
            raise ValueError(f"links {', '.join(left)}: they form a loop, a tree has none")
        for link in ready:
            ordered.append(link)
            placed.add(link.name)
    # every joint must move some mass
    moved = {link.name: link.body.mass > 0.0 for link in links}
    for link in reversed(ordered):
        if not moved[link.name] and link.joint != "fixed":
            raise ValueError(f"link {link.name!r}: its {link.joint} joint carries no mass")
        if moved[link.name] and link.parent is not None:
            moved[link.parent] = True
    return ordered
