"""Closed loops by separation of variables: the golden platform, Pinocchio's constrained dynamics, and a four-bar linkage."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

from rt_kernels.multibody import Body, ModelError, Tree
from rt_kernels.offline.integrators import Motion
from rt_kernels.offline.tree_loops import ClosedTree, cut_at
from tests.multibody.tree_cases import pinocchio_model, relative


def about_com(mass, com, about_origin):
    com = np.array(com)
    return np.diag(np.array(about_origin, dtype=float)) - mass * (com @ com * np.eye(3) - np.outer(com, com))


def platform():
    """Digest G1: a ring on six legs, universal joint, stroke, ball joint (cut). Returns tree, loops and the legs' frames."""
    bodies, cuts = [Body("ring", None, "free", mass=7.0, inertia=np.diag([0.9, 0.6, 0.7]))], []
    for k in range(6):
        a, b = np.deg2rad(120 * (k // 2) + (-10 if k % 2 == 0 else 10)), np.deg2rad(120 * (k // 2) + (-50 if k % 2 == 0 else 50))
        foot, head = np.array([0, np.cos(a), np.sin(a)]), 0.7 * np.array([0, np.cos(b), np.sin(b)])
        x = np.array([1.1, 0, 0]) + head - foot
        x /= np.linalg.norm(x)
        y = np.cross([0, 0.3, 1], x)
        y /= np.linalg.norm(y)
        g = np.array([x, y, np.cross(x, y)])  # rows: components to the joint frame
        bodies += [
            Body(f"leg{k}", None, "universal", R_PJ=g.T, p_PJ_P=foot, axis=[0, 1, 0], axis2=[0, 0, 1], mass=2.0, com=[0.3, 0, 0],
                 inertia=about_com(2.0, [0.3, 0, 0], [0.004, 0.24, 0.24])),
            Body(f"rod{k}", f"leg{k}", "prismatic", p_PJ_P=[1, 0, 0], axis=[1, 0, 0], mass=1.5, com=[-0.25, 0, 0],
                 inertia=about_com(1.5, [-0.25, 0, 0], [0.002, 0.125, 0.125])),
        ]  # fmt: skip
        cuts.append({"joint": "spherical", "bodies": (f"rod{k}", "ring"), "points": ((0, 0, 0), head)})
    tree = Tree(bodies, gravity=(0, 0, 0))
    return tree, ClosedTree(tree, cuts, ["ring"]), cuts


def golden_state(tree, loops):
    psi, theta, phi = 0.08, -0.05, 0.10
    ax = np.array([[1, 0, 0], [0, np.cos(phi), np.sin(phi)], [0, -np.sin(phi), np.cos(phi)]])
    ay = np.array([[np.cos(psi), 0, -np.sin(psi)], [0, 1, 0], [np.sin(psi), 0, np.cos(psi)]])
    az = np.array([[np.cos(theta), np.sin(theta), 0], [-np.sin(theta), np.cos(theta), 0], [0, 0, 1]])
    al = ax @ az @ ay  # components to the ring
    q, v, tau = tree.neutral(), np.zeros(tree.nv), np.zeros(tree.nv)
    q[:3], q[3:7] = [1.1, 0.03, -0.05], pin.Quaternion(al.T).coeffs()
    v[:3], v[3:6] = al @ [0.2, -0.1, 0.3], [0.1, -0.2, 0.15]
    tau[:3], tau[3:6] = al @ [10, -5, 3], [1, -2, 0.5]
    for k in range(6):
        tau[tree.coordinates(f"rod{k}")[1]] = 20 + 5 * k
    q = loops.close(q)
    return q, loops.project(q, v), tau, al


def test_golden_platform():
    tree, loops, _ = platform()
    q, v, tau, al = golden_state(tree, loops)
    a, reactions = loops.forward_dynamics(q, v, tau)
    strokes = [q[tree.coordinates(f"rod{k}")[0]][0] + 1.0 for k in range(6)]
    np.testing.assert_allclose(strokes, [1.2325000402, 1.3407431808, 1.3217942382, 1.3129214665, 1.1771200707, 1.2874654601], atol=1e-9)
    leg, rod = tree.coordinates("leg0"), tree.coordinates("rod0")
    np.testing.assert_allclose([*q[leg[0]], *q[rod[0]]], [-0.0024102801, 0.0554455292, 0.2325000402], atol=1e-9)
    np.testing.assert_allclose([*v[leg[1]], *v[rod[1]]], [-0.3267215090, -0.0511643141, 0.1335964196], atol=1e-9)
    np.testing.assert_allclose([*a[leg[1]], *a[rod[1]]], [-4.7023600160, 3.9746170413, 8.5371236336], atol=1e-9)
    np.testing.assert_allclose(al.T @ (a[:3] + np.cross(v[3:6], v[:3])), [11.4693418162, 0.8418692872, 0.2701855523], atol=1e-9)
    np.testing.assert_allclose(a[3:6], [2.7053678227, -2.5434485385, 4.3881839899], atol=1e-9)
    # the digest's lambda acts on the leg, ours on the ring
    np.testing.assert_allclose(-reactions[0, :3], [-2.3856321505, 8.6976054898, 6.9070909453], atol=1e-9)
    # wrench of the mechanism on the base: feet only, the ring's joint carries nothing; from the tree's own momentum balance
    external = np.zeros((tree.n_bodies, 6))
    external[0] = tau[:6]
    for k in range(6):
        head = tree.pose(q, f"rod{k}")
        external[tree.joint_names.index(f"rod{k}"), :3] = head[0].T @ -reactions[k, :3]
    torques = tau.copy()
    torques[:6] = 0.0
    ring = np.zeros(6)
    for k in range(6):
        arm = al.T @ np.array(_head(k))
        ring[:3] += reactions[k, :3]
        ring[3:] += np.cross(arm, reactions[k, :3])
    external[0] += [*(al @ ring[:3]), *(al @ ring[3:])]
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a, external), torques, atol=1e-11)
    wrench = tree.base_wrench(q, v, a, external)
    expected = [-176.5746404612, -19.0101753749, -1.7110730919, -16.1639839219, 15.3144998584, -25.2103009245]
    np.testing.assert_allclose(-wrench, expected, atol=1e-8)


