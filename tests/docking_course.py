"""What tests of whole dockings share: a shipped programme run through the line, its samples and channels of every tick in memory."""

from functools import cache

import numpy as np

from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.line.free_run import blocks
from rt_kernels.layout import BITS, CODES, FAULTS
from tests.open_stand import opened

SIGNAL, SEQUENCE, PHASE = BITS["mechanism_signal"], CODES["sequence"], CODES["phase"]
FIELDS = ("time_ns", "phase", "signal_discrete", "mechanism_command", "sequence", "V_TA", "F_T", "X_TA", "kinetic_energy", "faults",
          "first_contact_time", "end_cause", "control_A", "control_request")  # fmt: skip
DT = 5e-4


def run(name, channels=(), overrides=()):
    """Runs a shipped programme and keeps FIELDS and the named mechanism channels of every tick of the closed loop and after it."""
    test = assembly.simulation(load_test(name, opened(overrides, name)))
    places, at = {}, 0
    for channel in test.aux:
        places[channel.name] = at
        at += channel.count
    kept = {key: [] for key in (*FIELDS, *channels)}
    for records in blocks(test):
        inside = records[records["phase"] >= PHASE["closing"]]
        for key in FIELDS:
            kept[key].append(inside[key].copy())
        for key in channels:
            kept[key].append(inside["aux"][:, places[key]].copy())
    out = {key: np.concatenate(parts) for key, parts in kept.items()}
    out["time"] = out["time_ns"] * 1e-9
    return out


_kept = cache(run)


def course(name, channels=(), overrides=()):
    """As `run`; each course is flown once in a process."""
    return _kept(name, channels, overrides)


def signal(out, name):
    return out["signal_discrete"] & SIGNAL[name] != 0


def first(out, flag):
    """Time at which a flag is set for the first time, s."""
    assert flag.any()
    return out["time"][np.argmax(flag)]


def stops(out):
    """Faults of the run that stop a stand."""
    return [name for name, mask, severity, *_ in FAULTS if severity == "stop" and out["faults"][-1] & mask]
