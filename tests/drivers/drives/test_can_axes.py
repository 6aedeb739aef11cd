"""CANopen axes: set-up against drives made of the `canopen` library, cyclic part frame by frame over a socket pair."""

import os
import random
import struct
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from canopen.sdo.exceptions import SdoAbortedError

from drivers.drives import axes_session, canopen_setup, cia402, cia408
from drivers.drives.axes_session import KEEPER_PRIORITY
from drivers.drives.canopen_setup import DriveSetupError, Node
from drivers.raw_frames.can_link import FRAME, link_names, open_link
from hil_server.host.realtime_host import fifo_refusal
from rt_kernels.layout import BITS, CODES
from tests.drivers.library_drives import LibraryDrives
from tests.drivers.plain_stand import has, placed

PORTS = {402: cia402.Cia402Port, 408: cia408.Cia408Port}
GOOD = {402: 0x1237, 408: 0x000F}


@pytest.fixture
def drives():
    made = []

    def make(kind=402, **keys):
        made.append(LibraryDrives(kind, **keys))
        return made[-1]

    yield make
    for one in made:
        one.close()


def opened(peer, **keys):
    port = PORTS[peer.kind](links=peer.link, zero_m=[1.0] * 6, heartbeat_ms=20, **{"timeout_s": 8.0, **keys})
    peer.ports.append(port)
    port.open()
    return port


def enabled(peer, **keys):
    """A port whose axes are enabled, at a rate that drives in Python keep up with."""
    port = opened(peer, period_s=0.01, **keys)
    port.begin()
    return port


def running(drives, kind=402, **keys):
    peer = drives(kind)
    port = opened(peer, **keys)
    peer.let_go()
    return peer, port


class Ticks:
    """The port's ticks by hand: `tick` lets all axes answer to the last SYNC (but those in `silent`), reads, and sends setpoints."""

    PERIOD_NS = 1_000_000

    def __init__(self, drives, sample, kind=402, first=3, **keys):
        self.peer, self.port = running(drives, kind, **keys)
        self.sample, self.kind = sample, kind
        for _ in range(first):
            self.tick()

    def tick(self, silent=(), first=(), between=lambda: None, command=True):
        """first: (node, status word) sent before the good answers; between: what else is sent before the port reads."""
        for n, word in first:
            self.peer.answer(n, word, 0)
        between()
        for n in range(1, 7):
            if n not in silent:
                self.peer.answer(n, GOOD[self.kind], 0)
        self.port.read(self.sample)
        self.sample["time_ns"] += self.PERIOD_NS
        if command:
            self.sample["leg_setpoint"] = 1.0
            self.port.write(self.sample)
        self.peer.take()
        return drive_bits(self.sample, 2)

    def beat(self, *nodes, state=5):
        for n in nodes or range(1, 7):
            self.peer.send(0x700 + n, [state])

    def others(self):
        return set().union(*(drive_bits(self.sample, axis) for axis in (0, 1, 3, 4, 5)))


def names_of(word):
    return {name for name in BITS["drive_status"] if has(word, "drive_status", name)}


def drive_bits(sample, axis=0):
    return names_of(sample["drive_status"][0, axis])


# ---------------------------------------------------------------------------------------------------------------- set-up
@pytest.mark.parametrize(("kind", "way_up"), [(402, [0x06, 0x07, 0x0F]), (408, [0x01, 0x03, 0x07])])
def test_set_up_of_library_drives(drives, sample, kind, way_up, monkeypatch):
    monkeypatch.setattr(axes_session, "SILENT_PERIODS", 10**6)  # drives in Python: a busy machine keeps them from answering
    peer = drives(kind)
    port = opened(peer, period_s=0.01)
    assert not any(peer.words.values()), "nothing is enabled before the loop is about to begin"
    port.begin()
    for n in range(1, 7):
        assert peer.words[n] == way_up
        assert peer.nodes[n].nmt.state == "OPERATIONAL"
        # mapping: control word and position in, status word and position out, every SYNC, time-out of five periods
        rpdo = [peer.get(n, 0x1600, place, 4) for place in (1, 2)]
        tpdo = [peer.get(n, 0x1A00, place, 4) for place in (1, 2)]
        position = {402: (0x607A0020, 0x60640020), 408: (0x66000120, 0x66010120)}[kind]
        assert rpdo == [0x60400010, position[0]] and tpdo == [0x60410010, position[1]]
        assert (peer.get(n, 0x1400, 1, 4), peer.get(n, 0x1800, 1, 4)) == (0x200 + n, 0x180 + n)
        assert peer.get(n, 0x1803, 1, 4) == 0x80000480 + n  # an actual value that is on by default is switched off: no one would watch it
        assert (peer.get(n, 0x1400, 2, 1), peer.get(n, 0x1800, 2, 1), peer.get(n, 0x1400, 5, 2)) == (1, 1, 50)
        # target is where the axis stands
        target = (0x607A, 0) if kind == 402 else (0x6600, 1)
        assert peer.get(n, *target, -4) == peer.positions[n - 1]
        if kind == 402:
            assert (peer.get(n, 0x6060, 0, -1), peer.get(n, 0x60C2, 1, 1), peer.get(n, 0x60C2, 2, -1)) == (8, 10, -3)
        else:
            assert (peer.get(n, 0x6042, 0, -1), peer.get(n, 0x6043, 0, -1)) == (1, 9)
    port.read(sample)
    np.testing.assert_allclose(sample["measured_leg"][0], 1 + 1e-6 * np.array(peer.positions), rtol=0, atol=1e-12)
    assert all(drive_bits(sample, axis) <= {"stale"} for axis in range(6))  # what the keeper heard last, unless more has come

    port.close()
    assert port.close_problems == []
    for n in range(1, 7):
        assert peer.words[n][len(way_up) :] == ([0x07, 0x06, 0x00] if kind == 402 else [0x03, 0x01, 0x00])


@pytest.mark.parametrize(("kind", "way_up", "before"), [(402, [0x06, 0x07, 0x0F], 0x233), (408, [0x01, 0x03, 0x07], 0x00B)])
def test_the_last_step_up_is_not_taken_back_from_a_drive_whose_answer_comes_late(drives, kind, way_up, before):
    """Three drives have taken it and say so, of the other three one word from before it comes after two cycles without any."""
    peer = drives(kind)
    late = []  # SYNCs since the last step

    def sampled():
        stepped = all(peer.words[n][-1:] == way_up[-1:] for n in range(1, 7))
        if stepped and len(late) < 3:
            late.append([n for n in (1, 2, 3)] + [4] * (len(late) == 2))
            for n in late[-1]:
                peer.answer(n, before if n == 4 else peer.status[n], peer.positions[n - 1])
        else:
            LibraryDrives.sampled(peer)

    peer.sampled = sampled
    enabled(peer)
    assert late == [[1, 2, 3], [1, 2, 3], [1, 2, 3, 4]] and all(peer.words[n] == way_up for n in range(1, 7))


