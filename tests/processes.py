"""What tests wait for of other processes: events of the kernel, without a limit of their own; the test's is the only one."""

import contextlib
import os
import select
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
