"""Berthing devices: hinge step, deepest generator and sphere against full scans, closed forms, order of events."""

import tomllib

import numpy as np
import pytest
import sympy
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.berthing_head import BerthingHead, hinge_step
from rt_kernels.mechanisms.berthing_pins import BerthingPins
from rt_kernels.mechanisms.ring_trial import aux_index


def shipped(pytestconfig, name):
    with open(pytestconfig.rootpath / f"stand_configs/mechanisms/{name}.toml", "rb") as file:
        data = tomllib.load(file)
    assert data["synthetic"] is True
    return {key: value for key, value in data.items() if key not in ("part", "name", "synthetic", "source")}


@pytest.fixture(scope="module")
def head_table(pytestconfig):
    return shipped(pytestconfig, "berthing_head")


@pytest.fixture(scope="module")
def pin_table(pytestconfig):
    return shipped(pytestconfig, "usa_usp")


def insert(unit, start, speed, duration, mass=300.0, stiffness=2e3, damping=800.0, dt=5e-4, q=(0, 0, 0, 1), every=10):
    """The base on an elastic arm (springs and dampers along the axes) whose far end moves at `speed` along X.

    Returns arrays t, p, v, F_T, aux, signals, status.
    """
    p, v, hand = np.array(start, dtype=float), np.array([speed, 0.0, 0.0]), np.array(start, dtype=float)
    aux, rows = np.zeros(sum(c.count for c in unit.AUX)), []
    R = Rotation.from_quat(q)
    for i in range(int(duration / dt)):
        out = unit.advance([*p, *q], [*v, 0, 0, 0], dt, aux=aux)
        hand[0] += dt * speed
        v += dt / mass * (R.apply(out["F_A"][:3]) + stiffness * (hand - p) + damping * ([speed, 0, 0] - v))
        p += dt * v
        if i % every == 0:
            rows.append(((i + 1) * dt, p.copy(), v.copy(), out["F_T"], aux.copy(), out["signals"], out["status"]))
    return {name: np.array([row[k] for row in rows]) for k, name in enumerate(("t", "p", "v", "F_T", "aux", "signals", "status"))}


def column(unit, out, name):
    return out["aux"][:, aux_index(unit, name)]


def test_hinge_step_is_implicit_euler_of_the_one_sided_stop():
    """Residual of J w' = m - k (psi - sg psi0) - c w, psi' = w at the new time is zero, for both signs.

    The printed form has the spring inside the free angle as well: there the head must be free.
    """
    rng = np.random.default_rng(0)
    J, k, c, psi0, h = 0.01, 4000.0, 4.0, np.radians(1.0), 5e-4
    for _ in range(100):
        psi, w, m = rng.uniform(-0.04, 0.04), rng.normal(), rng.normal(scale=5.0)
        w1, psi1 = hinge_step(h, J, k, c, psi0, m, w, psi)
        if abs(psi) > psi0:
            sg = np.sign(psi)
            assert abs(J * (w1 - w) / h - (m - k * (psi1 - sg * psi0) - c * w1)) < 1e-10 * max(1.0, abs(m) + k * 0.04)
        else:
            assert w1 == pytest.approx(w + h * m / J, rel=1e-14)
        assert psi1 == pytest.approx(psi + h * w1, rel=1e-12)


def test_hinge_step_solves_the_symbolic_system():
    J, k, c, p0, h, m, w, psi, w1, psi1 = sympy.symbols("J k c p0 h m w psi w1 psi1", positive=True)
    solution = sympy.solve([J * (w1 - w) / h - (m - k * (psi1 - p0) - c * w1), psi1 - psi - h * w1], [w1, psi1], dict=True)[0]
    numbers = {J: 0.01, k: 4000.0, c: 4.0, p0: 0.0174, h: 5e-4, m: 1.3, w: -0.4, psi: 0.021}
    got = hinge_step(5e-4, 0.01, 4000.0, 4.0, 0.0174, 1.3, -0.4, 0.021)
    assert got[0] == pytest.approx(float(solution[w1].subs(numbers)), rel=1e-12)
    assert got[1] == pytest.approx(float(solution[psi1].subs(numbers)), rel=1e-12)


