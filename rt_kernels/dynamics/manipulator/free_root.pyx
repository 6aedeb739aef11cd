"""The target vehicle as the root of the arm's tree: its inertia, its twist from the momentum, its motion, a payload that joins it.

P and L are the momentum and the angular momentum of vehicle and arm about the origin of N;
with H of tree and vehicle and the joint rates v_j

    V_0 = H_00^-1 (h_0 - H_0j v_j),  h_0 = [R^T P; R^T (L - p x P)]                       twist of the root, its axes

so the momentum that link and contact exchange is kept to rounding.
"""

from libc.string cimport memset

from rt_kernels.algebra.values cimport (
    Mat3, Pose, Vec3, add, add_block, block, compose, cross, dot, exponential, inverse, mat, mat_sum, mat_vec, mul, normalized, pose,
    pose_of, put, put_block, put_pose, quat_multiply, rotate, rotate_back, rotated_tensor, rows_of, sub, to_matrix, transposed, vec, xyz,
)
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport Arm, ArmParams, ArmState
from rt_kernels.dynamics.two_bodies cimport body_pose


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


cdef void rigid_inertia(const two_bodies.Vehicle *vehicle, Pose X, double *S) noexcept nogil:
    """Add the 6x6 inertia of a vehicle with its frame at X to S, about the origin and on the axes in which X is given."""
    cdef Vec3 c = X.p
    cdef double m = vehicle.mass
    cdef double mcc = m * dot(c, c)
    cdef Mat3 I_C = rotated_tensor(to_matrix(X.q), mat(vehicle.inertia))
    # tensor about the origin: I_C - m c c^T + m c.c 1
    cdef Mat3 I = mat_sum(I_C, rows_of(mul(-m * c.x, c), mul(-m * c.y, c), mul(-m * c.z, c)))
    add_block(mat_sum(I, rows_of(xyz(mcc, 0.0, 0.0), xyz(0.0, mcc, 0.0), xyz(0.0, 0.0, mcc))), S + 21)
    S[0] += m
    S[7] += m
    S[14] += m
    # m c~ below, its transpose above
    S[18 + 1] -= m * c.z
    S[18 + 2] += m * c.y
    S[24 + 0] += m * c.z
    S[24 + 2] -= m * c.x
    S[30 + 0] -= m * c.y
    S[30 + 1] += m * c.x
    put_block(transposed(block(S + 18)), S + 3)


cdef void add_vehicle_bias(const ArmState *s, double *bias) noexcept nogil:
    """What the rigid body of inertia S needs at the root's twist [v; w] without acceleration, momentum [p; l]: [w x p; v x p + w x l]."""
    cdef Vec3 v = vec(s.v)
    cdef Vec3 w = vec(s.v + 3)
    cdef double h[6]
    cdef int i, j
    for i in range(6):
        h[i] = 0.0
        for j in range(6):
            h[i] += s.S[6 * i + j] * s.v[j]
    put(add(vec(bias), cross(w, vec(h))), bias)
    put(add(add(vec(bias + 3), cross(v, vec(h))), cross(w, vec(h + 3))), bias + 3)


cdef void inertia_with_vehicle(Arm *self) noexcept nogil:
    """H at the present coordinates, with the target vehicle on the root."""
    cdef ArmState *s = &self.flat.state
    cdef int nv = self.model.nv
    cdef int i, j
    self.model.kernels.mass_matrix(self.model, self.work, s.x, self.H)
    if self.flat.params.free:
        for i in range(6):
            for j in range(6):
                self.H[nv * i + j] += s.S[6 * i + j]


cdef void root_twist(const double *H, int nv, const ArmState *s, Pose X, double *V) noexcept nogil:
    """Twist of the root [body axes] at pose X that belongs to P and L and the joint rates of `v`."""
    cdef double A[36]
    cdef int i, j
    put(rotate_back(X.q, s.P), V)
    put(rotate_back(X.q, sub(s.L, cross(X.p, s.P))), V + 3)
    for i in range(6):
        for j in range(6):
            A[6 * i + j] = H[nv * i + j]
        for j in range(6, nv):
            V[i] -= H[nv * i + j] * s.v[j]
    solve6(A, V)


cdef Pose move_root(const double *V, double h, Pose X) noexcept nogil:
    """Pose X advanced by the twist V [body axes] over h."""
    return pose_of(add(X.p, mul(h, rotate(X.q, vec(V)))), normalized(quat_multiply(X.q, exponential(mul(h, vec(V + 3))))))


cdef void see_vehicle(const two_bodies.Vehicle *vehicle, Pose X_O, const double *V_O, Pose X_OB, two_bodies.Body *b) noexcept nogil:
    """A vehicle at X_OB in the root, which is at X_O and has the twist V_O [body axes]."""
    cdef Pose X = compose(X_O, X_OB)
    b.p = X.p
    b.q = normalized(X.q)
    b.w = rotate(X_O.q, vec(V_O + 3))
    b.v = add(rotate(X_O.q, vec(V_O)), cross(b.w, sub(X.p, X_O.p)))
    b.L = rotate(b.q, mat_vec(mat(vehicle.inertia), rotate_back(b.q, b.w)))


cdef void see_vehicles(Arm *self) noexcept nogil:
    """The target vehicle, and a joined payload, where the root carries them."""
    cdef const two_bodies.Params *pair = &self.flat.params.pair
    cdef ArmState *s = &self.flat.state
    see_vehicle(&pair.target, pose(s.x), s.v, s.X_OV, &s.pair.target)
    if s.joined:
        see_vehicle(&pair.active, pose(s.x), s.v, s.X_OC, &s.pair.active)


cdef void integrate_root(Arm *self) noexcept nogil:
    """Pose and twist of the root at the new joint angles and rates; attitude with the twist at half the step."""
    cdef ArmState *s = &self.flat.state
    cdef int nv = self.model.nv
    cdef double h = self.flat.params.h
    cdef Pose X = pose(s.x)
    inertia_with_vehicle(self)
    root_twist(self.H, nv, s, X, s.v)
    root_twist(self.H, nv, s, move_root(s.v, 0.5 * h, X), s.v)
    X = move_root(s.v, h, X)
    root_twist(self.H, nv, s, X, s.v)
    put_pose(X, s.x)
    see_vehicles(self)


cdef void join(Arm *self, bint joined) noexcept nogil:
    """The payload becomes part of the target vehicle, or is let go: momentum and inertia go over. A fixed vehicle takes all momentum."""
    cdef const ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef two_bodies.Body *b = &s.pair.active
    cdef Vec3 P
    s.joined = joined
    if not p.free:
        if joined:
            b.v = b.w = b.L = xyz(0.0, 0.0, 0.0)
        return
    P = mul(p.pair.active.mass if joined else -p.pair.active.mass, b.v)
    s.P = add(s.P, P)
    s.L = add(add(s.L, cross(b.p, P)), mul(1.0 if joined else -1.0, b.L))
    memset(s.S, 0, sizeof(s.S))
    rigid_inertia(&p.pair.target, s.X_OV, s.S)
    if joined:
        s.X_OC = compose(inverse(pose(s.x)), body_pose(b))
        rigid_inertia(&p.pair.active, s.X_OC, s.S)
    inertia_with_vehicle(self)
    root_twist(self.H, self.model.nv, s, pose(s.x), s.v)
    see_vehicles(self)
