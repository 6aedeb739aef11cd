"""The run on the bus for Foxglove, live: a WebSocket server that subscribes like any other client, in a process of its own.

Scene and wrenches come from `slow` (25 a second), curves from every sample of `full`. A client that does not read loses messages here and
delays no one; a new run begins with its own scene.
"""

import threading
from collections.abc import Callable, Collection
from functools import partial

import numpy as np

from hil_server.client import Batch, Client, NoAnswerError
from hil_server.errors import HilError, UsageError
from hil_server.log.record import aux_channels
from hil_server.viewers.front_door import FrontDoor, hidden_address
from hil_server.viewers.scene import Scene
from hil_server.viewers.stream import Stream, library
from rt_kernels.codes import bit_names, fault_names

SILENCE = 2.0  # s after which a thread looks whether it is to end, and whether the run is another one


class Bridge:
    """telemetry, command: addresses of the server. host, port: where Foxglove connects; port 0: any free one, `port` says which.

    origins: of pages that may connect beside Foxglove's own app; key: a secret that the address must have, "" for none
    (`hil_server.viewers.front_door`). server_key, keys: as for `Client`. report: called with a line for each event. Raises UsageError when
    the port is taken or the library is not there.
    """

    def __init__(
        self,
        telemetry: str,
        command: str,
        host: str = "127.0.0.1",
        port: int = 8765,
        report: Callable[[str], None] = lambda text: None,
        server_key: str | None = None,
        keys: tuple[str, str] | None = None,
        origins: Collection[str] = (),
        key: str = "",
    ) -> None:
        self._foxglove = library()
        self._client = partial(Client, telemetry, command, name="foxglove", server_key=server_key, keys=keys)
        self._report = report
        self._context = self._foxglove.Context()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._run = ""
        self._stopping = threading.Event()
        self._newcomer = threading.Event()  # a new subscriber has not received what is sent once
        self._words = {"events": 0, "faults": 0}
        self._newest: dict[str, int] = {}
        self.shown = {"slow": 0, "full": 0}
        hidden = hidden_address()
        try:
            self._server = self._foxglove.start_server(
                name="hil-server", host=hidden, port=0, context=self._context, server_listener=_Listener(self._newcomer)
            )
        except (RuntimeError, OSError) as error:
            raise UsageError(f"foxglove: cannot listen on {hidden}: {error}") from error
        try:
            self._door = FrontDoor(host, port, (hidden, self._server.port), origins, key)
        except UsageError:
            self._server.stop()
            raise
        self.port: int = self._door.port
        self._threads = [threading.Thread(target=self._listen, args=(topic,), daemon=True) for topic in ("slow", "full")]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Ends the server; returns when nothing is sent any more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._door.close()
        self._server.stop()

    # ---------------------------------------------------------------------------------------------------------------- the bus
    def _listen(self, topic: str) -> None:
        while not self._stopping.is_set():
            try:
                with self._client() as client:
                    for batch in client.subscribe(topic=topic, timeout_s=SILENCE):
                        if self._stopping.is_set():
                            return
                        self._take(batch)
            except NoAnswerError:
                continue  # no run yet, or none any more
            except (HilError, ValueError, KeyError, TypeError) as error:  # a message or a configuration that is not what it should be
                self._report(f"{type(error).__name__}: {error}")
                self._stopping.wait(SILENCE)

    def _take(self, batch: Batch) -> None:
        with self._lock:
            if batch.run != self._run:
                self._begin(batch)
            if self._stream is None or batch.run != self._run:
                return
            if batch.topic == "slow":
                self._instant(batch)
            else:
                self._curves(batch)
            self.shown[batch.topic] += 1

    def _begin(self, batch: Batch) -> None:
        """A new run: its own scene and channels. A run that cannot be asked yet is asked again with its next message."""
        try:
            with self._client() as client:
                about = client.describe()
        except NoAnswerError:
            return
        scene = Scene(about.get("configuration", {}))
        if self._stream is not None:
            self._stream.close()
        self._stream = Stream(self._context, scene, aux_channels(about.get("aux", [])), on_bus=True)
        self._newcomer.set()
        self._run, self._words = batch.run, {"events": 0, "faults": 0}
        self._report(f"run {batch.run}{'; not shown: ' + '; '.join(scene.missing) if scene.missing else ''}")

    def _instant(self, batch: Batch) -> None:
        assert self._stream is not None
        at = self._times(batch, np.zeros(1))[0]
        if self._newcomer.is_set():
            self._newcomer.clear()
            self._stream.begin(at)
        self._stream.instant(at, batch.last)
        for name, words in (("events", partial(bit_names, "event")), ("faults", fault_names)):
            word = int(batch.any_bits[name])
            new, self._words[name] = word & ~self._words[name], word
            for text in words(new):
                self._stream.event(at, f"fault {text}" if name == "faults" else text)

    def _curves(self, batch: Batch) -> None:
        assert self._stream is not None
        count = len(batch["time_ns"])
        seconds = np.asarray(batch["time_ns"]) * 1e-9
        times = self._times(batch, seconds[-1] - seconds)
        columns = {name: values for name, values in batch.channels.items() if len(values) == count}
        self._stream.curves(times, seconds, columns)

    def _times(self, batch: Batch, before_s: np.ndarray) -> list[int]:
        """Times of day, ns since 1970, of samples so long before the batch's newest. What the bus knows of the clock gets better in the
        first second of a run; a topic's times do not go back for that."""
        times = round(float(batch.head["wall_of_tick"]) * 1e9) - np.round(before_s * 1e9).astype(np.int64)
        times = np.maximum(times, self._newest.get(batch.topic, 0))
        self._newest[batch.topic] = int(times[-1])
        found: list[int] = times.tolist()
        return found


class _Listener:
    """Told by the server, in its own thread, of those who subscribe."""

    def __init__(self, newcomer: threading.Event) -> None:
        self._newcomer = newcomer

    def on_subscribe(self, client: object, channel: object) -> None:
        """What is sent once is sent again with the next picture."""
        self._newcomer.set()

    def on_unsubscribe(self, client: object, channel: object) -> None:
        """Nothing is to be done."""
