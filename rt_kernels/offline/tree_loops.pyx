# distutils: extra_compile_args = -O1
"""Closed loops of a tree by separation of variables: each loop is cut at a joint, and the cut coordinates' consequences are eliminated.

With the constraint of the cuts differentiated, C_u u' + C_p p' + c = 0 (u independent, p dependent velocity coordinates; Yaskevich 2020 on
docking mechanisms, (1.3.4) with the signs restored):

    p = H u,   p' = H u' + h,   H = -C_p^-1 C_u,   h = -C_p^-1 c
    A* u' = b*,   A* = G^T M G,   b* = G^T (tau - bias - M [0; h]),   G = [1; H]                                  (2.3.4)
    lambda = C_p^-T (M a + bias - tau)_p       reaction at the cuts, on the second body of each cut, inertial axes

M and bias are the tree's own (composite bodies, recursive Newton-Euler).  C is the exact Jacobian of the closure, so positions are closed
by Newton.  No multiplier and no drift term is integrated: velocities are projected, positions closed.

A cut is a joint between two bodies of the tree.  With the cut centres p_a, p_b, d = p_b - p_a, axes n and e_a fixed in the first body and
e_b in the second, its rows and their derivatives are

    n . d = 0            n . (v_b - v_a - w_a x d)      n . (g_b - g_a - e_a x d - w_a x (w_a x d) - 2 w_a x (v_b - v_a - w_a x d))
    e_a . e_b = 0        (e_a x e_b) . (w_a - w_b)      and its derivative

The same cuts close a planar linkage: the elimination takes the best rows as pivots and leaves out the redundant ones.  The reactions of
such a loop are not determined; the smallest ones are given.

Where C_p is singular (an arm of dependent joints stretched out) the choice of independent coordinates fails although the mechanism may
move on; close to it digits are lost. Another choice has its singular positions elsewhere.

A prescribed independent coordinate keeps its row of A* u' = b* for the torque that it needs; the others are solved with its u' given.
"""

from difflib import get_close_matches

import numpy as np

from rt_kernels.model.bodies import ModelError

cimport numpy as cnp
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free

from rt_kernels.algebra.values cimport Vec3, add, cross, dot, mat, mat_vec, mul, neg, put, sub, vec, xyz
from rt_kernels.multibody.tree cimport Tree, TreeFrame

cnp.import_array()

# kind of a cut: (rows of position, rows of direction, what it needs beside the points)
_CUTS = {"spherical": (3, 0, None), "universal": (3, 1, "axes"), "revolute": (3, 2, "axes"), "cylindrical": (2, 2, "axes"),
         "prismatic": (2, 3, "rotations"), "fixed": (3, 3, "rotations")}


# ---- dense elimination, row pivoting -------------------------------------------------------------------------------------------------

cdef int solve_dense(int rows, int n, double *A, int columns, double *B, double least) noexcept nogil:
    """A X = B in place (row-major, A destroyed), A of `rows` >= n rows and n columns: the n best decide, X is in the first n rows of B.

    0 when a pivot is not above `least` times the largest number of A.
    """
    cdef int i, j, k, best
    cdef double size, t, scale = 0.0
    for i in range(rows * n):
        scale = scale if scale > abs_(A[i]) else abs_(A[i])
    for k in range(n):
        best = k
        size = abs_(A[k * n + k])
        for i in range(k + 1, rows):
            if abs_(A[i * n + k]) > size:
                size = abs_(A[i * n + k])
                best = i
        if not size > least * scale or not size > 1e-300:
            return 0
        if best != k:
            for j in range(n):
                t = A[k * n + j]; A[k * n + j] = A[best * n + j]; A[best * n + j] = t
            for j in range(columns):
                t = B[k * columns + j]; B[k * columns + j] = B[best * columns + j]; B[best * columns + j] = t
        for i in range(k + 1, rows):
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


cdef inline Vec3 column(const double *A, int n, int j) noexcept nogil:
    # of a (3, n) matrix
    return xyz(A[j], A[n + j], A[2 * n + j])


# ---- closure, its Jacobian and its bias ------------------------------------------------------------------------------------------------

