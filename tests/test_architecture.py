"""The rules of the tree: who may import whom (`import` and `cimport`), the README's two commands."""

import ast
import re
import sys
from pathlib import Path

import pytest

from hil_server.registry import PARTS

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hil_server", "rt_kernels", "drivers", "stand_configs")
OURS = (*PACKAGES, "tests", "tools")
MAY_IMPORT = {
    "hil_server": {"hil_server", "drivers", "rt_kernels", "stand_configs"},
    "drivers": {"drivers", "rt_kernels"},
    "rt_kernels": {"rt_kernels"},
    "stand_configs": set(),
}
# Within a package: room (folder, or file at its top) → the rooms of the same package that it may import. An author of a room states here
# what it may see; a room that is not here fails, and so does a circle. "below" stands for what everybody may see.
ROOMS = {
    "hil_server": {
        "errors": "",
        "interrupts": "",
        "workers": "interrupts",
        "pages": "config errors log",
        "roles": "",
        "values": "",
        "registry": "errors roles",
        "host": "errors registry values",
        "requirements": "errors values",
        "log": "errors",
        "bus": "errors host requirements log",
        "config": "errors interrupts registry requirements values",
        "client": "errors log bus",
        "line": "errors registry roles values host config requirements log bus",
        "operator_desk": "errors registry values config log bus client",
        "judge": "errors registry host config requirements log bus line pages",
        "exchange": "errors registry host config requirements log bus line operator_desk pages judge",
        "identify": "errors registry config log bus line judge exchange",
        "predict": "errors registry values config log bus line pages judge",
        "report": "errors registry config requirements log bus line pages judge",
        "run": "errors interrupts registry roles values host config requirements log bus line judge identify predict report",
        "world": "errors interrupts workers values config log bus line judge operator_desk predict run",
        "campaign": "errors interrupts workers values host config requirements log line run pages",
        "console": "errors registry values client config log bus operator_desk line judge report run pages",
        "viewers": "errors client config log bus line exchange console pages",
        "terminal": "errors registry values host config requirements bus run",
        "verbs": "errors interrupts workers registry roles values client host config requirements log bus operator_desk line judge "
        "exchange identify predict report run world campaign console viewers terminal",
        "cli": "errors interrupts values host terminal verbs",
        "__main__": "cli interrupts",
    },
    "drivers": {
        "raw_frames": "",
        "identity": "",
        "watchdog_output": "",
        "hand_controllers": "",
        "replayed": "",
        "drives": "raw_frames identity watchdog_output",
        "mechanism_signals": "raw_frames identity watchdog_output drives",
        "wrench_sensors": "raw_frames identity",
        "simulated": "raw_frames wrench_sensors",
    },
    "rt_kernels": {
        "stages": "",
        "layout": "stages",
        "codes": "layout",
        "parameters": "",
        "extends": "parameters",
        "units": "",
        "parameter_structs": "units",
        "context": "model",
        "pictures": "",
        "host": "",
        "disk": "",
        "doors": "disk",
        "algebra": "",
        "sample": "",
        "recovery": "codes sample",
        "block_check": "layout",
        "plugs": "algebra block_check layout parameters sample",
        "memory_file": "host",
        "ring": "below memory_file",
        "grid_reference": "",
        "late_ticks": "host memory_file",
        "clocks": "below late_ticks ring grid_reference",
        "tick": "below ring",
        "command_latch": "below ring",
        "recorded_operator": "below ring command_latch",
        "loop": "below ring tick tuning",
        "tuning": "codes layout parameters plugs sample stages",
        # set-up code, tree kernels, and the library that no tick calls
        "model": "extends parameters",
        "multibody": "algebra model",
        "offline": "algebra model multibody plugs",
        # the stand's platform, and docking units
        "stewart": "below",
        "contact": "algebra",
        "mechanisms": "below contact",
        # the stages
        "forward_kinematics": "below stewart",
        "wrench": "below",
        "events": "below",
        "guidance": "below recovery",
        "control": "below model",
        "compensation": "below model stewart",
        "dynamics": "below model multibody",
        "setpoint_kinematics": "below stewart guidance",
        "safety": "below stewart recovery",
    },
}
BELOW = {"rt_kernels": "algebra block_check codes context host layout parameters pictures plugs sample stages"}
# Folders of a room that see less than the room: what they may import of the package.
UNIT = ("rt_kernels.mechanisms.common", "rt_kernels.contact", "rt_kernels.algebra", "rt_kernels.block_check", "rt_kernels.codes",
        "rt_kernels.plugs", "rt_kernels.parameters", "rt_kernels.pictures", "rt_kernels.context.UnitEnergy")  # fmt: skip
