"""One inner step of payload, joints and arm: numbers 1 to 7 of `payload.pyx`, where equations, frames and sources stand."""

from libc.math cimport fabs
from libc.string cimport memset

from rt_kernels.algebra.values cimport (
    Mat3, Vec3, add, antisymmetric_part, cross, mat, mat_multiply, mat_transposed_vec, mat_vec, mul, put, quat, rotate, rotate_back, sub,
    to_matrix, transposed, vec, xyz,
)
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport MAX_V, Arm, ArmParams, ArmState
from rt_kernels.dynamics.manipulator.compliance cimport ArmFrame, arm_place
from rt_kernels.dynamics.manipulator.free_root cimport add_vehicle_bias, inertia_with_vehicle, integrate_root
from rt_kernels.dynamics.manipulator.joint_drive cimport ControllerState, control_step, drive_response, drive_step
from rt_kernels.dynamics.manipulator.resolved_rate cimport ARM_JOINTS
from rt_kernels.dynamics.two_bodies cimport accumulate, integrate_body
from rt_kernels.codes cimport ARM_MODE_BRAKES, ARM_MODE_LIMP
from rt_kernels.sample cimport Sample


cdef struct Link:                      # between end effector and payload, axes of E unless stated
    Mat3 R_OE
    Mat3 R_NE
    Vec3 lever                         # from the payload's centre of mass to G, N axes
    double F_0[6]                      # K d
    double F[6]                        # with the damper
    double u[6]                        # of the payload at G without the damper, then less J v


cdef struct Motors:                    # of one inner step, by joint
    double V[ARM_JOINTS]               # voltage
    double A[ARM_JOINTS]               # gear torque at the end of the step: A - B w+
    double B[ARM_JOINTS]


cdef inline Vec3 column(const double *A, int n, int k) noexcept nogil:
    # of a (3, n) matrix
    return xyz(A[k], A[n + k], A[2 * n + k])


cdef inline void place_link(Arm *self, Link *link, double J[6][MAX_V]) noexcept nogil:
    """1: end effector, deflection of the grapple fixture, elastic wrench, Jacobian J of the end effector's body at G."""
    cdef const ArmParams *p = &self.flat.params
    cdef const ArmState *s = &self.flat.state
    cdef const two_bodies.Body *b = &s.pair.active
    cdef int nv = p.nr + p.n
    cdef int i, j, k
    cdef Vec3 origin = xyz(0.0, 0.0, 0.0)
    cdef Vec3 p_E, r_E, point, v, w
    cdef Mat3 R_NC, R_EG
    cdef ArmFrame E
    cdef double d[6]
    cdef double J_O[6 * MAX_V]
    self.model.operations.motion(self.model, s.x, NULL, &origin.x, self.rows)
    E = arm_place(&p.E, self.rows)
    p_E = add(mat_vec(s.R_NO, E.p), s.X_NO.p)
    link.R_OE = E.R
    link.R_NE = mat_multiply(s.R_NO, E.R)
    # deflection of the grapple fixture, axes of E
    R_NC = to_matrix(b.q)
    R_EG = mat_multiply(transposed(link.R_NE), mat_multiply(R_NC, p.R_CG))
    link.lever = mat_vec(R_NC, p.X_CG.p)
    r_E = mat_transposed_vec(link.R_NE, sub(add(b.p, link.lever), p_E))
    put(r_E, d)
    put(antisymmetric_part(R_EG), d + 3)
    for i in range(6):
        link.F_0[i] = 0.0
        for j in range(6):
            link.F_0[i] += s.K[6 * i + j] * d[j]
    # J of the point of the end effector's body where G is
    point = add(p.E.p, mat_vec(p.E.R, r_E))
    self.model.operations.jacobian(self.model, self.rows, p.E.slot, &point.x, J_O)
    for k in range(nv):
        v = mat_transposed_vec(E.R, column(J_O, nv, k))
        w = mat_transposed_vec(E.R, column(J_O + 3 * nv, nv, k))
        J[0][k] = v.x; J[1][k] = v.y; J[2][k] = v.z
        J[3][k] = w.x; J[4][k] = w.y; J[5][k] = w.z


