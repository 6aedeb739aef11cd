"""Campaigns: the same cases on any number of cores, nothing lost or repeated, statistics against closed forms."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from hil_server import interrupts
from hil_server.campaign import execution, statistics
from hil_server.campaign.case import run_case
from hil_server.campaign.plan import SAMPLINGS, load_plan
from hil_server.campaign.worst import rerun
from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.log.reader import read_log
from hil_server.log.writer import LogWriter
from hil_server.requirements import of_log
from hil_server.run import branch, replay
from hil_server.run.session import Options, simulate
from rt_kernels.layout import CODES
from tests.processes import wait_for_end

FILE = """
[campaign]
name = "small"
test = "docking.toml"
cases = {cases}
seed = 7
sampling = "{sampling}"
chunk = 2
worst = 1
[campaign.set]
guidance = {{ speed_max_m_s = 0.4, acceleration_max_m_s2 = 1.0, contact_max_s = 2.0 }}
"test.duration_max_s" = 6.0
"initial_conditions.velocity_z_m_s" = 0.0  # across a small miss the head would meet the cone before the loop is closed

[box]
lateral_y_m = [-0.05, 0.05]
lateral_z_m = [-0.05, 0.05]
velocity_x_m_s = [0.08, 0.12]
"""


def plan(folder, cases=6, sampling="latin_hypercube"):
    file = folder / "small_campaign.toml"
    file.write_text(FILE.format(cases=cases, sampling=sampling))
    return load_plan(file)


def rows(folder):
    return execution.read_results(folder).to_pylist()


@pytest.mark.parametrize("sampling", [s for s in SAMPLINGS if s not in ("expert", "saltelli")])
def test_sampling_stays_in_the_box_and_repeats(tmp_path, sampling):
    p = plan(tmp_path, 400, sampling)
    x = p.conditions()
    assert x.shape == (400, 3) and np.all(x >= p.low) and np.all(x <= p.high)
    np.testing.assert_array_equal(x, plan(tmp_path, 400, sampling).conditions())
    if sampling == "latin_hypercube":
        strata = np.floor((x - p.low) / (np.array(p.high) - p.low) * 400 * (1 - 1e-12)).astype(int)
        assert all(len(set(column)) == 400 for column in strata.T)
    if sampling == "corners":
        assert np.all((x == p.low) | (x == p.high))
    if sampling == "normal":
        assert abs(x[:, 0].std() / (0.1 / 6) - 1) < 0.1


@pytest.mark.parametrize("sampling", [s for s in SAMPLINGS if s not in ("expert", "saltelli")])
def test_round_pairs_fill_the_ellipse(tmp_path, sampling):
    file = tmp_path / "round.toml"
    text = FILE.format(cases=4000, sampling=sampling).replace("chunk", 'round = { lateral_y_m = "velocity_x_m_s" }\nchunk')
    file.write_text(text)
    x = load_plan(file).conditions()
    a, b = x[:, 0] / 0.05, (x[:, 2] - 0.1) / 0.02
    square = a**2 + b**2
    assert square.max() <= 1.0 + 1e-12 and np.abs(x[:, 1]).max() <= 0.05
    if sampling in ("uniform", "latin_hypercube"):
        # uniform over the disc: the squared radius and the direction are uniform (Kolmogorov and Smirnov, 1 in 1000)
        assert kstest(square, "uniform").pvalue > 1e-3
        assert kstest(np.arctan2(b, a), "uniform", (-np.pi, 2 * np.pi)).pvalue > 1e-3
    if sampling == "corners":
        np.testing.assert_allclose(square, 1.0, atol=1e-12)
    if sampling == "normal":
        # a third of the radius, less what the cut at three of them takes
        assert abs(a.std() * 3 - 0.983) < 0.05 and abs(np.corrcoef(a, b)[0, 1]) < 0.05
    file.write_text(text.replace('"velocity_x_m_s"', '"velocity_x"'))
    with pytest.raises(ConfigurationError, match=r"campaign\.round\.velocity_x: .*did you mean 'velocity_x_m_s'"):
        load_plan(file)


EXPERT = "[[0.05, -0.05, 0.12], [0.0, 0.05, 0.08], [0.01, 0.02, 0.1]]"


def listed(cases, sampling="expert"):
    return FILE.format(cases=cases, sampling=sampling).replace("chunk", f"expert = {EXPERT}\nchunk")


def test_expert_cases_are_those_of_the_list(tmp_path):
    file = tmp_path / "expert.toml"
    file.write_text(listed(2))
    p = load_plan(file)
    np.testing.assert_array_equal(p.conditions(), [[0.05, -0.05, 0.12], [0.0, 0.05, 0.08]])
    file.write_text(file.read_text().replace("0.08", "0.09"))
    assert load_plan(file).identity != p.identity


@pytest.mark.parametrize("hits, cases", [(0, 20), (7, 20), (20, 20), (1980, 2000)])
def test_interval_is_wilsons(hits, cases):
    expected = binomtest(hits, cases).proportion_ci(method="wilson")
    low, high = statistics.wilson(hits, cases)
    assert math.isclose(low, expected.low, abs_tol=1e-12) and math.isclose(high, expected.high, abs_tol=1e-12)


def test_statistics_of_a_table_made_by_hand():
    """Quantiles and rank correlation against scipy; a capture that tripped afterwards counts once, and not as one within the limits."""
    pa = pytest.importorskip("pyarrow")
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    n = 40
    columns = {name: rng.random(n) for name in (*(f"peak_{name}" for name in statistics.PEAKS), *statistics.SIZES)}
    captured = rng.random(n) < 0.7
    end = np.where(captured & (np.arange(n) % 5 == 0), "tripped", np.where(captured, "captured", "time"))
    faults = np.where(end == "tripped", "force_limit", "")
    table = pa.table({"number": range(n), "captured": captured, "end": end, "faults": faults,
                      "capture_after_s": np.where(captured, 1.0, np.nan), "error": [""] * n, "x": rng.integers(0, 5, n) * 1.0,
                      "peak probe.stroke": rng.random(n), **columns})  # fmt: skip
    s = statistics.statistics(table, ("x",))
    assert s["captured"] == captured.sum() and s["captured_within_limits"] == np.sum(captured & (end != "tripped"))
    assert s["faults"] == {"force_limit": int(np.sum(end == "tripped"))} and s["capture_after_s"]["max"] == 1.0
    assert s["loads"]["fz_n"]["p95"] == pytest.approx(np.percentile(columns["peak_fz_n"], 95), rel=1e-12)
    assert s["channels"]["probe.stroke"]["max"] == max(table["peak probe.stroke"].to_pylist())
    assert s["loads"]["impact_force_n"]["max"] == columns["impact_force_n"].max()
    x, y = statistics.column(table, "x"), statistics.magnitude(table, "peak_force_n")
    assert statistics.rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    assert statistics.worst(table, 3)[0] == max(np.flatnonzero(end == "tripped"), key=lambda i: y[i])


def test_a_trip_of_the_models_validity_is_no_failed_capture(tmp_path):
    """Ten cases: six captured, one lost, one whose model left its range before a capture and one after it, one error."""
    pa = pytest.importorskip("pyarrow")
    captured = np.array([True] * 6 + [False, False, True, False])
    faults = [""] * 7 + ["mechanism_invalid", "force_limit,divergence", ""]
    end = ["captured"] * 6 + ["time", "tripped", "tripped", "error"]
    sizes = {name: np.arange(10.0) for name in (*(f"peak_{name}" for name in statistics.PEAKS), *statistics.SIZES)}
    x = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0])
    table = pa.table({"number": range(10), "captured": captured, "end": end, "faults": faults, "x": x,
                      "capture_after_s": np.where(captured, 1.0, np.nan), "error": [""] * 9 + ["it broke"],
                      "peak probe.stroke": np.arange(10.0), **sizes})  # fmt: skip
    s = statistics.statistics(table, ("x",))
    assert (s["cases"], s["judged"], s["judged_within_limits"]) == (10, 8, 7) and s["no_verdict"] == {"error": 1, "mechanism_invalid": 1}
    assert s["capture_probability"] == 7 / 8 and s["capture_interval_95"] == statistics.wilson(7, 8)
    assert s["captured_within_limits"] == 6 and s["within_limits_interval_95"] == statistics.wilson(6, 7)
    assert sum(row["cases"] for row in s["envelope"]["x"]) == 8 and s["loads"]["peak_force_n"]["max"] == 6.0
    assert s["channels"]["probe.stroke"]["max"] == 6.0
    from hil_server.campaign import report, sensitivity

    assert np.isnan(sensitivity.outcomes(table)["captured"]).tolist() == [False] * 7 + [True, False, True]
    assert np.isnan(sensitivity.outcomes(table)["impact force"]).tolist() == [False] * 7 + [True] * 3
    assert {name: int(mask.sum()) for name, _, mask in report.groups(table)} == {
        "captured": 6, "captured, then tripped": 1, "not captured": 1, "no verdict": 2}  # fmt: skip
    outcome, (level, word, line) = report._outcome(s), report._verdict(s)
    assert "no verdict: mechanism invalid" in outcome and word == "6 of 7 cases" and "3 of 10 without a verdict" in line and level == "bad"
    # of one variable: its index stands beside the correlation with the same outcome
    v = SimpleNamespace(name="x", values=(), low=0.0, high=1.0, shown=str, distribution="uniform", factor=False)
    page = report._conditions(SimpleNamespace(variables=[v]), table, {"captured": [sensitivity.Index("x", 0.67, 0.1)]})
    assert page.count("explains 67 % alone") == 1 and "; explains" in page[page.rindex("<td") :]


def test_a_variable_is_recognised_by_its_effect(tmp_path):
    """What rises with a value does not rise with its distance from the middle, and the other way round."""
    from hil_server.campaign.report import _strongest

    x = np.linspace(0.0, 1.0, 41)
    # a whole period rises as often as it falls: no rank correlation says that it is all of the variance
    assert _strongest(x, 0.5, np.sin(8.0 * np.pi * x), 0.994).endswith("; explains 99 % alone")
    assert _strongest(x, 0.5, x**3) == "+1.00, value" and _strongest(x, 0.5, -((x - 0.5) ** 2)) == "-1.00, distance from the middle"


def test_a_case_gives_the_same_row_again(tmp_path):
    p = plan(tmp_path)
    args = (p.base.as_toml(), 3, p.keys, p.conditions()[3], p.settings(p.conditions()[3]))
    first, again = run_case(*args), run_case(*args)
    assert first == again and first["captured"] and first["peak_fx_n"] > 100.0


def test_interrupted_campaign_continues_without_repeating(tmp_path):
    p = plan(tmp_path)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    execution.run(p, whole, workers=1)
    execution.run(p, cut, workers=1)
    lost = execution.part_file(cut, (2, 4))
    kept = execution.part_file(cut, (0, 2))
    stamp = kept.stat().st_mtime_ns
    lost.unlink()
    (left := cut / "parts" / ".cases-0000002-0000003.parquet-abc").mkdir()
    (left / "cases-0000002-0000003.parquet").write_bytes(b"half a file")
    execution.run(p, cut, workers=1)
    assert kept.stat().st_mtime_ns == stamp and not left.exists()
    assert rows(whole) == rows(cut)
    with pytest.raises(ConfigurationError, match="another campaign|holds campaign"):
        execution.prepare(plan(tmp_path, 8), cut)


def test_killed_workers_cases_are_run_again(tmp_path):
    """SIGKILL to a worker of the pool half-way: the same table in the end."""
    p = plan(tmp_path, 12)
    folder = tmp_path / "out"
    killed = []

    def kill_one(done, total):
        if done and not killed:
            children = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "spawn_main"], capture_output=True, text=True).stdout.split()
            killed.extend(children[:1])
            for child in children[:1]:
                os.kill(int(child), signal.SIGKILL)

    execution.run(p, folder, workers=2, progress=kill_one)
    assert killed
    found = rows(folder)
    assert [r["number"] for r in found] == list(range(12)) and not any(r["error"] for r in found)
    alone = run_case(p.base.as_toml(), 11, p.keys, p.conditions()[11], p.settings(p.conditions()[11]))
    assert found[11] == alone


@pytest.mark.filterwarnings("ignore:Creating scratch directories")  # of a machine that takes a second for it
def test_dask_gives_the_same_table_with_one_worker_or_three_one_of_them_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    p = plan(tmp_path, 12)
    execution.run(p, tmp_path / "pool", workers=2)
    for count in (1, 3):
        killed = []
        with distributed.LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
            workers = [nanny.pid for nanny in cluster.workers.values()]

            def kill_one(done, total, count=count, workers=workers, killed=killed):
                if count == 3 and done and not killed:
                    killed.append(workers[0])
                    os.kill(workers[0], signal.SIGKILL)

            execution.run(p, tmp_path / f"dask{count}", scheduler=cluster.scheduler_address, progress=kill_one)
        assert len(killed) == (count == 3)
        assert rows(tmp_path / f"dask{count}") == rows(tmp_path / "pool")
    assert [r["number"] for r in rows(tmp_path / "pool")] == list(range(12))


def test_no_scheduler_is_a_clear_error(tmp_path):
    with pytest.raises(ConfigurationError, match="no Dask scheduler"):
        execution.run(plan(tmp_path), tmp_path / "x", scheduler="tcp://127.0.0.1:1")


def test_ctrl_c_while_a_piece_is_written_leaves_nothing_beside_the_pieces(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    write = pq.write_table

    def pressed(*arguments, **keys):
        write(*arguments, **keys)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(pq, "write_table", pressed)
    with pytest.raises(KeyboardInterrupt):
        execution.write_part(tmp_path / "cases-0000000-0000001.parquet", [{"number": 0}, {"number": 1}])
    assert list(tmp_path.iterdir()) == []


def test_verb_resumes_after_sigkill(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(FILE.format(cases=8, sampling="uniform"))
    out, summary = tmp_path / "out", tmp_path / "summary.json"
    command = [sys.executable, "-m", "hil_server", "campaign", str(file), "--out", str(out), "--workers", "1", "--json", str(summary)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    while not list(out.glob("parts/*.parquet")):
        with pytest.raises(subprocess.TimeoutExpired):  # it has not ended, whatever it is at
            process.wait(0.05)
    workers = subprocess.run(["pgrep", "-P", str(process.pid), "-f", "spawn_main"], capture_output=True, text=True).stdout.split()
    process.kill()
    process.wait()
    assert workers
    for pid in workers:
        wait_for_end(int(pid))  # no worker outlives the campaign
    had = {f: f.stat().st_mtime_ns for f in out.glob("parts/*.parquet")}
    assert had
    assert subprocess.run(command, env=env, stdout=subprocess.DEVNULL, timeout=100).returncode == 0
    assert all(f.stat().st_mtime_ns == stamp for f, stamp in had.items())
    result = json.loads(summary.read_text())
    page = Path(result["report"]).read_text()
    assert "worst/case-" in page and "captured within the limits" in page and page.count("data:image/png") == 3
    assert result["cases"] == 8 and result["captured"] == 8 and Path(result["report"]).exists()
    assert Path(result["worst"][0]["log"]).exists()
    assert result["worst"][0]["branch"].startswith(f"hil-server simulate --from {result['worst'][0]['log']}@contact-")
    assert "simulate --from" in page


@pytest.mark.parametrize("text, reported", [
    ("[campaign]\nname=1", "campaign.name"),
    (FILE.format(cases=0, sampling="uniform"), "campaign.cases"),
    (FILE.format(cases=2, sampling="sobol"), "campaign.sampling"),
    (listed(4), "campaign.expert: too few cases"),
    (listed(3).replace("0.02,", ""), "campaign.expert[2]: must be"),
    (listed(3).replace("0.02", "0.2"), "campaign.expert[2]: lateral_z_m: out of range"),
    (listed(3, "normal"), "only with sampling"),
    (FILE.format(cases=2, sampling="uniform").replace("lateral_y_m", "lateral_q_m"), "did you mean"),
    (FILE.format(cases=2, sampling="uniform").replace("[-0.05, 0.05]", "[0.05, -0.05]"), "box.lateral_y_m"),
])  # fmt: skip
def test_wrong_files_are_named(tmp_path, text, reported):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=re.escape(reported)):
        load_plan(file)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"9" * 5000, b"[" * 100_000])
def test_a_damaged_card_of_a_campaign_is_named(tmp_path, content):
    folder = tmp_path / "out"
    execution.prepare(plan(tmp_path, 8), folder)
    (folder / "campaign.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"campaign\.json: damaged"):
        execution.prepare(plan(tmp_path, 8), folder)


def test_damaged_results_are_named(tmp_path):
    folder = tmp_path / "out"
    execution.prepare(plan(tmp_path, 8), folder)
    part = execution.part_file(folder, (0, 4))
    execution.write_part(part, [{"number": i} for i in range(4)])
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(ConfigurationError, match=r"cases-0000000-0000003\.parquet: damaged"):
        execution.read_results(folder)


# --------------------------------------------------------------------------------------------------- from a state of a logged run

FROM = """
[campaign]
name = "onwards"
from = "{log}@contact-0.05s"
cases = 4
chunk = 2
worst = 1
set = {{ "guidance.contact_max_s" = 1.5 }}

