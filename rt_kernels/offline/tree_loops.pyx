# distutils: extra_compile_args = -O1
"""Closed loops of a tree by separation of variables: each loop is cut at a joint, and the cut coordinates' consequences are eliminated.

With the constraint of the cuts differentiated, C_u u' + C_p p' + c = 0 (u independent, p dependent velocity coordinates; Yaskevich 2020 on
docking mechanisms, (1.3.4) with the signs restored):

    p = H u,   p' = H u' + h,   H = -C_p^-1 C_u,   h = -C_p^-1 c
    A* u' = b*,   A* = G^T M G,   b* = G^T (tau - bias - M [0; h]),   G = [1; H]                                  (2.3.4)
    lambda = C_p^-T (M a + bias - tau)_p       reaction at the cuts, on the second body of each cut, inertial axes

M and bias are the tree's own (composite bodies, recursive Newton-Euler).  C is the exact Jacobian of the closure, so positions are closed
by Newton.  A cut removes three (spherical) or four (universal) relative coordinates.  No degree of freedom, no multiplier and no drift
term is integrated: velocities are projected, positions closed.
"""

import numpy as np

from rt_kernels.model.bodies import ModelError

cimport numpy as cnp
from libc.stdlib cimport calloc, free

from rt_kernels.multibody.tree cimport Tree, TreeModel, TreeWork, TreeFrame

cnp.import_array()


ctypedef struct Cut:
    int slot[2]               # bodies, -1 the inertial frame
    double point[2][3]        # cut joint's centre, aligned frames
    double axis[2][3]         # universal: cross axes on the two bodies, aligned frames
    int universal
    int row                   # first constraint row


ctypedef struct Loops:
    TreeModel *model
    TreeWork *work
    int n_cuts, n_rows, n_u   # n_rows dependent and n_u independent coordinates
    Cut *cut
    int *u                    # v index of the independent coordinates
    int *p                    # v index of the dependent ones
    double *J                 # n_rows x nv
    double *c                 # n_rows
    double *f                 # n_rows: closure
    double *rows              # 18 per slot
    double *Ja                # 6 x nv, twice
    double *Jb
    double *LU                # n_rows x n_rows
    double *B                 # n_rows x (n_u + 1): H and h
    double *M                 # nv x nv
    double *bias              # nv
    double *A                 # n_u x n_u
    double *b                 # n_u
    double *x                 # nv
    double *zero              # nv, zeros


# ---- dense elimination, row pivoting -------------------------------------------------------------------------------------------------

cdef int solve_dense(int n, double *A, int columns, double *B) noexcept nogil:
    """A X = B in place (row-major, A destroyed); 0 when a pivot vanishes."""
    cdef int i, j, k, best
    cdef double size, t
    for k in range(n):
        best = k
        size = abs_(A[k * n + k])
        for i in range(k + 1, n):
            if abs_(A[i * n + k]) > size:
                size = abs_(A[i * n + k])
                best = i
        if not size > 1e-300:
            return 0
        if best != k:
            for j in range(n):
                t = A[k * n + j]; A[k * n + j] = A[best * n + j]; A[best * n + j] = t
            for j in range(columns):
                t = B[k * columns + j]; B[k * columns + j] = B[best * columns + j]; B[best * columns + j] = t
        for i in range(k + 1, n):
            t = A[i * n + k] / A[k * n + k]
            if t != 0.0:
                for j in range(k + 1, n):
                    A[i * n + j] -= t * A[k * n + j]
                for j in range(columns):
                    B[i * columns + j] -= t * B[k * columns + j]
    for k in range(n - 1, -1, -1):
        for j in range(columns):
            t = B[k * columns + j]
            for i in range(k + 1, n):
                t -= A[k * n + i] * B[i * columns + j]
            B[k * columns + j] = t / A[k * n + k]
    return 1


cdef inline double abs_(double x) noexcept nogil:
    return -x if x < 0.0 else x


cdef inline void cross(const double *a, const double *b, double *out) noexcept nogil:
    cdef double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0]
    out[0] = x; out[1] = y; out[2] = z