# -- head -----------------------------------------------------------------------------------------------------------------------------


def test_sphere_on_the_cone_closed_form(head_table):
    """Front sphere moved sideways onto the cone: touch at x = x_T - d ctg a - R/sin a, depth = dx sin a."""
    t = head_table
    unit = BerthingHead(**t)
    a = np.arctan2(t["mouth_radius_m"] - t["stop_radius_m"], t["cone_height_m"])
    vertex = t["plane_x_m"] + t["mouth_radius_m"] / np.tan(a)
    offset = 0.022
    touch = vertex - offset / np.tan(a) - t["sphere_radius_m"][0] / np.sin(a)
    x_A = touch - t["hinge_x_m"] - t["sphere_x_m"][0]
    contacts = unit.contacts([x_A + 1e-4, offset, 0, 0, 0, 0, 1])
    depth = [c for c in contacts if abs(c[0] - 1e-4 * np.sin(a)) < 1e-9]
    assert len(depth) == 1
    np.testing.assert_allclose(depth[0][1], [np.sin(a), np.cos(a), 0], atol=1e-12)
    assert all(c[0] < 0.02 for c in contacts)


def test_deepest_generator_equals_a_full_scan(head_table):
    """The rear head cone against the stop circle, tilted and shifted: depth of the best of all 257 generators."""
    t = head_table
    unit = BerthingHead(**t)
    entry = t["plane_x_m"] + t["cone_height_m"] + t["stop_thickness_m"]
    x1, r1, x2, r2 = t["cone_x_m"][1]
    rng = np.random.default_rng(2)
    checked = found = 0
    for _ in range(60):
        axis = rng.normal(size=3)
        R = Rotation.from_rotvec(np.radians(rng.uniform(0, 2)) * axis / np.linalg.norm(axis))
        p = np.array([entry - t["hinge_x_m"] - 0.08, *rng.uniform(-0.004, 0.004, 2)])
        hinge = p + R.apply([t["hinge_x_m"], 0, 0])
        azimuth = np.linspace(0, 2 * np.pi, 257)
        start = hinge + R.apply(np.column_stack([np.full(257, x2), r2 * np.cos(azimuth), r2 * np.sin(azimuth)]))
        along = R.apply(np.column_stack([np.full(257, x1 - x2), (r1 - r2) * np.cos(azimuth), (r1 - r2) * np.sin(azimuth)]))
        s = (entry - start[:, 0]) / along[:, 0]
        radius = np.hypot(*(start + s[:, None] * along)[:, 1:].T)
        best = int(np.argmax(radius))
        excess = radius[best] - t["stop_radius_m"]
        if excess < 1e-5:
            continue
        checked += 1
        # a touch point at the stop's edge, or a deeper one of the head's sphere on the same side of the cylinder
        azimuth = np.array([np.cos(azimuth[best]), np.sin(azimuth[best])])
        same_side = [c for c in unit.contacts([*p, *R.as_quat()]) if c[1][1:] @ azimuth > 0]
        at_edge = [c for c in same_side if abs(c[2][0] - entry) < 3e-4 and abs(c[0] - excess) < 0.02 * excess + 1e-7]
        assert len(same_side) == 1 and (at_edge or same_side[0][0] > excess * 0.98)
        found += len(at_edge)
    assert found > 10
    assert checked > 20


def test_head_is_captured_from_a_lateral_miss(head_table):
    """A miss of 23 mm and a small tilt on a soft arm: first contact, hinge swings to its stop, all four latches, held when pulled."""
    unit = BerthingHead(**head_table)
    q = Rotation.from_rotvec(np.radians([1.0, 0.6, -0.5])).as_quat()
    out = insert(unit, [-0.16, 0.020, -0.012], 0.02, 8.0, q=q)
    contact, capture = column(unit, out, "first_contact_time")[-1], column(unit, out, "capture_time")[-1]
    assert 0.0 < contact < capture
    assert np.all(out["status"] == 0)
    angle = out["aux"][:, aux_index(unit, "hinge_angle"):][:, :2]
    assert np.max(np.abs(angle)) > 0.9 * np.radians(head_table["hinge_free_angle_deg"])
    assert np.all(out["aux"][-1, aux_index(unit, "latch_fired"):][:4] == 1) and np.all(out["signals"][-1] & 2)
    # drawn back by the arm: the latches hold
    end = out["p"][-1]
    back = insert(unit, end, -0.01, 8.0, q=q, stiffness=2e4)
    assert np.min(back["F_T"][:, 0]) < -100.0 and back["signals"][-1] & 2
    assert np.all(back["status"] == 0)


