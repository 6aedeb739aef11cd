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

from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport (
    Inertia, Mat3, Twist, Vec3, add, add_block, block, cross, cross_columns, cross_rows, dot, mat, mat_multiply, mat_scaled, mat_sum,
    mat_transposed_vec, mat_vec, momentum_of, mul, neg, power, put, put_block, put_mat, put_twist, quat, rotated_tensor, rows_of, sub,
    tensor, to_matrix, trace, transposed, twist, unit_matrix, vec, xyz,
)
from rt_kernels.multibody.flexible_algebra cimport (
    backward_solve, cholesky, exponential_terms, forward_solve, jacobian_rate, multiply_6, skew_polynomial,
)


cdef struct JointMotion:
    Mat3 R                       # R_0 times the rotation of the joint
    Vec3 p                       # displacement, joint frame
    Twist V                      # relative twist, body axes


cdef struct PortMotion:          # of the port of a flexible parent, parent axes
    Mat3 A                       # its rotation
    Vec3 l                       # arm from the port to the body
    Vec3 slide                   # phi eta_dot
    Vec3 w                       # rate
    Vec3 w_bias                  # velocity part of w_dot


# --- kinematics: positions, velocities, velocity part of accelerations ---------------------------------------------------------------


cdef inline Mat3 rotated(const Body *b, double s, double c) noexcept nogil:
    """R_0 (1 + s S(axis) + (1 - c) S(axis)^2)."""
    return mat_sum(mat_sum(b.R0, mat_scaled(s, b.R1)), mat_scaled(1.0 - c, b.R2))


cdef inline JointMotion joint_motion(const Body *b, const double *q, const double *v) noexcept nogil:
    cdef JointMotion j
    cdef Vec3 axis = vec(b.axis)
    cdef double s, c
    q += b.iq
    v += b.iv
    j.p = xyz(0.0, 0.0, 0.0)
    j.V.v = xyz(0.0, 0.0, 0.0)
    j.V.w = xyz(0.0, 0.0, 0.0)
    if b.joint == REVOLUTE:
        sincos(q[0], &s, &c)
        j.R = rotated(b, s, c)
        j.V.w = mul(v[0], axis)
    elif b.joint == PRISMATIC:
        j.R = b.R0
        j.p = mul(q[0], axis)
        j.V.v = mul(v[0], axis)
    elif b.joint == CONTINUOUS:
        j.R = rotated(b, q[1], q[0])
        j.V.w = mul(v[0], axis)
    elif b.joint == SCREW:
        sincos(q[0], &s, &c)
        j.R = rotated(b, s, c)
        j.p = mul(b.pitch * q[0], axis)
        j.V.v = mul(b.pitch * v[0], axis)
        j.V.w = mul(v[0], axis)
    elif b.joint == SPHERICAL:
        j.R = mat_multiply(b.R0, to_matrix(quat(q)))
        j.V.w = vec(v)
    elif b.joint == FREE:
        j.R = mat_multiply(b.R0, to_matrix(quat(q + 3)))
        j.p = vec(q)
        j.V = twist(v)
    else:
        j.R = b.R0
    return j


cdef inline Vec3 column(const double *A, int s, int a) noexcept nogil:
    # of a (3, s) matrix
    return xyz(A[a], A[s + a], A[2 * s + a])


