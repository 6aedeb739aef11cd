"""A terminal's keyboard as a hand controller, for rehearsals without one.

What the keys mean: `keys.py`, one table for the terminal and the console's page. v is button 1, on or off; return the deadman, as long as
it is held: a terminal tells no release, so held is what repeats, and without a key for `HELD_FOR` the deadman lets go.
"""

import errno
import os
import termios
import time
import tty
from collections.abc import Callable

from drivers.hand_controllers import Reading
from drivers.hand_controllers.keys import HELD_FOR, KEYS, MOST, STEP, VERNIER, ZERO

DEADMAN, BUTTON = 0, 1


class KeyboardSource:
    """fd: a terminal. Its settings are put back by `close`."""

    framed = False

    def __init__(self, fd: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        if not os.isatty(fd):
            raise OSError(errno.ENOTTY, "the keyboard needs a terminal")
        self._fd, self._clock = fd, clock
        self._before = termios.tcgetattr(fd)
        tty.setcbreak(fd)
        self._steps = [0] * 6
        self._deadman = self._button = False
        self._last_key = clock()

    def fileno(self) -> int:
        """Descriptor to wait on until there is something to read."""
        return self._fd

    def close(self) -> None:
        """Puts the terminal back into the mode in which it was found."""
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def read(self) -> list[Reading]:
        """The readings of the keys pressed since the last call; raises OSError when the terminal is gone."""
        data = os.read(self._fd, 256)
        if not data:
            raise OSError(errno.ENODEV, "the terminal is gone")
        for key in data.decode("ascii", errors="replace"):
            self._press(key)
        self._last_key = self._clock()
        return [self.now()]

    def now(self) -> Reading:
        """The state without a new key: the deadman may have let go."""
        if self._clock() - self._last_key > HELD_FOR:
            self._deadman = False
            self._steps = [0] * 6
        pressed = frozenset(number for number, on in ((DEADMAN, self._deadman), (BUTTON, self._button)) if on)
        return Reading({n: STEP * step for n, step in enumerate(self._steps)}, pressed)

    def _press(self, key: str) -> None:
        if key in KEYS:
            channel, sign = KEYS[key]
            self._steps[channel] = max(-MOST, min(MOST, self._steps[channel] + sign))
        elif key == ZERO:
            self._steps = [0] * 6
        elif key == VERNIER:
            self._button = not self._button
        elif key in "\r\n":
            if not self._deadman:
                self._steps = [0] * 6
            self._deadman = True
