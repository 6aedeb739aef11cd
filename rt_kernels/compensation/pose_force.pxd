"""Force at the simulated pose from the force measured at the platform's pose (hybrid-stability notes 5.4 (4)).

    F = F_m + K (x - y) + B d/dt (x - y)        while there is contact

x simulated pose at the tick, y measured pose of the instant at which F_m was measured, x - y as a small motion at the origin of T.
Where the measured pose is older than the force, the newest force is kept, and x - y is that of the pose's instant: with a lead it is
small and changes little within a tick, while an older force would be a delay that nothing takes out. One
contact without friction presses along one screw u = F_m / |f|: point and direction of the contact need not be known, and with the
scalar stiffness k of the contact K = k u u^T, so that

    F = F_m g        g = 1 + (k u.(x - y) + b u.d/dt(x - y)) / |f|        g >= 0: the force is never turned around

Where a full 6x6 matrix is given it is used instead, and a correction that would turn the force around is left at zero force.

Contact is the event detector's flag, which has hysteresis in force and time: gating on the single sample chatters with noise.

The touch itself comes as late as any force: until then the model moves on as if nothing were there. What it has missed is caught up in
the first tick of the contact, the sum over the ticks since the model touched of k min(u.(x - y), depth), with the model's depth
f/k + u.(x - y) counted back from the pose of the first force. Without a lead this is (w t)^2 of the energy; behind a good lead x - y
and the sum are about zero.

The stiffness is the prior, or follows a recursive least squares of the change of force on the change of pose along u, with
forgetting, only where the pose has moved by enough, and bounded to 0.5...1.5 times the prior.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.algebra cimport quat, vec3
from rt_kernels.codes cimport COMPENSATION_STATUS_ADAPTING, COMPENSATION_STATUS_CLIPPED, COMPENSATION_STATUS_GATE_OPEN
from rt_kernels.sample cimport Sample

cdef enum:
    HISTORY = 256
    SPAN = 4                    # ticks over which changes are taken for the estimate
    RATE_SPAN = 2               # and for the rate of the error: short, because it lags by half of it
    LOOK_BACK = 240             # ticks before the first force of a contact that are looked at

cdef struct PoseForceParams:
    double stiffness            # N/m, prior
    double damping              # N.s/m
    double K[36]
    double period
    double forgetting
    double excitation           # m: least change of pose along u that is learnt from
    double pose_age             # ticks between the newest measured pose and the pose that belongs to the force
    double force_age            # ticks by which the newest measured pose is older than the newest force
    int full                    # the 6x6 matrix is used
    int estimate

cdef struct Measured:
    double X[7]                 # X_TA_measured
    double F[6]                 # F_T
    double x[7]                 # X_TA, simulated

cdef struct PoseForceState:
    Measured history[256]
    double error[256]           # u.(x - y) of each tick, for its rate
    int64_t count
    double stiffness            # estimate
    double sum_yy
    double sum_yf
    double peak                 # largest force of this contact
    int in_contact
    int contact_ticks


cdef inline void remember(PoseForceState *s, const Sample *o) noexcept nogil:
    """The measured pair of this tick; for periods that were skipped too, so that an index is a time."""
    cdef int n = o.periods if 1 <= o.periods <= HISTORY else 1
    cdef int i
    cdef Measured *m
    while n > 0:
        m = &s.history[s.count % HISTORY]
        for i in range(7):
            m.X[i] = o.X_TA_measured[i]
            m.x[i] = o.X_TA[i]
        for i in range(6):
            m.F[i] = o.F_T[i]
        s.count += 1
        n -= 1


cdef inline void earlier(const PoseForceState *s, double age, double *X, double *F) noexcept nogil:
    """Measured pose and force `age` ticks ago, linear between the ticks. X or F may be NULL."""
    cdef int64_t whole = <int64_t>age
    cdef double w = age - <double>whole
    cdef const Measured *a
    cdef const Measured *b
    cdef int i
    if whole > s.count - 2:
        whole = s.count - 2 if s.count >= 2 else 0
    a = &s.history[(s.count - 1 - whole) % HISTORY]
    b = &s.history[(s.count - 2 - whole) % HISTORY] if s.count >= 2 else a
    if X != NULL:
        for i in range(7):
            X[i] = a.X[i] + w * (b.X[i] - a.X[i])
        quat.normalize(X + 3)
    if F != NULL:
        for i in range(6):
            F[i] = a.F[i] + w * (b.F[i] - a.F[i])


cdef inline void simulated(const PoseForceState *s, double age, double *x) noexcept nogil:
    """Simulated pose `age` ticks ago, linear between the ticks."""
    cdef int64_t whole = <int64_t>age
    cdef double w = age - <double>whole
    cdef const Measured *a
    cdef const Measured *b
    cdef int i
    if whole > s.count - 2:
        whole = s.count - 2 if s.count >= 2 else 0
    a = &s.history[(s.count - 1 - whole) % HISTORY]
    b = &s.history[(s.count - 2 - whole) % HISTORY] if s.count >= 2 else a
    for i in range(7):
        x[i] = a.x[i] + w * (b.x[i] - a.x[i])
    quat.normalize(x + 3)


cdef inline void motion_at_target(const double *X_from, const double *X_to, double *d) noexcept nogil:
    """Small motion from X_from to X_to, both of A in T, of the point of A that lies at the origin of T; T axes."""
    cdef double inverse[4]
    cdef double dq[4]
    cdef double t[3]
    quat.conjugate(X_from + 3, inverse)
    quat.multiply(X_to + 3, inverse, dq)
    quat.logarithm(dq, d + 3)
    vec3.sub(X_to, X_from, d)
    vec3.cross(X_to, d + 3, t)
    vec3.add(d, t, d)


cdef inline void learn(const PoseForceParams *p, PoseForceState *s, const double *u) noexcept nogil:
    """Recursive least squares of the change of |f| on the change of pose along u over SPAN ticks."""
    cdef double X_new[7]
    cdef double X_old[7]
    cdef double F_new[6]
    cdef double F_old[6]
    cdef double d[6]
    cdef double dy = 0.0, df = 0.0, k
    cdef int i
    earlier(s, p.pose_age, X_new, NULL)
    earlier(s, p.pose_age + SPAN, X_old, NULL)
    earlier(s, p.force_age, NULL, F_new)
    earlier(s, p.force_age + SPAN, NULL, F_old)
    motion_at_target(X_old, X_new, d)
    for i in range(6):
        dy += u[i] * d[i]
    for i in range(3):
        df += u[i] * (F_new[i] - F_old[i])
    if dy * dy < p.excitation * p.excitation:
        return
    s.sum_yy = p.forgetting * s.sum_yy + dy * dy
    s.sum_yf = p.forgetting * s.sum_yf + dy * df
    # the prior counts as much as ten changes of the least size: one outlier does not move the estimate far
    k = (s.sum_yf + 10.0 * p.excitation * p.excitation * p.stiffness) / (s.sum_yy + 10.0 * p.excitation * p.excitation)
    s.stiffness = 0.5 * p.stiffness if k < 0.5 * p.stiffness else (1.5 * p.stiffness if k > 1.5 * p.stiffness else k)


cdef inline double missed(const PoseForceParams *p, const PoseForceState *s, const double *X, const double *u) noexcept nogil:
    """Sum over the ticks before this one of the force along u that the model did without, N. X: measured pose of the force's instant."""
    cdef double X_then[7]
    cdef double x[7]
    cdef double F[6]
    cdef double d[6]
    cdef double force, error, depth, sum = 0.0
    cdef int i, j
    # depth of the measured pose: its force without what its damper makes of its rate
    earlier(s, p.force_age, NULL, F)
    force = vec3.dot(u, F)
    earlier(s, p.pose_age + RATE_SPAN, X_then, NULL)
    motion_at_target(X_then, X, d)
    for i in range(6):
        force -= p.damping * u[i] * d[i] / (RATE_SPAN * p.period)
    for j in range(1, LOOK_BACK):
        if p.pose_age + p.force_age + j + 2 > s.count or p.pose_age + p.force_age + j + 2 > HISTORY:
            break
        # how deep the model was j ticks ago, and how far ahead of the pose whose force it got
        simulated(s, p.force_age + j, x)
        motion_at_target(X, x, d)
        depth = force / s.stiffness
        for i in range(6):
            depth += u[i] * d[i]
        if not (depth > 0.0):
            break
        earlier(s, p.pose_age + j, X_then, NULL)
        motion_at_target(X_then, x, d)
        error = 0.0
        for i in range(6):
            error += u[i] * d[i]
        sum += error if error < depth else depth
    return s.stiffness * sum


