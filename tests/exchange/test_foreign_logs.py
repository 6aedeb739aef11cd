"""Foreign recordings: what is interpolated, what is a gap, what is refused."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from mcap.writer import Writer

from hil_server.cli import main
from hil_server.config import load_test, test_from_toml, toml_text
from hil_server.errors import ConfigurationError
from hil_server.exchange.foreign_logs import common_grid, read_csv, read_mcap, report, resample
from hil_server.line import assembly
from hil_server.log.reader import read_log
from hil_server.run.replay import replay
from rt_kernels.layout import CODES


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


BASELINE = Path(__file__).parents[1] / "data" / "force_torque" / "1-baseline_wrench.csv"


def imported(tmp_path, *arguments, source=BASELINE):
    """Exit code, what was written with --json, the log."""
    out = tmp_path / f"imported-{len(list(tmp_path.iterdir()))}.mcap"
    code = main(["import", str(source), *arguments, "--out", str(out), "--json", str(tmp_path / "a.json")])
    return code, json.loads((tmp_path / "a.json").read_text()), read_log(out)


def test_recording_goes_through_the_line_to_its_end(tmp_path, capsys):
    """A real recording and the shipped docking: every point of it, no fault of a stand that was not there, the model moves under it."""
    code, told, log = imported(tmp_path)
    points = len(common_grid([read_csv(BASELINE)], 1e-3))
    assert code == 0 and told["points"] == told["ticks"] == log.ticks == points == 6268
    assert told["end"] == "end of the recording" and told["trip"] is None
    assert [fault["name"] for fault in told["faults"]] == ["tare_drift"], "the weight of the tool is in the recording"
    reported = capsys.readouterr().out
    for words in ("6268 ticks of 6268 points", "taken as ideal", "no weight is subtracted", "tare_drift at tick"):
        assert words in reported
    r, wrench = log.records, read_csv(BASELINE).stack(("fx", "fy", "fz", "tx", "ty", "tz"))
    assert wrench[:, 0].min() - 1e-3 < r["F_S"][:, 0].min() and r["F_S"][:, 0].max() < wrench[:, 0].max() + 1e-3, "nothing taken off"
    assert set(r["motion"][1:]) == {CODES["motion"]["free"]} and r["safety_state"][2:].max() == 0
    # the ideal stand is where it is wanted, one tick later
    np.testing.assert_array_equal(r["measured_leg"][1:], r["leg_demand"][:-1])
    np.testing.assert_allclose(r["leg_setpoint"], r["leg_demand"], atol=1e-9)
    # momentum of the model: what the recorded wrench, as corrected, has given it
    state = load_test(None)
    mass = state.active_vehicle["mass_kg"]
    change = mass * (r["V_NC"][-1, :3] - r["V_NC"][0, :3])
    assert np.linalg.norm(change) > 10.0 and replay(log.path, verify=True)["equal"]


def test_weight_is_subtracted_only_when_the_user_says_what_the_cell_carried(tmp_path):
    _, bare, without = imported(tmp_path)
    _, told, carried = imported(tmp_path, "--set", "stand.mounting.carried_mass_kg=2.0")
    config = load_test(None)
    assert config.stand["mounting"]["carried_mass_kg"] > 0.0, "the shipped stand carries a unit that was not there"
    taken_off = np.linalg.norm(without.records["F_S"][:, :3] - carried.records["F_S"][:, :3], axis=1)
    np.testing.assert_allclose(taken_off, 2.0 * np.linalg.norm(config.stand["mounting"]["gravity_m_s2"]), rtol=1e-9)
    assert any("2 kg on the cell" in note for note in told["notes"]) and any("no weight" in note for note in bare["notes"])
    assert any("2 kg on the cell" in note for note in carried.header.notes), "the log says so too"


def never_equal(n):
    """Noise of nothing, N.m: records that are equal to the bit would be a frozen sensor's."""
    return 1e-9 * (-1.0) ** np.arange(n)


