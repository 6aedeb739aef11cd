# distutils: extra_compile_args = -O3
"""Two free spacecraft, each any tree of rigid and flexible bodies, under the measured contact wrench and the control wrenches.

States of a craft are, as in `two_bodies`, the centre of mass c, the momentum P and the angular momentum L about the centre of mass of all
its bodies, beside the attitude of the root (the first body, on a free joint), the joints and modes x and their rates v:

    P' = f      L' = (r - c) x f + m      c' = P / M
    (M + h^2/4 K + h D) a = F - K (x - x_0) - D v,  v+ = v + h a,  x+ = x + h v+
    root: I_c w = L - l_0,  v_0 = (P - p_0) / M - w x c_0

with p_0, l_0 the momentum of the bodies as they move with the root at rest, I_c the inertia of the whole about its centre of mass c_0 in
the root (`compose`). The twist of the root follows from the momentum, so momentum that comes in goes out again to rounding, whatever
joints and modes do. The port answers a force within the same tick (symplectic Euler, as `two_bodies`). Springs and dampers of joints and
modes are the trapezoidal rule staggered by half a step: stable whatever their stiffness, no damping of its own, frequency 2/h atan(h w/2)
for w. The attitude is advanced by the exponential of the rate at half the step.

Modes of a joint of one degree of freedom, changed during a run by `joint_changes` or by the command `joint`:

    locked   stands still from the tick of the change on
    free     spring, damper, Coulomb friction F_c v / max(|v|, v_f), all implicit
    given    follows x(t): from where it is and as fast as it is, to the target at rest, a polynomial of fifth degree
    driven   the same path as the reference of a servo k (x_r - x) + d (x_r' - v), limited; without gains the target is the torque

Accelerations of given and locked joints are known to the recursion, which returns the forces that they need (mixed forward and inverse
dynamics). A given joint that would need more than its drive's effort gets the effort for the tick, and a path from where it is then.

Beyond a stop a spring and a damper push back. No path leads there: targets and references end at the stop. What stands beyond one when it
is released, or when a branch moves the stop, has an unloaded spring, which follows the joint back: a stop gives no energy that it has not
taken.
The work of all joints but the wheels', h tau (v + v+) / 2 a tick, is `joint_energy`, with the limit `joint_energy_max_j`.

A reaction wheel is a continuous joint with the torque `wheel_torque`.

Joined: a wrench l of the latches at one point of space, equal and opposite, that takes the relative twist u of the ports to zero:

    (J_A M_A^-1 J_A^T + J_T M_T^-1 J_T^T) l = (u - u*) / h

by unit wrenches through both trees (M^-1 of the implicit step), u* = -0.1/h times the drift of the pose, bounded. Released, both go on with
the velocities they have. An impulse, of a latch or of a lock, is the mean of its first tick: it is in that tick's torques and wrenches.

Control: every thruster pushes where it is, `wheel_torque` turns the wheels, and what is left of the control wrench (which is the resultant
of all of them for a rigid craft) acts at and in C on the body that carries the control (`Craft.control_body`, else the root). A root that
bends is a floating frame: a wrench on it would act on all of its mass at once, and bend nothing.

With an orbit every body feels the difference of gravity to the origin of N and its gradient, coupled with the deformation: half a kick of
momentum before and half after the step, joints and modes with the first.

Frames: N inertial, or without rotation on a reference orbit; C, V centres of mass of the active and the target craft, axes of their roots;
A and T their ports. Units SI; wrenches force first, twists linear first.
Sources: mixed forward and inverse dynamics: Meng and Han 2007, sections 3-5; recursion: `rt_kernels.multibody.flexible_recursion`; orbit:
`rt_kernels.dynamics.orbit`.
"""

from libc.math cimport fabs, sqrt
from libc.stddef cimport size_t
from libc.string cimport memcpy, memset

from dataclasses import replace

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from rt_kernels.algebra cimport pose, quat, rot3, vec3
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.codes cimport (COMMAND_JOINT, DYNAMICS_STATUS_JOINT_ENERGY, JOINT_MODE_DRIVEN, JOINT_MODE_GIVEN, JOINT_MODE_LOCKED,
                               MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED)
from rt_kernels.dynamics.orbit cimport (Orbit, Reference, drift_reference, fill_orbit, gradient, gradient_moment, kick_reference,
                                        start_reference, tide)
from rt_kernels.dynamics.two_bodies cimport accumulate, take_motion, verdict
from rt_kernels.dynamics.two_crafts_record cimport CraftsRecord
from rt_kernels.multibody.flexible cimport FlexibleTree
from rt_kernels.multibody.flexible_algebra cimport backward_solve, cholesky, forward_solve
from rt_kernels.multibody.flexible_recursion cimport (CONTINUOUS, SPHERICAL, Body, Composite, Model, accelerate, compose, factor, move,
                                                      place_in_root, respond, twist_of)
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG, WORD, code_range
from rt_kernels.dynamics.two_crafts_record import AUX
from rt_kernels.layout import CODES
from rt_kernels.model.craft import DOCKING, Craft, CraftPort, Link
from rt_kernels.model.modes import ModalBody
from rt_kernels.parameters import Command, Parameter, checked

cdef enum:
    ACTIVE = 0
    TARGET = 1
    MAX_Q = 136                 # coordinates of a craft, the root's seven included
    MAX_V = 128
    MAX_BODIES = 64
    MAX_JOINTS = 12             # of one degree of freedom, both craft together
    MAX_BALLS = 8               # spherical joints of a craft
    MAX_THRUSTERS = 16
    MAX_WHEELS = 4
    MAX_SENSORS = 6
    MAX_INTERFACES = 4
    MAX_CHANGES = 16
    AT_TIME = 0
    AT_FIRST_CONTACT = 1
    AT_CAPTURE = 2

cdef double DRIFT_SHARE = 0.1      # share of the drift of a latched pose that is taken back in a tick
cdef double DRIFT_RATE_MAX = 0.01  # and how fast at most, m/s and rad/s


# a frame on a body, body axes
cdef struct Place:
    int body
    int unused
    double p[3]
    double R[9]

cdef struct Joint:
    int body
    int iq
    int iv
    int turns                   # 1: continuous, its q is [cos, sin]
    int mode                    # at the start
    int wheel                   # number of the wheel that it carries, -1: none
    double angle                # rest of the spring, and where it stands at the start
    double stiffness
    double damping
    double friction
    double armature
    double effort
    double rate
    double servo_stiffness
    double servo_damping
    double lower
    double upper
    double inertia              # what the joint alone has to move at the start
    double stop_stiffness
    double stop_damping

cdef struct Thruster:
    Place place
    double direction[3]         # body axes
    double wrench[6]            # of a unit thrust at and in C, at the start

cdef struct Change:
    int craft
    int joint
    int mode
    int event
    double after                # s after the event, or run time
    double target
    double duration

cdef struct CraftParams:
    int n_joints
    int n_balls
    int n_thrusters
    int n_wheels
    int n_sensors
    int n_interfaces
    int nq
    int nv
    int nj
    int bodies
    double mass
    double friction_rate
    double joint_energy_max
    int control                 # body that carries the control
    int unused
    Place port
    Joint joint[MAX_JOINTS]
    int ball_iq[MAX_BALLS]
    int ball_iv[MAX_BALLS]
    Thruster thruster[MAX_THRUSTERS]
    int wheel[MAX_WHEELS]       # joint of the wheel
    double wheel_axis[3 * MAX_WHEELS]  # at the start, axes of the root
    Place sensor[MAX_SENSORS]
    int interface[MAX_INTERFACES]
    double q[MAX_Q]             # at the start
    double v[MAX_V]

cdef struct Params:
    double period
    double range_max
    double orbital_rate[3]
    Orbit orbit
    CraftParams craft[2]
    Change change[MAX_CHANGES]
    int n_changes
    int unused

cdef struct JointState:
    int mode
    int yields                  # given: its drive was not strong enough for the last tick
    double angle                # not reduced to a turn
    double beyond               # how far past a stop it stands, signed; 0 between them
    double unloaded             # how much of that its stop's spring does not feel
    double start                # path: from here,
    double start_rate
    double target
    double duration
    double elapsed

cdef struct CraftState:
    double q[MAX_Q]             # root: position in N, attitude xyzw; joints; modes
    double v[MAX_V]             # root: twist on its axes
    double c[3]
    double P[3]
    double L[3]                 # about c, N axes
    double c_rest[3]            # what the sums have lost to rounding
    double P_rest[3]
    double L_rest[3]
    JointState joint[MAX_JOINTS]
    double joint_energy         # work of the joints, wheels left out

cdef struct PairState:
    CraftState craft[2]
    Reference reference
    double V_TA[6]              # of the previous tick, for the acceleration
    double join_X_TA[7]         # relative pose at the moment of latching
    double latch[6]             # joined: wrench on the target craft, at and in T
    int joined
    unsigned int done           # bits: changes of joints that have been made

cdef struct Flat:
    Params params
    PairState state

# of one evaluation; nothing of it lives longer than a tick
cdef struct Work:
    Model *model
    Composite whole
    double tau[MAX_V]
    double tau_out[MAX_V]
    double a[MAX_V]
    double half[MAX_Q]
    double f_ext[6 * MAX_BODIES]
    unsigned char known[MAX_V]
    double torque[MAX_JOINTS]
    double R[9]                 # axes of the root in N
    double R_port[9]            # axes of the port's body in N
    double force[3]             # on the craft, N axes
    double moment[3]            # about c
    double X_port[7]            # port in N
    double V_port[6]            # velocity of its origin, angular velocity, N axes
    double kinetic
    double modal_energy

