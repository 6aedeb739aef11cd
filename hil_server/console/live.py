"""A page's own line to the console, beside NiceGUI's: frames to the page, commands and sticks from it.

A `Pane` is one open page. It shows the live run, or a log at the time that the page asks for. Of a live run it gets the newest frame
whenever it has shown the last but one: a slow or stopped page gets fewer frames, its queue holds two, and no one else is delayed. What the
page sends (anything else is ignored):

    {"ack": n, "age": ms}          frame n has been shown, so old (None when the age means nothing)
    {"clock": t}                   wants the server's clock
    {"command": name, "args": {}}  a command for the loop; the answer is the loop's acknowledgement
    {"select": [names]}            scalar channels whose course goes with every frame: smallest and largest since the frame before
    {"seek": t}, {"curves": [t0, t1]}   of a log: the frame at t; the selected channels between two times
    {"desk": "take over"}          the desk from a holder that has fallen silent; the answer as of a command
    {"hand": [6], "buttons": n}    a record of hand controller 0, where the run allows rehearsal
"""

import asyncio
import contextlib
import json
import math
import secrets
import time
from collections import deque
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from hil_server.bus.wire import Message
from hil_server.client import AsyncClient, Batch
from hil_server.console.feed import Feed
from hil_server.console.picture import Picture
from hil_server.console.recording import Recording
from hil_server.errors import HilError
from hil_server.pages.html import HERE
from rt_kernels.pictures import Values

if TYPE_CHECKING:
    from hil_server.operator_desk.sender import HandSender

IN_FLIGHT = 2  # frames that a page may have and not yet have shown
IDLE = 0.5  # s between two signs of life without frames
MOST_SELECTED = 8
URGENT = ("abort", "hold", "stop")  # on a line of their own, and before every picture
NO_DESK = 5.0  # s since the telemetry process's last word
NO_COMMANDS = "this page shows a log and gives no commands: open the page of the live run"
News = dict[str, object]  # a message to the page
LEAVE_WITHIN = 0.5  # s for giving the desk back: it is free by itself after ten seconds of silence