@pytest.mark.parametrize(("kind", "before", "after"), [(402, 0x233, 0x227), (408, 0x00B, 0x00F)])
def test_a_word_from_before_the_last_step_is_not_the_loops(drives, sample, kind, before, after):
    """The answers of two cycles come together: the drive is enabled, and was not a cycle ago."""
    peer = drives(kind)
    late = []

    def sampled():
        if peer.status[6] == after and not late:
            late.append(True)  # this cycle's answers come with the next one's
            return
        if late == [True]:
            late.append(True)
            for n in range(1, 7):
                peer.answer(n, before, peer.positions[n - 1])
        LibraryDrives.sampled(peer)

    peer.sampled = sampled
    port = enabled(peer)
    port.read(sample)
    assert late == [True, True] and all(drive_bits(sample, axis) <= {"stale"} for axis in range(6))


@pytest.mark.parametrize(("kind", "blocking", "within"), [(402, 0x00, 1000), (408, 0x01, 1000), (408, 0x01, 3000)])
def test_an_axis_that_leaves_its_place_before_the_first_setpoint_loses_its_power(drives, sample, kind, blocking, within):
    """One by less than the limit and one by more, before the loop begins: what the second does after that gives it no power again."""
    peer = drives(kind, positions=(5100, 5200, 5300, 5400, 5500, -5600))
    port = enabled(peer, **({} if within == 1000 else {"held_within_m": 1e-6 * within}))
    good = {n: words[-1] for n, words in peer.words.items()}
    cycles, seen = [], threading.Event()

    def sampled():
        peer.positions[1], peer.positions[2] = 5200 + within - 100, 5300 - within - 100
        cycles.append(peer.words[3][-1])
        LibraryDrives.sampled(peer)
        if len(cycles) == 12:
            seen.set()

    peer.sampled = sampled
    assert seen.wait(60.0)
    assert cycles[-1] == blocking and sorted(set(cycles)) == sorted({blocking, good[3]})
    assert all(peer.words[n][-1] == good[n] for n in (1, 2, 4, 5, 6))
    port.read(sample)
    assert "following_error" in drive_bits(sample, 2)
    assert all("following_error" not in drive_bits(sample, axis) for axis in (0, 1, 3, 4, 5))


@pytest.mark.parametrize(("kind", "good", "target"), [(402, 0x0F, (0x607A, 0)), (408, 0x07, (0x6600, 1))])
def test_an_axis_is_enabled_where_two_positions_in_a_row_agree(drives, kind, good, target):
    """One that never stands is not enabled; one that has moved is where it stands then."""

    def led_up(moves):
        peer, left = drives(kind), iter(range(moves))

        def sampled():
            if next(left, None) is not None:
                peer.positions[3] += 1100
            LibraryDrives.sampled(peer)

        peer.sampled = sampled
        return peer

    peer = led_up(10**9)
    with pytest.raises(DriveSetupError, match="was not reached"):
        enabled(peer, timeout_s=1.0)
    assert all(good not in words for words in peer.words.values())
    peer = led_up(3)
    enabled(peer)
    assert peer.positions[3] == 400 + 3300 and peer.get(4, *target, -4) == 400 + 3300


@pytest.mark.parametrize(("kind", "fault", "reset"), [(402, 0x208, [0x00, 0x80]), (408, 0x1, [0x1, 0x9]), (408, 0x3, [0x3, 0xB])])
def test_fault_is_reset_before_enabling(drives, kind, fault, reset):
    peer = drives(kind, first_status=fault)
    port = enabled(peer)
    assert all(peer.words[n][:2] == reset for n in range(1, 7))
    port.close()


@pytest.mark.parametrize(("kind", "status"), [(402, 0x040), (408, 0x18)])
def test_local_control_is_refused(drives, kind, status):
    peer = drives(kind)
    peer.show(4, status)
    with pytest.raises(DriveSetupError, match="node 4 .* local control"):
        opened(peer)
    assert all(0x0F not in words and 0x07 not in words for words in peer.words.values())


def test_wrong_device_and_state_not_reached_are_named(drives):
    peer = drives(408)
    with pytest.raises(DriveSetupError, match="node 1 .* is not a CiA 402 device: its type is 408"):
        cia402.Cia402Port(links=peer.link, timeout_s=2.0).open()
    peer = drives(402)
    peer.refuse = {3: (0x0F,)}
    with pytest.raises(DriveSetupError, match="node 3 .*'operation enabled' was not reached.*0x0223"):
        enabled(peer, timeout_s=1.0)
    # the others, already enabled, are disabled again
    assert all(peer.words[n][-1] == 0x00 for n in (1, 2, 4, 5, 6))


def test_absent_drives_and_links_are_named(drives):
    peer = drives(402)
    with pytest.raises(DriveSetupError, match="node 9 on .*heartbeat time"):
        cia402.Cia402Port(links=peer.link, axis_node=[9, 1, 2, 3, 4, 5], timeout_s=0.1).open()
    with pytest.raises(ConnectionError, match="CAN link 'can77'"):
        cia402.Cia402Port(links="can77").open()


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (dict(), "links: required key is missing"),
        (dict(links=""), "at least one CAN link"),
        (dict(links="udp:10.0.0.1:5000"), "loopback only"),
        (dict(links="udp:127.0.0.1:0"), "port must be"),
        (dict(links="can0", axis_link=[0, 0, 0, 1, 1, 1]), "axis_link"),
        (dict(links="can0", axis_node=[1, 1, 2, 3, 4, 5]), "share a node"),
        (dict(links="can0", axis_node=[1.5, 1, 2, 3, 4, 5]), "whole number"),
        (dict(links="can0", axis_node=[1, 2, 3]), "axis_node"),
        (dict(links="can0", counts_per_metre=float("inf")), "counts_per_metre"),
        (dict(links="can0", period_s=1 / 777.0), "0.1 %|interpolation"),
        (dict(links="can0", period_s=2.0), "period_s = 2.0"),
    ],
)
def test_wrong_parameters_are_named(keys, says):
    with pytest.raises(ValueError, match=says):
        cia402.Cia402Port(**keys)


