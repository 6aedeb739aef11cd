"""A logged run again: equal to the bit; what was changed is found and named."""

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer

from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.log.format import SCHEMA_NAME
from hil_server.log.reader import read_log
from hil_server.log.record import CRC_FIELD, checksums, record_dtype, ros2_schema
from hil_server.log.writer import LogWriter
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from rt_kernels.layout import SAMPLE_DTYPE
from tests.system.line_runs import QUICK


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    summary = simulate(load_test(None, list(QUICK)), Options(out=str(folder), quiet=True, report=False))
    assert summary["captured"] and summary["exit_code"] == 0
    return summary["log"]


def rewrite(source, target, change):
    """The same log with `change(records)` done to its records; checksums stay as they were."""
    log = read_log(source)
    records = log.records.copy()
    change(records)
    writer = LogWriter(target, log.header)
    writer.copy(records)
    writer.close({})
    return target


def test_replay_is_equal_by_bytes(logged):
    result = replay.replay(logged, verify=True)
    assert result["equal"] and result["first_difference"] is None and result["exit_code"] == 0
    assert result["realtime_factor"] > 20  # the figure of 100 belongs to the benchmark


@pytest.mark.parametrize("field, index", [("wrench_raw", 2), ("lateness_ns", None), ("measured_leg", 0)])
def test_one_bit_of_an_input_is_found_and_named(logged, tmp_path, field, index):
    def flip(records):
        column = records[field] if index is None else records[field][:, index]
        raw = column.copy().view(np.uint64)
        raw[1234] ^= np.uint64(1)
        if index is None:
            records[field] = raw.view(column.dtype)
        else:
            records[field][:, index] = raw.view(column.dtype)

    path = rewrite(logged, tmp_path / "flipped.mcap", flip)
    result = replay.replay(path, verify=True)
    assert not result["equal"] and result["exit_code"] == 1
    assert result["first_difference"]["tick"] == 1234
    assert result["first_difference"]["channel"] == (field if index is None else f"{field}[{index}]")


def test_a_gain_changed_in_its_tenth_digit_is_found(logged):
    result = replay.replay(logged, verify=True, overrides=("compensation.lead_factor=1.0000000001",))
    first = result["first_difference"]
    assert not result["equal"] and first["channel"].startswith("tuned[")  # the gain in force is a channel itself
    assert first["computed"] - first["logged"] == pytest.approx(1e-10, rel=1e-3)
    assert "lead" in {row["channel"] for row in result["changes"]}
    assert "original motion" in result["note"] and result["changes"]


def test_a_window_is_compared_alone(logged):
    result = replay.replay(logged, verify=True, start_s=1.0, stop_s=1.999)
    assert result["ticks"] == 1000 and result["equal"]


def test_what_if_with_the_same_value_is_equal(logged):
    assert replay.replay(logged, verify=True, overrides=("compensation.lead_factor=1.0",))["equal"]


# ------------------------------------------------------------------------------------------------------------- missing ticks


def without(source, target, *gaps, mode=None):
    """The same log without the ticks of the gaps, [first, last]."""
    log = read_log(source)
    keep = np.ones(log.ticks, bool)
    for first, last in gaps:
        keep[first : last + 1] = False
    if mode:
        log.header.mode = mode
    writer = LogWriter(target, log.header)
    writer.copy(log.records[keep])
    writer.close({})
    return target


def test_missing_ticks_of_a_simulation_are_named_and_the_rest_is_compared(logged, tmp_path):
    path = without(logged, tmp_path / "gap.mcap", (100, 199), (1500, 1500))
    result = replay.replay(path, verify=True)
    assert result["missing"] == [{"first": 100, "last": 199}, {"first": 1500, "last": 1500}] and result["missing_ticks"] == 101
    assert result["differing"] == 0 and not result["equal"] and result["exit_code"] == 1
    assert result["first_difference"] == {"tick": 100, "channel": "(none)", "cause": "ticks 100 to 199 are missing from the log"}


def test_missing_ticks_of_a_live_run_are_named_and_those_before_are_compared(logged, tmp_path):
    ticks = read_log(logged).ticks
    path = without(logged, tmp_path / "gap.mcap", (3000, 3099), mode="live")
    result = replay.replay(path, verify=True)
    assert result["differing"] == 0, "in front of the gap everything is equal"
    assert result["first_difference"]["cause"] == "ticks 3000 to 3099 are missing from the log"
    assert result["behind_gap"]["ticks"] == ticks - 3100
    # a difference in front of the gap is still found, and comes first
    log = read_log(path)
    log.records["F_T"][2000, 0] += 1.0
    writer = LogWriter(tmp_path / "both.mcap", log.header)
    writer.write(log.records)
    writer.close({})
    result = replay.replay(tmp_path / "both.mcap", verify=True)
    assert result["differing"] == 1 and result["first_difference"]["tick"] == 2000
    assert result["first_difference"]["channel"] == "F_T[0]"


def test_a_line_that_ends_before_its_log_is_not_equal(logged, tmp_path):
    """Records behind the end of the run: the line stops, the log continues."""
    log = read_log(logged)
    more = np.concatenate([log.records, log.records[-50:]])
    more["tick"] = np.arange(len(more))
    writer = LogWriter(tmp_path / "longer.mcap", log.header)
    writer.write(more)
    writer.close({})
    result = replay.replay(tmp_path / "longer.mcap", verify=True)
    assert not result["equal"] and result["differing"] == 50 and result["first_difference"]["tick"] == log.ticks


# ------------------------------------------------------------------------------------------------------- states out of a log


def with_header(source, target, change):
    log = read_log(source)
    change(log.header)
    writer = LogWriter(target, log.header)
    writer.copy(log.records)
    writer.close({})
    return target


