"""Can the arm overcome the latches? What a berthing asked of the manipulator, against what its end, joints and motors can give.

    asked       largest force of the active unit on the target unit, its norm, from the first contact until the head is at the bottom
                (DK2), to the capture, or to the end of the flight without either, of the mean vector over two seconds: a blow is not held
                by the arm, but by the load's inertia. With latches, in software or hardware, it is their own law's. A capture below the
                threshold of a contact counts from the start
    available   largest force that the arm can hold at the port in the direction of that one, with the moment that goes with it, in the
                joint angles of that moment: the smallest over
                end effector   force_max_n, moment_max_n_m of the arm's file
                joints         drive torque through the gear with its efficiency, against J^T of the wrench at the end effector
    margin      available over asked; below 1 the arm alone cannot hold it: what captures all the same is carried by the load's inertia

Loads in parts of their limits (`shares`): wrench at the end effector, torque of each joint's gear from J^T of it, torque of each motor. The
wrench passes from the port to the end effector as a lever of rigid bodies; weights are none (in orbit).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from hil_server import registry
from hil_server.config import physics
from hil_server.errors import HilError
from hil_server.judge.rehearsal import arm_load, flight
from hil_server.judge.run import Run
from hil_server.log.reader import Log
from rt_kernels.algebra.arrays import quat_rotate, quat_rotate_back
from rt_kernels.layout import BITS, CODES

if TYPE_CHECKING:
    from rt_kernels.model.manipulator_file import Manipulator
    from rt_kernels.multibody.tree import Tree

SAMPLES = 400  # ticks at which the joints' loads are worked out: evenly, and the peaks of contact and arm
HELD_S = 2.0  # a force that lasts so long is held: 8 t at 19 mm/s are stopped by 76 N in it
STALLED_S = 5.0  # contact in so much of the end of a flight, pressed for and without capture, is a stall
ASKED_RATE = 0.1  # of the axial rate at full deflection: less is no pressing


class Largest(TypedDict):
    """What of an arm came nearest to its limit, and the part of it."""

    name: str
    share: float


class ArmMargin(TypedDict):
    """The arm's part in a berthing (`arm_margin`)."""

    outcome: str
    contact_before_capture: bool | None
    asked_n: float | None
    available_n: float | None
    limit: str | None
    margin: float | None
    end_force_share: float
    end_moment_share: float
    joints: dict[str, float]
    motors: dict[str, float]
    largest: Largest
    text: str


def arm_margin(run: Run) -> ArmMargin | None:
    """The arm's part in a berthing, JSON values only; None for a run without a manipulator.

    outcome: captured, stalled (in contact to the end, pressed for, not captured), not_captured. contact_before_capture: None without both.
    asked_n, available_n, limit (what would give way first, as "shoulder_yaw joint"), margin: None without a contact in the flight.
    end_force_share, end_moment_share, joints, motors: largest part of the limit in the flight, by joint; largest: the name and part of the
    largest. text: one line.
    """
    log = run.log
    table, load = _arm(run), arm_load(run)
    flown = np.flatnonzero(flight(run))
    if table is None or load is None or not len(flown):
        return None
    arm, tree, names, locked = table
    r, t = log.records, log.time_s
    first, capture = float(r["first_contact_time"][-1]), float(r["capture_time"][-1])
    # a gentle capture comes before the first contact, whose force has a threshold: then all of the flight up to it counts
    gentle = 0.0 <= capture < first
    pressing = flown if first < 0.0 or gentle else flown[t[flown] >= first]
    if capture >= 0.0:
        pressing = pressing[t[pressing] <= capture]
    bottom = np.flatnonzero(r["signal_discrete"][pressing] & BITS["mechanism_signal"]["DK2"])
    pressing = pressing[: bottom[0]] if len(bottom) else pressing
    held = _held(log, pressing)
    force = np.linalg.norm(held[:, :3], axis=1)
    q, motor = log.aux("arm_q"), np.abs(log.aux("arm_motor_torque"))
    drives = arm.drives
    gear = np.array([d["torque_max_n_m"] * d["gear_ratio"] * d.get("efficiency", 1.0) for d in drives])
    most = np.array([d["torque_max_n_m"] for d in drives])
    n = len(gear)
    # loads of the gears: J^T of the wrench that the payload puts on the end effector
    at = flown[np.unique(np.linspace(0, len(flown) - 1, SAMPLES).astype(int))]
    peaks = [flown[np.linalg.norm(load[flown, 3:], axis=1).argmax()], *([pressing[force.argmax()]] if len(pressing) else [])]
    loads = [np.abs(_torques(tree, arm.end_effector, q[i, :n], load[i])) for i in np.union1d(at, peaks)]
    joints = np.max(loads, axis=0) / gear
    if locked is not None:
        joints[names.index(locked)] = 0.0  # its brake holds it
    motors = motor[flown, :n].max(axis=0) / most
    shares = {
        "end effector force": float(np.linalg.norm(load[flown, :3], axis=1).max() / arm.force_max),
        "end effector moment": float(np.linalg.norm(load[flown, 3:], axis=1).max() / arm.moment_max),
        **{f"{name} joint": float(share) for name, share in zip(names, joints, strict=True)},
        **{f"{name} motor": float(share) for name, share in zip(names, motors, strict=True)},
    }
    largest = max(shares, key=lambda name: shares[name])
    found: ArmMargin = {
        "outcome": _outcome(log, flown, capture),
        "contact_before_capture": bool(first <= capture) if first >= 0.0 and capture >= 0.0 else None,
        "asked_n": None, "available_n": None, "limit": None, "margin": None,
        "end_force_share": shares["end effector force"],
        "end_moment_share": shares["end effector moment"],
        "joints": {name: float(share) for name, share in zip(names, joints, strict=True)},
        "motors": {name: float(share) for name, share in zip(names, motors, strict=True)},
        "largest": {"name": largest, "share": shares[largest]},
        "text": "",
    }  # fmt: skip
    if first >= 0.0 and len(pressing):
        there = pressing[force.argmax()]
        asked = float(force.max())
        available, limit = _available(run, tree, arm, names, locked, gear, int(there), q[there, :n], held[force.argmax()])
        margin = available / asked if asked > 1.0 else None
        found = {**found, "asked_n": asked, "available_n": available, "limit": limit, "margin": margin}
    return {**found, "text": in_words(found)}


