"""A device that answers in a thread while a port opens it, until the test speaks alone."""

import select
import socket
import threading


class ThreadedPeer:
    """`answer` of a peer runs in a thread from `start()` to `let_go()`; it returns when `hears` says that the test speaks alone."""

    def __init__(self):
        self._make()

    def _make(self):
        self.stop = threading.Event()
        self.told, self.tell = socket.socketpair()
        self.thread = threading.Thread(target=self.answer)

    def answer(self):
        """Obeys what it hears."""

    def hears(self, end, patience_s=None):
        """Waits until something comes at `end`, so long at most. False: nothing came, or it is to stop."""
        ready, _, _ = select.select([end, self.told], [], [], patience_s)
        return end in ready and not self.stop.is_set()

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
        self.tell.close()
        if self.thread.is_alive():
            self.thread.join()
        self.told.close()
