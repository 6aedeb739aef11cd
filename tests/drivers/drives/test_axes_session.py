"""What the set-ups of axes on CANopen and EtherCAT share: waiting for them, what is written into them and compared, without a bus."""

from types import SimpleNamespace

import pytest

from drivers.drives import axes_session
from drivers.drives.axes_session import await_down, await_up, heartbeat_timeout_ns, loop_rate, watchdog_of
from drivers.drives.canopen_setup import DriveSetupError
from drivers.drives.supervision import Protection, check_scale, heartbeat_of_server, limits_of_axis, reactions, scale_of_drive
from tests.drivers.peers.drives import Cia402Drive
from tests.drivers.plain_stand import SleptTime

LABELS = ("left", "right", "top")
PROFILE = SimpleNamespace(last_state="state 4", next_state=lambda word: f"state {word + 1}")


class Axes:
    """Three axes with their status words; `course(seconds)` is what they do in the time that passes."""

    def __init__(self, monkeypatch, course=lambda axes: None):
        self.words, self.codes, self.off, self.silent, self.up, self.led_down = [0] * 3, [0] * 3, [False] * 3, [0] * 3, False, 0
        self.time = SleptTime(lambda seconds: course(self))
        monkeypatch.setattr(axes_session, "time", self.time)

    def standing(self, axis):
        return self.words[axis], self.codes[axis], self.words[axis] == 4, self.off[axis], self.silent[axis]

    def lead_down(self):
        self.led_down += 1


def test_axes_that_come_up_state_by_state_have_their_time_for_each(monkeypatch):
    def course(axes):
        axes.words = [min(int(axes.time.passed / 0.45), 4)] * 3
        axes.up = axes.words[0] == 4

    axes = Axes(monkeypatch, course)
    await_up(axes, PROFILE, LABELS, answer_s=0.1)
    assert axes.time.passed == pytest.approx(1.8, abs=0.002)


@pytest.mark.parametrize(("answer_s", "patience"), [(0.1, 0.5), (2.0, 2.0)])
@pytest.mark.parametrize(("words", "says"), [
    ([3, 3, 1], "top: state 2 was not reached, status word is 0x0001"),  # the others wait for it with their last step
    ([4, 3, 3], "right: state 4 was not reached, status word is 0x0003"),
])  # fmt: skip
def test_an_axis_that_stays_in_a_state_is_named(monkeypatch, words, says, answer_s, patience):
    axes = Axes(monkeypatch)
    axes.words = words
    with pytest.raises(DriveSetupError, match=says):
        await_up(axes, PROFILE, LABELS, answer_s)
    assert axes.time.passed == pytest.approx(patience, abs=0.003)


def test_an_emergency_refuses_axes_that_are_up(monkeypatch):
    axes = Axes(monkeypatch)
    axes.up, axes.codes = True, [0, 0x8130, 0]
    with pytest.raises(DriveSetupError, match="right: emergency message 0x8130 is pending"):
        await_up(axes, PROFILE, LABELS, 1.0)
    assert axes.time.passed == 0.0


def test_axes_that_are_off_are_not_waited_for(monkeypatch):
    axes = Axes(monkeypatch)
    axes.off = [True] * 3
    assert await_down(axes, LABELS, 1.0) == [] and axes.led_down == 1 and axes.time.passed == 0.0


def test_an_axis_that_is_heard_has_its_time_to_go_off(monkeypatch):
    def course(axes):
        axes.off[1] = axes.time.passed > 0.4

    axes = Axes(monkeypatch, course)
    axes.off, axes.silent = [True, False, True], [20, 19, 20]
    assert await_down(axes, LABELS, 0.1) == [] and axes.time.passed == pytest.approx(0.4, abs=0.003)


@pytest.mark.parametrize(("silent", "answer_s", "patience"), [(19, 0.1, 0.5), (19, 2.0, 2.0), (20, 2.0, 0.25)])
def test_an_axis_that_stays_on_is_named_a_silent_one_soon(monkeypatch, silent, answer_s, patience):
    axes = Axes(monkeypatch)
    axes.off, axes.words, axes.silent = [True, True, False], [0, 0, 0x237], [0, 0, silent]
    assert await_down(axes, LABELS, answer_s) == ["top: does not say that it is off, status word is 0x0237"]
    assert axes.time.passed == pytest.approx(patience, abs=0.003)


def test_rates_that_a_bus_can_keep():
    assert [loop_rate(period) for period in (0.00025, 0.001, 1.0)] == [4000.0, 1000.0, 1.0]
    for period in (0.000249, 1.001):
        with pytest.raises(ValueError, match=f"period_s = {period}"):
            loop_rate(period)


