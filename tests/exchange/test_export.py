"""Exports, read back by the libraries that others read them with."""

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy.io import loadmat

from hil_server.errors import UsageError
from hil_server.exchange.export import export
from hil_server.exchange.scalars import columns
from hil_server.log.reader import read_log
from hil_server.requirements.angles import yaw_pitch_roll
from hil_server.requirements.units import scalar_units
from rt_kernels.layout import FIELDS


def test_parquet_has_every_scalar_with_its_unit_and_the_same_bits(bounce, tmp_path):
    path = export(bounce, "parquet", tmp_path / "run.parquet")
    table, log = pq.read_table(path), read_log(bounce)
    expected = list(columns(log))
    assert table.column_names == ["tick", "time_ns", "seconds", *(c.name for c in expected[2:])]
    assert len(table.column_names) == sum(field[2] for field in FIELDS) + 3
    assert np.array_equal(table["seconds"].to_numpy(), log.time_s) and table.schema.field("seconds").metadata[b"unit"] == b"s"
    for c in expected:
        assert table[c.name].to_numpy().tobytes() == c.values.tobytes(), c.name
    about = table.schema.field("F_T[4]").metadata
    assert about[b"unit"] == b"N.m" and about[b"frame"] == b"T" and b"contact wrench" in about[b"meaning"]
    assert table.schema.field("stroke[1]").metadata[b"unit"] == b"m"
    facts = json.loads(table.schema.metadata[b"hil_server"])
    assert facts["run_id"] == "bounce" and facts["incomplete"] == []
    column = pq.ParquetFile(path).metadata.row_group(0).column(table.column_names.index("F_T[0]"))
    assert column.compression == "ZSTD" and "BYTE_STREAM_SPLIT" in column.encodings


def test_plain_names_are_taken_by_queries(bounce, tmp_path):
    path = export(bounce, "parquet", tmp_path / "run.parquet", plain=True)
    table, log = pq.read_table(path), read_log(bounce)
    assert all(name.isidentifier() for name in table.column_names) and {"F_T_rx", "X_TA_qw", "stroke_1"} <= set(table.column_names)
    assert np.array_equal(table["F_T_ry"].to_numpy(), log.records["F_T"][:, 4])


def test_csv_reads_back_to_the_same_bits(bounce, tmp_path):
    path = export(bounce, "csv", tmp_path / "run.csv", ["F_T", "X_TA[0]", "phase"])
    table, records = pyarrow.csv.read_csv(path), read_log(bounce).records
    assert table.column_names == ["tick", "time_ns", "seconds", *(f"F_T[{i}]" for i in range(6)), "phase", "X_TA[0]"]
    assert np.array_equal(table["F_T[0]"].to_numpy(), records["F_T"][:, 0])
    assert np.array_equal(table["X_TA[0]"].to_numpy(), records["X_TA"][:, 0])
    about = pyarrow.csv.read_csv(tmp_path / "run.channels.csv").to_pydict()
    assert dict(zip(about["name"], about["unit"], strict=True))["F_T[5]"] == "N.m"


def test_matlab(bounce, tmp_path):
    data, records = loadmat(export(bounce, "mat", tmp_path / "run.mat")), read_log(bounce).records
    assert np.array_equal(data["F_T"], records["F_T"]) and np.array_equal(data["tick"][:, 0], records["tick"])
    assert data["units"]["F_T"][0, 0][0] == "N,N,N,N.m,N.m,N.m"


def test_hdf5(bounce, tmp_path):
    h5py = pytest.importorskip("h5py", reason="optional group hdf5")
    with h5py.File(export(bounce, "hdf5", tmp_path / "run.h5")) as file:
        assert file["F_T[0]"].attrs["unit"] == "N"
        assert np.array_equal(file["F_T[0]"][:], read_log(bounce).records["F_T"][:, 0])


def test_default_target_lies_beside_the_log(write_run, make_bounce):
    log = write_run(make_bounce(seconds=0.1))
    assert export(log, "parquet") == log.with_suffix(".parquet")


@pytest.mark.parametrize("kind, channels, text", [("xlsx", None, "unknown format 'xlsx'"), ("csv", ["F_X"], "no channel 'F_X'")])
def test_wrong_requests(bounce, tmp_path, kind, channels, text):
    with pytest.raises(UsageError, match=text):
        export(bounce, kind, tmp_path / "x", channels)


def test_target_that_cannot_be_written(bounce, tmp_path):
    with pytest.raises(UsageError, match="nowhere"):
        export(bounce, "parquet", tmp_path / "nowhere" / "run.parquet")


def test_every_field_has_a_unit_for_each_component():
    for name, _, count, unit, *_ in FIELDS:
        assert len(scalar_units(unit, count)) == count, name
    assert scalar_units("m,-", 7) == ["m"] * 3 + ["-"] * 4 and scalar_units("-,s,s2", 3) == ["-", "s", "s2"]
    with pytest.raises(ValueError, match="4 components"):
        scalar_units("a,b,c", 4)


def test_angles_against_scipy():
    """Rotations about the moved axes Y, Z, X by yaw, pitch, roll."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(1)
    angles = rng.uniform([-3.1, -1.5, -3.1], [3.1, 1.5, 3.1], (200, 3))
    pose = np.zeros((200, 7))
    pose[:, 3:] = Rotation.from_euler("YZX", angles).as_quat()
    assert np.allclose(yaw_pitch_roll(pose), angles, atol=1e-12)
