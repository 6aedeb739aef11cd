# distutils: extra_compile_args = -O3
"""Elastic-adaptive peripheral docking unit: a ring thrown forward by springs, differential ball screws, cables that draw it in.

Source: Yaskevich 2020, ch. 7, corrected; parts: ring.platform (U-C-U legs, screws of both hands), accumulator (spring and clutch of each
strut), retraction (sequence of operation, cables), ring.contact. Shared steps, frames and the order of a tick: ring.unit.

Compression of strut k from the forward position: d = d_IP - (p3 + s p4/i_N); force on the screw f_S(d, clutch) - c_G (p3 + s p4/i_N)', on
the stroke f_S and on the spin s f_S/i_N. Start: phase "ready" (ring in the initial position, springs wound and blocked). Command bit 0
starts the extension from "retracted"; bit 2 holds the latches in. Drive of the cables: one motor with speed control, or the two-motor drive
with differential of 6.1 (common.drive), held by its stopping clutches without voltage.
"""

import numpy as np

from libc.string cimport memset

from rt_kernels.algebra.values cimport Pose, Twist, Wrench, pose, twist, twist_of, wrench_sum
from rt_kernels.mechanisms.common.drive cimport Drive, DriveState, drive_rate, drive_step as motors_step, fill_drive
from rt_kernels.mechanisms.ring.contact cimport RingLoads
from rt_kernels.codes cimport (MECHANISM_COMMAND_DRIVE, MECHANISM_COMMAND_RELEASE, MECHANISM_SIGNAL_DRIVE_RUNNING,
                               MECHANISM_SIGNAL_INITIAL_POSITION, MECHANISM_SIGNAL_RELEASED)
from rt_kernels.mechanisms.ring.elastic.accumulator cimport Accumulator, AccumulatorState, accumulator_step, fill_accumulator
from rt_kernels.mechanisms.ring.elastic.record cimport ElasticRecord
from rt_kernels.mechanisms.ring.elastic.retraction cimport (
    CAPTURED, CABLES, DONE, EXTENDING, RETRACTING, THROWN, Retraction, RetractionState, Sequencer, SequencerState, block_all, drive_step,
    fill_retraction, pull, sequence,
)
from rt_kernels.mechanisms.ring.interface cimport InterfaceTouch
from rt_kernels.mechanisms.ring.platform cimport MAX_LEGS, BodyMotion, LegMotion, RingPose, effective_stroke, screw_force
from rt_kernels.mechanisms.ring.unit cimport (
    RingState, RingUnit, base_moves, fill_ring_unit, planes_account, planes_touch, ring_account, ring_begin, ring_close,
    ring_depth, ring_in_target, ring_mean, ring_move, ring_nest, ring_report, ring_touch, ring_wrench,
)
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.block_check import FLAG
from rt_kernels.context import UnitEnergy
from rt_kernels.mechanisms.ring.picture import ElasticRingPicture
from rt_kernels.mechanisms.ring.elastic.record import AUX
from rt_kernels.mechanisms.ring.elastic.retraction import PHASES
from rt_kernels.mechanisms.ring.parameters import RING_PARAMETERS, joint_circles, longest_substep_s, strut_legs
from rt_kernels.mechanisms.ring.unit import RING_BOUNDS
from rt_kernels.parameters import Parameter, checked


cdef struct ElasticState:
    RingState ring
    AccumulatorState spring[MAX_LEGS]
    SequencerState sequence
    RetractionState cables
    DriveState motors
    double force[MAX_LEGS]
    double given_to_cables        # by the ring: stored and lost in them, or work of the drive (negative), J
    double release_time           # of the throw, -1 before
    double aligned_time           # three alignment sensors, -1 before
    double done_time


cdef struct ElasticSelf:
    RingUnit unit
    LegMotion motion[MAX_LEGS]
    Accumulator accumulator
    Sequencer sequencer
    Retraction retraction
    Drive motors
    bint two_motors               # drive of the cables: two motors on a differential, else one with speed control
    double ready_compression      # d_IP
    double screw_damping          # c_G
    double mated_gap
    int clutch_stuck              # number of the strut whose clutch does not open, 0: none
    ElasticState state


cdef inline void spring_struts(ElasticSelf *m, double h, double *stroke) noexcept nogil:
    """Springs behind the screws: forces on strokes and spins; `stroke` (6): what the nuts feel."""
    cdef ElasticState *e = &m.state
    cdef double rate
    cdef int k
    for k in range(MAX_LEGS):
        stroke[k] = effective_stroke(&m.unit.leg[k], m.motion[k].p)
        rate = effective_stroke(&m.unit.leg[k], m.motion[k].p_rate)
        e.force[k] = accumulator_step(&m.accumulator, &e.spring[k], m.ready_compression - stroke[k],
                                      e.sequence.blocked[k] or k + 1 == m.clutch_stuck, h)
        if k + 1 == m.unit.spring_broken:
            e.force[k] = 0.0
        e.force[k] -= m.screw_damping * rate
        screw_force(&m.unit.leg[k], e.force[k], &m.motion[k])


