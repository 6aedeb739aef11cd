"""The analyst's log: the same numbers as the whole read, on demand; names, selections, tables, damage."""

import tracemalloc

import numpy as np
import pytest

from hil_server import open_log
from hil_server.errors import UsageError
from hil_server.exchange.log_view import ChannelError
from hil_server.exchange.scalars import columns
from hil_server.log.format import LogError
from hil_server.log.header import LogHeader
from hil_server.log.reader import read_log
from hil_server.log.record import record_dtype
from hil_server.log.writer import LogWriter
from rt_kernels.layout import FIELDS


def test_every_channel_is_the_field_of_the_record_with_its_unit(bounce, bounce_log):
    log = open_log(bounce)
    read = log.read(list(log.channels))
    for name, _, count, unit, _, _, _, _, meaning in FIELDS:
        assert read[name].values.tobytes() == np.ascontiguousarray(bounce_log.records[name]).tobytes(), name
        assert (read[name].unit, read[name].meaning, read[name].about.count) == (unit, meaning, count)
    assert np.array_equal(read["stroke"].values, bounce_log.records["aux"]) and read["stroke"].unit == "m"
    assert np.array_equal(log.seconds, bounce_log.time_s) and log.ticks == len(log) == bounce_log.ticks


def test_one_number_of_a_channel(bounce, bounce_log):
    log = open_log(bounce)
    moment = log["F_T[4]"]
    assert (moment.unit, moment.about.units, moment.values.ndim) == ("N.m", ["N.m"], 1)
    assert np.array_equal(moment, bounce_log.records["F_T"][:, 4])
    assert np.array_equal(log["stroke[1]"], bounce_log.records["aux"][:, 1])


@pytest.mark.parametrize(
    "name, text", [("F_t", "near: F_T"), ("F_T[6]", r"near: F_T\["), ("phase[0]", "no channel"), ("strok", "near: stroke")]
)
def test_a_wrong_name_names_near_ones(bounce, name, text):
    with pytest.raises(ChannelError, match=text):
        open_log(bounce)[name]


def test_selections(bounce, bounce_log):
    log, records, t = open_log(bounce), bounce_log.records, bounce_log.time_s
    part = log.between(0.5, 1.5)
    assert np.array_equal(part.seconds, t[(t >= 0.5) & (t <= 1.5)])
    touching = log.phase("contact")
    assert touching.ticks == (records["phase"] == records["phase"][1500]).sum() > 0
    assert set(touching["phase"].words()) == {"contact"}
    both = touching.between(1.2, 9.0).every(10)
    assert np.array_equal(both["tick"], np.arange(1200, 2000, 10))
    assert [p.name for p in log.phases()] == ["closing", "contact", "latched"]
    assert log.phases()[1].start_s == 1.0 and log.phases()[1].ticks == 1000
    near = log.around("phase contact", 0.25, 0.5)
    assert (near.seconds[0], near.seconds[-1]) == (0.75, 1.5)
    with pytest.raises(ChannelError, match="'capture' happened not in this run"):
        log.around("capture", 1.0)
    with pytest.raises(ChannelError, match="near: latched"):
        log.phase("latchd")
    with pytest.raises(UsageError, match="limit 1"):
        log.every(0)


def test_faults_and_events_are_found_across_chunks(trip):
    log = open_log(trip)
    assert [(e.name, e.tick) for e in log.events() if e.name.startswith("fault")] == [
        ("fault drive_limit_touched", 500), ("fault force_limit", 1020)]  # fmt: skip
    assert log.time_of("fault force_limit") == 1.02


def test_pandas(bounce, bounce_log):
    pandas = pytest.importorskip("pandas", reason="optional group analyst")
    log = open_log(bounce)
    frame = log.to_pandas()
    assert frame.shape == (4000, len(list(columns(bounce_log)))) and all(name.isidentifier() for name in frame.columns)
    assert frame.index.name == "seconds" and np.array_equal(frame.index, bounce_log.time_s)
    hard = frame.query("F_T_x < -1000 and X_TA_x < 0.001")
    assert len(hard) == ((bounce_log.records["F_T"][:, 0] < -1000) & (bounce_log.records["X_TA"][:, 0] < 0.001)).sum() > 10
    assert frame.attrs["channels"]["F_T_ry"] == {"channel": "F_T[4]", "unit": "N.m", "meaning": log.channels["F_T"].meaning}
    assert {"X_TA_qw", "stroke_1", "measured_leg_5"} <= set(frame.columns)
    some = log.phase("contact").to_pandas(["F_T[0]", "phase"], utc=True)
    assert list(some.columns) == ["F_T_x", "phase"] and isinstance(some.index, pandas.DatetimeIndex)
    assert abs(some.index[0].timestamp() - bounce_log.header.created - 1.0) < 1e-6


