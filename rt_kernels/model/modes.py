"""Modal bodies: the state-independent integrals of a rigid or flexible body that the tree kernel needs, and where modes come from.

A body is a cloud of mass points: rho = rho0 + sum_a phi_a eta_a in body axes. Finite elements of any kind give such a cloud exactly when
their shape functions are integrated by a rule of sufficient order (`beam_elements`). Points carry no rotary inertia of their own; the
rotation of a section is carried by points off its axis.

Mode sets:
* `free_free_modes`: elastic modes of the unsupported structure;
* `clamped_modes`: modes with one interface held;
* `craig_bampton_modes`: constraint modes of the interfaces plus modes with all interfaces held, then made orthogonal with the masses the
  interfaces will carry (mass-loaded). They carry end loads exactly, free-free modes do not: a truss between two heavy bodies comes out
  4 to 38 % too stiff with eleven free-free modes.

SI units; six-vectors linear part first.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.model.solids import Solid
from rt_kernels.parameters import Parameter, checked

Array = np.ndarray


def skew(a: Array) -> Array:
    """S(a) with S(a) b = a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


@dataclass(frozen=True)
class Port:
    """A place where another body hangs. position (3,) m and rotation (3, 3) in body axes, undeformed; phi, psi (3, modes) per unit eta."""

    position: Array
    rotation: Array
    phi: Array
    psi: Array


