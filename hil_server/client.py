"""What a script imports to watch and command a run, on this machine or another.

    from hil_server.client import Client

    with Client() as stand:
        print(stand.status()["run"])
        for batch in stand.subscribe(["F_T", "phase"]):
            print(batch.t, batch["F_T"][-1])
            if abs(batch["F_T"][:, 0]).max() > 4000.0:
                print("held at tick", stand.command("hold").tick)
                break

`AsyncClient` has the same methods as coroutines. Off the server's own machine, give the server's public key and your own pair. A client
that does not read loses messages, others do not; `batch.lost` says how many.
"""

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic

import numpy as np
import zmq
import zmq.asyncio

from hil_server.bus.commands import ALWAYS, CommandError, encode
from hil_server.bus.wire import (
    COMMAND,
    COMMAND_ADDRESS,
    DESCRIBE,
    DESK,
    FULL,
    REQUIREMENTS,
    SLOW,
    STATUS,
    TELEMETRY_ADDRESS,
    MalformedError,
    Message,
    S,
    Socket,
    boot_id,
    connect,
    pack,
    unpack,
)
from hil_server.errors import DeviceError, HilError, UsageError
from hil_server.log.record import LayoutMismatchError
from rt_kernels.layout import LAYOUT_HASH
from rt_kernels.pictures import Values

QUEUE = 1000
LEAVE_WITHIN = 0.5  # s
KEEP_EVERY = 1.0  # s between two signs of life of a client that holds the desk
TOPICS = {"full": FULL, "slow": SLOW, "status": STATUS, "requirements": REQUIREMENTS}


class NoAnswerError(DeviceError):
    """No answer in time: no run, wrong address, or a key that the server does not know."""


