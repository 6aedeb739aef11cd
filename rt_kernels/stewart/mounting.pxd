"""Which unit hangs where: from the pose of the platform to the relative pose of the docking ports and back.

One unit is fixed to the stand (on the load cell's frame), the other rides on the platform; either may be the active one (R-St-01).
`X_WF` pose of the fixed port in W, `X_PM` pose of the moving port on the platform.
"""

from rt_kernels.algebra cimport pose, quat, vec3

cdef struct Mounting:
    double X_WF[7]
    double X_PM[7]
    double X_MP[7]      # inverse of X_PM
    double X_FW[7]      # inverse of X_WF
    int target_fixed    # 1: the target unit is fixed and the active one moves
    int unused


cdef inline void relative_pose(const Mounting *m, const double *X_WP, double *X_TA) noexcept nogil:
    cdef double X_WM[7]
    pose.multiply(X_WP, m.X_PM, X_WM)
    pose.multiply(m.X_FW, X_WM, X_TA)       # pose of the moving port in the fixed one
    if not m.target_fixed:
        pose.inverse(X_TA, X_TA)


cdef inline void platform_pose(const Mounting *m, const double *X_TA, double *X_WP) noexcept nogil:
    cdef double X_FM[7]
    if m.target_fixed:
        pose.copy(X_TA, X_FM)
    else:
        pose.inverse(X_TA, X_FM)
    pose.multiply(m.X_WF, X_FM, X_WP)
    pose.multiply(X_WP, m.X_MP, X_WP)


cdef inline void relative_twist(const Mounting *m, const double *X_WP, const double *V_WP, const double *X_TA, double *V_TA) noexcept nogil:
    """Twist of A relative to T in T axes from the platform's twist (velocity of P, W axes)."""
    cdef double X_WM[7]
    cdef double r[3]
    cdef double v[3]
    pose.multiply(X_WP, m.X_PM, X_WM)
    vec3.sub(X_WM, X_WP, r)
    vec3.cross(V_WP + 3, r, v)
    vec3.add(v, V_WP, v)                    # velocity of the moving port, W axes
    if m.target_fixed:
        quat.rotate_back(m.X_WF + 3, v, V_TA)
        quat.rotate_back(m.X_WF + 3, V_WP + 3, V_TA + 3)
    else:
        # T moves, A stands: d/dt p_TA = R_TW (-v_T - w_T x p_TA_W), w_TA = -R_TW w_T
        vec3.sub(m.X_WF, X_WM, r)
        vec3.cross(V_WP + 3, r, r)
        vec3.add(v, r, v)
        vec3.scale(-1.0, v, v)
        quat.rotate_back(X_WM + 3, v, V_TA)
        vec3.scale(-1.0, V_WP + 3, v)
        quat.rotate_back(X_WM + 3, v, V_TA + 3)


cdef inline void platform_twist_of(const Mounting *m, const double *X_WP, const double *X_TA, const double *V_TA,
                                   double *V_WP) noexcept nogil:
    """Inverse of `relative_twist`."""
    cdef double X_WM[7]
    cdef double r[3]
    cdef double v[3]
    pose.multiply(X_WP, m.X_PM, X_WM)
    if m.target_fixed:
        quat.rotate(m.X_WF + 3, V_TA, v)
        quat.rotate(m.X_WF + 3, V_TA + 3, V_WP + 3)
    else:
        quat.rotate(X_WM + 3, V_TA + 3, V_WP + 3)
        vec3.scale(-1.0, V_WP + 3, V_WP + 3)
        quat.rotate(X_WM + 3, V_TA, v)
        vec3.scale(-1.0, v, v)
        vec3.sub(m.X_WF, X_WM, r)
        vec3.cross(V_WP + 3, r, r)
        vec3.sub(v, r, v)
    # from the moving port to P
    vec3.sub(X_WP, X_WM, r)
    vec3.cross(V_WP + 3, r, r)
    vec3.add(v, r, V_WP)


cdef inline int fill_mounting(Mounting *m, object mounting) except -1:
    """From the assembly's dict: `X_WF`, `X_PM` (7 numbers each), `unit_on_load_cell`, `load_cell_on`."""
    cdef int i
    for i in range(7):
        m.X_WF[i] = mounting.X_WF[i]
        m.X_PM[i] = mounting.X_PM[i]
    pose.inverse(m.X_PM, m.X_MP)
    pose.inverse(m.X_WF, m.X_FW)
    m.target_fixed = (mounting.unit_on_load_cell == "target") == (mounting.load_cell_on == "floor")
    return 0
