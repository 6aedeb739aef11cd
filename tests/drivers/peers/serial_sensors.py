"""Serial force sensors on a pseudo-terminal, for tests that say every byte themselves: Bota Systems (text dialogue) and Robotiq (Modbus
RTU).

`answer()` runs in a thread while the port opens; `say(k)` puts record k on the line and returns when the other end can read it.
"""

import contextlib
import fcntl
import os
import pty
import select
import struct
import termios
import threading
import tty

from tests.drivers.peers.threaded import ThreadedPeer
from tests.fuzz.sensor_streams import Bota, Robotiq, crc16


class SerialPeer(ThreadedPeer):
    """One end of a pseudo-terminal. heard: what the port has written."""

    ROOM = 1024  # bytes that may wait for the port: a terminal that holds 4095 takes no more, and cuts a record

    def __init__(self):
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        self.device = os.ttyname(self.slave)
        self.heard = b""
        self.sent = 0
        self.streaming = threading.Event()
        super().__init__()

    def answer(self):
        """Obeys what it hears, and streams the first records until the stop command."""
        while not self.stop.is_set():
            if self.hears(self.master, self.PAUSE_S if self.streaming.is_set() else None):
                with contextlib.suppress(OSError):
                    self.heard += os.read(self.master, 4096)
                self.obey()
            elif self.streaming.is_set() and not self.stop.is_set() and self.waiting() < self.ROOM:
                self.put(self.record(self.sent))
                self.sent += 1

    def put(self, data):
        """All of it on the line: on a busy machine the kernel takes it later."""
        while data:
            select.select([], [self.master], [])
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self.master, data) :]

    def raw(self, data):
        """Puts bytes on the line; when the test speaks alone, back when they can be read."""
        before = self.waiting()
        self.put(data)
        while self.stop.is_set() and self.waiting() < before + len(data):
            os.sched_yield()

    def let_go(self):
        """From here on the test speaks alone: what the port has not read, or is still on its way to it, is gone."""
        super().let_go()
        termios.tcflush(self.slave, termios.TCIFLUSH)

    def waiting(self):
        """Bytes that wait for the port."""
        return struct.unpack("i", fcntl.ioctl(self.slave, termios.FIONREAD, b"\0" * 4))[0]

    def say(self, k=None, **values):
        self.raw(self.record(self.sent if k is None else k, **values))
        self.sent += 1

    def asked(self):
        """Bytes that the port has written since the last call."""
        with contextlib.suppress(OSError):
            self.heard += os.read(self.master, 4096)
        asked, self.heard = len(self.heard), b""
        return asked

    def hang_up(self):
        if self.master >= 0:
            self.let_go()
            os.close(self.master)
            self.master = -1

    def close(self):
        self.hang_up()
        if self.slave >= 0:
            os.close(self.slave)
            self.slave = -1


class BotaPeer(SerialPeer):
    """Answers C, c, f and R; a record has its number in the stamp."""

    PAUSE_S = 0.001
    PERIOD_US = 1250
    commands: list[bytes]

    def __init__(self, streams=False, deaf=False, period_us=PERIOD_US):
        super().__init__()
        self.commands, self.deaf, self.period_us = [], deaf, period_us
        if streams:
            self.streaming.set()

    def obey(self):
        command, self.heard = self.heard, b""
        self.commands.append(command)
        letter = command[:1]
        if self.deaf:
            return
        if letter == b"C":
            self.streaming.clear()
        self.put(b"r,0," + letter + b",0\r\n")
        if letter == b"R":
            self.streaming.set()

    def record(self, k, wrench=(1.0, 2.0, 3.0, 0.1, 0.2, 0.3), status=0, temperature=30.0, stamp=None):
        stamp = self.period_us * k if stamp is None else stamp
        return Bota.sealed(struct.pack("<BH6fIf", 0xAA, status, *wrench, stamp % (1 << 32), temperature))


class RobotiqPeer(SerialPeer):
    """Slave 9: registers 510 ... 513, stream on register 410, stopped by FF."""

    PAUSE_S = 0.01
    SERIAL = b"FTS\0" + struct.pack(">HH", 42, 0)

    def __init__(self, streams=False, deaf=False):
        super().__init__()
        self.requests, self.deaf = [], deaf
        if streams:
            self.streaming.set()

    def obey(self):
        if self.heard.startswith(b"\xff"):
            self.streaming.clear()
            self.heard = self.heard.lstrip(b"\xff")
        length = {3: 8, 16: 11}.get(self.heard[1] if len(self.heard) > 1 else 0, 99)
        if self.deaf or len(self.heard) < length:
            return
        frame, self.heard = self.heard[:length], self.heard[length:]
        assert crc16(frame[:-2], 0xA001, 0) == int.from_bytes(frame[-2:], "little")
        self.requests.append(frame[:-2])
        function, register, count = frame[1], *struct.unpack(">HH", frame[2:6])
        if function == 3 and register == 510:
            body = bytes([9, 3, 2 * count]) + self.SERIAL[: 2 * count]
        elif function == 16 and register == 410:
            body = frame[:6]
            self.streaming.set()
        else:
            body = bytes([9, function | 0x80, 2])
        self.put(body + crc16(body, 0xA001, 0).to_bytes(2, "little"))

    def record(self, k, counts=None):
        counts = (k % 100, 200, 300, 100, 200, 300) if counts is None else counts
        return Robotiq.sealed(b"\x20\x4e" + struct.pack("<6h", *counts))
