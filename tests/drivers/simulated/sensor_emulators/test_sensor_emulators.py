"""The force sensors in software as their manuals describe them, on a pseudo-terminal and on loopback sockets: what a client of their own
vendor would see. Checksums by an independent library."""

import re
import select
import socket
import struct
import time
from pathlib import Path

import can
import numpy as np
import pytest
import serial
from fastcrc import crc16

from drivers.raw_frames.can_link import FrameBus, open_link
from drivers.simulated import stand_server
from drivers.simulated.injections import EMULATED, wire_fault
from drivers.simulated.sensor_emulators import emulators
from drivers.simulated.stand_server import complete
from drivers.simulated.stand_server_client import StandProcess
from tests.drivers.plain_stand import StandClock, stand_config, until

BIAS = [100.0, -200.0, 300.0, 4.0, -5.0, 6.0]  # N, N.m: the sensor's constant error, all that the plain plant's load cell says


def served(variant, **sensor):
    return StandProcess(stand_config({"sensor_bias": BIAS}, sensor={"variant": variant, "boot_s": 0.05, **sensor}))


class Serial:
    """A client on a serial line: `take` gives what has come until the condition on it holds."""

    def __init__(self, one, baud):
        self.port = serial.Serial(one.ports["wrench_sensors"]["device"], baud)
        self.heard = b""
        self.one, self.clock = one, StandClock(one)

    def take(self, condition):
        while not condition(self.heard):
            self.heard += self.port.read(max(1, self.port.in_waiting))
        heard, self.heard = self.heard, b""
        return heard

    def flush(self):
        self.port.reset_input_buffer()
        self.heard = b""

    def settle(self, ms=30):
        """Forgets what comes in so much time of the stand: what was under way."""
        self.clock.let_pass(ms)
        self.flush()

    def silent(self, ms=150):
        """Whether nothing comes for so long (after what is under way)."""
        self.settle()
        self.clock.let_pass(ms)
        return not self.port.in_waiting

    def close(self):
        self.port.close()
        self.clock.close()


@pytest.mark.parametrize("variant", ("bota", "robotiq", "netcanoem"))
def test_what_a_sensor_cannot_be_is_refused(variant):
    with pytest.raises(ValueError, match=r"sensor\.variant = .*bare gauges"):
        StandProcess(stand_config({"gauge_matrix": np.diag([1e5] * 6).tolist()}, sensor={"variant": variant}))


def test_faults_that_a_wire_cannot_have_are_refused():
    with pytest.raises(ValueError, match="wire of net_ft has no such fault"):
        wire_fault("sensor_noise", None, "net_ft")
    with pytest.raises(ValueError, match="status word of bota has no such class"):
        wire_fault("sensor_supply", None, "bota")
    for variant in emulators():
        known = 0
        for fault in EMULATED:
            if fault.at == "sensor":
                try:
                    known += wire_fault(fault.name, None, variant)[0] > 0
                except ValueError:
                    continue
        assert known >= 10
    for key, value, limit in (("sinc_length", 50, "51 ... 512"), ("rate_code", 5, "0 ... 4")):
        with pytest.raises(ValueError, match=rf"^sensor\.bota\.{key}: must be a whole number within {limit}, got {value}$"):
            complete({"sensor": {"variant": "bota", "bota": {key: value}}})
    for variant in ("nothing", "no_such_module:Sensor", "json:dumps", "json:nothing", 3):
        with pytest.raises(ValueError, match=r"^sensor\.variant = .*: must be one of .*bota, .*, or module:Class$"):
            complete({"sensor": {"variant": variant}})
    with pytest.raises(ValueError, match="^sensor.bto: unknown key, value {}; keys: boot_s, bota"):
        complete({"sensor": {"variant": "bota", "bto": {}}})


