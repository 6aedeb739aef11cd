"""Two compensators, one for free motion and one for contact, and a change between them without a step.

Both run at every tick, so that neither starts cold; what goes out is (1 - w) of the free one and w of the contact one, and w moves
between 0 and 1 in `blend_s` (at once with 0), along 3 w^2 - 2 w^3. The contact one is in charge while the event detector reports a contact
and for `hold_s` after it. The command `set_compensator` overrides this: argument 0 by phase, 1 the free one, 2 the contact one.

The parts keep their constants and state inside this part's block, so that a snapshot is still one copy; a part whose block is not flat
(self_size 0: it has pointers) cannot be kept so and is refused. Their functions and where the second one lies stand in front of the block:
a function's address means nothing to another process, and an offset out of a file would be followed anywhere. Auxiliary channels:
those of the part in free motion, then those of the one in contact.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from rt_kernels.codes cimport COMMAND_SET_COMPENSATOR
from rt_kernels.compensation.phased_parameters cimport PhasedParameters, fill_phased, tune_phased
from rt_kernels.plugs cimport StagePart
from rt_kernels.sample cimport Sample


from dataclasses import replace

from rt_kernels.block_check import as_built, under
from rt_kernels.parameters import Aux, Command, Parameter, Tunable, checked

ctypedef void (*Step)(void *self, Sample *sample, double *aux) noexcept nogil

cdef struct Front:
    Step free
    Step contact
    size_t contact_offset       # of the contact part's block from the free part's
    size_t contact_aux          # of its first auxiliary channel

cdef struct Block:
    double period
    PhasedParameters keys
    double loop_delay
    double w                    # state from here on
    double since_contact
    int choice
    int unused

cdef struct Output:
    double F_T[6]
    double lead[3]
    double offset[6]
    double offset_rate[6]
    double leg_offset[6]
    uint32_t status


cdef inline void take(Step part_step, void *part, Sample *o, double *aux, Output *out) noexcept nogil:
    """One part's step. What it does not write is zero, not what the other one wrote."""
    memset(o.lead_offset_rate, 0, sizeof(o.lead_offset_rate))
    memset(o.leg_offset, 0, sizeof(o.leg_offset))
    part_step(part, o, aux)
    memcpy(out.F_T, o.F_T_corrected, sizeof(out.F_T))
    memcpy(out.lead, o.lead, sizeof(out.lead))
    memcpy(out.offset, o.lead_offset, sizeof(out.offset))
    memcpy(out.offset_rate, o.lead_offset_rate, sizeof(out.offset_rate))
    memcpy(out.leg_offset, o.leg_offset, sizeof(out.leg_offset))
    out.status = o.compensation_status


cdef inline bint contact_in_charge(Block *b, const Sample *o, double dt) noexcept nogil:
    b.since_contact = 0.0 if o.contact else b.since_contact + dt
    if b.choice:
        return b.choice == 2
    return b.since_contact <= b.keys.hold


