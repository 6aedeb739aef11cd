"""The mimic display (R-UI-01 to 06): contact picture, dampers, curves, all at one instant, of the live run or of a log.

Three windows one above the other. Upper: wire-frames of the contact in fixed projections, the crafts, and numbers beside them that change
over at the capture. Middle: dampers. Lower: curves of the selected variables past the fixed line. What stands in upper and middle window
follows the unit, whose picture declares it (`MIMIC`); a run with a manipulator has the arm's, whatever its unit.
"""

from pathlib import Path

from nicegui import ui

from drivers.simulated.unit_channels import NOT_MEASURED, are_of_unit
from hil_server.console.live import Pane
from hil_server.console.source import SourceBar
from hil_server.console.view import View
from rt_kernels.pictures import ARM_AND_HEAD, Mimic

ORDER, NAME, PATH, PICTURES = 30, "Mimic", "/mimic", True
COMMANDS = True

UNBOXED = {"sticks"}  # has boxes of its own


class MimicView:
    """Builds the page; builds it again when the unit is another one."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "") -> None:
        self._pane = pane
        self._shown: Mimic | None = None
        with ui.element("div").classes("hil-page hil-mimic"):
            self._windows = ui.element("div").classes("hil-windows")
            View("curves").classes("hil-box hil-plot")
            with ui.element("div").classes("hil-foot"):
                SourceBar(pane, folder, chosen, ["F_T[0]", "F_T[1]", "X_TA[0]", "V_TA[0]"], opened=lambda recording: self._update())
                with ui.row().classes("items-center gap-4"):
                    ui.switch("left to right", on_change=lambda e: ui.run_javascript(f"window.hilLeftToRight = {str(e.value).lower()}"))
                    self._facts = ui.label().classes("text-caption")
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
        declared = [one.declaration() for one in recording.log.header.aux] if recording else self._pane.feed.about.get("aux", [])
        if are_of_unit(str(meaning) for _, _, meaning, *_ in declared):
            self._facts.text += f"; docking unit: {NOT_MEASURED}"
        mimic = ARM_AND_HEAD if picture.arm else picture.unit.MIMIC
        if mimic != self._shown:
            self._shown = mimic
            self._windows.clear()
            with self._windows:
                self._build(mimic)

    def _build(self, mimic: Mimic) -> None:
        with ui.element("div").classes("hil-upper"):
            View("numbers", before=[0], after=[3]).classes("hil-figures")
            for projection in mimic.projections:
                View("wires", projection=projection).classes("live hil-box hil-pane")
            View("crafts").classes("live hil-box hil-pane")
            View("numbers", before=list(mimic.numbers), after=[0]).classes("hil-figures")
        View("words")
        with ui.element("div").classes("hil-lower"):
            View("numbers", groups=list(mimic.below)).classes("hil-figures")
            for kind, options in mimic.panels:
                panel = View(kind, **options).classes("hil-pane")
                if kind not in UNBOXED:
                    panel.classes("hil-box")


def build(pane: Pane, folder: Path, log: str, chosen: str) -> None:
    """Fills the page of the mimic display."""
    MimicView(pane, folder, log)
