"""Kinematics of a six-legged (Gough-Stewart) platform: inverse, forward, Jacobian, margins.

Leg i runs from the base joint B_i (fixed in W) to the platform joint A_i (fixed in P). With R = R_WP, p = p_WP, r_i = R p_PAi:

    d_i = p + r_i - p_WBi        l_i = |d_i|        u_i = d_i / l_i                                              (1)
    dl_i/dt = u_i . v + (r_i x u_i) . w             row i of J = (u_i, r_i x u_i)                                (2)
    d2l_i/dt2 = J_i A + u_i . (w x (w x r_i)) + (|d(d_i)/dt|^2 - (dl_i/dt)^2) / l_i                              (3)

(Merlet 2006, sections 3.1 and 5.1-5.2; (3) is the time derivative of l dl/dt = d . dd/dt.)

Forward kinematics: Newton's method on the pose, the rotation corrected on SO(3) by its exponential map: J x = l_measured - l(X),
p <- p + x_v, q <- exp(x_w) q. The derivative of the residual at x = 0 is J itself, so convergence is quadratic; adding rotation vectors
to roll-pitch-yaw angles instead (LinuxCNC `genhexkins`) converges linearly.

The 6x6 system is solved by its normal equations in 3x3 blocks, G = U^T U, H = U^T T, K = T^T T, U and T the columns of J:

    S = K - H^T G^-1 H,    x_w = S^-1 (k - H^T G^-1 g),    x_v = G^-1 (g - H x_w)                                (4)

Two symmetric 3x3 inverses by cofactors, two divisions, no pivot search and no branch; both blocks are positive definite whenever J is
regular. Squaring costs digits, cond(J)^2 rounding errors in x: Newton corrects this by itself, `platform_twist` by one refinement.

Measure of condition: rotations are scaled by the rms radius of the platform joints, J_s = [U, T / radius]. Then
`condition` = |J_s|_F |J_s^-1|_F: it is 6 for a perfect platform, and cond_2 <= condition <= 6 cond_2. It falls out of (4):
|J_s^-1|_F^2 = tr G^-1 + tr(Y S^-1 Y^T) + radius^2 tr S^-1, Y = G^-1 H. The distance to the nearest singular matrix, sigma_min(J_s), is
between 1 and sqrt 6 times 1 / |J_s^-1|_F (`singularity_distance`).

Assumptions: ideal joints, pose quaternion of norm 1 (a seed of `forward` may be off by 1e-8). All loops run over six legs, leg by leg in
memory, so that plain SSE2 takes two legs at a time.
"""

import math

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Mat3, Pose, Twist, Vec3, add, dot, exponential, mat, mat_transposed_vec, mat_vec,
                                        of_yaw_pitch_roll, pose, pose_of, put_pose, put_quat, put_twist, quat, quat_multiply, renormalized,
                                        sub, twist, twist_of, twist_sum, vec, xyz, yaw_pitch_roll)
from rt_kernels.stewart.legs cimport (Legs, all_legs, apply_jacobian, bias_accelerations, leg_vectors, sum_of_products)
from rt_kernels.parameters import Parameter, checked


# a pose counts as found when all lengths agree to this, m
cdef double RESIDUAL_MAX = 1e-11
# above this condition the normal equations have no digits left
cdef double CONDITION_NUMERIC = 1e6


# The blocks of (4); symmetric matrices as xx, xy, xz, yy, yz, zz.
cdef struct Normal:
    double G_inverse[6]
    double Y[9]
    double S_inverse[6]
    double condition2           # square of the condition; negative or NaN when singular
    double inverse_norm2        # |J_s^-1|_F^2


# -- the 6x6 solve ----------------------------------------------------------------------------------------------------------


cdef inline double invert_symmetric(const double *M, double *out) noexcept nogil:
    # inverse of a symmetric 3x3 by cofactors; returns the determinant
    cdef double c0 = M[3] * M[5] - M[4] * M[4]
    cdef double c1 = M[2] * M[4] - M[1] * M[5]
    cdef double c2 = M[1] * M[4] - M[2] * M[3]
    cdef double determinant = M[0] * c0 + M[1] * c1 + M[2] * c2
    cdef double d = 1.0 / determinant
    out[0] = d * c0
    out[1] = d * c1
    out[2] = d * c2
    out[3] = d * (M[0] * M[5] - M[2] * M[2])
    out[4] = d * (M[1] * M[2] - M[0] * M[4])
    out[5] = d * (M[0] * M[3] - M[1] * M[1])
    return determinant


cdef inline Vec3 symmetric_vec(const double *M, Vec3 v) noexcept nogil:
    # M v
    return xyz(M[0] * v.x + M[1] * v.y + M[2] * v.z, M[1] * v.x + M[3] * v.y + M[4] * v.z, M[2] * v.x + M[4] * v.y + M[5] * v.z)


