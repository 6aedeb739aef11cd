"""A free-flying tree of rigid bodies (a craft with an arm) and a rigid target vehicle under the measured contact wrench.

The active vehicle is a tree with a free root; its docking port sits on a named body. Its joints are held by torques towards given angles,

    tau_j = -k_j (q_j - q_0j) - d_j v_j

States are, as in `two_bodies`, the centre of mass c, the momentum P and the angular momentum L about the centre of mass of the whole tree,
beside the attitude of the root, the joint angles and their rates:

    P' = f     L' = (r - c) x f + m     c' = P / M     joint accelerations: articulated bodies
    root twist V_0 = H_00^-1 (h_0 - H_0j v_j),  h_0 = momentum about the root's origin on its axes, H: mass matrix

Integrator: symplectic Euler in (P, L, joint rates), then (c, attitude, joint angles), the latter with the twist at half the step. The
momentum that comes in goes out again to rounding, whatever the joints do.

Frames: N inertial; C centre of mass of the tree with the axes of its root; V centre of mass of the target vehicle; A and T their ports.
The port's pose in the active vehicle's table holds for the given joint angles. The control wrench acts on the root body, at and in C.

Joined: a second tree, in which the target vehicle is one more body held to the body of the port. At latching c, P and L of the whole are
the sums; the latch acts between these two bodies alone, so every joint keeps its generalised momentum (`lock` of the kernels: an impulse):

    H_uu v_u+ = H_uu v_u- + H_ul v_l-          u: root and joints, l: the six relative coordinates of the latch, v_l+ = 0

and the joints swing on under the whole mass. Released, both go on with the velocities they have.

Assumptions: as `two_bodies`; following a profile and at the closing of the loop the joints are at their given angles, at rest; joined, no
contact wrench acts (the loads are inside the latch).

Source of the recursion: Meng and Han 2007, sections 3-5, see `rt_kernels.multibody.tree`.
"""

import hashlib
from pathlib import Path

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from rt_kernels.algebra cimport pose, quat, rot3, vec3
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.tree_and_body_record cimport TreeRecord
from rt_kernels.dynamics.two_bodies cimport (accumulate, body_pose, body_twist, fill_vehicle, integrate_body, relative_state,
                                            start_from_relative, take_motion)
from rt_kernels.codes cimport (DYNAMICS_STATUS_JOINED, DYNAMICS_STATUS_NOT_FINITE, DYNAMICS_STATUS_OUT_OF_RANGE, MOTION_CLOSE_LOOP,
                               MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED)
from rt_kernels.multibody.tree cimport Tree, TreeModel, TreeWork
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.dynamics.tree_and_body_record import AUX
from rt_kernels.model.bodies import Body, model_tables
from rt_kernels.model.craft_file import bodies_of
from rt_kernels.model.tree_generator import GenerationError
from rt_kernels.parameters import Parameter, checked

cdef enum:
    MAX_V = 38                  # coordinates: the root's six and the joints
    MAX_JOINED = 44             # and six of the latch

cdef struct TreeParams:
    two_bodies.Params pair             # target vehicle; of the active one only the port, on the body that carries it
    double period
    double mass                 # of the whole tree
    double angle[MAX_V]         # per joint: given angle, stiffness, damping
    double stiffness[MAX_V]
    double damping[MAX_V]
    double X_RB[7]              # body of the port in the root at the given angles
    double R_align[9]           # from the axes of the tree's tables to those of that body
    int joints
    int row                     # of the port's body in the external wrenches; the root's is 0
    int generated               # 1: kernels generated for this tree
    int unused
    uint64_t fingerprint        # of the tree's constants

cdef struct TreeState:
    two_bodies.State pair              # the active body is the one that carries the port
    double q[MAX_JOINED + 2]
    double v[MAX_JOINED]
    double c[3]                 # of what moves as one tree: joined, of both vehicles
    double P[3]
    double L[3]                 # about c, N axes
    double c_rest[3]            # what the sums have lost to rounding
    double P_rest[3]
    double L_rest[3]

cdef struct Flat:
    TreeParams params
    TreeState state

