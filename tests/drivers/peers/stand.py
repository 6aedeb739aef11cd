"""A stand of independent devices on real sockets, and a line that runs against it one tick at a time.

Six drives on two buses, an input module on a third, a force sensor: each speaks its public protocol over UDP on this machine. The line is
the assembled one of a shipped test, with the real ports and the real safety stage. Between two ticks the devices act, and only then: what
tick n reads is what the devices sent between tick n - 1 and tick n, however busy the machine is.

`LockstepStand(profile)` opens the ports (the devices then run in a thread of their own, ten times as fast as their own clocks, because
the set-up waits for heartbeats); `step(script)` lets the devices act once, edited by `script(turn)`, and runs one tick.

`python -m tests.drivers.peers.stand`: the devices alone, by the machine's clock, for a server in another process. One line of JSON on
standard input has `profile` (cia402, cia408, ethercat), `states_file`, and of ethercat `interface` and `master_interface`; one on standard
output has `tables`, the device tables of the stand file. They live until standard input ends; then `states_file` has what the drives
logged of their states, as `drivers.simulated.stand_server` writes it.
"""

import contextlib
import json
import os
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drivers.identity import as_toml
from drivers.wrench_sensors.rdt import RdtPort
from hil_server.config import load_test
from hil_server.config.loader import SHIPPED
from hil_server.line import assembly
from rt_kernels.layout import BITS, FAULTS, SAMPLE_DTYPE
from tests.drivers.peers.canopen_device import HEARTBEAT, RPDO, SDO_ANSWER, SYNC, Bus, Frame
from tests.drivers.peers.drives import Cia402Drive, Cia408Drive, Drive
from tests.drivers.peers.ethercat_segment_small import Segment
from tests.drivers.peers.input_module import InputModule
from tests.drivers.peers.rdt import RdtSensor, Record
from tests.drivers.plain_stand import PassingTime

PROFILES = {"cia402": Cia402Drive, "cia408": Cia408Drive}
COUNTS_PER_METRE = 1e6
HEARTBEAT_MS = 100
RECORDS_PER_TICK = 4
DEVICES = """
[drives]
{drives}timeout_s = 8.0

[wrench_sensor]
part = "rdt"
variant = "{variant}"
address = "127.0.0.1"
stream_port = {stream}
scaling = "tcp"
calibration_port = {calibration}
no_data_ms = 10000.0
stale_ms = 10000.0
busy_hold_ms = 10000.0

[mechanism_signals]
part = "cia401"
link = "udp:127.0.0.1:{module}"
{of_module}
[drive_model]
frequency_hz = 200.0
damping = 0.8
delay_s = 0.0

# the peers' sensor has no noise
[wrench]
frozen_s = 0.0
"""
ON_CAN = """part = "{profile}"
links = "udp:127.0.0.1:{bus0} udp:127.0.0.1:{bus1}"
axis_link = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
heartbeat_ms = {heartbeat}
"""
# a machine that does other things too holds these devices up for longer than a bus would be silent
ALIVE_ON_CAN = """heartbeat_timeout_ms = 5000
receive_timeout_periods = 12
server_timeout_ms = 60
no_data_periods = 500
"""
ALIVE_ON_ETHERCAT = """part = "cia402_ethercat"
interface = "{interface}"
watchdog_ms = 50.0
no_data_periods = 500
clock_tolerance_ns = 1000000
"""
ENABLED = {"cia402": 0x27, "cia408": 0xF, "ethercat": 0x27}
LONGER_NS = 1_000_000
# Every judgement at its own threshold and at once; the sensor carries nothing, so that its weight is not taken off.
STRICT = (
    "stand.mounting.carried_mass_kg=0", "safety.sensor_missing_periods=1", "safety.drive_missing_periods=1",
    "safety.signals_missing_periods=1", "safety.following_time_s=0.0", "guidance.speed_max_m_s=0.4",
    "guidance.acceleration_max_m_s2=2.0", "guidance.settle_s=0.1", "safety.arming_s=0.03", "safety.drive_lost_max_per_s=5.0",
)  # fmt: skip
FAULT_NAME = {bit: name for name, bit, *_ in FAULTS}


