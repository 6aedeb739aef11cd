"""Stream of a serial force sensor: framing, and the port that its protocols share (serial_stream.pyx has the rules)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from drivers.wrench_sensors.record_check cimport CheckParams, CheckState, Reading
from drivers.wrench_sensors.sensor_output cimport SensorOutput
from rt_kernels.plugs cimport PortPart

cdef enum:
    LONGEST_RECORD = 64     # bytes
    READ_SIZE = 4096        # most bytes taken in a tick
    HISTORY = 16            # records among which a doubled one is looked for, where the device has no stamps


cdef struct Framing:
    int header_length       # bytes of the header
    uint8_t header[2]
    int record_length       # bytes, header and checksum included
    int crc_begin           # first byte that the checksum covers; it covers all up to itself
    uint16_t crc_invert
    uint16_t crc_generator  # reflected


cdef struct FramingState:
    uint8_t bytes[LONGEST_RECORD]   # candidate: what came since the last record, less what cannot begin one
    int count
    int out_of_step                 # bytes were skipped since the last record
    int64_t skipped_total           # bytes that belong to no record
    int64_t damage_total            # runs of them


# Values, stamp, status word and its meaning out of the bytes of a record whose checksum is right.
ctypedef void (*Decode)(const uint8_t *record, Reading *r) noexcept nogil


cdef struct StreamParams:
    int fd                  # -1 when closed
    Framing framing
    CheckParams check
    Decode decode
    double limit[6]         # range of the sensor
    double byte_ns          # time of a byte on the line
    int64_t no_data_ns
    int64_t stale_ns        # 0: records that do not move are not judged
    int64_t window_ns       # records are counted over so long, for a device without stamps; 0: not
    int64_t window_records  # that should come in it


cdef struct StreamState:
    SensorOutput out        # moved_ns: last time that stamp or values moved
    FramingState framing
    CheckState check
    double history[HISTORY][6]  # values of the last believed records
    int history_count
    int gone                # the line was hung up
    int restart             # what is missing before the next record is not of this stream
    int64_t repeated_total  # without anything new
    int64_t suspect_total   # with a right checksum, and not believed
    int64_t device_ns       # the device's clock at the last believed record, counted from the first one
    int64_t offset_ns       # this machine's clock less it, by the record that was read soonest
    int has_offset
    int64_t window_began_ns
    int64_t window_count


cdef struct Stream:
    StreamParams p
    StreamState s
    uint8_t buffer[READ_SIZE]


cdef class SerialSensor(PortPart):
    cdef Stream stream
    cdef object _line
    cdef object _left_s                     # function: seconds that are left to set the sensor up
    cdef bint _opened                       # a line that is gone since is looked for again by `recover`
    cdef dict _given
    cdef readonly object measured_rate_hz   # of the stream, None before `measure`
    cdef object _measured_age               # s

    cdef void prepare(self, Decode decode)
