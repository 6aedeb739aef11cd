"""The pages and the application that serves them."""

import argparse
import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import uvicorn
from fastapi import FastAPI
from nicegui import app, ui

from hil_server.console.access import Access
from hil_server.console.feed import Feed
from hil_server.console.live import Live
from hil_server.console.recording import logs_in
from hil_server.console.view import FOLDER, header, open_pane, views
from hil_server.errors import DeviceError


def serve(args: argparse.Namespace, token: str, begins: Callable[[], None]) -> None:
    """Serves until Ctrl-C. begins: called once the port is ours. Raises DeviceError when it is taken."""
    here = _listening(args.host, args.port)
    web = FastAPI(openapi_url=None)
    feed = Feed(args.telemetry, args.command, args.hand, Path(args.logs))
    live = Live(feed)
    live.add_to(web, FOLDER)
    tasks = set()
    app.on_startup(lambda: tasks.add(asyncio.create_task(feed.run())))
    app.on_shutdown(lambda: [task.cancel() for task in tasks])
    add_pages(live, Path(args.logs), args.log or "")
    ui.run_with(web, title="HIL server", dark=True, show_welcome_message=False)
    guarded = Access(web, token, (*args.name, args.host))
    begins()
    with here:
        uvicorn.Server(uvicorn.Config(guarded, log_level="error", access_log=False, timeout_graceful_shutdown=1)).run(sockets=[here])


def _listening(host: str, port: int) -> socket.socket:
    """The socket that is served on. Raises DeviceError."""
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(place, family=family)
    except OSError as error:
        raise DeviceError(f"console: cannot serve on {host}:{port}: {error.strerror or error}: choose another --port") from None


def add_pages(live: Live, logs: Path, chosen: str) -> None:
    """A page for every view."""

    def known(log: str) -> str:
        """A log that an address names: only one of those that the pages offer."""
        return log if log == chosen or log in logs_in(logs) else ""

    def add(view: ModuleType) -> None:
        @ui.page(view.PATH, title=f"{view.NAME} - HIL server")
        def page(log: str = "") -> None:
            pane = open_pane(live, view.PICTURES, view.COMMANDS)
            header(view.NAME)
            view.build(pane, logs, known(log), chosen)

    for view in views():
        add(view)
