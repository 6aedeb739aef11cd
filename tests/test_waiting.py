"""Tests judge by events, conditions and virtual time. Which of them wait by the clock or read it all the same, and why: the whole list."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
MOST_SLEEPS = 15
SLEEP = re.compile(r"\btime\.sleep\(|\bfrom time import\b")
CLOCK = re.compile(r"\btime\.(?:clock_gettime|monotonic|perf_counter|process_time|thread_time|time)(?:_ns)?\b")

# file: (sleeps, readings of a clock, why)
KNOWN = {
    "contracts/test_ports.py": (0, 2, "gives up when a port never says that its device is silent"),
    "drivers/drives/test_can_axes.py": (1, 2, "a rate is held between bounds from both sides of each SYNC; a look late on purpose"),
    "drivers/drives/test_ethercat_axes.py": (0, 10, "gives up when the axes' own thread never answers; a frame leaves between two readings;"
                                                   " a grid has a point after any time"),  # fmt: skip
    "drivers/drives/test_ethercat_wire.py": (1, 0, "the cycle of the line, whose other end is a process"),
    "drivers/peers/ethercat_faults.py": (0, 4, "when a frame was sent and came: a delay on the line has a lower bound"),
    "drivers/peers/ethercat_segment_small.py": (0, 5, "the clock of a peer of its own"),
    "drivers/peers/stand.py": (0, 5, "the same, for a server in another process"),
    "drivers/plain_stand.py": (0, 3, "the stand's time: the machine's, and what passed at once"),
    "drivers/simulated/sensor_emulators/test_sensor_emulators.py": (0, 4, "a rate has an upper bound from both sides of the reading"),
    "drivers/simulated/test_stand_server.py": (1, 5, "stamps of a sample and of a frame; a delay that was asked for has a lower bound; a "
                                                     "stand that is stopped, late on purpose"),  # fmt: skip
    "drivers/wrench_sensors/test_ati_can.py": (0, 4, "an age lies between readings of the clock before and after it"),
    "drivers/wrench_sensors/test_rdt.py": (1, 7, "an age lies between two readings of the clock; a look that is late on purpose"),
    "drivers/wrench_sensors/test_serial_sensors.py": (0, 5, "a record that was read came after it was sent; repeats what took long"),
    "fuzz/__main__.py": (0, 2, "prints how long it took"),
    "fuzz/harness.py": (0, 4, "processor time of one input"),
    "host/test_late_causes.py": (0, 5, "what the kernel's trace says of a thread beside that thread's own clock"),
    "host/test_ptp.py": (0, 1, "a clock of the card that is the machine's, moved"),
    "loop/test_clocks_and_loop.py": (0, 4, "an age by the machine's clock lies between two readings of it"),
    "loop/test_grid_reference.py": (0, 2, "the wall clock does not end a period before its time"),
    "loop/test_ring.py": (0, 1, "commands expire by the machine's clock; the test counts from it"),
    "safety/any_input.py": (0, 2, "prints how long it took"),
    "system/test_interrupted.py": (0, 2, "gives up when a program shows no bar"),
    "system/test_session.py": (0, 4, "what a run says that it took is no more than what passed around it"),
    "console/chromium.py": (1, 2, "a page tells no one that it has changed: it is asked again; gives up when it never does"),
    "console/fake_run.py": (0, 6, "stamps of its messages, one every 50 ms"),
    "bus/conftest.py": (0, 2, "a stand-in of the loop keeps pace with the clock that the age of its data is taken against"),
    "console/test_console.py": (1, 0, "the console answers pages that are gone late; its errors have time to be printed"),
    "viewers/test_foxglove_live.py": (0, 2, "stamps of frames are of the time of day"),
}


def counted():
    """(sleeps, readings of a clock) of every file that has some; programs of a test that stand in a text count too."""
    found = {}
    for file in sorted(TESTS.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        sleeps, readings = len(SLEEP.findall(text)), len(CLOCK.findall(text))
        if (sleeps or readings) and file != Path(__file__):
            found[file.relative_to(TESTS).as_posix()] = sleeps, readings
    return found


def test_every_file_that_waits_by_the_clock_or_reads_it_is_listed():
    found = counted()
    listed = {file: (sleeps, readings) for file, (sleeps, readings, _) in KNOWN.items()}
    wrong = {file: f"has {found.get(file)} (sleeps, readings), KNOWN says {listed.get(file)}"
             for file in found.keys() | listed.keys() if found.get(file) != listed.get(file)}  # fmt: skip
    assert not wrong, "wait for an event, or give the code under test a clock; else list it in tests/test_waiting.py with the reason"
    assert all(why for *_, why in KNOWN.values()) and sum(sleeps for sleeps, _ in found.values()) <= MOST_SLEEPS


def test_what_is_looked_for_is_found():
    assert SLEEP.findall("time.sleep(1); wake.wait(1)") == ["time.sleep("] and SLEEP.findall("from time import sleep")
    assert len(CLOCK.findall("time.monotonic() time.time_ns() self.time.x record['time_ns'] time.perf_counter")) == 3
