"""Which build is running: the version of the package and a fingerprint of what it consists of."""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("hil_server", "rt_kernels", "drivers")
KINDS = ("*.so", "*.py", "*.toml")  # what runs, and the table that the kernels were built from


@cache
def build_id() -> str:
    """`VERSION-FINGERPRINT`; the version is `checkout` where the package is not installed. Some 40 ms."""
    try:
        number = version("hil-server")
    except PackageNotFoundError:
        number = "checkout"
    root = Path(__file__).resolve().parents[2]
    return f"{number}-{fingerprint(root / package for package in PACKAGES)}"


def fingerprint(folders: Iterable[Path]) -> str:
    """Twelve hexadecimal digits over names and contents of all files of the KINDS below these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(found for kind in KINDS for found in folder.rglob(kind)):
            content = hashlib.sha256(file.read_bytes()).digest()
            digest.update(f"{folder.name}/{file.relative_to(folder).as_posix()}\n".encode() + content)
    return digest.hexdigest()[:12]
