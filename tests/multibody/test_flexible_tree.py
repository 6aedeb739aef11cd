"""Flexible tree kernel against a slow, obvious twin (mass points, complex-step Jacobians), Pinocchio on rigid trees, and identities."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rt_kernels.model.craft import Link
from rt_kernels.model.modes import ModalBody, Port
from rt_kernels.multibody import Body, Tree
from rt_kernels.multibody.flexible import FlexibleTree

pin = pytest.importorskip("pinocchio")
ROOT = Path(__file__).resolve().parents[2]


def skew(a):
    return np.array([[0.0 * a[0], -a[2], a[1]], [a[2], 0.0 * a[0], -a[0]], [-a[1], a[0], 0.0 * a[0]]])


def exp3(t):
    """Rotation by the vector t and its left Jacobian; power series, valid for complex numbers."""
    S = skew(t)
    R, J, term = np.eye(3, dtype=S.dtype), np.eye(3, dtype=S.dtype), np.eye(3, dtype=S.dtype)
    for k in range(1, 40):
        term = term @ S / k
        R = R + term
        J = J + term / (k + 1)
    return R, J


def quaternion_matrix(q):
    x, y, z, w = q
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def random_rotation(rng):
    return quaternion_matrix((q := rng.normal(size=4)) / np.linalg.norm(q))


def random_body(rng, modes, ports=2, points=7):
    """A cloud and its modal body; shapes of a size that makes the deformation visible."""
    cloud = {"m": rng.uniform(0.2, 1.5, points), "rho": rng.normal(size=(points, 3)), "phi": 0.4 * rng.normal(size=(points, 3, modes))}
    A = rng.normal(size=(modes, modes))
    cloud["K"] = A @ A.T + 3.0 * np.eye(modes)
    cloud["C"] = 0.01 * cloud["K"]
    places = {f"p{k}": Port(rng.normal(size=3), random_rotation(rng), 0.4 * rng.normal(size=(3, modes)), 0.4 * rng.normal(size=(3, modes)))
              for k in range(ports)}
    return cloud, ModalBody.from_points(cloud["m"], cloud["rho"], cloud["phi"], cloud["K"], places, cloud["C"])


TYPES = ("revolute", "prismatic", "spherical", "fixed", "free")


def random_tree(rng, bodies, max_modes=3, base="free", types=TYPES, gravity=(0.3, -0.2, 0.9)):
    links, clouds = [], {}
    for k in range(bodies):
        cloud, body = random_body(rng, int(rng.integers(0, max_modes + 1)))
        parent = None if k == 0 else f"b{rng.integers(0, k)}"
        port = None if k == 0 or rng.random() < 0.2 else f"p{rng.integers(0, 2)}"
        joint = base if k == 0 else str(rng.choice(types))
        links.append(Link(f"b{k}", body, parent, port, joint, rng.normal(size=3), rng.normal(size=3), random_rotation(rng)))
        clouds[f"b{k}"] = cloud
    return FlexibleTree(links, gravity), clouds


def random_state(rng, tree):
    q, v = 0.5 * rng.normal(size=tree.nq), rng.normal(size=tree.nv)
    for iq, _, kind in tree.rotations():
        part = slice(iq + 3, iq + 7) if kind == "free" else slice(iq, iq + 4)
        q[part] /= np.linalg.norm(q[part])
    return q, v


def point_positions(tree, clouds, q, v, t):
    """Positions (n, 3) of all mass points and frame poses after time t at constant v (body-axis rates), t may be complex."""
    out, frames = [], {}
    for link in tree.links:
        body = link.body
        (jq, jv), (eq, ev) = tree.coordinates(link.name), tree.modal_coordinates(link.name)
        x, u = q[jq], v[jv]
        R_J, p_J = np.eye(3), np.zeros(3)
        if link.joint == "revolute":
            R_J = exp3(link.axis * (x[0] + u[0] * t))[0]
        elif link.joint == "prismatic":
            p_J = link.axis * (x[0] + u[0] * t)
        elif link.joint == "spherical":
            R_J = quaternion_matrix(x) @ exp3(u * t)[0]
        elif link.joint == "free":
            R0 = quaternion_matrix(x[3:])
            turn, J = exp3(u[3:] * t)
            R_J, p_J = R0 @ turn, x[:3] + R0 @ J @ (u[:3] * t)
        if link.parent is None:
            p, R = link.position + link.rotation @ p_J, link.rotation @ R_J
        else:
            p, R, eta_p, parent = frames[link.parent]
            pp, pR, phi, psi = parent.port_arrays(link.port)
            if phi is not None:
                p = p + R @ (pp + phi @ eta_p)
                R = R @ exp3(psi @ eta_p)[0]
            R = R @ pR
            p = p + R @ (link.position + link.rotation @ p_J)
            R = R @ link.rotation @ R_J
        eta = q[eq] + v[ev] * t
        frames[link.name] = (p, R, eta, body)
        cloud = clouds[link.name]
        rho = cloud["rho"] + cloud["phi"] @ eta
        if "chi" in cloud:
            rho = rho + 0.5 * np.einsum("nabi,a,b->ni", cloud["chi"], eta, eta)
        out.append(p + rho @ R.T)
    return np.concatenate(out), frames


def twin_inverse_dynamics(tree, clouds, q, v, a, gravity):
    """tau = J^T m (J a + J_dot v - g) + K eta + C eta_dot from point positions alone."""
    m = np.concatenate([clouds[link.name]["m"] for link in tree.links])
    step = 1e-30
    J = np.stack([point_positions(tree, clouds, q, unit, 1j * step)[0].imag / step for unit in np.eye(tree.nv)], axis=-1)
    # J_dot v = x'' at constant v: fourth-order difference of the complex-step first derivative
    rate = lambda t: point_positions(tree, clouds, q, v, t + 1j * step)[0].imag / step  # noqa: E731
    h = 2e-3
    bias = (8.0 * (rate(h) - rate(-h)) - (rate(2 * h) - rate(-2 * h))) / (12.0 * h)
    bias6 = bias - (8.0 * (rate(h / 2) - rate(-h / 2)) - (rate(h) - rate(-h))) / (6.0 * h)
    bias = bias - bias6 * 16.0 / 15.0
    tau = np.einsum("nij,n,ni->j", J, m, J @ a + bias - np.asarray(gravity))
    for link in tree.links:
        eq, ev = tree.modal_coordinates(link.name)
        tau[ev] += link.body.stiffness @ q[eq] + link.body.damping @ v[ev]
    return tau, np.einsum("nij,n,nik->jk", J, m, J)


@pytest.mark.parametrize("seed", range(12))
def test_equations_follow_from_point_positions(seed):
    rng = np.random.default_rng(seed)
    gravity = (0.3, -0.2, 0.9)
    tree, clouds = random_tree(rng, 5, gravity=gravity)
    q, v = random_state(rng, tree)
    a = rng.normal(size=tree.nv)
    tau, M = twin_inverse_dynamics(tree, clouds, q, v, a, gravity)
    scale = np.abs(tau).max()
    np.testing.assert_allclose(tree.mass_matrix(q), M, rtol=0, atol=1e-13 * np.abs(M).max())
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a), tau, rtol=0, atol=2e-10 * scale)


@pytest.mark.parametrize("seed", range(20))
def test_forward_is_inverse_of_inverse(seed):
    rng = np.random.default_rng(100 + seed)
    tree, _ = random_tree(rng, 8, max_modes=5, base=("free", "fixed", "revolute")[seed % 3])
    q, v = random_state(rng, tree)
    tau, f = rng.normal(size=tree.nv), rng.normal(size=(tree.n_bodies, 6))
    a = tree.forward_dynamics(q, v, tau, f)
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a, f), tau, rtol=0, atol=1e-11 * max(1.0, np.abs(a).max()))
    # against the dense solve
    bias = tree.inverse_dynamics(q, v, np.zeros(tree.nv), f)
    M = tree.mass_matrix(q)
    np.testing.assert_allclose(a, np.linalg.solve(M, tau - bias), rtol=0, atol=1e-13 * np.linalg.cond(M) * np.abs(a).max())


@pytest.mark.parametrize("seed", range(20))
def test_given_and_wanted_joints_in_one_recursion(seed):
    """Whatever joints are given, the answer satisfies the full equations; modal forces stay what they are."""
    rng = np.random.default_rng(200 + seed)
    tree, _ = random_tree(rng, 7)
    q, v = random_state(rng, tree)
    tau, a = rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    known = np.zeros(tree.nv, dtype=bool)
    known[: tree.nj] = rng.random(tree.nj) < 0.5
    forces, motion = tree.hybrid_dynamics(q, v, tau, a, known)
    np.testing.assert_array_equal(motion[known], a[known])
    np.testing.assert_array_equal(forces[~known], tau[~known])
    scale = max(1.0, np.abs(motion).max(), np.abs(forces).max())
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, motion), forces, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("seed", range(25))
def test_rigid_trees_equal_pinocchio(seed):
    rng = np.random.default_rng(300 + seed)
    gravity = np.array([0.0, 0.0, -9.81])
    n = int(rng.integers(2, 25))
    links, model, ids = [], pin.Model(), []
    model.gravity.linear[:] = gravity
    order = []
    for k in range(n):
        parent = -1 if k == 0 else (k - 1 if rng.random() < 0.7 else int(rng.integers(0, k)))
        kind = str(rng.choice(["revolute", "prismatic", "spherical", "free"])) if k else "free"
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        mass, centre = rng.uniform(0.5, 5.0), 0.3 * rng.normal(size=3)
        A = rng.normal(size=(3, 3))
        spread = A @ A.T
        inertia = mass * 0.1 * (np.trace(spread) * np.eye(3) - spread)
        p, R = 0.5 * rng.normal(size=3), random_rotation(rng)
        links.append(Link(f"b{k}", ModalBody.rigid(mass, centre, inertia), None if parent < 0 else f"b{parent}", None, kind, axis, p, R))
        joint = {"revolute": pin.JointModelRevoluteUnaligned(axis), "prismatic": pin.JointModelPrismaticUnaligned(axis),
                 "spherical": pin.JointModelSpherical(), "free": pin.JointModelFreeFlyer()}[kind]
        ids.append(model.addJoint(0 if parent < 0 else ids[parent], joint, pin.SE3(R, p), f"b{k}"))
        model.appendBodyToJoint(ids[-1], pin.Inertia(mass, centre, inertia), pin.SE3.Identity())
        order.append(kind)
    data = model.createData()
    tree = FlexibleTree(links, gravity)
    q, v = random_state(rng, tree)
    tau, f = rng.normal(size=tree.nv), rng.normal(size=(n, 6))
    # coordinate maps: the kernel may order siblings differently
    q_pin, v_pin, map_v, forces = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv, dtype=int), pin.StdVec_Force()
    for _ in range(n + 1):
        forces.append(pin.Force.Zero())
    for k in range(n):
        jq, jv = tree.coordinates(f"b{k}")
        joint = model.joints[ids[k]]
        q_pin[joint.idx_q: joint.idx_q + joint.nq] = q[jq]
        v_pin[joint.idx_v: joint.idx_v + joint.nv] = v[jv]
        map_v[joint.idx_v: joint.idx_v + joint.nv] = np.arange(jv.start, jv.stop)
        forces[ids[k]] = pin.Force(f[tree.index(f"b{k}")])
    wanted = pin.aba(model, data, q_pin, v_pin, tau[map_v], forces)
    got = tree.forward_dynamics(q, v, tau, f)[map_v]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max() * max(1.0, n / 5))
    a = rng.normal(size=tree.nv)
    wanted = pin.rnea(model, data, q_pin, v_pin, a[map_v], forces)
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a, f)[map_v], wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
    pin.computeCentroidalMomentum(model, data, q_pin, v_pin)
    momentum = tree.momentum(q, v)
    np.testing.assert_allclose(momentum[:3], data.hg.linear, rtol=0, atol=1e-12 * np.abs(data.hg.linear).max())
    np.testing.assert_allclose(momentum[3:], data.hg.angular, rtol=0, atol=1e-11 * np.abs(data.hg.angular).max())
    assert tree.kinetic_energy(q, v) == pytest.approx(pin.computeKineticEnergy(model, data, q_pin, v_pin), rel=1e-12)
    assert tree.potential_energy(q) == pytest.approx(pin.computePotentialEnergy(model, data, q_pin), rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_rigid_trees_equal_the_rigid_kernel(seed):
    """Given and wanted joints mixed, external wrenches, against the kernel for rigid trees."""
    rng = np.random.default_rng(600 + seed)
    n, links, bodies = 9, [], []
    for k in range(n):
        parent = None if k == 0 else f"b{rng.integers(0, k)}"
        kind = "free" if k == 0 else str(rng.choice(["revolute", "prismatic", "spherical", "free"]))
        mass, centre, A = rng.uniform(0.5, 5.0), 0.3 * rng.normal(size=3), rng.normal(size=(3, 3))
        inertia = 0.1 * mass * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)
        axis, p, R = rng.normal(size=3), 0.5 * rng.normal(size=3), random_rotation(rng)
        links.append(Link(f"b{k}", ModalBody.rigid(mass, centre, inertia), parent, None, kind, axis, p, R))
        bodies.append(Body(f"b{k}", parent, kind, R_PJ=R, p_PJ_P=p, axis=axis, mass=mass, com=centre, inertia=inertia))
    gravity = (0.4, -1.0, -9.0)
    tree, rigid = FlexibleTree(links, gravity), Tree(bodies, gravity)
    q, v = random_state(rng, tree)
    tau, a, f, known = rng.normal(size=tree.nv), rng.normal(size=tree.nv), rng.normal(size=(n, 6)), rng.random(tree.nv) < 0.5
    at_q, at_v = np.empty(tree.nq, dtype=int), np.empty(tree.nv, dtype=int)
    for link in links:
        (jq, jv), (other_q, other_v) = tree.coordinates(link.name), rigid.coordinates(link.name)
        at_q[jq], at_v[jv] = np.arange(other_q.start, other_q.stop), np.arange(other_v.start, other_v.stop)
    back_q, back_v = np.argsort(at_q), np.argsort(at_v)
    rows = [tree.index(body.name) for body in bodies]
    wanted = rigid.hybrid_dynamics(q[back_q], v[back_v], tau[back_v], a[back_v], known[back_v], f[rows])
    for got, expected in zip(tree.hybrid_dynamics(q, v, tau, a, known, f), wanted, strict=True):
        np.testing.assert_allclose(got[back_v], expected, rtol=0, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(6))
def test_power_balance(seed):
    """d/dt (kinetic + potential) = v . (tau - C eta_dot); checked by a difference along the flow, so the rate terms are all there."""
    rng = np.random.default_rng(400 + seed)
    tree, _ = random_tree(rng, 6, max_modes=4)
    q, v = random_state(rng, tree)
    tau = rng.normal(size=tree.nv)
    a = tree.forward_dynamics(q, v, tau)
    C = np.zeros((tree.nv, tree.nv))
    for link in tree.links:
        ev = tree.modal_coordinates(link.name)[1]
        C[ev, ev] = link.body.damping

    def energy(t):
        # along the flow: positions to second order is enough, the difference is of the energy's first derivative
        qt, vt = q.copy(), v + a * t
        u = v * t + 0.5 * a * t * t
        qt[...] = move(tree, q, u)
        return tree.kinetic_energy(qt, vt) + tree.potential_energy(qt)

    h = 1e-4
    rate = (8.0 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12.0 * h)
    assert rate == pytest.approx(v @ (tau - C @ v), rel=1e-6, abs=1e-6 * np.abs(v @ tau))


@pytest.mark.parametrize("seed", range(6))
def test_implicit_step_is_the_dense_one(seed):
    """(M + h C + h^2 K) a = f - C v - K (q + h v) with springs and dampers of joints and modes, O(N) against the dense solve."""
    rng = np.random.default_rng(700 + seed)
    tree, _ = random_tree(rng, 6, types=("revolute", "prismatic"), base=("free", "revolute")[seed % 2])
    sprung = [Link(x.name, x.body, x.parent, x.port, x.joint, x.axis, x.position, x.rotation, 0.1, 30.0, 2.0)
              if x.joint in ("revolute", "prismatic") else x for x in tree.links]
    tree = FlexibleTree(sprung, (0.0, 0.0, -9.81))
    q, v = random_state(rng, tree)
    tau, h = rng.normal(size=tree.nv), 0.05
    K, C, M = tree.stiffness_matrix(), tree.damping_matrix(), tree.mass_matrix(q)
    bias = tree.inverse_dynamics(q, v, np.zeros(tree.nv))
    expected = np.linalg.solve(M + h * C + h * h * K, tau - bias - h * K @ v)
    np.testing.assert_allclose(tree.forward_dynamics(q, v, tau, step=h), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    with pytest.raises(ValueError, match="step: -1.0 s"):
        tree.forward_dynamics(q, v, tau, step=-1.0)


def move(tree, q, u):
    """q moved by the tangent vector u (second order in u)."""
    out = np.empty_like(q)
    for link in tree.links:
        (jq, jv), (eq, ev) = tree.coordinates(link.name), tree.modal_coordinates(link.name)
        out[eq] = q[eq] + u[ev]
        if link.joint in ("revolute", "prismatic"):
            out[jq] = q[jq] + u[jv]
        elif link.joint in ("spherical", "free"):
            w = u[jv][-3:]
            angle = np.linalg.norm(w)
            x = np.append(w / 2.0 * np.sinc(angle / 2.0 / np.pi), np.cos(angle / 2.0))
            p = q[jq][-4:]
            turned = np.append(p[3] * x[:3] + x[3] * p[:3] + np.cross(p[:3], x[:3]), p[3] * x[3] - p[:3] @ x[:3])
            if link.joint == "free":
                _, J = exp3(w)
                out[jq] = np.append(q[jq][:3] + quaternion_matrix(p) @ J @ u[jv][:3], turned)
            else:
                out[jq] = turned
    return out


@pytest.mark.parametrize("seed", range(4))
def test_clamping_a_port_keeps_the_physics(seed):
    """The same body hung by its port with free modes about the port: kinetic energy of any motion as from the points."""
    rng = np.random.default_rng(500 + seed)
    cloud, body = random_body(rng, 3)
    port = body.ports["p0"]
    clamped = body.clamped_at("p0")
    other = {"m": cloud["m"], "rho": (cloud["rho"] - port.position) @ port.rotation,
             "phi": np.einsum("ji,nja->nia", port.rotation, cloud["phi"] - port.phi - np.stack(
                 [np.cross(port.psi[:, a], cloud["rho"] - port.position) for a in range(3)], -1))}
    again = ModalBody.from_points(other["m"], other["rho"], other["phi"], body.stiffness)
    for name in ("first_moment", "second_moment", "P", "N", "Q"):
        np.testing.assert_allclose(getattr(clamped, name), getattr(again, name), rtol=0, atol=1e-13)
    assert np.abs(clamped.ports["p0"].phi).max() < 1e-15 and np.abs(clamped.ports["p0"].psi).max() < 1e-15


def test_massless_link_marks_a_place_on_a_flexible_body():
    """A force on a massless link at a port is the force's modal load phi^T f + psi^T m."""
    rng = np.random.default_rng(7)
    _, body = random_body(rng, 3)
    tree = FlexibleTree([Link("body", body, joint="free"), Link("mark", ModalBody.rigid(0.0), "body", "p1")])
    bare = FlexibleTree([Link("body", body, joint="free")])
    q = tree.neutral()
    f = rng.normal(size=6)
    port = body.ports["p1"]
    force, moment = port.rotation @ f[:3], port.rotation @ f[3:]
    tau = np.concatenate([force, moment + np.cross(port.position, force), port.phi.T @ force + port.psi.T @ moment])
    loads = np.zeros((2, 6))
    loads[tree.index("mark")] = f
    v = np.zeros(tree.nv)
    np.testing.assert_allclose(tree.forward_dynamics(q, v, v, loads), bare.forward_dynamics(q, v, tau), rtol=0, atol=1e-13)