class Commander:
    """One page's right to command: its own client of the desk, and a second one so that ABORT never waits behind another command."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._clients: dict[str, AsyncClient] = {}  # made with the first command: a page that gives none has none
        self._holds = False
        self.has_desk = False  # as far as this page knows: its last word from the desk was not that another one has it
        self._withdrawn = ""

    def withdraw(self, why: str) -> None:
        """From now on every command is refused, for good."""
        self._withdrawn = self._withdrawn or why
        self.close()

    def _client(self, name: str) -> AsyncClient:
        return self._clients.setdefault(name, self._clients.get(name) or self._feed.client(name))

    async def give(self, name: str, arguments: Mapping[str, object] | None = None) -> News:
        """Asks for the command: {"answer": the loop's acknowledgement or why there is none, "good": whether it was taken}."""
        if self._withdrawn:
            return {"answer": f"{name}: {self._withdrawn}", "good": False}
        client = self._client("console abort" if name in URGENT else "console")
        self._holds = self._holds or name not in URGENT
        start = time.monotonic()
        try:
            taken = await client.command(name, **(arguments or {}))
        except (HilError, TypeError) as error:
            self.has_desk = self.has_desk and getattr(error, "kind", "") != "held"
            return {"answer": f"{name}: {error}", "good": False}
        self.has_desk = self.has_desk or name not in URGENT
        spent = 1e3 * (time.monotonic() - start)
        where = f"taken by the loop at tick {taken.tick}, t {taken.t:.3f} s" if taken.tick >= 0 else "taken between two variants"
        return {"answer": f"{name}: {where}", "good": True, "desk_ms": spent}

    async def take_over(self) -> News:
        """The desk of a holder that has fallen silent for this page; the answer as of `give`."""
        if self._withdrawn:
            return {"answer": f"desk: {self._withdrawn}", "good": False}
        try:
            await self._client("console").take_desk(over=True)
        except HilError as error:
            return {"answer": f"desk: {error}", "good": False}
        self._holds = self.has_desk = True
        return {"answer": "desk: this page holds it", "good": True}

    async def leave(self) -> None:
        """Gives the desk to others, if this page may hold it. Where no run answers there is no desk to wait for."""
        if self._holds and self._feed.age("status") < NO_DESK:
            with contextlib.suppress(HilError, TimeoutError):
                await asyncio.wait_for(self._client("console").leave_desk(), LEAVE_WITHIN)
        self._holds = self.has_desk = False

    def close(self) -> None:
        """Closes both clients."""
        while self._clients:
            self._clients.popitem()[1].close()
        self._holds = self.has_desk = False


class Pane:
    """One open page. recording: the log that it shows, None for the live run; seen: time of the log that it asked for last. pictures:
    whether it draws more than its header; commands: whether it may give any. A page that has shown a log gives none any more: a log may be
    somebody else's."""

    def __init__(self, feed: Feed, pictures: bool, commands: bool = True) -> None:
        self.number = secrets.token_urlsafe(9)
        self.feed, self._pictures = feed, pictures
        self.commander = Commander(feed)
        self.commands = commands
        if not commands:
            self.commander.withdraw(NO_COMMANDS)
        self.selected: list[str] = []
        self.ages: deque[float] = deque(maxlen=500)
        self.recording: Recording | None = None
        self.seen = 0.0
        self._answers: deque[News] = deque(maxlen=100)
        self._wake = asyncio.Event()
        self._sent = self._acknowledged = 0
        self._shown: Batch | None = None
        self._things: Recording | Picture | None = None
        self._said: News | None = None
        self._told: News = {}
        self._past = -1  # number of the message of the history up to which the page has the course of its channels; -1: none of it
        self._names_of: tuple[Recording | None, int, str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._urgent = 0  # commands that go before pictures and have no answer yet
        self._hand: HandSender | None = None
        feed.listeners.add(self._wake.set)

    def close(self) -> None:
        """Ends the pane: it hears of no sample any more, its clients and its hand controller are closed."""
        self.feed.listeners.discard(self._wake.set)
        self.commander.close()
        if self._hand is not None:
            self._hand.close()

    def show(self, recording: Recording | None) -> None:
        """The log instead of the live run; None: back to the live run."""
        self.recording = recording
        if recording is not None and self.commands:
            self.commands = False
            self.commander.withdraw(NO_COMMANDS)
        self._shown = self._things = self._names_of = None
        self._past = -1
        self._wake.set()

    def select(self, names: list[str]) -> None:
        """Chooses the channels of the chart, at most `MOST_SELECTED`."""
        self.selected = names[:MOST_SELECTED]
        self._past = -1
        if self.recording is not None:
            self._send_instant()

    def say(self, answer: News) -> None:
        """Sends an answer to the page at the next opportunity."""
        self._answers.append(answer)
        self._wake.set()

    # ---------------------------------------------------------------------------------------------------------- to the page
    async def serve(self, socket: WebSocket) -> None:
        """Until the page is gone."""
        self._sent = self._acknowledged = 0
        self._shown = self._things = self._said = self._names_of = None
        self._told, self._past = {}, -1
        spoken = time.monotonic()
        listening = asyncio.create_task(self._listen(socket))
        try:
            while not listening.done():
                while self._answers:
                    await socket.send_text(json.dumps(self._answers.popleft()))
                # a page that hears nothing takes the console for dead
                for message in self._news(silent_s=time.monotonic() - spoken):
                    await socket.send_text(json.dumps(message))
                    spoken = time.monotonic()
                if not self._answers:
                    await self._pause()
        except (WebSocketDisconnect, RuntimeError, OSError):
            pass  # the page has gone
        finally:
            listening.cancel()
            await self.commander.leave()

    async def _pause(self) -> None:
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), IDLE)

    def _news(self, silent_s: float = 0.0) -> list[News]:
        """What the page should know now."""
        situation = self.feed.situation() | {"desk_mine": self.commander.has_desk}
        news: list[News] = []
        if situation != self._said or silent_s >= IDLE:
            self._said = situation
            news.append({"state": situation})
        feed = self.feed
        # sent to a page again only when it is another object
        for key, value in (("facts", feed.facts), ("requirements", feed.requirements), ("lines", feed.rows), ("programme", feed.programme)):
            if self._told.get(key) is not value:
                self._told[key] = value
                news.append({key: value})
        return news + self._offer() + self._picture()

    def _offer(self) -> list[News]:
        """Names of the channels that can be chosen: of the log, or of the live run from its first message on."""
        names = list(self.recording.channels) if self.recording is not None else self.feed.history.names
        if not names or self._names_of == (self.recording, len(names), names[-1]):
            return []
        self._names_of = (self.recording, len(names), names[-1])
        return [{"channels": names, "joints": list(self.feed.joints)}]

    def _picture(self) -> list[News]:
        """What is to be drawn now."""
        if self.recording is not None:
            if self._things is self.recording:
                return []
            self._things, recording = self.recording, self.recording
            return [{"things": recording.picture.things(), "run": recording.name, "log": recording.facts()}]
        newest = self.feed.newest
        if newest is None or newest is self._shown or self._sent - self._acknowledged >= IN_FLIGHT or self._urgent:
            return []
        news: list[News] = []
        picture = self.feed.picture
        if self._things is not picture:
            self._things = picture
            news.append({"things": picture.things(), "run": newest.run, "log": None})
        self._shown = newest
        self._sent += 1
        frame = self.feed.frame() if self._pictures else self.feed.figures()
        head = {"n": self._sent, "t": newest.t, "tick": newest.tick, "wall": newest.head.get("wall_of_tick")}
        return [*news, {**head, **frame, **self._chosen(newest.last), **self._course()}]

    def _course(self) -> News:
        """What the chosen channels did since the frame before; `whole`: all that is known, in the place of what the page has."""
        history = self.feed.history
        if not self.selected:
            return {}
        whole = not 0 <= self._past <= history.count
        since, self._past = 0 if whole else self._past, history.count
        return {"points": history.rows(self.selected, since), "whole": whole}

    def _chosen(self, values: Values) -> News:
        """The selected channels of the tick that a frame shows: a page never takes them from elsewhere."""
        return {"selected": [scalar(values, name) for name in self.selected], "names": self.selected}

    def _send_instant(self) -> None:
        """The log at the page's cursor: everything of one tick."""
        assert self.recording is not None
        frame, values = self.recording.instant(self.seen)
        self.say({"n": 0, "wall": None, **frame, **self._chosen(values)})

    # -------------------------------------------------------------------------------------------------------- from the page
    async def _listen(self, socket: WebSocket) -> None:
        try:
            while True:
                text = await socket.receive_text()
                with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):  # not what a page of ours sends
                    message = json.loads(text)
                    if isinstance(message, dict):
                        self._take(message)
        except (WebSocketDisconnect, RuntimeError):
            self._wake.set()

    def _take(self, message: Message) -> None:
        if "command" in message:
            self._start(self._command(message))
        elif "ack" in message:
            if isinstance(message["ack"], int):
                self._acknowledged = max(self._acknowledged, message["ack"])
            if isinstance(message.get("age"), int | float):
                self.ages.append(float(message["age"]))
            self._wake.set()
        elif "clock" in message:
            self.say({"clock": message["clock"], "server": time.time()})
        elif message.get("desk") == "take over":
            self._start(self._take_over())
        elif "hand" in message:
            self._send_hand(message)
        elif "select" in message and isinstance(message["select"], list):
            self.select([str(name) for name in message["select"]])
        elif self.recording is not None and "seek" in message:
            self.seen = float(message["seek"])
            self._send_instant()
        elif self.recording is not None and "curves" in message:
            start, stop = message["curves"]
            self.say({"curves": self.recording.curves(self.selected, float(start), float(stop))})

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _command(self, message: Message) -> None:
        name = str(message["command"])
        self._urgent += name in URGENT
        try:
            answer = await self.commander.give(name, message.get("args"))
        finally:
            self._urgent -= name in URGENT
        self.say({**answer, "at": message.get("at")} if "at" in message else answer)

    async def _take_over(self) -> None:
        self.say(await self.commander.take_over())

    def _send_hand(self, message: Message) -> None:
        """A record of the page's sticks is forwarded at once, as from a hand-controller process. Refused where the run is no rehearsal."""
        from hil_server.operator_desk.sender import HandSender

        if not self.feed.picture.rehearsal or not self.commands:
            return
        if self._hand is None:
            self._hand = HandSender(0, self.feed.hand_address)
        with contextlib.suppress(ValueError, TypeError):
            self._hand.send(message["hand"], int(message.get("buttons", 0)))


