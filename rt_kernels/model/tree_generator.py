"""Straight-line C for the recursion of one given tree.

The recursions of `multibody/tree.pyx` are run once on symbols instead of numbers, on body axes: there every joint axis is a unit vector
and every inertia a constant, so most products vanish.  Each scalar operation is a row `(operator, operand, operand)` and its place in the
table is its name: an equal row is a repeated expression.  Zeros, units and constants are folded when a row is asked for, signs are
carried beside the name, and rows that no output needs are dropped (rules of the appendix of Yaskevich 2020 on symbolic code generation;
rotations about an axis use its optimised congruence).  The same model gives the same text.

Compiled once with the system's C compiler, kept under the hashes of text with flags and of the compiler, loaded with ctypes; the function
pointers have the types of `tree_kernel.h`.  A tree whose joints are locked or whose topology has changed is computed by the general
kernels, so the generated object answers every call.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSION = "1"
#: Folder of the headers that the text includes.
HEADERS = Path(__file__).parents[1] / "multibody"
#: Up to this many coordinates the generated kernels are the default (`Tree.fastest`), and forward dynamics and mass matrix are generated at
#: all: longer text no longer fits the instruction cache, and the general kernels are faster.
WORTHWHILE = 32
#: Passes that look for repeated work between branches: none here, and they take minutes on one long straight line.
OPTIMISE = ["-O2", "-fno-tree-pre", "-fno-gcse"]
FLAGS = ["-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w"]
LANES = {"sse2": 2, "avx2": 4, "avx512": 8}
SET_FLAGS = {"sse2": [], "avx2": ["-mavx2"], "avx512": ["-mavx2", "-mavx512f", "-mavx512dq", "-mavx512vl"]}


class GenerationError(ValueError):
    """No compiler, or the compiler refused; the general kernels remain."""


# ---- expressions --------------------------------------------------


class Table:
    """Rows of scalar operations; a value is a constant (float) or a `Term`: a row with a sign."""

    def __init__(self) -> None:
        self.rows: list[tuple] = []
        self.place: dict[tuple, int] = {}

    def row(self, *key) -> int:
        """Number of the table's row with this key; a new key gets a new row."""
        if key not in self.place:
            self.place[key] = len(self.rows)
            self.rows.append(key)
        return self.place[key]

    def given(self, text: str) -> "Term":
        """An input: a piece of C."""
        return Term(self, self.row("given", text), 1)

    def emit(self, outputs: "list[tuple[str, Term | float]]") -> list[str]:
        """C statements that compute the outputs, needed rows only, in the order in which they were made."""
        needed = set()
        stack = [v.row for _, v in outputs if isinstance(v, Term)]
        while stack:
            at = stack.pop()
            if at not in needed:
                needed.add(at)
                stack.extend(part for part in self.rows[at][1:] if isinstance(part, int))
        lines = [f"const double t{at} = {self._text(at)};" for at in sorted(needed)]
        return lines + [f"{target} = {self._value(v)};" for target, v in outputs]

    def _text(self, at: int) -> str:
        operator, a, *rest = self.rows[at]
        if operator == "given":
            return a
        if operator == "reciprocal":
            return f"1.0 / t{a}"
        left = f"t{a}" if isinstance(a, int) else repr(a)
        return f"{left} {operator} t{rest[0]}"

    @staticmethod
    def _value(v: "Term | float") -> str:
        return f"{'-' if v.sign < 0 else ''}t{v.row}" if isinstance(v, Term) else repr(float(v))


