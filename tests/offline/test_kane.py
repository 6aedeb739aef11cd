"""Kane's equations: the worked example of the paper with its errata, gyrostat, arms; generated C against the tree kernels."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from scipy.integrate import solve_ivp
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from rt_kernels.model.craft import Link
from rt_kernels.model.craft_file import assumed_beam
from rt_kernels.model.modes import ModalBody
from rt_kernels.multibody import Body, Tree
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.integrators import Motion
from rt_kernels.offline.kane import KaneModel, Rotor

t = sm.Symbol("t")


# --- the rod, the particle and the spring ----------------------------------------------------------------------------------------


class Example:
    """Uniform rod B (length 2 L, mass m), particle P (mass m) sliding on it, spring k of rest length L0 from the rod's end C."""

    q = q1, q2, q3, q4 = dynamicsymbols("q1:5")
    u = u1, u2, u3, u4 = dynamicsymbols("u1:5")
    p = m, L, k, L0 = sm.symbols("m L k L0", positive=True)

    def __init__(self):
        q1, q2, q3, q4 = self.q
        u1, u2, u3, u4 = self.u
        m, L, k, L0 = self.p
        self.N = N = ReferenceFrame("N")
        self.B = B = N.orientnew("B", "Axis", (q3, N.z))
        B.set_ang_vel(N, u3 * N.z)
        centre, end, bead = Point("centre"), Point("C"), Point("P")
        centre.set_vel(N, u1 * B.x + u2 * B.y)
        end.set_vel(N, u1 * B.x + (u2 - L * u3) * B.y)
        bead.set_vel(N, (u1 + u4) * B.x + (u2 + (q4 - L) * u3) * B.y)
        self.rod = RigidBody("rod", centre, B, m, (inertia(B, 0, m * L**2 / 3, m * L**2 / 3), centre))
        self.bead = Particle("bead", bead, m)
        self.points = bead, end
        # E2.1: u1 = q1' cos q3 + q2' sin q3
        self.rates = {q1.diff(t): u1 * sm.cos(q3) - (u2 - L * u3) * sm.sin(q3), q2.diff(t): u1 * sm.sin(q3) + (u2 - L * u3) * sm.cos(q3),
                      q3.diff(t): u3, q4.diff(t): u4}
        spring = k * (q4 - L0) * B.x
        self.model = KaneModel(N, self.q, self.u, self.rates, [self.rod], [self.bead], [(bead, -spring), (end, spring)], parameters=self.p)

    def motion(self, right):
        """[printed or corrected form] right(q, u, u_dot) = 0 solved for u_dot: a function of (t, y)."""
        a = sm.symbols("a1:5")
        system = [sm.sympify(e).subs({u.diff(t): x for u, x in zip(self.u, a, strict=True)}) for e in right]
        X, Y = sm.linear_eq_to_matrix(system, a)
        values = {**dict(zip(self.p, (1, 1, 100, sm.Rational(6, 5)), strict=True))}
        names = [*sm.symbols("y1:9")]
        plain = dict(zip([*self.q, *self.u], names, strict=True))
        f = sm.lambdify([names], [X.subs(values).subs(plain), Y.subs(values).subs(plain)])
        g = sm.lambdify([names], [sm.sympify(self.rates[q.diff(t)]).subs(values).subs(plain) for q in self.q])

        def rate(_, y):
            matrix, vector = f(y)
            return np.concatenate([g(y), np.linalg.solve(np.array(matrix, dtype=float), np.array(vector, dtype=float).ravel())])

        return rate

    def corrected(self):
        """(33) with its signs put right."""
        q1, q2, q3, q4 = self.q
        u1, u2, u3, u4 = self.u
        m, L, k, L0 = self.p
        d1, d2, d3, d4 = (x.diff(t) for x in self.u)
        D = q4 - L
        return [2 * d1 + d4 - u3 * (2 * u2 + D * u3), 2 * d2 + D * d3 + 2 * u4 * u3 + 2 * u3 * u1,
                D * d2 + (q4**2 - 2 * q4 * L + sm.Rational(4, 3) * L**2) * d3 + D * (2 * u4 * u3 + u3 * u1),
                d1 + d4 - u3 * (u2 + D * u3) + k / m * (q4 - L0)]

    def invariants(self, y):
        q, u = np.array(y[:4]), np.array(y[4:])
        b1, b2 = np.array([np.cos(q[2]), np.sin(q[2])]), np.array([-np.sin(q[2]), np.cos(q[2])])
        v_rod, v_bead = u[0] * b1 + u[1] * b2, (u[0] + u[3]) * b1 + (u[1] + (q[3] - 1.0) * u[2]) * b2
        x_rod, x_bead = q[:2] + b1, q[:2] + q[3] * b1
        cross = lambda a, b: a[0] * b[1] - a[1] * b[0]  # noqa: E731
        energy = 0.5 * (v_rod @ v_rod + v_bead @ v_bead + u[2] ** 2 / 3.0) + 50.0 * (q[3] - 1.2) ** 2
        return np.array([energy, *(v_rod + v_bead), cross(x_rod, v_rod) + cross(x_bead, v_bead) + u[2] / 3.0])


