"""From raw counts to the contact wrench at the docking port.

    F_raw = C (counts - bias)                calibration matrix C: six gauges, or the scale of a ready six-axis record
    F     = F_raw - W(X)                     weight and inertia of the unit that the load cell carries
    F_S   = LP(F)                            low-pass, order 0, 1 or 2; its delay is an entry of the delay ledger
    F_T   = +F_S moved from S to T           when the target unit hangs on the load cell
          = -F_S moved from S to T           when the active unit does (the cell then feels the reaction)

The weight of the carried unit (mass m, centre of mass c in S axes), load cell at R_WS: f = m R_WS^T g, and c x f. On a moving
platform the load cell also feels the inertia of what it carries, -m a_c, taken from the measured platform motion.

With `inertia_from = "accelerometers"` both come from accelerometers on what the cell carries, wherever that hangs: they read the proper
acceleration A of S (at rest -g, so that the weight is in it and no attitude is needed) and the angular one E, S axes; J about c:

    f = -m (A + E x c) ,   moment c x f - J E          (centripetal parts are second order at stand rates)

This takes off what a base that rings or a platform that shakes puts on the cell, which no measured pose shows. It is as good as the two
devices are simultaneous: with a difference t of their delays the part w t of an inertial force at w rad/s stays.

Tare. Before the loop is closed nothing touches, and what is left of F is the zero of the cell: with `tare_s` its mean over that time, from
the first record on and in the phases idle and position alone, is taken off F until the run ends. A mean force above `tare_max_n` is no
zero and stays for the safety stage to judge (`tare_wrong`); a time in which the approach begins or the units touch ends without a tare.

Frames: S load cell, T target port. Source of the layout: Yaskevich 2020, 6.2 (six strain-gauge cells, three forces and three moments).
Per channel: range, saturation, broken wire; for the whole record: no data, stale, lost, corrupt as the port reports them.

Frozen: a real sensor's six values are never all equal to the bit for long (recorded: no two records in succession of an ATI Gamma at rest;
with noise of one count they are equal in 0.4 % of the pairs, ten times in succession once in 10^22 records). Ten new records or more, over
`frozen_s`, with equal values are a fault. A sensor in software without noise repeats its values wherever nothing moves: there the values
are judged only in a contact, and when the units have moved by FROZEN_WAY since.
"""

from libc.math cimport fabs
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

import math

import numpy as np

from rt_kernels.algebra.values cimport (Mat3, Pose, Twist, Vec3, Wrench, add, compose, cross, div, mat, mat_vec, mul, neg, norm, pose,
                                        pose_from, put, put_wrench, rotate, rotate_back, sub, twist, vec, wrench, wrench_of,
                                        wrench_to_child, wrench_to_parent, xyz)
from rt_kernels.codes cimport (PHASE_POSITION, SENSOR_STATUS_BROKEN_WIRE, SENSOR_STATUS_FROZEN, SENSOR_STATUS_NO_DATA,
                               SENSOR_STATUS_OUT_OF_RANGE, SENSOR_STATUS_SATURATED, WRENCH_CHANNEL_FAULT_BROKEN_WIRE1,
                               WRENCH_CHANNEL_FAULT_OUT_OF_RANGE1, WRENCH_CHANNEL_FAULT_SATURATED1)
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample
from rt_kernels.wrench.six_axis_parameters cimport SixAxisParameters, fill_six_axis

from rt_kernels.block_check import COUNT, FLAG
from rt_kernels.parameters import Parameter, checked


cdef enum:
    FROZEN_RECORDS = 10         # new records with equal values, at least

cdef double FROZEN_WAY = 2e-4   # m, of the units since the values have been equal: a sensor without noise
cdef double FROZEN_FORCE = 1.0  # N: less is no contact

cdef struct Params:
    SixAxisParameters keys
    double calibration[36]
    double broken_low           # counts between these two are a broken wire; equal: no such check
    double broken_high
    double mass                 # carried by the load cell
    Vec3 com_S
    Mat3 J                      # about the centre of mass, S axes
    Vec3 gravity_W
    Pose X_S                    # load cell in W, or on the platform
    Pose X_ST                   # port of the unit on the load cell, in S
    double a[3]                 # low-pass, difference equation y = b0 x + b1 x1 + b2 x2 - a1 y1 - a2 y2 (a[0] unused)
    double b[3]
    double period
    int64_t tare_ticks          # over which the tare is taken, 0: none
    int on_platform
    int target_on_cell
    int accelerometers
    int noiseless

