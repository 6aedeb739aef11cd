"""CiA 402 axes (servo drives, electric actuators) in cyclic synchronous position mode over CANopen.

Objects (CiA 402 / IEC 61800-7-201): control word 0x6040, status word 0x6041, mode 0x6060 := 8, target 0x607A, actual position 0x6064,
velocity offset 0x60B1, interpolation period 0x60C2 = period of SYNC. States by `status & 0x6F`: 0x21 ready to switch on, 0x23 switched on,
0x27 operation enabled; fault 0x08 by `status & 0x4F`. Way up: 0x06 -> 0x07 -> target := actual -> 0x0F, each confirmed; way down: 0x07 ->
0x06 -> 0x00.
"""

from libc.stdint cimport uint16_t

from drivers.drives.canopen_port cimport CanopenPort, ProfileWords
from drivers.drives.cia402_words cimport (SWITCH_ON_DISABLED_WORD, CONTROL_ENABLED, STATE_MASK, READY_TO_SWITCH_ON, SWITCHED_ON, REST_MASK,
                                         IN_FAULT, REMOTE_BIT, OWN_BITS, decode_status, word_down, word_up)
from rt_kernels.codes cimport DRIVE_STATUS_NOT_FOLLOWING

from drivers.drives.axes_session import COMMON_PARAMETERS, loop_rate, watchdog_of
from drivers.drives.canopen_setup import DriveSetupError, Pdo
from drivers.drives.supervision import Protection, cycle_of_bus, limits_of_axis, reactions, scale_of_drive, write_and_read_back
from rt_kernels.parameters import Parameter, checked

CONTROL_WORD, STATUS_WORD = 0x6040, 0x6041
MODE, MODE_DISPLAY, CYCLIC_SYNCHRONOUS_POSITION = 0x6060, 0x6061, 8
TARGET_POSITION, ACTUAL_POSITION, VELOCITY_OFFSET, DIGITAL_OUTPUTS = 0x607A, 0x6064, 0x60B1, 0x60FE
INTERPOLATION_PERIOD = 0x60C2

FOLLOWING_BIT = Parameter("following_bit", "bool", "-",
                          "status bit 12 says whether the drive follows its setpoints, as CiA 402 asks; "
                          "off only where the drive's manual has no such bit",
                          True)


def status_bits(int word):
    """drive_status bits of a CiA 402 status word (tests, reports)."""
    return decode_status(<uint16_t>word)


def interpolation_period(double rate_hz):
    """(value, exponent) of object 0x60C2: value * 10^exponent s, value 1...255. Raises ValueError when no such pair is exact to 0.1 %."""
    period = 1.0 / rate_hz
    for exponent in (-3, -4, -5, -6):
        value = round(period / 10.0 ** exponent)
        if 1 <= value <= 255 and abs(value * 10.0 ** exponent - period) <= 1e-3 * period:
            return value, exponent
    raise ValueError(f"rate_hz = {rate_hz}: its period is not value * 10^exponent s with value 1...255, "
                     "which drives need for interpolation")


