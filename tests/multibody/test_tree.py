"""Rigid trees against Pinocchio, against their own inverse, and against the golden case of the seed digest."""

import itertools

import numpy as np
import pinocchio as pin
import pytest

from rt_kernels.multibody import Body, Tree
from rt_kernels.multibody.tree import INSTRUCTION_SETS
from tests.multibody.tree_cases import forces, full_mass_matrix, pinocchio_model, random_state, random_tree, relative

TREES = 500


@pytest.fixture(autouse=True)
def _seed():
    pin.seed(11)


def _compare(bodies, rng, tolerance):
    model, data = pinocchio_model(bodies)
    tree = Tree(bodies)
    assert (tree.nq, tree.nv, tree.n_bodies) == (model.nq, model.nv, model.njoints - 1)
    q, v, tau, a = random_state(rng, model)
    f_ext = rng.normal(size=(tree.n_bodies, 6))
    assert relative(tree.inverse_dynamics(q, v, a, f_ext), pin.rnea(model, data, q, v, a, forces(f_ext))) < tolerance
    assert relative(tree.mass_matrix(q), full_mass_matrix(model, data, q)) < tolerance
    assert relative(tree.momentum(q, v), pin.computeCentroidalMomentum(model, data, q, v).vector) < tolerance
    energy = 0.5 * v @ full_mass_matrix(model, data, q) @ v
    assert abs(tree.kinetic_energy(q, v) - energy) < tolerance * energy
    assert abs(tree.potential_energy(q) - pin.computePotentialEnergy(model, data, q)) < tolerance * (1 + abs(tree.potential_energy(q)))
    pin.rnea(model, data, q, v, a, forces(f_ext))
    reactions = np.array([data.f[k].vector for k in range(1, model.njoints)])
    assert relative(tree.joint_reactions(q, v, a, f_ext), reactions) < tolerance
    if model.joints[1].shortname() != "JointModelFreeFlyer":
        base = sum((data.oMi[k].act(data.f[k]).vector for k in range(1, model.njoints) if model.parents[k] == 0), np.zeros(6))
        assert relative(tree.base_wrench(q, v, a, f_ext), base) < tolerance
    accelerations = tree.forward_dynamics(q, v, tau, f_ext)
    plain = pin.aba(model, data, q, v, tau, forces(f_ext)).copy()
    # Pinocchio's algorithm loses up to 1.1e-12 itself on these trees: its answer is refined with its own mass matrix and inverse dynamics
    refined, H = plain.copy(), full_mass_matrix(model, data, q)
    for _ in range(2):
        refined -= np.linalg.solve(H, pin.rnea(model, data, q, v, refined, forces(f_ext)) - tau)
    assert relative(accelerations, plain) < tolerance + relative(plain, refined)
    return relative(accelerations, refined)


def test_random_trees_against_pinocchio():
    """Row 1: bushy trees and chains up to 30 bodies, every joint kind, with external wrenches and drives."""
    rng = np.random.default_rng(1)
    for case in range(TREES - 20):
        bodies = random_tree(rng, int(rng.integers(1, 31)), rng.random() < 0.7, chain=rng.choice([0.0, 0.5, 0.8, 1.0]))
        assert _compare(bodies, rng, 1e-12) < 1e-12, f"case {case}: {[b.joint for b in bodies]}"


def test_long_chains_against_pinocchio():
    rng = np.random.default_rng(2)
    for case in range(20):
        bodies = random_tree(rng, int(rng.integers(31, 51)), case % 2 == 0)
        assert _compare(bodies, rng, 1e-10) < 1e-10


