"""Python face of a tree of rigid and modal bodies. See `flexible.pyx`."""

from libc.stddef cimport size_t

from rt_kernels.multibody.flexible_recursion cimport Model


cdef class FlexibleTree:
    cdef Model model
    cdef double *pool
    cdef size_t pool_size        # doubles
    cdef public int nq, nv, nj
    cdef public tuple names
    cdef public tuple links
    cdef dict _index
    cdef object _bodies
