"""Control and status word of CiA 402 (IEC 61800-7-201), whatever bus carries them (inline, no module).

States by `status & 0x6F`: 0x21 ready to switch on, 0x23 switched on, 0x27 operation enabled; fault 0x08 by `status & 0x4F`.
"""

from libc.stdint cimport uint16_t, uint32_t

from rt_kernels.codes cimport (DRIVE_STATUS_DEVICE_FAULT, DRIVE_STATUS_FOLLOWING_ERROR, DRIVE_STATUS_LIMIT_TOUCHED,
                               DRIVE_STATUS_LOCAL_CONTROL, DRIVE_STATUS_NOT_ENABLED, DRIVE_STATUS_NOT_FOLLOWING, DRIVE_STATUS_WARNING)

cdef enum:
    # control words: the states that they ask for
    SWITCH_ON_DISABLED_WORD = 0x00
    SHUTDOWN_WORD = 0x06
    SWITCH_ON_WORD = 0x07
    CONTROL_ENABLED = 0x0F
    FAULT_RESET = 0x80              # acts with its rising edge
    # states in the status word, and the bits that tell them apart: while switching on, and otherwise
    STATE_MASK = 0x6F
    READY_TO_SWITCH_ON = 0x21
    SWITCHED_ON = 0x23
    OPERATION_ENABLED = 0x27
    REST_MASK = 0x4F
    IN_FAULT = 0x08
    SWITCH_ON_DISABLED = 0x40
    # further bits of the status word; the last two are the mode's own
    FAULT_BIT = 0x0008
    WARNING_BIT = 0x0080
    REMOTE_BIT = 0x0200
    INTERNAL_LIMIT_BIT = 0x0800
    TARGET_USED_BIT = 0x1000        # 0: the target position is ignored
    FOLLOWING_ERROR_BIT = 0x2000
    OWN_BITS = 0x3EFF               # all but 8, 14 and 15, which are the manufacturer's


# Status word -> drive_status.
cdef inline uint32_t decode_status(uint16_t word) noexcept nogil:
    cdef uint32_t status = 0
    if word & STATE_MASK != OPERATION_ENABLED:
        status |= DRIVE_STATUS_NOT_ENABLED
    elif not word & TARGET_USED_BIT:
        status |= DRIVE_STATUS_NOT_FOLLOWING
    if word & FAULT_BIT:
        status |= DRIVE_STATUS_DEVICE_FAULT
    if word & WARNING_BIT:
        status |= DRIVE_STATUS_WARNING
    if not word & REMOTE_BIT:
        status |= DRIVE_STATUS_LOCAL_CONTROL
    if word & INTERNAL_LIMIT_BIT:
        status |= DRIVE_STATUS_LIMIT_TOUCHED
    if word & FOLLOWING_ERROR_BIT:
        status |= DRIVE_STATUS_FOLLOWING_ERROR
    return status


# From the state of the status word one further on the way up, out of a fault by the edge of the reset.
cdef inline uint16_t word_up(uint16_t word, bint reset, bint may_enable) noexcept nogil:
    if word & REST_MASK == IN_FAULT:
        return FAULT_RESET if reset else 0
    if word & REST_MASK == SWITCH_ON_DISABLED:
        return SHUTDOWN_WORD
    if word & STATE_MASK == READY_TO_SWITCH_ON:
        return SWITCH_ON_WORD
    if word & STATE_MASK == SWITCHED_ON:
        return CONTROL_ENABLED if may_enable else SWITCH_ON_WORD
    if word & STATE_MASK == OPERATION_ENABLED:
        return CONTROL_ENABLED
    # not ready, quick stop, the reaction to a fault: the way leads through switch on disabled
    return SWITCH_ON_DISABLED_WORD


# From the state of the status word one further on the way down.
cdef inline uint16_t word_down(uint16_t word, bint *off) noexcept nogil:
    off[0] = word & REST_MASK == SWITCH_ON_DISABLED or word & REST_MASK == IN_FAULT
    if word & STATE_MASK == OPERATION_ENABLED:
        return SWITCH_ON_WORD
    if word & STATE_MASK == SWITCHED_ON:
        return SHUTDOWN_WORD
    return SWITCH_ON_DISABLED_WORD