cdef struct State:
    double raw[6]               # newest values
    double since                # s for which they have been equal
    Vec3 place                  # of the active port in T when they began
    int64_t sequence            # of the newest record
    int64_t equal               # new records since with the same values
    double tare_sum[6]          # N, N.m, over `taring` ticks
    double tare[6]
    int64_t taring              # -1: the tare is taken, or its time has ended without one
    double x1[6]
    double x2[6]
    double y1[6]
    double y2[6]
    Twist V_previous
    int primed
    int unused

cdef struct Self:
    Params params
    State state


cdef uint32_t check_channels(const Params *p, const Sample *s, const double *F, uint32_t *which) noexcept nogil:
    """Range, saturation and broken wire of each channel; `which` gets the channels as in the table."""
    cdef uint32_t status = 0
    cdef int i
    which[0] = 0
    for i in range(6):
        if not (fabs(s.wrench_raw[i]) < p.keys.saturation):
            status |= SENSOR_STATUS_SATURATED
            which[0] |= WRENCH_CHANNEL_FAULT_SATURATED1 << i
        if p.broken_low < p.broken_high and p.broken_low <= s.wrench_raw[i] <= p.broken_high:
            status |= SENSOR_STATUS_BROKEN_WIRE
            which[0] |= WRENCH_CHANNEL_FAULT_BROKEN_WIRE1 << i
        if not (fabs(F[i]) <= (p.keys.range_force[i] if i < 3 else p.keys.range_moment[i - 3])):
            status |= SENSOR_STATUS_OUT_OF_RANGE
            which[0] |= WRENCH_CHANNEL_FAULT_OUT_OF_RANGE1 << i
    return status


cdef bint frozen(const Params *p, State *st, const Sample *s, const double *F, double dt) noexcept nogil:
    """Whether new records have brought the same six values for too long. F: calibrated."""
    cdef bint same = True
    cdef int i
    if p.keys.frozen <= 0.0:
        return False
    for i in range(6):
        if s.wrench_raw[i] != st.raw[i]:
            same = False
    if not same or s.wrench_sequence < st.sequence:
        memcpy(st.raw, s.wrench_raw, sizeof(st.raw))
        st.place = vec(s.X_TA_measured)
        st.sequence = s.wrench_sequence
        st.equal = 0
        st.since = 0.0
        return False
    st.since += dt
    if s.wrench_sequence > st.sequence:
        st.equal += 1
        st.sequence = s.wrench_sequence
    if st.equal < FROZEN_RECORDS or st.since < p.keys.frozen:
        return False
    if not p.noiseless:
        return True
    return norm(sub(vec(s.X_TA_measured), st.place)) > FROZEN_WAY and norm(vec(F)) > FROZEN_FORCE


cdef void calibrate(const Params *p, const double *counts, double *F) noexcept nogil:
    cdef int i, j
    cdef double sum
    for i in range(6):
        sum = 0.0
        for j in range(6):
            sum += p.calibration[6 * i + j] * (counts[j] - p.keys.bias[j])
        F[i] = sum


cdef inline void take_off(Vec3 f, Vec3 m, double *F) noexcept nogil:
    """Takes the load f, m of what the cell carries off F, in S."""
    put(sub(vec(F), f), F)
    put(sub(vec(F + 3), m), F + 3)


cdef void carried_load(const Params *p, State *st, const Sample *s, double *F) noexcept nogil:
    """Takes the weight (and on a moving platform the inertia) of the carried unit off F, in S."""
    cdef Pose X_WP, X_WS = p.X_S
    cdef Twist V = twist(s.V_WP_measured)
    cdef Vec3 f = mul(p.mass, p.gravity_W), r, w_dot, a_c
    if p.mass <= 0.0:
        return
    if p.on_platform:
        X_WP = pose(s.X_WP_measured)
        X_WS = compose(X_WP, p.X_S)
        # acceleration of the carried centre of mass: dv/dt + dw/dt x r (the centripetal part is second order at stand rates)
        r = sub(add(rotate(X_WS.q, p.com_S), X_WS.p), X_WP.p)
        w_dot = div(sub(V.w, st.V_previous.w), p.period)
        a_c = add(div(sub(V.v, st.V_previous.v), p.period), cross(w_dot, r))
        f = add(f, mul(-p.mass, a_c))
    f = rotate_back(X_WS.q, f)
    take_off(f, cross(p.com_S, f), F)


cdef uint32_t felt_load(const Params *p, const Sample *s, double *F) noexcept nogil:
    """Takes off F, in S, the weight and inertia of the carried unit as the accelerometers measure them. A record of six zeros is none:
    something always reads the weight. Returns the bits of sensor_status."""
    cdef Vec3 A = vec(s.cell_acceleration), E = vec(s.cell_acceleration + 3)
    cdef Vec3 f = mul(-p.mass, add(cross(E, p.com_S), A))
    cdef double size = 0.0
    cdef int i
    for i in range(6):
        size += fabs(s.cell_acceleration[i])
    if size == 0.0:
        return SENSOR_STATUS_NO_DATA
    if not (size < 1e12):
        return SENSOR_STATUS_OUT_OF_RANGE
    take_off(f, sub(cross(p.com_S, f), mat_vec(p.J, E)), F)
    return 0


