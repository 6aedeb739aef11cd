"""A craft of several bodies as a viewer draws it: each body a box at its place, the joints where they stand at the tick.

What is drawn of a body is the box of even density that has its mass and moments: of a beam its length, of a panel its area. Bodies that
bend are drawn straight: a log has no channel of their shapes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hil_server.config import crafts
from hil_server.viewers.poses import Pose, inverse, product
from rt_kernels.algebra.arrays import quat_from_matrix
from rt_kernels.model.craft import DOCKING, ONE_DEGREE, Link, at_rest, port_pose
from rt_kernels.multibody.flexible import FlexibleTree


class Bodies:
    """The bodies with mass of a vehicle's table with [[body]]. joints: names of those of one degree of freedom, in the order of the channel
    `joint_position`; boxes: body -> edges (3,) m; feet: body -> its frame's origin in the frame of its box, m; a box's frame lies at the
    body's centre of mass, axes the principal ones."""

    def __init__(self, table: Mapping[str, Any], port: str = DOCKING) -> None:
        self._craft, self._port = crafts.craft(table), port
        links = {link.name: link for link in self._craft.links}
        order = [links[name] for name in FlexibleTree(self._craft.links).names]  # type: ignore[call-arg]
        self.joints = [link.joint_name for link in order if link.parent is not None and link.joint in ONE_DEGREE]
        found = {link.name: box_of_body(link) for link in order if link.body.mass > 0.0}
        self._box_frame = {name: X for name, (X, _) in found.items()}
        self.boxes = {name: edges for name, (_, edges) in found.items()}
        self.feet = {name: inverse(X)[:3] for name, X in self._box_frame.items()}

    def poses(self, positions: Sequence[float] = ()) -> dict[str, Pose]:
        """Frames of the boxes seen from the docking port, by body. positions: of `joints`, rad or m; left away: at rest."""
        rest = at_rest(self._craft, dict(zip(self.joints, positions, strict=False)))
        X_BP = inverse(_pose(*port_pose(self._craft, rest, self._port)))
        return {name: product(product(X_BP, _pose(*rest.poses[name])), X) for name, X in self._box_frame.items()}


def bodies_of(table: Mapping[str, Any]) -> Bodies | None:
    """The bodies of a vehicle's table; None for one rigid body. Raises CraftError, ValueError."""
    return Bodies(table) if "body" in table else None


def box_of_body(link: Link) -> tuple[Pose, np.ndarray]:
    """Frame at the centre of mass along the principal axes, in the body's frame, and edges (3,) m of the box of even density with the
    body's second moments: E = m diag(a^2, b^2, c^2) / 12."""
    body = link.body
    centre = body.first_moment / body.mass
    squares, axes = np.linalg.eigh(body.second_moment / body.mass - np.outer(centre, centre))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return _pose(axes, centre), np.sqrt(np.maximum(12.0 * squares, 1e-6))


def _pose(rotation: np.ndarray, position: np.ndarray) -> Pose:
    return np.concatenate([position, quat_from_matrix(rotation)])


def split(positions: Sequence[float] | None, sides: Mapping[str, Bodies | None]) -> dict[str, Sequence[float]]:
    """The channel `joint_position`, active craft first, by the sides that have bodies; empty without it."""
    found: dict[str, Sequence[float]] = {}
    at = 0
    for side, bodies in sides.items():
        count = len(bodies.joints) if bodies is not None else 0
        found[side] = () if positions is None else positions[at : at + count]
        at += count
    return found