class Term:
    """A row with a sign; arithmetic folds what can be folded."""

    __slots__ = ("table", "row", "sign")

    def __init__(self, table: Table, row: int, sign: int) -> None:
        self.table, self.row, self.sign = table, row, sign

    def __neg__(self) -> "Term":
        return Term(self.table, self.row, -self.sign)

    def __add__(self, other):
        t = self.table
        if not isinstance(other, Term):
            if other == 0.0:
                return self
            if self.sign > 0:
                return Term(t, t.row("+", float(other), self.row), 1)
            return Term(t, t.row("-", float(other), self.row), 1)
        if self.row == other.row:
            return 0.0 if self.sign != other.sign else 2.0 * self
        if self.sign == other.sign:
            a, b = sorted((self.row, other.row))
            return Term(t, t.row("+", a, b), self.sign)
        plus, minus = (self, other) if self.sign > 0 else (other, self)
        if ("-", minus.row, plus.row) in t.place:
            return Term(t, t.place["-", minus.row, plus.row], -1)
        return Term(t, t.row("-", plus.row, minus.row), 1)

    __radd__ = __add__

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return (-self) + other

    def __mul__(self, other):
        t = self.table
        if not isinstance(other, Term):
            if other == 0.0:
                return 0.0
            sign = self.sign if other > 0 else -self.sign
            return Term(t, self.row if abs(other) == 1.0 else t.row("*", abs(float(other)), self.row), sign)
        a, b = sorted((self.row, other.row))
        return Term(t, t.row("*", a, b), self.sign * other.sign)

    __rmul__ = __mul__

    def reciprocal(self):
        """1/x, as a row of the same table."""
        return Term(self.table, self.table.row("reciprocal", self.row), self.sign)


def reciprocal(x):
    """1/x of a term or a number."""
    return x.reciprocal() if isinstance(x, Term) else 1.0 / x


# ---- three-vectors and matrices of values --------------------------------------------------


def add(a, b):
    """a + b of two vectors."""
    return [x + y for x, y in zip(a, b, strict=True)]


def sub(a, b):
    """a - b of two vectors."""
    return [x - y for x, y in zip(a, b, strict=True)]


def scale(s, a):
    """s a of a vector."""
    return [s * x for x in a]


def dot(a, b):
    """a . b of two vectors of three."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    """a x b of two vectors of three."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def transpose(A):
    """Transpose of a matrix."""
    return [list(column) for column in zip(*A, strict=True)]


def mul(A, b):
    """A b of a matrix and a vector."""
    return [dot(row, b) for row in A]


def matmul(A, B):
    """A B of two matrices."""
    return [[dot(row, column) for column in transpose(B)] for row in A]


def madd(A, B):
    """A + B of two matrices."""
    return [add(a, b) for a, b in zip(A, B, strict=True)]


def symmetric(six):
    """Symmetric matrix (3, 3) of its six numbers xx, xy, xz, yy, yz, zz."""
    xx, xy, xz, yy, yz, zz = six
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def mirror(A):
    """The lower half taken from the upper: a symmetric matrix keeps one name per entry."""
    return [[A[min(i, j)][max(i, j)] for j in range(3)] for i in range(3)]


def centrifugal(w, e, r):
    """e x r + w x (w x r) as a matrix of six shared products times r."""
    x2, y2, z2 = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    Q = [[-(y2 + z2), xy - e[2], xz + e[1]], [xy + e[2], -(x2 + z2), yz - e[0]], [xz - e[1], yz + e[0], -(x2 + y2)]]
    return mul(Q, r)


ZERO = [0.0, 0.0, 0.0]
UNIT = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


# ---- joints --------------------------------------------------


