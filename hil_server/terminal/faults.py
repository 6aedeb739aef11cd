"""Faults of a configuration as a person mends them: with the line of the file in which the key stands.

    docking.toml: wrench.cutof_hz: unknown key ...    becomes    docking.toml:41: wrench.cutof_hz: unknown key ...

The form is that of compilers, which editors and terminals make a link of. A key of a file that the named one extends has that file's name
and line. The line is found by a scan of the text: TOML readers keep no places. A key inside an inline table has the line of the key that
holds the table; one that is missing has the line of its table.
"""

import re
from functools import lru_cache
from pathlib import Path

from hil_server.config import extends
from hil_server.errors import ConfigurationError

FAULT = re.compile(r"(?P<file>(?:^|(?<=: ))[^:\n]+\.toml): (?P<path>variant [^\s:]+|[A-Za-z_][\w.\-\[\]\"]*): ")
NAME = re.compile(r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')""")
KEY = re.compile(rf"\s*({NAME.pattern}(?:\s*\.\s*{NAME.pattern})*)\s*=")
HEADER = re.compile(rf"\s*(\[\[?)\s*({NAME.pattern}(?:\s*\.\s*{NAME.pattern})*)\s*\]")
ROW = re.compile(r"[^\[]+\[\d+\]")
STRING = re.compile(r'''"""|\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#.*''')


def located(fault: str) -> str:
    """A fault with the line behind every file that it names; unchanged where there is none to be found."""

    def with_line(found: re.Match[str]) -> str:
        file, path = _stands(found["file"], found["path"])
        line = line_of(file, path)
        return f"{file}: {path}: " if line is None else f"{file}:{line}: {path}: "

    return FAULT.sub(with_line, fault)


def _stands(file: str, path: str) -> tuple[str, str]:
    """The file that the key at `path` of a configuration file stands in, itself or one that it extends, and the path there."""
    try:
        found, there = extends.whole(Path(file)).where(path)
    except ConfigurationError:
        return file, path
    return (file, path) if path.startswith("variant ") else (str(found), there)


def line_of(file: str, path: str) -> int | None:
    """Line of the key at `path` in a TOML file (`variant RT-02`: of the variant with this number), else of the nearest table about it."""
    try:
        places = _places(file, Path(file).stat().st_mtime_ns)
    except (OSError, ValueError):
        return None
    if path.startswith("variant "):
        return places.get(path)
    path = path.replace('"', "")
    while path:
        if path in places:
            return places[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


@lru_cache(maxsize=8)
def _places(file: str, _written: int) -> dict[str, int]:
    return places(Path(file).read_text(encoding="utf-8"))


def places(text: str) -> dict[str, int]:
    """Path of every table and key of a TOML text → its line, from 1. Rows of an array of tables are `variant[0]`, `variant[1]`, and by the
    name that they have `body.hub`."""
    found: dict[str, int] = {}
    rows: dict[str, int] = {}
    named: dict[str, str] = {}  # row -> the same by its name
    implied: dict[str, int] = {}  # table without a header of its own -> the first one below it
    table, depth, ends = "", 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if ends:  # inside a string of several lines
            _, closed, line = line.partition(ends)
            if not closed:
                continue
            ends = ""
        elif depth == 0:
            if header := HEADER.match(line):
                table = ".".join(_names(header[2]))
                if header[1] == "[[":
                    rows[table] = rows.get(table, -1) + 1
                    found.setdefault(table, number)
                    table = f"{table}[{rows[table]}]"
                else:  # a table of the row that was begun last
                    holder = next((name for name in rows if table.startswith(f"{name}.")), None)
                    table = f"{holder}[{rows[holder]}]{table[len(holder) :]}" if holder else table
                found.setdefault(table, number)
                outer = table
                while outer := outer.rpartition(".")[0]:
                    implied.setdefault(outer, number)
                continue
            if key := KEY.match(line):
                names = _names(key[1])
                for i in range(len(names)):
                    found.setdefault(".".join([table, *names[: i + 1]] if table else names[: i + 1]), number)
                if names == ["name"] and table.endswith("]") and (value := re.search(r"""=\s*["']([\w-]+)["']""", line)):
                    named[table] = f"{table[: table.rindex('[')]}.{value[1]}"
                if names == ["number"] and (value := re.search(r"""["']([^"']*)["']""", line)):
                    found.setdefault(f"variant {value[1]}", number)
        bare = line
        if '"' in line or "'" in line or "#" in line:
            bare = STRING.sub(lambda s: s[0] if len(s[0]) == 3 and s[0][0] in "\"'" else "", line)
            for quotes in ('"""', "'''"):
                if bare.count(quotes) % 2:
                    ends, bare = quotes, bare.partition(quotes)[0]
        depth = max(0, depth + sum(bare.count(c) for c in "[{") - sum(bare.count(c) for c in "]}"))
    by_name = {}
    for path, number in found.items():
        row = ROW.match(path)
        if row and (name := named.get(row[0])):
            by_name[name + path[row.end() :]] = number
    return implied | by_name | found


def _names(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in NAME.findall(dotted)]
