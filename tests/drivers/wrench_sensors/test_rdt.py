"""The RDT port against a sensor made of `struct` and a socket, and the simulated sensor against a client made the same way."""

import random
import select
import socket
import struct
import threading
import time
from types import SimpleNamespace

import pytest

from drivers.simulated.injections import SERVED
from drivers.simulated.stand_server_client import StandProcess
from drivers.wrench_sensors import rdt_scaling, rdt_status
from drivers.wrench_sensors.rdt import RdtPort
from rt_kernels.layout import CODES
from tests.drivers.plain_stand import PassingTime, StandClock, has, stand_config, until

RECORD = struct.Struct(">IIIiiiiii")


class PlainSensor:
    """Answers a start request with one record; after that the test sends what it likes."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(5)
        self.requests = []
        self.ports = []
        self.time = PassingTime()
        self.let_pass = self.time.let_pass

    def port(self, first=1, **keys):
        """An open port on this sensor, whose first record has the sequence `first`; without other keys it is patient, so that silence and
        stillness are what `let_pass` makes of them."""
        keys = {"no_data_ms": 10000.0, "stale_ms": 10000.0, **keys}
        port = RdtPort(address="127.0.0.1", stream_port=self.socket.getsockname()[1], scaling="given", **keys)
        answer = threading.Thread(target=self.answer, args=(first,))
        answer.start()
        self.ports.append(port)
        port.open()
        answer.join()
        return port

    def answer(self, first):
        command = None
        while command != 2:
            request, self.client = self.socket.recvfrom(100)
            header, command, count = struct.unpack(">HHI", request)
            assert header == 0x1234
            self.requests.append((command, count))
        self.send(first, first)

    def send(self, rdt, ft, status=0, counts=(1, 2, 3, 4, 5, 6)):
        self.raw(RECORD.pack(rdt & 0xFFFFFFFF, ft & 0xFFFFFFFF, status, *counts))

    def raw(self, data):
        self.socket.sendto(data, self.client)


@pytest.fixture
def sensor():
    made = PlainSensor()
    yield made
    for port in made.ports:
        port.close()
    made.socket.close()


def status(sample, name):
    return has(sample["wrench_status"][0], "sensor_status", name)


def test_newest_record_and_its_numbers(sensor, sample):
    port = sensor.port()
    sensor.send(2, 7, counts=(-(2**31), 2**31 - 1, -3, 4, -5, 6))
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == [-(2**31), 2**31 - 1, -3, 4, -5, 6]
    assert sample["wrench_sequence"][0] == 2 and sample["wrench_lost_total"][0] == 0 and sample["wrench_status"][0] == 0
    assert sensor.requests == [(2, 0)]
    port.close()
    request, _ = sensor.socket.recvfrom(100)
    assert struct.unpack(">HHI", request) == (0x1234, 0, 0)


def names(sample):
    return {name for name in rdt_status.SENSOR_STATUS if status(sample, name)}


def test_gap_duplicate_and_late_records(sensor, sample):
    port = sensor.port()
    port.read(sample)
    sensor.send(5, 5, counts=(50,) * 6)  # 2, 3, 4 are missing, or overtaken
    port.read(sample)
    assert sample["wrench_lost_total"][0] == 0 and names(sample) == set()
    sensor.send(5, 5, counts=(50,) * 6)  # again
    sensor.send(3, 3, counts=(30,) * 6)  # it was overtaken
    port.read(sample)
    assert sample["wrench_lost_total"][0] == 2 and names(sample) == {"lost"}
    sensor.send(4, 4, counts=(40,) * 6)  # too late: it has been counted
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == [50] * 6 and sample["wrench_lost_total"][0] == 2 and names(sample) == set()
    assert port.counters() == {"records": 2, "lost": 2, "late": 1, "repeated": 2, "corrupt": 0}


@pytest.mark.parametrize("true_first", [True, False])
@pytest.mark.parametrize("number", [9, 11])  # in the numbering and ahead of it
def test_two_records_with_one_number_that_differ_say_so(sensor, sample, true_first, number):
    port = sensor.port()
    for n in range(2, 9):
        sensor.send(n, n)
    port.read(sample)
    records = [(1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 7)]
    sensor.send(number, 9, counts=records[not true_first])
    port.read(sample)
    assert names(sample) == set()
    for n in range(10, number):
        sensor.send(n, n)
    sensor.send(number, 9, counts=records[true_first])
    port.read(sample)
    assert "differs" in names(sample)
    sensor.send(number, 9, counts=records[not true_first])  # the first one again
    port.read(sample)
    assert "differs" not in names(sample)
    sensor.send(number, 10, counts=records[not true_first])  # its sample counter is a part of it
    port.read(sample)
    assert "differs" in names(sample)


def test_a_late_record_is_kept_as_its_number_s_too(sensor, sample):
    port = sensor.port()
    sensor.send(3, 3)
    port.read(sample)
    sensor.send(2, 2, counts=(20,) * 6)
    port.read(sample)
    assert names(sample) == set() and port.counters()["late"] == 1
    sensor.send(2, 2, counts=(21,) * 6)
    port.read(sample)
    assert names(sample) == {"differs"}
    # a number that has left the window is forgotten, and so is the record in its place
    for n in range(4, 70):
        sensor.send(n, n)
    sensor.send(2, 2, counts=(22,) * 6)
    port.read(sample)
    assert names(sample) == set()


def test_every_missing_record_counts_not_every_tick(sensor, sample):
    """1,000 records missing at once are 1,000, not one."""
    port = sensor.port()
    sensor.send(1002, 1002)
    port.read(sample)
    assert status(sample, "lost") and sample["wrench_lost_total"][0] == 1000 - 63  # the newest ones may have been overtaken
    port.read(sample)
    assert status(sample, "lost") and sample["wrench_lost_total"][0] == 1000
    port.read(sample)
    assert not status(sample, "lost")


def test_a_gap_of_half_the_numbers_is_no_old_record(sensor, sample):
    port = sensor.port()
    sensor.send(1 + 0x7FFFFFFF, 2)
    port.read(sample)
    port.read(sample)
    assert sample["wrench_lost_total"][0] == 0x7FFFFFFE
    sensor.send(1 + 0x7FFFFFFF + 0x80000000, 3)  # the other half lies behind
    port.read(sample)
    assert sample["wrench_sequence"][0] == 0x80000000 and port.counters()["repeated"] == 1


@pytest.mark.parametrize(("shuffled", "seed"), [(2, 1), (16, 2), (63, 3)])
def test_reordering_loses_nothing(sensor, sample, shuffled, seed):
    """Blocks of records in random order, two ticks a block: overtaken ones come at most a tick late."""
    port = sensor.port(first=0xFFFFFF00)
    source = random.Random(seed)
    for block in range(12):
        numbers = [0xFFFFFF01 + block * shuffled + k for k in range(shuffled)]
        source.shuffle(numbers)
        for part in (numbers[: shuffled // 2], numbers[shuffled // 2 :]):
            for n in part:
                sensor.send(n, n, counts=(n & 0xFF,) * 6)
            port.read(sample)
            assert names(sample) == set() and sample["wrench_lost_total"][0] == 0
    assert sample["wrench_sequence"][0] == 0xFFFFFF00 + 12 * shuffled and port.counters()["late"] > 0


def test_record_numbers_against_a_plain_twin(sensor, sample):
    """Drops, duplicates, delays and jumps at random, across the roll-over: the counters of a twin made of sets and whole numbers."""
    port = sensor.port(first=0xFFFFFF00)
    source = random.Random(11)
    newest, missing, lost, late, repeated, records = 0xFFFFFF00, {}, 0, 0, 0, 1
    port.read(sample)
    on_the_way, number = [], 0xFFFFFF01
    for tick in range(400):
        for _ in range(source.randrange(6)):
            if source.random() < 0.9:
                on_the_way.append((tick + (source.random() < 0.2) * source.randrange(4), number))
                if source.random() < 0.1:
                    on_the_way.append(on_the_way[-1])
            number += 1 if source.random() < 0.98 else source.randrange(200)
        now = [n for due, n in on_the_way if due <= tick]
        on_the_way = [(due, n) for due, n in on_the_way if due > tick]
        source.shuffle(now)
        before = lost
        for n in now:
            sensor.send(n, n)
            if n > newest:
                missing |= dict.fromkeys(range(newest + 1, n), tick)
                newest, records = n, records + 1
                for gone in [m for m in missing if newest - m >= 64]:
                    del missing[gone]
                    lost += 1
            elif n in missing:
                del missing[n]
                late += 1
            else:
                repeated += 1
        for gone in [m for m, found in missing.items() if found < tick]:
            del missing[gone]
            lost += 1
        port.read(sample)
        assert (sample["wrench_lost_total"][0], sample["wrench_sequence"][0]) == (lost, newest), tick
        assert status(sample, "lost") == (lost > before)
    assert port.counters() == {"records": records, "lost": lost, "late": late, "repeated": repeated, "corrupt": 0}
    assert min(lost, late, repeated) > 20 and newest > 2**32


SATURATED, THRESHOLD, SUPPLY = 0x80020000, 0x80010000, 0x80000020


@pytest.mark.parametrize(
    ("words", "shown", "worst"),
    [
        ((SATURATED, 0), {"saturated"}, SATURATED),
        ((0, SATURATED, 0, 0), {"saturated"}, SATURATED),
        ((SATURATED, SUPPLY, 0), {"saturated", "supply"}, SUPPLY),  # of equally bad words the newest
        ((SATURATED, THRESHOLD), {"saturated", "warning"}, SATURATED),
        ((THRESHOLD, 0), {"warning"}, THRESHOLD),
        ((0, 0), set(), 0),
    ],
)
def test_all_words_of_a_tick_are_judged(sensor, sample, words, shown, worst):
    port = sensor.port()
    for n, word in enumerate(words, start=2):
        sensor.send(n, n, status=word, counts=(n,) * 6)
    port.read(sample)
    assert names(sample) == shown and sample["wrench_device_status"][0] == worst
    assert list(sample["wrench_raw"][0]) == [len(words) + 1] * 6  # the newest record's values
    sensor.send(len(words) + 2, len(words) + 2)
    port.read(sample)
    assert names(sample) == set() and sample["wrench_device_status"][0] == 0


@pytest.mark.parametrize("words", [(1 << 3, THRESHOLD), (THRESHOLD, 1 << 3)])
def test_a_busy_sensor_is_no_worse_than_a_warning(sensor, sample, words):
    port = sensor.port(variant="axia")
    for n, word in enumerate(words, start=2):
        sensor.send(n, n, status=word)
    port.read(sample)
    assert names(sample) == {"busy", "warning"} and sample["wrench_device_status"][0] == words[-1]


def test_newest_word_lasts_while_nothing_comes(sensor, sample):
    port = sensor.port()
    sensor.send(2, 2, status=SATURATED)
    for _ in range(3):
        port.read(sample)
        assert names(sample) == {"saturated"} and sample["wrench_device_status"][0] == SATURATED


def test_words_in_one_datagram_and_of_late_records_are_judged(sensor, sample):
    port = sensor.port()
    sensor.raw(b"".join(RECORD.pack(n, n, SATURATED if n == 3 else 0, *[n] * 6) for n in range(2, 8)))
    port.read(sample)
    assert names(sample) == {"saturated"}
    sensor.send(9, 9)
    sensor.send(8, 8, status=SUPPLY, counts=(-1,) * 6)
    port.read(sample)
    assert names(sample) == {"supply"} and list(sample["wrench_raw"][0]) == [1, 2, 3, 4, 5, 6]


def test_busy_record_among_others_is_reported_and_not_used(sensor, sample):
    port = sensor.port(variant="axia")
    sensor.send(2, 2, status=8, counts=(1000,) * 6)
    sensor.send(3, 3, counts=(3,) * 6)
    port.read(sample)
    assert names(sample) == {"busy"} and list(sample["wrench_raw"][0]) == [3] * 6
    sensor.send(4, 4, counts=(4,) * 6)
    sensor.send(5, 5, status=8, counts=(1000,) * 6)
    port.read(sample)
    assert names(sample) == {"busy"} and list(sample["wrench_raw"][0]) == [4] * 6


@pytest.mark.parametrize(("again", "beside"), [(lambda n: n, set()), (lambda n: 500, {"differs"})], ids=["begins again", "stands still"])
def test_numbering_that_does_not_continue_is_stale(sensor, sample, again, beside):
    """A sensor that restarted: its tare may be gone, nothing of it is believed; a number that is known has other values, too."""
    port = sensor.port(first=500)
    port.read(sample)
    for n in range(1, 6):
        assert names(sample) == (beside if n > 1 else set())
        sensor.let_pass(port, 2200)
        sensor.send(again(n), n, counts=(7,) * 6)
        port.read(sample)
    assert names(sample) == {"stale"} | beside and list(sample["wrench_raw"][0]) == [1, 2, 3, 4, 5, 6]
    assert sample["wrench_sequence"][0] == 500 and port.counters()["repeated"] == 5


@pytest.mark.parametrize("first", [1, 400, 5_000_000], ids=["begins again", "goes back", "far ahead"])
def test_recovery_restarts_a_stream_that_was_silent(sensor, sample, first):
    """A sensor that restarted, or whose stream another client had: it is asked again, its next record counts whatever its number, and
    nothing is lost before it. While it is silent nothing is believed."""
    port = sensor.port(first=500)
    port.read(sample)
    before = int(sample["wrench_sequence"][0])
    sensor.let_pass(port, 10001)
    sample["safety_state"] = CODES["safety_state"]["recovering"]
    port.read(sample)
    assert names(sample) == {"no_data"} and sensor.requests == [(2, 0)]
    answer = threading.Thread(target=sensor.answer, args=(first,))
    answer.start()
    port.recover(lambda: 60.0)
    answer.join()
    assert sensor.requests == [(2, 0), (2, 0)]
    sensor.send(first + 1, 1, counts=(7,) * 6)
    port.read(sample)
    assert names(sample) == set() and list(sample["wrench_raw"][0]) == [7] * 6
    assert sample["wrench_lost_total"][0] == 0 and sample["wrench_sequence"][0] == before + 2
    port.recover(lambda: 60.0)  # it is not silent: nothing is asked
    sensor.send(first + 4, 2)
    port.read(sample), port.read(sample)
    assert sample["wrench_lost_total"][0] == 2, "from here on what is missing counts"
    assert len(sensor.requests) == 2


def test_foreign_sender_is_not_heard(sensor, sample):
    port = sensor.port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as foreign:
        for n in range(2, 50):
            foreign.sendto(RECORD.pack(n, n, SATURATED, *[9] * 6), sensor.client)
        foreign.sendto(b"damaged", sensor.client)
    sensor.send(2, 2)
    port.read(sample)
    assert names(sample) == set() and port.counters() == {"records": 2, "lost": 0, "late": 0, "repeated": 0, "corrupt": 0}


def test_flood_of_repeated_records_does_no_harm(sensor, sample):
    port = sensor.port()
    for n in range(2, 6):
        for _ in range(150):
            sensor.send(n, n)
        port.read(sample)
        assert names(sample) == set()
    for _ in range(3):
        port.read(sample)
    assert sample["wrench_sequence"][0] == 5 and port.counters()["repeated"] == 4 * 149


def test_begin_forgets_what_piled_up_but_not_where_it_was(sensor, sample):
    port = sensor.port()
    for n in (2, 3, 9, 9, 2000):
        sensor.send(n, n)
    sensor.raw(b"short")
    port.begin()
    assert port.counters() == {"records": 1, "lost": 0, "late": 0, "repeated": 0, "corrupt": 0}
    # what the buffer had no room for meanwhile is no loss of the loop's; the next gap is
    for newest, lost in ((5000, 0), (5003, 2)):
        sensor.send(newest, newest)
        port.read(sample)
        port.read(sample)
        assert sample["wrench_lost_total"][0] == lost and sample["wrench_corrupt_total"][0] == 0 and sample["wrench_sequence"][0] == newest


def test_roll_over_is_no_gap(sensor, sample):
    port = sensor.port(first=0xFFFFFFFE)
    sensor.send(0xFFFFFFFF, 2)
    sensor.send(0, 3)
    sensor.send(1, 4)
    port.read(sample)
    assert sample["wrench_lost_total"][0] == 0 and sample["wrench_sequence"][0] == 0x100000001


def test_frozen_counter_is_stale_and_silence_is_no_data(sensor, sample):
    port = sensor.port(stale_ms=6000.0)
    port.read(sample)
    for n in range(2, 8):
        sensor.let_pass(port, 1100)
        sensor.send(n, 1)
        port.read(sample)
        assert status(sample, "stale") == (n > 6) and not status(sample, "no_data")
    sensor.send(8, 2)
    port.read(sample)
    assert names(sample) == set()
    sensor.let_pass(port, 10001)
    port.read(sample)
    assert names(sample) == {"no_data"}
    assert sample["wrench_age_ns"][0] > 10e9


def test_age_counts_from_arrival_not_from_reading(sensor, sample):
    port = sensor.port()
    port.read(sample)
    before = time.monotonic_ns()
    sensor.send(2, 2)
    after = time.monotonic_ns()
    time.sleep(0.02)  # the reading is late on purpose: what is between two looks at the clock is between two limits however long it takes
    reading = time.monotonic_ns()
    port.read(sample)
    assert reading - after < sample["wrench_age_ns"][0] < time.monotonic_ns() - before


@pytest.mark.parametrize("held_up_s", [0.0, 9.0])
def test_age_for_the_ledger_is_measured_on_the_open_stream(sensor, sample, monkeypatch, held_up_s):
    """A record every 20 ms: half of that old on average, by the arrival stamps, however late one read is. The port sleeps between its
    reads: here the time passes at once."""
    port, late = sensor.port(filter_delay_s=0.004), [held_up_s]
    assert port.delays == {"sensor_delay_s": 0.004, "sensor_age_s": 0.0}
    assert port.delay_origins == {"sensor_age_s": "derived", "sensor_delay_s": "configured"}
    due = [(sensor.time.now_ns() + round(1e9 * held_up_s) + 20_000_000 * n, n + 2) for n in range(24, -1, -1)]

    def pass_until(moment_ns):
        sensor.let_pass(port, max(0.0, 1e-6 * (moment_ns - sensor.time.now_ns())))

    def sleep(seconds):
        end_ns = sensor.time.now_ns() + int(1e9 * (seconds + (late.pop() if late else 0.0)))
        while due and due[-1][0] <= end_ns:
            moment_ns, n = due.pop()
            pass_until(moment_ns)
            sensor.send(n, n)
            port.read(sample)  # it has arrived: it ages with the rest
        pass_until(end_ns)

    monkeypatch.setattr("drivers.wrench_sensors.rdt.time", SimpleNamespace(sleep=sleep, monotonic=lambda: 1e-9 * sensor.time.now_ns()))
    age = port.measure(640)
    assert not due and age == pytest.approx(0.010, rel=0.1)
    assert port.delays == {"sensor_delay_s": 0.004, "sensor_age_s": age} and port.delay_origins["sensor_age_s"] == "measured"
    monkeypatch.undo()
    assert port.measure(1) == age  # a stream that stands still measures nothing


def test_a_stream_that_stands_still_most_of_the_time_gives_no_delay(sensor, monkeypatch):
    port, reads = sensor.port(no_data_ms=30.0), iter(range(1, 251))

    def sleep(_):
        sensor.let_pass(port, 1.0)
        if next(reads) == 250:
            sensor.send(2, 2)

    monkeypatch.setattr("drivers.wrench_sensors.rdt.time", SimpleNamespace(sleep=sleep))
    with pytest.raises(ConnectionError, match=r"newest record is \d{3}\.\d ms old .* limit no_data_ms = 30"):
        port.measure()
    assert port.delay_origins["sensor_age_s"] == "derived"


def test_rate_is_measured_by_the_sensors_own_counter(sensor, sample, monkeypatch):
    """It steps by 3. Each record leaves after one look at the clock and is read before another (the kernel may stamp it after `send` has
    returned), so that the rate lies between two bounds."""
    port, sent = sensor.port(), []

    def send(_=None):
        n = len(sent) + 2
        sent.append(time.monotonic())
        sensor.send(n, 3 * n)

    send()
    port.read(sample)
    first = time.monotonic()
    monkeypatch.setattr("drivers.wrench_sensors.rdt.time", SimpleNamespace(sleep=send, monotonic=lambda: len(sent)))
    port.measure(500)
    ended = time.monotonic()
    gained = 3 * (len(sent) - 1)
    assert len(sent) == 501 and gained / (ended - sent[0]) < port.measured_rate_hz < gained / (sent[-1] - first)


def test_damaged_datagrams_are_counted_and_change_nothing(sensor, sample):
    port = sensor.port()
    port.read(sample)
    before = sample["wrench_raw"][0].copy()
    for size in (0, 1, 20, 35, 37, 71, 1476, 3000):
        sensor.raw(bytes(size))
    port.read(sample)
    assert status(sample, "corrupt") and port.counters()["corrupt"] == 8 and sample["wrench_corrupt_total"][0] == 8
    assert list(sample["wrench_raw"][0]) == list(before)
    sensor.send(2, 2)
    port.read(sample)
    assert not status(sample, "corrupt")


def test_buffered_datagram(sensor, sample):
    port = sensor.port()
    sensor.raw(b"".join(RECORD.pack(n, n, 0, n, 0, 0, 0, 0, 0) for n in range(2, 42)))
    port.read(sample)
    assert sample["wrench_raw"][0, 0] == 41 and sample["wrench_lost_total"][0] == 0 and port.counters()["records"] == 41


def test_random_datagrams(sensor, sample):
    """Whatever comes: no crash, everything that is no multiple of a record is counted, nothing else is."""
    port = sensor.port()
    port.read(sample)
    source = random.Random(4)
    odd = 0
    for _ in range(60):
        for _ in range(20):
            size = source.choice((0, 8, 36, 36, 72, 35, 108, source.randrange(1500)))
            odd += size == 0 or size % 36 != 0 or size > 1440
            sensor.raw(source.randbytes(size))
        port.read(sample)
    assert port.counters()["corrupt"] == odd


def test_flood_does_not_hold_the_tick(sensor, sample):
    port = sensor.port()
    for n in range(2, 700):
        sensor.send(n, n)
    port.read(sample)
    assert port.counters()["records"] <= 8 * 32
    for _ in range(4):
        port.read(sample)
    assert sample["wrench_sequence"][0] == 699


@pytest.mark.parametrize(
    ("variant", "word", "shown"),
    [
        ("net_ft", 0x80010000, {"warning"}),
        ("net_ft", 0x80020000, {"saturated"}),
        ("net_ft", 0x80000000, {"device_fault"}),
        ("net_ft", 0x40000000, {"device_fault"}),
        ("net_ft", 0x80000360, {"supply"}),
        ("net_ft", 0x80008000, {"device_fault"}),
        ("axia", 0x80000001, {"temperature"}),
        ("axia", 0x88000004, {"saturated", "broken_wire"}),
        ("axia", 0xC0000000, {"out_of_range"}),
        ("axia", 0x00000008, {"busy"}),
        ("axia", 0x80010000, {"warning"}),
        ("axia", 0x80020000, {"device_fault"}),
        ("onrobot", 0x00000001, {"device_fault"}),
    ],
)
def test_status_words(sensor, sample, variant, word, shown):
    port = sensor.port(variant=variant)
    sensor.send(2, 2, status=word)
    port.read(sample)
    assert names(sample) == shown
    assert sample["wrench_device_status"][0] == word


def test_busy_holds_the_value_then_is_stale(sensor, sample):
    port = sensor.port(variant="axia", busy_hold_ms=5000.0)
    sensor.send(2, 2, counts=(9,) * 6)
    port.read(sample)
    sensor.send(3, 3, status=8, counts=(1000,) * 6)
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == [9] * 6 and status(sample, "busy") and not status(sample, "stale")
    sensor.let_pass(port, 5001)
    sensor.send(4, 4, status=8)
    port.read(sample)
    assert status(sample, "stale")
    sensor.send(5, 5, counts=(7,) * 6)
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == [7] * 6 and sample["wrench_status"][0] == 0


def test_onrobot_commands(sensor, sample):
    sensor.port(variant="onrobot", output_rate_hz=500.0, filter_index=3, bias_at_open=True)
    assert sensor.requests == [(0x81, 3), (0x82, 2), (0x42, 0xFF), (2, 0)]


def test_snapshot_holds_the_whole_state(sensor, sample):
    port = sensor.port()
    sensor.send(2, 2, counts=(5,) * 6)
    port.read(sample)
    kept = port.snapshot()
    sensor.send(3, 3, counts=(8,) * 6)
    port.read(sample)
    port.restore(kept)
    port.read(sample)
    assert list(sample["wrench_raw"][0]) == [5] * 6 and sample["wrench_sequence"][0] == 2


def test_closed_port_has_no_data(sample):
    port = RdtPort(address="127.0.0.1", scaling="given")
    port.read(sample)
    assert status(sample, "no_data")


# ------------------------------------------------------------------------------------------------------------- scaling
@pytest.mark.parametrize(
    ("force", "torque", "newtons", "newton_metres"),
    [
        ("N", "Nm", 1, 1),
        ("kN", "N-mm", 1000, 0.001),
        ("lbf", "lbf-in", 4.4482216152605, 0.1129848290276167),
        ("Kgf", "Kgf-cm", 9.80665, 0.0980665),
    ],
)
def test_units(force, torque, newtons, newton_metres):
    scaling = rdt_scaling.scaling_from(1000, 500, force, torque)
    assert scaling.counts_per_newton == pytest.approx(1000 / newtons, rel=1e-14)
    assert scaling.counts_per_newton_metre == pytest.approx(500 / newton_metres, rel=1e-14)


@pytest.mark.parametrize(
    ("page", "says"),
    [
        (b"no xml", "not XML"),
        (b"<netft/>", "cfgcpf"),
        (b"<a><cfgcpf>x</cfgcpf></a>", "'x'"),
        (b"<a><cfgcpf>1</cfgcpf><cfgcpt>0</cfgcpt><scfgfu>N</scfgfu><scfgtu>Nm</scfgtu></a>", "counts per torque = 0"),
        (b"<a><cfgcpf>1</cfgcpf><cfgcpt>1</cfgcpt><scfgfu>pond</scfgfu><scfgtu>Nm</scfgtu></a>", "pond"),
    ],
)
def test_wrong_pages_say_why(page, says):
    with pytest.raises(ValueError, match=says):
        rdt_scaling.scaling_of_page(page, "net_ft")


def test_absent_sensor_is_named():
    with pytest.raises(ConnectionError, match="127.0.0.1:1/netftapi2.xml"):
        RdtPort(address="127.0.0.1", http_port=1, timeout_s=0.2).open()
    with pytest.raises(ConnectionError, match="no RDT stream"):
        RdtPort(address="127.0.0.1", scaling="given", stream_port=1, timeout_s=0.2).open()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (dict(), "address: required key is missing"),
        (dict(address="x", stream_port=0), "stream_port: must be a whole number within 1 ... 65535, got 0"),
        (dict(address="x", variant="kistler"), "variant"),
        (dict(address="x", stale_ms=float("nan")), "stale_ms"),
        (dict(address="x", port=1), "port: unknown key"),
        (dict(address=3), "address: must be text, got 3"),
    ],
)
def test_wrong_parameters_are_named(wrong, says):
    with pytest.raises(ValueError, match=says):
        RdtPort(**wrong)


# ------------------------------------------------------------------------------- the simulated sensor, plain client
@pytest.fixture
def client():
    """Makes plain clients of a stand, closes them at the end."""
    made = []

    def make(one):
        made.append(PlainClient(one))
        return made[-1]

    yield make
    for client in made:
        client.socket.close()
        client.clock.close()


class PlainClient:
    def __init__(self, one):
        self.clock = StandClock(one)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", one.ports["wrench_sensors"]["stream_port"]))

    def request(self, command, count=0, header=0x1234):
        self.socket.send(struct.pack(">HHI", header, command, count))

    def records(self, n):
        return [RECORD.unpack(self.socket.recv(2000)[:36]) for _ in range(n)]

    def silent(self):
        """Whether the sensor, which has had our requests, sends nothing for 100 ms of its time."""
        self.clock.let_pass(10)
        while select.select([self.socket], [], [], 0.0)[0]:
            self.socket.recv(2000)
        self.clock.let_pass(100)
        return not select.select([self.socket], [], [], 0.0)[0]


@pytest.mark.parametrize("variant", ["net_ft", "axia", "onrobot"])
def test_simulated_sensor_tells_its_scaling(stand, variant):
    ports = stand(sensor={"variant": variant, "force_unit": "kN", "torque_unit": "Nmm"}).ports["wrench_sensors"]
    by_page = rdt_scaling.read_page("127.0.0.1", ports["http_port"], variant, 2.0)
    by_tcp = rdt_scaling.read_calibration("127.0.0.1", ports["calibration_port"], 2.0)
    for scaling in (by_page, by_tcp):
        assert scaling.counts_per_newton == pytest.approx(1e5) and scaling.counts_per_newton_metre == pytest.approx(2e5)
    assert by_page.rate_hz == 2000.0


def test_simulated_sensor_can_state_another_scale(stand):
    ports = stand(sensor={"counts_per_force": 12345, "counts_per_torque": 678}).ports["wrench_sensors"]
    for scaling in (
        rdt_scaling.read_page("127.0.0.1", ports["http_port"], "net_ft", 2.0),
        rdt_scaling.read_calibration("127.0.0.1", ports["calibration_port"], 2.0),
    ):
        assert (scaling.counts_per_newton, scaling.counts_per_newton_metre) == (12345, 678)


def test_simulated_sensor_follows_the_manual(stand, client):
    one = stand(plant={"sensor_bias": [100.0, 0, 0, 0, 0, 20.0]}, sensor={"buffer_size": 5})
    new, client = client, client(one)
    client.request(2, 3)
    records = client.records(3)
    assert [r[0] for r in records] == [1, 2, 3]  # the sequence starts at 1 for a request
    assert [b[1] - a[1] for a, b in zip(records, records[1:], strict=False)] == [1, 1]
    assert records[0][3:] == (10_000_000, 0, 0, 0, 0, 4_000_000)
    assert client.silent()  # three were asked for, three came

    client.request(2)
    client.request(0x42)  # tare: no answer, the data show it
    while client.records(1)[0][3:] != (0,) * 6:
        pass
    client.request(0)
    assert client.silent()
    for malformed in ((2, 1, 0x1235), (7, 1, 0x1234)):
        client.request(*malformed)
    client.socket.send(b"\x12\x34\x00\x02")
    assert client.silent()

    client.request(3, 10)
    datagram = client.socket.recv(2000)
    assert len(datagram) == 5 * 36 and [r[0] for r in RECORD.iter_unpack(datagram)] == [1, 2, 3, 4, 5]

    client.request(2)
    client.records(2)
    second = new(one)
    second.request(2)
    assert [r[0] for r in second.records(3)] == [1, 2, 3]
    assert client.silent()  # the second client has the stream


def test_port_on_the_simulated_sensor(stand, sample):
    one = stand(plant={"sensor_bias": [100.0, 0, 0, 0, 0, 20.0]}, faults=[{"name": "sensor_rollover", "value": 300}])
    for scaling in ("http", "tcp"):
        port = RdtPort(**one.ports["wrench_sensors"], scaling=scaling)
        port.open()
        assert port.sensor_scale == [1e5] * 3 + [2e5] * 3
        until(lambda p=port: (p.read(sample), p.counters()["records"] > 600)[1], one.control.ping)  # beyond the roll-over
        assert list(sample["wrench_raw"][0]) == [10_000_000, 0, 0, 0, 0, 4_000_000]
        assert port.counters()["lost"] == 0 and sample["wrench_sequence"][0] > 2**32
        port.close()


SENSOR_FAULTS = [fault for fault in SERVED if fault.at == "sensor" and fault.shows]


@pytest.fixture(scope="module")
def lasting():
    """One stand for many faults: after each it must come back without a restart."""
    with StandProcess(stand_config(sensor={"variant": "axia"})) as one:
        yield one


@pytest.mark.parametrize("fault", SENSOR_FAULTS, ids=lambda fault: fault.name)
def test_sensor_faults_show_their_bit(lasting, sample, fault):
    one = lasting
    one.control.clear_all()
    port = RdtPort(**one.ports["wrench_sensors"], no_data_ms=30.0, stale_ms=30.0)
    port.open()

    def reads(wanted):
        port.read(sample)
        return wanted(int(sample["wrench_status"][0]))

    _, name = fault.shows[0]
    until(lambda: reads(lambda word: word == 0), one.control.ping)
    one.control.inject(fault.name)
    until(lambda: reads(lambda word: has(word, "sensor_status", name)), one.control.ping)
    one.control.clear(fault.name)
    until(lambda: reads(lambda word: word == 0), one.control.ping)
    port.close()


def test_reordering_changes_nothing(stand, sample):
    one = stand()
    port = RdtPort(**one.ports["wrench_sensors"])
    port.open()
    one.control.inject("sensor_reorder")
    until(lambda: (port.read(sample), port.counters()["late"] > 20)[1], one.control.ping)
    assert port.counters()["lost"] == 0
    port.close()


def test_duplicates_change_nothing(stand, sample):
    one = stand()
    port = RdtPort(**one.ports["wrench_sensors"])
    port.open()
    one.control.inject("sensor_duplicate")
    until(lambda: (port.read(sample), port.counters()["repeated"] > 20)[1], one.control.ping)
    assert port.counters()["lost"] == 0
    port.close()
