"""CiA 408 hydraulic axes (digital axis control valves) in closed-loop position control over CANopen.

Objects (Moog *Axis Control Valves with CANopen*, B99224-DV018-D-211; CiA 408): control word 0x6040 with bits 0 D, 1 H, 2 M, 3 R (reset);
status word 0x6041 with the state in bits 0-3; device mode 0x6042 := 1 (setpoint from the bus), control mode 0x6043, position setpoint
0x6600:1, actual position 0x6601:1. Way up: 0 -> 1 -> 3 -> target := actual -> 7, each confirmed by the status word; way down: 3 -> 1 -> 0.

State (R M H D): INIT 1000, DISABLED 1001, HOLD 1011, ACTIVE 1111; FAULT DISABLED 0001, FAULT HOLD 0011, FAULT REACTION 0111; NOT READY and
FAULT INIT both read 0000. All four bits are tested: 0111 is not ACTIVE.
"""

from libc.stdint cimport uint16_t, uint32_t

from drivers.drives.canopen_port cimport CanopenPort, ProfileWords
from rt_kernels.codes cimport (DRIVE_STATUS_DEVICE_FAULT, DRIVE_STATUS_FOLLOWING_ERROR, DRIVE_STATUS_LIMIT_TOUCHED,
                               DRIVE_STATUS_LOCAL_CONTROL, DRIVE_STATUS_NOT_ENABLED)

from drivers.drives.axes_session import COMMON_PARAMETERS, loop_rate
from drivers.drives.canopen_setup import DriveSetupError, Pdo
from drivers.drives.supervision import unit_of_position
from rt_kernels.parameters import Parameter, checked

cdef enum:
    # bits of control word and state: D disabled, H hold, M device mode active, R ready (in the control word: reset, by its rising edge)
    DISABLED_BIT = 0x01
    HOLD_BIT = 0x02
    ACTIVE_BIT = 0x04
    READY_BIT = 0x08
    CONTROL_INIT = 0x00
    CONTROL_DISABLED = 0x01
    CONTROL_HOLD = 0x03
    CONTROL_ACTIVE = 0x07
    LOWER_BITS = 0x03               # what a reset keeps
    # the state in the status word
    STATE_MASK = 0x0F
    INIT = 0x08
    DISABLED = 0x09
    HOLD = 0x0B
    ACTIVE = 0x0F
    # further bits of the status word
    LOCAL_CONTROL_BIT = 0x0010
    LIMIT_TOUCHED_BIT = 0x0400
    DEVIATION_BIT = 0x0800
    OWN_BITS = 0x0F1F               # state, local, mode specific, ramp, limit touched, deviation; the others are reserved or vendors'

CONTROL_WORD, STATUS_WORD = 0x6040, 0x6041
DEVICE_MODE, SET_POINT_FROM_BUS = 0x6042, 1
CONTROL_MODE = 0x6043
POSITION_SET_POINT, ACTUAL_POSITION = 0x6600, 0x6601
TRAJECTORY_TYPE, HOLD_TARGET, HOLD_ACTUAL_POSITION = 0x5700, 0x585C, 2


# Status word -> drive_status. Bit 12 is reserved: an axis follows its bus setpoint when it is ACTIVE and not in local control.
cdef uint32_t decode_status(uint16_t word) noexcept nogil:
    cdef uint32_t status = 0
    if word & STATE_MASK != ACTIVE:
        status |= DRIVE_STATUS_NOT_ENABLED
    if not word & READY_BIT:
        status |= DRIVE_STATUS_DEVICE_FAULT     # every state without R: a fault state, or not ready
    if word & LOCAL_CONTROL_BIT:
        status |= DRIVE_STATUS_LOCAL_CONTROL
    if word & LIMIT_TOUCHED_BIT:
        status |= DRIVE_STATUS_LIMIT_TOUCHED
    if word & DEVIATION_BIT:
        status |= DRIVE_STATUS_FOLLOWING_ERROR
    return status


# From the state of the status word one further on the way up, out of a fault by the edge of R beside the bits of the state.
cdef uint16_t word_up(uint16_t word, bint reset, bint may_enable) noexcept nogil:
    cdef uint16_t lower = word & LOWER_BITS
    if not word & READY_BIT:
        return lower | READY_BIT if reset else lower
    if word & STATE_MASK == INIT:
        return CONTROL_DISABLED
    if word & STATE_MASK == DISABLED:
        return CONTROL_HOLD
    if word & STATE_MASK == HOLD:
        return CONTROL_ACTIVE if may_enable else CONTROL_HOLD
    return CONTROL_ACTIVE


# From the state of the status word one further on the way down. An axis in a fault state does not listen.
cdef uint16_t word_down(uint16_t word, bint *off) noexcept nogil:
    off[0] = not word & READY_BIT or word & STATE_MASK == INIT
    if not word & READY_BIT:
        return word & LOWER_BITS
    if word & STATE_MASK == ACTIVE:
        return CONTROL_HOLD
    return CONTROL_DISABLED if word & STATE_MASK == HOLD else CONTROL_INIT


