"""What bus and clients have of zmq in a world: sockets that are one end of a pair, whose other end the clients of this world share."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self

import msgpack
import zmq

from drivers.simulated import world
from hil_server.world.surroundings import Socket, socketpair

# of the bus of a world: no other run has them
COMMAND_AT, HAND_AT, PICTURE_AT = (f"tcp://127.0.0.{k}:*" for k in (1, 2, 3))
clients: dict[str, Socket] = {}  # address → the clients' end


class Frames:
    """One end: whole messages of frames, as zmq's sockets give and take them."""

    _end: Socket
    _address = ""
    _name: tuple[bytes, ...] = ()  # what a client's messages begin with

    def setsockopt(self, *about: object) -> None:
        """Nothing to set."""

    def bind(self, address: str) -> None:
        """Clients find it under this address."""
        self._end, clients[address] = socketpair()
        self._address = address

    def connect(self, address: str) -> None:
        """A client of what is bound there. Raises KeyError when nothing is."""
        self._end, self._name = clients[address], (b"client of %s" % address.encode(),)

    def get_string(self, option: int) -> str:
        """Its address."""
        return self._address

    def fileno(self) -> int:
        """Its descriptor in the world."""
        return self._end.fileno()

    def recv_multipart(self, flags: int = 0) -> list[bytes]:
        """The next message. Raises zmq.Again when there is none."""
        return received(self._end)

    def send_multipart(self, frames: Sequence[bytes], flags: int = 0) -> None:
        """To the client that the first frame names, or as a client. Raises zmq.Again when the other end is gone."""
        try:
            sent(self._end, [*self._name, *frames])
        except OSError:
            raise zmq.Again from None

    def close(self) -> None:
        """Both ends are gone, a client's when the bus ends."""
        if self._address:
            clients.pop(self._address).close()
            self._end.close()


def received(end: Socket) -> list[bytes]:
    """The next message that waits at this end. Raises zmq.Again when there is none, or the end is closed."""
    try:
        data = end.recv(1 << 20)
    except OSError:
        raise zmq.Again from None
    if not data:
        raise zmq.Again
    found: list[bytes] = msgpack.unpackb(data)
    return found


def sent(end: Socket, frames: Sequence[bytes]) -> None:
    """Frames as one message to the other end."""
    end.send(msgpack.packb(list(frames)))


class Context:
    """Makes them."""

    def __init__(self) -> None:
        self._made: list[Frames] = []

    @classmethod
    def instance(cls) -> Self:
        """Of a client."""
        return cls()

    def socket(self, kind: int) -> Frames:
        """A new one, whatever its kind."""
        self._made.append(Frames())
        return self._made[-1]

    def destroy(self, linger: int = 0) -> None:
        """All are closed."""
        for one in self._made:
            one.close()


class Poller:
    """As zmq.Poller."""

    def __init__(self) -> None:
        self._ends: list[Any] = []

    def register(self, end: Any, flags: int) -> None:
        """Waits for this one, too."""
        self._ends.append(end)

    def poll(self, timeout_ms: float | None = None) -> list[tuple[Any, int]]:
        """Those on which something waits, after at most the time."""
        found = world.wait_readable([end.fileno() for end in self._ends], world.NEVER_NS if timeout_ms is None else round(1e6 * timeout_ms))
        return [(end, zmq.POLLIN) for end in self._ends if end.fileno() in found]


module = SimpleNamespace(Context=Context, Poller=Poller)
