"""Ctrl-C at instants spread over the whole of a verb, as a terminal sends it: by signal, to all processes of the group.

    python tools/interrupt_instants.py [--instants 500] [--verbs run,simulate,fly,export,replay,campaign,identify] [--seed 1] [--out FOLDER]
                                       [--jobs 1]
    python tools/interrupt_instants.py --press abort|second|port [--instants 500] [--verbs run,fly,programme] ...

Each verb is run once without a press; its instants are then drawn between its start and a little past its end, half of them before the loop
of a live run starts, `--jobs` of them side by side. What is held against each:

* exit code 130; only where the verb had reported its end, or the page of `fly` stood, before the press, the one that it had reported (a
  busy machine trips a live run), or that of the run without a press.
  Before the program's first line (Python itself starts, and does with a signal what it likes) an instant is counted by itself.
* one line `interrupted: ...` that says what remains, none where the exit code is not 130; no traceback, nothing that Python ignored.
* a log that is whole, with motion only where a loop ran: from the tick that took `park` on the platform brakes, backs off and parks, and
  stands still at the end.
* nothing half-written: no file under its final name that is not whole, nothing hidden.
* no process is left.

`--press abort`: the command `abort` over the bus in the place of Ctrl-C. From the tick that took it on there is nothing but the stop and
the end, and the exit code is 3; a programme flies no variant after it, and has 1 where it came between two. An abort that no desk answered
is counted as one before the program's first line. Figure: s from its tick until the setpoints rest.

`--press second`: a second run on the same addresses. It is refused with exit code 4 and a line that says who has the stand, and the first
ends as without it, with a whole log and no command in it. Figure: s from the second one's first line, its modules loaded, to its end, less
the time in which it was ready to run and another program had the core.

`--press port`: another program takes one of the ports, the page's or the bus's, as soon as it can from the instant on. Where it has it
before the run has a log, the run ends with exit code 4, a line that names the port, and no log; else it ends as without it.

Prints a table by verb and each instant that is wrong; exit code 1 when there is one.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hil_server.client import Client  # noqa: E402
from hil_server.errors import HilError  # noqa: E402
from hil_server.log.reader import read_log  # noqa: E402
from rt_kernels.layout import CODES  # noqa: E402

PHASE, PARK = CODES["phase"], CODES["command"]["park"]
AFTER_PARK = [PHASE[name] for name in ("finish", "retreat", "park", "ended", "hold", "fault", "idle")]
MARK = "HIL_INTERRUPT_INSTANT"  # in the environment of all that an attempt starts
ENDS_WITHIN = 240.0  # s
GONE_WITHIN = 5.0  # s

# a short identification: half a second of each part
IDENTIFY = [word for key in ("slow_hz=2.0", "slow_periods=1", "multisine_s=2.0", "periods=1", "chirp_s=1.0")
            for word in ("--set", f"guidance.{key}")]  # fmt: skip

# words of the verb; OUT its folder, LOG a log, CAMPAIGN, PROGRAMME files, PORT a free port; the line that reports its end
SHORT = ["--set", "test.duration_max_s=4.0", "--no-report", "--quiet"]
QUICK = ["guidance.speed_max_m_s=0.2", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.retreat_distance_m=0.05"]
VERBS = {
    "run": (["run", *SHORT, "--out", "OUT/run"], "log "),
    "simulate": (["simulate", *SHORT, "--out", "OUT/run"], "log "),
    "fly": (["fly", *SHORT, "--port", "PORT", "--out", "OUT/run"], "page      stays"),
    "programme": (["run", "PROGRAMME", *SHORT, "--out", "OUT/run"], "overview"),
    "export": (["export", "LOG", "--format", "csv", "--out", "OUT/a.csv"], "OUT/a.csv"),
    "replay": (["replay", "LOG", "--verify"], "equal"),
    "campaign": (["campaign", "CAMPAIGN", "--workers", "2", "--quiet", "--out", "OUT/campaign"], "report "),
    "identify": (["identify", "docking_stand.toml", *IDENTIFY, "--out", "OUT/run"], "log "),
}

CAMPAIGN_FILE = """[campaign]
name = "three"
description = "three short contacts"
test = "elastic_contact.toml"
cases = 6
seed = 1
chunk = 1
worst = 1

[campaign.set]
"test.stand" = "stands/ideal_stand.toml"
"compensation.part" = "none"

