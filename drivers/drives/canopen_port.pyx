"""Six CANopen axes as a port: what the profiles share from `open` to `close`. A port of a profile gives its words and its set-up."""

from drivers.drives.cyclic_axes cimport AxesState, CyclicAxes, axes_read, axes_write

from drivers.drives.axes_session import AxesSession, heartbeat_timeout_ns
from drivers.drives.bus_budget import bus_loads
from drivers.drives.drive_channels import DriveChannels

VELOCITY_BYTES = 4  # of the second setpoint frame


cdef class CanopenPort(PortPart):
    """Base of the ports of CANopen drives. Before `set_axes` a port has its checked parameters in `_given` and its `_rate_hz`."""

    CONTEXT = ("period_s",)

    cdef int set_axes(self, profile, const ProfileWords *words, bint feed_forward) except -1:
        """profile: its set-up (AxesSession). feed_forward: a second setpoint frame with the velocity. Raises ValueError."""
        given = self._given
        self._feed_forward = feed_forward
        self._channels = DriveChannels(words.number, words.own_bits, given)
        self._session = AxesSession(profile, given["links"], given["axis_link"], given["axis_node"], given["timeout_s"], self._channels)
        self._cyclic = CyclicAxes()
        self._cyclic.configure(
            self._session.axis_link, self._session.axis_node, [given["counts_per_metre"]] * 6, given["zero_m"], words.control_word,
            words.blocking_word, feed_forward, given["rate_window_periods"], given["no_data_periods"],
            heartbeat_timeout_ns(given["heartbeat_ms"], given["heartbeat_timeout_ms"]),
        )
        self._cyclic.axes.p.decode = words.decode
        self._cyclic.axes.p.word_up = words.word_up
        self.close_problems = []
        self.plug.self = &self._cyclic.axes
        self.plug.state = &self._cyclic.axes.s
        self.plug.state_size = sizeof(AxesState)
        self.plug.read = axes_read
        self.plug.write = axes_write
        return 0

    def open(self):
        self.close()
        status, positions = self._session.open()
        self._cyclic.listen(self._channels)
        self._cyclic.start(self._session.descriptors, status, positions, self._channels.first_values())

    def begin(self):
        """What piled up since `open` is taken, so that it does not stand before the first answers, and judged in the first tick."""
        self._cyclic.begin()

    def recover(self):
        """Called beside the loop while it recovers: nodes that have lost their set-up get it again, the control words do the rest. Raises
        DriveSetupError (a ConnectionError) when a node does not take it."""
        if axes := self._cyclic.lost_set_up():
            self._cyclic.copy_to(self._session.copies)
            try:
                self._session.set_up_again(axes)
            finally:
                self._cyclic.copy_to(())

    def close(self):
        self._cyclic.stop()
        self.close_problems = self._session.close()

    @property
    def delays(self):
        """What this port adds to the delay ledger: setpoints act at the next SYNC, measured legs were sampled at the last one."""
        return {"setpoint_ticks": 1, "measured_leg_delay_s": 1.0 / self._rate_hz}

    @property
    def delay_origins(self):
        return {"setpoint_ticks": "derived"}  # by the protocol

    def counters(self):
        """Lost, damaged, ignored and not sent frames since open."""
        return self._cyclic.counters()

    def bus_loads(self):
        """One BusLoad per link at the configured rate and bit rate, for `hil-server check`."""
        extra = (VELOCITY_BYTES,) if self._feed_forward else ()
        return bus_loads(self._session.axis_link, self._channels, self._rate_hz, self._given["bitrate"], extra)
