"""Outputs of the manipulator's stage: momentum, energy, status and auxiliary channels of the present state."""

from libc.math cimport fabs
from libc.string cimport memcpy

from rt_kernels.algebra.values cimport (
    Pose, Vec3, add, antisymmetric_part, compose, conjugate, cross, dot, mat_vec, mul, pose, pose_of, put, put_pose, quat_multiply, quat_of,
    rotate_back, sub, to_matrix, vec, xyz,
)
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport PATHS, Arm, ArmParams, ArmState
from rt_kernels.dynamics.manipulator.compliance cimport ArmFrame, arm_place
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


cdef void show_deflection(const ArmParams *p, ArmState *s, Pose X_NE) noexcept nogil:
    """Of the grapple fixture, on the axes of the end effector at X_NE."""
    cdef Pose X_NG = compose(two_bodies.body_pose(&s.pair.active), p.X_CG)
    put(rotate_back(X_NE.q, sub(X_NG.p, X_NE.p)), s.deflection)
    put(antisymmetric_part(to_matrix(quat_multiply(conjugate(X_NE.q), X_NG.q))), s.deflection + 3)


cdef void show_momentum(const ArmParams *p, const ArmState *s, const double *arm, double *momentum) noexcept nogil:
    """About the origin of N: payload (not once joined), arm, and the target vehicle when it moves. arm: [p; l] about the tree's origin."""
    cdef const two_bodies.Body *b = &s.pair.active
    cdef Vec3 P = s.P, L = s.L, P_C
    if not p.free:
        P = mat_vec(s.R_NO, vec(arm))
        L = add(mat_vec(s.R_NO, vec(arm + 3)), cross(s.X_NO.p, P))
    if not s.joined:
        P_C = mul(p.pair.active.mass, b.v)
        P = add(P, P_C)
        L = add(L, add(cross(b.p, P_C), b.L))
    put(P, momentum)
    put(L, momentum + 3)


cdef double show_energy(const ArmParams *p, const ArmState *s, double energy, double *relative) noexcept nogil:
    """Of everything, with rotors, gears and link, J; `energy`: kinetic, of the tree. `relative`: kinetic,
    of the vehicles' relative motion."""
    cdef const two_bodies.Body *b = &s.pair.active
    cdef const two_bodies.Body *v = &s.pair.target
    cdef double mass = p.pair.active.mass
    cdef Vec3 relative_v = sub(b.v, v.v)
    cdef int i, j
    energy += 0.5 * (p.pair.active.mass * dot(b.v, b.v) + dot(b.w, b.L))
    if p.free:
        energy += 0.5 * (p.pair.target.mass * dot(v.v, v.v) + dot(v.w, v.L))
        mass = mass * p.pair.target.mass / (mass + p.pair.target.mass)
    relative[0] = 0.5 * (mass * dot(relative_v, relative_v) + dot(b.w, b.L) + dot(v.w, v.L))
    for i in range(p.n):
        energy += 0.5 * p.drive[i].J_g * s.drive[i].w * s.drive[i].w
        energy += 0.5 * p.drive[i].J_m * s.drive[i].w_m * s.drive[i].w_m + gear_energy(&p.drive[i], s.drive[i].delta)
    for i in range(6):
        for j in range(6):
            energy += 0.5 * s.deflection[i] * s.K[6 * i + j] * s.deflection[j]
    return energy


cdef void show_arm(const ArmParams *p, const ArmState *s, ArmRecord *record) noexcept nogil:
    """Joints, wrench about E, rate control."""
    cdef Vec3 f = vec(s.wrench)
    cdef int i
    for i in range(p.n):
        record.q[i] = s.x[p.nq + i]
        record.rate[i] = s.v[p.nr + i]
        record.rate_command[i] = s.command[i]
        record.motor_torque[i] = s.drive[i].T_m
    for i in range(p.n, ARM_JOINTS_SHOWN):
        record.q[i] = record.rate[i] = record.rate_command[i] = record.motor_torque[i] = 0.0
    put(f, record.wrench_E)
    put(add(vec(s.wrench + 3), cross(vec(s.deflection), f)), record.wrench_E + 3)
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
    cdef unsigned int status = two_bodies.verdict(sample, record.energy, p.keys.range_max, s.joined)
    cdef int i
    if s.limited:
        status |= DYNAMICS_STATUS_DRIVE_SATURATED
    for i in range(p.n):
        if i != p.locked and (s.x[p.nq + i] < p.rates.low[i] + p.keys.stop_margin or s.x[p.nq + i] > p.rates.high[i] - p.keys.stop_margin):
            status |= DYNAMICS_STATUS_JOINT_NEAR_STOP
    if s.rates.sigma < p.rates.sigma_0:
        status |= DYNAMICS_STATUS_NEAR_SINGULAR
    if not (dot(vec(F), vec(F)) <= p.force_max * p.force_max and dot(vec(F + 3), vec(F + 3)) <= p.moment_max * p.moment_max):
        status |= DYNAMICS_STATUS_OVERLOAD
    if s.mode == ARM_MODE_PATH and 0 <= s.target < PATHS and s.rates.waypoint >= p.n_path[s.target]:
        status |= DYNAMICS_STATUS_PATH_DONE
    return status


cdef void report(Arm *self, Sample *sample, ArmRecord *record) noexcept nogil:
    """Momentum, energy, status and the auxiliary channels of the present state."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef Vec3 origin = xyz(0.0, 0.0, 0.0)
    cdef Vec3 first
    cdef ArmFrame E
    cdef Pose X_NE
    cdef double arm[6]
    cdef double mass, energy
    self.model.operations.motion(self.model, s.x, s.v, &origin.x, self.rows)
    self.model.operations.totals(self.model, self.rows, arm, &mass, &first.x, &energy)
    E = arm_place(&p.E, self.rows)
    X_NE = compose(s.X_NO, pose_of(E.p, quat_of(E.R)))
    put_pose(X_NE, record.X_NE)
    put_pose(pose(s.x) if p.free else s.X_NO, record.X_NO)
    show_deflection(p, s, X_NE)
    show_momentum(p, s, arm, sample.momentum)
    record.energy = show_energy(p, s, energy, &sample.kinetic_energy)
    show_arm(p, s, record)
    sample.dynamics_status = verdict(self, sample, record)