cdef struct Craft:
    TreeModel *model
    TreeWork *work
    double *H                   # mass matrix
    double *rows                # motion of all bodies
    double *f_ext
    double mass
    int slot                    # of the port's body
    int guest                   # of the target vehicle, -1: not in this tree

cdef struct Self:
    Flat flat
    Craft alone
    Craft joined


cdef double[9] SAME_AXES
SAME_AXES[:] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
cdef double[3] NO_FORCE
NO_FORCE[:] = [0.0, 0.0, 0.0]


# ---------------------------------------------------------------------------------------------------- momentum and the root's twist

cdef void solve6(double *A, double *b) noexcept nogil:
    """b <- A^-1 b for a symmetric positive definite 6x6 matrix, which is overwritten (L D L^T)."""
    cdef int i, j, k
    cdef double t
    for k in range(6):
        for i in range(k + 1, 6):
            t = A[6 * i + k] / A[7 * k]
            for j in range(i, 6):
                A[6 * j + i] -= t * A[6 * j + k]
            b[i] -= t * b[k]
    for k in range(5, -1, -1):
        t = b[k]
        for i in range(k + 1, 6):
            t -= A[6 * i + k] * b[i]
        b[k] = t / A[7 * k]


cdef inline void centre_in_root(const double *H, int nv, double *c) noexcept nogil:
    """Centre of mass in the root: the first moment stands in the upper right block, -m S(c)."""
    vec3.fill(H[nv + 5] / H[0], -H[5] / H[0], H[4] / H[0], c)


cdef void settle(const TreeState *s, Craft *t, double *q, double *v) noexcept nogil:
    """Place and twist of the root that belong to c, P and L at the attitude and the joints of q and the joint rates of v."""
    cdef int nv = t.model.nv
    cdef int i, j
    cdef double A[36]
    cdef double c[3]
    cdef double r[3]
    t.model.kernels.mass_matrix(t.model, t.work, q, t.H)
    centre_in_root(t.H, nv, c)
    quat.rotate(q + 3, c, r)
    vec3.sub(s.c, r, q)
    # momentum about the root's origin on its axes
    quat.rotate_back(q + 3, s.P, v)
    quat.rotate_back(q + 3, s.L, v + 3)
    vec3.cross(c, v, r)
    vec3.add(v + 3, r, v + 3)
    for i in range(6):
        for j in range(6):
            A[6 * i + j] = t.H[nv * i + j]
        for j in range(6, nv):
            v[i] -= t.H[nv * i + j] * v[j]
    solve6(A, v)


cdef void take_momentum(TreeState *s, Craft *t) noexcept nogil:
    """c, P and L of the present q and v."""
    cdef int nv = t.model.nv
    cdef int i, j
    cdef double h[6]
    cdef double c[3]
    cdef double r[3]
    t.model.kernels.mass_matrix(t.model, t.work, s.q, t.H)
    centre_in_root(t.H, nv, c)
    for i in range(6):
        h[i] = 0.0
        for j in range(nv):
            h[i] += t.H[nv * i + j] * s.v[j]
    vec3.cross(c, h, r)
    vec3.sub(h + 3, r, r)
    quat.rotate(s.q + 3, h, s.P)
    quat.rotate(s.q + 3, r, s.L)
    quat.rotate(s.q + 3, c, r)
    vec3.add(s.q, r, s.c)
    memset(s.c_rest, 0, 9 * sizeof(double))


cdef void follow(const double *row, const double *R_align, two_bodies.Body *b) noexcept nogil:
    """Pose, rate and velocity of a body of the tree from its row of the motion."""
    cdef double R[9]
    cdef double X[4]
    cdef int i, j
    for i in range(3):
        for j in range(3):
            R[3 * i + j] = row[3 * i] * R_align[3 * j] + row[3 * i + 1] * R_align[3 * j + 1] + row[3 * i + 2] * R_align[3 * j + 2]
    quat.from_matrix(R, X)
    # of the two quaternions the one next to the last
    if X[0] * b.q[0] + X[1] * b.q[1] + X[2] * b.q[2] + X[3] * b.q[3] < 0.0:
        for i in range(4):
            X[i] = -X[i]
    quat.copy(X, b.q)
    vec3.copy(row + 9, b.p)
    vec3.copy(row + 12, b.w)
    vec3.copy(row + 15, b.v)


