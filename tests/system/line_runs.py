"""Runs of the real line in process: shipped configuration, free-running clock, drained like the telemetry process does. And of the live
system in virtual time."""

import contextlib

import numpy as np

from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.world.flight import Flight, flown
from rt_kernels import codes
from rt_kernels.layout import CODES, FAULTS, SAMPLE_DTYPE
from tests.open_stand import opened

STOPPING = {name for name, _, severity, *_ in FAULTS if severity == "stop"}
PIECE_TICKS = 10  # between two looks at what is to be done
QUICK = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.retreat_distance_m=0.05")


def run_line(overrides=(), at=None, config=None):
    """Runs a test; `at` is a list of (time_s, action(block)) done while it runs, between the ticks before and after their time, however
    busy the machine is. Returns the records."""
    test = assembly.simulation(config or load_test(None, opened(overrides)))
    waiting = sorted(at or [], key=lambda item: item[0])
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (test.block.aux_count,))])
    clock, period_s = test.line.clock, test.context["period_s"]
    clock.pause_every(PIECE_TICKS, test.line.sample)
    taken = []
    while not taken or clock.paused:
        test.block.heartbeat()
        while waiting and clock.tick * period_s >= waiting[0][0]:
            waiting.pop(0)[1](test.block)
        test.line.run()
        while records := test.block.drain(4096):
            taken.append(records)
    return np.frombuffer(b"".join(taken), dtype)


@contextlib.contextmanager
def in_a_world(folder, seed=1):
    """Live runs of the block (settings: NO_BUS) are in virtual time, with their log in `folder`."""
    flight = Flight(seed, (), folder / "run.mcap")
    with flown(flight):
        yield
    if flight.error:
        raise flight.error
    assert flight.left == []


def fault_names(value):
    return set(codes.fault_names(value))


def phases(records):
    names = {number: name for name, number in CODES["phase"].items()}
    order = records["phase"][np.flatnonzero(np.diff(records["phase"], prepend=-1))]
    return [names[int(p)] for p in order]
