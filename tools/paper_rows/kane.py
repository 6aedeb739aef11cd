"""Kane 1981: speeds and partial velocities of the rocket, the rod with its particle, the gyrostat, motion constraints, collisions."""

from functools import cache, cached_property

import numpy as np

from rt_kernels.offline.collision import collide
from tools.paper_rows import errata, flown
from tools.paper_rows.page import BLUE, GREEN, INK, ORANGE, Block, Context, compared, panels, prose, table, thin


@cache
def symbols():
    """sympy and its mechanics, imported once a block needs them (group `models`)."""
    import sympy as sm
    from sympy.physics import mechanics

    return sm, mechanics


def _same(sm, *expressions) -> bool:
    """Are all of them zero? Each is first evaluated at one point of numbers; only what is zero there is proven by simplification."""
    return all(_is_zero(sm, sm.expand(e)) for e in expressions)


def _is_zero(sm, e) -> bool:
    if e == 0:
        return True
    rates = {d: sm.Symbol(f"rate{k}") for k, d in enumerate(sorted(e.atoms(sm.Derivative), key=sm.default_sort_key))}
    plain = e.xreplace(rates)
    names = sorted(plain.atoms(sm.core.function.AppliedUndef) | plain.free_symbols, key=sm.default_sort_key)
    value = plain.xreplace({name: sm.Float(0.3 + 0.137 * k) for k, name in enumerate(names)})
    return abs(float(value)) < 1e-9 and sm.simplify(e) == 0


# --- table 1: the rocket in its plane


def rocket(speeds_on_body: bool):
    """Mass centre at (q1, q2), attitude q3; u are the rates (I) or the velocity on body axes (II)."""
    from rt_kernels.offline.kane import KaneModel

    sm, me = symbols()
    t = sm.Symbol("t")
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    m, J = sm.symbols("m J")
    A = me.ReferenceFrame("A")
    C = A.orientnew("C", "Axis", (q[2], A.z))
    C.set_ang_vel(A, u[2] * A.z)
    centre = me.Point("O")
    if speeds_on_body:
        centre.set_vel(A, u[0] * C.x + u[1] * C.y)
        rates = {q[0].diff(t): u[0] * sm.cos(q[2]) - u[1] * sm.sin(q[2]), q[1].diff(t): u[0] * sm.sin(q[2]) + u[1] * sm.cos(q[2])}
    else:
        centre.set_vel(A, u[0] * A.x + u[1] * A.y)
        rates = {q[0].diff(t): u[0], q[1].diff(t): u[1]}
    rates[q[2].diff(t)] = u[2]
    body = me.RigidBody("rocket", centre, C, m, (me.inertia(C, 0, 0, J), centre))
    return KaneModel(A, q, u, rates, [body], parameters=[m, J]), A, C, q


def table_1(context: Context) -> list[str]:
    sm, _ = symbols()
    t = sm.Symbol("t")
    rows = []
    for name, on_body in (("I", False), ("II", True)):
        model, A, C, q = rocket(on_body)
        F = C if on_body else A
        partial = model.partial_velocities()[0]
        wanted = (F.x, F.y, 0 * F.x)
        right = all((a - b).to_matrix(A).applyfunc(sm.simplify).is_zero_matrix for a, b in zip(partial, wanted, strict=True))
        letter = "c" if on_body else "a"
        rows.append(context.holds(f"{name}: partial velocities of O", f"{letter}1, {letter}2, 0", right, f"{letter}1, {letter}2, 0"))
        position = q[0] * A.x + q[1] * A.y
        speeds = [position.dt(A).dot(F.x), position.dt(A).dot(F.y)]
        if not on_body:
            rows.append(context.holds("I: u1, u2", "q1', q2'", _same(sm, speeds[0] - q[0].diff(t), speeds[1] - q[1].diff(t)), "q1', q2'"))
            continue
        c, s = sm.cos(q[2]), sm.sin(q[2])
        d1, d2, d3 = (x.diff(t) for x in q)
        derived = _same(sm, speeds[0] - (d1 * c + d2 * s), speeds[1] - (-d1 * s + d2 * c))
        printed = _same(sm, speeds[0] - (d1 * c + d3 * s), speeds[1] - (-d1 * s + d3 * c))
        rows.append(context.holds("II: u1", "q1' cos q3 + q3' sin q3", printed, "q1' cos q3 + q2' sin q3", "" if not derived else "E2.1"))
        rows.append(context.holds("II: u2", "-q1' sin q3 + q3' cos q3", printed, "-q1' sin q3 + q2' cos q3", "" if not derived else "E2.1"))
    return [*prose("""
            **Table 1, figure 1**, plane rocket: two choices of speeds u, partial velocities of the mass centre O."""), *compared(rows)]


