"""A hand-controller box on a serial line.

The frame, 20 bytes, little-endian, at least 50 a second:

| bytes | what |
|---|---|
| 0-1 | A5 5A |
| 2-3 | sequence, u16, one more with every frame, wraps |
| 4-15 | six channels, i16 |
| 16-17 | buttons, bit n is button n |
| 18-19 | CRC-16/CCITT-FALSE (polynomial 1021, start FFFF) of bytes 2-17 |

A frame with a wrong checksum is dropped: the age of the newest good one tells. A sequence that stands still or runs backwards says that
the box is frozen, or that two are on the line.
"""

import binascii
import errno
import struct

import serial

from drivers.hand_controllers import FaultyDeviceError, Reading

HEAD = b"\xa5\x5a"
FRAME = struct.Struct("<2sH6hHH")
HALF = 0x8000


def encode(sequence: int, channels: tuple[int, ...], buttons: int) -> bytes:
    """A frame as the box sends it."""
    body = struct.pack("<H6hH", sequence & 0xFFFF, *channels, buttons)
    return HEAD + body + struct.pack("<H", checksum(body))


def checksum(body: bytes) -> int:
    """CRC-16/CCITT (polynomial 0x1021, start 0xFFFF) of a record without its own checksum."""
    return binascii.crc_hqx(body, 0xFFFF)


class SerialBoxSource:
    """path: serial device (or pseudo-terminal). corrupt: bytes and frames thrown away so far."""

    framed = True

    def __init__(self, path: str, baud: int = 115200) -> None:
        try:
            self._port = serial.Serial(path, baud, timeout=0, exclusive=True)
        except serial.SerialException as error:
            raise OSError(getattr(error, "errno", None) or errno.ENODEV, str(error)) from None
        self._buffer = b""
        self._sequence: int | None = None
        self.corrupt = 0

    def fileno(self) -> int:
        """Descriptor to wait on until there is something to read."""
        return self._port.fileno()

    def close(self) -> None:
        """Closes the serial port."""
        self._port.close()

    def read(self) -> list[Reading]:
        """The readings of the whole records that have come; raises OSError when the device is gone."""
        try:
            data = self._port.read(4096)
        except serial.SerialException as error:
            raise OSError(errno.ENODEV, f"the hand controller is gone: {error}") from None
        self._buffer += data
        readings = []
        while (frame := self._next_frame()) is not None:
            readings.append(self._reading(frame))
        return readings

    def _next_frame(self) -> bytes | None:
        """The next frame whose checksum is right; what lies before it is thrown away and counted."""
        while True:
            start = self._buffer.find(HEAD)
            if start < 0:
                keep = self._buffer[-1:] if self._buffer.endswith(HEAD[:1]) else b""
                self.corrupt += len(self._buffer) - len(keep)
                self._buffer = keep
                return None
            self.corrupt += start
            self._buffer = self._buffer[start:]
            if len(self._buffer) < FRAME.size:
                return None
            frame = self._buffer[: FRAME.size]
            if checksum(frame[2:18]) == FRAME.unpack(frame)[-1]:
                self._buffer = self._buffer[FRAME.size :]
                return frame
            self.corrupt += 1
            self._buffer = self._buffer[1:]

    def _reading(self, frame: bytes) -> Reading:
        _, sequence, *channels, buttons, _ = FRAME.unpack(frame)
        before, self._sequence = self._sequence, sequence
        if before is not None and not 0 < (sequence - before) % 0x10000 < HALF:
            self._buffer = b""
            raise FaultyDeviceError(f"the sequence went from {before} to {sequence}: the box is frozen or two are on the line")
        return Reading(dict(enumerate(map(float, channels))), frozenset(n for n in range(16) if buttons >> n & 1))