def _head(k):
    b = np.deg2rad(120 * (k // 2) + (-50 if k % 2 == 0 else 50))
    return 0.7 * np.array([0, np.cos(b), np.sin(b)])


def test_platform_against_constrained_pinocchio():
    """Dense KKT of Pinocchio's tree with 18 point constraints (its own Jacobians and classical accelerations)."""
    tree, loops, cuts = platform()
    q, v, tau, _ = golden_state(tree, loops)
    model, data = pinocchio_model(tree.bodies)
    model.gravity.setZero()
    a, reactions = loops.forward_dynamics(q, v, tau)
    H = np.triu(pin.crba(model, data, q))
    H = H + np.triu(H, 1).T
    bias = pin.rnea(model, data, q, v, np.zeros(model.nv))
    for k, cut in enumerate(cuts):
        for body, point in zip(cut["bodies"], cut["points"], strict=True):
            joint = model.getJointId(body)
            model.addFrame(pin.Frame(f"{body}_{k}", joint, pin.SE3(np.eye(3), np.array(point)), pin.FrameType.OP_FRAME))
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    J, c = [], []
    for k, cut in enumerate(cuts):
        rows = [model.getFrameId(f"{body}_{k}") for body in cut["bodies"]]
        jacobians = [pin.getFrameJacobian(model, data, f, pin.LOCAL_WORLD_ALIGNED)[:3] for f in rows]
        accelerations = [pin.getFrameClassicalAcceleration(model, data, f, pin.LOCAL_WORLD_ALIGNED).linear for f in rows]
        J.append(jacobians[1] - jacobians[0])
        c.append(accelerations[1] - accelerations[0])
    J, c = np.vstack(J), np.concatenate(c)
    kkt = np.block([[H, -J.T], [J, np.zeros((18, 18))]])
    expected = np.linalg.solve(kkt, np.concatenate([tau - bias, -c]))
    assert relative(a, expected[: model.nv]) < 1e-11
    assert relative(reactions[:, :3].ravel(), expected[model.nv :]) < 1e-10


def test_universal_cut_against_finite_differences():
    """A strut with a spherical foot and a universal head: accelerations of all coordinates from Newton solutions along a motion."""
    bodies = [
        Body("plate", None, "free", mass=5.0, com=[0.1, 0, 0], inertia=np.diag([0.5, 0.6, 0.7])),
        Body(
            "foot",
            None,
            "universal",
            p_PJ_P=[0.2, -0.3, 0.0],
            axis=[1, 0, 0],
            axis2=[0, 1, 0],
            mass=1.0,
            com=[0, 0, 0.3],
            inertia=0.01 * np.eye(3),
        ),
        Body("rod", "foot", "prismatic", p_PJ_P=[0, 0, 0.5], axis=[0, 0, 1], mass=0.5, com=[0, 0, 0.1], inertia=0.01 * np.eye(3)),
        Body("spin", "rod", "revolute", axis=[0, 0, 1], mass=0.4, com=[0.02, 0, 0.1], inertia=0.004 * np.eye(3)),
    ]
    tree = Tree(bodies, gravity=(0, 0, -9.81))
    cut = {"joint": "universal", "bodies": ("spin", "plate"), "points": ((0, 0, 0.2), (0.1, -0.2, 0.0)), "axes": ((1, 0, 0), (0, 1, 0))}
    loops = ClosedTree(tree, [cut], ["plate"])
    q = tree.neutral()
    q[:3] = [0.1, 0.05, 0.9]
    v = np.zeros(tree.nv)
    v[:6] = [0.3, -0.2, 0.1, 0.4, -0.3, 0.5]
    q = loops.close(q)
    v = loops.project(q, v)
    a, _ = loops.forward_dynamics(q, v, np.zeros(tree.nv))

    def velocity_at(t):
        """Dependent velocities when the plate moves with the given twist and acceleration."""
        at = q.copy()
        half = v.copy()
        half[:6] += 0.5 * t * a[:6]
        at = loops.close(tree.integrate(at, half * t / 1.0, 1.0))
        moved = v.copy()
        moved[:6] += t * a[:6]
        return loops.project(at, moved)

    step = 1e-4
    np.testing.assert_allclose((velocity_at(step) - velocity_at(-step)) / (2 * step), a, atol=1e-6)


def test_loop_to_the_inertial_frame():
    """Crank, coupler on a universal joint, slider on the coupler; the slider's end is held by a ball joint at a fixed point."""
    bar = {"mass": 1.0, "com": [0.5, 0, 0], "inertia": np.diag([1e-3, 0.1, 0.1])}
    bodies = [Body("crank", None, "revolute", axis=[0, 0.2, 1], **bar),
              Body("coupler", "crank", "universal", p_PJ_P=[1, 0, 0], axis=[0, 0, 1], axis2=[0, 1, 0], **bar),
              Body("slider", "coupler", "prismatic", p_PJ_P=[0.4, 0, 0], axis=[1, 0, 0], **bar)]  # fmt: skip
    tree = Tree(bodies, gravity=(0, 0, 0))
    cut = {"joint": "spherical", "bodies": (None, "slider"), "points": ((1.2, 1.1, 0.1), (0.6, 0, 0))}
    with pytest.raises(ModelError, match="3 constraint rows for 4"):
        ClosedTree(tree, [cut], [])
    loops = ClosedTree(tree, [cut], ["crank"])
    q = loops.close(np.array([0.4, 0.8, 0.0, 0.2]))
    R, p = tree.pose(q, "slider")
    np.testing.assert_allclose(p + R @ [0.6, 0, 0], [1.2, 1.1, 0.1], atol=1e-13)
    v = loops.project(q, np.array([0.5, 0, 0, 0]))
    np.testing.assert_allclose(tree.velocity(q, v, "slider", (0.6, 0, 0))[:3], 0.0, atol=1e-13)
    a, reaction = loops.forward_dynamics(q, v, np.zeros(4))
    bias = tree.inverse_dynamics(q, v, np.zeros(4))
    assert abs(v @ tree.inverse_dynamics(q, v, a)) < 1e-12 * (1.0 + abs(v @ bias))  # the cut does no work
    R, _ = tree.pose(q, "slider")
    f_ext = np.zeros((3, 6))
    f_ext[2, :3] = R.T @ reaction[0, :3]
    f_ext[2, 3:] = np.cross([0.6, 0, 0], R.T @ reaction[0, :3])
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a, f_ext), 0.0, atol=1e-12)


