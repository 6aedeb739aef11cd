"""A log seen again: time slider, paced playback, jump to events, curves of any channel, and every value at the chosen time."""

from pathlib import Path
from typing import Any

import numpy as np
from nicegui import run, ui

from hil_server.analysis.summary import bits_of, name_of
from hil_server.errors import HilError
from hil_server.telemetry.log_file import Log, open_log

POINTS = 1500  # of a curve: more than a screen has columns
PERIOD = 0.1  # s
SPEEDS = {0.1: "0.1 x", 0.5: "0.5 x", 1.0: "1 x", 5.0: "5 x"}
FIRST = ["F_T[0]", "X_TA[0]"]


def logs_in(folder: Path) -> dict[str, str]:
    """Every log below the folder, newest first: path → name shown."""
    found = sorted(folder.rglob("*.mcap"), key=lambda path: path.stat().st_mtime, reverse=True)
    return {str(path): str(path.relative_to(folder)) for path in found}


def channels_of(log: Log) -> dict[str, np.ndarray]:
    """Scalar channels of a log: `name` or `name[i]` → (n,)."""
    found: dict[str, np.ndarray] = {}
    for name in log.records.dtype.names or ():
        column = log.records[name]
        if name in ("aux", "pad", "record_crc") or column.dtype.kind not in "fiu":
            continue
        found |= {name: column} if column.ndim == 1 else {f"{name}[{i}]": column[:, i] for i in range(column.shape[1])}
    return found | {name: log.records["aux"][:, i] for i, name in enumerate(log.aux_names)}


