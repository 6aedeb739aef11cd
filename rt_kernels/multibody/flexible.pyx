"""Dynamics of a tree of rigid and flexible bodies in O(N): articulated bodies with the elastic coordinates eliminated body by body.

A flexible body moves as a floating frame plus modal deformation: the point at rho0 is at rho = rho0 + phi eta in body axes. With
X_dot = [eta_ddot; a; alpha] (a: classical acceleration of the frame origin) Kane's equations of one body are M X_dot + z, where

    M_ee = sum m phi^T phi                      M_ev = sum m phi            M_ew row a = sum m rho x phi_a
    M_vv = m 1    M_wv = S(c), c = sum m rho    M_ww = tr(E) 1 - E,  E = sum m rho rho^T
    z_v = w x (w x c) + 2 w x (sum m phi eta_dot)
    z_w = w x M_ww w + 2 (tr(H) w - H^T w),  H = sum_a eta_dot_a G_a,  G_a = sum m rho phi_a^T
    z_a = w^T G_a w - w^2 tr(G_a) + 2 w . sum_b eta_dot_b sum m phi_b x phi_a

All of it follows from integrals that do not depend on the state (`modes.ModalBody`), so the cost is free of the number of nodes. Every
coupling term is kept. Stiffening by rotation enters as the foreshortening part of E (second order in eta): it adds one symmetric matrix
to G_a, costs nothing here and leaves the equations derivable from one kinetic energy. Without it a spinning body only softens.

A child hangs on a port of its parent: position p + phi eta, orientation exp(S(psi eta)). The port turns at J_l(theta) psi eta_dot with
J_l the left Jacobian of the exponential, so velocities are the derivatives of the positions and energy is conserved exactly. With
`first_order` the rate is psi eta_dot, as in the dissertation on hybrid recursion of flexible chains and in the paper on the dumbbell
spacecraft; energy is then kept to O(eta^2).

Recursion (backward: modes out, joint out, to the parent; forward: accelerations), per body, P = [P_vw] and L L^T = M_ee:

    P_a = P - X^T X,  X = L^-1 M_em;  z_a = z + X^T y,  y = L^-1 (t - z_e)
    D = H^T P_a H;  U = P_a H;  e = tau - H^T (z_a + P_a c);  P+ = P_a - U D^-1 U^T;  z+ = z_a + P_a c + U D^-1 e

A joint coordinate whose acceleration is given is not eliminated: its H a enters c and its force is H^T (P_a A + z_a). Modal
coordinates are always eliminated: their force -K eta - C eta_dot is known whatever the joints do.

With a step h > 0 the springs and dampers of joints and modes are taken at the end of the step (implicit linear Euler):
D + h d + h^2 k, M_ee + h C + h^2 K, force -k (x + h v) - d v. The tree keeps O(N).

Frames and units: body axes, SI. Six-vectors linear part first. q = [joint coordinates | modal], v = [joint velocities | modal rates];
free joint q = [p, quaternion xyzw], v = [linear, angular] in body axes; spherical joint quaternion xyzw and body rates.
Sources: paper on hybrid recursive dynamics of flexible chains, eqs. (5)-(7) corrected; paper on the rigid-truss-rigid spacecraft, eqs. (5)-(43).
"""

import numpy as np

from libc.math cimport sqrt
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from rt_kernels.algebra cimport quat, rot3, vec3
from rt_kernels.algebra.sincos cimport sincos


# --- rotation by a small vector ---------------------------------------------------------------------------------------------------


cdef inline void exponential_terms(double x, double *k) noexcept nogil:
    """k = [sin p / p, (1 - cos p)/p^2, (p - sin p)/p^3, a'/p, b'/p] with p^2 = x, a = k[1], b = k[2] (their derivatives by p)."""
    cdef double p, s, c
    if x < 0.25:
        # Taylor series; the first terms left out are below 1e-17
        k[0] = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0 * (1.0 - x / 156.0)))))
        k[1] = 0.5 - x / 24.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0 * (1.0 - x / 90.0 * (1.0 - x / 132.0 * (1.0 - x / 182.0)))))
        k[2] = 1.0 / 6.0 - x / 120.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0 * (1.0 - x / 156.0 * (1.0 - x / 210.0)))))
        # derivatives of the two series by p, over p: 2 d/dx
        k[3] = -1.0 / 12.0 + x * (4.0 / 720.0 - x * (6.0 / 40320.0 - x * (8.0 / 3628800.0 - x * (10.0 / 479001600.0
            - x * (12.0 / 87178291200.0)))))
        k[4] = -2.0 / 120.0 + x * (4.0 / 5040.0 - x * (6.0 / 362880.0 - x * (8.0 / 39916800.0 - x * (10.0 / 6227020800.0
            - x * (12.0 / 1307674368000.0)))))
    else:
        p = sqrt(x)
        sincos(p, &s, &c)
        k[0] = s / p
        k[1] = (1.0 - c) / x
        k[2] = (p - s) / (x * p)
        k[3] = (p * s - 2.0 * (1.0 - c)) / (x * x)
        k[4] = (3.0 * s - 2.0 * p - p * c) / (x * x * p)


cdef inline void skew_polynomial(double a0, double a1, double a2, const double *t, double *R) noexcept nogil:
    """R = a0 1 + a1 S(t) + a2 S(t)^2."""
    cdef double x = t[0], y = t[1], z = t[2]
    R[0] = a0 - a2 * (y * y + z * z); R[1] = a2 * x * y - a1 * z; R[2] = a2 * x * z + a1 * y
    R[3] = a2 * x * y + a1 * z; R[4] = a0 - a2 * (x * x + z * z); R[5] = a2 * y * z - a1 * x
    R[6] = a2 * x * z - a1 * y; R[7] = a2 * y * z + a1 * x; R[8] = a0 - a2 * (x * x + y * y)


cdef inline void jacobian_rate(const double *k, const double *t, const double *td, double *out) noexcept nogil:
    """d/dt J_l(t) times td, for constant td: a_dot t x td + b_dot t x (t x td) + b td x (t x td)."""
    cdef double u[3]
    cdef double uu[3]
    cdef double w[3]
    cdef double rate = vec3.dot(t, td)
    vec3.cross(t, td, u)
    vec3.cross(t, u, uu)
    vec3.cross(td, u, w)
    out[0] = rate * (k[3] * u[0] + k[4] * uu[0]) + k[2] * w[0]
    out[1] = rate * (k[3] * u[1] + k[4] * uu[1]) + k[2] * w[1]
    out[2] = rate * (k[3] * u[2] + k[4] * uu[2]) + k[2] * w[2]


# --- small dense algebra ----------------------------------------------------------------------------------------------------------


