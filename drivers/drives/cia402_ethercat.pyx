"""CiA 402 axes in cyclic synchronous position mode over EtherCAT (CoE), with distributed clocks.

Objects and states as in `cia402`; over EtherCAT the interpolation period 0x60C2 is the cycle of SYNC0, and control word, target and mode go
with every frame. SYNC0 comes `sync_shift_periods` of a period after the frame passes the first clock; the loop's grid follows that clock
(`rt_kernels.grid_reference`), and `bus_deviation_ns` says by how much it is off.
"""

from drivers.drives.axes_port cimport AxesPort
from drivers.drives.cia402_words cimport CONTROL_ENABLED, SWITCH_ON_DISABLED_WORD, decode_status
from drivers.drives.ethercat_axes cimport EthercatAxes, EthercatState, ethercat_leave, ethercat_read, ethercat_write
from rt_kernels.codes cimport DRIVE_STATUS_NOT_FOLLOWING

from drivers.drives.axes_session import AXIS_PARAMETERS, loop_rate, watchdog_of
from drivers.drives.bus_budget import ethercat_load
from drivers.drives.cia402 import FOLLOWING_BIT, Cia402Profile, interpolation_period
from drivers.drives.ethercat_record import AUX
from drivers.drives.ethercat_setup import EthercatSession
from drivers.drives.supervision import limits_of_axis, reactions
from rt_kernels.parameters import Parameter, checked


class Cia402EthercatProfile(Cia402Profile):
    """Set-up of one CiA 402 slave (see EthercatSession); states as over CANopen."""

    def __init__(self, rate_hz):
        self._interpolation = interpolation_period(rate_hz)

    def prepare(self, node, axis):
        self.set_mode(node)