[[vary]]
key = "safety.braking_m_s2"
low = 1.0
high = 2.0

[[vary]]
key = "compensation.lead_factor"
low = 0.2
high = 1.0

[[requirement]]
name = "light"
channel = "max(abs(F_T[0:3]))"
below_n = 1.0
"""


@pytest.fixture(scope="module")
def onwards(tmp_path_factory):
    """A campaign whose cases continue from a logged docking: folder, file, log."""
    folder = tmp_path_factory.mktemp("onwards")
    flown = simulate(load_test(None, ["guidance.contact_max_s=3", "test.duration_max_s=9"]), Options(str(folder / "run"), True, False))
    file = folder / "onwards_campaign.toml"
    file.write_text(FROM.format(log=flown["log"]))
    return folder, file, read_log(flown["log"])


def test_all_cases_continue_from_one_state(onwards):
    folder, file, log = onwards
    p = load_plan(file)
    execution.run(p, folder / "out", workers=1)
    found = rows(folder / "out")
    contact = float(log.records["first_contact_time"][-1])
    assert all(contact <= row["first_contact_s"] < contact + 0.05 for row in found), found  # a smaller lead touches later
    assert len({row["peak_fx_n"] for row in found}) == 4, "what is varied acts"
    # each is what `simulate --from LOG@TIME --set ...` makes of it
    row = found[1]
    settings = ["guidance.contact_max_s=1.5", *p.settings([row[key] for key in p.keys])]
    begin = branch.resumed(f"{log.path}@contact-0.05s", tuple(settings))
    one = read_log(simulate(begin.test.config, Options(str(folder / "one"), True, False), begin)["log"])
    closed = ~np.isin(one.records["motion"], [CODES["motion"][name] for name in ("follow_profile", "freeze")])
    assert row["peak_fx_n"] == np.abs(one.records["F_T"][closed, 0]).max()
    assert row["capture_after_s"] == one.records["capture_time"][-1] - one.records["first_contact_time"][-1]
    # the worst one has a log that continues from the same tick, and the requirement of the campaign
    worst = rerun(p, [2], p.conditions(), folder / "out")[0]
    flown = read_log(worst["log"])
    assert flown.header.branch["tick"] == flown.records["tick"][0] == p.begin.tick
    assert flown.records["capture_time"][-1] - flown.records["first_contact_time"][-1] == found[2]["capture_after_s"]
    assert found[2]["verdict light"] == "violated" == {one.name: one.verdict for one in of_log(flown)}["light"]
    assert "@contact-0.0" in worst["branch"] and branch.resumed(f"{worst['log']}@contact-0.05s").tick > p.begin.tick
    assert replay.replay(worst["log"], verify=True)["equal"]


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("cases = 4", 'cases = 4\ntest = "docking.toml"', "campaign.from: beside campaign.test"),
        ("[[vary]]", "[box]\nlateral_y_m = [0.0, 0.1]\n[[vary]]", "box: initial conditions with campaign.from"),
        ("guidance.contact_max_s", "initial_conditions.roll_deg", "initial_conditions: is what the run began with"),
        ('from = "', 'former = "', "did you mean 'from'"),
    ],
)
def test_what_cannot_be_of_one_state_is_named(onwards, tmp_path, old, new, reported):
    file = tmp_path / "bad.toml"
    file.write_text(onwards[1].read_text().replace(old, new, 1))
    with pytest.raises(ConfigurationError, match=re.escape(reported)):
        load_plan(file)


def test_another_state_is_another_campaign(onwards, tmp_path):
    file = tmp_path / "later.toml"
    file.write_text(onwards[1].read_text().replace("contact-0.05s", "contact-0.04s"))
    assert load_plan(file).identity != load_plan(onwards[1]).identity == load_plan(onwards[1]).identity


def test_a_press_while_a_worst_case_is_run_again_ends_the_campaign(tmp_path, monkeypatch):
    write, written = LogWriter.write, []

    def with_a_press(self, records):
        written.append(len(records))
        if len(written) == 1:
            signal.raise_signal(signal.SIGINT)
        return write(self, records)

    monkeypatch.setattr(LogWriter, "write", with_a_press)
    p = plan(tmp_path, 2)
    with interrupts.owned():
        interrupts.remains("what is done")
        with pytest.raises(KeyboardInterrupt), interrupts.heard():
            rerun(p, [0, 1], p.conditions(), tmp_path / "out")
        assert interrupts.remains() == "what is done"
    # neither the next one, nor half a log that would pass for a whole one
    assert written and list((tmp_path / "out" / "worst").iterdir()) == []