NARROWER = {
    "rt_kernels/mechanisms/common": ("rt_kernels.mechanisms.common", "rt_kernels.algebra", "rt_kernels.contact"),
    **{f"rt_kernels/mechanisms/{unit}": (f"rt_kernels.mechanisms.{unit}", *UNIT) for unit in ("probe_cone", "ring", "berthing", "linear")},
}
# What the kernels may take from elsewhere. The standard library, NumPy and SciPy serve `def` wrappers and set-up only.
KERNEL_OUTSIDE = set(sys.stdlib_module_names) | {"libc", "cpython", "cython", "numpy", "scipy", "posix"}

IMPORT = re.compile(r"^\s*(?:from\s+([.\w]+)\s+c?import\s+\(?\s*([\w, ]*)|c?import\s+([\w., ]+))", re.MULTILINE)


def sources(package):
    return sorted(p for kind in ("*.py", "*.pyx", "*.pxd", "*.pxi") for p in ROOT.joinpath(package).rglob(kind))


def imports(text):
    """Modules named by import and cimport lines, docstrings and comments left out. `from a import b` gives a.b as well as a."""
    code = re.sub(r'"""(?:.|\n)*?"""|#.*', "", text)
    for module, names, plain in IMPORT.findall(code):
        if module:
            yield module
            yield from (f"{module}.{name.split()[0]}" for name in names.split(",") if name.strip())
        for name in filter(str.strip, plain.split(",")):
            yield name.split()[0]


def test_imports_are_found():
    text = '"""import hidden"""\nfrom a.b cimport c, d as e\nimport f.g as h, i\n    from j import (\n        k)\n# import l\ncimport m\n'
    assert set(imports(text)) == {"a.b", "a.b.c", "a.b.d", "f.g", "i", "j", "j.k", "m"}


@pytest.mark.parametrize("package", PACKAGES)
def test_layers(package):
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in sources(package)
        for module in imports(file.read_text())
        if module.startswith(".") or (module.partition(".")[0] in OURS and module.partition(".")[0] not in MAY_IMPORT[package])
    ]
    assert not wrong


def room_of(package, file):
    """Folder at the top of the package, or the file's own name where it lies at the top; a struct of parameters is of its part's."""
    inside = file.relative_to(ROOT / package)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem.removesuffix("_parameters")


def may_see(package):
    """Room → rooms that it may import."""
    below = set(BELOW.get(package, "").split())
    seen = {room: set(words.split()) for room, words in ROOMS[package].items()}
    return {room: (words - {"below"}) | (below if "below" in words else set()) for room, words in seen.items()}


@pytest.mark.parametrize("package", ROOMS)
def test_every_pair_of_rooms(package):
    allowed = may_see(package)
    files = [file for file in sources(package) if file.parent != ROOT / package or file.stem != "__init__"]
    rooms = {room_of(package, file) for file in files}
    assert sorted(rooms - set(allowed)) == [], "a room without its line in ROOMS"
    assert sorted(set(allowed) - rooms) == [], "a line in ROOMS without its room"
    wrong = []
    for file in files:
        here = room_of(package, file)
        for module in imports(file.read_text()):
            first, *rest = module.split(".")
            if first == package and rest and rest[0] in rooms and rest[0] != here and rest[0] not in allowed[here]:
                wrong.append(f"{file.relative_to(ROOT)} imports {module}")
    assert not wrong


