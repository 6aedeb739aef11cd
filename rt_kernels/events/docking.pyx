"""Events of a docking from the mechanism's signals and the measured wrench (Yaskevich 2020, 6.1, figure 6.1.6; sensors DK1, DSG, DK2).

Discrete signals are latched (a head may touch, lose contact and touch again; DK2 may chatter). The contact flag has hysteresis on the
force: it opens at `contact_on_n`, closes below `contact_off_n`, and not before `contact_hold_s`, so that noise cannot make it chatter.
With `every_phase` the flag tells a loaded interface in every phase, held, retreating or tripped; a contact before the test (on the way to
the start pose, in the approach) is no first contact of it, one in any phase after it is. Without, the flag is of the closed loop only.
"""

from libc.string cimport memset
from libc.stdint cimport uint32_t

from rt_kernels.algebra.values cimport norm, vec
from rt_kernels.codes cimport (EVENT_BOTTOM, EVENT_CAPTURE, EVENT_COMMAND, EVENT_COMPLETE, EVENT_CONTACT_BEGIN, EVENT_CONTACT_END,
                               EVENT_FIRST_CONTACT, EVENT_HAND_CONTROLLER_STALE, EVENT_LATCH_FIRED, EVENT_START_OF_DOCKING,
                               HAND_STATUS_STALE, MECHANISM_SIGNAL_DK1, MECHANISM_SIGNAL_DK2, MECHANISM_SIGNAL_DSG,
                               MECHANISM_SIGNAL_LATCH, MECHANISM_SIGNAL_PLANES_TOGETHER, MOTION_FREE, PHASE_CLOSING, PHASE_HOLD,
                               PHASE_LATCHED)
from rt_kernels.events.docking_parameters cimport DockingEventsParameters, fill_docking_events, tune_docking_events
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample

from rt_kernels.block_check import FLAG, WORD
from rt_kernels.parameters import Parameter, Tunable, checked


cdef struct Params:
    DockingEventsParameters keys
    double period

cdef struct State:
    double below                # time for which the force has been below `off`
    uint32_t latched
    int contact
    int seen_contact
    int start_stamped

cdef struct Self:
    Params params
    State state


cdef inline bint newly(uint32_t now, uint32_t before, uint32_t mask) noexcept nogil:
    return now & mask and not before & mask


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Params *p = &(<Self *>self).params
    cdef State *s = &(<Self *>self).state
    cdef double f = norm(vec(sample.F_T))
    cdef double now = 1e-9 * <double>sample.time_ns
    cdef uint32_t before = s.latched
    # a berthing run may be held with its loop closed
    cdef bint in_loop = PHASE_CLOSING <= sample.phase <= PHASE_LATCHED or sample.phase == PHASE_HOLD and sample.motion == MOTION_FREE
    sample.events = 0
    if in_loop:
        s.latched |= sample.signal_discrete
    # contact with hysteresis in force and time
    if not in_loop and not p.keys.every_phase:
        s.contact = 0
    elif not s.contact and f > p.keys.contact_on:
        s.contact = 1
        s.below = 0.0
        sample.events |= EVENT_CONTACT_BEGIN
    elif s.contact:
        s.below = s.below + p.period * sample.periods if f < p.keys.contact_off else 0.0
        if s.below > p.keys.contact_hold:
            s.contact = 0
            sample.events |= EVENT_CONTACT_END
    # first contact: the sensor, or the force where there is no such sensor
    if (in_loop or p.keys.every_phase and sample.phase >= PHASE_CLOSING) and not s.seen_contact and (
            s.contact or s.latched & MECHANISM_SIGNAL_DK1):
        s.seen_contact = 1
        s.latched |= MECHANISM_SIGNAL_DK1
        sample.first_contact_time = now
        sample.events |= EVENT_FIRST_CONTACT
    if in_loop:
        if newly(s.latched, before, MECHANISM_SIGNAL_DSG):
            sample.capture_time = now
            sample.events |= EVENT_CAPTURE
        if newly(s.latched, before, MECHANISM_SIGNAL_DK2):
            sample.events |= EVENT_BOTTOM
        if (s.latched & MECHANISM_SIGNAL_LATCH) != (before & MECHANISM_SIGNAL_LATCH):
            sample.events |= EVENT_LATCH_FIRED
        if newly(s.latched, before, MECHANISM_SIGNAL_PLANES_TOGETHER):
            sample.events |= EVENT_COMPLETE
        # "start of docking": captured and on the bottom
        if not s.start_stamped and s.latched & MECHANISM_SIGNAL_DSG and s.latched & MECHANISM_SIGNAL_DK2:
            s.start_stamped = 1
            sample.events |= EVENT_START_OF_DOCKING
    if sample.command_code != 0:
        sample.events |= EVENT_COMMAND
    if (sample.hand_status[0] | sample.hand_status[1]) & HAND_STATUS_STALE:
        sample.events |= EVENT_HAND_CONTROLLER_STALE
    sample.contact = s.contact
    sample.contact_time = sample.contact_time + p.period * sample.periods if s.contact else 0.0
    sample.mechanism_state = s.latched


# before the test, so that no changed threshold begins or ends a contact of it; each stays on its own side of the middle: the hysteresis
# stays whatever is changed
OUT_OF_LOOP = ("idle", "position", "approach")


cdef class DockingEvents(StagePart):
    """Events of a docking run."""

    PARAMETERS = (
        Parameter("contact_on_n", "float", "N", "force above which there is contact", 20.0, low=0.0, high=1e6,
                  tunable=Tunable(100.0, OUT_OF_LOOP, of_configured=2.0, above="contact_off_n")),
        Parameter("contact_off_n", "float", "N", "force below which contact may end", 10.0, low=0.0, high=1e6,
                  tunable=Tunable(100.0, OUT_OF_LOOP, below="contact_on_n")),
        Parameter("contact_hold_s", "float", "s", "time below contact_off_n after which contact has ended", 0.005, low=0.0, high=10.0,
                  tunable=Tunable(0.5, OUT_OF_LOOP)),
        Parameter("every_phase", "bool", "-", "contact is reported in every phase; false: in the closed loop only", True),
    )
    CONTEXT = ("period_s",)
    cdef Self c

    def __init__(self, *, period_s, **given):
        keys = checked(DockingEvents.PARAMETERS, given)
        if keys["contact_off_n"] > keys["contact_on_n"]:
            raise ValueError(f"events.contact_off_n: {keys['contact_off_n']} N must not be above contact_on_n, "
                             f"{keys['contact_on_n']} N")
        memset(&self.c, 0, sizeof(Self))
        fill_docking_events(&self.c.params.keys, keys)
        self.c.params.period = period_s
        self.plug.self = &self.c
        self.plug.self_size = sizeof(Self)
        self.plug.state = &self.c.state
        self.plug.state_size = sizeof(State)
        self.plug.step = step
        tune_docking_events(self, &self.c.params.keys, keys)

    def state_bounds(self):
        return {"latched": WORD, "contact": FLAG, "seen_contact": FLAG, "start_stamped": FLAG}

    def fields(self):
        return self.c
