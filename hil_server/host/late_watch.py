"""Watches the loop's core from another process and names the cause of every late tick.

    watch = LateWatch(LateTicks.attach(fd), process, core)
    watch.look()                # 50 times a second or less
    watch.named                 # [{tick, late_us, where, cause, who}, ...]

It reads what the kernel tells everybody: `/proc/stat`, `/proc/softirqs`, `/proc/interrupts`, the state of the server's process, thermal
events and frequency of the core; where it may (`CAP_PERFMON`, or `kernel.perf_event_paranoid` of 0 or less), also which thread has the core
when, and with tracefs which softirq (`switch_trace.py`), else the run times of all threads, once a second. A late tick is named at the
first look after it. A look that turns out dear (hundreds of interrupt lines) is taken less often: at most a fiftieth of one core's time.
"""

import os
import re
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from hil_server.host import kernel_files
from hil_server.host.late_causes import Around, Late, cause_of
from hil_server.host.realtime_host import REALTIME_POLICIES, RESET_ON_FORK
from hil_server.host.switch_trace import IDLE, SoftirqTrace, SwitchTrace
from hil_server.values import Document
from rt_kernels.late_ticks import LateTicks

PERIOD = 0.020  # s between two looks
DEAREST = 0.02  # share of a core's time that looking may take
HISTORY = 128  # looks
KEPT = 2000  # late ticks that are named one by one; beyond that their causes are only counted
WIDE_NS = 200_000_000  # ... and so are the softirqs, which are found by sampling
STEAL_NS = 500_000_000  # /proc/stat counts steps of 10 ms: a shorter steal shows only in what is around it
SCAN_PERIOD = 1.0  # s between two looks at all threads
USUAL = frozenset(("TIMER", "SCHED", "HRTIMER", "RCU"))  # softirqs of every core that is not idle
STAT = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class Look(NamedTuple):
    """The core at one time. stat: s of each column of /proc/stat since the start of the machine."""

    at_ns: int
    stat: dict[str, float]
    softirqs: dict[str, int]
    interrupts: dict[str, int]
    stopped: bool
    throttled: int
    frequency: float | None


