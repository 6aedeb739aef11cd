"""Symbolic code of a tree of flexible bodies: straight-line C of its hybrid recursion, joints active or passive as chosen.

The recursion of `rt_kernels/multibody/flexible_recursion.pyx` (Tian et al. 2010, (5)-(7), corrected) is run once on symbols. Zeros, units,
repeated expressions and everything that does not depend on the state are folded by the table of `rt_kernels.model.tree_generator`, so that
a chain's own shape (axes, shape functions, which joints are active) decides what is left. The paper's package does this in a computer
algebra system. Which joints are active is part of the code: their acceleration is an input and their force an output.

The C function has no loop, branch on the topology, allocation or libm call but sqrt:

    void NAME_dynamics(const double *q, const double *v, const double *x, double *a, double *tau)

q, v as of `FlexibleTree`; x (nv,): acceleration of active coordinates, force of all others; a (nv,) accelerations; tau (nv,) forces.
SI units, body axes.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rt_kernels.model.craft import Link
from rt_kernels.model.tree_generator import (
    OPTIMISE,
    UNIT,
    ZERO,
    Table,
    add,
    cross,
    dot,
    matmul,
    mul,
    quaternion_rotation,
    reciprocal,
    scale,
    skew,
    sub,
    transpose,
)
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.kane import SINCOS, compiled_library

Value = Any  # a float or a Term of the table
Matrix = list[list[Value]]


def _plain(array) -> Any:
    """Python numbers; entries that are rounding beside the largest are zero, so that they fold."""
    array = np.array(array, dtype=float)
    array[np.abs(array) < 1e-15 * np.abs(array).max(initial=0.0)] = 0.0
    return array.tolist()


def _sum(values) -> Value:
    total: Value = 0.0
    for value in values:
        total = total + value
    return total


def _inner(a: list[Value], b: list[Value]) -> Value:
    return _sum(x * y for x, y in zip(a, b, strict=True))


def _polynomial(a0: Value, a1: Value, a2: Value, t: list[Value]) -> Matrix:
    """a0 1 + a1 S(t) + a2 S(t)^2 with S(t)^2 = t t^T - t.t 1."""
    square = [[t[i] * t[j] for j in range(3)] for i in range(3)]
    off = [[a2 * square[min(i, j)][max(i, j)] for j in range(3)] for i in range(3)]
    S = skew([a1 * x for x in t])
    diagonal = [a0 - a2 * (square[(i + 1) % 3][(i + 1) % 3] + square[(i + 2) % 3][(i + 2) % 3]) for i in range(3)]
    return [[diagonal[i] if i == j else off[i][j] + S[i][j] for j in range(3)] for i in range(3)]


def _symmetric(f, n: int = 6) -> Matrix:
    """(n, n) matrix of f(i, j), asked for i <= j only."""
    upper = {(i, j): f(i, j) for i in range(n) for j in range(i, n)}
    return [[upper[min(i, j), max(i, j)] for j in range(n)] for i in range(n)]


def _rotated(R: Matrix, P: Matrix) -> Matrix:
    """A symmetric (6, 6) matrix on other axes, block by block."""
    block = lambda r, c: [row[c: c + 3] for row in P[r: r + 3]]  # noqa: E731
    turn = lambda B: matmul(matmul(R, B), transpose(R))  # noqa: E731
    vv, vw, ww = turn(block(0, 0)), turn(block(0, 3)), turn(block(3, 3))
    return _symmetric(lambda i, j: vv[i][j] if j < 3 else vw[i][j - 3] if i < 3 else ww[i - 3][j - 3])


class _Elimination:
    """Coordinates with block A (n, n), coupling C (n, 6) and force y (n,) taken out of P, z; later they answer to an acceleration."""

    def __init__(self, A: Matrix, C: Matrix, y: list[Value], P: Matrix, z: list[Value]) -> None:
        n = len(A)
        A, self.C, self.y = [list(row) for row in A], [list(row) for row in C], list(y)
        self.factor: Matrix = [[0.0] * n for _ in range(n)]
        self.inverse: list[Value] = []
        for k in range(n):
            # L D L^T row by row; coupling and force take the same steps
            self.inverse.append(reciprocal(A[k][k]))
            for i in range(k + 1, n):
                share = A[k][i] * self.inverse[k]
                self.factor[i][k] = share
                for j in range(i, n):
                    A[i][j] = A[i][j] - share * A[k][j]
                self.C[i] = sub(self.C[i], scale(share, self.C[k]))
                self.y[i] = self.y[i] - share * self.y[k]
        for k in range(n):
            scaled = scale(self.inverse[k], self.C[k])
            P = _symmetric(lambda i, j, P=P, k=k, scaled=scaled: P[i][j] - scaled[i] * self.C[k][j])
            z = add(z, scale(self.y[k], scaled))
        self.P, self.z = P, z

    def answer(self, A: list[Value]) -> list[Value]:
        """Accelerations of the coordinates when the body's own acceleration is A (6,)."""
        n = len(self.y)
        x = [(self.y[k] - _inner(self.C[k], A)) * self.inverse[k] for k in range(n)]
        for k in range(n - 1, -1, -1):
            for i in range(k + 1, n):
                x[k] = x[k] - self.factor[i][k] * x[i]
        return x


