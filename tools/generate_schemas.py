"""A JSON Schema of every kind of file for stand_configs/schemas, out of the declarations that the loader checks it with.

It is for editors (completion, hints, errors while one types). A file names its schema in its first line, `#:schema ../schemas/test.json`
(Taplo, Even Better TOML). tools/generate.py writes them.

A schema says which keys there are, of what kind and within which limits. What only figures together can tell (a platform that cannot stand,
a mass without an inertia) the loader alone knows.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hil_server import registry
from hil_server.campaign.plan import BOX, CAMPAIGN
from hil_server.campaign.rare import RARE
from hil_server.campaign.variables import CORRELATION, VARY
from hil_server.config import modal_data, tables
from hil_server.config.narrowing import GUARDED_ROLES, limits_of
from hil_server.config.tables import DEVICES
from hil_server.requirements import declaration
from hil_server.run.programme import PROGRAMME, VARIANT, WAIVE
from rt_kernels.extends import EXTENDS, WITHOUT
from rt_kernels.model import craft_file, manipulator_file
from rt_kernels.parameters import Parameter
from rt_kernels.stages import STAGE_ROLES
from rt_kernels.stewart.platform import Platform

DIALECT = "http://json-schema.org/draft-07/schema#"
Schema = dict[str, Any]
EXTENDING: Schema = {
    EXTENDS: {"type": "string", "description": "file of the same kind that this one says the differences from: beside it, or shipped"},
    WITHOUT: {"type": "array", "items": {"type": "string"}, "description": "tables, keys and named rows of it that are left out"},
}


def schemas() -> dict[str, Schema]:
    """Kind of file → its schema."""
    found = {
        "test": test_file(), "programme": programme(), "campaign": campaign(), "stand": stand(), "craft": craft(),
        "mechanism": mechanism(),
    }  # fmt: skip
    for schema in found.values():
        for one in (schema, *(choice["then"] for choice in schema.get("allOf", ()))):
            one["properties"] = EXTENDING | one["properties"]
    return {kind: {"$schema": DIALECT, "title": f"{kind} file of the HIL server", **schema} for kind, schema in found.items()}


def files(folder: Path) -> dict[Path, str]:
    """Path and text of every schema below the folder."""
    texts = {kind: json.dumps(with_extends(schema), indent=1, ensure_ascii=False) + "\n" for kind, schema in schemas().items()}
    return {folder / "stand_configs" / "schemas" / f"{kind}.json": text for kind, text in texts.items()}


# ----------------------------------------------------------------------------------------------------------------- extending files
def with_extends(schema: Schema) -> Schema:
    """The schema for a file that may say only what differs: what is required is required without `extends`."""
    return {**free(schema), "if": {"not": {"required": [EXTENDS]}}, "then": demanded(schema)}


def free(schema: Schema) -> Schema:
    """The same with nothing required. Rows without a name replace those of the extended file: they stay whole."""
    found = {key: value for key, value in schema.items() if key != "required" and not (key == "oneOf" and alternatives(value))}
    if "properties" in found:
        found["properties"] = {key: free(value) for key, value in found["properties"].items()}
    if "items" in found:
        found["items"] = free(found["items"]) if rows_by_name(found["items"]) else found["items"]
    if "anyOf" in found:
        found["anyOf"] = [free(one) for one in found["anyOf"]]
    if "allOf" in found:  # the table of a part: the extended file may have named it
        of_parts = [one for one in found["allOf"] if "properties" in one["if"]]
        named = [{"if": {**one["if"], "required": ["part"]}, "then": free(one["then"])} for one in of_parts]
        unnamed = [one for one in found["allOf"] if one not in of_parts]
        found["allOf"] = [*named, *(unnamed or [{"if": {"not": {"required": ["part"]}}, "then": of_any_part(named)}])]
    return found


def of_any_part(named: Iterable[Schema]) -> Schema:
    """The keys of all of these parts; of one that two have with different limits only the meaning."""
    keys: Schema = {}
    for one in named:
        for key, value in one["then"]["properties"].items():
            told = {"description": value["description"]} if "description" in value else {}
            keys[key] = value if keys.get(key, value) == value else told
    return {"type": "object", "properties": keys, "additionalProperties": False}


def demanded(schema: Schema) -> Schema:
    """What the schema requires, and nothing else."""
    found = {key: schema[key] for key in ("required",) if schema.get(key)}
    if alternatives(schema.get("oneOf", ())):
        found["oneOf"] = schema["oneOf"]
    inner = {key: needed for key, value in schema.get("properties", {}).items() if (needed := demanded(value))}
    if inner:
        found["properties"] = inner
    if "items" in schema and rows_by_name(schema["items"]):
        items = schema["items"]
        if needed := {"anyOf": items["anyOf"]} if "anyOf" in items else demanded(items):
            found["items"] = needed
    if conditions := [{"if": one["if"], "then": needed} for one in schema.get("allOf", ()) if (needed := demanded(one["then"]))]:
        found["allOf"] = conditions
    return found


def rows_by_name(items: Schema) -> bool:
    """Whether these are rows that an extending file tells apart by their names."""
    return all("name" in one.get("properties", ()) for one in items.get("anyOf", [items]))


def alternatives(branches: Iterable[Schema]) -> bool:
    """Whether these say only which keys are there."""
    return bool(branches) and all(one.keys() <= {"required", "not"} for one in branches)


# ------------------------------------------------------------------------------------------------------------------ kinds of files
def test_file() -> Schema:
    initial = table(tables.INITIAL_CONDITIONS)
    initial["properties"]["limits"] = table(tables.CRITICALITY_LIMITS)
    own = {
        "test": table(tables.TEST),
        "initial_conditions": initial,
        "orbit": table(tables.ORBIT),
        **{role: part_table(role) for role in ("commands", *STAGE_ROLES)},
        "dynamics": chosen_or_part("dynamics"),
        "telemetry": table(tables.TELEMETRY),
        "cameras": tables_of({name: table(declared) for name, declared in tables.CAMERAS.items()}),
        "requirement": requirements(),
    }
    left = (*registry.FILLED, "dynamics")  # the server chooses a part where none is named
    return tables_of(own, required=("test", "initial_conditions", *(role for role in STAGE_ROLES if role not in left)))


def programme() -> Schema:
    variant = table(VARIANT.parameters.values())
    variant["properties"][WAIVE] = names() | {"description": "requirements that this variant need not meet"}
    own = {"programme": table(PROGRAMME.parameters.values()), "variant": {"type": "array", "minItems": 1, "items": variant}}
    return tables_of(own | {"requirement": requirements()}, required=("programme", "variant"))


def requirements() -> Schema:
    """Tables [[requirement]] of a test, a programme or a campaign: exactly one of channel, value and stl."""
    one = table(declaration.NUMBERS_AND_WORDS)
    one["properties"]["phase"] = names(declaration.PHASES) | {"description": "phases in which it is judged; omitted: the whole run"}
    one["properties"]["signals"] |= {"additionalProperties": {"type": "string"}}
    one["oneOf"] = [{"required": [key]} for key in ("channel", "value", "stl")]
    return {"type": "array", "items": one}


def names(choices: Iterable[str] = ()) -> Schema:
    """A list of texts, of these where there are any."""
    return {"type": "array", "items": {"enum": list(choices)} if choices else {"type": "string"}}


def campaign() -> Schema:
    text: Schema = {"type": "string"}
    vary, correlation = table(VARY.parameters.values()), table(CORRELATION.parameters.values())
    key = {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}]}
    vary["properties"] |= {"key": key, "values": {"type": "array", "minItems": 1}}
    vary["required"] = [*vary["required"], "key"]
    correlation["properties"]["between"] = {"type": "array", "items": text, "minItems": 2, "maxItems": 2}
    correlation["required"] = [*correlation["required"], "between"]
    several = {name: {"type": "array", "items": one} for name, one in (("vary", vary), ("correlation", correlation))}
    own = {name: table(of.parameters.values()) for name, of in (("campaign", CAMPAIGN), ("box", BOX), ("rare", RARE))}
    return tables_of(own | several | {"requirement": requirements()}, required=("campaign",))


def stand() -> Schema:
    schema = table(tables.STAND)
    inner = {"platform": Platform.PARAMETERS, "mounting": tables.MOUNTING, "limits": tables.LIMITS, "drive_model": tables.DRIVE_MODEL,
             "stand_model": tables.stand_model(), "safety_record": tables.SAFETY_RECORD}  # fmt: skip
    schema["properties"] |= {name: table(declared) for name, declared in inner.items()}
    schema["properties"] |= {name: part_table(role) for name, role in DEVICES.items()}
    schema["properties"] |= {role: limits_of_parts(role) for role in GUARDED_ROLES}
    schema["required"] += ["platform", "mounting", "limits"]
    return schema


def mechanism() -> Schema:
    return part_table("mechanisms", tables.MECHANISM)


def craft() -> Schema:
    """One rigid body at the top of the file, or tables [[body]]; what is on the bodies in either."""
    tables = {name: table(declared) for name, declared in craft_file.KEYS.items()}
    body = tables.pop("body")
    for shape in craft_file.SHAPES:
        body["properties"][shape] = tables[shape]
    body["oneOf"] = [{"required": [shape]} for shape in craft_file.SHAPES]
    tables["joint"] = {"anyOf": [table(craft_file.TURNING), table(craft_file.SLIDING)]}
    tables["rigid"]["properties"]["inertia_kg_m2"] = inertia(craft_file.KEYS["rigid"])
    schema = table((*craft_file.CRAFT, *craft_file.ONE_BODY, *craft_file.BODIES))
    properties = schema["properties"]
    properties["inertia_kg_m2"] = inertia(craft_file.ONE_BODY)
    properties["modal"] |= {"properties": {key: {} for key in sorted(modal_data.KEYS)}, "additionalProperties": False}
    properties["body"] = {"type": "array", "minItems": 1, "items": body}
    properties["manipulator"] = manipulator()
    for has_looks in (properties, body["properties"]):
        has_looks["shapes"] |= {"items": tables["shapes"]}
    properties |= {name: {"type": "array", "items": tables[name]} for name in craft_file.TABLES}
    of_one = [p.key for p in craft_file.ONE_BODY]
    schema["required"] = required(craft_file.CRAFT)
    schema["oneOf"] = [
        {"required": ["body"], "not": {"anyOf": [{"required": [key]} for key in of_one]}},
        {"required": required(craft_file.ONE_BODY), "not": {"anyOf": [{"required": [p.key]} for p in craft_file.BODIES]}},
    ]
    return schema


def inertia(declared: Iterable[Parameter]) -> Schema:
    moments = next(p for p in declared if p.key == "inertia_kg_m2")
    return either(moments, value(moments), number_list(moments, 3))


def manipulator() -> Schema:
    arm = table(manipulator_file.PARAMETERS)
    for p in manipulator_file.PARAMETERS:
        if p.kind == "floats":  # one number holds for all joints
            arm["properties"][p.key] = either(p, number(p), number_list(p) | {"minItems": 1})
    drive = table(manipulator_file.DRIVE)
    for p in manipulator_file.DRIVE:
        drive["properties"][p.key] = either(p, value(p), {"type": "array", "items": value(p), "minItems": 1})
    kinds = []
    for kind, (_, declared) in manipulator_file.SEGMENTS.items():
        segment = table(declared)
        segment["properties"]["kind"] = {"const": kind}
        segment["required"].append("kind")
        kinds.append(segment)
    segments = {"type": "array", "minItems": 1, "items": {"oneOf": kinds}}
    arm["properties"] |= {"drive": drive, "segment": segments, "synthetic": {"type": ["boolean", "string"]}}
    arm["required"] += ["drive", "segment"]
    return arm


# -------------------------------------------------------------------------------------------------------------------------- tables
def table(declared: Iterable[Parameter]) -> Schema:
    """A table with exactly the declared keys."""
    declared = tuple(declared)
    return {
        "type": "object",
        "properties": {p.key: described(p, value(p)) for p in declared},
        "required": required(declared),
        "additionalProperties": False,
    }


def part_table(role: str, shared: Iterable[Parameter] = ()) -> Schema:
    """`part = "name"` and the keys that this part declares. shared: keys that the file has beside those of any part."""
    names = sorted(registry.PARTS[role])
    shared = tuple(shared)
    choices = [
        {
            "if": {"properties": {"part": {"const": name}}},
            "then": table((*shared, *registry.part(role, name).PARAMETERS)),  # type: ignore[attr-defined]
        }
        for name in names
    ]
    for choice in choices:
        choice["then"]["properties"] = {"part": {}, **choice["then"]["properties"]}
    return {
        "type": "object",
        "properties": {"part": {"enum": names, "description": registry.ROLES[role]}},
        "required": ["part"],
        "allOf": choices,
    }


def limits_of_parts(role: str) -> Schema:
    """A stand file's limits for the part of a test, whichever it is."""
    parts = [p for name in registry.PARTS[role] for p in limits_of(registry.part(role, name).PARAMETERS).values()]  # type: ignore[attr-defined]
    return table(parts) | {"required": []}


