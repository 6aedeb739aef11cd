"""A simulated flight: a run as bare sensor columns with noise, gaps and clocks of their own, set against fourteen runs."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import load_test
from hil_server.errors import ConfigurationError, UsageError
from hil_server.exchange import recordings
from hil_server.judge.channels import body_motion, channel
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.run.session import Options, simulate

SHORT = ("test.stand=stands/ideal_stand.toml", "test.duration_max_s=7.0", "guidance.speed_max_m_s=0.4", "compensation.part=none",
         "guidance.acceleration_max_m_s2=1.0", "guidance.contact_max_s=2.5", "initial_conditions.velocity_z_m_s=0.0")  # fmt: skip
RUNS, FLOWN = 14, 13
OFFSET = {"accelerometers.csv": 1731.2573, "rates.csv": -41.0184}
ARM = np.array([0.8, -0.3, 0.2])
FOLDER = {}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(2)
    found = []
    for k in range(RUNS):
        y, z, v, yaw = rng.uniform([-0.06, -0.06, 0.09, -1.5], [0.06, 0.06, 0.13, 1.5])
        start = (f"initial_conditions.lateral_y_m={y}", f"initial_conditions.lateral_z_m={z}", f"initial_conditions.velocity_x_m_s={v}",
                 f"initial_conditions.yaw_deg={yaw}", "guidance.ramp_s=0.4", "guidance.constant_s=0.3")  # fmt: skip
        simulate(load_test("programmes/docking.toml", (*SHORT, *start)), Options(out=str(folder / f"{k}"), quiet=True, report=False))
        found.append(read_log(folder / f"{k}" / "run.mcap"))
    return found


@pytest.fixture(scope="module")
def flight(logs, tmp_path_factory):
    """Accelerometers at 800 Hz and rate sensors at 400 Hz of run FLOWN, with noise, gaps and offsets."""
    folder, log, rng = tmp_path_factory.mktemp("flight"), logs[FLOWN], np.random.default_rng(8)
    rate, acceleration = body_motion(Run(log), "active", ARM)
    for file, values, hz, sigma, names in (("accelerometers.csv", acceleration, 800.0, 3e-3, "ax,ay,az"),
                                           ("rates.csv", rate, 400.0, 3e-5, "gx,gy,gz")):  # fmt: skip
        t = np.arange(log.time_s[0] + 0.2, log.time_s[-1] - 0.1, 1.0 / hz)
        t = np.sort(t + rng.uniform(-0.1, 0.1, len(t)) / hz)
        keep = rng.random(len(t)) > 0.02
        away = (t > 1.0) & (t < 1.15) | (t > 2.0) & (t < 2.06)  # two pauses before the contact
        t = t[keep & ~away]
        columns = [np.interp(t, log.time_s, v) + sigma * rng.normal(size=len(t)) for v in values.T]
        rows = "\n".join(",".join(f"{v:.9g}" for v in row) for row in np.column_stack(columns))
        stamped = "\n".join(f"{a:.6f},{b}" for a, b in zip(t + OFFSET[file], rows.split("\n"), strict=True))
        (folder / file).write_text(f"t_s,{names}\n{stamped}\n")
    (folder / "flight.toml").write_text(f"""
