"""Spatial vectors and inertias about the origin of a frame (Featherstone 2008, ch. 2).

All 6-vectors are linear first. Motion vector (twist) `V` = (v of the body point at the origin, w); force vector (wrench) `F` =
(f, moment about the origin). Power is their plain dot product.

Rigid-body inertia, `double[10]`: m, h = m c (3), then the inertia tensor about the *origin* xx, xy, xz, yy, yz, zz.

Symmetric 6x6 (articulated inertia, compliance), `double[21]`: upper triangle by rows, linear first; `symmetric_index` gives the place.
Blocks: S = [[A, B], [B^T, C]], A linear-linear, C angular-angular. Output may not be an input unless said.
"""

from libc.math cimport sqrt
from rt_kernels.algebra cimport quat
from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3


# -- motion and force vectors --------------------------------------------------------------------------------------------


cdef inline double power(const double *V, const double *F) noexcept nogil:
    # v . f + w . m
    return V[0] * F[0] + V[1] * F[1] + V[2] * F[2] + V[3] * F[3] + V[4] * F[4] + V[5] * F[5]


cdef inline void cross_motion(const double *V, const double *U, double *out) noexcept nogil:
    """V x U for motions: (w x u + v x u_w, w x u_w), Featherstone 2008, (2.31)."""
    cdef double a[3]
    cdef double b[3]
    vec3.cross(V + 3, U, a)
    vec3.cross(V, U + 3, b)
    vec3.cross(V + 3, U + 3, out + 3)
    vec3.add(a, b, out)


cdef inline void cross_force(const double *V, const double *F, double *out) noexcept nogil:
    """V x* F for forces: (w x f, w x m + v x f), Featherstone 2008, (2.32)."""
    cdef double a[3]
    cdef double b[3]
    vec3.cross(V + 3, F + 3, a)
    vec3.cross(V, F, b)
    vec3.cross(V + 3, F, out)
    vec3.add(a, b, out + 3)


cdef inline void motion_to_parent(const double *X_AB, const double *V_B, double *V_A) noexcept nogil:
    """The same motion, given at and in B, taken at and in A: w_A = R w_B, v_A = R v_B + p_AB x w_A. Output may be the input."""
    cdef double r[3]
    quat.rotate(X_AB + 3, V_B, V_A)
    quat.rotate(X_AB + 3, V_B + 3, V_A + 3)
    vec3.cross(X_AB, V_A + 3, r)
    vec3.add(V_A, r, V_A)


cdef inline void motion_to_child(const double *X_AB, const double *V_A, double *V_B) noexcept nogil:
    """Inverse of `motion_to_parent`. Output may be the input."""
    cdef double r[3]
    vec3.cross(X_AB, V_A + 3, r)
    vec3.sub(V_A, r, r)
    quat.rotate_back(X_AB + 3, r, V_B)
    quat.rotate_back(X_AB + 3, V_A + 3, V_B + 3)


# -- rigid-body inertia, ten numbers --------------------------------------------------------------------------------------


cdef inline void inertia_from_centre(double mass, const double *c, const double *J, double *I) noexcept nogil:
    """From mass [kg], centre of mass c [m] and the tensor J about the centre (xx, xy, xz, yy, yz, zz) [kg.m2] (parallel axes)."""
    cdef double cc = vec3.dot(c, c)
    I[0] = mass
    vec3.scale(mass, c, I + 1)
    I[4] = J[0] + mass * (cc - c[0] * c[0])
    I[5] = J[1] - mass * c[0] * c[1]
    I[6] = J[2] - mass * c[0] * c[2]
    I[7] = J[3] + mass * (cc - c[1] * c[1])
    I[8] = J[4] - mass * c[1] * c[2]
    I[9] = J[5] + mass * (cc - c[2] * c[2])


