"""Does the platform reach what the test asks of it: park, the way from the start to the closing of the loop, the first contact?

Each pose X_TA goes through the mounting to the platform and through its legs: strokes and the condition of the Jacobian.
"""

from collections.abc import Iterator

import numpy as np

from hil_server.config import physics
from hil_server.line.overlap import APPROACH_POSES
from hil_server.roles import Stage
from rt_kernels.algebra.arrays import pose_inverse
from rt_kernels.context import Mounting
from rt_kernels.stewart.platform import Platform

HALVINGS = 20  # of the straight way on which the nearest pose in reach is sought


def unreached(platform: Platform, mounting: Mounting, guidance: Stage, X_first: np.ndarray) -> list[str]:
    """One line for park, start, approach and first contact if it is out of reach: which leg or what else, by how much, and how near the
    platform comes on the straight way from its neutral pose. guidance: without an `approach` only park and first contact are looked at;
    X_first: X_TA (7,) at the first contact."""
    neutral = np.asarray(platform.neutral_pose, float)
    found: dict[str, tuple[float, str, np.ndarray]] = {}
    for where, X_WP in _poses(platform, mounting, guidance, X_first):
        beyond, what = _beyond(platform, X_WP)
        if beyond > 0.0 and beyond > found.get(where, (0.0,))[0]:
            found[where] = (beyond, what, X_WP)
    return [f"{where}: out of reach of the platform: {what}; it comes within {_short_of(platform, neutral, X_WP):.3f} m of it"
            for where, (_, what, X_WP) in found.items()]  # fmt: skip


def platform_pose(mounting: Mounting, X_TA: np.ndarray) -> np.ndarray:
    """X_WP (7,) of the platform with the ports at X_TA; the inverse of `hil_server.line.overlap.park_pose`."""
    X_FM = np.asarray(X_TA, float)
    if (mounting.unit_on_load_cell == "target") != (mounting.load_cell_on == "floor"):
        X_FM = pose_inverse(X_FM)
    X_WM = physics.multiply(np.asarray(mounting.X_WF), X_FM)
    found: np.ndarray = physics.multiply(X_WM, pose_inverse(np.asarray(mounting.X_PM)))
    return found


def _poses(platform: Platform, mounting: Mounting, guidance: Stage, X_first: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "park", np.asarray(platform.neutral_pose, float)
    if hasattr(guidance, "approach"):
        approach = guidance.approach(APPROACH_POSES)
        yield "start of the approach", platform_pose(mounting, approach[0])
        yield from (("approach", platform_pose(mounting, X_TA)) for X_TA in approach[1:])
    yield "first contact", platform_pose(mounting, X_first)


def _beyond(platform: Platform, X_WP: np.ndarray) -> tuple[float, str]:
    """How far beyond its limits the pose is, at most 0 inside, and in words."""
    lengths = np.asarray(platform.leg_lengths(X_WP))
    long, short = lengths - platform.leg_length_max, platform.leg_length_min - lengths
    leg = int(np.argmax(np.maximum(long, short)))
    over = float(max(long[leg], short[leg]))
    if over > 0.0:
        limit = platform.leg_length_max if long[leg] > 0.0 else platform.leg_length_min
        return over, f"leg {leg + 1} would be {lengths[leg]:.3f} m long, limit {limit:g} m, {over:.3f} m beyond it"
    condition = float(platform.condition(X_WP))
    if condition <= platform.condition_max:
        return 0.0, ""
    return condition - platform.condition_max, f"condition of the Jacobian {condition:.1f}, limit {platform.condition_max:g}"


def _short_of(platform: Platform, neutral: np.ndarray, X_WP: np.ndarray) -> float:
    """Distance, m, between the pose and the last one in reach on the way from the neutral pose; turned all the way first where that is in
    reach, else not at all."""
    low, high = 0.0, 1.0
    turned = np.r_[neutral[:3], X_WP[3:]]
    attitude = X_WP[3:] if _beyond(platform, turned)[0] <= 0.0 else neutral[3:]
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        at = np.r_[neutral[:3] + share * (X_WP[:3] - neutral[:3]), attitude]
        low, high = (share, high) if _beyond(platform, at)[0] <= 0.0 else (low, share)
    return float((1.0 - low) * np.linalg.norm(X_WP[:3] - neutral[:3]))
