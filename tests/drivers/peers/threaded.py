"""A device that answers in a thread while a port opens it, until the test speaks alone."""

import threading


class ThreadedPeer:
    """`answer` of a peer runs in a thread from `start()` to `let_go()`; it returns when `stop` is set."""

    def __init__(self):
        self._make()

    def _make(self):
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.answer)

    def answer(self):
        """Obeys what it hears."""

    def start(self):
        self.thread.start()
        return self

    def begin_again(self):
        """It obeys again."""
        self._make()
        self.start()

    def let_go(self):
        """From here on the test speaks alone."""
        self.stop.set()
        if self.thread.is_alive():
            self.thread.join()
