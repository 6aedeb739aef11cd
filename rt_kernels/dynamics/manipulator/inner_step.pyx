"""One inner step of payload, joints and arm: numbers 1 to 7 of `payload.pyx`, where equations, frames and sources stand."""

from libc.math cimport fabs
from libc.string cimport memset

from rt_kernels.algebra cimport quat, rot3, vec3
from rt_kernels.algebra.values cimport Vec3, vec
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport MAX_V, Arm, ArmParams, ArmState
from rt_kernels.dynamics.manipulator.compliance cimport arm_place
from rt_kernels.dynamics.manipulator.free_root cimport add_vehicle_bias, inertia_with_vehicle, integrate_root
from rt_kernels.dynamics.manipulator.joint_drive cimport ControllerState, control_step, drive_response, drive_step
from rt_kernels.dynamics.manipulator.resolved_rate cimport ARM_JOINTS
from rt_kernels.dynamics.two_bodies cimport accumulate, integrate_body
from rt_kernels.codes cimport ARM_MODE_BRAKES, ARM_MODE_LIMP
from rt_kernels.sample cimport Sample


cdef struct Contact:                   # wrench on the payload, acting at the point p, N axes
    const double *f
    const double *m
    const double *p
    double moment[3]                   # about the payload's centre of mass


cdef struct Link:                      # between end effector and payload, axes of E unless said
    double R_OE[9]
    double R_NE[9]
    double lever[3]                    # from the payload's centre of mass to G, N axes
    double F_0[6]                      # K d
    double F[6]                        # with the damper
    double u[6]                        # of the payload at G without the damper, then less J v


cdef struct Motors:                    # of one inner step, by joint
    double V[ARM_JOINTS]               # voltage
    double A[ARM_JOINTS]               # gear torque at the end of the step: A - B w+
    double B[ARM_JOINTS]


cdef inline void place_link(Arm *self, Link *link, double J[6][MAX_V]) noexcept nogil:
    """1: end effector, deflection of the grapple fixture, elastic wrench, Jacobian J of the end effector's body at G."""
    cdef const ArmParams *p = &self.flat.params
    cdef const ArmState *s = &self.flat.state
    cdef const two_bodies.Body *b = &s.pair.active
    cdef int nv = p.nr + p.n
    cdef int i, j, k
    cdef double origin[3]
    cdef double R[9]
    cdef double R_NG[9]
    cdef double R_EG[9]
    cdef double p_E[3]
    cdef double r[3]
    cdef double d[6]
    cdef double J_O[6 * MAX_V]
    vec3.fill(0.0, 0.0, 0.0, origin)
    self.model.operations.motion(self.model, s.x, NULL, origin, self.rows)
    arm_place(&p.E, self.rows, link.R_OE, p_E)
    rot3.multiply(s.R_NO, link.R_OE, link.R_NE)
    rot3.apply(s.R_NO, p_E, p_E)
    vec3.add(p_E, s.X_NO, p_E)
    # deflection of the grapple fixture, axes of E
    quat.to_matrix(&b.q.x, R)
    rot3.apply(R, p.X_CG, link.lever)
    rot3.multiply(R, p.R_CG, R_NG)
    vec3.add(&b.p.x, link.lever, r)
    vec3.sub(r, p_E, r)
    rot3.apply_transposed(link.R_NE, r, d)
    rot3.transpose(link.R_NE, R)
    rot3.multiply(R, R_NG, R_EG)
    d[3] = 0.5 * (R_EG[7] - R_EG[5])
    d[4] = 0.5 * (R_EG[2] - R_EG[6])
    d[5] = 0.5 * (R_EG[3] - R_EG[1])
    for i in range(6):
        link.F_0[i] = 0.0
        for j in range(6):
            link.F_0[i] += s.K[6 * i + j] * d[j]
    # J of the point of the end effector's body where G is
    rot3.apply(p.E.R, d, r)
    vec3.add(p.E.p, r, r)
    self.model.operations.jacobian(self.model, self.rows, p.E.slot, r, J_O)
    for k in range(nv):
        for i in range(3):
            J[i][k] = link.R_OE[i] * J_O[k] + link.R_OE[3 + i] * J_O[nv + k] + link.R_OE[6 + i] * J_O[2 * nv + k]
            J[3 + i][k] = link.R_OE[i] * J_O[3 * nv + k] + link.R_OE[3 + i] * J_O[4 * nv + k] + link.R_OE[6 + i] * J_O[5 * nv + k]