def test_time_after_which_a_heartbeat_is_lost():
    assert [heartbeat_timeout_ns(100, timeout) for timeout in (0, 101, 250)] == [300_000_000, 101_000_000, 250_000_000]
    with pytest.raises(ValueError, match="must be longer than heartbeat_ms = 100"):
        heartbeat_timeout_ns(100, 100)


@pytest.mark.parametrize(("place", "bits", "good"), [
    (-1, (-1, -1), True), (0, (0, 1), True), (0, (0, -1), True), (3, (-1, 7), True), (3, (7, 2), True),
    (-1, (0, -1), False), (-1, (3, 4), False), (0, (-1, -1), False), (3, (3, 3), False), (0, (0, 0), False),
])  # fmt: skip
def test_a_watchdog_has_a_device_and_two_different_outputs(place, bits, good):
    given = {"watchdog_axis": place, "watchdog_outputs": bits}
    if good:
        assert watchdog_of(given, "watchdog_axis") == list(bits)
    else:
        with pytest.raises(ValueError, match=rf"watchdog_axis = {place}, watchdog_outputs = .*: must both be given"):
            watchdog_of(given, "watchdog_axis")


# ------------------------------------------------------------------------------------------------------- protection and scale

PLATFORM = SimpleNamespace(leg_rate_max=0.4, leg_acceleration_max=3.0, leg_length_min=3.0, leg_length_max=5.0)


def limits(platform=PLATFORM, counts_per_metre=2e5, feed_m=0.005):
    return limits_of_axis(platform, 0.7, {"counts_per_metre": counts_per_metre, "following_window_m": 0.05, "feed_m": feed_m})


def values(protections):
    return {(one.index, one.sub): one.value for one in protections}


def test_limits_of_an_axis_are_those_of_the_platform_in_counts():
    found = values(limits())
    expected = {(0x6065, 0): 10_000, (0x6066, 0): 100, (0x607D, 1): 460_000, (0x607D, 2): 860_000, (0x607F, 0): 100_000,
                (0x6080, 0): 6000, (0x60C5, 0): 750_000, (0x60C6, 0): 750_000, (0x6085, 0): 600_000}  # fmt: skip
    assert found == expected
    assert values(limits(feed_m=0.0)) == {key: value for key, value in expected.items() if key != (0x6080, 0)}
    assert values(limits(platform=None)) == {key: expected[key] for key in ((0x6065, 0), (0x6066, 0))}


def test_what_a_server_asks_of_the_drives_supervision():
    assert values(heartbeat_of_server(127, 60)) == {(0x1016, 1): 0x007F003C, (0x1029, 1): 0}


@pytest.mark.parametrize("one", [*reactions(), *limits(), *heartbeat_of_server(127, 60)], ids=lambda one: one.name)
def test_an_object_is_written_with_the_type_that_it_has_in_a_drive(one):
    entry = Cia402Drive(1, 0).objects[one.index, one.sub]
    assert one.size == (-1 if entry.signed else 1) * entry.bits // 8


@pytest.mark.parametrize(("per_metre", "good"), [(1e6, True), (1.0009e6, True), (0.9991e6, True), (1.0011e6, False), (0.9989e6, False)])
def test_a_scale_is_the_same_within_a_thousandth(per_metre, good):
    if good:
        check_scale("node 1", [(per_metre, "its feed constant")], 1e6)
    else:
        with pytest.raises(DriveSetupError, match="node 1: .* position counts per metre by its feed constant"):
            check_scale("node 1", [(per_metre, "its feed constant")], 1e6)


FEED = {(0x6092, 1): 20_000, (0x6092, 2): 2}  # counts in so many turns


@pytest.mark.parametrize(("objects", "feed_m", "scales"), [
    ({}, 0.01, []),
    (FEED, 0.01, [1e6]),
    (FEED, 0.005, [2e6]),
    (FEED, 0.0, []),
    ({(0x6092, 1): 20_000}, 0.01, []),
    ({(0x6092, 2): 2}, 0.01, []),
    ({(0x60A8, 0): 0xFA010000}, 0.0, [1e6]),  # micrometres
    ({(0x60A8, 0): 0x03010000}, 0.0, [1e-3]),  # kilometres
    ({(0x60A8, 0): 0xFA410000}, 0.0, []),  # degrees
    (FEED | {(0x60A8, 0): 0xF9010000}, 0.01, [1e6, 1e7]),
])  # fmt: skip
def test_scale_as_a_drive_says_it(objects, feed_m, scales):
    def read(index, sub, size, meaning):
        if (index, sub) not in objects:
            raise DriveSetupError("no object")
        return objects[index, sub]

    assert [found for found, _ in scale_of_drive(SimpleNamespace(read=read), feed_m)] == pytest.approx(scales)


def test_a_protection_is_named_as_in_a_stand_file():
    assert Protection(0x607D, 2, -4, 5, "highest position").name == "0x607D:2"
