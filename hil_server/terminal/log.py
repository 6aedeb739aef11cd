"""What the library parts say with `logging`, at the terminal: warnings and what a run announces; more with --verbose.

A program that uses `hil_server` as a library configures `logging` as it likes; nothing here is then in its way.
"""

import logging
import sys

from hil_server.terminal.plain import plain

LEVELS = ("debug", "info", "warning", "error")
PACKAGES = ("hil_server", "drivers", "rt_kernels")


class ToStandardError(logging.Handler):
    """A line a message; with time, level and module at level debug; in colour on a terminal, unless NO_COLOR is set."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes to what standard error now is."""
        text = self.format(record)
        if record.levelno >= logging.WARNING and sys.stderr.isatty():
            from rich.console import Console
            from rich.text import Text

            style = "red" if record.levelno >= logging.ERROR else "yellow"
            Console(stderr=True, soft_wrap=True).print(Text(plain(text), style))
        else:
            print(text, file=sys.stderr, flush=True)


def show(level: str) -> None:
    """Shows what the packages say from `level` on; a second call takes the place of the first."""
    handler = ToStandardError()
    if level == "debug":
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    for package in PACKAGES:
        logger = logging.getLogger(package)
        logger.handlers = [handler, *(h for h in logger.handlers if not isinstance(h, ToStandardError))]
        logger.setLevel(level.upper())
