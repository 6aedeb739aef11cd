# cython: wraparound=True
"""Parameters of the central unit into the constants of its model; raises ValueError that names the key. Set-up, with the interpreter."""

import math

import numpy as np

from rt_kernels.algebra.values cimport Vec3, xyz
from rt_kernels.contact.primitives cimport MAX_VERTICES, prepare_profile
from rt_kernels.contact.latches cimport Groove
from rt_kernels.contact.planes cimport PLACES, fill_planes
from rt_kernels.contact.reaction cimport ContactLaw
from rt_kernels.mechanisms.common.drive cimport fill_drive
from rt_kernels.mechanisms.common.hysteresis cimport fill_series_clutch, fill_table
from rt_kernels.mechanisms.probe_cone.magnetic_brake cimport TABLE_POINTS, TorqueTable
from rt_kernels.mechanisms.probe_cone.model cimport CAM_POINTS, DOF, LENGTH, LIMITER, LININGS, ROLLERS, Unit

from rt_kernels.contact.restitution import damping, restitution_one_way


# ------------------------------------------------------------------------------------------------------------------------ geometry

cdef int fill_receptacle(Unit *u, v) except -1:
    """Profile of cone and socket, grooves of the latches."""
    cdef int i
    rows = v["cone_profile_m"]
    if rows.shape[1] != 2 or not 6 <= rows.shape[0] <= MAX_VERTICES:
        raise ValueError(f"cone_profile_m must be 6 to {MAX_VERTICES} rows (x, rho) of rim, mouth, cones, entry, bottom edge, bottom, "
                         f"got {rows.tolist()}")
    if np.any(np.hypot(*np.diff(rows, axis=0).T) < 1e-6) or np.any(rows[:, 1] < 0) or np.any(np.diff(rows[:, 0]) < 0):
        raise ValueError(f"cone_profile_m: vertices must be apart, x must not fall and radii not be negative, got {rows.tolist()}")
    u.cone.count = rows.shape[0]
    for i in range(u.cone.count):
        u.cone.x[i] = rows[i, 0]
        u.cone.rho[i] = rows[i, 1]
    prepare_profile(&u.cone)
    u.mouth = xyz(rows[1, 0], 0.0, 0.0)
    u.mouth_radius = rows[1, 1]
    u.bottom_face = u.cone.count - 2
    u.entry_x, u.entry_radius = rows[-3, 0], rows[-3, 1]
    u.last_cone_x = rows[-4, 0]
    start, end = v["groove_ramp_m"]
    u.groove = Groove(stop_x=v["groove_stop_x_m"], plane=v["groove_plane_m"], narrow=v["groove_narrow_m"], wide=v["groove_wide_m"],
                      ramp_start=start,
                      ramp_end=end, length=v["groove_length_m"])
    if not 0.0 <= start < end <= u.groove.length or u.groove.narrow > u.groove.wide:
        raise ValueError(f"groove: needs ramp start < end <= length and narrow <= wide, "
                         f"got ramp {start}, {end}, widths {u.groove.narrow}, {u.groove.wide}")
    return 0