cdef struct Self:
    Flat flat
    Work work[2]


# ---------------------------------------------------------------------------------------------------------------- the whole craft

cdef inline void settle(const CraftState *s, const Composite *whole, const double *q, double *V) noexcept nogil:
    """Twist V of the root (its axes) that belongs to P and L with the attitude q and the joints and modes of `whole`."""
    cdef double P[3]
    cdef double L[3]
    cdef double t[3]
    quat.rotate_back(q, s.P, P)
    quat.rotate_back(q, s.L, L)
    vec3.sub(L, whole.l, L)
    rot3.solve(whole.inertia, L, V + 3)
    vec3.sub(P, whole.p, V)
    vec3.scale(1.0 / whole.mass, V, V)
    vec3.cross(V + 3, whole.centre, t)
    vec3.sub(V, t, V)


cdef void carry_over(CraftState *s, Work *w) noexcept nogil:
    """Centre of mass and momentum that belong to the root's pose and twist and to the rates of joints and modes: `settle` backwards."""
    cdef double t[3]
    compose(w.model, s.q, s.v, &w.whole)
    quat.rotate(s.q + 3, w.whole.centre, t)
    vec3.add(s.q, t, s.c)
    # P = M (v_0 + w x c_0) + p_0, L = I_c w + l_0
    vec3.cross(s.v + 3, w.whole.centre, t)
    vec3.add(s.v, t, t)
    vec3.scale(w.whole.mass, t, t)
    vec3.add(t, w.whole.p, t)
    quat.rotate(s.q + 3, t, s.P)
    rot3.apply(w.whole.inertia, s.v + 3, t)
    vec3.add(t, w.whole.l, t)
    quat.rotate(s.q + 3, t, s.L)
    vec3.fill(0.0, 0.0, 0.0, s.c_rest)
    vec3.fill(0.0, 0.0, 0.0, s.P_rest)
    vec3.fill(0.0, 0.0, 0.0, s.L_rest)


cdef inline void place_root(CraftState *s, const Composite *whole) noexcept nogil:
    """Position of the root from the centre of mass and the attitude."""
    cdef double r[3]
    quat.rotate(s.q + 3, whole.centre, r)
    vec3.sub(s.c, r, s.q)


cdef inline void place_pose(const Work *w, const Place *place, double *p, double *R) noexcept nogil:
    """Position and axes of a place in the root, after `place_in_root`."""
    cdef const Body *b = &w.model.body[place.body]
    rot3.apply(b.pose + 3, place.p, p)
    vec3.add(b.pose, p, p)
    rot3.multiply(b.pose + 3, place.R, R)


cdef void see_craft(const CraftParams *p, CraftState *s, Work *w) noexcept nogil:
    """From attitude, joints, modes and momentum: the root's place and twist, the port's pose and velocity in N, energies."""
    cdef const Body *b
    cdef double r[3]
    cdef double R[9]
    cdef double t[3]
    cdef double u[3]
    cdef double h[6]
    cdef double x
    cdef int i, j, k
    compose(w.model, s.q, s.v, &w.whole)
    settle(s, &w.whole, s.q + 3, s.v)
    place_root(s, &w.whole)
    place_in_root(w.model)
    place_pose(w, &p.port, r, R)
    quat.rotate(s.q + 3, r, w.X_port)
    vec3.add(s.q, w.X_port, w.X_port)
    quat.from_matrix(R, w.X_port + 3)
    quat.multiply(s.q + 3, w.X_port + 3, w.X_port + 3)
    # with the root at rest, then with the root
    b = &w.model.body[p.port.body]
    vec3.cross(b.V + 3, p.port.p, t)
    vec3.add(b.V, t, t)
    rot3.apply(b.pose + 3, t, t)
    vec3.cross(s.v + 3, r, u)
    vec3.add(t, u, t)
    vec3.add(t, s.v, t)
    quat.rotate(s.q + 3, t, w.V_port)
    rot3.apply(b.pose + 3, b.V + 3, t)
    vec3.add(t, s.v + 3, t)
    quat.rotate(s.q + 3, t, w.V_port + 3)
    # kinetic energy: 1/2 V_0 (h + h_0) and that with the root at rest; h about the centre of mass, V_0 there
    quat.rotate_back(s.q + 3, s.P, h)
    quat.rotate_back(s.q + 3, s.L, h + 3)
    vec3.add(h, w.whole.p, h)
    vec3.add(h + 3, w.whole.l, h + 3)
    vec3.cross(s.v + 3, w.whole.centre, t)
    vec3.add(s.v, t, t)
    w.kinetic = w.whole.energy + 0.5 * (vec3.dot(t, h) + vec3.dot(s.v + 3, h + 3))
    for i in range(p.n_joints):
        w.kinetic += 0.5 * p.joint[i].armature * s.v[p.joint[i].iv] * s.v[p.joint[i].iv]
    w.modal_energy = 0.0
    for i in range(p.bodies):
        b = &w.model.body[i]
        for j in range(b.s):
            x = 0.0
            for k in range(b.s):
                x += b.K[j * b.s + k] * s.q[b.eq + k] * s.q[b.eq + j] + b.Mee[j * b.s + k] * s.v[b.ev + k] * s.v[b.ev + j]
            w.modal_energy += 0.5 * x


cdef void relative_motion(const Work *active, const Work *target, double *X_TA, double *V_TA) noexcept nogil:
    """Pose and twist of port A in port T: d/dt p_TA = R_TN (v_A - v_T - w_T x p_TA_N), w_TA = R_TN (w_A - w_T)."""
    cdef double X[7]
    cdef double r[3]
    cdef double t[3]
    pose.inverse(target.X_port, X)
    pose.multiply(X, active.X_port, X_TA)
    vec3.sub(active.X_port, target.X_port, r)
    vec3.cross(target.V_port + 3, r, t)
    vec3.sub(active.V_port, target.V_port, r)
    vec3.sub(r, t, r)
    quat.rotate_back(target.X_port + 3, r, V_TA)
    vec3.sub(active.V_port + 3, target.V_port + 3, r)
    quat.rotate_back(target.X_port + 3, r, V_TA + 3)


cdef void shift_internal(const CraftParams *p, const CraftState *s, double h, double *q) noexcept nogil:
    """q: joints and modes moved by h v; the root's coordinates are left alone. q may be s.q."""
    cdef double t[3]
    cdef double d[4]
    cdef double sine, cosine, x
    cdef const Joint *joint
    cdef int i
    for i in range(p.n_joints):
        joint = &p.joint[i]
        if joint.turns:
            sincos(h * s.v[joint.iv], &sine, &cosine)
            x = s.q[joint.iq] * sine + s.q[joint.iq + 1] * cosine
            cosine = s.q[joint.iq] * cosine - s.q[joint.iq + 1] * sine
            # one Newton step towards the unit circle
            sine = 1.5 - 0.5 * (cosine * cosine + x * x)
            q[joint.iq] = sine * cosine
            q[joint.iq + 1] = sine * x
        else:
            q[joint.iq] = s.q[joint.iq] + h * s.v[joint.iv]
    for i in range(p.n_balls):
        vec3.scale(h, s.v + p.ball_iv[i], t)
        quat.exponential(t, d)
        quat.multiply(s.q + p.ball_iq[i], d, q + p.ball_iq[i])
        quat.normalize(q + p.ball_iq[i])
    for i in range(p.nv - p.nj):
        q[p.nq - p.nv + p.nj + i] = s.q[p.nq - p.nv + p.nj + i] + h * s.v[p.nj + i]


# ------------------------------------------------------------------------------------------------------------------------ joints

cdef inline void path(const JointState *j, double t, double *x, double *rate) noexcept nogil:
    """Place and rate of a given joint, or of a driven one's reference, at the time t of its path."""
    cdef double s, d = j.target - j.start
    if t >= j.duration:
        x[0] = j.target
        rate[0] = 0.0
        return
    # fifth degree: start with the rate at hand, end at rest, no acceleration at the ends
    s = t / j.duration
    x[0] = j.start + d * s * s * s * (10.0 - s * (15.0 - 6.0 * s))
    x[0] += j.start_rate * t * (1.0 - s * s * (6.0 - s * (8.0 - 3.0 * s)))
    rate[0] = j.start_rate * (1.0 - s * s * (18.0 - s * (32.0 - 15.0 * s))) + d / j.duration * s * s * (30.0 - s * (60.0 - 30.0 * s))


cdef inline bint is_held(int mode) noexcept nogil:
    """Whether the acceleration of a joint is known in this mode."""
    return mode == JOINT_MODE_LOCKED or mode == JOINT_MODE_GIVEN


cdef inline double past_stop(const Joint *joint, double x) noexcept nogil:
    """How far x lies past a stop of the joint, signed; 0 between them."""
    if x > joint.upper:
        return x - joint.upper
    if x < joint.lower:
        return x - joint.lower
    return 0.0


cdef inline double within_stops(const Joint *joint, double stands, double x) noexcept nogil:
    """A place of a path, no further past a stop than where the joint stands."""
    return min(max(x, min(joint.lower, stands)), max(joint.upper, stands))