def test_bus_loads_of_a_port():
    port = cia408.Cia408Port(links="can0 can1", axis_link=[0, 0, 0, 1, 1, 1])
    assert [(round(load.cycle_us_min), round(load.cycle_us_max), load.fits) for load in port.bus_loads()] == [(617, 745, True)] * 2
    assert not cia408.Cia408Port(links="can0").bus_loads()[0].fits


# ---------------------------------------------------------------------------------------------------------------- cyclic
@pytest.mark.parametrize("kind", [402, 408])
def test_order_of_a_cycle(drives, sample, kind):
    peer, port = running(drives, kind)
    port.read(sample)
    assert peer.take() == [(0x080, b"")]
    sample["leg_setpoint"] = 1.0 + np.array([1e-6, -2e-6, 3.4e-6, 0.5, -0.25, 2.0])
    port.write(sample)
    counts = [1, -2, 3, 500000, -250000, 2000000]
    word = {402: 0x0F, 408: 0x07}[kind]
    assert peer.take() == [(0x200 + n, struct.pack("<Hi", word, counts[n - 1])) for n in range(1, 7)]
    for n in range(1, 7):
        peer.answer(n, GOOD[kind], 1000 * n)
    port.read(sample)
    assert peer.take() == [(0x080, b"")]
    np.testing.assert_allclose(sample["measured_leg"][0], 1 + 1e-3 * np.arange(1, 7), rtol=0, atol=1e-12)
    assert not sample["drive_status"].any()


def test_velocity_feed_forward_frame(drives, sample):
    peer, port = running(drives, velocity_feed_forward=True)
    assert peer.get(2, 0x1601, 1, 4) == 0x60B10020
    port.read(sample)
    peer.take()
    sample["leg_setpoint"], sample["leg_rate_setpoint"] = 1.0, [0.1, -0.2, 0.3, 0, 0, 0]
    port.write(sample)
    frames = dict(peer.take())
    assert [struct.unpack("<i", frames[0x300 + n])[0] for n in range(1, 7)] == [100000, -200000, 300000, 0, 0, 0]


@pytest.mark.parametrize("feed_forward", [False, True])
def test_the_watchdog_is_in_one_drives_second_frame_and_changes_with_a_healthy_tick_alone(drives, sample, feed_forward):
    peer, port = running(drives, velocity_feed_forward=feed_forward, watchdog_axis=1, watchdog_outputs=[17, 16])
    assert peer.get(2, 0x1601, 1 + feed_forward, 4) == 0x60FE0120 and peer.get(2, 0x60FE, 2, 4) == 0b11 << 16
    sample["leg_setpoint"], sent = 1.0, []
    for watchdog in (1, 2, 3, 3, 3, 4):
        port.read(sample)
        peer.take()
        sample["watchdog"] = watchdog
        port.write(sample)
        frames = dict(peer.take())
        assert (0x301 in frames) == feed_forward
        sent.append(struct.unpack("<I", frames[0x302][4 * feed_forward :])[0] >> 16)
    assert sent == [0b11, 0b01, 0b11, 0b10, 0b10, 0b01]  # the same again: a loop whose safety stage says nothing more
    port.read(sample)
    assert all(identifier == 0x080 for identifier, _ in peer.take())  # nothing by itself: without the loop the output stands still


@pytest.mark.parametrize("keys", [{"watchdog_axis": 1}, {"watchdog_outputs": [16, 17]}, {"watchdog_axis": 1, "watchdog_outputs": [3, 3]}])
def test_a_watchdog_of_half_a_drive_is_refused(keys):
    with pytest.raises(ValueError, match=r"watchdog_axis = .*, watchdog_outputs = .*: must both be given"):
        cia402.Cia402Port(links="can0", axis_link=[0] * 6, **keys)


# status words of axes on their way up, with the word that each is to get: (status, word)
WAY_UP = {
    402: [(0x1208, {0x00, 0x80}), (0x120F, {0x00}), (0x1207, {0x00}), (0x1240, {0x06}), (0x1221, {0x07}), (0x1223, {0x0F}),
          (0x1237, {0x0F})],
    408: [(0x0001, {0x01, 0x09}), (0x0003, {0x03, 0x0B}), (0x0008, {0x01}), (0x0009, {0x03}), (0x000B, {0x07}), (0x000F, {0x07})],
}  # fmt: skip


@pytest.mark.parametrize("kind", [402, 408])
def test_recovery_leads_each_axis_up_from_the_state_that_it_is_in(drives, sample, kind):
    """A fault is reset by an edge, whatever was sent before; only the axis that stands at its setpoint is enabled; given up, nothing is
    enabled any more; following again, the word is as ever."""
    peer, port = running(drives, kind)
    good = {402: 0x0F, 408: 0x07}[kind]

    def words(status, state, leg=1.0, ticks=1):
        sent = []
        for _ in range(ticks):
            for n in range(1, 7):
                peer.answer(n, status if n == 3 else GOOD[kind], 0)
            port.read(sample)
            peer.take()
            sample["leg_setpoint"], sample["safety_state"] = leg, CODES["safety_state"][state]
            port.write(sample)
            frames = {identifier: struct.unpack("<Hi", data)[0] for identifier, data in peer.take() if identifier < 0x700}
            assert all(frames[0x200 + n] == good for n in (1, 2, 4, 5, 6))
            sent.append(frames[0x203])
        return sent

    for status, allowed in WAY_UP[kind]:
        words(GOOD[kind], "held")
        sent = words(status, "recovering", ticks=64)
        assert set(sent) == allowed, f"{status:04x}"
        # each edge stays for a while: a drive that looks every few milliseconds sees it; and there is one a second, no more
        assert len(allowed) == 1 or 1 <= np.count_nonzero(np.diff(sent)) <= 2
    switched_on, waits = {402: (0x1223, 0x07), 408: (0x000B, 0x03)}[kind]
    assert words(switched_on, "recovering", leg=1.0009) == [good] and words(switched_on, "recovering", leg=1.0011) == [waits]
    assert words(switched_on, "held") == [waits] and words(switched_on, "following") == [good] == words(switched_on, "held")