def test_wrong_input_is_named():
    rng = np.random.default_rng(1)
    tree, _ = random_tree(rng, 3, max_modes=2)
    q, v = random_state(rng, tree)
    with pytest.raises(ValueError, match=r"tau: shape \(2,\) given"):
        tree.forward_dynamics(q, v, np.zeros(2))
    with pytest.raises(ValueError, match="q: not finite at index 1"):
        tree.forward_dynamics(np.where(np.arange(tree.nq) == 1, np.nan, q), v, v)
    with pytest.raises(ValueError, match="modal coordinate"):
        tree.hybrid_dynamics(q, v, v, v, np.ones(tree.nv, dtype=bool))
    body = ModalBody.rigid(1.0, inertia=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="parent 'x' does not exist"):
        FlexibleTree([Link("a", body, "x")])
    with pytest.raises(ValueError, match="loop"):
        FlexibleTree([Link("a", body, "b"), Link("b", body, "a")])
    with pytest.raises(ValueError, match="used twice"):
        FlexibleTree([Link("a", body), Link("a", body)])
    with pytest.raises(ValueError, match="port 'tip' does not exist"):
        FlexibleTree([Link("a", body), Link("b", body, "a", "tip")])
    with pytest.raises(ValueError, match="carries no mass"):
        FlexibleTree([Link("a", ModalBody.rigid(0.0), joint="revolute")])
    with pytest.raises(ValueError, match="triangle"):
        ModalBody.rigid(1.0, inertia=(1.0, 1.0, 3.0))
    with pytest.raises(ValueError, match="not independent"):
        ModalBody.from_points([1.0, 1.0], np.eye(3)[:2], np.ones((2, 3, 2)), np.eye(2))


