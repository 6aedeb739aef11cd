"""Text at the terminal is text: names and notes of a log, and names of clients, may be anybody's, and cannot steer it."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

# control characters, what turns the direction of writing, halves of characters, which no terminal takes
STEERS = (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000))
SHOWN = {code: "?" for code in STEERS if chr(code) not in "\t\n\r"}


def plain(text: str) -> str:
    """The text with a question mark in the place of each character that steers a terminal."""
    return text.translate(SHOWN)


class PlainStream:
    """A stream that writes plain text. What `rich` draws has its own colours and movements and goes past it: hand it `plain` texts."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # where rich looks for the stream behind this one

    def write(self, text: str) -> int:
        """Writes the text as plain text."""
        return self.rich_proxied_file.write(plain(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextlib.contextmanager
def plain_streams() -> Iterator[None]:
    """Standard output and standard error as plain text."""
    with contextlib.redirect_stdout(PlainStream(sys.stdout)), contextlib.redirect_stderr(PlainStream(sys.stderr)):
        yield