cdef inline double dot(const double *a, const double *b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline void rotate(const double *R, const double *a, double *out) noexcept nogil:
    cdef int k
    for k in range(3):
        out[k] = R[3 * k] * a[0] + R[3 * k + 1] * a[1] + R[3 * k + 2] * a[2]


# ---- closure, its Jacobian and its bias ------------------------------------------------------------------------------------------------

cdef void arm_and_axis(const Loops *L, const Cut *cut, int side, double *p, double *r, double *axis) noexcept nogil:
    """Cut centre p, arm from the body's joint origin r, cross axis: inertial axes."""
    cdef int k
    cdef const double *row
    if cut.slot[side] < 0:
        for k in range(3):
            p[k] = cut.point[side][k]; r[k] = cut.point[side][k]; axis[k] = cut.axis[side][k]
        return
    row = L.rows + 18 * cut.slot[side]
    rotate(row, cut.point[side], r)
    rotate(row, cut.axis[side], axis)
    for k in range(3):
        p[k] = row[9 + k] + r[k]


cdef void closure(Loops *L, const double *q) noexcept nogil:
    """f, the gaps of all cuts, and J, its derivative with respect to the velocity coordinates."""
    cdef int i, j, k, nv = L.model.nv
    cdef Cut *cut
    cdef double pa[3]
    cdef double pb[3]
    cdef double ra[3]
    cdef double rb[3]
    cdef double ea[3]
    cdef double eb[3]
    cdef double n[3]
    L.model.operations.motion(L.model, q, NULL, L.zero, L.rows)
    for i in range(L.n_cuts):
        cut = &L.cut[i]
        arm_and_axis(L, cut, 0, pa, ra, ea)
        arm_and_axis(L, cut, 1, pb, rb, eb)
        side_jacobian(L, cut, 0, L.Ja)
        side_jacobian(L, cut, 1, L.Jb)
        for k in range(3):
            L.f[cut.row + k] = pb[k] - pa[k]
            for j in range(nv):
                L.J[(cut.row + k) * nv + j] = L.Jb[k * nv + j] - L.Ja[k * nv + j]
        if cut.universal:
            # e_a . e_b = 0; its rate is (e_a x e_b) . (w_a - w_b)
            L.f[cut.row + 3] = dot(ea, eb)
            cross(ea, eb, n)
            for j in range(nv):
                L.J[(cut.row + 3) * nv + j] = (n[0] * (L.Ja[3 * nv + j] - L.Jb[3 * nv + j]) + n[1] * (L.Ja[4 * nv + j] - L.Jb[4 * nv + j])
                                               + n[2] * (L.Ja[5 * nv + j] - L.Jb[5 * nv + j]))


cdef void side_jacobian(Loops *L, const Cut *cut, int side, double *J) noexcept nogil:
    cdef int k
    if cut.slot[side] < 0:
        for k in range(6 * L.model.nv):
            J[k] = 0.0
    else:
        L.model.operations.jacobian(L.model, L.rows, cut.slot[side], cut.point[side], J)


cdef void point_bias(const Loops *L, const Cut *cut, int side, const double *r, double *w, double *e, double *g) noexcept nogil:
    """Angular velocity, angular and linear acceleration of the cut centre with zero joint accelerations (gravity taken off)."""
    cdef int k, slot = cut.slot[side]
    cdef const TreeFrame *frame
    cdef double er[3]
    cdef double wr[3]
    for k in range(3):
        w[k] = e[k] = 0.0
        g[k] = -L.model.gravity[k]
    if slot < 0:
        return
    frame = &L.work.frame[slot]
    for k in range(3):
        w[k] = frame.w[k]
        e[k] = frame.e[k]
        g[k] = frame.g[k]
    cross(e, r, er)
    cross(w, r, wr)
    cross(w, wr, wr)
    for k in range(3):
        g[k] += er[k] + wr[k]


cdef void closure_bias(Loops *L) noexcept nogil:
    """c of J a + c = 0; the tree's inverse dynamics with zero accelerations must have run."""
    cdef int i, k
    cdef Cut *cut
    cdef double p[3]
    cdef double r[2][3]
    cdef double axis[2][3]
    cdef double w[2][3]
    cdef double e[2][3]
    cdef double g[2][3]
    cdef double n[3]
    cdef double rate[3]
    cdef double turn[3]
    for i in range(L.n_cuts):
        cut = &L.cut[i]
        for k in range(2):
            arm_and_axis(L, cut, k, p, r[k], axis[k])
            point_bias(L, cut, k, r[k], w[k], e[k], g[k])
        for k in range(3):
            L.c[cut.row + k] = g[1][k] - g[0][k]
        if cut.universal:
            # d/dt of n . (w_a - w_b), n = e_a x e_b: both axes turn with their bodies
            cross(axis[0], axis[1], n)
            cross(w[0], axis[0], rate)
            cross(rate, axis[1], rate)
            cross(w[1], axis[1], turn)
            cross(axis[0], turn, turn)
            L.c[cut.row + 3] = 0.0
            for k in range(3):
                L.c[cut.row + 3] += n[k] * (e[0][k] - e[1][k]) + (rate[k] + turn[k]) * (w[0][k] - w[1][k])


cdef int dependent(Loops *L, const double *extra, double sign) noexcept nogil:
    """B = [-C_p^-1 C_u, -C_p^-1 (sign extra)]: H, and a column for closure or bias."""
    cdef int i, j, nv = L.model.nv, width = L.n_u + 1
    for i in range(L.n_rows):
        for j in range(L.n_rows):
            L.LU[i * L.n_rows + j] = L.J[i * nv + L.p[j]]
        for j in range(L.n_u):
            L.B[i * width + j] = -L.J[i * nv + L.u[j]]
        L.B[i * width + L.n_u] = -sign * extra[i]
    return solve_dense(L.n_rows, L.LU, width, L.B)


# ---- the steps -------------------------------------------------------------------------------------------------------------------------

cdef int loops_velocity(Loops *L, const double *q, double *v) noexcept nogil:
    """Dependent velocities from the independent ones: p = H u."""
    cdef int i, j, width = L.n_u + 1
    closure(L, q)
    if not dependent(L, L.f, 0.0):
        return 0
    for i in range(L.n_rows):
        v[L.p[i]] = 0.0
        for j in range(L.n_u):
            v[L.p[i]] += L.B[i * width + j] * v[L.u[j]]
    return 1


cdef double loops_newton(Loops *L, double *q) noexcept nogil:
    """One Newton step of the dependent positions; the largest gap before it, negative when singular."""
    cdef int i
    cdef double gap = 0.0
    closure(L, q)
    for i in range(L.n_rows):
        gap = gap if gap > abs_(L.f[i]) else abs_(L.f[i])
    if not dependent(L, L.f, 1.0):
        return -1.0
    for i in range(L.model.nv):
        L.x[i] = 0.0
    for i in range(L.n_rows):
        L.x[L.p[i]] = L.B[i * (L.n_u + 1) + L.n_u]
    L.model.operations.integrate(L.model, q, L.x, 1.0)
    return gap


cdef int loops_dynamics(Loops *L, const double *q, const double *v, const double *tau, const double *f_ext, double *a,
                        double *reaction) noexcept nogil:
    """Accelerations of all coordinates and the reactions at the cuts; 0 when the mechanism is singular."""
    cdef int i, j, k, nv = L.model.nv, nu = L.n_u, width = L.n_u + 1
    cdef double t
    L.model.general.mass_matrix(L.model, L.work, q, L.M)
    L.model.general.inverse_dynamics(L.model, L.work, q, v, L.zero, f_ext, L.bias, NULL)
    closure(L, q)
    closure_bias(L)
    if not dependent(L, L.c, 1.0):
        return 0
    # x = tau - bias - M [0; h]
    for i in range(nv):
        L.x[i] = tau[i] - L.bias[i]
        for k in range(L.n_rows):
            L.x[i] -= L.M[i * nv + L.p[k]] * L.B[k * width + nu]
    # M G column by column, then G^T (M G) and G^T x
    for j in range(nu):
        for i in range(nv):
            t = L.M[i * nv + L.u[j]]
            for k in range(L.n_rows):
                t += L.M[i * nv + L.p[k]] * L.B[k * width + j]
            a[i] = t
        for i in range(nu):
            t = a[L.u[i]]
            for k in range(L.n_rows):
                t += L.B[k * width + i] * a[L.p[k]]
            L.A[i * nu + j] = t
        L.b[j] = L.x[L.u[j]]
        for k in range(L.n_rows):
            L.b[j] += L.B[k * width + j] * L.x[L.p[k]]
    if not solve_dense(nu, L.A, 1, L.b):
        return 0
    for j in range(nu):
        a[L.u[j]] = L.b[j]
    for k in range(L.n_rows):
        t = L.B[k * width + nu]
        for j in range(nu):
            t += L.B[k * width + j] * L.b[j]
        a[L.p[k]] = t
    # reactions: C_p^T lambda = (M a + bias - tau)_p
    for i in range(L.n_rows):
        for j in range(L.n_rows):
            L.LU[i * L.n_rows + j] = L.J[j * nv + L.p[i]]
        t = L.bias[L.p[i]] - tau[L.p[i]]
        for k in range(nv):
            t += L.M[L.p[i] * nv + k] * a[k]
        reaction[i] = t
    return solve_dense(L.n_rows, L.LU, 1, reaction)


# ---- the class -------------------------------------------------------------------------------------------------------------------------

cdef class ClosedTree:
    """A tree with cut joints.

    ClosedTree(tree, cuts, independent): `cuts` a list of dicts with `bodies` (two names, None: the inertial frame), `points` (cut centre
    on each, its own joint frame) and for a universal cut `axes` (the cross axis on each); `independent` the names of the joints whose
    coordinates are free.  The others must be as many as the constraints.  Raises ModelError.
    """

    cdef readonly Tree tree
    cdef readonly list independent
    cdef Loops loops
    cdef double *memory
    cdef int *indices

    def __init__(self, Tree tree, cuts, independent):
        self.tree, self.independent = tree, list(independent)
        cdef Loops *L = &self.loops
        free_v = sorted(k for name in self.independent for k in range(*tree.coordinates(name)[1].indices(tree.nv)))
        dependent_v = [k for k in range(tree.nv) if k not in free_v]
        rows = sum(4 if "axes" in cut else 3 for cut in cuts)
        if rows != len(dependent_v):
            raise ModelError(f"{rows} constraint rows for {len(dependent_v)} dependent coordinates: the numbers must be equal")
        cdef int nv = tree.nv, nu = len(free_v), n = tree.n
        L.model, L.work = tree.model, tree.work
        L.n_cuts, L.n_rows, L.n_u = len(cuts), rows, nu
        L.cut = <Cut *>calloc(len(cuts) or 1, sizeof(Cut))
        self.indices = <int *>calloc(nv, sizeof(int))
        sizes = [rows * nv, rows, rows, 18 * n, 6 * nv, 6 * nv, rows * rows, rows * (nu + 1), nv * nv, nv, nu * nu, nu, nv, max(nv, 3)]
        self.memory = <double *>calloc(sum(sizes), sizeof(double))
        if not (L.cut and self.indices and self.memory):
            raise MemoryError("no memory for the loops")
        L.u = self.indices
        L.p = self.indices + nu
        for i, k in enumerate(free_v + dependent_v):
            self.indices[i] = k
        self._place(sizes)
        row = 0
        for i, cut in enumerate(cuts):
            row += self._fill(i, row, cut)

    cdef int _place(self, list sizes) except -1:
        cdef Loops *L = &self.loops
        cdef double *at = self.memory
        L.J = at; at += <int>sizes[0]
        L.c = at; at += <int>sizes[1]
        L.f = at; at += <int>sizes[2]
        L.rows = at; at += <int>sizes[3]
        L.Ja = at; at += <int>sizes[4]
        L.Jb = at; at += <int>sizes[5]
        L.LU = at; at += <int>sizes[6]
        L.B = at; at += <int>sizes[7]
        L.M = at; at += <int>sizes[8]
        L.bias = at; at += <int>sizes[9]
        L.A = at; at += <int>sizes[10]
        L.b = at; at += <int>sizes[11]
        L.x = at; at += <int>sizes[12]
        L.zero = at
        return 0

    cdef int _fill(self, int i, int row, dict cut) except -1:
        cdef Cut *at = &self.loops.cut[i]
        at.row, at.universal = row, 1 if "axes" in cut else 0
        names = [b.name for b in self.tree.bodies]
        for side in range(2):
            name = cut["bodies"][side]
            if name is not None and name not in names:
                raise ModelError(f"cut {i}: unknown body '{name}'")
            slot = -1 if name is None else self.tree.slot_of(names.index(name))
            align = np.eye(3) if name is None else self.tree._align(slot)
            at.slot[side] = slot
            point = align.T @ np.asarray(cut["points"][side], dtype=float)
            axis = align.T @ np.asarray(cut["axes"][side], dtype=float) if at.universal else np.zeros(3)
            for k in range(3):
                at.point[side][k] = point[k]
                at.axis[side][k] = axis[k]
        return 4 if at.universal else 3

    def __dealloc__(self):
        free(self.loops.cut)
        free(self.indices)
        free(self.memory)

    def close(self, q, tolerance=1e-13, steps=30):
        """q with the dependent positions moved until every gap is below `tolerance` [m, rad]; raises ModelError when it cannot."""
        cdef cnp.ndarray out = np.array(q, dtype=np.float64)
        if (<object>out).shape != (self.tree.nq,):
            raise ValueError(f"q: shape {np.shape(q)}, {(self.tree.nq,)} is needed")
        cdef double gap = 0.0
        for _ in range(steps):
            gap = loops_newton(&self.loops, <double *>cnp.PyArray_DATA(out))
            if not 0.0 <= gap < 1e100:
                break
            if gap < tolerance:
                return out
        raise ModelError(f"the loops do not close: gap {gap:g} after {steps} Newton steps (out of reach or singular)")

    def project(self, q, v):
        """v with the dependent velocities that the loops demand."""
        cdef cnp.ndarray q_ = np.ascontiguousarray(q, dtype=np.float64), out = np.array(v, dtype=np.float64)
        if (<object>out).shape != (self.tree.nv,) or np.shape(q) != (self.tree.nq,):
            raise ValueError(f"q, v: shapes {np.shape(q)}, {np.shape(v)}, {(self.tree.nq,)}, {(self.tree.nv,)} are needed")
        if not loops_velocity(&self.loops, <double *>cnp.PyArray_DATA(q_), <double *>cnp.PyArray_DATA(out)):
            raise ModelError("the mechanism is singular here")
        return out

    def forward_dynamics(self, q, v, tau, f_ext=None):
        """(a, reactions): accelerations (nv,) and per cut row the reaction on its second body, inertial axes (4th row:
        moment about e_a x e_b).

        q must be closed and v projected.
        """
        arrays = [np.ascontiguousarray(x, dtype=np.float64) for x in (q, v, tau)]
        for name, array, n in zip(("q", "v", "tau"), arrays, (self.tree.nq, self.tree.nv, self.tree.nv), strict=True):
            if array.shape != (n,):
                raise ValueError(f"{name}: shape {array.shape}, {(n,)} is needed")
        cdef cnp.ndarray q_ = arrays[0], v_ = arrays[1], t_ = arrays[2], a = np.empty(self.tree.nv), reaction = np.empty(self.loops.n_rows)
        cdef cnp.ndarray w_
        cdef double *wrenches = NULL
        if f_ext is not None:
            w_ = np.ascontiguousarray(f_ext, dtype=np.float64)
            if (<object>w_).shape != (self.tree.n_bodies, 6):
                raise ValueError(f"f_ext: shape {(<object>w_).shape}, {(self.tree.n_bodies, 6)} is needed")
            wrenches = <double *>cnp.PyArray_DATA(w_)
        if not loops_dynamics(&self.loops, <double *>cnp.PyArray_DATA(q_), <double *>cnp.PyArray_DATA(v_), <double *>cnp.PyArray_DATA(t_),
                              wrenches,
                              <double *>cnp.PyArray_DATA(a), <double *>cnp.PyArray_DATA(reaction)):
            raise ModelError("the mechanism is singular here")
        return a, reaction
