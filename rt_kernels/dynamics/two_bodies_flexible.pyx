"""Two free spacecraft with flexible structure: rigid motion of `two_bodies`, modes of one or both craft (Yaskevich 2020, 4.2, 4.3).

One way, as in the text: the contact wrench excites the modes of each craft at its port; the deformation of the port, its slope and their
rates enter the relative kinematics (and so the contact velocities); the flexible motion does not act back on the rigid one.

    X_CA = deformed port (4.3.2)-(4.3.5), V_CA its twist relative to C, in C axes
    v_A  = v_C + w_C x r_A + R_NC v_CA           w_A = w_C + R_NC w_CA                       (likewise T of the target craft)
    d/dt p_TA = R_TN (v_A - v_T - w_T x r_TA)    w_TA = R_TN (w_A - w_T)

The wrench acts on the rigid bodies at the deformed port T, equal and opposite at one point, so momentum is kept to rounding as without
modes. Modes are at rest while the guidance drives the platform, and when the loop is closed too unless the table gives their initial
state (4.5): the bodies then start so that the deformed ports have the achieved pose and twist. Joined craft keep their deformation. The
thrusters of a craft excite its modes at their nodes (4.2.4), `thruster_A` and `thruster_T` held over the tick; other further load points
of a table get no load here. A craft without a table [modal] is rigid; with two of them every bit is that of `two_bodies`. To first order
the axes of the deformed port are those of the undeformed one for the load.

Frames and units as in two_bodies; displacements [m, rad] and rates [m/s, rad/s] in axes of the undeformed port.
"""

from libc.stddef cimport size_t
from libc.string cimport memcpy, memset

import numpy as np

from rt_kernels.algebra.values cimport (Pose, Twist, Vec3, Wrench, add, compose, cross, inverse, neg, pose, pose_of, put_pose, put_twist,
                                        put_wrench, rotate, sub, twist, twist_of, wrench, wrench_of, wrench_to_child, wrench_to_parent,
                                        xyz, xyzw)
from rt_kernels.dynamics.modal cimport MODAL_COEFFICIENTS, MODAL_LANES, Modal, ModalCraft, deformation_twist, deformed_port, propagate
from rt_kernels.dynamics.two_bodies cimport (Params, State, TwoBodies, advance, body_pose, body_twist, relative_twist, report,
                                             start_from_relative)
from rt_kernels.dynamics.two_bodies_flexible_record cimport FlexibleRecord
from rt_kernels.codes cimport MOTION_CLOSE_LOOP, MOTION_FOLLOW_PROFILE, MOTION_FREE, MOTION_JOINED
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG
from rt_kernels.dynamics.two_bodies_flexible_record import AUX
from rt_kernels.parameters import checked

cdef enum:
    ACTIVE = 0
    TARGET = 1
    LOADS_MAX = 128             # six at the port, and further ones
    THRUSTERS_MAX = 64          # of a craft, as in the sample
    LINE = 8                    # doubles in a cache line

cdef struct Port:
    double displacement[6]      # of the port, in its undeformed axes
    double rate[6]
    Pose X                      # deformed port in the body frame
    Twist V                     # its twist relative to the body, body axes

# the state block: this, then the modes of both craft
cdef struct FlexState:
    State rigid
    Port port[2]
    Pose X_TA                   # of the deformed ports, previous tick
    double V_TA[6]

# how the modes begin when the loop is closed: this, then the modes of both craft
cdef struct FlexStart:
    Port port[2]
    int bent[2]                 # not at rest

cdef struct FlexSelf:
    Params *rigid
    FlexState *state
    FlexStart *start
    Modal modal[2]
    double *start_modes[2]
    int n_thrusters[2]          # the last of a craft's loads
    int flexible[2]


cdef inline void straighten(FlexSelf *f) noexcept nogil:
    """No deformation, no rates."""
    cdef int k
    for k in range(2):
        if f.flexible[k]:
            memset(f.modal[k].state, 0, f.modal[k].state_size)
        memset(f.state.port[k].displacement, 0, 6 * sizeof(double))
        memset(f.state.port[k].rate, 0, 6 * sizeof(double))
    place_ports(f)


cdef inline void place_ports(FlexSelf *f) noexcept nogil:
    cdef Port *port = f.state.port
    port[ACTIVE].X = deformed_port(f.rigid.active.X_port, port[ACTIVE].displacement)
    port[ACTIVE].V = deformation_twist(f.rigid.active.X_port, port[ACTIVE].rate)
    port[TARGET].X = deformed_port(f.rigid.target.X_port, port[TARGET].displacement)
    port[TARGET].V = deformation_twist(f.rigid.target.X_port, port[TARGET].rate)