# --- the rod and the particle: table 2, equations (24) to (34)


class Rod:
    """Uniform rod B (length 2 L, mass m), particle P (mass m) that slides on it, spring k of rest length L0 from the rod's end C."""

    def __init__(self) -> None:
        from rt_kernels.offline.kane import KaneModel

        sm, me = symbols()
        self.sm, self.t = sm, sm.Symbol("t")
        t = self.t
        self.q = q1, q2, q3, q4 = me.dynamicsymbols("q1:5")
        self.u = u1, u2, u3, u4 = me.dynamicsymbols("u1:5")
        self.p = m, L, k, L0 = sm.symbols("m L k L0", positive=True)
        self.A = A = me.ReferenceFrame("A")
        self.B = B = A.orientnew("B", "Axis", (q3, A.z))
        B.set_ang_vel(A, u3 * A.z)
        self.centre, end, self.bead = me.Point("B*"), me.Point("C"), me.Point("P")
        self.centre.set_vel(A, u1 * B.x + u2 * B.y)
        end.set_vel(A, u1 * B.x + (u2 - L * u3) * B.y)
        self.bead.set_vel(A, (u1 + u4) * B.x + (u2 + (q4 - L) * u3) * B.y)
        rod = me.RigidBody("rod", self.centre, B, m, (me.inertia(B, 0, m * L**2 / 3, m * L**2 / 3), self.centre))
        rates = {q1.diff(t): u1 * sm.cos(q3) - (u2 - L * u3) * sm.sin(q3), q2.diff(t): u1 * sm.sin(q3) + (u2 - L * u3) * sm.cos(q3),
                 q3.diff(t): u3, q4.diff(t): u4}
        spring = k * (q4 - L0) * B.x
        self.model = KaneModel(A, self.q, self.u, rates, [rod], [me.Particle("P", self.bead, m)], [(self.bead, -spring), (end, spring)],
                               parameters=self.p)

    def acceleration(self, point):
        """Components on b1, b2."""
        a = point.vel(self.A).dt(self.A).subs(self.model.rates)
        return [self.sm.expand(a.dot(self.B.x)), self.sm.expand(a.dot(self.B.y))]

    def equations(self, printed: bool):
        """The four left sides of (33) over m: as printed, or corrected."""
        sm = self.sm
        q4, (u1, u2, u3, u4), (m, L, k, L0) = self.q[3], self.u, self.p
        d1, d2, d3, d4 = (x.diff(self.t) for x in self.u)
        D, sign, twice, first = q4 - L, (-1 if printed else 1), (2 if printed else 1), (u1 if printed else d1)
        return [2 * d1 + d4 - u3 * (2 * u2 + D * u3), 2 * d2 + D * d3 + 2 * u4 * u3 + sign * 2 * u3 * u1,
                D * d2 + (q4**2 - 2 * q4 * L + sm.Rational(4, 3) * L**2) * d3 + D * (2 * u4 * u3 + u3 * u1),
                first + d4 - u3 * (twice * u2 + D * u3) + k / m * (q4 - L0)]

    def derived(self):
        """The same from the definition, F_r + F_r* = 0."""
        return [-x / self.p[0] for x in np.add(self.model.generalised_active_forces(), self.model.generalised_inertia_forces())]

    @cached_property
    def lagrange(self):
        """(34): d/dt dK/dq' - dK/dq + dW/dq of each coordinate, over m."""
        sm, t = self.sm, self.t
        q1, q2, q3, q4 = self.q
        m, L, k, L0 = self.p
        rod = ((q1 + L * sm.cos(q3)) * self.A.x + (q2 + L * sm.sin(q3)) * self.A.y).dt(self.A)
        bead = ((q1 + q4 * sm.cos(q3)) * self.A.x + (q2 + q4 * sm.sin(q3)) * self.A.y).dt(self.A)
        K = m * (rod.dot(rod) + bead.dot(bead)) / 2 + m * L**2 / 3 * q3.diff(t) ** 2 / 2
        W = k * (q4 - L0) ** 2 / 2
        return [sm.expand(sm.simplify((K.diff(q.diff(t)).diff(t) - K.diff(q) + W.diff(q)) / m)) for q in self.q]