cdef inline uint32_t pose_force_step(const PoseForceParams *p, PoseForceState *s, Sample *o) noexcept nogil:
    """Writes F_T_corrected. Returns the status bits."""
    cdef double X[7]
    cdef double x[7]
    cdef double F[6]
    cdef double u[6]
    cdef double d[6]
    cdef double correction[6]
    cdef double f, g, along, rate, work, late
    cdef uint32_t status
    cdef int i, j
    cdef bint first = False
    remember(s, o)
    if not o.contact:
        s.in_contact = 0
        for i in range(6):
            o.F_T_corrected[i] = o.F_T[i]
        return 0
    status = COMPENSATION_STATUS_GATE_OPEN
    if not s.in_contact:
        first = True
        s.in_contact = 1
        s.contact_ticks = 0
        s.peak = 0.0
    # the pose of the force's instant; an older one is set against the model of its own instant
    earlier(s, p.pose_age, X, NULL)
    for i in range(6):
        F[i] = o.F_T[i]
    simulated(s, p.force_age, x)
    f = sqrt(vec3.dot(F, F))
    if f > s.peak:
        s.peak = f
    if not (f > 1e-9):
        for i in range(6):
            o.F_T_corrected[i] = F[i]
        return status
    motion_at_target(X, x, d)
    if p.full:
        # K d, and no further than to zero force
        work = 0.0
        for i in range(6):
            correction[i] = 0.0
            for j in range(6):
                correction[i] += p.K[6 * i + j] * d[j]
        for i in range(3):
            work += (F[i] + correction[i]) * F[i]
        if work < 0.0:
            if f > 0.2 * s.peak:
                status |= COMPENSATION_STATUS_CLIPPED
            for i in range(6):
                o.F_T_corrected[i] = 0.0
        else:
            for i in range(6):
                o.F_T_corrected[i] = F[i] + correction[i]
        return status
    along = 0.0
    for i in range(6):
        u[i] = F[i] / f
        along += u[i] * d[i]
    # rate of the error over SPAN ticks
    s.error[s.count % HISTORY] = along
    s.contact_ticks += o.periods
    rate = (along - s.error[(s.count - RATE_SPAN) % HISTORY]) / (RATE_SPAN * p.period) if s.contact_ticks > RATE_SPAN else 0.0
    if p.estimate and s.contact_ticks > SPAN:
        learn(p, s, u)
        status |= COMPENSATION_STATUS_ADAPTING
    late = missed(p, s, X, u) if first else 0.0
    g = 1.0 + (s.stiffness * along + p.damping * rate + late) / f
    if g < 0.0:
        g = 0.0
        if f > 0.2 * s.peak:
            status |= COMPENSATION_STATUS_CLIPPED
    for i in range(6):
        o.F_T_corrected[i] = g * F[i]
    return status


