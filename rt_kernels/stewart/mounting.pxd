"""Which unit hangs where: from the pose of the platform to the relative pose of the docking ports and back.

One unit is fixed to the stand (on the load cell's frame), the other rides on the platform; either may be the active one (R-St-01).
`X_WF` pose of the fixed port in W, `X_PM` pose of the moving port on the platform.
"""

from rt_kernels.algebra.values cimport (Pose, Twist, Vec3, add, compose, cross, inverse, mul, pose, pose_from, put_pose, put_twist,
                                        rotate, rotate_back, sub, twist, twist_of, vec)

cdef struct Mounting:
    double X_WF[7]
    double X_PM[7]
    double X_MP[7]      # inverse of X_PM
    double X_FW[7]      # inverse of X_WF
    int target_fixed    # 1: the target unit is fixed and the active one moves
    int unused


cdef inline void relative_pose(const Mounting *m, const double *X_WP, double *X_TA) noexcept nogil:
    cdef Pose X_WM = compose(pose(X_WP), pose(m.X_PM))
    cdef Pose X_FM = compose(pose(m.X_FW), X_WM)
    put_pose(X_FM if m.target_fixed else inverse(X_FM), X_TA)


cdef inline Pose platform_pose(const Mounting *m, Pose X_TA) noexcept nogil:
    # X_WP
    cdef Pose X_FM = X_TA if m.target_fixed else inverse(X_TA)
    return compose(compose(pose(m.X_WF), X_FM), pose(m.X_MP))


cdef inline void relative_twist(const Mounting *m, const double *X_WP, const double *V_WP, const double *X_TA, double *V_TA) noexcept nogil:
    """Twist of A relative to T in T axes from the platform's twist (velocity of P, W axes)."""
    cdef Pose X_WF = pose(m.X_WF)
    cdef Pose X_WM = compose(pose(X_WP), pose(m.X_PM))
    cdef Twist V_P = twist(V_WP)
    cdef Vec3 w = V_P.w
    cdef Vec3 v_M = add(cross(w, sub(X_WM.p, vec(X_WP))), V_P.v)    # moving port, W axes
    if m.target_fixed:
        put_twist(twist_of(rotate_back(X_WF.q, v_M), rotate_back(X_WF.q, w)), V_TA)
    else:
        # T moves, A stands: d/dt p_TA = R_TW (-v_T - w_T x p_TA_W), w_TA = -R_TW w_T
        v_M = add(v_M, cross(w, sub(X_WF.p, X_WM.p)))
        put_twist(twist_of(rotate_back(X_WM.q, mul(-1.0, v_M)), rotate_back(X_WM.q, mul(-1.0, w))), V_TA)


cdef inline Twist platform_twist_of(const Mounting *m, Pose X_WP, Twist V_TA) noexcept nogil:
    """V_WP, inverse of `relative_twist`."""
    cdef Pose X_WF = pose(m.X_WF)
    cdef Pose X_WM = compose(X_WP, pose(m.X_PM))
    cdef Vec3 v_M, w
    if m.target_fixed:
        v_M = rotate(X_WF.q, V_TA.v)
        w = rotate(X_WF.q, V_TA.w)
    else:
        w = mul(-1.0, rotate(X_WM.q, V_TA.w))
        v_M = sub(mul(-1.0, rotate(X_WM.q, V_TA.v)), cross(w, sub(X_WF.p, X_WM.p)))
    # from the moving port to P
    return twist_of(add(v_M, cross(w, sub(X_WP.p, X_WM.p))), w)


cdef inline int fill_mounting(Mounting *m, object mounting) except -1:
    """From the assembly's dict: `X_WF`, `X_PM` (7 numbers each), `unit_on_load_cell`, `load_cell_on`."""
    cdef Pose X_WF = pose_from(mounting.X_WF), X_PM = pose_from(mounting.X_PM)
    put_pose(X_WF, m.X_WF)
    put_pose(X_PM, m.X_PM)
    put_pose(inverse(X_PM), m.X_MP)
    put_pose(inverse(X_WF), m.X_FW)
    m.target_fixed = (mounting.unit_on_load_cell == "target") == (mounting.load_cell_on == "floor")
    return 0