cdef inline Wrench pull_cables(ElasticSelf *m, const RingPose *N, double h, Wrench *W) noexcept nogil:
    """Drive and cables: wrench on the ring about its centre, and on the base, added to W, base axes."""
    cdef ElasticState *e = &m.state
    if m.two_motors:
        motors_turn(m, h)
    else:
        drive_step(&m.retraction, &e.cables, e.sequence.drive_command, h)
    return pull(&m.retraction, &e.cables, N, W)


cdef inline void account_inside(ElasticSelf *m, Wrench cables, Twist V, double h) noexcept nogil:
    """What springs and cables took from the ring, at the rates of the middle of the step; V: of the ring at its start."""
    cdef ElasticState *e = &m.state
    cdef const double *F = <const double *> &cables
    cdef const double *v = <const double *> &V
    cdef const double *half_step = <const double *> &e.ring.half_step
    cdef double rate
    cdef int i, k
    for k in range(MAX_LEGS):
        rate = effective_stroke(&m.unit.leg[k], m.motion[k].p_rate) + 0.5 * h * effective_stroke(&m.unit.leg[k], m.motion[k].p_accel)
        e.ring.lost_springs -= h * e.force[k] * rate
    for i in range(6):
        e.given_to_cables -= h * F[i] * (v[i] + half_step[i])


cdef inline void run_sequence(ElasticSelf *m, const RingLoads *loads, const double *stroke, bint extend, double h) noexcept nogil:
    """The controller, and the times of its events."""
    cdef ElasticState *e = &m.state
    cdef bint mated = True
    cdef int i, before = e.sequence.phase
    if m.unit.interface.fitted:
        # the planes are pressed together: the nest has latched
        mated = e.ring.interface.held != 0
        if e.sequence.phase == EXTENDING:
            e.ring.interface.held = 0
    else:
        for i in range(CABLES):
            if e.cables.cable[i].cam > m.mated_gap:
                mated = False
    sequence(&m.sequencer, &e.sequence, stroke, loads.aligned, extend, e.cables.phi / m.retraction.gear_ratio, mated, h)
    if e.sequence.phase != before:
        if e.sequence.phase == THROWN:
            e.release_time = e.ring.time
        elif e.sequence.phase == CAPTURED:
            e.aligned_time = e.ring.time
        elif e.sequence.phase == DONE:
            e.done_time = e.ring.time


cdef inline void elastic_signals(const ElasticState *e, MechanismOutput *out) noexcept nogil:
    """All struts in the initial position, drive runs, thrown."""
    cdef int k, in_position = 0
    for k in range(MAX_LEGS):
        in_position += e.sequence.in_position[k]
    if in_position == MAX_LEGS:
        out.signals |= MECHANISM_SIGNAL_INITIAL_POSITION
    if e.sequence.drive_command != 0.0:
        out.signals |= MECHANISM_SIGNAL_DRIVE_RUNNING
    if e.sequence.phase >= THROWN and e.release_time >= 0.0:
        out.signals |= MECHANISM_SIGNAL_RELEASED


cdef void elastic_advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef ElasticSelf *m = <ElasticSelf *> self
    cdef ElasticState *e = &m.state
    cdef RingState *s = &e.ring
    cdef ElasticRecord *record = <ElasticRecord *> aux
    cdef Pose X_TA = pose(inp.X_TA)
    cdef Twist V, V_TA = twist(inp.V_TA)
    cdef RingPose N
    cdef RingLoads loads
    cdef InterfaceTouch touch
    cdef BodyMotion base
    cdef Wrench F_ring, W, cables, nest
    cdef double stroke[MAX_LEGS]
    cdef double h = inp.dt / m.unit.substeps
    ring_begin(inp, &base, &loads, out)
    for _ in range(m.unit.substeps):
        N = ring_in_target(X_TA, V_TA, s)
        ring_touch(&m.unit, s, &N, h, &loads, not (inp.commands & MECHANISM_COMMAND_RELEASE))
        planes_touch(&m.unit, X_TA, V_TA, h, &loads, &touch)
        F_ring = ring_wrench(X_TA, &loads)
        if not ring_close(&m.unit, s, m.motion, &N):
            s.out_of_range = 1
            break
        spring_struts(m, h, stroke)
        memset(&W, 0, sizeof(W))
        cables = pull_cables(m, &N, h, &W)
        nest = ring_nest(&m.unit, s, &N, &touch, &W)
        V = twist_of(s.v, s.w)
        if not ring_move(&m.unit, s, m.motion, &N, &base, wrench_sum(wrench_sum(F_ring, cables), nest), h, &W):
            s.out_of_range = 1
            break
        account_inside(m, cables, V, h)
        ring_account(s, X_TA, V_TA, &loads, h)
        planes_account(&m.unit, s, &touch, nest, V, e.sequence.phase == RETRACTING, h)
        ring_mean(&m.unit, &loads, W, out)
        X_TA = base_moves(X_TA, V_TA, h)
        run_sequence(m, &loads, stroke, (inp.commands & MECHANISM_COMMAND_DRIVE) != 0, h)
    ring_report(&m.unit, s, m.motion, e.force, &loads, X_TA, V_TA, out, &record.ring, &record.planes)
    elastic_signals(e, out)
    elastic_report(m, record)


