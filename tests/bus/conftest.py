"""A stand-in of the loop: publishes records into a shared block and takes commands from it."""

import mmap
import os
import struct
import threading
import time

import pytest

from hil_server.bus.process import TelemetryProcess
from hil_server.bus.settings import TelemetrySettings
from hil_server.log.record import record_dtype
from rt_kernels.ring import SharedBlock
from tests.log import conftest as log_fixtures

ANY = "tcp://127.0.0.1:*"
header, make_records = log_fixtures.header, log_fixtures.make_records


class LoopStandIn:
    """The loop's side of a shared block, written through the memory itself: publishes records, takes commands, reads hand slots.

    Offsets are those of `ControlBlock` in rt_kernels/ring.pxd; `__init__` checks them against what the block says of itself.
    """

    HEAD, OVERFLOW, FINISHED, TAIL, LANE, LANE_SIZE, HAND, HAND_SIZE = 128, 136, 144, 256, 512, 3072, 6656, 112

    def __init__(self, block, make):
        self.block, self._make = block, make
        size = os.fstat(block.fd).st_size
        self._memory = mmap.mmap(block.fd, size)
        self._slots = size - block.capacity * block.record_size
        self.tick = 0
        self.command = 0
        self._stop = threading.Event()
        block.finished = True
        assert self._get(self.FINISHED) == 1
        block.finished = False
        aux = (block.record_size - record_dtype(0).itemsize) // 8
        self._template = make(1000, 0, aux)

    def _get(self, at):
        return struct.unpack_from("<q", self._memory, at)[0]

    def _set(self, at, value):
        struct.pack_into("<q", self._memory, at, value)

    def publish(self, count=1):
        """The next `count` ticks; newest dropped and counted when the ring is full. Takes at most one command a tick."""
        for _ in range(count):
            record = self._template[self.tick % 1000 : self.tick % 1000 + 1].copy()
            taken = self.take_command()
            record["command_sequence"], record["command_code"] = self.command, taken[1] if taken else 0
            record["tick"], record["time_ns"] = self.tick, self.tick * 1_000_000
            self.tick += 1
            head = self._get(self.HEAD)
            if head - self._get(self.TAIL) >= self.block.capacity:
                self._set(self.OVERFLOW, self._get(self.OVERFLOW) + 1)
                continue
            at = self._slots + (head % self.block.capacity) * self.block.record_size
            self._memory[at : at + self.block.record_size] = record.tobytes()
            self._set(self.HEAD, head + 1)
        return self

    def take_command(self):
        for lane in (self.LANE + self.LANE_SIZE, self.LANE):
            tail = self._get(lane + 128)
            if tail < self._get(lane):
                slot = lane + 256 + 88 * (tail % 32)
                sequence, code, source, _, *arguments = struct.unpack_from("<qiiq8d", self._memory, slot)
                self._set(lane + 128, tail + 1)
                self.command = sequence
                self.taken.append((sequence, code, source, arguments))
                return sequence, code
        return None

    @property
    def taken(self):
        return self.__dict__.setdefault("_taken", [])

    def hand(self, station):
        """sequence, device time ns, axes, buttons, status of a hand controller's slot."""
        at = self.HAND + self.HAND_SIZE * station
        _, sequence, device, _, *rest = struct.unpack_from("<4q6d2I", self._memory, at)
        return sequence, device, rest[:6], rest[6], rest[7]

    def run(self):
        """Publishes 1000 ticks a second, as the loop does, until `stop`; after a time in which it was held up, those that are due."""
        began = time.monotonic() - 1e-3 * self.tick
        while not self._stop.wait(0.005):
            self.publish(int(1e3 * (time.monotonic() - began)) - self.tick)

    def stop(self):
        """Ends `run`."""
        self._stop.set()

    def until(self, condition, per_look=10):
        """The run continues, so many ticks a look, until the condition holds: shared memory tells no one that it has changed."""
        while not condition():
            self.publish(per_look)
            self._stop.wait(0.002)
        return self

    def drained(self):
        """Until the log's process has taken all that was published."""
        return self.until(lambda: self.block.tail == self.block.head, 0)

    def close(self):
        self._memory.close()


@pytest.fixture
def loop_stand_in(make_records):
    """loop_stand_in(aux=4, capacity=8192) -> LoopStandIn with its block."""
    made = []

    def make(aux=4, capacity=8192):
        made.append(LoopStandIn(SharedBlock.create(capacity, aux), make_records))
        return made[-1]

    yield make
    for stand_in in made:
        stand_in.close()


@pytest.fixture
def start(tmp_path, header, loop_stand_in):
    """start(aux, capacity, **settings) -> (loop, process); offline: with a log and no bus. Everything is ended afterwards."""
    running = []

    def make(aux=4, capacity=8192, offline=False, **settings):
        loop, log = loop_stand_in(aux, capacity), str(tmp_path / "run.mcap")
        wanted = {"log_path": log, "telemetry_address": ANY, "command_address": ANY, "hand_address": ANY} | settings
        given = TelemetrySettings.offline(log) if offline else TelemetrySettings(**wanted)
        running.append(TelemetryProcess.start(loop.block.fd, given, header))
        return loop, running[-1]

    yield make
    for process in running:
        if process.alive:
            process.kill()
