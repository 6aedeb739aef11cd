"""Parameters changed in a docking: bounds of the setpoints, latency and replay (the study of 200 changes: tools/live_changes.py)."""

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.config.loader import SHIPPED
from hil_server.errors import ConfigurationError
from hil_server.log.reader import read_log
from hil_server.operator_desk.script import rows_of_log
from hil_server.run import replay
from hil_server.run.session import Options, simulate
from tests.system.line_runs import QUICK
from tools.live_changes import bounds_broken, measure, study, with_rows


def row(time_s, parameter, value):
    return {"time_s": time_s, "command": "tune", "parameter": parameter, "arguments": [value]}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes")
    return study(None, 40, 7, folder, overrides=QUICK), folder


def test_random_changes_leave_the_setpoints_within_their_bounds_and_replay_equal(both):
    found, _ = both
    assert found["taken"] == found["asked"] == 40 and found["missing"] == 0
    assert not bounds_broken(found), found


def test_a_jump_would_be_seen(both):
    """The measure itself: a demand of 10 um at once behind a change breaks the bound."""
    _, folder = both
    log, reference = read_log(folder / "with" / "run.mcap"), read_log(folder / "without" / "run.mcap")
    platform = load_test(None, QUICK).stand["platform"]
    at = np.flatnonzero((log.records["tune_answer"] == 1) & (log.records["phase"] == 2))[0] + 5
    log.records = log.records.copy()
    log.records["leg_demand"][at:] += 1e-5
    found = measure(log, platform, reference) | {"replay_equal": True}
    assert bounds_broken(found) == ["third_after_changes"]


def test_a_log_names_what_was_changed_and_a_what_if_changes_it_too(both):
    _, folder = both
    path = folder / "with" / "run.mcap"
    log = read_log(path)
    changed = [r for r in rows_of_log(log) if r.what == "tune"]
    assert len(changed) == 40 and {r.parameter for r in changed} <= {t["name"] for t in log.header.tunables}
    same = replay.replay(path, overrides=("safety.drift_time_s=1.5",))
    moved = {change["channel"].partition("[")[0] for change in same["changes"]}
    assert not moved & {"tuned", "leg_demand"}, "the changes of the run are in the what-if, too"
    without = replay.replay(path, overrides=("compensation.part='none'",))
    assert without["differing"] > 0 and "tuned" not in {c["channel"].partition("[")[0] for c in without["changes"]}


def test_a_shipped_test_with_a_change_in_it(tmp_path):
    config = load_test(SHIPPED / "programmes/docking_tuned.toml", QUICK)
    log = read_log(simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"])
    names = [t["name"] for t in log.header.tunables]
    k = names.index("compensation.lead_factor")
    assert log.records["tuned"][0, k] == 1.0 and log.records["tuned"][-1, k] == 0.9
    assert replay.replay(log.path, verify=True)["equal"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (row(1.0, "compensation.led_factor", 0.9), "did you mean 'compensation.lead_factor'"),
        (row(1.0, "compensation.order", 1.0), "'compensation.order' is unknown or cannot be changed in this run"),
        (row(1.0, "compensation.lead_factor", 2.5), "compensation.lead_factor: 2.5 is not within 0...2 of this run"),
        (row(1.0, "compensation.lead_factor", "x"), "arguments.*must be a number, got 'x'"),
    ],
)
def test_what_cannot_be_changed_is_refused_before_the_run(given, why, tmp_path):
    with pytest.raises(ConfigurationError, match=why):
        simulate(with_rows(load_test(None, QUICK), [given]), Options(out=str(tmp_path / "run"), quiet=True, report=False))
