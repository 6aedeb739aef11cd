"""A process of the telemetry, from both ends of its pipes.

It is started with an inherited descriptor of the shared block and a lifeline: a pipe whose end says that the server is gone. One line of
JSON at a time: on its standard input {"settings": ..., "header": ...} and later what else it is to know, at last {"close": {...}}; on its
standard output {"ready": {...addresses...}} or {"error": ..., "exit_code": ...}, and at the end {"closed": {...}}. A line {"trouble": ...}
may come at any time.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple, TypedDict

from hil_server.bus.settings import TelemetrySettings
from hil_server.errors import ConfigurationError, DeviceError, HilError, InternalError
from hil_server.log.format import Facts
from hil_server.log.header import LogHeader
from rt_kernels.doors import queue, subprocess, threading
from rt_kernels.ring import SharedBlock

ROOT = Path(__file__).resolve().parents[2]
# as `python -m MODULE`, but of this very installation wherever it is started from
BOOT = (
    "import sys, importlib; sys.path.insert(0, sys.argv.pop(1)); module = importlib.import_module(sys.argv.pop(1)); "
    "sys.exit(module.main(sys.argv[1:]))"
)


class LogState(TypedDict, total=False):
    """How the log does: ticks that it has and that it lost, why it is incomplete; how often the bus was started again."""

    ticks: int
    lost_ticks: int
    reasons: list[str]
    bus_restarts: int


class Line(TypedDict, total=False):
    """What stands in a line of a pipe, see above; to the bus `log` and `close` say how the log does."""

    settings: dict[str, object]
    header: dict[str, object]
    log: LogState
    close: Facts
    ready: dict[str, str]
    layout: str
    trouble: LogState
    closed: Facts
    error: str
    exit_code: int


class Child:
    """The side that starts it.

    trouble: the newest line of that kind, {} before it. more: descriptors that it inherits as well. Raises OSError when the process cannot
    be started.
    """

    def __init__(self, module: str, name: str, block_fd: int, lifeline: int, more: tuple[int, ...] = ()) -> None:
        self.name = name
        self.trouble: LogState = {}
        self._process = subprocess.Popen(
            [sys.executable, "-c", BOOT, str(ROOT), module, "--fd", str(block_fd), "--lifeline", str(lifeline)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(block_fd, lifeline, *more),
        )
        self._lines: queue.Queue[Line] = queue.Queue()
        self._error = ""
        self._reader = threading.Thread(target=self._read, name=f"{name}-answers", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    @property
    def ending(self) -> str:
        """How it ended, in words; empty while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        if code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}" + (f": {self._error}" if self._error else "")

    def wait(self, timeout_s: float) -> bool:
        """Waits for its end. False when it still runs then."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def start(self, settings: dict[str, object], header: str, timeout_s: float) -> dict[str, str]:
        """Tells it what to do and waits until it is ready. Returns its addresses. Raises ConfigurationError, DeviceError (an address that
        another program has) or InternalError; then it has been ended."""
        try:
            self.tell({"settings": settings, "header": json.loads(header)})
            answer = self.answer(timeout_s)
            if "ready" not in answer:
                kinds = {kind.exit_code: kind for kind in (ConfigurationError, DeviceError)}
                raise kinds.get(answer.get("exit_code", 5), InternalError)(answer.get("error", f"the {self.name} process did not start"))
        except HilError:
            self.kill()
            raise
        return answer["ready"]

    def tell(self, message: Line) -> None:
        """Waits until the line is written: for the start and the end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has died, its pipe is closed; the missing answer says so
            os.set_blocking(self._process.stdin.fileno(), True)
            self._process.stdin.write(json.dumps(message, default=str).encode() + b"\n")
            self._process.stdin.flush()

    def tell_now(self, message: Line) -> None:
        """Never waits: a line that there is no room for is left out. At most 4096 bytes, which a pipe takes whole or not at all."""
        assert self._process.stdin is not None
        line = json.dumps(message, default=str).encode() + b"\n"
        with contextlib.suppress(OSError, ValueError):
            os.set_blocking(self._process.stdin.fileno(), False)
            if len(line) <= 4096:
                os.write(self._process.stdin.fileno(), line)

    def answer(self, timeout_s: float) -> Line:
        """Its next line. Raises InternalError when none comes in time."""
        try:
            return self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise InternalError(f"the {self.name} process (pid {self.pid}) gave no answer within {timeout_s:g} s") from None

    def resume(self) -> None:
        """Lets it run again if somebody has stopped it."""
        with contextlib.suppress(OSError):
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends the process at once and waits until it is gone."""
        self._process.kill()
        self.end(10.0)

    def end(self, timeout_s: float) -> None:
        """Waits for its end, not longer than this, and closes its pipes."""
        if not self.wait(timeout_s):
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout_s)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._hear(line)
        self._ended()

    def _hear(self, line: bytes | str) -> None:
        try:
            message: Line = json.loads(line)
        except ValueError:
            return
        if "trouble" in message:
            self.trouble = message["trouble"]
        else:
            self._error = message.get("error", "")
            self._lines.put(message)

    def _ended(self) -> None:
        self._lines.put({"error": f"the {self.name} process ended"})


# -------------------------------------------------------------------------------------------------------------- the other end


class Control:
    """Standard input: one line of JSON at a time, without waiting."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        self.terminated: list[int] = []
        self._rest = b""

    def _read(self, most: int) -> bytes:
        return os.read(self.descriptor, most)

    def _unblock(self) -> None:
        os.set_blocking(self.descriptor, False)

    def settle(self, settings: TelemetrySettings) -> None:
        """Keeps out of the loop's way: ordinary scheduling, the given cores."""
        if hasattr(os, "sched_setscheduler"):
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            cores = set(settings.cores) & set(range(os.cpu_count() or 1))
            if cores:
                os.sched_setaffinity(0, cores)

    def obey_terminations(self) -> None:
        """SIGTERM is only noted, in `terminated`."""
        signal.signal(signal.SIGTERM, lambda number, frame: self.terminated.append(number))

    def prefer(self, niceness: int) -> None:
        """Of this thread alone; where it is not permitted, as everybody."""
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, niceness)

    def yield_more(self, by: int) -> None:
        """So much more niceness, of this thread alone."""
        os.nice(by)

    def bound(self, memory: int) -> None:
        """At most so many bytes of memory, which a client can make it take, and as many connections as the system allows."""
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (memory if hard == resource.RLIM_INFINITY else min(memory, hard), hard))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536, hard))

    def first_line(self) -> bytes:
        """Waits for the first line."""
        while b"\n" not in self._rest:
            part = self._read(1 << 20)
            if not part:
                raise EOFError("standard input ended before the settings came")
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        self._unblock()
        return line

    def line(self) -> Line | None:
        """The next whole line, or None. Sets `ended` at the end of the input."""
        if not self.ended:
            try:
                part = self._read(1 << 16)
                self.ended = not part
                self._rest += part
            except BlockingIOError:
                pass
        if b"\n" not in self._rest:
            return None
        line, self._rest = self._rest.split(b"\n", 1)
        found: Line = json.loads(line)
        return found