cdef inline int slot_of(const Loops *L, const Cut *cut, int side) noexcept nogil:
    return -1 if cut.number[side] < 0 else L.model.slot[cut.number[side]]


cdef inline Vec3 on_inertial(const Loops *L, const Cut *cut, int side, Vec3 fixed) noexcept nogil:
    """An axis fixed in the body on this side, on inertial axes."""
    cdef int slot = slot_of(L, cut, side)
    return fixed if slot < 0 else mat_vec(mat(L.rows + 18 * slot), fixed)


cdef inline Vec3 arm(const Loops *L, const Cut *cut, int side) noexcept nogil:
    """From the body's joint origin to the cut centre: inertial axes."""
    return on_inertial(L, cut, side, cut.point[side])


cdef inline Vec3 centre(const Loops *L, const Cut *cut, int side) noexcept nogil:
    """Cut centre: inertial axes."""
    cdef int slot = slot_of(L, cut, side)
    return arm(L, cut, side) if slot < 0 else add(vec(L.rows + 18 * slot + 9), arm(L, cut, side))


cdef void side_jacobian(Loops *L, const Cut *cut, int side, double *J) noexcept nogil:
    cdef int k, slot = slot_of(L, cut, side)
    if slot < 0:
        for k in range(6 * L.model.nv):
            J[k] = 0.0
    else:
        L.model.operations.jacobian(L.model, L.rows, slot, &cut.point[side].x, J)


cdef void closure(Loops *L, const double *q, const double *v) noexcept nogil:
    """f, the gaps of all cuts, and J, its derivative with respect to the velocity coordinates; v (may be NULL): the slides too."""
    cdef int i, j, k, row, nv = L.model.nv
    cdef const double *W_a = L.Ja + 3 * nv
    cdef const double *W_b = L.Jb + 3 * nv
    cdef Cut *cut
    cdef Vec3 d, n, r, w, e_a, e_b
    L.model.operations.motion(L.model, q, NULL, L.zero, L.rows)
    for i in range(L.n_cuts):
        cut = &L.cut[i]
        side_jacobian(L, cut, 0, L.Ja)
        side_jacobian(L, cut, 1, L.Jb)
        d = sub(centre(L, cut, 1), centre(L, cut, 0))
        for k in range(cut.n_along):
            # n . d = 0, n turning with the first body; n . (w_a x d) = w_a . (d x n)
            row = cut.row + k
            n = on_inertial(L, cut, 0, cut.along[k])
            r = cross(d, n)
            L.f[row] = dot(n, d)
            for j in range(nv):
                w = column(W_a, nv, j)
                L.J[row * nv + j] = dot(n, sub(column(L.Jb, nv, j), column(L.Ja, nv, j))) - r.x * w.x - r.y * w.y - r.z * w.z
        for k in range(cut.n_across):
            # e_a . e_b = 0; its rate is (e_a x e_b) . (w_a - w_b)
            row = cut.row + cut.n_along + k
            e_a = on_inertial(L, cut, 0, cut.across[0][k])
            e_b = on_inertial(L, cut, 1, cut.across[1][k])
            n = cross(e_a, e_b)
            L.f[row] = dot(e_a, e_b)
            for j in range(nv):
                L.J[row * nv + j] = dot(n, sub(column(W_a, nv, j), column(W_b, nv, j)))
        if v == NULL:
            continue
        cut.slide = w = xyz(0.0, 0.0, 0.0)
        for j in range(nv):
            cut.slide = add(cut.slide, mul(v[j], sub(column(L.Jb, nv, j), column(L.Ja, nv, j))))
            w = add(w, mul(v[j], column(W_a, nv, j)))
        cut.slide = sub(cut.slide, cross(w, d))


cdef struct Bias:                # of a cut centre with zero joint accelerations, inertial axes
    Vec3 w                       # angular velocity
    Vec3 e                       # angular acceleration
    Vec3 g                       # acceleration, gravity taken off


