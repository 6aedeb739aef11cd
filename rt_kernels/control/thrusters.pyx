# distutils: extra_compile_args = -O2
"""The crafts' own thrusters and reaction wheels: press thrust of the docking sequence, attitude hold of both craft.

The guidance asks (`control_request`), this stage answers for as long as both bodies are free; before and after that all actuators rest.

Attitude hold. From the tick in which it is asked for, a craft holds the attitude that it has then; with an orbital rate that attitude turns
with the orbital frame. On the craft's axes, phi rotation vector from there, w rate relative to it:

    thrusters   phase plane of each axis with s = phi + T w, dead band d, rate limit r:
                    full moment -   s > d and w > -r, or w > r
                    full moment +   s < -d and w < r, or w < -r
                    else none
                w is the rate that the craft will have when all that has been commanded has come (I^-1 sum of moment x seconds under way):
                one pulse at the edge of the dead band is then the shortest one, whatever the delay
    wheels      moment -I (W^2 phi + 2 z W w), W = 2 pi frequency, z damping; the motors give it in the least squares of their torques

Free of disturbance the limit cycle has two shortest pulses: each changes the rate by D = J/I (J angular impulse of a shortest pulse); with
the rates u and D - u between them and t from the command to the middle of the pulse there are 2 d - (T - t) D of angle to cross, so it
takes an impulse of 2 J every (2 d - (T - t) D) (1/u + 1/(D - u)). Under a constant moment M the thrusters give M t, on one edge, while
D^2 I / (8 M) stays below the width of the dead band.

Press thrust: an ideal engine along X of the port as in `press_thrust`, or thrusters: as a share of the time when they are stronger than
thrust_n. The attitude comes first; the press thrust takes what is left of its thrusters, all alike, so that it makes no moment.

Allocation: tables made at set-up, `rt_kernels.control.allocation`; valves: valves.pxd. The wrenches control_A and control_T are the sum
over engine, thrusters and reactions of the wheels' motors, at and in the centres of mass, places and axes taken with joints at rest and
nothing bent: what a rigid craft feels. Mass, centre of mass and inertia do not change by what is burnt.
"""

from libc.math cimport fabs
from libc.stdint cimport uint32_t
from libc.string cimport memset

import math

import numpy as np

from rt_kernels.algebra.values cimport (Mat3, Pose, Quat, Twist, Vec3, add, conjugate, dot, logarithm, mat, mat_vec, mul, pose, put,
                                        quat_multiply, rotate_back, sub, turned, twist, vec, xyz)
from rt_kernels.codes cimport (CONTROL_REQUEST_ATTITUDE, CONTROL_REQUEST_PRESS, CONTROL_REQUEST_RETREAT, CONTROL_STATUS_ATTITUDE,
                               CONTROL_STATUS_FIRING, CONTROL_STATUS_THRUST_LIMITED, CONTROL_STATUS_WHEEL_LIMITED, MOTION_FREE,
                               MOTION_JOINED)
from rt_kernels.control.outputs cimport no_control, thrust_along
from rt_kernels.control.valves cimport QUEUE, THRUSTERS_MAX, Thruster, Valves, fire, to_come
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import COUNT_32, FLAG
from rt_kernels.control.allocation import actuators, table
from rt_kernels.parameters import Parameter, checked

cdef enum:
    WHEELS_MAX = 16
    OFF = 0
    BY_THRUSTERS = 1
    BY_WHEELS = 2
    AXIAL_P = 0                 # force +X and -X, rows of the press table
    AXIAL_M = 1

cdef struct Wheel:
    Vec3 axis                   # craft axes
    Vec3 share                  # torque for a moment of one on the craft, per axis
    double inertia              # about its axis
    double torque               # limits
    double momentum

cdef struct Craft:
    Thruster thruster[64]
    Wheel wheel[16]
    double moment[384]          # +X -X +Y -Y +Z -Z: shares of all thrusters for as much as they can give
    double press[128]           # +X -X: shares for the press thrust
    double engine               # ideal axial engine, N
    double axis[3]              # that it acts along
    Mat3 inertia
    Mat3 inverse_inertia
    double dead_band            # rad
    double rate_limit           # rad/s
    double rate_weight          # T, s
    double stiffness            # W^2, 1/s2
    double damping              # 2 z W, 1/s
    int n_thrusters
    int n_wheels
    int attitude                # OFF, BY_THRUSTERS, BY_WHEELS
    int weak                    # the thrusters do not come up to thrust_n

