"""Damaged streams of force sensors: what a port believes of them, against what the sensor had sent.

A stream is a smooth wrench over some tens of records, packed as the sensor packs it; a few bytes in its middle are damaged. Nothing here
uses the ports' code but the port that is judged: records are packed by `struct`, checksums are formed here.
"""

import math
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hil_server import registry

COUNT, FIRST, LAST = 26, 5, 14  # records of a stream; those within FIRST ... LAST may be damaged
BACK_IN_STEP = 5  # records after the damage


def crc16(data: bytes, generator: int, invert: int) -> int:
    """Reflected 16-bit checksum, bit by bit."""
    value = 0xFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (generator if value & 1 else 0)
    return value ^ invert


_TABLES: dict[int, list[int]] = {}


def fast_crc16(data: bytes, generator: int, invert: int) -> int:
    """The same by a table."""
    table = _TABLES.get(generator)
    if table is None:
        table = _TABLES[generator] = []
        for byte in range(256):
            value = byte
            for _ in range(8):
                value = value >> 1 ^ (generator if value & 1 else 0)
            table.append(value)
    value = 0xFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xFF]
    return value ^ invert


def smooth_wrenches(rng: random.Random, ranges: tuple[float, ...]) -> list[list[float]]:
    """A slow wrench with noise, at most 0.8 of the range and 0.05 of it from record to record."""
    drawn = [(rng.uniform(0.05, 0.7) * r, rng.uniform(0.01, 0.05), rng.uniform(0.0, 6.28), 0.002 * r) for r in ranges]
    return [[a * math.sin(w * k + start) + rng.gauss(0.0, noise) for a, w, start, noise in drawn] for k in range(COUNT)]


class Bota:
    """37 bytes: AA, u16 status, 6 f32, u32 stamp in us, f32 degC, CRC-16/X-25 over bytes 1 ... 34."""

    RANGES = (500.0, 500.0, 1200.0, 15.0, 15.0, 12.0)
    KEYS = {"device": "-", "configure": False, "sinc_length": 64, "force_range_n": RANGES[:3], "moment_range_n_m": RANGES[3:]}
    LENGTH, STAMPED = 37, True

    @staticmethod
    def sealed(body: bytes) -> bytes:
        return body + struct.pack("<H", fast_crc16(body[1:], 0x8408, 0xFFFF))

    def records(self, rng: random.Random) -> list[bytes]:
        start = rng.randrange(1 << 32)
        made = []
        for k, wrench in enumerate(smooth_wrenches(rng, self.RANGES)):
            stamp = (start + 1250 * k + rng.randint(-3, 3)) % (1 << 32)
            made.append(self.sealed(struct.pack("<BH6fIf", 0xAA, 0, *wrench, stamp, 31.5)))
        return made

    def values(self, record: bytes) -> tuple[float, ...]:
        return struct.unpack_from("<6f", record, 3)


class Robotiq:
    """16 bytes: 20 4E, 6 i16 in N/100 and N.m/1000, CRC-16/Modbus over bytes 0 ... 13."""

    RANGES = (300.0, 300.0, 300.0, 30.0, 30.0, 30.0)
    KEYS = {"device": "-", "configure": False, "stream_rate_hz": 0.0}
    LENGTH, STAMPED = 16, False

    @staticmethod
    def sealed(body: bytes) -> bytes:
        return body + struct.pack("<H", fast_crc16(body, 0xA001, 0))

    def records(self, rng: random.Random) -> list[bytes]:
        scale = (100, 100, 100, 1000, 1000, 1000)
        return [
            self.sealed(b"\x20\x4e" + struct.pack("<6h", *(round(x * s) for x, s in zip(wrench, scale, strict=True))))
            for wrench in smooth_wrenches(rng, self.RANGES)
        ]

    def values(self, record: bytes) -> tuple[float, ...]:
        counts = struct.unpack_from("<6h", record, 2)
        return tuple(c / (100.0 if n < 3 else 1000.0) for n, c in enumerate(counts))


