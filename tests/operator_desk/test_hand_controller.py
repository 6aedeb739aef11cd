"""Hand controllers from the device to the sample: pipes and pseudo-terminals as devices, the real wire, the real latch.

The row "stick failure" of the operator's desk: whatever goes wrong, the axes in the sample are zero within 0.2 s, the event bit is there,
and nothing moves on return before the stick was centred.
"""

import fcntl
import json
import math
import os
import pty
import select
import sys
import termios
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import zmq

from drivers.hand_controllers import FaultyDeviceError, Reading
from drivers.hand_controllers.evdev import ABS, EVENT, KEY, SYN, SYN_DROPPED, EvdevSource
from drivers.hand_controllers.keyboard import HELD_FOR, KeyboardSource
from drivers.hand_controllers.serial_box import FRAME, SerialBoxSource, checksum, encode
from hil_server.bus.desks import HandDesk
from hil_server.cli import main
from hil_server.config.toml_text import dumps
from hil_server.errors import ConfigurationError
from hil_server.operator_desk.calibration import Axis, Calibration, desk_of, load
from hil_server.operator_desk.sender import HandSender
from hil_server.operator_desk.station import Station, readable
from rt_kernels.command_latch import CommandLatch
from rt_kernels.events.docking import DockingEvents
from rt_kernels.layout import BITS, SAMPLE_DTYPE
from rt_kernels.ring import SharedBlock

STALE = 2
WITHIN = 0.2  # s
AXIS = Axis(0, centre=100.0, range=1000.0, dead_band=0.1, curve=0.0, sign=1)
CALIBRATION = Calibration((AXIS, None, None, None, None, None), deadman=3, others=(5,))
PUSHED, CENTRE = 1100, 100
EVENT_BIT = BITS["event"]["hand_controller_stale"]


class Clock:
    """Virtual time, s; it moves when a test moves it."""

    ns = 1_000_000_000_000

    def __call__(self):
        return self.ns * 1e-9


class Loop:
    """What the loop sees: the desk's socket, the shared block, the latch and the events of every tick, in virtual time."""

    TICK_NS = 2_000_000

    def __init__(self):
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        port = self.router.bind_to_random_port("tcp://127.0.0.1")
        self.address = f"tcp://127.0.0.1:{port}"
        self.clock = Clock()
        self.block = SharedBlock.create(16)
        self.desk = HandDesk(self.router, self.block, self.clock)
        self.latch = CommandLatch(block=self.block)
        self.events = DockingEvents(period_s=1e-9 * self.TICK_NS)
        self.sample = np.zeros(1, SAMPLE_DTYPE)
        self.seen = self.sent = 0
        self.senders = []

    def sender(self, station=0):
        self.senders.append(HandSender(station, self.address, context=self.context))
        assert self.senders[-1].wait(100.0)
        return self.senders[-1]

    def send(self, sender, axes, buttons):
        """A record, stamped by the virtual clock. Whether it is on its way."""
        taken = sender.send(axes, buttons, self.clock() + 1e-7 * (self.sent % 1000))
        self.sent += taken
        return taken

    @property
    def arrived(self):
        return self.desk.accepted + sum(self.desk.rejected.values())

    def tick(self, station=0):
        """Axis 0 and status of the station after one tick, in which all that was sent has come. By the stamps of the records: none older
        than 0.2 s moves anything."""
        self.clock.ns += self.TICK_NS
        while self.arrived < self.sent:
            self.router.poll()
            self.desk.serve()
        self.latch.now_ns = self.clock.ns
        self.latch.read(self.sample)
        self.events.step(self.sample)
        self.seen |= int(self.sample["events"][0])
        axis = float(self.sample["hand_axis"][0, 6 * station])
        assert axis == 0.0 or self.sample["hand_age_ns"][0, station] <= 1e9 * WITHIN
        return axis, int(self.sample["hand_status"][0, station])

    def run(self, seconds, before=lambda: None, until=None):
        """So much virtual time, `before` ahead of each tick. Returns (time, axis, status) of every tick; `until(axis, status)` ends it."""
        seen, end = [], self.clock.ns + round(1e9 * seconds)
        while self.clock.ns < end:
            before()
            seen.append((self.clock(), *self.tick()))
            if until is not None and until(*seen[-1][1:]):
                break
        return seen

    def close(self):
        for socket in (*self.senders, self.router):
            socket.close()
        self.context.term()


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.close()


