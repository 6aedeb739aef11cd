"""What are processes of a live run, as tasks of a world: the telemetry and the stand; and the host, of which a world needs nothing."""

import argparse
import importlib
import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from drivers.simulated.stand_server import Stand
from drivers.simulated.stand_server_client import StandControl
from drivers.simulated.unit_channels import UnitMemory
from hil_server.bus.child import PARENT, Child, Control, obey
from hil_server.bus.settings import TelemetrySettings
from hil_server.values import Document
from hil_server.world.surroundings import Queue, Socket, Thread, children, label_wire, socketpair, sockets, tasks


class TaskControl(Control):
    """Standard input of a process that is a task."""

    def __init__(self, end: Socket) -> None:
        super().__init__(end.fileno())
        self._end = end
        end.setblocking(True)

    def _read(self, most: int) -> bytes:
        return self._end.recv(1 << 24)

    def _unblock(self) -> None:
        self._end.setblocking(False)

    def settle(self, settings: TelemetrySettings) -> None:
        """A task has no core of its own."""

    def obey_terminations(self) -> None:
        """A task gets no signal."""

    def prefer(self, niceness: int) -> None:
        """A task has no priority."""

    def yield_more(self, by: int) -> None:
        """A task has no priority."""

    def bound(self, memory: int) -> None:
        """Its memory is that of all."""


class TaskChild(Child):
    """A process of the telemetry as a task: both ends of its pipes."""

    def __init__(self, module: str, name: str, block_fd: int, lifeline: int, more: tuple[int, ...] = ()) -> None:
        self.name, self.trouble, self._error = name, {}, ""
        self._lines = Queue()  # type: ignore[assignment]
        self._input, other = socketpair()
        self._control, self._code = TaskControl(other), 0
        arguments = argparse.Namespace(fd=block_fd, lifeline=os.dup(lifeline))
        work = importlib.import_module(module).work

        def live() -> None:
            PARENT.set(self._hear)
            try:
                self._code = obey(arguments, self._control, work)
            except BaseException:
                self._code = -9
                raise
            finally:
                self._gone()

        def gone() -> None:
            os.close(arguments.lifeline)
            self._ended()
            other.close()

        self._gone = gone
        self.block_fd = block_fd
        self.thread, self._parent = Thread(target=live, name=name), getattr(threading.current_thread(), "process", None)
        self.thread.process = self
        children[name] = self
        self.thread.start()

    @property
    def pid(self) -> int:
        """A task has none."""
        return 0

    @property
    def alive(self) -> bool:
        """Whether the task still runs."""
        return self.thread.is_alive()

    @property
    def ending(self) -> str:
        """How it ended, in words; empty while it runs."""
        if self.alive:
            return ""
        return "signal SIGKILL" if self._code < 0 else f"exit code {self._code}" + (f": {self._error}" if self._error else "")

    def wait(self, timeout_s: float) -> bool:
        """Waits for its end. False when it still runs then."""
        self.thread.join(timeout_s)
        return not self.alive

    def tell(self, message: Any) -> None:
        """The message is there at once."""
        import json

        if self._input.fileno() >= 0 and self.alive:
            self._input.send(json.dumps(message, default=str).encode() + b"\n")

    tell_now = tell

    def resume(self) -> None:
        """No task is stopped."""

    def die(self) -> None:
        """Its tasks end at their next waits, and what it has of pipes is closed."""
        for task in tasks:
            if task.process is self:
                task.kill()
        if not self.thread.began and self._code == 0:
            self._code = -9
            self._gone()
        for child in children.values():
            if child._parent is self:
                child._input.close()

    def kill(self) -> None:
        """Ends the process and waits until it is gone."""
        self.die()
        self.end(10.0)

    def end(self, timeout_s: float) -> None:
        """Waits for its end, not longer than this, and closes its pipes; what one that is killed has open is closed."""
        if not self.wait(timeout_s):
            self.die()
            for task in tasks:
                if task.process is self:
                    task.join()
            for socket in [one for one in sockets if one.process is self]:
                socket.close()
        self._input.close()


def outlive() -> None:
    """Waits for the ends of processes that see by themselves that the server has ended."""
    for child in children.values():
        child.end(OUTLIVES_S)


OUTLIVES_S = 5.0
drive_log: list[np.ndarray] = []  # what the drives of the stands noted of their states (StandLoop.states)
stands: list["TaskStand"] = []  # those that run


class TaskStand:
    """The virtual stand as a task (StandProcess)."""

    pid = 0

    def __init__(self, config: Mapping[str, Any], unit: UnitMemory | None = None) -> None:
        self.unit = unit
        self.stand = Stand(config if unit is None else {**config, "unit_fd": unit.fd})
        ports = self.stand.ports
        self.ports: Document = {role: ports[role] for role in ("wrench_sensors", "drives", "mechanism_signals") if role in ports}
        links = str(ports["drives"].get("links", "")).split()
        ends = self.stand.link_ends
        named = [*(f"drives {k}" for k in range(len(links))), *(["signals"] if len(ends) > len(links) else [])]
        for name, (port, fd) in zip(named, ends, strict=True):
            label_wire(port, name, fd)
        if (fd := self.stand.sensor_fd) >= 0 and "stream_port" in ports["wrench_sensors"]:
            label_wire(ports["wrench_sensors"]["stream_port"], "sensor", fd)
        self.control = StandControl(ports["control_port"], ports["sensor"], machine=ports["machine"])
        self.config, self.counters = dict(config), {}
        self._thread = Thread(target=self.stand.run, name="stand")
        self._thread.start()
        stands.append(self)

    counters: Document

    def stop(self, timeout_s: float = 5.0) -> Document:
        """Ends it and returns its counters. May be called twice."""
        if not self.counters:
            stands.remove(self)
            self.control.close()
            self.stand.stop()
            self._thread.join()
            self.stand.close()
            self.counters = self.stand.loop.counters()
            drive_log.append(self.stand.loop.states())
        return self.counters

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class NoHost:
    """A host that gives nothing and of which nothing is asked (RealtimeHost)."""

    core, priority, watched, realtime, memory_locked = -1, 0, False, False, False

    def __init__(self) -> None:
        self.missing: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def facts(self) -> Document:
        """For the header of the log."""
        return {"mode": "world"}
