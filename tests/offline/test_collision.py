"""Collisions: closed forms of a rod and a ball, Pinocchio's impulse dynamics on trees, and the balance of momentum and energy."""

import numpy as np
import pinocchio as pin
import pytest
import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from rt_kernels.multibody import Tree
from rt_kernels.offline.collision import collide
from rt_kernels.offline.kane import KaneModel
from tests.multibody.tree_cases import pinocchio_model, random_state, random_tree

t = sm.Symbol("t")


def falling_rod():
    """Uniform rod of length 2 l and mass m in the plane: `KaneModel` and rows of the velocity of its lower end (up, along the floor)."""
    q, u = dynamicsymbols("x y a"), dynamicsymbols("u1:4")
    m, l = sm.symbols("m l", positive=True)
    N = ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (q[2], N.z))
    B.set_ang_vel(N, u[2] * N.z)
    centre = Point("centre")
    centre.set_vel(N, u[0] * N.x + u[1] * N.y)
    end = centre.locatenew("end", -l * B.x)
    end.v2pt_theory(centre, N, B)
    rod = RigidBody("rod", centre, B, m, (inertia(B, 0, m * l**2 / 3, m * l**2 / 3), centre))
    model = KaneModel(N, q, u, {a.diff(t): b for a, b in zip(q, u, strict=True)}, [rod], parameters=[m, l])
    rows = model.velocity_rows(end, [N.y, N.x])
    return lambda angle, mass, half: tuple(
        np.array(M.subs({q[2]: angle, m: mass, l: half}), dtype=float) for M in (model.equations()[0], rows))


ROD = falling_rod()


@pytest.mark.parametrize("angle", [0.0, 0.4, 1.1, np.pi / 2])
@pytest.mark.parametrize("e", [0.0, 0.6, 1.0])
def test_a_rod_on_a_smooth_floor(angle, e):
    """N = m (1 + e) v / (1 + 3 cos^2), and the energy of the blow (1 - e^2) N v / (2 (1 + e))."""
    m, l, v = 2.0, 0.7, 3.0
    X, G = ROD(angle, m, l)
    hit = collide(X, [0.0, -v, 0.0], G[:1], e)
    N = m * (1.0 + e) * v / (1.0 + 3.0 * np.cos(angle) ** 2)
    assert hit.impulse == pytest.approx([N], rel=1e-13) and not hit.slides
    np.testing.assert_allclose(hit.u, [0.0, -v + N / m, -3.0 * N * np.cos(angle) / (m * l)], rtol=0, atol=1e-13)
    assert hit.energy_lost == pytest.approx(0.5 * (1.0 - e) * N * v, abs=1e-12)
    # without friction tangents change nothing
    np.testing.assert_allclose(collide(X, [0.0, -v, 0.0], G, e).u, hit.u, rtol=0, atol=1e-13)


def test_a_rod_on_a_rough_floor():
    """At 45 degrees the end slips inwards unless mu reaches 3/5 (e = 0): T / N = 3 s c / (1 + 3 s^2) where it holds."""
    X, G = ROD(np.pi / 4, 1.0, 1.0)
    for mu, slides in ((0.59, True), (0.61, False)):
        hit = collide(X, [0.0, -1.0, 0.0], G, 0.0, mu)
        assert hit.slides == slides
        after = G @ hit.u
        assert after[0] == pytest.approx(0.0, abs=1e-13)
        if slides:
            assert abs(hit.impulse[1]) == pytest.approx(mu * hit.impulse[0], rel=1e-12) and hit.impulse[1] * after[1] < 0.0
        else:
            assert after[1] == pytest.approx(0.0, abs=1e-13)
            assert abs(hit.impulse[1] / hit.impulse[0]) == pytest.approx(0.6, rel=1e-12)
        assert hit.energy_lost > 0.0
        # momentum: the impulses are what changed it
        np.testing.assert_allclose(hit.u - [0.0, -1.0, 0.0], np.linalg.solve(X, G.T @ hit.impulse), atol=1e-13)


