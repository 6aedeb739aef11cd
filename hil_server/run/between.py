"""Between two variants of a live programme: the stand rests, and the operator says when the next one starts.

While a variant runs, its own bus has the command socket. Between two variants this desk has it, at the same address and with the same keys:

    start    the next variant starts (so does `resume`)
    hold     it waits; a programme that does not wait of itself then waits for `start` (as it does in the pause, see below)
    stop     the programme ends here (so does `abort`)

A programme that holds (`[programme] hold = true`, `--hold`) waits for `start` before every variant but the first; any programme does after
a variant that tripped and was recovered from. Any other continues after
`pause_s` seconds, unless `hold` comes in them. Ctrl-C ends the programme in either case.
"""

from collections.abc import Callable
from pathlib import Path

import zmq

from hil_server import interrupts
from hil_server.bus.commands import ALWAYS
from hil_server.bus.desk_book import DeskBook, key_of
from hil_server.bus.expiry import UntilWhen
from hil_server.bus.peers import Peers
from hil_server.bus.wire import COMMAND, DESK, REPLY, STATUS, Curve, DoorKeeper, MalformedError, bind, pack, unpack
from hil_server.values import Document, Given
from rt_kernels.doors import time
from rt_kernels.layout import LAYOUT_HASH

ON, WAIT, END = "start", "hold", "stop"
MEANS = {"start": ON, "resume": ON, "hold": WAIT, "stop": END, "abort": END}
LOOK_MS = 100


class Between:
    """telemetry: the configuration's table, for the command address and the keys. hold: wait for `start`; pause_s: else so long. told: is
    called with True when it waits for `start`, at once and when `hold` comes. desk: file of who holds the desk, which is the same as in the
    variants: whom it refuses there it refuses here, and `hold`, `stop` and `abort` are open to all."""

    def __init__(
        self, telemetry: Given, hold: bool, pause_s: float = 0.0, clock: Callable[[], float] = time.monotonic,
        desk: Path | None = None,
    ) -> None:  # fmt: skip
        self._telemetry, self._hold, self._pause, self._clock = telemetry, hold, pause_s, clock
        self._desk, self._book, self._until = desk, DeskBook(clock), UntilWhen(clock)
        self.address = ""

    @property
    def asks(self) -> bool:
        """Whether an operator can answer: there is a command address."""
        return bool(self._telemetry["command"])

    def wait(self, following: str, told: Callable[[bool], None] = lambda waits: None, hold: bool = False) -> bool:
        """Whether the programme continues with the variant `following`; hold: it waits for `start` in any case. Raises ConfigurationError
        for an address or keys that are none, DeviceError for an address that another program has."""
        address = self._telemetry["command"]
        hold = hold or self._hold
        if not address or not (hold or self._pause > 0.0):
            return True
        curve = Curve.from_folder(self._telemetry["keys"]) if self._telemetry["keys"] else None
        context = zmq.Context()
        door = DoorKeeper(context, curve) if curve is not None else None
        try:
            users = self._telemetry.get("users", "").split()
            socket = bind(context, zmq.ROUTER, "command_address", address, curve, 100, shared=bool(users))
            self.address = socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0")
            self._book = DeskBook(self._clock, self._desk)
            told(hold)
            return self._serve(Peers(socket, users, curve is not None and address.startswith("tcp")), socket, door, following, told, hold)
        finally:
            context.destroy(linger=200)

    def _serve(
        self, peers: Peers, socket: zmq.Socket[bytes], door: DoorKeeper | None, following: str, told: Callable[[bool], None], waits: bool
    ) -> bool:
        until = self._clock() + self._pause
        with interrupts.owned():
            while not interrupts.stands():
                if not waits and self._clock() >= until:
                    return True
                if door is not None:
                    door.serve()
                if not socket.poll(LOOK_MS):
                    continue
                means = self._answer(peers, following)
                if means == ON:
                    return True
                if means == END:
                    return False
                if means == WAIT and not waits:
                    waits = True
                    told(True)
        return False

    def _answer(self, socket: Peers, following: str) -> str:
        """Handles one message. Returns what it means, "" for nothing."""
        frames = socket.recv_multipart(zmq.NOBLOCK)
        split = 2 if len(frames) == 4 and frames[1] == b"" else 1  # as the desk of a run: DEALER or REQ
        envelope, parts = frames[:split], frames[split:]
        means, answer = "", {"ok": False, "kind": "malformed", "error": "a request is two parts: topic and a msgpack map"}
        request: Document = {}
        if len(parts) == 2:
            try:
                request = unpack(parts[1], small=True)
                means, answer = self._understood(parts[0], request, following, key_of(envelope[0], request), socket)
            except MalformedError as error:
                answer = answer | {"error": str(error)}
        try:
            socket.send_multipart([*envelope, REPLY, pack({"id": request.get("id"), "layout": LAYOUT_HASH, **answer})], zmq.NOBLOCK)
        except (zmq.ZMQError, TypeError, ValueError):
            pass  # the client does not read its answers, or its id is none
        return means

    def _understood(self, topic: bytes, request: Document, following: str, key: str, peer: Peers) -> tuple[str, Document]:
        if peer.refusal:
            return "", {"ok": False, "kind": "who", "error": peer.refusal}
        self._book.heard(key)
        if topic == STATUS:
            return "", {"ok": True, "run": "", "running": False, "next": following, "desk_holder": self._book.name}
        given = request.get("client")
        name = given if isinstance(given, str) and given else peer.name
        if topic == DESK:
            return "", self._desk_answer(request, key, name)
        command = request.get("command")
        if topic == COMMAND and isinstance(command, str) and command in MEANS:
            until = self._until(request)
            if until is None or until <= self._clock() or self._until.is_repeated(key, request.get("id"), request):
                return "", {"ok": False, "kind": "not_taken", "error": f"command {command}: came after its time, or a second time"}
            if command not in ALWAYS and (why := self._book.enter(key, name)):
                return "", {"ok": False, "kind": "held", "error": why}
            # no loop runs: there is no tick and no time to name
            return MEANS[command], {"ok": True, "command": command, "sequence": 0, "tick": -1, "t": 0.0, "t_ns": 0}
        text = f"the programme is between two variants, {following} is next: start, hold or stop"
        return "", {"ok": False, "kind": "unhandled", "error": text}

    def _desk_answer(self, request: Given, key: str, name: str) -> Document:
        """take, keep, leave, as the desk of a run."""
        why = ""
        if request.get("leave") is True:
            self._book.leave(key)
        elif request.get("take") is True:
            why = self._book.take_over(key, name) if request.get("over") is True else self._book.enter(key, name)
        return {"ok": False, "kind": "held", "error": why} if why else {"ok": True, "holder": self._book.name}