def test_out_of_reach_is_reported():
    tree, loops, _ = platform()
    q = tree.neutral()
    q[:3] = [1.1, np.nan, 0.0]
    with pytest.raises(ModelError, match="do not close"):
        loops.close(q)


# ---- kinds of cuts --------------------------------------------------

AXES = np.array([[0.3, -0.5, 0.8], [0.1, 0.9, 0.2]])
INDEPENDENT = {"spherical": "abc", "universal": "ab", "revolute": "c", "cylindrical": "zc", "prismatic": "z", "fixed": ""}


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_a_cut_is_the_joint_of_its_name(kind):
    """A body on three slides and three turns from another, closed by a cut: the same body on one joint of that kind, or joined to it."""
    rng = np.random.default_rng(5)
    mass, com, inertia = 2.0, np.array([0.2, -0.1, 0.3]), np.diag([0.3, 0.4, 0.5])
    root = Body("root", None, "free", mass=4.0, com=[0.1, 0.2, -0.1], inertia=np.diag([0.9, 0.7, 0.8]))
    place, p = pin.Quaternion(*rng.normal(size=4)).normalized().matrix(), np.array([0.4, 0.3, -0.2])
    slides = [Body(n, {"x": "root", "y": "x", "z": "y"}[n], "prismatic", R_PJ=place if n == "x" else np.eye(3),
                   p_PJ_P=p if n == "x" else np.zeros(3), axis=np.eye(3)["xyz".index(n)]) for n in "xyz"]
    turns = [Body(n, {"a": "z", "b": "a", "c": "b"}[n], "revolute", axis=np.eye(3)["abc".index(n)]) for n in "abc"]
    turns[-1] = Body("c", "b", "revolute", axis=[0, 0, 1], mass=mass, com=com, inertia=inertia)
    tree = Tree([root, *slides, *turns], gravity=(0.3, -0.2, 0.5))
    cut = {"joint": kind, "bodies": ("root", "c"), "points": (p, (0, 0, 0))}
    if kind == "universal":
        cut["axes"] = (place[:, 0], (0, 1, 0))
    elif kind in ("revolute", "cylindrical"):
        cut["axes"] = (2.0 * place[:, 2], (0, 0, 1))
    elif kind in ("prismatic", "fixed"):
        cut["rotations"] = (place, np.eye(3))
    loops = ClosedTree(tree, [cut], ["root", *INDEPENDENT[kind]])
    assert loops.n_rows == 6 - len(INDEPENDENT[kind])
    q, v = tree.neutral(), rng.normal(size=tree.nv)
    q[3:7] = pin.Quaternion(*rng.normal(size=4)).normalized().coeffs()
    for name in INDEPENDENT[kind]:
        q[tree.coordinates(name)[0]] = rng.normal() * 0.5
    start = q.copy()
    for name in set("xyzabc") - set(INDEPENDENT[kind]):
        start[tree.coordinates(name)[0]] += 0.05 * rng.normal()
    closed = loops.close(start)
    np.testing.assert_allclose(closed, q, atol=1e-12)
    assert loops.gap(closed) < 1e-13 < loops.gap(start)
    v = loops.project(closed, v)
    f_ext = np.zeros((tree.n_bodies, 6))
    f_ext[[0, tree.index("c")]] = rng.normal(size=(2, 6))
    a, reactions = loops.forward_dynamics(closed, v, np.zeros(tree.nv), f_ext)
    # the same craft without a cut
    free = [{"spherical": "abc", "universal": "ab"}.get(kind, INDEPENDENT[kind])]
    chain, last = [], "root"
    for n in free[0]:
        chain.append(Body(n, last, "prismatic" if n in "xyz" else "revolute", R_PJ=place if last == "root" else np.eye(3),
                          p_PJ_P=p if last == "root" else np.zeros(3), axis=np.eye(3)[("xyz" if n in "xyz" else "abc").index(n)]))
        last = n
    chain.append(Body("end", last, "fixed", R_PJ=place if last == "root" else np.eye(3), p_PJ_P=p if last == "root" else np.zeros(3),
                      mass=mass, com=com, inertia=inertia))
    other = Tree([root, *chain], gravity=(0.3, -0.2, 0.5))
    at = [k for name in ("root", *free[0]) for k in range(*tree.coordinates(name)[1].indices(tree.nv))]
    x = np.concatenate([q[:7], [q[tree.coordinates(n)[0]][0] for n in free[0]]])
    f_other = np.zeros((other.n_bodies, 6))
    f_other[0] = f_ext[0]
    R, _ = other.pose(x, "end")
    frame = other.frame("end")
    force, moment = frame.R_BF @ f_ext[-1, :3], frame.R_BF @ f_ext[-1, 3:]
    f_other[frame.body] += [*force, *(moment + np.cross(frame.p_BF_B, force))]
    expected = other.forward_dynamics(x, v[at], np.zeros(other.nv), f_other)
    assert relative(a[at], expected) < 1e-11
    # the reaction is what keeps body c on its way: Newton and Euler with the accelerations found
    own = Tree([Body("c", None, "free", mass=mass, com=com, inertia=inertia)], gravity=(0.3, -0.2, 0.5))
    place_c, velocity = tree.pose(closed, "c"), tree.velocity(closed, v, "c")
    ends = [tree.velocity(tree.integrate(closed, v + 0.5 * s * a, s), v + s * a, "c") for s in (-1e-4, 1e-4)]
    rate = (ends[1] - ends[0]) / 2e-4
    R = place_c[0]
    twist = np.concatenate([R.T @ velocity[:3], R.T @ velocity[3:]])
    rate_c = np.concatenate([R.T @ rate[:3] - np.cross(twist[3:], twist[:3]), R.T @ rate[3:]])
    needed = own.inverse_dynamics([*place_c[1], *pin.Quaternion(R).coeffs()], twist, rate_c, f_ext[-1:])
    np.testing.assert_allclose(np.concatenate([R.T @ reactions[0, :3], R.T @ reactions[0, 3:]]), needed, atol=1e-5)


