"""Central docking unit: parameters, snapshot, wrench on the base, sensors, stops and errata."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from rt_kernels.contact.restitution import damping, restitution_one_way
from rt_kernels.mechanisms.probe_cone.cover import implicit_euler
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone
from tests.docking_course import DT
from tests.mechanisms.probe_cone.shipped import DECLARED, NAMES, SIGNAL, captured, column, pose
from tests.mechanisms.shipped import shipped

# ------------------------------------------------------------------------------------------------------------- configuration


def test_shipped_configurations_are_marked_synthetic_and_build():
    existing = shipped("probe_cone_existing")
    assert set(existing) == set(DECLARED)
    # what friction is below its limit the file states; without it, it follows from the sub-steps, as in logs of older files
    friction = existing.pop("friction_damping_max_n_s_per_m")
    assert friction == 0.5 * existing["contact_mass_kg"] / (5e-4 / DECLARED["substeps"].default)
    assert existing.pop("substeps") == 8  # latches and rollers bear together: a quarter of what one contact's friction needs
    for key, value in existing.items():
        assert value == DECLARED[key].default, key
    for name in ("probe_cone_existing", "probe_cone_modified", "probe_cone_movable_limiter"):
        ProbeCone(**shipped(name))


def test_friction_below_its_limit_is_the_units_own():
    """Head sliding into the cone: what is stated counts whatever the sub-steps; not stated it follows from them (older logs)."""
    def slid(substeps, limit):
        part = ProbeCone(**shipped("probe_cone_existing") | {"substeps": substeps, "friction_damping_max_n_s_per_m": limit})
        return part.glide(pose(-0.64, y=0.08), [0.1, 0.0, 0.0, 0.0, 0.0, 0.0], DT, 200)[1]

    assert np.abs(slid(2, 8000.0)[:, 7:13]).max() > 10.0
    for substeps, limit in ((1, 4000.0), (2, 8000.0), (4, 16000.0)):
        assert np.array_equal(slid(substeps, limit), slid(substeps, None)), substeps
    assert not np.array_equal(slid(4, 8000.0), slid(4, None))
    keys = shipped("probe_cone_existing")
    assert ProbeCone.longest_substep_s(keys) == 2.5e-4
    assert ProbeCone.longest_substep_s(keys | {"friction_damping_max_n_s_per_m": None}) is None


@pytest.mark.parametrize(("key", "value", "words"), [
    ("head_radius_m", 0.061, "socket radius"),
    ("head_radius_m", -1.0, "must be a number within"),
    ("head_radiu_m", 0.05, "head_radiu_m: unknown key"),
    ("cone_profile_m", [[0.0, 0.4], [0.1, 0.3]], "cone_profile_m"),
    ("bend_return", [[0.0, 0.0], [1e-4, 0.8], [0.02, 170.0], [0.2, 1600.0]], "generate energy"),
    ("brake_table", [[0.0, 5.0], [1.0, 6.0]], "start at"),
    ("brake_axis", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], "brake chain"),
    ("groove_ramp_m", [0.02, 0.01], "ramp"),
    ("probe_length_m", 0.9, "probe_length_range_m"),
])
def test_wrong_parameters_are_named(key, value, words):
    with pytest.raises(ValueError, match=words):
        ProbeCone(**{key: value})


def test_N18_more_than_300_named_channels():
    assert len(NAMES) == len(set(NAMES)) > 300
    assert all(a.unit and a.meaning for a in ProbeCone.AUX)


def test_advance_of_the_plug_equals_glide():
    one, two = ProbeCone(), ProbeCone()
    X = pose(-0.52)
    out = one.advance(X, [0.1, 0, 0, 0, 0, 0], DT)
    _, rows = two.glide(X, [0.1, 0, 0, 0, 0, 0], DT, 1)
    assert np.array_equal(out["F_T"], rows[0, :6]) and np.array_equal(out["F_A"], rows[0, 6:12]) and out["signals"] == rows[0, 12]


def test_first_contact_is_found_by_bisection():
    part = ProbeCone()

    def deepest(x):
        return part.max_penetration(pose(x, 0.15, -0.10))

    low, high = -1.6, -0.7
    assert deepest(low) == 0.0 and deepest(high) > 1e-3
    while not 0.0 < deepest(high) <= 1e-6:
        middle = 0.5 * (low + high)
        if deepest(middle) > 0.0:
            high = middle
        else:
            low = middle
    # closed form on the first cone: half-angle from the profile, head centre at d from the axis
    a, d = np.arctan2(0.24, 0.30), np.hypot(0.15, 0.10)
    touch = 0.40 / np.tan(a) - d / np.tan(a) - 0.055 / np.sin(a)
    assert 0.0 < high + 0.95 - touch <= 1e-6 / np.sin(a) * 1.001


# -------------------------------------------------------------------------------------------------------------- base wrench


def test_base_and_target_wrench_balance_at_rest():
    part = ProbeCone()
    X, _ = captured(part, 0.03)
    X, _ = part.glide(X, [0, 0.02, -0.01, 0, 0, 0], DT, 1000)
    X, rows = part.glide(X, np.zeros(6), DT, 20000)
    F_T, F_A = rows[-1, :6], rows[-1, 6:12]
    assert abs(F_T[0]) > 500 and np.abs(F_T[1:3]).max() > 20
    R, p = Rotation.from_quat(X[3:]).as_matrix(), X[:3]
    force = R @ F_A[:3]
    moment = R @ F_A[3:] + np.cross(p, force)
    assert F_T[:3] + force == pytest.approx(np.zeros(3), abs=1e-3)
    assert F_T[3:] + moment == pytest.approx(np.zeros(3), abs=1e-3)


def test_impulses_on_target_and_ship_balance():
    """An impact off the axis, the unit at rest before and after it: the impulses on target and ship are opposite, force and moment about A.
    While the probe is pushed in they differ by its momentum relative to the base."""
    part, total = ProbeCone(), np.zeros(6)
    X = pose(-1.05, 0.01, 0.005)
    for V, ticks in (([0.1, 0, 0, 0, 0, 0], 11000), ([0.0] * 6, 60000)):
        start, (X, rows) = X, part.glide(X, V, DT, ticks)
        force, moment = rows[:, :3], rows[:, 3:6]
        arm = start[:3] + DT * np.arange(ticks)[:, None] * V[:3]
        total += DT * np.hstack([force, moment - np.cross(arm, force)]).sum(axis=0)
        total += DT * rows[:, 6:12].sum(axis=0)
        if any(V):
            assert np.abs(rows[:, 0]).sum() * DT > 50.0
            assert total[0] == pytest.approx(DECLARED["probe_mass_kg"].default * V[0], rel=1e-3)
    assert np.abs(part.rates).max() < 1e-9
    assert np.abs(total[:3]).max() < 1e-6 and np.abs(total[3:]).max() < 1e-3


# ------------------------------------------------------------------------------------------------------------------- errata


def test_E46_brake_opposes_the_speed_not_the_angle():
    part = ProbeCone(screw_friction=0.0)
    q = part.coordinates
    for stroke, rate in ((-0.02, 0.05), (-0.02, -0.05)):
        q[5] = 0.6 + stroke
        part.set_state(q, [0, 0, 0, 0, 0, rate, 0])
        _, rows = part.glide(pose(), np.zeros(6), 1e-6, 1)
        assert column(rows, "axial_friction")[0] * rate < 0


def test_E47_screw_friction_takes_energy_in_both_directions():
    """Pushed in by the contact force and pulled out: with the printed sign the loss would be negative in compression."""
    part = ProbeCone(screw_friction=0.2)
    X, _ = captured(part)
    losses = []
    for v in (0.05, -0.05):
        X, rows = part.glide(X, [v, 0, 0, 0, 0, 0], DT, 800)
        losses.append(np.diff(column(rows, "energy_lost_screw")))
        rate, friction = column(rows, "stroke_rate")[-1], column(rows, "axial_friction")[-1]
        assert rate * v < 0
        # against the motion, and as large as screw and brakes together: the printed sign would take the screw's part off in compression
        assert friction == pytest.approx(-np.sign(rate) * (column(rows, "screw_limit")[-1] + column(rows, "axial_brake")[-1]), rel=1e-9)
    assert all(step.min() >= 0 and step.sum() > 0.5 for step in losses)


def test_E48_E49_load_of_the_clutch_slows_the_drive_by_the_reflected_moment():
    """Retraction against a pull: the wheels slow down by the load times i_PG (printed: divided, 625 times more, and helping)."""
    free = ProbeCone()
    _, rows = free.glide(pose(), np.zeros(6), DT, 4000, commands=1)
    speed = column(rows, "drive_wheel_a_rate")[-1]
    v = {k: p.default for k, p in DECLARED.items()}
    no_load = (v["motor_stall_n_m"] - v["motor_friction_n_m"]) / v["motor_back_emf_n_m_s_per_rad"] / v["motor_ratio"][0]
    load = column(rows, "drive_load")[-1]
    i_PG = (v["reducer_radii_m"][0] / (2 * v["reducer_radii_m"][2])) ** 2
    assert i_PG == pytest.approx(0.04)

    def steady(load):
        per_wheel = 0.5 * i_PG * load / (v["drive_efficiency"] if load < 0 else 1 / v["drive_efficiency"])
        return no_load + per_wheel / (v["motor_ratio"][0] ** 2 * v["motor_back_emf_n_m_s_per_rad"])

    assert speed == pytest.approx(steady(load), rel=1e-6)
    # held by the latches the clutch pulls: the load is negative and slows the drive a little
    part = ProbeCone()
    X, _ = captured(part)
    X, rows = part.glide(X, np.zeros(6), DT, 140000, commands=1, every=100)
    assert column(rows, "drive_load")[-1] < -1.0
    pulled = column(rows, "drive_wheel_a_rate")[-1]
    assert 0.7 * speed < pulled < speed
    assert pulled == pytest.approx(steady(column(rows, "drive_load")[-1]), rel=1e-3)
    # the pull is limited by the clutch
    assert column(rows, "contact_f_x").max() == pytest.approx(100.0 * 0.25 * 2 * np.pi / 0.02, rel=0.08)


def test_E50_E51_differential_inertia_from_the_kinetic_energy():
    """One step from rest: the wheels' accelerations against the inertia matrix built from the kinetic energy."""
    v = {k: p.default for k, p in DECLARED.items()}
    v["wheel_radii_m"], v["motor_ratio"] = [0.02, 0.024, 0.022, 0.01], [100.0, 90.0]
    part = ProbeCone(**{k: v[k] for k in ("wheel_radii_m", "motor_ratio")})
    dt = 1e-6
    _, rows = part.glide(pose(), np.zeros(6), dt, 1, commands=1)
    Ra, Rb, RH, Rg = v["wheel_radii_m"]
    Ia, Ib, IH, Ig = v["wheel_inertia_kg_m2"]
    Ga, Gb, GH, Gg = v["reducer_radii_m"]
    JGa, JGH, JGg = v["reducer_inertia_kg_m2"]
    n = v["planets"]

    def energy(a, b):
        H, g = (Ra * a + Rb * b) / (2 * RH), (Rb * b - Ra * a) / (2 * Rg)
        stage, total = H, 0.0
        for _ in range(2):                                     # two planetary stages, the ring gear at rest
            carrier, planet = stage * Ga / (2 * GH), stage * Ga / (2 * Gg)
            total += JGa * stage**2 + JGH * (stage * Ga / (Ga + Gb)) ** 2 + n * JGg * planet**2
            stage = carrier
        return 0.5 * (Ia * a**2 + Ib * b**2 + IH * H**2 + n * Ig * g**2 + total)

    A = np.array([[energy(1, 0) * 2, energy(1, 1) - energy(1, 0) - energy(0, 1)],
                  [energy(1, 1) - energy(1, 0) - energy(0, 1), energy(0, 1) * 2]])
    net = v["motor_stall_n_m"] - v["motor_friction_n_m"]
    expected = np.linalg.solve(A, net * np.array(v["motor_ratio"])) * dt
    got = column(rows, "drive_wheel_a_rate")[0], column(rows, "drive_wheel_b_rate")[0]
    assert got == pytest.approx(expected, rel=1e-4)


