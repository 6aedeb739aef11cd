"""The pages' scripts are scripts, and text that may be anybody's never reaches a parser of HTML: it goes through one place that escapes,
as Python's does."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(ROOT.glob("hil_server/**/*.js"))
# what hands text to the parser of HTML, or to the one of scripts
PARSES = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|srcdoc|\beval\(|new Function|"
    r"set(?:Timeout|Interval)\(\s*[\"'`]|javascript:|v-html"
)
THE_PLACE = ROOT / "hil_server/console/page/markup.js"


def without_comments(script):
    return re.sub(r"^\s*//.*$", "", script, flags=re.MULTILINE)


@pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")
@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_can_be_parsed(file):
    """Without a browser, too: one name declared twice, and a page has no script at all."""
    code = file.read_text(encoding="utf-8")
    checked = subprocess.run(["node", "--check", "--input-type=module"], input=code, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_make_no_markup_of_text(file):
    code = without_comments(file.read_text(encoding="utf-8"))
    found = PARSES.findall(code)
    assert found == (["innerHTML"] if file == THE_PLACE else []), f"{file.name}: fill(element, html`...`) of markup.js escapes"


def test_the_one_place_takes_escaped_markup_only():
    code = without_comments(THE_PLACE.read_text(encoding="utf-8"))
    assert "if (!(markup instanceof Markup)) throw" in code and "element.innerHTML = markup.text;" in code
    # no one else makes Markup: what `html` does not make is text
    for file in SCRIPTS:
        assert file == THE_PLACE or not re.search(r"new Markup|\bMarkup\b", without_comments(file.read_text(encoding="utf-8"))), file.name
    # an attribute stands in double quotes, where escaping holds
    for file in SCRIPTS:
        for template in re.findall(r"html`((?:[^`$]|\$\{[^`]*?\}|\$)*)`", file.read_text(encoding="utf-8")):
            assert not re.search(r"[\w-]=(?:\$\{|')", template), f"{file.name}: {template[:80]}"


def test_python_writes_no_raw_html_into_a_page_of_the_console():
    for file in sorted(ROOT.glob("hil_server/console/**/*.py")):
        code = file.read_text(encoding="utf-8")
        found = re.findall(r"innerHTML|ui\.html\(|ui\.markdown\(|sanitize=False|add_body_html|\.add_slot\(", code)
        assert not found, f"{file.name}: {found}"


def test_a_report_names_the_scripts_that_may_run():
    from hil_server.pages.html import SCRIPTS as OF_REPORTS
    from hil_server.pages.html import beside, document, policy

    page = document("a", ['<table class="sortable"></table>'])
    rule = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert rule == policy([beside("page.js")]) and "default-src 'none'" in rule and "'unsafe-inline'" not in rule.partition("style-src")[0]
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert not any("</script" in beside(name) for name in OF_REPORTS)
    assert "script-src 'none'" in document("a", ["<p>nothing</p>"])
