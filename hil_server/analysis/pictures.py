"""Pictures of a run for reports, one function per topic."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hil_server.analysis.crafts import names_in, series
from hil_server.analysis.scalars import yaw_pitch_roll
from hil_server.pages.figures import COLOURS, figure, lines
from hil_server.telemetry.log_file import Log
from rt_kernels.layout import CODES


def mark_events(log: Log, axes: Sequence[Axes]) -> None:
    """Dotted lines at first contact, capture and trip."""
    if not log.ticks:
        return
    last, lowest, highest = log.records[-1], log.time_s[0], log.time_s[-1]
    trip = np.flatnonzero((log.records["tick"] == last["trip_tick"]) & (last["trip_tick"] >= 0))
    moments = [
        ("first contact ", last["first_contact_time"], "#555555", "right"),
        (" capture", last["capture_time"], "#009e73", "left"),
        (" trip", log.time_s[trip[0]] if len(trip) else -1.0, "#cc0000", "left"),
    ]
    for name, at, colour, side in moments:
        if at >= 0.0 and lowest <= at <= highest:
            for one in axes:
                one.axvline(at, color=colour, linestyle=":", linewidth=1.0)
            axes[0].annotate(name, (at, 1.0), xycoords=("data", "axes fraction"), fontsize=7, color=colour, va="bottom", ha=side)


def wrench(log: Log) -> Figure:
    """Contact force [N] and moment [N.m] on the target port, T axes."""
    drawn, axes = figure(2)
    lines(axes[0], log.time_s, log.records["F_T"][:, :3], ("Fx", "Fy", "Fz"), "contact force at T, N")
    lines(axes[1], log.time_s, log.records["F_T"][:, 3:], ("Mx", "My", "Mz"), "contact moment at T, N.m")
    return finish(log, drawn, axes)


def relative_pose(log: Log) -> Figure:
    """Position [m] and attitude [deg] of the active port A in the target port T."""
    drawn, axes = figure(2)
    lines(axes[0], log.time_s, log.records["X_TA"][:, :3], ("x", "y", "z"), "position of A in T, m")
    angles = np.degrees(yaw_pitch_roll(log.records["X_TA"]))
    lines(axes[1], log.time_s, angles, ("yaw ψ", "pitch θ", "roll φ"), "attitude of A in T, deg")
    return finish(log, drawn, axes)


def relative_twist(log: Log) -> Figure:
    """Velocity [m/s] and angular velocity [deg/s] of A relative to T."""
    drawn, axes = figure(2)
    lines(axes[0], log.time_s, log.records["V_TA"][:, :3], ("vx", "vy", "vz"), "velocity of A in T, m/s")
    lines(axes[1], log.time_s, np.degrees(log.records["V_TA"][:, 3:]), ("ωx", "ωy", "ωz"), "angular velocity, deg/s")
    return finish(log, drawn, axes)


def legs(log: Log) -> Figure:
    """Leg lengths sent and measured [m], and what is between them."""
    drawn, axes = figure(3)
    names = tuple(f"leg {i}" for i in range(1, 7))
    lines(axes[0], log.time_s, log.records["leg_setpoint"], names, "sent (line) and measured (faint), m")
    lines(axes[0], log.time_s, log.records["measured_leg"], ("",) * 6, "sent (line) and measured (faint), m", "--", faint=True)
    lines(axes[1], log.time_s, 1e3 * log.records["following_error"], names, "following error, mm")
    lines(axes[2], log.time_s, 1e3 * log.records["stroke_margin"][:, None], ("margin",), "nearest stroke end, mm")
    return finish(log, drawn, axes)


def joints(log: Log) -> Figure | None:
    """Position, rate and torque of the crafts' joints; None for crafts without joints."""
    names = names_in(log.header.notes).get("joints", ())
    labels = {"joint_position": "joint, rad or m", "joint_rate": "rate, rad/s or m/s", "joint_torque": "torque, N.m or N"}
    return _of_crafts(log, [(series(log, channel, len(names)), names, label) for channel, label in labels.items()])


def structure(log: Log) -> Figure | None:
    """Length of the acceleration [m/s²] of each measured point, of force [N] and moment [N.m] at each interface; None without any."""
    names = names_in(log.header.notes)
    points, places = names.get("sensors", ()), names.get("interfaces", ())
    wrench = series(log, "interface_wrench", len(places))
    return _of_crafts(log, [
        (series(log, "sensor_acceleration", len(points)), points, "acceleration, m/s²"),
        (None if wrench is None else wrench[:, :, :3], places, "force, N"),
        (None if wrench is None else wrench[:, :, 3:], places, "moment, N.m"),
    ])  # fmt: skip


