"""Everything around the loop: configuration, runs, telemetry, analysis, console, command line.

    from hil_server import open_log
    from hil_server.client import Client
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hil_server.analysis.log_view import LogView

__all__ = ["open_log"]


def open_log(path: str | PathLike[str]) -> LogView:
    """Opens the log of a run: channels by name with units, tables, selections; `hil_server.analysis.log_view` has examples.

    Raises LogError when the file is not one of our logs.
    """
    from hil_server.analysis import log_view  # not before it is wanted: the command line starts without NumPy

    return log_view.open_log(path)
