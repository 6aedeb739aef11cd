"""What a world has behind the doors of `rt_kernels.doors`, under the names of the modules of the standard library.

A task is a thread that has the baton of `drivers.simulated.world` or waits for it; a wait here hands it over. Locks stay those of the
standard library: no task waits while it has one, but in a condition, which gives it back.
"""

import ctypes
import errno
import os
import queue
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any, Self

from drivers.simulated import world

ROLES = ("server", "loop", "stand", "telemetry", "drives keeper", "recovery", "bus", "desks")  # of tasks, as events name them
WIRES = ("drives 0", "drives 1", "drives 2", "signals", "sensor", "control")  # as events name them
# of raw sockets: name → wire, and direction of what is sent there
INTERFACES = {"master": ("drives 0", 0), "slaves": ("drives 0", 1)}
_SO_ATTACH_FILTER = 26
_keys = count(1)
_wire_of_port: dict[int, int] = {}
_loop_began: list[int] = []
_loop_ended: list[int] = []
died: list[str] = []  # tasks that ended by an error of their own
names: dict[int, str] = {}  # of tasks
children: dict[str, Any] = {}  # processes of the telemetry that are tasks, by name
tasks: list["Thread"] = []
sockets: list["Socket"] = []  # that are open
with_the_loop: list[Callable[[], None]] = []  # what begins when the loop does


def _due(timeout: float | None) -> int:
    return world.NEVER_NS if timeout is None else world.now_ns() + max(0, round(1e9 * timeout))


# --------------------------------------------------------------------------------------------------------------------- time


def monotonic() -> float:
    """Seconds of world time."""
    return float(world.read_ns() * 1e-9)


def sleep(seconds: float) -> None:
    """Hands the baton over for so long."""
    world.wait(_due(seconds))


time = SimpleNamespace(
    monotonic=monotonic, monotonic_ns=lambda: world.read_ns(), time=lambda: world.read_ns(True) * 1e-9,
    time_ns=lambda: world.read_ns(True), sleep=sleep, perf_counter=monotonic,
)  # fmt: skip


# -------------------------------------------------------------------------------------------------------------------- tasks