@pytest.mark.parametrize("joint", ["universal", "planar"])
def test_a_joint_kind_of_rigid_trees_alone_is_named(joint):
    with pytest.raises(ValueError, match=f"'wrist'.* no {joint} joint, limit fixed, revolute, .*prismatic, .*spherical, free"):
        FlexibleTree([Link("wrist", ModalBody(1.0, np.zeros(3), np.eye(3)), None, None, joint)])
    with pytest.raises(ValueError, match="'wrist'.*joint 'ball' is not one of fixed, revolute, continuous, prismatic, screw, universal"):
        Link("wrist", ModalBody(1.0, np.zeros(3), np.eye(3)), None, None, "ball")


# --- the same names as the tree of rigid bodies ------------------------------------------------------------------------------------------


def rigid_pair(rng, n=7, kinds=("revolute", "prismatic", "spherical", "free", "continuous", "screw"), gravity=(0.4, -1.0, -9.0)):
    """The same rigid craft in both kinds of tree, drives included, and maps of their coordinates: x_flexible[maps] is x_rigid."""
    links, bodies = [], []
    for k in range(n):
        parent = None if k == 0 else f"b{rng.integers(0, k)}"
        kind = "free" if k == 0 else str(rng.choice(kinds))
        mass, centre, A = rng.uniform(0.5, 5.0), 0.3 * rng.normal(size=3), rng.normal(size=(3, 3))
        inertia = 0.1 * mass * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)
        axis, p, R, pitch = rng.normal(size=3), 0.5 * rng.normal(size=3), random_rotation(rng), rng.uniform(-0.3, 0.3)
        rotor = 0.1 if kind in ("revolute", "prismatic", "continuous", "screw") else 0.0
        links.append(Link(f"b{k}", ModalBody.rigid(mass, centre, inertia), parent, None, kind, axis, p, R, rotor, joint_name=f"j{k}",
                          pitch=pitch))
        bodies.append(Body(f"b{k}", parent, kind, f"j{k}", R, p, axis, pitch=pitch, mass=mass, com=centre, inertia=inertia,
                           rotor_inertia=rotor))
    tree, rigid = FlexibleTree(links, gravity), Tree(bodies, gravity)
    at_q, at_v = (np.concatenate([np.arange(rigid.nq + rigid.nv)[tree.coordinates(name)[part]] for name in rigid.joint_names])
                  for part in (0, 1))
    return tree, rigid, at_q, at_v, [tree.index(name) for name in rigid.names]