cdef inline void motors_turn(ElasticSelf *m, double h) noexcept nogil:
    """One step of the two-motor drive: +1 of its sign draws the cables in (phi falls); the self-locking gears let tension load it,
    never help it."""
    cdef ElasticState *e = &m.state
    cdef double sign = 0.0, load = 0.0
    if e.sequence.drive_command < 0.0:
        sign = 1.0
        load = -e.cables.load
    elif e.sequence.drive_command > 0.0:
        sign = -1.0
    motors_step(&m.motors, &e.motors, sign, load, h)
    e.cables.omega = -drive_rate(&m.motors, &e.motors)
    e.cables.phi += h * e.cables.omega


cdef inline void elastic_report(const ElasticSelf *m, ElasticRecord *record) noexcept nogil:
    cdef const ElasticState *e = &m.state
    cdef int i
    for i in range(MAX_LEGS):
        record.compression[i] = e.spring[i].d
        record.spring_branch[i] = e.spring[i].branch
        record.clutch_blocked[i] = e.sequence.blocked[i]
        record.initial_position[i] = e.sequence.in_position[i]
    for i in range(CABLES):
        record.cable_tension[i] = e.cables.cable[i].tension
        record.cable_joined[i] = e.cables.cable[i].joined
        record.drum_angle[i] = e.cables.cable[i].cam
    record.phase = e.sequence.phase
    record.drive_rate = e.cables.omega
    record.gear_cam = e.cables.phi / m.retraction.gear_ratio
    record.release_time = e.release_time
    record.aligned_time = e.aligned_time
    record.done_time = e.done_time
    record.given_to_cables = e.given_to_cables
    for i in range(2):
        record.wheel_rate[i] = e.motors.rate[i]


def _most_power(t):
    """Most power that the cables can put into the ring [W]: that of the drive at half its no-load speed, behind its gears."""
    if t["drive"] == "speed":
        motors = 0.25 * t["drive_gain_n_m_s_per_rad"] * t["drive_rate_rad_s"] ** 2
    else:
        motors = 2 * 0.25 * t["motor_stall_n_m"] ** 2 / t["motor_back_emf_n_m_s_per_rad"] * t["drive_efficiency"]
    return motors * t["gear_efficiency"]


def _motors(key, unit, meaning, default, low):
    return Parameter(key, "floats", unit, meaning, default=default, low=low, high=1e5, shape=len(default))