def test_miss_beyond_the_cone_is_no_capture(head_table):
    unit = BerthingHead(**head_table)
    out = insert(unit, [-0.16, 0.09, 0], 0.01, 6.0)
    assert column(unit, out, "first_contact_time")[-1] > 0 and column(unit, out, "capture_time")[-1] == -1.0


def test_head_transmits_forces_and_its_free_hinge_no_moment(head_table):
    """Statics of one step: F_A carries the contact force at the hinge; inside the free angle no moment about the hinge axes."""
    unit = BerthingHead(**head_table)
    out = unit.advance([-0.090, 0.022, 0.0, 0, 0, 0, 1], np.zeros(6), 1e-5)
    assert np.linalg.norm(out["F_T"][:3]) > 1.0
    np.testing.assert_allclose(out["F_A"][:3], -out["F_T"][:3], atol=1e-12)
    at_hinge = out["F_A"][3:] - np.cross([head_table["hinge_x_m"], 0, 0], out["F_A"][:3])
    assert np.max(np.abs(at_hinge[1:])) < 1e-9


# -- pins and lock ---------------------------------------------------------------------------------------------------------------------


def test_N23_geometry_and_centred_insertion_is_free_of_contact(pin_table):
    """Numbers of the text: pins at +-0.260 m, torus 5 mm. Centred, nothing touches before the planes do."""
    assert pin_table["pin_offset_m"] == 0.260 and pin_table["torus_radius_m"] == 0.005
    unit = BerthingPins(**pin_table)
    for x in np.linspace(-0.1, -1e-6, 60):
        assert unit.contacts([x, 0, 0, 0, 0, 0, 1]) == []
    seated = unit.contacts([1e-4, 0, 0, 0, 0, 0, 1])
    assert len(seated) == 4 and all(c[3] >= 100 and c[0] == pytest.approx(1e-4) for c in seated)


def test_torus_search_equals_a_full_scan(pin_table):
    t = pin_table
    unit = BerthingPins(**t)
    slope = np.arctan2(t["lock_mouth_radius_m"] - t["lock_socket_radius_m"], t["lock_cone_depth_m"])
    vertex = t["lock_mouth_radius_m"] / np.tan(slope)
    rng = np.random.default_rng(5)
    azimuth = np.linspace(0, 2 * np.pi, 257)
    checked = 0
    for _ in range(200):
        R = Rotation.from_rotvec(np.radians(rng.uniform(-3, 3, 3)))
        p = np.array([-t["lock_centre_x_m"] + rng.uniform(0.002, 0.012), *rng.uniform(-0.012, 0.012, 2)])
        centres = p + R.apply([t["lock_centre_x_m"], 0, 0]) + R.apply(
            np.column_stack([np.zeros(257), t["torus_radius_m"] * np.cos(azimuth), t["torus_radius_m"] * np.sin(azimuth)]))
        # depth of every sphere in the infinite entry cone
        d = np.hypot(centres[:, 1], centres[:, 2])
        depth = t["tube_radius_m"] - ((vertex - centres[:, 0]) * np.sin(slope) - d * np.cos(slope))
        best = int(np.argmax(depth))
        foot = centres[best, 0] + np.sin(slope) * (t["tube_radius_m"] - depth[best])
        if depth[best] < 1e-5 or not 0.001 < foot < t["lock_cone_depth_m"] - 0.001:
            continue
        found = [c for c in unit.contacts([*p, *R.as_quat()]) if c[3] < 100 and np.hypot(c[2][1], c[2][2]) < 0.06]
        assert found and max(c[0] for c in found) == pytest.approx(depth[best], abs=2e-8)
        checked += 1
    assert checked > 30


