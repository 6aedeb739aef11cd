"""The log as a port: which bytes go into the sample, what is compared, and what is reported of the first record that differs."""

import numpy as np
import pytest

from drivers.replayed.log_port import LogPort, runs_of
from rt_kernels.layout import FIELDS, SAMPLE_DTYPE
from rt_kernels.parameters import Aux

INPUTS = [field for field, *rest in FIELDS if rest[5] == "input"]
OTHERS = [field for field in SAMPLE_DTYPE.names if field not in INPUTS]


def log(count, aux=0, seed=1):
    """Records of random bytes: a port that takes bytes has to take any."""
    dtype = np.dtype([*SAMPLE_DTYPE.descr, ("aux", "<f8", (aux,))]) if aux else SAMPLE_DTYPE
    records = np.frombuffer(np.random.default_rng(seed).bytes(count * dtype.itemsize), dtype).copy()
    if aux:
        records["aux"] = np.arange(count * aux).reshape(count, aux)
    return records


def inputs_of(record):
    return {field: record[field].tobytes() for field in INPUTS}


def replayed(port, records, spoil=lambda k, sample: None):
    """Every record read, completed to what was computed, and compared."""
    sample, aux = np.zeros(1, SAMPLE_DTYPE), np.zeros(max(1, sum(a.count for a in port.AUX)))
    for k, record in enumerate(records):
        port.read(sample, aux)
        for field in OTHERS:
            sample[field] = record[field]
        spoil(k, sample)
        port.write(sample, aux)


def test_runs_are_the_input_fields_and_nothing_else():
    covered = np.zeros(SAMPLE_DTYPE.itemsize, int)
    for offset, size in runs_of(INPUTS):
        covered[offset : offset + size] += 1
    for field, (dtype, offset, *_) in SAMPLE_DTYPE.fields.items():
        assert np.all(covered[offset : offset + dtype.itemsize] == (field in INPUTS)), field


def test_inputs_of_each_record_and_only_they_go_into_the_sample():
    records = log(5)
    port, sample = LogPort(records), np.zeros(1, SAMPLE_DTYPE)
    for record in records:
        before = sample.copy()
        port.read(sample)
        assert inputs_of(sample) == inputs_of(record)
        assert all(sample[field].tobytes() == before[field].tobytes() for field in OTHERS)
        port.write(sample)
    after = sample.tobytes()
    port.read(sample)  # behind the last record: nothing
    port.write(sample)
    assert sample.tobytes() == after and port.compared == 5


def test_an_equal_run_has_no_difference():
    records = log(20)
    port = LogPort(records)
    replayed(port, records)
    assert (port.compared, port.differing, port.first) == (20, 0, None)


@pytest.mark.parametrize("field", SAMPLE_DTYPE.names)
def test_one_bit_of_any_field_is_a_difference_but_of_the_checksum(field):
    """The last bit of each field in record 7: counted, and named as the first. The checksum is written behind the loop."""
    records = log(10)
    port = LogPort(records)

    def flip(k, sample):
        if k == 7:
            place = SAMPLE_DTYPE.fields[field][1] + SAMPLE_DTYPE.fields[field][0].itemsize - 1
            sample.view(np.uint8)[place] ^= 1

    replayed(port, records, flip)
    assert (port.differing, port.first) == ((0, None) if field == "record_crc" else (1, 7))


def test_all_that_differ_are_counted_and_only_in_the_window():
    records = log(30)

    def spoil(k, sample):
        if k in (3, 12, 15, 28):
            sample["phase_time"] += 1.0 if np.isfinite(sample["phase_time"][0]) else 0.0
            sample["contact"] ^= 1

    for window, differing, first in (({}, 4, 3), ({"from_record": 10, "to_record": 28}, 2, 12)):
        port = LogPort(records, **window)
        replayed(port, records, spoil)
        assert (port.compared, port.differing, port.first) == (30, differing, first)


def test_auxiliary_channels_of_ports_are_inputs_and_all_are_compared():
    """Two channels of the logged ports come out of the record; the line's own third one is compared when it is watched."""
    records = log(6, aux=3)
    channels = (Aux("stroke", "m", "a port's", 2),)
    for watched, wrong, differing in ((True, False, 0), (True, True, 1), (False, True, 0)):
        port, sample, line_aux = LogPort(records, channels), np.zeros(1, SAMPLE_DTYPE), np.zeros(3)
        if watched:
            port.watch(line_aux, 3)
        for k, record in enumerate(records):
            port.read(sample, line_aux)
            np.testing.assert_array_equal(line_aux[:2], record["aux"][:2])
            line_aux[2] = record["aux"][2] + (wrong and k == 4)
            for field in OTHERS:
                sample[field] = record[field]
            port.write(sample, line_aux)
        assert port.differing == differing


def test_legs_of_an_ideal_stand_follow_the_demand():
    """The first record's legs are taken; then the length demanded in the tick before, and the rate between the two."""
    period = 2e-3
    records = log(4)
    records["periods"] = [1, 1, 3, 1]
    port, sample = LogPort(records, ideal_stand=period), np.zeros(1, SAMPLE_DTYPE)
    port.read(sample)
    np.testing.assert_array_equal(sample["measured_leg"][0].tobytes(), records["measured_leg"][0].tobytes())
    sample["measured_leg"] = 4.0
    for k in (1, 2, 3):
        sample["leg_demand"] = 4.0 + 0.1 * k + 0.01 * np.arange(6)
        before = sample["measured_leg"][0].copy()
        port.write(sample)
        port.read(sample)
        np.testing.assert_array_equal(sample["measured_leg"], sample["leg_demand"])
        rate = (sample["measured_leg"][0] - before) / (period * records["periods"][k])
        np.testing.assert_allclose(sample["measured_leg_rate"][0], rate, rtol=1e-12)
        assert sample["wrench_raw"].tobytes() == records["wrench_raw"][k].tobytes()


def test_close_and_snapshot_are_harmless():
    port = LogPort(log(2))
    port.close()
    port.open()
    port.close()
    port.close()
    port.restore(port.snapshot())
