"""Probe and cone reduced to what a stand test needs: a sprung head in a cavity of revolution, and a capture latch.

The head is a sphere of mass m_h, held to the active unit by an axial and a lateral spring-damper:

    d = R_AT (p_TH - p_TN)                 deflection of the head from its nominal place N, A axes
    f_A = -(k_x d_x + c_x d_x', k_y d_y + c_y d_y', k_y d_z + c_y d_z')       on the head
    m_h p_TH'' = R_TA f_A - f_contact - f_latch

Contact with the cavity (cone, socket cylinder, bottom) by penalty, friction regularised at small sliding speed (Yaskevich 2020, 4.4).
The latch closes behind a head that is deep enough in the socket: from then on a one-sided spring-damper keeps it from leaving, until the
release command. It closes without a force and never pushes, so it adds no energy. The axial spring is preloaded by nothing: this is a
synthetic unit, not a model of a flight one (see probe_cone).

Semi-implicit steps of at most 100 us; T axes: X into the cone.
"""

from libc.math cimport sqrt
from libc.string cimport memset

import numpy as np

from rt_kernels.algebra.values cimport (
    Pose, Twist, Vec3, Wrench, add, apply, cross, dot, mul, neg, pose, put, put_wrench, rotate, rotate_back, sub, twist, vec, wrench_of,
    wrench_sum, xyz,
)
from rt_kernels.contact.primitives cimport Contact, Profile, prepare_profile, sphere_in_cavity
from rt_kernels.codes cimport (MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DK2, MECHANISM_SIGNAL_DSG,
                               MECHANISM_SIGNAL_RELEASED, MECHANISM_STATUS_OUT_OF_RANGE)
from rt_kernels.mechanisms.probe_cone.simple_parameters cimport ProbeConeSimpleParameters, fill_probe_cone_simple
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.mechanisms.probe_cone.simple_picture import ProbeConeSimplePicture
from rt_kernels.parameters import Parameter, checked

cdef struct Params:
    ProbeConeSimpleParameters keys
    Profile cavity

cdef struct State:
    double p[3]             # head in T
    double v[3]
    int latched
    int started

cdef struct Self:
    Params params
    State state


cdef Wrench contact_force(const Params *p, const State *s, double *deepest, double *bottom) noexcept nogil:
    """Sum of the contact forces of the head on the target, at and in T; how deep the deepest contact is, and that with the bottom."""
    cdef Contact contacts[8]
    cdef Wrench F_T = wrench_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0))
    cdef Vec3 v = vec(s.v), n, slip, f
    cdef double normal, rate, speed
    cdef int i, count = sphere_in_cavity(&p.cavity, s.p, p.keys.head_radius, contacts, 8)
    deepest[0] = bottom[0] = 0.0
    for i in range(count):
        n = vec(contacts[i].n)
        # Kelvin-Voigt, never pulling
        rate = dot(n, v)
        normal = p.keys.contact_stiffness * contacts[i].depth + p.keys.contact_damping * rate
        if normal < 0.0:
            normal = 0.0
        # friction along the sliding velocity, smooth at zero
        slip = sub(v, mul(rate, n))
        speed = sqrt(dot(slip, slip) + p.keys.slip_speed * p.keys.slip_speed)
        f = add(mul(normal, n), mul(p.keys.friction * normal / speed, slip))
        F_T = wrench_sum(F_T, wrench_of(f, cross(vec(contacts[i].r), f)))
        if contacts[i].depth > deepest[0]:
            deepest[0] = contacts[i].depth
        # the last face of the profile is the bottom of the socket
        if contacts[i].index == p.cavity.count - 2:
            bottom[0] = contacts[i].depth
    return F_T


cdef inline Vec3 base_velocity(Vec3 p_TQ, Pose X_TA, Twist V_TA) noexcept nogil:
    # of the point of the active unit that is at p_TQ
    return add(cross(V_TA.w, sub(p_TQ, X_TA.p)), V_TA.v)