class _Tracer:
    """One run of the recursion on symbols."""

    def __init__(self, tree: FlexibleTree, gravity: Sequence[float], first_order: bool, given: Sequence[str]) -> None:
        self.table, self.tree, self.first_order = Table(), tree, first_order
        self.prelude: list[str] = []
        self.index = {link.name: k for k, link in enumerate(tree.links)}
        self.given, self.gravity = set(given), _plain(gravity)
        self.out: list[tuple[str, Value]] = []

    def _input(self, name: str, places: slice) -> list[Value]:
        return [self.table.given(f"{name}[{k}]") for k in range(places.start, places.stop)]

    def _joint(self, link: Link) -> tuple[Matrix, list[Value], list[list[Value]]]:
        """(rotation, displacement, columns (nd, 6)) of the joint."""
        axis = _plain(link.axis)
        places = self.tree.coordinates(link.joint_name)[0]
        q = self._input("q", places)
        turn = [[*ZERO, *e] for e in UNIT]
        if link.joint in ("revolute", "screw", "continuous"):
            if link.joint == "continuous":
                c, s = q
            else:
                k = places.start
                self.prelude.append(f"double s{k}, c{k}; turn(q[{k}], &s{k}, &c{k});")
                s, c = self.table.given(f"s{k}"), self.table.given(f"c{k}")
            S = skew(axis)
            R = [[c * ((i == j) - axis[i] * axis[j]) + axis[i] * axis[j] + s * S[i][j] for j in range(3)] for i in range(3)]
            advance = scale(float(link.pitch), axis) if link.joint == "screw" else ZERO
            return R, scale(q[0], advance), [[*advance, *axis]]
        if link.joint == "prismatic":
            return UNIT, scale(q[0], axis), [[*axis, *ZERO]]
        if link.joint == "spherical":
            return quaternion_rotation(*q), ZERO, turn
        if link.joint == "free":
            return quaternion_rotation(*q[3:]), q[:3], [[*e, *ZERO] for e in UNIT] + turn
        if link.joint == "fixed":
            return UNIT, ZERO, []
        raise ValueError(f"link {link.name!r}: joint {link.joint!r} has no generated code")

    def _port(self, number: int, parent: Link, port: str | None, arm: list[Value]):
        """Port of a flexible parent: (A, shift phi eta, slide phi eta_dot, rate w, w_bias, arm l = A arm, port motion (s, 6) per mode)."""
        _, _, phi, psi = parent.body.port_arrays(port)
        modes, rates = self.tree.modal_coordinates(parent.name)
        eta, rate = self._input("q", modes), self._input("v", rates)
        phi, psi = _plain(phi), _plain(psi)
        combine = lambda M, x: [_inner(row, x) for row in M]  # noqa: E731
        theta, theta_rate = combine(psi, eta), combine(psi, rate)
        # the terms of the exponential are functions of theta^2 with a branch: computed before, in a scope of their own
        before = Table()
        before_theta = [_inner(row, [before.given(f"q[{k}]") for k in range(modes.start, modes.stop)]) for row in psi]
        lines = " ".join(before.emit([("const double square", dot(before_theta, before_theta))]))
        self.prelude.append(f"double k{number}[5]; {{ {lines} exponential_terms(square, k{number}); }}")
        k = [self.table.given(f"k{number}[{i}]") for i in range(5)]
        A = _polynomial(1.0, k[0], k[1], theta)
        if self.first_order:
            JL, w_bias = UNIT, ZERO
        else:
            JL = _polynomial(1.0, k[1], k[2], theta)
            u = cross(theta, theta_rate)
            along = dot(theta, theta_rate)
            w_bias = add(add(scale(along * k[3], u), scale(along * k[4], cross(theta, u))), scale(k[2], cross(theta_rate, u)))
        l = mul(A, arm)
        turns = [mul(JL, [psi[i][a] for i in range(3)]) for a in range(len(eta))]
        motion = [[*add([phi[i][a] for i in range(3)], cross(turns[a], l)), *turns[a]] for a in range(len(eta))]
        return A, combine(phi, eta), combine(phi, rate), mul(JL, theta_rate), w_bias, l, motion

    def _kinematics(self, number: int, link: Link, moved: list[dict]) -> dict:
        R_J, p_J, columns = self._joint(link)
        rates = self._input("v", self.tree.coordinates(link.joint_name)[1])
        rel = [_sum(x * column[i] for x, column in zip(rates, columns, strict=True)) for i in range(6)]
        rel_v, rel_w = rel[:3], rel[3:]
        position, rotation = _plain(link.position), _plain(link.rotation)
        if link.parent is None:
            R = matmul(rotation, R_J)
            return {"R": R, "r": add(position, mul(rotation, p_J)), "v": rel_v, "w": rel_w, "c": cross(rel_w, rel_v), "c_w": ZERO,
                    "motion": [], "columns": columns}
        parent = moved[self.index[link.parent]]
        carrier = self.tree.links[self.index[link.parent]]
        p_port, R_port, phi, _ = carrier.body.port_arrays(link.port)
        p_port, R_port = _plain(p_port), _plain(R_port)
        R_0 = matmul(R_port, rotation)
        arm = add(mul(R_port, position), mul(R_0, p_J))
        if phi is None or not carrier.body.n_modes:
            A, shift, slide, w, w_bias, l, motion = UNIT, ZERO, ZERO, ZERO, ZERO, arm, []
        else:
            A, shift, slide, w, w_bias, l, motion = self._port(number, carrier, link.port, arm)
        R = matmul(matmul(A, R_0), R_J)
        r = add(add(p_port, shift), l)
        slide = add(slide, cross(w, l))
        back = transpose(R)
        omega = parent["w"]
        at_port = mul(back, add(add(parent["v"], cross(omega, r)), slide))
        w_port = mul(back, add(omega, w))
        # velocity part of the acceleration of the port frame at the body's origin, then of the joint
        line = cross(omega, add(cross(omega, r), scale(2.0, slide)))
        line = add(add(line, cross(w_bias, l)), cross(w, cross(w, l)))
        turning = add(w_bias, cross(omega, w))
        c = add(mul(back, line), add(scale(2.0, cross(w_port, rel_v)), cross(rel_w, rel_v)))
        c_w = add(mul(back, turning), cross(w_port, rel_w))
        return {"R": R, "r": r, "v": add(at_port, rel_v), "w": add(w_port, rel_w), "c": c, "c_w": c_w, "motion": motion, "columns": columns}

    def _inertia(self, link: Link, w: list[Value]) -> tuple[Matrix, list[Value], Matrix, Matrix, list[Value]]:
        """(P (6, 6), z (6,), coupling (s, 6), modal block (s, s), modal bias (s,)) of the body alone."""
        body = link.body
        s = body.n_modes
        eta, rate = (self._input(name, places) for name, places in zip("qv", self.tree.modal_coordinates(link.name), strict=True))
        N, Q, P_, Y = _plain(body.N), _plain(body.kernel_Q()), _plain(body.P), _plain(body.kernel_Y())
        c, c_rate = _plain(body.first_moment), list(ZERO)
        E, H = _plain(body.second_moment), [[0.0] * 3 for _ in range(3)]
        G = []
        for a in range(s):
            g = [[N[a][i][j] + _sum(eta[k] * Q[a][k][i][j] for k in range(s)) for j in range(3)] for i in range(3)]
            for i in range(3):
                c[i] = c[i] + eta[a] * P_[a][i]
                c_rate[i] = c_rate[i] + rate[a] * P_[a][i]
                for j in range(3):
                    E[i][j] = E[i][j] + eta[a] * N[a][j][i] + eta[a] * g[i][j]
                    H[i][j] = H[i][j] + rate[a] * g[i][j]
            G.append(g)
        trace = lambda M: M[0][0] + M[1][1] + M[2][2]  # noqa: E731
        total, S = trace(E), skew(c)
        ww = _symmetric(lambda i, j: total - E[i][i] if i == j else -0.5 * (E[i][j] + E[j][i]), 3)
        P = _symmetric(lambda i, j: body.mass * float(i == j) if j < 3 else -S[i][j - 3] if i < 3 else ww[i - 3][j - 3])
        z_v = cross(w, add(cross(w, c), scale(2.0, c_rate)))
        z_w = add(cross(w, mul(ww, w)), scale(2.0, sub(scale(trace(H), w), mul(transpose(H), w))))
        coupling = [[*P_[a], G[a][1][2] - G[a][2][1], G[a][2][0] - G[a][0][2], G[a][0][1] - G[a][1][0]] for a in range(s)]
        square = dot(w, w)
        bias = [dot(w, mul(G[a], w)) - square * trace(G[a]) + 2.0 * dot(w, [_sum(rate[k] * Y[a][k][i] for k in range(s)) for i in range(3)])
                for a in range(s)]
        return P, z_v + z_w, coupling, _plain(body.modal_mass), bias

    def run(self) -> list[str]:
        """C statements."""
        links = self.tree.links
        moved: list[dict] = []
        for number, link in enumerate(links):
            moved.append(self._kinematics(number, link, moved))
        own = [list(self._inertia(link, m["w"])) for link, m in zip(links, moved, strict=True)]
        kept: list[dict] = [{} for _ in links]
        for i in reversed(range(len(links))):
            link, m = links[i], moved[i]
            P, z, coupling, block, bias = own[i]
            joint, (shape, modal) = self.tree.coordinates(link.joint_name)[1], self.tree.modal_coordinates(link.name)
            eta, rate = self._input("q", shape), self._input("v", modal)
            K, C = _plain(link.body.stiffness), _plain(link.body.damping)
            load = self._input("x", modal)
            force = [load[a] - bias[a] - _sum(K[a][k] * eta[k] + C[a][k] * rate[k] for k in range(len(eta))) for a in range(len(eta))]
            modes = _Elimination(block, coupling, force, P, z)
            P, z = modes.P, modes.z
            c = [*m["c"], *m["c_w"]]
            x = self._input("x", joint)
            active = link.name in self.given
            if active:
                c = [c[k] + _sum(x[d] * column[k] for d, column in enumerate(m["columns"])) for k in range(6)]
            pushed = add(z, [_inner(row, c) for row in P])
            kept[i] = {"modes": modes, "P": P, "z": z, "c": c}
            if active or not m["columns"]:
                P_out, z_out = P, pushed
            else:
                U = [[_inner(row, column) for row in P] for column in m["columns"]]
                D = [[_inner(a, b) + (link.armature if r == k else 0.0) for k, b in enumerate(U)] for r, a in enumerate(m["columns"])]
                spring = self._spring(link)
                e = [x[d] - spring - _inner(column, pushed) for d, column in enumerate(m["columns"])]
                free = _Elimination(D, U, e, P, pushed)
                kept[i]["joint"] = free
                P_out, z_out = free.P, free.z
            if link.parent is not None:
                self._hand_down(own[self.index[link.parent]], m, P_out, z_out)
        self._forward(moved, kept)
        return self.prelude + self.table.emit(self.out)

    def _spring(self, link: Link) -> Value:
        if not (link.stiffness or link.damping):
            return 0.0
        q, v = (self._input(name, places) for name, places in zip("qv", self.tree.coordinates(link.joint_name), strict=True))
        return float(link.stiffness) * q[0] + float(link.damping) * v[0]

    @staticmethod
    def _hand_down(parent: list, m: dict, P: Matrix, z: list[Value]) -> None:
        """P, z of a body into the equations of its parent: C^T P C with C = [port motion | shift by r]."""
        R, r = m["R"], m["r"]
        Q = _rotated(R, P)
        force, moment = mul(R, z[:3]), mul(R, z[3:])
        # columns of the shift: v + w x r
        shift = [[*e, *ZERO] for e in UNIT] + [[*cross(e, r), *e] for e in UNIT]
        through = [[_inner(row, column) for row in Q] for column in shift]
        parent[0] = _symmetric(lambda i, j, old=parent[0]: old[i][j] + _inner(shift[i], through[j]))
        parent[1] = add(parent[1], [*force, *add(moment, cross(r, force))])
        if m["motion"]:
            moved = [[_inner(row, column) for row in Q] for column in m["motion"]]
            parent[2] = [[parent[2][a][k] + _inner(shift[k], moved[a]) for k in range(6)] for a in range(len(moved))]
            parent[3] = _symmetric(lambda i, j, old=parent[3]: old[i][j] + _inner(m["motion"][i], moved[j]), len(moved))
            parent[4] = [parent[4][a] + _inner(column, [*force, *moment]) for a, column in enumerate(m["motion"])]

    def _forward(self, moved: list[dict], kept: list[dict]) -> None:
        accelerations: list[tuple[list[Value], list[Value]]] = []      # (6,) and modal ones of each body
        for i, link in enumerate(self.tree.links):
            m, k = moved[i], kept[i]
            back = transpose(m["R"])
            if link.parent is None:
                A = [*mul(back, [-g for g in self.gravity]), *ZERO]
            else:
                above, modal = accelerations[self.index[link.parent]]
                whole = add(above, [*cross(above[3:], m["r"]), *ZERO])
                for rate, column in zip(modal, m["motion"], strict=False):
                    whole = add(whole, scale(rate, column))
                A = mul(back, whole[:3]) + mul(back, whole[3:])
            joint, modes = self.tree.coordinates(link.joint_name)[1], self.tree.modal_coordinates(link.name)[1]
            names = range(joint.start, joint.stop)
            found = k["joint"].answer(A) if "joint" in k else []
            A = add(A, k["c"])
            for acceleration, column in zip(found, m["columns"], strict=False):
                A = add(A, scale(acceleration, column))
            if "joint" in k:
                self.out += [(f"a[{n}]", x) for n, x in zip(names, found, strict=True)]
                self.out += [(f"tau[{n}]", self.table.given(f"x[{n}]")) for n in names]
            else:
                wrench = add(k["z"], [_inner(row, A) for row in k["P"]])
                for n, column in zip(names, m["columns"], strict=True):
                    given = self.table.given(f"x[{n}]")
                    self.out.append((f"a[{n}]", given))
                    self.out.append((f"tau[{n}]", _inner(column, wrench) + float(link.armature) * given + self._spring(link)))
            modal = k["modes"].answer(A)
            self.out += [(f"a[{n}]", x) for n, x in zip(range(modes.start, modes.stop), modal, strict=True)]
            self.out += [(f"tau[{n}]", self.table.given(f"x[{n}]")) for n in range(modes.start, modes.stop)]
            accelerations.append((A, modal))


