"""A recorded operator over the wire: by the run time on the bus, commands at their time, silence as in the record."""

import os
import select

import pytest

from hil_server.cli import main
from hil_server.operator_desk.playback import AS_RECORDED, Follower, Playback, RunTime
from hil_server.operator_desk.script import Row, parse
from hil_server.operator_desk.station import Station

ROWS = parse(
    "0.0, 0, 0, 0, 0, 0, 0, 0, 1\n0.2, 0, 0.37, 0, -1, 0, 0, 0, 3\n0.3, 1, 1, 0, 0, 0, 0, 0, 1\n0.4, 0, silent\n0.5, 0, 0, 0, 0, 0, 0, 0, 1"
)


class Clock:
    """Time that passes while a station waits, s."""

    now = 0.0

    def __call__(self):
        return self.now

    def wait(self, source, seconds):
        self.now += seconds
        return False


def test_run_time_is_the_least_delayed_message():
    now = [100.0]
    run = RunTime(lambda: now[0])
    assert run.seconds() is None
    for at, told in ((100.05, 0.0), (100.52, 0.5), (101.30, 1.0)):
        now[0] = at
        run.told(told)
    now[0] = 110.0
    assert run.seconds() == pytest.approx(110.0 - 100.02)


def test_rows_of_one_station_at_their_time():
    now = [None]
    source = Playback(ROWS, 0, lambda: now[0])
    assert source.now() is None, "the run is not there yet"
    seen = {}
    for t in (0.0, 0.19, 0.2, 0.39, 0.4, 0.49, 0.5):
        now[0] = t
        reading = source.now()
        seen[t] = None if reading is None else AS_RECORDED.record(reading)
    pushed = ([0.37, 0.0, -1.0, 0.0, 0.0, 0.0], 3)
    centred = ([0.0] * 6, 1)
    assert seen == {0.0: centred, 0.19: centred, 0.2: pushed, 0.39: pushed, 0.4: None, 0.49: None, 0.5: centred}
    assert source.done and not select.select([source], [], [], 0)[0]
    read, write = source._pipe
    source.close()
    for end in (read, write):
        with pytest.raises(OSError):
            os.fstat(end)


def test_a_lost_controller_is_centred_until_the_loop_has_it_back():
    lost = [False]
    source = Playback(ROWS, 0, lambda: 0.3, lambda: lost[0])
    assert AS_RECORDED.record(source.now())[0][0] == 0.37
    lost[0] = True
    assert AS_RECORDED.record(source.now()) == ([0.0] * 6, 1)
    lost[0] = False
    assert AS_RECORDED.record(source.now())[0][0] == 0.37
    source.close()


def test_station_repeats_the_rows_fast_enough_and_keeps_silent():
    sent, clock = [], Clock()
    station = Station(lambda: Playback(ROWS, 0, clock), AS_RECORDED, lambda axes, buttons: sent.append((clock(), axes[0], buttons)) or True,
                      clock=clock, wait=clock.wait)  # fmt: skip
    station.connect()
    while clock() < 0.6:
        station.step()
    station.close()
    pushing = [t for t, axis, _ in sent if axis == 0.37]
    assert 19 <= len(pushing) <= 21 and 0.2 <= pushing[0] < 0.211 and pushing[-1] < 0.4
    assert not [t for t, *_ in sent if 0.4 <= t < 0.5]


def test_commands_are_given_by_one_station_only():
    rows = [Row(1.0, "hold"), Row(0.0, 0, (0.0,) * 6, 1)]
    for commands, expected in ((True, ["hold"]), (False, [])):
        follower = Follower(rows, commands, "tcp://127.0.0.1:1", "tcp://127.0.0.1:1", print)
        assert [row.what for row in follower._commands] == expected


@pytest.mark.parametrize(("arguments", "says"), [
    (["--source", "nowhere.csv"], "nowhere.csv: cannot be read"),
    (["--source", "a.csv", "--keyboard"], "--source FILE"),
])  # fmt: skip
def test_verb_says_what_is_wrong(arguments, says, capsys):
    assert main(["hand-controller", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_a_station_with_nothing_to_say_does_not_spin():
    """Before the run is there, and while the record is silent, the process must leave the machine to others."""
    clock = Clock()
    station = Station(lambda: Playback(ROWS, 0, lambda: None), AS_RECORDED, lambda axes, buttons: True, clock=clock, wait=clock.wait)
    station.connect()
    steps = 0
    while clock() < 0.2:
        station.step()
        steps += 1
        assert steps < 60, "100 a second and some more, not faster than real time"
    station.close()
