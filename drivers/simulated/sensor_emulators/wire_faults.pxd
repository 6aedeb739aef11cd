"""What a sensor in software does wrong on request, whatever its wire (inline, header only)."""

from libc.stdint cimport int32_t, int64_t, uint32_t


cdef struct WireFaults:
    int32_t drop_every          # every n-th record is not sent, 0 never; the others alike
    int32_t duplicate_every
    int32_t reorder_every
    int32_t cut_every
    int32_t noise_every         # bytes of noise before every n-th record
    int32_t checksum_every      # every n-th checksum is wrong
    int32_t frozen              # the device's counter or clock stands still; one without repeats its last record
    int32_t slow                # every record takes twice its time
    int32_t taken_over          # somebody else has the stream
    int32_t silent
    uint32_t status_word        # bits set in the status word
    uint32_t first_sequence
    int64_t delay_ns            # records leave late by this
    uint32_t random             # state of the noise


cdef inline bint every(int n, int64_t count) noexcept nogil:
    return n > 0 and count % n == 0


# xorshift: a byte of noise.
cdef inline uint32_t noise_byte(WireFaults *f) noexcept nogil:
    if f.random == 0:
        f.random = 0x9E3779B9u
    f.random ^= f.random << 13
    f.random ^= f.random >> 17
    f.random ^= f.random << 5
    return f.random >> 8 & 0xFF
