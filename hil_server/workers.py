"""Processes that work on parts of something long, and end with it."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from hil_server import interrupts


@contextlib.contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, which end at once when this block is left early: their results would be discarded."""
    made = ProcessPoolExecutor(workers, get_context("spawn"), _die_with, (os.getpid(),))
    try:
        yield made
    except BaseException:
        with interrupts.owned():
            processes = list((made._processes or {}).values())  # no public way before Python 3.14
            made.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
            made.shutdown()
        raise
    made.shutdown()


def _die_with(parent: int) -> None:
    """In a worker, at its start: it ends when the process that wanted it is gone, because its results would be discarded."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
