"""`hil-server new-unit ACTIVE TARGET`: a docking unit out of two drawings, in a project with which it docks.

Both meshes are parts of the drawing of the docked units, in the same axes: the origin is where the ports meet. The project has the unit's
file, its distance field, a picture, a stand with the target moved so that the first contact lies where the shipped unit's does, and a test.
"""

import argparse
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from hil_server.values import Document

if TYPE_CHECKING:
    import numpy as np

    from rt_kernels.mechanisms.mesh.field_file import Arrays

GROUP = "files and parts"
ORDER = 61
SUMMARY = "makes a docking unit out of the drawings (meshes) of its two halves, and a project with it"
EXAMPLES = (
    ("hil-server new-unit probe.stl cone.stl --unit mm --out my_unit", "then: cd my_unit && hil-server simulate test.toml"),
    ("hil-server new-unit ring.stl mate.stl --axis=-z --cell-m 0.002", "docked along -Z of the drawing, with a finer field"),
)
AXES = {f"{sign}{name}": (number, -1.0 if sign else 1.0) for number, name in enumerate("xyz") for sign in ("", "-")}
IN_M, SEAT_M = 0.02, 0.002  # the way past the docked pose that is looked at; how far before it the latch has closed
BASE = "docking.toml"

UNIT = """# {what}
# Contact: the meshes. Springs, latch and masses below are those of a shipped synthetic unit: replace them by yours; all keys with units and
# limits: hil-server list mechanisms {part}
part = "{part}"
name = "{name}"
description = "{what}"
source = "meshes {active} and {target}; springs, latch and masses not of a real unit"
synthetic = true

field = "unit.npz"
field_sha256 = "{sha256}"
penetration_max_m = {depth:g}
foundation_stiffness_n_per_m3 = 1e10     # pressure per depth
dissipation_s_per_m = 0.5
friction = 0.1

# the active drawing is a rigid body on springs; without head_mass_kg it is rigid on the port
head_m = [{head}]
head_mass_kg = 4.0
axial_stiffness_n_per_m = 8000.0
axial_damping_n_s_per_m = 4000.0
lateral_stiffness_n_per_m = 20000.0
lateral_damping_n_s_per_m = 1500.0

# points of the drawings that springs, dampers, stops and latches act between
[[points]]
name = "tip"
body = "active"
position_m = [{tip}]

[[points]]
name = "seat"
body = "target"
position_m = [{seat}]

[[latches]]                              # closes when the tip is past the seat, holds it there
active = "tip"
target = "seat"
radius_m = 0.05

[[springs]]                              # pressed when the units are docked; a stop is a stiff spring, a damper one without stiffness
active = "tip"
target = "seat"
stiffness_n_per_m = 1000.0
docked = true
"""

TEST = """# Extends the shipped docking: a key here replaces the one there.
extends = "programmes/{base}"

[test]
name = "{name}"
description = "Docking of {name}"
stand = "stand.toml"
mechanism = "unit.toml"

[initial_conditions]
lateral_y_m = {y:g}
lateral_z_m = {z:g}
"""

STAND = """# Extends the shipped stand; the target stands so that the units first touch as far from the parked platform as the shipped ones.
extends = "{stand}"
name = "{name} stand"
description = "Stand of the unit {name}"

[mounting]
load_cell_position_m = [{place}]
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server new-unit`."""
    parser.add_argument("active", metavar="ACTIVE", help="mesh of the active unit's contact body: STL, OBJ, PLY, closed")
    parser.add_argument("target", metavar="TARGET", help="mesh of the target unit's contact body, in the same axes, as docked")
    parser.add_argument("--out", default="unit", metavar="DIR", help="folder to make; the unit gets its name (default: unit)")
    parser.add_argument("--unit", choices=("m", "mm", "inch"), default="m", help="unit of length of the meshes (default: m)")
    parser.add_argument(
        "--axis", choices=tuple(AXES), default="x", help="axis of the drawing along which the active unit docks (default: x)"
    )
    parser.add_argument(
        "--cell-m", type=float, metavar="M", help="cell of the field: at most a fifth of the thinnest wall (default: by size)"
    )
    parser.add_argument("--spacing-m", type=float, metavar="M", help="between samples of the active surface (default: the cell)")
    parser.add_argument("--depth-m", type=float, default=0.003, metavar="M", help="deepest valid penetration (default: 0.003)")
    parser.add_argument("--start-m", type=float, default=0.3, metavar="M",
                        help="way back from the docked pose to where the meshes must be apart (default: 0.3)")  # fmt: skip
    parser.add_argument("--miss-m", type=float, nargs=2, default=(0.005, -0.003), metavar=("Y", "Z"),
                        help="lateral miss of the test (default: 0.005 -0.003)")  # fmt: skip


