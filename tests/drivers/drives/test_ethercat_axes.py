"""EtherCAT axes frame by frame over a socket pair: the frame byte by byte, and what the port makes of every answer."""

import contextlib
import gc
import select
import socket
import struct
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from drivers.drives.cia402_ethercat import Cia402EthercatPort
from drivers.drives.ethercat_setup import EthercatLayout
from rt_kernels.layout import BITS, CODES
from tests.drivers.plain_stand import has

PERIOD_NS = 1_000_000
GOOD = 0x1237
LAYOUT = EthercatLayout(
    logical=0x10000,
    image=120,
    stations=tuple(range(0x1001, 0x1007)),
    outputs=tuple(range(0, 42, 7)),
    inputs=tuple(range(42, 120, 13)),
    expected=18,
    clocks=6,
    reference=0x1001,
    slaves=6,
    phase_ns=400_000,
)
LRW, FRMW, BRD, FPRD = 16, 16 + 132, 16 + 132 + 20, 16 + 132 + 20 + 14


SO_TIMESTAMPNS = 35  # linux: when a datagram came into the kernel


def udp_pair():
    """Two connected UDP sockets on the loopback: unlike a pair of UNIX they stamp, and an end that is gone is an error of the receipt."""
    near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    for end in (near, far):
        end.bind(("127.0.0.1", 0))
    near.connect(far.getsockname())
    far.connect(near.getsockname())
    near.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return near, far


class Bus:
    """The other end of the wire: takes the port's frames and answers as six slaves would, or as a test says."""

    def __init__(self, layout=LAYOUT, udp=False, **keys):
        self.port = Cia402EthercatPort(interface="none", zero_m=[1.0] * 6, **keys)
        self.near, self.far = udp_pair() if udp else socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (self.near, self.far):
            end.setblocking(False)
        self.port.axes.start(self.near.fileno(), bytes([0x02, 0, 0, 0, 0, 0x01]), layout)
        self.sample, self.aux = None, None
        self.words, self.positions = [GOOD] * 6, [1000 * n for n in range(6)]
        self.al = [(8, 0)] * 6
        self.time_ns = 10_000_000_000 + LAYOUT.phase_ns

    def close(self):
        self.port.axes.stop()
        self.near.close()
        self.far.close()

    def taken(self):
        frames = []
        while True:
            try:
                frames.append(self.far.recv(2000))
            except BlockingIOError:
                return frames

    def answer(self, frame, short=0, clocks=6, deviation=0):
        """What six slaves make of a frame: source marked, inputs, time, AL status, working counters."""
        f = bytearray(frame)
        f[6] |= 0x02
        for n in range(6):
            at = LRW + 10 + LAYOUT.inputs[n]
            f[at : at + 13] = struct.pack("<Hiihb", self.words[n], self.positions[n], 0, 100 * n, 8)
        struct.pack_into("<H", f, LRW + 10 + 120, 18 - short)
        struct.pack_into("<QH", f, FRMW + 10, self.time_ns + deviation, clocks)
        combined = 0
        for state, _ in self.al:
            combined |= state
        struct.pack_into("<HH", f, BRD + 10, combined, 6)
        asked = struct.unpack_from("<H", f, FPRD + 2)[0] - 0x1001
        struct.pack_into("<HHHH", f, FPRD + 10, self.al[asked][0], 0, self.al[asked][1], 1)
        self.time_ns += PERIOD_NS
        return bytes(f)

    def tick(self, answer=None):
        """The port sends, `answer` (frame -> frames) says what comes back, the port reads."""
        self.port.write(self.sample, self.aux)
        for frame in self.taken():
            for back in (answer or (lambda f: [self.answer(f)]))(frame):
                self.far.send(back)
        self.port.read(self.sample, self.aux)
        return names_of(self.sample["drive_status"][0, 0])


def outputs(frame):
    """Control words in a frame."""
    return [struct.unpack_from("<H", frame, LRW + 10 + at)[0] for at in LAYOUT.outputs]


def targets(frame):
    return [struct.unpack_from("<i", frame, LRW + 10 + at + 2)[0] for at in LAYOUT.outputs]


def names_of(word):
    return {name for name in BITS["drive_status"] if has(word, "drive_status", name)}


@pytest.fixture
def bus(sample):
    made = []

    def make(ticks=8, **keys):
        one = Bus(**keys)
        made.append(one)
        one.sample, one.aux = sample, np.zeros(7)
        sample["leg_setpoint"] = 1.0
        one.port.read(sample, one.aux)  # takes the bus
        for _ in range(ticks):
            one.tick()
        return one

    yield make
    for one in made:
        one.close()


