"""What a page shows: the live run or a log, chosen on the page, and which channels it plots."""

from collections.abc import Callable
from pathlib import Path

from nicegui import run, ui

from hil_server.console.live import Pane
from hil_server.console.recording import Recording, logs_in
from hil_server.console.view import View
from hil_server.errors import HilError

LIVE = ""
NO_LOGS = "no logs in {}: hil-server simulate makes one; --logs names another folder"


class SourceBar:
    """folder: where logs are; chosen: the log to begin with, "" for the live run; plots: the page plots channels; curves: those until
    others are chosen. opened: called with every log that was opened."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "", curves: list[str] | None = None, live: bool = True, plots: bool = True,
                 opened: Callable[[Recording | None], None] = lambda recording: None) -> None:  # fmt: skip
        self._pane, self._opened = pane, opened
        self._files = logs_in(folder)
        if chosen and chosen not in self._files:
            self._files = {chosen: Path(chosen).name, **self._files}
        choices = {LIVE: "live run", **self._files} if live else self._files
        with ui.element("div").classes("hil-source"):
            start = chosen if chosen in choices else LIVE if live else None
            self.choice = ui.select(
                choices, value=None if chosen else start, label=f"source (logs in {folder})", on_change=lambda e: self.open(e.value)
            )
            self.choice.classes("hil-choice").props("dense")
            if plots:
                View("channels", wanted=curves or ["F_T[0]", "X_TA[0]"]).classes("hil-chooser")
            self.what = ui.label("" if live or self._files else NO_LOGS.format(folder)).classes("text-caption")
        View("player")
        if chosen:
            self.choice.value = chosen

    async def open(self, path: str | None) -> None:
        """Shows a log of the list, read in a thread of its own, or the live run again."""
        recording = None
        if path:
            if path not in self._files:
                return
            self.what.text = "reading ..."
            try:
                recording = await run.io_bound(Recording, path)
            except HilError as error:
                self.what.text = str(error)
                return
            if recording is None:  # the page was left while reading
                return
        self.what.text = recording.what if recording else ""
        self._pane.show(recording)
        self._opened(recording)
