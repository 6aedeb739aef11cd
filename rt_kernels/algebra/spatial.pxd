"""Spatial vectors and inertias about the origin of a frame (Featherstone 2008, ch. 2).

All 6-vectors are linear first. Motion vector (twist) `V` = (v of the body point at the origin, w); force vector (wrench) `F` =
(f, moment about the origin). Power is their plain dot product. Their algebra by value is in `values.pxd`.

Rigid-body inertia, `double[10]`: m, h = m c (3), then the inertia tensor about the *origin* xx, xy, xz, yy, yz, zz (`values.Inertia`).

Symmetric 6x6 (articulated inertia, compliance), `double[21]`: upper triangle by rows, linear first; `symmetric_index` gives the place.
Blocks: S = [[A, B], [B^T, C]], A linear-linear, C angular-angular. Output may not be an input unless stated.
"""

from libc.math cimport sqrt

from rt_kernels.algebra.values cimport (
    Inertia, Mat3, Pose, Vec3, add, cross_columns, cross_rows, dot, mat, mat_sum, mat_vec, mul, put_inertia, rotated_tensor, rows_of,
    tensor, to_matrix, transposed, vec, xyz,
)


cdef inline double power(const double *V, const double *F) noexcept nogil:
    # v . f + w . m
    return V[0] * F[0] + V[1] * F[1] + V[2] * F[2] + V[3] * F[3] + V[4] * F[4] + V[5] * F[5]


# -- rigid-body inertia, ten numbers --------------------------------------------------------------------------------------


cdef inline void inertia_from_centre(double mass, const double *c, const double *J, double *I) noexcept nogil:
    """From mass [kg], centre of mass c [m] and the tensor J about the centre (xx, xy, xz, yy, yz, zz) [kg.m2] (parallel axes)."""
    cdef Vec3 p = vec(c)
    cdef double cc = dot(p, p)
    cdef Inertia out
    out.m = mass
    out.h = mul(mass, p)
    out.xx = J[0] + mass * (cc - p.x * p.x)
    out.xy = J[1] - mass * p.x * p.y
    out.xz = J[2] - mass * p.x * p.z
    out.yy = J[3] + mass * (cc - p.y * p.y)
    out.yz = J[4] - mass * p.y * p.z
    out.zz = J[5] + mass * (cc - p.z * p.z)
    put_inertia(out, I)


cdef inline void inertia_to_centre(Inertia I, Vec3 *c, double *J) noexcept nogil:
    """Inverse of `inertia_from_centre` (the mass is not zero)."""
    cdef Vec3 p = mul(1.0 / I.m, I.h)
    cdef double cc = dot(p, p)
    c[0] = p
    J[0] = I.xx - I.m * (cc - p.x * p.x)
    J[1] = I.xy + I.m * p.x * p.y
    J[2] = I.xz + I.m * p.x * p.z
    J[3] = I.yy - I.m * (cc - p.y * p.y)
    J[4] = I.yz + I.m * p.y * p.z
    J[5] = I.zz - I.m * (cc - p.z * p.z)


cdef inline void inertia_add(const double *a, const double *b, double *out) noexcept nogil:
    # two bodies rigidly joined, about the same origin; output may be an input
    cdef int i
    for i in range(10):
        out[i] = a[i] + b[i]


cdef inline Mat3 full(const double *S) noexcept nogil:
    # of a symmetric 3x3 (xx, xy, xz, yy, yz, zz)
    return rows_of(xyz(S[0], S[1], S[2]), xyz(S[1], S[3], S[4]), xyz(S[2], S[4], S[5]))


cdef inline void rotate_symmetric(const double *R, const double *S, double *out) noexcept nogil:
    # R S R^T of a symmetric 3x3 (xx, xy, xz, yy, yz, zz); output may be the input
    cdef Mat3 turned = rotated_tensor(mat(R), full(S))
    out[0] = turned.xx; out[1] = turned.xy; out[2] = turned.xz
    out[3] = turned.yy; out[4] = turned.yz
    out[5] = turned.zz


cdef inline Inertia inertia_to_parent(Pose X_AB, Inertia I_B) noexcept nogil:
    """The same body, given about and in B, taken about and in A.

    With h' = R h the tensor grows by -[h'][p] - [p][h'] - m [p][p], Featherstone 2008, (2.66).
    """
    cdef Mat3 R = to_matrix(X_AB.q)
    cdef Mat3 turned = rotated_tensor(R, tensor(I_B))
    cdef Vec3 p = X_AB.p
    cdef Vec3 h = mat_vec(R, I_B.h)
    cdef double m = I_B.m, hp = 2.0 * dot(h, p), pp = dot(p, p)
    cdef Inertia out
    out.m = m
    out.h = add(h, mul(m, p))
    out.xx = turned.xx + (hp + m * pp - (2.0 * h.x + m * p.x) * p.x)
    out.xy = turned.xy - (h.x * p.y + p.x * h.y + m * p.x * p.y)
    out.xz = turned.xz - (h.x * p.z + p.x * h.z + m * p.x * p.z)
    out.yy = turned.yy + (hp + m * pp - (2.0 * h.y + m * p.y) * p.y)
    out.yz = turned.yz - (h.y * p.z + p.y * h.z + m * p.y * p.z)
    out.zz = turned.zz + (hp + m * pp - (2.0 * h.z + m * p.z) * p.z)
    return out


# -- symmetric 6x6, twenty-one numbers -------------------------------------------------------------------------------------


cdef inline int symmetric_index(int i, int j) noexcept nogil:
    # place of element (i, j)
    if i > j:
        i, j = j, i
    return i * (11 - i) // 2 + j