cdef struct CraftState:
    Valves valves
    Quat hold                   # attitude to hold, craft axes to N
    int holding
    int unused

cdef struct State:
    CraftState craft[2]
    int touched
    int unused

cdef struct Self:
    double period
    Vec3 orbital_rate           # N axes
    Craft craft[2]              # active, target
    int in_contact              # attitude hold continues after the first contact
    int unused
    State state


# -------------------------------------------------------------------------------------------------------------- attitude

cdef inline Vec3 foreseen_rate(const Craft *p, const Valves *s, double h, Vec3 w) noexcept nogil:
    """The rate w with what is under way added."""
    cdef Vec3 m = xyz(0.0, 0.0, 0.0)
    cdef int j
    for j in range(p.n_thrusters):
        m = add(m, mul(to_come(&p.thruster[j], &s.valve[j], h), vec(p.thruster[j].wrench + 3)))
    return add(w, mat_vec(p.inverse_inertia, m))


cdef inline int side(const Craft *p, double phi, double w) noexcept nogil:
    """Phase plane of one axis: -1, 0 or 1."""
    cdef double s = phi + p.rate_weight * w
    if (s > p.dead_band and w > -p.rate_limit) or w > p.rate_limit:
        return -1
    if (s < -p.dead_band and w < p.rate_limit) or w < -p.rate_limit:
        return 1
    return 0


cdef inline void steer(const Craft *p, Vec3 phi, Vec3 w, double *asked) noexcept nogil:
    """Shares of the thrusters for the moments of the three axes, none above 1."""
    cdef int sign[3]
    cdef double most = 1.0
    cdef int i, j
    sign[0], sign[1], sign[2] = side(p, phi.x, w.x), side(p, phi.y, w.y), side(p, phi.z, w.z)
    for i in range(3):
        for j in range(p.n_thrusters if sign[i] else 0):
            asked[j] += p.moment[(2 * i + (sign[i] < 0)) * THRUSTERS_MAX + j]
    for j in range(p.n_thrusters):
        if asked[j] > most:
            most = asked[j]
    for j in range(p.n_thrusters):
        asked[j] /= most


cdef inline bint turn_wheels(const Craft *p, Vec3 phi, Vec3 w, Vec3 w_craft, const double *rate, double *torque) noexcept nogil:
    """Torques of the motors on the wheels; True where a limit holds them back. w_craft: rate of the craft in N on its own axes."""
    # moment on the craft; the wheels get the opposite
    cdef Vec3 m = mat_vec(p.inertia, add(mul(-p.stiffness, phi), mul(-p.damping, w)))
    cdef double most = 1.0, momentum
    cdef bint limited = 0
    cdef int k
    for k in range(p.n_wheels):
        torque[k] = -dot(p.wheel[k].share, m)
        if fabs(torque[k]) > most * p.wheel[k].torque:
            most = fabs(torque[k]) / p.wheel[k].torque
            limited = 1
    for k in range(p.n_wheels):
        torque[k] /= most
        # a full wheel takes no more
        momentum = p.wheel[k].inertia * (rate[k] + dot(p.wheel[k].axis, w_craft))
        if fabs(momentum) >= p.wheel[k].momentum and momentum * torque[k] > 0.0:
            torque[k] = 0.0
            limited = 1
    return limited


# --------------------------------------------------------------------------------------------------------------- thrust

cdef inline bint press(const Craft *p, int axial, double *asked) noexcept nogil:
    """Adds the press thrust to the shares, as far as the attitude leaves room; True where it comes short."""
    cdef const double *share = p.press + axial * THRUSTERS_MAX
    cdef double room = 1.0
    cdef int j
    for j in range(p.n_thrusters):
        if share[j] > 0.0 and asked[j] + room * share[j] > 1.0:
            room = (1.0 - asked[j]) / share[j]
    for j in range(p.n_thrusters):
        asked[j] += room * share[j]
    return room < 1.0 or p.weak


# ----------------------------------------------------------------------------------------------------------------- step