@pytest.mark.parametrize("seed", range(8))
def test_both_kinds_of_tree_give_the_same_answers(seed):
    rng = np.random.default_rng(800 + seed)
    tree, rigid, at_q, at_v, rows = rigid_pair(rng)
    assert (tree.nq, tree.nv, tree.nj, tree.n_bodies) == (rigid.nq, rigid.nv, rigid.nj, rigid.n_bodies)
    assert sorted(tree.names) == sorted(rigid.names) and sorted(tree.joint_names) == sorted(rigid.joint_names)
    assert tree.mass == pytest.approx(rigid.mass, rel=1e-14)
    np.testing.assert_array_equal(tree.gravity, rigid.gravity)
    np.testing.assert_array_equal(tree.neutral()[at_q], rigid.neutral())
    q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv), 1.3)
    q_r = q[at_q]
    v, a, f = rng.normal(size=tree.nv), rng.normal(size=tree.nv), rng.normal(size=(tree.n_bodies, 6))
    v_r, a_r, f_r = v[at_v], a[at_v], f[rows]
    close = lambda got, wanted, of=1.0: np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 * max(of, np.abs(wanted).max()))  # noqa: E731
    for dt in (1e-9, 0.3, 2.0):
        close(tree.integrate(q, v, dt)[at_q], rigid.integrate(q_r, v_r, dt))
    close(tree.forward_dynamics(q, v, a, f)[at_v], rigid.forward_dynamics(q_r, v_r, a_r, f_r), 10.0)
    close(tree.joint_reactions(q, v, a, f)[rows], rigid.joint_reactions(q_r, v_r, a_r, f_r))
    close(tree.base_wrench(q, v, a, f), rigid.base_wrench(q_r, v_r, a_r, f_r), 100.0)
    for got, wanted in zip(tree.poses(q), rigid.poses(q_r), strict=True):
        close(got[rows], wanted)
    close(tree.velocities(q, v)[rows], rigid.velocities(q_r, v_r))
    point = rng.normal(size=3)
    for k in range(tree.n_bodies):
        for got, wanted in zip(tree.pose(q, f"b{k}"), rigid.pose(q_r, f"b{k}"), strict=True):
            close(got, wanted)
        close(tree.velocity(q, v, f"b{k}", point), rigid.velocity(q_r, v_r, f"b{k}", point))
        close(tree.jacobian(q, f"b{k}", point)[:, at_v], rigid.jacobian(q_r, f"b{k}", point))
        np.testing.assert_array_equal(rigid.poses(q_r)[1][rigid.index(f"b{k}")], rigid.pose(q_r, f"b{k}")[1])
    for about in (None, (0.0, 0.0, 0.0), (3.0, -2.0, 1.0)):
        close(tree.momentum(q, v, about), rigid.momentum(q_r, v_r, about), 100.0)
    close(tree.centre_of_mass(q), rigid.centre_of_mass(q_r))
    assert tree.kinetic_energy(q, v) == pytest.approx(rigid.kinetic_energy(q_r, v_r), rel=1e-12)
    assert tree.potential_energy(q) == pytest.approx(rigid.potential_energy(q_r), rel=1e-11)
    # events
    joint = rigid.joint_names[-1]
    caught = tree.lock(q, v, joint), rigid.lock(q_r, v_r, joint)
    close(caught[0][at_v], caught[1], 10.0)
    np.testing.assert_array_equal(tree.locked[at_v], rigid.locked)
    close(tree.forward_dynamics(q, caught[0], a, f)[at_v], rigid.forward_dynamics(q_r, caught[1], a_r, f_r), 10.0)
    tree.unlock(joint)
    rigid.unlock(joint)
    assert not tree.locked.any() and not rigid.locked.any()
    for each in (tree, rigid):
        each.set_inertia("b1", 7.0, (0.1, 0.2, -0.1), np.diag([0.5, 0.6, 0.7]))
        with pytest.raises(ValueError, match="b1.*inertia"):
            each.set_inertia("b1", 7.0, (0.1, 0.2, -0.1), np.diag([0.5, 0.6, 7.0]))
    assert tree.mass == pytest.approx(rigid.mass, rel=1e-14)
    close(tree.forward_dynamics(q, v, a, f)[at_v], rigid.forward_dynamics(q_r, v_r, a_r, f_r), 10.0)


