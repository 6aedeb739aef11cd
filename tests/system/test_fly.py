"""A rehearsal is one command: `hil-server fly` runs the test and serves the page whose sticks the loop takes."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from websockets.sync.client import connect

from hil_server import cli
from hil_server.client import Client
from hil_server.config import SHIPPED, load_test
from hil_server.log.reader import read_log
from tests.processes import free_port
from tests.system.line_runs import QUICK
from tools.interrupt_instants import handles_sigterm

ROOT = Path(__file__).resolve().parents[2]


def fly(*arguments):
    command = [sys.executable, "-m", "hil_server", "fly", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def own_addresses(folder):
    """Port of the page, addresses of the run, and the words that set these."""
    addresses = {name: f"ipc://{folder}/{name}" for name in ("publish", "command", "hand_controller")}
    return free_port(), addresses, [part for name, address in addresses.items() for part in ("--set", f"telemetry.{name}={address}")]


def test_the_shipped_berthing_is_a_rehearsal():
    assert load_test(SHIPPED / "programmes" / "berthing_operator.toml").test["rehearsal"] is True


def test_one_command_runs_the_rehearsal_and_its_page_flies_it(tmp_path):
    port, addresses, settings = own_addresses(tmp_path)
    for key in QUICK[2:]:  # not its speeds: periods that a busy machine skips are then beyond the limits of the legs
        settings += ["--set", key]
    process = fly("--port", str(port), "--leave", "--quiet", "--no-report", "--operator", "Ada", "--out", str(tmp_path / "run"), *settings)
    try:
        page = process.stdout.readline().split()[-1]
        assert page == f"http://127.0.0.1:{port}/operator?hand=1"
        with urllib.request.urlopen(page, timeout=20) as answer:
            text = answer.read().decode()
        assert '\\"w\\": [0, 1]' in text or '"w": [0, 1]' in text, "the page has the table of keys"
        number = re.search(r'hilPane = \\?"([^"\\]+)', text).group(1)
        with (
            Client(addresses["publish"], addresses["command"], timeout_s=30.0) as client,
            connect(f"ws://127.0.0.1:{port}/live/{number}", max_size=None) as line,
        ):
            seen = client.subscribe(["hand_axis", "hand_buttons"], topic="slow", timeout_s=60.0)
            next(seen)
            rehearses = False
            for batch in seen:
                while not rehearses:  # the page knows it from the run itself
                    rehearses = bool(json.loads(line.recv(timeout=30)).get("things", {}).get("rehearsal"))
                line.send(json.dumps({"hand": [0.0] * 6, "buttons": 1}))
                if batch.last["hand_buttons"][0] & 1:
                    break
            assert batch.last["hand_buttons"][0] & 1
            client.command("stop")
        out, err = process.communicate(timeout=90)
        assert "stopped" in out, (out, err)
        log = read_log(tmp_path / "run" / "run.mcap")
        assert "rehearsal = true" in log.header.configuration["configuration.toml"] and 'operator = "Ada"' in str(log.header.configuration)
    finally:
        process.kill()
        process.communicate()


def test_the_page_ends_with_a_rehearsal_that_is_killed(tmp_path):
    port, _, settings = own_addresses(tmp_path)
    process = fly("--port", str(port), "--quiet", "--no-report", "--out", str(tmp_path / "run"), *settings)
    try:
        assert process.stdout.readline().startswith("fly ")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        serving = [int(pid) for pid in children if b"\0console\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        page = os.pidfd_open(serving[0])
    finally:
        process.kill()
        process.communicate()
    assert select.select([page], [], [], 60.0)[0] == [page], "it serves on"
    os.close(page)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("",), ".: is a folder"),
        (("programmes/berthing_rt.toml",), "is a programme, not a test: fly takes one test"),
        (("ghost.toml",), "ghost.toml"),
    ],
)
def test_what_cannot_be_flown_is_refused_before_anything_is_served(arguments, why):
    process = fly(*arguments)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and why in err and "fly " not in out


def test_a_press_while_the_page_starts_is_answered_with_one_line(tmp_path, monkeypatch, capfd):
    started, start = [], subprocess.Popen

    def with_a_press(*arguments, **keys):
        started.append(start(*arguments, **keys))
        while not handles_sigterm(started[-1].pid):  # it has come to its first line
            pass
        signal.raise_signal(signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", with_a_press)
    port, _, settings = own_addresses(tmp_path)
    assert cli.main(["fly", "--port", str(port), "--out", str(tmp_path / "run"), *settings]) == 130
    assert capfd.readouterr() == ("", "interrupted: nothing was armed, nothing has moved, there is no log\n")
    assert len(started) == 1 and started[0].returncode is not None and not (tmp_path / "run").exists()
