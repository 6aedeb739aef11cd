"""Headless Chromium over its debugging protocol, for the tests of the console and its benchmark."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = "--headless --no-sandbox --disable-quic --no-first-run --disable-background-networking --disable-component-update".split()
# without a graphics card: draw 3-D in software, but put the page together without it, which is five times quicker
FLAGS += "--disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader --disable-gpu-compositing".split()
FLAGS += "--remote-debugging-port=0 --window-size=1700,1080".split()


def wait_for(what, seconds):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if what():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


class Browser:
    """One page. requests: every address it asked for; complaints: errors of its scripts."""

    def __init__(self, folder):
        from websockets.sync.client import connect

        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
        port_file = folder / "DevToolsActivePort"
        wait_for(lambda: port_file.exists() and len(port_file.read_text().split()) == 2, 30)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self._stack = contextlib.ExitStack()
        self._socket = self._stack.enter_context(connect(page["webSocketDebuggerUrl"], max_size=None, ping_interval=None))
        self._numbers = itertools.count(1)
        self.requests, self.complaints = [], []
        for domain in ("Network", "Page", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=30))
            self._note(message.get("method"), message.get("params"))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def _note(self, method, params):
        if method in ("Network.requestWillBeSent", "Network.webSocketCreated"):
            self.requests.append(params.get("url") or params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))

    def go(self, url):
        self.ask("Page.navigate", url=url)

    def value(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, (script, answer["exceptionDetails"])
        return answer["result"].get("value")

    def drawn(self):
        """Until the page as it now is has been drawn."""
        twice = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.ask("Runtime.evaluate", expression=twice, awaitPromise=True)

    @property
    def text(self):
        return self.value("document.body ? document.body.innerText : ''") or ""

    def click(self, selector, kinds=("mousePressed", "mouseReleased")):
        """With the mouse, in the middle of the first element that matches."""
        box = f"(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector({selector!r}).getBoundingClientRect())"
        x, y = self.value(box)
        for kind in kinds:
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name, code=0, text=None, kinds=("keyDown", "keyUp")):
        for kind in kinds:
            more = {"text": text} if text and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code, **more)

    def hold(self, name, code=0, text=None, again=False):
        """The key goes down and stays; again: as a keyboard repeats it."""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=code, text=text, autoRepeat=again)

    def picture(self, file):
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
        return file

    @contextlib.contextmanager
    def stopped(self):
        """All of its processes held still (SIGSTOP)."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.process.pid, signal.SIGCONT)

    def close(self):
        self._stack.close()
        self.process.terminate()
        self.process.wait(10)
