"""Two runs whose difference is known in closed form."""

import json

import numpy as np
import pytest

from hil_server.errors import UsageError
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.report.comparison import compare, compare_runs, judged, tolerances
from rt_kernels.layout import CODES

MASS, SPEED, STIFFNESS = 1000.0, 0.2, 4.0e5
PEAK = SPEED * np.sqrt(MASS * STIFFNESS)
IMPULSE = 2.0 * MASS * SPEED  # of a half sine that turns the speed around


def channel(result, name):
    return next(c for c in result.channels if c.name == name)


def test_a_run_equals_itself(bounce_log):
    result = compare_runs(Run(bounce_log), Run(bounce_log))
    assert all(c.rms_difference == 0.0 and c.peak_difference == 0.0 for c in result.channels)
    assert [c.name for c in result.channels][:6] == ["Fx", "Fy", "Fz", "Mx", "My", "Mz"], "forces first"
    assert result.aligned == "first contact" and result.capture_s == (1.0, 1.0)
    # it parts at SPEED * RESTITUTION, and the second contact takes the rest
    assert result.absorbed_j == pytest.approx((0.5 * MASS * SPEED**2,) * 2, rel=1e-9)


def test_the_energy_that_a_run_absorbed_is_its_own(write_run, make_bounce):
    """Beside a shorter run, one that begins earlier, and one that never touches: one figure."""
    led_home = make_bounce()
    led_home["motion"][3500:], led_home["kinetic_energy"][3500:] = CODES["motion"]["follow_profile"], 7.0
    bounce_log = read_log(write_run(led_home, "led_home"))
    short = make_bounce(seconds=1.5)
    missed = make_bounce(first=6.0)
    missed["first_contact_time"] = -1.0
    expected = compare_runs(Run(bounce_log), Run(bounce_log)).absorbed_j[0]
    assert expected == pytest.approx(0.5 * MASS * SPEED**2, rel=1e-9)
    for name, records in (("short", short), ("early", make_bounce(first=0.5)), ("missed", missed)):
        other = read_log(write_run(records, name))
        one, two = Run(bounce_log), Run(other)
        assert compare_runs(one, two).absorbed_j[0] == compare_runs(two, one).absorbed_j[1] == expected, name
    assert compare_runs(Run(bounce_log), Run(read_log(write_run(missed, "missed")))).aligned == "start of run"


def test_shift_of_contact_is_taken_out_and_scale_is_seen(bounce_log, write_run, make_bounce):
    later = read_log(write_run(make_bounce(first=1.5, force_scale=1.1), "later"))
    result = compare_runs(Run(bounce_log), Run(later))
    fx = channel(result, "Fx")
    assert result.window_s == pytest.approx((-1.0, 2.499))
    assert fx.peak_a == pytest.approx(PEAK, rel=1e-3) and fx.peak_b == pytest.approx(1.1 * PEAK, rel=1e-3)
    assert fx.peak_difference == pytest.approx(0.1 * PEAK, rel=1e-3) and fx.relative == pytest.approx(0.1, rel=1e-3)
    assert fx.impulse_a == pytest.approx(-IMPULSE, rel=1e-3) and fx.impulse_b == pytest.approx(-1.1 * IMPULSE, rel=1e-3)
    half, window = np.pi * np.sqrt(MASS / STIFFNESS), result.window_s[1] - result.window_s[0]
    assert fx.rms_difference == pytest.approx(0.1 * PEAK * np.sqrt(0.5 * half / window), rel=2e-3)
    assert channel(result, "vx").peak_difference < 1e-9 and channel(result, "Fy").relative is None


def test_other_rate_is_brought_onto_the_ticks_of_the_first(bounce_log, write_run, make_bounce):
    slow = read_log(write_run(make_bounce()[::2], "slow", period_ns=2_000_000))
    fx = channel(compare_runs(Run(bounce_log), Run(slow)), "Fx")
    curvature = PEAK * STIFFNESS / MASS
    corner = PEAK * np.sqrt(STIFFNESS / MASS) * 1e-3  # at most one tick of the initial slope, where the force sets in
    assert fx.peak_difference <= max(curvature * (1e-3) ** 2 / 2 * 1.01, corner) and fx.relative < 0.02


