"""What is generated from the table `rt_kernels/channels.toml`, from the records beside the parts and from the parameters that parts declare
(tools/generate.py writes it). Needs Python alone: `write()` is what setup.py makes of it before it builds.

Products: `sample.pxd` (C struct), `codes.pxd` (masks of faults and bits, enums of codes), `injections.pxd` of the stands in software,
`tick.pxd` and `tick.pyx` (the line and data flow through its stages), `stages.py`, `layout.py` (NumPy dtype, fields, codes,
bits, hash), `CHANNELS.md` (the same for people), and the table of the tick in the README, between its two marks.

`*_parameters.pxd`, the structs of declared parameters: `rt_kernels/parameter_structs.py`.

Beside each `record.toml` (the auxiliary channels of one part; `*record.toml` where a folder has several): `record.pxd`, the C struct that
the kernel writes through `<NameRecord *>aux`, and `record.py`, the declaration `AUX` of the same channels in the same order. A record has

    struct      name of the C struct
    prefix      with which every channel's name begins (default none)
    channel     the members of the struct in order, each with `name`, `unit` (default -), `meaning`, and at most one of
        count = n             an array: one channel of n doubles
        vector = true         double[3]: three channels name_x, name_y, name_z
        wrench = true         double[6]: six channels name_f_x ... name_m_z in N and N.m (no unit of its own)
        each = ["a", "b"]     an array whose elements are channels with these names; unit and meaning: one for all, or a list
        group = "G"           a struct of the group's channels: name_first, name_second ... (no unit and meaning of its own);
                              with times = n an array of such structs, channels name1_first ... namen_last
        record = "FILE"       the struct of another record (path from here), its channels as they are
      stem = "s"  where the channels' names begin with something else than the member's name
    group.G     list of channels, as above, without groups of their own
"""

import hashlib
import json
import sys
import textwrap
import tomllib
from pathlib import Path

from rt_kernels import parameter_structs

KERNELS = Path(__file__).resolve().parent.parent / "rt_kernels"
README = KERNELS.parent / "README.md"
C_TYPES = {"f8": "double", "i8": "int64_t", "i4": "int32_t", "u4": "uint32_t"}
TYPE_ORDER = ["f8", "i8", "i4", "u4"]  # falling alignment: the struct then is little-endian CDR as it stands
COLUMNS = {"name", "type", "shape", "unit", "frame", "writer", "role", "bus", "meaning", "limits", "code", "bits", "initial", "former"}
STAGE_COLUMNS = {"role", "does", "fails", "reads", "reads_previous", "former"}
FIELD_ROLES = ("input", "state", "output", "diagnostic")
SEVERITIES = ("note", "hold", "stop")
POWER = ("kept", "then_off", "off")  # of a stop
STANDS = {"in_process", "hydraulic", "served", "emulator", "ethercat"}  # that can show an injection
INJECTION = {"name": "", "number": 0, "at": "", "meaning": "", "value": 1.0, "value_meaning": "not used", "shows": [], "fault": "",
             "stands": [], "at_start": False, "profile": ""}  # fmt: skip
LINE = 140
HEAD = "Generated from channels.toml by tools/generate.py: do not edit."
MARKS = ("<!-- the tick: generated from channels.toml -->", "<!-- the tick: end -->")


