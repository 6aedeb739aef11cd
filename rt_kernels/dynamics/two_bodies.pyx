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

from rt_kernels.algebra.values cimport (Mat3, Pose, Quat, Twist, Vec3, Wrench, add, compose, cross, dot, exponential, inverse, mat,
                                        mat_multiply, mat_solve, mat_sum, mat_vec, mul, normalized, pose, pose_of, put, put_pose,
                                        put_twist, quat_multiply, rotate, rotate_back, sub, to_matrix, transposed, turned, twist, twist_of,
                                        wrench, xyz, xyzw)
from rt_kernels.codes cimport MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED
from rt_kernels.dynamics.orbit cimport Tide, drift_reference, fill_orbit, kick_reference, rigid_moment, start_reference, tide
from rt_kernels.dynamics.two_bodies_parameters cimport fill_two_bodies
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG
from rt_kernels.parameters import Parameter, checked


# ------------------------------------------------------------------------------------------------------------ one body

cdef inline Vec3 angular_rate(const Vehicle *vehicle, Quat q, Vec3 L) noexcept nogil:
    """w = R I^-1 R^T L."""
    return rotate(q, mat_vec(mat(vehicle.inverse_inertia), rotate_back(q, L)))


cdef void integrate_body(const Vehicle *vehicle, Body *b, const Vec3 *f, const Vec3 *m, double h, double late) noexcept nogil:
    """One step under force f and moment m about the centre of mass, both in N axes. late: 0 symplectic, 1/2, 1 explicit.

    f and m by pointer: structs by value would go through memory, as the function is not inlined.
    """
    accumulate(h * vehicle.inverse_mass, f[0], &b.v, &b.v_rest)
    accumulate(h, m[0], &b.L, &b.L_rest)
    # velocity and angular momentum with which the positions move
    cdef Vec3 v = add(b.v, mul(-late * h * vehicle.inverse_mass, f[0]))
    cdef Vec3 L = add(b.L, mul(-late * h, m[0]))
    accumulate(h, v, &b.p, &b.p_rest)
    # attitude with the rate at half the step
    cdef Quat q_half = turned(b.q, angular_rate(vehicle, b.q, L), 0.5 * h)
    b.q = turned(b.q, angular_rate(vehicle, q_half, L), h)
    b.w = angular_rate(vehicle, b.q, b.L)


cdef inline void set_rate(const Vehicle *vehicle, Body *b, Vec3 w) noexcept nogil:
    """Angular velocity w (N axes) and the angular momentum that belongs to it, L = R I R^T w."""
    b.w = w
    b.L = rotate(b.q, mat_vec(mat(vehicle.inertia), rotate_back(b.q, w)))


# ------------------------------------------------------------------------------------------------------------ two bodies

cdef void relative_state(const Params *p, const State *s, double *X_TA, double *V_TA) noexcept nogil:
    """Pose and twist of port A in port T, from v_A = w_C x r_CA + v_C, w_A = w_C and likewise T of the target vehicle."""
    cdef const Body *c = &s.active
    cdef const Body *v = &s.target
    cdef Pose X_NA = compose(body_pose(c), p.active.X_port)
    cdef Pose X_NT = compose(body_pose(v), p.target.X_port)
    cdef Vec3 v_A = add(cross(c.w, sub(X_NA.p, c.p)), c.v)
    cdef Vec3 v_T = add(cross(v.w, sub(X_NT.p, v.p)), v.v)
    put_pose(compose(inverse(X_NT), X_NA), X_TA)
    put_twist(relative_twist(X_NT, twist_of(v_T, v.w), X_NA, twist_of(v_A, c.w)), V_TA)


cdef void start_from_relative(const Params *p, State *s, const double *X_TA, const double *V_TA) noexcept nogil:
    """Absolute states that have this relative pose and twist: the target vehicle at the origin of N, at rest but for the orbital rate
    (Yaskevich 2020, 4.5: the frame of the target craft)."""
    cdef Body *c = &s.active
    cdef Twist V = twist(V_TA)
    memset(s, 0, sizeof(State))
    s.reference = start_reference(&p.orbit)
    s.target.q = xyzw(0.0, 0.0, 0.0, 1.0)
    set_rate(&p.target, &s.target, p.orbital_rate)
    cdef Pose X_NT = compose(body_pose(&s.target), p.target.X_port)
    cdef Pose X_NA = compose(X_NT, pose(X_TA))
    cdef Pose X_NC = compose(X_NA, inverse(p.active.X_port))
    c.p = X_NC.p
    c.q = X_NC.q
    # w_C = w_V + R_NT w_TA
    set_rate(&p.active, c, add(rotate(X_NT.q, V.w), p.orbital_rate))
    # v_A = w_V x p_A + R_NT d/dt p_TA (v_V = 0, V at the origin) ; v_C = v_A - w_C x r_CA
    cdef Vec3 v_A = add(cross(p.orbital_rate, X_NA.p), rotate(X_NT.q, V.v))
    c.v = sub(v_A, cross(c.w, sub(X_NA.p, c.p)))


