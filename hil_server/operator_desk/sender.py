"""The other end of the hand-controller socket: what a hand-controller process sends with."""

from collections.abc import Sequence

import zmq

from hil_server.bus.desks import check_hand
from hil_server.bus.wire import HAND, HAND_ADDRESS, connect, pack
from rt_kernels.doors import made_as, time

QUEUE = 256  # records that can wait for the thread that sends: more than a device has to say at once after a hold-up


class HandSender:
    """Sends records of one station. Sending never waits: while the server is away, records are dropped, not queued for later."""

    def __init__(
        self,
        station: int,
        address: str = HAND_ADDRESS,
        server_key: str | None = None,
        keys: tuple[str, str] | None = None,
        context: "zmq.Context[zmq.Socket[bytes]] | None" = None,
    ) -> None:
        self.station = station
        self._sequence = 0
        context = context or made_as("messages", zmq).Context.instance()
        self._socket = connect(context, zmq.DEALER, address, QUEUE, server_key, keys, immediate=True)

    def wait(self, timeout_s: float) -> bool:
        """Waits until a server is there to take records, for timeout_s at most. Returns whether there is one."""
        return bool(self._socket.poll(int(1000 * timeout_s), zmq.POLLOUT))

    def send(self, axes: Sequence[float], buttons: int, device_time_s: float | None = None) -> bool:
        """One record. axes: six numbers, -1...1; buttons: bit 0 the deadman; device_time_s: monotonic, now when not given.

        Returns False when it was dropped. Raises ValueError (MalformedError) for values out of range.
        """
        record = {
            "seq": self._sequence,
            "t": time.monotonic() if device_time_s is None else device_time_s,
            "id": self.station,
            "axes": [float(a) for a in axes],
            "buttons": buttons,
        }
        check_hand(record)
        self._sequence += 1
        try:
            self._socket.send_multipart([HAND, pack(record)], zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def __enter__(self) -> "HandSender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