@dataclass
class Turn:
    """What the devices are about to send between two ticks; a script edits it. Lists by axis hold the frames of a drive, in order.

    number: turns since the script began, from 0; bus: further frames on the two drive buses; noise: datagrams on the first one as they
    are; records: of the sensor, each in a datagram of its own; datagrams: what the sensor sends after them as it is; foreign: what
    strangers send to the sensor's client; kept: what a script keeps for a later turn."""

    number: int
    drives: list[Drive]
    sensor: RdtSensor
    kept: list
    answers: list[list[Frame]] = field(default_factory=list)
    heartbeats: list[list[Frame]] = field(default_factory=list)
    bus: list[list[Frame]] = field(default_factory=lambda: [[], []])
    records: list[Record] = field(default_factory=list)
    noise: list[bytes] = field(default_factory=list)
    datagrams: list[bytes] = field(default_factory=list)
    foreign: list[bytes] = field(default_factory=list)


Script = Callable[[Turn], None]


def stand_file(folder: Path, text: str) -> Path:
    """The shipped docking stand with devices in the place of its virtual stand."""
    shipped = (SHIPPED / "stands" / "docking_stand.toml").read_text()
    path = folder / "stand_of_peers.toml"
    path.write_text(shipped[: shipped.index("[virtual]")] + text)
    return path


def parked_legs() -> np.ndarray:
    """Leg lengths of the parked stand, shape (6,), m."""
    return np.array(load_test(None, []).stand["limits"]["start_leg_m"])


def newest(frames: list[Frame]) -> list[Frame]:
    """What a device that was held up acts on: of SYNC and of each setpoint the newest, of SDO requests and commands all."""
    cyclic, kept = set(), []
    for frame in reversed(frames):
        if frame.identifier == SYNC or RPDO[0] <= frame.identifier < SDO_ANSWER:
            if frame.identifier in cyclic:
                continue
            cyclic.add(frame.identifier)
        kept.append(frame)
    return kept[::-1]