# --------------------------------------------------------------------------------------------------------------- the frame
def test_frame_byte_by_byte(bus):
    one = bus(ticks=0)
    one.sample["safety_state"] = 1
    one.sample["leg_setpoint"] = 1.0 + 1e-6 * np.array([0.4, 1.4, -1.4, 1000, 70000, -70000])
    one.port.write(one.sample, one.aux)
    (frame,) = one.taken()
    ethernet = b"\xff" * 6 + bytes([0x00, 0, 0, 0, 0, 0x01]) + b"\x88\xa4"  # bit 1 of the source is sent clear
    header = struct.pack("<H", (132 + 20 + 14 + 18) | 1 << 12)
    outputs = b"".join(struct.pack("<HiB", 0x0F, counts, 8) for counts in (0, 1, -1, 1000, 70000, -70000))
    lrw = bytes([12, 0x80]) + struct.pack("<IHH", 0x10000, 120 | 0x8000, 0) + outputs + bytes(78) + bytes(2)
    frmw = bytes([14, 0x80]) + struct.pack("<HHHH", 0x1001, 0x910, 8 | 0x8000, 0) + bytes(8 + 2)
    brd = bytes([7, 0x80]) + struct.pack("<HHHH", 0, 0x130, 2 | 0x8000, 0) + bytes(2 + 2)
    fprd = bytes([4, 0x80]) + struct.pack("<HHHH", 0x1001, 0x130, 6, 0) + bytes(6 + 2)
    assert frame == ethernet + header + lrw + frmw + brd + fprd


def test_index_goes_round_above_127_and_every_slave_is_asked_in_turn(bus):
    one = bus(ticks=0)
    seen = []
    for _ in range(300):
        one.port.write(one.sample, one.aux)
        seen += one.taken()
    assert [f[17] for f in seen] == [0x80 + k % 128 for k in range(300)]
    assert [struct.unpack_from("<H", f, FPRD + 2)[0] for f in seen[:12]] == [*range(0x1001, 0x1007)] * 2
    assert len({f[at + 1] == f[17] for f in seen for at in (FRMW, BRD, FPRD)}) == 1


def test_blocked_axes_get_the_word_that_takes_their_power(bus):
    one = bus()
    one.sample["setpoint_status"] = BITS["setpoint_status"]["blocked3"]
    one.port.write(one.sample, one.aux)
    (frame,) = one.taken()
    assert [struct.unpack_from("<H", frame, LRW + 10 + at)[0] for at in LAYOUT.outputs] == [0x0F, 0x0F, 0, 0x0F, 0x0F, 0x0F]


@pytest.mark.parametrize(("outputs", "bits", "size"), [([5, 4], 0b110000, 1), ([9, 3], 0b10_0000_1000, 2), ([0, -1], 1, 1),
                                                       ([-1, 0], 1, 1)])
def test_the_outputs_of_the_watchdog_are_where_their_slave_has_them(bus, outputs, bits, size):
    layout = replace(LAYOUT, image=120 + size, watchdog=120, watchdog_bytes=size)
    one = bus(ticks=0, layout=layout, watchdog_slave=6, watchdog_outputs=outputs)
    one.sample["watchdog"] = 1
    one.port.write(one.sample, one.aux)
    (frame,) = one.taken()
    assert frame[LRW + 10 + 120 : LRW + 10 + 120 + size] == bits.to_bytes(size, "little")


def control_words(one):
    """What the next frame asks of the axes."""
    one.port.write(one.sample, one.aux)
    (frame,) = one.taken()
    one.far.send(one.answer(frame))
    one.port.read(one.sample, one.aux)
    return [struct.unpack_from("<H", frame, LRW + 10 + at)[0] for at in LAYOUT.outputs]


def test_a_recovery_leads_each_axis_up_from_its_own_state(bus):
    """Fault by the edge of its reset; enabled only where the setpoint is; what was not enabled keeps its word when it is given up."""
    one = bus()
    state = CODES["safety_state"]
    one.sample["safety_state"] = state["held"]
    one.sample["leg_setpoint"] = 1.0 + 1e-6 * np.array(one.positions)
    one.sample["leg_setpoint"][0, 5] += 0.01
    one.words = [0x1218, 0x1250, 0x1231, 0x1233, 0x1237, 0x1233]
    control_words(one)
    assert control_words(one) == [0x0F] * 6, "held: no drive is led anywhere"
    one.sample["safety_state"] = state["recovering"]
    seen = [control_words(one) for _ in range(40)]
    assert {row[0] for row in seen} == {0x00, 0x80}, "a reset is an edge: it comes and goes"
    assert {tuple(row[1:]) for row in seen} == {(0x06, 0x07, 0x0F, 0x0F, 0x07)}
    one.sample["safety_state"] = state["held"]
    last = control_words(one)
    one.words = [GOOD] * 6
    assert [control_words(one) for _ in range(3)] == [last] * 3 and last[5] == 0x07
    one.sample["safety_state"] = state["following"]
    assert control_words(one) == [0x0F] * 6


def test_an_axis_whose_power_is_taken_keeps_that_word_until_it_is_off(bus):
    """A drive that has not heard of the trip still says in the recovery that it is enabled."""
    one = bus()
    one.sample["leg_setpoint"] = 1.0 + 1e-6 * np.array(one.positions)
    one.sample["leg_setpoint"][0, 5] += 0.017
    one.sample["setpoint_status"] = BITS["setpoint_status"]["blocked5"] | BITS["setpoint_status"]["blocked6"]
    one.sample["safety_state"] = CODES["safety_state"]["blocked"]
    one.words = [GOOD] * 6
    control_words(one)
    assert control_words(one) == [0x0F] * 4 + [0, 0]
    one.sample["setpoint_status"], one.sample["safety_state"] = 0, CODES["safety_state"]["recovering"]
    assert [control_words(one) for _ in range(3)] == [[0x0F] * 4 + [0, 0]] * 3
    one.words = [GOOD] * 4 + [0x1250] * 2
    control_words(one)
    assert control_words(one) == [0x0F] * 4 + [0x06, 0x06]