def fly(loop, station, seconds, until=None, feed=lambda now: None):
    """Runs device, station and loop side by side."""

    def before():
        feed(loop.clock())
        station.step()

    return loop.run(seconds, before, until)


def zero_after(seen, moment):
    """Time from `moment` to the first tick from which on the axis stays zero."""
    moving = [t for t, axis, _ in seen if axis != 0.0]
    return (moving[-1] if moving else moment) - moment


def wait_for_bytes(descriptor, count):
    """Until so many can be read; a pseudo-terminal hands on in its own time what was written to it."""
    while True:
        select.select([descriptor], [], [])
        if int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder) >= count:
            return


# ------------------------------------------------------------------------------------------------------------- devices


def events(*triples):
    return b"".join(EVENT.pack(1, 0, kind, code, value) for kind, code, value in (*triples, (SYN, 0, 0)))


class EvdevPipe:
    """A pipe that speaks as an evdev device."""

    framed = False

    def __init__(self):
        self.path, self.out = os.pipe()
        self.source = EvdevSource(self.path, (0,))

    def put(self, value, held):
        os.write(self.out, events((ABS, 0, value), (KEY, 3, int(held))))

    def keep_alive(self, now):
        pass

    def unplug(self):
        os.close(self.out)
        self.out = -1

    def garbage(self, now):
        os.write(self.out, bytes(range(1, 241)))

    def close(self):
        if self.out >= 0:
            self.unplug()


class SerialPty:
    """A pseudo-terminal that speaks as a serial box, 100 frames a second."""

    framed = True

    def __init__(self):
        self.out, line = pty.openpty()
        self.path = os.ttyname(line)
        self.source = SerialBoxSource(self.path)
        os.close(line)
        self.sequence, self.state, self.next = 65530, (CENTRE, False), 0.0

    def put(self, value, held):
        self.state = value, held

    def frame(self, sequence):
        return encode(sequence, (self.state[0], 0, 0, 0, 0, 0), (1 << 3) * self.state[1])

    def write(self, data):
        """Bytes that have arrived at the other end when this returns; all that came before were read."""
        os.write(self.out, data)
        wait_for_bytes(self.source.fileno(), len(data))

    def due(self, now):
        """Whether a hundredth of a second is over."""
        if now < self.next:
            return False
        self.next = now + 0.01
        return True

    def keep_alive(self, now):
        if self.due(now):
            self.write(self.frame(self.sequence))
            self.sequence += 1

    def unplug(self):
        os.close(self.out)
        self.out = -1
        select.select([self.source], [], [])

    def garbage(self, now):
        self.write(os.urandom(300))

    def close(self):
        if self.out >= 0:
            os.close(self.out)
            self.out = -1


@pytest.fixture(params=[EvdevPipe, SerialPty])
def device(request):
    made = request.param()
    yield made
    made.close()


def pushed(loop, device, **options):
    """A station whose stick was centred and is now fully deflected with the deadman held, and what it does between ticks."""
    sender = loop.sender()
    opened = []

    def open_source():
        if opened:
            raise OSError(19, "gone")
        opened.append(True)
        return device.source

    station = Station(open_source, CALIBRATION, partial(loop.send, sender), clock=loop.clock, wait=now_readable, **options)
    station.connect()
    device.put(CENTRE, True)
    fly(loop, station, 0.1, None, device.keep_alive)
    assert loop.tick() == (0.0, 1)
    device.put(PUSHED, True)
    assert fly(loop, station, 0.1, None, device.keep_alive)[-1][1:] == (1.0, 1), "the stick moves something"
    assert loop.arrived == station.sent and station.unsent == 0
    loop.seen = 0
    return station


