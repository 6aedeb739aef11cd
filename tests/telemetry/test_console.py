"""The console: who may look, what the feed keeps, what the replay shows, and both views in a real headless Chromium."""

import base64
import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from hil_server.client import Batch
from hil_server.console.access import Access
from hil_server.console.feed import Feed, limits_of
from hil_server.telemetry.process import TelemetryProcess
from hil_server.telemetry.settings import TelemetrySettings
from rt_kernels.layout import CODES, FAULTS

ROOT = Path(__file__).resolve().parents[2]
ANY = "tcp://127.0.0.1:*"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking".split()
FLAGS += "--disable-component-update --disable-sync --remote-debugging-port=0 --window-size=1500,1000".split()
needs_nicegui = pytest.mark.skipif(importlib.util.find_spec("nicegui") is None, reason="the optional group `console` is not installed")
LOCAL = {"host": "127.0.0.1:8780"}


# -------------------------------------------------------------------------------------------------------------- access


@pytest.mark.parametrize(
    ("headers", "good"),
    [
        (LOCAL, True),
        ({"host": "localhost:8780", "origin": "http://localhost:8780"}, True),
        ({"host": "[::1]:8780"}, True),
        ({"host": "stand7:8780", "origin": "http://stand7:8780"}, True),
        ({"host": "evil.example:8780"}, False),
        ({}, False),
        (LOCAL | {"origin": "http://evil.example"}, False),
        (LOCAL | {"origin": "http://127.0.0.1:9999"}, False),
        (LOCAL | {"origin": "null"}, False),
    ],
)
def test_only_our_own_pages_may_talk(headers, good):
    assert Access(None, names=("stand7",)).may_talk(headers) is good


def test_token():
    access = Access(None, "a-long-secret-token")
    assert not access.knows(LOCAL, "") and not access.knows(LOCAL, "a-long-secret-toke")
    assert not access.knows({"cookie": "hil_console="}, "")
    assert access.knows(LOCAL, "a-long-secret-token") and access.knows({"cookie": "x=1; hil_console=a-long-secret-token"}, "")
    assert Access(None).knows(LOCAL, "")


# ---------------------------------------------------------------------------------------------------------------- feed


def batch(t, faults=0, events=0, force=0.0, lost=0):
    values = {"F_T": [force, 0.0, 0.0, 0.0, 0.0, 0.0]}
    bits = {"faults": faults, "events": events}
    return Batch("slow", t, int(t * 1e9), int(t * 1e3), "run", 0, 1, lost, last=values, minimum=values, maximum=values, any_bits=bits)


def test_feed_keeps_each_fault_and_event_once_and_says_what_to_do():
    feed = Feed("tcp://127.0.0.1:1", "tcp://127.0.0.1:1")
    assert feed.old
    contact = 1 << CODES["event"]["first_contact"]
    name, bit, severity, meaning, action = FAULTS[3]
    for t, faults, events in ((0.04, 0, 0), (0.08, 1 << bit, contact), (0.12, 1 << bit, contact), (0.16, 0, 0), (0.2, 1 << bit, 0)):
        feed.take(batch(t, faults, events, force=-7.5, lost=1))
    assert [(line.t, line.name) for line in feed.lines] == [(0.2, name), (0.08, "first_contact"), (0.08, name)]
    assert feed.lines[0].severity == severity and meaning in feed.lines[0].action and action in feed.lines[0].action
    assert feed.lost == 5 and feed.curve[-1] == [0.2, -7.5, 0, 0, 0, 0, 0] and not feed.old


def test_limits_come_from_the_run_itself():
    from hil_server.config import load_test

    limits = limits_of({"configuration.toml": load_test(None).as_toml()})
    assert limits["leg_length_min_m"] == 3.0 and limits["leg_length_max_m"] == 5.0
    assert limits_of({}) == {} and limits_of({"configuration.toml": "= nonsense"}) == {}


# -------------------------------------------------------------------------------------------------------------- replay


@needs_nicegui
def test_thinned_curve_keeps_every_peak():
    thinned = run_apart("""
        import numpy as np, json
        from hil_server.console.replay_view import thinned
        values = np.sin(np.arange(30000) * 1e-3); values[[17, 12345]] = 9.0, -9.0
        found = np.array(thinned(np.arange(30000.0), values))
        print(json.dumps([found[:, 0].tolist() == sorted(found[:, 0]), len(found), found[:, 1].max(), found[:, 1].min(),
                          bool(np.all(values[found[:, 0].astype(int)] == found[:, 1]))]))
    """)
    assert thinned[0] and thinned[1] <= 1500 and thinned[2:] == [9.0, -9.0, True]


