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

The elimination is cut in two: `factor` (inertia: P_a, U, D, once for a configuration) and `accelerate` (forces: z, e, then forward),
which may follow several times; `respond` gives what one body does under a wrench on it alone, along the path to the root.

Implicit springs and dampers of joints and modes keep the tree O(N): they add k_share k + d_share d to D and to M_ee, with the force
-k (x + ahead v) - d v. Implicit Euler over a step h (`hybrid_dynamics`): h^2, h, h. The trapezoidal rule staggered by half a step, for
v' = v + h a, x' = x + h v': h^2/4, h, 0; without dampers it keeps the energy of a mode whatever the step is.

`compose` sums mass, first moment, inertia and momentum of the whole tree as it is with its root at rest, in one sweep: with the momentum
given, the twist of the root follows from it (three equations for the rate).

Frames and units: body axes, SI. Six-vectors linear part first. q = [joint coordinates | modal], v = [joint velocities | modal rates];
free joint q = [p, quaternion xyzw], v = [linear, angular] in body axes; spherical joint quaternion xyzw and body rates; continuous joint
q = [cos, sin] of its angle, v its rate; screw q = angle, v its rate.
Sources: Tian et al. 2010, eqs. (5)-(7) corrected; Wang et al. 2020, eqs. (5)-(43).
"""

from libc.math cimport sqrt
from libc.string cimport memcpy, memset

from rt_kernels.algebra cimport quat, rot3, vec3
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.multibody.flexible_algebra cimport (
    backward_solve, cholesky, exponential_terms, forward_solve, jacobian_rate, multiply_6, rotate_block, skew_polynomial,
)


# --- kinematics: positions, velocities, velocity part of accelerations ---------------------------------------------------------------


cdef inline void rotated(const Body *b, double s, double c, double *R) noexcept nogil:
    """R = R_0 (1 + s S(axis) + (1 - c) S(axis)^2)."""
    cdef double k = 1.0 - c
    cdef int i
    for i in range(9):
        R[i] = b.R0[i] + s * b.R1[i] + k * b.R2[i]


cdef inline void joint_motion(const Body *b, const double *q, const double *v, double *R, double *p, double *rel) noexcept nogil:
    """R_0 times the rotation of the joint, its displacement (joint frame) and relative twist (body axes)."""
    cdef double R_J[9]
    cdef double s, c
    cdef int i
    for i in range(3):
        p[i] = 0.0
    for i in range(6):
        rel[i] = 0.0
    if b.joint == REVOLUTE:
        sincos(q[b.iq], &s, &c)
        rotated(b, s, c, R)
        vec3.scale(v[b.iv], b.axis, rel + 3)
    elif b.joint == PRISMATIC:
        memcpy(R, b.R0, 9 * sizeof(double))
        vec3.scale(q[b.iq], b.axis, p)
        vec3.scale(v[b.iv], b.axis, rel)
    elif b.joint == CONTINUOUS:
        rotated(b, q[b.iq + 1], q[b.iq], R)
        vec3.scale(v[b.iv], b.axis, rel + 3)
    elif b.joint == SCREW:
        sincos(q[b.iq], &s, &c)
        rotated(b, s, c, R)
        vec3.scale(b.pitch * q[b.iq], b.axis, p)
        vec3.scale(b.pitch * v[b.iv], b.axis, rel)
        vec3.scale(v[b.iv], b.axis, rel + 3)
    elif b.joint == SPHERICAL:
        quat.to_matrix(q + b.iq, R_J)
        rot3.multiply(b.R0, R_J, R)
        vec3.copy(v + b.iv, rel + 3)
    elif b.joint == FREE:
        vec3.copy(q + b.iq, p)
        quat.to_matrix(q + b.iq + 3, R_J)
        rot3.multiply(b.R0, R_J, R)
        vec3.copy(v + b.iv, rel)
        vec3.copy(v + b.iv + 3, rel + 3)
    else:
        memcpy(R, b.R0, 9 * sizeof(double))


cdef void port_motion(Model *m, Body *b, const Body *parent, const double *q, const double *v, const double *p_J,
                      double *A, double *slide, double *w, double *w_bias, double *l) noexcept nogil:
    """Rotation A of the port of a flexible parent, its slide phi eta_dot, rate w, velocity part of w_dot, arm l to the body; fills b.J.
    Parent axes."""
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


cdef void move_body(Model *m, int index, const double *q, const double *v, int bias) noexcept nogil:
    """Pose in the parent, twist, and with `bias` the velocity part of the acceleration."""
    cdef Body *b = &m.body[index]
    cdef Body *parent
    cdef double R[9]
    cdef double A[9]
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
    if b.phi == NULL:
        joint_motion(b, q, v, b.R, p_J, rel)
    if b.parent < 0:
        # the base stands still
        rot3.apply(b.R0, p_J, b.r)
        for i in range(3):
            b.r[i] += b.p_port[i] + b.p_off[i]
        for i in range(6):
            b.V[i] = rel[i]
            b.c[i] = 0.0
        vec3.cross(rel + 3, rel, b.c)
        return
    parent = &m.body[b.parent]
    if b.phi == NULL:
        # rigid parent: the port neither slides nor turns in it
        rot3.apply(b.R0, p_J, b.r)
        for i in range(3):
            b.r[i] += b.p_port[i] + b.p_off[i]
        vec3.cross(parent.V + 3, b.r, t)
        vec3.add(parent.V, t, V)
        vec3.copy(parent.V + 3, V + 3)
        if bias:
            vec3.cross(parent.V + 3, t, arm)
            rot3.apply_transposed(b.R, arm, b.c)
            vec3.fill(0.0, 0.0, 0.0, b.c + 3)
    else:
        joint_motion(b, q, v, R, p_J, rel)
        port_motion(m, b, parent, q, v, p_J, A, slide, w, w_bias, l)
        rot3.multiply(A, R, b.R)
        # relative velocity of the point of the port frame that carries the body
        vec3.cross(w, l, t)
        vec3.add(slide, t, slide)
        # twist of that frame at the body origin, parent axes
        vec3.cross(parent.V + 3, b.r, t)
        for i in range(3):
            V[i] = parent.V[i] + t[i] + slide[i]
            V[3 + i] = parent.V[3 + i] + w[i]
        if bias:
            # velocity part of its acceleration: w x (w x r) + 2 w x slide + w_bias x l + w_rel x (w_rel x l); w_bias + w x w_rel
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
    # body axes
    rot3.apply_transposed(b.R, V, V)
    rot3.apply_transposed(b.R, V + 3, V + 3)
    for i in range(6):
        b.V[i] = V[i] + rel[i]
    if bias and b.nd > 0:
        # velocity part of the joint: 2 w_port x v_rel + w_rel x v_rel ; w_port x w_rel
        vec3.cross(V + 3, rel, t)
        vec3.cross(rel + 3, rel, u)
        for i in range(3):
            b.c[i] += 2.0 * t[i] + u[i]
        vec3.cross(V + 3, rel + 3, t)
        vec3.add(b.c + 3, t, b.c + 3)


# --- one body: inertia and bias --------------------------------------------------------------------------------------------------------


cdef void rigid_inertia(double mass, const double *c, const double *E, double *M) noexcept nogil:
    """M = [m 1, -S(c); S(c), tr(E) 1 - E]."""
    cdef double trace = E[0] + E[4] + E[8]
    cdef int i, j
    memset(M, 0, 36 * sizeof(double))
    for i in range(3):
        M[7 * i] = mass
        for j in range(3):
            M[6 * (3 + i) + 3 + j] = -0.5 * (E[3 * i + j] + E[3 * j + i])
        M[7 * (3 + i)] += trace
    M[4] = c[2]; M[5] = -c[1]; M[9] = -c[2]; M[11] = c[0]; M[15] = c[1]; M[16] = -c[0]
    M[24] = c[2]; M[30] = -c[1]; M[19] = -c[2]; M[31] = c[0]; M[20] = c[1]; M[26] = -c[0]


cdef void body_inertia(Body *b, const double *q, const double *v, int bias) noexcept nogil:
    """Fill M, Mem, Maa, z, ze of one body from its own mass only (see the head of the file); without `bias` M and Mem alone."""
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
    if s == 0:
        memcpy(b.M, b.M0, 36 * sizeof(double))
        if bias:
            # w x (w x c) ; w x I w
            vec3.cross(w, b.d0, t)
            vec3.cross(w, t, b.z)
            for i in range(3):
                t[i] = b.M0[21 + 6 * i] * w[0] + b.M0[22 + 6 * i] * w[1] + b.M0[23 + 6 * i] * w[2]
            vec3.cross(w, t, b.z + 3)
        return
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
    rigid_inertia(b.mass, c, E, b.M)
    for a in range(s):
        G = b.G + 9 * a
        vec3.copy(b.P + 3 * a, b.Mem + 6 * a)
        b.Mem[6 * a + 3] = G[5] - G[7]
        b.Mem[6 * a + 4] = G[6] - G[2]
        b.Mem[6 * a + 5] = G[1] - G[3]
    if not bias:
        return
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
        move_body(m, i, q, v, 1)
        body_inertia(&m.body[i], q, v, 1)


cdef void prepare(Model *m) noexcept nogil:
    """What is the same in every evaluation; once, after the constants are filled."""
    cdef double S[9]
    cdef int i
    for i in range(m.n):
        rigid_inertia(m.body[i].mass, m.body[i].d0, m.body[i].E0, m.body[i].M0)
        m.body[i].carries = m.body[i].mass > 0.0
        skew_polynomial(0.0, 1.0, 0.0, m.body[i].axis, S)
        rot3.multiply(m.body[i].R0, S, m.body[i].R1)
        rot3.multiply(m.body[i].R1, S, m.body[i].R2)
    for i in range(m.n - 1, 0, -1):
        if m.body[i].carries and m.body[i].parent >= 0:
            m.body[m.body[i].parent].carries = 1


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


cdef void place_in_root(Model *m) noexcept nogil:
    """Pose of every body in the root, which is the first one (after `move` or `compose`)."""
    cdef Body *b
    cdef Body *parent
    cdef int i
    vec3.fill(0.0, 0.0, 0.0, m.body[0].pose)
    rot3.identity(m.body[0].pose + 3)
    for i in range(1, m.n):
        b = &m.body[i]
        if b.parent == 0:
            vec3.copy(b.r, b.pose)
            memcpy(b.pose + 3, b.R, 9 * sizeof(double))
            continue
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


cdef void factor_modes(Body *b, double k_share, double d_share) noexcept nogil:
    """Cholesky of the modal block; P_a = P - X^T X with X = L^-1 M_em (kept in Mem)."""
    cdef int s = b.s
    cdef int a, i, j, k
    cdef double row[6]
    cdef double M[36]
    cdef double x
    if k_share != 0.0 or d_share != 0.0:
        for a in range(s * s):
            b.Maa[a] += d_share * b.C[a] + k_share * b.K[a]
    cholesky(b.Maa, s, s)
    memcpy(M, b.M, 36 * sizeof(double))
    for a in range(s):
        memcpy(row, b.Mem + 6 * a, 6 * sizeof(double))
        for k in range(a):
            x = b.Maa[a * s + k]
            for i in range(6):
                row[i] -= x * b.Mem[6 * k + i]
        x = b.Maa[a * s + a]
        for i in range(6):
            row[i] *= x
        for i in range(6):
            for j in range(6):
                M[6 * i + j] -= row[i] * row[j]
        memcpy(b.Mem + 6 * a, row, 6 * sizeof(double))
    memcpy(b.M, M, 36 * sizeof(double))


cdef inline void eliminate_modes(Body *b, double *z) noexcept nogil:
    """y <- L^-1 y; z_a = z - X^T y (y: what acts on the modes; a wrench on them pushes the body the other way)."""
    cdef int a, i
    forward_solve(b.Maa, b.s, b.s, b.y)
    for a in range(b.s):
        for i in range(6):
            z[i] += b.Mem[6 * a + i] * b.y[a]


cdef inline double joint_component(const Body *b, int k, const double *w) noexcept nogil:
    """H_k . w for coordinate k of the joint."""
    if b.joint == REVOLUTE or b.joint == CONTINUOUS:
        return vec3.dot(b.axis, w + 3)
    if b.joint == PRISMATIC:
        return vec3.dot(b.axis, w)
    if b.joint == SCREW:
        return vec3.dot(b.axis, w + 3) + b.pitch * vec3.dot(b.axis, w)
    if b.joint == SPHERICAL:
        return w[3 + k]
    return w[k]


cdef inline void joint_add(const Body *b, int k, double x, double *w) noexcept nogil:
    """w += H_k x."""
    if b.joint == REVOLUTE or b.joint == CONTINUOUS:
        vec3.add_scaled(w + 3, x, b.axis, w + 3)
    elif b.joint == PRISMATIC:
        vec3.add_scaled(w, x, b.axis, w)
    elif b.joint == SCREW:
        vec3.add_scaled(w, b.pitch * x, b.axis, w)
        vec3.add_scaled(w + 3, x, b.axis, w + 3)
    elif b.joint == SPHERICAL:
        w[3 + k] += x
    else:
        w[k] += x


cdef inline void joint_column(const Body *b, const double *M, double *f) noexcept nogil:
    """f = M H of a joint of one degree of freedom, M symmetric."""
    cdef int i
    if b.joint == PRISMATIC:
        for i in range(6):
            f[i] = M[i] * b.axis[0] + M[6 + i] * b.axis[1] + M[12 + i] * b.axis[2]
        return
    for i in range(6):
        f[i] = M[18 + i] * b.axis[0] + M[24 + i] * b.axis[1] + M[30 + i] * b.axis[2]
    if b.joint == SCREW:
        for i in range(6):
            f[i] += b.pitch * (M[i] * b.axis[0] + M[6 + i] * b.axis[1] + M[12 + i] * b.axis[2])


cdef void factor_joint(Body *b, double k_share, double d_share, const unsigned char *known, double *P) noexcept nogil:
    """U and D of the free coordinates of the joint, and P+ (body axes) of a body that has a parent."""
    cdef double f[6]
    cdef double x
    cdef int i, j, k, n = 0
    for k in range(b.nd):
        if known == NULL or not known[b.iv + k]:
            b.free_axis[n] = k
            n += 1
    b.n_free = n
    if n == 1 and b.nd == 1:
        joint_column(b, b.M, f)
        x = 1.0 / sqrt(joint_component(b, 0, f) + b.armature + d_share * b.damping + k_share * b.stiffness)
        b.D[0] = x
        for i in range(6):
            f[i] *= x
            b.U[i] = f[i]
        for i in range(6):
            for j in range(6):
                P[6 * i + j] = b.M[6 * i + j] - f[i] * f[j]
        return
    if b.parent >= 0:
        memcpy(P, b.M, 36 * sizeof(double))
    for k in range(n):
        if b.joint == SPHERICAL:
            memcpy(b.U + 6 * k, b.M + 6 * (3 + b.free_axis[k]), 6 * sizeof(double))
        else:
            memcpy(b.U + 6 * k, b.M + 6 * b.free_axis[k], 6 * sizeof(double))
    for k in range(n):
        for j in range(n):
            b.D[6 * k + j] = joint_component(b, b.free_axis[k], b.U + 6 * j)
        b.D[7 * k] += b.armature
    # U <- L^-1 U, then P+ = P - U^T U
    cholesky(b.D, n, 6)
    for k in range(n):
        memcpy(f, b.U + 6 * k, 6 * sizeof(double))
        for j in range(k):
            x = b.D[6 * k + j]
            for i in range(6):
                f[i] -= x * b.U[6 * j + i]
        x = b.D[7 * k]
        for i in range(6):
            f[i] *= x
        memcpy(b.U + 6 * k, f, 6 * sizeof(double))
        if b.parent >= 0:
            for i in range(6):
                for j in range(6):
                    P[6 * i + j] -= f[i] * f[j]


cdef inline void eliminate_joint(Body *b, double *z) noexcept nogil:
    """e <- L^-1 e; z+ = z + U^T e for the parent, if there is one."""
    cdef int i, k
    forward_solve(b.D, b.n_free, 6, b.e)
    if b.parent < 0:
        return
    for k in range(b.n_free):
        for i in range(6):
            z[i] += b.U[6 * k + i] * b.e[k]


cdef inline void propagate_wrench(const Body *b, const Body *parent, const double *z, double *to, double *modal,
                                  double sign) noexcept nogil:
    """z (body axes, at the body) to the parent's rigid equations `to`, and by `sign` to its modal ones."""
    cdef double shifted[6]
    cdef double t[3]
    cdef double x
    cdef int i, a, s = parent.s
    rot3.apply(b.R, z, shifted)
    rot3.apply(b.R, z + 3, shifted + 3)
    vec3.cross(b.r, shifted, t)
    for i in range(3):
        to[i] += shifted[i]
        to[3 + i] += shifted[3 + i] + t[i]
    if b.J != NULL:
        for a in range(s):
            x = 0.0
            for i in range(6):
                x += b.J[6 * a + i] * shifted[i]
            modal[a] += sign * x


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


