"""Contact geometry: golden values, closed forms, coal, dense sampling, and the printed formulas that must not come back."""

import numpy as np
import pytest

from rt_kernels.contact.primitives import Cavity, deepest_index, segment_with_circle, segment_with_segment
from tests.contact.coal_pairs import face_distances, nearest_azimuth, segment_distances

PROFILE = np.array([(0, 0.30), (0, 0.22), (0.10, 0.12), (0.20, 0.05), (0.28, 0.05), (0.28, 0)])
R_S = 0.04
POSES = 10_000
X = np.array([1.0, 0.0, 0.0])


def at(x, d, angle):
    return np.array([x, d * np.cos(angle), d * np.sin(angle)])


# ------------------------------------------------------------------------------------------------ golden values, section 10


@pytest.mark.parametrize(
    ("centre", "depths", "normal"),
    [
        (at(0.04, 0.135, 0.6), [0.00818019484661], None),
        (at(0.0735, 0.0905, 1.1), [0.000345239882203], (0.668267817565, 0.337439579569, 0.662987672696)),
        (at(-0.034, 0.2, 2.0), [0.000553834153368], (0.86193422, -0.21099482, 0.4610321)),
        (at(-0.0395, 0.26, 0.3), [0.0005], (1, 0, 0)),
        (at(0.2405, 0.0105, 0.3), [0.0005, 0.0005], None),
    ],
)
def test_golden_sphere_in_synthetic_profile(centre, depths, normal):
    found = Cavity(PROFILE).sphere(centre, R_S)
    assert len(found) == len(depths)
    for contact, depth in zip(found, depths, strict=True):
        assert contact["depth"] == pytest.approx(depth, abs=1e-14)
        assert contact["r"] == pytest.approx(centre + R_S * contact["n"], abs=1e-15)
    if normal is not None:
        assert found[0]["n"] == pytest.approx(normal, abs=1e-8)
    else:
        assert found[0]["n"][0] == pytest.approx(np.sqrt(0.5) if len(found) == 1 else 0.0, abs=1e-12)


def test_golden_line_circle():
    c = segment_with_circle((-0.03, 0.215, 0.004), (0.06, -0.02, 0.003), (0, 0, 0), X, 0.2)
    assert c["depth"] == pytest.approx(0.004815504520224804, abs=1e-16)
    assert c["n"] == pytest.approx((0.31497962, 0.94875703, 0.02545446), abs=1e-8)
    assert c["r"] == pytest.approx((0, 0.205, 0.0055), abs=1e-15)


def test_golden_segments():
    touching, c = segment_with_segment((0.006, -0.05, 0.003), (0.01, 0.1, 0), (0.001, 0, -0.06), (0.004, 0.01, 0.12), X)
    assert touching
    assert c["depth"] == pytest.approx(0.008380595722438596, abs=1e-16)
    assert c["n"] == pytest.approx((0.99472946, -0.09947295, -0.02486824), abs=1e-8)
    assert c["r"] == pytest.approx((0.00310695, 0.00526737, 0.00320841), abs=1e-8)
    touching, c = segment_with_segment((0.002, -0.05, 0.003), (0.01, 0.1, 0), (0.001, 0, -0.06), (0.02, 0.01, 0.12), X)
    assert not touching
    assert c["depth"] == pytest.approx(-0.003907080765398451, abs=1e-16)


# ------------------------------------------------------------------------------------------------------------ closed forms


