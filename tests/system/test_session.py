"""What a session decides around its loop: whether it may begin, how it leads home, what it says of an end. It flies where it must."""

import logging
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from hil_server.bus.process import TelemetryProcess
from hil_server.config import SHIPPED, load_test
from hil_server.errors import ConfigurationError, HilError, InternalError, UsageError, VerdictError
from hil_server.judge import loads
from hil_server.log.format import LogError
from hil_server.log.reader import read_log
from hil_server.predict import course
from hil_server.report import run_page
from hil_server.run import session
from hil_server.run.session import Options, run_live, simulate
from hil_server.run.stand import opened_in_order
from rt_kernels.layout import CODES, FAULTS, SAMPLE_DTYPE
from tests.drivers.plain_stand import SleptTime

COMMAND = CODES["command"]
QUIET = {"quiet": True, "report": False}
PROGRAMME = SHIPPED / "programmes" / "virtual_docking.toml"


def of(folder, *more):
    """Settings of a stand in software with addresses of its own."""
    return [*(f"telemetry.{key}=ipc://{folder}/{key}" for key in ("publish", "command", "hand_controller")), *more]


# ------------------------------------------------------------------------------------------------------------------ beginning


def test_a_device_whose_closing_fails_keeps_no_other_one_open():
    """The drives are opened first and closed last: an adapter that was unplugged is no reason to leave them."""
    drives, sensor, signals = Mock(), Mock(), Mock()
    sensor.close.side_effect = RuntimeError("adapter unplugged")
    with pytest.raises(RuntimeError, match="unplugged"), opened_in_order([drives, sensor, signals]):
        pass
    assert all(device.close.call_count == 1 for device in (drives, sensor, signals))


def test_what_a_test_does_not_say_of_a_tare_is_a_second_where_its_wrench_path_can_take_one():
    plain, given = load_test(None, []), load_test(None, ["wrench.tare_s=0.5"])
    assert session.tared(plain).document["wrench"]["tare_s"] == session.LIVE_TARE_S == 1.0
    assert session.tared(given) is given
    setup = SimpleNamespace(stages={"wrench": SimpleNamespace(role="events", name="docking", keys={})})
    other = SimpleNamespace(setup=setup)
    assert session.tared(other) is other


@pytest.mark.parametrize(("programme", "keys", "in_air"), [
    ("docking", [], False), ("identify", [], True), ("docking", ["setpoint_kinematics.crafts_only=true"], True),
])  # fmt: skip
def test_a_run_in_air_is_one_that_feels_no_contact(programme, keys, in_air):
    assert session._in_air(load_test(SHIPPED / "programmes" / f"{programme}.toml", keys)) is in_air


@pytest.mark.parametrize(("unknown", "force", "notes"), [
    ([], False, 0), ([], True, 0), (["drive_delay_s"], True, 1), (["drive_delay_s", "sensor_delay_s"], True, 2),
    (["drive_delay_s"], False, None),
])  # fmt: skip
def test_a_delay_that_is_not_known_is_refused_unless_forced(unknown, force, notes):
    config = SimpleNamespace(setup=SimpleNamespace(stand=SimpleNamespace(unknown_delays=unknown)), paths={"stand": "stand.toml"})
    if notes is None:
        with pytest.raises(ConfigurationError, match="stand.toml: not armed, a delay is not known: drive_delay_s"):
            session._delays_known(config, Options(force=force))
    else:
        found = session._delays_known(config, Options(force=force))
        assert len(found) == notes and all("delay not known, counted as 0" in note for note in found)


@pytest.mark.parametrize(("within", "force", "notes"), [
    (None, False, 0), (True, False, 0), (True, True, 0), (False, True, 1), (False, False, None)])  # fmt: skip
def test_a_contact_outside_of_its_band_is_refused_unless_forced(within, force, notes):
    found = None if within is None else SimpleNamespace(within=within, verdict=lambda: "it gains energy")
    if notes is None:
        with pytest.raises(VerdictError, match="not armed: it gains energy"):
            session._permitted(found, Options(force=force))
    else:
        assert len(session._permitted(found, Options(force=force, quiet=True))) == notes