def test_the_server_names_no_sensor():
    """A sensor is its file, and its line in the registry."""
    names = [*emulators(), *(one.__module__.rpartition(".")[2] for one in emulators().values())]
    for file in ("stand_server_loop.pyx", "emulated_sensor.pyx", "emulated_sensor.pxd", "injections.py", "stand_server.py"):
        text = Path(stand_server.__file__).with_name(file).read_text()
        assert re.findall(rf"(?i)\b(?:{'|'.join(names)})(?!\")(?:\b|_)", text) == [], file


# ------------------------------------------------------------------------------------------------------------------ Bota
def bota_records(stream):
    """(records, bytes that belong to none): a record is 0xAA, 34 bytes, and their CRC-16/X-25."""
    records, other, at = [], 0, 0
    while at + 37 <= len(stream):
        record = stream[at : at + 37]
        if record[0] == 0xAA and crc16.ibm_sdlc(record[1:35]) == struct.unpack_from("<H", record, 35)[0]:
            records.append(struct.unpack("<BH6fIfH", record))
            at += 37
        else:
            other, at = other + 1, at + 1
    return records, other


def bota_set_up(client, *commands):
    for command in commands:
        client.port.write(command)
        done = b"r,0,%c,0\r\n" % command.strip()[0]
        client.take(lambda heard, done=done: heard.endswith(done))


@pytest.fixture(scope="module")
def bota():
    with served("bota") as one:
        client = Serial(one, 460800)
        client.take(lambda heard: len(heard) > 37)  # it runs
        yield one, client
        client.close()


@pytest.fixture
def running(bota):
    """A client whose sensor runs at 800 Hz."""
    one, client = bota
    one.control.clear_all()
    client.port.write(b"C")
    client.settle()
    bota_set_up(client, b"C", b"c,0,1,0,4", b"f,64,0,0,1")
    client.port.write(b"R")
    client.take(lambda heard: b"r,0,R,0\r\n" in heard)
    client.flush()
    return one, client


def test_bota_streams_with_its_stored_settings_after_power_up():
    with served("bota") as one:
        client = Serial(one, 460800)
        client.take(lambda heard: bota_records(heard)[0])  # what it reported at its first start is behind us
        one.control.inject("sensor_reboot")
        heard = client.take(lambda heard: b"App Init" in heard and len(heard) > heard.index(b"App Init") + 30 * 37)
        records, other = bota_records(heard[heard.index(b"App Init") + 10 :])
        assert other == 0 and [record[1] for record in records] == [0] * len(records)
        assert np.allclose([record[2:8] for record in records], BIAS, atol=1e-4)
        clock = np.diff([record[8] for record in records])  # 512 samples of 19.53125 us
        assert set(clock) <= {10000, 10001, 9999}
        client.close()


def test_bota_dialogue(bota):
    one, client = bota
    bota_set_up(client, b"C")
    assert client.silent()
    bota_set_up(client, b"c,0,1,0,4", b"f,256,1,1,0", b" \r\nC")
    for refused in (b"c,0,1,1,4", b"c,0,1,0,5", b"f,50,0,0,1", b"f,513,0,0,1", b"c,x", b"Z"):
        client.port.write(refused)
        assert client.take(lambda heard: heard.endswith(b"\n")).startswith(b"r,0,%c,1\r\n" % refused[0])
        client.settle()
    client.port.write(b"R")
    stream = client.take(lambda heard: len(heard) > 9 + 20 * 37)
    assert stream.startswith(b"r,0,R,0\r\n")
    records, other = bota_records(stream[9:])
    assert other == 0 and len(records) >= 20
    assert np.allclose(np.diff([record[8] for record in records]), 5000, atol=1)


def test_bota_gage_values_are_marked_as_raw(bota):
    _, client = bota
    bota_set_up(client, b"C", b"c,0,0,0,4", b"f,128,0,0,1")
    client.port.write(b"R")
    records, _ = bota_records(client.take(lambda heard: len(heard) > 9 + 5 * 37)[9:])
    assert all(record[1] == 0x8 for record in records)
    assert np.allclose(records[0][2:8], np.array(BIAS) * ([1e5] * 3 + [2e5] * 3), rtol=1e-6)