class LateWatch:
    """late: the loop's late ticks; process: number of the server; core: of the loop, -1 not known; trace: asks for context switches."""

    def __init__(self, late: LateTicks, process: int, core: int, trace: bool = True) -> None:
        self.named: list[Document] = []
        self.counted: dict[str, int] = {}  # cause → ticks, beyond the first KEPT
        self._late, self._process, self._core = late, process, core
        self._history: deque[Look] = deque(maxlen=HISTORY)
        self._waiting: list[Late] = []
        self._next = 0.0
        self._trace = SwitchTrace.open(core) if trace else None
        self._softirqs = SoftirqTrace.open(core) if self._trace else None
        self.sources = "context switches" if self._trace else "run times of threads"
        if self._softirqs is not None:
            self.sources += " and softirqs"
        self._scan: dict[int, int] = {}
        self._scanned: deque[list[tuple[str, int]]] = deque(maxlen=2)
        self._next_scan = 0.0
        self._virtual = " hypervisor" in kernel_files.read("/proc/cpuinfo")
        self._highest = kernel_files.number_in(self._frequency_file("cpuinfo_max_freq"))

    def look(self, last: bool = False) -> None:
        """Takes a look if it is time, and names the late ticks that lie before it. last: names what is left, too."""
        began = time.monotonic()
        self._waiting += [Late(*map(int, one)) for one in self._late.take()]
        for trace in (self._trace, self._softirqs):
            if trace is not None:
                trace.read()  # after the late ticks, so that it reaches to their end; its buffer is full after 0.1 s of a busy network
        if began < self._next and not last:
            return
        busy = time.thread_time()
        self._history.append(self._now())
        done = time.thread_time()
        for late in self._waiting:
            self._name(late)
        self._waiting = []
        self._next = began + max(PERIOD, (done - busy) / DEAREST)
        if self._trace is None and began >= self._next_scan:
            self._look_at_threads()
            self._next_scan = began + max(SCAN_PERIOD, (time.thread_time() - done) / DEAREST)

    def close(self) -> None:
        """Names what is left and gives the trace back."""
        self.look(last=True)
        for trace in (self._trace, self._softirqs):
            if trace is not None:
                trace.close()
        self._trace = self._softirqs = None

    def facts(self) -> Document:
        """For the end of the log: every late tick with its cause, how many more there were, and what the names rest on."""
        return {"late": self.named, "late_more": self.counted, "late_sources": self.sources} if self.named else {}

    # ------------------------------------------------------------------------------------------------------------ naming
    def _name(self, late: Late) -> None:
        cause, who = cause_of(late, self.around(late), self._late.accounted)
        if len(self.named) < KEPT:
            about = {"tick": late.tick, "late_us": round(late.late_ns * 1e-3), "where": late.place, "cause": cause, "who": who}
            self.named.append(about)
        else:
            self.counted[cause] = self.counted.get(cause, 0) + 1

    def around(self, late: Late) -> Around:
        """What happened on the core about this late tick."""
        begin, end = late.target_ns - (0 if late.place == "wake_up" else late.span_ns), late.target_ns + late.late_ns
        history = list(self._history)
        before = next((one for one in reversed(history) if one.at_ns <= begin), history[0])
        after = next((one for one in history if one.at_ns >= end), history[-1])
        long_before = next((one for one in reversed(history) if one.at_ns <= begin - STEAL_NS), history[0])
        wide_before = next((one for one in reversed(history) if one.at_ns <= end - WIDE_NS), history[0])
        softirqs = {kind: count - before.softirqs.get(kind, 0) for kind, count in after.softirqs.items() if kind not in USUAL}
        softirqs = {kind: count for kind, count in softirqs.items() if count}
        shares = None if self._trace is None else self._trace.shares(begin, end)
        return Around(
            ran=None if shares is None else [(self._called(thread), share) for thread, share in shares],
            above=any(share >= 0.2 and _is_realtime(thread) for thread, share in shares or () if thread != self._late.thread),
            busy=[one for rows in self._scanned for one in rows][:3] if self._trace is None else [],
            softirq_time=None if self._softirqs is None else self._softirqs.kinds(begin, end),
            softirqs=softirqs,
            softirq_unseen={} if self._softirqs is None else self._softirqs.left_out(softirqs, before.at_ns, after.at_ns),
            softirq_share=(after.stat["softirq"] - wide_before.stat["softirq"]) / max(1e-9 * (after.at_ns - wide_before.at_ns), 1e-3),
            interrupts=_more_than_usual(history[0], before, after, "interrupts"),
            interrupt_s=after.stat["irq"] - before.stat["irq"],
            steal_s=(stolen := after.stat["steal"] - long_before.stat["steal"]),
            steal_share=stolen / max(1e-9 * (after.at_ns - long_before.at_ns), 1e-3),
            stopped=any(one.stopped for one in history if one.at_ns >= begin and one.at_ns <= after.at_ns),
            throttled=after.throttled - before.throttled,
            frequency=after.frequency,
            virtual=self._virtual,
        )

    def _called(self, thread: int) -> str:
        """Name of a thread; those that have ended meanwhile may have only their number."""
        if thread in (IDLE, self._late.thread):
            return "idle" if thread == IDLE else "loop"
        return kernel_files.read(f"/proc/{thread}/comm") or self._trace is not None and self._trace.names.get(thread) or f"thread {thread}"

    # ----------------------------------------------------------------------------------------------------------- looking
    def _now(self) -> Look:
        at = time.monotonic_ns()
        current = kernel_files.number_in(self._frequency_file("scaling_cur_freq"))
        return Look(
            at,
            self._stat(),
            _column("/proc/softirqs", self._core),
            _column("/proc/interrupts", self._core),
            re.search(r"\) [Tt] ", kernel_files.read(f"/proc/{self._process}/stat")) is not None,
            kernel_files.number_in(f"/sys/devices/system/cpu/cpu{self._core}/thermal_throttle/core_throttle_count") or 0,
            current / self._highest if current and self._highest else None,
        )

    def _stat(self) -> dict[str, float]:
        found = re.search(rf"^cpu{self._core if self._core >= 0 else ''} +(.*)$", kernel_files.read("/proc/stat"), re.MULTILINE)
        numbers = [int(word) for word in found[1].split()] if found else []
        step = 1.0 / os.sysconf("SC_CLK_TCK")
        return {name: step * number for name, number in zip(STAT, [*numbers, *[0] * len(STAT)], strict=False)}

    def _frequency_file(self, name: str) -> str:
        return f"/sys/devices/system/cpu/cpu{self._core}/cpufreq/{name}"

    def _look_at_threads(self) -> None:
        """Run time of every thread whose last core is the loop's, since the last time: the most at first."""
        used, scan, mine = [], {}, self._late.thread
        for path in Path("/proc").glob("[0-9]*/task/[0-9]*"):
            number = int(path.name)
            words = kernel_files.read(f"{path}/schedstat").split()
            if not words or number == mine:
                continue
            scan[number] = int(words[0])
            more = scan[number] - self._scan.get(number, scan[number])
            if more > 1_000_000 and _last_core(str(path)) == self._core:
                used.append((kernel_files.read(f"{path}/comm"), more))
        self._scan = scan
        self._scanned.appendleft(sorted(used, key=lambda one: -one[1]))


def _more_than_usual(first: Look, before: Look, after: Look, key: str) -> dict[str, int]:
    """Kind → counts of the window beyond three times those of the time before it."""
    was, then, now = (getattr(one, key) for one in (first, before, after))
    past = max(before.at_ns - first.at_ns, 1)
    usual = 3.0 * (after.at_ns - before.at_ns) / past
    found = {}
    for kind, count in now.items():
        more = count - then.get(kind, 0) - usual * (then.get(kind, 0) - was.get(kind, 0))
        if more >= 1.0:
            found[kind] = int(more)
    return found


def _column(path: str, core: int) -> dict[str, int]:
    """Row → number of this core in a table of the kernel's."""
    lines = kernel_files.read(path).splitlines()
    if core < 0 or not lines or f"CPU{core}" not in (head := lines[0].split()):
        return {}
    at = head.index(f"CPU{core}") + 1
    found = {}
    for line in lines[1:]:
        words = line.split(None, len(head) + 1)
        if len(words) > at and words[at].isdigit() and words[at] != "0":
            name = words[0].rstrip(":")
            found[f"{words[-1].split()[-1]}" if name.isdigit() and len(words) > len(head) + 1 else name] = int(words[at])
    return found


def _is_realtime(thread: int) -> bool:
    try:
        return thread != IDLE and os.sched_getscheduler(thread) & ~RESET_ON_FORK in REALTIME_POLICIES
    except OSError:  # it has ended
        return False


def _last_core(thread: str) -> int:
    words = kernel_files.read(f"{thread}/stat").rpartition(") ")[2].split()
    return int(words[36]) if len(words) > 36 else -1