def test_an_unusable_setpoint_keeps_the_target(bus):
    one = bus()
    one.sample["safety_state"] = 1
    for setpoint in ([1.5, np.nan, np.inf, -np.inf, 1e9, 1.0], [1.5, 2200.0, -2200.0, 2600.0, -2600.0, 1.0]):
        one.sample["leg_setpoint"] = setpoint
        one.port.write(one.sample, one.aux)
        (frame,) = one.taken()
        assert targets(frame) == [500000, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("period_s", "every"), [(0.001, 1000), (0.02, 50), (0.05, 48)])
def test_a_fault_is_reset_by_an_edge_a_second_that_stays_for_sixteen_cycles(bus, period_s, every):
    one = bus(period_s=period_s)
    one.words = [0x1218] * 6
    one.sample["safety_state"] = CODES["safety_state"]["held"]
    control_words(one)
    one.sample["safety_state"] = CODES["safety_state"]["recovering"]
    seen = [control_words(one)[3] for _ in range(every + 40)]
    assert seen == [0x80 if 16 <= n % every < 32 else 0x00 for n in range(1, every + 41)]


def test_in_a_recovery_an_axis_without_an_answer_is_sent_what_it_was_sent_last(bus):
    one = bus()
    one.sample["safety_state"] = CODES["safety_state"]["recovering"]
    one.words = [0x1233] * 6
    one.sample["leg_setpoint"] = 1.0 + 1e-6 * np.array(one.positions)
    control_words(one)
    assert control_words(one) == [0x0F] * 6
    one.tick(lambda f: [])
    one.sample["leg_setpoint"] += 0.01  # no longer where they are
    assert control_words(one) == [0x0F] * 6
    assert control_words(one) == [0x07] * 6


# ----------------------------------------------------------------------------------------------------------------- answers
def test_good_answers(bus):
    one = bus(rated_force_n=50_000.0)
    one.positions = [1000 * n - 2500 for n in range(6)]
    assert one.tick() == set()
    np.testing.assert_allclose(one.sample["measured_leg"][0], 1.0 + 1e-6 * np.array(one.positions), rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.sample["leg_force"][0], [5000.0 * n for n in range(6)], rtol=1e-12)
    assert list(one.sample["drive_device_status"][0]) == [GOOD] * 6
    assert list(one.aux[[3, 4, 5, 6]]) == [18, 8, 0, 0] and one.aux[2] >= 0
    counters = one.port.counters()
    assert (counters["cycles"], counters["bus_answered"]) == (1 + 9, 9)


def test_a_force_that_the_drives_do_not_say_is_left_alone(bus):
    one = bus(ticks=0)
    one.sample["leg_force"] = 7.0
    one.tick()
    assert (one.sample["leg_force"] == 7.0).all()


def test_rate_is_the_difference_over_the_time_between_the_frames(bus):
    """Each frame leaves between two looks at the clock, so that the rate lies between two bounds, however long the machine takes."""
    one = bus(ticks=0, rate_window_periods=3)
    counts, before, after = [0, 700, 1700, 4700, 5700, 5700, -1300], [], []
    for k, count in enumerate(counts):
        one.positions = [count * n for n in range(1, 7)]
        before.append(time.monotonic())
        one.tick()
        after.append(time.monotonic())
        rate = one.sample["measured_leg_rate"][0]
        if k == 0:
            assert not rate.any()
        else:
            oldest = max(k - 3, 0)
            way = 1e-6 * (count - counts[oldest]) * np.arange(1, 7)
            bounds = way / (after[k] - before[oldest]), way / (before[k] - after[oldest])
            assert (np.minimum(*bounds) <= rate).all() and (rate <= np.maximum(*bounds)).all(), k


@pytest.fixture
def stamping():
    """The kernel begins to stamp what it receives some time after the first socket asks for it: it does now, for this one as for all."""
    near, far = udp_pair()
    with near, far:
        while True:
            far.send(b"stamp")
            select.select([near], [], [])
            came = time.time_ns()
            gc.collect()
            ((_, _, stamp),) = near.recvmsg(16, 64)[1]
            seconds, ns = struct.unpack("qq", stamp)
            if seconds * 10**9 + ns <= came:
                break
        yield


def test_round_trip_ends_when_the_answer_came_not_when_it_was_read(bus, stamping):
    one = bus(ticks=0, udp=True)
    for _ in range(5):
        before = time.monotonic_ns()
        one.port.write(one.sample, one.aux)
        select.select([one.far], [], [])
        one.far.send(one.answer(one.far.recv(2000)))
        select.select([one.near], [], [])  # a busy kernel delivers it later than `send` returns
        came = time.monotonic_ns()
        gc.collect()  # takes longer than everything before it
        one.port.read(one.sample, one.aux)
        assert 0 <= one.aux[2] <= came - before


