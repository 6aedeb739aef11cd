# distutils: extra_compile_args = -O3
"""Dynamics of a tree of rigid bodies in O(N): forward, inverse, mixed; mass matrix, momentum, energy, Jacobians, reactions, events.

Conventions, as Pinocchio's: q = [p, quaternion xyzw, joints] and v = [linear, angular (both on body axes), joints] for a floating base;
accelerations are the rates of v; wrenches are [force, moment]; `f_ext` is (bodies, 6), each row on the axes of the body's joint frame
about that frame's origin.  Coordinates follow the order in which the bodies are declared.  SI units.

Equations of body i with parent p, on inertial axes about its joint origin (Meng and Han 2007, sections 3-5, with a_k in closed form;
the same in body axes is Yaskevich 2020, (2.1.1)-(2.1.8)):

    w_i = w_p + w_rel                        e_i = e_p + w_p x w_rel + Z qdd           angular velocity, acceleration
    g_i = g_p + e_p x r + w_p x (w_p x r) + 2 w_p x v_rel + a_rel                      acceleration of the joint origin
    wrench_i = [J B; B^T M] (e, g) + bias                                              articulated body
    torque known:        X_p += shift(X - U U^T / d),  qdd = (tau - z.bias - U.acc_p) / d
    acceleration known:  X_p += shift(X),              tau = z.bias + U.acc_p          (its share of the acceleration is in the bias)

Gravity acts on every body as a uniform field, default (0, 0, -9.81) m/s2 on the inertial axes, as in Pinocchio; a spacecraft sets zero.
Angles are good for |q| <= 1e5 rad.  Kernels: `native_tree.c`.
"""

import ctypes
import math

import numpy as np

from rt_kernels.model.bodies import JOINT_KINDS, ModelError, check_inertia, coordinate_numbers, read_urdf, resolve
from rt_kernels.model.craft_file import read_bodies

cimport numpy as cnp
from libc.stdint cimport uint8_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memset
from posix.stdlib cimport posix_memalign

cnp.import_array()

INSTRUCTION_SETS = ("sse2", "avx2", "avx512")
_KIND = {
    "revolute": TREE_REVOLUTE, "continuous": TREE_CONTINUOUS, "prismatic": TREE_PRISMATIC, "screw": TREE_SCREW,
    "spherical": TREE_SPHERICAL, "planar": TREE_PLANAR, "free": TREE_FREE,
}
# joints whose rotation is not a plain angle -> the coordinate that is 1 when all others are 0
_UNIT = {"continuous": 0, "planar": 2, "spherical": 3, "free": 6}
cdef double[3] NO_OFFSET
NO_OFFSET[0] = NO_OFFSET[1] = NO_OFFSET[2] = 0.0


# ---- arrays in ---------------------------------------------------------------------------------------------------------------------

cdef cnp.ndarray _checked(object value, str name, tuple shape):
    """`value` as a C-ordered float64 array of `shape`."""
    try:
        array = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: an array of float64 is needed: {error}") from None
    if array.shape != shape:
        raise ValueError(f"{name}: shape {array.shape}, {shape} is needed")
    return array


cdef inline cnp.ndarray _vector(object value, str name, cnp.npy_intp n):
    """The same for a vector, with a short way for what is right already."""
    if (cnp.PyArray_Check(value) and cnp.PyArray_TYPE(<cnp.ndarray>value) == cnp.NPY_DOUBLE and cnp.PyArray_NDIM(<cnp.ndarray>value) == 1
            and cnp.PyArray_DIMS(<cnp.ndarray>value)[0] == n and cnp.PyArray_ISCARRAY_RO(<cnp.ndarray>value)):
        return <cnp.ndarray>value
    return _checked(value, name, (n,))


cdef inline double *_data(cnp.ndarray array) noexcept:
    return <double *>cnp.PyArray_DATA(array)


cdef inline cnp.ndarray _new(cnp.npy_intp n):
    return <cnp.ndarray>cnp.PyArray_EMPTY(1, &n, cnp.NPY_DOUBLE, 0)


cdef void _copy(double *to, object values) except *:
    for k, value in enumerate(np.asarray(values, dtype=float).ravel()):
        to[k] = value


