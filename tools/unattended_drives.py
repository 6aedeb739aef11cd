"""How long drives are enabled without a frame: the server is killed, stopped or held up at instants from its start to its end.

    python tools/unattended_drives.py [--profile cia402|cia408|ethercat] [--every S] [--from S] [--until S] [--stop] [--slow-disk S]
                                      [--insane] [--watchdog module|drives]

The virtual drives run in a process of their own, on the addresses of a stand file, and log each change of their state (`states_file` of
`drivers.simulated.stand_server`). Each row is one `hil-server run` on them, started by a client, killed (or, with `--stop`, stopped for a
second) after so long; the last row runs to its end, with `--slow-disk` on a disk whose fsync takes so long. Printed for each: what was
done and when, the longest time that an enabled drive had no setpoint frame while the server lived (with who had the buses then), how long
after the kill the last drive was off or in fault, and when the watchdog's output had changed last.

With `--insane` no process is killed: the server is a test build below build/ whose loop lives on while its safety stage does nothing from
an instant of the loop on. Its run goes to its end; judged is the watchdog's output alone, by the start of the first tick without the
stage.

A row is BAD when a drive was unattended for more than 3 periods of a living server, was still enabled 100 ms after the kill, or at the end;
when the watchdog's output changed later than 2 periods after the kill. Beside the rows a sentinel runs: a thread above the loop and the
keeper, on their core, that does nothing but wake every half millisecond. Where the sentinel was late during a pause of more than 3 periods,
and without that time the pause is none, the row is NOT JUDGED: whatever ran there would have been late. Printed with it: for how much of
that time the sentinel was ready to run (another thread's system call, on a kernel that does not preempt those; the rest is the machine's
own: interrupts, the host of a virtual machine). What the log of the run says of its loop is printed, and decides nothing.

Exit code 1 when a row is BAD, 3 when none is and some are NOT JUDGED, 0 when all are as they should be.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from drivers.identity import as_toml  # noqa: E402
from hil_server.client import Client  # noqa: E402
from hil_server.config import load_test, narrowing  # noqa: E402
from hil_server.config.loader import SHIPPED  # noqa: E402
from hil_server.errors import HilError  # noqa: E402
from hil_server.host.realtime_host import choose_core  # noqa: E402
from hil_server.judge.run import Run  # noqa: E402
from hil_server.judge.summary import summarise  # noqa: E402
from hil_server.line import assembly  # noqa: E402
from hil_server.log.reader import read_log  # noqa: E402
from rt_kernels.clocks import WallClockPart  # noqa: E402
from rt_kernels.ring import SharedBlock  # noqa: E402
from tools.ethercat_docking import INSIDE, MASTER, SLAVES, make_wire  # noqa: E402
from tools.mutate_kernels import ROOT, TARGETS, build, workshop  # noqa: E402

ENABLED = {"cia402": 0x27, "cia408": 0xF, "ethercat": 0x27}
PERIODS, WATCHDOG_PERIODS, OFF_MS = 3, 2, 100.0
LIVES_S = 300.0  # the longest that a run without its safety stage may take, on whatever machine
SENTINEL_NS, SENTINEL_S, SENTINEL_PRIORITY = 500_000, 600, 98
# a machine that does other things too may hold a process up for longer than a bus would be silent
ON_CAN = """part = "{profile}"
links = "{links}"
axis_link = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
receive_timeout_periods = {deadline}
server_timeout_ms = 60
heartbeat_timeout_ms = 5000
"""
# whose outputs the watchdog is, where it is not the input module's: tables of the stand file and of the virtual stand
OF_A_DRIVE = {"watchdog_axis": 4, "watchdog_outputs": [16, 17]}
OF_A_TERMINAL = {"slaves": 7, "watchdog_slave": 6, "watchdog_outputs": [3, 2]}
TERMINAL = {"slaves": 7, "terminal_slave": 6, "watchdog_outputs": [3, 2]}
ON_ETHERCAT = """part = "cia402_ethercat"
interface = "{interface}"
watchdog_ms = 50.0
"""
TABLES = """
[drives]
{wire}no_data_periods = 500
timeout_s = 10.0
feed_m = {feed_m}
zero_m = {zero_m}
identity = {identity}

[wrench_sensor]
part = "rdt"
variant = "{variant}"
address = "127.0.0.1"
stream_port = {stream_port}
http_port = {http_port}
calibration_port = {calibration_port}
identity = [{{serial = "SIM00001", calibration = "simulated stand"}}]

