"""Force at the simulated pose from the force measured at the platform's pose (hybrid-stability notes 5.4 (4)).

    F = F_m + K (x - y) + B d/dt (x - y)        while there is contact

x simulated pose at the tick, y measured pose of the instant at which F_m was measured, x - y as a small motion at the origin of T.
Where the measured pose is older than the force, the newest force is kept, and x - y is that of the pose's instant: with a lead it is
small and changes little within a tick, while an older force would be a delay that nothing takes out. One
contact without friction presses along one screw u = F_m / |f|: point and direction of the contact need not be known, and with the
scalar stiffness k of the contact K = k u u^T, so that

    F = F_m g        g = 1 + (k u.(x - y) + b u.d/dt(x - y)) / |f|        g >= 0: the force is never turned around

Where a full 6x6 matrix is given it is used instead, and a correction that would turn the force around is left at zero force. A contact of
couples without a force is only known so.

Where the structure that carries the ports rings, y is where the ports are, not where the legs put them (structure_observer.pxd).

Contact is the event detector's flag, which has hysteresis in force and time: gating on the single sample chatters with noise.

The touch itself comes as late as any force: until then the model moves on as if nothing were there. What it has missed is caught up in
the first tick of the contact, the sum over the ticks since the model touched of k min(u.(x - y), depth), with the model's depth
f/k + u.(x - y) counted back from the pose of the first force. Without a lead this is (w t)^2 of the energy; behind a good lead x - y
and the sum are about zero.

The stiffness is the prior, or is estimated: F = K y + const holds in contact, y along u, and the simulated x is the instrument,

    K = cov(x, F) / cov(x, y)

from the first tick of each contact on, with forgetting; the noise of the measured pose has no part in either covariance, so that it does
not pull the estimate down as least squares of F on y would. A known damping is taken off the force first. The prior counts as ten motions
of `excitation_m`, and the estimate is held within 0.5...1.5 times the prior. Of a full matrix one factor is estimated. (Instrumental
variables: Soderstrom and Stoica 1989, chapter 8.)
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from rt_kernels.algebra.values cimport (Pose, Twist, Wrench, add, conjugate, cross, dot, logarithm, mul, normalized, pose, pose_of, power,
                                        put_twist, quat_multiply, sub, twist, twist_of, vec, wrench, wrench_of, xyzw)
from rt_kernels.codes cimport COMPENSATION_STATUS_ADAPTING, COMPENSATION_STATUS_CLIPPED, COMPENSATION_STATUS_GATE_OPEN
from rt_kernels.compensation.declarations_parameters cimport PoseForceParameters, fill_pose_force
from rt_kernels.compensation.structure_observer cimport ObserverParams, ObserverState, fill_observer, observe
from rt_kernels.sample cimport Sample

cdef enum:
    HISTORY = 256
    RATE_SPAN = 2               # ticks over which rates are taken: few, because they lag by half of it
    LOOK_BACK = 240             # ticks before the first force of a contact that are looked at

cdef struct PoseForceParams:
    PoseForceParameters keys
    double K[36]
    double period
    double pose_age             # ticks between the newest measured pose and the pose that belongs to the force
    double force_age            # ticks by which the newest measured pose is older than the newest force
    double observed_age         # with an observer: pose_age, which is then zero, since X is already of the force's instant
    ObserverParams observer
    int full                    # the 6x6 matrix is used
    int unused

cdef struct Measured:
    Pose X                      # X_TA_measured, or where the observer has the ports
    Pose legs                   # X_TA_measured
    Wrench F                    # F_T
    Pose x                      # X_TA, simulated

cdef struct PoseForceState:
    Measured history[256]
    double error[256]           # u.(x - y) of each tick, for its rate
    int64_t count
    double stiffness            # estimate, along the wrench
    double factor               # estimate over prior
    double known_xy             # covariances, unscaled, of the contacts before this one
    double known_xf
    double weight               # sums of this contact, from its first tick
    double sum_x
    double sum_y
    double sum_f
    double sum_xy
    double sum_xf
    Pose X_first                # measured pose of the first tick
    ObserverState observer
    double peak                 # largest force of this contact
    int in_contact
    int contact_ticks


cdef inline uint32_t remember(const PoseForceParams *p, PoseForceState *s, const Sample *o) noexcept nogil:
    """The measured pair of this tick; for periods that were skipped too, so that an index is a time. Returns the observer's status bits."""
    cdef int n = o.periods if 1 <= o.periods <= HISTORY else 1
    cdef uint32_t status = 0
    cdef Measured *m
    while n > 0:
        m = &s.history[s.count % HISTORY]
        m.X = m.legs = pose(o.X_TA_measured)
        m.x = pose(o.X_TA)
        m.F = wrench(o.F_T)
        s.count += 1
        n -= 1
    if p.observer.active:
        status = observe(&p.observer, &s.observer, earlier_legs(s, p.observed_age), earlier_wrench(s, p.force_age), o.periods, &m.X)
    return status


