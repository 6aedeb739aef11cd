"""Constants and state of a manipulator with its payload: the structs that the files of this folder share. Equations: payload.pyx."""

from libc.stdint cimport uint64_t

from rt_kernels.algebra.values cimport Mat3, Pose, Vec3
from rt_kernels.dynamics cimport two_bodies
from rt_kernels.dynamics.manipulator.compliance cimport ArmPlace, ArmSegments
from rt_kernels.dynamics.manipulator.joint_drive cimport Controller, ControllerState, Drive, DriveState
from rt_kernels.dynamics.manipulator.payload_parameters cimport ManipulatorPayloadParameters
from rt_kernels.dynamics.manipulator.resolved_rate cimport ARM_JOINTS, ARM_WAYPOINTS, RateControl, RateState
from rt_kernels.multibody.tree cimport TreeModel, TreeWork

cdef enum:
    MAX_V = 14                         # velocity coordinates
    PATHS = 8                          # stored paths


cdef struct ArmParams:
    ManipulatorPayloadParameters keys
    two_bodies.Params pair             # active: the payload
    double h
    int inner                          # steps per period
    int outer                          # steps per outer loop
    int n                              # joints
    int locked                         # joint, -1 none
    ArmPlace E
    ArmPlace axes[4]                   # by rate frame; that of the target is on inertial axes
    ArmPlace point[4]
    RateControl rates
    Drive drive[ARM_JOINTS]
    Controller controller[ARM_JOINTS]
    ArmSegments segments
    int free                           # 1: the target vehicle moves
    int nr                             # velocity coordinates of the root, 0 or 6
    int nq                             # its position coordinates, 0 or 7
    double q0[ARM_JOINTS]
    double sigma0                      # smallest singular value there
    double rates_of_twist[6 * ARM_JOINTS]      # joint rates of the twist of E on its axes at q0
    Pose X_CG
    Mat3 R_CG
    Pose X_EO                          # at q0
    double K0[36]                      # at q0
    double D0[36]
    double L[36]                       # Cholesky factor of the payload's mass matrix at E
    double L_inverse[36]
    double decrement                   # c of D = c M # K
    double blend                       # part of the way per inner step
    double force_max
    double moment_max
    double path[PATHS][ARM_WAYPOINTS][ARM_JOINTS]
    int n_path[PATHS]
    int generated
    int unused
    uint64_t fingerprint


cdef struct ArmState:
    two_bodies.State pair
    DriveState drive[ARM_JOINTS]
    ControllerState controller[ARM_JOINTS]
    RateState rates
    Mat3 R_OT                          # axes of the target in the arm's tree
    Pose X_NO                          # inertial frame of the tree in N: the fixed base; identity for a free one
    Mat3 R_NO
    double x[7 + ARM_JOINTS]           # coordinates and velocities of the tree: root if there is one, joints
    double v[6 + ARM_JOINTS]
    double S[36]                       # inertia of the target vehicle, with the payload once joined: root's origin and axes
    Vec3 P                             # momentum of the same and the arm, L about the origin of N
    Vec3 L
    Vec3 P_rest                        # what the sums have lost to rounding
    Vec3 L_rest
    Pose X_OV                          # in the root
    Pose X_OC
    double command[ARM_JOINTS]         # joint rates
    double wrench[6]                   # on the end effector at G, axes of E
    double deflection[6]
    double K[36]
    double D[36]                       # D~
    double K_from[36]
    double D_from[36]
    double K_to[36]
    double D_to[36]
    double q_stiffness[ARM_JOINTS]     # where K is of
    double q_next[ARM_JOINTS]
    double A[6][6]                     # a refresh on its way: L^-1 K L^-T, its eigenvectors
    double V[6][6]
    double blended                     # part of the way from K_from to K_to, 1 without a blend
    double refreshed                   # how often
    int refresh
    int count                          # inner steps since the outer loop
    int mode
    int target
    int limited
    int joined


cdef struct Flat:
    ArmParams params
    ArmState state


cdef struct Arm:
    Flat flat
    TreeModel *model                   # of the dynamics
    TreeWork *work
    const TreeModel *kinematics        # of rates and compliance
    double *H
    double *bias
    double *rows
    double *zeros
