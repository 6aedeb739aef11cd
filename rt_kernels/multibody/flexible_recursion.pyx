# distutils: extra_compile_args = -O3
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
`first_order` the rate is psi eta_dot, as in Tian et al. 2010 and in Wang et al. 2020
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
Sources: Tian et al. 2010, eqs. (5)-(7) corrected; Wang et al. 2020, eqs. (5)-(43).
"""

from libc.string cimport memcpy, memset

from rt_kernels.algebra cimport quat, rot3, vec3
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.multibody.flexible_algebra cimport (
    backward_solve, cholesky, exponential_terms, jacobian_rate, multiply_6, rotate_block, skew_polynomial,
)


# --- kinematics: positions, velocities, velocity part of accelerations ---------------------------------------------------------------


cdef inline void joint_motion(const Body *b, const double *q, const double *v, double *R_J, double *p, double *rel) noexcept nogil:
    """Rotation and displacement of the joint (joint frame) and relative twist (body axes)."""
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


cdef void body_inertia(Body *b, const double *q, const double *v) noexcept nogil:
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
        body_inertia(&m.body[i], q, v)


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


cdef void propagate_wrench(const Body *b, Body *parent, const double *z, double *shifted) noexcept nogil:
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


cdef void propagate_inertia(const Body *b, Body *parent, const double *P) noexcept nogil:
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


cdef inline void propagate_acceleration(Model *m, const Body *b, const double *a, double *A) noexcept nogil:
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


cdef void hybrid_dynamics(Model *m, double h, const double *q, const double *v, const double *tau, const double *f_ext,
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
            propagate_wrench(b, &m.body[b.parent], z, F)
            propagate_inertia(b, &m.body[b.parent], P)
    for i in range(m.n):
        b = &m.body[i]
        propagate_acceleration(m, b, a, b.A)
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


cdef void inverse_dynamics(Model *m, const double *q, const double *v, const double *a, const double *f_ext, double *tau) noexcept nogil:
    """Forces `tau` of all coordinates, modal ones too, for given accelerations `a` (recursive Newton-Euler)."""
    cdef Body *b
    cdef double f[6]
    cdef double x
    cdef int i, k, j
    move(m, q, v)
    for i in range(m.n):
        b = &m.body[i]
        propagate_acceleration(m, b, a, b.A)
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
            propagate_wrench(b, &m.body[b.parent], b.z, f)


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