cdef inline bint acts(Wrench F) noexcept nogil:
    """Whether a control wrench acts at all: most of the time none does on the target craft."""
    return F.f.x != 0.0 or F.f.y != 0.0 or F.f.z != 0.0 or F.m.x != 0.0 or F.m.y != 0.0 or F.m.z != 0.0


cdef void fall(const Params *p, const Vehicle *vehicle, const Reference *at, Body *b, double h) noexcept nogil:
    """What the planet adds to velocity and angular momentum of a free body in the time h; places stay."""
    cdef Tide felt = tide(&p.orbit, at, b.p)
    accumulate(h, felt.a, &b.v, &b.v_rest)
    accumulate(h, rigid_moment(felt.rate2, felt.u, b.q, mat(vehicle.inertia)), &b.L, &b.L_rest)
    b.w = angular_rate(vehicle, b.q, b.L)


cdef inline void fall_free(const Params *p, State *s, double h) noexcept nogil:
    fall(p, &p.active, &s.reference, &s.active, h)
    fall(p, &p.target, &s.reference, &s.target, h)
    kick_reference(&p.orbit, h, &s.reference)


cdef void integrate_free(const Params *p, State *s, Wrench F_T, Wrench control_A, Wrench control_T, double h) noexcept nogil:
    """One step of both bodies. F_T: wrench on the target unit at and in T; the active unit bears the opposite at the same point.
    control_A, control_T: wrenches of their own actuators on the craft, at and in C and V."""
    cdef const Body *c = &s.active
    cdef const Body *v = &s.target
    cdef bint orbiting = p.orbit.parameter > 0.0
    if orbiting:
        fall_free(p, s, 0.5 * h)
    cdef Pose X_NT = compose(body_pose(v), p.target.X_port)
    cdef Vec3 f = rotate(X_NT.q, F_T.f)
    cdef Vec3 m = rotate(X_NT.q, F_T.m)
    # active vehicle: -f at the origin of T, -m, and its control wrench
    cdef Vec3 f_C = sub(rotate(c.q, control_A.f), f)
    cdef Vec3 m_C = sub(rotate(c.q, control_A.m), add(cross(sub(X_NT.p, c.p), f), m))
    # target vehicle: +f at the same point
    cdef Vec3 f_V = f
    cdef Vec3 m_V = add(cross(sub(X_NT.p, v.p), f), m)
    if acts(control_T):
        f_V = add(f_V, rotate(v.q, control_T.f))
        m_V = add(m_V, rotate(v.q, control_T.m))
    integrate_body(&p.active, &s.active, &f_C, &m_C, h, p.late)
    integrate_body(&p.target, &s.target, &f_V, &m_V, h, p.late)
    if orbiting:
        drift_reference(h, &s.reference)
        fall_free(p, s, 0.5 * h)


# ---------------------------------------------------------------------------------------------------------- joined body

cdef inline Mat3 inertia_about(const Vehicle *vehicle, Quat q, Vec3 r) noexcept nogil:
    """Inertia of a vehicle about a point r away from its centre of mass, N axes: R I R^T + m (r.r 1 - r r^T)."""
    cdef Mat3 R = to_matrix(q)
    cdef Mat3 J = mat_multiply(mat_multiply(R, mat(vehicle.inertia)), transposed(R))
    cdef double m = vehicle.mass
    cdef double m_rr = m * dot(r, r)
    J.xx = J.xx - m * r.x * r.x + m_rr; J.xy = J.xy - m * r.x * r.y; J.xz = J.xz - m * r.x * r.z
    J.yx = J.yx - m * r.y * r.x; J.yy = J.yy - m * r.y * r.y + m_rr; J.yz = J.yz - m * r.y * r.z
    J.zx = J.zx - m * r.z * r.x; J.zy = J.zy - m * r.z * r.y; J.zz = J.zz - m * r.z * r.z + m_rr
    return J


