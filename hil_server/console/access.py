"""Who may look: on this machine everybody, from elsewhere whoever has the token; and only pages of our own may talk to us.

An ASGI layer around the whole application, web sockets included. `Host` must be a name that the console was started for (or loopback), so
that no foreign name that resolves to this machine gets in; `Origin`, where a browser sends one, must be that same host; and what is more
than looking (anything but GET and HEAD, and every web socket) must not come from another site's page (`Sec-Fetch-Site`).
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

COOKIE = "hil_console"
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def is_loopback(host: str) -> bool:
    """Whether the host name or address is this machine itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Access:
    """app: what is guarded. token: the secret, empty when only this machine can reach the console. names: further host names of ours."""

    def __init__(self, app: Any, token: str = "", names: Iterable[str] = ()) -> None:
        self._app, self._token, self._names = app, token, frozenset(names)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """One request of the ASGI server: refused without the token and from a foreign page, else handed on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin1").lower(): value.decode("latin1") for key, value in scope["headers"]}
        given = parse_qs(scope.get("query_string", b"").decode("latin1")).get("token", [""])[0]
        if not self.may_talk(headers, looks=scope.get("method") in ("GET", "HEAD")):
            await _refuse(scope, send, 403, "this console does not answer to that Host or Origin")
        elif not self.knows(headers, given):
            await _refuse(scope, send, 401, "this console wants its token: open the address that it printed at its start")
        elif self._token and given and scope["type"] == "http":
            await _remember(scope, send, given)
        else:
            await self._app(scope, receive, send)

    def may_talk(self, headers: dict[str, str], looks: bool = False) -> bool:
        """looks: a page or picture is asked for, which another site may link to."""
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if not is_loopback(name) and name not in self._names:
            return False
        if not looks and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        return origin is None or origin in (f"http://{host}", f"https://{host}")

    def knows(self, headers: dict[str, str], given: str) -> bool:
        """Whether the token is in the cookie or is the one `given` in the address; always, where none is asked for."""
        if not self._token:
            return True
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            kept = None
        return any(hmac.compare_digest(self._token.encode(), text.encode()) for text in (given, kept.value if kept else ""))


async def _refuse(scope: dict[str, Any], send: Send, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await _answer(send, status, text, [])


async def _remember(scope: dict[str, Any], send: Send, token: str) -> None:
    """Puts the token into a cookie and takes it out of the address."""
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
    await _answer(send, 303, "", [(b"location", scope["path"].encode()), (b"set-cookie", cookie.encode())])


async def _answer(send: Send, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
    plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": plain})
    await send({"type": "http.response.body", "body": text.encode()})
