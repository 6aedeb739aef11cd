"""What the host lacks for real time. Each finding has a level (fail, warn, info), what was found, and a remedy.

fail: the loop cannot be a real-time one at all; warn: not tuned, the tail of the lateness will show it; info: as it should be, or worth
knowing. Every line of the recipe in docs/real-time-host.md (RECIPE) is answered on every host. The own measurement at the end counts more
than any setting.
"""

import os
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from hil_server import registry
from hil_server.host import kernel_files
from hil_server.host.late_causes import summed_up
from hil_server.host.late_watch import LateWatch
from hil_server.host.realtime_host import (
    CAP_IPC_LOCK,
    LOOP_PRIORITY,
    REMEDY_PRIVILEGE,
    choose_core,
    fifo_refusal,
    has_capability,
    parse_cores,
)
from hil_server.host.switch_trace import SwitchTrace
from hil_server.values import Document

PERIOD_NS = 1_000_000
GAP_NS = 50_000
LATE_NS = 100_000  # as the loop's clock counts a late tick


# what docs/real-time-host.md has set up, in its order
RECIPE = (
    "SCHED_FIFO", "memory lock", "idle states", "record of switches", "real-time throttling", "kernel", "virtual machine", "cores",
    "timer tick", "sibling threads", "interrupts", "irqbalance", "watchdog", "frequency governor", "swap", "transparent huge pages",
    "page merging (ksm)", "numa balancing", "clock source",
)  # fmt: skip


class Finding(NamedTuple):
    """level: fail, warn or info."""

    level: str
    item: str
    found: str
    remedy: str = ""


def examine(core: int | None = None, seconds: float = 2.0) -> list[Finding]:
    """All findings about this host, worst first; the last ones are the measurement of `seconds` on `core`."""
    core = choose_core() if core is None else core
    settings = [*_privileges(), *_kernel(), *_cores(core), *_power(), *_clock(), *_memory(), *_interrupts(core), *_buses()]
    settings.sort(key=lambda f: ("fail", "warn", "info").index(f.level))
    return settings + (measure(core, seconds) if seconds > 0 else [])


# ------------------------------------------------------------------------------------------------------------------ settings
def _privileges() -> Iterator[Finding]:
    why = fifo_refusal()
    yield Finding("fail", "SCHED_FIFO", why, REMEDY_PRIVILEGE) if why else Finding("info", "SCHED_FIFO", "allowed")
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    if limit == resource.RLIM_INFINITY or has_capability(CAP_IPC_LOCK):
        yield Finding("info", "memory lock", "allowed")
    else:
        yield Finding("fail", "memory lock", f"limit {limit // 1024} KiB", REMEDY_PRIVILEGE)
    runtime = kernel_files.number_in("/proc/sys/kernel/sched_rt_runtime_us")
    if runtime == 0:
        yield Finding("fail", "real-time throttling", "no real-time run time at all", "sysctl kernel.sched_rt_runtime_us=950000")
    elif runtime is not None and runtime > 0:
        yield Finding("info", "real-time throttling", f"{runtime} us a second: the loop may use up to {runtime / 1e4:.0f} % of its core")
    else:
        yield Finding("info", "real-time throttling", "none")
    if trace := SwitchTrace.open(max(os.sched_getaffinity(0))):
        trace.close()
        yield Finding("info", "record of switches", "allowed: late ticks are named by who had the core")
    else:
        remedy = "sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON: late ticks are named by who had the core"
        yield Finding("info", "record of switches", "not allowed: late ticks are named from run times", remedy)


def _kernel() -> Iterator[Finding]:
    version = os.uname()
    text = f"{version.release} {version.version}"
    if kernel_files.read("/sys/kernel/realtime") == "1" or "PREEMPT_RT" in text:
        yield Finding("info", "kernel", f"{version.release}, PREEMPT_RT")
    else:
        remedy = "a PREEMPT_RT kernel (mainline since 6.12), or at least preempt=full on its command line"
        yield Finding("warn", "kernel", f"{version.release}, not PREEMPT_RT", remedy)
    if " hypervisor" in kernel_files.read("/proc/cpuinfo"):
        yield Finding("warn", "virtual machine", "yes: no promise about lateness is possible", "bare metal, for live tests on hardware")
    else:
        yield Finding("info", "virtual machine", "no")


def _cores(core: int) -> Iterator[Finding]:
    allowed = sorted(os.sched_getaffinity(0))
    isolated = parse_cores(kernel_files.read("/sys/devices/system/cpu/isolated"))
    if len(allowed) < 2:
        yield Finding("warn", "cores", "1: everything else competes with the loop", "at least 2 cores, better 4 with one isolated")
    elif core in isolated:
        yield Finding("info", "cores", f"{len(allowed)}; the loop on core {core}, isolated")
    else:
        remedy = f"kernel command line: isolcpus={core} nohz_full={core} rcu_nocbs={core}"
        yield Finding("warn", "cores", f"{len(allowed)}; the loop on core {core}, not isolated", remedy)
    if core in parse_cores(kernel_files.read("/sys/devices/system/cpu/nohz_full").replace("(null)", "")):
        yield Finding("info", "timer tick", f"stopped on core {core} while the loop has it (nohz_full)")
    else:
        yield Finding("warn", "timer tick", "on every core", f"kernel command line: nohz_full={core} (with isolcpus and rcu_nocbs)")
    if kernel_files.read("/sys/devices/system/cpu/smt/active") == "1":
        yield Finding("warn", "sibling threads", "on: a neighbour shares the loop's core", "switch SMT off in the firmware, or nosmt")
    else:
        yield Finding("info", "sibling threads", "none")