def test_xarray(bounce, bounce_log):
    pytest.importorskip("xarray", reason="optional group analyst")
    data = open_log(bounce).to_xarray(["F_T", "kinetic_energy", "stroke"])
    assert np.array_equal(data["F_T"].sel(F_T_component="ry"), bounce_log.records["F_T"][:, 4])
    assert data["F_T"].F_T_unit.values.tolist() == ["N"] * 3 + ["N.m"] * 3
    assert data["kinetic_energy"].attrs["units"] == "J" and data["seconds"].attrs["units"] == "s"
    assert float(data["F_T"].sel(seconds=1.02, method="nearest")[0]) == bounce_log.records["F_T"][1020, 0]


def test_tables_need_their_library(bounce, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UsageError, match=r"hil-server\[analyst\]"):
        open_log(bounce).to_pandas(["phase"])


def test_what_it_shows(trip):
    log = open_log(trip)
    assert "fault force_limit 1.020 s" in repr(log) and "contact 1.00-2.00 s" in repr(log)
    page = log._repr_html_()
    assert page.count("<tr>") > 80 and "<code>F_T</code>" in page and "synthetic" in page
    assert "N,N,N,N.m" not in repr(log["F_T"]) and repr(log["F_T[0]"]).startswith("F_T[0] [N] contact wrench")
    assert [about.name for about in log.find("at and in S")] == ["F_S"]


def test_a_long_log_takes_no_more_memory_than_a_channel(tmp_path, make_bounce):
    """A hundred times the records of one second: reading one channel stays below a tenth of what the whole log takes."""
    path = tmp_path / "long.mcap"
    writer = LogWriter(path, LogHeader(run_id="long", aux=(("stroke", "m", "damper", 2),)))
    second, ticks = make_bounce(seconds=1.0), 60_000
    for start in range(0, ticks, len(second)):
        second["tick"] = start + np.arange(len(second))
        second["time_ns"] = second["tick"] * 1_000_000
        writer.write(second)
    writer.close()
    whole = ticks * record_dtype(2).itemsize
    tracemalloc.start()
    try:
        log = open_log(path)
        force = log["F_T[0]"].values
        late = log.between(50.0, 51.0)["X_TA"].values
        log.phases(), log.check()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(force) == ticks and len(late) == 1001 and whole > 1.5e8
    assert peak < whole / 20


def test_selection_by_time_reads_no_other_chunk(bounce, monkeypatch):
    log = open_log(bounce)
    read = []
    plain = log._source.records
    monkeypatch.setattr(log._source, "records", lambda number: read.append(number) or plain(number))
    assert log.between(2.0, 2.05)["F_T"].values.shape == (51, 6)
    assert read == [20]


# -------------------------------------------------------------------------------------------------------------------- damage
def test_a_cut_log_opens_as_far_as_it_goes(bounce, tmp_path):
    data = bounce.read_bytes()
    path = tmp_path / "cut.mcap"
    path.write_bytes(data[: len(data) // 2])
    log, whole = open_log(path), read_log(path)
    assert 0 < log.ticks == whole.ticks < 4000 and log.problems == whole.incomplete != []
    assert np.array_equal(log["F_T"], whole.records["F_T"]) and "cut" in repr(log)


def test_a_damaged_chunk_is_left_out_and_named(bounce, tmp_path):
    data = bytearray(bounce.read_bytes())
    place = open_log(bounce)._source.places[7]
    data[place.start + 60 : place.start + 400] = bytes(340)
    path = tmp_path / "damaged.mcap"
    path.write_bytes(data)
    log, whole = open_log(path), read_log(path)
    assert log.ticks == whole.ticks == 3900 and np.array_equal(log["F_T"], whole.records["F_T"])
    assert any("0.700...0.799" in text for text in log.problems) and any("3900 ticks are in the file" in text for text in log.check())


def test_one_changed_bit_is_named(write_run, make_bounce, tmp_path):
    records = make_bounce(seconds=0.3)
    path = write_run(records)
    whole = read_log(path)
    changed = whole.records.copy()
    changed["F_T"][150, 0] = np.nextafter(changed["F_T"][150, 0], 9.0)
    copy = LogWriter(tmp_path / "bit.mcap", whole.header)
    copy.copy(changed)
    copy.close()
    assert open_log(path).check() == []
    assert open_log(tmp_path / "bit.mcap").check() == ["damaged record: tick 150"]


def test_chunks_out_of_order_are_read_as_the_whole_log_reads_them(write_run, make_bounce, tmp_path):
    """The second half again behind the end: what does not continue is left out."""
    whole = read_log(write_run(make_bounce(seconds=0.6)))
    writer = LogWriter(tmp_path / "twice.mcap", whole.header)
    for part in (whole.records[:400], whole.records[200:350], whole.records[400:]):
        writer.copy(part)
        writer.flush()
    writer.close()
    log, read = open_log(tmp_path / "twice.mcap"), read_log(tmp_path / "twice.mcap")
    assert np.array_equal(log["tick"], read.records["tick"]) and log.ticks == 600
    assert any("out of order" in text for text in log.problems)


def test_not_a_log(tmp_path):
    path = tmp_path / "text.mcap"
    path.write_text("no log at all")
    with pytest.raises(LogError, match="not an MCAP file"):
        open_log(path)