def test_drive_extends_to_the_initial_position():
    part = ProbeCone()
    X, _ = part.glide(pose(), np.zeros(6), DT, 20000, commands=1, every=20000)
    assert part.coordinates[5] < 0.595
    _, rows = part.glide(X, np.zeros(6), DT, 60000, commands=1 | 8, every=100)
    assert int(rows[-1, 12]) & 8 and part.coordinates[5] == pytest.approx(0.6, abs=2e-3)


def test_E53_E52_N17_head_frame_is_turned_by_the_end_slope():
    """Slope at the end of the beam 1.5 delta/l: the latch plane follows 1.5 sin q3, 1.5 sin q4, not q4, q5."""
    part = ProbeCone()
    q = np.array([0, 0, 0.02, -0.03, 0, 0.6, 0.0])
    part.set_state(q, np.zeros(7))
    _, rows = part.glide(pose(-0.55), np.zeros(6), 1e-9, 1)
    tips = np.array([[column(rows, f"latch{k}_tip_{axis}")[0] for axis in "xyz"] for k in (1, 2, 3, 4)])
    centre = tips.mean(axis=0)
    head = np.array([column(rows, f"head_{axis}")[0] for axis in "xyz"])
    axis = (head - centre) / np.linalg.norm(head - centre)
    # about Y by q3, then Z: the axis of a beam whose end slope is 1.5 sin q
    s3, s4 = 1.5 * np.sin(0.02), 1.5 * np.sin(-0.03)
    expected = np.array([np.cos(s4) * np.cos(s3), np.sin(s4), -np.cos(s4) * np.sin(s3)])
    assert axis == pytest.approx(expected, abs=2e-5)
    assert (tips[0] - tips[2]) @ (tips[1] - tips[3]) == pytest.approx(0.0, abs=1e-15)