cdef list _rows(const double *R):
    """3x3 as lists; entries within rounding of 0 and +-1 are taken for them, so that generated code can leave them out."""
    values = [round(R[k]) * 1.0 if abs(R[k] - round(R[k])) < 1e-15 else R[k] for k in range(9)]
    return [values[0:3], values[3:6], values[6:9]]


# ---- set-up ------------------------------------------------------------------------------------------------------------------------

def aligned_axes(axis):
    """Rotation (3, 3) whose third column is the unit vector of `axis`: components from the aligned frame to the joint frame."""
    z = np.asarray(axis, dtype=float) / math.sqrt(float(np.dot(axis, axis)))
    if np.count_nonzero(z) == 1:  # a coordinate axis: a signed permutation, exact
        k = int(np.argmax(np.abs(z)))
        x = np.roll(np.eye(3)[0], (k + 1) % 3)
        return np.column_stack([x, np.cross(z, x), z])
    x = np.cross(z, np.eye(3)[int(np.argmin(np.abs(z)))])
    x /= math.sqrt(float(x @ x))
    return np.column_stack([x, np.cross(z, x), z])


def _about_joint(mass, com, inertia, align):
    """(mass, first moment, inertia about the joint origin xx xy xz yy yz zz) on the aligned axes."""
    about_origin = inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))
    I = align.T @ about_origin @ align
    return [mass, *(mass * (align.T @ com)), I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2]]


