"""Faults of the served stand's EtherCAT line as a raw socket sees them, in a network namespace of its own: `unshare -rn python …`.

Frames are made by hand (ETG.1000.4, as the ESC data sheets describe it). One line of JSON: by fault, what was seen.
"""

import json
import os
import select
import socket
import struct
import subprocess
import time
from typing import Any

from drivers.simulated.stand_server_client import StandProcess
from tests.drivers.plain_stand import StandClock, stand_config

SLAVES = 6
index = 0


def send(s: socket.socket, command: int, adp: int, ado: int, data: bytes) -> None:
    """One datagram, with an index of its own."""
    global index
    index = (index + 1) % 256
    body = struct.pack("<BBHHHH", command, index, adp & 0xFFFF, ado, len(data), 0) + data + b"\0\0"
    s.send((b"\xff" * 6 + bytes(6) + b"\x88\xa4" + struct.pack("<H", len(body) | 0x1000) + body).ljust(60, b"\0"))


def ask(s: socket.socket, command: int, adp: int, ado: int, data: bytes) -> tuple[bytes, int]:
    """Data and working counter of the answer."""
    send(s, command, adp, ado, data)
    while (reply := s.recv(2000))[17] != index:
        pass
    return reply[26 : 26 + len(data)], struct.unpack_from("<H", reply, 26 + len(data))[0]


def to_safeop(s: socket.socket) -> None:
    """Sync managers, one FMMU for the inputs at 100 + 13 · place, states."""
    ask(s, 8, 0, 0x420, b"\0\0")  # no watchdog
    managers = ((0x1000, 128, 0x26), (0x1080, 128, 0x22), (0x1100, 7, 0x64), (0x1400, 13, 0x20))
    ask(s, 8, 0, 0x800, b"".join(struct.pack("<HHBBBB", start, length, control, 0, 1, 0) for start, length, control in managers))
    for k in range(SLAVES):
        ask(s, 2, -k, 0x600, struct.pack("<IHBBHBBB3x", 100 + 13 * k, 13, 0, 7, 0x1400, 0, 1, 1))
    for state in (2, 4):
        ask(s, 8, 0, 0x120, bytes([state, 0]))
    assert ask(s, 7, 0, 0x130, b"\0\0")[0] == b"\x04\0"


def seen(s: socket.socket, stand: StandProcess, clock: StandClock) -> dict[str, Any]:
    """Each fault injected, looked at, taken back."""

    def count(n: int) -> int:
        """Answers to so many reads."""
        for _ in range(n):
            send(s, 7, 0, 0x130, b"\0\0")
        clock.let_pass(10)
        found = 0
        while select.select([s], [], [], 0.0)[0]:
            found += (index - s.recv(2000)[17]) % 256 < n
        return found

    def inputs() -> int:
        return ask(s, 10, 100, 0, bytes(13 * SLAVES))[1]

    def late() -> bool:
        """A lower bound of the time that an answer takes holds on every machine."""
        sent = time.monotonic()
        ask(s, 7, 0, 0x130, b"\0\0")
        return time.monotonic() - sent >= 0.03

    def clock_rate() -> list[float]:
        """Bounds of the rate of the reference clock, by this machine's: it was read between sending and arrival. As long as it takes until
        they are narrow."""

        def read() -> tuple[float, int, float]:
            before = time.monotonic()
            shown = int.from_bytes(ask(s, 1, 0, 0x910, bytes(8))[0], "little")
            return before, shown, time.monotonic()

        first = read()
        while True:
            last = read()
            if last[0] > first[2]:
                gained = 1e-9 * (last[1] - first[1])
                low, high = gained / (last[2] - first[0]), gained / (last[0] - first[2])
                if high - low < 0.01:
                    return [low, high]

    result: dict[str, Any] = {"none": [count(8), inputs(), ask(s, 7, 0, 0x130, b"\0\0")[1]], "clock": clock_rate()}
    for name, place, value, look in (
        ("frames_lost", -1, 4.0, lambda: count(12)),
        ("frames_doubled", -1, 2.0, lambda: count(12)),
        ("frames_late", -1, 30.0, late),
        ("cable_cut", -1, None, lambda: count(2)),
        ("slave_lost", 2, None, lambda: [ask(s, 7, 0, 0x130, b"\0\0")[1], inputs()]),
        ("working_counter", 4, None, lambda: [ask(s, 7, 0, 0x130, b"\0\0")[1], inputs()]),
        ("clock_drift", -1, 500_000.0, clock_rate),
        ("al_error", 3, 27.0, lambda: [list(struct.unpack("<HxxH", ask(s, 1, -k, 0x130, bytes(6))[0])) for k in (2, 3)]),
    ):
        stand.control.inject(name, place, value)
        result[name] = look()
        stand.control.clear(name, place)
    result["after"] = [count(8), inputs(), ask(s, 7, 0, 0x130, b"\0\0")[1]]
    return result


def main() -> None:
    """Makes the cable, starts the stand, prints what was seen."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one queue for cable and control port: what was sent first comes first
    for command in ("link set lo up", "link add ec0 type veth peer name ec1", "link set ec0 up", "link set ec1 up"):
        subprocess.run(["ip", *command.split()], check=True)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88A4))
    s.bind(("ec0", 0))
    with StandProcess(stand_config(drives={"wire": "ethercat", "interface": "ec1", "master_interface": "ec0"})) as stand:
        to_safeop(s)
        clock = StandClock(stand)
        print(json.dumps(seen(s, stand, clock)))
        clock.close()


main()