def run(args: argparse.Namespace) -> Document:
    """Writes the project; returns its figures. Raises UsageError for meshes, lengths and a folder that cannot be taken, ConfigurationError
    for units that do not touch."""
    from hil_server import registry
    from hil_server.config import load_test, unit_meshes
    from hil_server.errors import UsageError
    from hil_server.run.progress import working
    from rt_kernels.mechanisms.mesh import field_file

    folder = Path(args.out)
    name = folder.resolve().name
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"--out {folder}: exists and is not empty: choose another name")
    if not re.fullmatch(r"[\w .-]+", name):
        raise UsageError(f"--out {folder}: allowed in a name: letters, digits, blanks, . _ -")
    for option in ("cell_m", "spacing_m", "depth_m", "start_m"):
        value = getattr(args, option)
        if value is not None and not 1e-5 <= value <= 10.0:
            raise UsageError(f"--{option.replace('_', '-')} {value:g}: must be within 1e-05 ... 10 m")
    active, target = (unit_meshes.read_mesh(file, args.unit) for file in (args.active, args.target))
    for mesh in (active, target):
        mesh.apply_transform(_turn(args.axis))
    cell = args.cell_m or unit_meshes.wanted_cell(target)
    with working("distance field") as done:
        arrays = unit_meshes.unit_arrays(active, target, cell=cell, spacing=args.spacing_m or cell, depth=args.depth_m, done=done)
    folder.mkdir(parents=True, exist_ok=True)
    sha256 = field_file.write(folder / "unit.npz", arrays)
    try:
        tip = active.vertices[active.vertices[:, 0].argmax()]
        numbers = {"head": active.center_mass, "tip": tip, "seat": tip - [SEAT_M, 0.0, 0.0]}
        what = f"Docking unit of {Path(args.active).name} and {Path(args.target).name}"
        text = UNIT.format(what=what, part=registry.DRAWN_UNIT, name=name, active=Path(args.active).name, target=Path(args.target).name,
                           sha256=sha256, depth=args.depth_m, **{key: _numbers(p) for key, p in numbers.items()})  # fmt: skip
        folder.joinpath("unit.toml").write_text(text, encoding="utf-8")
        folder.joinpath("test.toml").write_text(TEST.format(base=BASE, name=name, y=args.miss_m[0], z=args.miss_m[1]), encoding="utf-8")
        depths = _project(folder, name, args)
        load_test(folder / "test.toml")
        _draw(arrays, folder / "unit.png")
    except BaseException:
        for file in ("unit.npz", "unit.toml", "test.toml", "stand.toml", "unit.png"):
            folder.joinpath(file).unlink(missing_ok=True)
        folder.rmdir()
        raise
    nodes = " x ".join(map(str, arrays["node"].shape))
    print(f"meshes    {len(active.faces)} and {len(target.faces)} triangles")
    print(f"field     {nodes} nodes, cell {cell * 1e3:.3g} mm, {len(arrays['sample'])} samples; SHA-256 {sha256[:12]}")
    print(
        f"contact   first at X = {depths['first']:.4f} m of the docked pose on the axis; {depths['docked'] * 1e3:.3g} mm deep when docked"
    )
    print(f"written   unit.toml, unit.npz, unit.png, stand.toml, test.toml in {folder}")
    print("next      look at unit.png, put springs and latches into unit.toml;")
    print(f"          cd {shlex.quote(str(folder))} && hil-server simulate test.toml")
    figures = {"cell_m": cell, "nodes": list(arrays["node"].shape), "samples": len(arrays["sample"]), "docked_depth_m": depths["docked"]}
    return {"project": str(folder), "field_sha256": sha256, "first_contact_m": depths["first"], "exit_code": 0} | figures


