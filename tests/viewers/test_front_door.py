"""The door before a WebSocket server: who gets in, what the others get, and that bytes pass unchanged."""

import socket
import threading

import pytest

from hil_server.viewers.front_door import FrontDoor, hidden_address, refusal

GOOD = {"Host": "127.0.0.1:8765", "Upgrade": "websocket"}
APP = "https://app.foxglove.dev"


def head(path="/", **headers):
    return "\r\n".join([f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())])


@pytest.mark.parametrize(
    ("headers", "reported"),
    [
        (GOOD, ""),  # the app on the desk
        (GOOD | {"Origin": APP}, ""),
        (GOOD | {"Host": "localhost:8765"}, ""),
        (GOOD | {"Host": "stand7:8765"}, ""),
        (GOOD | {"Host": "evil.example:8765"}, "Host"),  # a foreign name that resolves to this machine
        ({"Upgrade": "websocket"}, "Host"),
        (GOOD | {"Origin": "https://evil.example"}, "Origin"),
        (GOOD | {"Origin": "null"}, "Origin"),
        (GOOD | {"Origin": "http://127.0.0.1:8765"}, "Origin"),
        (GOOD | {"host": "127.0.0.1"}, "given twice"),
    ],
)
def test_host_and_origin(headers, reported):
    found = refusal(head(**headers), ("stand7",), (APP,), "")
    assert (reported in found) and bool(found) == bool(reported)


def test_the_key():
    for path, good in (("/?key=right-key", True), ("/?key=wrong", False), ("/", False), ("/?key=", False)):
        assert (refusal(head(path, **GOOD), (), (), "right-key") == "") is good


@pytest.fixture
def behind():
    """A server that says back what it hears: address and port, and what it has heard."""
    heard = []
    with socket.create_server((hidden_address(), 0)) as listening:

        def serve():
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    while data := peer.recv(65536):
                        heard.append(data)
                        peer.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname(), heard
        listening.shutdown(socket.SHUT_RDWR)


def asked(port, words):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        peer.sendall(words)
        found = b""
        while data := peer.recv(65536):
            found += data
            if found.startswith(b"GET") and found.endswith(b"\xff" * 10):
                break
        return found


def test_who_is_let_in_is_handed_on_and_others_get_a_line(behind):
    address, heard = behind
    door = FrontDoor("127.0.0.1", 0, address, key="a-key-of-sixteen")
    try:
        rest = bytes(range(256)) * 200 + b"\xff" * 10
        opening = (head("/?key=a-key-of-sixteen", **GOOD) + "\r\n\r\n").encode()
        back = asked(door.port, opening + rest)
        assert back == opening.replace(b"/?key=a-key-of-sixteen", b"/") + rest  # the key stays here
        heard.clear()
        evil = asked(door.port, (head("/?key=a-key-of-sixteen", **GOOD, Origin="https://evil.example") + "\r\n\r\n").encode())
        assert evil.startswith(b"HTTP/1.1 403 ") and len(evil) < 400 and not heard
        assert asked(door.port, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10_000) == b"" and not heard  # no end of a head
    finally:
        door.close()
