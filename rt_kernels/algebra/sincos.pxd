"""Our own `sincos` and `atan2`, from + - x / sqrt only, so that every x86-64 machine gives the same bits.

The C library's versions differ in the last bit with and without fused multiply-add.

`sincos`, |x| <= 1e5. Cody-Waite reduction by pi/2 in three parts (each has at most 33 significant bits, so k * part is exact for
|k| < 2^20) and a tail, then Taylor polynomials on |r| <= pi/4. The remainder of the polynomials is below 2^-63 of the
result, the reduced argument is known to 2^-75 of itself, and both sums add a correction of at most a fifth of the leading term
to that leading term: the rounding of this last sum (1/2 ulp) and of the correction (below 0.3 ulp) are all that is left.
The sign of a zero argument is not kept.

`atan2`, all arguments. The angle of the octant is atan(j/8) + atan(r), with r = (n - c m) / (m + c n), c = j/8, |r| <= 1/16, carried
as a rounded quotient and its remainder (Dekker's exact product). The correction that is added to the leading sum is below
2^-9 of it: 1/2 ulp from the last sum, the rest is below 0.01 ulp. Signed zeros and infinities as in IEEE 754-2019 (9.2.1).

Both bounds (<= 1 ulp) are held against a multi-precision reference in `tests/algebra/test_sincos.py`.
"""

from libc.math cimport copysign, fabs

cdef extern from *:
    """
    #ifndef HIL_ARC_TANGENT_TABLE
    #define HIL_ARC_TANGENT_TABLE
    /* atan(j/8) = head + tail, j = 0..8 */
    static const double hil_atan_head[9] = {
        0.0, 0.12435499454676144, 0.24497866312686414, 0.35877067027057225, 0.4636476090008061,
        0.5585993153435624, 0.6435011087932844, 0.7188299996216245, 0.7853981633974483};
    static const double hil_atan_tail[9] = {
        0.0, -3.1253241424539383e-18, 1.0698755618734451e-17, -2.4623815582638635e-17, 2.2698777452961687e-17,
        -5.4556305485916264e-18, 1.5834785051444286e-17, -2.1478388444456983e-17, 3.061616997868383e-17};
    static const double hil_unit_sign[2] = {1.0, -1.0};
    #endif
    """
    const double hil_atan_head[9]
    const double hil_atan_tail[9]
    const double hil_unit_sign[2]


cdef inline void sincos(double x, double *s, double *c) noexcept nogil:
    """Sine and cosine of x [rad], |x| <= 1e5, each within 1 ulp."""
    # nearest multiple k of pi/2: adding 1.5 * 2^52 rounds to an integer
    cdef double kd = (x * 0.63661977236758134308 + 6755399441055744.0) - 6755399441055744.0
    cdef int k = <int>kd
    # r + tail = x - k pi/2; what each subtraction loses goes to the tail
    cdef double head = x - kd * 1.57079632673412561417e+00
    cdef double w = kd * 6.07710050630396597660e-11
    cdef double r = head - w
    cdef double tail = (head - r) - w
    cdef double t = r
    w = kd * 2.02226624871116645580e-21
    r = t - w
    tail += (t - r) - w
    tail -= kd * 8.47842766036889956997e-32
    t = r
    r = t + tail
    tail = (t - r) + tail
    # sine and cosine of r + tail, small terms first
    cdef double z = r * r
    cdef double ps = z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (-1.0 / 39916800.0
        + z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0))))))))
    cdef double pc = z * z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 + z * (-1.0 / 3628800.0 + z * (1.0 / 479001600.0
        + z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0)))))))
    cdef double hz = 0.5 * z
    cdef double one = 1.0 - hz
    cdef double value[2]
    value[0] = r + (r * ps + tail * one)
    value[1] = one + (((1.0 - one) - hz) + (pc - r * tail))
    # back to the quadrant of x, without a branch
    s[0] = hil_unit_sign[(k >> 1) & 1] * value[k & 1]
    c[0] = hil_unit_sign[((k + 1) >> 1) & 1] * value[(k & 1) ^ 1]


cdef inline double exact_product_error(double a, double b, double p) noexcept nogil:
    # a b - p for p = a b rounded (Dekker 1971): exact while nothing over- or underflows
    cdef double t = 134217729.0 * a
    cdef double ah = t - (t - a)
    cdef double al = a - ah
    t = 134217729.0 * b
    cdef double bh = t - (t - b)
    cdef double bl = b - bh
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl


cdef inline double atan2(double y, double x) noexcept nogil:
    """Angle of the point (x, y) [rad], in [-pi, pi], within 1 ulp."""
    cdef double m = fabs(x), n = fabs(y)
    cdef bint steep = n > m
    cdef double base, base_tail, sign, ratio, c, p, numerator, numerator_tail, s, denominator, denominator_tail, r, r_tail, z
    cdef double total, lost, part, theta_tail
    cdef int j
    if steep:
        m, n = n, m
    # both zero, or equal (both infinite among them): ratios that a division would not give
    if m == n:
        n = 0.0 if m == 0.0 else 1.0
        m = 1.0
    # |angle| = base + sign * theta, theta = atan(n / m) in [0, pi/4]
    if steep:
        base = 1.5707963267948966
        base_tail = 6.123233995736766e-17
        sign = 1.0 if copysign(1.0, x) < 0.0 else -1.0
    elif copysign(1.0, x) < 0.0:
        base = 3.141592653589793
        base_tail = 1.2246467991473532e-16
        sign = -1.0
    else:
        base = 0.0
        base_tail = 0.0
        sign = 1.0
    ratio = n / m
    if not ratio >= 8.673617379884035e-19:
        # below 2^-60 the angle is the ratio (a NaN passes here too)
        return copysign(base + (base_tail + sign * ratio), y)
    # into the range where exact products neither overflow nor underflow
    if m > 1e150:
        m *= 2.409919865102884e-181
        n *= 2.409919865102884e-181
    elif m < 1e-150:
        m *= 4.149515568880993e+180
        n *= 4.149515568880993e+180
    # nearest table point c = j / 8; numerator n - c m and denominator m + c n with their tails
    j = <int>(8.0 * ratio + 0.5)
    c = 0.125 * j
    p = c * m
    numerator = n - p
    numerator_tail = -exact_product_error(c, m, p)
    s = c * n
    denominator = m + s
    denominator_tail = ((m - denominator) + s) + exact_product_error(c, n, s)
    # r + r_tail = numerator / denominator
    r = numerator / denominator
    p = r * denominator
    r_tail = (((numerator - p) - exact_product_error(r, denominator, p)) + (numerator_tail - r * denominator_tail)) / denominator
    # atan(r) = r - r^3/3 + ...; the next term is below 2^-68 of r
    z = r * r
    theta_tail = hil_atan_tail[j] + (r_tail + r * z * (-1.0 / 3.0 + z * (1.0 / 5.0 + z * (-1.0 / 7.0 + z * (1.0 / 9.0
        + z * (-1.0 / 11.0 + z * (1.0 / 13.0 + z * (-1.0 / 15.0))))))))
    # base + sign (table + r + tail): two exact sums, then one rounding
    part = sign * hil_atan_head[j]
    total = base + part
    lost = (base - total) + part
    base = total
    part = sign * r
    total = base + part
    lost += (base - total) + part
    return copysign(total + (lost + (base_tail + sign * theta_tail)), y)
