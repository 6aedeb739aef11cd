"""The operator's view: the aim and survey cameras, instruments, sticks, Step and Insert, wire-frame guidance, the arm, the figures."""

from pathlib import Path
from typing import TypeVar

from nicegui import ui

from hil_server.console.live import Pane
from hil_server.console.source import SourceBar
from hil_server.console.view import View, box, card, command_button

ORDER, NAME, PATH, PICTURES = 20, "Operator", "/operator", True
COMMANDS = True

E = TypeVar("E", bound=ui.element)
COORDINATES = {0: "x", 1: "y", 2: "z", 3: "roll", 4: "yaw", 5: "pitch"}


class OperatorView:
    """Builds the page: the aim first, then the instruments, then what is pressed."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "") -> None:
        self._pane = pane
        with ui.element("div").classes("hil-page hil-operator"):
            View("cameras").classes("live hil-box hil-aim")
            with ui.element("div").classes("hil-column hil-side").props("tabindex=0 role=region aria-label='Instruments and commands'"):
                box("Instruments", "instruments", "live")
                View("words")
                box("Hand controllers", "sticks")
                with card("Commands"):
                    self._build_commands()
                    View("desk")
                    View("answers")
                box("Figures", "numbers", "live", groups=[0, 1, 4, 5])
            with ui.element("div").classes("hil-wires"):
                for projection in ("axial", "side", "axonometric"):
                    View("wires", projection=projection).classes("live hil-box")
                View("arm").classes("hil-box hil-arm")
            with ui.element("div").classes("hil-foot"):
                SourceBar(pane, folder, chosen, plots=False)

    def _build_commands(self) -> None:
        """Step, Insert, modes of the arm: the supervisory panel."""
        with ui.element("div").classes("hil-panel"):
            View("again")
            with ui.row().classes("items-center gap-2"):
                ui.label("Step").classes("w-12")
                coordinate = ui.select(COORDINATES, value=1).props("dense options-dense").classes("w-20")
                named(coordinate, "coordinate of the step")
                amplitude = named(ui.number(value=0.01, step=0.005, suffix="m, rad"), "amplitude of the step", "w-32")
                amplitude.props("id=step-amplitude")
                rate = named(ui.number(value=0.005, step=0.001, min=0, suffix="/s"), "rate of the step", "w-24")
                ui.button(
                    "step", on_click=lambda: self._give("step", coordinate=coordinate.value, amplitude=amplitude.value, rate=rate.value)
                ).props("dense id=step-go")
            with ui.row().classes("items-center gap-2"):
                ui.label("Insert").classes("w-12")
                stroke = named(ui.number(value=0.2, step=0.05, suffix="m"), "stroke of the insertion", "w-24")
                speed = named(ui.number(value=0.01, step=0.005, min=0, suffix="m/s"), "speed of the insertion", "w-28")
                ui.button("insert", on_click=lambda: self._give("insert", stroke_m=stroke.value, rate_m_s=speed.value)).props(
                    "dense id=insert-go"
                )
                command_button("hold")
                command_button("resume")
            with ui.row().classes("items-center gap-2"):
                ui.toggle({1: "coarse", 0: "vernier"}, on_change=lambda e: self._give("speed_mode", coarse=e.value)).props("dense")
                joint = named(ui.number(value=0, min=0, max=16, precision=0, prefix="joint"), "number of the joint", "w-20")
                ui.button("single joint", on_click=lambda: self._give("single_joint", joint=_whole(joint.value))).props("dense")
                path = named(ui.number(value=0, min=0, max=255, precision=0, prefix="path"), "number of the stored path", "w-20")
                ui.button("auto", on_click=lambda: self._give("auto_sequence", number=_whole(path.value))).props("dense")
                for name in ("brakes", "limp"):
                    ui.checkbox(name, on_change=lambda e, name=name: self._give(name, on=int(e.value))).props("dense")

    async def _give(self, name: str, **arguments: object) -> None:
        self._pane.say(await self._pane.commander.give(name, arguments))


def named(field: E, words: str, classes: str = "") -> E:
    """A field with a name for who does not see what stands beside it."""
    return field.props(f'dense aria-label="{words}"').classes(classes)


def _whole(value: float | None) -> int:
    return int(value or 0)


def build(pane: Pane, folder: Path, log: str, chosen: str) -> None:
    """Fills the page of the operator."""
    OperatorView(pane, folder, log)