cdef inline void move_payload_freely(const Arm *self, Contact *contact, Link *link, double J[6][MAX_V]) noexcept nogil:
    """2: the payload's twist at G after the step without the damper. Joined, it moves with the root: only the joints load the link."""
    cdef const two_bodies.Vehicle *payload = &self.flat.params.pair.active
    cdef const ArmState *s = &self.flat.state
    cdef const two_bodies.Body *b = &s.pair.active
    cdef double h = self.flat.params.h
    cdef int i, k
    cdef Vec3 f = mat_vec(link.R_NE, vec(link.F_0))
    cdef Vec3 m = mat_vec(link.R_NE, vec(link.F_0 + 3))
    cdef Vec3 v, L, w
    contact.moment = add(cross(sub(contact.p, b.p), contact.f), contact.m)
    v = add(b.v, mul(h * payload.inverse_mass, sub(contact.f, f)))
    L = add(b.L, mul(h, sub(sub(contact.moment, m), cross(link.lever, f))))
    w = rotate(b.q, mat_vec(mat(payload.inverse_inertia), rotate_back(b.q, L)))
    put(mat_transposed_vec(link.R_NE, add(v, cross(w, link.lever))), link.u)
    put(mat_transposed_vec(link.R_NE, w), link.u + 3)
    if s.joined:
        for i in range(6):
            link.u[i] = 0.0
            for k in range(self.flat.params.nr):
                J[i][k] = 0.0


cdef inline void control_motors(Arm *self, int arm_mode, Motors *motors) noexcept nogil:
    """3: motor voltages, and what the gears' torques will be with them. Braked and limp joints get no current."""
    cdef const ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef int j
    s.limited = 0
    for j in range(p.n):
        s.drive[j].braked = arm_mode == ARM_MODE_BRAKES
        if arm_mode == ARM_MODE_BRAKES or arm_mode == ARM_MODE_LIMP:
            memset(&s.controller[j], 0, sizeof(ControllerState))
            s.controller[j].count = s.count
            motors.V[j] = p.drive[j].K_B * s.drive[j].w_m
        else:
            motors.V[j] = control_step(&p.drive[j], &p.controller[j], &s.controller[j], &s.drive[j], s.command[j] * p.drive[j].i_R, p.h)
            s.limited |= s.controller[j].limited != 0
        drive_response(&p.drive[j], &s.drive[j], motors.V[j], p.h, &motors.A[j], &motors.B[j])


cdef inline void load_arm(Arm *self, const Contact *contact, Link *link, double J[6][MAX_V], const Motors *motors,
                          double *y) noexcept nogil:
    """4: H of the arm with damper and gears as further inertia, right side y: bias, link, contact on a free root, gear torques."""
    cdef const ArmParams *p = &self.flat.params
    cdef const ArmState *s = &self.flat.state
    cdef double *H = self.H
    cdef int nr = p.nr
    cdef int nv = p.nr + p.n
    cdef int i, j, k
    cdef double h = p.h
    cdef double t, scale
    cdef Vec3 m
    cdef double DJ[6][MAX_V]
    inertia_with_vehicle(self)
    self.model.kernels.inverse_dynamics(self.model, self.work, s.x, s.v, self.zeros, NULL, self.bias, NULL)
    if p.free:
        add_vehicle_bias(s, self.bias)
    for i in range(6):
        for k in range(nv):
            link.u[i] -= J[i][k] * s.v[k]
    for i in range(6):
        t = 0.0
        for j in range(6):
            t += s.D[6 * i + j] * link.u[j]
        link.F[i] = link.F_0[i] + t
        for k in range(nv):
            t = 0.0
            for j in range(6):
                t += s.D[6 * i + j] * J[j][k]
            DJ[i][k] = h * t
    for k in range(nv):
        y[k] = -self.bias[k]
        for i in range(6):
            y[k] += J[i][k] * link.F[i]
        for j in range(k + 1):
            t = 0.0
            for i in range(6):
                t += J[i][k] * DJ[i][j]
            H[nv * k + j] += t
    if p.free and not s.joined:
        # the contact acts on the root with the opposite sign
        m = add(cross(sub(contact.p, vec(s.x)), contact.f), contact.m)
        put(sub(vec(y), rotate_back(quat(s.x + 3), contact.f)), y)
        put(sub(vec(y + 3), rotate_back(quat(s.x + 3), m)), y + 3)
    for j in range(p.n):
        scale = p.drive[j].i_R
        y[nr + j] += scale * (motors.A[j] - motors.B[j] * s.drive[j].w)
        H[(nv + 1) * (nr + j)] += h * scale * scale * motors.B[j]
    if p.locked >= 0:
        j = nr + p.locked
        for k in range(nv):
            H[nv * j + k] = 0.0
            H[nv * k + j] = 0.0
        H[(nv + 1) * j] = 1.0
        y[j] = 0.0


