"""Who sends a message: the user of this machine behind a local connection, or the name of the key with which it was made.

A connection from this machine without a key is of the user who owns its other end: of an `ipc://` address the system says so
(SO_PEERCRED), of a loopback address its table of connections (/proc/net/tcp). The user who runs the server, the machine's administrator and
those whom `[telemetry] users` names may send; everybody else is refused. With keys, the key decides, and its file's name is the name.
"""

import contextlib
import os
import pwd
import socket as sockets
import struct
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import zmq

from hil_server.bus.wire import Socket

MOST = 256  # connections that are remembered
TABLES = {sockets.AF_INET: "/proc/net/tcp", sockets.AF_INET6: "/proc/net/tcp6"}


class Peers:
    """A socket of a desk that knows who has sent what it gives. socket: bound; users: names of further users of this machine; keys: the
    socket asks for keys."""

    def __init__(self, socket: Socket, users: Iterable[str] = (), keys: bool = False) -> None:
        self._socket, self._keys = socket, keys
        self._allowed = {0, os.geteuid(), *(uid for name in users if (uid := _uid(name)) is not None)}
        self._known: OrderedDict[tuple[bytes, int], int] = OrderedDict()
        self.name, self.refusal = "", ""

    def recv_multipart(self, flags: int) -> list[bytes]:
        """The next message. `name`: who has sent it; `refusal`: why it may not, "" when it may. Raises zmq.ZMQError as the socket does."""
        frames = self._socket.recv_multipart(flags, copy=False)
        self.name, self.refusal = self._who(frames)
        return [frame.bytes for frame in frames]

    def send_multipart(self, frames: list[bytes], flags: int) -> None:
        """As the socket's."""
        self._socket.send_multipart(frames, flags)

    def _who(self, frames: list[zmq.Frame]) -> tuple[str, str]:
        if self._keys:
            with contextlib.suppress(zmq.ZMQError, UnicodeDecodeError):
                return str(frames[-1].get("User-Id")), ""
        try:
            uid = self._uid_of(frames[0].bytes, frames[-1].get(zmq.SRCFD))
        except (OSError, ValueError, zmq.ZMQError):
            return "", "nothing says which user of this machine sends this: use keys ([telemetry] keys)"
        name = _name(uid)
        if uid in self._allowed:
            return name, ""
        return name, f"user {name} may not command this run: [telemetry] users names who may, beside {_name(os.geteuid())}"

    def _uid_of(self, identity: bytes, descriptor: int) -> int:
        """The owner of the connection's other end. Raises OSError where nothing says so."""
        with sockets.socket(fileno=os.dup(descriptor)) as connection:
            if connection.family == sockets.AF_UNIX:
                _, uid, _ = struct.unpack("3i", connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, 12))
                return int(uid)
            here, there = connection.getsockname()[:2], connection.getpeername()[:2]
            known = self._known.get((identity, there[1]))
            if known is None:
                known = _owner(connection.family, there, here)
                self._known[identity, there[1]] = known
                if len(self._known) > MOST:
                    self._known.popitem(last=False)
            return known


def _owner(family: int, local: tuple[str, int], remote: tuple[str, int]) -> int:
    """User id of the socket of this machine with these two ends. Raises OSError when there is none, as behind a forwarded port."""
    ends = [_hexadecimal(family, *local), _hexadecimal(family, *remote)]
    for line in Path(TABLES[sockets.AddressFamily(family)]).read_text().splitlines()[1:]:
        columns = line.split()
        if columns[1:3] == ends:
            return int(columns[7])
    raise OSError("no such connection")


def _hexadecimal(family: int, address: str, port: int) -> str:
    """As /proc/net/tcp writes an address: words of 32 bits in the machine's byte order."""
    packed = sockets.inet_pton(family, address)
    words = struct.unpack(f">{len(packed) // 4}I", packed)
    return "".join(f"{sockets.htonl(word):08X}" for word in words) + f":{port:04X}"


@lru_cache
def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


@lru_cache
def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"number {uid}"
