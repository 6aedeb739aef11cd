#!/usr/bin/env python3
"""Are late ticks named rightly? Makes them late on purpose, one cause after another, and prints which names they got.

    tools/late_causes.py [--seconds S] [--core N] [--only NAME ...] [--proc] [--cyclictest] [--json FILE]

For each of them a loop of its own (the shipped line on the wall clock, SCHED_FIFO 80, on a core of its own as far as there is one) runs
with the telemetry process of the product, whose log names the causes, of the first 2000 late ticks one by one. Meanwhile, in bursts of
0.2 s with pauses of 0.3 s, for S seconds (default 4):

    fifo        a thread above the loop (SCHED_FIFO 90) spins on its core, 2 ms in 10        -> other_thread
    normal      an ordinary thread on its core polls 20000 descriptors at a time             -> other_thread
    page_fault  a thread of the loop's process puts its program out of memory (MADV_PAGEOUT)  -> page_fault
    stop        SIGSTOP of the loop's process, 3 ms in 15                                    -> stopped
    helper      SIGSTOP of the telemetry process for the burst: the loop must not care      -> (what it is without)
    softirq     multicast to 800 sockets, handled on the loop's core (RPS)                    -> softirq

A tick belongs to a burst when its time lies in it. A machine that is busy otherwise has late ticks of its own: row "none" (the pauses),
whose rate tells how many of a burst's are not the injection's; column "less own" leaves those out.
`--cyclictest` runs that program beside the loop, on the same core just below its priority, and prints both latenesses. It needs root (or
rtprio and namespaces); without, the injections that cannot be made say so.
"""

import argparse
import collections
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BURST, PAUSE = 0.2, 0.3  # s
EXPECTED = {"fifo": "other_thread", "normal": "other_thread", "page_fault": "page_fault", "stop": "stopped", "softirq": "softirq"}
MADV_PAGEOUT = 21

# ---------------------------------------------------------------------------------------------------------- the loop's process


def loop_process(core: int, seconds: float, log: str, period_ns: int, trace: int) -> None:
    """Runs the loop until standard input ends; a line `page_fault` there is a burst of that. Prints each late tick as JSON."""
    from hil_server import registry
    from hil_server.bus.process import TelemetryProcess
    from hil_server.bus.settings import TelemetrySettings
    from hil_server.config import load_test
    from hil_server.line import assembly
    from hil_server.line.run_header import header
    from rt_kernels.loop import LoopLine
    from rt_kernels.ring import SharedBlock

    others = os.sched_getaffinity(0) - {core}
    os.sched_setaffinity(0, others or {core})
    test = assembly.simulation(load_test(None, ["guidance.auto_start=false", f"test.duration_max_s={seconds + 60:g}"]))
    block = SharedBlock.create(16384, test.block.aux_count)
    clock = registry.part("clocks", "wall")(period_ns=period_ns, duration_ns=int(seconds * 1e9), priority=80, cpu=core, block=block)
    ports = [assembly.build_part("commands", "latch", {}, {**test.context, "block": block}), *test.ports[1:]]
    line = LoopLine(clock, ports, test.line.stages, block)
    settings = TelemetrySettings.offline(log)
    settings.cores, settings.late = sorted(others), {"fd": clock.late.fd, "core": core, "trace": trace}
    telemetry = TelemetryProcess.start(block.fd, settings, header(test, "late causes", "live", {}, None))
    thread = threading.Thread(target=line.run, name="loop")
    thread.start()
    print(json.dumps({"telemetry": telemetry.pid}), flush=True)
    counted: dict[int, list[int]] = {}

    def count() -> None:
        counted.update((int(one["tick"]), list(map(int, one))) for one in clock.late.take())

    def beat() -> None:
        while thread.is_alive():
            block.heartbeat()
            count()
            time.sleep(0.05)

    beating = threading.Thread(target=beat)
    beating.start()
    for word in sys.stdin:
        if word.strip() == "page_fault":
            _take_pages(time.monotonic() + BURST)
            print(json.dumps({"done": word.strip()}), flush=True)
    block.request_stop()
    thread.join()
    beating.join()
    count()
    telemetry.finish(clock.facts())
    print(json.dumps({"counted": list(counted.items())}), flush=True)


def _take_pages(until: float) -> None:
    """The programs of this process that no other one has in memory are put out of it, again and again, as a machine does that is short of
    memory: who runs them next waits for the disk."""
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    own = [line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines() if " r-xp " in line and "/rt_kernels/" in line]
    while time.monotonic() < until:
        for span in own:
            first, last = (int(number, 16) for number in span.split("-"))
            libc.madvise(first, last - first, MADV_PAGEOUT)
        time.sleep(0.01)