cdef inline void eliminate(double *H, int nv, double *y) noexcept nogil:
    """5: from the tip to the base, H = L^T D L in place."""
    cdef int i, j, k
    cdef double t, scale
    for k in range(nv - 1, 0, -1):
        scale = 1.0 / H[(nv + 1) * k]
        for i in range(k):
            t = H[nv * k + i] * scale
            y[i] -= t * y[k]
            for j in range(i + 1):
                H[nv * i + j] -= t * H[nv * k + j]


cdef inline void turn_joints(Arm *self, const Motors *motors, const double *y, double *a) noexcept nogil:
    """6: from the base to the tip, motor and gear of every joint together; a: accelerations of the arm's coordinates."""
    cdef const ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef const double *H = self.H
    cdef int nr = p.nr
    cdef int nv = p.nr + p.n
    cdef int i, j, k
    cdef double h = p.h
    cdef double t, scale, load
    for k in range(nv):
        a[k] = 0.0
        j = k - nr
        if j == p.locked and j >= 0:
            continue
        load = y[k]
        for i in range(k):
            load -= H[nv * k + i] * a[i]
        if j < 0:
            a[k] = load / H[(nv + 1) * k]
            continue
        scale = p.drive[j].i_R
        load -= scale * (motors.A[j] - motors.B[j] * s.drive[j].w)
        t = s.drive[j].w
        drive_step(&p.drive[j], &s.drive[j], motors.V[j], load / scale, H[(nv + 1) * k] / (scale * scale) - h * motors.B[j], h)
        a[k] = (s.drive[j].w - t) / (h * scale)
        if fabs(s.drive[j].T_m) >= p.drive[j].T_max:
            s.limited = 1


cdef inline void move_payload(Arm *self, const Contact *contact, const Link *link, double J[6][MAX_V], const double *a) noexcept nogil:
    """7: the link's wrench at the end of the step; payload, joint angles and, where it is free, the root with it."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef two_bodies.Body *b = &s.pair.active
    cdef int nr = p.nr
    cdef int nv = p.nr + p.n
    cdef int i, j, k
    cdef double h = p.h
    cdef double t, rate
    cdef Vec3 f, m, l
    for i in range(6):
        t = 0.0
        for j in range(6):
            rate = link.u[j]
            for k in range(nv):
                rate -= h * J[j][k] * a[k]
            t += s.D[6 * i + j] * rate
        s.wrench[i] = link.F_0[i] + t
    for j in range(p.n):
        s.x[p.nq + j] = s.drive[j].phi / p.drive[j].i_R
        s.v[nr + j] = s.drive[j].w / p.drive[j].i_R
    if not s.joined:
        f = mat_vec(link.R_NE, vec(s.wrench))
        m = mat_vec(link.R_NE, vec(s.wrench + 3))
        if p.free:
            # opposite of the change of the payload
            l = sub(sub(add(cross(add(b.p, link.lever), f), m), cross(contact.p, contact.f)), contact.m)
            accumulate(h, sub(f, contact.f), &s.P, &s.P_rest)
            accumulate(h, l, &s.L, &s.L_rest)
        m = sub(contact.moment, add(m, cross(link.lever, f)))
        f = sub(contact.f, f)
        integrate_body(&p.pair.active, b, &f, &m, h, 0.0)
    if p.free:
        integrate_root(self)


cdef void inner_step(Arm *self, const Sample *sample, Contact *contact) noexcept nogil:
    """One step of arm and payload under the contact's wrench."""
    cdef Link link
    cdef Motors motors
    cdef double J[6][MAX_V]            # apart from the link, so that the compiler sees that nothing else writes it
    cdef double y[MAX_V]
    cdef double a[MAX_V]
    place_link(self, &link, J)
    move_payload_freely(self, contact, &link, J)
    control_motors(self, sample.arm_mode, &motors)
    load_arm(self, contact, &link, J, &motors, y)
    eliminate(self.H, self.flat.params.nr + self.flat.params.n, y)
    turn_joints(self, &motors, y, a)
    move_payload(self, contact, &link, J, a)