cdef Vec3 spring_force(const Params *p, Pose X_TA, Twist V_TA, const State *s, Vec3 *d) noexcept nogil:
    """Force of the probe on the head, T axes; d: deflection in A axes."""
    cdef Vec3 p_TH = vec(s.p)
    cdef Vec3 p_TN = apply(X_TA, vec(p.keys.probe))
    # rate of the deflection in the turning axes A: v_head - v_A - w x (p_head - p_A)
    cdef Vec3 rate = rotate_back(X_TA.q, sub(vec(s.v), base_velocity(p_TH, X_TA, V_TA)))
    d[0] = rotate_back(X_TA.q, sub(p_TH, p_TN))
    return rotate(X_TA.q, xyz(-p.keys.axial_stiffness * d.x - p.keys.axial_damping * rate.x,
                              -p.keys.lateral_stiffness * d.y - p.keys.lateral_damping * rate.y,
                              -p.keys.lateral_stiffness * d.z - p.keys.lateral_damping * rate.z))


cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef const Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V_TA = twist(inp.V_TA)
    cdef Wrench F_T
    cdef Vec3 d, f_spring, f_latch, f_A
    cdef double deepest = 0.0, bottom = 0.0, worst = 0.0
    cdef double h, pull
    cdef int n = 1
    memset(out, 0, sizeof(MechanismOutput))
    if not s.started:
        # the head starts at its nominal place, moving with the active unit
        put(apply(X_TA, vec(p.keys.probe)), s.p)
        put(base_velocity(vec(s.p), X_TA, V_TA), s.v)
        s.started = 1
    if inp.dt > 1e-4:
        n = <int>(inp.dt / 1e-4 + 0.999999)
    h = inp.dt / n
    for _ in range(n):
        f_spring = spring_force(p, X_TA, V_TA, s, &d)
        F_T = contact_force(p, s, &deepest, &bottom)
        if deepest > worst:
            worst = deepest
        # the latch closes around a head that is deep enough in the socket, and opens on command
        if inp.commands & MECHANISM_COMMAND_RELEASE:
            s.latched = 0
        elif not s.latched and s.p[0] >= p.keys.capture_x:
            s.latched = 1
        if s.latched and s.p[0] < p.keys.capture_x:
            # pulls at the target through the head, never pushes
            pull = p.keys.latch_stiffness * (s.p[0] - p.keys.capture_x) + p.keys.latch_damping * s.v[0]
            if pull < 0.0:
                f_latch = xyz(pull, 0.0, 0.0)
                F_T = wrench_sum(F_T, wrench_of(f_latch, cross(vec(s.p), f_latch)))
        # head: what the probe does to it, less what it does to the target
        put(add(vec(s.v), mul(h / p.keys.head_mass, sub(f_spring, F_T.f))), s.v)
        put(add(vec(s.p), mul(h, vec(s.v))), s.p)
    put_wrench(F_T, out.F_T)
    # the active unit bears the opposite of the spring force, at the head's nominal place moved by the deflection
    f_A = rotate_back(X_TA.q, neg(f_spring))
    put_wrench(wrench_of(f_A, cross(add(vec(p.keys.probe), d), f_A)), out.F_A)
    if deepest > 0.0:
        out.signals |= MECHANISM_SIGNAL_DK1
    if s.latched:
        out.signals |= MECHANISM_SIGNAL_DSG
    if bottom > 0.0:
        out.signals |= MECHANISM_SIGNAL_DK2
    if inp.commands & MECHANISM_COMMAND_RELEASE:
        out.signals |= MECHANISM_SIGNAL_RELEASED
    if worst > p.keys.penetration_max:
        out.status |= MECHANISM_STATUS_OUT_OF_RANGE
    put(xyz(-d.x, d.y, d.z), out.analog)


