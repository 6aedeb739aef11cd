"""A manipulator on the target vehicle carries the active vehicle (the payload) to the port. Yaskevich 2020 (8.2), corrected.

    arm        rigid tree with reflected gear inertia, H a + c = tau + J^T F
    joints     motor and gear of `joint_drive`, digital controllers (inner loop every step, outer loop every 8 ms)
    link       end effector E and grapple fixture G of the payload are joined by the compliance of the arm's links, F = K d + D d'
    payload    free rigid body under the link and the measured contact wrench

One inner step of h <= 0.5 ms (the tick's period in whole parts), in this order; + marks the values at its end:

    1  place of E, deflection d of G, J of the point of the end effector's body at G, all on the axes of E;  F_0 = K d
    2  payload's twist u at G with contact and F_0, without the damper
    3  controllers: motor voltages
    4  F = F_0 + D~ (u - J v+),  D~ = (D^-1 + h M^-1)^-1: the damper acts at the end of the step, so no payload is too heavy for it;
       the arm bears h J^T D~ J as further inertia
    5  elimination from the tip to the base, H = L^T D L: D_j is the articulated inertia, and the gear torque of an outer joint enters as
       T_g+ = A - B w+ (`drive_response`)
    6  from the base to the tip: inertial load m_IA and D_j of every joint, motor and gear together by `drive_step`, q'' = (w+ - w)/(h i_R)
    7  payload with F and the contact: velocities first, then pose

Steps 5 and 6 are the modified articulated-body algorithm of (8.2.3); the printed one takes the outer torques of the step before, which
limits gear damping to the inertia of the lightest link. Elastic forces are explicit with the velocity first (no damping of their own).

K holds near one configuration: when a joint has moved on by a set angle, a new K and D are made over the next dozen inner steps, and
blended in. D = c M # K with c = 2 delta/sqrt(4 pi^2 + delta^2) (# geometric mean): every mode of the payload has log decrement delta.

Frames: N inertial, origin at the centre of mass of the target vehicle V at the start; C of the payload (P of the source); A, T ports;
O tree of the arm (its base); E end effector; G grapple fixture. Without deflection G lies on E.

The base of the arm is placed so that at the given joint angles the payload's port is at the start pose. The loop is closed without
deflection, the arm moving along with the payload as far as its free joints can. Following a profile and frozen, the arm stands still.

Base: fixed (the target vehicle does not move), or free: the target vehicle is the root of the arm's tree, with six more coordinates in
steps 4 to 6. States are then the momentum P and the angular momentum L of vehicle and arm about the origin of N; the root's twist follows
from them at the new joint angles and rates, so the momentum that the link and the contact exchange is kept to rounding:

    V_0 = H_00^-1 (h_0 - H_0j v_j),  h_0 = [R^T P; R^T (L - p x P)]
"""

import hashlib
from dataclasses import replace
from pathlib import Path

from libc.string cimport memcpy, memset

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from rt_kernels.algebra.values cimport (
    Mat3, Pose, Vec3, add, compose, cross, inverse, mat, mat_multiply, mul, normalized, of_yaw_pitch_roll, pose_of, put, put_pose,
    put_twist, quat_of, rotate, rotate_back, sub, to_matrix, transposed, vec, xyz, xyzw,
)
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.arm cimport PATHS, Arm, ArmParams, ArmState, Flat
from rt_kernels.dynamics.manipulator.compliance cimport ArmCompliance
from rt_kernels.dynamics.manipulator.following_stiffness cimport follow_configuration
from rt_kernels.dynamics.manipulator.free_root cimport inertia_with_vehicle, join, rigid_inertia
from rt_kernels.dynamics.manipulator.inner_step cimport Contact, inner_step
from rt_kernels.dynamics.manipulator.joint_drive cimport JointDrive
from rt_kernels.dynamics.manipulator.record cimport ArmRecord
from rt_kernels.dynamics.manipulator.payload_parameters cimport fill_manipulator_payload
from rt_kernels.dynamics.manipulator.report cimport ARM_JOINTS_SHOWN, report
from rt_kernels.dynamics.manipulator.resolved_rate cimport (
    ARM_JOINTS, ARM_WAYPOINTS, RATES_HAND, RATES_HOLD, RATES_PATH, RATES_SINGLE, RateState, ResolvedRate, rate_step,
)
from rt_kernels.dynamics.two_bodies cimport body_pose, body_twist, fill_vehicle, relative_state, start_from_relative, take_motion
from rt_kernels.codes cimport (ARM_MODE_HAND, ARM_MODE_PATH, ARM_MODE_SINGLE_JOINT, MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE,
                               MOTION_JOINED, RATE_FRAME_TARGET)
