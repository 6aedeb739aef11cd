"""Vectors of three numbers, `double[3]`. Output last; output may be one of the inputs unless stated otherwise."""

from libc.math cimport sqrt


cdef inline void fill(double x, double y, double z, double *out) noexcept nogil:
    out[0] = x; out[1] = y; out[2] = z


cdef inline void copy(const double *a, double *out) noexcept nogil:
    out[0] = a[0]; out[1] = a[1]; out[2] = a[2]


cdef inline void add(const double *a, const double *b, double *out) noexcept nogil:
    out[0] = a[0] + b[0]; out[1] = a[1] + b[1]; out[2] = a[2] + b[2]


cdef inline void sub(const double *a, const double *b, double *out) noexcept nogil:
    out[0] = a[0] - b[0]; out[1] = a[1] - b[1]; out[2] = a[2] - b[2]


cdef inline void scale(double s, const double *a, double *out) noexcept nogil:
    out[0] = s * a[0]; out[1] = s * a[1]; out[2] = s * a[2]


cdef inline void add_scaled(const double *a, double s, const double *b, double *out) noexcept nogil:
    # a + s b
    out[0] = a[0] + s * b[0]; out[1] = a[1] + s * b[1]; out[2] = a[2] + s * b[2]


cdef inline double dot(const double *a, const double *b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline double norm(const double *a) noexcept nogil:
    return sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


cdef inline void cross(const double *a, const double *b, double *out) noexcept nogil:
    # a x b
    cdef double x = a[1] * b[2] - a[2] * b[1]
    cdef double y = a[2] * b[0] - a[0] * b[2]
    cdef double z = a[0] * b[1] - a[1] * b[0]
    out[0] = x; out[1] = y; out[2] = z
