"""Contact of two rings: family search against a full scan, symmetry of the androgynous pair, chord error, latch step, closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.mechanisms.ring.contact import RingContact, implicit_latch, petal_shape, rotation_x
from tests.contact.coal_pairs import nearest_azimuth, segment_distances

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


POSES = 10_000
FLIP = np.diag([-1.0, -1.0, 1.0])      # axes of the target ring in T


def random_poses(seed, gap, side, roll):
    rng = np.random.default_rng(seed)
    p = np.column_stack([-rng.uniform(0.0, gap, POSES), rng.uniform(-side, side, (POSES, 2))])
    return p, Rotation.from_rotvec(np.radians(rng.uniform(-1, 1, (POSES, 3)) * [roll, 4, 4])).as_matrix()


def deepest_lines(start, along, p, R):
    """Full scan of the 257 generators (257, 3) of a petal at the poses p, R: the lines (pose, begin, vector, index) that may touch. The
    generator of the greatest radius at the circle's plane x = 0 where it reaches it; else on either side of it the first that does: over a
    flank the line between its end and that of the neighbour that does not."""
    found = []
    for part in np.array_split(np.arange(len(p)), 20):
        O = np.einsum("nij,gj->ngi", R[part], start) + p[part, None]
        L = np.einsum("nij,gj->ngi", R[part], along)
        t = -O[..., 0] / L[..., 0]
        Q = O + t[..., None] * L
        deepest = np.argmax(np.hypot(Q[..., 1], Q[..., 2]), axis=1)
        rows = np.arange(len(part))
        reaches = (t[rows, deepest] >= 0) & (t[rows, deepest] <= 1)
        found += [(part[n], O[n, deepest[n]], L[n, deepest[n]], deepest[n]) for n in np.flatnonzero(reaches)]
        tips, within = O + L, (t >= 0) & (t <= 1)
        for n in np.flatnonzero(~reaches):
            there = np.flatnonzero(within[n])
            for k, other in (*((k, k + 1) for k in there[there < deepest[n]][-1:]), *((k, k - 1) for k in there[there > deepest[n]][:1])):
                flank = t[n, deepest[n]] > 1.0 and along[k, 0] != along[other, 0]
                found.append((part[n], tips[n, k] if flank else O[n, k], tips[n, other] - tips[n, k] if flank else L[n, k], k))
    return [np.array(column) for column in zip(*found, strict=True)]


def test_no_petal_contact_is_missed(rings):
    """10^4 poses, six petals against the opposite circle: the halving finds the line of a full scan, and depth and normal are those of
    coal for this line and the tangent of the circle at its nearest point."""
    p, R = random_poses(0, 0.2, 0.06, 4)
    wanted, R_R, limit = [], 0.6, TABLE["depth_limit_m"]
    for k in range(3):
        # active petal on the target circle in T; target petal on the active circle, in the axes of the active ring
        of_active, of_passive = rings.petal(k, np.eye(3), np.zeros(3)), rings.petal(k)
        back = np.swapaxes(R, 1, 2)
        for active, (start, along), (q, Q) in ((True, of_active, (p, R)), (False, of_passive, (-np.einsum("nij,nj->ni", back, p), back))):
            pose, O, L, index = deepest_lines(start, along, q, Q)
            crossing = O - (O[:, :1] / L[:, :1]) * L
            touching = np.hypot(crossing[:, 1], crossing[:, 2]) > R_R
            pose, O, L, index, crossing = pose[touching], O[touching], L[touching], index[touching], crossing[touching]
            azimuth = nearest_azimuth(O, L, R_R, np.arctan2(crossing[:, 2], crossing[:, 1]))
            u = np.column_stack([0 * azimuth, np.cos(azimuth), np.sin(azimuth)])
            side = np.cross([1.0, 0, 0], u)
            L = L / np.linalg.norm(L, axis=1)[:, None]  # as lines: a piece of an edge is shorter than a contact is deep
            depth, normal = segment_distances(crossing - L, crossing + L, R_R * u - side, R_R * u + side)
            if active:
                normal = -normal
            else:
                normal = np.einsum("nij,nj->ni", R[pose], normal)
            family = {}
            for i, d, n, g in zip(pose, depth, normal, index, strict=True):
                if d < limit and d > family.get(i, (0.0,))[0]:
                    family[i] = (d, n, g)
            wanted.append(family)
    compared = 0
    for i in range(POSES):
        found = [c for c in rings.contacts(p[i], R[i]) if c[3] == 2]
        want = [family[i] for family in wanted if i in family]
        assert len(found) == len(want), i
        for (depth, n, _, _, index), (d, normal, g) in zip(found, want, strict=True):
            assert abs(depth - d) < 1e-9 and np.abs(n - normal).max() < 1e-9 and index == g
            compared += 1
    assert compared > 4000


def test_a_petal_that_slides_gives_no_energy(rings):
    """40 touches of a petal, each slid over 8 mm and up to 50 generators: what the contacts store is the work of their forces, to 0.1 % of
    force times way (with the generators' normals over the flanks it was 1 % in the median, 8 % at most)."""
    rng, open_share, step = np.random.default_rng(1), [], 2e-5

    def contacts(p, R):
        found = [c for c in rings.contacts(p, R) if c[3] == 2]
        return found, sum((depth * n for depth, n, *_ in found), np.zeros(3)), sum(0.5 * depth**2 for depth, *_ in found)

    while len(open_share) < 40:
        R = Rotation.from_rotvec(np.radians(rng.uniform(-4, 4, 3))).as_matrix()
        p = np.array([-rng.uniform(0.03, 0.13), *rng.uniform(-0.05, 0.05, 2)])
        found, force, first = contacts(p, R)
        if len(found) != 1 or not 1e-4 < found[0][0] < 4e-4:
            continue
        along = np.cross(found[0][1], rng.normal(size=3))
        along /= np.linalg.norm(along)
        work = way = 0.0
        for s in range(1, 401):
            was, (_, force, stored) = force, contacts(p + s * step * along, R)
            work += 0.5 * (force + was) @ along * step
            way += np.linalg.norm(force) * step
        open_share.append(abs(stored - first - work) / way)
    # where a petal's tip comes to lie on the circle the normal turns at once
    assert np.median(open_share) < 1e-3 and np.quantile(open_share, 0.9) < 1e-3 and max(open_share) < 1e-2, np.sort(open_share)


def test_no_flank_contact_is_missed_against_coal(rings):
    """10^4 poses, six pairs of flanks: the deepest of the four pairs of edges that cross inside both; depth and normal as by coal."""
    shape = petal_shape(0.6, 0.63, 0.14, np.radians(42.5), 1e-3, np.radians(29), np.radians(8), 0.05, 8)
    p, R = random_poses(1, 0.12, 0.03, 12)
    limit, best = TABLE["depth_limit_m"], []
    turn = [rotation_x(2 * np.pi * k / 3) for k in range(3)]
    for k in range(3):
        for s, other in ((1, (4 - k) % 3), (0, (5 - k) % 3)):
            outward = np.einsum("nij,j->ni", R, turn[k] @ shape["outward"][s]) - FLIP @ turn[other] @ shape["outward"][s]
            deepest, direction = np.zeros(POSES), np.zeros((POSES, 3))
            for mine in ("upper", "lower"):
                OA = p + np.einsum("nij,j->ni", R, turn[k] @ shape[mine][s, 0])
                LA = np.einsum("nij,j->ni", R, turn[k] @ shape[mine][s, 1])
                for theirs in ("upper", "lower"):
                    OP, LP = (np.tile(FLIP @ turn[other] @ shape[theirs][s, j], (POSES, 1)) for j in range(2))
                    n = np.cross(LA, LP)
                    n *= np.sign(np.sum(n * outward, axis=1) / np.linalg.norm(n, axis=1) ** 2)[:, None]
                    n /= np.linalg.norm(n, axis=1)[:, None]
                    t, q, gap = np.linalg.solve(np.stack([LA, -LP, n], axis=2), (OP - OA)[..., None])[..., 0].T
                    inside = (t >= 0) & (t <= 1) & (q >= 0) & (q <= 1) & (gap < 0)
                    at = np.flatnonzero(inside)
                    distance, towards = segment_distances(OA[at], OA[at] + LA[at], OP[at], OP[at] + LP[at])
                    better = (distance > deepest[at]) & (distance < limit)
                    deepest[at[better]], direction[at[better]] = distance[better], -towards[better]
            best.append((deepest, direction))
    compared = 0
    for i in range(POSES):
        found = [c for c in rings.contacts(p[i], R[i]) if c[3] == 3]
        want = [(deepest[i], direction[i]) for deepest, direction in best if deepest[i] > 0]
        assert len(found) == len(want), i
        for (depth, n, *_), (d, normal) in zip(found, want, strict=True):
            assert abs(depth - d) < 1e-9
            if d > 1e-6:
                assert np.abs(n - normal).max() < 1e-9
            compared += 1
    assert compared > 3000


def test_no_ring_plane_contact_is_missed(rings):
    """10^4 poses: a point beside a petal touches where it lies behind the target plane and between the circles."""
    p, R = random_poses(2, 0.01, 0.01, 4)
    p[:, 0] += 0.005
    points = np.array([rotation_x(2 * np.pi * k / 3 + s * np.radians(29)) @ [0, 0.63, 0] for k in range(3) for s in (-1, 1)])
    at = p[:, None] + np.einsum("nij,mj->nmi", R, points)
    rho = np.hypot(at[..., 1], at[..., 2])
    inside = (at[..., 0] > 0) & (at[..., 0] < TABLE["depth_limit_m"]) & (rho > 0.6) & (rho < 0.66)
    for i in range(POSES):
        found = [c for c in rings.contacts(p[i], R[i]) if c[3] == 0]
        assert [c[4] for c in found] == list(np.flatnonzero(inside[i]))
        for depth, n, r, _, j in found:
            assert abs(depth - at[i, j, 0]) < 1e-14 and np.array_equal(n, [1, 0, 0]) and np.abs(r - at[i, j]).max() < 1e-14
    assert inside.sum() > POSES


def poses(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        gap = rng.uniform(0.0, 0.2)
        p = np.array([-gap, *rng.uniform(-0.06, 0.06, 2)])
        yield p, Rotation.from_rotvec(np.radians(rng.uniform(-4, 4, 3))).as_matrix()


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
    # petals point outwards at azimuths 0, 120, 240 (active) and 180, 60, -60 (target, which meet the active circle from the other side)
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
        # active ring in the target ring's own frame, roles exchanged: the target ring sits at -R^T p turned, both frames flipped
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


def hyperbola_error(table):
    """Greatest distance of the straight flank edge from the true section of cone and flank plane, on 20 001 points of the hyperbola [m]."""
    inner, a, top = table["inner_radius_m"], np.radians(table["petal_half_angle_deg"]), table["petal_height_m"]
    base = table["petal_base_azimuth_deg"]
    clearance, tip = table["petal_clearance_m"], table["petal_tip_azimuth_deg"]
    foot = inner - clearance

    def on_cone(x, azimuth):
        r = foot - x * np.tan(a)
        return np.array([x, r * np.cos(azimuth), r * np.sin(azimuth)])

    B, A = on_cone(0.0, np.radians(base)), on_cone(top, np.radians(tip))
    E = B - table["petal_thickness_m"] * np.array([0, np.cos(np.radians(base)), np.sin(np.radians(base))])
    n = np.cross(A - B, E - B)
    x = np.linspace(0, top, 20_001)
    r = foot - x * np.tan(a)
    amplitude, phase = r * np.hypot(n[1], n[2]), np.arctan2(n[2], n[1])
    azimuth = phase + np.arccos(np.clip((n @ B - n[0] * x) / amplitude, -1, 1)) * np.array([[1], [-1]])
    azimuth = azimuth[np.argmin(np.abs(azimuth[:, 0] - np.radians(base)))]
    P, L = np.column_stack([x, r * np.cos(azimuth), r * np.sin(azimuth)]) - B, A - B
    return np.max(np.linalg.norm(P - np.outer(P @ L / (L @ L), L), axis=1))


def test_chord_error_is_that_of_a_fine_hyperbola(rings):
    """The straight flank edge leaves the true intersection of cone and flank by at most `chord_error`."""
    assert rings.chord_error == pytest.approx(hyperbola_error(TABLE), rel=2e-3)


def test_N5_chord_error_of_4_65_mm():
    """The text's figure for its ring, whose petals it does not give: a ring of 1200 mm with petals of 45 deg and 60 deg at the base has it
    with tips at 12.67 deg; the figure is met by the generator, by the true hyperbola, and by the flank edge that the kernel uses."""
    ring = TABLE | dict(petal_half_angle_deg=45.0, petal_base_azimuth_deg=30.0, petal_tip_azimuth_deg=12.67)
    assert hyperbola_error(ring) == pytest.approx(4.65e-3, abs=5e-6)
    assert RingContact(ring).chord_error == pytest.approx(4.65e-3, abs=5e-6)
    # more generators do not change it, coarser ones miss it: it is the chord's own error
    assert RingContact(ring | {"generator_levels": 4}).chord_error == pytest.approx(4.65e-3, abs=5e-5)


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