[mechanism_signals]
part = "cia401"
link = "{module}"
identity = [{{vendor = 0xDAC, product = 401, revision = 1, serial = 10}}]
command_output = 1
watchdog_outputs = [8, 9]

[drive_model]
frequency_hz = 13.25
damping = 0.784
delay_s = 0.002
"""
SLOW_DISK = """
import os, time, hil_server.bus.process
real = os.fsync
def slow(fd):
    time.sleep({seconds})
    return real(fd)
os.fsync = slow
os.fdatasync = slow
"""
# the test build: the step of the safety stage returns from a tick on, which its environment says, and tells when that was; where the
# clock is a simulated one (the run's own prediction), no tick takes any time
TEST_BUILD = ROOT / "build" / "insane"
STEP = "cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:\n"
INSANE = f"""import os
from libc.stdio cimport printf, fflush
from rt_kernels.host cimport host_now

cdef int64_t INSANE_FROM = int(os.environ["INSANE_FROM"])

{STEP}    if sample.tick == INSANE_FROM and sample.compute_ns > 0:
        printf("insane at %lld ns\\n", <long long>host_now())
        fflush(NULL)
    if sample.tick >= INSANE_FROM and sample.compute_ns > 0:
        return
"""


def make_test_build() -> None:
    """Builds the insane kernel in a copy of the tree."""
    target = TARGETS["safety"]
    workshop(TEST_BUILD)
    text = (ROOT / target.source).read_text()
    assert text.count(STEP) == 1
    (TEST_BUILD / target.source).write_text(text.replace(STEP, INSANE))
    if errors := build(target.modules, TEST_BUILD):
        sys.exit(f"the test build does not build: {errors}")


class Row:
    """One stand of drives and one run on it."""

    def __init__(self, folder: Path, profile: str, slow_disk_s: float, of_drives_bus: bool = False, insane_s: float = -1.0) -> None:
        self.profile, self.states, self.log = profile, folder / "states.npy", folder / "run" / "run.mcap"
        config = load_test(None, [])
        context = assembly.base_context(config)
        keys = assembly.virtual_stand_settings(config, context, priority=0, loop_core=-1)
        of_drives = {"wire": "ethercat", "interface": SLAVES, "master_interface": MASTER} if profile == "ethercat" else {"profile": profile}
        own, virtual = (OF_A_TERMINAL, TERMINAL) if profile == "ethercat" else (OF_A_DRIVE, OF_A_DRIVE)
        of_drives |= virtual if of_drives_bus else {}
        keys |= {"drives": of_drives, "states_file": str(self.states), "lock_memory": False, "core": -1}
        self.period_ms = 1e3 / config.test["rate_hz"]
        self.stand = subprocess.Popen([sys.executable, "-m", "drivers.simulated.stand_server", "-"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)  # fmt: skip
        assert self.stand.stdin is not None and self.stand.stdout is not None
        self.stand.stdin.write(json.dumps(keys, default=list).encode() + b"\n")
        self.stand.stdin.flush()
        ports = json.loads(self.stand.stdout.readline())
        sensor, drives = ports["wrench_sensors"], ports["drives"]
        if profile == "ethercat":
            wire = ON_ETHERCAT.format(interface=drives["interface"])
        else:
            wire = ON_CAN.format(profile=profile, links=drives["links"], deadline=round(50 / self.period_ms))
        wire += "".join(f"{key} = {value}\n" for key, value in own.items()) if of_drives_bus else ""
        identity = [{"vendor": 0xDAC, "product": 402, "revision": 1, "serial": axis + 1} for axis in range(6)]
        text = TABLES.format(
            wire=wire, module=ports["mechanism_signals"]["link"], variant=sensor["variant"],
            stream_port=sensor["stream_port"], http_port=sensor["http_port"], calibration_port=sensor["calibration_port"],
            identity=", ".join(map(as_toml, identity)).join("[]"), feed_m=drives["feed_m"],
            zero_m=[float(x) for x in drives["zero_m"]],
        )  # fmt: skip
        shipped = (SHIPPED / "stands" / "docking_stand.toml").read_text()
        (folder / "stand.toml").write_text(shipped[: shipped.index("[virtual]")] + text)
        narrowing.sign(folder / "stand.toml", "unattended_drives", time.strftime("%Y-%m-%d"))
        sets = [f'test.stand="{folder / "stand.toml"}"', "test.duration_max_s=4.0", "guidance.settle_s=0.1"]
        self.addresses = {key: f"ipc://{folder / key}" for key in ("publish", "command", "hand_controller")}
        sets += [f"telemetry.{key}={address!r}" for key, address in self.addresses.items()]
        arguments = ["run", "--out", str(folder / "run"), "--confirm-loads", "a matrix of kills", "--force", "--no-report"]
        arguments += [word for one in sets for word in ("--set", one)]
        self.began_ns = time.monotonic_ns()
        slow = SLOW_DISK.format(seconds=slow_disk_s) if slow_disk_s else ""
        code = f"{slow}\nimport runpy, sys\nsys.argv = {['hil-server', *arguments]!r}\nrunpy.run_module('hil_server', run_name='__main__')"
        self.insane_tick = round(insane_s * config.test["rate_hz"])  # below 0: the build of the tree
        built = {} if self.insane_tick < 0 else {"cwd": TEST_BUILD, "env": os.environ | {"INSANE_FROM": str(self.insane_tick)}}
        self.server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True, **built)  # fmt: skip

        self.operator = threading.Thread(target=self._start, daemon=True)
        self.operator.start()

    def _start(self) -> None:
        """Somebody says start, as on hardware: from then on the stand moves."""
        while self.server.poll() is None:
            with contextlib.suppress(HilError), Client(self.addresses["publish"], self.addresses["command"], name="row") as client:
                for _ in client.subscribe(["phase"], timeout_s=1.0):
                    client.command("start")
                    return

    def end(self) -> np.ndarray:
        """Ends the stand; rows of what its drives logged."""
        assert self.stand.stdin is not None
        self.operator.join()
        self.stand.stdin.close()
        self.stand.wait(20.0)
        return np.load(self.states)


def stands(pid: int) -> bool:
    """Whether all threads of a process are stopped."""
    with contextlib.suppress(OSError):  # one that ends
        looks = [task.joinpath("stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
        return all(look.rpartition(")")[2].split()[0] == "T" for look in looks)
    return False


def kill(row: Row, after_s: float, stopped: bool) -> tuple[int, int, str]:
    """Does it, and waits until the drives have judged. Returns when (0: the run had ended); when the server stood, at the latest; and its
    last line."""
    group = os.getpgid(row.server.pid)
    while row.server.poll() is None and time.monotonic_ns() - row.began_ns < after_s * 1e9:
        time.sleep(0.001)  # the instant of the kill is what this row is about
    if row.server.poll() is not None:
        return 0, 0, row.server.stdout.read().decode()[-600:] if row.server.stdout else ""
    at = time.monotonic_ns()
    os.killpg(group, signal.SIGSTOP if stopped else signal.SIGKILL)
    # the thread that takes a stop has to run first, on a busy machine
    while stopped and row.server.poll() is None and not stands(row.server.pid):
        at = time.monotonic_ns()
    stood = time.monotonic_ns()
    time.sleep(1.0)  # the drives' own time-outs run meanwhile
    if stopped:
        os.killpg(group, signal.SIGCONT)
        row.server.wait(120.0)
    return at, stood, ""


def let_live(row: Row) -> tuple[int, str]:
    """Waits for the end of a run whose loop loses its safety stage, or makes it. Returns when it lost it (0: it did not), and what the
    server printed last."""
    try:
        printed, _ = row.server.communicate(timeout=LIVES_S)
    except subprocess.TimeoutExpired:
        os.killpg(os.getpgid(row.server.pid), signal.SIGKILL)
        printed, _ = row.server.communicate()
    told = re.search(rb"insane at (\d+) ns", printed)
    return int(told.group(1)) if told else 0, printed.decode()[-600:]


def where(states: np.ndarray, killed_ns: int) -> str:
    """What had the buses when an enabled drive was without a frame for the longest time: the keeper before the loop, the loop, the keeper
    after it; by the edges of the watchdog, which only the loop makes."""
    alive = states[(states[:, 0] < killed_ns) & (states[:, 1] < 6)] if killed_ns else states[states[:, 1] < 6]
    relay = states[states[:, 1] == 6]
    if not len(alive) or not len(relay):
        return "before the loop"
    at = float(alive[int(alive[:, 5].argmax()), 0])  # the frame that ended it
    first, last = float(relay[0, 0]), float(relay[-1, 0] - relay[-1, 4])
    name = "before the loop" if at < first else "in the loop" if at <= last else "after the loop"
    return f"{name}, {(at - first) * 1e-6:.1f} ms after its first tick, {(last - at) * 1e-6:.1f} ms before its last one"


def loop_says(folder: Path) -> str:
    """Longest time from the end of a tick of the loop to the end of the next, as far as the log of the run has come, and what its latest
    tick was late by; empty where that is less than two periods."""
    try:
        log = read_log(folder / "run" / "run.mcap")
        named = max(summarise(Run(log)).late_named, key=lambda row: row["worst_us"], default={"cause": "no cause named", "who": ""})
    except (HilError, OSError):
        return ""
    # a tick's own times stand in the record after it
    busy = sum(log.records[field][1:] for field in ("read_ns", "compute_ns", "write_ns"))
    gap = float(np.diff((log.records["time_ns"] + log.records["lateness_ns"])[:-1] + busy).max(initial=0))
    why = f"{named['cause']} {named['who']}".strip()
    return f" [its log: {gap * 1e-6:.2f} ms from tick to tick, {why}]" if gap > 2 * log.header.period_ns else ""


class Sentinel:
    """A thread above all others on the loop's core that does nothing but wake: what holds it up holds up whatever runs there."""

    def __init__(self) -> None:
        self._block = SharedBlock.create(64)
        self._clock = WallClockPart(
            period_ns=SENTINEL_NS, duration_ns=SENTINEL_S * 10**9, priority=SENTINEL_PRIORITY, cpu=choose_core(), late_bar_ns=SENTINEL_NS,
            block=self._block,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._clock.wake_ups, args=(SENTINEL_S * 10**9 // SENTINEL_NS,), daemon=True)
        self._thread.start()

    def end(self) -> np.ndarray:
        """Ends it. Its late wake-ups, rows of: from, until [ns, CLOCK_MONOTONIC], of that ready to run [ns]; none without the right to
        the priority."""
        self._block.request_stop()
        self._thread.join()
        late = self._clock.late.take() if self._clock.facts()["mode"] == "realtime" else self._clock.late.take()[:0]
        return np.stack([late["target_ns"], late["target_ns"] + late["late_ns"], late["delay_ns"]], axis=1)


def pauses(states: np.ndarray, killed_ns: int, limit_ns: float) -> list[tuple[float, float]]:
    """Pauses between frames of enabled drives while the server lived that are longer than a limit: from, until, ns; those of several drives
    that end within a limit are one, the longest."""
    alive = states[(states[:, 1] < 6) & ((states[:, 0] < killed_ns) | (killed_ns == 0))]
    ended = [axis[np.flatnonzero(np.diff(axis[:, 5], prepend=0) > 0)] for axis in (alive[alive[:, 1] == i] for i in range(6))]
    found: list[tuple[float, float]] = []
    for until, length in sorted((float(row[0]), float(row[5])) for rows in ended for row in rows if row[5] > limit_ns):
        if found and until - found[-1][1] < limit_ns:
            found[-1] = min(found[-1], (until - length, until), key=lambda pause: pause[0] - pause[1])
        else:
            found.append((until - length, until))
    return found


def by_the_machine(pause: tuple[float, float], late: np.ndarray, limit_ns: float) -> str:
    """What held a pause up, where the sentinel shows it and the pause is within the limit without it; empty where nothing shows it."""
    within = [(min(ended, pause[1]) - max(begun, pause[0]), ready) for begun, ended, ready in late if begun < pause[1] and ended > pause[0]]
    held, ready = sum(one for one, _ in within), sum(one for _, one in within)
    if not within or pause[1] - pause[0] - held > limit_ns:
        return ""
    return f"a pause of {(pause[1] - pause[0]) * 1e-6:.2f} ms: the sentinel was late for {held * 1e-6:.2f} ms of it, ready to run for " \
           f"{ready * 1e-6:.2f} ms"  # fmt: skip


def judge(states: np.ndarray, enabled: int, killed_ns: int, lost_ns: int) -> tuple[float, float, bool, float | None]:
    """Longest time without a frame of a living server [ms]; from the kill until the last drive was off [ms]; all off; from
    `lost_ns`, when loop or safety stage were lost, to the last edge of the watchdog's output [ms], None where its relay was not on."""
    alive = states[states[:, 0] < killed_ns] if killed_ns else states
    unattended = float(alive[:, 5].max(initial=0)) * 1e-6
    latest, edge = 0.0, None
    for axis in range(6):
        of = states[states[:, 1] == axis]
        if killed_ns and _on_at(of, killed_ns, enabled):
            left = of[(of[:, 0] >= killed_ns) & (of[:, 2] != enabled)]
            latest = max(latest, float(left[0, 0] - killed_ns) * 1e-6 if len(left) else np.inf)
    all_off = all(states[states[:, 1] == axis][-1, 2] != enabled for axis in range(6))
    relay = states[states[:, 1] == 6]
    if lost_ns and _on_at(relay, lost_ns, 1):
        fell = relay[(relay[:, 0] >= lost_ns) & (relay[:, 2] == 0)]
        edge = float(fell[0, 0] - fell[0, 4] - lost_ns) * 1e-6 if len(fell) else np.inf
    return unattended, latest, all_off, edge


def _on_at(rows: np.ndarray, time_ns: int, state: int) -> bool:
    before = rows[rows[:, 0] < time_ns]
    return bool(len(before)) and int(before[-1, 2]) == state


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="cia402", choices=sorted(ENABLED))
    parser.add_argument("--every", type=float, default=0.05, help="s from one instant to the next")
    parser.add_argument("--from", dest="first", type=float, default=0.0, help="first instant, s after the start of the server")
    parser.add_argument("--until", type=float, default=20.0, help="last instant, s")
    parser.add_argument("--stop", action="store_true", help="SIGSTOP for a second instead of SIGKILL")
    parser.add_argument("--insane", action="store_true", help="a test build without its safety stage from these instants of its loop on")
    parser.add_argument("--slow-disk", type=float, default=0.0, metavar="S", help="fsync takes so long in the run that is not killed")
    parser.add_argument("--watchdog", default="module", choices=("module", "drives"), help="the output is the input module's, or on "
                        "the drives' bus: of a CiA 402 drive, of a terminal")  # fmt: skip
    options = parser.parse_args()
    if options.watchdog == "drives" and options.profile == "cia408":
        parser.error("--watchdog drives: is for cia402 and ethercat")
    if options.profile == "ethercat" and INSIDE not in os.environ:
        return subprocess.call(["unshare", "-n", sys.executable, __file__, *sys.argv[1:]], env=os.environ | {INSIDE: "1"})
    if options.profile == "ethercat":
        make_wire()
    if options.insane:
        make_test_build()
    instants = [*np.arange(options.first, options.until, options.every), *([] if options.insane else [np.inf])]
    bad = left_out = 0
    for after_s in instants:
        with tempfile.TemporaryDirectory() as folder:
            whole = not np.isfinite(after_s)
            row = Row(Path(folder), options.profile, options.slow_disk if whole else 0.0, options.watchdog == "drives",
                      after_s if options.insane else -1.0)  # fmt: skip
            sentinel, at, lost, words = Sentinel(), 0, 0, ""
            try:
                if options.insane:
                    lost, words = let_live(row)
                else:
                    at, lost, words = kill(row, after_s, options.stop)
            finally:
                if row.server.poll() is None:
                    os.killpg(os.getpgid(row.server.pid), signal.SIGKILL)
                row.server.wait()
                states = row.end()
            late = sentinel.end()
            unattended, latest, all_off, edge = judge(states, ENABLED[options.profile], at, lost)
            ever = bool((states[:, 2] == ENABLED[options.profile]).any())
            limit_ns = PERIODS * row.period_ms * 1e6
            found = {} if options.insane else {pause: by_the_machine(pause, late, limit_ns) for pause in pauses(states, at, limit_ns)}
            good = bool(ever or at) and all_off and latest <= OFF_MS and all(found.values())
            good = good and (edge is None or edge <= WATCHDOG_PERIODS * row.period_ms)
            bad += not good
            left_out += (not_judged := good and (bool(found) or options.insane and edge is None))  # ended before, or it had no power
            done = "to its end" if not at else f"{'stopped' if options.stop else 'killed'} after {(at - row.began_ns) * 1e-9:6.2f} s"
            done = f"insane from {after_s:6.2f} s on" if options.insane and lost else done
            seen = f"unattended {unattended:6.2f} ms, off after {latest:6.1f} ms, {'all off' if all_off else 'LEFT ENABLED'}"
            seen += f" ({where(states, at)})" if unattended > 2 * row.period_ms else ""
            seen += loop_says(Path(folder)) if unattended > 2 * row.period_ms else ""
            seen += ", watchdog -" if edge is None else f", watchdog {edge:.2f} ms"
            verdict = "  BAD" if not good else "  NOT JUDGED" if not_judged else ""
            print(f"{done:24s} enabled {'yes' if ever else 'no':3s} {seen}, exit {row.server.returncode}{verdict}", flush=True)
            for pause, why in found.items():
                print(f"    {why or f'a pause of {(pause[1] - pause[0]) * 1e-6:.2f} ms: UNEXPLAINED'}", flush=True)
            if words and (not ever or options.insane and not lost):
                print(words)
        if not lost and not whole:
            break  # the run ends before this instant
    print(f"{bad} of the rows are not as they should be, {left_out} are not judged")
    return 1 if bad else 3 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
