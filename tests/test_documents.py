"""The guides: every link leads somewhere, every verb and option that they show exists."""

import re
from pathlib import Path

import pytest

from hil_server import cli

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        assert target.startswith("https://") or (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_verbs_exist(document):
    for verb in re.findall(r"`hil-server ([a-z][a-z-]*)", document.read_text()):
        assert verb in cli.offered(), verb


def test_the_guides_show_every_verb_that_is_offered():
    shown = " ".join(d.read_text() for d in DOCUMENTS)
    assert [v for v in cli.offered() if not re.search(rf"`(hil-server )?{v}\b", shown)] == []
