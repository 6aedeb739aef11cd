"""The shared block: ring with newest dropped, command lanes, hand-controller slots, refusal of foreign memory."""

import os

import numpy as np
import pytest

from rt_kernels.layout import SAMPLE_DTYPE
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
