"""Pictures of a run for its report, one function per topic: what is drawn, as `hil_server.pages.curves.Plot`."""

from collections.abc import Sequence

import numpy as np

from hil_server.judge.crafts import names_in, series
from hil_server.log.reader import Log
from hil_server.pages.curves import POINTS, Plot
from hil_server.requirements.angles import yaw_pitch_roll
from rt_kernels.codes import code_name

FORCE, MOMENT = ("Fx", "Fy", "Fz"), ("Mx", "My", "Mz")
LEGS = tuple(f"leg {i}" for i in range(1, 7))
WRENCH_POINTS = 4000  # of a line: contacts are short, and looked at closely
BANDS_MOST = 60  # phases that change more often than this are not shaded


def events(log: Log) -> list[tuple[float, str, str]]:
    """First contact, capture and trip: (run time s, words, kind of the mark)."""
    if not log.ticks:
        return []
    last, lowest, highest = log.records[-1], log.time_s[0], log.time_s[-1]
    trip = np.flatnonzero((log.records["tick"] == last["trip_tick"]) & (last["trip_tick"] >= 0))
    moments = [
        ("first contact", float(last["first_contact_time"]), ""),
        ("capture", float(last["capture_time"]), "good"),
        ("trip", float(log.time_s[trip[0]]) if len(trip) else -1.0, "bad"),
    ]
    return [(at, name, kind) for name, at, kind in moments if at >= 0.0 and lowest <= at <= highest]


def phases(log: Log) -> list[tuple[float, float, str]]:
    """(from s, to s, name) of the phases in their order."""
    if not log.ticks:
        return []
    code, t = log.records["phase"], log.time_s
    change = np.flatnonzero(np.diff(code, prepend=code[:1] - 1))
    ends = np.append(change[1:], log.ticks - 1)
    return [(float(t[a]), float(t[b]), code_name("phase", int(code[a]))) for a, b in zip(change, ends, strict=True)]


def plot(log: Log, title: str, unit: str, values: np.ndarray, names: Sequence[str], *, bands: Sequence[tuple[float, float, str]] = (),
         second: np.ndarray | None = None, note: str = "", most: int = POINTS) -> Plot:  # fmt: skip
    """A diagram of a run with its events. values, second: (n, k)."""
    return Plot(title, unit, log.time_s, values, names, marks=events(log), bands=bands, second=second, note=note, most=most)


def force_with_phases(log: Log) -> Plot:
    """Contact force [N] on the target port, T axes, over the phases of the run."""
    bands = phases(log)
    return plot(log, "Contact force", "N", log.records["F_T"][:, :3], ("Fx", "Fy", "Fz"), bands=bands if len(bands) <= BANDS_MOST else ())


def approach(log: Log) -> Plot:
    """Position [mm] of the active port A in the target port T."""
    return plot(log, "Relative motion: position of A in T", "mm", 1e3 * log.records["X_TA"][:, :3], ("x", "y", "z"))


def wrench(log: Log) -> list[Plot]:
    """Contact force [N] and moment [N.m] on the target port, T axes; beside it, dashed, what reached the dynamics where that differs."""
    r = log.records
    corrected = r["F_T_corrected"] if not np.array_equal(r["F_T_corrected"], r["F_T"]) and r["F_T_corrected"].any() else None
    note = "dashed: as the compensation passed it on to the dynamics" if corrected is not None else ""
    parts = (("Contact force at T", "N", slice(0, 3), FORCE), ("Contact moment at T", "N.m", slice(3, 6), MOMENT))
    return [
        plot(log, title, unit, r["F_T"][:, part], names, second=None if corrected is None else corrected[:, part], note=note,
             most=WRENCH_POINTS)
        for title, unit, part, names in parts
    ]


def relative_motion(log: Log) -> list[Plot]:
    """Pose of the active port A in the target port T, and its rates."""
    r = log.records
    return [
        plot(log, "Position of A in T", "m", r["X_TA"][:, :3], ("x", "y", "z")),
        plot(log, "Attitude of A in T", "deg", np.degrees(yaw_pitch_roll(r["X_TA"])), ("yaw ψ", "pitch θ", "roll φ")),
        plot(log, "Velocity of A in T", "m/s", r["V_TA"][:, :3], ("vx", "vy", "vz")),
        plot(log, "Angular velocity of A in T", "deg/s", np.degrees(r["V_TA"][:, 3:]), ("ωx", "ωy", "ωz")),
    ]