cdef inline void carried(const Body *b, const Body *parent, const double *A, const double *rate, double *out) noexcept nogil:
    """Motion A of the parent (twist or acceleration without velocity terms) and of its modes `rate`, at the body origin, body axes."""
    cdef double t[6]
    cdef int i, k
    vec3.cross(A + 3, b.r, t)
    vec3.add(A, t, t)
    vec3.copy(A + 3, t + 3)
    if b.J != NULL:
        for k in range(parent.s):
            for i in range(6):
                t[i] += b.J[6 * k + i] * rate[k]
    rot3.apply_transposed(b.R, t, out)
    rot3.apply_transposed(b.R, t + 3, out + 3)


cdef inline void propagate_acceleration(Model *m, const Body *b, const double *a, double *A) noexcept nogil:
    """Acceleration of the parent's port frame at the body origin without velocity terms, body axes."""
    cdef double t[3]
    cdef int i
    if b.parent < 0:
        # gravity as an acceleration of the base
        for i in range(3):
            t[i] = -m.gravity[i]
        rot3.apply_transposed(b.R, t, A)
        vec3.fill(0.0, 0.0, 0.0, A + 3)
        return
    carried(b, &m.body[b.parent], m.body[b.parent].A, a + m.body[b.parent].ev, A)


cdef void factor(Model *m, double k_share, double d_share, const unsigned char *known) noexcept nogil:
    """Elimination of the inertia, after `move`; springs and dampers add k_share k + d_share d. `known` may be NULL: all are free."""
    cdef Body *b
    cdef double P[36]
    cdef int i
    for i in range(m.n - 1, -1, -1):
        b = &m.body[i]
        b.n_free = 0
        if not b.carries:
            continue
        if b.s > 0:
            factor_modes(b, k_share, d_share)
        factor_joint(b, k_share, d_share, known, P)
        if b.parent >= 0:
            propagate_inertia(b, &m.body[b.parent], P)


