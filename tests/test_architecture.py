"""The rules of the tree: who may import whom (`import` and `cimport`), the README's two commands."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("hil_server", "rt_kernels", "drivers", "stand_configs")
OURS = (*PACKAGES, "tests", "tools")
MAY_IMPORT = {
    "hil_server": {"hil_server", "drivers", "rt_kernels", "stand_configs"},
    "drivers": {"drivers", "rt_kernels"},
    "rt_kernels": {"rt_kernels"},
    "stand_configs": set(),
}
# Within a package: file or folder → the only modules of ours that it may import.
NARROWER = {
    "hil_server/errors.py": (),
    "hil_server/registry.py": ("hil_server.errors", "rt_kernels.layout"),
    "rt_kernels/algebra": ("rt_kernels.algebra",),
    "rt_kernels/parameters.py": (),
    "rt_kernels/layout.py": (),
    "rt_kernels/model": ("rt_kernels.model", "rt_kernels.parameters"),
    "rt_kernels/multibody": ("rt_kernels.multibody", "rt_kernels.model", "rt_kernels.algebra"),
    "rt_kernels/offline": ("rt_kernels.offline", "rt_kernels.multibody", "rt_kernels.model", "rt_kernels.algebra", "rt_kernels.plugs"),
    "rt_kernels/dynamics": ("rt_kernels.dynamics", "rt_kernels.multibody", "rt_kernels.model", "rt_kernels.algebra", "rt_kernels.plugs",
                            "rt_kernels.sample", "rt_kernels.codes", "rt_kernels.parameters"),
    "rt_kernels/mechanisms/common": ("rt_kernels.mechanisms.common", "rt_kernels.algebra", "rt_kernels.contact"),
    "rt_kernels/mechanisms/berthing": ("rt_kernels.mechanisms.berthing", "rt_kernels.mechanisms.common", "rt_kernels.contact",
                                       "rt_kernels.algebra", "rt_kernels.plugs", "rt_kernels.parameters"),
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


@pytest.mark.parametrize("place", NARROWER)
def test_narrower_places(place):
    path = ROOT / place
    files = [path] if path.is_file() else [p for p in sources(place)]
    allowed = NARROWER[place]
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in files
        for module in imports(file.read_text())
        if module.partition(".")[0] in OURS and not any(f"{module}.".startswith(f"{a}.") or a.startswith(f"{module}.") for a in allowed)
    ]
    assert files and not wrong


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
    block = re.search(r"```sh\n(.*?)```", ROOT.joinpath("README.md").read_text(), re.DOTALL)[1]
    assert block.splitlines() == ["sh tools/demo.sh", "sh tools/test.sh"]
