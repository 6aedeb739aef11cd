"""The report: whole, self-contained, honest about what is synthetic or missing."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from hil_server.errors import UsageError
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.log.reader import read_log
from hil_server.pages import curves, thinning
from hil_server.report.run_page import make_report, page
from rt_kernels.layout import CODES


class Checker(HTMLParser):
    """Every tag closed, every id once, every anchor there, text collected, no reference to anything outside."""

    VOID = {"img", "meta", "br", "input"}

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.images, self.outside, self.ids, self.anchors, self.labels, self.plots = [], [], [], [], [], [], [], []
        self.metas, self.title, self.sections = {}, "", []
        self.feed(text)
        assert self.open == []
        assert len(self.ids) == len(set(self.ids)) and set(self.anchors) <= set(self.ids)

    def handle_starttag(self, tag, attributes):
        about = dict(attributes)
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith(("data:", "#")):
                self.outside.append(value)
        if (about.get("href") or "").startswith("#"):
            self.anchors.append(about["href"][1:])
        if "id" in about:
            self.ids.append(about["id"])
        if tag == "section":
            self.sections.append(about["id"])
        if tag == "meta" and "name" in about:
            self.metas[about["name"]] = about["content"]
        if tag == "img":
            self.images.append(about["src"])
            assert about["alt"]
        if about.get("role") == "img":
            self.labels.append(about["aria-label"])
            assert about["aria-label"]
        if tag not in self.VOID:
            self.open.append((tag, about))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, about = self.open[-1] if self.open else ("", {})
        if tag == "title":
            self.title = data
        elif tag == "script" and about.get("type") == "application/json":
            self.plots.append(json.loads(data))
        elif tag not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)

    @property
    def curves(self):
        return [one for one in self.plots if "lanes" in one]


def test_report_of_a_captured_run(bounce, tmp_path):
    path = make_report(bounce, tmp_path / "out")
    assert path == tmp_path / "out" / "bounce.html"
    source = path.read_text(encoding="utf-8")
    seen = Checker(source)
    assert seen.outside == [] and not re.search(r"https?://|url\(|@import|<script src|<link", source)
    assert seen.images == [] and len(seen.curves) >= 14 and len(source) < 1_000_000
    assert "width=device-width" in seen.metas["viewport"] and seen.title == "bounce: captured"
    for words in ("captured", "Contact force at T", "Lateness", "restitution", "0.9", "delay ledger", "<b> = 1"):
        assert words in seen.text
    assert "<b> = 1" not in source, "texts of a run are escaped"
    assert "synthetic" not in seen.text and "incomplete" not in seen.text and "before the trip" not in seen.text
    assert {"outcome", "faults", "contacts", "wrench", "motion", "legs", "energy", "time", "configuration"} <= set(seen.sections)
    assert seen.text.index("CAPTURED") < seen.text.index("Date") < seen.text.index("Outcome", 100), "the verdict first"


def test_a_curve_is_its_logs(bounce, bounce_log):
    """The points in the page, unpacked as the browser does it, draw the log's force to within a thousandth of its range; its extremes are
    the log's."""
    seen = Checker(page(Run(bounce_log)))
    force = next(one for one in seen.curves if [line["name"] for line in one["lines"]] == ["Fx", "Fy", "Fz"])
    unpacked = curves.unpacked(force["data"], [line["points"] for line in force["lines"]])
    x, (steps, levels), line = bounce_log.records["F_T"][:, 0], unpacked[0], force["lines"][0]
    assert len(steps) < 0.2 * len(x), "most ticks are on a straight line"
    y = line["low"] + (line["high"] - line["low"]) * levels / (curves.GAP - 1)
    drawn = np.interp(bounce_log.time_s, force["start"] + force["step"] * steps, y)
    assert np.abs(drawn - x).max() < 1e-3 * np.ptp(x)
    assert (line["low"], line["high"]) == (x.min(), x.max()) and (y.min(), y.max()) == (x.min(), x.max())


def test_report_of_a_trip_shows_the_last_second(trip, tmp_path):
    seen = Checker(make_report(trip, tmp_path).read_text(encoding="utf-8"))
    assert sum(one["group"] == "trip" for one in seen.curves) == 4 and any(one["lanes"] for one in seen.curves)
    wanted = ("last second before the trip", "force_limit", "lever2_contact", "compare with the prediction", "synthetic geometry", "1 020")
    for words in wanted:
        assert words in seen.text, words
    assert "TRIPPED" in seen.text and "at 1.020 s (tick 1020)" in seen.text and seen.title == "trip: tripped"
    looks = seen.text[seen.text.index("What to look at next") :]
    late = "largest lateness 2500 µs at 0.100 s (tick 100), by wake-up"
    assert looks.index("force_limit (stop) at 1.020 s, tick 1020") < looks.index(late)


def test_requirements_open_the_report(bounce_log):
    """A violated one first, with its margin as a bar and in words; the verdict is that of the requirements."""
    def one(name, verdict, value, limit, margin, unit="N"):
        return {"name": name, "verdict": verdict, "value": value, "limit": limit, "margin": margin, "unit": unit, "time_s": 1.0,
                "phase": "contact", "source": "text 6.2", "words": f"{name} of the text"}  # fmt: skip

    found = [one("peak force", "met", 4000.0, 5000.0, 1000.0), one("stroke <left>", "met", 0.3, 0.1, 0.2, "m"),
             one("tilt", "violated", 1.2, 1.0, -0.2, "deg"), one("undocked", "not judged", None, None, None)]  # fmt: skip
    source = page(Run(bounce_log), replace(summarise(Run(bounce_log)), requirements=found))
    seen = Checker(source)
    assert "CAPTURED, REQUIREMENT VIOLATED" in seen.text and "1 of 3 requirements violated: tilt" in seen.text
    assert [label for label in seen.labels if "of the limit used" in label][:3] == [f"{n} % of the limit used" for n in (120, 80, 33)]
    assert 'class="verdict bad"' in source and "requirements" in seen.sections and "stroke <left>" in seen.text and "<left>" not in source
    met = Checker(page(Run(bounce_log), replace(summarise(Run(bounce_log)), requirements=found[:2])))
    assert "all 2 requirements met" in met.text and "VIOLATED" not in met.text


