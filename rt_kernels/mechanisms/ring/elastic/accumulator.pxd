"""Structs and functions of `accumulator.pyx`."""

from rt_kernels.mechanisms.common.hysteresis cimport Curve

cdef enum AccumulatorBranch:
    BACKLASH = 0
    LOADING = 1
    RECOIL = 2
    TRANSITION = 3
    UNLOADING = 4
    STOP = 5
    TENSION = 11
    SLIP = 12


cdef struct Accumulator:
    Curve load                   # branch 1: force against compression from the forward position
    Curve recoil                 # branch 2
    double stiffness             # k_Stop of every transition
    double backlash
    double slip_force            # f_FR_max
    double rod_in                # compression at which the rod is fully in
    double rod_out               # compression (negative) at which it is stopped fully out
    double release_time          # ramp after the clutch opens, s


cdef struct AccumulatorState:
    double d                     # last compression
    double f                     # last force, positive pushes the rod out
    double zero                  # compression at which the stiff line has no force: d4B
    double shift                 # of the branch nodes by clutch slip
    double release               # 0 to 1: how far the release ramp has come
    double release_force
    double slipped               # total slip, m
    int blocked                  # clutch: 1 recoil blocked, 0 free
    int branch                   # AccumulatorBranch


cdef double accumulator_step(const Accumulator *a, AccumulatorState *s, double d, bint blocked, double dt) noexcept nogil

# set-up, with the interpreter: raises ValueError that names the key
cdef void fill_accumulator(object t, Accumulator *a) except *
