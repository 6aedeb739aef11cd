"""Blocks of records that a line leaves in its ring while it runs."""

import threading
from types import SimpleNamespace

import numpy as np

from hil_server.line.free_run import BLOCK_TICKS, blocks


class SlowRing:
    """A ring into which the line puts one record between two looks at it; the line ends after `ticks`."""

    aux_count = 0

    def __init__(self, ticks):
        self.ticks, self.tail, self.at, self.over = ticks, 0, 0, threading.Event()

    @property
    def head(self):
        self.at = min(self.at + 1, self.ticks)
        if self.at == self.ticks:
            self.over.set()
        return self.at

    def drain_into(self, space):
        count = min(self.at - self.tail, BLOCK_TICKS)
        self.tail += count
        return count

    def heartbeat(self):
        pass

    def request_stop(self):
        self.over.set()


def test_records_of_a_slow_line_come_in_blocks():
    """What judges and writes a block costs the same for one record as for a hundred."""
    ring = SlowRing(1000)
    line = SimpleNamespace(run=ring.over.wait, clock=SimpleNamespace(paused=False))
    found = [len(block) for block in blocks(SimpleNamespace(block=ring, line=line))]
    assert sum(found) == 1000 and len(found) <= 30 and max(found) <= BLOCK_TICKS
    assert np.mean(found[:-1]) > 40
