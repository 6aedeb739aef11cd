"""The doors through which everything in Python that takes part in a live run asks its surroundings, as rt_kernels/doors.h for what is
compiled: clock (`time`), tasks (`threading`, `queue`, `subprocess`), wires (`socket`, `select`), disk (`disk`).

    from rt_kernels.doors import threading, time

gives what the standard library has under these names, until somebody opens the doors to a world of his own (`opened`): then what that world
has under a name comes from there. Which of the two is looked up at each use; nothing of it is in a tick.
"""

import contextlib
import queue as _queue
import select as _select
import socket as _socket
import subprocess as _subprocess
import threading as _threading
import time as _time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rt_kernels import disk as _disk

_world: dict[str, Any] = {}


class _Door:
    """Stands for a module of the standard library. functions: those that others keep before a world is there (a parameter's default)."""

    def __init__(self, real: Any, functions: tuple[str, ...] = ()) -> None:
        self._real, self._name = real, real.__name__.rpartition(".")[2]
        for function in functions:
            setattr(self, function, self._later(function))

    def _later(self, function: str) -> Any:
        def called(*arguments: Any, **named: Any) -> Any:
            return self.__getattr__(function)(*arguments, **named)

        called.__name__ = function
        return called

    def __getattr__(self, name: str) -> Any:
        return getattr(_world.get(self._name), name, None) or getattr(self._real, name)


if TYPE_CHECKING:
    import queue as queue
    import select as select
    import socket as socket
    import subprocess as subprocess
    import threading as threading
    import time as time

    from rt_kernels import disk as disk
else:
    time = _Door(_time, ("monotonic", "monotonic_ns", "time", "time_ns", "sleep", "perf_counter", "process_time"))
    threading, queue, subprocess = _Door(_threading), _Door(_queue), _Door(_subprocess)
    socket, select, disk = _Door(_socket), _Door(_select), _Door(_disk)


@contextlib.contextmanager
def opened(world: Mapping[str, Any]) -> Iterator[None]:
    """Until the end of the block the doors lead into this world: name of a module → what has its functions and classes. Raises RuntimeError
    inside another one."""
    if _world:
        raise RuntimeError("the doors lead into a world already")
    _world.update(world)
    try:
        yield
    finally:
        _world.clear()


@contextlib.contextmanager
def closed() -> Iterator[None]:
    """Until the end of the block the standard library is behind the doors, whatever world they lead into otherwise."""
    kept = dict(_world)
    _world.clear()
    try:
        yield
    finally:
        _world.update(kept)


def made_as(name: str, real: Any) -> Any:
    """What makes a part of our own that a world has otherwise: `real` where there is no world, or it has nothing under this name."""
    return _world.get(name, real)
