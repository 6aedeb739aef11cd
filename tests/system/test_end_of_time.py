"""The loop never stops from motion: at the end of its time, after an error of the supervisor, at the end of an excitation that is stopped,
the setpoints come to rest inside their limits first; an abort before the first tick moves nothing."""

import random
import threading

import numpy as np
import pytest

from hil_server import cli
from hil_server.bus.commands import TIME_IS_UP
from hil_server.client import Client
from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.log.reader import read_log
from hil_server.run import session
from hil_server.run.session import Options, run_live
from hil_server.world.hunter import NO_BUS
from rt_kernels.command_latch import CommandLatch
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.ring import SharedBlock
from tests.system.line_runs import QUICK, fault_names, in_a_world
from tools import end_instants

PHASE, COMMAND = CODES["phase"], CODES["command"]
IN_FRAME = 1e-4  # m/s, of rest


def of(folder, *more):
    """Settings of a stand in software with addresses of its own."""
    return [*(f"telemetry.{key}=ipc://{folder}/{key}" for key in ("publish", "command", "hand_controller")), *more]


def comes_to_rest(records, config):
    """Whether the setpoints of the last frame rest, and no frame changed a rate by more than the acceleration limit allows."""
    rate = records["leg_rate_setpoint"]
    step = config.stand["platform"]["leg_acceleration_max_m_s2"] / config.test["rate_hz"]
    return np.abs(rate[-1]).max() <= IN_FRAME and np.abs(np.diff(rate, axis=0)).max() <= 1.0001 * step * records["periods"].max()


def test_a_live_run_whose_time_is_up_is_led_home(tmp_path):
    config = load_test(None, [*NO_BUS, *QUICK, "test.duration_max_s=1.3"])
    with in_a_world(tmp_path / "run"):
        summary = run_live(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))
    assert summary["end"] == "time" and summary["exit_code"] == 1 and summary["complete"]
    r = read_log(summary["log"]).records
    at = int(np.flatnonzero(r["command_code"] == COMMAND["park"])[0])
    assert 1.3 <= r["time_ns"][at] * 1e-9 < 1.3 + 1e-3 * r["periods"][at] and r["command_arg"][at][0] == TIME_IS_UP
    assert np.abs(r["leg_rate_setpoint"][at]).max() > 100 * IN_FRAME, "it was moving"
    assert comes_to_rest(r, config) and r["phase"][-1] == PHASE["ended"]
    assert cli.main(["replay", summary["log"], "--verify"]) == 0


def test_a_run_that_waits_when_its_time_is_up_just_ends(tmp_path):
    config = load_test(None, [*NO_BUS, "test.duration_max_s=0.5", "guidance.auto_start=false"])
    with in_a_world(tmp_path / "run"):
        summary = run_live(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))
    assert summary["end"] == "stopped" and summary["exit_code"] == 0 and summary["duration_s"] < 0.6


def test_an_error_of_the_supervisor_leads_the_platform_home_and_keeps_the_record(tmp_path, monkeypatch):
    look = session.Recoverer.look

    def fails(self):
        look(self)
        newest = self._block.newest()
        if newest is not None and np.frombuffer(newest[: SAMPLE_DTYPE.itemsize], SAMPLE_DTYPE)[0]["phase_time"] > 1.0:
            raise RuntimeError("a defect")

    monkeypatch.setattr(session.Recoverer, "look", fails)
    config = load_test(None, [*NO_BUS, *QUICK])
    with pytest.raises(RuntimeError, match="a defect"), in_a_world(tmp_path / "run"):
        run_live(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))
    log = read_log(tmp_path / "run" / "run.mcap")
    assert log.complete and log.end["exit_code"] == 5 and "a defect" in log.end["failed"]
    at = int(np.flatnonzero(log.records["command_code"] == COMMAND["park"])[0])
    assert np.abs(log.records["leg_rate_setpoint"][at]).max() > IN_FRAME and comes_to_rest(log.records, config)


def test_an_excitation_that_is_stopped_comes_to_rest():
    config = load_test("programmes/identify.toml", ["guidance.slow_amplitude_m=0.05"])
    test = assembly.simulation(config)
    test.line.clock.extend(2300)
    run_all(test)
    moving = test.line.sample["leg_rate_setpoint"][0]
    assert np.abs(moving).max() > 10 * IN_FRAME
    test.block.push_command(COMMAND["stop"], source=1)
    test.line.clock.extend(4000)
    records = run_all(test)
    ended = np.flatnonzero(records["phase"] == PHASE["ended"])
    assert ended[0] == 0 and 1 < len(ended) < 1000 and records["end_cause"][-1] == CODES["end_cause"]["stopped"]
    assert comes_to_rest(records, config)


