"""The file beside a unit made from drawings: distance field of the target, samples of the active unit, lines for the pictures.

A NumPy archive; what is in it, with n samples and m balls (rt_kernels/contact/distance_field.pxd), all in m:

    node           (nx, ny, nz) float32    signed distances, T axes
    grid           (5,)                    first node (3), cell, band within which the nodes are distances
    box            (2, 3)                  of the target
    sample         (n, 4)                  place in A axes, area in m2, in the order of the leaves
    ball           (m, 4)                  centre and radius
    link           (m, 3) int32            skip, first sample, count
    active_lines, target_lines             (k, 2, 3) float32 each
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

FORM = {"node": ("f4", 3), "grid": ("f8", 1), "box": ("f8", 2), "sample": ("f8", 2), "ball": ("f8", 2), "link": ("i4", 2),
        "active_lines": ("f4", 3), "target_lines": ("f4", 3)}  # fmt: skip
SIZE_MAX = 1 << 29  # bytes of the file, and of all arrays

Arrays = Mapping[str, np.ndarray]


def write(path: Path, arrays: Arrays) -> str:
    """Writes the archive; returns its SHA-256. The same arrays give the same bytes."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **{name: np.asarray(arrays[name], kind) for name, (kind, _) in FORM.items()})
    path.write_bytes(stream.getvalue())
    return hashlib.sha256(stream.getvalue()).hexdigest()


def read(path: str, sha256: str) -> Arrays:
    """The arrays of the file that has this SHA-256. Raises ValueError, naming key, value and what to do, for a file that is missing,
    another one or none of this form."""
    try:
        found = Path(path).stat()
        if found.st_size > SIZE_MAX:
            raise ValueError(f"field: {path} has {found.st_size} bytes, limit {SIZE_MAX}: make it with a coarser --cell-m")
        return _read(path, sha256, found.st_mtime_ns)
    except OSError as error:
        raise ValueError(f"field: {path}: {error.strerror}: put the unit's file there, or make it again by hil-server new-unit") from None


@lru_cache(maxsize=4)
def _read(path: str, sha256: str, _: int) -> Arrays:
    data = Path(path).read_bytes()
    is_hash = hashlib.sha256(data).hexdigest()
    if is_hash != sha256:
        raise ValueError(f"field_sha256: {sha256!r:.80}, but {path} has {is_hash}: it is another field; take the file that belongs to the "
                         "unit, or write this hash to the unit if its runs shall have the new field")  # fmt: skip
    try:
        return parsed(data)
    except Exception as error:  # NumPy and zipfile have many
        raise ValueError(f"field: {path}: is no field of a unit: {error}: make it again by hil-server new-unit") from None


def parsed(data: bytes) -> Arrays:
    """The arrays, of sound shapes. Raises ValueError and what NumPy and zipfile raise."""
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream) as archive:
        if sum(member.file_size for member in archive.infolist()) > SIZE_MAX:
            raise ValueError(f"more than {SIZE_MAX} bytes")
    with np.load(stream, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in FORM}
    for name, (kind, dimensions) in FORM.items():
        if arrays[name].dtype != kind or arrays[name].ndim != dimensions or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} must be finite, {kind}, with {dimensions} dimensions")
    n, m, link = len(arrays["sample"]), len(arrays["ball"]), arrays["link"]
    shapes = {"grid": (5,), "box": (2, 3), "sample": (n, 4), "ball": (m, 4), "link": (m, 3)}
    if any(arrays[name].shape != shape for name, shape in shapes.items()) or min(arrays["node"].shape) < 4 or not n or not m:
        raise ValueError("arrays of other shapes")
    skip, first, count = link.T.astype(np.int64)
    # the kernel follows these without looking
    if not ((skip > np.arange(m)).all() and (skip <= m).all() and (first >= 0).all() and (count >= 0).all() and (first + count <= n).all()):
        raise ValueError("link leads outside")
    if not arrays["grid"][3] > 0.0 or not arrays["grid"][4] > 0.0:
        raise ValueError("grid without a cell")
    return arrays
