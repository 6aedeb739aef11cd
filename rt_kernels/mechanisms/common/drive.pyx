"""Drive of a probe or of cables: two motors on a differential, then two planetary stages with one output shaft.

Yaskevich 2020 (6.1.2)-(6.1.4) with the corrected signs (errata E48-E50): the load of the clutch on the output shaft is +m_FR/(eta i),
reflected to the carrier by *multiplication* with i_PG < 1. Without voltage the stopping clutches hold both wheels; with it they pass motion
from motor to shaft only. The wheel of a dead motor is held too, and the other one turns the carrier at half the speed.
"""

import numpy as np


cdef double drive_angle(const Drive *d, const DriveState *s) noexcept nogil:
    """Angle of the output shaft, rad."""
    return d.i_PG * (d.carrier_share[0] * s.angle[0] + d.carrier_share[1] * s.angle[1])


cdef double drive_rate(const Drive *d, const DriveState *s) noexcept nogil:
    """Rate of the output shaft, rad/s."""
    return d.i_PG * (d.carrier_share[0] * s.rate[0] + d.carrier_share[1] * s.rate[1])


cdef inline double motor_torque(const Drive *d, const DriveState *s, int i, double sign) noexcept nogil:
    # k_u u - k_w w - sign(w) m_Fr - c_d w, reduced to the wheel; at rest the friction opposes the voltage
    cdef double w = d.motor_ratio[i] * s.rate[i]
    cdef double direction = sign
    if w != 0.0:
        direction = 1.0 if w > 0.0 else -1.0
    return d.motor_ratio[i] * (sign * d.share[i] * d.stall - d.back_emf * w - direction * d.friction)


cdef void drive_step(const Drive *d, DriveState *s, double sign, double load, double h) noexcept nogil:
    """One step of the wheels: `sign` +1 retracts, -1 extends, 0 off (held); `load` torque on the output shaft without losses."""
    cdef double carrier, Q0, Q1
    cdef int i
    if sign == 0.0:
        s.rate[0] = 0.0
        s.rate[1] = 0.0
        return
    # gear losses make an opposing load heavier and a helping one lighter
    if load * sign < 0.0:
        carrier = d.i_PG * load / d.efficiency
    else:
        carrier = d.i_PG * load * d.efficiency
    Q0 = motor_torque(d, s, 0, sign) + d.carrier_share[0] * carrier
    Q1 = motor_torque(d, s, 1, sign) + d.carrier_share[1] * carrier
    s.rate[0] += h * (d.inverse[0] * Q0 + d.inverse[1] * Q1)
    s.rate[1] += h * (d.inverse[2] * Q0 + d.inverse[3] * Q1)
    for i in range(2):
        # the stopping clutch blocks motion coming from the shaft
        if s.rate[i] * sign < 0.0:
            s.rate[i] = 0.0
        s.angle[i] += h * s.rate[i]


cdef int fill_drive(object v, Drive *d) except -1:
    """From a parameter table: inertia matrix of the differential (6.1.3) with the reducer's gears on the carrier, inverted."""
    Ra, Rb, RH, Rg = v["wheel_radii_m"]
    Ia, Ib, IH, Ig = v["wheel_inertia_kg_m2"]
    Ga, Gb, GH, Gg = v["reducer_radii_m"]
    JGa, JGH, JGg = v["reducer_inertia_kg_m2"]
    n = v["planets"]
    i_PG = (Ga / (2.0 * GH)) ** 2
    if not i_PG < 1.0:
        raise ValueError(f"reducer_radii_m: the output shaft must turn slower than the carrier, got the ratio {i_PG}")
    reduced = JGa + (Ga / (Ga + Gb)) ** 2 * JGH + n * (Ga / (2.0 * Gg)) ** 2 * JGg
    IH = IH + (1.0 + i_PG) * reduced
    A = np.array([
        [Ia + Ra**2 * IH / (4 * RH**2) + n * Ra**2 * Ig / (4 * Rg**2), Ra * Rb / 4 * (IH / RH**2 - n * Ig / Rg**2)],
        [Ra * Rb / 4 * (IH / RH**2 - n * Ig / Rg**2), Ib + Rb**2 * IH / (4 * RH**2) + n * Rb**2 * Ig / (4 * Rg**2)],
    ])
    inverse = np.linalg.inv(A).ravel()
    cdef int i
    # motors that are dead or weak, where the unit has such keys: a held wheel takes no part in the motion
    for i, key in enumerate(("motor_a_share", "motor_b_share")):
        d.share[i] = v[key] if key in v else 1.0
    if d.share[0] == 0.0 or d.share[1] == 0.0:
        inverse = np.array([1.0 / A[0, 0] if d.share[0] else 0.0, 0.0, 0.0, 1.0 / A[1, 1] if d.share[1] else 0.0])
    for i in range(4):
        d.inverse[i] = inverse[i]
    d.carrier_share[0] = Ra / (2 * RH)
    d.carrier_share[1] = Rb / (2 * RH)
    d.motor_ratio[0], d.motor_ratio[1] = v["motor_ratio"]
    d.stall = v["motor_stall_n_m"]
    d.back_emf = v["motor_back_emf_n_m_s_per_rad"]
    d.friction = v["motor_friction_n_m"]
    d.i_PG = i_PG
    d.efficiency = v["drive_efficiency"]
    return 0
