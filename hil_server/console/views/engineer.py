"""The engineer's view of a run: state, health of the loop, course of any channels, requirements with margins, legs, delays, tunable
parameters, the programme, faults with what to do, commands.

Every card that shows a live value (class `live`) turns grey when no data have come for half a second: the page itself sees to that, so it
does so too when the console has died.
"""

from pathlib import Path

from nicegui import ui

from hil_server.console.alarm import safety
from hil_server.console.feed import Feed
from hil_server.console.live import Pane
from hil_server.console.view import View, box, card, command_button
from rt_kernels.codes import code_name
from rt_kernels.layout import CODES
from rt_kernels.pictures import Values

ORDER, NAME, PATH, PICTURES = 10, "Engineer", "/", False
COMMANDS = True

PERIOD = 0.1  # s between looks at the feed
MODES = {0: "free-running", 1: "soft: no real-time privilege", 2: "real time"}
WRENCH = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
UNITS = ("N", "N", "N", "N.m", "N.m", "N.m")
BUTTONS = ("start", "hold", "resume", "recover", "park", "stop")
CURVES = ["F_T[0]", "F_T[1]", "F_T[2]", "X_TA[0]"]


class Card:
    """A titled card of lines `name value`."""

    def __init__(self, title: str, names: tuple[str, ...]) -> None:
        with card(title, "live"), ui.element("div").classes("hil-lines"):
            self._values = {name: self._row(name) for name in names}

    @staticmethod
    def _row(name: str) -> ui.label:
        ui.label(name).classes("hil-name")
        return ui.label("-").classes("font-mono")

    def show(self, values: dict[str, str]) -> None:
        """Shows the values by name; names that have no field are passed over."""
        for name, text in values.items():
            if name in self._values:
                self._values[name].text = text


class Engineer:
    """Builds the page into the present NiceGUI client and keeps it up to date."""

    def __init__(self, pane: Pane) -> None:
        self._feed = pane.feed
        self._joints_shown: tuple[str, ...] = ()
        with ui.element("div").classes("hil-page hil-engineer"):
            with ui.element("div").classes("hil-column hil-left").props("tabindex=0 role=region aria-label='State and commands'"):
                self._build_commands()
                self._state = Card("State", ("phase", "in this phase", "motion", "safety", "contact", "end", "time", "tick"))
                self._health = Card("Real time", ("mode", "late, max", "compute, max", "missed", "overflow", "lost to us", "log"))
                self._energy = Card("Contact", ("energy ratio", "work", "kinetic energy", "contact lasts", "first contact", "capture"))
            with ui.element("div").classes("hil-middle"):
                with card("Curves", "live hil-grow"):
                    View("channels", wanted=CURVES, joints=True)
                    View("curves", live_line=1.0).classes("hil-grow hil-plot")
                with ui.element("div").classes("hil-row-of-cards"):
                    self._wrench = Card("Wrench F_T: now, smallest, largest", WRENCH)
                    box("Legs", "legs", "live hil-grow")
            with ui.element("div").classes("hil-column hil-right").props("tabindex=0 role=region aria-label='Requirements and delays'"):
                box("Requirements", "requirements", "live")
                box("Delay ledger", "ledger", "live")
                self._joint_card = ui.element("div")
                self._joint_card.visible = False
                box("Tunable parameters", "tunables")
            with ui.element("div").classes("hil-low"):
                box("Programme", "programme", "hil-scroll")
                box("Events and faults, and what to do", "lines", "hil-scroll")
        ui.timer(PERIOD, self.update)

    def _build_commands(self) -> None:
        with card("Commands"):
            with ui.element("div").classes("hil-buttons"):
                self._buttons = {name: command_button(name) for name in BUTTONS}
            View("desk")

    def _show_joints(self, last: Values) -> None:
        """The joints of the crafts, for a dynamics part that has them: a line of figures each."""
        names = self._feed.joints
        if names != self._joints_shown:
            self._joints_shown = names
            self._joint_card.clear()
            self._joint_card.visible = bool(names)
            if names:
                with self._joint_card:
                    self._joints = Card("Joints: position, rate, torque", names)
        if names and "joint_position" in last:
            columns = [last[f"joint_{what}"] if f"joint_{what}" in last else [0.0] * len(names) for what in ("position", "rate", "torque")]
            self._joints.show({
                name: f"{position:9.4f} {rate:9.4f} {torque:9.2f}" for name, position, rate, torque in zip(names, *columns, strict=False)
            })  # fmt: skip

    def update(self) -> None:
        """Brings the page up to the newest batch; called by a timer."""
        feed = self._feed
        if feed.newest is None:
            return
        last, low, high = feed.newest.last, feed.newest.minimum, feed.newest.maximum
        self._buttons["resume"].text = "resume: back" if leads_back(last) else "resume"
        self._state.show(_state(feed.newest.t, last))
        self._health.show(_health(feed, last, high))
        self._energy.show(_energy(last))
        numbers = zip(WRENCH, UNITS, last["F_T"], low["F_T"], high["F_T"], strict=True)
        self._wrench.show({name: f"{now:9.1f} {small:9.1f} {large:9.1f} {unit}" for name, unit, now, small, large in numbers})
        self._show_joints(last)


def leads_back(last: Values) -> bool:
    """Whether `resume` leads the run back to park: it is held, and its test is over."""
    held = last["phase"] == CODES["phase"]["hold"] and last["motion"] != CODES["motion"]["free"]
    return bool(held and last["end_cause"] != CODES["end_cause"]["none"])


def _state(t: float, last: Values) -> dict[str, str]:
    return {
        "phase": code_name("phase", last["phase"]),
        "in this phase": f"{last['phase_time']:.2f} s",
        "motion": code_name("motion", last["motion"]).replace("_", " "),
        "safety": safety(last),
        "contact": "yes" if last["contact"] else "no",
        "end": code_name("end_cause", last["end_cause"]),
        "time": f"{t:.2f} s",
        "tick": str(last["tick"]),
    }


def _health(feed: Feed, last: Values, high: Values) -> dict[str, str]:
    status = feed.status
    log = "-" if not status else "whole" if status["log_ok"] else "INCOMPLETE: " + "; ".join(status["log_reasons"])
    return {
        "mode": MODES.get(last["realtime_mode"], str(last["realtime_mode"])),
        "late, max": f"{1e-3 * high['lateness_ns']:.0f} us",
        "compute, max": f"{1e-3 * high['compute_ns']:.0f} us",
        "missed": str(last["missed_total"]),
        "overflow": str(last["overflow_total"]),
        "lost to us": str(feed.lost),
        "log": log,
    }


def _energy(last: Values) -> dict[str, str]:
    def stamp(t: float) -> str:
        return f"{t:.3f} s" if t >= 0 else "not yet"

    return {
        "energy ratio": f"{last['contact_energy_ratio']:.3f}",
        "work": f"{last['contact_work']:.2f} J",
        "kinetic energy": f"{last['kinetic_energy']:.2f} J",
        "contact lasts": f"{last['contact_time']:.3f} s",
        "first contact": stamp(last["first_contact_time"]),
        "capture": stamp(last["capture_time"]),
    }


def build(pane: Pane, folder: Path, log: str, chosen: str) -> None:
    """Fills the page of the engineer."""
    Engineer(pane)
