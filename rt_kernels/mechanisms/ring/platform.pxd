"""Structs and functions of `platform.pyx`. Inline: two formulas of one line that the elastic-adaptive unit needs for every leg."""

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
    bint prismatic[MAX_JOINTS]
    int axis[MAX_JOINTS]        # 0 x, 1 y, 2 z of the joint frame
    bint turned                 # joint 2 has a frame of its own on link 1 (RUS, RSU)
    double R_0J[9]              # frame of joint 1 in the base
    double R_LU[9]              # frame of joint 2 on link 1, if turned
    double p_0J[3]              # joint 1 in the base
    double link[MAX_JOINTS][3]  # from joint j to joint j + 1 in body j; last: to the cut point
    double length0              # length at zero stroke
    double elbow                # +1 or -1, RUS and RSU
    double mass[MAX_JOINTS]     # body behind joint j; 0: fictitious
    double centre[MAX_JOINTS][3]
    double inertia[MAX_JOINTS][9]  # about the centre of mass, body axes
    double p_NQ[3]              # cut point in the ring
    double e_N[3]               # ring-side axis of the universal joint, ring axes
    # differential ball screw between stroke and spin
    double i_N                  # 2 pi / lead, rad/m; 0: none
    double hand                 # s = +1 or -1
    double nut_inertia          # nut and all that is geared to it, at the nut


# What changes with the pose: filled by `close_legs` and `reduce_to_ring`.
cdef struct LegMotion:
    double p[MAX_JOINTS]
    double p_rate[MAX_JOINTS]
    double p_accel[MAX_JOINTS]
    double s[MAX_JOINTS]
    double c[MAX_JOINTS]
    double axis[MAX_JOINTS][3]       # joint axes, base axes
    double pole[MAX_JOINTS][3]       # joint centres from the base origin
    double R[MAX_JOINTS][9]          # body frames in the base
    double cut[3]                    # cut point from the base origin
    double H[MAX_JOINTS][6]          # joint rates from [v_N; w_N], base axes
    double h[MAX_JOINTS]
    double inverse[9]                # of the three position rows of C_d, rows for the joints without the spin
    int position_joint[3]
    double normal[3]                 # n_R of a universal joint
    double A[16]
    double b[MAX_JOINTS]
    double bias_accel[MAX_JOINTS][3]  # of the centre of mass of body j at zero p_accel (absolute, with the base motion)
    double bias_spin[MAX_JOINTS][3]
    double spin_rate[MAX_JOINTS][3]  # absolute angular velocity of body j
    double force[MAX_JOINTS]         # active joint forces and torques, positive when they increase p
    double reaction[4]               # of the ring on the leg: force in base axes, torque about n_R


cdef struct BaseMotion:
    double w[3]       # absolute angular velocity of the base, base axes
    double alpha[3]   # its derivative
    double accel[3]   # acceleration of the base origin, less gravity


cdef struct RingBody:
    double mass
    double inertia[9]  # about the centre, ring axes


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


cdef bint close_legs(const Leg *legs, const double *X_0N, const double *R_0N, const double *v_N, const double *w_N,
                     LegMotion *motion) noexcept nogil
cdef void reduce_to_ring(const Leg *legs, const RingBody *ring, const BaseMotion *base, const double *p_0N, const double *R_0N,
                         const double *v_N,
                         const double *w_N, const double *F_ring, LegMotion *motion, double *A, double *b) noexcept nogil
cdef bint solve_ring(const double *A, const double *b, double *x) noexcept nogil
cdef void react_all_on_base(const Leg *legs, const double *accel, LegMotion *motion, double *W) noexcept nogil

# set-up, with the interpreter
cdef void build_leg(object table, Leg *leg) except *
