"""Runs of the real line in process: shipped configuration, free-running clock, drained like the telemetry process does."""

import threading
import time

import numpy as np

from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels import codes
from rt_kernels.layout import CODES, FAULTS, SAMPLE_DTYPE

STOPPING = {name for name, _, severity, *_ in FAULTS if severity == "stop"}
QUICK = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.retreat_distance_m=0.05")


def run_line(overrides=(), at=None, config=None):
    """Runs a test; `at` is a list of (time_s, action(block)) done while it runs. Returns the records."""
    test = assembly.simulation(config or load_test(None, list(overrides)))
    waiting = sorted(at or [], key=lambda item: item[0])
    thread = threading.Thread(target=test.line.run)
    taken, newest = [], -1.0
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (test.block.aux_count,))])
    thread.start()
    try:
        while thread.is_alive() or test.block.head > test.block.tail:
            test.block.heartbeat()
            # small bites, so that actions come near the time they are meant for
            records = test.block.drain(50 if waiting else 4096)
            if not records:
                time.sleep(0.0005)
                continue
            taken.append(records)
            newest = np.frombuffer(records[-dtype.itemsize :], dtype)["time_ns"][0] * 1e-9
            while waiting and newest >= waiting[0][0]:
                waiting.pop(0)[1](test.block)
    finally:
        test.block.request_stop()
        thread.join(20.0)
    return np.frombuffer(b"".join(taken), dtype)


def fault_names(value):
    return set(codes.fault_names(value))


def phases(records):
    names = {number: name for name, number in CODES["phase"].items()}
    order = records["phase"][np.flatnonzero(np.diff(records["phase"], prepend=-1))]
    return [names[int(p)] for p in order]
