"""Check that all packages come from one installation: `drivers` is a generic name, and an incomplete update fails late.

Each of the four must have exactly one owner, and all four must be in one folder: then kernels, drivers and server belong together.
"""

import importlib.metadata
import importlib.util
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from hil_server.errors import ConfigurationError

PACKAGES = ("hil_server", "rt_kernels", "drivers", "stand_configs")


def check_installation() -> dict[str, str]:
    """Package → folder. Raises ConfigurationError with a line for every package that is missing, doubled or elsewhere."""
    faults: list[str] = []
    owners = _owners()
    folders: dict[str, Path] = {}
    for package in PACKAGES:
        places = _places(package)
        if not places:
            faults.append(f"installation: package {package!r} is missing: install this project again")
            continue
        folders[package] = places[0]
        whose = _named(owners.get(package, ()))
        if len(places) > 1:
            faults.append(f"installation: package {package!r} is spread over {', '.join(map(str, places))}{whose}")
    home = folders.get("hil_server")
    for package, folder in folders.items():
        whose = _named(owners.get(package, ()))
        if home is not None and folder.parent != home.parent:
            faults.append(
                f"installation: package {package!r} is taken from {folder}, but hil_server lies in {home.parent}{whose}; "
                "remove that distribution or put this project into an environment of its own"
            )
    faults += [
        f"installation: package {package!r} belongs to several distributions{_named(owners.get(package, ()))}; remove all but hil-server"
        for package in PACKAGES
        if len(set(owners.get(package, ()))) > 1
    ]
    if faults:
        raise ConfigurationError(dict.fromkeys(faults))
    return {package: str(folder) for package, folder in folders.items()}


def _owners() -> dict[str, list[str]]:
    """Package → names of the distributions that bring it along. As `importlib.metadata.packages_distributions`, of our packages alone: that
    one takes apart the paths of every file that is installed, a fifth of a second."""
    owners: dict[str, list[str]] = {package: [] for package in PACKAGES}
    for distribution in importlib.metadata.distributions():
        named = (distribution.read_text("top_level.txt") or "").split()
        files = "" if named else "\n" + (distribution.read_text("RECORD") or "")
        for package in PACKAGES:
            if package in named or f"\n{package}/" in files:
                owners[package].append(distribution.metadata["Name"])
    return owners


def _places(package: str) -> list[Path]:
    """Folders that make up the package: one, unless it is a namespace spread over several."""
    loaded = sys.modules.get(package)
    locations = getattr(loaded, "__path__", None)
    if locations is None:
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            return []
        locations = spec.submodule_search_locations if spec else None
    return [Path(p).resolve() for p in dict.fromkeys(locations or ())]


def _named(distributions: Iterable[str]) -> str:
    found = sorted(set(distributions))
    return f" (distributions: {', '.join(found)})" if found else ""


def with_group(group: str) -> str:
    """The command that installs an optional group of the packages, as typed where this program is: there is no index that has it.

    In a source tree: of the tree itself. Of a wheel: the packages by their names, out of what the installed program says it needs."""
    root = Path(__file__).resolve().parents[2]
    own = f"{sys.prefix}/bin/pip"
    pip = "pip" if shutil.which("pip") == own else own
    if (root / "pyproject.toml").is_file():
        return f"{pip} install -e '{'.' if Path.cwd() == root else root}[{group}]'"
    try:
        needed = importlib.metadata.requires("hil-server") or []
    except importlib.metadata.PackageNotFoundError:
        needed = []
    found = [line.partition(";")[0].strip() for line in needed if f'extra == "{group}"' in line]
    return f"{pip} install {' '.join(shlex.quote(one) for one in found)}"


def import_remedy(error: ImportError) -> str:
    """What to type when an import fails because this Python is another one than the project is built for, or lacks a package; empty where
    the cause is another."""
    name, python = error.name or "", f"Python {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable})"
    root = Path(__file__).resolve().parents[2]
    package, *path = name.split(".")
    if package in PACKAGES:
        source = root.joinpath(package, *path)
        suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
        if not source.with_suffix(".pyx").is_file() or source.with_name(source.name + suffix).is_file():
            return ""
        build = f"cd {root} && {sys.executable} setup.py build_ext --inplace -j2"
        built = sorted({file.suffixes[0].lstrip(".") for file in source.parent.glob(f"{source.name}.*.so")})
        if built:
            return f"kernels: built for {', '.join(built)}, not for {python}: run {_own_command(root)}, or build them: {build}"
        return f"kernels: {name} is not built for {python}: {build}"
    if not isinstance(error, ModuleNotFoundError) or importlib.util.find_spec("hil_server") is None or not name:
        return ""
    install = f"{sys.executable} -m pip install -e {root}"
    return f"package {package!r} is missing in {python}: run {_own_command(root)}, or install the project: {install}"


def _own_command(root: Path) -> str:
    """The command of the environment in the source tree where it has one."""
    own = root / ".venv" / "bin" / "hil-server"
    return str(own) if own.is_file() else "hil-server of the environment in which the project is installed"