[[vary]]
key = "initial_conditions.velocity_x_m_s"
distribution = "normal"
mean = 0.02
sigma = 0.001
"""

PROGRAMME_FILE = """[programme]
name = "two"
test = "docking.toml"
pause_s = 2.0
"""
VARIANT = """
[[variant]]
number = "{}"
description = "ends before its contact"
expect = "not_captured"
"""
LIVE = ("run", "fly", "programme")
KEYS = ("publish", "command", "hand_controller")
# a second run, and how long it takes once its modules are there, less the time in which it was ready to run and another had the core
TIMED = """import sys, time
from hil_server import cli
def seconds():
    with open("/proc/self/schedstat") as file:
        return time.monotonic() - 1e-9 * int(file.read().split()[1])
codes = {cli.main(sys.argv[1:])}
began = seconds()
codes.add(cli.main(sys.argv[1:]))
print(seconds() - began)
sys.exit(max(codes))
"""
REFUSED_WITHIN = 0.2  # s
REST_M_S = 1e-3


@dataclass
class Attempt:
    """One run of a verb. seconds: from its start to its end; pressed_s: when the press was sent, None: not; taken: the program had its
    handlers then, a desk took the command, the port was had; figure: what the table shows the worst of, s; lines: (s, stream, text)."""

    verb: str
    folder: Path
    code: int = 0
    seconds: float = 0.0
    pressed_s: float | None = None
    over_before: bool = False
    taken: bool = False
    said_to_second: str = ""  # exit code and last line of a second run
    figure: float = 0.0
    port: str = ""  # that somebody else was to take
    unlogged: bool = False  # there was no log yet when he had it
    none: bool = False  # nothing was there to take the press
    wrong: list[str] = field(default_factory=list)
    lines: list[tuple[float, str, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def printed(self, stream: str) -> list[str]:
        """Its lines on one stream."""
        return [text for _, one, text in self.lines if one == stream]


def words_of(verb: str, folder: Path, log: Path, ports: bool) -> list[str]:
    """The command of a verb with its places; `ports`: the run's addresses are ports."""
    (folder / "campaign.toml").write_text(CAMPAIGN_FILE)
    (folder / "programme.toml").write_text(PROGRAMME_FILE + "".join(map(VARIANT.format, ("A", "B"))))
    page, *bus = free_ports(1 + len(KEYS))
    out = folder / "out"
    out.mkdir(exist_ok=True)
    places = {"OUT": out, "LOG": log, "PORT": page, "CAMPAIGN": folder / "campaign.toml", "PROGRAMME": folder / "programme.toml"}
    found = VERBS[verb][0]
    for name, place in places.items():
        found = [word.replace(name, str(place)) for word in found]
    if verb in LIVE:
        addresses = [f"tcp://127.0.0.1:{port}" for port in bus] if ports else [f"ipc://{folder}/{key}" for key in KEYS]
        found = [*found, *(word for key, at in zip(KEYS, addresses, strict=True) for word in ("--set", f"telemetry.{key}={at}"))]
        found += [word for key in QUICK for word in ("--set", key)]
    return found