class Turn:
    """Rotation child to parent: constant placement after a turn about z by (c, s), or after any rotation."""

    def __init__(self, place, c=1.0, s=0.0, inner=None):
        self.place, self.c, self.s, self.inner = place, c, s, inner
        self.cc, self.cs, self.ss = c * c, c * s, s * s

    def up(self, v):
        """Components on the parent's axes."""
        if self.inner is not None:
            return mul(self.place, mul(self.inner, v))
        return mul(self.place, [self.c * v[0] - self.s * v[1], self.s * v[0] + self.c * v[1], v[2]])

    def down(self, v):
        """Components on the child's axes."""
        v = mul(transpose(self.place), v)
        if self.inner is not None:
            return mul(transpose(self.inner), v)
        return [self.c * v[0] + self.s * v[1], self.c * v[1] - self.s * v[0], v[2]]

    def up_symmetric(self, A):
        """R A R^T of a symmetric matrix (3, 3) in the joint's frame: its components in the parent's."""
        if self.inner is not None:
            return mirror(self._both(self.place, self._both(self.inner, A)))
        c, s, cc, cs, ss = self.c, self.s, self.cc, self.cs, self.ss
        difference = A[0][0] - A[1][1]
        moved = cc * difference - 2.0 * cs * A[0][1]
        xy = cs * difference + (cc - ss) * A[0][1]
        xz, yz = c * A[0][2] - s * A[1][2], s * A[0][2] + c * A[1][2]
        return mirror(self._both(self.place, symmetric([A[1][1] + moved, xy, xz, A[0][0] - moved, yz, A[2][2]])))

    def up_matrix(self, B):
        """R B R^T of any matrix (3, 3) in the joint's frame: its components in the parent's."""
        if self.inner is not None:
            return self._both(self.place, self._both(self.inner, B))
        c, s, cc, cs, ss = self.c, self.s, self.cc, self.cs, self.ss
        difference, total, twist = B[0][0] - B[1][1], B[0][1] + B[1][0], B[0][1] - B[1][0]
        moved = cc * difference - cs * total
        xy = cs * difference + B[0][1] - ss * total
        turned = [
            [B[1][1] + moved, xy, c * B[0][2] - s * B[1][2]],
            [xy - twist, B[0][0] - moved, s * B[0][2] + c * B[1][2]],
            [c * B[2][0] - s * B[2][1], s * B[2][0] + c * B[2][1], B[2][2]],
        ]
        return self._both(self.place, turned)

    @staticmethod
    def _both(R, A):
        return matmul(matmul(R, A), transpose(R))


def quaternion_rotation(x, y, z, w):
    """Rotation matrix (3, 3) of a quaternion [x, y, z, w] of any length."""
    s = 2.0 * reciprocal(x * x + y * y + z * z + w * w)
    a, b, c = s * x, s * y, s * z
    xx, xy, xz, yy, yz, zz, wx, wy, wz = a * x, a * y, a * z, b * y, b * z, c * z, a * w, b * w, c * w
    return [[1.0 - (yy + zz), xy - wz, xz + wy], [xy + wz, 1.0 - (xx + zz), yz - wx], [xz - wy, yz + wx, 1.0 - (xx + yy)]]


def column_axes(body):
    """Per velocity coordinate: (turn, advance), constant on the child's axes."""
    e = UNIT
    return {
        "revolute": [(e[2], ZERO)],
        "continuous": [(e[2], ZERO)],
        "prismatic": [(ZERO, e[2])],
        "screw": [(e[2], scale(body["pitch"], e[2]))],
        "spherical": [(e[k], ZERO) for k in range(3)],
        "planar": [(ZERO, e[0]), (ZERO, e[1]), (e[2], ZERO)],
        "free": [(ZERO, e[k]) for k in range(3)] + [(e[k], ZERO) for k in range(3)],
    }[body["kind"]]


def pose(table, body):
    """(Turn, r): rotation child to parent, parent origin to child origin on the parent's axes."""
    kind, place = body["kind"], body["R_place"]
    q = [table.given(f"q[{body['q'] + k}]") for k in range(body["n_q"])]
    if kind in ("revolute", "screw"):
        c, s = table.given(f"cosine[{body['sine']}]"), table.given(f"sine[{body['sine']}]")
        travel = [0.0, 0.0, body["pitch"] * q[0] if kind == "screw" else 0.0]
        turn = Turn(place, c, s)
    elif kind == "continuous":
        turn, travel = Turn(place, q[0], q[1]), ZERO
    elif kind == "prismatic":
        turn, travel = Turn(place), [0.0, 0.0, q[0]]
    elif kind == "planar":
        turn, travel = Turn(place, q[2], q[3]), [q[0], q[1], 0.0]
    elif kind == "spherical":
        turn, travel = Turn(place, inner=quaternion_rotation(*q)), ZERO
    else:
        turn, travel = Turn(place, inner=quaternion_rotation(*q[3:])), q[:3]
    return turn, add(body["p_place"], mul(place, travel))


# ---- the recursions --------------------------------------------------


