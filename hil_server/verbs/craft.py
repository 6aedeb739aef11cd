"""`hil-server craft FILE`: masses, tree, modes and time-step limit of a craft, the effective mass at its ports, and what of it a run
takes.

FILE: a craft file (TOML; a rigid vehicle, an arm, a flexible craft) or URDF. `--modes` writes the modes of the craft at a port for the
table [modal] of a vehicle file.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hil_server.values import Document

if TYPE_CHECKING:
    from hil_server.predict.craft_view import CraftView

GROUP = "files and parts"
ORDER = 66
SUMMARY = "shows masses, tree and modes of a craft, and the effective mass at its ports"
EXAMPLES = (
    ("hil-server craft transport_ship", "a shipped vehicle"),
    ("hil-server craft arm.urdf --held --picture arm.png", "an arm on a fixed base, with a picture"),
    ("hil-server craft arm.urdf --toml arm.toml", "as a craft file, to be extended by ports and actuators"),
    ("hil-server craft station.toml --modes modes.csv --port docking", "modes for the table [modal] of a vehicle file"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server craft`."""
    parser.add_argument("file", metavar="FILE", help="craft file (.toml), URDF file, or name of a shipped vehicle")
    parser.add_argument("--picture", metavar="FILE", help="draws the craft (.png or .svg)")
    parser.add_argument("--modes", metavar="CSV", help="writes the modes at a port, for the table [modal] of a vehicle file")
    parser.add_argument("--port", metavar="NAME", help="port of --modes (default: docking, or the only one)")
    parser.add_argument("--count", type=int, metavar="N", help="modes to write in addition to the six rigid-body modes (default: all)")
    parser.add_argument(
        "--vehicle", metavar="FILE", help="vehicle file that gets the modes; refused if mass, centre of mass or inertia differ"
    )
    parser.add_argument("--held", action="store_true", help="URDF: fixed root link (default: free)")
    parser.add_argument("--toml", metavar="FILE", help="writes rigid bodies and joints as a craft file, e.g. of a URDF file")


def run(args: argparse.Namespace) -> Document:
    """Prints the craft; writes picture and modes if requested."""
    from hil_server.config import named_file
    from hil_server.errors import UsageError
    from hil_server.predict.craft_view import as_dict, modes_text, picture, read, view

    if args.count is not None and not 0 <= args.count <= 10000:
        raise UsageError(f"--count {args.count}: must be within 0 ... 10000")
    seen = view(*read(named_file(args.file, "vehicles"), floating_base=not args.held))
    _print(seen)
    summary = as_dict(seen)
    _print_run(**summary["in_a_run"])
    if args.modes:
        text = modes_text(seen, seen.port(args.port), _vehicle(args.vehicle), args.count)
        Path(args.modes).parent.mkdir(parents=True, exist_ok=True)
        Path(args.modes).write_text(text, encoding="utf-8")
        print(f"\nmodes           {args.modes}")
        summary["modes_file"] = args.modes
    if args.toml:
        Path(args.toml).write_text(_craft_file(seen), encoding="utf-8")
        print(f"craft file      {args.toml}")
        summary["craft_file"] = args.toml
    if args.picture:
        summary["picture"] = picture(seen, args.picture)
        print(f"picture         {args.picture}")
    return summary | {"exit_code": 0}


def _craft_file(seen: "CraftView") -> str:
    """TOML, one [[body]] and [[joint]] below the other. Raises UsageError for a body that bends."""
    from hil_server.config import toml_text
    from hil_server.errors import UsageError
    from rt_kernels.model.craft_file import tables_of

    try:
        tables = tables_of(seen.craft)
    except ValueError as error:
        raise UsageError(f"--toml: {error}") from None
    blocks = [f"name = {toml_text.value(tables['name'])}"]
    for kind in ("body", "joint"):
        blocks += ["\n".join([f"[[{kind}]]", *(f"{key} = {toml_text.value(item)}" for key, item in row.items())]) for row in tables[kind]]
    return "\n\n".join(blocks) + "\n"


def _vehicle(file: str | None) -> Document | None:
    """The table of a vehicle of one rigid body. Raises ConfigurationError."""
    if file is None:
        return None
    from hil_server.config import extends, named_file
    from hil_server.errors import ConfigurationError
    from hil_server.predict.craft_view import read

    path = named_file(file, "vehicles")
    table = extends.tables_of(path) if path.is_file() else {}
    table.pop("modal", None)
    if "mass_kg" not in table:
        read(path)
        raise ConfigurationError(f"{path}: body: the modes are for a vehicle of one rigid body, which has mass_kg at the top of its file")
    return {"port_angles_deg": [0.0, 0.0, 0.0], **table}