@dataclass(frozen=True)
class ModalBody:
    """Mass integrals of one body about its frame origin, body axes.

    mass            sum m                                   kg
    first_moment    (3,)           sum m rho0               kg m
    second_moment   (3, 3)         sum m rho0 rho0^T        kg.m2 (Binet tensor; inertia = tr(E) 1 - E)
    P               (s, 3)         sum m phi_a
    N               (s, 3, 3)      sum m rho0 phi_a^T
    Q               (s, s, 3, 3)   sum m phi_a phi_b^T
    stiffening      (s, s, 3, 3)   sum m (rho0 chi_ab^T + chi_ab rho0^T) / 2, chi_ab the foreshortening: rho += chi_ab eta_a eta_b / 2
    stiffness, damping (s, s)      generalised
    ports           name -> Port
    outline         what is drawn of it, with its bending; None: not known
    """

    mass: float
    first_moment: Array
    second_moment: Array
    P: Array = field(default_factory=lambda: np.zeros((0, 3)))
    N: Array = field(default_factory=lambda: np.zeros((0, 3, 3)))
    Q: Array = field(default_factory=lambda: np.zeros((0, 0, 3, 3)))
    stiffening: Array | None = None
    stiffness: Array = field(default_factory=lambda: np.zeros((0, 0)))
    damping: Array | None = None
    ports: Mapping[str, Port] = field(default_factory=dict)
    outline: Solid | None = None

    def __post_init__(self) -> None:
        s = len(self.P)
        set_ = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        for name, shape in (("first_moment", (3,)), ("second_moment", (3, 3)), ("P", (s, 3)), ("N", (s, 3, 3)), ("Q", (s, s, 3, 3)),
                            ("stiffening", (s, s, 3, 3)), ("stiffness", (s, s)), ("damping", (s, s))):
            value = getattr(self, name)
            value = np.zeros(shape) if value is None else np.array(value, dtype=float)
            if value.shape != shape:
                raise ValueError(f"{name}: shape {value.shape} given, {shape} expected ({s} modes)")
            if not np.all(np.isfinite(value)):
                raise ValueError(f"{name}: not finite")
            set_(name, value)
        if not (np.isfinite(self.mass) and self.mass >= 0.0):
            raise ValueError(f"mass: {self.mass} kg is not a finite number >= 0")
        for name in ("stiffness", "damping"):
            matrix = getattr(self, name)
            scale = np.abs(matrix).max(initial=0.0)
            if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-9 * scale:
                raise ValueError(f"{name}: not symmetric")
            if s and np.linalg.eigvalsh(matrix).min() < -1e-9 * scale:
                raise ValueError(f"{name}: not positive semi-definite (least eigenvalue {np.linalg.eigvalsh(matrix).min():.3g})")
        for name, port in self.ports.items():
            for part, shape in (("position", (3,)), ("rotation", (3, 3)), ("phi", (3, s)), ("psi", (3, s))):
                if np.shape(getattr(port, part)) != shape:
                    raise ValueError(f"port {name!r}: {part} has shape {np.shape(getattr(port, part))}, {shape} expected")
            if np.abs(port.rotation @ port.rotation.T - np.eye(3)).max() > 1e-9 or np.linalg.det(port.rotation) < 0.0:
                raise ValueError(f"port {name!r}: rotation is not a rotation matrix")
        # a mass cloud has a positive semi-definite kinetic energy; modes must be independent
        if self.mass > 0.0:
            least = np.linalg.eigvalsh(self._scaled_mass_matrix()).min()
            if least < -1e-9:
                raise ValueError(f"mass, moments: not those of any distribution of mass (least scaled eigenvalue {least:.3g})")
        elif s or np.any(self.second_moment) or np.any(self.first_moment):
            raise ValueError("mass: 0 kg with modes or moments")
        if s and np.linalg.eigvalsh(self.modal_mass).min() <= 1e-12 * np.abs(self.modal_mass).max():
            raise ValueError("modes: not independent (singular modal mass)")

    # --- what the kernel reads

    @property
    def n_modes(self) -> int:
        """Number of modes."""
        return len(self.P)

    @property
    def modal_mass(self) -> Array:
        """(s, s) sum m phi_a . phi_b."""
        return np.trace(self.Q, axis1=2, axis2=3)

    @property
    def inertia(self) -> Array:
        """(3, 3) about the frame origin."""
        return np.trace(self.second_moment) * np.eye(3) - self.second_moment

    def kernel_Q(self) -> Array:
        """(s, s, 3, 3): what eta_b adds to sum m rho phi_a^T, stiffening included."""
        return np.swapaxes(self.Q, 0, 1) + self.stiffening

    def kernel_Y(self) -> Array:
        """(s, s, 3): sum m phi_b x phi_a."""
        Q = np.swapaxes(self.Q, 0, 1)
        return np.stack([Q[..., 1, 2] - Q[..., 2, 1], Q[..., 2, 0] - Q[..., 0, 2], Q[..., 0, 1] - Q[..., 1, 0]], axis=-1)

    def port_arrays(self, name: str | None) -> tuple[Array, Array, Array | None, Array | None]:
        """(position, rotation, phi, psi) of a port; None is the body frame itself."""
        if name is None:
            return np.zeros(3), np.eye(3), None, None
        if name not in self.ports:
            raise ValueError(f"port {name!r} does not exist; the body has {', '.join(self.ports) or 'none'}")
        port = self.ports[name]
        return port.position, port.rotation, port.phi, port.psi

    def mass_matrix(self) -> Array:
        """(6 + s, 6 + s) undeformed mass matrix for [linear, angular, modal]."""
        s = self.n_modes
        M = np.zeros((6 + s, 6 + s))
        M[:3, :3] = self.mass * np.eye(3)
        M[3:6, :3] = skew(self.first_moment)
        M[:3, 3:6] = -skew(self.first_moment)
        M[3:6, 3:6] = self.inertia
        if s:
            M[6:, :3] = self.P
            N = self.N
            M[6:, 3:6] = np.stack([N[:, 1, 2] - N[:, 2, 1], N[:, 2, 0] - N[:, 0, 2], N[:, 0, 1] - N[:, 1, 0]], 1)
            M[:6, 6:] = M[6:, :6].T
            M[6:, 6:] = self.modal_mass
        return M

    def _scaled_mass_matrix(self) -> Array:
        M = self.mass_matrix()
        scale = 1.0 / np.sqrt(np.where(np.diag(M) > 0.0, np.diag(M), 1.0))
        return M * np.outer(scale, scale)

    # --- how it is made

    @classmethod
    def rigid(cls, mass: float, centre=(0.0, 0.0, 0.0), inertia=None, ports: Mapping[str, tuple] | None = None) -> ModalBody:
        """Rigid body: mass kg, centre (3,) m, inertia (3, 3) or three principal values kg.m2 about the centre.

        ports: name -> (position (3,), rotation (3, 3)).
        """
        c = _vector("centre", centre)
        J = np.zeros((3, 3)) if inertia is None else np.array(inertia, dtype=float)
        J = np.diag(J) if J.shape == (3,) else J
        if J.shape != (3, 3) or np.abs(J - J.T).max() > 1e-9 * np.abs(J).max(initial=0.0):
            raise ValueError(f"inertia: a symmetric (3, 3) matrix or three values in kg.m2 expected, got {inertia!r}")
        principal = np.linalg.eigvalsh(J)
        if principal[0] < 0.0 or principal[2] > (principal[0] + principal[1]) * (1.0 + 1e-9):
            raise ValueError(f"inertia: principal moments {principal} kg.m2 break the triangle inequality")
        E = 0.5 * np.trace(J) * np.eye(3) - J + mass * np.outer(c, c)
        none = np.zeros((3, 0))
        places = {k: Port(_vector(k, p), np.array(R, dtype=float), none, none) for k, (p, R) in (ports or {}).items()}
        return cls(mass, mass * c, E, ports=places)

    @classmethod
    def from_points(cls, masses: Array, positions: Array, shapes: Array, stiffness: Array, ports: Mapping[str, Port] | None = None,
                    damping: Array | None = None, foreshortening: Array | None = None) -> ModalBody:
        """Body from points: masses (n,) kg, positions (n, 3) m, shapes (n, 3, s), stiffness (s, s).

        foreshortening (n, s, s, 3): chi_ab of every point; its effect is the stiffening by rotation about the body frame origin.
        """
        m, rho = np.asarray(masses, dtype=float), np.asarray(positions, dtype=float)
        phi = np.asarray(shapes, dtype=float)
        if m.ndim != 1 or rho.shape != (len(m), 3) or phi.shape[:2] != (len(m), 3):
            raise ValueError(f"points: shapes {m.shape}, {rho.shape}, {phi.shape} given, (n,), (n, 3), (n, 3, s) expected")
        if not np.all(m >= 0.0):
            raise ValueError(f"masses: {m.min()} kg at point {int(np.argmin(m))} is negative")
        stiffening = None
        if foreshortening is not None:
            R = np.einsum("n,ni,nabj->abij", m, rho, foreshortening)
            stiffening = 0.5 * (R + np.swapaxes(R, 2, 3))
            stiffening = 0.5 * (stiffening + np.swapaxes(stiffening, 0, 1))
        weighted = phi * m[:, None, None]
        return cls(
            float(m.sum()), m @ rho, np.einsum("n,ni,nj->ij", m, rho, rho), np.einsum("nia->ai", weighted),
            np.einsum("ni,nja->aij", rho, weighted, optimize=True), np.einsum("nia,njb->abij", phi, weighted, optimize=True),
            stiffening, stiffness, damping, dict(ports or {}),
        )

    def with_damping_ratio(self, ratio: float) -> ModalBody:
        """The same body with the given fraction of critical damping in each of its modes."""
        if not 0.0 <= ratio < 1.0:
            raise ValueError(f"damping ratio: {ratio} is not in [0, 1)")
        from scipy.linalg import eigh

        values, X = eigh(self.stiffness, self.modal_mass)
        back = np.linalg.inv(X)
        return replace(self, damping=back.T @ np.diag(2.0 * ratio * np.sqrt(np.clip(values, 0.0, None))) @ back)

    def clamped_at(self, name: str) -> ModalBody:
        """The same body with its frame fixed to a port: modes lose the rigid motion of that port, the frame moves there.

        A body that hangs on its parent by this port needs it: the kernel's frame is at the inboard joint, where phi = psi = 0.
        """
        if np.any(self.stiffening):
            raise ValueError("clamped_at: a body with stiffening must be built in the clamped frame")
        port = self.ports[name]
        p, R, m, d, E, s = port.position, port.rotation, self.mass, self.first_moment, self.second_moment, self.n_modes
        # phi' = phi - u - S(theta) rho0
        theta = port.psi.T
        u = port.phi.T - np.cross(theta, p)
        S = np.array([skew(t) for t in theta]).reshape(s, 3, 3)
        ST = np.swapaxes(S, 1, 2)
        N = self.N - np.einsum("i,aj->aij", d, u) - np.einsum("ij,ajk->aik", E, ST)
        P = self.P - m * u - np.einsum("aij,j->ai", S, d)
        Q = (self.Q - np.einsum("ai,bj->abij", self.P, u) - np.einsum("aki,bkj->abij", self.N, ST)
             - np.einsum("ai,bj->abij", u, self.P) + m * np.einsum("ai,bj->abij", u, u) + np.einsum("ai,k,bkj->abij", u, d, ST)
             - np.einsum("aik,bkj->abij", S, self.N) + np.einsum("aik,k,bj->abij", S, d, u) + np.einsum("aik,kl,blj->abij", S, E, ST))
        ports = {}
        for key, other in self.ports.items():
            phi = other.phi - u.T - np.cross(theta, other.position).T
            ports[key] = Port(R.T @ (other.position - p), R.T @ other.rotation, R.T @ phi, R.T @ (other.psi - port.psi))
        outline = self.outline
        if outline is not None:
            moves = outline.moves - u.T - np.cross(theta[None], outline.points[:, None]).transpose(0, 2, 1)
            outline = replace(outline, points=(outline.points - p) @ R, moves=np.einsum("ji,njk->nik", R, moves))
        # frame to the port: rho0 -> R^T (rho0 - p)
        N = N - np.einsum("i,aj->aij", p, P)
        E = E - np.outer(d, p) - np.outer(p, d) + m * np.outer(p, p)
        turn = lambda T: R.T @ T @ R  # noqa: E731
        return replace(self, first_moment=R.T @ (d - m * p), second_moment=turn(E), P=P @ R, N=turn(N), Q=turn(Q), ports=ports,
                       outline=outline)

    # --- files

    def save(self, path) -> None:
        """Write an `.npz` with every integral and port."""
        data = {name: getattr(self, name) for name in _ARRAYS}
        data |= {"mass": np.array(self.mass), "ports": np.array(list(self.ports), dtype=str)}
        for key, port in self.ports.items():
            data |= {f"port/{key}/{part}": getattr(port, part) for part in _PARTS}
        np.savez(path, **data)

    def as_tables(self) -> dict:
        """Every integral and port as numbers and lists, which TOML holds to the last bit; `of_tables` reads them back."""
        found = {"mass_kg": float(self.mass), "first_moment": self.first_moment.tolist()}
        found |= {name: getattr(self, name).reshape(-1, 3 if name in _BY_THREE else max(self.n_modes, 1)).tolist() for name in _ARRAYS[1:]}
        ports = {key: {part: np.asarray(getattr(port, part)).tolist() for part in _PARTS} for key, port in self.ports.items()}
        return found | {"ports": ports}

    @classmethod
    def of_tables(cls, tables: Mapping) -> ModalBody:
        """The body of `as_tables`. Raises ValueError that names the key."""
        given = checked(_TABLES, tables, "data")
        s = len(given["P"])
        sizes = {"P": (s, 3), "N": (s, 3, 3), "Q": (s, s, 3, 3), "stiffening": (s, s, 3, 3), "stiffness": (s, s), "damping": (s, s)}
        arrays: dict[str, Any] = {"first_moment": np.array(given["first_moment"]), "second_moment": np.array(given["second_moment"])}
        for name, shape in sizes.items():
            array = np.array(given[name], dtype=float)
            if array.size != math.prod(shape):
                raise ValueError(f"data.{name}: {array.size} numbers, {math.prod(shape)} are needed with {s} modes")
            arrays[name] = array.reshape(shape)
        ports = {}
        for key, port in given["ports"].items():
            if not isinstance(port, Mapping):
                raise ValueError(f"data.ports.{key}: must be a table, got {port!r:.80}")
            parts = checked(_PORT_TABLE, port, f"data.ports.{key}")
            ports[key] = Port(*(np.array(parts[part], dtype=float) for part in _PARTS))
        return cls(given["mass_kg"], ports=ports, **arrays)

    @classmethod
    def load(cls, path) -> ModalBody:
        """Read a modal body.

        `.npz`   as written by `save`
        `.toml`  keys points_csv (file beside it), stiffness_n_per_m or frequencies_hz (unit modal mass assumed), damping_ratio,
                 [port.NAME] with position_m, phi, psi (3 lists of s numbers)
        `.csv`   only inside a TOML: header mass_kg, x_m, y_m, z_m, then u1x, u1y, u1z, u2x, ... per mode
        """
        path = Path(path)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as data:
                missing = [name for name in (*_ARRAYS, "mass", "ports") if name not in data]
                if missing:
                    raise ValueError(f"{path}: {', '.join(missing)} missing")
                ports = {str(k): Port(*(data[f"port/{k}/{part}"] for part in _PARTS)) for k in data["ports"]}
                return cls(float(data["mass"]), ports=ports, **{name: data[name] for name in _ARRAYS})
        if path.suffix == ".toml":
            return _load_toml(path)
        raise ValueError(f"{path}: .npz or .toml expected")


