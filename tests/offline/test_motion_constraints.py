"""Non-holonomic systems by Kane's method: closed form of the sleigh, sympy's own method for the rolling disc."""

import numpy as np
import pytest
import sympy as sm
from sympy.physics.mechanics import KanesMethod, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

from rt_kernels.offline.kane import KaneModel

t = sm.Symbol("t")


def sleigh():
    """Chaplygin's sleigh: an edge at (x, y) along b1 that cannot move sideways, mass centre a ahead of it, inertia J about the centre."""
    q, u = (x, y, angle), (v, w) = dynamicsymbols("x y a"), dynamicsymbols("v w")
    side = dynamicsymbols("side")
    m, J, a = sm.symbols("m J a", positive=True)
    N = ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (angle, N.z))
    B.set_ang_vel(N, w * N.z)
    edge = Point("edge")
    edge.set_vel(N, v * B.x + side * B.y)
    centre = edge.locatenew("centre", a * B.x)
    centre.v2pt_theory(edge, N, B)
    body = RigidBody("sleigh", centre, B, m, (inertia(B, 0, 0, J), centre))
    along = edge.vel(N)
    rates = {x.diff(t): along.dot(N.x), y.diff(t): along.dot(N.y), angle.diff(t): w}
    return KaneModel(N, q, u, rates, [body], parameters=[m, J, a], dependent={side: 0})


def test_sleigh_by_its_closed_form(tmp_path):
    """v' = a w^2, w' = -m a v w / (J + m a^2): v = V tanh(k t), w = W sech(k t) with k = m a V / (J + m a^2), W^2 a = V k."""
    m, J, a, V = 2.0, 0.7, 0.4, 1.3
    k = m * a * V / (J + m * a**2)
    W = np.sqrt(V * k / a)
    model = sleigh()
    step = model.compile("sleigh", tmp_path)
    q, u = step.run([0.0, 0.0, 0.0], [0.0, W], 1e-3, 3000, [m, J, a])
    np.testing.assert_allclose(u, [V * np.tanh(3.0 * k), W / np.cosh(3.0 * k)], rtol=1e-11)
    # angle: W / k times the Gudermannian
    assert q[2] == pytest.approx(W / k * 2.0 * np.arctan(np.tanh(1.5 * k)), rel=1e-11)
    # without the constraint the same body flies straight on
    free = KaneModel(model.frame, model.coordinates, [*model.speeds, *model.dependent], sleigh_rates(model), model.bodies,
                     parameters=model.parameters)
    assert free.equations()[0].shape == (3, 3) and model.equations()[0].shape == (2, 2)
    _, u_dot = free.compile("free", tmp_path).accelerate([0.0, 0.0, 0.3], [0.0, W, 0.0], [m, J, a])
    assert u_dot[1] == pytest.approx(0.0, abs=1e-14) and u_dot[0] == pytest.approx(a * W**2)


def sleigh_rates(model):
    side = next(iter(model.dependent))
    angle, v, w = model.coordinates[2], *model.speeds
    x, y = model.coordinates[:2]
    return {x.diff(t): v * sm.cos(angle) - side * sm.sin(angle), y.diff(t): v * sm.sin(angle) + side * sm.cos(angle), angle.diff(t): w}


def disc():
    """Thin disc rolling on a plane: yaw q1, lean q2, spin q3, point of contact (q4, q5); frame L leans and yaws but does not spin."""
    q, u = dynamicsymbols("q1:6"), dynamicsymbols("u1:4")
    slip = along, across, lift = dynamicsymbols("along across lift")
    m, r, g = sm.symbols("m r g", positive=True)
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", (q[0], N.z))
    L = Y.orientnew("L", "Axis", (q[1], Y.x))
    D = L.orientnew("D", "Axis", (q[2], L.y))
    rates = {q[0].diff(t): u[2] / sm.cos(q[1]), q[1].diff(t): u[0], q[2].diff(t): u[1] - u[2] * sm.tan(q[1]),
             q[3].diff(t): r * (u[1] - u[2] * sm.tan(q[1])) * sm.cos(q[0]), q[4].diff(t): r * (u[1] - u[2] * sm.tan(q[1])) * sm.sin(q[0])}
    L.set_ang_vel(N, u[0] * L.x + u[2] * sm.tan(q[1]) * L.y + u[2] * L.z)
    D.set_ang_vel(N, u[0] * L.x + u[1] * L.y + u[2] * L.z)
    # velocity of the centre: of the point of contact (three constraints: it stands still) plus omega x r
    contact = Point("contact")
    contact.set_vel(N, along * L.x + across * Y.y + lift * N.z)
    centre = contact.locatenew("centre", r * L.z)
    centre.set_vel(N, contact.vel(N) + D.ang_vel_in(N).cross(r * L.z))
    body = RigidBody("disc", centre, D, m, (inertia(L, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4), centre))
    return q, u, slip, (m, r, g), N, L, centre, body, rates


