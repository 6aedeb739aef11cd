"""A day at the virtual stand: live dockings one after another for hours, while clients come and go and devices misbehave.

    python tools/soak.py --hours 2 --out FOLDER [--hold-s 240] [--config CONFIG] [--seed 1] [--port 9795]

One server process flies the whole time. Every flight is the shipped docking over the wires of the virtual stand: it is held before the
contact for `--hold-s`, continues, docks, and parks. Meanwhile clients subscribe and leave; some read slowly, some are stopped in the middle
of a message and killed; faults that a run has to bear come and go (records doubled, out of order, lost or damaged now and then, a warning
in the status word, a drive that touches its limit). What a flight recorded is replayed and compared byte for byte, then deleted; a flight
that did not end as it should keeps its folder.

Written as it goes: FOLDER/flights.jsonl (a line each), FOLDER/processes.csv (every 5 s: memory, descriptors, threads of each process of
the server), FOLDER/soak.png, FOLDER/soak.json. Ctrl-C ends it after parking, with the verdict of what there is.

Verdict (exit code 1 when one fails): no sample lost, every log complete and equal on replay; the server's memory in its last flight
within 2 % of what it was after the first ten minutes (or a third of a short soak), descriptors and threads the same. Lateness is printed:
it is the machine's (hil_server check).
"""

import argparse
import contextlib
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hil_server.client import Client, NoAnswerError, RefusedError  # noqa: E402

BUS = ("publish", "command", "hand_controller")  # their addresses are the ports from --port on
# a run held for hours has no end of its own
LONG = ["test.duration_max_s=86400.0"]
# faults that a run bears: shown by a device from a random time of a flight on (name, value) ...
BORNE = (
    ("sensor_duplicate", 40.0), ("sensor_reorder", 60.0), ("sensor_lost", 600.0), ("sensor_corrupt", 900.0), ("sensor_threshold", 1.0),
)  # fmt: skip
# ... and given and taken back by the operator (name, drives)
TOGGLED = ("drive_limit_touched", 6)
LOOK_S = 5.0
SETTLED_S = 600.0
MEMORY_BAND = 0.02

READER = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
os.nice(10)
from hil_server.client import Client, NoAnswerError
pause, until = float(sys.argv[3]), time.monotonic() + float(sys.argv[4])
count = lost = 0
try:
    for batch in Client(sys.argv[1], sys.argv[2]).subscribe(["tick", "F_T", "leg_setpoint"], timeout_s=30.0):
        count, lost = count + 1, lost + batch.lost
        time.sleep(pause)
        if time.monotonic() > until:
            break
except NoAnswerError:
    pass
print(count, lost, flush=True)
"""


def addresses(port: int) -> list[str]:
    """Of telemetry, commands and hand controllers."""
    return [f"tcp://127.0.0.1:{port + i}" for i in range(len(BUS))]


def serve(given: argparse.Namespace, pipe: Any) -> None:
    """The server: flights until the time is over. Reads nothing; writes a line of JSON after each flight and at its start."""
    from hil_server.config import load_test
    from hil_server.errors import HilError
    from hil_server.run.session import Options, run_live

    until, number, chance = time.monotonic() + given.hours * 3600, 0, random.Random(given.seed)
    settings = [f"telemetry.{key}={value}" for key, value in zip(BUS, addresses(given.port), strict=True)] + LONG
    while time.monotonic() < until:
        number += 1
        faults = [
            {"name": name, "value": value, "at_s": chance.uniform(1.0, given.hold_s)} for name, value in chance.sample(BORNE, 2)
        ]  # fmt: skip
        print(json.dumps({"begins": number}), file=pipe, flush=True)
        began = time.monotonic()
        try:
            stand = {"sensor": {"variant": "axia"}, "faults": faults}
            options = Options(out=str(given.out / f"flight_{number:04d}"), quiet=True, report=False, force=True, stand=stand)
            summary = run_live(load_test(given.config, settings), options)
        except HilError as error:
            summary = {"error": f"{type(error).__name__}: {error}", "exit_code": error.exit_code}
        keep = ("exit_code", "end", "ticks", "missed", "overflow", "complete", "faults", "lateness_us", "captured", "log", "error")
        line = {key: summary[key] for key in keep if key in summary}
        shown = {"flight": number, "seconds": time.monotonic() - began, "shown": [fault["name"] for fault in faults]}
        print(json.dumps(shown | line, default=str), file=pipe, flush=True)


@dataclass
class Look:
    """One process at one time. memory_kb: proportional set size; descriptors, threads: how many."""

    t: float
    role: str
    pid: int
    memory_kb: int
    descriptors: int
    threads: int


def look_at(pid: int, role: str, t: float) -> Look | None:
    """None for a process that is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            memory = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        with open(f"/proc/{pid}/status") as file:
            threads = next(int(line.split()[1]) for line in file if line.startswith("Threads:"))
        return Look(t, role, pid, memory, len(os.listdir(f"/proc/{pid}/fd")), threads)
    except (OSError, StopIteration, ValueError):
        return None


