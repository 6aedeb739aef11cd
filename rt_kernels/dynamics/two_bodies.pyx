"""Two free spacecraft, both rigid, under the measured contact wrench and the control wrench (Yaskevich 2020, 4.2.1).

    m v'  = f                      L' = r x f + m          (N axes; L about the body's own centre of mass)
    p'    = v                      q' = 1/2 w q,  w = R I^-1 R^T L

Integrator: symplectic Euler in (v, L) then (p, q), with the attitude advanced by the exponential of the midpoint rate. The contact
wrench acts on both bodies at the same point of space, equal and opposite, so linear and angular momentum are kept to rounding.
Two others are there for comparison, which move (p, q) with an older velocity, v - late h f/m: constant acceleration (late 1/2, what
RK4 is with a held force) and explicit Euler (late 1). Each is a delay of `late` ticks in contact; the ledger counts it.

With an orbit (rt_kernels/dynamics/orbit.pyx) the origin of N falls round a planet, from where the target's centre of mass is when the
loop closes. Each body, joined or not, feels the difference of gravity to that origin and its gravity-gradient moment: half a kick before
and half after the step above. Momentum is then not kept: the planet pulls at the whole.

Frames: N keeps its directions (without an orbit: inertial), C and V centres of mass of the active and the target vehicle (principal or not:
the inertia is a full tensor), A and T their docking ports. Assumptions: rigid vehicles; no drag; without an orbit no gravity.

When the guidance drives the platform along a profile the model only follows; at the closing of the loop it starts from the achieved
pose and twist; joined, both vehicles move as one body that carries their momentum.
"""

from libc.string cimport memset

import numpy as np

from rt_kernels.algebra cimport pose, quat, rot3, vec3
from rt_kernels.codes cimport MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED
from rt_kernels.dynamics.orbit cimport drift_reference, fill_orbit, kick_reference, rigid_moment, start_reference, tide
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked


# ------------------------------------------------------------------------------------------------------------ one body

cdef inline void angular_rate(const Vehicle *vehicle, const double *q, const double *L, double *w) noexcept nogil:
    """w = R I^-1 R^T L."""
    cdef double body[3]
    quat.rotate_back(q, L, body)
    rot3.apply(vehicle.inverse_inertia, body, body)
    quat.rotate(q, body, w)


cdef void integrate_body(const Vehicle *vehicle, Body *b, const double *f, const double *m, double h, double late) noexcept nogil:
    """One step under force f and moment m about the centre of mass, both in N axes. late: 0 symplectic, 1/2, 1 explicit."""
    cdef double half[4]
    cdef double v[3]
    cdef double L[3]
    cdef double w[3]
    accumulate(h * vehicle.inverse_mass, f, b.v, b.v_rest)
    accumulate(h, m, b.L, b.L_rest)
    # velocity and angular momentum with which the positions move
    vec3.add_scaled(b.v, -late * h * vehicle.inverse_mass, f, v)
    vec3.add_scaled(b.L, -late * h, m, L)
    accumulate(h, v, b.p, b.p_rest)
    # attitude with the rate at half the step
    angular_rate(vehicle, b.q, L, w)
    quat.copy(b.q, half)
    quat.turn(w, 0.5 * h, half)
    angular_rate(vehicle, half, L, w)
    quat.turn(w, h, b.q)
    angular_rate(vehicle, b.q, b.L, b.w)


cdef inline void set_rate(const Vehicle *vehicle, Body *b, const double *w) noexcept nogil:
    """Angular velocity w (N axes) and the angular momentum that belongs to it."""
    cdef double body[3]
    vec3.copy(w, b.w)
    quat.rotate_back(b.q, w, body)
    rot3.apply(vehicle.inertia, body, body)
    quat.rotate(b.q, body, b.L)


# ------------------------------------------------------------------------------------------------------------ two bodies