def test_children_declared_before_parents():
    rng = np.random.default_rng(3)
    bodies = random_tree(rng, 12, True, chain=0.3)
    tree, shuffled = Tree(bodies), Tree([bodies[i] for i in rng.permutation(12)])
    q, v = tree.neutral(), rng.normal(size=tree.nv)
    tau = rng.normal(size=tree.nv)
    q2, v2, tau2 = shuffled.neutral(), np.empty(tree.nv), np.empty(tree.nv)
    for name in tree.joint_names:
        (from_q, from_v), (to_q, to_v) = tree.coordinates(name), shuffled.coordinates(name)
        q2[to_q], v2[to_v], tau2[to_v] = q[from_q], v[from_v], tau[from_v]
    a, a2 = tree.forward_dynamics(q, v, tau), shuffled.forward_dynamics(q2, v2, tau2)
    for name in tree.joint_names:
        np.testing.assert_allclose(a2[shuffled.coordinates(name)[1]], a[tree.coordinates(name)[1]], rtol=1e-9, atol=1e-9)


def test_jacobian_and_pose_against_pinocchio():
    rng = np.random.default_rng(4)
    for _ in range(20):
        bodies = random_tree(rng, 9, True, chain=0.5)
        model, data = pinocchio_model(bodies)
        tree = Tree(bodies)
        q, v, *_ = random_state(rng, model)
        pin.computeJointJacobians(model, data, q)
        for k, b in enumerate(bodies):
            R, p = tree.pose(q, b.name)
            np.testing.assert_allclose(R, data.oMi[k + 1].rotation, atol=1e-13)
            np.testing.assert_allclose(p, data.oMi[k + 1].translation, atol=1e-13)
            J = pin.getJointJacobian(model, data, k + 1, pin.LOCAL_WORLD_ALIGNED)
            np.testing.assert_allclose(tree.jacobian(q, b.name), J, atol=1e-13)
            point = rng.normal(size=3)
            step = 1e-6
            moved = [tree.pose(tree.integrate(q, v, s), b.name) for s in (-step, step)]
            rate = (moved[1][1] + moved[1][0] @ point - moved[0][1] - moved[0][0] @ point) / (2 * step)
            np.testing.assert_allclose(tree.velocity(q, v, b.name, point)[:3], rate, atol=1e-7)


def test_integrate_against_pinocchio():
    rng = np.random.default_rng(5)
    for dt in (1e-9, 1e-3, 0.4, 3.0):
        bodies = random_tree(rng, 20, True, chain=0.5)
        model, _ = pinocchio_model(bodies)
        tree = Tree(bodies)
        q, v, *_ = random_state(rng, model)
        found, expected = tree.integrate(q, v, dt), pin.integrate(model, q, v * dt)
        np.testing.assert_allclose(pin.difference(model, expected, found), 0.0, atol=2e-14 * (1 + dt))
        np.testing.assert_allclose(pin.normalize(model, found), found, atol=1e-15)


# ---- mixed joints --------------------------------------------------


def test_every_subset_of_known_joints():
    """Row 2: hybrid dynamics returns the torques and accelerations of a motion made by inverse dynamics, whatever is known."""
    rng = np.random.default_rng(6)
    for case in range(50):
        kinds = ["revolute", "prismatic", "screw", "universal", "spherical"]
        bodies = random_tree(rng, int(rng.integers(2, 6)), case % 3 > 0, chain=0.5, kinds=kinds)
        tree = Tree(bodies)
        model, _ = pinocchio_model(bodies)
        q, v, _, a = random_state(rng, model)
        f_ext = rng.normal(size=(tree.n_bodies, 6))
        tau = tree.inverse_dynamics(q, v, a, f_ext)
        slices = [tree.coordinates(name)[1] for name in tree.joint_names]
        for subset in itertools.product([False, True], repeat=len(slices)):
            known = np.zeros(tree.nv, dtype=bool)
            for part, is_known in zip(slices, subset, strict=True):
                known[part] = is_known
            # what is not given is poisoned: it must not be read
            tau_out, a_out = tree.hybrid_dynamics(q, v, np.where(known, np.nan, tau), np.where(known, a, np.nan), known, f_ext)
            assert np.array_equal(a_out[known], a[known]) and np.array_equal(tau_out[~known], tau[~known])
            assert relative(tau_out, tau) < 1e-11 and relative(a_out, a) < 1e-11


