"""The telemetry process: empties the ring into the log and onto the bus, and brings commands and hand controllers to the loop.

    python -m hil_server.telemetry.drain --fd N

N is the inherited descriptor of the shared block. On standard input comes one JSON line {"settings": ..., "header": ...}; the answer on
standard output is {"ready": {...addresses...}} or {"error": ..., "exit_code": ...}. A later line {"close": {...facts...}} ends the run:
what is in the ring is written, then the facts, then the end of the log; the last line on standard output is {"closed": {...}}. When
standard input ends without that, the server has died: the log is finished from what is in the ring and marked incomplete. SIGTERM does
the same; SIGINT is ignored, because Ctrl-C is the server's to handle.

The log comes first: the ring is emptied every 10 ms whatever happens on the sockets, and what fails on the bus is counted and passed over.
Commands and hand controllers have a thread of their own, at ordinary priority: they reach the loop while the log waits for the disk.
"""

import argparse
import json
import os
import select
import signal
import sys
import threading
import time
from queue import SimpleQueue
from typing import Any

import numpy as np
import zmq

from hil_server.errors import HilError
from hil_server.operator_desk.receiver import BUDGET, CommandDesk, HandDesk
from hil_server.telemetry.log_file import LogHeader, LogWriter
from hil_server.telemetry.publisher import Publisher
from hil_server.telemetry.record import record_dtype
from hil_server.telemetry.settings import TelemetrySettings
from hil_server.telemetry.wire import DoorKeeper, bind
from rt_kernels.layout import FIELDS, LAYOUT_HASH
from rt_kernels.ring import SharedBlock

PERIOD = 0.010  # s between two looks at the ring
DRAIN_AT_ONCE = 2000  # records; bounds the time between two looks at the sockets
STATUS_PERIOD = 0.5  # s
DESK_PERIOD_MS = 50  # between two looks for commands that nobody takes
CLOSE_WITHIN = 5.0  # s that a finished loop waits for the server's closing line
PUBLISH_QUEUE = 200  # messages for a subscriber that does not read, 4 s of `full`
REQUEST_QUEUE = 100


