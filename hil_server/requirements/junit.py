"""Results as JUnit XML, which build servers show: a suite a test, a case a requirement.

The dialect is the one that Jenkins, GitLab and `junitparser` read: `testsuites` of `testsuite` with counts, `testcase` with a `failure` or
`skipped`; the margin is in the properties of the case and in its words.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil_server.errors import UsageError
from hil_server.requirements.result import NOT_JUDGED, VIOLATED
from hil_server.values import Given

ILLEGAL = {code: "\ufffd" for code in (*range(0x20), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)) if chr(code) not in "\t\n\r"}


@dataclass
class Case:
    """One case. outcome: "passed", "failed" or "skipped"; words: why; facts: its properties."""

    name: str
    outcome: str
    words: str = ""
    facts: Given = field(default_factory=dict)


@dataclass
class Suite:
    """The cases of one test. seconds: how long it ran."""

    name: str
    cases: Sequence[Case]
    seconds: float = 0.0
    facts: Given = field(default_factory=dict)


def suite_of(name: str, summary: Given, more: Iterable[Case] = ()) -> Suite:
    """The suite of one run: how it ended, what else is asked of it (`more`), and every requirement of its summary."""
    undone = summary.get("not_confirmed", ())
    failed = summary.get("end") in ("tripped", "record_lost") or bool(undone)
    cause = (summary.get("cause") or {}).get("text") or ", ".join([*summary.get("faults", ()), *undone])
    message = f"ended: {summary.get('end')}" + (f": {cause}" if failed else "")
    ended = [] if more else [Case("run", "failed" if failed else "passed", message)]
    facts = {key: summary[key] for key in ("run", "mode", "end", "log") if summary.get(key)}
    rows = [case_of(row) for row in summary.get("requirements") or ()]
    return Suite(name, [*ended, *more, *rows], float(summary.get("duration_s") or 0.0), facts)


def case_of(row: Given) -> Case:
    """The case of one result."""
    outcome = {VIOLATED: "failed", NOT_JUDGED: "skipped"}.get(row["verdict"], "passed")
    facts = {key: row[key] for key in ("value", "limit", "margin", "unit", "time_s", "phase", "source") if row.get(key) not in (None, "")}
    return Case(row["name"], outcome, row["words"], facts)


def write(file: str | Path, name: str, suites: Sequence[Suite]) -> None:
    """Writes the file. Raises UsageError when it cannot be written."""
    cases = [case for suite in suites for case in suite.cases]
    root = ElementTree.Element("testsuites", _counts(cases, name, sum(suite.seconds for suite in suites)))
    for suite in suites:
        node = ElementTree.SubElement(root, "testsuite", _counts(suite.cases, suite.name, suite.seconds))
        _properties(node, suite.facts)
        for case in suite.cases:
            one = ElementTree.SubElement(node, "testcase", {"name": _text(case.name), "classname": _text(suite.name), "time": "0"})
            _properties(one, case.facts)
            if case.outcome == "failed":
                ElementTree.SubElement(one, "failure", {"message": _text(case.words), "type": "requirement"}).text = _text(case.words)
            elif case.outcome == "skipped":
                ElementTree.SubElement(one, "skipped", {"message": _text(case.words)})
            elif case.words:
                ElementTree.SubElement(one, "system-out").text = _text(case.words)
    tree = ElementTree.ElementTree(root)
    ElementTree.indent(tree)
    try:
        tree.write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise UsageError(f"--junit {file}: cannot be written: {error.strerror}") from error


def _counts(cases: Sequence[Case], name: str, seconds: float) -> dict[str, str]:
    failed, skipped = (sum(case.outcome == outcome for case in cases) for outcome in ("failed", "skipped"))
    return {"name": _text(name), "tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped),
            "time": f"{seconds:.3f}"}  # fmt: skip


def _properties(node: ElementTree.Element, facts: Given) -> None:
    if facts:
        inner = ElementTree.SubElement(node, "properties")
        for key, value in facts.items():
            ElementTree.SubElement(inner, "property", {"name": key, "value": _text(str(value))})


def _text(text: str) -> str:
    """Without the characters that XML 1.0 does not have."""
    return text.translate(ILLEGAL)