cdef inline void cholesky(double *A, int n, int stride) noexcept nogil:
    """A = L L^T in place (lower part). The diagonal keeps 1 / L_ii."""
    cdef int i, j, k
    cdef double t
    for j in range(n):
        t = A[j * stride + j]
        for k in range(j):
            t -= A[j * stride + k] * A[j * stride + k]
        t = 1.0 / sqrt(t)
        A[j * stride + j] = t
        for i in range(j + 1, n):
            for k in range(j):
                A[i * stride + j] -= A[i * stride + k] * A[j * stride + k]
            A[i * stride + j] *= t


cdef inline void forward_solve(const double *L, int n, int stride, double *x) noexcept nogil:
    cdef int i, k
    for i in range(n):
        for k in range(i):
            x[i] -= L[i * stride + k] * x[k]
        x[i] *= L[i * stride + i]


cdef inline void backward_solve(const double *L, int n, int stride, double *x) noexcept nogil:
    cdef int i, k
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            x[i] -= L[k * stride + i] * x[k]
        x[i] *= L[i * stride + i]


cdef inline void rotate_block(const double *R, const double *B, int stride, double *out) noexcept nogil:
    """out (3x3, packed) = R B R^T with B a 3x3 block inside a wider matrix."""
    cdef double t[9]
    cdef double b[9]
    cdef int i, j
    for i in range(3):
        for j in range(3):
            b[3 * i + j] = B[i * stride + j]
    rot3.multiply(R, b, t)
    rot3.multiply_transposed(t, R, out)


cdef inline void multiply_6(const double *P, const double *x, double *out) noexcept nogil:
    # out = P x, P symmetric 6x6: sum of rows, so that six lanes run side by side
    cdef double t[6]
    cdef int i, j
    for i in range(6):
        t[i] = P[i] * x[0]
    for j in range(1, 6):
        for i in range(6):
            t[i] += P[6 * j + i] * x[j]
    for i in range(6):
        out[i] = t[i]


# --- kinematics: positions, velocities, velocity part of accelerations ---------------------------------------------------------------


cdef inline void joint_motion(const Body *b, const double *q, const double *v, double *R_J, double *p, double *rel) noexcept nogil:
    """Rotation and displacement of the joint (joint frame) and relative twist (body axes)."""
    cdef double t[3]
    cdef double s, c
    cdef int i
    rot3.identity(R_J)
    for i in range(3):
        p[i] = 0.0
    for i in range(6):
        rel[i] = 0.0
    if b.joint == REVOLUTE:
        sincos(q[b.iq], &s, &c)
        skew_polynomial(1.0, s, 1.0 - c, b.axis, R_J)
        vec3.scale(v[b.iv], b.axis, rel + 3)
    elif b.joint == PRISMATIC:
        vec3.scale(q[b.iq], b.axis, p)
        vec3.scale(v[b.iv], b.axis, rel)
    elif b.joint == SPHERICAL:
        quat.to_matrix(q + b.iq, R_J)
        vec3.copy(v + b.iv, rel + 3)
    elif b.joint == FREE:
        vec3.copy(q + b.iq, p)
        quat.to_matrix(q + b.iq + 3, R_J)
        vec3.copy(v + b.iv, rel)
        vec3.copy(v + b.iv + 3, rel + 3)


cdef void port_motion(Model *m, Body *b, const Body *parent, const double *q, const double *v, const double *p_J,
                      double *A, double *slide, double *w, double *w_bias, double *l) noexcept nogil:
    """Rotation A of the parent's port, its slide phi eta_dot, rate w, velocity part of w_dot, arm l to the body; fills b.J. Parent axes."""
    cdef double theta[3]
    cdef double rate[3]
    cdef double arm[3]
    cdef double k[5]
    cdef double JL[9]
    cdef double column[3]
    cdef double shift[3]
    cdef int i, a, s = parent.s
    rot3.apply(b.R0, p_J, arm)
    vec3.add(b.p_off, arm, arm)
    vec3.copy(b.p_port, b.r)
    for i in range(3):
        slide[i] = 0.0; w[i] = 0.0; w_bias[i] = 0.0; theta[i] = 0.0; rate[i] = 0.0
    if b.phi == NULL:
        rot3.identity(A)
        vec3.copy(arm, l)
        vec3.add(b.r, l, b.r)
        return
    for i in range(3):
        for a in range(s):
            theta[i] += b.psi[i * s + a] * q[parent.eq + a]
            rate[i] += b.psi[i * s + a] * v[parent.ev + a]
            b.r[i] += b.phi[i * s + a] * q[parent.eq + a]
            slide[i] += b.phi[i * s + a] * v[parent.ev + a]
    exponential_terms(vec3.dot(theta, theta), k)
    skew_polynomial(1.0, k[0], k[1], theta, A)
    if m.first_order:
        rot3.identity(JL)
        vec3.copy(rate, w)
    else:
        skew_polynomial(1.0, k[1], k[2], theta, JL)
        rot3.apply(JL, rate, w)
        jacobian_rate(k, theta, rate, w_bias)
    rot3.apply(A, arm, l)
    vec3.add(b.r, l, b.r)
    # motion of the body origin per modal rate: [phi - l x (J psi); J psi]
    for a in range(s):
        vec3.fill(b.psi[a], b.psi[s + a], b.psi[2 * s + a], column)
        rot3.apply(JL, column, column)
        vec3.cross(column, l, shift)
        for i in range(3):
            b.J[6 * a + i] = b.phi[i * s + a] + shift[i]
            b.J[6 * a + 3 + i] = column[i]