@pytest.mark.parametrize("kind", [402, 408])
@pytest.mark.parametrize("gap_m", [0.0, 0.017])
def test_an_axis_whose_power_is_taken_keeps_that_word_until_it_is_off(drives, sample, kind, gap_m):
    """A drive that has not heard of the trip still says in the recovery that it is enabled."""
    peer, port = running(drives, kind)
    off, good, status = {402: (0x00, 0x0F, 0x1250), 408: (0x01, 0x07, 0x0009)}[kind]

    def word(status, state, blocked=0):
        for n in range(1, 7):
            peer.answer(n, status if n == 3 else GOOD[kind], 0)
        port.read(sample)
        peer.take()
        sample["leg_setpoint"], sample["safety_state"], sample["setpoint_status"] = 1.0 + gap_m, CODES["safety_state"][state], blocked
        port.write(sample)
        return {number: struct.unpack("<Hi", data)[0] for number, data in peer.take() if number < 0x700}[0x203]

    assert word(GOOD[kind], "held") == good
    taken = word(GOOD[kind], "blocked", BITS["setpoint_status"]["blocked3"])
    assert taken == off and [word(GOOD[kind], "recovering") for _ in range(3)] == [off] * 3
    assert word(status, "recovering") not in (off, good), "it is off: led up from there"


def test_node_that_lost_its_set_up_gets_it_again_beside_the_loop(stand, sample):
    """A node restarts while the loop runs: operational with its PDOs again, the others undisturbed."""
    process = stand()
    patient = dict(receive_timeout_periods=1000, server_timeout_ms=60000, heartbeat_timeout_ms=60000, no_data_periods=1000)
    port = cia402.Cia402Port(**process.ports["drives"], **patient)
    port.open()
    port.begin()
    stop, lost, ticked = threading.Event(), [], threading.Condition()

    def loop():
        while not stop.is_set():
            port.read(sample)
            with ticked:
                lost.append([bits for bits in (drive_bits(sample, axis) for axis in range(6))])
                ticked.notify()
            sample["leg_setpoint"] = sample["measured_leg"]
            sample["safety_state"] = CODES["safety_state"]["recovering"]
            port.write(sample)
            sample["time_ns"] += 2_000_000
            stop.wait(0.002)  # its period

    def until(reached):
        with ticked:
            ticked.wait_for(reached)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        until(lambda: len(lost) > 20 and not any(lost[-1]))
        process.control.inject("drive_restart", 2)
        until(lambda: "not_enabled" in lost[-1][2])
        with pytest.raises(DriveSetupError, match="broken off, the recovery is over"):
            port.recover(lambda: 0.0)
        port.recover(lambda: 60.0)
        until(lambda: not any(lost[-1]))
        assert not any("not_enabled" in bits for tick in lost[20:] for i, bits in enumerate(tick) if i != 2)
    finally:
        stop.set()
        thread.join()
        port.close()
    assert port.close_problems == []


def test_set_point_that_is_no_number_keeps_the_last_one(drives, sample):
    peer, port = running(drives)
    port.read(sample)
    for bad in (float("nan"), float("inf"), -1e12):
        sample["leg_setpoint"] = 1.25
        port.write(sample)
        sample["leg_setpoint"] = bad
        peer.take()
        port.write(sample)
        assert all(struct.unpack("<Hi", data) == (0x0F, 250000) for _, data in peer.take())


def test_rate_is_the_difference_over_the_true_time(drives, sample):
    """Each SYNC leaves between two looks at the clock, so that the rate lies between two bounds, however long the machine takes."""
    peer, port = running(drives, rate_window_periods=3)
    counts = [0, 700, 700, 700, 1700, 4700, 5700, 5700, 5700, 5700, -1300]  # of node 1, the others in proportion
    before, after, n = [], [], np.arange(1, 7)
    for k in range(len(counts) + 1):
        before.append(time.monotonic())
        port.read(sample)
        after.append(time.monotonic())
        rate = sample["measured_leg_rate"][0]
        oldest, newest = max(k - 4, 0), k - 1  # samples: the newest three differences, fewer at the beginning
        if newest <= oldest:
            assert not rate.any()
        else:
            way = 1e-6 * n * (counts[newest] - counts[oldest])
            bounds = way / (after[newest] - before[oldest]), way / (before[newest] - after[oldest])
            assert (np.minimum(*bounds) <= rate).all() and (rate <= np.maximum(*bounds)).all(), k
        if k < len(counts):
            for node in n:
                peer.answer(node, 0x1237, counts[k] * int(node))
        time.sleep(0.004 if k % 2 else 0.009)  # the next look is late on purpose: the true time between two differs


def test_silence_counts_up_to_no_data(drives, sample):
    peer, port = running(drives, no_data_periods=3)
    peer.answer(1, 0x1237, 0)
    port.read(sample)
    seen = []
    for _ in range(4):
        for n in range(2, 7):
            peer.answer(n, 0x1237, 0)
        port.read(sample)
        seen.append(drive_bits(sample))
        assert drive_bits(sample, 1) == set()
    assert seen == [{"lost"}, {"lost"}, {"lost", "no_data"}, {"lost", "no_data"}]
    for n in range(1, 7):
        peer.answer(n, 0x1237, 0)
    port.read(sample)
    assert drive_bits(sample) == set() and port.counters()["axis_lost"] == [4, 0, 0, 0, 0, 0]
    assert list(sample["drive_lost_total"][0]) == [4, 0, 0, 0, 0, 0]


SETTLED = 6  # ticks after which nothing of the set-up is owed any more
NO_DATA_PERIODS = 3


@pytest.mark.parametrize("true_first", [True, False])
def test_a_second_answer_to_one_sync_with_another_position_says_so(drives, sample, true_first):
    line = Ticks(drives, sample, first=SETTLED, no_data_periods=NO_DATA_PERIODS)
    line.beat()

    def spoof(*positions):
        return lambda: [line.peer.answer(3, GOOD[402], position) for position in positions]

    assert line.tick(between=spoof(0)) == set()  # the same twice says nothing new
    assert line.tick(silent=(3,), between=spoof(*((0, 500) if true_first else (500, 0)))) == {"differs"}
    assert line.others() == set()
    assert line.tick() == set()
    assert line.tick(between=spoof(500)) == {"differs"}
    assert sample["drive_lost_total"][0, 2] == 0