def thinned(t: np.ndarray, values: np.ndarray, points: int = POINTS) -> list[list[float]]:
    """[t, value] pairs, at most about `points`, that keep the smallest and the largest value of every stretch."""
    if len(t) <= points:
        return np.column_stack((t, values)).tolist()
    edges = np.linspace(0, len(t), points // 2 + 1).astype(int)
    chosen = set()
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        part = values[start:stop]
        chosen |= {start + int(part.argmin()), start + int(part.argmax())}
    at = sorted(chosen)
    return np.column_stack((t[at], values[at])).tolist()


def events_of(log: Log) -> list[tuple[float, str]]:
    """(time, name) of the first tick of every event and change of phase, in order of time."""
    words = log.records["events"].astype(np.int64)
    found = []
    for tick in np.flatnonzero(words & ~np.concatenate(([0], words[:-1]))):
        before = int(words[tick - 1]) if tick else 0
        found += [(float(log.time_s[tick]), name.replace("_", " ")) for name in bits_of("event", int(words[tick]) & ~before)]
    phase = log.records["phase"]
    changes = np.flatnonzero(np.diff(phase, prepend=phase[:1] - 1)) if len(phase) else np.zeros(0, np.int64)
    found += [(float(log.time_s[i]), f"phase {name_of('phase', int(phase[i]))}") for i in changes]
    return sorted(found)


class ReplayView:
    """Builds the page. folder: where logs may be taken from; chosen: the log to begin with."""

    def __init__(self, folder: Path, chosen: str = "") -> None:
        self._log: Log | None = None
        self._channels: dict[str, np.ndarray] = {}
        self._shown_at = -1
        files = logs_in(folder)
        if chosen:
            files = {chosen: Path(chosen).name, **files}
        self._files = files
        with ui.row().classes("items-center w-full"):
            self._choice = ui.select(files, label=f"logs in {folder}", on_change=lambda e: self.open(e.value)).classes("w-96")
            self._play = ui.button("play", on_click=self._toggle).props("id=play")
            self._speed = ui.toggle(SPEEDS, value=1.0)
            self._what = ui.label("no log chosen" if files else f"no logs in {folder}")
        with ui.row().classes("items-center w-full no-wrap"):
            self._slider = ui.slider(min=0.0, max=1.0, step=0.001, value=0.0, on_change=self._show).props("id=time")
            self._time = ui.label("-").classes("font-mono time-shown").style("min-width: 8em")
        self._events = ui.row().classes("gap-1")
        self._select = ui.select([], multiple=True, label="curves", with_input=True, on_change=self._draw)
        self._select.props("use-chips").classes("w-full")
        with ui.row().classes("w-full no-wrap items-stretch"):
            self._charts = ui.column().classes("grow gap-0")
            self._values = ui.table(
                columns=[{"name": k, "label": k, "field": k, "align": "left"} for k in ("channel", "value")],
                rows=[], row_key="channel", pagination=14,
            ).props("dense flat")  # fmt: skip
        self._plots: list[Any] = []
        ui.timer(PERIOD, self._advance)
        if chosen:
            self._choice.value = chosen

    async def open(self, path: str) -> None:
        """Reads a log of the list, in a thread of its own."""
        if path not in self._files:
            return
        self._what.text = "reading ..."
        try:
            log = await run.io_bound(open_log, path)
        except HilError as error:
            self._what.text = str(error)
            return
        if log is None or not log.ticks:  # none: the page was left while reading
            self._what.text = "this log has no record"
            return
        self._log, self._channels = log, channels_of(log)
        whole = "whole" if log.complete else f"incomplete: {'; '.join(log.incomplete)}"
        self._what.text = f"{log.header.run_id}, {log.header.mode}, {log.ticks} ticks, {whole}"
        self._slider.props(f"min={log.time_s[0]} max={log.time_s[-1]}")
        self._select.set_options(list(self._channels), value=[name for name in FIRST if name in self._channels])
        self._events.clear()
        with self._events:
            for t, name in events_of(log)[:40]:
                ui.button(f"{name} {t:.2f}", on_click=lambda t=t: self._slider.set_value(t)).props("dense outline size=sm no-caps")
        self._slider.value = float(log.time_s[0])
        self._show()

    def _toggle(self) -> None:
        self._play.text = "pause" if self._play.text == "play" else "play"

    def _advance(self) -> None:
        if self._log is None or self._play.text == "play":
            return
        end = float(self._log.time_s[-1])
        self._slider.value = min(end, self._slider.value + PERIOD * self._speed.value)
        if self._slider.value >= end:
            self._play.text = "play"

    def _draw(self) -> None:
        """The curves that are chosen, one plot each under a common time."""
        if self._log is None:
            return
        self._charts.clear()
        self._plots = []
        with self._charts:
            for name in self._select.value[:6]:
                points = thinned(self._log.time_s, self._channels[name].astype(float))
                self._plots.append(ui.echart(curve_chart(name, points)).classes("w-full").style("height: 210px"))
        self._shown_at = -1
        self._show()

    def _show(self) -> None:
        """Everything at the slider's time."""
        if self._log is None:
            return
        at = int(np.clip(np.searchsorted(self._log.time_s, self._slider.value), 0, self._log.ticks - 1))
        if at == self._shown_at:
            return
        self._shown_at = at
        t = float(self._log.time_s[at])
        self._time.text = f"{t:9.3f} s"
        for plot in self._plots:
            plot.options["series"][0]["markLine"]["data"] = [{"xAxis": t}]
            plot.update()
        codes = {"phase": "phase", "motion": "motion", "end_cause": "end_cause"}
        rows = [{"channel": name, "value": name_of(group, int(self._channels[name][at]))} for name, group in codes.items()]
        chosen = list(self._select.value) + [n for n in self._channels if n not in codes and n not in self._select.value]
        self._values.rows = rows + [{"channel": name, "value": f"{self._channels[name][at]:.6g}"} for name in chosen]


def curve_chart(name: str, points: list[list[float]]) -> dict[str, Any]:
    text = {"color": "#cfd8dc"}
    axis = {"type": "value", "scale": True, "axisLabel": text, "splitLine": {"lineStyle": {"color": "#37474f"}}}
    line = {"silent": True, "symbol": "none", "animation": False, "label": {"show": False}, "lineStyle": {"color": "#ef5350"}, "data": []}
    return {
        "animation": False,
        "title": {"text": name, "textStyle": {**text, "fontSize": 13}},
        "grid": {"left": 70, "right": 20, "top": 30, "bottom": 25},
        "xAxis": axis,
        "yAxis": axis,
        "series": [{"type": "line", "showSymbol": False, "data": points, "color": "#4fc3f7", "markLine": line}],
    }
