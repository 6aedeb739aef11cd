"""What a page shows: the live run or a log, chosen on the page, and which channels it plots."""

from collections.abc import Callable
from pathlib import Path

from nicegui import run, ui

from hil_server.console.live import Pane
from hil_server.console.recording import Recording, logs_in
from hil_server.console.view import View, select_curves
from hil_server.errors import HilError

LIVE = ""


class SourceBar:
    """folder: where logs are; chosen: the log to begin with, "" for the live run. opened: called with every log that was opened."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "", curves: list[str] | None = None, live: bool = True,
                 opened: Callable[[Recording | None], None] = lambda recording: None) -> None:  # fmt: skip
        self._pane, self._opened = pane, opened
        self._files = logs_in(folder)
        if chosen and chosen not in self._files:
            self._files = {chosen: Path(chosen).name, **self._files}
        choices = {LIVE: "live run", **self._files} if live else self._files
        with ui.row().classes("items-center w-full gap-3"):
            start = chosen if chosen in choices else LIVE if live else None
            self.choice = ui.select(
                choices, value=None if chosen else start, label=f"source (logs in {folder})", on_change=lambda e: self.open(e.value)
            )
            self.choice.classes("w-80 max-w-full").props("dense")
            self.plotted = ui.select(
                [], multiple=True, label="variables", with_input=True, on_change=lambda e: select_curves(pane, e.value)
            )
            self.plotted.props("use-chips dense").style("flex: 1 1 240px; min-width: 0")
            self.what = ui.label("" if live or self._files else f"no logs in {folder}").classes("text-caption")
        View("player")
        self._wanted = curves or ["F_T[0]", "X_TA[0]"]
        if chosen:
            self.choice.value = chosen
        elif live:
            self._offer(pane.feed.channel_names())
            self._waiting = ui.timer(0.5, self._offer_live)

    def _offer_live(self) -> None:
        """The names of a live run are known from its first message on."""
        if self._pane.recording is None and not self.plotted.options:
            self._offer(self._pane.feed.channel_names())

    def _offer(self, names: list[str]) -> None:
        if names:
            self.plotted.set_options(names, value=[name for name in self.plotted.value or self._wanted if name in names])

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
        self._offer(list(recording.channels) if recording else self._pane.feed.channel_names())
        self._opened(recording)