def test_N17_bending_stiffness_goes_with_the_inverse_length():
    moments = []
    for length in (0.6, 0.4):
        part = ProbeCone(bend_damping_n_m_s_per_rad=0.0, probe_start_m=length)
        part.set_state([0, 0, 0.0, 0, 0, length, 0], [0, 0, 0.5, 0, 0, 0, 0])
        _, rows = part.glide(pose(), np.zeros(6), DT, 3)
        moments.append(column(rows, "joint_bend_y")[-1] / column(rows, "bend_y")[-2])
        assert column(rows, "joint_stiffening")[-1] == pytest.approx(0.6 / column(rows, "length")[-2], rel=1e-3)
    assert moments[1] / moments[0] == pytest.approx(0.6 / 0.4, rel=0.02)


def test_golden_hatch_cover_step():
    h, m, k, c, f_beg, x_beg, f, v, x = 5e-4, 80.0, 4e6, 3e3, 500.0, 1e-4, 2500.0, 0.01, 3e-4
    got = implicit_euler(h, m, k, c, f - f_beg - k * (x - x_beg), v, x)
    assert got == pytest.approx((0.01696969696969697, 3.0848484848484844e-4), rel=1e-14)
    A = np.array([[1 + h * c / m, h * k / m], [-h, 1]])
    assert got == pytest.approx(tuple(np.linalg.solve(A, [v + (f - f_beg + k * x_beg) * h / m, x])), rel=1e-12)