def test_the_prediction_is_laid_beside_the_run(write_run, make_bounce, bounce, tmp_path):
    """By default where the run names one; a log that is gone is reported, not an error."""
    softer = write_run(make_bounce(force_scale=0.9), "softer", prediction={"log": str(bounce)})
    seen = Checker(page(Run(read_log(softer))))
    both = [one for one in seen.curves if one["group"] == "comparison"]
    assert len(both) == 4 and [line["dash"] for line in both[0]["lines"]] == [False] * 3 + [True] * 3
    assert "largest difference from the prediction: Fx, 11.1 % of the largest force" in seen.text and "prediction" in seen.sections
    assert not any(one["group"] == "comparison" for one in Checker(page(Run(read_log(bounce)))).curves)
    assert any(one["group"] == "comparison" for one in Checker(page(Run(read_log(bounce)), prediction=softer)).curves)
    gone = write_run(make_bounce(), "gone", prediction={"log": "nowhere.mcap"})
    assert "nowhere.mcap cannot be laid beside it" in Checker(page(Run(read_log(gone)))).text


def test_columns_without_anything_are_left_out(write_run, make_bounce):
    """A contact that continues through has no restitution and no ratio: no empty columns for them, the reason instead."""
    records = make_bounce()
    records["V_TA"][records["contact"] == 0, 0] = -0.2
    heads = ("ratio", "restitution", "ratio of the contact alone", "e measured")

    def columns(source):
        return set(re.findall(r"<th[^>]*>([^<]*)</th>", source))

    source = page(Run(read_log(write_run(records))))
    assert not columns(source) & set(heads) and "not measurable: the bodies do not separate" in source
    source = page(Run(read_log(write_run(make_bounce()))))
    assert {"ratio", "restitution", "e measured"} <= columns(source) and "e predicted" not in columns(source)


def test_notes_stand_apart_from_faults(write_run, make_bounce):
    records = make_bounce()
    records["faults"][500:] |= 1 << 19
    seen = Checker(page(Run(read_log(write_run(records)))))
    assert "None." in seen.text and "note, no fault" in seen.text and "acceleration_limit" in seen.text
    records["faults"][900:] |= 1 << 9
    seen = Checker(page(Run(read_log(write_run(records)))))
    assert "force_limit: a force component is beyond its software limit (tick 900, 0.900 s)." in seen.text


def test_incomplete_run_of_one_tick_says_so(write_run, make_bounce, tmp_path):
    (tmp_path / "cut.mcap").write_bytes(write_run(make_bounce()[:1]).read_bytes()[:-5])
    seen = Checker(page(Run(read_log(tmp_path / "cut.mcap"))))
    assert "This run is incomplete: the file is cut" in seen.text and seen.curves


def test_free_running_run_has_no_lateness(write_run, make_bounce):
    free = make_bounce()
    free["realtime_mode"] = 0
    seen = Checker(page(Run(read_log(write_run(free, facts={"realtime_factor": 87.3})))))
    assert "lateness" not in seen.sections and "Free-running: no lateness. 87 times real time." in seen.text


def test_a_grid_that_follows_a_bus_shows_by_how_much_it_is_off(write_run, make_bounce):
    records = make_bounce()
    records["realtime_mode"] = CODES["realtime_mode"]["soft"]
    records["aux"] = 0.0
    records["aux"][:, 0] = np.where(np.arange(len(records)) % 2, -3000.0, 1000.0)
    aux = (("bus_deviation_ns", "ns", "deviation", 1), ("other", "-", "else", 1))
    log = read_log(write_run(records, "bus", {"grid": {"reference_gains_ppm": -51.5, "moved_ns": -7}}, aux=aux))
    assert summarise(Run(log)).bus_deviation_us["max"] == 3.0
    seen = Checker(page(Run(log)))
    assert "deviation from the clock of the bus" in seen.text and "the clock of the bus gains, ppm -51.5" in seen.text
    assert "Deviation from the clock of the bus" in page(Run(log))
    assert "clock of the bus" not in page(Run(read_log(write_run(make_bounce(), "no_bus"))))


def test_empty_run(write_run, make_bounce):
    assert "no tick" in Checker(page(Run(read_log(write_run(make_bounce()[:0]))))).text


def test_folder_that_cannot_be_made(bounce, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file"):
        make_report(bounce, tmp_path / "file" / "out")


def test_thinned_lines_keep_every_spike():
    rng = np.random.default_rng(0)
    x, y = np.arange(100_000.0), rng.standard_normal(100_000)
    spikes = rng.integers(0, 100_000, 20)
    y[spikes] = 100.0 * np.sign(rng.standard_normal(20))
    at, kept = thinning.thin(x, y)
    assert len(at) <= thinning.POINTS + 4 and (np.diff(at) > 0).all()
    assert (at[0], at[-1]) == (0.0, 99_999.0)
    assert kept.max() == y.max() and kept.min() == y.min() and set(at[kept == 100.0]) <= set(spikes)
    stretch = -(-2 * 100_000 // thinning.POINTS)
    blocks = {int(s) // stretch for s in spikes}
    assert {int(a) // stretch for a in at[np.abs(kept) == 100.0]} == blocks