cdef void relative_state(const Params *p, const State *s, double *X_TA, double *V_TA) noexcept nogil:
    """Pose and twist of port A in port T: d/dt p_TA = R_TN (v_A - v_T - w_V x p_TA_N), w_TA = R_TN (w_C - w_V)."""
    cdef double X[7]
    cdef double X_NA[7]
    cdef double X_NT[7]
    cdef double r[3]
    cdef double v_A[3]
    cdef double v_T[3]
    cdef double w[3]
    body_pose(&s.active, X)
    pose.multiply(X, p.active.X_port, X_NA)
    body_pose(&s.target, X)
    pose.multiply(X, p.target.X_port, X_NT)
    pose.inverse(X_NT, X)
    pose.multiply(X, X_NA, X_TA)
    # velocities of the two port origins
    vec3.sub(X_NA, s.active.p, r)
    vec3.cross(s.active.w, r, v_A)
    vec3.add(v_A, s.active.v, v_A)
    vec3.sub(X_NT, s.target.p, r)
    vec3.cross(s.target.w, r, v_T)
    vec3.add(v_T, s.target.v, v_T)
    # relative to the turning frame T
    vec3.sub(X_NA, X_NT, r)
    vec3.cross(s.target.w, r, w)
    vec3.sub(v_A, v_T, v_A)
    vec3.sub(v_A, w, v_A)
    quat.rotate_back(X_NT + 3, v_A, V_TA)
    vec3.sub(s.active.w, s.target.w, w)
    quat.rotate_back(X_NT + 3, w, V_TA + 3)


cdef void start_from_relative(const Params *p, State *s, const double *X_TA, const double *V_TA) noexcept nogil:
    """Absolute states that have this relative pose and twist: the target vehicle at the origin of N, at rest but for the orbital rate
    (Yaskevich 2020, 4.5: the frame of the target craft)."""
    cdef double X_NT[7]
    cdef double X_NA[7]
    cdef double X_port_inverse[7]
    cdef double X[7]
    cdef double r[3]
    cdef double u[3]
    cdef double w[3]
    memset(s, 0, sizeof(State))
    start_reference(&p.orbit, &s.reference)
    quat.identity(s.target.q)
    set_rate(&p.target, &s.target, p.orbital_rate)
    body_pose(&s.target, X)
    pose.multiply(X, p.target.X_port, X_NT)
    pose.multiply(X_NT, X_TA, X_NA)
    pose.inverse(p.active.X_port, X_port_inverse)
    pose.multiply(X_NA, X_port_inverse, X)
    vec3.copy(X, s.active.p)
    quat.copy(X + 3, s.active.q)
    # w_C = w_V + R_NT w_TA
    quat.rotate(X_NT + 3, V_TA + 3, w)
    vec3.add(w, p.orbital_rate, w)
    set_rate(&p.active, &s.active, w)
    # v_A = w_V x p_A + R_NT d/dt p_TA (v_V = 0, V at the origin) ; v_C = v_A - w_C x r_CA
    vec3.cross(p.orbital_rate, X_NA, s.active.v)
    quat.rotate(X_NT + 3, V_TA, u)
    vec3.add(s.active.v, u, s.active.v)
    vec3.sub(X_NA, s.active.p, r)
    vec3.cross(w, r, u)
    vec3.sub(s.active.v, u, s.active.v)


cdef inline bint acts(const double *F) noexcept nogil:
    """Does a control wrench act at all? Most of the time none does on the target craft."""
    return F[0] != 0.0 or F[1] != 0.0 or F[2] != 0.0 or F[3] != 0.0 or F[4] != 0.0 or F[5] != 0.0


cdef void fall(const Params *p, const Vehicle *vehicle, const Reference *at, Body *b, double h) noexcept nogil:
    """What the planet adds to velocity and angular momentum of a free body in the time h; places stay."""
    cdef double a[3]
    cdef double u[3]
    cdef double m[3]
    cdef double rate2 = tide(&p.orbit, at, b.p, a, u)
    rigid_moment(rate2, u, b.q, vehicle.inertia, m)
    accumulate(h, a, b.v, b.v_rest)
    accumulate(h, m, b.L, b.L_rest)
    angular_rate(vehicle, b.q, b.L, b.w)


