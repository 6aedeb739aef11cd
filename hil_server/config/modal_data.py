"""Modal data of a flexible craft, read at set-up: Nastran `.f06` text, plain CSV, damping bands, shapes in port axes.

What the propagator (`rt_kernels.dynamics.modal`) needs of thousands of modes is, per mode, a circular frequency, a log decrement and the
mass-normalised shape at the docking port (and at thrusters, if they are to excite the structure). Finite-element programs give more: many
nodes, other normalisations, rigid-body modes. This module reads, checks and reduces.

Axes: shapes in a file are in structural axes S of the craft. `R_DS` turns components into port axes D.

The modes must be those of the whole craft: modes of a part of it (a bare truss between two heavy bodies) are another structure. What
tells is the rigid-body part of the same data: its six rigid-body modes, mass-normalised, say for which mass and inertia they were made.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np

from hil_server.config import physics
from hil_server.config.files import check_file
from hil_server.values import Document, Given
from rt_kernels.algebra.arrays import quat_to_matrix
from rt_kernels.compensation.effective_mass import skew
from rt_kernels.dynamics.modal import ModalCraft
from rt_kernels.parameters import unknown_key

COMPONENTS = ("t1", "t2", "t3", "r1", "r2", "r3")
CSV_COLUMNS = ("mode", "frequency_hz", "generalized_mass", "node", *COMPONENTS)
EIGENVALUES = "R E A L   E I G E N V A L U E S"
EIGENVECTOR = "R E A L   E I G E N V E C T O R   N O ."
WHOLE = 0.02  # of the mass: largest disagreement of the modes' rigid-body part with the vehicle


class ModalDataError(ValueError):
    """A modal file or table is wrong; the message names file, line or key, value and limit."""


@dataclass(frozen=True)
class ModalData:
    """Modes in ascending frequency. frequency_hz: (N,) [Hz]; shapes: node → (N, 6) mass-normalised, structural axes
    [kg^-1/2] and [rad m^-1 kg^-1/2]."""

    frequency_hz: np.ndarray
    shapes: Mapping[int, np.ndarray]

    @property
    def omega(self) -> np.ndarray:
        """Circular frequencies (N,) [rad/s]."""
        return 2 * np.pi * self.frequency_hz

    def flexible(self, frequency_min_hz: float) -> "ModalData":
        """Without the modes below `frequency_min_hz`: rigid-body modes come out of a solver as small numbers, also negative ones."""
        keep = self.frequency_hz >= frequency_min_hz
        return ModalData(self.frequency_hz[keep], {node: shape[keep] for node, shape in self.shapes.items()})

    def at(self, node: int, R_DS: np.ndarray | None = None) -> np.ndarray:
        """Shapes (N, 6) at a node, turned to axes D. Raises ModalDataError for a node that is not there or has no rotations."""
        if node not in self.shapes:
            known = ", ".join(str(n) for n in sorted(self.shapes)[:12])
            raise ModalDataError(f"node {node} is not in the modal data; there are: {known}")
        shape = self.shapes[node]
        if np.any(np.isnan(shape)):
            raise ModalDataError(f"node {node} has no rotations in the modal data: the port must be a node with six components")
        R = np.eye(3) if R_DS is None else np.asarray(R_DS, dtype=float)
        return np.hstack([shape[:, :3] @ R.T, shape[:, 3:] @ R.T])


def read_modal_data(path: Path | str, nodes: Sequence[int] | None = None) -> ModalData:
    """Reads `.f06` or `.csv` by the ending of the name. nodes: only these (None: all)."""
    path = Path(path)
    readers = {".f06": read_f06, ".csv": read_csv}
    if path.suffix.lower() not in readers:
        raise ModalDataError(f"{path}: ending {path.suffix!r} is not one of {', '.join(readers)}")
    return readers[path.suffix.lower()](path, nodes)


def read_csv(path: Path | str, nodes: Sequence[int] | None = None) -> ModalData:
    """One row per mode and node, SI, columns mode, frequency_hz, generalized_mass, node, t1 t2 t3 r1 r2 r3; lines with # are remarks."""
    check_file(path)
    with open(path, newline="", encoding="utf-8") as file:
        return _read_rows(path, file, nodes)


