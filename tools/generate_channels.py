"""Writes the products of the table `rt_kernels/channels.toml`; `--check` only says whether the committed ones are current.

Products: `sample.pxd` (C struct), `faults.pxd` (fault masks and code enums), `layout.py` (NumPy dtype, field list, codes, hash),
`CHANNELS.md` (the same for people).
"""

import hashlib
import json
import sys
import tomllib
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "rt_kernels"
C_TYPES = {"f8": "double", "i8": "int64_t", "i4": "int32_t", "u4": "uint32_t"}
TYPE_ORDER = ["f8", "i8", "i4", "u4"]  # falling alignment: the struct then is little-endian CDR as it stands
COLUMNS = {"name", "type", "shape", "unit", "frame", "writer", "role", "bus", "meaning", "limits"}
ROLES = ("input", "state", "output", "diagnostic")
SEVERITIES = ("note", "hold", "stop")


def load() -> dict:
    table = tomllib.loads(KERNELS.joinpath("channels.toml").read_text())
    names = set()
    for field in table["field"]:
        unknown = set(field) - COLUMNS
        if unknown or field["type"] not in C_TYPES or field["role"] not in ROLES or field["name"] in names:
            sys.exit(f"channels.toml: field {field['name']}: unknown column, type or role, or a name used twice")
        names.add(field["name"])
        field.setdefault("shape", 1)
        field.setdefault("unit", "-")
        field.setdefault("frame", "")
    bits = [f["bit"] for f in table["fault"]]
    if len(set(bits)) != len(bits) or max(bits) > 62 or any(f["severity"] not in SEVERITIES for f in table["fault"]):
        sys.exit("channels.toml: fault bits must differ and be at most 62, severities must be note, hold or stop")
    return table


def struct_order(table: dict) -> list[dict]:
    return sorted(table["field"], key=lambda f: TYPE_ORDER.index(f["type"]))


def pad_words(fields: list[dict]) -> int:
    return sum(f["shape"] for f in fields if f["type"] in ("i4", "u4")) % 2


def layout_hash(fields: list[dict]) -> str:
    text = json.dumps([[f["name"], f["type"], f["shape"]] for f in fields] + [pad_words(fields)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def row(values: tuple) -> str:
    return "    (" + ", ".join(json.dumps(v) for v in values) + "),  # noqa: E501"


def sample_pxd(table: dict) -> str:
    fields = struct_order(table)
    lines = [
        '"""The sample of one tick. Generated from channels.toml by tools/generate_channels.py: do not edit."""',
        "",
        "from libc.stdint cimport int32_t, int64_t, uint32_t",
        "",
        "",
        "cdef struct Sample:",
    ]
    for f in fields:
        shape = f"[{f['shape']}]" if f["shape"] > 1 else ""
        unit = "" if f["unit"] == "-" else f" [{f['unit']}]"
        lines.append(f"    {C_TYPES[f['type']]} {f['name']}{shape}  # {f['writer']}, {f['role']}{unit}: {f['meaning']}")
    if pad_words(fields):
        lines.append("    uint32_t pad  # keeps the size a multiple of eight")
    return "\n".join(lines) + "\n"


def faults_pxd(table: dict) -> str:
    lines = [
        '"""Fault masks and codes. Generated from channels.toml by tools/generate_channels.py: do not edit."""',
        "",
        "from libc.stdint cimport int64_t",
        "",
        "",
        "cdef extern from *:",
        '    """',
    ]
    lines += [f"    #define FAULT_{f['name'].upper()} ((int64_t)1 << {f['bit']})" for f in table["fault"]]
    stop = sum(1 << f["bit"] for f in table["fault"] if f["severity"] == "stop")
    lines += [f"    #define FAULTS_STOP ((int64_t){stop}LL)", '    """']
    lines += [f"    const int64_t FAULT_{f['name'].upper()}  # {f['severity']}: {f['meaning']}" for f in table["fault"]]
    lines.append("    const int64_t FAULTS_STOP  # all whose severity is stop")
    for group, members in table["codes"].items():
        lines += ["", "", "cdef enum:"]
        lines += [f"    {group.upper()}_{name.upper()} = {value}" for name, value in members.items()]
    return "\n".join(lines) + "\n"


def layout_py(table: dict) -> str:
    fields = struct_order(table)
    lines = [
        '"""Layout of a sample for NumPy. Generated from channels.toml by tools/generate_channels.py: do not edit."""',
        "",
        "import numpy as np",
        "",
        f'LAYOUT_HASH = "{layout_hash(fields)}"',
        "",
        "# name, type, shape, unit, frame, writer, role, bus, meaning: in the order of the table (the order of the tick)",
        "FIELDS = (",
    ]
    columns = ("name", "type", "shape", "unit", "frame", "writer", "role", "bus", "meaning")
    lines += [row(tuple(f[c] for c in columns)) for f in table["field"]]
    lines += [")", "", "# the struct: falling alignment, so that it is little-endian CDR as it stands", "SAMPLE_DTYPE = np.dtype(", "    ["]
    for f in fields:
        shape = f", ({f['shape']},)" if f["shape"] > 1 else ""
        lines.append(f'        ("{f["name"]}", "<{f["type"]}"{shape}),')
    if pad_words(fields):
        lines.append('        ("pad", "<u4"),')
    lines += ["    ]", ")", "", "# name, bit, severity, meaning, what to do", "FAULTS = ("]
    lines += [row((f["name"], f["bit"], f["severity"], f["meaning"], f["action"])) for f in table["fault"]]
    lines += [")", "", "CODES = {"]
    lines += [f'    "{group}": {json.dumps(members)},  # noqa: E501' for group, members in table["codes"].items()]
    lines += ["}", ""]
    return "\n".join(lines)


def channels_md(table: dict) -> str:
    lines = [
        "# Channels",
        "",
        f"Generated from `channels.toml` by `tools/generate_channels.py`: do not edit. Layout hash `{layout_hash(struct_order(table))}`.",
        "",
        "| field | type | shape | unit | frame | writer | role | meaning |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in table["field"]:
        cells = (f"`{f['name']}`", f["type"], f["shape"], f["unit"], f["frame"], f["writer"], f["role"], f["meaning"])
        lines.append("| " + " | ".join(str(c) for c in cells) + " |")
    lines += ["", "## Faults", "", "| bit | fault | severity | meaning | what to do |", "|---|---|---|---|---|"]
    lines += [f"| {f['bit']} | `{f['name']}` | {f['severity']} | {f['meaning']} | {f['action']} |" for f in table["fault"]]
    lines += ["", "## Codes", ""]
    for group, members in table["codes"].items():
        lines.append(f"- **{group}**: " + ", ".join(f"{v} {k}" for k, v in members.items()))
    return "\n".join(lines) + "\n"


PRODUCTS = {"sample.pxd": sample_pxd, "faults.pxd": faults_pxd, "layout.py": layout_py, "CHANNELS.md": channels_md}


def main(argv: list[str]) -> int:
    table = load()
    stale = []
    for name, make in PRODUCTS.items():
        path, text = KERNELS / name, make(table)
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in argv:
                path.write_text(text)
    if "--check" in argv and stale:
        print("not current with channels.toml, run tools/generate_channels.py: " + ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
