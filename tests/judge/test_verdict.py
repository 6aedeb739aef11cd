"""The verdict of a run in one line, by its summary; what to look at next."""

from dataclasses import replace

import pytest

from hil_server.judge.margins import Margin
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.judge.verdict import bars, next_looks, used, verdict


def requirement(name="peak", verdict="met", limit=10.0, margin=2.0):
    value = None if margin is None or limit is None else limit - margin
    return {"name": name, "verdict": verdict, "value": value, "limit": limit, "margin": margin, "unit": "N", "time_s": 0.0, "phase": "",
            "source": "", "words": ""}  # fmt: skip


@pytest.fixture
def summary(bounce_log):
    return summarise(Run(bounce_log))


def test_captured(summary):
    found = verdict(summary)
    assert (found.level, found.word, str(found)) == ("good", "captured", "CAPTURED: at 2.00 s, 1.00 s after first contact")


@pytest.mark.parametrize(
    ("change", "level", "word", "reported"),
    [
        ({"end": "stopped"}, "warn", "stopped", "first contact at 1.00 s"),
        ({"end": "time", "captured": False, "capture_time_s": None}, "warn", "not captured", "time is up"),
        ({"end": "time", "captured": False, "first_contact_time_s": None}, "warn", "not captured", "no contact in 4.0 s, time is up"),
        ({"end": "record_lost", "record_lost": "disk full"}, "bad", "record lost", "disk full"),
        ({"missed": 3}, "warn", "captured", "3 periods missed"),
        ({"not_confirmed": ["node 3: does not say that it is off"]}, "bad", "captured", "not confirmed when the power was taken off: node"),
        ({"complete": False}, "warn", "captured", "the log is incomplete"),
        ({"faults": ["sensor_stale"]}, "warn", "captured", "1 fault: sensor_stale"),
        ({"captured": False, "end": "overload", "arm": {"outcome": "stalled"}}, "warn", "stalled", "overload"),
        ({"end": "not_aligned", "alignment": {"aligned": False, "missing": ["DSG"], "tilt_deg": 3.9, "offset_m": 0.029}}, "bad",
         "not aligned", "missing DSG, tilt 3.90°, offset 29.0 mm"),
    ],
)  # fmt: skip
def test_other_ends(summary, change, level, word, reported):
    found = verdict(replace(summary, **change))
    assert (found.level, found.word) == (level, word) and reported in found.line


def test_a_trip_names_its_cause_with_tick_and_time(trip_log):
    found = verdict(replace(summarise(Run(trip_log)), requirements=[requirement(verdict="violated", margin=-1.0)]))
    assert (found.level, found.word) == ("bad", "tripped")
    assert found.line.startswith("force_limit: ") and "at 1.020 s (tick 1020)" in found.line and "1 of 1 requirement violated" in found.line


def test_requirements_make_it(summary):
    rows = [requirement("a"), requirement("b", "violated", margin=-5.0), requirement("c", "not judged", None, None)]
    found = verdict(replace(summary, requirements=rows))
    assert (found.level, found.word) == ("bad", "captured, requirement violated")
    assert found.line.endswith("1 of 2 requirements violated: b")
    met, none = (verdict(replace(summary, requirements=some)) for some in (rows[:1], rows[2:]))
    assert met.level == "good" and "its requirement is met" in met.line
    assert none.line == verdict(summary).line, "what was not judged says nothing"


def test_share_of_a_limit():
    assert used(requirement(limit=10.0, margin=2.0)) == pytest.approx(0.8)
    assert used(requirement(limit=-10.0, margin=-1.0)) == pytest.approx(1.1)
    stroke = {**requirement(), "value": 0.4, "limit": 0.1, "margin": 0.3, "unit": "m"}
    assert used(stroke) == pytest.approx(0.25) and bars([stroke])[0][1] == "0.4, at least 0.1 m"
    assert used({**stroke, "value": 0.05, "margin": -0.05}) == pytest.approx(1.5)
    assert used(requirement(limit=0.0)) is None and used(requirement(limit=None)) is None
    rows = [requirement("good"), requirement("near", margin=1.0), requirement("none", "not judged", None, None)]
    rows += [requirement("worst", "violated", margin=-9.0), requirement("bad", "violated", margin=-1.0)]
    order = [name for name, *_ in bars(rows)]
    assert order == ["worst", "bad", "near", "good", "none"]


def test_what_touched_a_limit_comes_before_what_is_good(trip_log):
    clipped = Margin("leg acceleration", 10.0, 10.0, "m/s2", 1.0, stops=False)
    looks = next_looks(replace(summarise(Run(trip_log)), requirements=[requirement("far", margin=9.0)]), trip_log, [clipped])
    words = [words for _, words, _ in looks]
    assert words.index("nearest limit of the stand: leg acceleration, 10 of 10 m/s2 (100 %)") < next(
        i for i, reported in enumerate(words) if reported.startswith("requirement far: ")
    )


def test_faults_come_in_their_order_with_tick_and_time(trip_log):
    s = replace(summarise(Run(trip_log)), requirements=[requirement("close", margin=0.5)])
    looks = next_looks(s, trip_log, [])
    assert looks[0][1].startswith("force_limit (stop) at 1.020 s, tick 1020: ") and looks[0][2] == "faults"
    assert ("warn", "requirement close: 9.5 of 10 N, 95 % of the limit used", "requirements") in looks
    assert any("2 periods missed" in words for _, words, _ in looks)
    assert any(words.startswith("noted: drive_limit_touched at 0.500 s, tick 500") for _, words, _ in looks)
