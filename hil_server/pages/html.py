"""Pieces of an HTML page: the whole page with its contents, sections, tables, verdicts. Style and scripts stand beside this file and go
into every page, which needs no network."""

import base64
import hashlib
import html
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from hil_server.errors import reason_of

HERE = Path(__file__).parent
# what a page must hold for a script of this folder to go into it
SCRIPTS = {"page.js": 'class="sortable"', "curves.js": '<figure class="plot"', "space.js": '<figure class="scene"',
           "scene.js": '<figure class="scene"'}  # fmt: skip
SYMBOLS = {"good": "✓", "warn": "!", "bad": "✗"}  # beside the colour: not everybody sees it


class Section(str):
    """A section as HTML, that knows its heading and its anchor: the contents of the page list it."""

    heading: str
    anchor: str


class Number(str):
    """A figure that is written already (`12.3 %`): it stands to the right, as numbers do. sort: what a table is sorted by."""

    sort: float | None

    def __new__(cls, words: str, sort: float | None = None) -> "Number":
        """The words and what they are sorted by."""
        made = super().__new__(cls, words)
        made.sort = sort
        return made


class Markup(str):
    """HTML in a cell of a table: it is not escaped."""


@cache
def beside(name: str) -> str:
    """A file of this folder: style or script."""
    return (HERE / name).read_text(encoding="utf-8")


def document(title: str, body: Iterable[str]) -> str:
    """The whole page; body: its elements, as HTML. With two `Section` or more it begins with its contents, which stay in sight."""
    parts = list(body)
    listed = [part for part in parts if isinstance(part, Section)]
    if len(listed) > 1:
        links = "".join(f'<a href="#{part.anchor}">{text(part.heading)}</a>' for part in listed)
        parts.insert(0, f'<nav class="contents" aria-label="Contents"><a href="#top">Top</a>{links}</nav>')
    whole = "\n".join(parts)
    own = [beside(name) for name, mark in SCRIPTS.items() if mark in whole]
    scripts = "".join(f"<script>{script}</script>" for script in own)
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy(own)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{text(title)}</title><style>{beside("page.css")}</style>'
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main id="top">{whole}</main>{scripts}</body></html>'


def policy(scripts: Iterable[str]) -> str:
    """What a browser lets the page do (Content-Security-Policy): run these very scripts, show what is in the page, no network requests.
    A name that became markup by a mistake of ours would still not run."""
    sums = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts) or "'none'"
    return f"default-src 'none'; script-src {sums}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def text(value: object) -> str:
    """The value as text of a page: what HTML would read as markup is escaped."""
    return html.escape(str(value))


def section(title: str, body: str, anchor: str = "") -> Section:
    """A section; `body` is HTML already, the title is not. anchor: made of the title where none is given."""
    anchor = anchor or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
    made = Section(f'<section id="{text(anchor)}"><h2>{text(title)}</h2>{body}</section>')
    made.heading, made.anchor = title, anchor
    return made


def table_html(head: Iterable[str], rows: Iterable[Iterable[object]], sortable: bool = False) -> str:
    """Numbers to the right, text to the left. sortable: by a click on a head."""
    body_rows = [list(row) for row in rows]
    heads = list(head)
    right = [any(_is_number(row[i]) for row in body_rows if i < len(row)) for i in range(len(heads))]
    top = "".join(f'<th scope="col"{" class=n" if n else ""}>{text(cell)}</th>' for cell, n in zip(heads, right, strict=True))
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in body_rows)
    kind = ' class="sortable"' if sortable else ""
    return f'<div class="table"><table{kind}>{"<tr>" + top + "</tr>" if top else ""}{body}</table></div>'


def verdict_html(level: str, word: str, line: str) -> str:
    """The outcome, in colour, sign and word. level: good, warn or bad."""
    return f'<p class="verdict {text(level)}"><b>{SYMBOLS[level]} {text(word)}</b> {text(line)}</p>'


def guarded(title: str, make: Callable[[], Sequence[str]], alone: bool = True) -> list[str]:
    """The elements that `make` gives, as HTML; where it fails, a section (alone) or a line that names them and the reason: a part of a page
    that cannot be had costs no other."""
    try:
        return list(make())
    except Exception as error:
        line = f'<p class="banner">{text(title)}: not available: {text(reason_of(error))}.</p>'
        return [section(title, line) if alone else line]


def pill(level: str, words: str) -> Markup:
    """A short word in colour and sign; level: good, warn, bad or "" for neither."""
    sign = f"{SYMBOLS[level]} " if level else ""
    return Markup(f'<span class="pill {text(level)}">{sign}{text(words)}</span>')


def facts_html(rows: Iterable[tuple[str, object]]) -> str:
    """Facts as a list of terms; those without a value are left out."""
    there = [(name, value if isinstance(value, Markup) else text(value)) for name, value in rows if value]
    return f'<dl class="facts">{"".join(f"<dt>{text(name)}</dt><dd>{value}</dd>" for name, value in there)}</dl>'


def bars_html(rows: Sequence[tuple[str, str, float | None, str]]) -> str:
    """Margins as bars: (name, words beside it, share of the limit that is used or None, level). A mark stands at the limit."""
    found = []
    for name, words, used, level in rows:
        sign = f'<span class="{level}">{SYMBOLS[level]}</span> ' if level else ""
        bar = ""
        if used is not None:
            scale = max(1.0, used)  # what is beyond its limit shows by how much, up to three times
            full, mark = min(1.0, max(0.0, used) / min(scale, 3.0)), 1.0 / min(scale, 3.0)
            bar = (
                f'<span class="bar {level}" role="img" aria-label="{100 * used:.0f} % of the limit used">'
                f'<i style="width:{100 * full:.1f}%"></i><u style="left:calc({100 * mark:.1f}% - 2px)"></u></span>'
            )
        found.append(f"<li><span>{sign}{text(name)}</span><span>{text(words)}</span>{bar}</li>")
    return f'<ul class="margins">{"".join(found)}</ul>'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Number) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return '<td class="n">–</td>'
    if isinstance(value, Markup):
        return f"<td>{value}</td>"
    if isinstance(value, Number):
        key = "" if value.sort is None else f' data-sort="{value.sort:.9g}"'
        return f'<td class="n"{key}>{text(value)}</td>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="n" data-sort="{value:.9g}">{_number(value)}</td>'
    return f"<td>{text(value)}</td>"


def percent(share: float | None) -> Number | None:
    """A fraction as pages and screens write it."""
    return None if share is None else Number(f"{100.0 * share:.2f} %", share)


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return f"{value:.3e}"
