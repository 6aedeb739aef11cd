"""Errata of class A of contact and mechanisms: the kernel agrees with the corrected form; the printed one, written down beside it, misses.

Ids: E docking notes (ch. 4-6), E1. multibody notes (ch. 1-3), B berthing and peripheral notes (ch. 7, 8). The table of all of them is
docs/validation.md; those that are not here have their test beside the kernel.
"""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.contact.primitives import Cavity, Law, segment_with_circle, segment_with_segment
from rt_kernels.mechanisms.berthing.head import hinge_step
from rt_kernels.mechanisms.berthing.pins import BerthingPins
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone
from rt_kernels.mechanisms.ring.contact import implicit_latch
from rt_kernels.mechanisms.ring.platform import RingPlatform
from rt_kernels.mechanisms.ring.unit import Ring
from rt_kernels.multibody import Body, Tree
from rt_kernels.offline.tree_loops import ClosedTree
from rt_kernels.offline.two_craft import aux_index
from tests.mechanisms.ring.test_platform import legs_of, state
from tests.mechanisms.shipped import shipped
from tests.mechanisms.test_energy import RELEASE, drag
from tests.multibody.test_tree_errata import chain_sweep, planar_loop, rus_angles, turn, ups_angles

X = np.array([1.0, 0.0, 0.0])
WRONG = 1e-4

# ---- contact primitives ----------------------------------------------------------------------------------------------------------

A_CONE, X_T, R_S = np.arctan2(0.07, 0.10), 0.20 + 0.05 / 0.7, 0.04        # second cone of the profile, its vertex
PROFILE = [(0, 0.30), (0, 0.22), (0.10, 0.12), (0.20, 0.05), (0.28, 0.05), (0.28, 0)]


def cone_depth(x, d, printed=False):
    """E21: printed without the centre's x."""
    d_SX = X_T - (0.0 if printed else x) - d / np.tan(A_CONE)
    return R_S - d_SX * np.sin(A_CONE)


def edge_depth(x, d, printed=False):
    """E24, E26: printed d_BX = x_S - x_CB (its sign is the normal's) and depth d_B - R_S. Returns depth and n_x."""
    d_BX, d_BL = (x - 0.10 if printed else 0.10 - x), 0.12 - d
    d_B = np.hypot(d_BX, d_BL)
    return (d_B - R_S if printed else R_S - d_B), d_BX / d_B


def cylinder_depth(d, printed=False):
    """E27: printed d_L - R_S."""
    return d - R_S if printed else R_S - (0.05 - d)


def test_E21_cone_depth_contains_the_axial_place():
    for x, d in ((0.098, 0.074), (0.11, 0.066), (0.125, 0.054)):
        (c,) = Cavity(PROFILE).sphere((x, d, 0), R_S)
        assert c["kind"] == 0 and c["index"] == 2
        assert c["depth"] == pytest.approx(cone_depth(x, d), abs=1e-14)
        assert abs(c["depth"] - cone_depth(x, d, printed=True)) > 0.01


def test_E22_E24_E25_printed_windows_lose_contacts_of_cone_and_edge():
    """The windows of the centre as printed (vertex origin, X outwards): a fifth of the cone's contacts is outside, all of the edge's."""
    rng = np.random.default_rng(0)
    cavity, a_before, a_after = Cavity(PROFILE), np.pi / 4, A_CONE
    cone, edge = [], []
    for x, lean in np.column_stack([rng.uniform(0.06, 0.18, 3000), rng.uniform(a_after, a_before, 3000)]):
        cone += [x for c in cavity.sphere((x, (X_T - x - (R_S - 1e-3) / np.sin(a_after)) * np.tan(a_after), 0), R_S)
                 if (c["kind"], c["index"]) == (0, 2)]
        centre = np.array([0.10, 0.12]) - (R_S - 1e-3) * np.array([np.sin(lean), np.cos(lean)])
        edge += [centre for c in cavity.sphere((*centre, 0), R_S) if (c["kind"], c["index"]) == (1, 2)]
    inside = [0.05 / np.tan(a_after) + R_S * np.sin(a_after) <= x <= X_T - 0.05 / np.tan(a_after) for x in cone]
    assert len(cone) > 1000 and 0.1 < 1 - np.mean(inside) < 0.3
    lowest, highest = 0.12 - R_S * np.cos(a_after), 0.12 - R_S * np.cos(a_before)         # d >= d_min(i-1), d < d_max(i)
    inside = [0.10 + R_S * np.sin(a_before) <= x <= 0.10 + R_S * np.sin(a_after) and highest <= d < lowest for x, d in edge]
    assert len(edge) > 1000 and not any(inside)