def now_readable(source, seconds):
    return source is not None and readable(source, 0.0)


def test_rate_of_records(loop, device):
    station = pushed(loop, device)
    before, accepted = station.sent, loop.desk.accepted
    fly(loop, station, 0.6, None, device.keep_alive)
    assert 59 <= station.sent - before <= 61 and loop.desk.accepted - accepted == station.sent - before and station.unsent == 0
    station.close()


def test_what_a_box_says_while_its_station_is_held_up_is_sent(loop):
    """All of it at once, as many records as there are frames in one read, and the newest of them last."""
    device = SerialPty()
    station = pushed(loop, device)
    before = station.sent
    reported = b"".join(device.frame(device.sequence + n) for n in range(100))
    device.put(CENTRE, False)
    device.write(reported + device.frame(device.sequence + 100))
    station.step()
    assert (station.sent - before, station.unsent) == (101, 0)
    loop.tick()
    assert loop.sample["hand_buttons"][0, 0] == 0 and loop.sample["hand_axis"][0, 0] == 0.0
    station.close()
    device.close()


def test_nothing_waits_for_a_server_that_is_away(loop):
    """A record of minutes ago moves nothing once the server comes."""
    sender = loop.sender()
    away = HandSender(0, "ipc://@none-listens-here", context=loop.context)
    loop.senders.append(away)
    assert not away.wait(0.0) and not away.send([1.0] + [0.0] * 5, 1)
    assert sender.wait(0.0) and sender.send([1.0] + [0.0] * 5, 1)


@pytest.mark.parametrize("framed", [False, True])
def test_a_station_waits_for_a_device_that_is_silent(framed):
    """A hundred looks a second, not as many as the machine gives."""

    class Silent:
        def read(self):
            raise AssertionError("nothing is there")

        def close(self):
            pass

    clock, source = Clock(), Silent()
    source.framed = framed

    def wait(what, seconds):
        assert what is source
        clock.ns += round(1e9 * seconds)
        return False

    station = Station(lambda: source, CALIBRATION, lambda axes, buttons: True, clock=clock, wait=wait)
    station.connect()
    began, steps = clock(), 0
    while clock() - began < 1.0:
        station.step()
        steps += 1
        assert steps < 300
    assert station.sent == 0


def test_a_device_that_is_gone_is_looked_for_every_second_without_haste():
    clock, looked = Clock(), []

    def open_source():
        looked.append(clock())
        raise OSError(19, "gone")

    def wait(what, seconds):
        assert what is None and 0.0 < seconds <= 0.01
        clock.ns += round(1e9 * seconds)
        return False

    station, began = Station(open_source, CALIBRATION, lambda axes, buttons: True, clock=clock, wait=wait), clock()
    while clock() - began < 3.5:
        station.step()
    assert [round(at - began) for at in looked] == [0, 1, 2, 3]


def test_unplugged(loop, device):
    station = pushed(loop, device)
    device.unplug()
    moment = loop.clock()
    seen = fly(loop, station, 0.4)
    assert zero_after(seen, moment) < WITHIN and seen[-1][2] & STALE and loop.seen & EVENT_BIT and station.faults == 1


def test_process_killed(loop):
    """No one sends any more: only the age tells."""
    sender = loop.sender()
    for _ in range(3):
        loop.send(sender, [0.0] * 6, 1)
        loop.tick()
    loop.send(sender, [1.0] + [0.0] * 5, 1)
    seen = loop.run(0.35)
    moment = seen[0][0]  # it arrived with the first tick
    assert all(axis == 1.0 for t, axis, _ in seen if t - moment < 0.199)
    assert 0.199 < zero_after(seen, moment) < WITHIN + 1e-6, "0.2 s after its arrival"
    assert seen[-1][2] & STALE and loop.seen & EVENT_BIT