cdef void see_bodies(Self *self, Craft *t) noexcept nogil:
    """Motion of all bodies; of it that of the port's body, and joined that of the target vehicle."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef double origin[3]
    cdef double body[3]
    vec3.fill(0.0, 0.0, 0.0, origin)
    t.model.operations.motion(t.model, s.q, s.v, origin, t.rows)
    follow(t.rows + 18 * t.slot, p.R_align, &s.pair.active)
    if t.guest >= 0:
        follow(t.rows + 18 * t.guest, SAME_AXES, &s.pair.target)
        quat.rotate_back(s.pair.target.q, s.pair.target.w, body)
        rot3.apply(p.pair.target.inertia, body, body)
        quat.rotate(s.pair.target.q, body, s.pair.target.L)


# -------------------------------------------------------------------------------------------------------------- start and one step

cdef void start(Self *self, const double *X_TA, const double *V_TA) noexcept nogil:
    """All bodies from the relative pose and twist of the ports; joints at their given angles, at rest."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef double X[7]
    cdef double r[3]
    cdef double u[3]
    cdef int j
    start_from_relative(&p.pair, &s.pair, X_TA, V_TA)
    body_pose(&s.pair.active, X)
    pose.inverse(p.X_RB, s.q)
    pose.multiply(X, s.q, s.q)
    quat.normalize(s.q + 3)
    # v_R = v_B + w x (p_R - p_B)
    vec3.sub(s.q, s.pair.active.p, r)
    vec3.cross(s.pair.active.w, r, u)
    vec3.add(s.pair.active.v, u, u)
    quat.rotate_back(s.q + 3, u, s.v)
    quat.rotate_back(s.q + 3, s.pair.active.w, s.v + 3)
    for j in range(p.joints):
        s.q[7 + j] = p.angle[j]
        s.v[6 + j] = 0.0
    take_momentum(s, &self.alone)


cdef void own_centre(Self *self, double *c, double *P) noexcept nogil:
    """Centre of mass and momentum of the tree without the target vehicle."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef double m = p.pair.target.mass if s.pair.joined else 0.0
    cdef int i
    for i in range(3):
        c[i] = ((p.mass + m) * s.c[i] - m * s.pair.target.p[i]) / p.mass if s.pair.joined else s.c[i]
        P[i] = s.P[i] - m * s.pair.target.v[i] if s.pair.joined else s.P[i]


cdef void integrate_tree(Self *self, Craft *craft, const double *f, const double *m, const double *p_NT,
                         const double *control_C) noexcept nogil:
    """One step of the tree, alone or joined: -f, -m at the origin of T (N axes), and the control wrench at and in C on the root body."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef double h = p.period
    cdef double tau[MAX_JOINED]
    cdef double a[MAX_JOINED]
    cdef double half[MAX_JOINED + 2]
    cdef double centre[3]
    cdef double force[3]
    cdef double moment[3]
    cdef double r[3]
    cdef double t[3]
    cdef double *on_port = craft.f_ext + 6 * p.row
    cdef double *on_root = craft.f_ext
    cdef int j
    # wrenches on the two loaded bodies, about their joint origins on their axes
    memset(on_root, 0, 6 * sizeof(double))
    vec3.sub(p_NT, s.pair.active.p, r)
    vec3.cross(r, f, t)
    vec3.add(t, m, t)
    quat.rotate_back(s.pair.active.q, f, on_port)
    quat.rotate_back(s.pair.active.q, t, on_port + 3)
    for j in range(6):
        on_port[j] = -on_port[j]
    own_centre(self, centre, r)
    vec3.sub(centre, s.q, r)
    quat.rotate_back(s.q + 3, r, r)
    vec3.cross(r, control_C, t)
    for j in range(3):
        on_root[j] += control_C[j]
        on_root[3 + j] += control_C[3 + j] + t[j]
    # joints
    for j in range(craft.model.nv):
        tau[j] = 0.0
    for j in range(p.joints):
        tau[6 + j] = -p.stiffness[j] * (s.q[7 + j] - p.angle[j]) - p.damping[j] * s.v[6 + j]
    craft.model.kernels.forward_dynamics(craft.model, craft.work, s.q, s.v, tau, craft.f_ext, a)
    for j in range(p.joints):
        s.v[6 + j] += h * a[6 + j]
    # the whole
    quat.rotate(s.q + 3, control_C, force)
    quat.rotate(s.q + 3, control_C + 3, moment)
    vec3.sub(centre, s.c, r)
    vec3.cross(r, force, t)
    vec3.add(moment, t, moment)
    vec3.sub(force, f, force)
    vec3.sub(p_NT, s.c, r)
    vec3.cross(r, f, t)
    vec3.sub(moment, t, moment)
    vec3.sub(moment, m, moment)
    accumulate(h, force, s.P, s.P_rest)
    accumulate(h, moment, s.L, s.L_rest)
    accumulate(h / craft.mass, s.P, s.c, s.c_rest)
    # attitude and joints with the twist at half the step
    settle(s, craft, s.q, s.v)
    memcpy(half, s.q, craft.model.nq * sizeof(double))
    craft.model.operations.integrate(craft.model, half, s.v, 0.5 * h)
    settle(s, craft, half, s.v)
    craft.model.operations.integrate(craft.model, s.q, s.v, h)
    settle(s, craft, s.q, s.v)
    see_bodies(self, craft)


