"""A log as a file for Foxglove and rerun: an MCAP file in standard schemas, beside the log itself (`stream` lists its topics).

The run's log keeps its own form: one message a tick, without an encoder in the writer's way. This file is made from it at any time.
"""

import os
from pathlib import Path

from hil_server import open_log
from hil_server.config import files
from hil_server.config.files import Done, no_progress
from hil_server.errors import UsageError
from hil_server.exchange.export import run_facts_of
from hil_server.exchange.log_view import LogView
from hil_server.viewers.scene import Scene
from hil_server.viewers.stream import Stream, library

SUFFIX = ".foxglove.mcap"
SCENE_HZ = 50.0


def write(log_path: str | os.PathLike[str], target: str | os.PathLike[str] | None = None, scene_hz: float = SCENE_HZ,
          done: Done = no_progress) -> Path:  # fmt: skip
    """Writes the file beside the log or to `target`; returns its path. Curves have every tick, the scene `scene_hz` pictures a second.

    Raises UsageError for a target that cannot be written or without the libraries, LogError when the log cannot be read.
    """
    foxglove = library()
    if not 0.1 <= scene_hz <= 1000.0:
        raise UsageError(f"--scene-hz: {scene_hz:g}, limit 0.1 ... 1000")
    with open_log(log_path) as log:
        path = Path(target) if target is not None else Path(log_path).with_suffix(SUFFIX)
        if path.resolve() == Path(log_path).resolve():
            raise UsageError(f"{path}: is the log itself")
        context = foxglove.Context()
        scene = Scene(log.header.configuration)
        stream = Stream(context, scene, log.header.aux)
        try:
            with files.whole(path) as unfinished, foxglove.open_mcap(unfinished, allow_overwrite=True, context=context) as writer:
                _write(log, scene, stream, scene_hz, done)
                writer.write_metadata("run", {key: str(value) for key, value in run_facts_of(log.header, log.problems, log.end).items()})
                for name, text in log.header.configuration.items():
                    _attach(log, writer, Path(name).name, "application/toml", text)
                _attach(log, writer, "scene.urdf", "application/xml", scene.urdf())
        except (OSError, RuntimeError) as error:  # the library has no class of its own
            raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return path


def _attach(log: LogView, writer: object, name: str, kind: str, text: str) -> None:
    start = round(log.header.created * 1e9)
    writer.attach(log_time=start, create_time=start, name=name, media_type=kind, data=text.encode())  # type: ignore[attr-defined]


def _write(log: LogView, scene: Scene, stream: Stream, scene_hz: float, done: Done) -> None:
    """Walks over the log once."""
    start = round(log.header.created * 1e9)
    first, next_picture, written = True, -float("inf"), 0
    for records in log.blocks():
        if first:
            stream.begin(start + int(records["time_ns"][0]))
            first = False
        times = records["time_ns"] + start
        seconds = records["time_ns"] * 1e-9
        columns = {name: records[name] for name in records.dtype.names or () if name != "aux"}
        columns |= {one.name: records["aux"][:, one.offset : one.offset + one.count].squeeze(1) if one.count == 1 else
                    records["aux"][:, one.offset : one.offset + one.count] for one in log.header.aux}  # fmt: skip
        stream.curves(times.tolist(), seconds, columns)
        for i in range(len(records)):
            if seconds[i] >= next_picture:
                next_picture = max(next_picture + 1.0 / scene_hz, seconds[i] + 0.5 / scene_hz)
                stream.instant(int(times[i]), {name: values[i].tolist() for name, values in columns.items()})
        written += len(records)
        done(written, log.ticks)
    for event in log.events():
        stream.event(start + round(event.seconds * 1e9), event.name)