class LockstepStand:
    """Devices, ports and line. `records` collects the sample of every tick. Use as a context manager."""

    def __init__(self, folder: Path, profile: str = "cia402", variant: str = "net_ft", legs=None) -> None:
        """legs: what the drives measure at first, m (none: those of the parked stand)."""
        positions = np.rint((parked_legs() if legs is None else legs) * COUNTS_PER_METRE).astype(int)
        self.drives: list[Drive] = [PROFILES[profile](i + 1, int(positions[i])) for i in range(6)]
        self.buses = [Bus(self.drives[:3]), Bus(self.drives[3:]), Bus([InputModule(10)])]
        self.sensor = RdtSensor()
        wire = ON_CAN.format(profile=profile, heartbeat=HEARTBEAT_MS, bus0=self.buses[0].port, bus1=self.buses[1].port)
        text = DEVICES.format(drives=wire, variant=variant, module=self.buses[2].port, of_module="", stream=self.sensor.port,
                              calibration=self.sensor.calibration_port)  # fmt: skip
        self.config = load_test(None, [f'test.stand="{stand_file(folder, text)}"', *STRICT])
        self.config.guidance["auto_start"] = True  # hardware waits for a person: here one who starts it at once
        self.period_ms = 1e3 / self.config.test["rate_hz"]
        self._samples: list[bytes] = []
        self._kept: list = []
        self._stop, self._answered, self._rounds = threading.Event(), threading.Condition(), 0
        self._time = PassingTime()

    # set-up and closing: the devices live on their own
    def __enter__(self) -> "LockstepStand":
        context = assembly.base_context(self.config)
        self.ports = list(assembly.devices(context, self.config.setup.stand.devices).values())
        try:
            with self._alive():
                for port in self.ports:
                    port.open()
                    context["sensor_scale"] = list(getattr(port, "sensor_scale", context["sensor_scale"] or ())) or None
                self.test = assembly.finish(self.config, context, self.ports)
                for port in self.ports:
                    if hasattr(port, "begin"):
                        port.begin()
                self._take_buses()
        except Exception:
            self.close()
            raise
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def _take_buses(self) -> None:
        """The line has the drives' buses from here on, not the keeper: what devices and drives say is of the ticks. Devices that a busy
        machine kept from answering the keeper answer all of it first, and it is read: a port takes so many frames in a tick, and calls
        the rest stale."""
        drives, sample, stale = self.ports[-1], np.zeros(1, SAMPLE_DTYPE), BITS["drive_status"]["stale"]
        while not drives.in_loop or (sample["drive_status"] & stale).any():
            self._answer_all()
            drives.read(sample)

    def _answer_all(self) -> None:
        """Waits until the devices have answered all that was sent to them before."""
        with self._answered:
            rounds = self._rounds
            assert self._answered.wait_for(lambda: self._rounds >= rounds + 2, 10.0)

    def close(self) -> None:
        """Closes the ports as at the end of a run, then takes the devices off the wire."""
        with self._alive():
            for port in reversed(self.ports):
                port.close()
        for device in (*self.buses, self.sensor):
            device.close()

    @contextlib.contextmanager
    def _alive(self):
        """The devices live on their own; at the end everything that was sent to them has been answered."""
        self._stop.clear()
        for drive in self.drives:
            drive.watches = False  # their clocks run ahead of the master's
        thread = threading.Thread(target=self._live, name="devices")
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _live(self) -> None:
        listening = [bus.socket for bus in self.buses] + [self.sensor.socket, self.sensor.calibration]
        while not self._stop.is_set():
            # what all have to say first, then all of it at once: the last step up asks for six answers no older than a period, which a
            # busy machine does not give from one drive to the next
            reported = []
            for bus in self.buses:
                frames = newest(bus.received())
                if bus.master is not None:
                    reported.append((bus, [answer for frame in frames for answer in bus.answers(frame)]
                                 + [frame for node in bus.nodes for frame in node.pass_time(10.0)]))  # fmt: skip
            for bus, answers in reported:
                bus.send(answers)
            self.sensor.serve()
            if self.sensor.streaming:
                self.sensor.send([record.packed() for record in self.sensor.records(1)])
            with self._answered:
                self._rounds += 1
                self._answered.notify_all()
            select.select(listening, [], [], 0.001)
        for drive in self.drives:
            drive.watches = True
        for bus in self.buses:
            if bus.master is not None:
                bus.send([answer for frame in newest(bus.received()) for answer in bus.answers(frame)])

    # the line, a tick at a time
    def step(self, script: Script | None = None, number: int = 0) -> None:
        """The devices act once, as `script` edits it; then one tick."""
        turn = self._turn(number)
        if script is not None:
            script(turn)
        self._send(turn)
        self.test.line.clock.extend(1)
        self.test.line.run()
        self._samples.append(self.test.block.drain(16)[: SAMPLE_DTYPE.itemsize])

    def run(self, ticks: int, script: Script | None = None) -> None:
        self._kept.clear()
        for number in range(ticks):
            self.step(script, number)

    def let_pass(self, ms: float) -> None:
        """So much time passes for the sensor's port: after ten seconds it has no data, or a stale or busy sensor is so for too long."""
        (sensor,) = (port for port in self.ports if isinstance(port, RdtPort))
        self._time.let_pass(sensor, ms)

    def _turn(self, number: int) -> Turn:
        turn = Turn(number, self.drives, self.sensor, self._kept, answers=[[] for _ in range(6)], heartbeats=[[] for _ in range(6)])
        if self._samples:
            for bus in self.buses[:2]:
                self._listen(bus, turn.answers)
            module = self.buses[2]
            module.send([answer for frame in self._cycle(module) for answer in module.answers(frame)])
            module.send(module.nodes[0].pass_time(self.period_ms))
        for i, drive in enumerate(self.drives):
            turn.heartbeats[i] = drive.pass_time(self.period_ms)
        self.sensor.serve()
        turn.records = self.sensor.records(RECORDS_PER_TICK)
        return turn

    def _cycle(self, bus: Bus) -> list[Frame]:
        """The master's frames of the last tick: waits for its SYNC, and for the setpoints of all drives."""
        wanted = 1 if bus is self.buses[2] else 1 + len(bus.nodes)
        frames = bus.received()
        while sum(frame.identifier < HEARTBEAT for frame in frames) < wanted:
            assert bus.wait(10.0), f"no SYNC and setpoints from the master in this tick: {frames}"
            frames += bus.received()
        assert sum(frame.identifier == SYNC for frame in frames) == 1
        return frames

    def _listen(self, bus: Bus, answers: list[list[Frame]]) -> None:
        for frame in self._cycle(bus):
            for node in bus.nodes:
                answers[node.number - 1] += node.sync() if frame.identifier == SYNC else node.handle(frame)

    def _send(self, turn: Turn) -> None:
        for b, bus in enumerate(self.buses[:2]):
            mine = range(3 * b, 3 * b + 3)
            bus.send([frame for i in mine for frame in turn.answers[i]])
            bus.send([frame for i in mine for frame in turn.heartbeats[i]])
            bus.send(turn.bus[b])
        self.buses[0].send_raw(turn.noise)
        self.sensor.send([record.packed() for record in turn.records] + turn.datagrams)
        for datagram in turn.foreign:
            self.stranger(datagram)

    def stranger(self, datagram: bytes) -> None:
        """A datagram from somebody who is not the sensor to the sensor's client."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(datagram, self.sensor.client)

    # the outcome
    @property
    def records(self) -> np.ndarray:
        """The samples of all ticks so far, shape (ticks,)."""
        return np.frombuffer(b"".join(self._samples), SAMPLE_DTYPE)

    def faults(self) -> list[tuple[int, set[str]]]:
        """(tick, faults that came with it), in order of the ticks."""
        words = self.records["faults"]
        came = words & ~np.concatenate([[0], words[:-1]])
        return [(int(t), {name for bit, name in FAULT_NAME.items() if came[t] & bit}) for t in np.flatnonzero(came)]


# ------------------------------------------------------------------------------------------------ by the machine's clock


class StatesLog:
    """What the drives log of themselves, rows of: ns (CLOCK_MONOTONIC), axis, state, 0, ns since its newest setpoint frame (-1: none came),
    the longest time that it was enabled without one."""

    def __init__(self, enabled: int) -> None:
        self.enabled, self.rows = enabled, []
        self._state, self._frame, self._since, self._longest, self._told = [-1] * 6, [0] * 6, [0] * 6, [0] * 6, [0] * 6

    def frame(self, axis: int, at_ns: int) -> None:
        """A setpoint has come."""
        self._judge(axis, at_ns)
        self._frame[axis] = at_ns

    def _judge(self, axis: int, at_ns: int) -> None:
        if self._state[axis] == self.enabled:
            self._longest[axis] = max(self._longest[axis], at_ns - max(self._frame[axis], self._since[axis]))

    def look(self, axis: int, state: int, at_ns: int) -> None:
        """The state that a drive is in now."""
        if state != self._state[axis]:
            self._judge(axis, at_ns)
            self._since[axis] = at_ns
        elif self._longest[axis] < self._told[axis] + LONGER_NS:
            return
        self._state[axis], self._told[axis] = state, self._longest[axis]
        since = at_ns - self._frame[axis] if self._frame[axis] else -1
        self.rows.append((at_ns, axis, state, 0, since, self._longest[axis]))


class LiveBus(Bus):
    """A bus whose devices live by the machine's clock; what came late to this process acts when it arrived, by the kernel's stamp."""

    def __init__(self, nodes: list, log: StatesLog | None = None) -> None:
        super().__init__(nodes)
        self.log, self._now_ns = log, time.monotonic_ns()
        self.socket.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS

    def live(self) -> None:
        """Lives up to now: what has come until then is answered before."""
        now_ns = time.monotonic_ns()
        offset = now_ns - time.time_ns()
        with contextlib.suppress(BlockingIOError):
            while True:
                raw, stamps, _, self.master = self.socket.recvmsg(64, 64)
                seconds, ns = struct.unpack("=qq", stamps[0][2])
                came = seconds * 1_000_000_000 + ns + offset
                self._pass_until(came)
                frame = Frame.unpacked(raw)
                axis = frame.identifier - 0x201
                if self.log is not None and 0 <= axis < 6:
                    self.log.frame(axis, came)
                self.send(self.answers(frame))
                self._look(came)
        self._pass_until(now_ns)

    def _pass_until(self, at_ns: int) -> None:
        """A millisecond at a time: what a drive does of itself is logged when it was due."""
        while self._now_ns + LONGER_NS <= at_ns:
            self._now_ns += LONGER_NS
            due = [frame for node in self.nodes for frame in node.pass_time(LONGER_NS * 1e-6)]
            if self.master is not None:
                self.send(due)
            self._look(self._now_ns)

    def _look(self, at_ns: int) -> None:
        if self.log is not None:
            for drive in self.nodes:
                state = drive.drive_state if isinstance(drive, Cia408Drive) else drive[0x6041, 0] & 0x6F
                self.log.look(drive.number - 1, state, at_ns)


def main() -> int:
    """The devices alone, until standard input ends."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)  # devices wait for no other program of this machine
    given = json.loads(sys.stdin.readline())
    profile, log = given["profile"], StatesLog(ENABLED[given["profile"]])
    positions = [int(count) for count in np.rint(parked_legs() * COUNTS_PER_METRE)]
    module, sensor = LiveBus([InputModule(10)]), RdtSensor()
    segment = None
    if profile == "ethercat":
        segment = Segment(given["interface"], positions, log)
        wire, buses = ALIVE_ON_ETHERCAT.format(interface=given["master_interface"]), []
        identity = [{"vendor": 0x9A, "product": 0x924, "revision": 0, "serial": axis + 1} for axis in range(6)]
    else:
        drives = [PROFILES[profile](axis + 1, positions[axis]) for axis in range(6)]
        buses = [LiveBus(drives[:3], log), LiveBus(drives[3:], log)]
        wire = ALIVE_ON_CAN + ON_CAN.format(profile=profile, heartbeat=HEARTBEAT_MS, bus0=buses[0].port, bus1=buses[1].port)
        identity = [{"vendor": 0x2BAD, "product": 1, "revision": 1, "serial": axis + 1} for axis in range(6)]
    buses.append(module)
    rows = [f"{as_toml(one)}" for one in identity]
    tables = DEVICES.format(
        drives=wire + f"identity = [{', '.join(rows)}]\n", variant="net_ft", module=module.port, stream=sensor.port,
        of_module=f"identity = [{as_toml({'vendor': 0x2BAD, 'product': 1, 'revision': 1, 'serial': 10})}]\n",
        calibration=sensor.calibration_port,
    )  # fmt: skip
    print(json.dumps({"tables": tables}), flush=True)
    listening = [bus.socket for bus in buses] + [sensor.socket, sensor.calibration] + ([segment.link] if segment else [])
    sent_ns = time.monotonic_ns()
    while sys.stdin not in select.select([sys.stdin, *listening], [], [], 0.001)[0]:
        for bus in buses:
            bus.live()
        if segment is not None:
            segment.live()
        sensor.serve()
        if (due := (time.monotonic_ns() - sent_ns) // LONGER_NS) > 0:
            sensor.send([record.packed() for record in sensor.records(min(due, 20))])
            sent_ns += due * LONGER_NS
    np.save(given["states_file"], np.array(log.rows, np.int64).reshape(-1, 6))
    return 0


if __name__ == "__main__":
    sys.exit(main())
