"""A logged run continues from one of its ticks (`simulate --from`): the same bytes where nothing is changed, a clear word where not."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import load_test
from hil_server.errors import ConfigurationError, UsageError, VerdictError
from hil_server.log.checkpoint import places
from hil_server.log.format import LogError
from hil_server.log.reader import read_log
from hil_server.log.writer import LogWriter
from hil_server.run import branch, replay
from hil_server.run.session import Options, simulate

SHORT = ["guidance.contact_max_s=3", "test.duration_max_s=9", "telemetry.checkpoint_every_s=1"]
QUIET = {"quiet": True, "report": False}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return read_log(simulate(load_test(None, SHORT), Options(out=str(folder / "run"), **QUIET))["log"])


def continued(log, when, folder, *overrides):
    begin = branch.at_tick(log, branch.moment(log, when), overrides)
    summary = simulate(begin.test.config, Options(out=str(folder), **QUIET), begin)
    return read_log(summary["log"]), summary


def same(a, b):
    a, b = a.copy(), b.copy()
    a["record_crc"] = b["record_crc"] = 0
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize("when", ["0", "2.5", "contact-0.5s", "contact+0.01", "capture", "end-0.1s"])
def test_what_follows_is_what_followed(log, tmp_path, when):
    new, summary = continued(log, when, tmp_path / "new")
    first = int(new.records["tick"][0])
    assert new.ticks == log.ticks - first and same(new.records, log.records[first:])
    assert new.header.branch["tick"] == first and new.complete and not new.missing() and Path(new.path).is_relative_to(tmp_path)
    assert summary["ticks_run"] == new.ticks
    # what was simulated is what came since the branch, to a tick
    assert summary["realtime_factor"] * new.end["seconds"] == pytest.approx(new.ticks * 1e-9 * new.header.period_ns, abs=0.0015)
    again = replay.replay(new.path, verify=True)
    assert again["equal"] and again["ticks"] == new.ticks, again["first_difference"]


def test_branch_of_a_branch_and_a_thinned_one(log, tmp_path):
    one, _ = continued(log, "3", tmp_path / "one", "telemetry.log_every=20")
    picked = log.records[one.records["tick"]]
    assert one.ticks < 0.3 * (log.ticks - 3000) and same(one.records, picked)
    assert replay.replay(one.path, verify=True)["equal"]
    two, _ = continued(one, "4.0305", tmp_path / "two", "telemetry.log_every=1")
    assert same(two.records, log.records[4031:])


def test_change_applies_from_there_on(log, tmp_path):
    new, _ = continued(log, "contact-0.2s", tmp_path / "changed", "guidance.contact_max_s=1.5", "safety.braking_m_s2=1.5")
    assert new.header.branch["changed"] == ["guidance", "safety"] and not new.header.branch["reset"]
    at = int(new.records["tick"][0])
    before = int(log.records["capture_time"][-1] * 1000)
    assert same(new.records[: before - at], log.records[at:before])  # the same up to where the change is felt
    assert not same(new.records, log.records[at : at + new.ticks])
    stays, stayed = ((r["phase"] == branch.CODES["phase"]["contact"]).sum() for r in (new.records, log.records[at:]))
    assert stays < stayed - 200, (stays, stayed)  # the contact phase ends after the time given again
    assert replay.replay(new.path, verify=True)["equal"]
    other, _ = continued(log, "contact-0.2s", tmp_path / "other", "compensation.part=none")
    assert other.header.branch["reset"] == ["compensation"] and any("reset there: compensation" in n for n in other.header.notes)
    assert not same(other.records, log.records[at:]) and replay.replay(other.path, verify=True)["equal"]


@pytest.mark.parametrize(
    ("key", "reported"),
    [
        ("initial_conditions.roll_deg=0", "initial_conditions: is what the run began with"),
        ("test.rate_hz=500", r"test\.rate_hz: 500 Hz, limit that of the run, 1000 Hz"),
        ("test.mechanism=mechanisms/bumper.toml", "test.mechanism: the log holds this file"),
        ("commands.stale_s=1.0", "commands: "),
    ],
)
def test_change_that_cannot_be_made_says_why(log, key, reported):
    with pytest.raises(ConfigurationError, match=reported):
        branch.at_tick(log, 3000, (key,))


@pytest.mark.parametrize(
    ("when", "reported"),
    [("99", "99.000 s, the run goes from 0.000 s to"), ("contact-30s", "the run goes from 0.000 s"), ("trip", "there is no trip"),
     ("nonsense", "'nonsense' is no event; there are: contact"), ("aborting", "there is no|is no event")],
)  # fmt: skip
def test_time_that_is_not_there(log, when, reported):
    with pytest.raises(UsageError, match=reported):
        branch.moment(log, when)


def test_words_of_times(log):
    contact = float(log.records["first_contact_time"][-1])
    assert branch.moment(log, "contact-0.5s") == round(1000 * (contact - 0.5))
    assert branch.moment(log, "2.0004") == 2001 and branch.moment(log, "2 s") == 2000
    phase = int(log.records["tick"][np.flatnonzero(np.diff(log.records["phase"]))[0] + 1])
    name = branch.CODES["phase"]
    entered = next(n for n, code in name.items() if code == log.records["phase"][phase])
    assert branch.moment(log, entered) == phase
    assert branch.split("a@b/run.mcap@contact-3s") == (Path("a@b/run.mcap"), "contact-3s")
    for wrong in ("run.mcap", "run.mcap@", "@3", "run.mcap@-3", "run.mcap@contact*2"):
        with pytest.raises(UsageError, match="is not LOG@TIME"):
            branch.split(wrong)


def test_damage_and_other_builds(log, tmp_path, monkeypatch):
    # another build: checkpoints are passed over, the run is repeated from its start and held against the log
    monkeypatch.setattr(branch, "build_id", lambda: "other")
    begin = branch.at_tick(log, 2500)
    assert "from the start: its checkpoints are of build" in begin.facts["way"]
    monkeypatch.undo()
    # a log whose record is not what this program computes
    other = _copy(log, tmp_path / "other.mcap", lambda records: records["F_T"].__setitem__((2499, 0), 1e3))
    with pytest.raises(VerdictError, match="computes another tick 2499 than the log"):
        branch.at_tick(other, 2500)
    # a damaged checkpoint
    damaged = tmp_path / "damaged.mcap"
    shutil.copy(log.path, damaged)
    place = [p for p in places(damaged) if p.time_ns <= 2_500_000_000][-1]
    data = bytearray(damaged.read_bytes())
    data[place.offset + place.length // 2] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(LogError, match="checkpoint at .* s is damaged"):
        branch.at_tick(read_log(damaged), 2500)
    # ticks that are missing on the way
    gap = _copy(log, tmp_path / "gap.mcap", lambda records: None, leave_out=slice(1000, 1100))
    with pytest.raises(LogError, match="ticks 1000 to 1099 are missing"):
        branch.at_tick(gap, 2500)


def test_continues_behind_periods_that_the_loop_has_skipped(log, tmp_path):
    """A late live loop skips periods: its log has no record of the tick before, and is whole all the same."""
    late = _copy(log, tmp_path / "late.mcap", lambda records: records["periods"].__setitem__(1200, 4), leave_out=slice(1197, 1200))
    for tick in (1198, 1199, 1200):
        begin = branch.at_tick(late, tick)
        assert same(begin.test.line.sample, log.records[1196:1197]) and begin.tick == tick == begin.test.line.clock.tick
    lost = _copy(log, tmp_path / "lost.mcap", lambda records: None, leave_out=slice(1197, 1200))
    with pytest.raises(LogError, match="ticks 1197 to 1199 are missing"):
        branch.at_tick(lost, 1200)


def _copy(log, path, change, leave_out=slice(0, 0)):
    """The log without its checkpoints, with changed records."""
    records = log.records.copy()
    change(records)
    writer = LogWriter(path, log.header)
    writer.write(np.delete(records, np.arange(log.ticks)[leave_out]))
    writer.close({})
    return read_log(path)


def test_verb(log, tmp_path, capsys):
    out, reported = tmp_path / "verb", tmp_path / "reported.json"
    line = ["simulate", "--from", f"{log.path.parent}@capture-0.2s", "--out", str(out), "--quiet", "--no-report", "--json", str(reported)]
    assert main(line) == 0
    assert "restored from the checkpoint at" in capsys.readouterr().out
    summary = json.loads(reported.read_text())
    assert summary["captured"] and summary["branch"]["run"] == log.header.run_id
    assert main(["simulate", "docking.toml", "--from", f"{log.path}@3"]) == 2
    assert "the log holds the configuration" in capsys.readouterr().err
    assert main(["simulate", "--from", str(log.path)]) == 2
    assert "is not LOG@TIME" in capsys.readouterr().err
    assert main(["simulate", "--from", str(tmp_path / "none.mcap@3")]) == 2


# ------------------------------------------------------------------------------------------------------------------- tuning


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The shipped docking whose lead factor is changed from 2.0 s on, and is on its way at 2.05 s."""
    folder = tmp_path_factory.mktemp("tuned")
    config = load_test("docking_tuned.toml", SHORT)
    return read_log(simulate(config, Options(out=str(folder / "run"), **QUIET))["log"])


