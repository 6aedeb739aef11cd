"""What every part has from its base: single calls on samples, snapshots, whole blocks; and when a log's block may be taken."""

import numpy as np
import pytest

from rt_kernels.block_check import first_difference
from rt_kernels.forward_kinematics.stewart import StewartForward
from rt_kernels.layout import SAMPLE_DTYPE
from rt_kernels.plugs import MechanismPart, PortPart, StagePart
from rt_kernels.setpoint_kinematics.stewart import StewartSetpoints
from tests.stewart import plain_kinematics as plain


def stage(**keys):
    return StewartSetpoints(period_s=1e-3, platform=plain.platform(), mounting=plain.mounting(), **keys)


def samples(count):
    """Commands that move, and change their source now and then."""
    out, mounting = np.zeros(count, SAMPLE_DTYPE), plain.mounting()
    start = plain.relative(mounting, plain.matrix_of(plain.platform().neutral_pose))
    for k in range(count):
        out[k]["X_TA"] = plain.pose(plain.moved(start, np.array([1e-3 * k, 0, 0, 0, 1e-3 * k, 0])))
        out[k]["motion"], out[k]["periods"] = k // 7, 1
    return out


def test_through_and_step_are_the_same():
    one, many = stage(), stage()
    given = samples(40)
    together = given.copy()
    many.through(together)
    for k in range(40):
        single = given[k : k + 1].copy()
        one.step(single)
        assert single.tobytes() == together[k : k + 1].tobytes()
    assert one.snapshot() == many.snapshot() != stage().snapshot()


def test_repeat_is_as_many_steps_on_the_same_sample():
    one, many = stage(), stage()
    first, second = samples(1), samples(1)
    for _ in range(5):
        one.step(first)
    many.repeat(second, 5)
    assert first.tobytes() == second.tobytes() and one.snapshot() == many.snapshot()


@pytest.mark.parametrize("wrong", [np.zeros(2, SAMPLE_DTYPE), np.zeros(1, np.float64), np.zeros((), SAMPLE_DTYPE)])
@pytest.mark.parametrize("call", [lambda s: stage().step(s), lambda s: stage().repeat(s, 1)])
def test_only_one_record_of_the_table_is_a_sample(wrong, call):
    with pytest.raises(ValueError, match="array of one record"):
        call(wrong)


def test_through_takes_contiguous_records_only():
    for wrong in (samples(4)[::2], np.zeros(4)):
        with pytest.raises(ValueError, match="contiguous array of records"):
            stage().through(wrong)


def test_auxiliary_channels_need_their_room():
    from rt_kernels.parameters import Aux

    class Talkative(StewartForward):
        AUX = (Aux("a", "-", "one", 2), Aux("b", "-", "two", 3))

    part = Talkative(period_s=1e-3, platform=plain.platform(), mounting=plain.mounting())
    assert part.step(samples(1)).shape == (5,)
    for wrong in (np.zeros(4), np.zeros(5, np.float32)):
        with pytest.raises(ValueError, match="at least 5 float64"):
            part.step(samples(1), wrong)


def test_snapshot_of_another_size_is_refused_and_changes_nothing():
    part = stage()
    part.through(samples(10))
    snapshot, whole = part.snapshot(), part.dump()
    for block in (b"", snapshot[:-1], snapshot + b"\0"):
        with pytest.raises(ValueError, match="bytes"):
            part.restore(block)
    with pytest.raises(ValueError, match="bytes"):
        part.load_unchecked(whole[:-8])
    assert part.snapshot() == snapshot and part.dump() == whole


def test_whole_block_brings_constants_a_snapshot_only_state():
    slow, fast = stage(blend_s=1.0), stage(blend_s=0.1)
    fast.restore(slow.snapshot())
    assert fast.dump() != slow.dump()
    fast.load_unchecked(slow.dump())
    assert fast.dump() == slow.dump()


def test_part_without_state_has_nothing_to_snapshot():
    for part in (StagePart(), PortPart(), MechanismPart()):
        assert part.snapshot() == b""
        part.restore(b"")
        with pytest.raises(ValueError, match="state has 0"):
            part.restore(b"x")


LEGS = [{"mode": 1, "length": 4.0}, {"mode": 2, "length": 5.0}]
BUILT = {"gain": 2.0, "count": 3, "rows": [[1.0, 1e-3], [0.0, float("inf")]], "legs": LEGS}
BUILT |= {"place": {"x": 7e6, "y": 1e-9, "z": 0.0}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, ""),
        ({"gain": 2.0 * (1 + 1e-9)}, ""),  # another library's rounding
        ({"gain": 2.001}, "gain is 2.001, this program builds 2.0"),
        ({"gain": float("nan")}, "gain"),
        ({"count": 4}, "count is 4, this program builds 3"),
        ({"rows": [[1.0, 1e-3 + 1e-9], [0.0, float("inf")]]}, ""),  # by the largest of the array
        ({"rows": [[1.0, 1e-3], [0.5, float("inf")]]}, "rows[1][0]"),
        ({"rows": [[1.0, 1e-3], [0.0, 1e300]]}, "rows[1][1]"),
        ({"place": {"x": 7e6, "y": 2e-9, "z": 1e-9}}, ""),  # a vector is an array
        ({"place": {"x": 7e6, "y": 1e-9, "z": 10.0}}, "place[2] is 10.0, this program builds 0.0"),
        ({"legs": [{"mode": 1, "length": 4.0}, {"mode": 7, "length": 5.0}]}, "legs[1].mode is 7, this program builds 2"),
    ],
)
def test_first_field_that_may_not_come_from_a_log_is_named(change, says):
    found = first_difference(BUILT, BUILT | change)
    assert found.startswith(says) and bool(found) == bool(says)