# the same numbers as rt_kernels/multibody/flexible_algebra.pxd, in C
_TERMS = """\
static void exponential_terms(double x, double *k)
{
    if (x < 0.25) {
        k[0] = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0 * (1.0 - x / 156.0)))));
        k[1] = 0.5 - x / 24.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0 * (1.0 - x / 90.0 * (1.0 - x / 132.0 * (1.0 - x / 182.0)))));
        k[2] = 1.0 / 6.0 - x / 120.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0 * (1.0 - x / 156.0 * (1.0 - x / 210.0)))));
        k[3] = -1.0 / 12.0 + x * (4.0 / 720.0 - x * (6.0 / 40320.0 - x * (8.0 / 3628800.0 - x * (10.0 / 479001600.0
            - x * (12.0 / 87178291200.0)))));
        k[4] = -2.0 / 120.0 + x * (4.0 / 5040.0 - x * (6.0 / 362880.0 - x * (8.0 / 39916800.0 - x * (10.0 / 6227020800.0
            - x * (12.0 / 1307674368000.0)))));
    } else {
        const double p = sqrt(x);
        double s, c;
        turn(p, &s, &c);
        k[0] = s / p;
        k[1] = (1.0 - c) / x;
        k[2] = (p - s) / (x * p);
        k[3] = (p * s - 2.0 * (1.0 - c)) / (x * x);
        k[4] = (3.0 * s - 2.0 * p - p * c) / (x * x * p);
    }
}
"""