def public(file):
    """name -> argument names of the methods (None: attribute) of the one class of a stub."""
    tree = ast.parse((ROOT / "rt_kernels/multibody" / file).read_text())
    found = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    out = {}
    for node in found.body:
        if isinstance(node, ast.FunctionDef):
            attribute = any(isinstance(d, ast.Name) and d.id == "property" or isinstance(d, ast.Attribute) for d in node.decorator_list)
            out[node.name] = None if attribute else [a.arg for a in node.args.args + node.args.kwonlyargs]
        elif isinstance(node, ast.AnnAssign):
            out[node.target.id] = None
    return {name: arguments for name, arguments in out.items() if not name.startswith("_")}


def test_both_kinds_of_tree_have_the_same_names():
    """What both do has one name and the same arguments, those of one kind first; the rest belongs to one kind and is listed."""
    rigid, flexible = public("tree.pyi"), public("flexible.pyi")
    for name in set(rigid) & set(flexible) - {"from_toml", "attach", "detach"}:
        short, long = sorted((rigid[name], flexible[name]), key=lambda x: len(x or ()))
        assert short is long is None or short == long[: len(short)], name
    assert set(rigid) - set(flexible) == {"bodies", "frames", "frame", "n", "slot_of", "constants", "fastest", "generated",
                                          "instruction_set", "use_instruction_set", "model_address"}
    assert set(flexible) - set(rigid) == {"links", "modal_coordinates", "stiffness_matrix", "damping_matrix", "frequencies", "modes_at"}