def test_before_an_answer_to_the_loop_the_inputs_are_stale(sample):
    one = Bus()
    one.port.read(sample, np.zeros(7))
    found = names_of(sample["drive_status"][0, 0])
    one.close()
    assert "stale" in found and not found & {"lost", "no_data"}


def test_following_is_judged_once_setpoints_have_acted(bus):
    """The first frame, its answer, and one in between: what they say of following is of no setpoint of ours."""
    one = bus(ticks=0)
    one.words = [0x0237] * 6
    assert [one.tick() for _ in range(5)] == [set()] * 3 + [{"not_following"}] * 2


def test_no_answer_is_lost_then_no_data_and_the_inputs_stay(bus):
    one = bus(no_data_periods=3)
    before = one.sample["measured_leg"].copy()
    one.positions = [777] * 6
    assert [one.tick(lambda f: []) for _ in range(4)] == [{"lost"}, {"lost"}, {"lost", "no_data"}, {"lost", "no_data"}]
    np.testing.assert_array_equal(one.sample["measured_leg"], before)
    assert list(one.sample["drive_lost_total"][0]) == [4] * 6
    assert one.tick() == set()
    assert one.sample["measured_leg"][0, 0] == 1.0 + 777e-6


def test_late_answer_is_not_used(bus):
    one = bus()
    kept = []
    assert one.tick(lambda f: kept.append(one.answer(f)) or []) == {"lost"}
    one.positions = [42] * 6
    assert one.tick(lambda f: [kept[0], one.answer(f)]) == set()
    assert one.sample["measured_leg"][0, 0] == 1.0 + 42e-6
    one.tick(lambda f: kept.append(one.answer(f)) or [])
    one.positions = [43] * 6
    assert one.tick(lambda f: [one.answer(f), kept[1]]) == set()  # also when it comes after the newer one
    assert one.sample["measured_leg"][0, 0] == 1.0 + 43e-6
    assert one.port.counters()["bus_late"] == 2 == one.aux[5]


def test_an_answer_that_comes_a_round_of_the_indices_later_is_not_the_new_frame_s(bus):
    one, kept = bus(), []
    assert one.tick(lambda f: kept.append((f[LRW + 1], one.answer(f))) or []) == {"lost"}
    one.positions = [42] * 6
    assert {frozenset(one.tick()) for _ in range(127)} == {frozenset()}
    late = one.port.counters()["bus_late"]
    one.positions = [43] * 6
    assert one.tick(lambda f: [kept[0][1], one.answer(f)] if f[LRW + 1] == kept[0][0] else []) == set()
    assert one.sample["measured_leg"][0, 0] == 1.0 + 43e-6 and one.port.counters()["bus_late"] == late + 1


def test_doubled_answer_counts_once(bus):
    one = bus()
    assert one.tick(lambda f: [one.answer(f)] * 3) == set()
    assert one.port.counters()["bus_doubled"] == 2 == one.aux[6]


@pytest.mark.parametrize(("first_short", "second_short", "differs"), [(0, 0, True), (0, 1, False), (1, 0, False)])
def test_a_second_answer_with_other_positions_says_so_where_both_are_whole(bus, first_short, second_short, differs):
    one = bus()

    def twice(frame):
        first = one.answer(frame, short=first_short)
        one.positions = [position + 500 for position in one.positions]
        return [first, one.answer(frame, short=second_short)]

    assert ("differs" in one.tick(twice)) is differs
    assert one.port.counters()["bus_doubled"] == 1


@pytest.mark.parametrize("true_first", [True, False])
@pytest.mark.parametrize("changed", [0, 2, 6, 10, 12])  # status word, position, velocity, torque, mode
def test_a_second_answer_is_compared_in_all_inputs(bus, true_first, changed):
    one = bus()

    def twice(frame):
        true, spoofed = one.answer(frame), bytearray(one.answer(frame))
        spoofed[LRW + 10 + LAYOUT.inputs[4] + changed] ^= 0x04
        return [true, bytes(spoofed)] if true_first else [bytes(spoofed), true]

    assert "differs" in one.tick(twice)


def test_an_answer_is_compared_also_when_its_twin_comes_after_the_next_frame(bus):
    one, kept = bus(), []
    one.tick(lambda f: [kept.append(one.answer(f)) or kept[0]])
    spoofed = bytearray(kept[0])
    spoofed[LRW + 10 + LAYOUT.inputs[0] + 2] ^= 0x01
    assert one.tick(lambda f: [kept[0], one.answer(f)]) == set()
    assert "differs" in one.tick(lambda f: [bytes(spoofed), one.answer(f)])


def test_a_slave_that_is_missing_in_the_read_of_all_states_is_a_bus_fault(bus):
    one = bus()

    def five(frame):
        answer = bytearray(one.answer(frame))
        struct.pack_into("<H", answer, BRD + 10 + 2, 5)
        return [bytes(answer)]

    assert one.tick(five) == {"bus_fault"} and one.tick() == set()


