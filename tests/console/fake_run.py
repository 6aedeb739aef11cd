"""A run for the console's pages: messages of the bus made from one tick of a log, and a desk that takes every command.

What it says can be changed at any time: `held_s` (by which its messages come late), `values` (and `spread`, by which smallest and largest
differ from them), `requirements`.
"""

import threading
import time

import zmq

from hil_server.bus.wire import pack, unpack
from rt_kernels.layout import FIELDS, LAYOUT_HASH

PERIOD = 0.05  # s


class FakeRun:
    """telemetry, command: its addresses; taken: (command, args) of every command that came."""

    def __init__(self, recording, configuration, tunables=(), requirements=()):
        self.recording, self.configuration = recording, configuration
        self.tunables, self.requirements = list(tunables), list(requirements)
        self.values = recording.values(recording.log.ticks // 2) | {"time_ns": 0, "end_cause": 0, "safety_state": 0, "trip_tick": -1}
        self.spread, self.taken, self.ended = 1.0, [], False
        self.desk_holder, self.desk_asked = "", []  # what it says, and what was asked of the desk
        self.held_s = 0.0  # by which its messages come late
        self._stop = threading.Event()
        self._context = zmq.Context()
        self._bus, self._desk = self._context.socket(zmq.PUB), self._context.socket(zmq.ROUTER)
        self.telemetry, self.command = (f"tcp://127.0.0.1:{s.bind_to_random_port('tcp://127.0.0.1')}" for s in (self._bus, self._desk))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self):
        self._stop.set()
        self._thread.join()
        self._context.destroy(linger=0)

    def _serve(self):
        sequence, began = 0, time.monotonic()
        while not self._stop.is_set():
            sequence += 1
            t = time.monotonic() - began
            head = {"t": t, "t_ns": int(t * 1e9), "tick": int(t * 1e3), "run": "FAKE", "layout": LAYOUT_HASH, "dropped": 0}
            head |= {"sequence": sequence, "thinned": 0, "wall": time.time(), "wall_of_tick": time.time() - self.held_s}
            last = self.values | {"tick": head["tick"]}
            low, high = ({k: self._moved(v, sign) for k, v in last.items()} for sign in (-1, 1))
            self._send(b"slow", head | {"last": last, "min": low, "max": high, "any": {"faults": 0, "events": 0}})
            if sequence % 10 == 1:
                facts = {"running": not self.ended, "log_ok": True, "log_reasons": [], "log_path": "runs/fake/run.mcap"}
                facts |= {"desk_holder": self.desk_holder}
                self._send(b"status", head | facts)
                self._send(b"requirements", head | {"requirements": self.requirements, "final": False})
            until = time.monotonic() + PERIOD
            while (left := until - time.monotonic()) > 0 and self._desk.poll(1000 * left):
                self._answer(*self._desk.recv_multipart())

    def _moved(self, value, sign):
        return [x + sign * self.spread for x in value] if isinstance(value, list) else value

    def _send(self, topic, message):
        self._bus.send_multipart([topic, pack(message)])

    def _answer(self, who, topic, body):
        request, answer = unpack(body), {"ok": True}
        if topic == b"describe":
            header = self.recording.log.header
            answer |= {"run": "FAKE", "fields": [list(f) for f in FIELDS], "aux": [c.declaration() for c in header.aux], "notes": []}
            answer |= {"configuration": {"configuration.toml": self.configuration}, "delay_ledger": header.delay_ledger}
            answer |= {"delay_origins": header.delay_origins, "tunables": self.tunables, "period_ns": header.period_ns}
        elif topic == b"desk" and "take" in request:
            self.desk_asked.append({key: request[key] for key in ("take", "over")})
        elif topic == b"command":
            self.taken.append((request["command"], request.get("args")))
            answer |= {"command": request["command"], "sequence": len(self.taken), "tick": 7, "t": 0.007, "t_ns": 7_000_000}
        self._desk.send_multipart([who, b"reply", pack({"id": request.get("id"), "layout": LAYOUT_HASH, **answer})])