@pytest.mark.parametrize("seed", range(4))
def test_jacobian_is_the_derivative_of_the_pose(seed):
    """Flexible bodies, exact rates: places and directions moved along every coordinate."""
    rng = np.random.default_rng(900 + seed)
    tree, _ = random_tree(rng, 5)
    q, v = random_state(rng, tree)
    point, h = rng.normal(size=3), 1e-5
    for name in tree.names:
        J = tree.jacobian(q, name, point)
        np.testing.assert_allclose(J @ v, tree.velocity(q, v, name, point), rtol=0, atol=1e-13 * np.abs(J).max())
        ends = [tree.pose(tree.integrate(q, v, s), name) for s in (h, -h)]
        linear = (ends[0][1] + ends[0][0] @ point - ends[1][1] - ends[1][0] @ point) / (2 * h)
        spin = (ends[0][0] - ends[1][0]) @ tree.pose(q, name)[0].T / (2 * h)
        np.testing.assert_allclose(J @ v, [*linear, spin[2, 1], spin[0, 2], spin[1, 0]], rtol=0, atol=1e-7 * np.abs(J).max())


@pytest.mark.parametrize("seed", range(6))
def test_locking_keeps_all_momenta_that_can_persist(seed):
    """M (v+ - v) has components only where the lock acts; modes and joint springs under load give no impulse."""
    rng = np.random.default_rng(1000 + seed)
    tree, _ = random_tree(rng, 6, types=("revolute", "prismatic", "spherical"))
    links = [replace(link, stiffness=1e6) if link.joint == "revolute" else link for link in tree.links]
    tree = FlexibleTree(links, (0.3, -0.2, 0.9))
    q, v = random_state(rng, tree)
    momentum = tree.momentum(q, v, (0, 0, 0))
    for joint in tree.joint_names[-2:]:
        held, before = tree.coordinates(joint)[1], v
        v = tree.lock(q, v, joint)
        np.testing.assert_array_equal(v[tree.locked], 0.0)
        impulse = tree.mass_matrix(q) @ (v - before)
        np.testing.assert_allclose(impulse[~tree.locked], 0.0, atol=1e-11 * np.abs(tree.mass_matrix(q) @ before).max())
        assert np.abs(impulse[held]).max() > 1e-3
    np.testing.assert_allclose(tree.momentum(q, v, (0, 0, 0)), momentum, atol=1e-11 * np.abs(momentum).max())
    a = tree.forward_dynamics(q, v, rng.normal(size=tree.nv))
    np.testing.assert_array_equal(a[tree.locked], 0.0)
    # a locked joint is a fixed one: the same tree without it
    tau, given = tree.hybrid_dynamics(q, v, np.zeros(tree.nv), np.ones(tree.nv), np.zeros(tree.nv, dtype=bool))
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, given), tau, atol=1e-9 * max(1.0, np.abs(tau).max()))
    free = np.flatnonzero(~tree.locked)
    np.testing.assert_allclose(tree.frequencies(q), tree.frequencies(q, np.flatnonzero(tree.locked)), rtol=1e-12)
    assert len(tree.frequencies(q)) == len(free)


