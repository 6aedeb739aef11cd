"""The engineer's view of a run: state, health of the loop, delays, wrench, legs, energy, joints, faults with what to do, commands.

Every card that shows a live value (class `live`) turns grey when no data have come for half a second: the page itself sees to that, so it
does so too when the console has died.
"""

import json
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from nicegui import ui

from hil_server.console.alarm import safety
from hil_server.console.feed import Feed
from hil_server.console.live import Pane
from hil_server.console.view import command_button
from hil_server.run.programme import PROGRESS, SUMMARY_HEADS
from rt_kernels.codes import code_name

ORDER, NAME, PATH, PICTURES = 10, "Engineer", "/", False

PERIOD = 0.1  # s between looks at the feed
CURVE_PERIOD = 0.25
PROGRAMME_PERIOD = 1.0
MODES = {0: "free-running", 1: "soft: no real-time privilege", 2: "real time"}
WRENCH = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
UNITS = ("N", "N", "N", "N.m", "N.m", "N.m")
COLOURS = ("#4fc3f7", "#ffb74d", "#aed581", "#f06292", "#ba68c8", "#fff176")
COMMANDS = ("start", "hold", "resume", "park", "stop")


class Card:
    """A titled card of lines `name value`."""

    def __init__(self, title: str, names: tuple[str, ...]) -> None:
        with ui.card().classes("live q-pa-sm gap-1") as self.root:
            ui.label(title).classes("text-subtitle2 text-sky-300")
            with ui.grid(columns="auto auto").classes("gap-x-4 gap-y-0"):
                self._values = {name: self._row(name) for name in names}

    @staticmethod
    def _row(name: str) -> ui.label:
        ui.label(name).classes("text-caption opacity-70")
        return ui.label("-").classes("font-mono text-caption")

    def show(self, values: dict[str, str]) -> None:
        """Shows the values by name; names that have no field are passed over."""
        for name, text in values.items():
            if name in self._values:
                self._values[name].text = text


DELAYS = ("sensor", "sensor age", "sensor filter", "transport", "ticks", "hold", "integrator", "drive", "total")


