"""What a craft is, out of its file alone: masses, tree, modes, time-step limit, and what a docking at its port would feel.

Everything is taken about the craft at rest (`rt_kernels.model.craft.resting_links`): joints at their given angles; locked and given ones,
and reaction wheels, held there; springs, dampers and servos linear. With the modes of the whole tree at a port (a shape phi_k per mode, six
components, mass-normalised) the port's mobility, twist per impulse, is

    W = sum_k phi_k phi_k^T,    effective mass along n:  1 / (n^T W n)

over all modes: what the first instant of a contact feels; over the rigid-body modes alone: what a slow push feels.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hil_server.config import SHIPPED, crafts, extends, modal_data
from hil_server.config.modal_data import ModalData, check_whole, csv_text, mass_matrix_at, rigid_of
from hil_server.errors import ConfigurationError
from rt_kernels.algebra.arrays import quat_from_matrix
from rt_kernels.model.bodies import ModelError
from rt_kernels.model.craft import DOCKING, AtRest, Craft, Link, at_rest, node_pose, port_pose, resting_links
from rt_kernels.model.craft_file import CraftError, craft_of
from rt_kernels.model.manipulator_file import manipulator_of
from rt_kernels.model.modes import ModalBody
from rt_kernels.model.urdf import read_urdf_craft
from rt_kernels.multibody.flexible import FlexibleTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = 12  # modes


@dataclass(frozen=True)
class PortView:
    """A port at rest. position (3,) m from the centre of mass and rotation (3, 3), axes of the root body; shapes (n, 6): the modes as the
    port shows them, port axes; effective_mass, rigid_mass (3,) kg along x, y, z of the port: all modes, and those at 0 Hz alone (None
    for a craft that does not fly)."""

    name: str
    position: np.ndarray
    rotation: np.ndarray
    shapes: np.ndarray
    effective_mass: np.ndarray
    rigid_mass: np.ndarray | None


@dataclass(frozen=True)
class CraftView:
    """What `view` found. frequency_hz, damping_ratio (n,): modes at rest, rigid-body modes at 0 Hz first; steps: method -> s; dropped:
    what of a URDF file is not in the craft; places: (body, node or None) of the frames in `fields` (n, places, 6), their displacement and
    rotation in each mode, axes of the root body."""

    craft: Craft
    rest: AtRest
    frequency_hz: np.ndarray
    damping_ratio: np.ndarray
    places: tuple[tuple[str, str | None], ...]
    fields: np.ndarray
    steps: Mapping[str, float]
    ports: tuple[PortView, ...]
    dropped: tuple[str, ...]

    @property
    def rigid_modes(self) -> int:
        """Number of modes without a frequency."""
        return int(np.sum(self.frequency_hz == 0.0))

    def port(self, name: str | None) -> PortView:
        """The named port, or the one that a docking takes. Raises ConfigurationError."""
        names = [port.name for port in self.ports]
        wanted = name or (DOCKING if DOCKING in names else names[0] if len(names) == 1 else None)
        if wanted not in names:
            raise ConfigurationError(f"--port: {name or 'none given'}, limit one of {', '.join(names) or 'none: the file has no [[port]]'}")
        return self.ports[names.index(wanted)]


@dataclass(frozen=True)
class PortModes:
    """Flexible modes at a port: frequency_hz, damping_ratio (n,), shapes (n, 6) mass-normalised, port axes."""

    frequency_hz: np.ndarray
    damping_ratio: np.ndarray
    shapes: np.ndarray


def read(path: str | Path, floating_base: bool = True) -> tuple[Craft, list[str], PortModes | None]:
    """The craft of a TOML or URDF file, what of the file is not in it, and the modes at the port that a table [modal] gives. floating_base:
    the root link of a URDF file flies. Raises ConfigurationError with all faults."""
    path = Path(path)
    if path.suffix.lower() == ".urdf":
        try:
            return *read_urdf_craft(path, floating_base), None
        except ModelError as error:
            raise ConfigurationError(str(error)) from None
    tables = extends.tables_of(path, "craft")
    modal = None
    try:
        found = craft_of(tables, str(path), path.parent)
        if "manipulator" in tables:
            manipulator_of(tables, path, sum(link.joint != "fixed" for link in found.links))
        if isinstance(tables.get("modal"), dict):
            rigid = rigid_of({"port_angles_deg": (0.0,) * 3, **tables})
            modal = PortModes(*modal_data.modes_at_port(tables["modal"], path.parent, rigid))
    except CraftError as error:
        raise ConfigurationError([f"{path}: {fault}" for fault in error.faults]) from None
    except OSError as error:
        raise ConfigurationError(f"{path}: modal.file: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}".replace(f"{path}: {path.name}: ", f"{path}: ")) from None
    return found, [], modal


def view(craft: Craft, dropped: list[str] | None = None, modal: PortModes | None = None) -> CraftView:
    """Looks at a craft at rest. modal: modes at the port of a rigid vehicle (its table [modal]).

    Raises ConfigurationError for one that cannot be computed with (no mass, a joint that moves nothing)."""
    try:
        rest = at_rest(craft)
        return _view(craft, rest, tuple(dropped or ()), modal)
    except ValueError as error:
        raise ConfigurationError(f"{craft.name}: {error}") from None


def docking_modes(table: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Modes of a vehicle's table as its docking port shows them: squares of the circular frequencies (n,), 1/s2, rigid-body modes first,
    and mass-normalised shapes (6, n), port axes."""
    modal = None
    if table.get("modal"):
        modal = PortModes(*modal_data.modes_at_port(table["modal"], SHIPPED / "vehicles", rigid_of(table)))
    seen = view(crafts.craft(table), None, modal)
    return (2.0 * np.pi * seen.frequency_hz) ** 2, seen.port(DOCKING).shapes.T


