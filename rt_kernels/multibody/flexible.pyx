# distutils: extra_compile_args = -O3
"""Tree of rigid and flexible bodies: Python face of the recursion. Equations, frames, sources: flexible_recursion.pyx.

What it has in common with the tree of rigid bodies, `rt_kernels.multibody.tree.Tree`, has the same names and arguments there.
"""

from dataclasses import replace

import numpy as np

from libc.math cimport sqrt
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport (
    Mat3, Vec3, add, dot, exponential, mat, mat_vec, normalized, put, put_quat, quat, quat_multiply, to_matrix, vec,
)
from rt_kernels.multibody cimport flexible_recursion as recursion
from rt_kernels.multibody.flexible_algebra cimport exponential_terms, skew_polynomial
from rt_kernels.multibody.flexible_recursion cimport CONTINUOUS, FIXED, FREE, PRISMATIC, REVOLUTE, SCREW, SPHERICAL, Body, Model

from rt_kernels.model.bodies import coordinate_numbers, read_urdf
from rt_kernels.model.craft import Link
from rt_kernels.model.craft_file import named, read_craft
from rt_kernels.model.modes import ModalBody

_JOINTS = {"fixed": (FIXED, 0, 0), "revolute": (REVOLUTE, 1, 1), "prismatic": (PRISMATIC, 1, 1),
           "spherical": (SPHERICAL, 4, 3), "free": (FREE, 7, 6), "continuous": (CONTINUOUS, 2, 1), "screw": (SCREW, 1, 1)}
# joints whose rotation is not a plain angle -> the coordinate that is 1 when all others are 0
_UNIT = {"continuous": 0, "spherical": 3, "free": 6}