cdef void accelerate(Model *m, double ahead, const double *q, const double *v, const double *tau, const double *f_ext,
                     const unsigned char *known, double *a, double *tau_out) noexcept nogil:
    """Accelerations `a` (given where `known`) and joint forces `tau_out` (may be NULL) after `factor`.

    Springs act with -k (x + ahead v)."""
    cdef Body *b
    cdef Body *parent
    cdef double z[6]
    cdef double f[6]
    cdef double x
    cdef int i, k, j
    # what acts on each body alone
    for i in range(m.n):
        b = &m.body[i]
        for k in range(6):
            b.p[k] = b.z[k] - (f_ext[6 * i + k] if f_ext != NULL else 0.0)
        for k in range(b.s):
            b.y[k] = tau[b.ev + k] + modal_force(b, k, ahead, q, v) - b.ze[k]
    for i in range(m.n - 1, -1, -1):
        b = &m.body[i]
        if b.s > 0:
            eliminate_modes(b, b.p)
        memcpy(b.g, b.c, 6 * sizeof(double))
        for k in range(b.nd):
            if known != NULL and known[b.iv + k]:
                joint_add(b, k, a[b.iv + k], b.g)
        if b.carries:
            multiply_6(b.M, b.g, f)
            for k in range(6):
                z[k] = b.p[k] + f[k]
        else:
            memcpy(z, b.p, 6 * sizeof(double))
        for k in range(b.n_free):
            j = b.free_axis[k]
            b.e[k] = tau[b.iv + j] - joint_component(b, j, z)
            if b.stiffness != 0.0 or b.damping != 0.0:
                b.e[k] -= b.stiffness * (q[b.iq] + ahead * v[b.iv]) + b.damping * v[b.iv]
        eliminate_joint(b, z)
        if b.parent >= 0:
            parent = &m.body[b.parent]
            propagate_wrench(b, parent, z, parent.p, parent.y, -1.0)
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
            b.A[k] += b.g[k]
        for k in range(b.n_free):
            a[b.iv + b.free_axis[k]] = b.e[k]
            joint_add(b, b.free_axis[k], b.e[k], b.A)
        # modes: eta_ddot = L^-T (y - X A)
        for k in range(b.s):
            x = b.y[k]
            for j in range(6):
                x -= b.Mem[6 * k + j] * b.A[j]
            a[b.ev + k] = x
        if b.s > 0:
            backward_solve(b.Maa, b.s, b.s, a + b.ev)
        # wrench through the joint and the force along given coordinates
        multiply_6(b.M, b.A, b.F)
        for k in range(6):
            b.F[k] += b.p[k]
        if tau_out != NULL:
            for k in range(b.nd):
                tau_out[b.iv + k] = tau[b.iv + k]
                if known != NULL and known[b.iv + k]:
                    tau_out[b.iv + k] = joint_component(b, k, b.F) + b.armature * a[b.iv + k]
                    if b.stiffness != 0.0 or b.damping != 0.0:
                        tau_out[b.iv] += b.stiffness * q[b.iq] + b.damping * v[b.iv]
            for k in range(b.s):
                tau_out[b.ev + k] = tau[b.ev + k]