def _view(craft: Craft, rest: AtRest, dropped: tuple[str, ...], modal: PortModes | None) -> CraftView:
    links = list(resting_links(craft))
    # the frame of a body that bends and hangs on nothing is no point of it
    places = [(link.name, node) for link in links for node in (None, *link.body.ports)
              if node is not None or link.parent is not None or not link.body.ports]  # fmt: skip
    # massless bodies mark the nodes and the ports
    marks = [Link(_mark(*place), ModalBody.rigid(0.0), *place) for place in places if place[1] is not None]
    for port in craft.ports:
        body = ModalBody.rigid(0.0)
        marks.append(Link(_mark(port.name, None), body, port.body, port.node, position=port.position, rotation=port.rotation))
    frequency = damping = np.zeros(0)
    fields = np.zeros((0, len(places), 6))
    at = {port.name: np.zeros((0, 6)) for port in craft.ports}
    steps: dict[str, float] = {}
    if any(link.joint != "fixed" or link.body.n_modes for link in links):
        tree: Any = FlexibleTree([*links, *marks], craft.gravity, craft.rates)  # type: ignore[call-arg]
        frequency, _ = tree.modes_at(craft.root.name)
        at = {port.name: tree.modes_at(_mark(port.name, None))[1] for port in craft.ports}
        fields = np.stack([_turned(tree.modes_at(body if node is None else _mark(body, node))[1], _frame(craft, rest, body, node)[0])
                           for body, node in places], axis=1)  # fmt: skip
        damping = _damping(tree, frequency)
        steps = _step_limits(frequency, damping)
    if modal is not None:
        frequency, damping = np.append(frequency, modal.frequency_hz), np.append(damping, modal.damping_ratio)
        at[DOCKING] = np.vstack([at[DOCKING], modal.shapes])
        fields = np.concatenate([fields, np.zeros((len(modal.shapes), *fields.shape[1:]))])
    ports = []
    for port in craft.ports:
        R, p = port_pose(craft, rest, port.name)
        phi, slow = at[port.name], at[port.name][frequency == 0.0]
        ports.append(PortView(port.name, p - rest.centre, R, phi, _effective(phi), _effective(slow) if len(slow) >= 6 else None))
    return CraftView(craft, rest, frequency, damping, tuple(places), fields, steps, tuple(ports), dropped)


def _mark(name: str, node: str | None) -> str:
    return f"node {node} of {name}" if node is not None else f"port {name}"


