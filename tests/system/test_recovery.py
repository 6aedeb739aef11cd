"""A trip in the middle of a docking, its cause cleared, and the run led home: in process for many faults, live over the wire for one. The
whole matrix: `tools/live_fault_matrix.py --recover`."""

import numpy as np
import pytest

from drivers.simulated.injections import BY_NAME, IN_PROCESS
from hil_server.log.recoveries import name_as_arguments, recovered, recoveries_of
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK, STOPPING, fault_names, phases, run_line
from tools.live_fault_matrix import recover

COMMAND, STATE = CODES["command"], CODES["safety_state"]
WAITING = ("guidance.fault_s=0.1", "guidance.recover_s=20.0", "safety.recover_fresh_s=0.2", "safety.recover_limit_s=0.5",
           "guidance.finish_at_region_end=false")  # fmt: skip

# what these trip needs of the stand, and of the injection: a zero that is wrong trips before the loop is closed
CHAIN = {"emergency_stop": "emergency_stop", "guard_open": "guard", "chain_discrepant": "emergency_stop", "unit_fault": "hydraulic_unit"}
BEFORE_CLOSING = {"sensor_bias": 50.0, "sensor_drift": 500.0}  # N, N/s
# shows only while the platform moves, or before the loop is closed: the first recovery does not find it and takes the run home
NOT_AT_REST = {"leg_stuck", "leg_slow", *BEFORE_CLOSING}


def actions(fault, index, at_s):
    """(time, action): the fault, a recovery with it, one without it, and home."""
    injected = (float(BY_NAME[fault].number), float(index), BEFORE_CLOSING.get(fault, float(BY_NAME[fault].value or 0.0)))
    return [
        (at_s, lambda b: b.push_command(COMMAND["inject_fault"], injected)),
        (at_s + 1.0, lambda b: b.push_command(COMMAND["recover"], name_as_arguments("first"))),
        (at_s + 2.0, lambda b: b.push_command(COMMAND["clear_injection"])),
        (at_s + 2.5, lambda b: b.push_command(COMMAND["recover"], name_as_arguments("second"))),
        (at_s + 3.5, lambda b: b.push_command(COMMAND["park"])),
    ]


def inside_the_limits(records):
    """No frame beyond the limits of the legs."""
    rate = np.diff(records["leg_setpoint"], axis=0) / 1e-3
    assert np.abs(rate).max() <= 0.5 + 1e-9 and np.abs(np.diff(rate, axis=0)).max() / 1e-3 <= 10.0 + 1e-6


@pytest.mark.parametrize(("fault", "index", "at_s", "by"), [
    ("drive_disabled", 2, 0.6, "park"),         # on the way to the start pose: straight home
    ("sensor_silent", 0, 2.2, "retreat"),       # on the approach: away from the target first
    ("chain_tripped", 0, 3.6, "retreat"),       # in the closed loop, in contact
])  # fmt: skip
def test_run_that_tripped_goes_home_when_its_cause_is_cleared(fault, index, at_s, by):
    records = run_line((*QUICK, *WAITING), at=actions(fault, index, at_s))
    refused, done = recoveries_of(records)
    assert refused["outcome"] == "given_up" and BY_NAME[fault].fault in refused["standing"] and refused["by"] == "first"
    assert done["outcome"] == "recovered" and BY_NAME[fault].fault in done["cleared"] and done["by"] == "second"
    order = phases(records)
    assert order[order.index("fault") :] == ["fault", "hold", by, *(["park"] if by == "retreat" else []), "ended"]
    # the trip stays the verdict; nothing stands; it parked where it began
    last = records[-1]
    assert recovered(records) and last["end_cause"] == CODES["end_cause"]["tripped"]
    assert BY_NAME[fault].fault not in fault_names(last["faults"])
    np.testing.assert_allclose(last["X_TA_measured"][:3], records["X_TA_measured"][0][:3], atol=1e-3)
    inside_the_limits(records)
    # and none that moves before it is let go
    waits = (records["safety_state"] == STATE["recovering"]) | (records["safety_state"] == STATE["held"])
    achieved = records["measured_leg"][waits]
    assert np.abs(records["leg_setpoint"][waits] - achieved).max() < 0.02


TRIPS = [name for name in IN_PROCESS if BY_NAME[name].fault in STOPPING and "hydraulic" not in BY_NAME[name].stands]


@pytest.mark.parametrize("fault", TRIPS)
def test_every_fault_of_the_stand_in_process_that_trips_is_recovered_from(fault):
    chain = [f"stand.limits.{CHAIN[fault]}=true"] if fault in CHAIN else []
    at_s = 1.2 if fault in BEFORE_CLOSING else 2.2
    records = run_line((*QUICK, *WAITING, *chain), at=actions(fault, 2 if BY_NAME[fault].at == "drive" else 0, at_s))
    (done,) = (one for one in recoveries_of(records) if one["outcome"] == "recovered")
    assert BY_NAME[fault].fault in done["cleared"] and done["by"] == ("first" if fault in NOT_AT_REST else "second")
    assert recovered(records) and phases(records)[-4:] == ["hold", "retreat", "park", "ended"]
    inside_the_limits(records)


@pytest.mark.alone
def test_row_of_the_live_matrix():
    """A drive that restarts in the run has lost its set-up: it gets it again beside the loop, is enabled, the run parks, the next variant
    captures on the same stand, and the log replays."""
    text, good = recover(BY_NAME["drive_restart"])
    assert good, text
