"""What the manipulator's stage shows of its state: momentum, energy, auxiliary channels, and its verdict on itself."""

from libc.math cimport fabs
from libc.string cimport memcpy

from rt_kernels.algebra cimport pose, quat, rot3, vec3
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport PATHS, Arm, ArmParams, ArmState
from rt_kernels.dynamics.manipulator.compliance cimport arm_place
from rt_kernels.dynamics.manipulator.joint_drive cimport Drive
from rt_kernels.dynamics.manipulator.record cimport ArmRecord
from rt_kernels.codes cimport (
    ARM_MODE_PATH, DYNAMICS_STATUS_DRIVE_SATURATED, DYNAMICS_STATUS_JOINT_NEAR_STOP, DYNAMICS_STATUS_NEAR_SINGULAR,
    DYNAMICS_STATUS_OVERLOAD, DYNAMICS_STATUS_PATH_DONE,
)
from rt_kernels.sample cimport Sample


cdef inline double gear_energy(const Drive *d, double delta) noexcept nogil:
    """J in a gear that is wound up by delta on the motor side."""
    cdef double x = fabs(delta)
    if x < d.B_L:
        return d.T_D * x * x * x / (3.0 * d.B_L * d.B_L)
    x -= d.B_L
    return d.T_D * d.B_L / 3.0 + x * (d.T_D + 0.5 * d.k_g * x)


cdef void show_deflection(const ArmParams *p, ArmState *s, const double *X_NE) noexcept nogil:
    """Of the grapple fixture, on the axes of the end effector at X_NE."""
    cdef double R[9]
    cdef double X[7]
    cdef double q_EG[4]
    cdef double r[3]
    vec3.copy(&s.pair.active.p.x, X)
    quat.copy(&s.pair.active.q.x, X + 3)
    pose.multiply(X, p.X_CG, X)
    vec3.sub(X, X_NE, r)
    quat.rotate_back(X_NE + 3, r, s.deflection)
    quat.conjugate(X_NE + 3, q_EG)
    quat.multiply(q_EG, X + 3, q_EG)
    quat.to_matrix(q_EG, R)
    s.deflection[3] = 0.5 * (R[7] - R[5])
    s.deflection[4] = 0.5 * (R[2] - R[6])
    s.deflection[5] = 0.5 * (R[3] - R[1])


cdef void show_momentum(const ArmParams *p, const ArmState *s, const double *arm, double *momentum) noexcept nogil:
    """About the origin of N: payload (not once joined), arm, and the target vehicle when it moves. arm: [p; l] about the tree's origin."""
    cdef const two_bodies.Body *b = &s.pair.active
    cdef double r[3]
    cdef double t[3]
    if p.free:
        vec3.copy(s.P, momentum)
        vec3.copy(s.L, momentum + 3)
    else:
        rot3.apply(s.R_NO, arm, momentum)
        rot3.apply(s.R_NO, arm + 3, momentum + 3)
        vec3.cross(s.X_NO, momentum, t)
        vec3.add(momentum + 3, t, momentum + 3)
    if not s.joined:
        vec3.scale(p.pair.active.mass, &b.v.x, r)
        vec3.cross(&b.p.x, r, t)
        vec3.add(t, &b.L.x, t)
        vec3.add(momentum, r, momentum)
        vec3.add(momentum + 3, t, momentum + 3)


cdef double show_energy(const ArmParams *p, const ArmState *s, double energy, double *relative) noexcept nogil:
    """Of everything, with rotors, gears and link, J; `energy`: kinetic, of the tree. `relative`: kinetic,
    of the vehicles' relative motion."""
    cdef const two_bodies.Body *b = &s.pair.active
    cdef const two_bodies.Body *v = &s.pair.target
    cdef double mass = p.pair.active.mass
    cdef double r[3]
    cdef int i, j
    energy += 0.5 * (p.pair.active.mass * vec3.dot(&b.v.x, &b.v.x) + vec3.dot(&b.w.x, &b.L.x))
    vec3.sub(&b.v.x, &v.v.x, r)
    if p.free:
        energy += 0.5 * (p.pair.target.mass * vec3.dot(&v.v.x, &v.v.x) + vec3.dot(&v.w.x, &v.L.x))
        mass = mass * p.pair.target.mass / (mass + p.pair.target.mass)
    relative[0] = 0.5 * (mass * vec3.dot(r, r) + vec3.dot(&b.w.x, &b.L.x) + vec3.dot(&v.w.x, &v.L.x))
    for i in range(p.n):
        energy += 0.5 * p.drive[i].J_g * s.drive[i].w * s.drive[i].w
        energy += 0.5 * p.drive[i].J_m * s.drive[i].w_m * s.drive[i].w_m + gear_energy(&p.drive[i], s.drive[i].delta)
    for i in range(6):
        for j in range(6):
            energy += 0.5 * s.deflection[i] * s.K[6 * i + j] * s.deflection[j]
    return energy


