"""Parameters that every peripheral (ring) docking unit declares: rings, petals, contact, latches, sensors, legs."""

import numpy as np

from rt_kernels.mechanisms.ring.platform import RingPlatform, leg_axes
from rt_kernels.parameters import Parameter


def _f(key: str, unit: str, meaning: str, low: float = 0.0, high: float = 1e9, **more) -> Parameter:
    return Parameter(key, "float", unit, meaning, low=low, high=high, **more)


def _number(key: str, meaning: str, high: int, last: str = "") -> Parameter:
    """The number of a failed part, 0: none; `last`: what the highest number means."""
    meaning = f"number of the {meaning}, 0: none" + (f", {high}: {last}" if last else "")
    return Parameter(key, "int", "-", meaning, default=0, low=0, high=high)


RING_PARAMETERS = (
    _f("inner_radius_m", "m", "inner circle of the ring plane, R_R", 0.05, 5.0),
    _f("face_radius_m", "m", "outer edge of the ring face", 0.05, 5.0),
    _f("petal_height_m", "m", "height of the guide petals", 0.01, 1.0),
    _f("petal_half_angle_deg", "deg", "half-angle of the petals' outer cone", 5.0, 80.0),
    _f("petal_clearance_m", "m", "play between petal roots and the other ring's inner circle", 0.0, 0.05),
    _f("petal_base_azimuth_deg", "deg", "half-width of a petal at the ring plane", 1.0, 30.0),
    _f("petal_tip_azimuth_deg", "deg", "half-width of a petal at its tip", 0.5, 30.0),
    _f("petal_thickness_m", "m", "radial depth of the flanks", 1e-3, 0.3),
    Parameter("generator_levels", "int", "-", "N: 2^N + 1 generators per petal", default=8, low=2, high=8),
    _f("contact_stiffness_n_per_m", "N/m", "k_S of ring contacts", 1e3, 1e9),
    _f("contact_damping_n_s_per_m", "N.s/m", "c_D of ring contacts; at least k_S times half a step", 0.0, 1e6),
    _f("contact_ramp_m", "m", "penetration over which the contact damper comes in", 0.0, 0.01, default=2e-4),
    _f("friction", "-", "friction coefficient", 0.0, 1.5, default=0.1),
    _f("slip_speed_m_s", "m/s", "regularisation of friction", 1e-6, 0.1, default=1e-3),
    _f("friction_damping_max_n_s_per_m", "N.s/m", "greatest friction force per slip speed: below its share of the limit friction is "
       "viscous; not given: half of ring_mass_kg over a sub-step of a tick of 1 ms", 1.0, 1e9, default=None),
    _f("depth_limit_m", "m", "greatest penetration; beyond it the model is out of its range", 1e-4, 0.1, default=0.03),
    _f("together_gap_m", "m", "the docking planes are together when their gap is at most this all round", 0.0, 0.1, default=0.010),
    _f("latch_mass_kg", "kg", "latch mass reduced to its travel", 1e-3, 10.0),
    _f("latch_stiffness_n_per_m", "N/m", "latch spring", 0.0, 1e6),
    _f("latch_preload_n", "N", "latch spring at rest", 0.0, 1e4),
    _f("latch_contact_stiffness_n_per_m", "N/m", "k_LS of a latch on its stop", 1e3, 1e9),
    _f("latch_tip_x_m", "m", "latch tip above the ring plane", -0.2, 0.5),
    _f("latch_tip_radius_m", "m", "latch tip from the axis", 0.05, 5.0),
    _f("latch_angle_deg", "deg", "latch line from the radial direction towards +X", 1.0, 80.0),
    _f("latch_length_m", "m", "length of the latch's locking segment", 1e-3, 0.5),
    _f("latch_azimuth_deg", "deg", "the two latches of a pair, from the middle of the petal", 0.0, 30.0),
    _f("latch_stroke_m", "m", "greatest compression of a latch", 1e-3, 0.2),
    _f("stop_radius_min_m", "m", "edge of the stops from the axis", 0.05, 5.0),
    _f("stop_radius_max_m", "m", "guiding cone of the stops at the ring plane", 0.05, 5.0),
    _f("plunger_protrusion_m", "m", "free plunger of an alignment sensor above the ring plane", 1e-4, 0.05),
    _f("plunger_stiffness_n_per_m", "N/m", "plunger spring", 0.0, 1e6),
    _f("plunger_preload_n", "N", "plunger spring at rest", 0.0, 1e3),
    _f("plunger_switch_m", "m", "compression at which an alignment sensor switches", 1e-5, 0.05),
    _f("base_joint_radius_m", "m", "leg joints on the base", 0.05, 5.0),
    _f("ring_joint_radius_m", "m", "leg joints on the ring", 0.05, 5.0),
    _f("base_joint_azimuth_deg", "deg", "base joints of a pair of struts, from its middle", 0.0, 60.0),
    _f("ring_joint_azimuth_deg", "deg", "ring joints of the same struts, from the same middle", 0.0, 60.0),
    _f("ready_distance_m", "m", "ring plane before the base plane in the initial position", 0.01, 5.0),
    _f("ring_mass_kg", "kg", "ring with petals and latches", 0.1, 1e4),
    Parameter("ring_inertia_kg_m2", "floats", "kg.m2", "ring about its centre: about X, Y, Z", low=1e-4, high=1e5, shape=3),
    _f("strut_mass_kg", "kg", "outer part of a leg", 1e-3, 1e3),
    _f("strut_centre_m", "m", "its centre of mass from the base joint", 0.0, 5.0),
    _f("strut_inertia_kg_m2", "kg.m2", "transverse, about its centre of mass", 1e-6, 1e4),
    _f("rod_mass_kg", "kg", "rod of a leg", 1e-3, 1e3),
    _f("rod_centre_m", "m", "its centre of mass behind the ring joint", 0.0, 5.0),
    _f("rod_inertia_kg_m2", "kg.m2", "transverse, about its centre of mass", 1e-6, 1e4),
    _f("rod_axial_inertia_kg_m2", "kg.m2", "about its axis (and that of the outer part)", 1e-7, 1e3),
    Parameter("substeps", "int", "-", "internal steps per tick", default=1, low=1, high=50),
    # interface
    _f("plane_x_m", "m", "docking plane before the base plane; not given: a unit without planes, pins and nest", 0.0, 5.0, default=None),
    _f("pusher_radius_m", "m", "the four pushers, and the two guide pins between them, from the axis", 0.05, 5.0, default=0.70),
    _f("pusher_length_m", "m", "free length of a pusher above its plane", 0.0, 1.0, default=0.050),
    _f("pusher_stiffness_n_per_m", "N/m", "stiffness of one pusher", 0.0, 1e8, default=3000.0),
    _f("plane_stiffness_n_per_m", "N/m", "of the docking planes at one of four places", 1e3, 1e9, default=1e6),
    _f("plane_restitution", "-", "of docking planes that close flat, speed after over speed before", 0.15, 0.99, default=0.3),
    _f("plane_mass_kg", "kg", "reduced mass of the units of that blow", 1.0, 1e6, default=5000.0),
    _f("plane_friction", "-", "friction coefficient of planes and pins", 0.0, 1.5, default=0.1),
    _f("plane_depth_max_m", "m", "greatest penetration of planes and pins; beyond it the model is out of its range", 1e-5, 0.1,
       default=2e-3),
    _f("plane_preload_n", "N", "force of the planes at which the drive is stopped and the ring latched in its nest", 0.0, 1e6,
       default=300.0),
    _f("plane_press_s", "s", "for so long that force has lasted then", 0.0, 10.0, default=0.1),
    _f("pin_length_m", "m", "guide pins above the docking plane", 1e-3, 1.0, default=0.050),
    _f("pin_nose_radius_m", "m", "spherical ends of the guide pins", 1e-3, 0.1, default=0.010),
    _f("pin_clearance_m", "m", "between a pin and the cylinder of its socket", 0.0, 0.01, default=3e-4),
    _f("socket_mouth_m", "m", "radius of a socket's mouth; its cone has 45 deg", 2e-3, 0.2, default=0.035),
    _f("nest_x_m", "m", "seats of the ring's nest before the base plane", 0.0, 5.0, default=0.0),
    _f("nest_stiffness_n_per_m", "N/m", "of one of its three seats", 0.0, 1e9, default=1e6),
    _f("nest_damping_n_s_per_m", "N.s/m", "of one of its three seats", 0.0, 1e6, default=2000.0),
    # failed parts, each a number of its own so that a campaign can vary it; as declared: nothing has failed
    _number("latch_jammed", "pair of latches that is jammed inside its petal", 4, "all"),
    _number("latch_stays", "pair of latches that the release does not draw in", 4, "all"),
    _number("sensor_dead", "alignment sensor whose switch does not close", 3),
    _number("spring_broken", "leg whose spring is broken", 6),
    _number("pusher_dead", "pusher that does not push", 4),
    Parameter("nest_latches_dead", "bool", "-", "the latches of the nest do not close", default=False),
)