cdef inline int fill_pose_force(PoseForceParams *p, PoseForceState *s, dict keys, double period_s, delays) except -1:
    """From the keys of POSE_FORCE_PARAMETERS and the ledger: the pose is as old as the measured legs, the force as the sensor's delay."""
    cdef int i
    cdef double older = (delays.sensor_delay_s - delays.measured_leg_delay_s) / period_s
    memset(p, 0, sizeof(PoseForceParams))
    memset(s, 0, sizeof(PoseForceState))
    p.stiffness = keys["stiffness_n_per_m"] * keys["stiffness_factor"]
    p.damping, p.estimate, p.forgetting = keys["damping_n_s_per_m"], keys["estimate"], keys["forgetting"]
    p.excitation, p.period = keys["excitation_m"], period_s
    p.pose_age = older if older > 0.0 else 0.0
    p.force_age = -older if older < 0.0 else 0.0
    if max(p.pose_age, p.force_age) + SPAN + 2 > HISTORY:
        raise ValueError(f"compensators: force and pose are {abs(older) * period_s} s apart; at most {(HISTORY - SPAN - 2) * period_s} s")
    rows = keys["stiffness_rows"]
    if rows is not None:
        p.full = 1
        for i in range(36):
            p.K[i] = rows[i // 6][i % 6] * keys["stiffness_factor"]
    elif not p.stiffness > 0.0:
        raise ValueError("compensation.stiffness_n_per_m: the stiffness of the contact must be given (above 0 N/m), or stiffness_rows")
    s.stiffness = p.stiffness
    return 0