cdef struct Between:
    const Measured *a
    const Measured *b
    double w                    # 0: a, 1: b, a tick earlier


cdef inline Between between(const PoseForceState *s, double age) noexcept nogil:
    """The two ticks between which `age` ticks ago lies."""
    cdef int64_t whole = <int64_t>age
    cdef Between m
    m.w = age - <double>whole
    if whole > s.count - 2:
        whole = s.count - 2 if s.count >= 2 else 0
    m.a = &s.history[(s.count - 1 - whole) % HISTORY]
    m.b = &s.history[(s.count - 2 - whole) % HISTORY] if s.count >= 2 else m.a
    return m


cdef inline Pose on_the_way(const Pose *a, const Pose *b, double w) noexcept nogil:
    # a + w (b - a), normalised
    return pose_of(add(a.p, mul(w, sub(b.p, a.p))),
                   normalized(xyzw(a.q.x + w * (b.q.x - a.q.x), a.q.y + w * (b.q.y - a.q.y), a.q.z + w * (b.q.z - a.q.z),
                                   a.q.w + w * (b.q.w - a.q.w))))


cdef inline Pose earlier_legs(const PoseForceState *s, double age) noexcept nogil:
    """Relative pose by the legs `age` ticks ago, linear between the ticks."""
    cdef Between m = between(s, age)
    return on_the_way(&m.a.legs, &m.b.legs, m.w)


cdef inline Pose earlier_pose(const PoseForceState *s, double age) noexcept nogil:
    """Measured pose `age` ticks ago, linear between the ticks."""
    cdef Between m = between(s, age)
    return on_the_way(&m.a.X, &m.b.X, m.w)


cdef inline Wrench earlier_wrench(const PoseForceState *s, double age) noexcept nogil:
    """Measured wrench `age` ticks ago, linear between the ticks."""
    cdef Between m = between(s, age)
    return wrench_of(add(m.a.F.f, mul(m.w, sub(m.b.F.f, m.a.F.f))), add(m.a.F.m, mul(m.w, sub(m.b.F.m, m.a.F.m))))


cdef inline Pose simulated(const PoseForceState *s, double age) noexcept nogil:
    """Simulated pose `age` ticks ago, linear between the ticks."""
    cdef Between m = between(s, age)
    return on_the_way(&m.a.x, &m.b.x, m.w)


cdef inline Twist motion_at_target(Pose X_from, Pose X_to) noexcept nogil:
    """Small motion from X_from to X_to, both of A in T, of the point of A that lies at the origin of T; T axes."""
    cdef Twist d = twist_of(sub(X_to.p, X_from.p), logarithm(quat_multiply(X_to.q, conjugate(X_from.q))))
    return twist_of(add(d.v, cross(X_to.p, d.w)), d.w)


cdef struct Along:
    double u[6]                 # the measured wrench, of size 1
    double w[6]                 # w . d: a small motion d along it, m
    double size                 # of the wrench, N
    double stiffness            # prior along it: size = stiffness w . d


cdef inline bint along_wrench(const PoseForceParams *p, const double *F, Along *a) noexcept nogil:
    """Where the wrench points. A force by its size; with a matrix K the whole wrench at a lever of 1 m, w = K u / (u K u). False: none."""
    cdef int i, j
    a.size = sqrt(dot(vec(F), vec(F)))
    if p.full:
        a.size = sqrt(a.size * a.size + dot(vec(F + 3), vec(F + 3)))
    if not (a.size > 1e-9):
        return False
    for i in range(6):
        a.u[i] = F[i] / a.size
        a.w[i] = a.u[i]
    a.stiffness = p.keys.stiffness_factor * p.keys.stiffness
    if p.full:
        a.stiffness = 0.0
        for i in range(6):
            a.w[i] = 0.0
            for j in range(6):
                a.w[i] += a.u[j] * (p.keys.stiffness_factor * p.K[6 * j + i])
        for i in range(6):
            a.stiffness += a.w[i] * a.u[i]
        if not (a.stiffness > 0.0):
            return False
        for i in range(6):
            a.w[i] /= a.stiffness
    return True


