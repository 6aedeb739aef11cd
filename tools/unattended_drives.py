"""How long drives are enabled without a frame: the server is killed, stopped or held up at instants from its start to its end.

    python tools/unattended_drives.py [--profile cia402,cia408,ethercat] [--peers] [--kinds kill,stop,slow_disk,insane]
                                      [--parts set_up,loop] [--every S] [--jobs N] [--seed N] [--watchdog module|drives]

The drives run in a process of their own and log each change of their state: the emulated ones of `drivers.simulated.stand_server`, or with
`--peers` those of `tests.drivers.peers`, which are written from the profiles alone. Each row is one `hil-server run` on them, started by a
client. Kinds:

    kill        SIGKILL every `--every` s from the start of the server to its end: counted from its start while it is set up, from the
                first message of its loop on after that
    stop        SIGSTOP for a second, so often while the run is set up and while it ends
    slow_disk   the disk takes 60 s: for the sync of the log's head, of its end, for one write in the middle
    insane      no process is killed: the server is a test build below build/ whose loop lives on while its safety stage does nothing from
                an instant of the loop on; judged is the watchdog's output alone, by the start of the first tick without the stage

The instants are shifted by a random part of `--every`. Before them each profile is run once to its end, which is a row, too. Printed for
each: what was done and when, the longest time that an enabled drive had no setpoint frame while the server lived (with who had the buses
then), how long after the kill the last drive was off or in fault, when the watchdog's output had changed last; then a table.

A row is BAD when a drive was unattended for more than 3 periods of a living server, had been enabled before its first frame, was still
enabled 100 ms after the kill, or at the end; when a drive's own watchdog ended a run that was not killed; when the watchdog's output
changed later than 2 periods after the kill. Beside the rows a sentinel runs: a thread above the loop and the
keeper, on their core, that does nothing but wake every half millisecond. Where the sentinel was late during a pause of more than 3 periods,
and without that time the pause is none, the row is NOT JUDGED: whatever ran there would have been late; it is done again, three times at
most. Printed with it: for how much of that time the sentinel was ready to run (another thread's system call, on a kernel that does not
preempt those; the rest is the machine's own: interrupts, the host of a virtual machine). What the log of the run says of its loop is
printed, and decides nothing.

Exit code 1 when a row is BAD, 3 when none is and some are NOT JUDGED, 0 when all are as they should be.
"""

import argparse
import contextlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
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
from tools.ethercat_docking import MASTER, SLAVES  # noqa: E402
from tools.mutate_kernels import ROOT, TARGETS, build, workshop  # noqa: E402

ENABLED = {"cia402": 0x27, "cia408": 0xF, "ethercat": 0x27}
AXES = 6  # rows of the drives' log from this axis on are the relay's behind the watchdog
PERIODS, WATCHDOG_PERIODS, OFF_MS = 3, 2, 100.0
KINDS = ("kill", "stop", "slow_disk", "insane")
KILLED_S, STOPPED_S = 0.4, 1.0  # how long the drives are watched after it
ATTEMPTS = 3
DEVICES_PRIORITY = 50  # devices wait for no other program of this machine; below the loop and the keeper
RATE_HZ, PEERS_HZ = 1000.0, 250.0  # of the shipped docking; that six drives in Python keep up with
QUICK = ["guidance.speed_max_m_s=0.2", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.fault_s=0.3",
         "guidance.retreat_distance_m=0.05", "test.duration_max_s=2.0"]  # fmt: skip
LIVES_S = 300.0  # the longest that a run without its safety stage may take, on whatever machine
SENTINEL_NS, SENTINEL_S, SENTINEL_PRIORITY = 500_000, 600, 98
# a machine that does other things too may hold a process up for longer than a bus would be silent
ON_CAN = """part = "{profile}"
links = "{links}"
axis_link = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
receive_timeout_periods = 50
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
# what of a log the slow disk holds up: the sync of its head, that of its end, one write in the middle
SLOW_SECONDS = 60.0
SLOW = ("head", "end", "write")
# found by every process of the server before its first line
SLOW_DISK = """import builtins, io, os, time
syncs, real, real_open = [], os.fsync, builtins.open
def slow(fd):
    syncs.append(time.monotonic())
    if {what!r} == ("head" if len(syncs) == 1 else "end"):
        time.sleep({seconds})
    return real(fd)
