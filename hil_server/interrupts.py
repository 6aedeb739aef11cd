"""Ctrl-C, SIGTERM and a closed terminal, from the first line of a verb to its last: one handler, which counts every press.

What a press does beside that depends on the innermost block that the main thread is in:

    heard()      KeyboardInterrupt at once: computations and waits, after which nothing has to be undone
    held()       nothing: `look` raises it where a step ends, so that what a step opens is known to who closes it
    counted()    nothing: who has the block answers (a loop is parked)
    sealed()     nothing, also in the blocks inside it, until it ends (a flight of a hunt, which is not its operator's)
    owned()      nothing: the frame around a verb

A press stands until it is answered. Where a destructor, a callback or a library swallows the KeyboardInterrupt, or makes another
exception of it, the next `look` raises it again; the last look is that of the command line, before it reports success: no press is lost.

Blocks nest. The outermost one takes the signals and gives them back. In a thread other than the main one all of this does nothing: no
signal is handled there.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Self, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], object] | int | None  # of a signal, as Python has it

INTERRUPTED = 130  # exit code of what a press ended
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    """Of this process: signals belong to a process."""

    def __init__(self) -> None:
        self.blocks: list[owned] = []  # that the main thread is in, innermost last
        self.standing = 0  # unanswered presses
        self.remains = ""


_state = _State()


def _pressed(number: int, frame: FrameType | None) -> None:
    if _state.blocks:
        next((block for block in _state.blocks if isinstance(block, sealed)), _state.blocks[-1]).pressed()


def _unraisable(what: "sys.UnraisableHookArgs") -> None:
    """A KeyboardInterrupt in a destructor or a callback of Python's imports is reported by us, once: its press stands."""
    if what.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(what)


class owned:  # noqa: N801 - read as words: with owned()
    """A press is counted, and nothing else: the frame around a verb, whose end is not held up by one."""

    def __init__(self) -> None:
        self._depth = -1
        self._former: dict[int, Handler] = {}
        self._hook: Callable[[sys.UnraisableHookArgs], object] = sys.__unraisablehook__

    def pressed(self) -> None:
        """What a press does in this block."""
        _state.standing += 1

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._depth = len(_state.blocks)
            if not _state.blocks:
                _state.standing, _state.remains = 0, ""
            _state.blocks.append(self)
            if self._depth == 0:
                self._hook, sys.unraisablehook = sys.unraisablehook, _unraisable
                self._former = {n: signal.getsignal(n) for n in SIGNALS}
                for n, former in self._former.items():
                    # nohup: a terminal that closes is not to end it
                    if n != signal.SIGHUP or former == signal.SIG_DFL:
                        signal.signal(n, _pressed)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._leave()

    def _leave(self) -> int:
        """Ends the block, and whatever was not left inside it. Returns the presses that stand."""
        stands = _state.standing
        if self._depth >= 0:
            del _state.blocks[self._depth :]
        if self._depth == 0:
            for n, former in self._former.items():
                signal.signal(n, former)
            sys.unraisablehook = self._hook
            _state.standing = 0
        return stands if self._depth >= 0 else 0


class held(owned):  # noqa: N801
    """A press waits for the next `look`, or for the end of this block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._leave() and kind is None:
            raise KeyboardInterrupt


class heard(held):  # noqa: N801
    """A press is a KeyboardInterrupt at once, as is one that stands already."""

    def __enter__(self) -> Self:
        try:
            super().__enter__()
            look()
        except KeyboardInterrupt:
            self._leave()
            raise
        return self

    def pressed(self) -> None:
        """Counts it, and raises."""
        super().pressed()
        raise KeyboardInterrupt


class counted(owned):  # noqa: N801
    """Presses of this block are in `count`, for who has the block to answer. One that stands already is raised when it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            look()
        except KeyboardInterrupt:
            self._leave()
            raise
        return self

    def pressed(self) -> None:
        """Counts it here."""
        self.count += 1


class sealed(counted):  # noqa: N801
    """Blocks inside hear no press: its KeyboardInterrupt comes when this one ends."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        _state.standing += self.count
        if kind is None:
            look()


class ended_by_a_press(heard):  # noqa: N801
    """A block whose ordinary end is a press: what serves until Ctrl-C. A press that stands already is raised."""

    def __exit__(  # type: ignore[override]
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        ended = bool(self._leave()) or kind is KeyboardInterrupt
        if ended:
            answer()
        return ended


def answer() -> None:
    """The presses that stand have had what they are for."""
    if threading.current_thread() is threading.main_thread():
        _state.standing = 0


def look(done: float = 0.0, whole: float = 0.0) -> None:
    """Raises KeyboardInterrupt where a press stands; can be used as a progress callback (done, whole)."""
    if stands():
        raise KeyboardInterrupt


def stands() -> bool:
    """Whether a press is unanswered."""
    return _state.standing > 0 and threading.current_thread() is threading.main_thread()


def remains(text: str | None = None) -> str:
    """What there is when a press ends the verb now, for the line that says so. text: what it is from here on."""
    if text is not None:
        _state.remains = text
    return _state.remains


@contextlib.contextmanager
def not_passed_on() -> Iterator[None]:
    """Processes that are started in this block do not hear Ctrl-C, nor that the terminal closes, which is signalled to all of a group:
    their parent ends them. A press that comes in it is delivered behind it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def to_the_end(work: Callable[[], int]) -> int:
    """For the program's first line: takes the signals before anything else is imported; once the work has reported its end, a press changes
    nothing. Returns the exit code."""
    owned().__enter__()
    try:
        return work()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for n in SIGNALS:
            signal.signal(n, signal.SIG_IGN)
        # A KeyboardInterrupt that passed through an `exec` of text (dataclasses are made so) leaves a mark with which Python would kill
        # itself by SIGINT instead of ending with our exit code; the next `exec` of text takes it away.
        exec("")
