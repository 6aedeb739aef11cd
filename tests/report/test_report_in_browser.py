"""Reports in a real browser: what is in sight without scrolling, curves that are drawn and zoomed, a table that sorts, paper, the dark."""

import base64
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.log.reader import read_log
from hil_server.report.programme_page import ProgrammePage
from hil_server.report.run_page import page
from tests.console.chromium import CHROMIUM, Browser, wait_for
from tests.report.test_programme_page import requirement

pytest.importorskip("websockets")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
SIZES = {"desk": (1300, 800), "phone": (390, 844)}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def report(bounce, tmp_path_factory):
    """A run with eight requirements, one of them violated."""
    log = read_log(bounce)
    rows = [requirement(500.0 * i - 300.0, f"requirement {i} with a name of some length") for i in range(8)]
    folder = Path(os.environ.get("HIL_PICTURES") or tmp_path_factory.mktemp("report"))
    file = folder / "report.html"
    file.write_text(page(Run(log), replace(summarise(Run(log)), requirements=rows)), encoding="utf-8")
    return file


def shown(browser, file, size="desk"):
    width, height = SIZES[size]
    browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=size == "phone")
    browser.go("about:blank")
    wait_for(lambda: browser.value("location.href") == "about:blank", 20)
    browser.requests.clear()
    browser.complaints.clear()
    browser.go(file.as_uri())
    wait_for(lambda: browser.value("document.documentElement?.dataset?.curves") == "drawn", 20)
    browser.drawn()


def bottom(browser, selector):
    """Lower edge of the last element that matches, in pixels of the window."""
    return browser.value(f"Math.max(...[...document.querySelectorAll({selector!r})].map((e) => e.getBoundingClientRect().bottom))")


def colours(browser, plot):
    """How many colours a canvas has."""
    return browser.value(
        f"(() => {{ const c = document.querySelectorAll('figure.plot canvas')[{plot}];"
        " const p = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer); return new Set(p).size; })()"
    )


@pytest.mark.parametrize("size", SIZES)
def test_verdict_and_margins_are_in_sight_without_scrolling(browser, report, size):
    shown(browser, report, size)
    assert browser.complaints == [] and browser.requests == [report.as_uri()], "nothing is fetched"
    width, height = SIZES[size]
    assert browser.value("document.querySelectorAll('.verdict').length") == 1
    assert bottom(browser, ".verdict") < height / 3 and bottom(browser, ".columns .margins") <= height
    assert browser.value("document.querySelectorAll('.columns .margins')[0].children.length") == 5
    assert browser.value("document.documentElement.scrollWidth") <= width, "nothing is wider than the window"
    assert browser.value("getComputedStyle(document.querySelector('nav.contents')).position") == "sticky"
    browser.picture(report.with_name(f"report_{size}.png"))


def test_curves_are_drawn_and_zoomed_together(browser, report):
    shown(browser, report)
    assert all(colours(browser, i) > 10 for i in (0, 1, 5))
    whole = browser.value("hilCurves.groups.get('run').plots[0].range()")
    assert whole == pytest.approx([0.0, 3.999])
    browser.value("document.querySelectorAll('figure.plot canvas')[0].focus()")
    browser.key("+", 187)
    assert browser.value("hilCurves.groups.get('run').plots[3].range()") == pytest.approx([1.0, 2.999], abs=0.01), "all of the run"
    browser.key("Home", 36)
    assert browser.value("hilCurves.groups.get('run').plots[3].range()") == pytest.approx(whole)
    # a drag over the middle third of the first curve
    box = "document.querySelector('figure.plot canvas').getBoundingClientRect()"
    left, top, width = browser.value(f"(b => [b.x, b.y + b.height / 2, b.width])({box})")
    inner = width - 68.0
    for kind, part in (("mousePressed", 1 / 3), ("mouseMoved", 0.5), ("mouseReleased", 2 / 3)):
        browser.ask("Input.dispatchMouseEvent", type=kind, x=left + 58 + part * inner, y=top, button="left", clickCount=1)
    assert browser.value("hilCurves.groups.get('run').plots[0].range()") == pytest.approx([1.333, 2.666], abs=0.03)
    browser.click("figure.plot figcaption > button")
    assert browser.value("hilCurves.groups.get('run').seen") is None
    # a line hides, and comes back
    browser.click("figure.plot .key button")
    assert browser.value("document.querySelector('figure.plot .key button').getAttribute('aria-pressed')") == "false"
    assert browser.value("hilCurves.groups.get('run').plots[0].about.lines[0].shown") is False


def test_the_browser_reads_the_curves_as_they_were_written(browser, report, bounce_log):
    shown(browser, report)
    figures = "(l => [l.name, Math.min(...l.y), Math.max(...l.y), l.t[l.t.length - 1]])"
    line = browser.value(f"{figures}(hilCurves.groups.get('run').plots[0].about.lines[0])")
    force = bounce_log.records["F_T"][:, 0]
    assert line[0] == "Fx" and line[1:] == pytest.approx([force.min(), force.max(), bounce_log.time_s[-1]], rel=1e-9)


def test_dark_and_paper(browser, report):
    shown(browser, report)
    seen = {}
    for name, media, features in (("light", "", "light"), ("dark", "", "dark"), ("print", "print", "dark")):
        browser.ask("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": features}])
        browser.drawn()
        seen[name] = browser.value("getComputedStyle(document.body).backgroundColor")
        if name == "dark":
            browser.picture(report.with_name("report_dark.png"))
    assert seen["light"] == seen["print"] == "rgb(255, 255, 255)" and seen["dark"] == "rgb(18, 22, 27)"
    assert browser.value("getComputedStyle(document.querySelector('nav.contents')).display") == "none"
    browser.ask("Emulation.setEmulatedMedia", media="", features=[])
    pdf = base64.b64decode(browser.ask("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF") and len(pdf) > 50_000
    report.with_suffix(".pdf").write_bytes(pdf)


def test_a_programme_sorts_and_fits_a_phone(browser, bounce, trip, tmp_path):
    made = ProgrammePage("two", [("A", "", "captured"), ("B", "", "captured"), ("C", "", "captured")], tmp_path)
    for number, path, R1 in (("A", bounce, 0.3), ("B", trip, 0.1)):
        about = {"number": number, "expect": "captured", "verdict": "captured", "passed": True, "R1": R1, "log": str(path)}
        made.add({**summarise(Run(read_log(path))).as_json(), **about})
    file = made.write()
    browser.ask("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.complaints.clear()
    browser.go(file.as_uri())
    wait_for(lambda: browser.value("document.querySelectorAll('table.sortable th button').length") > 8, 20)
    assert browser.complaints == [] and browser.value("document.documentElement.scrollWidth") <= 390
    first = "[...document.querySelector('table.sortable').rows].slice(1).map((r) => r.cells[0].textContent).join('')"
    assert browser.value(first) == "ABC"
    browser.value("[...document.querySelectorAll('table.sortable th button')].find((b) => b.textContent === 'R1').click()")
    assert browser.value(first) == "BAC", "what has no figure stays below"
