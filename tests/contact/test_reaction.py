"""Reaction law, latches and grooves: closed forms, energy, and the printed forms that must not come back."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.contact.primitives import Cavity, LatchInSocket, Law, bounce, groove_contacts, in_groove

N = np.array([0.6, 0.0, 0.8])


def test_golden_bounce_on_a_clamped_spring_damper():
    """Closed form of the text's contact law: m = 100 kg, k = 1e6 N/m, c = 400 N.s/m, v0 = 0.1 m/s."""
    m, k, c, v0 = 100.0, 1e6, 400.0, 0.1
    w, z = np.sqrt(k / m), c / (2 * np.sqrt(k * m))
    wd = w * np.sqrt(1 - z * z)
    t_s = (np.pi - np.arctan2(2 * z * np.sqrt(1 - z * z), 1 - 2 * z * z)) / wd
    restitution, t, peak, deepest, loss = bounce(m, v0, Law(k, c), 1e-6)
    assert restitution == pytest.approx(np.exp(-z * w * t_s), abs=2e-6)
    assert restitution == pytest.approx(0.939841335664, abs=2e-6)
    assert t == pytest.approx(0.0310221049, abs=3e-6)
    assert peak == pytest.approx(970.2302, rel=1e-6)
    assert deepest == pytest.approx(0.96945414e-3, rel=1e-6)
    assert loss == pytest.approx(0.5 * m * v0**2 * (1 - restitution**2), rel=1e-3)
    assert Law(k, c).react(0.0, (1, 0, 0), (v0, 0, 0), (0, 0, 0))[1] == pytest.approx(40.0)


def test_elastic_bounce_returns_all_energy():
    assert bounce(100.0, 0.1, Law(1e6), 1e-6)[0] == pytest.approx(1.0, abs=1e-9)


def test_a_contact_never_pulls():
    force, normal, *_ = Law(1e6, 4000.0, 0.3).react(1e-4, N, -0.5 * N, np.zeros(3))
    assert normal == 0.0 and np.all(force == 0.0)            # the printed law would give -1900 N


def test_friction_is_defined_and_zero_at_rest():
    law = Law(1e6, 0.0, 0.2)
    force, normal, _, lost = law.react(1e-3, N, np.zeros(3), np.zeros(3))
    assert np.all(np.isfinite(force)) and force == pytest.approx(normal * N, abs=1e-12) and lost == 0.0
    slip = np.array([0.0, 0.05, 0.0])
    force, normal, _, lost = law.react(1e-3, N, slip, np.zeros(3))
    assert force @ slip / 0.05 == pytest.approx(0.2 * normal * 0.05 / np.hypot(0.05, 1e-3), rel=1e-12)
    assert lost == pytest.approx(force @ slip, rel=1e-12) and lost > 0


def test_action_reaction_and_relative_power():
    """The target body gains, the active loses; the difference is exactly what damper, friction and spring take."""
    rng = np.random.default_rng(4)
    law = Law(3e5, 900.0, 0.15, ramp=2e-4)
    for _ in range(200):
        depth, va, vp = rng.uniform(1e-5, 1e-3), rng.normal(0, 0.1, 3), rng.normal(0, 0.1, 3)
        force, normal, damped, friction = law.react(depth, N, va, vp)
        rate = N @ (va - vp)
        assert force @ (va - vp) == pytest.approx(3e5 * depth * rate + damped + friction, rel=1e-10, abs=1e-12)
        assert damped >= 0.0 and friction >= 0.0


def test_conservative_contact_does_no_work_on_a_closed_path():
    """c = mu = 0: the force is the gradient of k depth^2 / 2, over cone, edge and cylinder."""
    cavity = Cavity([(0, 0.30), (0, 0.22), (0.10, 0.12), (0.20, 0.05), (0.28, 0.05), (0.28, 0)])
    s = np.linspace(0, 2 * np.pi, 40001)
    path = np.column_stack([0.085 + 0.012 * np.cos(s), 0.0895 + 0.012 * np.sin(s), 0.01 * np.sin(2 * s)])
    found = cavity.spheres(path, 0.04)
    force = -1e6 * found[:, :1] * found[:, 1:4]
    work = 0.5 * np.sum((force[1:] + force[:-1]) * np.diff(path, axis=0), axis=1)
    assert work.clip(0).sum() > 1.0 and abs(work.sum()) < 1e-6 * work.clip(0).sum()


