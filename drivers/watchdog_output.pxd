"""The watchdog as two bits of a digital output, whatever carries it (inline, no module).

With every tick that the safety stage has found healthy (`watchdog` of the sample has moved) one bit changes, and another one is on. A loop
that stands still sends nothing, one without its safety stage sends the same again: either way the output stops within two periods, and a
relay outside that waits for its edges takes the power off.
"""

from libc.stdint cimport int32_t, uint32_t

from rt_kernels.sample cimport Sample


cdef struct WatchdogOutput:
    int32_t toggle_bit      # -1: not wired
    int32_t healthy_bit


# The bits at a tick. seen: the watchdog of the last one.
cdef inline uint32_t watchdog_bits(const WatchdogOutput *w, uint32_t *seen, const Sample *sample) noexcept nogil:
    cdef uint32_t bits = 0
    if w.toggle_bit >= 0 and sample.watchdog & 1:
        bits |= <uint32_t>1 << w.toggle_bit
    if w.healthy_bit >= 0 and sample.watchdog != seen[0]:
        bits |= <uint32_t>1 << w.healthy_bit
    seen[0] = sample.watchdog
    return bits
