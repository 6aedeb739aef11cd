"""The mimic display (R-UI-01 to 06): contact picture, dampers, curves, all at one instant, of the live run or of a log.

Three windows one above the other. Upper: wire-frames of the contact in fixed projections, with numbers beside them that change over at the
capture. Middle: dampers. Lower: curves of the selected variables past the fixed line. What stands in upper and middle window follows the
unit, whose picture declares it (`MIMIC`); a run with a manipulator has the arm's, whatever its unit.
"""

from pathlib import Path

from nicegui import ui

from hil_server.console.live import Pane
from hil_server.console.source import SourceBar
from hil_server.console.view import View
from rt_kernels.pictures import ARM_AND_HEAD, Mimic

ORDER, NAME, PATH, PICTURES = 30, "Mimic", "/mimic", True

UPPER, MIDDLE, LOWER = 270, 150, 230  # px
UNBOXED = {"sticks"}  # has boxes of its own


class MimicView:
    """Builds the page; builds it anew when the unit is another one."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "") -> None:
        self._pane = pane
        self._shown: Mimic | None = None
        self._windows = ui.column().classes("w-full gap-2")
        View("curves").classes("hil-box w-full").style(f"height: {LOWER}px")
        with ui.row().classes("w-full items-center"):
            self._facts = ui.label().classes("text-caption opacity-70 ellipsis-2-lines").style("width: 17em")
            ui.switch("left to right", on_change=lambda e: ui.run_javascript(f"window.hilLeftToRight = {str(e.value).lower()}"))
            with ui.column().classes("gap-1").style("flex: 1 1 320px; min-width: 0"):
                SourceBar(pane, folder, chosen, ["F_T[0]", "F_T[1]", "X_TA[0]", "V_TA[0]"], opened=lambda recording: self._update())
        self._update()
        ui.timer(0.5, self._update)

    def _update(self) -> None:
        recording = self._pane.recording
        picture = recording.picture if recording else self._pane.feed.picture
        if recording:
            facts = recording.facts()
            self._facts.text = f"run of {facts['created']}, T final {facts['to']:.3f} s  {facts['notes']}"
        else:
            self._facts.text = "live run"
        mimic = ARM_AND_HEAD if picture.arm else picture.unit.MIMIC
        if mimic != self._shown:
            self._shown = mimic
            self._windows.clear()
            with self._windows:
                self._build(mimic)

    def _build(self, mimic: Mimic) -> None:
        with ui.element("div").classes("hil-split"):
            View("numbers", before=[0], after=[3]).style("width: 190px")
            for projection in mimic.projections:
                View("wires", projection=projection).classes("live hil-box hil-pane").style(f"height: {UPPER}px")
            View("numbers", before=list(mimic.numbers), after=[0]).style("width: 190px")
        with ui.row().classes("w-full gap-4 items-center"):
            View("words").classes("grow")
        with ui.element("div").classes("hil-split"):
            View("numbers", groups=list(mimic.below)).style("width: 190px")
            for kind, options in mimic.panels:
                panel = View(kind, **options).style(f"flex: 1 1 240px; height: {MIDDLE}px")
                if kind not in UNBOXED:
                    panel.classes("hil-box")


def build(pane: Pane, folder: Path, log: str, chosen: str) -> None:
    """Fills the page of the mimic display."""
    MimicView(pane, folder, log)
