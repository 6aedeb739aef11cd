"""Starts the stand in software as a process of its own, injects faults, stops it."""

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivers.simulated.injections import BY_NAME, served_by, wire_fault
from drivers.simulated.unit_channels import UnitMemory
from rt_kernels.doors import select, socket, subprocess, time
from rt_kernels.parameters import Command

_REQUEST = struct.Struct("<IIiiddQ")
_ANSWER = struct.Struct("<IIii")
_MAGIC = 0x53444E54
_START = "import sys; sys.path.insert(0, sys.argv[1]); from drivers.simulated.stand_server import main; sys.exit(main(['-']))"
_INJECT, _CLEAR, _CLEAR_ALL, _STOP, _PING = 1, 2, 3, 4, 5


class StandControl:
    """The control port of a running stand. Raises ConnectionError when it does not answer.

    COMMANDS: of an operator's commands those that it acts on (`obey`), with the numbers of the faults that it can show.
    """

    def __init__(
        self, port: int, variant: str = "net_ft", address: str = "127.0.0.1", timeout_s: float = 2.0, machine: str = "linear"
    ):
        self._variant = variant
        self.address = {"port": port, "variant": variant, "address": address, "machine": machine}
        self._known = served_by(variant, machine)
        self.COMMANDS = (Command("inject_fault", numbers=tuple(self._known)), Command("clear_injection"))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(timeout_s)
        self._socket.connect((address, port))

    def inject(self, name: str, index: int = -1, value: float | None = None, at_s: float = 0.0) -> None:
        """Injects a fault of the table: index -1 all axes or links, value None its default, at_s after the first SYNC.

        Raises ValueError for an unknown fault or index.
        """
        number, wire_value = wire_fault(name, value, self._variant)
        self._ask(_INJECT, number, index, wire_value, at_s, name)

    def clear(self, name: str, index: int = -1) -> None:
        """Takes one fault back (what it caused in a device may last, as it would there)."""
        self._ask(_CLEAR, wire_fault(name, None, self._variant)[0], index, 0.0, 0.0, name)

    def clear_all(self) -> None:
        """Takes all faults of the wire back."""
        self._ask(_CLEAR_ALL, 0, -1, 0.0, 0.0, "")

    def obey(self, command: str, arguments: Sequence[float]) -> None:
        """An operator's `inject_fault` (fault, index, value) or `clear_injection`. A fault of the plant takes the value, one of the wire
        shows itself as it does by default."""
        if command == "clear_injection":
            self.clear_all()
            return
        name, index, value = self._known[int(arguments[0])], int(arguments[1]), float(arguments[2])
        self.inject(name, index, value if BY_NAME[name].at == "plant" else None)

    def ping(self) -> None:
        """Returns when the stand has answered."""
        self._ask(_PING, 0, -1, 0.0, 0.0, "")

    def stop(self) -> None:
        """Asks the stand to end."""
        self._ask(_STOP, 0, -1, 0.0, 0.0, "")

    def close(self) -> None:
        """Closes the socket; the stand continues."""
        self._socket.close()

    def _ask(self, command: int, number: int, index: int, value: float, at_s: float, name: str) -> None:
        try:
            self._socket.send(_REQUEST.pack(_MAGIC, command, number, index, value, at_s, 0))
            magic, echoed, result, _ = _ANSWER.unpack(self._socket.recv(64))
        except (OSError, struct.error) as error:
            raise ConnectionError(f"the stand does not answer on its control port: {error}") from error
        if magic != _MAGIC or echoed != command:
            raise ConnectionError("the stand answered something else on its control port")
        if result:
            raise ValueError(f"unknown fault or index: {name!r}, index {index}")


class StandProcess:
    """The stand as a child process. `ports` are the parameters for the ports of `drivers`, by role; `control` injects faults.

    config: as `stand_server.DEFAULTS`; unit: takes the channels of its docking unit, and stays as attribute of that name. Started
    without fork's copy of this process; it ends with `stop()`, or when this process ends. Raises ValueError for a configuration that
    cannot be, ConnectionError when it does not come up.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, unit: UnitMemory | None = None, timeout_s: float = 20.0):
        root = str(Path(__file__).resolve().parents[2])
        self.unit, self.config = unit, dict(config or {}) | ({} if unit is None else {"unit_fd": unit.fd})
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=() if unit is None else (unit.fd,),
        )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(self.config).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the reason is on its standard error
        answer = self._line(timeout_s)
        self.ports: dict[str, Any] = {role: answer[role] for role in ("wrench_sensors", "drives", "mechanism_signals") if role in answer}
        self.control = StandControl(answer["control_port"], answer["sensor"], machine=answer["machine"])
        self.counters: dict[str, Any] = {}

    @property
    def pid(self) -> int:
        """Number of the stand's process."""
        return self._process.pid

    def _line(self, timeout_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None and self._process.stderr is not None
        end = time.monotonic() + timeout_s
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
        line = self._process.stdout.readline() if ready else b""
        if line:
            return json.loads(line)
        if not ready:
            self._process.kill()
        _, errors = self._process.communicate()
        text = errors.decode(errors="replace").strip()
        if self._process.returncode == 2:
            raise ValueError(text)
        raise ConnectionError(f"the stand did not come up within {timeout_s} s: {text}")

    def stop(self, timeout_s: float = 5.0) -> dict[str, Any]:
        """Ends it and returns its counters. May be called twice."""
        if self._process.poll() is None or not self.counters:
            self.control.close()
            try:
                out, _ = self._process.communicate(timeout=timeout_s)  # closes its standard input
            except subprocess.TimeoutExpired:
                self._process.kill()
                out, _ = self._process.communicate()
            except ValueError:
                return self.counters  # stopped before
            lines = out.decode().strip().splitlines()
            self.counters = json.loads(lines[-1]) if lines else {}
        return self.counters

    def __enter__(self) -> "StandProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