@pytest.mark.parametrize("kind", ["time", "ctrl_c", "exception", "abort", "hold"])
@pytest.mark.parametrize("programme", ["docking", "identify"])
def test_ends_at_instants_over_the_whole_run(programme, kind):
    """Inside the limits to the last frame, at rest there, with an exit code that says so. (Hundreds of instants: tools/end_instants.py.)"""
    free = end_instants.flight(programme, 14.0)
    free.join(1e4)
    r = free.taken()
    t = r["time_ns"] * 1e-9
    over_s = float(t[np.argmax(r["end_cause"] != CODES["end_cause"]["none"])])
    for share in (0.1, 0.45, 0.8):
        at_s = share * (over_s if kind != "hold" or programme == "identify" else float(r["first_contact_time"][-1]))
        one, presses = end_instants.ended(kind, programme, at_s, random.Random(int(100 * share)))
        assert end_instants.wrong(kind, one, presses, over_s, at_s) == [], f"{kind} at {at_s:.3f} s"
        assert one.seconds < t[-1] or kind != "abort"


def test_what_is_held_against_an_end_sees_a_step_and_a_frame_in_motion():
    one, _ = end_instants.ended("ctrl_c", "docking", 2.0, random.Random(1))
    r = one.taken().copy()
    for field, tick, word in (("leg_rate_setpoint", 1000, "a rate steps"), ("leg_setpoint", 1000, "a frame steps"),
                              ("leg_rate_setpoint", -1, "the last frame")):  # fmt: skip
        spoilt = r.copy()
        spoilt[field][tick] += 0.02
        one.records = [spoilt.tobytes()]
        assert any(word in line for line in end_instants.wrong("ctrl_c", one, 1, 9.0, 2.0)), word
    one.records = [r[: len(r) // 2].tobytes()]
    assert end_instants.wrong("ctrl_c", one, 0, 9.0, 2.0) != [], "cut with exit code 0"


def run_all(test):
    """Runs the line to its end; its records."""
    records = []
    thread = threading.Thread(target=test.line.run)
    thread.start()
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (test.block.aux_count,))])
    while thread.is_alive() or test.block.head > test.block.tail:
        if data := test.block.drain():
            records.append(np.frombuffer(data, dtype))
        thread.join(0.001)
    return np.concatenate(records)


def test_the_latch_gives_its_commands_once_and_lets_others_go_first():
    block = SharedBlock.create(16)
    latch = CommandLatch(block=block)
    latch.end_at(1_000_000_000, 2_000_000_000)
    given = []
    block.push_command(COMMAND["hold"], source=1)
    sample = np.zeros(1, SAMPLE_DTYPE)
    for ns in (0, 999_999_999, 1_000_000_000, 1_001_000_000, 1_999_000_000, 2_000_000_000, 3_000_000_000):
        if ns == 1_000_000_000:
            block.push_command(COMMAND["resume"], source=1)
        sample["time_ns"] = ns
        latch.read(sample)
        given.append(int(sample["command_code"][0]))
    assert given == [COMMAND[name] for name in ("hold", "none", "resume", "park", "none", "abort", "none")]


def test_an_abort_before_the_first_tick_moves_nothing(tmp_path, monkeypatch):
    """The command socket answers before the loop runs: what comes there counts."""
    made, answers = session.Recoverer, []

    def with_an_abort(block, *rest):
        def command():
            with Client(command=f"ipc://{tmp_path}/command", timeout_s=60.0) as client:
                answers.append(client.command("abort"))

        thread = threading.Thread(target=command)
        thread.start()
        while not block.commands_waiting and thread.is_alive():
            thread.join(0.01)
        return made(block, *rest)

    monkeypatch.setattr(session, "Recoverer", with_an_abort)
    summary = run_live(load_test(None, of(tmp_path)), Options(out=str(tmp_path / "run"), quiet=True, report=False))
    assert summary["end"] == "tripped" and summary["exit_code"] == 3 and len(answers) == 1 and answers[0].tick == 0
    r = read_log(summary["log"]).records
    assert "operator_stop" in fault_names(r["faults"][-1])
    assert set(r["safety_state"]) == {CODES["safety_state"]["not_armed"]}, "nothing of ours was sent"
    assert set(r["phase"]) <= {PHASE["idle"], PHASE["fault"], PHASE["ended"]}
