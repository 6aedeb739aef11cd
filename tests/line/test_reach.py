"""What the platform does not reach is named before a run, with how far it is."""

import re

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.overlap import park_pose
from hil_server.line.reach import platform_pose, unreached
from hil_server.verbs.check import examined
from rt_kernels.algebra.arrays import quat_from_yaw_pitch_roll
from rt_kernels.context import Mounting


def pose(x, y=0.0, z=0.0, *angles):
    return np.r_[x, y, z, quat_from_yaw_pitch_roll(*angles) if angles else (0.0, 0.0, 0.0, 1.0)]


@pytest.mark.parametrize("load_cell_on", ["floor", "platform"])
@pytest.mark.parametrize("unit_on_load_cell", ["target", "active"])
def test_platform_and_ports_are_one_pose(load_cell_on, unit_on_load_cell):
    X_WF, X_PM = pose(4.0, 0.1, -0.2, 0.3, 0.1, -0.2), pose(0.3, 0.02, 0.0, -0.1, 0.2, 0.4)
    mounting = Mounting(unit_on_load_cell, load_cell_on, X_WF=X_WF, X_PM=X_PM)
    X_WP = pose(2.6, -0.1, 0.2, 0.05, -0.1, 0.2)
    assert platform_pose(mounting, park_pose(mounting, X_WP)) == pytest.approx(X_WP, abs=1e-12)


def lines_with_the_cell_at(x):
    """What is out of reach of the shipped docking with its load cell moved along X, m."""
    config = load_test(None, [f"stand.mounting.load_cell_position_m.0={x!r}"])
    context = assembly.base_context(config)
    guidance = assembly.part_of(config, "guidance", context)
    return unreached(context["platform"], context["mounting"], guidance, context["start"].X_TA)


def test_a_load_cell_too_far_away_is_named_with_how_far():
    assert lines_with_the_cell_at(4.5) == []
    far = 5.8
    first = next(line for line in lines_with_the_cell_at(far) if line.startswith("first contact: out of reach of the platform: leg "))
    figures = re.search(r"be ([\d.]+) m long, limit ([\d.]+) m, ([\d.]+) m beyond it; it comes within ([\d.]+)", first)
    length, limit, over, short = map(float, figures.groups())
    assert length - limit == pytest.approx(over, abs=2e-3) and 0.0 < over and 0.1 < short < far - 4.5
    # so far back it is reached again, and not earlier
    assert not any(line.startswith("first contact") for line in lines_with_the_cell_at(far - short - 0.02))
    assert any(line.startswith("first contact") for line in lines_with_the_cell_at(far - short + 0.02))


def test_check_says_so(capsys):
    assert main(["check", "--set", "stand.mounting.load_cell_position_m.0=5.8"]) == 2
    reported = capsys.readouterr().out
    assert "docking_stand.toml" in reported and ": mounting: first contact: out of reach of the platform: leg " in reported
    with pytest.raises(ConfigurationError, match="mounting: first contact: out of reach"):
        examined(None, ["stand.mounting.load_cell_position_m.0=5.8"])