def test_E24_E26_edge_normal_points_into_the_receptacle_and_depth_is_positive():
    for lean in (0.82, 0.9):
        x, d = 0.10 - (R_S - 5e-4) * np.cos(lean), 0.12 - (R_S - 5e-4) * np.sin(lean)
        (c,) = Cavity(PROFILE).sphere((x, d, 0), R_S)
        assert c["kind"] == 1 and (c["depth"], c["n"][0]) == pytest.approx(edge_depth(x, d), abs=1e-14)
        depth, n_x = edge_depth(x, d, printed=True)
        assert depth < 0 and n_x * c["n"][0] < 0


def test_E27_cylinder_depth():
    (c,) = Cavity(PROFILE).sphere((0.23, 0.0103, 0), R_S)
    assert c["depth"] == pytest.approx(cylinder_depth(0.0103), abs=1e-15)
    assert abs(c["depth"] - cylinder_depth(0.0103, printed=True)) > 0.01


def printed_line_circle(P1, L, centre, R):
    """(5.2) as printed, axis X: n_C from the axis X, n_R with n_x > 0, depth D (n_R . n_C)."""
    t = (centre[0] - P1[0]) / L[0]
    P = P1 + t * L
    D = np.linalg.norm(P - centre) - R
    n_C = np.array([0.0, P[1], P[2]]) / np.hypot(P[1], P[2])
    n = np.cross(L, np.cross(X, n_C))
    n *= np.sign(n[0]) / np.linalg.norm(n)
    return D * (n @ n_C), n


def test_E29_circle_off_the_axis_and_active_circle():
    P1, L, centre = np.array([-0.1, 0.357, 0.02]), np.array([0.2, -0.2, 0.01]), np.array([0.0, 0.05, 0.02])
    ours = segment_with_circle(P1, L, centre, X, 0.2)
    depth, n = printed_line_circle(P1, L, centre, 0.2)
    assert np.abs(n - ours["n"]).max() > WRONG                       # off the axis
    P1, L, centre = np.array([-0.1, 0.307, 0.0]), np.array([0.2, -0.2, 0.01]), np.zeros(3)
    ours = segment_with_circle(P1, L, centre, X, 0.2)
    depth, n = printed_line_circle(P1, L, centre, 0.2)
    assert (ours["depth"], *ours["n"]) == pytest.approx((depth, *n), abs=1e-15)
    active_circle = segment_with_circle(P1, L, centre, X, 0.2, active_is_line=False)
    assert active_circle["depth"] > 0 and active_circle["n"] == pytest.approx(-ours["n"], abs=1e-15)
    # the printed orientation leaves n_x > 0: the normal of the target circle, and the force on the wrong body
    assert printed_line_circle(P1, L, centre, 0.2)[1] @ active_circle["n"] < 0


def test_E30_segments_are_oriented_by_their_own_reference():
    """Flanks whose common normal is nearly square to X: n_x > 0 gives the wrong side where the reference of the pair does not."""
    LA, LP = np.array([0.10, 0.02, 0.0]), np.array([0.02, 0.10, 0.001])
    OA, OP = -0.5 * LA - [0, 0, 0.001], -0.5 * LP
    reference = np.array([0.02, 0.0, -1.0])                      # out of the active flank
    hit, c = segment_with_segment(OA, LA, OP, LP, reference)
    assert hit and c["n"] @ reference > 0 and c["depth"] == pytest.approx(1e-3, rel=1e-3)
    printed = np.cross(LA, LP) / np.linalg.norm(np.cross(LA, LP))
    assert 0 < printed[0] < 0.05 and printed @ c["n"] < 0
    hit, _ = segment_with_segment(OA, LA, OP, LP, X)                 # the printed rule: the contact is lost
    assert not hit


