"""A log of an earlier table of channels: read by the names in its schema, its damage found; refused where the schema is no record's."""

import numpy as np
import pytest

from hil_server.log.format import LogError
from hil_server.log.former_layout import converted, damaged, dtype_of
from hil_server.log.record import CRC_FIELD, checksums, record_dtype, ros2_schema
from rt_kernels.layout import FORMER_FIELDS, INITIAL, SAMPLE_DTYPE

AUX = 3
LATER = ("thruster_A", "control_T")  # what the earlier table did not have
FORMER = {present: former for former, present in FORMER_FIELDS.items()}


def former_schema():
    """Ours, without some fields, others under their former name, one shorter, one longer, in another order."""
    lines = ros2_schema(AUX).splitlines()
    kept = [line for line in lines if not any(f"# {name} " in line for name in LATER)]
    kept = [line.replace("# control_A ", f"# {FORMER['control_A']} ") for line in kept]
    kept = [line.replace("float64[8] signal_analog", "float64[4] signal_analog") for line in kept]
    kept = [line.replace("float64[24] tuned", "float64[26] tuned") for line in kept]
    return "\n".join([*kept[1::-1], *kept[2:]]) + "\n"


def former_records(n=7):
    records = np.zeros(n, dtype_of(former_schema(), AUX))
    records["tick"] = np.arange(n)
    records["control_C"] = np.random.default_rng(1).normal(size=(n, 6))
    records["signal_analog"], records["aux"] = 4.0, 8.0
    records[CRC_FIELD] = checksums(records)
    return records


def test_fields_are_found_by_name():
    theirs = former_records()
    ours, absent = converted(theirs)
    assert ours.dtype == record_dtype(AUX) and absent == {*LATER, "tuned"}
    assert ours["control_A"].tobytes() == theirs["control_C"].tobytes() and ours["tick"].tolist() == list(range(7))
    assert (ours["aux"] == 8.0).all() and (ours["signal_analog"] == [4.0] * 4 + [0.0] * 4).all()
    for name in absent:
        assert (ours[name] == INITIAL.get(name, 0)).all()
    stored, ours[CRC_FIELD] = ours[CRC_FIELD].copy(), 0
    assert checksums(ours).tolist() == stored.tolist()


def test_a_damaged_record_is_named():
    theirs = former_records()
    assert damaged(theirs) == []
    theirs["control_C"][4, 2] += 1.0
    assert damaged(theirs) == [(4, "")]


def test_todays_schema_is_todays_record():
    found = dtype_of(ros2_schema(AUX), AUX)
    assert found.itemsize == record_dtype(AUX).itemsize and set(found.names) == {*SAMPLE_DTYPE.names, "aux"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.replace("float64", "float33", 1), "no field of a record"),
        (lambda s: s.replace("int64 tick ", "float64 tick "), "no field 'tick'"),
        (lambda s: s.replace(" record_crc  # record_crc ", " other  # other "), "no field 'record_crc'"),
        (lambda s: s + "uint32 more  # more [-] x\n", "multiple of 8"),
        (lambda s: s + "float64[9000] more  # more [-] x\n", "limit 65536 bytes"),
        (lambda s: s.replace("# time_ns ", "# tick "), "must differ"),
        (lambda s: s.replace(f"float64[{AUX}] aux", "float64[99] aux"), "99 auxiliary scalars, its header declares 3"),
    ],
)
def test_a_schema_that_is_none_is_refused(change, message):
    schema = ros2_schema(AUX)
    assert change(schema) != schema
    with pytest.raises(LogError, match=message):
        dtype_of(change(schema), AUX)