cdef class ElasticAdaptive(MechanismPart):
    """Elastic-adaptive peripheral docking unit (Yaskevich 2020, ch. 7)."""

    PARAMETERS = RING_PARAMETERS + (
        Parameter("screw_lead_m", "float", "m", "lead of the differential ball screws, t", low=1e-3, high=1.0),
        Parameter("nut_inertia_kg_m2", "float", "kg.m2", "nut and all that is geared to it, at the nut", low=0.0, high=1.0),
        Parameter("screw_damping_n_s_per_m", "float", "N.s/m", "losses of the screw, c_G", low=0.0, high=1e6),
        Parameter("spring_load_n", "rows", "m, N", "loading branch: rows [compression from the forward position, force]", low=0.0,
                  high=1e9),
        Parameter("spring_recoil_n", "rows", "m, N", "recoil branch", low=0.0, high=1e9),
        Parameter("stop_stiffness_n_per_m", "float", "N/m", "k_Stop of all transitions and stops", low=1e3, high=1e9),
        Parameter("backlash_m", "float", "m", "of clutch and gears, at the rod", low=0.0, high=0.01),
        Parameter("slip_force_n", "float", "N", "tension at which the clutch slips", low=1.0, high=1e6),
        Parameter("stroke_m", "float", "m", "forward position to rod fully in", low=0.01, high=2.0),
        Parameter("ready_compression_m", "float", "m", "compression in the initial position, d_IP", low=0.0, high=2.0),
        Parameter("ready_switch_m", "float", "m", "stroke at which a strut has lost the initial position", low=1e-5, high=0.05),
        Parameter("release_time_s", "float", "s", "ramp of the force when a clutch opens", default=3e-3, low=1e-4, high=0.1),
        Parameter("retract_delay_s", "float", "s", "from capture to the drive", default=10.0, low=0.0, high=600.0),
        Parameter("drum_radius_m", "float", "m", "take-off points of the cables from the axis", low=0.05, high=5.0),
        Parameter("drum_roll_radius_m", "float", "m", "radius of the cable drums, R_Roll", low=1e-3, high=1.0),
        Parameter("mated_distance_m", "float", "m", "ring plane before the base plane when mated", low=0.0, high=5.0),
        Parameter("gear_ratio", "float", "-", "drive to gear cam, i_G", low=1.0, high=1e5),
        Parameter("gear_efficiency", "float", "-", "of the self-locking gear", low=0.01, high=0.99),
        Parameter("cam_gap_rad", "float", "rad", "width of a cam, dphi_Cam", low=0.0, high=3.0),
        Parameter("gear_cam_max_rad", "float", "rad", "gear cam at the end of the cable reserve", low=0.0, high=100.0),
        Parameter("cable_stiffness_n_per_m", "float", "N/m", "of a cable", low=1.0, high=1e9),
        Parameter("cable_damping_n_s_per_m", "float", "N.s/m", "of a cable", low=0.0, high=1e6),
        Parameter("flexible_shaft_n_m_per_rad", "float", "N.m/rad", "stiffness of the flexible shafts, k_FS", low=1e-3, high=1e6),
        Parameter("drive_rate_rad_s", "float", "rad/s", "commanded speed of the drive", low=1e-3, high=1e4),
        Parameter("drive_gain_n_m_s_per_rad", "float", "N.m.s/rad", "torque per speed error", low=1e-6, high=1e6),
        Parameter("drive_inertia_kg_m2", "float", "kg.m2", "of the drive", low=1e-9, high=1e3),
        Parameter("drive", "str", "-", "of the cables: one motor with speed control, "
                  "or two motors on a differential (6.1), whose speed follows the load",
                  default="speed", choices=("speed", "two_motors")),
        _motors("wheel_radii_m", "m", "two motors: wheels a and b, carrier, planet", [0.02, 0.02, 0.02, 0.01], 1e-4),
        _motors("wheel_inertia_kg_m2", "kg.m2", "a, b, carrier with the planets' mass, one planet; rotors and gears reduced",
                [2e-4, 2e-4, 1e-4, 1e-6], 0.0),
        Parameter("planets", "int", "-", "two motors: number of planets", default=3, low=1, high=12),
        _motors("reducer_radii_m", "m", "two motors: sun gear, ring gear, carrier, planet of a planetary stage",
                [0.010, 0.040, 0.025, 0.015], 1e-4),
        _motors("reducer_inertia_kg_m2", "kg.m2", "sun gear, carrier, one planet", [1e-5, 1e-5, 1e-7], 0.0),
        _motors("motor_ratio", "-", "motor per wheel speed, a and b", [1.0, 1.0], 1e-3),
        Parameter("motor_stall_n_m", "float", "N.m", "motor torque at rest and nominal voltage", default=0.30, low=0.0, high=1e4),
        Parameter("motor_back_emf_n_m_s_per_rad", "float", "N.m.s/rad", "fall of motor torque with speed", default=5.8e-4, low=1e-9,
                  high=1e3),
        Parameter("motor_friction_n_m", "float", "N.m", "friction at the motor", default=0.01, low=0.0, high=1e3),
        Parameter("drive_efficiency", "float", "-", "two motors: efficiency of the reducer", default=0.8, low=0.01, high=1.0),
        # failed parts, beside those of every ring
        Parameter("clutch_stuck", "int", "-", "number of the strut whose recoil clutch does not open, 0: none", default=0, low=0, high=6),
        Parameter("cable_broken", "int", "-", "number of the cable that is broken, 0: none", default=0, low=0, high=3),
        Parameter("drive_dead", "bool", "-", "the drive of the cables does not turn", default=False),
        Parameter("start_phase", "str", "-", "phase at the start", default="ready", choices=("ready", "retracted")),
    )
    PICTURE = ElasticRingPicture
    longest_substep_s = staticmethod(longest_substep_s)
    AUX = AUX
    LEDGER = ("work_in", ("kinetic_energy", "lost_contact", "given_to_springs", "stored_contact", "given_to_cables", "stored_planes",
                          "lost_planes", "given_to_nest"))

    cdef ElasticSelf m
    cdef readonly object gives      # UnitEnergy

    def __init__(self, **given):
        cdef RingPose N
        cdef int k
        t = checked(ElasticAdaptive.PARAMETERS, given)
        if not t["ready_compression_m"] < t["stroke_m"]:
            raise ValueError(f"ready_compression_m: {t['ready_compression_m']} m, must be < stroke_m ({t['stroke_m']} m)")
        memset(&self.m, 0, sizeof(ElasticSelf))
        legs = strut_legs(t, "UCU", lead=t["screw_lead_m"], nut_inertia=t["nut_inertia_kg_m2"])
        fill_ring_unit(t, &self.m.unit, &self.m.state.ring, legs)
        fill_accumulator(t, &self.m.accumulator)
        # cables end on the ring between the joints of a pair of struts
        _, joints = joint_circles(t)
        eyes = [(joints[2 * k] + joints[2 * k + 1]) / 2 for k in range(3)]
        eyes = [eye * t["ring_joint_radius_m"] / np.linalg.norm(eye) for eye in eyes]
        fill_retraction(t, eyes, &self.m.retraction, &self.m.sequencer)
        self.m.two_motors = t["drive"] == "two_motors"
        fill_drive(t, &self.m.motors)
        self.m.ready_compression = t["ready_compression_m"]
        self.m.screw_damping = t["screw_damping_n_s_per_m"]
        self.m.mated_gap = 0.0
        self.m.clutch_stuck, self.m.retraction.broken = t["clutch_stuck"], t["cable_broken"]
        if t["drive_dead"]:
            self.m.sequencer.drive_rate = 0.0
        self.m.unit.mated_x = t["mated_distance_m"]
        if t["start_phase"] == "retracted" and self.m.unit.interface.fitted:
            self.m.state.ring.interface.held = 1
            self.m.state.ring.interface.X_AH = self.m.state.ring.X_AN
            self.m.state.ring.interface.X_AH.p.x = t["mated_distance_m"]
        self.m.state.release_time = self.m.state.aligned_time = self.m.state.done_time = -1.0
        if t["start_phase"] == "retracted":
            self.m.state.ring.X_AN.p.x = t["mated_distance_m"]
        if not ring_close(&self.m.unit, &self.m.state.ring, self.m.motion, &N):
            raise ValueError(f"mated_distance_m: {t['mated_distance_m']} m, the legs do not reach this pose")
        # wound and blocked, no force: the ring is held between the clutches
        for k in range(MAX_LEGS):
            compression = t["ready_compression_m"] - effective_stroke(&self.m.unit.leg[k], self.m.motion[k].p)
            if compression > t["stroke_m"]:
                raise ValueError(f"mated_distance_m: strut {k} would be compressed by {compression:.4f} m, "
                                 f"more than stroke_m ({t['stroke_m']} m)")
            self.m.state.spring[k].d = compression
            self.m.state.spring[k].zero = compression
            self.m.state.spring[k].blocked = 1
        block_all(&self.m.state.sequence, 1)
        self.m.state.sequence.phase = PHASES.index(t["start_phase"])
        self.m.state.cables.phi = self.m.retraction.gear_ratio * (t["gear_cam_max_rad"] if t["start_phase"] == "ready"
                                                                  else 1.9 * t["cam_gap_rad"])
        self.gives = UnitEnergy(struts=MAX_LEGS, compression_m=t["ready_compression_m"], recoil_n=t["spring_recoil_n"],
                                damping_n_s_per_m=t["screw_damping_n_s_per_m"], drive_power_w=_most_power(t))
        self.plug.self = &self.m
        self.plug.state = &self.m.state
        self.plug.state_size = sizeof(ElasticState)
        self.plug.advance = elastic_advance

    def state_fields(self):
        return self.m.state

    def state_bounds(self):
        return RING_BOUNDS | {"spring.blocked": FLAG, "spring.branch": (0, 12), "sequence.phase": (0, 6),
                "sequence.blocked": FLAG, "sequence.in_position": FLAG, "cables.cable.joined": FLAG}

    def max_penetration(self, X_TA):
        """Deepest penetration of the rings [m] with the base at X_TA (7,), at the ring's present pose; -1 without contact."""
        return ring_depth(&self.m.unit, &self.m.state.ring, X_TA)
