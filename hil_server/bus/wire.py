"""Messages between the telemetry process and its clients: ZeroMQ, always a topic and one msgpack map with string keys.

On any address but the machine's own, CURVE keys are required: the server knows the public keys it lets in (`Curve.allowed`), and a small
ZAP handler (ZeroMQ RFC 27) answers for them. A socket never waits: sending and receiving are non-blocking, queues are bounded.

Connections of machines that have vanished are found by TCP keep-alive. ZeroMQ's own heartbeat ends the process when a connection breaks
while its queue is full (libzmq issues 4364, 3937, 4767), so no server socket has one.
"""

import errno
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import zmq
import zmq.auth
import zmq.utils.z85

from hil_server.errors import ConfigurationError, DeviceError

TELEMETRY_ADDRESS = "tcp://127.0.0.1:9770"
COMMAND_ADDRESS = "tcp://127.0.0.1:9771"
HAND_ADDRESS = "tcp://127.0.0.1:9772"

FULL, SLOW, STATUS, REQUIREMENTS = b"full", b"slow", b"status", b"requirements"
COMMAND, DESCRIBE, DESK, REPLY, HAND = b"command", b"describe", b"desk", b"reply", b"hand"

MAX_REQUEST_BYTES = 16384
HANDSHAKE_MS = 5000  # a peer that has not finished its greeting by then is cut off
# a silent connection is asked after 10 s, and given up after three questions
KEEP_ALIVE = {zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 10, zmq.TCP_KEEPALIVE_INTVL: 5, zmq.TCP_KEEPALIVE_CNT: 3}
ZAP_ENDPOINT = "inproc://zeromq.zap.01"
ZAP_DOMAIN = "hil-server"
Socket = zmq.Socket[bytes]
Context = zmq.Context[Socket]
S = TypeVar("S", bound="zmq.Socket[Any]")
Message = dict[str, Any]  # as it came: what a stranger may have sent


def boot_id() -> str:
    """Names this machine since it was started: processes with the same name have the same CLOCK_MONOTONIC. Empty where the system has
    none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


class MalformedError(ValueError):
    """A message that is not of this protocol."""


def pack(message: Mapping[str, object]) -> bytes:
    """The message as MessagePack."""
    found: bytes = msgpack.packb(message, use_bin_type=True)
    return found


def unpack(data: bytes, small: bool = False) -> Message:
    """The map in `data`. small: hold it to the size of a request. Raises MalformedError."""
    limits = {"max_str_len": 4096, "max_bin_len": 4096, "max_array_len": 64, "max_map_len": 64} if small else {}
    try:
        message = msgpack.unpackb(data, raw=False, strict_map_key=True, **limits)
    except Exception as error:  # msgpack raises a dozen kinds, from ValueError to UnicodeDecodeError to its own
        raise MalformedError(f"not a msgpack message: {error}") from None
    if not isinstance(message, dict) or not all(isinstance(key, str) for key in message):
        raise MalformedError("not a msgpack map with string keys")
    return message


# --------------------------------------------------------------------------------------------------------------- addresses


@dataclass(frozen=True)
class Curve:
    """Keys of a server: its own pair and the public keys of the clients that it lets in, Z85 text of 40 characters; names: of these."""

    public_key: str
    secret_key: str
    allowed: tuple[str, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, key in (("public_key", self.public_key), ("secret_key", self.secret_key), *(("allowed", key) for key in self.allowed)):
            if not _is_key(key):
                raise ConfigurationError(f"telemetry.curve.{name}: not a CURVE key (40 characters of Z85)")
        if not self.allowed:
            raise ConfigurationError("telemetry.curve.allowed: empty: name the public keys of the clients to let in")

    @classmethod
    def from_folder(cls, folder: str | os.PathLike[str]) -> "Curve":
        """Keys from files as ZeroMQ's tools write them: `server.key_secret`, and `clients/*.key` of those to let in.

        Raises ConfigurationError that names the file.
        """
        server, clients = Path(folder) / "server.key_secret", sorted((Path(folder) / "clients").glob("*.key"))
        public, secret = _certificate(server)
        if secret is None:
            raise ConfigurationError(f"telemetry.keys: {server}: no secret key in it")
        return cls(public, secret, tuple(_certificate(client)[0] for client in clients), tuple(client.stem for client in clients))


def make_keys(folder: str | os.PathLike[str], clients: tuple[str, ...]) -> None:
    """New keys in the form that `Curve.from_folder` reads. Each client needs `clients/NAME.key_secret` and the server's public key."""
    people = Path(folder) / "clients"
    people.mkdir(parents=True, exist_ok=True)
    zmq.auth.create_certificates(folder, "server")
    for name in clients:
        zmq.auth.create_certificates(people, name)
    for secret in Path(folder).rglob("*.key_secret"):
        secret.chmod(0o600)


def _certificate(path: Path) -> tuple[str, str | None]:
    try:
        public, secret = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"telemetry.keys: {path}: {getattr(error, 'strerror', None) or error}") from None
    return public.decode(), None if secret is None else secret.decode()


