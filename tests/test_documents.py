"""The guides: every link, picture and path leads somewhere, every verb that they show exists, every work that the tree cites is listed."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil_server import cli
from hil_server.report import reliance
from rt_kernels.layout import FAULTS
from tools import generate_pages, make_site

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BIBLIOGRAPHY = ROOT / "docs" / "bibliography.md"
# Author and year; a requirement; a standard or manual; notes. Line ends count as blanks.
NAME = r"(?:Mc)?[A-Z][a-z]+(?:-[A-Z][a-z]+)?"
CITATION = re.compile(
    rf"\b(?:{NAME} and {NAME}|{NAME} et al\.|{NAME}),? \(?(?:19|20)\d\d(?=[;,):.' ]|$)|R-St-\d\d|\bATI 9[\w/-]+(?: (?:FT|Axia))?"
    r"|\b(?:CiA|ISO|IEC|RFC) [1-9][\d-]*\d|\bIDSS IDD\b|\bFMI [23]\.0\b|hybrid-stability notes"
)
NO_WORK = {"Version", "January", "March", "April", "June", "July", "September", "October", "November", "December"}
PLACES = ("hil_server", "rt_kernels", "drivers", "stand_configs", "tests", "tools")
CITING = {".py", ".pyx", ".pxd", ".pxi", ".inc", ".c", ".h", ".toml", ".csv", ".md", ".js"}

DRAWN = re.compile(r"pictures/.+\.svg")  # by tools, for the site (docs/conf.py)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        assert target.startswith("https://") or (document.parent / target).exists() or DRAWN.fullmatch(target), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_verbs_exist(document):
    for verb in re.findall(r"`hil-server ([a-z][a-z-]*)", document.read_text()):
        assert verb in cli.offered(), verb


def test_the_guides_show_every_verb_that_is_offered():
    shown = " ".join(d.read_text() for d in DOCUMENTS)
    assert [v for v in cli.offered() if not re.search(rf"`(hil-server )?{v}\b", shown)] == []


def test_committed_pictures_are_shown_and_small():
    shown = {p for d in DOCUMENTS for p in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", d.read_text())}
    assert {"docs/stand.svg", "docs/architecture.svg", "docs/console.png", "docs/operator.png", "docs/report.png"} <= shown
    assert [p.name for kind in ("svg", "png") for p in ROOT.glob(f"docs/*.{kind}") if p.stat().st_size > 150_000] == []


def test_every_hazard_names_tests_and_fault_bits_that_exist():
    log = generate_pages.hazards()
    faults = {name: severity for name, _, severity, *_ in FAULTS}
    for one in log:
        assert set(one) == {"hazard", "cause", "here", "outside", "faults", "tests"} and all(one[key] for key in one if key != "faults")
        assert set(one["faults"]) <= set(faults), one["hazard"]
        for place in one["tests"]:
            file, _, name = place.partition("::")
            assert re.search(rf"(?m)^def {name}\(", (ROOT / file).read_text()), place
    named = {name for one in log for name in one["faults"]}
    left = [name for name, severity in faults.items() if severity != "note" and name not in named]
    assert left == [], "barrier of no hazard: docs/hazards.toml"


def test_report_and_page_say_the_same_about_what_is_not_relied_on():
    page = (ROOT / "docs" / "safety.md").read_text()
    assert page.count("\n* **") == len(reliance.NOT_RELIED_ON)


def test_the_site_has_every_page_in_its_contents():
    listed = runpy.run_path(str(ROOT / "docs" / "conf.py"))["contents"]().split("\n")
    pages = [str(page.relative_to(ROOT).with_suffix("")) for page in DOCUMENTS if page.name != "README.md"]
    assert [page for page in pages if listed.count(page) != 1] == []
    assert [page for page in listed if "/" in page and not (ROOT / f"{page}.md").exists()] == []


def test_the_index_has_every_page_once():
    listed = re.findall(r"^\* .*?\]\((\S+?\.md)\)", (ROOT / "docs" / "README.md").read_text(), re.M)
    pages = [page.name for page in ROOT.glob("docs/*.md") if page.name not in ("README.md", "bibliography.md")]
    assert sorted(listed) == sorted([*pages, "../rt_kernels/CHANNELS.md"])


def test_the_site_shows_a_picture_where_it_was_drawn(tmp_path):
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    conf["with_pictures"].__globals__["ROOT"] = tmp_path
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.svg").write_text("<svg/>")
    noted = []
    app = SimpleNamespace(env=SimpleNamespace(note_dependency=noted.append))
    text = "".join(f"<!-- picture: {name}.svg -->\n*Seen* (`make docs` draws it)\n\n![Curve]({name}.svg)\n\n" for name in ("there", "gone"))
    source = [text]
    conf["with_pictures"](app, "docs/page", source)
    assert source[0].split("\n\n") == [
        "![Seen](there.svg)", "![Curve](there.svg)",
        "<!-- picture: gone.svg -->\n*Seen* (`make docs` draws it)", "*Curve* (not drawn here)", "",
    ]  # fmt: skip
    assert {Path(file).name for file in noted} == {"there.svg", "gone.svg"}


def test_links_of_the_site_that_lead_nowhere_are_found(tmp_path):
    """`tools/make_site.py` follows every link of the site after it is built (.ci/run)."""
    (tmp_path / "one.html").write_text(
        '<h1 id="here">1</h1><a href="two.html#there">2</a><a href="#here">3</a><img src="none.png"><a href="https://elsewhere/x">4</a>'
        '<a href="two.html#nowhere">5</a><a href="gone.html">6</a><script src="https://elsewhere/x.js"></script>'
    )
    (tmp_path / "two.html").write_text('<p id="there"></p><a href="one.html">1</a>')
    assert sorted(make_site.broken(tmp_path)) == [
        "one.html: gone.html", "one.html: loads https://elsewhere/x.js", "one.html: none.png", "one.html: two.html#nowhere"
    ]  # fmt: skip


def citations(text):
    """Keys as the bibliography has them: `Horiuchi and Konno 2001`, `CiA 402`."""
    for found in CITATION.findall(re.sub(r"\s*\n[\s#*>]*", " ", text)):
        key = re.sub(r",? \(?((?:19|20)\d\d)$", r" \1", found)
        if key.split()[0] not in NO_WORK:
            yield key


def test_citations_are_found():
    text = "(Tian et al.\n    2010, (5)); Merlet, 2006, see Kane (1981), CiA 402, R-St-20...25, ATI 9620-05-NET FT, Munthe-Kaas 1998"
    keys = ["Tian et al. 2010", "Merlet 2006", "Kane 1981", "CiA 402", "R-St-20", "ATI 9620-05-NET FT", "Munthe-Kaas 1998"]
    assert list(citations(text)) == keys


def test_every_work_that_is_cited_is_in_the_bibliography_and_every_entry_is_cited():
    files = [f for place in PLACES for f in ROOT.joinpath(place).rglob("*") if f.suffix in CITING and "build" not in f.parts]
    written = [f for f in files if f.suffix != ".c" or not f.with_suffix(".pyx").exists()]
    files = [f for f in (*DOCUMENTS, *written) if f not in (BIBLIOGRAPHY, Path(__file__).resolve())]
    entries = set(re.findall(r"\*\*([^*]+)\*\*", BIBLIOGRAPHY.read_text()))
    cited = {key: file for file in files for key in citations(file.read_text())}
    assert {key: str(file) for key, file in cited.items() if key not in entries} == {}
    assert entries - set(cited) == {"R-St-25"}  # the end of a range
