"""The console's pages as they are used: they fill every screen, work by keyboard alone, hold the rules of axe-core, and draw what is so."""

import importlib.resources
import json
import math

import numpy as np
import pytest

from hil_server.config import SHIPPED, load_test
from hil_server.console.picture import picture_of
from hil_server.console.recording import Recording
from rt_kernels.extends import read_tables
from tests.console.chromium import wait_for
from tests.console.fake_run import FakeRun
from tests.console.test_console import browser, log, pictures, start_console  # noqa: F401  fixtures

PAGES = ("", "operator", "mimic", "replay")
SCREENS = ((1366, 768), (1920, 1080), (2560, 1440))
GAIN = {"number": 3, "name": "compensation.gain", "unit": "-", "low": 0.0, "high": 1.5, "rate_per_s": 0.1, "phases": ["approach"],
        "value": 1.0, "meaning": "gain of the lead"}  # fmt: skip
# as long as the names of shipped parameters are
LONG = GAIN | {"number": 4, "name": "compensation.lead_rate_max_m_s", "unit": "m/s", "phases": ["idle", "position"], "value": 0.005}
PEAK = {"name": "peak force", "verdict": "met", "value": 724.0, "limit": 2000.0, "margin": 1276.0, "unit": "N", "time_s": 1.0,
        "phase": "contact", "source": "of the tests", "words": "largest force"}  # fmt: skip
LATE = PEAK | {"name": "in time", "verdict": "violated", "value": 12.0, "limit": 10.0, "margin": -2.0, "unit": "s"}
OPEN = PEAK | {"name": "tilt at completion", "verdict": "not judged", "value": None, "margin": math.nan, "unit": "deg"}


@pytest.fixture(scope="module")
def run(log):  # noqa: F811
    """A rehearsal with a parameter that can be tuned and three requirements; a programme of which a variant is next lies by the logs."""
    text = load_test(None, ["test.rehearsal=true"]).as_toml()
    made = FakeRun(Recording(log), text, [GAIN, LONG], [PEAK, LATE, OPEN])
    made.values["tuned"] = [0.0, 0.0, 0.0, 0.875]
    rows = [{"variant": "RT-1", "state": "done", "result": "passed"}, {"variant": "RT-2", "state": "next", "description": "sideways"}]
    (log.parent.parent / "programme.json").write_text(json.dumps({"programme": "two", "ended": False, "held": True, "variants": rows}))
    yield made
    made.close()


@pytest.fixture(scope="module")
def address(run, log, start_console):  # noqa: F811
    nowhere = "tcp://127.0.0.1:1"
    return start_console("--logs", str(log.parent.parent), "--telemetry", run.telemetry, "--command", run.command, "--hand", nowhere)


@pytest.fixture
def page(browser, address):  # noqa: F811
    """page(view): opens it and waits until it is live; the screen is put back afterwards."""

    def go(view="", size=(1366, 768)):
        screen(browser, *size)
        browser.go(address + view)
        wait_for(lambda: browser.value("window.hilLink?.()") == ("log" if "?log=" in view else "live"), 40)
        wait_for(lambda: browser.value("Boolean(document.querySelector('#content') && document.querySelector('#abort'))"), 20)
        return browser

    yield go
    browser.ask("Emulation.clearDeviceMetricsOverride")


def screen(page, width, height):
    page.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    wait_for(lambda: page.value("innerWidth") == width, 20)


# ------------------------------------------------------------------------------------------------------------- keyboard