def _read_rows(path: Path | str, text: Iterable[str], nodes: Sequence[int] | None) -> ModalData:
    lines = [line for line in text if line.strip() and not line.lstrip().startswith("#")]
    reader = csv.DictReader(lines)
    missing = [name for name in CSV_COLUMNS if name not in (reader.fieldnames or [])]
    if missing:
        raise ModalDataError(f"{path}: column {missing[0]!r} is missing, needed {', '.join(CSV_COLUMNS)}")
    summary: dict[int, tuple[float, float]] = {}
    vectors: dict[int, dict[int, list[float]]] = {}
    for number, row in enumerate(reader, start=2):
        try:
            mode, node = int(row["mode"]), int(row["node"])
            values = [float(row[name]) for name in COMPONENTS]
            head = (float(row["frequency_hz"]), float(row["generalized_mass"]))
        except (TypeError, ValueError) as error:
            raise ModalDataError(f"{path}: row {number}: {error}") from None
        if summary.setdefault(mode, head) != head:
            raise ModalDataError(f"{path}: row {number}: mode {mode} has two frequencies or masses: {summary[mode]} and {head}")
        vectors.setdefault(mode, {})[node] = values
    return _assemble(path, summary, vectors, nodes)


def read_f06(path: Path | str, nodes: Sequence[int] | None = None) -> ModalData:
    """Tables REAL EIGENVALUES and REAL EIGENVECTOR of a Nastran normal-modes run (MSC, NX/Simcenter), any page breaks.

    Eigenvectors are divided by the square root of the generalised mass, so that MASS and MAX normalisation give the same. Raises
    ModalDataError for a run that ended with FATAL, for missing tables and for a mode without a vector.
    """
    summary: dict[int, tuple[float, float]] = {}
    vectors: dict[int, dict[int, list[float]]] = {}
    wanted = None if nodes is None else set(nodes)
    table: str | int | None = None      # "values", the number of a vector, or none
    check_file(path)
    with open(path, encoding="latin-1") as file:
        for number, line in enumerate(file, start=1):
            if "*** USER FATAL MESSAGE" in line or "*** SYSTEM FATAL MESSAGE" in line:
                raise ModalDataError(f"{path}: line {number}: the run ended with {line.strip()}")
            if EIGENVALUES in line:
                table = "values"
            elif EIGENVECTOR in line:
                table = _mode(path, number, line.rsplit(".", 1)[1])
                vectors.setdefault(table, {})
            elif line.startswith("1") or (line.startswith("0") and line.strip() != "0"):
                table = None            # carriage control: a new page or a new subcase
            elif table == "values":
                words = line.split()
                if len(words) == 7 and _is_number(words[0]) and _is_number(words[1]):
                    summary[int(words[0])] = (_number(path, number, words[4]), _number(path, number, words[5]))
            elif table is not None:
                row = _vector_row(path, number, line)
                if row is not None and (wanted is None or row[0] in wanted):
                    vectors[int(table)][row[0]] = row[1]
    if not summary:
        raise ModalDataError(f"{path}: no table {EIGENVALUES!r}")
    if not vectors:
        raise ModalDataError(f"{path}: no table {EIGENVECTOR!r}: the run must print them (VECTOR = ALL or a SET)")
    return _assemble(path, summary, vectors, nodes)


def _is_number(word: str) -> bool:
    """Is the word the number of a mode or a node?"""
    return word.isascii() and word.isdigit() and len(word) <= 9


def _mode(path: Path | str, line: int, text: str) -> int:
    words = text.split()
    if not words or not _is_number(words[0]):
        raise ModalDataError(f"{path}: line {line}: {text.strip()!r:.40} is not a number of an eigenvector")
    return int(words[0])


