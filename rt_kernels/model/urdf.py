"""A URDF file as a `Craft`. What URDF says and a craft does not hold is named, nothing goes lost silently.

Bodies, joints and their order are those of `bodies.read_urdf`. Of <limit> lower, upper, effort and velocity become the stops and the most
that the drive gives, of <dynamics> damping and friction the joint's own (`JointSettings`). Zero effort or velocity, and stops 0 and 0, are
how URDF files leave a limit away. Dropped, and named: <mimic> (the joint moves by itself), <safety_controller>, <calibration>, shapes for
pictures and collisions, transmissions, extensions of other programs.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from rt_kernels.model.bodies import Body, ModelError, joint_elements, read_urdf
from rt_kernels.model.craft import BODIES_MAX, ONE_DEGREE, Craft, JointSettings, Link, chain, degrees
from rt_kernels.model.modes import ModalBody

# element -> those below it that become part of the craft
TAKEN = {"robot": {"link", "joint"}, "link": {"inertial"}, "joint": {"origin", "parent", "child", "axis", "limit", "dynamics"}}


def read_urdf_craft(path: str | Path, floating_base: bool = True) -> tuple[Craft, list[str]]:
    """The craft of a URDF file and what of the file is not in it, one line each. floating_base: the root link flies, else it is held.

    Raises ModelError."""
    path = Path(path)
    try:
        count = sum(1 for _, element in ElementTree.iterparse(path) if element.tag == "link")
    except (OSError, ElementTree.ParseError):
        count = 0  # `read_urdf` says what is wrong with it
    if count > BODIES_MAX:
        raise ModelError(f"{path}: {count} links, limit {BODIES_MAX}: join those between which nothing moves")
    bodies = read_urdf(path, floating_base)
    elements = joint_elements(path)
    dropped = _dropped(ElementTree.parse(path).getroot())
    links: list[Link] = []
    settings: list[JointSettings] = []
    for body in bodies:
        try:
            declared = _link(body)
            kinds = degrees(body.joint, body.joint_name)
            element = elements.get(body.joint_name)
            if len(kinds) != 1 and element is not None and (element.limit is not None or element.dynamics is not None):
                dropped.append(f"joint {body.joint_name!r}: limit and dynamics: a {element.type} joint has not one degree of freedom")
            found = [_settings(name, element, kinds[name] == "prismatic", dropped) if len(kinds) == 1 else JointSettings(name)
                     for name in kinds]  # fmt: skip
            given = {s.joint: s for s in found}
            for link in chain(declared):
                s = given.get(link.joint_name) if link.joint in ONE_DEGREE else None
                links.append(link if s is None else replace(link, damping=s.damping))
            settings += found
        except ModelError:
            raise
        except ValueError as error:
            raise ModelError(f"{path}: {error}") from None
    try:
        return Craft(path.stem, tuple(links), joints=tuple(settings)), dropped
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from None


def _link(body: Body) -> Link:
    rigid = ModalBody.rigid(body.mass, body.com, body.inertia)
    return Link(body.name, rigid, body.parent, None, body.joint, body.axis, body.p_PJ_P, body.R_PJ, joint_name=body.joint_name)


def _settings(name: str, joint: Any, slides: bool, dropped: list[str]) -> JointSettings:
    """Settings of a joint of one degree. joint: the reader's element."""
    limit, dynamics = getattr(joint, "limit", None), getattr(joint, "dynamics", None)
    lower, upper = getattr(limit, "lower", None) or 0.0, getattr(limit, "upper", None) or 0.0
    if getattr(joint, "type", None) == "continuous" or (lower == 0.0 and upper == 0.0):
        if lower or upper:
            dropped.append(f"joint {name!r}: stops {lower:g} and {upper:g}: a continuous joint has none")
        lower, upper = -math.inf, math.inf
    angle = min(max(0.0, lower), upper)
    if angle:
        unit = "m" if slides else "rad"
        dropped.append(f"joint {name!r}: stands at {angle:g} {unit}, its stop: zero is not between {lower:g} and {upper:g}")
    return JointSettings(
        name, angle=angle, damping=_number(dynamics, "damping"), friction=_number(dynamics, "friction"), lower=lower, upper=upper,
        effort=_number(limit, "effort") or math.inf, rate=_number(limit, "velocity") or math.inf,
    )  # fmt: skip


def _number(element: Any, name: str) -> float:
    value = getattr(element, name, None)
    return 0.0 if value is None else float(value)


def _dropped(robot: ElementTree.Element) -> list[str]:
    """Elements of the file that become no part of the craft: those of joints by name, others counted."""
    found: list[str] = []
    counted: Counter[str] = Counter()
    for element in robot:
        if element.tag not in TAKEN["robot"]:
            counted[f"<{element.tag}>"] += 1
            continue
        for inner in element:
            if inner.tag in TAKEN[element.tag]:
                continue
            if element.tag == "joint":
                values = ", ".join(f"{key} {value}" for key, value in inner.attrib.items())
                effect = "the joint moves by itself" if inner.tag == "mimic" else "not in the model"
                found.append(f"joint {element.get('name')!r}: <{inner.tag}> ({values}): {effect}")
            else:
                counted[f"<{inner.tag}> of links"] += 1
    return found + [f"{name}: {count} dropped" for name, count in counted.items()]