cdef inline double motion_along(const Along *a, Pose X_from, Pose X_to) noexcept nogil:
    """w . d of the small motion between two poses, m."""
    return power(motion_at_target(X_from, X_to), wrench(a.w))


cdef inline double force_along(const PoseForceParams *p, const Along *a, Wrench F) noexcept nogil:
    """u . F; with a scalar stiffness of the force alone, N."""
    return power(twist(a.u), F) if p.full else dot(vec(a.u), F.f)


cdef inline void begin_learning(PoseForceState *s, Pose X) noexcept nogil:
    """A new contact: the covariances of the last one are kept, levels are taken from here on. X: measured pose of the force's instant."""
    if s.weight > 0.0:
        s.known_xy += s.sum_xy - s.sum_x * s.sum_y / s.weight
        s.known_xf += s.sum_xf - s.sum_x * s.sum_f / s.weight
    s.weight = s.sum_x = s.sum_y = s.sum_f = s.sum_xy = s.sum_xf = 0.0
    s.X_first = X


cdef inline void learn(const PoseForceParams *p, PoseForceState *s, const Along *a, Pose X, Pose x) noexcept nogil:
    """One tick of the estimate. X, x: measured and simulated pose of the force's instant."""
    cdef double ix, iy, xy, xf, prior, k
    # the wrench of the pose's instant along u, which is the newest one's where the pose is not older
    cdef double force = force_along(p, a, earlier_wrench(s, p.force_age))
    if p.keys.damping > 0.0:
        force -= p.keys.damping * motion_along(a, earlier_pose(s, p.pose_age + RATE_SPAN), X) / (RATE_SPAN * p.period)
    ix, iy = motion_along(a, s.X_first, x), motion_along(a, s.X_first, X)
    s.known_xy *= p.keys.forgetting; s.known_xf *= p.keys.forgetting
    s.weight = p.keys.forgetting * s.weight + 1.0
    s.sum_x = p.keys.forgetting * s.sum_x + ix
    s.sum_y = p.keys.forgetting * s.sum_y + iy
    s.sum_f = p.keys.forgetting * s.sum_f + force
    s.sum_xy = p.keys.forgetting * s.sum_xy + ix * iy
    s.sum_xf = p.keys.forgetting * s.sum_xf + ix * force
    xy = s.known_xy + s.sum_xy - s.sum_x * s.sum_y / s.weight
    xf = s.known_xf + s.sum_xf - s.sum_x * s.sum_f / s.weight
    prior = 10.0 * p.keys.excitation * p.keys.excitation
    # motions that do not go together give no estimate
    if not (xy + prior > 0.0):
        return
    k = (xf / a.stiffness + prior) / (xy + prior)
    s.factor = 0.5 if k < 0.5 else (1.5 if k > 1.5 else k)


cdef inline double missed(const PoseForceParams *p, const PoseForceState *s, Pose X, const Along *a) noexcept nogil:
    """Sum over the ticks before this one of the force along u that the model did without, N. X: measured pose of the force's instant."""
    cdef Pose x
    cdef double error, depth, sum = 0.0
    # depth of the measured pose: its force without what its damper makes of its rate
    cdef double force = force_along(p, a, earlier_wrench(s, p.force_age))
    cdef int j
    force -= p.keys.damping * motion_along(a, earlier_pose(s, p.pose_age + RATE_SPAN), X) / (RATE_SPAN * p.period)
    for j in range(1, LOOK_BACK):
        if p.pose_age + p.force_age + j + 2 > s.count or p.pose_age + p.force_age + j + 2 > HISTORY:
            break
        # how deep the model was j ticks ago, and how far ahead of the pose whose force it got
        x = simulated(s, p.force_age + j)
        depth = force / s.stiffness + motion_along(a, X, x)
        if not (depth > 0.0):
            break
        error = motion_along(a, earlier_pose(s, p.pose_age + j), x)
        sum += error if error < depth else depth
    return s.stiffness * sum