cdef Vec3 joined_rate(const Params *p, const State *s) noexcept nogil:
    """w = I^-1 L, I: inertia of both vehicles about their common centre of mass, N axes."""
    cdef Mat3 I_N
    memset(&I_N, 0, sizeof(I_N))
    I_N = mat_sum(I_N, inertia_about(&p.active, s.active.q, sub(s.active.p, s.join_p)))
    I_N = mat_sum(I_N, inertia_about(&p.target, s.target.q, sub(s.target.p, s.join_p)))
    return mat_solve(I_N, s.join_L)


cdef inline Vec3 mean_by_mass(const Params *p, Vec3 of_active, Vec3 of_target) noexcept nogil:
    """(m_C a + m_V b) / (m_C + m_V)."""
    cdef double M = p.active.mass + p.target.mass
    cdef Vec3 total = add(mul(p.active.mass, of_active), mul(p.target.mass, of_target))
    return xyz(total.x / M, total.y / M, total.z / M)


cdef void join(const Params *p, State *s) noexcept nogil:
    """The two vehicles become one: linear momentum and angular momentum about the common centre of mass are carried over."""
    cdef const Body *c = &s.active
    cdef const Body *v = &s.target
    cdef double V_TA[6]
    relative_state(p, s, <double *>&s.join_X_TA, V_TA)
    s.join_p = mean_by_mass(p, c.p, v.p)
    s.join_v = mean_by_mass(p, c.v, v.v)
    s.join_L = add(add(c.L, v.L), cross(sub(c.p, s.join_p), mul(p.active.mass, c.v)))
    s.join_L = add(s.join_L, cross(sub(v.p, s.join_p), mul(p.target.mass, v.v)))
    s.joined = 1


cdef void fall_joined(const Params *p, State *s, double h) noexcept nogil:
    """What the planet adds to velocity and angular momentum of the joined body in the time h."""
    cdef double M = p.active.mass + p.target.mass
    cdef Tide felt
    cdef Vec3 m
    cdef int k
    cdef const Vehicle *vehicle
    cdef const Body *b
    for k in range(2):
        vehicle = &p.active if k == 0 else &p.target
        b = &s.active if k == 0 else &s.target
        felt = tide(&p.orbit, &s.reference, b.p)
        # force m_k a at the place of this vehicle, about the common centre of mass
        m = rigid_moment(felt.rate2, felt.u, b.q, mat(vehicle.inertia))
        m = add(m, mul(vehicle.mass, cross(sub(b.p, s.join_p), felt.a)))
        s.join_v = add(s.join_v, mul(h * vehicle.mass / M, felt.a))
        s.join_L = add(s.join_L, mul(h, m))
    kick_reference(&p.orbit, h, &s.reference)


cdef void integrate_joined(const Params *p, State *s, Wrench control_A, Wrench control_T, double h) noexcept nogil:
    """One step of the joined body under both control wrenches; the vehicles keep their relative pose."""
    cdef double M = p.active.mass + p.target.mass
    cdef Vec3 f, m, f_V, w
    cdef Quat dq
    cdef Body *b
    cdef int k
    cdef bint orbiting = p.orbit.parameter > 0.0
    if orbiting:
        fall_joined(p, s, 0.5 * h)
    f = rotate(s.active.q, control_A.f)
    m = add(rotate(s.active.q, control_A.m), cross(sub(s.active.p, s.join_p), f))
    if acts(control_T):
        f_V = rotate(s.target.q, control_T.f)
        f = add(f, f_V)
        m = add(add(m, cross(sub(s.target.p, s.join_p), f_V)), rotate(s.target.q, control_T.m))
    s.join_v = add(s.join_v, mul(h / M, f))
    s.join_L = add(s.join_L, mul(h, m))
    # both centres of mass turn about the common one, which moves by h v
    dq = exponential(mul(h, joined_rate(p, s)))
    for k in range(2):
        b = &s.active if k == 0 else &s.target
        b.p = add(add(s.join_p, rotate(dq, sub(b.p, s.join_p))), mul(h, s.join_v))
        b.q = normalized(quat_multiply(dq, b.q))
    s.join_p = add(s.join_p, mul(h, s.join_v))
    if orbiting:
        drift_reference(h, &s.reference)
        fall_joined(p, s, 0.5 * h)
    # rates of the new attitude: the angular momentum is the state, so it is kept whatever the step
    w = joined_rate(p, s)
    for k in range(2):
        b = &s.active if k == 0 else &s.target
        b.v = add(cross(w, sub(b.p, s.join_p)), s.join_v)
        set_rate(&p.active if k == 0 else &p.target, b, w)