def test_E15_printed_reaction_pulls_and_is_undefined_at_rest():
    law, n = Law(1e6, 4000.0, 0.3), np.array([0.6, 0.0, 0.8])
    force, normal, *_ = law.react(1e-4, n, -0.5 * n, np.zeros(3))
    assert 1e6 * 1e-4 + 4000.0 * -0.5 < 0 and normal == 0.0 and np.all(force == 0.0)
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.zeros(3) / np.linalg.norm(np.zeros(3))).all()
    assert np.all(np.isfinite(law.react(1e-4, n, np.zeros(3), np.zeros(3))[0]))


# ---- probe kinematics ------------------------------------------------------------------------------------------------------------


def probe_rates(q, v, printed=()):
    """w_B1 in frame 0 (E32: w_B2 is in frame 0 already, printed as if in B2; E34: w_rel goes by A_B1, printed A_B21)."""
    (s1, c1), (s2, c2) = ((np.sin(a), np.cos(a)) for a in q[:2])
    A_B2 = turn(np.eye(3)[2], q[1]) @ turn(np.eye(3)[1], q[0])
    A_B21 = turn(X, q[4]) @ turn(np.eye(3)[2], q[3]) @ turn(np.eye(3)[1], q[2])
    w_B2 = np.array([s1 * v[1], v[0], c1 * v[1]])
    if "E32" in printed:
        w_B2 = A_B2.T @ w_B2
    s4, c4, s5, c5 = np.sin(q[3]), np.cos(q[3]), np.sin(q[4]), np.cos(q[4])
    w_rel = np.array([s4 * v[2] + v[4], c5 * c4 * v[2] + s5 * v[3], -s5 * c4 * v[2] + c5 * v[3]])
    return w_B2 + (A_B21.T if "E34" in printed else (A_B21 @ A_B2).T) @ w_rel


@pytest.mark.parametrize("printed", ["", "E32", "E34"])
def test_E32_E34_angular_velocity_of_the_probe(printed):
    part = ProbeCone()
    names = [a.name for a in part.AUX]
    q, v = np.array([0.20, -0.15, 0.06, -0.05, 0.1, 0.6, 0.0]), np.array([0.3, -0.2, 0.5, 0.4, -0.6, -0.12, 0.0])
    part.set_state(q, v)
    row = part.glide((-2.0, 0, 0, 0, 0, 0, 1.0), np.zeros(6), 1e-12, 1)[1][0]
    at = 13 + names.index("probe.head_w_x")
    error = np.abs(row[at : at + 3] - probe_rates(q, v, {printed})).max()
    assert error < 1e-9 if not printed else error > 1e-3


# ---- legs of a ring: the kernel of six legs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("printed", ["", "E1.2", "E1.5", "E1.6", "E1.7", "E1.8", "E1.9"])
def test_loop_closure_of_a_strut(printed):
    """p' = H u and p'' = H u' + h of the six struts of the kernel against the text's sweep over one strut, right and as printed."""
    tables = legs_of("UPS")
    legs = RingPlatform(tables, 7.0, np.diag([0.9, 0.6, 0.7]))
    p, R, v, w = state("UPS", 21)
    out = legs.evaluate(p, R, v, w, np.array([10.0, -5, 3, 1, -2, 0.5]), np.zeros((6, 3)))
    y, z = np.eye(3)[1:]
    errors = []
    for k, table in enumerate(tables):
        ring = {"al": R.T, "omega": R.T @ w, "l": table["p_NQ"], "tip": np.array([1.0, 0, 0])}
        chain = [("R", y, table["R_0J"].T, table["p_0J"]), ("R", z, np.eye(3), np.zeros(3)), ("P", X, np.eye(3), np.zeros(3))]
        H, h, end = chain_sweep(chain, out["p"][k], out["p_rate"][k], ring, {printed})
        u = np.concatenate([v, R.T @ w])
        # u' of the text is on ring axes in its angular half
        u_dot = np.concatenate([out["u_dot"][:3], R.T @ out["u_dot"][3:]])
        errors.append(max(np.abs(end - p - R @ table["p_NQ"]).max(), np.abs(H @ u - out["p_rate"][k]).max(),
                          np.abs(H @ u_dot + h - out["p_accel"][k]).max()))
    assert max(errors) < 1e-10 if not printed else max(errors) > WRONG