def test_the_offset_of_a_compensator_is_not_taken_from_a_log(tmp_path):
    """`phased` keeps two parts in one block: where the second one begins is not the log's to say."""
    items = [*QUICK, "compensation.part=phased", 'compensation.contact={part="pose_referenced_force", stiffness_n_per_m=1e5}']
    summary = simulate(load_test(None, items), Options(out=str(tmp_path / "run"), quiet=True, report=False))
    assert replay.replay(summary["log"], verify=True)["equal"]

    def far_away(header):
        header.states["compensation"] = (1 << 40).to_bytes(8, "little") + header.states["compensation"][8:]

    path = with_header(summary["log"], tmp_path / "far.mcap", far_away)
    result = replay.replay(path, verify=True)
    assert result["equal"] and [*result["rebuilt"]] == ["compensation"] and "this program builds" in result["rebuilt"]["compensation"]
    # nor how many auxiliary channels it has: the comparison would read beyond the records
    log = read_log(summary["log"])
    log.header.aux = log.header.aux[:-1]
    writer = LogWriter(tmp_path / "short.mcap", log.header)
    writer.write(np.zeros(20, record_dtype(log.header.aux_count)))
    writer.close({})
    with pytest.raises(ConfigurationError, match="auxiliary channels are not those"):
        replay.replay(tmp_path / "short.mcap")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: setattr(h, "initial_record", h.initial_record[:100]), "initial_record has 100 bytes"),
        (lambda h: h.calibration["context"]["delays"].pop("total_s"), "delays.total_s"),
        (lambda h: h.calibration["context"].update(sensor_scale=[1.0, 2.0]), "sensor_scale"),
        (lambda h: h.calibration.clear(), "context: missing"),
        (lambda h: h.configuration.update({"configuration.toml": "x = " + "9" * 5000}), "not TOML"),
        (lambda h: h.configuration.clear(), "no configuration"),
    ],
)
def test_a_log_that_cannot_be_built_again_is_refused_in_words(logged, tmp_path, change, words):
    log = read_log(logged)
    change(log.header)
    records = np.zeros(50, record_dtype(log.header.aux_count))
    records["tick"] = np.arange(50)
    writer = LogWriter(tmp_path / "other.mcap", log.header)
    writer.write(records)
    writer.close({})
    with pytest.raises(ConfigurationError, match=words):
        replay.replay(tmp_path / "other.mcap", verify=True)


def test_constants_of_another_version_are_rebuilt_and_named(logged, tmp_path):
    """A struct that has other members, or the same in another order, or none: no earlier log is lost by it, and nothing of it is used."""

    def of_another_version(header):
        header.states["safety"] += bytes(8)
        header.states["events"] = header.states["events"][::-1]
        del header.states["dynamics"]

    path = with_header(logged, tmp_path / "earlier.mcap", of_another_version)
    result = replay.replay(path, verify=True)
    assert result["equal"] and [*result["rebuilt"]] == ["events", "dynamics", "safety"]


def as_of_an_earlier_table(source, target, change=lambda records: None):
    """The log as a program would have written it whose table had no thrusters, and `control_A` under its former name; by the library of
    MCAP alone. The block of the control stage has the form of another program."""
    without = {"thruster_A", "thruster_T"}
    log = read_log(source)
    names = [name for name in SAMPLE_DTYPE.names if name not in without]
    dtype = np.dtype([*(("control_C" if n == "control_A" else n, SAMPLE_DTYPE[n]) for n in names), ("aux", "<f8", (log.header.aux_count,))])

    def former(records):
        out = np.zeros(len(records), dtype)
        for name in (*names, "aux"):
            out["control_C" if name == "control_A" else name] = records[name]
        change(out)
        out[CRC_FIELD] = 0
        out[CRC_FIELD] = checksums(out)
        return out

    lines = [line for line in ros2_schema(log.header.aux_count).splitlines() if not any(f"# {name} " in line for name in without)]
    schema = "\n".join(lines).replace("# control_A ", "# control_C ")
    before = former(np.frombuffer(log.header.initial_record, record_dtype(log.header.aux_count)))
    with open(source, "rb") as stream, open(target, "wb") as out:
        reader, writer = make_reader(stream), Writer(out)
        writer.start()
        for metadata in reader.iter_metadata():
            facts = metadata.metadata | ({"layout_hash": "0123456789abcdef"} if metadata.name == "run" else {})
            writer.add_metadata(metadata.name, facts)
        for a in reader.iter_attachments():
            changed = {"initial_record": before.tobytes(), "state/control": b"another form"}.get(a.name, a.data)
            writer.add_attachment(a.create_time, a.log_time, a.name, a.media_type, changed)
        channel = writer.register_channel("sample", "cdr", writer.register_schema(SCHEMA_NAME, "ros2msg", schema.encode()))
        for record in former(log.records):
            writer.add_message(channel, int(record["time_ns"]), b"\0\1\0\0" + record.tobytes(), int(record["time_ns"]))
        writer.finish()
    return target


def test_a_log_of_an_earlier_table_of_channels(logged, tmp_path):
    """Fields that came later are not compared, a stage whose block has another form is rebuilt; what differs is still found."""
    result = replay.replay(as_of_an_earlier_table(logged, tmp_path / "former.mcap"), verify=True)
    assert result["equal"] and result["damaged"] == [] and result["incomplete"] == []
    assert result["absent"] == ["thruster_A", "thruster_T"] and [*result["rebuilt"]] == ["control"]

    def otherwise(records):
        records["control_C"][records["tick"] == 2000, 0] += 1.0

    result = replay.replay(as_of_an_earlier_table(logged, tmp_path / "otherwise.mcap", otherwise), verify=True)
    assert not result["equal"] and result["differing"] == 1 and result["first_difference"]["channel"] == "control_A[0]"