class Task(NamedTuple):
    """Settings of the process at its start."""

    block: SharedBlock
    settings: TelemetrySettings
    header: LogHeader
    arguments: argparse.Namespace


def _print(line: str) -> None:
    print(line, flush=True)


PARENT: ContextVar[Callable[[str], None]] = ContextVar("parent", default=_print)  # who hears what this process says


def serve(name: str, about: str, argv: list[str] | None, work: Callable[[Task, Control], Facts]) -> int:
    """The body of such a process: takes its task, does `work`, which says `ready` itself and returns what `closed` is to say.

    Returns the exit code. Ctrl-C is the server's to handle.
    """
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--fd", type=int, required=True, help="inherited descriptor of the shared block")
    parser.add_argument("--lifeline", type=int, required=True, help="inherited pipe that ends with the server")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return obey(arguments, Control(sys.stdin.fileno()), work)


def obey(arguments: argparse.Namespace, control: Control, work: Callable[[Task, Control], Facts]) -> int:
    """Takes the task of the first line, does `work`, says how it ended. Returns the exit code."""
    try:
        start = json.loads(control.first_line())
        settings = TelemetrySettings.from_dict(start["settings"])
        control.settle(settings)
        task = Task(SharedBlock.attach(arguments.fd), settings, LogHeader.from_json(json.dumps(start["header"])), arguments)
        closed = work(task, control)
    except HilError as error:
        say({"error": str(error), "exit_code": error.exit_code})
        return error.exit_code
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        say({"error": f"telemetry: {error}", "exit_code": 5})
        return 5
    say({"closed": closed})
    return 0


def say(message: Line) -> None:
    """Writes a message for the parent as one line of JSON."""
    with contextlib.suppress(OSError):  # no listener is left; the log shows it
        PARENT.get()(json.dumps(message))
