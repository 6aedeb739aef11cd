"""The log as a port: `read` puts the recorded inputs of a tick into the sample, `write` compares everything with the record, byte by byte.

For a recording from elsewhere, which has no legs, the port can be an ideal stand beside it (`ideal_stand`): the measured legs of a tick are
the demanded ones of the tick before. The log that is made of such a run holds them as inputs, like any other.

Nothing has a tolerance. The first tick that differs is kept as it was computed, so that the caller can name the channel; the comparison
continues and counts. `record_crc` is written by the telemetry process and is not compared.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from rt_kernels.plugs cimport Port, PortPart
from rt_kernels.sample cimport Sample

from rt_kernels.layout import FIELDS, SAMPLE_DTYPE

cdef enum:
    MAX_RUNS = 64

# neighbouring input fields of the struct, copied in one go
cdef struct Run:
    int64_t offset
    int64_t size

cdef struct Self:
    const unsigned char *records
    int64_t record_size
    int64_t count
    int64_t input_aux           # auxiliary channels of the original ports: inputs too
    int64_t all_aux
    double *line_aux            # auxiliary channels of this line, those of the ports first
    Run run[64]
    int run_count
    Run absent[64]              # fields that the log does not have: not compared
    int absent_count
    int64_t next                # record to be read
    int64_t differing
    int64_t first               # record that differs first, -1: none
    int64_t from_record
    int64_t to_record
    double period_s             # of an ideal stand's legs, 0: the recorded legs are taken


cdef void follow_demand(const Self *p, Sample *sample) noexcept nogil:
    """Legs of an ideal stand: where the tick before wanted them. The rate is that of their lengths."""
    cdef double before
    cdef int i
    for i in range(6):
        before = sample.measured_leg[i]
        sample.measured_leg[i] = sample.leg_demand[i]
        sample.measured_leg_rate[i] = (sample.leg_demand[i] - before) / (p.period_s * sample.periods)


cdef void read(void *self, Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef const unsigned char *record
    cdef double legs[6]
    cdef int i
    if p.next >= p.count:
        return
    record = p.records + p.next * p.record_size
    memcpy(legs, sample.measured_leg, sizeof(legs))
    for i in range(p.run_count):
        memcpy(<unsigned char *>sample + p.run[i].offset, record + p.run[i].offset, p.run[i].size)
    if p.period_s > 0.0 and p.next > 0:
        memcpy(sample.measured_leg, legs, sizeof(legs))
        follow_demand(p, sample)
    if p.input_aux:
        memcpy(aux, record + sizeof(Sample), p.input_aux * sizeof(double))


cdef void write(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Self *p = <Self *>self
    cdef const unsigned char *record
    cdef Sample computed
    cdef bint same
    cdef int i
    if p.next >= p.count:
        return
    record = p.records + p.next * p.record_size
    computed = sample[0]
    computed.record_crc = (<const Sample *>record).record_crc
    for i in range(p.absent_count):
        memcpy(<unsigned char *>&computed + p.absent[i].offset, record + p.absent[i].offset, p.absent[i].size)
    same = memcmp(&computed, record, sizeof(Sample)) == 0
    if same and p.line_aux != NULL and p.all_aux:
        same = memcmp(p.line_aux, record + sizeof(Sample), p.all_aux * sizeof(double)) == 0
    if not same and p.from_record <= p.next < p.to_record:
        p.differing += 1
        if p.first < 0:
            p.first = p.next
    p.next += 1


def runs_of(wanted):
    """(offset, size) of neighbouring fields of the sample out of a set of names."""
    runs = {}
    start, end = None, None
    for name in SAMPLE_DTYPE.names:
        if name not in wanted:
            continue
        dtype, offset = SAMPLE_DTYPE.fields[name][:2]
        if offset != end:
            start = offset
        end = offset + dtype.itemsize
        runs[start] = end - start
    return sorted(runs.items())


cdef class LogPort(PortPart):
    """records: contiguous structured array of the log; input_aux: declared auxiliary channels of the ports that were logged.
    from_record, to_record: only these are compared. ideal_stand: period in s at which the legs are where the line wants them, from the
    second record on, 0: they are as recorded. absent: names of fields that the log does not have, not compared."""

    cdef Self c
    cdef object _records
    cdef object _keep
    cdef readonly tuple channels

    def __init__(self, records, input_aux=(), int64_t from_record=0, to_record=None, double ideal_stand=0.0,
                 absent=()):
        cdef int i
        memset(&self.c, 0, sizeof(Self))
        self._records = np.ascontiguousarray(records)
        cdef const unsigned char[::1] view = self._records.view(np.uint8).reshape(-1)
        self.channels = tuple(input_aux)
        self.c.records = &view[0]
        self.c.record_size = self._records.dtype.itemsize
        self.c.count = len(self._records)
        self.c.input_aux = sum(channel.count for channel in self.channels)
        self.c.first = -1
        self.c.period_s = ideal_stand
        self.c.from_record = from_record
        self.c.to_record = len(self._records) if to_record is None else to_record
        runs = runs_of({f[0] for f in FIELDS if f[6] == "input"} - set(absent))
        unknown = runs_of(set(absent))
        if max(len(runs), len(unknown)) > MAX_RUNS:
            raise ValueError(f"{len(runs)} runs of input fields and {len(unknown)} of absent ones, room for {MAX_RUNS} each")
        self.c.run_count, self.c.absent_count = len(runs), len(unknown)
        for i in range(len(runs)):
            self.c.run[i].offset, self.c.run[i].size = runs[i]
        for i in range(len(unknown)):
            self.c.absent[i].offset, self.c.absent[i].size = unknown[i]
        self.plug.self = &self.c
        self.plug.read = read
        self.plug.write = write

    @property
    def AUX(self):
        return self.channels

    def watch(self, double[::1] line_aux, int64_t all_aux):
        """Compares the line's auxiliary channels too. line_aux: the line's own array, alive as long as this port."""
        self._keep = line_aux
        self.c.line_aux = &line_aux[0] if all_aux else NULL
        self.c.all_aux = all_aux

    @property
    def compared(self):
        return self.c.next

    @property
    def differing(self):
        """Records that are not equal, within the compared window."""
        return self.c.differing

    @property
    def first(self):
        """Index of the first record that differs, or None."""
        return None if self.c.first < 0 else self.c.first


# ------------------------------------------------------------------------------------------- commands from outside of a simulation

cdef struct Given:
    Port inner                  # the port of the commands as the configuration has it
    const unsigned char *records
    int64_t record_size
    int64_t count


cdef void read_given(void *self, Sample *sample, double *aux) noexcept nogil:
    """The configured commands, and over them the logged ones of this tick: binary search, for a branch may start at any tick."""
    cdef Given *p = <Given *>self
    cdef const Sample *logged
    cdef int64_t low = 0, high = p.count, middle
    p.inner.read(p.inner.self, sample, aux)
    while low < high:
        middle = (low + high) // 2
        if (<const Sample *>(p.records + middle * p.record_size)).tick < sample.tick:
            low = middle + 1
        else:
            high = middle
    if low < p.count:
        logged = <const Sample *>(p.records + low * p.record_size)
        if logged.tick == sample.tick:
            sample.command_code = logged.command_code
            sample.command_sequence = logged.command_sequence
            memcpy(sample.command_arg, logged.command_arg, sizeof(sample.command_arg))


cdef void write_given(void *self, const Sample *sample, double *aux) noexcept nogil:
    cdef Given *p = <Given *>self
    p.inner.write(p.inner.self, sample, aux)


cdef class GivenCommands(PortPart):
    """The commands port of a simulation that runs again, with the commands that it was given from outside (Ctrl-C, a client).

    commands: the port as the configuration has it; records: structured array of the log's records with a command, in order of tick.
    Its state is that of `commands`."""

    cdef Given c
    cdef readonly PortPart commands
    cdef object _records

    def __init__(self, PortPart commands, records):
        self._records = np.ascontiguousarray(records)
        cdef const unsigned char[::1] view = self._records.view(np.uint8).reshape(-1)
        self.commands = commands
        self.c.inner = commands.plug
        self.c.count = len(self._records)
        self.c.records = &view[0] if self.c.count else NULL
        self.c.record_size = self._records.dtype.itemsize
        self.plug = commands.plug
        self.plug.self = &self.c
        self.plug.read = read_given
        self.plug.write = write_given
        self.plug.leave = NULL

    @property
    def AUX(self):
        return self.commands.AUX

    @property
    def COMMANDS(self):
        return self.commands.COMMANDS

    @property
    def inner(self):
        return self.commands.inner

    def state_fields(self):
        return self.commands.state_fields()

    def state_bounds(self):
        return self.commands.state_bounds()
