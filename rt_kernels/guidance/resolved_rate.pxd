"""Rates of a manipulator's joints from hand-controller rates, one joint, or a stored path; run every outer period (8 ms).

Dissertation (8.2) names the inverse problem of rates, slow-down zones and the avoidance of singularities; in formulas:

    w_E = R_NC w,   v_E = R_NC v + w_E x (p_E - p_P)            C axes of the command, P the point whose velocity is commanded
    qd  = J^T (J J^T + lambda^2 S)^-1 [v_E; w_E],  S = diag(L^2, L^2, L^2, 1, 1, 1)
    lambda^2 = lambda_0^2 (1 - sigma/sigma_0)^2 below sigma_0, 0 above; sigma the smallest singular value of S^-1/2 J
    |qd_j| <= rate_max_j, and towards a stop |qd_j| <= -a T + sqrt(a^2 T^2 + 2 a distance), |qd_j| <= k distance

The second keeps room to brake with a after one more period T (the continuous sqrt(2 a distance) passes the stop); the third (k = 1/T unless
given) lets joints with a heavy payload, which lag behind their command, come in without swinging through. One factor scales all
joints, so the direction of the motion stays.  A locked joint has no column in J.
"""

from rt_kernels.dynamics.arm_compliance cimport ArmPlace
from rt_kernels.multibody.tree cimport Tree, TreeModel

cdef enum:
    ARM_JOINTS = 8
    ARM_SLOTS = 16
    ARM_WAYPOINTS = 64


cdef enum RateMode:
    RATES_HOLD = 0
    RATES_HAND = 1
    RATES_SINGLE = 2
    RATES_PATH = 3


cdef struct RateControl:
    ArmPlace E                    # end effector
    ArmPlace axes                 # of the command: camera, target or end effector
    ArmPlace point                # whose velocity is commanded, on the end effector's body
    int n                         # joints
    double period                 # T, s
    double linear_max             # of the commanded velocity's size, m/s
    double angular_max            # rad/s
    double length                 # L, m
    double lambda_0
    double sigma_0
    double rate_max[ARM_JOINTS]
    double low[ARM_JOINTS]
    double high[ARM_JOINTS]
    double braking[ARM_JOINTS]    # a, rad/s^2
    int n_path
    double path[ARM_WAYPOINTS][ARM_JOINTS]
    double arrived                # rad, a waypoint is reached
    double approach               # 1/s, rate per distance near a stop and a waypoint


cdef struct RateState:
    int locked                    # joint, -1 none
    int waypoint                  # next of the path
    double sigma                  # smallest singular value at the last hand command
    double factor                 # by which the rates were scaled, 1 without a limit
    int limiting                  # joint that set it, -1 none


cdef void rate_step(const TreeModel *model, const RateControl *c, RateState *s, int mode, const double *command, int joint,
                    const double *q, double *rates) noexcept nogil
cdef void rotate_pair(double A[6][6], double V[6][6], int p, int q) noexcept nogil


cdef class ResolvedRate:
    cdef RateControl c
    cdef RateState s
    cdef readonly Tree tree
    cdef int put(self, ArmPlace *at, name) except -1
    cdef int fill(self, ArmPlace *at, R, p) except -1
