"""A master that sends nonsense to the served stand's EtherCAT line, in a network namespace of its own: `unshare -rn python …`.

Prints one line of JSON: whether the stand still answers on its control port and still passes frames, and its counters.
"""

import json
import random
import socket
import struct
import subprocess

from drivers.simulated.stand_server_client import StandProcess
from tests.drivers.plain_stand import stand_config


def frame(command: int, address: int, data: bytes) -> bytes:
    """One datagram to every slave."""
    body = struct.pack("<BBHHHH", command, 7, 0, address, len(data), 0) + data + b"\0\0"
    return (b"\xff" * 6 + bytes(6) + b"\x88\xa4" + struct.pack("<H", len(body) | 0x1000) + body).ljust(60, b"\0")


def main() -> None:
    """Makes the cable, starts the stand, sends, asks."""
    for command in ("link set lo up", "link add ec0 type veth peer name ec1", "link set ec0 up", "link set ec1 up"):
        subprocess.run(["ip", *command.split()], check=True)
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88A4))
    s.bind(("ec0", 0))
    s.settimeout(2.0)
    generator = random.Random(1)
    with StandProcess(stand_config(drives={"wire": "ethercat", "interface": "ec1", "master_interface": "ec0"})) as stand:
        for k in range(2000):
            data = bytearray(frame(generator.randrange(16), generator.randrange(0x3000), generator.randbytes(generator.randrange(1, 400))))
            for _ in range(generator.randrange(4)):
                data[generator.randrange(14, len(data))] = generator.randrange(256)
            s.send(data[: generator.randrange(14, len(data) + 1)] if k % 5 == 0 else data)
            if k % 10 == 0:
                stand.control.ping()  # it has had them
        s.send(frame(8, 0x120, b"\x01\x00"))
        s.send(frame(8, 0x9A0, struct.pack("<I", 1)))  # SYNC0 every nanosecond
        s.send(frame(8, 0x920, bytes(8)))
        s.send(frame(8, 0x990, bytes(8)))
        s.send(frame(8, 0x981, b"\x03"))
        for _ in range(100):  # turns of the stand with it
            stand.control.ping()
        s.send(frame(8, 0x600, b"\0" * 64))
        s.setblocking(False)
        try:
            while s.recv(2000):
                pass
        except BlockingIOError:
            s.settimeout(2.0)
        s.send(frame(7, 0x000, b"\0"))
        while (reply := s.recv(2000))[16:20] != b"\x07\x07\x06\x00" or reply[6] & 2 == 0:
            pass
        slaves = struct.unpack_from("<H", reply, 27)[0]
    print(json.dumps({"slaves": slaves, "frames": stand.counters["line_frames"]}))


main()