cdef int fill_body(Unit *u, v) except -1:
    """Head, linings of the limiter, cam and rollers of the alignment levers."""
    cdef int i
    socket = v["cone_profile_m"][-2, 1]
    u.head_radius = v["head_radius_m"]
    if not u.head_radius < socket:
        raise ValueError(f"head_radius_m must be below the socket radius {socket} m, got {u.head_radius}")
    front, rear = v["lining_front_m"], v["lining_rear_m"]
    for i in range(LININGS):
        c, s = math.cos(2 * math.pi * i / LININGS), math.sin(2 * math.pi * i / LININGS)
        u.lining[i] = xyz(front[0], front[1] * c, front[1] * s)
        u.lining_run[i] = xyz(rear[0] - front[0], (rear[1] - front[1]) * c, (rear[1] - front[1]) * s)
    u.lining_front = max(front[0], rear[0])
    u.lining_reach = max(front[1], rear[1])
    cam = v["lever_cam"]
    if cam.shape[1] != 3 or not 2 <= cam.shape[0] <= CAM_POINTS or np.any(np.diff(cam[:, 0]) <= 0):
        raise ValueError(f"lever_cam must be 2 to {CAM_POINTS} rows (nut angle, x, rho) with rising angles, got {cam.tolist()}")
    u.rollers = ROLLERS if v["levers"] else 0
    u.roller_radius = v["roller_radius_m"]
    u.cam_points = cam.shape[0]
    for i in range(u.cam_points):
        u.cam_nut[i], u.cam_x[i], u.cam_rho[i] = cam[i]
    for i in range(ROLLERS):
        u.roller_dir[2 * i], u.roller_dir[2 * i + 1] = math.cos(2 * math.pi * i / ROLLERS), math.sin(2 * math.pi * i / ROLLERS)
    return 0


cdef int fill_latches(Unit *u, v) except -1:
    """Latches and sensor levers."""
    cdef int i
    # latches 1 and 3 in the plane X_H Y_H, 2 and 4 in X_H Z_H; levers between them
    for i, (y, z) in enumerate(((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))):
        u.latch_dir[2 * i], u.latch_dir[2 * i + 1] = y, z
    for i, (y, z) in enumerate(((math.sqrt(0.5), math.sqrt(0.5)), (-math.sqrt(0.5), -math.sqrt(0.5)))):
        u.lever_dir[2 * i], u.lever_dir[2 * i + 1] = y, z
    u.latch.pivot_x, u.latch.pivot_rho = v["latch_pivot_m"]
    u.latch.nose_x, u.latch.nose_rho = v["latch_nose_m"]
    u.latch.tip_x, u.latch.tip_rho = v["latch_tip_m"]
    u.latch.radius = 0.0
    u.latch.angle_max = v["latch_angle_max_rad"]
    u.latch.torque_preload, u.latch.torque_rate = v["latch_torque"]
    u.latch.lock_x, u.latch.lock_rho_inner, u.latch.lock_rho_outer = v["latch_lock_m"]
    u.lever = u.latch
    u.lever.pivot_x, u.lever.pivot_rho = v["sensor_pivot_m"]
    u.lever.nose_x, u.lever.nose_rho = v["sensor_centre_m"]
    u.lever.radius = v["sensor_radius_m"]
    u.lever.angle_max = v["sensor_angle_max_rad"]
    u.lever.torque_preload, u.lever.torque_rate = v["sensor_torque"]
    u.release_x = v["sensor_release_x_m"]
    u.lever_friction = <double>v["sensor_friction_n"] * <double>v["friction_share"]
    if not u.latch.lock_rho_inner < u.groove.plane < u.latch.lock_rho_outer:
        raise ValueError(f"latch_lock_m: the segment must cross the groove plane at {u.groove.plane} m")
    return 0


# ---------------------------------------------------------------------------------------------------------------- inertia and chains

cdef int fill_inertias(Unit *u, v) except -1:
    """Bodies, and what turns with the nut."""
    u.inertias.dof = DOF if u.movable else DOF - 1
    u.inertias.exit_x = v["exit_x_m"]
    u.inertias.m2, u.inertias.c2 = v["body_mass_kg"], v["body_centre_x_m"]
    u.inertias.Jx2, u.inertias.Jt2 = v["body_inertia_kg_m2"]
    u.inertias.m1, u.inertias.d1 = v["probe_mass_kg"], v["probe_centre_m"]
    u.inertias.Jx1, u.inertias.Jt1 = v["probe_inertia_kg_m2"]
    u.inertias.m3, u.inertias.c3 = v["limiter_mass_kg"], v["limiter_centre_m"]
    u.inertias.Jx3, u.inertias.Jt3 = v["limiter_inertia_kg_m2"]
    u.nut_ratio = 2.0 * math.pi / v["screw_lead_m"]
    u.inertias.axial_inertia = <double>v["axial_inertia_kg_m2"] * u.nut_ratio * u.nut_ratio
    return 0