@pytest.mark.parametrize("quiet", [False, True])
def test_a_quiet_session_says_nothing(caplog, quiet):
    caplog.set_level(logging.INFO)
    session._say(Options(quiet=quiet), "a message")
    assert ("a message" in caplog.text) is not quiet


def test_a_flight_that_is_asked_for_again_follows_in_the_same_folder(monkeypatch):
    flown, begins = [], iter([(3.0, 1.0), None])

    def fly(config, options, begin):
        flown.append((config, options.out, begin))
        asked = next(begins)
        return {"log": f"runs/there/run{len(flown)}.mcap"} | ({"again": asked} if asked else {})

    again = SimpleNamespace(test=SimpleNamespace(config="as logged"), lost=["the operator's view"])
    monkeypatch.setattr(session, "_fly", fly)
    monkeypatch.setattr(session, "read_log", lambda path: path)
    monkeypatch.setattr(session, "tick_asked_for", lambda log, *numbers: (log, numbers))
    monkeypatch.setattr(session, "at_tick", lambda log, tick: again)
    summary = session._flights("as given", Options(**QUIET), None)
    assert flown == [("as given", None, None), ("as logged", str(Path("runs/there")), again)]
    assert summary == {"log": "runs/there/run2.mcap", "flights": ["runs/there/run1.mcap", "runs/there/run2.mcap"]}
    begins = iter([None])
    assert "flights" not in session._flights("as given", Options(**QUIET), None)


def test_a_live_run_logs_every_tick(tmp_path):
    with pytest.raises(ConfigurationError, match="telemetry.log_every: 2, a live run logs every tick"):
        run_live(load_test(None, of(tmp_path, "telemetry.log_every=2")), Options(out=str(tmp_path / "run"), **QUIET))


class EnoughError(Exception):
    """The run has come as far as the test asks."""


@pytest.mark.parametrize(("programme", "hardware", "predictions", "asked"), [
    ("docking", False, [], ["loads"]),
    ("docking", False, ["run.mcap"], ["loads", "held against run.mcap"]),
    ("docking", True, ["run.mcap"], ["signed", "loads of hardware", "legs", "delays", "held against run.mcap"]),
    ("identify", False, ["run.mcap"], []),
    ("identify", True, [], ["signed"]),
])  # fmt: skip
def test_what_a_stand_is_asked_before_its_devices_are_touched(tmp_path, monkeypatch, caplog, programme, hardware, predictions, asked):
    """Of hardware its signature; where there will be contact the loads, on hardware also legs and delays; then the run is held against its
    prediction."""
    caplog.set_level(logging.INFO)
    seen = []

    def part(word):
        return lambda *_: seen.append(word) or [f"note on {word}"]

    def held(config, logs):
        seen.append(f"held against {', '.join(logs)}")
        return "held"

    def enough(config):
        raise EnoughError("held" if config == "held" else "as given")

    monkeypatch.setattr(session.narrowing, "demand_signed", lambda *_: seen.append("signed"))
    monkeypatch.setattr(session.leg_record, "demand", part("legs"))
    monkeypatch.setattr(session, "_delays_known", part("delays"))
    monkeypatch.setattr(loads, "allowed", lambda config, logs, on_hardware, why: part("loads of hardware" if on_hardware else "loads")())
    monkeypatch.setattr(course, "held_against", held)
    monkeypatch.setattr(session, "tared", enough)
    stand = [f'test.stand="{SHIPPED / "stands" / "ethercat_stand.toml"}"'] if hardware else []
    config = load_test(SHIPPED / "programmes" / f"{programme}.toml", of(tmp_path, *stand))
    with pytest.raises(EnoughError, match="held" if "held against run.mcap" in asked else "as given"):
        run_live(config, Options(out=str(tmp_path / "run"), predictions=predictions, report=False))
    assert seen == asked
    assert [line.getMessage() for line in caplog.records if "note on" in line.getMessage()] == [
        f"note on {word}" for word in asked if word.split()[0] in ("loads", "legs", "delays")
    ]


