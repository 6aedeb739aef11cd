"""Do the docking units touch where they must not: at park, on the way to the start pose, and on the approach?

The mechanism's own contact model is asked, in its initial state and at rest, for its wrench at poses along the programmed way: where the
stand is parked, the start pose, and the approach up to where the loop is closed, ahead of the nominal first contact. Any force there means
that the units lie in each other before the test begins; from there on a contact is the test's own (the latches of a ring unit touch some
millimetres before the rings do). The way between two poses is the one of a programmed move: straight in the place, about one axis in the
attitude.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from hil_server.config import physics
from hil_server.errors import ConfigurationError
from hil_server.roles import Mechanism, Stage
from rt_kernels.algebra.arrays import pose_inverse, pose_multiply, quat_exponential, quat_logarithm, quat_multiply
from rt_kernels.context import Mounting

FORCE_MAX_N = 1.0  # less is what a model may show of itself without a contact
STEP_M, STEP_DEG = 0.005, 0.5  # between two poses that are looked at
APPROACH_POSES = 21
INSTANT_S = 1e-7  # the mechanism is asked for one step of this length: nothing in it moves meanwhile
BACK_MAX_M = 3.0  # as far as a unit is moved back to find out how far it would have to be


def refuse_overlap(mechanism: Mechanism, mounting: Mounting, park: np.ndarray, guidance: Stage, files: Mapping[str, Path]) -> None:
    """Raises ConfigurationError, naming the unit's file, the pose, the force and what to change, when the units touch too early.

    mechanism: its state is left as it was. park: X_TA, (7,), of the parked platform. guidance: the stage; without an `approach` only the
    park pose is looked at. files: table → path, for the message."""
    before = mechanism.snapshot()

    def force(X_TA: np.ndarray) -> float:
        mechanism.restore(before)
        wrench = mechanism.advance(X_TA, np.zeros(6), INSTANT_S)["F_T"]
        size = float(np.linalg.norm(wrench[:3]))
        return size if np.isfinite(size) else np.inf

    try:
        for where, X_TA in _poses(park, guidance):
            found = force(X_TA)
            if found > FORCE_MAX_N:
                steps = np.arange(STEP_M, BACK_MAX_M, STEP_M)
                free = next((d for d in steps if force(X_TA - np.r_[d, np.zeros(6)]) <= FORCE_MAX_N), None)
                raise ConfigurationError(_message(where, X_TA, found, free, mounting, files))
    finally:
        mechanism.restore(before)


def parked_inside(park: np.ndarray, touch: np.ndarray, guidance: Stage, files: Mapping[str, Path]) -> str:
    """In words that the parked units, though they do not touch, are inside each other: the active port is further in than at the nominal
    first contact, so that each run backs out before it docks. "" where they are apart, or the guidance approaches nothing.

    park, touch: X_TA, (7,), at park and at the first contact; files: table → path."""
    inside = float(park[0] - touch[0])
    if inside <= 0.0 or not hasattr(guidance, "approach"):
        return ""
    return (
        f"{files.get('stand', 'the stand file')}: the docking units are parked inside each other: the active port is {inside:.3f} m "
        f"further in than at the first contact (X {park[0]:.3f} m, first contact {touch[0]:.3f} m); park the platform away from the target "
        "(limits.start_leg_m), or move the target away from it (mounting.load_cell_position_m)"
    )


def park_pose(mounting: Mounting, X_WP: np.ndarray) -> np.ndarray:
    """X_TA, (7,), with the platform at X_WP."""
    X_WM = physics.multiply(X_WP, np.asarray(mounting.X_PM))
    fixed, moving = np.asarray(mounting.X_WF), X_WM
    if (mounting.unit_on_load_cell == "target") != (mounting.load_cell_on == "floor"):
        fixed, moving = moving, fixed
    found: np.ndarray = pose_multiply(pose_inverse(fixed), moving)
    return found


def _poses(park: np.ndarray, guidance: Stage) -> Iterator[tuple[str, np.ndarray]]:
    """The programmed way in small steps, each pose with its name."""
    yield "at park", park
    if not hasattr(guidance, "approach"):
        return
    approach = guidance.approach(APPROACH_POSES)
    yield from (("between park and start", X) for X in _between(park, approach[0]))
    yield "at the start pose", approach[0]
    for A, B in zip(approach[:-1], approach[1:], strict=True):
        yield from (("on the approach, before the loop is closed", X) for X in [*_between(A, B), B])


def _between(A: np.ndarray, B: np.ndarray) -> list[np.ndarray]:
    """Poses from A to B, both left out, at most STEP_M and STEP_DEG apart."""
    turn = quat_logarithm(quat_multiply(B[3:], A[3:] * [-1, -1, -1, 1]))
    parts = int(np.ceil(max(np.linalg.norm(B[:3] - A[:3]) / STEP_M, np.degrees(np.linalg.norm(turn)) / STEP_DEG)))
    shares = [k / parts for k in range(1, parts)]
    return [np.concatenate([A[:3] + s * (B[:3] - A[:3]), quat_multiply(quat_exponential(s * turn), A[3:])]) for s in shares]


def _message(where: str, X_TA: np.ndarray, force: float, back: float | None, mounting: Mounting, files: Mapping[str, Path]) -> str:
    place = ", ".join(f"{x:.3f}" for x in X_TA[:3])
    far = f"at least {back:.3f} m further from" if back is not None else "away from"
    measured = "target" if mounting.unit_on_load_cell == "target" else "active"
    unit, stand = files.get("mechanism", "mechanism"), files.get("stand", "the stand file")
    return (
        f"{unit}: the docking units overlap {where}: contact force {force:.3g} N, limit {FORCE_MAX_N:g} N, with the active port at "
        f"({place}) m in the target port; move it {far} the target along X in {stand} (mounting.load_cell_position_m, "
        f"mounting.measured_port_position_m of the {measured} unit, mounting.other_port_position_m of the other one), or change "
        "initial_conditions and the guidance's start"
    )
