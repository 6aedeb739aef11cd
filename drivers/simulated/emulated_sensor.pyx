# distutils: extra_compile_args = -O1
"""Owner of the plug of an emulated force sensor: its end of the wire."""

import contextlib
import os
import tty
from rt_kernels.doors import socket

# What a wire of one device cannot do: records overtake each other in a network only, a stream is taken over by its newest client.
ON_THE_NETWORK = frozenset(("sensor_rollover", "sensor_taken_over", "sensor_reorder"))


def bound(str address, int port):
    """A non-blocking UDP socket with room for a stall of the machine."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_TIMESTAMPNS", 35), 1)
    s.bind((address, port))
    return s


cdef class EmulatedSensor:
    """A force sensor in software. `open` gives what the port needs to reach it; `close` ends it.

    VARIANTS: name of each family of devices that it can be → (class of the status word → its word, faults that its wire cannot have); none:
    it shows only faults of the wire. TABLE: the table of the server's `[sensor]` with its keys, "": they stand beside `variant`.
    BARE_GAUGES: True: it says counts of whatever the plant's gauges measure. PATIENCE: parameters of the port that the stand file does not
    give: a process on the same machine may be held up longer than a device.
    """

    PARAMETERS = ()
    AUX = ()
    COMMANDS = ()
    VARIANTS = {}
    BARE_GAUGES = False
    PATIENCE = {}

    def __cinit__(self):
        self.closing = contextlib.ExitStack()
        self.plug.wire.fd = -1
        self.plug.wire.record_ns = NEVER

    def open(self, str address, str variant, scale):
        """Makes the wire, a serial line where the sensor does not say otherwise. address: of the server's sockets. scale: counts of the
        plant per N and N.m, None: bare gauges. Returns the keys by which the port finds it."""
        return self.on_line()

    # A pseudo-terminal's master; its other end stays open here too: no reader on the line does not wake the loop.
    cdef dict on_line(self):
        self.plug.wire.fd, other = os.openpty()
        for fd in (self.plug.wire.fd, other):
            self.closing.callback(os.close, fd)
        tty.setraw(other)
        os.set_blocking(self.plug.wire.fd, False)
        return {"device": os.ttyname(other)}

    # A UDP socket. Returns its port, which the system chooses for 0.
    cdef int on_udp(self, address, port) except -1:
        s = self.closing.enter_context(bound(address, port))
        self.plug.wire.fd = s.fileno()
        return s.getsockname()[1]

    @property
    def fd(self):
        """Descriptor of its end of the wire, -1 before `open`."""
        return self.plug.wire.fd

    def gauge(self):
        """The six values as the plant gave them last, in counts."""
        return [self.plug.wire.gauge[i] for i in range(6)]

    def close(self):
        """Closes the wire."""
        self.closing.close()