def load() -> dict:
    """The table with all defaults filled in; runs of bits are written out. Exits with a line that says what is wrong."""
    table = tomllib.loads(KERNELS.joinpath("channels.toml").read_text())
    table["runs"] = {group: runs_of(members) for group, members in table["bits"].items()}
    table["bits"] = {group: single_bits(group, members) for group, members in table["bits"].items()}
    writers = ["clock", "ports", "tuning", *(stage["role"] for stage in table["stage"]), "telemetry"]
    for stage in table["stage"]:
        stage.setdefault("fails", "-")
        stage.setdefault("former", "")
        stage.setdefault("reads_previous", [])
        here = writers.index(stage["role"])
        earlier, later = set(writers[:here]), set(writers[here:])
        if set(stage) != STAGE_COLUMNS or not set(stage["reads"]) <= earlier or not set(stage["reads_previous"]) <= later:
            sys.exit(f"channels.toml: stage {stage['role']}: unknown column, or it reads of a stage that has not run yet")
    names = set()
    for field in table["field"]:
        named = (("code", "codes"), ("bits", "bits"))
        unknown = set(field) - COLUMNS or field["writer"] not in writers or any(c in field and field[c] not in table[t] for c, t in named)
        if unknown or field["type"] not in C_TYPES or field["role"] not in FIELD_ROLES or field["name"] in names:
            sys.exit(f"channels.toml: field {field['name']}: unknown column, type, role, writer or list, or a name used twice")
        names.add(field["name"])
        field.setdefault("shape", 1)
        field.setdefault("unit", "-")
        field.setdefault("frame", "")
    bits = [f["bit"] for f in table["fault"]]
    if len(set(bits)) != len(bits) or max(bits) > 62 or any(f["severity"] not in SEVERITIES for f in table["fault"]):
        sys.exit("channels.toml: fault bits must differ and be at most 62, severities must be note, hold or stop")
    for fault in table["fault"]:
        if (fault["severity"] == "stop") != (fault.setdefault("power", "") in POWER):
            sys.exit(f"channels.toml: fault {fault['name']}: a stop, and nothing else, has power = {', '.join(POWER)}")
    check_injections(table, {field["name"]: field.get("bits", "") for field in table["field"]})
    return table


def check_injections(table: dict, lists: dict[str, str]) -> None:
    """Defaults filled in. Exits when a name or number is used twice, a place is no block of numbers, or a fault or bit does not exist."""
    faults = {fault["name"] for fault in table["fault"]} | {""}
    before: dict = {"number": 0, "at": ""}
    places = []
    for entry in table["injection"]:
        unknown = set(entry) - set(INJECTION)
        entry |= {key: value for key, value in INJECTION.items() if key not in entry}
        shown = all(name in table["bits"].get(lists.get(field, ""), ()) for field, name in entry["shows"])
        if unknown or entry["fault"] not in faults or not shown or not set(entry["stands"]) <= STANDS:
            sys.exit(f"channels.toml: injection {entry['name']}: unknown column, fault, stand, or bit of a field")
        if not before["number"] < entry["number"] < 256 or (entry["at"] != before["at"] and entry["at"] in places):
            sys.exit(f"channels.toml: injection {entry['name']}: numbers must rise below 256, with those of one place in a block")
        places.append(entry["at"])
        before = entry


def single_bits(group: str, members: dict) -> dict[str, int]:
    """Name -> number of the bit, runs written out. Exits when two share one or a number is beyond a word."""
    bits = {}
    for name, where in members.items():
        if "#" in name:
            bits |= {name.replace("#", str(k + 1)): where["bit"] + k for k in range(where["count"])}
        else:
            bits[name] = where
    if len(set(bits.values())) != len(bits) or not all(0 <= bit < 32 for bit in bits.values()):
        sys.exit(f"channels.toml: bits.{group}: numbers must differ and be 0 to 31")
    return bits


def runs_of(members: dict) -> dict[str, int]:
    """Name of a run (without its number) -> mask of all its bits."""
    return {name.replace("#", ""): ((1 << where["count"]) - 1) << where["bit"] for name, where in members.items() if "#" in name}


def struct_order(table: dict) -> list[dict]:
    return sorted(table["field"], key=lambda f: TYPE_ORDER.index(f["type"]))


def pad_words(fields: list[dict]) -> int:
    return sum(f["shape"] for f in fields if f["type"] in ("i4", "u4")) % 2