def test_order_of_events_of_a_good_insertion(pin_table):
    """Lock slides on its cone, enters the cylinder, the ball resists, capture, planes touch; then it is held on one side only."""
    unit = BerthingPins(**pin_table)
    q = Rotation.from_rotvec(np.radians([0.08, 0.1, -0.1])).as_quat()
    out = insert(unit, [-0.080, 0.006, -0.004], 0.02, 6.0, mass=400.0, q=q)
    contact, cylinder, capture, plane = (column(unit, out, f"{n}_time")[-1] for n in ("first_contact", "cylinder", "capture", "plane"))
    assert 0.0 < contact < cylinder < capture < plane
    resist = column(unit, out, "lock_force")
    assert np.max(resist) == pytest.approx(pin_table["ball_force_n"], rel=0.05)
    assert np.all(out["status"] == 0)
    # one-sided: pulled back by the lock, free inwards
    pulled = unit.advance([-0.005, 0, 0, 0, 0, 0, 1], np.zeros(6), 1e-4)
    assert pulled["F_T"][0] < -100.0 and pulled["signals"] & 2
    assert unit.advance([-0.001, 0, 0, 0, 0, 0, 1], np.zeros(6), 1e-4)["F_T"][0] == 0.0
    # command bit 2 releases
    assert unit.advance([-0.005, 0, 0, 0, 0, 0, 1], np.zeros(6), 1e-4, commands=4)["F_T"][0] == 0.0


def test_bad_aim_only_raises_the_force(pin_table):
    """Lock face on the docking plane: pushed on at constant speed there is no capture, and the force does not fall."""
    unit = BerthingPins(**pin_table)
    force = []
    for x in np.linspace(-0.075, -0.046, 300):
        out = unit.advance([x, 0.045, 0, 0, 0, 0, 1], [0.01, 0, 0, 0, 0, 0], 1e-3)
        force.append(out["F_T"][0])
        assert not out["signals"] & 2
    loaded = np.flatnonzero(np.array(force) > 0)
    assert len(loaded) > 50 and np.all(np.diff(np.array(force)[loaded]) > -1e-9)


def test_wrench_of_the_pins_is_opposite(pin_table):
    unit = BerthingPins(**pin_table)
    q = Rotation.from_rotvec([0.01, 0.02, -0.01])
    p = np.array([-0.03, 0.004, -0.002])
    out = unit.advance([*p, *q.as_quat()], [0.02, 0, 0, 0, 0.01, 0], 1e-4)
    f, m = q.apply(out["F_A"][:3]), q.apply(out["F_A"][3:])
    total = out["F_T"] + np.concatenate([f, m + np.cross(p, f)])
    assert np.linalg.norm(out["F_T"][:3]) > 1.0
    assert np.max(np.abs(total)) < 1e-12 * np.linalg.norm(out["F_T"])


@pytest.mark.parametrize("change, message", [
    (dict(tube_radius_m=0.012), "tube_radius_m: 0.012 m, the torus does not fit"),
    (dict(ball_end_m=0.2), "ball_end_m: 0.2 m"),
    (dict(pin_mouth_radius_m=0.01), "pin_mouth_radius_m: 0.01 m"),
    (dict(plane_points_m=[[0.1, 0.1]]), "plane_points_m: shape"),
])
def test_wrong_pin_tables_are_named(pin_table, change, message):
    with pytest.raises(ValueError, match=message):
        BerthingPins(**(pin_table | change))


@pytest.mark.parametrize("change, message", [
    (dict(mouth_radius_m=0.3), "mouth_radius_m: 0.3 m"),
    (dict(socket_radius_m=0.01), "socket_radius_m: 0.01 m"),
    (dict(latch_points_m=[[0.1, 0.1]]), "latch_points_m: shape"),
    (dict(friction=9.0), "friction: 9 -, limits"),
])
def test_wrong_head_tables_are_named(head_table, change, message):
    with pytest.raises(ValueError, match=message):
        BerthingHead(**(head_table | change))
