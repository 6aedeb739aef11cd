"""Capture, release, locking, change of mass: momentum is carried over, poses stay, the dynamics afterwards are the new tree's."""

import re
from pathlib import Path

import numpy as np
import pytest

import rt_kernels.multibody
from rt_kernels.multibody import Body, ModelError, Tree
from tests.contracts.allocator import in_use
from tests.multibody.tree_cases import random_body, relative

EVENTS = 10_000


def two_craft(rng, gravity=(0.0, 0.0, 0.0)):
    """A craft with an arm, a second craft with a boom, and two loose payloads; every root is free."""
    bodies = [random_body(rng, 0, None, "free")]
    kinds = ["revolute", "revolute", "universal", "spherical", "prismatic"]
    bodies += [random_body(rng, i, f"b{i - 1}", kinds[i % 5], motors=False) for i in range(1, 6)]
    bodies += [random_body(rng, 6, None, "free"), random_body(rng, 7, "b6", "revolute", motors=False)]
    bodies += [random_body(rng, 8, None, "free"), random_body(rng, 9, None, "free")]
    return Tree(bodies, gravity)


def random_motion(rng, tree):
    q = tree.integrate(tree.neutral(), rng.normal(size=tree.nv), 1.0)
    return q, rng.normal(size=tree.nv)


def all_poses(tree, q):
    return np.concatenate([np.column_stack(tree.pose(q, b.name)).ravel() for b in tree.bodies])


def test_capture_keeps_momentum_and_poses_and_stops_relative_motion():
    rng = np.random.default_rng(1)
    tree = two_craft(rng)
    q, v = random_motion(rng, tree)
    momentum, poses, energy = tree.momentum(q, v, (0, 0, 0)), all_poses(tree, q), tree.kinetic_energy(q, v)
    q2, v2 = tree.attach(q, v, "b8", "b5")
    assert relative(tree.momentum(q2, v2, (0, 0, 0)), momentum) < 1e-12
    assert relative(all_poses(tree, q2), poses) < 1e-13
    assert np.abs(v2[tree.coordinates("j8")[1]]).max() == 0.0
    assert tree.kinetic_energy(q2, v2) < energy  # an inelastic catch loses energy
    # one rigid body now: both move with the same twist
    R, p = tree.pose(q2, "b8")
    R5, p5 = tree.pose(q2, "b5")
    caught = tree.velocity(q2, v2, "b8")
    np.testing.assert_allclose(caught, tree.velocity(q2, v2, "b5", R5.T @ (p - p5)), atol=1e-12)
    # and away again with the velocity it has
    q3, v3 = tree.detach(q2, v2, "b8")
    assert relative(all_poses(tree, q3), poses) < 1e-13
    np.testing.assert_allclose(tree.velocity(q3, v3, "b8"), caught, atol=1e-12)
    assert relative(tree.momentum(q3, v3, (0, 0, 0)), momentum) < 1e-12


def test_captured_body_moves_as_merged_mass():
    """Forward dynamics with the payload held equals that of a tree whose last link has the payload's mass."""
    rng = np.random.default_rng(2)
    tree = two_craft(rng)
    q, v = random_motion(rng, tree)
    q, v = tree.attach(q, v, "b8", "b5")
    tau = rng.normal(size=tree.nv)
    a = tree.forward_dynamics(q, v, tau)
    merged = Tree([b for b in tree.bodies if b.name != "b8"], (0, 0, 0))
    R5, p5 = tree.pose(q, "b5")
    R8, p8 = tree.pose(q, "b8")
    held, carrier = next(b for b in tree.bodies if b.name == "b8"), next(b for b in tree.bodies if b.name == "b5")
    R, p = R5.T @ R8, R5.T @ (p8 - p5)
    c8, mass = R @ held.com + p, held.mass + carrier.mass
    com = (held.mass * c8 + carrier.mass * carrier.com) / mass
    inertia = R @ held.inertia @ R.T + carrier.inertia
    for m, c in ((held.mass, c8 - com), (carrier.mass, carrier.com - com)):
        inertia = inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
    merged.set_inertia("b5", mass, com, (inertia + inertia.T) / 2)
    keep_v = np.ones(tree.nv, bool)
    keep_v[tree.coordinates("j8")[1]] = False
    keep_q = np.ones(tree.nq, bool)
    keep_q[tree.coordinates("j8")[0]] = False
    assert relative(a[keep_v], merged.forward_dynamics(q[keep_q], v[keep_v], tau[keep_v])) < 1e-11
    assert np.abs(a[~keep_v]).max() == 0.0


def test_lock_against_dense_impulse():
    """Locking is an impulse of the locked joint alone: M (v+ - v-) = e lambda, v+ of the joint zero; drives included."""
    rng = np.random.default_rng(3)
    bodies = [random_body(rng, 0, None, "free")] + [random_body(rng, i, f"b{i - 1}", "revolute") for i in range(1, 6)]
    tree = Tree(bodies)
    q, v = random_motion(rng, tree)
    H, k = tree.mass_matrix(q), tree.coordinates("j3")[1].start
    column = np.linalg.solve(H, np.eye(tree.nv)[k])
    expected = v - column * v[k] / column[k]
    found = tree.lock(q, v, "j3")
    assert relative(found, expected) < 1e-11 and found[k] == 0.0
    tau = rng.normal(size=tree.nv)
    a = tree.forward_dynamics(q, found, tau)
    assert a[k] == 0.0
    known = np.zeros(tree.nv, bool)
    known[k] = True
    torque, _ = tree.hybrid_dynamics(q, found, tau, np.zeros(tree.nv), np.zeros(tree.nv, bool))
    assert relative(tree.inverse_dynamics(q, found, a), torque) < 1e-11  # the holding torque comes back
    tree.unlock("j3")
    assert abs(tree.forward_dynamics(q, found, tau)[k]) > 0.0 and not tree.locked.any()


