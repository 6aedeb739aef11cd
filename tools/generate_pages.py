"""The reference pages docs/keys.md and docs/shipped.md, and the hazards of docs/safety.md, out of the declarations (tools/generate.py
writes them).

keys.md       every table of every kind of configuration file with its keys, and the network addresses; what a part takes stands on the
              part's own page (`hil-server list ROLE NAME`)
shipped.md    what is in `stand_configs`: tests, programmes, campaigns, stands, vehicles, docking units, arms
"""

import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hil_server import registry
from hil_server.config import tables
from hil_server.config.kinds import kind_of
from rt_kernels.extends import EXTENDS, WITHOUT, read_tables
from tools.generate_schemas import schemas

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "stand_configs"
MADE = "<!-- made by tools/generate.py: change the declarations, not this page -->\n"
HEADS = {"keys": "All keys of all configuration files", "shipped": "What comes with the server"}

Schema = dict[str, Any]


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


# ---------------------------------------------------------------------------------------------------------------------------- keys
def limits(schema: Schema) -> str:
    """What a value may be, in words."""
    if "enum" in schema:
        return ", ".join(f"`{name}`" for name in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return ", or ".join(dict.fromkeys(limits(one) for one in schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return ", or ".join(limits({**schema, "type": one}) for one in kind)
    if kind in ("number", "integer"):
        low, high = (f"{schema[end]:g}" if end in schema else None for end in ("minimum", "maximum"))
        which = {(True, True): f"{low} … {high}", (True, False): f"from {low}", (False, True): f"up to {high}", (False, False): ""}
        return ("a whole number " if kind == "integer" else "a number ").strip() + f" {which[low is not None, high is not None]}".rstrip()
    if kind == "array":
        count = f"{schema['minItems']} of: " if "minItems" in schema and schema["minItems"] == schema.get("maxItems") else "a list of: "
        return count + limits(schema.get("items", {}))
    return {"boolean": "`true`, `false`", "string": "text", "object": "a table"}.get(kind, "anything")


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(shown(v) for v in value)}]"
    return str(value) if isinstance(value, int) else f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def table_of(schema: Schema) -> list[str]:
    """The keys of one table; a key that is a table of its own has its own heading."""
    lines = [row("key", "default", "may be", "meaning"), row(*["---"] * 4)]
    for key, value in schema["properties"].items():
        items = value.get("items", {})
        if not value or "allOf" in value or "properties" in value or "properties" in items or "anyOf" in items:
            continue
        default = "required" if key in schema.get("required", ()) else shown(value["default"]) if "default" in value else "–"
        lines.append(row(f"`{key}`", default, limits(value), value.get("description", "")))
    return lines if len(lines) > 2 else []


def tables_in(name: str, schema: Schema) -> Iterator[tuple[str, list[str]]]:
    """(heading, its lines) of a table and of those in it, in the order of their declaration."""
    if lines := table_of(schema):
        yield (f"`{name}`" if name else "At the top of the file"), lines
    for key, value in schema["properties"].items():
        inner = f"{name.strip('[]')}.{key}" if name else key
        if "allOf" in value:  # the table of a part
            role = next(role for role in registry.ROLES if registry.ROLES[role] == value["properties"]["part"]["description"])
            parts = ", ".join(f"`{one}`" for one in sorted(registry.PARTS[role]))
            yield f"`[{inner}]`", [f"Of a part: {registry.ROLES[role]}. `part` is one of {parts}; its keys: `hil-server list {role} NAME`."]
        elif "properties" in value:
            yield from tables_in(f"[{inner}]", value)
        elif value.get("type") == "array":
            items = value.get("items", {})
            for kind in [items] if "properties" in items else items.get("anyOf", items.get("oneOf", ())):
                if "properties" in kind:
                    yield from tables_in(f"[[{inner}]]", kind)


def keys() -> str:
    found = schemas()
    lines = [
        f"# {HEADS['keys']}\n\n{MADE}",
        "By kind of file. How the files belong together: [configuration](configuration.md). A table of a part (`[compensation]`, ...)",
        "takes what the part declares: `hil-server list ROLE NAME` prints it with units, defaults and limits.",
        "",
    ]
    lines += ["| file | tables |", "|---|---|"]
    heads = {kind: list(tables_in("", schema)) if "allOf" not in schema else [] for kind, schema in found.items()}
    for kind in found:
        lines.append(row(f"[{kind}](#{kind}-file)", ", ".join(dict.fromkeys(head for head, _ in heads[kind])) or "keys of its `part`"))
    lines += ["", "Network addresses: [below](#network-addresses).", ""]
    for kind, schema in found.items():
        lines += [f"## {kind.capitalize()} file", ""]
        if "allOf" in schema:
            shared = {EXTENDS, WITHOUT, *(p.key for p in tables.MECHANISM)}
            one = next(choice["then"] for choice in schema["allOf"])
            names = ", ".join(f"`{name}`" for name in schema["properties"]["part"]["enum"])
            lines += [f"`part` is one of {names}; its own keys: `hil-server list mechanisms NAME`. Beside them:", ""]
            lines += [*table_of({**one, "properties": {k: v for k, v in one["properties"].items() if k in shared}}), ""]
        for head, body in heads[kind]:
            lines += [f"### {head}", "", *body, ""]
    return "\n".join([*lines, *addresses()]) + "\n"


def addresses() -> list[str]:
    """Where the server, its console and its devices talk."""
    from hil_server import cli

    lines = ["## Network addresses", "", "All on loopback unless a file says otherwise.", ""]
    lines += [row("who", "key", "default", "what"), row(*["---"] * 4)]
    lines += [
        row("a run", f"`telemetry.{p.key}`", f"`{p.default}`", p.meaning) for p in tables.TELEMETRY if str(p.default).startswith("tcp://")
    ]
    given = cli._parser(["console"]).parse_args(["console"])
    lines.append(row("`hil-server console`", "`--host`, `--port`", f"`http://{given.host}:{given.port}`", "the pages of the console"))
    for role in ("wrench_sensors", "drives", "mechanism_signals"):
        for name in sorted(registry.PARTS[role]):
            for p in registry.part(role, name).PARAMETERS:  # type: ignore[attr-defined]
                if p.key in ("address", "link", "links") or p.key.endswith("_port"):
                    lines.append(row(f"{role} `{name}`", f"`{p.key}`", "required" if p.required else f"`{p.default}`", p.meaning))
    return lines


# ------------------------------------------------------------------------------------------------------------------------- shipped
def shipped() -> str:
    lines = [
        f"# {HEADS['shipped']}\n\n{MADE}",
        "Files of `stand_configs`. A verb takes a test or a programme by its name there (`hil-server simulate programmes/docking.toml`),",
        "and so does a file that names another. *Synthetic*: figures chosen here, of no real hardware; every report made with the file",
        "says so.",
        "",
    ]
    kinds: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for file in sorted(SHIPPED.rglob("*.toml")):
        document = read_tables(file)
        kind = "arm" if file.parent.name == "manipulators" else kind_of(document)
        kinds.setdefault(kind, []).append((file, document))
    for title, kind, line in (
        ("Tests", "test", of_test), ("Programmes", "programme", of_programme), ("Campaigns", "campaign", of_campaign),
        ("Stands", "stand", of_thing),
        ("Vehicles", "craft", of_craft), ("Docking units", "mechanism", of_mechanism), ("Arms and free-flyers", "arm", of_thing),
    ):  # fmt: skip
        heads, _ = line(*kinds[kind][0])
        lines += [f"## {title}", "", row("file", *heads), row(*["---"] * (1 + len(heads)))]
        lines += [row(link(file), *line(file, document)[1]) for file, document in kinds[kind]]
        lines.append("")
    lines.append("Recorded operators are in `stand_configs/programmes/operators`; the tests that fly them name them.")
    return "\n".join(lines) + "\n"


def link(file: Path) -> str:
    return f"[{file.relative_to(SHIPPED).as_posix()}](../{file.relative_to(ROOT).as_posix()})"


def first_remark(file: Path) -> str:
    """The first sentence of the file's own words, over as many lines as it has."""
    lines = file.read_text(encoding="utf-8").splitlines()
    remarks = itertools.takewhile(lambda line: line.startswith("# "), itertools.dropwhile(lambda line: not line.startswith("# "), lines))
    return re.split(r"(?<=\.)\s(?=[A-Z])", " ".join(line[2:].strip() for line in remarks), maxsplit=1)[0]


def described(file: Path, table: dict[str, Any]) -> str:
    return str(table.get("description") or first_remark(file))


def named(text: Any) -> str:
    """Name of the file behind a path of the configuration."""
    return f"`{Path(str(text)).stem}`"


def of_test(file, document):
    test = document["test"]
    unit = named(test["mechanism"])
    crafts = f"{named(test['active_vehicle'])} to {named(test['target_vehicle'])}"
    rate = f"{test.get('rate_hz', 1000):g} Hz"
    return ("what", "crafts", "unit", "stand", "rate"), (described(file, test), crafts, unit, named(test["stand"]), rate)


def of_programme(file, document):
    programme = document["programme"]
    return ("what", "test", "variants"), (described(file, programme), named(programme.get("test", "–")), len(document["variant"]))


def of_campaign(file, document):
    campaign = document["campaign"]
    return ("what", "test", "cases"), (described(file, campaign), named(campaign.get("test", "–")), campaign.get("cases", "–"))


def of_thing(file, document):
    return ("what", "synthetic"), (described(file, document), "yes" if document.get("synthetic") else "")


def of_craft(file, document):
    mass = f"{document['mass_kg']:g} kg" if "mass_kg" in document else f"{len(document['body'])} bodies"
    return ("what", "mass", "synthetic"), (described(file, document), mass, "yes" if document.get("synthetic") else "")


def of_mechanism(file, document):
    return ("what", "part", "synthetic"), (described(file, document), f"`{document['part']}`", "yes" if document.get("synthetic") else "")


# ------------------------------------------------------------------------------------------------------------------------- safety
HAZARDS = ROOT / "docs" / "hazards.toml"
BLOCK = re.compile(r"(?s)(<!-- hazards: .*? -->\n).*?(<!-- end of hazards -->)")


def hazards() -> list[dict[str, Any]]:
    """The hazard log."""
    return list(tomllib.loads(HAZARDS.read_text(encoding="utf-8"))["hazard"])


def safety() -> str:
    """The page with the hazard log."""
    lines = [row("", "hazard", "cause", "barrier here", "barrier outside", "fault bits", "tests"), "|---|---|---|---|---|---|---|"]
    for number, one in enumerate(hazards(), 1):
        tests = ", ".join(f"`{name.rpartition('::')[2]}`" for name in one["tests"])
        bits = ", ".join(f"`{name}`" for name in one["faults"]) or "none: nothing moves"
        lines.append(row(f"H{number}", one["hazard"], one["cause"], one["here"], one["outside"], bits, tests))
    text = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    return BLOCK.sub(lambda found: found[1] + "\n" + "\n".join(lines) + "\n\n" + found[2], text)


def files() -> dict[Path, str]:
    """Path and text of every page."""
    return {ROOT / "docs" / "keys.md": keys(), ROOT / "docs" / "shipped.md": shipped(), ROOT / "docs" / "safety.md": safety()}
