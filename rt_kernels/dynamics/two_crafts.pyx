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

Second order, chosen by the craft (`Craft.step`): the same equations at the middle of the step, places moved with the mean of the rates,

    q_m = q + h/2 v      M(q_m) a = F(x_m, v + h/2 a) - b(q_m, v_m)      v+ = v + h a      q+ = q + h (v + h/2 a)

with springs and dampers implicit as above (h^2/4 K + h/2 D) and the velocity terms b at v_m = v + h/2 a of an evaluation before at v. It is
the midpoint rule with one corrector: no start-up, no values of earlier ticks (a branch, a restart or a change of a joint's mode leaves
nothing behind), forces that are constant over a tick exact to second order. A leapfrog costs as little as the first order, but has its
rates half a step from its places. The measured wrench between the ports is a blow at the beginning of the step, as in the first order: held
over the step, a spring in the contact would gain energy. Dry friction is set-valued: it holds a joint that stands with what is needed, up
to F_c, by the recursion for known accelerations. In orbit the planet acts at the middle of the step.

Modes of a joint of one degree of freedom, changed during a run by `joint_changes` or by the command `joint`:

    locked   stands still from the tick of the change on
    free     spring, damper, Coulomb friction F_c v / max(|v|, v_f), all implicit (second order: friction that holds)
    given    follows x(t): from where it is and as fast as it is, to the target at rest, a polynomial of fifth degree
    driven   the same path as the reference of a servo k (x_r - x) + d (x_r' - v), limited; without gains the target is the torque

Accelerations of given and locked joints are known to the recursion, which returns the forces that they need (mixed forward and inverse
dynamics). A given joint that would need more than its drive's effort gets the effort for the tick, and a path from where it is then.

The control commands a driven joint by `joint_target`: the reference of its servo moves there at the rate of its drive at most and counts as
at rest (the damper brakes the joint's own rate), or the target is the torque of this tick. Left alone, the reference stays; a torque ends.

Beyond a stop a spring and a damper push back. No path leads there: targets and references end at the stop. What stands beyond one when it
is released, or when a branch moves the stop, has an unloaded spring, which follows the joint back: a stop gives no energy that it has not
taken.
The work of all joints but the wheels', h tau (v + v+) / 2 a tick, is `joint_energy`, with the limit `joint_energy_max_j`.

A profile (`rt_kernels.model.profiles`), a function of the time since an event, moves a given or driven joint: place, or torque of a servo
without gains, = target + amplitude x profile. A joint that is elsewhere comes onto it along the path of fifth degree. `loads` are forces
and moments on named bodies, constant or times a profile, on the axes of the body or of N. An event is the start of the run, the first
contact, the capture, or a phase when it is entered first; the loop closes with the phase contact.

A reaction wheel is a continuous joint with the torque `wheel_torque`.

Joined: a wrench l of the latches at one point of space, equal and opposite, that takes the relative twist u of the ports to zero:

    (J_A M_A^-1 J_A^T + J_T M_T^-1 J_T^T) l = (u - u*) / h

by unit wrenches through both trees (M^-1 of the implicit step), u* = -0.1/h times the drift of the pose, bounded. Released, both continue
with the velocities they have. An impulse, of a latch or of a lock, is the mean of its first tick: it is in that tick's torques and
wrenches.

Held: with `grasp_port` the target craft has an arm whose end E holds the active craft, as it is there when the loop closes, by such a
wrench at and in E, beside the measured one between the ports; latched ports take the place of the grasp. The guidance leads the arm by the
twist [v; w] of A (of E in its own axes) against the root of the target craft that it asks for in `operator_rate`:

    q'_r = J^T (J J^T + lambda^2 S)^-1 [v_E; w]      v_E = v + w x (p_E - p_A)

with the damping near singularities of `rt_kernels.dynamics.manipulator.resolved_rate`, all alike no faster than their drives: rates of the
references of the servos between E and the root. So in the arm mode `hand`; `single_joint` moves one of them, `limp`: none pulls; in the
others they hold. A camera has the axes of A.

Control: every thruster pushes where it is, `wheel_torque` turns the wheels, and what is left of the control wrench (which is the resultant
of all of them for a rigid craft) acts at and in C on the body that carries the control (`Craft.control_body`, else the root). A root that
bends is a floating frame: a wrench on it would act on all of its mass at once, and bend nothing.

With an orbit every body feels the difference of gravity to the origin of N and its gradient, coupled with the deformation: half a kick of
momentum before and half after the step, joints and modes with the first.

Frames: N inertial, or without rotation on a reference orbit; C, V centres of mass of the active and the target craft, axes of their roots;
A and T their ports; E the port that holds. Units SI; wrenches force first, twists linear first.
Sources: mixed forward and inverse dynamics: Meng and Han 2007, sections 3-5; recursion: `rt_kernels.multibody.flexible_recursion`; orbit:
`rt_kernels.dynamics.orbit`.
"""

from libc.math cimport fabs, sqrt
from libc.stddef cimport size_t
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from dataclasses import replace

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from rt_kernels.algebra.values cimport (Mat3, Pose, Quat, Twist, Vec3, Wrench, add, apply, compose, conjugate, cross, dot, exponential,
                                        inverse, logarithm, mat, mat_multiply, mat_solve, mat_transposed_vec, mat_vec, mul, norm,
                                        normalized, pose, pose_of, put, put_mat, put_pose, put_quat, put_twist, put_wrench, quat,
                                        quat_multiply, quat_of, rotate, rotate_back, sub, to_matrix, transposed, turned, twist, twist_of,
                                        vec, wrench, wrench_of, wrench_sum, xyz, xyzw)
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.codes cimport (ARM_MODE_HAND, ARM_MODE_LIMP, ARM_MODE_SINGLE_JOINT, COMMAND_JOINT, DYNAMICS_STATUS_JOINT_ENERGY,
                               DYNAMICS_STATUS_NEAR_SINGULAR, JOINT_MODE_DRIVEN, JOINT_MODE_GIVEN, JOINT_MODE_LOCKED, MOTION_CLOSE_LOOP,
                               MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED, RATE_FRAME_END_EFFECTOR, RATE_FRAME_TARGET)
from rt_kernels.dynamics.manipulator.resolved_rate cimport ARM_JOINTS, damped_rates
from rt_kernels.dynamics.orbit cimport (Orbit, Reference, Tide, drift_reference, fill_orbit, gradient, gradient_moment,
                                        kick_reference, start_reference, tide)
from rt_kernels.dynamics.profile cimport Profile, follow
from rt_kernels.dynamics.two_bodies cimport accumulate, relative_twist, take_motion, verdict
from rt_kernels.dynamics.two_crafts_record cimport CraftsRecord, places_of
from rt_kernels.multibody.flexible cimport FlexibleTree
from rt_kernels.multibody.flexible_algebra cimport backward_solve, cholesky, forward_solve
from rt_kernels.multibody.flexible_recursion cimport (CONTINUOUS, SPHERICAL, Body, Composite, Model, accelerate,
                                                      compose as compose_tree, factor, move, place_in_root, respond,
                                                      twist_of as twist_in_tree)
from rt_kernels.dynamics.two_crafts_parameters cimport TwoCraftsParameters, fill_two_crafts
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG, WORD, code_range
from rt_kernels.dynamics.two_crafts_record import AUX
from rt_kernels.layout import CODES
from rt_kernels.model.craft import DOCKING, Craft, CraftPort, Link
from rt_kernels.model.modes import ModalBody
from rt_kernels.model.profiles import KEYS as PROFILE_KEYS, Profile as ProfileOf, with_data
from rt_kernels.parameters import Aux, Command, Parameter, checked

cdef enum:
    ACTIVE = 0
    TARGET = 1
    MAX_V = 256                 # velocity coordinates of a craft, the root's six included
    MAX_Q = 305                 # one more for the root, for each continuous and each spherical joint
    MAX_BODIES = 128            # of a craft, places on bodies that bend included
    MAX_JOINTS = 40             # of one degree of freedom, both craft together: as in the sample
    MAX_BALLS = 8               # spherical joints of a craft
    MAX_THRUSTERS = 64          # of a craft, as in the sample
    MAX_WHEELS = 16             # the same
    MAX_SENSORS = 24            # of a craft
    MAX_INTERFACES = 16         # of a craft
    MAX_CHANGES = 32            # bits of `PairState.done`
    MAX_PROFILES = 16
    MAX_LOADS = 8               # both craft together
    MAX_PHASES = 16
    AT_TIME = 0
    AT_FIRST_CONTACT = 1
    AT_CAPTURE = 2
    AT_PHASE = 3                # and the phase's number

cdef double DRIFT_SHARE = 0.1      # share of the drift of a latched pose that is taken back in a tick
cdef double DRIFT_RATE_MAX = 0.01  # and how fast at most, m/s and rad/s
cdef double ARM_LENGTH = 5.0       # of S and of the singular values, m
cdef double SIGMA_0 = 0.05         # below this singular value the rates of an arm are damped
cdef double LAMBDA_0 = 0.05        # by this at a singularity


# a frame on a body, body axes
cdef struct Place:
    int body
    int unused
    Vec3 p
    Mat3 R

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
    Vec3 direction              # body axes
    Wrench wrench               # of a unit thrust at and in C, at the start

cdef struct Change:
    int craft
    int joint
    int mode
    int event
    int profile                 # number from 1, 0: none
    int unused
    double after                # s after the event
    double target
    double duration
    double amplitude            # of the profile

cdef struct Load:
    int craft
    int inertial                # 1: axes of N, 0: those of the place
    int event
    int profile                 # number from 1, 0: constant
    double after
    Place place
    Vec3 f
    Vec3 m

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
    int control                 # body that carries the control
    int spins                   # 1: joints have rates at the start
    int second                  # 1: step of second order
    int unused
    Place port
    Joint joint[MAX_JOINTS]
    int ball_iq[MAX_BALLS]
    int ball_iv[MAX_BALLS]
    Thruster thruster[MAX_THRUSTERS]
    int wheel[MAX_WHEELS]       # joint of the wheel
    Vec3 wheel_axis[MAX_WHEELS]  # at the start, axes of the root
    Place sensor[MAX_SENSORS]
    int interface[MAX_INTERFACES]
    double q[MAX_Q]             # at the start
    double v[MAX_V]
    Vec3 p_joints               # momentum, and about the centre of mass, of the joints' rates at the start, axes of the root
    Vec3 l_joints

cdef struct Params:
    double period
    TwoCraftsParameters keys
    Vec3 orbital_rate
    Orbit orbit
    CraftParams craft[2]
    Change change[MAX_CHANGES]
    Load load[MAX_LOADS]
    Profile profile[MAX_PROFILES]
    Place grasp                 # E, on the target craft
    int arm[ARM_JOINTS]         # joints of the target craft that move it, from the root on
    int n_arm                   # 0: it has no arm
    int n_changes
    int n_loads
    int n_profiles

cdef struct JointState:
    int mode
    int yields                  # given: its drive was not strong enough for the last tick
    int profile                 # that it follows, number from 1, 0: none
    int sticks                  # second order: dry friction holds it
    double amplitude            # of the profile
    double since                # s since the profile's event, at the end of the last step
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
    Vec3 c
    Vec3 P
    Vec3 L                      # about c, N axes
    Vec3 c_rest                 # what the sums have lost to rounding
    Vec3 P_rest
    Vec3 L_rest
    JointState joint[MAX_JOINTS]
    double joint_energy         # work of the joints, wheels left out

cdef struct PairState:
    CraftState craft[2]
    Reference reference
    double V_TA[6]              # of the previous tick, for the acceleration
    Pose X_held                 # of A in the place of the target craft that holds it, T or E, as it was taken
    Wrench latch                # wrench on the target craft, at and in that place
    int joined                  # 1: T holds it
    unsigned int done           # bits: changes of joints that have been made
    double entered[MAX_PHASES]  # run time at which a phase was entered first
    unsigned int seen           # bits: phases that were
    int grasped                 # 1: E holds it

cdef struct Flat:
    Params params
    PairState state

# what the control does on a craft
cdef struct Actuators:
    Wrench control              # of all, on a rigid craft at and in C
    const double *thrust
    const double *wheel_torque
    const double *joint_target
    uint64_t joints             # bits: those that it commands
    const double *arm_rate      # of the references of the joints that the guidance leads
    uint64_t led                # bits: these
    uint64_t limp               # and those whose servos do not pull

# of one evaluation; nothing of it lives longer than a tick
cdef struct Work:
    Model *model
    const Profile *profile      # all of them, and the rows of their points
    const double *points
    Composite whole
    double tau[MAX_V]
    double tau_out[MAX_V]
    double a[MAX_V]
    double half[MAX_Q]
    Wrench f_ext[MAX_BODIES]    # at the origin of each body, its axes
    unsigned char known[MAX_V]
    double torque[MAX_JOINTS]
    Mat3 R                      # axes of the root in N
    Vec3 force                  # on the craft, N axes
    Vec3 moment                 # about c
    Pose X_port                 # port in N
    Twist V_port                # velocity of its origin, angular velocity, N axes
    double kinetic
    double modal_energy
    Wrench own                  # on the body of the port, on the whole: without the wrench between the ports
    Vec3 own_force
    Vec3 own_moment
    int struck                  # second order: the ports touch
    # second order: the craft in the middle of the step, its rates there, what the wrench between the ports adds to the accelerations
    CraftState at
    double rates[MAX_V]
    double pushed[MAX_V]

cdef struct Self:
    Flat flat
    Work work[2]
    double arm_rate[MAX_JOINTS]  # of this tick
    uint64_t led
    uint64_t limp
    int modes                   # modal coordinates that are channels, of both craft
    int width[10]               # of the record's channels, and of all of them
    int channels


# ---------------------------------------------------------------------------------------------------------------- the whole craft

cdef inline Twist settle(const CraftState *s, const Composite *whole, Quat q) noexcept nogil:
    """Twist of the root (its axes) that belongs to P and L with the attitude q and the joints and modes of `whole`."""
    cdef Vec3 w = mat_solve(mat(whole.inertia), sub(rotate_back(q, s.L), vec(whole.l)))
    cdef Vec3 v = mul(1.0 / whole.mass, sub(rotate_back(q, s.P), vec(whole.p)))
    return twist_of(sub(v, cross(w, vec(whole.centre))), w)


cdef void carry_over(CraftState *s, Work *w) noexcept nogil:
    """Centre of mass and momentum that belong to the root's pose and twist and to the rates of joints and modes: `settle` backwards."""
    cdef Pose X_NR = pose(s.q)
    cdef Twist V = twist(s.v)
    compose_tree(w.model, s.q, s.v, &w.whole)
    cdef Vec3 c_0 = vec(w.whole.centre)
    s.c = apply(X_NR, c_0)
    # P = M (v_0 + w x c_0) + p_0, L = I_c w + l_0
    s.P = rotate(X_NR.q, add(mul(w.whole.mass, add(V.v, cross(V.w, c_0))), vec(w.whole.p)))
    s.L = rotate(X_NR.q, add(mat_vec(mat(w.whole.inertia), V.w), vec(w.whole.l)))
    s.c_rest = s.P_rest = s.L_rest = xyz(0.0, 0.0, 0.0)


cdef inline void place_root(CraftState *s, const Composite *whole) noexcept nogil:
    """Position of the root from the centre of mass and the attitude."""
    put(sub(s.c, rotate(quat(s.q + 3), vec(whole.centre))), s.q)


cdef inline Pose place_pose(const Work *w, const Place *place) noexcept nogil:
    """Pose of a place in the root, after `place_in_root`."""
    cdef const Body *b = &w.model.body[place.body]
    cdef Mat3 R_RB = mat(b.pose + 3)
    return pose_of(add(vec(b.pose), mat_vec(R_RB, place.p)), quat_of(mat_multiply(R_RB, place.R)))


cdef void see_craft(const CraftParams *p, CraftState *s, Work *w) noexcept nogil:
    """From attitude, joints, modes and momentum: the root's place and twist, the port's pose and velocity in N, energies."""
    cdef const Body *b = &w.model.body[p.port.body]
    cdef Quat q = quat(s.q + 3)
    cdef double x
    cdef int i, j, k
    compose_tree(w.model, s.q, s.v, &w.whole)
    cdef Twist V_0 = settle(s, &w.whole, q)
    put_twist(V_0, s.v)
    place_root(s, &w.whole)
    place_in_root(w.model)
    cdef Pose X_RP = place_pose(w, &p.port)
    w.X_port = compose(pose(s.q), X_RP)
    # velocity of the port with the root at rest, then with the root, on its axes
    cdef Twist V = twist(b.V)
    cdef Vec3 v = mat_vec(mat(b.pose + 3), add(V.v, cross(V.w, p.port.p)))
    w.V_port.v = rotate(q, add(add(v, cross(V_0.w, X_RP.p)), V_0.v))
    w.V_port.w = rotate(q, add(mat_vec(mat(b.pose + 3), V.w), V_0.w))
    # kinetic energy: 1/2 V_c (h + h_0) and that with the root at rest; h about the centre of mass, V_c there
    cdef Vec3 P = add(rotate_back(q, s.P), vec(w.whole.p))
    cdef Vec3 L = add(rotate_back(q, s.L), vec(w.whole.l))
    w.kinetic = w.whole.energy + 0.5 * (dot(add(V_0.v, cross(V_0.w, vec(w.whole.centre))), P) + dot(V_0.w, L))
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


cdef void shift_internal(const CraftParams *p, const CraftState *s, const double *v, double h, double *q) noexcept nogil:
    """q: joints and modes moved by h v; the root's coordinates are left alone. q may be s.q."""
    cdef Quat turn
    cdef double sine, cosine, x
    cdef const Joint *joint
    cdef int i
    for i in range(p.n_joints):
        joint = &p.joint[i]
        if joint.turns:
            sincos(h * v[joint.iv], &sine, &cosine)
            x = s.q[joint.iq] * sine + s.q[joint.iq + 1] * cosine
            cosine = s.q[joint.iq] * cosine - s.q[joint.iq + 1] * sine
            # one Newton step towards the unit circle
            sine = 1.5 - 0.5 * (cosine * cosine + x * x)
            q[joint.iq] = sine * cosine
            q[joint.iq + 1] = sine * x
        else:
            q[joint.iq] = s.q[joint.iq] + h * v[joint.iv]
    for i in range(p.n_balls):
        turn = exponential(mul(h, vec(v + p.ball_iv[i])))
        put_quat(normalized(quat_multiply(quat(s.q + p.ball_iq[i]), turn)), q + p.ball_iq[i])
    for i in range(p.nv - p.nj):
        q[p.nq - p.nv + p.nj + i] = s.q[p.nq - p.nv + p.nj + i] + h * v[p.nj + i]


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


cdef inline void profile_of(const Work *w, const JointState *j, double t, double *x, double *rate) noexcept nogil:
    """What the profile of a joint adds to its path at the time t since the event; 0 without one."""
    x[0] = 0.0
    rate[0] = 0.0
    if j.profile > 0:
        follow(&w.profile[j.profile - 1], w.points, t, x, rate)
        x[0] *= j.amplitude
        rate[0] *= j.amplitude


cdef void begin_path(const Joint *joint, JointState *j, const Work *w, double rate, double target, double duration,
                     double h) noexcept nogil:
    """A path from where the joint is, at its rate, to the target (beside its profile): in the given time, or in the shortest that the drive
    allows."""
    cdef double fastest = joint.rate
    cdef double a, b, d, x, of_profile
    profile_of(w, j, j.since, &x, &of_profile)
    rate -= of_profile
    j.start = j.angle - x
    j.start_rate = rate
    j.target = target
    j.elapsed = 0.0
    d = fabs(target - j.start)
    # fifth degree: the rate peaks at 15/8 of the mean one; one away from the target adds up to 0.52 of itself on the way back
    if rate * (target - j.start) < 0.0:
        fastest -= 0.52 * min(fabs(rate), fastest)
    # the acceleration at most at 5.78 d / T^2 + 3.95 |rate| / T, which the effort must give to the joint's inertia
    a = 5.78 * d * joint.inertia / joint.effort
    b = 3.95 * fabs(rate) * joint.inertia / joint.effort
    # in no less than ten ticks
    j.duration = max(max(duration, 10.0 * h, 1.875 * d / fastest), 0.5 * (b + sqrt(b * b + 4.0 * a)))


cdef void set_mode(const Params *p, PairState *s, const Work *w, int craft, int number, int mode, double target, double duration,
                   int profile, double amplitude, double since) noexcept nogil:
    """A joint changes its mode; a path begins where the joint is, and ends between its stops. One that is held beyond a stop leaves its
    spring unloaded there. since: age of the profile's event at the beginning of the step."""
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
    j.sticks = 0
    j.profile = profile
    j.amplitude = amplitude
    j.since = since
    if profile == 0 and (mode == JOINT_MODE_GIVEN or mode == JOINT_MODE_DRIVEN and not driven_by_torque(joint)):
        target = min(max(target, joint.lower), joint.upper)
    begin_path(joint, j, &w[craft], s.craft[craft].v[joint.iv], target, duration, p.period)


cdef inline bint driven_by_torque(const Joint *joint) noexcept nogil:
    """Whether the target of a driven joint is a torque: its servo has no gains."""
    return joint.servo_stiffness == 0.0 and joint.servo_damping == 0.0


cdef void watch_phase(PairState *s, const Sample *o) noexcept nogil:
    """Remembers when a phase was entered first."""
    if 0 <= o.phase < MAX_PHASES and not (s.seen >> o.phase) & 1:
        s.seen |= 1u << o.phase
        s.entered[o.phase] = 1e-9 * <double>o.time_ns


cdef double since_event(const PairState *s, const Sample *o, int event) noexcept nogil:
    """s since an event, -1 before it."""
    cdef double t = 1e-9 * <double>o.time_ns
    if event == AT_TIME:
        return t
    if event == AT_FIRST_CONTACT:
        return t - o.first_contact_time if o.first_contact_time >= 0.0 else -1.0
    if event == AT_CAPTURE:
        return t - o.capture_time if o.capture_time >= 0.0 else -1.0
    event -= AT_PHASE
    return t - s.entered[event] if (s.seen >> event) & 1 else -1.0


cdef void change_modes(const Params *p, PairState *s, const Work *w, const Sample *o) noexcept nogil:
    """Changes of the configuration that are due, and the operator's."""
    cdef const Change *change
    cdef double since
    cdef int i
    for i in range(p.n_changes):
        change = &p.change[i]
        since = since_event(s, o, change.event)
        if not (s.done >> i) & 1 and since >= change.after:
            s.done |= 1u << i
            set_mode(p, s, w, change.craft, change.joint, change.mode, change.target, change.duration, change.profile, change.amplitude,
                     since - change.after - o.periods * p.period)
    if o.command_code == COMMAND_JOINT:
        set_mode(p, s, w, o.command_arg[0] > 0.5, <int>o.command_arg[1], <int>o.command_arg[2], o.command_arg[3], o.command_arg[4], 0, 0.0,
                 0.0)


cdef inline double push_of_stop(const Joint *joint, const JointState *j, double beyond, double v, double *k, double *d) noexcept nogil:
    """Force of the stop past which the joint stands by `beyond`, its spring and damper onto k and d; 0 between the stops."""
    if beyond == 0.0:
        return 0.0
    if beyond != j.unloaded:
        k[0] += joint.stop_stiffness
    d[0] += joint.stop_damping
    return -(joint.stop_stiffness * (beyond - j.unloaded) + joint.stop_damping * v)


cdef inline void add_to_inertia(const CraftParams *p, Work *w, const Joint *joint, double k, double d, double h) noexcept nogil:
    """What a spring and a damper add to the inertia of a joint over the step."""
    w.model.body[joint.body].armature = joint.armature + h * ((0.5 * d if p.second else d) + 0.25 * h * k)


cdef inline bint rubs(const CraftParams *p, const Joint *joint, const JointState *j) noexcept nogil:
    """Whether dry friction of a joint may hold it: a step of second order, and its acceleration is not known anyway."""
    return p.second and joint.friction > 0.0 and not is_held(j.mode)


cdef inline void take_target(const Joint *joint, JointState *j, double target, double h) noexcept nogil:
    """The reference of a servo goes towards what the control commands, no faster than the drive, and not past a stop."""
    cdef double at, rate
    path(j, j.elapsed, &at, &rate)
    target = min(max(target, joint.lower), joint.upper)
    j.target = at + min(max(target - at, -h * joint.rate), h * joint.rate)
    j.duration = 0.0


cdef void load_joints(const CraftParams *p, CraftState *s, Work *w, const Actuators *own, double h) noexcept nogil:
    """Forces, what is known, and what springs and dampers add to the inertia of each joint over the step."""
    cdef const Joint *joint
    cdef JointState *j
    cdef double x, v, k, d, force, servo, more, more_rate, beyond, e, led_from = 0.0, reference = 0.0, rate = 0.0
    cdef bint commanded, led, limp
    cdef int i
    for i in range(p.n_joints):
        joint = &p.joint[i]
        j = &s.joint[i]
        commanded = j.mode == JOINT_MODE_DRIVEN and (own.joints >> i) & 1
        led = j.mode == JOINT_MODE_DRIVEN and (own.led >> i) & 1
        limp = j.mode == JOINT_MODE_DRIVEN and (own.limp >> i) & 1
        x = j.angle
        v = s.v[joint.iv]
        beyond = j.beyond
        if p.second:
            x += 0.5 * h * v
            beyond = past_stop(joint, x)
        k = 0.0
        d = 0.0
        force = 0.0
        w.known[joint.iv] = is_held(j.mode)
        # what a stop's spring does not feel shrinks as the joint comes back
        if j.unloaded != 0.0:
            j.unloaded = min(max(j.unloaded, min(j.beyond, 0.0)), max(j.beyond, 0.0))
        if j.mode == JOINT_MODE_GIVEN or j.mode == JOINT_MODE_DRIVEN:
            if j.yields:
                begin_path(joint, j, w, v, j.target, j.duration - j.elapsed, h)
                j.yields = 0
            if led:
                path(j, j.elapsed, &led_from, &rate)
                take_target(joint, j, led_from + h * own.arm_rate[i], h)
            elif limp:
                j.target, j.duration = x, 0.0
            elif commanded and not driven_by_torque(joint):
                take_target(joint, j, own.joint_target[i], h)
            j.elapsed += h
            j.since += h
            path(j, j.elapsed, &reference, &rate)
            if led:
                rate = (reference - led_from) / h
            if j.profile > 0:
                profile_of(w, j, j.since, &more, &more_rate)
                reference += more
                rate += more_rate
            reference = within_stops(joint, x, reference)
        if j.mode == JOINT_MODE_LOCKED:
            w.a[joint.iv] = -v / h
        elif j.mode == JOINT_MODE_GIVEN and p.second:
            # at the rate of the path at the end of the step, and what is missing of its place
            e = reference - j.angle - 0.5 * h * (v + rate)
            w.a[joint.iv] = (rate + e / h - v) / h
        elif j.mode == JOINT_MODE_GIVEN:
            w.a[joint.iv] = ((reference - x) / h - v) / h
        else:
            k = joint.stiffness
            d = joint.damping
            if not p.second:
                d += joint.friction / max(fabs(v), p.friction_rate)
            force = -k * (x - joint.angle) - d * v
            if joint.wheel >= 0:
                force += own.wheel_torque[joint.wheel]
            elif j.mode == JOINT_MODE_DRIVEN and not limp:
                servo = joint.servo_stiffness * (reference - x) + joint.servo_damping * (rate - v)
                if driven_by_torque(joint):
                    # as it is in the middle of the step
                    profile_of(w, j, j.since - 0.5 * h, &more, &more_rate)
                    servo = (own.joint_target[i] if commanded else j.target) + more
                elif fabs(servo) < joint.effort:
                    k += joint.servo_stiffness
                    d += joint.servo_damping
                force += min(max(servo, -joint.effort), joint.effort)
            force += push_of_stop(joint, j, beyond, v, &k, &d)
            if rubs(p, joint, j):
                if v == 0.0:
                    j.sticks = 1
                if j.sticks:
                    w.known[joint.iv] = 1
                    w.a[joint.iv] = -v / h
                else:
                    force -= joint.friction if v > 0.0 else -joint.friction
        w.tau[joint.iv] = force
        add_to_inertia(p, w, joint, k, d, h)


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
        w.tau[joint.iv] += push_of_stop(joint, j, past_stop(joint, j.angle + 0.5 * h * s.v[joint.iv]) if p.second else j.beyond,
                                        s.v[joint.iv], &k, &d)
        add_to_inertia(p, w, joint, k, d, h)
    return found


cdef bint slips(const CraftParams *p, CraftState *s, Work *w, double h) noexcept nogil:
    """Whether joints, after `accelerate`, begin to slide, as dry friction cannot hold them, or to stick, as it would turn their rate round.

    Friction f in -F_c ... F_c: one that sticks has the acceleration that ends its rate, and slides when this needs more than F_c."""
    cdef const Joint *joint
    cdef JointState *j
    cdef double v, f
    cdef bint found = False
    cdef int i
    for i in range(p.n_joints):
        joint = &p.joint[i]
        j = &s.joint[i]
        if not rubs(p, joint, j):
            continue
        v = s.v[joint.iv]
        if j.sticks:
            f = w.tau_out[joint.iv] - w.tau[joint.iv]
            if fabs(f) <= joint.friction:
                continue
            j.sticks = 0
            w.known[joint.iv] = 0
            w.tau[joint.iv] += joint.friction if f > 0.0 else -joint.friction
        else:
            if v * (v + h * w.a[joint.iv]) >= 0.0:
                continue
            j.sticks = 1
            w.known[joint.iv] = 1
            w.tau[joint.iv] += joint.friction if v > 0.0 else -joint.friction
            w.a[joint.iv] = -v / h
        found = True
    return found


cdef void take_torques(const CraftParams *p, const CraftState *s, Work *w) noexcept nogil:
    """Forces of the joints over the step: what known ones need, and of the others springs and dampers as they acted."""
    cdef int i, iv
    for i in range(p.n_joints):
        iv = p.joint[i].iv
        w.torque[i] = w.tau_out[iv]
        if not w.known[iv] or rubs(p, &p.joint[i], &s.joint[i]):
            w.torque[i] -= (w.model.body[p.joint[i].body].armature - p.joint[i].armature) * w.a[iv]


# ------------------------------------------------------------------------------------------------------------------------- loads

cdef inline const CraftState *standing(const CraftParams *p, const CraftState *s, const Work *w) noexcept nogil:
    """The craft where its accelerations are looked at."""
    return &w.at if p.second else s


cdef inline void load_body(const CraftState *s, Work *w, int body, Vec3 p, Vec3 f, Vec3 m) noexcept nogil:
    """Force f and moment m (body axes) at the place p of a body: on it, and on the whole."""
    cdef const Body *b = &w.model.body[body]
    cdef Mat3 R_RB = mat(b.pose + 3)
    w.f_ext[body] = wrench_sum(w.f_ext[body], wrench_of(f, add(cross(p, f), m)))
    # about c, N axes
    cdef Vec3 r = sub(add(vec(b.pose), mat_vec(R_RB, p)), vec(w.whole.centre))
    cdef Vec3 f_R = mat_vec(R_RB, f)
    w.force = add(w.force, rotate(quat(s.q + 3), f_R))
    w.moment = add(w.moment, rotate(quat(s.q + 3), add(cross(r, f_R), mat_vec(R_RB, m))))


cdef void load_named_bodies(const Params *p, const PairState *s, Work *w, const Sample *o, double later) noexcept nogil:
    """The loads that act by now, as in the middle of a step that ends `later` s after the sample's time. After `begin`."""
    cdef const Load *load
    cdef const CraftState *craft
    cdef Mat3 R
    cdef double x, rate, t
    cdef int i
    for i in range(p.n_loads):
        load = &p.load[i]
        t = since_event(s, o, load.event)
        if t < 0.0:
            continue
        t += later - load.after - 0.5 * p.period
        if t < 0.0:
            continue
        x = 1.0
        if load.profile > 0:
            follow(&p.profile[load.profile - 1], w.points, t, &x, &rate)
        craft = standing(&p.craft[load.craft], &s.craft[load.craft], &w[load.craft])
        # from the axes of the place, or of N, to those of the body
        R = load.place.R
        if load.inertial:
            R = transposed(mat_multiply(to_matrix(quat(craft.q + 3)), mat(w[load.craft].model.body[load.place.body].pose + 3)))
        load_body(craft, &w[load.craft], load.place.body, load.place.p, mul(x, mat_vec(R, load.f)), mul(x, mat_vec(R, load.m)))


cdef void load_contact(const CraftState *s, Work *w, int body, double sign, Vec3 x, Wrench F) noexcept nogil:
    """The wrench sign F (N axes) at the point x of N on a body. For both craft alike: their sum is 0."""
    cdef Wrench *on = &w.f_ext[body]
    cdef Mat3 R = body_axes(w, body)
    cdef Vec3 r = body_arm(s, w, body, x)
    w.force = add(w.force, mul(sign, F.f))
    w.moment = add(w.moment, mul(sign, add(cross(sub(x, s.c), F.f), F.m)))
    on.f = add(on.f, mul(sign, mat_transposed_vec(R, F.f)))
    on.m = add(on.m, mul(sign, mat_transposed_vec(R, add(cross(r, F.f), F.m))))


cdef inline Mat3 body_axes(const Work *w, int body) noexcept nogil:
    """Axes of a body in N."""
    return mat_multiply(w.R, mat(w.model.body[body].pose + 3))


cdef inline Vec3 body_arm(const CraftState *s, const Work *w, int body, Vec3 x) noexcept nogil:
    """From the origin of a body to the point x of N, N axes."""
    return sub(sub(x, vec(s.q)), mat_vec(w.R, vec(w.model.body[body].pose)))


cdef void load_control(const CraftParams *p, const CraftState *s, Work *w, const Actuators *own) noexcept nogil:
    """Thrusters where they are; what they and the wheels leave of the control wrench, at and in C, on the body that carries the control."""
    cdef const Body *b = &w.model.body[p.control]
    cdef const Thruster *thruster
    cdef Vec3 zero = xyz(0.0, 0.0, 0.0)
    cdef Mat3 R_RB = mat(b.pose + 3)
    cdef Wrench control = own.control
    cdef int i
    for i in range(p.n_thrusters):
        if own.thrust[i] == 0.0:
            continue
        thruster = &p.thruster[i]
        load_body(s, w, thruster.place.body, thruster.place.p, mul(own.thrust[i], thruster.direction), zero)
        control.f = sub(control.f, mul(own.thrust[i], thruster.wrench.f))
        control.m = sub(control.m, mul(own.thrust[i], thruster.wrench.m))
    for i in range(p.n_wheels):
        # the motor turns the wheel by its torque and the craft by the opposite: within the tree
        control.m = add(control.m, mul(own.wheel_torque[i], p.wheel_axis[i]))
    # from the axes and the origin of the root to those of the body
    cdef Vec3 r = mat_transposed_vec(R_RB, sub(vec(w.whole.centre), vec(b.pose)))
    load_body(s, w, p.control, r, mat_transposed_vec(R_RB, control.f), mat_transposed_vec(R_RB, control.m))


cdef inline Mat3 angular_block(const double *M) noexcept nogil:
    """Tensor about the origin of a body, of its inertia M (6, 6)."""
    cdef Mat3 J
    J.xx = M[21]; J.xy = M[22]; J.xz = M[23]
    J.yx = M[27]; J.yy = M[28]; J.yz = M[29]
    J.zx = M[33]; J.zy = M[34]; J.zz = M[35]
    return J


cdef void fall(const Params *p, const CraftParams *craft, CraftState *s, const Reference *at, Work *w, double h, int load) noexcept nogil:
    """What the planet adds to the momentum in the time h; with `load` its forces on bodies and modes too. After `place_in_root`.

    Field near a body's origin: a + G x. Force m a + G d, moment d x a + of the gradient, load of a mode P_k . a + sum m phi_k . G rho.
    """
    cdef Body *b
    cdef const double *M
    cdef Vec3 r, a, d, f, m
    cdef Vec3 force = xyz(0.0, 0.0, 0.0)
    cdef Vec3 moment = xyz(0.0, 0.0, 0.0)
    cdef Tide felt
    cdef Mat3 R, G
    cdef const double *G_row = <const double *>&G
    cdef double x
    cdef int i, j, k
    for i in range(craft.bodies):
        b = &w.model.body[i]
        if b.mass == 0.0:
            continue
        # field at the body's origin, then on its axes
        r = apply(pose(s.q), vec(b.pose))
        felt = tide(&p.orbit, at, r)
        R = mat_multiply(w.R, mat(b.pose + 3))
        a = mat_transposed_vec(R, felt.a)
        G = gradient(felt.rate2, mat_transposed_vec(R, felt.u))
        # first moment and inertia of the deformed body, from its inertia before the elimination
        M = b.M0
        if b.s > 0:
            M = b.M
        d = xyz(M[31], M[20], M[24])
        f = add(mat_vec(G, d), mul(b.mass, a))
        m = add(gradient_moment(angular_block(M), G), cross(d, a))
        if load:
            w.f_ext[i] = wrench_sum(w.f_ext[i], wrench_of(f, m))
            for k in range(b.s):
                x = dot(vec(b.P + 3 * k), a)
                for j in range(9):
                    x += G_row[j] * b.G[9 * k + j]
                w.tau[b.ev + k] += x
        # on the whole
        f = mat_vec(R, f)
        force = add(force, f)
        moment = add(add(moment, mat_vec(R, m)), cross(sub(r, s.c), f))
    if craft.second:
        w.force = add(w.force, force)
        w.moment = add(w.moment, moment)
        return
    accumulate(h, force, &s.P, &s.P_rest)
    accumulate(h, moment, &s.L, &s.L_rest)


# ---------------------------------------------------------------------------------------------------------------------- one step

cdef void begin(const Params *p, const CraftParams *craft, CraftState *s, const Reference *at, Work *w,
                const Actuators *own) noexcept nogil:
    """Kinematics and inertia of a craft where it is, its port; all loads but those of the port."""
    cdef double h = p.period
    cdef Pose X_NR = pose(s.q)
    memset(w.f_ext, 0, craft.bodies * sizeof(Wrench))
    memset(w.tau, 0, craft.nv * sizeof(double))
    w.force = w.moment = xyz(0.0, 0.0, 0.0)
    load_joints(craft, s, w, own, h)
    move(w.model, s.q, s.v)
    place_in_root(w.model)
    w.R = to_matrix(X_NR.q)
    # centre of mass in the root, and the port
    put(rotate_back(X_NR.q, sub(s.c, X_NR.p)), w.whole.centre)
    w.X_port = compose(X_NR, place_pose(w, &craft.port))
    load_control(craft, s, w, own)
    if p.orbit.parameter > 0.0:
        fall(p, craft, s, at, w, 0.5 * h, 1)
    factor(w.model, 0.25 * h * h, h, w.known)


cdef void begin_middle(const Params *p, const CraftParams *craft, CraftState *s, const Reference *at, Work *w,
                       const Actuators *own) noexcept nogil:
    """`begin` of a step of second order: the craft half a step on with the rates at hand, and its loads there."""
    cdef double h = p.period
    cdef Quat q = quat(s.q + 3)
    memset(w.f_ext, 0, craft.bodies * sizeof(Wrench))
    memset(w.tau, 0, craft.nv * sizeof(double))
    memset(w.pushed, 0, craft.nv * sizeof(double))
    w.force = w.moment = xyz(0.0, 0.0, 0.0)
    load_joints(craft, s, w, own, h)
    memcpy(&w.at, s, sizeof(CraftState))
    put_quat(turned(q, rotate(q, vec(s.v + 3)), 0.5 * h), w.at.q + 3)
    shift_internal(craft, s, s.v, 0.5 * h, w.at.q)
    w.at.c = add(s.c, mul(0.5 * h / craft.mass, s.P))
    compose_tree(w.model, w.at.q, s.v, &w.whole)
    place_root(&w.at, &w.whole)
    move(w.model, w.at.q, s.v)
    place_in_root(w.model)
    cdef Pose X_NR = pose(w.at.q)
    w.R = to_matrix(X_NR.q)
    w.X_port = compose(X_NR, place_pose(w, &craft.port))
    load_control(craft, &w.at, w, own)
    if p.orbit.parameter > 0.0:
        fall(p, craft, &w.at, at, w, h, 1)
    factor(w.model, 0.25 * h * h, 0.5 * h, w.known)


cdef void renew(const Params *p, const CraftParams *craft, CraftState *s, Work *w) noexcept nogil:
    """Inertia and velocity terms once more: other joints are known, or other rates in the middle of the step."""
    cdef double h = p.period
    if craft.second:
        move(w.model, w.at.q, w.rates)
        factor(w.model, 0.25 * h * h, 0.5 * h, w.known)
        return
    move(w.model, s.q, s.v)
    factor(w.model, 0.25 * h * h, h, w.known)


cdef void reach_middle(const CraftParams *craft, const CraftState *s, Work *w, double h) noexcept nogil:
    """Rates in the middle of the step by the accelerations found."""
    cdef int i
    for i in range(craft.nv):
        w.rates[i] = s.v[i] + 0.5 * h * (w.a[i] + w.pushed[i])


cdef void finish_middle(const Params *p, const CraftParams *craft, CraftState *s, Work *w) noexcept nogil:
    """`finish` of a step of second order: places move with the rates in its middle. The wrench between the ports acts as a blow at its
    beginning, as in the step of first order: a force that is measured once a tick and held would feed a spring in the contact."""
    cdef double h = p.period
    cdef Vec3 f = w.force, m = w.moment
    cdef Quat q = quat(s.q + 3), q_half = quat(w.at.q + 3)
    cdef int i, iv
    reach_middle(craft, s, w, h)
    if w.struck:
        f = add(f, sub(w.force, w.own_force))
        m = add(m, sub(w.moment, w.own_moment))
    w.at.P = add(s.P, mul(0.5 * h, f))
    w.at.L = add(s.L, mul(0.5 * h, m))
    accumulate(h / craft.mass, w.at.P, &s.c, &s.c_rest)
    accumulate(h, w.force, &s.P, &s.P_rest)
    accumulate(h, w.moment, &s.L, &s.L_rest)
    compose_tree(w.model, w.at.q, w.rates, &w.whole)
    put_quat(turned(q, rotate(q_half, settle(&w.at, &w.whole, q_half).w), h), s.q + 3)
    for i in range(craft.n_joints):
        iv = craft.joint[i].iv
        if craft.joint[i].wheel < 0:
            s.joint_energy += h * w.torque[i] * (s.v[iv] + 0.5 * h * w.a[iv])
        s.joint[i].angle += h * w.rates[iv]
        s.joint[i].beyond = past_stop(&craft.joint[i], s.joint[i].angle)
    shift_internal(craft, s, w.rates, h, s.q)
    for i in range(6, craft.nv):
        s.v[i] += h * w.a[i]
    for i in range(craft.n_joints):
        # to the bit, so that it sticks
        if s.joint[i].sticks and w.known[craft.joint[i].iv]:
            s.v[craft.joint[i].iv] = 0.0
    see_craft(craft, s, w)


cdef void finish(const Params *p, const CraftParams *craft, CraftState *s, Work *w) noexcept nogil:
    """Momentum, rates, then places; the attitude with the rate at half the step. The twist of the root is settled by `see_craft`."""
    cdef double h = p.period
    cdef int i, iv
    accumulate(h, w.force, &s.P, &s.P_rest)
    accumulate(h, w.moment, &s.L, &s.L_rest)
    accumulate(h / craft.mass, s.P, &s.c, &s.c_rest)
    for i in range(craft.n_joints):
        iv = craft.joint[i].iv
        if craft.joint[i].wheel < 0:
            s.joint_energy += h * w.torque[i] * (s.v[iv] + 0.5 * h * w.a[iv])
    for i in range(6, craft.nv):
        s.v[i] += h * w.a[i]
    # half a step: attitude with the root's acceleration of the recursion
    cdef Quat q = quat(s.q + 3)
    cdef Vec3 w_N = rotate(q, add(vec(s.v + 3), mul(h, vec(w.a + 3))))
    cdef Quat q_half = turned(q, w_N, 0.5 * h)
    put_quat(q_half, w.half + 3)
    shift_internal(craft, s, s.v, 0.5 * h, w.half)
    compose_tree(w.model, w.half, s.v, &w.whole)
    w_N = rotate(q_half, settle(s, &w.whole, q_half).w)
    # the step
    put_quat(turned(q, w_N, h), s.q + 3)
    for i in range(craft.n_joints):
        s.joint[i].angle += h * s.v[craft.joint[i].iv]
        s.joint[i].beyond = past_stop(&craft.joint[i], s.joint[i].angle)
    shift_internal(craft, s, s.v, h, s.q)
    see_craft(craft, s, w)


cdef Twist predicted_twist(const CraftParams *p, const CraftState *s, Work *w, int body, Vec3 x, double h) noexcept nogil:
    """Twist, N axes, of the point of a body that is at x, with the rates at the end of the step."""
    cdef Mat3 R = body_axes(w, body)
    cdef Twist V
    cdef int i
    for i in range(p.nv):
        w.tau_out[i] = s.v[i] + h * w.a[i]
    twist_in_tree(w.model, body, w.tau_out, <double *>&V)
    cdef Vec3 w_N = mat_vec(R, V.w)
    return twist_of(add(mat_vec(R, V.v), cross(w_N, body_arm(standing(p, s, w), w, body, x))), w_N)


cdef void add_mobility(const CraftState *s, Work *w, int body, Vec3 x, double *K) noexcept nogil:
    """K += accelerations of a body at x under unit wrenches there, N axes, (6, 6)."""
    cdef Mat3 R = body_axes(w, body)
    cdef Vec3 r = body_arm(s, w, body, x)
    cdef Wrench F
    cdef Twist A
    cdef const double *column = <const double *>&A
    cdef int i, j
    for i in range(6):
        memset(&F, 0, sizeof(F))
        (<double *>&F)[i] = 1.0
        F.m = mat_transposed_vec(R, add(F.m, cross(r, F.f)))
        F.f = mat_transposed_vec(R, F.f)
        respond(w.model, body, <double *>&F, <double *>&A)
        A.w = mat_vec(R, A.w)
        A.v = add(mat_vec(R, A.v), cross(A.w, r))
        for j in range(6):
            K[6 * j + i] += column[j]


cdef Twist drift_of_latch(const PairState *s, Pose X_PA) noexcept nogil:
    """Displacement (v) and rotation (w) of A, axes of the place P that holds it, from the pose in which it was taken."""
    return twist_of(sub(X_PA.p, s.X_held.p), logarithm(quat_multiply(X_PA.q, conjugate(s.X_held.q))))


cdef inline Vec3 taken_back(Vec3 drift, double h) noexcept nogil:
    """Rate -u* of the latches that takes a drift back: a share of it in a tick, bounded."""
    cdef double rate = norm(drift) * DRIFT_SHARE / h
    return mul(DRIFT_SHARE / h * (DRIFT_RATE_MAX / rate if rate > DRIFT_RATE_MAX else 1.0), drift)


cdef Wrench wrench_of_latch(const Params *p, PairState *s, Work *w, int body, Pose X_NP, Pose X_PA) noexcept nogil:
    """The wrench at the origin of the place P, N axes, by which this body of the target craft holds the port A, after `begin` of both craft
    and on top of what acts on them; into the state too."""
    cdef int of[2]
    cdef double K[36]
    cdef double l[6]
    cdef Twist V[2]             # of A, of T
    cdef Wrench F
    cdef double h = p.period
    cdef int i, k
    of[ACTIVE], of[TARGET] = p.craft[ACTIVE].port.body, body
    memset(K, 0, sizeof(K))
    for k in range(2):
        accelerate_craft(&p.craft[k], &s.craft[k], &w[k], NULL)
        V[k] = predicted_twist(&p.craft[k], &s.craft[k], &w[k], of[k], X_NP.p, h)
        add_mobility(standing(&p.craft[k], &s.craft[k], &w[k]), &w[k], of[k], X_NP.p, K)
    # drift at the origin of P
    cdef Twist drift = drift_of_latch(s, X_PA)
    drift.v = sub(drift.v, cross(drift.w, X_PA.p))
    # K l = (u - u*) / h, N axes
    put(add(sub(V[ACTIVE].v, V[TARGET].v), taken_back(rotate(X_NP.q, drift.v), h)), l)
    put(add(sub(V[ACTIVE].w, V[TARGET].w), taken_back(rotate(X_NP.q, drift.w), h)), l + 3)
    cholesky(K, 6, 6)
    forward_solve(K, 6, 6, l)
    backward_solve(K, 6, 6, l)
    for i in range(6):
        l[i] /= h
    F = wrench(l)
    s.latch = wrench_of(rotate_back(X_NP.q, F.f), rotate_back(X_NP.q, F.m))
    return F


cdef inline Pose end_of_arm(const Params *p, const PairState *s, const Work *w) noexcept nogil:
    """Pose of E in N, after `place_in_root`."""
    return compose(pose(s.craft[TARGET].q), place_pose(&w[TARGET], &p.grasp))


cdef void load_grasp(const Params *p, PairState *s, Work *w) noexcept nogil:
    """The wrench of the grasp on both craft, on top of all other loads."""
    cdef Pose X_NE = end_of_arm(p, s, w)
    cdef Wrench F = wrench_of_latch(p, s, w, p.grasp.body, X_NE, compose(inverse(X_NE), w[ACTIVE].X_port))
    load_contact(&s.craft[ACTIVE], &w[ACTIVE], p.craft[ACTIVE].port.body, -1.0, X_NE.p, F)
    load_contact(&s.craft[TARGET], &w[TARGET], p.grasp.body, 1.0, X_NE.p, F)


cdef void load_ports(const Params *p, const PairState *s, Work *w, Vec3 x, Wrench F) noexcept nogil:
    """The wrench F at the point x of N on the target craft, its opposite on the active one, on top of their own loads."""
    cdef int k
    for k in range(2):
        w[k].f_ext[p.craft[k].port.body] = w[k].own
        w[k].force = w[k].own_force
        w[k].moment = w[k].own_moment
        load_contact(standing(&p.craft[k], &s.craft[k], &w[k]), &w[k], p.craft[k].port.body, -1.0 if k == ACTIVE else 1.0, x, F)


cdef inline void accelerate_craft(const CraftParams *p, const CraftState *s, Work *w, double *tau_out) noexcept nogil:
    accelerate(w.model, 0.0, standing(p, s, w).q, s.v, w.tau, <const double *>w.f_ext, w.known, w.a, tau_out)


cdef inline void begin_craft(const Params *p, PairState *s, Work *w, int k, const Actuators *own) noexcept nogil:
    if p.craft[k].second:
        begin_middle(p, &p.craft[k], &s.craft[k], &s.reference, &w[k], own)
    else:
        begin(p, &p.craft[k], &s.craft[k], &s.reference, &w[k], own)


cdef void one_step(Self *self, const Sample *o, int joined, double later) noexcept nogil:
    """Accelerations of both craft for one period, which ends `later` s after the sample's time (0, or before it)."""
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef Pose X_NT, X_TA
    cdef Wrench F_T, F
    cdef Actuators own
    cdef bint orbiting = p.orbit.parameter > 0.0
    cdef bint changed
    cdef int k
    own.control, own.thrust, own.wheel_torque = wrench(o.control_A), o.thruster_A, o.wheel_torque_A
    own.joint_target, own.joints = o.joint_target, o.joint_controlled[0] | <uint64_t>o.joint_controlled[1] << 32
    own.arm_rate, own.led, own.limp = self.arm_rate, 0, 0
    begin_craft(p, s, w, ACTIVE, &own)
    own.control, own.thrust, own.wheel_torque = wrench(o.control_T), o.thruster_T, o.wheel_torque_T
    own.joint_target += p.craft[ACTIVE].n_joints
    own.joints >>= p.craft[ACTIVE].n_joints
    own.led, own.limp = self.led, self.limp
    begin_craft(p, s, w, TARGET, &own)
    load_named_bodies(p, s, w, o, later)
    for k in range(2):
        w[k].own = w[k].f_ext[p.craft[k].port.body]
        w[k].own_force = w[k].force
        w[k].own_moment = w[k].moment
    X_NT = w[TARGET].X_port
    X_TA = compose(inverse(X_NT), w[ACTIVE].X_port)
    if joined and not s.joined:
        s.X_held = X_TA
        s.grasped = 0
    s.joined = joined
    # the measured wrench on the target craft at and in T; the active one bears the opposite at the same point
    F_T = wrench(o.F_T_corrected)
    F = wrench_of(rotate(X_NT.q, F_T.f), rotate(X_NT.q, F_T.m))
    if p.craft[ACTIVE].second or p.craft[TARGET].second:
        # rates in the middle of the step, from the accelerations with those at its beginning
        if joined:
            F = wrench_of_latch(p, s, w, p.craft[TARGET].port.body, X_NT, X_TA)
        load_ports(p, s, w, X_NT.p, F)
        for k in range(2):
            if p.craft[k].second:
                accelerate_craft(&p.craft[k], &s.craft[k], &w[k], w[k].tau_out)
                reach_middle(&p.craft[k], &s.craft[k], &w[k], p.period)
                renew(p, &p.craft[k], &s.craft[k], &w[k])
    if joined:
        for k in range(2):
            w[k].f_ext[p.craft[k].port.body] = w[k].own
        F = wrench_of_latch(p, s, w, p.craft[TARGET].port.body, X_NT, X_TA)
    load_ports(p, s, w, X_NT.p, F)
    if s.grasped:
        load_grasp(p, s, w)
    if orbiting:
        kick_reference(&p.orbit, 0.5 * p.period, &s.reference)
        drift_reference(p.period, &s.reference)
    for k in range(2):
        accelerate_craft(&p.craft[k], &s.craft[k], &w[k], w[k].tau_out)
        for _ in range(3):
            changed = yields(&p.craft[k], &s.craft[k], &w[k], p.period)
            if slips(&p.craft[k], &s.craft[k], &w[k], p.period):
                changed = True
            if not changed:
                break
            renew(p, &p.craft[k], &s.craft[k], &w[k])
            accelerate_craft(&p.craft[k], &s.craft[k], &w[k], w[k].tau_out)
            if not p.craft[k].second:
                break
        take_torques(&p.craft[k], &s.craft[k], &w[k])
        if p.craft[k].second:
            find_push(p, &p.craft[k], &s.craft[k], &w[k], joined)


cdef void find_push(const Params *p, const CraftParams *craft, CraftState *s, Work *w, int joined) noexcept nogil:
    """What of the accelerations the measured wrench between the ports makes: those without it, taken away; accelerations stay."""
    cdef Vec3 f = sub(w.force, w.own_force), m = sub(w.moment, w.own_moment)
    cdef Wrench loaded
    cdef int i
    w.struck = not joined and dot(f, f) + dot(m, m) > 0.0
    if not w.struck:
        return
    memcpy(w.pushed, w.a, craft.nv * sizeof(double))
    loaded = w.f_ext[craft.port.body]
    w.f_ext[craft.port.body] = w.own
    accelerate_craft(craft, s, w, NULL)
    for i in range(craft.nv):
        w.rates[i] = w.pushed[i]
        w.pushed[i] -= w.a[i]
        w.a[i] = w.rates[i]
    w.f_ext[craft.port.body] = loaded
    if craft.n_sensors + craft.n_interfaces > 0:
        # what they feel is with the wrench
        accelerate_craft(craft, s, w, NULL)


cdef void end_step(Self *self) noexcept nogil:
    """Both craft to the end of the step that `one_step` has begun."""
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef int k
    for k in range(2):
        if p.craft[k].second:
            finish_middle(p, &p.craft[k], &s.craft[k], &w[k])
        else:
            finish(p, &p.craft[k], &s.craft[k], &w[k])
    if p.orbit.parameter > 0.0:
        for k in range(2):
            if p.craft[k].second:
                continue
            w[k].R = to_matrix(quat(s.craft[k].q + 3))
            fall(p, &p.craft[k], &s.craft[k], &s.reference, &w[k], 0.5 * p.period, 0)
            see_craft(&p.craft[k], &s.craft[k], &w[k])
        kick_reference(&p.orbit, 0.5 * p.period, &s.reference)


cdef void start(Self *self, Pose X_TA, Twist V_TA) noexcept nogil:
    """Both craft from the relative pose and twist of the ports: joints and modes as at the start of a run, the craft's centre of mass with
    the motion of a rigid body; the target craft at the origin of N, at rest but for the orbital rate."""
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef CraftState *c
    cdef double entered[MAX_PHASES]
    cdef unsigned int seen = s.seen
    cdef int i, k
    memcpy(entered, s.entered, sizeof(entered))
    memset(s, 0, sizeof(PairState))
    memcpy(s.entered, entered, sizeof(entered))
    s.seen = seen
    s.reference = start_reference(&p.orbit)
    for k in range(2):
        c = &s.craft[k]
        memcpy(c.q, p.craft[k].q, sizeof(c.q))
        memcpy(c.v, p.craft[k].v, sizeof(c.v))
        for i in range(p.craft[k].n_joints):
            c.joint[i].angle = p.craft[k].joint[i].angle
            set_mode(p, s, w, k, i, p.craft[k].joint[i].mode, c.joint[i].angle, 0.0, 0, 0.0, 0.0)
            if driven_by_torque(&p.craft[k].joint[i]):
                c.joint[i].target = 0.0 if p.craft[k].joint[i].mode == JOINT_MODE_DRIVEN else c.joint[i].angle
        compose_tree(w[k].model, c.q, c.v, &w[k].whole)
        place_in_root(w[k].model)
    # the target craft: root at rest in N
    c = &s.craft[TARGET]
    put_quat(xyzw(0.0, 0.0, 0.0, 1.0), c.q + 3)
    place_root(c, &w[TARGET].whole)
    c.L = mat_vec(mat(w[TARGET].whole.inertia), p.orbital_rate)
    cdef Pose X_NT = place_pose(&w[TARGET], &p.craft[TARGET].port)
    X_NT.p = add(X_NT.p, vec(c.q))
    # the active craft: its port, then its root
    c = &s.craft[ACTIVE]
    cdef Pose X_NA = compose(X_NT, X_TA)
    cdef Pose X_NR = compose(X_NA, inverse(place_pose(&w[ACTIVE], &p.craft[ACTIVE].port)))
    X_NR.q = normalized(X_NR.q)
    put_pose(X_NR, c.q)
    c.c = apply(X_NR, vec(w[ACTIVE].whole.centre))
    # w_A = w_V + R_NT w_TA; v_A = w_V x p_A + R_NT d/dt p_TA (V at rest at the origin); v_C = v_A + w x (c - p_A)
    cdef Vec3 w_A = add(rotate(X_NT.q, V_TA.w), p.orbital_rate)
    cdef Vec3 v_A = add(cross(p.orbital_rate, X_NA.p), rotate(X_NT.q, V_TA.v))
    c.P = mul(p.craft[ACTIVE].mass, add(v_A, cross(w_A, sub(c.c, X_NA.p))))
    c.L = rotate(X_NR.q, mat_vec(mat(w[ACTIVE].whole.inertia), rotate_back(X_NR.q, w_A)))
    for k in range(2):
        # the roots move as those of rigid craft, rates of the joints come on top
        c = &s.craft[k]
        if p.craft[k].spins:
            c.P = add(c.P, rotate(quat(c.q + 3), p.craft[k].p_joints))
            c.L = add(c.L, rotate(quat(c.q + 3), p.craft[k].l_joints))
        see_craft(&p.craft[k], c, &w[k])
    if p.n_arm > 0:
        s.grasped = 1
        s.X_held = compose(inverse(end_of_arm(p, s, w)), w[ACTIVE].X_port)


# ------------------------------------------------------------------------------------------------------------------------ the arm

cdef double hand_rates(Self *self, const Sample *o) noexcept nogil:
    """Rates of the arm's joints for the twist that the guidance asks for; returns the smallest singular value."""
    cdef const Params *p = &self.flat.params
    cdef const CraftParams *of = &p.craft[TARGET]
    cdef const CraftState *s = &self.flat.state.craft[TARGET]
    cdef Work *w = &self.work[TARGET]
    cdef double J[6][ARM_JOINTS]
    cdef double x[6]
    cdef double rates[ARM_JOINTS]
    cdef double sigma, share = 1.0
    cdef Twist V
    cdef int i, k
    # of this state, which a checkpoint may have brought
    for k in range(2):
        see_craft(&p.craft[k], &self.flat.state.craft[k], &self.work[k])
    cdef Pose X_NE = end_of_arm(p, &self.flat.state, self.work)
    cdef Pose X_NP = X_NE if o.rate_frame == RATE_FRAME_END_EFFECTOR else self.work[ACTIVE].X_port
    cdef Quat axes = w.X_port.q if o.rate_frame == RATE_FRAME_TARGET else X_NP.q
    # what is asked for, at E, N axes
    cdef Vec3 w_N = rotate(axes, vec(o.operator_rate + 3))
    put(mul(1.0 / ARM_LENGTH, add(rotate(axes, vec(o.operator_rate)), cross(w_N, sub(X_NE.p, X_NP.p)))), x)
    put(w_N, x + 3)
    # twist of E for a unit rate of each joint, the root at rest
    cdef Mat3 R = mat_multiply(to_matrix(quat(s.q + 3)), mat(w.model.body[p.grasp.body].pose + 3))
    memset(w.tau_out, 0, of.nv * sizeof(double))
    for k in range(p.n_arm):
        w.tau_out[of.joint[p.arm[k]].iv] = 1.0
        twist_in_tree(w.model, p.grasp.body, w.tau_out, <double *>&V)
        w.tau_out[of.joint[p.arm[k]].iv] = 0.0
        V = twist_of(mul(1.0 / ARM_LENGTH, mat_vec(R, add(V.v, cross(V.w, p.grasp.p)))), mat_vec(R, V.w))
        for i in range(6):
            J[i][k] = (<double *>&V)[i]
    sigma = damped_rates(p.n_arm, SIGMA_0, LAMBDA_0, J, x, rates)
    # all alike no faster than their drives
    for k in range(p.n_arm):
        if fabs(rates[k]) * share > of.joint[p.arm[k]].rate:
            share = of.joint[p.arm[k]].rate / fabs(rates[k])
    for k in range(p.n_arm):
        self.arm_rate[p.arm[k]] = share * rates[k]
    return sigma


cdef double lead_arm(Self *self, const Sample *o) noexcept nogil:
    """What the joints of the arm do in this tick, by its mode; returns the smallest singular value where a hand leads it, else 1."""
    cdef const Params *p = &self.flat.params
    cdef uint64_t bits = 0
    cdef double sigma = 1.0
    cdef int k
    self.led = self.limp = 0
    if not self.flat.state.grasped:
        return sigma
    for k in range(p.n_arm):
        bits |= <uint64_t>1 << p.arm[k]
        self.arm_rate[p.arm[k]] = 0.0
    if o.arm_mode == ARM_MODE_LIMP:
        self.limp = bits
    elif o.arm_mode == ARM_MODE_HAND:
        sigma = hand_rates(self, o)
        self.led = bits
    elif o.arm_mode == ARM_MODE_SINGLE_JOINT and 0 <= o.arm_target < p.n_arm:
        self.arm_rate[p.arm[o.arm_target]] = o.operator_rate[0]
        self.led = bits
    return sigma


# ---------------------------------------------------------------------------------------------------------------------- the tick

cdef void record_loads(const Params *p, const Work *w, CraftsRecord *record) noexcept nogil:
    """What sensors and interfaces of both craft feel over the step, after `one_step`."""
    cdef const Body *b
    cdef const Place *place
    cdef Twist V, A
    cdef Vec3 a
    cdef int i, k, sensor = 0, interface = 0
    for k in range(2):
        for i in range(p.craft[k].n_sensors):
            place = &p.craft[k].sensor[i]
            b = &w[k].model.body[place.body]
            V = twist(b.V)
            A = twist(b.A)
            # w x (w x p) + alpha x p + a, axes of the place
            a = add(add(cross(V.w, cross(V.w, place.p)), cross(A.w, place.p)), A.v)
            put(mat_transposed_vec(place.R, a), record.sensor_acceleration + 3 * sensor)
            put(mat_transposed_vec(place.R, V.w), record.sensor_rate + 3 * sensor)
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


cdef void record_modes(const Params *p, const PairState *s, int modes, double *out) noexcept nogil:
    """Modal coordinates of both craft, then their rates."""
    cdef const CraftParams *of
    cdef int k, n
    for k in range(2):
        of = &p.craft[k]
        n = of.nv - of.nj
        memcpy(out, s.craft[k].q + of.nq - n, n * sizeof(double))
        memcpy(out + modes, s.craft[k].v + of.nj, n * sizeof(double))
        out += n


cdef inline void take_place(const CraftParams *p, const CraftState *s, double *X, double *V, double *rate) noexcept nogil:
    """Pose and velocity of the centre of mass, attitude and angular velocity of the root; rates of the wheels."""
    cdef int i
    cdef Quat q = quat(s.q + 3)
    put_pose(pose_of(s.c, q), X)
    put_twist(twist_of(mul(1.0 / p.mass, s.P), rotate(q, vec(s.v + 3))), V)
    for i in range(p.n_wheels):
        rate[i] = s.v[p.joint[p.wheel[i]].iv]


cdef void step(void *self_, Sample *sample, double *aux) noexcept nogil:
    cdef Self *self = <Self *>self_
    cdef CraftsRecord record = places_of(aux, self.width)
    cdef const Params *p = &self.flat.params
    cdef PairState *s = &self.flat.state
    cdef Work *w = self.work
    cdef int n = sample.periods
    cdef int i, k
    cdef double elapsed, sigma = 1.0
    cdef Pose X_TA
    cdef Twist drift
    cdef Vec3 P = xyz(0.0, 0.0, 0.0)
    cdef Vec3 L = xyz(0.0, 0.0, 0.0)
    if n < 1:
        n = 1
    elapsed = n * p.period
    memset(sample.A_TA, 0, sizeof(sample.A_TA))
    memset(aux, 0, self.channels * sizeof(double))
    watch_phase(s, sample)
    for k in range(2):
        memset(w[k].torque, 0, sizeof(w[k].torque))
    if sample.motion == MOTION_FREE or sample.motion == MOTION_JOINED:
        # what acts on the craft, over the true elapsed time
        change_modes(p, s, w, sample)
        sigma = lead_arm(self, sample)
        for i in range(n):
            one_step(self, sample, sample.motion == MOTION_JOINED, -p.period * (n - 1 - i))
            if i == n - 1:
                record_loads(p, w, &record)
            end_step(self)
        X_TA = compose(inverse(w[TARGET].X_port), w[ACTIVE].X_port)
        if s.joined or s.grasped:
            put_wrench(s.latch, record.latch_wrench)
            drift = drift_of_latch(s, X_TA if s.joined else compose(inverse(end_of_arm(p, s, w)), w[ACTIVE].X_port))
            record.latch_drift[0] = norm(drift.v)
            record.latch_drift[1] = norm(drift.w)
        if s.joined:
            put_pose(s.X_held, sample.X_TA)
            memset(sample.V_TA, 0, sizeof(sample.V_TA))
        else:
            put_pose(X_TA, sample.X_TA)
            put_twist(relative_twist(w[TARGET].X_port, w[TARGET].V_port, w[ACTIVE].X_port, w[ACTIVE].V_port), sample.V_TA)
            for i in range(6):
                sample.A_TA[i] = (sample.V_TA[i] - s.V_TA[i]) / elapsed
    elif sample.motion == MOTION_CLOSE_LOOP:
        # bumpless: from the achieved pose and twist, not from the commanded ones
        start(self, pose(sample.X_TA_measured), twist(sample.V_TA_measured))
        take_motion(sample, sample.X_TA_measured, sample.V_TA_measured)
    elif sample.motion == MOTION_FOLLOW_PROFILE:
        start(self, pose(sample.profile_X_TA), twist(sample.profile_V_TA))
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
    # absolute states, invariants, and the verdict on the state
    take_place(&p.craft[ACTIVE], &s.craft[ACTIVE], sample.X_NC, sample.V_NC, sample.wheel_rate_A)
    take_place(&p.craft[TARGET], &s.craft[TARGET], sample.X_NV, sample.V_NV, sample.wheel_rate_T)
    sample.kinetic_energy = 0.0
    for k in range(2):
        P = add(P, s.craft[k].P)
        L = add(L, add(cross(s.craft[k].c, s.craft[k].P), s.craft[k].L))
        sample.kinetic_energy += w[k].kinetic
    put(P, sample.momentum)
    put(L, sample.momentum + 3)
    # in the frame of the common centre of mass
    sample.kinetic_energy -= 0.5 * dot(P, P) / (p.craft[ACTIVE].mass + p.craft[TARGET].mass)
    record_joints(p, s, w, &record)
    if self.modes:
        record_modes(p, s, self.modes, aux + self.channels)
    sample.dynamics_status = verdict(sample, sample.kinetic_energy, p.keys.range_max, s.joined)
    if sigma < SIGMA_0:
        sample.dynamics_status |= DYNAMICS_STATUS_NEAR_SINGULAR
    for k in range(2):
        sample.joint_energy[k] = s.craft[k].joint_energy
        if not s.craft[k].joint_energy <= p.keys.joint_energy_max:
            sample.dynamics_status |= DYNAMICS_STATUS_JOINT_ENERGY


# ------------------------------------------------------------------------------------------------------------------------ set-up

FRICTION_RATE = 1e-3            # v_f: below it Coulomb friction is a damper, rad/s or m/s
TARGET_MAX = 1e6                # of a joint, as the command has it
STOP_HZ = 20.0                  # a joint against its stop swings with this frequency, with the damping ratio 0.5

EVENTS = {"time": AT_TIME, "first_contact": AT_FIRST_CONTACT, "capture": AT_CAPTURE,
          **{phase: AT_PHASE + code for phase, code in CODES["phase"].items()}}
SIDES = ("active", "target")
_MODES = tuple(CODES["joint_mode"])
_EVENT = (
    Parameter("event", "str", "-", "what the time counts from: the start of the run, the first contact, the capture, or a phase when it is "
              "entered first; with contact the loop closes", "time", choices=tuple(EVENTS)),
    Parameter("after_s", "float", "s", "time after the event", 0.0, low=0.0, high=1e6),
)
_CHANGE = (
    Parameter("craft", "str", "-", "whose joint", choices=SIDES),
    Parameter("joint", "str", "-", "name of the joint"),
    Parameter("mode", "str", "-", "its mode from then on", choices=_MODES),
    *_EVENT,
    Parameter("target", "float", "rad, m, N.m or N", "place, or torque of a driven joint without gains", 0.0, low=-1e6, high=1e6),
    Parameter("time_s", "float", "s", "how long the path to the target takes at least", 0.0, low=0.0, high=1e4),
    Parameter("profile", "str", "-", "name of the profile that a given or driven joint follows: target + amplitude x profile", ""),
    Parameter("amplitude", "float", "rad, m, N.m or N", "what 1 of the profile is", 1.0, low=-1e6, high=1e6),
)
_LOAD = (
    Parameter("craft", "str", "-", "whose body", choices=SIDES),
    Parameter("body", "str", "-", "name of the body"),
    Parameter("node", "str", "-", "node of a body that bends; empty: its own frame", ""),
    Parameter("position_m", "floats", "m", "where the force acts, in the frame of body or node", (0.0, 0.0, 0.0), -1e4, 1e4, 3),
    Parameter("force_n", "floats", "N", "force", (0.0, 0.0, 0.0), -1e9, 1e9, 3),
    Parameter("moment_n_m", "floats", "N.m", "moment", (0.0, 0.0, 0.0), -1e9, 1e9, 3),
    Parameter("axes", "str", "-", "axes of both: the body's (or node's), or inertial ones", "body", choices=("body", "inertial")),
    Parameter("profile", "str", "-", "name of the profile that both are multiplied by; empty: constant", ""),
    *_EVENT,
)
_JOINT_START = (
    Parameter("craft", "str", "-", "whose joint", choices=SIDES),
    Parameter("joint", "str", "-", "name of the joint"),
    Parameter("rate_deg_s", "float", "deg/s", "rate of a joint that turns when the loop closes", 0.0, low=-1e6, high=1e6),
    Parameter("rate_m_s", "float", "m/s", "of one that slides", 0.0, low=-1e3, high=1e3),
    Parameter("momentum_n_m_s", "float", "N.m.s", "or the momentum about its axis of what turns on it, the rest of the craft held", 0.0,
              low=-1e9, high=1e9),
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
    R = np.empty(9)
    cdef double[::1] X_port = np.array(vehicle.X_port, dtype=float), R_port = R
    put_mat(to_matrix(quat(&X_port[3])), &R_port[0])
    port = CraftPort(DOCKING, name, np.array(vehicle.X_port[:3], float), R.reshape(3, 3))
    return Craft(name, (Link(name, body, joint="free"),), (port,))


cdef class TwoCrafts(StagePart):
    """Dynamics of two free spacecraft, each any tree of rigid and flexible bodies (`rt_kernels.model.craft.Craft`); a vehicle without one
    is rigid. Raises ValueError for a craft that is no free-flyer, counts above the limits, unknown names, and a mass that disagrees.

    LIMITS: how many of each thing a craft may have, of joints both together.

    .trees: (active, target), the `FlexibleTree` of each, with a massless link at every place on a flexible body; .joints, .sensors,
    .interfaces, .modes: names in the order of the channels, "active arm_1", "target wing 2"; .joint_targets: of each joint, least and
    largest target with its unit by the code of the mode, None where the mode has none; .notes: the names in words, for the log. For a
    control that looks at channels: .named: channel or field -> names of what its numbers are of, and how many each has; .driven: joints
    that are driven at the start or by `joint_changes`; .actuators: field -> of each wheel or thruster the wrench (6,) of a unit on the
    craft, at and in C as on a rigid craft, the least and the most that it gives; of a wheel its inertia about its axis and the momentum
    that it takes, else 0."""

    PARAMETERS = (
        Parameter("active_port", "str", "-", "docking port of the active craft", DOCKING),
        Parameter("target_port", "str", "-", "docking port of the target craft", DOCKING),
        Parameter("grasp_port", "str", "-", "port of the target craft, at the end of its arm, that holds the active craft as it is there "
                  "when the loop closes; the guidance leads the arm. Empty: nothing holds it", ""),
        Parameter("joint_changes", "tables", "-", "changes of the modes of joints: craft, joint, mode, event, after_s, target, time_s, "
                  "profile, amplitude", [], of=_CHANGE),
        Parameter("profiles", "tables", "-", "functions of the time since an event: name, and frequency_hz, phase_deg of a sine, or "
                  "times_s, values (or file), interpolation, repeats of points", [], of=PROFILE_KEYS),
        Parameter("loads", "tables", "-", "forces and moments on named bodies: craft, body, node, position_m, force_n, moment_n_m, axes, "
                  "profile, event, after_s", [], of=_LOAD),
        Parameter("joint_start", "tables", "-", "joints in motion when the loop closes: craft, joint, rate_deg_s, rate_m_s or "
                  "momentum_n_m_s", [], of=_JOINT_START),
        Parameter("modal_start", "tables", "-", "deformation when the loop closes: craft, body, coordinates, rates", [], of=_MODAL_START),
        Parameter("range_max_m", "float", "m", "ports further apart than this are out of the model's range", 5.0, low=0.01, high=1000.0),
        Parameter("joint_energy_max_j", "float", "J", "most that the joints of a craft, wheels left out, may give its bodies in a run",
                  1000.0, low=1e-3, high=1e9),
        Parameter("modal_channels", "str", "-", "all: modal coordinates of both crafts' bodies and their rates are channels, "
                  "modal_coordinate and modal_rate, in the order of the part's notes", "none", choices=("none", "all")),
    )
    AUX = AUX
    COMMANDS = (Command("joint", ("contact", "latched"), (0, 1), names_of="joints", targets_of="joint_targets"),)
    CONTEXT = ("period_s", "vehicles", "start", "orbit")
    FLIES = ("joints", "modes of its bodies", "wheels", "thrusters", "sensors", "interfaces", "step")
    FREE_VEHICLES = True
    LIMITS = {"joints of one degree of freedom": MAX_JOINTS, "spherical joints": MAX_BALLS, "velocity coordinates": MAX_V,
              "bodies, places on flexible bodies included": MAX_BODIES, "thrusters": MAX_THRUSTERS, "wheels": MAX_WHEELS,
              "sensors": MAX_SENSORS, "interfaces": MAX_INTERFACES}
    READS = {"profiles": with_data}
    cdef Self c
    cdef dict __dict__          # AUX as wide as the crafts need
    cdef double[:, ::1] points
    cdef readonly tuple trees
    cdef readonly tuple joints
    cdef readonly tuple joint_targets
    cdef readonly tuple sensors
    cdef readonly tuple interfaces
    cdef readonly tuple modes
    cdef readonly tuple notes
    cdef readonly dict named
    cdef readonly tuple driven
    cdef readonly dict actuators

    def __init__(self, *, period_s, vehicles, start, orbit=None, **given):
        cdef Params *p = &self.c.flat.params
        keys = checked(TwoCrafts.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        p.period = period_s
        fill_two_crafts(&p.keys, keys)
        rate = start.orbital_rate_rad_s
        p.orbital_rate = xyz(rate[0], rate[1], rate[2])
        fill_orbit(&p.orbit, orbit)
        profiles = self._fill_profiles(keys["profiles"])
        loads = keys["loads"]
        _limit("loads", len(loads), MAX_LOADS)
        trees, self.joints, self.joint_targets, self.sensors, self.interfaces = [], (), (), (), ()
        for k, (side, vehicle) in enumerate(zip(SIDES, (vehicles.active, vehicles.target), strict=True)):
            craft = vehicle.craft if vehicle.craft is not None else rigid_craft(f"{side} craft", vehicle)
            trees.append(self._fill(k, f"{side} craft {craft.name}", craft, keys[f"{side}_port"], keys["joint_start"], keys["modal_start"],
                                    loads, profiles))
            if not abs(vehicle.mass_kg - p.craft[k].mass) <= 1e-9 * p.craft[k].mass:
                raise ValueError(f"{side} craft: mass_kg of the vehicle is {vehicle.mass_kg:.12g} kg, its bodies have "
                                 f"{p.craft[k].mass:.12g} kg: give both the same mass")
        self.trees = tuple(trees)
        self._fill_grasp(keys["grasp_port"], vehicles.target.craft)
        _limit("joints of one degree of freedom of both craft", len(self.joints), MAX_JOINTS)
        self._fill_changes(keys["joint_changes"], profiles)
        modes = tuple(f"{side} {link.name} {number + 1}" for side, tree in zip(SIDES, trees, strict=True) for link in tree.links
                      for number in range(link.body.n_modes))
        self.modes = modes if keys["modal_channels"] == "all" else ()
        self.c.modes = len(self.modes)
        self.notes = tuple(f"{what} {', '.join(names)}" for what, names in
                           (("joints", self.joints), ("sensors", self.sensors), ("interfaces", self.interfaces),
                            ("modes", self.modes)) if names)
        self._fill_named(vehicles, keys["joint_changes"])
        self._fill_widths()
        self.plug.self = &self.c
        self.plug.self_size = 0
        self.plug.state = &self.c.flat.state
        self.plug.state_size = sizeof(PairState)
        self.plug.step = step
        start_at_rest(&self.c)

    def _fill(self, int k, where, craft, port_name, joint_start, modal_start, loads, profiles):
        """Parameters and working memory of one craft; its tree."""
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef Work *w = &self.c.work[k]
        cdef FlexibleTree tree
        cdef Body *b
        cdef Joint *joint
        cdef int i
        own_loads = {number: load for number, load in enumerate(loads) if load["craft"] == SIDES[k]}
        links, place_of = _with_places(craft, [(f"loads[{number}]", load["body"], load["node"] or None)
                                               for number, load in own_loads.items()])
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
        _limit(f"{where}: velocity coordinates", tree.nv, MAX_V)
        p.bodies, p.nq, p.nv, p.nj = tree.model.n, tree.nq, tree.nv, tree.nj
        p.mass = sum(link.body.mass for link in links)
        p.friction_rate = FRICTION_RATE
        p.second = craft.step == "second_order"
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
            if table["craft"] == SIDES[k]:
                _start_modes(tree, where, table, q, v)
        self._start_joints(k, tree, names, joint_start, q, v)
        for i, x in enumerate(q):
            p.q[i] = x
        for i, x in enumerate(v):
            p.v[i] = x
        self._stops(k, tree, q)
        # places, at the start
        compose_tree(w.model, p.q, p.v, &w.whole)
        place_in_root(w.model)
        w.profile = self.c.flat.params.profile
        w.points = &self.points[0, 0]
        port = craft.port(port_name)
        _fill_place(&p.port, tree, place_of(port.body, port.node), port.position, port.rotation)
        _limit(f"{where}: thrusters", len(craft.thrusters), MAX_THRUSTERS)
        for number, thruster in enumerate(craft.thrusters):
            self._fill_thruster(k, number, tree, place_of, thruster)
        for number, load in own_loads.items():
            self._fill_load(k, number, tree, place_of, load, profiles)
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

    def _fill_grasp(self, name, craft):
        """The port that holds, and the joints between it and the root that have a servo; which of them a command moves singly."""
        cdef Params *p = &self.c.flat.params
        cdef CraftParams *of = &p.craft[TARGET]
        cdef FlexibleTree tree = self.trees[TARGET]
        cdef Joint *joint
        cdef int i
        if not name:
            return
        if p.craft[ACTIVE].second or of.second:
            raise ValueError("grasp_port: a craft has a step of second order, limit first order")
        if craft is None:
            raise ValueError(f"grasp_port: {name!r} of a target craft of one body, limit a craft with an arm")
        port = craft.port(name)
        place = f"{port.body}:{port.node}"
        _fill_place(&p.grasp, tree, (place, None) if place in tree.names else (port.body, port.node), port.position, port.rotation)
        moving = _path(tree, p.grasp.body)
        found = []
        for i in range(of.n_joints):
            joint = &of.joint[i]
            if joint.body in moving and joint.wheel < 0 and joint.mode == JOINT_MODE_DRIVEN and not driven_by_torque(joint):
                found.append(i)
        if not 0 < len(found) <= ARM_JOINTS:
            raise ValueError(f"grasp_port: {len(found)} joints with a servo between port {name!r} and the root, limit 1 ... {ARM_JOINTS}")
        for i in found:
            if of.joint[i].body in _path(tree, of.port.body):
                raise ValueError(f"grasp_port: a joint between port {name!r} and the root moves the docking port too, limit one that "
                                 "stands still on the root")
            p.arm[p.n_arm] = i
            p.n_arm += 1
        self.COMMANDS = (*TwoCrafts.COMMANDS, Command("single_joint", numbers=tuple(range(p.n_arm)), acts=False),
                         Command("auto_sequence", numbers=(), acts=False))

    def _fill_named(self, vehicles, changes):
        """`named`, `driven`, `actuators`."""
        cdef CraftParams *p
        cdef Vec3 e, f
        cdef int i, k
        self.named = {**dict.fromkeys(("joint_position", "joint_rate", "joint_torque", "joint_mode", "joint_target"), (self.joints, 1)),
                      **dict.fromkeys(("sensor_acceleration", "sensor_rate"), (self.sensors, 3)),
                      "interface_wrench": (self.interfaces, 6), **dict.fromkeys(("modal_coordinate", "modal_rate"), (self.modes, 1))}
        changed = {f"{table['craft']} {table['joint']}" for table in changes if table["mode"] == "driven"}
        driven, names = [], iter(self.joints)
        self.actuators = {}
        for k, vehicle in enumerate((vehicles.active, vehicles.target)):
            p = &self.c.flat.params.craft[k]
            for i in range(p.n_joints):
                name = next(names)
                if p.joint[i].wheel < 0 and (p.joint[i].mode == JOINT_MODE_DRIVEN or name in changed):
                    driven.append(name)
            wheels, thrusters = (vehicle.craft.wheels, vehicle.craft.thrusters) if vehicle.craft is not None else ((), ())
            turns, pushes, side = [], [], "AT"[k]
            for i, wheel in enumerate(wheels):
                e = p.wheel_axis[i]
                iv = p.joint[p.wheel[i]].iv
                inertia = self.trees[k].mass_matrix(self.trees[k].neutral())[iv, iv]
                turns.append(((0.0, 0.0, 0.0, -e.x, -e.y, -e.z), -wheel.torque_n_m, wheel.torque_n_m, inertia, wheel.momentum_n_m_s))
            for i, thruster in enumerate(thrusters):
                f, e = p.thruster[i].wrench.f, p.thruster[i].wrench.m
                pushes.append(((f.x, f.y, f.z, e.x, e.y, e.z), 0.0, thruster.thrust_n, 0.0, 0.0))
            self.actuators |= {f"wheel_torque_{side}": tuple(turns), f"thruster_{side}": tuple(pushes)}
            self.named |= dict.fromkeys((f"wheel_torque_{side}", f"wheel_rate_{side}"), (tuple(wheel.name for wheel in wheels), 1))
            self.named[f"thruster_{side}"] = tuple(thruster.name for thruster in thrusters), 1
        self.driven = tuple(driven)

    def _fill_widths(self):
        """AUX of this run: a channel is as wide as the crafts need, and no narrower than the table says; then the modes' channels."""
        cdef int i
        found = []
        for one in AUX:
            names, each = self.named.get(one.name, ((), 0))
            found.append(replace(one, count=max(one.count, each * len(names))))
        for i in range(len(found)):
            self.c.width[i] = found[i].count
            self.c.channels += found[i].count
        if self.modes:
            found += [Aux("modal_coordinate", "-", "modal coordinates of the active craft's bodies, then of the target craft's, in the "
                          "order of the part's notes", len(self.modes)), Aux("modal_rate", "1/s", "their rates", len(self.modes))]
        self.AUX = tuple(found)

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
        cdef Work *w = &self.c.work[k]
        _fill_place(&out.place, tree, place_of(thruster.body, thruster.node), thruster.position, np.eye(3))
        cdef double[::1] direction = np.asarray(thruster.direction, float) / np.linalg.norm(thruster.direction)
        # direction in the axes of the place, then of its body
        out.direction = mat_vec(out.place.R, vec(&direction[0]))
        out.wrench.f = mat_vec(mat(w.model.body[out.place.body].pose + 3), out.direction)
        out.wrench.m = cross(sub(place_pose(w, &out.place).p, vec(w.whole.centre)), out.wrench.f)
        p.n_thrusters += 1

    def _fill_profiles(self, tables):
        """Name -> (number from 1, profile); the rows of all points."""
        cdef Params *p = &self.c.flat.params
        _limit("profiles", len(tables), MAX_PROFILES)
        found = {}
        rows = []
        for number, table in enumerate(tables):
            one = ProfileOf(table, f"profiles[{number}]")
            if one.name in found:
                raise ValueError(f"profiles[{number}].name: {one.name!r} stands twice, limit once")
            found[one.name] = (number + 1, one)
            p.profile[number].first, p.profile[number].rows = sum(map(len, rows)), len(one.rows)
            p.profile[number].period, p.profile[number].frequency, p.profile[number].phase = one.period_s, one.frequency_hz, one.phase
            rows.append(one.rows)
            p.n_profiles += 1
        self.points = np.ascontiguousarray(np.concatenate([*rows, np.zeros((1, 5))]))
        return found

    def _start_joints(self, int k, FlexibleTree tree, names, tables, q, v):
        """Rates of joints at the start into v; the momentum that they have with the root at rest."""
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef Work *w = &self.c.work[k]
        cdef Joint *joint
        mine = np.zeros(tree.nv)
        for number, table in enumerate(tables):
            where = f"joint_start[{number}]"
            if table["craft"] != SIDES[k]:
                continue
            if table["joint"] not in names:
                raise ValueError(f"{where}: no joint {table['joint']!r} of the {SIDES[k]} craft; there are {', '.join(names) or 'none'}")
            joint = &p.joint[names.index(table["joint"])]
            slides = tree.links[joint.body].joint == "prismatic"
            given = [key for key in ("rate_deg_s", "rate_m_s", "momentum_n_m_s") if table[key]]
            allowed = ["rate_m_s"] if slides else ["rate_deg_s", "momentum_n_m_s"]
            if len(given) != 1 or given[0] not in allowed:
                raise ValueError(f"{where}: {', '.join(given) or 'no rate'} of joint {table['joint']!r}, limit one of {', '.join(allowed)}")
            if joint.mode == JOINT_MODE_LOCKED:
                raise ValueError(f"{where}: joint {table['joint']!r} is locked at the start, limit a mode in which it moves")
            value = table[given[0]]
            if given[0] == "momentum_n_m_s":
                value /= tree.mass_matrix(q)[joint.iv, joint.iv]
            elif not slides:
                value = np.radians(value)
            if not abs(value) <= joint.rate:
                raise ValueError(f"{where}.{given[0]}: {value:g} {'m/s' if slides else 'rad/s'} of joint {table['joint']!r}, limit "
                                 f"{joint.rate:g} (the rate of its drive)")
            mine[joint.iv] = v[joint.iv] = value
            p.spins = 1
        if p.spins:
            _momentum_of(p, w, tree, q, mine)

    def _fill_load(self, int k, int number, FlexibleTree tree, place_of, load, profiles):
        cdef Params *p = &self.c.flat.params
        cdef Load *out = &p.load[number]
        cdef double[::1] f = np.array(load["force_n"], float), m = np.array(load["moment_n_m"], float)
        out.craft, out.inertial = k, load["axes"] == "inertial"
        out.event, out.after = EVENTS[load["event"]], load["after_s"]
        out.profile = _number_of(profiles, load["profile"], f"loads[{number}]")
        _fill_place(&out.place, tree, place_of(load["body"], load["node"] or None), load["position_m"], np.eye(3))
        out.f, out.m = vec(&f[0]), vec(&m[0])
        p.n_loads = max(p.n_loads, number + 1)

    def _fill_wheel(self, int k, int number, where, names, wheel):
        cdef CraftParams *p = &self.c.flat.params.craft[k]
        cdef Body *b
        if wheel.joint not in names:
            raise ValueError(f"{where}: wheel {wheel.name!r}: no joint {wheel.joint!r}; there are {', '.join(names)}")
        p.wheel[number] = names.index(wheel.joint)
        p.joint[p.wheel[number]].wheel = number
        b = &self.c.work[k].model.body[p.joint[p.wheel[number]].body]
        p.wheel_axis[number] = mat_vec(mat(b.pose + 3), vec(b.axis))
        p.n_wheels += 1

    def _fill_changes(self, tables, profiles):
        cdef Params *p = &self.c.flat.params
        cdef Change *change
        _limit("joint_changes", len(tables), MAX_CHANGES)
        for number, table in enumerate(tables):
            where = f"joint_changes[{number}]"
            k = SIDES.index(table["craft"])
            names = [name.split(" ", 1)[1] for name in self.joints if name.startswith(f"{table['craft']} ")]
            if table["joint"] not in names:
                raise ValueError(f"{where}: no joint {table['joint']!r} of the {table['craft']} craft; there are "
                                 f"{', '.join(names) or 'none'}")
            change = &p.change[number]
            change.craft, change.joint, change.mode = k, names.index(table["joint"]), CODES["joint_mode"][table["mode"]]
            change.event, change.after = EVENTS[table["event"]], table["after_s"]
            change.target, change.duration, change.amplitude = table["target"], table["time_s"], table["amplitude"]
            change.profile = _number_of(profiles, table["profile"], where)
            limits = self.joint_targets[self.joints.index(f"{table['craft']} {table['joint']}")][change.mode]
            if change.profile and limits is None:
                raise ValueError(f"{where}.profile: of a joint that is {table['mode']}, limit given or driven")
            key, places = "target", [change.target]
            if change.profile:
                key, one = "amplitude", profiles[table["profile"]][1]
                places = [change.target + change.amplitude * x for x in one.range()]
                if limits[3] == "its stops" and one.jumps:
                    raise ValueError(f"{where}.profile: {one.name!r} jumps, limit a place without jumps")
            for place in places:
                if limits is not None and not limits[0] <= place <= limits[1]:
                    raise ValueError(f"{where}.{key}: {place:g} {limits[2]} of joint {table['joint']!r}, limit {limits[0]:g} ... "
                                     f"{limits[1]:g} {limits[2]} ({limits[3]})")
            rate = p.craft[k].joint[change.joint].rate
            if change.profile and limits[3] == "its stops" and not abs(change.amplitude) * one.fastest() <= rate:
                raise ValueError(f"{where}.amplitude: {abs(change.amplitude) * one.fastest():g} {limits[2]}/s of joint {table['joint']!r} "
                                 f"by its profile, limit {rate:g} {limits[2]}/s (the rate of its drive)")
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
        parts = [_constants(tree) for tree in self.trees]
        return PyBytes_FromStringAndSize(<const char *>&self.c.flat, sizeof(Flat)) + b"".join([*parts, np.asarray(self.points).tobytes()])

    def state_bounds(self):
        return {"craft.joint.mode": code_range("joint_mode"), "craft.joint.yields": FLAG, "craft.joint.sticks": FLAG,
                "joined": FLAG, "grasped": FLAG, "done": WORD, "seen": WORD, "craft.joint.profile": (0, self.c.flat.params.n_profiles)}

    def fields(self):
        return self.c.flat

    def load_unchecked(self, bytes block):
        """Raises ValueError when the block is that of other bodies."""
        own = [_constants(tree) for tree in self.trees]
        size = sizeof(Flat) + sum(map(len, own)) + np.asarray(self.points).nbytes
        if len(block) != size:
            raise ValueError(f"block has {len(block)} bytes, this part has {size}: other bodies, or profiles of other points")
        memcpy(&self.c.flat, PyBytes_AS_STRING(block), sizeof(Flat))
        at = sizeof(Flat)
        for tree, part in zip(self.trees, own, strict=True):
            _take_constants(tree, block[at:at + len(part)])
            at += len(part)
        np.asarray(self.points)[:] = np.frombuffer(block[at:]).reshape(-1, 5)


cdef list _path(FlexibleTree tree, int body):
    """The bodies from this one to the root."""
    found = []
    while body >= 0:
        found.append(body)
        body = tree.model.body[body].parent
    return found


def _number_of(profiles, name, where):
    """Number of the named profile, 0 for none."""
    if not name:
        return 0
    if name not in profiles:
        raise ValueError(f"{where}.profile: no profile {name!r}; there are {', '.join(profiles) or 'none'}")
    return profiles[name][0]


cdef void _momentum_of(CraftParams *p, Work *w, FlexibleTree tree, q, v):
    """Momentum of the craft with these rates, its root at rest."""
    cdef double[::1] q_ = q, v_ = v
    compose_tree(&tree.model, &q_[0], &v_[0], &w.whole)
    p.p_joints, p.l_joints = vec(w.whole.p), vec(w.whole.l)


def _with_places(craft, loads):
    """Links of a craft with a massless one at every port of a flexible body that something of the craft or a load (where, body, node)
    names, and the function (body, node) -> (link, port of it or None) that finds the place."""
    by_name = {link.name: link for link in craft.links}
    links = list(craft.links)
    things = [(f"{craft.name}: {thing.name!r}", thing.body, thing.node) for thing in (*craft.ports, *craft.thrusters, *craft.sensors)]
    for where, of, node in (*things, *loads):
        if of not in by_name:
            raise ValueError(f"{where}: no body {of!r}; there are {', '.join(by_name)}")
        body = by_name[of].body
        body.port_arrays(node)
        name = f"{of}:{node}"
        if node is not None and body.n_modes and name not in by_name:
            by_name[name] = Link(name, ModalBody(0.0, np.zeros(3), np.zeros((3, 3))), of, node)
            links.append(by_name[name])
    for where, of, node in loads:
        if node is None and by_name[of].body.n_modes:
            raise ValueError(f"{where}.node: body {of!r} bends, limit a load on one of its nodes: {', '.join(by_name[of].body.ports)}")

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
    name, node = where
    out.body = tree.index(name)
    p, R, _, _ = tree.links[out.body].body.port_arrays(node)
    cdef double[::1] p_place = np.asarray(p) + R @ np.asarray(position, float)
    cdef double[::1] R_place = (R @ np.asarray(rotation, float)).ravel()
    out.p = vec(&p_place[0])
    out.R = mat(&R_place[0])


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


cdef void start_at_rest(Self *self) noexcept:
    """Ports in one place and at rest relative to each other, until the loop closes."""
    cdef Vec3 zero = xyz(0.0, 0.0, 0.0)
    start(self, pose_of(zero, xyzw(0.0, 0.0, 0.0, 1.0)), twist_of(zero, zero))
