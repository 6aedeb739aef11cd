"""A docking in orbit as its user runs it: a test file with a table [orbit], simulated, replayed, tried without."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.cli import main
from hil_server.config import SHIPPED, load_test
from hil_server.log.reader import read_log
from rt_kernels.layout import CODES

MOTION = CODES["motion"]

ORBIT = """
[orbit]
radius_km = 6778.0
radius_direction = [0.0, 1.0, 0.0]      # away from the planet
flight_direction = [1.0, 0.0, 0.0]
"""
RATE = -np.sqrt(3.986004418e14 / 6.778e6**3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Logs of the shipped docking with the orbit and without, from a file beside which nothing else lies."""
    folder = tmp_path_factory.mktemp("orbit")
    shipped = (SHIPPED / "programmes" / "docking.toml").read_text()
    found = {}
    for name, text in (("orbit", shipped + ORBIT), ("none", shipped)):
        (folder / f"{name}.toml").write_text(text)
        assert main(["simulate", str(folder / f"{name}.toml"), "--out", str(folder / name)]) == 0
        found[name] = folder / name / "run.mcap"
    return found


def test_the_run_is_captured_and_replays_to_the_same_bytes(runs, capsys):
    assert read_log(runs["orbit"]).records[-1]["end_cause"] == CODES["end_cause"]["captured"]
    assert main(["replay", str(runs["orbit"]), "--verify"]) == 0
    assert "equal" in capsys.readouterr().out


def test_the_target_turns_with_the_orbit_when_the_loop_closes(runs):
    logs = {name: read_log(path).records for name, path in runs.items()}
    for name, rate in (("orbit", RATE), ("none", 0.0)):
        closed = logs[name][logs[name]["motion"] == MOTION["close_loop"]]
        assert len(closed) == 1
        np.testing.assert_allclose(closed["V_NV"][0][3:], [0.0, 0.0, rate], rtol=1e-12, atol=1e-18)


@pytest.mark.parametrize("name", ["orbit", "none"])
def test_the_momentum_changes_by_what_the_planet_and_the_engines_did(runs, name):
    """From the closing of the loop on, recomputed from the logged places: linearised field, a radius that turns at n; no contact."""
    config, records, period = load_test(), read_log(runs[name]).records, 1e-3
    masses = config.active_vehicle["mass_kg"], config.target_vehicle["mass_kg"]
    flight = records[(records["motion"] == MOTION["close_loop"]) | (records["motion"] == MOTION["free"])]
    assert len(flight) > 2000
    momentum = sum(m * flight[v][:, :3] for m, v in zip(masses, ("V_NC", "V_NV"), strict=True))
    pull = np.zeros_like(momentum)
    if name == "orbit":
        t = period * np.arange(len(flight))
        u = np.stack([-np.sin(RATE * t), np.cos(RATE * t), np.zeros_like(t)], axis=1)
        for m, X in zip(masses, ("X_NC", "X_NV"), strict=True):
            r = flight[X][:, :3]
            pull += -m * RATE**2 * (r - 3.0 * np.sum(u * r, axis=1)[:, None] * u)
    engines = Rotation.from_quat(flight["X_NC"][:-1, 3:]).apply(flight["control_A"][1:, :3])
    tide = 0.5 * period * (pull[1:] + pull[:-1])
    change = momentum[-1] - momentum[0]
    expected = np.sum(tide + period * engines, axis=0)
    size = np.linalg.norm(np.sum(tide, axis=0)) if name == "orbit" else 1e-3
    assert np.linalg.norm(change - expected) <= 1e-5 * size
