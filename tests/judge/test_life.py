"""Rain-flow counts against the example of the standard, damage in closed form, and the verb."""

import numpy as np
import pytest

from hil_server.errors import UsageError
from hil_server.judge import life

pytest.importorskip("rainflow")
# ASTM E1049-85, figure 6
STANDARD = np.array([-2, 1, -3, 5, -1, 3, -4, 4, -2], float)


def test_the_standards_example():
    ranges, counts = life.cycles(STANDARD, 0.0)
    assert {r: counts[ranges == r].sum() for r in set(ranges)} == {3.0: 0.5, 4.0: 1.5, 6.0: 0.5, 8.0: 1.0, 9.0: 0.5}


def test_a_sine_uses_what_basquin_says():
    t = np.linspace(0.0, 50.0, 50_001)
    ranges, counts = life.cycles(400.0 * np.sin(2 * np.pi * t) + 2.0 * np.sin(2 * np.pi * 37 * t), 10.0)
    assert counts.sum() == pytest.approx(50.0, abs=0.6) and ranges.max() == pytest.approx(804.0, rel=5e-3)
    found = life.Curve(5.0, 800.0, 1e4).damage(ranges, counts)
    assert found == pytest.approx(50.0 / 1e4, rel=0.05)


def test_turning_points_keep_the_ends_and_drop_what_is_small():
    np.testing.assert_array_equal(life.turning_points(np.array([0.0, 0.5, 0.4, 3.0, 2.9, 1.0, 1.05]), 0.6), [0.0, 3.0, 1.0])
    np.testing.assert_array_equal(life.turning_points(STANDARD, 0.1), STANDARD)


def test_a_curve_that_is_none():
    assert life.curve("5:8000@1e5") == life.Curve(5.0, 8000.0, 1e5)
    for text in ("5", "0.5:1@1", "5:-1@10", "a:1@1"):
        with pytest.raises(UsageError, match="EXPONENT:RANGE@CYCLES"):
            life.curve(text)


def test_the_verb(tmp_path, capsys):
    from hil_server.cli import main

    assert main(["simulate", "programmes/elastic_contact.toml", "--out", str(tmp_path / "a"), "--quiet"]) == 0
    log = str(tmp_path / "a" / "run.mcap")
    capsys.readouterr()
    assert main(["life", log, log, "--channel", "F_T[0]", "--curve", "4:200@1000", "--picture", str(tmp_path / "s.png")]) == 0
    reported = capsys.readouterr().out
    # one contact of 113 N: half a cycle up and half a cycle down in each log, (113/200)^4 of a thousandth
    assert reported.startswith("logs      2 simulation; 1 counted again\n")
    assert "F_T[0]: 2 cycles, largest range 11" in reported and "in 2 dockings" in reported and (tmp_path / "s.png").stat().st_size > 1000
    damage = float(reported.split("of a life: ")[1].split()[0])
    assert damage == pytest.approx(2 * (113 / 200) ** 4 / 1000, rel=0.1)
