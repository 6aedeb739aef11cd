"""What a live run takes from the host, and what it did not get.

    with RealtimeHost() as host:
        clock = WallClockPart(..., cpu=host.core, priority=host.priority)
        ...                          # host.missing: one line for each thing that was refused, with its remedy

The loop thread itself pins itself, takes SCHED_FIFO and a timer slack of 1 ns (the wall clock does it, at tick 0); this class does what
belongs to the process: memory lock, CPU latency request, all other threads off the loop's core. Without the privilege the run continues in
the declared soft mode (`priority` 0).
"""

import contextlib
import ctypes
import errno
import os
import resource
import socket
import struct
from pathlib import Path
from types import TracebackType

from hil_server.host import kernel_files, ptp
from hil_server.values import Document

MCL_CURRENT, MCL_FUTURE = 1, 2
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
LOOP_PRIORITY = 80
RESET_ON_FORK, DEADLINE = 0x40000000, 6  # of sched(7)
REALTIME_POLICIES = (os.SCHED_FIFO, os.SCHED_RR, DEADLINE) if hasattr(os, "SCHED_FIFO") else ()
RUN_MARK = "@hil-server.run."  # abstract socket that a live run holds: its name begins so and ends with the process number
REMEDY_PRIVILEGE = "give the user rtprio and memlock in /etc/security/limits.d (docs/real-time-host.md)"


class RealtimeHost:
    """The process prepared for one live run; everything is given back at the end.

    core: of the loop thread (none given: the last isolated core, else the last one allowed; -1 on a machine with one core).
    priority: SCHED_FIFO priority wanted; the attribute is 0 when it cannot be had."""

    watched = True  # the kernel is asked for the causes of late ticks

    def __init__(self, core: int | None = None, priority: int = LOOP_PRIORITY) -> None:
        self.core = choose_core() if core is None else core
        self.priority = priority
        self.missing: list[str] = []
        self.memory_locked = False
        self._latency: int | None = None
        self._mark: socket.socket | None = None
        self._affinity: dict[int, set[int]] = {}

    def __enter__(self) -> "RealtimeHost":
        self._mark = _mark_run()
        self._try_fifo()
        self._lock_memory()
        self._hold_latency()
        self._clear_core()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._latency is not None:
            os.close(self._latency)
            self._latency = None
        for thread, cores in self._affinity.items():
            try:
                os.sched_setaffinity(thread, cores)
            except OSError:
                pass  # the thread has ended
        if self.memory_locked:
            _libc().munlockall()
            self.memory_locked = False
        if self._mark is not None:
            self._mark.close()
            self._mark = None

    @property
    def realtime(self) -> bool:
        """Whether this is a real-time run; otherwise it is a soft one and says so."""
        return self.priority > 0 and self.memory_locked

    def facts(self) -> Document:
        """For the header of the log."""
        return {
            "mode": "realtime" if self.realtime else "soft",
            "core": self.core,
            "priority": self.priority,
            "memory_locked": self.memory_locked,
            "cpu_latency_held": self._latency is not None,
            "missing": list(self.missing),
            "ptp": ptp.state(),
        }

    def _try_fifo(self) -> None:
        if self.priority and (why := fifo_refusal(self.priority)):
            self.priority = 0
            self.missing.append(f"SCHED_FIFO: {why}; {REMEDY_PRIVILEGE}")

    def _lock_memory(self) -> None:
        # A lock that succeeds below a finite limit makes a later allocation fail in the middle of the run: then rather none.
        soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        if soft != resource.RLIM_INFINITY and hard == resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
            soft = hard
        if soft != resource.RLIM_INFINITY and not has_capability(CAP_IPC_LOCK):
            self.missing.append(f"memory lock: limit of {soft // 1024} KiB; {REMEDY_PRIVILEGE}")
            return
        libc = _libc()
        if libc.mlockall(MCL_CURRENT | MCL_FUTURE):
            self.missing.append(f"memory lock: {os.strerror(ctypes.get_errno())}; {REMEDY_PRIVILEGE}")
            return
        self.memory_locked = True

    def _hold_latency(self) -> None:
        try:
            self._latency = os.open("/dev/cpu_dma_latency", os.O_WRONLY | os.O_CLOEXEC)
            os.write(self._latency, struct.pack("<i", 0))
        except OSError as error:
            if self._latency is not None:
                os.close(self._latency)
                self._latency = None
            self.missing.append(
                f"/dev/cpu_dma_latency: {error.strerror}: idle cores may sleep deeply and wake late; let the user's group write to it"
            )

    def _clear_core(self) -> None:
        """All threads that exist now leave the loop's core; those started later inherit that."""
        others = os.sched_getaffinity(0) - {self.core}
        if not others or self.core < 0:
            self.missing.append("a core of its own: this machine has only one; everything else competes with the loop")
            return
        for thread in Path("/proc/self/task").iterdir():
            number = int(thread.name)
            try:
                self._affinity[number] = os.sched_getaffinity(number)
                os.sched_setaffinity(number, others)
            except OSError as error:
                if error.errno != errno.ESRCH:
                    self.missing.append(f"a core of its own: thread {number} stays: {error.strerror}")


def take_ordinary_scheduling() -> None:
    """Real-time scheduling that was inherited (`chrt -f 1 hil-server run`) is given back before anything else is loaded.

    The loop's thread takes its own. Threads that come with libraries inherit what this one has, and some of them spin while they wait for
    one another (OpenBLAS's workers do): at SCHED_FIFO they keep each other from the core for ever."""
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) & ~RESET_ON_FORK in REALTIME_POLICIES:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def choose_core() -> int:
    """The last isolated core, else the last one that this process may use; -1 if there is only one."""
    allowed = os.sched_getaffinity(0)
    isolated = parse_cores(kernel_files.read("/sys/devices/system/cpu/isolated")) & set(range(os.cpu_count() or 1))
    if isolated:
        return max(isolated)
    return max(allowed) if len(allowed) > 1 else -1


def live_runs() -> list[int]:
    """Process numbers of the live runs on this machine (in this network namespace), of all users."""
    names = (line.split()[-1] for line in kernel_files.read("/proc/net/unix").splitlines())
    return sorted(int(name.removeprefix(RUN_MARK)) for name in names if name.startswith(RUN_MARK))


def _mark_run() -> socket.socket:
    """Says that this process drives a live run, until it is closed or the process ends, however it does. An abstract socket leaves nothing
    behind and needs no folder that all users may write to."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with contextlib.suppress(OSError):  # a second run of this process
        mark.bind(f"\0{RUN_MARK[1:]}{os.getpid()}")
    return mark


def parse_cores(text: str) -> set[int]:
    """`0,2-4` as {0, 2, 3, 4}."""
    cores: set[int] = set()
    for item in filter(None, text.strip().split(",")):
        first, _, last = item.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores


def fifo_refusal(priority: int = LOOP_PRIORITY) -> str:
    """Why this process may not use SCHED_FIFO, empty if it may. Tried, in a thread of its own: limits and capabilities do not tell all."""
    import threading

    why: list[str] = []

    def attempt() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        except OSError as error:
            why.append(error.strerror or str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return why[0] if why else ""


def has_capability(number: int) -> bool:
    """Whether the process has the Linux capability of that number in effect."""
    words = [line.split()[1] for line in kernel_files.read("/proc/self/status").splitlines() if line.startswith("CapEff")]
    return bool(words) and bool(int(words[0], 16) >> number & 1)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