cdef void move_body(Model *m, int index, const double *q, const double *v) noexcept nogil:
    cdef Body *b = &m.body[index]
    cdef Body *parent
    cdef double R_J[9]
    cdef double A[9]
    cdef double T[9]
    cdef double p_J[3]
    cdef double rel[6]
    cdef double slide[3]
    cdef double w[3]
    cdef double w_bias[3]
    cdef double l[3]
    cdef double V[6]
    cdef double t[3]
    cdef double u[3]
    cdef double arm[3]
    cdef int i
    joint_motion(b, q, v, R_J, p_J, rel)
    if b.parent < 0:
        # the base stands still
        rot3.multiply(b.R0, R_J, b.R)
        rot3.apply(b.R0, p_J, b.r)
        for i in range(3):
            b.r[i] += b.p_port[i] + b.p_off[i]
        for i in range(6):
            b.V[i] = rel[i]
            b.c[i] = 0.0
        vec3.cross(rel + 3, rel, b.c)
        return
    parent = &m.body[b.parent]
    port_motion(m, b, parent, q, v, p_J, A, slide, w, w_bias, l)
    rot3.multiply(A, b.R0, T)
    rot3.multiply(T, R_J, b.R)
    # relative velocity of the point of the port frame that carries the body
    vec3.cross(w, l, t)
    vec3.add(slide, t, slide)
    # twist of that frame at the body origin, parent axes, then body axes
    vec3.cross(parent.V + 3, b.r, t)
    for i in range(3):
        V[i] = parent.V[i] + t[i] + slide[i]
        V[3 + i] = parent.V[3 + i] + w[i]
    rot3.apply_transposed(b.R, V, V)
    rot3.apply_transposed(b.R, V + 3, V + 3)
    for i in range(6):
        b.V[i] = V[i] + rel[i]
    # velocity part of its acceleration: w x (w x r) + 2 w x slide + w_bias x l + w_rel x (w_rel x l); w_bias + w x w_rel
    vec3.cross(parent.V + 3, b.r, t)
    vec3.add_scaled(t, 2.0, slide, t)
    vec3.cross(parent.V + 3, t, arm)
    vec3.cross(w_bias, l, t)
    vec3.add(arm, t, arm)
    vec3.cross(w, l, t)
    vec3.cross(w, t, u)
    vec3.add(arm, u, arm)
    vec3.cross(parent.V + 3, w, t)
    vec3.add(w_bias, t, t)
    rot3.apply_transposed(b.R, arm, b.c)
    rot3.apply_transposed(b.R, t, b.c + 3)
    # and of the joint: 2 w_port x v_rel + w_rel x v_rel ; w_port x w_rel
    vec3.cross(V + 3, rel, t)
    vec3.cross(rel + 3, rel, u)
    for i in range(3):
        b.c[i] += 2.0 * t[i] + u[i]
    vec3.cross(V + 3, rel + 3, t)
    vec3.add(b.c + 3, t, b.c + 3)


# --- one body: inertia and bias --------------------------------------------------------------------------------------------------------


cdef void weigh_body(Body *b, const double *q, const double *v) noexcept nogil:
    """Fill M, Mem, Maa, z, ze of one body from its own mass only (see the head of the file)."""
    cdef int s = b.s
    cdef int i, j, a, k
    cdef double c[3]
    cdef double cd[3]
    cdef double E[9]
    cdef double H[9]
    cdef double g[9]
    cdef double t[3]
    cdef double u[3]
    cdef const double *G
    cdef const double *w = b.V + 3
    cdef const double *eta = q + b.eq
    cdef const double *rate = v + b.ev
    cdef double trace, x, ww
    vec3.copy(b.d0, c)
    memcpy(E, b.E0, 9 * sizeof(double))
    memset(H, 0, 9 * sizeof(double))
    for i in range(3):
        cd[i] = 0.0
    # integrals over the deformed body
    for a in range(s):
        memcpy(g, b.N + 9 * a, 9 * sizeof(double))
        for i in range(3):
            c[i] += eta[a] * b.P[3 * a + i]
            cd[i] += rate[a] * b.P[3 * a + i]
            for j in range(3):
                E[3 * i + j] += eta[a] * g[3 * j + i]
        for k in range(s):
            x = eta[k]
            for i in range(9):
                g[i] += x * b.Q[9 * (s * a + k) + i]
        for i in range(9):
            E[i] += eta[a] * g[i]
            H[i] += rate[a] * g[i]
        memcpy(b.G + 9 * a, g, 9 * sizeof(double))
    # rigid part of the inertia: [m 1, -S(c); S(c), tr(E) 1 - E]
    memset(b.M, 0, 36 * sizeof(double))
    trace = E[0] + E[4] + E[8]
    for i in range(3):
        b.M[7 * i] = b.mass
        for j in range(3):
            b.M[6 * (3 + i) + 3 + j] = -0.5 * (E[3 * i + j] + E[3 * j + i])
        b.M[7 * (3 + i)] += trace
    b.M[4] = c[2]; b.M[5] = -c[1]; b.M[9] = -c[2]; b.M[11] = c[0]; b.M[15] = c[1]; b.M[16] = -c[0]
    b.M[24] = c[2]; b.M[30] = -c[1]; b.M[19] = -c[2]; b.M[31] = c[0]; b.M[20] = c[1]; b.M[26] = -c[0]
    # bias, linear: w x (w x c + 2 c_dot)
    vec3.cross(w, c, t)
    vec3.add_scaled(t, 2.0, cd, t)
    vec3.cross(w, t, b.z)
    # bias, angular: w x I w + 2 (tr(H) w - H^T w)
    for i in range(3):
        t[i] = b.M[6 * (3 + i) + 3] * w[0] + b.M[6 * (3 + i) + 4] * w[1] + b.M[6 * (3 + i) + 5] * w[2]
    vec3.cross(w, t, b.z + 3)
    trace = H[0] + H[4] + H[8]
    rot3.apply_transposed(H, w, t)
    for i in range(3):
        b.z[3 + i] += 2.0 * (trace * w[i] - t[i])
    # modal part
    ww = vec3.dot(w, w)
    for a in range(s):
        G = b.G + 9 * a
        vec3.copy(b.P + 3 * a, b.Mem + 6 * a)
        b.Mem[6 * a + 3] = G[5] - G[7]
        b.Mem[6 * a + 4] = G[6] - G[2]
        b.Mem[6 * a + 5] = G[1] - G[3]
        rot3.apply(G, w, t)
        x = vec3.dot(w, t) - ww * (G[0] + G[4] + G[8])
        for i in range(3):
            u[i] = 0.0
        for k in range(s):
            for i in range(3):
                u[i] += rate[k] * b.Y[3 * (s * a + k) + i]
        b.ze[a] = x + 2.0 * vec3.dot(w, u)
    memcpy(b.Maa, b.Mee, s * s * sizeof(double))


cdef void move(Model *m, const double *q, const double *v) noexcept nogil:
    """Kinematics, and the inertia and bias of every body."""
    cdef int i
    for i in range(m.n):
        move_body(m, i, q, v)
        weigh_body(&m.body[i], q, v)


cdef void place(Model *m) noexcept nogil:
    """Pose of every body in the inertial frame (after `move`)."""
    cdef Body *b
    cdef Body *parent
    cdef int i
    for i in range(m.n):
        b = &m.body[i]
        if b.parent < 0:
            vec3.copy(b.r, b.pose)
            memcpy(b.pose + 3, b.R, 9 * sizeof(double))
        else:
            parent = &m.body[b.parent]
            rot3.apply(parent.pose + 3, b.r, b.pose)
            vec3.add(parent.pose, b.pose, b.pose)
            rot3.multiply(parent.pose + 3, b.R, b.pose + 3)


# --- elimination, body by body ----------------------------------------------------------------------------------------------------------


