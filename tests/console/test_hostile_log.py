"""A stranger's log: names and texts that are markup, in every place that a log has for text, on every page that shows one. Nothing of it
runs, nothing is asked of anybody, no command reaches the stand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hil_server.config import SHIPPED, load_test, test_from_toml
from hil_server.console.recording import Recording
from hil_server.log.reader import read_log
from hil_server.log.writer import LogWriter
from hil_server.report.comparison import compare
from hil_server.report.programme_page import ProgrammePage
from hil_server.report.run_page import make_report
from hil_server.run.session import Options, simulate
from tests.console.chromium import wait_for
from tests.console.fake_run import FakeRun
from tests.console.test_console import browser, start_console  # noqa: F401  fixtures

CANARY = "http://127.0.0.1:9/canary"
RUNS = f"window.hilCanary=1;fetch('{CANARY}');window.hilCommand?.('start')"
PAYLOADS = (
    f'<img src=x onerror="{RUNS}">',
    f'"><img src=x onerror="{RUNS}">',
    f"'><img src=x onerror=\"{RUNS}\">",
    f"<script>{RUNS}</script>",
    f"</script><script>{RUNS}</script>",
    f'<svg onload="{RUNS}"></svg>',
    f'<svg><animate onbegin="{RUNS}" attributeName=x dur=1s></svg>',
    f'<details open ontoggle="{RUNS}">x</details>',
    f'<iframe srcdoc="<script>parent.{RUNS}</script>"></iframe>',
    f"<iframe src=\"javascript:parent.{RUNS}\"></iframe>",
    f'<input autofocus onfocus="{RUNS}">',
    f'<video><source onerror="{RUNS}"></video>',
    f"<link rel=stylesheet href={CANARY}>",
    f"<style>@import url({CANARY});</style>",
    f'<meta http-equiv=refresh content="0;url={CANARY}">',
    f"<base href={CANARY}/><script src=x></script>",
    f"<object data={CANARY}></object><embed src={CANARY}>",
    f"{{{{constructor.constructor(`{RUNS}`)()}}}}",
    f'" autofocus onfocus="{RUNS}" x="',
    f"</title></textarea></style><!-- --><math><mtext><img src=x onerror=\"{RUNS}\">",
)
ALL = " ".join(PAYLOADS)
# elements that are on a page only when a text became markup
MADE = "[onerror], [onload], [onbegin], [ontoggle], [onfocus], iframe, object, embed, base, math, animate, [src*=canary], [href*=canary]"


def hostile_header(header):
    """The same run with the payloads in all its texts."""
    config = test_from_toml(header.configuration["configuration.toml"])
    document = json.loads(json.dumps(config.document))
    row = {"signal": "F_T", "limit": "< 1 MN"}
    named = []
    for i, payload in enumerate(PAYLOADS):
        named.append({"name": f"r{i} {payload}", "source": payload, "description": payload, **row})

    def spoil(table):
        for key, value in table.items():
            if isinstance(value, dict):
                spoil(value)
            elif key in ("name", "notes", "description", "source", "serial", "date", "model_source", "owner") and isinstance(value, str):
                table[key] = ALL

    spoil(document)
    document.pop("requirement", None)  # they name channels as they were called
    document["test"]["name"] = document["test"]["notes"] = ALL
    names = iter(range(10**6))
    aux = tuple(replace(one, unit=PAYLOADS[next(names) % 20], meaning=ALL) for one in header.aux)
    aux = tuple(replace(one, name=f"{one.name} {PAYLOADS[i % 20]}") for i, one in enumerate(aux))
    facts = {f"{i} {payload}": payload for i, payload in enumerate(PAYLOADS)}
    ours = replace(config, document=document)
    tunables = [{"number": i, "name": payload, "unit": payload, "low": 0.0, "high": 1.0, "rate_per_s": 1.0, "phases": [], "value": 0.5,
                 "meaning": payload} for i, payload in enumerate(PAYLOADS)]  # fmt: skip
    return replace(
        header, run_id=ALL, build_id=ALL, mode="simulation", synthetic=ALL, aux=aux, notes=[*PAYLOADS, f"joints: {ALL}"],
        host=facts | {"kernel": ALL, "stand": ALL}, delay_ledger={f"{i} {p}": 0.001 for i, p in enumerate(PAYLOADS)}, delay_origins=facts,
        prediction={"verdict": ALL, "text": ALL}, configuration={"configuration.toml": ours.as_toml(), **facts},
    ), tunables, named  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two hostile logs and what a live run would tell: folder, paths, tunables, requirements."""
    folder = tmp_path_factory.mktemp("strangers")
    settings = ["test.duration_max_s=0.2"]
    test = load_test(SHIPPED / "programmes" / "virtual_docking.toml", settings)
    plain = read_log(simulate(test, Options(out=str(folder / "plain"), quiet=True, report=False))["log"])
    header, tunables, rows = hostile_header(plain.header)
    paths = []
    for name in ("first", "second"):
        path = folder / name / "run.mcap"
        path.parent.mkdir()
        writer = LogWriter(path, header)
        writer.write(plain.records)
        writer.close({"end": ALL, "verdict": ALL})
        paths.append(path)
    Path(plain.path).unlink()
    return folder, paths, tunables, rows


