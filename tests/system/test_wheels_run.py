"""A craft with reaction wheels through the whole line: the wheels take what the craft loses, and the run replays."""

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.log.reader import read_log
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK

WHEELS = ("test.active_vehicle=vehicles/transport_ship_wheels.toml", "dynamics.part=two_crafts", "control.part=thrusters",
          "control.active_attitude=wheels")  # fmt: skip
AXIAL = 0.8  # kg.m2, of each rotor about its axis, as the file has it
CRAFT = np.array([4235.0, 30700.0, 30700.0])  # of the whole


def test_wheels_take_the_momentum_that_the_craft_loses(tmp_path):
    summary = simulate(load_test(None, [*QUICK, *WHEELS]), Options(out=str(tmp_path), quiet=True, report=False))
    assert summary["captured"] and summary["exit_code"] == 0 and not summary["faults"]
    r = read_log(summary["log"]).records
    free = np.flatnonzero((r["phase"] == CODES["phase"]["contact"]) & (np.cumsum(r["contact"]) == 0))
    first, last = free[0], free[-1]
    dt = 1e-9 * float(np.diff(r["time_ns"][:2])[0])
    # rotor: I (rate of the rotor and of the craft) gains what the motor gives
    spun = AXIAL * (r["wheel_rate_A"][last, :3] - r["wheel_rate_A"][first, :3] + r["V_NC"][last, 3:] - r["V_NC"][first, 3:])
    given = dt * r["wheel_torque_A"][first + 1 : last + 1, :3].sum(axis=0)
    assert spun == pytest.approx(given, rel=1e-3)
    # and the craft has lost it: its axes are those of N to a degree
    lost = -CRAFT * (r["V_NC"][last, 3:] - r["V_NC"][first, 3:])
    assert np.abs(given).max() > 0.1 and lost[[0, 2]] == pytest.approx(given[[0, 2]], rel=0.05)
    assert replay.replay(summary["log"], verify=True)["equal"]