cdef inline void factor(const Legs *legs, double radius, Normal *N) noexcept nogil:
    """Blocks of (4) and the measure of condition."""
    cdef double G[6]
    cdef double H[9]
    cdef double S[6]
    cdef Vec3 y
    cdef double trace_K, trace_Y = 0.0
    cdef double r2 = radius * radius
    cdef int i
    # G = U^T U, H = U^T T, K = T^T T; the unit vectors give tr G = 6
    G[0] = sum_of_products(legs.ux, legs.ux)
    G[1] = sum_of_products(legs.ux, legs.uy)
    G[2] = sum_of_products(legs.ux, legs.uz)
    G[3] = sum_of_products(legs.uy, legs.uy)
    G[4] = sum_of_products(legs.uy, legs.uz)
    G[5] = sum_of_products(legs.uz, legs.uz)
    H[0] = sum_of_products(legs.ux, legs.tx)
    H[1] = sum_of_products(legs.ux, legs.ty)
    H[2] = sum_of_products(legs.ux, legs.tz)
    H[3] = sum_of_products(legs.uy, legs.tx)
    H[4] = sum_of_products(legs.uy, legs.ty)
    H[5] = sum_of_products(legs.uy, legs.tz)
    H[6] = sum_of_products(legs.uz, legs.tx)
    H[7] = sum_of_products(legs.uz, legs.ty)
    H[8] = sum_of_products(legs.uz, legs.tz)
    S[0] = sum_of_products(legs.tx, legs.tx)
    S[1] = sum_of_products(legs.tx, legs.ty)
    S[2] = sum_of_products(legs.tx, legs.tz)
    S[3] = sum_of_products(legs.ty, legs.ty)
    S[4] = sum_of_products(legs.ty, legs.tz)
    S[5] = sum_of_products(legs.tz, legs.tz)
    trace_K = S[0] + S[3] + S[5]
    # Y = G^-1 H, column by column
    invert_symmetric(G, N.G_inverse)
    for i in range(3):
        N.Y[i] = N.G_inverse[0] * H[i] + N.G_inverse[1] * H[3 + i] + N.G_inverse[2] * H[6 + i]
        N.Y[3 + i] = N.G_inverse[1] * H[i] + N.G_inverse[3] * H[3 + i] + N.G_inverse[4] * H[6 + i]
        N.Y[6 + i] = N.G_inverse[2] * H[i] + N.G_inverse[4] * H[3 + i] + N.G_inverse[5] * H[6 + i]
    # S = K - H^T Y
    S[0] -= H[0] * N.Y[0] + H[3] * N.Y[3] + H[6] * N.Y[6]
    S[1] -= H[0] * N.Y[1] + H[3] * N.Y[4] + H[6] * N.Y[7]
    S[2] -= H[0] * N.Y[2] + H[3] * N.Y[5] + H[6] * N.Y[8]
    S[3] -= H[1] * N.Y[1] + H[4] * N.Y[4] + H[7] * N.Y[7]
    S[4] -= H[1] * N.Y[2] + H[4] * N.Y[5] + H[7] * N.Y[8]
    S[5] -= H[2] * N.Y[2] + H[5] * N.Y[5] + H[8] * N.Y[8]
    invert_symmetric(S, N.S_inverse)
    # squared Frobenius norms of J_s and of its inverse
    for i in range(3):
        y = vec(N.Y + 3 * i)
        trace_Y += dot(y, symmetric_vec(N.S_inverse, y))
    N.inverse_norm2 = (N.G_inverse[0] + N.G_inverse[3] + N.G_inverse[5]) + trace_Y + r2 * (N.S_inverse[0] + N.S_inverse[3] + N.S_inverse[5])
    N.condition2 = (6.0 + trace_K / r2) * N.inverse_norm2


cdef inline Twist solve(const Legs *legs, const Normal *N, const double *e) noexcept nogil:
    # x of J x = e by (4)
    cdef Mat3 Y = mat(N.Y)
    cdef Vec3 g = xyz(sum_of_products(legs.ux, e), sum_of_products(legs.uy, e), sum_of_products(legs.uz, e))
    cdef Vec3 k = xyz(sum_of_products(legs.tx, e), sum_of_products(legs.ty, e), sum_of_products(legs.tz, e))
    cdef Vec3 x_w = symmetric_vec(N.S_inverse, sub(k, mat_transposed_vec(Y, g)))
    cdef Vec3 x_v = sub(symmetric_vec(N.G_inverse, g), mat_vec(Y, x_w))
    return twist_of(x_v, x_w)


cdef inline bint regular(const Normal *N, double condition_max) noexcept nogil:
    # false also for NaN and for the negative squares that rounding gives next to a singularity
    return N.condition2 > 0.0 and N.condition2 <= condition_max * condition_max


cdef inline int singular_or_not_finite(const Normal *N, const double *X_WP, double condition_max) noexcept nogil:
    if regular(N, condition_max):
        return 0
    return PLATFORM_NEAR_SINGULAR if finite(X_WP, 7) else PLATFORM_NOT_FINITE


cdef inline bint finite(const double *a, int n) noexcept nogil:
    # x - x is 0 for every finite number, NaN otherwise
    cdef double total = 0.0
    cdef int i
    for i in range(n):
        total += a[i] - a[i]
    return total == 0.0