def test_bota_line_carries_what_it_can(bota):
    """At 57600 bit/s a record takes 6.4 ms: at 800 Hz most are left out, and the next one says so."""
    _, client = bota
    bota_set_up(client, b"C", b"c,0,1,0,1", b"f,64,0,0,1")
    client.port.write(b"R")
    records, other = bota_records(client.take(lambda heard: len(heard) > 9 + 40 * 37)[9:])
    assert other == 0
    clock = [record[8] for record in records][5:]
    assert np.mean(np.diff(clock)) == pytest.approx(37 * 10 / 57600 * 1e6, rel=0.1)
    assert sum(record[1] & 1 for record in records) > len(records) // 2


@pytest.mark.parametrize(
    "fault, shown",
    [
        ("sensor_saturated", lambda records, other, clock: all(r[1] == 0x4 for r in records[-10:]) and not other),
        ("sensor_out_of_range", lambda records, other, clock: all(r[1] == 0x2 for r in records[-10:]) and not other),
        ("sensor_lost", lambda records, other, clock: set(np.round(clock[-20:] / 1250)) == {1, 2} and not other),
        ("sensor_duplicate", lambda records, other, clock: 0 in clock and not other),
        ("sensor_stale", lambda records, other, clock: not clock[-20:].any() and not other),
        ("sensor_corrupt", lambda records, other, clock: other > 0 and set(np.round(clock[-20:] / 1250)) == {1, 2}),
        ("sensor_checksum", lambda records, other, clock: other >= 37 and set(np.round(clock[-20:] / 1250)) == {1, 2}),
        ("sensor_noise", lambda records, other, clock: other > 0 and set(np.round(clock[-20:] / 1250)) == {1}),
        ("sensor_slow", lambda records, other, clock: set(np.round(clock[-20:] / 1250)) == {2} and not other),
    ],
)
def test_bota_lies_on_request(running, fault, shown):
    one, client = running
    one.control.inject(fault)
    client.settle()
    stream = client.take(lambda heard: len(heard) > 60 * 37)
    records, _ = bota_records(stream)
    begun = stream.index(struct.pack("<BH6fI", *records[0][:9]))  # before it the end of a record
    records, other = bota_records(stream[begun:])
    assert shown(records, other, np.diff([record[8] for record in records])), (other, len(records))


def test_bota_silence_and_reboot(running):
    one, client = running
    one.control.inject("sensor_silent")
    assert client.silent()
    client.port.write(b"C")
    assert client.silent()
    one.control.clear("sensor_silent")
    records, _ = bota_records(client.take(lambda heard: len(heard) > 5 * 37))
    before = records[-1][8]
    one.control.inject("sensor_reboot")
    heard = client.take(lambda heard: b"App Init" in heard and len(heard) > heard.index(b"App Init") + 10 * 37)
    records, _ = bota_records(heard[heard.index(b"App Init") :])
    clock = [record[8] for record in records]
    assert clock[0] < before and set(np.diff(clock)) <= {9999, 10000, 10001}  # what was not stored is lost


# --------------------------------------------------------------------------------------------------------------- Robotiq
def modbus(*body):
    """A request or an answer with its CRC-16/Modbus."""
    data = b"".join(part if isinstance(part, bytes) else bytes([part]) for part in body)
    return data + struct.pack("<H", crc16.modbus(data))


def reading(first, count):
    return modbus(9, 3, struct.pack(">HH", first, count))


def writing(register, value):
    return modbus(9, 16, struct.pack(">HHBH", register, 1, 2, value))


STREAM = writing(410, 0x0200)
WRENCH = struct.pack("<6h", 10000, -20000, 30000, 4000, -5000, 6000)  # BIAS in 1/100 N and 1/1000 N.m


def robotiq_records(stream):
    """(records, bytes that belong to none): a record is 0x20 0x4E, six i16, and the CRC-16/Modbus of both."""
    records, other, at = [], 0, 0
    while at + 16 <= len(stream):
        record = stream[at : at + 16]
        if record[:2] == b"\x20\x4e" and crc16.modbus(record[:14]) == struct.unpack_from("<H", record, 14)[0]:
            records.append(record[2:14])
            at += 16
        else:
            other, at = other + 1, at + 1
    return records, other


