"""What the tests share: a stand in software with a plain plant: the docking stand's platform, a bumper far away, nothing
on the load cell; waiting for it, its time, and time that passes for a port."""

import os
import select
import struct
import threading
import time
import tomllib
from pathlib import Path

import numpy as np

from drivers.raw_frames.can_link import FRAME, open_link
from rt_kernels.layout import BITS

STAND_FILE = Path(__file__).resolve().parents[2] / "stand_configs" / "stands" / "docking_stand.toml"
IDENTITY = [0.0, 0.0, 0.0, 1.0]


def plant_tables(**changes):
    return {
        "platform": tomllib.loads(STAND_FILE.read_text())["platform"],
        "mounting": {
            "load_cell_on": "floor",
            "unit_on_load_cell": "target",
            "X_WF": [4.3, 0.0, 0.0, *IDENTITY],
            "X_PM": [0.3, 0.0, 0.0, *IDENTITY],
            "X_S": [4.5, 0.0, 0.0, *IDENTITY],
            "X_S_port": [-0.2, 0.0, 0.0, *IDENTITY],
            "carried_mass_kg": 0.0,
            "carried_com_m": [0.0, 0.0, 0.0],
            "gravity_m_s2": [-9.80665, 0.0, 0.0],
        },
        "mechanism": {"part": "rt_kernels.mechanisms.linear.bumper:Bumper", "stiffness_n_per_m": 1e5},
        "counts_per_newton": 1e5,
        "counts_per_newton_metre": 2e5,
        **changes,
    }


def stand_config(plant=None, **tables):
    return {"plant": plant_tables(**(plant or {})), **tables}


def placed(thread):
    """Cores and priority of a thread of ours, by its name: a priority as the machine gives one, 0 an ordinary thread."""
    (number,) = (one.native_id for one in threading.enumerate() if one.name == thread)
    return os.sched_getaffinity(number), os.sched_getparam(number).sched_priority


def has(word, code, name):
    """Whether a status word has the bit `name` of a code list."""
    return bool(int(word) & BITS[code][name])


def until(condition, turn):
    """Takes turns until the condition holds. `turn` comes back when something may have changed: the stand has answered (`control.ping`),
    bytes have come. No limit of its own: pytest ends a test that hangs, and says where."""
    while not condition():
        turn()


class PassingTime:
    """Lets time pass for a port, at once: all moments in its state lie further back. To be made before the port is opened."""

    def __init__(self):
        self.first_ns = time.monotonic_ns()  # no moment in a state is before it, none long after now
        self.passed_ns = 0

    def now_ns(self):
        return time.monotonic_ns() + self.passed_ns

    def let_pass(self, port, ms):
        state = np.frombuffer(port.snapshot(), np.int64).copy()
        state[(state >= self.first_ns) & (state <= time.monotonic_ns() + 100_000_000)] -= int(1e6 * ms)
        port.restore(state.tobytes())
        self.first_ns -= int(1e6 * ms)
        self.passed_ns += int(1e6 * ms)


class StandClock:
    """The time of a stand in software, told by the heartbeats of its input module: for tests that no port of it takes part in."""

    PERIOD_MS = 10

    def __init__(self, one):
        self.link, self.node = open_link(one.ports["mechanism_signals"]["link"]), one.ports["mechanism_signals"]["node"]

    def let_pass(self, ms, *ends):
        """Returns when so much time has passed for the stand, or something has come at one of these sockets. What was sent to it before has
        been heard, what it had to send by then has been sent: two heartbeats never leave in one turn of its loop."""
        while select.select([self.link], [], [], 0.0)[0]:
            self.link.recv(FRAME.size)
        self.link.send(FRAME.pack(0x600 + self.node, 8, struct.pack("<BHBI", 0x2B, 0x1017, 0, self.PERIOD_MS)))
        beats = -1  # the first one may come at once
        while beats * self.PERIOD_MS < ms:
            ready, _, _ = select.select([self.link, *ends], [], [])
            if any(end in ready for end in ends):
                return
            beats += FRAME.unpack(self.link.recv(FRAME.size))[0] == 0x700 + self.node

    def close(self):
        self.link.close()


class SleptTime:
    """Stands for the module `time` where only a sleep lets time pass. slept: called with each one, the scenario's turn."""

    def __init__(self, slept=lambda seconds: None):
        self.now, self._slept = 100.0, slept

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self._slept(seconds)

    @property
    def passed(self):
        return self.now - 100.0