# ------------------------------------------------------------------------------------------------------------- invariants

cdef void momentum_and_energy(const Params *p, const State *s, double *momentum, double *energy) noexcept nogil:
    """Total linear momentum, angular momentum about the origin of N, and the kinetic energy in the frame of the common centre of mass."""
    cdef const Body *c = &s.active
    cdef const Body *v = &s.target
    cdef double mu = p.active.mass * p.target.mass / (p.active.mass + p.target.mass)
    cdef Vec3 P_C = mul(p.active.mass, c.v)
    cdef Vec3 P_V = mul(p.target.mass, v.v)
    cdef Vec3 dv = sub(c.v, v.v)
    put(add(P_C, P_V), momentum)
    put(add(add(add(c.L, v.L), cross(c.p, P_C)), cross(v.p, P_V)), momentum + 3)
    energy[0] = 0.5 * (mu * dot(dv, dv) + dot(c.w, c.L) + dot(v.w, v.L))


# -------------------------------------------------------------------------------------------------------------- the step

cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    advance(&(<Self *>self).params, &(<Self *>self).state, sample, sample.F_T_corrected)


cdef void advance(const Params *p, State *s, Sample *sample, const double *F_T) noexcept nogil:
    """One tick under the wrench F_T on the target unit, at and in T."""
    cdef int n = sample.periods
    cdef int i
    cdef double elapsed
    if n < 1:
        n = 1
    elapsed = n * p.period
    if sample.motion == MOTION_FREE:
        # what the measured wrench does to the two vehicles, over the true elapsed time
        s.joined = 0
        for _ in range(n):
            integrate_free(p, s, wrench(F_T), wrench(sample.control_A), wrench(sample.control_T), p.period)
        relative_state(p, s, sample.X_TA, sample.V_TA)
    elif sample.motion == MOTION_JOINED:
        if not s.joined:
            join(p, s)
        for _ in range(n):
            integrate_joined(p, s, wrench(sample.control_A), wrench(sample.control_T), p.period)
        put_pose(s.join_X_TA, sample.X_TA)
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
            sample.A_TA[i] = (sample.V_TA[i] - s.V_TA[i]) / elapsed
    else:
        for i in range(6):
            sample.A_TA[i] = 0.0
    for i in range(6):
        s.V_TA[i] = sample.V_TA[i]
    report(p, s, sample)


cdef void report(const Params *p, const State *s, Sample *sample) noexcept nogil:
    """Absolute states, invariants, and the verdict on the state."""
    put_pose(body_pose(&s.active), sample.X_NC)
    put_twist(body_twist(&s.active), sample.V_NC)
    put_pose(body_pose(&s.target), sample.X_NV)
    put_twist(body_twist(&s.target), sample.V_NV)
    momentum_and_energy(p, s, sample.momentum, &sample.kinetic_energy)
    sample.dynamics_status = verdict(sample, sample.kinetic_energy, p.keys.range_max, s.joined)


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
    inverse_inertia = np.linalg.inv(inertia)
    for i in range(9):
        out.inertia[i] = inertia.flat[i]
        out.inverse_inertia[i] = inverse_inertia.flat[i]
    X = vehicle.X_port
    out.X_port = pose_of(xyz(X[0], X[1], X[2]), xyzw(X[3], X[4], X[5], X[6]))


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
        keys = checked(TwoBodies.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        fill_vehicle(&self.c.params.active, "active vehicle", vehicles.active)
        fill_vehicle(&self.c.params.target, "target vehicle", vehicles.target)
        self.c.params.period = period_s
        fill_two_bodies(&self.c.params.keys, keys)
        self.c.params.late = LATE_TICKS[keys["integrator"]]
        rate = start.orbital_rate_rad_s
        self.c.params.orbital_rate = xyz(rate[0], rate[1], rate[2])
        fill_orbit(&self.c.params.orbit, orbit)
        cdef double X[7]
        cdef double V[6]
        X[:] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        V[:] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
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
        self.restore(snapshot)
        if self.plug.state == s and not s.joined:
            set_rate(&self.c.params.active, &s.active, s.active.w)
            set_rate(&self.c.params.target, &s.target, s.target.w)
            s.active.L_rest = xyz(0.0, 0.0, 0.0)
            s.target.L_rest = xyz(0.0, 0.0, 0.0)

    def state_bounds(self):
        return {"joined": FLAG}

    def fields(self):
        return self.c

    @property
    def integrator_late_ticks(self):
        """For the delay ledger: ticks by which the positions move later than with symplectic Euler."""
        return self.c.params.late