@pytest.fixture(scope="module")
def robotiq():
    with served("robotiq") as one:
        client = Serial(one, 19200)
        client.settle(100)  # it runs
        yield one, client
        client.close()


@pytest.fixture
def asked(robotiq):
    """A sensor that does not stream."""
    one, client = robotiq
    one.control.clear_all()
    client.port.write(b"\xff" * 50)
    client.settle(50)
    client.port.write(b"\xff" * 8)  # what it may still wait for
    assert client.silent(50)
    return one, client


def answer(client, request, size):
    client.port.write(request)
    return client.take(lambda heard: len(heard) >= size)


def test_robotiq_registers(asked):
    _, client = asked
    assert answer(client, reading(180, 6), 17) == modbus(9, 3, 12, struct.pack(">6h", *struct.unpack("<6h", WRENCH)))
    heard = answer(client, reading(500, 2), 9)
    assert heard == modbus(9, 3, 4, b"FTS\x02")  # the published driver knows a sensor by the F
    assert answer(client, reading(514, 1), 7) == modbus(9, 3, 2, struct.pack(">H", 2024))
    assert len(answer(client, reading(510, 4), 13)) == 13
    # exceptions
    assert answer(client, reading(100, 1), 5) == modbus(9, 0x83, 2)
    assert answer(client, reading(180, 0), 5) == modbus(9, 0x83, 3)
    assert answer(client, reading(183, 65), 5) == modbus(9, 0x83, 3)
    assert answer(client, modbus(9, 4, struct.pack(">HH", 180, 6)), 5) == modbus(9, 0x84, 1)
    assert answer(client, writing(411, 1), 5) == modbus(9, 0x90, 2)
    # no answers: another slave, a wrong checksum, half a request; after a silence the next one is understood
    for nothing in (modbus(8, 3, struct.pack(">HH", 180, 6)), reading(180, 6)[:-1] + b"\x00", reading(180, 6)[:5]):
        client.port.write(nothing)
        assert client.silent(50)
        assert len(answer(client, reading(180, 1), 7)) == 7


def test_robotiq_stream_starts_and_stops(asked):
    one, client = asked
    heard = answer(client, STREAM, 8 + 60 * 16)
    assert heard.startswith(modbus(9, 16, struct.pack(">HH", 410, 1)))
    records, other = robotiq_records(heard[8:])
    assert other == 0 and set(records) == {WRENCH}
    # it hears nothing but the characters that stop it, and those in one piece
    client.port.write(reading(180, 6) + b"\xff" * 49 + b"\x00" + b"\xff" * 49)
    records, other = robotiq_records(client.take(lambda heard: len(heard) >= 20 * 16))
    assert other == 0 and len(records) >= 20
    client.port.write(b"\xff")
    assert client.silent()
    assert len(answer(client, reading(180, 6), 17)) == 17


@pytest.mark.parametrize(
    "fault, shown",
    [
        ("sensor_saturated", lambda records, other: set(records) == {struct.pack("<6h", 32767, -32768, 32767, 32767, -32768, 32767)}),
        ("sensor_corrupt", lambda records, other: other > 0 and set(records) == {WRENCH}),
        ("sensor_checksum", lambda records, other: other >= 16 and set(records) == {WRENCH}),
        ("sensor_noise", lambda records, other: other > 0 and set(records) == {WRENCH}),
    ],
)
def test_robotiq_lies_on_request(asked, fault, shown):
    one, client = asked
    answer(client, STREAM, 8)
    one.control.inject(fault)
    client.settle(50)
    stream = client.take(lambda heard: len(heard) > 30 * 16)
    begun = stream.index(b"\x20\x4e" + robotiq_records(stream)[0][0])
    assert shown(*robotiq_records(stream[begun:])), stream