def free_ports(count: int) -> list[str]:
    """Free ports of the loopback."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


def ports_of(words: list[str]) -> list[str]:
    """Ports that a command names: of its page, of its bus."""
    page = [words[words.index("--port") + 1]] if "--port" in words else []
    return page + [found[1] for word in words if (found := re.search(r"=tcp://127.0.0.1:(\d+)$", word))]


def take_port(one: Attempt, process: "subprocess.Popen[str]") -> socket.socket | None:
    """Takes the port as soon as it can while the run has no log; None: the run has it, or has begun."""
    log = one.folder / "out" / "run" / "run.mcap"
    while process.poll() is None and not log.exists():
        with contextlib.suppress(OSError):
            taken = socket.create_server(("127.0.0.1", int(one.port)))
            one.taken, one.unlogged = True, not log.exists()
            return taken
        time.sleep(0.01)
    return None


def abort(folder: Path) -> bool:
    """Whether a desk took the command."""
    try:
        with Client(command=f"ipc://{folder}/command", timeout_s=5.0) as client:
            client.command("abort")
    except HilError:
        return False
    return True


def second(words: list[str]) -> tuple[str, float]:
    """A second run of the same: its exit code and its last line; how long it took, s."""
    done = subprocess.run([sys.executable, "-c", TIMED, *(f"{word}-2" if word.endswith("/out/run") else word for word in words)],
                          cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ENDS_WITHIN)  # fmt: skip
    return f"{done.returncode} {''.join(done.stderr.splitlines()[-1:])}", float(done.stdout.split()[-1])


def attempt(verb: str, folder: Path, log: Path, press_s: float | None, press: str = "ctrl_c", number: int = 0) -> Attempt:
    """Runs the verb in a group of its own, and presses when it is time; number: which of its ports is taken, in turn."""
    mark, foreign = uuid.uuid4().hex, None
    words = words_of(verb, folder, log, ports=press == "port")
    command = [sys.executable, "-m", "hil_server", *words]
    found = Attempt(verb, folder)
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, env=os.environ | {MARK: mark, "PYTHONUNBUFFERED": "1"})  # fmt: skip

    def read(name: str, stream: Any) -> None:
        for line in stream:
            found.lines.append((time.monotonic() - began, name, line.rstrip("\n")))

    readers = [threading.Thread(target=read, args=pair) for pair in (("out", process.stdout), ("err", process.stderr))]
    for reader in readers:
        reader.start()
    try:
        if press_s is not None:
            time.sleep(max(0.0, began + press_s - time.monotonic()))
            found.pressed_s, found.over_before = time.monotonic() - began, process.poll() is not None
            if press == "port":
                found.port = (named := ports_of(words))[number % len(named)]
                foreign = take_port(found, process)
            else:
                found.taken = abort(folder) if press == "abort" else handles_sigterm(process.pid)
            if press == "second" and found.taken and not found.over_before:
                last_line, took = second(words)
                if process.poll() is None and not any(text.startswith(VERBS[verb][1]) for text in found.printed("out")):
                    found.said_to_second, found.figure = last_line, took  # else the first had ended before the second asked for the stand
            if press == "ctrl_c":
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
        if verb == "fly" and (press_s is None or press != "ctrl_c"):  # its page stays until Ctrl-C
            while process.poll() is None and not any(VERBS[verb][1] in text for text in found.printed("out")):
                time.sleep(0.05)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGINT)
        found.code = process.wait(ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        found.left.append(f"the verb itself, {ENDS_WITHIN:g} s after its start")
    finally:
        if foreign is not None:
            foreign.close()
    found.seconds = time.monotonic() - began
    give_up = time.monotonic() + GONE_WITHIN
    while (alive := with_mark(mark)) and time.monotonic() < give_up:
        time.sleep(0.05)
    for number, name in alive.items():
        found.left.append(f"{number} {name}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    for reader in readers:
        reader.join()
    return found


def handles_sigterm(number: int) -> bool:
    """Whether a process has a handler of SIGTERM, which Python of itself has not: the program's first line is behind it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> signal.SIGTERM - 1 & 1)
    return False


