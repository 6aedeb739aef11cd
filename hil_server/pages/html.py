"""Pieces of an HTML page: style, sections, tables."""

import html
from collections.abc import Iterable
from typing import Any

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1b1f24; background: #fff; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #d0d5da; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { text-align: left; padding: .2rem .7rem .2rem 0; vertical-align: top; border-bottom: 1px solid #eceff2; }
td.n { text-align: right; }
img { max-width: 100%; } .note { color: #5b6570; } .good { color: #006b4f; } .bad { color: #b00020; }
.banner { border-left: 5px solid #e69f00; background: #fff7e6; padding: .5rem .8rem; margin: .8rem 0; }
.banner.bad { border-color: #b00020; background: #fdecee; }
@media print { body { max-width: none; } h2 { break-after: avoid; } img, table { break-inside: avoid; } }
"""


def document(title: str, body: Iterable[str]) -> str:
    """The whole page; body: its elements, as HTML."""
    head = f'<meta charset="utf-8"><title>{text(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>' + "\n".join(body) + "</body></html>"


def text(value: Any) -> str:
    """The value as text of a page: what HTML would read as markup is escaped."""
    return html.escape(str(value))


def section(title: str, body: str) -> str:
    """A section; `body` is HTML already, the title is not."""
    return f"<section><h2>{text(title)}</h2>{body}</section>"


def table_html(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Numbers to the right, text to the left."""
    top = "".join(f"<th>{text(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table>{'<tr>' + top + '</tr>' if top else ''}{body}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return '<td class="n">–</td>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}</td>"
    if isinstance(value, int | float):
        return f'<td class="n">{_number(value)}</td>'
    return f"<td>{text(value)}</td>"


def _number(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    if value == 0.0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    return f"{value:.3e}"
