"""Cyclic part of EtherCAT axes: one frame a tick. Description in the .pyx."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t

from drivers.drives.axis_values cimport AxisOutput, ControlWords, DecodeStatus, PositionHistory
from drivers.drives.keeper cimport Keeper
from drivers.raw_frames.ethercat_frame cimport FRAME_MOST
from drivers.watchdog_output cimport WatchdogOutput
from rt_kernels.grid_reference cimport GridLock, GridReference
from rt_kernels.sample cimport Sample

cdef enum:
    AXES = 6
    INDICES = 128           # of our frames: 0x80 ... 0xFF
    INPUT_BYTES = 13        # of an axis in the process image


cdef struct EthercatAxisParams:
    uint16_t station        # configured address
    int32_t out             # of its outputs and inputs in the process image
    int32_t into
    double counts_per_metre
    double zero_m           # leg length at count 0
    double held_within      # counts
    double force_unit_n     # of a thousandth of the rated torque; 0: the drive does not say its force


cdef struct EthercatParams:
    int fd                  # -1: closed
    int32_t size            # of the frame, padded
    int32_t image           # bytes of the process image
    int32_t lrw             # where the datagrams begin
    int32_t frmw
    int32_t brd
    int32_t fprd
    uint16_t expected       # working counters
    uint16_t clocks
    uint16_t slaves
    int64_t period_ns
    int64_t phase_ns        # reference time at which a frame is to pass the reference slave, modulo the period
    ControlWords words
    int32_t rate_window
    int32_t no_data_periods
    uint32_t not_judged
    int32_t watchdog        # place of the outputs that have the watchdog in the process image, -1: none
    int32_t watchdog_bytes
    WatchdogOutput outputs
    DecodeStatus decode
    EthercatAxisParams axis[AXES]


cdef struct EthercatAxisState:
    int32_t counts
    AxisOutput out
    int32_t force
    uint16_t status_word
    int32_t mode
    uint32_t status
    int32_t off             # of an axis that is led down: it has arrived
    uint8_t al_status       # newest of this slave
    uint16_t al_code
    int64_t lost_total
    int64_t corrupt_total
    PositionHistory history


cdef struct EthercatState:
    EthercatAxisState axis[AXES]
    int64_t cycles
    uint32_t watchdog       # of the last tick
    uint32_t output_bits    # of the slave that has its output; the keeper sends none
    int64_t first_command   # cycles when the first setpoints were sent, 0 before
    int64_t sent            # frames; the newest has index 0x80 + sent % 128
    int64_t sent_ns[INDICES]
    int64_t host_ns[INDICES]  # and how long after the point of the grid
    int8_t waiting[INDICES]  # sent and not answered
    int8_t believed[INDICES]  # answered, its inputs taken
    uint8_t inputs_of[INDICES][AXES][INPUT_BYTES]  # these
    int64_t newest_ns       # reference time of the newest answer
    int32_t fresh           # the newest frame has come back, whole
    int32_t silent_periods
    uint32_t seen           # bits of drive_status for every axis, of this tick
    int64_t answered        # frames
    int64_t late_total
    int64_t doubled_total
    int64_t corrupt_total
    int64_t short_total     # working counter too small
    int64_t drop_total
    int64_t ignored_total
    int64_t round_trip_ns
    int64_t deviation_ns
    int64_t error_ns
    int32_t working_counter
    int32_t al_or
    int32_t clocks_counter


cdef struct Ethercat:
    EthercatParams p
    EthercatState s
    Keeper keeper
    GridLock *grid
    uint8_t frame[FRAME_MOST]


cdef class EthercatAxes:
    cdef Ethercat bus
    cdef readonly GridReference grid_reference


cdef void ethercat_read(void *self, Sample *sample, double *aux) noexcept nogil
cdef void ethercat_write(void *self, const Sample *sample, double *aux) noexcept nogil
cdef void ethercat_leave(void *self) noexcept nogil