@pytest.mark.parametrize("mu, slides", [(0.05, True), (0.9, False)])
def test_a_ball_with_spin(mu, slides):
    """Solid ball on a floor: sliding takes mu (1 + e) v_n off the slip's own direction times 7/2; holding leaves 2/7 laws."""
    m, r, e = 0.5, 0.1, 0.8
    X = np.diag([m] * 3 + [0.4 * m * r * r] * 3)
    # velocity of the lowest point: v + omega x (-r z) = v + r (-omega_y, omega_x, 0); z is the normal
    G = np.array([[0, 0, 1, 0, 0, 0], [1, 0, 0, 0, -r, 0], [0, 1, 0, r, 0, 0]], dtype=float)
    u = np.array([1.5, -0.4, -2.0, 3.0, 7.0, -1.0])
    hit = collide(X, u, G, e, mu)
    slip = (G @ u)[1:]
    assert hit.slides == slides and hit.impulse[0] == pytest.approx(m * (1 + e) * 2.0)
    T = -mu * hit.impulse[0] * slip / np.linalg.norm(slip) if slides else -2.0 / 7.0 * m * slip
    np.testing.assert_allclose(hit.impulse[1:], T, rtol=0, atol=1e-12)
    np.testing.assert_allclose((G @ hit.u)[1:], slip + 3.5 * T / m, rtol=0, atol=1e-12)
    assert hit.energy_lost > 0.0 and hit.u[5] == u[5]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("e", [0.0, 0.7])
def test_trees_equal_pinocchio(seed, e):
    """Pinocchio's impulse dynamics of one row of a contact on random trees; mass matrix and rows from the library's own tree."""
    rng = np.random.default_rng(seed)
    bodies = random_tree(rng, 8, True)
    model, data = pinocchio_model(bodies)
    tree = Tree(bodies)
    q, v, _, _ = random_state(rng, model)
    row = tree.jacobian(q, bodies[-1].name, rng.normal(size=3))[:1]
    if row @ v > 0.0:
        v = -v
    hit = collide(tree.mass_matrix(q), v, row, e)
    wanted = pin.impulseDynamics(model, data, q, v, row, e, 0.0)
    np.testing.assert_allclose(hit.u, wanted, rtol=0, atol=1e-10 * np.abs(wanted).max())


def test_sliding_of_a_tree_in_the_plane_of_contact():
    """The direction in which a coupled system continues to slide is not the one in which it came: rule of Coulomb on the velocity left."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(60):
        A = rng.normal(size=(5, 5))
        X, u, G = A @ A.T + 0.5 * np.eye(5), rng.normal(size=5), rng.normal(size=(3, 5))
        if G[0] @ u > 0.0:
            u = -u
        try:
            hit = collide(X, u, G, 0.3, 0.2)
        except ValueError:
            continue
        after = G @ hit.u
        assert after[0] == pytest.approx(-0.3 * (G[0] @ u), abs=1e-10)
        if hit.slides:
            found += 1
            np.testing.assert_allclose(hit.impulse[1:], -0.2 * hit.impulse[0] * after[1:] / np.linalg.norm(after[1:]), atol=1e-8)
    assert found > 20


def test_the_rules_can_add_energy_and_say_so():
    """Restitution of velocities with friction: a long rod that comes in with a slip at a steep angle leaves with more than it had."""
    worst = min(collide(*(ROD(angle, 1.0, 1.0)[0], [slip, -1.0, 0.0], ROD(angle, 1.0, 1.0)[1]), 1.0, 0.5).energy_lost
                for angle in (0.9, 1.2) for slip in (-2.0, -0.3, 0.3))
    assert worst < -1e-3


def test_errors_are_named():
    X, u, G = np.eye(2), [0.0, -1.0], [[0.0, 1.0]]
    for arguments, message in (((X, u, G, 1.2), "restitution: 1.2"), ((X, u, G, 0.5, -1.0), "friction: -1.0"),
                               ((X, [0.0, 1.0], G, 0.5), "the bodies part at 1 m/s"), ((X, u, [[1.0]], 0.5), r"G: shape \(1, 1\)"),
                               ((np.eye(3), u, G, 0.5), "X, u: shapes"), ((X, u, [[np.nan, 1.0]], 0.5), "G: not finite")):
        with pytest.raises(ValueError, match=message):
            collide(*arguments)
