"""Elastic probe and lateral damper: moments of bending and torsion, springs and magnetic brakes of the four chains (Yaskevich 2020, 6.1.1,
6.4).

Bending has k ~ 1/L: the moment of the table holds for the free length L_0, and a stiffening beam pushes the probe out with the work of the
changing length on its stored energy, L_0/L^2 V. Torsion acts from the crosspiece to the head and is not scaled. Each spring chain pulls
along its leg, each brake chain with the torque of its magnetic brake against the crank's rate; stops limit the crank.
"""

from libc.math cimport fabs

from rt_kernels.algebra.sincos cimport atan2
from rt_kernels.mechanisms.common.hysteresis cimport HysteresisState, HysteresisTable, hysteresis_step, stored_energy
from rt_kernels.mechanisms.probe_cone.chains cimport brake_gain, spring_gain
from rt_kernels.mechanisms.probe_cone.magnetic_brake cimport table_torque
from rt_kernels.mechanisms.probe_cone.model cimport BEND_Y, ChainMotion, LENGTH, State, TWIST, Unit
from rt_kernels.mechanisms.probe_cone.record cimport ProbeConeCrank, ProbeConeSpring


cdef inline void elastic_probe(Unit *u, double *Q) noexcept nogil:
    """Moments of bending and torsion."""
    cdef State *s = &u.state
    cdef double stiffening = u.length0 / s.q[LENGTH]
    cdef double moment
    cdef int i
    for i in range(2):
        moment = stiffening * s.bend[i].Q + u.bend_damping * s.v[BEND_Y + i]
        Q[BEND_Y + i] += u.tip_moment[i] - moment
        u.record.joint.bend[i] = moment
        Q[LENGTH] += u.length0 / (s.q[LENGTH] * s.q[LENGTH]) * s.bend_stored[i]
    moment = s.twist.Q + u.twist_damping * s.v[TWIST]
    Q[TWIST] -= moment
    u.record.joint.twist = moment
    u.record.joint.stiffening = stiffening


cdef inline void lateral_spring(Unit *u, int i, double *Q) noexcept nogil:
    """Spring chain i: force along the leg against its stroke."""
    cdef const ChainMotion *c = &u.motion.spring[i]
    cdef ProbeConeSpring *r = &u.record.spring[i]
    cdef double force = u.state.lateral[i].Q + u.lateral_damping * c.rate
    cdef int j
    for j in range(2):
        Q[j] -= force * spring_gain(c, j)
    r.stroke = c.value - u.inertias.spring[i].length0
    r.rate = c.rate
    r.force = force


cdef inline void lateral_brake(Unit *u, int i, double *Q) noexcept nogil:
    """Brake chain i: magnetic torque against the crank's rate, stops at both ends."""
    cdef const ChainMotion *c = &u.motion.brake[i]
    cdef ProbeConeCrank *r = &u.record.brake[i]
    cdef double torque = table_torque(&u.lateral_brake, fabs(c.rate))
    cdef double angle, excess, stop = 0.0
    cdef int j
    if c.rate < 0.0:
        torque = -torque
    torque *= u.brake_factor * u.crank_share[i]
    angle = atan2(c.sine, c.cosine) - u.crank_zero[i]
    if fabs(angle) > u.crank_stop[i]:
        excess = angle - u.crank_stop[i] if angle > 0.0 else angle + u.crank_stop[i]
        stop = u.crank_stiffness * excess
        u.record.stored.lateral += 0.5 * stop * excess
        stop += u.crank_damping * c.rate
    for j in range(2):
        Q[j] -= (torque + stop) * brake_gain(c, j)
    r.angle = angle
    r.rate = c.rate
    r.torque = torque
    r.stop = stop


cdef void joint_forces(Unit *u, double *Q) noexcept nogil:
    """Adds the moments of the present reactions of the hysteresis states to the generalised forces Q."""
    cdef int i
    elastic_probe(u, Q)
    for i in range(2):
        lateral_spring(u, i, Q)
        lateral_brake(u, i, Q)


cdef inline double accept(const HysteresisTable *t, HysteresisState *s, double q, double scale, double *stored,
                          double *lost) noexcept nogil:
    """Accept q; the work put in less the rise of the stored energy is lost. Returns the stored energy, both times `scale`."""
    cdef double before = s.Q, last = stored[0], dq = q - s.q
    hysteresis_step(t, s, q)
    stored[0] = stored_energy(t, s.q - s.slip, s.Q)
    lost[0] += scale * (0.5 * (before + s.Q) * dq - (stored[0] - last))
    return scale * stored[0]


cdef void lateral_losses(Unit *u, double h) noexcept nogil:
    """What the lateral brakes, their stops and the springs' damping have lost in the sub-step; accepts the strokes of the springs."""
    cdef State *s = &u.state
    cdef const ChainMotion *brake
    cdef const ChainMotion *spring
    cdef int i
    for i in range(2):
        brake, spring = &u.motion.brake[i], &u.motion.spring[i]
        s.lost.lateral_brake += h * u.record.brake[i].torque * brake.rate
        if u.record.brake[i].stop != 0.0:
            s.lost.lateral_brake += h * u.crank_damping * brake.rate * brake.rate
        s.lost.lateral_brake += h * u.lateral_damping * spring.rate * spring.rate
        u.record.stored.lateral += accept(
            &u.lateral, &s.lateral[i], spring.value - u.inertias.spring[i].length0, 1.0, &s.lateral_stored[i], &s.lost.lateral)


cdef void accept_joints(Unit *u, double h) noexcept nogil:
    """Accepts the new coordinates of the elastic probe in its hysteresis elements."""
    cdef State *s = &u.state
    cdef double stiffening = u.length0 / s.q[LENGTH]
    cdef int i
    for i in range(2):
        u.record.stored.bend += accept(&u.bend, &s.bend[i], s.q[BEND_Y + i], stiffening, &s.bend_stored[i], &s.lost.bend)
        s.lost.damping += h * u.bend_damping * s.v[BEND_Y + i] * s.v[BEND_Y + i]
    u.record.stored.twist += accept(&u.twist, &s.twist, s.q[TWIST], 1.0, &s.twist_stored, &s.lost.twist)
    s.lost.damping += h * u.twist_damping * s.v[TWIST] * s.v[TWIST]