def test_run_without_contact_is_aligned_at_the_start(bounce_log, write_run, make_bounce):
    free = make_bounce(first=9.0, seconds=3.0)
    result = compare_runs(Run(bounce_log), Run(read_log(write_run(free, "free"))))
    assert result.aligned == "start of run" and result.first_contact_s == (1.0, None) and result.window_s == pytest.approx((0.0, 2.999))


def test_nothing_in_common(bounce_log, write_run, make_bounce):
    with pytest.raises(UsageError, match="holds no tick"):
        compare_runs(Run(bounce_log), Run(read_log(write_run(make_bounce()[:0]))))
    with pytest.raises(UsageError, match="share no time"):
        compare_runs(Run(bounce_log), Run(read_log(write_run(make_bounce()[:1]))))


def test_page_and_figures(bounce, trip, tmp_path):
    figures = compare(bounce, trip, tmp_path / "sub" / "comparison.html")
    assert json.loads(json.dumps(figures))["channels"][0]["name"] == "Fx"
    source = (tmp_path / "sub" / "comparison.html").read_text(encoding="utf-8")
    assert source.count("<canvas") == 7 and "synthetic geometry in trip" in source and "://" not in source
    assert "page" not in compare(bounce, trip)


def test_verb_compare(bounce, trip, tmp_path, capsys):
    from hil_server.cli import main

    assert main(["compare", str(bounce), str(trip), "--out", str(tmp_path), "--json", str(tmp_path / "c.json")]) == 0
    assert json.loads((tmp_path / "c.json").read_text())["aligned"] == "first contact"
    assert "Fx" in capsys.readouterr().out and (tmp_path / "bounce_and_trip.html").exists()
    assert main(["compare", str(bounce), "nothing.mcap"]) == 2
    assert "nothing.mcap" in capsys.readouterr().err


def test_signals_channels_and_variant_of_two_dockings(tmp_path, capsys):
    """The second meets 20 mm further off: the same unit, another course; its own channels come when asked for."""
    from hil_server.cli import main

    for name, lateral in (("near", 0.06), ("far", 0.08)):
        short = ["test.rate_hz=1000", "guidance.contact_max_s=1.5", "guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0"]
        sets = [word for item in (*short, f"initial_conditions.lateral_y_m={lateral}") for word in ("--set", item)]
        assert main(["simulate", "programmes/virtual_docking.toml", "--no-report", "--out", str(tmp_path / name), *sets]) == 0
    capsys.readouterr()
    logs = [str(tmp_path / name / "run.mcap") for name in ("near", "far")]
    arguments = ["compare", *logs, "--channel", "probe.stroke", "--json", str(tmp_path / "c.json")]
    assert main(arguments) == 0
    figures = json.loads((tmp_path / "c.json").read_text())
    assert figures["variant"] == ["initial_conditions.lateral_y_m: 0.06 here, 0.08 there"]
    # the unit of this file needs 2000 Hz for its largest moment
    needs = "largest moment of an impact not resolved at 1000 Hz: probe_cone_existing needs 2000 Hz for it (mechanism.moment_step_max_s)"
    assert sum(line.endswith(f": {needs}") for line in figures["cautions"]) == 2
    reported = capsys.readouterr().out
    assert "not the same variant" in reported and reported.count(needs) == 2
    near, far = (read_log(path) for path in logs)
    contacts = [r.records["first_contact_time"][-1] for r in (near, far)]
    DK1 = next(row for row in figures["signals"] if row[0] == "DK1")
    assert DK1[1:] == pytest.approx([0.0, 0.0], abs=2e-3)
    assert figures["window_s"] == pytest.approx([-1.0, 1.0], abs=0.02), "up to the end of the closed loop"
    stroke = next(c for c in figures["channels"] if c["name"] == "probe.stroke")
    inside = [np.abs(r.aux("probe.stroke")[(r.time_s >= t - 1.0) & (r.time_s <= t + figures["window_s"][1])]).max()
              for r, t in zip((near, far), contacts, strict=True)]  # fmt: skip
    assert [stroke["peak_a"], stroke["peak_b"]] == pytest.approx(inside, rel=1e-3) and stroke["peak_a"] != stroke["peak_b"]
    assert (tmp_path / "near" / "near_and_far.html").exists()
    assert main(["compare", *logs, "--channel", "probe.strok"]) == 2
    assert "did you mean probe.stroke" in capsys.readouterr().err