def test_robotiq_half_the_rate(asked):
    """There is no counter in the record: at half its rate it sends 50 in a second. An upper bound holds on a busy machine too."""
    one, client = asked
    answer(client, STREAM, 8)
    one.control.inject("sensor_slow")
    began = time.monotonic()
    client.settle(100)
    heard = client.take(lambda heard: len(heard) >= 25 * 16)
    assert len(heard) / 16 < 50 * (time.monotonic() - began) + 2


def test_robotiq_repeats_its_last_record(asked):
    one, client = asked
    answer(client, STREAM, 8)
    one.control.inject("sensor_stale")
    one.control.inject("gauge_saturated", 0, 1000.0)
    records, _ = robotiq_records(client.take(lambda heard: len(heard) >= 30 * 16))
    assert set(records[5:]) == {WRENCH}
    one.control.clear("sensor_stale")
    client.take(lambda heard: bool(robotiq_records(heard)[0]) and robotiq_records(heard)[0][-1][:2] == b"\x01\x00")


def test_robotiq_is_silent_and_reboots(asked):
    one, client = asked
    answer(client, STREAM, 8)
    one.control.inject("sensor_silent")
    assert client.silent()
    one.control.clear("sensor_silent")
    client.take(lambda heard: len(robotiq_records(heard)[0]) > 3)
    one.control.inject("sensor_reboot")
    assert client.silent()  # it does not stream by itself
    assert len(answer(client, reading(180, 6), 17)) == 17


# ------------------------------------------------------------------------------------------------------------------- ATI
class Bus:
    """A client on a CAN link that carries its frames in datagrams."""

    def __init__(self, one):
        self.base = one.ports["wrench_sensors"]["base_identifier"]
        link = open_link(one.ports["wrench_sensors"]["link"])
        self.bus = FrameBus(link, "test")
        self.link, self.clock = link, StandClock(one)

    def ask(self, opcode, *data, frames=1, base=None):
        """The answer's frames as (opcode, data); None for an error frame; fewer when no more come in 50 ms of its time."""
        self.bus.send(can.Message(arbitration_id=(self.base if base is None else base) << 4 | opcode, data=data, is_extended_id=False))
        found = []
        while len(found) < frames:
            self.clock.let_pass(50, self.link)
            if not select.select([self.link], [], [], 0.0)[0]:
                break
            identifier, length, data = struct.unpack("=IB3x8s", self.link.recv(72))
            found.append(None if identifier & 0x20000000 else (identifier & 0xF, data[:length]))
            assert identifier & 0x20000000 or identifier >> 4 == self.base
        return found

    def gages(self):
        """(status, six gages) of a whole answer."""
        (zero, even), (one, odd) = self.ask(0, frames=2)
        assert (zero, one) == (0, 1)
        status, *even = struct.unpack(">H3h", even)
        odd = struct.unpack(">3h", odd)
        return status, np.array([even, odd]).T.ravel()

    def matrix(self):
        """The calibration, counts per gage value."""
        rows = []
        for row in range(6):
            answer = self.ask(2, row, frames=3)
            assert [opcode for opcode, _ in answer] == [2, 3, 4]
            rows.append(struct.unpack(">6f", b"".join(data for _, data in answer)))
        return np.array(rows)

    def close(self):
        self.link.close()
        self.clock.close()


@pytest.fixture(scope="module")
def ati():
    with served("netcanoem", netcanoem={"base": 0x20, "force_range_n": 1000.0, "torque_range_n_m": 100.0}) as one:
        bus = Bus(one)
        until(lambda: bus.ask(0xF), one.control.ping)
        yield one, bus
        bus.close()


@pytest.fixture
def board(ati):
    one, bus = ati
    one.control.clear_all()
    yield one, bus
    bus.clock.let_pass(20)
    while select.select([bus.link], [], [], 0.0)[0]:
        bus.link.recv(72)