cdef PortMotion port_motion(Model *m, Body *b, const Body *parent, const double *q, const double *v, Vec3 p_J) noexcept nogil:
    """Motion of the port of a flexible parent; fills b.r and b.J."""
    cdef PortMotion port
    cdef const double *eta = q + parent.eq
    cdef const double *rate = v + parent.ev
    cdef Vec3 r = b.p_port
    cdef Vec3 theta = xyz(0.0, 0.0, 0.0)
    cdef Vec3 theta_dot = theta
    cdef Vec3 phi, psi
    cdef Mat3 J_l = unit_matrix()
    cdef double k[5]
    cdef int a, s = parent.s
    port.slide = port.w_bias = theta
    for a in range(s):
        phi = column(b.phi, s, a)
        psi = column(b.psi, s, a)
        theta = add(theta, mul(eta[a], psi))
        theta_dot = add(theta_dot, mul(rate[a], psi))
        r = add(r, mul(eta[a], phi))
        port.slide = add(port.slide, mul(rate[a], phi))
    exponential_terms(dot(theta, theta), k)
    port.A = skew_polynomial(1.0, k[0], k[1], theta)
    port.w = theta_dot
    if not m.first_order:
        J_l = skew_polynomial(1.0, k[1], k[2], theta)
        port.w = mat_vec(J_l, theta_dot)
        port.w_bias = jacobian_rate(k, theta, theta_dot)
    port.l = mat_vec(port.A, add(b.p_off, mat_vec(b.R0, p_J)))
    b.r = add(r, port.l)
    # motion of the body origin per modal rate: [phi - l x (J psi); J psi]
    for a in range(s):
        psi = mat_vec(J_l, column(b.psi, s, a))
        put(add(column(b.phi, s, a), cross(psi, port.l)), b.J + 6 * a)
        put(psi, b.J + 6 * a + 3)
    return port


cdef void move_body(Model *m, int index, const double *q, const double *v, int bias) noexcept nogil:
    """Pose in the parent, twist, and with `bias` the velocity part of the acceleration."""
    cdef Body *b = &m.body[index]
    cdef JointMotion joint = joint_motion(b, q, v)
    cdef PortMotion port
    cdef Twist V_P, V, c
    cdef Vec3 carried, slide, a
    if b.phi == NULL:
        # base or rigid parent: the port neither slides nor turns in it
        b.R = joint.R
        b.r = add(mat_vec(b.R0, joint.p), add(b.p_port, b.p_off))
    if b.parent < 0:
        # the base stands still
        put_twist(joint.V, b.V)
        put(cross(joint.V.w, joint.V.v), b.c)
        put(xyz(0.0, 0.0, 0.0), b.c + 3)
        return
    # twist V of the port frame at the body origin, parent axes; velocity part c of its acceleration, body axes
    V_P = twist(m.body[b.parent].V)
    if b.phi == NULL:
        carried = cross(V_P.w, b.r)
        V.v = add(V_P.v, carried)
        V.w = V_P.w
        if bias:
            c.v = mat_transposed_vec(b.R, cross(V_P.w, carried))
            c.w = xyz(0.0, 0.0, 0.0)
    else:
        port = port_motion(m, b, &m.body[b.parent], q, v, joint.p)
        b.R = mat_multiply(port.A, joint.R)
        carried = cross(V_P.w, b.r)
        slide = add(port.slide, cross(port.w, port.l))
        V.v = add(add(V_P.v, carried), slide)
        V.w = add(V_P.w, port.w)
        if bias:
            # w x (w x r + 2 slide) + w_bias x l + w_rel x (w_rel x l); w_bias + w x w_rel
            a = add(cross(V_P.w, add(carried, mul(2.0, slide))), cross(port.w_bias, port.l))
            a = add(a, cross(port.w, cross(port.w, port.l)))
            c.v = mat_transposed_vec(b.R, a)
            c.w = mat_transposed_vec(b.R, add(port.w_bias, cross(V_P.w, port.w)))
    # body axes
    V.v = mat_transposed_vec(b.R, V.v)
    V.w = mat_transposed_vec(b.R, V.w)
    put(add(V.v, joint.V.v), b.V)
    put(add(V.w, joint.V.w), b.V + 3)
    if bias:
        if b.nd > 0:
            # velocity part of the joint: 2 w_port x v_rel + w_rel x v_rel ; w_port x w_rel
            c.v = add(c.v, add(mul(2.0, cross(V.w, joint.V.v)), cross(joint.V.w, joint.V.v)))
            c.w = add(c.w, cross(V.w, joint.V.w))
        put_twist(c, b.c)