@pytest.mark.parametrize("mode", [1, 9, -1])
def test_a_drive_in_another_mode_of_operation_is_not_enabled(bus, mode):
    one = bus()

    def other(frame):
        answer = bytearray(one.answer(frame))
        struct.pack_into("<b", answer, LRW + 10 + LAYOUT.inputs[2] + 12, mode)
        return [bytes(answer)]

    one.tick(other)
    assert [names_of(word) for word in one.sample["drive_status"][0]] == [{"not_enabled"} if n == 2 else set() for n in range(6)]


@pytest.mark.parametrize("short", [1, 3, 18, -1])
def test_wrong_working_counter_makes_all_inputs_suspect(bus, short):
    one = bus()
    before = one.sample["measured_leg"].copy()
    one.positions = [999] * 6
    assert one.tick(lambda f: [one.answer(f, short=short)]) == {"corrupt", "lost"}
    np.testing.assert_array_equal(one.sample["measured_leg"], before)
    assert list(one.sample["drive_corrupt_total"][0]) == [1] * 6 and one.port.counters()["bus_short"] == 1
    assert one.tick() == set()


@pytest.mark.parametrize("at", [12, 14, LRW, FRMW, BRD, FPRD, LRW + 7])
def test_an_answer_with_another_header_is_damage_of_all_axes(bus, at):
    one = bus()

    def damaged(frame):
        answer = bytearray(one.answer(frame))
        answer[at] ^= 0x04
        return [bytes(answer)]

    assert one.tick(damaged) == {"corrupt", "lost"}
    assert one.port.counters()["bus_corrupt"] == 1 and list(one.sample["drive_corrupt_total"][0]) == [1] * 6


@pytest.mark.parametrize("count", [3, 15])
def test_less_than_a_header_is_damage(bus, count):
    one = bus()
    assert one.tick(lambda f: [bytes(count)]) == {"corrupt", "lost"} and one.port.counters()["bus_corrupt"] == 1


def test_an_answer_that_went_round_a_broken_ring_is_one(bus):
    one = bus()

    def round_it_went(frame):
        answer = bytearray(one.answer(frame))
        for at in (LRW, FRMW, BRD, FPRD):
            answer[at + 7] |= 0x40
        return [bytes(answer)]

    assert one.tick(round_it_went) == set()


def test_al_status_names_the_slave_and_why(bus):
    one = bus()
    one.al[2] = (0x14, 0x1B)  # safe-operational with error: watchdog
    for _ in range(7):
        bits = one.tick()
    assert bits == {"bus_fault"}
    assert names_of(one.sample["drive_status"][0, 2]) == {"bus_fault", "not_enabled", "emergency"}
    assert one.sample["drive_device_status"][0, 2] == GOOD | 0x1B << 16
    assert one.aux[4] == 0x1C
    one.al[2] = (8, 0)
    for _ in range(7):
        bits = one.tick()
    assert bits == set() and names_of(one.sample["drive_status"][0, 2]) == set()


def test_a_drive_that_ignores_its_target(bus):
    one = bus()
    one.words[4] = 0x0237
    one.tick()
    assert [names_of(w) for w in one.sample["drive_status"][0]] == [set()] * 4 + [{"not_following"}] + [set()]
    other = bus(following_bit=False)
    other.words[4] = 0x0237
    other.tick()
    assert names_of(other.sample["drive_status"][0, 4]) == set()


@pytest.mark.parametrize(
    ("word", "bits"),
    [(0x1218, {"device_fault", "not_enabled"}), (0x1233, {"not_enabled"}), (0x3237, {"following_error"}), (0x1A37, {"limit_touched"}),
     (0x12B7, {"warning"}), (0x1037, {"local_control"})],
)  # fmt: skip
def test_status_words_as_over_canopen(bus, word, bits):
    one = bus()
    one.words[1] = word
    one.tick()
    assert names_of(one.sample["drive_status"][0, 1]) == bits


def test_one_clock_missing_is_a_warning_and_its_time_not_used(bus):
    one = bus()
    one.tick(lambda f: [one.answer(f, deviation=1234)])
    assert one.aux[0] == 1234 == one.port.grid_reference.deviation_ns
    assert one.tick(lambda f: [one.answer(f, deviation=99, clocks=5)]) == {"warning"}
    assert one.aux[0] == 1234


@pytest.mark.parametrize(("clocks", "counter", "bits"), [(0, 0, set()), (1, 1, set()), (1, 0, {"warning"})])
def test_the_time_of_a_segment_with_few_clocks_or_none(bus, clocks, counter, bits):
    one = bus(ticks=0, layout=replace(LAYOUT, clocks=clocks))
    assert one.tick(lambda f: [one.answer(f, clocks=counter, deviation=1234)]) == bits
    assert one.aux[0] == (1234 if counter else 0)