def children(pid: int) -> list[tuple[int, str]]:
    """Processes that the server has started, with what they are."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                named = "stand" if "stand_server" in words else "telemetry" if "bus.drain" in words else "other"
                found.append((int(child), named))
    return found


class Guests:
    """Clients that come and go."""

    def __init__(self, chance: random.Random, port: int) -> None:
        self._chance, self._addresses = chance, addresses(port)[:2]
        self._here: list[tuple[subprocess.Popen[str], str, float]] = []
        self.counts = {"reader": 0, "slow": 0, "stopped": 0}
        self.messages = self.lost = 0

    def turn(self, now: float) -> None:
        """Called about twice a second: one may come, some leave."""
        for guest in list(self._here):
            process, kind, leaves = guest
            if process.poll() is None and now > leaves:
                process.kill()  # a stopped one never leaves by itself
            if process.poll() is not None:
                self._here.remove(guest)
                words = process.stdout.read().split()
                if kind == "reader" and len(words) == 2:
                    self.messages, self.lost = self.messages + int(words[0]), self.lost + int(words[1])
                process.stdout.close()
            elif kind == "stopped" and now > leaves - 8.0:
                process.send_signal(signal.SIGSTOP)
        if len(self._here) < 3 and self._chance.random() < 0.03:
            kind = self._chance.choice(("reader", "slow", "stopped"))
            stays = self._chance.uniform(5.0, 60.0)
            command = [sys.executable, "-c", READER, *self._addresses, "0.3" if kind == "slow" else "0", str(stays)]
            self._here.append((subprocess.Popen(command, stdout=subprocess.PIPE, text=True), kind, now + stays + 15.0))
            self.counts[kind] += 1

    def leave(self) -> None:
        """All go."""
        for process, *_ in self._here:
            process.kill()
            process.wait()
            process.stdout.close()
        self._here = []


class Operator:
    """Holds a flight before its contact, disturbs it, lets it continue."""

    def __init__(self, chance: random.Random, hold_s: float, port: int) -> None:
        self._chance, self._hold_s, self._addresses = chance, hold_s, addresses(port)[:2]
        self.injected = 0
        self.refused: list[str] = []
        self.began(0.0)

    def began(self, now: float) -> None:
        """A flight begins at `now`."""
        self._state, self._next, self._until, self._active = "flies", now + 1.0, 0.0, False

    def turn(self, now: float) -> None:
        """Gives the next command when its time has come."""
        if now < self._next or self._state == "done":
            return
        self._next = now + 1.0
        try:
            with Client(*self._addresses, timeout_s=3.0) as desk, desk.visit():
                self._act(desk, now)
        except NoAnswerError:
            pass  # between two flights, or a busy machine: once more
        except RefusedError as error:
            self.refused.append(str(error))

    def _act(self, desk: Client, now: float) -> None:
        if self._state == "flies":
            desk.command("hold")
            self._state, self._until = "held", now + self._hold_s
        elif now > self._until:
            if self._active:
                desk.command("clear_injection")
                self._active = False
            desk.command("resume")
            self._state = "done"
        elif self._active:
            desk.command("clear_injection")
            self._active = False
        else:
            name, drives = TOGGLED
            desk.command("inject_fault", fault=name, index=self._chance.randrange(drives), value=1.0)
            self.injected += 1
            self._active = True
        self._next = now + self._chance.uniform(2.0, 15.0)


def settle(line: dict[str, Any]) -> dict[str, Any]:
    """Replays a flight and compares it; deletes what it left when all is well."""
    log = line.get("log")
    if not log or not Path(log).exists():
        return line | {"equal": None, "good": False}
    own = ["nice", "-n", "15", sys.executable, "-m", "hil_server", "replay", log, "--verify"]
    done = subprocess.run(own, capture_output=True, text=True, check=False)
    line |= {"equal": done.returncode == 0, "log_mb": round(Path(log).stat().st_size / 1e6, 1)}
    line["good"] = bool(line["equal"] and line["complete"] and not line["overflow"] and line["exit_code"] == 0)
    if line["good"]:
        shutil.rmtree(Path(log).parent)
    else:
        line["replay"] = (done.stdout + done.stderr)[-600:]
    return line


def verdict(flights: list[dict[str, Any]], looks: list[Look], seconds: float) -> dict[str, Any]:
    """The figures of the soak, and what of it is not as it should be."""
    flown = [f for f in flights if "ticks" in f]
    settled = min(SETTLED_S, seconds / 3)
    server = [x for x in looks if x.role == "server"]
    held = [x for x in server if x.t >= settled]
    figures: dict[str, Any] = {
        "hours": round(seconds / 3600, 3), "flights": len(flights), "ticks": sum(f["ticks"] for f in flown),
        "samples_lost": sum(f["overflow"] for f in flown), "missed_periods": sum(f["missed"] for f in flown),
        "captured": sum(bool(f.get("captured")) for f in flown),
        "equal_on_replay": sum(f.get("equal") is True for f in flown), "ended_well": sum(f["exit_code"] == 0 for f in flown),
        "otherwise": [{k: f.get(k) for k in ("flight", "exit_code", "end", "faults", "error")} for f in flights if f.get("exit_code") != 0],
        "late_us": {q: round(float(np.median([f["lateness_us"][q] for f in flown])), 1) for q in ("p50", "p99", "max")} if flown else {},
    }  # fmt: skip
    wrong = []
    if figures["samples_lost"]:
        wrong.append(f"{figures['samples_lost']} samples lost")
    if not all(f.get("complete") and f.get("equal") for f in flown) or not flown:
        wrong.append("a log is not complete or not equal on replay")
    if len(held) >= 8:
        fifth = max(4, len(held) // 5)
        for name in ("memory_kb", "descriptors", "threads"):
            values = np.array([getattr(x, name) for x in held], float)
            first, last = float(np.median(values[:fifth])), float(np.median(values[-fifth:]))
            figures[name] = {"after_settling": first, "at_the_end": last, "greatest": float(values.max())}
            if name == "memory_kb" and abs(last / first - 1.0) > MEMORY_BAND:
                wrong.append(f"memory {first / 1024:.1f} -> {last / 1024:.1f} MB")
            if name != "memory_kb" and last > first:
                wrong.append(f"{name} {first:.0f} -> {last:.0f}")
    return figures | {"wrong": wrong}


def draw(folder: Path, flights: list[dict[str, Any]], looks: list[Look]) -> None:
    """Memory and descriptors of the server's processes and the lateness of every flight, over time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 9), layout="constrained")
    memory, handles, late = figure.subplots(3, 1, sharex=True)
    for role in ("server", "telemetry", "stand"):
        own = [x for x in looks if x.role == role]
        at = [x.t / 60 for x in own]
        style = "-" if role == "server" else "."
        memory.plot(at, [x.memory_kb / 1024 for x in own], style, label=role, markersize=2)
        handles.plot(at, [x.descriptors for x in own], style, label=role, markersize=2)
    flown = [f for f in flights if "ticks" in f]
    for q, mark in (("p50", "o"), ("p99", "s"), ("max", "^")):
        late.plot([f["t"] / 60 for f in flown], [f["lateness_us"][q] for f in flown], mark, label=q, markersize=3)
    bad = [f["t"] / 60 for f in flights if not f["good"]]
    late.plot(bad, np.ones(len(bad)), "rx", label="did not end well")
    memory.set_ylabel("memory (PSS), MB")
    handles.set_ylabel("descriptors")
    late.set(ylabel="lateness of a flight, us", xlabel="time, min", yscale="log")
    for axes in (memory, handles, late):
        axes.legend(loc="upper left")
        axes.grid(alpha=0.3)
    figure.savefig(folder / "soak.png", dpi=110)


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--hold-s", type=float, default=240.0)
    parser.add_argument("--config")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=9795, help="of the telemetry; the next two take commands and hand controllers")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.serve is not None:
        with os.fdopen(given.serve, "w") as pipe:
            serve(given, pipe)
        return 0
    return soak(given)