class RefusedError(UsageError):
    """The server answered, and the answer is no. kind: malformed, arguments, rate, held, who (a user of the machine who may not), repeated,
    full, layout, unhandled, not_taken (it did not act and will not), taken_unseen (it was taken, and its result is not known),
    under_way (a recovery that has not ended yet)."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        super().__init__(text)


@dataclass(frozen=True)
class Acknowledgement:
    """The loop took the command at `tick` (run time `t`, s). cleared: of `recover`, the names of the faults that it has cleared."""

    command: str
    tick: int
    t: float
    sequence: int
    cleared: tuple[str, ...] = ()


@dataclass
class Batch:
    """One message of telemetry.

    channels: name → array, (n,) or (n, k) for `full`; for `slow` `last`, `minimum`, `maximum`, `any_bits` map names to values. lost:
    messages of this topic lost on the way just before this one. dropped: samples that the ring has lost since the start of the run.
    head: the rest of the message.
    """

    topic: str
    t: float
    t_ns: int
    tick: int
    run: str
    dropped: int
    sequence: int
    lost: int
    channels: dict[str, np.ndarray] = field(default_factory=dict)
    last: Values = field(default_factory=dict)
    minimum: Values = field(default_factory=dict)
    maximum: Values = field(default_factory=dict)
    any_bits: Values = field(default_factory=dict)
    head: Message = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self.channels[name]
        except KeyError:
            raise KeyError(f"no channel {name!r} in this batch; it has {', '.join(self.channels)}") from None


class _Decoder:
    """Messages into batches; counts what was lost on the way."""

    def __init__(self, channels: Iterable[str] | None) -> None:
        self._channels = None if channels is None else list(channels)
        self._sequence: dict[tuple[str, str], int] = {}

    def batch(self, frames: list[bytes]) -> Batch:
        if len(frames) != 2:
            raise MalformedError(f"a telemetry message has two parts, this one {len(frames)}")
        topic, message = frames[0].decode(errors="replace"), unpack(frames[1])
        if message.get("layout") != LAYOUT_HASH:
            raise LayoutMismatchError("the server", str(message.get("layout")))
        try:
            return self._batch(topic, message)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MalformedError(f"not a message of telemetry: {type(error).__name__}: {error}") from None

    def _batch(self, topic: str, message: Message) -> Batch:
        run, sequence = message["run"], message["sequence"]
        before = self._sequence.get((topic, run))
        self._sequence[topic, run] = sequence
        batch = Batch(
            topic=topic,
            t=message.pop("t"),
            t_ns=message.pop("t_ns"),
            tick=message.pop("tick"),
            run=message.pop("run"),
            dropped=message.pop("dropped"),
            sequence=message.pop("sequence"),
            lost=0 if before is None else max(0, sequence - before - 1),
        )
        batch.channels = {name: np.asarray(values) for name, values in self._pick(message.pop("channels", {})).items()}
        batch.last = self._pick(message.pop("last", {}))
        batch.minimum = self._pick(message.pop("min", {}))
        batch.maximum = self._pick(message.pop("max", {}))
        batch.any_bits = self._pick(message.pop("any", {}))
        batch.head = message
        return batch

    def _pick(self, values: Values) -> Values:
        if self._channels is None:
            return dict(values.items())
        return {name: values[name] for name in self._channels if name in values}


class _Requests:
    """Numbered requests and what their answers mean."""

    def __init__(self, name: str, valid_s: float) -> None:
        self._name, self._valid_s, self.number = name, valid_s, 0
        self._session, self._boot = secrets.token_hex(16), boot_id()

    def frames(self, topic: bytes, body: Mapping[str, object]) -> list[bytes]:
        self.number += 1
        when = {"valid_s": self._valid_s, "sent_ns": time.monotonic_ns(), "boot": self._boot} if topic == COMMAND else {}
        return [topic, pack({**body, **when, "id": self.number, "client": self._name, "session": self._session})]

    def sign_of_life(self) -> list[bytes]:
        """Keeps the desk, without waiting for the answer."""
        return [DESK, pack({"keep": True, "id": 0, "client": self._name, "session": self._session})]

    def answer(self, frames: list[bytes]) -> Message | None:
        """The answer to the newest request, None for anything else. Raises what the answer says."""
        if len(frames) != 2:
            return None
        message = unpack(frames[1])
        if message.get("id") not in (self.number, None):
            return None  # the late answer to a request that was given up
        if message.get("layout") != LAYOUT_HASH:
            raise LayoutMismatchError("the server", str(message.get("layout")))
        if not message.get("ok"):
            raise RefusedError(str(message.get("kind")), str(message.get("error")))
        return message


def _acknowledgement(answer: Message) -> Acknowledgement:
    return Acknowledgement(answer["command"], answer["tick"], answer["t"], answer["sequence"], tuple(answer.get("cleared", ())))


def _command(name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
    encode(name, arguments)  # wrong arguments are found here already, without asking the server
    return {"command": name, "args": arguments, "layout": LAYOUT_HASH}


class Addresses(Generic[S]):
    """Where and as whom. Shared by both clients."""

    def __init__(
        self,
        telemetry: str = TELEMETRY_ADDRESS,
        command: str = COMMAND_ADDRESS,
        *,
        name: str = "",
        server_key: str | None = None,
        keys: tuple[str, str] | None = None,
        timeout_s: float = 2.0,
        valid_s: float = 1.0,
    ) -> None:
        """telemetry, command: addresses of the server. name: shown to others while this client holds the desk. server_key: public key
        of the server; keys: own (public, secret) pair. timeout_s: how long to wait for an answer. valid_s: a command that the loop comes
        to later than that never acts (an abort does)."""
        self.telemetry_address, self.command_address = telemetry, command
        self.server_key, self.keys, self.timeout_s = server_key, keys, timeout_s
        self._requests = _Requests(name, valid_s)
        self._socket: S | None = None
        self._visiting = False

    def _open(self, context: zmq.Context[S], kind: int, address: str, queue: int) -> S:
        return connect(context, kind, address, queue, self.server_key, self.keys)

    def _no_answer(self, address: str) -> NoAnswerError:
        return NoAnswerError(f"no answer from {address} within {self.timeout_s:g} s: is a run active there, and is the key known to it?")

    def _subscriber(self, context: zmq.Context[S], topic: str) -> S:
        if topic not in TOPICS:
            raise UsageError(f"unknown topic {topic!r}; there are {', '.join(TOPICS)}")
        socket = self._open(context, zmq.SUB, self.telemetry_address, QUEUE)
        socket.setsockopt(zmq.SUBSCRIBE, TOPICS[topic])
        return socket

    def _new_desk(self) -> None:
        """After a lost answer the connection is opened again: nothing of the old request may arrive later."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class Client(Addresses[Socket]):
    """Blocking client. Use as a context manager or call `close`. Not for several threads at once."""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    _keeper: "_Keeper | None" = None

    def close(self) -> None:
        """Leaves the desk and closes the connection to the run; a later request opens it again."""
        if self._keeper is not None:
            self._keep(False)
            with contextlib.suppress(HilError):
                self._ask(DESK, {"leave": True}, LEAVE_WITHIN)
        self._new_desk()

    def _keep(self, on: bool) -> None:
        """Signs of life to the desk, as long as this client holds it."""
        if on and self._keeper is None:
            socket = self._open(zmq.Context.instance(), zmq.DEALER, self.command_address, QUEUE)
            self._keeper = _Keeper(socket, self._requests.sign_of_life)
        elif not on and self._keeper is not None:
            self._keeper.end()
            self._keeper = None

    def subscribe(self, channels: Iterable[str] | None = None, topic: str = "full", timeout_s: float | None = None) -> Iterator[Batch]:
        """Batches as they come, for ever. channels: names to keep, None for all. topic: full, slow, status.

        timeout_s: longest silence, None for any. Raises NoAnswerError after it, LayoutMismatchError when the server has another table.
        """
        socket = self._subscriber(zmq.Context.instance(), topic)
        decoder = _Decoder(channels)
        try:
            while True:
                if not socket.poll(None if timeout_s is None else int(1000 * timeout_s)):
                    raise NoAnswerError(f"no telemetry from {self.telemetry_address} within {timeout_s:g} s")
                yield decoder.batch(socket.recv_multipart())
        finally:
            socket.close()

    def command(self, name: str, **arguments: object) -> Acknowledgement:
        """Asks for a command of the table and waits until the loop has taken it.

        Raises CommandError (no such command or argument), RefusedError (with its `kind`), NoAnswerError.
        """
        taken = _acknowledgement(self._ask(COMMAND, _command(name, arguments)))
        self._keep(self._keeper is not None or not self._visiting and name not in ALWAYS)
        return taken

    def tune(self, parameter: str, value: float) -> Acknowledgement:
        """Changes a tunable parameter of the run (`describe()["tunables"]` says which) and waits until the loop has taken it; the value
        then moves there at its own rate. Raises as `command` does."""
        return self.command("tune", number=parameter, value=value)

    def again(self, before_contact_s: float = 30.0, time_s: float | None = None) -> Acknowledgement:
        """Ends the flight of a rehearsal and flies again from so long before its first contact, or from a run time of it; the new flight
        waits for a centred hand controller. Raises as `command` does: a stand of hardware cannot be restored."""
        return self.command("again", before_contact_s=before_contact_s, time_s=-1.0 if time_s is None else time_s)

    def status(self) -> Message:
        """State of log, ring and desk now."""
        return self._ask(STATUS, {})

    def describe(self) -> Message:
        """Fields with units and meaning, auxiliary channels, configuration, delay ledger, tunable parameters of the run."""
        return self._ask(DESCRIBE, {})

    def take_desk(self, over: bool = False) -> None:
        """Holds the desk until `leave_desk`, with a sign of life a second: other clients may watch and stop, but not command. over: takes
        it from a client that has fallen silent, which the run's journal keeps. Raises RefusedError (held)."""
        self._ask(DESK, {"take": True, "over": over})
        self._keep(not self._visiting)

    def leave_desk(self) -> None:
        """Gives the desk back. Raises RefusedError, NoAnswerError."""
        self._keep(False)
        self._ask(DESK, {"leave": True})

    @contextlib.contextmanager
    def visit(self) -> Iterator["Client"]:
        """For a single command: the desk is given back after it, and the holder continues at once."""
        self._visiting = True
        try:
            yield self
        finally:
            self._visiting = False
            with contextlib.suppress(HilError):
                self.leave_desk()

    def _ask(self, topic: bytes, body: Mapping[str, object], timeout_s: float | None = None) -> Message:
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        if self._socket is None:
            self._socket = self._open(zmq.Context.instance(), zmq.DEALER, self.command_address, QUEUE)
        self._socket.send_multipart(self._requests.frames(topic, body), zmq.NOBLOCK)
        give_up = time.monotonic() + timeout_s + (timeout_s if topic == COMMAND else 0.0)
        while (left := give_up - time.monotonic()) > 0 and self._socket.poll(int(1000 * left)):
            answer = self._requests.answer(self._socket.recv_multipart())
            if answer is not None:
                return answer
        self._new_desk()
        raise self._no_answer(self.command_address)