def motion(table, bodies, with_accelerations):
    """Sweep from the roots on body axes: (turn, r, w, e, g) of every body; see kinematics() in tree_algorithms.inc."""
    out = []
    for body in bodies:
        turn, r = pose(table, body)
        if body["parent"] < 0:
            w, e, g = ZERO, ZERO, [-table.given(f"gravity[{k}]") for k in range(3)]
        else:
            _, _, w, e, g = out[body["parent"]]
            g = add(g, centrifugal(w, e, r))
        w, e, g = turn.down(w), turn.down(e), turn.down(g)
        w_rel, v_rel = ZERO, ZERO
        columns = column_axes(body)
        for k, (x, y) in enumerate(columns):
            rate = table.given(f"v[{body['v'] + k}]")
            w_rel, v_rel = add(w_rel, scale(rate, x)), add(v_rel, scale(rate, y))
        if body["kind"] not in ("revolute", "continuous", "spherical"):
            g = add(g, cross(scale(2.0, w) if body["n_v"] == 1 else add(scale(2.0, w), w_rel), v_rel))
        e = add(e, cross(w, w_rel))
        w = add(w, w_rel)
        if with_accelerations:
            for k, (x, y) in enumerate(columns):
                a = table.given(f"a[{body['v'] + k}]")
                e, g = add(e, scale(a, x)), add(g, scale(a, y))
        out.append((turn, r, w, e, g))
    return out


def body_wrench(table, body, w, e, g, with_wrenches):
    """(n, f) that the body alone needs, external wrench taken off."""
    h, I = body["h"], symmetric(body["inertia"])
    f = add(scale(body["mass"], g), centrifugal(w, e, h))
    n = add(add(mul(I, e), cross(w, mul(I, w))), cross(h, g))
    if with_wrenches and body["user"] >= 0:
        row = [table.given(f"f_ext[{6 * body['user'] + k}]") for k in range(6)]
        back = transpose(body["R_align"])
        f, n = sub(f, mul(back, row[:3])), sub(n, mul(back, row[3:]))
    return n, f


def skew(h):
    """Matrix (3, 3) of h x."""
    return [[0.0, -h[2], h[1]], [h[2], 0.0, -h[0]], [-h[1], h[0], 0.0]]


def factor_solve(A):
    """Solver of A x = b by A = L D L^T, A symmetric 3x3."""
    i0 = reciprocal(A[0][0])
    l10, l20 = A[0][1] * i0, A[0][2] * i0
    cross_term = A[1][2] - l20 * A[0][1]
    i1 = reciprocal(A[1][1] - l10 * A[0][1])
    l21 = cross_term * i1
    i2 = reciprocal(A[2][2] - l20 * A[0][2] - l21 * cross_term)

    def solve(b):
        y1 = b[1] - l10 * b[0]
        z = (b[2] - l20 * b[0] - l21 * y1) * i2
        y = y1 * i1 - l21 * z
        return [b[0] * i0 - l10 * y - l20 * z, y, z]

    return solve


