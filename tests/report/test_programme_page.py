"""The page of a programme: every variant in one table that sorts, what failed by name, links that lead somewhere."""

import re

import numpy as np
import pytest

from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.log.reader import read_log
from hil_server.report.programme_page import ProgrammePage
from tests.report.test_run_page import Checker


def requirement(margin, name="peak axial force"):
    return {"name": name, "verdict": "met" if margin >= 0.0 else "violated", "value": 5000.0 - margin, "limit": 5000.0, "margin": margin,
            "unit": "N", "time_s": 1.0, "phase": "contact", "source": "", "words": ""}  # fmt: skip


@pytest.fixture
def made(tmp_path, bounce, trip):
    """RT-1 passed, RT-2 tripped against its expectation, RT-3 passed with a violated requirement, RT-4 is still to come."""
    page = ProgrammePage("two & two", [(f"RT-{i}", f"variant <{i}>", "captured") for i in range(1, 5)], tmp_path)
    for i, (path, passed, margin) in enumerate([(bounce, True, 1e3), (trip, False, 2e3), (bounce, True, -250.0)], start=1):
        page_of = str(tmp_path / f"RT-{i}" / "run.html")
        summary = summarise(Run(read_log(path))).as_json() | {"requirements": [requirement(margin)], "report": page_of}
        about = {"number": f"RT-{i}", "expect": "captured", "verdict": "captured" if passed else "tripped", "passed": passed, "R1": 0.1 * i}
        page.add({**summary, **about, "log": str(path)})
    return page


def test_all_variants_side_by_side(made, bounce_log, tmp_path):
    source = made.write().read_text(encoding="utf-8")
    seen = Checker(source)
    assert seen.outside == ["RT-1/run.html", "RT-2/run.html", "RT-3/run.html"]
    assert not re.search(r"https?://(?!www\.w3\.org)|<script src|<link", source) and len(source) < 100_000
    assert "FAILED" in seen.text and "2 of 3 as expected; 1 with a violated requirement; 1 to come" in seen.text
    assert "tripped instead of captured" in seen.text and "violated: peak axial force" in seen.text and "variant <4>" in seen.text
    assert 'class="sortable"' in source and source.count("<polyline") == 6
    force = np.linalg.norm(bounce_log.records["F_T"][:, :3], axis=1).max()
    assert f"contact force of RT-1, at most {force:.4g} N" in seen.labels
    largest = np.abs(bounce_log.records["F_T"][:, :3]).max()
    assert f'data-sort="{largest:.9g}"' in source, "numbers are sorted as numbers"
    assert "1 violated" in seen.text and "peak axial force (RT-3)" in seen.text and "105 % of the limit used" in seen.labels


def test_ended_early_and_passed(made, tmp_path):
    assert "1 not run" in Checker(made.html(["RT-4"])).text
    good = ProgrammePage("one", [("A", "", "captured")], tmp_path)
    assert "UNDER WAY" in Checker(good.html()).text
    good.add({"number": "A", "expect": "captured", "verdict": "captured", "passed": True, "R1": 0.1})
    seen = Checker(good.html())
    assert "PASSED" in seen.text and "1 of 1 as expected" in seen.text and seen.title == "Programme one: passed"


def test_a_log_that_is_gone_leaves_the_row(tmp_path):
    page = ProgrammePage("one", [("A", "", "captured")], tmp_path)
    page.add({"number": "A", "expect": "captured", "verdict": "tripped", "passed": False, "R1": 0.1, "log": str(tmp_path / "no.mcap")})
    assert "tripped instead of captured" in Checker(page.html()).text
