"""The programme that a run belongs to, as its own file tells it."""

import json
from pathlib import Path

from hil_server.log.format import Facts
from hil_server.run.programme import PROGRESS


def newest_programme(folder: Path) -> Facts | None:
    """What the programme that was written last below `folder` says of itself, None when there is none."""
    files = [*folder.glob(PROGRESS), *folder.glob(f"*/{PROGRESS}")]
    try:
        newest = max(files, key=lambda file: file.stat().st_mtime)
        return dict(json.loads(newest.read_text()))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def shown(found: Facts | None) -> dict[str, object] | None:
    """The programme for the page: title, rows, which comes next, whether it waits for `start`; None for what is no programme.

    A row that is damaged is left out."""
    if found is None or not isinstance(found.get("variants"), list):
        return None
    rows = [row for row in found["variants"] if isinstance(row, dict) and {"state", "variant"} <= row.keys()]
    done = [row for row in rows if row["state"] == "done"]
    passed = sum(row.get("result") == "passed" for row in done)
    following = next((row for row in rows if row["state"] == "next"), None)
    running = next((row for row in rows if row["state"] == "running"), None)
    held = bool(found.get("held")) and following is not None
    if found.get("ended"):
        state = "ended"
    elif held and following is not None:
        state = f"waits for start; next is {following['variant']}"
    elif following is not None:
        state = f"{following['variant']} starts by itself in a moment"
    else:
        state = f"{running['variant']} is running" if running else ""
    after = following or next((row for row in rows if row["state"] == "waiting"), None)
    return {
        "title": f"Programme {found.get('programme', '')}: {state}, {len(done)} of {len(rows)} done, {passed} passed",
        "rows": rows,
        "next": None if after is None or found.get("ended") else {"number": after["variant"], "description": after.get("description", "")},
        "held": held,
        "between": following is not None,
    }