cdef inline Pose corrected(Pose X_WP, Twist x) noexcept nogil:
    # p + x_v, exp(x_w) q
    return pose_of(add(X_WP.p, x.v), renormalized(quat_multiply(exponential(x.w), X_WP.q)))


# -- inverse ----------------------------------------------------------------------------------------------------------------


cdef void leg_lengths(const PlatformParams *params, const double *X_WP, double *lengths) noexcept nogil:
    cdef Legs legs
    cdef int i
    leg_vectors(params, X_WP, &legs)
    for i in range(6):
        lengths[i] = sqrt(legs.ux[i] * legs.ux[i] + legs.uy[i] * legs.uy[i] + legs.uz[i] * legs.uz[i])


cdef void leg_rates(const PlatformParams *params, const double *X_WP, const double *V_WP, double *lengths, double *rates) noexcept nogil:
    cdef Legs legs
    cdef double vx = V_WP[0], vy = V_WP[1], vz = V_WP[2], wx = V_WP[3], wy = V_WP[4], wz = V_WP[5]
    cdef double length[6]
    cdef double rate[6]
    cdef int i
    leg_vectors(params, X_WP, &legs)
    for i in range(6):
        # d . (v + w x r) / l
        length[i] = sqrt(legs.ux[i] * legs.ux[i] + legs.uy[i] * legs.uy[i] + legs.uz[i] * legs.uz[i])
        rate[i] = (legs.ux[i] * (vx + (wy * legs.rz[i] - wz * legs.ry[i]))
                   + legs.uy[i] * (vy + (wz * legs.rx[i] - wx * legs.rz[i]))
                   + legs.uz[i] * (vz + (wx * legs.ry[i] - wy * legs.rx[i]))) / length[i]
    for i in range(6):
        lengths[i] = length[i]
        rates[i] = rate[i]


cdef void leg_accelerations(const PlatformParams *params, const double *X_WP, const double *V_WP, const double *A_WP,
                            double *lengths, double *rates, double *accelerations) noexcept nogil:
    cdef Legs legs
    cdef double bias[6]
    cdef int i
    all_legs(params, X_WP, &legs)
    apply_jacobian(&legs, V_WP, rates)
    bias_accelerations(&legs, V_WP, rates, bias)
    apply_jacobian(&legs, A_WP, accelerations)
    for i in range(6):
        lengths[i] = legs.length[i]
        accelerations[i] += bias[i]


cdef int place_legs(const PlatformParams *params, const double *X_WP, const double *V_WP, double *lengths, double *rates,
                    double *margin, double *condition) noexcept nogil:
    cdef Legs legs
    cdef Normal N
    cdef int status = 0, i
    all_legs(params, X_WP, &legs)
    apply_jacobian(&legs, V_WP, rates)
    for i in range(6):
        lengths[i] = legs.length[i]
    margin[0] = stroke_margin(params, lengths)
    factor(&legs, params.radius, &N)
    condition[0] = sqrt(N.condition2) if N.condition2 > 0.0 else INFINITY
    if not (finite(X_WP, 7) and finite(V_WP, 6)):
        return PLATFORM_NOT_FINITE
    if not margin[0] >= 0.0:
        status |= PLATFORM_OUT_OF_REACH
    if not regular(&N, params.condition_max):
        status |= PLATFORM_NEAR_SINGULAR
    return status


# -- forward ----------------------------------------------------------------------------------------------------------------


cdef int forward(const PlatformParams *params, const double *lengths, double *X_WP, int steps) noexcept nogil:
    cdef Legs legs
    cdef Normal N
    cdef double X[7]
    cdef double e[6]
    cdef double worst = 0.0
    cdef int i
    put_pose(pose(X_WP), X)
    N.condition2 = 1.0
    # Newton steps, always the same number
    for _ in range(steps):
        all_legs(params, X, &legs)
        for i in range(6):
            e[i] = lengths[i] - legs.length[i]
        factor(&legs, params.radius, &N)
        if not regular(&N, CONDITION_NUMERIC):
            break
        put_pose(corrected(pose(X), solve(&legs, &N, e)), X)
    if not (finite(lengths, 6) and finite(X_WP, 7)):
        return PLATFORM_NOT_FINITE
    # the last step was small, so its condition is that of the result
    if not regular(&N, params.condition_max):
        return PLATFORM_NEAR_SINGULAR
    # do the lengths agree?
    leg_lengths(params, X, e)
    for i in range(6):
        worst += (lengths[i] - e[i]) * (lengths[i] - e[i])
    if not worst <= RESIDUAL_MAX * RESIDUAL_MAX:
        return PLATFORM_NOT_CONVERGED
    put_pose(pose(X), X_WP)
    return 0


cdef double forward_chord(const PlatformParams *params, const double *lengths, const double *J_inverse, double *X_WP) noexcept nogil:
    cdef double e[6]
    cdef double x[6]
    cdef int i
    leg_lengths(params, X_WP, e)
    for i in range(6):
        e[i] = lengths[i] - e[i]
    for i in range(6):
        x[i] = sum_of_products(J_inverse + 6 * i, e)
    put_pose(corrected(pose(X_WP), twist(x)), X_WP)
    return sqrt(sum_of_products(e, e))


