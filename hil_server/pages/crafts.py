"""The crafts of a run as pages and viewers draw them: what each body looks like, once, and where it is at every tick.

A craft hangs from its docking port: the target's port is the frame T, the active one's stands at X_TA. Joints and bending are those of
the channels (`joint_position`, `modal_coordinate`, `arm_q`), by the kinematics that the dynamics use (`FlexibleTree`); what a run has no
channel of is drawn at its neutral place, and `absent` names it.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, TypeGuard

import numpy as np

from hil_server.config import crafts
from hil_server.config.model import docking_port
from hil_server.errors import HilError
from hil_server.log.reader import Log
from rt_kernels.algebra.arrays import pose_inverse, pose_multiply, quat_from_matrix
from rt_kernels.model.craft import DOCKING, ONE_DEGREE, Craft, Link, at_rest, port_pose
from rt_kernels.model.modes import ModalBody
from rt_kernels.pictures import ACTIVE, LEG, TARGET, Values, as_list

SIDES = {"active": ACTIVE, "target": TARGET, "arm": LEG}
DIGITS = 9  # of a pose on a page: a micrometre at the end of a hundred metres
ENLARGED = 0.05  # part of the crafts' size that the largest bending seen is drawn as, at least
MOST = 1000
Pose = np.ndarray


class Placed(TypedDict, total=False):
    """One instant. bodies: "active hull" → pose in T, as it is; bend: modal coordinates of those that bend; factor, large: by how much
    bending is drawn enlarged, and the poses of the bodies then (left away: 1); absent: what is drawn at rest, in words."""

    bodies: dict[str, list[float]]
    bend: dict[str, list[float]]
    factor: int
    large: dict[str, list[float]]
    absent: list[str]


class Tree:
    """One craft. port: by which it docks, "": an arm, seen from its root frame. joints: name → settings' angle of those of one degree, in
    the order of the channel `joint_position`; modes: body → number, in the order of `modal_coordinate`; balls: joints without a channel."""

    def __init__(self, craft: Craft, port: str = DOCKING) -> None:
        self.craft, self._port = craft, port
        self._tree: Any = None
        self.joints: dict[str, float] = {}
        self.modes: dict[str, int] = {}
        self.balls = [link.joint_name for link in craft.links if link.joint == "spherical"]
        if not craft.moves:  # needs no kernels
            self._rest = at_rest(craft)
            return
        from rt_kernels.multibody.flexible import FlexibleTree

        links = [replace(link, armature=0.0, stiffness=0.0, damping=0.0) for link in craft.links]
        if port:
            at = craft.port(port)
            links.append(Link(":port", ModalBody.rigid(0.0), at.body, at.node, position=at.position, rotation=at.rotation))
        self._tree = FlexibleTree(links)  # type: ignore[call-arg]
        settings = {one.joint: one.angle for one in craft.joints}
        moving = [link for link in self._tree.links if link.joint in ONE_DEGREE]
        self.joints = {link.joint_name: settings.get(link.joint_name, 0.0) for link in moving}
        self._turns = {link.joint_name for link in moving if link.joint == "continuous"}
        self.modes = {link.name: link.body.n_modes for link in self._tree.links if link.body.n_modes}

    def reach(self) -> float:
        """No point at rest is further from the port, m."""
        at = self.poses()
        return max((float(np.linalg.norm(at[link.name][:3]) + np.linalg.norm(solid.points, axis=1).max())
                    for link in self.craft.links for solid in link.looks), default=0.0)  # fmt: skip

    def poses(self, positions: Sequence[float] = (), coordinates: Sequence[float] | np.ndarray = ()) -> dict[str, Pose]:
        """Frames of the bodies seen from the docking port (of an arm: its root frame), by name. positions: of `joints`, rad or m;
        coordinates: of `modes`; left away: at the settings' angles, not bent. `:centre`: centre of mass, axes of the root body.
        None of a damaged record."""
        if self._tree is None:
            places = dict(self._rest.poses)
            if self._port:
                places[":port"] = port_pose(self.craft, self._rest, self._port)
            return self._seen(places, self._rest.centre)
        q = self._tree.neutral()
        for (name, angle), given in zip(self.joints.items(), [*positions, *[None] * len(self.joints)], strict=False):
            x, at = angle if given is None else given, self._tree.coordinates(name)[0]
            q[at] = (np.cos(x), np.sin(x)) if name in self._turns else x
        if len(coordinates):
            q[len(q) - sum(self.modes.values()) :] = coordinates
        if not np.isfinite(q).all():
            return {}
        R, p = self._tree.poses(q)
        return self._seen(dict(zip(self._tree.names, zip(R, p, strict=True), strict=True)), self._tree.centre_of_mass(q))

    def _seen(self, places: dict[str, tuple[np.ndarray, np.ndarray]], centre: np.ndarray) -> dict[str, Pose]:
        """Poses from the port of rotations and positions by name, the port's own among them; an arm has none."""
        places[":centre"] = places[self.craft.root.name][0], centre
        found = {name: np.concatenate([p, quat_from_matrix(R)]) for name, (R, p) in places.items()}
        if ":port" not in found:
            return found
        X_PB = pose_inverse(found.pop(":port"))
        return {name: pose_multiply(X_PB, X) for name, X in found.items()}