cdef inline double modal_force(const Body *b, int a, double h, const double *q, const double *v) noexcept nogil:
    """-K (eta + h eta_dot) - C eta_dot, row a."""
    cdef int k
    cdef double t = 0.0
    for k in range(b.s):
        t -= b.K[a * b.s + k] * (q[b.eq + k] + h * v[b.ev + k]) + b.C[a * b.s + k] * v[b.ev + k]
    return t


cdef void eliminate_modes(Body *b, double h, const double *q, const double *v, const double *tau) noexcept nogil:
    """Cholesky of the modal block; P_a = P - X^T X, z_a = z + X^T y with X = L^-1 M_em (kept in Mem), y = L^-1 (t - z_e)."""
    cdef int s = b.s
    cdef int a, i, j, k
    cdef double row[6]
    cdef double M[36]
    cdef double x, y
    if h > 0.0:
        for a in range(s * s):
            b.Maa[a] += h * (b.C[a] + h * b.K[a])
    cholesky(b.Maa, s, s)
    memcpy(M, b.M, 36 * sizeof(double))
    for a in range(s):
        y = tau[b.ev + a] + modal_force(b, a, h, q, v) - b.ze[a]
        memcpy(row, b.Mem + 6 * a, 6 * sizeof(double))
        for k in range(a):
            x = b.Maa[a * s + k]
            y -= x * b.y[k]
            for i in range(6):
                row[i] -= x * b.Mem[6 * k + i]
        x = b.Maa[a * s + a]
        y *= x
        for i in range(6):
            row[i] *= x
        for i in range(6):
            b.z[i] += row[i] * y
            for j in range(6):
                M[6 * i + j] -= row[i] * row[j]
        b.y[a] = y
        memcpy(b.Mem + 6 * a, row, 6 * sizeof(double))
    memcpy(b.M, M, 36 * sizeof(double))


cdef inline double joint_component(const Body *b, int k, const double *w) noexcept nogil:
    """H_k . w for coordinate k of the joint."""
    if b.joint == REVOLUTE:
        return vec3.dot(b.axis, w + 3)
    if b.joint == PRISMATIC:
        return vec3.dot(b.axis, w)
    if b.joint == SPHERICAL:
        return w[3 + k]
    return w[k]


cdef inline void joint_add(const Body *b, int k, double x, double *w) noexcept nogil:
    """w += H_k x."""
    if b.joint == REVOLUTE:
        vec3.add_scaled(w + 3, x, b.axis, w + 3)
    elif b.joint == PRISMATIC:
        vec3.add_scaled(w, x, b.axis, w)
    elif b.joint == SPHERICAL:
        w[3 + k] += x
    else:
        w[k] += x


cdef void eliminate_joint(Body *b, double h, const double *q, const double *v, const double *tau, const unsigned char *known,
                          const double *a, double *P, double *z) noexcept nogil:
    """P+ and z+ (body axes) after the free coordinates of the joint are eliminated; given accelerations go into b.c."""
    cdef double f[6]
    cdef double column[6]
    cdef double x
    cdef int i, j, k, n = 0
    for k in range(b.nd):
        if known != NULL and known[b.iv + k]:
            joint_add(b, k, a[b.iv + k], b.c)
        else:
            b.free_axis[n] = k
            n += 1
    b.n_free = n
    multiply_6(b.M, b.c, f)
    for i in range(6):
        z[i] = b.z[i] + f[i]
    memcpy(P, b.M, 36 * sizeof(double))
    if n == 0:
        return
    for k in range(n):
        memset(column, 0, 6 * sizeof(double))
        joint_add(b, b.free_axis[k], 1.0, column)
        multiply_6(b.M, column, f)
        for i in range(6):
            b.U[6 * k + i] = f[i]
    for k in range(n):
        for j in range(n):
            b.D[6 * k + j] = joint_component(b, b.free_axis[k], b.U + 6 * j)
        b.D[7 * k] += b.armature + h * (b.damping + h * b.stiffness)
        i = b.free_axis[k]
        b.e[k] = tau[b.iv + i] - joint_component(b, i, z)
        if b.stiffness != 0.0 or b.damping != 0.0:
            b.e[k] -= b.stiffness * (q[b.iq] + h * v[b.iv]) + b.damping * v[b.iv]
    # U <- L^-1 U, e <- L^-1 e: then P+ = P - U^T U, z+ = z + U^T e
    cholesky(b.D, n, 6)
    for k in range(n):
        memcpy(f, b.U + 6 * k, 6 * sizeof(double))
        for j in range(k):
            x = b.D[6 * k + j]
            b.e[k] -= x * b.e[j]
            for i in range(6):
                f[i] -= x * b.U[6 * j + i]
        x = b.D[7 * k]
        b.e[k] *= x
        for i in range(6):
            f[i] *= x
        x = b.e[k]
        for i in range(6):
            z[i] += f[i] * x
            for j in range(6):
                P[6 * i + j] -= f[i] * f[j]
        memcpy(b.U + 6 * k, f, 6 * sizeof(double))


cdef void hand_wrench(const Body *b, Body *parent, const double *z, double *shifted) noexcept nogil:
    """z (body axes, at the body) in parent axes, to the parent's rigid and modal equations; `shifted` keeps it at the body origin."""
    cdef double t[3]
    cdef double x
    cdef int i, a, s = parent.s
    rot3.apply(b.R, z, shifted)
    rot3.apply(b.R, z + 3, shifted + 3)
    vec3.cross(b.r, shifted, t)
    for i in range(3):
        parent.z[i] += shifted[i]
        parent.z[3 + i] += shifted[3 + i] + t[i]
    if b.J != NULL:
        for a in range(s):
            x = 0.0
            for i in range(6):
                x += b.J[6 * a + i] * shifted[i]
            parent.ze[a] += x