cdef Bias point_bias(const Loops *L, const Cut *cut, int side) noexcept nogil:
    """Motion of the cut centre as a point of the body on this side."""
    cdef int slot = slot_of(L, cut, side)
    cdef const TreeFrame *frame
    cdef Bias b
    cdef Vec3 r
    if slot < 0:
        b.w = b.e = xyz(0.0, 0.0, 0.0)
        b.g = neg(vec(L.model.gravity))
        return b
    frame = &L.work.frame[slot]
    r = arm(L, cut, side)
    b.w = vec(frame.w)
    b.e = vec(frame.e)
    b.g = add(vec(frame.g), add(cross(b.e, r), cross(b.w, cross(b.w, r))))
    return b


cdef void closure_bias(Loops *L) noexcept nogil:
    """c of J a + c = 0; the tree's inverse dynamics with zero accelerations, and `closure` with v, must have run."""
    cdef int i, k
    cdef Cut *cut
    cdef Bias a, b
    cdef Vec3 d, relative, e_a, e_b, n, rate, w, e
    cdef double c
    for i in range(L.n_cuts):
        cut = &L.cut[i]
        a = point_bias(L, cut, 0)
        b = point_bias(L, cut, 1)
        d = sub(centre(L, cut, 1), centre(L, cut, 0))
        # acceleration of the second centre relative to the turning first body: - w_a x (w_a x d + 2 slide) - e_a x d
        relative = sub(sub(sub(b.g, a.g), cross(a.w, add(cross(a.w, d), mul(2.0, cut.slide)))), cross(a.e, d))
        for k in range(cut.n_along):
            L.c[cut.row + k] = dot(on_inertial(L, cut, 0, cut.along[k]), relative)
        for k in range(cut.n_across):
            # d/dt of n . (w_a - w_b), n = e_a x e_b: both axes turn with their bodies
            e_a = on_inertial(L, cut, 0, cut.across[0][k])
            e_b = on_inertial(L, cut, 1, cut.across[1][k])
            n = cross(e_a, e_b)
            rate = add(cross(cross(a.w, e_a), e_b), cross(e_a, cross(b.w, e_b)))
            w = sub(a.w, b.w)
            e = sub(a.e, b.e)
            c = 0.0
            c += n.x * e.x + rate.x * w.x
            c += n.y * e.y + rate.y * w.y
            c += n.z * e.z + rate.z * w.z
            L.c[cut.row + cut.n_along + k] = c


cdef int dependent(Loops *L, const double *extra, double sign) noexcept nogil:
    """B = [-C_p^-1 C_u, -C_p^-1 (sign extra)]: H, and a column for closure or bias. 0 when C_p is singular."""
    cdef int i, j, nv = L.model.nv, width = L.n_u + 1
    for i in range(L.n_rows):
        for j in range(L.n_p):
            L.LU[i * L.n_p + j] = L.J[i * nv + L.p[j]]
        for j in range(L.n_u):
            L.B[i * width + j] = -L.J[i * nv + L.u[j]]
        L.B[i * width + L.n_u] = -sign * extra[i]
    return solve_dense(L.n_rows, L.n_p, L.LU, width, L.B, 1e-12)


# ---- the steps -------------------------------------------------------------------------------------------------------------------------

cdef int loops_velocity(Loops *L, const double *q, double *v) noexcept nogil:
    """Dependent velocities from the independent ones, p = H u; locked ones are zero."""
    cdef int i, j, width = L.n_u + 1
    closure(L, q, NULL)
    if not dependent(L, L.f, 0.0):
        return 0
    for i in range(L.model.nv):
        L.x[i] = 0.0
    for j in range(L.n_u):
        L.x[L.u[j]] = v[L.u[j]]
    for i in range(L.n_p):
        for j in range(L.n_u):
            L.x[L.p[i]] += L.B[i * width + j] * v[L.u[j]]
    for i in range(L.model.nv):
        v[i] = L.x[i]
    return 1


cdef double gap_of(Loops *L) noexcept nogil:
    """The largest gap [m, -]; not a number where one is not."""
    cdef int i
    cdef double gap = 0.0
    for i in range(L.n_rows):
        if not abs_(L.f[i]) <= gap:
            gap = abs_(L.f[i])
    return gap