# ---- planar linkages --------------------------------------------------

LENGTHS = (0.4, 1.1, 0.9, 1.2)  # crank, coupler, rocker, ground
MASSES = (1.5, 2.5, 2.0)


def four_bar(cut, tilt=None):
    """Crank, coupler and rocker in a plane (x, y of `tilt`), each a bar with its centre at half length; pin of coupler and rocker cut."""
    tilt = np.eye(3) if tilt is None else tilt
    bars = [{"mass": m, "com": [0.5 * length, 0, 0], "inertia": np.diag([1e-3, m * length**2 / 12, m * length**2 / 12])}
            for m, length in zip(MASSES, LENGTHS[:3], strict=True)]
    bodies = [Body("crank", None, "revolute", R_PJ=tilt, **bars[0]),
              Body("coupler", "crank", "revolute", p_PJ_P=[LENGTHS[0], 0, 0], **bars[1]),
              Body("rocker", None, "revolute", R_PJ=tilt, p_PJ_P=tilt @ [LENGTHS[3], 0, 0], **bars[2])]
    tree = Tree(bodies, gravity=tilt @ [0, -9.81, 0])
    joint = {"joint": cut, "bodies": ("coupler", "rocker"), "points": ((LENGTHS[1], 0, 0), (LENGTHS[2], 0, 0))}
    if cut == "revolute":
        joint["axes"] = ((0, 0, 1), (0, 0, 1))
    return tree, ClosedTree(tree, [joint], ["crank"])