def test_E1_14_leg_angle_in_the_nominal_pose_and_beyond_a_right_angle():
    """Nominal pose: the printed ctg p_1 divides by zero. A leg that points back: its branch is the wrong one."""
    tables = legs_of("UPS")
    legs = RingPlatform(tables, 7.0, np.eye(3))
    q, _ = legs.place([1.1, 0, 0], np.eye(3))
    assert np.abs(np.array(q)[:, :2]).max() < 1e-15
    with pytest.raises(ZeroDivisionError):
        ups_angles([np.linalg.norm(tables[0]["p_NQ"]), 0.1, 0.0], printed=True)
    p = np.array([-0.9, 0.1, 0.05])
    q, _ = legs.place(p, np.eye(3))
    for k, table in enumerate(tables):
        r = table["R_0J"].T @ (p + table["p_NQ"] - table["p_0J"])
        assert q[k][:2] == pytest.approx(ups_angles(r), abs=1e-14)
        assert abs(q[k][0] - ups_angles(r, printed=True)[0]) > 0.1 or r[0] > 0


@pytest.mark.parametrize("printed", ["", "E1.15", "E1.16"])
def test_E1_15_E1_16_B20_spin_of_a_strut(printed):
    """Angle of the kernel's UCU legs about their own axis: tg p = -psi(3,2)/psi(3,3), cos = 1/sqrt(1 + tg^2)."""
    tables = legs_of("UCU")
    legs = RingPlatform(tables, 7.0, np.eye(3))
    gaps = []
    for seed in range(20):
        p, R, _, _ = state("UCU", seed)
        for table, q in zip(tables, legs.place(p, R)[0], strict=True):
            leg = table["R_0J"] @ Rotation.from_euler("YZ", q[:2]).as_matrix()      # link axes before the spin, in the base
            psi = leg.T @ R @ table["e_N"]
            tangent = psi[1] / psi[0] if printed == "E1.16" else -psi[1] / psi[2]
            cosine = 1 / np.sqrt(abs(1 + tangent)) if printed == "E1.15" else 1 / np.sqrt(1 + tangent**2)
            gaps.append(max(abs(np.cos(q[3]) - cosine), abs(np.sin(q[3]) - tangent * cosine)))
    assert max(gaps) < 1e-12 if not printed else max(gaps) > 1e-2


@pytest.mark.parametrize("printed", ["", "E1.17"])
def test_E1_17_crank_and_link(printed):
    """RUS legs of the kernel: the universal joint turns with the crank; the text measures its angles to a plane fixed in the base."""
    tables = legs_of("RUS")
    for table in tables:
        table["R_LU"] = turn(X, np.radians(31.0)).T
    legs = RingPlatform(tables, 7.0, np.eye(3))
    l12, l23 = tables[0]["links"][0], tables[0]["links"][2]

    def in_hinge(k, p, R):
        return tables[k]["R_0J"].T @ (p + R @ tables[k]["p_NQ"] - tables[k]["p_0J"])

    nominal, eye = np.array([1.1, 0.0, 0.0]), np.eye(3)
    errors = []
    for seed in range(5):
        p, R, _, _ = state("RUS", seed)
        q = legs.place(p, R)[0]
        for k in range(6):
            normal = None
            if printed:
                q0 = rus_angles(in_hinge(k, nominal, eye), l12, l23, np.radians(31.0))
                normal = turn(np.eye(3)[2], q0[0]).T @ turn(X, np.radians(31.0)).T @ np.eye(3)[2]
            with np.errstate(invalid="ignore"):
                angles = rus_angles(in_hinge(k, p, R), l12, l23, np.radians(31.0), normal)
            errors.append(min(np.nan_to_num(np.abs(q[k] - angles * [1, 1, sign]).max(), nan=9.0) for sign in (1.0, -1.0)))
    assert max(errors) < 1e-12 if not printed else max(errors) > 1e-3


