"""A line on the free-running clock and what it leaves in its ring: the one way in which simulations and campaigns run."""

import threading
from collections.abc import Iterator

import numpy as np

from hil_server.assembly import Assembly
from hil_server.telemetry.record import record_dtype

BLOCK_TICKS = 256  # about a megabyte with three hundred channels: stays in a core's own cache
WAIT_S = 0.001


def blocks(test: Assembly) -> Iterator[np.ndarray]:
    """Runs the line to its end on a thread of its own; gives its records in blocks of at most BLOCK_TICKS, (n,) of the run's record type,
    read-only. Leaving early stops the line. A line that fails raises here."""
    dtype = record_dtype(test.block.aux_count)
    failed: list[BaseException] = []

    def loop() -> None:
        try:
            test.line.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=loop, name="loop")
    test.block.heartbeat()
    thread.start()
    try:
        while thread.is_alive() or test.block.head > test.block.tail:
            raw = test.block.drain(BLOCK_TICKS)
            if raw:
                yield np.frombuffer(raw, dtype)
            else:
                thread.join(WAIT_S)
    finally:
        test.block.request_stop()
        thread.join()
    if failed:
        raise failed[0]
