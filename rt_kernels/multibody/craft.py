"""Links of a flexible tree, and craft with flexible parts from TOML files."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rt_kernels.multibody.modes import ModalBody

JOINTS = ("fixed", "revolute", "prismatic", "spherical", "free")


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it.

    parent, port   body and port it hangs on; parent None: the inertial base, port None: the parent's frame
    joint          fixed | revolute | prismatic | spherical | free
    axis           (3,) of a revolute or prismatic joint, body axes
    position, rotation  joint frame in the port frame at zero joint coordinate
    armature       kg m^2 or kg, added to the joint's own inertia; stiffness N m/rad or N/m and damping N m s/rad or N s/m of a one-degree
                   joint (torque -k q - d v)
    """

    name: str
    body: ModalBody
    parent: str | None = None
    port: str | None = None
    joint: str = "fixed"
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    armature: float = 0.0
    stiffness: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        where = f"link {self.name!r}"
        if self.joint not in JOINTS:
            raise ValueError(f"{where}: joint {self.joint!r} is not one of {', '.join(JOINTS)}")
        if self.parent is None and self.port is not None:
            raise ValueError(f"{where}: port {self.port!r} given, but the base has no ports")
        for name in ("axis", "position"):
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != (3,) or not np.all(np.isfinite(value)):
                raise ValueError(f"{where}: {name} must be three finite numbers, got {getattr(self, name)!r}")
            object.__setattr__(self, name, value)
        length = np.linalg.norm(self.axis)
        if self.joint in ("revolute", "prismatic") and not length > 1e-9:
            raise ValueError(f"{where}: axis has no length")
        object.__setattr__(self, "axis", self.axis / length if length > 0.0 else self.axis)
        R = np.array(self.rotation, dtype=float)
        if R.shape != (3, 3) or not np.abs(R @ R.T - np.eye(3)).max() < 1e-9 or np.linalg.det(R) < 0.0:
            raise ValueError(f"{where}: rotation is not a rotation matrix")
        object.__setattr__(self, "rotation", R)
        for name in ("armature", "stiffness", "damping"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ValueError(f"{where}: {name} = {value} is not a finite number >= 0")
            if value and (self.joint not in ("revolute", "prismatic")):
                raise ValueError(f"{where}: {name} belongs to a revolute or prismatic joint, this one is {self.joint}")
