"""Drive with two motors and a differential; the equations stand in drive.pyx."""

cdef struct Drive:
    double inverse[4]         # of the constant 2x2 inertia matrix of the differential
    double carrier_share[2]   # R_a/(2 R_H), R_b/(2 R_H)
    double motor_ratio[2]     # motor speed per wheel speed
    double stall              # k_u u, motor torque at rest, N.m
    double share[2]           # of its torque that each motor still gives; 0: dead, its stopping clutch holds the wheel
    double back_emf           # k_w + c_d, N.m.s/rad
    double friction           # N.m at the motor
    double i_PG               # output shaft per carrier
    double efficiency


cdef struct DriveState:
    double angle[2]           # wheels a and b
    double rate[2]


cdef double drive_angle(const Drive *d, const DriveState *s) noexcept nogil
cdef double drive_rate(const Drive *d, const DriveState *s) noexcept nogil
cdef void drive_step(const Drive *d, DriveState *s, double sign, double load, double h) noexcept nogil
# set-up, with the interpreter: raises ValueError that names the key
cdef int fill_drive(object v, Drive *d) except -1