def test_closed_form_cone_cylinder_bottom_edge():
    cavity = Cavity(PROFILE)
    half_angle = np.pi / 4
    x_T, d = 0.22, 0.12                                        # cone 1 has its vertex at x = 0.22
    x = x_T - d / np.tan(half_angle) - R_S / np.sin(half_angle)
    assert cavity.sphere((x + 0.003, d, 0), R_S)[0]["depth"] == pytest.approx(0.003 * np.sin(half_angle), abs=1e-15)
    assert cavity.sphere((x, d + 0.002, 0), R_S)[0]["depth"] == pytest.approx(0.002 * np.cos(half_angle), abs=1e-15)
    assert cavity.sphere((x - 1e-6, d, 0), R_S) == []
    assert cavity.sphere((0.225, 0, -(0.05 - R_S) - 3e-4), R_S)[0]["depth"] == pytest.approx(3e-4, abs=1e-15)
    for slope in np.linspace(0.80, 0.95, 4):                     # edge at (0.10, 0.12): between the normals of its faces
        direction = np.array([np.cos(slope), np.sin(slope)])
        centre = np.array([0.10, 0.12]) - (R_S - 5e-4) * direction
        (contact,) = cavity.sphere((centre[0], centre[1], 0), R_S)
        assert contact["kind"] == 1 and contact["index"] == 2
        assert contact["depth"] == pytest.approx(5e-4, abs=1e-15)
        assert contact["n"][:2] == pytest.approx(direction, abs=1e-12)


def test_segment_circle_closed_forms_and_roles():
    r, R = 0.207, 0.2
    straight = segment_with_circle((-0.1, r, 0), (0.2, 0, 0), (0, 0, 0), X, R)
    assert straight["depth"] == pytest.approx(r - R, abs=1e-15) and straight["n"] == pytest.approx((0, 1, 0), abs=1e-15)
    slanted = segment_with_circle((-0.1, r + 0.1, 0), (0.2, -0.2, 0), (0, 0, 0), X, R)
    assert slanted["depth"] == pytest.approx((r - R) / np.sqrt(2), abs=1e-15)
    active = segment_with_circle((-0.1, r + 0.1, 0), (0.2, -0.2, 0), (0, 0, 0), X, R, active_is_line=False)
    assert active["n"] == pytest.approx(-slanted["n"], abs=1e-15) and active["depth"] == slanted["depth"]
    # a circle that is not centred on X: the printed n_C = [0, y, z]/d would be wrong
    moved = segment_with_circle((-0.1, r + 0.1 + 0.05, 0.02), (0.2, -0.2, 0), (0, 0.05, 0.02), X, R)
    assert moved["depth"] == pytest.approx(slanted["depth"], abs=1e-15) and moved["n"] == pytest.approx(slanted["n"], abs=1e-14)


def test_rotation_about_the_axis_changes_nothing():
    cavity = Cavity(PROFILE)
    reference = cavity.sphere(at(0.0735, 0.0905, 0.0), R_S)[0]
    for angle in np.linspace(0.1, 6.2, 9):
        c = cavity.sphere(at(0.0735, 0.0905, angle), R_S)[0]
        assert c["depth"] == pytest.approx(reference["depth"], abs=1e-16)


def test_force_is_continuous_over_face_edge_face():
    cavity = Cavity(PROFILE)
    path = np.linspace([0.06, 0.0105 + 0.094], [0.09, 0.08], 4001)
    depth = cavity.spheres(np.column_stack([path, np.zeros(len(path))]), R_S)[:, 0]
    step = np.linalg.norm(path[1] - path[0])
    assert depth.max() > 5e-4 and np.abs(np.diff(depth)).max() <= step * (1 + 1e-9)


# --------------------------------------------------------------------------------------------- coal and dense sampling, per pair


