"""Access control in front of a WebSocket server that has none.

The Foxglove library answers every `Origin` and `Host`. It therefore listens on a secret address of the loopback network, and
this door on the public address. It reads the request that opens a WebSocket, refuses what a page of another site, a foreign name of
this machine or somebody without the key sends, and hands on the rest byte by byte.
"""

import asyncio
import contextlib
import hmac
import secrets
import threading
from collections.abc import Collection
from urllib.parse import parse_qs, urlsplit

from hil_server.bus.wire import is_loopback
from hil_server.errors import UsageError

HEAD_MAX = 16384  # bytes of a request
HEAD_WITHIN = 5.0  # s
CONNECTIONS = 16
APPS = ("https://app.foxglove.dev", "https://studio.foxglove.dev")  # the app in a browser; the one on the desk sends no Origin


def hidden_address() -> str:
    """A secret address of this machine's loopback network: one of sixteen million."""
    return f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"


def refusal(head: str, names: Collection[str], origins: Collection[str], key: str) -> str:
    """Why the request that opens a connection is refused, "" when it is not. head: its lines; names: hosts that are ours beside loopback;
    origins: of the apps that may connect; key: the secret, "" where none is asked for."""
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[0] != "GET":
        return "not a request for a WebSocket"
    headers: dict[str, str] = {}
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon or name.lower() in headers:
            return "a header that is damaged or given twice"
        headers[name.lower()] = value.strip()
    try:
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        given = parse_qs(urlsplit(words[1]).query).get("key", [""])[0]
    except ValueError:
        return "an address that cannot be read"
    if not is_loopback(host) and host not in names:
        return f"Host {host!r:.80} is not one that this server was started for"
    origin = headers.get("origin")
    if origin is not None and origin not in origins:
        return f"Origin {origin!r:.80} is not one that may connect (--origin)"
    if key and not hmac.compare_digest(key.encode(), given.encode()):
        return "the key is missing or wrong: ws://HOST:PORT/?key=..."
    return ""


class FrontDoor:
    """Listens on host:port and hands on to `behind`. port 0: any free one, `port` says which. Raises UsageError when it is taken."""

    def __init__(self, host: str, port: int, behind: tuple[str, int], origins: Collection[str] = (), key: str = "") -> None:
        self._behind, self._names, self._origins, self._key = behind, (host,), (*APPS, *origins), key
        self._open = 0
        self._loop = asyncio.new_event_loop()
        try:
            self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, host, port, limit=HEAD_MAX))
        except OSError as error:
            self._loop.close()
            raise UsageError(f"--port {port}: {error.strerror or error}") from error
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Refuses from now on; connections that are open end."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(HEAD_WITHIN):
                raw = await reader.readuntil(b"\r\n\r\n")
            head = raw.decode("latin1")
            why = "too many connections" if self._open > CONNECTIONS else refusal(head, self._names, self._origins, self._key)
            if why:
                await _refuse(writer, why)
                return
            lines = head.split("\r\n")
            lines[0] = "GET / HTTP/1.1"  # without the key
            theirs, ours = await asyncio.open_connection(*self._behind)
            ours.write("\r\n".join(lines).encode("latin1"))
            try:
                await asyncio.wait([asyncio.create_task(_pipe(reader, ours)), asyncio.create_task(_pipe(theirs, writer))],
                                   return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
            finally:
                ours.close()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # not what opens a WebSocket, or gone
        finally:
            self._open -= 1
            writer.close()


async def _refuse(writer: asyncio.StreamWriter, why: str) -> None:
    body = f"{why}\n".encode("ascii", "replace")
    head = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    writer.write(head % len(body) + body)
    await writer.drain()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
