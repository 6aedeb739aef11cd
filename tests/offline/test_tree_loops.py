"""Closed loops by separation of variables: the golden platform, Pinocchio's constrained dynamics, and a four-bar linkage."""

import numpy as np
import pinocchio as pin
import pytest

from rt_kernels.multibody import Body, ModelError, Tree
from rt_kernels.offline.tree_loops import ClosedTree
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
        cuts.append({"bodies": (f"rod{k}", "ring"), "points": ((0, 0, 0), head)})
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
    np.testing.assert_allclose(-reactions[:3], [-2.3856321505, 8.6976054898, 6.9070909453], atol=1e-9)
    # wrench of the mechanism on the base: feet only, the ring's joint carries nothing; from the tree's own momentum balance
    external = np.zeros((tree.n_bodies, 6))
    external[0] = tau[:6]
    for k in range(6):
        head = tree.pose(q, f"rod{k}")
        external[tree.joint_names.index(f"rod{k}"), :3] = head[0].T @ -reactions[3 * k : 3 * k + 3]
    torques = tau.copy()
    torques[:6] = 0.0
    ring = np.zeros(6)
    for k in range(6):
        arm = al.T @ np.array(_head(k))
        ring[:3] += reactions[3 * k : 3 * k + 3]
        ring[3:] += np.cross(arm, reactions[3 * k : 3 * k + 3])
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
    assert relative(reactions, expected[model.nv :]) < 1e-10


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
    cut = {"bodies": ("spin", "plate"), "points": ((0, 0, 0.2), (0.1, -0.2, 0.0)), "axes": ((1, 0, 0), (0, 1, 0))}
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
    tree, cut = Tree(bodies, gravity=(0, 0, 0)), {"bodies": (None, "slider"), "points": ((1.2, 1.1, 0.1), (0.6, 0, 0))}
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
    f_ext[2, :3] = R.T @ reaction
    f_ext[2, 3:] = np.cross([0.6, 0, 0], R.T @ reaction)
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a, f_ext), 0.0, atol=1e-12)


def test_out_of_reach_is_said():
    tree, loops, _ = platform()
    q = tree.neutral()
    q[:3] = [1.1, np.nan, 0.0]
    with pytest.raises(ModelError, match="do not close"):
        loops.close(q)
