"""Energy accumulator of a strut: spiral spring, controlled overrunning clutch, backlash, slip, stops. Equations: elastic_accumulator.pyx."""

from rt_kernels.mechanisms.common.hysteresis cimport Curve, curve_value

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


cdef inline double accumulator_step(const Accumulator *a, AccumulatorState *s, double d, bint blocked, double dt) noexcept nogil:
    """Accept the compression d and the state of the clutch; returns the force. Exact for any step inside a monotonic move."""
    # the spring is compressed no further than the fixed stops let it: they are not moved by slip
    cdef double x = d
    cdef double stop = 0.0
    cdef double load, recoil, f
    if x > a.rod_in:
        stop = a.stiffness * (x - a.rod_in)
        x = a.rod_in
    elif x < a.rod_out:
        stop = a.stiffness * (x - a.rod_out)
        x = a.rod_out
    # a clutch that opens lets the force go up to the recoil branch over the ramp
    if blocked:
        s.release = 0.0
        s.release_force = s.f
    elif s.release < 1.0:
        s.release += dt / a.release_time
        if s.release > 1.0:
            s.release = 1.0
    load = curve_value(&a.load, x - s.shift)
    recoil = curve_value(&a.recoil, x - s.shift)
    f = a.stiffness * (x - s.zero)
    s.branch = TRANSITION
    if blocked:
        s.branch = UNLOADING
    if f > load:
        # branch 1: the spring is wound up
        f = load
        s.branch = LOADING
        s.zero = x - f / a.stiffness
    elif not blocked and recoil > 0.0:
        # branch 2: the spring pushes back, from the force at release to the branch
        if s.release < 1.0 and s.release_force < recoil:
            recoil = s.release_force + (recoil - s.release_force) * s.release
        if f < recoil:
            f = recoil
            s.branch = RECOIL
            s.zero = x - f / a.stiffness
    if f < 0.0:
        # backlash, tension, slip of the clutch
        f = a.stiffness * (x - (s.zero - a.backlash))
        s.branch = TENSION
        if f > 0.0:
            f = 0.0
            s.branch = BACKLASH
        elif f < -a.slip_force:
            f = -a.slip_force
            stretch(a, s, x + a.slip_force / a.stiffness + a.backlash)
            s.branch = SLIP
    if stop > 0.0:
        s.branch = STOP
    s.d = d
    s.blocked = blocked
    s.f = f + stop
    return s.f


cdef inline void stretch(const Accumulator *a, AccumulatorState *s, double zero) noexcept nogil:
    # slip moves the line and the branches together; the wind-up of the spring stays
    cdef double d_T = zero - s.zero
    s.zero = zero
    s.shift += d_T
    s.slipped -= d_T


# set-up, with the interpreter: raises ValueError that names the key
cdef void fill_accumulator(object t, Accumulator *a) except *