cdef void hand_inertia(const Body *b, Body *parent, const double *P) noexcept nogil:
    """P+ (body axes) into the parent's equations: C^T P+ C with C = [J_port | shift by r]."""
    cdef double B[27]                  # blocks vv, vw, ww in parent axes
    cdef double T[9]
    cdef double W[6]
    cdef double t[3]
    cdef double x
    cdef double Q[36]
    cdef int i, j, a, k, s = parent.s
    rotate_block(b.R, P, 6, B)
    rotate_block(b.R, P + 3, 6, B + 9)
    rotate_block(b.R, P + 21, 6, B + 18)
    if b.J != NULL:
        for i in range(3):
            for j in range(3):
                Q[6 * i + j] = B[3 * i + j]
                Q[6 * i + 3 + j] = B[9 + 3 * i + j]
                Q[6 * (3 + j) + i] = B[9 + 3 * i + j]
                Q[6 * (3 + i) + 3 + j] = B[18 + 3 * i + j]
        for a in range(s):
            # W = P J_a, then the modal block and, shifted, the coupling
            multiply_6(Q, b.J + 6 * a, W)
            for k in range(a + 1):
                x = 0.0
                for i in range(6):
                    x += b.J[6 * k + i] * W[i]
                parent.Maa[a * s + k] += x
                if k != a:
                    parent.Maa[k * s + a] += x
            vec3.cross(b.r, W, t)
            for i in range(3):
                parent.Mem[6 * a + i] += W[i]
                parent.Mem[6 * a + 3 + i] += W[3 + i] + t[i]
    # rigid part: vv; vw' = vw - vv S(r); ww' = ww + S(r) vw - vw^T S(r) - S(r) vv S(r), written with rows of vw'
    for i in range(3):
        # row i of vv S(r) is (row i of vv) x r taken as -(r x row)
        vec3.cross(b.r, B + 3 * i, t)
        for j in range(3):
            T[3 * i + j] = B[9 + 3 * i + j] + t[j]
    for i in range(3):
        for j in range(3):
            parent.M[6 * i + j] += B[3 * i + j]
            parent.M[6 * i + 3 + j] += T[3 * i + j]
            parent.M[6 * (3 + j) + i] += T[3 * i + j]
    # ww' = ww - vw^T S(r) + S(r) vw'
    for i in range(3):
        vec3.fill(B[9 + i], B[12 + i], B[15 + i], W)          # column i of vw = row i of vw^T
        vec3.cross(b.r, W, t)
        for j in range(3):
            parent.M[6 * (3 + i) + 3 + j] += B[18 + 3 * i + j] + t[j]
    for j in range(3):
        vec3.fill(T[j], T[3 + j], T[6 + j], W)                # column j of vw'
        vec3.cross(b.r, W, t)
        for i in range(3):
            parent.M[6 * (3 + i) + 3 + j] += t[i]


cdef inline void carry_acceleration(Model *m, const Body *b, const double *a, double *A) noexcept nogil:
    """Acceleration of the parent's port frame at the body origin without velocity terms, body axes."""
    cdef Body *parent
    cdef double t[3]
    cdef int i, k, s
    if b.parent < 0:
        # gravity as an acceleration of the base
        for i in range(3):
            t[i] = -m.gravity[i]
        rot3.apply_transposed(b.R, t, A)
        for i in range(3):
            A[3 + i] = 0.0
        return
    parent = &m.body[b.parent]
    s = parent.s
    vec3.cross(parent.A + 3, b.r, t)
    for i in range(3):
        A[i] = parent.A[i] + t[i]
        A[3 + i] = parent.A[3 + i]
    if b.J != NULL:
        for k in range(s):
            for i in range(6):
                A[i] += b.J[6 * k + i] * a[parent.ev + k]
    rot3.apply_transposed(b.R, A, A)
    rot3.apply_transposed(b.R, A + 3, A + 3)


cdef void accelerate(Model *m, double h, const double *q, const double *v, const double *tau, const double *f_ext,
                     const unsigned char *known, double *a, double *tau_out) noexcept nogil:
    """Accelerations `a` (given where `known`) and joint forces `tau_out` (may be NULL). `f_ext` (n, 6) body axes, may be NULL."""
    cdef Body *b
    cdef double P[36]
    cdef double z[6]
    cdef double F[6]
    cdef double x
    cdef int i, k, j
    move(m, q, v)
    for i in range(m.n - 1, -1, -1):
        b = &m.body[i]
        if f_ext != NULL:
            for k in range(6):
                b.z[k] -= f_ext[6 * i + k]
        if b.s > 0:
            eliminate_modes(b, h, q, v, tau)
        eliminate_joint(b, h, q, v, tau, known, a, P, z)
        if b.parent >= 0:
            hand_wrench(b, &m.body[b.parent], z, F)
            hand_inertia(b, &m.body[b.parent], P)
    for i in range(m.n):
        b = &m.body[i]
        carry_acceleration(m, b, a, b.A)
        # free coordinates: D qdd = e - U^T A, both already divided by the factor
        for k in range(b.n_free):
            x = b.e[k]
            for j in range(6):
                x -= b.U[6 * k + j] * b.A[j]
            b.e[k] = x
        backward_solve(b.D, b.n_free, 6, b.e)
        for k in range(6):
            b.A[k] += b.c[k]
        for k in range(b.n_free):
            a[b.iv + b.free_axis[k]] = b.e[k]
            joint_add(b, b.free_axis[k], b.e[k], b.A)
        # modes: eta_ddot = L^-T (y - X A)
        for k in range(b.s):
            x = b.y[k]
            for j in range(6):
                x -= b.Mem[6 * k + j] * b.A[j]
            a[b.ev + k] = x
        backward_solve(b.Maa, b.s, b.s, a + b.ev)
        # wrench through the joint and the force along given coordinates
        multiply_6(b.M, b.A, b.F)
        for k in range(6):
            b.F[k] += b.z[k]
        if tau_out != NULL:
            for k in range(b.nd):
                tau_out[b.iv + k] = tau[b.iv + k]
                if known != NULL and known[b.iv + k]:
                    tau_out[b.iv + k] = joint_component(b, k, b.F) + b.armature * a[b.iv + k]
                    if b.nd == 1:
                        tau_out[b.iv] += b.stiffness * q[b.iq] + b.damping * v[b.iv]
            for k in range(b.s):
                tau_out[b.ev + k] = tau[b.ev + k]


cdef void require(Model *m, const double *q, const double *v, const double *a, const double *f_ext, double *tau) noexcept nogil:
    """Forces `tau` of all coordinates, modal ones too, for given accelerations `a` (recursive Newton-Euler)."""
    cdef Body *b
    cdef double f[6]
    cdef double x
    cdef int i, k, j
    move(m, q, v)
    for i in range(m.n):
        b = &m.body[i]
        carry_acceleration(m, b, a, b.A)
        for k in range(6):
            b.A[k] += b.c[k]
        for k in range(b.nd):
            joint_add(b, k, a[b.iv + k], b.A)
        # own equations of the body: z <- M A + M_re eta_ddot + z, ze <- M_ee eta_ddot + M_er A + z_e
        multiply_6(b.M, b.A, f)
        for k in range(6):
            b.z[k] += f[k]
            if f_ext != NULL:
                b.z[k] -= f_ext[6 * i + k]
        for k in range(b.s):
            x = 0.0
            for j in range(6):
                b.z[j] += b.Mem[6 * k + j] * a[b.ev + k]
                x += b.Mem[6 * k + j] * b.A[j]
            for j in range(b.s):
                x += b.Maa[k * b.s + j] * a[b.ev + j]
            b.ze[k] += x
    for i in range(m.n - 1, -1, -1):
        b = &m.body[i]
        for k in range(6):
            b.F[k] = b.z[k]
        for k in range(b.nd):
            tau[b.iv + k] = joint_component(b, k, b.z) + b.armature * a[b.iv + k]
        if b.nd == 1:
            tau[b.iv] += b.stiffness * q[b.iq] + b.damping * v[b.iv]
        for k in range(b.s):
            tau[b.ev + k] = b.ze[k] - modal_force(b, k, 0.0, q, v)
        if b.parent >= 0:
            hand_wrench(b, &m.body[b.parent], b.z, f)