cdef inline void inertia_to_centre(const double *I, double *c, double *J) noexcept nogil:
    """Inverse of `inertia_from_centre` (the mass is I[0], not zero)."""
    vec3.scale(1.0 / I[0], I + 1, c)
    cdef double cc = vec3.dot(c, c)
    J[0] = I[4] - I[0] * (cc - c[0] * c[0])
    J[1] = I[5] + I[0] * c[0] * c[1]
    J[2] = I[6] + I[0] * c[0] * c[2]
    J[3] = I[7] - I[0] * (cc - c[1] * c[1])
    J[4] = I[8] + I[0] * c[1] * c[2]
    J[5] = I[9] - I[0] * (cc - c[2] * c[2])


cdef inline void inertia_add(const double *a, const double *b, double *out) noexcept nogil:
    # two bodies rigidly joined, about the same origin; output may be an input
    cdef int i
    for i in range(10):
        out[i] = a[i] + b[i]


cdef inline void inertia_apply(const double *I, const double *V, double *F) noexcept nogil:
    """Momentum F = I V: f = m v + w x h, moment = I_o w + h x v."""
    cdef double a[3]
    vec3.cross(V + 3, I + 1, a)
    vec3.add_scaled(a, I[0], V, F)
    vec3.cross(I + 1, V, a)
    F[3] = I[4] * V[3] + I[5] * V[4] + I[6] * V[5] + a[0]
    F[4] = I[5] * V[3] + I[7] * V[4] + I[8] * V[5] + a[1]
    F[5] = I[6] * V[3] + I[8] * V[4] + I[9] * V[5] + a[2]


cdef inline double kinetic_energy(const double *I, const double *V) noexcept nogil:
    # V . I V / 2
    cdef double F[6]
    inertia_apply(I, V, F)
    return 0.5 * power(V, F)


cdef inline void rotate_symmetric(const double *R, const double *S, double *out) noexcept nogil:
    # R S R^T of a symmetric 3x3 (xx, xy, xz, yy, yz, zz); output may be the input
    cdef double full[9]
    cdef double half[9]
    full[0] = S[0]; full[1] = S[1]; full[2] = S[2]
    full[3] = S[1]; full[4] = S[3]; full[5] = S[4]
    full[6] = S[2]; full[7] = S[4]; full[8] = S[5]
    rot3.multiply(R, full, half)
    out[0] = half[0] * R[0] + half[1] * R[1] + half[2] * R[2]
    out[1] = half[0] * R[3] + half[1] * R[4] + half[2] * R[5]
    out[2] = half[0] * R[6] + half[1] * R[7] + half[2] * R[8]
    out[3] = half[3] * R[3] + half[4] * R[4] + half[5] * R[5]
    out[4] = half[3] * R[6] + half[4] * R[7] + half[5] * R[8]
    out[5] = half[6] * R[6] + half[7] * R[7] + half[8] * R[8]


cdef inline void inertia_to_parent(const double *X_AB, const double *I_B, double *I_A) noexcept nogil:
    """The same body, given about and in B, taken about and in A. Output may be the input.

    With h' = R h the tensor grows by -[h'][p] - [p][h'] - m [p][p], Featherstone 2008, (2.66).
    """
    cdef double R[9]
    cdef double h[3]
    cdef double p[3]
    cdef double m = I_B[0]
    cdef double hp, pp
    vec3.copy(X_AB, p)
    quat.to_matrix(X_AB + 3, R)
    rot3.apply(R, I_B + 1, h)
    rotate_symmetric(R, I_B + 4, I_A + 4)
    hp = 2.0 * vec3.dot(h, p)
    pp = vec3.dot(p, p)
    I_A[4] += hp + m * pp - (2.0 * h[0] + m * p[0]) * p[0]
    I_A[5] -= h[0] * p[1] + p[0] * h[1] + m * p[0] * p[1]
    I_A[6] -= h[0] * p[2] + p[0] * h[2] + m * p[0] * p[2]
    I_A[7] += hp + m * pp - (2.0 * h[1] + m * p[1]) * p[1]
    I_A[8] -= h[1] * p[2] + p[1] * h[2] + m * p[1] * p[2]
    I_A[9] += hp + m * pp - (2.0 * h[2] + m * p[2]) * p[2]
    I_A[0] = m
    vec3.add_scaled(h, m, p, I_A + 1)


# -- symmetric 6x6, twenty-one numbers -------------------------------------------------------------------------------------


