"""Clocks, command latch and the loop's own duties: grid, skipped periods, overflow, acknowledgement, hand controllers, end of the run."""

import os
import threading
import time

import numpy as np
import pytest

from hil_server import registry
from hil_server.config import load_test
from hil_server.host.realtime_host import fifo_refusal
from hil_server.line import assembly
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.loop import LoopLine
from rt_kernels.ring import SharedBlock

PERIOD = 1_000_000


def line(clock, block, config=None):
    """The shipped line on another clock and block."""
    test = assembly.simulation(config or load_test(None))
    context = {**test.context, "block": block}
    ports = [assembly.build_part("commands", "latch", {}, context), *test.ports[1:]]
    return LoopLine(clock, ports, test.line.stages, block)


def drained(block):
    return np.frombuffer(block.drain(100_000), np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (block.aux_count,))]))


def test_free_running_clock_ticks_every_period_and_ends_on_time():
    block = SharedBlock.create(200)
    clock = registry.part("clocks", "free_running")(period_ns=PERIOD, duration_ns=100 * PERIOD)
    line(clock, block).run()
    got = drained(block)
    np.testing.assert_array_equal(got["tick"], np.arange(100))
    np.testing.assert_array_equal(got["time_ns"], np.arange(100) * PERIOD)
    assert block.finished


def test_free_running_clock_continues_by_as_many_ticks_as_it_is_given():
    """A tick at a time, or three, is the same run."""
    block = SharedBlock.create(200)
    clock = registry.part("clocks", "free_running")(period_ns=PERIOD, duration_ns=0)
    run = line(clock, block)
    run.run()
    for ticks in (1, 1, 3):
        clock.extend(ticks)
        run.run()
    got = drained(block)
    np.testing.assert_array_equal(got["tick"], np.arange(5))
    np.testing.assert_array_equal(got["periods"], np.ones(5))


def test_live_ring_drops_the_newest_and_counts():
    """No one reads: the first samples stay, the rest is counted; the loop continues."""
    block = SharedBlock.create(50)
    clock = registry.part("clocks", "wall")(period_ns=PERIOD, duration_ns=60_000 * PERIOD, priority=0, block=block)
    run = line(clock, block)
    thread = threading.Thread(target=run.run)
    thread.start()
    while block.overflow < 20:  # however many periods a busy machine skips
        thread.join(0.001)
    block.request_stop()
    thread.join()
    got = drained(block)
    assert len(got) == 50 and got["tick"][0] == 0
    assert block.overflow == run.sample["overflow_total"][0] + 1 or block.overflow >= run.sample["overflow_total"][0] > 0


def test_wall_clock_keeps_its_grid_and_counts_every_skipped_period():
    block = SharedBlock.create(1000)
    clock = registry.part("clocks", "wall")(period_ns=PERIOD, duration_ns=300 * PERIOD, priority=0, block=block)
    line(clock, block).run()
    got = drained(block)
    np.testing.assert_array_equal(got["time_ns"], got["tick"] * PERIOD)
    # what was skipped is in `periods`, and nothing is made up for afterwards
    np.testing.assert_array_equal(np.diff(got["tick"]), got["periods"][1:])
    assert got["missed_total"][-1] == np.sum(got["periods"][1:] - 1)
    assert np.all(got["lateness_ns"] >= 0) and np.all(got["lateness_ns"] <= PERIOD)
    late = got["periods"][1:] > 1
    assert np.all(got["late_cause"][1:][late] != CODES["late_cause"]["none"])


@pytest.mark.skipif(bool(why := fifo_refusal(10)), reason=f"no SCHED_FIFO here: {why}")
def test_a_loop_that_has_ended_leaves_the_core_to_the_owner_of_the_devices():
    block, policies = SharedBlock.create(64), []
    block.heartbeat()
    clock = registry.part("clocks", "wall")(period_ns=PERIOD, duration_ns=5 * PERIOD, priority=10, block=block)
    thread = threading.Thread(target=lambda: (line(clock, block).run(), policies.append(os.sched_getscheduler(0))))
    thread.start()
    thread.join()
    assert clock.facts()["mode"] == "realtime" and policies == [os.SCHED_OTHER]