def random_centres(rng, pair, count, radius=R_S):
    """Centres (n, 2: x, rho) near one primitive of the profile, within 3 mm of touching it on either side."""
    depth = rng.uniform(-0.003, 0.003, count) if radius else rng.uniform(-1e-3, 0.003, count)
    if pair == "edge":
        vertex = np.array([1, 2, 3])[rng.integers(0, 3, count)]
        lean = rng.uniform(0.0, np.pi / 2, count)
        d = PROFILE[vertex] - (radius - depth)[:, None] * np.column_stack([np.cos(lean), np.sin(lean)])
    elif pair == "corner":
        d = PROFILE[4] - radius + rng.uniform(-0.003, 0.003, (count, 2))
    else:
        face = {"plane": np.array([0, 4]), "cone": np.array([1, 2]), "cylinder": np.array([3])}[pair]
        face = face[rng.integers(0, len(face), count)]
        a, b = PROFILE[face], PROFILE[face + 1]
        t = rng.uniform(-0.1, 1.1, count)[:, None]
        tangent = (b - a) / np.linalg.norm(b - a, axis=1)[:, None]
        normal = np.column_stack([-tangent[:, 1], tangent[:, 0]])
        d = a + t * (b - a) - (radius - depth)[:, None] * normal
    return d[d[:, 1] > 1e-3]


def inside_cavity(centres):
    x, d = centres.T
    return (x < 0) | ((x < 0.28) & (d < np.interp(x, [0, 0.10, 0.20, 0.28], [0.22, 0.12, 0.05, 0.05])))


def turned(centres, angles):
    return np.column_stack([centres[:, 0], centres[:, 1] * np.cos(angles), centres[:, 1] * np.sin(angles)])


@pytest.mark.parametrize("pair", ["cone", "edge", "cylinder", "plane", "corner"])
def test_no_sphere_contact_is_missed_against_coal(pair):
    """Depth and normal of the deepest contact to 1e-9, and of the second one in the corner of cylinder and bottom."""
    rng = np.random.default_rng(7)
    centres = random_centres(rng, pair, int(1.6 * POSES))
    centres = centres[inside_cavity(centres)][:POSES]
    assert len(centres) == POSES
    angles = rng.uniform(0, 2 * np.pi, POSES)
    distance, towards = face_distances(PROFILE, centres, R_S)
    kernel = Cavity(PROFILE).spheres(turned(centres, angles), R_S)
    expected = np.maximum(0.0, R_S - distance.min(axis=1))
    assert np.abs(kernel[:, 0] - expected).max() < 1e-9
    touching = expected > 0
    assert touching.sum() > 0.3 * POSES
    nearest = np.argmin(distance, axis=1)
    # where two faces are equally near either normal is right
    ordered = np.sort(distance, axis=1)
    clear = touching & ((ordered[:, 1] - ordered[:, 0] > 1e-7) | (pair == "edge"))
    assert clear.sum() > 0.25 * POSES
    n = turned(towards[np.arange(POSES), nearest], angles)
    assert np.abs(kernel[clear, 1:4] - n[clear]).max() < 1e-9
    assert np.abs(kernel[clear, 4:7] - turned(centres, angles)[clear] - R_S * n[clear]).max() < 1e-9
    if pair != "corner":
        return
    cavity, both = Cavity(PROFILE), 0
    for c, d, u in zip(centres, distance[:, 3:], towards[:, 3:], strict=True):
        found = cavity.sphere((c[0], c[1], 0.0), R_S)
        assert [f["index"] for f in found] == [3 + j for j in range(2) if d[j] < R_S]
        for f, j in zip(found, np.flatnonzero(d < R_S), strict=True):
            assert abs(f["depth"] - (R_S - d[j])) < 1e-9 and np.abs(f["n"][:2] - u[j]).max() < 1e-9
        both += len(found) == 2
    assert both > 0.1 * POSES