cdef inline void solve_refined(const Legs *legs, const Normal *N, const double *rates, double *x) noexcept nogil:
    # (4), then once more for what is left: as accurate as elimination with pivots
    cdef Twist x_0 = solve(legs, N, rates), dx
    cdef double e[6]
    cdef int i
    put_twist(x_0, x)
    apply_jacobian(legs, x, e)
    for i in range(6):
        e[i] = rates[i] - e[i]
    dx = solve(legs, N, e)
    put_twist(twist_sum(x_0, dx), x)


cdef int platform_twist(const PlatformParams *params, const double *X_WP, const double *rates, double *V_WP) noexcept nogil:
    cdef Legs legs
    cdef Normal N
    cdef int status
    all_legs(params, X_WP, &legs)
    factor(&legs, params.radius, &N)
    status = singular_or_not_finite(&N, X_WP, params.condition_max) if finite(rates, 6) else PLATFORM_NOT_FINITE
    if status:
        memset(V_WP, 0, 6 * sizeof(double))
    else:
        solve_refined(&legs, &N, rates, V_WP)
    return status


cdef int platform_acceleration(const PlatformParams *params, const double *X_WP, const double *V_WP, const double *accelerations,
                               double *A_WP) noexcept nogil:
    cdef Legs legs
    cdef Normal N
    cdef double rates[6]
    cdef double e[6]
    cdef int status, i
    all_legs(params, X_WP, &legs)
    factor(&legs, params.radius, &N)
    status = singular_or_not_finite(&N, X_WP, params.condition_max)
    if not (finite(accelerations, 6) and finite(V_WP, 6)):
        status = PLATFORM_NOT_FINITE
    if status:
        memset(A_WP, 0, 6 * sizeof(double))
    else:
        apply_jacobian(&legs, V_WP, rates)
        bias_accelerations(&legs, V_WP, rates, e)
        for i in range(6):
            e[i] = accelerations[i] - e[i]
        solve_refined(&legs, &N, e, A_WP)
    return status


# -- Jacobian and condition -------------------------------------------------------------------------------------------------


cdef void jacobian(const PlatformParams *params, const double *X_WP, double *J) noexcept nogil:
    cdef Legs legs
    cdef int i
    all_legs(params, X_WP, &legs)
    for i in range(6):
        J[6 * i] = legs.ux[i]
        J[6 * i + 1] = legs.uy[i]
        J[6 * i + 2] = legs.uz[i]
        J[6 * i + 3] = legs.tx[i]
        J[6 * i + 4] = legs.ty[i]
        J[6 * i + 5] = legs.tz[i]


cdef int inverse_jacobian(const PlatformParams *params, const double *X_WP, double *J_inverse) noexcept nogil:
    cdef Legs legs
    cdef Normal N
    cdef double unit[6]
    cdef double x[6]
    cdef int i, j, status
    all_legs(params, X_WP, &legs)
    factor(&legs, params.radius, &N)
    status = singular_or_not_finite(&N, X_WP, params.condition_max)
    if status:
        memset(J_inverse, 0, 36 * sizeof(double))
        return status
    # column j moves leg j alone
    memset(unit, 0, sizeof(unit))
    for j in range(6):
        unit[j] = 1.0
        solve_refined(&legs, &N, unit, x)
        unit[j] = 0.0
        for i in range(6):
            J_inverse[6 * i + j] = x[i]
    return 0


cdef int conditioning(const PlatformParams *params, const double *X_WP, double *condition, double *singularity_distance) noexcept nogil:
    cdef Legs legs
    cdef Normal N
    all_legs(params, X_WP, &legs)
    factor(&legs, params.radius, &N)
    if N.condition2 > 0.0 and N.inverse_norm2 > 0.0:
        condition[0] = sqrt(N.condition2)
        singularity_distance[0] = 1.0 / sqrt(N.inverse_norm2)
    else:
        condition[0] = INFINITY
        singularity_distance[0] = 0.0
    return singular_or_not_finite(&N, X_WP, params.condition_max)


# -- limits -----------------------------------------------------------------------------------------------------------------


cdef double stroke_margin(const PlatformParams *params, const double *lengths) noexcept nogil:
    # distance of the nearest leg to a stroke end; negative beyond it, NaN when a length is
    cdef double margin = INFINITY, low, high
    cdef int i
    for i in range(6):
        low = lengths[i] - params.length_min[i]
        high = params.length_max[i] - lengths[i]
        low = high if high < low else low
        # a NaN must not be passed over
        if not low >= margin:
            margin = low
        if margin != margin:
            return margin
    return margin


cdef int check_legs(const PlatformParams *params, const double *lengths, const double *rates, const double *accelerations) noexcept nogil:
    cdef int status = 0, i
    if not (finite(lengths, 6) and finite(rates, 6) and finite(accelerations, 6)):
        return PLATFORM_NOT_FINITE
    if stroke_margin(params, lengths) < 0.0:
        status |= PLATFORM_OUT_OF_REACH
    for i in range(6):
        if rates[i] > params.rate_max or rates[i] < -params.rate_max:
            status |= PLATFORM_RATE_LIMIT
        if accelerations[i] > params.acceleration_max or accelerations[i] < -params.acceleration_max:
            status |= PLATFORM_ACCELERATION_LIMIT
    return status