cdef void begin_path(const Joint *joint, JointState *j, double rate, double target, double duration, double h) noexcept nogil:
    """A path from where the joint is, at its rate, to the target: in the given time, or in the shortest that the drive allows."""
    cdef double d = fabs(target - j.angle)
    cdef double fastest = joint.rate
    cdef double a, b
    j.start = j.angle
    j.start_rate = rate
    j.target = target
    j.elapsed = 0.0
    # fifth degree: the rate peaks at 15/8 of the mean one; one away from the target adds up to 0.52 of itself on the way back
    if rate * (target - j.angle) < 0.0:
        fastest -= 0.52 * min(fabs(rate), fastest)
    # the acceleration at most at 5.78 d / T^2 + 3.95 |rate| / T, which the effort must give to the joint's inertia
    a = 5.78 * d * joint.inertia / joint.effort
    b = 3.95 * fabs(rate) * joint.inertia / joint.effort
    # in no less than ten ticks
    j.duration = max(max(duration, 10.0 * h, 1.875 * d / fastest), 0.5 * (b + sqrt(b * b + 4.0 * a)))


cdef void set_mode(const Params *p, PairState *s, int craft, int number, int mode, double target, double duration) noexcept nogil:
    """A joint changes its mode; a path begins where the joint is, and ends between its stops. One that is held beyond a stop leaves its
    spring unloaded there."""
    cdef const Joint *joint
    cdef JointState *j
    # a command of a log is not trusted
    if number < 0 or number >= p.craft[craft].n_joints or mode < JOINT_MODE_LOCKED or mode > JOINT_MODE_DRIVEN:
        return
    if not (fabs(target) < 1e9 and duration >= 0.0):
        return
    joint = &p.craft[craft].joint[number]
    j = &s.craft[craft].joint[number]
    if is_held(j.mode) or is_held(mode):
        j.unloaded = j.beyond
    j.mode = mode
    j.yields = 0
    if mode == JOINT_MODE_GIVEN or mode == JOINT_MODE_DRIVEN and not driven_by_torque(joint):
        target = min(max(target, joint.lower), joint.upper)
    begin_path(joint, j, s.craft[craft].v[joint.iv], target, duration, p.period)


cdef inline bint driven_by_torque(const Joint *joint) noexcept nogil:
    """Whether the target of a driven joint is a torque: its servo has no gains."""
    return joint.servo_stiffness == 0.0 and joint.servo_damping == 0.0


cdef void change_modes(const Params *p, PairState *s, const Sample *o) noexcept nogil:
    """Changes of the configuration that are due, and the operator's."""
    cdef double since, t = 1e-9 * <double>o.time_ns
    cdef int i
    for i in range(p.n_changes):
        since = t
        if p.change[i].event == AT_FIRST_CONTACT:
            since = t - o.first_contact_time if o.first_contact_time >= 0.0 else -1.0
        elif p.change[i].event == AT_CAPTURE:
            since = t - o.capture_time if o.capture_time >= 0.0 else -1.0
        if not (s.done >> i) & 1 and since >= p.change[i].after:
            s.done |= 1u << i
            set_mode(p, s, p.change[i].craft, p.change[i].joint, p.change[i].mode, p.change[i].target, p.change[i].duration)
    if o.command_code == COMMAND_JOINT:
        set_mode(p, s, o.command_arg[0] > 0.5, <int>o.command_arg[1], <int>o.command_arg[2], o.command_arg[3], o.command_arg[4])


cdef inline double push_of_stop(const Joint *joint, const JointState *j, double v, double *k, double *d) noexcept nogil:
    """Force of the stop beyond which the joint stands, its spring and damper onto k and d; 0 between the stops."""
    if j.beyond == 0.0:
        return 0.0
    if j.beyond != j.unloaded:
        k[0] += joint.stop_stiffness
    d[0] += joint.stop_damping
    return -(joint.stop_stiffness * (j.beyond - j.unloaded) + joint.stop_damping * v)


cdef void load_joints(const CraftParams *p, CraftState *s, Work *w, const double *wheel_torque, double h) noexcept nogil:
    """Forces, what is known, and what springs and dampers add to the inertia of each joint over the step."""
    cdef const Joint *joint
    cdef JointState *j
    cdef double x, v, k, d, force, reference, rate, servo
    cdef int i
    for i in range(p.n_joints):
        joint = &p.joint[i]
        j = &s.joint[i]
        x = j.angle
        v = s.v[joint.iv]
        k = 0.0
        d = 0.0
        force = 0.0
        w.known[joint.iv] = is_held(j.mode)
        # what a stop's spring does not feel shrinks as the joint comes back
        if j.unloaded != 0.0:
            j.unloaded = min(max(j.unloaded, min(j.beyond, 0.0)), max(j.beyond, 0.0))
        if j.mode == JOINT_MODE_GIVEN or j.mode == JOINT_MODE_DRIVEN:
            if j.yields:
                begin_path(joint, j, v, j.target, j.duration - j.elapsed, h)
                j.yields = 0
            j.elapsed += h
            path(j, j.elapsed, &reference, &rate)
            reference = within_stops(joint, x, reference)
        if j.mode == JOINT_MODE_LOCKED:
            w.a[joint.iv] = -v / h
        elif j.mode == JOINT_MODE_GIVEN:
            w.a[joint.iv] = ((reference - x) / h - v) / h
        else:
            k = joint.stiffness
            d = joint.damping + joint.friction / max(fabs(v), p.friction_rate)
            force = -k * (x - joint.angle) - d * v
            if joint.wheel >= 0:
                force += wheel_torque[joint.wheel]
            elif j.mode == JOINT_MODE_DRIVEN:
                servo = joint.servo_stiffness * (reference - x) + joint.servo_damping * (rate - v)
                if driven_by_torque(joint):
                    servo = j.target
                elif fabs(servo) < joint.effort:
                    k += joint.servo_stiffness
                    d += joint.servo_damping
                force += min(max(servo, -joint.effort), joint.effort)
            force += push_of_stop(joint, j, v, &k, &d)
        w.tau[joint.iv] = force
        w.model.body[joint.body].armature = joint.armature + h * (d + 0.25 * h * k)


cdef bint yields(const CraftParams *p, CraftState *s, Work *w, double h) noexcept nogil:
    """Whether given joints, after `accelerate`, need more than their drives give: those get that, and their stops' forces, instead."""
    cdef const Joint *joint
    cdef JointState *j
    cdef double k, d
    cdef bint found = False
    cdef int i
    for i in range(p.n_joints):
        joint = &p.joint[i]
        j = &s.joint[i]
        if j.mode != JOINT_MODE_GIVEN or fabs(w.tau_out[joint.iv]) <= joint.effort:
            continue
        found = True
        j.yields = 1
        k = 0.0
        d = 0.0
        w.known[joint.iv] = 0
        w.tau[joint.iv] = joint.effort if w.tau_out[joint.iv] > 0.0 else -joint.effort
        w.tau[joint.iv] += push_of_stop(joint, j, s.v[joint.iv], &k, &d)
        w.model.body[joint.body].armature = joint.armature + h * (d + 0.25 * h * k)
    return found


cdef void take_torques(const CraftParams *p, Work *w) noexcept nogil:
    """Forces of the joints over the step: what known ones need, and of the others springs and dampers as they acted."""
    cdef int i, iv
    for i in range(p.n_joints):
        iv = p.joint[i].iv
        w.torque[i] = w.tau_out[iv]
        if not w.known[iv]:
            w.torque[i] -= (w.model.body[p.joint[i].body].armature - p.joint[i].armature) * w.a[iv]


# ------------------------------------------------------------------------------------------------------------------------- loads

cdef inline void load_body(const CraftState *s, Work *w, int body, const double *p, const double *f, const double *m) noexcept nogil:
    """Force f and moment m (body axes) at the place p of a body: on it, and on the whole."""
    cdef double *on = w.f_ext + 6 * body
    cdef const Body *b = &w.model.body[body]
    cdef double r[3]
    cdef double t[3]
    vec3.cross(p, f, t)
    vec3.add(t, m, t)
    vec3.add(on, f, on)
    vec3.add(on + 3, t, on + 3)
    # about c, N axes
    rot3.apply(b.pose + 3, p, r)
    vec3.add(b.pose, r, r)
    vec3.sub(r, w.whole.centre, r)
    rot3.apply(b.pose + 3, f, t)
    vec3.cross(r, t, r)
    quat.rotate(s.q + 3, t, t)
    vec3.add(w.force, t, w.force)
    rot3.apply(b.pose + 3, m, t)
    vec3.add(r, t, t)
    quat.rotate(s.q + 3, t, t)
    vec3.add(w.moment, t, w.moment)


cdef void load_contact(const CraftParams *p, const CraftState *s, Work *w, double sign, const double *x, const double *f,
                       const double *m) noexcept nogil:
    """Force sign f and moment sign m (N axes) at the point x of N on the body of the port. For both craft alike: their sum is 0."""
    cdef double *on = w.f_ext + 6 * p.port.body
    cdef double r[3]
    cdef double t[3]
    vec3.sub(x, s.c, r)
    vec3.cross(r, f, t)
    vec3.add(t, m, t)
    vec3.add_scaled(w.force, sign, f, w.force)
    vec3.add_scaled(w.moment, sign, t, w.moment)
    port_arm(p, s, w, x, r)
    vec3.cross(r, f, t)
    vec3.add(t, m, t)
    rot3.apply_transposed(w.R_port, f, r)
    vec3.add_scaled(on, sign, r, on)
    rot3.apply_transposed(w.R_port, t, r)
    vec3.add_scaled(on + 3, sign, r, on + 3)