START = np.array([0, 0, 0.3, 1.5, 0.4, -0.2, 0.8, 0])
END = np.array([2.576041743692, -0.117365127578, 2.277611933331, 0.902023883711,
                -0.066763632099, -0.314232237916, 1.084385949438, -0.183022206479])
INVARIANTS = np.array([4.806666666667, 0.7642691913, 0.2364161653, 0.366666666667])


@pytest.fixture(scope="module")
def example():
    return Example()


def zero(*expressions):
    return all(sm.simplify(sm.expand(e)) == 0 for e in expressions)


def test_partial_velocities_of_the_example(example):
    B, q4, L = example.B, example.q4, example.L
    rod, bead = example.model.partial_velocities()
    assert rod == [B.x, B.y, 0, 0] or all((a - b).to_matrix(B).is_zero_matrix for a, b in zip(rod[:2], (B.x, B.y), strict=True))
    for got, wanted in zip(bead, (B.x, B.y, (q4 - L) * B.y, B.x), strict=True):
        assert (got - wanted).to_matrix(B).expand().is_zero_matrix
    assert [v.dot(example.N.z) for v in example.model.partial_angular_velocities()[0]] == [0, 0, 1, 0]


def test_forces_of_the_example(example):
    """(29) and the active forces: spring on P and, along the same line, on the end of the rod."""
    m, k, L0 = example.m, example.k, example.L0
    active = example.model.generalised_active_forces()
    assert zero(*active[:3]) and zero(active[3] + k * (example.q4 - L0))
    for inertia_force, form, force in zip(example.model.generalised_inertia_forces(), example.corrected(), active, strict=True):
        assert zero(inertia_force + force + m * form)


def test_the_example_equals_an_independent_derivation(example):
    """Against `KanesMethod`: the same rows."""
    e = example
    method = KanesMethod(e.N, list(e.q), list(e.u), [x - r for x, r in e.rates.items()])
    spring = e.k * (e.q4 - e.L0) * e.B.x
    method.kanes_equations([e.rod, e.bead], [(e.points[0], -spring), (e.points[1], spring)])
    X, Y = e.model.equations()
    M, F = method.mass_matrix, method.forcing
    assert zero(*(X - M)) and zero(*(Y - F))