# ---------------------------------------------------------------------------------------------------------- injections


class Injected:
    """Bursts of one kind: their times (CLOCK_MONOTONIC, ns), or why there were none."""

    def __init__(self) -> None:
        self.bursts: list[tuple[int, int]] = []
        self.refused = ""


def bursts(seconds: float, made: Injected, burst: Callable[[], None]) -> None:
    """burst() takes BURST seconds and is called until `seconds` are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic_ns()
        burst()
        made.bursts.append((begin, time.monotonic_ns()))
        time.sleep(PAUSE)


SPIN = f"""
import sys
for word in iter(lambda: os.read(0, 1), b""):
    end = time.monotonic() + {BURST}
    while time.monotonic() < end:
        stop = time.monotonic() + 0.002
        while time.monotonic() < stop: pass
        time.sleep(0.008)
    os.write(1, b".")
"""
POLL = f"""
import ctypes, resource, struct
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
inlet, outlet = os.pipe()
count = min(most, 20000)
entries, libc = ctypes.create_string_buffer(struct.pack("<ihh", inlet, 1, 0) * count), ctypes.CDLL(None)
for word in iter(lambda: os.read(0, 1), b""):
    end = time.monotonic() + {BURST}
    while time.monotonic() < end:
        libc.poll(entries, count, 0)
    os.write(1, b".")
"""
FLOOD = f"""
import os, socket, subprocess, sys, time
os.sched_setaffinity(0, {{core for core in os.sched_getaffinity(0) if not int(sys.argv[1], 16) >> core & 1}} or {{0}})
subprocess.run(["mount", "-t", "sysfs", "none", "/sys"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up", "multicast", "on"], check=True)
open("/sys/class/net/lo/queues/rx-0/rps_cpus", "w").write(sys.argv[1])
lo, group = socket.inet_aton("127.0.0.1"), socket.inet_aton("239.1.1.1")
inlets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(800)]
for inlet in inlets:
    inlet.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    inlet.bind(("239.1.1.1", 5005))
    inlet.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + lo)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, lo)
os.write(1, b"!")
for word in iter(lambda: os.read(0, 1), b""):
    end = time.monotonic() + {BURST}
    while time.monotonic() < end:
        for i in range(4):
            out.sendto(b"x", ("239.1.1.1", 5005))
        time.sleep(0.003)
    os.write(1, b".")
"""


def burst_of(child: subprocess.Popen[bytes]) -> Callable[[], None]:
    """One burst of a child that takes a byte as the word to begin, and answers with one."""

    def burst() -> None:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(b"g")
        child.stdin.flush()
        if child.stdout.read(1) != b".":
            raise RuntimeError(_last_line(child))

    return burst


def _last_line(child: subprocess.Popen[bytes]) -> str:
    return (child.stderr.read().decode().strip().splitlines() or ["it ended"])[-1] if child.stderr else ""


def helper_bursts(seconds: float, made: Injected, command: list[str], greeted: bool = False) -> None:
    """Bursts of a program of its own."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            if greeted and (child.stdout is None or child.stdout.read(1) != b"!"):
                raise RuntimeError(_last_line(child))
            bursts(seconds, made, burst_of(child))
        except (RuntimeError, OSError) as error:
            made.refused = str(error)
        finally:
            child.kill()


def placed(core: int, priority: int, program: str) -> list[str]:
    """The command of a Python program on this core."""
    prepare = f"import os, time; os.sched_setaffinity(0, {{{core}}})\n"
    if priority:
        prepare += f"os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param({priority}))\n"
    return [sys.executable, "-S", "-c", prepare + program]