@pytest.mark.parametrize("pair", ["cone", "edge", "cylinder", "plane", "corner"])
def test_no_point_contact_is_missed_against_coal(pair):
    """A point touches where it is inside the solid; its depth is the distance to the nearest place of the surface; it has one contact."""
    rng = np.random.default_rng(17)
    points = random_centres(rng, pair, int(1.4 * POSES), 0.0)[:POSES]
    solid = ~inside_cavity(points) & (points[:, 1] < 0.30)
    assert len(points) == POSES and solid.sum() > 0.2 * POSES
    distance, towards = face_distances(PROFILE, points, 1e-4)
    angles = rng.uniform(0, 2 * np.pi, POSES)
    kernel = Cavity(PROFILE).spheres(turned(points, angles), 0.0)
    expected = np.where(solid, distance.min(axis=1), 0.0)
    assert np.abs(kernel[:, 0] - expected).max() < 1e-9
    ordered = np.sort(distance, axis=1)
    clear = solid & (expected > 1e-6) & ((ordered[:, 1] - ordered[:, 0] > 1e-7) | (pair == "corner"))
    assert clear.sum() > 0.2 * POSES
    # out of the solid: from the point to the surface is against the normal
    n = turned(-towards[np.arange(POSES), np.argmin(distance, axis=1)], angles)
    assert np.abs(kernel[clear, 1:4] - n[clear]).max() < 1e-9
    cavity = Cavity(PROFILE)
    assert all(len(cavity.sphere((x, d, 0.0), 0.0)) == s for (x, d), s in zip(points[::10], solid[::10], strict=True))