def layout_hash(fields: list[dict]) -> str:
    text = json.dumps([[f["name"], f["type"], f["shape"]] for f in fields] + [pad_words(fields)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def row(values: tuple) -> str:
    return "    (" + ", ".join(repr(v) if isinstance(v, tuple | bool) else json.dumps(v) for v in values) + "),  # noqa: E501"


def commented(code: str, comment: str) -> list[str]:
    """A line of Cython with its comment behind it, or, where that is too long, above it."""
    line = f"{code}  # {comment}"
    if len(line) <= LINE:
        return [line]
    margin = code[: len(code) - len(code.lstrip())] + "# "
    return [*textwrap.wrap(comment, LINE, initial_indent=margin, subsequent_indent=margin), code]


def sample_pxd(table: dict) -> str:
    fields = struct_order(table)
    lines = [
        f'"""The sample of one tick. {HEAD}"""',
        "",
        "from libc.stdint cimport int32_t, int64_t, uint32_t",
        "",
        "",
        "cdef struct Sample:",
    ]
    for f in fields:
        shape = f"[{f['shape']}]" if f["shape"] > 1 else ""
        unit = "" if f["unit"] == "-" else f" [{f['unit']}]"
        lines += commented(f"    {C_TYPES[f['type']]} {f['name']}{shape}", f"{f['writer']}, {f['role']}{unit}: {f['meaning']}")
    if pad_words(fields):
        lines.append("    uint32_t pad  # keeps the size a multiple of eight")
    return "\n".join(lines) + "\n"


def with_power(table: dict, power: str) -> int:
    """Mask of the faults with this stop category."""
    return sum(1 << f["bit"] for f in table["fault"] if f["power"] == power)


def codes_pxd(table: dict) -> str:
    """Masks are constants of the C preprocessor: they fold, and a word of 32 bits has room for all of its own."""
    lines = [
        f'"""Masks of faults and bits, codes. {HEAD}"""',
        "",
        "from libc.stdint cimport int64_t, uint32_t",
        "",
        "",
        "cdef extern from *:",
        '    """',
    ]
    lines += [f"    #define FAULT_{f['name'].upper()} ((int64_t)1 << {f['bit']})" for f in table["fault"]]
    stop = sum(1 << f["bit"] for f in table["fault"] if f["severity"] == "stop")
    lines += [f"    #define FAULTS_STOP ((int64_t){stop}LL)"]
    lines += [f"    #define FAULTS_POWER_{power.upper()} ((int64_t){with_power(table, power)}LL)" for power in POWER[1:]]
    for group, members in table["bits"].items():
        lines += [f"    #define {group.upper()}_{name.upper()} ((uint32_t)1 << {bit})" for name, bit in members.items()]
        lines += [f"    #define {group.upper()}_{name.upper()} ((uint32_t){mask:#x})" for name, mask in table["runs"][group].items()]
    lines += ['    """']
    for f in table["fault"]:
        lines += commented(f"    const int64_t FAULT_{f['name'].upper()}", f"{f['severity']}: {f['meaning']}")
    lines.append("    const int64_t FAULTS_STOP  # all whose severity is stop")
    lines += [f"    const int64_t FAULTS_POWER_{power.upper()}  # all whose power is {power}" for power in POWER[1:]]
    for group, members in table["bits"].items():
        lines += [f"    const uint32_t {group.upper()}_{name.upper()}" for name in members]
        lines += [f"    const uint32_t {group.upper()}_{name.upper()}  # all of the run" for name in table["runs"][group]]
    for group, members in table["codes"].items():
        lines += ["", "", "cdef enum:"]
        lines += [f"    {group.upper()}_{name.upper()} = {value}" for name, value in members.items()]
    return "\n".join(lines) + "\n"


def injections_pxd(table: dict) -> str:
    lines = ['"""Numbers of the faults that a stand in software can show; those of one place are a block.', "", HEAD, '"""']
    lines += ["", "cdef enum:"]
    lines += ["    INJECTION_CLEAR = 0  # everything whole again"]
    for entry in table["injection"]:
        lines += commented(f"    INJECTION_{entry['name'].upper()} = {entry['number']}", entry["meaning"])
    for place in dict.fromkeys(entry["at"] for entry in table["injection"]):
        block = [entry["number"] for entry in table["injection"] if entry["at"] == place]
        lines += [f"    INJECTIONS_{place.upper()}_FIRST = {block[0]}", f"    INJECTIONS_{place.upper()}_LAST = {block[-1]}"]
    return "\n".join(lines) + "\n"


def tick_pxd(table: dict) -> str:
    lines = [
        f'"""The line of one run and the way of one sample through it. {HEAD}"""',
        "",
        "from rt_kernels.plugs cimport Clock, Port, Stage",
        "from rt_kernels.ring cimport ControlBlock",
        "from rt_kernels.sample cimport Sample",
        "",
        "cdef enum:",
        "    PORTS_MAX = 16",
        f"    STAGE_COUNT = {len(table['stage'])}",
        "",
        "# places in Line.stage, in the order of the tick",
        "cdef enum:",
        *(f"    STAGE_{stage['role'].upper()} = {number}" for number, stage in enumerate(table["stage"])),
        "",
        "cdef struct PlacedStage:",
        "    Stage stage",
        "    double *aux  # this part's own auxiliary channels",
        "",
        "cdef struct PlacedPort:",
        "    Port port",
        "    double *aux",
        "",
        "cdef struct Line:",
        "    Clock clock",
        "    PlacedPort port[PORTS_MAX]",
        "    int port_count",
        "    PlacedStage stage[STAGE_COUNT]",
        "    Sample sample  # the working sample: fields keep their last value until their writer is called",
        "    double *aux  # all auxiliary channels",
        "    ControlBlock *block  # where samples go; NULL: nowhere",
        "",
        "cdef void tick(Line *line) noexcept nogil",
    ]
    return "\n".join(lines) + "\n"


def tick_pyx(table: dict) -> str:
    lines = [
        '"""The way of one sample: the stages in the order of the table, nothing else.',
        "",
        "A pure function of the sample, the stages' states and the inputs that the ports have put into the sample.",
        HEAD,
        '"""',
        "",
        "",
        "cdef inline void run(PlacedStage *place, Sample *sample) noexcept nogil:",
        "    place.stage.step(place.stage.self, sample, place.aux)",
    ]
    for stage in table["stage"]:
        lines += ["", "", f"cdef inline void {stage['role']}(Line *line) noexcept nogil:"]
        lines += [f"    # {stage['does']}", f"    run(&line.stage[STAGE_{stage['role'].upper()}], &line.sample)"]
    lines += ["", "", "cdef void tick(Line *line) noexcept nogil:", *(f"    {stage['role']}(line)" for stage in table["stage"])]
    return "\n".join(lines) + "\n"


def stages_py(table: dict) -> str:
    """By itself, because the list of roles is wanted where NumPy is not."""
    lines = [
        f'"""The stages of a tick. {HEAD}"""',
        "",
        "# role, what it does, writers whose fields of this tick it reads, and of the tick before: in the order of the tick",
        "STAGES = (",
        *(row((s["role"], s["does"], tuple(s["reads"]), tuple(s["reads_previous"]))) for s in table["stage"]),
        ")",
        "STAGE_ROLES = tuple(role for role, *_ in STAGES)",
        "",
        "# what a stage was called in logs and files of earlier versions -> its role",
        f"FORMER_ROLES = {json.dumps({s['former']: s['role'] for s in table['stage'] if s['former']})}  # noqa: E501",
        "",
    ]
    return "\n".join(lines)


def layout_py(table: dict) -> str:
    fields = struct_order(table)
    lines = [
        f'"""Layout of a sample for NumPy, stages, codes and bits. {HEAD}"""',
        "",
        "import numpy as np",
        "",
        f'LAYOUT_HASH = "{layout_hash(fields)}"',
        "",
        "# names of earlier versions -> ours",
        f"FORMER_FIELDS = {json.dumps({f['former']: f['name'] for f in table['field'] if 'former' in f})}  # noqa: E501",
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
    lines += ["    ]", ")", "", "# name, mask, severity, meaning, what to do, power (of a stop)", "FAULTS = ("]
    lines += [row((f["name"], 1 << f["bit"], f["severity"], f["meaning"], f["action"], f["power"])) for f in table["fault"]]
    words = [(f["name"], kind, f[kind]) for f in table["field"] for kind in ("code", "bits") if kind in f]
    initial = {f["name"]: f["initial"] for f in table["field"] if "initial" in f}
    initial |= {f["name"]: [0.0] * 6 + [1.0] for f in table["field"] if f["unit"] == "m,-" and f["shape"] == 7}
    lines += [")", "", f"# faults that a stand in software can show: {', '.join(INJECTION)}", "INJECTIONS = ("]
    for entry in table["injection"]:
        lines.append(row(tuple(tuple(map(tuple, v)) if k == "shows" else tuple(v) if k == "stands" else v for k, v in in_order(entry))))
    lines += [")", "", "# list -> name -> number", "CODES = {"]
    lines += [f'    "{group}": {json.dumps(members)},  # noqa: E501' for group, members in table["codes"].items()]
    lines += ["}", "", "# list -> name -> mask", "BITS = {"]
    masks = {group: {name: 1 << bit for name, bit in members.items()} for group, members in table["bits"].items()}
    lines += [f'    "{group}": {json.dumps(members)},  # noqa: E501' for group, members in masks.items()]
    lines += ["}", "", "# list -> name of a run without its number -> mask of all its bits", "RUNS = {"]
    lines += [f'    "{group}": {json.dumps(runs)},' for group, runs in table["runs"].items() if runs]
    lines += ["}", "", "# field -> kind of its list (code or bits), name of the list", "WORDS = {"]
    lines += [f'    "{name}": ("{kind}", "{group}"),' for name, kind, group in words]
    lines += ["}", "", "# field -> value before the first tick, where it is not zero", "INITIAL = {"]
    lines += [f'    "{name}": {json.dumps(value)},' for name, value in initial.items()]
    lines += ["}", ""]
    return "\n".join(lines)


def in_order(entry: dict) -> list[tuple]:
    return [(column, entry[column]) for column in INJECTION]


def meaning(field: dict) -> str:
    named = field.get("code") or field.get("bits")
    return field["meaning"] + (f" ([{named}](#codes-and-bits))" if named else "")


def channels_md(table: dict) -> str:
    lines = [
        "# Channels",
        "",
        f"{HEAD} Layout hash `{layout_hash(struct_order(table))}`.",
        "",
        "## Stages, in the order of the tick",
        "",
        *stage_rows(table),
        "",
        "## Fields",
        "",
        "| field | type | shape | unit | frame | writer | role | meaning |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for f in table["field"]:
        cells = (f"`{f['name']}`", f["type"], f["shape"], f["unit"], f["frame"], f["writer"], f["role"], meaning(f))
        lines.append("| " + " | ".join(str(c) for c in cells) + " |")
    lines += ["", "## Faults", "", "| bit | fault | severity | power | meaning | what to do |", "|---|---|---|---|---|---|"]
    for f in table["fault"]:
        power = f["power"].replace("_", " ") or "-"
        lines.append(f"| {f['bit']} | `{f['name']}` | {f['severity']} | {power} | {f['meaning']} | {f['action']} |")
    lines += ["", "## Injected faults", ""]
    lines += ["What the stands in software show on request (`virtual.faults` of a stand file, command `inject_fault`).", ""]
    lines += ["| injection | number | at | meaning | value | shows | fault | stands |", "|---|---|---|---|---|---|---|---|"]
    for e in table["injection"]:
        value = "-" if e["value_meaning"] == "not used" else f"{e['value']:g} {e['value_meaning']}"
        shows = ", ".join(f"`{field}` {name}" for field, name in e["shows"]) or "-"
        cells = (f"`{e['name']}`", e["number"], e["at"], e["meaning"], value, shows, e["fault"] or "-", ", ".join(e["stands"]))
        lines.append("| " + " | ".join(str(c) for c in cells) + " |")
    lines += ["", "## Codes and bits", "", "Codes (number, name):", ""]
    for group, members in table["codes"].items():
        lines.append(f"- **{group}**: " + ", ".join(f"{v} {k}" for k, v in members.items()))
    lines += ["", "Bits (number of the bit, name):", ""]
    for group, members in table["bits"].items():
        lines.append(f"- **{group}**: " + ", ".join(f"{v} {k}" for k, v in members.items()))
    return "\n".join(lines) + "\n"


def stage_rows(table: dict) -> list[str]:
    """The stages as rows of Markdown: role, what it does, what it writes and reads."""
    lines = ["| stage | does | writes | reads | reads of the tick before |", "|---|---|---|---|---|"]
    for s in table["stage"]:
        writes = ", ".join(f"`{f['name']}`" for f in table["field"] if f["writer"] == s["role"])
        lines.append(f"| `{s['role']}` | {s['does']} | {writes} | {', '.join(s['reads'])} | {', '.join(s['reads_previous']) or '-'} |")
    return lines


def readme(table: dict) -> str:
    """The README with its table of the tick as the stages are now."""
    text = README.read_text()
    before, _, rest = text.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not end:
        sys.exit(f"README.md: the marks {MARKS[0]} and {MARKS[1]} are needed around the table of the tick")
    rows = ["| # | stage | does | failure modes |", "|---|---|---|---|"]
    rows += [f"| {number} | `{s['role']}` | {s['does']} | {s['fails']} |" for number, s in enumerate(table["stage"], 1)]
    return "\n".join([before + MARKS[0], *rows, MARKS[1] + after])


# ------------------------------------------------------------------------------------------- records of auxiliary channels

AXES = ("x", "y", "z")
KINDS = ("count", "vector", "wrench", "each", "group", "record")
RECORD_COLUMNS = {"name", "stem", "unit", "meaning", "times", *KINDS}


def load_record(path: Path) -> dict:
    record = tomllib.loads(path.read_text())
    record.setdefault("prefix", "")
    record.setdefault("group", {})
    record.setdefault("widens", False)
    if record["widens"] and (record["group"] or any(set(KINDS) & set(channel) != {"count"} for channel in record["channel"])):
        sys.exit(f"{path}: widens: limit channels with a count")
    for channel in [*record["channel"], *(c for group in record["group"].values() for c in group)]:
        kinds = [k for k in KINDS if k in channel]
        if set(channel) - RECORD_COLUMNS or len(kinds) > 1 or ("times" in channel and kinds != ["group"]):
            sys.exit(f"{path}: channel {channel['name']}: unknown column, or more than one of {', '.join(KINDS)}")
    names = [name for name, *_ in aux_channels(record, path)]
    if len(set(names)) != len(names):
        sys.exit(f"{path}: a name is used twice: {sorted(n for n in names if names.count(n) > 1)[0]}")
    return record


def scalars(channel: dict) -> list[tuple[str, str, str, int]]:
    """Auxiliary channels (name, unit, meaning, count) of a channel that is a number or an array of numbers."""
    name, unit, meaning = channel.get("stem", channel["name"]), channel.get("unit", "-"), channel["meaning"]
    if "vector" in channel:
        return [(f"{name}_{axis}", unit, f"{meaning}, {axis}", 1) for axis in AXES]
    if "wrench" in channel:
        kinds = (("f", "N", "force"), ("m", "N.m", "moment"))
        return [(f"{name}_{letter}_{axis}", unit, f"{meaning}: {word}, {axis}", 1) for letter, unit, word in kinds for axis in AXES]
    if "each" in channel:
        n = len(channel["each"])
        units, meanings = ([one] * n if isinstance(one, str) else one for one in (unit, meaning))
        return [(*row, 1) for row in zip(channel["each"], units, meanings, strict=True)]
    return [(name, unit, meaning, channel.get("count", 1))]


def aux_channels(record: dict, path: Path) -> list[tuple[str, str, str, int]]:
    """All auxiliary channels of a record in their order: (name, unit, meaning, count)."""
    found = []
    for channel in record["channel"]:
        if "record" in channel:
            other = path.parent / channel["record"]
            found += aux_channels(load_record(other), other)
        elif "group" in channel:
            for place in range(channel.get("times", 1)):
                stem = channel.get("stem", channel["name"]) + (str(place + 1) if "times" in channel else "")
                for member in record["group"][channel["group"]]:
                    found += [(record["prefix"] + stem + "_" + name.removeprefix("_"), *rest) for name, *rest in scalars(member)]
        else:
            found += [(record["prefix"] + name, *rest) for name, *rest in scalars(channel)]
    return found


def member_lines(channel: dict, widens: bool = False) -> list[str]:
    """The member of the C struct that holds a channel; widens: that points to it."""
    rows = scalars(channel)
    size = rows[0][3] if len(rows) == 1 else len(rows)
    units = ", ".join(dict.fromkeys(unit for _, unit, _, _ in rows if unit != "-"))
    meaning = channel["meaning"] if isinstance(channel["meaning"], str) else "; ".join(channel["meaning"])
    if "each" in channel and isinstance(channel["meaning"], str):
        meaning = ", ".join(channel["each"]) + ": " + meaning
    code = f"    double *{channel['name']}" if widens else f"    double {channel['name']}{f'[{size}]' if size > 1 else ''}"
    return commented(code, f"{f'[{units}] ' if units else ''}{meaning}")


def record_pxd(path: Path) -> str:
    record = load_record(path)
    lines = [
        '"""Auxiliary channels as the kernel writes them.',
        "",
        f"Generated from {path.name} by tools/generate.py: do not edit.",
        '"""',
        "",
    ]
    others = {}
    for channel in record["channel"]:
        if "record" in channel:
            other = (path.parent / channel["record"]).resolve()
            others[channel["record"]] = load_record(other)["struct"]
            module = ".".join(other.relative_to(KERNELS.parent).with_suffix("").parts)
            lines += [f"from {module} cimport {others[channel['record']]}", ""]
    stem = record["struct"].removesuffix("Record")
    for name, members in record["group"].items():
        lines += ["", f"cdef struct {stem}{name}:", *(line for m in members for line in member_lines(m)), ""]
    lines += ["", f"cdef struct {record['struct']}:"]
    for channel in record["channel"]:
        times = f"[{channel['times']}]" if "times" in channel else ""
        if "record" in channel:
            lines.append(f"    {others[channel['record']]} {channel['name']}")
        elif "group" in channel:
            lines.append(f"    {stem}{channel['group']} {channel['name']}{times}")
        else:
            lines += member_lines(channel, record["widens"])
    if record["widens"]:
        lines += [
            "", "",
            f"cdef inline {record['struct']} places_of(double *aux, const int *width) noexcept nogil:",
            '    """Where the channels of a run begin. width: of each."""',
            f"    cdef {record['struct']} record",
        ]  # fmt: skip
        for number, channel in enumerate(record["channel"]):
            lines += [f"    record.{channel['name']} = aux", f"    aux += width[{number}]"]
        lines.append("    return record")
    return "\n".join(lines) + "\n"


def record_py(path: Path) -> str:
    lines = [
        f'"""Auxiliary channels of the part. Generated from {path.name} by tools/generate.py: do not edit."""',
        "",
        "from rt_kernels.parameters import Aux",
        "",
        "AUX = (",
    ]
    for name, unit, meaning, count in aux_channels(load_record(path), path):
        words = [json.dumps(v, ensure_ascii=False) for v in (name, unit, meaning)] + [str(count)] * (count > 1)
        line = f"    Aux({', '.join(words)}),"
        lines.append(line if len(line) <= LINE else line + "  # noqa: E501")
    return "\n".join([*lines, ")", ""])


PRODUCTS = {
    KERNELS / "sample.pxd": sample_pxd,
    KERNELS / "codes.pxd": codes_pxd,
    KERNELS.parent / "drivers" / "simulated" / "injections.pxd": injections_pxd,
    KERNELS / "tick.pxd": tick_pxd,
    KERNELS / "tick.pyx": tick_pyx,
    KERNELS / "stages.py": stages_py,
    KERNELS / "layout.py": layout_py,
    KERNELS / "CHANNELS.md": channels_md,
    README: readme,
}
READ = {KERNELS / "tick.pyx", KERNELS / "CHANNELS.md", README}  # by people: committed


def products() -> dict[Path, str]:
    """Every generated file and what it must hold."""
    table = load()
    texts = {path: make(table) for path, make in PRODUCTS.items()}
    for path in sorted([*KERNELS.rglob("*record.toml"), *KERNELS.parent.joinpath("drivers").rglob("*record.toml")]):
        texts[path.with_suffix(".pxd")] = record_pxd(path)
        texts[path.with_suffix(".py")] = record_py(path)
    return texts | parameter_structs.structs(KERNELS.parent, ("rt_kernels", "drivers"))


def write() -> None:
    """What a build includes. Exits where the committed order of the tick is not the table's: a build changes nothing that is committed."""
    for path, text in products().items():
        if path.exists() and path.read_text() == text:
            continue
        if path == KERNELS / "tick.pyx":
            sys.exit("rt_kernels/tick.pyx is not what rt_kernels/channels.toml gives: python tools/generate.py makes it")
        if path not in READ:
            path.write_text(text)