def scalar(values: Values, name: str) -> float | None:
    """The value of `name` or `name[i]`; None when there is none."""
    base, _, index = name.partition("[")
    value = values.get(base)
    if index and isinstance(value, list):
        i = int(index.rstrip("]") or 0)
        value = value[i] if i < len(value) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


class Live:
    """All panes, and the addresses under which pages reach them."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.panes: dict[str, Pane] = {}

    def open(self, pictures: bool = True, commands: bool = True) -> Pane:
        """A new pane for a page; with `pictures` it also gets what the mechanism and the arm are drawn from."""
        pane = Pane(self.feed, pictures, commands)
        self.panes[pane.number] = pane
        return pane

    def close(self, pane: Pane) -> None:
        """Forgets the pane and closes it."""
        self.panes.pop(pane.number, None)
        pane.close()

    def add_to(self, web: FastAPI, page_folder: Path) -> None:
        """Adds the console's own files, the panes' sockets and the button to abort to the web server."""

        @web.get("/hil/space.js")
        async def space() -> FileResponse:
            return FileResponse(HERE / "space.js", media_type="text/javascript")

        web.mount("/hil", StaticFiles(directory=page_folder))

        @web.websocket("/live/{number}")
        async def live(socket: WebSocket, number: str) -> None:
            pane = self.panes.get(number)
            if pane is None:
                await socket.close(1008)
                return
            await socket.accept()
            await pane.serve(socket)

        @web.post("/abort")
        async def abort() -> News:
            commander = Commander(self.feed)
            try:
                return await commander.give("abort")
            finally:
                commander.close()