cdef inline void bend(FlexSelf *f, const double *F_T, const double *thruster_A, const double *thruster_T, int steps) noexcept nogil:
    """Modes of both craft over the tick; wrench and thrusts are held."""
    cdef FlexState *s = f.state
    cdef double load[LOADS_MAX]
    cdef Wrench F_A
    cdef int k
    for k in range(2):
        if not f.flexible[k]:
            continue
        memset(load, 0, sizeof(load))
        if k == TARGET:
            memcpy(load, F_T, 6 * sizeof(double))
        else:
            # the opposite wrench, at and in A
            F_A = wrench_to_child(s.X_TA, wrench(F_T))
            put_wrench(wrench_of(neg(F_A.f), neg(F_A.m)), load)
        memcpy(load + f.modal[k].n_loads - f.n_thrusters[k], thruster_T if k == TARGET else thruster_A,
               f.n_thrusters[k] * sizeof(double))
        for _ in range(steps):
            propagate(&f.modal[k], load, s.port[k].displacement, s.port[k].rate)
    place_ports(f)


cdef inline Wrench wrench_at_undeformed(const FlexSelf *f, Wrench F_T) noexcept nogil:
    """The wrench at and in the deformed port T, taken to the undeformed one."""
    return wrench_to_parent(compose(inverse(f.rigid.target.X_port), f.state.port[TARGET].X), F_T)


cdef inline Twist port_twist(const Port *port, Pose X_NC, Twist V_NC, Pose X_NA) noexcept nogil:
    """Twist of a deformed port in N, N axes, from the motion of its craft: v_A = R_NC v_CA + w_C x r_CA + v_C, w_A = R_NC w_CA + w_C."""
    cdef Vec3 v_A = add(add(rotate(X_NC.q, port.V.v), cross(V_NC.w, sub(X_NA.p, X_NC.p))), V_NC.v)
    return twist_of(v_A, add(rotate(X_NC.q, port.V.w), V_NC.w))


cdef inline void relative_motion(const FlexSelf *f, const Sample *o, double *X_TA, double *V_TA) noexcept nogil:
    """Pose and twist of the deformed port A in the deformed port T, from the motion of both craft."""
    cdef const Port *port = f.state.port
    cdef Pose X_NA = compose(pose(o.X_NC), port[ACTIVE].X)
    cdef Pose X_NT = compose(pose(o.X_NV), port[TARGET].X)
    cdef Twist V_NA = port_twist(&port[ACTIVE], pose(o.X_NC), twist(o.V_NC), X_NA)
    cdef Twist V_NT = port_twist(&port[TARGET], pose(o.X_NV), twist(o.V_NV), X_NT)
    put_pose(compose(inverse(X_NT), X_NA), X_TA)
    put_twist(relative_twist(X_NT, V_NT, X_NA, V_NA), V_TA)