cdef void hybrid_dynamics(Model *m, double h, const double *q, const double *v, const double *tau, const double *f_ext,
                     const unsigned char *known, double *a, double *tau_out) noexcept nogil:
    """Accelerations `a` (given where `known`) and joint forces `tau_out` (may be NULL). `f_ext` (n, 6) body axes, may be NULL.
    h > 0: springs and dampers at the end of a step of that length (implicit Euler)."""
    move(m, q, v)
    factor(m, h * h, h, known)
    accelerate(m, h, q, v, tau, f_ext, known, a, tau_out)


cdef void respond(Model *m, int index, const double *wrench, double *A) noexcept nogil:
    """Acceleration A of one body under a wrench on it alone (both body axes, at its origin), the tree at rest, after `factor`."""
    cdef Body *b
    cdef Body *parent
    cdef double z[6]
    cdef double up[6]
    cdef double x
    cdef int i = index, k, j
    for k in range(6):
        z[k] = -wrench[k]
    for k in range(m.body[i].s):
        m.body[i].y[k] = 0.0
    # along the path to the root
    while True:
        b = &m.body[i]
        if b.s > 0:
            eliminate_modes(b, z)
        for k in range(b.n_free):
            b.e[k] = -joint_component(b, b.free_axis[k], z)
        eliminate_joint(b, z)
        if b.parent < 0:
            break
        parent = &m.body[b.parent]
        memset(up, 0, sizeof(up))
        for k in range(parent.s):
            parent.y[k] = 0.0
        propagate_wrench(b, parent, z, up, parent.y, -1.0)
        memcpy(z, up, sizeof(z))
        parent.branch = i
        i = b.parent
    # and back
    memset(A, 0, 6 * sizeof(double))
    while True:
        b = &m.body[i]
        for k in range(b.n_free):
            x = b.e[k]
            for j in range(6):
                x -= b.U[6 * k + j] * A[j]
            b.e[k] = x
        backward_solve(b.D, b.n_free, 6, b.e)
        for k in range(b.n_free):
            joint_add(b, b.free_axis[k], b.e[k], A)
        if i == index:
            return
        for k in range(b.s):
            x = b.y[k]
            for j in range(6):
                x -= b.Mem[6 * k + j] * A[j]
            b.y[k] = x
        if b.s > 0:
            backward_solve(b.Maa, b.s, b.s, b.y)
        i = b.branch
        carried(&m.body[i], b, A, b.y, A)


