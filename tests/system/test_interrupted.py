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

from hil_server import cli, interrupts
from hil_server.bus import process as telemetry_process
from hil_server.line import assembly
from hil_server.log.reader import read_log
from hil_server.run import identification, leg_check, progress, session, stand
from hil_server.world.hunter import NO_BUS
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK, in_a_world

SHORT = ["--set", "test.duration_max_s=0.6"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A short simulated run's log."""
    folder = tmp_path_factory.mktemp("run")
    assert cli.main(["simulate", *SHORT, "--no-report", "--quiet", "--out", str(folder / "a")]) in (0, 1)
    return folder / "a" / "run.mcap"


def ctrl_c(done=0, whole=0):
    signal.raise_signal(signal.SIGINT)


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
    monkeypatch.setattr(progress, "look", ctrl_c)
    assert cli.main(arguments) == cli.INTERRUPTED == 130
    reported = capsys.readouterr().err.strip().splitlines()
    assert len(reported) == 1 and reported[0].startswith("interrupted: ") and len(reported[0]) > len("interrupted: no")
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

    def second(done=0, whole=0):
        calls.append(done)
        if len(calls) == 2:
            ctrl_c()

    monkeypatch.setattr("hil_server.line.free_run.PIECE_TICKS", 100)
    monkeypatch.setattr(progress, "look", second)
    assert cli.main(["replay", str(log), "--verify"]) == 130
    assert 0 < calls[0] < calls[1] and "the log is unchanged" in capsys.readouterr().err and log.read_bytes() == before
    monkeypatch.setattr(progress, "look", lambda done=None, whole=None: done is not None and calls.append(done))
    assert cli.main(["replay", str(log), "--verify"]) == 0  # in pieces it is equal to the last bit as well
    assert len(calls) > 5 and calls[2:] == sorted(calls[2:])


PARKED = {"end": "stopped", "exit_code": 0, "log": "none", "not_confirmed": []}


def test_an_identification_whose_run_was_parked_says_so(monkeypatch, capsys):
    monkeypatch.setattr(identification, "simulate", lambda config, options: PARKED)
    assert cli.main(["identify", "docking_stand.toml"]) == 130
    assert capsys.readouterr().err.strip().startswith("interrupted: nothing was identified")


@pytest.mark.parametrize(("verb", "module"), [("identify", identification), ("legs", leg_check)])
def test_a_run_whose_drives_are_not_confirmed_off_is_not_evaluated(monkeypatch, capsys, verb, module):
    undone = {**PARKED, "end": "finished", "not_confirmed": ["leg 2: does not say that it is off"]}
    monkeypatch.setattr(module, "simulate", lambda config, options: undone)
    assert cli.main([verb, "docking_stand.toml"]) == 4
    printed = capsys.readouterr().err
    assert "leg 2: does not say that it is off: a drive that is not off" in printed and "log none" in printed


def test_a_bar_with_an_estimate_at_a_terminal_and_ctrl_c_there(tmp_path):
    """As a person sees it: a terminal, the bar with its share and the time left, Ctrl-C. A script's background jobs, and all that these
    start, inherit that Ctrl-C is ignored: the signal that is sent to this one counts all the same."""
    pytest.importorskip("foxglove")
    simulate = ["simulate", "--set", "test.duration_max_s=6.0", "--no-report", "--quiet", "--out", str(tmp_path / "run")]
    assert cli.main(simulate) in (0, 1)
    (out := tmp_path / "out").mkdir()
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "hil_server", "export", str(tmp_path / "run/run.mcap"), "--format", "foxglove", "--scene-hz", "1000",
               "--out", str(out / "a.foxglove.mcap")]  # fmt: skip
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
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


# ------------------------------------------------------------------------------------------------------------- no press is lost


class Swallows:
    """An object in whose end a press falls: Python prints what is raised there and continues."""

    def __del__(self):
        ctrl_c()