cdef inline void symmetric_from_inertia(Inertia I, double *S) noexcept nogil:
    """[[m 1, -[h]], [[h], I_o]] as twenty-one numbers."""
    S[0] = I.m; S[1] = 0.0; S[2] = 0.0; S[3] = 0.0; S[4] = I.h.z; S[5] = -I.h.y
    S[6] = I.m; S[7] = 0.0; S[8] = -I.h.z; S[9] = 0.0; S[10] = I.h.x
    S[11] = I.m; S[12] = I.h.y; S[13] = -I.h.x; S[14] = 0.0
    S[15] = I.xx; S[16] = I.xy; S[17] = I.xz
    S[18] = I.yy; S[19] = I.yz
    S[20] = I.zz


cdef inline void symmetric_add(const double *a, const double *b, double *out) noexcept nogil:
    # output may be an input
    cdef int i
    for i in range(21):
        out[i] = a[i] + b[i]


cdef inline void symmetric_apply(const double *S, const double *x, double *out) noexcept nogil:
    # S x
    out[0] = S[0] * x[0] + S[1] * x[1] + S[2] * x[2] + S[3] * x[3] + S[4] * x[4] + S[5] * x[5]
    out[1] = S[1] * x[0] + S[6] * x[1] + S[7] * x[2] + S[8] * x[3] + S[9] * x[4] + S[10] * x[5]
    out[2] = S[2] * x[0] + S[7] * x[1] + S[11] * x[2] + S[12] * x[3] + S[13] * x[4] + S[14] * x[5]
    out[3] = S[3] * x[0] + S[8] * x[1] + S[12] * x[2] + S[15] * x[3] + S[16] * x[4] + S[17] * x[5]
    out[4] = S[4] * x[0] + S[9] * x[1] + S[13] * x[2] + S[16] * x[3] + S[18] * x[4] + S[19] * x[5]
    out[5] = S[5] * x[0] + S[10] * x[1] + S[14] * x[2] + S[17] * x[3] + S[19] * x[4] + S[20] * x[5]


cdef inline void symmetric_add_outer(double scale, const double *u, double *S) noexcept nogil:
    # S += scale u u^T
    cdef int i, j, k = 0
    cdef double a
    for i in range(6):
        a = scale * u[i]
        for j in range(i, 6):
            S[k] += a * u[j]
            k += 1


cdef inline void symmetric_to_parent(Pose X_AB, const double *S_B, double *S_A) noexcept nogil:
    """A symmetric map from motions to forces (an inertia), given about and in B, taken about and in A. Output may be the input.

    Rotate the blocks, then with [p] of p_AB: B' = B - A [p], C' = C + [p] B - B'^T [p].
    """
    cdef Vec3 p = X_AB.p
    cdef Mat3 R = to_matrix(X_AB.q)
    cdef Mat3 A = rotated_tensor(R, rows_of(xyz(S_B[0], S_B[1], S_B[2]), xyz(S_B[1], S_B[6], S_B[7]), xyz(S_B[2], S_B[7], S_B[11])))
    cdef Mat3 B = rotated_tensor(R, rows_of(vec(S_B + 3), vec(S_B + 8), vec(S_B + 12)))
    cdef Mat3 C = rotated_tensor(R, full(S_B + 15))
    cdef Mat3 G, D
    # of the symmetric A only the upper triangle counts
    A = rows_of(xyz(A.xx, A.xy, A.xz), xyz(A.xy, A.yy, A.yz), xyz(A.xz, A.yz, A.zz))
    G = mat_sum(cross_rows(p, A), B)
    D = mat_sum(cross_columns(p, B), cross_rows(p, transposed(G)))
    S_A[0] = A.xx; S_A[1] = A.xy; S_A[2] = A.xz; S_A[3] = G.xx; S_A[4] = G.xy; S_A[5] = G.xz
    S_A[6] = A.yy; S_A[7] = A.yz; S_A[8] = G.yx; S_A[9] = G.yy; S_A[10] = G.yz
    S_A[11] = A.zz; S_A[12] = G.zx; S_A[13] = G.zy; S_A[14] = G.zz
    S_A[15] = C.xx + D.xx; S_A[16] = C.xy + 0.5 * (D.xy + D.yx); S_A[17] = C.xz + 0.5 * (D.xz + D.zx)
    S_A[18] = C.yy + D.yy; S_A[19] = C.yz + 0.5 * (D.yz + D.zy)
    S_A[20] = C.zz + D.zz


cdef inline int symmetric_solve(const double *S, const double *b, double *x) noexcept nogil:
    """Solve S x = b for a positive definite S (Cholesky); 0, or 1 when a pivot is not positive. x may be b."""
    cdef double L[21]
    cdef double y[6]
    cdef double total, scale
    cdef int i, j, k
    # S = U^T U by rows of U, stored like S, with 1 / U[i][i] on the diagonal
    for i in range(6):
        total = S[symmetric_index(i, i)]
        for k in range(i):
            total -= L[symmetric_index(k, i)] * L[symmetric_index(k, i)]
        if not total > 0.0:
            return 1
        scale = 1.0 / sqrt(total)
        L[symmetric_index(i, i)] = scale
        for j in range(i + 1, 6):
            total = S[symmetric_index(i, j)]
            for k in range(i):
                total -= L[symmetric_index(k, i)] * L[symmetric_index(k, j)]
            L[symmetric_index(i, j)] = total * scale
    for i in range(6):
        total = b[i]
        for k in range(i):
            total -= L[symmetric_index(k, i)] * y[k]
        y[i] = total * L[symmetric_index(i, i)]
    for i in range(5, -1, -1):
        total = y[i]
        for k in range(i + 1, 6):
            total -= L[symmetric_index(i, k)] * x[k]
        x[i] = total * L[symmetric_index(i, i)]
    return 0