cdef void twist_of(Model *m, int index, const double *v, double *V) noexcept nogil:
    """Twist of one body, body axes, that the velocities v give in the configuration of the last `move` or `compose`."""
    cdef Body *b
    cdef int i = index, k
    while m.body[i].parent >= 0:
        m.body[m.body[i].parent].branch = i
        i = m.body[i].parent
    memset(V, 0, 6 * sizeof(double))
    while True:
        b = &m.body[i]
        for k in range(b.nd):
            joint_add(b, k, v[b.iv + k], V)
        if i == index:
            return
        i = b.branch
        carried(&m.body[i], b, V, v + b.ev, V)


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
            propagate_wrench(b, &m.body[b.parent], b.z, m.body[b.parent].z, m.body[b.parent].ze, 1.0)


# --- the whole tree -----------------------------------------------------------------------------------------------------------------------


cdef inline void momentum_of(const Body *b, const double *v, double *p) noexcept nogil:
    """p = M V + M_em^T eta_dot, body axes, at the body origin."""
    cdef int j, k
    multiply_6(b.M, b.V, p)
    for k in range(b.s):
        for j in range(6):
            p[j] += b.Mem[6 * k + j] * v[b.ev + k]


cdef inline void add_to_parent(Body *b, double *sum) noexcept nogil:
    """Mass, first moment, inertia and momentum of b.sum, shifted to the parent's origin and axes, onto the parent's."""
    cdef double m = b.sum[0]
    cdef double d[3]
    cdef double p[3]
    cdef double l[3]
    cdef double I[9]
    cdef double B[9]
    cdef double x
    cdef const double *r = b.r
    cdef const double *s = b.sum
    rot3.apply(b.R, s + 1, d)
    rot3.apply(b.R, s + 10, p)
    rot3.apply(b.R, s + 13, l)
    B[0] = s[4]; B[1] = s[5]; B[2] = s[6]; B[3] = s[5]; B[4] = s[7]; B[5] = s[8]; B[6] = s[6]; B[7] = s[8]; B[8] = s[9]
    rotate_block(b.R, B, 3, I)
    # inertia about the parent's origin: I + (2 r.d + m r.r) 1 - r d^T - d r^T - m r r^T
    x = 2.0 * vec3.dot(r, d) + m * vec3.dot(r, r)
    sum[4] += I[0] + x - 2.0 * r[0] * d[0] - m * r[0] * r[0]
    sum[5] += I[1] - r[0] * d[1] - d[0] * r[1] - m * r[0] * r[1]
    sum[6] += I[2] - r[0] * d[2] - d[0] * r[2] - m * r[0] * r[2]
    sum[7] += I[4] + x - 2.0 * r[1] * d[1] - m * r[1] * r[1]
    sum[8] += I[5] - r[1] * d[2] - d[1] * r[2] - m * r[1] * r[2]
    sum[9] += I[8] + x - 2.0 * r[2] * d[2] - m * r[2] * r[2]
    sum[0] += m
    vec3.add_scaled(d, m, r, d)
    vec3.add(sum + 1, d, sum + 1)
    vec3.add(sum + 10, p, sum + 10)
    vec3.cross(r, p, d)
    vec3.add(sum + 13, l, sum + 13)
    vec3.add(sum + 13, d, sum + 13)


