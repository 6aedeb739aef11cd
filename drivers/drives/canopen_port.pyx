"""Six CANopen axes as a port: what the profiles share from `open` to `close`. A port of a profile gives its words and its set-up."""

from drivers.drives.axes_port cimport AxesPort
from drivers.drives.cyclic_axes cimport AxesState, CyclicAxes, axes_leave, axes_read, axes_write

from drivers.drives.axes_session import BEATS_IN_TIMEOUT, AxesSession, axis_places, heartbeat_timeout_ns
from drivers.drives.bus_budget import bus_loads
from drivers.drives.drive_channels import DriveChannels
from drivers.drives.supervision import heartbeat_of_server

VELOCITY_BYTES, OUTPUT_BYTES = 4, 4  # of the second setpoint frame


cdef class CanopenPort(AxesPort):
    """Base of the ports of CANopen drives. Before `set_axes` a port has its checked parameters in `_given` and its `_rate_hz`."""

    cdef int set_axes(self, profile, const ProfileWords *words, bint feed_forward, protection) except -1:
        """profile: its set-up (AxesSession). feed_forward: a second setpoint frame with the velocity. protection: of each axis, what the
        profile has its drive told about its own protection. Raises ValueError."""
        given = self._given
        self._feed_forward = feed_forward
        self._channels = DriveChannels(words.number, words.own_bits, given)
        links, nodes = axis_places(given)
        period_s = 1.0 / self._rate_hz
        watched = heartbeat_of_server(given["server_node"], given["server_timeout_ms"])
        beat_every = max(1, int(1e-3 * given["server_timeout_ms"] / BEATS_IN_TIMEOUT / period_s))
        self._cyclic = self._exchange = CyclicAxes()
        self._cyclic.configure(
            links, nodes, [given["counts_per_metre"]] * 6, given["zero_m"], given["held_within_m"], words.control_word, words.blocking_word,
            feed_forward, given["rate_window_periods"], given["no_data_periods"],
            heartbeat_timeout_ns(given["heartbeat_ms"], given["heartbeat_timeout_ms"]), round(1e9 * period_s), given["server_node"],
            beat_every,
        )
        self._session = AxesSession(profile, self._cyclic, self._channels, [[*watched, *own] for own in protection], given,
                                    self._loop_core)
        self._cyclic.axes.p.decode = words.decode
        self._cyclic.axes.p.words.up = words.word_up
        self._cyclic.axes.p.word_down = words.word_down
        self.close_problems = []
        self.plug.self = &self._cyclic.axes
        self.plug.state = &self._cyclic.axes.s
        self.plug.state_size = sizeof(AxesState)
        self.plug.read = axes_read
        self.plug.write = axes_write
        self.plug.leave = axes_leave
        return 0

    def begin(self):
        """Last before the loop: what piled up since `open` is taken, so that it does not stand before the first answers; then frames flow,
        and the axes are enabled. Raises DriveSetupError (a ConnectionError)."""
        self._cyclic.begin()
        self._session.enable()

    def recover(self, left_s):
        """Called beside the loop while it recovers: nodes that have lost their set-up get it again, the control words do the rest.

        left_s(): seconds that the recovery still has. Raises DriveSetupError (a ConnectionError) when a node does not take it in that
        time."""
        if axes := self._cyclic.lost_set_up():
            self._session.set_up_again(axes, left_s)

    @property
    def delays(self):
        """What this port adds to the delay ledger: setpoints act at the next SYNC, measured legs were sampled at the last one."""
        return {"setpoint_ticks": 1, "measured_leg_delay_s": 1.0 / self._rate_hz}

    def bus_loads(self):
        """One BusLoad per link at the configured rate and bit rate, for `hil-server check`."""
        second = [VELOCITY_BYTES * self._feed_forward + OUTPUT_BYTES * (axis == self._cyclic.axes.p.watchdog_axis) for axis in range(6)]
        extra = [(size,) if size else () for size in second]
        return bus_loads(self._session.axis_link, self._channels, self._rate_hz, self._given["bitrate"], extra)