@pytest.mark.parametrize("place", NARROWER)
def test_narrower_places(place):
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in sources(place)
        for module in imports(file.read_text())
        if module.partition(".")[0] in OURS
        and not any(f"{module}.".startswith(f"{allowed}.") or allowed.startswith(f"{module}.") for allowed in NARROWER[place])
    ]
    assert sources(place) and not wrong


@pytest.mark.parametrize("package", ROOMS)
def test_no_room_sees_itself_through_others(package):
    """The table has no circle: rooms can be put in an order in which each sees only earlier ones."""
    allowed = may_see(package)
    done = set()
    while left := {room for room in allowed if room not in done}:
        free = {room for room in left if allowed[room] <= done}
        assert free, f"a circle among {', '.join(sorted(left))}"
        done |= free


def test_no_files_import_each_other():
    """Neither directly nor through others, late imports and those for types included."""
    files = [file for package in PACKAGES for file in sources(package) if file.suffix == ".py" and file.stem != "__init__"]
    name_of = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}
    left = {name: {module for module in imports(file.read_text()) if module in name_of} - {name} for name, file in name_of.items()}
    assert len(left) > 200 and sum(map(len, left.values())) > 500
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert not left, f"a circle among, or below, {', '.join(sorted(left))}"


# Words that are names of parts and something else too: word → what else it is.
ORDINARY = {
    "none": "nothing",
    "limits": "a table of the stand",
    "wall": "time of day on the bus",
    "latch": "a part of a docking unit",
    "ring": "a body of the ring units",
    "script": "the file of a recorded operator",
    "thrusters": "those of a craft",
    "cia402": "the CANopen profile that the emulated drives speak",
    "cia408": "the CANopen profile that the emulated drives speak",
}
NAMED = {
    ("rt_kernels/compensation/phased.pyx", "phase_lead"): "its default in free motion",
    ("rt_kernels/model/craft.py", "docking"): "the port of a craft that carries the docking unit",
}


def mentions(text):
    """Literals and modules in code: docstrings and comments left out."""
    code = re.sub(r'"""(?:.|\n)*?"""|#.*', "", text)
    return {a or b for a, b in re.findall(r"""\"(\w+)\"|'(\w+)'""", code)}, set(imports(text)), code


def part_names_in(file, text):
    """Names of registered parts in a file that is not their own, as literals or by the import of their modules across a room."""
    own = {name: {where.partition(":")[0] for parts in PARTS.values() if name in parts for where in [parts[name]]} for name in ALL_PARTS}
    here = ".".join(Path(file).with_suffix("").parts)
    literals, modules, code = mentions(text)
    for name in sorted(literals & set(ALL_PARTS)):
        chosen = re.search(rf"""part["']?\]?\s*(?:[:=!]=?|in)\s*\(?\s*["']{name}["']""", code)
        if here not in own[name] and (file, name) not in NAMED and (name not in ORDINARY or chosen):
            yield f"{file} names {name}"
    if file.startswith("hil_server"):  # kernels share inline functions with each other
        yield from (f"{file} imports {m}" for m in sorted(modules & ALL_MODULES) if m.rpartition(".")[0] != here.rpartition(".")[0])


ALL_PARTS = sorted({name for parts in PARTS.values() for name in parts})
ALL_MODULES = {where.partition(":")[0] for parts in PARTS.values() for where in parts.values()}


def test_nothing_else_names_a_part():
    """A part is one file and its line in the registry; files of the configuration and tests name it, nothing else does."""
    registry_or_table = ("registry.py", "layout.py")
    files = [p for package in ("hil_server", "drivers", "rt_kernels") for p in sources(package) if p.name not in registry_or_table]
    found = [reported for file in files for reported in part_names_in(str(file.relative_to(ROOT)), file.read_text())]
    assert not found