def _print(seen: "CraftView") -> None:
    import numpy as np

    from hil_server.terminal.tables import print_table

    c, rest = seen.craft, seen.rest
    print(f"{c.name}")
    print(f"mass            {rest.mass:.6g} kg")
    print(f"centre of mass  {_numbers(rest.centre, np.sqrt(np.trace(rest.inertia) / rest.mass))} m from the frame of {c.root.name!r}")
    largest = np.abs(rest.inertia).max()
    for i, row in enumerate(rest.inertia):
        print(f"{'inertia' if i == 0 else '':15s} {_numbers(row, largest)}{' kg.m2 about it' if i == 0 else ''}")
    print(f"principal       {_numbers(np.linalg.eigvalsh(rest.inertia))} kg.m2")
    print("\nTree")
    print_table(_rows(seen), ("body", "joint", "mass, kg", "modes", "held"))
    for kind, things in (("thrusters", c.thrusters), ("wheels", c.wheels), ("sensors", c.sensors), ("interfaces", c.interfaces)):
        if things:
            print(f"{kind:15s} {', '.join(thing.name for thing in things)}")
    _print_modes(seen)
    for port in seen.ports:
        print(f"\nPort {port.name}: {_numbers(port.position, np.abs(port.position).max())} m from the centre of mass")
        print(f"effective mass  {_numbers(port.effective_mass)} kg along x, y, z: first instant of a contact")
        if port.rigid_mass is not None:
            print(f"                {_numbers(port.rigid_mass)} kg: a slow push (modes at 0 Hz alone)")
    if seen.dropped:
        print("\nNot in the model")
        for what in seen.dropped:
            print(f"  {what}")


def _print_run(counts: dict[str, tuple[int, int]], refused: list[str]) -> None:
    """What of it a run takes."""
    from hil_server.terminal.tables import print_table

    print(f"\nIn a run: {'not as a vehicle' if refused else 'taken as it is (joints: both crafts together)'}")
    print_table([(what, f"{count}", f"{limit}") for what, (count, limit) in counts.items() if count], ("", "has", "limit"))
    for why in refused:
        print(f"  {why}")


def _print_modes(seen: "CraftView") -> None:
    import numpy as np

    from hil_server.predict.craft_view import SHOWN
    from hil_server.terminal.tables import print_table

    first, last = seen.rigid_modes, min(seen.rigid_modes + SHOWN, len(seen.frequency_hz))
    print(f"\nModes at rest: {seen.rigid_modes} at 0 Hz, {len(seen.frequency_hz) - first} others")
    if last > first:
        heads = [f"{port.name} {axis}" for port in seen.ports for axis in "xyz"]
        rows = [
            (f"{seen.frequency_hz[k]:.5g}", f"{seen.damping_ratio[k]:.3f}",
             *_numbers([x for port in seen.ports for x in port.shapes[k, :3]], np.abs(seen.fields[k]).max(initial=1e-3), "|", 3).split("|"))
            for k in range(first, last)
        ]  # fmt: skip
        print_table(rows, ("f, Hz", "damping", *heads))
        print("columns of ports: displacement per unit modal coordinate, kg^-1/2" if seen.ports else "no port: no shapes shown")
    if limits := ", ".join(f"{method} {limit * 1e3:.4g} ms" for method, limit in seen.steps.items() if np.isfinite(limit)):
        print(f"step limit      {limits} (explicit integrators; the stage of a run takes springs and dampers implicitly)")


def _rows(seen: "CraftView") -> list[tuple[str, ...]]:
    """One line per body, below its parent."""
    settings = {s.joint: s for s in seen.craft.joints}
    rows: list[tuple[str, ...]] = []

    def add(parent: str | None, depth: int) -> None:
        for link in seen.craft.links:
            if link.parent == parent:
                s = settings.get(link.joint_name)
                held = "" if s is None else f"{s.mode} at {s.angle:.4g}" + (f", spring {s.stiffness:.4g}" if s.stiffness else "")
                name = "" if link.joint_name == link.name else f" {link.joint_name}"
                node = f" at {link.port}" if link.port else ""
                rows.append((f"{'  ' * depth}{link.name}{node}", f"{link.joint}{name}", f"{link.body.mass:.6g}",
                             str(link.body.n_modes or "-"), held))  # fmt: skip
                add(link.name, depth + 1)

    add(None, 0)
    return rows


def _numbers(values: Iterable[float], largest: float = 0.0, between: str = "  ", digits: int = 6) -> str:
    """Numbers in a row; what is rounding beside `largest` is 0."""
    return between.join(f"{x if abs(x) > 1e-10 * largest else 0.0:.{digits}g}" for x in values)
