"""What the central unit is (`Unit`: constants, state, work space of a step) and what of it changes (`State`).

A header of structs alone: setup.pyx fills the constants, unit.pyx owns one `Unit`, the other files of this folder compute with it.
"""

from libc.stdint cimport uint32_t

from rt_kernels.algebra.values cimport Pose, Twist, Vec3, Wrench
from rt_kernels.contact.latches cimport Groove, LatchGeometry
from rt_kernels.contact.planes cimport Planes
from rt_kernels.contact.primitives cimport Profile
from rt_kernels.contact.reaction cimport ContactLaw
from rt_kernels.mechanisms.common.drive cimport Drive, DriveState
from rt_kernels.mechanisms.common.hysteresis cimport HysteresisState, HysteresisTable, SeriesClutch
from rt_kernels.mechanisms.probe_cone.magnetic_brake cimport TorqueTable
from rt_kernels.mechanisms.probe_cone.record cimport ProbeConeLost, ProbeConeRecord

# coordinates: see dynamics.pyx
cdef enum:
    DOF = 7
    SWING_Y = 0
    SWING_Z = 1
    BEND_Y = 2
    BEND_Z = 3
    TWIST = 4
    LENGTH = 5
    LIMITER = 6

# how many there are
cdef enum:
    LININGS = 8
    CAM_POINTS = 12
    LATCHES = 4
    LEVERS = 2
    ROLLERS = 3
    PUSHERS = 4

# what can be beyond its valid range, in the order of `INVALID` in declaration.py
cdef enum:
    PART_NONE = 0
    PART_HEAD = 1
    PART_LINING = 2
    PART_ROLLER = 3
    PART_LATCH = 4
    PART_PLANE = 5
    PART_BENDING = 6
    PART_TORSION = 7
    PART_LATERAL_SPRING = 8
    PART_BRAKE_CHAIN = 9
    PART_COVER = 10


# ------------------------------------------------------------------------------------------------------------------ bodies and chains

cdef struct SpringChain:
    Vec3 a                 # joint centre on the base
    Vec3 b                 # joint centre on the swinging body, body axes
    double m1, s1          # cylinder: mass, distance of its centre of mass from a
    double m2, d2          # rod: mass, distance of its centre of mass from b
    double J               # sum of the transverse central inertias
    double length0


cdef struct BrakeChain:
    Vec3 a                 # crank hinge on the base
    Vec3 n                 # hinge axis
    Vec3 ex                # crank direction at zero angle
    Vec3 ey                # n x ex
    Vec3 b                 # rod end on the swinging body, body axes
    double arm, rod        # lengths
    double elbow           # +1 or -1
    double I               # crank and brake rotor about n
    double m, fraction, J  # rod: mass, place of its centre of mass from the crank tip, transverse central inertia


cdef struct Inertias:
    double exit_x          # L_M: hinge to exit bearing
    double m2, c2, Jx2, Jt2      # swinging body: mass, centre of mass on its axis, inertia about it and across (central)
    double m1, d1, Jx1, Jt1      # probe with head: centre of mass d1 behind the head centre
    double m3, c3, Jx3, Jt3      # movable limiter: centre of mass c3 in front of its origin
    double axial_inertia
    SpringChain spring[2]
    BrakeChain brake[2]
    int dof                # 6: limiter fixed to the body, 7: movable


cdef struct ChainMotion:
    # spring: length, rate; brake: angle as (cos, sin), rate
    double value, rate, cosine, sine
    Vec3 e, e_rate         # direction and its rate
    Vec3 tip               # brake: crank tip
    Vec3 t                 # brake: n x arm
    Vec3 b
    Vec3 db[2]             # partial velocities of b
    Vec3 b_bias
    Vec3 base_acc          # spring: acceleration of a; brake: of the tip without p''
    double out_of_reach


cdef struct Motion:
    Vec3 w0                # absolute rate of the base
    # axes of body 2 and probe 1 in A
    Vec3 x2, y2, z2, x1, y1, z1
    Vec3 axis[5]           # joint axes 0..4
    Vec3 p_exit, p_head
    Vec3 w2_rel, w1_rel    # relative to the base
    Vec3 w2, w1            # absolute
    Vec3 v_head            # relative to the base
    double sin_bend[2]
    # centres of mass; without q'': their accelerations and the angular ones
    Vec3 c2, c1, c3
    Vec3 alpha2, alpha1
    Vec3 a2, a1, a3
    # partial velocities of the centres of mass
    Vec3 jv2[2]
    Vec3 jv1[6]
    Vec3 jv3[2]
    double M[49]
    double bias[7]
    ChainMotion spring[2]
    ChainMotion brake[2]
    double limiter_x