_PARTS = ("position", "rotation", "phi", "psi")
_ARRAYS = ("first_moment", "second_moment", "P", "N", "Q", "stiffening", "stiffness", "damping")
_BY_THREE = ("second_moment", "P", "N", "Q", "stiffening")
_LARGEST = 1e15
# keys of `ModalBody.as_tables`; the sizes follow from the number of modes
_TABLES = (
    Parameter("mass_kg", "float", "kg", "mass", low=0.0, high=_LARGEST),
    Parameter("first_moment", "floats", "kg.m", "sum m rho0", shape=3),
    Parameter("second_moment", "rows", "kg.m2", "sum m rho0 rho0^T", shape=(3, 3)),
    Parameter("P", "rows", "kg", "sum m phi_a", shape=(None, 3)),
    *(Parameter(name, "rows", "-", "as ModalBody has it, in rows of three", shape=(None, 3)) for name in ("N", "Q", "stiffening")),
    Parameter("stiffness", "rows", "-", "generalised stiffness"),
    Parameter("damping", "rows", "-", "generalised damping"),
    Parameter("ports", "table", "-", "name -> position, rotation, phi, psi"),
)
_PORT_TABLE = tuple(Parameter(part, "floats" if part == "position" else "rows", "-", "as Port has it") for part in _PARTS)
# keys of the `.toml` of `ModalBody.load`
_POINTS = (
    Parameter("points_csv", "str", "-", "mass points with their shapes, beside the file"),
    Parameter("stiffness_n_per_m", "rows", "N/m", "generalised stiffness; or frequencies_hz", None, -_LARGEST, _LARGEST),
    Parameter("frequencies_hz", "floats", "Hz", "of the modes, whose modal mass is 1", None, 0.0, 1e6),
    Parameter("damping_ratio", "float", "-", "of every mode", 0.0, 0.0, 0.999),
    Parameter("port", "table", "-", "tables [port.NAME]", {}),
)
_POINTS_PORT = (
    Parameter("position_m", "floats", "m", "in the body's frame", shape=3),
    Parameter("phi", "rows", "-", "translation for each mode: rows x, y, z", shape=(3, None)),
    Parameter("psi", "rows", "rad", "rotation for each mode: rows x, y, z", shape=(3, None)),
)