@pytest.mark.parametrize("printed", ["", "E1.12", "E1.13"])
def test_E1_12_E1_13_planar_secondary_loop(printed):
    """Strut on a crank (R-P-R, model M1): angle, stroke, rates and accelerations of the closed tree against the closed form.

    The strut's foot has a second axis, so that the spherical cut finds three dependent coordinates; in the plane it stays at zero.
    """
    z, y = np.eye(3)[2], np.eye(3)[1]
    bodies = [Body("crank", axis=z, mass=1.0, com=[0.1, 0, 0], inertia=np.eye(3)),
              Body("strut", None, "universal", p_PJ_P=[0.5, -0.2, 0], axis=z, axis2=y, mass=0.5, inertia=0.1 * np.eye(3)),
              Body("rod", "strut", "prismatic", axis=X, mass=0.5, inertia=0.1 * np.eye(3))]  # fmt: skip
    tree = Tree(bodies, gravity=(0, 0, 0))
    loops = ClosedTree(tree, [{"joint": "spherical", "bodies": ("rod", "crank"), "points": ((0, 0, 0), (0.25, 0.04, 0))}], ["crank"])
    p0, p_dot0, _ = planar_loop(0.3, 0.8, 0.0)
    q = loops.close(np.array([0.3, p0[0] + 0.02, 0.01, p0[1] - 0.01]))
    v = loops.project(q, np.array([0.8, 0, 0, 0]))
    a, _ = loops.forward_dynamics(q, v, np.array([2.0, 0.3, 0.0, -1.0]))
    p, p_dot, p_ddot = planar_loop(0.3, 0.8, a[0], {printed})
    expected, found = np.array([*p, *p_dot, *p_ddot]), np.array([q[1], q[3], v[1], v[3], a[1], a[3]])
    assert abs(q[2]) + abs(v[2]) + abs(a[2]) < 1e-12
    error = np.abs(found - expected).max()
    assert error < 1e-11 if not printed else error > 1e-2


# ---- ring latches -----------------------------------------------------------------------------------------------------------------


def test_E42_stiff_contact_of_a_latch_is_inside_the_implicit_step():
    """h^2 kap/m = 125: the text's explicit contact ("as large as one likes") explodes, ours comes to rest on the stop at the same place."""
    h, m, k, f0, k_LS, place = 5e-4, 0.2, 3000.0, 15.0, 1e8, 0.004

    def run(inside):
        v = x = 0.0
        for _ in range(400):
            depth = place - x
            if inside and depth > 0.0:
                v, x = implicit_latch(h, m, k + k_LS, f0, k_LS * place, v, x)
            else:
                v, x = implicit_latch(h, m, k, f0, k_LS * max(depth, 0.0), v, x)
        return v, x

    v, x = run(inside=True)
    assert abs(v) < 1e-6 and x == pytest.approx(place - (f0 + k * place) / k_LS, rel=1e-6)
    assert max(map(abs, run(inside=False))) > 1.0


def test_E42_ring_with_very_stiff_stops():
    """The unit itself: stops of 2e8 N/m load the ring as those of 1e6 N/m do while its latches ride over them."""
    peaks = []
    for stiffness in (1e6, 2e8):
        unit = Ring(**(shipped("ring") | {"latch_contact_stiffness_n_per_m": stiffness}))
        rows, *_ = drag(unit, [-0.42, 0, 0, 0, 0, 0, 1], [([0.05, 0, 0], 1.45)], 5e-4)
        x = rows["aux"][:, aux_index(unit, "latch_compression"):][:, :6]
        peaks.append((x.max(), np.abs(rows["F_T"][rows["t"] < 1.35]).max()))
        assert np.all(np.isfinite(rows["F_T"]))
    assert 1e-3 < peaks[0][0] < 0.02
    assert peaks[1] == pytest.approx(peaks[0], rel=0.15)


