"""Large crafts to the end: a ship with four drives docked to a station of twelve joints and 96 modes, a module berthed by that station's
arm."""

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED
from hil_server.judge.crafts import names_in
from hil_server.log.reader import read_log
from rt_kernels.layout import BITS, CODES

FREE, SIGNAL = CODES["motion"]["free"], BITS["mechanism_signal"]
FILES = {"docked": "large_crafts", "berthed": "berthing_in_orbit"}
JOINTS_AND_MODES = {"docked": (16, 108), "berthed": (19, 104)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Name → its log. That they end as expected with every requirement met is in the exit code."""
    found = {}
    for name, file in FILES.items():
        out = tmp_path_factory.mktemp(name) / "out"
        assert main(["simulate", str(SHIPPED / f"programmes/{file}.toml"), "--out", str(out), "--no-report", "--quiet"]) == 0
        (found[name],) = out.rglob("run.mcap")
    return found


@pytest.fixture(scope="module")
def logs(files):
    return {name: read_log(file) for name, file in files.items()}


def channel(log, name):
    return log.aux(name).reshape(log.ticks, -1)


def flown(log):
    return np.flatnonzero(log.records["motion"] == FREE)


def last(log, seconds):
    """The records of the end of the flight."""
    rows = flown(log)
    return rows[log.time_s[rows] > log.time_s[rows[-1]] - seconds]


@pytest.mark.parametrize("name", FILES)
def test_every_joint_moves_and_they_replay_to_the_same_bytes(files, logs, name, capsys):
    log = logs[name]
    names = names_in(log.header.notes)
    assert (len(names["joints"]), len(names["modes"])) == JOINTS_AND_MODES[name]
    moved = np.ptp(channel(log, "joint_position")[flown(log)], axis=0)
    assert (moved > 0.0).all() and moved.max() < np.radians(10.0)
    assert channel(log, "modal_energy").max() > 1e-4 and np.isfinite(channel(log, "modal_coordinate")).all()
    assert main(["replay", str(files[name]), "--verify"]) == 0
    assert "equal" in capsys.readouterr().out


def test_the_ship_is_docked_planes_pressed_latched_and_at_rest(logs):
    """For the half second that the sequence asks for: gaps, axes, rates; drives at their targets, wings quieter than they were."""
    log = logs["docked"]
    r, names = log.records, names_in(log.header.notes)["joints"]
    end = last(log, 0.5)
    assert r["end_cause"][-1] == CODES["end_cause"]["complete"]
    for bit in ("DSG", "planes_together", "pushers", "latch1", "latch2", "latch3"):
        assert (r["signal_discrete"][end] & SIGNAL[bit] != 0).all(), bit
    assert (channel(log, "nest_held")[end] == 1.0).all() and (channel(log, "plane_force")[end] > 200.0).all()
    assert all((channel(log, f"plane{k}_gap")[end] < 0.0).all() for k in range(1, 5))
    X, V = r["X_TA"][end], r["V_TA"][end]
    assert np.linalg.norm(V[:, :3], axis=1).max() < 1e-4 and np.linalg.norm(V[:, 3:], axis=1).max() < np.radians(0.02)
    assert np.hypot(X[:, 1], X[:, 2]).max() < 1e-3 and 2.0 * np.abs(X[:, 3:6]).max() < np.radians(0.1)
    assert np.linalg.norm(r["F_T"][end, :3], axis=1).max() < 50.0 and np.linalg.norm(r["F_T"][end, 3:], axis=1).max() < 100.0
    target = dict.fromkeys(names, 0.0) | {"active left_drive": 0.1, "active right_drive": -0.1, "target left_alpha": 0.01,
                                          "target right_alpha": -0.01}  # fmt: skip
    position, rate = (channel(log, f"joint_{what}")[end] for what in ("position", "rate"))
    assert np.abs(position - list(target.values())).max() < 1e-3 and np.abs(rate).max() < 1e-3
    energy = channel(log, "modal_energy")
    assert (energy[end].max(axis=0) < 0.2 * energy.max(axis=0)).all()
    # joined or not, what has come in is the thrust's: none since the bottom
    pushed = flown(log)[np.flatnonzero(np.linalg.norm(r["control_A"][flown(log)], axis=1))]
    momentum = r["momentum"][pushed[-1] + 1 : end[-1]]
    assert len(momentum) > 1000 and np.abs(momentum - momentum[0]).max() < 1e-10 * np.abs(momentum[0]).max()


def test_the_module_is_berthed_by_the_arm_of_the_station_itself(logs):
    """Captured by four latches behind the edge of the socket, then quiet there; the arm led it and lost nothing of its grasp."""
    log = logs["berthed"]
    r = log.records
    end, rows = last(log, 2.0), flown(log)
    assert r["end_cause"][-1] == CODES["end_cause"]["captured"] and not r["dynamics_status"][rows].any()
    for bit in ("DSG", "latch1", "latch2", "latch3", "latch4"):
        assert (r["signal_discrete"][end] & SIGNAL[bit] != 0).all(), bit
    # between the stops of the latches and the bottom of the socket, on its axis
    X, speed = r["X_TA"][end], np.linalg.norm(r["V_TA"][:, :3], axis=1)
    assert (-0.036 < X[:, 0]).all() and (X[:, 0] < -0.026).all() and np.abs(X[:, 1:3]).max() < 1e-3
    captured = rows[log.time_s[rows] > r["capture_time"][-1]]
    assert speed[end].max() < 1e-3 < 0.2 * speed[captured].max()
    # 86 mm of Insert and two Steps by the joints of the arm; the grasp bore what the latches asked for
    assert X[-1, 0] - r["X_TA"][rows[0], 0] > 0.08
    names = names_in(log.header.notes)["joints"]
    arm = [i for i, name in enumerate(names) if name.split("_")[0] in ("target shoulder", "target elbow", "target wrist")]
    assert len(arm) == 7 and (np.ptp(channel(log, "joint_position")[rows][:, arm], axis=0) > 5e-4).all()
    assert channel(log, "latch_drift")[rows].max() < 1e-8
    force = np.linalg.norm(channel(log, "latch_wrench")[rows, :3], axis=1)
    assert 60.0 < force.max() < 200.0 and np.linalg.norm(channel(log, "latch_wrench")[end, :3], axis=1).max() < 0.5 * force.max()