cdef inline void fall_free(const Params *p, State *s, double h) noexcept nogil:
    fall(p, &p.active, &s.reference, &s.active, h)
    fall(p, &p.target, &s.reference, &s.target, h)
    kick_reference(&p.orbit, h, &s.reference)


cdef void integrate_free(const Params *p, State *s, const double *F_T, const double *control_A, const double *control_T,
                         double h) noexcept nogil:
    """One step of both bodies. F_T: wrench on the target unit at and in T; the active unit bears the opposite at the same point.
    control_A, control_T: wrenches of their own actuators on the craft, at and in C and V."""
    cdef double X_NV[7]
    cdef double X_NT[7]
    cdef double f[3]
    cdef double m[3]
    cdef double r[3]
    cdef double t[3]
    cdef double f_active[3]
    cdef double m_active[3]
    cdef bint orbiting = p.orbit.parameter > 0.0
    if orbiting:
        fall_free(p, s, 0.5 * h)
    body_pose(&s.target, X_NV)
    pose.multiply(X_NV, p.target.X_port, X_NT)
    quat.rotate(X_NT + 3, F_T, f)
    quat.rotate(X_NT + 3, F_T + 3, m)
    # active vehicle: -f at the origin of T, -m, and its control wrench
    vec3.sub(X_NT, s.active.p, r)
    vec3.cross(r, f, t)
    vec3.add(t, m, t)
    quat.rotate(s.active.q, control_A, f_active)
    vec3.sub(f_active, f, f_active)
    quat.rotate(s.active.q, control_A + 3, m_active)
    vec3.sub(m_active, t, m_active)
    # target vehicle: +f at the same point
    vec3.sub(X_NT, s.target.p, r)
    vec3.cross(r, f, t)
    vec3.add(t, m, t)
    if acts(control_T):
        quat.rotate(s.target.q, control_T, r)
        vec3.add(f, r, f)
        quat.rotate(s.target.q, control_T + 3, r)
        vec3.add(t, r, t)
    integrate_body(&p.active, &s.active, f_active, m_active, h, p.late)
    integrate_body(&p.target, &s.target, f, t, h, p.late)
    if orbiting:
        drift_reference(h, &s.reference)
        fall_free(p, s, 0.5 * h)


# ---------------------------------------------------------------------------------------------------------- joined body

cdef void joined_inertia(const Params *p, const State *s, double *I_N) noexcept nogil:
    """Inertia of both vehicles about their common centre of mass, N axes: sum of R I R^T + m (r.r 1 - r r^T)."""
    cdef int i, j, k
    cdef double R[9]
    cdef double RI[9]
    cdef double RIR[9]
    cdef double r[3]
    cdef double rr
    cdef const Vehicle *vehicle
    cdef const Body *b
    memset(I_N, 0, 9 * sizeof(double))
    for k in range(2):
        vehicle = &p.active if k == 0 else &p.target
        b = &s.active if k == 0 else &s.target
        quat.to_matrix(b.q, R)
        rot3.multiply(R, vehicle.inertia, RI)
        rot3.multiply_transposed(RI, R, RIR)
        vec3.sub(b.p, s.join_p, r)
        rr = vec3.dot(r, r)
        for i in range(3):
            for j in range(3):
                I_N[3 * i + j] += RIR[3 * i + j] - vehicle.mass * r[i] * r[j] + (vehicle.mass * rr if i == j else 0.0)


cdef void join(const Params *p, State *s) noexcept nogil:
    """The two vehicles become one: linear momentum and angular momentum about the common centre of mass are carried over."""
    cdef double M = p.active.mass + p.target.mass
    cdef double r[3]
    cdef double mv[3]
    cdef double t[3]
    cdef double V[6]
    cdef int i, k
    cdef const Vehicle *vehicle
    cdef const Body *b
    relative_state(p, s, s.join_X_TA, V)
    for i in range(3):
        s.join_p[i] = (p.active.mass * s.active.p[i] + p.target.mass * s.target.p[i]) / M
        s.join_v[i] = (p.active.mass * s.active.v[i] + p.target.mass * s.target.v[i]) / M
        s.join_L[i] = s.active.L[i] + s.target.L[i]
    for k in range(2):
        vehicle = &p.active if k == 0 else &p.target
        b = &s.active if k == 0 else &s.target
        vec3.sub(b.p, s.join_p, r)
        vec3.scale(vehicle.mass, b.v, mv)
        vec3.cross(r, mv, t)
        vec3.add(s.join_L, t, s.join_L)
    s.joined = 1


