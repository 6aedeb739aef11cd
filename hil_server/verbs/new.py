"""`hil-server new PROJECT`: a folder with a test, a stand, a vehicle and a docking unit of one's own, and a page with the next steps.

The files are copies of the shipped ones that the demo uses and may be changed; the target vehicle and the schemas for the editor are those
of the installation."""

import argparse
import re
from pathlib import Path
from typing import Any

from hil_server.errors import UsageError

GROUP = "files and parts"
ORDER = 60
SUMMARY = "makes a folder with a test, a stand, a vehicle and a docking unit of your own"
EXAMPLES = (
    ("hil-server new my_docking", "then: cd my_docking && hil-server simulate test.toml"),
)
# file of the project → shipped file that it begins as
FILES = {
    "test.toml": "programmes/docking.toml",
    "stand.toml": "stands/docking_stand.toml",
    "vehicle.toml": "vehicles/transport_ship.toml",
    "unit.toml": "mechanisms/probe_cone.toml",
}
# of test.toml: what it names → the file of the project that it names now
NAMES = {"stand": "stand.toml", "active_vehicle": "vehicle.toml", "mechanism": "unit.toml"}

PAGE = """# {name}

A docking test of your own. Every file here is a copy that you may change; the editor's hints come from the first line of each (JSON Schema,
with Taplo or Even Better TOML).

| file | what it is |
|---|---|
| `test.toml` | the test: rate, first conditions, the part of every stage |
| `stand.toml` | the stand: platform, mounting, limits, drives or the virtual stand in their place |
| `vehicle.toml` | the active vehicle; the target is a shipped one, which `test.toml` names |
| `unit.toml` | the docking unit between them |

```sh
hil-server check test.toml                                     # files, installation, host
hil-server predict test.toml                                   # restitution and delays of the stand, before the test
hil-server simulate test.toml --out runs/first                 # the docking, with a report in runs/first/run.html
hil-server simulate test.toml --set active_vehicle.mass_kg=9000 --out runs/heavier
hil-server compare runs/first/run.mcap runs/heavier/run.mcap   # effect of the mass
hil-server replay runs/first/run.mcap --verify                 # computed again, bit-identical
```

Next: `hil-server list` names the parts that a table may choose, `hil-server list mechanisms probe_cone_simple` is the page of one. Change
`mass_kg` in `vehicle.toml` or the stiffness in `unit.toml`, and simulate again. A live run, on the virtual stand until `stand.toml` names
drives: `hil-server run test.toml`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server new`."""
    parser.add_argument("project", metavar="PROJECT", help="folder to make; the test gets its name")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the folder; returns its files. Refuses a folder that holds something."""
    from hil_server.config import SHIPPED, load_test

    folder = Path(args.project)
    name = folder.resolve().name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists and is not empty: choose another name")
    if not re.fullmatch(r"[\w .-]+", name):
        raise UsageError(f"{folder}: allowed in a name: letters, digits, blanks, . _ -")
    folder.mkdir(parents=True, exist_ok=True)
    for file, shipped in FILES.items():
        text = SHIPPED.joinpath(shipped).read_text(encoding="utf-8")
        text = re.sub(r"\A#:schema .*/", f"#:schema {(SHIPPED / 'schemas').as_uri()}/", text)
        if file == "test.toml":
            text = re.sub(r"(?m)\A(#:.*\n)(?:#.*\n)*", r"\1", text)  # description of the shipped file
            text = _set(text, "name", name)
            for key, own in NAMES.items():
                text = _set(text, key, own)
        if file == "stand.toml":
            text = re.sub(r"(?ms)^\n\[safety_record\]\n.*?(?=^\[|\Z)", "", text)  # the signature of the shipped file
        folder.joinpath(file).write_text(text, encoding="utf-8")
    folder.joinpath("README.md").write_text(PAGE.format(name=name), encoding="utf-8")
    load_test(folder / "test.toml")
    print(f"written   {', '.join([*FILES, 'README.md'])} in {folder}")
    print(f"next      cd {folder} && hil-server simulate test.toml --out runs/first")
    return {"project": str(folder), "files": [*FILES, "README.md"], "exit_code": 0}


def _set(text: str, key: str, value: str) -> str:
    """The text with the first `key = ...` set to a string."""
    return re.sub(rf"(?m)^{key} = .*$", lambda _: f'{key} = "{value}"', text, count=1)
