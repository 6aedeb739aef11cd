"""A log seen again: cursor, paced playback, jump to events, curves and values of any channel; beside it a second run, or the prediction."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

import numpy as np
from nicegui import run, ui

from hil_server.console.live import Pane
from hil_server.console.recording import Recording, events_of, thinned
from hil_server.console.source import SourceBar
from hil_server.console.view import View, card
from hil_server.errors import HilError
from hil_server.judge.run import Run
from hil_server.report.comparison import GROUPS, Comparison, compare_runs, quantities
from rt_kernels.codes import words

ORDER, NAME, PATH, PICTURES = 40, "Replay", "/replay", True
COMMANDS = False  # a log may be anybody's: its page has no way to the stand

PERIOD = 0.1  # s
CODED = ("phase", "motion", "end_cause", "safety_state")  # fields shown by their names
PREDICT = """
import sys
from hil_server.line.run_header import configuration
from hil_server.log.reader import read_log
from hil_server.run.session import Options, simulate
print(simulate(configuration(read_log(sys.argv[1])), Options(out=sys.argv[2], quiet=True, report=False))["log"])
"""


class ReplayView:
    """Builds the page. folder: where logs may be taken from; chosen: the log to begin with."""

    def __init__(self, pane: Pane, folder: Path, chosen: str = "") -> None:
        self._pane = pane
        self._folder = folder
        self._shown: tuple[Recording | None, float, tuple[str, ...]] | None = None
        with ui.element("div").classes("hil-page hil-replay"):
            with ui.element("div").classes("hil-top"):
                self._bar = SourceBar(pane, folder, chosen, live=False, opened=self._opened)
                if not chosen and self._bar.choice.options:
                    self._bar.what.text = "no log chosen: choose one above, or open /replay?log=PATH"
                self._events = ui.row().classes("gap-1")
            with ui.element("div").classes("hil-middle"):
                View("curves").classes("hil-box hil-plot hil-grow")
                with ui.element("div").classes("hil-wires"):
                    for projection in ("side", "axonometric"):
                        View("wires", projection=projection).classes("live hil-box")
                    View("crafts").classes("live hil-box")
            with ui.element("div").classes("hil-column hil-side").props("tabindex=0 role=region aria-label='Values at the cursor'"):
                View("words")
                with card("Values at the cursor"):
                    self._values = View("values")
            with ui.row().classes("items-center gap-3 w-full hil-foot"):
                self._other = ui.select(
                    dict(self._bar.choice.options), label="compare with", on_change=lambda e: self._compare(e.value)
                ).classes("w-80 max-w-full")
                self._other.props("dense clearable id=other")
                ui.button("its prediction", on_click=self._predict).props("dense id=predict")
                self._said = ui.label().classes("text-caption")
        self._comparison = ui.column().classes("w-full gap-1")
        ui.timer(PERIOD, self._show_values)

    def _opened(self, recording: Recording | None) -> None:
        self._events.clear()
        self._comparison.clear()
        self._other.value = None
        if recording is None:
            return
        with self._events:
            for t, name in events_of(recording.log)[:40]:
                ui.button(f"{name} {t:.2f}", on_click=lambda t=t: ui.run_javascript(f"window.hilGo({t})")).props(
                    "dense outline size=sm no-caps color=grey-4"
                )

    def _show_values(self) -> None:
        """Every value of the cursor's tick, the plotted ones first."""
        recording = self._pane.recording
        key = (recording, self._pane.seen, tuple(self._pane.selected))
        if recording is None or key == self._shown:
            return
        self._shown = key
        at = recording.at(self._pane.seen)
        channels = recording.channels
        rows = [{"channel": "tick", "value": str(int(channels["tick"][at]))}]
        rows += [{"channel": name, "value": words(name, int(channels[name][at]))} for name in CODED]
        chosen = [n for n in self._pane.selected if n in channels]
        chosen += [n for n in channels if n not in CODED and n not in chosen and n != "tick"]
        rows += [{"channel": name, "value": f"{channels[name][at]:.6g}"} for name in chosen]
        self._pane.say({"values": [[row["channel"], row["value"]] for row in rows]})

    # ----------------------------------------------------------------------------------------------------------- comparison
    async def _compare(self, path: str | None) -> None:
        ours = self._pane.recording
        self._comparison.clear()
        if not path or ours is None:
            return
        self._said.text = "reading ..."
        try:
            both = await run.io_bound(_compared, ours, path)
        except HilError as error:
            self._said.text = str(error)
            return
        if both is None:  # the page was left while reading
            return
        theirs, result = both
        a, b = result.window_s
        self._said.text = (
            f"{result.a} and {result.b}, aligned at {result.aligned}; common time {a:.3f} ... {b:.3f} s from there; the second dashed"
        )
        with self._comparison:
            _comparison(ours, theirs, result)

    async def _predict(self) -> None:
        """Simulates the test of this log, in a process of its own, and compares."""
        recording = self._pane.recording
        if recording is None:
            return
        self._said.text = "simulating the same test ..."
        out = Path(tempfile.mkdtemp(prefix="prediction-")) / f"prediction of {recording.name}"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PREDICT, str(recording.log.path), str(out),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=Path(__file__).resolve().parents[3],
        )  # fmt: skip
        _, errors = await process.communicate()
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            self._said.text = f"no prediction: {lines[-1] if lines else 'the simulation ended with an error'}"
            return
        await self._compare(str(out / "run.mcap"))