def four_bar_angles(theta):
    """Absolute angles of coupler and rocker: the circles about the crank pin and the ground pin cut above (complex numbers, elementary)."""
    a, b, c, g = LENGTHS
    pin_a = a * np.exp(1j * theta)
    span = g - pin_a
    distance = abs(span)
    corner = np.arccos((b * b + distance**2 - c * c) / (2 * b * distance))
    joint = pin_a + b * span / distance * np.exp(1j * corner)
    return np.angle(joint - pin_a), np.angle(joint - g)


def four_bar_motion(theta, w, e):
    """(angles, rates, accelerations) of coupler and rocker, absolute: two linear equations each."""
    a, b, c, _ = LENGTHS
    beta, gamma = four_bar_angles(theta)
    C = np.array([[-b * np.sin(beta), c * np.sin(gamma)], [b * np.cos(beta), -c * np.cos(gamma)]])
    rates = np.linalg.solve(C, -w * a * np.array([-np.sin(theta), np.cos(theta)]))
    centripetal = (a * w * w * np.array([np.cos(theta), np.sin(theta)]) + b * rates[0] ** 2 * np.array([np.cos(beta), np.sin(beta)])
                   - c * rates[1] ** 2 * np.array([np.cos(gamma), np.sin(gamma)]))
    return np.array([beta, gamma]), rates, np.linalg.solve(C, centripetal - e * a * np.array([-np.sin(theta), np.cos(theta)]))


def four_bar_inertia(theta):
    """(I, V): kinetic energy I w^2 / 2 and potential energy of the linkage as functions of the crank's angle."""
    a, b, c, _ = LENGTHS
    (beta, gamma), (kb, kc), _ = four_bar_motion(theta, 1.0, 0.0)
    m1, m2, m3 = MASSES
    mid = a * 1j * np.exp(1j * theta) + 0.5 * b * kb * 1j * np.exp(1j * beta)
    inertia = m1 * a * a / 3 + m2 * abs(mid) ** 2 + m2 * b * b / 12 * kb**2 + m3 * c * c / 3 * kc**2
    heights = 0.5 * a * np.sin(theta), a * np.sin(theta) + 0.5 * b * np.sin(beta), 0.5 * c * np.sin(gamma)
    return inertia, 9.81 * np.dot(MASSES, heights)


@pytest.mark.parametrize("cut", ["spherical", "revolute"])
@pytest.mark.parametrize("theta", [0.3, 1.9, 4.0, 5.7])
def test_planar_four_bar_against_the_closed_form(cut, theta):
    """Positions, velocities and accelerations; the linkage stands askew in space, so every row of the cut takes part."""
    tilt = pin.Quaternion(0.5, -0.3, 0.7, 0.4).normalized().matrix()
    tree, loops = four_bar(cut, tilt)
    assert loops.n_rows > 2
    (beta, gamma), (wb, wc), _ = four_bar_motion(theta, 1.3, 0.0)
    q = loops.close(np.array([theta, beta - theta + 0.05, gamma - 0.04]))
    np.testing.assert_allclose(q, [theta, beta - theta, gamma], atol=1e-13)
    v = loops.project(q, np.array([1.3, 0.0, 0.0]))
    np.testing.assert_allclose(v, [1.3, wb - 1.3, wc], atol=1e-12)
    a, reactions = loops.forward_dynamics(q, v, np.array([2.0, 0.0, 0.0]))
    _, _, (eb, ec) = four_bar_motion(theta, 1.3, a[0])
    np.testing.assert_allclose(a, [a[0], eb - a[0], ec], atol=1e-11)
    # Lagrange's equation of the crank's angle: I w' + I' w^2 / 2 + V' = torque
    h = 1e-5
    (I1, V1), (I0, V0), (inertia, _) = four_bar_inertia(theta + h), four_bar_inertia(theta - h), four_bar_inertia(theta)
    assert a[0] == pytest.approx((2.0 - (I1 - I0) / (4 * h) * 1.3**2 - (V1 - V0) / (2 * h)) / inertia, rel=1e-8)
    # the pin's force turns the rocker: moment about the ground pin
    arm = tree.pose(q, "rocker")[0] @ [LENGTHS[2], 0, 0]
    moment = np.cross(arm, reactions[0, :3]) + reactions[0, 3:]
    weight = np.cross(0.5 * arm, MASSES[2] * tree.gravity)
    axis = tilt[:, 2]
    assert axis @ (moment + weight) == pytest.approx(MASSES[2] * LENGTHS[2] ** 2 / 3 * a[2], rel=1e-10)