def _turn(axis: str) -> "np.ndarray":
    """(4, 4) from the axes of the drawing to those of the port, X along `axis`."""
    import numpy as np

    number, sign = AXES[axis]
    x, y = sign * np.eye(3)[number], np.eye(3)[(number + 1) % 3]
    X = np.eye(4)
    X[:3, :3] = [x, y, np.cross(x, y)]
    return X


def _numbers(p: "np.ndarray") -> str:
    return ", ".join(f"{round(float(x), 6) + 0.0:g}" for x in p)


def _project(folder: Path, name: str, args: argparse.Namespace) -> Document:
    """The stand's file. Raises UsageError for meshes that overlap at the start or too deeply when docked."""
    import numpy as np

    from hil_server.config import load_test
    from hil_server.errors import UsageError
    from hil_server.line.assembly import build_part
    from hil_server.line.initial_conditions import first_contact, start
    from rt_kernels.extends import read_tables

    setup = load_test(folder / "test.toml", ("test.stand=stands/docking_stand.toml",)).setup
    unit = build_part(*setup.mechanism, {})

    def depth(x: float) -> float:
        return float(unit.max_penetration(np.array([x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])))

    if (found := depth(-args.start_m)) > 0.0:
        raise UsageError(f"--start-m {args.start_m:g}: the meshes overlap there by {found * 1e3:.3g} mm, {args.start_m:g} m before the "
                         "docked pose: start further away, or take the --axis along which the active unit docks")  # fmt: skip
    if (docked := depth(0.0)) > args.depth_m:
        raise UsageError(f"{args.active}: overlaps {args.target} by {docked * 1e3:.3g} mm as drawn, limit --depth-m {args.depth_m:g} m: "
                         "draw the units docked, in the same axes, or give a larger --depth-m")  # fmt: skip
    shipped = load_test(None).setup
    touch = start(setup.initial_conditions, setup.vehicles, unit.max_penetration).X_TA[0]
    usual = start(shipped.initial_conditions, shipped.vehicles, build_part(*shipped.mechanism, {}).max_penetration).X_TA[0]
    table = read_tables(load_test(None).paths["stand"])
    place = np.array(table["mounting"]["load_cell_position_m"]) + [usual - touch, 0.0, 0.0]
    text = STAND.format(stand="stands/docking_stand.toml", name=name, place=", ".join(f"{x:.4f}" for x in place))
    folder.joinpath("stand.toml").write_text(text, encoding="utf-8")
    return {"docked": docked, "first": first_contact(depth, setup.initial_conditions.first_contact_penetration_m)}


def _draw(arrays: "Arrays", file: Path) -> None:
    """Both bodies from the side and from above, as drawn."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    from rt_kernels.pictures import ACTIVE, TARGET

    figure = Figure(figsize=(10, 5), layout="constrained")
    for number, (other, label) in enumerate(((2, "Z"), (1, "Y"))):
        axes = figure.add_subplot(1, 2, number + 1, aspect="equal", xlabel="X, m", ylabel=f"{label}, m")
        for key, colour in (("target_lines", TARGET), ("active_lines", ACTIVE)):
            axes.add_collection(LineCollection(list(arrays[key][:, :, [0, other]]), colors=colour, linewidths=0.8))
        axes.autoscale()
    figure.savefig(file, dpi=100)
