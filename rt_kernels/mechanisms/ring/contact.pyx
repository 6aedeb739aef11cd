"""Set-up of ring contact geometry, and the contact kernels on arrays (tests, views).

Source: dissertation (5.4), with the corrections: the normal of a line-circle pair is oriented by the role of the line; the search for the
deepest generator is followed by a climb to its neighbours; flanks are oriented by a stored reference; the latch has an end stop and its
contact spring is inside the implicit step (printed: "as large as one likes", in truth h^2 k/m < 4); the locking face opens away from the active
ring, r = x - x_v with the normal [-1, ...] (printed: the guiding face's own equation, which cannot hold tension). The reaction on a latch that
rides on its stop acts along the normal of the guiding face (printed: along the latch only, which loses the part that the latch guide carries).

Frames: active ring N at its centre, passive ring at the target port T; X of both along the docking axis, into the target. The active
ring's plane is x = 0 of N, its petals point to +X; the passive ring is the same ring turned by 180 deg about Z of T. All m, N, rad.

Petal: outer face a cone of half-angle a about X that starts at the ring's inner circle less a clearance; it is bounded by two plane flanks,
each through B (ring plane, outer), A (tip), E (ring plane, inner). 2^N + 1 generators approximate the cone; they start on the circle R_R,max below the
plane, so that a start cannot pass inside the opposite circle. Upper flank edges are prolonged to the same circle. Excluded as redundant: of the four edge pairs
of two flanks, and of a petal's generators against a circle, only the deepest counts: one region, one point.
"""

import numpy as np

from libc.string cimport memset