cdef inline uint32_t hold_attitude(const Self *self, const Craft *p, CraftState *s, Pose X, Twist V, const double *rate, int periods,
                                   double *asked, double *torque) noexcept nogil:
    """Shares of the thrusters or torques of the wheels; returns bits of control_status. X, V: craft in N; rate: of its wheels."""
    cdef Vec3 phi, w
    # the attitude to hold turns with the orbital frame
    s.hold = turned(s.hold, self.orbital_rate, periods * self.period) if s.holding else X.q
    s.holding = 1
    # rotation vector from the attitude to hold, and the rate relative to it, on craft axes
    phi = logarithm(quat_multiply(conjugate(s.hold), X.q))
    w = rotate_back(X.q, sub(V.w, self.orbital_rate))
    if p.attitude == BY_THRUSTERS:
        steer(p, phi, foreseen_rate(p, &s.valves, self.period, w), asked)
    elif turn_wheels(p, phi, w, rotate_back(X.q, V.w), rate, torque):
        return CONTROL_STATUS_ATTITUDE | CONTROL_STATUS_WHEEL_LIMITED
    return CONTROL_STATUS_ATTITUDE


cdef uint32_t run(const Self *self, const Craft *p, CraftState *s, const Sample *o, const double *X, const double *V, const double *rate,
                  int axial, double *wrench, double *thrust, double *torque) noexcept nogil:
    """One craft over the tick; returns bits of control_status. axial: AXIAL_P, AXIAL_M or -1."""
    cdef double asked[64]
    cdef uint32_t status = 0
    cdef int i, j, periods = o.periods if o.periods > 1 else 1
    memset(asked, 0, sizeof(asked))
    # attitude first
    if p.attitude != OFF and o.control_request & CONTROL_REQUEST_ATTITUDE and (self.in_contact or not self.state.touched):
        status = hold_attitude(self, p, s, pose(X), twist(V), rate, periods, asked, torque)
    else:
        s.holding = 0
    # press thrust with what is left
    if axial >= 0 and p.engine > 0.0:
        thrust_along(p.axis, p.engine if axial == AXIAL_P else -p.engine, wrench)
    elif axial >= 0 and press(p, axial, asked):
        status |= CONTROL_STATUS_THRUST_LIMITED
    # the valves, and what comes of them
    if fire(p.thruster, &s.valves, p.n_thrusters, asked, periods, thrust):
        status |= CONTROL_STATUS_FIRING
    for j in range(p.n_thrusters):
        for i in range(6):
            wrench[i] += thrust[j] / p.thruster[j].thrust * p.thruster[j].wrench[i]
    for j in range(p.n_wheels):
        put(add(vec(wrench + 3), mul(-torque[j], p.wheel[j].axis)), wrench + 3)
    return status


