"""Python face of a tree of rigid and modal bodies. See `flexible.pyx`."""

from libc.stddef cimport size_t

from rt_kernels.multibody.flexible_recursion cimport Model


cdef class FlexibleTree:
    cdef Model model
    cdef double *pool
    cdef size_t pool_size              # doubles
    cdef unsigned char *held           # nv: 1 where the acceleration is held at zero
    cdef readonly int nq, nv, nj
    cdef readonly list names, joint_names
    cdef readonly tuple links
    cdef dict _index
    cdef object _bodies
    cdef int _put_mass(self, int i, object body) except -1
    cdef int _move(self, object q, object v) except -1
    cdef int _balance(self, object q, object v, double *out) except -1