@cache
def rod() -> Rod:
    return Rod()


def table_2(context: Context) -> list[str]:
    r = rod()
    sm, B = r.sm, r.B
    q4, L = r.q[3], r.p[1]
    centre, bead = r.model.partial_velocities()
    turn = r.model.partial_angular_velocities()[0]
    printed = [("0", "b1", "b1", 0 * B.x, B.x, B.x), ("0", "b2", "b2", 0 * B.x, B.y, B.y),
               ("b3", "0", "(q4 - L) b2", B.z, 0 * B.x, (q4 - L) * B.y), ("0", "0", "b1", 0 * B.x, 0 * B.x, B.x)]
    rows = []
    for k, (w, v, p, *vectors) in enumerate(printed):
        same = all(sm.expand((a - b).to_matrix(B)).is_zero_matrix for a, b in zip((turn[k], centre[k], bead[k]), vectors, strict=True))
        rows.append(context.holds(f"r = {k + 1}", f"{w}, {v}, {p}", same, f"{w}, {v}, {p}"))
    return [*prose("""
            **Table 2, figure 3**, rod B and particle P: partial angular velocity of B, partial velocities of its centre and of P."""),
            *compared(rows)]


def equations(context: Context) -> list[str]:
    r = rod()
    sm, t = r.sm, r.t
    u1, u2, u3, u4 = r.u
    d1, d2, d3, d4 = (x.diff(t) for x in r.u)
    D = r.q[3] - r.p[1]
    centre, bead = r.acceleration(r.centre), r.acceleration(r.bead)
    rows = [
        context.holds("(24)", "as printed",
                      _same(sm, centre[0] - d1 + u2 * u3, centre[1] - d2 - u3 * u1), "same"),
        context.holds("(25) along b1", "... - u3 (2 u2 + D u3)", _same(sm, bead[0] - (d1 + d4 - u3 * (2 * u2 + D * u3))),
                      "... - u3 (u2 + D u3)", "E2.5" if _same(sm, bead[0] - (d1 + d4 - u3 * (u2 + D * u3))) else ""),
        context.holds("(25) along b2", "as printed", _same(sm, bead[1] - (d2 + 2 * u4 * u3 + D * d3 + u3 * u1)), "same"),
    ]
    because = ["", "E2.6", "", "E2.5, E2.7"]
    for k, (derived, printed, right) in enumerate(zip(r.derived(), r.equations(True), r.equations(False), strict=True)):
        same = _same(sm, derived - printed)
        rows.append(context.holds(f"(33) line {k + 1}", "as printed", same, "same" if same else "corrected line",
                                  because[k] if _same(sm, derived - right) else ""))
    rows.append(context.holds("(32)", "0, 0, 0, -k (q4 - L0)",
                              _same(sm, *(a - b for a, b in zip(r.model.generalised_active_forces(), (0, 0, 0, -r.p[2] * (r.q[3] - r.p[3])),
                                                                strict=True))), "same"))
    q1, q2, q3, q4 = r.q
    (m, L, k_, L0), (s3, c3) = r.p, (sm.sin(q3), sm.cos(q3))
    v1, v2, v3, v4 = (x.diff(t) for x in r.q)
    a1, a2, a3, a4 = (x.diff(t, 2) for x in r.q)
    printed_34 = [2 * a1 + a4 * c3 - 2 * v4 * v3 * s3 - (L + q4) * (a3 * s3 + v3**2 * c3),
                  2 * a2 + a4 * s3 + 2 * v4 * v3 * c3 + (L + q4) * (a3 * c3 - v3**2 * s3),
                  (L + q4) * (a2 - a1 * s3) + (sm.Rational(4, 3) * L**2 + q4**2) * a3 + 2 * v3 * v4 * q4,
                  a4 + v1 * c3 + v2 * s3 - v3**2 * q4 + k_ / m * (q4 - L0)]
    right_34 = [*printed_34[:2], printed_34[2] + (L + q4) * a2 * (c3 - 1), printed_34[3] + (a1 - v1) * c3 + (a2 - v2) * s3]
    reasons = ["", "", "E2.8", "E2.8"]
    for k, (derived, printed, right) in enumerate(zip(r.lagrange, printed_34, right_34, strict=True)):
        same = _same(sm, derived - printed)
        rows.append(context.holds(f"(34) line {k + 1}", "as printed", same, "same" if same else "corrected line",
                                  reasons[k] if _same(sm, derived - right) else ""))
    # "no trigonometric functions, two derivatives of speeds in each equation; Lagrange: three second derivatives"
    ours, others = r.derived(), r.lagrange
    dots = [sum(sm.expand(e).coeff(x.diff(t)) != 0 for x in r.u) for e in ours]
    seconds = [sum(sm.expand(e).coeff(x.diff(t, 2)) != 0 for x in r.q) for e in others]
    trigonometric = [any(e.has(f) for f in (sm.sin, sm.cos)) for e in ours], [any(e.has(f) for f in (sm.sin, sm.cos)) for e in others]
    rows.append(context.holds("derivatives in each line of (33)", "2", set(dots) == {2}, ", ".join(map(str, dots))))
    rows.append(context.holds("in each line of (34)", "3", set(seconds) == {3}, ", ".join(map(str, seconds))))
    rows.append(context.holds("trigonometry", "none in (33)", not any(trigonometric[0]) and all(trigonometric[1]),
                              "none in (33), in all of (34)"))
    return [*prose("""
            **Equations (24) to (34)** of rod and particle, D = q4 - L, derived by `KaneModel`, (34) by Lagrange's equations, compared
            symbol by symbol."""),
            *compared(rows)]


