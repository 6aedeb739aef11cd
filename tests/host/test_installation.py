"""One owner for each package, all side by side; else the message says which distribution is in the way."""

import subprocess
import sys
from pathlib import Path

import pytest

import hil_server
from hil_server.errors import ConfigurationError
from hil_server.host import installation

HOME = Path(hil_server.__file__).resolve().parent.parent
CHECK = "from hil_server.host.installation import check_installation as c; print(c())"


def in_process(tmp_path, first):
    """Runs the check in a fresh interpreter; `first` is searched before this project."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = [{str(first)!r}, {str(HOME)!r}]; {CHECK}"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip


def test_this_installation_is_one():
    folders = installation.check_installation()
    assert set(folders) == set(installation.PACKAGES)
    assert {Path(f).parent for f in folders.values()} == {HOME}


def distribution(folder, name, package):
    folder.joinpath(package).mkdir()
    folder.joinpath(package, "__init__.py").touch()
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    info.joinpath("RECORD").write_text(f"{package}/__init__.py,,\n")
    info.joinpath("top_level.txt").write_text(f"{package}\n")


def test_foreign_drivers_are_named(tmp_path):
    distribution(tmp_path, "printer-things", "drivers")
    out = in_process(tmp_path, tmp_path)
    assert "package 'drivers' is taken from" in out.stderr and "printer-things" in out.stderr


def test_package_in_two_distributions(tmp_path, monkeypatch):
    distribution(tmp_path, "printer-things", "drivers")
    (tmp_path / "printer-things-1.0.dist-info" / "top_level.txt").unlink()  # then its list of files tells
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match="'drivers' belongs to several distributions .*hil-server, printer-things"):
        installation.check_installation()


def test_package_spread_over_two_folders(monkeypatch, tmp_path):
    import drivers

    monkeypatch.setattr(drivers, "__path__", [*drivers.__path__, str(tmp_path)])
    with pytest.raises(ConfigurationError, match="'drivers' is spread over"):
        installation.check_installation()


def test_missing_package(monkeypatch):
    monkeypatch.setattr(installation, "PACKAGES", (*installation.PACKAGES, "ghost_package"))
    with pytest.raises(ConfigurationError, match="'ghost_package' is missing"):
        installation.check_installation()
