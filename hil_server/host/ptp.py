"""State of the PTP clocks of this machine, for the header of the log: what the kernel's clocks and `ptp4l` say of themselves.

To compare stamps of two machines (a sensor's, a camera's), their clocks must be one. Nothing here is needed for a
run.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

from hil_server.host import kernel_files
from hil_server.values import Document

CLOCKS = Path("/sys/class/ptp")
SERVER = Path("/run/ptp4l")  # socket of a running ptp4l
ASKED = ("PORT_DATA_SET", "TIME_STATUS_NP")
WANTED = {"portState": str, "master_offset": int, "gmPresent": str, "gmIdentity": str}
PATIENCE_S = 1.0


def state(clocks: Path = CLOCKS, devices: Path = Path("/dev"), server: Path = SERVER) -> list[Document]:
    """One entry for each PTP hardware clock: its name, its network interfaces, `offset_ns` to CLOCK_REALTIME (None when it cannot be read;
    PTP counts TAI, 37 s ahead of UTC), and one with what ptp4l answers (`portState`, `master_offset` in ns ...) where it runs."""
    found = []
    for clock in sorted(clocks.glob("ptp*")):
        found.append({
            "clock": clock.name,
            "name": kernel_files.read(clock / "clock_name"),
            "interfaces": sorted(one.name for one in (clock / "device" / "net").glob("*")),
            "offset_ns": _offset_ns(devices / clock.name),
        })  # fmt: skip
    if server.exists() and shutil.which("pmc"):
        found.append({"daemon": "ptp4l", **_asked()})
    return found


def _offset_ns(device: Path) -> int | None:
    """The hardware clock less CLOCK_REALTIME, at the closest of three looks."""
    try:
        descriptor = os.open(device, os.O_RDONLY)
    except OSError:
        return None
    try:
        looks = []
        for _ in range(3):
            before = time.clock_gettime_ns(time.CLOCK_REALTIME)
            there = time.clock_gettime_ns((~descriptor << 3) | 3)  # FD_TO_CLOCKID, clock_gettime(2)
            after = time.clock_gettime_ns(time.CLOCK_REALTIME)
            looks.append((after - before, there - (before + after) // 2))
        return min(looks)[1]
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _asked() -> Document:
    command = ["pmc", "-u", "-b", "0", *(f"GET {what}" for what in ASKED)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    return answer_of(done.stdout) or {"error": (done.stderr or "no answer").strip()[:200]}


def answer_of(text: str) -> Document:
    """What is wanted of the answers of `pmc`: lines of a name and a value."""
    found: Document = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] in WANTED:
            try:
                found[words[0]] = WANTED[words[0]](words[1])
            except ValueError:
                continue
    return found