cdef void compose(Model *m, const double *q, const double *v, Composite *out) noexcept nogil:
    """The whole tree with its root, the first body, at rest: its joint coordinates in q and v are not read. Moves all bodies; M of a rigid
    one is left as it was (it is M0)."""
    cdef Body *b
    cdef const double *M
    cdef double x, y
    cdef int i, j, k
    out.energy = 0.0
    for i in range(m.n):
        b = &m.body[i]
        if i == 0:
            memset(b.V, 0, 6 * sizeof(double))
        else:
            move_body(m, i, q, v, 0)
        if not b.carries:
            continue
        M = b.M0
        if b.s > 0:
            body_inertia(b, q, v, 0)
            M = b.M
        # mass, first moment from the coupling block, inertia
        b.sum[0] = b.mass
        vec3.fill(M[31], M[20], M[24], b.sum + 1)
        b.sum[4] = M[21]; b.sum[5] = M[22]; b.sum[6] = M[23]; b.sum[7] = M[28]; b.sum[8] = M[29]; b.sum[9] = M[35]
        # momentum: m v + w x d ; d x v + I w
        vec3.cross(b.V + 3, b.sum + 1, b.sum + 10)
        vec3.add_scaled(b.sum + 10, b.mass, b.V, b.sum + 10)
        vec3.cross(b.sum + 1, b.V, b.sum + 13)
        for j in range(3):
            b.sum[13 + j] += M[21 + 6 * j] * b.V[3] + M[22 + 6 * j] * b.V[4] + M[23 + 6 * j] * b.V[5]
        for k in range(b.s):
            for j in range(6):
                b.sum[10 + j] += b.Mem[6 * k + j] * v[b.ev + k]
        x = 0.0
        for j in range(6):
            x += b.V[j] * b.sum[10 + j]
        for k in range(b.s):
            y = 0.0
            for j in range(6):
                y += b.Mem[6 * k + j] * b.V[j]
            for j in range(b.s):
                y += b.Mee[k * b.s + j] * v[b.ev + j]
            x += y * v[b.ev + k]
        out.energy += 0.5 * x
    for i in range(m.n - 1, 0, -1):
        if m.body[i].carries:
            add_to_parent(&m.body[i], m.body[m.body[i].parent].sum)
    # about the centre of mass
    b = &m.body[0]
    out.mass = b.sum[0]
    vec3.scale(1.0 / b.sum[0], b.sum + 1, out.centre)
    vec3.copy(b.sum + 10, out.p)
    vec3.cross(out.centre, out.p, out.l)
    vec3.sub(b.sum + 13, out.l, out.l)
    x = vec3.dot(out.centre, b.sum + 1)
    out.inertia[0] = b.sum[4] - x; out.inertia[1] = b.sum[5]; out.inertia[2] = b.sum[6]
    out.inertia[3] = b.sum[5]; out.inertia[4] = b.sum[7] - x; out.inertia[5] = b.sum[8]
    out.inertia[6] = b.sum[6]; out.inertia[7] = b.sum[8]; out.inertia[8] = b.sum[9] - x
    for i in range(3):
        for j in range(3):
            out.inertia[3 * i + j] += out.centre[i] * b.sum[1 + j]


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
        # momentum in body axes; kinetic energy
        momentum_of(b, v, p)
        for k in range(b.s):
            x = 0.0
            for j in range(6):
                x += b.Mem[6 * k + j] * b.V[j]
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