def forward_dynamics(bodies, with_wrenches):
    """Articulated bodies, wrench = [J B; B^T M] acceleration + (n, f)."""
    table = Table()
    moved = motion(table, bodies, False)
    X = [None] * len(bodies)
    kept = [None] * len(bodies)
    for i in reversed(range(len(bodies))):
        body, (turn, r, w, e, g) = bodies[i], moved[i]
        n, f = body_wrench(table, body, w, e, g, with_wrenches)
        J, B, M = symmetric(body["inertia"]), skew(body["h"]), [scale(body["mass"], row) for row in UNIT]
        if X[i] is not None:
            J, B, M, n, f = madd(X[i][0], J), madd(X[i][1], B), madd(X[i][2], M), add(X[i][3], n), add(X[i][4], f)
        tau = [table.given(f"tau[{body['v'] + k}]") for k in range(body["n_v"])]
        if body["kind"] == "free":
            linear = factor_solve(M)
            Y = [linear(row) for row in B]
            rf, rn = sub(tau[:3], f), sub(tau[3:], n)
            S = [[J[p][k] - dot(B[p], Y[k]) if p <= k else 0.0 for k in range(3)] for p in range(3)]
            y = linear(rf)
            turn_acc = factor_solve(mirror(S))(sub(rn, mul(B, y)))
            kept[i] = (turn_acc, sub(y, mul(transpose(Y), turn_acc)))
            J, B, M, n, f = None, None, None, tau[3:], tau[:3]
        else:
            kept[i] = []
            for k in reversed(range(body["n_v"])):
                x, y = column_axes(body)[k]
                Un, Uf = add(mul(J, x), mul(B, y)), add(mul(transpose(B), x), mul(M, y))
                inverse = reciprocal(dot(x, Un) + dot(y, Uf) + body["armature"][k])
                u = tau[k] - (dot(x, n) + dot(y, f))
                Nn, Nf = scale(inverse, Un), scale(inverse, Uf)
                gone = eliminated(x, y) if body["armature"][k] == 0.0 else None
                J = mirror([[reduced(gone, 0, p, c, J[p][c] - Nn[p] * Un[c]) for c in range(3)] for p in range(3)])
                B = [[reduced(gone, 1, p, c, B[p][c] - Nn[p] * Uf[c]) for c in range(3)] for p in range(3)]
                M = mirror([[reduced(gone, 2, p, c, M[p][c] - Nf[p] * Uf[c]) for c in range(3)] for p in range(3)])
                n, f = add(n, scale(u, Nn)), add(f, scale(u, Nf))
                kept[i].append((k, x, y, Nn, Nf, u * inverse))
        parent = body["parent"]
        if parent < 0:
            continue
        n, f = turn.up(n), turn.up(f)
        n = add(n, cross(r, f))
        if J is None:
            handed = ([[0.0] * 3] * 3, [[0.0] * 3] * 3, [[0.0] * 3] * 3, n, f)
        else:
            J, B, M = turn.up_symmetric(J), turn.up_matrix(B), turn.up_symmetric(M)
            S = skew(r)
            C = madd(B, matmul(S, M))
            left, right = matmul(S, transpose(C)), matmul(B, transpose(S))  # -B S(r) = B S(r)^T
            handed = (mirror(madd(madd(J, left), right)), C, M, n, f)
        X[parent] = (
            handed
            if X[parent] is None
            else tuple(add(a, b) if k > 2 else madd(a, b) for k, (a, b) in enumerate(zip(X[parent], handed, strict=True)))
        )
    outputs, beyond = [], []
    for i, body in enumerate(bodies):
        turn, r, *_ = moved[i]
        w, l = (ZERO, ZERO) if body["parent"] < 0 else beyond[body["parent"]]
        w, l = turn.down(w), turn.down(add(l, cross(w, r)))
        if body["kind"] == "free":
            w_new, l_new = kept[i]
            outputs += [(f"a[{body['v'] + k}]", x) for k, x in enumerate(sub(l_new, l) + sub(w_new, w))]
            w, l = w_new, l_new
        else:
            for k, x, y, Nn, Nf, u in reversed(kept[i]):
                a = u - (dot(Nn, w) + dot(Nf, l))
                outputs.append((f"a[{body['v'] + k}]", a))
                w, l = add(w, scale(a, x)), add(l, scale(a, y))
        beyond.append((w, l))
    return table.emit(outputs)


def eliminated(x, y):
    """Which coordinate of (turn, advance) a unit column without drive inertia removes: its row and column vanish exactly."""
    six = [*x, *y]
    return six.index(1.0) if six.count(1.0) == 1 and six.count(0.0) == 5 else None


def reduced(gone, block, p, c, value):
    """An entry of the reduced articulated inertia, zero on the row and column that were eliminated."""
    row, column = (p, c) if block == 0 else (p, c + 3) if block == 1 else (p + 3, c + 3)
    return 0.0 if gone is not None and gone in (row, column) else value


def inverse_dynamics(bodies, with_wrenches):
    """C text of the inverse dynamics tau(q, v, a) of the bodies, with or without wrenches on them."""
    table = Table()
    moved = motion(table, bodies, True)
    through = [None] * len(bodies)
    outputs = []
    for i in reversed(range(len(bodies))):
        body, (turn, r, w, e, g) = bodies[i], moved[i]
        n, f = body_wrench(table, body, w, e, g, with_wrenches)
        if through[i] is not None:
            n, f = add(n, through[i][0]), add(f, through[i][1])
        for k, (x, y) in enumerate(column_axes(body)):
            v = body["v"] + k
            outputs.append((f"tau[{v}]", dot(x, n) + dot(y, f) + body["armature"][k] * table.given(f"a[{v}]")))
        if body["parent"] >= 0:
            n, f = turn.up(n), turn.up(f)
            n = add(n, cross(r, f))
            at = through[body["parent"]]
            through[body["parent"]] = (n, f) if at is None else (add(at[0], n), add(at[1], f))
    return table.emit(outputs)


