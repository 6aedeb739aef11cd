"""Structs and functions of `joint_drive.pyx`."""

cdef struct Drive:
    double J_m            # motor inertia, kg.m2
    double tau            # electrical time constant, s
    double K_T            # N.m/A
    double K_B            # V.s/rad
    double R              # winding, ohm
    double V_max          # V
    double T_max          # N.m, K_T I_max
    double friction       # Coulomb friction of the motor, N.m
    double viscous        # N.m.s/rad
    double brake          # further friction while the brake is on, N.m
    double i_R            # motor angle per joint angle
    double J_g            # gear inertia on the motor side, kg.m2
    double k_g            # N.m/rad beyond the backlash
    double T_D            # N.m at the end of the backlash
    double B_L            # rad, half width of the backlash
    double c_g            # N.m.s/rad
    double eta            # efficiency
    double P_blend        # W, the efficiency changes side within this power


cdef struct DriveState:
    double w_m, T_m, w, phi, delta
    double T_g            # gear torque of the last step, on the driven side
    int braked


cdef struct Controller:
    double K_v            # V.s/rad, inner loop
    double K_p            # outer loop
    double K_i            # 1/s
    int ratio             # inner steps per outer step
    int regenerative      # 0: current against the motion is not allowed


cdef struct ControllerState:
    double integral       # rad/s
    double w_ref          # rad/s
    int count             # inner steps since the outer loop ran
    int limited           # sign of the limit that the last voltage met, 0 without


cdef void drive_step(const Drive *d, DriveState *s, double V, double b, double inertia, double h) noexcept nogil
cdef void drive_response(const Drive *d, const DriveState *s, double V, double h, double *A, double *B) noexcept nogil
cdef void staggered_step(const Drive *d, DriveState *s, double V, double b, double inertia, double h) noexcept nogil
cdef double limited_voltage(const Drive *d, const Controller *c, double V, double w_m, int *limited) noexcept nogil
cdef double control_step(const Drive *d, const Controller *c, ControllerState *k, const DriveState *s, double w_c, double h) noexcept nogil


cdef class JointDrive:
    cdef Drive d
    cdef DriveState s
    cdef Controller c
    cdef ControllerState k
    cdef void record(self, double *row) noexcept nogil
    cdef double checked_inertia(self, double inertia, double h) except? -1.0
