"""The cause of a late tick, out of what the kernel counted of the loop's thread and what happened on its core meanwhile.

The clock says where a tick lost its time: in the wake-up, or in the step before it (computing, input and output). `cause_of` says why. Its
rules go from what is proven to what is only left over:

    stopped          the thread slept a second time within one sleep, and the process was seen stopped
    page_fault       faults of the thread that may well take this long
    other_thread     the thread was ready and another one had the core
    softirq          it was ready, and the core was busy in the kernel's deferred work (network, block devices)
    interrupt        ... or in interrupts
    blocked          the step waited for something: a lock, a device, memory
    steal            a virtual machine's core was taken away by the machine below it
    throttled        the core was slowed down because it was hot
    frequency        the core ran at a lower frequency than it can
    own_work         the thread had the core all the time: the step itself is that long
    core_stalled     nothing on this machine had the core: firmware (SMI), a deep idle state, or the machine below a virtual one
    unknown          the kernel does not account for threads
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from hil_server.values import Document
from rt_kernels.layout import CODES

FAULT_NS = 10_000  # a page fault without a disk takes no longer than this
SHARE = 0.5  # of the lateness that a cause has to account for
BUSY_SOFTIRQ = 0.12  # of a core's time: usual are some thousandths
RECORDED_SOFTIRQ = 0.3  # of the lateness
BUSY_STEAL = 0.1  # of a core's time: then the machine below is to blame, whatever ran on this one

REMEDIES = {
    "stopped": "do not stop the server during a run (SIGSTOP, Ctrl-Z, a debugger)",
    "page_fault": "allow the memory lock (docs/real-time-host.md, Recipe); a part must not take memory in its step",
    "other_thread": "isolate the loop's core (isolcpus, docs/real-time-host.md); move that program to other cores (taskset)",
    "softirq": "keep network and disk interrupts off the loop's core (irqaffinity, rps_cpus); a PREEMPT_RT kernel",
    "interrupt": "keep interrupts off the loop's core (irqaffinity), no irqbalance",
    "blocked": "a device or a part waits in its step: see the times of input and output in the report",
    "steal": "a less busy host below this virtual machine, or bare metal",
    "throttled": "better cooling, or a lower frequency that holds",
    "frequency": "cpupower frequency-set -g performance",
    "own_work": "a lower rate, or a cheaper part: see the times of computing in the report",
    "core_stalled": "hold off idle states (/dev/cpu_dma_latency), firmware settings (SMI, power saving); bare metal, not a virtual machine",
    "unknown": "a kernel with CONFIG_SCHED_INFO",
}
CAUSES = tuple(REMEDIES)


class Late(NamedTuple):
    """A late tick as the loop wrote it down (`rt_kernels.late_ticks.LATE_TICK`); times in ns."""

    tick: int
    target_ns: int
    late_ns: int
    where: int
    span_ns: int
    run_ns: int
    delay_ns: int
    faults_minor: int
    faults_major: int
    switches_voluntary: int
    switches_involuntary: int

    @property
    def place(self) -> str:
        """wake_up, compute or io."""
        return next(name for name, code in CODES["late_cause"].items() if code == self.where)


@dataclass
class Around:
    """What happened on the loop's core from a little before the late tick to a little after it.

    ran: who had the core between the tick's time and its beginning, (name, share), None where unknown; "idle" for no thread, "loop" for
    the loop itself; above: one of these is real-time itself. busy: threads that used the core in the window, (name, ns), most first, when
    `ran` is not known. softirq_time: kind → share of that same time, None where not recorded; softirqs: kind → how many, without
    those that every busy core has; softirq_unseen: those of them that the record left out; softirq_share: of the core's time in the last
    0.2 s, as sampled; steal_share: in the last 0.5 s.
    interrupts: line → how many more than usual. interrupt_s, steal_s: what the kernel accounts for, in its steps of 10 ms. stopped: the
    process was seen stopped. throttled: new thermal events. frequency: of the core as a share of what it can, None where not known.
    virtual: a hypervisor is below."""

    ran: list[tuple[str, float]] | None = None
    above: bool = False
    busy: list[tuple[str, int]] = field(default_factory=list)
    softirqs: dict[str, int] = field(default_factory=dict)
    softirq_unseen: dict[str, int] = field(default_factory=dict)
    interrupts: dict[str, int] = field(default_factory=dict)
    softirq_share: float = 0.0
    softirq_time: dict[str, float] | None = None
    interrupt_s: float = 0.0
    steal_s: float = 0.0
    steal_share: float = 0.0
    stopped: bool = False
    throttled: int = 0
    frequency: float | None = None
    virtual: bool = False


def cause_of(late: Late, around: Around, accounted: bool = True) -> tuple[str, str]:
    """(cause, who or what). The rules of this module, in their order."""
    if around.stopped and late.switches_voluntary - late.faults_major > (late.place == "wake_up"):
        return "stopped", ""
    if late.faults_major:
        return "page_fault", f"{late.faults_major} from a disk"
    if late.faults_minor * FAULT_NS >= SHARE * late.late_ns:
        return "page_fault", f"{late.faults_minor}"
    others = [(name, share) for name, share in around.ran or () if name not in ("idle", "loop")]
    if late.delay_ns >= SHARE * late.late_ns:
        return _held_up(around, others)
    if late.place == "wake_up":
        if late.switches_voluntary > 1:
            return "stopped", ""
        return _nothing_ran(around)
    lost_ns = late.span_ns - late.run_ns - late.delay_ns
    if accounted and lost_ns >= SHARE * late.late_ns:
        return ("blocked", late.place) if late.switches_voluntary else _nothing_ran(around)
    if not accounted:
        return "unknown", ""
    return _slow(around, late.place)


def _held_up(around: Around, others: list[tuple[str, float]]) -> tuple[str, str]:
    """The loop's thread was ready to run, and did not."""
    if (kind := _softirq(around)) and not (around.above and around.softirq_time is None):
        return "softirq", kind  # in the name of whichever thread they came upon
    if others and others[0][1] >= dict(around.ran or ()).get("idle", 0.0):
        name = others[0][0]
        if name.startswith("ksoftirqd"):
            return "softirq", _most(around.softirqs)
        return ("interrupt", name) if name.startswith("irq/") else ("other_thread", name)
    if around.ran is None:
        return "other_thread", around.busy[0][0] if around.busy else ""
    # no thread had the core, and it was not free: it was in the kernel, on behalf of no thread
    if around.softirqs and around.softirq_time is None:
        return "softirq", _most(around.softirqs)
    if around.softirq_unseen:
        return "softirq", _most(around.softirq_unseen)
    if around.interrupts and not around.virtual:
        return "interrupt", _most(around.interrupts)
    return _nothing_ran(around)