def _compared(ours: Recording, path: str) -> tuple[Recording, Comparison]:
    theirs = Recording(path)
    return theirs, compare_runs(Run(ours.log), Run(theirs.log))


def _comparison(ours: Recording, theirs: Recording, result: Comparison) -> None:
    """Curves of every group, ours as a line and theirs dashed, over the time from their alignment; and the figures."""
    zero = _zeros(ours, theirs, result)
    figures = (quantities(ours.log), quantities(theirs.log))
    with ui.element("div").classes("hil-charts"):
        for group, unit, names, _ in GROUPS[:6]:
            series = []
            for recording, start, values, kind in zip((ours, theirs), zero, figures, ("solid", "dashed"), strict=True):
                t = recording.log.time_s - start
                inside = (t >= result.window_s[0]) & (t <= result.window_s[1])
                for i, name in enumerate(names):
                    points = thinned(t[inside], values[group][inside, i], 400)
                    series.append(_line(f"{name}{'' if kind == 'solid' else ' (2)'}", points, kind, COLOURS[i]))
            ui.echart(chart(f"{group}, {unit}", series)).classes("w-full").style("height: 230px")
    keys = ("name", "unit", "peak_a", "peak_b", "rms_difference", "peak_difference", "relative", "impulse_a", "impulse_b")
    heads = ("channel", "unit", "peak", "peak (2)", "rms difference", "peak difference", "relative", "impulse", "impulse (2)")
    columns = [{"name": k, "label": h, "field": k, "align": "left"} for k, h in zip(keys, heads, strict=True)]
    rows = [{k: _figure(getattr(channel, k)) for k in keys} for channel in result.channels]
    ui.table(columns=columns, rows=rows, row_key="name").props("dense flat hide-bottom").classes("w-full comparison")


COLOURS = ("#4fc3f7", "#ffb74d", "#aed581")


def _zeros(ours: Recording, theirs: Recording, result: Comparison) -> list[float]:
    """Run time of the alignment in both logs."""
    starts = [float(r.log.time_s[0]) for r in (ours, theirs)]
    if result.aligned != "first contact":
        return starts
    return [start if contact is None else contact for start, contact in zip(starts, result.first_contact_s, strict=True)]


def _figure(value: str | float | None) -> str:
    if isinstance(value, str):
        return value
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:.4g}"


class Line(TypedDict):
    """A line of a chart."""

    name: str
    type: str
    showSymbol: bool
    animation: bool
    data: list[list[float]]
    color: str
    lineStyle: dict[str, object]


def _line(name: str, points: list[list[float]], kind: str, colour: str) -> Line:
    style: dict[str, object] = {"type": kind, "width": 1.5}
    return {"name": name, "type": "line", "showSymbol": False, "animation": False, "data": points, "color": colour, "lineStyle": style}


def chart(title: str, series: list[Line]) -> dict[str, object]:
    """Options of a chart with the given title and lines."""
    text = {"color": "#cfd8dc"}
    axis = {"type": "value", "scale": True, "axisLabel": text, "splitLine": {"lineStyle": {"color": "#37474f"}}}
    return {
        "animation": False,
        "title": {"text": title, "textStyle": {**text, "fontSize": 12}, "left": 0},
        "legend": {
            "textStyle": {**text, "fontSize": 10},
            "right": 0,
            "itemWidth": 12,
            "data": [s["name"] for s in series if s["lineStyle"]["type"] == "solid"],
        },
        "grid": {"left": 60, "right": 15, "top": 30, "bottom": 25},
        "xAxis": axis,
        "yAxis": axis,
        "series": series,
    }


def build(pane: Pane, folder: Path, log: str, chosen: str) -> None:
    """Fills the page of the replay: with the log that its address names, else with the one that the console was started with."""
    ReplayView(pane, folder, log or chosen)
