"""The example parts of docs/new-part.md as a package outside of the tree: built with the project's flags, known by their entry points."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "new-part.md"
PARTS = GUIDE.parent / "parts"
PACKAGE = "my_parts"
# `setup.py` of the tree as a module: its flags, its directives; it refuses performance hints
BUILD = """
import sys
from pathlib import Path

sys.path.insert(0, {root!r})
import numpy
import setup as tree
from setuptools import Extension

from rt_kernels import parameter_structs

parameter_structs.write(Path({package!r}).parent, [{name!r}])
files = sorted(Path({package!r}).glob("*.pyx"))
options = dict(include_dirs=[numpy.get_include(), {root!r}], extra_compile_args=tree.COMPILE_ARGS)
modules = [Extension(f"{name}.{{f.stem}}", [str(f)], **options) for f in files]
tree.setup(
    name={name!r}, packages=[], py_modules=[], ext_modules=tree.cythonize_without_hints(modules),
    script_args=["--quiet", "build_ext", "-j2", "--build-lib", str(Path({package!r}).parent), "--build-temp", {package!r} + "/build"],
)
"""


def blocks():
    """File name → its text: the parts beside the guide, and every whole file in it."""
    shown = re.findall(r"^```(?:cython|python) (\S+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return {file.name: file.read_text() for file in PARTS.glob("*.pyx")} | dict(shown)


def lines():
    """(role, name) → "module:Class", of every entry point in the guide."""
    found = re.findall(rf'^\s*"(\w+)\.(\w+)" = "({PACKAGE}\.\w+:\w+)"$', GUIDE.read_text(), re.MULTILINE)
    return {(role, name): where for role, name, where in found}


def build(package, files):
    """A package of these files in its folder, built."""
    package.mkdir()
    (package / "__init__.py").touch()
    for name, text in files.items():
        (package / name).write_text(text)
    script = package.with_name("build_parts.py")
    script.write_text(BUILD.format(root=str(ROOT), package=str(package), name=package.name))
    built = subprocess.run([sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr


def write_package(folder):
    """The package with every `.pyx` of the guide in it, built, and its entry points beside it. Returns the folder for `sys.path`."""
    build(folder / PACKAGE, {name: text for name, text in blocks().items() if name.endswith(".pyx")})
    known = folder / f"{PACKAGE}-1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1\n")
    points = "".join(f"{role}.{name} = {where}\n" for (role, name), where in lines().items())
    (known / "entry_points.txt").write_text(f"[hil_server.parts]\n{points}")
    return folder