cdef void integrate_free(Self *self, const double *F_T, const double *control_C) noexcept nogil:
    """One step of all bodies. F_T: wrench on the target unit at and in T; the port's body bears the opposite at the same point."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef double X_NV[7]
    cdef double X_NT[7]
    cdef double f[3]
    cdef double m[3]
    cdef double r[3]
    cdef double t[3]
    body_pose(&s.pair.target, X_NV)
    pose.multiply(X_NV, p.pair.target.X_port, X_NT)
    quat.rotate(X_NT + 3, F_T, f)
    quat.rotate(X_NT + 3, F_T + 3, m)
    vec3.sub(X_NT, s.pair.target.p, r)
    vec3.cross(r, f, t)
    vec3.add(t, m, t)
    integrate_tree(self, &self.alone, f, m, X_NT, control_C)
    integrate_body(&p.pair.target, &s.pair.target, f, t, p.period, 0.0)


# ------------------------------------------------------------------------------------------------------------------ joined

cdef void join(Self *self) noexcept nogil:
    """The latch closes: sums of momentum for the whole, an impulse for the joints."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef Craft *t = &self.joined
    cdef two_bodies.Body *b = &s.pair.target
    cdef double *q = s.q + 7 + p.joints
    cdef double *v = s.v + 6 + p.joints
    cdef double X_NB[7]
    cdef double X[7]
    cdef double V[6]
    cdef double c[3]
    cdef double r[3]
    cdef double u[3]
    cdef double m = p.pair.target.mass, M = t.mass
    cdef int i
    relative_state(&p.pair, &s.pair, s.pair.join_X_TA, V)
    # target vehicle in the port's body: pose, and twist on its own axes
    body_pose(&s.pair.active, X_NB)
    vec3.copy(b.p, X)
    quat.copy(b.q, X + 3)
    pose.inverse(X_NB, X_NB)
    pose.multiply(X_NB, X, q)
    vec3.sub(b.p, s.pair.active.p, r)
    vec3.cross(s.pair.active.w, r, u)
    vec3.add(s.pair.active.v, u, u)
    vec3.sub(b.v, u, u)
    quat.rotate_back(b.q, u, v)
    vec3.sub(b.w, s.pair.active.w, u)
    quat.rotate_back(b.q, u, v + 3)
    # impulse of the latch: the coordinates are let go and caught again, all six at once
    for i in range(6):
        t.model.operations.unlock(t.model, 6 + p.joints + i)
    for i in range(5):
        t.model.locked[6 + p.joints + i] = 1
    t.model.n_known = 5
    t.model.operations.lock(t.model, t.work, s.q, s.v, 11 + p.joints)
    # the whole
    for i in range(3):
        c[i] = (p.mass * s.c[i] + m * b.p[i]) / M
    vec3.sub(s.c, c, r)
    vec3.cross(r, s.P, u)
    vec3.add(s.L, u, s.L)
    vec3.scale(m, b.v, V)
    vec3.sub(b.p, c, r)
    vec3.cross(r, V, u)
    vec3.add(s.L, u, s.L)
    vec3.add(s.L, b.L, s.L)
    vec3.add(s.P, V, s.P)
    vec3.copy(c, s.c)
    memset(s.c_rest, 0, 9 * sizeof(double))
    s.pair.joined = 1
    settle(s, t, s.q, s.v)
    see_bodies(self, t)