def _nothing_ran(around: Around) -> tuple[str, str]:
    """The thread was not even woken: its timer's interrupt came late. Softirqs let interrupts come, but on a virtual machine a core that
    is busy gets them late."""
    if kind := _softirq(around):
        return "softirq", kind
    if around.interrupt_s and around.interrupts:
        return "interrupt", _most(around.interrupts)
    others = [(name, share) for name, share in around.ran or () if name not in ("idle", "loop") and share >= SHARE]
    if others and around.steal_share < BUSY_STEAL:
        return "other_thread", others[0][0]  # in the kernel, with interrupts off
    if around.softirq_unseen and not others:
        return "softirq", _most(around.softirq_unseen)
    if around.steal_s:
        return "steal", f"{1e3 * around.steal_s:.0f} ms accounted"
    return "core_stalled", "virtual machine" if around.virtual else ""


def _slow(around: Around, place: str) -> tuple[str, str]:
    """The thread had the core all the time, and the step took long."""
    if kind := _softirq(around):
        return "softirq", kind
    if around.interrupt_s and around.interrupts:
        return "interrupt", _most(around.interrupts)
    if around.steal_s:
        return "steal", f"{1e3 * around.steal_s:.0f} ms accounted"
    if around.throttled:
        return "throttled", f"{around.throttled} thermal events"
    if around.frequency is not None and around.frequency < 0.8:
        return "frequency", f"{100.0 * around.frequency:.0f} % of the highest"
    return "own_work", place


def _softirq(around: Around) -> str:
    """The softirq that the core was busy with, empty if it was not: from the record of them, else from the kernel's sampled account."""
    if around.softirq_time is not None:
        kind = max(around.softirq_time, key=around.softirq_time.__getitem__, default="")
        return kind if kind and around.softirq_time[kind] >= RECORDED_SOFTIRQ else ""
    return _most(around.softirqs) if around.softirq_share >= BUSY_SOFTIRQ else ""


def _most(counts: dict[str, int]) -> str:
    return max(counts, key=lambda name: counts[name]) if counts else ""


def summed_up(named: list[Document], more: dict[str, int] | None = None) -> list[Document]:
    """Cause by cause, the one with most ticks first: cause, ticks, worst_us, who (that most often), remedy.

    named: `tick`, `late_us`, `where`, `cause`, `who`; more: cause → further ticks that were only counted."""
    rows = []
    for cause in CAUSES:
        of_it, count = [one for one in named if one["cause"] == cause], (more or {}).get(cause, 0)
        if of_it or count:
            names = [one["who"] for one in of_it if one["who"]]
            who = max(sorted(set(names)), key=names.count) if names else ""
            worst = max((one["late_us"] for one in of_it), default=0)
            rows.append({"cause": cause, "ticks": len(of_it) + count, "worst_us": worst, "who": who, "remedy": REMEDIES[cause]})
    return sorted(rows, key=lambda row: -row["ticks"])