cdef void step(void *self, Sample *o, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef int axial = -1
    no_control(o)
    if o.motion != MOTION_FREE and o.motion != MOTION_JOINED:
        memset(&p.state, 0, sizeof(State))
        return
    if o.contact:
        p.state.touched = 1
    if o.control_request & CONTROL_REQUEST_PRESS:
        axial = AXIAL_P
    elif o.control_request & CONTROL_REQUEST_RETREAT:
        axial = AXIAL_M
    o.control_status = run(p, &p.craft[0], &p.state.craft[0], o, o.X_NC, o.V_NC, o.wheel_rate_A, axial, o.control_A, o.thruster_A,
                           o.wheel_torque_A)
    o.control_status |= run(p, &p.craft[1], &p.state.craft[1], o, o.X_NV, o.V_NV, o.wheel_rate_T, -1, o.control_T, o.thruster_T,
                            o.wheel_torque_T)


# --------------------------------------------------------------------------------------------------------------- set-up

ATTITUDE = {"off": OFF, "thrusters": BY_THRUSTERS, "wheels": BY_WHEELS}


def _hold(craft, attitude):
    """Keys of the attitude hold of one craft."""
    return (
        Parameter(f"{craft}_attitude", "str", "-", f"what holds the attitude of the {craft} craft", attitude, choices=tuple(ATTITUDE)),
        Parameter(f"{craft}_dead_band_deg", "float", "deg", "thrusters: half width of the dead band", 0.5, low=1e-4, high=90.0),
        Parameter(f"{craft}_rate_limit_deg_s", "float", "deg/s", "thrusters: fastest way back to the dead band", 0.1, low=1e-5, high=10.0),
        Parameter(f"{craft}_rate_weight_s", "float", "s", "thrusters: slope of the switching lines, angle for a rate", 5.0,
                  low=0.0, high=1e3),
        Parameter(f"{craft}_wheel_frequency_hz", "float", "Hz", "wheels: natural frequency of the hold", 0.02, low=1e-5, high=10.0),
        Parameter(f"{craft}_wheel_damping", "float", "-", "wheels: its damping ratio", 0.7, low=0.05, high=5.0),
    )


cdef class Thrusters(StagePart):
    """Attitude hold by thrusters or wheels, press thrust by an engine or thrusters; both craft.

    Raises ValueError for a craft with more than 64 thrusters or 16 wheels, thrusters or wheels that cannot do what is asked of them, and
    for a delay beyond 511 ticks. .notes: what the actuators can give, in words.
    """

    PARAMETERS = (
        Parameter("press", "str", "-", "what gives the press thrust", "engine", choices=("engine", "thrusters")),
        Parameter("attitude_in_contact", "bool", "-",
                  "attitude hold as long as the guidance asks for it; false: off from the first contact on (indicator mode)", True),
        *_hold("active", "thrusters"),
        *_hold("target", "off"),
    )
    CONTEXT = ("period_s", "vehicles", "start")
    cdef Self c
    cdef readonly tuple notes

    def __init__(self, *, period_s, vehicles, start, **given):
        keys = checked(Thrusters.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.c.period = period_s
        self.c.in_contact = keys["attitude_in_contact"]
        w = start.orbital_rate_rad_s
        self.c.orbital_rate = xyz(w[0], w[1], w[2])
        notes = []
        for k, (name, vehicle) in enumerate((("active", vehicles.active), ("target", vehicles.target))):
            notes += fill(&self.c.craft[k], name, vehicle, keys, period_s, keys["press"] if name == "active" else "")
        self.notes = tuple(notes)
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"craft.valves.valve.open": FLAG, "craft.valves.valve.left": COUNT_32, "craft.valves.valve.under_way": COUNT_32,
                "craft.valves.queue": (0, 2**64 - 1), "craft.valves.head": (0, QUEUE - 1), "craft.holding": FLAG, "touched": FLAG}

    def fields(self):
        return self.c


cdef list fill(Craft *p, name, vehicle, keys, double period, press):
    """Constants of one craft; what its actuators can give, in words."""
    cdef int j
    craft, where = vehicle.craft, f"{name} vehicle"
    on_craft = actuators(craft)
    p.attitude = ATTITUDE[keys[f"{name}_attitude"]]
    p.dead_band = math.radians(keys[f"{name}_dead_band_deg"])
    p.rate_limit = math.radians(keys[f"{name}_rate_limit_deg_s"])
    p.rate_weight = keys[f"{name}_rate_weight_s"]
    W = 2.0 * math.pi * keys[f"{name}_wheel_frequency_hz"]
    p.stiffness, p.damping = W * W, 2.0 * keys[f"{name}_wheel_damping"] * W
    inertia = np.array(vehicle.inertia_kg_m2, float)
    cdef double[:, ::1] I = inertia, inverse = np.ascontiguousarray(np.linalg.inv(inertia))
    p.inertia, p.inverse_inertia = mat(&I[0, 0]), mat(&inverse[0, 0])
    thrusters, wheels = (craft.thrusters, craft.wheels) if craft is not None else ((), ())
    if len(thrusters) > THRUSTERS_MAX:
        raise ValueError(f"{where}: thruster: {len(thrusters)} thrusters, limit {THRUSTERS_MAX}")
    if len(wheels) > WHEELS_MAX:
        raise ValueError(f"{where}: wheel: {len(wheels)} wheels, limit {WHEELS_MAX}")
    p.n_thrusters, p.n_wheels = len(thrusters), len(wheels)
    for j in range(len(thrusters)):
        fill_thruster(&p.thruster[j], f"{where}: thruster.{thrusters[j].name}", thrusters[j], on_craft.wrench[j], period)
    notes = []
    if p.attitude == BY_THRUSTERS:
        notes += fill_moments(p, f"{where}: {name}_attitude = 'thrusters'", on_craft)
    if p.attitude == BY_WHEELS:
        fill_wheels(p, f"{where}: {name}_attitude = 'wheels'", wheels, on_craft)
    p.axis = vehicle.docking_axis
    if press == "thrusters" and vehicle.thrust_n > 0.0 and not p.axis[0] > 0.94:  # 20 deg
        raise ValueError(f"{where}: press = 'thrusters': X of the port {vehicle.port!r} is ({p.axis[0]:.3f}, {p.axis[1]:.3f}, "
                         f"{p.axis[2]:.3f}) in the craft, limit 20 deg from (1, 0, 0): use press = 'engine'")
    if press == "engine":
        p.engine = vehicle.thrust_n
    elif press == "thrusters" and vehicle.thrust_n > 0.0:
        notes += fill_press(p, f"{where}: press = 'thrusters'", on_craft, vehicle.thrust_n)
    return [f"{name} craft: {note}" for note in notes]


cdef void fill_thruster(Thruster *t, where, thruster, wrench, double period) except *:
    cdef int i
    for i in range(6):
        t.wrench[i] = wrench[i]
    t.thrust, t.rise = thruster.thrust_n, thruster.rise_s
    if t.rise > 0.0:
        t.end = math.exp(-period / t.rise)
        t.mean = -math.expm1(-period / t.rise) * t.rise / period
    # whole ticks; a pulse is never shorter than the valve's own
    delay = round(thruster.delay_s / period)
    if delay >= QUEUE:
        raise ValueError(f"{where}.delay_s: {thruster.delay_s:g} s are {delay} ticks, limit {QUEUE - 1} ticks of {period:g} s")
    t.delay = delay
    t.shortest = max(1, math.ceil(thruster.minimum_pulse_s / period - 1e-6))


cdef list fill_moments(Craft *p, where, on_craft):
    """The table of moments: each as large as its thrusters can give it."""
    cdef int i, j
    found = table(where, on_craft.wrench, on_craft.thrust, range(6, 12))
    full = found.max(axis=1)
    for i in range(6):
        for j in range(p.n_thrusters):
            p.moment[i * THRUSTERS_MAX + j] = found[i, j] / full[i]
    force = np.abs((found / full[:, None]) @ on_craft.wrench[:, :3]).max()
    moments = ", ".join(f"{1.0 / x:.4g}" for x in full)
    return [f"moments +X -X +Y -Y +Z -Z of {moments} N.m by thrusters, with at most {force:.3g} N of force beside them"]


cdef list fill_press(Craft *p, where, on_craft, double thrust_n):
    """The table of the press thrust, both ways; what the thrusters do not come up to is the most that they can give."""
    cdef int i, j
    found = table(where, on_craft.wrench, on_craft.thrust, (0, 1))
    given = []
    for i in range(2):
        full = found[i].max()
        p.weak = p.weak or thrust_n * full > 1.0 + 1e-9
        given.append(min(thrust_n, 1.0 / full))
        for j in range(p.n_thrusters):
            p.press[i * THRUSTERS_MAX + j] = found[i, j] * given[i]
    return [f"press thrust {given[0]:.4g} N, retreat {given[1]:.4g} N by thrusters, thrust_n {thrust_n:.4g} N"]


cdef void fill_wheels(Craft *p, where, wheels, on_craft) except *:
    """Axes, limits, and the torques of least squares for a moment on the craft."""
    cdef int k
    axes = on_craft.axis
    if len(wheels) < 3 or np.linalg.matrix_rank(axes, tol=1e-6) < 3:
        raise ValueError(f"{where}: its {len(wheels)} wheels do not turn about three different axes")
    share = np.linalg.pinv(axes.T)
    for k in range(len(wheels)):
        p.wheel[k].axis = xyz(axes[k, 0], axes[k, 1], axes[k, 2])
        p.wheel[k].share = xyz(share[k, 0], share[k, 1], share[k, 2])
        p.wheel[k].inertia = on_craft.wheel_inertia[k]
        p.wheel[k].torque, p.wheel[k].momentum = wheels[k].torque_n_m, wheels[k].momentum_n_m_s