cdef void step(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef const Front *front = <const Front *>self - 1
    cdef Block *b = <Block *>self
    cdef char *parts = <char *>self + sizeof(Block)
    cdef double dt = b.period * sample.periods
    cdef double change = dt / b.keys.blend if b.keys.blend > 0.0 else 1.0
    cdef Output free
    cdef Output contact
    cdef double k
    cdef int i
    if sample.command_code == COMMAND_SET_COMPENSATOR and 0.0 <= sample.command_arg[0] <= 2.0:
        b.choice = <int>sample.command_arg[0]
    take(front.free, parts, sample, aux, &free)
    take(front.contact, parts + front.contact_offset, sample, aux + front.contact_aux, &contact)
    # the weight of the contact part
    b.w += change if contact_in_charge(b, sample, dt) else -change
    b.w = 0.0 if b.w < 0.0 else (1.0 if b.w > 1.0 else b.w)
    k = b.w * b.w * (3.0 - 2.0 * b.w)
    for i in range(6):
        sample.F_T_corrected[i] = free.F_T[i] + k * (contact.F_T[i] - free.F_T[i])
        sample.lead_offset[i] = free.offset[i] + k * (contact.offset[i] - free.offset[i])
        sample.lead_offset_rate[i] = free.offset_rate[i] + k * (contact.offset_rate[i] - free.offset_rate[i])
        sample.leg_offset[i] = free.leg_offset[i] + k * (contact.leg_offset[i] - free.leg_offset[i])
    for i in range(3):
        sample.lead[i] = free.lead[i] + k * (contact.lead[i] - free.lead[i])
    sample.compensation_status = contact.status if k >= 0.5 else free.status
    sample.loop_delay = b.loop_delay


WHERE = {"free": "free motion", "contact": "contact"}


def build(role, table, context):
    """The part that `table` names, with the context it asks for. Raises ValueError with the key's path."""
    keys = dict(table)
    name = keys.pop("part", None)
    try:
        part = context["part_of"]("compensation", name)
    except LookupError as error:
        raise ValueError(f"compensation.{role}.part: {error}") from None
    if issubclass(part, Phased):
        raise ValueError(f"compensation.{role}.part: {name!r} changes between two parts itself; limit a part that does not")
    keys = checked(part.PARAMETERS, keys, f"compensation.{role}")
    try:
        built = part(**keys, **{wanted: context[wanted] for wanted in part.CONTEXT})
    except (ValueError, TypeError) as error:
        raise ValueError(f"compensation.{role}: {error}") from error
    if (<StagePart?>built).plug.self_size == 0:
        raise ValueError(f"compensation.{role}.part: {name!r} keeps pointers in its state (self_size 0); limit a part with one flat block")
    return built


def channels(role, part):
    """The part's auxiliary channels under the role's name."""
    return tuple(Aux(f"{role}.{a.name}", a.unit, f"compensator in {WHERE[role]}: {a.meaning}", a.count) for a in part.AUX)


cdef object described(StagePart part, const char *block):
    """Fields of a part as they stand in this part's block."""
    cdef bytes held = block[:part.plug.self_size]
    part.load_unchecked(held)
    found = part.fields()
    return held if found is None else found


cdef class Phased(StagePart):
    """Changes between two compensators with the phase. Raises ValueError for an unknown part or key of either."""

    PARAMETERS = (
        Parameter("free", "table", "-", "compensator in free motion: part = name, and its keys", {"part": "phase_lead"}),
        Parameter("contact", "table", "-", "compensator in contact: part = name, and its keys"),
        Parameter("blend_s", "float", "s", "the change from one to the other takes this long", 0.02, low=0.0, high=10.0,
                  tunable=Tunable(0.5, low=0.005)),
        Parameter("hold_s", "float", "s", "the contact compensator stays this long after a contact", 0.05, low=0.0, high=10.0,
                  tunable=Tunable(0.5)),
    )
    COMMANDS = (Command("set_compensator", numbers=(0, 1, 2)),)
    CONTEXT = ("period_s", "delays", "vehicles", "start", "platform", "mounting", "stand_model", "part_of")
    cdef char *memory
    cdef StagePart first        # the two parts: what they know of their own blocks
    cdef StagePart second
    cdef size_t offset          # of the contact part's block from the free part's
    cdef tuple declared
    cdef dict _as_built         # of the constants

    @property
    def AUX(self):
        """Those of both parts, the one in free motion first."""
        return self.declared

    def __cinit__(self):
        self.memory = NULL
        self.declared = ()

    def __init__(self, **given):
        context = {wanted: given.pop(wanted) for wanted in self.CONTEXT}
        keys = checked(Phased.PARAMETERS, given)
        cdef StagePart first = build("free", keys["free"], context)
        cdef StagePart second = build("contact", keys["contact"], context)
        # constants and state of both, on multiples of 16 bytes
        cdef size_t size_first = (first.plug.self_size + 15) & ~<size_t>15
        cdef size_t size = sizeof(Block) + size_first + second.plug.self_size
        cdef Front *front
        cdef Block *b
        if self.memory != NULL:
            raise ValueError("compensation.phased: built already")
        self.memory = <char *>PyMem_Malloc(sizeof(Front) + size)
        if self.memory == NULL:
            raise MemoryError()
        memset(self.memory, 0, sizeof(Front) + size)
        front = <Front *>self.memory
        front.free, front.contact, front.contact_offset = first.plug.step, second.plug.step, size_first
        b = <Block *>(front + 1)
        self.declared = channels("free", first) + channels("contact", second)
        front.contact_aux = sum(channel.count for channel in first.AUX)
        fill_phased(&b.keys, keys)
        b.period, b.loop_delay = context["period_s"], context["delays"].total_s
        b.since_contact = 1e30
        memcpy(<char *>(b + 1), first.plug.self, first.plug.self_size)
        memcpy(<char *>(b + 1) + size_first, second.plug.self, second.plug.self_size)
        self.plug.self = b
        self.plug.self_size = size
        self.plug.state = b
        self.plug.state_size = size
        self.plug.step = step
        self.first, self.second, self.offset = first, second, size_first
        tune_phased(self, &b.keys, keys)
        # those of the parts, in the copies of their blocks
        self.tunables += [replace(one, name=f"free.{one.name}", offset=sizeof(Block) + one.offset) for one in first.tunables]
        self.tunables += [replace(one, name=f"contact.{one.name}", offset=sizeof(Block) + size_first + one.offset)
                          for one in second.tunables]
        self._as_built = as_built(self.fields())

    def state_fields(self):
        return self.fields()  # a checkpoint has the constants of both parts, too

    def state_bounds(self):
        return (self._as_built | {"choice": (0, 2)} | under("free.state", self.first.state_bounds())
                | under("contact.state", self.second.state_bounds()))

    def fields(self):
        cdef Block *b = <Block *>self.plug.self
        cdef const char *parts = <const char *>(b + 1)
        return {**b[0], "free": described(self.first, parts), "contact": described(self.second, parts + self.offset)}

    def __dealloc__(self):
        PyMem_Free(self.memory)
