"""The page of the reproduced papers: what the library gives today is what stands on it, and every difference from print has its reason."""

import re

import pytest

from tools import papers
from tools.paper_rows import page
from tools.paper_rows.errata import ERRATA
from tools.paper_rows.page import PAGE, Block, Context, table

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
TEXT = PAGE.read_text()
BLOCKS = papers.blocks()


def unit(number):
    """One unit of the last printed digit."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


@pytest.mark.parametrize("block", [b for b in BLOCKS if not b.live], ids=lambda b: b.name)
def test_the_page_is_what_the_library_gives(block):
    context = Context()
    made, found = block.on_page(block.make(context)), block.found(TEXT)
    assert context.unexplained == []
    assert found is not None and NUMBER.sub("#", made) == NUMBER.sub("#", found)
    for new, old in zip(NUMBER.findall(made), NUMBER.findall(found), strict=True):
        assert float(new) == pytest.approx(float(old), rel=1e-6, abs=1.01 * unit(old)), (new, old)


def test_all_blocks_are_on_the_page():
    assert [block.name for block in BLOCKS if block.found(TEXT) is None] == []
    assert "NOT EXPLAINED" not in TEXT
    # what only the command makes is marked for the reader
    assert all("†" in block.found(TEXT) for block in BLOCKS if block.live)


def test_pictures_of_the_page_are_drawn_where_they_are_missing(tmp_path, monkeypatch):
    for module in (papers, page):
        monkeypatch.setattr(module, "PICTURES", tmp_path)
    drawn = {name for block in BLOCKS if block.name == "002.constraints" for name in re.findall(r"papers/(\w+\.svg)", block.found(TEXT))}
    monkeypatch.setattr(papers, "blocks", lambda: [block for block in BLOCKS if block.name == "002.constraints"])
    papers.draw()
    assert drawn and {file.name for file in tmp_path.iterdir()} == drawn
    before = [file.stat().st_mtime_ns for file in tmp_path.iterdir()]
    papers.draw()
    assert [file.stat().st_mtime_ns for file in tmp_path.iterdir()] == before


def test_errata_name_tests_that_exist():
    for rows in ERRATA.values():
        for number, *_, file, function in rows:
            assert re.search(rf"^def {function}\(", (PAGE.parents[1] / file).read_text(), re.MULTILINE), (number, function)


def test_a_difference_without_a_reason_is_found(tmp_path, monkeypatch, capsys):
    context = Context()
    assert context.compare("f", 1.0, 1.001, 2e-3, ".3f")[3] == "agrees within 0.2 %" and context.unexplained == []
    assert "because" in context.compare("f", 1.0, 1.1, 2e-3, ".3f", "because")[3] and context.unexplained == []
    context.compare("f", 1.0, 1.1, 2e-3, ".3f")
    context.zero("g", 1e-3, 1e-6)
    context.zero("h", float("nan"), 1e-6)
    context.holds("i", "yes", False, "no")
    assert context.unexplained == ["f", "g", "h", "i"]
    # the command: makes one block, keeps the others, answers 1 for what is not explained
    written = tmp_path / "papers.md"
    monkeypatch.setattr(papers, "PAGE", written)

    class Module:
        value = 1.0
        BLOCKS = [Block("000.one", lambda c: table(["a", "b", "c", "d"], [c.compare("size", 1.0, Module.value, 1e-3, ".2f")])),
                  Block("000.two", lambda c: ["two"])]

    monkeypatch.setattr(papers, "PAPERS", {"000": (Module, "## Title")})
    assert papers.main([]) == 0 and papers.main(["--check"]) == 0
    Module.value = 2.0
    assert papers.main(["--check"]) == 1
    assert "000.one is not what the library gives" in capsys.readouterr().err
    assert papers.main(["--block", "000.one"]) == 1
    text = written.read_text()
    assert "NOT EXPLAINED" in text and "two" in text and text.startswith("# The papers, reproduced")