cdef void fall_joined(const Params *p, State *s, double h) noexcept nogil:
    """What the planet adds to velocity and angular momentum of the joined body in the time h."""
    cdef double M = p.active.mass + p.target.mass
    cdef double a[3]
    cdef double u[3]
    cdef double m[3]
    cdef double r[3]
    cdef double t[3]
    cdef double rate2
    cdef int k
    cdef const Vehicle *vehicle
    cdef const Body *b
    for k in range(2):
        vehicle = &p.active if k == 0 else &p.target
        b = &s.active if k == 0 else &s.target
        rate2 = tide(&p.orbit, &s.reference, b.p, a, u)
        rigid_moment(rate2, u, b.q, vehicle.inertia, m)
        # force m_k a at the place of this vehicle, about the common centre of mass
        vec3.sub(b.p, s.join_p, r)
        vec3.cross(r, a, t)
        vec3.add_scaled(m, vehicle.mass, t, m)
        vec3.add_scaled(s.join_v, h * vehicle.mass / M, a, s.join_v)
        vec3.add_scaled(s.join_L, h, m, s.join_L)
    kick_reference(&p.orbit, h, &s.reference)


cdef void integrate_joined(const Params *p, State *s, const double *control_A, const double *control_T, double h) noexcept nogil:
    """One step of the joined body under both control wrenches; the vehicles keep their relative pose."""
    cdef double M = p.active.mass + p.target.mass
    cdef double I_N[9]
    cdef double f[3]
    cdef double m[3]
    cdef double r[3]
    cdef double t[3]
    cdef double w[3]
    cdef double dq[4]
    cdef double phi[3]
    cdef Body *b
    cdef int k
    cdef bint orbiting = p.orbit.parameter > 0.0
    if orbiting:
        fall_joined(p, s, 0.5 * h)
    quat.rotate(s.active.q, control_A, f)
    quat.rotate(s.active.q, control_A + 3, m)
    vec3.sub(s.active.p, s.join_p, r)
    vec3.cross(r, f, t)
    vec3.add(m, t, m)
    if acts(control_T):
        quat.rotate(s.target.q, control_T, w)
        vec3.add(f, w, f)
        vec3.sub(s.target.p, s.join_p, r)
        vec3.cross(r, w, t)
        vec3.add(m, t, m)
        quat.rotate(s.target.q, control_T + 3, t)
        vec3.add(m, t, m)
    vec3.add_scaled(s.join_v, h / M, f, s.join_v)
    vec3.add_scaled(s.join_L, h, m, s.join_L)
    joined_inertia(p, s, I_N)
    rot3.solve(I_N, s.join_L, w)
    vec3.scale(h, w, phi)
    quat.exponential(phi, dq)
    # both centres of mass turn about the common one, which moves on
    for k in range(2):
        b = &s.active if k == 0 else &s.target
        vec3.sub(b.p, s.join_p, r)
        quat.rotate(dq, r, r)
        vec3.add(s.join_p, r, b.p)
        vec3.add_scaled(b.p, h, s.join_v, b.p)
        quat.multiply(dq, b.q, b.q)
        quat.normalize(b.q)
    vec3.add_scaled(s.join_p, h, s.join_v, s.join_p)
    if orbiting:
        drift_reference(h, &s.reference)
        fall_joined(p, s, 0.5 * h)
    # rates of the new attitude: the angular momentum is the state, so it is kept whatever the step
    joined_inertia(p, s, I_N)
    rot3.solve(I_N, s.join_L, w)
    for k in range(2):
        b = &s.active if k == 0 else &s.target
        vec3.sub(b.p, s.join_p, r)
        vec3.cross(w, r, b.v)
        vec3.add(b.v, s.join_v, b.v)
        set_rate(&p.active if k == 0 else &p.target, b, w)


