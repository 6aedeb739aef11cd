"""Time and derivatives of any log: closed forms on uneven records, and every analysis of one run in whole, thinned, cut, branched and
imported logs, which agree or say why there is no figure."""

import json
import re

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import load_test
from hil_server.errors import ConfigurationError, UsageError
from hil_server.exchange.foreign_logs import Resampled, write_run
from hil_server.identify import drives
from hil_server.judge import channels, life
from hil_server.judge.record_time import derivative, in_words, integral
from hil_server.judge.rehearsal import score_sheet
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.log.moments import peaks_of
from hil_server.log.reader import read_log
from hil_server.report import comparison
from hil_server.run import branch
from hil_server.run.session import Options, simulate
from rt_kernels.layout import CODES

SHORT = ("test.stand=stands/ideal_stand.toml", "test.duration_max_s=7.0", "guidance.speed_max_m_s=0.4", "compensation.part=none",
         "guidance.acceleration_max_m_s2=1.0", "guidance.contact_max_s=2.5", "guidance.ramp_s=0.4", "guidance.constant_s=0.3",
         "initial_conditions.velocity_z_m_s=0.0")  # fmt: skip
EVERY = 20


# ------------------------------------------------------------------------------------------------------------- closed forms


def test_a_derivative_of_uneven_records_and_across_a_gap(make_bounce, write_run):
    r = make_bounce()
    t = 1e-3 * np.arange(len(r))
    r["V_TA"][:, 0] = t**2
    keep = np.ones(len(r), bool)
    keep[[10, 11, 12, 500]] = False  # periods that the loop skipped
    r = r[keep]
    r["periods"][1:] = np.diff(r["tick"])
    log = read_log(write_run(r))
    assert Run(log).thinning == 1 and not Run(log).left_out.any()
    np.testing.assert_allclose(derivative(Run(log), log.records["V_TA"][:, 0]), 2.0 * log.time_s, atol=1e-9)
    # a chunk that is missing: no difference is taken across it
    cut = np.delete(r, slice(2000, 2100))
    log = read_log(write_run(cut))
    jump = log.records["V_TA"][:, 0] + np.where(log.time_s > 2.05, 100.0, 0.0)
    np.testing.assert_allclose(derivative(Run(log), jump), 2.0 * log.time_s, atol=1e-9)
    assert Run(log).left_out.sum() == 1 and Run(log).thinning == 1


def test_a_thinned_log_has_no_derivative_and_says_what_to_do(make_bounce, write_run):
    log = read_log(write_run(make_bounce()[::EVERY]))
    assert Run(log).thinning == EVERY and "one tick in 20" in in_words(Run(log))
    with pytest.raises(UsageError, match=r"has no accelerations: simulate it with --set telemetry\.log_every=1"):
        derivative(Run(log), log.records["V_TA"])


def test_an_integral_is_the_time_it_took(make_bounce, write_run):
    r = make_bounce()
    whole, thin = read_log(write_run(r)), read_log(write_run(r[::EVERY]))
    for log in (whole, thin):
        course, inside = np.sin(log.time_s), (log.time_s >= 1.0) & (log.time_s <= 3.0)
        total, bound = integral(Run(log), course, inside)
        assert total == pytest.approx(np.cos(1.0) - np.cos(3.0), abs=1e-4)
        assert (bound > 0.0) == (log is thin) and abs(total - (np.cos(1.0) - np.cos(3.0))) <= max(bound, 1e-6)
    # a pause in the middle is no part of it
    t = whole.time_s
    assert integral(Run(whole), np.ones(len(t)), (t < 1.0) | (t >= 2.0))[0] == pytest.approx(0.999 + 1.999, abs=1e-9)