from rt_kernels.multibody.tree cimport Tree
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import COUNT_32, FLAG, code_range
from rt_kernels.dynamics.manipulator.record import AUX
from rt_kernels.model.bodies import Body, model_tables
from rt_kernels.model.craft_file import bodies_of
from rt_kernels.model.elastic_payload import damping_matrix, payload_mass_matrix
from rt_kernels.model.joint_drive import gains_for_payload
from rt_kernels.model.manipulator_file import manipulator_of
from rt_kernels.parameters import Command, Parameter, checked

# ------------------------------------------------------------------------------------------------------------------- rate commands

cdef void choose_rates(Arm *self, const Sample *sample) noexcept nogil:
    """Outer loop: joint rates of the mode. A path begins with its first waypoint whenever it is chosen."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef int frame = sample.rate_frame
    cdef int mode = RATES_HOLD
    cdef int joint = 0
    if sample.arm_mode == ARM_MODE_HAND and 0 <= frame < 4:
        mode = RATES_HAND
        p.rates.axes = p.axes[frame]
        p.rates.point = p.point[frame]
        if frame == RATE_FRAME_TARGET:
            p.rates.axes.R = s.R_OT
    elif sample.arm_mode == ARM_MODE_SINGLE_JOINT and 0 <= sample.arm_target < p.n:
        mode = RATES_SINGLE
        joint = sample.arm_target
    elif sample.arm_mode == ARM_MODE_PATH and 0 <= sample.arm_target < PATHS:
        mode = RATES_PATH
        memcpy(p.rates.path, p.path[sample.arm_target], p.n_path[sample.arm_target] * sizeof(p.rates.path[0]))
        p.rates.n_path = p.n_path[sample.arm_target]
        if s.mode != ARM_MODE_PATH or s.target != sample.arm_target:
            s.rates.waypoint = 0
    s.mode = sample.arm_mode
    s.target = sample.arm_target
    rate_step(self.kinematics, &p.rates, &s.rates, mode, sample.operator_rate, joint, s.x + p.nq, s.command)


cdef void watch_singularity(Arm *self) noexcept nogil:
    """The smallest singular value where no hand command is followed, half-way between two turns of the outer loop."""
    cdef double rest[6]
    cdef double rates[ARM_JOINTS]
    cdef RateState state
    memset(rest, 0, sizeof(rest))
    state = self.flat.state.rates
    rate_step(self.kinematics, &self.flat.params.rates, &state, RATES_HAND, rest, 0, self.flat.state.x + self.flat.params.nq, rates)
    self.flat.state.rates.sigma = state.sigma


# ------------------------------------------------------------------------------------------------------------------------- start

cdef void start_joints(const ArmParams *p, ArmState *s, Pose X_NG) noexcept nogil:
    """Joint rates with which G, at X_NG on the payload, moves with the payload, seen from the target vehicle; angles as given."""
    cdef const two_bodies.Body *payload = &s.pair.active
    cdef const two_bodies.Body *target = &s.pair.target
    # velocity of G, seen from the target vehicle (which has its centre of mass at rest)
    cdef Vec3 v = sub(add(cross(payload.w, sub(X_NG.p, payload.p)), payload.v), cross(target.w, X_NG.p))
    cdef double u[6]
    cdef double t
    cdef int i, j
    put(rotate_back(X_NG.q, v), u)
    put(rotate_back(X_NG.q, sub(payload.w, target.w)), u + 3)
    for i in range(p.n):
        t = 0.0
        for j in range(6):
            t += p.rates_of_twist[6 * i + j] * u[j]
        s.v[p.nr + i] = t
        s.x[p.nq + i] = p.q0[i]
        s.drive[i].phi = p.q0[i] * p.drive[i].i_R
        s.drive[i].w = s.drive[i].w_m = t * p.drive[i].i_R


cdef void start_root(Arm *self, Pose X_NO, Pose X_NV) noexcept nogil:
    """A free root at X_NO that moves with the target vehicle at X_NV; inertia of the vehicle in it,
    momentum of both about the origin of N."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef Vec3 w = s.pair.target.w
    cdef double h[6]
    cdef int nv = p.nr + p.n
    cdef int i, j
    s.X_NO = pose_of(xyz(0.0, 0.0, 0.0), xyzw(0.0, 0.0, 0.0, 1.0))
    s.X_OV = compose(inverse(X_NO), X_NV)
    rigid_inertia(&p.pair.target, s.X_OV, s.S)
    put_pose(X_NO, s.x)
    put(rotate_back(X_NO.q, cross(w, X_NO.p)), s.v)
    put(rotate_back(X_NO.q, w), s.v + 3)
    # momentum about the root's origin on its axes, then about the origin of N
    inertia_with_vehicle(self)
    for i in range(6):
        h[i] = 0.0
        for j in range(nv):
            h[i] += self.H[nv * i + j] * s.v[j]
    s.P = rotate(X_NO.q, vec(h))
    s.L = add(rotate(X_NO.q, vec(h + 3)), cross(X_NO.p, s.P))