def test_frozen_box_repeats_its_last_frame(loop):
    device = SerialPty()
    station = pushed(loop, device)
    last, moment = device.frame(device.sequence - 1), loop.clock()
    seen = fly(loop, station, 0.4, None, lambda now: device.due(now) and device.write(last))
    assert zero_after(seen, moment) < WITHIN and seen[-1][2] & STALE and loop.seen & EVENT_BIT
    device.close()


def test_frozen_joystick_is_found_by_its_stillness(loop):
    device = EvdevPipe()
    station = pushed(loop, device, still_limit_s=0.15)
    moment = loop.clock()
    seen = fly(loop, station, 0.5)
    assert zero_after(seen, moment) < WITHIN and seen[-1][2] & STALE and loop.seen & EVENT_BIT
    device.close()


def test_garbage(loop, device):
    station = pushed(loop, device)
    moment = loop.clock()
    seen = fly(loop, station, 0.4, None, device.garbage)
    assert zero_after(seen, moment) <= WITHIN and seen[-1][2] & STALE and loop.seen & EVENT_BIT


def test_out_of_order_at_the_box(loop):
    device = SerialPty()
    station = pushed(loop, device)
    device.sequence -= 50
    moment = loop.clock()
    seen = fly(loop, station, 0.6, None, device.keep_alive)
    assert zero_after(seen, moment) < WITHIN and loop.seen & EVENT_BIT, "and it stays zero while frames continue with the stick deflected"
    device.put(CENTRE, True)
    assert fly(loop, station, 1.0, lambda axis, status: not status & STALE, device.keep_alive)[-1][2] == 1
    device.put(PUSHED, True)
    assert fly(loop, station, 1.0, lambda axis, status: axis == 1.0, device.keep_alive)[-1][1] == 1.0
    device.close()


def test_out_of_order_and_malformed_on_the_wire(loop):
    sender = loop.sender()

    def send(axis, seconds=0.1):
        return loop.run(seconds, lambda: loop.send(sender, [axis] + [0.0] * 5, 1))

    def malformed():
        sender._socket.send_multipart([b"hand", b"\xff garbage"])
        loop.sent += 1

    for spoil in (lambda: setattr(sender, "_sequence", sender._sequence - 5), malformed):
        send(0.0)
        assert send(1.0)[-1][1:] == (1.0, 1)
        loop.seen = 0
        spoil()
        moment = loop.clock()
        seen = send(1.0, 0.3)
        assert zero_after(seen, moment) < WITHIN and seen[-1][2] & STALE and loop.seen & EVENT_BIT


def test_two_at_once(loop):
    first, second = loop.sender(), loop.sender()
    for value in (0.0, 1.0):
        seen = loop.run(0.02, lambda value=value: loop.send(first, [value] + [0.0] * 5, 1))
    assert seen[-1][1:] == (1.0, 1)

    def both():
        loop.send(first, [1.0] + [0.0] * 5, 1)
        loop.send(second, [-1.0] + [0.0] * 5, 1)

    moment = loop.clock()
    seen = loop.run(0.3, both)
    assert zero_after(seen, moment) < WITHIN and seen[-1][2] & STALE and loop.seen & EVENT_BIT
    assert all(axis >= 0.0 for _, axis, _ in seen), "the second one never moves anything"


def test_return_after_a_pause_does_not_jump(loop):
    sender = loop.sender()

    def send(axis, held=1):
        return loop.run(0.008, lambda: loop.send(sender, [axis] + [0.0] * 5, held))[-1][1:]

    assert send(0.5) == (0.0, 1), "deflected at the very start: nothing moves"
    assert send(0.0) == (0.0, 1)
    assert send(0.5) == (0.5, 1)
    assert loop.run(0.25)[-1][2] & STALE
    assert send(0.5) == (0.0, 1 | STALE) and send(-0.03) == (0.0, 1 | STALE)
    assert send(0.01)[1] == 1 and send(0.5) == (0.5, 1)
    assert send(0.5, held=0) == (0.0, 1), "released"
    assert send(0.5) == (0.0, 1), "held again, still deflected"
    assert send(0.0) == (0.0, 1) and send(-0.5) == (-0.5, 1)