START = [0.0, 0.0, 0.3, 1.5, 0.4, -0.2, 0.8, 0.0]
NUMBERS = [1.0, 1.0, 100.0, 1.2]


def _field(r: Rod, left):
    """Right side y' = f(t, y) of left = 0 for m = L = 1, k = 100, L0 = 1.2."""
    sm = r.sm
    a = sm.symbols("a1:5")
    system = [sm.sympify(e).subs({u.diff(r.t): x for u, x in zip(r.u, a, strict=True)}) for e in left]
    X, Y = sm.linear_eq_to_matrix(system, a)
    plain = dict(zip([*r.q, *r.u], sm.symbols("y1:9"), strict=True)) | dict(zip(r.p, NUMBERS, strict=True))
    f = sm.lambdify([list(plain.values())[:8]], [X.subs(plain), Y.subs(plain)])
    g = sm.lambdify([list(plain.values())[:8]], [r.model.rates[q.diff(r.t)].subs(plain) for q in r.q])

    def rate(_, y):
        matrix, vector = f(y)
        return np.concatenate([g(y), np.linalg.solve(np.array(matrix, dtype=float), np.array(vector, dtype=float).ravel())])

    return rate


def _invariants(y):
    """Energy, momentum (2), angular momentum about the origin."""
    q, u = y[:4], y[4:]
    b1, b2 = np.array([np.cos(q[2]), np.sin(q[2])]), np.array([-np.sin(q[2]), np.cos(q[2])])
    v_rod, v_bead = u[0] * b1 + u[1] * b2, (u[0] + u[3]) * b1 + (u[1] + (q[3] - 1.0) * u[2]) * b2
    x_rod, x_bead = q[:2] + b1, q[:2] + q[3] * b1
    energy = 0.5 * (v_rod @ v_rod + v_bead @ v_bead + u[2] ** 2 / 3.0) + 50.0 * (q[3] - 1.2) ** 2
    return np.array([energy, *(v_rod + v_bead), x_rod[0] * v_rod[1] - x_rod[1] * v_rod[0] + x_bead[0] * v_bead[1] - x_bead[1] * v_bead[0]
                     + u[2] / 3.0])