@pytest.mark.parametrize("tilt", [np.roll(np.eye(3), 1, axis=0), pin.Quaternion(0.5, -0.3, 0.7, 0.4).normalized().matrix()])
def test_four_bar_cut_at_the_ground(tilt):
    """The same linkage as one chain whose end is pinned to the ground: rows of inertial axes, one out of the plane, or all askew."""
    tree, loops = four_bar("revolute", tilt)
    rocker = Body("rocker", "coupler", "revolute", p_PJ_P=[LENGTHS[1], 0, 0], mass=MASSES[2], com=[-0.5 * LENGTHS[2], 0, 0],
                  inertia=tree.bodies[2].inertia)
    other = Tree([*tree.bodies[:2], rocker], gravity=tree.gravity)
    pin_cut = {"joint": "spherical", "bodies": (None, "rocker"), "points": (tilt @ [LENGTHS[3], 0, 0], (-LENGTHS[2], 0, 0))}
    ground = ClosedTree(other, [pin_cut], ["crank"])
    (beta, gamma), _, _ = four_bar_motion(1.9, 1.3, 0.0)
    q = ground.close(np.array([1.9, beta - 1.9 + 0.04, gamma - beta - 0.03]))
    np.testing.assert_allclose(q, [1.9, beta - 1.9, gamma - beta], atol=1e-13)
    v = ground.project(q, np.array([1.3, 0.0, 0.0]))
    x = loops.close(np.array([1.9, beta - 1.9, gamma]))
    a, _ = loops.forward_dynamics(x, loops.project(x, np.array([1.3, 0.0, 0.0])), np.array([2.0, 0.0, 0.0]))
    found, _ = ground.forward_dynamics(q, v, np.array([2.0, 0.0, 0.0]))
    np.testing.assert_allclose(found, [a[0], a[1], a[2] - a[1] - a[0]], atol=1e-10)


def test_four_bar_turns_as_its_one_equation_says():
    """10,000 steps, some turns of the crank: energy and closure are kept; the angle is that of the adaptive one-coordinate equation."""
    tree, loops = four_bar("revolute")
    beta, gamma = four_bar_angles(0.3)
    q = loops.close(np.array([0.3, beta - 0.3, gamma]))
    v = loops.project(q, np.array([9.0, 0.0, 0.0]))
    energy = tree.kinetic_energy(q, v) + tree.potential_energy(q)
    t, q, v = Motion(loops, "rk4", 1e-3).run(q, v, 10_000, every=500)
    energies = [tree.kinetic_energy(*state) + tree.potential_energy(state[0]) for state in zip(q, v, strict=True)]
    np.testing.assert_allclose(energies, energy, rtol=1e-8)
    assert max(loops.gap(x) for x in q) < 1e-12
    assert max(np.abs(loops.project(*state) - state[1]).max() for state in zip(q, v, strict=True)) < 1e-12
    assert abs(q[-1, 0] - q[0, 0]) > 4 * np.pi

    def rates(_, y):
        h = 1e-5
        (I1, V1), (I0, V0), (inertia, _) = four_bar_inertia(y[0] + h), four_bar_inertia(y[0] - h), four_bar_inertia(y[0])
        return [y[1], (-(I1 - I0) / (4 * h) * y[1] ** 2 - (V1 - V0) / (2 * h)) / inertia]

    y = solve_ivp(rates, (0.0, 2.0), [0.3, 9.0], method="DOP853", rtol=1e-11, atol=1e-12, t_eval=t[:5]).y
    np.testing.assert_allclose(q[:5, 0], y[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("method, order", [("symplectic_euler", 1), ("two_step", 2), ("rk4", 4)])
def test_projection_keeps_the_order(method, order):
    _, loops = four_bar("revolute")
    beta, gamma = four_bar_angles(0.3)
    q = loops.close(np.array([0.3, beta - 0.3, gamma]))
    v = loops.project(q, np.array([3.0, 0.0, 0.0]))
    reference = Motion(loops, "rk4", 0.5 / 2000).run(q, v, 2000)
    errors = [np.abs(Motion(loops, method, 0.5 / n).run(q, v, n)[1] - reference[1]).max() for n in (80, 160)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)


def test_given_crank_and_the_torque_it_needs():
    """Crank at a constant rate: its torque is what Lagrange's equation asks; the same torque applied gives the same motion."""
    _, loops = four_bar("revolute")
    beta, gamma = four_bar_angles(0.3)
    q = loops.close(np.array([0.3, beta - 0.3, gamma]))
    v = loops.project(q, np.array([4.0, 0.0, 0.0]))
    motion = Motion(loops, "rk4", 2e-3)
    motion.apply(known=[True, False, False])
    t, qs, vs, tau = motion.run(q, v, 800, every=100, torques=True)
    np.testing.assert_allclose(vs[:, 0], 4.0, rtol=1e-13)
    np.testing.assert_allclose(qs[:, 0], 0.3 + 4.0 * t, rtol=1e-12)
    h = 1e-5
    for theta, torque in zip(qs[:, 0], tau[:, 0], strict=True):
        (I1, V1), (I0, V0) = four_bar_inertia(theta + h), four_bar_inertia(theta - h)
        assert torque == pytest.approx((I1 - I0) / (4 * h) * 16.0 + (V1 - V0) / (2 * h), abs=1e-6)
    for state, torque in zip(zip(qs, vs, strict=True), tau, strict=True):
        assert abs(loops.forward_dynamics(*state, torque)[0][0]) < 1e-10
    with pytest.raises(ValueError, match="known: coordinate 2 is not independent; those are 0"):
        motion.apply(known=[False, False, True])


# ---- grasps --------------------------------------------------


def two_arms(grasps=2):
    """Free craft with arms of six joints; a payload hangs free, the arms hold it (and each other's grip) by cuts."""
    rng = np.random.default_rng(11)
    bodies = [Body("craft", None, "free", mass=50.0, com=[0.1, 0, 0], inertia=np.diag([20.0, 25.0, 30.0]))]
    for arm in range(grasps):
        for k in range(6):
            mass = 4.0 - 0.5 * k
            bodies.append(Body(f"arm{arm}_{k}", f"arm{arm}_{k - 1}" if k else "craft", "revolute",
                               p_PJ_P=[0.35, 0.02, 0.05] if k else [0.4, 0.5 * (-1) ** arm, 0.3 * (arm == 2)],
                               axis=np.eye(3)[(k + arm) % 3], mass=mass, com=[0.15, 0.01, 0.0],
                               inertia=0.02 * mass * np.diag([0.6, 1.0, 0.9])))
        bodies.append(Body(f"grip{arm}", f"arm{arm}_5", "fixed", p_PJ_P=[0.2, 0, 0],
                           R_PJ=pin.Quaternion(*rng.normal(size=4)).normalized().matrix()))
    bodies.append(Body("payload", None, "free", mass=12.0, com=[0.05, 0.1, -0.1], inertia=np.diag([1.0, 1.4, 1.2])))
    tree = Tree(bodies, gravity=(0, 0, 0))
    q = tree.neutral()
    for name in tree.joint_names[1:-1]:
        q[tree.coordinates(name)[0]] = 0.5 * rng.normal()
    q[tree.coordinates("payload")[0]] = [1.5, 0.1, 0.2, *pin.Quaternion(*rng.normal(size=4)).normalized().coeffs()]
    return tree, q, rng


def test_second_grasp_against_pinocchio():
    """Two arms hold one payload: accelerations and grip forces against Pinocchio's dynamics with 6D constraints."""
    tree, q, rng = two_arms()
    cuts = [cut_at(tree, q, "fixed", (f"grip{k}", "payload"), point=(0.1 * k, 0.0, 0.2)) for k in range(2)]
    held = [f"arm0_{k}" for k in range(6)]
    loops = ClosedTree(tree, cuts, ["craft", *held])
    np.testing.assert_allclose(loops.close(q), q, rtol=0, atol=1e-12)
    v = loops.project(q, rng.normal(size=tree.nv))
    tau = rng.normal(size=tree.nv)
    a, reactions = loops.forward_dynamics(q, v, tau)
    model, data = pinocchio_model(tree.bodies)
    model.gravity.setZero()
    constraints, all_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for cut in cuts:
        frame = tree.frame(cut["bodies"][0])
        first = pin.SE3(frame.R_BF @ cut["rotations"][0], frame.p_BF_B + frame.R_BF @ cut["points"][0])
        second = pin.SE3(np.eye(3), np.array(cut["points"][1]))
        hand = model.getJointId(tree.joint_names[frame.body])
        constraints.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, model, hand, first, model.getJointId("payload"), second,
                                                    pin.ReferenceFrame.LOCAL))
    for constraint in constraints:
        all_data.append(constraint.createData())
    order = [k for name in model.names[1:] for k in range(*tree.coordinates(name)[1].indices(tree.nv))]
    order_q = [k for name in model.names[1:] for k in range(*tree.coordinates(name)[0].indices(tree.nq))]
    pin.initConstraintDynamics(model, data, constraints, all_data)
    settings = pin.ProximalSettings(1e-13, 1e-13, 50)
    expected = pin.constraintDynamics(model, data, q[order_q], v[order], tau[order], constraints, all_data, settings)
    assert relative(a[order], expected) < 1e-8
    # Pinocchio's force is on the first body, on the axes of its cut frame
    for k, (cut, d) in enumerate(zip(cuts, all_data, strict=True)):
        R = tree.pose(q, cut["bodies"][0])[0] @ cut["rotations"][0]
        np.testing.assert_allclose(np.concatenate([R.T @ reactions[k, :3], R.T @ reactions[k, 3:]]), -d.contact_force.vector,
                                   atol=1e-6 * np.abs(reactions).max())


