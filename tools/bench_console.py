"""The console beside a live run: `python tools/bench_console.py [SECONDS] [CONFIG] [--load N]`. Wants `console` and a Chromium; headless.

One live run on the virtual stand. First a stretch without any page, then one with the operator page (three cameras, three wire-frames,
instruments) in a headless Chromium without a graphics card. Printed: frames a second and age of the pictures (tick to pixel, as the page
states it), share of a core that the console's process and the browser's take, the loop's lateness in both stretches, and ABORT from the
key (Alt+A) and from the mouse button in the page to the loop's acknowledgement in the page, in random order half a second apart, with N
processes that keep a core busy each (--load, none without); the first one trips the run, whose fault phase lasts as long as the rest. The
load of the machine stands beside: all of it is wall clock.
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from hil_server.client import Client
from hil_server.log.reader import read_log
from tests.console.chromium import Browser, wait_for

ROOT = Path(__file__).resolve().parent.parent
PORTS = {"publish": 9803, "command": 9804, "hand_controller": 9805}
ADDRESS = {name: f"tcp://127.0.0.1:{port}" for name, port in PORTS.items()}
WEB = 8793
WANTED = {"frames": 25.0, "age": 150.0, "console": 15.0, "abort": 100.0}
ABORTS = 16


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen]:
    """`hil-server` with these arguments, told to end afterwards."""
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "hil_server", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def stretch(client: Any, seconds: float, loads: list[float]) -> tuple[int, int]:
    """First and last tick of so many seconds; notes the load."""
    first = next(client.subscribe(["tick"])).tick
    time.sleep(seconds)
    loads.append(os.getloadavg()[0])
    return first, next(client.subscribe(["tick"])).tick


def served() -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{WEB}/", timeout=5).close()
    except OSError:
        return False
    return True


def tree(root: int) -> list[int]:
    """The process and all that came from it."""
    found = [root]
    for child in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = child.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parts[1]) == root:
            found += tree(int(child.parent.name))
    return found


def cpu_s(pids: list[int]) -> float:
    """CPU time used so far."""
    total = 0.0
    for pid in pids:
        try:
            parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    return total


def abort_ms(browser: Browser, by_key: bool) -> dict[str, float] | None:
    """Key or mouse button to answer, in the page's own clock: to its script, there and back, and what of that desk and loop took. None
    when no loop has taken it."""
    note = "addEventListener('pointerdown', e => window.hilPressed = e.timeStamp, {once: true, capture: true})"
    browser.value(f"window.hilAnswer = null; document.querySelector('#abort').{note}")
    if by_key:
        for kind in ("rawKeyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key="a", code="KeyA", windowsVirtualKeyCode=65, modifiers=1)
    else:
        browser.click("#abort")
    wait_for(lambda: browser.value("window.hilAnswer !== null"), 20)
    answer = json.loads(browser.value("JSON.stringify({...window.hilAnswer, pressed: window.hilPressed})"))
    if not answer.get("good"):
        print(f"not taken             {answer.get('answer')}")
        return None
    return {"event": answer["at"] - answer["pressed"], "there and back": answer["round"], "desk and loop": answer["desk_ms"]}


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but compute."""
    workers = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        if workers:
            time.sleep(2.0)
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def main(argv: list[str]) -> int:
    load = int(argv[argv.index("--load") + 1]) if "--load" in argv else 0
    argv = argv[: argv.index("--load")] if "--load" in argv else argv
    seconds = float(argv[0]) if argv else 10.0
    configuration = argv[1:2]
    folder = Path(tempfile.mkdtemp(prefix="bench-console-"))
    settings = [part for name, address in ADDRESS.items() for part in ("--set", f"telemetry.{name}={address}")]
    addresses = ("--telemetry", ADDRESS["publish"], "--command", ADDRESS["command"], "--hand", ADDRESS["hand_controller"])
    with contextlib.ExitStack() as stack:
        console = stack.enter_context(running("console", "--port", str(WEB), "--logs", str(folder), *addresses))
        wait_for(served, 60)
        browser = Browser(folder / "browser")
        stack.callback(browser.close)
        lasting = [f"test.duration_max_s={8 * seconds + 120:.0f}"]
        if not configuration:  # the shipped docking would be over soon after its capture
            lasting += ["guidance.finish_on_capture=false", "guidance.finish_at_region_end=false", "guidance.contact_max_s=400.0"]
            lasting += ["guidance.fault_s=60.0"]
        out = ("--out", str(folder / "run"), "--quiet", "--no-report", "--force")
        stack.enter_context(running("run", *configuration, *out, *settings, *(part for key in lasting for part in ("--set", key))))
        client = stack.enter_context(Client(ADDRESS["publish"], ADDRESS["command"]))
        next(client.subscribe(["tick"], timeout_s=60.0))
        time.sleep(2.0)
        stretches, loads = {}, []
        stretches["without"] = stretch(client, seconds, loads)
        browser.go(f"http://127.0.0.1:{WEB}/operator")
        wait_for(lambda: browser.value("window.hilPicture?.().count ?? 0") > 40, 60)
        browser.value("window.hilForget()")
        processes = [console.pid], tree(browser.process.pid)
        before, began = [cpu_s(pids) for pids in processes], time.monotonic()
        stretches["with"] = stretch(client, seconds, loads)
        spent = time.monotonic() - began
        shares = [100.0 * (cpu_s(pids) - was) / spent for pids, was in zip(processes, before, strict=True)]
        picture = browser.value("window.hilPicture()")
        aborts: list[tuple[bool, dict[str, float] | None]] = []
        with busy(load):
            for key in random.Random(1).sample([True, False] * (ABORTS // 2), ABORTS):
                aborts.append((key, abort_ms(browser, by_key=key)))
                time.sleep(0.5)
            loads.append(os.getloadavg()[0])
    log = read_log(folder / "run" / "run.mcap")
    lateness = {}
    for name, (start_tick, stop_tick) in stretches.items():
        inside = (log.records["tick"] >= start_tick) & (log.records["tick"] < stop_tick)
        late, missed = log.records["lateness_ns"][inside] * 1e-3, log.records["missed_total"][inside]
        p50, p99, most = np.percentile(late, 50), np.percentile(late, 99), late.max()
        lateness[name] = f"p50 {p50:5.0f}  p99 {p99:5.0f}  max {most:6.0f} us, {int(missed[-1] - missed[0])} missed in {inside.sum()} ticks"
    at = f"{loads[0]:.1f} without, {loads[1]:.1f} with the console, {loads[2]:.1f} at ABORT"
    print(f"load average          {at} ({os.cpu_count()} cores)")
    for name, text in lateness.items():
        print(f"loop {name:8s}         {text}")
    print(f"pictures              {picture['rate']:.1f} a second (wanted {WANTED['frames']:.0f})")
    ages = f"p50 {picture['age']:.0f} ms, p95 {picture['p95']:.0f} ms (wanted {WANTED['age']:.0f})"
    print(f"their age             {ages}, of {picture['count']} pictures")
    print(f"console's process     {shares[0]:.1f} % of a core (wanted {WANTED['console']:.0f}); the browser {shares[1]:.0f} %")
    for which, by_key in (("Alt+A", True), ("button", False)):
        if not (times := [a["event"] + a["there and back"] for key, a in aborts if a is not None and key == by_key]):
            print(f"ABORT, {which}: none was taken")
            continue
        print(f"ABORT, {which} to answer  median {np.median(times):.0f} ms, worst {max(times):.0f} ms (wanted {WANTED['abort']:.0f})")
    for key, a in aborts:
        if a is None:
            continue
        print(f"    {'Alt+A ' if key else 'button'}  " + "  ".join(f"{name} {value:.1f}" for name, value in a.items()) + " ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
