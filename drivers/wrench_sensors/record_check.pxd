"""Whether a record whose checksum is right is believed: against the record before it (inline, header only).

A checksum of n bits lets one damaged record in 2^n through, and a protocol without one lets all of them through. What has come through
must still continue the last believed record: its stamp is one to some periods later, and no channel has moved by more than `jump`. A
record that does not is a suspect: it is not believed, and the caller says so. The next record is believed when it continues the last
believed one, or from the suspect: what has truly jumped (a blow, a device that restarted) costs one record, and two damaged ones in a row
would have to agree with each other. The first record of all is a suspect too, which no caller counts as damage.

What can still pass unreported: a damaged record whose checksum happens to be right, a continuous stamp and every channel within `jump`.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

cdef enum:
    RECORD_FIRST = 0    # nothing to compare it with yet
    RECORD_TAKEN = 1
    RECORD_OLD = 2      # its stamp is not newer than that of the last believed record: it says nothing new
    RECORD_SUSPECT = 3


cdef struct Reading:
    double values[6]    # force, moment
    uint32_t stamp      # the device's clock or counter, modulo 2^32
    uint32_t word       # the device's status word
    uint32_t found      # the same in the words of sensor_status


cdef struct CheckParams:
    double jump[6]      # most that a channel moves from one record to the next
    double period       # of the stamp from record to record; 0: the device has none
    int32_t window      # a stamp further ahead or behind than this is not continuous


cdef struct CheckState:
    Reading last        # believed
    Reading suspect
    int have_last
    int have_suspect


# Periods from `before` to `r`, at least 1; 0 when r is older or the same, -1 when it is not continuous.
cdef inline int64_t periods_between(const CheckParams *p, const Reading *before, const Reading *r) noexcept nogil:
    cdef int32_t ahead = <int32_t>(r.stamp - before.stamp)
    if p.period <= 0.0:
        return 1
    if -p.window <= ahead <= 0:
        return 0
    if ahead < 0 or ahead > p.window or ahead < 0.5 * p.period:
        return -1
    return <int64_t>(ahead / p.period + 0.5)


cdef inline int is_near(const CheckParams *p, const Reading *before, const Reading *r) noexcept nogil:
    cdef int i
    for i in range(6):
        if not -p.jump[i] <= r.values[i] - before.values[i] <= p.jump[i]:
            return 0
    return 1


# Verdict on one record; `steps` becomes the periods since the last believed one (1 where unknown).
cdef inline int judge_record(const CheckParams *p, CheckState *s, const Reading *r, int64_t *steps) noexcept nogil:
    cdef int64_t ahead = periods_between(p, &s.last, r) if s.have_last else -1
    cdef int first = not s.have_last
    cdef int believed
    steps[0] = ahead if ahead > 0 else 1
    if ahead == 0:
        return RECORD_OLD
    believed = ahead > 0 and is_near(p, &s.last, r)
    if not believed and s.have_suspect:
        believed = periods_between(p, &s.suspect, r) > 0 and is_near(p, &s.suspect, r)
    if believed:
        s.last = r[0]
        s.have_last = 1
        s.have_suspect = 0
        return RECORD_TAKEN
    s.suspect = r[0]
    s.have_suspect = 1
    return RECORD_FIRST if first else RECORD_SUSPECT