cdef inline void port_arm(const CraftParams *p, const CraftState *s, const Work *w, const double *x, double *r) noexcept nogil:
    """From the origin of the port's body to the point x of N, N axes."""
    cdef double t[3]
    rot3.apply(w.R, w.model.body[p.port.body].pose, t)
    vec3.sub(x, s.q, r)
    vec3.sub(r, t, r)


cdef void load_control(const CraftParams *p, const CraftState *s, Work *w, const double *control, const double *thrust,
                       const double *wheel_torque) noexcept nogil:
    """Thrusters where they are; what they and the wheels leave of the control wrench, at and in C, on the body that carries the control."""
    cdef const Body *b = &w.model.body[p.control]
    cdef double rest[6]
    cdef double f[3]
    cdef double zero[3]
    cdef double r[3]
    cdef int i, j
    memcpy(rest, control, sizeof(rest))
    vec3.fill(0.0, 0.0, 0.0, zero)
    for i in range(p.n_thrusters):
        if thrust[i] == 0.0:
            continue
        vec3.scale(thrust[i], p.thruster[i].direction, f)
        load_body(s, w, p.thruster[i].place.body, p.thruster[i].place.p, f, zero)
        for j in range(6):
            rest[j] -= thrust[i] * p.thruster[i].wrench[j]
    for i in range(p.n_wheels):
        # the motor turns the wheel by its torque and the craft by the opposite: within the tree
        vec3.add_scaled(rest + 3, wheel_torque[i], p.wheel_axis + 3 * i, rest + 3)
    # from the axes and the origin of the root to those of the body
    vec3.sub(w.whole.centre, b.pose, r)
    rot3.apply_transposed(b.pose + 3, r, r)
    rot3.apply_transposed(b.pose + 3, rest, rest)
    rot3.apply_transposed(b.pose + 3, rest + 3, rest + 3)
    load_body(s, w, p.control, r, rest, rest + 3)


cdef void fall(const Params *p, const CraftParams *craft, CraftState *s, const Reference *at, Work *w, double h, int load) noexcept nogil:
    """What the planet adds to the momentum in the time h; with `load` its forces on bodies and modes too. After `place_in_root`.

    Field near a body's origin: a + G x. Force m a + G d, moment d x a + of the gradient, load of a mode P_k . a + sum m phi_k . G rho.
    """
    cdef Body *b
    cdef const double *M
    cdef double r[3]
    cdef double a[3]
    cdef double u[3]
    cdef double G[9]
    cdef double R[9]
    cdef double f[3]
    cdef double m[3]
    cdef double t[3]
    cdef double d[3]
    cdef double I[9]
    cdef double force[3]
    cdef double moment[3]
    cdef double rate2, x
    cdef int i, j, k
    vec3.fill(0.0, 0.0, 0.0, force)
    vec3.fill(0.0, 0.0, 0.0, moment)
    for i in range(craft.bodies):
        b = &w.model.body[i]
        if b.mass == 0.0:
            continue
        # field at the body's origin, then on its axes
        quat.rotate(s.q + 3, b.pose, r)
        vec3.add(s.q, r, r)
        rate2 = tide(&p.orbit, at, r, a, u)
        rot3.multiply(w.R, b.pose + 3, R)
        rot3.apply_transposed(R, a, a)
        rot3.apply_transposed(R, u, u)
        gradient(rate2, u, G)
        # first moment and inertia of the deformed body, from its inertia before the elimination
        M = b.M0
        if b.s > 0:
            M = b.M
        vec3.fill(M[31], M[20], M[24], d)
        for j in range(3):
            for k in range(3):
                I[3 * j + k] = M[6 * (3 + j) + 3 + k]
        rot3.apply(G, d, f)
        vec3.add_scaled(f, b.mass, a, f)
        gradient_moment(I, G, m)
        vec3.cross(d, a, t)
        vec3.add(m, t, m)
        if load:
            vec3.add(w.f_ext + 6 * i, f, w.f_ext + 6 * i)
            vec3.add(w.f_ext + 6 * i + 3, m, w.f_ext + 6 * i + 3)
            for k in range(b.s):
                x = vec3.dot(b.P + 3 * k, a)
                for j in range(9):
                    x += G[j] * b.G[9 * k + j]
                w.tau[b.ev + k] += x
        # on the whole
        rot3.apply(R, f, f)
        rot3.apply(R, m, m)
        vec3.sub(r, s.c, r)
        vec3.cross(r, f, t)
        vec3.add(force, f, force)
        vec3.add(moment, m, moment)
        vec3.add(moment, t, moment)
    accumulate(h, force, s.P, s.P_rest)
    accumulate(h, moment, s.L, s.L_rest)


# ---------------------------------------------------------------------------------------------------------------------- one step

cdef void begin(const Params *p, const CraftParams *craft, CraftState *s, const Reference *at, Work *w, const double *control,
                const double *thrust, const double *wheel_torque) noexcept nogil:
    """Kinematics and inertia of a craft where it is, its port; all loads but those of the port."""
    cdef double h = p.period
    cdef double r[3]
    cdef double R[9]
    memset(w.f_ext, 0, 6 * craft.bodies * sizeof(double))
    memset(w.tau, 0, craft.nv * sizeof(double))
    vec3.fill(0.0, 0.0, 0.0, w.force)
    vec3.fill(0.0, 0.0, 0.0, w.moment)
    load_joints(craft, s, w, wheel_torque, h)
    move(w.model, s.q, s.v)
    place_in_root(w.model)
    quat.to_matrix(s.q + 3, w.R)
    rot3.multiply(w.R, w.model.body[craft.port.body].pose + 3, w.R_port)
    # centre of mass in the root, and the port
    vec3.sub(s.c, s.q, w.whole.centre)
    quat.rotate_back(s.q + 3, w.whole.centre, w.whole.centre)
    place_pose(w, &craft.port, r, R)
    quat.rotate(s.q + 3, r, w.X_port)
    vec3.add(s.q, w.X_port, w.X_port)
    quat.from_matrix(R, w.X_port + 3)
    quat.multiply(s.q + 3, w.X_port + 3, w.X_port + 3)
    load_control(craft, s, w, control, thrust, wheel_torque)
    if p.orbit.parameter > 0.0:
        fall(p, craft, s, at, w, 0.5 * h, 1)
    factor(w.model, 0.25 * h * h, h, w.known)


cdef void finish(const Params *p, const CraftParams *craft, CraftState *s, Work *w) noexcept nogil:
    """Momentum, rates, then places; the attitude with the rate at half the step. The twist of the root is settled by `see_craft`."""
    cdef double h = p.period
    cdef double V[6]
    cdef double t[3]
    cdef int i, iv
    accumulate(h, w.force, s.P, s.P_rest)
    accumulate(h, w.moment, s.L, s.L_rest)
    accumulate(h / craft.mass, s.P, s.c, s.c_rest)
    for i in range(craft.n_joints):
        iv = craft.joint[i].iv
        if craft.joint[i].wheel < 0:
            s.joint_energy += h * w.torque[i] * (s.v[iv] + 0.5 * h * w.a[iv])
    for i in range(6, craft.nv):
        s.v[i] += h * w.a[i]
    # half a step: attitude with the root's acceleration of the recursion
    vec3.add_scaled(s.v + 3, h, w.a + 3, t)
    quat.rotate(s.q + 3, t, t)
    quat.copy(s.q + 3, w.half + 3)
    quat.turn(t, 0.5 * h, w.half + 3)
    shift_internal(craft, s, 0.5 * h, w.half)
    compose(w.model, w.half, s.v, &w.whole)
    settle(s, &w.whole, w.half + 3, V)
    quat.rotate(w.half + 3, V + 3, t)
    # the step
    quat.turn(t, h, s.q + 3)
    for i in range(craft.n_joints):
        s.joint[i].angle += h * s.v[craft.joint[i].iv]
        s.joint[i].beyond = past_stop(&craft.joint[i], s.joint[i].angle)
    shift_internal(craft, s, h, s.q)
    see_craft(craft, s, w)


cdef void predicted_twist(const CraftParams *p, const CraftState *s, Work *w, const double *x, double h, double *V) noexcept nogil:
    """Twist, N axes, of the point of the port's body that is at x, with the rates at the end of the step."""
    cdef double u[6]
    cdef double r[3]
    cdef double t[3]
    cdef int i
    for i in range(p.nv):
        w.tau_out[i] = s.v[i] + h * w.a[i]
    twist_of(w.model, p.port.body, w.tau_out, u)
    rot3.apply(w.R_port, u, V)
    rot3.apply(w.R_port, u + 3, V + 3)
    port_arm(p, s, w, x, r)
    vec3.cross(V + 3, r, t)
    vec3.add(V, t, V)


