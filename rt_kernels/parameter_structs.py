"""The C structs of declared parameters: of a parameter nothing has to be written but its `Parameter(...)` in the part's file.

A kernel that says `from parts.pad_parameters cimport PadParameters, fill_pad, tune_pad` gets `parts/pad_parameters.pxd`, made before the
build of what `parts/pad.pyx` (or `pad.py`) declares (`structs`). It holds, for `PARAMETERS` of a class `Pad` and for every tuple
`PAD_PARAMETERS` at the top of the file,

    PadParameters               a field for each number, switch and list of numbers of fixed length; none for text, tables, rows, lists of
                                any length, numbers that may be absent, and whole numbers whose limits are not within 32 bits
    fill_pad(&p, keys)          the fields from the values that `checked` gives
    tune_pad(part, &p, keys)    a stage's `let_tune` of what is declared tunable, once its plug knows the block; only where something is

A field has the key's name without the ending of its unit, the whole key where two would have the same name; angles are in radians.

Nothing is evaluated: of the file only `Parameter("key", ...)` is read as it stands in the tuple. Needs Python alone.
"""

import ast
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rt_kernels.units import suffix

POSITIONS = ("key", "kind", "unit", "meaning", "default", "low", "high", "shape", "choices", "of", "tunable")
C_TYPES = {"float": "double", "floats": "double", "int": "int", "ints": "int", "bool": "int"}
SI = {"deg": "rad", "deg/s": "rad/s", "deg/s2": "rad/s2"}
DEGREE = "0.017453292519943295"
C_WORDS = {"auto", "case", "char", "const", "default", "do", "double", "enum", "extern", "float", "int", "long", "register", "short",
           "signed", "static", "struct", "switch", "union", "unsigned", "void", "volatile"}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """One parameter as a field. count: elements of an array, 0: a number. above, below: keys of `Tunable`."""

    key: str
    name: str
    c_type: str
    unit: str
    count: int
    tunable: bool
    above: str
    below: str


def structs(root: Path, packages: Sequence[str]) -> dict[Path, str]:
    """Every `*_parameters.pxd` that a kernel of the packages below `root` asks for, and what it must hold."""
    kernels = [p for package in packages for p in root.joinpath(package).rglob("*.p[yx][xd]") if not p.name.endswith("_parameters.pxd")]
    asked = {name for p in kernels for name in re.findall(r"(?m)^from ([\w.]+)_parameters cimport ", p.read_text(encoding="utf-8"))}
    places = sorted(root.joinpath(*name.split(".")) for name in asked if name.partition(".")[0] in packages)
    return {place.with_name(f"{place.name}_parameters.pxd"): pxd(source_of(place)) for place in places}


def write(root: Path, packages: Sequence[str]) -> None:
    """`structs`, written where a text differs: nothing is built because of the others."""
    for path, text in structs(root, packages).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def source_of(place: Path) -> Path:
    """The file of a module. Exits where there is none."""
    for ending in (".pyx", ".py"):
        if place.with_suffix(ending).exists():
            return place.with_suffix(ending)
    sys.exit(f"{place}_parameters.pxd: a kernel asks for it, but there is no {place.name}.pyx and no {place.name}.py")


def declarations(path: Path) -> Iterator[tuple[str, list[Field]]]:
    """Name (`pad_arm` of a class PadArm, or of PAD_ARM_PARAMETERS) and fields of each tuple of the file."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    owner = ""
    for number, line in enumerate(lines):
        if found := re.match(r"(?:cdef )?class (\w+)", line):
            owner = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", found[1]).lower()
        if found := re.match(r"(?: {4}|(\w+)_)PARAMETERS = (?=\S)", line):
            rest = "".join([line[found.end() :], *lines[number + 1 :]])
            fields = [field for call in calls(ast.parse(f"({whole(rest)}\n)", mode="eval").body) if (field := field_of(call))]
            yield (found[1] or owner).lower(), named(fields)


def whole(text: str) -> str:
    """The expression that a text begins with: to the end of its last line."""
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            break
        tokens.append(token)
    return tokenize.untokenize(tokens)


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """`Parameter("key", ...)` in a tuple or a sum of tuples."""
    if isinstance(node, ast.BinOp):
        yield from calls(node.left)
        yield from calls(node.right)
    elif isinstance(node, ast.Tuple):
        for item in node.elts:
            if isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id == "Parameter":
                yield item


def literal(node: ast.AST | None) -> object:
    """The value of a constant; None for everything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand)
        return -value if isinstance(value, int | float) else None
    return node.value if isinstance(node, ast.Constant) else None


