"""Calibration on the recording of a real sensor (tests/data/force_torque, Zenodo record 11096791), and on made-up loads."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.cli import main
from hil_server.errors import ConfigurationError
from hil_server.exchange.foreign_logs import WRENCH, read_csv
from hil_server.identify.calibrate import calibrate, calibrate_accelerometer, compensate_motion, deletions, find_offset, gravity_of

DATA = Path(__file__).parents[1] / "data" / "force_torque"
POSES = DATA / "0-calibration_fts-accel.csv"


@pytest.fixture(scope="module")
def still():
    return read_csv(POSES)


@pytest.fixture(scope="module")
def found(still):
    w = still.stack(WRENCH)
    return calibrate(w[:, :3], w[:, 3:], gravity_of(still))


def test_real_tool(found):
    assert found.poses == 24
    assert found.mass_kg == pytest.approx(0.933, abs=0.005)
    np.testing.assert_allclose(found.com_m, [0.3e-3, 0.05e-3, 43.9e-3], atol=0.5e-3)
    assert found.residual_n <= 0.09 and found.residual_n_m <= 0.0035
    assert found.condition_mass < 1.1 and found.condition_com < 3.0


def test_free_motion_is_near_zero(still, found):
    """Mean within three times the residual of the still poses; the accelerometer takes a good part of the inertia off."""
    sensor = calibrate_accelerometer(still.stack(("ax", "ay", "az")), gravity_of(still))
    streams = [read_csv(DATA / f"1-baseline_{name}.csv") for name in ("wrench", "orientations", "accel")]
    m = compensate_motion(found, *streams, sensor)
    assert np.all(np.abs(m.mean) <= m.bound)
    assert np.all(m.bound[:3] < 0.27) and np.all(m.bound[3:] < 0.0095)
    assert np.all(m.rms[:2] < 0.9 * m.rms_gravity_only[:2])
    assert 0.004 < m.offset_s < 0.009
    # without taking the weight off it would be newtons
    raw = streams[0].stack(WRENCH)[:, :3] - found.bias_n
    assert np.abs(raw.mean(axis=0)).max() > 3.0


def test_made_up_load_is_found_with_its_rotation():
    rng = np.random.default_rng(1)
    m, c, bf, bt = 12.5, np.array([0.02, -0.03, 0.11]), np.array([3.0, -4.0, 5.0]), np.array([0.1, 0.2, -0.3])
    turn = Rotation.from_rotvec([0.4, -0.2, 0.3], degrees=True)
    g = Rotation.random(60, random_state=2).inv().apply([0, 0, -9.80665])
    f = m * turn.apply(g)
    got = calibrate(bf + f + rng.normal(scale=0.01, size=f.shape), bt + np.cross(c, f), turn.apply(g))
    assert got.mass_kg == pytest.approx(m, abs=0.002)
    np.testing.assert_allclose(got.com_m, c, atol=1e-5)
    # assumed frame without the rotation: the rotation is found
    got = calibrate(bf + f, bt + np.cross(c, f), g)
    np.testing.assert_allclose(got.rotation_deg, [0.4, -0.2, 0.3], atol=0.01)
    assert got.residual_turned_n < 0.1 * got.residual_n


def test_poses_that_do_not_tell_are_called_out():
    g = np.tile([0.0, 0.0, -9.8], (6, 1)) + 1e-4 * np.random.default_rng(1).normal(size=(6, 3))
    assert not calibrate(g.copy(), np.zeros((6, 3)), g).well_posed
    with pytest.raises(ConfigurationError, match="at least 4"):
        calibrate(g[:3], g[:3], g[:3])


def edited(still, tmp_path, change):
    """The real poses as a CSV file, their wrench (24, 6) changed."""
    names = [*WRENCH, "gx", "gy", "gz"]
    values = still.stack(names)
    change(values)
    np.savetxt(tmp_path / "poses.csv", values, delimiter=",", header=",".join(names), comments="")
    return str(tmp_path / "poses.csv")


def touch(values):
    values[[5, 17], 0] += 3.0, -2.0
    values[11, 4] += 0.05


def nothing_carried(values):
    values[:, :6] = [9.0, -1.0, 10.0, 0.4, -0.7, -0.2] + np.random.default_rng(4).normal(scale=[0.05] * 3 + [0.002] * 3, size=(24, 6))


def opposite(values):
    values[:, :6] *= -1.0


def turn(values):
    values[:, :6] = values[:, [1, 0, 2, 4, 3, 5]] * [1, -1, 1, 1, -1, 1]


@pytest.mark.parametrize(("change", "words"), [
    (touch, ["pose 6 is 2.9", "pose 12 is 0.", "pose 18 is 1.98"]),
    (nothing_carried, ["no mass beyond the noise"]),
    (opposite, ["the carried mass is negative"]),
    (turn, ["the sensor is turned by 89.6 deg"]),
])  # fmt: skip
def test_poses_of_a_bad_day_are_not_usable(still, tmp_path, capsys, change, words):
    assert main(["calibrate", edited(still, tmp_path, change)]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not usable")]
    assert len(lines) == len(words) and all(one in line for one, line in zip(words, lines, strict=True)), lines


def test_what_a_pose_is_from_the_others_is_that_of_a_fit_without_it(still):
    w, g = still.stack(WRENCH), gravity_of(still)
    matrix, right = np.column_stack([g.ravel(), np.tile(np.eye(3), (24, 1))]), w[:, :3].ravel()
    distance, chance = deletions(matrix, right)
    for i in (0, 11, 23):
        own, others = slice(3 * i, 3 * i + 3), np.delete(np.arange(72), np.arange(3 * i, 3 * i + 3))
        x, *_ = np.linalg.lstsq(matrix[others], right[others], rcond=None)
        assert distance[i] == pytest.approx(np.linalg.norm(right[own] - matrix[own] @ x), rel=1e-9)
    # a chance: of many poses with nothing but noise one in a hundred is as far as that
    rng = np.random.default_rng(2)
    drawn = np.concatenate([deletions(matrix, rng.normal(size=72))[1] for _ in range(400)])
    np.testing.assert_allclose([np.mean(drawn < p) for p in (0.5, 0.1, 0.01)], [0.5, 0.1, 0.01], rtol=0.2)


def test_sigma_is_the_spread_of_many_calibrations(still):
    g, rng = gravity_of(still), np.random.default_rng(3)
    c = np.array([0.0, 0.0, 0.05])
    drawn = [calibrate(2.0 * g + rng.normal(scale=0.05, size=g.shape), np.cross(c, 2.0 * g) + rng.normal(scale=0.01, size=g.shape), g)
             for _ in range(400)]  # fmt: skip
    assert np.std([one.mass_kg for one in drawn]) == pytest.approx(np.mean([one.mass_sigma_kg for one in drawn]), rel=0.15)
    np.testing.assert_allclose(np.std([one.com_m for one in drawn], axis=0), np.mean([one.com_sigma_m for one in drawn], axis=0), rtol=0.15)
    assert sum(bool(one.lacking) for one in drawn) <= 3  # CHANCE of 400 is 0.4


def test_offset_between_two_clocks():
    t = np.arange(4000) / 700.0
    x = np.column_stack([np.sin(7 * t) + 0.3 * np.sin(41 * t), np.cos(5 * t) * np.sin(23 * t)])
    late = np.column_stack([np.interp(t - 0.0113, t, column) for column in x.T])
    assert find_offset(x, late, 1 / 700.0) == pytest.approx(0.0113, abs=3e-4)


def test_verb_reports_and_judges(tmp_path, capsys):
    file = tmp_path / "c.json"
    motion = ["--motion", "wrench", "--orientation", "orientations", "--accelerometer", "accel"]
    motion = [str(DATA / f"1-baseline_{a}.csv") if not a.startswith("--") else a for a in motion]
    assert main(["calibrate", str(POSES), *motion, "--json", str(file)]) == 0
    reported = capsys.readouterr().out
    assert "0.9323 +- 0.0018 kg" in reported and "4376 records, 698 Hz" in reported
    import json

    result = json.loads(file.read_text())
    assert result["motion"]["within_bound"] and result["mass_kg"] == pytest.approx(0.9323, abs=1e-4)
    bad = tmp_path / "bad.csv"
    bad.write_text("fx,fy\n1,x\n")
    assert main(["calibrate", str(bad)]) == 2
    assert "line 2, column fy" in capsys.readouterr().err


def test_poses_out_of_a_log(tmp_path):
    """A run's own still stretches: a load cell on the floor has one attitude, so bias and weight cannot be told apart, and it says so."""
    from hil_server.config import load_test
    from hil_server.identify.calibrate import still_poses_of_log
    from hil_server.run.session import Options, simulate

    summary = simulate(load_test("stand_configs/programmes/elastic_contact.toml"), Options(out=str(tmp_path), quiet=True, report=False))
    wrench, gravity = still_poses_of_log(summary["log"])
    assert len(wrench) >= 2
    # 120 kg hang on the cell
    np.testing.assert_allclose(wrench[:, 0], -120.0 * 9.80665, atol=0.5)
    np.testing.assert_allclose(gravity[0], [-9.80665, 0, 0], atol=1e-12)