cdef void take_tare(const Params *p, State *st, const Sample *s, double *F) noexcept nogil:
    """Takes the tare off F, in S, and before the approach adds F to it."""
    cdef int i
    if st.taring >= 0:
        if s.phase > PHASE_POSITION or s.contact:
            st.taring = -1
        else:
            st.taring += 1
            for i in range(6):
                st.tare_sum[i] += F[i]
            if st.taring >= p.tare_ticks:
                if norm(vec(st.tare_sum)) <= p.keys.tare_max * st.taring:
                    for i in range(6):
                        st.tare[i] = st.tare_sum[i] / st.taring
                st.taring = -1
    for i in range(6):
        F[i] -= st.tare[i]


cdef void low_pass(const Params *p, State *st, const double *F, double *out) noexcept nogil:
    cdef int i
    cdef double y
    if p.keys.filter_order == 0 or not st.primed:
        # a filter that starts at its first value does not ring at switch-on
        for i in range(6):
            st.x1[i] = F[i]
            st.x2[i] = F[i]
            st.y1[i] = F[i]
            st.y2[i] = F[i]
            out[i] = F[i]
        st.primed = 1
        return
    for i in range(6):
        y = p.b[0] * F[i] + p.b[1] * st.x1[i] + p.b[2] * st.x2[i] - p.a[1] * st.y1[i] - p.a[2] * st.y2[i]
        st.x2[i] = st.x1[i]
        st.x1[i] = F[i]
        st.y2[i] = st.y1[i]
        st.y1[i] = y
        out[i] = y


cdef void to_target_port(const Params *p, const Sample *s, double *F_T) noexcept nogil:
    """F_S at the load cell -> wrench of the active unit on the target unit, at and in T."""
    cdef Wrench F_C = wrench_to_child(p.X_ST, wrench(s.F_S)), F
    if p.target_on_cell:
        put_wrench(F_C, F_T)
    else:
        # the cell carries the active unit: its port is A, and the reaction is what acts on the target
        F = wrench_to_parent(pose(s.X_TA_measured), F_C)
        put_wrench(wrench_of(neg(F.f), neg(F.m)), F_T)


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *st = &(<Self *>self).state
    cdef double F[6]
    cdef int i
    cdef uint32_t unusable = SENSOR_STATUS_NO_DATA
    calibrate(p, sample.wrench_raw, F)
    if sample.wrench_sequence == 0 and sample.wrench_status & unusable:
        # nothing has arrived yet
        sample.wrench_fault = sample.wrench_status
        sample.wrench_channel_fault = 0
        for i in range(6):
            sample.F_S[i] = 0.0
            sample.F_T[i] = 0.0
        return
    sample.wrench_fault = sample.wrench_status | check_channels(p, sample, F, &sample.wrench_channel_fault)
    if p.accelerometers:
        sample.wrench_fault |= felt_load(p, sample, F)
    else:
        carried_load(p, st, sample, F)
    if frozen(p, st, sample, F, p.period * sample.periods):
        sample.wrench_fault |= SENSOR_STATUS_FROZEN
    st.V_previous = twist(sample.V_WP_measured)
    # a value that is not finite never enters the filter: the last good one stays, the status says why
    for i in range(6):
        if not (fabs(F[i]) < 1e12):
            return
    if p.tare_ticks > 0:
        take_tare(p, st, sample, F)
    low_pass(p, st, F, sample.F_S)
    to_target_port(p, sample, sample.F_T)