class _Keeper(threading.Thread):
    """Sends a sign of life every second on a connection of its own, until `end`."""

    def __init__(self, socket: Socket, message: Callable[[], list[bytes]]) -> None:
        super().__init__(name="desk keeper", daemon=True)
        self._socket, self._message, self._over = socket, message, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(KEEP_EVERY):
            _sign(self._socket, self._message)
        self._socket.close()

    def end(self) -> None:
        """No more of them."""
        self._over.set()


def _sign(socket: zmq.Socket[object], message: Callable[[], list[bytes]]) -> None:
    """One sign of life; the answers of earlier ones are dropped."""
    with contextlib.suppress(zmq.ZMQError):
        while True:
            socket.recv_multipart(zmq.NOBLOCK)
    with contextlib.suppress(zmq.ZMQError):
        socket.send_multipart(message(), zmq.NOBLOCK)


class AsyncClient(Addresses[zmq.asyncio.Socket]):
    """The same for asyncio. Use as an asynchronous context manager or call `close`."""

    _lock: asyncio.Lock | None = None

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._keeper is not None:
            with contextlib.suppress(HilError, TimeoutError):
                await asyncio.wait_for(self.leave_desk(), LEAVE_WITHIN)
        self.close()

    _keeper: "asyncio.Task[None] | None" = None

    def close(self) -> None:
        """Closes the connection to the run. A desk that it holds is silent from then on: `leave_desk` first."""
        self._keep(False)
        self._new_desk()

    def _keep(self, on: bool) -> None:
        if on and self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._signs())
        elif not on and self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None

    async def _signs(self) -> None:
        socket = self._open(zmq.Context.instance(), zmq.DEALER, self.command_address, QUEUE)
        try:
            while True:
                await asyncio.sleep(KEEP_EVERY)
                _sign(socket, self._requests.sign_of_life)
        finally:
            socket.close()

    async def subscribe(
        self, channels: Iterable[str] | None = None, topic: str = "full", timeout_s: float | None = None
    ) -> AsyncIterator[Batch]:
        """As `Client.subscribe`."""
        socket = self._subscriber(zmq.asyncio.Context.instance(), topic)
        decoder = _Decoder(channels)
        try:
            while True:
                if not await socket.poll(None if timeout_s is None else int(1000 * timeout_s)):
                    raise NoAnswerError(f"no telemetry from {self.telemetry_address} within {timeout_s:g} s")
                yield decoder.batch(await socket.recv_multipart())
        finally:
            socket.close()

    async def command(self, name: str, **arguments: object) -> Acknowledgement:
        """As `Client.command`."""
        taken = _acknowledgement(await self._ask(COMMAND, _command(name, arguments)))
        self._keep(self._keeper is not None or name not in ALWAYS)
        return taken

    async def tune(self, parameter: str, value: float) -> Acknowledgement:
        """As `Client.tune`."""
        return await self.command("tune", number=parameter, value=value)

    async def again(self, before_contact_s: float = 30.0, time_s: float | None = None) -> Acknowledgement:
        """As `Client.again`."""
        return await self.command("again", before_contact_s=before_contact_s, time_s=-1.0 if time_s is None else time_s)

    async def status(self) -> Message:
        """State of log, ring and desk now, as `Client.status`."""
        return await self._ask(STATUS, {})

    async def describe(self) -> Message:
        """Fields, channels, configuration and delay ledger of the run, as `Client.describe`."""
        return await self._ask(DESCRIBE, {})

    async def take_desk(self, over: bool = False) -> None:
        """Takes the desk, as `Client.take_desk`."""
        await self._ask(DESK, {"take": True, "over": over})
        self._keep(True)

    async def leave_desk(self) -> None:
        """Gives the desk back, as `Client.leave_desk`."""
        self._keep(False)
        await self._ask(DESK, {"leave": True})

    async def _ask(self, topic: bytes, body: Mapping[str, object]) -> Message:
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._socket is None:
                self._socket = self._open(zmq.asyncio.Context.instance(), zmq.DEALER, self.command_address, QUEUE)
            await self._socket.send_multipart(self._requests.frames(topic, body))
            give_up = time.monotonic() + self.timeout_s + (self.timeout_s if topic == COMMAND else 0.0)
            while (left := give_up - time.monotonic()) > 0 and await self._socket.poll(int(1000 * left)):
                answer = self._requests.answer(await self._socket.recv_multipart())
                if answer is not None:
                    return answer
            self._new_desk()
            raise self._no_answer(self.command_address)


__all__ = [
    "Acknowledgement", "Addresses", "AsyncClient", "Batch", "Client", "CommandError", "LayoutMismatchError",
    "NoAnswerError", "RefusedError",
]