cdef void start(Arm *self, const double *X_TA, const double *V_TA) noexcept nogil:
    """Payload from the relative pose and twist of the ports, without deflection; arm at its given angles, moving along."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef Pose X_NG, X_NO
    cdef double refreshed = s.refreshed
    memset(s, 0, sizeof(ArmState))
    s.refreshed = refreshed
    start_from_relative(&p.pair, &s.pair, X_TA, V_TA)
    X_NG = compose(body_pose(&s.pair.active), p.X_CG)
    start_joints(p, s, X_NG)
    # base of the arm
    X_NO = compose(X_NG, p.X_EO)
    X_NO.q = normalized(X_NO.q)
    s.R_OT = mat_multiply(transposed(to_matrix(X_NO.q)), to_matrix(p.pair.target.X_port.q))
    if p.free:
        start_root(self, X_NO, body_pose(&s.pair.target))
    else:
        s.X_NO = X_NO
    s.R_NO = to_matrix(s.X_NO.q)
    memcpy(s.K, p.K0, sizeof(s.K))
    memcpy(s.D, p.D0, sizeof(s.D))
    memcpy(s.q_stiffness, p.q0, sizeof(s.q_stiffness))
    s.blended = 1.0
    s.mode = -1
    s.rates.locked = p.locked
    s.rates.sigma = p.sigma0
    s.rates.limiting = -1
    s.rates.factor = 1.0


# -------------------------------------------------------------------------------------------------------------------- the step

cdef void run_period(Arm *self, const Sample *sample) noexcept nogil:
    """The inner steps of one period under the measured wrench."""
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef Pose X_NT
    cdef Contact contact
    for _ in range(p.inner):
        # the reaction acts on the payload at the origin of T
        X_NT = compose(body_pose(&s.pair.target), p.pair.target.X_port)
        contact.p = X_NT.p
        contact.f = mul(-1.0, rotate(X_NT.q, vec(sample.F_T_corrected)))
        contact.m = mul(-1.0, rotate(X_NT.q, vec(sample.F_T_corrected + 3)))
        if s.count == 0:
            choose_rates(self, sample)
        inner_step(self, sample, &contact)
        if s.count == p.outer // 2 and s.mode != ARM_MODE_HAND:
            watch_singularity(self)
        elif s.count:
            follow_configuration(self)
        s.count = s.count + 1 if s.count + 1 < p.outer else 0


cdef void step(void *self_, Sample *sample, double *aux) noexcept nogil:
    cdef Arm *self = <Arm *>self_
    cdef ArmParams *p = &self.flat.params
    cdef ArmState *s = &self.flat.state
    cdef int n = sample.periods
    cdef int i
    cdef double elapsed
    cdef double V_before[6]
    if n < 1:
        n = 1
    elapsed = n * p.pair.period
    for i in range(6):
        V_before[i] = s.pair.V_TA[i]
        sample.A_TA[i] = 0.0
    if sample.motion == MOTION_FREE or sample.motion == MOTION_JOINED:
        if s.joined != (sample.motion == MOTION_JOINED):
            join(self, sample.motion == MOTION_JOINED)
        for _ in range(n):
            run_period(self, sample)
        relative_state(&p.pair, &s.pair, sample.X_TA, sample.V_TA)
        if sample.motion == MOTION_FREE:
            for i in range(6):
                sample.A_TA[i] = (sample.V_TA[i] - V_before[i]) / elapsed
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
        for i in range(6):
            sample.V_TA[i] = 0.0
    for i in range(6):
        s.pair.V_TA[i] = sample.V_TA[i]
    put_pose(body_pose(&s.pair.active), sample.X_NC)
    put_twist(body_twist(&s.pair.active), sample.V_NC)
    put_pose(body_pose(&s.pair.target), sample.X_NV)
    put_twist(body_twist(&s.pair.target), sample.V_NV)
    report(self, sample, <ArmRecord *>aux)


# ------------------------------------------------------------------------------------------------------------------ set-up

cdef void _copy(double *to, values) except *:
    cdef int i
    numbers = np.asarray(values, dtype=float).ravel()
    for i in range(numbers.size):
        to[i] = numbers[i]


cdef object _vector(Vec3 a):
    return np.array([a.x, a.y, a.z])


cdef object _matrix(Mat3 A):
    return np.array([[A.xx, A.xy, A.xz], [A.yx, A.yy, A.yz], [A.zx, A.zy, A.zz]])


def _frame(position, angles_deg):
    """(R, p) of a frame from its position [m] and yaw, pitch, roll [deg]."""
    yaw, pitch, roll = np.radians(angles_deg)
    return _matrix(to_matrix(of_yaw_pitch_roll(yaw, pitch, roll))), np.asarray(position, dtype=float)


cdef class ManipulatorPayload(StagePart):
    """Dynamics of an arm on the target vehicle with the active vehicle as payload. Raises ValueError for a model that is no chain of
    revolute joints, joints beyond their stops, a singular start, no stiffness, and springs too stiff for the inner step.

    .generated: path of the kernels generated for the arm, or None; .notes: the same in words, for the log."""

    PARAMETERS = (
        Parameter("model", "str", "-", "arm: file of [[body]] tables and a table [manipulator]"),
        Parameter("model_data", "table", "-", "tables of that file; the configuration takes them in when it is read", {}),
        Parameter("base", "str", "-", "fixed: the target vehicle does not move; free: it does", "fixed", choices=("fixed", "free")),
        Parameter("joint_angles_deg", "floats", "deg", "joints at the start, one each", low=-720.0, high=720.0),
        Parameter("grapple_position_m", "floats", "m", "grapple fixture G in the payload's centre-of-mass frame", [0.0, 0.0, 0.0], -100.0,
                  100.0, 3),
        Parameter("grapple_angles_deg", "floats", "deg", "yaw, pitch, roll of G; x into the payload", [0.0, 0.0, 0.0], -360.0, 360.0, 3),
        Parameter("camera_position_m", "floats", "m", "aim camera on the payload", [0.0, 0.0, 0.0], -100.0, 100.0, 3),
        Parameter("camera_angles_deg", "floats", "deg", "yaw, pitch, roll of the camera; x is its line of sight", [0.0, 0.0, 0.0],
                  -360.0, 360.0, 3),
        Parameter("locked_joint", "str", "-", "name of a joint that does not move, empty: none", ""),
        Parameter("log_decrement", "float", "-", "of every mode of the payload on the arm's links", 0.1, low=0.0, high=6.0),
        Parameter("refresh_angle_deg", "float", "deg", "a joint that has moved this far asks for a new stiffness", 2.0, low=0.01,
                  high=360.0),
        Parameter("blend_s", "float", "s", "time over which a new stiffness replaces the old one", 0.1, low=0.0, high=10.0),
        Parameter("stop_margin_deg", "float", "deg", "nearer than this to a stop is shown in the status", 5.0, low=0.0, high=90.0),
        Parameter("paths_deg", "rows", "-, deg", "stored paths: rows [number of the path from 0, joint angles]", [], low=-720.0,
                  high=720.0),
        Parameter("path_tolerance_deg", "float", "deg", "a waypoint is reached when every joint is this near", 0.1, low=1e-4, high=10.0),
        Parameter("singular_value_min", "float", "-", "below this the joint rates are damped", 0.05, low=1e-6, high=1.0),
        Parameter("singular_damping", "float", "-", "damping at a singularity", 0.05, low=1e-6, high=1.0),
        Parameter("kernels", "str", "-", "generated where they pay and a compiler is there, or general", "fastest",
                  choices=("fastest", "general")),
        Parameter("range_max_m", "float", "m", "ports further apart than this are out of the model's range", 20.0, low=0.01, high=1000.0),
    )
    AUX = AUX
    CONTEXT = ("period_s", "vehicles", "start")
    FLIES = ("thrusters",)
    MANIPULATOR = True
    model_tables = staticmethod(model_tables)
    cdef Arm c
    cdef Tree tree
    cdef Tree general
    cdef Tree kinematics
    cdef object _memory
    cdef readonly tuple notes

    def __init__(self, *, period_s, vehicles, start, **given):
        cdef ArmParams *p = &self.c.flat.params
        cdef double X[7]
        cdef double V[6]
        keys = checked(ManipulatorPayload.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Arm))
        if keys["base"] == "fixed" and np.any(start.orbital_rate_rad_s):
            raise ValueError(f"orbital_rate_rad_s: {list(start.orbital_rate_rad_s)} rad/s, limit 0 with base = 'fixed'")
        w = start.orbital_rate_rad_s
        p.pair.orbital_rate = xyz(w[0], w[1], w[2])
        p.free = keys["base"] == "free"
        p.nr, p.nq = (6, 7) if keys["base"] == "free" else (0, 0)
        path, tables = Path(keys["model"]), model_tables(keys["model"], keys["model_data"])
        bodies = bodies_of(tables, path.name)
        arm = manipulator_of(tables, path, sum(b.joint != "fixed" for b in bodies))
        if arm.end_effector not in [b.name for b in bodies]:
            raise ValueError(f"{path.name}: manipulator.end_effector: no body {arm.end_effector!r}")
        fill_vehicle(&p.pair.active, "active vehicle", vehicles.active)
        fill_vehicle(&p.pair.target, "target vehicle", vehicles.target)
        fill_manipulator_payload(&p.keys, keys)
        p.pair.period = period_s
        p.inner = max(1, int(np.ceil(period_s / 5e-4 - 1e-9)))
        p.h = period_s / p.inner
        p.outer = max(1, round(8e-3 / p.h))
        p.force_max, p.moment_max = arm.force_max, arm.moment_max
        p.blend = p.h / max(p.keys.blend, p.h)
        grapple, camera = ((keys[f"{frame}_position_m"], keys[f"{frame}_angles_deg"]) for frame in ("grapple", "camera"))
        self._trees(bodies, arm, grapple, camera)
        self._joints(arm, keys["joint_angles_deg"], keys["locked_joint"], vehicles.active.mass_kg, keys["paths_deg"])
        self._rate_control(arm, vehicles.active.mass_kg, p.keys.path_tolerance, p.keys.singular_value_min,
                           p.keys.singular_damping)
        self._link(arm, p.keys.log_decrement)
        constants = repr((self.general.constants(), arm)).encode()
        p.fingerprint = int.from_bytes(hashlib.sha256(constants).digest()[:8], "little")
        self._use(self.general.fastest() if keys["kernels"] == "fastest" else self.general)
        self.notes = (f"arm {path.name}, {sum(b.mass for b in bodies):.6g} kg, payload {p.pair.active.mass:.6g} kg, step {p.h * 1e3:.4g} "
                      f"ms: {'generated' if p.generated else 'general'} kernels, {self.tree.instruction_set}",)
        self.plug.self = &self.c
        self.plug.self_size = 0
        self.plug.state = &self.c.flat.state
        self.plug.state_size = sizeof(ArmState)
        self.plug.step = step
        put_pose(pose_of(xyz(0.0, 0.0, 0.0), xyzw(0.0, 0.0, 0.0, 1.0)), X)
        memset(V, 0, sizeof(V))
        start_at(&self.c, X, V)

    def _trees(self, bodies, arm, grapple, camera):
        """The arm with gear inertia, and with the payload's frames on the end effector."""
        cdef ArmParams *p = &self.c.flat.params
        moving = [b for b in bodies if b.joint != "fixed"]
        for b in moving:
            if b.joint != "revolute":
                raise ValueError(f"model: joint {b.joint_name!r} must be revolute, got {b.joint}")
        if len(moving) > ARM_JOINTS_SHOWN:
            raise ValueError(f"model: {len(moving)} joints, limit {ARM_JOINTS_SHOWN}")
        for b, drive in zip(moving, arm.drives, strict=True):
            b.rotor_inertia, b.gear_ratio = drive["gear_inertia_kg_m2"], drive["gear_ratio"]
        R_CG, p_CG = _frame(*grapple)
        p_CA, R_CA = _vector(p.pair.active.X_port.p), _matrix(to_matrix(p.pair.active.X_port.q))
        _copy(&p.X_CG.p.x, p_CG)
        _copy(&p.R_CG.xx, R_CG)
        p.X_CG.q = quat_of(p.R_CG)
        extra = []
        for name, (R_CF, p_CF) in (("payload camera", _frame(*camera)), ("payload interface", (R_CA, p_CA))):
            extra.append(Body(name, arm.end_effector, "fixed", R_PJ=R_CG.T @ R_CF, p_PJ_P=R_CG.T @ (p_CF - p_CG)))
        self.kinematics = Tree([*bodies, *extra], gravity=(0.0, 0.0, 0.0))
        for before, b in zip(self.kinematics.bodies, self.kinematics.bodies[1:]):
            if b.parent != before.name:
                raise ValueError(f"model: joint {b.joint_name!r} is not behind the one before it: limit one chain, in its order")
        self.general = self.kinematics
        if p.free:
            root = Body("target vehicle", None, "free")
            self.general = Tree([root, *(replace(b, parent=b.parent or root.name) for b in bodies)], gravity=(0.0, 0.0, 0.0))
        self.c.kinematics = self.kinematics.model

    @property
    def COMMANDS(self):
        """Which joints can be moved singly and which paths are stored."""
        cdef ArmParams *p = &self.c.flat.params
        joints = tuple(j for j in range(p.n) if j != p.locked)
        paths = tuple(k for k in range(PATHS) if p.n_path[k])
        return Command("single_joint", numbers=joints, acts=False), Command("auto_sequence", numbers=paths, acts=False)

    def _joints(self, arm, angles_deg, locked_joint, mass, paths_deg):
        cdef ArmParams *p = &self.c.flat.params
        cdef JointDrive drive
        cdef int j, k, number
        p.n = len(arm.drives)
        names = list(self.kinematics.joint_names)
        if locked_joint and locked_joint not in names:
            raise ValueError(f"locked_joint: no joint {locked_joint!r}, limit one of {', '.join(names)}")
        p.locked = names.index(locked_joint) if locked_joint else -1
        angles = np.radians(np.asarray(angles_deg, dtype=float))
        if angles.shape != (p.n,):
            raise ValueError(f"joint_angles_deg: {angles.size} numbers, limit {p.n} (the joints of the arm), deg")
        K_p, K_i = gains_for_payload([row[:3] for row in arm.gains], mass)
        for j in range(p.n):
            if not arm.low[j] <= angles[j] <= arm.high[j]:
                raise ValueError(f"joint_angles_deg: {names[j]} at {angles_deg[j]:g} deg, limits {np.degrees(arm.low[j]):g}..."
                                 f"{np.degrees(arm.high[j]):g} deg")
            p.q0[j] = angles[j]
            drive = JointDrive(**arm.drives[j], outer_gain=K_p, outer_integral_gain=K_i, outer_ratio=p.outer)
            p.drive[j], p.controller[j] = drive.d, drive.c
        for row in paths_deg:
            number = int(row[0]) if len(row) == p.n + 1 and row[0] == int(row[0]) else -1
            if not 0 <= number < PATHS:
                raise ValueError(f"paths_deg: row {list(row)}, limit [0...{PATHS - 1}, {p.n} joint angles in deg]")
            if p.n_path[number] >= ARM_WAYPOINTS:
                raise ValueError(f"paths_deg: path {number} has more than {ARM_WAYPOINTS} waypoints")
            for k in range(p.n):
                angle = np.radians(row[1 + k])
                if not arm.low[k] <= angle <= arm.high[k]:
                    raise ValueError(f"paths_deg: path {number}, {names[k]}: {row[1 + k]:g} deg, limits {np.degrees(arm.low[k]):g}..."
                                     f"{np.degrees(arm.high[k]):g} deg")
                p.path[number][p.n_path[number]][k] = angle
            p.n_path[number] += 1

    def _rate_control(self, arm, mass, arrived, sigma_0, lambda_0):
        cdef ArmParams *p = &self.c.flat.params
        cdef ResolvedRate rates
        cdef int k
        share = gains_for_payload([(row[0], row[3], 0.0) for row in arm.gains], mass)[0]
        # by number of the frame: end effector, camera, target, interface
        for k, frame in enumerate((arm.end_effector, "payload camera", "payload interface", "payload interface")):
            rates = ResolvedRate(self.kinematics, arm.end_effector, frame, frame, rate_max=share * arm.rate_max, low=arm.low,
                                 high=arm.high, braking=share * arm.braking, arrived_rad=arrived, approach_per_s=arm.approach,
                                 period_s=p.outer * p.h, linear_max=arm.linear_rate_max, angular_max=arm.angular_rate_max,
                                 length_m=arm.length, sigma_0=sigma_0, lambda_0=lambda_0)
            p.rates, p.axes[k], p.point[k] = rates.c, rates.c.axes, rates.c.point
        p.axes[RATE_FRAME_TARGET].slot = -1

    def _link(self, arm, log_decrement):
        """Place of E, the arm at its start, stiffness and damping there."""
        cdef ArmParams *p = &self.c.flat.params
        cdef ArmCompliance compliance = ArmCompliance(self.general, arm.end_effector, arm.segments)
        cdef double[::1] flat
        q = np.array([p.q0[j] for j in range(p.n)])
        whole = np.concatenate([[0, 0, 0, 0, 0, 0, 1.0][:p.nq], q])
        p.E, p.segments = compliance.arm.E, compliance.arm
        R_OE, p_OE = self.kinematics.pose(q, arm.end_effector)
        flat = np.ascontiguousarray(R_OE).ravel()
        p.X_EO = inverse(pose_of(xyz(p_OE[0], p_OE[1], p_OE[2]), quat_of(mat(&flat[0]))))
        # joint rates of a twist of E
        J = self.kinematics.jacobian(q, arm.end_effector)
        J = np.vstack([R_OE.T @ J[:3], R_OE.T @ J[3:]])
        if p.locked >= 0:
            J[:, p.locked] = 0.0
        scale = np.array([1.0 / arm.length] * 3 + [1.0] * 3)
        p.sigma0 = sigma = np.linalg.svd(scale[:, None] * J, compute_uv=False).min()
        if not sigma > 1e-3:
            raise ValueError(f"joint_angles_deg: smallest singular value {sigma:.2g} at the start, limit 0.001: choose angles away from a "
                             "singularity")
        _copy(p.rates_of_twist, np.linalg.pinv(scale[:, None] * J) * scale)
        # payload at E
        R_CG, p_CG = _matrix(p.R_CG), _vector(p.X_CG.p)
        inertia = np.array([p.pair.active.inertia[i] for i in range(9)]).reshape(3, 3)
        M = payload_mass_matrix(p.pair.active.mass, inertia, -R_CG.T @ p_CG, R_CG.T)
        L = np.linalg.cholesky(M)
        _copy(p.L, L)
        _copy(p.L_inverse, np.linalg.inv(L))
        p.decrement = 2.0 * log_decrement / np.sqrt(4.0 * np.pi**2 + log_decrement**2)
        K = compliance.stiffness(whole)
        D = damping_matrix(K, M, log_decrement)
        _copy(p.K0, K)
        _copy(p.D0, D @ np.linalg.inv(np.eye(6) + p.h * np.linalg.solve(M, D)))
        # velocity-first steps: h^2 w^2 < 4, a quarter of it is allowed
        H = self.kinematics.mass_matrix(q)
        if p.locked >= 0:
            keep = [j for j in range(p.n) if j != p.locked]
            H, J = H[np.ix_(keep, keep)], J[:, keep]
        root = np.linalg.cholesky(K)
        largest = p.h**2 * np.linalg.eigvalsh(root.T @ (np.linalg.inv(M) + J @ np.linalg.solve(H, J.T)) @ root).max()
        if largest > 1.0:
            raise ValueError(f"model: the arm's links are too stiff for a step of {p.h:g} s: h^2 w^2 = {largest:.3g}, limit 1")

    def _use(self, Tree tree):
        """The kernels of this tree from now on."""
        self.tree = tree
        self._memory = H, bias, rows, zeros = (np.zeros(tree.nv * tree.nv), np.zeros(tree.nv), np.zeros(18 * tree.n), np.zeros(tree.nv))
        cdef double[::1] H_ = H, bias_ = bias, rows_ = rows, zeros_ = zeros
        self.c.model, self.c.work = tree.model, tree.work
        self.c.H, self.c.bias, self.c.rows, self.c.zeros = &H_[0], &bias_[0], &rows_[0], &zeros_[0]
        self.c.flat.params.generated = tree.generated is not None

    @property
    def generated(self):
        return self.tree.generated

    def dump(self):
        return PyBytes_FromStringAndSize(<const char *>&self.c.flat, sizeof(Flat))

    def state_bounds(self):
        joint = (-1, ARM_JOINTS - 1)
        return {"pair.joined": FLAG, "drive.braked": FLAG, "controller.count": COUNT_32, "controller.limited": (-1, 1),
                "rates.locked": joint,
                "rates.waypoint": (0, ARM_WAYPOINTS), "rates.limiting": joint, "refresh": COUNT_32, "count": COUNT_32,
                "mode": (-1, code_range("arm_mode")[1]), "target": (-COUNT_32[1], COUNT_32[1]), "limited": COUNT_32, "joined": FLAG}

    def fields(self):
        return self.c.flat

    def load_unchecked(self, bytes block):
        if len(block) != sizeof(Flat):
            raise ValueError(f"block has {len(block)} bytes, this part has {sizeof(Flat)}")
        memcpy(&self.c.flat, PyBytes_AS_STRING(block), sizeof(Flat))

    def load(self, bytes block):
        """Constants and initial state of a log, and the kind of kernels that it was made with. Raises ValueError when this machine has no
        compiler for generated ones, or prepares other constants of the arm."""
        cdef const Flat *flat = <const Flat *>PyBytes_AS_STRING(block)
        if len(block) != sizeof(Flat):
            raise ValueError(f"block has {len(block)} bytes, this part has {sizeof(Flat)}")
        if flat.params.fingerprint != self.c.flat.params.fingerprint:
            raise ValueError("the arm of the log has other constants than the one of its file on this machine")
        if flat.params.generated != self.c.flat.params.generated:
            self._use(self.general.generate() if flat.params.generated else self.general)
        super().load(block)


cdef void start_at(Arm *self, const double *X_TA, const double *V_TA) noexcept:
    start(self, X_TA, V_TA)