def motion(context: Context) -> list[str]:
    from scipy.integrate import solve_ivp

    r = rod()
    compiled = r.model.compile("rod_and_particle")
    q, u = np.array(START[:4]), np.array(START[4:])
    path, h = [np.concatenate([q, u])], 1.25e-4
    for k in range(400):
        q, u = compiled.run(q, u, h, 40, NUMBERS, t=k * 40 * h)
        path.append(np.concatenate([q, u]))
    path = np.array(path)
    ends = {}
    right = r.equations(False)
    printed = r.equations(True)
    for name, left in (("(33) corrected", right), ("E2.6 put back", [right[0], printed[1], *right[2:]]),
                       ("E2.5 in line 4", [*right[:3], right[3] - r.u[2] * r.u[1]]),
                       ("E2.7 in line 4", [*right[:3], right[3] - r.u[0].diff(r.t) + r.u[0]])):
        ends[name] = solve_ivp(_field(r, left), (0.0, 2.0), START, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    start = _invariants(np.array(START))
    rows = []
    for name, y in (("C of `KaneModel`, RK4", path[-1]), *ends.items()):
        change = np.abs(_invariants(y) - start)
        shown = ["0" if x < 1e-8 else f"{x:.2g}" for x in (change[0], change[1:3].max(), change[3])]
        rows.append([name, f"{y[2]:.6f}", f"{y[3]:.6f}", *shown])
    if not np.abs(path[-1] - ends["(33) corrected"]).max() < 1e-9:
        context.unexplained.append("motion of the rod and the particle")

    def figure():
        drawn, axes = panels(2)
        x, y = thin(2.0 * np.arange(401) / 400.0, path)
        axes[0].plot(x, y[:, 3], color=BLUE)
        axes[0].set_ylabel("q4, m", fontsize=8)
        axes[1].plot(x, y[:, 2], color=ORANGE)
        axes[1].set_ylabel("q3, rad", fontsize=8)
        axes[1].set_xlabel("time, s", fontsize=8)
        return drawn

    return [
        *prose("""
            The paper integrates nothing. Here m = L = 1, k = 100, L0 = 1.2 from q = (0, 0, 0.3, 1.5), u = (0.4, -0.2, 0.8, 0):
            state at 2 s and change of three constants of the motion (0: below 1e-8), with each erratum put back."""),
        *table(["equations", "q3, rad", "q4, m", "energy, J", "momentum, N·s", "angular, N·m·s"], rows),
        *context.picture("002_rod_and_particle", "Distance of the particle from the rod's end, angle of the rod", figure),
    ]


# --- gyrostat: figure 2, (11) to (13)


def gyrostat(free: bool):
    """(model with the rotor terms (12) or (13), model of two bodies, speeds): carrier with a rotor along its third axis."""
    from rt_kernels.offline.kane import KaneModel, Rotor

    sm, me = symbols()
    t = sm.Symbol("t")
    q1, q2, q3, q4 = me.dynamicsymbols("q1:5")
    u1, u2, u3, u4 = me.dynamicsymbols("u1:5")
    A, B, C, transverse, J, Omega, rate = parameters = sm.symbols("A B C I_t J Omega rate")
    spin = u4 if free else Omega + rate * t
    N = me.ReferenceFrame("N")
    F = N.orientnew("F", "Body", (q1, q2, q3), "XYZ")
    F.set_ang_vel(N, u1 * F.x + u2 * F.y + u3 * F.z)
    s2, c2, s3, c3 = sm.sin(q2), sm.cos(q2), sm.sin(q3), sm.cos(q3)
    rates = {q1.diff(t): (u1 * c3 - u2 * s3) / c2, q2.diff(t): u1 * s3 + u2 * c3, q3.diff(t): u3 - s2 * (u1 * c3 - u2 * s3) / c2}
    coordinates, speeds = [q1, q2, q3], [u1, u2, u3]
    if free:
        rates[q4.diff(t)] = u4
        coordinates, speeds = [*coordinates, q4], [*speeds, u4]
    O = me.Point("O")
    O.set_vel(N, 0 * N.x)
    whole = me.RigidBody("whole", O, F, 1, (me.inertia(F, A + transverse, B + transverse, C + J), O))
    R = me.ReferenceFrame("R")
    R.orient_axis(F, F.z, q4 if free else Omega * t + rate * t**2 / 2)
    R.set_ang_vel(F, spin * F.z)
    pair = [me.RigidBody("carrier", O, F, 1, (me.inertia(F, A, B, C), O)),
            me.RigidBody("rotor", O, R, 1, (me.inertia(R, transverse, transverse, J), O))]
    make = lambda bodies, rotors: KaneModel(N, coordinates, speeds, rates, bodies, rotors=rotors, parameters=parameters)  # noqa: E731
    return make([whole], [Rotor(0, F.z, J, spin)]), make(pair, []), speeds, parameters


def gyrostats(context: Context) -> list[str]:
    sm, _ = symbols()
    t = sm.Symbol("t")
    rows = []
    for free, number in ((False, "(12)"), (True, "(13)")):
        one, two, speeds, parameters = gyrostat(free)
        J = parameters[4]
        terms = [a - b for a, b in zip(one.generalised_inertia_forces(), two.generalised_inertia_forces(), strict=True)]
        rows.append(context.holds(f"{number}, rotor terms, spin {'free' if free else 'given'}", "as printed", _same(sm, *terms),
                                  "as of two bodies"))
        if free:
            last = one.generalised_inertia_forces()[3]
            same = _same(sm, last + J * (speeds[2].diff(t) + speeds[3].diff(t)))
            rows.append(context.holds("(13) F_n*", "-J (ω3' + u_n')", same, "same"))
    # a gyrostat of revolution: the transverse rate turns at ((C + J - A - I_t) omega_3 + J Omega) / (A + I_t)
    one, *_ = gyrostat(False)
    A, B, C, transverse, J, Omega = 40.0, 40.0, 25.0, 0.02, 0.05, 300.0
    compiled = one.compile("gyrostat")
    omega_3, seconds = 0.15, 10.0
    q, u = compiled.run([0.0, 0.1, 0.0], [0.02, 0.0, omega_3], 1e-3, round(seconds * 1000), [A, B, C, transverse, J, Omega, 0.0])
    wanted = ((C + J - A - transverse) * omega_3 + J * Omega) / (A + transverse)
    turned = np.unwrap([0.0, np.arctan2(u[1], u[0])])[1]
    turned += 2.0 * np.pi * round((wanted * seconds - turned) / (2.0 * np.pi))
    rows.append(context.compare("turning of the transverse rate, rad/s", wanted, turned / seconds, 1e-9, ".9f"))
    return [*prose("""
            **Figure 2, (11) to (13)**, gyrostat: printed rotor terms against carrier and rotor as two bodies; motion of a gyrostat of
            revolution (40, 40, 25 kg·m², rotor 0.05 kg·m² at 300 rad/s) against its closed form."""),
            *compared(rows)]


# --- section 6: motion constraints and collisions


def sleigh():
    """Chaplygin's sleigh: an edge along b1 that cannot slip sideways, mass centre a ahead of it."""
    from rt_kernels.offline.kane import KaneModel

    sm, me = symbols()
    t = sm.Symbol("t")
    x, y, angle = q = me.dynamicsymbols("x y a")
    v, w, side = me.dynamicsymbols("v w side")
    m, J, a = sm.symbols("m J a", positive=True)
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (angle, N.z))
    B.set_ang_vel(N, w * N.z)
    edge = me.Point("edge")
    edge.set_vel(N, v * B.x + side * B.y)
    centre = edge.locatenew("centre", a * B.x)
    centre.v2pt_theory(edge, N, B)
    body = me.RigidBody("sleigh", centre, B, m, (me.inertia(B, 0, 0, J), centre))
    rates = {x.diff(t): edge.vel(N).dot(N.x), y.diff(t): edge.vel(N).dot(N.y), angle.diff(t): w}
    return KaneModel(N, q, (v, w), rates, [body], parameters=[m, J, a], dependent={side: 0})