def _number(path: Path | str, line: int, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ModalDataError(f"{path}: line {line}: {word!r:.40} is not a number") from None


def _vector_row(path: Path | str, number: int, line: str) -> tuple[int, list[float]] | None:
    # POINT TYPE T1..R3; solid models leave the rotations blank, scalar points (S) have one value and are no nodes
    words = line.split()
    if len(words) < 3 or not _is_number(words[0]) or words[1] != "G":
        return None
    values = [_number(path, number, word) for word in words[2:]]
    if len(values) == 3:
        values += [np.nan] * 3
    if len(values) != 6:
        raise ModalDataError(f"{path}: line {number}: {len(values)} components, 6 needed (or 3 translations)")
    return int(words[0]), values


def _assemble(path: Path | str, summary: dict[int, tuple[float, float]], vectors: dict[int, dict[int, list[float]]],
              nodes: Sequence[int] | None) -> ModalData:
    """Modes by frequency, divided by the square root of the generalised mass."""
    modes = sorted((mode for mode in summary if mode in vectors), key=lambda mode: summary[mode][0])
    if not modes:
        raise ModalDataError(f"{path}: no mode has both an eigenvalue and an eigenvector")
    lost = sorted(set(vectors) - set(summary))
    if lost:
        raise ModalDataError(f"{path}: eigenvector {lost[0]} has no line in the table of eigenvalues")
    for mode in modes:
        if not summary[mode][1] > 0.0:
            raise ModalDataError(f"{path}: mode {mode} has a generalised mass of {summary[mode][1]:g}, must be > 0")
    names = sorted({node for mode in modes for node in vectors[mode]}) if nodes is None else list(nodes)
    shapes = {}
    for node in names:
        without = [mode for mode in modes if node not in vectors[mode]]
        if without:
            raise ModalDataError(f"{path}: node {node} is not in the eigenvector of mode {without[0]}")
        shapes[node] = np.array([np.array(vectors[mode][node]) / np.sqrt(summary[mode][1]) for mode in modes])
    return ModalData(np.array([summary[mode][0] for mode in modes]), shapes)


def write_csv(path: Path | str, data: ModalData, remark: str = "") -> None:
    """The CSV form of `read_csv` (generalised mass 1)."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in remark.splitlines())
        file.write(csv_text(data))


def csv_text(data: ModalData) -> str:
    """The rows of `write_csv`; read again they give the same numbers to the last bit."""
    file = StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for k, frequency in enumerate(data.frequency_hz):
        for node, shape in data.shapes.items():
            writer.writerow([k + 1, repr(float(frequency)), 1.0, node, *(repr(float(x)) for x in shape[k])])
    return file.getvalue()


def log_decrements(frequency_hz: np.ndarray, bands: Sequence[Sequence[float]]) -> np.ndarray:
    """Log decrement (N,) of each mode from bands [[frequency up to, Hz, decrement], ...], ascending; the last band reaches on."""
    table = np.asarray(bands, dtype=float)
    if table.ndim != 2 or table.shape[1] != 2 or len(table) == 0:
        raise ModalDataError(f"log_decrement_bands: {bands!r}, rows [frequency_max_hz, log_decrement] needed")
    if np.any(np.diff(table[:, 0]) <= 0.0):
        raise ModalDataError("log_decrement_bands: frequencies must ascend")
    if not np.all((table[:, 1] >= 0.0) & (table[:, 1] <= 20.0)):
        raise ModalDataError(f"log_decrement_bands: decrements {table[:, 1].tolist()}, limits 0...20")
    index = np.minimum(np.searchsorted(table[:, 0], frequency_hz, side="left"), len(table) - 1)
    found: np.ndarray = table[index, 1]
    return found


KEYS = {"file", "port_node", "port_axes_xyzw", "frequency_min_hz", "frequency_max_hz", "log_decrement_bands", "further_loads",
        "thruster_nodes", "initial_coordinates", "initial_rates", "synthetic", "source", "data"}


def modal_craft(table: Given, folder: Path | str, steps: tuple[float, float], rigid: np.ndarray | None = None,
                thrusters: np.ndarray | None = None) -> ModalCraft:
    """The propagator of a vehicle's `[modal]` table. steps: the two step sizes [s]. Paths are relative to `folder`.

    rigid: the vehicle's mass matrix (6, 6) at and in its port, twist linear part first; the rigid-body modes of the data must agree with it
    (`check_whole`). None: not checked. thrusters: (n, 3) directions of the forces of the craft's thrusters on it, port axes; None: it has
    none.

    Keys: file (.f06 or .csv), port_node, port_axes_xyzw (q_SD, port in structural axes), frequency_min_hz (below it: rigid-body modes),
    frequency_max_hz (optional), log_decrement_bands ([[frequency_max_hz, decrement], ...]), further_loads (optional: rows
    [node, component 1...6], each one more load column, structural axes), thruster_nodes (the node of each thruster, in the order of the
    vehicle file; [] where they are not to excite the modes), initial_coordinates, initial_rates (kg^1/2 m, kg^1/2 m/s of each flexible
    mode when the loop is closed; left away: at rest), data (the rows of the file that count, see `with_data`: then no
    file is read). Raises ModalDataError that names the key.
    """
    data, port, R_DS = _checked_modes(table, folder, rigid)
    shapes = [data.at(port, R_DS)]
    shapes += [data.at(node)[:, component - 1:component] for node, component in _further(table)]
    nodes, directions = _thruster_nodes(table), np.zeros((0, 3)) if thrusters is None else thrusters
    if len(directions) and "thruster_nodes" not in table:
        raise ModalDataError(f"modal.thruster_nodes: is missing: the vehicle has {len(directions)} thrusters; [] where they are not to "
                             "excite the modes")
    if nodes and len(nodes) != len(directions):
        raise ModalDataError(f"modal.thruster_nodes: {len(nodes)} nodes, the vehicle has {len(directions)} thrusters")
    shapes += [data.at(node)[:, :3] @ (R_DS.T @ direction)[:, None] for node, direction in zip(nodes, directions, strict=False)]
    craft = ModalCraft(data.omega, log_decrements(data.frequency_hz, table["log_decrement_bands"]), np.hstack(shapes), steps,
                       n_thrusters=len(nodes))
    craft.set_state(*(_initial(table, key, len(data.omega)) for key in ("initial_coordinates", "initial_rates")))
    return craft


def modes_at_port(table: Given, folder: Path | str,
                  rigid: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequencies (n,) Hz, damping ratios (n,) and shapes (n, 6) in port axes of a vehicle's `[modal]` table; arguments and errors as
    `modal_craft`."""
    data, port, R_DS = _checked_modes(table, folder, rigid)
    decrement = log_decrements(data.frequency_hz, table["log_decrement_bands"])
    return data.frequency_hz, decrement / np.hypot(2.0 * np.pi, decrement), data.at(port, R_DS)


def _checked_modes(table: Given, folder: Path | str, rigid: np.ndarray | None) -> tuple[ModalData, int, np.ndarray]:
    """The flexible modes that the table chooses, the port's node and its axes; they are those of the vehicle."""
    _check_keys(table)
    whole, least = _chosen(table, folder), _least_hz(table)
    data, port, R_DS = whole.flexible(least), int(table["port_node"]), _axes(table.get("port_axes_xyzw", [0.0, 0.0, 0.0, 1.0]))
    if len(data.frequency_hz) == 0:
        raise ModalDataError("modal.frequency_min_hz, frequency_max_hz: no mode left between them")
    if rigid is not None:
        check_whole(whole.at(port, R_DS)[whole.frequency_hz < least], rigid, least)
    return data, port, R_DS


def mass_matrix_at(mass_kg: float, inertia_kg_m2: np.ndarray, X_CD: np.ndarray) -> np.ndarray:
    """(6, 6) of a rigid body at and in the port D: F = M A, linear part first. X_CD: pose of the port in the body frame at the centre of
    mass; inertia about that centre, body axes."""
    R_CD = quat_to_matrix(X_CD[3:])
    S = skew(R_CD.T @ -np.asarray(X_CD[:3], float))  # from the port to the centre of mass, port axes
    J = R_CD.T @ np.asarray(inertia_kg_m2, float) @ R_CD
    return np.block([[mass_kg * np.eye(3), -mass_kg * S], [mass_kg * S, J - mass_kg * S @ S]])


def _properties(M: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass (3,) from the port and inertia (3, 3) about it, port axes, of a mass matrix at the port."""
    mass = float(np.trace(M[:3, :3])) / 3.0
    S = (M[3:, :3] - M[:3, 3:]) / (2.0 * mass)
    centre = 0.5 * np.array([S[2, 1] - S[1, 2], S[0, 2] - S[2, 0], S[1, 0] - S[0, 1]])
    return mass, centre, M[3:, 3:] + mass * skew(centre) @ skew(centre)


def check_whole(rigid_shapes: np.ndarray, rigid: np.ndarray, least_hz: float) -> None:
    """Are the modes those of the whole craft? rigid_shapes: (6, 6) of the rigid-body modes at and in the port, a mode per row;
    rigid: the vehicle's mass matrix there. Mass-normalised rigid-body modes span the craft's mobility: Phi^T Phi = M^-1.

    Raises ModalDataError with both numbers when mass, centre of mass or inertia differ by more than `WHOLE`."""
    if len(rigid_shapes) != 6:
        raise ModalDataError(
            f"modal: {len(rigid_shapes)} rigid-body modes (below frequency_min_hz = {least_hz:g} Hz) in the data, 6 are needed: they show "
            "whether the modes are those of the whole craft; take them along from the finite elements"
        )
    mobility = rigid_shapes.T @ rigid_shapes
    if np.linalg.matrix_rank(mobility, hermitian=True) < 6:
        raise ModalDataError("modal: the rigid-body modes in the data are not six different motions")
    (m, c, J), (mass, centre, inertia) = _properties(np.linalg.inv(mobility)), _properties(rigid)
    size = float(np.sqrt(np.trace(inertia) / mass))
    if abs(m - mass) > WHOLE * mass:
        raise ModalDataError(
            f"modal: the modes are those of a craft of {m:.6g} kg, the vehicle has mass_kg = {mass:.6g}: take the modes of the whole craft"
        )
    if np.abs(c - centre).max() > WHOLE * size:
        raise ModalDataError(
            f"modal: the modes have the centre of mass at {c.round(4).tolist()} m from the port (port axes), the vehicle at "
            f"{centre.round(4).tolist()}: check port_position_m, port_angles_deg, port_node, port_axes_xyzw"
        )
    if np.abs(J - inertia).max() > WHOLE * np.abs(inertia).max():
        raise ModalDataError(
            f"modal: the modes are those of a craft with the inertia {J.round(1).tolist()} kg.m2 about its centre of mass (port axes), "
            f"the vehicle has inertia_kg_m2 = {inertia.round(1).tolist()} there"
        )


def with_data(table: Given, folder: Path | str) -> Document:
    """A `[modal]` table that needs its file no more: with the modes and nodes that it chooses as CSV text in the key `data`. So a
    configuration in a log, or one that is sent to another machine, is whole. Raises ModalDataError; OSError when the file is not there."""
    _check_keys(table)
    return dict(table) if "data" in table else {**table, "data": csv_text(_chosen(table, folder))}


def _check_keys(table: Given) -> None:
    unknown = sorted(set(table) - KEYS)
    if unknown:
        raise ModalDataError(f"modal.{unknown[0]}: {unknown_key(unknown[0], table[unknown[0]], sorted(KEYS))}")
    for key in (*(() if "data" in table else ("file",)), "port_node", "log_decrement_bands"):
        if key not in table:
            raise ModalDataError(f"modal.{key}: is missing")


def _further(table: Given) -> list[tuple[int, int]]:
    further = [(int(node), int(component)) for node, component in table.get("further_loads", [])]
    if any(not 1 <= component <= 6 for _, component in further):
        raise ModalDataError(f"modal.further_loads: {further}, components are 1...6")
    return further


def _thruster_nodes(table: Given) -> list[int]:
    return [int(node) for node in table.get("thruster_nodes", [])]


def _initial(table: Given, key: str, n: int) -> np.ndarray:
    """(n,) of the modes at the beginning; zeros where the table does not give them."""
    try:
        found = np.asarray(table.get(key, np.zeros(n)), dtype=float)
    except (TypeError, ValueError):
        raise ModalDataError(f"modal.{key}: {table[key]!r:.80}, a list of {n} numbers needed") from None
    if found.shape != (n,) or not np.all(np.isfinite(found)):
        raise ModalDataError(f"modal.{key}: {found.tolist()!r:.80}, a list of {n} finite numbers needed, one for each flexible mode")
    return found


def _nodes(table: Given) -> list[int]:
    return list(dict.fromkeys([int(table["port_node"]), *(node for node, _ in _further(table)), *_thruster_nodes(table)]))


def _chosen(table: Given, folder: Path | str) -> ModalData:
    """The rigid-body modes and those between the table's frequencies, at its nodes."""
    if "data" in table:
        data = _read_rows("modal.data", StringIO(table["data"]), _nodes(table))
    else:
        data = read_modal_data(Path(folder) / table["file"], _nodes(table))
    keep = data.frequency_hz <= float(table.get("frequency_max_hz", np.inf))
    return ModalData(data.frequency_hz[keep], {node: shape[keep] for node, shape in data.shapes.items()})


def _least_hz(table: Given) -> float:
    return float(table.get("frequency_min_hz", 1e-3))


def rigid_of(vehicle: Given) -> np.ndarray:
    """`mass_matrix_at` the port of a vehicle's table."""
    X_port = physics.pose(vehicle["port_position_m"], vehicle["port_angles_deg"])
    return mass_matrix_at(vehicle["mass_kg"], np.asarray(vehicle["inertia_kg_m2"], float), X_port)


def _axes(q_SD: Sequence[float]) -> np.ndarray:
    """R_DS of the quaternion q_SD [x, y, z, w]."""
    q = np.asarray(q_SD, dtype=float)
    if q.shape != (4,) or abs(np.linalg.norm(q) - 1.0) > 1e-6:
        raise ModalDataError(f"modal.port_axes_xyzw: {list(q_SD)!r}, a unit quaternion [x, y, z, w] needed")
    x, y, z, w = q / np.linalg.norm(q)
    R_SD = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])
    return R_SD.T
