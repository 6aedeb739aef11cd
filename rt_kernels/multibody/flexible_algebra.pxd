"""Rotation by a small vector and dense algebra of a few rows, for the recursion over flexible bodies. Inline: they run for every body."""

from libc.math cimport sqrt

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport Mat3, Vec3, add, cross, dot, mul


# --- rotation by a small vector ---------------------------------------------------------------------------------------------------


cdef inline void exponential_terms(double x, double *k) noexcept nogil:
    """k = [sin p / p, (1 - cos p)/p^2, (p - sin p)/p^3, a'/p, b'/p] with p^2 = x, a = k[1], b = k[2] (their derivatives by p)."""
    cdef double p, s, c
    if x < 0.25:
        # Taylor series; the first terms left out are below 1e-17
        k[0] = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0 * (1.0 - x / 156.0)))))
        k[1] = 0.5 - x / 24.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0 * (1.0 - x / 90.0 * (1.0 - x / 132.0 * (1.0 - x / 182.0)))))
        k[2] = 1.0 / 6.0 - x / 120.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0 * (1.0 - x / 156.0 * (1.0 - x / 210.0)))))
        # derivatives of the two series by p, over p: 2 d/dx
        k[3] = -1.0 / 12.0 + x * (4.0 / 720.0 - x * (6.0 / 40320.0 - x * (8.0 / 3628800.0 - x * (10.0 / 479001600.0
            - x * (12.0 / 87178291200.0)))))
        k[4] = -2.0 / 120.0 + x * (4.0 / 5040.0 - x * (6.0 / 362880.0 - x * (8.0 / 39916800.0 - x * (10.0 / 6227020800.0
            - x * (12.0 / 1307674368000.0)))))
    else:
        p = sqrt(x)
        sincos(p, &s, &c)
        k[0] = s / p
        k[1] = (1.0 - c) / x
        k[2] = (p - s) / (x * p)
        k[3] = (p * s - 2.0 * (1.0 - c)) / (x * x)
        k[4] = (3.0 * s - 2.0 * p - p * c) / (x * x * p)


cdef inline Mat3 skew_polynomial(double a0, double a1, double a2, Vec3 t) noexcept nogil:
    """a0 1 + a1 S(t) + a2 S(t)^2."""
    cdef double x = t.x, y = t.y, z = t.z
    cdef Mat3 R
    R.xx = a0 - a2 * (y * y + z * z); R.xy = a2 * x * y - a1 * z; R.xz = a2 * x * z + a1 * y
    R.yx = a2 * x * y + a1 * z; R.yy = a0 - a2 * (x * x + z * z); R.yz = a2 * y * z - a1 * x
    R.zx = a2 * x * z - a1 * y; R.zy = a2 * y * z + a1 * x; R.zz = a0 - a2 * (x * x + y * y)
    return R


cdef inline Vec3 jacobian_rate(const double *k, Vec3 t, Vec3 td) noexcept nogil:
    """d/dt J_l(t) times td, for constant td: a_dot t x td + b_dot t x (t x td) + b td x (t x td)."""
    cdef Vec3 u = cross(t, td)
    return add(mul(dot(t, td), add(mul(k[3], u), mul(k[4], cross(t, u)))), mul(k[2], cross(td, u)))


# --- small dense algebra ----------------------------------------------------------------------------------------------------------


cdef inline void cholesky(double *A, int n, int stride) noexcept nogil:
    """A = L L^T in place (lower part). The diagonal keeps 1 / L_ii."""
    cdef int i, j, k
    cdef double t
    for j in range(n):
        t = A[j * stride + j]
        for k in range(j):
            t -= A[j * stride + k] * A[j * stride + k]
        t = 1.0 / sqrt(t)
        A[j * stride + j] = t
        for i in range(j + 1, n):
            for k in range(j):
                A[i * stride + j] -= A[i * stride + k] * A[j * stride + k]
            A[i * stride + j] *= t


cdef inline void forward_solve(const double *L, int n, int stride, double *x) noexcept nogil:
    cdef int i, k
    for i in range(n):
        for k in range(i):
            x[i] -= L[i * stride + k] * x[k]
        x[i] *= L[i * stride + i]


cdef inline void backward_solve(const double *L, int n, int stride, double *x) noexcept nogil:
    cdef int i, k
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= L[k * stride + i] * x[k]
        x[i] *= L[i * stride + i]


cdef inline void multiply_6(const double *P, const double *x, double *out) noexcept nogil:
    # out = P x, P symmetric 6x6: sum of rows, so that six lanes run side by side
    cdef double t[6]
    cdef int i, j
    for i in range(6):
        t[i] = P[i] * x[0]
    for j in range(1, 6):
        for i in range(6):
            t[i] += P[6 * j + i] * x[j]
    for i in range(6):
        out[i] = t[i]