cdef void release(Self *self) noexcept nogil:
    """The latch opens: both go on as they move."""
    cdef TreeState *s = &self.flat.state
    memset(s.pair.target.p_rest, 0, 9 * sizeof(double))
    take_momentum(s, &self.alone)
    s.pair.joined = 0


cdef void invariants(Self *self, double *momentum, double *energy) noexcept nogil:
    """Total linear momentum, angular momentum about the origin of N, from the motion of all bodies; kinetic energy in the frame of the
    common centre of mass, rotors included."""
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef double first[3]
    cdef double r[3]
    cdef double t[3]
    cdef double mass
    cdef double M = p.pair.target.mass
    cdef int i
    cdef Craft *craft = &self.joined if s.pair.joined else &self.alone
    craft.model.operations.totals(craft.model, craft.rows, momentum, &mass, first, energy)
    for i in range(6, craft.model.nv):
        energy[0] += 0.5 * craft.model.armature[i] * s.v[i] * s.v[i]
    if s.pair.joined:
        energy[0] -= 0.5 * vec3.dot(momentum, momentum) / craft.mass
        return
    vec3.scale(M, s.pair.target.v, r)
    energy[0] += 0.5 * (M * vec3.dot(s.pair.target.v, s.pair.target.v) + vec3.dot(s.pair.target.w, s.pair.target.L))
    vec3.add(momentum, r, momentum)
    vec3.cross(s.pair.target.p, r, t)
    for i in range(3):
        momentum[3 + i] += s.pair.target.L[i] + t[i]
    energy[0] -= 0.5 * vec3.dot(momentum, momentum) / (M + p.mass)


# -------------------------------------------------------------------------------------------------------------------- the step

cdef void step(void *self_, Sample *sample, double *aux) noexcept nogil:
    cdef Self *self = <Self *>self_
    cdef TreeRecord *record = <TreeRecord *>aux
    cdef TreeParams *p = &self.flat.params
    cdef TreeState *s = &self.flat.state
    cdef int n = sample.periods
    cdef int i
    cdef double elapsed, deviation, largest = 0.0
    cdef double V_before[6]
    cdef double P[3]
    if n < 1:
        n = 1
    elapsed = n * p.period
    for i in range(6):
        V_before[i] = s.pair.V_TA[i]
        sample.A_TA[i] = 0.0
    if sample.motion == MOTION_FREE:
        # what the measured wrench does to the bodies, over the true elapsed time
        if s.pair.joined:
            release(self)
        for _ in range(n):
            integrate_free(self, sample.F_T_corrected, sample.control_A)
        relative_state(&p.pair, &s.pair, sample.X_TA, sample.V_TA)
        for i in range(6):
            sample.A_TA[i] = (sample.V_TA[i] - V_before[i]) / elapsed
    elif sample.motion == MOTION_JOINED:
        if not s.pair.joined:
            join(self)
        for _ in range(n):
            integrate_tree(self, &self.joined, NO_FORCE, NO_FORCE, s.pair.active.p, sample.control_A)
        pose.copy(s.pair.join_X_TA, sample.X_TA)
        for i in range(6):
            sample.V_TA[i] = 0.0
    elif sample.motion == MOTION_CLOSE_LOOP:
        # bumpless: from the achieved pose and twist, not from the commanded ones
        start(self, sample.X_TA_measured, sample.V_TA_measured)
        take_motion(sample, sample.X_TA_measured, sample.V_TA_measured)
        see_bodies(self, &self.alone)
    elif sample.motion == MOTION_FOLLOW_PROFILE:
        start(self, sample.profile_X_TA, sample.profile_V_TA)
        take_motion(sample, sample.profile_X_TA, sample.profile_V_TA)
        for i in range(6):
            sample.A_TA[i] = sample.profile_A_TA[i]
        see_bodies(self, &self.alone)
    else:
        # frozen: the relative pose stays
        for i in range(6):
            sample.V_TA[i] = 0.0
    for i in range(6):
        s.pair.V_TA[i] = sample.V_TA[i]
    # absolute states, invariants, and the model's own verdict
    own_centre(self, sample.X_NC, P)
    quat.copy(s.q + 3, sample.X_NC + 3)
    vec3.scale(1.0 / p.mass, P, sample.V_NC)
    quat.rotate(s.q + 3, s.v + 3, sample.V_NC + 3)
    body_pose(&s.pair.target, sample.X_NV)
    body_twist(&s.pair.target, sample.V_NV)
    invariants(self, sample.momentum, &sample.kinetic_energy)
    sample.dynamics_status = 0
    if not (sample.kinetic_energy <= 1e12):
        sample.dynamics_status |= DYNAMICS_STATUS_NOT_FINITE
    if not (vec3.dot(sample.X_TA, sample.X_TA) <= p.pair.range_max * p.pair.range_max):
        sample.dynamics_status |= DYNAMICS_STATUS_OUT_OF_RANGE
    if s.pair.joined:
        sample.dynamics_status |= DYNAMICS_STATUS_JOINED
    for i in range(p.joints):
        deviation = s.q[7 + i] - p.angle[i]
        largest = max(largest, deviation, -deviation)
    record.tree_kernels = p.generated
    record.joint_deviation = largest