def test_ati_wrench_is_the_matrix_times_the_gages(board):
    _, bus = board
    counts = np.repeat(struct.unpack(">II", bus.ask(7)[0][1]), 3)
    status, gages = bus.gages()
    assert status == 0 and bus.ask(8) == [(8, b"\x02\x03")]  # N, N.m
    matrix = bus.matrix()
    assert np.count_nonzero(abs(matrix) > 1e-9) > 12  # gages of three beams: no diagonal would find a transposed matrix
    step = abs(matrix).sum(1) / counts  # half a gage value on each
    assert np.all(abs(matrix @ gages / counts - BIAS) <= 0.5 * step + 1e-6)


def test_ati_answers_what_the_manual_lists(board):
    _, bus = board
    assert bus.ask(5) == [(5, b"FT00001 ")]
    assert bus.ask(6, 0) == [(6, b"\x00")]
    assert [len(data) for _, data in bus.ask(0xF)] == [4] and [len(data) for _, data in bus.ask(9, 1)] == [2]
    assert bus.ask(6, 3) == [(6, b"\x03")] and bus.gages()[0] == 0x8040  # no such calibration
    assert bus.ask(6, 0) and bus.gages()[0] == 0
    for opcode, data in ((2, (6,)), (2, ()), (6, (16,)), (0xA, ()), (0xB, ())):  # nothing to say
        assert bus.ask(opcode, *data) == []
    assert bus.ask(0, base=0x21) == []


def test_ati_base_changes_with_the_next_reset(board):
    one, bus = board
    assert bus.ask(0xD, 0x31) == [(0xD, b"")]
    assert bus.gages()[0] == 0
    assert bus.ask(0xC) == []
    bus.base = 0x31
    until(lambda: bus.ask(0xF), one.control.ping)
    assert bus.gages()[0] == 0
    bus.ask(0xD, 0x20)
    bus.ask(0xC)
    bus.base = 0x20
    until(lambda: bus.ask(0xF), one.control.ping)


@pytest.mark.parametrize(
    "fault, shown",
    [
        ("sensor_device_fault", lambda bus: bus.gages()[0] == 0x8008),
        ("sensor_supply", lambda bus: bus.gages()[0] == 0x8010),
        ("sensor_temperature", lambda bus: bus.gages()[0] == 0x8800),
        ("sensor_saturated", lambda bus: set(bus.gages()[1]) == {32767}),
        ("sensor_lost", lambda bus: sorted(len(bus.ask(0, frames=2)) for _ in range(3)) == [0, 2, 2]),
        ("sensor_slow", lambda bus: sorted(len(bus.ask(0, frames=2)) for _ in range(4)) == [0, 0, 2, 2]),
        ("sensor_silent", lambda bus: not bus.ask(0) and not bus.ask(0xF)),
        ("sensor_noise", lambda bus: sum(None in bus.ask(0, frames=3) for _ in range(3)) == 1),
        ("sensor_corrupt", lambda bus: sorted(len(bus.ask(0, frames=2)[0][1]) for _ in range(3)) == [5, 8, 8]),
        ("sensor_duplicate", lambda bus: sorted(len(bus.ask(0, frames=4)) for _ in range(3)) == [2, 2, 4]),
        ("sensor_reorder", lambda bus: sorted(bus.ask(0, frames=2)[0][0] for _ in range(3)) == [0, 0, 1]),
    ],
)
def test_ati_lies_on_request(board, fault, shown):
    one, bus = board
    one.control.inject(fault)
    assert shown(bus)


def test_ati_repeats_its_last_gages_and_says_that_it_rebooted(board):
    one, bus = board
    one.control.inject("sensor_stale")
    before = bus.gages()[1]
    one.control.inject("gauge_saturated", 0, 1000.0)
    assert np.array_equal(bus.gages()[1], before)
    one.control.clear("sensor_stale")
    assert not np.array_equal(bus.gages()[1], before)
    one.control.inject("sensor_reboot")
    until(lambda: bus.ask(0xF), one.control.ping)
    assert bus.gages()[0] == 0x8001
    bus.ask(0xC)
    until(lambda: bus.ask(0xF), one.control.ping)
    assert bus.gages()[0] == 0