class Engineer:
    """Builds the page into the present NiceGUI client and keeps it up to date."""

    def __init__(self, pane: Pane, folder: Path) -> None:
        self._feed = pane.feed
        self._lines_shown: Any = None
        with ui.row().classes("w-full items-stretch"):
            self._build_commands()  # first: what is to be pressed does not move while the other cards fill
            self._state = Card("State", ("phase", "in this phase", "motion", "safety", "contact", "end", "time", "tick"))
            self._health = Card("Real time", ("mode", "late, max", "compute, max", "missed", "overflow", "lost to us", "log", "desk"))
            self._delays = Card("Delay ledger", DELAYS)
            self._energy = Card("Contact", ("energy ratio", "work", "kinetic energy", "contact lasts", "first contact", "capture"))
        with ui.element("div").classes("hil-split"):
            self._build_wrench()
            self._build_legs()
        self._joints_shown: tuple[str, ...] = ()
        self._joint_row = ui.element("div").classes("hil-split")
        self._joint_row.visible = False
        self._build_programme(folder)
        self._build_faults()
        ui.timer(PERIOD, self.update)
        ui.timer(CURVE_PERIOD, self._draw)

    def _build_commands(self) -> None:
        with ui.card().classes("q-pa-sm gap-1"):
            ui.label("Commands").classes("text-subtitle2 text-sky-300")
            for name in COMMANDS:
                command_button(name).classes("w-full")

    def _build_wrench(self) -> None:
        self._wrench = Card("Wrench F_T: now, smallest, largest", WRENCH)
        with ui.card().classes("live q-pa-sm").style("flex: 1 1 330px"):
            self._chart = ui.echart(line_chart(WRENCH[:3], "N")).classes("w-full").style("height: 240px")

    def _build_legs(self) -> None:
        with ui.card().classes("live q-pa-sm gap-1"):
            self._leg_title = ui.label("Legs").classes("text-subtitle2 text-sky-300")
            self._legs = []
            for n in range(6):
                with ui.row().classes("items-center gap-2 no-wrap w-full"):
                    ui.label(str(n + 1)).classes("text-caption")
                    bar = ui.linear_progress(0.0, show_value=False, size="14px").props("instant-feedback")
                    bar.style("flex: 0 1 8rem; width: 8rem")
                    self._legs.append((bar, ui.label("-").classes("font-mono text-caption").style("min-width: 21em")))

    def _show_joints(self, last: dict[str, Any]) -> None:
        """The joints of the crafts, for a dynamics part that has them: a line of figures each, and their course."""
        names = self._feed.joints
        if names != self._joints_shown:
            self._joints_shown = names
            self._joint_row.clear()
            self._joint_row.visible = bool(names)
            if names:
                with self._joint_row:
                    self._joints = Card("Joints: position, rate, torque", names)
                    with ui.card().classes("live q-pa-sm").style("flex: 1 1 330px"):
                        self._joint_chart = ui.echart(line_chart(names, "rad or m")).classes("w-full joints").style("height: 240px")
        if names and "joint_position" in last:
            columns = [last[f"joint_{what}"] if f"joint_{what}" in last else [0.0] * len(names) for what in ("position", "rate", "torque")]
            self._joints.show({
                name: f"{position:9.4f} {rate:9.4f} {torque:9.2f}" for name, position, rate, torque in zip(names, *columns, strict=False)
            })  # fmt: skip

    def _build_programme(self, folder: Path) -> None:
        """The newest programme below the folder of the logs: its variants, which one runs, results."""
        self._folder = folder
        self._programme_seen: Any = None
        with ui.card().classes("w-full q-pa-sm gap-1") as self._programme_card:
            self._programme_title = ui.label().classes("text-subtitle2 text-sky-300")
            keys = ("state", *SUMMARY_HEADS, "description")
            columns = [{"name": k, "label": k, "field": k, "align": "left"} for k in keys]
            self._programme = (
                ui.table(columns=columns, rows=[], row_key="variant", pagination=10).classes("w-full programme").props("dense flat")
            )
        self._programme_card.visible = False
        ui.timer(PROGRAMME_PERIOD, self._show_programme)
        self._show_programme()

    def _show_programme(self) -> None:
        found = newest_programme(self._folder)
        if found is None or found == self._programme_seen:
            return
        self._programme_seen = found
        rows = found["variants"]
        done = [row for row in rows if row["state"] == "done"]
        passed = sum(row.get("result") == "passed" for row in done)
        running = "ended" if found["ended"] else next((f"{row['variant']} is running" for row in rows if row["state"] == "running"), "")
        self._programme_title.text = f"Programme {found['programme']}: {running}, {len(done)} of {len(rows)} done, {passed} passed"
        self._programme.rows = rows
        at = next((i for i, row in enumerate(rows) if row["state"] == "running"), 0)
        self._programme.pagination = {"rowsPerPage": 10, "page": at // 10 + 1}
        self._programme_card.visible = True

    def _build_faults(self) -> None:
        with ui.card().classes("w-full q-pa-sm"):
            ui.label("Events and faults, and what to do").classes("text-subtitle2 text-sky-300")
            columns = [{"name": k, "label": k, "field": k, "align": "left"} for k in ("t", "kind", "name", "what to do")]
            self._table = ui.table(columns=columns, rows=[], row_key="key", pagination=8).classes("w-full").props("dense flat wrap-cells")

    def update(self) -> None:
        """Brings the page up to the newest batch; called by a timer."""
        feed = self._feed
        if feed.newest is None:
            return
        last, low, high = feed.newest.last, feed.newest.minimum, feed.newest.maximum
        self._state.show(_state(feed.newest.t, last))
        self._health.show(_health(feed, last, high))
        delays, origins = feed.about.get("delay_ledger", {}), feed.about.get("delay_origins", {})
        self._delays.show({name: f"{1e3 * seconds:8.3f} ms  {origins.get(name, '')}" for name, seconds in delays.items()})
        self._energy.show(_energy(last))
        numbers = zip(WRENCH, UNITS, last["F_T"], low["F_T"], high["F_T"], strict=True)
        self._wrench.show({name: f"{now:9.1f} {small:9.1f} {large:9.1f} {unit}" for name, unit, now, small, large in numbers})
        self._show_legs(last)
        self._show_joints(last)
        self._show_lines()

    def _show_legs(self, last: dict[str, Any]) -> None:
        limits = self._feed.limits
        low, high = limits.get("leg_length_min_m"), limits.get("leg_length_max_m")
        if low is None or high is None:
            low, high = min(last["measured_leg"]) - 1.0, max(last["measured_leg"]) + 1.0
            self._leg_title.text = "Legs (the run names no limits)"
        else:
            self._leg_title.text = f"Legs, {low:.3f} ... {high:.3f} m, margin {last['stroke_margin']:.3f} m"
        for (bar, text), length, error in zip(self._legs, last["measured_leg"], last["following_error"], strict=True):
            part = (length - low) / (high - low)
            bar.value = min(1.0, max(0.0, part))
            bar.props(f"color={'light-blue' if 0.1 < part < 0.9 else 'orange' if 0.0 < part < 1.0 else 'red'}")
            text.text = f"{length:7.4f} m  follows {1e3 * error:7.2f} mm"

    def _show_lines(self) -> None:
        lines = list(self._feed.lines)
        if lines == self._lines_shown:
            return
        self._lines_shown = lines
        self._table.rows = [
            {"key": i, "t": f"{line.t:.2f} s", "kind": line.severity, "name": line.name.replace("_", " "), "what to do": line.action}
            for i, line in enumerate(lines)
        ]

    def _draw(self) -> None:
        charts = [(self._chart, self._feed.curve)]
        if self._joints_shown:
            charts.append((self._joint_chart, self._feed.joint_curve))
        for chart, curve in charts:
            points = list(curve)
            for n, series in enumerate(chart.options["series"]):
                series["data"] = [[p[0], p[n + 1]] for p in points[-600:] if len(p) > n + 1]
            chart.update()


def newest_programme(folder: Path) -> dict[str, Any] | None:
    """What the programme that was written last below `folder` says of itself, None when there is none."""
    files = [*folder.glob(PROGRESS), *folder.glob(f"*/{PROGRESS}")]
    try:
        newest = max(files, key=lambda file: file.stat().st_mtime)
        return dict(json.loads(newest.read_text()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def line_chart(names: Sequence[str], unit: str) -> dict[str, Any]:
    """Options of a chart of these lines over the run time, still without points."""
    series = [
        {"name": name, "type": "line", "showSymbol": False, "animation": False, "data": [], "lineStyle": {"width": 1.5}, "color": colour}
        for name, colour in zip(names, cycle(COLOURS), strict=False)
    ]
    text = {"color": "#cfd8dc"}
    axis = {"type": "value", "scale": True, "axisLabel": text, "splitLine": {"lineStyle": {"color": "#37474f"}}, "nameTextStyle": text}
    return {
        "animation": False,
        "grid": {"left": 60, "right": 20, "top": 30, "bottom": 30},
        "legend": {"textStyle": text, "data": list(names), "top": 0, "type": "scroll"},
        "xAxis": {**axis, "name": "s"},
        "yAxis": {**axis, "name": unit},
        "series": series,
    }


def _state(t: float, last: dict[str, Any]) -> dict[str, str]:
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


def _health(feed: Feed, last: dict[str, Any], high: dict[str, Any]) -> dict[str, str]:
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
        "desk": status.get("desk_holder") or "free",
    }


def _energy(last: dict[str, Any]) -> dict[str, str]:
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
    Engineer(pane, folder)