@pytest.mark.parametrize("desk", [False, True])
def test_a_rehearsal_is_no_hardware(tmp_path, monkeypatch, caplog, desk):
    """It may be flown again, no line asks a person to start it; a desk of its own goes with it, one that lasts is left."""
    caplog.set_level(logging.INFO)
    start, told = TelemetryProcess.start, []

    def started(fd, settings, facts):
        told.append(settings)
        Path(settings.desk).write_text("{}")
        return start(fd, settings, facts)

    monkeypatch.setattr(TelemetryProcess, "start", started)
    config = load_test(None, of(tmp_path, "test.duration_max_s=0.2", "guidance.auto_start=false"))
    summary = run_live(config, Options(out=str(tmp_path / "run"), report=False, desk=str(tmp_path / "desk.json") if desk else ""))
    assert summary["end"] == "stopped" and summary["complete"] and "again" not in summary and "flights" not in summary
    (settings,) = told
    assert "again" in settings.commands and Path(settings.desk) == (tmp_path if desk else tmp_path / "run") / "desk.json"
    assert Path(settings.desk).exists() is desk
    assert "waiting for the command start" not in caplog.text and f"log {tmp_path / 'run' / 'run.mcap'}" in caplog.text


@pytest.mark.parametrize("complete", [True, False])
def test_a_flight_is_flown_again_when_that_was_asked_for_and_its_record_is_whole(tmp_path, monkeypatch, complete):
    class Asked:
        def __init__(self, block):
            self.asked = None

        def look(self):
            first, self.asked = self.asked is None, (3.0, 1.0)
            return first

    close, told = session._close_record, []

    def closed(telemetry, facts, lost):
        told.append(facts)
        return close(telemetry, facts, lost) | ({} if complete else {"complete": False, "reasons": ["no room"]})

    monkeypatch.setattr(session, "Wish", Asked)
    monkeypatch.setattr(session, "_close_record", closed)
    config = load_test(None, of(tmp_path, "guidance.auto_start=false"))
    summary = session._fly(config, Options(out=str(tmp_path / "run"), **QUIET), None)
    assert (told[0]["end"], told[0]["exit_code"]) == ("again", 0)
    assert summary.get("again") == ((3.0, 1.0) if complete else None)
    assert summary["record_lost"] == ("" if complete else "no room") and summary["complete"] is complete


