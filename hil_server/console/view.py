"""The drawn parts of a page: each is an element that `page/live.js` fills from the frames of the page's pane."""

import importlib
import json
import pkgutil
from pathlib import Path
from types import ModuleType

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from drivers.hand_controllers import keys
from hil_server.console.live import Live, Pane

FOLDER = Path(__file__).parent / "page"


class View(ui.element, component="page/view.js"):  # type: ignore[call-arg, unused-ignore]  # without NiceGUI the base is unknown
    """kind: a name of `page/panels.js`, curves, player, sticks, wires or cameras; options: what that kind takes."""

    def __init__(self, kind: str, **options: object) -> None:
        super().__init__()
        self._props["kind"] = kind
        self._props["options"] = options


def open_pane(live: Live, pictures: bool = True, commands: bool = True) -> Pane:
    """The pane of the page that is being built; closed with it. commands: the page may give some."""
    pane = live.open(pictures, commands)
    ui.colors(primary="#075985")  # white on it can be read: 7.6 to 1
    ui.add_head_html('<link rel="stylesheet" href="/hil/style.css">')
    own = f"window.hilPane = {json.dumps(pane.number)}; window.hilCommands = {json.dumps(commands)}; "
    own += f"window.hilKeys = {json.dumps(keys.table())};"
    ui.add_head_html(f"<script>document.documentElement.lang = 'en'; {own}</script>")
    ui.context.client.on_delete(lambda: live.close(pane))
    return pane


def box(name: str, kind: str, classes: str = "", **options: object) -> View:
    """A titled card of the page with one drawn part in it; can be hidden, by its name, in the page's menu."""
    with card(name, classes):
        return View(kind, **options)


def text(tag: str, words: str) -> ui.element:
    """A plain element of HTML with words in it."""
    return TextElement(tag=tag, text=words)


def card(name: str, classes: str = "") -> ui.element:
    """A titled card of the page, to be filled."""
    with ui.element("section").classes(f"hil-card {classes}").props(f'data-card="{name}" aria-label="{name}"') as found:
        text("h2", name)
    return found


def command_button(name: str) -> ui.button:
    """Gives a command without arguments over the page's own line: NiceGUI drops a click while its socket is away, unnoticed."""
    button = ui.button(name).props(f"dense id={name}")
    button.on("click", js_handler=f"() => window.hilCommand('{name}')")
    return button


def views() -> list[ModuleType]:
    """Every module of `hil_server.console.views`, in the order of the links."""
    from hil_server.console import views as package

    found = [importlib.import_module(f"{package.__name__}.{module.name}") for module in pkgutil.iter_modules(package.__path__)]
    return sorted(found, key=lambda module: (module.ORDER, module.__name__))


def header(here: str) -> None:
    """Where else to go; run, age of data and pictures, answer to the last command, the page's menu, ABORT; below them the banner: the same
    on every page. Before it, for the keyboard: a link past it."""
    with ui.header(wrap=False).classes("hil-header"):
        text("a", "Skip to the content").classes("hil-skip").props('href="#content"')
        with ui.element("div").classes("hil-bar"):
            ui.label("HIL server").classes("text-weight-bold")
            with ui.element("nav").classes("hil-links").props('aria-label="Views"'):
                for view in views():
                    link = ui.link(view.NAME, view.PATH)
                    if view.NAME == here:
                        link.props('aria-current="page"')
            View("header").classes("hil-head")
            View("menu").classes("hil-menu")
        View("banner").classes("hil-banner")
    text("h1", f"HIL server: {here}").classes("hil-unseen")