class FlexibleCode:
    """Generated dynamics of the links of a `FlexibleTree`.

    links, gravity, rates   as of `FlexibleTree`
    given                   names of the links whose joint is active: its acceleration is given, its force wanted

    Raises ValueError naming the link or argument.
    """

    def __init__(self, links: Sequence[Link], gravity: Sequence[float] = (0.0, 0.0, 0.0), rates: str = "exact",
                 given: Sequence[str] = ()) -> None:
        build: Any = FlexibleTree           # its stub names no arguments
        self.tree: FlexibleTree = build(links, gravity, rates)
        for name in given:
            self.tree.index(name)
        self.given = tuple(given)
        lines = _Tracer(self.tree, gravity, rates == "first_order", given).run()
        self.operations = sum(bool(re.search(r" [-+*/] ", line)) for line in lines if line.startswith("const double t"))
        self._lines = lines

    def emit_c(self, name: str) -> str:
        """The C file; raises ValueError for a name that is no identifier."""
        if not name.isidentifier():
            raise ValueError(f"name: {name!r} is not an identifier")
        body = "\n    ".join(self._lines)
        used = "\n".join(text for text, call in ((SINCOS, ("turn(", "exponential_terms(")), (_TERMS, ("exponential_terms(",)))
                         if any(word in body for word in call))
        return (f'/* Hybrid dynamics of the flexible tree "{name}": {len(self.tree.links)} bodies, {self.tree.nv} velocity coordinates, '
                f"active: {', '.join(self.given) or 'none'}. Generated; SI units. */\n#include <math.h>\n\n{used}\n"
                f"void {name}_dynamics(const double *restrict q, const double *restrict v, const double *restrict x,\n"
                f"                     double *restrict a, double *restrict tau)\n{{\n    {body}\n}}\n")

    def compile(self, name: str, directory: str | Path | None = None, compiler: str | None = None) -> CompiledTree:
        """Emit, compile with the system compiler and load. Kept in `directory` under a hash of the source (None: a temporary one)."""
        return CompiledTree(self.emit_c(name), name, self.tree.nq, self.tree.nv, directory, compiler)