# ------------------------------------------------------------------------------------------------------------- invariants

cdef void momentum_and_energy(const Params *p, const State *s, double *momentum, double *energy) noexcept nogil:
    """Total linear momentum, angular momentum about the origin of N, and the kinetic energy in the frame of the common centre of mass."""
    cdef int i
    cdef double mv[3]
    cdef double h[3]
    cdef double dv[3]
    cdef double mu = p.active.mass * p.target.mass / (p.active.mass + p.target.mass)
    for i in range(3):
        momentum[i] = p.active.mass * s.active.v[i] + p.target.mass * s.target.v[i]
        momentum[3 + i] = s.active.L[i] + s.target.L[i]
    vec3.scale(p.active.mass, s.active.v, mv)
    vec3.cross(s.active.p, mv, h)
    vec3.add(momentum + 3, h, momentum + 3)
    vec3.scale(p.target.mass, s.target.v, mv)
    vec3.cross(s.target.p, mv, h)
    vec3.add(momentum + 3, h, momentum + 3)
    vec3.sub(s.active.v, s.target.v, dv)
    energy[0] = 0.5 * (mu * vec3.dot(dv, dv) + vec3.dot(s.active.w, s.active.L) + vec3.dot(s.target.w, s.target.L))


# -------------------------------------------------------------------------------------------------------------- the step

cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    advance(&(<Self *>self).params, &(<Self *>self).state, sample, sample.F_T_corrected)


cdef void advance(const Params *p, State *s, Sample *sample, const double *F_T) noexcept nogil:
    """One tick under the wrench F_T on the target unit, at and in T."""
    cdef int n = sample.periods
    cdef int i
    cdef double elapsed
    cdef double V_before[6]
    if n < 1:
        n = 1
    elapsed = n * p.period
    for i in range(6):
        V_before[i] = s.V_TA[i]
    if sample.motion == MOTION_FREE:
        # what the measured wrench does to the two vehicles, over the true elapsed time
        s.joined = 0
        for _ in range(n):
            integrate_free(p, s, F_T, sample.control_A, sample.control_T, p.period)
        relative_state(p, s, sample.X_TA, sample.V_TA)
    elif sample.motion == MOTION_JOINED:
        if not s.joined:
            join(p, s)
        for _ in range(n):
            integrate_joined(p, s, sample.control_A, sample.control_T, p.period)
        pose.copy(s.join_X_TA, sample.X_TA)
        for i in range(6):
            sample.V_TA[i] = 0.0
    elif sample.motion == MOTION_CLOSE_LOOP:
        # bumpless: from the achieved pose and twist, not from the commanded ones
        start_from_relative(p, s, sample.X_TA_measured, sample.V_TA_measured)
        take_motion(sample, sample.X_TA_measured, sample.V_TA_measured)
    elif sample.motion == MOTION_FOLLOW_PROFILE:
        start_from_relative(p, s, sample.profile_X_TA, sample.profile_V_TA)
        take_motion(sample, sample.profile_X_TA, sample.profile_V_TA)
    else:
        # frozen: the relative pose stays, the safety stage brings the legs to rest inside their limits
        for i in range(6):
            sample.V_TA[i] = 0.0
    # acceleration: the step that the velocity has just made
    if sample.motion == MOTION_FOLLOW_PROFILE:
        for i in range(6):
            sample.A_TA[i] = sample.profile_A_TA[i]
    elif sample.motion == MOTION_FREE:
        for i in range(6):
            sample.A_TA[i] = (sample.V_TA[i] - V_before[i]) / elapsed
    else:
        for i in range(6):
            sample.A_TA[i] = 0.0
    for i in range(6):
        s.V_TA[i] = sample.V_TA[i]
    report(p, s, sample)