def _power() -> Iterator[Finding]:
    governors = {p.read_text().strip() for p in Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor")}
    if governors - {"performance"}:
        yield Finding("warn", "frequency governor", ", ".join(sorted(governors)), "cpupower frequency-set -g performance")
    else:
        yield Finding("info", "frequency governor", "performance" if governors else "the frequency is not this kernel's to set")
    if os.access("/dev/cpu_dma_latency", os.W_OK):
        yield Finding("info", "idle states", "held off during a run (/dev/cpu_dma_latency)")
    else:
        remedy = "let the user's group write to /dev/cpu_dma_latency (udev rule in docs/real-time-host.md)"
        yield Finding("warn", "idle states", "/dev/cpu_dma_latency not writable", remedy)


def _clock() -> Iterator[Finding]:
    source = kernel_files.read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source and source not in ("tsc", "arch_sys_counter"):
        yield Finding("warn", "clock source", source, "tsc, if the machine has a constant one (kernel: clocksource=tsc)")
    else:
        yield Finding("info", "clock source", source or "not known")
    resolution = time.clock_getres(time.CLOCK_MONOTONIC)
    if resolution > 1e-6:
        yield Finding("fail", "clock resolution", f"{resolution:g} s", "a kernel with high-resolution timers")


def _memory() -> Iterator[Finding]:
    swaps = kernel_files.read("/proc/swaps").splitlines()[1:]
    if swaps:
        yield Finding("warn", "swap", f"{len(swaps)} in use", "swapoff -a for live tests")
    else:
        yield Finding("info", "swap", "none")
    pages = re.search(r"\[(\w+)\]", kernel_files.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    if pages and pages[1] == "always":
        yield Finding("warn", "transparent huge pages", "always", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
    else:
        yield Finding("info", "transparent huge pages", pages[1] if pages else "none")
    for item, file in (("page merging (ksm)", "/sys/kernel/mm/ksm/run"), ("numa balancing", "/proc/sys/kernel/numa_balancing")):
        if kernel_files.read(file) not in ("", "0"):
            yield Finding("warn", item, "on", f"echo 0 > {file}")
        else:
            yield Finding("info", item, "off")


def _interrupts(core: int) -> Iterator[Finding]:
    here = [p.parent.name for p in Path("/proc/irq").glob("[0-9]*/smp_affinity_list") if core in parse_cores(kernel_files.read(p))]
    if not here or core < 0:
        yield Finding("info", "interrupts", "none may come to the loop's core" if core >= 0 else "all come to the only core")
    else:
        others = ",".join(str(c) for c in sorted(os.sched_getaffinity(0) - {core}))
        yield Finding(
            "warn", "interrupts", f"{len(here)} may come to core {core}", f"irqaffinity={others} on the kernel command line, no irqbalance"
        )
    if kernel_files.read("/proc/sys/kernel/watchdog") == "1":
        yield Finding("info", "watchdog", "on: a timer interrupt on every core", "sysctl kernel.watchdog=0")
    else:
        yield Finding("info", "watchdog", "off")
    if any(kernel_files.read(p) == "irqbalance" for p in Path("/proc").glob("[0-9]*/comm")):
        yield Finding("warn", "irqbalance", "running: it moves interrupts to the loop's core", "systemctl disable --now irqbalance")
    else:
        yield Finding("info", "irqbalance", "not running")


def _buses() -> Iterator[Finding]:
    try:
        socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW).close()
        interfaces = [p.parent.name for p in Path("/sys/class/net").glob("*/type") if kernel_files.read(p) == "280"]
        yield Finding("info", "CAN", f"interfaces: {', '.join(interfaces) or 'none'}")
        for name in interfaces:
            length = kernel_files.number_in(f"/sys/class/net/{name}/tx_queue_len") or 0
            if length < 100:
                yield Finding("warn", f"CAN {name}", f"transmit queue of {length} frames", f"ip link set {name} txqueuelen 100")
    except (OSError, AttributeError):
        yield Finding("info", "CAN", "this kernel has none: drives on CAN are not possible here", "modprobe can can_raw, or another kernel")
    for port in sorted(Path("/sys/bus/usb-serial/devices").glob("*/latency_timer")):
        if (kernel_files.number_in(port) or 0) > 1:
            yield Finding("warn", f"serial {port.parent.name}", f"latency timer {kernel_files.read(port)} ms", f"echo 1 > {port}")


# --------------------------------------------------------------------------------------------------------------- measurement
def measure(core: int, seconds: float) -> list[Finding]:
    """Sleeps on an absolute 1 kHz grid with the loop's own rights, names the causes of what came late, then looks for gaps in a spinning
    core. Where it is installed, cyclictest runs beside the wake-ups, just below them: the yardstick of the same seconds."""
    steal = _steal_ticks()
    peer = _cyclictest(core, seconds)
    lateness, causes = wake_ups(core, seconds)
    beside = _latencies(peer.communicate()[0]) if peer is not None else []
    gaps = spin_gaps(core, min(seconds, 1.0))
    stolen = _steal_ticks() - steal
    figures = quantiles(lateness)
    level = "warn" if figures["p99"] > 500 or figures["p50"] > 60 else "info"
    remedy = "the findings above, from the top; then measure again"
    found = [Finding(level, f"wake-ups, {seconds:g} s at 1 kHz", _shown(figures), remedy if level == "warn" else "")]
    if beside:
        found.append(Finding("info", "cyclictest beside them", _shown(quantiles(beside))))
    elif peer is None:
        found.append(Finding("info", "cyclictest beside them", "not installed", "apt install rt-tests, for a yardstick"))
    for row in causes:
        who = f" ({row['who']})" if row["who"] else ""
        count = f"{row['ticks']} above {LATE_NS // 1000} us, worst {row['worst_us']} us{who}"
        found.append(Finding("warn", f"late by {row['cause'].replace('_', ' ')}", count, row["remedy"]))
    if gaps:
        longest = f"{len(gaps)}, longest {max(gaps) / 1e3:.0f} us"
        found.append(Finding("warn", f"gaps above {GAP_NS // 1000} us", longest, "firmware, or something above the loop, takes the core"))
    else:
        found.append(Finding("info", f"gaps above {GAP_NS // 1000} us", "none"))
    if stolen:
        found.append(Finding("warn", "stolen time", f"{stolen} clock ticks during the measurement", "a less busy host below this one"))
    return found


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.0f} us" for name, value in figures.items())


def _cyclictest(core: int, seconds: float) -> "subprocess.Popen[str] | None":
    """That program for so long at 1 kHz on this core, at a priority below the loop's; None where it is not installed."""
    if core < 0 or not shutil.which("cyclictest"):
        return None
    command = ["cyclictest", "-q", "-m", "-t1", f"-p{LOOP_PRIORITY - 1}", f"-a{core}", "-i1000", "-h100000", f"-D{max(1, round(seconds))}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _latencies(text: str) -> list[int]:
    """Out of cyclictest's histogram (µs, count), ns, ascending."""
    found: list[int] = []
    for line in text.splitlines():
        if pair := re.match(r"(\d+)\s+(\d+)$", line.strip()):
            found += [1000 * int(pair[1])] * int(pair[2])
    return found


def quantiles(lateness_ns: list[int]) -> dict[str, float]:
    """p50, p99, p999 and max in microseconds."""
    ordered = sorted(lateness_ns)
    last = len(ordered) - 1
    return {name: ordered[round(q * last)] / 1e3 for name, q in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))}


