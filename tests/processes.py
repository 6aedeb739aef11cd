"""What tests want of other processes: a free port, and events of the kernel, without a limit of their own; the test's is the only one."""

import contextlib
import os
import select
import socket
from pathlib import Path


def children(pid):
    """Numbers of the processes that this one has started."""
    return [int(p) for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()]


def wait_for_end(pid):
    """Until the process has ended, whether or not somebody has asked for its exit code."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            select.select([descriptor], [], [])
        finally:
            os.close(descriptor)


def free_port():
    """A port of the loopback that no one has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
