"""Stroke of the probe and what acts on it: ball screw, axial damper, end stops, drive; and the movable limiter (Yaskevich 2020, 6.1.1, 6.4,
6.5).

    (m + I i^2) s'' = f_H + i m_FR - sign(s') (k |f_H| + i m_MB(i |s'|))

f_H axial contact force, i = 2 pi/lead, m_FR moment of the clutch chain at the nut, k friction of the ball screw, m_MB moment of the axial
magnetic brakes. Friction is always against the motion (the printed sign adds energy in compression); at rest it holds. The clutch angle is
that of the nut less that of the drive's output shaft; it is positive in compression, and the moment then extends the probe.
"""

from libc.math cimport fabs
from libc.stdint cimport uint32_t

from rt_kernels.codes cimport MECHANISM_COMMAND_DRIVE, MECHANISM_COMMAND_EXTEND, MECHANISM_SIGNAL_DRIVE_RUNNING
from rt_kernels.mechanisms.common.drive cimport drive_angle, drive_rate, drive_step
from rt_kernels.mechanisms.common.hysteresis cimport hysteresis_step, series_clutch_step, stored_energy
from rt_kernels.mechanisms.probe_cone.dynamics cimport solve
from rt_kernels.mechanisms.probe_cone.magnetic_brake cimport table_torque
from rt_kernels.mechanisms.probe_cone.model cimport DOF, LENGTH, LIMITER, State, Unit


# ------------------------------------------------------------------------------------------------------------------------- forces

cdef inline void axial_damper(Unit *u, double *Q) noexcept nogil:
    """Clutch chain and end stops of the ball screw."""
    cdef State *s = &u.state
    cdef double moment = s.axial.Q + u.train_damping * s.train_rate
    cdef double stop = 0.0, excess = 0.0
    u.stop_loss = 0.0
    # m_FR on the nut axis; it extends the probe when the clutch angle is positive
    Q[LENGTH] += u.nut_ratio * u.clutch_ratio * moment
    if s.q[LENGTH] < u.length_min:
        excess = s.q[LENGTH] - u.length_min
    elif s.q[LENGTH] > u.length_max:
        excess = s.q[LENGTH] - u.length_max
    if excess != 0.0:
        stop = -u.stop_stiffness * excess - u.stop_damping * s.v[LENGTH]
        u.record.stored.axial += 0.5 * u.stop_stiffness * excess * excess
        u.stop_loss = u.stop_damping * s.v[LENGTH] * s.v[LENGTH]
    Q[LENGTH] += stop
    u.record.clutch_moment = u.clutch_ratio * moment
    u.record.travel_stop = stop


cdef inline void movable_limiter(Unit *u, double *Q) noexcept nogil:
    """Springs and stops of the movable limiter, and the head that holds it back."""
    cdef State *s = &u.state
    cdef double excess, spring, stop = 0.0, rate
    # springs push the limiter forward; compression counts from the front position
    excess = u.limiter_front - s.q[LIMITER]
    spring = u.limiter_force_front + (u.limiter_force_end - u.limiter_force_front) * excess / u.limiter_travel
    u.record.stored.limiter += excess * 0.5 * (u.limiter_force_front + spring)
    u.record.movable.spring = spring
    rate = s.v[LIMITER]
    u.limiter_loss = 0.0
    if excess < 0.0 or excess > u.limiter_travel:
        if excess > 0.0:
            excess -= u.limiter_travel
        stop = u.limiter_stiffness * excess - u.limiter_damping * rate
        u.limiter_loss = u.limiter_damping * rate * rate
        u.record.stored.limiter += 0.5 * u.limiter_stiffness * excess * excess
    Q[LIMITER] += spring + stop
    # a fully retracted head holds the limiter back
    excess = s.q[LIMITER] + u.limiter_gap - (u.inertias.exit_x + s.q[LENGTH])
    if excess > 0.0:
        rate = s.v[LIMITER] - s.v[LENGTH]
        spring = u.limiter_stiffness * excess + u.limiter_damping * rate
        u.record.stored.limiter += 0.5 * u.limiter_stiffness * excess * excess
        # like every contact it does not pull
        if spring < 0.0:
            spring = 0.0
        Q[LIMITER] -= spring
        Q[LENGTH] += spring
        stop -= spring
        u.limiter_loss += (spring - u.limiter_stiffness * excess) * rate
    u.record.movable.x = s.q[LIMITER]
    u.record.movable.rate = s.v[LIMITER]
    u.record.movable.stop = stop