@pytest.mark.parametrize("missing", [1, 5])
def test_answers_that_come_late_are_no_other_s(drives, sample, missing):
    """Held up on their way and then come all at once, over two ticks; when that is over, a further answer is somebody else's again."""
    line = Ticks(drives, sample, first=SETTLED, no_data_periods=NO_DATA_PERIODS)
    line.beat()
    late = list(range(100, 100 * (missing + 1), 100))
    half = len(late) // 2

    def come(positions):
        return lambda: [line.peer.answer(3, GOOD[402], position) for position in positions]

    for _ in range(missing):
        assert {"lost"} <= line.tick(silent=(3,)) <= {"lost", "no_data"}
    assert line.tick(between=come(late[:half])) == set()
    assert line.tick(between=come(late[half:])) == set()
    for _ in range(NO_DATA_PERIODS):
        assert line.tick() == set()
    assert line.tick(between=come([500])) == {"differs"}


def test_what_a_lost_answer_leaves_owed_is_forgotten(drives, sample):
    line = Ticks(drives, sample, first=SETTLED, no_data_periods=NO_DATA_PERIODS)
    line.beat()
    assert line.tick(silent=(3,)) == {"lost"}
    for _ in range(NO_DATA_PERIODS):
        assert line.tick() == set()
    assert line.tick(between=lambda: line.peer.answer(3, GOOD[402], 500)) == {"differs"}


def test_two_of_three_answers_missing_are_counted(drives, sample):
    """Never silent for long enough to be `no_data`: the total tells."""
    line = Ticks(drives, sample)
    seen = [line.tick(silent=() if k % 3 == 0 else (3,)) for k in range(30)]
    assert seen == [set(), {"lost"}, {"lost"}] * 10 and line.others() == set()
    assert list(sample["drive_lost_total"][0] - [1, 1, 1, 1, 1, 1]) == [-1, -1, 19, -1, -1, -1]


@pytest.mark.parametrize(
    ("kind", "status", "bits"),
    [
        (402, 0x1237, set()),
        (402, 0x0233, {"not_enabled"}),
        (402, 0x0218, {"not_enabled", "device_fault"}),
        (402, 0x1037, {"local_control"}),
        (402, 0x0037, {"local_control", "not_following"}),
        (402, 0x12B7, {"warning"}),
        (402, 0x1A37, {"limit_touched"}),
        (402, 0x3237, {"following_error"}),
        (402, 0x0217, {"not_enabled"}),
        (402, 0x0237, {"not_following"}),
        (402, 0x0227, {"not_following"}),
        (408, 0x000F, set()),
        (408, 0x0007, {"not_enabled", "device_fault"}),
        (408, 0x000B, {"not_enabled"}),
        (408, 0x0009, {"not_enabled"}),
        (408, 0x0000, {"not_enabled", "device_fault"}),
        (408, 0x001F, {"local_control"}),
        (408, 0x040F, {"limit_touched"}),
        (408, 0x080F, {"following_error"}),
    ],
)
def test_status_words(drives, sample, kind, status, bits):
    word = (cia402 if kind == 402 else cia408).status_bits(status)
    sample["drive_status"][0, 0] = word
    assert drive_bits(sample) == bits


@pytest.mark.parametrize(
    ("kind", "words", "shown", "worst"),
    [
        (402, (0x0218,), {"not_enabled", "device_fault"}, 0x0218),
        (402, (0x3237,), {"following_error"}, 0x3237),
        (402, (0x0237,), {"not_following"}, 0x0237),
        (402, (0x12B7, 0x1237), {"warning"}, 0x12B7),
        (402, (0x0218, 0x12B7), {"not_enabled", "device_fault", "warning"}, 0x0218),
        (402, (0x0218, 0x3237), {"not_enabled", "device_fault", "following_error"}, 0x3237),
        (408, (0x0003,), {"not_enabled", "device_fault"}, 0x0003),
        (408, (0x001F, 0x040F), {"local_control", "limit_touched"}, 0x001F),
    ],
)
def test_all_status_words_of_a_tick_are_judged(drives, sample, kind, words, shown, worst):
    """A bad word followed by a good one in the same tick: the tick shows the bad one, the next tick is clean."""
    line = Ticks(drives, sample, kind)
    assert line.tick(first=[(3, word) for word in words]) == shown and line.others() == set()
    assert sample["drive_device_status"][0, 2] == worst
    assert line.tick() == set() and sample["drive_device_status"][0, 2] == GOOD[kind]


def test_newest_word_lasts_while_no_answer_comes(drives, sample):
    line = Ticks(drives, sample)
    line.tick(silent=(3,), first=[(3, 0x1237), (3, 0x3237)])
    assert line.tick(silent=(3,)) == {"following_error", "lost"} and sample["drive_device_status"][0, 2] == 0x3237
    assert line.tick() == set()


def test_emergency_and_heartbeat(drives, sample):
    line = Ticks(drives, sample)
    assert line.tick(between=lambda: line.peer.send(0x083, struct.pack("<HB5x", 0x8301, 1))) == {"emergency", "device_fault"}
    assert sample["drive_device_status"][0, 2] == 0x8301_1237
    assert line.tick() == {"emergency", "device_fault"}  # until it is taken back
    line.tick(between=lambda: line.peer.send(0x083, bytes(8)))
    assert line.tick() == set()
    assert line.tick(between=lambda: line.beat(3, state=0)) == {"not_enabled"}  # boot-up: the node restarted
    assert line.tick() == {"not_enabled"}
    line.tick(between=lambda: line.beat(3))
    assert line.tick() == set()


def test_a_node_that_starts_has_no_error_but_those_that_it_sends_again(drives, sample):
    line = Ticks(drives, sample)
    line.tick(between=lambda: line.peer.send(0x083, struct.pack("<HB5x", 0xFF00, 1)))
    assert line.tick(between=lambda: line.beat(3, state=0)) == {"not_enabled"}
    line.tick(between=lambda: line.beat(3))
    assert line.tick() == set() and sample["drive_device_status"][0, 2] == 0x1237
    line.tick(between=lambda: [line.beat(3, state=0), line.peer.send(0x083, struct.pack("<HB5x", 0x8301, 1))])
    assert {"emergency", "device_fault"} < line.tick()


def test_emergency_taken_back_in_the_same_tick_shows(drives, sample):
    line = Ticks(drives, sample)

    def comes_and_goes():
        line.peer.send(0x083, struct.pack("<HB5x", 0x8301, 1))
        line.peer.send(0x083, bytes(8))

    assert line.tick(between=comes_and_goes) == {"emergency", "device_fault"} and line.others() == set()
    assert sample["drive_device_status"][0, 2] == 0x8301_1237
    assert line.tick() == set() and sample["drive_device_status"][0, 2] == 0x1237


