"""A force/torque sensor that streams RDT records over UDP, written from ATI's manuals (Net F/T 9620-05-NET FT, Ethernet Axia 9620-05-C).

Request: u16 header 0x1234, u16 command, u32 count. Record, 36 bytes: u32 rdt_sequence (1 for the first of a request), u32 ft_sequence (the
sensor's own sample counter), u32 status, six i32 counts. Everything big-endian. One client: the one that asked last. The calibration
information is read over TCP: 20 bytes, of which the first is 1, answered by 24.
"""

import contextlib
import socket
import struct
from dataclasses import dataclass, replace

RECORD = struct.Struct(">III6i")
REQUEST = struct.Struct(">HHI")
HEADER, STOP, START_SINGLE, START, START_BUFFERED, BIAS = 0x1234, 0x0000, 0x0001, 0x0002, 0x0003, 0x0042
_READ_CALIBRATION = 1
_NEWTON, _NEWTON_METRE = 2, 3


@dataclass(frozen=True)
class Record:
    rdt_sequence: int
    ft_sequence: int
    status: int = 0
    counts: tuple[int, ...] = (0, 0, 0, 0, 0, 0)

    def packed(self) -> bytes:
        return RECORD.pack(self.rdt_sequence & 0xFFFFFFFF, self.ft_sequence & 0xFFFFFFFF, self.status, *self.counts)


class RdtSensor:
    """The sensor. `serve()` obeys requests that have come; `records(n)` are the next n of the running stream, to be sent with `send`.

    ft_step: internal samples from record to record.
    """

    def __init__(self, counts_per_newton: int = 1_000_000, counts_per_newton_metre: int = 1_000_000, ft_step: int = 2) -> None:
        self.scale = (counts_per_newton, counts_per_newton_metre)
        self.rdt_sequence, self.ft_sequence, self.ft_step = 0, 1000, ft_step
        self.client: tuple[str, int] | None = None
        self.streaming, self.left = False, 0
        self.status, self.counts = 0, (0, 0, 0, 0, 0, 0)
        self.malformed = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.calibration = socket.create_server(("127.0.0.1", 0))
        self.calibration.setblocking(False)
        self.calibration_port = self.calibration.getsockname()[1]

    def close(self) -> None:
        self.socket.close()
        self.calibration.close()

    def serve(self) -> None:
        """Obeys every request that has come: malformed ones are ignored, as the manual says; stop and bias have no answer."""
        with contextlib.suppress(BlockingIOError):
            while True:
                raw, client = self.socket.recvfrom(64)
                header, command, count = REQUEST.unpack(raw) if len(raw) == REQUEST.size else (0, 0, 0)
                if header != HEADER:
                    self.malformed += 1
                elif command == STOP:
                    self.streaming = False
                elif command in (START_SINGLE, START, START_BUFFERED):
                    self.streaming, self.client, self.left, self.rdt_sequence = True, client, count, 0
        with contextlib.suppress(BlockingIOError):
            connection, _ = self.calibration.accept()
            with connection:
                connection.settimeout(2.0)
                if connection.recv(20)[:1] == bytes([_READ_CALIBRATION]):
                    scale16 = (max(1, self.scale[0] // 1000),) * 3 + (max(1, self.scale[1] // 1000),) * 3
                    connection.sendall(struct.pack(">HBBII6H", HEADER, _NEWTON, _NEWTON_METRE, *self.scale, *scale16))

    def records(self, count: int) -> list[Record]:
        """The next records of the stream; none while no one asked for it."""
        made = []
        for _ in range(count if self.streaming else 0):
            self.rdt_sequence += 1
            self.ft_sequence += self.ft_step
            made.append(Record(self.rdt_sequence, self.ft_sequence, self.status, self.counts))
            if self.left:
                self.left -= 1
                self.streaming = self.left > 0
        return made

    def send(self, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            self.socket.sendto(datagram, self.client)


def with_status(record: Record, status: int) -> Record:
    return replace(record, status=status)
