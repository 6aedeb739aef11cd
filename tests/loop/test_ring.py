"""The shared block: ring with newest dropped, command lanes, hand-controller slots, refusal of foreign memory."""

import os
import time

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.ring import SharedBlock


def records(n, start=0, aux=2):
    out = np.zeros(n, np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (aux,))]))
    out["tick"] = np.arange(start, start + n)
    out["aux"][:, 1] = -out["tick"]
    return out


def push(block, r):
    return block.push_records(r.view(np.uint8).reshape(-1), r.dtype.itemsize)


def test_samples_come_out_as_they_went_in_also_over_the_end_of_the_ring():
    block = SharedBlock.create(8, 2)
    reader = SharedBlock.attach(block.fd)
    got = []
    for start in range(0, 60, 5):
        assert push(block, records(5, start)) == 5
        got.append(np.frombuffer(reader.drain(), records(1).dtype))
    np.testing.assert_array_equal(np.concatenate(got), records(60))


def test_a_full_ring_takes_no_more_and_keeps_the_oldest():
    block = SharedBlock.create(8, 2)
    assert push(block, records(12)) == 8
    np.testing.assert_array_equal(np.frombuffer(block.drain(), records(1).dtype), records(8))


def test_commands_arrive_in_order_with_unique_sequences():
    block = SharedBlock.create(4)
    sequences = [block.push_command(3, (1.5,), source=s) for s in (0, 1, 0)]
    assert len(set(sequences)) == 3 and all(s > 0 for s in sequences)
    for _ in range(30):
        block.push_command(2)
    with pytest.raises(BufferError, match="32 are waiting"):
        block.push_command(2)
    with pytest.raises(ValueError, match="8 arguments"):
        block.push_command(2, range(9))


@pytest.fixture
def latched():
    """block, and take(): the command of the loop's next tick, 0 for none."""
    test = assembly.simulation(load_test())
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (test.block.aux_count,))])
    test.line.clock.pause_every(1, test.line.sample)

    def take():
        test.block.heartbeat()
        test.line.run()
        return int(np.frombuffer(test.block.drain(), dtype)["command_code"][-1])

    block = test.block
    return block, take


NOW = time.monotonic_ns


@pytest.mark.parametrize("late_s", [0.1, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("name", sorted(set(CODES["command"]) - {"none"}))
def test_a_command_that_the_loop_comes_to_after_its_time_never_acts(latched, name, late_s):
    block, take = latched
    sequence = block.push_command(CODES["command"][name], (), 0, NOW() - int(late_s * 1e9))
    assert block.command_state(sequence) == "waiting"
    assert [take() for _ in range(3)] == [0, 0, 0]
    assert block.command_state(sequence) == "expired"


def test_a_command_in_its_time_and_one_without_a_time_act(latched):
    block, take = latched
    sent = [block.push_command(CODES["command"]["hold"], (), source, when) for source, when in ((0, NOW() + 10**11), (1, 0))]
    assert [take(), take(), take()] == [CODES["command"]["hold"]] * 2 + [0]
    assert [block.command_state(one) for one in sent] == ["taken", "taken"]


def test_expired_commands_do_not_hold_up_the_next(latched):
    block, take = latched
    for _ in range(31):
        block.push_command(CODES["command"]["resume"], (), 0, 1)
    block.push_command(CODES["command"]["hold"], (), 0, NOW() + 10**11)
    assert take() == CODES["command"]["hold"]


@pytest.mark.parametrize("source", [0, 1])
def test_nothing_that_waits_behind_an_abort_acts_after_it(latched, source):
    """A loop that stood still: `recover` of a client waits, then comes the operator's ABORT, in either lane."""
    block, take = latched
    given = [block.push_command(CODES["command"][name], (), 0, NOW() + 10**11) for name in ("recover", "resume")]
    first = [] if source else [CODES["command"]["recover"], CODES["command"]["resume"]]  # of one lane: before it
    block.push_command(CODES["command"]["abort"], (), source)
    behind = [block.push_command(CODES["command"][name], (), lane) for name, lane in (("recover", 0), ("start", 1), ("abort", 0))]
    taken = [take() for _ in range(8)]
    if source:
        assert taken == [CODES["command"]["abort"]] * 2 + [0] * 6
        assert [block.command_state(one) for one in (*given, *behind)] == ["void"] * 4 + ["taken"]
    else:  # the server's own lane goes first, but nothing of a client acts behind the abort but another one
        assert taken == [CODES["command"]["start"], *first, *[CODES["command"]["abort"]] * 2, 0, 0, 0]
        assert block.command_state(behind[0]) == "void"
    later = block.push_command(CODES["command"]["recover"], (), 0, NOW() + 10**11)
    assert take() == CODES["command"]["recover"] and block.command_state(later) == "taken", "given by somebody who knows of the abort"


def test_the_loss_of_the_record_acts_behind_an_abort(latched):
    block, take = latched
    for name in ("abort", "record_lost"):
        block.push_command(CODES["command"][name], (), 1)
    assert [take(), take()] == [CODES["command"]["abort"], CODES["command"]["record_lost"]]


def test_what_became_of_a_command_is_known_until_32_others_came(latched):
    block, take = latched
    first = block.push_command(CODES["command"]["hold"])
    for _ in range(32):
        take()
        block.push_command(CODES["command"]["hold"])
    assert block.command_state(first) == "unknown" and block.command_state(0) == "unknown"
    with pytest.raises(ValueError, match="expires_ns: -1, limit 0"):
        block.push_command(CODES["command"]["hold"], (), 0, -1)


def test_foreign_memory_and_other_layouts_are_refused(tmp_path):
    fd = os.memfd_create("other")
    os.ftruncate(fd, 100_000)
    with pytest.raises(ValueError, match="not a shared block"):
        SharedBlock.attach(fd)
    block = SharedBlock.create(4)
    os.pwrite(block.fd, b"0123456789abcdef", 16)
    with pytest.raises(ValueError, match="two installations"):
        SharedBlock.attach(block.fd)
    os.close(fd)


def test_the_ring_of_a_live_run_is_at_least_eight_seconds_deep():
    from hil_server.config import load_test
    from hil_server.line import assembly

    config = load_test(None, ["test.rate_hz=2000.0"])
    context = assembly.base_context(config) | {"sensor_scale": [1.0] * 6}
    test = assembly.live(config, context, [], priority=0, cpu=-1)
    assert test.block.capacity * test.context["period_s"] >= 8.0