class Thread(threading.Thread):
    """A thread that runs when it has the baton."""

    _task = -1
    began = False  # it has had the baton
    process: Any = None  # whose thread it is, where that is a task, too; None: the server's

    def start(self) -> None:
        """The new task is due at once; the caller continues."""
        self.process = self.process or getattr(threading.current_thread(), "process", None)
        tasks.append(self)
        if self.name == "loop":
            _loop_began.append(world.now_ns())
            if world.armed_ns() < 0:
                world.arm()
            for begin in with_the_loop:
                begin()
        self._task = world.new_task(ROLES.index(self.name) if self.name in ROLES else -1)
        names[self._task] = self.name
        super().start()

    def run(self) -> None:
        """The body of the thread, between taking the baton and giving it away for good."""
        try:
            world.enter(self._task)
            self.began = True
            super().run()
        except world.Killed:
            pass
        except BaseException as error:
            died.append(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            if self.name == "loop":
                _loop_ended.append(world.now_ns())
            world.leave()

    def is_alive(self) -> bool:
        """Whether the task has not ended."""
        return self._task >= 0 and not world.ended(self._task)

    def join(self, timeout: float | None = None) -> None:
        """Waits until the task has ended."""
        due = _due(timeout)
        while not world.ended(self._task):
            if not world.wait(due, world.ending_of(self._task)):
                return
        super().join()

    def kill(self) -> None:
        """The task ends at its next wait."""
        if self.is_alive():
            world.kill(self._task)


class Event:
    """As threading.Event."""

    def __init__(self) -> None:
        self._set, self._key = False, next(_keys)

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._set

    def set(self) -> None:
        """Wakes everybody who waits for it."""
        self._set = True
        world.wake(self._key)

    def clear(self) -> None:
        """Takes it back."""
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it was set in time."""
        due = _due(timeout)
        while not self._set and world.wait(due, self._key):
            pass
        return self._set


class Condition:
    """As threading.Condition."""

    def __init__(self, lock: Any = None) -> None:
        self._lock: Any = lock or threading.RLock()
        self._waiting: deque[int] = deque()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> bool:
        return bool(self._lock.__enter__())

    def __exit__(self, *about: object) -> None:
        self._lock.__exit__(*about)

    def wait(self, timeout: float | None = None) -> bool:
        """Gives the lock back until somebody notifies; whether somebody did in time."""
        key = next(_keys)
        self._waiting.append(key)
        self._lock.release()
        try:
            woken = bool(world.wait(_due(timeout), key))
        finally:
            self._lock.acquire()
            if key in self._waiting:
                self._waiting.remove(key)
        return woken

    def notify(self, n: int = 1) -> None:
        """Wakes the first n that wait."""
        for _ in range(min(n, len(self._waiting))):
            world.wake(self._waiting.popleft())

    def notify_all(self) -> None:
        """Wakes all that wait."""
        self.notify(len(self._waiting))


class Queue:
    """As queue.Queue without an end."""

    def __init__(self, maxsize: int = 0) -> None:
        self._items: deque[Any] = deque()
        self._key = next(_keys)

    def __class_getitem__(cls, item: object) -> type[Self]:
        return cls

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Adds an item and wakes who waits for one."""
        self._items.append(item)
        world.wake(self._key)

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The oldest item. Raises queue.Empty."""
        due = _due(timeout)
        while not self._items:
            if not block or not world.wait(due, self._key):
                raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """The oldest item. Raises queue.Empty."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether there is none."""
        return not self._items

    def qsize(self) -> int:
        """How many there are."""
        return len(self._items)


# -------------------------------------------------------------------------------------------------------------------- wires


class Socket:
    """A datagram socket on the loopback of the world."""

    def __init__(self, fd: int) -> None:
        self._fd, self._timeout = fd, None
        self.process = getattr(threading.current_thread(), "process", None)  # whose it is, as of a task
        sockets.append(self)

    _timeout: float | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Its descriptor in the world, -1 once it is closed."""
        return self._fd

    def settimeout(self, seconds: float | None) -> None:
        """How long `recv` waits."""
        self._timeout = seconds

    def setblocking(self, blocking: bool) -> None:
        """Whether `recv` waits."""
        self._timeout = None if blocking else 0.0

    def setsockopt(self, *about: object) -> None:
        """Nothing to set."""

    def bind(self, address: tuple[str, int]) -> None:
        """Listens on a port."""
        world.bind(self._fd, address[1])

    def connect(self, address: tuple[str, int]) -> None:
        """Speaks with one other port alone."""
        world.connect(self._fd, address[1])
        if address[1] in _wire_of_port:
            world.label(self._fd, _wire_of_port[address[1]], 0)

    def getsockname(self) -> tuple[str, int]:
        """Its address."""
        return "127.0.0.1", world.port_of(self._fd)

    def send(self, data: bytes) -> int:
        """Sends one message."""
        return int(world.send(self._fd, bytearray(data)))

    def sendto(self, data: bytes, address: tuple[str, int]) -> int:
        """Sends one message to a port."""
        return int(world.send(self._fd, bytearray(data), address[1]))

    def recv(self, most: int, flags: int = 0) -> bytes:
        """The next message. Raises BlockingIOError, TimeoutError."""
        return self._next(most, flags)[0]

    def recvfrom(self, most: int) -> tuple[bytes, tuple[str, int]]:
        """The next message and whose it is. Raises BlockingIOError, TimeoutError."""
        data, port = self._next(most, 0)
        return data, ("127.0.0.1", port)

    def _next(self, most: int, flags: int) -> tuple[bytes, int]:
        due = _due(self._timeout)
        while True:
            try:
                if flags & socket.MSG_PEEK:
                    return bytes(world.waiting(self._fd)), 0
                data, port = world.receive(self._fd, most)
                return data, port
            except BlockingIOError:
                if self._timeout == 0.0:
                    raise
            if not world.wait_readable([self._fd], max(0, due - world.now_ns())):
                raise TimeoutError("timed out")

    def close(self) -> None:
        """What waits on it is gone."""
        if self._fd >= 0:
            world.close(self._fd)
            self._fd = -1
            sockets.remove(self)


class RawSocket(Socket):
    """A raw socket on an interface of the world."""

    def setsockopt(self, *about: Any) -> None:
        """A filter by the least value of one byte (`drivers.raw_frames.ethercat_link`); nothing else."""
        if about[1] == _SO_ATTACH_FILTER:
            count, program = struct.unpack("HL", about[2])
            (_, _, _, place), (_, _, _, least), *_ = struct.iter_unpack("HBBI", ctypes.string_at(program, 8 * count))
            world.take_above(self._fd, place, least)

    def bind(self, address: tuple[str, int]) -> None:
        """Hears and says what passes this interface. Raises OSError where there is none."""
        if address[0] not in INTERFACES:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        wire, direction = INTERFACES[address[0]]
        world.raw(self._fd, WIRES.index(wire), direction)

    def getsockname(self) -> Any:
        """As of a packet socket, the address of the interface last."""
        return "", 0, 0, 1, bytes(6)


def new_socket(family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM, *more: Any, **named: Any) -> Any:
    """A socket of the world for datagrams and raw frames; others are the machine's own (pages that are asked for before a run)."""
    if family == socket.AF_PACKET:
        return RawSocket(world.socket())
    if family == socket.AF_INET and kind == socket.SOCK_DGRAM:
        return Socket(world.socket())
    return socket.socket(family, kind, *more, **named)


def socketpair(*about: object) -> tuple[Socket, Socket]:
    """Two that speak with each other, at once and without loss."""
    one, other = Socket(world.socket()), Socket(world.socket())
    world.pair(one.fileno(), other.fileno())
    for end in (one, other):
        end.setblocking(False)
    return one, other


def select_(read: Sequence[Any], write: Iterable[Any], errors: Iterable[Any], timeout: float | None = None) -> Any:
    """Those of `read`, sockets or descriptors of the world, on which something waits."""
    numbers = [one if isinstance(one, int) else one.fileno() for one in read]
    if real := [number for number in numbers if number < world.FIRST_FD]:  # the lifeline of a process
        if found := select.select(real, [], [], 0.0)[0]:
            return [one for one, number in zip(read, numbers, strict=True) if number in found], [], []
    wait_ns = world.NEVER_NS if timeout is None else max(0, round(1e9 * timeout))
    found = world.wait_readable([number for number in numbers if number >= world.FIRST_FD], wait_ns)
    return [one for one, number in zip(read, numbers, strict=True) if number in found], [], []


def end_tasks() -> None:
    """Ends the tasks that a process takes with it when it ends, as the system does."""
    for task in tasks:
        task.kill()
        task.join()


def loop_began_ns() -> int:
    """World time at which the loop began, -1 without a loop."""
    return _loop_began[-1] if _loop_began else -1


def loop_ran_ns() -> int:
    """World time from the loop's begin to its end, 0 without a loop."""
    return _loop_ended[-1] - _loop_began[-1] if _loop_ended else 0


def label_wire(port: int, name: str, socket_fd: int) -> None:
    """The socket at a device's end of a wire, and the port on which it listens."""
    _wire_of_port[port] = WIRES.index(name)
    world.label(socket_fd, WIRES.index(name), 1)


def modules(**parts: Any) -> dict[str, Any]:
    """What `rt_kernels.doors.opened` takes. parts: what the world makes of our own otherwise."""
    _wire_of_port.clear()
    for kept in (died, names, children, tasks, sockets, with_the_loop, _loop_began, _loop_ended):
        kept.clear()
    return {
        "time": time,
        "threading": SimpleNamespace(Thread=Thread, Event=Event, Condition=Condition),
        "queue": SimpleNamespace(Queue=Queue),
        "socket": SimpleNamespace(socket=new_socket, socketpair=socketpair),
        "select": SimpleNamespace(select=select_),
        **parts,
    }
