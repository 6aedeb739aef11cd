"""Files of /proc and /sys: short texts, absent on some kernels."""

import os
import re


def read(path: str | os.PathLike[str]) -> str:
    """The text without the spaces about it; empty where it cannot be read."""
    try:
        with open(path) as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def number_in(path: str | os.PathLike[str]) -> int | None:
    """The whole number that is all of the text; None where it is none."""
    text = read(path)
    return int(text) if re.fullmatch(r"-?\d+", text) else None
