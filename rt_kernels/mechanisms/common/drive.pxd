"""Drive of the probe and of the cables: two motors, differential, two planetary stages; and torque tables of magnetic brakes.

Dissertation (6.1.2)-(6.1.5) with the corrected signs: the load of the clutch on the output shaft is +m_FR/(eta i), reflected to the carrier by
*multiplication* with i_PG < 1. Without voltage the stopping clutches hold both wheels; with it they pass motion from motor to shaft only.
"""

cdef enum:
    TABLE_POINTS = 12

cdef struct TorqueTable:
    int n
    double speed[TABLE_POINTS]
    double torque[TABLE_POINTS]
    double slope[TABLE_POINTS]


cdef struct Drive:
    double inverse[4]         # of the constant 2x2 inertia matrix of the differential
    double carrier_share[2]   # R_a/(2 R_H), R_b/(2 R_H)
    double motor_ratio[2]     # motor speed per wheel speed
    double stall              # k_u u, motor torque at rest, N m
    double back_emf           # k_w + c_d, N m s/rad
    double friction           # N m at the motor
    double i_PG               # output shaft per carrier
    double efficiency


cdef struct DriveState:
    double angle[2]           # wheels a and b
    double rate[2]


cdef inline double table_torque(const TorqueTable *t, double speed) noexcept nogil:
    """Torque of a magnetic brake over |speed| (6.1.5); the last slope goes on beyond the table."""
    cdef int i = 0
    while i < t.n - 2 and speed > t.speed[i + 1]:
        i += 1
    return t.torque[i] + t.slope[i] * (speed - t.speed[i])


cdef inline double drive_angle(const Drive *d, const DriveState *s) noexcept nogil:
    return d.i_PG * (d.carrier_share[0] * s.angle[0] + d.carrier_share[1] * s.angle[1])


cdef inline double drive_rate(const Drive *d, const DriveState *s) noexcept nogil:
    return d.i_PG * (d.carrier_share[0] * s.rate[0] + d.carrier_share[1] * s.rate[1])


cdef inline double motor_torque(const Drive *d, const DriveState *s, int i, double sign) noexcept nogil:
    # k_u u - k_w w - sign(w) m_Fr - c_d w, reduced to the wheel; at rest the friction opposes the voltage
    cdef double w = d.motor_ratio[i] * s.rate[i]
    cdef double direction = sign
    if w != 0.0:
        direction = 1.0 if w > 0.0 else -1.0
    return d.motor_ratio[i] * (sign * d.stall - d.back_emf * w - direction * d.friction)


cdef inline void drive_step(const Drive *d, DriveState *s, double sign, double load, double h) noexcept nogil:
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


# set-up, with the interpreter: raises ValueError that names the key
cdef int fill_drive(object v, Drive *d) except -1
