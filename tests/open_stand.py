"""A stand file for tests of what lies beyond the limits: a shipped stand on which the limits that some overrides widen are that wide."""

import hashlib
import tempfile
from functools import lru_cache
from pathlib import Path

from hil_server.config import files, narrowing, parse_override, toml_text
from hil_server.config.checks import part_table
from hil_server.config.loader import DEFAULT_TEST, SHIPPED, _platform, named_file
from rt_kernels.extends import read_tables


def opened(overrides, programme=None) -> list[str]:
    """The overrides, with another stand file that allows them. programme: the test that they are for, None: the shipped docking."""
    overrides = list(overrides)
    head = read_tables(DEFAULT_TEST if programme is None else named_file(programme))
    settings = dict(parse_override(item) for item in overrides)
    named = settings.get(("test", "stand"), head["test"]["stand"])
    file = SHIPPED / named if (SHIPPED / named).is_file() else Path(named)
    stand = read_tables(file)
    for (role, *rest), value in settings.items():
        table = {"limits": None, "platform": _platform()[0].parameters}.get(rest[0]) if role == "stand" and rest else None
        if role == "stand" and rest[0] in ("limits", "platform") and len(rest) == 2:
            if table is None or rest[1] in narrowing.limits_of(table.values()):
                stand[rest[0]][rest[1]] = value
        elif role in narrowing.GUARDED_ROLES and len(rest) == 1:
            part = settings.get((role, "part"), head.get(role, {}).get("part"))
            if part is not None and rest[0] in narrowing.limits_of(part_table(role, part).parameters.values()):
                stand.setdefault(role, {})[rest[0]] = value
    path = Path(_folder()) / f"{file.stem}_{hashlib.sha256(repr(stand).encode()).hexdigest()[:16]}.toml"
    if not path.exists():
        with files.whole(path) as unfinished:
            unfinished.write_text(toml_text.dumps(stand))
    return [*(item for item in overrides if not item.startswith("test.stand=")), f'test.stand="{path}"']


@lru_cache
def _folder() -> str:
    return tempfile.mkdtemp(prefix="hil-open-stands-")