def test_E44_locking_face_holds_tension():
    """Captured and drawn back: the target ring is pulled along -X. With the printed face (n_x > 0) it would be pushed away."""
    unit = Ring(**shipped("ring"))
    rows, *_ = drag(unit, [-0.42, 0, 0, 0, 0, 0, 1], [([0.05, 0, 0], 1.6), ([-0.02, 0, 0], 3.0)], 5e-4)
    captured = aux_index(unit, "capture_time")
    assert rows["aux"][-1, captured] > 0
    pull = rows["F_T"][:, 0]
    assert pull[-1] < -50.0 and pull[-1] < pull[-1000] < 0.0
    free = Ring(**shipped("ring"))
    rows, *_ = drag(free, [-0.42, 0, 0, 0, 0, 0, 1], [([0.05, 0, 0], 1.6), ([-0.02, 0, 0], 3.0)], 5e-4, RELEASE)
    assert rows["F_T"][-1, 0] == 0.0


# ---- berthing devices --------------------------------------------------------------------------------------------------------------


def printed_hinge(h, J, k, c, psi0, m, w, psi):
    """(8.4) as printed (B29): one offset psi_0 for both signs, and the spring inside the free angle as well."""
    D0 = 1 + (h / J) * (c + h * k)
    return (w + (h / J) * (m - k * (psi - psi0))) / D0, (psi * (1 + h * c / J) + h * (w + (m + k * psi0) * h / J)) / D0


def test_B29_E58_hinge_stop_has_two_sides_and_a_free_angle():
    numbers = (5e-4, 0.01, 4000.0, 4.0, np.radians(1.0))
    beyond = hinge_step(*numbers, 1.3, -0.4, 0.021)
    assert beyond == pytest.approx(printed_hinge(*numbers, 1.3, -0.4, 0.021), rel=1e-12)        # right on the positive side
    for angle in (-0.021, 0.005):
        ours, printed = hinge_step(*numbers, 1.3, -0.4, angle), printed_hinge(*numbers, 1.3, -0.4, angle)
        assert abs(ours[0] - printed[0]) > 0.1
    # mirror image: the stop of the other side pushes back as hard
    mirrored = hinge_step(*numbers, -1.3, 0.4, -0.021)
    assert mirrored == pytest.approx((-beyond[0], -beyond[1]), rel=1e-14)


def test_B30_pins_have_the_velocity_of_their_own_place():
    """Normal damping and friction at the pins under a rotation: v + w x l (printed without the cross product)."""
    table = shipped("usa_usp")
    unit = BerthingPins(**table)
    q = Rotation.from_rotvec([0.01, 0.02, -0.01])
    p, V = np.array([-0.03, 0.004, -0.002]), np.array([0.02, 0.0, 0.0, 0.0, 0.05, 0.10])
    F = unit.advance([*p, *q.as_quat()], V, 1e-4)["F_T"]
    law = Law(table["contact_stiffness_n_per_m"], table["contact_damping_n_s_per_m"], table["friction"], 5e-4, 1e-4, 0.5 * 100.0 / 1e-3)

    def sum_of_contacts(with_rotation):
        total = np.zeros(6)
        for depth, n, r, *_ in unit.contacts([*p, *q.as_quat()]):
            v = V[:3] + (np.cross(V[3:], r - p) if with_rotation else 0.0)
            f = law.react(depth, n, v, np.zeros(3))[0]
            total += np.concatenate([f, np.cross(r, f)])
        return total

    assert np.linalg.norm(F) > 1.0 and F == pytest.approx(sum_of_contacts(True), rel=1e-9, abs=1e-9)
    assert np.abs(F - sum_of_contacts(False)).max() > 1e-2 * np.abs(F).max()


