"""The page on the client: its examples run as they stand, and the client does what its table of lost connections says."""

import contextlib
import io
import re
import threading
from pathlib import Path

import pytest

from hil_server.bus.process import TelemetryProcess
from hil_server.bus.settings import TelemetrySettings
from hil_server.client import Client, CommandError, NoAnswerError
from tests.processes import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
WATCH, FOR_EVER, IN_LOOP = re.findall(r"<!-- snippet: in tests/\S+ -->\n```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def addresses():
    return {f"{name}_address": f"tcp://127.0.0.1:{free_port()}" for name in ("telemetry", "command", "hand")}


@pytest.fixture
def run(addresses, header, loop_stand_in):
    """run(name) starts a run on the addresses; its result ends it. What is left is ended afterwards."""
    ends = []

    def start(name="RT-07"):
        header.run_id = name
        loop = loop_stand_in()
        process = TelemetryProcess.start(loop.block.fd, TelemetrySettings(log_path="", **addresses), header)
        thread = threading.Thread(target=loop.run)
        thread.start()

        def end():
            loop.stop()
            thread.join()
            if process.alive:
                process.finish({})

        ends.append(end)
        return end

    yield start
    for end in ends:
        end()


def executed(text, addresses):
    """Runs an example on these addresses; returns what it printed and its names."""
    here = f'"{addresses["telemetry_address"]}", "{addresses["command_address"]}"'
    text = re.sub(r"(Client\()(?=\))", rf"\1{here}", text).replace('Client(name', f"Client({here}, name")
    names, reported = {}, io.StringIO()
    with contextlib.redirect_stdout(reported):
        exec(compile(text, "docs/client.md", "exec"), names)
    return reported.getvalue(), names


def test_watch_and_command(run, addresses):
    run()
    reported, _ = executed(WATCH.replace("LIMIT_N = 4000.0", "LIMIT_N = 0.1"), addresses)
    assert re.fullmatch(r"run RT-07\n\d\.\d N at \d+\.\d{3} s: held at tick \d+\n", reported)


def test_in_an_event_loop(run, addresses):
    run()
    reported, _ = executed(IN_LOOP, addresses)
    assert re.fullmatch(r"1\.0 N\n", reported)  # the loop's stand-in: a sine of amplitude 1


def test_batches_continue_over_a_restart_of_the_server(run, addresses):
    end = run("first")
    _, names = executed(FOR_EVER, addresses)
    reported = io.StringIO()
    with Client(addresses["telemetry_address"], addresses["command_address"]) as stand, contextlib.redirect_stdout(reported):
        batches = names["batches"](stand, ["phase"])
        assert next(batches).run == "first"
        end()
        run("second")
        assert next(b for b in batches if b.run == "second")
        assert stand.command("hold").tick > 0  # the same client's commands too
    assert "run first with stand.toml" in reported.getvalue() and "run second with" in reported.getvalue()


def test_no_answer(addresses):
    with Client(addresses["telemetry_address"], addresses["command_address"], timeout_s=0.2) as stand:
        for ask in (stand.status, stand.describe, lambda: stand.command("hold"), lambda: next(stand.subscribe(timeout_s=0.2))):
            with pytest.raises(NoAnswerError):
                ask()
        with pytest.raises(CommandError):
            stand.command("hodl")


def test_a_server_that_goes_away(run, addresses):
    end = run()
    with Client(addresses["telemetry_address"], addresses["command_address"], timeout_s=0.3) as stand:
        batches = stand.subscribe(timeout_s=0.5)
        next(batches)
        end()
        with pytest.raises(NoAnswerError, match=r"no telemetry from .* within 0\.5 s"):
            for _ in batches:
                pass
        with pytest.raises(NoAnswerError):
            stand.status()
        run()
        assert next(stand.subscribe(timeout_s=30.0)).run == "RT-07"