def chord(page):
    for kind in ("rawKeyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key="a", code="KeyA", windowsVirtualKeyCode=65, modifiers=1)


@pytest.mark.parametrize("view", PAGES)
def test_abort_by_key_on_every_page_but_not_while_writing(page, run, view):
    at = page(view)
    before = len(run.taken)
    if view != "operator":
        at.value("document.querySelector('input[type=search]').focus()")
        chord(at)
        at.value("document.activeElement.blur()")
    else:
        wait_for(lambda: at.value("Boolean(document.querySelector('#again-s')?.offsetParent)"), 20)
        at.value("document.querySelector('#again-s').focus()")  # a number is no text: it acts there
    chord(at)
    if view == "replay":  # a log may be anybody's: its page gives no commands, and says so
        wait_for(lambda: "gives no commands" in (at.value("window.hilAnswer?.answer") or ""), 20)
        assert run.taken[before:] == [] and at.value("document.querySelector('#abort').hidden")
        return
    wait_for(lambda: len(run.taken) > before and (at.value("window.hilAnswer") or {}).get("good"), 20)
    assert run.taken[before:] == [("abort", {})], "once"
    wait_for(lambda: "abort: taken by the loop at tick 7" in at.text, 20)


FOCUS = """(() => {
    const e = document.activeElement, r = e.getBoundingClientRect(), s = getComputedStyle(e);
    const seen = r.width > 0 && r.right > 0 && r.left < innerWidth && r.bottom > 0 && r.top < innerHeight;
    const outlined = (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2) || s.boxShadow.includes('rgb(255, 213, 79)');
    const marked = e.matches(':focus-visible') && outlined;
    if (e === document.body) return null;
    e.hilNumber ??= (window.hilCount = (window.hilCount || 0) + 1);
    return { number: e.hilNumber, what: e.tagName + '#' + e.id + '.' + e.className, text: e.innerText || e.ariaLabel || '', seen,
             marked: marked || Boolean(e.closest('.q-field--focused, .q-toggle, .q-checkbox')) };
})()"""


@pytest.mark.parametrize("view", PAGES)
def test_every_page_by_keyboard_alone(page, view):
    """Tab goes from the link past the header through everything that can be pressed, each seen and marked, and comes round."""
    at = page(view)
    at.value("window.hilCount = 0; document.body.focus()")
    found = []
    for _ in range(120):
        at.key("Tab", 9)
        now = at.value(FOCUS)
        if now is None or (found and now["number"] == found[0]["number"]):
            break
        found.append(now)
    else:
        raise AssertionError("the focus does not come round")
    assert found[0]["text"] == "Skip to the content" and all(one["seen"] and one["marked"] for one in found), [
        one for one in found if not (one["seen"] and one["marked"])
    ]
    assert len({one["number"] for one in found}) == len(found), "nothing holds the focus"
    texts = [one["text"] for one in found]
    if view != "replay":  # the page of a log gives no commands
        assert texts.index("Engineer") < texts.index("ABORT") < len(texts) - 1
    assert "Engineer" in texts and any("BUTTON" in one["what"] for one in found[5:])
    at.value("document.querySelector('.hil-skip').focus()")
    at.key("Enter", 13, "\r")
    wait_for(lambda: at.value("document.activeElement.id") == "content", 10)


# ---------------------------------------------------------------------------------------------------------------- rules


def violations(page):
    """Serious and critical findings of axe-core, with the place of each."""
    code = (importlib.resources.files("axe_core_python") / "axe.min.js").read_text()
    page.ask("Runtime.evaluate", expression=code)
    ask = "axe.run().then((r) => r.violations.map((v) => [v.impact, v.id, v.nodes.map((n) => n.html.slice(0, 200))]))"
    found = page.ask("Runtime.evaluate", expression=ask, awaitPromise=True, returnByValue=True)["result"]["value"]
    return [one for one in found if one[0] in ("serious", "critical")]


@pytest.mark.parametrize("view", [*PAGES, "log"])
def test_no_serious_finding_of_axe(page, log, pictures, view):  # noqa: F811
    at = page(f"replay?log={log}" if view == "log" else view)
    at.value("document.querySelector('.hil-menu details').open = true")
    wait_for(lambda: at.value("document.querySelectorAll('.hil-menu-box input').length") >= 3, 10)
    assert violations(at) == []
    if view == "":
        at.value("document.querySelector('.hil-bar').insertAdjacentHTML('beforeend', '<input id=unnamed><button></button>')")
        assert {one[1] for one in violations(at)} == {"label", "button-name"}, "the rules are applied"


# what of the page's grid is covered by its own parts, and whether it ends where the window does
FILLED = """(() => {
    const page = document.querySelector('.hil-page'), r = page.getBoundingClientRect();
    const parts = [...page.querySelectorAll('.hil-card, .hil-view, .hil-figures, .q-field')].map((e) => e.getBoundingClientRect());
    let covered = 0, all = 0;
    for (let x = r.left + 4; x < r.right; x += 16) for (let y = r.top + 4; y < r.bottom; y += 16) {
        all++;
        covered += parts.some((p) => p.left <= x + 8 && x - 8 <= p.right && p.top <= y + 8 && y - 8 <= p.bottom);
    }
    return { part: covered / all, left: r.left, right: innerWidth - r.right, bottom: innerHeight - r.bottom };
})()"""


@pytest.mark.parametrize("view", [*PAGES[:3], "log"])
def test_each_view_fills_its_screen(page, log, pictures, view):  # noqa: F811
    at = page(f"replay?log={log}" if view == "log" else view)
    for width, height in SCREENS:
        screen(at, width, height)
        wait_for(lambda h=height: at.value("innerHeight") == h, 10)

        def good():
            found = at.value(FILLED)
            return found["part"] > 0.85 and found["left"] <= 24 and found["right"] <= 40 and abs(found["bottom"]) <= 48

        try:
            wait_for(good, 10)
        except AssertionError:
            raise AssertionError((view, width, at.value(FILLED))) from None
        assert at.value("parseFloat(getComputedStyle(document.querySelector('.nicegui-content')).fontSize)") >= 14
        at.picture(pictures / f"fills_{view or 'engineer'}_{width}.png")


def test_what_sets_a_parameter_is_within_its_card(page, run):
    at = page("")
    for width, height in SCREENS:
        screen(at, width, height)
        wait_for(lambda: at.value("document.querySelectorAll('.hil-card form button').length") == 2, 20)
        over = at.value("[...document.querySelectorAll('.hil-card form')].map((form) => form.lastElementChild.getBoundingClientRect().right"
                        " - form.closest('.hil-card').getBoundingClientRect().right)")  # fmt: skip
        assert max(over) < 0.0, (width, over)


# ----------------------------------------------------------------------------------------------------------- what is drawn


def test_engineer_shows_requirements_tunables_delays_and_what_is_next(page, run):
    at = page("")
    rows = "[...document.querySelectorAll('.hil-card[data-card=Requirements] tbody tr')].map((r) => r.innerText.replace(/\\s+/g, ' '))"
    wait_for(lambda: len(at.value(rows)) == 3, 20)
    assert [row.strip() for row in at.value(rows)] == [
        "peak force ✓ met 724 N 2000 1276", "in time ✗ VIOLATED 12 s 10 -2", "tilt at completion … not judged – deg 2000 –",
    ]  # fmt: skip
    margin = "document.querySelector('.hil-margin span').style.width"
    assert at.value(margin) == "64%", "of the limit: 1276 of 2000"
    assert "RT-2 , sideways".replace(" ,", ",") in at.text and "Waits for you: next: RT-2" in at.text
    at.click("[data-give=start]")
    wait_for(lambda: run.taken and run.taken[-1] == ("start", {}), 20)
    # delays one after another: each begins where the last has ended, the total from zero to their sum
    bars = at.value(
        "[...document.querySelectorAll('.hil-ledger > div')].map((r) => [r.children[0].innerText, r.children[1].firstChild.style.left,"
        " r.children[1].firstChild.style.width].map((x) => parseFloat(x) || (x.endsWith('%') ? 0 : x)))"
    )
    ledger = run.recording.log.header.delay_ledger
    assert [name for name, *_ in bars] == list(ledger)
    total = next(width for name, _, width in bars if name == "total")
    for name, _, width in bars:
        assert width == pytest.approx(total * abs(ledger[name]) / ledger["total"], abs=0.02), name
    # the value in force, not the one asked for; what is asked for goes out as it is declared
    assert "compensation.gain" in at.text and at.value("document.querySelector('.hil-card form').closest('tr').innerText.includes('0.875')")
    at.value("window.sent = []; const send = WebSocket.prototype.send;"
             "WebSocket.prototype.send = function (text) { window.sent.push(text); return send.call(this, text); }")  # fmt: skip
    at.value("document.querySelector('form input').value = '1.25'; document.querySelector('form button').click()")
    wait_for(lambda: any('"tune"' in text for text in at.value("window.sent")), 20)
    asked = json.loads(next(text for text in at.value("window.sent") if '"tune"' in text))
    assert asked["args"] == {"number": 3, "value": 1.25}
    at.value("document.querySelector('form input').value = '9'; document.querySelector('form button').click()")
    assert at.value("document.querySelector('form').checkValidity()") is False, "beyond the limit nothing is asked"


def test_envelope_keeps_the_extremes_of_every_pixel_column(page):
    """Against NumPy: 20 000 points of noise on 300 columns."""
    at = page("")
    rng = np.random.default_rng(7)
    t, v = np.sort(rng.uniform(0.0, 299.0, 3000)), rng.normal(size=3000)
    points = np.column_stack([t, v - 0.1, v + 0.1]).round(6)
    found = np.array(at.value(f"window.hilColumns({json.dumps(points.tolist())}, (t) => t, 0, 299)"))
    column = np.floor(points[:, 0] + 0.5)
    assert found[:, 0].tolist() == np.unique(column).tolist()
    for u, low, high in found:
        inside = points[column == u]
        assert low == inside[:, 1].min() and high == inside[:, 2].max()


def test_channels_are_found_by_typing_moved_by_keys_and_kept(page, run, address):
    at = page("")
    chips = "[...document.querySelectorAll('.hil-channels ul button')].map((b) => b.innerText.replace(' ✕', ''))"
    wait_for(lambda: at.value(chips)[:2] == ["F_T[0]", "F_T[1]"], 20)
    at.value("document.querySelector('.hil-channels input').focus()")
    for letter in "kinetic_ene":
        at.key(letter, text=letter)
    at.key("Enter", 13, "\r")
    wait_for(lambda: at.value(chips)[-1] == "kinetic_energy", 20)
    at.value("document.querySelectorAll('.hil-channels ul button')[4].focus()")
    for kind in ("rawKeyDown", "keyUp"):
        at.ask("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", code="ArrowLeft", windowsVirtualKeyCode=37, modifiers=1)
    wait_for(lambda: at.value(chips)[3] == "kinetic_energy", 20)
    at.value("document.querySelectorAll('.hil-channels ul button')[0].focus()")
    at.key("Enter", 13, "\r")
    wait_for(lambda: at.value(chips)[0] == "F_T[1]", 20)
    kept = at.value(chips)
    at.value("document.querySelector('.hil-menu summary').click()")
    wait_for(lambda: "Tunable parameters" in at.value("document.querySelector('.hil-cards').innerText"), 20)
    box = "[...document.querySelectorAll('.hil-cards label')].find((l) => l.innerText.includes('Tunable')).querySelector('input')"
    at.value(f"{box}.click()")
    stored = at.value("localStorage.getItem('hil-layout')")
    at = page("")
    wait_for(lambda: at.value(chips) == kept, 20)
    hidden = "document.querySelector('[data-card=\"Tunable parameters\"]').hidden"
    wait_for(lambda: at.value(hidden), 20)
    # a layout file: what is none is refused in words, what is one is taken
    read = "import('/hil/menu.js').then((m) => [m.layoutOf('[1]'), m.layoutOf('{\"/\": {\"curves\": [1]}}'), m.layoutOf(%s)])"
    found = at.ask("Runtime.evaluate", expression=read % json.dumps(stored), awaitPromise=True, returnByValue=True)["result"]["value"]
    assert found == [None, None, json.loads(stored)]
    at.value("localStorage.removeItem('hil-layout')")
    at = page("")
    wait_for(lambda: at.value(chips)[0] == "F_T[0]" and not at.value(hidden), 20)


def test_instruments_say_inside_and_outside_in_words(page, run):
    at = page("operator")
    limits = load_test(None).initial_conditions["limits"]
    words = "Object.fromEntries([...document.querySelectorAll('.hil-gauge')].map((g) => [g.dataset.gauge, g.querySelector('b').innerText]))"
    corridor = "document.querySelector('.hil-corridor b').innerText"
    shown = "document.querySelector('[data-gauge=rate] output').innerText"
    inside = [-0.7, 0.5 * limits["lateral_y_m"], 0.0, 0.0, 0.0, 0.0, 1.0]
    middle = limits.get("velocity_x_nominal_m_s", 0.0)
    for X, rate, expected, across in (
        (inside, middle + 0.9 * limits["velocity_x_m_s"], "inside", "inside"),
        ([-0.7, 1.1 * limits["lateral_y_m"], *inside[2:]], middle + 1.1 * limits["velocity_x_m_s"], "▲ OUTSIDE", "▲ OUTSIDE"),
    ):
        for names in (("X_TA", "V_TA"), ("X_TA_measured", "V_TA_measured")):
            if names[0] in run.values:
                run.values |= {names[0]: X, names[1]: [rate, 0.0, 0.0, 0.0, 0.0, 0.0]}
        wait_for(lambda r=rate: at.value(shown) == f"{1000 * r:.1f}", 20)  # not the word: the log's own values may be inside as well
        assert at.value(words)["rate"] == expected
        assert at.value(corridor) == across and at.value(words)["roll"] == "inside"
        assert at.value("document.querySelector('.hil-range output').innerText") == "0.700"


def test_dim_and_sound_are_off_until_they_are_asked_for(page, run):
    at = page("operator")
    run.values["contact"] = 0
    dim = "getComputedStyle(document.querySelector('.nicegui-content')).filter"
    wait_for(lambda: at.value("document.querySelector('#sound') !== null"), 20)
    assert at.value(dim) == "none" and not at.value("document.querySelector('#sound').checked")
    at.value("window.hilSounded = 0; window.hilSound('trip')")
    assert at.value("window.hilSounded") == 0
    at.value("document.querySelector('#dim').click(); document.querySelector('#sound').click(); window.hilSounded = 0")
    assert at.value(dim) == "brightness(0.55)"
    assert at.value("getComputedStyle(document.querySelector('#abort')).filter") == "none", "ABORT does not dim"
    wait_for(lambda: at.value("window.hilSounded") == 0, 5)
    run.values["contact"] = 1
    wait_for(lambda: at.value("window.hilSounded") >= 1, 20)
    at.value("document.querySelector('#dim').click(); document.querySelector('#sound').click()")
    assert at.value(dim) == "none"
    run.values["contact"] = 0


def test_again_asks_for_thirty_seconds_before_the_contact(page):
    at = page("operator")
    wait_for(lambda: at.value("document.querySelector('#again')?.offsetParent !== null"), 20)
    at.value("window.sent = []; const send = WebSocket.prototype.send;"
             "WebSocket.prototype.send = function (text) { window.sent.push(text); return send.call(this, text); }")  # fmt: skip
    at.click("#again")
    wait_for(lambda: any('"again"' in text for text in at.value("window.sent")), 20)
    asked = json.loads(next(text for text in at.value("window.sent") if '"again"' in text))
    assert asked["command"] == "again" and asked["args"] == {"before_contact_s": 30}
    wait_for(lambda: at.value("document.querySelector('.hil-answers li')?.innerText.includes('again')"), 20)


@pytest.mark.parametrize("view", ["", "operator"])
def test_the_desk_of_another_is_taken_over_after_a_question(page, run, view):
    run.desk_holder = "Ada (silent for 12 s)"
    try:
        at = page(view)
        button = "document.querySelector('#take-over')"
        wait_for(lambda: at.value(f"{button}?.offsetParent && document.querySelector('.hil-desk').innerText.includes('Ada')"), 20)
        for answer, asked in (("no", []), ("yes", [{"take": True, "over": True}])):
            at.value(f"{button}.scrollIntoView()")
            at.click("#take-over")
            wait_for(lambda: at.value("document.querySelector('#take-over-ask').open"), 20)
            assert "Take the desk from Ada (silent for 12 s)?" in at.value("document.querySelector('#take-over-words').innerText")
            at.click(f"#take-over-{answer}")
            wait_for(lambda: not at.value("document.querySelector('#take-over-ask').open"), 20)
            if asked:
                wait_for(lambda: "this page" in at.value("document.querySelector('.hil-desk').innerText"), 20)
            assert run.desk_asked == asked
        assert at.value("window.hilAnswer") | {"good": True} == at.value("window.hilAnswer")
        assert not at.value(f"Boolean({button}.offsetParent)"), "it is this page's now"
    finally:
        run.desk_holder = ""
        run.desk_asked.clear()


def test_the_address_of_a_log_opens_it_in_every_view(page, log):  # noqa: F811
    for view in ("replay", "mimic", "operator"):
        at = page(f"{view}?log={log}")
        wait_for(lambda at=at: "of 9.00 s" in at.text, 30)
    assert at.value("document.documentElement.lang") == "en" and at.value("document.title") == "Operator - HIL server"


# ------------------------------------------------------------------------------------------------------------ the units


@pytest.mark.parametrize("file", sorted((SHIPPED / "mechanisms").glob("*.toml")), ids=lambda file: file.stem)
def test_every_unit_declares_what_its_mimic_display_shows(file):
    """Projections, panels and bars that the page can draw, and places for all bars of the unit."""
    unit = picture_of(read_tables(file))
    mimic = unit.MIMIC
    assert set(mimic.projections) <= {"side", "top", "axial", "axonometric"} and mimic.projections
    assert {kind for kind, _ in mimic.panels} <= {"bars", "lateral", "arm", "sticks"}
    places = {options["place"] for kind, options in mimic.panels if kind == "bars"}
    assert {bar.place for bar in unit.looks.bars} <= places, "every bar has its panel"


@pytest.mark.alone
@pytest.mark.parametrize("held_s", [0.7, 2.0, 10.0])
def test_data_that_a_bus_holds_up_are_not_live(page, run, held_s):
    """Messages keep coming, twenty a second, and say what was: the page turns grey by the age of the tick, and live again without it."""
    at = page("")
    wait_for(lambda: not at.value("document.body.classList.contains('stale')"), 20)
    grey = """(window.hilHeld = null, new Promise((done) => { const began = performance.now(); const look = () => {
        if (!document.body.classList.contains('stale')) return void setTimeout(look, 5);
        window.hilHeld = performance.now() - began;
        done(); }; look(); }), 0)"""
    at.value(grey)
    run.held_s = held_s
    try:
        wait_for(lambda: at.value("window.hilHeld") is not None, 20)
        print(f"held up by {held_s} s: grey {at.value('window.hilHeld'):.0f} ms after the question")
        wait_for(lambda: at.value("window.hilLink()") in ("old", "lost"), 20)
    finally:
        run.held_s = 0.0
    wait_for(lambda: at.value("window.hilLink()") == "live" and not at.value("document.body.classList.contains('stale')"), 20)


@pytest.mark.alone
def test_data_a_little_late_are_live(page, run):
    at = page("")
    run.held_s = 0.2
    try:
        wait_for(lambda: at.value("[window.hilPicture().age > 190, window.hilLink()]") == [True, "live"], 20)
    finally:
        run.held_s = 0.0
