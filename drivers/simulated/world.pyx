# distutils: extra_compile_args = -O2
"""A world in which the live system runs in virtual time: its clock, tasks and wires (world_tasks.h), for the doors of rt_kernels.

One world at a time in a process. `begin` makes the calling thread its first task; from then on everything compiled that asks for the time,
waits, sends or receives does it here (rt_kernels/doors.h), until `end`.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import os

import numpy as np

cdef extern from "drivers/simulated/world_tasks.h":
    enum:
        WORLD_FIRST_FD
        WORLD_WATCHED
        EVENT_LOSS
        EVENT_DELAY
        EVENT_REPEAT
        EVENT_REORDER
        EVENT_TRUNCATE
        EVENT_CORRUPT
        EVENT_STALL

    struct pollfd:
        int fd
        short events
        short revents

    ctypedef struct WorldEvent:
        int64_t from_ns, until_ns
        double share
        int64_t amount
        int32_t kind, wire, direction, done

    ctypedef struct WorldTurn:
        int64_t at_ns
        int32_t task
        int32_t from_ "from"

    ctypedef struct WorldFrame:
        int64_t at_ns

    ctypedef struct WorldAxes:
        int32_t image, counter
        int32_t out[6]
        int32_t into "in"[6]

    void world_begin(uint64_t seed, int64_t start_ns) noexcept nogil
    void world_end() noexcept nogil
    void world_aside(int aside) noexcept nogil
    int64_t world_now() noexcept nogil
    int64_t world_clock_ns(int wall) noexcept nogil
    int world_waiting(int fd) noexcept nogil
    void world_step_wall(int64_t by_ns) noexcept nogil
    int world_new_task(int role) noexcept nogil
    void world_enter(int task) noexcept nogil
    void world_leave() noexcept nogil
    int world_current() noexcept nogil
    int world_task_ended(int task) noexcept nogil
    void world_kill(int task) noexcept nogil
    int world_killed() noexcept nogil
    int world_stuck() noexcept nogil
    void world_set_limit(int64_t until_ns) noexcept nogil
    int world_wait(int64_t due_ns, int64_t key) noexcept nogil
    void world_wake(int64_t key) noexcept nogil
    int world_socket() noexcept nogil
    int world_bind(int fd, int port) noexcept nogil
    int world_connect(int fd, int port) noexcept nogil
    int world_port(int fd) noexcept nogil
    void world_pair(int fd, int other) noexcept nogil
    void world_close(int fd) noexcept nogil
    int world_open_sockets() noexcept nogil
    void world_label(int fd, int wire, int direction) noexcept nogil
    void world_raw(int fd, int wire, int direction) noexcept nogil
    void world_take_above(int fd, int place, int least) noexcept nogil
    void world_watch_axes(const WorldAxes *axes) noexcept nogil
    int world_send(int fd, const void *data, int size, int port) noexcept nogil
    int world_receive(int fd, void *data, int size, int *port, int64_t *came_ns) noexcept nogil
    int world_wait_readable(pollfd *fds, int count, int64_t timeout_ns) noexcept nogil
    int world_add_event(const WorldEvent *event) noexcept nogil
    void world_arm() noexcept nogil
    int64_t world_event_happened(int number) noexcept nogil
    void world_keep_turns(WorldTurn *turns, int64_t room) noexcept nogil
    int64_t world_turns() noexcept nogil
    void world_keep_frames(WorldFrame *frames, int64_t room) noexcept nogil
    int64_t world_frames() noexcept nogil
    int64_t world_armed() noexcept nogil

cdef extern from "<stdint.h>":
    const int64_t NEVER "INT64_MAX"

FIRST_FD, NEVER_NS = WORLD_FIRST_FD, NEVER
EVENTS = {"loss": EVENT_LOSS, "delay": EVENT_DELAY, "repeat": EVENT_REPEAT, "reorder": EVENT_REORDER, "truncate": EVENT_TRUNCATE,
          "corrupt": EVENT_CORRUPT, "stall": EVENT_STALL}
TURN = np.dtype([("at_ns", "<i8"), ("task", "<i4"), ("from", "<i4")])
FRAME = np.dtype([("at_ns", "<i8"), ("id", "<u4"), ("wire", "u1"), ("length", "u1"), ("heard", "u1"), ("role", "i1"),
                  ("data", "u1", 8)])
_turns = np.zeros(0, TURN)
_frames = np.zeros(0, FRAME)


class Killed(BaseException):
    """The task that waits was killed: it unwinds and ends."""


def begin(uint64_t seed, int64_t start_ns=1_000_000_000_000):
    """Begins a world; the calling thread is its task 0."""
    world_begin(seed, start_ns)


def end():
    """The operating system is behind the doors again. Call when all other tasks have ended."""
    world_end()


def aside(bint aside):
    """The operating system is behind the doors while the calling task computes what takes no world time; all other tasks wait."""
    world_aside(aside)


def now_ns():
    """World time, CLOCK_MONOTONIC."""
    return world_now()


def read_ns(bint wall=False):
    """A reading of the clock, which takes a moment of world time: CLOCK_MONOTONIC, or the time of day."""
    return world_clock_ns(wall)


def step_wall(int64_t by_ns):
    """The time of day jumps."""
    world_step_wall(by_ns)


def new_task(int role=-1):
    """Number of a new task, which is due at once; a thread becomes it by `enter`. role: by which events name it. Raises RuntimeError when
    there are too many."""
    cdef int task = world_new_task(role)
    if task < 0:
        raise RuntimeError("world: too many tasks")
    return task


def enter(int task):
    """The calling thread is this task from now on; returns when it is its turn. Raises Killed."""
    with nogil:
        world_enter(task)
    if world_killed():
        raise Killed


def leave():
    """The calling task has ended."""
    with nogil:
        world_leave()


def current():
    """Number of the calling task, -1 outside."""
    return world_current()


def ended(int task):
    """Whether a task has ended."""
    return bool(world_task_ended(task))


def kill(int task):
    """Each wait of this task raises Killed from now on (one of a compiled loop returns at once)."""
    world_kill(task)


def stuck():
    """Whether there was a moment at which no task was due ever again."""
    return bool(world_stuck())


def limit(int64_t until_ns):
    """Who waits beyond this time is killed."""
    world_set_limit(until_ns)


def wait(int64_t due_ns=NEVER, int64_t key=0):
    """Waits until `due_ns` (world time) or until somebody wakes `key`; whether somebody did. Raises Killed."""
    cdef int woken
    with nogil:
        woken = world_wait(due_ns, key)
    if woken < 0:
        raise Killed
    return bool(woken)


def wake(int64_t key):
    """Those who wait for this key are due now."""
    world_wake(key)


def ending_of(int task):
    """The key that is woken when a task ends."""
    return -1 - task


def socket():
    """A descriptor of the world. Raises OSError when there are too many."""
    cdef int fd = world_socket()
    if fd < 0:
        raise OSError("world: too many sockets")
    return fd


cdef int checked(int result) except -1:
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


def bind(int fd, int port):
    """Gives the socket a port (0: any) and returns it. Raises OSError."""
    return checked(world_bind(fd, port))


def connect(int fd, int port):
    """What is sent goes to that port, what comes from elsewhere is not heard. Raises OSError."""
    return checked(world_connect(fd, port))


def port_of(int fd):
    """Its port, 0: none yet."""
    return checked(world_port(fd))


def pair(int fd, int other):
    """What is sent on one comes in at the other, at once and whole."""
    world_pair(fd, other)


def close(int fd):
    """What waits on it is gone."""
    world_close(fd)


def open_sockets():
    """How many there are."""
    return world_open_sockets()


def label(int fd, int wire, int direction):
    """What this socket sends goes by that wire: 0 to the device, 1 from it."""
    world_label(fd, wire, direction)


def raw(int fd, int wire, int direction):
    """Makes it a raw socket at one end of a wire (direction as of `label`): what it sends comes to all at the other end."""
    world_raw(fd, wire, direction)


def take_above(int fd, int place, int least):
    """A raw socket takes only frames whose byte at `place` is at least this."""
    world_take_above(fd, place, least)


def watch_axes(int image, int counter, outputs, inputs):
    """EtherCAT frames are noted as the six of their axes. image: bytes of the process data, whose working counter is to be `counter`;
    outputs, inputs: places of the six axes in them."""
    cdef WorldAxes axes
    axes.image, axes.counter = image, counter
    for i in range(6):
        axes.out[i], axes.into[i] = outputs[i], inputs[i]
    world_watch_axes(&axes)


def send(int fd, const uint8_t[::1] data, int port=0):
    """Sends one message, to a port or where the socket is connected to. Raises OSError."""
    return checked(world_send(fd, &data[0] if data.shape[0] else NULL, <int>data.shape[0], port))


def waiting(int fd):
    """Bytes of the message that comes next. Raises BlockingIOError when there is none, OSError."""
    return checked(world_waiting(fd))


def receive(int fd, int most=65536):
    """(message, port of its sender) that came first; at most so many bytes of it, none where the other end of a pair is gone. Raises
    BlockingIOError when there is none, OSError."""
    cdef int port = 0
    cdef int size = min(checked(world_waiting(fd)), most)
    buffer = bytearray(max(1, size))
    cdef uint8_t[::1] view = buffer
    checked(world_receive(fd, &view[0], size, &port, NULL))
    return bytes(buffer[:size]), port


def wait_readable(descriptors, int64_t timeout_ns=NEVER):
    """Those of the descriptors on which something waits, after at most the time; () when nothing came. Raises Killed."""
    cdef pollfd fds[8]
    cdef int i, found, count = len(descriptors)
    if count > WORLD_WATCHED:
        raise ValueError(f"world: {count} descriptors, limit {WORLD_WATCHED}")
    for i in range(count):
        fds[i].fd = descriptors[i]
        fds[i].revents = 0
    with nogil:
        found = world_wait_readable(fds, count, timeout_ns)
    if found < 0:
        raise Killed
    return tuple(fds[i].fd for i in range(count) if fds[i].revents)


def add_event(str kind, int where, int direction, double from_s, double until_s, double share, int64_t amount):
    """Something that goes wrong: on a wire (loss, delay, repeat, reorder, truncate, corrupt) or a task (stall); times since `arm`. Returns
    its number. Raises RuntimeError when there are too many."""
    cdef WorldEvent e
    e.kind, e.wire, e.direction, e.share, e.amount, e.done = EVENTS[kind], where, direction, share, amount, 0
    e.from_ns, e.until_ns = <int64_t>(1e9 * from_s), <int64_t>(1e9 * until_s)
    cdef int number = world_add_event(&e)
    if number < 0:
        raise RuntimeError("world: too many events")
    return number


def arm():
    """The time of the events begins."""
    world_arm()


def happened(int number):
    """How often an event did something."""
    return world_event_happened(number)


def keep_turns(int64_t room):
    """Notes who got the baton when, of the next so many turns."""
    global _turns
    _turns = np.zeros(max(1, room), TURN)
    cdef uint8_t[::1] view = _turns.view(np.uint8)
    world_keep_turns(<WorldTurn *>&view[0], room)


def turns():
    """Those turns: an array of TURN."""
    return _turns[:world_turns()].copy()


def keep_frames(int64_t room):
    """Notes the next so many frames of drives and signals that the server says and hears."""
    global _frames
    _frames = np.zeros(max(1, room), FRAME)
    cdef uint8_t[::1] view = _frames.view(np.uint8)
    world_keep_frames(<WorldFrame *>&view[0], room)


def frames():
    """Those frames: an array of FRAME."""
    return _frames[:world_frames()].copy()


def armed_ns():
    """World time at which the time of the events began, -1: it has not."""
    return world_armed()