class File(io.FileIO):
    slept = False
    def write(self, data):
        if not self.slept and syncs and time.monotonic() > syncs[0] + 2.0:
            self.slept = True
            time.sleep({seconds})
        return super().write(data)
def open_slow(path, mode="r", *more, **keys):
    return File(path, "x") if mode == "xb" and ".mcap" in str(path) else real_open(path, mode, *more, **keys)
os.fsync = slow
if {what!r} == "write":
    builtins.open = open_slow
"""
HAS_NETWORK = "import sys; from tools.ethercat_docking import make_wire; make_wire(); print(flush=True); sys.stdin.read()"
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


@dataclass(frozen=True)
class Stand:
    """What the rows of a table have in common. within: words before a command that is to run where the stand is."""

    profile: str
    peers: bool
    of_drives_bus: bool
    within: tuple[str, ...] = ()

    @property
    def rate_hz(self) -> float:
        """Of the loop."""
        return PEERS_HZ if self.peers and self.profile != "ethercat" else RATE_HZ

    def started(self, states: Path) -> tuple["subprocess.Popen[bytes]", str, float]:
        """Its process, the device tables of its stand file, its mass on the force sensor, kg."""
        module, given = ("tests.drivers.peers.stand", self._peers()) if self.peers else ("drivers.simulated.stand_server", self._emulated())
        given["states_file"] = str(states)
        command = [*self.within, sys.executable, "-m", module, "-"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(given, default=list).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        return process, answer["tables"] if self.peers else self._tables(answer), 0.0 if self.peers else 120.0

    def _peers(self) -> dict[str, object]:
        return {"profile": self.profile, "master_interface": MASTER, "interface": SLAVES}

    def _emulated(self) -> dict[str, object]:
        config = load_test(None, [])
        keys = assembly.virtual_stand_settings(config, assembly.base_context(config), priority=DEVICES_PRIORITY, loop_core=-1)
        on_ethercat = {"wire": "ethercat", "master_interface": MASTER, "interface": SLAVES}
        drives = on_ethercat if self.profile == "ethercat" else {"profile": self.profile}
        drives |= (TERMINAL if self.profile == "ethercat" else OF_A_DRIVE) if self.of_drives_bus else {}
        return keys | {"drives": drives, "lock_memory": False, "core": -1}

    def _tables(self, ports: dict[str, dict]) -> str:
        sensor, drives = ports["wrench_sensors"], ports["drives"]
        if self.profile == "ethercat":
            wire, own = ON_ETHERCAT.format(interface=drives["interface"]), OF_A_TERMINAL
        else:
            wire, own = ON_CAN.format(profile=self.profile, links=drives["links"]), OF_A_DRIVE
        wire += "".join(f"{key} = {value}\n" for key, value in own.items()) if self.of_drives_bus else ""
        identity = [{"vendor": 0xDAC, "product": 402, "revision": 1, "serial": axis + 1} for axis in range(AXES)]
        return TABLES.format(
            wire=wire, module=ports["mechanism_signals"]["link"], variant=sensor["variant"],
            stream_port=sensor["stream_port"], http_port=sensor["http_port"], calibration_port=sensor["calibration_port"],
            identity=", ".join(map(as_toml, identity)).join("[]"), feed_m=drives["feed_m"],
            zero_m=[float(x) for x in drives["zero_m"]],
        )  # fmt: skip


class Row:
    """One stand of drives and one run on it."""

    def __init__(self, folder: Path, stand: Stand, slow: str = "", insane_s: float = -1.0) -> None:
        """slow: what of the log the slow disk holds up; insane_s: below 0: the build of the tree."""
        self.states = folder / "states.npy"
        self.stand, tables, mass_kg = stand.started(self.states)
        shipped = (SHIPPED / "stands" / "docking_stand.toml").read_text()
        assert shipped.count("carried_mass_kg = 120.0") == 1
        shipped = shipped.replace("carried_mass_kg = 120.0", f"carried_mass_kg = {mass_kg}")
        (folder / "stand.toml").write_text(shipped[: shipped.index("[virtual]")] + tables)
        narrowing.sign(folder / "stand.toml", "unattended_drives", time.strftime("%Y-%m-%d"))
        self.addresses = {key: f"ipc://{folder / key}" for key in ("publish", "command", "hand_controller")}
        sets = [f'test.stand="{folder / "stand.toml"}"', f"test.rate_hz={stand.rate_hz}", *QUICK]
        sets += [f"telemetry.{key}={address!r}" for key, address in self.addresses.items()]
        arguments = ["run", "--out", str(folder / "run"), "--confirm-loads", "a matrix of kills", "--force", "--no-report"]
        arguments += [word for one in sets for word in ("--set", one)]
        environment, cwd = dict(os.environ), ROOT
        if slow:
            (folder / "sitecustomize.py").write_text(SLOW_DISK.format(what=slow, seconds=SLOW_SECONDS))
            environment["PYTHONPATH"] = str(folder)
        if insane_s >= 0.0:
            environment["INSANE_FROM"], cwd = str(round(insane_s * stand.rate_hz)), TEST_BUILD
        self.began_ns = time.monotonic_ns()
        self.server = subprocess.Popen([*stand.within, sys.executable, "-m", "hil_server", *arguments], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, start_new_session=True, env=environment, cwd=cwd)  # fmt: skip
        self.looped, self.looped_ns = threading.Event(), 0
        self.operator = threading.Thread(target=self._start, daemon=True)
        self.operator.start()

    def _start(self) -> None:
        """Somebody says start, as on hardware: from then on the stand moves."""
        while self.server.poll() is None and not self.looped.is_set():
            with contextlib.suppress(HilError), Client(self.addresses["publish"], self.addresses["command"], name="row") as client:
                for _ in client.subscribe(["phase"], timeout_s=1.0):
                    self.looped_ns = time.monotonic_ns()
                    self.looped.set()
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


def kill(row: Row, part: str, after_s: float, stopped: bool) -> tuple[int, int, int, str]:
    """Does it, so long after the part of the run began, and waits until the drives have judged. Returns when (0: the run had ended); until
    when a thread of the server ran; when it stood, at the latest; and its last line."""
    group = os.getpgid(row.server.pid)
    while part == "loop" and row.server.poll() is None and not row.looped.wait(0.01):
        pass
    began_ns = row.looped_ns if part == "loop" else row.began_ns
    while row.server.poll() is None and time.monotonic_ns() - began_ns < after_s * 1e9:
        time.sleep(0.001)  # the instant of the kill is what this row is about
    if row.server.poll() is not None:
        return 0, 0, 0, row.server.stdout.read().decode()[-600:] if row.server.stdout else ""
    sent = at = time.monotonic_ns()
    os.killpg(group, signal.SIGSTOP if stopped else signal.SIGKILL)
    # the thread that takes a stop has to run first, on a busy machine
    while stopped and row.server.poll() is None and not stands(row.server.pid):
        at = time.monotonic_ns()
    stood = time.monotonic_ns()
    time.sleep(STOPPED_S if stopped else KILLED_S)  # the drives' own time-outs run meanwhile
    if stopped:
        os.killpg(group, signal.SIGCONT)
        row.server.wait(120.0)
    return sent, at, stood, ""


def let_live(row: Row) -> tuple[int, str]:
    """Waits for the end of a run that is left alone, or makes it. Returns when its loop lost its safety stage (0: it did not), and what
    the server printed last."""
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
    alive = states[(states[:, 0] < killed_ns) & (states[:, 1] < AXES)] if killed_ns else states[states[:, 1] < AXES]
    relay = states[states[:, 1] == AXES]
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
    alive = states[(states[:, 1] < AXES) & ((states[:, 0] < killed_ns) | (killed_ns == 0))]
    ended = [axis[np.flatnonzero(np.diff(axis[:, 5], prepend=0) > 0)] for axis in (alive[alive[:, 1] == i] for i in range(AXES))]
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


def judge(states: np.ndarray, enabled: int, killed_ns: int, lost_ns: int, sent_ns: int = 0) -> tuple[float, float, bool, float | None]:
    """Longest time without a frame of a server that runs (`sent_ns`, where that was before it stood) [ms]; from the kill
    until the last drive was off [ms]; all off; from `lost_ns`, when loop or safety stage were lost, to the last edge of the watchdog's
    output [ms], None where its relay was not on."""
    alive = states[states[:, 0] < (sent_ns or killed_ns)] if killed_ns else states
    unattended = float(alive[:, 5].max(initial=0)) * 1e-6
    if ((alive[:, 1] < AXES) & (alive[:, 2] == enabled) & (alive[:, 4] < 0)).any():
        unattended = np.inf  # before its first frame
    latest, edge = 0.0, None
    for axis in range(AXES):
        of = states[states[:, 1] == axis]
        if killed_ns and _on_at(of, killed_ns, enabled):
            left = of[(of[:, 0] >= killed_ns) & (of[:, 2] != enabled)]
            latest = max(latest, float(left[0, 0] - killed_ns) * 1e-6 if len(left) else np.inf)
    all_off = all((rows := states[states[:, 1] == axis]).size == 0 or rows[-1, 2] != enabled for axis in range(AXES))
    relay = states[states[:, 1] == AXES]
    if lost_ns and _on_at(relay, lost_ns, 1):
        fell = relay[(relay[:, 0] >= lost_ns) & (relay[:, 2] == 0)]
        edge = float(fell[0, 0] - fell[0, 4] - lost_ns) * 1e-6 if len(fell) else np.inf
    return unattended, latest, all_off, edge


def _on_at(rows: np.ndarray, time_ns: int, state: int) -> bool:
    before = rows[rows[:, 0] < time_ns]
    return bool(len(before)) and int(before[-1, 2]) == state


def by_their_watchdog(profile: str, states: np.ndarray) -> bool:
    """Whether a drive went into a fault of its own."""
    word = states[states[:, 1] < AXES][:, 2]
    if profile == "cia408":
        return bool((word & 0x8 == 0)[word > 0].any())
    return bool((word & 0x4F == 0x08).any())


@dataclass
class Outcome:
    """What came of one row. what: done to it; seen: of the drives, in words; when: its part of the run."""

    what: str
    when: str = "before"
    seen: str = ""
    unattended_ms: float = 0.0
    off_ms: float = 0.0
    verdict: str = ""  # BAD, NOT JUDGED, or as it should be
    attempts: int = 1
    more: list[str] = field(default_factory=list)
    times_s: tuple[float, float, float] = (0.0, 0.0, 0.0)  # first message of the loop, last drive off, the server's end


def one(stand: Stand, kind: str, part: str, after_s: float, slow: str = "") -> Outcome:
    """One row: what is done to the server so long after the part of its run began (infinite: nothing)."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row = Row(folder, stand, slow, after_s if kind == "insane" else -1.0)
        sentinel, sent, at, lost, words = Sentinel(), 0, 0, 0, ""
        try:
            if kind == "insane" or not np.isfinite(after_s):
                lost, words = let_live(row)
            else:
                sent, at, lost, words = kill(row, part, after_s, kind == "stop")
        finally:
            ended_ns = time.monotonic_ns()
            if row.server.poll() is None:
                os.killpg(os.getpgid(row.server.pid), signal.SIGKILL)
            row.server.wait()
            states = row.end()
        late, enabled, period_ms = sentinel.end(), ENABLED[stand.profile], 1e3 / stand.rate_hz
        unattended, latest, all_off, edge = judge(states, enabled, at, lost, sent)
        powered = states[(states[:, 1] < AXES) & (states[:, 2] == enabled)]
        limit_ns = PERIODS * period_ms * 1e6
        found = {} if kind == "insane" else {pause: by_the_machine(pause, late, limit_ns) for pause in pauses(states, sent, limit_ns)}
        whole = not at and not np.isfinite(after_s)
        tripped = not at and not found and kind != "insane" and by_their_watchdog(stand.profile, states)
        good = all_off and not tripped and latest <= OFF_MS and np.isfinite(unattended) and all(found.values())
        good = good and (edge is None or edge <= WATCHDOG_PERIODS * period_ms)
        # a set-up that a busy machine has ended; a run that ended before it lost its stage, or had no power
        refused = not at and not len(powered) and slow != "head"
        not_judged = good and (bool(found) or refused or kind == "insane" and edge is None)
        # of the drives' power: where the kill fell
        on = any(_on_at(states[states[:, 1] == axis], at or ended_ns, enabled) for axis in range(AXES))
        when = "whole" if whole else "over" if not at else "enabled" if on else "after" if len(powered) and powered[0, 0] < at else "before"
        what = f"{kind} {slow} to its end" if not at else f"{kind} after {(at - row.began_ns) * 1e-9:6.2f} s"
        what = f"insane from {after_s:6.2f} s on" if kind == "insane" and lost else what
        seen = f"unattended {unattended:6.2f} ms, off after {latest:6.1f} ms, {'all off' if all_off else 'LEFT ENABLED'}"
        seen += f" ({where(states, at)})" if unattended > 2 * period_ms and np.isfinite(unattended) else ""
        seen += loop_says(folder) if unattended > 2 * period_ms else ""
        seen += ", watchdog -" if edge is None else f", watchdog {edge:.2f} ms"
        seen += f", exit {row.server.returncode}" + (", BY A DRIVE'S OWN WATCHDOG" if tripped else "")
        more = [why or f"a pause of {(pause[1] - pause[0]) * 1e-6:.2f} ms: UNEXPLAINED" for pause, why in found.items()]
        more += [words] if words and (refused or not good or kind == "insane" and not lost) else []
        verdict = "BAD" if not good else "NOT JUDGED" if not_judged else ""
        if kind == "insane" and not lost and len(powered):
            when, verdict = "over", ""
        off = states[(states[:, 1] < AXES) & (states[:, 2] != enabled)]
        seconds = [(ns - row.began_ns) * 1e-9 for ns in (row.looped_ns, off[-1, 0] if len(off) else 0, ended_ns)]
        of_server = 0.0 if found and good else unattended  # a pause that the machine made says nothing of it
        return Outcome(what, when, seen, of_server, latest, verdict, 1, more, (seconds[0], seconds[1], seconds[2]))


