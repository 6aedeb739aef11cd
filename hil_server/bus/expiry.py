"""Until when a request is valid, and whether it came before: what every desk asks before it obeys."""

from collections import OrderedDict
from collections.abc import Callable

from hil_server.bus.wire import Message, boot_id

VALID_S, VALID_MIN_S, VALID_MAX_S = 1.0, 0.01, 10.0  # how long a command is valid: of a client that does not say, and what it may say
MOST = 256  # sessions that are remembered


class UntilWhen:
    """clock: CLOCK_MONOTONIC, s."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._boot = clock, boot_id()
        self._last: OrderedDict[str, int] = OrderedDict()  # session → number of its newest command

    def __call__(self, request: Message) -> float | None:
        """Until when the command is valid, on our clock; None for a request that says it wrongly. Of a client on this machine `valid_s`
        from when it was sent, else from now."""
        valid, sent, now = request.get("valid_s", VALID_S), request.get("sent_ns"), self._clock()
        if type(valid) not in (int, float) or not VALID_MIN_S <= valid <= VALID_MAX_S or not (sent is None or type(sent) is int):
            return None
        if sent is not None and self._boot and request.get("boot") == self._boot:
            now = min(now, sent * 1e-9)
        return float(now + valid)

    def is_repeated(self, key: str, number: object, request: Message) -> bool:
        """Whether a command of a session came before: their numbers rise. Those without a session cannot be told apart."""
        if "session" not in request:
            return False
        if type(number) is not int or number <= self._last.get(key, -1):
            return True
        self._last[key] = number
        self._last.move_to_end(key)
        if len(self._last) > MOST:
            self._last.popitem(last=False)
        return False