def swallowed():
    Swallows()


def made_an_exit_of(kind):
    def body():
        try:
            ctrl_c()
        except KeyboardInterrupt:
            raise kind("a library did not expect that") from None

    return body


def suppressed():
    try:
        ctrl_c()
    except BaseException:  # as a library does that guards its callbacks
        pass


@pytest.mark.parametrize("body", [swallowed, suppressed, *map(made_an_exit_of, (RuntimeError, ImportError, SystemExit))])
def test_a_press_that_somebody_swallows_is_obeyed(verb, body, capsys):
    reported = []

    def work(args):
        body()
        reported.append("the end")
        return {"exit_code": 0}

    verb(work)
    before = signal.getsignal(signal.SIGINT)
    assert cli.main(["probe"]) == 130
    assert capsys.readouterr().err == "interrupted: all of it\n", "one line, and nothing of what Python ignored"
    assert signal.getsignal(signal.SIGINT) is before


def test_work_that_tells_how_far_it_is_hears_of_a_swallowed_press(verb):
    steps = []

    def work(args):
        with progress.working("this") as done:
            suppressed()
            for k in range(5):
                steps.append(k)
                done(k, 5)

    verb(work)
    assert cli.main(["probe"]) == 130 and steps == [0]


def test_a_press_after_the_verb_has_reported_changes_nothing(verb, monkeypatch):
    verb(lambda args: {"exit_code": 0})
    leave = interrupts.owned.__exit__

    def late(self, *error):
        if type(self) is interrupts.owned:
            ctrl_c()
        return leave(self, *error)

    monkeypatch.setattr(interrupts.owned, "__exit__", late)
    assert cli.main(["probe"]) == 0


@pytest.mark.parametrize("number, inherited, code", [
    (signal.SIGTERM, signal.SIG_DFL, 130),
    (signal.SIGTERM, signal.SIG_IGN, 130),
    (signal.SIGHUP, signal.SIG_DFL, 130),
    (signal.SIGHUP, signal.SIG_IGN, 0),  # of nohup
])  # fmt: skip
def test_a_terminal_that_closes_and_a_request_to_end_are_presses(verb, number, inherited, code):
    former = signal.signal(number, inherited)
    try:
        verb(lambda args: signal.raise_signal(number))
        assert cli.main(["probe"]) == code
    finally:
        signal.signal(number, former)


def test_a_press_while_python_makes_code_ends_with_the_exit_code_too():
    """A KeyboardInterrupt that passes through an `exec` of text, as in the making of a dataclass while a module is imported."""
    code = """
import sys
from hil_server import interrupts
def work():
    try:
        with interrupts.heard():
            exec("import signal; signal.raise_signal(signal.SIGINT)")
    except KeyboardInterrupt:
        return interrupts.INTERRUPTED
sys.exit(interrupts.to_the_end(work))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 130


# ------------------------------------------------------------------------------------------------------------- before the loop

STEPS = {
    "host": ("hil_server.host.realtime_host.RealtimeHost.__enter__",),
    "virtual stand": (stand, "virtual_stand"),
    "devices": (assembly, "devices"),
    "line": (assembly, "live"),
    "prediction": ("hil_server.predict.prediction.predict",),
    "header": (session, "header"),
    "telemetry": (telemetry_process.TelemetryProcess, "start"),
    "record watch": (telemetry_process.RecordWatch, "__init__"),
    "drives opened": ("drivers.drives.axes_session.AxesSession.open",),
    "recoverer": (session, "Recoverer"),
}


def children():
    """Numbers of the processes that this one has started and that still run."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(file.read().split())