def test_a_coordinate_of_a_joint_can_be_locked_alone():
    body = ModalBody.rigid(2.0, (0.1, 0.2, 0.3), (1.0, 1.2, 1.4))
    tree = FlexibleTree([Link("hub", body, joint="free"), Link("ball", body, "hub", joint="spherical")])
    q, v = tree.neutral(), np.linspace(0.1, 0.9, 9)
    caught = tree.lock(q, v, "ball", [1])
    np.testing.assert_array_equal(np.flatnonzero(tree.locked), [7])
    assert caught[7] == 0.0 and np.abs(caught[[6, 8]]).min() > 0.0
    tree.unlock("ball", [1])
    with pytest.raises(ValueError, match="joint 'ball': coordinate 3, 0 to 2 is needed"):
        tree.lock(q, v, "ball", [3])
    with pytest.raises(ValueError, match="unknown joint 'bell', the tree has hub, ball"):
        tree.lock(q, v, "bell")


def test_urdf_gives_the_same_tree_of_both_kinds(tmp_path):
    path = tmp_path / "arm.urdf"
    inertial = ('<inertial><origin xyz="0.1 0 0.2" rpy="0.3 0 0"/><mass value="{m}"/>'
                '<inertia ixx="0.3" ixy="0.01" ixz="0" iyy="0.4" iyz="0" izz="0.5"/></inertial>')
    joint = ('<joint name="{n}" type="{t}"><parent link="{p}"/><child link="{c}"/><origin xyz="0.3 0.1 0" rpy="0.2 -0.4 0.1"/>'
             '<axis xyz="0 0.6 0.8"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>')
    joints = [("shoulder", "revolute", "base", "upper"), ("wrist", "continuous", "upper", "lower"), ("slide", "prismatic", "base", "tray"),
              ("flange", "fixed", "lower", "tool")]
    path.write_text('<robot name="arm">' + "".join(f'<link name="{n}">{inertial.format(m=m)}</link>' for n, m in
                                                   (("base", 5), ("upper", 2), ("lower", 1.5), ("tray", 1), ("tool", 0.5)))
                    + "".join(joint.format(n=n, t=t, p=p, c=c) for n, t, p, c in joints) + "</robot>")
    for floating in (False, True):
        tree, rigid = FlexibleTree.from_urdf(path, floating), Tree.from_urdf(path, floating)
        moving = [name for name in rigid.joint_names if name in tree.joint_names]
        assert moving == rigid.joint_names and tree.nv == rigid.nv and "tool" in tree.names
        order_q, order_v = (np.concatenate([np.arange(20)[tree.coordinates(name)[part]] for name in moving]) for part in (0, 1))
        rng = np.random.default_rng(2)
        q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv), 1.0)
        v, tau = rng.normal(size=tree.nv), rng.normal(size=tree.nv)
        np.testing.assert_allclose(tree.forward_dynamics(q, v, tau)[order_v],
                                   rigid.forward_dynamics(q[order_q], v[order_v], tau[order_v]), rtol=1e-10, atol=1e-10)
        for got, wanted in zip(tree.pose(q, "tool"), rigid.pose(q[order_q], "tool"), strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-13)
        with pytest.raises(ValueError, match="body 'tool' is fixed to 'lower' and has no row of its own"):
            rigid.index("tool")
    path.write_text(path.read_text().replace('type="prismatic"', 'type="planar"'))
    with pytest.raises(ValueError, match="arm.urdf: .*'tray'.* no planar joint"):
        FlexibleTree.from_urdf(path)


