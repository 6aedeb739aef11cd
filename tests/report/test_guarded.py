"""One figure that fails is named with its reason and costs no other: each of summary, report, comparison, life, programme is broken."""

import json

import pytest

from hil_server.judge import life, run, summary
from hil_server.judge.run import Run
from hil_server.log.reader import read_log
from hil_server.report import comparison, foreseen, opening, pictures, programme_page, run_page, scene, side_by_side, unit_course

REASON = "ZeroDivisionError: broken on purpose"
OF_SUMMARY = [
    (run, "faults_of"), (run, "contacts_of"),
    *((summary, name) for name in ("done_to_the_run", "alignment_of", "_timing", "_loads", "_legs", "cause_of", "recoveries_of",
                                   "crafts_of", "arm_margin", "_delay_in_run", "_marked")),
]  # fmt: skip
OF_REPORT = [
    *((run_page, name) for name in ("opening", "_banners", "_outcome", "_by_moment", "_faults", "_before_trip", "_rehearsal", "_contacts",
                                    "_crafts", "_unit", "_scene", "_pictures", "_time", "_configuration")),
    (run_page, "verdict"), (run_page, "stand_margins"), (run_page, "next_looks"), (foreseen, "_rebounds"),
    (opening, "_margins"), (opening, "facts"), (opening, "telling"), (pictures, "force_with_phases"), (pictures, "approach"),
    (pictures, "wrench"), (pictures, "relative_motion"), (pictures, "legs"), (pictures, "energy"), (pictures, "lateness"),
    (pictures, "around"), (unit_course, "sensors"), (unit_course, "state"), (scene, "scene"),
]  # fmt: skip


def broken(*_, **__):
    raise ZeroDivisionError("broken on purpose")


@pytest.mark.parametrize(("module", "name"), OF_SUMMARY, ids=lambda value: value if isinstance(value, str) else "")
def test_a_figure_of_the_summary(monkeypatch, trip_log, module, name):
    whole = summary.summarise(Run(trip_log)).as_json()
    monkeypatch.setattr(module, name, broken)
    made = summary.summarise(Run(trip_log))
    found = made.as_json()
    (absent,) = found["not_available"]
    assert absent["reason"] == REASON and set(found) == set(whole) and json.dumps(found, allow_nan=False)
    changed = {key for key in whole if found[key] != whole[key]} - {"not_available"}
    assert len(changed) <= 9 and found["ticks"] == whole["ticks"] and (name == "faults_of" or found["end"] == whole["end"])
    text = run_page.page(Run(trip_log), made)
    assert f"{absent['figure']}: not available: {REASON}" in text and 'id="configuration"' in text


@pytest.mark.parametrize(("module", "name"), OF_REPORT, ids=lambda value: value if isinstance(value, str) else "")
def test_a_part_of_the_report(monkeypatch, trip_log, module, name):
    whole = run_page.page(Run(trip_log))
    monkeypatch.setattr(module, name, broken)
    found = run_page.page(Run(trip_log))
    parts = whole.count("<section ")
    assert f"not available: {REASON}" in found and found.count("<section ") >= parts - 4
    assert 'id="configuration"' in found


@pytest.mark.parametrize("name", ["difference_table", "plots"])
def test_a_part_of_the_comparison(monkeypatch, bounce, tmp_path, name):
    monkeypatch.setattr(comparison, name, broken)
    figures = comparison.compare(bounce, bounce, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert f"not available: {REASON}" in text and text.count("<section ") == 4 and figures["verdict"] == "not judged"


def test_a_channel_of_the_life(monkeypatch, bounce_log):
    pytest.importorskip("rainflow")
    real = life.channel
    monkeypatch.setattr(life, "channel", lambda log, name: broken() if name == "F_T[4]" else real(log, name))
    one, two = life.spectra([Run(bounce_log)], ["F_T[0]", "F_T[4]"], life.curve("5:80@1e5"))
    assert one.damage > 0.0 and one.not_available == "" and two.not_available == REASON and not len(two.ranges)


@pytest.mark.parametrize("name", ["_courses", "_failed", "bars"])
def test_a_part_of_the_programme(monkeypatch, bounce, tmp_path, name):
    page = programme_page.ProgrammePage("one", [("A", "first", "captured")], tmp_path)
    monkeypatch.setattr(programme_page, name, broken)
    row = {"name": "r", "verdict": "violated", "value": 1.0, "limit": 0.5, "margin": -0.5, "unit": "N"}
    page.add({**summary.summarise(Run(read_log(bounce))).as_json(), "number": "A", "expect": "captured", "verdict": "captured",
              "passed": False, "R1": 0.1, "requirements": [row]})  # fmt: skip
    text = page.html()
    assert REASON in text and text.count("<section ") >= 2 and "first" in text


def test_a_run_of_the_comparison_of_designs(monkeypatch, bounce, tmp_path):
    rows = [{"number": n, "case": "one", "design": n, "verdict": "captured", "log": str(bounce)} for n in ("old", "new")]
    real, calls = side_by_side.figures_of, []

    def second_fails(log):
        calls.append(log)
        return broken() if len(calls) == 2 else real(log)

    monkeypatch.setattr(side_by_side, "figures_of", second_fails)
    (case,) = side_by_side.compared(rows)
    assert case["designs"][0]["figures"]["axial_n"] is not None and case["designs"][1]["not_available"][0]["reason"] == REASON
    assert f"figures of new: {REASON}" in side_by_side.write_page("x", [case], tmp_path).read_text()