class CompiledTree:
    """Generated dynamics, compiled and loaded."""

    def __init__(self, source: str, name: str, nq: int, nv: int, directory=None, compiler=None) -> None:
        self.source, self.nq, self.nv = source, nq, nv
        loaded, self.library = compiled_library(source, name, directory, compiler, OPTIMISE)
        pointer = ctypes.POINTER(ctypes.c_double)
        self._dynamics = loaded[f"{name}_dynamics"]
        self._dynamics.argtypes, self._dynamics.restype = [pointer] * 5, None

    def dynamics(self, q, v, x) -> tuple[np.ndarray, np.ndarray]:
        """(tau, a) as of `FlexibleTree.hybrid_dynamics`; x (nv,): accelerations of active joints, forces of everything else."""
        given = []
        for name, value, size in (("q", q, self.nq), ("v", v, self.nv), ("x", x, self.nv)):
            array = np.ascontiguousarray(value, dtype=np.float64)
            if array.shape != (size,):
                raise ValueError(f"{name}: shape {array.shape} given, ({size},) expected")
            given.append(array)
        a, tau = np.empty(self.nv), np.empty(self.nv)
        pointer = ctypes.POINTER(ctypes.c_double)
        self._dynamics(*(array.ctypes.data_as(pointer) for array in (*given, a, tau)))
        return tau, a