cdef double loops_newton(Loops *L, double *q) noexcept nogil:
    """One Newton step of the dependent positions; the largest gap before it, negative when singular."""
    cdef int i
    closure(L, q, NULL)
    cdef double gap = gap_of(L)
    if not dependent(L, L.f, 1.0):
        return -1.0
    for i in range(L.model.nv):
        L.x[i] = 0.0
    for i in range(L.n_p):
        L.x[L.p[i]] = L.B[i * (L.n_u + 1) + L.n_u]
    L.model.operations.integrate(L.model, q, L.x, 1.0)
    return gap


cdef int loops_settle(Loops *L, double *q, double *v) noexcept nogil:
    """Positions closed to rounding and velocities projected after a step of an integrator; 0 when it cannot be done."""
    cdef double gap, before = 1e300
    for _ in range(12):
        gap = loops_newton(L, q)
        if not 0.0 <= gap < 1e100:
            return 0
        # closed, or as near as rounding lets it come
        if gap < 1e-13 or (gap < 1e-9 and gap > 0.25 * before):
            return loops_velocity(L, q, v)
        before = gap
    return 0


cdef int loops_dynamics(Loops *L, const double *q, const double *v, double *tau, const double *f_ext, const uint8_t *known, double *a,
                        double *reaction) noexcept nogil:
    """Accelerations of all coordinates and the reactions at the cuts; 0 when the mechanism is singular.

    known (may be NULL): independent coordinates whose acceleration is given in a; their torques come back in tau.
    reaction (n_cuts, 6): force and moment on the second body about its cut centre, inertial axes.
    """
    cdef int i, j, k, nv = L.model.nv, nu = L.n_u, n_p = L.n_p, width = L.n_u + 1
    cdef double t
    cdef Cut *cut
    cdef Vec3 f, m
    L.model.general.mass_matrix(L.model, L.work, q, L.M)
    L.model.general.inverse_dynamics(L.model, L.work, q, v, L.zero, f_ext, L.bias, NULL)
    closure(L, q, v)
    closure_bias(L)
    if not dependent(L, L.c, 1.0):
        return 0
    # x = tau - bias - M [0; h]
    for i in range(nv):
        L.x[i] = (0.0 if known != NULL and known[i] else tau[i]) - L.bias[i]
        for k in range(n_p):
            L.x[i] -= L.M[i * nv + L.p[k]] * L.B[k * width + nu]
    # M G column by column, then G^T (M G) and G^T x
    for j in range(nu):
        for i in range(nv):
            t = L.M[i * nv + L.u[j]]
            for k in range(n_p):
                t += L.M[i * nv + L.p[k]] * L.B[k * width + j]
            L.y[i] = t
        for i in range(nu):
            t = L.y[L.u[i]]
            for k in range(n_p):
                t += L.B[k * width + i] * L.y[L.p[k]]
            L.A[i * nu + j] = t
        L.b[j] = L.x[L.u[j]]
        for k in range(n_p):
            L.b[j] += L.B[k * width + j] * L.x[L.p[k]]
    # row of a given coordinate: u' = a
    for i in range(nu):
        for j in range(nu):
            L.A_solved[i * nu + j] = L.A[i * nu + j]
        L.b_solved[i] = L.b[i]
        if known != NULL and known[L.u[i]]:
            for j in range(nu):
                L.A_solved[i * nu + j] = 1.0 if i == j else 0.0
            L.b_solved[i] = a[L.u[i]]
    if not solve_dense(nu, nu, L.A_solved, 1, L.b_solved, 0.0):
        return 0
    for i in range(nv):
        a[i] = 0.0
    for j in range(nu):
        a[L.u[j]] = L.b_solved[j]
    for k in range(n_p):
        t = L.B[k * width + nu]
        for j in range(nu):
            t += L.B[k * width + j] * L.b_solved[j]
        a[L.p[k]] = t
    # the torque that a given coordinate needs
    if known != NULL:
        for i in range(nu):
            if known[L.u[i]]:
                t = -L.b[i]
                for j in range(nu):
                    t += L.A[i * nu + j] * L.b_solved[j]
                tau[L.u[i]] = t
    # reactions: C_p^T lambda = (M a + bias - tau)_p, the smallest lambda where rows are more than coordinates
    for i in range(n_p):
        t = L.bias[L.p[i]] - tau[L.p[i]]
        for k in range(nv):
            t += L.M[L.p[i] * nv + k] * a[k]
        L.force[i] = t
        for j in range(n_p):
            if L.n_rows == n_p:
                L.LU[i * n_p + j] = L.J[j * nv + L.p[i]]
            else:
                L.LU[i * n_p + j] = 0.0
                for k in range(L.n_rows):
                    L.LU[i * n_p + j] += L.J[k * nv + L.p[i]] * L.J[k * nv + L.p[j]]
    if not solve_dense(n_p, n_p, L.LU, 1, L.force, 0.0):
        return 0
    if L.n_rows != n_p:
        for i in range(n_p):
            L.x[i] = L.force[i]
        for k in range(L.n_rows):
            L.force[k] = 0.0
            for i in range(n_p):
                L.force[k] += L.J[k * nv + L.p[i]] * L.x[i]
    for i in range(L.n_cuts):
        cut = &L.cut[i]
        f = m = xyz(0.0, 0.0, 0.0)
        for j in range(cut.n_along):
            f = add(f, mul(L.force[cut.row + j], on_inertial(L, cut, 0, cut.along[j])))
        for j in range(cut.n_across):
            m = sub(m, mul(L.force[cut.row + cut.n_along + j], cross(on_inertial(L, cut, 0, cut.across[0][j]),
                                                                     on_inertial(L, cut, 1, cut.across[1][j]))))
        put(f, reaction + 6 * i)
        put(m, reaction + 6 * i + 3)
    return 1