# --- one body: inertia and bias --------------------------------------------------------------------------------------------------------


cdef void rigid_inertia(double mass, Vec3 c, const double *E, double *M) noexcept nogil:
    """M = [m 1, -S(c); S(c), tr(E) 1 - E]."""
    cdef double trace_E = E[0] + E[4] + E[8]
    cdef int i, j
    memset(M, 0, 36 * sizeof(double))
    for i in range(3):
        M[7 * i] = mass
        for j in range(3):
            M[6 * (3 + i) + 3 + j] = -0.5 * (E[3 * i + j] + E[3 * j + i])
        M[7 * (3 + i)] += trace_E
    M[4] = c.z; M[5] = -c.y; M[9] = -c.z; M[11] = c.x; M[15] = c.y; M[16] = -c.x
    M[24] = c.z; M[30] = -c.y; M[19] = -c.z; M[31] = c.x; M[20] = c.y; M[26] = -c.x


cdef void body_inertia(Body *b, const double *q, const double *v, int bias) noexcept nogil:
    """Fill M, Mem, Maa, z, ze of one body from its own mass only (see the head of the file); without `bias` M and Mem alone."""
    cdef int s = b.s
    cdef int i, j, a, k
    cdef double E[9]
    cdef double g[9]
    cdef double H_[9]
    cdef const double *eta = q + b.eq
    cdef const double *rate = v + b.ev
    cdef Vec3 w = vec(b.V + 3)
    cdef Vec3 c = b.d0
    cdef Vec3 c_dot = xyz(0.0, 0.0, 0.0)
    cdef Vec3 u
    cdef Mat3 G, H
    cdef double x, ww
    if s == 0:
        memcpy(b.M, b.M0, 36 * sizeof(double))
        if bias:
            put(cross(w, cross(w, c)), b.z)
            put(cross(w, mat_vec(block(b.M0 + 21), w)), b.z + 3)
        return
    memcpy(E, b.E0, 9 * sizeof(double))
    memset(H_, 0, 9 * sizeof(double))
    # integrals over the deformed body
    for a in range(s):
        memcpy(g, b.N + 9 * a, 9 * sizeof(double))
        c = add(c, mul(eta[a], vec(b.P + 3 * a)))
        c_dot = add(c_dot, mul(rate[a], vec(b.P + 3 * a)))
        for i in range(3):
            for j in range(3):
                E[3 * i + j] += eta[a] * g[3 * j + i]
        for k in range(s):
            x = eta[k]
            for i in range(9):
                g[i] += x * b.Q[9 * (s * a + k) + i]
        for i in range(9):
            E[i] += eta[a] * g[i]
            H_[i] += rate[a] * g[i]
        memcpy(b.G + 9 * a, g, 9 * sizeof(double))
    rigid_inertia(b.mass, c, E, b.M)
    for a in range(s):
        G = mat(b.G + 9 * a)
        put(vec(b.P + 3 * a), b.Mem + 6 * a)
        put(xyz(G.yz - G.zy, G.zx - G.xz, G.xy - G.yx), b.Mem + 6 * a + 3)
    if not bias:
        return
    # bias, linear: w x (w x c + 2 c_dot); angular: w x I w + 2 (tr(H) w - H^T w)
    H = mat(H_)
    put(cross(w, add(cross(w, c), mul(2.0, c_dot))), b.z)
    put(add(cross(w, mat_vec(block(b.M + 21), w)), mul(2.0, sub(mul(trace(H), w), mat_transposed_vec(H, w)))), b.z + 3)
    # modal part
    ww = dot(w, w)
    for a in range(s):
        G = mat(b.G + 9 * a)
        u = xyz(0.0, 0.0, 0.0)
        for k in range(s):
            u = add(u, mul(rate[k], vec(b.Y + 3 * (s * a + k))))
        b.ze[a] = dot(w, mat_vec(G, w)) - ww * trace(G) + 2.0 * dot(w, u)
    memcpy(b.Maa, b.Mee, s * s * sizeof(double))