def test_N6_stop_cone_of_45_degrees():
    from rt_kernels.contact.primitives import Cavity

    stop = Cavity([(0.0, 0.30), (0.1, 0.20)])
    (c,) = stop.sphere((0.05, 0.26, 0.0), 0.0)
    assert c["depth"] == pytest.approx((0.26 - (0.30 - 0.05)) / np.sqrt(2), abs=1e-15)
    assert c["n"] == pytest.approx((1 / np.sqrt(2), 1 / np.sqrt(2), 0))


# ---------------------------------------------------------------------------------------------------- stops, planes, valid range


def test_N16_lateral_stops_in_eight_equally_spaced_directions():
    """Swing limit over direction: the hard directions (spring or crank exhausted first) lie at multiples of 45 degrees."""
    part = ProbeCone()
    directions = np.radians(np.arange(0, 360, 7.5))
    limit = []
    for a in directions:
        for swing in np.arange(0.02, 0.5, 0.002):
            part.set_state([swing * -np.sin(a), swing * np.cos(a), 0, 0, 0, 0.6, 0], np.zeros(7))
            _, rows = part.glide(pose(), np.zeros(6), 1e-9, 1)
            strokes = [abs(column(rows, f"spring{i}_stroke")[0]) for i in (1, 2)]
            angles = [abs(column(rows, f"brake{i}_angle")[0]) for i in (1, 2)]
            if max(strokes) > 0.045 or max(angles) > 0.60:
                break
        limit.append(swing)
    limit = np.array(limit)
    nearest = np.array([i for i in range(len(limit)) if limit[i] <= limit[i - 1] and limit[i] <= limit[(i + 1) % len(limit)]])
    degrees = np.degrees(directions[nearest]) % 45
    assert np.all(np.minimum(degrees, 45 - degrees) <= 7.5)
    sectors = {int(round(d / 45)) % 8 for d in np.degrees(directions[nearest])}
    assert sectors == set(range(8))


