"""Berthing devices: hinge step, deepest generator and sphere against full scans, closed forms, order of events."""


import numpy as np
import pytest
import sympy
from scipy.spatial.transform import Rotation

from rt_kernels.contact.primitives import Cavity, segment_with_circle
from rt_kernels.mechanisms.berthing.head import BerthingHead, hinge_step
from rt_kernels.mechanisms.berthing.pins import BerthingPins
from rt_kernels.offline.two_craft import aux_index
from tests.mechanisms.shipped import column, shipped


@pytest.fixture(scope="module")
def head_table():
    return shipped("berthing_head")


@pytest.fixture(scope="module")
def pin_table():
    return shipped("usa_usp")


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


POSES = 10_000
AZIMUTH = np.linspace(0, 2 * np.pi, 257)


def candidates_of_the_head(t, R, hinge):
    """Per pose (depth, normal) of both spheres in the cavity and of the best of 257 generators of both cones at mouth and stop circle."""
    entry = t["plane_x_m"] + t["cone_height_m"]
    bottom = entry + t["socket_depth_m"]
    cavity = Cavity([(t["plane_x_m"], t["plane_radius_m"]), (t["plane_x_m"], t["mouth_radius_m"]), (entry, t["stop_radius_m"]),
                     (bottom, t["stop_radius_m"]), (bottom, 0)])  # fmt: skip
    found = [[] for _ in R]
    for x, radius in zip(t["sphere_x_m"], t["sphere_radius_m"], strict=True):
        contacts = cavity.spheres(hinge + x * R[:, :, 0], radius)
        for i in np.flatnonzero(contacts[:, 0] > 0):
            found[i].append((contacts[i, 0], contacts[i, 1:4]))
    around = np.column_stack([0 * AZIMUTH, np.cos(AZIMUTH), np.sin(AZIMUTH)])
    for x1, r1, x2, r2 in t["cone_x_m"]:
        start, along = [x2, 0, 0] + r2 * around, [x1 - x2, 0, 0] + (r1 - r2) * around
        for plane, radius in ((t["plane_x_m"], t["mouth_radius_m"]), (entry + t["stop_thickness_m"], t["stop_radius_m"])):
            for part in np.array_split(np.arange(len(R)), 20):
                O, L = hinge[part, None] + start @ np.swapaxes(R[part], 1, 2), along @ np.swapaxes(R[part], 1, 2)
                s = (plane - O[..., 0]) / L[..., 0]
                rho = np.where((s >= 0) & (s <= 1), np.linalg.norm((O + s[..., None] * L)[..., 1:], axis=2), 0.0)
                for j, k in enumerate(np.argmax(rho, axis=1)):
                    if rho[j, k] > radius:
                        c = segment_with_circle(O[j, k], L[j, k], (plane, 0, 0), (1, 0, 0), radius, True, 3)
                        found[part[j]].append((c["depth"], c["n"]))
    return found


def test_no_contact_of_the_head_is_missed(head_table):
    """10^4 poses: every contact of a scan up to 6 mm deep is there, or a deeper one on its side; every contact is one of the scan's."""
    rng = np.random.default_rng(1)
    R = Rotation.from_rotvec(np.radians(rng.uniform(-3, 3, (POSES, 3))))
    x = rng.uniform(-0.16, -0.03, POSES)
    p = np.column_stack([x, rng.uniform(-1, 1, (POSES, 2)) * np.where(x < -0.09, 0.05, 0.004)[:, None]])
    axes = R.as_matrix()
    wanted = candidates_of_the_head(head_table, axes, p + head_table["hinge_x_m"] * axes[:, :, 0])
    unit, compared, kept = BerthingHead(**head_table), 0, 0
    for X, want in zip(np.column_stack([p, R.as_quat()]), wanted, strict=True):
        found = unit.contacts(X)
        for depth, n in want:
            if depth < 0.006:
                assert any(c[0] >= depth - 1e-9 and c[1] @ n > 0 for c in found)
                compared += 1
        for depth, n, _ in found:
            assert any(abs(depth - d) < 1e-9 and np.abs(n - m).max() < 1e-9 for d, m in want)
            kept += 1
        # inside the stop's cylinder all contacts are of one region: one per side
        if X[0] > -0.045:
            assert all(found[i][1] @ found[j][1] <= 0.0 for i in range(len(found)) for j in range(i))
    assert compared > 5000 and kept > 4000


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


def test_no_contact_of_the_torus_is_missed(pin_table):
    """10^4 poses: the deepest of all 257 spheres in the lock's socket, on rim, edges, cone or cylinder, is the deepest of the search."""
    t, rng = pin_table, np.random.default_rng(5)
    cone, bottom, entry = t["lock_cone_depth_m"], t["lock_socket_depth_m"], t["lock_socket_radius_m"]
    socket = Cavity([(0, t["plane_radius_m"]), (0, t["lock_mouth_radius_m"]), (cone, entry), (bottom, entry), (bottom, 0)])
    R = Rotation.from_rotvec(np.radians(rng.uniform(-3, 3, (POSES, 3))))
    p = np.column_stack([-t["lock_centre_x_m"] + rng.uniform(-0.008, 0.05, POSES), rng.uniform(-0.02, 0.02, (POSES, 2))])
    around = t["torus_radius_m"] * np.array([np.cos(AZIMUTH), np.sin(AZIMUTH)])
    circle = np.column_stack([0 * AZIMUTH + t["lock_centre_x_m"], *around])
    unit, touching = BerthingPins(**t), 0
    for X, axes in zip(np.column_stack([p, R.as_quat()]), R.as_matrix(), strict=True):
        spheres = socket.spheres(X[:3] + circle @ axes.T, t["tube_radius_m"])
        want = spheres[:, 0].max()
        if want > 0.006:
            continue
        found = max((c for c in unit.contacts(X) if c[3] < 100 and abs(c[2][1]) < 0.13), key=lambda c: c[0], default=(0.0,))
        assert abs(found[0] - want) < 1e-9
        if want > 0:
            touching += 1
            best = spheres[np.abs(spheres[:, 0] - want) < 1e-9]
            assert min(np.abs(n - found[1]).max() for n in best[:, 1:4]) < 1e-9
    assert touching > 2000


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
    (dict(friction=9.0), "friction: must be a number within 0 ... 1.5, got 9"),
])
def test_wrong_head_tables_are_named(head_table, change, message):
    with pytest.raises(ValueError, match=message):
        BerthingHead(**(head_table | change))