# ---------------------------------------------------------------------------------------------------------------------- latches

SOCKET = [(-0.10, 0.12), (0.0, 0.05), (0.09, 0.05)]
LATCH = {
    "pivot_x": -0.050, "pivot_rho": 0.040, "nose_x": 0.056, "nose_rho": -0.006, "tip_x": 0.038, "tip_rho": 0.018, "radius": 0.0,
    "angle_max": 0.9, "torque_preload": 0.4, "torque_rate": 0.8, "lock_x": -0.012, "lock_rho_inner": 0.03, "lock_rho_outer": 0.058,
}


def pressed(latch, x, previous=0.0, **kw):
    return latch.press((x, 0, 0), np.eye(3), (1.0, 0.0), previous, **kw)


def test_penetration_changes_sign_once_and_the_root_is_found():
    latch = LatchInSocket(SOCKET, (0.0, 0.05), LATCH)
    for x in np.linspace(-0.02, 0.03, 26):
        phi, force, contact, bottomed = pressed(latch, x)
        g = [latch.penetration((x, 0, 0), np.eye(3), (1.0, 0.0), a) for a in np.linspace(0, 0.9, 40)]
        if g[0] <= 0:
            assert phi == 0.0 and force == 0.0
            continue
        assert not bottomed and np.all(np.diff(np.sign(g)) <= 0)
        assert latch.penetration((x, 0, 0), np.eye(3), (1.0, 0.0), phi) <= 0.0
        assert latch.penetration((x, 0, 0), np.eye(3), (1.0, 0.0), phi - 1e-8) > 0.0