def test_generated_step_reaches_the_golden_state(example, tmp_path):
    step = example.model.compile("rod_particle", tmp_path)
    p = [1.0, 1.0, 100.0, 1.2]
    q, u = step.run(START[:4], START[4:], 1.25e-4, 16000, p)
    np.testing.assert_allclose(np.concatenate([q, u]), END, rtol=0, atol=1e-10)
    np.testing.assert_allclose(example.invariants(np.concatenate([q, u])), INVARIANTS, rtol=0, atol=1e-10)
    # and by an adaptive integrator of the corrected equations
    y = solve_ivp(example.motion(example.corrected()), (0.0, 2.0), START, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(y, END, rtol=0, atol=1e-10)
    # compiled once: the second time the library is there
    assert example.model.compile("rod_particle", tmp_path).library == step.library and len(list(tmp_path.glob("*.so"))) == 1


def drift(example, equations):
    y = solve_ivp(example.motion(equations), (0.0, 2.0), START, method="DOP853", rtol=1e-10, atol=1e-11).y[:, -1]
    return np.abs(example.invariants(y) - INVARIANTS)


def test_errata_of_the_example(example):
    """E2.5 (2 u2 in the last equation), E2.6 (sign in the second), E2.7 (u1 without a dot): each breaks an invariant."""
    u1, u2, u3 = example.u[:3]
    good = example.corrected()
    assert drift(example, good).max() < 1e-8
    last = [*good[:3], good[3] - u3 * u2]
    assert 0.1 < drift(example, last)[0] < 0.2 and drift(example, last)[1:3].max() < 1e-7
    second = [good[0], good[1] - 4 * u3 * u1, *good[2:]]
    assert drift(example, second)[1:3].max() > 1.0 and drift(example, second)[0] > 0.9
    undotted = [*good[:3], good[3] - u1.diff(t) + u1]
    assert drift(example, undotted)[0] > 0.1
    # and none of them is what the derivation gives
    forms = [-x / example.m for x in np.add(example.model.generalised_active_forces(), example.model.generalised_inertia_forces())]
    assert zero(*(a - b for a, b in zip(forms, good, strict=True)))
    for wrong in (last, second, undotted):
        assert not zero(*(a - b for a, b in zip(forms, wrong, strict=True)))


def test_erratum_of_the_speeds(example):
    """E2.1: u1 = q1' cos q3 + q2' sin q3; with q3' sin q3 it is not the velocity of the rod's centre."""
    q1, q2, q3, _ = example.q
    N, L = example.N, example.L
    position = (q1 + L * sm.cos(q3)) * N.x + (q2 + L * sm.sin(q3)) * N.y
    along = position.dt(N).dot(example.B.x)
    assert zero(along - (q1.diff(t) * sm.cos(q3) + q2.diff(t) * sm.sin(q3)))
    assert not zero(along - (q1.diff(t) * sm.cos(q3) + q3.diff(t) * sm.sin(q3)))
    assert zero(along.subs(example.rates) - example.u1)


def lagrange(example):
    """K and W of the example in q, q_dot."""
    q1, q2, q3, q4 = example.q
    m, L, k, L0 = example.p
    N = example.N
    rod = ((q1 + L * sm.cos(q3)) * N.x + (q2 + L * sm.sin(q3)) * N.y).dt(N)
    bead = ((q1 + q4 * sm.cos(q3)) * N.x + (q2 + q4 * sm.sin(q3)) * N.y).dt(N)
    K = m * (rod.dot(rod) + bead.dot(bead)) / 2 + m * L**2 / 3 * q3.diff(t) ** 2 / 2
    return sm.expand(sm.simplify(K)), k * (q4 - L0) ** 2 / 2


def test_erratum_of_the_lagrange_form(example):
    """E2.9: F_r* = dK/dq_r - d/dt dK/dq_r', and the equations are dK/dq_r - d/dt(...) = + dW/dq_r."""
    K, W = lagrange(example)
    method = LagrangesMethod(K - W, list(example.q))
    equations = method.form_lagranges_equations()
    for r, q in enumerate(example.q):
        inertia_force = K.diff(q) - K.diff(q.diff(t)).diff(t)
        printed = K.diff(q.diff(t)) - K.diff(q.diff(t)).diff(t)
        assert zero(inertia_force - W.diff(q) + equations[r])
        if r in (2, 3):
            assert not zero(printed - W.diff(q) + equations[r])
    assert not zero(K.diff(example.q4) - K.diff(example.q4.diff(t)).diff(t) + W.diff(example.q4) + equations[3])


def test_erratum_of_the_second_set(example):
    """E2.8: (34), lines 3 and 4: q2'' cos q3, and second derivatives in the fourth."""
    q1, q2, q3, q4 = example.q
    m, L, k, L0 = example.p
    K, W = lagrange(example)
    equations = LagrangesMethod(K - W, list(example.q)).form_lagranges_equations()
    a1, a2, a3, a4 = (q.diff(t, 2) for q in example.q)
    v1, v2, v3, v4 = (q.diff(t) for q in example.q)
    tail3 = (sm.Rational(4, 3) * L**2 + q4**2) * a3 + 2 * v3 * v4 * q4
    tail4 = -(v3**2) * q4 + k / m * (q4 - L0)
    # (q4 measured from C, rod centre at L: the first moments add to L + q4)
    assert zero(equations[2] - m * ((L + q4) * (a2 * sm.cos(q3) - a1 * sm.sin(q3)) + tail3))
    assert not zero(equations[2] - m * ((L + q4) * (a2 - a1 * sm.sin(q3)) + tail3))
    assert zero(equations[3] - m * (a4 + a1 * sm.cos(q3) + a2 * sm.sin(q3) + tail4))
    assert not zero(equations[3] - m * (a4 + v1 * sm.cos(q3) + v2 * sm.sin(q3) + tail4))


def test_erratum_potential_of_general_speeds():
    """E2.4: F_r = -dW/dq_r only for u_r = q_r'; in general F_r = -sum dW/dq_s dq_s'/du_r. A bead on a plane with u1 = q1' + q2'."""
    q1, q2, u1, u2 = dynamicsymbols("q1 q2 u1 u2")
    m, k = sm.symbols("m k")
    N, P = ReferenceFrame("N"), Point("P")
    rates = {q1.diff(t): u1 - u2, q2.diff(t): u2}
    P.set_vel(N, rates[q1.diff(t)] * N.x + rates[q2.diff(t)] * N.y)
    W = k * (q1**2 + 3 * q2**2) / 2
    force = -W.diff(q1) * N.x - W.diff(q2) * N.y
    model = KaneModel(N, [q1, q2], [u1, u2], rates, particles=[Particle("P", P, m)], forces=[(P, force)], parameters=[m, k])
    F = model.generalised_active_forces()
    general = [-sum(W.diff(q) * rates[q.diff(t)].diff(u) for q in (q1, q2)) for u in (u1, u2)]
    assert zero(*(a - b for a, b in zip(F, general, strict=True)))
    assert not zero(F[1] + W.diff(q2))


# --- gyrostat --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prescribed", [True, False])
def test_gyrostat(prescribed):
    """Carrier with a rotor along its third axis, two ways: rotor terms J [Omega c x omega - Omega' c] beside one body, and two bodies."""
    u1, u2, u3, u4 = dynamicsymbols("u1:5")
    q = q1, q2, q3, q4 = dynamicsymbols("q1:5")
    A, B, C, Jt, J, mC, mR, Omega0, rate, T = sm.symbols("A B C Jt J mC mR Omega0 rate T")
    spin = Omega0 + rate * t**2 if prescribed else u4
    N = ReferenceFrame("N")
    F = N.orientnew("F", "Body", (q1, q2, q3), "XYZ")
    F.set_ang_vel(N, u1 * F.x + u2 * F.y + u3 * F.z)
    # body-three angles: q' from the speeds
    s2, c2, s3, c3 = sm.sin(q2), sm.cos(q2), sm.sin(q3), sm.cos(q3)
    rates = {q1.diff(t): (u1 * c3 - u2 * s3) / c2, q2.diff(t): u1 * s3 + u2 * c3, q3.diff(t): u3 - s2 * (u1 * c3 - u2 * s3) / c2}
    O = Point("O")
    O.set_vel(N, 0 * N.x)
    speeds = [u1, u2, u3] if prescribed else [u1, u2, u3, u4]
    coordinates = [q1, q2, q3] if prescribed else list(q)
    if not prescribed:
        rates[q4.diff(t)] = u4
    parts = (A, B, C, Jt, J, mC, mR, Omega0, rate, T)
    whole = RigidBody("whole", O, F, mC + mR, (inertia(F, A + Jt, B + Jt, C + J), O))
    model = KaneModel(N, coordinates, speeds, rates, [whole], rotors=[Rotor(0, F.z, J, spin)], parameters=parts)
    # two bodies: carrier, and rotor turning at omega + spin c3 (central inertia of a body of revolution is the same on carrier axes)
    R = ReferenceFrame("R")
    R.orient_axis(F, F.z, q4 if not prescribed else Omega0 * t + rate * t**3 / 3)
    R.set_ang_vel(F, spin * F.z)
    pair = [RigidBody("carrier", O, F, mC, (inertia(F, A, B, C), O)), RigidBody("rotor", O, R, mR, (inertia(R, Jt, Jt, J), O))]
    two = KaneModel(N, coordinates, speeds, rates, pair, parameters=parts)
    for one, other in zip(model.generalised_inertia_forces(), two.generalised_inertia_forces(), strict=True):
        assert zero(one - other)
    if prescribed:
        plain = KaneModel(N, coordinates, speeds, rates, [whole], parameters=parts).generalised_inertia_forces()
        extra = [sm.simplify(a - b) for a, b in zip(model.generalised_inertia_forces(), plain, strict=True)]
        assert zero(extra[0] + J * spin * u2, extra[1] - J * spin * u1, extra[2] + J * spin.diff(t))
    # and against KanesMethod on the two bodies
    equations = [x - y for x, y in rates.items()]
    method = KanesMethod(N, coordinates, speeds, equations)
    _, star = method.kanes_equations(pair, [(O, 0 * N.x)])
    numbers = {s: 0.3 + 0.17 * i for i, s in enumerate((*parts, t))}
    state = {x.diff(t): 0.2 - 0.07 * i for i, x in enumerate(speeds)} | {x: 0.4 + 0.11 * i for i, x in enumerate((*coordinates, *speeds))}
    for one, other in zip(model.generalised_inertia_forces(), star, strict=True):
        assert float((one - other).doit().subs(rates).subs(state).subs(numbers)) == pytest.approx(0.0, abs=1e-12)


# --- arms: generated C against the kernels ---------------------------------------------------------------------------------------


def arm(axes, offsets, masses, centres, inertias):
    """Serial arm on the ground, gravity along -z: `KaneModel` with joint torques as inputs."""
    n = len(axes)
    q, u = dynamicsymbols(f"q1:{n + 1}"), dynamicsymbols(f"u1:{n + 1}")
    torques = sm.symbols(f"T1:{n + 1}")
    g = sm.Symbol("g")
    N = ReferenceFrame("N")
    frame, origin = N, Point("O")
    origin.set_vel(N, 0 * N.x)
    bodies, forces, moments = [], [], []
    for k in range(n):
        child = frame.orientnew(f"B{k}", "Axis", (q[k], sum(c * e for c, e in zip(axes[k], frame, strict=True))))
        axis = sum(c * e for c, e in zip(axes[k], child, strict=True))
        child.set_ang_vel(frame, u[k] * axis)
        joint = origin.locatenew(f"J{k}", sum(c * e for c, e in zip(offsets[k], frame, strict=True)))
        joint.v2pt_theory(origin, N, frame)
        centre = joint.locatenew(f"C{k}", sum(c * e for c, e in zip(centres[k], child, strict=True)))
        centre.v2pt_theory(joint, N, child)
        I = inertias[k]
        central = inertia(child, *np.diag(I), I[0, 1], I[1, 2], I[0, 2])
        bodies.append(RigidBody(f"b{k}", centre, child, masses[k], (central, centre)))
        forces.append((centre, -masses[k] * g * N.z))
        moments.append((child, torques[k] * axis))
        if k:
            moments.append((frame, -torques[k] * axis))
        frame, origin = child, joint
    rates = {a.diff(t): b for a, b in zip(q, u, strict=True)}
    return KaneModel(N, q, u, rates, bodies, (), forces, moments, parameters=[g], inputs=torques)


def nice(rng, *shape):
    """Random numbers that sympy and the kernels hold alike: exact in double, short as fractions."""
    return np.round(rng.normal(size=shape) * 64.0) / 64.0


@pytest.mark.parametrize("axes", [[(0, 0, 1), (0, 1, 0)], [(0, 0, 1), (0, 1, 0), (0, 1, 0)], [(0, 0, 1), (1, 0, 0), (0, 1, 0)]])
def test_generated_step_of_an_arm_equals_the_kernels(axes, tmp_path):
    rng = np.random.default_rng(len(axes))
    n = len(axes)
    offsets, centres = nice(rng, n, 3), nice(rng, n, 3)
    masses = [2.0, 1.5, 0.75][:n]
    inertias = []
    for _ in range(n):
        A = nice(rng, 3, 3)
        inertias.append(np.trace(A @ A.T) * np.eye(3) - A @ A.T)
    exact = lambda x: sm.Matrix(x).applyfunc(sm.Rational) if np.ndim(x) == 2 else [sm.Rational(v) for v in x]  # noqa: E731
    model = arm(axes, [exact(x) for x in offsets], exact(masses), [exact(x) for x in centres],
                [np.array(exact(x)).reshape(3, 3) for x in inertias])
    step = model.compile("arm", tmp_path)
    gravity = (0.0, 0.0, -9.81)
    solids = [ModalBody.rigid(*x) for x in zip(masses, centres, inertias, strict=True)]
    links = [Link(f"b{k}", solids[k], f"b{k - 1}" if k else None, None, "revolute", axes[k], offsets[k]) for k in range(n)]
    flexible = FlexibleTree(links, gravity)
    rigid = Tree([Body(f"b{k}", f"b{k - 1}" if k else None, "revolute", p_PJ_P=offsets[k], axis=axes[k], mass=masses[k], com=centres[k],
                       inertia=inertias[k]) for k in range(n)], gravity)
    for _ in range(20):
        q, u, torque = rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
        q_dot, u_dot = step.accelerate(q, u, [9.81], torque)
        np.testing.assert_array_equal(q_dot, u)
        scale = max(1.0, np.abs(u_dot).max())
        np.testing.assert_allclose(u_dot, flexible.forward_dynamics(q, u, torque), rtol=0, atol=1e-12 * scale)
        np.testing.assert_allclose(u_dot, rigid.forward_dynamics(q, u, torque), rtol=0, atol=1e-12 * scale)
    # whole steps
    motion = Motion(flexible, "rk4", 1e-3)
    motion.apply(tau=torque)
    _, qk, uk = motion.run(q, u, 100)
    qc, uc = step.run(q, u, 1e-3, 100, [9.81], torque)
    np.testing.assert_allclose(np.concatenate([qc, uc]), np.concatenate([qk, uk]), rtol=0, atol=1e-12 * np.abs(uk).max())


def test_generated_step_of_a_flexible_arm_equals_the_kernel(tmp_path):
    """Two planar links, the first bends with one shape xi^2: mass points, spring force -K eta, tip rotation in the second joint."""
    q = q1, q2, eta = dynamicsymbols("q1 q2 eta")
    u = u1, u2, w = dynamicsymbols("u1 u2 w")
    T1, T2 = sm.symbols("T1 T2")
    L, m, EI = sm.Rational(3, 2), sm.Integer(2), sm.Integer(7)
    N = ReferenceFrame("N")
    A, B = ReferenceFrame("A"), ReferenceFrame("B")
    A.orient_axis(N, N.z, q1)
    A.set_ang_vel(N, u1 * N.z)
    turn = 2 * eta / L
    B.orient_axis(A, A.z, q2 + turn)
    B.set_ang_vel(N, (u1 + u2 + 2 * w / L) * N.z)
    O = Point("O")
    O.set_vel(N, 0 * N.x)
    particles, forces = [], []
    for k, share in enumerate((1, 2, 2, 2, 1)):
        xi = sm.Rational(k, 4)
        point = O.locatenew(f"P{k}", xi * L * A.x + xi**2 * eta * A.y)
        point.set_vel(N, xi**2 * w * A.y + u1 * A.z.cross(point.pos_from(O)))
        particles.append(Particle(f"p{k}", point, m * share / 8))
        tip = point
    forces.append((tip, 0 * N.x))
    centre = tip.locatenew("C", sm.Rational(1, 2) * B.x + sm.Rational(1, 8) * B.y)
    centre.set_vel(N, tip.vel(N) + B.ang_vel_in(N).cross(centre.pos_from(tip)))
    body = RigidBody("payload", centre, B, sm.Rational(5, 4), (inertia(B, 1, 1, sm.Rational(1, 3)), centre))
    # the elastic force as an active force on the shape: F_3 = -K eta is the power of a pair of loads; as a torque on the tip's rotation
    K = 4 * EI / L**3
    E = ReferenceFrame("E")                       # frame of the tip, turns by 2 eta / L against A
    E.orient_axis(A, A.z, turn)
    E.set_ang_vel(N, (u1 + 2 * w / L) * N.z)
    spring = K * eta * L / 2 * N.z
    # joint 2 turns against the tip frame: torque T2 on B, -T2 on E
    model = KaneModel(N, q, u, {q1.diff(t): u1, q2.diff(t): u2, eta.diff(t): w}, [body], particles, forces,
                      [(A, T1 * N.z + spring), (E, -spring - T2 * N.z), (B, T2 * N.z)], inputs=[T1, T2])
    step = model.compile("flexible_arm", tmp_path)
    payload = ModalBody.rigid(1.25, (0.5, 0.125, 0.0), (1.0, 1.0, 1.0 / 3.0))
    beam = assumed_beam(1.5, 2.0, 7.0, 5, [2], [])
    tree = FlexibleTree([Link("a", beam, joint="revolute"), Link("b", payload, "a", "tip", "revolute")])
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, v, load = 0.6 * rng.normal(size=3), rng.normal(size=3), rng.normal(size=2)
        _, u_dot = step.accelerate(x, v, None, load)
        expected = tree.forward_dynamics(x, v, np.append(load, 0.0))
        np.testing.assert_allclose(u_dot, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))
    motion = Motion(tree, "rk4", 1e-3)
    motion.apply(tau=np.append(load, 0.0))
    _, xk, vk = motion.run(x, v, 100)
    xc, vc = step.run(x, v, 1e-3, 100, None, load)
    np.testing.assert_allclose(np.concatenate([xc, vc]), np.concatenate([xk, vk]), rtol=0, atol=1e-12 * np.abs(vk).max())