def _vector(name: str, value) -> Array:
    v = np.array(value, dtype=float)
    if v.shape != (3,) or not np.all(np.isfinite(v)):
        raise ValueError(f"{name}: three finite numbers expected, got {value!r}")
    return v


def _load_toml(path: Path) -> ModalBody:
    with open(path, "rb") as file:
        try:
            table = checked(_POINTS, tomllib.load(file))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    if (table["stiffness_n_per_m"] is None) == (table["frequencies_hz"] is None):
        raise ValueError(f"{path}: stiffness_n_per_m, frequencies_hz: exactly one of the two is needed")
    source = path.parent / table["points_csv"]
    with open(source, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    modes = max((len(header) - 4) // 3, 0)
    expected = ["mass_kg", "x_m", "y_m", "z_m"] + [f"u{k + 1}{axis}" for k in range(modes) for axis in "xyz"]
    if header != expected:
        raise ValueError(f"{source}: header {header} given, {expected} expected")
    wrong = [i for i, row in enumerate(rows) if len(row) != len(header)]
    if wrong or len(rows) < 2:
        raise ValueError(f"{source}: row {wrong[0] if wrong else 1}: {len(header)} numbers expected")
    values = np.array([[float(x) for x in row] for row in rows[1:]])
    if table["frequencies_hz"] is not None:
        stiffness = np.diag((2.0 * np.pi * np.array(table["frequencies_hz"], dtype=float)) ** 2)
    else:
        stiffness = np.array(table["stiffness_n_per_m"], dtype=float)
    ports = {}
    for name, given in table["port"].items():
        if not isinstance(given, dict):
            raise ValueError(f"{path}: port.{name}: must be a table, got {given!r:.80}")
        try:
            port = checked(_POINTS_PORT, given, f"port.{name}")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        phi, psi = (np.array(port[part], dtype=float) for part in ("phi", "psi"))
        ports[name] = Port(_vector("position_m", port["position_m"]), np.eye(3), phi, psi)
    shapes = values[:, 4:].reshape(-1, modes, 3).transpose(0, 2, 1)
    body = ModalBody.from_points(values[:, 0], values[:, 1:4], shapes, stiffness, ports)
    return body.with_damping_ratio(table["damping_ratio"]) if table["damping_ratio"] else body


# --- mode sets of a finite-element structure ------------------------------------------------------------------------------------------


def _normalise(shapes: Array, M) -> Array:
    """Unit modal mass; the largest component of each shape positive (so that a set is reproducible)."""
    shapes = shapes / np.sqrt(np.einsum("ia,ia->a", shapes, M @ shapes))
    return shapes * np.sign(shapes[np.argmax(np.abs(shapes), axis=0), np.arange(shapes.shape[1])])


def lowest_modes(K, M, count: int, shift: float = -1.0) -> tuple[Array, Array]:
    """The `count` lowest eigenpairs (omega^2, shapes) of K x = omega^2 M x; M may be singular (massless rotations)."""
    from scipy.linalg import eigh
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import eigsh, splu

    n = K.shape[0]
    if count > n:
        raise ValueError(f"modes: {count} wanted, the structure has {n} degrees of freedom")
    if count == 0:
        return np.zeros(0), np.zeros((n, 0))
    if n <= 400 or count > n // 3:
        # K - shift M is positive definite: x = omega^2 from the largest of M x = mu (K - shift M) x
        dense_K, dense_M = (np.asarray(A.todense()) if hasattr(A, "todense") else np.asarray(A) for A in (K, M))
        mu, X = eigh(dense_M, dense_K - shift * dense_M, subset_by_index=(n - count, n - 1))
        return 1.0 / mu[::-1] + shift, X[:, ::-1]
    K, M = csc_matrix(K), csc_matrix(M)
    from scipy.sparse.linalg import LinearOperator

    factor = splu(K - shift * M)
    values, X = eigsh(K, count, M, sigma=shift, OPinv=LinearOperator(K.shape, factor.solve, dtype=float), v0=np.cos(np.arange(n)))
    order = np.argsort(values)
    return values[order], X[:, order]


def free_free_modes(structure, count: int) -> tuple[Array, Array]:
    """(frequencies Hz, shapes (dof, count)) of the lowest elastic modes of the unsupported structure, unit modal mass."""
    K, M = structure.stiffness(), structure.mass()
    shift = -1e-3 * _first_elastic_scale(K, M)
    values, X = lowest_modes(K, M, count + 6, shift)
    if values[5] > 1e-3 * values[6]:
        raise ValueError("free_free_modes: the structure has no six rigid-body modes; is it supported?")
    return np.sqrt(values[6:]) / (2.0 * np.pi), _normalise(X[:, 6:], M)


def _first_elastic_scale(K, M) -> float:
    """A rough size for omega^2 of the first elastic mode, for the shift."""
    values, _ = lowest_modes(K, M, 7, -1e-6 * K.diagonal().max() / max(M.diagonal().max(), 1e-300))
    return float(max(values[6], 1e-12))


def clamped_modes(structure, count: int, held: Array) -> tuple[Array, Array]:
    """(frequencies Hz, shapes (dof, count)) with the degrees of freedom `held` fixed, unit modal mass."""
    K, M = structure.stiffness(), structure.mass()
    free = np.setdiff1d(np.arange(K.shape[0]), held)
    values, X = lowest_modes(K[free][:, free], M[free][:, free], count, 0.0)
    shapes = np.zeros((K.shape[0], count))
    shapes[free] = _normalise(X, M[free][:, free])
    return np.sqrt(values) / (2.0 * np.pi), shapes


def craig_bampton_modes(structure, count: int, interfaces: Array, loads: Array | None = None) -> tuple[Array, Array]:
    """`count` mass-loaded Craig-Bampton modes: (frequencies Hz with the loads on, shapes (dof, count)).

    interfaces  indices of the interface degrees of freedom (six per interface)
    loads       (b, b) mass matrix of what the interfaces carry; None: none

    Constraint modes of all interface coordinates plus the lowest modes with the interfaces held, as many as make `count` elastic ones
    together; the reduced eigenproblem with the loads removes the six rigid-body modes.
    Source: Craig and Bampton 1968.
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import splu

    b = np.asarray(interfaces)
    held_count = count + 6 - len(b)
    if held_count < 0:
        raise ValueError(f"modes: {count} is fewer than the {len(b) - 6} constraint modes of the interfaces")
    K, M = structure.stiffness(), structure.mass()
    n = K.shape[0]
    inner = np.setdiff1d(np.arange(n), b)
    basis = np.zeros((n, len(b) + held_count))
    basis[b, np.arange(len(b))] = 1.0
    basis[inner, : len(b)] = -splu(K[inner][:, inner].tocsc()).solve(np.asarray(K[inner][:, b].todense()))
    if held_count:
        basis[:, len(b):] = clamped_modes(structure, held_count, b)[1]
    # the loads' own size keeps the reduced problem well scaled
    K_r, M_r = basis.T @ (K @ basis), basis.T @ (M @ basis)
    if loads is not None:
        M_r[: len(b), : len(b)] += loads
    values, X = eigh(0.5 * (K_r + K_r.T), 0.5 * (M_r + M_r.T))
    shapes = basis @ X[:, 6:]
    return np.sqrt(values[6:]) / (2.0 * np.pi), shapes * np.sign(shapes[np.argmax(np.abs(shapes), axis=0), np.arange(count)])