def values(log, name):
    return log.records["tuned"][:, [t["name"] for t in log.header.tunables].index(name)]


@pytest.mark.parametrize("when", ["0.3", "1.5", "2.05", "5.5"])
def test_a_branch_has_what_was_tuned_before_it_and_on_its_way(tuned, tmp_path, when):
    new, _ = continued(tuned, when, tmp_path / "new")
    assert same(new.records, tuned.records[int(new.records["tick"][0]) :])
    again = replay.replay(new.path, verify=True)
    assert again["equal"], again["first_difference"]


def test_another_key_of_a_tuned_part_leaves_the_tuned_value_in_force(tuned, tmp_path):
    """The part has new constants; the tuned ones are put back into them, also one that is on its way."""
    new, _ = continued(tuned, "2.05", tmp_path / "new", "compensation.lead_rate_max_m_s=0.2", "events.contact_hold_s=0.004")
    assert new.header.branch["changed"] == ["events", "compensation"]
    at = int(new.records["tick"][0])
    factor, before = values(new, "compensation.lead_factor"), values(tuned, "compensation.lead_factor")
    assert 0.9 < factor[0] < 1.0 and np.array_equal(factor, before[at:][: len(factor)])
    assert (values(new, "events.contact_on_n") == 25.0).all() and (values(new, "compensation.lead_rate_max_m_s") == 0.2).all()
    # the value acts: the lead is that of the tuned factor, as in the run before
    assert np.array_equal(new.records["lead"][:100], tuned.records["lead"][at : at + 100])
    assert replay.replay(new.path, verify=True)["equal"]


