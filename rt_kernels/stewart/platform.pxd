"""Kinematics of a six-legged (Gough-Stewart) platform: interface. Formulas and sources in `platform.pyx`.

`X_WP` pose of the platform in the stand floor frame, `double[7]`; `V_WP` its twist, `double[6]` linear first, velocity of P's origin,
W axes.
Lengths, rates, accelerations: `double[6]`, joint to joint. J is `double[36]` by rows: leg rates = J V_WP. No output may be an input.
"""


# Bits of every status; 0 is good. Bits 0-2 have the places of `forward_kinematics_status` and `setpoint_kinematics_status` in the table of
# channels.
cdef enum:
    PLATFORM_NOT_CONVERGED = 1      # forward kinematics: no pose found in the given number of steps
    PLATFORM_OUT_OF_REACH = 1       # inverse kinematics: a leg beyond its stroke
    PLATFORM_NEAR_SINGULAR = 2      # condition above its limit
    PLATFORM_NOT_FINITE = 4         # an input is not a finite number
    PLATFORM_RATE_LIMIT = 8         # a leg faster than its limit
    PLATFORM_ACCELERATION_LIMIT = 16


# Constants of one stand. Coordinates lie leg by leg, so that the compiler takes two legs at a time.
cdef struct PlatformParams:
    double base_x[6]                # p_WB: base joints in W, m
    double base_y[6]
    double base_z[6]
    double joint_x[6]               # p_PA: platform joints in P, m
    double joint_y[6]
    double joint_z[6]
    double length_min[6]            # stroke ends, joint to joint, m
    double length_max[6]
    double rate_max                 # m/s
    double acceleration_max         # m/s2
    double force_max                # N
    double radius                   # rms distance of the platform joints from P: scale of rotations, m
    double condition_max            # limit of `condition`
    double neutral[7]               # X_WP of the neutral pose


# Inverse: pose (and twist, and acceleration A_WP = d/dt V_WP) to legs.
cdef void leg_lengths(const PlatformParams *params, const double *X_WP, double *lengths) noexcept nogil
cdef void leg_rates(const PlatformParams *params, const double *X_WP, const double *V_WP, double *lengths, double *rates) noexcept nogil
cdef void leg_accelerations(const PlatformParams *params, const double *X_WP, const double *V_WP, const double *A_WP,
                            double *lengths, double *rates, double *accelerations) noexcept nogil
# The same as `leg_rates` with everything a tick wants to know of the pose; returns OUT_OF_REACH, NEAR_SINGULAR, NOT_FINITE.
cdef int place_legs(const PlatformParams *params, const double *X_WP, const double *V_WP, double *lengths, double *rates,
                    double *margin, double *condition) noexcept nogil

# Forward: legs to pose. `X_WP` is the seed and, when 0 is returned, the result; otherwise it is left as it was.
cdef int forward(const PlatformParams *params, const double *lengths, double *X_WP, int steps) noexcept nogil
# One cheap step with an inverse Jacobian of a pose nearby; returns the norm of the length errors *before* the step (NaN: not finite).
cdef double forward_chord(const PlatformParams *params, const double *lengths, const double *J_inverse, double *X_WP) noexcept nogil
# Leg rates to twist; 0, or NEAR_SINGULAR, NOT_FINITE with V_WP = 0.
cdef int platform_twist(const PlatformParams *params, const double *X_WP, const double *rates, double *V_WP) noexcept nogil
# Leg accelerations to A_WP, for the twist V_WP; 0, or NEAR_SINGULAR, NOT_FINITE with A_WP = 0.
cdef int platform_acceleration(const PlatformParams *params, const double *X_WP, const double *V_WP, const double *accelerations,
                               double *A_WP) noexcept nogil

# Jacobian and how far it is from singular.
cdef void jacobian(const PlatformParams *params, const double *X_WP, double *J) noexcept nogil
cdef int inverse_jacobian(const PlatformParams *params, const double *X_WP, double *J_inverse) noexcept nogil
# Frobenius condition number of the scaled Jacobian (6 is perfect) and lower bound of its smallest singular value.
cdef int conditioning(const PlatformParams *params, const double *X_WP, double *condition, double *singularity_distance) noexcept nogil

# Limits.
cdef double stroke_margin(const PlatformParams *params, const double *lengths) noexcept nogil
cdef int check_legs(const PlatformParams *params, const double *lengths, const double *rates, const double *accelerations) noexcept nogil


cdef class Platform:
    cdef PlatformParams params
    cdef readonly str name
