"""What the server does beside the loop while a trip is recovered from: devices that need more than their cyclic words are set up again.

The loop itself leads the setpoints to the measured legs, enables the drives and decides when motion is let go
(`rt_kernels.safety.limits`). A node that has lost its set-up, a sensor whose stream went elsewhere, needs requests that no tick can make:
ports that have a method `recover` are asked for it here, in a thread of its own, so that the supervisor continues signing. They wait for
no answer longer than the recovery lasts: what is left of one that was given up would stand in the way of the next.
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from hil_server.log.record import record_dtype
from hil_server.log.recoveries import FOLLOWING, RECOVER, RECOVERING, name_of_arguments, standing_in_words, why_not_begun
from hil_server.roles import Port
from rt_kernels.codes import fault_names
from rt_kernels.doors import threading, time
from rt_kernels.ring import SharedBlock

logger = logging.getLogger(__name__)
LOOK_AT_ONCE = 2000  # records


@runtime_checkable
class Recoverable(Protocol):
    """A port whose device needs more than its cyclic words."""

    def recover(self, left_s: Callable[[], float]) -> None:
        """Sets the device up again beside the loop. left_s(): seconds that the recovery still has. Raises OSError, ValueError."""


class SetUp:
    """The devices' part of one recovery, in a thread. limit_s: how long the recovery may take; before: of the recovery before it."""

    def __init__(self, devices: Sequence[Recoverable], limit_s: float, before: "SetUp | None") -> None:
        self._devices, self._before = devices, before
        self._until = time.monotonic() + limit_s
        self._thread = threading.Thread(target=self._run, name="recovery", daemon=True)
        self._thread.start()

    def left_s(self) -> float:
        """Seconds that the recovery still has."""
        return self._until - time.monotonic()

    def break_off(self) -> None:
        """No answer is waited for any more but the one that is due."""
        self._until = -math.inf

    def join(self, timeout_s: float | None = None) -> None:
        """Waits for its end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        if self._before is not None:
            self._before.join()
            self._before = None
        for device in self._devices:
            try:
                device.recover(self.left_s)
            except (OSError, ValueError) as error:  # the recovery is then given up by the safety stage, which names what stands
                logger.warning("\n%s: %s", type(device).__name__, error)


class Recoverer:
    """Looks for recoveries in the samples of a run. limit_s: after it the safety stage gives one up; stood: all faults of the samples so
    far."""

    def __init__(self, block: SharedBlock, devices: Sequence[Port], limit_s: float) -> None:
        self._limit_s = limit_s
        self._block, self._next, self._dtype = block, block.head, record_dtype(block.aux_count)
        self._devices = [device for device in devices if isinstance(device, Recoverable)]
        self._set_up: SetUp | None = None
        self._state, self._faults, self.stood = -1, 0, 0

    def look(self) -> None:
        """Sees what came since the last look: starts the devices' part of a recovery, tells how one went."""
        while True:
            first, data = self._block.look(self._next, LOOK_AT_ONCE)
            records = np.frombuffer(data, self._dtype)
            self._next = first + len(records)
            self.stood |= int(np.bitwise_or.reduce(records["faults"]))
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
            if self._devices:
                self._set_up = SetUp(self._devices, self._limit_s, self._set_up)
        elif before == RECOVERING and state == FOLLOWING:
            logger.info("\nrecovered: the run is held; park returns the platform to its home position")
        elif before == RECOVERING and state != RECOVERING:
            logger.warning("\nnot recovered: %s", standing_in_words(int(record["faults"])))
            self.break_off()
        elif record["command_code"] == RECOVER and state != RECOVERING:
            logger.warning("\nnot recovered: %s", why_not_begun(record))

    def break_off(self) -> None:
        """The devices' part of the last recovery waits for no answer any more but the one that is due."""
        if self._set_up is not None:
            self._set_up.break_off()

    def end(self, timeout_s: float = 5.0) -> None:
        """Breaks the devices' part off and waits for its end, so that no device is set up while it is being closed."""
        self.break_off()
        if self._set_up is not None:
            self._set_up.join(timeout_s)