def with_mark(mark: str) -> dict[int, str]:
    """Processes that run with this mark in their environment: number -> command."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes() and b") Z " not in (entry / "stat").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:120]
    return found


def reported(one: Attempt) -> bool:
    """Whether the verb had reported its end before the press."""
    word = VERBS[one.verb][1].replace("OUT", str(one.folder / "out"))
    return one.over_before or any(t <= (one.pressed_s or 0.0) and text.startswith(word) for t, name, text in one.lines if name == "out")


def wrong_after_abort(one: Attempt, unpressed: int) -> list[str]:
    """What is not as it should be of a run that was aborted over the bus."""
    found = [f"left: {name}" for name in one.left]
    aborted = between = False
    for path in sorted((one.folder / "out").rglob("run.mcap")):
        if aborted:
            found.append(f"{path.parent.name} was flown after the abort")
        log = read_log(path)
        taken = np.flatnonzero(log.records["command_code"] == CODES["command"]["abort"])
        if not log.complete:
            found.append(f"log: {'; '.join(log.incomplete)}")
        if not len(taken):
            between |= one.verb == "programme"  # one variant has ended: the desk between two may have taken it
            if not between:
                found.append(f"log: without the abort, which the desk took; {len(log.records)} ticks, phase {log.records['phase'][-1]}")
            continue
        aborted = True
        after = log.records[taken[0] + 1 :]
        found += [f"log: phase {number} after the abort" for number in set(after["phase"].tolist()) - {PHASE["fault"], PHASE["ended"]}]
        moves = np.flatnonzero(np.abs(after["leg_rate_setpoint"]).max(axis=1) > REST_M_S)
        rests = np.flatnonzero(np.abs(after["leg_rate_setpoint"]).max(axis=1) <= REST_M_S)
        if len(after) and not len(rests):
            found.append("log: ends in motion")
        elif len(moves) and len(rests) and moves[-1] > rests[0]:
            found.append("log: moves again after the stop")
        one.figure = float(after["time_ns"][rests[0]] - log.records["time_ns"][taken[0]]) * 1e-9 if len(rests) else 0.0
    if between and not aborted and not reported(one) and not any(text.startswith("ended by the operator") for _, _, text in one.lines):
        found.append("no log has the abort, which a desk took")
    # a run whose test had ended keeps its exit code only where the abort came after the loop
    allowed = {"fly": {3, 130}, "programme": {3} if aborted else {1}}.get(one.verb, {3})
    return found if one.code in allowed or reported(one) and one.code == unpressed else [*found, f"exit code {one.code}"]


def wrong_of_second(one: Attempt, unpressed: int) -> list[str]:
    """What is not as it should be of a run beside which another one was started."""
    found = [f"left: {name}" for name in one.left]
    refused = one.said_to_second.startswith("4 ") and "in use" in one.said_to_second
    if one.code == 4 and not refused and any("in use by" in text for text in one.printed("err")):
        return found  # the second came to the stand before the first
    if one.said_to_second and not refused:
        found.append(f"the second: {one.said_to_second}")
    if one.figure > REFUSED_WITHIN:
        found.append(f"the second: refused after {one.figure:.3f} s")
    return found + wrong_of_first(one, unpressed)


def wrong_of_first(one: Attempt, unpressed: int) -> list[str]:
    """What somebody else has changed of a run."""
    found = [] if one.code == unpressed else [f"exit code {one.code}"]
    for log in map(read_log, (one.folder / "out" / "run").rglob("run.mcap")):
        found += [f"log: {reason}" for reason in log.incomplete]
        found += ["log: a command"] if not set(log.records["command_code"].tolist()) <= {0, PARK} else []  # the end of its time parks it
    return found


def wrong_of_port(one: Attempt, unpressed: int) -> list[str]:
    """What is not as it should be of a run one of whose ports was taken."""
    found = [f"left: {name}" for name in one.left]
    if not one.taken or not one.unlogged:
        return found + wrong_of_first(one, unpressed)
    if one.code != 4:
        found.append(f"exit code {one.code}")
    if not any(one.port in text for text in one.printed("err")):
        found.append(f"no line names port {one.port}: {one.printed('err')[-2:]}")
    return found + [f"left: {file}" for file in (one.folder / "out").rglob("run.mcap")]


def own_code(one: Attempt, unpressed: int) -> int:
    """The exit code that the verb has reported; of one that reports none, that of the run without a press."""
    printed = [int(found[1]) for text in one.printed("out") if (found := re.match(r"end .*exit code (\d+)", text))]
    return printed[0] if printed else unpressed


def wrong(one: Attempt, unpressed: int) -> list[str]:
    """What is not as it should be."""
    found = [f"left: {name}" for name in one.left]
    early = not one.taken and not one.over_before
    if early:
        return found
    ended = reported(one) and one.code == own_code(one, unpressed)
    if one.code != 130 and not ended:
        found.append(f"exit code {one.code}")
    lines = [text for text in one.printed("err") if text.startswith("interrupted")]
    if len(lines) != (one.code == 130) or any(":" not in text for text in lines):
        found.append(f"printed {lines}")
    found += [f"printed {text!r}" for text in one.printed("err") if "Traceback" in text or "Exception ignored" in text or "rror:" in text]
    out = one.folder / "out"
    found += [f"hidden {file}" for file in out.rglob(".*")]
    found += [f"unfinished {file}" for file in out.rglob("*.tmp")]
    for log in out.rglob("run.mcap"):
        found += wrong_log(log, one)
    if one.verb == "export" and one.code == 130 and (out / "a.csv").exists() and not reported(one):
        with open(out / "a.csv") as file:
            if sum(1 for _ in file) != TICKS + 1:
                found.append("half a file under its final name")
    return found


def wrong_log(path: Path, one: Attempt) -> list[str]:
    """What is wrong with the log of an interrupted run."""
    try:
        log = read_log(path)
    except Exception as error:  # whatever it is: a log cannot be opened
        return [f"log: {error}"]
    found = [] if log.complete else [f"log: {log.problems if hasattr(log, 'problems') else 'incomplete'}"]
    r = log.records
    if one.verb not in LIVE or not len(r) or one.code != 130:
        return found
    if not reported(one) and r["end_cause"][-1] == CODES["end_cause"]["none"]:
        taken = np.flatnonzero(r["command_code"] == PARK)
        if not len(taken):
            found.append("log: motion without a park")
    taken = np.flatnonzero(r["command_code"] == PARK)
    if len(taken):
        after = r[taken[0] + 1 :]
        strange = set(after["phase"].tolist()) - set(AFTER_PARK)
        found += [f"log: phase {number} after the park" for number in strange]
        if len(after) and np.abs(after["leg_rate_setpoint"][-1]).max() > 1e-3:
            found.append(f"log: ends with {np.abs(after['leg_rate_setpoint'][-1]).max():.4f} m/s")
    return found


TICKS = 0
JUDGES = {"abort": wrong_after_abort, "second": wrong_of_second, "port": wrong_of_port}


def instants(one: Attempt, count: int, rng: random.Random) -> list[float]:
    """Seconds after the start, half of them before the loop of a live run."""
    logs = sorted((one.folder / "out").rglob("run.mcap")) if one.verb in LIVE else []
    loop_s = one.seconds / 2
    if logs:
        r = read_log(logs[0]).records
        end_s = next((t for t, name, text in one.lines if name == "out" and text.startswith("end ")), one.seconds)
        loop_s = max(1.0, end_s - float(r["time_ns"][-1] - r["time_ns"][0]) * 1e-9)
    half = count // 2
    spread = [(k + rng.random()) / half * loop_s for k in range(half)]
    rest = count - half
    return spread + [loop_s + (k + rng.random()) / rest * (1.03 * one.seconds - loop_s) for k in range(rest)]


def main(argv: list[str] | None = None) -> int:
    """Runs all; returns the exit code."""
    global TICKS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instants", type=int, default=500, help="in all (default: 500)")
    parser.add_argument("--verbs", default=",".join(verb for verb in VERBS if verb != "programme"))
    parser.add_argument("--press", choices=("ctrl_c", *JUDGES), default="ctrl_c")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="instants side by side (default: 1)")
    parser.add_argument("--out", help="keeps the folders of what is wrong here")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it, and all that it starts until their first line
    rng, verbs = random.Random(args.seed), args.verbs.split(",")
    if args.press != "ctrl_c" and not set(verbs) <= set(LIVE):
        parser.error(f"--press {args.press}: --verbs of {', '.join(LIVE)}")
    base = Path(tempfile.mkdtemp(prefix="hil-instants-"))
    command = [sys.executable, "-m", "hil_server", *VERBS["simulate"][0]]
    (base / "log").mkdir()
    subprocess.run([w.replace("OUT", str(base / "log")) for w in command], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
    log = base / "log" / "run" / "run.mcap"
    TICKS = len(read_log(log).records)
    shares = {verb: args.instants // len(verbs) + (k < args.instants % len(verbs)) for k, verb in enumerate(verbs)}
    table, failed = [], 0
    for verb in verbs:
        folder = base / f"{verb}-free"
        folder.mkdir()
        free = attempt(verb, folder, log, None)
        if free.code not in (0, 1):
            print(f"{verb}: exit code {free.code} without a press", *free.printed("err"), sep="\n  ")
            return 2

        def press(k: int, at_s: float, verb: str = verb, free: Attempt = free) -> Attempt:
            folder = base / f"{verb}-{k}"
            folder.mkdir()
            one = attempt(verb, folder, log, at_s, args.press, k)
            one.none = not one.taken and (args.press == "abort" or not one.over_before)  # after the end there is no desk to take an abort
            one.none &= args.press != "port"
            one.wrong = [] if one.none and args.press != "ctrl_c" else JUDGES.get(args.press, wrong)(one, free.code)
            return one

        drawn, bad, early, worst = instants(free, shares[verb], rng), 0, 0, 0.0
        with ThreadPoolExecutor(args.jobs) as pool:
            for k, one in enumerate(pool.map(press, range(len(drawn)), drawn)):
                early, worst = early + one.none, max(worst, one.figure)
                if one.wrong:
                    bad += 1
                    print(f"{verb} at {drawn[k]:.3f} of {free.seconds:.2f} s: {'; '.join(one.wrong)}", flush=True)
                    if args.out:
                        kept = shutil.copytree(one.folder / "out", Path(args.out) / one.folder.name, dirs_exist_ok=True)
                        (kept / "printed.txt").write_text("\n".join(f"{t:.3f} {n} {text}" for t, n, text in one.lines))
                shutil.rmtree(one.folder)
                if (k + 1) % 10 == 0:
                    print(f"{verb}: {k + 1} of {len(drawn)}, {bad} wrong, worst {worst:.3f} s", file=sys.stderr, flush=True)
        failed += bad
        table.append((verb, f"{free.seconds:.1f}", shares[verb], early, shares[verb] - early - bad, bad, f"{worst:.3f}"))
        print(*(f"{word!s:>10}" for word in table[-1]), flush=True)
    print(f"\n--press {args.press} --seed {args.seed}")
    print(" ".join(f"{word:>10}" for word in ("verb", "s", "instants", "before", "right", "wrong", "worst, s")))
    for row in table:
        print(" ".join(f"{word!s:>10}" for word in row))
    shutil.rmtree(base)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