def chosen_or_part(role: str) -> Schema:
    """As `part_table`, for a role whose part the server chooses where none is named: then any key of its parts may stand there."""
    schema = part_table(role)
    parts = [p for name in registry.PARTS[role] for p in registry.part(role, name).PARAMETERS]  # type: ignore[attr-defined]
    for choice in schema["allOf"]:
        choice["if"]["required"] = ["part"]
    schema["allOf"].append({"if": {"not": {"required": ["part"]}}, "then": table(parts) | {"required": []}})
    return schema | {"required": []}


def tables_of(inner: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """A table, or a file, of these tables."""
    return {"type": "object", "properties": dict(inner), "required": list(required), "additionalProperties": False}


def required(declared: Iterable[Parameter]) -> list[str]:
    return [p.key for p in declared if p.required]


# -------------------------------------------------------------------------------------------------------------------------- values
def value(p: Parameter) -> Schema:
    """What a key may be."""
    if p.choices:
        return {"enum": list(p.choices)}
    if p.kind in ("float", "int"):
        return number(p)
    if p.kind in ("floats", "ints"):
        return number_list(p, p.shape if isinstance(p.shape, int) else None)
    if p.kind == "rows":
        rows, columns = p.shape if isinstance(p.shape, tuple) else (None, None)
        return sized({"type": "array", "items": number_list(p, columns)}, rows)
    if p.kind == "tables":
        return {"type": "array", "items": {"type": "object"}}
    return {"type": {"bool": "boolean", "str": "string", "table": "object"}[p.kind]}


def number(p: Parameter) -> Schema:
    limits = {name: limit for name, limit in (("minimum", p.low), ("maximum", p.high)) if limit is not None}
    return {"type": "integer" if p.kind in ("int", "ints") else "number", **limits}


def number_list(p: Parameter, length: int | None = None) -> Schema:
    return sized({"type": "array", "items": number(p)}, length)


def sized(schema: Schema, length: int | None) -> Schema:
    return schema if length is None else schema | {"minItems": length, "maxItems": length}


def either(p: Parameter, *kinds: Schema) -> Schema:
    return described(p, {"anyOf": list(kinds)})


def described(p: Parameter, schema: Schema) -> Schema:
    """With meaning, unit and default, which an editor shows."""
    unit = "" if p.unit == "-" else f" [{p.unit}]"
    default = {} if p.required or p.default is None else {"default": p.default}
    return {**schema, "description": f"{p.meaning}{unit}", **default}