def test_partial_hold_is_a_ball_joint():
    """Only the three displacements are held: the catch is a spherical joint, relative rotation keeps its momentum."""
    rng = np.random.default_rng(4)
    tree = two_craft(rng)
    q, v = random_motion(rng, tree)
    momentum = tree.momentum(q, v, (0, 0, 0))
    q, v = tree.attach(q, v, "b9", "b7", (True, True, True, False, False, False))
    part = tree.coordinates("j9")[1]
    assert np.abs(v[part][:3]).max() == 0.0 and np.abs(v[part][3:]).min() > 0.0
    assert relative(tree.momentum(q, v, (0, 0, 0)), momentum) < 1e-12


def test_random_events_on_a_tumbling_tree():
    """Row 6: ten thousand events; each keeps linear and angular momentum to 1e-12, nothing becomes NaN."""
    rng = np.random.default_rng(5)
    tree = two_craft(rng)
    q, v = random_motion(rng, tree)
    lockable = ["j1", "j2", "j3", "j4", "j5", "j7"]
    loose, names = ["b6", "b8", "b9"], [b.name for b in tree.bodies]
    zero, locked, worst, counted = np.zeros(tree.nv), set(), 0.0, dict.fromkeys(("lock", "unlock", "attach", "detach", "refused"), 0)
    for _ in range(EVENTS):
        before = tree.momentum(q, v, (0, 0, 0))
        kind = rng.integers(4)
        if kind == 0:
            joint = str(rng.choice(lockable))
            v = tree.lock(q, v, joint)
            locked.add(joint)
            counted["lock"] += 1
        elif kind == 1 and locked:
            tree.unlock(locked.pop())
            counted["unlock"] += 1
        elif kind == 2:
            try:
                q, v = tree.attach(q, v, str(rng.choice(loose)), str(rng.choice(names)), rng.random(6) < 0.8)
                counted["attach"] += 1
            except ValueError:
                counted["refused"] += 1
        else:
            q, v = tree.detach(q, v, str(rng.choice(loose)))
            counted["detach"] += 1
        worst = max(worst, relative(tree.momentum(q, v, (0, 0, 0)), before))
        assert np.isfinite(q).all() and np.isfinite(v).all()
        v = v + 1e-3 * tree.forward_dynamics(q, v, zero)  # tumble on; catches damp, so a push keeps it going
        v += 0.02 * rng.normal(size=tree.nv) * ~tree.locked
        q = tree.integrate(q, v, 1e-3)
    assert min(counted.values()) > 100, counted
    assert worst < 1e-12


def test_events_keep_no_memory():
    """Row 6: ten thousand events leave what the C library has handed out as it was; the smallest block that malloc gives is 32 bytes."""
    rng = np.random.default_rng(6)
    tree = two_craft(rng)
    q, v = random_motion(rng, tree)

    def events(count):
        state = q, v
        for k in range(count // 4):
            state = tree.attach(*state, "b8", "b5" if k % 2 else "b3")
            state = state[0], tree.lock(*state, "j2")
            tree.unlock("j2")
            state = tree.detach(*state, "b8")

    events(100)
    before = in_use()
    events(EVENTS)
    assert in_use() - before < EVENTS * 32 // 10
    kept = [np.zeros(5) for _ in range(EVENTS)]
    assert in_use() - before >= EVENTS * 32, len(kept)  # it would have shown


def test_events_and_kernels_do_not_allocate():
    """The C file of the kernels has no allocation, no lock, no input or output, and no function of the C library at all."""
    folder = Path(rt_kernels.multibody.__file__).parent
    own = ("native_tree.c", "tree_algorithms.inc", "tree_vec3.inc", "tree_sincos.inc", "tree_kernel.h")
    for name in own:
        text = re.sub(r"/\*.*?\*/", "", (folder / name).read_text(), flags=re.S)
        assert set(re.findall(r'#include\s+[<"]([^>"]+)', text)) <= {"stdint.h", *own}
        assert not re.search(r"\b(malloc|calloc|realloc|free|alloca|printf|pthread_\w+|sin|cos|atan2|exp|pow)\s*\(", text)


def test_refusals_name_the_reason():
    rng = np.random.default_rng(6)
    tree = two_craft(rng)
    q, v = random_motion(rng, tree)
    with pytest.raises(ValueError, match="'b1' has a revolute joint"):
        tree.attach(q, v, "b1", "b8")
    with pytest.raises(ValueError, match="'b7' hangs on 'b6'"):
        tree.attach(q, v, "b6", "b7")
    with pytest.raises(ValueError, match="unknown body 'x'"):
        tree.detach(q, v, "x")
    with pytest.raises(ValueError, match="hold"):
        tree.attach(q, v, "b8", "b5", (True, False))
    with pytest.raises(ModelError, match="'b2'.*not physical"):
        tree.set_inertia("b2", 1.0, np.zeros(3), np.diag([1.0, 1.0, 9.0]))
    with pytest.raises(ModelError, match="'b2'.*mass 0"):
        tree.set_inertia("b2", 0.0, np.zeros(3), np.zeros((3, 3)))


def test_mass_change_keeps_velocity():
    tree = Tree([Body("craft", None, "free", mass=10.0, inertia=np.eye(3))], (0, 0, 0))
    q, v = tree.neutral(), np.array([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    before = tree.momentum(q, v)
    tree.set_inertia("craft", 4.0, np.zeros(3), 0.4 * np.eye(3))
    np.testing.assert_allclose(tree.momentum(q, v), 0.4 * before, rtol=1e-15)