@pytest.mark.parametrize("ppm", [50, -50])
def test_a_clock_that_drifts_is_followed_in_closed_form(bus, ppm):
    """The reference gains 50 ns a tick on a grid that obeys: what the frames bring of it is e(k) of `rt_kernels.grid_reference`."""
    one, gain, e0 = bus(ticks=0), 0.05, 20_000
    e, course = float(e0), []
    for _ in range(600):
        assert one.tick(lambda f: [one.answer(f, deviation=round(e))]) == set()  # noqa: B023 (answered at once)
        course.append(one.aux[0])
        e += ppm - one.port.grid_reference.step()
    k, z = np.arange(600), 1.0 - gain / 2.0
    # half a nanosecond of the time in the frame and of the step, of which the loop keeps no more than a few
    np.testing.assert_allclose(course, (e0 + k * (ppm - e0 * gain / 2.0) / z) * z**k, rtol=0, atol=5.0)
    assert abs(one.port.grid_reference.rate_ns - ppm) < 0.5


def test_what_is_unusual_of_the_time_at_which_a_frame_leaves_is_not_the_grid_s(bus):
    """Frames that leave at their point of the grid, then 20 ms after it: the grid's own is the deviation without these."""
    one, period_ns, left = bus(ticks=0, period_s=0.1), 100_000_000, []
    for late_ns in (0, 20_000_000):
        before = time.monotonic_ns()
        one.port.grid_reference.plan(before - late_ns)
        one.tick()
        left.append((late_ns, time.monotonic_ns() - before + late_ns))  # at least, at most
    (first_least, first_most), (least, most) = left
    unusual = one.aux[0] - one.aux[1]
    assert (unusual - (least - first_most)) % period_ns <= most - least + first_most - first_least


def test_lost_and_late_frames_leave_grid_and_deviation(bus):
    one, kept = bus(), []
    one.tick(lambda f: [one.answer(f, deviation=1000)])
    assert one.port.grid_reference.step() != 0
    for answers in (lambda f: [], lambda f: kept.append(one.answer(f, deviation=-9999)) or []):
        assert one.tick(answers) == {"lost"}
        assert one.port.grid_reference.step() == 0 and one.aux[0] == 1000
    assert one.tick(lambda f: [kept[0], one.answer(f, deviation=500)]) == set()  # the late one first
    assert one.aux[0] == 500 == one.port.grid_reference.deviation_ns


def test_time_of_the_reference_is_64_bits_wide(bus):
    """A moment before and after the low word of its time goes round, and far beyond 2^53 ns."""
    one = bus()
    for time_ns in ((1 << 32) - 300, (7 << 32) + 900, (1 << 60) + 12_345):
        one.time_ns = time_ns
        one.tick()
        e = (time_ns - LAYOUT.phase_ns) % PERIOD_NS
        assert one.aux[0] == (e if 2 * e < PERIOD_NS else e - PERIOD_NS)


def damaged(frame, rng):
    """One damage of a good answer: a bit of a header, or cut short."""
    f = bytearray(frame)
    places = [12, 13, 14, 15, *(at + k for at in (LRW, FRMW, BRD, FPRD) for k in (0, 1, 6))]
    if rng.random() < 0.2:
        return bytes(f[: rng.integers(0, len(f))])
    at = places[rng.integers(len(places))]
    f[at] ^= 1 << rng.integers(8)
    return bytes(f)


def test_damaged_answers_are_never_used(bus):
    one = bus()
    rng = np.random.default_rng(1)
    before = one.sample["measured_leg"].copy()
    one.positions = [5_000_000] * 6
    for _ in range(2000):
        bits = one.tick(lambda f: [damaged(one.answer(f), rng)])
        assert "lost" in bits
        np.testing.assert_array_equal(one.sample["measured_leg"], before)
    assert one.tick() == set()
    counters = one.port.counters()
    assert counters["bus_corrupt"] + counters["bus_late"] + counters["bus_doubled"] + counters["bus_not_returned"] >= 2000


def test_own_frame_that_no_slave_has_marked_is_not_an_answer(bus):
    one = bus()
    assert one.tick(lambda f: [f]) == {"lost"}
    assert one.port.counters()["bus_not_returned"] == 1


def test_a_full_queue_is_a_dropped_setpoint(bus):
    """What never left has no answer, whatever comes with its index."""
    one = bus()
    for _ in range(2000):
        one.port.write(one.sample, one.aux)
    sent = len(one.taken())
    assert one.port.counters()["bus_not_sent"] == 2000 - sent > 0
    newest = bytearray(one.port.axes.frame())
    for at in (LRW, FRMW, BRD, FPRD):
        newest[at + 1] = 0x80 + (newest[at + 1] - 1) % 128
    before = one.sample["measured_leg"].copy()
    one.positions = [999] * 6
    one.far.send(one.answer(newest))
    one.port.read(one.sample, one.aux)
    assert names_of(one.sample["drive_status"][0, 0]) == {"tx_drop", "lost"}
    np.testing.assert_array_equal(one.sample["measured_leg"], before)


