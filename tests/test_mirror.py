"""`tests` mirrors the tree: every folder of code has its folder of tests, and every folder of tests its subject.

`rt_kernels/wrench` and `hil_server/config` are tested in `tests/wrench` and `tests/config`, `drivers/drives` in `tests/drivers/drives`, the
files at the top of a package in the folder given in TOP. What stands below ELSEWHERE is tested in another folder, for the reason given.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
PACKAGES = {"rt_kernels": TESTS, "hil_server": TESTS, "drivers": TESTS / "drivers"}
TOP = {"rt_kernels": "loop", "hil_server": "system", "drivers": "drivers"}
ELSEWHERE = {
    "hil_server/console/views": ("console", "as the console"),
    "hil_server/pages": ("report", "the pages that are made with it"),
    "hil_server/run": ("system", "a run is tested whole"),
    "hil_server/terminal": ("system", "as the verbs"),
    "rt_kernels/mechanisms/linear": ("hybrid", "a spring and a damper: their contact is judged in the loop"),
    "hil_server/verbs": ("system", "a verb is run from the command line, whole"),
}
# folders of tests that are about more than one folder of code
ACROSS = {
    "contracts": "what every part of a role promises",
    "data": "measurements that tests read",
    "drivers": "a device that misbehaves, whatever its wire",
    "mechanisms": "errata, energy and oracles of all units",
    "drivers/peers": "devices in software that drivers are tested against",
    "fuzz": "every parser and port with random bytes",
    "hybrid": "stand, model and mechanism as one loop",
}
CODE = {".py", ".pyx", ".pxd"}


def has_code(folder):
    return any(file.suffix in CODE and file.stem != "__init__" for file in folder.iterdir() if file.is_file())


def code_folders():
    """(folder of code relative to the root, folder in which its tests belong)."""
    for package, tests in PACKAGES.items():
        for folder in sorted({file.parent for file in (ROOT / package).rglob("*") if file.suffix in CODE}):
            if has_code(folder):
                inner = folder.relative_to(ROOT / package)
                yield folder.relative_to(ROOT).as_posix(), TESTS / TOP[package] if inner == Path() else tests / inner


FOLDERS = dict(code_folders())


def holds_tests(folder):
    return folder.is_dir() and any(folder.glob("test_*.py"))


def test_the_packages_are_found():
    assert {"rt_kernels", "rt_kernels/wrench", "drivers/drives", "hil_server/config"} <= set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_has_its_tests(folder):
    if folder in ELSEWHERE:
        assert holds_tests(TESTS / ELSEWHERE[folder][0])
        assert not holds_tests(FOLDERS[folder]), f"{folder} has its own folder of tests: take it out of ELSEWHERE"
    else:
        assert holds_tests(FOLDERS[folder]), f"no tests in {FOLDERS[folder].relative_to(ROOT)}"


def test_folder_of_tests_has_its_subject():
    known = {tests.relative_to(TESTS).as_posix() for tests in FOLDERS.values()} | set(ACROSS)
    folders = {file.parent.relative_to(TESTS).as_posix() for file in TESTS.rglob("*.py")} - {"."}
    assert folders <= known, f"about nothing in the tree: {sorted(folders - known)}"


def test_no_exception_outlives_its_reason():
    assert set(ELSEWHERE) <= set(FOLDERS)
    assert all((TESTS / folder).is_dir() for folder in ACROSS)
