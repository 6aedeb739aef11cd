"""Work that takes longer than a moment: the bar at a terminal, silence in pipes, and Ctrl-C in the middle: exit code 130, one line, and
nothing half-written under its final name."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hil_server import cli
from hil_server.run import identification, progress

SHORT = ["--set", "test.duration_max_s=0.6"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A short simulated run's log."""
    folder = tmp_path_factory.mktemp("run")
    assert cli.main(["simulate", *SHORT, "--no-report", "--quiet", "--out", str(folder / "a")]) in (0, 1)
    return folder / "a" / "run.mcap"


def ctrl_c(done, whole):
    raise KeyboardInterrupt


def tree(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def wrench_file(path):
    lines = ["time,fx,fy,fz,tx,ty,tz", *(f"{k * 1e-3:.3f},0,0,{np.sin(0.01 * k):.6f},0,0,0" for k in range(4000))]
    path.write_text("\n".join(lines) + "\n")
    return path


VERBS = {
    "parquet": ["export", "LOG", "--out", "OUT/a.parquet"],
    "csv": ["export", "LOG", "--format", "csv", "--out", "OUT/a.csv"],
    "ccsds": ["export", "LOG", "--format", "ccsds", "--out", "OUT/a.ccsds"],
    "mdf": ["export", "LOG", "--format", "mdf", "--out", "OUT/a.mf4"],
    "hdf5": ["export", "LOG", "--format", "hdf5", "--out", "OUT/a.h5"],
    "foxglove": ["export", "LOG", "--format", "foxglove", "--out", "OUT/a.foxglove.mcap"],
    "report": ["report", "LOG", "--out", "OUT"],
    "predict": ["predict", "--out", "OUT"],
    "import": ["import", "CSV", "--out", "OUT/imported.mcap"],
}


@pytest.mark.parametrize("name", VERBS)
def test_ctrl_c_leaves_nothing_half_written(name, log, tmp_path, monkeypatch, capsys):
    for library in {"mdf": ["asammdf"], "ccsds": ["spacepackets"], "hdf5": ["h5py"], "foxglove": ["foxglove"]}.get(name, []):
        pytest.importorskip(library)
    out = tmp_path / "out"
    out.mkdir()
    if name not in ("import", "predict"):  # what was there before stays as it was; an import refuses to write over a file
        (out / ("run.html" if name == "report" else os.path.basename(VERBS[name][-1]))).write_text("of yesterday")
    before = tree(out)
    arguments = [word.replace("LOG", str(log)).replace("OUT", str(out)) for word in VERBS[name]]
    if name == "import":
        arguments[1] = str(wrench_file(tmp_path / "wrench.csv"))
    monkeypatch.setattr(progress, "nobody", ctrl_c)
    assert cli.main(arguments) == cli.INTERRUPTED == 130
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and said[0].startswith("interrupted: ") and len(said[0]) > len("interrupted: no")
    assert tree(out) == before and sorted(os.listdir(out)) == sorted(before)
    if name == "predict":  # without a picture before, with one after: no need to predict again
        return
    monkeypatch.undo()
    assert cli.main(arguments) in (0, 1)  # the same command again does it all
    assert tree(out).keys() - before.keys() or tree(out) != before
    assert not [file for file in os.listdir(out) if file.startswith(".")]


def test_ctrl_c_in_a_verification(log, monkeypatch, capsys):
    before = log.read_bytes()
    calls = []

    def second(done, whole):
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("hil_server.line.free_run.PIECE_TICKS", 100)
    monkeypatch.setattr(progress, "nobody", second)
    assert cli.main(["replay", str(log), "--verify"]) == 130
    assert 0 < calls[0] < calls[1] and "the log is as it was" in capsys.readouterr().err and log.read_bytes() == before
    monkeypatch.setattr(progress, "nobody", lambda done, whole: calls.append(done))
    assert cli.main(["replay", str(log), "--verify"]) == 0  # in pieces it is equal to the last bit as well
    assert len(calls) > 5 and calls[2:] == sorted(calls[2:])


def test_an_identification_whose_run_was_parked_says_so(monkeypatch, capsys):
    monkeypatch.setattr(identification, "simulate", lambda config, options: {"end": "stopped", "log": "none"})
    assert cli.main(["identify", "docking_stand.toml"]) == 130
    assert capsys.readouterr().err.strip().startswith("interrupted: nothing was identified")


@pytest.mark.timeout(300)
def test_a_bar_with_an_estimate_at_a_terminal_and_ctrl_c_there(tmp_path):
    """As a person sees it: a terminal, the bar with its share and the time left, Ctrl-C from the keyboard."""
    pytest.importorskip("foxglove")
    simulate = ["simulate", "--set", "test.duration_max_s=6.0", "--no-report", "--quiet", "--out", str(tmp_path / "run")]
    assert cli.main(simulate) in (0, 1)
    (out := tmp_path / "out").mkdir()
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "hil_server", "export", str(tmp_path / "run/run.mcap"), "--format", "foxglove", "--scene-hz", "1000",
               "--out", str(out / "a.foxglove.mcap")]  # fmt: skip
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=slave, env=os.environ | {"TERM": "xterm", "COLUMNS": "100"})
    os.close(slave)
    seen, pressed, give_up = "", False, time.monotonic() + 200.0
    while time.monotonic() < give_up:
        if select.select([master], [], [], 0.2)[0]:
            try:
                seen += os.read(master, 65536).decode(errors="replace")
            except OSError:  # the other end is gone
                break
        if not pressed and re.search(r"\d%.*\d:\d\d:\d\d.*left", seen):
            pressed = True
            program.send_signal(signal.SIGINT)
    os.close(master)
    assert pressed, seen
    assert program.wait(60) == 130 and "interrupted: no file was written" in seen
    assert os.listdir(out) == []


def test_pipes_stay_quiet(log, tmp_path, capsys):
    assert cli.main(["export", str(log), "--out", str(tmp_path / "a.parquet")]) == 0
    written = capsys.readouterr()
    assert written.err == "" and written.out == f"{tmp_path / 'a.parquet'}\n"