def test_three_grasps_keep_energy_and_momentum():
    """A third loop closure on the same body; 10,000 steps without torques."""
    tree, q, rng = two_arms(3)
    cuts = [cut_at(tree, q, "fixed", (f"grip{k}", "payload")) for k in range(3)]
    loops = ClosedTree(tree, cuts, ["craft", *(f"arm0_{k}" for k in range(6))])
    assert loops.n_rows == 18
    v = loops.project(q, 0.06 * rng.normal(size=tree.nv))
    energy, momentum = tree.kinetic_energy(q, v), tree.momentum(q, v, (0, 0, 0))
    start = q
    _, q, v = Motion(loops, "rk4", 1e-4).run(q, v, 10_000)
    assert np.abs(q - start).max() > 0.02 and loops.gap(q) < 1e-12
    assert tree.kinetic_energy(q, v) == pytest.approx(energy, rel=1e-11)
    np.testing.assert_allclose(tree.momentum(q, v, (0, 0, 0)), momentum, rtol=0, atol=1e-11 * np.abs(momentum).max())


def test_a_caught_and_locked_payload_takes_a_second_grasp():
    """First grasp by `attach` (free joint, all held), second by a cut: the same accelerations as two cuts."""
    tree, q, rng = two_arms()
    cuts = [cut_at(tree, q, "fixed", (f"grip{k}", "payload")) for k in range(2)]
    joints = ["craft", *(f"arm0_{k}" for k in range(6))]
    both = ClosedTree(tree, cuts, joints)
    v = both.project(q, rng.normal(size=tree.nv))
    tau = rng.normal(size=tree.nv)
    payload = tree.coordinates("payload")[1]
    tau[payload] = 0.0
    expected, reactions = both.forward_dynamics(q, v, tau)
    q2, v2 = tree.attach(q, v, "payload", "arm0_5")
    with pytest.raises(ModelError, match="locked or let go since the loops were made"):
        both.project(q2, v2)
    loops = ClosedTree(tree, cuts[1:], joints)
    q2 = loops.close(q2)
    v2 = loops.project(q2, v2)
    others = np.setdiff1d(np.arange(tree.nv), np.arange(payload.start, payload.stop))
    np.testing.assert_allclose(v2[others], v[others], atol=1e-10)
    a, second = loops.forward_dynamics(q2, v2, tau)
    np.testing.assert_allclose(a[others], expected[others], atol=1e-8)
    np.testing.assert_allclose(second[0], reactions[1], atol=1e-7)


