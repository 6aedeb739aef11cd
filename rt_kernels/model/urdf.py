"""A URDF file as a `Craft`. What URDF says and a craft does not hold is named, nothing goes lost silently.

Bodies, joints and their order are those of `bodies.read_urdf`. Of <limit> lower, upper, effort and velocity become the stops and the most
that the drive gives, of <dynamics> damping and friction the joint's own (`JointSettings`). Zero effort or velocity, and stops 0 and 0, are
how URDF files leave a limit away. A craft couples no joints: one that follows another by <mimic> is locked where the other's place puts it,
which is right while the other one is held; named, like a <mimic> that says no such place (the joint moves by itself). Dropped, and named:
<safety_controller>, <calibration>, shapes for pictures and collisions, transmissions, extensions of other programs.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from rt_kernels.model.bodies import Body, ModelError, joint_elements, read_urdf
from rt_kernels.model.craft import BODIES_MAX, ONE_DEGREE, Craft, JointSettings, Link, chain, degrees, no_such
from rt_kernels.model.modes import ModalBody

# element -> those below it that become part of the craft
TAKEN = {"robot": {"link", "joint"}, "link": {"inertial"}, "joint": {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"}}


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
            found = [_settings(name, element, dropped) if len(kinds) == 1 else JointSettings(name) for name in kinds]
            given = {s.joint: s for s in found}
            for link in chain(declared):
                s = given.get(link.joint_name) if link.joint in ONE_DEGREE else None
                links.append(link if s is None else replace(link, damping=s.damping))
            settings += found
        except ModelError:
            raise
        except ValueError as error:
            raise ModelError(f"{path}: {error}") from None
    settings = _placed(settings, links, elements, dropped)
    try:
        return Craft(path.stem, tuple(links), joints=tuple(settings)), dropped
    except ValueError as error:
        raise ModelError(f"{path}: {error}") from None


def _link(body: Body) -> Link:
    rigid = ModalBody.rigid(body.mass, body.com, body.inertia)
    return Link(body.name, rigid, body.parent, None, body.joint, body.axis, body.p_PJ_P, body.R_PJ, joint_name=body.joint_name)


def _placed(settings: list[JointSettings], links: list[Link], elements: dict[str, Any], dropped: list[str]) -> list[JointSettings]:
    """The settings with those that follow others locked in their places; every joint that does not stand at zero is named."""
    placed = {s.joint: s for s in settings}
    units = {link.joint_name: "m" if link.joint == "prismatic" else "rad" for link in links}
    for s in settings:
        if s.angle and _mimic(s.joint, elements) is None:
            dropped.append(f"joint {s.joint!r}: stands at {s.angle:g} {units[s.joint]}, its stop: zero is not between {s.lower:g} and "
                           f"{s.upper:g}")  # fmt: skip
    for name in elements:
        mimic = _mimic(name, elements)
        if mimic is None:
            continue
        what = f"joint {name!r}: <mimic> (joint {mimic.joint}, multiplier {_ratio(mimic):g}, offset {_number(mimic, 'offset'):g}): "
        try:
            placed[name] = replace(placed[_one_degree(name, placed)], mode="locked", angle=_followed(name, placed, elements))
        except ValueError as error:
            dropped.append(f"{what}the joint moves by itself: {error}")
        else:
            dropped.append(f"{what}locked at {placed[name].angle:g} {units[name]}, does not follow when {mimic.joint!r} moves")
    return list(placed.values())


def _one_degree(name: str, known: dict[str, JointSettings]) -> str:
    """The name again. Raises ValueError."""
    if name not in known:
        raise ValueError(no_such("joint of one degree of freedom", name, known))
    return name


def _followed(name: str, known: dict[str, JointSettings], elements: dict[str, Any]) -> float:
    """Where the joints that it follows put a joint. Raises ValueError."""
    names, ratio, offset = [name], 1.0, 0.0
    while (mimic := _mimic(names[-1], elements)) is not None:
        offset += ratio * _number(mimic, "offset")
        ratio *= _ratio(mimic)
        if mimic.joint in names:
            raise ValueError(f"it follows itself, {' -> '.join([*names, mimic.joint])}")
        names.append(_one_degree(str(mimic.joint), known))
    place = ratio * known[names[-1]].angle + offset
    if not math.isfinite(place):
        raise ValueError(f"its place is {place:g}")
    return place


def _mimic(name: str, elements: dict[str, Any]) -> Any:
    return getattr(elements.get(name), "mimic", None)


def _ratio(mimic: Any) -> float:
    return 1.0 if mimic.multiplier is None else float(mimic.multiplier)


def _settings(name: str, joint: Any, dropped: list[str]) -> JointSettings:
    """Settings of a joint of one degree. joint: the reader's element."""
    limit, dynamics = getattr(joint, "limit", None), getattr(joint, "dynamics", None)
    lower, upper = getattr(limit, "lower", None) or 0.0, getattr(limit, "upper", None) or 0.0
    if getattr(joint, "type", None) == "continuous" or (lower == 0.0 and upper == 0.0):
        if lower or upper:
            dropped.append(f"joint {name!r}: stops {lower:g} and {upper:g}: a continuous joint has none")
        lower, upper = -math.inf, math.inf
    return JointSettings(
        name, angle=min(max(0.0, lower), upper), damping=_number(dynamics, "damping"), friction=_number(dynamics, "friction"),
        lower=lower, upper=upper, effort=_number(limit, "effort") or math.inf, rate=_number(limit, "velocity") or math.inf,
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
                found.append(f"joint {element.get('name')!r}: <{inner.tag}> ({values}): not in the model")
            else:
                counted[f"<{inner.tag}> of links"] += 1
    return found + [f"{name}: {count} dropped" for name, count in counted.items()]