# ---- cuts in ---------------------------------------------------------------------------------------------------------------------------

def _numbers(cut, key, shape, where):
    """The two arrays of a key of a cut."""
    pair = cut[key]
    if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
        raise ModelError(f"{where}: {key} must be two, one on each body, got {pair!r}")
    out = []
    for value in pair:
        try:
            array = np.array(value, dtype=float)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != shape or not np.isfinite(array).all():
            raise ModelError(f"{where}: {key}: finite numbers of shape {shape} are needed, got {value!r}")
        out.append(array)
    return out


def _checked_cut(number, cut):
    """A cut with its arrays: joint, bodies, points, and axes or rotations where its kind needs them. Raises ModelError."""
    where = f"cut {number}"
    if not isinstance(cut, dict):
        raise ModelError(f"{where}: a dict is needed, got {cut!r}")
    # unknown keys first: a misspelt one is better named than the one that is missing for it
    every = ["joint", "bodies", "points", "axes", "rotations"]
    for key in cut:
        if key not in every:
            close = get_close_matches(str(key), every, n=1)
            raise ModelError(f"{where}: unknown key {key!r}, " + (f"did you mean {close[0]!r}?" if close else f"keys: {', '.join(every)}"))
    joint = cut.get("joint")
    if joint not in list(_CUTS):
        close = get_close_matches(str(joint), _CUTS, n=1)
        raise ModelError(f"{where}: " + ("key 'joint' is missing" if joint is None else f"joint {joint!r}")
                         + f", one of {', '.join(_CUTS)} is needed" + (f", did you mean {close[0]!r}?" if close else ""))
    need = _CUTS[joint][2]
    known = every[:3] + ([need] if need else [])
    for key in known:
        if key not in cut:
            raise ModelError(f"{where}: key {key!r} is missing")
    for key in cut:
        if key not in known:
            raise ModelError(f"{where}: a {joint} cut has no key {key!r}, keys: {', '.join(known)}")
    bodies = cut["bodies"]
    if not isinstance(bodies, (tuple, list)) or len(bodies) != 2:
        raise ModelError(f"{where}: bodies must be two names (None: the inertial frame), got {bodies!r}")
    if bodies[0] == bodies[1]:
        raise ModelError(f"{where}: both bodies are {bodies[0]!r}")
    out = {"joint": joint, "bodies": tuple(bodies), "points": _numbers(cut, "points", (3,), where)}
    if need == "axes":
        axes = _numbers(cut, "axes", (3,), where)
        if min(np.linalg.norm(axis) for axis in axes) < 1e-12:
            raise ModelError(f"{where}: axes: one has no direction")
        out["axes"] = [axis / np.linalg.norm(axis) for axis in axes]
    elif need == "rotations":
        out["rotations"] = _numbers(cut, "rotations", (3, 3), where)
        for R in out["rotations"]:
            if np.abs(R.T @ R - np.eye(3)).max() > 1e-9 or np.linalg.det(R) < 0.0:
                raise ModelError(f"{where}: rotations: {R.tolist()} is not a rotation")
    return out