cdef class FlexibleTree:
    """Dynamics of a tree of `rt_kernels.model.craft.Link` (rigid and modal bodies).

    links    sequence of Link, any order, parents named
    gravity  (3,) m/s2, inertial axes
    rates    "exact" (port rate consistent with the exponential of the port rotation) or "first_order" (psi eta_dot)

    q is [joint coordinates | modal coordinates], v likewise, bodies in `names` order (parents first, otherwise as given).
    `f_ext` (bodies, 6): wrench on each body at its joint frame origin, body axes, force first. A massless link on a fixed joint
    marks a place on a flexible body where a force acts or a motion is read.

    .nq .nv .nj (velocity coordinates of joints, modal ones follow) .n_bodies .names .joint_names .links .gravity .mass .locked;
    coordinates of a joint: `coordinates(joint)`, of the modes of a body: `modal_coordinates(body)`, row of a body: `index(body)`.

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
        links = _parents_first(links)
        for link in links:
            if link.joint not in _JOINTS:
                raise ValueError(f"link {link.name!r}: a tree with flexible bodies has no {link.joint} joint, limit {', '.join(_JOINTS)}")
            if link.joint == "continuous" and link.stiffness:
                raise ValueError(f"link {link.name!r}: stiffness = {link.stiffness} N.m/rad, limit 0: a continuous joint has no rest angle")
        self.links = tuple(links)
        self.names = [link.name for link in links]
        self.joint_names = [link.joint_name for link in links]
        self._index = {name: k for k, name in enumerate(self.names)}
        self._bodies = [link.body for link in links]
        self.model.n = len(links)
        self.model.first_order = rates == "first_order"
        self.gravity = gravity
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
        self.held = <unsigned char *>calloc(max(iv, 1), sizeof(unsigned char))
        if self.held == NULL:
            raise MemoryError("no memory for the tree")
        # constants
        at = self.pool
        for i, link in enumerate(links):
            b = &self.model.body[i]
            s = b.s
            b.parent = -1 if link.parent is None else self._index[link.parent]
            b.armature = link.armature; b.stiffness = link.stiffness; b.damping = link.damping; b.pitch = link.pitch
            body = link.body
            _fill(b.axis, link.axis)
            self._put_mass(i, body)
            p_port, R_port, phi, psi = np.zeros(3), np.eye(3), None, None
            if link.parent is not None:
                parent = &self.model.body[b.parent]
                p_port, R_port, phi, psi = self._bodies[b.parent].port_arrays(link.port)
            _fill(&b.p_port.x, p_port)
            _fill(&b.p_off.x, R_port @ link.position)
            _fill(&b.R0.xx, R_port @ link.rotation)
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

    @classmethod
    def from_urdf(cls, path, floating_base=False, gravity=(0.0, 0.0, -9.81)):
        """Tree of a URDF file; see `rt_kernels.model.bodies.read_urdf` for what is read and in which order.

        Every link stays a body of its own, fixed ones too. Raises ValueError that names the joint of a kind this tree does not have.
        """
        with named(str(path)):
            return cls([_link_of(body) for body in read_urdf(path, bool(floating_base))], gravity)

    cdef int _put_mass(self, int i, object body) except -1:
        cdef Body *b = &self.model.body[i]
        b.mass = body.mass
        _fill(&b.d0.x, body.first_moment)
        _fill(b.E0, body.second_moment)
        return 0

    def __dealloc__(self):
        free(self.model.body)
        free(self.pool)
        free(self.held)

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

    # --- facts

    @property
    def n_bodies(self):
        """Number of bodies: rows of f_ext."""
        return self.model.n

    @property
    def mass(self):
        """[kg] of all bodies."""
        return sum(self.model.body[i].mass for i in range(self.model.n))

    @property
    def gravity(self):
        """(3,) m/s2, inertial axes."""
        return np.array([self.model.gravity[0], self.model.gravity[1], self.model.gravity[2]])

    @gravity.setter
    def gravity(self, value):
        g = np.asarray(value, dtype=float)
        if g.shape != (3,) or not np.all(np.isfinite(g)):
            raise ValueError(f"gravity: three finite numbers in m/s2 expected, got {value!r}")
        for i in range(3):
            self.model.gravity[i] = g[i]

    @property
    def locked(self):
        """Boolean per velocity coordinate: held at rest."""
        return np.array([self.held[k] != 0 for k in range(self.nv)], dtype=bool)

    def index(self, str body):
        """Row of the named body in `f_ext`, `joint_reactions`, `poses` and `velocities`."""
        if body not in self._index:
            raise ValueError(f"no body named {body!r}; there are {', '.join(self.names)}")
        return self._index[body]

    def coordinates(self, str joint):
        """(slice of q, slice of v) of a joint given by name."""
        if joint not in self.joint_names:
            raise ValueError(f"unknown joint {joint!r}, the tree has {', '.join(self.joint_names)}")
        cdef int i = self.joint_names.index(joint)
        cdef Body *b = &self.model.body[i]
        return slice(b.iq, b.iq + <int>_JOINTS[self.links[i].joint][1]), slice(b.iv, b.iv + b.nd)

    def modal_coordinates(self, str body):
        """(slice of q, slice of v) of the modal coordinates of a body given by name; empty ones of a rigid body."""
        cdef Body *b = &self.model.body[self.index(body)]
        return slice(b.eq, b.eq + b.s), slice(b.ev, b.ev + b.s)

    def neutral(self):
        """q with all joints at zero and no deformation."""
        q = np.zeros(self.nq)
        for at, _, kind in self.rotations():
            q[at + _UNIT[kind]] = 1.0
        return q

    def rotations(self):
        """[(first index in q, first index in v, "free" | "spherical" | "continuous")] of the joints whose rotation is not a plain angle."""
        cdef int i
        return [(self.model.body[i].iq, self.model.body[i].iv, link.joint)
                for i, link in enumerate(self.links) if link.joint in _UNIT]

    # --- dynamics

    def forward_dynamics(self, q, v, tau, f_ext=None, double step=0.0):
        """Accelerations (nv,) for given forces `tau` (nv,; modal part: loads beside -K eta - C eta_dot).

        `step` > 0 s: springs and dampers taken at the end of a step of that length (implicit linear Euler).
        """
        return self.hybrid_dynamics(q, v, tau, np.zeros(self.nv), np.zeros(self.nv, dtype=bool), f_ext, step)[1]

    def hybrid_dynamics(self, q, v, tau, a, known, f_ext=None, double step=0.0):
        """(tau, a) where `known` (nv,) booleans tell whose acceleration is given. Modal coordinates cannot be given: they are released.

        Locked coordinates have the acceleration zero.
        """
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
        held = self.locked
        mask |= held
        given = self._vector("a", a, self.nv)
        result = np.where(mask & ~held, given, 0.0)
        forces = np.empty(self.nv)
        cdef double[::1] a_ = result
        cdef double[::1] t_ = forces
        cdef unsigned char[::1] k_ = mask
        with nogil:
            recursion.hybrid_dynamics(&self.model, step, &q_[0], &v_[0], &tau_[0], &f_[0, 0], &k_[0], &a_[0], &t_[0])
        if not np.isfinite(result).all():
            raise ValueError("q: a joint or mode of the links " + ", ".join(
                link.name for link in self.links
                if not all(np.isfinite(result[part]).all()
                           for part in (self.coordinates(link.joint_name)[1], self.modal_coordinates(link.name)[1])))
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

        locked: indices of velocity coordinates held fixed, beside those that are locked. Gravity and pre-stress do not enter.
        """
        from scipy.linalg import eigh

        keep = np.setdiff1d(np.arange(self.nv), np.union1d(np.asarray(locked, dtype=int), np.flatnonzero(self.locked)))
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
        R = self.poses(rest)[0][row]
        shapes = np.array([(self.velocities(rest, vector)[row].reshape(2, 3) @ R).ravel() for vector in vectors.T])
        return np.sqrt(squares) / (2.0 * np.pi), shapes

    def joint_reactions(self, q, v, a, f_ext=None):
        """(bodies, 6): wrench that each body receives through its joint, about its joint origin on its own axes."""
        self.inverse_dynamics(q, v, a, f_ext)
        cdef int i, j
        out = np.zeros((self.model.n, 6))
        if self.nv:
            for i in range(self.model.n):
                for j in range(6):
                    out[i, j] = self.model.body[i].F[j]
        return out

    def base_wrench(self, q, v, a, f_ext=None):
        """(6,): wrench of the inertial frame on the tree, about its origin on its axes: what a mount must hold (gravity included)."""
        reactions, (R, p) = self.joint_reactions(q, v, a, f_ext), self.poses(q)
        out = np.zeros(6)
        for i in range(self.model.n):
            if self.model.body[i].parent < 0:
                force = R[i] @ reactions[i, :3]
                out[:3] += force
                out[3:] += R[i] @ reactions[i, 3:] + np.cross(p[i], force)
        return out

    # --- kinematics, momentum, energy

    cdef int _move(self, object q, object v) except -1:
        """Kinematics of all bodies at (q, v)."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = np.zeros(self.nv) if v is None else self._vector("v", v, self.nv)
        if self.nv == 0:
            raise ValueError("q: the tree has no coordinate")
        recursion.move(&self.model, &q_[0], &v_[0])
        recursion.place(&self.model)
        return 0

    def poses(self, q):
        """(R, p): rotations R_NB (bodies, 3, 3) and positions (bodies, 3) of the body frames in the inertial frame."""
        cdef int i, j
        self._move(q, None)
        R, p = np.empty((self.model.n, 3, 3)), np.empty((self.model.n, 3))
        for i in range(self.model.n):
            for j in range(3):
                p[i, j] = self.model.body[i].pose[j]
            for j in range(9):
                R[i, j // 3, j % 3] = self.model.body[i].pose[3 + j]
        return R, p

    def pose(self, q, str name):
        """(R_NB, p_NB_N) of a named body in the inertial frame."""
        row = self.index(name)
        R, p = self.poses(q)
        return R[row], p[row]

    def velocities(self, q, v):
        """(bodies, 6): velocity [linear, angular] of each body frame on inertial axes."""
        cdef int i
        cdef Mat3 R
        self._move(q, v)
        out = np.empty((self.model.n, 6))
        cdef double[:, ::1] rows = out
        for i in range(self.model.n):
            R = mat(self.model.body[i].pose + 3)
            put(mat_vec(R, vec(self.model.body[i].V)), &rows[i, 0])
            put(mat_vec(R, vec(self.model.body[i].V + 3)), &rows[i, 3])
        return out

    def velocity(self, q, v, str name, point=(0.0, 0.0, 0.0)):
        """(6,): velocity [linear, angular] on inertial axes of a point of the named body's frame."""
        row = self.index(name)
        at = self._vector("point", point, 3)
        out = self.velocities(q, v)[row]
        out[:3] += np.cross(out[3:], self.poses(q)[0][row] @ at)
        return out

    def jacobian(self, q, str name, point=(0.0, 0.0, 0.0)):
        """(6, nv): velocity [linear, angular] on inertial axes of the point at `point` in the named body's frame is J v."""
        return np.array([self.velocity(q, unit, name, point) for unit in np.eye(self.nv)]).T

    cdef int _balance(self, object q, object v, double *out) except -1:
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = np.zeros(self.nv) if v is None else self._vector("v", v, self.nv)
        if self.nv == 0:
            raise ValueError("q: the tree has no coordinate")
        recursion.balance(&self.model, &q_[0], &v_[0], out)
        return 0

    def momentum(self, q, v, about=None):
        """(6,): linear and angular momentum of all bodies on inertial axes, about the point `about` (default: their centre of mass)."""
        cdef double out[12]
        self._balance(q, v, out)
        linear, angular = np.array([out[2], out[3], out[4]]), np.array([out[5], out[6], out[7]])
        origin = self.centre_of_mass(q) if about is None else self._vector("about", about, 3)
        return np.concatenate([linear, angular - np.cross(origin, linear)])

    def centre_of_mass(self, q):
        """(3,) in the inertial frame."""
        cdef double out[12]
        self._balance(q, None, out)
        if not out[8] > 0.0:
            raise ValueError("centre_of_mass: the tree has no mass")
        return np.array([out[9], out[10], out[11]]) / out[8]

    def kinetic_energy(self, q, v):
        """[J], drives included."""
        cdef double out[12]
        self._balance(q, v, out)
        return out[0]

    def potential_energy(self, q):
        """[J] of the springs of joints and modes, and in the uniform gravity field, zero at the origin of the inertial frame."""
        cdef double out[12]
        self._balance(q, None, out)
        return out[1]

    def integrate(self, q, v, double dt):
        """q advanced by v dt on the manifold: exact for a constant twist of each joint."""
        out = self._vector("q", q, self.nq).copy()
        cdef double[::1] x = out
        cdef double[::1] u = self._vector("v", v, self.nv) * dt
        cdef double terms[5]
        cdef double c, s
        cdef Vec3 theta
        cdef Mat3 R, J
        cdef Body *b
        cdef int i, k
        for i in range(self.model.n):
            b = &self.model.body[i]
            for k in range(b.s):
                x[b.eq + k] += u[b.ev + k]
            if b.joint == FREE:
                # screw motion: p += R J(theta) u
                theta = vec(&u[b.iv + 3])
                exponential_terms(dot(theta, theta), terms)
                J = skew_polynomial(1.0, terms[1], terms[2], theta)
                R = to_matrix(quat(&x[b.iq + 3]))
                put(add(vec(&x[b.iq]), mat_vec(R, mat_vec(J, vec(&u[b.iv])))), &x[b.iq])
            if b.joint == FREE or b.joint == SPHERICAL:
                k = 3 if b.joint == FREE else 0
                put_quat(normalized(quat_multiply(quat(&x[b.iq + k]), exponential(vec(&u[b.iv + k])))), &x[b.iq + k])
            elif b.joint == CONTINUOUS:
                sincos(u[b.iv], &s, &c)
                c, s = x[b.iq] * c - x[b.iq + 1] * s, x[b.iq + 1] * c + x[b.iq] * s
                terms[0] = 1.0 / sqrt(c * c + s * s)
                x[b.iq] = terms[0] * c
                x[b.iq + 1] = terms[0] * s
            elif b.nd == 1:
                x[b.iq] += u[b.iv]
        return out

    # --- events

    def lock(self, q, v, str joint, coordinates=None):
        """v after the joint (all its coordinates, or those numbered) is caught at rest; all momenta that can persist do.

        Modes keep theirs: they ring after the catch. From now on the accelerations of these coordinates are zero.
        """
        out = self._vector("v", v, self.nv).copy()
        for k in self._indices(joint, coordinates):
            self.held[<int>k] = 1
        held = self.locked
        return out + self._jump(q, held, np.where(held, -out, 0.0))

    def unlock(self, str joint, coordinates=None):
        """Let the joint go: no velocity changes."""
        for k in self._indices(joint, coordinates):
            self.held[<int>k] = 0

    def _indices(self, joint, coordinates):
        return coordinate_numbers(joint, self.coordinates(joint)[1], coordinates)

    def _jump(self, q, held, change):
        """(nv,) change of v by impulses at the coordinates `held`, which change by `change`; all others keep their momentum.

        M dv = impulse is the recursion at rest without gravity and springs, the given accelerations being the given changes.
        """
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] rest = np.zeros(self.nv)
        cdef double[::1] a = np.array(change, dtype=np.float64)
        cdef unsigned char[::1] mask = np.ascontiguousarray(held, dtype=np.uint8)
        cdef int i, s = 0
        cdef Model bare = self.model
        cdef Body *body = <Body *>calloc(self.model.n, sizeof(Body))
        if body == NULL:
            raise MemoryError("no memory for the impulse")
        memcpy(body, self.model.body, self.model.n * sizeof(Body))
        for i in range(self.model.n):
            s = max(s, body[i].s)
        cdef double[::1] no_stiffness = np.zeros(s * s + 1)
        for i in range(self.model.n):
            body[i].stiffness = 0.0
            body[i].K = &no_stiffness[0]
        for i in range(3):
            bare.gravity[i] = 0.0
        bare.body = body
        recursion.hybrid_dynamics(&bare, 0.0, &q_[0], &rest[0], &rest[0], NULL, &mask[0], &a[0], NULL)
        free(body)
        return np.asarray(a)

    def set_inertia(self, str body, mass, com, inertia):
        """New mass [kg], centre of mass (3,) and inertia about it (3, 3) of a rigid body; what comes or goes has the body's velocity.

        Raises ValueError for a body with modes: its mass integrals belong to its shapes.
        """
        row = self.index(body)
        link = self.links[row]
        if link.body.n_modes:
            raise ValueError(f"body {body!r} has {link.body.n_modes} modes: its mass is that of its shapes; make a tree with another "
                             "ModalBody")
        with named(f"body {body!r}"):
            rigid = replace(ModalBody.rigid(mass, com, inertia), ports=link.body.ports)
            links = self.links[:row] + (replace(link, body=rigid),) + self.links[row + 1:]
            _parents_first(links)
        self.links = links
        self._bodies[row] = rigid
        self._put_mass(row, rigid)
        recursion.prepare(&self.model)

    def attach(self, *_, **__):
        """Not of a tree with flexible bodies: raises ValueError."""
        raise ValueError("attach: a tree with flexible bodies keeps its topology; make a new tree of changed `links`, or join the "
                         "bodies by a constraint")

    detach = attach

    def generate(self, cache=None):
        """Not of a tree with flexible bodies: raises ValueError."""
        raise ValueError("generate: there is no generated code for trees with flexible bodies; a tree of rigid bodies is a `Tree`")


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


def _link_of(body):
    """Link of a `rt_kernels.model.bodies.Body`."""
    return Link(body.name, ModalBody.rigid(body.mass, body.com, body.inertia), body.parent, None, body.joint, body.axis, body.p_PJ_P,
                body.R_PJ, body.gear_ratio**2 * body.rotor_inertia, joint_name=body.joint_name, axis2=body.axis2, pitch=body.pitch)


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
    if len({link.joint_name for link in links}) < len(links):
        raise ValueError(f"links: joint names given twice among {', '.join(link.joint_name for link in links)}")
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