cdef class ProbeConeSimple(MechanismPart):
    """Sprung head, cone and latch. Analogue signals: 0 axial stroke (compression), 1 and 2 lateral deflections, m."""

    PICTURE = ProbeConeSimplePicture
    PARAMETERS = (
        Parameter("head_radius_m", "float", "m", "radius of the probe's head", 0.04, low=1e-3, high=1.0),
        Parameter("head_mass_kg", "float", "kg", "mass of the head", 4.0, low=0.1, high=1e3),
        Parameter("probe_m", "floats", "m", "nominal place of the head's centre, A axes", (0.6, 0.0, 0.0), shape=3),
        Parameter("axial_stiffness_n_per_m", "float", "N/m", "axial spring", 8e3, low=1.0, high=1e8),
        Parameter("axial_damping_n_s_per_m", "float", "N.s/m", "axial damper", 4e3, low=0.0, high=1e7),
        Parameter("lateral_stiffness_n_per_m", "float", "N/m", "lateral spring", 2e4, low=1.0, high=1e8),
        Parameter("lateral_damping_n_s_per_m", "float", "N.s/m", "lateral damper", 1.5e3, low=0.0, high=1e7),
        Parameter("contact_stiffness_n_per_m", "float", "N/m", "head on cavity", 1e6, low=1e3, high=1e9),
        Parameter("contact_damping_n_s_per_m", "float", "N.s/m", "head on cavity", 500.0, low=0.0, high=1e6),
        Parameter("penetration_max_m", "float", "m", "valid penetration: beyond it the model is out of its range", 0.01, low=1e-6,
                  high=1.0),
        Parameter("friction", "float", "-", "friction coefficient", 0.1, low=0.0, high=1.0),
        Parameter("slip_speed_m_s", "float", "m/s", "friction is smooth below this sliding speed", 1e-3, low=1e-6, high=0.1),
        Parameter("cavity_m", "rows", "m", "profile of the cavity: rows (x, radius) from the mouth to the bottom, X into the cone",
                  ((-0.3, 0.4), (0.0, 0.055), (0.08, 0.055), (0.08, 0.0)), shape=(None, 2)),
        Parameter("capture_x_m", "float", "m", "the latch closes when the head's centre is deeper than this", 0.02),
        Parameter("latch_stiffness_n_per_m", "float", "N/m", "latch", 2e5, low=1.0, high=1e8),
        Parameter("latch_damping_n_s_per_m", "float", "N.s/m", "latch", 1e3, low=0.0, high=1e6),
    )
    cdef Self c

    def __init__(self, **given):
        cdef Params *p = &self.c.params
        cdef int i
        keys = checked(ProbeConeSimple.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        rows = keys["cavity_m"]
        if not 2 <= len(rows) <= 16:
            raise ValueError(f"mechanism.cavity_m needs 2...16 rows (x, radius), got {len(rows)} rows")
        if any(rows[i] == rows[i + 1] for i in range(len(rows) - 1)):
            raise ValueError("mechanism.cavity_m: two neighbouring rows are the same point")
        p.cavity.count = len(rows)
        for i in range(p.cavity.count):
            p.cavity.x[i], p.cavity.rho[i] = rows[i]
        prepare_profile(&p.cavity)
        fill_probe_cone_simple(&p.keys, keys)
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        return {"latched": FLAG, "started": FLAG}

    def max_penetration(self, X_TA):
        """Depth of the undeflected head in the cavity's surface at the relative pose X_TA (7), m; 0 without contact."""
        cdef double[::1] X = np.ascontiguousarray(X_TA, float)
        cdef Vec3 centre = apply(pose(&X[0]), vec(self.c.params.keys.probe))
        cdef Contact contacts[8]
        cdef double deepest = 0.0
        cdef int i, n
        n = sphere_in_cavity(&self.c.params.cavity, &centre.x, self.c.params.keys.head_radius, contacts, 8)
        for i in range(n):
            if contacts[i].depth > deepest:
                deepest = contacts[i].depth
        return deepest