def test_what_a_tree_with_flexible_bodies_cannot_do_is_reported():
    rng = np.random.default_rng(5)
    _, body = random_body(rng, 3)
    tree = FlexibleTree([Link("hub", ModalBody.rigid(3.0, inertia=(1, 1, 1)), joint="free"), Link("wing", body, "hub")])
    q, v = tree.neutral(), np.zeros(tree.nv)
    with pytest.raises(ValueError, match="body 'wing' has 3 modes"):
        tree.set_inertia("wing", 1.0, (0, 0, 0), np.eye(3))
    with pytest.raises(ValueError, match="body 'hub': mass: -1.0 kg"):
        tree.set_inertia("hub", -1.0, (0, 0, 0), np.eye(3))
    for call in (lambda: tree.attach(q, v, "hub", "wing"), lambda: tree.detach(q, v, "hub")):
        with pytest.raises(ValueError, match="attach: a tree with flexible bodies keeps its topology"):
            call()
    with pytest.raises(ValueError, match="generate: there is no generated code"):
        tree.generate()
    with pytest.raises(ValueError, match="no body named 'wink'; there are hub, wing"):
        tree.pose(q, "wink")
    with pytest.raises(ValueError, match="joint names given twice"):
        FlexibleTree([Link("a", body, joint_name="x"), Link("b", body, "a", joint_name="x")])
    # set_inertia leaves the tree as it was when it refuses
    assert tree.mass == pytest.approx(3.0 + body.mass)