@pytest.mark.parametrize("tilt", [0.0, 0.008, 0.03])
@pytest.mark.parametrize("axis", [1, 2])
def test_planes_are_together_only_when_all_four_gaps_are_closed(axis, tilt):
    """At the pushers' 0.6 m a tilt of 0.008 rad opens one side by 4.8 mm more and closes the other; one closed gap says nothing."""
    gaps = {}
    for gap in (0.0049, 0.0151, 0.03):
        part, angles = ProbeCone(together_gap_m=0.010), [0.0, 0.0, 0.0]
        angles[axis - 1] = tilt
        out = part.advance(pose(-0.3 * np.cos(tilt) - gap, angles=angles), np.zeros(6), 1e-7, aux=(aux := np.zeros(len(NAMES))))
        four = np.array([aux[NAMES.index(f"pusher{i}_gap")] for i in range(1, 5)])
        assert four.max() - four.min() == pytest.approx(1.2 * np.sin(tilt), rel=1e-9, abs=1e-12) and four.mean() == pytest.approx(gap)
        assert aux[NAMES.index("plane_gap")] == out["analog"][3] == four.max()
        gaps[gap] = (bool(out["signals"] & SIGNAL["planes_together"]), bool(out["signals"] & SIGNAL["pushers"]))
        assert gaps[gap][0] == (four.max() <= 0.010) and gaps[gap][1] == (four.min() < 0.020)
    assert gaps[0.0049][0] == (tilt < 0.0085) and not gaps[0.0151][0]


def test_a_pusher_is_damped_on_its_way_in_alone():
    """A mass on one pusher has the stated restitution; the way out has the spring's force."""
    k, m, e = (DECLARED[f"pusher_{key}"].default for key in ("stiffness_n_per_m", "mass_kg", "restitution"))
    c = damping(k, m, e, restitution_one_way)
    y = solve_ivp(lambda t, y: [y[1], -(k * y[0] + c * max(y[1], 0.0)) / m], (0.0, 100.0), [0.0, 1.0], rtol=1e-9, atol=1e-9,
                  events=lambda t, y: y[0] if t > 1.0 else 1.0)  # fmt: skip
    assert -y.y_events[0][0, 1] == pytest.approx(e, rel=1e-4)
    forces = []
    for speed in (1e-3, -1e-3):
        ProbeCone().advance(pose(-0.31), [speed, 0, 0, 0, 0, 0], 1e-7, aux=(aux := np.zeros(len(NAMES))))
        forces.append(aux[NAMES.index("pusher2_force")])
    assert forces == pytest.approx([k * 0.010 + c * 1e-3, k * 0.010], rel=1e-5)


def test_planes_that_close_flat_have_the_stated_restitution():
    """Two craft, flat, at 5 mm/s, without pushers, and the probe too short to reach the cone: speed after over speed before."""
    mass = DECLARED["plane_mass_kg"].default
    part = ProbeCone(pusher_stiffness_n_per_m=0.0, exit_x_m=0.0, probe_length_m=0.2, probe_length_range_m=[0.05, 0.25], levers=False,
                     lining_front_m=[0.2, 0.15], lining_rear_m=[0.05, 0.345])  # fmt: skip
    X, v, dt = pose(-0.3 - 1e-5), 5e-3, 1e-4
    out = part.advance(X, [v, 0, 0, 0, 0, 0], dt)
    for _ in range(5000):
        v -= dt * out["F_T"][0] / mass
        X[0] += dt * v
        out = part.advance(X, [v, 0, 0, 0, 0, 0], dt)
        if v < 0.0 and X[0] < -0.3 - 1e-5:
            break
    assert -v / 5e-3 == pytest.approx(DECLARED["plane_restitution"].default, rel=0.02)


