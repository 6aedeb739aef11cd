"""Space frames of beam elements: stiffness, mass points and interfaces, for modal data at set-up.

Twelve-degree beam element between two nodes, six degrees each (displacement, rotation; structure axes): axial, torsion, and bending in both
planes with shear (Timoshenko; Przemieniecki 1968, ch. 5). Mass is a cloud of points whose displacement is
linear in the nodal displacements, so the mass matrix and every modal integral of `ModalBody` come from the same numbers:

* `mass="distributed"`: four Gauss points along each element with its own shape functions (exact for the consistent mass matrix), and at
  each of them four fibres at the radii of gyration, which carry the rotary inertia;
* `mass="lumped"`: half of the element's mass at each node;
* `add_point`: any further mass point, rigidly tied to a node.

SI units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rt_kernels.model.modes import ModalBody, Port, skew

Array = np.ndarray


@dataclass(frozen=True)
class Section:
    """Cross-section: E, G Pa; A m^2; Iy, Iz m^4 (bending about the element's y and z axes); J m^4 (torsion); density kg/m^3.

    shear_y, shear_z: effective shear areas m^2 for deflection along y and z; 0 means rigid in shear.
    gyration_y, gyration_z: m, distance of the inertial fibres along y and z; None: from Iz / A and Iy / A; 0: no rotary inertia.
    """

    E: float
    G: float
    A: float
    Iy: float
    Iz: float
    J: float
    density: float
    shear_y: float = 0.0
    shear_z: float = 0.0
    gyration_y: float | None = None
    gyration_z: float | None = None

    def __post_init__(self) -> None:
        for name in ("E", "G", "A", "Iy", "Iz", "J"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"section: {name} = {value} is not a finite number > 0")
        for name in ("density", "shear_y", "shear_z"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"section: {name} = {value} is not a finite number >= 0")


def element_stiffness(section: Section, length: float) -> Array:
    """(12, 12) in element axes, x along the element; order u, theta of the first node, u, theta of the second."""
    s, L = section, length
    K = np.zeros((12, 12))
    for a, value in ((0, s.E * s.A / L), (3, s.G * s.J / L)):
        K[a, a] = K[a + 6, a + 6] = value
        K[a, a + 6] = K[a + 6, a] = -value
    # bending: (deflection, rotation sign, inertia, shear area); theta_z = +dv/dx, theta_y = -dw/dx
    for v, r, sign, inertia, area in ((1, 5, 1.0, s.Iz, s.shear_y), (2, 4, -1.0, s.Iy, s.shear_z)):
        EI = s.E * inertia
        shear = 12.0 * EI / (s.G * area * L * L) if area else 0.0
        k = EI / (L**3 * (1.0 + shear))
        block = k * np.array([[12.0, 6.0 * L, -12.0, 6.0 * L],
                              [6.0 * L, (4.0 + shear) * L * L, -6.0 * L, (2.0 - shear) * L * L],
                              [-12.0, -6.0 * L, 12.0, -6.0 * L],
                              [6.0 * L, (2.0 - shear) * L * L, -6.0 * L, (4.0 + shear) * L * L]])
        flip = np.diag([1.0, sign, 1.0, sign])
        index = [v, r, v + 6, r + 6]
        K[np.ix_(index, index)] = flip @ block @ flip
    return K


def element_shapes(section: Section, length: float, xi: float) -> tuple[Array, Array]:
    """Displacement and rotation (3, 12) of the axis at xi in [0, 1], element axes; with shear the exact static shapes."""
    s, L = section, length
    N, T = np.zeros((3, 12)), np.zeros((3, 12))
    N[0, 0], N[0, 6] = 1.0 - xi, xi
    T[0, 3], T[0, 9] = 1.0 - xi, xi
    for v, r, sign, inertia, area in ((1, 5, 1.0, s.Iz, s.shear_y), (2, 4, -1.0, s.Iy, s.shear_z)):
        p = 12.0 * s.E * inertia / (s.G * area * L * L) if area else 0.0
        d = 1.0 / (1.0 + p)
        N[v, [v, r, v + 6, r + 6]] = d * np.array([
            1.0 - 3.0 * xi**2 + 2.0 * xi**3 + p * (1.0 - xi), sign * L * (xi - 2.0 * xi**2 + xi**3 + p * (xi - xi**2) / 2.0),
            3.0 * xi**2 - 2.0 * xi**3 + p * xi, sign * L * (-(xi**2) + xi**3 - p * (xi - xi**2) / 2.0)])
        T[r - 3, [v, r, v + 6, r + 6]] = d * np.array([
            sign * 6.0 / L * (xi**2 - xi), 1.0 - 4.0 * xi + 3.0 * xi**2 + p * (1.0 - xi),
            sign * 6.0 / L * (xi - xi**2), 3.0 * xi**2 - 2.0 * xi + p * xi])
    return N, T


_GAUSS = np.polynomial.legendre.leggauss(4)


class Frame:
    """A structure of beam elements. Nodes (n, 3) m. Degrees of freedom: six per node, then whatever `tie` made of them."""

    def __init__(self, nodes: Array):
        self.nodes = np.array(nodes, dtype=float)
        if self.nodes.ndim != 2 or self.nodes.shape[1] != 3 or not np.all(np.isfinite(self.nodes)):
            raise ValueError(f"nodes: an (n, 3) array of finite metres expected, got shape {self.nodes.shape}")
        self._stiffness: list[tuple[Array, Array]] = []
        self._points: list[tuple[float, Array, Array, Array]] = []      # mass, position, dofs, (3, k) shape
        self._ties: list[tuple[Array, Array]] = []
        self._transform = None

    # --- building

    def beam(
        self, first: int, second: int, section: Section, up: Array | tuple[float, ...] = (0.0, 0.0, 1.0), mass: str = "distributed"
    ) -> None:
        """Element between two nodes; its z axis lies in the plane of the element and `up`."""
        a, b = self.nodes[first], self.nodes[second]
        L = float(np.linalg.norm(b - a))
        if not L > 0.0:
            raise ValueError(f"beam {first}-{second}: length {L} m")
        ex = (b - a) / L
        ey = np.cross(up, ex)
        if np.linalg.norm(ey) < 1e-6:
            ey = np.cross((0.0, 1.0, 0.0) if abs(ex[1]) < 0.9 else (1.0, 0.0, 0.0), ex)
        ey /= np.linalg.norm(ey)
        R = np.stack([ex, ey, np.cross(ex, ey)])
        T = np.kron(np.eye(4), R)
        dofs = np.concatenate([6 * first + np.arange(6), 6 * second + np.arange(6)])
        self._stiffness.append((dofs, T.T @ element_stiffness(section, L) @ T))
        total = section.density * section.A * L
        if total == 0.0:
            return
        if mass == "lumped":
            for node in (first, second):
                self.add_point(node, total / 2.0)
        elif mass == "distributed":
            cy = np.sqrt(section.Iz / section.A) if section.gyration_y is None else section.gyration_y
            cz = np.sqrt(section.Iy / section.A) if section.gyration_z is None else section.gyration_z
            fibres = [(y, z) for y in (-cy, cy) for z in (-cz, cz)] if cy or cz else [(0.0, 0.0)]
            for x, weight in zip(*_GAUSS, strict=True):
                xi = 0.5 * (1.0 + x)
                N, rotation = element_shapes(section, L, xi)
                for y, z in fibres:
                    off = np.array([0.0, y, z])
                    shape = R.T @ (N - skew(off) @ rotation) @ T
                    self._points.append((0.5 * weight * total / len(fibres), a + xi * L * ex + R.T @ off, dofs, shape))
        else:
            raise ValueError(f"beam {first}-{second}: mass {mass!r} is not 'distributed' or 'lumped'")

    def add_point(self, node: int, mass: float, offset: Array | tuple[float, ...] = (0.0, 0.0, 0.0)) -> None:
        """A mass point kg rigidly tied to a node, at an offset (3,) m from it."""
        if not (np.isfinite(mass) and mass >= 0.0):
            raise ValueError(f"point at node {node}: mass {mass} kg is not a finite number >= 0")
        off = np.array(offset, dtype=float)
        self._points.append((mass, self.nodes[node] + off, 6 * node + np.arange(6), np.hstack([np.eye(3), -skew(off)])))

    def scale_mass(self, total: float) -> None:
        """Scale all mass points so that they weigh `total` kg together."""
        if not (np.isfinite(total) and total > 0.0):
            raise ValueError(f"total: {total} kg is not a finite number > 0")
        factor = total / sum(m for m, _, _, _ in self._points)
        self._points = [(m * factor, x, d, s) for m, x, d, s in self._points]

    def tie(self, nodes: Array, point: Array) -> int:
        """Tie nodes rigidly to a new six-degree interface at `point`; returns a key for `interface`."""
        self._ties.append((np.asarray(nodes), np.array(point, dtype=float)))
        self._transform = None
        return len(self._ties) - 1

    # --- matrices of the free coordinates

    def transform(self):
        """Sparse (6 n, dofs): nodal displacements from the free coordinates (ties eliminated; each tie adds six at the end)."""
        from scipy.sparse import coo_matrix

        if self._transform is None:
            n = 6 * len(self.nodes)
            tied = np.concatenate([np.asarray(nodes) for nodes, _ in self._ties]) if self._ties else np.zeros(0, dtype=int)
            if len(np.unique(tied)) != len(tied):
                raise ValueError("tie: a node is tied twice")
            free = np.setdiff1d(np.arange(n), (6 * tied[:, None] + np.arange(6)).ravel())
            rows, columns, values = list(free), list(range(len(free))), [1.0] * len(free)
            self._column = np.full(n, -1)
            self._column[free] = np.arange(len(free))
            for k, (nodes, point) in enumerate(self._ties):
                first = len(free) + 6 * k
                for node in nodes:
                    block = np.eye(6)
                    block[:3, 3:] = -skew(self.nodes[node] - point)
                    i, j = np.nonzero(block)
                    rows += list(6 * node + i)
                    columns += list(first + j)
                    values += list(block[i, j])
            self._transform = coo_matrix((values, (rows, columns)), shape=(n, len(free) + 6 * len(self._ties))).tocsr()
            self._first_tie = len(free)
        return self._transform

    def interface(self, key: int) -> Array:
        """The six coordinates of a tie."""
        self.transform()
        return self._first_tie + 6 * key + np.arange(6)

    def node_dofs(self, node: int) -> Array:
        """The six coordinates of an untied node."""
        self.transform()
        dofs = self._column[6 * node + np.arange(6)]
        if dofs.min() < 0:
            raise ValueError(f"node {node} is tied; use its interface")
        return dofs

    def stiffness(self):
        """Sparse stiffness of the free coordinates."""
        from scipy.sparse import coo_matrix

        rows = np.concatenate([np.repeat(d, len(d)) for d, _ in self._stiffness])
        columns = np.concatenate([np.tile(d, len(d)) for d, _ in self._stiffness])
        values = np.concatenate([k.ravel() for _, k in self._stiffness])
        n = 6 * len(self.nodes)
        T = self.transform()
        return (T.T @ coo_matrix((values, (rows, columns)), shape=(n, n)).tocsr() @ T).tocsr()

    def point_operator(self):
        """(masses (p,), positions (p, 3), sparse (3 p, dofs) displacement of the points)."""
        from scipy.sparse import coo_matrix

        masses = np.array([m for m, _, _, _ in self._points])
        positions = np.array([x for _, x, _, _ in self._points])
        rows = np.concatenate([np.repeat(3 * k + np.arange(3), len(d)) for k, (_, _, d, _) in enumerate(self._points)])
        columns = np.concatenate([np.tile(d, 3) for _, _, d, _ in self._points])
        values = np.concatenate([s.ravel() for _, _, _, s in self._points])
        B = coo_matrix((values, (rows, columns)), shape=(3 * len(masses), 6 * len(self.nodes))).tocsr()
        return masses, positions, B @ self.transform()

    def mass(self):
        """Sparse mass matrix of the free coordinates, from the mass points."""
        from scipy.sparse import diags

        masses, _, B = self.point_operator()
        return (B.T @ diags(np.repeat(masses, 3)) @ B).tocsr()

    # --- to a modal body

    def averaged_port(self, nodes: Array, point: Array, shapes: Array) -> Port:
        """Port whose motion is the mean displacement and least-squares rotation of some nodes."""
        u = self.transform() @ shapes
        arms = self.nodes[np.asarray(nodes)] - self.nodes[np.asarray(nodes)].mean(axis=0)
        moved = np.stack([u[6 * node: 6 * node + 3] for node in nodes])
        mean = moved.mean(axis=0)
        spread = np.sum(arms**2) * np.eye(3) - arms.T @ arms
        psi = np.linalg.solve(spread, sum(np.cross(arm, (x - mean).T).T for arm, x in zip(arms, moved, strict=True)))
        offset = np.asarray(point, dtype=float) - self.nodes[np.asarray(nodes)].mean(axis=0)
        return Port(np.array(point, dtype=float), np.eye(3), mean + np.cross(psi.T, offset).T, psi)

    def port(self, dofs: Array, position: Array, shapes: Array, rotation: Array | None = None) -> Port:
        """Port that moves with six coordinates (a node or an interface)."""
        R = np.eye(3) if rotation is None else np.asarray(rotation, dtype=float)
        return Port(np.array(position, dtype=float), R, shapes[dofs[:3]], shapes[dofs[3:]])

    def modal_body(self, shapes: Array, ports: dict[str, Port] | None = None, stiffening: bool = False,
                   frequencies_hz: Array | None = None) -> ModalBody:
        """Modal body of the structure with mode shapes (dofs, s), frame at the structure's origin and axes.

        stiffening      include the foreshortening of a straight beam along x (see `foreshortening`)
        frequencies_hz  generalised stiffness from these (unit modal masses) instead of from the structure
        """
        masses, positions, B = self.point_operator()
        moved = np.asarray(B @ shapes).reshape(len(masses), 3, shapes.shape[1])
        if frequencies_hz is not None:
            K = np.diag((2.0 * np.pi * np.asarray(frequencies_hz)) ** 2)
        else:
            K = shapes.T @ (self.stiffness() @ shapes)
            K = 0.5 * (K + K.T)
        chi = self.foreshortening(shapes, positions[:, 0]) if stiffening else None
        return ModalBody.from_points(masses, positions, moved, K, ports, foreshortening=chi)

    def foreshortening(self, shapes: Array, x: Array) -> Array:
        """(len(x), s, s, 3) for a straight beam along x held at x = 0: chi_ab = -e_x integral of (v_a' v_b' + w_a' w_b').

        Integrated along the elements with four Gauss points each.
        """
        u = self.transform() @ shapes
        if np.abs(self.nodes[:, 1:]).max() > 1e-9 * np.abs(self.nodes[:, 0]).max():
            raise ValueError("stiffening: only for a straight beam along x")
        s = shapes.shape[1]
        order = np.argsort(self.nodes[:, 0])
        start = self.nodes[order, 0]
        cumulative = np.zeros((len(order), s, s))

        def integral(k: int, xi: float) -> Array:
            """of slope products over the first part xi of the interval k."""
            L = start[k + 1] - start[k]
            end = [u[6 * order[k]: 6 * order[k] + 6], u[6 * order[k + 1]: 6 * order[k + 1] + 6]]
            out = np.zeros((s, s))
            for g, weight in zip(*_GAUSS, strict=True):
                t = 0.5 * xi * (1.0 + g)
                for v, r, sign in ((1, 5, 1.0), (2, 4, -1.0)):
                    slope = ((6 * t * t - 6 * t) / L * (end[0][v] - end[1][v]) + (1 - 4 * t + 3 * t * t) * sign * end[0][r]
                             + (3 * t * t - 2 * t) * sign * end[1][r])
                    out += 0.5 * weight * xi * L * np.outer(slope, slope)
            return out

        for k in range(len(order) - 1):
            cumulative[k + 1] = cumulative[k] + integral(k, 1.0)
        zero = cumulative[int(np.searchsorted(start, 0.0))] if np.any(start == 0.0) else None
        if zero is None:
            raise ValueError("stiffening: a node at x = 0 (the body frame) is needed")
        chi = np.zeros((len(x), s, s, 3))
        for i, position in enumerate(x):
            k = int(np.clip(np.searchsorted(start, position) - 1, 0, len(start) - 2))
            xi = (position - start[k]) / (start[k + 1] - start[k])
            chi[i, :, :, 0] = zero - cumulative[k] - integral(k, xi)
        return chi


def straight_beam(length: float, section: Section, elements: int, start: float = 0.0, mass: str = "distributed") -> Frame:
    """Uniform beam along x from `start`, nodes 0 ... elements."""
    if elements < 1:
        raise ValueError(f"elements: {elements} is not >= 1")
    nodes = np.zeros((elements + 1, 3))
    nodes[:, 0] = start + length * np.arange(elements + 1) / elements
    frame = Frame(nodes)
    for k in range(elements):
        frame.beam(k, k + 1, section, mass=mass)
    return frame


def square_truss(bays: int, side: float, section: Section, longeron: int = 3, batten: int = 3,
                 diagonal: int = 4) -> tuple[Frame, Array, Array]:
    """Square truss along x centred at the origin: four longerons, four battens a frame, one diagonal per face and bay.

    Numbers are elements per member; mass lumped at the nodes, joints rigid. Diagonals alternate from bay to bay and between adjacent
    faces. Returns (frame, corner nodes of the first end (4,), of the last end (4,)).
    Source: reconstruction of the truss of Wang et al. 2020, table 2 (1292 nodes, 1612 elements for 40 bays).
    """
    h = side / 2.0
    corners = np.array([[-h, -h], [h, -h], [h, h], [-h, h]])
    nodes = [np.array([-0.5 * bays * side + k * side, *corner]) for k in range(bays + 1) for corner in corners]
    members: list[tuple[int, int]] = []

    def member(a: int, b: int, parts: int) -> None:
        chain = [a]
        for i in range(1, parts):
            nodes.append(nodes[a] + (nodes[b] - nodes[a]) * i / parts)
            chain.append(len(nodes) - 1)
        chain.append(b)
        members.extend(zip(chain[:-1], chain[1:], strict=True))

    for k in range(bays + 1):
        for c in range(4):
            member(4 * k + c, 4 * k + (c + 1) % 4, batten)
    for k in range(bays):
        for c in range(4):
            member(4 * k + c, 4 * (k + 1) + c, longeron)
            near, far = (c, (c + 1) % 4) if (c % 2 == 0) == (k % 2 == 0) else ((c + 1) % 4, c)
            member(4 * k + near, 4 * (k + 1) + far, diagonal)
    frame = Frame(np.array(nodes))
    for a, b in members:
        frame.beam(a, b, section, mass="lumped")
    return frame, np.arange(4), 4 * bays + np.arange(4)
