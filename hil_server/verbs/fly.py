"""`hil-server fly`: a rehearsal as one command: the run on the virtual stand, and the page that flies it."""

import argparse
import contextlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

from hil_server import interrupts
from hil_server.errors import DeviceError, UsageError
from hil_server.terminal.outcome import add_configuration_arguments, add_run_arguments

ORDER = 12
SUMMARY = "a rehearsal: a run on the virtual stand and the page that flies it, in one"
REMAINS = "nothing was armed, nothing has moved, there is no log"
SHIPPED = "programmes/berthing_operator.toml"
SERVES_WITHIN = 60.0  # s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server fly`."""
    add_configuration_arguments(parser, SHIPPED)
    add_run_arguments(parser)
    parser.add_argument("--port", type=int, default=8780, help="port of the page (default: 8780)")
    parser.add_argument("--open", action="store_true", help="open the page in this machine's browser")
    parser.add_argument("--force", action="store_true", help="arm although the prediction says that the contact would not be as in orbit")
    parser.add_argument("--leave", action="store_true", help="end the page with the run (default: it stays until Ctrl-C)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Serves the operator's page, runs the test live; returns its summary. The page is the hand controller: a pad, or its keys."""
    from hil_server.config import load_test
    from hil_server.run.claim import claimed
    from hil_server.run.programme import is_programme
    from hil_server.run.session import run_live
    from hil_server.terminal.outcome import perform

    args.config = args.config or SHIPPED
    if is_programme(args.config):
        raise UsageError(f"{args.config} is a programme: fly takes a single test")
    args.set = [*args.set, "test.rehearsal=true"]
    config = load_test(args.config, args.set)
    if "drives" in config.stand:
        raise UsageError(f"{config.test['stand']} moves a stand: a rehearsal is flown on the virtual stand; hil-server run is for hardware")
    table = config.telemetry
    addresses = ("--telemetry", table["publish"], "--command", table["command"], "--hand", table["hand_controller"])
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
    """The console as a process of its own, which Ctrl-C in this terminal leaves to us. Gives its address once it serves.

    Raises DeviceError when it does not."""
    serves = False
    command = [sys.executable, "-m", "hil_server", "console", "--port", str(port), *addresses]
    with interrupts.held():
        interrupts.look()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        try:
            with interrupts.heard():
                assert process.stdout is not None
                said = process.stdout.readline().split()
                if not said:
                    raise DeviceError(f"the console did not start on port {port}: its reason stands above")
                wait_until_served(said[-1], process)
                serves = True
                yield said[-1]
        finally:
            # one that only starts holds nothing, and would say here, too, that it was interrupted
            process.terminate() if serves else process.kill()
            process.communicate(timeout=20)


def wait_until_served(address: str, process: "subprocess.Popen[str]") -> None:
    """Until the page can be asked for. Raises DeviceError when the process ends before, or takes too long."""
    give_up = time.monotonic() + SERVES_WITHIN
    while time.monotonic() < give_up and process.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise DeviceError(f"the console did not start on {address}: its reason stands above")