# --------------------------------------------------------------------------------------------------------- single pieces


def test_evdev_state_after_dropped_events_is_unknown_until_told_again():
    device = EvdevPipe()
    device.put(7, True)
    assert device.source.read() == [Reading({0: 7.0}, frozenset({3}))]
    os.write(device.out, EVENT.pack(1, 0, SYN, SYN_DROPPED, 0) + events((ABS, 0, 9)))
    assert device.source.read() == []
    os.write(device.out, events((ABS, 0, 11))[:30])
    assert device.source.read() == []
    os.write(device.out, events((ABS, 0, 11))[30:])
    assert device.source.read() == [Reading({0: 11.0}, frozenset())]
    device.close()


def test_serial_frame_and_checksum():
    assert checksum(b"123456789") == 0x29B1, "CRC-16/CCITT-FALSE, catalogued check value"
    frame = encode(0x1234, (1, -2, 3, -4, 5, -32768), 0x8001)
    assert len(frame) == FRAME.size == 20 and frame[:4] == b"\xa5\x5a\x34\x12" and frame[6:8] == b"\xfe\xff"
    device = SerialPty()
    for bit in range(160):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        device.write(spoilt)
        assert device.source.read() == []
    device.write(b"\xa5" + frame)
    reading = device.source.read()[-1]
    assert list(reading.raw.values()) == [1, -2, 3, -4, 5, -32768] and reading.pressed == {0, 15} and device.source.corrupt > 0
    device.close()


def test_serial_sequence_wraps_and_may_have_gaps():
    device = SerialPty()
    device.write(device.frame(65535) + device.frame(0) + device.frame(7))
    assert len(device.source.read()) == 3
    device.write(device.frame(6))
    with pytest.raises(FaultyDeviceError, match="from 7 to 6"):
        device.source.read()
    device.close()


def test_keyboard_steps_and_lets_go():
    keys, line = pty.openpty()
    now = [0.0]
    source = KeyboardSource(line, clock=lambda: now[0])
    os.write(keys, b"\nww s??wk")
    wait_for_bytes(line, 9)
    reading = source.read()[0]
    assert reading.raw == {0: 0.0, 1: 0, 2: 0, 3: 0, 4: 0, 5: pytest.approx(-0.2)} and reading.pressed == {0}
    os.write(keys, b"w" * 20)
    wait_for_bytes(line, 20)
    assert source.read()[0].raw[0] == 1.0
    for _ in range(4):  # return is held: it repeats, and keeps the rates
        now[0] += 0.9 * HELD_FOR
        os.write(keys, b"\n")
        assert select.select([line], [], [], 10.0)[0]
        reading = source.read()[0]
        assert reading.pressed == {0} and reading.raw[0] == 1.0
    now[0] += HELD_FOR + 0.1
    assert source.now() == Reading(dict.fromkeys(range(6), 0.0), frozenset())
    source.close()
    os.close(keys)
    os.close(line)


def test_curve_is_continuous_odd_and_full():
    axis = Axis(0, centre=-20.0, range=500.0, dead_band=0.1, curve=0.6, sign=-1)
    raw = np.linspace(-520.0, 480.0, 4001)
    rates = np.array([axis.rate(r) for r in raw])
    assert rates[0] == 1.0 and rates[-1] == -1.0 and axis.rate(-20.0 - 600.0) == 1.0
    assert np.all(rates[np.abs(raw + 20) <= 50] == 0.0) and np.all(np.diff(rates) <= 0) and np.max(np.abs(np.diff(rates))) < 2e-3
    assert np.max(np.abs(rates + rates[::-1])) < 1e-12
    v = (0.5 - 0.1) / 0.9
    assert axis.rate(-270.0) == pytest.approx(0.4 * v + 0.6 * v**3, rel=1e-14)
    for wrong in (1000.0, -1000.0, math.nan, math.inf):
        with pytest.raises(FaultyDeviceError, match="channel 0"):
            axis.rate(wrong)