def soak(given: argparse.Namespace) -> int:
    """The whole, beside the server's process."""
    chance = random.Random(given.seed)
    reading, writing = os.pipe()
    own = [sys.executable, __file__, "--serve", str(writing), "--out", str(given.out)]
    own += ["--hours", str(given.hours), "--hold-s", str(given.hold_s), "--seed", str(given.seed), "--port", str(given.port)]
    own += ["--config", given.config] if given.config else []
    with open(given.out / "server.txt", "w") as output:
        server = subprocess.Popen(own, pass_fds=[writing], stdout=output, stderr=output)
    os.close(writing)
    os.set_blocking(reading, False)
    guests, operator = Guests(chance, given.port), Operator(chance, given.hold_s, given.port)
    flights: list[dict[str, Any]] = []
    looks: list[Look] = []
    judging: list[Future[None]] = []
    began, rest, seen, stopping = time.monotonic(), b"", -LOOK_S, False
    with (
        open(given.out / "processes.csv", "w", newline="") as table, open(given.out / "flights.jsonl", "w") as lines,
        ThreadPoolExecutor(1) as beside,
    ):  # fmt: skip
        rows = csv.writer(table)
        rows.writerow(Look.__dataclass_fields__)

        def judge(flown: dict[str, Any]) -> None:
            flights.append(settle(flown))
            print(json.dumps(flights[-1]), file=lines, flush=True)
            print(_line(flights[-1]), flush=True)

        ended = False
        while not ended:
            try:
                ended = server.poll() is not None  # its last lines are read all the same
                now = time.monotonic() - began
                with contextlib.suppress(BlockingIOError):
                    rest += os.read(reading, 65536)
                *whole, rest = rest.split(b"\n")
                for message in map(json.loads, whole):
                    if "begins" in message:
                        operator.began(now)
                    else:
                        judging.append(beside.submit(judge, message | {"t": now}))
                if not (stopping or ended):
                    guests.turn(now)
                    operator.turn(now)
                if now - seen >= LOOK_S:
                    seen = now
                    for pid, role in [(server.pid, "server"), *children(server.pid)]:
                        if (look := look_at(pid, role, now)) is not None:
                            looks.append(look)
                            rows.writerow(vars(look).values())
                    table.flush()
                time.sleep(0.5)
            except KeyboardInterrupt:
                if stopping:
                    server.kill()
                stopping = True
                server.send_signal(signal.SIGINT)
        guests.leave()
    os.close(reading)
    for one in judging:
        one.result()  # what went wrong beside the loop goes wrong here
    found = verdict(flights, looks, time.monotonic() - began)
    found |= {"guests": guests.counts, "messages": guests.messages, "lost_by_readers": guests.lost}
    found["toggled_by_operator"] = operator.injected
    found["shown_by_devices"] = {name: sum(name in f["shown"] for f in flights) for name, _ in BORNE}
    found |= {"refused": operator.refused[:20]}
    (given.out / "soak.json").write_text(json.dumps(found, indent=1) + "\n")
    draw(given.out, flights, looks)
    print(json.dumps(found, indent=1))
    return 1 if found["wrong"] or server.returncode else 0


def _line(flight: dict[str, Any]) -> str:
    if "error" in flight:
        return f"flight {flight['flight']:3d}  {flight['t'] / 60:6.1f} min  {flight['error']}"
    late = flight["lateness_us"]
    return "  ".join((
        f"flight {flight['flight']:3d}", f"{flight['t'] / 60:6.1f} min", f"exit {flight['exit_code']}", f"{flight['end']}",
        f"{flight['ticks']} ticks", f"missed {flight['missed']}", f"lost {flight['overflow']}",
        f"late p50 {late['p50']:.0f} p99 {late['p99']:.0f} max {late['max']:.0f} us", "equal" if flight["equal"] else "NOT EQUAL",
        ", ".join(flight["faults"]),
    ))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
