"""Structs and functions of `platform.pyx`. Inline: two formulas of one line that the elastic-adaptive unit needs for every leg."""

from rt_kernels.algebra.values cimport Mat3, Twist, Vec3, Wrench

cdef enum:
    MAX_LEGS = 6
    MAX_JOINTS = 4

cdef enum LegKind:
    UPS = 0
    UCU = 1
    SPU = 2
    RUS = 3
    RSU = 4


# Constants of one leg.
cdef struct Leg:
    int kind
    int joints                  # 3, or 4 for a universal joint at the ring
    int spin                    # joint that turns the link about its own x axis through the cut point; -1 for a spherical joint at the ring
    int stroke                  # prismatic joint, or -1
    int active                  # joint of the spring: the stroke, or the crank
    double lever                # way at the spring per unit of that joint: 1, or the length of the crank
    bint prismatic[MAX_JOINTS]
    int axis[MAX_JOINTS]        # 0 x, 1 y, 2 z of the joint frame
    bint turned                 # joint 2 has a frame of its own on link 1 (RUS, RSU)
    Mat3 R_0J                   # frame of joint 1 in the base
    Mat3 R_LU                   # frame of joint 2 on link 1, if turned
    Vec3 p_0J                   # joint 1 in the base
    Vec3 link[MAX_JOINTS]       # from joint j to joint j + 1 in body j; last: to the cut point
    double length0              # length at zero stroke
    double elbow                # +1 or -1, RUS and RSU
    double mass[MAX_JOINTS]     # body behind joint j; 0: fictitious
    Vec3 centre[MAX_JOINTS]
    Mat3 inertia[MAX_JOINTS]    # about the centre of mass, body axes
    Vec3 p_NQ                   # cut point in the ring
    Vec3 e_N                    # ring-side axis of the universal joint, ring axes
    # differential ball screw between stroke and spin
    double i_N                  # 2 pi / lead, rad/m; 0: none
    double hand                 # s = +1 or -1
    double nut_inertia          # nut and all that is geared to it, at the nut


# Motion of a body and of one of its points, base axes; of the base: absolute, at its origin.
cdef struct BodyMotion:
    Vec3 w       # angular velocity
    Vec3 alpha   # its derivative
    Vec3 accel   # acceleration of the point, less gravity


# Pose and motion of the ring N in a frame, with the axes of that frame: here the base, in `contact` the target port T.
cdef struct RingPose:
    Vec3 p
    Mat3 R
    Vec3 v
    Vec3 w


# What changes with the pose: filled by `close_legs` and `reduce_to_ring`.
cdef struct LegMotion:
    double p[MAX_JOINTS]
    double p_rate[MAX_JOINTS]
    double p_accel[MAX_JOINTS]
    double s[MAX_JOINTS]
    double c[MAX_JOINTS]
    Vec3 axis[MAX_JOINTS]            # joint axes, base axes
    Vec3 pole[MAX_JOINTS]            # joint centres from the base origin
    Mat3 R[MAX_JOINTS]               # body frames in the base
    Vec3 cut                         # cut point from the base origin
    double H[MAX_JOINTS][6]          # joint rates from [v_N; w_N], base axes
    double h[MAX_JOINTS]
    Vec3 inverse[3]                  # of the three position rows of C_d, rows for the joints without the spin
    int position_joint[3]
    Vec3 normal                      # n_R of a universal joint
    double A[16]
    double b[MAX_JOINTS]
    BodyMotion bias[MAX_JOINTS]      # of body j and its centre of mass at zero p_accel (absolute, with the base motion)
    double force[MAX_JOINTS]         # active joint forces and torques, positive when they increase p
    Vec3 reaction                    # of the ring on the leg: force in base axes
    double reaction_torque           # and torque about n_R


cdef struct RingBody:
    double mass
    Mat3 inertia  # about the centre, ring axes


cdef inline void screw_force(const Leg *leg, double f_S, LegMotion *m) noexcept nogil:
    """Spring force f_S (positive pushes the rod out) on stroke and spin: b += H_N^T m_Nut with m_Nut = s f_S / i_N."""
    m.force[leg.stroke] += f_S
    if leg.spin >= 0 and leg.i_N > 0.0:
        m.force[leg.spin] += leg.hand * f_S / leg.i_N


cdef inline double effective_stroke(const Leg *leg, const double *p) noexcept nogil:
    # what the nut feels: p3 + s p4 / i_N (for coordinates and for rates)
    if leg.spin >= 0 and leg.i_N > 0.0:
        return p[leg.stroke] + leg.hand * p[leg.spin] / leg.i_N
    return p[leg.stroke]


cdef bint close_legs(const Leg *legs, const RingPose *N, LegMotion *motion) noexcept nogil
cdef void reduce_to_ring(const Leg *legs, const RingBody *ring, const BodyMotion *base, const RingPose *N, Wrench F_ring, LegMotion *motion,
                         double *A, double *b) noexcept nogil
cdef bint solve_ring(const double *A, const double *b, double *x) noexcept nogil
cdef void react_all_on_base(const Leg *legs, Twist accel, LegMotion *motion, Wrench *W) noexcept nogil

# set-up, with the interpreter
cdef void build_leg(object table, Leg *leg) except *
