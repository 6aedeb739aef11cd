"""A stand of independent devices on real sockets, and a line that runs against it one tick at a time.

Six drives on two buses, an input module on a third, a force sensor: each speaks its public protocol over UDP on this machine. The line is
the assembled one of a shipped test, with the real ports and the real safety stage. Between two ticks the devices act, and only then: what
tick n reads is what the devices sent between tick n - 1 and tick n, however busy the machine is.

`LockstepStand(profile)` opens the ports (the devices then run in a thread of their own, ten times as fast as their own clocks, because
the set-up waits for heartbeats); `step(script)` lets the devices act once, edited by `script(turn)`, and runs one tick.
"""

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from drivers.wrench_sensors.rdt import RdtPort
from hil_server.config import load_test
from hil_server.config.loader import SHIPPED
from hil_server.line import assembly
from rt_kernels.layout import BITS, FAULTS, SAMPLE_DTYPE
from tests.drivers.peers.canopen_device import HEARTBEAT, SYNC, Bus, Frame
from tests.drivers.peers.drives import Cia402Drive, Cia408Drive, Drive
from tests.drivers.peers.input_module import InputModule
from tests.drivers.peers.rdt import RdtSensor, Record
from tests.drivers.plain_stand import PassingTime

PROFILES = {"cia402": Cia402Drive, "cia408": Cia408Drive}
COUNTS_PER_METRE = 1e6
HEARTBEAT_MS = 100
RECORDS_PER_TICK = 4
DEVICES = """
[drives]
part = "{profile}"
links = "udp:127.0.0.1:{bus0} udp:127.0.0.1:{bus1}"
axis_link = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
heartbeat_ms = {heartbeat}
timeout_s = 8.0

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

[drive_model]
frequency_hz = 200.0
damping = 0.8
delay_s = 0.0

# the peers' sensor has no noise
[wrench]
frozen_s = 0.0
"""
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


class LockstepStand:
    """Devices, ports and line. `records` collects the sample of every tick. Use as a context manager."""

    def __init__(self, folder: Path, profile: str = "cia402", variant: str = "net_ft", legs=None) -> None:
        """legs: what the drives measure at first, m (none: those of the parked stand)."""
        positions = np.rint((parked_legs() if legs is None else legs) * COUNTS_PER_METRE).astype(int)
        self.drives: list[Drive] = [PROFILES[profile](i + 1, int(positions[i])) for i in range(6)]
        self.buses = [Bus(self.drives[:3]), Bus(self.drives[3:]), Bus([InputModule(10)])]
        self.sensor = RdtSensor()
        text = DEVICES.format(
            profile=profile, variant=variant, heartbeat=HEARTBEAT_MS, bus0=self.buses[0].port,
            bus1=self.buses[1].port, module=self.buses[2].port, stream=self.sensor.port, calibration=self.sensor.calibration_port,
        )  # fmt: skip
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
                frames = bus.received()
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
                bus.send([answer for frame in bus.received() for answer in bus.answers(frame)])

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