@pytest.fixture(scope="module")
def run(logs):
    """A live run whose every word is hostile, too."""
    _, paths, tunables, rows = logs
    recording = Recording(paths[0])
    found = [{"name": row["name"], "verdict": PAYLOADS[i % 20], "value": 1.0, "limit": 2.0, "margin": 1.0, "unit": row["source"],
              "time_s": 1.0, "phase": "contact", "source": row["source"], "words": ALL} for i, row in enumerate(rows)]  # fmt: skip
    made = FakeRun(recording, recording.log.header.configuration["configuration.toml"], tunables, found)
    yield made
    made.close()


def clean(browser, where):  # noqa: F811
    """Nothing ran, nothing was made of the texts, no one was asked."""
    assert browser.value("window.hilCanary") is None, where
    assert browser.value(f"[...document.querySelectorAll({json.dumps(MADE)})].map((e) => e.outerHTML.slice(0, 200))") == [], where
    assert not [url for url in browser.requests if "canary" in url], where


@pytest.fixture(scope="module")
def address(logs, run, start_console):  # noqa: F811
    folder = logs[0]
    names = [{"variant": p, "state": p, "result": p, "description": p, "verdict": p} for p in PAYLOADS]
    (folder / "programme.json").write_text(json.dumps({"programme": ALL, "ended": False, "held": True, "variants": names}))
    return start_console("--logs", str(folder), "--telemetry", run.telemetry, "--command", run.command, "--hand", "tcp://127.0.0.1:1")


@pytest.mark.parametrize("view", ["", "operator", "mimic"])
def test_no_text_of_a_run_runs_on_its_pages(run, address, browser, view):  # noqa: F811
    browser.go(address + view)
    wait_for(lambda: browser.value("window.hilLink?.()") == "live" and browser.value("document.querySelectorAll('canvas').length") > 0, 60)
    if view == "":
        wait_for(lambda: "onerror=" in browser.text, 60)  # the texts are there, as text
    clean(browser, view)
    assert run.taken == []


@pytest.fixture
def replay(logs, address, browser):  # noqa: F811
    """The page of a log, drawn."""
    browser.go(f"{address}replay?log={logs[1][0]}")
    wait_for(lambda: browser.value("window.hilLink?.()") == "log", 60)
    return browser


def test_no_text_of_a_log_runs_in_replay(run, replay):
    wait_for(lambda: replay.value("document.querySelectorAll('datalist option').length") > 100, 60)
    offered = replay.value("[...document.querySelectorAll('datalist option')].map((option) => option.value)")
    assert any("onerror" in name for name in offered)
    wait_for(lambda: replay.value("document.querySelectorAll('.hil-values td').length") > 100, 60)
    assert "onerror=" in replay.text
    clean(replay, "replay")
    assert run.taken == []


def test_the_page_of_a_log_has_no_way_to_the_stand(run, replay):
    """Not even for a script that would run in it: its own line, another page, another pane, a window, the button to abort."""
    for name in ("start", "abort"):
        replay.value(f"window.hilCommand('{name}')")
        wait_for(lambda: "gives no commands" in (replay.value("window.hilAnswer?.answer") or ""), 20)
    replay.value("(window.found = '', fetch('/').then((r) => r.text()).then((t) => (window.found = t)).catch(String), 0)")
    replay.value("{ const s = new WebSocket(`ws://${location.host}/live/other`); s.onerror = () => (window.hilShut = 1); 0 }")
    replay.value("(fetch('/abort', {method: 'POST'}).catch(() => (window.refused = 1)), 0)")
    wait_for(lambda: replay.value("window.refused") == 1, 20)
    wait_for(lambda: replay.value("window.hilShut") == 1, 20)
    assert replay.value("window.found") == "" and replay.value("String(window.open('/'))") == "null"
    # and past the script's own refusal: the console itself refuses what comes over the page's line
    for name in ("recover", "hold"):
        replay.value(f"(import('/hil/live.js').then((live) => live.send({{ command: '{name}', args: {{}} }})), 0)")
        wait_for(lambda name=name: (replay.value("window.hilAnswer?.answer") or "").startswith(f"{name}: this page shows a log"), 20)
    assert run.taken == []


def written(kind, folder, paths):
    """The page of this kind."""
    if kind == "report":
        return Path(make_report(paths[0], folder / "report"))
    if kind == "comparison":
        compare(paths[0], paths[1], folder / "both.html")
        return folder / "both.html"
    texts = ("number", "expect", "verdict", "R1", "end", "description")
    rows = [dict.fromkeys(texts, payload) | {"log": str(paths[0]), "report": str(folder / f"javascript:{i}.html"), "faults": [payload],
            "passed": False, "requirements": []} for i, payload in enumerate(PAYLOADS)]  # fmt: skip
    programme = ProgrammePage(ALL, [(p, p, "") for p in PAYLOADS], folder)
    for row in rows:
        programme.add(row)
    return programme.write()


@pytest.mark.parametrize("kind", ["report", "comparison", "programme"])
def test_no_text_of_a_log_runs_in_a_page_of_its_own(logs, browser, kind):  # noqa: F811
    page = written(kind, logs[0], logs[1])
    browser.requests.clear()
    browser.go(page.as_uri())
    wait_for(lambda: browser.value("document.readyState") == "complete" and "onerror=" in browser.text, 60)
    clean(browser, kind)
    assert browser.value("document.querySelector('meta[http-equiv=Content-Security-Policy]').content").startswith("default-src 'none'")