# --------------------------------------------------------------------------------------------------------- one run, five logs


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The same docking: every tick, one tick in twenty, a file that is cut, a branch one second before the contact, its wrench imported."""
    folder = tmp_path_factory.mktemp("five")

    def fly(name, *more, begin=None):
        config = load_test("programmes/docking.toml", (*SHORT, *more)) if begin is None else begin.test.config
        return read_log(simulate(config, Options(out=str(folder / name), quiet=True, report=False), begin)["log"])

    full = fly("full")
    found = {"full": full, "thinned": fly("thinned", f"telemetry.log_every={EVERY}")}
    data = full.path.read_bytes()
    (folder / "cut.mcap").write_bytes(data[: int(0.93 * len(data))])
    found["cut"] = read_log(folder / "cut.mcap")
    found["branched"] = fly("branched", begin=branch.resumed(f"{full.path}@contact-0.2s", (), None))
    closed = np.flatnonzero(np.isin(full.records["motion"], [1, 2]))
    felt = full.records["F_S"][closed]
    recorded = Resampled("rig", felt, np.zeros(len(felt), bool), {"records": len(felt), "rate_hz": 1e3, "begins_s": 0.0, "rule": "none",
                                                                  "gap_points": 0, "gaps": 0})  # fmt: skip
    write_run(load_test("programmes/docking.toml", SHORT), recorded, folder / "imported.mcap")
    found["imported"] = read_log(folder / "imported.mcap")
    return found


KINDS = ("thinned", "cut", "branched", "imported")


@pytest.mark.parametrize("kind", KINDS)
def test_the_peaks_of_every_moment(logs, kind):
    whole, found = (summarise(Run(logs[name])).as_json() for name in ("full", kind))
    # the recorded wrench goes through the filter of the wrench path once more
    rel = 0.02 if kind == "imported" else 1e-12
    for key in ("impact_force_n", "impact_moment_n_m"):
        assert found[key] == pytest.approx(whole[key], rel=rel), key
    assert whole["impact_force_n"] > 300.0
    if kind != "imported":
        rows = {row["moment"]: row for row in peaks_of(logs[kind].records).rows()}
        for row in whole["peaks"]:
            if row["moment"] == "impact":
                assert rows[row["moment"]]["force_time_s"] == row["force_time_s"]
        assert found["first_contact_time_s"] == whole["first_contact_time_s"]
    worth = found["peak_worth"]
    assert (worth["mean_n"] is None) == (kind == "thinned")
    if kind != "thinned":
        assert worth["mean_n"] == pytest.approx(whole["peak_worth"]["mean_n"], rel=max(rel, 1e-9))
    assert found["not_available"] == [] and found["thinned"] == (EVERY if kind == "thinned" else 1)


@pytest.mark.parametrize("kind", KINDS)
def test_contacts_and_rebounds(logs, kind):
    whole, found = (summarise(Run(logs[name])).contacts for name in ("full", kind))
    assert whole and found
    if kind == "imported":
        return  # the times of the model's own contact count from another beginning
    for one, two in zip(whole, found, strict=False):
        assert two["begin_s"] == one["begin_s"]
        if kind == "thinned" and one["rebound"] is not None:
            assert two["rebound"] is None and "thinned" in two["rebound_note"]
        elif one["ended"] and two["ended"]:
            assert two["rebound"] == one["rebound"]


@pytest.mark.parametrize("kind", KINDS)
def test_accelerations(logs, kind):
    """What a craft's accelerometer reads: force over mass. A thinned log refuses."""
    if kind == "thinned":
        with pytest.raises(UsageError, match="has no accelerations"):
            channels.channel(Run(logs[kind]), "active.acceleration[0]")
        rate = channels.channel(Run(logs["full"]), "active.rate[2]")
        return np.testing.assert_array_equal(channels.channel(Run(logs[kind]), "active.rate[2]"), rate[logs[kind].records["tick"]])
    own, whole = (channels.channel(Run(logs[name]), "active.acceleration[0]") for name in (kind, "full"))
    if kind == "imported":
        # of the closed loop: the stand's own motion before it is faster
        free = CODES["motion"]["free"]
        most = [np.abs(values[logs[name].records["motion"] == free]).max() for name, values in ((kind, own), ("full", whole))]
        assert most[0] == pytest.approx(most[1], rel=0.05)
        return None
    at = np.searchsorted(logs["full"].records["tick"], logs[kind].records["tick"][1:-1])
    return np.testing.assert_allclose(own[1:-1], whole[at], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_use_of_life(logs, kind):
    pytest.importorskip("rainflow")
    curve = life.curve("5:800@1e5")
    (whole,), (found,) = (life.spectra([Run(logs[name])], ["F_T[0]"], curve) for name in ("full", kind))
    assert whole.damage > 0.0 and found.at_least == (kind == "thinned")
    if kind == "thinned":
        assert 0.5 * whole.damage < found.damage <= whole.damage * (1.0 + 1e-9)
    else:
        assert found.damage == pytest.approx(whole.damage, rel=0.1 if kind == "imported" else 0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_comparison_with_the_whole_run(logs, kind):
    result = comparison.compare_runs(Run(logs["full"]), Run(logs[kind]))
    by = {c.name: c for c in result.channels}
    assert bool(result.cautions) == (kind == "thinned")
    tolerance = {"imported": 0.05, "thinned": 0.02}.get(kind, 1e-9)
    assert by["Fx"].peak_b == pytest.approx(by["Fx"].peak_a, rel=tolerance)
    assert by["Fx"].impulse_b == pytest.approx(by["Fx"].impulse_a, rel=tolerance, abs=1e-6)
    # what a run absorbed is its own, regardless of the run beside it
    again = comparison.compare_runs(Run(logs["full"]), Run(logs["full"]))
    assert result.absorbed_j[0] == again.absorbed_j[0] == again.absorbed_j[1]


@pytest.mark.parametrize("kind", ["full", *KINDS])
def test_what_needs_an_identification_refuses_every_other_run(logs, kind):
    with pytest.raises(ConfigurationError, match="not an identification run"):
        drives.identify_log(logs[kind].path)


@pytest.mark.parametrize("kind", ["full", *KINDS])
def test_the_verbs_end_well(logs, kind, tmp_path, capsys):
    path = str(logs[kind].path)
    assert main(["report", path, "--out", str(tmp_path)]) == 0
    (page,) = tmp_path.glob("*.html")
    assert 'not available: ' not in page.read_text().replace("how long it lasts is not available: ", "")
    assert main(["export", path, "--out", str(tmp_path / "export")]) in (0, 2)  # formats need their own libraries
    assert main(["life", path, "--json", str(tmp_path / "life.json")]) == 0
    assert len(json.loads((tmp_path / "life.json").read_text())["channels"]) == 6
    capsys.readouterr()
    assert main(["compare", str(logs["full"].path), path, "--out", str(tmp_path)]) == 0 and list(tmp_path.glob("full_and_*.html"))
    assert ("thinned log, one tick in 20" in capsys.readouterr().out) == (kind == "thinned")
    assert main(["replay", path, "--verify"]) == 0 and f"equal: {logs[kind].ticks} ticks, every field" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["full", *KINDS])
@pytest.mark.parametrize(("verb", "why"), [
    ("identify", "not an identification run: its guidance is"), ("legs", "not a run that moves each leg alone"),
    ("rehearsal", "not a berthing run: its guidance is"),
    ("calibrate", "still poses with different attitudes, got 1|without motion and contact"),
])  # fmt: skip
def test_the_verbs_of_other_runs_say_why_not(logs, verb, why, kind, capsys):
    assert main([verb, str(logs[kind].path)]) == 2
    assert re.search(why, capsys.readouterr().err)


# -------------------------------------------------------------------------------------------------------------- the score sheet


def test_a_thinned_flight_is_as_long_as_it_was(make_bounce, write_run):
    """0.02 m/s for the 4 s of the closed loop, the stick at half."""
    r = make_bounce()
    r["operator_rate"][:, 0], r["hand_axis"][:, 0] = 0.02, 0.5
    whole, thin = (score_sheet(Run(read_log(write_run(some)))) for some in (r, r[::EVERY]))
    assert whole["commanded_m"] == pytest.approx(0.02 * 3.999) and whole["stick_translation_s"] == pytest.approx(0.5 * 3.999)
    assert thin["commanded_m"] == pytest.approx(0.02 * 3.98) and thin["uncertain"] == {}
    r["operator_rate"][:, 0] = 0.02 * np.sin(np.arange(len(r)) * 1e-3)
    whole, thin = (score_sheet(Run(read_log(write_run(some)))) for some in (r, r[::EVERY]))
    assert whole["uncertain"] == {} and abs(thin["commanded_m"] - whole["commanded_m"]) <= thin["uncertain"]["commanded_m"] + 0.02 * 0.02
