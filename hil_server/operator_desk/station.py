"""One hand controller, from its source to the server: at least 50 records a second while all is well, and silence when it is not.

Silence is the alarm: the loop takes a record older than 0.2 s for zero rate, raises the event and waits for a centred stick. So a device
that is gone, frozen or says what cannot be leads to one record of zeros without deadman, at once, and then to silence for longer than
that. A device that is gone is looked for again every second.
"""

import select
import time
from collections.abc import Callable
from typing import Protocol

from drivers.hand_controllers import FaultyDeviceError, Reading
from hil_server.operator_desk.calibration import DEADMAN, Calibration
from hil_server.values import Document

QUIET = 0.3  # s of silence after a fault: longer than the loop's 0.2 s
LOOK_AGAIN = 1.0  # s
ZEROS = [0.0] * 6


class Source(Protocol):
    """A hand controller as a station reads it. framed: its readings are whole records."""

    framed: bool

    def fileno(self) -> int:
        """Descriptor to wait on until there is something to read."""

    def read(self) -> list[Reading]:
        """The readings that wait, in order; raises OSError when the device is gone."""

    def close(self) -> None:
        """Closes the device."""


def readable(source: Source | None, seconds: float) -> bool:
    """Waits until there is something to read, for so long at most. Returns whether there is."""
    return bool(select.select([] if source is None else [source], [], [], seconds)[0])


class Station:
    """open_source: makes the source, raises OSError. send(axes, buttons) -> taken. say: told about every fault, once. clock: s; wait: as
    `readable`.

    sent, unsent, faults: counts so far.
    """

    def __init__(
        self,
        open_source: Callable[[], Source],
        calibration: Calibration,
        send: Callable[[list[float], int], bool],
        rate_hz: float = 100.0,
        still_limit_s: float = 0.0,
        say: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[Source | None, float], bool] = readable,
    ) -> None:
        self._open, self._calibration, self._send, self._say = open_source, calibration, send, say
        self._clock, self._wait = clock, wait
        self._period, self._still_limit = 1.0 / rate_hz, still_limit_s
        self._source: Source | None = None
        self._newest: Reading | None = None
        self._changed_at = self._next_send = self._quiet_until = self._look_at = -float("inf")
        self.sent = self.unsent = self.faults = 0

    def connect(self) -> None:
        """Opens the source. Raises OSError."""
        self._source = self._open()
        self._newest = getattr(self._source, "now", lambda: None)()

    def close(self) -> None:
        """Closes the device, if it is open."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def step(self) -> None:
        """Waits for the device or the next record, whichever is first, and handles it. Never longer than a period."""
        now = self._clock()
        if self._source is None:
            self._look_for_it(now)
            return
        try:
            left = self._period if self._source.framed else min(self._period, self._next_send - now)
            readings = self._source.read() if self._wait(self._source, max(0.0, left)) else []
            if self._source.framed:
                for reading in readings:
                    self._pass_on(reading)
            else:
                self._beat(readings)
        except FaultyDeviceError as error:
            self._fault(error.strerror or str(error))
        except OSError as error:
            self.close()
            self._newest = None
            self._look_at = self._clock() + LOOK_AGAIN
            self._fault(error.strerror or str(error))

    def _beat(self, readings: list[Reading]) -> None:
        """A device that speaks only on changes: its newest state at a fixed rate."""
        now = self._clock()
        if readings:
            self._newest, self._changed_at = readings[-1], now
        now_of = getattr(self._source, "now", None)
        if now_of is not None:
            self._newest = now_of()
        if now < self._next_send:
            return
        self._next_send = max(self._next_send + self._period, now)
        if self._newest is None:
            return  # nothing to say yet; looks again a period later
        rates, buttons = self._calibration.record(self._newest)
        still = now - self._changed_at
        if 0 < self._still_limit < still and any(rates) and buttons & DEADMAN:
            self._newest = None  # until it says something again
            raise FaultyDeviceError(f"deflected and without any change for {still:.2f} s: frozen")
        self._pass_on(self._newest)

    def _pass_on(self, reading: Reading) -> None:
        rates, buttons = self._calibration.record(reading)
        if self._clock() >= self._quiet_until:
            self._put(rates, buttons)

    def _put(self, rates: list[float], buttons: int) -> None:
        if self._send(rates, buttons):
            self.sent += 1
        else:
            self.unsent += 1

    def _fault(self, text: str) -> None:
        """Zeros at once, then silence."""
        now = self._clock()
        if now >= self._quiet_until:
            self.faults += 1
            self._say(text)
            self._put(ZEROS, 0)
        self._quiet_until = now + QUIET

    def _look_for_it(self, now: float) -> None:
        if now < self._look_at:
            self._wait(None, min(self._period, self._look_at - now))
            return
        self._look_at = now + LOOK_AGAIN
        try:
            self.connect()
        except OSError:
            return
        self._say("the hand controller is back; it moves nothing until it is centred")

    def summary(self) -> Document:
        """Records sent and not sent, faults of the device."""
        return {"sent": self.sent, "unsent": self.unsent, "faults": self.faults}
