"""Rotation (and any 3x3) matrices, `double[9]` by rows. `R_AB` maps components from B to A. Output must not be an input."""


cdef inline void identity(double *R) noexcept nogil:
    R[0] = 1.0; R[1] = 0.0; R[2] = 0.0
    R[3] = 0.0; R[4] = 1.0; R[5] = 0.0
    R[6] = 0.0; R[7] = 0.0; R[8] = 1.0


cdef inline void apply(const double *R, const double *v, double *out) noexcept nogil:
    # R v; out may be v
    cdef double x = v[0], y = v[1], z = v[2]
    out[0] = R[0] * x + R[1] * y + R[2] * z
    out[1] = R[3] * x + R[4] * y + R[5] * z
    out[2] = R[6] * x + R[7] * y + R[8] * z


cdef inline void apply_transposed(const double *R, const double *v, double *out) noexcept nogil:
    # R^T v; out may be v
    cdef double x = v[0], y = v[1], z = v[2]
    out[0] = R[0] * x + R[3] * y + R[6] * z
    out[1] = R[1] * x + R[4] * y + R[7] * z
    out[2] = R[2] * x + R[5] * y + R[8] * z


cdef inline void multiply(const double *A, const double *B, double *out) noexcept nogil:
    # A B
    cdef int i
    for i in range(3):
        out[3 * i] = A[3 * i] * B[0] + A[3 * i + 1] * B[3] + A[3 * i + 2] * B[6]
        out[3 * i + 1] = A[3 * i] * B[1] + A[3 * i + 1] * B[4] + A[3 * i + 2] * B[7]
        out[3 * i + 2] = A[3 * i] * B[2] + A[3 * i + 1] * B[5] + A[3 * i + 2] * B[8]


cdef inline void multiply_transposed(const double *A, const double *B, double *out) noexcept nogil:
    # A B^T
    cdef int i
    for i in range(3):
        out[3 * i] = A[3 * i] * B[0] + A[3 * i + 1] * B[1] + A[3 * i + 2] * B[2]
        out[3 * i + 1] = A[3 * i] * B[3] + A[3 * i + 1] * B[4] + A[3 * i + 2] * B[5]
        out[3 * i + 2] = A[3 * i] * B[6] + A[3 * i + 1] * B[7] + A[3 * i + 2] * B[8]


cdef inline void transpose(const double *A, double *out) noexcept nogil:
    cdef int i, j
    for i in range(3):
        for j in range(3):
            out[3 * i + j] = A[3 * j + i]


cdef inline void solve(const double *A, const double *b, double *x) noexcept nogil:
    """x = A^-1 b for a symmetric positive definite 3x3 matrix (adjugate)."""
    cdef double c00 = A[4] * A[8] - A[5] * A[7], c01 = A[5] * A[6] - A[3] * A[8], c02 = A[3] * A[7] - A[4] * A[6]
    cdef double d = 1.0 / (A[0] * c00 + A[1] * c01 + A[2] * c02)
    cdef double b0 = b[0], b1 = b[1], b2 = b[2]
    x[0] = d * (c00 * b0 + (A[2] * A[7] - A[1] * A[8]) * b1 + (A[1] * A[5] - A[2] * A[4]) * b2)
    x[1] = d * (c01 * b0 + (A[0] * A[8] - A[2] * A[6]) * b1 + (A[2] * A[3] - A[0] * A[5]) * b2)
    x[2] = d * (c02 * b0 + (A[1] * A[6] - A[0] * A[7]) * b1 + (A[0] * A[4] - A[1] * A[3]) * b2)
