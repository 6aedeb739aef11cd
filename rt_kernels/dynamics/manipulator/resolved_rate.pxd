"""Structs and functions of `resolved_rate.pyx`."""

from rt_kernels.dynamics.manipulator.compliance cimport ArmPlace
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
cdef double damped_rates(int n, double sigma_0, double lambda_0, double J[6][ARM_JOINTS], const double *x, double *rates) noexcept nogil
cdef void rotate_pair(double A[6][6], double V[6][6], int p, int q) noexcept nogil


cdef class ResolvedRate:
    cdef RateControl c
    cdef RateState s
    cdef readonly Tree tree
    cdef int set_place(self, ArmPlace *at, name) except -1
    cdef int fill(self, ArmPlace *at, R, p) except -1
