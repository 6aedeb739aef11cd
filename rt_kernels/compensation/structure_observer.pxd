"""Where the docking ports are on a stand whose structure rings: an observer of the bodies that carry them.

The legs say where the platform is. The unit on it hangs on a spring, and so does what the load cell carries, or the load cell's base. Each
is a rigid body B (origin in its centre of mass) on a six-axis spring-damper whose foot moves with the platform or stands still:

    M v' = -K d - C (v - v_f) + F        d' = v - v_f          v twist of B, v_f that of its foot, B axes, small motions

Driven by what is measured, the motion of the foot and the contact wrench of the same instant, both taken as straight between two ticks, it
gives d and with it the relative pose of the ports at that instant: no delay. Nothing corrects d: its own error rings off with the mode's
damping, as the mode does. d is bounded; what is beyond the bound is left out, and the observer begins again.

The step is the symplectic Euler rule in substeps of at most 0.1/w.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Wrench, compose, conjugate, dot, exponential, inverse, logarithm, neg, pose_from, pose_of,
                                        put, put_wrench, quat_multiply, rotate_back, sub, vec, wrench_of, wrench_to_child)
from rt_kernels.codes cimport COMPENSATION_STATUS_AUTHORITY_LIMITED, COMPENSATION_STATUS_MODE_OBSERVED

cdef enum:
    PORTS = 2                   # the active unit's, the target's

cdef struct CarriedPort:
    double M_inverse[36]
    double K[36]
    double C[36]
    Pose X_BP                   # the port in the body
    Pose X_PB
    int present
    int moves                   # its foot is the platform

cdef struct ObserverParams:
    CarriedPort port[2]
    double period
    double bound                # m, and rad at 1 m
    int substeps                # a tick
    int active

cdef struct PortState:
    double d[6]
    double v[6]
    double F[6]                 # wrench of the tick before, B axes
    Pose X_FB                   # rest pose of the tick before, to the port on the floor

cdef struct ObserverState:
    PortState port[2]
    int started
    int unused


cdef inline void ring(const ObserverParams *p, const CarriedPort *c, PortState *s, const double *foot, const double *F,
                      double h) noexcept nogil:
    """One tick: foot is the small motion of the foot in B axes, F the wrench at its end."""
    cdef double dt = h / p.substeps
    cdef double f[6]
    cdef double share, a
    cdef int i, j, k
    for k in range(p.substeps):
        # forces of the positions at the begin of the substep
        share = <double>k / p.substeps
        for i in range(6):
            f[i] = s.F[i] + share * (F[i] - s.F[i])
            for j in range(6):
                f[i] -= c.K[6 * i + j] * s.d[j] + c.C[6 * i + j] * (s.v[j] - foot[j] / h)
        for i in range(6):
            a = 0.0
            for j in range(6):
                a += c.M_inverse[6 * i + j] * f[j]
            s.v[i] += dt * a
        for i in range(6):
            s.d[i] += dt * s.v[i] - foot[i] / p.substeps
    for i in range(6):
        s.F[i] = F[i]


cdef inline uint32_t observe(const ObserverParams *p, ObserverState *s, Pose X_TA, Wrench F_T, int periods, Pose *X) noexcept nogil:
    """X: the relative pose of the ports, from the one that the legs give, X_TA, and the contact wrench of the same instant."""
    cdef const CarriedPort *c
    cdef PortState *b
    cdef Pose X_TB, X_FB, X_PP
    cdef double F[6]
    cdef double foot[6]
    cdef double h = p.period * periods
    cdef uint32_t status = COMPENSATION_STATUS_MODE_OBSERVED
    cdef double size
    cdef int i, k
    X[0] = X_TA
    for k in range(PORTS):
        c = &p.port[k]
        b = &s.port[k]
        if not c.present:
            continue
        # the body at rest, in T for the wrench, and seen from the floor for the foot's motion
        X_TB = compose(X_TA, c.X_PB) if k == 0 else c.X_PB
        put_wrench(wrench_to_child(X_TB, wrench_of(neg(F_T.f), neg(F_T.m)) if k == 0 else F_T), F)
        memset(foot, 0, sizeof(foot))
        if c.moves:
            X_FB = X_TB if k == 0 else compose(inverse(X_TA), c.X_PB)
            if s.started:
                put(rotate_back(X_FB.q, sub(X_FB.p, b.X_FB.p)), foot)
                put(logarithm(quat_multiply(conjugate(b.X_FB.q), X_FB.q)), foot + 3)
            b.X_FB = X_FB
        if not s.started:
            for i in range(6):
                b.d[i] = b.v[i] = 0.0
                b.F[i] = F[i]
            continue
        ring(p, c, b, foot, F, h)
        size = dot(vec(b.d), vec(b.d)) + dot(vec(b.d + 3), vec(b.d + 3))
        if not (size <= p.bound * p.bound):
            status |= COMPENSATION_STATUS_AUTHORITY_LIMITED
            for i in range(6):
                b.d[i] = 0.0
                b.v[i] = foot[i] / h
            continue
        # the port moved with its body
        X_PP = compose(c.X_PB, compose(pose_of(vec(b.d), exponential(vec(b.d + 3))), c.X_BP))
        X[0] = compose(X[0], X_PP) if k == 0 else compose(inverse(X_PP), X[0])
    s.started = 1
    return status


cdef inline int fill_observer(ObserverParams *p, ObserverState *s, list ports, double bound_m, double period_s) except -1:
    """ports: for the active unit and the target None, or (M^-1 (6, 6), K, C, X_BP (7,), whether its foot is the platform, highest w); see
    declarations.carried_ports."""
    cdef int i, k
    cdef double fastest = 0.0
    memset(p, 0, sizeof(ObserverParams))
    memset(s, 0, sizeof(ObserverState))
    p.period, p.bound = period_s, bound_m
    for k in range(PORTS):
        if ports[k] is None:
            continue
        M_inverse, K, C, X_BP, moves, w = ports[k]
        fastest = max(fastest, w)
        for i in range(36):
            p.port[k].M_inverse[i], p.port[k].K[i], p.port[k].C[i] = M_inverse.flat[i], K.flat[i], C.flat[i]
        p.port[k].X_BP = pose_from(X_BP)
        p.port[k].X_PB = inverse(p.port[k].X_BP)
        p.port[k].present, p.port[k].moves = 1, moves
        p.active = 1
    p.substeps = 1 + <int>(fastest * period_s / 0.1)
    return 0
