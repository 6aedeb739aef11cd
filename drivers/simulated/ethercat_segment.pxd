"""A line of EtherCAT slaves in software: what one frame does as it passes all of them (see the .pyx)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from drivers.simulated.stand_server_node cimport Node


cdef enum:
    SEGMENT_SLAVES = 16
    SLAVE_MEMORY = 0x3000           # registers, then 8 KiB for mailboxes and process data
    SLAVE_SII = 128                 # bytes
    SLAVE_MAILBOX = 128             # bytes, each way
    SLAVE_FMMUS = 4
    SLAVE_SYNC_MANAGERS = 4


cdef struct Slave:
    uint8_t memory[SLAVE_MEMORY]
    uint8_t sii[SLAVE_SII]
    Node node                       # dictionary and CiA 402 axis
    int32_t state                   # AL: 1, 2, 4, 8
    int32_t al_error                # bit 4 of the AL status
    int32_t mailbox_counter         # of our answers, 1...7
    int32_t outputs_fresh           # outputs were written since the drive looked last
    int64_t outputs_ns              # when they were
    # the local clock: local = start_ns + (1 + drift) now; system = local + offset register + correction
    double drift
    int64_t start_ns
    double correction_ns
    double rate                     # of the correction, learnt from the reference
    int64_t steered_ns              # now of the newest steering, 0 none yet
    int64_t cable_ns                # from the slave before (or the master) to this one
    # injected faults
    int32_t wkc_short               # does not take part in logical datagrams
    int32_t stuck_al                # AL status code that an acknowledge does not clear


cdef struct Segment:
    Slave slave[SEGMENT_SLAVES]
    int32_t slaves
    int32_t lost_from               # slaves from here on are beyond a broken cable; = slaves: none
    int64_t frames
    int64_t refused                 # frames that are none


cdef void segment_start(Segment *g, int slaves, double counts_window, int terminal) noexcept nogil
cdef int segment_frame(Segment *g, uint8_t *frame, int length, int64_t now_ns) noexcept nogil
cdef void segment_timers(Segment *g, int64_t now_ns) noexcept nogil
cdef int64_t segment_next_sync(const Segment *g, int64_t now_ns) noexcept nogil
cdef void segment_al_error(Segment *g, int position, int code) noexcept nogil
cdef void segment_drift(Segment *g, int position, double drift, int64_t now_ns) noexcept nogil


cdef class EtherCatSegment:
    cdef Segment *g
    cdef Slave *at(self, int position) except NULL
    cdef volatile int stopping