def again(stand: Stand, kind: str, part: str, after_s: float, slow: str = "") -> Outcome:
    """One row, done again while the machine does not let it be judged."""
    before: list[str] = []
    for attempt in range(1, ATTEMPTS + 1):
        found = one(stand, kind, part, after_s, slow)
        found.attempts, found.more = attempt, [*before, *found.more]
        if found.verdict != "NOT JUDGED":
            break
        before = found.more
    return found


def instants(kind: str, free: Outcome, options: argparse.Namespace, rng: random.Random) -> list[tuple[str, float, str]]:
    """(part of the run, s from its beginning, what is slow) of the rows of a kind. free: the run to its end that is left alone."""
    if kind == "slow_disk":
        return [("", np.inf, what) for what in SLOW]
    looped, off, ended = free.times_s
    spans = {"set_up": (0.0, looped), "loop": (0.0, 1.02 * (ended - looped))}
    if kind == "stop":
        spans["loop"] = (off - looped - 1.0, spans["loop"][1])  # its end alone
    found = []
    for part in ("loop",) if kind == "insane" else options.parts.split(","):
        begin, end = spans[part]
        found += [(part, float(at), "") for at in np.arange(begin + rng.random() * options.every, end, options.every)]
    rng.shuffle(found)  # what is done when somebody ends it has been everywhere
    return found


