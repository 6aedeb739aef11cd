"""Six drives as a port, whatever their bus (axes_port.pyx)."""

from rt_kernels.plugs cimport PortPart


cdef class AxesPort(PortPart):
    cdef object _session            # brings the drives up and down
    cdef object _exchange           # the cyclic part
    cdef readonly list close_problems
    cdef int _loop_core             # -1: none of its own