def mass_matrix(bodies, nv):
    """C text of the mass matrix H(q) (nv, nv) of the bodies."""
    table = Table()
    placed = [pose(table, body) for body in bodies]
    J, h, m = [symmetric(b["inertia"]) for b in bodies], [list(b["h"]) for b in bodies], [b["mass"] for b in bodies]
    H = {}
    for i in reversed(range(len(bodies))):
        body = bodies[i]
        columns = column_axes(body)
        for k, (x, y) in enumerate(columns):
            n, f = add(mul(J[i], x), cross(h[i], y)), add(cross(x, h[i]), scale(m[i], y))
            at, own = i, True
            while True:
                for c, (x2, y2) in enumerate(column_axes(bodies[at])):
                    if own and c > k:
                        continue
                    value = dot(x2, n) + dot(y2, f) + (body["armature"][k] if own and c == k else 0.0)
                    H[bodies[at]["v"] + c, body["v"] + k] = value
                if bodies[at]["parent"] < 0:
                    break
                turn, r = placed[at]
                n, f = turn.up(n), turn.up(f)
                n = add(n, cross(r, f))
                at, own = bodies[at]["parent"], False
        if body["parent"] >= 0:
            turn, r = placed[i]
            p = body["parent"]
            up_h = turn.up(h[i])
            k = add(up_h, scale(m[i], r))  # first moment about the parent's origin
            diagonal = [r[a] * (up_h[a] + k[a]) for a in range(3)]
            shift = [[0.0] * 3 for _ in range(3)]
            for a in range(3):
                for c in range(a, 3):
                    shift[a][c] = diagonal[(a + 1) % 3] + diagonal[(a + 2) % 3] if a == c else -(r[a] * k[c] + up_h[a] * r[c])
            J[p] = mirror(madd(J[p], mirror(madd(turn.up_symmetric(J[i]), shift))))
            h[p] = add(h[p], k)
            m[p] = m[p] + m[i]
    outputs = []
    for row in range(nv):
        for column in range(row, nv):
            value = H.get((row, column), H.get((column, row), 0.0))
            target = f"H[{row * nv + column}]" if row == column else f"H[{row * nv + column}] = H[{column * nv + row}]"
            outputs.append((target, value))
    return table.emit(outputs)


# ---- text, compiler, library --------------------------------------------------