def field_of(call: ast.Call) -> Field | None:
    """None for a parameter without a place in the struct. It has no name yet."""
    given: dict[str | None, ast.expr] = {word.arg: word.value for word in call.keywords}
    given |= zip(POSITIONS, call.args, strict=False)
    key, kind, unit, shape = (literal(given.get(word)) for word in ("key", "kind", "unit", "shape"))
    absent = isinstance(given.get("default"), ast.Constant) and literal(given["default"]) is None
    limits = [literal(given.get(word)) for word in ("low", "high")]
    too_large = kind in ("int", "ints") and not all(isinstance(x, int) and abs(x) < 2**31 for x in limits)
    count = shape if isinstance(shape, int) else 0
    if not isinstance(key, str) or kind not in C_TYPES or absent or too_large or (kind in ("floats", "ints")) != (count > 0):
        return None
    tunable = given.get("tunable")
    sides = {word.arg: literal(word.value) for word in tunable.keywords} if isinstance(tunable, ast.Call) else {}
    return Field(key, "", C_TYPES[str(kind)], str(unit), count, tunable is not None, *(str(sides.get(s, "")) for s in ("above", "below")))


def named(fields: Sequence[Field]) -> list[Field]:
    """The same with their names, those of 8 bytes first."""
    short = [f.key.removesuffix(f"_{suffix(f.unit)}") for f in fields]
    found = []
    for f, name in zip(fields, short, strict=True):
        if short.count(name) > 1 or keyword.iskeyword(name) or name in C_WORDS:
            name = f.key.removesuffix(suffix(f.unit)) + suffix(SI[f.unit]) if f.unit in SI else f.key
        found.append(replace(f, name=name))
    return sorted(found, key=lambda f: f.c_type)


def pxd(source: Path) -> str:
    """The file of the structs of one source."""
    blocks = [block for name, fields in declarations(source) if fields for block in blocks_of(name, fields)]
    what = f"Declared parameters as the kernel reads them.\n\nGenerated from {source.name} by rt_kernels/parameter_structs.py: do not edit."
    stage = ["from rt_kernels.plugs cimport StagePart"] if any("StagePart" in block for block in blocks) else []
    return "\n\n\n".join(["\n\n".join([f'"""{what}\n"""', *stage]), *blocks]) + "\n"


def blocks_of(name: str, fields: Sequence[Field]) -> Iterator[str]:
    """Struct, filling and tuning of one tuple."""
    struct = f"{name.title().replace('_', '')}Parameters"
    lines = [f"cdef struct {struct}:"]
    for f in fields:
        unit = SI.get(f.unit, f.unit)
        lines.append(f"    {f.c_type} {f.name}{f'[{f.count}]' if f.count else ''}" + (f"  # {unit}" if unit != "-" else ""))
    odd = sum(f.count or 1 for f in fields if f.c_type == "int") % 2
    yield "\n".join([*lines, *["    int unused"] * odd])
    lines = [f"cdef inline int fill_{name}({struct} *p, dict keys) except -1:", *["    cdef int i"] * any(f.count for f in fields)]
    for f in fields:
        scale = f" * {DEGREE}" if f.unit in SI else ""
        if f.count:
            lines += [f"    for i in range({f.count}):", f'        p.{f.name}[i] = keys["{f.key}"][i]{scale}']
        else:
            lines.append(f'    p.{f.name} = keys["{f.key}"]{scale}')
    yield "\n".join([*lines, "    return 0"])
    lines = [f"cdef inline int tune_{name}(StagePart part, const {struct} *p, dict keys) except -1:"]
    for f in fields:
        half_way = [f'0.5 * (keys["{f.key}"] + keys["{other}"])' if other else "None" for other in (f.above, f.below)]
        arguments = [f'"{f.key}"', f"&p.{f.name}", f'keys["{f.key}"]', *half_way, DEGREE if f.unit in SI else "1.0"]
        lines += [f"    part.let_tune({', '.join(arguments)})"] * f.tunable
    if len(lines) > 1:
        yield "\n".join([*lines, "    return 0"])