cdef inline uint32_t pose_force_step(const PoseForceParams *p, PoseForceState *s, Sample *o) noexcept nogil:
    """Writes F_T_corrected. Returns the status bits."""
    cdef Pose X, x
    cdef double F[6]
    cdef double d[6]
    cdef double correction[6]
    cdef Along a
    cdef double g, along, rate, work, late
    cdef uint32_t status
    cdef int i, j
    cdef bint first = False
    status = remember(p, s, o)
    if not o.contact:
        s.in_contact = 0
        for i in range(6):
            o.F_T_corrected[i] = o.F_T[i]
        return status
    status |= COMPENSATION_STATUS_GATE_OPEN
    # the pose of the force's instant; an older one is set against the model of its own instant
    X, x = earlier_pose(s, p.pose_age), simulated(s, p.force_age)
    for i in range(6):
        F[i] = o.F_T[i]
    if not s.in_contact:
        first = True
        s.in_contact = 1
        s.contact_ticks = 0
        s.peak = 0.0
        begin_learning(s, X)
    if not along_wrench(p, F, &a):
        for i in range(6):
            o.F_T_corrected[i] = F[i]
        return status
    if a.size > s.peak:
        s.peak = a.size
    s.contact_ticks += o.periods
    if p.keys.estimate:
        learn(p, s, &a, X, x)
        status |= COMPENSATION_STATUS_ADAPTING
    s.stiffness = s.factor * a.stiffness
    late = missed(p, s, X, &a) if first else 0.0
    if p.full:
        # K d, and no further than to zero force
        put_twist(motion_at_target(X, x), d)
        work = 0.0
        for i in range(6):
            correction[i] = 0.0
            for j in range(6):
                correction[i] += p.keys.stiffness_factor * p.K[6 * i + j] * d[j]
            correction[i] = s.factor * correction[i] + late * a.u[i]
            work += (F[i] + correction[i]) * F[i]
        if work < 0.0:
            if a.size > 0.2 * s.peak:
                status |= COMPENSATION_STATUS_CLIPPED
            for i in range(6):
                o.F_T_corrected[i] = 0.0
        else:
            for i in range(6):
                o.F_T_corrected[i] = F[i] + correction[i]
        return status
    along = motion_along(&a, X, x)
    # rate of the error over RATE_SPAN ticks
    s.error[s.count % HISTORY] = along
    rate = (along - s.error[(s.count - RATE_SPAN) % HISTORY]) / (RATE_SPAN * p.period) if s.contact_ticks > RATE_SPAN else 0.0
    g = 1.0 + (s.stiffness * along + p.keys.damping * rate + late) / a.size
    if g < 0.0:
        g = 0.0
        if a.size > 0.2 * s.peak:
            status |= COMPENSATION_STATUS_CLIPPED
    for i in range(6):
        o.F_T_corrected[i] = g * F[i]
    return status


cdef inline int set_up_pose_force(PoseForceParams *p, PoseForceState *s, dict keys, double period_s, delays, list ports=None) except -1:
    """From the keys of POSE_FORCE_PARAMETERS and the ledger: the pose is as old as the measured legs, the force as the sensor's delay.
    ports: what carries them, for the observer (see fill_observer)."""
    cdef int i
    cdef double older = (delays.sensor_delay_s - delays.measured_leg_delay_s) / period_s
    memset(p, 0, sizeof(PoseForceParams))
    memset(s, 0, sizeof(PoseForceState))
    fill_pose_force(&p.keys, keys)
    p.period = period_s
    p.pose_age = older if older > 0.0 else 0.0
    p.force_age = -older if older < 0.0 else 0.0
    if ports is not None:
        fill_observer(&p.observer, &s.observer, ports, keys["structure_max_m"], period_s)
        if p.observer.active:
            p.observed_age, p.pose_age = p.pose_age, 0.0
    if max(p.pose_age, p.observed_age, p.force_age) + RATE_SPAN + 4 > HISTORY:
        raise ValueError(f"compensators: force and pose are {abs(older) * period_s} s apart; at most "
                         f"{(HISTORY - RATE_SPAN - 4) * period_s} s")
    rows = keys["stiffness_rows"]
    if rows is not None:
        p.full = 1
        for i in range(36):
            p.K[i] = rows[i // 6][i % 6]
    elif not p.keys.stiffness_factor * p.keys.stiffness > 0.0:
        raise ValueError("compensation.stiffness_n_per_m: the stiffness of the contact must be given (above 0 N/m), or stiffness_rows")
    s.stiffness, s.factor = p.keys.stiffness_factor * p.keys.stiffness, 1.0
    return 0