def _frame(craft: Craft, rest: AtRest, body: str, node: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of a body's frame or node at rest."""
    link = next(link for link in craft.links if link.name == body)
    return node_pose(link, rest.poses[body], node)


def _turned(shapes: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Shapes (n, 6) on the axes to which R turns."""
    return np.hstack([shapes[:, :3] @ R.T, shapes[:, 3:] @ R.T])


def _damping(tree: Any, frequency: np.ndarray) -> np.ndarray:
    """Ratio of each mode to critical damping, 0 for a rigid-body mode."""
    from scipy.linalg import eigh

    _, X = eigh(tree.stiffness_matrix(), tree.mass_matrix(tree.neutral()))
    rates = np.einsum("ia,ij,ja->a", X, tree.damping_matrix(), X)
    omega = 2.0 * np.pi * frequency
    ratio: np.ndarray = np.divide(rates, 2.0 * omega, out=np.zeros_like(omega), where=omega > 0.0)
    return ratio


def _step_limits(frequency: np.ndarray, damping: np.ndarray) -> dict[str, float]:
    """Largest stable step, s, of explicit integrators for x'' = -w^2 x - 2 z w x': symplectic Euler (h w)^2 + 4 z h w < 4, fourth-order
    Runge-Kutta h w < 2 sqrt(2) (of an undamped mode)."""
    omega = 2.0 * np.pi * frequency[frequency > 0.0]
    z = damping[frequency > 0.0]
    if not len(omega):
        return {}
    return {"symplectic_euler": float(np.min(2.0 * (np.sqrt(1.0 + z * z) - z) / omega)), "rk4": float(2.0 * np.sqrt(2.0) / omega.max())}


def _effective(shapes: np.ndarray) -> np.ndarray:
    """(3,) 1 / sum of squares along x, y, z; infinite where the port does not move."""
    mobility = np.sum(shapes[:, :3] ** 2, axis=0)
    mass: np.ndarray = np.divide(1.0, mobility, out=np.full(3, np.inf), where=mobility > 1e-15)
    return mass


# ------------------------------------------------------------------------------------------------------------------ modes to a file
def modes_text(seen: CraftView, port: PortView, vehicle: Mapping[str, Any] | None = None, modes: int | None = None) -> str:
    """Rows of the modes at a port for `[modal]` of a vehicle file: node 1, port axes, rigid-body modes first. vehicle: table of the vehicle
    that they are for, None: the craft itself, as one rigid body. modes: how many beside the rigid-body ones.

    Raises ConfigurationError with both numbers when the modes are not those of that vehicle."""
    if seen.rigid_modes != 6:
        loose = [link.joint_name for link in resting_links(seen.craft) if link.parent and link.joint != "fixed" and not link.stiffness]
        why = f"joints free without a spring: {', '.join(loose)}; lock them" if loose else "the craft is held"
        raise ConfigurationError(f"{seen.craft.name}: {seen.rigid_modes} modes at 0 Hz, limit 6: {why}")
    if vehicle is None:
        M = mass_matrix_at(seen.rest.mass, seen.rest.inertia, np.concatenate([port.position, quat_from_matrix(port.rotation)]))
    else:
        M = rigid_of(vehicle)
    least = 0.5 * float(seen.frequency_hz[6]) if len(seen.frequency_hz) > 6 else 1e-3
    try:
        check_whole(port.shapes[:6], M, least)
    except modal_data.ModalDataError as error:
        raise ConfigurationError(str(error)) from None
    count = None if modes is None else 6 + modes
    remark = (f"# modes of the craft {seen.craft.name!r} ({seen.rest.mass:.6g} kg) at its port {port.name!r}, port axes\n"
              f"# [modal]: port_node = 1, port_axes_xyzw = [0, 0, 0, 1], frequency_min_hz between 0 and {least * 2:.6g}\n")  # fmt: skip
    return remark + csv_text(ModalData(seen.frequency_hz[:count], {1: port.shapes[:count]}))


# --------------------------------------------------------------------------------------------------------------------------- as data
def as_dict(seen: CraftView) -> dict[str, Any]:
    """The view as plain numbers, for `--json`."""
    principal = np.linalg.eigvalsh(seen.rest.inertia)
    settings = {s.joint: s for s in seen.craft.joints}
    bodies = []
    for link in seen.craft.links:
        row: dict[str, Any] = {"name": link.name, "parent": link.parent, "joint": link.joint, "joint_name": link.joint_name,
                               "mass_kg": link.body.mass, "modes": link.body.n_modes}  # fmt: skip
        s = settings.get(link.joint_name)
        if s is not None:
            row |= {"mode": s.mode, "angle": s.angle, "stiffness": s.stiffness, "damping": s.damping, "friction": s.friction,
                    "armature": s.armature, "lower": _finite(s.lower), "upper": _finite(s.upper), "effort": _finite(s.effort),
                    "rate": _finite(s.rate)}  # fmt: skip
        bodies.append(row)
    flexible = slice(seen.rigid_modes, None)
    counts, refused = crafts.in_a_run(seen.craft)
    return {
        "name": seen.craft.name, "mass_kg": seen.rest.mass, "centre_of_mass_m": seen.rest.centre.tolist(),
        "inertia_kg_m2": seen.rest.inertia.tolist(), "principal_moments_kg_m2": principal.tolist(), "bodies": bodies,
        "rigid_body_modes": seen.rigid_modes, "frequency_hz": seen.frequency_hz[flexible].tolist(),
        "damping_ratio": seen.damping_ratio[flexible].tolist(), "step_limit_s": {k: _finite(v) for k, v in seen.steps.items()},
        "ports": [
            {"name": port.name, "position_from_centre_m": port.position.tolist(),
             "effective_mass_kg": [_finite(x) for x in port.effective_mass],
             "slow_effective_mass_kg": None if port.rigid_mass is None else [_finite(x) for x in port.rigid_mass],
             "modes": [{"frequency_hz": float(f), "shape": phi.tolist()}
                       for f, phi in zip(seen.frequency_hz[flexible], port.shapes[flexible], strict=True)][:SHOWN]}
            for port in seen.ports
        ],
        "thrusters": [t.name for t in seen.craft.thrusters], "wheels": [w.name for w in seen.craft.wheels],
        "sensors": [s.name for s in seen.craft.sensors], "interfaces": [i.name for i in seen.craft.interfaces],
        "dropped": list(seen.dropped), "in_a_run": {"counts": counts, "refused": refused},
    }  # fmt: skip


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


# --------------------------------------------------------------------------------------------------------------------------- picture
VIEWS = ((0, 1, "from the side: x, y"), (0, 2, "from above: x, z"))
OBLIQUE = np.array([[1.0, 0.0, 0.45], [0.0, 1.0, 0.3]])  # how modes are drawn: z comes towards the reader


def picture(seen: CraftView, file: str | Path) -> str:
    """Draws the tree from two sides, and the first modes. Returns the file. Raises ConfigurationError for a name that is no picture's."""
    from matplotlib.figure import Figure

    if Path(file).suffix.lower() not in (".png", ".svg"):
        raise ConfigurationError(f"--picture {file}: must end in .png or .svg")
    first = [k for k in range(seen.rigid_modes, len(seen.frequency_hz)) if np.any(seen.fields[k])][:4]
    drawn = Figure(figsize=(10.0, 7.4 if first else 4.6), layout="constrained")
    top, *below = drawn.subfigures(2 if first else 1, 1, height_ratios=(1.6, 1.0) if first else None, squeeze=False)[:, 0]
    places = np.array([_frame(seen.craft, seen.rest, *place)[1] for place in seen.places])
    centres = [_centre(seen, link) for link in seen.craft.links]
    forms = [solid.points @ R.T + p for link in seen.craft.links for R, p in [seen.rest.poses[link.name]] for solid in link.looks]
    points = np.vstack([places, *centres, *forms, *(port.position + seen.rest.centre + 0.1 * port.rotation[:, 0] for port in seen.ports)])
    middle, size = 0.5 * (points.max(axis=0) + points.min(axis=0)), max(float(np.ptp(points, axis=0).max()), 1.0)
    for axes, (i, j, title) in zip(top.subplots(1, 2), VIEWS, strict=True):
        _draw_tree(axes, seen, places, (i, j), size)
        axes.set_title(title, fontsize=9)
        axes.set_xlim(middle[i] - 0.6 * size, middle[i] + 0.6 * size)
        axes.set_ylim(middle[j] - 0.6 * size, middle[j] + 0.6 * size)
    if first:
        for axes, mode in zip(below[0].subplots(1, len(first), squeeze=False)[0], first, strict=True):
            _draw_mode(axes, seen, places, mode, size)
    top.suptitle(f"{seen.craft.name}, {seen.rest.mass:.6g} kg", fontsize=10)
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(file, dpi=110)
    return str(file)


def _skeleton(seen: CraftView) -> list[tuple[int, int, bool]]:
    """Lines between places: (from, to, whether it is a body that bends): what a body hangs on to its frame, and the frame to its nodes."""
    number = {place: k for k, place in enumerate(seen.places)}
    links = {link.name: link for link in seen.craft.links}
    lines = []
    for link in links.values():
        own = [number[place] for place in seen.places if place[0] == link.name]
        lines += [(own[0], other, True) for other in own[1:]]
        if link.parent is not None:
            lines.append((number.get((link.parent, link.port), own[0]), number[link.name, None], False))
    return lines


def _centre(seen: CraftView, link: Link) -> np.ndarray:
    """Centre of mass of a body, of a massless one its frame."""
    R, p = seen.rest.poses[link.name]
    found: np.ndarray = p + R @ link.body.first_moment / link.body.mass if link.body.mass > 0.0 else p
    return found


def _draw_tree(axes: "Axes", seen: CraftView, places: np.ndarray, plane: tuple[int, int], size: float) -> None:
    """Bodies: outlines, centres of mass, size by mass; lines from what they hang on; ports, thrusters, centre of mass of the whole."""
    from matplotlib.collections import LineCollection

    from hil_server.pages.figures import COLOURS

    flat = list(plane)
    for start, end, bends in _skeleton(seen):
        axes.plot(*places[[start, end]][:, flat].T, color=COLOURS[0] if bends else "0.6", linewidth=2.5 if bends else 1.0, alpha=0.7)
    for link in seen.craft.links:
        R, p = seen.rest.poses[link.name]
        edges = [(solid.points @ R.T + p)[[*face, face[0]]][:, flat] for solid in link.looks for face in solid.faces]
        axes.add_collection(LineCollection(edges, colors="0.6", linewidths=0.4, alpha=0.6))
    heaviest = max(link.body.mass for link in seen.craft.links)
    for link in seen.craft.links:
        _, p = seen.rest.poses[link.name]
        if link.body.mass > 0.0:
            centre = _centre(seen, link)
            axes.plot(*np.array([p, centre])[:, flat].T, color="0.8", linewidth=0.8)
            x, y = centre[flat]
            axes.scatter(x, y, s=10.0 + 120.0 * (link.body.mass / heaviest) ** (2 / 3), color=COLOURS[0], alpha=0.5, linewidths=0)
            axes.annotate(link.name, (x, y), fontsize=6, alpha=0.8, xytext=(2, 3), textcoords="offset points")
    arrows = [(port.position + seen.rest.centre, port.rotation[:, 0], port.name, COLOURS[1]) for port in seen.ports]
    for t in seen.craft.thrusters:
        R, p = _frame(seen.craft, seen.rest, t.body, t.node)
        arrows.append((p + R @ t.position, R @ t.direction, "", COLOURS[2]))
    for at, along, name, colour in arrows:
        axes.annotate("", at[flat] + 0.08 * size * along[flat], at[flat], arrowprops={"arrowstyle": "->", "color": colour})
        axes.annotate(name, at[flat], fontsize=7, color=colour, xytext=(2, -10), textcoords="offset points")
    axes.plot(*seen.rest.centre[flat], "+", color="black", markersize=10)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7)
    axes.grid(True, linewidth=0.4, alpha=0.5)


def _draw_mode(axes: "Axes", seen: CraftView, places: np.ndarray, mode: int, size: float) -> None:
    """The skeleton at rest and displaced, and on every place a cross that turns with it: a cross that has turned alone is torsion."""
    from hil_server.pages.figures import COLOURS

    field = seen.fields[mode]
    arm = 0.06 * size
    moves, turns = np.abs(field[:, :3]).max(), np.abs(field[:, 3:]).max()
    scale = min(0.15 * size / moves if moves > 0.0 else np.inf, 0.6 / turns if turns > 0.0 else np.inf)
    for shift, colour in ((0.0, "0.75"), (scale, COLOURS[1])):
        at = places + shift * field[:, :3]
        for start, end, _ in _skeleton(seen):
            axes.plot(*(OBLIQUE @ at[[start, end]].T), color=colour, linewidth=1.2)
        for p, turn in zip(at, shift * field[:, 3:], strict=True):
            for axis in np.eye(3):
                along = arm * (axis + np.cross(turn, axis))
                axes.plot(*(OBLIQUE @ np.array([p - along, p + along]).T), color=colour, linewidth=0.6)
    axes.set_title(f"{seen.frequency_hz[mode]:.4g} Hz", fontsize=8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.axis("off")
