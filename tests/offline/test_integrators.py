"""Integrators: order, stability limit, identity with Stoermer-Verlet, quaternion norm, implicit drives."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

from rt_kernels.model.craft import Link
from rt_kernels.model.modes import ModalBody
from rt_kernels.multibody import Body, Tree
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.integrators import Motion, amplification, stability_limit, step_limit
from tests.multibody.tree_cases import depth_first, pinocchio_model, random_body

METHODS = {"symplectic_euler": 1, "two_step": 2, "rk4": 4, "implicit_euler": 1}


def spinning_craft(mass=3.0):
    """A free body with an arm of a revolute, a spherical and a sprung prismatic joint: all kinds of coordinates."""
    body = ModalBody.rigid(mass, (0.1, -0.05, 0.02), (2.0, 3.0, 4.0))
    arm = ModalBody.rigid(1.0, (0.4, 0.0, 0.1), (0.1, 0.2, 0.25))
    return FlexibleTree([
        Link("hub", body, joint="free"),
        Link("arm", arm, "hub", joint="revolute", axis=(0.0, 0.6, 0.8), position=(0.5, 0.0, 0.1)),
        Link("ball", arm, "arm", joint="spherical", position=(0.8, 0.0, 0.0)),
        Link("slide", arm, "hub", joint="prismatic", axis=(1.0, 0.0, 0.0), position=(-0.5, 0.0, 0.0), stiffness=6.0),
    ])


def start(tree):
    q = tree.neutral()
    v = np.array([0.1, -0.2, 0.05, 0.5, -0.4, 0.7, 0.3, 0.6, -0.5, 0.2, 0.1])
    return q, v[: tree.nv]


@pytest.mark.parametrize("method", METHODS)
def test_order_on_a_tumbling_tree(method):
    tree = spinning_craft()
    q0, v0 = start(tree)
    reference = Motion(tree, "rk4", 1.0 / 3000).run(q0, v0, 3000)
    errors = []
    for steps in (100, 200):
        _, q, v = Motion(tree, method, 1.0 / steps).run(q0, v0, steps)
        errors.append(max(np.abs(q - reference[1]).max(), np.abs(v - reference[2]).max()))
    order = np.log2(errors[0] / errors[1])
    assert order == pytest.approx(METHODS[method], abs=0.15)


def test_fine_reference_is_the_solution():
    """RK4 on the rotation vector against an adaptive integrator of the quaternion equations (free rigid body, closed torque law)."""
    J = np.array([2.0, 3.0, 4.5])
    tree = FlexibleTree([Link("hub", ModalBody.rigid(2.0, inertia=J), joint="free")])
    q0, v0 = tree.neutral(), np.array([0.3, -0.1, 0.2, 0.4, 1.1, -0.3])

    def rates(_, y):
        p, x, vl, w = y[:3], y[3:7], y[7:10], y[10:]
        xdot = 0.5 * np.append(x[3] * w + np.cross(x[:3], w), -x[:3] @ w)
        turned = vl + 2.0 * np.cross(x[:3], np.cross(x[:3], vl) + x[3] * vl)
        return np.concatenate([turned, xdot, -np.cross(w, vl), np.cross(J * w, w) / J + 0.0 * p])

    y = solve_ivp(rates, (0.0, 5.0), np.concatenate([q0, v0]), method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    _, q, v = Motion(tree, "rk4", 1e-3).run(q0, v0, 5000)
    np.testing.assert_allclose(np.concatenate([q, v]), y, rtol=0, atol=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_quaternion_keeps_its_norm(method):
    tree = spinning_craft()
    q, v = start(tree)
    _, q, v = Motion(tree, method, 2e-3).run(q, v, 30000)
    assert np.all(np.isfinite(q))
    for iq, _, kind in tree.rotations():
        part = q[iq + 3: iq + 7] if kind == "free" else q[iq: iq + 4]
        assert abs(part @ part - 1.0) < 1e-15


def test_two_step_is_stoermer_verlet():
    """psi = phi = 1/2, forces of position alone: x_{n+1} - 2 x_n + x_{n-1} = a_n h^2 and the positions of velocity Verlet."""
    h, steps = 0.07, 400

    def force(_, q, _v):
        return np.array([-3.0 * q[0] - q[0] ** 3 + 0.5 * q[1], 0.5 * q[0] - 2.0 * np.sin(q[1])])

    q0, v0 = np.array([0.8, -0.4]), np.array([0.1, 0.9])
    _, qs, _ = Motion(force, "two_step", h, nv=2).run(q0, v0, steps, every=1)
    x, v = q0.copy(), v0.copy()
    verlet = [x.copy()]
    for _ in range(steps):
        a = force(0, x, v)
        x = x + h * v + 0.5 * h * h * a
        v = v + 0.5 * h * (a + force(0, x, v))
        verlet.append(x.copy())
    np.testing.assert_allclose(qs, verlet, rtol=0, atol=1e-12)
    a = np.array([force(0, q, None) for q in qs[1:-1]])
    np.testing.assert_allclose(qs[2:] - 2.0 * qs[1:-1] + qs[:-2], h * h * a, rtol=0, atol=1e-14)


def test_stability_limits():
    assert stability_limit("two_step") == pytest.approx(2.0, abs=1e-6)
    for zeta, limit in ((0.01, 1.960), (0.05, 1.810), (0.1, 1.640), (0.5, 0.828)):
        assert stability_limit("two_step", zeta) == pytest.approx(limit, abs=5e-4)
    assert stability_limit("symplectic_euler") == pytest.approx(2.0, abs=1e-6)
    assert stability_limit("rk4") == pytest.approx(2.0 * np.sqrt(2.0), abs=1e-6)
    assert stability_limit("implicit_euler") == np.inf
    assert stability_limit("implicit_euler", 0.3) == np.inf
    # the other pairs of psi and phi amplify from the first step on
    for psi, phi, low, high in ((0.0, 0.0, 2.4e-3, 2.6e-3), (1 / 6, 0.5, 1e-6, 2e-5), (0.25, 0.5, 1e-6, 2e-5), (1 / 3, 0.5, 1e-6, 2e-5),
                                (0.5, 0.25, 1.1e-3, 1.3e-3)):
        excess = np.abs(np.linalg.eigvals(amplification("two_step", 0.1, 0.0, psi, phi))).max() - 1.0
        assert low < excess < high
        assert stability_limit("two_step", 0.0, psi, phi) == 0.0


def oscillator(stiffness, damping=0.0):
    return FlexibleTree([Link("mass", ModalBody.rigid(1.0, inertia=(1, 1, 1)), joint="prismatic", stiffness=stiffness, damping=damping)])


@pytest.mark.parametrize("method, zeta", [*((m, 0.0) for m in METHODS), ("two_step", 0.1)])
def test_a_run_is_stable_below_the_limit_and_not_above(method, zeta):
    omega = 40.0
    tree = oscillator(omega**2, 2.0 * zeta * omega)
    limit = step_limit(tree, method)
    if method == "implicit_euler":
        assert limit == np.inf
        _, q, _ = Motion(tree, method, 10.0).run([1.0], [0.0], 50)
        assert abs(q[0]) < 1e-3
        return
    assert limit == pytest.approx(stability_limit(method, zeta) / omega, rel=1e-9)
    _, q, _ = Motion(tree, method, 0.999 * limit).run([1.0], [0.0], 20000)
    assert abs(q[0]) < 50.0
    with pytest.raises(ValueError, match=rf"step \d+ .*joint 'mass'.* length is {1.02 * limit:g} s, the limit of {method} is {limit:g} s"):
        Motion(tree, method, 1.02 * limit).run([1.0], [0.0], 60000)


def test_one_step_is_the_amplification_matrix():
    w, zeta, h = 0.7, 0.08, 0.02
    omega = w / h
    tree = oscillator(omega**2, 2.0 * zeta * omega)
    for method in ("symplectic_euler", "two_step", "rk4", "implicit_euler"):
        motion = Motion(tree, method, h)
        M = amplification(method, w, zeta)
        _, q1, v1 = motion.run([1.0], [0.3 / h], 1)
        _, q2, v2 = motion.run(q1, v1, 1)
        a0 = -w * w - 2.0 * zeta * w * 0.3
        first = amplification(method, w, zeta, 0.0, 0.0) @ [1.0, 0.3, a0] if method == "two_step" else M @ [1.0, 0.3, a0]
        np.testing.assert_allclose([q1[0], h * v1[0]], first[:2], rtol=1e-13)
        np.testing.assert_allclose([q2[0], h * v2[0]], (M @ first)[:2], rtol=1e-12)


def test_two_step_needs_a_restart_after_a_jump():
    tree = oscillator(100.0)
    motion = Motion(tree, "two_step", 0.01)
    _, q, v = motion.run([0.2], [0.0], 10)
    motion.restart()
    fresh = Motion(tree, "two_step", 0.01).run([1.0], [0.0], 50)
    np.testing.assert_array_equal(motion.run([1.0], [0.0], 50)[1], fresh[1])
    assert abs(motion.run([1.0], [0.0], 50)[1][0] - fresh[1][0]) > 1e-4


def test_stiff_drives_on_a_tree_take_a_step_of_any_size():
    """Joint springs and dampers 1e4 times stiffer than the step allows explicitly: the arm follows its drives and energy only falls."""
    body = ModalBody.rigid(1.0, (0.5, 0.0, 0.0), (0.02, 0.1, 0.1))
    drive = {"joint": "revolute", "stiffness": 1e9, "damping": 1e5}
    links = [Link("l0", body, **drive)]
    links += [Link(f"l{k}", body, f"l{k - 1}", axis=((0, 1, 0), (0, 0, 1))[k % 2], position=(1, 0, 0), **drive) for k in range(1, 5)]
    tree = FlexibleTree(links, gravity=(0.0, -9.81, 0.0))
    h = 1e-3
    assert step_limit(tree, "rk4") < h / 100
    q, v = 1e-3 * np.array([1.0, -2.0, 1.5, 0.5, -1.0]), np.zeros(5)
    motion = Motion(tree, "implicit_euler", h)
    energy = [tree.kinetic_energy(q, v) + tree.potential_energy(q)]
    for _ in range(200):
        _, q, v = motion.run(q, v, 1)
        energy.append(tree.kinetic_energy(q, v) + tree.potential_energy(q))
    assert np.all(np.diff(energy) <= 1e-9 * energy[0])
    # at rest the springs carry the weight
    weight = np.abs(tree.inverse_dynamics(np.zeros(5), np.zeros(5), np.zeros(5))).max()
    assert weight > 50.0
    assert np.abs(tree.inverse_dynamics(q, np.zeros(5), np.zeros(5))).max() < 1e-9 * weight


def test_wrong_arguments_are_named():
    tree = oscillator(1.0)
    for call, message in (
        (lambda: Motion(tree, "leapfrog", 0.1), "method: 'leapfrog'"), (lambda: Motion(tree, "rk4", 0.0), "step: 0.0 s"),
        (lambda: Motion(tree, "two_step", 0.1, psi=-1.0), "psi: -1.0"), (lambda: Motion(3.0, "rk4", 0.1), "system: "),
        (lambda: Motion(tree, "rk4", 0.1).apply(tau=np.zeros(2)), "tau: shape"),
        (lambda: Motion(tree, "rk4", 0.1).apply(tau=[np.nan]), r"tau: nan at index \[0\]"),
        (lambda: Motion(tree, "rk4", 0.1).run([0.0], [0.0, 1.0], 1), "state: v: shape"),
        (lambda: Motion(tree, "rk4", 0.1).run([np.inf], [0.0], 1), r"state: q: inf at index \[0\]"),
        (lambda: Motion(lambda t, q, v: v, "rk4", 0.1, nv=1, rotations=[(0, 0, "ball")]), "rotations: .*'ball'"),
        (lambda: Motion(lambda t, q, v: v, "rk4", 0.1, nv=1).apply(), "apply: only a tree"),
        (lambda: stability_limit("rk4", -1.0), "zeta: -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_an_error_in_a_callback_reaches_the_caller():
    def broken(t, q, v):
        raise KeyError("drive")

    with pytest.raises(KeyError, match="drive"):
        Motion(broken, "rk4", 0.1, nv=1).run([0.0], [0.0], 3)


# --- rigid trees, loads and given motion at every stage ----------------------------------------------------------------------------------


def every_joint():
    """A free body that carries every other kind of joint, and the same in Pinocchio."""
    rng = np.random.default_rng(3)
    kinds = ["free", "continuous", "planar", "spherical", "universal", "screw", "prismatic", "revolute"]
    bodies = depth_first([random_body(rng, i, None if i == 0 else f"b{i - 1 if i % 3 else 0}", kind) for i, kind in enumerate(kinds)])
    return bodies, *pinocchio_model(bodies)


def coordinate_rates(tree, q, v):
    """q_dot of q and v, written out for each kind of rotation."""
    rate = np.zeros(tree.nq)
    turning = {iq: (iv, kind) for iq, iv, kind in tree.rotations()}
    at = 0
    while at < tree.nq:
        if at not in turning:
            joint = next(name for name in tree.joint_names if tree.coordinates(name)[0].start <= at < tree.coordinates(name)[0].stop)
            part = tree.coordinates(joint)
            rate[part[0]] = v[part[1]]
            at = part[0].stop
            continue
        iv, kind = turning[at]
        if kind in ("continuous", "planar"):
            k = at + (2 if kind == "planar" else 0)
            c, s = q[k : k + 2]
            w = v[iv + (2 if kind == "planar" else 0)]
            rate[k : k + 2] = -s * w, c * w
            if kind == "planar":
                rate[at : at + 2] = c * v[iv] - s * v[iv + 1], s * v[iv] + c * v[iv + 1]
            at = k + 2
        else:
            k, j = (at + 3, iv + 3) if kind == "free" else (at, iv)
            x, w = q[k : k + 4], v[j : j + 3]
            rate[k : k + 4] = 0.5 * np.append(x[3] * w + np.cross(x[:3], w), -x[:3] @ w)
            if kind == "free":
                rate[at : at + 3] = pin.Quaternion(x).matrix() @ v[iv : iv + 3]
            at = k + 4
    return rate


def control(t, q, v):
    """Torques of time and state together."""
    return 0.8 * np.sin(7.0 * t + np.arange(v.size)) - 0.5 * v


def test_a_rigid_tree_of_every_joint_against_an_adaptive_integrator_on_pinocchio():
    bodies, model, data = every_joint()
    tree = Tree(bodies)
    q0, v0 = tree.neutral(), 0.5 * np.random.default_rng(0).normal(size=tree.nv)

    def rates(t, y):
        q, v = y[: tree.nq], y[tree.nq :]
        return np.concatenate([coordinate_rates(tree, q, v), pin.aba(model, data, q, v, control(t, q, v))])

    expected = solve_ivp(rates, (0.0, 0.5), np.concatenate([q0, v0]), method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    motion = Motion(tree, "rk4", 2e-3)
    motion.apply(tau=control)
    t, q, v = motion.run(q0, v0, 250)
    assert t == pytest.approx(0.5)
    np.testing.assert_allclose(np.concatenate([q, v]), expected, rtol=0, atol=2e-8)
    assert np.abs(expected[: tree.nq] - q0).max() > 0.3  # it has moved


@pytest.mark.parametrize("method", ["symplectic_euler", "two_step", "rk4"])
def test_order_on_a_rigid_tree_with_loads_of_time_and_state(method):
    """Loads asked at every stage keep the order; held over a step they would leave the first."""
    bodies, _, _ = every_joint()
    tree = Tree(bodies)
    q0, v0 = tree.neutral(), 0.3 * np.random.default_rng(1).normal(size=tree.nv)

    def end(method, steps):
        motion = Motion(tree, method, 0.25 / steps)
        motion.apply(tau=control)
        return np.concatenate(motion.run(q0, v0, steps)[1:])

    reference = end("rk4", 4000)
    errors = [np.abs(end(method, steps) - reference).max() for steps in (100, 200)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(METHODS[method], abs=0.2)


def test_rigid_and_flexible_tree_move_alike():
    """The same rigid craft in both kinds of tree, wrenches on a body that follow its state."""
    hub, arm = (dict(mass=3.0, com=np.array([0.1, -0.05, 0.02]), inertia=np.diag([2.0, 3.0, 4.0])),
                dict(mass=1.0, com=np.array([0.4, 0.0, 0.1]), inertia=np.diag([0.1, 0.2, 0.25])))
    rigid = Tree([Body("hub", None, "free", **hub), Body("arm", "hub", "revolute", p_PJ_P=[0.5, 0, 0.1], axis=[0, 0.6, 0.8], **arm),
                  Body("ball", "arm", "spherical", p_PJ_P=[0.8, 0, 0], **arm)], gravity=(0, 0, 0))
    solid = {name: ModalBody.rigid(x["mass"], x["com"], x["inertia"]) for name, x in (("hub", hub), ("arm", arm))}
    flexible = FlexibleTree([Link("hub", solid["hub"], joint="free"), Link("arm", solid["arm"], "hub", joint="revolute", axis=(0, 0.6, 0.8),
                             position=(0.5, 0, 0.1)), Link("ball", solid["arm"], "arm", joint="spherical", position=(0.8, 0, 0))])
    v0 = np.linspace(-0.5, 0.6, rigid.nv)
    for method in ("symplectic_euler", "two_step", "rk4"):
        ends = []
        for tree in (rigid, flexible):
            motion = Motion(tree, method, 1e-3)
            wrenches = np.zeros((3, 6))

            def wrench(t, q, v, tree=tree, wrenches=wrenches):
                wrenches[tree.index("ball")] = np.append(np.sin(t) * v[:3], q[:3])
                return wrenches

            motion.apply(f_ext=wrench)
            ends.append(np.concatenate(motion.run(tree.neutral(), v0, 500)[1:]))
        np.testing.assert_allclose(ends[0], ends[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["rigid", "flexible"])
def test_given_motion_and_the_force_it_needs(kind):
    """Pendulum on a slider that is moved as x = A sin(w t): angle against the adaptive solution, slider force against Newton's law."""
    m, M, length, A, w, g = 2.0, 3.0, 0.7, 0.2, 5.0, 9.81
    if kind == "rigid":
        tree = Tree([Body("slider", None, "prismatic", axis=[1, 0, 0], mass=M, inertia=0.1 * np.eye(3)),
                     Body("bob", "slider", "revolute", axis=[0, 1, 0], mass=m, com=[0, 0, -length], inertia=np.zeros((3, 3)))])
    else:
        bob = ModalBody.from_points([m], [[0, 0, -length]], np.zeros((1, 3, 0)), np.zeros((0, 0)))
        tree = FlexibleTree([Link("slider", ModalBody.rigid(M, inertia=(0.1,) * 3), joint="prismatic", axis=(1, 0, 0)),
                             Link("bob", bob, "slider", joint="revolute", axis=(0, 1, 0))], gravity=(0, 0, -g))
    motion = Motion(tree, "rk4", 1e-3)
    motion.apply(known=[True, False], a=lambda t, q, v: [-A * w * w * np.sin(w * t), 0.0])
    t, q, v, tau = motion.run([0.0, 0.3], [A * w, 0.0], 1000, every=100, torques=True)
    np.testing.assert_allclose(q[:, 0], A * np.sin(w * t), rtol=0, atol=1e-9)

    # bob at (x - l sin th, -l cos th): l th'' = x'' cos th - g sin th
    def rates(t, y):
        return [y[1], (-A * w * w * np.sin(w * t) * np.cos(y[0]) - g * np.sin(y[0])) / length]

    y = solve_ivp(rates, (0.0, 1.0), [0.3, 0.0], method="DOP853", rtol=1e-12, atol=1e-13, t_eval=t).y
    np.testing.assert_allclose(q[:, 1], y[0], rtol=0, atol=1e-9)
    x2, th = -A * w * w * np.sin(w * t), y[0]
    th2 = (x2 * np.cos(th) - g * np.sin(th)) / length
    force = (M + m) * x2 - m * length * (th2 * np.cos(th) - y[1] ** 2 * np.sin(th))
    np.testing.assert_allclose(tau[:, 0], force, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(tau[:, 1], 0.0)
    # the last state alone, and one state by itself, say the same
    motion = Motion(tree, "rk4", 1e-3)
    motion.apply(known=[True, False], a=lambda t, q, v: [-A * w * w * np.sin(w * t), 0.0])
    *end, last = motion.run([0.0, 0.3], [A * w, 0.0], 1000, torques=True)
    np.testing.assert_array_equal(last, tau[-1])
    np.testing.assert_array_equal(motion.evaluate(*end)[0], last)


@pytest.mark.parametrize("kind", ["rigid", "flexible"])
def test_a_locked_joint_stays_and_its_torque_is_known(kind):
    bar = dict(mass=1.0, com=np.array([0.5, 0, 0]), inertia=np.diag([1e-3, 0.1, 0.1]))
    if kind == "rigid":
        tree = Tree([Body("a", None, "revolute", **bar), Body("b", "a", "revolute", p_PJ_P=[1, 0, 0], **bar)], gravity=(0, -9.81, 0))
    else:
        solid = ModalBody.rigid(bar["mass"], bar["com"], bar["inertia"])
        tree = FlexibleTree([Link("a", solid, joint="revolute"), Link("b", solid, "a", joint="revolute", position=(1, 0, 0))],
                            gravity=(0, -9.81, 0))
    q = np.array([0.2, 0.4])
    v = tree.lock(q, [0.5, 1.0], "b")
    motion = Motion(tree, "rk4", 1e-3)
    motion.apply(known=[False, False])
    _, q, v = motion.run(q, v, 500)
    assert q[1] == 0.4 and v[1] == 0.0 and abs(q[0] - 0.2) > 0.1
    tau, a = motion.evaluate(0.0, q, v)
    np.testing.assert_allclose(tree.inverse_dynamics(q, v, a), [0.0, tree.inverse_dynamics(q, v, a)[1]], atol=1e-12)
    tree.unlock("b")
    assert abs(Motion(tree, "rk4", 1e-3).run(q, v, 100)[1][1] - 0.4) > 1e-3


def test_what_goes_wrong_in_a_run_is_named():
    tree = oscillator(100.0)
    motion = Motion(tree, "rk4", 0.01)
    motion.apply(tau=lambda t, q, v: [np.nan if t > 0.1 else 0.0])
    with pytest.raises(ValueError, match=r"tau at t = 0.105 s: nan at index \[0\]"):
        motion.run([0.0], [1.0], 100)
    motion.apply(tau=lambda t, q, v: np.zeros(3))
    with pytest.raises(ValueError, match=r"tau at t = 0 s: shape \(3,\) given, \(1,\) expected"):
        motion.run([0.0], [1.0], 100)
    fast = Motion(Tree([Body("spin", None, "prismatic", mass=1.0)], gravity=(0, 0, 0)), "rk4", 1.0)
    fast.apply(tau=[2e307])
    with pytest.raises(ValueError, match=r"step \d \(from t = \d s\): q\[0\] \(joint 'spin'\) is not finite after it; its length is 1 s, "
                                         "the limit of rk4 is not known"):
        fast.run([1.0], [0.0], 9)
    with pytest.raises(ValueError, match="a Tree has none; one of symplectic_euler, two_step, rk4"):
        Motion(Tree([Body("spin", mass=1.0, inertia=np.eye(3))]), "implicit_euler", 0.1)
