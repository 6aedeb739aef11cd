"""The pages and the application that serves them."""

import argparse
import asyncio
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from nicegui import app, ui

from hil_server.console.access import Access
from hil_server.console.engineer import Commander, Engineer, header
from hil_server.console.feed import Feed
from hil_server.console.replay_view import ReplayView
from hil_server.errors import DeviceError

STYLE = ".old { opacity: 0.35; filter: grayscale(1); } .font-mono { white-space: pre; } body { background: #10151b; }"


def serve(args: argparse.Namespace, token: str) -> None:
    """Serves until Ctrl-C. Raises DeviceError when the port is taken."""
    web = FastAPI(openapi_url=None)
    feed = Feed(args.telemetry, args.command)
    tasks = set()
    app.on_startup(lambda: tasks.add(asyncio.create_task(feed.run())))
    app.on_shutdown(lambda: [task.cancel() for task in tasks])
    add_pages(feed, Path(args.logs), args.log or "")
    ui.run_with(web, title="HIL server", dark=True, show_welcome_message=False)
    guarded = Access(web, token, (*args.name, args.host))
    try:
        uvicorn.run(guarded, host=args.host, port=args.port, log_level="error", access_log=False)
    except SystemExit:
        raise DeviceError(f"console: cannot serve on {args.host}:{args.port}: is the port taken?") from None


def add_pages(feed: Feed, logs: Path, chosen: str) -> None:
    def begin(here: str) -> Commander:
        ui.add_css(STYLE)
        commander = Commander(feed)
        ui.context.client.on_delete(commander.close)
        header(feed, commander, here)
        return commander

    @ui.page("/")
    def engineer() -> None:
        Engineer(feed, begin("Engineer"))

    @ui.page("/replay")
    def replay() -> None:
        begin("Replay")
        ReplayView(logs, chosen)