def rotation_x(angle):
    """Turn about X by `angle` [rad] (3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def petal_shape(inner_radius, outer_radius, height, half_angle, clearance, base_azimuth, tip_azimuth, thickness, levels):
    """Primitives of one petal, petal axes (petal at azimuth 0). Angles in rad. Returns a dict: start, along (2^N + 1, 3), upper, lower
    (2, 2, 3: flank, start and vector), outward (2, 3), chord_error."""
    tan = np.tan(half_angle)
    base = inner_radius - clearance

    def on_cone(x, azimuth):
        r = base - x * tan
        return np.array([x, r * np.cos(azimuth), r * np.sin(azimuth)])

    upper, lower, outward = np.zeros((2, 2, 3)), np.zeros((2, 2, 3)), np.zeros((2, 3))
    planes = []
    for s, sign in enumerate((-1.0, 1.0)):
        B, A = on_cone(0.0, sign * base_azimuth), on_cone(height, sign * tip_azimuth)
        E = np.array([0.0, (base - thickness) * np.cos(sign * base_azimuth), (base - thickness) * np.sin(sign * base_azimuth)])
        n = np.cross(A - B, E - B)
        n /= np.linalg.norm(n)
        tangent = np.array([0.0, -np.sin(sign * base_azimuth), np.cos(sign * base_azimuth)]) * sign
        outward[s] = n if n @ tangent > 0 else -n
        planes.append((outward[s], B))
        # prolong A -> B to the outer circle
        u = (B - A)[1:]
        b, c, a = u @ B[1:], B[1:] @ B[1:] - outer_radius**2, u @ u
        C = B + (B - A) * (-b + np.sqrt(b * b - a * c)) / a
        upper[s], lower[s] = (C, A - C), (E, A - E)
    x_start = -(outer_radius - base) / tan
    start, along, error = [], [], 0.0
    for azimuth in np.linspace(-base_azimuth, base_azimuth, 2**levels + 1):
        end = height
        for n, B in planes:
            # where the generator pierces the plane of a flank
            P, L = on_cone(0.0, azimuth), on_cone(1.0, azimuth) - on_cone(0.0, azimuth)
            slope = n @ L
            if slope > 1e-12:
                end = min(end, max(0.0, float(n @ (B - P) / slope)))
        P = on_cone(x_start, azimuth)
        start.append(P)
        along.append(on_cone(end, azimuth) - P)
        if end < height:
            for s in range(2):
                tip = on_cone(end, azimuth) - upper[s, 0]
                L = upper[s, 1]
                if abs(planes[s][0] @ (on_cone(end, azimuth) - planes[s][1])) < 1e-9:
                    error = max(error, float(np.linalg.norm(tip - L * (tip @ L) / (L @ L))))
    return {"start": np.array(start), "along": np.array(along), "upper": upper, "lower": lower, "outward": outward, "chord_error": error}


cdef void fill_ring_geometry(object t, RingGeometry *g) except *:
    """From the parameter table `t` of a ring unit (keys of RING_PARAMETERS). Raises ValueError that names the key."""
    cdef int i, j, k, s
    memset(g, 0, sizeof(RingGeometry))
    inner, face = t["inner_radius_m"], t["face_radius_m"]
    if not face > inner:
        raise ValueError(f"face_radius_m: {face} m, must be > inner_radius_m ({inner} m)")
    if not 0 < t["petal_tip_azimuth_deg"] < t["petal_base_azimuth_deg"] <= 30.0:
        raise ValueError(f"petal_tip_azimuth_deg, petal_base_azimuth_deg: {t['petal_tip_azimuth_deg']}, {t['petal_base_azimuth_deg']} deg, "
                         "needed 0 < tip < base <= 30 deg (six petals share the circle)")
    reach = inner - t["petal_clearance_m"] - t["petal_height_m"] * np.tan(np.radians(t["petal_half_angle_deg"]))
    if not reach > 0.2 * inner:
        raise ValueError(f"petal_height_m: {t['petal_height_m']} m, the tip would be at radius {reach:.3f} m")
    outer = inner + 0.5 * (face - inner)
    shape = petal_shape(inner, outer, t["petal_height_m"], np.radians(t["petal_half_angle_deg"]), t["petal_clearance_m"],
                        np.radians(t["petal_base_azimuth_deg"]), np.radians(t["petal_tip_azimuth_deg"]), t["petal_thickness_m"],
                        t["generator_levels"])
    g.inner_radius, g.face_radius, g.outer_radius = inner, face, outer
    g.levels = t["generator_levels"]
    g.chord_error = shape["chord_error"]
    g.depth_max = t["depth_limit_m"]
    cdef double[:, ::1] start = shape["start"], along = shape["along"]
    for i in range((1 << g.levels) + 1):
        for j in range(3):
            g.start[i][j] = start[i, j]
            g.along[i][j] = along[i, j]
    cdef double[:, :, ::1] upper = shape["upper"], lower = shape["lower"]
    cdef double[:, ::1] outward = shape["outward"]
    for s in range(2):
        for j in range(3):
            g.outward[s][j] = outward[s, j]
            for i in range(2):
                g.upper[s][i][j] = upper[s, i, j]
                g.lower[s][i][j] = lower[s, i, j]
        azimuth = np.radians(t["petal_base_azimuth_deg"]) * (1 if s else -1)
        g.plane_point[s][0] = 0.0
        g.plane_point[s][1] = outer * np.cos(azimuth)
        g.plane_point[s][2] = outer * np.sin(azimuth)
    cdef double[:, ::1] R
    for k in range(PETALS):
        g.azimuth[k] = 2.0 * np.pi * k / 3.0
        R = rotation_x(g.azimuth[k])
        for i in range(3):
            for j in range(3):
                g.R_petal[k][3 * i + j] = R[i, j]


cdef void fill_contact_law(object t, double mass, double h, ContactLaw *law) except *:
    law.stiffness = t["contact_stiffness_n_per_m"]
    law.damping = t["contact_damping_n_s_per_m"]
    law.ramp = t["contact_ramp_m"]
    law.friction = t["friction"]
    law.slip_speed = t["slip_speed_m_s"]
    law.viscous_limit = 0.5 * mass / h


cdef void fill_latches(object t, RingLatchLaw *law) except *:
    cdef int i, j
    law.mass = t["latch_mass_kg"]
    law.stiffness = t["latch_stiffness_n_per_m"]
    law.preload = t["latch_preload_n"]
    law.contact_stiffness = t["latch_contact_stiffness_n_per_m"]
    law.stop_radius_min = t["stop_radius_min_m"]
    law.stop_radius_max = t["stop_radius_max_m"]
    law.stroke = t["latch_stroke_m"]
    if not law.stop_radius_max > law.stop_radius_min:
        raise ValueError(f"stop_radius_max_m: {law.stop_radius_max} m, must be > stop_radius_min_m ({law.stop_radius_min} m)")
    angle = np.radians(t["latch_angle_deg"])
    for i in range(RING_LATCHES):
        azimuth = 2.0 * np.pi * (i // 2) / 3.0 + np.radians(t["latch_azimuth_deg"]) * (1 if i % 2 else -1)
        R = rotation_x(azimuth)
        out = R @ np.array([np.sin(angle), np.cos(angle), 0.0])
        tip = R @ np.array([t["latch_tip_x_m"], t["latch_tip_radius_m"], 0.0])
        inner = tip - t["latch_length_m"] * out
        for j in range(3):
            law.latch[i].tip[j] = tip[j]
            law.latch[i].inner[j] = inner[j]
            law.latch[i].out[j] = out[j]


cdef void fill_sensors(object t, const RingGeometry *g, RingSensors *s) except *:
    cdef int j, k
    s.protrusion = t["plunger_protrusion_m"]
    s.stiffness = t["plunger_stiffness_n_per_m"]
    s.preload = t["plunger_preload_n"]
    s.switch_compression = t["plunger_switch_m"]
    if not s.switch_compression < s.protrusion:
        raise ValueError(f"plunger_switch_m: {s.switch_compression} m, must be < plunger_protrusion_m ({s.protrusion} m)")
    for k in range(3):
        foot = rotation_x(g.azimuth[k] + np.pi / 3) @ np.array([0.0, g.outer_radius, 0.0])
        for j in range(3):
            s.position[k][j] = foot[j]


cdef class RingContact:
    """Contact of two equal rings on arrays: geometry from the parameter table of a ring unit (keys with units)."""

    cdef RingGeometry geometry
    cdef RingLatchLaw latches

    def __init__(self, table):
        fill_ring_geometry(table, &self.geometry)
        fill_latches(table, &self.latches)

    @property
    def chord_error(self):
        """Largest distance of the straight flank edge from the true intersection of cone and flank [m]."""
        return self.geometry.chord_error

    def contacts(self, p_TN, R_TN):
        """List of (depth, n (3,), r (3,), kind, index) of the active ring at p_TN, R_TN."""
        cdef double p[3]
        cdef double R[9]
        cdef Contact found[RING_CONTACTS]
        cdef int i, n
        rotation = np.asarray(R_TN, dtype=float).reshape(-1)
        for i in range(3):
            p[i] = p_TN[i]
        for i in range(9):
            R[i] = rotation[i]
        n = ring_contacts(&self.geometry, p, R, found)
        return [(found[i].depth, np.array([found[i].n[k] for k in range(3)]), np.array([found[i].r[k] for k in range(3)]),
                 found[i].kind, found[i].index) for i in range(n)]

    def petal(self, k, R_TN=None, p_TN=None):
        """Generators of petal k in T: (starts, vectors), (2^N + 1, 3) each; passive ring if no pose is given."""
        R = np.diag([-1.0, -1.0, 1.0]) if R_TN is None else np.asarray(R_TN)
        p = np.zeros(3) if p_TN is None else np.asarray(p_TN)
        count = (1 << self.geometry.levels) + 1
        turn = R @ rotation_x(self.geometry.azimuth[k])
        start = np.array([[self.geometry.start[i][j] for j in range(3)] for i in range(count)])
        along = np.array([[self.geometry.along[i][j] for j in range(3)] for i in range(count)])
        return start @ turn.T + p, along @ turn.T


def implicit_latch(h, mass, stiffness, preload, force, v, x):
    """One implicit Euler step of a latch: (v, x)."""
    cdef double v_out = v, x_out = x
    latch_step(h, mass, stiffness, preload, force, &v_out, &x_out)
    return v_out, x_out
