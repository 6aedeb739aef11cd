"""The operator's view: camera pictures, numbers, the arm, the sticks, Step and Insert, and the wire-frame guidance."""

from pathlib import Path
from typing import Any

from nicegui import ui

from hil_server.console.live import Pane
from hil_server.console.source import SourceBar
from hil_server.console.view import View, command_button

ORDER, NAME, PATH, PICTURES = 20, "Operator", "/operator", True

COORDINATES = {0: "x", 1: "y", 2: "z", 3: "roll", 4: "yaw", 5: "pitch"}


class OperatorView:
    """Builds the page."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "") -> None:
        self._pane = pane
        with ui.element("div").classes("hil-split"):
            with ui.column().classes("gap-2 hil-wide"):
                View("cameras").classes("live hil-box w-full").style("height: 390px")
                with ui.element("div").classes("hil-split"):
                    for projection in ("axial", "side", "axonometric"):
                        View("wires", projection=projection).classes("live hil-box hil-pane").style("height: 250px")
                SourceBar(pane, folder, chosen)
            with ui.column().classes("gap-2 hil-side"):
                View("words").classes("w-full")
                View("numbers", groups=[0, 1, 4, 5]).classes("w-full")
                View("sticks").classes("w-full")
                self._build_commands()
                View("arm").classes("hil-box w-full").style("height: 190px")

    def _build_commands(self) -> None:
        """Step, Insert, modes of the arm: the supervisory panel."""
        with ui.card().classes("w-full q-px-sm q-py-xs gap-0"):
            with ui.row().classes("items-center gap-2"):
                ui.label("Step").classes("w-12")
                coordinate = ui.select(COORDINATES, value=1).props("dense options-dense").classes("w-20")
                amplitude = ui.number(value=0.01, step=0.005, suffix="m, rad").props("dense id=step-amplitude").classes("w-28")
                rate = ui.number(value=0.005, step=0.001, min=0, suffix="/s").props("dense").classes("w-24")
                ui.button(
                    "step", on_click=lambda: self._give("step", coordinate=coordinate.value, amplitude=amplitude.value, rate=rate.value)
                ).props("dense id=step-go")
            with ui.row().classes("items-center gap-2"):
                ui.label("Insert").classes("w-12")
                stroke = ui.number(value=0.2, step=0.05, suffix="m").props("dense").classes("w-24")
                speed = ui.number(value=0.01, step=0.005, min=0, suffix="m/s").props("dense").classes("w-28")
                ui.button("insert", on_click=lambda: self._give("insert", stroke_m=stroke.value, rate_m_s=speed.value)).props(
                    "dense id=insert-go"
                )
                command_button("hold")
                command_button("resume")
            with ui.row().classes("items-center gap-2"):
                ui.toggle({1: "coarse", 0: "vernier"}, on_change=lambda e: self._give("speed_mode", coarse=e.value)).props("dense")
                joint = ui.number(value=0, min=0, max=16, precision=0, prefix="joint").props("dense").classes("w-20")
                ui.button("single joint", on_click=lambda: self._give("single_joint", joint=_whole(joint.value))).props("dense")
                path = ui.number(value=0, min=0, max=255, precision=0, prefix="path").props("dense").classes("w-20")
                ui.button("auto", on_click=lambda: self._give("auto_sequence", number=_whole(path.value))).props("dense")
                for name in ("brakes", "limp"):
                    ui.checkbox(name, on_change=lambda e, name=name: self._give(name, on=int(e.value))).props("dense")

    async def _give(self, name: str, **arguments: Any) -> None:
        self._pane.say(await self._pane.commander.give(name, arguments))


def _whole(value: float | None) -> int:
    return int(value or 0)


def build(pane: Pane, folder: Path, log: str, chosen: str) -> None:
    """Fills the page of the operator."""
    OperatorView(pane, folder, log)
