"""Crafts of a configuration: the tables of its two vehicles as `Craft`, their faults, and the dynamics part that fits them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.values import Given
from rt_kernels.algebra.arrays import quat_from_matrix
from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.model.craft import DOCKING, ONE_DEGREE, Craft, at_rest, port_pose
from rt_kernels.model.craft_file import CraftError, craft_of

_KEPT = 8  # crafts made last: finite elements take seconds, and a configuration is looked at several times
_made: dict[str, Craft] = {}


def craft(table: Given) -> Craft:
    """The craft of a vehicle's table. Raises CraftError."""
    text = repr(table)
    if text not in _made:
        found = craft_of(table)
        while len(_made) >= _KEPT:
            del _made[next(iter(_made))]
        _made[text] = found
    return _made[text]


def faults(table: Given) -> list[str]:
    """What is wrong with a vehicle's table, one line each, the path of the key first."""
    try:
        return unfit(craft(table))
    except CraftError as error:
        return error.faults


def unfit(made: Craft) -> list[str]:
    """Why a craft cannot be a vehicle of a docking, one line each, the path of the key first."""
    found = []
    try:
        root = made.root
        made.port(DOCKING)
        at_rest(made)
    except ValueError as error:
        return [f"body: {error}"]
    if root.joint != "free" or np.any(root.position) or np.any(root.rotation != np.eye(3)):
        found.append(f"body.{root.name}.joint: a vehicle flies: the body without a parent must have joint = 'free' at zero position and "
                     f"angles, got {root.joint!r}")  # fmt: skip
    if np.any(made.gravity):
        found.append(f"gravity_m_s2: {made.gravity.tolist()} m/s2, limit 0 for a vehicle")
    return found


def in_a_run(made: Craft) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """What a run takes of a craft: of each kind of thing how many it has and how many its dynamics part takes, and why no run
    takes it as a vehicle, one line each, empty where one does."""
    part: Any = registry.part("dynamics", registry.MOVING_CRAFT)
    balls = sum(link.joint == "spherical" for link in made.links)
    single = sum(link.joint in ONE_DEGREE for link in made.links)
    bending = {link.name for link in made.links if link.body.n_modes}
    things: tuple[Any, ...] = (*made.ports, *made.thrusters, *made.sensors)
    places = {(one.body, one.node) for one in things if one.node is not None and one.body in bending}
    counts = (single, balls, 6 + single + 3 * balls + sum(link.body.n_modes for link in made.links), len(made.links) + len(places),
              len(made.thrusters), len(made.wheels), len(made.sensors), len(made.interfaces))  # fmt: skip
    found = {what: (count, limit) for count, (what, limit) in zip(counts, part.LIMITS.items(), strict=True)}
    lacking = [made.lacks_control_body] if made.lacks_control_body else []
    why = unfit(made) or lacking or [f"{what}: {count}, limit {limit}" for what, (count, limit) in found.items() if count > limit]
    if not why:
        rest = at_rest(made)
        vehicle = Vehicle(rest.mass, rest.inertia.tolist(), craft=made)
        try:
            part(period_s=1e-3, vehicles=Vehicles(vehicle, Vehicle(1.0, np.eye(3).tolist())), start=Start(IDENTITY, np.zeros(6)))
        except ValueError as error:
            why = [str(error)]
    return found, why


def mass_properties(table: Given, port: str = DOCKING) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass kg, inertia (3, 3) kg.m2 about the centre of mass, and pose (7,) of the port in the frame there, axes of the root body, of a
    vehicle of several bodies at rest. Raises ValueError for a port that it does not have."""
    made = craft(table)
    rest = at_rest(made)
    R, p = port_pose(made, rest, port)
    return rest.mass, rest.inertia, np.concatenate([p - rest.centre, quat_from_matrix(R)])


def ahead_of_port(table: Given, port: str) -> float:
    """How far the centre of mass of a craft at rest lies in the direction X of its port, m: ahead for a target, behind for an active craft.
    Raises ValueError for a port that it does not have."""
    made = craft(table)
    rest = at_rest(made)
    R, p = port_pose(made, rest, port)
    return float(R[:, 0] @ (rest.centre - p))


def bends(table: Given) -> bool:
    """Whether the docking port of a vehicle's table moves against the rest of it: by joints, bending bodies, or modes at the port."""
    return bool(table.get("modal")) or craft(table).moves


def flown(table: Given) -> dict[str, str]:
    """What of a craft a dynamics part has to fly beyond one rigid body (words of a part's `FLIES`), each with how many there are."""
    made = craft(table)
    joints = sum(link.parent is not None and link.joint != "fixed" for link in made.links)
    modes = sum(link.body.n_modes for link in made.links)
    found = {"joints": f"{joints} moving joints and {modes} modes in its bodies" if joints else "",
             "modes of its bodies": f"{joints} moving joints and {modes} modes in its bodies" if modes else "",
             "modes at its port": "modes at its port ([modal])" if table.get("modal") else "",
             "step": "a step of second order" if made.step == "second_order" else ""}  # fmt: skip
    for kind in ("wheels", "thrusters", "sensors", "interfaces"):
        things = getattr(made, kind)
        found[kind] = f"{kind} ({', '.join(one.name for one in things)})" if things else ""
    return {what: words for what, words in found.items() if words}


def dropped(part: object, vehicles: Mapping[str, Given]) -> list[str]:
    """What of these vehicles (table's name -> table) a dynamics part would leave out, one line a vehicle; empty where it flies all."""
    flies = getattr(part, "FLIES", ())
    lines = []
    for name, table in vehicles.items():
        rest = dict.fromkeys(words for what, words in flown(table).items() if what not in flies)
        if rest:
            lines.append(f"{name} has {' and '.join(rest)}")
    return lines


def dynamics_for(vehicles: Mapping[str, Given]) -> tuple[str, str]:
    """Name of the dynamics part that flies these vehicles (table's name -> table) as they are, and why; "" for the name where none of the
    server's own does."""
    why: list[str] = []
    for name in registry.DYNAMICS:
        left = dropped(registry.part("dynamics", name), vehicles)
        if not left:
            return name, "; ".join(why) or "both vehicles are rigid"
        why = left
    return "", "; ".join(dropped(None, vehicles))