# -- the stand as an object ---------------------------------------------------------------------------------------------------


PARAMETERS = (
    Parameter("base_joints_m", "rows", "m", "joint points of the six legs on the floor, in W", shape=(6, 3), low=-100.0, high=100.0),
    Parameter("platform_joints_m", "rows", "m", "joint points of the six legs on the platform, in P", shape=(6, 3), low=-100.0, high=100.0),
    Parameter("leg_length_min_m", "float", "m", "shortest leg, joint to joint", low=1e-3, high=100.0, stricter="higher"),
    Parameter("leg_length_max_m", "float", "m", "longest leg, joint to joint", low=1e-3, high=100.0, stricter="lower"),
    Parameter("leg_rate_max_m_s", "float", "m/s", "greatest leg rate", low=1e-6, high=100.0, stricter="lower"),
    Parameter("leg_acceleration_max_m_s2", "float", "m/s2", "greatest leg acceleration", low=1e-6, high=10000.0, stricter="lower"),
    Parameter("leg_force_max_n", "float", "N", "greatest axial force of a leg", low=1.0, high=1e8, stricter="lower"),
    Parameter("neutral_position_m", "floats", "m", "neutral position of P in W", shape=3, low=-100.0, high=100.0),
    Parameter("neutral_yaw_deg", "float", "deg", "neutral yaw, about Y", default=0.0, low=-180.0, high=180.0),
    Parameter("neutral_pitch_deg", "float", "deg", "neutral pitch, about the new Z", default=0.0, low=-90.0, high=90.0),
    Parameter("neutral_roll_deg", "float", "deg", "neutral roll, about the new X", default=0.0, low=-180.0, high=180.0),
    Parameter(
        "condition_max",
        "float",
        "-",
        "greatest condition of the scaled Jacobian (6 is a perfect platform); beyond it the platform counts as near singular",
        default=60.0,
        low=6.0,
        high=1e5,
        stricter="lower",
    ),
)

STATUS_WORDS = {
    PLATFORM_NOT_CONVERGED: "no pose found",
    PLATFORM_NEAR_SINGULAR: "near singular",
    PLATFORM_NOT_FINITE: "not finite",
}


class PlatformStatusError(ValueError):
    """The platform gives no answer here. status: the bits of `platform.pxd`."""

    def __init__(self, status: int, what: str) -> None:
        self.status = status
        words = ", ".join(word for bit, word in STATUS_WORDS.items() if status & bit)
        super().__init__(f"{what}: {words}")


def _given(object values, Py_ssize_t size, str what):
    array = np.array(values, dtype=np.float64).reshape(-1)
    if array.size != size:
        raise ValueError(f"{what}: {size} numbers are needed, {array.size} are given")
    return array


