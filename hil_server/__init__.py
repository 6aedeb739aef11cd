"""Everything around the loop: configuration, runs, telemetry, judging, reports, console, command line.

    from hil_server import open_log
    from hil_server.client import Client
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hil_server.exchange.log_view import LogView

__all__ = ["open_log"]


def open_log(path: str | PathLike[str]) -> LogView:
    """Opens the log of a run: channels by name with units, tables, selections; `hil_server.exchange.log_view` has examples. Ticks are read
    when they are asked for; `hil_server.log.reader.read_log` reads all records at once.

    A log that was cut or damaged opens as far as it can be read: `problems` and `check()` say what is missing. Raises LogError when the
    file is not one of our logs.
    """
    from hil_server.exchange.log_view import LogView  # not before it is wanted: the command line starts without NumPy
    from hil_server.log.reader import LogFile

    return LogView(LogFile(path))