# --- the tool --------------------------------------------------------------------------------------------------------------------

PENDULUM = """
import sympy as sm
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, dynamicsymbols
from rt_kernels.offline.kane import KaneModel

def model():
    q, u = dynamicsymbols("q u")
    m, l, g = sm.symbols("m l g")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    O = Point("O"); O.set_vel(N, 0 * N.x)
    P = O.locatenew("P", l * A.x); P.v2pt_theory(O, N, A)
    return KaneModel(N, [q], [u], {q.diff(): u}, particles=[Particle("P", P, m)], forces=[(P, m * g * N.x)], parameters=[m, l, g])
"""


def test_the_tool_writes_a_c_file(tmp_path):
    tool = Path(__file__).parents[2] / "tools" / "kane_step.py"
    (tmp_path / "pendulum.py").write_text(PENDULUM)
    command = [sys.executable, str(tool), str(tmp_path / "pendulum.py"), "pendulum"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "void pendulum_step(double t, double h, double *q, double *u, const double *p, const double *f)" in done.stdout
    assert "sin(" not in done.stdout and "pow(" not in done.stdout
    namespace = {}
    exec(PENDULUM, namespace)  # noqa: S102
    step = namespace["model"]().compile("pendulum", tmp_path)
    assert step.source == done.stdout
    _, a = step.accelerate([0.7], [0.3], [2.0, 1.5, 9.81])
    assert a[0] == pytest.approx(-9.81 / 1.5 * np.sin(0.7), rel=1e-15)


def test_what_cannot_be_generated_is_named(example, tmp_path):
    q, u = dynamicsymbols("q u")
    m, c = sm.symbols("m c")
    N, P = ReferenceFrame("N"), Point("P")
    P.set_vel(N, u * N.x)
    bead = Particle("P", P, m)

    def make(force, parameters):
        return KaneModel(N, [q], [u], {q.diff(t): u}, particles=[bead], forces=[(P, force * N.x)], parameters=parameters)

    with pytest.raises(ValueError, match="symbols without meaning: c"):
        make(-c * q, [m]).emit_c("x")
    with pytest.raises(ValueError, match="function exp"):
        make(-sm.exp(q), [m]).emit_c("x")
    with pytest.raises(ValueError, match="not an identifier"):
        make(-q, [m]).emit_c("a b")
    with pytest.raises(ValueError, match="rates: "):
        KaneModel(N, [q], [u], {u: q})
    with pytest.raises(ValueError, match="two meanings"):
        make(-q, [m, q])
    with pytest.raises(RuntimeError, match="no C compiler found"):
        make(-q, [m]).compile("x", tmp_path, compiler="no-such-compiler")
    with pytest.raises(ValueError, match=r"q: shape \(2,\)"):
        make(-q, [m]).compile("x", tmp_path).accelerate([0.0, 0.0], [0.0], [1.0])
