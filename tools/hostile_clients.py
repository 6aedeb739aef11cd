"""A live run under hostile clients: `python tools/hostile_clients.py [CONFIG] [--clients 200] [--seed 1]`.

The run is made twice on the virtual stand, first alone, then with the clients; the same figures of both are printed, and whether the log is
whole. Clients come, misbehave and go in random order, each a process of its own that speaks ZMTP (RFC 37) by hand, so that it can lie:

    reader      subscribes and reads, until it is killed
    sleeper     subscribes, reads, is stopped (SIGSTOP), and killed later without being continued
    flooder     sends requests, stick records or subscriptions as fast as the connection takes them
    pinger      the same with heartbeats in between, and breaks the connection in the middle
    garbage     random bytes on the bare port
    half-open   part of a greeting, or of a handshake, and then silence
    giant       a frame that says it is larger than it may be
    topics      subscribes to ever new topics

`--attack ADDRESS ... --seconds S` is the clients alone, against a run that is there already; prints what it did as JSON.
"""

import argparse
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ADDRESSES = tuple(f"tcp://127.0.0.1:{port}" for port in (9790, 9791, 9792))  # telemetry, commands, hand controllers
KEYS = ("publish", "command", "hand_controller")
AT_ONCE = 24

# --------------------------------------------------------------------------------------------------------------------- ZMTP


def greeting():
    return b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"NULL".ljust(20, b"\0") + bytes(32)


def frame(flags, body):
    return bytes([flags, len(body)]) + body if len(body) < 256 else bytes([flags | 2]) + struct.pack(">Q", len(body)) + body


def ready(kind):
    return frame(4, b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind)


def ping(r):
    return frame(4, b"\x04PING" + struct.pack(">H", r.choice([0, 1, 3, 100])) + r.randbytes(r.randrange(30)))


def message(*parts):
    return b"".join(frame(int(k + 1 < len(parts)), part) for k, part in enumerate(parts))


def words(r, server):
    """What is sent to this server: well-formed frames, senseless contents."""
    if server == 0:
        return frame(0, bytes([r.randrange(2)]) + r.randbytes(r.randrange(8)))
    topic = r.choice([b"command", b"status", b"describe", b"desk", b"hand", r.randbytes(5)])
    return message(*([b""] if r.random() < 0.3 else []), topic, r.randbytes(r.randrange(200)))


# ------------------------------------------------------------------------------------------------------------------ behaviour


def connect(addresses, server, greet=True):
    host, port = addresses[server].removeprefix("tcp://").rsplit(":", 1)
    wire = socket.create_connection((host, int(port)), timeout=5.0)
    if greet:
        wire.sendall(greeting() + ready(b"SUB" if server == 0 else b"DEALER"))
    return wire


def read(r, addresses, seconds):
    wire = connect(addresses, 0)
    wire.sendall(frame(0, b"\x01" + r.choice([b"", b"full", b"slow"])))
    while wire.recv(1 << 16):
        pass


def flood(r, addresses, seconds, pings=False):
    server = r.randrange(3)
    wire = connect(addresses, server)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        some = [ping(r) if pings and r.random() < 0.3 else words(r, server) for _ in range(r.randrange(1, 300))]
        wire.sendall(b"".join(some))
    hang_up(r, wire)


def flood_and_ping(r, addresses, seconds):
    flood(r, addresses, seconds, pings=True)


def garbage(r, addresses, seconds):
    for _ in range(20):
        with connect(addresses, r.randrange(3), greet=False) as wire:
            wire.sendall(r.randbytes(r.randrange(1, 2000)))


def half_open(r, addresses, seconds):
    whole = greeting() + ready(r.choice([b"SUB", b"DEALER", b"PUSH", b"?" * 200]))
    wires = [connect(addresses, r.randrange(3), greet=False) for _ in range(10)]
    for wire in wires:
        wire.sendall(whole[: r.randrange(len(whole))])
    time.sleep(seconds)


def giant(r, addresses, seconds):
    for _ in range(5):
        wire = connect(addresses, r.randrange(3))
        size = r.choice([16385, 1 << 20, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])
        wire.sendall(bytes([r.choice([2, 3, 6])]) + struct.pack(">Q", size) + r.randbytes(3000))
        hang_up(r, wire)