cdef void add_mobility(const CraftParams *p, const CraftState *s, Work *w, const double *x, double *K) noexcept nogil:
    """K += accelerations of the port's body at x under unit wrenches there, N axes, (6, 6)."""
    cdef double r[3]
    cdef double t[3]
    cdef double f[3]
    cdef double m[3]
    cdef double F[6]
    cdef double A[6]
    cdef int i, j
    port_arm(p, s, w, x, r)
    for i in range(6):
        vec3.fill(0.0, 0.0, 0.0, f)
        vec3.fill(0.0, 0.0, 0.0, m)
        if i < 3:
            f[i] = 1.0
        else:
            m[i - 3] = 1.0
        vec3.cross(r, f, t)
        vec3.add(m, t, m)
        rot3.apply_transposed(w.R_port, f, F)
        rot3.apply_transposed(w.R_port, m, F + 3)
        respond(w.model, p.port.body, F, A)
        rot3.apply(w.R_port, A, f)
        rot3.apply(w.R_port, A + 3, m)
        vec3.cross(m, r, t)
        vec3.add(f, t, f)
        for j in range(3):
            K[6 * j + i] += f[j]
            K[6 * (3 + j) + i] += m[j]


cdef void drift_of_latch(const PairState *s, const double *X_TA, double *dp, double *phi) noexcept nogil:
    """Displacement and rotation of A, T axes, from the pose in which it was latched."""
    cdef double q[4]
    vec3.sub(X_TA, s.join_X_TA, dp)
    quat.conjugate(s.join_X_TA + 3, q)
    quat.multiply(X_TA + 3, q, q)
    quat.logarithm(q, phi)


cdef void latch(const Params *p, PairState *s, Work *w, const double *X_NT, const double *X_TA) noexcept nogil:
    """The wrench of the latches at the origin of T, after `begin` of both craft, into their loads and into the state."""
    cdef double K[36]
    cdef double u[6]
    cdef double V[12]           # of A, of T
    cdef double drift[6]
    cdef double t[3]
    cdef double h = p.period
    cdef double size
    cdef int i, k
    memset(K, 0, sizeof(K))
    for k in range(2):
        accelerate(w[k].model, 0.0, s.craft[k].q, s.craft[k].v, w[k].tau, w[k].f_ext, w[k].known, w[k].a, NULL)
        predicted_twist(&p.craft[k], &s.craft[k], &w[k], X_NT, h, V + 6 * k)
        add_mobility(&p.craft[k], &s.craft[k], &w[k], X_NT, K)
    for i in range(6):
        u[i] = V[i] - V[6 + i]
    # drift at the origin of T, N axes
    drift_of_latch(s, X_TA, drift, drift + 3)
    vec3.cross(drift + 3, X_TA, t)
    vec3.sub(drift, t, drift)
    for k in range(2):
        quat.rotate(X_NT + 3, drift + 3 * k, t)
        size = vec3.norm(t) * DRIFT_SHARE / h
        size = DRIFT_SHARE / h * (DRIFT_RATE_MAX / size if size > DRIFT_RATE_MAX else 1.0)
        vec3.add_scaled(u + 3 * k, size, t, u + 3 * k)
    cholesky(K, 6, 6)
    forward_solve(K, 6, 6, u)
    backward_solve(K, 6, 6, u)
    for i in range(6):
        u[i] /= h
    load_contact(&p.craft[ACTIVE], &s.craft[ACTIVE], &w[ACTIVE], -1.0, X_NT, u, u + 3)
    load_contact(&p.craft[TARGET], &s.craft[TARGET], &w[TARGET], 1.0, X_NT, u, u + 3)
    quat.rotate_back(X_NT + 3, u, s.latch)
    quat.rotate_back(X_NT + 3, u + 3, s.latch + 3)


cdef void one_step(Self *self, const Sample *o, int joined) noexcept nogil:
    """Accelerations of both craft for one period."""
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef double f[3]
    cdef double m[3]
    cdef double X_TA[7]
    cdef const double *X_NT = w[TARGET].X_port
    cdef bint orbiting = p.orbit.parameter > 0.0
    cdef int k
    begin(p, &p.craft[ACTIVE], &s.craft[ACTIVE], &s.reference, &w[ACTIVE], o.control_A, o.thruster_A, o.wheel_torque_A)
    begin(p, &p.craft[TARGET], &s.craft[TARGET], &s.reference, &w[TARGET], o.control_T, o.thruster_T, o.wheel_torque_T)
    if joined:
        pose.inverse(X_NT, X_TA)
        pose.multiply(X_TA, w[ACTIVE].X_port, X_TA)
        if not s.joined:
            pose.copy(X_TA, s.join_X_TA)
        latch(p, s, w, X_NT, X_TA)
    else:
        # the measured wrench on the target craft at and in T; the active one bears the opposite at the same point
        quat.rotate(X_NT + 3, o.F_T_corrected, f)
        quat.rotate(X_NT + 3, o.F_T_corrected + 3, m)
        load_contact(&p.craft[ACTIVE], &s.craft[ACTIVE], &w[ACTIVE], -1.0, X_NT, f, m)
        load_contact(&p.craft[TARGET], &s.craft[TARGET], &w[TARGET], 1.0, X_NT, f, m)
    s.joined = joined
    if orbiting:
        kick_reference(&p.orbit, 0.5 * p.period, &s.reference)
        drift_reference(p.period, &s.reference)
    for k in range(2):
        accelerate(w[k].model, 0.0, s.craft[k].q, s.craft[k].v, w[k].tau, w[k].f_ext, w[k].known, w[k].a, w[k].tau_out)
        if yields(&p.craft[k], &s.craft[k], &w[k], p.period):
            move(w[k].model, s.craft[k].q, s.craft[k].v)
            factor(w[k].model, 0.25 * p.period * p.period, p.period, w[k].known)
            accelerate(w[k].model, 0.0, s.craft[k].q, s.craft[k].v, w[k].tau, w[k].f_ext, w[k].known, w[k].a, w[k].tau_out)
        take_torques(&p.craft[k], &w[k])


cdef void end_step(Self *self) noexcept nogil:
    """Both craft to the end of the step that `one_step` has begun."""
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef int k
    for k in range(2):
        finish(p, &p.craft[k], &s.craft[k], &w[k])
    if p.orbit.parameter > 0.0:
        for k in range(2):
            quat.to_matrix(s.craft[k].q + 3, w[k].R)
            fall(p, &p.craft[k], &s.craft[k], &s.reference, &w[k], 0.5 * p.period, 0)
            see_craft(&p.craft[k], &s.craft[k], &w[k])
        kick_reference(&p.orbit, 0.5 * p.period, &s.reference)


cdef void start(Self *self, const double *X_TA, const double *V_TA) noexcept nogil:
    """Both craft from the relative pose and twist of the ports: joints and modes as at the start of a run, the craft's centre of mass with
    the motion of a rigid body; the target craft at the origin of N, at rest but for the orbital rate."""
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef CraftState *c
    cdef double X_NT[7]
    cdef double X_NA[7]
    cdef double X_RA[7]
    cdef double X[7]
    cdef double R[9]
    cdef double r[3]
    cdef double v[3]
    cdef double rate[3]
    cdef int i, k
    memset(s, 0, sizeof(PairState))
    start_reference(&p.orbit, &s.reference)
    for k in range(2):
        c = &s.craft[k]
        memcpy(c.q, p.craft[k].q, sizeof(c.q))
        memcpy(c.v, p.craft[k].v, sizeof(c.v))
        for i in range(p.craft[k].n_joints):
            c.joint[i].angle = p.craft[k].joint[i].angle
            set_mode(p, s, k, i, p.craft[k].joint[i].mode, c.joint[i].angle, 0.0)
            if driven_by_torque(&p.craft[k].joint[i]):
                c.joint[i].target = 0.0 if p.craft[k].joint[i].mode == JOINT_MODE_DRIVEN else c.joint[i].angle
        compose(w[k].model, c.q, c.v, &w[k].whole)
        place_in_root(w[k].model)
    # the target craft: root at rest in N
    c = &s.craft[TARGET]
    quat.identity(c.q + 3)
    place_root(c, &w[TARGET].whole)
    rot3.apply(w[TARGET].whole.inertia, p.orbital_rate, c.L)
    place_pose(&w[TARGET], &p.craft[TARGET].port, X_NT, R)
    vec3.add(X_NT, c.q, X_NT)
    quat.from_matrix(R, X_NT + 3)
    # the active craft: its port, then its root
    c = &s.craft[ACTIVE]
    pose.multiply(X_NT, X_TA, X_NA)
    place_pose(&w[ACTIVE], &p.craft[ACTIVE].port, X_RA, R)
    quat.from_matrix(R, X_RA + 3)
    pose.inverse(X_RA, X)
    pose.multiply(X_NA, X, c.q)
    quat.normalize(c.q + 3)
    quat.rotate(c.q + 3, w[ACTIVE].whole.centre, c.c)
    vec3.add(c.q, c.c, c.c)
    # w_A = w_V + R_NT w_TA; v_A = w_V x p_A + R_NT d/dt p_TA (V at rest at the origin); v_C = v_A + w x (c - p_A)
    quat.rotate(X_NT + 3, V_TA + 3, rate)
    vec3.add(rate, p.orbital_rate, rate)
    vec3.cross(p.orbital_rate, X_NA, v)
    quat.rotate(X_NT + 3, V_TA, r)
    vec3.add(v, r, v)
    vec3.sub(c.c, X_NA, r)
    vec3.cross(rate, r, r)
    vec3.add(v, r, v)
    vec3.scale(p.craft[ACTIVE].mass, v, c.P)
    quat.rotate_back(c.q + 3, rate, r)
    rot3.apply(w[ACTIVE].whole.inertia, r, r)
    quat.rotate(c.q + 3, r, c.L)
    for k in range(2):
        see_craft(&p.craft[k], &s.craft[k], &w[k])