def longest_substep_s(keys) -> float | None:
    """Longest sub-step with which friction takes at most half of the slip of the ring alone, s; None where the friction follows from the
    sub-steps."""
    damping = keys["friction_damping_max_n_s_per_m"]
    return None if damping is None else 0.5 * keys["ring_mass_kg"] / damping


def joint_circles(t: dict) -> tuple[np.ndarray, np.ndarray]:
    """Base joints (6, 3) in the base and ring joints (6, 3) in the ring: pairs of struts at 60, 180, 300 deg."""
    base, ring = [], []
    for k in range(6):
        middle, sign = np.pi / 3 + 2 * np.pi * (k // 2) / 3, (1 if k % 2 else -1)
        a = middle + sign * np.radians(t["base_joint_azimuth_deg"])
        b = middle + sign * np.radians(t["ring_joint_azimuth_deg"])
        base.append([0.0, t["base_joint_radius_m"] * np.cos(a), t["base_joint_radius_m"] * np.sin(a)])
        ring.append([0.0, t["ring_joint_radius_m"] * np.cos(b), t["ring_joint_radius_m"] * np.sin(b)])
    return np.array(base), np.array(ring)


CRANKS = "RUS", "RSU"


def legs_of(t: dict) -> list[dict]:
    """Leg tables of the plain ring unit by its `leg_kind`. ValueError: a crank without its length, or without docking planes."""
    if t["leg_kind"] not in CRANKS:
        return strut_legs(t, t["leg_kind"])
    for key in ("crank_length_m", "plane_x_m"):
        if t[key] is None:
            raise ValueError(f"{key}: not given; legs of the kind {t['leg_kind']} need it")
    return crank_legs(t, t["leg_kind"])


def leg_bodies(t: dict, rod_centre: float) -> tuple:
    """Bodies of `build_leg`: what is joined to the base, and the rod with its centre of mass at `rod_centre` along its axis, m."""
    axial = t["rod_axial_inertia_kg_m2"]
    return tuple((t[f"{name}_mass_kg"], [centre, 0, 0], np.diag([axial, t[f"{name}_inertia_kg_m2"], t[f"{name}_inertia_kg_m2"]]))
                 for name, centre in (("strut", t["strut_centre_m"]), ("rod", rod_centre)))


def strut_legs(t: dict, kind: str, **more) -> list[dict]:
    """Leg tables (see ring.platform.build_leg) of six struts, "UPS", "SPU" or "UCU"; stroke and spin zero in the initial position.

    The joint axes of the two struts of a pair are mirror images, their screws have opposite hands.
    """
    base, ring = joint_circles(t)
    legs = []
    for k in range(6):
        nominal = np.array([t["ready_distance_m"], 0.0, 0.0]) + ring[k]
        middle = np.pi / 3 + 2 * np.pi * (k // 2) / 3
        axes = leg_axes(base[k], nominal, (0.0, np.cos(middle), np.sin(middle)))
        length = float(np.linalg.norm(nominal - base[k]))
        strut, rod = leg_bodies(t, -t["rod_centre_m"])
        table = {"kind": kind, "p_0J": base[k], "R_0J": axes, "p_NQ": ring[k], "e_N": axes[:, 2],
                 "links": {"UPS": [0, length, 0], "SPU": [0, 0, length, 0], "UCU": [0, length, 0, 0]}[kind],
                 "bodies": {"UPS": [None, strut, rod], "SPU": [None, None, strut, rod], "UCU": [None, strut, None, rod]}[kind],
                 "hand": 1.0 if k % 2 else -1.0}
        legs.append(table | more)
    return legs


def crank_legs(t: dict, kind: str) -> list[dict]:
    """Leg tables of six cranks with links (Hunt's platform), "RUS" or "RSU"; all angles zero in the initial position, where crank and
    link lie in the plane of the docking axis and both joints of the leg. The crank turns towards the ring with a positive angle.

    The outer part of a strut is the crank here, its rod the link. ValueError: the two are in line.
    """
    base, ring = joint_circles(t)
    ahead, angle = np.array([1.0, 0.0, 0.0]), np.radians(t["crank_angle_deg"])
    legs = []
    for k in range(6):
        way = np.array([t["ready_distance_m"], 0.0, 0.0]) + ring[k] - base[k]
        across = way - way[0] * ahead
        across /= np.linalg.norm(across)
        along = np.cos(angle) * across + np.sin(angle) * ahead
        axes = np.column_stack([along, np.cos(angle) * ahead - np.sin(angle) * across, np.cross(across, ahead)])
        link = axes.T @ way - [t["crank_length_m"], 0.0, 0.0]
        length = float(np.linalg.norm(link))
        if length < 0.05 * t["crank_length_m"] or abs(link[1]) < 0.05 * length:
            raise ValueError(f"crank_angle_deg: {t['crank_angle_deg']} deg: crank and link are in line at the start, limit 3 deg off")
        c, s = link[:2] / length
        crank, rod = leg_bodies(t, length - t["rod_centre_m"])
        free = [0] * (kind == "RSU")
        legs.append({"kind": kind, "p_0J": base[k], "R_0J": axes, "R_LU": np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]),
                     "elbow": -float(np.sign(link[1])), "p_NQ": ring[k], "e_N": axes[:, 2],
                     "links": [t["crank_length_m"], 0, *free, length], "bodies": [crank, None, *[None for _ in free], rod]})
    return legs


def crank_ends(t: dict, p_0N, R_0N) -> np.ndarray:
    """(6, 3) ends of the cranks in the base with the ring at p_0N (3,), R_0N (3, 3). ValueError: the pose is outside the workspace."""
    legs = crank_legs(t, t["leg_kind"])
    angles, _ = RingPlatform(legs, 1.0, np.eye(3)).place(p_0N, R_0N)
    return np.array([leg["p_0J"] + leg["links"][0] * leg["R_0J"][:, :2] @ [np.cos(p[0]), np.sin(p[0])]
                     for leg, p in zip(legs, angles, strict=True)])