@pytest.mark.parametrize(("coordinate", "end"), [(2, 0.2), (4, 0.2)], ids=["bending", "torsion"])
def test_an_elastic_element_beyond_its_table_is_out_of_the_valid_range(coordinate, end):
    part = ProbeCone()
    for share, status in ((0.99, 0), (1.01, 1), (-1.01, 1)):
        state = part.coordinates
        state[coordinate] = share * end
        part.set_state(state, np.zeros(7))
        assert part.advance(pose(-2.0), np.zeros(6), 1e-7)["status"] == status, share


def test_penetration_beyond_the_contact_law_is_out_of_the_valid_range():
    """Head on the bottom of the socket, 1.9 and 2.1 mm deep; the law is declared valid to 2 mm."""
    for depth, status in ((0.0019, 0), (0.0021, 1)):
        assert ProbeCone().advance(pose(0.5 - 0.055 - 0.95 + depth), np.zeros(6), 1e-7)["status"] == status


def test_a_lining_that_slides_into_the_mouth_gives_no_energy():
    """Along the cone, half a millimetre deep, until its rear end is inside: edge on the mouth, then end on the cone. Depth does not jump,
    and what the contact stores is the work of its force."""
    normal, along = np.array([0.24, 0.3]) / np.hypot(0.24, 0.3), np.array([0.3, -0.24]) / np.hypot(0.3, 0.24)
    ways, depths, forces = [], [], []
    for s in np.linspace(-3e-3, 4e-3, 141):
        x, y = np.array([-0.35, 0.4 - 0.345]) + s * along + 5e-4 * normal
        part = ProbeCone(exit_x_m=0.0, probe_length_m=0.2, probe_length_range_m=[0.05, 0.25], levers=False)
        aux = np.zeros(len(NAMES))
        part.advance([x, y, *pose(x)[2:]], np.zeros(6), 1e-7, aux=aux)
        depth, n_x, n_y = (aux[NAMES.index(f"lining1_{key}")] for key in ("depth", "n_x", "n_y"))
        ways.append((x, y))
        depths.append(depth)
        forces.append((depth * n_x, depth * n_y))
    depths, way, force = np.array(depths), np.diff(ways, axis=0), np.array(forces)
    assert 4e-4 < depths.min() and np.abs(np.diff(depths)).max() < 1e-6
    work = np.cumsum(0.5 * np.sum((force[1:] + force[:-1]) * way, axis=1))
    stored = 0.5 * (depths[1:] ** 2 - depths[0] ** 2)
    assert np.abs(stored - work).max() < 2e-3 * 0.5 * depths[0] ** 2


def test_N12_ratios_of_the_modified_damper():
    v = shipped("probe_cone_modified")
    existing = {k: p.default for k, p in DECLARED.items()}
    assert v["brake1_moment_n_m"][0] / v["brake2_moment_n_m"][0] == pytest.approx(0.25, rel=0.02)
    assert v["brake1_moment_n_m"][1] / v["brake1_moment_n_m"][0] == pytest.approx(1 / 3, rel=1e-6)
    assert v["brake2_moment_n_m"][1] > v["brake2_moment_n_m"][0]
    # brake 2 is as strong as the clutch of the existing unit
    assert v["brake2_moment_n_m"][0] == existing["axial_forward"][-1][1]
    travel = existing["axial_forward"][3][0] - existing["axial_forward"][2][0]
    assert v["brake1_stroke_rad"] / travel == pytest.approx(2.5, rel=0.01)
    # and the unit shows them: plateau of brake 1 while the probe is pushed in
    part = ProbeCone(**v, screw_friction=0.0)
    X, _ = part.glide(pose(-0.755 - 0.06), [0.05, 0, 0, 0, 0, 0], DT, 5000)
    _, rows = part.glide(X, [0.05, 0, 0, 0, 0, 0], DT, 200)
    assert rows[-1, 0] == pytest.approx(v["brake1_moment_n_m"][0] * 0.25 * 2 * np.pi / 0.02, rel=0.06)
    assert column(rows, "clutch_slip1")[-1] > 1.0 and column(rows, "clutch_slip")[-1] == 0.0