# ---------------------------------------------------------------------------------------------------------------------- the tick

cdef void record_loads(const Params *p, const Work *w, CraftsRecord *record) noexcept nogil:
    """What sensors and interfaces of both craft feel over the step, after `one_step`."""
    cdef const Body *b
    cdef const Place *place
    cdef double a[3]
    cdef double t[3]
    cdef int i, k, sensor = 0, interface = 0
    for k in range(2):
        for i in range(p.craft[k].n_sensors):
            place = &p.craft[k].sensor[i]
            b = &w[k].model.body[place.body]
            # a + alpha x p + w x (w x p), axes of the place
            vec3.cross(b.V + 3, place.p, t)
            vec3.cross(b.V + 3, t, a)
            vec3.cross(b.A + 3, place.p, t)
            vec3.add(a, t, a)
            vec3.add(a, b.A, a)
            rot3.apply_transposed(place.R, a, record.sensor_acceleration + 3 * sensor)
            rot3.apply_transposed(place.R, b.V + 3, record.sensor_rate + 3 * sensor)
            sensor += 1
        for i in range(p.craft[k].n_interfaces):
            memcpy(record.interface_wrench + 6 * interface, w[k].model.body[p.craft[k].interface[i]].F, 6 * sizeof(double))
            interface += 1


cdef void record_joints(const Params *p, const PairState *s, const Work *w, CraftsRecord *record) noexcept nogil:
    cdef int i, k, n = 0
    for k in range(2):
        for i in range(p.craft[k].n_joints):
            record.joint_position[n] = s.craft[k].joint[i].angle
            record.joint_rate[n] = s.craft[k].v[p.craft[k].joint[i].iv]
            record.joint_torque[n] = w[k].torque[i]
            record.joint_mode[n] = s.craft[k].joint[i].mode
            n += 1
        record.modal_energy[k] = w[k].modal_energy


cdef inline void take_place(const CraftParams *p, const CraftState *s, double *X, double *V, double *rate) noexcept nogil:
    """Pose and velocity of the centre of mass, attitude and angular velocity of the root; rates of the wheels."""
    cdef int i
    vec3.copy(s.c, X)
    quat.copy(s.q + 3, X + 3)
    vec3.scale(1.0 / p.mass, s.P, V)
    quat.rotate(s.q + 3, s.v + 3, V + 3)
    for i in range(p.n_wheels):
        rate[i] = s.v[p.joint[p.wheel[i]].iv]


cdef void step(void *self_, Sample *sample, double *aux) noexcept nogil:
    cdef Self *self = <Self *>self_
    cdef CraftsRecord *record = <CraftsRecord *>aux
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef int n = sample.periods
    cdef int i, k
    cdef double elapsed
    cdef double V_before[6]
    cdef double X_TA[7]
    cdef double V_TA[6]
    cdef double t[3]
    cdef double u[3]
    if n < 1:
        n = 1
    elapsed = n * p.period
    for i in range(6):
        V_before[i] = s.V_TA[i]
        sample.A_TA[i] = 0.0
    memset(record, 0, sizeof(CraftsRecord))
    for k in range(2):
        memset(w[k].torque, 0, sizeof(w[k].torque))
    if sample.motion == MOTION_FREE or sample.motion == MOTION_JOINED:
        # what acts on the craft, over the true elapsed time
        change_modes(p, s, sample)
        for i in range(n):
            one_step(self, sample, sample.motion == MOTION_JOINED)
            if i == n - 1:
                record_loads(p, w, record)
            end_step(self)
        relative_motion(&w[ACTIVE], &w[TARGET], X_TA, V_TA)
        if s.joined:
            pose.copy(s.join_X_TA, sample.X_TA)
            memset(sample.V_TA, 0, sizeof(sample.V_TA))
            memcpy(record.latch_wrench, s.latch, sizeof(s.latch))
            drift_of_latch(s, X_TA, t, u)
            record.latch_drift[0] = vec3.norm(t)
            record.latch_drift[1] = vec3.norm(u)
        else:
            pose.copy(X_TA, sample.X_TA)
            for i in range(6):
                sample.V_TA[i] = V_TA[i]
                sample.A_TA[i] = (V_TA[i] - V_before[i]) / elapsed
    elif sample.motion == MOTION_CLOSE_LOOP:
        # bumpless: from the achieved pose and twist, not from the commanded ones
        start(self, sample.X_TA_measured, sample.V_TA_measured)
        take_motion(sample, sample.X_TA_measured, sample.V_TA_measured)
    elif sample.motion == MOTION_FOLLOW_PROFILE:
        start(self, sample.profile_X_TA, sample.profile_V_TA)
        take_motion(sample, sample.profile_X_TA, sample.profile_V_TA)
        for i in range(6):
            sample.A_TA[i] = sample.profile_A_TA[i]
    else:
        # frozen: the relative pose stays
        for k in range(2):
            see_craft(&p.craft[k], &s.craft[k], &w[k])
        for i in range(6):
            sample.V_TA[i] = 0.0
    for i in range(6):
        s.V_TA[i] = sample.V_TA[i]
    # absolute states, invariants, and the model's own verdict
    take_place(&p.craft[ACTIVE], &s.craft[ACTIVE], sample.X_NC, sample.V_NC, sample.wheel_rate_A)
    take_place(&p.craft[TARGET], &s.craft[TARGET], sample.X_NV, sample.V_NV, sample.wheel_rate_T)
    memset(sample.momentum, 0, sizeof(sample.momentum))
    sample.kinetic_energy = 0.0
    for k in range(2):
        vec3.cross(s.craft[k].c, s.craft[k].P, t)
        vec3.add(t, s.craft[k].L, t)
        vec3.add(sample.momentum, s.craft[k].P, sample.momentum)
        vec3.add(sample.momentum + 3, t, sample.momentum + 3)
        sample.kinetic_energy += w[k].kinetic
    # in the frame of the common centre of mass
    sample.kinetic_energy -= 0.5 * vec3.dot(sample.momentum, sample.momentum) / (p.craft[ACTIVE].mass + p.craft[TARGET].mass)
    record_joints(p, s, w, record)
    sample.dynamics_status = verdict(sample, sample.kinetic_energy, p.range_max, s.joined)
    for k in range(2):
        sample.joint_energy[k] = s.craft[k].joint_energy
        if not s.craft[k].joint_energy <= p.craft[k].joint_energy_max:
            sample.dynamics_status |= DYNAMICS_STATUS_JOINT_ENERGY


# ------------------------------------------------------------------------------------------------------------------------ set-up

FRICTION_RATE = 1e-3            # v_f: below it Coulomb friction is a damper, rad/s or m/s
TARGET_MAX = 1e6                # of a joint, as the command has it
STOP_HZ = 20.0                  # a joint against its stop swings with this frequency, with the damping ratio 0.5

EVENTS = {"time": AT_TIME, "first_contact": AT_FIRST_CONTACT, "capture": AT_CAPTURE}
SIDES = ("active", "target")
_MODES = tuple(CODES["joint_mode"])
_CHANGE = (
    Parameter("craft", "str", "-", "whose joint", choices=SIDES),
    Parameter("joint", "str", "-", "name of the joint"),
    Parameter("mode", "str", "-", "its mode from then on", choices=_MODES),
    Parameter("event", "str", "-", "what the time counts from: the start of the run, the first contact, the capture", "time",
              choices=tuple(EVENTS)),
    Parameter("after_s", "float", "s", "time after the event", 0.0, low=0.0, high=1e6),
    Parameter("target", "float", "rad, m, N.m or N", "place, or torque of a driven joint without gains", 0.0, low=-1e6, high=1e6),
    Parameter("time_s", "float", "s", "how long the path to the target takes at least", 0.0, low=0.0, high=1e4),
)
_MODAL_START = (
    Parameter("craft", "str", "-", "whose body", choices=SIDES),
    Parameter("body", "str", "-", "name of the flexible body"),
    Parameter("coordinates", "floats", "-", "modal coordinates when the loop closes", [], low=-1e6, high=1e6),
    Parameter("rates", "floats", "1/s", "their rates", [], low=-1e6, high=1e6),
)


def _limit(where, count, limit):
    if count > limit:
        raise ValueError(f"{where}: {count}, limit {limit}")


def targets_of(settings, kind):
    """Least and largest target of a joint with these settings (`JointSettings`), unit and whose limit it is, by the code of the mode."""
    slides = kind == "prismatic"
    stops = (max(settings.lower, -TARGET_MAX), min(settings.upper, TARGET_MAX), "m" if slides else "rad", "its stops")
    effort = min(settings.effort, TARGET_MAX)
    torque = not settings.servo_stiffness and not settings.servo_damping
    by_mode = {"given": stops, "driven": (-effort, effort, "N" if slides else "N.m", "its effort") if torque else stops}
    return tuple(by_mode.get(mode) for mode in _MODES)


