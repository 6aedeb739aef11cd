"""The drawn parts of a page: each is an element that `page/live.js` fills from the frames of the page's pane."""

import importlib
import json
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

from nicegui import ui

from hil_server.console.live import Live, Pane

FOLDER = Path(__file__).parent / "page"


class View(ui.element, component="page/view.js"):  # type: ignore[call-arg, unused-ignore]  # without NiceGUI the base is unknown
    """kind: a name of `page/panels.js`, curves, player, sticks, wires or cameras; options: what that kind takes."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self._props["kind"] = kind
        self._props["options"] = options


def open_pane(live: Live, pictures: bool = True) -> Pane:
    """The pane of the page that is being built; closed with it."""
    pane = live.open(pictures)
    ui.add_head_html('<link rel="stylesheet" href="/hil/style.css">')
    ui.add_head_html(f"<script>window.hilPane = {json.dumps(pane.number)}; window.hilSelect = [];</script>")
    ui.context.client.on_delete(lambda: live.close(pane))
    return pane


def select_curves(pane: Pane, names: list[str]) -> None:
    """Which channels the page plots."""
    pane.select(names)
    ui.run_javascript(f"window.hilSelect = {json.dumps(pane.selected)}")


def command_button(name: str) -> ui.button:
    """Gives a command without arguments over the page's own line: NiceGUI drops a click while its socket is away, and nobody would know."""
    button = ui.button(name).props(f"dense id={name}")
    button.on("click", js_handler=f"() => window.hilCommand('{name}')")
    return button


def views() -> list[ModuleType]:
    """Every module of `hil_server.console.views`, in the order of the links."""
    from hil_server.console import views as package

    found = [importlib.import_module(f"{package.__name__}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
    return sorted(found, key=lambda module: (module.ORDER, module.__name__))


def header(here: str) -> None:
    """Where else to go; run, age of data and pictures, answer to the last command, ABORT; below them the banner: the same on every page."""
    with ui.header(wrap=False).classes("hil-header"):
        with ui.element("div").classes("hil-bar"):
            ui.label("HIL server").classes("text-weight-bold")
            for view in views():
                link = ui.link(view.NAME, view.PATH).style("text-decoration: none")
                link.classes("text-sky-300" if view.NAME == here else "text-white opacity-80")
            View("header").classes("hil-head")
        View("banner").classes("hil-banner")