def test_what_a_stand_could_not_have_followed_is_reported_and_the_model_continues(tmp_path, capsys):
    """A constant push of 50 N for eight seconds leads out of any stroke."""
    t = np.arange(0.0, 8.0, 1e-3)
    columns = {name: np.full(len(t), -50.0 if name == "fx" else 0.0) for name in ("fx", "fy", "fz", "tx", "ty", "tz")}
    columns["tz"] = never_equal(len(t))
    source = write_csv(tmp_path / "push.csv", t, columns)
    code, told, log = imported(tmp_path, "stand_configs/programmes/elastic_contact.toml", source=source)
    assert code == 1 and told["ticks"] == told["points"] == len(t) and told["trip"]["name"] == "stroke_limit"
    assert f"stroke_limit at tick {told['trip']['tick']}" in capsys.readouterr().out
    # the model continued after it: constant force, constant acceleration
    speed, after = log.records["V_NC"][:, 0], told["trip"]["tick"]
    assert np.ptp(np.diff(speed[after:])) < 1e-6 * np.ptp(speed) and abs(speed[-1] - speed[after]) > 0.1
    assert replay(log.path, verify=True)["equal"]


def test_guidance_of_recordings_moves_no_stand(tmp_path):
    document = tomllib.loads(load_test(None).as_toml()) | {"guidance": {"part": "recording"}}
    config = test_from_toml(toml_text.dumps(document))
    with pytest.raises(ConfigurationError, match="'recording' is for recordings only"):
        assembly.live(config, assembly.base_context(config), [], priority=0, cpu=0)


def test_list_without_a_clock_wants_a_rate(tmp_path):
    columns = {name: np.zeros(100) for name in ("fy", "fz", "tx", "ty")} | {"tz": never_equal(100)}
    source = write_csv(tmp_path / "a.csv", np.zeros(100), columns, clock="fx")
    assert main(["import", str(source), "--out", str(tmp_path / "b.mcap")]) == 2
    for rate in ("0", "nan", "-1", "1e9"):
        assert main(["import", str(source), "--rate-hz", rate, "--out", str(tmp_path / "b.mcap")]) == 2
    code, told, _ = imported(tmp_path, "--rate-hz", "500", source=source)
    assert code == 0 and told["points"] == told["ticks"] == 199
    assert main(["import", str(BASELINE), "--rate-hz", "700", "--out", str(tmp_path / "b.mcap")]) == 2, "it has a clock"


@pytest.mark.parametrize("cell", ["nan", "inf", "-1e999", "1" * 5000, "x", ""])
def test_cell_that_is_no_finite_number_is_named(tmp_path, cell):
    (tmp_path / "a.csv").write_text(f"t_s,fx\n0.0,1.0\n0.1,{cell}\n")
    with pytest.raises(ConfigurationError, match="line 3, column fx"):
        read_csv(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(f"t_s,fx\n0.0,1.0\n{cell},1.0\n")
    with pytest.raises(ConfigurationError, match="line 3, column t_s"):
        read_csv(tmp_path / "b.csv")


def test_recording_becomes_a_log_that_replays_with_its_gaps_marked(tmp_path):
    """The real recording, with a hole cut into it: the line sees it tick by tick, gaps are the sensor's own 'no data'."""
    lines = BASELINE.read_text().splitlines()
    (tmp_path / "cut.csv").write_text("\n".join(lines[:1000] + lines[1100:3000]) + "\n")
    out = tmp_path / "a.mcap"
    programme = "stand_configs/programmes/elastic_contact.toml"
    assert main(["import", str(tmp_path / "cut.csv"), programme, "--out", str(out)]) == 1, "a stand would have tripped: no data"
    log = read_log(out)
    silent = log.records["wrench_status"] == 1
    assert 135 <= silent.sum() <= 150 and not silent[0]
    first = np.array([float(v) for v in lines[1].split(",")[1:]])
    np.testing.assert_allclose(log.records["F_S"][0], first, atol=1e-3)
    assert log.records["wrench_age_ns"].max() == int(silent.sum()) * 1_000_000
    assert replay(out, verify=True)["equal"]
    assert main(["import", str(tmp_path / "cut.csv"), "--out", str(out)]) == 2  # nothing is written over


@pytest.mark.parametrize("stamp", ["1e308", "nan", "inf", "9" * 400, "\u00b2"])
def test_a_time_that_is_none_is_named(tmp_path, stamp):
    (tmp_path / "w.csv").write_text(f"t_us,fx\n1000,1.0\n{stamp},2.0\n")
    with pytest.raises(ConfigurationError, match="line 3, column t_us"):
        read_csv(tmp_path / "w.csv")


def test_a_recording_of_centuries_is_refused(tmp_path):
    (tmp_path / "w.csv").write_text("t_s,fx\n0,1.0\n1e12,2.0\n")
    with pytest.raises(ConfigurationError, match="points"):
        common_grid([read_csv(tmp_path / "w.csv")], 1e-3)
