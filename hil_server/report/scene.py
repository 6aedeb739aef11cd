"""The units, the stand and the crafts of a run in three dimensions: shapes out of the declarations of the parts and the craft files, at
instants over the run."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.config import TestConfig, physics
from hil_server.errors import HilError
from hil_server.judge.run import Run
from hil_server.log.reader import Log
from hil_server.pages.crafts import Crafts
from hil_server.pages.html import text
from hil_server.report.pictures import events, phases
from rt_kernels.pictures import Picture, multiply, rotate

INSTANTS = 160
DIGITS = 4  # 0.1 mm


class Tick(Mapping[str, Any]):
    """Values of one tick by name, as a picture of a unit asks for them."""

    def __init__(self, log: Log, row: int) -> None:
        self._log, self._row = log, row
        self._aux = {channel.name: channel for channel in log.header.aux}

    def __getitem__(self, name: str) -> Any:
        channel = self._aux.get(name)
        if channel is None:
            if name not in (self._log.records.dtype.names or ()):
                raise KeyError(name)
            return self._log.records[name][self._row].tolist()
        part = self._log.records["aux"][self._row, channel.offset : channel.offset + channel.count]
        return float(part[0]) if channel.count == 1 else part.tolist()

    def __iter__(self) -> Iterator[str]:
        return iter((*(self._log.records.dtype.names or ()), *self._aux))

    def __len__(self) -> int:
        return len(self._log.records.dtype.names or ()) + len(self._aux)


def instants(log: Log) -> np.ndarray:
    """Rows of the log that are shown: half of them spread over the run, half over where the contact force is."""
    spread = np.linspace(0.0, log.time_s[-1] - log.time_s[0], INSTANTS // 2) + log.time_s[0]
    force = np.abs(log.records["F_T"][:, :3]).sum(axis=1)
    force = np.cumsum(np.where(np.isfinite(force), np.sqrt(np.minimum(force, 1e6)), 0.0))
    rows = np.searchsorted(log.time_s, [*spread, *(at for at, *_ in events(log))])
    if force[-1] > 0.0:
        rows = np.concatenate([rows, np.searchsorted(force, np.linspace(0.0, force[-1], INSTANTS // 2))])
    return np.unique(np.clip(rows, 0, log.ticks - 1))


def scene(run: Run) -> str:
    """A figure that `scene.js` draws: shapes once, poses of their bodies at every instant; empty for a run whose unit cannot be told."""
    log, config = run.log, run.config
    if config is None or (part := registry.part_of_table("mechanisms", config.mechanism)) is None:
        return ""
    try:
        table = {p.key: p.default for p in part.PARAMETERS} | dict(config.mechanism)
        unit: Picture = getattr(part, "PICTURE", Picture)(table)
    except (HilError, KeyError, AttributeError, TypeError, ValueError):
        return ""
    rows = instants(log)
    bodies: list[dict[str, list[float]]] = []
    for row in rows:
        X_TA = log.records["X_TA"][row].tolist()
        if not np.isfinite(X_TA).all():
            return ""
        try:
            more, _ = unit.bodies(Tick(log, int(row)), X_TA)
        except (KeyError, ValueError, TypeError, IndexError):
            more = {}
        bodies.append({"A": X_TA, **{name: list(pose) for name, pose in more.items()}})
    names = sorted({name for at in bodies for name in at})
    shapes = [
        {"body": shape.body, "colour": shape.colour, "lines": [np.round(line, DIGITS).tolist() for line in shape.lines]}
        for shape in unit.looks.shapes
        if shape.body == "T" or shape.body in names
    ]
    stand = _stand(log, config, rows)
    about = {
        "poses": {name: [[round(float(v), 5) for v in at.get(name, at["A"])] for at in bodies] for name in names},
        "shapes": shapes, "extent": unit.looks.extent, "stand": stand,
    }  # fmt: skip
    choice = '<label><input type="checkbox" class="with-stand"> the stand</label>' if stand else ""
    words = "Wire-frames of the docking units: the target's in blue, the active one in orange"
    return _figure(log, rows, "Docking units", words, about, choice)


def crafts_scene(run: Run) -> str:
    """A figure of the crafts: each body as its file or its mass says, where joints and modal coordinates put it at every instant."""
    log = run.log
    crafts = Crafts(run.document)
    if not {"active", "target"} <= set(crafts.trees):
        return ""
    rows = instants(log)
    ticks = [Tick(log, int(row)) for row in rows]
    channels = {channel.name for channel in log.header.aux}
    crafts.look_at(log)
    if not np.isfinite(log.records["X_TA"][rows]).all():
        return ""
    frames = [crafts.frame(tick, tick["X_TA"]) for tick in ticks]
    choice = '<label><input type="checkbox" class="enlarged" checked> bending enlarged</label>' if crafts.factor > 1 else ""
    moments = [(int(np.searchsorted(log.time_s[rows], at)), name) for at, name, _ in events(log)]
    choice += "".join(f'<button type="button" data-at="{at}">{text(name)}</button>' for at, name in [*moments, (len(rows) - 1, "end")])
    words = "; ".join(["Target craft in blue, active craft in orange", *crafts.notes(), *crafts.absent(channels)])
    return _figure(log, rows, "Crafts", words, {**crafts.things(), "frames": frames}, choice)


def _figure(log: Log, rows: np.ndarray, title: str, words: str, about: dict[str, Any], choice: str) -> str:
    """The figure with its slider; empty for a damaged record: there is no place for what is nowhere."""
    about = about | {
        "times": [round(float(t), 4) for t in log.time_s[rows]], "phases": [[a, b, name] for a, b, name in phases(log)],
        "force": [[round(float(v), 2) for v in f] for f in np.nan_to_num(log.records["F_T"][rows, :3], posinf=0.0, neginf=0.0)],
    }  # fmt: skip
    try:
        data = json.dumps(about, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    except ValueError:
        return ""
    return (
        f'<figure class="scene"><figcaption><b>{text(title)}</b><span class="note">{text(words)}; drag to turn, wheel with Ctrl to come '
        f'nearer</span></figcaption><canvas tabindex="0" role="img" style="height:380px" aria-label="{text(words)}"></canvas>'
        f'<div class="controls">'
        f'<button type="button">play</button><input type="range" min="0" max="{len(rows) - 1}" step="1" value="0" aria-label="time">'
        f'<output></output>{choice}</div><script type="application/json">{data}</script></figure>'
    )


def _stand(log: Log, config: TestConfig, rows: np.ndarray) -> dict[str, list[list[list[float]]]] | None:
    """Joints of base and platform in T at every instant; None for a test without a stand that moves (a rehearsal)."""
    platform, mounting = config.stand["platform"], config.stand["mounting"]
    if config.test.get("rehearsal") or not np.ptp(log.records["X_WP"][rows], axis=0).any():
        return None
    at = {name: physics.pose(mounting[f"{name}_position_m"], mounting[f"{name}_angles_deg"]) for name in
          ("load_cell", "measured_port", "other_port")}  # fmt: skip
    measured = _joined(at["load_cell"], at["measured_port"])
    on_cell = mounting["unit_on_load_cell"] == "target"
    target, moves = (measured if on_cell else at["other_port"]), (mounting["load_cell_on"] == "platform") == on_cell
    base_W, top_P = (np.asarray(platform[key], float) for key in ("base_joints_m", "platform_joints_m"))
    base, top = [], []
    for X_WP in log.records["X_WP"][rows]:
        X_WT = _joined(X_WP, target) if moves else target
        R_WT, R_WP = _matrix(X_WT[3:]), _matrix(X_WP[3:])
        base.append(((base_W - X_WT[:3]) @ R_WT).round(3).tolist())
        top.append(((top_P @ R_WP.T + X_WP[:3] - X_WT[:3]) @ R_WT).round(3).tolist())
    return {"base": base if moves else base[:1], "top": top}


def _joined(X_AB: np.ndarray, X_BC: np.ndarray) -> np.ndarray:
    """X_AC of two poses (7,)."""
    return np.concatenate([X_AB[:3] + rotate(X_AB[3:], X_BC[:3]), multiply(X_AB[3:], X_BC[3:])])


def _matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a quaternion [x, y, z, w]."""
    x, y, z, w = q
    return np.array([
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ])  # fmt: skip