def test_one_error_taken_back_of_several_is_none(drives, sample):
    """Code 0 with an error register that is not empty (CiA 301): one error went, others stand."""
    line = Ticks(drives, sample)
    line.tick(between=lambda: line.peer.send(0x083, struct.pack("<HB5x", 0x8301, 0x11)))
    for _ in range(2):
        assert line.tick(between=lambda: line.peer.send(0x083, struct.pack("<HB5x", 0, 0x10))) == {"emergency", "device_fault"}
    assert sample["drive_device_status"][0, 2] == 0x8301_1237
    line.tick(between=lambda: line.peer.send(0x083, struct.pack("<HB5x", 0x0010, 0)))  # 0x00xx: no error
    assert line.tick() == set()
    assert line.tick(between=lambda: line.peer.send(0x083, struct.pack("<HB5x", 0, 0x20))) == {"emergency", "device_fault"}
    assert sample["drive_device_status"][0, 2] == 0x1000_1237  # an error of which only the register is known


@pytest.mark.parametrize("state", [0x00, 0x04, 0x7F])
def test_restart_told_before_an_operational_heartbeat_shows(drives, sample, state):
    line = Ticks(drives, sample)

    def restarts():
        line.beat(3, state=state)
        line.beat(3)

    assert line.tick(between=restarts) == {"not_enabled"} and line.others() == set()
    assert line.tick() == set()


@pytest.mark.parametrize(("keys", "limit"), [({}, 60), ({"heartbeat_timeout_ms": 25}, 25)])
def test_heartbeat_that_stops(drives, sample, keys, limit):
    """heartbeat_ms = 20, by default three of them; one tick is one millisecond."""
    line = Ticks(drives, sample, **keys)
    line.tick(between=line.beat)
    seen = [line.tick(between=lambda: line.beat(1, 2, 4, 5, 6)) for _ in range(limit + 3)]
    assert seen == [set()] * limit + [{"heartbeat_lost"}] * 3 and line.others() == set()
    assert line.tick(between=line.beat) == set()


@pytest.mark.parametrize(("kind", "seed"), [(402, 1), (402, 2), (408, 3)])
def test_random_ticks_against_a_plain_twin(drives, sample, kind, seed):
    """Status words, emergencies, heartbeats, damage and silence of one axis in random order: the sample as a twin made of lists says it."""
    line = Ticks(drives, sample, kind, heartbeat_timeout_ms=30)
    profile = cia402 if kind == 402 else cia408
    words = [GOOD[kind]] * 4 + ([0x0218, 0x3237, 0x12B7, 0x1A37, 0x0237, 0x1037] if kind == 402 else [0x3, 0x40F, 0x80F, 0x1F, 0xB])
    source = random.Random(seed)
    mild = {"warning", "limit_touched"}
    code, nmt, word, beat, silent, now, lost, damaged = (
        0,
        5,
        GOOD[kind],
        0,
        0,
        3,
        0,
        [0, 0],
    )  # three ticks are over, none of them with a heartbeat
    for _ in range(500):
        events = []
        for _ in range(source.choice((0, 1, 1, 1, 2, 4))):
            events.append(("word", source.choice(words)))
        for _ in range(source.choice((0, 0, 0, 0, 1, 2))):
            events.append(("emergency", source.choice(((0x8301, 1), (0x3412, 4), (0, 0), (0, 0), (0, 0x10)))))
        for _ in range(source.choice((0,) * 20 + (1, 2))):
            events.append(("heartbeat", source.choice((5, 5, 5, 0x7F, 0))))
        for _ in range(source.choice((0,) * 9 + (1,))):
            events.append(("short", None))
            events.append(("no frame", None))
        source.shuffle(events)

        seen, reported, codes = set(), [], []
        for event, value in events:
            if event == "word":
                line.peer.answer(3, value, 0)
                reported.append(value)
            elif event == "emergency":
                line.peer.send(0x083, struct.pack("<HB5x", *value))
                code = value[0] or (0 if value[1] == 0 else code or 0x1000)
                codes += [code] if code else []
            elif event == "heartbeat":
                line.beat(3, state=value)
                nmt, beat = value, now
                seen |= {"not_enabled"} if nmt != 5 else set()
                code = code if value else 0  # a node that starts sends its errors again
            elif event == "short":
                line.peer.send(0x183, bytes(5))
                damaged[0] += 1
                seen.add("corrupt")
            else:
                line.peer.far.send(b"no frame")
                damaged[1] += 1
                seen.add("corrupt")
        if reported:
            word, silent = reported[-1], 0
        else:
            silent, lost = silent + 1, lost + 1
            seen |= {"lost"} if silent < 3 else {"lost", "no_data"}
        bits = [names_of(profile.status_bits(w)) for w in [*reported, word]]
        seen = seen.union(*bits)
        seen |= {"emergency", "device_fault"} if codes or code else set()
        seen |= {"not_enabled"} if nmt != 5 else set()
        seen |= {"heartbeat_lost"} if now - beat > 30 else set()
        rank = [2 if names - mild else 1 if names else 0 for names in bits]
        worst = [w for w, r in zip([*reported, word], rank, strict=True) if r == max(rank)][-1]

        assert line.tick(silent=(3,)) == seen, (now, events)
        now += 1
        assert sample["drive_device_status"][0, 2] == worst | (codes[-1] if codes else code) << 16
        assert (sample["drive_lost_total"][0, 2], sample["drive_corrupt_total"][0, 2]) == (lost, sum(damaged))
        assert list(sample["drive_corrupt_total"][0][[0, 1, 3, 4, 5]]) == [damaged[1]] * 5
        if now % 20 == 0:
            line.beat(1, 2, 4, 5, 6)


@pytest.mark.parametrize("mild", [0x1A37, 0x1337])  # a limit is touched; a valve is at its end
def test_of_words_that_are_no_fault_the_newest_is_told(drives, sample, mild):
    line = Ticks(drives, sample, valve_saturated_bit=8)
    line.tick(first=[(3, mild), (3, 0x12B7)])
    assert sample["drive_device_status"][0, 2] == 0x12B7
    line.tick(first=[(3, 0x12B7), (3, mild)])
    assert sample["drive_device_status"][0, 2] == mild


