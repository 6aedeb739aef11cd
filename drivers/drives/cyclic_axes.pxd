"""Cyclic part of CANopen axes, shared by the profiles: SYNC, setpoints out, actual values in. Description in the .pyx."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t

from drivers.drives.axis_values cimport AxisOutput, ControlWords, DecodeStatus, PositionHistory, WordDown
from drivers.drives.keeper cimport Keeper
from drivers.watchdog_output cimport WatchdogOutput
from rt_kernels.sample cimport Sample

cdef enum:
    AXES = 6
    LINKS = 3
    SLOW_PDOS = 2           # TPDO3 and TPDO4: what an axis says beside its position
    SLOW_VALUES = 4         # in one of them at most
    KINDS = 8               # of frames, of one axis

# What an axis may say beside its position: places in `drive_channels.NAMES`.
cdef enum:
    CHANNEL_FORCE = 0
    CHANNEL_PRESSURE_A = 1
    CHANNEL_PRESSURE_B = 2
    CHANNEL_VALVE = 3
    CHANNEL_SUPPLY = 4
    CHANNEL_STATUS = 5
    CHANNELS = 6


cdef struct SlowValue:
    int32_t channel
    int32_t bytes           # 2 or 4, signed but for CHANNEL_STATUS
    double unit             # one count in SI units


cdef struct SlowPdo:
    int32_t bytes           # 0: not mapped
    int32_t count
    SlowValue value[SLOW_VALUES]


cdef struct AxisParams:
    int32_t link
    int32_t node
    double counts_per_metre
    double zero_m           # leg length at count 0
    double held_within      # counts
    SlowPdo slow[SLOW_PDOS]


cdef struct AxesParams:
    int32_t fd[LINKS]       # -1: closed or not used
    int32_t links
    ControlWords words
    int32_t copy_fd[LINKS]  # where the frames of a set-up are copied to while `copies`, -1: nowhere
    volatile int32_t copies  # 1: a node is being set up beside the loop
    int32_t feed_forward    # 1: a second setpoint frame with the velocity
    int32_t rate_window     # periods over which the leg rate is the difference quotient
    int32_t no_data_periods
    uint32_t not_judged     # bits of drive_status that these drives do not set as the profile asks
    int32_t slow_every      # SYNCs from one slow actual value to the next
    int32_t supply_axis     # whose drive reports the supply pressure, -1: none
    uint32_t channels       # bit n: channel n is sent
    int32_t hydraulic_bit[3]  # of valve_saturated, supply_low, hydraulics_blocked: 0...15 status word, 16...31 CHANNEL_STATUS, -1 none
    int64_t heartbeat_timeout_ns
    int64_t period_ns
    int32_t server_node     # of our own heartbeat
    int32_t beat_every      # SYNCs from one of our heartbeats to the next, 0: none
    int32_t watchdog_axis   # whose drive has the watchdog's output, -1: none
    WatchdogOutput outputs
    AxisParams axis[AXES]
    DecodeStatus decode
    WordDown word_down
    int8_t receiver[LINKS][2048]    # COB-ID -> 1 + KINDS * axis + kind, 0: none


cdef struct AxisState:
    int32_t counts          # newest position
    AxisOutput out
    int32_t target_rate
    uint16_t status_word    # newest
    uint16_t worst_word     # status word of this tick
    uint16_t emergency      # error code that stands, 0 when all errors were taken back
    uint16_t emergency_seen  # newest error code of this tick, taken back or not
    uint32_t status         # bits of drive_status in the newest status word
    uint32_t seen           # bits of drive_status found while receiving in this tick
    int32_t worst_rank
    int32_t silent_periods  # since the newest actual value
    int32_t nmt_state       # of the newest heartbeat, 5 operational
    int32_t fresh           # an actual value came in this tick
    int32_t off             # of an axis that is led down: it has arrived
    int32_t beat            # a heartbeat came in this tick
    int64_t heartbeat_ns    # run time of the tick that took the newest heartbeat
    PositionHistory history         # by the SYNC that sampled it
    int32_t owed            # SYNCs whose answer may still come
    int32_t answers         # since the newest SYNC
    int32_t calm            # SYNCs in a row with one answer each
    int64_t lost_total
    int64_t corrupt_total
    double channel[CHANNELS]        # newest values, SI units
    uint32_t hydraulic_word         # newest CHANNEL_STATUS
    int32_t slow_silent[SLOW_PDOS]  # periods since the newest


cdef struct AxesState:
    AxisState axis[AXES]
    int64_t sync_ns[LINKS]          # newest SYNC, 0 before the first
    int64_t cycles
    int64_t sent            # SYNCs, also the keeper's
    uint32_t watchdog       # of the last tick
    uint32_t output_bits    # of the drive that has its output; the keeper sends none
    int64_t first_command           # cycles when the first setpoints were sent, 0 before
    int64_t corrupt_total[LINKS]    # records that are no frame
    int64_t bus_error_total[LINKS]  # damage that the controller reported
    int64_t ignored_total[LINKS]    # frames for no axis
    int64_t drop_total[LINKS]       # frames that the transmit queue did not take
    uint32_t link_seen[LINKS]       # bits of drive_status for every axis of the link
    uint32_t link_latched[LINKS]    # bus off until the controller restarts
    int32_t behind[LINKS]           # ticks in a row in which frames were left waiting


cdef struct Axes:
    AxesParams p
    AxesState s
    Keeper keeper


cdef class CyclicAxes:
    cdef Axes axes


cdef void axes_read(void *self, Sample *sample, double *aux) noexcept nogil
cdef void axes_write(void *self, const Sample *sample, double *aux) noexcept nogil
cdef void axes_leave(void *self) noexcept nogil
