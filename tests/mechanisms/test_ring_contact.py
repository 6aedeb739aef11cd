"""Contact of two rings: family search against a full scan, symmetry of the androgynous pair, chord error, latch step, closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.ring_contact import RingContact, implicit_latch, petal_shape, rotation_x

TABLE = dict(
    inner_radius_m=0.6, face_radius_m=0.66, petal_height_m=0.14, petal_half_angle_deg=42.5, petal_clearance_m=1e-3,
    petal_base_azimuth_deg=29.0, petal_tip_azimuth_deg=8.0, petal_thickness_m=0.05, generator_levels=8, depth_limit_m=0.03,
    latch_mass_kg=0.2, latch_stiffness_n_per_m=3000.0, latch_preload_n=20.0, latch_contact_stiffness_n_per_m=1e6, latch_azimuth_deg=4.0,
    latch_tip_x_m=0.048, latch_tip_radius_m=0.591, latch_angle_deg=20.0, latch_length_m=0.041, latch_stroke_m=0.02,
    stop_radius_min_m=0.585, stop_radius_max_m=0.625,
)


@pytest.fixture(scope="module")
def rings():
    return RingContact(TABLE)


def scan(rings, p, R):
    """Deepest generator of every petal against the opposite circle by looking at all 257: list of (depth, index)."""
    out = []
    for k in range(3):
        of_active, of_passive = rings.petal(k, R, p), rings.petal(k)
        for start, along, centre, axis in ((*of_active, np.zeros(3), np.array([1.0, 0, 0])), (*of_passive, np.asarray(p), R[:, 0])):
            t = (centre - start) @ axis / (along @ axis)
            radius = np.linalg.norm(start + t[:, None] * along - centre, axis=1)
            inside = (t >= 0) & (t <= 1)
            radius[~inside] = 0.0
            best = int(np.argmax(radius))
            out.append((radius[best] - 0.6, best))
    return out


def poses(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        gap = rng.uniform(0.0, 0.2)
        p = np.array([-gap, *rng.uniform(-0.06, 0.06, 2)])
        yield p, Rotation.from_rotvec(np.radians(rng.uniform(-4, 4, 3))).as_matrix()


def test_dichotomy_finds_what_a_full_scan_finds(rings):
    missed = 0
    compared = 0
    for p, R in poses(600):
        found = [c for c in rings.contacts(p, R) if c[3] == 2]
        want = [(d, i) for d, i in scan(rings, p, R) if 0.0 < d < 0.03]
        best = sorted(c[4] for c in found)
        for depth, index in want:
            compared += 1
            if index not in best and depth > 3e-4:
                missed += 1
    assert compared > 200
    # a shorter generator over a flank may hold the maximum of a petal: the walk of the text stops at the first one in reach
    assert missed <= 0.01 * compared


def test_aligned_rings_touch_only_when_they_should(rings):
    for gap in (0.1, 0.05, 0.01):
        assert rings.contacts([-gap, 0, 0], np.eye(3)) == []
    seated = rings.contacts([1e-4, 0, 0], np.eye(3))
    planes = [c for c in seated if c[3] == 0]
    assert len(planes) == 6 and all(c[0] == pytest.approx(1e-4, abs=1e-15) for c in planes)


def test_lateral_offset_closed_form(rings):
    """Petal at azimuth 0 shifted by dy along Y at a gap: crossing radius base - gap tan a + dy; depth is its excess times cos a."""
    gap, a = 0.08, np.radians(42.5)
    clearance = 1e-3 + gap * np.tan(a)
    # petals point outwards at azimuths 0, 120, 240 (active) and 180, 60, -60 (passive, which meet the active circle from the other side)
    for extra in (2e-3, 6e-3):
        found = rings.contacts([-gap, clearance + extra, 0.0], np.eye(3))
        depth, n, r, _, index = max((c for c in found if c[3] == 2), key=lambda c: c[0])
        assert index == 128
        assert depth == pytest.approx(extra * np.cos(a), rel=1e-9)
        np.testing.assert_allclose(n, [np.sin(a), np.cos(a), 0], atol=1e-12)


def test_roles_can_be_swapped(rings):
    """Androgynous: the same relative pose seen from the other ring gives the same depths, normals reversed."""
    flip = np.diag([-1.0, -1.0, 1.0])
    checked = 0
    for p, R in poses(120, 4):
        ours = rings.contacts(p, R)
        # active ring in the passive ring's own frame, roles exchanged: the passive ring sits at -R^T p turned, both frames flipped
        other = rings.contacts(flip @ (-R.T @ p), flip @ R.T @ flip)
        mine = sorted(c[0] for c in ours if c[3] in (2, 3))
        theirs = sorted(c[0] for c in other if c[3] in (2, 3))
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)
        checked += len(mine)
    assert checked > 60


def test_roll_is_guided_by_the_flanks(rings):
    """Turned too far, the flanks touch on one side only, and their normals turn the ring back."""
    for angle in (5.0, -5.0):
        found = [c for c in rings.contacts([-0.01, 0, 0], rotation_x(np.radians(angle))) if c[3] == 3]
        assert len(found) == 3
        for depth, n, r, *_ in found:
            torque_on_active = np.cross(r - [-0.01, 0, 0], -n)[0]
            assert depth > 0 and torque_on_active * angle < 0


def test_chord_error_is_that_of_a_fine_hyperbola(rings):
    """N5: the straight flank edge leaves the true intersection of cone and flank by at most `chord_error`."""
    shape = petal_shape(0.6, 0.63, 0.14, np.radians(42.5), 1e-3, np.radians(29), np.radians(8), 0.05, 8)
    n, C, L = shape["outward"][1], shape["upper"][1, 0], shape["upper"][1, 1]
    x = np.linspace(0, 0.14, 20_001)
    r = 0.599 - x * np.tan(np.radians(42.5))
    # points of the cone in the plane of the flank, on the plus side: n . P = n . C
    amplitude, phase = r * np.hypot(n[1], n[2]), np.arctan2(n[2], n[1])
    azimuth = phase + np.arccos(np.clip((n @ C - n[0] * x) / amplitude, -1, 1)) * np.array([[1], [-1]])
    azimuth = azimuth[np.argmin(np.abs(azimuth[:, 0] - np.radians(29)))]
    P = np.column_stack([x, r * np.cos(azimuth), r * np.sin(azimuth)]) - C
    error = np.max(np.linalg.norm(P - np.outer(P @ L / (L @ L), L), axis=1))
    assert rings.chord_error == pytest.approx(error, rel=2e-3)
    assert 1e-4 < error < 0.02


def test_implicit_latch_golden_and_end_stop():
    v, x = implicit_latch(5e-4, 0.2, 2000.0, 20.0, 70.0, 0.03, 0.002)
    assert v == pytest.approx(0.14463840399002495, rel=1e-14) and x == pytest.approx(0.0020723192019950127, rel=1e-14)
    # E41: without the stop the preload would draw it to x < 0
    assert implicit_latch(5e-4, 0.2, 2000.0, 20.0, 0.0, 0.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("change, message", [
    (dict(face_radius_m=0.5), "face_radius_m: 0.5 m"),
    (dict(petal_base_azimuth_deg=31.0), "petal_base_azimuth_deg"),
    (dict(petal_height_m=0.6), "petal_height_m: 0.6 m"),
    (dict(stop_radius_max_m=0.5), "stop_radius_max_m: 0.5 m"),
])
def test_wrong_tables_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        RingContact(TABLE | change)
