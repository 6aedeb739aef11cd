"""Two runs whose difference is known in closed form."""

import json

import numpy as np
import pytest

from hil_server.analysis.comparison import compare, compare_logs
from hil_server.errors import UsageError
from hil_server.telemetry.log_file import open_log

MASS, SPEED, STIFFNESS = 1000.0, 0.2, 4.0e5
PEAK = SPEED * np.sqrt(MASS * STIFFNESS)
IMPULSE = 2.0 * MASS * SPEED  # of a half sine that turns the speed around


def channel(result, name):
    return next(c for c in result.channels if c.name == name)


def test_a_run_equals_itself(bounce_log):
    result = compare_logs(bounce_log, bounce_log)
    assert all(c.rms_difference == 0.0 and c.peak_difference == 0.0 for c in result.channels)
    assert [c.name for c in result.channels][:6] == ["Fx", "Fy", "Fz", "Mx", "My", "Mz"], "forces first"
    assert result.aligned == "first contact" and result.capture_s == (1.0, 1.0)


def test_shift_of_contact_is_taken_out_and_scale_is_seen(bounce_log, write_run, make_bounce):
    later = open_log(write_run(make_bounce(first=1.5, force_scale=1.1), "later"))
    result = compare_logs(bounce_log, later)
    fx = channel(result, "Fx")
    assert result.window_s == pytest.approx((-1.0, 2.499))
    assert fx.peak_a == pytest.approx(PEAK, rel=1e-3) and fx.peak_b == pytest.approx(1.1 * PEAK, rel=1e-3)
    assert fx.peak_difference == pytest.approx(0.1 * PEAK, rel=1e-3) and fx.relative == pytest.approx(0.1, rel=1e-3)
    assert fx.impulse_a == pytest.approx(-IMPULSE, rel=1e-3) and fx.impulse_b == pytest.approx(-1.1 * IMPULSE, rel=1e-3)
    half, window = np.pi * np.sqrt(MASS / STIFFNESS), result.window_s[1] - result.window_s[0]
    assert fx.rms_difference == pytest.approx(0.1 * PEAK * np.sqrt(0.5 * half / window), rel=2e-3)
    assert channel(result, "vx").peak_difference < 1e-9 and channel(result, "Fy").relative is None


def test_other_rate_is_brought_onto_the_ticks_of_the_first(bounce_log, write_run, make_bounce):
    slow = open_log(write_run(make_bounce()[::2], "slow", period_ns=2_000_000))
    fx = channel(compare_logs(bounce_log, slow), "Fx")
    curvature = PEAK * STIFFNESS / MASS
    corner = PEAK * np.sqrt(STIFFNESS / MASS) * 1e-3  # at most one tick of the initial slope, where the force sets in
    assert fx.peak_difference <= max(curvature * (1e-3) ** 2 / 2 * 1.01, corner) and fx.relative < 0.02


def test_run_without_contact_is_aligned_at_the_start(bounce_log, write_run, make_bounce):
    free = make_bounce(first=9.0, seconds=3.0)
    result = compare_logs(bounce_log, open_log(write_run(free, "free")))
    assert result.aligned == "start of run" and result.first_contact_s == (1.0, None) and result.window_s == pytest.approx((0.0, 2.999))


def test_nothing_in_common(bounce_log, write_run, make_bounce):
    with pytest.raises(UsageError, match="holds no tick"):
        compare_logs(bounce_log, open_log(write_run(make_bounce()[:0])))
    with pytest.raises(UsageError, match="share no time"):
        compare_logs(bounce_log, open_log(write_run(make_bounce()[:1])))


def test_page_and_figures(bounce, trip, tmp_path):
    figures = compare(bounce, trip, tmp_path / "sub" / "comparison.html")
    assert json.loads(json.dumps(figures))["channels"][0]["name"] == "Fx"
    source = (tmp_path / "sub" / "comparison.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in source and "synthetic geometry in trip" in source and "http" not in source
    assert "page" not in compare(bounce, trip)


def test_verb_compare(bounce, trip, tmp_path, capsys):
    from hil_server.cli import main

    assert main(["compare", str(bounce), str(trip), "--out", str(tmp_path), "--json", str(tmp_path / "c.json")]) == 0
    assert json.loads((tmp_path / "c.json").read_text())["aligned"] == "first contact"
    assert "Fx" in capsys.readouterr().out and (tmp_path / "bounce_and_trip.html").exists()
    assert main(["compare", str(bounce), "nothing.mcap"]) == 2
    assert "nothing.mcap" in capsys.readouterr().err
