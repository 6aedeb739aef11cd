"""A recorded operator, row by row: what is due, one command a tick, what a station says between its rows and after its last."""

import numpy as np
import pytest

from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE
from rt_kernels.recorded_operator import ROW_DTYPE, Script
from rt_kernels.ring import SharedBlock

MS = 1_000_000
COMMAND, HAND = CODES["command"], BITS["hand_status"]
HELD = 1 << 0


def row(ms, what, value=(), code="none", buttons=HELD, silent=0):
    out = np.zeros(1, ROW_DTYPE)
    out["time_ns"], out["what"], out["code"], out["buttons"], out["silent"] = ms * MS, what, COMMAND[code], buttons, silent
    out["value"][0, : len(value)] = value
    return out


def script(*rows, **keys):
    return Script(np.concatenate([np.zeros(0, ROW_DTYPE), *rows]), **keys)


def ticks(port, count, sample=None):
    sample = np.zeros(1, SAMPLE_DTYPE) if sample is None else sample
    for k in range(count):
        sample["tick"], sample["time_ns"] = k, k * MS
        port.read(sample)
        yield sample[0]


def test_row_is_taken_in_the_tick_in_which_it_is_due():
    port = script(row(0, 0), row(5, 0, [0.5, -0.25]))
    axes = [s["hand_axis"][:2].copy() for s in ticks(port, 8)]
    assert [list(a) for a in axes] == [[0.0, 0.0]] * 5 + [[0.5, -0.25]] * 3


def test_commands_due_together_come_one_a_tick_in_order():
    port = script(row(2, 2, [7.0], "step"), row(2, 2, [8.0, 9.0], "hold"), row(2, 2, [], "stop"))
    seen = [(int(s["command_code"]), list(s["command_arg"][:2])) for s in ticks(port, 7)]
    assert seen[2:5] == [(COMMAND["step"], [7.0, 0.0]), (COMMAND["hold"], [8.0, 9.0]), (COMMAND["stop"], [0.0, 0.0])]
    assert all(code == 0 for code, _ in (*seen[:2], *seen[5:]))


def test_command_from_outside_goes_first_and_none_of_the_script_is_lost():
    block = SharedBlock.create(4)
    port = script(row(1, 2, [], "start"), block=block)
    seen = []
    for k, s in enumerate(ticks(port, 4)):
        seen.append(int(s["command_code"]))
        if k == 0:
            block.push_command(COMMAND["abort"])
    assert seen == [0, COMMAND["abort"], COMMAND["start"], 0]


def test_station_repeats_itself_fifty_times_a_second_and_never_goes_stale():
    ages = [int(s["hand_age_ns"][1]) for s in ticks(script(row(3, 1), stale_s=0.05), 200)]
    assert ages[:3] == [0, 0, 0] and ages[3:] == [k % 20 * MS for k in range(197)]


def test_silent_station_goes_stale_after_its_time_and_must_be_centred_again():
    back = (row(100, 0, [0.5]), row(110, 0, [0.0]), row(120, 0, [0.5]))
    port = script(row(0, 0), row(1, 0, [0.5]), row(10, 0, silent=1), *back, stale_s=0.03)
    status, axis = zip(*((int(s["hand_status"][0]), float(s["hand_axis"][0])) for s in ticks(port, 130)), strict=True)
    stale = [bool(word & HAND["stale"]) for word in status]
    assert stale == [40 < k < 110 for k in range(130)]
    assert [a != 0.0 for a in axis] == [1 <= k <= 40 or k >= 120 for k in range(130)]


def test_station_without_a_row_is_not_there():
    for s in ticks(script(row(0, 0)), 5):
        assert s["hand_status"][1] == 0 and s["hand_status"][0] & HAND["present"]


def test_released_deadman_stops_the_axes_without_a_fault():
    port = script(row(0, 0), row(2, 0, [0.5]), row(4, 0, [0.5], buttons=0))
    seen = [(float(s["hand_axis"][0]), int(s["hand_status"][0])) for s in ticks(port, 8)]
    assert [a for a, _ in seen] == [0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0] and not any(word & HAND["stale"] for _, word in seen)


def test_restored_state_continues_with_the_same_bits():
    rows = [row(k, k % 2, [0.0 if k < 2 else 0.1 * (k % 5)]) for k in range(60)]
    port = script(*rows)
    for _ in ticks(port, 30):
        pass
    snapshot = port.snapshot()

    def rest(port):
        sample, out = np.zeros(1, SAMPLE_DTYPE), []
        for k in range(30, 60):
            sample["time_ns"] = k * MS
            port.read(sample)
            out.append(sample.tobytes())
        return out

    once = rest(port)
    other = script(*rows)
    other.restore(snapshot)
    assert rest(other) == once and len(set(once)) > 20


@pytest.mark.parametrize("rows", [(row(2, 0), row(1, 0)), (row(0, 3),), (row(0, -1),)])
def test_rows_that_cannot_be(rows):
    with pytest.raises(ValueError, match="in order of time"):
        script(*rows)


def test_empty_script_does_nothing():
    for s in ticks(script(), 3):
        assert s["command_code"] == 0 and not s["hand_status"].any()
