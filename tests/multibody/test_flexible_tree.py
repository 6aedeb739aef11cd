"""Flexible tree kernel against a slow, obvious twin (mass points, complex-step Jacobians), Pinocchio on rigid trees, and identities."""

import numpy as np
import pytest

from rt_kernels.model.craft import Link
from rt_kernels.model.modes import ModalBody, Port
from rt_kernels.multibody import Body, Tree
from rt_kernels.multibody.flexible import FlexibleTree

pin = pytest.importorskip("pinocchio")


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
    for iq, _, kind in tree.quaternions():
        part = slice(iq + 3, iq + 7) if kind == "free" else slice(iq, iq + 4)
        q[part] /= np.linalg.norm(q[part])
    return q, v


def point_positions(tree, clouds, q, v, t):
    """Positions (n, 3) of all mass points and frame poses after time t at constant v (body-axis rates), t may be complex."""
    out, frames = [], {}
    for link in tree.links:
        body = link.body
        (jq, eq), (jv, ev) = tree.q_slice(link.name), tree.v_slice(link.name)
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
        ev, eq = tree.v_slice(link.name)[1], tree.q_slice(link.name)[1]
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
    tau, f = rng.normal(size=tree.nv), rng.normal(size=(len(tree.names), 6))
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
        jq, jv = tree.q_slice(f"b{k}")[0], tree.v_slice(f"b{k}")[0]
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
    balance = tree.balance(q, v)
    np.testing.assert_allclose(balance["linear"], data.hg.linear, rtol=0, atol=1e-12 * np.abs(data.hg.linear).max())
    np.testing.assert_allclose(balance["angular"] - np.cross(balance["centre"], balance["linear"]), data.hg.angular, rtol=0,
                               atol=1e-11 * np.abs(data.hg.angular).max())
    assert balance["kinetic"] == pytest.approx(pin.computeKineticEnergy(model, data, q_pin, v_pin), rel=1e-12)
    assert balance["potential"] == pytest.approx(pin.computePotentialEnergy(model, data, q_pin), rel=1e-11, abs=1e-10)


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
        other_q, other_v = rigid.coordinates(link.name)
        at_q[tree.q_slice(link.name)[0]] = np.arange(other_q.start, other_q.stop)
        at_v[tree.v_slice(link.name)[0]] = np.arange(other_v.start, other_v.stop)
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
        ev = tree.v_slice(link.name)[1]
        C[ev, ev] = link.body.damping

    def energy(t):
        # along the flow: positions to second order is enough, the difference is of the energy's first derivative
        qt, vt = q.copy(), v + a * t
        u = v * t + 0.5 * a * t * t
        qt[...] = move(tree, q, u)
        b = tree.balance(qt, vt)
        return b["kinetic"] + b["potential"]

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
        (jq, eq), (jv, ev) = tree.q_slice(link.name), tree.v_slice(link.name)
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