@pytest.mark.parametrize(("step", "when"), [("host", "before"), ("drives opened", "before"), *((step, "after") for step in STEPS)])
def test_nothing_is_started_after_a_press_in_the_preparation(step, when, tmp_path, monkeypatch, capfd):
    whole, pressed = STEPS[step], []
    owner, name = whole if len(whole) == 2 else _found(whole[0])
    static = isinstance(owner.__dict__[name], classmethod) if isinstance(owner, type) else False
    original = getattr(owner, name)

    def with_a_press(*arguments, **keys):
        if when == "before" and not pressed:
            pressed.append(True)
            ctrl_c()
        result = original(*arguments, **keys)
        if when == "after" and not pressed:
            pressed.append(True)
            ctrl_c()
        return result

    monkeypatch.setattr(owner, name, staticmethod(with_a_press) if static else with_a_press)
    monkeypatch.setattr(session, "_loop", lambda test: pytest.fail("the loop was started"))
    addresses = [f"telemetry.{key}=ipc://{tmp_path}/{key}" for key in ("publish", "command", "hand_controller")]
    settings = [word for key in (*addresses, "test.duration_max_s=1.0") for word in ("--set", key)]
    before = children()
    assert cli.main(["run", *settings, "--quiet", "--out", str(tmp_path / "out" / "run")]) == 130
    assert pressed, "the step was come to"
    lines = [line for line in capfd.readouterr().err.splitlines() if "interrupted" in line]
    assert lines == ["interrupted: nothing was armed, nothing has moved, there is no log"]
    assert children() == before and not (tmp_path / "out").exists()


def _found(path):
    """(owner, name) of a dotted path to an attribute of a class or a module."""
    import importlib

    *head, name = path.split(".")
    for k in range(len(head), 0, -1):
        try:
            owner = importlib.import_module(".".join(head[:k]))
        except ModuleNotFoundError:
            continue
        for part in head[k:]:
            owner = getattr(owner, part)
        return owner, name
    raise LookupError(path)


# ------------------------------------------------------------------------------------------------------------- in the loop


def pressing(monkeypatch, phases):
    """Presses Ctrl-C when the run is first seen in each of the phases, in this order."""
    look, left = progress.Stopper.look, list(phases)

    def seen(self):
        newest = self._test.block.newest()
        if newest is not None and left:
            at = int(np.frombuffer(newest[: progress.SAMPLE_DTYPE.itemsize], progress.SAMPLE_DTYPE)[0]["phase"])
            if at == CODES["phase"][left[0]]:
                left.pop(0)
                ctrl_c()
        return look(self)

    monkeypatch.setattr(progress.Stopper, "look", seen)
    return left


@pytest.mark.parametrize(
    ("phases", "end"),
    [(["position"], "stopped"), (["position", "finish"], "tripped"), (["position", "finish", "fault"], "tripped")],
)
def test_presses_while_the_loop_runs(phases, end, tmp_path, monkeypatch, capsys):
    """Parked; aborted; ended at rest: a log that is whole, a summary, one line."""
    left = pressing(monkeypatch, phases)
    settings = [word for key in (*NO_BUS, *QUICK, "guidance.recover_s=600.0", "guidance.fault_s=0.2", "test.duration_max_s=120.0")
                for word in ("--set", key)]  # fmt: skip
    if len(phases) == 2:
        settings += ["--set", "guidance.recover_s=0.0"]
    with in_a_world(tmp_path / "run"):
        assert cli.main(["run", *settings, "--quiet", "--no-report", "--out", str(tmp_path / "run")]) == 130
    reported = capsys.readouterr()
    assert not left and f"end       {end}" in reported.out and "exit code 130" in reported.out
    assert [line for line in reported.err.splitlines() if line.startswith("interrupted")] == [
        f"interrupted: the loop has ended, the log is complete: {tmp_path / 'run' / 'run.mcap'}"
    ]
    log = read_log(tmp_path / "run" / "run.mcap")
    assert log.complete and log.records["time_ns"][-1] < 100e9
    rate = np.diff(log.records["leg_setpoint"], axis=0)[-3:]
    assert np.abs(rate).max() < 1e-9, "the setpoints rest at the end"
