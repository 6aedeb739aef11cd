"""Processes that end with the one that wanted them."""

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
    made = ProcessPoolExecutor(workers, get_context("spawn"), die_with, (os.getpid(),))
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


def die_with(parent: int) -> None:
    """In a process, at its start: it ends when the process that wanted it is gone, even killed: its results would be discarded, its port
    taken."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
