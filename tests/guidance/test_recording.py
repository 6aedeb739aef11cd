"""Guidance of a recording: put at the first contact, then free to the end, whatever happens; only a stop ends it."""

import numpy as np
import pytest

from rt_kernels.context import Start
from rt_kernels.guidance.recording import Recording
from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE

PERIOD = 1e-3
PHASE, MOTION, COMMAND, END = CODES["phase"], CODES["motion"], CODES["command"], CODES["end_cause"]
START = Start(np.array([-0.5, 0.01, 0.02, 0.0, 0.6, 0.0, 0.8]), np.array([0.1, 0.2, 0.3, 0.01, 0.02, 0.03]))


def begun(ticks=0):
    stage, s = Recording(period_s=PERIOD, start=START), np.zeros(1, SAMPLE_DTYPE)
    s["periods"] = 1
    for _ in range(ticks):
        stage.step(s)
    return stage, s


def test_first_tick_places_the_model_and_the_second_lets_it_go():
    stage, s = begun()
    s["control_request"] = s["operator_rate"] = s["profile_A_TA"] = 7.0
    stage.step(s)
    assert (s["phase"][0], s["motion"][0], s["phase_time"][0]) == (PHASE["closing"], MOTION["follow_profile"], 0.0)
    np.testing.assert_array_equal(s["profile_X_TA"][0], START.X_TA)
    np.testing.assert_array_equal(s["profile_V_TA"][0], START.V_TA)
    assert not s["profile_A_TA"].any() and not s["control_request"].any() and not s["operator_rate"].any()
    stage.step(s)
    assert (s["phase"][0], s["motion"][0], s["phase_time"][0]) == (PHASE["contact"], MOTION["free"], 0.0)


def test_time_in_contact_counts_skipped_periods_and_nothing_but_a_stop_ends_it():
    stage, s = begun(2)
    s["faults"] = -1  # every fault there is: recorded, and the model continues
    for periods in (1, 3, 1):
        s["periods"] = periods
        stage.step(s)
    assert s["phase"][0] == PHASE["contact"] and s["phase_time"][0] == pytest.approx(5 * PERIOD) and s["end_cause"][0] == END["none"]


@pytest.mark.parametrize("command", ["stop", "park"])
@pytest.mark.parametrize("ticks", [0, 1, 2, 10])
def test_stop_and_park_end_it_at_any_time(command, ticks):
    stage, s = begun(ticks)
    s["command_code"] = COMMAND[command]
    stage.step(s)
    assert s["phase"][0] == PHASE["ended"] and s["end_cause"][0] == END["stopped"]


def test_abort_reaches_the_safety_stage_in_its_tick_only():
    stage, s = begun(3)
    s["command_code"] = COMMAND["abort"]
    stage.step(s)
    assert s["guidance_fault"][0] == BITS["guidance_fault"]["operator_stop"] and s["phase"][0] == PHASE["contact"]
    s["command_code"] = COMMAND["none"]
    stage.step(s)
    assert s["guidance_fault"][0] == 0


def test_it_is_not_for_a_stand_that_moves():
    assert not Recording.LIVE
