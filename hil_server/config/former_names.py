"""Names that were others once, in one place: the answer to a file that still has them, and how the configuration of an old log is read.

A user's file with a former name is refused with the new one. The configuration in the header of a log is mapped without a message, so that
runs replay whatever the names were when they were logged.
"""

import copy
import math
from collections.abc import Collection, Iterator

from hil_server import registry
from hil_server.config.tables import DEVICES
from hil_server.values import Document, Value
from rt_kernels.model import craft_file
from rt_kernels.stages import FORMER_ROLES, STAGE_ROLES

# (role of a part, or table of a file; former key) → present key.
KEYS: dict[tuple[str, str], str] = {
    **{
        ("mechanisms", f"{what}stiffness_n_m"): f"{what}stiffness_n_per_m"
        for what in ("", "axial_", "lateral_", "contact_", "head_", "limiter_", "roller_", "latch_", "plane_", "limiter_stop_",
                     "travel_stop_", "pusher_")
    },
    **{
        ("mechanisms", f"{what}damping_n_s_m"): f"{what}damping_n_s_per_m"
        for what in ("", "axial_", "lateral_", "contact_", "latch_")
    },
    **{
        ("mechanisms", f"{what}_damping_ns_m"): f"{what}_damping_n_s_per_m"
        for what in ("head", "limiter", "roller", "latch", "spring", "cover", "limiter_stop", "travel_stop")
    },
    **{
        ("mechanisms", f"{what}_damping_nms_rad"): f"{what}_damping_n_m_s_per_rad"
        for what in ("bend", "twist", "train", "brake_stop")
    },
    ("mechanisms", "brake_stop_stiffness_nm_rad"): "brake_stop_stiffness_n_m_per_rad",
    ("mechanisms", "motor_back_emf_nms_rad"): "motor_back_emf_n_m_s_per_rad",
    ("mechanisms", "motor_stall_nm"): "motor_stall_n_m",
    ("mechanisms", "satellites"): "planets",
    ("mechanisms", "motor_friction_nm"): "motor_friction_n_m",
    ("mechanisms", "brake1_moment"): "brake1_moment_n_m",
    ("mechanisms", "brake2_moment"): "brake2_moment_n_m",
    ("mechanisms", "slip_speed_m_per_s"): "slip_speed_m_s",
    ("mechanisms", "retract_speed_m_per_s"): "retract_speed_m_s",
    ("mechanisms", "drive_rate_rad_per_s"): "drive_rate_rad_s",
    ("compensation", "stiffness_n_m"): "stiffness_n_per_m",
    ("compensation", "damping_n_s_m"): "damping_n_s_per_m",
    ("guidance", "correction_gain_1_s"): "correction_gain_per_s",
    ("safety", "damaged_per_s_max"): "damaged_max_per_s",
    ("safety", "drive_lost_per_s_max"): "drive_lost_max_per_s",
    ("manipulator", "approach_1_s"): "approach_per_s",
}  # fmt: skip


# (table, key) → where the key stands now: a table that the server fills by itself where a file has none.
MOVED: dict[tuple[str, str], tuple[str, str]] = {
    ("guidance", "attitude_rate_gain_n_m_s"): ("control", "attitude_rate_gain_n_m_s_per_rad"),
    ("guidance", "attitude_rate_gain_n_m_s_per_rad"): ("control", "attitude_rate_gain_n_m_s_per_rad"),
}

_IN_IDENTITY = ("is in identity, which says vendor, product, revision and serial number of each drive: leave it out; hil-server run prints "
                "the lines of identity of the drives that are there")  # fmt: skip
_OF_RESTITUTION = "follows from plane_restitution and plane_mass_kg: leave it out"
# (role of a part, former key) → key that says it now, in another form, and where its content is.
GONE: dict[tuple[str, str], tuple[str, str]] = {
    ("drives", "vendor_id"): ("identity", _IN_IDENTITY),
    ("drives", "product_code"): ("identity", _IN_IDENTITY),
    ("mechanisms", "plane_damping_ns_m"): ("plane_restitution", _OF_RESTITUTION),
    ("mechanisms", "plane_damping_n_s_per_m"): ("plane_restitution", _OF_RESTITUTION),
}

# (role, or table of the stand file; key) → what the program did before there was this key, where its default does something else: the value
# in the log of such a program, so that it replays as it ran.
BEFORE: dict[tuple[str, str], Value] = {
    ("wrench", "frozen_s"): 0.0,
    ("events", "every_phase"): False,
    ("guidance", "hold_acceleration_max_m_s2"): 0.0,
    ("safety", "tare_max_n"): 0.0,
    ("safety", "leg_jump_m"): 0.0,
    ("safety", "apart_m"): 0.0,
    ("limits", "power_off"): "none",
}

# Numbers by which the injected faults of a virtual stand went (rows time_s, number, index, value) → their names.
FAULTS: dict[int, str] = {
    0: "clear", 1: "leg_stuck", 2: "leg_slow", 3: "transducer_offset", 4: "gauge_broken", 5: "gauge_saturated", 6: "sensor_bias",
    7: "external_force", 8: "chain_tripped", 9: "chain_unhealthy", 100: "sensor_silent", 101: "sensor_stale", 102: "sensor_lost",
    103: "sensor_corrupt", 104: "sensor_device_fault", 105: "sensor_busy", 110: "drive_silent", 111: "drive_fault", 112: "drive_disabled",
    113: "drive_following_error", 114: "drive_limit_touched", 115: "drive_local", 116: "drive_emergency", 117: "bus_fault",
    118: "drive_lost", 119: "drive_corrupt", 120: "signals_silent", 121: "analogue_chain_unread", 130: "drive_not_following",
    131: "drive_heartbeat_lost",
}  # fmt: skip

