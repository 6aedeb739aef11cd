"""Keeps a bus process beside the log: starts it, tells it how the log does, and starts it again when it dies.

ZeroMQ ends its process where it meets a state that it has not foreseen, and such states can be reached from outside (DECISIONS, 42). So
the process that clients can reach holds nothing that a run needs: a new one is there within half a second, on the same addresses.
"""

import logging

from hil_server.bus.child import Child, LogState
from hil_server.bus.settings import TelemetrySettings
from hil_server.errors import HilError
from rt_kernels.doors import made_as, threading, time

logger = logging.getLogger(__name__)  # in a process of its own: warnings go to standard error without a word of configuration

START_WITHIN = 15.0  # s
LOOK_PERIOD = 0.05  # s
CLOSE_WITHIN = 3.0  # s
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # s before a dead bus is started again; doubled for each that dies within LIVES_LONG
LIVES_LONG = 10.0  # s


class BusKeeper:
    """endpoints: settings key → address as bound. restarts: how often the bus had to be started again.

    Raises what the bus refuses at its first start (ConfigurationError or DeviceError for an address, InternalError).
    """

    def __init__(self, block_fd: int, lifeline: int, settings: TelemetrySettings, header: str) -> None:
        self._block_fd, self._lifeline, self._header = block_fd, lifeline, header
        self._settings = settings.to_dict()
        self._ending = threading.Event()
        self.restarts = 0
        self._child, self.endpoints = self._start()
        self._settings |= self.endpoints  # a port that was any free one stays the same
        # a thread: starting a process takes longer than the log may wait
        self._watching = threading.Thread(target=self._watch, name="bus-keeper", daemon=True)
        self._watching.start()

    def _start(self) -> tuple[Child, dict[str, str]]:
        child: Child = made_as("child", Child)("hil_server.bus.server", "bus", self._block_fd, self._lifeline)
        return child, child.start(self._settings, self._header, START_WITHIN)

    def _watch(self) -> None:
        pause, started = FIRST_PAUSE, time.monotonic()
        while not self._ending.wait(LOOK_PERIOD):
            if self._child.alive:
                continue
            if time.monotonic() - started > LIVES_LONG:
                pause = FIRST_PAUSE
            if self._ending.wait(pause):
                return
            pause = min(2.0 * pause, LONGEST_PAUSE)
            self._start_again()
            started = time.monotonic()

    def _start_again(self) -> None:
        self.restarts += 1
        self._child.end(1.0)
        logger.warning("telemetry: the bus has died (%s), starting it again; the log continues", self._child.ending)
        try:
            self._child, _ = self._start()
        except (HilError, OSError) as error:
            logger.warning("telemetry: %s", error)  # the next round tries again

    def tell(self, log: LogState) -> None:
        """How the log does. Never waits."""
        self._child.tell_now({"log": {**log, "bus_restarts": self.restarts}})

    def close(self, log: LogState) -> None:
        """Sends what is left, says goodbye to everybody and ends the process."""
        self._ending.set()
        self._watching.join(START_WITHIN + 1.0)
        self._child.tell_now({"close": dict(log)})
        if not self._child.wait(CLOSE_WITHIN):
            self._child.resume()
        self._child.end(CLOSE_WITHIN)