# ------------------------------------------------------------------------------------------------------------------ set-up

def _per_joint(key, value, count):
    """`value` for every joint: one number for all or one each."""
    array = np.asarray(value, float)
    if array.size not in (1, count):
        raise ValueError(f"{key}: {array.size} values, limit 1 or {count} (the joints of the model)")
    return np.full(count, array[0]) if array.size == 1 else array


cdef class TreeAndBody(StagePart):
    """Dynamics of a free-flying tree and a rigid spacecraft. Raises ValueError for a model that is no free-flyer with one-axis joints, an
    unknown body, and joints too stiff or too strongly damped for the period.

    .generated: path of the kernels generated for the tree, or None; .notes: the same in words, for the log."""

    PARAMETERS = (
        Parameter("model", "str", "-", "tree of the active vehicle: file of [[body]] tables, root body with a free joint"),
        Parameter("model_data", "table", "-", "tables of that file; the configuration takes them in when it is read", {}),
        Parameter("port_body", "str", "-", "body or link that carries the docking port"),
        Parameter("joint_angles", "floats", "rad or m", "given joint coordinates, one for all or one each", [0.0], low=-1e3, high=1e3),
        Parameter("stiffness", "floats", "N.m/rad or N/m", "of the held joints, one for all or one each", [1e4], low=0.0, high=1e12),
        Parameter("damping", "floats", "N.m.s/rad or N.s/m", "of the held joints, one for all or one each", [1e3], low=0.0, high=1e12),
        Parameter("kernels", "str", "-", "generated where they pay and a compiler is there, or general", "fastest",
                  choices=("fastest", "general")),
        Parameter("range_max_m", "float", "m", "ports further apart than this are out of the model's range", 5.0, low=0.01, high=1000.0),
    )
    AUX = AUX
    CONTEXT = ("period_s", "vehicles", "start")
    cdef Self c
    cdef Tree tree
    cdef Tree general
    cdef Tree whole_tree
    cdef list _memory
    cdef readonly tuple notes

    def __init__(self, *, period_s, vehicles, start, **given):
        cdef TreeParams *p = &self.c.flat.params
        cdef int i
        keys = checked(TreeAndBody.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.general = Tree(bodies_of(model_tables(keys["model"], keys["model_data"]), keys["model"]), gravity=(0.0, 0.0, 0.0))
        self._check_tree(keys["model"])
        count = self.general.nv - 6
        angles, k, d = (_per_joint(key, keys[key], count) for key in ("joint_angles", "stiffness", "damping"))
        self._check_step(period_s, angles, k, d)
        fill_vehicle(&p.pair.active, "active vehicle", vehicles.active)
        fill_vehicle(&p.pair.target, "target vehicle", vehicles.target)
        p.pair.range_max = keys["range_max_m"]
        p.pair.period = p.period = period_s
        for i in range(3):
            p.pair.orbital_rate[i] = start.orbital_rate_rad_s[i]
        p.joints = count
        for i in range(count):
            p.angle[i], p.stiffness[i], p.damping[i] = angles[i], k[i], d[i]
        self._place_port(keys["port_body"], angles)
        self._check_mass(keys["model"])
        p.fingerprint = int.from_bytes(hashlib.sha256(repr(self.general.constants()).encode()).digest()[:8], "little")
        self._memory = [None, None]
        self._join_to(self.general.bodies[p.row].name, np.asarray(vehicles.target.inertia_kg_m2, float))
        self._use(self.general.fastest() if keys["kernels"] == "fastest" else self.general)
        self.notes = (f"tree {Path(keys['model']).name}, {p.mass:.6g} kg: {'generated' if p.generated else 'general'} kernels, "
                      f"{self.tree.instruction_set}",)
        self.plug.self = &self.c
        self.plug.self_size = 0
        self.plug.state = &self.c.flat.state
        self.plug.state_size = sizeof(TreeState)
        self.plug.step = step
        cdef double X[7]
        cdef double V[6]
        pose.identity(X)
        memset(V, 0, sizeof(V))
        start_at(&self.c, X, V)

    def _check_tree(self, model):
        bodies = self.general.bodies
        roots = [b for b in bodies if b.parent is None]
        root = roots[0] if len(roots) == 1 else None
        if root is None or root is not bodies[0] or root.joint != "free" or np.any(root.p_PJ_P) or np.any(root.R_PJ != np.eye(3)):
            raise ValueError(f"model {model}: the first body must be the only root, with a free joint at zero position and angles")
        for b in bodies[1:]:
            if b.joint not in ("revolute", "prismatic"):
                raise ValueError(f"model {model}: joint {b.joint_name!r} must be revolute or prismatic, got {b.joint}")
        if self.general.nv > MAX_V:
            raise ValueError(f"model {model}: {self.general.nv - 6} joints, limit {MAX_V - 6}")

    def _check_step(self, period, angles, k, d):
        """x+ = 2 x - x- under stiffness and damping is stable while h^2 k + 2 h d < 4 I in every direction; a quarter of it is allowed,
        since the inertia changes with the pose."""
        H = self.general.mass_matrix(np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], angles]))
        if not len(angles):
            return
        inertia = H[6:, 6:] - H[6:, :6] @ np.linalg.solve(H[:6, :6], H[:6, 6:])
        root = np.linalg.inv(np.linalg.cholesky(inertia))
        largest = np.linalg.eigvalsh(root @ np.diag(period * period * k + 2.0 * period * d) @ root.T).max()
        if largest > 1.0:
            raise ValueError(f"stiffness, damping: (h^2 k + 2 h d) / I reaches {largest:.3g} at a period of {period:g} s, limit 1")

    def _place_port(self, port_body, angles):
        """Port in its body from the port in C at the given angles."""
        cdef TreeParams *p = &self.c.flat.params
        cdef double X_RC[7]
        cdef double X_BR[7]
        tree = self.general
        try:
            body = tree.frame(port_body).body
        except ValueError as error:
            raise ValueError(f"port_body: {error}") from None
        if body < 0:
            raise ValueError(f"port_body: {port_body!r} is fixed in the inertial frame")
        q = np.concatenate([[0, 0, 0, 0, 0, 0, 1.0], angles])
        R, position = tree.pose(q, tree.bodies[body].name)
        cdef double[::1] R_ = np.ascontiguousarray(R).ravel()
        quat.from_matrix(&R_[0], p.X_RB + 3)
        centre = tree.centre_of_mass(q)
        pose.identity(X_RC)
        for i in range(3):
            p.X_RB[i] = position[i]
            X_RC[i] = centre[i]
        pose.inverse(p.X_RB, X_BR)
        pose.multiply(X_BR, X_RC, X_BR)
        pose.multiply(X_BR, p.pair.active.X_port, p.pair.active.X_port)
        p.row = body
        for i, value in enumerate(tree._align(tree.slot_of(body)).ravel()):
            p.R_align[i] = value
        p.mass = sum(b.mass for b in tree.bodies)

    def _check_mass(self, model):
        """The table of the active vehicle and the bodies of the model must speak of one craft."""
        cdef TreeParams *p = &self.c.flat.params
        if not abs(p.pair.active.mass - p.mass) <= 1e-9 * p.mass:
            raise ValueError(f"mass_kg of the active vehicle is {p.pair.active.mass:.12g} kg, the bodies of the model {model} have "
                             f"{p.mass:.12g} kg (sum of their mass_kg): give both the same mass")

    def _join_to(self, carrier, inertia):
        """The tree with the target vehicle as one more body, held to the body of the port."""
        bodies = [*self.general.bodies, Body("target vehicle", carrier, "free", mass=self.c.flat.params.pair.target.mass, inertia=inertia)]
        self.whole_tree = Tree(bodies, gravity=(0.0, 0.0, 0.0))
        q = self.whole_tree.neutral()
        self.whole_tree.lock(q, np.zeros(self.whole_tree.nv), "target vehicle")
        self._fill(&self.c.joined, self.whole_tree, 1)
        self.c.joined.guest = self.whole_tree.slot_of(len(bodies) - 1)
        self.c.joined.mass = self.c.flat.params.mass + self.c.flat.params.pair.target.mass

    cdef int _fill(self, Craft *craft, Tree tree, int which) except -1:
        self._memory[which] = H, rows, f_ext = np.zeros(tree.nv * tree.nv), np.zeros(18 * tree.n), np.zeros(6 * tree.n_bodies)
        cdef double[::1] H_ = H, rows_ = rows, f_ext_ = f_ext
        craft.model, craft.work = tree.model, tree.work
        craft.H, craft.rows, craft.f_ext = &H_[0], &rows_[0], &f_ext_[0]
        craft.mass, craft.slot, craft.guest = self.c.flat.params.mass, tree.slot_of(self.c.flat.params.row), -1
        return 0

    def _use(self, Tree tree):
        """The kernels of this tree from now on; joined, the general ones."""
        self.tree = tree
        self._fill(&self.c.alone, tree, 0)
        self.c.flat.params.generated = tree.generated is not None

    @property
    def generated(self):
        return self.tree.generated

    def joints(self):
        """(coordinates, rates) of the joints [rad or m, and per second], in the order of the model."""
        cdef TreeState *s = &self.c.flat.state
        count = self.c.flat.params.joints
        return np.array([s.q[7 + j] for j in range(count)]), np.array([s.v[6 + j] for j in range(count)])

    def dump(self):
        return PyBytes_FromStringAndSize(<const char *>&self.c.flat, sizeof(Flat))

    def fields(self):
        return self.c.flat

    def load_unchecked(self, bytes block):
        if len(block) != sizeof(Flat):
            raise ValueError(f"block has {len(block)} bytes, this part has {sizeof(Flat)}")
        memcpy(&self.c.flat, PyBytes_AS_STRING(block), sizeof(Flat))

    def load(self, bytes block):
        """Constants and initial state of a log, and the kind of kernels that it was made with. Raises ValueError when this machine has
        neither a compiler for generated ones nor kept ones, or prepares other constants of the tree."""
        cdef const Flat *flat = <const Flat *>PyBytes_AS_STRING(block)
        if len(block) != sizeof(Flat):
            raise ValueError(f"block has {len(block)} bytes, this part has {sizeof(Flat)}")
        if flat.params.fingerprint != self.c.flat.params.fingerprint:
            raise ValueError("the tree of the log has other constants than the one of its file on this machine")
        if flat.params.generated != self.c.flat.params.generated:
            try:
                self._use(self.general.generate() if flat.params.generated else self.general)
            except GenerationError as error:
                raise ValueError("the log was made with kernels generated for its tree, whose last digits differ from the general ones, "
                                 f"and they cannot be made here: {error}") from None
        super().load(block)


cdef void start_at(Self *self, const double *X_TA, const double *V_TA) noexcept:
    start(self, X_TA, V_TA)
    see_bodies(self, &self.alone)