cdef void report(const Params *p, const State *s, Sample *sample) noexcept nogil:
    """Absolute states, invariants, and the model's own verdict."""
    body_pose(&s.active, sample.X_NC)
    body_twist(&s.active, sample.V_NC)
    body_pose(&s.target, sample.X_NV)
    body_twist(&s.target, sample.V_NV)
    momentum_and_energy(p, s, sample.momentum, &sample.kinetic_energy)
    sample.dynamics_status = verdict(sample, sample.kinetic_energy, p.range_max, s.joined)


cdef void fill_vehicle(Vehicle *out, name, vehicle):
    cdef int i
    inertia = np.asarray(vehicle.inertia_kg_m2, float)
    mass = float(vehicle.mass_kg)
    if inertia.shape != (3, 3) or not np.allclose(inertia, inertia.T, rtol=1e-9, atol=0.0) or not np.all(np.linalg.eigvalsh(inertia) > 0):
        raise ValueError(f"{name}.inertia_kg_m2 must be a symmetric positive definite 3x3 matrix, kg.m2")
    if not 0.0 < mass < 1e9:
        raise ValueError(f"{name}.mass_kg must be above 0 and below 1e9 kg, got {mass}")
    out.mass = mass
    out.inverse_mass = 1.0 / mass
    inverse = np.linalg.inv(inertia)
    for i in range(9):
        out.inertia[i] = inertia.flat[i]
        out.inverse_inertia[i] = inverse.flat[i]
    for i in range(7):
        out.X_port[i] = vehicle.X_port[i]


# integrator -> late, ticks
LATE_TICKS = {"symplectic": 0.0, "constant_acceleration": 0.5, "explicit": 1.0}


cdef class TwoBodies(StagePart):
    """Dynamics of two free rigid spacecraft. Raises ValueError for an impossible mass, inertia or orbit."""

    PARAMETERS = (
        Parameter("range_max_m", "float", "m", "ports further apart than this are out of the model's range", 5.0, low=0.01, high=1000.0),
        Parameter("integrator", "str", "-", "how positions follow velocities; all but symplectic are late in contact, for comparison",
                  "symplectic", choices=tuple(LATE_TICKS)),
    )
    CONTEXT = ("period_s", "vehicles", "start", "orbit")
    FLIES = ("thrusters",)  # what of a craft beyond one rigid body it flies
    FREE_VEHICLES = True

    def __init__(self, *, period_s, vehicles, start, orbit=None, **given):
        cdef int i
        keys = checked(TwoBodies.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        fill_vehicle(&self.c.params.active, "active vehicle", vehicles.active)
        fill_vehicle(&self.c.params.target, "target vehicle", vehicles.target)
        self.c.params.period = period_s
        self.c.params.range_max = keys["range_max_m"]
        self.c.params.late = LATE_TICKS[keys["integrator"]]
        for i in range(3):
            self.c.params.orbital_rate[i] = start.orbital_rate_rad_s[i]
        fill_orbit(&self.c.params.orbit, orbit)
        cdef double X[7]
        cdef double V[6]
        pose.identity(X)
        memset(V, 0, sizeof(V))
        start_from_relative(&self.c.params, &self.c.state, X, V)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def keep_rates(self, bytes snapshot):
        """The state of a part with other masses: poses and rates stay, angular momenta become those of these vehicles (not of joined ones,
        whose momentum is that of both). Raises ValueError."""
        cdef State *s = &self.c.state
        cdef double w[3]
        self.restore(snapshot)
        if self.plug.state == s and not s.joined:
            vec3.copy(s.active.w, w)
            set_rate(&self.c.params.active, &s.active, w)
            vec3.fill(0.0, 0.0, 0.0, s.active.L_rest)
            vec3.copy(s.target.w, w)
            set_rate(&self.c.params.target, &s.target, w)
            vec3.fill(0.0, 0.0, 0.0, s.target.L_rest)

    def state_bounds(self):
        return {"joined": FLAG}

    def fields(self):
        return self.c

    @property
    def integrator_late_ticks(self):
        """For the delay ledger: ticks by which the positions move later than with symplectic Euler."""
        return self.c.params.late
