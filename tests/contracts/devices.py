"""What stands behind a port in its contract: for every port of the registry a device that a test lets speak, tick by tick.

A device has `keys` (of the port) and `context` (beside the assembly's); `wired(port)` before the port is open, `opened()` once it is;
`tick(k)` says everything that belongs to tick k, always the same bytes; `damage(k)` something that cannot be right; `heard()` counts what
the port sent since the last call; `gone()` cuts the wire, `close()` gives everything back. QUICK: keys with which silence shows at once;
`absent()`: lists of keys under which no device answers.
"""

import contextlib
import socket
import struct
import threading

import canopen
import numpy as np

from drivers.raw_frames.can_link import FRAME
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.ring import SharedBlock
from tests.drivers.library_drives import LibraryDrives, network_on, object_dictionary
from tests.drivers.peers.ati_can import AtiCanPeer
from tests.drivers.peers.ethercat_library import Segment
from tests.drivers.peers.rdt import RdtSensor, Record
from tests.drivers.peers.serial_sensors import BotaPeer, RobotiqPeer

QUIET_PORT = 9  # of a loopback where no one listens


def deaf_ends():
    """A socket pair on whose far end no one listens, and the name of the link."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ends, f"fd:{ends[0].fileno()}"


class Device:
    QUICK: dict = {}

    def __init__(self):
        self.keys, self.context = {}, {}

    def absent(self):
        return []

    def wired(self, port):
        pass

    def opened(self):
        pass

    def begun(self, port):
        """The wire in the test's hands, the port at its first tick."""
        self.opened()
        port.begin()

    def tick(self, k):
        pass

    def damage(self, k):
        pass

    def heard(self):
        return 0

    def gone(self):
        pass

    def close(self):
        pass


class UdpDevice(Device):
    """A device on UDP; a thread answers requests, each by `first`, until the port is open."""

    QUICK = {"no_data_ms": 1.0}

    def __init__(self, own):
        super().__init__()
        self.socket = own
        self.socket.settimeout(0.02)
        self.asked, self.ready = 0, threading.Event()
        self.thread = threading.Thread(target=self.answer)
        self.thread.start()

    def answer(self):
        while not self.ready.is_set():
            with contextlib.suppress(TimeoutError):
                request, self.client = self.socket.recvfrom(64)
                self.asked += 1
                self.first(request)

    def opened(self):
        self.ready.set()
        self.thread.join()
        self.socket.setblocking(False)

    def damage(self, k):
        self.socket.sendto(b"not a record", self.client)

    def heard(self):
        self.opened()
        asked, self.asked = self.asked, 0
        return asked + received(self.socket)

    def close(self):
        self.opened()
        self.socket.close()


class Sensor(UdpDevice):
    """An RDT sensor."""

    def __init__(self):
        self.sensor = RdtSensor()
        super().__init__(self.sensor.socket)
        slow = dict.fromkeys(("no_data_ms", "stale_ms", "busy_hold_ms"), 10000.0)
        self.keys = {"address": "127.0.0.1", "stream_port": self.sensor.port, "scaling": "given", **slow}

    def absent(self):
        silent = {"address": "127.0.0.1", "timeout_s": 0.05, **dict.fromkeys(("stream_port", "http_port", "calibration_port"), QUIET_PORT)}
        return [silent | {"scaling": scaling} for scaling in ("given", "tcp", "http")]

    def first(self, request):
        if request[2:4] == b"\0\2":
            self.say(1)

    def say(self, number, **values):
        self.socket.sendto(Record(number, number, counts=tuple(1000 * number + n for n in range(6)), **values).packed(), self.client)

    def tick(self, k):
        self.say(k + 2)

    def close(self):
        super().close()
        self.sensor.close()


class SerialSensor(Device):
    """A serial sensor on a pseudo-terminal; it answers the set-up in a thread until the port is open."""

    QUICK = {"no_data_ms": 1.0}

    def __init__(self):
        super().__init__()
        self.peer, self.deaf = self.PEER().start(), self.PEER(deaf=True)
        self.keys = {"device": self.peer.device, **self.KEYS}

    def absent(self):
        return [self.keys | {"device": device, "timeout_s": 0.05} for device in ("/dev/no_such_line", self.deaf.device)]

    def opened(self):
        """However many records the thread has sent: the last two before the loop are the same, and none of the thread's comes again."""
        self.peer.let_go()
        for k in (-2, -1):
            self.tick(k)

    def tick(self, k):
        self.peer.say(100_000 + k, **self.values(k))

    def damage(self, k):
        self.peer.raw(b"\x55")

    def heard(self):
        return self.peer.asked() if self.peer.stop.is_set() else 0

    def gone(self):
        self.peer.hang_up()

    def close(self):
        self.peer.close()
        self.deaf.close()