_PRESENT: dict[str, set[str]] = {}
for (_, _former), _present in KEYS.items():
    _PRESENT.setdefault(_former, set()).add(_present)


def present_key(key: str, declared: Collection[str]) -> str:
    """What a key that is not declared is called now, empty for one that never was."""
    return "" if key in declared else next((new for new in _PRESENT.get(key, ()) if new in declared), "")


def gone(key: str, declared: Collection[str]) -> str:
    """Message for a key that a table had once, empty for one that it has or never had."""
    if key in declared:
        return ""
    return next((words for (_, old), (now, words) in GONE.items() if old == key and now in declared), "")


def renamed(document: Document) -> Document:
    """The document of a test (the configuration in a log's header) with present names; what has none is left as it is. A key of a part from
    outside belongs to that part. `document` itself is not changed."""
    document = {FORMER_ROLES.get(name, name): table for name, table in copy.deepcopy(document).items()}
    if isinstance(stand := document.get("stand"), dict):
        document["stand"] = {FORMER_ROLES.get(name, name): table for name, table in stand.items()}
    for (place, key), (now, name) in MOVED.items():
        if isinstance(document.get(place), dict) and key in document[place]:
            document.setdefault(now, {"part": registry.FILLED[now]})[name] = document[place].pop(key)
    if isinstance(dynamics := document.get("dynamics"), dict) and isinstance(dynamics.get("model_data"), dict):
        dynamics["model_data"] = _craft(dynamics["model_data"])
    if isinstance(conditions := document.get("initial_conditions"), dict):
        conditions.setdefault("between", "bodies")  # logs from before the key
    for role, table in _tables(document):
        if table.get("part", "") not in ("", *registry.PARTS.get(role, {})):
            continue
        given = dict(table)
        table.clear()
        table.update({KEYS.get((role, key), key): value for key, value in given.items() if (role, key) not in GONE})
        if role == "simulated" and isinstance(table.get("faults"), list):
            table["faults"] = [_fault(entry) for entry in table["faults"]]
    return document


def as_before(document: Document) -> Document:
    """The document of a test of an earlier program, with the keys of `BEFORE` that it does not have. Changed in place."""
    for (place, key), value in BEFORE.items():
        if place in registry.PARTS:
            table = document.get(place)
            declared = isinstance(table, dict) and table.get("part") in registry.PARTS[place]
            if declared and any(p.key == key for p in registry.part(place, document[place]["part"]).PARAMETERS):
                document[place].setdefault(key, value)
        elif isinstance(stand := document.get("stand"), dict) and isinstance(stand.get(place), dict):
            stand[place].setdefault(key, value)
    return document


def _craft(tables: Document) -> Document:
    """An arm's file whose bodies had mass and inertia beside their joint, as the craft file that it is now."""
    bodies, joints = [], []
    for body in tables.get("body", []):
        if not isinstance(body, dict) or any(shape in body for shape in craft_file.SHAPES):
            return tables
        body = dict(body)
        tensor = body.pop("inertia_kg_m2", [0.0, 0.0, 0.0])
        if len(tensor) == 6:
            xx, xy, xz, yy, yz, zz = tensor
            tensor = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        rigid = {"mass_kg": body.pop("mass_kg", 0.0), "centre_of_mass_m": body.pop("centre_of_mass_m", [0.0] * 3), "inertia_kg_m2": tensor}
        armature = body.pop("gear_ratio", 1.0) ** 2 * body.pop("rotor_inertia_kg_m2", 0.0)
        if armature:
            joints.append({"name": body.get("joint_name") or body.get("name"), "mode": "free", "armature_kg_m2": armature})
        if any(angles := body.pop("rotation_rpy_rad", ())):
            body["rotation_xyzw"] = _quaternion(*angles)
        bodies.append({"joint": "revolute", **body, "rigid": rigid})
    if not bodies:
        return tables
    found = {"name": "arm", **tables, "body": bodies}
    return found | {"joint": joints} if joints else found


def _quaternion(roll: float, pitch: float, yaw: float) -> list[float]:
    """[x, y, z, w] of roll, pitch, yaw as URDF has them: about x, then y, then z of the fixed axes."""
    half = [0.5 * angle for angle in (roll, pitch, yaw)]
    (cr, cp, cy), (sr, sp, sy) = ([function(angle) for angle in half] for function in (math.cos, math.sin))
    return [sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy, cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy]


def _fault(entry: object) -> object:
    """A row of numbers as the table that it is now; anything else as it is."""
    if isinstance(entry, list) and len(entry) == 4 and entry[1] in FAULTS:
        return {"fault": FAULTS[entry[1]], "at_s": entry[0], "index": int(entry[2]), "value": entry[3]}
    return entry


def _tables(document: Document) -> Iterator[tuple[str, Document]]:
    """(role or name, table) of every table that can have a former key."""
    # role or name → where it stands
    places: list[tuple[str, tuple[str, ...]]] = [(name, (name,)) for name in document if name not in ("mechanism", "stand")]
    places += [("mechanisms", ("mechanism",)), ("manipulator", ("dynamics", "model_data", "manipulator"))]
    places += [(role, ("stand", name)) for name, role in DEVICES.items()]
    places += [(role, ("stand", role)) for role in STAGE_ROLES]  # limits of the stand for a part of the test
    places += [("compensation", ("compensation", inner)) for inner in ("free", "contact")]  # of the one that changes between two
    for role, path in places:
        table: object = document
        for name in path:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict):
            yield role, table
