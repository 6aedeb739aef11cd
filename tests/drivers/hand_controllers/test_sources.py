"""Sources of a hand controller: what they say, how they end, and what they refuse to believe."""

import errno
import os
import pty
import select
import termios

import pytest

from drivers.hand_controllers import FaultyDeviceError, Reading
from drivers.hand_controllers.evdev import ABS, EVENT, KEY, SYN, SYN_REPORT, EvdevSource
from drivers.hand_controllers.keyboard import KeyboardSource
from drivers.hand_controllers.serial_box import FRAME, SerialBoxSource, encode


@pytest.fixture
def pipe():
    """(source on two channels, the end that is written to)."""
    into, out = os.pipe()
    source = EvdevSource(into, (0, 5))
    yield source, out
    source.close()
    if out >= 0:
        os.close(out)


@pytest.fixture
def terminal():
    near, far = pty.openpty()
    yield near, far
    for end in (near, far):
        os.close(end)


def event(kind, code, value, micros=0):
    return EVENT.pack(10, micros, kind, code, value)


REPORT = event(SYN, SYN_REPORT, 0)


def waiting(fd):
    """Whether something is there to read, once the kernel has passed it on."""
    return bool(select.select([fd], [], [], 5.0)[0])


# ------------------------------------------------------------------------------------------------------------------ evdev


def test_evdev_speaks_when_every_channel_is_known_and_a_report_ends(pipe):
    source, out = pipe
    os.write(out, event(ABS, 0, -300) + REPORT)
    assert source.read() == []  # channel 5 has never spoken
    os.write(out, event(ABS, 5, 7) + event(KEY, 0x120, 1))
    assert source.read() == []
    os.write(out, REPORT + event(KEY, 0x120, 0) + event(ABS, 0, 12) + REPORT)
    assert source.read() == [Reading({0: -300.0, 5: 7.0}, frozenset({0x120})), Reading({0: 12.0, 5: 7.0}, frozenset())]
    assert source.read() == [] and not source.framed


@pytest.mark.parametrize("cut", [1, EVENT.size - 1, EVENT.size + 3])
def test_evdev_takes_events_in_pieces(pipe, cut):
    source, out = pipe
    data = event(ABS, 0, 1) + event(ABS, 5, 2) + REPORT
    os.write(out, data[:cut])
    assert source.read() == []
    os.write(out, data[cut:])
    assert source.read() == [Reading({0: 1.0, 5: 2.0}, frozenset())]


@pytest.mark.parametrize("bad", [event(0x40, 0, 1), event(ABS, 0x40, 1), event(KEY, 0x300, 1), event(ABS, 0, 1, micros=1_000_000),
                                 EVENT.pack(-1, 0, ABS, 0, 1)])  # fmt: skip
def test_evdev_does_not_believe_what_is_no_event(pipe, bad):
    source, out = pipe
    os.write(out, bad)
    with pytest.raises(FaultyDeviceError) as caught:
        source.read()
    assert caught.value.errno == errno.EPROTO


def test_evdev_that_is_gone(pipe):
    source, out = pipe
    os.write(out, event(ABS, 0, 1))
    assert source.read() == []
    os.dup2(os.open(os.devnull, os.O_WRONLY), out)  # the last writer leaves; `out` stays a descriptor for the fixture
    with pytest.raises(OSError) as caught:
        source.read()
    assert caught.value.errno == errno.ENODEV
    source.close()
    source.close()


def test_evdev_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        EvdevSource(str(tmp_path / "event99"), (0,))


# ------------------------------------------------------------------------------------------------------------------ keyboard

KEY_OF = {(channel, way): keys[way < 0].encode() for channel, keys in enumerate(("ws", "ad", "rf", "uo", "jl", "ik")) for way in (1, -1)}


def test_keyboard_wants_a_terminal_and_puts_its_settings_back(pipe, terminal):
    with pytest.raises(OSError, match="needs a terminal"):
        KeyboardSource(pipe[1])
    _, line = terminal
    before = termios.tcgetattr(line)
    source = KeyboardSource(line)
    assert termios.tcgetattr(line) != before
    source.close()
    source.close()
    assert termios.tcgetattr(line) == before


@pytest.mark.parametrize(("channel", "way"), [(channel, way) for channel in range(6) for way in (1, -1)])
def test_each_key_steps_its_own_channel(terminal, channel, way):
    keyboard, line = terminal
    source = KeyboardSource(line)
    os.write(keyboard, 3 * KEY_OF[channel, way])
    assert waiting(line)
    reading = source.read()[-1]
    assert reading.raw == {n: pytest.approx(0.6 * way if n == channel else 0.0) for n in range(6)} and not reading.pressed
    os.write(keyboard, b"v \n")
    assert waiting(line)
    assert source.read()[-1] == Reading(dict.fromkeys(range(6), 0.0), frozenset({0, 1}))
    source.close()


# ------------------------------------------------------------------------------------------------------------------ serial box


def read_all(source, count):
    """So many readings, as they come over the line."""
    readings = []
    while len(readings) < count:
        assert waiting(source.fileno()), f"{len(readings)} of {count} readings"
        readings += source.read()
    return readings


def test_box_finds_frames_amid_garbage(terminal):
    """Noise before, between and inside of frames: every whole frame is read once, everything else is counted."""
    box, line = terminal
    source = SerialBoxSource(os.ttyname(line))
    spoilt = bytearray(encode(3, (9,) * 6, 9))
    spoilt[7] ^= 4
    os.write(box, b"\x00\xa5" + encode(1, (1, -2, 3, -4, 5, -6), 0x8001) + b"\xa5\x5a" + bytes(spoilt) + encode(4, (6,) * 6, 0))
    first, last = read_all(source, 2)
    assert first == Reading({0: 1.0, 1: -2.0, 2: 3.0, 3: -4.0, 4: 5.0, 5: -6.0}, frozenset({0, 15}))
    assert last.raw == dict.fromkeys(range(6), 6.0)
    assert source.corrupt == 2 + 2 + FRAME.size and source.framed
    source.close()
    source.close()


@pytest.mark.parametrize(
    ("sequences", "good"), [((7, 8, 12, 0x8000), 4), ((0xFFFE, 0xFFFF, 0, 1), 4), ((5, 5), 1), ((5, 4), 1), ((5, 0x8005), 1)]
)
def test_box_whose_sequence_stands_or_runs_backwards_is_not_believed(terminal, sequences, good):
    box, line = terminal
    source = SerialBoxSource(os.ttyname(line))
    for number, sequence in enumerate(sequences):
        os.write(box, encode(sequence, (0,) * 6, 0))
        if number < good:
            read_all(source, 1)
        else:
            assert waiting(source.fileno())
            with pytest.raises(FaultyDeviceError, match=f"to {sequence}"):
                while True:
                    source.read()
    source.close()


def test_box_that_is_not_there(tmp_path):
    with pytest.raises(OSError) as caught:
        SerialBoxSource(str(tmp_path / "ttyUSB99"))
    assert caught.value.errno == errno.ENOENT