cdef void move(Model *m, const double *q, const double *v) noexcept nogil:
    """Kinematics, and the inertia and bias of every body."""
    cdef int i
    for i in range(m.n):
        move_body(m, i, q, v, 1)
        body_inertia(&m.body[i], q, v, 1)


cdef void prepare(Model *m) noexcept nogil:
    """What is the same in every evaluation; once, after the constants are filled."""
    cdef Body *b
    cdef Mat3 S
    cdef int i
    for i in range(m.n):
        b = &m.body[i]
        rigid_inertia(b.mass, b.d0, b.E0, b.M0)
        b.carries = b.mass > 0.0
        S = skew_polynomial(0.0, 1.0, 0.0, vec(b.axis))
        b.R1 = mat_multiply(b.R0, S)
        b.R2 = mat_multiply(b.R1, S)
    for i in range(m.n - 1, 0, -1):
        if m.body[i].carries and m.body[i].parent >= 0:
            m.body[m.body[i].parent].carries = 1


cdef inline void place_in_parent(Body *b) noexcept nogil:
    # the parent is the frame of the poses
    put(b.r, b.pose)
    put_mat(b.R, b.pose + 3)


cdef inline void place_behind(Body *b, const Body *parent) noexcept nogil:
    cdef Mat3 R = mat(parent.pose + 3)
    put(add(vec(parent.pose), mat_vec(R, b.r)), b.pose)
    put_mat(mat_multiply(R, b.R), b.pose + 3)


cdef void place(Model *m) noexcept nogil:
    """Pose of every body in the inertial frame (after `move`)."""
    cdef int i
    for i in range(m.n):
        if m.body[i].parent < 0:
            place_in_parent(&m.body[i])
        else:
            place_behind(&m.body[i], &m.body[m.body[i].parent])


cdef void place_in_root(Model *m) noexcept nogil:
    """Pose of every body in the root, which is the first one (after `move` or `compose`)."""
    cdef int i
    put(xyz(0.0, 0.0, 0.0), m.body[0].pose)
    put_mat(unit_matrix(), m.body[0].pose + 3)
    for i in range(1, m.n):
        if m.body[i].parent == 0:
            place_in_parent(&m.body[i])
        else:
            place_behind(&m.body[i], &m.body[m.body[i].parent])


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
    cdef Vec3 axis = vec(b.axis)
    if b.joint == REVOLUTE or b.joint == CONTINUOUS:
        return dot(axis, vec(w + 3))
    if b.joint == PRISMATIC:
        return dot(axis, vec(w))
    if b.joint == SCREW:
        return dot(axis, vec(w + 3)) + b.pitch * dot(axis, vec(w))
    if b.joint == SPHERICAL:
        return w[3 + k]
    return w[k]


cdef inline void joint_add(const Body *b, int k, double x, double *w) noexcept nogil:
    """w += H_k x."""
    cdef Vec3 axis = vec(b.axis)
    if b.joint == REVOLUTE or b.joint == CONTINUOUS:
        put(add(vec(w + 3), mul(x, axis)), w + 3)
    elif b.joint == PRISMATIC:
        put(add(vec(w), mul(x, axis)), w)
    elif b.joint == SCREW:
        put(add(vec(w), mul(b.pitch * x, axis)), w)
        put(add(vec(w + 3), mul(x, axis)), w + 3)
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
    cdef Vec3 f = mat_vec(b.R, vec(z))
    cdef Vec3 moment = mat_vec(b.R, vec(z + 3))
    cdef double F[6]
    cdef double x
    cdef int i, a
    put(add(vec(to), f), to)
    put(add(vec(to + 3), add(moment, cross(b.r, f))), to + 3)
    if b.J != NULL:
        put(f, F)
        put(moment, F + 3)
        for a in range(parent.s):
            x = 0.0
            for i in range(6):
                x += b.J[6 * a + i] * F[i]
            modal[a] += sign * x


