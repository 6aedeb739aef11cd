"""The processes of an FMU (`rt_kernels.control.fmu.child`), seen from the server: started before the loop, asked to end after it, killed
when they do not."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from rt_kernels.control.fmu.child import main; main()"
SET_UP_S = 30.0  # models with tables or licences take their time
POLL_S = 0.002
END_S = 0.5


class Process:
    """An interpreter with nothing loaded but the FMU; signals of the terminal (Ctrl-C) do not reach it.

    job: what `rt_kernels.control.fmu.child` reads; fd: the mailbox, inherited; folder: of the unpacked FMU, removed at the end. pid: of the
    keeper, with which the FMU's process dies. What the FMU prints goes to the server's standard error.
    """

    def __init__(self, job: dict[str, Any], fd: int, folder: Path) -> None:
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(ROOT)]
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=2, pass_fds=(fd,), process_group=0)
        self.pid = self.popen.pid
        self._end = weakref.finalize(self, _end, self.popen, folder)
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(json.dumps(job | {"fd": fd}).encode() + b"\n")
            self.popen.stdin.flush()
        except OSError:
            pass  # it is gone: `wait` says so

    def wait(self, ready: Callable[[], bool]) -> str:
        """Until `ready()`; "", or why the FMU will never be."""
        limit = time.monotonic() + SET_UP_S
        while not ready():
            if (code := self.popen.poll()) is not None:
                return "" if ready() else f"its process ended with {_cause(code)} while the FMU was made"
            if time.monotonic() > limit:
                return f"the FMU is not ready after {SET_UP_S:g} s"
            time.sleep(POLL_S)
        return ""

    def has_thread(self, number: int) -> bool:
        """Whether this is a thread of the FMU's process: the FMU says which, and the loop gives it a priority."""
        try:
            status = Path(f"/proc/{number}/status").read_text()
        except OSError:
            return False
        return any(line.split() == ["PPid:", str(self.pid)] for line in status.splitlines())

    def close(self) -> None:
        """Ends it; may be called twice."""
        self._end()


def cause_of(number: int) -> str:
    """Name of the signal that ended a process; none: it called exit."""
    return signal.Signals(number).name if number else "exit()"


def _cause(code: int) -> str:
    number = -code if code < 0 else code - 128
    return signal.Signals(number).name if number in {s.value for s in signal.Signals} else f"exit code {code}"


def _end(popen: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Its standard input closed it ends by itself; one that hangs in the FMU does not and is killed."""
    try:
        if popen.stdin is not None:
            popen.stdin.close()
    except OSError:
        pass
    try:
        popen.wait(END_S)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
    shutil.rmtree(folder, ignore_errors=True)


def memory_file(size: int) -> int:
    """A descriptor of `size` bytes that two processes can map."""
    fd = os.memfd_create("hil-server-fmu", os.MFD_CLOEXEC)
    os.ftruncate(fd, size)
    return fd