def table(stand: Stand, kind: str, rows: list[Outcome]) -> str:
    """A line of the table at the end."""
    fell = Counter(row.when for row in rows)
    bad, left_out = (sum(row.verdict == verdict for row in rows) for verdict in ("BAD", "NOT JUDGED"))
    worst = [max((getattr(row, name) for row in rows), default=0.0) for name in ("unattended_ms", "off_ms")]
    where_it_fell = " ".join(f"{fell[name]:>7}" for name in ("before", "enabled", "after", "over"))
    periods = worst[0] * 1e-3 * stand.rate_hz
    drives = "peers" if stand.peers else "emulated"
    return (f"{stand.profile:9s}{drives:9s}{kind:10s}{len(rows):5d} {where_it_fell} {periods:11.2f} {worst[1]:7.1f} "
            f"{sum(row.attempts > 1 for row in rows):6d} {left_out:11d} {bad:4d}")  # fmt: skip


HEADS = (f"{'profile':9s}{'drives':9s}{'kind':10s}{'rows':>5s} {'before':>7s} {'enabled':>7s} {'after':>7s} {'over':>7s} "
         f"{'unattended':>11s} {'off':>7s} {'again':>6s} {'not judged':>11s} {'bad':>4s}")  # fmt: skip


def network() -> "subprocess.Popen[bytes]":
    """A process that has a network of its own, with a loopback and a cable, until its standard input is closed."""
    command = ["unshare", "-n", sys.executable, "-c", HAS_NETWORK]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="cia402", help=f"of {', '.join(ENABLED)}, separated by commas")
    parser.add_argument("--kinds", default="kill", help=f"of {', '.join(KINDS)}, separated by commas")
    parser.add_argument("--peers", action="store_true", help="drives, module and sensor of tests.drivers.peers")
    parser.add_argument("--every", type=float, default=0.05, help="s from one instant to the next")
    parser.add_argument("--parts", default="set_up,loop", help="of the run (default: both)")
    parser.add_argument("--jobs", type=int, default=1, help="rows side by side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--watchdog", default="module", choices=("module", "drives"), help="the output is the input module's, or on "
                        "the drives' bus: of a CiA 402 drive, of a terminal")  # fmt: skip
    options = parser.parse_args()
    profiles, kinds, rng = options.profile.split(","), options.kinds.split(","), random.Random(options.seed)
    if not set(profiles) <= set(ENABLED) or not set(kinds) <= set(KINDS):
        parser.error(f"--profile of {', '.join(ENABLED)}; --kinds of {', '.join(KINDS)}")
    if options.watchdog == "drives" and ("cia408" in profiles or options.peers):
        parser.error("--watchdog drives: is for cia402 and ethercat, emulated")
    if "insane" in kinds and options.peers:
        parser.error("--kinds insane: the peers have no relay behind the watchdog")
    # two runs on one address of a device are refused: each has a network of its own
    places: queue.SimpleQueue[tuple[str, ...]] = queue.SimpleQueue()
    networks = [network() for _ in range(options.jobs)]
    for one_of_them in networks:
        places.put(("nsenter", "-t", str(one_of_them.pid), "-n"))
    if "insane" in kinds:
        make_test_build()
    lines, verdicts = [], Counter()

    def told(stand: Stand, kind: str, rows: list[Outcome], of: int, row: Outcome) -> None:
        rows.append(row)
        verdicts[row.verdict] += 1
        again_words = f", attempt {row.attempts}" if row.attempts > 1 else ""
        print(f"{len(rows):4d} of {of} {stand.profile} {row.what:26s} {row.when:8s}{row.seen}{again_words}  {row.verdict}", flush=True)
        for line in row.more if row.verdict or row.attempts > 1 else ():
            print(f"    {line}", flush=True)

    for profile in profiles:

        def somewhere(kind: str, part: str, after_s: float, slow: str, profile: str = profile) -> Outcome:
            within = places.get()
            try:
                return again(Stand(profile, options.peers, options.watchdog == "drives", within), kind, part, after_s, slow)
            finally:
                places.put(within)

        stand, rows = Stand(profile, options.peers, options.watchdog == "drives"), []
        told(stand, "none", rows, 1, free := somewhere("none", "", np.inf, ""))
        lines.append(table(stand, "none", rows))
        for kind in kinds:
            drawn, rows = instants(kind, free, options, rng), []
            with ThreadPoolExecutor(options.jobs) as pool:
                for row in pool.map(lambda at, kind=kind: somewhere(kind, *at), drawn):
                    told(stand, kind, rows, len(drawn), row)
            lines.append(table(stand, kind, rows))
    for one_of_them in networks:
        one_of_them.communicate()
    words = f"--seed {options.seed} --every {options.every:g}; worst: unattended, periods, limit {PERIODS}; off, ms, limit {OFF_MS:g}"
    print(f"\n{words}", HEADS, *lines, sep="\n")
    return 1 if verdicts["BAD"] else 3 if verdicts["NOT JUDGED"] else 0


if __name__ == "__main__":
    sys.exit(main())