@pytest.mark.parametrize(("spoil", "udp", "bits"), [
    (lambda one: one.near.shutdown(socket.SHUT_WR), False, {"bus_fault", "tx_drop", "lost"}),
    (lambda one: one.far.close(), True, {"bus_fault", "lost"}),
])  # fmt: skip
def test_a_link_that_fails_in_one_direction_is_a_bus_fault(bus, spoil, udp, bits):
    one = bus(udp=udp, ticks=0)
    one.port.write(one.sample, one.aux)
    one.port.read(one.sample, one.aux)
    spoil(one)
    one.port.write(one.sample, one.aux)
    one.port.read(one.sample, one.aux)
    assert names_of(one.sample["drive_status"][0, 0]) - {"not_enabled", "local_control"} == bits


def test_a_dead_link_is_a_bus_fault(bus):
    one = bus()
    one.far.close()
    one.port.write(one.sample, one.aux)
    one.port.read(one.sample, one.aux)
    assert {"bus_fault", "tx_drop", "lost"} <= names_of(one.sample["drive_status"][0, 0])


# ----------------------------------------------------------------------------------------------------------- keeper and loop
def test_the_loop_takes_the_bus_from_the_keeper(sample):
    one = Bus()
    one.sample, one.aux = sample, np.zeros(7)
    one.words = [0x0231] * 6  # ready to switch on: the target follows the axis
    keeper = threading.Thread(target=one.port.axes.keep)
    keeper.start()
    seen, end = [], time.monotonic() + 20.0
    while one.port.axes.answered < 20 and time.monotonic() < end:
        for frame in one.taken():
            seen.append(frame)
            one.far.send(one.answer(frame))
    assert one.port.axes.inputs(3) == (0x0231, 3000, 8)
    assert struct.unpack_from("<i", seen[-1], LRW + 10 + LAYOUT.outputs[3] + 2)[0] == 3000
    for _ in range(100):  # a read that falls into an exchange of the keeper's does without
        one.port.read(sample, one.aux)
        first = names_of(sample["drive_status"][0, 0])
        one.port.write(sample, one.aux)
        if taken := [frame for frame in one.taken() if outputs(frame)[0] == 0x0F]:
            break
    assert "not_enabled" in first and first <= {"not_enabled", "stale", "lost"}, "what the keeper has seen is not the loop's"
    assert len(taken) == 1 and keeper.is_alive(), "the keeper sleeps while the loop has the bus"
    one.port.read(sample, one.aux)
    one.close()
    keeper.join(5.0)
    assert not keeper.is_alive()
    one.port.read(sample, one.aux)
    assert "no_data" in (found := names_of(sample["drive_status"][0, 0])) and "bus_fault" not in found, "a closed bus is not read"


@contextlib.contextmanager
def kept(sample, **keys):
    """A bus whose keeper runs until the end of the block."""
    one = Bus(period_s=0.02, **keys)
    one.sample, one.aux = sample, np.zeros(7)
    keeper = threading.Thread(target=one.port.axes.keep)
    keeper.start()
    try:
        yield one
    finally:
        one.port.axes.stop()
        keeper.join()
        one.close()


def exchanged(one, answer=None):
    """The keeper's next frame, answered."""
    select.select([one.far], [], [])
    frame = one.far.recv(2000)
    for back in (answer or (lambda f: [one.answer(f)]))(frame):
        one.far.send(back)
    return frame


def test_the_keeper_leads_down_from_where_the_setpoints_or_else_the_drives_are(sample):
    """A target within a millimetre stays: the drive is not jerked; a drive further off is not sent there any more. From then on no target
    moves, though the drives coast."""
    with kept(sample) as one:
        exchanged(one)
        while not one.port.in_loop:
            one.port.read(sample, one.aux)
        sample["safety_state"] = CODES["safety_state"]["following"]
        off = np.array([0, 990, -990, 1010, -1010, 5000])
        sample["leg_setpoint"] = 1.0 + 1e-6 * (np.array(one.positions) + off)
        one.taken()
        while one.tick():
            pass
        wanted = [p + o if abs(o) <= 1000 else p for p, o in zip(one.positions, off, strict=True)]
        one.port.axes.lead_down()
        words, seen = {0x0F: GOOD, 0x07: 0x1233, 0x06: 0x0231, 0x00: 0x0250}, []

        def obeys(frame):
            one.words = [words[word] for word in outputs(frame)]
            return [one.answer(frame)]

        while not all(one.port.axes.standing(axis)[3] for axis in range(6)):
            seen.append(exchanged(one, obeys))
            one.positions = [position + 1500 for position in one.positions]
    assert {tuple(targets(frame)) for frame in seen} == {tuple(wanted)}
    for axis in range(6):
        controls = [outputs(frame)[axis] for frame in seen]
        assert [word for k, word in enumerate(controls) if k == 0 or word != controls[k - 1]] == [0x07, 0x06, 0x00]


WORDS_UP = {0x00: 0x0250, 0x06: 0x0231, 0x07: 0x1233, 0x0F: GOOD}


def led_up(one, cycles, moves=lambda k: None):
    """The keeper leads the drives up for so many cycles, before each of which they move: control words of the third one."""
    one.words = [WORDS_UP[0x00]] * 6
    one.port.axes.lead_up()
    sent = []

    def obeys(frame):
        sent.append(outputs(frame))
        one.words = [WORDS_UP[word] for word in outputs(frame)]
        return [one.answer(frame)]

    for k in range(cycles):
        moves(k)
        exchanged(one, obeys)
    return [words[2] for words in sent], [words[:2] + words[3:] for words in sent]