# ----------------------------------------------------------------------------------------------------------------------- damage
# (rng, bytes of the records that may be damaged, length of a record) → the bytes that arrive instead


def flip(rng: random.Random, data: bytes, length: int) -> bytes:
    """One to sixteen bits somewhere within one to three records."""
    found = bytearray(data)
    start = rng.randrange(len(found))
    span = min(len(found) - start, rng.randint(1, 3 * length))
    for _ in range(rng.randint(1, 16)):
        found[start + rng.randrange(span)] ^= 1 << rng.randrange(8)
    return bytes(found)


def lose(rng: random.Random, data: bytes, length: int) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 3 * length) :]


def insert(rng: random.Random, data: bytes, length: int) -> bytes:
    """Noise, or a piece of what had come before, which has headers."""
    start, count = rng.randrange(len(data)), rng.randint(1, 3 * length)
    before = data[:start]
    at = rng.randrange(start) if start else 0
    noise = before[at : at + count] if before and rng.random() < 0.4 else rng.randbytes(count)
    return before + noise + data[start:]


def cut(rng: random.Random, data: bytes, length: int) -> bytes:
    """The end of a record is missing."""
    k = rng.randrange(len(data) // length)
    return data[: k * length + rng.randint(1, length - 1)] + data[(k + 1) * length :]


def double(rng: random.Random, data: bytes, length: int) -> bytes:
    """One to three records, or as many bytes, twice."""
    start = length * rng.randrange(len(data) // length)
    if rng.random() < 0.5:
        start += rng.randrange(length)
    end = start + (length * rng.randint(1, 3) if rng.random() < 0.5 else rng.randint(1, 3 * length))
    return data[:end] + data[start:]


SINGLE = {"flip": flip, "lose": lose, "insert": insert, "cut": cut, "double": double}


def mixed(rng: random.Random, data: bytes, length: int) -> bytes:
    for _ in range(rng.randint(2, 4)):
        data = rng.choice(list(SINGLE.values()))(rng, data, length) or b"\0"
    return data


DAMAGE: dict[str, Callable[[random.Random, bytes, int], bytes]] = {**SINGLE, "mixed": mixed}


def collided(rng: random.Random, records: list[bytes], sealed: Callable[[bytes], bytes]) -> tuple[int, bytes, bytes]:
    """One damaged record whose checksum is right all the same, as one in 65536 is: which, its bytes, and the stream with it."""
    k = rng.randrange(FIRST, LAST)
    body = bytearray(records[k][:-2])
    begin = 2 if body[0] == 0x20 else 1
    for _ in range(rng.randint(2, 16)):
        body[rng.randrange(begin, len(body))] ^= 1 << rng.randrange(8)
    made = sealed(bytes(body))
    return k, made, b"".join([*records[:k], made, *records[k + 1 :]])


# ----------------------------------------------------------------------------------------------------------------------- judgement


@dataclass
class Verdict:
    """Outcome of one stream. wrong: believed records that no one sent, with their own fault (reported) or without."""

    wrong_said: int = 0
    wrong_unsaid: int = 0
    out_of_order: int = 0  # believed records that had been sent, but not in this order, without a fault
    late: int = 0  # whole records after the damage that were not believed
    silent: int = 0  # 1: something is missing or wrong, and nothing was reported
    suspects: int = 0
    newest: int = -1  # highest number of a believed record
    reported: int = 0  # all bits of sensor_status
    taken: list[int | None] = field(default_factory=list)  # numbers of the believed records; None: no one sent it

    def take_tick(self, sent: dict[tuple, int], believed: list[tuple[tuple, int]], seen: int) -> None:
        """A tick of a port that is asked or sent records one by one; what it believes is reported by any fault of the same tick."""
        self.reported |= seen
        for values, status in believed:
            n = sent.get(values)
            if n is None:
                self.wrong_said += bool(status or seen)
                self.wrong_unsaid += not (status or seen)
            elif n <= self.newest:
                self.out_of_order += not (status or seen)
            else:
                self.newest = n
            self.taken.append(n)


def damaged_stream(sensor, rng: random.Random, kind: str) -> tuple[list[bytes], bytes, bytes, bytes]:
    """The records that were sent, and the bytes that arrive: before the damage, damaged, after it."""
    records = sensor.records(rng)
    before, middle, after = (b"".join(part) for part in (records[:FIRST], records[FIRST:LAST], records[LAST:]))
    return records, before, DAMAGE[kind](rng, middle, sensor.LENGTH), after


def judged(sensor, port, clean: bytes, rng: random.Random, kind: str) -> Verdict:
    """One stream through the port, in pieces of any size. clean: the port's state before any byte."""
    records, before, damaged, after = damaged_stream(sensor, rng, kind)
    port.restore(clean)
    sent = {sensor.values(record): k for k, record in enumerate(records)}
    verdict, newest, reported, taken = Verdict(), -1, 0, []
    data = before + damaged + after
    while data:
        size = rng.choice((1, 7, 16, 37, 64, 200, len(data)))
        believed, seen = port.feed(data[:size])
        data = data[size:]
        reported |= seen
        for values, status in believed:
            k = sent.get(values)
            if k is None:
                verdict.wrong_said += status != 0
                verdict.wrong_unsaid += status == 0
            elif k < newest:
                verdict.out_of_order += status == 0
            newest = newest if k is None else max(newest, k)
            taken.append(k)
    # the first record of all is only compared with; behind the damage the cut may have left the end of another one
    verdict.late = next((n for n, k in enumerate(range(LAST, COUNT)) if k in taken), COUNT)
    missing = set(range(1, COUNT)) - set(taken)
    verdict.silent = int(bool(missing or verdict.wrong_said or verdict.wrong_unsaid) and not reported)
    verdict.suspects = port.counters()["suspect"]
    return verdict


def port_of(name: str, **keys):
    """A sensor of SENSORS and the port that reads it, never opened. keys: beside those of the sensor."""
    sensor = SENSORS[name]()
    port = registry.part("wrench_sensors", getattr(sensor, "NAME", name))(**sensor.KEYS, **keys)
    if isinstance(sensor, AtiCan):
        sensor.prepare(port)
    return sensor, port


def tally(sensor, port, seed: str, count: int) -> dict[str, Counter]:
    """Damage → outcomes of `count` streams in all."""
    judge, damage = judged, DAMAGE
    if isinstance(sensor, AtiCan):
        judge, damage = judged_on_can, {**CAN_DAMAGE, "mixed": can_mixed}
    elif isinstance(sensor, OnRobot):
        judge, damage = judged_on_udp, {**UDP_DAMAGE, "mixed": udp_mixed}
    clean = port.snapshot()
    found: dict[str, Counter] = {kind: Counter() for kind in damage}
    kinds = list(damage)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        v = judge(sensor, port, clean, random.Random(f"{seed}/{number}"), kind)
        c = found[kind]
        c["streams"] += 1
        for name in ("wrong_said", "wrong_unsaid", "out_of_order", "silent", "suspects"):
            c[name] += getattr(v, name)
        c["late"] = max(c["late"], v.late)
    port.restore(clean)
    return found


def collisions(sensor, port, seed: str, count: int) -> Counter:
    """Outcomes of `count` damaged records whose checksum is right."""
    clean, found = port.snapshot(), Counter()
    if isinstance(sensor, AtiCan):
        return can_collisions(sensor, port, seed, count)
    for number in range(count):
        rng = random.Random(f"{seed}/collision/{number}")
        records = sensor.records(rng)
        k, made, data = collided(rng, records, sensor.sealed)
        if made in records:
            continue
        port.restore(clean)
        believed, seen = port.feed(data)
        found["streams"] += 1
        wrong = [(values, status) for values, status in believed if values not in {sensor.values(r) for r in records}]
        if not wrong:
            # the values may be the right ones: what was damaged is stamp, status or temperature
            right = sensor.values(made) == sensor.values(records[k])
            found["values right" if right else "not believed"] += 1
            found["not believed and unreported"] += not seen and not right
        elif all(status for _, status in wrong):
            found["believed, reported"] += 1
        else:
            found["believed, unreported"] += 1
            pairs = zip(sensor.values(made), sensor.values(records[k]), sensor.RANGES, strict=True)
            error = max(abs(a - b) / r for a, b, r in pairs)
            found["largest error, 1e-3 of range"] = max(found["largest error, 1e-3 of range"], round(1000 * error))
    return found


# ------------------------------------------------------------------------------------------------------------------------ on CAN

FRAME = struct.Struct("=IB3x8s")  # struct can_frame of linux/can.h
CAN_ERR_FLAG, CAN_ERR_PROT = 0x20000000, 0x08
TICK_NS = 1_000_000


class AtiCan:
    """Two frames for a request: status u16, G0, G2, G4 i16; G1, G3, G5 i16, big-endian. Gauges are a mixture of the six channels."""

    RANGES = (200.0, 200.0, 400.0, 10.0, 10.0, 10.0)
    KEYS = {"link": "fd:0", "base_identifier": 0x20, "force_range_n": RANGES[:3], "moment_range_n_m": RANGES[3:]}
    BASE, STAMPED = 0x200, False
    MATRIX = [[(1.0 if i == k else 0.25 * ((3 * i + 5 * k) % 7 - 3) / 3) * r / 20000 for k in range(6)] for i, r in enumerate(RANGES)]

    def prepare(self, port) -> None:
        port.calibrate(self.MATRIX, 1.0, 1.0)

    def samples(self, rng: random.Random) -> list[tuple[int, ...]]:
        return [tuple(round(x) for x in row) for row in smooth_wrenches(rng, (12000.0,) * 6)]

    def values(self, gauges: tuple[int, ...]) -> tuple[float, ...]:
        """In the order in which the port adds."""
        rows = []
        for row in self.MATRIX:
            total = 0.0
            for m, g in zip(row, gauges, strict=True):
                total += m * g
            rows.append(total)
        return tuple(rows)

    def frames(self, gauges: tuple[int, ...], status: int = 0) -> list[bytes]:
        first, second = struct.pack(">H3h", status, *gauges[::2]), struct.pack(">3h", *gauges[1::2])
        return [FRAME.pack(self.BASE, 8, first), FRAME.pack(self.BASE | 1, 6, second)]

    def error(self) -> bytes:
        return FRAME.pack(CAN_ERR_FLAG | CAN_ERR_PROT, 8, bytes(8))


# (rng, frames of one answer, sensor) → (ticks later, frame) in order
def can_flip(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    """Bits turned over on the wire: the controller refuses the frame and says so."""
    hurt = rng.randrange(2)
    return [(0, sensor.error() if n == hurt else frame) for n, frame in enumerate(frames)]


def can_lose(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    kept = rng.choice(([], [0], [1]))
    return [(0, frames[n]) for n in kept]


def can_insert(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    """Another device, another answer of the sensor, or somebody with its identifier."""
    identifier = rng.choice((rng.randrange(0x800), sensor.BASE | rng.randrange(16), sensor.BASE | rng.randrange(2)))
    noise = FRAME.pack(identifier, rng.choice((0, 6, 8, rng.randrange(9))), rng.randbytes(8))
    made = [(0, frame) for frame in frames]
    made.insert(rng.randrange(3), (0, noise))
    return made


def can_cut(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    """A frame of a wrong length, or a record of the transport that is cut."""
    n, made = rng.randrange(2), [(0, frame) for frame in frames]
    identifier, length, data = FRAME.unpack(frames[n])
    made[n] = (0, FRAME.pack(identifier, rng.randrange(length), data))
    return made


def can_double(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    made = rng.choice((frames * 2, frames[:1] + frames, frames + frames[1:]))
    return [(0, frame) for frame in made]


def can_late(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    """One half or both come some ticks later, or the wrong way round."""
    if rng.random() < 0.3:
        return [(0, frame) for frame in frames[::-1]]
    first = rng.choice((0, rng.randint(1, 4)))
    return [(first, frames[0]), (first + rng.choice((0, rng.randint(1, 4))), frames[1])]


CAN_DAMAGE = {"flip": can_flip, "lose": can_lose, "insert": can_insert, "cut": can_cut, "double": can_double, "late": can_late}


def can_mixed(rng: random.Random, frames: list[bytes], sensor: AtiCan) -> list[tuple[int, bytes]]:
    return rng.choice(list(CAN_DAMAGE.values()))(rng, frames, sensor)


def judged_on_can(sensor: AtiCan, port, clean: bytes, rng: random.Random, kind: str) -> Verdict:
    """A run of ticks in which the port asks and a sensor answers; a wrong sample counts as reported when its tick has any fault."""
    port.restore(clean)
    samples = sensor.samples(rng)
    sent = {sensor.values(gauges): k for k, gauges in enumerate(samples)}
    waiting: dict[int, list[bytes]] = {}
    verdict = Verdict()
    damage = can_mixed if kind == "mixed" else CAN_DAMAGE[kind]
    hurt = set(range(FIRST, LAST)) if kind == "mixed" else {rng.randrange(FIRST, LAST)}
    answered, ended = [], LAST  # the tick in which the last damaged answer is here
    for k in range(COUNT):
        believed, seen = port.feed(b"".join(waiting.pop(k, [])), k * TICK_NS)
        verdict.take_tick(sent, believed, seen)
        if port.ask() and k < COUNT - 1:
            answered.append(k)
            frames = sensor.frames(samples[k])
            for later, frame in damage(rng, frames, sensor) if k in hurt else [(0, frame) for frame in frames]:
                waiting.setdefault(k + 1 + later, []).append(frame)
                ended = max(ended, k + 1 + later if k in hurt else LAST)
    whole = [k for k in answered if k >= ended]
    verdict.late = next((n for n, k in enumerate(whole) if k in verdict.taken), COUNT)
    verdict.silent = int(bool(set(answered[1:]) - set(verdict.taken)) and not verdict.reported)
    verdict.suspects = port.counters()["suspect"]
    return verdict


def can_collisions(sensor: AtiCan, port, seed: str, count: int) -> Counter:
    """Answers with two to sixteen bits turned over that the controller let pass, as it does with one in 2^15."""
    clean, found = port.snapshot(), Counter()
    for number in range(count):
        rng = random.Random(f"{seed}/collision/{number}")
        samples = sensor.samples(rng)[: FIRST + 1]
        port.restore(clean)
        for gauges in samples[:-1]:
            port.ask()
            port.feed(b"".join(sensor.frames(gauges)))
        body = bytearray(struct.pack(">H6h", 0, *samples[-1]))
        for _ in range(rng.randint(2, 16)):
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
        status, *hurt = struct.unpack(">H6h", body)
        if not status and tuple(hurt) == samples[-1]:
            continue
        port.ask()
        believed, seen = port.feed(b"".join(sensor.frames(tuple(hurt), status)))
        found["streams"] += 1
        if not believed:
            found["not believed"] += 1
            found["not believed and unreported"] += not seen
        elif tuple(hurt) == samples[-1]:
            found["values right"] += 1
        elif seen:
            found["believed, reported"] += 1
        else:
            found["believed, unreported"] += 1
            error = max(abs(a - b) / r for a, b, r in zip(believed[0][0], sensor.values(samples[-1]), sensor.RANGES, strict=True))
            found["largest error, 1e-3 of range"] = max(found["largest error, 1e-3 of range"], round(1000 * error))
    return found


# -------------------------------------------------------------------------------------------------------------------- datagrams


class OnRobot:
    """36 bytes, big-endian: u32 sequence, u32 sample counter, u32 status, 6 i32 counts; in a datagram on Ethernet, whose checksum (CRC-32)
    and UDP's stand before the port."""

    NAME = "rdt"
    RANGES = (200.0, 200.0, 200.0, 10.0, 10.0, 6.5)
    SCALE = (10000, 10000, 10000, 100000, 100000, 100000)
    KEYS = {"variant": "onrobot", "address": "-", "scaling": "given", "counts_per_newton": 1e4, "counts_per_newton_metre": 1e5}
    LENGTH, STAMPED = 36, True

    def records(self, rng: random.Random) -> list[bytes]:
        start, sample = rng.randrange(1 << 32), rng.randrange(1 << 32)
        return [
            struct.pack(">III6i", (start + k) % (1 << 32), (sample + 2 * k) % (1 << 32), 0,
                        *(round(x * s) for x, s in zip(wrench, self.SCALE, strict=True)))
            for k, wrench in enumerate(smooth_wrenches(rng, self.RANGES))
        ]  # fmt: skip

    def values(self, record: bytes) -> tuple[int, ...]:
        return struct.unpack_from(">6i", record, 12)


def udp_flip(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    """Bits turned over on the wire: the network card compares its checksum, the kernel that of UDP."""
    hurt = bytearray(record)
    for _ in range(rng.randint(1, 16)):
        hurt[rng.randrange(len(hurt))] ^= 1 << rng.randrange(8)
    seals = [(zlib.crc32(data), sum(struct.unpack(">18H", data)) % 65535) for data in (hurt, record)]
    return [(0, bytes(hurt))] if seals[0] == seals[1] else []


def udp_lose(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    return []


def udp_insert(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    """Something else from the sensor's address, of any length that is no record."""
    noise = rng.randbytes(rng.choice([n for n in (*range(36), 40, 71, 73, 100, 500) if n % 36]))
    return [(0, noise), (0, record)] if rng.random() < 0.5 else [(0, record), (0, noise)]


def udp_cut(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    return [(0, record[: rng.randrange(len(record))])]


def udp_double(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    return [(0, record * 2)] if rng.random() < 0.3 else [(rng.randint(0, 3), record), (0, record)]


def udp_late(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    return [(rng.randint(1, 4), record)]


UDP_DAMAGE = {"flip": udp_flip, "lose": udp_lose, "insert": udp_insert, "cut": udp_cut, "double": udp_double, "late": udp_late}


def udp_mixed(rng: random.Random, record: bytes) -> list[tuple[int, bytes]]:
    return rng.choice(list(UDP_DAMAGE.values()))(rng, record)


def judged_on_udp(sensor: OnRobot, port, clean: bytes, rng: random.Random, kind: str) -> Verdict:
    """A record in a tick; those within FIRST ... LAST may be damaged, one or (mixed) all of them."""
    port.restore(clean)
    records = sensor.records(rng)
    sent = {sensor.values(record): k for k, record in enumerate(records)}
    damage = udp_mixed if kind == "mixed" else UDP_DAMAGE[kind]
    hurt = set(range(FIRST, LAST)) if kind == "mixed" else {rng.randrange(FIRST, LAST)}
    waiting: dict[int, list[bytes]] = {}
    verdict = Verdict()
    for k, record in enumerate(records):
        for later, datagram in damage(rng, record) if k in hurt else [(0, record)]:
            waiting.setdefault(k + later, []).append(datagram)
        believed, seen = port.feed(waiting.pop(k, []), k * TICK_NS)
        verdict.take_tick(sent, believed, seen)
    verdict.late = next((n for n, k in enumerate(range(LAST + 3, COUNT)) if k in verdict.taken), COUNT)
    # a record that was only overtaken is counted (late) and does no harm
    verdict.silent = int(bool(set(range(COUNT)) - set(verdict.taken)) and not verdict.reported and not port.counters()["late"])
    return verdict


SENSORS = {"bota_serial": Bota, "robotiq_ft300": Robotiq, "ati_can": AtiCan, "onrobot": OnRobot}
# those whose records the port itself checks against the one before; an OnRobot's are checked by Ethernet and UDP alone
CHECKED_HERE = ("bota_serial", "robotiq_ft300", "ati_can")
