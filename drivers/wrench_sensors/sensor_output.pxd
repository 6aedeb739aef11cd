"""What every port of a force sensor keeps of its records and says in a tick (inline, header only). The values are the port's own."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from rt_kernels.codes cimport SENSOR_STATUS_BUSY, SENSOR_STATUS_NO_DATA, SENSOR_STATUS_STALE, SENSOR_STATUS_WARNING
from rt_kernels.sample cimport Sample


cdef struct SensorOutput:
    uint32_t seen           # bits of sensor_status found in this tick
    uint32_t worst_word     # of the device, in this tick
    int32_t worst_rank
    int64_t sequence
    int64_t record_total    # believed
    int64_t lost_total
    int64_t corrupt_total
    int64_t opened_ns
    int64_t heard_ns        # arrival of any record
    int64_t received_ns     # arrival of the last believed one
    int64_t moved_ns        # last time that it brought something new


cdef inline void begin_tick(SensorOutput *o) noexcept nogil:
    o.seen = 0
    o.worst_word = 0
    o.worst_rank = 0


# How bad a status is: 0 nothing, 1 not a fault (warning, busy), 2 a fault.
cdef inline int rank(uint32_t found) noexcept nogil:
    return 2 if found & ~(SENSOR_STATUS_WARNING | SENSOR_STATUS_BUSY) else 1 if found else 0


# A status word of this tick and what it means: the union of the bits, and the worst word (the newest of equally bad ones).
cdef inline void judge_status(SensorOutput *o, uint32_t found, uint32_t word) noexcept nogil:
    o.seen |= found
    if rank(found) >= o.worst_rank:
        o.worst_rank = rank(found)
        o.worst_word = word


# Ages: `silent` or not heard for `no_data_ns` is no data, records that bring nothing new for `stale_ns` (0: not judged) are stale.
cdef inline void judge_ages(SensorOutput *o, bint silent, int64_t no_data_ns, int64_t stale_ns, int64_t now) noexcept nogil:
    if silent or now - (o.heard_ns if o.record_total else o.opened_ns) > no_data_ns:
        o.seen |= SENSOR_STATUS_NO_DATA
    elif stale_ns > 0 and o.record_total and now - o.moved_ns > stale_ns:
        o.seen |= SENSOR_STATUS_STALE


cdef inline void write_output(const SensorOutput *o, bint is_open, int64_t now, Sample *sample) noexcept nogil:
    sample.wrench_sequence = o.sequence
    sample.wrench_age_ns = now - (o.received_ns if o.record_total else o.opened_ns) if is_open else 0
    sample.wrench_lost_total = o.lost_total
    sample.wrench_corrupt_total = o.corrupt_total
    sample.wrench_status = o.seen
    sample.wrench_device_status = o.worst_word


# Age of the newest record at a read, the median of `ages` [ns], s; no stream of records is older than the silence that is no data.
cdef inline double median_age_s(list ages, int64_t no_data_ns) except -1.0:
    cdef double median_ns = sorted(ages)[len(ages) // 2]
    if median_ns > no_data_ns:
        raise ConnectionError(f"the force sensor's newest record is {1e-6 * median_ns:.1f} ms old (median of its reads), limit "
                              f"no_data_ms = {1e-6 * no_data_ns:g}: no delay of the loop can be given")
    return 1e-9 * median_ns