def non_holonomic(context: Context) -> list[str]:
    sm, _ = symbols()
    model = sleigh()
    X, Y = model.equations()
    m, J, a, V, seconds = 2.0, 0.7, 0.4, 1.3, 3.0
    k = m * a * V / (J + m * a * a)
    W = np.sqrt(V * k / a)
    compiled = model.compile("sleigh")
    path = [np.array([0.0, 0.0, 0.0, 0.0, W])]
    for _ in range(300):
        q, u = compiled.run(path[-1][:3], path[-1][3:], 1e-3, 10, [m, J, a])
        path.append(np.concatenate([q, u]))
    path = np.array(path)
    names = dict(zip([*model.speeds, *model.parameters], sm.symbols("v w m J a"), strict=True))
    rows = [
        context.holds("no multipliers", "none needed", X.shape == (2, 2), f"{X.shape[0]} equations for 3 coordinates"),
        context.holds("equations derived", "m v' = m a w²; (J + m a²) w' = -m a v w", _same(
            sm, *(X * sm.Matrix([names[model.parameters[2]] * names[model.speeds[1]] ** 2, 0]).subs(
                {b: a_ for a_, b in names.items()}) - sm.Matrix([Y[0], 0]))), f"`Y = ({', '.join(str(y.subs(names)) for y in Y)})`"),
        context.compare("v at 3 s, V tanh k t, m/s", V * np.tanh(k * seconds), path[-1, 3], 1e-10, ".9f"),
        context.compare("w at 3 s, W sech k t, rad/s", W / np.cosh(k * seconds), path[-1, 4], 1e-10, ".9f"),
    ]

    def figure():
        from matplotlib.figure import Figure

        drawn = Figure(figsize=(7.6, 2.6), layout="constrained")
        left, right = drawn.subplots(1, 2)
        t = seconds * np.arange(301) / 300.0
        left.plot(t, path[:, 3], color=BLUE, label="v, m/s")
        left.plot(t, path[:, 4], color=ORANGE, label="w, rad/s")
        left.plot(t[::20], V * np.tanh(k * t[::20]), ".", color=INK, label="closed form")
        left.plot(t[::20], W / np.cosh(k * t[::20]), ".", color=INK)
        left.set_xlabel("time, s", fontsize=8)
        left.legend(fontsize=7)
        right.plot(path[:, 0], path[:, 1], color=GREEN)
        right.set_aspect("equal")
        right.set_xlabel("path of the edge, m", fontsize=8)
        for one in (left, right):
            one.grid(True, linewidth=0.4, alpha=0.6)
            one.tick_params(labelsize=7)
        return drawn

    return [
        *prose("""
            **Section 6**, non-holonomic systems, without example. Here Chaplygin's sleigh (an edge that cannot slip sideways, m = 2 kg,
            J = 0.7 kg·m², centre 0.4 m ahead): `KaneModel` with `dependent = {side: 0}` against the closed form. A rolling disc:
            `tests/offline/test_motion_constraints.py`."""),
        *compared(rows),
        *context.picture("002_sleigh", "Speeds of the sleigh with their closed form, path of its edge", figure),
    ]