cdef class Platform:
    """A six-legged platform: geometry, limits, and its kinematics on NumPy arrays.

    Takes the keys of `PARAMETERS` as keyword arguments. Poses (7,) `X_WP` with quaternion xyzw, twists (6,) linear first, velocity of P's
    origin, W axes; lengths, rates and accelerations (6,) joint to joint; SI units.
    Raises `ValueError` naming key, value, limit and unit; also when the neutral pose is out of stroke or near singular.
    """

    PARAMETERS = PARAMETERS

    def __init__(self, *, name="platform", **given):
        cdef double condition, distance
        cdef double lengths[6]
        cdef int i
        keys = checked(PARAMETERS, given)
        if not keys["leg_length_min_m"] < keys["leg_length_max_m"]:
            raise ValueError(f"leg_length_max_m: {keys['leg_length_max_m']:g} m is not above "
                             f"leg_length_min_m = {keys['leg_length_min_m']:g} m")
        self.name = name
        base, joints = np.array(keys["base_joints_m"]), np.array(keys["platform_joints_m"])
        for i in range(6):
            self.params.base_x[i], self.params.base_y[i], self.params.base_z[i] = base[i]
            self.params.joint_x[i], self.params.joint_y[i], self.params.joint_z[i] = joints[i]
            self.params.length_min[i] = keys["leg_length_min_m"]
            self.params.length_max[i] = keys["leg_length_max_m"]
        self.params.rate_max = keys["leg_rate_max_m_s"]
        self.params.acceleration_max = keys["leg_acceleration_max_m_s2"]
        self.params.force_max = keys["leg_force_max_n"]
        self.params.condition_max = keys["condition_max"]
        self.params.radius = math.sqrt((joints * joints).sum() / 6.0)
        if not self.params.radius > 1e-3:
            raise ValueError(f"platform_joints_m: rms distance from P {self.params.radius:g} m is below 0.001 m")
        # the neutral pose must be one that the stand can take
        for i in range(3):
            self.params.neutral[i] = keys["neutral_position_m"][i]
        put_quat(of_yaw_pitch_roll(math.radians(keys["neutral_yaw_deg"]), math.radians(keys["neutral_pitch_deg"]),
                                   math.radians(keys["neutral_roll_deg"])), self.params.neutral + 3)
        leg_lengths(&self.params, self.params.neutral, lengths)
        for i in range(6):
            if not self.params.length_min[i] <= lengths[i] <= self.params.length_max[i]:
                raise ValueError(
                    f"neutral_position_m: leg {i} is {lengths[i]:.6g} m long in the neutral pose, outside "
                    f"{keys['leg_length_min_m']:g} ... {keys['leg_length_max_m']:g} m (leg_length_min_m, leg_length_max_m)"
                )
        if conditioning(&self.params, self.params.neutral, &condition, &distance):
            raise ValueError(
                f"condition_max: the condition in the neutral pose is {condition:.4g} -, above {self.params.condition_max:g} - "
                "(joint points that make the platform shaky in every pose, or a singular neutral pose)"
            )

    @classmethod
    def from_dict(cls, table, name="platform"):
        """From a `[platform]` table of a stand file: exactly the keys of `PARAMETERS`."""
        return cls(name=name, **table)

    def __reduce__(self):
        return (_rebuild, (self.to_dict(), self.name))

    def to_dict(self):
        """The parameters, as a `[platform]` table."""
        cdef Vec3 angles = yaw_pitch_roll(quat(self.params.neutral + 3))
        return {
            "base_joints_m": self.base_joints.tolist(), "platform_joints_m": self.platform_joints.tolist(),
            "leg_length_min_m": self.params.length_min[0], "leg_length_max_m": self.params.length_max[0],
            "leg_rate_max_m_s": self.params.rate_max, "leg_acceleration_max_m_s2": self.params.acceleration_max,
            "leg_force_max_n": self.params.force_max, "neutral_position_m": list(self.neutral_pose[:3].tolist()),
            "neutral_yaw_deg": math.degrees(angles.x), "neutral_pitch_deg": math.degrees(angles.y),
            "neutral_roll_deg": math.degrees(angles.z), "condition_max": self.params.condition_max,
        }

    # -- constants --

    @property
    def base_joints(self):
        """p_WB (6, 3) [m]."""
        return np.array([[self.params.base_x[i], self.params.base_y[i], self.params.base_z[i]] for i in range(6)])

    @property
    def platform_joints(self):
        """p_PA (6, 3) [m]."""
        return np.array([[self.params.joint_x[i], self.params.joint_y[i], self.params.joint_z[i]] for i in range(6)])

    @property
    def neutral_pose(self):
        """X_WP (7,) of the neutral pose."""
        return np.array([self.params.neutral[i] for i in range(7)])

    @property
    def leg_length_min(self):
        """Shortest leg [m]."""
        return self.params.length_min[0]

    @property
    def leg_length_max(self):
        """Longest leg [m]."""
        return self.params.length_max[0]

    @property
    def leg_rate_max(self):
        """Greatest leg rate [m/s]."""
        return self.params.rate_max

    @property
    def leg_acceleration_max(self):
        """Greatest leg acceleration [m/s2]."""
        return self.params.acceleration_max

    @property
    def leg_force_max(self):
        """Greatest axial force of a leg [N]."""
        return self.params.force_max

    @property
    def radius(self):
        """rms distance of the platform joints from P [m], the scale of rotations in the condition."""
        return self.params.radius

    @property
    def condition_max(self):
        """Limit of `condition` [-]."""
        return self.params.condition_max

    # -- kinematics, by the same steps as in the loop --

    def leg_lengths(self, X_WP):
        """Lengths (6,) [m] at a pose."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), lengths = np.empty(6)
        leg_lengths(&self.params, &X[0], &lengths[0])
        return np.asarray(lengths)

    def leg_rates(self, X_WP, V_WP):
        """Lengths (6,) [m] and rates (6,) [m/s]."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), V = _given(V_WP, 6, "V_WP"), lengths = np.empty(6), rates = np.empty(6)
        leg_rates(&self.params, &X[0], &V[0], &lengths[0], &rates[0])
        return np.asarray(lengths), np.asarray(rates)

    def leg_accelerations(self, X_WP, V_WP, A_WP):
        """Lengths (6,) [m], rates (6,) [m/s] and accelerations (6,) [m/s2]; A_WP is the time derivative of V_WP."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), V = _given(V_WP, 6, "V_WP"), A = _given(A_WP, 6, "A_WP")
        cdef double[::1] lengths = np.empty(6), rates = np.empty(6), accelerations = np.empty(6)
        leg_accelerations(&self.params, &X[0], &V[0], &A[0], &lengths[0], &rates[0], &accelerations[0])
        return np.asarray(lengths), np.asarray(rates), np.asarray(accelerations)

    def place_legs(self, X_WP, V_WP):
        """As the loop has it: status, lengths (6,), rates (6,), stroke margin [m], condition [-]."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), V = _given(V_WP, 6, "V_WP"), lengths = np.empty(6), rates = np.empty(6)
        cdef double margin, condition
        status = place_legs(&self.params, &X[0], &V[0], &lengths[0], &rates[0], &margin, &condition)
        return status, np.asarray(lengths), np.asarray(rates), margin, condition

    def forward(self, lengths, seed=None, int steps=3):
        """Pose (7,) of the measured lengths (6,), from a pose nearby (neutral when none is given) in a fixed number of Newton steps.

        Raises `PlatformStatusError` when no pose is found, and next to a singularity. A cold start needs 5 to 10 steps.
        """
        status, X = self.forward_status(lengths, seed, steps)
        if status:
            raise PlatformStatusError(status, "forward kinematics")
        return X

    def forward_status(self, lengths, seed=None, int steps=3):
        """Status bits and the pose (7,), which is the seed unless the status is 0. For loops that must not raise."""
        if steps < 0:
            raise ValueError(f"steps: {steps} is below 0")
        cdef double[::1] l = _given(lengths, 6, "lengths")
        cdef double[::1] X = self.neutral_pose if seed is None else _given(seed, 7, "seed")
        status = forward(&self.params, &l[0], &X[0], steps)
        return status, np.asarray(X)

    def forward_chord(self, lengths, J_inverse, seed):
        """One cheap step with the inverse Jacobian (6, 6) of a pose nearby: pose (7,), and the norm of the length errors before it [m]."""
        cdef double[::1] l = _given(lengths, 6, "lengths"), J = _given(J_inverse, 36, "J_inverse"), X = _given(seed, 7, "seed")
        residual = forward_chord(&self.params, &l[0], &J[0], &X[0])
        return np.asarray(X), residual

    def twist(self, X_WP, rates):
        """Twist V_WP (6,) of leg rates (6,). Raises `PlatformStatusError` next to a singularity."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), l = _given(rates, 6, "rates"), V = np.empty(6)
        status = platform_twist(&self.params, &X[0], &l[0], &V[0])
        if status:
            raise PlatformStatusError(status, "twist from leg rates")
        return np.asarray(V)

    def acceleration(self, X_WP, V_WP, accelerations):
        """Time derivative of V_WP (6,) of leg accelerations (6,). Raises `PlatformStatusError` next to a singularity."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), V = _given(V_WP, 6, "V_WP"), l = _given(accelerations, 6, "accelerations")
        cdef double[::1] A = np.empty(6)
        status = platform_acceleration(&self.params, &X[0], &V[0], &l[0], &A[0])
        if status:
            raise PlatformStatusError(status, "acceleration from leg accelerations")
        return np.asarray(A)

    def jacobian(self, X_WP):
        """J (6, 6): leg rates = J V_WP; wrench on the platform at P from the axial leg forces = J^T f."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), J = np.empty(36)
        jacobian(&self.params, &X[0], &J[0])
        return np.asarray(J).reshape(6, 6)

    def inverse_jacobian(self, X_WP):
        """Inverse of J (6, 6). Raises `PlatformStatusError` next to a singularity."""
        cdef double[::1] X = _given(X_WP, 7, "X_WP"), J = np.empty(36)
        status = inverse_jacobian(&self.params, &X[0], &J[0])
        if status:
            raise PlatformStatusError(status, "inverse Jacobian")
        return np.asarray(J).reshape(6, 6)

    def condition(self, X_WP, exact=False):
        """Condition of the Jacobian with rotations scaled by `radius`.

        exact False: the loop's measure, Frobenius, 6 for a perfect platform, inf when singular. exact True: ratio of singular values (SVD).
        """
        if exact:
            values = self.singular_values(X_WP)
            return math.inf if values[5] == 0.0 else float(values[0] / values[5])
        return self._conditioning(X_WP)[1]

    def singularity_distance(self, X_WP, exact=False):
        """Distance of the scaled Jacobian to the nearest singular matrix: a lower bound within sqrt 6, or exactly by SVD [-]."""
        return float(self.singular_values(X_WP)[5]) if exact else self._conditioning(X_WP)[2]

    def _conditioning(self, X_WP):
        cdef double[::1] X = _given(X_WP, 7, "X_WP")
        cdef double condition, distance
        status = conditioning(&self.params, &X[0], &condition, &distance)
        return status, condition, distance

    def singular_values(self, X_WP):
        """Singular values (6,) of the scaled Jacobian, greatest first (SVD, offline)."""
        return np.linalg.svd(self.jacobian(X_WP) / np.array([1.0, 1.0, 1.0] + 3 * [self.params.radius]), compute_uv=False)

    def margins(self, X_WP):
        """Distance of every leg to its nearer stroke end (6,) [m], negative beyond it."""
        lengths = self.leg_lengths(X_WP)
        return np.minimum(lengths - self.params.length_min[0], self.params.length_max[0] - lengths)

    def stroke_margin(self, lengths):
        """Distance of the nearest leg to a stroke end [m], from the lengths (6,)."""
        cdef double[::1] l = _given(lengths, 6, "lengths")
        return stroke_margin(&self.params, &l[0])

    def check_legs(self, lengths, rates, accelerations):
        """Status bits of lengths, rates and accelerations (6,) against stroke, rate and acceleration limits."""
        cdef double[::1] l = _given(lengths, 6, "lengths"), v = _given(rates, 6, "rates"), a = _given(accelerations, 6, "accelerations")
        return check_legs(&self.params, &l[0], &v[0], &a[0])


def _rebuild(table, name):
    return Platform.from_dict(table, name)


# -- timing and batches: the steps without Python between them ------------------------------------------------------------------


def forward_batch(Platform platform not None, lengths, seeds, int steps=3):
    """Forward kinematics of many cases: lengths (n, 6), seeds (n, 7). Returns status (n,) and poses (n, 7)."""
    cdef double[:, ::1] l = np.ascontiguousarray(lengths, dtype=np.float64)
    cdef double[:, ::1] X = np.array(seeds, dtype=np.float64, order="C")
    cdef int[::1] status = np.zeros(l.shape[0], dtype=np.intc)
    cdef Py_ssize_t i
    if l.shape[1] != 6 or X.shape[1] != 7 or X.shape[0] != l.shape[0]:
        raise ValueError("lengths (n, 6) and seeds (n, 7) are needed")
    with nogil:
        for i in range(l.shape[0]):
            status[i] = forward(&platform.params, &l[i, 0], &X[i, 0], steps)
    return np.asarray(status), np.asarray(X)


def inverse_batch(Platform platform not None, poses, twists):
    """Lengths and rates (n, 6) of poses (n, 7) and twists (n, 6)."""
    cdef double[:, ::1] X = np.ascontiguousarray(poses, dtype=np.float64)
    cdef double[:, ::1] V = np.ascontiguousarray(twists, dtype=np.float64)
    cdef double[:, ::1] lengths = np.empty((X.shape[0], 6)), rates = np.empty((X.shape[0], 6))
    cdef Py_ssize_t i
    if X.shape[1] != 7 or V.shape[1] != 6 or V.shape[0] != X.shape[0]:
        raise ValueError("poses (n, 7) and twists (n, 6) are needed")
    with nogil:
        for i in range(X.shape[0]):
            leg_rates(&platform.params, &X[i, 0], &V[i, 0], &lengths[i, 0], &rates[i, 0])
    return np.asarray(lengths), np.asarray(rates)


def place_batch(Platform platform not None, poses):
    """Many poses (n, 7) at rest: status (n,), lengths (n, 6), stroke margin (n,) [m], condition (n,)."""
    cdef double[:, ::1] X = np.ascontiguousarray(poses, dtype=np.float64)
    if X.shape[1] != 7:
        raise ValueError("poses (n, 7) are needed")
    cdef double[:, ::1] lengths = np.empty((X.shape[0], 6))
    cdef double[::1] margin = np.empty(X.shape[0]), condition = np.empty(X.shape[0])
    cdef int[::1] status = np.zeros(X.shape[0], dtype=np.intc)
    cdef double rates[6]
    cdef double rest[6]
    cdef Py_ssize_t i
    memset(rest, 0, sizeof(rest))
    with nogil:
        for i in range(X.shape[0]):
            status[i] = place_legs(&platform.params, &X[i, 0], rest, &lengths[i, 0], rates, &margin[i], &condition[i])
    return np.asarray(status), np.asarray(lengths), np.asarray(margin), np.asarray(condition)


def chord_batch(Platform platform not None, lengths, inverse_jacobians, seeds):
    """One chord step of many cases: lengths (n, 6), inverse Jacobians (n, 6, 6), seeds (n, 7). Returns poses (n, 7)."""
    cdef double[:, ::1] l = np.ascontiguousarray(lengths, dtype=np.float64)
    cdef double[:, :, ::1] J = np.ascontiguousarray(inverse_jacobians, dtype=np.float64)
    cdef double[:, ::1] X = np.array(seeds, dtype=np.float64, order="C")
    cdef Py_ssize_t i
    if l.shape[1] != 6 or X.shape[1] != 7 or J.shape[1] != 6 or J.shape[2] != 6 or not l.shape[0] == X.shape[0] == J.shape[0]:
        raise ValueError("lengths (n, 6), inverse Jacobians (n, 6, 6) and seeds (n, 7) are needed")
    with nogil:
        for i in range(l.shape[0]):
            forward_chord(&platform.params, &l[i, 0], &J[i, 0, 0], &X[i, 0])
    return np.asarray(X)


def twist_batch(Platform platform not None, poses, rates):
    """Twists (n, 6) of leg rates (n, 6) at poses (n, 7); zero where there is a status."""
    cdef double[:, ::1] X = np.ascontiguousarray(poses, dtype=np.float64)
    cdef double[:, ::1] l = np.ascontiguousarray(rates, dtype=np.float64)
    cdef double[:, ::1] V = np.empty((X.shape[0], 6))
    cdef Py_ssize_t i
    if X.shape[1] != 7 or l.shape[1] != 6 or l.shape[0] != X.shape[0]:
        raise ValueError("poses (n, 7) and rates (n, 6) are needed")
    with nogil:
        for i in range(X.shape[0]):
            platform_twist(&platform.params, &X[i, 0], &l[i, 0], &V[i, 0])
    return np.asarray(V)
