"""The report: whole, self-contained, honest about what is synthetic or missing."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from hil_server.analysis.report import make_report, page
from hil_server.errors import UsageError
from hil_server.pages import figures
from hil_server.telemetry.log_file import open_log


class Checker(HTMLParser):
    """Every tag closed, text collected, no reference to anything outside."""

    VOID = {"img", "meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.images, self.outside = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith("data:"):
                self.outside.append(value)
        if tag == "img":
            self.images.append(dict(attributes)["src"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def test_report_of_a_captured_run(bounce, tmp_path):
    path = make_report(bounce, tmp_path / "out")
    assert path == tmp_path / "out" / "bounce.html"
    source = path.read_text(encoding="utf-8")
    seen = Checker(source)
    assert seen.outside == [] and not re.search(r"https?://|url\(|@import|<script", source)
    assert len(seen.images) == 7
    for image in seen.images:
        assert base64.b64decode(image.split(",")[1]).startswith(b"\x89PNG")
    for words in ("captured", "Contact wrench", "Lateness", "restitution", "0.9", "delay ledger", "<b> = 1"):
        assert words in seen.text
    assert "<b> = 1" not in source, "texts of a run are escaped"
    assert "synthetic" not in seen.text and "incomplete" not in seen.text and "before the trip" not in seen.text


def test_report_of_a_trip_shows_the_last_second(trip, tmp_path):
    seen = Checker(make_report(trip, tmp_path).read_text(encoding="utf-8"))
    assert len(seen.images) == 9  # the sensors of the unit among them
    wanted = ("last second before the trip", "force_limit", "lever2_contact", "compare with the prediction", "synthetic geometry", "1 020")
    for words in wanted:
        assert words in seen.text, words


def test_columns_without_anything_are_left_out(write_run, make_bounce):
    """A contact that goes on through has no restitution and no ratio: no empty columns for them, the reason instead."""
    records = make_bounce()
    records["V_TA"][records["contact"] == 0, 0] = -0.2
    source = page(open_log(write_run(records)))
    for head in ("ratio", "restitution", "ratio of the contact alone", "e measured"):
        assert f"<th>{head}</th>" not in source, head
    assert "No contact rebounded." in source and "the motion goes on through it" in source
    source = page(open_log(write_run(make_bounce())))
    assert all(f"<th>{head}</th>" in source for head in ("ratio", "restitution", "e measured")) and "e predicted" not in source


def test_notes_stand_apart_from_faults(write_run, make_bounce):
    records = make_bounce()
    records["faults"][500:] |= 1 << 19
    seen = Checker(page(open_log(write_run(records))))
    assert "None." in seen.text and "note, no fault" in seen.text and "acceleration_limit" in seen.text
    records["faults"][900:] |= 1 << 9
    seen = Checker(page(open_log(write_run(records))))
    assert "force_limit: a force component is beyond its software limit (tick 900, 0.900 s)." in seen.text


def test_incomplete_run_of_one_tick_says_so(write_run, make_bounce, tmp_path):
    (tmp_path / "cut.mcap").write_bytes(write_run(make_bounce()[:1]).read_bytes()[:-5])
    seen = Checker(page(open_log(tmp_path / "cut.mcap")))
    assert "This run is incomplete: the file is cut" in seen.text and seen.images


def test_free_running_run_has_no_lateness(write_run, make_bounce):
    free = make_bounce()
    free["realtime_mode"] = 0
    seen = Checker(page(open_log(write_run(free, facts={"realtime_factor": 87.3}))))
    assert len(seen.images) == 6 and "Free-running: no lateness. 87 times real time." in seen.text


def test_empty_run(write_run, make_bounce):
    assert "no tick" in Checker(page(open_log(write_run(make_bounce()[:0])))).text


def test_folder_that_cannot_be_made(bounce, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file"):
        make_report(bounce, tmp_path / "file" / "out")


def test_thinned_lines_keep_every_spike():
    rng = np.random.default_rng(0)
    x, y = np.arange(100_000.0), rng.standard_normal(100_000)
    spikes = rng.integers(0, 100_000, 20)
    y[spikes] = 100.0 * np.sign(rng.standard_normal(20))
    at, kept = figures.thin(x, y)
    assert len(at) <= figures.POINTS + 4 and (np.diff(at) > 0).all()
    assert (at[0], at[-1]) == (0.0, 99_999.0)
    assert kept.max() == y.max() and kept.min() == y.min() and set(at[kept == 100.0]) <= set(spikes)
    stretch = -(-2 * 100_000 // figures.POINTS)
    blocks = {int(s) // stretch for s in spikes}
    assert {int(a) // stretch for a in at[np.abs(kept) == 100.0]} == blocks