cdef Vec3 vector(a) except *:
    return xyz(a[0], a[1], a[2])


cdef int fill_chains(Unit *u, v) except -1:
    cdef int i
    for i in range(2):
        a, b = v["spring_base_m"][i], v["spring_body_m"][i]
        u.inertias.spring[i].a, u.inertias.spring[i].b = vector(a), vector(b)
        m1, s1, m2, d2, J = v["spring_link"]
        u.inertias.spring[i].m1, u.inertias.spring[i].s1 = m1, s1
        u.inertias.spring[i].m2, u.inertias.spring[i].d2, u.inertias.spring[i].J = m2, d2, J
        u.inertias.spring[i].length0 = np.linalg.norm(b - a)
        if u.inertias.spring[i].length0 < 0.01:
            raise ValueError(f"spring chain {i + 1}: base and body joint are closer than 0.01 m")
        a, tip, b, n = v["brake_base_m"][i], v["brake_tip_m"][i], v["brake_body_m"][i], v["brake_axis"][i]
        n = n / np.linalg.norm(n)
        arm = tip - a
        if abs(arm @ n) > 1e-9 or np.linalg.norm(arm) < 1e-3:
            raise ValueError(f"brake chain {i + 1}: the crank must be at least 1 mm long and normal to brake_axis")
        ex = arm / np.linalg.norm(arm)
        ey = np.cross(n, ex)
        gain = (b - tip) @ np.cross(n, arm) / np.linalg.norm(b - tip)
        if abs(gain) < 0.2 * np.linalg.norm(arm):
            raise ValueError(f"brake chain {i + 1}: crank and rod are nearly in line (dead point)")
        u.inertias.brake[i].a, u.inertias.brake[i].b = vector(a), vector(b)
        u.inertias.brake[i].n, u.inertias.brake[i].ex, u.inertias.brake[i].ey = vector(n), vector(ex), vector(ey)
        u.inertias.brake[i].arm = np.linalg.norm(arm)
        u.inertias.brake[i].rod = np.linalg.norm(b - tip)
        # on which side of the hinge-to-end line the crank lies
        across = b - a
        u.inertias.brake[i].elbow = 1.0 if n @ np.cross(across, arm) > 0 else -1.0
        u.inertias.brake[i].I, u.inertias.brake[i].m, u.inertias.brake[i].fraction, u.inertias.brake[i].J = v["brake_link"]
        u.crank_zero[i] = 0.0
    return 0


# ------------------------------------------------------------------------------------------------------------------ forces and drive

cdef int fill_law(ContactLaw *law, v, str part) except -1:
    law.stiffness = v[part + "_stiffness_n_per_m"]
    law.damping = v[part + "_damping_n_s_per_m"]
    law.friction = <double>v[part + "_friction"] * <double>v["friction_share"]
    law.ramp = v["damping_ramp_m"]
    law.slip_speed = v["slip_speed_m_s"]
    law.viscous_limit = v["friction_damping_max_n_s_per_m"]
    return 0


cdef int fill_torques(TorqueTable *t, str name, rows) except -1:
    if rows.ndim != 2 or rows.shape[1] != 2 or not 2 <= rows.shape[0] <= TABLE_POINTS:
        raise ValueError(f"{name} must be 2 to {TABLE_POINTS} rows (speed, torque), got shape {rows.shape}")
    if rows[0, 0] != 0.0 or rows[0, 1] != 0.0 or np.any(np.diff(rows[:, 0]) <= 0.0):
        raise ValueError(f"{name} must start at (0, 0) with rising speeds (a magnetic brake does not hold at rest), got {rows.tolist()}")
    cdef int i
    t.n = rows.shape[0]
    for i in range(t.n):
        t.speed[i] = rows[i, 0]
        t.torque[i] = rows[i, 1]
        t.slope[i] = (rows[i + 1, 1] - rows[i, 1]) / (rows[i + 1, 0] - rows[i, 0]) if i + 1 < t.n else 0.0
    return 0


