"""The plug of an emulated force sensor: what the virtual stand's server asks of a sensor in software, and the wire between the two.

The loop calls `power_up`, then `record` at each moment that the sensor names in `record_ns`, with the plant advanced to it, and `listen`
when something waits on the descriptor. What the sensor says it puts on the wire (`put`), each message with the moment at which its last bit
has left; the loop sends it then.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from posix.unistd cimport write

from drivers.raw_frames.frame_io cimport io_send_to, sockaddr_in
from drivers.simulated.sensor_emulators.wire_faults cimport WireFaults

cdef extern from "<stdint.h>":
    const int64_t NEVER "INT64_MAX"

cdef enum:
    MESSAGES = 1024             # that wait for their time
    MESSAGE = 1440              # most bytes of one


cdef struct SensorWire:
    int fd
    sockaddr_in peer            # of datagrams: whom they go to
    WireFaults faults           # what the sensor is to do wrong
    int64_t boot_ns             # from power-up to its first word
    # what the loop says
    int64_t now                 # in `record` its moment
    double F[6]                 # force and torque now, N and N.m
    double gauge[6]             # the same in counts of the plant's gauges
    bint lost                   # this record was lost to a stall of the machine: it is only counted
    # what the sensor says
    int64_t record_ns           # when it measures next, NEVER: not by itself
    int64_t bad_total           # malformed datagrams
    # messages on their way
    int64_t free_ns             # the last bit of what was given to the wire has left
    int64_t due_ns[MESSAGES]
    int32_t bytes[MESSAGES]
    uint8_t data[MESSAGES][MESSAGE]
    int32_t head
    int32_t tail
    int64_t sent_total
    int64_t lost_total          # that found no room


cdef struct SensorPlug:
    void *self
    void (*power_up)(void *self, SensorWire *w) noexcept nogil      # after power was gone, or at the start
    void (*record)(void *self, SensorWire *w) noexcept nogil        # that of `record_ns`, which it moves on
    void (*listen)(void *self, SensorWire *w) noexcept nogil        # takes what waits on the descriptor
    SensorWire wire


# A value as counts of 32 bits on the wire; at the end of the range where it is beyond it, or no number.
cdef inline int32_t rounded(double x) noexcept nogil:
    if not (x > -2147483000.0):
        return -2147483000
    if x > 2147483000.0:
        return 2147483000
    return <int32_t>(x + 0.5 if x >= 0.0 else x - 0.5)


# One message, on the wire not before `start` and for so long; of datagrams for no time.
cdef inline void put(SensorWire *w, const void *data, int size, int64_t start, int64_t duration_ns) noexcept nogil:
    cdef int after = (w.head + 1) % MESSAGES
    if after == w.tail:
        w.lost_total += 1
        return
    w.free_ns = max(start, w.free_ns) + duration_ns
    w.due_ns[w.head] = w.free_ns
    w.bytes[w.head] = size
    memcpy(w.data[w.head], data, <size_t>size)
    w.head = after


# When the sensor has something to do next, `otherwise` at the latest.
cdef inline int64_t sensor_next_ns(const SensorWire *w, int64_t otherwise) noexcept nogil:
    if w.head != w.tail:
        otherwise = min(otherwise, w.due_ns[w.tail])
    return min(otherwise, w.record_ns)


# Everything whose last bit has left by now.
cdef inline void send_messages(SensorWire *w, int64_t now) noexcept nogil:
    cdef int sent
    while w.tail != w.head and w.due_ns[w.tail] <= now:
        if w.peer.sin_port:
            sent = io_send_to(w.fd, w.data[w.tail], w.bytes[w.tail], &w.peer)
        else:
            sent = <int>write(w.fd, w.data[w.tail], <size_t>w.bytes[w.tail])
        if sent == w.bytes[w.tail]:
            w.sent_total += 1
        else:
            w.lost_total += 1
        w.tail = (w.tail + 1) % MESSAGES


# The wire without what waits on it: power was lost.
cdef inline void drop_messages(SensorWire *w) noexcept nogil:
    w.tail = w.head
    w.free_ns = w.now


# Owner of the plug. An emulator derives from this and from nothing else.
cdef class EmulatedSensor:
    cdef SensorPlug plug
    cdef readonly dict keys
    cdef object closing
    cdef dict on_line(self)
    cdef int on_udp(self, address, port) except -1