def low_pass_coefficients(order, corner_hz, period_s):
    """Difference equation of a Butterworth low-pass (bilinear, corner prewarped) and its delay at low frequency.

    Returns (b, a, delay_s): b, a of length 3. order 0 (no filter), 1 or 2. delay: -d phase/d omega at zero of the analogue prototype
    with the prewarped corner, 1/w_c (order 1), sqrt(2)/w_c (order 2).
    """
    if order == 0:
        return [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 0.0
    k = math.tan(math.pi * corner_hz * period_s)
    w = 2.0 * k / period_s
    if order == 1:
        n = 1.0 / (1.0 + k)
        return [k * n, k * n, 0.0], [1.0, (k - 1.0) * n, 0.0], 1.0 / w
    n = 1.0 / (1.0 + math.sqrt(2.0) * k + k * k)
    return [k * k * n, 2 * k * k * n, k * k * n], [1.0, 2.0 * (k * k - 1.0) * n, (1.0 - math.sqrt(2.0) * k + k * k) * n], math.sqrt(2.0) / w


cdef class SixAxis(StagePart):
    """Wrench path of a six-axis load cell. `filter_delay_s` is what it adds to the delay ledger."""

    PARAMETERS = (
        Parameter("calibration", "rows", "N/count, N.m/count", "calibration matrix, counts to wrench; none: from the sensor's own scale",
                  None, shape=(6, 6)),
        Parameter("bias_counts", "floats", "counts", "zero of each channel (tare)", (0.0,) * 6, shape=6),
        Parameter("range_force_n", "floats", "N", "range of the force channels", (5000.0,) * 3, low=0.0, shape=3, stricter="lower"),
        Parameter("range_moment_n_m", "floats", "N.m", "range of the moment channels", (3000.0,) * 3, low=0.0, shape=3,
                  stricter="lower"),
        Parameter("saturation_counts", "float", "counts", "a channel at or beyond it is saturated", 2147480000.0, low=1.0,
                  stricter="lower"),
        Parameter("broken_wire_counts", "floats", "counts", "a channel between these two is a broken wire; none: no such check", None,
                  shape=2),
        Parameter("inertia_from", "str", "-", "what says weight and inertia of what the cell carries: its weight and the measured pose, or "
                  "accelerometers on it", "pose", choices=("pose", "accelerometers")),
        Parameter("frozen_s", "float", "s", "six values equal to the bit for this long, in ten new records or more: a frozen sensor; "
                  "0: not judged", 0.02, low=0.0, high=60.0, stricter="equal"),
        Parameter("tare_s", "float", "s", "the mean wrench over this time before the approach is taken off; 0: none. A live "
                  "run whose test does not give it takes 1 s", 0.0, low=0.0, high=60.0),
        Parameter("tare_max_n", "float", "N", "a larger mean force is no zero and is not taken off", 10.0, low=0.0, high=1e4,
                  stricter="lower"),
        Parameter("filter_order", "int", "-", "low-pass: 0 none, 1, 2", 0, low=0, high=2),
        Parameter("filter_corner_hz", "float", "Hz", "corner of the low-pass", 100.0, low=0.1, high=450.0),
    )
    CONTEXT = ("period_s", "mounting", "sensor_scale", "noiseless")
    cdef Self c
    cdef readonly double filter_delay_s

    def __init__(self, *, period_s, mounting, sensor_scale, noiseless=False, **given):
        cdef int i
        keys = checked(SixAxis.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        calibration = keys["calibration"]
        if calibration is None:
            if sensor_scale is None:
                raise ValueError("wrench.calibration: the sensor gives no scale of its own, so a calibration matrix is needed")
            calibration = np.diag(1.0 / np.asarray(sensor_scale, float))
        calibration = np.asarray(calibration, float)
        if not np.linalg.cond(calibration / np.abs(calibration).max(axis=1, keepdims=True)) < 1e6:
            raise ValueError("wrench.calibration must be a 6x6 matrix of full rank")
        for i in range(36):
            self.c.params.calibration[i] = calibration.flat[i]
        fill_six_axis(&self.c.params.keys, keys)
        if keys["broken_wire_counts"] is not None:
            self.c.params.broken_low, self.c.params.broken_high = keys["broken_wire_counts"]
        c, g = mounting.carried_com_m, mounting.gravity_m_s2
        cdef double[::1] J = np.array(mounting.carried_inertia_kg_m2, float).reshape(9)
        self.c.params.com_S, self.c.params.gravity_W, self.c.params.J = xyz(c[0], c[1], c[2]), xyz(g[0], g[1], g[2]), mat(&J[0])
        self.c.params.mass = mounting.carried_mass_kg
        self.c.params.accelerometers = keys["inertia_from"] == "accelerometers"
        self.c.params.X_S, self.c.params.X_ST = pose_from(mounting.X_S), pose_from(mounting.X_S_port)
        self.c.params.on_platform = mounting.load_cell_on == "platform"
        self.c.params.target_on_cell = mounting.unit_on_load_cell == "target"
        self.c.params.period, self.c.params.noiseless = period_s, noiseless
        self.c.params.tare_ticks = round(keys["tare_s"] / period_s)
        b, a, self.filter_delay_s = low_pass_coefficients(keys["filter_order"], keys["filter_corner_hz"], period_s)
        for i in range(3):
            self.c.params.b[i], self.c.params.a[i] = b[i], a[i]
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step

    def state_bounds(self):
        return {"primed": FLAG, "sequence": COUNT, "equal": COUNT, "taring": (-1, COUNT[1])}

    def fields(self):
        return self.c