cdef inline int symmetric_index(int i, int j) noexcept nogil:
    # place of element (i, j)
    if i > j:
        i, j = j, i
    return i * (11 - i) // 2 + j


cdef inline void symmetric_from_inertia(const double *I, double *S) noexcept nogil:
    """[[m 1, -[h]], [[h], I_o]] as twenty-one numbers."""
    cdef double m = I[0]
    S[0] = m; S[1] = 0.0; S[2] = 0.0; S[3] = 0.0; S[4] = I[3]; S[5] = -I[2]
    S[6] = m; S[7] = 0.0; S[8] = -I[3]; S[9] = 0.0; S[10] = I[1]
    S[11] = m; S[12] = I[2]; S[13] = -I[1]; S[14] = 0.0
    S[15] = I[4]; S[16] = I[5]; S[17] = I[6]
    S[18] = I[7]; S[19] = I[8]
    S[20] = I[9]


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


cdef inline void symmetric_to_parent(const double *X_AB, const double *S_B, double *S_A) noexcept nogil:
    """A symmetric map from motions to forces (an inertia), given about and in B, taken about and in A. Output may be the input.

    Rotate the blocks, then with [p] of p_AB: B' = B - A [p], C' = C + [p] B - B'^T [p].
    """
    cdef double R[9]
    cdef double A[6]
    cdef double B[9]
    cdef double C[6]
    cdef double half[9]
    cdef double G[9]
    cdef double D[9]
    cdef double *p = <double *>X_AB
    cdef int i
    quat.to_matrix(X_AB + 3, R)
    # blocks of S_B
    A[0] = S_B[0]; A[1] = S_B[1]; A[2] = S_B[2]; A[3] = S_B[6]; A[4] = S_B[7]; A[5] = S_B[11]
    B[0] = S_B[3]; B[1] = S_B[4]; B[2] = S_B[5]
    B[3] = S_B[8]; B[4] = S_B[9]; B[5] = S_B[10]
    B[6] = S_B[12]; B[7] = S_B[13]; B[8] = S_B[14]
    # rotated
    rotate_symmetric(R, A, A)
    rotate_symmetric(R, S_B + 15, C)
    rot3.multiply(R, B, half)
    rot3.multiply_transposed(half, R, B)
    # G = B - A [p]; row i of M [p] is -(p x row i), so row i of G is row i of B + p x (row i of A)
    half[0] = A[0]; half[1] = A[1]; half[2] = A[2]
    half[3] = A[1]; half[4] = A[3]; half[5] = A[4]
    half[6] = A[2]; half[7] = A[4]; half[8] = A[5]
    for i in range(3):
        vec3.cross(p, half + 3 * i, G + 3 * i)
        vec3.add(G + 3 * i, B + 3 * i, G + 3 * i)
    # D = [p] B - G^T [p]: column i of the first is p x (column i of B), row i of the second gives p x (column i of G)
    rot3.transpose(B, half)
    for i in range(3):
        vec3.cross(p, half + 3 * i, half + 3 * i)
    rot3.transpose(half, D)
    rot3.transpose(G, half)
    for i in range(3):
        vec3.cross(p, half + 3 * i, half + 3 * i)
        vec3.add(D + 3 * i, half + 3 * i, D + 3 * i)
    S_A[0] = A[0]; S_A[1] = A[1]; S_A[2] = A[2]; S_A[3] = G[0]; S_A[4] = G[1]; S_A[5] = G[2]
    S_A[6] = A[3]; S_A[7] = A[4]; S_A[8] = G[3]; S_A[9] = G[4]; S_A[10] = G[5]
    S_A[11] = A[5]; S_A[12] = G[6]; S_A[13] = G[7]; S_A[14] = G[8]
    S_A[15] = C[0] + D[0]; S_A[16] = C[1] + 0.5 * (D[1] + D[3]); S_A[17] = C[2] + 0.5 * (D[2] + D[6])
    S_A[18] = C[3] + D[4]; S_A[19] = C[4] + 0.5 * (D[5] + D[7])
    S_A[20] = C[5] + D[8]


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
