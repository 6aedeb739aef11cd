"""Foreign recordings: what is interpolated, what is a gap, what is refused."""

import json

import numpy as np
import pytest
from mcap.writer import Writer

from hil_server.analysis.foreign_logs import common_grid, read_csv, read_mcap, report, resample
from hil_server.errors import ConfigurationError


def write_csv(path, time, columns, clock="t_s"):
    lines = [",".join([clock, *columns])] + [",".join(str(v) for v in row) for row in zip(time, *columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_linear_between_neighbours_and_gaps_stay_gaps(tmp_path):
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.uniform(0.0009, 0.0016, 3000))
    t[1500:] += 0.1  # a hole of 100 ms
    stream = read_csv(write_csv(tmp_path / "a.csv", t, {"fx": 3 * t, "fy": -t}))
    grid = np.arange(t[0] - 0.01, t[-1] + 0.01, 1e-3)
    got = resample(stream, ("fx", "fy"), grid, gap_s=0.01)
    inside = (grid >= t[0]) & (grid <= t[-1]) & ~((grid > t[1499]) & (grid < t[1500]))
    np.testing.assert_array_equal(got.gap, ~inside)
    np.testing.assert_allclose(got.values[inside, 0], 3 * grid[inside], rtol=1e-9)
    assert np.all(np.isnan(got.values[~inside]))
    assert got.facts["gaps"] == 3 and got.facts["gap_points"] == int((~inside).sum())
    assert "linear between neighbours" in report([got])[0]


def test_stamps_in_microseconds_since_1970_keep_their_digits(tmp_path):
    t = 1708857503929545 + np.array([0, 1437, 2869, 2869, 4300])
    stream = read_csv(write_csv(tmp_path / "a.csv", t, {"fx": np.arange(5)}, clock="t"))
    assert stream.backwards == 1  # the repeated stamp
    np.testing.assert_allclose(stream.time_s - stream.time_s[0], [0, 1437e-6, 2869e-6, 4300e-6], atol=3e-7)


def test_streams_that_do_not_overlap_are_refused(tmp_path):
    a = read_csv(write_csv(tmp_path / "a.csv", [0.0, 1.0], {"fx": [0, 1]}))
    b = read_csv(write_csv(tmp_path / "b.csv", [2.0, 3.0], {"fx": [0, 1]}))
    with pytest.raises(ConfigurationError, match="do not overlap"):
        common_grid([a, b], 1e-3)
    assert len(common_grid([a, a], 1e-3)) == 1001


def test_mcap_with_json_messages(tmp_path):
    path = tmp_path / "a.mcap"
    with path.open("wb") as handle:
        writer = Writer(handle)
        writer.start()
        schema = writer.register_schema("wrench", "jsonschema", b"{}")
        channel = writer.register_channel("/ft", "json", schema)
        for i in range(50):
            data = json.dumps({"Force": {"x": 0.5 * i}, "frame": "s"}).encode()
            writer.add_message(channel, log_time=10**18 + i * 1_430_000, publish_time=0, data=data)
        writer.finish()
    stream = read_mcap(path, "/ft")
    assert list(stream.columns) == ["force.x"] and len(stream.time_s) == 50
    np.testing.assert_allclose(np.diff(stream.time_s), 1.43e-3, atol=3e-7)
    with pytest.raises(ConfigurationError, match="no topic /other; there are: /ft"):
        read_mcap(path, "/other")


def test_faults_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("t_s,fx\n0.0,1.0\n0.1\n")
    with pytest.raises(ConfigurationError, match="line 3 has 1 values"):
        read_csv(tmp_path / "a.csv")
    with pytest.raises(ConfigurationError, match="no column fz"):
        read_csv(write_csv(tmp_path / "b.csv", [0.0], {"fx": [1.0]})).stack(("fz",))


def test_recording_becomes_a_log_that_replays_with_its_gaps_marked(tmp_path):
    """The real recording, with a hole cut into it: the line sees it tick by tick, gaps are the sensor's own 'no data'."""
    from pathlib import Path

    from hil_server.cli import main
    from hil_server.replay import replay
    from hil_server.telemetry.log_file import open_log

    source = Path(__file__).parents[1] / "data" / "force_torque" / "1-baseline_wrench.csv"
    lines = source.read_text().splitlines()
    (tmp_path / "cut.csv").write_text("\n".join(lines[:1000] + lines[1100:3000]) + "\n")
    out = tmp_path / "a.mcap"
    keys = ["--set", "stand.mounting.carried_mass_kg=0.0"]
    assert main(["import", str(tmp_path / "cut.csv"), "stand_configs/programmes/elastic_contact.toml", *keys, "--out", str(out)]) == 0
    log = open_log(out)
    silent = log.records["wrench_status"] == 1
    assert 135 <= silent.sum() <= 150 and not silent[0]
    first = np.array([float(v) for v in lines[1].split(",")[1:]])
    np.testing.assert_allclose(log.records["F_S"][0], first, atol=1e-3)
    assert log.records["wrench_age_ns"].max() == int(silent.sum()) * 1_000_000
    assert replay(out, verify=True)["equal"]
    assert main(["import", str(tmp_path / "cut.csv"), "--out", str(out)]) == 2  # nothing is written over