def source(bodies: list[dict], nv: int) -> str:
    """The C file for a tree given as rows of constants (`Tree.constants`)."""
    n_angles = sum(body["sine"] >= 0 for body in bodies)
    sines = (
        "    double angle[ANGLES] ALIGNED, sine[ANGLES] ALIGNED, cosine[ANGLES] ALIGNED;\n"
        f"    for (int j = 0; j < ANGLES; ++j) angle[j] = j < {n_angles} ? q[ANGLE_Q[j]] : 0.0;\n"
        "    for (int j = 0; j < ANGLES; j += LANES) sincos_lanes((const lanes *)&angle[j], (lanes *)&sine[j], (lanes *)&cosine[j]);\n"
    )
    angle_q = {b["sine"]: b["q"] for b in bodies if b["sine"] >= 0}
    text = [
        f"/* generated, version {VERSION}: {len(bodies)} bodies, {nv} velocity coordinates */",
        '#include "tree_kernel.h"',
        f"#define ANGLES {-(-max(n_angles, 1) // 8) * 8}",
        "#define ALIGNED __attribute__((aligned(64)))",
        f"static const int ANGLE_Q[ANGLES] = {{{', '.join(str(angle_q[j]) for j in range(n_angles)) or '0'}}};",
        '#include "tree_sincos.inc"',
    ]
    state = "const TreeModel *M, TreeWork *W, const double *restrict q"
    guard = "    if (M->n_known | M->changed) {{ M->general.{0}(M, W, {1}); return; }}\n"
    start = "    const double *gravity = M->gravity;\n" + (sines if n_angles else "")

    def function(name: str, arguments: str, lines: list[str], head: str) -> None:
        text.append(f"static void {name}({state}, {arguments})\n{{\n{head}    " + "\n    ".join(lines) + "\n}")

    motion_in = "const double *restrict v, const double *restrict {}, const double *restrict f_ext, double *restrict {}"
    recursions = (("forward", "tau", "a", forward_dynamics), ("inverse", "a", "tau", inverse_dynamics))
    for name, given, result, make in recursions[nv > WORTHWHILE :]:
        for suffix, with_wrenches in (("", False), ("_wrenches", True)):
            function(name + suffix, motion_in.format(given, result), make(bodies, with_wrenches), start)
    text.append(
        f"static void inverse_dynamics({state}, const double *v, const double *a, const double *f_ext, double *tau,\n"
        "                             double *reactions)\n{\n"
        "    if (reactions || M->changed) { M->general.inverse_dynamics(M, W, q, v, a, f_ext, tau, reactions); return; }\n"
        "    (f_ext ? inverse_wrenches : inverse)(M, W, q, v, a, f_ext, tau);\n}"
    )
    table = "    out->inverse_dynamics = inverse_dynamics;\n"
    if nv <= WORTHWHILE:
        text.append(
            f"static void forward_dynamics({state}, const double *v, const double *tau, const double *f_ext, double *a)\n{{\n"
            + guard.format("forward_dynamics", "q, v, tau, f_ext, a")
            + "    (f_ext ? forward_wrenches : forward)(M, W, q, v, tau, f_ext, a);\n}"
        )
        head = "    if (M->changed) { M->general.mass_matrix(M, W, q, H); return; }\n" + (sines if n_angles else "")
        function("mass_matrix", "double *restrict H", mass_matrix(bodies, nv), head)
        table += "    out->forward_dynamics = forward_dynamics;\n    out->mass_matrix = mass_matrix;\n"
    text.append(f"void generated_kernels(TreeKernels *out)\n{{\n{table}}}\n")
    return "\n".join(text)


def compiler() -> str:
    """Path of a C compiler. Raises GenerationError if there is none."""
    for name in ("gcc", "cc", "clang"):
        path = shutil.which(name)
        if path:
            return path
    raise GenerationError("no C compiler (gcc, cc or clang) on the path")


def library(text: str, instruction_set: str, cache: Path | None = None) -> tuple[ctypes.CDLL, Path]:
    """The compiled text, from the cache when it was compiled before with these flags: by this compiler, or without one by any (the flags
    leave a compiler no choice of bits)."""
    headers = "".join((HEADERS / name).read_text() for name in ("tree_kernel.h", "tree_sincos.inc"))
    flags = [*OPTIMISE, *FLAGS, *SET_FLAGS[instruction_set], f"-DLANES={LANES[instruction_set]}"]
    folder = Path.home() / ".cache" / "hil-server" / "kernels" if cache is None else Path(cache)
    key = _hash(text, headers, *flags)
    try:
        command = compiler()
        version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    except GenerationError as error:
        kept = sorted(folder.glob(f"tree_{key}_*.so"))
        if not kept:
            raise GenerationError(f"{error}; and {folder} has none compiled before") from None
        target = kept[0]
    except (OSError, subprocess.CalledProcessError) as error:
        raise GenerationError(f"the C compiler {command} does not start: {error}") from None
    else:
        target = folder / f"tree_{key}_{_hash(version)}.so"
        if not target.exists():
            _compile(command, flags, text, target)
    try:
        return ctypes.CDLL(str(target)), target
    except OSError as error:
        raise GenerationError(f"{target}: cannot be loaded: {error}") from None


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _compile(command: str, flags: list[str], text: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        file, built = Path(scratch) / "tree.c", Path(scratch) / "tree.so"
        file.write_text(text)
        done = subprocess.run([command, *flags, f"-I{HEADERS}", str(file), "-o", str(built)], capture_output=True, text=True)
        if done.returncode != 0:
            raise GenerationError(f"{command} refused the generated kernel: {done.stderr[:500]}")
        os.replace(built, target)  # another process may have been as fast: the same bits
