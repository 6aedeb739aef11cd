"""`hil-server list [ROLE [NAME]]`: the parts, and the manual page of one.

`hil-server list channels [CONFIG]`: every channel with its unit, as a requirement names it; with a test file also those of its parts.
`hil-server list figures`: the figures of a run that a requirement may name.
"""

import argparse
import re
import shlex
import textwrap
from dataclasses import asdict

from hil_server import registry
from hil_server.errors import UsageError
from hil_server.roles import PartClass
from hil_server.terminal.tables import print_table
from hil_server.values import Document
from rt_kernels.parameters import Aux, Parameter, Tunable

GROUP = "files and parts"
ORDER = 64
SUMMARY = "lists parts with their parameters, channels, and figures for requirements"
EXAMPLES = (
    ("hil-server list", "all roles with their parts"),
    ("hil-server list compensation phase_lead", "parameters of one part"),
    ("hil-server list channels docking", "channels of a test, as a requirement names them"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server list`."""
    parser.add_argument("role", nargs="?", metavar="ROLE", help="role of the parts, or channels, or figures (default: all roles)")
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="name of a part (default: all parts of the role); for channels: a test file"
    )


def run(args: argparse.Namespace) -> Document:
    """Prints roles, parts of a role, or the declaration of a part."""
    if args.role is None:
        return _roles()
    if args.role == "channels":
        return _channels(args.name)
    if args.role == "figures":
        return _figures()
    if args.name is None:
        return _role(args.role)
    return _part(args.role, args.name)


def _roles() -> Document:
    found = {role: sorted(registry.parts(role)) for role in registry.ROLES}
    print_table([(role, ", ".join(names) or "-", registry.ROLES[role]) for role, names in found.items()], ("role", "parts", "what it does"))
    return {"roles": found}


def _channels(config: str | None) -> Document:
    """Channels of the table; of the parts of a test, too, where one is named."""
    from rt_kernels.layout import FIELDS

    rows: list[Document] = [
        {"name": name, "count": count, "unit": unit, "frame": frame, "writer": writer, "meaning": meaning}
        for name, _, count, unit, frame, writer, _, _, meaning in FIELDS
    ]
    if config is not None:
        from hil_server.config import load_test
        from hil_server.config.kinds import misfit
        from hil_server.line import assembly
        from hil_server.log.record import aux_channels

        if why := misfit(config, "test"):
            raise UsageError(f"{why}; hil-server list channels | grep {shlex.quote(config)} finds channels by their name")
        aux = aux_channels(assembly.simulation(load_test(config)).aux)
        rows += [{"name": c.name, "count": c.count, "unit": c.unit, "frame": "", "writer": "part", "meaning": c.meaning} for c in aux]
    shown = [(r["name"] if r["count"] == 1 else f"{r['name']}[{r['count']}]", r["unit"], r["frame"] or "-", r["writer"], r["meaning"])
             for r in rows]  # fmt: skip
    print_table(shown, ("channel", "unit", "frame", "writer", "meaning"))
    return {"channels": rows}


def _figures() -> Document:
    """Figures of a run."""
    from hil_server.requirements.figures import FIGURES

    print_table([(name, figure.unit, figure.meaning) for name, figure in FIGURES.items()], ("figure", "unit", "meaning"))
    return {"figures": {name: {"unit": figure.unit, "meaning": figure.meaning} for name, figure in FIGURES.items()}}


def _role(role: str) -> Document:
    found = {}
    for name, where in sorted(registry.parts(role).items()):
        found[name] = {"class": where, "summary": first_sentence(registry.part(role, name))}
    print(f"{role}: {registry.ROLES[role]}\n")
    print_table([(name, f["summary"]) for name, f in found.items()], ("part", "what it is"))
    return {"role": role, "parts": found}


def _part(role: str, name: str) -> Document:
    from hil_server.config.checks import limit_of

    part = registry.part(role, name)
    print(f"{role}.{name}    {registry.parts(role)[name]}\n")
    print(textwrap.indent(description(part), "    "), "\n")
    parameters: list[Document] = [
        {"key": p.key, "unit": p.unit, "default": None if p.required else p.default, "required": p.required, "limit": limit_of(p),
         "meaning": p.meaning, "tunable": None if p.tunable is None else asdict(p.tunable) | {"narrowed": p.tunable.narrowed}}
        for p in part.PARAMETERS
    ]  # fmt: skip
    rows = [(p["key"], p["unit"], "required" if p["required"] else shown(p["default"]), p["limit"], p["meaning"]) for p in parameters]
    print_table(rows, ("key", "unit", "default", "limit", "meaning")) if rows else print("No parameters.")
    tunable = [(p, p.tunable) for p in part.PARAMETERS if p.tunable is not None]
    if tunable:
        print()
        tuned = [(p.key, p.unit, f"{t.rate_per_s:g} per s", _span(p, t), ", ".join(t.phases) or "all") for p, t in tunable]
        print_table(tuned, ("can be changed in a run", "unit", "moves at", "limit", "in phases"))
    aux: list[Document] = [{"name": a.name, "unit": a.unit, "count": a.count, "meaning": a.meaning} for a in declared_aux(part)]
    if aux:
        print()
        print_table([(a["name"], a["unit"], str(a["count"]), a["meaning"]) for a in aux], ("auxiliary channel", "unit", "count", "meaning"))
    return {"role": role, "name": name, "class": registry.parts(role)[name], "parameters": parameters, "aux": aux}


def _span(p: Parameter, tunable: Tunable) -> str:
    """Limits within which a parameter may be changed in a run."""
    limits = [[x for x in pair if x is not None] for pair in ((p.low, tunable.low), (p.high, tunable.high))]
    low, high = (f"{pick(values):g}" if values else "" for pick, values in zip((max, min), limits, strict=True))
    return f"{low} ... {high}" + (f", {tunable.narrowed}" if tunable.narrowed else "")


def declared_aux(part: PartClass) -> tuple[Aux, ...]:
    """Auxiliary channels of the class; none for a part whose channels depend on its parameters (a property of the instance)."""
    return part.AUX if isinstance(part.AUX, tuple) else ()


def description(part: PartClass) -> str:
    """The docstring of the class, or of its module where the equations stand."""
    import inspect
    import sys

    text = inspect.cleandoc(part.__doc__ or "")
    if text.startswith(f"{part.__name__}("):  # Cython puts the signature in front
        text = text.partition("\n")[2].strip()
    if len(text.splitlines()) < 3:  # the class says what it is, its module how
        module = inspect.cleandoc(sys.modules[part.__module__].__doc__ or "")
        text = f"{text}\n\n{module}" if text else module
    return text.strip() or "(no description)"


def first_sentence(part: PartClass) -> str:
    """First sentence of the part's docstring."""
    text = description(part).split("\n\n")[0].replace("\n", " ")
    return re.split(r"\.\s+(?=[A-Z])", text)[0].rstrip(".")  # not behind an abbreviation: "ch. 7"


def shown(value: object) -> str:
    """A default as the manual page shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