def test_single_coordinates_known_on_multi_axis_joints():
    rng = np.random.default_rng(7)
    for _ in range(50):
        bodies = random_tree(rng, 6, True, chain=0.5)
        tree = Tree(bodies)
        q, v, _, a = random_state(rng, pinocchio_model(bodies)[0])
        tau = tree.inverse_dynamics(q, v, a)
        known = rng.random(tree.nv) < 0.5
        tau_out, a_out = tree.hybrid_dynamics(q, v, np.where(known, np.nan, tau), np.where(known, a, np.nan), known)
        assert relative(tau_out, tau) < 1e-11 and relative(a_out, a) < 1e-11


def golden_mixed_case():
    """Digest G4: free base, revolute z with its torque given, revolute y with its acceleration given."""

    def about_com(mass, com, about_origin):
        com = np.array(com)
        return np.array(about_origin) - mass * (com @ com * np.eye(3) - np.outer(com, com))

    bodies = [
        Body("base", None, "free", mass=10.0, inertia=np.diag([2.0, 3.0, 4.0])),
        Body("link1", "base", "revolute", p_PJ_P=[0.5, 0, 0], mass=2.0, com=[0.5, 0, 0],
             inertia=about_com(2.0, [0.5, 0, 0], np.diag([0.01, 0.7, 0.7]))),
        Body("link2", "link1", "revolute", p_PJ_P=[1.0, 0, 0], axis=[0, 1, 0], mass=1.0, com=[0.4, 0, 0.1],
             inertia=about_com(1.0, [0.4, 0, 0.1], [[0.03, 0, -0.04], [0, 0.25, 0], [-0.04, 0, 0.24]])),
    ]  # fmt: skip
    q = np.array([0, 0, 0, 0, 0, 0, 1, 0.3, -0.5])
    v = np.array([0.5, 0, -0.2, 0.1, 0.2, -0.1, 0.4, -0.6])
    return bodies, q, v


def test_golden_mixed_case():
    bodies, q, v = golden_mixed_case()
    known = np.array([False] * 7 + [True])
    tau, a = Tree(bodies, gravity=(0, 0, 0)).hybrid_dynamics(q, v, [0, 0, 0, 0, 0, 0, 0.7, 0], [0, 0, 0, 0, 0, 0, 0, 1.2], known)
    # the digest's v_dot_0 is inertial; here it is the rate of the body-axes components
    np.testing.assert_allclose(a[:3] + np.cross(v[3:6], v[:3]), [0.0302195713, -0.0514112643, -0.0038736294], atol=1e-9)
    np.testing.assert_allclose(a[3:6], [0.0831898552, -0.0496114610, -0.2442640804], atol=1e-9)
    assert abs(a[6] - 0.7547876919) < 1e-9 and abs(tau[7] - 0.1531138338) < 1e-9


# ---- far from the origin, equal bits, gravity --------------------------------------------------


@pytest.mark.parametrize("distance", [1e3, 1e5, 7e6])
def test_accuracy_far_from_the_origin(distance):
    """Row 10: the place of the base does not enter the recursion."""
    rng = np.random.default_rng(8)
    bodies = random_tree(rng, 10, True, chain=0.7, motors=False)
    model, _ = pinocchio_model(bodies)
    tree = Tree(bodies, gravity=(0, 0, 0))
    q, v, tau, a = random_state(rng, model)
    q[:3] = 0.0
    far = q.copy()
    far[:3] = distance * np.array([0.6, -0.48, 0.64])
    assert relative(tree.forward_dynamics(far, v, tau), tree.forward_dynamics(q, v, tau)) < 1e-12
    assert relative(tree.inverse_dynamics(far, v, a), tree.inverse_dynamics(q, v, a)) < 1e-12
    assert relative(tree.mass_matrix(far), tree.mass_matrix(q)) < 1e-12
    assert relative(tree.momentum(far, v), tree.momentum(q, v)) < 1e-9 * max(1.0, distance / 1e6)
    # a fixed base there
    placed = [Body(**{**bodies[0].__dict__, "p_PJ_P": far[:3]}), *bodies[1:]]
    assert relative(Tree(placed, gravity=(0, 0, 0)).forward_dynamics(q, v, tau), tree.forward_dynamics(q, v, tau)) < 1e-12


