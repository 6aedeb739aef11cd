"""`hil-server new PROJECT`: a folder with a test, a stand, a vehicle and a docking unit of one's own, and a page with the next steps.

Each file extends the shipped one that the demo uses and has only what differs. The folder has its own copies of the schemas for the editor;
the target vehicle is a shipped one."""

import argparse
import re
import shlex
import shutil
from pathlib import Path

from hil_server.errors import UsageError
from hil_server.values import Document

GROUP = "files and parts"
ORDER = 60
SUMMARY = "makes a folder with a test, a stand, a vehicle and a docking unit of your own"
EXAMPLES = (
    ("hil-server new my_docking", "then: cd my_docking && hil-server simulate test.toml"),
)
# file of the project → its kind, the shipped file that it extends, its own text with {name} for the name of the project
FILES = {
    "test.toml": ("test", "programmes/docking.toml", """
[test]
name = "{name}"
description = "Docking test of the project {name}"
stand = "stand.toml"
active_vehicle = "vehicle.toml"
mechanism = "unit.toml"

# [initial_conditions]
# velocity_x_m_s = 0.1
"""),
    "stand.toml": ("stand", "stands/docking_stand.toml", """name = "{name} stand"
description = "Stand of the project {name}"

# [limits]
# force_limit_n = [4000.0, 4000.0, 4000.0]
"""),
    "vehicle.toml": ("craft", "vehicles/transport_ship.toml", """name = "{name} vehicle"
description = "Active vehicle of the project {name}"

# mass_kg = 9000.0
"""),
    "unit.toml": ("mechanism", "mechanisms/probe_cone.toml", """name = "{name} unit"
description = "Docking unit of the project {name}"

# axial_stiffness_n_per_m = 12000.0
"""),
}  # fmt: skip
HEAD = """#:schema ./schemas/{kind}.json
# Extends a shipped file: a key here replaces the one there. The lines below that begin with # are examples.
extends = "{extended}"
"""

PAGE = """# {name}

A docking test of your own. Each file extends a shipped one and has only what differs; `hil-server check FILE --resolved` prints the whole,
with the file of each key.

| file | what it is |
|---|---|
| `test.toml` | the test: rate, first conditions, the part of every stage |
| `stand.toml` | the stand: platform, mounting, limits, drives or the virtual stand in their place |
| `vehicle.toml` | the active vehicle; the target is a shipped one, which `test.toml` names |
| `unit.toml` | the docking unit between them |
| `schemas` | JSON Schemas for an editor (Taplo, Even Better TOML); each file names its own in the first line |

```sh
hil-server check test.toml                                     # files, installation, host
hil-server predict test.toml                                   # restitution and delays of the stand, before the test
hil-server simulate test.toml --out runs/first                 # the docking, with a report in runs/first/run.html
hil-server simulate test.toml --set active_vehicle.mass_kg=9000 --out runs/heavier
hil-server compare runs/first/run.mcap runs/heavier/run.mcap   # effect of the mass
hil-server replay runs/first/run.mcap --verify                 # computed again, bit-identical
```

Next: `hil-server list` names the parts that a table may choose, `hil-server list mechanisms probe_cone_simple` prints the manual page of
one. Write `mass_kg` into `vehicle.toml` or a stiffness into `unit.toml`, and simulate again. A live run, on the virtual stand until
`stand.toml` names drives: `hil-server run test.toml`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server new`."""
    parser.add_argument("project", metavar="PROJECT", help="folder to make; the test gets its name")


def run(args: argparse.Namespace) -> Document:
    """Writes the folder; returns its files. Raises UsageError for a folder that holds something, or a name with other characters."""
    from hil_server.config import SHIPPED, load_test

    folder = Path(args.project)
    name = folder.resolve().name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: exists and is not empty: choose another name")
    if not re.fullmatch(r"[\w .-]+", name):
        raise UsageError(f"{folder}: allowed in a name: letters, digits, blanks, . _ -")
    folder.joinpath("schemas").mkdir(parents=True)
    for file, (kind, extended, text) in FILES.items():
        folder.joinpath(file).write_text(HEAD.format(kind=kind, extended=extended) + text.format(name=name), encoding="utf-8")
        shutil.copy(SHIPPED / "schemas" / f"{kind}.json", folder / "schemas")
    folder.joinpath("README.md").write_text(PAGE.format(name=name), encoding="utf-8")
    load_test(folder / "test.toml")
    print(f"written   {', '.join([*FILES, 'README.md', 'schemas'])} in {folder}")
    print(f"next      cd {shlex.quote(str(folder))} && hil-server simulate test.toml --out runs/first")
    return {"project": str(folder), "files": [*FILES, "README.md"], "exit_code": 0}