cdef void stroke_forces(Unit *u, double *Q) noexcept nogil:
    """Adds to the generalised forces Q what acts on the stroke and on the movable limiter, without the friction of the screw."""
    axial_damper(u, Q)
    Q[LENGTH] += u.roller_load
    if u.movable:
        movable_limiter(u, Q)


cdef void axial_friction(Unit *u, const double *M, double f_H, double h, double *acc) noexcept nogil:
    """Friction of the ball screw and the axial magnetic brakes, as one force that can stop the stroke within a step but not turn it round.

    M: factor of the mass matrix. acc: accelerations without that force; leaves with it."""
    cdef State *s = &u.state
    cdef double column[DOF]
    cdef double screw = u.screw_friction * fabs(f_H)
    cdef double brake = 0.0, limit, stopping, force, speed
    cdef int i
    if not u.two_brakes:
        brake = u.axial_brake_share * u.nut_ratio * table_torque(&u.axial_brake, u.nut_ratio * fabs(s.v[LENGTH]))
    limit = screw + brake
    u.record.axial_brake = brake
    u.record.screw_limit = screw
    if limit <= 0.0:
        return
    for i in range(DOF):
        column[i] = 0.0
    column[LENGTH] = 1.0
    solve(u.inertias.dof, M, column)
    # force that would bring the stroke to rest at the end of the step
    stopping = -(s.v[LENGTH] + h * acc[LENGTH]) / (h * column[LENGTH])
    force = stopping
    if force > limit:
        force = limit
    elif force < -limit:
        force = -limit
    for i in range(u.inertias.dof):
        acc[i] += force * column[i]
    # loss: against the mean speed of the step
    speed = s.v[LENGTH] + 0.5 * h * acc[LENGTH]
    s.lost.screw -= h * force * speed * screw / limit
    s.lost.brake -= h * force * speed * brake / limit
    u.record.axial_friction = force


# ----------------------------------------------------------------------------------------------------------- drive, new coordinates

cdef void run_drive(Unit *u, uint32_t commands, double h) noexcept nogil:
    """Drive: retracts, extends (up to the initial position) or is held; its load is the clutch chain's moment."""
    cdef State *s = &u.state
    cdef double sign = 0.0
    cdef double load = u.record.clutch_moment / u.drive_ratio
    if commands & MECHANISM_COMMAND_DRIVE:
        sign = -1.0 if commands & MECHANISM_COMMAND_EXTEND else 1.0
    if sign > 0.0 and s.q[LENGTH] <= u.length_min:
        sign = 0.0
    elif sign < 0.0 and s.q[LENGTH] >= u.length0:
        sign = 0.0
    drive_step(&u.drive, &s.drive, sign, load, h)
    s.supplied += h * drive_rate(&u.drive, &s.drive) * -load
    u.record.drive.load = load
    u.record.drive.sign = sign
    if sign != 0.0:
        u.signals |= MECHANISM_SIGNAL_DRIVE_RUNNING


cdef void accept_stroke(Unit *u, double h) noexcept nogil:
    """Accepts the new stroke in the axial damper: clutch angle from nut and drive."""
    cdef State *s = &u.state
    cdef double angle = u.clutch_ratio * (-u.nut_ratio * (s.q[LENGTH] - u.length0) - drive_angle(&u.drive, &s.drive) / u.drive_ratio)
    cdef double before = s.axial.Q, last = s.axial_stored
    cdef double slipped = s.axial.slip + s.axial.slip1
    cdef double dq = angle - s.axial.q
    if u.two_brakes:
        series_clutch_step(&u.brakes, &s.axial, angle)
        s.axial_stored = stored_energy(&u.brakes.train, angle - s.axial.slip - s.axial.slip1, s.axial.Q)
    else:
        hysteresis_step(&u.axial, &s.axial, angle)
        s.axial_stored = stored_energy(&u.axial, angle - s.axial.slip, s.axial.Q)
    s.lost.axial += 0.5 * (before + s.axial.Q) * dq - (s.axial_stored - last)
    u.record.stored.axial += s.axial_stored
    # structural damping works on the deformation of the train, not on the slip
    s.train_rate = (dq - (s.axial.slip + s.axial.slip1 - slipped)) / h
    s.lost.damping += h * u.train_damping * s.train_rate * s.train_rate + h * u.stop_loss