def run_apart(text):
    """NiceGUI is imported in a process of its own: its own warnings are not ours."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(text)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ------------------------------------------------------------------------------------------------------------- Chromium


class Browser:
    """Headless Chromium over its debugging protocol. requests: every address it asked for."""

    def __init__(self, folder):
        from websockets.sync.client import connect

        self._process = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"], stderr=subprocess.DEVNULL)
        port_file = folder / "DevToolsActivePort"
        wait_for(lambda: port_file.exists() and len(port_file.read_text().split()) == 2, 20)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self._stack = contextlib.ExitStack()
        self._socket = self._stack.enter_context(connect(page["webSocketDebuggerUrl"], max_size=None))
        self._numbers = itertools.count(1)
        self.requests = []
        self.ask("Network.enable")
        self.ask("Page.enable")

    def ask(self, method, **parameters):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=20))
            if message.get("method") in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                params = message["params"]
                self.requests.append(params.get("url") or params["request"]["url"])
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def go(self, url):
        self.ask("Page.navigate", url=url)

    def value(self, script):
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    @property
    def text(self):
        return self.value("document.body ? document.body.innerText : ''") or ""

    def click(self, selector):
        """With the mouse, in the middle of the first element that matches."""
        box = f"(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector({selector!r}).getBoundingClientRect())"
        x, y = self.value(box)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, file):
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
        return file

    def close(self):
        self._stack.close()
        self._process.terminate()
        self._process.wait(10)


def wait_for(what, seconds):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if what():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


@pytest.fixture
def browser(tmp_path):
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    pytest.importorskip("websockets")
    made = Browser(tmp_path / "browser")
    yield made
    made.close()


@pytest.fixture
def console():
    """console(*arguments) -> its address, once it serves."""
    running = []

    def start(*arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "hil_server", "console", "--port", str(port), *arguments]
        running.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
        address = running[-1].stdout.readline().split()[-1]

        def serves():
            try:
                urllib.request.urlopen(address, timeout=5).close()
            except urllib.error.HTTPError:
                return True
            except OSError:
                return False
            return True

        wait_for(serves, 40)
        return address

    yield start
    for process in running:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def status_of(address, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@needs_nicegui
def test_served_pages_hold_the_rules(console, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef-secret\n")
    address = console("--token-file", str(token))
    plain = address.partition("?")[0]
    assert status_of(plain) == 401 and status_of(plain, Cookie="hil_console=0123456789abcdef-secret") == 200
    assert status_of(plain, Cookie="hil_console=0123456789abcdef-secret", Origin="http://evil.example") == 403
    assert status_of(plain + "_nicegui_ws/socket.io/?EIO=4&transport=polling") == 401, "the page's own channel as well"


@needs_nicegui
def test_both_views_in_chromium(browser, console, loop_stand_in, header, tmp_path):
    loop = loop_stand_in()
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "run.mcap"
    settings = TelemetrySettings(log_path=str(log), telemetry_address=ANY, command_address=ANY, hand_address=ANY)
    process = TelemetryProcess.start(loop.block.fd, settings, header)
    thread = threading.Thread(target=loop.run_for, args=(120.0,))
    thread.start()
    pictures = Path(os.environ["HIL_PICTURES"]) if "HIL_PICTURES" in os.environ else tmp_path
    try:
        ends = process.endpoints
        address = console("--logs", str(log.parent), "--telemetry", ends["telemetry_address"], "--command", ends["command_address"])
        browser.go(address)
        wait_for(lambda: "RT-07" in browser.text and "\nlive" in browser.text and "tick" in browser.text, 40)
        wait_for(lambda: "approach" in browser.text, 10)
        assert browser.value("document.querySelectorAll('.live').length") >= 7
        wait_for(lambda: browser.value("document.querySelectorAll('.live.old').length") == 0, 10)

        browser.click("#hold")
        wait_for(lambda: "hold: taken by the loop at tick" in browser.text, 10)
        browser.click("#abort")
        wait_for(lambda: "abort: taken by the loop at tick" in browser.text, 10)
        assert [code for _, code, *_ in loop.taken] == [CODES["command"]["hold"], CODES["command"]["abort"]]
        assert browser.picture(pictures / "engineer.png").stat().st_size > 20_000

        loop.stopping = True
        thread.join()
        wait_for(lambda: browser.value("document.querySelectorAll('.live.old').length") >= 7, 10)
        assert "s old" in browser.text
        process.finish()

        browser.go(address + "replay")
        wait_for(lambda: "no log chosen" in browser.text, 20)
        browser.click(".q-select")
        wait_for(lambda: browser.value("document.querySelectorAll('.q-menu .q-item').length") == 1, 10)
        browser.click(".q-menu .q-item")
        wait_for(lambda: "ticks, whole" in browser.text and "phase approach" in browser.text, 30)
        wait_for(lambda: browser.value("document.querySelectorAll('canvas').length") == 2, 20)
        before = np.float64(time_shown(browser))
        browser.click("#play")
        wait_for(lambda: time_shown(browser) > before + 0.2, 20)
        assert browser.picture(pictures / "replay.png").stat().st_size > 20_000
    finally:
        loop.stopping = True
        thread.join()
        if process.alive:
            process.kill()
    foreign = [url for url in browser.requests if url.partition(":")[0] in ("http", "https", "ws", "wss") and "//127.0.0.1:" not in url]
    assert browser.requests and not foreign, "nothing is fetched from elsewhere"


def time_shown(browser):
    return float(browser.value("document.querySelector('.time-shown').innerText").split()[0])
