"""Six axes of a CANopen profile as a port (canopen_port.pyx)."""

from libc.stdint cimport int32_t, uint16_t, uint32_t

from drivers.drives.axes_port cimport AxesPort
from drivers.drives.axis_values cimport DecodeStatus, WordDown, WordUp
from drivers.drives.cyclic_axes cimport CyclicAxes


cdef struct ProfileWords:
    int32_t number              # of the profile: 402, 408
    uint32_t own_bits           # of the status word that the profile defines
    uint16_t control_word       # that keeps the axes enabled
    uint16_t blocking_word      # that takes the power off them
    DecodeStatus decode
    WordUp word_up
    WordDown word_down


cdef class CanopenPort(AxesPort):
    cdef CyclicAxes _cyclic
    cdef object _channels
    cdef dict _given
    cdef bint _feed_forward
    cdef readonly double _rate_hz

    cdef int set_axes(self, profile, const ProfileWords *words, bint feed_forward, protection) except -1
