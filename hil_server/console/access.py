"""Access to the console: on this machine everybody, from elsewhere with the token; only its own pages may send, with few rights.

An ASGI layer around the whole application, web sockets included. `Host` must be a name that the console was started for (or loopback), so
that no foreign name that resolves to this machine gets in; `Origin`, where a browser sends one, must be that same host; and nothing at all
is answered to another site's page (`Sec-Fetch-Site`): no page is built for it.

Every page goes out with a Content-Security-Policy. Scripts run that are files of ours or stand in the page as it was served (a nonce made
for this one answer), so that a name that became markup by a mistake could still not run. What NiceGUI cannot do without: it compiles its
templates in the browser ('unsafe-eval') and writes styles ('unsafe-inline', of styles alone). The page of a log may besides speak to its
own pane and to NiceGUI's socket alone, and opens no window: a script in it would find no way to a page that gives commands.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from hil_server.bus.wire import is_loopback

if TYPE_CHECKING:  # the door of the viewers uses this file without the console's libraries
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "hil_console"
PANE = re.compile(rb'window\.hilPane = "([\w-]+)"; window\.hilCommands = (true|false);')
ALWAYS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"), (b"cross-origin-resource-policy", b"same-origin"),
          (b"cross-origin-opener-policy", b"same-origin")]  # fmt: skip


class Access:
    """app: what is guarded. token: the secret, empty when only this machine can reach the console. names: further host names of ours."""

    def __init__(self, app: ASGIApp, token: str = "", names: Iterable[str] = ()) -> None:
        self._app, self._token, self._names = app, token, frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of the ASGI server: refused without the token and from a foreign page, else handed on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin1").lower(): value.decode("latin1") for key, value in scope["headers"]}
        given = parse_qs(scope.get("query_string", b"").decode("latin1")).get("token", [""])[0]
        if not self.may_talk(headers):
            await _refuse(scope, send, 403, "this console does not answer to that Host or Origin, or to a link on a page of another site")
        elif not self.knows(headers, given):
            await _refuse(scope, send, 401, "this console wants its token: open the address that it printed at its start")
        elif self._token and given and scope["type"] == "http":
            await _remember(scope, send, given)
        elif scope["type"] == "http":
            if "text/html" in headers.get("accept", "text/html"):  # a page is written over on its way out: it comes unpacked
                scope = {**scope, "headers": [(key, value) for key, value in scope["headers"] if key.lower() != b"accept-encoding"]}
            await self._app(scope, receive, Guarded(send, headers["host"]))
        else:
            await self._app(scope, receive, send)

    def may_talk(self, headers: dict[str, str]) -> bool:
        """Whether Host, Origin and Sec-Fetch-Site are those of a page of ours, or of an address that was typed."""
        host = headers.get("host", "")
        name = urlsplit(f"//{host}").hostname or ""
        if not is_loopback(name) and name not in self._names:
            return False
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
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


def policy(nonce: str, host: str, pane: str = "", commands: bool = True) -> str:
    """The Content-Security-Policy of a page. host: as the browser named it; pane: number of the page's own; commands: it gives some."""
    speaks = "'self'" if commands else f"http://{host}/_nicegui_ws/ https://{host}/_nicegui_ws/"
    sockets = "/" if commands else "/_nicegui_ws/"
    own = "" if commands else f" ws://{host}/live/{pane} wss://{host}/live/{pane}"
    alone = "" if commands else "; sandbox allow-scripts allow-same-origin allow-forms allow-downloads"
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
        f"img-src 'self' data: blob:; connect-src {speaks} ws://{host}{sockets} wss://{host}{sockets}{own}; base-uri 'none'; "
        f"form-action 'self'; frame-ancestors 'none'; object-src 'none'{alone}"
    )


class Guarded:
    """An answer on its way out: a page gets its policy, and its scripts the nonce; everything else the headers that it always has."""

    def __init__(self, send: Send, host: str) -> None:
        self._send, self._host = send, host
        self._start: Message | None = None  # of a page that is not whole yet
        self._body = b""

    async def __call__(self, message: Message) -> None:
        """One message of the application."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *ALWAYS]}
            kind = dict((key.lower(), value) for key, value in message["headers"]).get(b"content-type", b"")
            if kind.startswith(b"text/html"):
                self._start = message
                return
        elif self._start is not None:
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            start, self._start = self._start, None
            nonce = secrets.token_urlsafe(16)
            found = PANE.search(self._body)
            pane, commands = (found[1].decode(), found[2] == b"true") if found else ("", True)
            body = self._body.replace(b"<script", f'<script nonce="{nonce}"'.encode())
            kept = [(key, value) for key, value in start["headers"] if key.lower() != b"content-length"]
            rules = policy(nonce, self._host, pane, commands).encode()
            own = [(b"content-length", str(len(body)).encode()), (b"content-security-policy", rules)]
            await self._send({**start, "headers": kept + own})
            message = {**message, "body": body}
        await self._send(message)


async def _refuse(scope: Scope, send: Send, status: int, text: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    await _answer(send, status, text, [])


async def _remember(scope: Scope, send: Send, token: str) -> None:
    """Puts the token into a cookie and takes it out of the address."""
    cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
    await _answer(send, 303, "", [(b"location", scope["path"].encode()), (b"set-cookie", cookie.encode())])


async def _answer(send: Send, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
    plain = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *ALWAYS, *headers]
    await send({"type": "http.response.start", "status": status, "headers": plain})
    await send({"type": "http.response.body", "body": text.encode()})