def status_bits(int word):
    """drive_status bits of a CiA 408 status word (tests, reports)."""
    return decode_status(<uint16_t>word)


class Cia408Profile:
    """Set-up of one CiA 408 axis (see AxesSession)."""

    last_state = "state ACTIVE"

    def __init__(self, rate_hz, receive_timeout_periods, heartbeat_ms, control_mode):
        self._timeout_ms = max(1, round(receive_timeout_periods * 1000 / rate_hz))
        self._heartbeat_ms = heartbeat_ms
        self._control_mode = control_mode

    def prepare(self, node, axis):
        node.write(0x1017, 0, 2, self._heartbeat_ms, "heartbeat time")
        kind = node.read(0x1000, 0, 4, "device type") & 0xFFFF
        if kind != 408:
            raise DriveSetupError(f"{node} is not a CiA 408 device: its type is {kind}")
        n = node.id
        node.set_pdo(Pdo(True, 1, 0x200 + n, ((CONTROL_WORD, 0, 16), (POSITION_SET_POINT, 1, 32)), event_ms=self._timeout_ms))
        node.disable_pdo(True, 2, 0x300 + n)
        node.set_pdo(Pdo(False, 1, 0x180 + n, ((STATUS_WORD, 0, 16), (ACTUAL_POSITION, 1, 32))))
        for number in (2, 3, 4):    # one actual value a SYNC and nothing else: it is the one that is watched
            node.disable_pdo(False, number, 0x080 + 0x100 * number + n)
        node.write(DEVICE_MODE, 0, -1, SET_POINT_FROM_BUS, "device mode")
        node.write(CONTROL_MODE, 0, -1, self._control_mode, "control mode")
        node.write(TRAJECTORY_TYPE, 0, 1, 0, "trajectory generator off", optional=True)
        node.write(HOLD_TARGET, 0, 1, HOLD_ACTUAL_POSITION, "hold at the actual position", optional=True)

    def scale(self, node, feed_m):
        try:
            unit, prefix = (node.read(ACTUAL_POSITION, sub, 1, "unit of the position") for sub in (2, 3))
        except DriveSetupError:
            return []
        return unit_of_position(unit, prefix, "0x6601")

    def check(self, node):
        word = node.read(STATUS_WORD, 0, 2, "status word")
        if word & LOCAL_CONTROL_BIT or node.read(DEVICE_MODE, 0, -1, "device mode") != SET_POINT_FROM_BUS:
            raise DriveSetupError(f"{node} is in local control (status word 0x{word:04X}): give it back to the bus")

    def standing(self, node):
        return node.read(STATUS_WORD, 0, 2, "status word"), node.read(ACTUAL_POSITION, 1, -4, "actual position")

    def next_state(self, word):
        if not word & READY_BIT:
            return "the end of the fault state"
        return {INIT: "state DISABLED", DISABLED: "state HOLD", HOLD: self.last_state}.get(word & STATE_MASK, "state INIT")


cdef class Cia408Port(CanopenPort):
    """Six CiA 408 axes. Writes measured_leg, measured_leg_rate, drive_status, drive_device_status, drive_lost_total,
    drive_corrupt_total, and what `channels` names of leg_force, leg_pressure_a, leg_pressure_b, leg_valve, supply_pressure; sends
    leg_setpoint. Blocked by the safety stage the valves go to DISABLED, their hydraulic fail-safe position.

    `open()` sets the axes up, `begin()` enables them where they stand, `end()` takes their power; `close_problems` tells what did not
    work then. Raises ValueError for a parameter that cannot be, DriveSetupError (a ConnectionError, from `open` and `begin`) when an axis
    is not as it should be or does not follow.
    """

    PARAMETERS = (
        *COMMON_PARAMETERS,
        Parameter("control_mode", "int", "-", "value of 0x6043 for closed-loop axis position: 9 or 8, see the device's EDS", 9, 8, 9),
    )

    def __init__(self, *, period_s=0.001, platform=None, int loop_core=-1, **parameters):
        cdef ProfileWords words
        given = self._given = checked(Cia408Port.PARAMETERS, parameters)
        self._rate_hz, self._loop_core = loop_rate(period_s), loop_core
        profile = Cia408Profile(self._rate_hz, given["receive_timeout_periods"], given["heartbeat_ms"], given["control_mode"])
        words.number, words.own_bits = 408, OWN_BITS
        words.control_word, words.blocking_word = CONTROL_ACTIVE, CONTROL_DISABLED
        words.decode, words.word_up, words.word_down = decode_status, word_up, word_down
        # the valves have the protection of CiA 402 under names of their own, which their configuration tool sets
        self.set_axes(profile, &words, False, [[]] * 6)