cdef void start_bent(FlexSelf *f, Sample *o) noexcept nogil:
    """Modes in their initial state; the bodies start so that the deformed ports have the achieved pose and twist."""
    cdef FlexState *s = f.state
    cdef Params bent = f.rigid[0]
    cdef double X_TA[7]
    cdef double V_TA[6]
    cdef int i, k
    for k in range(2):
        if f.flexible[k]:
            memcpy(f.modal[k].state, f.start_modes[k], f.modal[k].state_size)
            s.port[k] = f.start.port[k]
    place_ports(f)
    # the bodies from the pose of the deformed ports
    bent.active.X_port = s.port[ACTIVE].X
    bent.target.X_port = s.port[TARGET].X
    start_from_relative(&bent, &s.rigid, o.X_TA_measured, o.V_TA_measured)
    # what the rates of the deformation add to the twist is taken off
    put_pose(body_pose(&s.rigid.active), o.X_NC)
    put_twist(body_twist(&s.rigid.active), o.V_NC)
    put_pose(body_pose(&s.rigid.target), o.X_NV)
    put_twist(body_twist(&s.rigid.target), o.V_NV)
    relative_motion(f, o, X_TA, V_TA)
    for i in range(6):
        V_TA[i] = 2.0 * o.V_TA_measured[i] - V_TA[i]
    start_from_relative(&bent, &s.rigid, o.X_TA_measured, V_TA)
    memcpy(s.rigid.V_TA, o.V_TA_measured, sizeof(s.rigid.V_TA))
    report(f.rigid, &s.rigid, o)


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef FlexSelf *f = <FlexSelf *>self
    cdef FlexState *s = f.state
    cdef FlexibleRecord *record = <FlexibleRecord *>aux
    cdef double F_T0[6]
    cdef int i
    cdef int n = sample.periods if sample.periods > 1 else 1
    if not (f.flexible[ACTIVE] or f.flexible[TARGET]):
        advance(f.rigid, &s.rigid, sample, sample.F_T_corrected)
        return
    if sample.motion == MOTION_FREE:
        put_wrench(wrench_at_undeformed(f, wrench(sample.F_T_corrected)), F_T0)
        bend(f, sample.F_T_corrected, sample.thruster_A, sample.thruster_T, n)
        advance(f.rigid, &s.rigid, sample, F_T0)
        relative_motion(f, sample, sample.X_TA, sample.V_TA)
        for i in range(6):
            sample.A_TA[i] = (sample.V_TA[i] - s.V_TA[i]) / (n * f.rigid.period)
    else:
        if sample.motion == MOTION_CLOSE_LOOP or sample.motion == MOTION_FOLLOW_PROFILE:
            straighten(f)
        elif sample.motion == MOTION_JOINED:
            for i in range(6):
                s.port[ACTIVE].rate[i] = 0.0
                s.port[TARGET].rate[i] = 0.0
            place_ports(f)
        advance(f.rigid, &s.rigid, sample, sample.F_T_corrected)
        if sample.motion == MOTION_CLOSE_LOOP and (f.start.bent[ACTIVE] or f.start.bent[TARGET]):
            start_bent(f, sample)
        if sample.motion == MOTION_JOINED:
            # the pose in which they were joined, deformation included; one body, so no relative twist
            relative_motion(f, sample, sample.X_TA, F_T0)
    s.X_TA = pose(sample.X_TA)
    memcpy(s.V_TA, sample.V_TA, sizeof(s.V_TA))
    memcpy(record.active_port_displacement, s.port[ACTIVE].displacement, 6 * sizeof(double))
    memcpy(record.active_port_rate, s.port[ACTIVE].rate, 6 * sizeof(double))
    memcpy(record.target_port_displacement, s.port[TARGET].displacement, 6 * sizeof(double))
    memcpy(record.target_port_rate, s.port[TARGET].rate, 6 * sizeof(double))


cdef size_t coefficients_size(const Modal *modal) noexcept:
    """Bytes of the coefficients for one step size."""
    return modal.n_blocks * (MODAL_COEFFICIENTS + modal.n_loads) * MODAL_LANES * sizeof(double)


cdef void fill_port(Port *port, ModalCraft craft) except *:
    """Displacement and rate of the port in the craft's present state."""
    cdef int i
    displacement, rate = craft.port()
    for i in range(6):
        port.displacement[i], port.rate[i] = displacement[i], rate[i]


