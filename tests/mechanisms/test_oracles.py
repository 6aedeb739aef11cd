"""The table of docs/validation.md names tests that exist, and the golden attitude of the texts."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config.physics import pose
from hil_server.requirements.angles import yaw_pitch_roll

ROOT = Path(__file__).parents[2]


def test_every_test_of_the_table_exists():
    rows = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/validation.md").read_text())
    assert len(rows) > 90
    missing = [f"{path}::{name}" for path, name in rows if not re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.M)]
    assert missing == []


def test_every_number_of_the_text_has_a_row():
    text = (ROOT / "docs/validation.md").read_text()
    assert [n for n in [*range(1, 19), 25, 26] if not re.search(rf"^\| N{n} \|.*test_\w*N{n}_", text, re.M)] == []


def test_golden_attitude():
    """A(0.1, -0.05, 0.2) of (4.2.2): components from the reference to the body."""
    golden = [[0.993760669165504, -0.049979169270678, -0.099708650872139], [0.068572040927172, 0.978841749823344, 0.192786680052998],
              [0.087963672176708, -0.198421045864061, 0.976161605952314]]  # fmt: skip
    X = pose([0, 0, 0], np.degrees([0.1, -0.05, 0.2]))
    assert Rotation.from_quat(X[3:]).as_matrix().T == pytest.approx(np.array(golden), abs=1e-14)
    assert yaw_pitch_roll(X[None])[0] == pytest.approx((0.1, -0.05, 0.2), abs=1e-14)


def test_golden_ring_rates_E38():
    """Rates of yaw, pitch, roll from the angular velocity in the base; the second column (c4, 0, -s4) as printed gives others."""
    q, rates, w = np.array([0.2, -0.3, 0.5]), np.array([0.1, 0.4, -0.6]), np.array([-0.48230829, 0.27731212, 0.50590427])
    R, h = Rotation.from_euler("YZX", q), 1e-6
    at = [yaw_pitch_roll(np.array([[0, 0, 0, *(Rotation.from_rotvec(t * w) * R).as_quat()]]))[0] for t in (-h, h)]
    assert (at[1] - at[0]) / (2 * h) == pytest.approx(rates, abs=2e-8)
    s4, c4, s5, c5 = np.sin(0.2), np.cos(0.2), np.sin(-0.3), np.cos(-0.3)
    printed = np.array([[0, c4, c4 * c5], [1, 0, s5], [0, -s4, -s4 * c5]]) @ rates
    assert np.abs(printed - w).max() > 0.1