cdef int fill_contacts(Unit *u, v) except -1:
    """Contact laws. A unit that does not state its friction below the slip speed (older logs) has it from its sub-steps."""
    if v["friction_damping_max_n_s_per_m"] is None:
        v = v | {"friction_damping_max_n_s_per_m": 0.5 * <double>v["contact_mass_kg"] / (5e-4 / u.substeps)}
    fill_law(&u.head_law, v, "head")
    fill_law(&u.limiter_law, v, "limiter")
    fill_law(&u.roller_law, v, "roller")
    fill_law(&u.latch_law, v, "latch")
    fill_planes(&u.planes, v, damping(v["plane_stiffness_n_per_m"], v["plane_mass_kg"] / PLACES, v["plane_restitution"]),
                damping(v["pusher_stiffness_n_per_m"], v["pusher_mass_kg"], v["pusher_restitution"], restitution_one_way))
    u.lever_viscous = u.head_law.viscous_limit
    u.depth_limit = v["penetration_max_m"]
    return 0


def _slipping(forward, backward, share):
    """Both branches of a friction clutch whose slip moment is `share` of that as built: cut off where the loading branch reaches it, or
    its last line drawn on to it."""
    if share == 1.0:
        return forward, backward
    moment = share * forward[-1, 1]
    i = min(int(np.searchsorted(forward[:, 1], moment)), len(forward) - 1)
    (q0, Q0), (q1, Q1) = forward[i - 1], forward[i]
    end = [q0 + (moment - Q0) * (q1 - q0) / (Q1 - Q0), moment]
    return tuple(np.vstack([rows[:-1][(rows[:-1] < end).all(axis=1)], end]) for rows in (forward, backward))


cdef int fill_elastic(Unit *u, v) except -1:
    """Tables and structural damping of the elastic elements, slipping brakes of the modified axial damper."""
    fill_table(&u.bend, "bend", v["bend_forward"], v["bend_return"], None, None, False)
    fill_table(&u.twist, "twist", v["twist_forward"], v["twist_return"], None, None, False)
    fill_table(&u.lateral, "spring", v["spring_forward"], v["spring_return"], None, None, False)
    fill_table(&u.cover, "cover", v["cover_forward"], v["cover_return"], None, None, False)
    share = v["clutch_share"]
    push, pull = _slipping(v["axial_forward"], v["axial_return"], share), _slipping(v["axial_pull_forward"], v["axial_pull_return"], share)
    fill_table(&u.axial, "axial", push[0], push[1], pull[0], pull[1], True)
    u.two_brakes = v["axial_damper"] == "two_brakes"
    if u.two_brakes:
        fill_series_clutch(&u.brakes, "axial", v["axial_pull_forward"], v["axial_pull_return"], v["brake1_moment_n_m"][0],
                           v["brake1_moment_n_m"][1], v["brake1_stroke_rad"], v["brake2_moment_n_m"][0], v["brake2_moment_n_m"][1])
        u.brakes.moment1_in *= <double>v["brake1_share"]
        u.brakes.moment1_out *= <double>v["brake1_share"]
        u.brakes.moment2_in *= <double>share
        u.brakes.moment2_out *= <double>share
        if v["brake1_stuck"]:
            u.brakes.stroke1 = 0.0
    u.bend_damping = v["bend_damping_n_m_s_per_rad"]
    u.twist_damping = v["twist_damping_n_m_s_per_rad"]
    u.lateral_damping = v["spring_damping_n_s_per_m"]
    u.train_damping = v["train_damping_n_m_s_per_rad"]
    return 0