class BotaSensor(SerialSensor):
    PEER = BotaPeer
    KEYS = {"force_range_n": [500.0] * 3, "moment_range_n_m": [15.0] * 3, "no_data_ms": 10000.0, "stale_ms": 10000.0}

    def values(self, k):
        return {"wrench": (1.0 + 0.1 * (k % 10), 2.0, 3.0, 0.1, 0.2, 0.3)}


class RobotiqSensor(SerialSensor):
    PEER = RobotiqPeer
    KEYS = {"no_data_ms": 10000.0, "stream_rate_hz": 0.0, "stale_ms": 0.0}

    def values(self, k):
        return {"counts": (k % 100, 201, 300, 100, 200, 300)}


class AtiCanSensor(Device):
    """A sensor on a socket pair; it answers in a thread until the port is open."""

    QUICK = {"no_data_ms": 1.0}

    def __init__(self):
        super().__init__()
        self.peer = AtiCanPeer().start()
        self.deaf, self.deaf_link = deaf_ends()
        self.keys = {"link": self.peer.link, "force_range_n": [20.0] * 3, "moment_range_n_m": [2.0] * 3, "no_data_ms": 10000.0,
                     "stale_ms": 0.0, "pair_ms": 100.0}  # fmt: skip

    def absent(self):
        return [self.keys | {"link": link, "timeout_s": 0.05} for link in ("no_such_can", self.deaf_link)]

    def opened(self):
        self.peer.let_go()

    def tick(self, k):
        self.peer.say((100 + k % 50, 200, 300, 400, 500, 600))

    def damage(self, k):
        self.peer.send(0x1, b"123")

    def heard(self):
        return self.peer.asked() if self.peer.stop.is_set() else 0

    def gone(self):
        if self.peer.far.fileno() >= 0:
            self.peer.hang_up()

    def close(self):
        self.peer.close()
        for end in self.deaf:
            end.close()


def loop_takes(port):
    """The port begins, and has the buses: a read that falls into an exchange of the keeper's would be stale."""
    port.begin()
    while not port.in_loop:
        port.read(np.zeros(1, SAMPLE_DTYPE))


class Drives(Device):
    """Six CANopen drives on a socket pair: the `canopen` library's for the set-up, then frame by frame."""

    QUICK = {"no_data_periods": 2}
    KIND, GOOD = 402, 0x1237

    def __init__(self):
        super().__init__()
        self.drives = LibraryDrives(self.KIND)
        self.deaf, self.deaf_link = deaf_ends()
        self.keys = {"links": self.drives.link, "zero_m": [1.0] * 6, "timeout_s": 2.0, "heartbeat_ms": 20, "heartbeat_timeout_ms": 60000}

    def absent(self):
        return [self.keys | {"links": link, "timeout_s": 0.05} for link in ("no_such_can", self.deaf_link)]

    def opened(self):
        self.drives.let_go()

    def begun(self, port):
        loop_takes(port)
        self.opened()
        port.read(np.zeros(1, SAMPLE_DTYPE))  # what was still under way

    def tick(self, k):
        for n in range(1, 7):
            self.drives.answer(n, self.GOOD, 10 * k + n)

    def damage(self, k):
        self.drives.send(0x181, b"123")

    def heard(self):
        return len(self.drives.take())

    def gone(self):
        if self.drives.network.bus is not None:
            self.drives.let_go()
        self.drives.far.close()

    def close(self):
        self.drives.close()
        for end in self.deaf:
            end.close()


class ValveDrives(Drives):
    KIND, GOOD = 408, 0x000F