def test_first_heartbeat_is_waited_for_from_the_first_tick(drives, sample):
    sample["time_ns"] = 7_000_000_000
    line = Ticks(drives, sample, first=1)
    assert [line.tick() for _ in range(61)] == [set()] * 60 + [{"heartbeat_lost"}] and line.others() == {"heartbeat_lost"}


def test_loop_that_stood_still_hears_before_it_judges(drives, sample):
    line = Ticks(drives, sample)
    sample["time_ns"] += 500_000_000
    assert line.tick(between=line.beat) == set() and line.others() == set()
    sample["time_ns"] += 500_000_000
    assert line.tick() == {"heartbeat_lost"}


def test_the_keeper_runs_on_the_loops_core_below_its_priority(drives):
    core = max(os.sched_getaffinity(0))
    enabled(drives(), loop_core=core)
    assert placed("drives keeper") == ({core}, 0 if fifo_refusal(KEEPER_PRIORITY) else KEEPER_PRIORITY)


@pytest.mark.parametrize("port", PORTS.values())
def test_heartbeat_timeout_below_the_heartbeat_is_refused(port):
    with pytest.raises(ValueError, match="heartbeat_timeout_ms = 100: must be longer than heartbeat_ms = 100"):
        port(links="can0", axis_link=[0] * 6, heartbeat_timeout_ms=100)


def test_following_is_judged_once_set_points_have_acted(drives, sample):
    """Before the first setpoints there is nothing to follow, and the first answer may have been made before the drive looked at them."""
    line = Ticks(drives, sample, first=0)
    bits = [line.tick(silent=(3,), first=[(3, 0x0237)], command=k >= 2) for k in range(7)]
    assert bits == [set()] * 5 + [{"not_following"}] * 2 and line.others() == set()


def test_drive_without_the_following_bit(drives, sample):
    line = Ticks(drives, sample, following_bit=False)
    assert line.tick(first=[(3, 0x0237)]) == set() and sample["drive_device_status"][0, 2] == 0x1237


def test_what_came_before_the_loop_does_not_stand_before_the_first_answers(drives, sample):
    peer = drives()
    port = opened(peer, period_s=0.01)
    for _ in range(20):
        peer.send(0x183, struct.pack("<Hi", 0x0240, 77_777))
        peer.send(0x181, bytes(3))
        peer.send(0x333, bytes(8))
    port.begin()
    port.read(sample)
    assert sample["measured_leg"][0, 2] == 1 + 1e-6 * peer.positions[2]
    assert not sample["drive_corrupt_total"].any() and port.counters()["axis_lost"] == [0] * 6


@pytest.mark.parametrize(("taken_back", "refused"), [(b"", True), (bytes(8), False)])
def test_an_emergency_that_stands_refuses_the_start(drives, taken_back, refused):
    peer = drives()
    port = opened(peer, period_s=0.01)
    peer.send(0x083, struct.pack("<HB5x", 0x8301, 1))
    if taken_back:
        peer.send(0x083, taken_back)
    if not refused:
        port.begin()
        return
    with pytest.raises(DriveSetupError, match="node 3 .* emergency message 0x8301 is pending"):
        port.begin()
    assert all(words[-1] == 0x00 for words in peer.words.values())


def fill(peer, identifier=0x333, data=bytes(8)):
    """Frames until the link takes no more, foreign ones unless told otherwise. Returns how many."""
    for sent in range(100_000):
        try:
            peer.send(identifier, data)
        except BlockingIOError:
            return sent
    raise AssertionError("the link takes everything")


def test_flood_is_taken_in_portions_and_too_much_of_it_is_no_data(drives, sample):
    line = Ticks(drives, sample, no_data_periods=3)
    before = line.port.counters()["link_ignored"][0]

    def flooded():
        assert fill(line.peer) > 200  # with what was left, more than a tick takes
        line.port.read(sample)
        line.peer.take()
        return drive_bits(sample, 2)

    line.tick(between=lambda: [line.peer.send(0x333, bytes(8)) for _ in range(200)])
    assert line.others() == set() and line.port.counters()["link_ignored"][0] - before == 200  # harmless
    seen = [flooded() for _ in range(4)]
    assert seen == [{"lost", "stale"}] * 2 + [{"lost", "stale", "no_data"}] * 2
    for _ in range(3):
        line.port.read(sample)
        line.peer.take()
    line.tick()
    assert line.tick() == set() and line.others() == set()


def test_flood_of_answers_is_old_and_then_no_data(drives, sample):
    """A drive that is heard in every tick, but from behind a flood: its values are older in each of them."""
    line = Ticks(drives, sample, no_data_periods=3)
    seen = []
    for _ in range(5):
        assert fill(line.peer, 0x183, struct.pack("<Hi", GOOD[402], 0)) > 200
        line.port.read(sample)
        line.peer.take()
        seen.append(drive_bits(sample, 2))
    assert seen == [{"stale"}] * 2 + [{"stale", "no_data"}] * 3 and line.port.counters()["axis_lost"][2] == 0
    for _ in range(3):
        line.port.read(sample)
        line.peer.take()
    line.tick()
    assert line.tick() == set()


def test_error_frames_of_the_controller(drives, sample):
    peer, port = running(drives)

    def cycle():
        for n in range(1, 7):
            peer.answer(n, 0x1237, 0)
        port.read(sample)
        return drive_bits(sample)

    cycle()
    peer.send(0x20000004, b"\x00\x20" + bytes(6))  # error-passive
    assert cycle() == {"warning"}
    assert cycle() == set()
    peer.send(0x20000040, bytes(8))  # bus off, until the controller restarts
    assert cycle() == {"bus_fault"} and cycle() == {"bus_fault"}
    peer.send(0x20000100, bytes(8))
    assert cycle() == set()
    peer.send(0x20000040, bytes(8))  # off and on again within a tick
    peer.send(0x20000100, bytes(8))
    assert cycle() == {"bus_fault"}
    assert cycle() == set() and not sample["drive_corrupt_total"].any()
    for damage in (0x20000008, 0x20000080, 0x20000004):  # broken rules of the bus, bus error, receive queue overrun
        peer.send(damage, b"\x00\x01" + bytes(6))
        assert cycle() == {"corrupt"} and cycle() == set()
    assert list(sample["drive_corrupt_total"][0]) == [3] * 6 and port.counters()["link_bus_errors"] == [3]