def in_words(arm: ArmMargin) -> str:
    """One line for people."""
    if arm["asked_n"] is None or arm["available_n"] is None:
        return f"{arm['outcome']}; no contact; largest load {arm['largest']['name']} at {100 * arm['largest']['share']:.0f} %"
    what = {"captured": "captured", "stalled": "pressed, did not overcome the latches"}.get(arm["outcome"], "not pressed to the end")
    margin = "" if arm["margin"] is None else f", margin {arm['margin']:.2f}"
    return (f"{what}: {arm['asked_n']:.0f} N pressed, {arm['available_n']:.0f} N can be held ({arm['limit']}){margin}; "
            f"largest load {arm['largest']['name']} at {100 * arm['largest']['share']:.0f} %")  # fmt: skip


def _held(log: Log, at: np.ndarray) -> np.ndarray:
    """Wrench of the active unit on the target unit at the ticks `at`, (n, 6): its mean over HELD_S before each. A thinned log has every
    peak, so its ticks count for the time to the next one."""
    if not len(at):
        return np.zeros((0, 6))
    t, wrench = log.time_s[at], log.records["F_T"][at]
    impulse = np.concatenate([np.zeros((1, 6)), np.cumsum(wrench[:-1] * np.diff(t)[:, None], axis=0)])
    before = np.column_stack([np.interp(t - HELD_S, t, one) for one in impulse.T])
    found: np.ndarray = (impulse - before) / HELD_S
    return found


def _outcome(log: Log, flown: np.ndarray, capture: float) -> str:
    r, t = log.records, log.time_s
    if capture >= 0.0:
        return "captured"
    late = flown[t[flown] >= t[flown[-1]] - STALLED_S]
    full = max(float(r["operator_rate"][flown, 0].max()), 1e-9)
    touching = r["contact"][late].mean() > 0.2
    asked = r["operator_rate"][late, 0].mean() > ASKED_RATE * full or bool((r["supervisory"][late] == CODES["supervisory"]["insert"]).any())
    return "stalled" if touching and asked else "not_captured"


def _arm(run: Run) -> tuple["Manipulator", "Tree", list[str], str | None] | None:
    """Table and tree of the arm that the run was made with, names of its joints, the locked one; None without one."""
    from rt_kernels.model.craft_file import bodies_of
    from rt_kernels.model.manipulator_file import manipulator_of

    dynamics = run.document.get("dynamics", {})
    try:
        part: Any = registry.part_of_table("dynamics", dynamics)
        if not getattr(part, "MANIPULATOR", False):
            return None
        from rt_kernels.multibody.tree import Tree

        tables = part.model_tables(dynamics["model"], dynamics.get("model_data"))
        bodies = bodies_of(tables, dynamics["model"])
        names = [b.joint_name for b in bodies if b.joint != "fixed"]
        arm = manipulator_of(tables, Path(dynamics["model"]), len(names))
        return arm, Tree(bodies, gravity=(0.0, 0.0, 0.0)), names, dynamics.get("locked_joint")
    except (HilError, ValueError, KeyError, TypeError):
        return None  # a log whose arm cannot be read says nothing of it


def _torques(tree: "Tree", end: str, q: np.ndarray, wrench_E: np.ndarray) -> np.ndarray:
    """J^T of a wrench at and in E, N.m."""
    R = np.asarray(tree.pose(q, end)[0])
    found: np.ndarray = tree.jacobian(q, end).T @ np.concatenate([R @ wrench_E[:3], R @ wrench_E[3:]])
    return found


def _available(
    run: Run, tree: "Tree", arm: "Manipulator", names: list[str], locked: str | None, gear: np.ndarray, tick: int, q: np.ndarray,
    wrench: np.ndarray,
) -> tuple[float, str]:
    """Largest force at the target port that the arm can hold, N, and what limits it. wrench: (6,) on the target at and in T; its direction
    and its moment per newton are those of the force."""
    end, base = run.log.aux("arm_X_NE")[tick], run.log.aux("arm_X_NO")[tick]
    vehicle = run.document["target_vehicle"]
    port = physics.pose(vehicle["port_position_m"], vehicle["port_angles_deg"])
    unit = wrench / max(float(np.linalg.norm(wrench[:3])), 1e-12) if wrench[:3].any() else np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    # reaction of the target on the payload, per newton, at E on the axes of N
    force = -np.asarray(quat_rotate(port[3:], unit[:3]))
    moment = np.cross(port[:3] - end[:3], force) - quat_rotate(port[3:], unit[3:])
    at_base = np.concatenate([quat_rotate_back(base[3:], force), quat_rotate_back(base[3:], moment)])
    torques = np.abs(tree.jacobian(q, arm.end_effector).T @ at_base)
    limits = {"end effector force": arm.force_max, "end effector moment": arm.moment_max / max(float(np.linalg.norm(moment)), 1e-12)}
    limits |= {f"{name} joint": float(gear[j] / max(torques[j], 1e-12)) for j, name in enumerate(names) if name != locked}
    weakest = min(limits, key=lambda name: limits[name])
    return float(limits[weakest]), weakest