cdef void balance(Model *m, const double *q, const double *v, double *out) noexcept nogil:
    """out = [kinetic, potential energy, linear momentum (3), angular momentum about the inertial origin (3), mass, mass x centre (3)]."""
    cdef Body *b
    cdef double p[6]
    cdef double t[3]
    cdef double u[3]
    cdef double x
    cdef int i, j, k
    memset(out, 0, 12 * sizeof(double))
    move(m, q, v)
    place(m)
    for i in range(m.n):
        b = &m.body[i]
        # momentum in body axes: M_rr V + M_re eta_dot; kinetic energy
        multiply_6(b.M, b.V, p)
        for k in range(b.s):
            x = 0.0
            for j in range(6):
                x += b.Mem[6 * k + j] * b.V[j]
                p[j] += b.Mem[6 * k + j] * v[b.ev + k]
            out[0] += 0.5 * x * v[b.ev + k]
            for j in range(b.s):
                out[0] += 0.5 * v[b.ev + k] * b.Maa[k * b.s + j] * v[b.ev + j]
                out[1] += 0.5 * q[b.eq + k] * b.K[k * b.s + j] * q[b.eq + j]
        for j in range(6):
            out[0] += 0.5 * p[j] * b.V[j]
        if b.nd == 1:
            out[0] += 0.5 * b.armature * v[b.iv] * v[b.iv]
            out[1] += 0.5 * b.stiffness * q[b.iq] * q[b.iq]
        # to the inertial frame
        rot3.apply(b.pose + 3, p, t)
        vec3.add(out + 2, t, out + 2)
        vec3.cross(b.pose, t, u)
        rot3.apply(b.pose + 3, p + 3, t)
        for j in range(3):
            out[5 + j] += t[j] + u[j]
        # mass and first moment: c from the coupling block, [c]_x at M[3:, :3]
        vec3.fill(b.M[31], b.M[20], b.M[24], u)
        rot3.apply(b.pose + 3, u, t)
        out[8] += b.mass
        for j in range(3):
            x = t[j] + b.mass * b.pose[j]
            out[9 + j] += x
            out[1] -= m.gravity[j] * x


# --- the model object ---------------------------------------------------------------------------------------------------------------------

_JOINTS = {"fixed": (FIXED, 0, 0), "revolute": (REVOLUTE, 1, 1), "prismatic": (PRISMATIC, 1, 1),
           "spherical": (SPHERICAL, 4, 3), "free": (FREE, 7, 6)}