# ------------------------------------------------------------------------------------------------------------------------- the unit

cdef struct State:
    double q[DOF]
    double v[DOF]
    HysteresisState bend[2]
    HysteresisState twist
    HysteresisState lateral[2]
    HysteresisState axial
    double train_rate              # deformation rate of the axial gear train, rad/s
    DriveState drive
    double latch_angle[LATCHES]
    double lever_angle[LEVERS]
    double cover_x
    double cover_v
    HysteresisState cover
    double cover_force
    # energy ledger, J
    ProbeConeLost lost             # losses so far
    double axial_stored            # in the hysteresis elements
    double bend_stored[2]
    double twist_stored
    double lateral_stored[2]
    double supplied                # work of target and drive so far
    double latch_last[LATCHES]     # stored in latches and levers after the last sub-step
    double lever_last[LEVERS]
    double time
    Pose X_led                     # pose of A in T at the end of the last tick, and the wrench of its last sub-step on the target about A
    Wrench F_led
    int latch_phase[LATCHES]
    int lever_phase[LEVERS]
    int over_limit                 # ticks in which a law was used beyond its valid range
    int invalid_part               # where that was first: part of `INVALID` and its number, 0: nowhere
    int invalid_number
    int led                        # there was a tick
    double invalid_value           # how far, and the limit
    double invalid_limit
    double invalid_at[3]           # place in T, contacts only
    double invalid_time


cdef struct Unit:
    State state
    # geometry
    Inertias inertias
    Profile cone
    double head_radius
    Vec3 mouth
    double mouth_radius
    double entry_x, entry_radius, last_cone_x
    int bottom_face
    Vec3 lining[LININGS]               # front points, limiter frame
    Vec3 lining_run[LININGS]           # from front to rear
    double lining_front, lining_reach
    int rollers
    double roller_radius
    double roller_dir[2 * ROLLERS]
    int cam_points
    double cam_nut[CAM_POINTS]
    double cam_x[CAM_POINTS]
    double cam_rho[CAM_POINTS]
    LatchGeometry latch
    LatchGeometry lever
    Groove groove
    double latch_dir[2 * LATCHES]
    double lever_dir[2 * LEVERS]
    double release_x, lever_friction, lever_viscous
    # contact laws
    ContactLaw head_law
    ContactLaw limiter_law
    ContactLaw roller_law
    ContactLaw latch_law
    double depth_limit
    # elastic elements
    HysteresisTable bend
    HysteresisTable twist
    HysteresisTable lateral
    HysteresisTable axial
    SeriesClutch brakes
    bint two_brakes
    double bend_damping, twist_damping, lateral_damping, train_damping
    # stroke
    double length0, length_min, length_max, stop_stiffness, stop_damping
    double nut_ratio, clutch_ratio, drive_ratio, screw_friction
    TorqueTable axial_brake
    TorqueTable lateral_brake
    double extra_brakes
    double crank_stop[2]
    double crank_share[2]              # of its magnetic torque that a lateral brake still has
    double crank_stiffness, crank_damping
    double crank_zero[2]
    Drive drive
    # movable limiter
    bint movable
    double limiter_front, limiter_travel, limiter_force_front, limiter_force_end, limiter_stiffness, limiter_damping, limiter_gap
    # docking planes
    Planes planes
    # failed parts
    int latch_jammed, latch_stays, lever_dead
    bint dk1_dead, dk2_dead
    double axial_brake_share
    # hatch cover
    bint cover_on
    double cover_mass, cover_damping
    HysteresisTable cover
    int substeps
    # work space of one step (not state)
    Motion motion
    ProbeConeRecord *record            # the auxiliary channels, where the caller wants them
    Wrench force_T                     # on the target, summed over the sub-steps
    Wrench force_A
    double deepest                     # penetration of the tick
    Vec3 deepest_at                    # its place in T
    int deepest_part, deepest_number   # and whose it is
    int touching_part, touching_number  # whose contacts are being looked for
    int latches_held                   # drawn into the head by the release command
    double limiter_loss                # power lost in the movable limiter's stops, W
    double roller_load                 # force of the levers' rollers on the stroke, by way of cam and nut, N
    double tip_moment[2]               # of latches and levers on bending, beyond that on the probe's own rotation, N.m
    double stop_loss                   # and in the end stops of the stroke
    Twist jump                         # by which the base is not where its last tick led it: m, rad; zero but in the first sub-step
    double brake_factor                # of the lateral magnetic brakes: extra brakes on or not
    uint32_t signals
    uint32_t status
