"""Who holds the desk of a run: one client at a time commands. A client that falls silent keeps the desk until it leaves, or until another
one takes it over, which is written down. The book lasts over a restart of the bus and between the variants of a programme (`file`).
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rt_kernels.doors import time

SILENT_AFTER = 3.0  # s without a request or a sign of life of the holder; the client library gives one a second
NAME_MAX = 64

Note = Callable[[Mapping[str, object]], None]


@dataclass
class Holder:
    """key: who it is (`key_of`); name: as shown to others; seen: when it was last heard of."""

    key: str
    name: str
    seen: float


def key_of(identity: bytes, request: Mapping[str, object]) -> str:
    """A client is the secret number of its session, over lost connections and restarts of the bus; one without a number is its connection.
    The number itself is kept nowhere."""
    session = request.get("session")
    if isinstance(session, str) and len(session) >= 16:
        return hashlib.sha256(session.encode()).hexdigest()[:32]
    return f"connection {identity.hex()}"


class DeskBook:
    """file: where the holder is kept, None for a desk that ends with its process; note: called with every change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, file: str | os.PathLike[str] | None = None,
                 note: Note = lambda _: None) -> None:  # fmt: skip
        self._clock, self._file, self._note = clock, None if file is None else Path(file), note
        self._silent = False
        self._holder = self._read()

    @property
    def name(self) -> str:
        """Name of the holder, with the seconds of its silence where it is silent; "" when the desk is free."""
        if self._holder is None:
            return ""
        silence = self._clock() - self._holder.seen
        name = self._holder.name or "another client"
        return f"{name} (silent for {silence:.0f} s)" if silence > SILENT_AFTER else name

    def is_holder(self, key: str) -> bool:
        """Whether this client holds the desk."""
        return self._holder is not None and self._holder.key == key

    def look(self) -> None:
        """Notes that the holder has fallen silent, once."""
        silent = self._holder is not None and self._clock() - self._holder.seen > SILENT_AFTER
        if silent and not self._silent and self._holder is not None:
            self._note({"desk": "silent", "name": self._holder.name})
        self._silent = silent

    def heard(self, key: str) -> bool:
        """A sign of life; whether it was the holder's."""
        if self._holder is None or self._holder.key != key:
            return False
        if self._silent:
            self._note({"desk": "back", "name": self._holder.name})
        self._holder.seen, self._silent = self._clock(), False
        return True

    def enter(self, key: str, name: str) -> str:
        """The desk for this client if it is free or its own already. Returns why not, "" when it has it."""
        if self.heard(key):
            return ""
        if self._holder is None:
            self._give(key, name, "taken")
            return ""
        silent = self._clock() - self._holder.seen > SILENT_AFTER
        how = "; take it over: take_desk(over=True), hil-server command --take-over" if silent else ""
        return f"the desk is held by {self.name}{how}"

    def take_over(self, key: str, name: str) -> str:
        """The desk for this client although a silent one holds it. Returns why not, "" when it has it."""
        if self._holder is None or self._holder.key == key:
            return self.enter(key, name)
        if self._clock() - self._holder.seen <= SILENT_AFTER:
            return f"the desk is held by {self.name}, who is there: it leaves the desk itself"
        self._give(key, name, "taken over", after=self._holder.name)
        return ""

    def leave(self, key: str) -> None:
        """The desk is free again, if it was this client's."""
        if self.is_holder(key):
            self._note({"desk": "left", "name": self._holder.name if self._holder else ""})
            self._holder = None
            self._write()

    def _give(self, key: str, name: str, how: str, **more: str) -> None:
        self._holder, self._silent = Holder(key, name[:NAME_MAX], self._clock()), False
        self._note({"desk": how, "name": self._holder.name, **more})
        self._write()

    # who holds it survives this process; when it was last heard of does not: it has SILENT_AFTER to be heard of again
    def _read(self) -> Holder | None:
        if self._file is None:
            return None
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            return Holder(str(kept["key"]), str(kept["name"])[:NAME_MAX], self._clock())
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # a full disk does not keep anybody from the desk
            if self._holder is None:
                self._file.unlink(missing_ok=True)
                return
            unfinished = self._file.with_name(f".{self._file.name}")
            unfinished.write_text(json.dumps({"key": self._holder.key, "name": self._holder.name}), encoding="utf-8")
            unfinished.replace(self._file)