# --------------------------------------------------------------------------------------------------------------- OnRobot
class Stream:
    """A client of the UDP stream."""

    def __init__(self, one):
        ports = one.ports["wrench_sensors"]
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect((ports["address"], ports["stream_port"]))
        self.clock = StandClock(one)

    def send(self, command, count=0):
        self.socket.send(struct.pack(">HHI", 0x1234, command, count))

    def records(self, count):
        """(sequence, counter, status, six counts) of so many records, damaged ones as they are; fewer when none comes in 100 ms of the
        stand's time."""
        found = []
        while len(found) < count:
            if not select.select([self.socket], [], [], 0.0)[0]:
                self.clock.let_pass(100, self.socket)
            if not select.select([self.socket], [], [], 0.0)[0]:
                break
            data = self.socket.recv(2048)
            found.append(struct.unpack(">III6i", data) if len(data) == 36 else data)
        return found

    def drain(self):
        while select.select([self.socket], [], [], 0)[0]:
            self.socket.recv(2048)

    def silent(self):
        """Whether nothing comes to the commands that it has had."""
        self.clock.let_pass(10)
        self.drain()
        return not self.records(1)

    def close(self):
        self.socket.close()
        self.clock.close()


@pytest.fixture(scope="module")
def hex_():
    with served("onrobot", rate_hz=100.0) as one:
        stream = Stream(one)
        yield one, stream
        stream.close()


@pytest.fixture
def streaming(hex_):
    """A HEX at 500 Hz without filter and bias."""
    one, stream = hex_
    one.control.clear_all()
    for command, count in ((0x0000, 0), (0x0042, 0), (0x0081, 0), (0x0082, 2)):
        stream.send(command, count)
    assert stream.silent()
    stream.send(0x0002)
    return one, stream


def test_onrobot_bias_is_set_and_taken_back(streaming):
    _, stream = streaming
    counts = np.array(BIAS) * ([1e5] * 3 + [2e5] * 3)
    assert np.array_equal(stream.records(5)[-1][3:], counts)
    stream.send(0x0042, 0xFF)
    while any(stream.records(1)[0][3:]):
        pass
    stream.send(0x0042, 0)
    while not np.array_equal(stream.records(1)[0][3:], counts):
        pass


def test_onrobot_period_and_filter(streaming):
    """The filter is a first-order low-pass: after n records of a step 1 - (1 + a)^-n, a = 2 pi f T, of it is there."""
    one, stream = streaming
    stream.send(0x0082, 4)
    stream.send(0x0081, 4)  # 15 Hz
    stream.records(10)
    one.control.inject("gauge_saturated", 0, 0.0)
    values = np.array([record[3] for record in stream.records(60)]) / 1e7
    begun = int(np.argmax(values < 1.0))
    expected = (1.0 + 2 * np.pi * 15.0 * 0.004) ** -np.arange(1.0, 21.0)
    assert np.allclose(values[begun : begun + 20], expected, atol=1e-6)


@pytest.mark.parametrize(
    "fault, shown",
    [
        ("sensor_noise", lambda records: any(isinstance(record, bytes) for record in records)),
        ("sensor_saturated", lambda records: records[-1][2] == 1),
        ("sensor_corrupt", lambda records: any(isinstance(record, bytes) and len(record) == 20 for record in records)),
        ("sensor_stale", lambda records: records[-1][0] == records[-5][0] + 4 and records[-1][1] == records[-5][1]),
        ("sensor_reboot", lambda records: len(records) < 60),
    ],
)
def test_onrobot_lies_on_request(streaming, fault, shown):
    one, stream = streaming
    assert stream.records(3)[-1][2] == 0
    one.control.inject(fault)
    assert shown(stream.records(300))


def test_onrobot_half_the_rate(streaming):
    """An upper bound: it holds on a busy machine too."""
    one, stream = streaming
    one.control.inject("sensor_slow")
    began = time.monotonic()
    stream.clock.let_pass(100)
    stream.drain()
    assert len(stream.records(80)) < 250 * (time.monotonic() - began) + 2