def cut_at(Tree tree, q, joint, bodies, point=(0.0, 0.0, 0.0), rotation=None):
    """The cut that joins two bodies as they stand at q: a grasp, the pin of a linkage.

    joint     spherical | revolute | cylindrical | prismatic | fixed
    bodies    names, None: the inertial frame
    point, rotation   cut centre (3,) m and frame (3, 3) in the second body's frame; the joint's axis is its third column
    """
    if joint == "universal":
        raise ModelError("cut_at: a universal cut has two axes: write it out")
    C = np.eye(3) if rotation is None else np.array(rotation, dtype=float)
    (Ra, pa), (Rb, pb) = ((np.eye(3), np.zeros(3)) if name is None else tree.pose(q, name) for name in bodies)
    on_first = Ra.T @ Rb
    cut = {"joint": joint, "bodies": tuple(bodies), "points": (Ra.T @ (pb + Rb @ np.asarray(point, dtype=float) - pa), point)}
    if joint in ("revolute", "cylindrical"):
        cut["axes"] = (on_first @ C[:, 2], C[:, 2])
    elif joint in ("prismatic", "fixed"):
        cut["rotations"] = (on_first @ C, C)
    return cut


# ---- the class -------------------------------------------------------------------------------------------------------------------------

cdef class ClosedTree:
    """A tree with cut joints.

    ClosedTree(tree, cuts, independent): `cuts` a list of dicts with

        joint      spherical | universal | revolute | cylindrical | prismatic | fixed
        bodies     two names of bodies or of links fixed to them (None: the inertial frame); several cuts may name the same body
        points     cut centre on each, in its own frame [m]
        axes       universal: the cross axis on each; revolute, cylindrical: the joint's axis on each
        rotations  prismatic, fixed: the cut frame on each (3, 3); a prismatic cut slides along its third column

    `independent`: names of the joints whose coordinates are free.  The others are dependent, unless they are locked in the tree; the cuts
    must have at least as many rows, and rows beyond them must be redundant (a planar linkage closed by revolute cuts).
    Raises ModelError.  Locks of the tree are those at construction.
    """

    def __init__(self, Tree tree, cuts, independent):
        self.tree, self.independent = tree, list(independent)
        self.cuts = [_checked_cut(i, cut) for i, cut in enumerate(cuts)]
        cdef Loops *L = &self.loops
        self._locked = tree.locked
        moving = [k for k in range(tree.nv) if not self._locked[k]]
        free_v = sorted({k for name in self.independent for k in range(*tree.coordinates(name)[1].indices(tree.nv))} & set(moving))
        dependent_v = [k for k in moving if k not in free_v]
        rows = sum(sum(_CUTS[cut["joint"]][:2]) for cut in self.cuts)
        if rows < len(dependent_v):
            raise ModelError(f"{rows} constraint rows for {len(dependent_v)} dependent coordinates: there must be at least as many")
        cdef int nv = tree.nv, nu = len(free_v), n = tree.n
        L.model, L.work = tree.model, tree.work
        L.n_cuts, L.n_rows, L.n_u, L.n_p = len(self.cuts), rows, nu, len(dependent_v)
        L.cut = <Cut *>calloc(len(self.cuts) or 1, sizeof(Cut))
        self.indices = <int *>calloc(nv, sizeof(int))
        sizes = [rows * nv, rows, rows, 18 * n, 6 * nv, 6 * nv, rows * rows, rows * (nu + 1), nv * nv, nv, nu * nu, nu * nu, nu, nu, nv, nv,
                 rows, max(nv, 3)]
        self.memory = <double *>calloc(sum(sizes), sizeof(double))
        if not (L.cut and self.indices and self.memory):
            raise MemoryError("no memory for the loops")
        L.u = self.indices
        L.p = self.indices + nu
        for i, k in enumerate(free_v + dependent_v):
            self.indices[i] = k
        self._place(sizes)
        row = 0
        for i, cut in enumerate(self.cuts):
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
        L.A_solved = at; at += <int>sizes[11]
        L.b = at; at += <int>sizes[12]
        L.b_solved = at; at += <int>sizes[13]
        L.x = at; at += <int>sizes[14]
        L.y = at; at += <int>sizes[15]
        L.force = at; at += <int>sizes[16]
        L.zero = at
        return 0

    cdef int _fill(self, int i, int row, dict cut) except -1:
        cdef Cut *at = &self.loops.cut[i]
        joint = cut["joint"]
        at.row = row
        at.n_along, at.n_across, _ = _CUTS[joint]
        sides = []                   # rotation of the cut's side: components of the named frame to the body's aligned frame
        for side in range(2):
            name = cut["bodies"][side]
            point, turn = cut["points"][side], np.eye(3)
            at.number[side] = -1
            if name is not None:
                try:
                    frame = self.tree.frame(name)
                except ValueError as error:
                    raise ModelError(f"cut {i}: {error}") from None
                point, turn = frame.R_BF @ point + frame.p_BF_B, frame.R_BF
                if frame.body >= 0:
                    at.number[side] = self.tree._number[frame.body]
                    align = self.tree._align(self.tree.slot_of(frame.body)).T
                    point, turn = align @ point, align @ turn
            at.point[side] = xyz(point[0], point[1], point[2])
            sides.append(turn)
        along, across = np.eye(3), []
        if joint == "universal":
            across = [(sides[0] @ cut["axes"][0], sides[1] @ cut["axes"][1])]
        elif "axes" in cut:
            # two directions of the first body across its axis, both across the axis of the second
            axis = cut["axes"][0]
            x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
            x /= np.linalg.norm(x)
            along = sides[0] @ np.array([x, np.cross(axis, x), axis]).T
            across = [(along[:, k], sides[1] @ cut["axes"][1]) for k in range(2)]
        elif "rotations" in cut:
            along, second = (turn @ R for turn, R in zip(sides, cut["rotations"], strict=True))
            across = [(along[:, k], second[:, (k + 1) % 3]) for k in range(3)]
        for j in range(at.n_along):
            at.along[j] = xyz(along[0, j], along[1, j], along[2, j])
        for j, pair in enumerate(across):
            for side in range(2):
                at.across[side][j] = xyz(pair[side][0], pair[side][1], pair[side][2])
        return at.n_along + at.n_across

    def __dealloc__(self):
        free(self.loops.cut)
        free(self.indices)
        free(self.memory)

    @property
    def n_rows(self):
        """Constraint rows of all cuts."""
        return self.loops.n_rows

    def _vector(self, name, value, n):
        self.check_locks()
        array = np.array(value, dtype=np.float64)
        if array.shape != (n,):
            raise ValueError(f"{name}: shape {np.shape(value)}, {(n,)} is needed")
        return array

    def check_locks(self):
        """Raise ModelError when joints of the tree have been locked or let go since the loops were made."""
        if not np.array_equal(self._locked, self.tree.locked):
            raise ModelError("joints of the tree have been locked or let go since the loops were made: make a new ClosedTree")

    def gap(self, q):
        """Largest gap of all cuts at q [m, sine of an angle]."""
        cdef cnp.ndarray q_ = self._vector("q", q, self.tree.nq)
        closure(&self.loops, <double *>cnp.PyArray_DATA(q_), NULL)
        return gap_of(&self.loops)

    def close(self, q, tolerance=1e-13, steps=30):
        """q with the dependent positions moved until every gap is below `tolerance` [m, rad]; raises ModelError when it cannot."""
        cdef cnp.ndarray out = self._vector("q", q, self.tree.nq)
        cdef double gap = 0.0
        for _ in range(steps):
            gap = loops_newton(&self.loops, <double *>cnp.PyArray_DATA(out))
            if not 0.0 <= gap < 1e100:
                break
            if gap < tolerance:
                self._check_sides(out)
                return out
        raise ModelError(f"the loops do not close: gap {gap:g} after {steps} Newton steps (out of reach or singular)")

    def _check_sides(self, q):
        """Frames of a fixed or prismatic cut may also meet turned over: that is another assembly."""
        for i, cut in enumerate(self.cuts):
            if "rotations" in cut:
                (Ra, Rb) = ((np.eye(3) if name is None else self.tree.pose(q, name)[0]) @ C
                            for name, C in zip(cut["bodies"], cut["rotations"], strict=True))
                if np.abs(Ra - Rb).max() > 1e-3:
                    raise ModelError(f"cut {i}: the frames meet turned over; start from a position nearer to the closed one")

    def project(self, q, v):
        """v with the dependent velocities that the loops demand; raises ModelError when the loops hold an independent coordinate too."""
        cdef cnp.ndarray q_ = self._vector("q", q, self.tree.nq), out = self._vector("v", v, self.tree.nv)
        if not loops_velocity(&self.loops, <double *>cnp.PyArray_DATA(q_), <double *>cnp.PyArray_DATA(out)):
            raise ModelError("the mechanism is singular here")
        J = np.array([self.loops.J[k] for k in range(self.loops.n_rows * self.tree.nv)]).reshape(self.loops.n_rows, self.tree.nv)
        left = np.abs(J @ out)
        if left.size and left.max() > 1e-8 * (np.abs(J) @ np.abs(out)).max():
            raise ModelError(f"the loops hold the independent coordinates too: rate {left.max():.3g} of a gap is left")
        return out

    def forward_dynamics(self, q, v, tau, f_ext=None):
        """(a, reactions): accelerations (nv,) and, per cut, the wrench (cuts, 6) on its second body [force, moment about its cut centre],
        inertial axes.

        q must be closed and v projected.
        """
        return self.hybrid_dynamics(q, v, tau, np.zeros(self.tree.nv), np.zeros(self.tree.nv, dtype=bool), f_ext)[1:]

    def hybrid_dynamics(self, q, v, tau, a, known, f_ext=None):
        """(tau, a, reactions): where `known` is True the acceleration of an independent coordinate is given and its torque found."""
        nv = self.tree.nv
        arrays = [self._vector(name, value, n) for name, value, n in (("q", q, self.tree.nq), ("v", v, nv), ("tau", tau, nv), ("a", a, nv))]
        cdef cnp.ndarray q_ = arrays[0], v_ = arrays[1], t_ = arrays[2], a_ = arrays[3], reaction = np.empty((self.loops.n_cuts, 6)), w_
        cdef cnp.ndarray m_ = self.mask(known)
        cdef double *wrenches = NULL
        if f_ext is not None:
            w_ = np.ascontiguousarray(f_ext, dtype=np.float64)
            if (<object>w_).shape != (self.tree.n_bodies, 6):
                raise ValueError(f"f_ext: shape {(<object>w_).shape}, {(self.tree.n_bodies, 6)} is needed")
            wrenches = <double *>cnp.PyArray_DATA(w_)
        if not loops_dynamics(&self.loops, <double *>cnp.PyArray_DATA(q_), <double *>cnp.PyArray_DATA(v_), <double *>cnp.PyArray_DATA(t_),
                              wrenches, <const uint8_t *>cnp.PyArray_DATA(m_), <double *>cnp.PyArray_DATA(a_),
                              <double *>cnp.PyArray_DATA(reaction)):
            raise ModelError("the mechanism is singular here")
        return t_, a_, reaction

    def mask(self, known):
        """`known` (nv,) as bytes. Raises ValueError naming a coordinate that is not independent."""
        mask = np.ascontiguousarray(known, dtype=np.uint8)
        if mask.shape != (self.tree.nv,):
            raise ValueError(f"known: shape {mask.shape}, {(self.tree.nv,)} is needed")
        independent = [self.loops.u[i] for i in range(self.loops.n_u)]
        for k in np.flatnonzero(mask):
            if k not in independent:
                raise ValueError(f"known: coordinate {k} is not independent; those are {', '.join(map(str, independent))}")
        return mask
