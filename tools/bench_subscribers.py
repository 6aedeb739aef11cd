"""A live run on the virtual stand under the worst clients: `python tools/bench_subscribers.py [CONFIG]`.

Three subscribers of all telemetry, of which one is stopped (SIGSTOP) three seconds after its first message and continues after the run, one
more client that sends rubbish to every address, and four busy Python threads in the server itself. Printed: lateness, missed periods and
overflow of the loop; messages and losses of every subscriber; what was made of the rubbish. Wanted: the lateness of a run without clients,
losses only at the stopped one, nothing accepted.
"""

import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TELEMETRY, COMMAND, HAND = (f"tcp://127.0.0.1:{port}" for port in (9790, 9791, 9792))
SETTINGS = [f"telemetry.{key}={value}" for key, value in (("publish", TELEMETRY), ("command", COMMAND), ("hand_controller", HAND))]

READER = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from hil_server.client import Client, NoAnswerError
count = lost = 0
wait = 60.0
try:
    for batch in Client({TELEMETRY!r}, {COMMAND!r}).subscribe(["tick"], timeout_s=wait):
        count, lost = count + 1, lost + batch.lost
        if count == 1:
            print("first", flush=True)
except (NoAnswerError, KeyboardInterrupt):
    pass
print(count, lost, flush=True)
"""
RUBBISH = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
import zmq
context, sockets, sent = zmq.Context(), [], 0
for address, kind in (({COMMAND!r}, zmq.DEALER), ({HAND!r}, zmq.DEALER), ({TELEMETRY!r}, zmq.XSUB)):
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(address)
    sockets.append(socket)
while True:
    for socket in sockets:
        for topic in (b"command", b"hand", os.urandom(5)):
            try:
                socket.send_multipart([topic, os.urandom(200)], zmq.NOBLOCK)
            except zmq.ZMQError:
                pass
    time.sleep(0.002)
"""


def busy(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(1000))


def stop_after_first(reader: subprocess.Popen) -> None:
    reader.stdout.readline()
    time.sleep(3.0)
    reader.send_signal(signal.SIGSTOP)


def main(argv: list[str]) -> int:
    from hil_server.config import load_test
    from hil_server.log.reader import read_log
    from hil_server.run.session import Options, run_live

    # everything that is a process starts before the loop
    readers = [subprocess.Popen([sys.executable, "-c", READER], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    rubbish = subprocess.Popen([sys.executable, "-c", RUBBISH])
    stop = threading.Event()
    threads = [threading.Thread(target=busy, args=(stop,), daemon=True) for _ in range(4)]
    pause = threading.Thread(target=stop_after_first, args=(readers[0],), daemon=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for thread in (*threads, pause):
                thread.start()
            config = load_test(argv[0] if argv else None, SETTINGS)
            summary = run_live(config, Options(out=folder, quiet=True, report=False))
            records = read_log(Path(folder) / "run.mcap").records
            stop.set()
            readers[0].send_signal(signal.SIGCONT)
            time.sleep(2.0)
            late = summary["lateness_us"]
            print(f"loop: {summary['end']}, late p50 {late['p50']:.0f} p99 {late['p99']:.0f} max {late['max']:.0f} us", end=", ")
            print(f"missed {summary['missed']} of {summary['ticks']}, overflow {summary['overflow']}, log complete: {summary['complete']}")
            print(f"commands taken {int((records['command_code'] != 0).sum())}, hand records {int(records['hand_sequence'].max())}")
        for i, reader in enumerate(readers):
            reader.send_signal(signal.SIGINT)
            try:
                words = reader.communicate(timeout=70)[0].split()
            except subprocess.TimeoutExpired:
                words = []
            print(f"subscriber {i}{' (stopped)' if i == 0 else ''}: messages and losses {' '.join(words[-2:]) or 'unknown'}")
    finally:
        stop.set()
        for process in (*readers, rubbish):
            process.kill()
            process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