def test_the_tuned_key_itself_has_its_new_value(tuned, tmp_path):
    new, _ = continued(tuned, "3.0", tmp_path / "new", "compensation.lead_factor=0.6")
    assert (values(new, "compensation.lead_factor") == 0.6).all() and (values(new, "events.contact_on_n") == 25.0).all()
    np.testing.assert_allclose(new.records["lead"][0, 1:], tuned.records["lead"][3000, 1:] * 0.6 / 0.9, rtol=1e-12)
    assert replay.replay(new.path, verify=True)["equal"]
    # of what that new run continues from, the same again
    other, _ = continued(new, "4.0", tmp_path / "other")
    assert same(other.records, new.records[1000:])


def test_another_part_with_other_parameters_leaves_those_of_the_others(log, tmp_path):
    """Numbers of parameters move with the list; values go by name."""
    begin = branch.at_tick(log, 2000)
    tuning = begin.test.line.tuning
    state = np.frombuffer(tuning.snapshot()).copy()
    k = [one.name for one in tuning.tunables].index("safety.following_max_m")
    state[[k + 24 * row for row in range(5)]] = 0.015
    tuning.restore(state.tobytes())
    new = branch.changed(begin, ("compensation.part=none",))
    names = [one.name for one in new.test.tunables]
    assert len(names) < len(tuning.tunables) and not any(name.startswith("compensation.") for name in names)
    kept = np.frombuffer(new.test.line.tuning.snapshot())[96 : 96 + len(names)]
    assert kept[names.index("safety.following_max_m")] == 0.015
    for name, value, one in zip(names, kept, new.test.tunables, strict=True):
        assert value == one.value or name == "safety.following_max_m", name


WINGS = ["test.active_vehicle=vehicles/craft_two_wings.toml", "test.stand=stands/ideal_stand.toml", "compensation.part=none"]
FREE = ["guidance.close_before_s=0.6", "setpoint_kinematics.blend_s=0.05"]


@pytest.fixture(scope="module")
def winged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("winged")
    return read_log(simulate(load_test(None, [*SHORT, *WINGS, *FREE]), Options(out=str(folder / "run"), **QUIET))["log"])


@pytest.mark.parametrize("key", ["active_vehicle.body.hub.rigid.mass_kg=1800.0", "active_vehicle.body.hub.rigid.mass_kg=900.0"])
def test_a_craft_of_another_mass_continues_with_the_speed_that_it_had(winged, tmp_path, key):
    """Within a tick of free flight before the contact: pose and twist of the ports as they were, momentum that of the new mass."""
    new, _ = continued(winged, "contact-0.2s", tmp_path / "heavy", key)
    now, then = new.records[0], winged.records[winged.records["tick"] == new.records["tick"][0]][0]
    assert new.header.branch["changed"] == ["dynamics"] and then["V_TA"][0] > 0.05
    # the closing speed to the last bit or the one beside, after one step with other masses: rates come from momenta
    assert np.abs(now["V_TA"] - then["V_TA"]).max() <= np.finfo(float).eps * np.abs(then["V_TA"]).max()
    assert now["X_TA"] == pytest.approx(then["X_TA"], abs=1e-15)
    assert abs(now["momentum"][0] / then["momentum"][0] - 1.0) > 0.05
    assert replay.replay(new.path, verify=True)["equal"]


def test_a_rigid_craft_of_another_inertia_continues_with_the_rates_that_it_had(log, tmp_path):
    rows = "[[9e4,0,0],[0,2e5,0],[0,0,2e5]]"
    new, _ = continued(log, "contact-0.01s", tmp_path / "new", f"active_vehicle.inertia_kg_m2={rows}", "active_vehicle.mass_kg=20000.0")
    now, then = new.records[0], log.records[log.records["tick"] == new.records["tick"][0]][0]
    # the record is one tick on: what the ship's own thrust does of 60 N to 20 t in place of 7 t is 6e-6 m/s
    assert now["V_TA"] == pytest.approx(then["V_TA"], abs=6e-6) and np.linalg.norm(then["V_TA"][3:]) > 1e-3


@pytest.mark.parametrize("key", ["active_vehicle.joint.left_drive.mode=locked", "active_vehicle.joint.left_drive.angle_deg=5.0"])
def test_the_mode_of_a_joint_is_what_a_run_began_with(winged, key):
    with pytest.raises(ConfigurationError, match=r"active_vehicle.joint.left_drive.(mode|angle): is what the run began with"):
        branch.at_tick(winged, 3000, (key,))
