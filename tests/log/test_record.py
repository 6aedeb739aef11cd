"""Layout, checksum and schema of a record."""

import zlib

import numpy as np
import pytest

from hil_server.log.record import CRC_FIELD, channel_at, checksums, damaged_records, record_dtype, ros2_schema
from rt_kernels.layout import SAMPLE_DTYPE

AUX_NAMES = ["damper_stroke[0]", "damper_stroke[1]", "damper_stroke[2]", "temperature"]


def test_record_is_the_sample_and_doubles_without_gaps():
    dtype = record_dtype(5)
    assert dtype.itemsize == SAMPLE_DTYPE.itemsize + 40
    end = 0
    for name in dtype.names:
        kind, offset = dtype.fields[name][:2]
        assert offset == end and offset % kind.base.itemsize == 0, name
        end += kind.itemsize


def test_lower_case_names_of_the_schema_are_unique():
    names = [line.split()[1] for line in ros2_schema(3).splitlines()]
    assert len(set(names)) == len(names) == len(SAMPLE_DTYPE.names) + 1


def seal(records):
    """As the log does it: zlib's CRC-32 of the record with its own field zero."""
    records[CRC_FIELD] = 0
    records[CRC_FIELD] = [zlib.crc32(record.tobytes()) for record in records]
    return records


def test_checksums_are_zlib_crc32(make_records):
    records = make_records(3)
    assert list(checksums(records)) == [zlib.crc32(record.tobytes()) for record in records] and len(checksums(records[:0])) == 0


def test_every_flipped_bit_is_named(make_records):
    sealed = seal(make_records(1))
    size = sealed.dtype.itemsize
    rng = np.random.default_rng(2)
    pad = SAMPLE_DTYPE.fields["pad"][1] if "pad" in SAMPLE_DTYPE.names else -1
    for byte in [0, size - 1, pad, *rng.integers(0, size, 300)]:
        if byte < 0:
            continue
        record = sealed.copy()
        record.view(np.uint8)[byte] ^= 1 << int(rng.integers(8))
        channel = channel_at(int(byte), sealed.dtype, AUX_NAMES)
        assert damaged_records(record, AUX_NAMES) == [(0, channel)]


def test_several_bits_are_found_without_a_channel(make_records):
    records = seal(make_records(20))
    records["F_T"][7, 2] += 1.0
    assert damaged_records(records) == [(7, "")]


@pytest.mark.parametrize("byte, name", [(0, "wrench_raw[0]"), (47, "wrench_raw[5]"), (48, "measured_leg[0]")])
def test_channel_of_a_byte(byte, name):
    assert channel_at(byte, record_dtype(0)) == name


def test_byte_beyond_the_record():
    with pytest.raises(IndexError, match="beyond a record"):
        channel_at(10**6, record_dtype(0))