# ---- what is refused --------------------------------------------------

GOOD = {"joint": "revolute", "bodies": ("coupler", "rocker"), "points": ((1.1, 0, 0), (0.9, 0, 0)), "axes": ((0, 0, 1), (0, 0, 1))}


@pytest.mark.parametrize("change, message", [
    ({"pionts": ((0, 0, 0), (0, 0, 0))}, "cut 0: unknown key 'pionts', did you mean 'points'"),
    ({"axis": (0, 0, 1)}, "cut 0: unknown key 'axis', did you mean 'axes'"),
    ({"stiffness": 1.0}, "cut 0: unknown key 'stiffness', keys: joint, bodies, points, axes"),
    ({"rotations": (np.eye(3), np.eye(3))}, "cut 0: a revolute cut has no key 'rotations'"),
    ({"points": None}, "cut 0: key 'points' is missing"), ({"joint": None}, "cut 0: key 'joint' is missing, one of spherical"),
    ({"axes": None}, "cut 0: key 'axes' is missing"), ({"bodies": None}, "cut 0: key 'bodies' is missing"),
    ({"joint": "sperical", "axes": None}, "cut 0: joint 'sperical', one of .* needed, did you mean 'spherical'"),
    ({"bodies": ("coupler", "roker")}, "cut 0: unknown frame 'roker'"),
    ({"bodies": ("coupler", "coupler")}, "cut 0: both bodies are 'coupler'"),
    ({"points": ((0, 0), (0, 0, 0))}, r"cut 0: points: finite numbers of shape \(3,\)"),
    ({"points": ((0, 0, np.nan), (0, 0, 0))}, r"cut 0: points: finite numbers"),
    ({"axes": ((0, 0, 0), (0, 0, 1))}, "cut 0: axes: one has no direction"),
    ({"joint": "fixed", "axes": None, "rotations": (np.eye(3), 2 * np.eye(3))}, "is not a rotation"),
])  # fmt: skip
def test_a_wrong_cut_is_named(change, message):
    tree, _ = four_bar("revolute")
    cut = {key: value for key, value in (GOOD | change).items() if value is not None}
    with pytest.raises(ModelError, match=message):
        ClosedTree(tree, [cut], ["crank"])
    ClosedTree(tree, [GOOD], ["crank"])


def test_what_the_loops_cannot_do_is_reported():
    tree, loops = four_bar("revolute")
    beta, gamma = four_bar_angles(0.3)
    q = loops.close(np.array([0.3, beta - 0.3, gamma]))
    v = loops.project(q, np.array([9.0, 0.0, 0.0]))
    # two pins held: the crank may not be free as well
    stiff = ClosedTree(tree, [GOOD, cut_at(tree, q, "revolute", (None, "coupler"), (0.5, 0, 0))], ["crank"])
    with pytest.raises(ModelError, match="hold the independent coordinates too"):
        stiff.project(q, v)
    with pytest.raises(ValueError, match="state: the loops are open by .*velocities off"):
        Motion(loops, "rk4", 1e-3).run(q, np.array([9.0, 0.0, 0.0]), 1)
    with pytest.raises(ValueError, match=r"step \d+ \(from t = .*: the loops do not close after it; its length is 0.2 s"):
        Motion(loops, "rk4", 0.2).run(q, 50.0 * v, 100)
    fixed = {"joint": "fixed", "bodies": (None, "rocker"), "points": ((LENGTHS[3], 0, 0), (0, 0, 0)),
             "rotations": (np.diag([-1.0, -1.0, 1.0]), np.eye(3))}
    turned = ClosedTree(tree, [GOOD, fixed], [])
    with pytest.raises(ModelError, match="turned over|do not close"):
        turned.close(q)
    with pytest.raises(ModelError, match="a universal cut has two axes"):
        cut_at(tree, q, "universal", (None, "coupler"))
