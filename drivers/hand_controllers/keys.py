"""Keys as a hand controller: one table for the terminal (`keyboard.py`) and for the console's page, which gets it as data.

A terminal tells presses, not releases; so that a key means the same in both, it does so in the page, too: a press changes a rate by a
fifth of full deflection, and the rate stays. The deadman is held: in the page from the press of its key to the release, in a terminal while
keys come, at most a second apart. Let go, all rates are zero.
"""

from typing import Any

STEP = 0.2  # of full deflection, a press
MOST = 5  # steps to full deflection
HELD_FOR = 1.0  # s from one key to the next, of a terminal: longer than the pause before a held key repeats
# key -> (axis of the record: x y z roll yaw pitch, sign)
KEYS = {"w": (0, 1), "s": (0, -1), "a": (1, 1), "d": (1, -1), "r": (2, 1), "f": (2, -1)}
KEYS |= {"u": (3, 1), "o": (3, -1), "j": (4, 1), "l": (4, -1), "i": (5, 1), "k": (5, -1)}
ZERO, VERNIER, DEADMAN = " ", "v", "\r"
IN_WORDS = (
    "w s x, a d y, r f z, u o roll, j l yaw, i k pitch: a fifth of full deflection a press, and it stays; "
    "v: vernier; space: zero; return: deadman, as long as it is held"
)


def table() -> dict[str, Any]:
    """The table as plain data, for the page."""
    return {
        "axes": {key: list(move) for key, move in KEYS.items()},
        "step": STEP,
        "most": MOST,
        "zero": ZERO,
        "vernier": VERNIER,
        "deadman": "Enter",  # as a browser names the return key
        "words": IN_WORDS,
    }
