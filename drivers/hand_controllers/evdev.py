"""Joysticks and hand controllers of the Linux input subsystem, read as they are: `struct input_event` from `/dev/input/event*`.

Source: kernel documentation, "Linux input subsystem userspace API" (event codes, evdev). Channels are ABS codes, buttons are KEY codes.
The device reports changes only; the state at the start, and after the kernel had to drop events, is asked for by ioctl. Where there is no
ioctl (a pipe with recorded events), a channel counts as unknown until its first event. A device that freezes while it stays plugged in
cannot be told from one that is held still: that is what the deadman and `still_limit_s` are for.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Iterable

from drivers.hand_controllers import FaultyDeviceError, Reading

EVENT = struct.Struct("@llHHi")  # tv_sec, tv_usec, type, code, value
ABSINFO = struct.Struct("@6i")  # value, minimum, maximum, fuzz, flat, resolution
SYN, KEY, REL, ABS, MSC = 0, 1, 2, 3, 4
SYN_REPORT, SYN_DROPPED = 0, 3
HIGHEST_CODE = {SYN: 0x0F, KEY: 0x2FF, REL: 0x0F, ABS: 0x3F, MSC: 0x07}
HIGHEST_TYPE = 0x1F
KEY_BYTES = 0x300 // 8


WRITES, READS = 1, 2  # way of an ioctl


def _ioctl(way: int, number: int, size: int) -> int:
    return (way << 30) | (size << 16) | (ord("E") << 8) | number


EVIOCGKEY = _ioctl(READS, 0x18, KEY_BYTES)
EVIOCGRAB = _ioctl(WRITES, 0x90, 4)


class EvdevSource:
    """path: device file or pipe, or an open descriptor. channels: ABS codes that must be known before a reading is good."""

    framed = False

    def __init__(self, path: str | int, channels: Iterable[int]) -> None:
        self._channels = tuple(channels)
        self._fd = path if isinstance(path, int) else os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(self._fd, False)
        self._raw: dict[int, float] = {}
        self._pressed: set[int] = set()
        self._rest = b""
        self._skipping = False
        try:
            fcntl.ioctl(self._fd, EVIOCGRAB, 1)  # exclusive: no other process reads this device
        except OSError as error:
            if error.errno == errno.EBUSY:
                os.close(self._fd)
                raise OSError(errno.EBUSY, "another program has this hand controller") from None
        self._ask_state()

    def fileno(self) -> int:
        """Descriptor to wait on until there is something to read."""
        return self._fd

    def close(self) -> None:
        """Closes the device; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self) -> list[Reading]:
        """The readings that wait, in order; raises OSError when the device is gone."""
        try:
            data = os.read(self._fd, 64 * EVENT.size)
        except BlockingIOError:
            return []
        if not data:
            raise OSError(errno.ENODEV, "the hand controller is gone")
        data = self._rest + data
        whole = len(data) - len(data) % EVENT.size
        self._rest = data[whole:]
        return [reading for event in EVENT.iter_unpack(data[:whole]) if (reading := self._take(*event))]

    def _take(self, seconds: int, micros: int, kind: int, code: int, value: int) -> Reading | None:
        if kind > HIGHEST_TYPE or not 0 <= micros < 1_000_000 or seconds < 0 or code > HIGHEST_CODE.get(kind, 0xFFFF):
            raise FaultyDeviceError(f"not an input event: type {kind}, code {code}, time {seconds}.{micros:06d}")
        if kind == SYN:
            return self._synchronise(code)
        if self._skipping:
            return None
        if kind == ABS:
            self._raw[code] = value
        elif kind == KEY:
            (self._pressed.add if value else self._pressed.discard)(code)
        return None

    def _synchronise(self, code: int) -> Reading | None:
        """A report ends a group of changes. After dropped events the rest of the group is discarded and the state is read again."""
        if code == SYN_DROPPED:
            self._skipping = True
            return None
        if code != SYN_REPORT:
            return None
        if self._skipping:
            self._skipping = False
            self._raw, self._pressed = {}, set()
            self._ask_state()
        if any(channel not in self._raw for channel in self._channels):
            return None
        return Reading(dict(self._raw), frozenset(self._pressed))

    def _ask_state(self) -> None:
        try:
            for channel in self._channels:
                answer = fcntl.ioctl(self._fd, _ioctl(READS, 0x40 + channel, ABSINFO.size), bytes(ABSINFO.size))
                self._raw[channel] = ABSINFO.unpack(answer)[0]
            keys = fcntl.ioctl(self._fd, EVIOCGKEY, bytes(KEY_BYTES))
            self._pressed = {code for code in range(0x300) if keys[code // 8] >> code % 8 & 1}
        except OSError as error:
            if error.errno not in (errno.ENOTTY, errno.EINVAL):
                raise
