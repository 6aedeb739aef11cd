"""A hold commanded before the units touch brakes before it, or says that it cannot; what touches in a hold is reported."""

import numpy as np
import pytest

from rt_kernels.codes import FAULT_MASKS
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK, STOPPING, fault_names, run_line

PHASE, HOLD = CODES["phase"], CODES["command"]["hold"]
KEYS = (*QUICK, "test.duration_max_s=12.0")


@pytest.fixture(scope="module")
def first_touch():
    """Run time of the first contact of the run without a hold, s."""
    return float(run_line(KEYS)["first_contact_time"][-1])


def held(at_s, *keys):
    records = run_line((*KEYS, *keys), [(at_s, lambda block: block.push_command(HOLD, (), source=1))])
    assert PHASE["hold"] in records["phase"] and not fault_names(records["faults"][-1]) & STOPPING
    in_hold = records[records["phase"] == PHASE["hold"]]
    return in_hold, bool(np.bitwise_or.reduce(records["faults"]) & FAULT_MASKS["hold_touches"])


@pytest.mark.parametrize("before_s", [0.5, 0.3, 0.15, 0.1])
def test_a_hold_with_room_does_not_touch(first_touch, before_s):
    in_hold, told = held(first_touch - before_s)
    assert not told and not in_hold["contact"].any() and np.linalg.norm(in_hold["F_T"][:, :3], axis=1).max() < 20.0


@pytest.mark.parametrize("before_s", [0.05, 0.03, 0.01])
def test_a_hold_without_room_says_so_and_the_contact_is_reported(first_touch, before_s):
    in_hold, told = held(first_touch - before_s)
    force = np.linalg.norm(in_hold["F_T"][:, :3], axis=1)
    assert told
    assert in_hold["contact"][force > 20.0].all() and (force.max() <= 20.0 or in_hold["first_contact_time"][-1] > 0.0)


def test_with_the_acceleration_of_the_programme_mode_it_runs_on_into_the_units(first_touch):
    """What the key is for: the same hold without it."""
    in_hold, _ = held(first_touch - 0.05, "guidance.hold_acceleration_max_m_s2=0.0")
    assert np.linalg.norm(in_hold["F_T"][:, :3], axis=1).max() > 20.0 and in_hold["contact"].any()
