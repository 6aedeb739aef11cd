"""A unit from drawings in pictures: creases and sections of both meshes, points of its springs and latches."""

from typing import Any

import numpy as np

from rt_kernels.mechanisms.mesh import field_file
from rt_kernels.pictures import ACTIVE, TARGET, Bar, Looks, Mimic, Picture, Shape, multiply, rotate

MARK_M = 0.01  # of a latch


class MeshUnitPicture(Picture):
    """Wire-frames out of the unit's field file; the latches turn red when they close."""

    MIMIC = Mimic(("side", "top"), (1, 2), (4, 5), (("bars", {"place": "axial"}), ("bars", {"place": "lateral"})))
    ANALOG = (("stroke", "m"), ("lateral Y", "m"), ("lateral Z", "m"))

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes of both bodies and crosses at the latches, of the mechanism's keys m."""
        arrays = field_file.read(m["field"], m["field_sha256"])
        head = np.asarray(m["head_m"])
        drawn = {"T": arrays["target_lines"].astype(float), "head": arrays["active_lines"] - head}
        shapes = [
            Shape("T", TARGET, drawn["T"].tolist(), "target"),
            Shape("head", ACTIVE, drawn["head"].tolist(), "head"),
        ]
        places = {point["name"]: np.asarray(point["position_m"]) - head for point in m["points"]}
        for number, latch in enumerate(m["latches"]):
            ends = places[latch["active"]] + MARK_M * np.stack([-np.eye(3), np.eye(3)], axis=1)
            shapes.append(Shape("head", ACTIVE, ends.tolist(), f"latch{number + 1}"))
        bars = [Bar("stroke", "signal_analog", 0, "m", m["travel_m"][0] or 0.1, "axial")]
        bars += [Bar(f"lateral {axis}", "signal_analog", k, "m", m["travel_m"][k] or 0.1, "lateral") for k, axis in ((1, "Y"), (2, "Z"))]
        extent = max(float(np.abs(lines).max()) for lines in drawn.values())
        return Looks(1.2 * extent, shapes, bars, probe_m=float(head[0]))

    def bodies(self, values: Any, X_TA: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The head where its springs let it be; where the run does not have that, on its port."""
        d = np.asarray(values.get("mesh.deflection", np.zeros(6)))
        turn = np.append(0.5 * d[3:], 1.0)
        at = np.asarray(X_TA[:3]) + rotate(X_TA[3:], np.asarray(self.table["head_m"]) + d[:3])
        return {"head": [*at, *multiply(X_TA[3:], turn / np.linalg.norm(turn))]}, {}

    def contacts(self, values: Any) -> list[list[float]] | None:
        """The centre of pressure."""
        if "mesh.area" not in values:
            return None
        return [list(values["mesh.pressure_point"])] if values["mesh.area"] > 0.0 else []

    def touching(self, values: Any) -> list[str]:
        """Both bodies while they touch, and closed latches."""
        closed = [f"latch{i + 1}" for i, there in enumerate(values.get("mesh.latched", [])) if there]
        return closed + (["target"] if values.get("mesh.area", 0.0) > 0.0 else [])
