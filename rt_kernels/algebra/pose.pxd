"""Poses `double[7]` = position, quaternion xyzw; wrenches `double[6]` force first; twists `double[6]` linear first.

`X_AB` is the pose of B in A: `p_AB` in A axes and `q_AB`.
"""

from rt_kernels.algebra cimport quat
from rt_kernels.algebra cimport vec3


cdef inline void identity(double *X) noexcept nogil:
    X[0] = 0.0; X[1] = 0.0; X[2] = 0.0
    quat.identity(X + 3)


cdef inline void copy(const double *X, double *out) noexcept nogil:
    cdef int i
    for i in range(7):
        out[i] = X[i]


cdef inline void multiply(const double *X_AB, const double *X_BC, double *X_AC) noexcept nogil:
    # output may be an input
    cdef double p[3]
    quat.rotate(X_AB + 3, X_BC, p)
    vec3.add(X_AB, p, p)
    quat.multiply(X_AB + 3, X_BC + 3, X_AC + 3)
    vec3.copy(p, X_AC)


cdef inline void inverse(const double *X_AB, double *X_BA) noexcept nogil:
    # output may be the input
    cdef double p[3]
    cdef double q[4]
    quat.conjugate(X_AB + 3, q)
    quat.rotate(q, X_AB, p)
    vec3.scale(-1.0, p, X_BA)
    quat.copy(q, X_BA + 3)


cdef inline void apply(const double *X_AB, const double *p_BQ, double *p_AQ) noexcept nogil:
    cdef double r[3]
    quat.rotate(X_AB + 3, p_BQ, r)
    vec3.add(X_AB, r, p_AQ)


cdef inline void wrench_to_parent(const double *X_AB, const double *F_B, double *F_A) noexcept nogil:
    """The same wrench, given at and in B, taken at and in A: f_A = R f_B, m_A = R m_B + p_AB x f_A. Output may be the input."""
    cdef double f[3]
    cdef double m[3]
    cdef double r[3]
    quat.rotate(X_AB + 3, F_B, f)
    quat.rotate(X_AB + 3, F_B + 3, m)
    vec3.cross(X_AB, f, r)
    vec3.copy(f, F_A)
    vec3.add(m, r, F_A + 3)


cdef inline void wrench_to_child(const double *X_AB, const double *F_A, double *F_B) noexcept nogil:
    """Inverse of `wrench_to_parent`. Output may be the input."""
    cdef double r[3]
    cdef double m[3]
    vec3.cross(X_AB, F_A, r)
    vec3.sub(F_A + 3, r, m)
    quat.rotate_back(X_AB + 3, F_A, F_B)
    quat.rotate_back(X_AB + 3, m, F_B + 3)