cdef list _numbers(const double *at, size_t size):
    cdef size_t i
    return [at[i] for i in range(size // sizeof(double))]


# the rigid part is always symplectic here
OWN_PARAMETERS = tuple(p for p in TwoBodies.PARAMETERS if p.key != "integrator")


cdef class TwoBodiesFlexible(TwoBodies):
    """Dynamics of two free spacecraft, each rigid or with modes.

    A vehicle's `modal` is None, or a function that gives its `ModalCraft` for a pair of step sizes [s]; the state that it has is how its
    modes begin when the loop is closed. Raises ValueError for an
    impossible mass, inertia or modal table, and for more than 64 load components.
    """

    PARAMETERS = OWN_PARAMETERS
    AUX = AUX
    FLIES = ("thrusters", "modes at its port")
    cdef FlexSelf f
    cdef size_t _start_size
    cdef object _keep

    def __init__(self, *, period_s, vehicles, start, orbit=None, **given):
        super().__init__(period_s=period_s, vehicles=vehicles, start=start, orbit=orbit,
                         **checked(TwoBodiesFlexible.PARAMETERS, given))
        cdef ModalCraft craft
        cdef int k
        crafts = []
        for vehicle in (vehicles.active, vehicles.target):
            crafts.append(vehicle.modal((period_s, period_s)) if vehicle.modal is not None else None)
        # one block: rigid state, then the modes, each on a cache line
        cdef Py_ssize_t size = (sizeof(FlexState) // 8 + LINE - 1) // LINE * LINE
        modes = sum((<ModalCraft?> c).modal.state_size for c in crafts if c is not None) // 8
        raw = np.zeros(size + modes + LINE)
        block = raw[(-raw.ctypes.data // 8) % LINE:][:size + modes]
        cdef double[::1] memory = block
        # and another one: how the modes begin
        cdef Py_ssize_t start_size = (sizeof(FlexStart) + 7) // 8
        begin = np.zeros(start_size + modes)
        cdef double[::1] start_memory = begin
        self._keep = (raw, block, crafts, begin)
        self.f.rigid = &self.c.params
        self.f.state = <FlexState *>&memory[0]
        self.f.state.rigid = self.c.state
        self.f.start = <FlexStart *>&start_memory[0]
        self._start_size = begin.nbytes
        self.f.state.X_TA = pose_of(xyz(0.0, 0.0, 0.0), xyzw(0.0, 0.0, 0.0, 1.0))
        cdef Py_ssize_t at = size
        for k in range(2):
            self.f.flexible[k] = crafts[k] is not None
            if crafts[k] is None:
                continue
            craft = crafts[k]
            if craft.n_loads > LOADS_MAX:
                raise ValueError(f"{('active', 'target')[k]} vehicle: modal.further_loads: {craft.n_loads} load components, "
                                 f"at most {LOADS_MAX}")
            self.f.modal[k] = craft.modal
            self.f.n_thrusters[k] = craft.n_thrusters
            if craft.n_thrusters > THRUSTERS_MAX:
                raise ValueError(f"{('active', 'target')[k]} vehicle: modal.thruster_nodes: {craft.n_thrusters} nodes, "
                                 f"at most {THRUSTERS_MAX}")
            self.f.start_modes[k] = &start_memory[start_size + at - size]
            memcpy(self.f.start_modes[k], craft.modal.state, craft.modal.state_size)
            fill_port(&self.f.start.port[k], craft)
            self.f.start.bent[k] = bool(np.any(craft.q) or np.any(craft.q_rate))
            self.f.modal[k].state = &memory[at]
            at += craft.modal.state_size // 8
        straighten(&self.f)
        self.plug.self = &self.f
        self.plug.self_size = 0
        self.plug.state = self.f.state
        self.plug.state_size = 8 * (size + modes)
        self.plug.step = step

    def dump(self):
        """Constants of the rigid bodies, the state, how the modes begin, and the coefficients of the modes (both step sizes): exp and sin
        of another machine's mathematics library may make others of the same modal data."""
        cdef size_t address
        out = []
        for where, size in self._pieces():
            address = where
            out.append((<char *>address)[:size])
        return b"".join(out)

    def state_fields(self):
        return (found := self.fields())["state"] | {"modes": [mode["state"] for mode in found["modes"]]}

    def state_bounds(self):
        return {"rigid.joined": FLAG}

    def fields(self):
        cdef int k, which
        modes = []
        for k in range(2):
            if not self.f.flexible[k]:
                continue
            modal = {"state": _numbers(self.f.modal[k].state, self.f.modal[k].state_size),
                     "start": _numbers(self.f.start_modes[k], self.f.modal[k].state_size)}
            for which in range(2):
                modal[f"coefficients_{which}"] = _numbers(self.f.modal[k].coefficients[which], coefficients_size(&self.f.modal[k]))
            modes.append(modal)
        return {"rigid": self.f.rigid[0], "state": self.f.state[0], "start": self.f.start[0], "modes": modes}

    def load_unchecked(self, bytes block):
        """Raises ValueError when the block is that of other modes."""
        cdef size_t address
        pieces = self._pieces()
        needed = sum(size for _, size in pieces)
        if len(block) != needed:
            raise ValueError(f"block has {len(block)} bytes, this part has {needed}: other modes")
        at = 0
        for where, size in pieces:
            address = where
            part = block[at:at + size]
            memcpy(<void *>address, <char *>part, size)
            at += size

    def _pieces(self):
        """(address, bytes) of everything that decides what a step computes."""
        cdef int k, which
        cdef Modal *modal
        pieces = [(<size_t>self.f.rigid, sizeof(Params)), (<size_t>self.plug.state, self.plug.state_size),
                  (<size_t>self.f.start, self._start_size)]
        for k in range(2):
            modal = &self.f.modal[k]
            for which in range(2 if self.f.flexible[k] else 0):
                pieces.append((<size_t>modal.coefficients[which], coefficients_size(modal)))
        return pieces