class Cia402Profile:
    """Set-up of one CiA 402 axis (see AxesSession)."""

    last_state = "state 'operation enabled'"

    def __init__(self, rate_hz, receive_timeout_periods, heartbeat_ms, feed_forward, watchdog_axis=-1, watchdog_mask=0):
        self._interpolation = interpolation_period(rate_hz)
        self._timeout_ms = max(1, round(receive_timeout_periods * 1000 / rate_hz))
        self._heartbeat_ms = heartbeat_ms
        self._feed_forward = feed_forward
        self._watchdog_axis, self._watchdog_mask = watchdog_axis, watchdog_mask

    def prepare(self, node, axis):
        node.write(0x1017, 0, 2, self._heartbeat_ms, "heartbeat time")
        kind = node.read(0x1000, 0, 4, "device type") & 0xFFFF
        if kind != 402:
            raise DriveSetupError(f"{node} is not a CiA 402 device: its type is {kind}")
        n = node.id
        node.set_pdo(Pdo(True, 1, 0x200 + n, ((CONTROL_WORD, 0, 16), (TARGET_POSITION, 0, 32)), event_ms=self._timeout_ms))
        second = ((VELOCITY_OFFSET, 0, 32),) if self._feed_forward else ()
        if axis == self._watchdog_axis:
            node.write(DIGITAL_OUTPUTS, 2, 4, self._watchdog_mask, "digital outputs that the bus commands", optional=True)
            second += ((DIGITAL_OUTPUTS, 1, 32),)
        if second:
            node.set_pdo(Pdo(True, 2, 0x300 + n, second))
        else:
            node.disable_pdo(True, 2, 0x300 + n)
        node.set_pdo(Pdo(False, 1, 0x180 + n, ((STATUS_WORD, 0, 16), (ACTUAL_POSITION, 0, 32))))
        for number in (2, 3, 4):    # one actual value a SYNC and nothing else: it is the one that is watched
            node.disable_pdo(False, number, 0x080 + 0x100 * number + n)
        self.set_mode(node)

    def set_mode(self, node):
        """Cyclic synchronous position, a setpoint every period."""
        value, exponent = self._interpolation
        write_and_read_back(node, Protection(INTERPOLATION_PERIOD, 1, 1, value, "interpolation period"))
        write_and_read_back(node, Protection(INTERPOLATION_PERIOD, 2, -1, exponent, "interpolation period exponent"))
        node.write(MODE, 0, -1, CYCLIC_SYNCHRONOUS_POSITION, "mode of operation")

    def scale(self, node, feed_m):
        return scale_of_drive(node, feed_m)

    def check(self, node):
        word = node.read(STATUS_WORD, 0, 2, "status word")
        if not word & REMOTE_BIT:
            raise DriveSetupError(f"{node} is in local control (status word 0x{word:04X}, remote bit 9 is 0): give it back to the bus")
        mode = node.read(MODE_DISPLAY, 0, -1, "mode display")
        if mode != CYCLIC_SYNCHRONOUS_POSITION:
            raise DriveSetupError(f"{node} does not take cyclic synchronous position mode: mode display is {mode} instead of 8")

    def standing(self, node):
        return node.read(STATUS_WORD, 0, 2, "status word"), node.read(ACTUAL_POSITION, 0, -4, "actual position")

    def next_state(self, word):
        if word & REST_MASK == IN_FAULT:
            return "the end of the fault state"
        if word & STATE_MASK == SWITCHED_ON:
            return self.last_state
        return "state 'switched on'" if word & STATE_MASK == READY_TO_SWITCH_ON else "state 'ready to switch on'"


cdef class Cia402Port(CanopenPort):
    """Six CiA 402 axes. Writes measured_leg, measured_leg_rate, drive_status, drive_device_status, drive_lost_total,
    drive_corrupt_total, and what `channels` names of leg_force, leg_pressure_a, leg_pressure_b, leg_valve, supply_pressure; sends
    leg_setpoint (and leg_rate_setpoint as velocity offset when velocity_feed_forward is on). Blocked by the safety stage the drives lose
    their power stage (disable voltage).

    `open()` sets the axes up, `begin()` enables them where they stand, `end()` takes their power; `close_problems` tells what did not
    work then. Raises ValueError for a parameter that cannot be, DriveSetupError (a ConnectionError, from `open` and `begin`) when an axis
    is not as it should be or does not follow.
    """

    PARAMETERS = (
        *COMMON_PARAMETERS,
        Parameter("velocity_feed_forward", "bool", "-", "send leg rates as velocity offset in a second frame", False),
        Parameter("watchdog_axis", "int", "-", "axis whose drive has the watchdog's output, -1: none", -1, -1, 5),
        Parameter("watchdog_outputs", "floats", "-", "bits of that drive's digital outputs (0x60FE:1): one that changes with every healthy "
                  "tick, one that is on with it; -1 not wired", (-1, -1), -1, 31, shape=2),
        FOLLOWING_BIT,
    )

    def __init__(self, *, period_s=0.001, platform=None, int loop_core=-1, **parameters):
        cdef ProfileWords words
        given = self._given = checked(Cia402Port.PARAMETERS, parameters)
        self._rate_hz, self._loop_core = loop_rate(period_s), loop_core
        watchdog_axis, bits = given["watchdog_axis"], watchdog_of(given, "watchdog_axis")
        profile = Cia402Profile(self._rate_hz, given["receive_timeout_periods"], given["heartbeat_ms"], given["velocity_feed_forward"],
                                watchdog_axis, sum(1 << x for x in bits if x >= 0))
        words.number, words.own_bits = 402, OWN_BITS
        words.control_word, words.blocking_word = CONTROL_ENABLED, SWITCH_ON_DISABLED_WORD
        words.decode, words.word_up, words.word_down = decode_status, word_up, word_down
        period_us = round(1e6 / self._rate_hz)
        protection = [[*cycle_of_bus(period_us), *reactions(), *limits_of_axis(platform, zero, given)]
                      for zero in given["zero_m"]]
        self.set_axes(profile, &words, given["velocity_feed_forward"], protection)
        self._cyclic.watchdog(watchdog_axis, *bits)
        self._cyclic.axes.p.not_judged = 0 if given["following_bit"] else DRIVE_STATUS_NOT_FOLLOWING