[recorded]
name = "flight"
[[stream]]
file = "accelerometers.csv"
sigma = 3e-3
position_m = {ARM.tolist()}
[stream.columns]
ax = "active.acceleration[0]"
ay = "active.acceleration[1]"
az = "active.acceleration[2]"
[[stream]]
file = "rates.csv"
sigma = 3e-5
[stream.columns]
gx = "active.rate[0]"
gy = "active.rate[1]"
gz = "active.rate[2]"
""")
    FOLDER["flight"] = folder
    return recordings.load(folder / "flight.toml")


def test_the_clocks_are_found_to_two_milliseconds(logs, flight):
    found = recordings.match(flight, Run(logs[FLOWN]))
    for name, true in OFFSET.items():
        assert abs(found.offset_s[name] - true) < 2e-3
    assert set(found.correlation) == {f"{s.name}: {c}" for s in flight.sensors for c in s.values}


def test_which_of_the_runs_it_was(logs, flight):
    ranked = recordings.best_run(flight, [Run(log) for log in logs])
    assert ranked[0].run == str(FLOWN) and len(ranked) == RUNS
    assert ranked[0].mean > ranked[1].mean + 0.01


def test_the_impulse_of_the_contact(logs, flight):
    log = logs[FLOWN]
    load = recordings.contact_load(flight, Run(log))
    r = log.records
    # what the line felt: the wrench on the target, turned round, along the ship's axes; the same interval for both
    begin, end = r["first_contact_time"][-1] - 0.05, r["first_contact_time"][-1] + 1.5
    inside = (log.time_s >= begin) & (log.time_s <= end)
    in_ship = Rotation.from_quat(r["X_TA"][:, 3:]).inv().apply(-r["F_T"][:, :3])
    true = np.trapezoid(in_ship[inside], log.time_s[inside], axis=0)
    found, sigma = load.impulse(begin, end)
    assert np.linalg.norm(found - true) < 0.03 * np.linalg.norm(true)
    assert np.all(np.abs(found - true) < 6 * sigma + 0.03 * np.linalg.norm(true)) and np.all(sigma < 0.03 * np.linalg.norm(true))
    # the noise of one instant is what the covariance says: before the contact there is no load
    quiet = load.wrench[(load.time_s > 2.2) & (load.time_s < begin - 0.1)]
    np.testing.assert_allclose(quiet.std(axis=0)[:3], np.sqrt(np.diag(load.covariance))[:3], rtol=0.6)


def test_the_verb_names_the_run_and_draws_it(logs, flight, tmp_path, capsys):
    from hil_server.cli import main

    file = next(s for s in flight.sensors).name
    folder = FOLDER["flight"]
    assert (folder / file).exists()
    some = [str(logs[k].path) for k in (3, FLOWN, 7)]
    assert main(["compare", str(folder / "flight.toml"), *some, "--out", str(tmp_path)]) == 0
    reported = capsys.readouterr().out
    assert f"against {FLOWN}\n" in reported and "impulse of the contact on the active craft" in reported
    page = (tmp_path / "flight_and_runs.html").read_text()
    assert "It matches best 13" in page and page.count("<img") + page.count("<svg") >= 1
    impulse = recordings.reconstructed(flight, Run(logs[FLOWN]), recordings.match(flight, Run(logs[FLOWN])))["active"]
    np.testing.assert_allclose(impulse["impulse_n_s"], impulse["run_n_s"], atol=0.03 * np.linalg.norm(impulse["run_n_s"]))


def test_correlations_at_all_shifts_are_numpys():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=30), rng.normal(size=50)
    mx, my = (rng.random(30) > 0.2).astype(float), (rng.random(50) > 0.2).astype(float)
    found, zero = recordings.correlations(x, mx, y, my)
    for shift in (-10, 0, 7, 25):
        pairs = [(x[i], y[i + shift]) for i in range(30) if 0 <= i + shift < 50 and mx[i] and my[i + shift]]
        if len(pairs) >= 0.5 * min(mx.sum(), my.sum()):
            assert found[zero + shift] == pytest.approx(np.corrcoef(np.array(pairs).T)[0, 1], abs=1e-9)
        else:
            assert np.isnan(found[zero + shift])


def test_what_is_wrong_is_reported(tmp_path, logs, flight):
    (tmp_path / "a.csv").write_text("t_s,a\n0.0,1.0\n0.1,2.0\n")
    text = '[recorded]\nname = "x"\n[[stream]]\nfile = "a.csv"\n[stream.columns]\n{}\n'
    for columns, reported in (("b = \"F_T[0]\"", "no column b"), ("a = 3", "a channel, or"), ("", "at least one")):
        (tmp_path / "r.toml").write_text(text.format(columns))
        with pytest.raises(ConfigurationError, match=reported):
            recordings.load(tmp_path / "r.toml")
    with pytest.raises(UsageError, match=r"no channel 'nonsense\[0\]'"):
        channel(Run(logs[0]), "nonsense[0]")
    with pytest.raises(UsageError, match="three accelerations and three rates"):
        recordings.contact_load(recordings.Recording("r", flight.sensors[:1]), Run(logs[FLOWN]))


# ----------------------------------------------------------------------------------- a flight whose unit is not that of the models

DETAILED = ("telemetry.log_every=1", "guidance.contact_max_s=3.0", "guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0",
            "guidance.ramp_s=0.4", "guidance.constant_s=0.3")  # fmt: skip
# another clutch, other brakes: moments of the spring mechanism and torques of both kinds of magnetic brakes
OTHER_UNIT = ("mechanism.axial_forward=[[0.01,0.0],[0.02,0.45],[0.248,10.7],[5.72,17.8],[7.3126,90.0]]",
              "mechanism.axial_return=[[0.01,0.0],[0.02,0.45],[0.176,7.4],[5.62,12.5],[7.3126,90.0]]",
              "mechanism.axial_brake_table=[[0.0,0.0],[20.0,1.5],[50.0,2.6]]",
              "mechanism.brake_table=[[0.0,0.0],[1.0,20.0],[3.0,40.0]]")  # fmt: skip
CANDIDATES = {"right": (), "heavy": ("active_vehicle.mass_kg=26000.0",), "fast": ("initial_conditions.velocity_x_m_s=0.16",),
              "aside": ("initial_conditions.lateral_z_m=-0.09",)}  # fmt: skip
CLOCKS = {"accelerometers": 100.0, "gyroscopes": -7.3}


def columns_of(log, name, recorder, hz, channels, sigma, rng, arm=None):
    """Columns of a run as a sensor with a clock and noise of its own would have written them."""
    arm = np.zeros(3) if arm is None else arm
    t = np.arange(log.time_s[0] + 0.3, log.time_s[-1] - 0.2, 1.0 / hz)
    t = t + rng.uniform(-0.1, 0.1, len(t)) / hz
    values = {c: np.interp(t, log.time_s, channel(Run(log), c, arm)) + sigma * rng.normal(size=len(t)) for c in channels}
    return recordings.Sensor(name, t + CLOCKS[recorder], values, sigma, arm, recorder)


@pytest.fixture(scope="module")
def other_unit(tmp_path_factory):
    """The flight of another unit, three files of two recorders, and four candidate runs of the models."""
    folder, rng = tmp_path_factory.mktemp("other_unit"), np.random.default_rng(3)

    def fly(name, *more):
        config = load_test("programmes/virtual_docking.toml", (*DETAILED, *more))
        return read_log(simulate(config, Options(out=str(folder / name), quiet=True, report=False))["log"])

    flown = fly("flown", *OTHER_UNIT)
    three = [f"[{i}]" for i in range(3)]
    sensors = (
        columns_of(flown, "acc.csv", "accelerometers", 400.0, [f"active.acceleration{i}" for i in three], 2e-3, rng, ARM),
        columns_of(flown, "more.csv", "accelerometers", 200.0, [f"target.acceleration{i}" for i in three], 2e-3, rng),
        columns_of(flown, "gyro.csv", "gyroscopes", 400.0, [f"active.rate{i}" for i in three], 3e-5, rng),
    )
    return recordings.Recording("flight", sensors), {name: fly(name, *more) for name, more in CANDIDATES.items()}, flown


def test_errors_of_the_model_are_no_errors_of_the_clocks(other_unit):
    recording, runs, flown = other_unit
    found = recordings.match(recording, Run(runs["right"]))
    assert found.offset_s["acc.csv"] == found.offset_s["more.csv"] == pytest.approx(CLOCKS["accelerometers"], abs=5e-3)
    assert found.offset_s["gyro.csv"] == pytest.approx(CLOCKS["gyroscopes"], abs=5e-3) and found.at == "first contact"
    # the models differ in earnest: the captures do not come together, and what is left says so
    captures = [float(log.records["capture_time"][-1]) for log in (flown, runs["right"])]
    assert abs(captures[0] - captures[1]) > 0.05
    label = "acc.csv: active.acceleration[0]"
    assert abs(found.left[label]["first contact"]) < 5e-3 and set(found.left[label]) == {"first contact", "capture", "whole"}


def test_the_right_run_is_ranked_first_beside_a_wrong_mass(other_unit):
    recording, runs, _ = other_unit
    ranked = recordings.best_run(recording, [Run(runs[name]) for name in ("heavy", "fast", "right", "aside")])
    assert ranked[0].run == "right" and ranked[0].matches and ranked[0].score > ranked[1].score + 0.05


def test_what_matches_none_is_reported(other_unit, tmp_path):
    recording, runs, _ = other_unit
    ranked = recordings.best_run(recording, [Run(runs[name]) for name in ("fast", "aside")])
    assert not ranked[0].matches
    page = recordings.write_page(recording, Run(runs[ranked[0].run]), ranked, {}, tmp_path / "page.html").read_text()
    assert "It matches none of them" in page and "matches best" not in page