def _of_crafts(log: Log, rows: Sequence[tuple[np.ndarray | None, Sequence[str], str]]) -> Figure | None:
    """One diagram for each of the series (n, names, width) that is there: a number as it is, of a vector its length."""
    there = [(values, names, label) for values, names, label in rows if values is not None]
    if not there:
        return None
    drawn, axes = figure(len(there), 2.2)
    for one, (values, names, label) in zip(axes, there, strict=True):
        lines(one, log.time_s, values[:, :, 0] if values.shape[2] == 1 else np.linalg.norm(values, axis=2), names, label)
        one.ticklabel_format(axis="y", scilimits=(-2, 4))  # short figures leave room for the label
    return finish(log, drawn, axes)


def phases(log: Log) -> Figure:
    """Phases of the run over time."""
    drawn, axes = figure(1, 2.4)
    names = {code: name for name, code in CODES["phase"].items()}
    present = sorted({int(code) for code in np.unique(log.records["phase"])})
    height = {code: i for i, code in enumerate(present)}
    change = np.flatnonzero(np.diff(log.records["phase"], prepend=log.records["phase"][:1] - 1)) if log.ticks else np.array([], int)
    ends = np.append(change[1:], max(log.ticks - 1, 0))
    for start, end in zip(change, ends, strict=True):
        code = int(log.records["phase"][start])
        width = max(log.time_s[end] - log.time_s[start], 1e-3)
        axes[0].barh(height[code], width, left=log.time_s[start], color=COLOURS[code % len(COLOURS)], height=0.7)
    axes[0].set_yticks(range(len(present)), [names.get(code, str(code)) for code in present], fontsize=8)
    return finish(log, drawn, axes)


def energy(log: Log) -> Figure:
    """Energy of relative motion, and work of the contact wrench since the contact began [J]."""
    drawn, axes = figure(2)
    lines(axes[0], log.time_s, log.records["kinetic_energy"][:, None], ("",), "energy of relative motion, J")
    lines(axes[1], log.time_s, log.records["contact_work"][:, None], ("",), "work in this contact, J")
    for one in axes:
        low, high = one.get_ylim()
        one.fill_between(log.time_s, low, high, where=log.records["contact"] != 0, color="#888888", alpha=0.15, linewidth=0)
        one.set_ylim(low, high)
    return finish(log, drawn, axes)


def lateness(log: Log) -> Figure:
    """Histograms of wake-up lateness and of computing time; both axes logarithmic, so that a single late tick is seen."""
    drawn, _ = figure(1)
    drawn.clear()
    drawn.subplots_adjust(bottom=0.19, wspace=0.16)
    left, right = drawn.subplots(1, 2)
    for axes, field, name in ((left, "lateness_ns", "lateness"), (right, "compute_ns", "computing")):
        us = np.maximum(log.records[field] * 1e-3, 0.1)
        edges = np.logspace(-1, max(2.0, np.log10(us.max() * 1.1)) if log.ticks else 2.0, 80)
        axes.hist(us, bins=edges, color=COLOURS[0])
        axes.set(xscale="log", yscale="log", xlabel=f"{name}, µs", ylabel="ticks")
        axes.grid(True, linewidth=0.4, alpha=0.6)
        axes.tick_params(labelsize=8)
    return drawn


def around(log: Log, centre_s: float, before_s: float = 1.0, after_s: float = 0.25) -> Figure:
    """The last second before a trip: wrench, following errors, setpoints' rates."""
    chosen = (log.time_s >= centre_s - before_s) & (log.time_s <= centre_s + after_s)
    r, t = log.records[chosen], log.time_s[chosen]
    drawn, axes = figure(4, 2.2)
    lines(axes[0], t, r["F_T"][:, :3], ("Fx", "Fy", "Fz"), "force, N")
    lines(axes[1], t, r["F_T"][:, 3:], ("Mx", "My", "Mz"), "moment, N.m")
    names = tuple(f"leg {i}" for i in range(1, 7))
    lines(axes[2], t, 1e3 * r["following_error"], names, "following error, mm")
    lines(axes[3], t, r["leg_rate_setpoint"], names, "leg rates sent, m/s")
    return finish(log, drawn, axes, (centre_s - before_s, centre_s + after_s))


def finish(log: Log, drawn: Figure, axes: Sequence[Axes], span: tuple[float, float] | None = None) -> Figure:
    """Grid, common time axis (`span` [s], default the whole run) and label; returns the figure."""
    if span is not None:
        axes[0].set_xlim(*span)
    elif log.ticks > 1:
        axes[0].set_xlim(log.time_s[0], log.time_s[-1])
    axes[-1].set_xlabel("run time, s", fontsize=9)
    mark_events(log, axes)
    return drawn