class Crafts:
    """document: configuration of a run as tables. trees: side → craft, the arm of a manipulator among them; missing: what could not be
    made, in words."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.trees: dict[str, Tree] = {}
        self.missing: list[str] = []
        self.extent = 1.0
        for side in SIDES:
            try:
                if side != "arm":
                    made = Tree(crafts.craft(document[f"{side}_vehicle"]), docking_port(document, side))
                elif "model_data" in document.get("dynamics", {}):
                    made = Tree(crafts.craft(document["dynamics"]["model_data"]), "")
                else:
                    continue
                self.extent = max(self.extent, made.reach())
                self.trees[side] = made
            except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OSError, HilError) as error:
                self.missing.append(f"{side}: {type(error).__name__}: {error}")
        self._modal = {side for side in self.trees if document.get(f"{side}_vehicle", {}).get("modal")}
        self._largest = 0.0

    def things(self) -> dict[str, Any]:
        """What does not change during a run: solids by body; what is drawn in the place of what is not known."""
        solids = [
            {"body": f"{side} {link.name}", "name": link.name if len(tree.craft.links) > 1 else tree.craft.name, "colour": SIDES[side],
             "points": np.round(solid.points, 4).tolist(), "faces": solid.faces,
             "moves": None if solid.moves is None else np.round(solid.moves, 6).tolist()}
            for side, tree in self.trees.items() for link in tree.craft.links for solid in link.looks
        ]  # fmt: skip
        return {"solids": solids, "extent": self.extent, "notes": self.notes()}

    def notes(self) -> list[str]:
        """In words: bodies that are not drawn as their file declares, because it does not, and what is never drawn as it moves."""
        found = []
        for side, tree in self.trees.items():
            whose = f"{side} craft {tree.craft.name}" if side != "arm" else tree.craft.name
            for what in dict.fromkeys(solid.what for link in tree.craft.links for solid in link.looks if solid.what):
                bodies = [link.name for link in tree.craft.links if any(solid.what == what for solid in link.looks)]
                found.append(f"{whose}: {', '.join(bodies)}: {what}")
            if tree.balls:
                found.append(f"{whose}: {', '.join(tree.balls)}: no channel of a spherical joint, drawn at rest")
            straight = [link.name for link in tree.craft.links if link.body.n_modes and all(one.moves is None for one in link.looks)]
            if straight:
                found.append(f"{whose}: {', '.join(straight)}: drawn straight: the file has no shape that bends")
            if side == "arm":
                found.append(f"{whose}: its links are drawn rigid: their bending has no channel")
            if side in self._modal:
                found.append(f"{whose}: its modes are known at the port alone: drawn as one rigid body")
        return found

    def absent(self, channels: Container[str]) -> list[str]:
        """In words: what is drawn at rest because the run has no channel of it. channels: names of those of the run."""
        found = []
        for side, tree in self.trees.items():
            if tree.joints and (channel := "arm_q" if side == "arm" else "joint_position") not in channels:
                found.append(f"{side} craft: joints drawn at rest: this run has no channel {channel}")
            if tree.modes and "modal_coordinate" not in channels:
                found.append(f"{side} craft: drawn without bending: this run has no channel modal_coordinate (dynamics.modal_channels)")
        return found

    def look_at(self, log: Log) -> None:
        """The bending of the whole log is seen, so that all its instants are drawn enlarged alike."""
        if any(channel.name == "modal_coordinate" for channel in log.header.aux):
            self.see(log.aux("modal_coordinate").reshape(log.ticks, -1))

    def see(self, coordinates: np.ndarray) -> None:
        """Takes note of how much the bodies bend, at the first, middle and last point of each. coordinates (n, modes): rows of
        `modal_coordinate`."""
        for side, tree in self._modal_trees():
            part = coordinates[:, self._first(side, "modes") :]
            at = 0
            for link in tree.craft.links:
                eta = part[:, at : at + link.body.n_modes] if link.body.n_modes else part[:, :0]
                at += link.body.n_modes
                for solid in link.looks:
                    if solid.moves is not None and eta.shape[1] == solid.moves.shape[2]:
                        ends = np.linalg.norm(np.einsum("pik,nk->npi", solid.moves[[0, len(solid.moves) // 2, -1]], eta), axis=2)
                        self._largest = max(self._largest, float(np.nan_to_num(ends, posinf=0.0).max(initial=0.0)))

    @property
    def factor(self) -> int:
        """By how much bending is drawn enlarged: a power of ten, so that the largest seen is some hundredths of the crafts' size."""
        if self._largest <= 0.0:
            return 1
        return int(np.clip(10 ** np.ceil(np.log10(ENLARGED * self.extent / self._largest)), 1, MOST))

    def frame(self, values: Values, X_TA: Sequence[float]) -> Placed:
        """One tick. X_TA (7,): pose of the active port."""
        coordinates = as_list(values.get("modal_coordinate", ()))
        if coordinates and np.isfinite(coordinates).all():
            self.see(np.array([coordinates], float))
        else:
            coordinates = []
        placed: Placed = {"bodies": _short(self.poses(values, X_TA))}
        bend = {f"{side} {name}": eta for side, tree in self._modal_trees() for name, eta in self._bends(side, tree, coordinates)}
        if bend:
            placed |= {"bend": bend, "factor": self.factor}
            if self.factor > 1:
                placed["large"] = _short(self.poses(values, X_TA, self.factor))
        if absent := self.absent(values):
            placed["absent"] = absent
        return placed

    def poses(self, values: Values, X_TA: Sequence[float] | np.ndarray, factor: float = 1.0) -> dict[str, Pose]:
        """Frames of all bodies in T, by "side body"; factor: by which bending is enlarged. An arm whose base is not known is left out."""
        found: dict[str, Pose] = {}
        seen: dict[str, dict[str, Pose]] = {}
        for side, tree in self.trees.items():
            if side == "arm":
                continue
            first, modes = self._first(side, "joints"), self._first(side, "modes")
            joints = as_list(values.get("joint_position", ()))[first : first + len(tree.joints)]
            eta = factor * np.array(as_list(values.get("modal_coordinate", ()))[modes : modes + sum(tree.modes.values())], float)
            seen[side] = tree.poses(joints, eta if len(eta) == sum(tree.modes.values()) else ())
            X_TP = np.asarray(X_TA, float) if side == "active" else np.array([0.0] * 6 + [1.0])
            moved = values.get(f"{side}_port_displacement")
            if moved is not None:  # port on its craft, by the craft's modes
                X_TP = pose_multiply(X_TP, pose_inverse(_small(factor * np.asarray(moved, float))))
            seen[side] = {name: pose_multiply(X_TP, X) for name, X in seen[side].items()}
            found |= {f"{side} {name}": X for name, X in seen[side].items() if name != ":centre"}
        base, X_NV = values.get("arm_X_NO"), values.get("X_NV")
        if "arm" in self.trees and seen.get("target") and is_pose(base) and is_pose(X_NV):
            X_TO = pose_multiply(pose_multiply(seen["target"][":centre"], pose_inverse(np.asarray(X_NV, float))), np.asarray(base, float))
            places = self.trees["arm"].poses(as_list(values.get("arm_q", ()))[: len(self.trees["arm"].joints)])
            found |= {f"arm {name}": pose_multiply(X_TO, X) for name, X in places.items() if name != ":centre"}
        return found

    def _modal_trees(self) -> list[tuple[str, Tree]]:
        return [(side, tree) for side, tree in self.trees.items() if tree.modes and side != "arm"]

    def _first(self, side: str, what: str) -> int:
        """Where the joints or modes of a side begin in the channel: the active craft's come first."""
        active = getattr(self.trees.get("active"), what, {})
        return 0 if side == "active" else len(active) if what == "joints" else sum(active.values())

    def _bends(self, side: str, tree: Tree, coordinates: Sequence[float]) -> list[tuple[str, list[float]]]:
        found, at = [], self._first(side, "modes")
        for name, count in tree.modes.items():
            if len(coordinates) >= at + count:
                found.append((name, [round(float(x), DIGITS) for x in coordinates[at : at + count]]))
            at += count
        return found


def is_pose(values: Sequence[float] | np.ndarray | None) -> TypeGuard[Sequence[float] | np.ndarray]:
    """Whether these are seven numbers with a unit quaternion: what a run has not computed yet is zeros."""
    return values is not None and len(values) == 7 and bool(0.99 < sum(q * q for q in values[3:]) < 1.01)


def _small(twist: np.ndarray) -> Pose:
    """Pose of a displacement and a rotation vector (6,)."""
    half = 0.5 * twist[3:]
    angle = float(np.linalg.norm(half))
    return np.concatenate([twist[:3], half * np.sinc(angle / np.pi), [np.cos(angle)]])


def _short(poses: Mapping[str, Pose]) -> dict[str, list[float]]:
    """Rounded; what a damaged record puts nowhere is left out."""
    return {name: [round(float(x), DIGITS) for x in X] for name, X in poses.items() if np.isfinite(X).all()}