def stop_for(pid: int, seconds: float) -> None:
    """Stops a process and lets it continue."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(pid, signal.SIGCONT)


def stops(pid: int) -> None:
    """A burst of short stops."""
    end = time.monotonic() + BURST
    while time.monotonic() < end:
        stop_for(pid, 0.003)
        time.sleep(0.012)


def inject(name: str, seconds: float, core: int, loop: subprocess.Popen[str], telemetry: int) -> Injected:
    """One kind of injection."""
    made = Injected()
    if name == "fifo":
        helper_bursts(seconds, made, placed(core, 90, SPIN))
    elif name == "normal":
        helper_bursts(seconds, made, placed(core, 0, POLL))
    elif name == "softirq":
        helper_bursts(seconds, made, ["unshare", "-n", "-m", sys.executable, "-S", "-c", FLOOD, f"{1 << core:x}"], greeted=True)
    elif name == "page_fault":
        assert loop.stdin is not None and loop.stdout is not None
        inlet, outlet = loop.stdin, loop.stdout

        def storm() -> None:
            inlet.write("page_fault\n")
            inlet.flush()
            outlet.readline()  # a busy machine lets it begin late

        bursts(seconds, made, storm)
    elif name == "stop":
        bursts(seconds, made, lambda: stops(loop.pid))
    elif name == "helper":
        bursts(seconds, made, lambda: stop_for(telemetry, BURST))
    return made


# ---------------------------------------------------------------------------------------------------------- the tables


def run_loop(core: int, seconds: float, period_ns: int, folder: str, act: Callable[[subprocess.Popen[str], int], dict[str, Injected]],
             trace: bool = True) -> Any:  # fmt: skip
    """One loop with its telemetry, `act` meanwhile; trace: context switches may be asked for. Returns (injected, late ticks with what was
    counted for each, log)."""
    from hil_server.host.late_causes import Late
    from hil_server.log.reader import read_log

    log = str(Path(tempfile.mkdtemp(dir=folder)) / "late.mcap")
    own = [sys.executable, __file__, "--loop", str(core), str(seconds), log, str(period_ns), str(int(trace))]
    with subprocess.Popen(own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as loop:
        assert loop.stdin is not None and loop.stdout is not None
        try:
            telemetry = json.loads(loop.stdout.readline())["telemetry"]
            injected = act(loop, telemetry)
            time.sleep(0.5)
            loop.stdin.close()
            counted = dict(json.loads(loop.stdout.readline())["counted"])
            loop.wait(20.0)
        finally:
            loop.kill()
    read = read_log(Path(log))
    fields = Late._fields
    named = [one | dict(zip(fields, counted[one["tick"]], strict=True)) for one in read.end.get("late", []) if one["tick"] in counted]
    for one in named:
        one["bursts"] = [name for name, made in injected.items() if any(b <= one["target_ns"] <= e for b, e in made.bursts)]
    return injected, named, read


def labelled(named: list[dict[str, Any]], injected: dict[str, Injected]) -> dict[str, collections.Counter[str]]:
    """Injection → cause → late ticks in its bursts; "none": outside of all bursts and of the half of a pause after each."""
    found: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in [*injected, "none"]}
    for one in named:
        at = one["target_ns"]
        label, near = "none", False
        for name, made in injected.items():
            for begin, end in made.bursts:
                if begin <= at <= end:
                    label = name
                near = near or begin - 5e6 <= at <= end + 0.5e9 * PAUSE
        if label != "none" or not near:
            found[label][one["cause"]] += 1
    return found


def print_confusion(found: dict[str, collections.Counter[str]], injected: dict[str, Injected], seconds_of: dict[str, float]) -> list[Any]:
    """Rows: what was injected; columns: what it was called. Returns the figures."""
    from hil_server.host.late_causes import CAUSES

    used = [cause for cause in CAUSES if any(row[cause] for row in found.values())]
    print(f"{'injected':12s} {'s':>6s} {'late':>6s} {'right':>7s} {'less own':>9s}   " + " ".join(f"{cause:>12s}" for cause in used))
    rates = {cause: found["none"][cause] / max(seconds_of["none"], 1e-9) for cause in CAUSES}
    figures = []
    for name, row in found.items():
        if name in injected and injected[name].refused:
            print(f"{name:12s} not made: {injected[name].refused}")
            continue
        late, expected = sum(row.values()), EXPECTED.get(name)
        right = row[expected] if expected else 0
        # late ticks that this time would have had anyway, under their other names
        own = sum(min(row[cause], rates[cause] * seconds_of[name]) for cause in CAUSES if cause != expected)
        share = right / late if expected and late else None
        less = min(right / max(late - own, 1e-9), 1.0) if expected and late else None
        shown = [f"{100 * one:6.1f}%" if one is not None else "      -" for one in (share, less)]
        counts = " ".join(f"{row[cause]:12d}" for cause in used)
        print(f"{name:12s} {seconds_of[name]:6.1f} {late:6d} {shown[0]} {shown[1]:>9s}   {counts}")
        figures.append({"injected": name, "late": late, "right": right, "share": share, "share_less_own": less, "named": dict(row)})
    return figures


def cyclictest(core: int, seconds: float) -> subprocess.Popen[str] | None:
    """That program beside the loop, at 1 kHz on the same core, just below it; None with the reason printed where it is not."""
    if not shutil.which("cyclictest"):
        print("cyclictest: not here (Debian's package rt-tests)")
        return None
    command = ["cyclictest", "-q", "-m", "-t1", "-p79", f"-a{core}", "-i1000", "-h60000", f"-D{int(seconds)}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def histogram(text: str) -> np.ndarray:
    """Latencies in µs out of cyclictest's histogram."""
    pairs = [tuple(map(int, line.split())) for line in text.splitlines() if line[:1].isdigit()]
    return np.repeat([at for at, _ in pairs], [count for _, count in pairs])