def rigid_craft(name, vehicle):
    """A vehicle without bodies of its own as a craft of one: its centre of mass in the origin."""
    body = ModalBody.rigid(float(vehicle.mass_kg), inertia=np.asarray(vehicle.inertia_kg_m2, float))
    cdef double R[9]
    cdef double[::1] X = np.array(vehicle.X_port, dtype=float)
    quat.to_matrix(&X[3], R)
    port = CraftPort(DOCKING, name, np.array(vehicle.X_port[:3], float), np.array([R[i] for i in range(9)]).reshape(3, 3))
    return Craft(name, (Link(name, body, joint="free"),), (port,))


cdef class TwoCrafts(StagePart):
    """Dynamics of two free spacecraft, each any tree of rigid and flexible bodies (`rt_kernels.model.craft.Craft`); a vehicle without one
    is rigid. Raises ValueError for a craft that is no free-flyer, counts above the limits, unknown names, and a mass that disagrees.

    .trees: (active, target), the `FlexibleTree` of each, with a massless link at every place on a flexible body; .joints, .sensors,
    .interfaces: names in the order of the channels, "active arm_1"; .joint_targets: of each joint, least and largest target with its unit
    by the code of the mode, None where the mode has none; .notes: the names in words, for the log."""

    PARAMETERS = (
        Parameter("active_port", "str", "-", "docking port of the active craft", DOCKING),
        Parameter("target_port", "str", "-", "docking port of the target craft", DOCKING),
        Parameter("joint_changes", "tables", "-", "changes of the modes of joints: craft, joint, mode, event, after_s, target, time_s", []),
        Parameter("modal_start", "tables", "-", "deformation when the loop closes: craft, body, coordinates, rates", []),
        Parameter("range_max_m", "float", "m", "ports further apart than this are out of the model's range", 5.0, low=0.01, high=1000.0),
        Parameter("joint_energy_max_j", "float", "J", "most that the joints of a craft, wheels left out, may give its bodies in a run",
                  1000.0, low=1e-3, high=1e9),
    )
    AUX = AUX
    COMMANDS = (Command("joint", ("contact", "latched"), (0, 1), names_of="joints", targets_of="joint_targets"),)
    CONTEXT = ("period_s", "vehicles", "start", "orbit")
    FLIES = ("joints", "modes of its bodies", "wheels", "thrusters", "sensors", "interfaces")
    FREE_VEHICLES = True
    cdef Self c
    cdef readonly tuple trees
    cdef readonly tuple joints
    cdef readonly tuple joint_targets
    cdef readonly tuple sensors
    cdef readonly tuple interfaces
    cdef readonly tuple notes

    def __init__(self, *, period_s, vehicles, start, orbit=None, **given):
        cdef Params *p = &self.c.flat.params
        cdef double X[7]
        cdef double V[6]
        cdef int i
        keys = checked(TwoCrafts.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        p.period = period_s
        p.range_max = keys["range_max_m"]
        for i in range(3):
            p.orbital_rate[i] = start.orbital_rate_rad_s[i]
        fill_orbit(&p.orbit, orbit)
        trees, self.joints, self.joint_targets, self.sensors, self.interfaces = [], (), (), (), ()
        for k, (side, vehicle) in enumerate(zip(SIDES, (vehicles.active, vehicles.target), strict=True)):
            craft = vehicle.craft if vehicle.craft is not None else rigid_craft(f"{side} craft", vehicle)
            trees.append(self._fill(k, f"{side} craft {craft.name}", craft, keys[f"{side}_port"], keys["modal_start"],
                                    keys["joint_energy_max_j"]))
            if not abs(vehicle.mass_kg - p.craft[k].mass) <= 1e-9 * p.craft[k].mass:
                raise ValueError(f"{side} craft: mass_kg of the vehicle is {vehicle.mass_kg:.12g} kg, its bodies have "
                                 f"{p.craft[k].mass:.12g} kg: give both the same mass")
        self.trees = tuple(trees)
        for what, names, limit in (("joints of one degree of freedom", self.joints, MAX_JOINTS), ("sensors", self.sensors, MAX_SENSORS),
                                   ("interfaces", self.interfaces, MAX_INTERFACES)):
            _limit(f"{what} of both craft", len(names), limit)
        self._fill_changes(keys["joint_changes"])
        self.notes = tuple(f"{what} {', '.join(names)}" for what, names in
                           (("joints", self.joints), ("sensors", self.sensors), ("interfaces", self.interfaces)) if names)
        self.plug.self = &self.c
        self.plug.self_size = 0
        self.plug.state = &self.c.flat.state
        self.plug.state_size = sizeof(PairState)
        self.plug.step = step
        pose.identity(X)
        memset(V, 0, sizeof(V))
        start_at(&self.c, X, V)

    def _fill(self, int k, where, craft, port_name, modal_start, joint_energy_max):
        """Parameters and working memory of one craft; its tree."""
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef Work *w = &self.c.work[k]
        cdef FlexibleTree tree
        cdef Body *b
        cdef Joint *joint
        cdef int i
        links, place_of = _with_places(craft)
        roots = [link.name for link in craft.links if link.parent is None]
        if len(roots) != 1 or next(link.joint for link in craft.links if link.parent is None) != "free":
            raise ValueError(f"{where}: exactly one root body with a free joint is needed, roots: {', '.join(roots)}")
        others = [link.name for link in craft.links if link.parent is not None and link.joint == "free"]
        if others:
            raise ValueError(f"{where}: bodies {', '.join(others)} hang on a free joint, only the root may")
        # springs and dampers are this part's, by the mode of the joint
        tree = FlexibleTree([replace(link, armature=0.0, stiffness=0.0, damping=0.0) for link in links], rates=craft.rates)
        w.model = &tree.model
        _limit(f"{where}: bodies, places on flexible bodies included", tree.model.n, MAX_BODIES)
        _limit(f"{where}: coordinates", tree.nq, MAX_Q)
        _limit(f"{where}: velocity coordinates", tree.nv, MAX_V)
        p.bodies, p.nq, p.nv, p.nj = tree.model.n, tree.nq, tree.nv, tree.nj
        p.mass = sum(link.body.mass for link in links)
        p.friction_rate = FRICTION_RATE
        p.joint_energy_max = joint_energy_max
        p.control = tree.index(craft.control_body or roots[0])
        q, v = tree.neutral(), np.zeros(tree.nv)
        # joints
        names = []
        settings = {s.joint: s for s in craft.joints}
        for i in range(1, tree.model.n):
            b = &tree.model.body[i]
            link = tree.links[i]
            if b.joint == SPHERICAL:
                _limit(f"{where}: spherical joints", p.n_balls + 1, MAX_BALLS)
                p.ball_iq[p.n_balls], p.ball_iv[p.n_balls] = b.iq, b.iv
                p.n_balls += 1
            if b.nd != 1:
                continue
            if link.joint_name not in settings:
                raise ValueError(f"{where}: joint {link.joint_name!r} has no settings; there are {', '.join(settings) or 'none'}")
            _limit(f"{where}: joints of one degree of freedom", p.n_joints + 1, MAX_JOINTS)
            given = settings[link.joint_name]
            joint = &p.joint[p.n_joints]
            joint.body, joint.iq, joint.iv, joint.turns, joint.wheel = i, b.iq, b.iv, b.joint == CONTINUOUS, -1
            joint.mode = CODES["joint_mode"][given.mode]
            joint.angle, joint.stiffness, joint.damping = given.angle, given.stiffness, given.damping
            joint.friction, joint.armature, joint.effort, joint.rate = given.friction, given.armature, given.effort, given.rate
            joint.servo_stiffness, joint.servo_damping = given.servo_stiffness, given.servo_damping
            joint.lower, joint.upper = given.lower, given.upper
            b.armature = given.armature
            if joint.turns:
                q[b.iq], q[b.iq + 1] = np.cos(given.angle), np.sin(given.angle)
            else:
                q[b.iq] = given.angle
            names.append(link.joint_name)
            self.joint_targets += (targets_of(given, link.joint),)
            p.n_joints += 1
        unknown = [name for name in settings if name not in names]
        if unknown:
            raise ValueError(f"{where}: settings of a joint {unknown[0]!r} that has not one degree of freedom or does not exist")
        for table in modal_start:
            table = checked(_MODAL_START, table, "modal_start")
            if table["craft"] == SIDES[k]:
                _start_modes(tree, where, table, q, v)
        for i, x in enumerate(q):
            p.q[i] = x
        for i, x in enumerate(v):
            p.v[i] = x
        self._stops(k, tree, q)
        # places, at the start
        compose(w.model, p.q, p.v, &w.whole)
        place_in_root(w.model)
        port = craft.port(port_name)
        _fill_place(&p.port, tree, place_of(port.body, port.node), port.position, port.rotation)
        _limit(f"{where}: thrusters", len(craft.thrusters), MAX_THRUSTERS)
        for number, thruster in enumerate(craft.thrusters):
            self._fill_thruster(k, number, tree, place_of, thruster)
        _limit(f"{where}: wheels", len(craft.wheels), MAX_WHEELS)
        for number, wheel in enumerate(craft.wheels):
            self._fill_wheel(k, number, where, names, wheel)
        _limit(f"{where}: sensors", len(craft.sensors), MAX_SENSORS)
        for sensor in craft.sensors:
            _fill_place(&p.sensor[p.n_sensors], tree, place_of(sensor.body, sensor.node), sensor.position, np.eye(3))
            p.n_sensors += 1
        _limit(f"{where}: interfaces", len(craft.interfaces), MAX_INTERFACES)
        for interface in craft.interfaces:
            p.interface[p.n_interfaces] = tree.index(interface.body)
            p.n_interfaces += 1
        self.joints += tuple(f"{SIDES[k]} {name}" for name in names)
        self.sensors += tuple(f"{SIDES[k]} {sensor.name}" for sensor in craft.sensors)
        self.interfaces += tuple(f"{SIDES[k]} {interface.name}" for interface in craft.interfaces)
        return tree

    def _stops(self, int k, FlexibleTree tree, q):
        """Spring and damper of the stops, from what each joint alone has to move at the start."""
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef int i
        if not p.n_joints:
            return
        mobility = np.linalg.inv(tree.mass_matrix(q))
        for i in range(p.n_joints):
            inertia = 1.0 / mobility[p.joint[i].iv, p.joint[i].iv]
            p.joint[i].inertia = inertia
            p.joint[i].stop_stiffness = inertia * (2.0 * np.pi * STOP_HZ) ** 2
            p.joint[i].stop_damping = inertia * 2.0 * np.pi * STOP_HZ

    def _fill_thruster(self, int k, int number, FlexibleTree tree, place_of, thruster):
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef Thruster *out = &p.thruster[number]
        cdef double r[3]
        cdef double R[9]
        cdef int i
        _fill_place(&out.place, tree, place_of(thruster.body, thruster.node), thruster.position, np.eye(3))
        direction = np.asarray(thruster.direction, float) / np.linalg.norm(thruster.direction)
        for i in range(3):
            out.direction[i] = direction[i]
        # direction in the axes of the place, then of its body
        rot3.apply(out.place.R, out.direction, out.direction)
        place_pose(&self.c.work[k], &out.place, r, R)
        rot3.apply(self.c.work[k].model.body[out.place.body].pose + 3, out.direction, out.wrench)
        vec3.sub(r, self.c.work[k].whole.centre, r)
        vec3.cross(r, out.wrench, out.wrench + 3)
        p.n_thrusters += 1

    def _fill_wheel(self, int k, int number, where, names, wheel):
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef Body *b
        if wheel.joint not in names:
            raise ValueError(f"{where}: wheel {wheel.name!r}: no joint {wheel.joint!r}; there are {', '.join(names)}")
        p.wheel[number] = names.index(wheel.joint)
        p.joint[p.wheel[number]].wheel = number
        b = &self.c.work[k].model.body[p.joint[p.wheel[number]].body]
        rot3.apply(b.pose + 3, b.axis, p.wheel_axis + 3 * number)
        p.n_wheels += 1

    def _fill_changes(self, tables):
        cdef Params *p = &self.c.flat.params
        cdef Change *change
        _limit("joint_changes", len(tables), MAX_CHANGES)
        for number, table in enumerate(tables):
            where = f"joint_changes[{number}]"
            table = checked(_CHANGE, table, where)
            k = SIDES.index(table["craft"])
            names = [name.split(" ", 1)[1] for name in self.joints if name.startswith(f"{table['craft']} ")]
            if table["joint"] not in names:
                raise ValueError(f"{where}: no joint {table['joint']!r} of the {table['craft']} craft; there are "
                                 f"{', '.join(names) or 'none'}")
            change = &p.change[number]
            change.craft, change.joint, change.mode = k, names.index(table["joint"]), CODES["joint_mode"][table["mode"]]
            change.event, change.after = EVENTS[table["event"]], table["after_s"]
            change.target, change.duration = table["target"], table["time_s"]
            limits = self.joint_targets[self.joints.index(f"{table['craft']} {table['joint']}")][change.mode]
            if limits is not None and not limits[0] <= change.target <= limits[1]:
                raise ValueError(f"{where}.target: {change.target:g} {limits[2]} of joint {table['joint']!r}, limit {limits[0]:g} ... "
                                 f"{limits[1]:g} {limits[2]} ({limits[3]})")
            p.n_changes += 1

    def keep_rates(self, bytes snapshot):
        """The state of a part with other masses: poses and rates stay to the bit, momenta become those of these craft, to which the rates
        of the next step belong to rounding. Raises ValueError."""
        cdef JointState *j
        cdef double beyond
        cdef int i, k
        self.restore(snapshot)
        for k in range(2):
            for i in range(self.c.flat.params.craft[k].n_joints):
                # a stop that is elsewhere now has taken nothing yet
                j = &self.c.flat.state.craft[k].joint[i]
                beyond = past_stop(&self.c.flat.params.craft[k].joint[i], j.angle)
                if beyond != j.beyond:
                    j.beyond = j.unloaded = beyond
            carry_over(&self.c.flat.state.craft[k], &self.c.work[k])

    def coordinates(self, int craft):
        """(q, v) of a craft's tree (0 active, 1 target), after the last step; the root's position in N, twist on its own axes."""
        cdef CraftState *s = &self.c.flat.state.craft[craft]
        cdef int i
        return (np.array([s.q[i] for i in range(self.c.flat.params.craft[craft].nq)]),
                np.array([s.v[i] for i in range(self.c.flat.params.craft[craft].nv)]))

    def dump(self):
        """Constants of both craft and of their bodies, and the state: the modes of another machine's linear algebra are others."""
        return PyBytes_FromStringAndSize(<const char *>&self.c.flat, sizeof(Flat)) + b"".join(_constants(tree) for tree in self.trees)

    def state_bounds(self):
        return {"craft.joint.mode": code_range("joint_mode"), "craft.joint.yields": FLAG, "joined": FLAG, "done": WORD}

    def fields(self):
        return self.c.flat

    def load_unchecked(self, bytes block):
        """Raises ValueError when the block is that of other bodies."""
        own = [_constants(tree) for tree in self.trees]
        if <size_t>len(block) != sizeof(Flat) + sum(map(len, own)):
            raise ValueError(f"block has {len(block)} bytes, this part has {sizeof(Flat) + sum(map(len, own))}: other bodies")
        memcpy(&self.c.flat, PyBytes_AS_STRING(block), sizeof(Flat))
        at = sizeof(Flat)
        for tree, part in zip(self.trees, own, strict=True):
            _take_constants(tree, block[at:at + len(part)])
            at += len(part)


def _with_places(craft):
    """Links of a craft with a massless one at every port of a flexible body that something of the craft names, and the function
    (body, node) -> (link, port of it or None) that finds the place."""
    by_name = {link.name: link for link in craft.links}
    links = list(craft.links)
    for thing in (*craft.ports, *craft.thrusters, *craft.sensors):
        if thing.body not in by_name:
            raise ValueError(f"{craft.name}: {thing.name!r}: no body {thing.body!r}; there are {', '.join(by_name)}")
        body = by_name[thing.body].body
        body.port_arrays(thing.node)
        name = f"{thing.body}:{thing.node}"
        if thing.node is not None and body.n_modes and name not in by_name:
            by_name[name] = Link(name, ModalBody(0.0, np.zeros(3), np.zeros((3, 3))), thing.body, thing.node)
            links.append(by_name[name])

    def place_of(body, node):
        name = f"{body}:{node}"
        return (name, None) if name in by_name else (body, node)

    return links, place_of


def _start_modes(tree, where, table, q, v):
    if table["body"] not in tree.names:
        raise ValueError(f"{where}: modal_start: no body {table['body']!r}; there are {', '.join(tree.names)}")
    for key, out, part in zip(("coordinates", "rates"), (q, v), tree.modal_coordinates(table["body"]), strict=True):
        if table[key]:
            if len(table[key]) != part.stop - part.start:
                raise ValueError(f"{where}: modal_start.{key} of {table['body']}: {len(table[key])} numbers, limit "
                                 f"{part.stop - part.start} (its modes)")
            out[part] = table[key]


cdef void _fill_place(Place *out, FlexibleTree tree, where, position, rotation):
    """A frame by position and rotation at a port of a body (its frame: None)."""
    cdef int i
    name, node = where
    out.body = tree.index(name)
    p, R, _, _ = tree.links[out.body].body.port_arrays(node)
    for i, x in enumerate(np.asarray(p) + R @ np.asarray(position, float)):
        out.p[i] = x
    for i, x in enumerate((R @ np.asarray(rotation, float)).ravel()):
        out.R[i] = x


cdef size_t _body_size(Body *b) noexcept:
    """Bytes of the constants of a body, up to its pointers."""
    return <char *>&b.phi - <char *>b.axis


cdef bytes _constants(FlexibleTree tree):
    """Constants of all bodies, then their integrals over the modes."""
    cdef int i
    parts = [PyBytes_FromStringAndSize(<char *>tree.model.body[i].axis, _body_size(&tree.model.body[i])) for i in range(tree.model.n)]
    parts.append(PyBytes_FromStringAndSize(<char *>tree.pool, tree.pool_size * sizeof(double)))
    return b"".join(parts)


cdef int _take_constants(FlexibleTree tree, bytes block) except -1:
    cdef int i
    cdef size_t size = _body_size(&tree.model.body[0])
    cdef const char *at = PyBytes_AS_STRING(block)
    for i in range(tree.model.n):
        memcpy(<char *>tree.model.body[i].axis, at, size)
        at += size
    memcpy(<char *>tree.pool, at, tree.pool_size * sizeof(double))
    return 0


cdef void start_at(Self *self, const double *X_TA, const double *V_TA) noexcept:
    start(self, X_TA, V_TA)