@pytest.mark.parametrize("within", [1000, 3000])
def test_an_axis_that_leaves_its_place_before_the_first_setpoint_loses_its_power(sample, within):
    """One by less than the limit and one by more, once all are enabled: the second gets no power again, and its target stays."""

    def moves(k):
        if k == 12:
            one.positions[1] += within - 100
            one.positions[2] -= within + 100

    with kept(sample, **({} if within == 1000 else {"held_within_m": 1e-6 * within})) as one:
        third, others = led_up(one, 24, moves)
        assert third[11] == 0x0F and third[-9:] == [0x00] * 9 and all(set(words) == {0x0F} for words in others[-14:])
        while not one.port.in_loop:
            one.port.read(sample, one.aux)
        shown = [names_of(word) for word in sample["drive_status"][0]]
        assert ["following_error" in names for names in shown] == [False, False, True, False, False, False]


def test_an_axis_is_enabled_where_two_positions_in_a_row_agree(sample):
    def moves(k):
        one.positions[2] = 2000 + 1100 * (k % 2)

    with kept(sample) as one:
        third, others = led_up(one, 24, moves)
        assert 0x0F not in third and all(0x0F not in words for words in others) and third[-1] == 0x07
        third, others = led_up(one, 12)
        assert third[-1] == 0x0F


def test_the_target_stays_from_the_last_step_on(sample):
    """Of an axis that drifts by 0.2 mm a cycle and takes the step three cycles late."""
    with kept(sample) as one:
        one.words = [WORDS_UP[0x00]] * 6
        one.port.axes.lead_up()
        steps = []

        def obeys(frame):
            if outputs(frame)[2] == 0x0F:
                steps.append(targets(frame)[2])
            late = [0x1233 if k == 2 and len(steps) < 4 else WORDS_UP[word] for k, word in enumerate(outputs(frame))]
            one.words, one.positions[2] = late, one.positions[2] + 200
            return [one.answer(frame)]

        while len(steps) < 4:
            exchanged(one, obeys)
        assert len(set(steps)) == 1 and steps[0] > 2000


def test_the_keeper_says_for_how_long_a_drive_is_silent(sample):
    with kept(sample) as one:
        heard = {(exchanged(one), one.port.axes.standing(0)[4])[1] for _ in range(10)}
        assert 0 in heard
        for _ in range(12):
            exchanged(one, lambda f: [])
        assert one.port.axes.standing(0)[4] >= 11


def test_the_grid_of_the_keeper_follows_the_reference(sample):
    """By what it has moved in all it comes earlier, and the loop's grid continues in its phase."""
    period_ns = 20_000_000
    with kept(sample) as one:
        grid, at = one.port.grid_reference, []
        for _ in range(2):
            former = grid.moved_ns
            while grid.moved_ns == former:
                exchanged(one, lambda f: [one.answer(f, deviation=30_000)])
                one.time_ns += period_ns - PERIOD_NS
            for _ in range(3):  # nothing new: it stands
                exchanged(one, lambda f: [])
            point = grid.next_point(time.monotonic_ns(), period_ns)
            assert grid.next_point(point + 1, period_ns) == point + period_ns
            at.append((grid.moved_ns, point))
    (moved, point), (later_moved, later_point) = at
    assert (later_point - point) % period_ns == (moved - later_moved) % period_ns


def test_snapshot_is_taken_back(bus):
    one = bus()
    kept = one.port.snapshot()
    one.positions = [1] * 6
    one.tick()
    assert one.port.snapshot() != kept
    one.port.restore(kept)
    assert one.port.snapshot() == kept


# ------------------------------------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("keys", "words"),
    [({"redundancy": True}, "redundancy .* not built"), ({"axis_slave": [0, 1, 2, 3, 4, 4]}, "axis_slave"),
     ({"axis_slave": [0, 1, 2, 3, 4, 5.5]}, "axis_slave"), ({"watchdog_ms": 0.0}, "watchdog_ms"), ({"period_s": 2.0}, "period_s")],
)  # fmt: skip
def test_what_cannot_be_is_refused(keys, words):
    with pytest.raises(ValueError, match=words):
        Cia402EthercatPort(interface="eth1", **keys)


def test_delays_are_two_periods_together():
    port = Cia402EthercatPort(interface="eth1", sync_shift_periods=0.3)
    assert port.delays["setpoint_ticks"] * 1e-3 + port.delays["measured_leg_delay_s"] == pytest.approx(2e-3, abs=1e-15)


def test_load_of_the_wire():
    # 38 + 2 + (12 + 120) + (12 + 8) + (12 + 2) + (12 + 6) bytes, 80 ns each; a microsecond more for each slave
    (load,) = Cia402EthercatPort(interface="eth1").bus_loads()
    assert load.cycle_us_min == pytest.approx(224 * 0.08) and load.cycle_us_max == pytest.approx(224 * 0.08 + 6.0) and load.fits