def test_no_contact_is_missed_against_dense_sampling():
    """The whole surface, sampled in azimuth and along the meridian: an independent check of the meridian argument and of the normals."""
    rng = np.random.default_rng(11)
    along = np.concatenate([np.linspace(a, b, int(np.hypot(*(b - a)) / 2e-3) + 2) for a, b in zip(PROFILE[:-1], PROFILE[1:], strict=True)])
    azimuth = np.linspace(0, 2 * np.pi, 721)
    surface = np.column_stack([
        np.repeat(along[:, 0], 721), np.outer(along[:, 1], np.cos(azimuth)).ravel(), np.outer(along[:, 1], np.sin(azimuth)).ravel()
    ])
    from scipy.spatial import cKDTree

    tree = cKDTree(surface)
    pairs = ("cone", "edge", "cylinder", "plane")
    centres = np.concatenate([random_centres(rng, pair, POSES // 4 + 400)[: POSES // 4] for pair in pairs])
    centres = centres[inside_cavity(centres)]
    centres = turned(centres, rng.uniform(0, 2 * np.pi, len(centres)))
    kernel = Cavity(PROFILE).spheres(centres, R_S)
    distance, nearest = tree.query(centres)
    sampled = R_S - distance
    assert np.all(kernel[sampled > 0, 0] > 0)                        # none missed
    assert np.all(kernel[:, 0] >= np.maximum(sampled, 0) - 1e-12)    # a sample is never nearer than the surface
    deep = (kernel[:, 0] > 1e-4) & (kernel[:, 0] < 5e-3)
    assert np.abs(kernel[deep, 0] - sampled[deep]).max() < 6e-5      # grid of 2 mm by 0.5 deg
    # the normal is the gradient of the depth: finite differences, at single contacts
    cavity = Cavity(PROFILE)
    for c in centres[deep][:300]:
        found = cavity.sphere(c, R_S)
        if len(found) != 1:
            continue
        h = 1e-6
        gradient = [(cavity.sphere(c + h * e, R_S)[0]["depth"] - cavity.sphere(c - h * e, R_S)[0]["depth"]) / (2 * h) for e in np.eye(3)]
        assert found[0]["n"] == pytest.approx(gradient, abs=1e-5)


def test_segment_segment_against_coal():
    """Every crossing of two segments inside both: depth and normal to 1e-9, orientation by the reference; none missed, none invented."""
    rng = np.random.default_rng(3)
    OA, OP = rng.uniform(-0.02, 0.02, (2, POSES, 3))
    OA[:, 1] -= 0.05
    OP[:, 2] -= 0.05
    LA, LP = rng.uniform(-0.03, 0.03, (2, POSES, 3))
    LA[:, 1] += 0.1
    LP[:, 2] += 0.1
    distance, normal = segment_distances(OA, OA + LA, OP, OP + LP)
    # the crossing of the two lines by a linear system, independent of the kernel's sums
    normals = np.cross(LA, LP)
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    t, s, gap = np.linalg.solve(np.stack([LA, -LP, normals], axis=2), (OP - OA)[..., None])[..., 0].T
    inside = (t >= 0) & (t <= 1) & (s >= 0) & (s <= 1)
    # gap: from the active line to the target one along `normals`; beyond it is penetration
    depth = -gap * np.where(normals[:, 0] < 0, -1, 1)
    touching = 0
    for i in range(POSES):
        hit, c = segment_with_segment(OA[i], LA[i], OP[i], LP[i], X)
        assert hit == (inside[i] and depth[i] > 0)
        if not inside[i]:
            continue
        assert abs(abs(c["depth"]) - distance[i]) < 1e-9 and (c["depth"] > 0) == (depth[i] > 0)
        assert c["n"] @ X >= 0
        if distance[i] > 1e-6:
            assert np.abs(c["n"] + np.sign(c["depth"]) * normal[i]).max() < 1e-9
        touching += hit
    assert touching > POSES / 4


@pytest.mark.parametrize("active_is_line", [True, False])
def test_segment_circle_against_coal_and_exact_distance(active_is_line):
    """Depth and normal against coal's capsules (segment and tangent of the circle), at the crossing and at the exactly nearest point."""
    rng = np.random.default_rng(5)
    R = 0.2
    azimuth, D = rng.uniform(0, 2 * np.pi, POSES), rng.uniform(-0.004, 0.004, POSES)
    radial = np.column_stack([np.zeros(POSES), np.cos(azimuth), np.sin(azimuth)])
    Q = (R + D)[:, None] * radial
    L = np.array([0.08, 0, 0]) + rng.uniform(-0.05, 0.05, (POSES, 3))
    t = rng.uniform(-0.1, 1.1, POSES)
    P1 = Q - t[:, None] * L
    sign = 1.0 if active_is_line else -1.0
    for refinements, at in ((0, azimuth), (3, nearest_azimuth(Q, L, R, azimuth))):
        u = np.column_stack([np.zeros(POSES), np.cos(at), np.sin(at)])
        along = np.cross(X, u)
        distance, normal = segment_distances(Q - 3 * L, Q + 3 * L, R * u - 2 * along, R * u + 2 * along)
        touching = 0
        for i in range(POSES):
            c = segment_with_circle(P1[i], L[i], (0, 0, 0), X, R, active_is_line, refinements)
            assert (c is not None) == (D[i] > 0 and 0 <= t[i] <= 1)
            if c is None:
                continue
            touching += 1
            assert abs(c["depth"] - distance[i]) < 1e-9
            # from the line to the circle when the line is outside: against the normal of an active line
            if distance[i] > 1e-6:
                assert np.abs(c["n"] + sign * normal[i]).max() < 1e-9
        assert touching > POSES / 3


def test_first_order_law_of_segment_and_circle():
    """The text's depth (no refinement) is off by a share that grows with D: 1.8e-3 at 5 mm, 0.36 per metre."""
    rng = np.random.default_rng(15)
    worst = 0.0
    for _ in range(2000):
        D = rng.uniform(1e-4, 4e-3)
        L = np.array([0.08, 0, 0]) + rng.uniform(-0.03, 0.03, 3)
        arguments = ((0, 0.2 + D, 0) - 0.5 * L, L, (0, 0, 0), X, 0.2)
        plain, exact = (segment_with_circle(*arguments, refinements=n)["depth"] for n in (0, 3))
        worst = max(worst, abs(plain / exact - 1) / D)
    assert 0.05 < worst < 0.36


# ------------------------------------------------------------------------------------------------------------- dichotomy, N3, N4


def family(half_angle, tilt, offset, sector, count=257, R=0.5):
    """Distances from the circle centre of the crossing points of a conical petal's generators."""
    phi = np.linspace(-sector / 2, sector / 2, count)
    start = np.column_stack([np.zeros(count), R * np.cos(phi), R * np.sin(phi)])
    direction = np.column_stack([np.full(count, np.cos(half_angle)), -np.sin(half_angle) * np.cos(phi), -np.sin(half_angle) * np.sin(phi)])
    c, s = np.cos(tilt), np.sin(tilt)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    start, direction = start @ turn.T + offset, direction @ turn.T
    t = -start[:, 0] / direction[:, 0]
    crossing = start + t[:, None] * direction
    return np.hypot(crossing[:, 1], crossing[:, 2])


def test_N4_dichotomy_finds_the_full_scan_in_eight_halvings():
    rng = np.random.default_rng(2)
    without_climb = 0
    for _ in range(5000):
        half_angle, tilt = np.radians(rng.uniform(20, 50)), np.radians(rng.uniform(-5, 5))
        d = family(half_angle, tilt, rng.uniform(-0.1, 0.1, 3) * (0.3, 1, 1), np.radians(120))
        best, value, halvings, measured = deepest_index(d)
        assert value == d.max() and halvings <= 8 and measured <= 8 + 2 + 20
        _, plain, _, seen = deepest_index(d, climb=False)
        assert seen <= 10
        without_climb += plain < d.max()
    assert without_climb < 0.01 * 5000


def test_dichotomy_of_coincident_axes_takes_the_middle():
    assert deepest_index(np.full(257, 0.3))[0] == 128


def test_N3_touching_segments_need_no_division_by_their_distance():
    hit, c = segment_with_segment((0, -1, 0), (0, 2, 0), (0, 0, -1), (0, 0, 2), X)
    assert not hit and c["depth"] == 0.0 and np.all(np.isfinite(c["n"])) and np.linalg.norm(c["n"]) == 1.0
    hit, _ = segment_with_segment((0, -1, 0), (0, 2, 0), (0.1, -1, 0), (0, 2, 1e-13), X)
    assert not hit                                                   # parallel: skipped, no NaN


# ------------------------------------------------------------------------------------------------------------- printed formulas


def test_printed_boxes_lose_contacts_near_edges():
    """E21-E27: with all signs repaired the box windows of (5.1) still lose contacts; the kernel must not."""
    rng = np.random.default_rng(1)
    lost = total = 0
    cavity = Cavity(PROFILE)
    for pair in ("cone", "edge"):
        centres = random_centres(rng, pair, 1500)
        for x, d in centres[inside_cavity(centres)]:
            if not cavity.sphere((x, d, 0.0), R_S):
                continue
            total += 1
            box = False
            for (xa, ra), (xb, rb) in zip(PROFILE[1:3], PROFILE[2:4], strict=True):
                a = np.arctan2(ra - rb, xb - xa)
                box |= xa - R_S * np.sin(a) <= x <= xb - R_S * np.sin(a) and rb - R_S * np.cos(a) <= d <= ra - R_S * np.cos(a)
            angles = [np.pi / 2, np.pi / 4, np.arctan2(0.07, 0.10), 0.0]
            for i, (xe, re) in enumerate(PROFILE[1:4]):
                before, after = angles[i], angles[i + 1]
                box |= (xe - R_S * np.sin(before) <= x <= xe - R_S * np.sin(after)
                        and re - R_S * np.cos(after) <= d <= re - R_S * np.cos(before))
            box |= x >= 0.20 and d >= 0.05 - R_S or (x >= -R_S and d >= 0.22 - R_S * 0)
            lost += not box
    assert total > 800 and lost > 0


@pytest.mark.parametrize("bad", [[(0, 1)], [(0, 1), (0, 1)], [(0, 1), (1, -1)], [(0, np.nan), (1, 0)], [(0, 1, 2), (1, 2, 3)]])
def test_bad_profiles_are_named(bad):
    with pytest.raises(ValueError, match="profile"):
        Cavity(bad)