def print_beside(log: Any, peer: np.ndarray) -> dict[str, list[float]]:
    """Lateness of the loop, whole periods included, beside cyclictest's of the same run."""
    r = log.records
    late = 1e-3 * (r["lateness_ns"][1:] + (r["periods"][1:] - 1) * log.header.period_ns)
    rows = {}
    print(f"\n{'lateness, us':14s} {'p50':>8s} {'p99':>8s} {'p99.9':>8s} {'max':>8s} {'wake-ups':>9s}")
    for name, values in (("loop", late), ("cyclictest", peer)):
        if len(values):
            rows[name] = [float(np.percentile(values, q)) for q in (50, 99, 99.9, 100)]
            print(f"{name:14s} " + " ".join(f"{one:8.0f}" for one in rows[name]) + f" {len(values):9d}")
    return rows


def main() -> None:
    """Command line."""
    if sys.argv[1:2] == ["--loop"]:
        loop_process(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
        return
    from hil_server.host.realtime_host import choose_core

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="of each injection (default 4)")
    parser.add_argument("--core", type=int, help="of the loop (default: as for a run)")
    parser.add_argument("--only", nargs="*", help="these injections")
    parser.add_argument("--cyclictest", action="store_true", help="that program beside the loop, without injections")
    parser.add_argument("--proc", action="store_true", help="names without the record of context switches, from /proc alone")
    parser.add_argument("--json", help="writes the figures there")
    arguments = parser.parse_args()
    core = choose_core() if arguments.core is None else arguments.core
    names = [name for name in ("fifo", "normal", "page_fault", "stop", "helper", "softirq") if not arguments.only or name in arguments.only]
    result: dict[str, Any] = {"core": core}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.cyclictest:
            peer: list[np.ndarray] = []

            def beside(loop: Any, telemetry: int) -> dict[str, Injected]:
                child = cyclictest(core, arguments.seconds)
                peer.append(histogram(child.communicate()[0]) if child else np.empty(0))
                return {}

            _, named, log = run_loop(core, arguments.seconds + 30, 1_000_000, folder, beside)
            result["beside"] = print_beside(log, peer[0])
            result["late"] = dict(collections.Counter(one["cause"] for one in named))
            print(f"late ticks: {len(named)}: " + ", ".join(f"{n} {cause}" for cause, n in result["late"].items()))
        else:
            seconds = arguments.seconds

            found: dict[str, collections.Counter[str]] = {"none": collections.Counter()}
            injected: dict[str, Injected] = {}
            lengths, all_named, sources = {"none": 0.0}, [], []
            for name in names:

                def act(loop: Any, telemetry: int, name: str = name) -> dict[str, Injected]:
                    time.sleep(PAUSE)  # the machine as it is
                    return {name: inject(name, seconds, core, loop, telemetry)}

                one, named, log = run_loop(core, 2 * seconds + 30, 1_000_000, folder, act, not arguments.proc)
                injected |= one
                lengths[name] = sum(end - begin for begin, end in one[name].bursts) * 1e-9
                lengths["none"] += float(log.time_s[-1] - log.time_s[0]) - lengths[name] - len(one[name].bursts) * 0.5 * PAUSE
                rows = labelled(named, one)
                found[name] = rows[name]
                found["none"] += rows["none"]
                all_named += named
                sources.append(log.end.get("late_sources", "-"))
            found["none"] = found.pop("none")  # the last row
            print(f"causes named from: {'; '.join(dict.fromkeys(sources))}; core {core}\n")
            result["confusion"] = print_confusion(found, injected, lengths)
            result["late"] = all_named
            overall = [row for row in result["confusion"] if row["share"] is not None]
            late, right = sum(row["late"] for row in overall), sum(row["right"] for row in overall)
            print(f"\ninjected in all: {right} of {late} named rightly ({100.0 * right / max(late, 1):.1f} %)")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
