"""What takes part in a live run asks its surroundings through the doors alone (rt_kernels/doors.h and doors.py): all of what does
not, with reasons."""

import re
import threading
import time as real_time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil_server.bus.desk_book import DeskBook
from rt_kernels import doors

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("hil_server/run", "hil_server/line", "hil_server/log", "hil_server/bus", "drivers", "rt_kernels")
# in Python: modules of the surroundings, what makes durable, files that are written
MODULES = "(?:time|socket|select|threading|queue|subprocess)"
BARE = re.compile(rf"^\s*(?:import {MODULES}\b|from {MODULES} import)|os\.fsync|os\.open\(|(?<![\w.])open\([^)\n]*\"[wax]", re.MULTILINE)
# in what is compiled: system calls for clock, waiting, wires
CALLS = re.compile(r"\b(?:clock_gettime|clock_nanosleep|nanosleep|ppoll|sendmmsg|recvmmsg|sendto|recvfrom|usleep)\(|SYS_futex"
                   r"|from posix\.unistd cimport")  # fmt: skip
OUTSIDE = {
    "rt_kernels/doors.py": "the doors themselves",
    "rt_kernels/disk.py": "the doors themselves",
    "rt_kernels/host.pxd": "the doors themselves",
    "drivers/raw_frames/frame_io.h": "the doors themselves",
    "drivers/drives/keeper.pxd": "the doors themselves: a word that a thread waits for",
    "drivers/simulated/native_world.c": "what is behind them in a world",
    "hil_server/run/replay.py": "after a run: how fast a replay was",
    "hil_server/run/claim.py": "before a run: names in the kernel's table of sockets, which a world does not share",
    "hil_server/bus/peers.py": "of the bus: who is at the other end of a socket of the machine",
    "hil_server/bus/server.py": "of the bus: the journal of commands",
    "drivers/wrench_sensors/rdt_scaling.py": "before a run: the sensor's page, by HTTP",
    "drivers/simulated/sensor_emulators/rdt_set_up.py": "before a run: that page",
    "drivers/simulated/stand_server.py": "the stand as a process of its own: its main thread",
    "drivers/simulated/ethercat_segment.pyx": "a segment without a stand, for tests of masters",
    "drivers/wrench_sensors/serial_stream.pyx": "serial lines are terminals: not in a world yet",
    "drivers/simulated/emulated_sensor.pxd": "serial lines, as above",
    "drivers/simulated/sensor_emulators/serial_line.pxd": "serial lines, as above",
    "drivers/hand_controllers/evdev.py": "hand controllers are processes of their own, clients of the bus",
    "drivers/hand_controllers/keyboard.py": "hand controllers, as above",
    "rt_kernels/control/fmu/child.pyx": "a model of somebody else in a sandbox of its own",
    "rt_kernels/control/fmu/process.py": "that model, as above",
    "rt_kernels/control/fmu/mailbox.h": "that model, as above",
    "rt_kernels/control/fmu/sandbox.h": "that model, as above",
    "rt_kernels/model/tree_generator.py": "before a run: a compiler",
    "rt_kernels/offline/kane.py": "no part of a run: a compiler",
}


def bare():
    """Files of what takes part in a live run that ask their surroundings themselves."""
    found = set()
    for place in PLACES:
        for file in sorted(ROOT.joinpath(place).rglob("*")):
            if file.suffix in {".py", ".pyx", ".pxd", ".h"} or (file.suffix == ".c" and file.name.startswith("native_")):
                text = re.sub(r"/\*(?:.|\n)*?\*/", "", file.read_text())
                without = re.sub(r'"""(?:.|\n)*?"""', "", text)
                if (file.suffix in {".py", ".pyx"} and BARE.search(without)) or (file.suffix != ".py" and CALLS.search(text)):
                    found.add(file.relative_to(ROOT).as_posix())
    return found


def test_nothing_else_asks_its_surroundings_itself():
    assert bare() - OUTSIDE.keys() == set(), "through rt_kernels.doors, or with the reason in OUTSIDE"
    assert OUTSIDE.keys() - bare() == set(), "it no longer does"


def test_what_is_looked_for_is_found():
    for text in ("import time\n", "from queue import Empty\n", "os.fsync(1)", 'open(path, "xb")', "    import socket\n"):
        assert BARE.search(text)
    for text in ("from rt_kernels.doors import time\n", 'file.open("w")', 'open(path, "rb")', "import timeit\n"):
        assert not BARE.search(text)


def test_the_doors_lead_to_a_world_and_back():
    sleeps = []
    with doors.opened({"time": SimpleNamespace(monotonic=lambda: 7.0, sleep=sleeps.append)}):
        clock = doors.time
        assert clock.monotonic() == 7.0 and doors.threading.Event is threading.Event
        clock.sleep(1e6)
        assert DeskBook()._clock() == 7.0, "a default that was bound before there was a world"
        with pytest.raises(RuntimeError, match="already"), doors.opened({}):
            pass
        with doors.closed():
            assert clock.monotonic() > 7.0
        assert clock.monotonic() == 7.0
    assert sleeps == [1e6] and clock.gmtime(0) == real_time.gmtime(0)
    assert doors.made_as("stand", dict) is dict
