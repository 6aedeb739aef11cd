"""What the server does beside the loop while a trip is recovered from: devices that need more than their cyclic words are set up again.

The loop itself leads the setpoints to the measured legs, enables the drives and decides when motion is let go
(`rt_kernels.safety.limits`). A node that has lost its set-up, a sensor whose stream went elsewhere, needs requests that no tick can make:
ports that have a method `recover` are asked for it here, in a thread of its own, so that the supervisor continues signing.
"""

import logging
from collections.abc import Sequence

import numpy as np

from hil_server.log.record import record_dtype
from hil_server.log.recoveries import FOLLOWING, RECOVER, RECOVERING, name_of_arguments, standing_in_words, why_not_begun
from hil_server.roles import Port
from rt_kernels.codes import fault_names
from rt_kernels.doors import threading
from rt_kernels.ring import SharedBlock

logger = logging.getLogger(__name__)
LOOK_AT_ONCE = 2000  # records


class Recoverer:
    """Looks for recoveries in the samples of a run."""

    def __init__(self, block: SharedBlock, devices: Sequence[Port]) -> None:
        self._block, self._next, self._dtype = block, block.head, record_dtype(block.aux_count)
        self._devices = [device for device in devices if hasattr(device, "recover")]
        self._thread: threading.Thread | None = None
        self._state, self._faults = -1, 0

    def look(self) -> None:
        """Sees what came since the last look: starts the devices' part of a recovery, tells how one went."""
        while True:
            first, data = self._block.look(self._next, LOOK_AT_ONCE)
            records = np.frombuffer(data, self._dtype)
            self._next = first + len(records)
            state, asked = records["safety_state"], records["command_code"] == RECOVER
            for i in np.flatnonzero((state != np.concatenate([[self._state], state[:-1]])) | asked):
                before = int(state[i - 1]) if i else self._state
                faults = int(records["faults"][i - 1]) if i else self._faults
                self._see(records[i], before, faults)
            if len(records):
                self._state, self._faults = int(state[-1]), int(records["faults"][-1])
            if len(records) < LOOK_AT_ONCE:
                return

    def _see(self, record: np.void, before: int, faults: int) -> None:
        state = int(record["safety_state"])
        if state == RECOVERING and before != RECOVERING:
            by = name_of_arguments(record["command_arg"])
            logger.info("\nrecovery%s: %s", f" asked for by {by}" if by else "", ", ".join(fault_names(faults)))
            self._begin()
        elif before == RECOVERING and state == FOLLOWING:
            logger.info("\nrecovered: the run is held; park returns the platform to its home position")
        elif before == RECOVERING and state != RECOVERING:
            logger.warning("\nnot recovered: %s", standing_in_words(int(record["faults"])))
        elif record["command_code"] == RECOVER and state != RECOVERING:
            logger.warning("\nnot recovered: %s", why_not_begun(record))

    def _begin(self) -> None:
        if self._devices and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._set_up, name="recovery", daemon=True)
            self._thread.start()

    def _set_up(self) -> None:
        for device in self._devices:
            try:
                device.recover()
            except (OSError, ValueError) as error:  # the recovery is then given up by the safety stage, which names what stands
                logger.warning("\n%s: %s", type(device).__name__, error)

    def end(self, timeout_s: float = 5.0) -> None:
        """Waits for the devices' part, so that no device is set up while it is being closed."""
        if self._thread is not None:
            self._thread.join(timeout_s)