@pytest.mark.parametrize(
    "line",
    ["if name == 'smith':", 'table["part"] = "none"', '{"part": "latch"}', 'config["part"] == "limits"', "unit in ('ring_x', 'bumper')",
     "from rt_kernels.compensation.energy_cap import EnergyCap"],
)  # fmt: skip
def test_a_named_part_is_found(line):
    assert list(part_names_in("hil_server/predict/prediction.py", line + "\n"))


def phrases(text):
    """Words of English with which something is asked of the registry: registry.x("a b"), registry.X[f"a: {b}"]."""
    for node in ast.walk(ast.parse(text)):
        asked = node.func if isinstance(node, ast.Call) else node.value if isinstance(node, ast.Subscript) else None
        if isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == "registry":
            given = node.args if isinstance(node, ast.Call) else [node.slice]
            parts = [part for one in given for part in (one.values if isinstance(one, ast.JoinedStr) else [one])]
            yield from (one.value for one in parts if isinstance(one, ast.Constant) and " " in str(one.value))


def test_no_part_is_found_by_a_phrase():
    """By its role and its name, or by a name of the registry: never by words of English."""
    found = [f"{file.relative_to(ROOT)}: {reported}" for file in sources("hil_server") for reported in phrases(file.read_text())]
    assert not found
    assert list(phrases('registry.own("clock of a simulation")')) and list(phrases('registry.CHOSEN[f"virtual stand: {device}"]'))
    assert not list(phrases('registry.part("clocks", registry.LIVE_CLOCK), "two words"'))


@pytest.mark.parametrize("line", ['"""smith"""', "x = 1  # as 'smith' does", 'limits = stand["limits"]', 'words or "none"'])
def test_ordinary_words_are_none(line):
    assert not list(part_names_in("hil_server/predict/prediction.py", line + "\n"))


def test_no_part_reaches_into_the_offline_library():
    """What no tick calls is for tests, tools and people's scripts."""
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for package in PACKAGES
        for file in sources(package)
        if ROOT / "rt_kernels/offline" not in file.parents
        for module in imports(file.read_text())
        if f"{module}.".startswith("rt_kernels.offline.")
    ]
    assert not wrong


def test_kernels_take_little_from_outside():
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in sources("rt_kernels")
        if file.suffix != ".py"  # set-up in plain Python may read a model with a library of its own
        for module in imports(file.read_text())
        if module.partition(".")[0] not in KERNEL_OUTSIDE | {"rt_kernels"}
    ]
    assert not wrong


def test_names_that_say_nothing_are_absent():
    found = [
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in ROOT.joinpath(package).rglob("*")
        # the one exception says what it is common to
        if file != ROOT / "rt_kernels/mechanisms/common" and re.search(r"(^|_)(utils?|common|helpers?|managers?|misc)(_|$)", file.stem)
    ]
    assert not found


def test_configuration_comes_from_files_only():
    wrong = [
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in sources(package)
        if re.search(r"os\.environ|getenv|import yaml", file.read_text())
        and file.name != "completion.py"  # the shell asks for completions by variables of its own
    ]
    assert not wrong


def test_no_stage_calls_the_mathematical_library():
    """Transcendental functions of the C library differ between machines; sqrt is exact. Set-up code may use Python's `math`."""
    allowed = {"sqrt", "fabs", "isfinite", "isnan", "copysign", "floor", "NAN", "INFINITY", "fmin", "fmax", "rint", "ceil"}
    wrong = []
    for file in sources("rt_kernels"):
        for names in re.findall(r"^from libc\.math cimport (.*)$", file.read_text(), re.MULTILINE):
            wrong += [f"{file.relative_to(ROOT)}: {n}" for n in re.findall(r"\w+", names) if n not in allowed]
    assert not wrong


def test_readme_has_its_two_commands():
    found = re.findall(r"^```sh\n(.*?)^```", ROOT.joinpath("README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert found[0] == "sh tools/demo.sh\nsh tools/test.sh\n"
