"""A stand without drives, delay or noise: the mechanism meets the simulated relative motion itself (virtual docking).

The mechanism is advanced once a tick at the pose and twist that the dynamics have just computed; its wrench reaches the load cell in the
same tick, with the weight of the carried unit, so that the wrench path is the same as on a stand. Legs follow their setpoints exactly.
The mechanism's own channels (damper strokes, contact flags, ...) are this port's auxiliary channels.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from rt_kernels.algebra.values cimport (Pose, Quat, Vec3, Wrench, cross, pose, put, put_pose, put_wrench, quat, quat_multiply,
                                        rotate_back, vec, wrench, wrench_of, wrench_sum, wrench_to_parent)
from rt_kernels.codes cimport ANALOGUE_CHAIN_HEALTHY, MECHANISM_STATUS_OUT_OF_RANGE, SAFETY_STATE_NOT_ARMED, SENSOR_STATUS_OUT_OF_RANGE
from rt_kernels.plugs cimport Mechanism, MechanismInput, MechanismOutput, MechanismPart, PortPart
from rt_kernels.sample cimport Sample
from rt_kernels.stewart.platform cimport Platform, leg_lengths


from rt_kernels.block_check import COUNT, FLAG
from rt_kernels.parameters import Parameter, checked


cdef struct Params:
    Mechanism mechanism
    double dt
    int substeps
    Pose X_S_port
    Wrench weight_S             # wrench of the carried unit's weight on the load cell
    Pose X_CA
    double neutral_leg[6]
    int target_on_cell

cdef struct State:
    double leg_last[6]
    int64_t sequence
    int started

cdef struct Self:
    Params params
    State state


cdef inline Wrench wrench_on_cell(const Params *p, const MechanismOutput *out) noexcept nogil:
    return wrench_sum(wrench_to_parent(p.X_S_port, wrench(out.F_T) if p.target_on_cell else wrench(out.F_A)), p.weight_S)


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef MechanismInput inp
    cdef MechanismOutput out
    cdef Quat q_NA
    cdef uint32_t status = 0
    cdef int i
    # legs are at their setpoints; before the first one in the neutral pose
    for i in range(6):
        sample.measured_leg[i] = sample.leg_setpoint[i] if s.started and sample.safety_state != SAFETY_STATE_NOT_ARMED else p.neutral_leg[i]
        sample.measured_leg_rate[i] = (sample.measured_leg[i] - s.leg_last[i]) / (p.dt * sample.periods) if s.started else 0.0
        s.leg_last[i] = sample.measured_leg[i]
        sample.drive_status[i] = 0
    # the mechanism between the ports of the model
    put_pose(pose(sample.X_TA), inp.X_TA)
    memcpy(inp.V_TA, sample.V_TA, sizeof(inp.V_TA))
    q_NA = quat_multiply(quat(sample.X_NC + 3), p.X_CA.q)
    put(rotate_back(q_NA, vec(sample.V_NC + 3)), inp.w_A)
    inp.commands = sample.mechanism_command
    inp.dt = p.dt / p.substeps
    memset(&out, 0, sizeof(out))
    if s.started:
        for _ in range(p.substeps * sample.periods):
            p.mechanism.advance(p.mechanism.self, &inp, &out, aux)
            status |= out.status
    put_wrench(wrench_on_cell(p, &out), sample.wrench_raw)
    s.started = 1
    s.sequence += 1
    sample.wrench_sequence = s.sequence
    sample.wrench_status = 0
    sample.signal_discrete = out.signals
    # a mechanism that has left its valid range says so
    sample.signal_status = SENSOR_STATUS_OUT_OF_RANGE if status & MECHANISM_STATUS_OUT_OF_RANGE else 0
    memcpy(sample.signal_analog, out.analog, sizeof(sample.signal_analog))
    sample.analogue_chain = ANALOGUE_CHAIN_HEALTHY


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    pass


cdef class IdealStandPort(PortPart):
    """Virtual docking: no stand between model and mechanism."""

    PARAMETERS = (
        Parameter("substeps", "int", "-", "steps of the mechanism in a tick", 1, low=1, high=100),
    )
    CONTEXT = ("period_s", "platform", "mounting", "mechanism", "vehicles")
    cdef Self c
    cdef readonly MechanismPart mechanism

    def __init__(self, *, period_s, platform, mounting, MechanismPart mechanism, vehicles, **given):
        cdef int i
        cdef Params *p = &self.c.params
        keys = checked(IdealStandPort.PARAMETERS, given)
        memset(&self.c, 0, sizeof(Self))
        self.mechanism = mechanism
        p.mechanism = mechanism.plug
        p.dt = period_s
        p.substeps = keys["substeps"]
        p.target_on_cell = mounting.unit_on_load_cell == "target"
        for i in range(7):
            (<double *> &p.X_S_port)[i] = mounting.X_S_port[i]
            (<double *> &p.X_CA)[i] = vehicles.active.X_port[i]
        if mounting.load_cell_on != "floor":
            raise ValueError("an ideal stand needs its load cell on the floor (mounting.load_cell_on)")
        cdef Vec3 f, com
        cdef Quat q_WS
        q_WS.x, q_WS.y, q_WS.z, q_WS.w = mounting.X_S[3:]
        com.x, com.y, com.z = mounting.carried_com_m
        f.x, f.y, f.z = (mounting.carried_mass_kg * g for g in mounting.gravity_m_s2)
        f = rotate_back(q_WS, f)
        p.weight_S = wrench_of(f, cross(com, f))
        cdef Platform legs = platform
        leg_lengths(&legs.params, legs.params.neutral, p.neutral_leg)
        self.plug.self = &self.c
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.read = read
        self.plug.write = write

    def state_fields(self):
        return self.c.state

    def state_bounds(self):
        return {"sequence": COUNT, "started": FLAG}

    @property
    def AUX(self):
        return tuple(self.mechanism.AUX)

    @property
    def inner(self):
        return {"mechanism": self.mechanism}

    @property
    def sensor_scale(self):
        return [1.0] * 6

    @property
    def delays(self):
        return {"sensor_delay_s": 0.0, "setpoint_ticks": 0.0, "measured_leg_delay_s": 0.0}