class Telemetry:
    """The process's state: block, log, sockets."""

    def __init__(self, block: SharedBlock, settings: TelemetrySettings, header: LogHeader) -> None:
        if header.aux_count != block.aux_count:
            raise ValueError(f"header declares {header.aux_count} auxiliary channels, the block has {block.aux_count}")
        self.block, self.settings, self.header = block, settings, header
        self.dtype = record_dtype(header.aux_count)
        self.faults_of_bus = 0
        self._overflow = 0
        self._next_status = 0.0
        self._last_seen_tick = -1
        self._last_command = -1
        self._open_sockets()
        self.log = LogWriter(settings.log_path, header) if settings.log_path else None
        self.desks = DeskThread(self)

    def _open_sockets(self) -> None:
        s = self.settings
        self.context = zmq.Context()
        self.door = DoorKeeper(self.context, s.curve) if s.curve is not None else None
        self.sockets: dict[str, zmq.Socket] = {}
        kinds = {
            "telemetry_address": (zmq.PUB, PUBLISH_QUEUE),
            "plotjuggler_address": (zmq.PUB, PUBLISH_QUEUE),
            "command_address": (zmq.ROUTER, REQUEST_QUEUE),
            "hand_address": (zmq.ROUTER, REQUEST_QUEUE),
        }
        for key, (kind, queue) in kinds.items():
            address = getattr(s, key)
            if address:
                self.sockets[key] = bind(self.context, kind, key, address, s.curve, queue)
        self.publisher = Publisher(
            self.header,
            self.sockets.get("telemetry_address"),
            self.sockets.get("plotjuggler_address"),
            s.batch_ticks,
            s.slow_ticks,
            lambda: self.block.overflow,
        )
        command, hand = self.sockets.get("command_address"), self.sockets.get("hand_address")
        self.desk = CommandDesk(command, self.block, self.describe, self.status, s.exclusive) if command is not None else None
        self.hands = HandDesk(hand, self.block) if hand is not None else None

    def endpoints(self) -> dict[str, str]:
        return {key: socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0") for key, socket in self.sockets.items()}

    # ---------------------------------------------------------------------------------------------------------- the ring
    def drain(self) -> int:
        """One look at the ring. Returns the number of records taken."""
        data = self.block.drain(DRAIN_AT_ONCE)
        self._note_overflow()
        if not data:
            if self.log is not None:
                self.log.write(b"")  # gives it the chance to write what waits
            return 0
        records = self.log.write(data) if self.log is not None else _view(data, self.dtype)
        self._last_seen_tick = int(records["tick"][-1])
        self.on_bus(self.publisher.publish, records)
        command = int(records["command_sequence"][-1])
        if command != self._last_command:
            self._last_command = command
            self.desks.acknowledge(records)
        return len(records)

    def drain_all(self) -> None:
        while self.drain():
            pass

    def _note_overflow(self) -> None:
        overflow = self.block.overflow
        if overflow > self._overflow and self.log is not None:
            self.log.lost(overflow - self._overflow, "ring overflow: the loop was faster than the log")
        self._overflow = overflow

    def on_bus(self, act: Any, *arguments: Any) -> Any:
        """What `act` returns, None when it fails: nothing that happens on the bus may keep the log from the ring."""
        try:
            return act(*arguments)
        except Exception as error:
            self.faults_of_bus += 1
            if self.faults_of_bus <= 10:
                print(f"telemetry: {type(error).__name__}: {error}", file=sys.stderr, flush=True)

    # ---------------------------------------------------------------------------------------------------------- the wire
    def beat(self) -> None:
        """Twice a second: status for everybody."""
        now = time.monotonic()
        if now >= self._next_status:
            self._next_status = now + STATUS_PERIOD
            self.on_bus(lambda: self.publisher.status(self.status()))

    def status(self) -> dict[str, Any]:
        log, desk, hands = self.log, self.desk, self.hands
        return {
            "tick": self._last_seen_tick,
            "run": self.header.run_id,
            "running": not self.block.finished,
            "log_path": self.settings.log_path,
            "log_ok": log is None or not log.reasons,
            "log_ticks": 0 if log is None else log.ticks,
            "log_lost_ticks": 0 if log is None else log.lost_ticks,
            "log_reasons": [] if log is None else list(log.reasons),
            "overflow": self.block.overflow,
            "ring_waiting": self.block.head - self.block.tail,
            "ring_capacity": self.block.capacity,
            "desk_holder": "" if desk is None else desk.holder,
            "commands_accepted": 0 if desk is None else desk.accepted,
            "commands_refused": 0 if desk is None else desk.refused,
            "requests_malformed": 0 if desk is None else desk.malformed,
            "hand_accepted": 0 if hands is None else hands.accepted,
            "hand_rejected": {} if hands is None else dict(hands.rejected),
            "keys_refused": 0 if self.door is None else self.door.refused,
            "bus_faults": self.faults_of_bus,
        }

    def describe(self) -> dict[str, Any]:
        """Everything a client needs to understand the run: fields, auxiliary channels, configuration, ledger."""
        h = self.header
        return {
            "run": h.run_id,
            "mode": h.mode,
            "build_id": h.build_id,
            "period_ns": h.period_ns,
            "created": h.created,
            "synthetic": h.synthetic,
            "fields": [list(field) for field in FIELDS],
            "aux": [channel.declaration() for channel in h.aux],
            "configuration": h.configuration,
            "delay_ledger": h.delay_ledger,
            "delay_origins": h.delay_origins,
            "prediction": h.prediction,
            "host": json.loads(json.dumps(h.host, default=str)),
            "notes": h.notes,
        }

    # --------------------------------------------------------------------------------------------------------------- end
    def close(self, facts: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        """Writes what is left, ends the log, says goodbye. reason: why the run is incomplete, if it is."""
        self.drain_all()
        self.desks.end()
        if self.desk is not None:
            self.on_bus(self.desk.expire, "the run is over")
        log = self.log
        if log is not None:
            if reason:
                log.lost(0, reason)
            log.close({**facts, "overflow": self.block.overflow})
        self.on_bus(lambda: self.publisher.status(self.status()))
        self.context.destroy(linger=200)
        return {
            "path": self.settings.log_path,
            "ticks": 0 if log is None else log.ticks,
            "lost_ticks": 0 if log is None else log.lost_ticks,
            "complete": log is None or not log.reasons,
            "reasons": [] if log is None else log.reasons,
            "overflow": self.block.overflow,
        }


def _view(data: bytes, dtype: np.dtype) -> np.ndarray:
    return np.frombuffer(data, dtype)


class DeskThread:
    """Serves the sockets that bring something to the loop; they belong to this thread until `end`.

    Records that show a command as taken are handed over by `acknowledge`, from where the ring is emptied.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._taken: SimpleQueue[np.ndarray] = SimpleQueue()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="desks", daemon=True)
        self._thread.start()

    def acknowledge(self, records: np.ndarray) -> None:
        self._taken.put(records)
        os.eventfd_write(self._bell, 1)

    def end(self) -> None:
        """Answers what was taken so far and gives the sockets back."""
        self._ending = True
        os.eventfd_write(self._bell, 1)
        self._thread.join()
        os.close(self._bell)

    def _run(self) -> None:
        telemetry, poller = self._telemetry, zmq.Poller()
        desks = [desk for desk in (telemetry.desk, telemetry.hands) if desk is not None]
        for socket in [desk.socket for desk in desks] + ([] if telemetry.door is None else [telemetry.door.socket]):
            poller.register(socket, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        ending = flooded = False
        while not ending:
            if flooded:
                time.sleep(PERIOD)  # whoever sends too much waits
            else:
                poller.poll(DESK_PERIOD_MS)
            ending = self._ending
            self._empty_bell()
            if telemetry.door is not None:
                telemetry.on_bus(telemetry.door.serve)
            flooded = BUDGET in [telemetry.on_bus(desk.serve) for desk in desks]
            if telemetry.desk is not None:
                while not self._taken.empty():
                    telemetry.on_bus(telemetry.desk.acknowledge, self._taken.get())
                telemetry.on_bus(telemetry.desk.expire)

    def _empty_bell(self) -> None:
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            pass


class Control:
    """Standard input: one line of JSON at a time, without waiting."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        self._rest = b""

    def first_line(self) -> bytes:
        """Waits for the first line."""
        while b"\n" not in self._rest:
            part = os.read(self.descriptor, 1 << 20)
            if not part:
                raise EOFError("standard input ended before the settings came")
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        os.set_blocking(self.descriptor, False)
        return line

    def line(self) -> bytes | None:
        """The next whole line, or None. Sets `ended` at the end of the input."""
        if not self.ended:
            try:
                part = os.read(self.descriptor, 1 << 16)
                self.ended = not part
                self._rest += part
            except BlockingIOError:
                pass
        if b"\n" not in self._rest:
            return None
        line, self._rest = self._rest.split(b"\n", 1)
        return line


def run(telemetry: Telemetry, control: Control, terminated: list[int]) -> tuple[dict[str, Any], str | None]:
    """Until the run ends. Returns the facts of the server and why the run is incomplete (None when it is not)."""
    next_look, finished_at = time.monotonic(), None
    while True:
        select.select([control.descriptor], [], [], max(0.0, next_look - time.monotonic()))
        if terminated:
            return {}, "the telemetry process was told to stop (SIGTERM) before the run ended"
        line = control.line()
        if line is not None:
            return json.loads(line).get("close", {}), None
        if control.ended:
            return {}, None if telemetry.block.finished else "the server ended without closing the run"
        now = time.monotonic()
        if now >= next_look:
            busy = telemetry.drain() >= DRAIN_AT_ONCE
            telemetry.beat()
            next_look = now if busy else now + PERIOD
        if telemetry.block.finished:
            finished_at = finished_at or now
            if now - finished_at > CLOSE_WITHIN:
                return {}, None


def settle(settings: TelemetrySettings) -> None:
    """Keeps out of the loop's way: ordinary scheduling, the given cores."""
    if hasattr(os, "sched_setscheduler"):
        try:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        except OSError:
            pass
        cores = set(settings.cores) & set(range(os.cpu_count() or 1))
        if cores:
            os.sched_setaffinity(0, cores)


def say(message: dict[str, Any]) -> None:
    try:
        print(json.dumps(message), flush=True)
    except OSError:
        pass  # the server is gone; the log says so


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="hil_server.telemetry.drain", description="telemetry process of a run; started by the server")
    parser.add_argument("--fd", type=int, required=True, help="inherited descriptor of the shared block")
    arguments = parser.parse_args(argv)
    terminated: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: terminated.append(number))
    control = Control(sys.stdin.fileno())
    try:
        start = json.loads(control.first_line())
        settings = TelemetrySettings.from_dict(start["settings"])
        settle(settings)
        block = SharedBlock.attach(arguments.fd)
        telemetry = Telemetry(block, settings, LogHeader.from_json(json.dumps(start["header"])))
    except HilError as error:
        say({"error": str(error), "exit_code": error.exit_code})
        return error.exit_code
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        say({"error": f"telemetry: {error}", "exit_code": 5})
        return 5
    os.nice(settings.nice)  # of this thread alone, which writes the log; the desks keep theirs
    say({"ready": telemetry.endpoints(), "layout": LAYOUT_HASH})
    facts, reason = run(telemetry, control, terminated)
    say({"closed": telemetry.close(facts, reason)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