cdef class FlexibleTree:
    """Dynamics of a tree of `multibody.craft.Link` (rigid and modal bodies).

    links    sequence of Link, any order, parents named
    gravity  (3,) m/s^2, inertial axes
    rates    "exact" (port rate consistent with the exponential of the port rotation) or "first_order" (psi eta_dot)

    q is [joint coordinates | modal coordinates], v likewise, bodies in `names` order (parents first, otherwise as given).
    `f_ext` (bodies, 6): wrench on each body at its joint frame origin, body axes, force first. A massless link on a fixed joint
    marks a place on a flexible body where a force acts or a motion is read.

    Raises ValueError naming the link or argument, the value and the limit.
    """

    def __cinit__(self, links, gravity=(0.0, 0.0, 0.0), str rates="exact"):
        cdef Body *b
        cdef Body *parent = NULL
        cdef double *at
        cdef int i, s, sp
        cdef Py_ssize_t total = 0
        if rates not in ("exact", "first_order"):
            raise ValueError(f"rates: {rates!r} is not one of 'exact', 'first_order'")
        g = np.asarray(gravity, dtype=float)
        if g.shape != (3,) or not np.all(np.isfinite(g)):
            raise ValueError(f"gravity: three finite numbers in m/s^2 expected, got {gravity!r}")
        links = _parents_first(links)
        self.links = tuple(links)
        self.names = tuple(link.name for link in links)
        self._index = {name: k for k, name in enumerate(self.names)}
        self._bodies = [link.body for link in links]
        self.model.n = len(links)
        self.model.first_order = rates == "first_order"
        for i in range(3):
            self.model.gravity[i] = g[i]
        self.model.body = <Body *>calloc(len(links), sizeof(Body))
        # sizes
        for i, link in enumerate(links):
            s = link.body.n_modes
            sp = links[self._index[link.parent]].body.n_modes if link.parent is not None else 0
            total += s * 9 + s * s * 9 + s * 3 + s * s * 3 + 3 * s * s + s * 6 + s * s + 2 * s + s * 9 + 12 * sp
        self.pool = <double *>calloc(max(total, 1), sizeof(double))
        if self.model.body == NULL or self.pool == NULL:
            raise MemoryError("no memory for the tree")
        # coordinates: joints first, modes after
        iq = iv = 0
        for i, link in enumerate(links):
            b = &self.model.body[i]
            code, nq, nd = _JOINTS[link.joint]
            b.joint = code; b.nd = nd; b.iq = iq; b.iv = iv
            b.s = link.body.n_modes
            iq += nq; iv += nd
        self.model.nj = iv
        for i in range(self.model.n):
            b = &self.model.body[i]
            b.eq = iq; b.ev = iv
            iq += b.s; iv += b.s
        self.model.nq = iq; self.model.nv = iv
        self.nq = iq; self.nv = iv; self.nj = self.model.nj
        # constants
        at = self.pool
        for i, link in enumerate(links):
            b = &self.model.body[i]
            s = b.s
            b.parent = -1 if link.parent is None else self._index[link.parent]
            b.armature = link.armature; b.stiffness = link.stiffness; b.damping = link.damping
            body = link.body
            b.mass = body.mass
            _fill(b.axis, link.axis); _fill(b.d0, body.first_moment); _fill(b.E0, body.second_moment)
            p_port, R_port, phi, psi = np.zeros(3), np.eye(3), None, None
            if link.parent is not None:
                parent = &self.model.body[b.parent]
                p_port, R_port, phi, psi = self._bodies[b.parent].port_arrays(link.port)
            _fill(b.p_port, p_port)
            _fill(b.p_off, R_port @ link.position)
            _fill(b.R0, R_port @ link.rotation)
            at = _place(&b.N, at, body.N)
            at = _place(&b.Q, at, body.kernel_Q())
            at = _place(&b.P, at, body.P)
            at = _place(&b.Y, at, body.kernel_Y())
            at = _place(&b.Mee, at, body.modal_mass)
            at = _place(&b.K, at, body.stiffness)
            at = _place(&b.C, at, body.damping)
            b.Mem = at; at += 6 * s
            b.Maa = at; at += s * s
            b.ze = at; at += s
            b.y = at; at += s
            b.G = at; at += 9 * s
            if b.parent >= 0 and parent.s > 0 and phi is not None:
                at = _place(&b.phi, at, phi)
                at = _place(&b.psi, at, psi)
                b.J = at; at += 6 * parent.s

    def __dealloc__(self):
        free(self.model.body)
        free(self.pool)

    # --- arguments

    def _vector(self, str name, value, int size):
        array = np.ascontiguousarray(value, dtype=np.float64)
        if array.shape != (size,):
            raise ValueError(f"{name}: shape {array.shape} given, ({size},) expected")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name}: not finite at index {int(np.argmin(np.isfinite(array)))}")
        return array

    def _loads(self, f_ext):
        if f_ext is None:
            return np.zeros((self.model.n, 6))
        array = np.ascontiguousarray(f_ext, dtype=np.float64)
        if array.shape != (self.model.n, 6):
            raise ValueError(f"f_ext: shape {array.shape} given, ({self.model.n}, 6) expected (bodies; force first, body axes)")
        if not np.all(np.isfinite(array)):
            raise ValueError("f_ext: not finite")
        return array

    def index(self, str name):
        """Row of the named body in `f_ext`, `reactions` and `poses`."""
        if name not in self._index:
            raise ValueError(f"no body named {name!r}; there are {', '.join(self.names)}")
        return self._index[name]

    def q_slice(self, str name):
        """Slices of q that hold (joint, modes) of the named body."""
        cdef Body *b = &self.model.body[self.index(name)]
        nq = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, SPHERICAL: 4, FREE: 7}[b.joint]
        return slice(b.iq, b.iq + nq), slice(b.eq, b.eq + b.s)

    def v_slice(self, str name):
        """Slices of v that hold (joint, modes) of the named body."""
        cdef Body *b = &self.model.body[self.index(name)]
        return slice(b.iv, b.iv + b.nd), slice(b.ev, b.ev + b.s)

    def neutral(self):
        """q with all joints at zero and no deformation."""
        cdef int i
        q = np.zeros(self.nq)
        for i in range(self.model.n):
            if self.model.body[i].joint == SPHERICAL:
                q[self.model.body[i].iq + 3] = 1.0
            elif self.model.body[i].joint == FREE:
                q[self.model.body[i].iq + 6] = 1.0
        return q

    def quaternions(self):
        """[(first index in q, first index in v, 'free' | 'spherical')] of the joints that carry a quaternion."""
        cdef int i
        return [(self.model.body[i].iq, self.model.body[i].iv, "free" if self.model.body[i].joint == FREE else "spherical")
                for i in range(self.model.n) if self.model.body[i].joint in (SPHERICAL, FREE)]

    # --- dynamics

    def forward_dynamics(self, q, v, tau, f_ext=None, double step=0.0):
        """Accelerations (nv,) for given forces `tau` (nv,; modal part: loads beside -K eta - C eta_dot).

        `step` > 0 s: springs and dampers taken at the end of a step of that length (implicit linear Euler).
        """
        return self.hybrid_dynamics(q, v, tau, np.zeros(self.nv), np.zeros(self.nv, dtype=bool), f_ext, step)[1]

    def hybrid_dynamics(self, q, v, tau, a, known, f_ext=None, double step=0.0):
        """(tau, a) where `known` (nv,) booleans tell whose acceleration is given. Modal coordinates cannot be given: they are released."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef double[::1] tau_ = self._vector("tau", tau, self.nv)
        cdef double[:, ::1] f_ = self._loads(f_ext)
        mask = np.ascontiguousarray(known, dtype=np.uint8)
        if mask.shape != (self.nv,):
            raise ValueError(f"known: shape {mask.shape} given, ({self.nv},) expected")
        if mask[self.nj:].any():
            raise ValueError(f"known: modal coordinate {self.nj + int(np.argmax(mask[self.nj:]))} cannot have a given acceleration")
        if not step >= 0.0:
            raise ValueError(f"step: {step} s is not >= 0")
        if self.nv == 0:
            return np.zeros(0), np.zeros(0)
        given = self._vector("a", a, self.nv)
        result = np.where(mask, given, 0.0)
        forces = np.empty(self.nv)
        cdef double[::1] a_ = result
        cdef double[::1] t_ = forces
        cdef unsigned char[::1] k_ = mask
        with nogil:
            accelerate(&self.model, step, &q_[0], &v_[0], &tau_[0], &f_[0, 0], &k_[0], &a_[0], &t_[0])
        if not np.isfinite(result).all():
            raise ValueError("q: a joint or mode of the links " + ", ".join(
                name for name in self.names if not all(np.isfinite(result[part]).all() for part in self.v_slice(name)))
                + " moves no mass in this configuration, or the state is beyond all bounds")
        return forces, result

    def inverse_dynamics(self, q, v, a, f_ext=None):
        """Forces (nv,) that give the accelerations `a` (nv,), modal ones included (zero there means: free vibration satisfied)."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef double[::1] a_ = self._vector("a", a, self.nv)
        cdef double[:, ::1] f_ = self._loads(f_ext)
        if self.nv == 0:
            return np.zeros(0)
        result = np.empty(self.nv)
        cdef double[::1] t_ = result
        with nogil:
            require(&self.model, &q_[0], &v_[0], &a_[0], &f_[0, 0], &t_[0])
        return result

    def mass_matrix(self, q):
        """(nv, nv) mass matrix, armature included."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef Model bare = self.model
        cdef double[::1] zero = np.zeros(self.nv)
        cdef double[::1] unit = np.zeros(self.nv)
        result = np.empty((self.nv, self.nv))
        cdef double[:, ::1] M = result
        cdef int i
        for i in range(3):
            bare.gravity[i] = 0.0
        offset = np.empty(self.nv)
        cdef double[::1] o_ = offset
        if self.nv == 0:
            return result
        require(&bare, &q_[0], &zero[0], &zero[0], NULL, &o_[0])
        for i in range(self.nv):
            unit[i] = 1.0
            require(&bare, &q_[0], &zero[0], &unit[0], NULL, &M[i, 0])
            unit[i] = 0.0
        result -= offset[None, :]
        return 0.5 * (result + result.T)

    def stiffness_matrix(self):
        """(nv, nv) linear stiffness: joint springs and modal stiffness."""
        cdef int i
        K = np.zeros((self.nv, self.nv))
        for i in range(self.model.n):
            if self.model.body[i].nd == 1:
                K[self.model.body[i].iv, self.model.body[i].iv] = self.model.body[i].stiffness
            where = slice(self.model.body[i].ev, self.model.body[i].ev + self.model.body[i].s)
            K[where, where] = self._bodies[i].stiffness
        return K

    def damping_matrix(self):
        """(nv, nv) linear damping: joint dampers and modal damping."""
        cdef int i
        C = np.zeros((self.nv, self.nv))
        for i in range(self.model.n):
            if self.model.body[i].nd == 1:
                C[self.model.body[i].iv, self.model.body[i].iv] = self.model.body[i].damping
            where = slice(self.model.body[i].ev, self.model.body[i].ev + self.model.body[i].s)
            C[where, where] = self._bodies[i].damping
        return C

    def frequencies(self, q=None, locked=()):
        """Natural frequencies in Hz, ascending, at rest at q (neutral by default), rigid-body zeros included.

        locked: indices of velocity coordinates held fixed. Gravity and pre-stress do not enter.
        """
        from scipy.linalg import eigh

        keep = np.setdiff1d(np.arange(self.nv), np.asarray(locked, dtype=int))
        M = self.mass_matrix(self.neutral() if q is None else q)[np.ix_(keep, keep)]
        K = self.stiffness_matrix()[np.ix_(keep, keep)]
        return np.sqrt(np.clip(eigh(K, M, eigvals_only=True), 0.0, None)) / (2.0 * np.pi)

    def modes_at(self, str body, q=None):
        """Natural modes of the whole tree as the frame of one body shows them: (frequency_hz (nv,), shapes (nv, 6)).

        At rest at q (neutral by default), ascending, the rigid-body modes of a free craft first, at 0 Hz. shapes: mass-normalised
        displacement of the body's frame, its axes, translation [kg^-1/2] before rotation [rad m^-1 kg^-1/2]. Raises ValueError for an
        unknown body. Gravity and pre-stress do not enter.
        """
        from scipy.linalg import eigh

        rest = self.neutral() if q is None else q
        row = self.index(body)
        squares, vectors = eigh(self.stiffness_matrix(), self.mass_matrix(rest))
        # a free craft's rigid-body modes come out as rounding errors about zero
        squares[squares < 1e-9 * squares.max()] = 0.0
        shapes = np.array([self.twists(rest, np.ascontiguousarray(vector))[row] for vector in vectors.T])
        return np.sqrt(squares) / (2.0 * np.pi), shapes

    def balance(self, q, v):
        """dict: kinetic, potential (J), linear (3,) and angular (3,) momentum about the inertial origin, mass, centre (3,)."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef double out[12]
        if self.nv == 0:
            raise ValueError("balance: the tree has no coordinate")
        balance(&self.model, &q_[0], &v_[0], out)
        return {"kinetic": out[0], "potential": out[1], "linear": np.array([out[2], out[3], out[4]]),
                "angular": np.array([out[5], out[6], out[7]]), "mass": out[8],
                "centre": np.array([out[9], out[10], out[11]]) / out[8] if out[8] > 0.0 else np.zeros(3)}

    def poses(self, q):
        """(bodies, 3) positions and (bodies, 3, 3) rotations R_WB of the body frames."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] zero = np.zeros(self.nv)
        cdef int i, j
        p, R = np.empty((self.model.n, 3)), np.empty((self.model.n, 3, 3))
        if self.nv == 0:
            raise ValueError("poses: the tree has no coordinate")
        move(&self.model, &q_[0], &zero[0])
        place(&self.model)
        for i in range(self.model.n):
            for j in range(3):
                p[i, j] = self.model.body[i].pose[j]
            for j in range(9):
                R[i, j // 3, j % 3] = self.model.body[i].pose[3 + j]
        return p, R

    def twists(self, q, v):
        """(bodies, 6) twist of each body frame, body axes, linear first."""
        cdef double[::1] q_ = self._vector("q", q, self.nq)
        cdef double[::1] v_ = self._vector("v", v, self.nv)
        cdef int i, j
        out = np.empty((self.model.n, 6))
        if self.nv == 0:
            raise ValueError("twists: the tree has no coordinate")
        move(&self.model, &q_[0], &v_[0])
        for i in range(self.model.n):
            for j in range(6):
                out[i, j] = self.model.body[i].V[j]
        return out

    def reactions(self):
        """(bodies, 6) wrench that each joint carries to its body after the last call of a dynamics function, body axes at the joint."""
        cdef int i, j
        out = np.empty((self.model.n, 6))
        for i in range(self.model.n):
            for j in range(6):
                out[i, j] = self.model.body[i].F[j]
        return out


cdef void _fill(double *target, values):
    cdef double x
    cdef int i = 0
    for x in np.asarray(values, dtype=float).ravel():
        target[i] = x
        i += 1


cdef double *_place(double **pointer, double *at, values):
    cdef Py_ssize_t size = np.asarray(values).size
    pointer[0] = at
    _fill(at, values)
    return at + size


def _parents_first(links):
    """Links ordered so that each parent comes before its children; names unique, parents and ports known, no loop."""
    links = list(links)
    if not links:
        raise ValueError("links: at least one is needed")
    by_name = {}
    for link in links:
        if link.name in by_name:
            raise ValueError(f"link {link.name!r}: the name is used twice")
        by_name[link.name] = link
    for link in links:
        if link.parent is not None and link.parent not in by_name:
            raise ValueError(f"link {link.name!r}: parent {link.parent!r} does not exist")
        if link.parent is not None:
            by_name[link.parent].body.port_arrays(link.port)
    ordered, placed = [], set()
    while len(ordered) < len(links):
        ready = [link for link in links if link.name not in placed and (link.parent is None or link.parent in placed)]
        if not ready:
            left = sorted(set(by_name) - placed)
            raise ValueError(f"links {', '.join(left)}: they form a loop, a tree has none")
        for link in ready:
            ordered.append(link)
            placed.add(link.name)
    # every joint must move some mass
    moved = {link.name: link.body.mass > 0.0 for link in links}
    for link in reversed(ordered):
        if not moved[link.name] and link.joint != "fixed":
            raise ValueError(f"link {link.name!r}: its {link.joint} joint carries no mass")
        if moved[link.name] and link.parent is not None:
            moved[link.parent] = True
    return ordered