cdef class Cia402EthercatPort(AxesPort):
    """Six CiA 402 axes on one EtherCAT segment. Writes measured_leg, measured_leg_rate, drive_status, drive_device_status,
    drive_lost_total, drive_corrupt_total, and leg_force where `rated_force_n` is stated; sends leg_setpoint. Blocked by the safety stage
    the drives lose their power stage (disable voltage).

    `open()` sets the axes up, `begin()` enables them where they stand, `end()` takes their power; `close_problems` tells what did not
    work then. Raises ValueError for a parameter that cannot be, DriveSetupError (a ConnectionError, from `open` and `begin`) when an axis
    is not as it should be or does not follow.
    """

    PARAMETERS = (
        Parameter("interface", "str", "-", "network interface of the segment, as eth1"),
        Parameter("axis_slave", "floats", "-", "place of each axis on the bus, from 0", (0, 1, 2, 3, 4, 5), 0, 1000, shape=6),
        Parameter("slaves", "int", "-", "slaves on the line, with those that are no axis; 0: one for each axis", 0, 0, 1000),
        Parameter("watchdog_slave", "int", "-", "place on the bus of the slave whose digital outputs have the watchdog, -1: none", -1, -1,
                  1000),
        Parameter("watchdog_outputs", "floats", "-", "its outputs, from 0: one that changes with every healthy tick, one that is on with "
                  "it; -1 not wired", (-1, -1), -1, 31, shape=2),
        *AXIS_PARAMETERS,
        Parameter("rated_force_n", "float", "N", "force of a leg at rated torque (0x6077 = 1000); 0: not given", 0.0, 0.0, 1e9),
        Parameter("no_data_periods", "int", "periods", "so many periods without an answer are no data", 3, 1, 1000),
        Parameter("watchdog_ms", "float", "ms", "a slave without frames for so long leaves the operational state", 10.0, 1.0, 1000.0),
        Parameter("sync_shift_periods", "float", "periods", "SYNC0 comes so long after the frame", 0.5, 0.1, 0.9),
        Parameter("clock_tolerance_ns", "int", "ns", "clocks of the drives are settled when no further apart", 1000, 10, 1_000_000),
        Parameter("settle_s", "float", "s", "time for the clocks to settle", 10.0, 0.1, 600.0),
        Parameter("timeout_s", "float", "s", "time for every answer during set-up", 2.0, 0.05, 60.0),
        Parameter("redundancy", "bool", "-", "ring with a second interface; not built", False),
        FOLLOWING_BIT,
    )

    AUX = AUX

    cdef EthercatAxes _axes
    cdef dict _given
    cdef double _period_s
    cdef object _profile
    cdef object _period_ns
    cdef object _protection

    def __init__(self, *, period_s=0.001, platform=None, int loop_core=-1, **parameters):
        given = self._given = checked(Cia402EthercatPort.PARAMETERS, parameters)
        if given["redundancy"]:
            raise ValueError("redundancy = true: a ring with a second interface is not built, limit false")
        places = list(given["axis_slave"])
        if any(place != int(place) for place in places) or len(set(places)) != 6:
            raise ValueError(f"axis_slave = {places}: must be six different whole numbers")
        bits = watchdog_of(given, "watchdog_slave")
        if given["watchdog_slave"] in places:
            raise ValueError(f"watchdog_slave = {given['watchdog_slave']}: is an axis (axis_slave = {places}); limit another slave")
        self._period_s, self._loop_core = period_s, loop_core
        self._profile = Cia402EthercatProfile(loop_rate(period_s))
        period_ns = self._period_ns = round(1e9 * period_s)
        self._axes = self._exchange = EthercatAxes()
        self._axes.configure(
            [given["counts_per_metre"]] * 6, given["zero_m"], given["held_within_m"], [1e-3 * given["rated_force_n"]] * 6, CONTROL_ENABLED,
            SWITCH_ON_DISABLED_WORD, given["rate_window_periods"], given["no_data_periods"], period_ns,
        )
        self._axes.watchdog(*bits)
        self._axes.bus.p.decode = decode_status
        self._axes.bus.p.not_judged = 0 if given["following_bit"] else DRIVE_STATUS_NOT_FOLLOWING
        self._protection = [[*reactions(), *limits_of_axis(platform, zero, given)]
                            for zero in given["zero_m"]]
        self.session_with()
        self.close_problems = []
        self.plug.self = &self._axes.bus
        self.plug.state = &self._axes.bus.s
        self.plug.state_size = sizeof(EthercatState)
        self.plug.read = ethercat_read
        self.plug.write = ethercat_write
        self.plug.leave = ethercat_leave

    def session_with(self, **keys):
        """The set-up with another library or socket (tests); see EthercatSession."""
        self._session = EthercatSession(self._profile, self._axes, self._protection, self._given, self._period_ns, self._loop_core, **keys)
        return self._session

    def recover(self, left_s):
        """Called beside the loop while it recovers: slaves that left OP are led back, the control words do the rest.

        left_s(): seconds that the recovery still has. Raises DriveSetupError (a ConnectionError) when a slave does not get there in that
        time."""
        self._session.operational_again(left_s)

    @property
    def axes(self):
        """The cyclic part (tests)."""
        return self._axes

    @property
    def grid_reference(self):
        """The clock that the grid of the loop follows."""
        return self._axes.grid_reference

    @property
    def delays(self):
        """What this port adds to the delay ledger. Setpoints act with SYNC0, `sync_shift_periods` after their frame; the inputs of a
        frame were sampled with the SYNC0 before it and are read a period after it: together two periods."""
        shift = self._given["sync_shift_periods"]
        return {"setpoint_ticks": shift, "measured_leg_delay_s": (2.0 - shift) * self._period_s}

    def bus_loads(self):
        """One BusLoad at the configured rate, for `hil-server check`."""
        return [ethercat_load(6, 1.0 / self._period_s)]

    def host_findings(self):
        """(level, item, found, remedy) about interface, raw sockets, link and the library of the set-up, for `hil-server check`."""
        from drivers.drives.ethercat_setup import library_findings
        from drivers.raw_frames.ethercat_link import findings

        return findings(self._given["interface"]) + library_findings()