def _is_key(key: object) -> bool:
    try:
        return isinstance(key, str) and len(key) == 40 and len(zmq.utils.z85.decode(key)) == 32
    except Exception:
        return False


def is_loopback(host: str) -> bool:
    """Whether the host name or address is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_local(address: str) -> bool:
    """Can only this machine reach the address? Raises ValueError when it is none that this program uses."""
    scheme, _, rest = address.partition("://")
    if scheme in ("ipc", "inproc") and rest:
        return True
    host, _, port = rest.rpartition(":")
    if scheme != "tcp" or not host or not (port == "*" or (port.isdecimal() and int(port) < 65536)):
        raise ValueError(f"{address!r} is not an address of the form tcp://HOST:PORT or ipc://PATH")
    return is_loopback(host)


# setting of the processes -> key of the configuration, which a message names
CONFIGURED = {"telemetry_address": "publish", "command_address": "command", "hand_address": "hand_controller",
              "plotjuggler_address": "plotjuggler"}  # fmt: skip


def check_address(key: str, address: str, curve: Curve | None) -> None:
    """Raises ConfigurationError for a malformed address, and for one that other machines reach when there are no keys."""
    try:
        local = is_local(address)
    except ValueError as error:
        raise ConfigurationError(f"telemetry.{CONFIGURED.get(key, key)}: {error}") from None
    if not local and curve is None:
        key = CONFIGURED.get(key, key)
        raise ConfigurationError(f"telemetry.{key}: other machines can reach {address}: set telemetry.keys, or use 127.0.0.1")


def bind(context: Context, kind: int, key: str, address: str, curve: Curve | None, queue: int, shared: bool = True) -> Socket:
    """A bound socket with bounded queues that never waits. shared: an ipc:// address is for further users of this machine too.
    Raises ConfigurationError that names the key and the address, DeviceError where another program has it."""
    check_address(key, address, curve)
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.SNDHWM, queue)
    socket.setsockopt(zmq.RCVHWM, queue)
    socket.setsockopt(zmq.IMMEDIATE, 1)
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_REQUEST_BYTES)
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    for option, value in KEEP_ALIVE.items():
        socket.setsockopt(option, value)
    if curve is not None and address.startswith("tcp"):
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, curve.public_key.encode())
        socket.setsockopt(zmq.CURVE_SECRETKEY, curve.secret_key.encode())
        socket.setsockopt(zmq.ZAP_DOMAIN, ZAP_DOMAIN.encode())
    try:
        socket.bind(address)
        if address.startswith("ipc://"):
            os.chmod(address.removeprefix("ipc://"), 0o666 if shared else 0o600)
    except OSError as error:
        socket.close()
        raise ConfigurationError(f"telemetry.{key}: {address}: {error.strerror}") from None
    except zmq.ZMQError as error:
        socket.close()
        refusal = DeviceError if error.errno == errno.EADDRINUSE else ConfigurationError
        raise refusal(f"telemetry.{CONFIGURED.get(key, key)}: cannot bind {address}: {error.strerror}") from None
    return socket


def connect(
    context: zmq.Context[S], kind: int, address: str, queue: int, server_key: str | None = None, keys: tuple[str, str] | None = None,
    immediate: bool = False,
) -> S:  # fmt: skip
    """A connected socket of a client. server_key: public key of the server; keys: the client's own (public, secret). immediate: messages
    wait in the queue of a server that is there, never for one to come."""
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IMMEDIATE, immediate)
    socket.setsockopt(zmq.SNDHWM, queue)
    socket.setsockopt(zmq.RCVHWM, queue)
    if server_key is not None:
        if keys is None:
            raise ValueError("a server with a key needs the client's own (public, secret) pair too")
        socket.setsockopt(zmq.CURVE_SERVERKEY, server_key.encode())
        socket.setsockopt(zmq.CURVE_PUBLICKEY, keys[0].encode())
        socket.setsockopt(zmq.CURVE_SECRETKEY, keys[1].encode())
    socket.connect(address)
    return socket


class DoorKeeper:
    """Answers ZAP requests: lets in the CURVE keys on the list only. Create it before the sockets are bound."""

    def __init__(self, context: Context, curve: Curve) -> None:
        self.socket = context.socket(zmq.REP)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.bind(ZAP_ENDPOINT)
        names = curve.names or tuple(f"key {key[:8]}" for key in curve.allowed)
        self._allowed = {zmq.utils.z85.decode(key): name.encode() for key, name in zip(curve.allowed, names, strict=True)}
        self.refused = 0

    def serve(self) -> None:
        """Answers all requests that wait."""
        while self.socket.poll(0):
            frames = self.socket.recv_multipart(zmq.NOBLOCK)
            request_id = frames[1] if len(frames) > 1 else b""
            known = len(frames) == 7 and frames[5] == b"CURVE" and frames[6] in self._allowed
            self.refused += not known
            verdict = [b"200", b"OK"] if known else [b"400", b"key not on the list"]
            user = self._allowed[frames[6]] if known else b""  # what the socket then says of each message (User-Id)
            self.socket.send_multipart([b"1.0", request_id, *verdict, user, b""], zmq.NOBLOCK)