class EthercatDrives(Device):
    """Six EtherCAT drives on a socket pair: a library made for the test for the set-up, then the newest frame of every tick comes back."""

    QUICK = {"no_data_periods": 2}

    def __init__(self):
        super().__init__()
        self.segment = Segment()
        self.keys = {"interface": "none", "zero_m": [1.0] * 6, "timeout_s": 2.0, "settle_s": 2.0, "no_data_periods": 1000}

    def absent(self):
        return [self.keys | {"interface": "no_such_eth"}]

    def wired(self, port):
        self.port = port
        port.session_with(library=self.segment, open_socket=self.segment.open_socket)

    def opened(self):
        self.segment.let_go()

    def begun(self, port):
        loop_takes(port)
        self.opened()
        self.answer()  # what the keeper sent last, where the segment has not
        port.read(np.zeros(1, SAMPLE_DTYPE))  # what was still under way
        port.axes.begin()  # nor is it counted

    def frames(self):
        return list(iter(lambda: taken(self.segment.far), b""))

    def tick(self, k):
        for n, drive in enumerate(self.segment.drives):
            drive.position = 10 * k + n
        self.answer()

    def answer(self):
        for frame in self.frames()[-1:]:
            self.segment.far.send(self.segment.answered(frame))

    def damage(self, k):
        self.segment.far.send(b"not a frame")

    def heard(self):
        answered, self.segment.answered_frames = self.segment.answered_frames, 0
        return answered + len(self.frames())

    def gone(self):
        self.segment.let_go()
        for drive in self.segment.drives:  # whose watchdog ends their operation
            drive.registers[0x130] = struct.pack("<H", 0x14)
        self.segment.far.close()

    def close(self):
        self.segment.near.close()


class InputModule(Device):
    """A CANopen input module on a socket pair."""

    QUICK = {"no_data_periods": 2}
    NODE = 10

    def __init__(self):
        super().__init__()
        self.near, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.deaf, self.deaf_link = deaf_ends()
        self.keys = {"link": f"fd:{self.near.fileno()}", "heartbeat_ms": 20, "heartbeat_timeout_ms": 60000, "timeout_s": 2.0,
                     "command_output": 1}  # fmt: skip
        self.network = network_on(self.far)
        self.node = canopen.LocalNode(self.NODE, object_dictionary(401))
        self.network.add_node(self.node)
        self.node.nmt.state = "PRE-OPERATIONAL"

    def absent(self):
        return [self.keys | {"link": link, "timeout_s": 0.05} for link in ("no_such_can", self.deaf_link)]

    def send(self, identifier, data):
        self.far.send(FRAME.pack(identifier, len(data), bytes(data)))

    def opened(self):
        self.network.disconnect()

    def tick(self, k):
        self.send(0x180 + self.NODE, struct.pack("<I", 1 << 24 | k & 0xFF))
        self.send(0x280 + self.NODE, struct.pack("<4h", *range(k, k + 4)))
        self.send(0x380 + self.NODE, struct.pack("<4h", *range(-k, -k + 4)))

    def damage(self, k):
        self.send(0x180 + self.NODE, b"123")

    def heard(self):
        return received(self.far)

    def gone(self):
        if self.network.bus is not None:
            self.opened()
        self.far.close()

    def close(self):
        for end in (self.far, self.near, *self.deaf):
            end.close()


class Desk(Device):
    """A shared block of its own into which an operator's commands and hand-controller records go."""

    def __init__(self):
        super().__init__()
        self.block = SharedBlock.create(16)
        self.context = {"block": self.block}
        self.keys = {"stale_s": 10.0}

    def tick(self, k):
        if k % 5 == 0:
            self.block.push_command(CODES["command"]["hold"], (float(k),))
        self.block.put_hand(k % 2, k + 1, 1000 + k, [0.0 if k < 4 else 0.01 * (k % 7)] * 6, 1)


class ScriptFile(Device):
    """A recorded operator in a file."""

    def __init__(self, folder):
        super().__init__()
        rows = [f"{0.001 * k:.3f}, {k % 2}, {', '.join(['0' if k < 4 else f'0.{k % 9}'] * 6)}, 1" for k in range(60)]
        (folder / "operator.csv").write_text("\n".join([*rows, "0.060, 0, silent"]) + "\n")
        self.keys, self.context = {"file": "operator.csv"}, {"folders": [folder], "block": SharedBlock.create(16)}


class StandInSoftware(Device):
    """Nothing outside: a mechanism of its own, so that two ports do not share one."""

    def __init__(self, mechanism):
        super().__init__()
        self.context = {"mechanism": mechanism}


def taken(link):
    with contextlib.suppress(BlockingIOError, TimeoutError):
        return link.recv(2048)
    return b""


def received(link):
    count = 0
    with contextlib.suppress(BlockingIOError):
        while link.recv(2048):
            count += 1
    return count