def topics(r, addresses, seconds):
    wire = connect(addresses, 0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        wire.sendall(b"".join(frame(0, b"\x01" + r.randbytes(r.randrange(1, 250))) for _ in range(100)))


def hang_up(r, wire):
    """With a FIN, or with a RST that throws away what is on the way."""
    if r.random() < 0.5:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()


# name: what it does, whether it is stopped on the way
BEHAVIOUR = {
    "reader": (read, False),
    "sleeper": (read, True),
    "flooder": (flood, False),
    "pinger": (flood_and_ping, False),
    "garbage": (garbage, False),
    "half-open": (half_open, False),
    "giant": (giant, False),
    "topics": (topics, False),
}


def start_client(name, seed, addresses, seconds):
    """The process number of a new client."""
    pid = os.fork()
    if pid:
        return pid
    try:
        BEHAVIOUR[name][0](random.Random(seed), addresses, seconds)
    except OSError:
        pass  # the server has cut it off
    finally:
        os._exit(0)


def attack(addresses, clients, seed, seconds):
    """Starts `clients` clients over `seconds`, at most AT_ONCE together. Returns how many of each kind."""
    r = random.Random(seed)
    names = [name for _ in range(-(-clients // len(BEHAVIOUR))) for name in BEHAVIOUR][:clients]
    r.shuffle(names)
    began, alive = time.monotonic(), {}
    try:
        for number, name in enumerate(names):
            lives = r.uniform(0.2, 2.0)
            pid = start_client(name, seed * 1000 + number, addresses, lives)
            alive[pid] = time.monotonic() + lives, BEHAVIOUR[name][1]
            next_at = began + (number + 1) * seconds / clients
            while (now := time.monotonic()) < next_at or len(alive) >= AT_ONCE:
                for client, (ends, stopped) in list(alive.items()):
                    if stopped and now > ends - 0.5 * lives:
                        os.kill(client, signal.SIGSTOP)
                        alive[client] = ends + r.uniform(0.0, 5.0), False
                    elif now > ends:
                        end_client(client)
                        del alive[client]
                time.sleep(0.01)
    finally:
        for client in alive:
            end_client(client)
    return dict(Counter(names))


def end_client(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def wait_for(address, seconds):
    """Until somebody listens there."""
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            socket.create_connection((host, int(port)), timeout=1.0).close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"no process listens at {address}")


# ------------------------------------------------------------------------------------------------------------------ the run


def live(config_file, folder):
    """One live run. Returns its figures."""
    import numpy as np

    from hil_server.config import load_test
    from hil_server.log.reader import read_log
    from hil_server.run.session import Options, run_live

    settings = [f"telemetry.{key}={value}" for key, value in zip(KEYS, ADDRESSES, strict=True)]
    summary = run_live(load_test(config_file, settings), Options(out=folder, quiet=True, report=False))
    log = read_log(Path(folder) / "run.mcap")
    # a missed period is no missing record: the next one says how many periods it stands for
    follow_on = np.array_equal(np.diff(log.records["tick"]), log.records["periods"][1:])
    late = summary["lateness_us"]
    return {
        "end": summary["end"],
        "exit_code": summary["exit_code"],
        "ticks": summary["ticks"],
        "missed": summary["missed"],
        "overflow": summary["overflow"],
        "late_p50_us": round(late["p50"], 1),
        "late_p99_us": round(late["p99"], 1),
        "late_p999_us": round(late["p999"], 1),
        "late_max_us": round(late["max"], 1),
        "log_whole": bool(log.complete and follow_on and not log.end["lost_ticks"]),
        "commands_taken": int((log.records["command_code"] != 0).sum()),
        "hand_records": int(log.records["hand_sequence"].max()),
        "bus_restarts": log.end.get("bus_restarts", 0),
        "faults": summary["faults"],
    }


def main(argv):
    parser = argparse.ArgumentParser(prog="hostile_clients", description="a live run under hostile clients")
    parser.add_argument("config", nargs="?", metavar="CONFIG")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="over which the clients come")
    parser.add_argument("--attack", nargs=3, metavar="ADDRESS", help="the clients alone: telemetry, commands, hand controllers")
    args = parser.parse_args(argv)
    if args.attack:
        wait_for(args.attack[0], 120.0)
        print(json.dumps(attack(args.attack, args.clients, args.seed, args.seconds)))
        return 0
    figures = {}
    for name in ("alone", "with clients"):
        with tempfile.TemporaryDirectory() as folder:
            # everything that is a process starts before the loop
            command = [sys.executable, __file__, "--attack", *ADDRESSES, "--clients", str(args.clients), "--seed", str(args.seed)]
            hostile = subprocess.Popen([*command, "--seconds", str(args.seconds)], stdout=subprocess.PIPE, text=True) if figures else None
            try:
                figures[name] = live(args.config, folder)
                clients = hostile.communicate(timeout=120)[0] if hostile else ""
            finally:
                if hostile:
                    hostile.kill()
                    hostile.wait()
    for key in figures["alone"]:
        print(f"{key:16s} {figures['alone'][key]!s:>24} {figures['with clients'][key]!s:>24}")
    print(f"clients          {clients.strip()}")
    good = figures["with clients"]
    return 0 if good["log_whole"] and good["exit_code"] == figures["alone"]["exit_code"] and not good["commands_taken"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