def collisions(context: Context) -> list[str]:
    rows = []
    # a rod (2 kg, half length 0.7 m) falls at 3 m/s on its lower end; velocity of that end up and along the floor
    m, l, v = 2.0, 0.7, 3.0
    for degrees in (0, 30, 60, 90):
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        G = np.array([[0.0, 1.0, -l * c], [1.0, 0.0, l * s]])
        X = np.diag([m, m, m * l * l / 3.0])
        for e in (0.0, 0.8):
            hit = collide(X, [0.0, -v, 0.0], G[:1], e)
            rows.append(context.compare(f"{degrees}°, e = {e:g}", m * (1 + e) * v / (1 + 3 * c * c),
                                        float(hit.impulse[0]), 1e-12, ".9f"))
    c = s = np.sqrt(0.5)
    G = np.array([[0.0, 1.0, -l * c], [1.0, 0.0, l * s]])
    held = collide(X, [0.0, -v, 0.0], G, 0.0, np.inf)
    rows.append(context.compare("45°, floor that holds: tangential over normal", 0.6, abs(float(held.impulse[1] / held.impulse[0])),
                                1e-12, ".9f"))
    # a solid ball that slips: mu = 0.05 slides through the blow, mu = 0.9 rolls away
    m, r = 0.5, 0.1
    X = np.diag([m] * 3 + [0.4 * m * r * r] * 3)
    G = np.array([[0, 0, 1, 0, 0, 0], [1, 0, 0, 0, -r, 0], [0, 1, 0, r, 0, 0]], dtype=float)
    u = np.array([1.5, -0.4, -2.0, 3.0, 7.0, -1.0])
    slip = np.linalg.norm((G @ u)[1:])
    for mu, wanted in ((0.05, slip - 3.5 * 0.05 * 1.8 * 2.0), (0.9, 0.0)):
        hit = collide(X, u, G, 0.8, mu)
        left = np.linalg.norm((G @ hit.u)[1:])
        row = context.compare if wanted else None
        name = f"spinning ball, μ = {mu:g}: slip after, m/s"
        rows.append(row(name, wanted, float(left), 1e-9, ".9f") if row else context.zero(name, float(left), 1e-12))
    return [
        *prose("""
            **Section 6**, collisions, without example: X (u' - u) = G^T R, Newton's restitution e, Coulomb's friction
            (`rt_kernels.offline.collision`; Kane and Levinson 1985, 5.7, 5.8) against closed forms: blow on an inclined rod on a smooth
            floor, N·s, and others. Random trees agree with Pinocchio's impulse dynamics (`tests/offline/test_collision.py`)."""),
        *compared(rows),
    ]


BLOCKS = [Block("002.table1", table_1), Block("002.table2", table_2), Block("002.equations", equations), Block("002.motion", motion),
          Block("002.gyrostat", gyrostats),
          Block("002.flown", flown.gyrostat, live=True), Block("002.constraints", non_holonomic), Block("002.collisions", collisions),
          errata.block("002")]
