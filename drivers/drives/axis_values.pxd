"""What axes have in common on every bus: counts, their history and rate, how bad a status is, what the loop sends (inline, no module)."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t

from rt_kernels.codes cimport (DRIVE_STATUS_FOLLOWING_ERROR, DRIVE_STATUS_LIMIT_TOUCHED, DRIVE_STATUS_LOST, DRIVE_STATUS_NO_DATA,
                               DRIVE_STATUS_STALE, DRIVE_STATUS_VALVE_SATURATED, DRIVE_STATUS_WARNING,
                               SAFETY_STATE_FOLLOWING, SAFETY_STATE_NOT_ARMED, SAFETY_STATE_RECOVERING, SETPOINT_STATUS_BLOCKED1)
from rt_kernels.sample cimport Sample

cdef enum:
    HISTORY = 16            # positions kept for the rate, a power of two
    RESET_CYCLES = 16       # a fault reset stays for so many cycles: an edge that a slow drive sees too
    UNHEARD = DRIVE_STATUS_NO_DATA | DRIVE_STATUS_STALE | DRIVE_STATUS_LOST     # of an axis that did not answer in this tick
    HEARD_PERIODS = 1       # the keeper believes a status word that is so old


# What a profile says about a status word: bits of the table's drive_status.
ctypedef uint32_t (*DecodeStatus)(uint16_t status_word) noexcept nogil

# The control word of a profile that takes an axis one state further on its way up, from a fault too. reset: the bit that resets a fault is
# to be set (its edge counts, so it comes and goes); may_enable: the setpoint is where the axis is.
ctypedef uint16_t (*WordUp)(uint16_t status_word, bint reset, bint may_enable) noexcept nogil

# The control word that takes an axis one state further on its way down. off: whether it has arrived, its power stage without power; an
# axis in a fault has.
ctypedef uint16_t (*WordDown)(uint16_t status_word, bint *off) noexcept nogil


# The control words by which the loop leads axes.
cdef struct ControlWords:
    uint16_t enabled        # keeps an axis enabled
    uint16_t blocking       # takes the power off it: its blocking valve closes
    WordUp up


# What an axis is sent.
cdef struct AxisOutput:
    int32_t target          # newest setpoint in counts
    uint16_t word           # newest control word of an axis that is not blocked
    uint16_t word_out       # newest that was sent
    bint held               # the target is the place at which the axis was enabled, no setpoint yet
    bint stood              # the newest position was within a millimetre of the one before it


cdef struct PositionHistory:
    int32_t count
    int32_t counts[HISTORY]
    int64_t ns[HISTORY]     # when it was sampled


# Nearest count; a length beyond 32 bits or not a number keeps the old target.
cdef inline int32_t to_counts(double value, int32_t otherwise) noexcept nogil:
    if not (-2147483000.0 < value < 2147483000.0):
        return otherwise
    return <int32_t>(value + 0.5 if value >= 0.0 else value - 0.5)


# A new position: the newest place of the history, replaced when a second one came for the same sampling.
cdef inline void keep_position(PositionHistory *h, int32_t counts, int64_t sampled_ns) noexcept nogil:
    cdef int newest = (h.count - 1) & (HISTORY - 1)
    if h.count > 0 and h.ns[newest] == sampled_ns:
        h.counts[newest] = counts
        return
    h.counts[h.count & (HISTORY - 1)] = counts
    h.ns[h.count & (HISTORY - 1)] = sampled_ns
    h.count += 1
    if h.count >= 2 * HISTORY:
        h.count -= HISTORY


# Counts per second over the last `window` samples, 0 before there are two.
cdef inline double counts_rate(const PositionHistory *h, int window) noexcept nogil:
    cdef int newest, oldest, back
    cdef int64_t elapsed
    if h.count < 2:
        return 0.0
    back = window if window < h.count else h.count - 1
    newest = (h.count - 1) & (HISTORY - 1)
    oldest = (h.count - 1 - back) & (HISTORY - 1)
    elapsed = h.ns[newest] - h.ns[oldest]
    if elapsed <= 0:
        return 0.0
    return (<double>h.counts[newest] - <double>h.counts[oldest]) * 1e9 / <double>elapsed


# How bad a status is: 0 nothing, 1 not a fault of the drive (warning, limit touched, valve at its end), 2 a fault.
cdef inline int rank(uint32_t found) noexcept nogil:
    return 2 if found & ~(DRIVE_STATUS_WARNING | DRIVE_STATUS_LIMIT_TOUCHED | DRIVE_STATUS_VALVE_SATURATED) else 1 if found else 0


# Whether an axis may be enabled: its setpoint is within a millimetre of where it is.
cdef inline bint in_place(int32_t target, int32_t counts, double counts_per_metre) noexcept nogil:
    cdef double gap = <double>target - <double>counts
    return -0.001 * counts_per_metre <= gap <= 0.001 * counts_per_metre


# Of an axis that is held: a following error when it is more than `within` counts from its place.
cdef inline uint32_t left_place(const AxisOutput *out, int32_t counts, double within) noexcept nogil:
    cdef double gap = <double>counts - <double>out.target
    return DRIVE_STATUS_FOLLOWING_ERROR if out.held and not -within <= gap <= within else 0


# Setpoint and control word of axis i at a tick. Before the setpoints have started the drive holds the position at which it was enabled;
# after a trip an axis keeps its word until a recovery leads it up, state by state, each by an answer of this tick: without one it is sent
# what it was sent last. A blocked one gets the word that takes its power off.
cdef inline void command_axis(const Sample *sample, int i, double zero_m, double counts_per_metre, uint16_t status_word, int32_t counts,
                              bint reset, const ControlWords *words, AxisOutput *out) noexcept nogil:
    if sample.safety_state != SAFETY_STATE_NOT_ARMED:
        out.target = to_counts((sample.leg_setpoint[i] - zero_m) * counts_per_metre, out.target)
        out.held = False
    if sample.safety_state == SAFETY_STATE_RECOVERING:
        if sample.drive_status[i] & UNHEARD:
            out.word = out.word_out
        else:
            out.word = words.up(status_word, reset, in_place(out.target, counts, counts_per_metre))
            # one that is enabled has not yet taken the other word that it was sent
            if out.word_out != words.enabled and words.up(status_word, False, False) == words.enabled:
                out.word = out.word_out
    elif sample.safety_state == SAFETY_STATE_FOLLOWING or sample.safety_state == SAFETY_STATE_NOT_ARMED:
        out.word = words.enabled
    out.word_out = words.blocking if sample.setpoint_status & SETPOINT_STATUS_BLOCKED1 << i else out.word