def test_instruction_sets_give_the_same_bits():
    rng = np.random.default_rng(9)
    present = []
    for _ in range(20):
        bodies = random_tree(rng, int(rng.integers(1, 40)), True, chain=0.6)
        tree = Tree(bodies)
        q, v, tau, a = random_state(rng, pinocchio_model(bodies)[0])
        known, f_ext = rng.random(tree.nv) < 0.5, rng.normal(size=(tree.n_bodies, 6))
        answers = {}
        for name in INSTRUCTION_SETS:
            try:
                tree.use_instruction_set(name)
            except ValueError:
                continue
            answers[name] = np.concatenate([
                tree.forward_dynamics(q, v, tau, f_ext), tree.inverse_dynamics(q, v, a, f_ext), tree.mass_matrix(q).ravel(),
                *tree.hybrid_dynamics(q, v, tau, a, known, f_ext),
            ]).tobytes()  # fmt: skip
        assert len(set(answers.values())) == 1
        present = list(answers)
    if len(present) < 2:
        pytest.skip("this processor has one instruction set only")


def test_gravity_acts_on_a_free_base():
    rng = np.random.default_rng(10)
    bodies = random_tree(rng, 5, True, motors=False)
    tree = Tree(bodies, gravity=(0.3, -0.2, -1.6))
    q, v = tree.neutral(), np.zeros(tree.nv)
    q[3:7] = [0.5, 0.5, -0.5, 0.5]
    a = tree.forward_dynamics(q, v, np.zeros(tree.nv))
    R, _ = tree.pose(q, "b0")
    np.testing.assert_allclose(R @ a[:3], [0.3, -0.2, -1.6], rtol=1e-12)
    np.testing.assert_allclose(a[3:], 0.0, atol=1e-11)


def test_energy_is_kept_by_a_tumbling_tree():
    """RK4 at a small step: work of the joint torques is zero, so energy and momentum stay."""
    rng = np.random.default_rng(12)
    bodies = random_tree(rng, 6, True, chain=0.5)
    tree = Tree(bodies, gravity=(0, 0, 0))
    q, v = tree.neutral(), 0.3 * rng.normal(size=tree.nv)
    zero, dt = np.zeros(tree.nv), 1e-3
    energy, momentum = tree.kinetic_energy(q, v), tree.momentum(q, v, about=(0, 0, 0))
    for _ in range(500):
        k1 = tree.forward_dynamics(q, v, zero)
        v2 = v + dt / 2 * k1
        k2 = tree.forward_dynamics(tree.integrate(q, v, dt / 2), v2, zero)
        v3 = v + dt / 2 * k2
        k3 = tree.forward_dynamics(tree.integrate(q, v2, dt / 2), v3, zero)
        v4 = v + dt * k3
        k4 = tree.forward_dynamics(tree.integrate(q, v3, dt), v4, zero)
        q = tree.integrate(q, (v + 2 * v2 + 2 * v3 + v4) / 6, dt)
        v = v + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    assert abs(tree.kinetic_energy(q, v) / energy - 1) < 1e-7
    np.testing.assert_allclose(tree.momentum(q, v, about=(0, 0, 0)), momentum, rtol=1e-6, atol=1e-6)


def test_cost_is_linear_in_the_number_of_bodies():
    """Row 9, rigid, in a measure that no other load disturbs: the floating-point operations of the generated recursion, per body."""
    from rt_kernels.model import tree_generator

    def operations(n):
        bodies = [
            Body(
                f"b{i}",
                f"b{i - 1}" if i else None,
                "revolute",
                p_PJ_P=[0.3, 0.02, 0.05],
                axis=np.eye(3)[i % 3],
                mass=1.0,
                inertia=np.eye(3),
            )
            for i in range(n)
        ]
        tree = Tree(bodies)
        return len(tree_generator.forward_dynamics(tree.constants(), False))

    counts = {n: operations(n) for n in (5, 10, 20, 40)}
    slope, offset = np.polyfit(list(counts), list(counts.values()), 1)
    for n, count in counts.items():
        assert abs(slope * n + offset - count) < 0.05 * count