# ------------------------------------------------------------------------------------------------------------------ simulated


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Function (every) → summary of the beginning of a docking whose log has one tick in so many."""

    @cache
    def made(every):
        folder = tmp_path_factory.mktemp(f"every{every}")
        config = load_test(PROGRAMME, ["test.duration_max_s=0.3", f"telemetry.log_every={every}"])
        return simulate(config, Options(out=str(folder / "run"), **QUIET))

    return made


def test_a_simulation_whose_log_is_cut_names_the_faults_of_all_its_ticks(tmp_path, monkeypatch):
    blocks, stood = session.blocks, iter([2, 4])  # the log has them not

    def with_faults(*arguments):
        for records in blocks(*arguments):
            records["faults"] |= next(stood, 0)
            yield records

    class Cut(session.LogWriter):
        def write(self, records):
            pass

        def close(self, facts):
            super().close(facts)
            self.reasons.append("no room")
            return False

    monkeypatch.setattr(session, "blocks", with_faults)
    monkeypatch.setattr(session, "LogWriter", Cut)
    summary = simulate(load_test(PROGRAMME, ["test.duration_max_s=0.3"]), Options(out=str(tmp_path / "run"), **QUIET))
    assert (summary["exit_code"], summary["record_lost"]) == (3, "no room") and {"sensor_stale", "sensor_lost"} <= set(summary["faults"])


@pytest.mark.parametrize("every", [1, 2])
def test_a_simulation_says_what_it_has_simulated_and_how_fast(run, every):
    begun, busy = session.time.perf_counter(), session.time.process_time()
    summary = run(every)
    begun, busy = session.time.perf_counter() - begun, session.time.process_time() - busy
    log = read_log(summary["log"])
    assert log.complete and 0.0 < log.end["seconds"] <= begun and 0.0 < log.end["processor_seconds"] <= busy
    ticks = int(log.records["tick"][-1]) + 1
    assert summary["ticks_run"] == ticks > 300
    simulated_s = summary["realtime_factor"] * log.end["seconds"], summary["realtime_factor_of_a_core"] * log.end["processor_seconds"]
    assert simulated_s == pytest.approx([1e-9 * log.header.period_ns * ticks] * 2, abs=0.0015)
    # a log that has every tick is judged from itself
    thinned = any(note.startswith("thinned log: one tick in") for note in log.header.notes)
    assert thinned is ("requirements" in log.end) is (log.ticks < ticks) is (every > 1)


# ------------------------------------------------------------------------------------------------------------------- leading home


class Loop:
    """A loop that ends when it is stopped, or `ends_s` after its first command, and rests from `rests_s` on."""

    def __init__(self, monkeypatch, ends_s=1e9, rests_s=1e9, full=0):
        self.passing, self.ends_s, self.rests_s, self.full = SleptTime(), ends_s, rests_s, full
        self.commands, self.stopped, self.beats, self.looks = [], [], 0, 0
        monkeypatch.setattr(session, "time", self.passing)
        self.block = SimpleNamespace(push_command=self.push, request_stop=self.stop, heartbeat=self.beat)
        session._lead_home(self, self, self)

    def is_alive(self):
        return not self.stopped and self.passing.passed < self.ends_s

    def join(self, seconds):
        self.passing.sleep(seconds)

    def stop(self):
        self.stopped.append(self.passing.passed)

    def beat(self):
        self.beats += 1

    def push(self, code, source):
        if self.full:
            self.full -= 1
            raise BufferError
        self.commands.append((code, round(self.passing.passed, 1)))

    def look(self):
        self.looks += 1

    def resting(self):
        return self.passing.passed >= self.rests_s


def test_a_loop_without_its_supervisor_is_parked_and_not_stopped_before_it_ends(monkeypatch):
    loop = Loop(monkeypatch, ends_s=3.0, rests_s=0.0)
    assert loop.commands == [(COMMAND["park"], 0.0)] and not loop.stopped and loop.beats == loop.looks >= 150


def test_a_full_queue_is_tried_again(monkeypatch):
    loop = Loop(monkeypatch, ends_s=3.0, full=2)
    assert [code for code, _ in loop.commands] == [COMMAND["park"]]


def test_a_park_that_takes_too_long_is_a_trip_and_the_loop_ends_when_it_rests(monkeypatch):
    loop = Loop(monkeypatch, rests_s=122.0)
    assert loop.commands == [(COMMAND["park"], 0.0), (COMMAND["abort"], 120.0)]
    assert loop.stopped == [pytest.approx(122.0, abs=0.03)]


def test_one_that_never_rests_is_ended_at_last(monkeypatch):
    assert Loop(monkeypatch).stopped == [pytest.approx(130.0, abs=0.03)]


# --------------------------------------------------------------------------------------------------------- the end and its words


@pytest.mark.parametrize(("configured", "trip"), [("trip", 1.0), ("park", 0.0)])
def test_a_run_without_a_record_parks_or_trips_as_configured(configured, trip):
    block = SimpleNamespace(push_command=Mock())
    telemetry = SimpleNamespace(on_record_lost=configured)
    session._end_without_record(SimpleNamespace(block=block, config=SimpleNamespace(setup=SimpleNamespace(telemetry=telemetry))), "no disk")
    block.push_command.assert_called_once_with(COMMAND["record_lost"], (trip,), source=1)


@pytest.mark.parametrize(("lost", "reported", "complete", "reasons"), [
    ("", [], True, []),
    ("", ["full"], False, ["full"]),
    ("full", ["full"], False, ["full"]),
    ("dead", ["full"], False, ["dead", "full"]),
    ("dead", [], False, ["dead"]),
    ("", None, False, ["no answer"]),
    ("dead", None, False, ["dead"]),
])  # fmt: skip
def test_a_record_is_complete_when_nobody_says_otherwise(lost, reported, complete, reasons):
    finish = Mock(side_effect=InternalError("no answer")) if reported is None else Mock(return_value={"reasons": reported})
    found = session._close_record(SimpleNamespace(finish=finish), {"mode": "realtime"}, lost)
    assert found == {"complete": complete, "reasons": reasons}
    finish.assert_called_once_with({"mode": "realtime"}, timeout_s=15.0 if lost else 60.0)


@pytest.mark.parametrize(("cause", "end"), [("tripped", "tripped"), ("record_lost", "record_lost"), ("none", "record_lost")])
def test_how_a_run_ended_whose_log_does_not_say(cause, end):
    sample = np.zeros(1, SAMPLE_DTYPE)
    faults = {name: (mask, severity) for name, mask, severity, *_ in FAULTS}
    note = next(name for name, (_, severity) in faults.items() if severity == "note")
    sample["end_cause"], sample["tick"], sample["missed_total"] = CODES["end_cause"][cause], 41, 2
    sample["faults"] = faults["force_limit"][0]
    found = session._own_facts(SimpleNamespace(line=SimpleNamespace(sample=sample)), faults["moment_limit"][0] | faults[note][0])
    assert found == {"end": end, "exit_code": 3, "ticks_run": 40, "faults_stood": ["force_limit", "moment_limit"]}


@pytest.fixture(scope="module")
def ended(run):
    return read_log(run(1)["log"])


def conclude(log, presses=0, **extra):
    return session._conclude(log.path, Options(**QUIET), extra, log.header, presses)


@pytest.mark.parametrize(("presses", "extra", "interrupted", "code"), [
    (0, {}, False, 0),
    (1, {}, True, 130),
    (2, {"faults_stood": ["operator_stop"]}, True, 130),
    (1, {"faults_stood": ["operator_stop", "force_limit"]}, True, 0),
    (1, {"record_lost": "no disk", "exit_code": 3}, True, 3),
    (0, {"faults_stood": ["operator_stop"]}, False, 0),
    (1, {"not_confirmed": ["leg 2: does not say that it is off"], "exit_code": 4}, True, 4),
])  # fmt: skip
def test_the_exit_code_is_that_of_a_press_where_nothing_else_ended_the_run(ended, presses, extra, interrupted, code):
    summary = conclude(ended, presses, **extra)
    assert (summary["interrupted"], summary["exit_code"], summary["report"]) == (interrupted, code, None)


def test_a_press_while_the_report_is_made_counts_with_those_before(ended, monkeypatch):
    monkeypatch.setattr(session.interrupts, "stands", lambda: True)
    assert conclude(ended, presses=1)["exit_code"] == 130 == conclude(ended)["exit_code"]


@pytest.mark.parametrize(("asked", "presses", "made"), [(True, 0, True), (True, 2, True), (True, 3, False), (False, 0, False)])
def test_a_report_is_made_unless_it_was_pressed_three_times(ended, monkeypatch, asked, presses, made):
    monkeypatch.setattr(session, "_report", Mock(return_value="page.html"))
    summary = session._conclude(ended.path, Options(quiet=True, report=asked), {}, ended.header, presses)
    assert summary["report"] == ("page.html" if made else None)


def test_a_log_that_cannot_be_read_is_an_error_unless_the_record_was_lost(ended, tmp_path):
    gone = replace(ended, path=tmp_path / "none.mcap")
    gone.path.write_bytes(b"nothing")
    with pytest.raises(LogError):
        conclude(gone)
    summary = conclude(gone, record_lost="no disk", end="record_lost", exit_code=3, complete=False)
    assert summary["exit_code"] == 3 and summary["end"] == "record_lost" and summary["ticks"] == 0


@pytest.mark.parametrize(("error", "lost", "raised"), [(UsageError, False, False), (HilError, False, True), (HilError, True, False)])
def test_a_report_that_cannot_be_written_leaves_the_run(monkeypatch, error, lost, raised):
    monkeypatch.setattr(run_page, "make_report", Mock(side_effect=error("no room")))
    if raised:
        with pytest.raises(HilError, match="no room"):
            session._report(Path("run.mcap"), None, None, lost, Options(quiet=True))
    else:
        assert session._report(Path("run.mcap"), None, None, lost, Options(quiet=True)) is None
