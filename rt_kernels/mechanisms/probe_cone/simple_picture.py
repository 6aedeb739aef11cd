"""The simple probe and cone in pictures: cavity, spherical head, rod."""

from typing import Any

import numpy as np

from rt_kernels.pictures import ACTIVE, TARGET, Looks, Picture, Shape, ball_profile, circle, damper_bars, revolved, sphere


class ProbeConeSimplePicture(Picture):
    """Head, rod and cavity; the unit's own analogue signals as dampers."""

    ANALOG = (("LPS", "m"), ("BPR", "m"), ("BPT", "m"))

    def build(self, m: dict[str, Any]) -> Looks:
        """Shapes of cone, head and probe, of the mechanism's keys m."""
        cone, radius, probe = m["cavity_m"], m["head_radius_m"], m["probe_m"]
        length = float(np.linalg.norm(probe))
        shapes = [
            Shape("T", TARGET, revolved(cone), "cone", cone),
            Shape("head", ACTIVE, sphere(radius), "head", ball_profile(radius)),
            Shape("head", ACTIVE, [[[-length, 0.0, 0.0], [-radius, 0.0, 0.0]]], "probe", [[-length, 0.02], [-radius, 0.02]]),
            Shape("A", ACTIVE, [circle(0.0, 0.4), circle(0.0, 0.12)], "base"),
        ]
        return Looks(max(r for _, r in cone) * 1.6, shapes, damper_bars(), probe_m=length)