def test_stop_word_ends_the_loop():
    block = SharedBlock.create(100_000)
    clock = registry.part("clocks", "wall")(period_ns=PERIOD, duration_ns=60_000 * PERIOD, priority=0, block=block)
    run = line(clock, block)
    thread = threading.Thread(target=run.run)
    thread.start()
    while not block.head:  # until it runs
        thread.join(0.001)
    block.request_stop()
    thread.join()
    assert block.finished and run.sample["tick"][0] < 59_999


def test_silent_supervisor_trips():
    block = SharedBlock.create(100_000)
    config = load_test(None, ["safety.supervisor_s=0.1", "guidance.fault_s=0.1", "telemetry.samples_per_message=20"])
    clock = registry.part("clocks", "wall")(period_ns=PERIOD, duration_ns=3_000 * PERIOD, priority=0, block=block)
    run = line(clock, block, config)
    run.run()
    assert drained(block)["faults"][-1] >> 25 & 1


def test_hand_controller_reaches_the_sample_and_goes_stale():
    block = SharedBlock.create(10)
    latch = registry.part("commands", "latch")(block=block, stale_s=0.05)
    sample = np.zeros(1, SAMPLE_DTYPE)
    latch.read(sample)
    assert sample["hand_status"][0][0] == 0
    latch.now_ns = 1_000_000_000
    block.put_hand(0, 6, 122, [0.0] * 6, 1, 1, 999_000_000)  # armed: centred, with the deadman held
    latch.read(sample)
    block.put_hand(0, 7, 123, [0.1, 0.2, 0.3, -0.1, -0.2, -0.3], 1, 1, 1_000_000_000)
    latch.read(sample)
    np.testing.assert_array_equal(sample["hand_axis"][0][:6], [0.1, 0.2, 0.3, -0.1, -0.2, -0.3])
    assert sample["hand_sequence"][0][0] == 7 and sample["hand_status"][0][0] & 1 and not sample["hand_status"][0][0] & 2
    for now_ns, stale in ((1_050_000_000, False), (1_050_000_001, True)):
        latch.now_ns = now_ns
        latch.read(sample)
        assert sample["hand_age_ns"][0][0] == now_ns - 1_000_000_000
        assert bool(sample["hand_status"][0][0] & 2) == stale != sample["hand_axis"][0].any()


def test_records_are_aged_by_the_clock_of_the_host():
    """Where no one sets another time, on either side."""
    block = SharedBlock.create(10)
    latch, sample = registry.part("commands", "latch")(block=block), np.zeros(1, SAMPLE_DTYPE)
    before = time.monotonic_ns()
    block.put_hand(0, 1, 1, [0.0] * 6, 1)
    after = time.monotonic_ns()
    latch.read(sample)
    assert latch.now_ns == 0 and 0 <= sample["hand_age_ns"][0][0] <= time.monotonic_ns() - before
    block.put_hand(0, 2, 2, [0.0] * 6, 1, 1, after)
    latch.read(sample)
    assert 0 <= sample["hand_age_ns"][0][0] <= time.monotonic_ns() - after


def test_one_command_a_tick_and_its_sequence_as_acknowledgement():
    block = SharedBlock.create(10)
    latch = registry.part("commands", "latch")(block=block)
    sample = np.zeros(1, SAMPLE_DTYPE)
    sent = [block.push_command(code, (float(code),)) for code in (3, 4)]
    seen = []
    for _tick in range(3):
        latch.read(sample)
        seen.append((int(sample["command_code"][0]), int(sample["command_sequence"][0]), float(sample["command_arg"][0][0])))
    assert seen == [(3, sent[0], 3.0), (4, sent[1], 4.0), (0, sent[1], 0.0)]


def test_a_line_names_what_is_missing():
    clock = registry.part("clocks", "free_running")(period_ns=PERIOD, duration_ns=PERIOD)
    with pytest.raises(ValueError, match="needs the roles"):
        LoopLine(clock, [], {})


def test_snapshot_and_restore_give_the_same_bits():
    config = load_test(None)
    block = SharedBlock.create(5000)
    clock = registry.part("clocks", "free_running")(period_ns=PERIOD, duration_ns=50 * PERIOD)
    run = line(clock, block, config)
    run.run()
    before = run.snapshot()
    run.tick_once()
    once = run.sample.tobytes()
    run.restore(before)
    run.tick_once()
    assert run.sample.tobytes() == once