def legs(log: Log) -> list[Plot]:
    """Lengths sent and measured, following error, nearest end of a stroke; forces, valves and pressures where the drives measure them."""
    r = log.records
    found = [
        plot(log, "Leg lengths sent", "m", r["leg_setpoint"], LEGS, second=r["measured_leg"], note="dashed: measured"),
        plot(log, "Following error", "mm", 1e3 * r["following_error"], LEGS),
        plot(log, "Nearest end of a stroke", "mm", 1e3 * r["stroke_margin"][:, None], ("margin",)),
        plot(log, "Leg rates sent", "m/s", r["leg_rate_setpoint"], LEGS),
    ]
    if r["leg_force"].any():
        found.append(plot(log, "Leg forces", "kN", 1e-3 * r["leg_force"], LEGS))
    for field, title in (("leg_pressure_a", "Pressure A of the legs"), ("leg_pressure_b", "Pressure B of the legs")):
        if r[field].any():
            found.append(plot(log, title, "MPa", 1e-6 * r[field], LEGS))
    if r["leg_valve"].any():
        found.append(plot(log, "Valve openings", "", r["leg_valve"], LEGS))
    if r["supply_pressure"].any():
        found.append(plot(log, "Supply pressure", "MPa", 1e-6 * r["supply_pressure"][:, None], ("supply",)))
    return found


def joints(log: Log) -> list[Plot]:
    """Position, rate and torque of the crafts' joints; nothing for crafts without joints."""
    names = names_in(log.header.notes).get("joints", ())
    topics = {
        "joint_position": ("Joints: position", "rad or m"),
        "joint_rate": ("Joints: rate", "rad/s or m/s"),
        "joint_torque": ("Joints: torque", "N.m or N"),
    }
    return _of_crafts(log, [(series(log, channel, len(names)), names, *words) for channel, words in topics.items()])


def structure(log: Log) -> list[Plot]:
    """Length of the acceleration of each measured point, of force and moment at each interface; nothing without any."""
    names = names_in(log.header.notes)
    points, places = names.get("sensors", ()), names.get("interfaces", ())
    wrench = series(log, "interface_wrench", len(places))
    return _of_crafts(log, [
        (series(log, "sensor_acceleration", len(points)), points, "Acceleration of measured points", "m/s²"),
        (None if wrench is None else wrench[:, :, :3], places, "Force at interfaces", "N"),
        (None if wrench is None else wrench[:, :, 3:], places, "Moment at interfaces", "N.m"),
    ])  # fmt: skip


def _of_crafts(log: Log, rows: Sequence[tuple[np.ndarray | None, Sequence[str], str, str]]) -> list[Plot]:
    """One diagram for each of the series (n, names, width) that is there: a number as it is, of a vector its length."""
    return [
        plot(log, title, unit, values[:, :, 0] if values.shape[2] == 1 else np.linalg.norm(values, axis=2), names)
        for values, names, title, unit in rows
        if values is not None
    ]


def energy(log: Log) -> list[Plot]:
    """Energy of relative motion, and work of the contact wrench since the contact began [J]; shaded while in contact."""
    touching = np.flatnonzero(np.diff(log.records["contact"] != 0, prepend=False, append=False))
    spans = touching.reshape(-1, 2)
    bands: list[tuple[float, float, str]] = []
    at = float(log.time_s[0])
    for a, b in spans if len(spans) <= BANDS_MOST else ():
        begin, end = float(log.time_s[a]), float(log.time_s[b - 1])
        bands += [(at, begin, ""), (begin, end, "contact")]
        at = end
    return [
        plot(log, "Energy of relative motion", "J", log.records["kinetic_energy"][:, None], ("kinetic energy",), bands=bands),
        plot(log, "Work in this contact", "J", log.records["contact_work"][:, None], ("work",), bands=bands),
    ]


def lateness(log: Log) -> list[Plot]:
    """Lateness of the wake-up and time of the computing over the run, µs: the largest of every stretch is kept. Where the grid follows the
    clock of a bus: by how much the frames were late there."""
    values = 1e-3 * np.column_stack([log.records["lateness_ns"], log.records["compute_ns"]])
    found = [plot(log, "Lateness and computing", "µs", values, ("lateness", "computing"))]
    if "bus_deviation_ns" in log.aux_names:
        names = {"bus_deviation_ns": "of the frame", "bus_grid_error_ns": "of the grid"}
        deviation = 1e-3 * np.column_stack([log.aux(name) for name in names if name in log.aux_names])
        found.append(plot(log, "Deviation from the clock of the bus", "µs", deviation, tuple(names.values())[: deviation.shape[1]]))
    return found


def around(log: Log, centre_s: float, before_s: float = 1.0, after_s: float = 0.25) -> list[Plot]:
    """The last second before a trip, every tick of it: wrench, following errors, setpoints' rates."""
    chosen = (log.time_s >= centre_s - before_s) & (log.time_s <= centre_s + after_s)
    r, t = log.records[chosen], log.time_s[chosen]
    topics = [
        ("Force", "N", r["F_T"][:, :3], ("Fx", "Fy", "Fz")),
        ("Moment", "N.m", r["F_T"][:, 3:], ("Mx", "My", "Mz")),
        ("Following error", "mm", 1e3 * r["following_error"], LEGS),
        ("Leg rates sent", "m/s", r["leg_rate_setpoint"], LEGS),
    ]
    marks = [(centre_s, "trip", "bad")]
    return [Plot(f"{title} around the trip", unit, t, values, names, marks=marks, group="trip", most=2000)
            for title, unit, values, names in topics]  # fmt: skip
