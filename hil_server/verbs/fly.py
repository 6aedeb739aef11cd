"""`hil-server fly`: a rehearsal as one command: the run on the virtual stand, and the page from which you fly it."""

import argparse
import contextlib
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence

from hil_server import interrupts
from hil_server.errors import DeviceError, UsageError
from hil_server.terminal.outcome import add_configuration_arguments, add_run_arguments
from hil_server.values import Document

GROUP = "run a test"
ORDER = 12
SUMMARY = "rehearsal: starts a run on the virtual stand and the page from which you fly it"
EXAMPLES = (
    ("hil-server fly --open", "a berthing, with the operator's page in this machine's browser"),
    ("hil-server fly docking --operator Anna --port 8790", "another test, with the pilot's name in its record"),
)
REMAINS = "nothing was armed, nothing has moved, there is no log"
SHIPPED = "programmes/berthing_operator.toml"
SERVES_WITHIN = 60.0  # s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server fly`."""
    add_configuration_arguments(parser, SHIPPED)
    add_run_arguments(parser)
    parser.add_argument("--port", type=int, default=8780, help="port of the page (default: 8780)")
    parser.add_argument("--open", action="store_true", help="opens the page in this machine's browser")
    parser.add_argument("--force", action="store_true", help="arms although the predicted contact differs from the one in orbit")
    parser.add_argument("--leave", action="store_true", help="ends the page with the run (default: at Ctrl-C)")


def run(args: argparse.Namespace) -> Document:
    """Serves the operator's page, runs the test live; returns its summary. The page is the hand controller: a pad, or its keys."""
    from hil_server.config import load_test
    from hil_server.run.claim import claimed
    from hil_server.run.programme import is_programme
    from hil_server.run.session import run_live
    from hil_server.terminal.outcome import perform

    args.config = SHIPPED if args.config is None else args.config
    if is_programme(args.config):
        raise UsageError(f"{args.config}: is a programme, not a test: fly takes one test; hil-server run {args.config} runs the programme")
    args.set = [*args.set, "test.rehearsal=true"]
    config = load_test(args.config, args.set)
    if config.setup.stand.hardware:
        raise UsageError(
            f"{config.setup.test.stand}: has drives: a rehearsal uses the virtual stand; for hardware: hil-server run {args.config}"
        )
    named = config.setup.telemetry.addresses
    addresses = ("--telemetry", named["publish"], "--command", named["command"], "--hand", named["hand_controller"])
    with claimed(config), console(args.port, addresses) as address:
        page = f"{address}operator?hand=1"
        print(f"fly       {page}", flush=True)
        if args.open:
            import webbrowser

            webbrowser.open(page)
        args.prediction, args.confirm_loads = None, ""
        summary = perform(args, run_live, live=True)
        if not args.leave and summary["exit_code"] != interrupts.INTERRUPTED:
            print(f"page      stays on {address} until Ctrl-C", flush=True)
            with interrupts.ended_by_a_press():
                while True:
                    time.sleep(1.0)
    return summary


@contextlib.contextmanager
def console(port: int, addresses: Sequence[str]) -> Iterator[str]:
    """The console as its own process, which Ctrl-C in this terminal does not reach. Yields its address once it serves.

    Raises DeviceError when it does not."""
    serves = False
    command = [sys.executable, "-m", "hil_server", "console", "--port", str(port), "--parent", str(os.getpid()), *addresses]
    with interrupts.held():
        interrupts.look()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            with interrupts.heard():
                assert process.stdout is not None
                words = process.stdout.readline().split()
                if not words:
                    raise DeviceError(f"the console did not start on port {port}: see the reason above")
                wait_until_served(words[-1], process)
                serves = True
                yield words[-1]
        finally:
            # before it serves it holds nothing, and would report the interrupt a second time
            process.terminate() if serves else process.kill()
            process.communicate(timeout=20)


def wait_until_served(address: str, process: "subprocess.Popen[str]") -> None:
    """Waits until the page answers. Raises DeviceError when the process ends before, or takes too long."""
    give_up = time.monotonic() + SERVES_WITHIN
    while time.monotonic() < give_up and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise DeviceError(f"the console did not start on {address}: see the reason above")
