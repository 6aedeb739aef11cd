"""Joint drive of a manipulator: DC motor, gear with backlash, digital rate controller. All on the motor side of the gear ratio.

Source: dissertation (8.2.1), (8.2.3)-(8.2.5) with its corrections:

    w_m' = (T_m - T_f - T_g*)/J_m,  T_m' = (-T_m + (K_T/R_L)(V - K_B w_m))/tau            motor
    J* w' = b* + T_g,  J* = J_g + I*/i_R^2,  b* = m_IA/i_R,  phi' = w                     gear input shaft, q = phi/i_R
    T_g = T(delta) + c_g (w_m - w),  delta = phi_m - phi                                  gear
    T(delta) = sign(delta) T_D (delta/B_L)^2 for |delta| < B_L, sign(delta) (T_D + k_g (|delta| - B_L)) beyond

I* is the articulated inertia of the joint without the drive and m_IA its inertial load (both on the joint side), constant within a step.

`drive_step` solves motor and gear together, linearised about the old state in the *increment* of delta (the printed (8.2.5) counts k delta
twice). `staggered_step` is the printed order, motor first with the old gear torque; it is stable in the linear zone for
(h^2 k + 2 h c_g)(1/(eta J_m) - 1/J*) < 4 only. delta is a state of its own: shaft angles grow to 1e4 rad, backlash is 1e-2 rad.
"""

from libc.math cimport fabs

cdef struct Drive:
    double J_m            # motor inertia, kg m^2
    double tau            # electrical time constant, s
    double K_T            # N m/A
    double K_B            # V s/rad
    double R              # winding, ohm
    double V_max          # V
    double T_max          # N m, K_T I_max
    double friction       # Coulomb friction of the motor, N m
    double viscous        # N m s/rad
    double brake          # further friction while the brake is on, N m
    double i_R            # motor angle per joint angle
    double J_g            # gear inertia on the motor side, kg m^2
    double k_g            # N m/rad beyond the backlash
    double T_D            # N m at the end of the backlash
    double B_L            # rad, half width of the backlash
    double c_g            # N m s/rad
    double eta            # efficiency
    double P_blend        # W, the efficiency changes side within this power


cdef struct DriveState:
    double w_m, T_m, w, phi, delta
    double T_g            # gear torque of the last step, on the driven side
    int braked


cdef struct Controller:
    double K_v            # V s/rad, inner loop
    double K_p            # outer loop
    double K_i            # 1/s
    int ratio             # inner steps per outer step
    int regenerative      # 0: current against the motion is not allowed


cdef struct ControllerState:
    double integral       # rad/s
    double w_ref          # rad/s
    int count             # inner steps since the outer loop ran
    int limited           # sign of the limit that the last voltage met, 0 without


cdef inline double gear_torque(const Drive *d, double delta) noexcept nogil:
    """T(delta), N m: quadratic inside the backlash, linear beyond."""
    cdef double size = fabs(delta)
    cdef double torque
    if size < d.B_L:
        return d.T_D * delta * size / (d.B_L * d.B_L)
    torque = d.T_D + d.k_g * (size - d.B_L)
    return torque if delta > 0.0 else -torque


cdef inline double gear_stiffness(const Drive *d, double delta) noexcept nogil:
    """dT/d delta, N m/rad."""
    cdef double size = fabs(delta)
    return 2.0 * d.T_D * size / (d.B_L * d.B_L) if size < d.B_L else d.k_g


cdef inline double load_factor(const Drive *d, double power) noexcept nogil:
    """Gear torque felt by the motor per gear torque: 1/eta when the motor drives (power T_g w_m > 0), eta when the load drives it."""
    cdef double share
    if d.eta == 1.0:
        return 1.0
    share = 0.5 + 0.5 * power / d.P_blend
    share = 0.0 if share < 0.0 else (1.0 if share > 1.0 else share)
    return d.eta + share * (1.0 / d.eta - d.eta)


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