cdef class Tree:
    """A tree of rigid bodies with its working memory.  One Tree serves one thread at a time.

    Tree(bodies, gravity=(0, 0, -9.81), instruction_set=None): `bodies` a sequence of `Body`; fixed ones are merged into what carries them.
    `instruction_set`: "sse2", "avx2", "avx512" or None for the best of this processor; all give the same bits.
    Raises ModelError (a ValueError) that names the body or joint.

    .nq .nv .n_bodies .names .joint_names .bodies .frames .gravity .mass .locked .instruction_set; coordinates of a joint:
    `coordinates(joint)`, row of a body in `f_ext`: `index(body)`.  What a tree with flexible bodies (`flexible.FlexibleTree`) has too has
    the same names and arguments there.
    """

    def __init__(self, bodies, gravity=(0.0, 0.0, -9.81), instruction_set=None):
        self.bodies, self.frames = resolve(list(bodies))
        self.joint_names = [b.joint_name for b in self.bodies]
        self._frame_of = {f.name: f for f in self.frames}
        rows = self._expand()
        self._allocate(len(rows), sum(JOINT_KINDS[b.joint][0] for b in self.bodies), sum(JOINT_KINDS[b.joint][1] for b in self.bodies))
        self._fill(rows)
        self.gravity = gravity
        self.use_instruction_set(instruction_set)
        tree_operations(&self.c_model.operations)
        tree_arrange(self.model)
        self._check_pivots()

    def __dealloc__(self):
        free(self.memory)

    @classmethod
    def from_urdf(cls, path, floating_base=False, gravity=(0.0, 0.0, -9.81)):
        """Tree of a URDF file; see `rt_kernels.model.bodies.read_urdf` for what is read and in which order."""
        return cls(read_urdf(path, bool(floating_base)), gravity)

    @classmethod
    def from_toml(cls, path, gravity=(0.0, 0.0, -9.81)):
        """Tree of a craft file whose bodies are all rigid; see `rt_kernels.model.craft_file`."""
        return cls(read_bodies(path), gravity)

    def _expand(self):
        """One row per computed body: (Body, kind, parent row, align, R_place, p_place, first v within the joint, user body or -1)."""
        rows = []
        self._number = []
        ordered = {b.name: i for i, b in enumerate(self.bodies)}
        final = {}
        count = 0
        for b in self.bodies:  # row numbers first: a parent may be declared later
            count += 2 if b.joint == "universal" else 1
            final[b.name] = count - 1
        for i, b in enumerate(self.bodies):
            parent = -1 if b.parent is None else final[b.parent]
            parent_align = np.eye(3) if b.parent is None else self._align_of(self.bodies[ordered[b.parent]])
            if b.joint == "universal":
                first, second = aligned_axes(b.axis), aligned_axes(b.axis2)
                rows.append((b, "revolute", parent, first, parent_align.T @ b.R_PJ @ first, parent_align.T @ b.p_PJ_P, 0, -1))
                rows.append((b, "revolute", final[b.name] - 1, second, first.T @ second, np.zeros(3), 1, i))
            else:
                align = self._align_of(b)
                rows.append((b, b.joint, parent, align, parent_align.T @ b.R_PJ @ align, parent_align.T @ b.p_PJ_P, 0, i))
            self._number.append(len(rows) - 1)
        return rows

    @staticmethod
    def _align_of(b):
        if b.joint == "universal":
            return aligned_axes(b.axis2)
        return aligned_axes(b.axis) if JOINT_KINDS[b.joint][2] else np.eye(3)

    cdef int _allocate(self, int n, int nq, int nv) except -1:
        """All tables in one block of memory, each on a cache line."""
        cdef TreeModel *M = &self.c_model
        cdef TreeWork *W = &self.c_work
        cdef int blocks = (n + TREE_BLOCK - 1) // TREE_BLOCK, stride = (nv // TREE_BLOCK + 2) * TREE_BLOCK
        cdef size_t sizes[22]
        cdef size_t offsets[22]
        cdef size_t total = 0
        sizes[:] = [n * sizeof(TreeBody), n * sizeof(TreeInertia), n * sizeof(int), (2 * n + 2) * sizeof(int), n * sizeof(TreeBody),
                    blocks * sizeof(TreeConstantsBlock), nv * sizeof(double), nv, TREE_BLOCK * blocks * sizeof(int), nv * sizeof(int),
                    nv * sizeof(int),
                    TREE_BLOCK * blocks * sizeof(TreeFrame), blocks * sizeof(TreeBlock), nv * sizeof(TreeColumn),
                    n * sizeof(TreeArticulated),
                    n * sizeof(TreeMotion), 2 * nv * sizeof(double), 18 * n * sizeof(double),
                    6 * n * sizeof(double), nv, 6 * stride * sizeof(double), nv * stride * sizeof(double)]
        for k in range(22):
            offsets[k] = total
            total += (sizes[k] + 63) // 64 * 64
        if posix_memalign(&self.memory, 64, total) != 0:
            raise MemoryError(f"no memory for a tree of {n} bodies")
        memset(self.memory, 0, total)
        cdef char *at = <char *>self.memory
        M.declared = <TreeBody *>(at + offsets[0])
        M.mass = <TreeInertia *>(at + offsets[1])
        M.slot = <int *>(at + offsets[2])
        M.thread = <int *>(at + offsets[3])
        M.body = <TreeBody *>(at + offsets[4])
        M.constants = <TreeConstantsBlock *>(at + offsets[5])
        M.armature = <double *>(at + offsets[6])
        M.locked = <uint8_t *>(at + offsets[7])
        M.angle_q = <int *>(at + offsets[8])
        M.column_v = <int *>(at + offsets[9])
        M.column_slot = <int *>(at + offsets[10])
        W.frame = <TreeFrame *>(at + offsets[11])
        W.block = <TreeBlock *>(at + offsets[12])
        W.column = <TreeColumn *>(at + offsets[13])
        W.branch = <TreeArticulated *>(at + offsets[14])
        W.motion = <TreeMotion *>(at + offsets[15])
        W.scratch = <double *>(at + offsets[16])
        W.rows = <double *>(at + offsets[17])
        W.momentum = <double *>(at + offsets[18])
        W.known = <uint8_t *>(at + offsets[19])
        W.wrench = <double *>(at + offsets[20])
        W.square = <double *>(at + offsets[21])
        W.column_stride = stride
        M.n, M.nq, M.nv, M.n_user = n, nq, nv, len(self.bodies)
        self.model, self.work = M, W
        return 0

    cdef int _fill(self, list rows) except -1:
        cdef TreeBody *t
        cdef int q_index = 0, v_index = 0
        for i, (b, kind, parent, align, R_place, p_place, v_offset, user) in enumerate(rows):
            t = &self.c_model.declared[i]
            t.parent, t.kind, t.user_body, t.pitch = parent, _KIND[kind], user, b.pitch
            t.q_index, t.v_index, t.n_v = q_index, v_index, JOINT_KINDS[kind][1]
            _copy(t.R_place, R_place)
            _copy(t.p_place, p_place)
            _copy(t.R_align, align)
            for k in range(t.n_v):
                self.c_model.armature[v_index + k] = b.gear_ratio**2 * b.rotor_inertia
            q_index += JOINT_KINDS[kind][0]
            v_index += t.n_v
            if user >= 0:
                self._put_mass(i, _about_joint(b.mass, b.com, b.inertia, align))
        return 0

    cdef int _put_mass(self, int number, list values) except -1:
        self.c_model.mass[number].mass = values[0]
        for k in range(3):
            self.c_model.mass[number].h[k] = values[1 + k]
        for k in range(6):
            self.c_model.mass[number].tensor[k] = values[4 + k]
        return 0

    def _check_pivots(self):
        """Every joint must move some inertia: elimination from the tips at two poses, as the articulated-body sweep does it."""
        owner = []
        for b in self.bodies:
            owner += [b.joint_name] * JOINT_KINDS[b.joint][1]
        order = [k for slot in range(self.n - 1, -1, -1)
                 for k in range(self.c_model.body[slot].v_index + self.c_model.body[slot].n_v - 1, self.c_model.body[slot].v_index - 1, -1)]
        for shift in (0.0, 0.7):
            q = self.integrate(self.neutral(), np.full(self.nv, 1.0), shift)
            H = self.mass_matrix(q)
            if not np.isfinite(H).all():
                raise ModelError("the mass matrix is not finite: masses or lengths are too large")
            H = H[np.ix_(order, order)]
            composite = np.diag(H).copy()
            for k in range(self.nv):
                if not H[k, k] > 1e-13 * composite[k]:
                    raise ModelError(f"joint '{owner[order[k]]}' moves no inertia: "
                                     "the body behind it has no mass or turns about its own line")
                column = H[k + 1:, k] / H[k, k]
                H[k + 1:, k + 1:] -= np.outer(column, H[k, k + 1:])

    # ---- facts -----------------------------------------------------------------------------------------------------------------------

    @property
    def n(self):
        """Number of computed bodies (a universal joint counts two)."""
        return self.c_model.n

    @property
    def nq(self):
        return self.c_model.nq

    @property
    def nv(self):
        return self.c_model.nv

    @property
    def n_bodies(self):
        """Number of moving bodies: rows of f_ext."""
        return self.c_model.n_user

    @property
    def names(self):
        """Names of the moving bodies, in the order of the rows of f_ext."""
        return [b.name for b in self.bodies]

    @property
    def nj(self):
        """Number of velocity coordinates of joints: all, a rigid body has no other."""
        return self.c_model.nv

    @property
    def mass(self):
        """[kg] of all bodies."""
        return sum(self.c_model.mass[i].mass for i in range(self.n))

    @property
    def gravity(self):
        return np.array([self.c_model.gravity[0], self.c_model.gravity[1], self.c_model.gravity[2]])

    @gravity.setter
    def gravity(self, value):
        array = _checked(value, "gravity", (3,))
        for k in range(3):
            self.c_model.gravity[k] = array[k]

    @property
    def locked(self):
        """Boolean per velocity coordinate: held at rest."""
        return np.array([self.c_model.locked[k] != 0 for k in range(self.nv)])

    @property
    def model_address(self):
        """Addresses of the C tables (TreeModel, TreeWork), for benchmarks and generated code."""
        return <uintptr_t>self.model, <uintptr_t>self.work

    def use_instruction_set(self, name=None):
        """Choose the kernels: a name of INSTRUCTION_SETS, or None for the best that this processor has."""
        if name is not None and name not in INSTRUCTION_SETS:
            raise ValueError(f"instruction_set: '{name}', one of {', '.join(INSTRUCTION_SETS)} is needed")
        for candidate in reversed(INSTRUCTION_SETS) if name is None else (name,):
            if tree_kernels(INSTRUCTION_SETS.index(candidate), &self.c_model.kernels):
                self.c_model.general = self.c_model.kernels
                self.instruction_set, self.generated = candidate, None
                return
        raise ValueError(f"instruction_set: this processor has no '{name}'")

    def constants(self):
        """Rows of constants per slot, for the generator: everything the recursion needs but the state and gravity."""
        cdef TreeBody *b
        kinds = {number: name for name, number in _KIND.items()}
        out, slot_number = [], {self.c_model.slot[i]: i for i in range(self.n)}
        angles = 0
        for slot in range(self.n):
            b = &self.c_model.body[slot]
            mass = self.c_model.mass[<int>slot_number[slot]]
            kind = kinds[b.kind]
            turns = kind in ("revolute", "screw")
            out.append({
                "kind": kind, "parent": b.parent, "q": b.q_index, "n_q": JOINT_KINDS[kind][0], "v": b.v_index, "n_v": b.n_v,
                "sine": angles if turns else -1,
                "user": b.user_body, "pitch": b.pitch, "R_place": _rows(b.R_place), "p_place": [b.p_place[k] for k in range(3)],
                "R_align": _rows(b.R_align), "mass": mass.mass, "h": [mass.h[k] for k in range(3)],
                "inertia": [mass.tensor[k] for k in range(6)],
                "armature": [self.c_model.armature[b.v_index + k] for k in range(b.n_v)],
            })  # fmt: skip
            angles += turns
        return out

    def generate(self, cache=None):
        """The same tree with kernels generated for it: straight-line C with its constants folded in, compiled once and kept in `cache`.

        Raises GenerationError when there is no compiler; `.generated` of the result is the library's path.
        """
        from rt_kernels.model import tree_generator

        cdef Tree other = Tree(self.bodies, self.gravity, self.instruction_set)
        text = tree_generator.source(other.constants(), other.nv)
        loaded, path = tree_generator.library(text, other.instruction_set, cache)
        loaded.generated_kernels(ctypes.c_void_p(<uintptr_t>&other.c_model.kernels))
        other.generated, other._library = path, loaded
        return other

    def fastest(self, cache=None):
        """The generated twin where it pays, else this tree; `.generated` of the result (a path or None) says which.

        It pays up to 32 coordinates (45-70 % less time on the measured models, nothing on a chain of 50) and when a compiler is there.
        """
        from rt_kernels.model import tree_generator

        if self.nv > tree_generator.WORTHWHILE:
            return self
        try:
            return self.generate(cache)
        except tree_generator.GenerationError:
            return self

    def index(self, body):
        """Row of the named body in `f_ext`, `joint_reactions`, `poses` and `velocities`."""
        if body not in self.names:
            merged = self._frame_of.get(body)
            raise ValueError(f"unknown body '{body}', the tree has {', '.join(self.names)}" if merged is None else
                             f"body '{body}' is fixed to " + ("the inertial frame" if merged.body < 0 else f"'{self.names[merged.body]}'")
                             + " and has no row of its own")
        return self.names.index(body)

    def coordinates(self, joint):
        """(slice of q, slice of v) of a joint given by name."""
        i = self._joint(joint)
        cdef TreeBody *t = &self.c_model.declared[<int>self._number[i]]
        nq, nv, _ = JOINT_KINDS[self.bodies[i].joint]
        q, v = t.q_index, t.v_index
        if self.bodies[i].joint == "universal":
            q, v = q - 1, v - 1
        return slice(q, q + nq), slice(v, v + nv)

    def _joint(self, name):
        if name not in self.joint_names:
            raise ValueError(f"unknown joint '{name}', the tree has {', '.join(self.joint_names)}")
        return self.joint_names.index(name)

    def neutral(self):
        """q with every joint at zero."""
        q = np.zeros(self.nq)
        for at, _, kind in self.rotations():
            q[at + <int>_UNIT[kind]] = 1.0
        return q

    def rotations(self):
        """[(first index in q, first index in v, "free" | "spherical" | "planar" | "continuous")] of the joints whose rotation is not a
        plain angle."""
        return [(self.coordinates(b.joint_name)[0].start, self.coordinates(b.joint_name)[1].start, b.joint)
                for b in self.bodies if b.joint in _UNIT]

    # ---- dynamics --------------------------------------------------------------------------------------------------------------------

    cdef double *_wrenches(self, object f_ext, list keep) except? NULL:
        if f_ext is None:
            return NULL
        keep.append(_checked(f_ext, "f_ext", (self.c_model.n_user, 6)))
        return _data(keep[0])

    def forward_dynamics(self, q, v, tau, f_ext=None):
        """Accelerations (nv,) from torques: articulated-body algorithm.  Locked coordinates stay at zero."""
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq), v_ = _vector(v, "v", self.c_model.nv)
        cdef cnp.ndarray t_ = _vector(tau, "tau", self.c_model.nv)
        cdef cnp.ndarray a = _new(self.c_model.nv)
        cdef list keep = []
        cdef double *wrenches = NULL if f_ext is None else self._wrenches(f_ext, keep)
        self.c_model.kernels.forward_dynamics(self.model, self.work, _data(q_), _data(v_), _data(t_), wrenches, _data(a))
        return a

    def inverse_dynamics(self, q, v, a, f_ext=None):
        """Torques (nv,) from accelerations: recursive Newton-Euler algorithm."""
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq), v_ = _vector(v, "v", self.c_model.nv), a_ = _vector(a, "a", self.c_model.nv)
        cdef cnp.ndarray tau = _new(self.c_model.nv)
        cdef list keep = []
        cdef double *wrenches = NULL if f_ext is None else self._wrenches(f_ext, keep)
        self.c_model.kernels.inverse_dynamics(self.model, self.work, _data(q_), _data(v_), _data(a_), wrenches, _data(tau), NULL)
        return tau

    def hybrid_dynamics(self, q, v, tau, a, known, f_ext=None):
        """(tau, a), both (nv,): where `known` is True the acceleration is given and the torque found, else the other way round."""
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq), v_ = _vector(v, "v", self.c_model.nv)
        cdef cnp.ndarray t_ = _vector(tau, "tau", self.c_model.nv).copy(), a_ = _vector(a, "a", self.c_model.nv).copy()
        mask = np.asarray(known)
        if mask.dtype != np.bool_ or mask.shape != (self.nv,):
            raise ValueError(f"known: {mask.dtype} of shape {mask.shape}, bool of shape {(self.nv,)} is needed")
        cdef cnp.ndarray m_ = np.ascontiguousarray(mask)
        cdef list keep = []
        cdef double *wrenches = self._wrenches(f_ext, keep)
        self.c_model.kernels.hybrid_dynamics(self.model, self.work, _data(q_), _data(v_), _data(t_), _data(a_),
                                             <const uint8_t *>cnp.PyArray_DATA(m_), wrenches)
        return t_, a_

    def mass_matrix(self, q):
        """Joint-space inertia (nv, nv), symmetric, with the drives' reflected inertia: composite-body algorithm."""
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq)
        cdef cnp.ndarray H = _new(self.c_model.nv * self.c_model.nv)
        self.c_model.kernels.mass_matrix(self.model, self.work, _data(q_), _data(H))
        return H.reshape(self.nv, self.nv)

    def joint_reactions(self, q, v, a, f_ext=None):
        """(bodies, 6): wrench that each body receives through its joint, about its joint origin on its own axes."""
        rows = self._reactions(q, v, a, f_ext)
        out = np.empty((self.n_bodies, 6))
        motion = self._motion(q, None)
        for i, number in enumerate(self._number):
            slot = self.c_model.slot[<int>number]
            R = motion[slot, :9].reshape(3, 3) @ self._align(slot).T
            out[i, :3], out[i, 3:] = R.T @ rows[slot, :3], R.T @ rows[slot, 3:]
        return out

    def base_wrench(self, q, v, a, f_ext=None):
        """(6,): wrench of the inertial frame on the tree, about its origin on its axes: what a mount must hold (gravity included)."""
        rows, motion = self._reactions(q, v, a, f_ext), self._motion(q, None)
        out = np.zeros(6)
        for slot in range(self.n):
            if self.c_model.body[slot].parent < 0:
                out[:3] += rows[slot, :3]
                out[3:] += rows[slot, 3:] + np.cross(motion[slot, 9:12], rows[slot, :3])
        return out

    def _reactions(self, q, v, a, f_ext):
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq), v_ = _vector(v, "v", self.c_model.nv), a_ = _vector(a, "a", self.c_model.nv)
        cdef cnp.ndarray tau = _new(self.c_model.nv), rows = _new(6 * self.c_model.n)
        cdef list keep = []
        cdef double *wrenches = self._wrenches(f_ext, keep)
        self.c_model.kernels.inverse_dynamics(self.model, self.work, _data(q_), _data(v_), _data(a_), wrenches, _data(tau), _data(rows))
        return rows.reshape(self.n, 6)

    # ---- kinematics, momentum, energy ------------------------------------------------------------------------------------------------

    def slot_of(self, int body):
        """Slot of a body given by its number in `bodies`."""
        return self.c_model.slot[<int>self._number[body]]

    def _align(self, int slot):
        return np.array([self.c_model.body[slot].R_align[k] for k in range(9)]).reshape(3, 3)

    def _motion(self, q, v, origin=None):
        """Rows (slots, 18) of aligned frames: R, p, w, velocity of the joint origin."""
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq), rows = _new(18 * self.c_model.n)
        cdef cnp.ndarray v_ = q_ if v is None else _vector(v, "v", self.c_model.nv)
        cdef cnp.ndarray o_ = _checked((0.0, 0.0, 0.0) if origin is None else origin, "origin", (3,))
        self.c_model.operations.motion(self.model, _data(q_), NULL if v is None else _data(v_), _data(o_), _data(rows))
        return rows.reshape(self.n, 18)

    def frame(self, name):
        """The `Frame` of a body or merged link by name."""
        if name not in self._frame_of:
            raise ValueError(f"unknown frame '{name}', the tree has {', '.join(self._frame_of)}")
        return self._frame_of[name]

    def pose(self, q, name):
        """(R_NF, p_NF_N) of a named body or link in the inertial frame."""
        f = self.frame(name)
        if f.body < 0:
            return f.R_BF.copy(), f.p_BF_B.copy()
        slot = self.c_model.slot[<int>self._number[f.body]]
        row = self._motion(q, None)[slot]
        R = row[:9].reshape(3, 3) @ self._align(slot).T
        return R @ f.R_BF, row[9:12] + R @ f.p_BF_B

    def poses(self, q):
        """(R, p): rotations R_NB (bodies, 3, 3) and positions (bodies, 3) of the body frames in the inertial frame."""
        rows, slots = self._motion(q, None), [self.slot_of(i) for i in range(self.n_bodies)]
        return np.array([rows[slot, :9].reshape(3, 3) @ self._align(slot).T for slot in slots]), rows[slots, 9:12]

    def velocities(self, q, v):
        """(bodies, 6): velocity [linear, angular] of each body frame on inertial axes."""
        rows = self._motion(q, v)[[self.slot_of(i) for i in range(self.n_bodies)]]
        return np.concatenate([rows[:, 15:18], rows[:, 12:15]], axis=1)

    def jacobian(self, q, name, point=(0.0, 0.0, 0.0)):
        """(6, nv): velocity [linear, angular] on inertial axes of the point at `point` in the named frame is J v."""
        f = self.frame(name)
        cdef cnp.ndarray rows, J = np.zeros((6, self.nv)), at
        if f.body < 0:
            return J
        cdef int slot = self.c_model.slot[<int>self._number[f.body]]
        rows = self._motion(q, None)
        at = np.ascontiguousarray(self._align(slot).T @ (f.R_BF @ _checked(point, "point", (3,)) + f.p_BF_B))
        self.c_model.operations.jacobian(self.model, _data(rows), slot, _data(at), _data(J))
        return J

    def velocity(self, q, v, name, point=(0.0, 0.0, 0.0)):
        """(6,): velocity [linear, angular] on inertial axes of a point of the named frame."""
        return self.jacobian(q, name, point) @ _vector(v, "v", self.c_model.nv)

    def _totals(self, q, v, origin):
        cdef cnp.ndarray rows = self._motion(q, v, origin), momentum = _new(6), first = _new(3)
        cdef double mass, energy
        self.c_model.operations.totals(self.model, _data(rows), _data(momentum), &mass, _data(first), &energy)
        return momentum, mass, first, energy

    def momentum(self, q, v, about=None):
        """(6,): linear and angular momentum of all bodies on inertial axes, about the point `about` (default: their centre of mass)."""
        return self._totals(q, v, self.centre_of_mass(q) if about is None else about)[0]

    def centre_of_mass(self, q):
        """(3,) in the inertial frame."""
        origin = self._motion(q, None)[0, 9:12]  # near the bodies, so that nothing is lost far from the origin
        _, mass, first, _ = self._totals(q, None, origin)
        return origin + first / mass

    def kinetic_energy(self, q, v):
        """[J], drives included."""
        v = _vector(v, "v", self.c_model.nv)
        rotors = sum(0.5 * self.c_model.armature[k] * v[k] ** 2 for k in range(self.nv))
        return self._totals(q, v, self._motion(q, None)[0, 9:12])[3] + rotors

    def potential_energy(self, q):
        """[J] in the uniform gravity field, zero at the origin of the inertial frame."""
        _, _, first, _ = self._totals(q, None, None)
        return -float(self.gravity @ first)

    def integrate(self, q, v, dt):
        """q advanced by v dt on the manifold: exact for a constant twist of each joint."""
        cdef cnp.ndarray out = _vector(q, "q", self.c_model.nq).copy(), v_ = _vector(v, "v", self.c_model.nv)
        self.c_model.operations.integrate(self.model, _data(out), _data(v_), float(dt))
        return out

    # ---- events ----------------------------------------------------------------------------------------------------------------------

    def lock(self, q, v, joint, coordinates=None):
        """v after the joint (all its coordinates, or those numbered) is caught at rest; all momenta that can persist do."""
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq), v_ = _vector(v, "v", self.c_model.nv).copy()
        cdef int k
        for k in self._indices(joint, coordinates):
            self.c_model.operations.lock(self.model, self.work, _data(q_), _data(v_), k)
        return v_

    def unlock(self, joint, coordinates=None):
        """Let the joint go: no velocity changes."""
        cdef int k
        for k in self._indices(joint, coordinates):
            self.c_model.operations.unlock(self.model, k)

    def _indices(self, joint, coordinates):
        return coordinate_numbers(joint, self.coordinates(joint)[1], coordinates)

    def attach(self, q, v, body, parent, hold=(True,) * 6):
        """(q, v) after `body`, which has a free joint, is caught where it is by `parent` (None: let go into the inertial frame).

        hold: which of the six relative coordinates [linear, angular; body axes] the catch holds.  Linear and angular momentum persist.
        """
        mask = np.asarray(hold)
        if mask.dtype != np.bool_ or mask.shape != (6,):
            raise ValueError(f"hold: {mask.dtype} of shape {mask.shape}, bool of shape (6,) is needed")
        number = self._number[self.index(body)]
        up = -1 if parent is None else self._number[self.index(parent)]
        cdef cnp.ndarray q_ = _vector(q, "q", self.c_model.nq).copy(), v_ = _vector(v, "v", self.c_model.nv).copy()
        cdef cnp.ndarray m_ = np.ascontiguousarray(mask)
        done = self.c_model.operations.attach(self.model, self.work, _data(q_), _data(v_), number, up,
                                              <const uint8_t *>cnp.PyArray_DATA(m_))
        if done == TREE_NOT_FREE_JOINT:
            raise ValueError(f"body '{body}' has a {self.bodies[self.index(body)].joint} joint; "
                             "only a free joint can be attached and detached")
        if done == TREE_WOULD_LOOP:
            raise ValueError(f"body '{parent}' hangs on '{body}': attaching would close a loop")
        return q_, v_

    def detach(self, q, v, body):
        """(q, v) after `body` is let go into the inertial frame with the velocity it has."""
        return self.attach(q, v, body, None, (False,) * 6)

    def set_inertia(self, body, mass, com, inertia):
        """New mass [kg], centre of mass (3,) and inertia about it (3, 3) of a body; what comes or goes has the body's velocity."""
        i = self.index(body)
        com, inertia = _checked(com, "com", (3,)), _checked(inertia, "inertia", (3, 3))
        if not (np.isfinite(mass) and mass > 0.0 and np.isfinite(com).all() and np.isfinite(inertia).all()):
            raise ModelError(f"body '{body}': mass {mass!r} kg, centre of mass and inertia must be finite and the mass positive")
        check_inertia(body, float(mass), inertia)
        cdef int number = self._number[i]
        self.c_model.changed = 1
        self._put_mass(number, _about_joint(float(mass), com, inertia, self._align_of(self.bodies[i])))
        tree_arrange(self.model)
