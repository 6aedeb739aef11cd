"""What was done to a run: commands of a named client, tunes, injections, a recovery, missed periods; and the marks of figures."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hil_server.judge.interventions import Marks, done_to_the_run
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.judge.verdict import verdict
from hil_server.log.header import CONFIRMED, FORCED
from hil_server.log.reader import read_log
from hil_server.log.recoveries import with_name
from hil_server.report.run_page import page
from rt_kernels.layout import CODES, FAULTS, INJECTIONS

COMMAND, SAFETY = CODES["command"], CODES["safety_state"]
BIAS = next(number for number, name, *_ in ((n[1], n[0]) for n in INJECTIONS) if name == "sensor_bias")
FORCE_LIMIT = next(mask for name, mask, *_ in FAULTS if name == "force_limit")
TUNABLES = [{"name": "compensation.lead_factor", "unit": "-", "meaning": "lead", "low": 0.0, "high": 2.0, "rate_per_s": 1.0, "value": 1.0,
             "phases": ["contact"]}]  # fmt: skip


def give(r, tick, name, *arguments, by="Maja", server=False):
    r["command_code"][tick] = COMMAND[name]
    r["command_arg"][tick] = (*with_name(arguments, by), *[0.0] * 8)[:8]
    r["command_sequence"][tick:] = 2 * tick + int(server)


@pytest.fixture
def handled(make_bounce, write_run):
    """A bounce in which a fault was injected and cleared, a factor tuned twice, 1,000 periods missed, a trip recovered from."""
    r = make_bounce()
    r["tuned"][:, 0] = np.where(np.arange(len(r)) <= 900, 1.0, 0.8)
    give(r, 10, "start", by="")
    give(r, 500, "inject_fault", BIAS, 2, 300.0)
    give(r, 900, "tune", 0, 0.8)
    r["tune_answer"][900] = CODES["tune_answer"]["taken"]
    give(r, 950, "tune", 0, 5.0, by="Otto with a name that is much too long")
    r["tune_answer"][950] = CODES["tune_answer"]["out_of_limits"]
    give(r, 1200, "clear_injection")
    give(r, 3000, "hold", by="", server=True)
    r["periods"][1500] = 1001
    r["missed_total"][1500:] = 1000
    r["faults"][3200:3300] |= FORCE_LIMIT
    r["safety_state"][3250:3300] = SAFETY["recovering"]
    give(r, 3250, "recover")
    return read_log(write_run(r, "handled", tunables=TUNABLES, notes=["armed by --force against the prediction: e 1.3 at 8 Hz"]))


def test_all_of_it_is_listed_with_name_time_old_and_new(handled):
    rows = done_to_the_run(Run(handled))
    told = [(row["kind"], row["by"], row["tick"], row["old"], row["new"]) for row in rows]
    assert told == [
        ("forced", "", None, None, None), ("command", "", 10, None, None), ("injection", "Maja", 500, None, 300.0),
        ("tune", "Maja", 900, 1.0, 0.8), ("tune", "Otto with a name that is much too lo", 950, 0.8, 5.0),
        ("injection", "Maja", 1200, None, None),
        ("command", "the server", 3000, None, None), ("recovery", "Maja", 3250, None, None),
    ]  # fmt: skip
    assert rows[2]["text"] == "injected sensor_bias[2] 300, by Maja, at 0.500 s"
    assert rows[3]["text"] == "tuned compensation.lead_factor 1 → 0.8, by Maja, at 0.900 s" and rows[3]["answer"] == ""
    assert rows[4]["answer"] == "refused: out of limits" and rows[7]["answer"] == "recovered: force_limit cleared"
    assert json.loads(json.dumps(rows)) == rows


def test_what_lies_in_the_window_of_a_figure_marks_it(handled):
    marks = Marks(handled, done_to_the_run(Run(handled)))
    injected, missed = "injected sensor_bias[2] at 0.500 s", "1000 periods missed"
    assert marks.of(0.0, 0.4) == [] and marks.of(0.6, 0.7) == [injected] and marks.of(1.3, 1.4) == []
    assert marks.of(1.4, 1.6) == [missed] and marks.of(0.0, 4.0) == [injected, missed]
    s = summarise(Run(handled))
    assert [contact["marks"] for contact in s.contacts] == [[injected], []]
    assert next(row["marks"] for row in s.peaks if row["moment"] == "impact") == [injected, missed]


def test_green_is_gone_and_the_first_screen_tells(handled):
    peak = {"name": "peak", "verdict": "met", "value": 1.0, "limit": 2.0, "margin": 1.0, "unit": "N", "time_s": 1.0, "phase": "",
            "source": "", "words": "", "marks": ["1000 periods missed"]}  # fmt: skip
    s = replace(summarise(Run(handled)), requirements=[peak])
    found = verdict(s)
    assert found.level == "warn" and "; 1 fault injected;" in found.line and "1000 periods missed" in found.line
    source = page(Run(handled), s)
    opening = source[: source.index('<section id="outcome"')]
    assert "Done to the run" in opening and "tuned compensation.lead_factor 1 → 0.8, by Maja, at 0.900 s" in opening
    assert "injected sensor_bias[2] 300, by Maja" in opening and "armed by --force" in opening and "recover, by Maja" in opening
    assert '<span class="good">✓</span> peak' not in source and '<span class="pill good">✓ met' not in source
    assert "1 of 2 N (1000 periods missed)" in opening


def test_a_run_that_no_one_touched_has_nothing_to_tell(bounce_log):
    s = summarise(Run(bounce_log))
    assert s.done_to_the_run == [] and not any(row["marks"] for row in (*s.peaks, *s.contacts))
    assert "Done to the run" not in page(Run(bounce_log), s)


def test_faults_of_the_stands_file_and_a_branch(make_bounce, write_run):
    faults = '[{fault = "leg_stuck", at_s = 1.5, index = 3}, {fault = "clear", at_s = 9.0}]'
    text = f'[test]\noperator = "Ada"\n[stand.virtual]\nfaults = {faults}\n'
    branch = {"run": "first", "tick": 100, "time_s": 0.1, "set": ["guidance.a=1"]}
    log = read_log(write_run(make_bounce(), configuration={"configuration.toml": text}, branch=branch))
    rows = done_to_the_run(Run(log))
    assert [row["text"] for row in rows] == [
        "continued from first: guidance.a=1, by Ada, at 0.100 s", "injected leg_stuck[3], by the stand's file, at 1.500 s"]  # fmt: skip
    assert Marks(log, rows).of(2.0, 3.0) == ["injected leg_stuck[3] at 1.500 s"]


@pytest.mark.parametrize(("note", "kind"), [(f"{FORCED}, delay not known", "forced"), (f"{CONFIRMED}dry run", "confirmed"),
                                            ("armed all the same, confirmed with: dry run", "confirmed")])  # fmt: skip
def test_a_start_against_an_objection_is_reported(make_bounce, write_run, note, kind):
    (row,) = done_to_the_run(Run(read_log(write_run(make_bounce(), notes=["a variant", note]))))
    assert (row["kind"], row["what"]) == (kind, note)
