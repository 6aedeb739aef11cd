"""An ATI F/T OEM sensor (NETCANOEM) on a socket pair or a CAN interface, for tests: it obeys requests in a
thread until the test takes over.

Identifier: base << 4 | opcode. Opcodes: 0 gauges (two frames), 2 row of the matrix (three frames of two f32), 5 serial number, 6
calibration, 7 counts per unit, 8 unit codes, C reset, F firmware. Big-endian.
"""

import contextlib
import socket
import struct

from drivers.raw_frames.can_link import open_link
from tests.drivers.peers.threaded import ThreadedPeer
from tests.fuzz.sensor_streams import FRAME

NEWTON, NEWTON_METRE, POUND = 2, 3, 1


class AtiCanPeer(ThreadedPeer):
    def __init__(self, base=0x7F, interface="", deaf=False, units=(NEWTON, NEWTON_METRE), counts=(1000, 10000), calibrations=2):
        if interface:
            self.near, self.far, self.link = None, open_link(interface), interface
        else:
            self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.link = f"fd:{self.near.fileno()}"
        self.base, self.deaf, self.units, self.counts = base << 4, deaf, units, counts
        self.calibration, self.calibrations = 0, calibrations
        self.matrix = [[(10.0 * (i == k) + 0.5 * i - 0.25 * k) for k in range(6)] for i in range(6)]
        self.gauges, self.status = (100, 200, 300, 400, 500, 600), 0
        self.requests = []
        super().__init__()

    def answer(self):
        while self.hears(self.far):
            data = self.far.recv(64)
            if not data:
                return
            self.obey(data)

    def obey(self, data):
        identifier, length, payload = FRAME.unpack(data)
        if self.deaf or identifier & ~0xF != self.base:
            return
        opcode, payload = identifier & 0xF, payload[:length]
        self.requests.append((opcode, payload))
        if opcode == 0x0:
            self.say()
        elif opcode == 0x2:
            row = self.matrix[payload[0]]
            for n in range(3):
                self.send(0x2 + n, struct.pack(">2f", *row[2 * n : 2 * n + 2]))
        elif opcode == 0x5:
            self.send(0x5, b"FT012345")
        elif opcode == 0x6:
            self.calibration = payload[0] if payload[0] < self.calibrations else self.calibration
            self.send(0x6, bytes([self.calibration]))
        elif opcode == 0x7:
            self.send(0x7, struct.pack(">II", *self.counts))
        elif opcode == 0x8:
            self.send(0x8, bytes(self.units))
        elif opcode == 0xC:
            self.status &= ~1
        elif opcode == 0xF:
            self.send(0xF, bytes([2, 7, 0, 9]))

    def send(self, opcode, data):
        self.raw(self.base | opcode, data)

    def raw(self, identifier, data):
        self.far.send(FRAME.pack(identifier, len(data), bytes(data)))

    def first(self, gauges=None):
        self.send(0x0, struct.pack(">H3h", self.status, *(gauges or self.gauges)[::2]))

    def second(self, gauges=None):
        self.send(0x1, struct.pack(">3h", *(gauges or self.gauges)[1::2]))

    def say(self, gauges=None):
        self.first(gauges)
        self.second(gauges)

    def let_go(self):
        super().let_go()
        self.far.setblocking(False)

    def asked(self):
        """Requests that have come since the last call."""
        count = 0
        with contextlib.suppress(BlockingIOError):
            while self.far.recv(64):
                count += 1
        return count

    def wrench(self, gauges=None):
        return [sum(m * g for m, g in zip(row, gauges or self.gauges, strict=True)) for row in self.matrix]

    def hang_up(self):
        self.let_go()
        self.far.close()

    def close(self):
        if self.far.fileno() >= 0:
            self.hang_up()
        if self.near is not None:
            self.near.close()