def test_rolling_disc_equals_kanes_method_with_constraints():
    q, u, slip, p, N, L, centre, body, rates = disc()
    weight = [(centre, -p[0] * p[2] * N.z)]
    model = KaneModel(N, q, u, rates, [body], forces=weight, parameters=p, dependent=dict.fromkeys(slip, sm.S.Zero))
    assert model.equations()[0].shape == (3, 3)
    method = KanesMethod(N, q, list(u), [a - b for a, b in rates.items()], u_dependent=list(slip), velocity_constraints=list(slip))
    method.kanes_equations([body], weight)
    numbers = dict(zip(p, (1.3, 0.4, 9.81), strict=True))
    rng = np.random.default_rng(1)
    X, Y = model.equations()
    for _ in range(5):
        state = dict(zip([*q, *u], rng.normal(size=8) * 0.6, strict=True)) | dict.fromkeys(slip, 0.0) | numbers
        ours = np.linalg.solve(np.array(X.subs(state), dtype=float), np.array(Y.subs(state), dtype=float).ravel())
        M, f = (np.array(x.subs(state), dtype=float) for x in (method.mass_matrix, method.forcing))
        np.testing.assert_allclose(ours, np.linalg.solve(M, f.ravel())[:3], rtol=1e-11, atol=1e-11)


def test_rolling_disc_in_a_steady_circle(tmp_path):
    """Lean, spin and precession that balance by the moment about the point of contact; and the energy along a wobbling path."""
    q, u, slip, p, N, L, centre, body, rates = disc()
    model = KaneModel(N, q, u, rates, [body], forces=[(centre, -p[0] * p[2] * N.z)], parameters=p, dependent=dict.fromkeys(slip, sm.S.Zero))
    step = model.compile("disc", tmp_path)
    numbers = [1.3, 0.4, 9.81]
    m, r, g = numbers

    def energy(x, w):
        v2 = r * r * (w[1] ** 2 + w[0] ** 2)
        return 0.5 * m * v2 + 0.125 * m * r * r * (w[0] ** 2 + 2.0 * w[1] ** 2 + w[2] ** 2) + m * g * r * np.cos(x[1])

    q0, u0 = [0.3, 0.2, 0.0, 0.0, 0.0], [0.1, 6.0, 0.7]
    q1, u1 = step.run(q0, u0, 2.5e-4, 8000, numbers)
    assert energy(q1, u1) == pytest.approx(energy(q0, u0), rel=1e-10)
    # steady: lean e, yaw rate W, u2 from the moment about the line of contact
    e, W = 0.25, 1.5
    u3 = W * np.cos(e)
    u2 = (g * np.sin(e) - 0.25 * r * W**2 * np.sin(e) * np.cos(e)) / (-1.5 * r * W * np.cos(e))
    _, u_dot = step.accelerate([0.0, e, 0.0, 0.0, 0.0], [0.0, u2, u3], numbers)
    np.testing.assert_allclose(u_dot, 0.0, atol=1e-11)


def test_errors_are_named():
    u1, u2, s = dynamicsymbols("u1 u2 s")
    model = sleigh()
    for dependent in ({model.speeds[0]: model.speeds[1]}, {u1: u2, u2: model.speeds[0]}):
        with pytest.raises(ValueError, match="dependent: .* independent speeds alone"):
            KaneModel(model.frame, model.coordinates, model.speeds, model.rates, model.bodies, dependent=dependent)