def good_table(path="/dev/ttyS9"):
    axis = {"channel": 0, "centre": 100.0, "range": 1000.0, "dead_band": 0.1}
    return {"source": {"kind": "serial", "path": path}, "buttons": {"deadman": 3, "others": [5]}, "axes": {"x": axis}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.update(rate_hz=10.0), r"rate_hz: must be a number within 50 .* Hz, got 10.0"),
        (lambda t: t.update(statoin=1), "unknown key.*did you mean 'station'"),
        (lambda t: t.pop("buttons"), "buttons: required key is missing"),
        (lambda t: t["source"].update(kind="mouse"), "source.kind: must be one of"),
        (lambda t: t["axes"]["x"].update(range=0.0), "axes.x.range: must be a number"),
        (lambda t: t["axes"]["x"].update(centre=math.nan), "axes.x.centre: must be a number .*got nan"),
        (lambda t: t["axes"]["x"].update(sign=0), "axes.x.sign: value 0"),
        (lambda t: t["axes"]["x"].update(channel=6), "axes.x.channel: value 6, limit 0 ... 5"),
        (lambda t: t["axes"].update(y=dict(t["axes"]["x"])), "axes.y.channel: value 0, already axes.x's"),
        (lambda t: t["axes"].update(surge=1), "axes.surge: unknown key"),
        (lambda t: t.update(axes={}), "axes: empty"),
        (lambda t: t["buttons"].update(others=[3]), "buttons: value"),
    ],
)
def test_every_fault_of_the_file_is_named(change, says):
    table = good_table()
    assert desk_of(table).calibration == CALIBRATION
    change(table)
    with pytest.raises(ConfigurationError, match=says):
        desk_of(table)


def test_verb_with_a_serial_box(loop, tmp_path, capsys, monkeypatch):
    """A hundredth of a second is over when the desk has the record of the frame before."""
    import hil_server.verbs.hand_controller as verb

    device, done = SerialPty(), threading.Event()
    device.source.close()
    loop.desk = HandDesk(loop.router, loop.block)  # records bear the time of the process that sends them
    device.put(PUSHED, True)
    file = tmp_path / "sticks.toml"
    file.write_text(dumps({"station": 1, "address": loop.address, **good_table(path=device.path)}))
    assert load(str(file)).calibration == CALIBRATION
    monkeypatch.setattr(verb, "time", SimpleNamespace(monotonic=loop.clock))

    def box():
        began = loop.clock.ns
        while not done.is_set():
            os.write(device.out, device.frame(device.sequence))
            device.sequence += 1
            loop.router.poll(50)  # what came before the verb has opened the line is lost: the next frame then
            loop.desk.serve()
            loop.clock.ns = began + 10_000_000 * loop.arrived

    thread = threading.Thread(target=box)
    thread.start()
    try:
        code = main(["hand-controller", str(file), "--duration", "0.6", "--json", str(tmp_path / "out.json")])
    finally:
        done.set()
        thread.join()
    summary = json.loads((tmp_path / "out.json").read_text())
    assert code == 0 and summary["station"] == 1 and summary["faults"] == summary["unsent"] == 0
    assert summary["sent"] >= 59 and summary["rate_hz"] == pytest.approx(summary["sent"] / summary["seconds"])
    loop.sent = summary["sent"]
    assert loop.tick(1)[1] & 1 and loop.arrived == summary["sent"] and "station 1" in capsys.readouterr().out
    device.close()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "--keyboard"),
        (["/nowhere.toml"], 2, "cannot be read"),
        (["{good}"], 4, "/dev/ttyS9"),
    ],
)
def test_verb_says_what_is_wrong(arguments, code, says, tmp_path, capsys):
    good = tmp_path / "good.toml"
    good.write_text(dumps(good_table()))
    assert main(["hand-controller", *(a.format(good=good) for a in arguments)]) == code
    assert says in capsys.readouterr().err