cdef void show_arm(const ArmParams *p, const ArmState *s, ArmRecord *record) noexcept nogil:
    """Joints, wrench about E, rate control."""
    cdef double t[3]
    cdef int i
    for i in range(p.n):
        record.q[i] = s.x[p.nq + i]
        record.rate[i] = s.v[p.nr + i]
        record.rate_command[i] = s.command[i]
        record.motor_torque[i] = s.drive[i].T_m
    for i in range(p.n, ARM_JOINTS_SHOWN):
        record.q[i] = record.rate[i] = record.rate_command[i] = record.motor_torque[i] = 0.0
    memcpy(record.wrench_E, s.wrench, sizeof(s.wrench))
    vec3.cross(s.deflection, s.wrench, t)
    vec3.add(record.wrench_E + 3, t, record.wrench_E + 3)
    memcpy(record.deflection, s.deflection, sizeof(s.deflection))
    record.sigma = s.rates.sigma
    record.limiting_joint = s.rates.limiting
    record.waypoint = s.rates.waypoint
    record.stiffness_refreshed = s.refreshed


cdef unsigned int verdict(Arm *self, const Sample *sample, const ArmRecord *record) noexcept nogil:
    """Bits of `dynamics_status`."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef const double *F = record.wrench_E
    cdef unsigned int status = two_bodies.verdict(sample, record.energy, p.pair.range_max, s.joined)
    cdef int i
    if s.limited:
        status |= DYNAMICS_STATUS_DRIVE_SATURATED
    for i in range(p.n):
        if i != p.locked and (s.x[p.nq + i] < p.rates.low[i] + p.stop_margin or s.x[p.nq + i] > p.rates.high[i] - p.stop_margin):
            status |= DYNAMICS_STATUS_JOINT_NEAR_STOP
    if s.rates.sigma < p.rates.sigma_0:
        status |= DYNAMICS_STATUS_NEAR_SINGULAR
    if not (vec3.dot(F, F) <= p.force_max * p.force_max and vec3.dot(F + 3, F + 3) <= p.moment_max * p.moment_max):
        status |= DYNAMICS_STATUS_OVERLOAD
    if s.mode == ARM_MODE_PATH and 0 <= s.target < PATHS and s.rates.waypoint >= p.n_path[s.target]:
        status |= DYNAMICS_STATUS_PATH_DONE
    return status


cdef void report(Arm *self, Sample *sample, ArmRecord *record) noexcept nogil:
    """Momentum, energy, status and the auxiliary channels of the present state."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef double origin[3]
    cdef double R_OE[9]
    cdef double X_OE[7]
    cdef double first[3]
    cdef double arm[6]
    cdef double mass, energy
    vec3.fill(0.0, 0.0, 0.0, origin)
    self.model.operations.motion(self.model, s.x, s.v, origin, self.rows)
    self.model.operations.totals(self.model, self.rows, arm, &mass, first, &energy)
    arm_place(&p.E, self.rows, R_OE, X_OE)
    quat.from_matrix(R_OE, X_OE + 3)
    pose.multiply(s.X_NO, X_OE, record.X_NE)
    pose.copy(&s.x[0] if p.free else &s.X_NO[0], record.X_NO)
    show_deflection(p, s, record.X_NE)
    show_momentum(p, s, arm, sample.momentum)
    record.energy = show_energy(p, s, energy, &sample.kinetic_energy)
    show_arm(p, s, record)
    sample.dynamics_status = verdict(self, sample, record)
