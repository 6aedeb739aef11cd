"""The target vehicle as the root of the arm's tree: its inertia, its twist from the momentum, its motion, a payload that joins it.

P and L are the momentum and the angular momentum of vehicle and arm about the origin of N;
with H of tree and vehicle and the joint rates v_j

    V_0 = H_00^-1 (h_0 - H_0j v_j),  h_0 = [R^T P; R^T (L - p x P)]                       twist of the root, its axes

so the momentum that link and contact exchange is kept to rounding.
"""

from libc.string cimport memset

from rt_kernels.algebra cimport pose, quat, rot3, vec3
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport Arm, ArmParams, ArmState


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


cdef void rigid_inertia(const two_bodies.Vehicle *vehicle, const double *X, double *S) noexcept nogil:
    """Add the 6x6 inertia of a vehicle with its frame at X to S, about the origin and on the axes in which X is given."""
    cdef double R[9]
    cdef double RI[9]
    cdef double I[9]
    cdef double m = vehicle.mass
    cdef double cc = vec3.dot(X, X)
    cdef int i, j
    quat.to_matrix(X + 3, R)
    rot3.multiply(R, vehicle.inertia, RI)
    rot3.multiply_transposed(RI, R, I)
    for i in range(3):
        S[7 * i] += m
        for j in range(3):
            S[6 * (3 + i) + 3 + j] += I[3 * i + j] - m * X[i] * X[j] + (m * cc if i == j else 0.0)
    # m c~ below, its transpose above
    S[18 + 1] -= m * X[2]
    S[18 + 2] += m * X[1]
    S[24 + 0] += m * X[2]
    S[24 + 2] -= m * X[0]
    S[30 + 0] -= m * X[1]
    S[30 + 1] += m * X[0]
    for i in range(3):
        for j in range(3):
            S[6 * i + 3 + j] = S[6 * (3 + j) + i]


cdef void add_vehicle_bias(const ArmState *s, double *bias) noexcept nogil:
    """What the rigid body of inertia S needs at the root's twist [v; w] without acceleration, momentum [p; l]: [w x p; v x p + w x l]."""
    cdef double h[6]
    cdef double t[3]
    cdef int i, j
    for i in range(6):
        h[i] = 0.0
        for j in range(6):
            h[i] += s.S[6 * i + j] * s.v[j]
    vec3.cross(s.v + 3, h, t)
    vec3.add(bias, t, bias)
    vec3.cross(s.v, h, t)
    vec3.add(bias + 3, t, bias + 3)
    vec3.cross(s.v + 3, h + 3, t)
    vec3.add(bias + 3, t, bias + 3)


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


cdef void root_twist(const double *H, int nv, const ArmState *s, const double *X, double *V) noexcept nogil:
    """Twist of the root [body axes] at pose X that belongs to P and L and the joint rates of `v`."""
    cdef double A[36]
    cdef double r[3]
    cdef int i, j
    vec3.cross(X, s.P, r)
    vec3.sub(s.L, r, r)
    quat.rotate_back(X + 3, s.P, V)
    quat.rotate_back(X + 3, r, V + 3)
    for i in range(6):
        for j in range(6):
            A[6 * i + j] = H[nv * i + j]
        for j in range(6, nv):
            V[i] -= H[nv * i + j] * s.v[j]
    solve6(A, V)


cdef void move_root(const double *V, double h, const double *X, double *out) noexcept nogil:
    """Pose X advanced by the twist V [body axes] over h."""
    cdef double r[3]
    cdef double dq[4]
    quat.rotate(X + 3, V, r)
    vec3.add_scaled(X, h, r, out)
    vec3.scale(h, V + 3, r)
    quat.exponential(r, dq)
    quat.multiply(X + 3, dq, out + 3)
    quat.normalize(out + 3)


cdef void see_vehicles(Arm *self) noexcept nogil:
    """The target vehicle, and a joined payload, where the root carries them."""
    cdef ArmState *s = &self.flat.state
    cdef two_bodies.Body *b
    cdef const two_bodies.Vehicle *vehicle
    cdef double X[7]
    cdef double v[3]
    cdef double r[3]
    cdef int k
    for k in range(2 if s.joined else 1):
        b = &s.pair.active if k else &s.pair.target
        vehicle = &self.flat.params.pair.active if k else &self.flat.params.pair.target
        pose.multiply(s.x, &s.X_OC[0] if k else &s.X_OV[0], X)
        vec3.copy(X, &b.p.x)
        quat.copy(X + 3, &b.q.x)
        quat.normalize(&b.q.x)
        quat.rotate(s.x + 3, s.v, v)
        quat.rotate(s.x + 3, s.v + 3, &b.w.x)
        vec3.sub(X, s.x, r)
        vec3.cross(&b.w.x, r, r)
        vec3.add(v, r, &b.v.x)
        quat.rotate_back(&b.q.x, &b.w.x, r)
        rot3.apply(vehicle.inertia, r, r)
        quat.rotate(&b.q.x, r, &b.L.x)


cdef void integrate_root(Arm *self) noexcept nogil:
    """Pose and twist of the root at the new joint angles and rates; attitude with the twist at half the step."""
    cdef ArmState *s = &self.flat.state
    cdef int nv = self.model.nv
    cdef double h = self.flat.params.h
    cdef double half[7]
    inertia_with_vehicle(self)
    root_twist(self.H, nv, s, s.x, s.v)
    move_root(s.v, 0.5 * h, s.x, half)
    root_twist(self.H, nv, s, half, s.v)
    move_root(s.v, h, s.x, s.x)
    root_twist(self.H, nv, s, s.x, s.v)
    see_vehicles(self)


cdef void join(Arm *self, bint joined) noexcept nogil:
    """The payload becomes part of the target vehicle, or is let go: momentum and inertia go over. A fixed vehicle takes all momentum."""
    cdef const ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef two_bodies.Body *b = &s.pair.active
    cdef double X[7]
    cdef double r[3]
    cdef double t[3]
    s.joined = joined
    if not p.free:
        if joined:
            memset(&b.v, 0, sizeof(b.v))
            memset(&b.w, 0, sizeof(b.w))
            memset(&b.L, 0, sizeof(b.L))
        return
    vec3.scale(p.pair.active.mass if joined else -p.pair.active.mass, &b.v.x, r)
    vec3.cross(&b.p.x, r, t)
    vec3.add(s.P, r, s.P)
    vec3.add(s.L, t, s.L)
    vec3.add_scaled(s.L, 1.0 if joined else -1.0, &b.L.x, s.L)
    memset(s.S, 0, sizeof(s.S))
    rigid_inertia(&p.pair.target, s.X_OV, s.S)
    if joined:
        vec3.copy(&b.p.x, X)
        quat.copy(&b.q.x, X + 3)
        pose.inverse(s.x, s.X_OC)
        pose.multiply(s.X_OC, X, s.X_OC)
        rigid_inertia(&p.pair.active, s.X_OC, s.S)
    inertia_with_vehicle(self)
    root_twist(self.H, self.model.nv, s, s.x, s.v)
    see_vehicles(self)