cdef int fill_stroke(Unit *u, v) except -1:
    """Ball screw, magnetic brakes, drive."""
    cdef int i
    u.length0 = v["probe_length_m"]
    u.length_min, u.length_max = v["probe_length_range_m"]
    if not u.length_min < u.length0 <= u.length_max:
        raise ValueError(f"probe_length_m must lie inside probe_length_range_m, got {u.length0} and {v['probe_length_range_m'].tolist()}")
    u.stop_stiffness = v["travel_stop_stiffness_n_per_m"]
    u.stop_damping = v["travel_stop_damping_n_s_per_m"]
    u.clutch_ratio = v["clutch_ratio"]
    u.drive_ratio = v["drive_ratio"]
    u.screw_friction = <double>v["screw_friction"] * <double>v["friction_share"]
    if not u.screw_friction < 1.0:
        raise ValueError(f"friction_share: the ball screw would lock itself, friction {u.screw_friction:g}, limit below 1")
    fill_torques(&u.axial_brake, "axial_brake_table", v["axial_brake_table"])
    fill_torques(&u.lateral_brake, "brake_table", v["brake_table"])
    u.extra_brakes = v["brake_extra"]
    for i in range(2):
        u.crank_stop[i] = <double>v["brake_stop_rad"] * <double>v[f"lateral_brake{i + 1}_travel"]
        u.crank_share[i] = v[f"lateral_brake{i + 1}_share"]
    u.crank_stiffness = v["brake_stop_stiffness_n_m_per_rad"]
    u.crank_damping = v["brake_stop_damping_n_m_s_per_rad"]
    fill_drive(v, &u.drive)
    u.drive.friction *= <double>v["friction_share"]
    u.axial_brake_share = v["axial_brake_share"]
    return 0


cdef int fill_rest(Unit *u, v) except -1:
    """Movable limiter, failed parts, hatch cover."""
    u.limiter_front = v["limiter_front_m"]
    u.limiter_travel = v["limiter_travel_m"]
    u.limiter_force_front, u.limiter_force_end = v["limiter_force_n"]
    u.limiter_stiffness = v["limiter_stop_stiffness_n_per_m"]
    u.limiter_damping = v["limiter_stop_damping_n_s_per_m"]
    u.limiter_gap = v["limiter_head_gap_m"]
    # sensors and latches that have failed
    u.latch_jammed, u.latch_stays, u.lever_dead = v["latch_jammed"], v["latch_stays"], v["capture_lever_dead"]
    u.dk1_dead, u.dk2_dead = v["dk1_dead"], v["dk2_dead"]
    u.cover_on = v["cover"]
    u.cover_mass = v["cover_mass_kg"]
    u.cover_damping = v["cover_damping_n_s_per_m"]
    return 0


cdef int fill_unit(Unit *u, v) except -1:
    """All constants of the unit from its checked parameters `v`, and the undisturbed state: probe extended, limiter forward."""
    u.substeps = v["substeps"]
    u.movable = v["limiter"] == "movable"
    fill_receptacle(u, v)
    fill_body(u, v)
    fill_latches(u, v)
    fill_inertias(u, v)
    fill_chains(u, v)
    fill_contacts(u, v)
    fill_elastic(u, v)
    fill_stroke(u, v)
    fill_rest(u, v)
    start = v["probe_start_m"] or u.length0
    if not u.length_min <= start <= u.length0:
        raise ValueError(f"probe_start_m must be 0 or within {u.length_min:g} ... {u.length0:g} m (drawn in ... extended), got {start:g}")
    u.state.q[LENGTH] = start
    # nothing is wound up: the drive's shaft stands where it brought the nut
    wheels = u.drive.i_PG * (u.drive.carrier_share[0] + u.drive.carrier_share[1])
    angle = u.nut_ratio * (u.length0 - <double>start) * u.drive_ratio / wheels
    u.state.drive.angle[0] = u.state.drive.angle[1] = angle
    # a head that is drawn in holds the movable limiter back
    u.state.q[LIMITER] = min(u.limiter_front, u.inertias.exit_x + <double>start - u.limiter_gap) if u.movable else 0.0
    return 0
