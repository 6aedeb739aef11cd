"""Writes the JSON Schemas of all kinds of files into stand_configs/schemas, out of the declarations of files and parts.

    python tools/generate_schemas.py [--check]     --check: write nothing, exit 1 if a schema is not current
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hil_server.config.schemas import schemas, text_of  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "stand_configs" / "schemas"


def main(argv: list[str]) -> int:
    texts = {f"{kind}.json": text_of(schema) for kind, schema in schemas().items()}
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    if "--check" in argv:
        stale = sorted(name for name in {*texts, *there} if texts.get(name) != there.get(name))
        if stale:
            print("not current with the declarations, run tools/generate_schemas.py: " + ", ".join(stale))
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in there.keys() - texts.keys():
        FOLDER.joinpath(name).unlink()
    for name, text in texts.items():
        FOLDER.joinpath(name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
