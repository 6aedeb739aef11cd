"""What a campaign made of this machine's cores."""

import os
import resource
from pathlib import Path


def share_used(seconds: float) -> float:
    """Processor time of this process and its workers over what all cores of this machine had to give: 1 is all of it."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage) / (seconds * (os.cpu_count() or 1))


def idle_and_all_time() -> tuple[int, int]:
    """Idle time and all time of this machine's cores so far, clock ticks; zeros where /proc does not say."""
    try:
        words = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return 0, 0
    return words[3] + words[4], sum(words)