def test_the_angle_is_that_of_plain_bisection_to_the_bit():
    """Newton steps only say where bisection need not compute: angle and contact of any pose and any last angle are its own."""

    def bisected(g, previous):
        low, high = 0.0, LATCH["angle_max"]
        if 0.0 < previous < high:
            if previous > 2e-3 and g(previous - 2e-3) > 0.0:
                low = previous - 2e-3
            if previous + 2e-3 < high and g(previous + 2e-3) <= 0.0:
                high = previous + 2e-3
        if high == LATCH["angle_max"] and g(high) > 0.0:
            return high, high
        while high - low >= 1e-9:
            mid = 0.5 * (low + high)
            low, high = (mid, high) if g(mid) > 0.0 else (low, mid)
        return low, high

    rng = np.random.default_rng(5)
    latches = [LatchInSocket(SOCKET, (0.0, 0.05), LATCH | {"radius": radius}) for radius in (0.0, 0.006)]
    touching = 0
    for k in range(4000):
        p_TH = np.array([rng.uniform(-0.08, 0.06), *rng.normal(0.0, 0.004, 2)])
        R_TH = Rotation.from_rotvec(rng.normal(0.0, 0.03, 3)).as_matrix()
        half_plane, latch = ((1.0, 0.0), (0.0, -1.0))[k % 2], latches[k // 2 % 2]

        def g(phi, latch=latch, pose=(p_TH, R_TH, half_plane)):
            return latch.penetration(*pose, phi)

        if g(0.0) <= 0.0:
            continue
        touching += 1
        near = latch.press(p_TH, R_TH, half_plane)[0]
        for previous in (0.0, near, near + rng.normal(0.0, 1e-4), rng.uniform(0.0, 0.9), 0.9):
            low, high = bisected(g, previous)
            phi, _, contact, bottomed = latch.press(p_TH, R_TH, half_plane, previous)
            assert (phi, contact["depth"], bottomed) == (high, g(low), low == high)
    assert touching > 800


def test_latch_springs_back_when_geometry_recedes():
    """E37: the printed search only opens the latch; starting from a larger angle the root must come back."""
    latch = LatchInSocket(SOCKET, (0.0, 0.05), LATCH)
    phi, *_ = pressed(latch, 0.008)
    wide, *_ = pressed(latch, 0.02)
    assert 0.0 < phi < wide
    assert pressed(latch, 0.008, previous=wide)[0] == pytest.approx(phi, abs=2e-9)


def test_latch_work_equals_spring_energy():
    latch = LatchInSocket(SOCKET, (0.0, 0.05), LATCH)
    xs = np.linspace(-0.08, 0.03, 40001)
    force, phi = np.zeros(len(xs)), 0.0
    for i, x in enumerate(xs):
        phi, f, contact, bottomed = pressed(latch, x, phi)
        assert not bottomed
        force[i] = f * contact["n"][0] if contact else 0.0
    stored = LATCH["torque_preload"] * phi + 0.5 * LATCH["torque_rate"] * phi**2
    assert stored > 0.05
    assert np.trapezoid(force, xs) == pytest.approx(stored, rel=1e-3)


def test_bottomed_latch_is_reported():
    latch = LatchInSocket(SOCKET, (0.0, 0.05), LATCH | {"angle_max": 0.05})
    assert pressed(latch, 0.02)[3]


GROOVE = {"stop_x": 0.03, "plane": 0.052, "narrow": 0.004, "wide": 0.010, "ramp_start": 0.008, "ramp_end": 0.020, "length": 0.04}


def test_fired_latch_in_its_groove_closed_forms():
    beta = np.arctan2(0.006, 0.012)
    for k in range(4):
        normal, side = 1 + (k & 1), 2 - (k & 1)

        def segment(x, lateral, k=k, normal=normal, side=side):
            a, b = np.zeros(3), np.zeros(3)
            a[0] = b[0] = x
            a[side] = b[side] = lateral
            a[normal], b[normal] = (0.045, 0.06) if k < 2 else (-0.045, -0.06)
            return a, b

        assert groove_contacts(GROOVE, k, *segment(0.035, 0.001)) == []
        stop, wall = groove_contacts(GROOVE, k, *segment(0.0292, -0.0045))
        assert stop["depth"] == pytest.approx(8e-4, abs=1e-15) and stop["n"] == pytest.approx((-1, 0, 0))
        assert wall["depth"] == pytest.approx(5e-4, abs=1e-15) and wall["n"][side] == -1.0
        (ramp,) = groove_contacts(GROOVE, k, *segment(0.03 + 0.014, 0.0078))
        assert ramp["depth"] == pytest.approx((0.0078 - 0.004 - 0.006 * np.tan(beta)) * np.cos(beta), abs=1e-15)
        assert ramp["n"][0] == pytest.approx(-np.sin(beta)) and ramp["n"][side] == pytest.approx(np.cos(beta))
        # roll misalignment phi at radius r: lateral r sin(phi)
        phi, r = 0.1, 0.06
        (roll,) = groove_contacts(GROOVE, k, *segment(0.035, r * np.sin(phi)))
        assert roll["depth"] == pytest.approx(r * np.sin(phi) - 0.004, abs=1e-15)


def test_groove_against_dense_sampling():
    """Inside the outline there is no contact; outside, the depth is the distance to the outline's wall line."""
    rng = np.random.default_rng(8)
    tangent = 0.006 / 0.012
    for _ in range(10_000):
        d1, d2 = rng.uniform(-0.002, 0.0199), rng.uniform(-0.012, 0.012)
        found = groove_contacts(GROOVE, 0, (0.03 + d1, 0.045, d2), (0.03 + d1, 0.06, d2))
        if in_groove(GROOVE, d1, d2):
            assert found == []
            continue
        assert found
        for c in found:
            if c["index"] == 2:
                wall = np.array([[0.008, 0.004], [0.020, 0.010]])
                u = (wall[1] - wall[0]) / np.linalg.norm(wall[1] - wall[0])
                offset = np.array([d1, abs(d2)]) - wall[0]
                assert abs(c["depth"] - abs(offset[0] * u[1] - offset[1] * u[0])) < 1e-9
            elif c["index"] == 1:
                assert c["depth"] == abs(d2) - 0.004
            else:
                assert abs(c["depth"] + d1) < 1e-15
    assert tangent == 0.5
