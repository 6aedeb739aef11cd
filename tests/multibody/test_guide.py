"""The page on trees of bodies: its examples are run as they stand, one after the other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "multibody.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    pytest.importorskip("yourdfpy")
    assert len(EXAMPLES) >= 9
    (tmp_path / "arm.urdf").write_text(re.search(r"^```xml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, example in enumerate(EXAMPLES):
        exec(compile(example, f"docs/multibody.md, example {number}", "exec"), names)