def test_wrong_lengths_are_corrupt(drives, sample):
    peer, port = running(drives)
    port.read(sample)
    peer.send(0x181, bytes(5))
    peer.far.send(b"short")
    port.read(sample)
    assert "corrupt" in drive_bits(sample) and port.counters()["axis_corrupt"][0] == 1 and port.counters()["link_corrupt"] == [1]
    assert list(sample["drive_corrupt_total"][0]) == [2, 1, 1, 1, 1, 1]  # the frame that is none may have been anybody's


def test_remote_and_extended_frames_are_no_one_s(drives, sample):
    line = Ticks(drives, sample)
    before = line.port.counters()["link_ignored"][0]

    def foreign():
        for identifier in (0x183 | 0x40000000, 0x183 | 0x80000000, 0x703 | 0x40000000, 0x1FF83 | 0x80000000):
            line.peer.send(identifier, bytes(6))

    assert line.tick(between=foreign) == set() and line.port.counters()["link_ignored"][0] - before == 4


def test_full_queue_drops_and_counts(drives, sample):
    """No one takes the frames: the queue of the link fills, nothing waits, the next sample says so."""
    peer, port = running(drives)
    for _ in range(400):
        port.read(sample)
        port.write(sample)
        if "tx_drop" in drive_bits(sample):
            break
    assert "tx_drop" in drive_bits(sample) and "bus_fault" not in drive_bits(sample)
    assert port.counters()["link_not_sent"][0] > 0


def test_dead_link_is_a_bus_fault(drives, sample):
    peer = drives()
    port = enabled(peer, no_data_periods=1)
    port.read(sample)
    peer.let_go()
    peer.far.close()
    port.write(sample)
    port.read(sample)
    assert {"bus_fault", "no_data"} <= drive_bits(sample)
    port.close()
    assert sum("does not say that it is off, status word is 0x0" in words for words in port.close_problems) == 6


def test_random_frames(drives, sample):
    """Random records and random frames to known identifiers: no crash, what is no frame is counted, positions stay numbers."""
    peer, port = running(drives)
    port.read(sample)
    source = random.Random(8)
    known = [base + n for base in (0x080, 0x180, 0x700) for n in range(1, 7)]
    odd = 0
    for _ in range(150):
        for _ in range(25):
            if source.random() < 0.5:
                record = source.randbytes(source.choice((1, 8, 15, 16, 16, 17, 72)))
            else:
                record = FRAME.pack(source.choice(known), source.randrange(16), source.randbytes(8))
            odd += len(record) != 16 or record[4] > 8
            peer.far.send(record)
        port.read(sample)
        peer.take()
        assert np.isfinite(sample["measured_leg"]).all() and np.isfinite(sample["measured_leg_rate"]).all()
    assert port.counters()["link_corrupt"] == [odd]


def test_link_names():
    assert link_names(" can0  udp:127.0.0.1:5000 fd:3 ") == ["can0", "udp:127.0.0.1:5000", "fd:3"]
    for wrong in ("udp:127.0.0.1", "fd:x", "a:b", "x" * 16):
        with pytest.raises(ValueError, match="link"):
            link_names(wrong)
    with pytest.raises(ConnectionError, match="not open"):
        open_link("fd:999")


# ------------------------------------------------------------------------------------------------------- a node, object by object


class Remote:
    """What a drive answers, where it is no more than that."""

    def __init__(self, data=b"", refusal=None, emergencies=()):
        self.sdo, self.emcy = self, SimpleNamespace(log=[SimpleNamespace(code=code, register=register) for code, register in emergencies])
        self._data, self._refusal = data, refusal

    def upload(self, index, sub):
        return self._data

    def download(self, index, sub, data):
        if self._refusal is not None:
            raise SdoAbortedError(self._refusal)


def node_with(**answers):
    node = Node.__new__(Node)
    node.id, node.link, node._remote = 5, SimpleNamespace(name="can0", patience_s=lambda: 1.0), Remote(**answers)
    return node


def test_an_object_that_is_too_short_is_refused_and_a_longer_one_is_read():
    assert node_with(data=b"\x34\x12").read(0x6041, 0, 2, "status word") == 0x1234
    assert node_with(data=b"\xfe\xff\xff\xff\x00").read(0x6064, 0, -4, "position") == -2
    with pytest.raises(DriveSetupError, match=r"node 5 on can0: status word \(0x6041:0\) has 1 bytes instead of 2"):
        node_with(data=b"\x34").read(0x6041, 0, 2, "status word")


@pytest.mark.parametrize(("optional", "refusal", "taken"), [
    (False, None, True), (True, None, True), (True, 0x06020000, False), (True, 0x06090011, False)])  # fmt: skip
def test_an_object_that_a_drive_may_lack_is_left_out(optional, refusal, taken):
    assert node_with(refusal=refusal).write(0x6065, 0, 4, 7, "window", optional=optional) is taken


@pytest.mark.parametrize(("optional", "refusal"), [(False, 0x06020000), (False, 0x06090030), (True, 0x06090030), (True, 0x08000022)])
def test_a_value_that_is_refused_ends_the_set_up_also_of_an_object_that_a_drive_may_lack(optional, refusal):
    with pytest.raises(DriveSetupError, match=r"writing window \(0x6065:0\) := 7 was refused"):
        node_with(refusal=refusal).write(0x6065, 0, 4, 7, "window", optional=optional)


@pytest.mark.parametrize(("emergencies", "code"), [
    ((), 0), (((0x8611, 0x20),), 0x8611), (((0x8611, 0x20), (0x0000, 0x00)), 0), (((0x8611, 0x20), (0x0000, 0x01)), 0x8611),
    (((0x0000, 0x01),), 0x1000), (((0x0000, 0x00),), 0)])  # fmt: skip
def test_an_emergency_counts_until_it_is_taken_back(emergencies, code):
    assert node_with(emergencies=emergencies).pending_emergency() == code


def test_a_node_that_beats_in_another_state_is_waited_for_no_longer_than_its_time(monkeypatch):
    now, waited = [100.0], []
    node = node_with()
    node.link.patience_s = lambda least_s: max(2.0, least_s)

    def beat(left):
        waited.append(left)
        now[0] += 0.8
        return "STOPPED"

    node._remote.nmt = SimpleNamespace(wait_for_heartbeat=beat)
    monkeypatch.setattr(canopen_setup.time, "monotonic", lambda: now[0])
    with pytest.raises(DriveSetupError, match=r"no heartbeat with state OPERATIONAL \(last one: STOPPED\)"):
        node.await_nmt("OPERATIONAL")
    assert waited == pytest.approx([2.0, 1.2, 0.4])
    node.await_nmt("STOPPED")