cdef void propagate_inertia(const Body *b, Body *parent, const double *P) noexcept nogil:
    """P+ (body axes) into the parent's equations: C^T P+ C with C = [J_port | shift by r]."""
    cdef Mat3 vv = rotated_tensor(b.R, block(P))
    cdef Mat3 vw = rotated_tensor(b.R, block(P + 3))
    cdef Mat3 ww = rotated_tensor(b.R, block(P + 21))
    cdef Mat3 shifted
    cdef double Q[36]
    cdef double W[6]
    cdef double x
    cdef int i, a, k, s = parent.s
    if b.J != NULL:
        put_block(vv, Q)
        put_block(vw, Q + 3)
        put_block(transposed(vw), Q + 18)
        put_block(ww, Q + 21)
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
            put(add(vec(parent.Mem + 6 * a), vec(W)), parent.Mem + 6 * a)
            put(add(vec(parent.Mem + 6 * a + 3), add(vec(W + 3), cross(b.r, vec(W)))), parent.Mem + 6 * a + 3)
    # rigid part: vv; vw' = vw - vv S(r); ww' = ww - vw^T S(r) + S(r) vw'
    shifted = mat_sum(vw, cross_rows(b.r, vv))
    add_block(vv, parent.M)
    add_block(shifted, parent.M + 3)
    add_block(transposed(shifted), parent.M + 18)
    add_block(mat_sum(ww, cross_rows(b.r, transposed(vw))), parent.M + 21)
    add_block(cross_columns(b.r, shifted), parent.M + 21)


cdef inline void carried(const Body *b, const Body *parent, const double *A, const double *rate, double *out) noexcept nogil:
    """Motion A of the parent (twist or acceleration without velocity terms) and of its modes `rate`, at the body origin, body axes."""
    cdef Vec3 v = add(vec(A), cross(vec(A + 3), b.r))
    cdef Vec3 w = vec(A + 3)
    cdef int k
    if b.J != NULL:
        for k in range(parent.s):
            v = add(v, mul(rate[k], vec(b.J + 6 * k)))
            w = add(w, mul(rate[k], vec(b.J + 6 * k + 3)))
    put(mat_transposed_vec(b.R, v), out)
    put(mat_transposed_vec(b.R, w), out + 3)


cdef inline void propagate_acceleration(Model *m, const Body *b, const double *a, double *A) noexcept nogil:
    """Acceleration of the parent's port frame at the body origin without velocity terms, body axes."""
    if b.parent < 0:
        # gravity as an acceleration of the base
        put(mat_transposed_vec(b.R, neg(vec(m.gravity))), A)
        put(xyz(0.0, 0.0, 0.0), A + 3)
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


cdef inline void add_to_parent(const Body *b, Body *parent) noexcept nogil:
    """Inertia and momentum of the body with what hangs on it, shifted to the parent's origin and axes, onto the parent's."""
    cdef Inertia *sum = &parent.total
    cdef Vec3 r = b.r
    cdef double m = b.total.m
    cdef Vec3 d = mat_vec(b.R, b.total.h)
    cdef Vec3 p = mat_vec(b.R, b.total_momentum.f)
    cdef Vec3 l = mat_vec(b.R, b.total_momentum.m)
    cdef Mat3 I = rotated_tensor(b.R, tensor(b.total))
    cdef double x = 2.0 * dot(r, d) + m * dot(r, r)
    # inertia about the parent's origin: I + (2 r.d + m r.r) 1 - r d^T - d r^T - m r r^T
    sum.xx += I.xx + x - 2.0 * r.x * d.x - m * r.x * r.x
    sum.xy += I.xy - r.x * d.y - d.x * r.y - m * r.x * r.y
    sum.xz += I.xz - r.x * d.z - d.x * r.z - m * r.x * r.z
    sum.yy += I.yy + x - 2.0 * r.y * d.y - m * r.y * r.y
    sum.yz += I.yz - r.y * d.z - d.y * r.z - m * r.y * r.z
    sum.zz += I.zz + x - 2.0 * r.z * d.z - m * r.z * r.z
    sum.m += m
    sum.h = add(sum.h, add(d, mul(m, r)))
    parent.total_momentum.f = add(parent.total_momentum.f, p)
    parent.total_momentum.m = add(add(parent.total_momentum.m, l), cross(r, p))