def test_tolerances_are_shares_of_the_groups_largest_peak(bounce_log, write_run, make_bounce):
    """A force of 0.9: Fx differs by 10 % of the first, My (a tenth of it, the only moment) by as much of its own group."""
    softer = read_log(write_run(make_bounce(force_scale=0.9), "softer"))
    result = compare_runs(Run(bounce_log), Run(softer))
    fx, fy = channel(result, "Fx"), channel(result, "Fy")
    assert (fx.group, fx.share, fx.relative) == ("force", pytest.approx(0.1), pytest.approx(0.1)) and (fy.share, fy.relative) == (0.0, None)
    assert fx.rms_share == pytest.approx(fx.rms_difference / fx.peak_a) and channel(result, "wx").share is None

    def verdict(*asked, measure="peak"):
        found = judged(result, tolerances(asked), measure)
        return found.verdict, [name for name, *_ in found.beyond]

    assert verdict() == ("not judged", [])
    assert verdict("11%") == verdict("0.11") == ("within", [])
    assert verdict("9%") == ("beyond", ["Fx", "My"])
    assert verdict("9%", "moment=0.2") == ("beyond", ["Fx"]) and verdict("9%", "Fx=11%", "My=11%") == ("within", [])
    assert verdict("force=50%", "Fx=1%") == ("beyond", ["Fx"]), "the narrower name counts"
    assert verdict("5%", measure="rms") == ("within", []) and verdict("1%", measure="rms")[0] == "beyond"
    for wrong in ("-1%", "five", "nan"):
        with pytest.raises(UsageError, match="must be a share"):
            verdict(wrong)
    with pytest.raises(UsageError, match="did you mean force"):
        verdict("forc=5%")


def test_a_group_that_only_the_second_has_is_beyond(bounce_log, write_run, make_bounce):
    turning = make_bounce()
    turning["V_TA"][:, 4] = 0.01
    result = compare_runs(Run(bounce_log), Run(read_log(write_run(turning, "turning"))))
    assert [name for name, *_ in judged(result, {"": 0.5}).beyond] == ["wy"]


def test_verb_says_its_verdict_and_the_page_writes_the_same_shares(bounce, write_run, make_bounce, tmp_path, capsys):
    from hil_server.cli import main

    softer = write_run(make_bounce(force_scale=0.9), "softer")
    arguments = ["compare", str(bounce), str(softer), "--out", str(tmp_path), "--json", str(tmp_path / "c.json")]
    assert main([*arguments, "--tolerance", "20%"]) == 0
    reported = capsys.readouterr().out
    assert "within tolerance: 19 channels" in reported and "10.00 %" in reported
    page = (tmp_path / "bounce_and_softer.html").read_text(encoding="utf-8")
    assert "WITHIN" in page and ">10.00 %<" in page
    assert json.loads((tmp_path / "c.json").read_text())["channels"][0]["share"] == pytest.approx(0.1), "fractions for machines"
    assert main([*arguments, "--tolerance", "force=1%"]) == 1
    assert "beyond tolerance: Fx 10.00 % (tolerance 1 %)" in capsys.readouterr().out
    assert "BEYOND" in (tmp_path / "bounce_and_softer.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "c.json").read_text())["beyond"] == [["Fx", pytest.approx(0.1), 0.01]]
    assert main([*arguments, "--tolerance", "x%"]) == 2