cdef inline void move_payload_freely(const Arm *self, Contact *contact, Link *link, double J[6][MAX_V]) noexcept nogil:
    """2: the payload's twist at G after the step without the damper. Joined, it moves with the root: the link feels the joints alone."""
    cdef const two_bodies.Vehicle *payload = &self.flat.params.pair.active
    cdef const ArmState *s = &self.flat.state
    cdef const two_bodies.Body *b = &s.pair.active
    cdef double h = self.flat.params.h
    cdef int i, k
    cdef double f[3]
    cdef double m[3]
    cdef double r[3]
    cdef double w[3]
    rot3.apply(link.R_NE, link.F_0, f)
    rot3.apply(link.R_NE, link.F_0 + 3, m)
    vec3.cross(link.lever, f, r)
    vec3.sub(contact.p, &b.p.x, contact.moment)
    vec3.cross(contact.moment, contact.f, contact.moment)
    vec3.add(contact.moment, contact.m, contact.moment)
    for i in range(3):
        link.u[i] = (&b.v.x)[i] + h * payload.inverse_mass * (contact.f[i] - f[i])
        w[i] = (&b.L.x)[i] + h * (contact.moment[i] - m[i] - r[i])
    quat.rotate_back(&b.q.x, w, w)
    rot3.apply(payload.inverse_inertia, w, w)
    quat.rotate(&b.q.x, w, w)
    vec3.cross(w, link.lever, r)
    vec3.add(link.u, r, link.u)
    rot3.apply_transposed(link.R_NE, link.u, link.u)
    rot3.apply_transposed(link.R_NE, w, link.u + 3)
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
    cdef double r[3]
    cdef double w[3]
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
        vec3.sub(contact.p, s.x, r)
        vec3.cross(r, contact.f, r)
        vec3.add(r, contact.m, r)
        quat.rotate_back(s.x + 3, r, r)
        quat.rotate_back(s.x + 3, contact.f, w)
        for i in range(3):
            y[i] -= w[i]
            y[3 + i] -= r[i]
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
    cdef double f[3]
    cdef double m[3]
    cdef double r[3]
    cdef double w[3]
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
        rot3.apply(link.R_NE, s.wrench, f)
        rot3.apply(link.R_NE, s.wrench + 3, m)
        if p.free:
            # what the payload gets, its opposite
            vec3.add(&b.p.x, link.lever, r)
            vec3.cross(r, f, r)
            vec3.add(r, m, r)
            vec3.cross(contact.p, contact.f, w)
            vec3.sub(r, w, r)
            vec3.sub(r, contact.m, r)
            vec3.sub(f, contact.f, w)
            accumulate(h, vec(w), <Vec3 *>s.P, <Vec3 *>s.P_rest)
            accumulate(h, vec(r), <Vec3 *>s.L, <Vec3 *>s.L_rest)
        vec3.cross(link.lever, f, r)
        vec3.add(m, r, m)
        vec3.sub(contact.f, f, f)
        vec3.sub(contact.moment, m, m)
        integrate_body(&p.pair.active, b, vec(f), vec(m), h, 0.0)
    if p.free:
        integrate_root(self)


cdef void inner_step(Arm *self, const Sample *sample, const double *f_contact, const double *p_contact,
                     const double *m_contact) noexcept nogil:
    """One step of arm and payload. Contact wrench on the payload, acting at the point p_contact, N axes."""
    cdef Contact contact
    cdef Link link
    cdef Motors motors
    cdef double J[6][MAX_V]            # apart from the link, so that the compiler sees that nothing else writes it
    cdef double y[MAX_V]
    cdef double a[MAX_V]
    contact.f, contact.m, contact.p = f_contact, m_contact, p_contact
    place_link(self, &link, J)
    move_payload_freely(self, &contact, &link, J)
    control_motors(self, sample.arm_mode, &motors)
    load_arm(self, &contact, &link, J, &motors, y)
    eliminate(self.H, self.flat.params.nr + self.flat.params.n, y)
    turn_joints(self, &motors, y, a)
    move_payload(self, &contact, &link, J, a)