cdef inline Mat3 outer(Vec3 a, Vec3 b) noexcept nogil:
    # a b^T
    return rows_of(mul(a.x, b), mul(a.y, b), mul(a.z, b))


cdef void compose(Model *m, const double *q, const double *v, Composite *out) noexcept nogil:
    """The whole tree with its root, the first body, at rest: its joint coordinates in q and v are not read. Moves all bodies; M of a rigid
    one is left as it was (it is M0)."""
    cdef Body *b
    cdef const double *M
    cdef Twist V
    cdef Vec3 centre
    cdef Mat3 I
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
        # mass, first moment from the coupling block, inertia; momentum
        V = twist(b.V)
        b.total.m = b.mass
        b.total.h = xyz(M[31], M[20], M[24])
        b.total.xx = M[21]; b.total.xy = M[22]; b.total.xz = M[23]; b.total.yy = M[28]; b.total.yz = M[29]; b.total.zz = M[35]
        b.total_momentum = momentum_of(b.total, V)
        for k in range(b.s):
            b.total_momentum.f = add(b.total_momentum.f, mul(v[b.ev + k], vec(b.Mem + 6 * k)))
            b.total_momentum.m = add(b.total_momentum.m, mul(v[b.ev + k], vec(b.Mem + 6 * k + 3)))
        x = power(V, b.total_momentum)
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
            add_to_parent(&m.body[i], &m.body[m.body[i].parent])
    # about the centre of mass
    b = &m.body[0]
    centre = mul(1.0 / b.total.m, b.total.h)
    I = tensor(b.total)
    x = dot(centre, b.total.h)
    I.xx -= x; I.yy -= x; I.zz -= x
    out.mass = b.total.m
    put(centre, out.centre)
    put(b.total_momentum.f, out.p)
    put(sub(b.total_momentum.m, cross(centre, b.total_momentum.f)), out.l)
    put_mat(mat_sum(I, outer(centre, b.total.h)), out.inertia)


cdef void balance(Model *m, const double *q, const double *v, double *out) noexcept nogil:
    """out = [kinetic, potential energy, linear momentum (3), angular momentum about the inertial origin (3), mass, mass x centre (3)]."""
    cdef Body *b
    cdef double p[6]
    cdef Vec3 p_N, f, l, h
    cdef Vec3 g = vec(m.gravity)
    cdef Mat3 R
    cdef double x
    cdef int i, j, k
    memset(out, 0, 12 * sizeof(double))
    move(m, q, v)
    place(m)
    for i in range(m.n):
        b = &m.body[i]
        # momentum M V + M_em^T eta_dot in body axes; kinetic energy
        multiply_6(b.M, b.V, p)
        for k in range(b.s):
            for j in range(6):
                p[j] += b.Mem[6 * k + j] * v[b.ev + k]
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
        p_N = vec(b.pose)
        R = mat(b.pose + 3)
        f = mat_vec(R, vec(p))
        l = add(mat_vec(R, vec(p + 3)), cross(p_N, f))
        put(add(vec(out + 2), f), out + 2)
        put(add(vec(out + 5), l), out + 5)
        # mass and first moment: c from the coupling block, [c]_x at M[3:, :3]
        h = add(mat_vec(R, xyz(b.M[31], b.M[20], b.M[24])), mul(b.mass, p_N))
        out[8] += b.mass
        put(add(vec(out + 9), h), out + 9)
        out[1] = out[1] - g.x * h.x - g.y * h.y - g.z * h.z