def wake_ups(core: int, seconds: float) -> tuple[list[int], list[Document]]:
    """Lateness in ns of each wake-up of the loop's own clock, alone on a thread of its own; what came late, this thread looks into
    meanwhile. Returns it with the causes, as `summed_up`."""
    lateness: list[int] = []
    clock_of_a_run = registry.part("clocks", registry.LIVE_CLOCK)
    priority = 0 if fifo_refusal() else LOOP_PRIORITY
    clock = clock_of_a_run(period_ns=PERIOD_NS, duration_ns=int(seconds * 1e9), priority=priority, cpu=core)
    watch = LateWatch(clock.late, os.getpid(), core)
    thread = threading.Thread(target=lambda: lateness.extend(clock.wake_ups(int(seconds * 1e9) // PERIOD_NS).tolist()))
    thread.start()
    while thread.is_alive():
        watch.look()
        time.sleep(0.01)
    watch.close()
    return lateness, summed_up(watch.named, watch.counted)


def spin_gaps(core: int, seconds: float) -> list[int]:
    """Times in ns, above 50 us, for which a thread that never sleeps did not run."""
    gaps: list[int] = []

    def body() -> None:
        last = time.monotonic_ns()
        end = last + int(seconds * 1e9)
        while last < end:
            now = time.monotonic_ns()
            if now - last > GAP_NS:
                gaps.append(now - last)
            last = now

    _on_core(core, body)
    return gaps


def _on_core(core: int, body: Callable[[], None]) -> None:
    """Runs `body` in a thread pinned to `core`, at the loop's priority if allowed."""

    def prepared() -> None:
        try:
            if core >= 0:
                os.sched_setaffinity(0, {core})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))
        except OSError:
            pass  # the findings say that it is not allowed; what is measured then is the soft mode
        body()

    thread = threading.Thread(target=prepared)
    thread.start()
    thread.join()


def _steal_ticks() -> int:
    words = re.findall(r"\d+", kernel_files.read("/proc/stat").partition("\n")[0])
    return int(words[7]) if len(words) > 7 else 0
