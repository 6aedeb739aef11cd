"""More than sixty ways in which a force sensor and six drives misbehave, over the wire, against devices written from the public protocols.

Each case runs on the assembled line with the real ports (RDT; CiA 402 and CiA 408 over CAN frames in UDP) and the real safety stage, in
lockstep with the devices (`tests/drivers/peers`). A case names what the device does, the fault that must follow, and the turn whose
sending completes the evidence: the bit must be there at most two ticks after the tick that reads it, the fault must be the first one, and
what does no harm must leave no fault at all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from drivers.drives.supervision import objects_named
from rt_kernels.layout import FAULTS
from tests.drivers.peers.canopen_device import (
    BOOT_UP,
    EMCY,
    ERROR,
    EXTENDED,
    HEARTBEAT,
    OPERATIONAL,
    PRE_OPERATIONAL,
    REMOTE,
    RPDO,
    SDO_ANSWER,
    STOPPED,
    SYNC,
    TPDO,
    Entry,
    Frame,
)
from tests.drivers.peers.drives import Cia402Drive, Cia408Drive
from tests.drivers.peers.ethercat_segment_small import Slave
from tests.drivers.peers.rdt import with_status
from tests.drivers.peers.stand import COUNTS_PER_METRE, HEARTBEAT_MS, RECORDS_PER_TICK, LockstepStand, StatesLog, Turn, parked_legs
from tools.unattended_drives import by_their_watchdog, judge

BEFORE, DURING, AFTER = 60, 40, 20  # ticks before a case begins, of the case, after one that does no harm
AXIS, ALL = 2, range(6)  # the drive that misbehaves, from 0; all of them
HEARTBEAT_LOST = 3 * HEARTBEAT_MS  # ticks: three heartbeats of silence
PASSING_MS = 1001.0  # for the sensor's port before each turn of a case about silence: no data after ten turns
NOTES = {name for name, _, severity, *_ in FAULTS if severity == "note"}

# status words of the sensors (manuals): bit 31 is the summary
NET_FT_SATURATED, NET_FT_ANALOGUE_BOARD, NET_FT_SUPPLY, NET_FT_THRESHOLD = (1 << 31 | 1 << bit for bit in (17, 28, 6, 16))
AXIA_GAUGE, AXIA_RANGE, AXIA_BROKEN, AXIA_BUSY = 1 << 31 | 1 << 27, 1 << 31 | 1 << 30, 1 << 31 | 1 << 2, 1 << 3
# classes of an error frame (linux/can/error.h)
CAN_ERR_CRTL, CAN_ERR_PROT, CAN_ERR_BUSOFF, CAN_ERR_BUSERROR, CAN_ERR_RESTARTED, CRTL_RX_PASSIVE = 0x04, 0x08, 0x40, 0x80, 0x100, 0x10


# ------------------------------------------------------------------------------------------------------- what a sensor does


def one_record(status: int):
    """The second of the four records of one tick says it, the others are good."""

    def script(turn: Turn) -> None:
        if turn.number == 0:
            turn.records[1] = with_status(turn.records[1], status)

    return script


def busy(turn: Turn) -> None:
    if turn.number < 5:
        turn.records = [with_status(r, AXIA_BUSY) for r in turn.records]


def busy_for_good(turn: Turn) -> None:
    """Longer than the port holds the last value."""
    turn.records = [with_status(r, AXIA_BUSY) for r in turn.records]


def threshold_latched(turn: Turn) -> None:
    turn.records = [with_status(r, NET_FT_THRESHOLD) for r in turn.records]


def missing(count: int):
    """So many records missing at once, in the middle of a tick."""

    def script(turn: Turn) -> None:
        if turn.number == 0:
            turn.sensor.records(count)
            turn.records[2:] = turn.sensor.records(2)

    return script


def every_second_missing(turn: Turn) -> None:
    del turn.records[::2]


def same_record(turn: Turn) -> None:
    """The device sends its last record again and again."""
    turn.sensor.rdt_sequence -= RECORDS_PER_TICK
    turn.sensor.ft_sequence -= RECORDS_PER_TICK * turn.sensor.ft_step
    turn.records = [replace(turn.records[0], rdt_sequence=turn.sensor.rdt_sequence, ft_sequence=turn.sensor.ft_sequence)] * RECORDS_PER_TICK


def frozen_sample_counter(turn: Turn) -> None:
    """New records of an old sample: the acquisition has stopped, the network interface has not."""
    turn.sensor.ft_sequence -= RECORDS_PER_TICK * turn.sensor.ft_step
    turn.records = [replace(r, ft_sequence=turn.sensor.ft_sequence) for r in turn.records]


def restarted(turn: Turn) -> None:
    """The stream begins again at 1, as after a request that was not ours."""
    if turn.number == 0:
        turn.sensor.rdt_sequence = 0
        turn.records = turn.sensor.records(RECORDS_PER_TICK)


def every_record_twice(turn: Turn) -> None:
    turn.records = [r for r in turn.records for _ in range(2)]


def neighbours_swapped(turn: Turn) -> None:
    a, b, c, d = turn.records
    turn.records = [b, a, d, c]


def overtaken_record_saturated(turn: Turn) -> None:
    """A record that comes behind its successor says it: it is too late for its values, not for its status."""
    if turn.number == 0:
        a, b, c, d = turn.records
        turn.records = [a, c, with_status(b, NET_FT_SATURATED), d]


def one_cut_datagram(turn: Turn) -> None:
    if turn.number == 0:
        turn.datagrams = [turn.records.pop().packed()[:35], b""]


def cut_datagrams(turn: Turn) -> None:
    turn.datagrams = [turn.records[-1].packed() + b"\0"]


def records_in_one_datagram(turn: Turn) -> None:
    turn.datagrams, turn.records = [b"".join(r.packed() for r in turn.records)], []


def strangers(turn: Turn) -> None:
    bad = replace(turn.records[-1], rdt_sequence=turn.sensor.rdt_sequence + 100000, status=NET_FT_SATURATED)
    turn.foreign = [bad.packed()] * 50


def counts_at(value: int, index: int = 1):
    """A channel stands at the end of its 32 bits, with a status word that says nothing."""

    def script(turn: Turn) -> None:
        for i, record in enumerate(turn.records):
            counts = list(record.counts)
            counts[index] = value
            turn.records[i] = replace(record, counts=tuple(counts))

    return script


def silent(turn: Turn) -> None:
    turn.records = []


def held_up(turn: Turn) -> None:
    """The network holds three ticks of records back, then delivers all of them."""
    if turn.number < 3:
        turn.kept += turn.records
        turn.records = []
    elif turn.number == 3:
        turn.records = turn.kept + turn.records


# -------------------------------------------------------------------------------------------------------- what a drive does


def tpdo_of(axis: int, status: int, counts: int) -> Frame:
    return Frame(TPDO[0] + axis + 1, status.to_bytes(2, "little") + counts.to_bytes(4, "little", signed=True))


def fault_word_then_good(turn: Turn) -> None:
    """Two TPDOs in one cycle: the first says fault, the second is as if nothing had been."""
    if turn.number == 0:
        drive, good = turn.drives[AXIS], turn.answers[AXIS][0]
        word = 0x0218 if isinstance(drive, Cia402Drive) else Cia408Drive.FAULT_HOLD
        turn.answers[AXIS] = [replace(good, data=word.to_bytes(2, "little") + good.data[2:]), good]


def trips(turn: Turn) -> None:
    """A real trip: emergency, then status words in fault."""
    if turn.number == 0:
        turn.answers[AXIS].append(turn.drives[AXIS].trip())


def emergency_alone(turn: Turn) -> None:
    if turn.number == 0:
        turn.answers[AXIS].append(turn.drives[AXIS].emergency(0x4210))


def emergency_and_clear(turn: Turn) -> None:
    """An error comes and goes between two ticks."""
    if turn.number == 0:
        drive = turn.drives[AXIS]
        turn.answers[AXIS] += [drive.emergency(0x3210), drive.emergency(0x0000, 0)]


def without_tpdo(*, when: Callable[[int], bool]):
    def script(turn: Turn) -> None:
        if when(turn.number):
            turn.answers[AXIS] = []

    return script


def short_tpdo(*, when: Callable[[int], bool], beside: bool = False):
    """A TPDO of five bytes in the place of the right one, or beside it."""

    def script(turn: Turn) -> None:
        if when(turn.number):
            good = turn.answers[AXIS][0]
            turn.answers[AXIS] = [replace(good, data=good.data[:5])] + ([good] if beside else [])

    return script


def other_frame_kinds(turn: Turn) -> None:
    """Remote requests for the drive's TPDO, and 29-bit frames whose low bits are its identifier."""
    tpdo, fault = TPDO[0] + AXIS + 1, b"\x08\x00\x00\x00\x00\x00"
    turn.bus[0] = [Frame(REMOTE | tpdo), Frame(REMOTE | EMCY + AXIS + 1), Frame(EXTENDED | 0x40000 | tpdo, fault)] * 5


def strangers_on_the_bus(turn: Turn) -> None:
    """A node that no one asked for: its TPDO, emergency, heartbeat."""
    turn.bus[0] = [Frame(TPDO[0] + 100, b"\x08\0\0\0\0\0"), Frame(EMCY + 100, b"\x10\x23\x01\0\0\0\0\0"), Frame(HEARTBEAT + 100, b"\x04")]


def echo(turn: Turn) -> None:
    """The master's own frames come back, as some adapters do it, and an SDO answer that no one asked for."""
    setpoints = [Frame(RPDO[0] + i + 1, bytes(6)) for i in range(3)]
    turn.bus[0] = [Frame(SYNC), *setpoints, Frame(SDO_ANSWER + AXIS + 1, b"\x80\x41\x60\x00\x21\x00\x00\x08")]


def flood(turn: Turn) -> None:
    """Two hundred frames for no one in every tick, before and behind the answers."""
    turn.answers[0] = [Frame(0x7E0 + k % 16, bytes(8)) for k in range(100)] + turn.answers[0]
    turn.bus[0] = [Frame(0x300 + k % 100, bytes(8)) for k in range(100)]


def heartbeats_stop(*axes: int):
    def script(turn: Turn) -> None:
        for axis in axes:
            turn.heartbeats[axis] = []

    return script


def heartbeat_says(*states: int):
    def script(turn: Turn) -> None:
        if turn.number == 0:
            turn.heartbeats[AXIS] = [turn.drives[AXIS].heartbeat(state) for state in states]

    return script


def reset(turn: Turn) -> None:
    """The drive restarts: boot-up message, no PDOs any more."""
    if turn.number == 0:
        turn.answers[AXIS] = turn.drives[AXIS].handle(Frame(0x000, bytes([129, AXIS + 1])))


def becomes(**words):
    """The drive is so from now on: attributes of the device."""

    def script(turn: Turn) -> None:
        if turn.number == 0:
            drive = turn.drives[AXIS]
            for name, value in words.items():
                setattr(drive, name, value)
            drive.written(0, 0)  # shows its new status word
            turn.answers[AXIS] = [replace(f, data=drive.objects[0x6041, 0].encoded() + f.data[2:]) for f in turn.answers[AXIS]]

    return script


def following_error_bit(turn: Turn) -> None:
    becomes(**{"following_error" if isinstance(turn.drives[AXIS], Cia402Drive) else "control_deviation": True})(turn)


def internal_limit_bit(turn: Turn) -> None:
    becomes(**{"internal_limit" if isinstance(turn.drives[AXIS], Cia402Drive) else "limit_touched": True})(turn)


def not_enabled(turn: Turn) -> None:
    becomes(drive_state="switched on" if isinstance(turn.drives[AXIS], Cia402Drive) else Cia408Drive.HOLD)(turn)


def local_control(turn: Turn) -> None:
    drive = turn.drives[AXIS]
    becomes(**({"remote": False} if isinstance(drive, Cia402Drive) else {"local": True}))(turn)


def position_jumps(turn: Turn) -> None:
    """One actual position 50 mm from the one before."""
    if turn.number == 0:
        word, counts = turn.answers[AXIS][0].data[:2], int.from_bytes(turn.answers[AXIS][0].data[2:6], "little", signed=True)
        turn.answers[AXIS] = [tpdo_of(AXIS, int.from_bytes(word, "little"), counts + 50_000)]


def position_frozen(turn: Turn) -> None:
    turn.drives[AXIS].stuck = True


def bus_off(turn: Turn) -> None:
    if turn.number == 0:
        turn.bus[0] = [Frame(ERROR | CAN_ERR_BUSOFF, bytes(8))]


def bus_off_and_restart(turn: Turn) -> None:
    """The controller was off the bus and came back between two ticks."""
    if turn.number == 0:
        turn.bus[0] = [Frame(ERROR | CAN_ERR_BUSOFF, bytes(8)), Frame(ERROR | CAN_ERR_RESTARTED, bytes(8))]


def errors_on_the_bus(turn: Turn) -> None:
    """The controller reports a form error in every tick."""
    turn.bus[0] = [Frame(ERROR | CAN_ERR_PROT | CAN_ERR_BUSERROR, bytes([0, 0, 2, 0, 0, 0, 0, 0]))]


def no_frames(turn: Turn) -> None:
    turn.noise = [b"\x83\x01", bytes(17), b""][turn.number % 3 :][:1]


def error_passive(turn: Turn) -> None:
    turn.bus[0] = [Frame(ERROR | CAN_ERR_CRTL, bytes([0, CRTL_RX_PASSIVE, 0, 0, 0, 0, 0, 0]))]


def late_by_a_tick(turn: Turn) -> None:
    """Every answer comes one period late."""
    turn.kept.append(turn.answers[AXIS])
    turn.answers[AXIS] = turn.kept[-2] if turn.number else []


def answers_twice(turn: Turn) -> None:
    turn.answers = [frames * 2 for frames in turn.answers]


def answers_mixed(turn: Turn) -> None:
    """The answers of a bus in another order, heartbeats in front."""
    turn.answers[:3], turn.heartbeats[:3] = [[f for frames in turn.heartbeats[:3] for f in frames], [], [
        f for frames in reversed(turn.answers[:3]) for f in frames]], [[], [], []]  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Case:
    """does: the misbehaviour; script: who does it; fault: what must follow, "" for none; shown: the turn whose sending completes the
    evidence (from 0), or a function of the samples that gives its tick; also: faults that may come before it or with it; on: profile of the
    drives or product of the sensor, empty for all; ticks: length of the case; silent: PASSING_MS pass for the sensor's port before every
    turn."""

    does: str
    script: Callable[[Turn], None]
    fault: str = ""
    shown: int | Callable[[np.ndarray], int] = 0
    also: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    ticks: int = DURING
    silent: bool = False


def leg_left_behind(records: np.ndarray) -> int:
    """The first tick at which the leg is further than the limit from the setpoint that acts in it."""
    behind = np.abs(records["leg_setpoint"][:-2, AXIS] - records["measured_leg"][2:, AXIS]) > 0.02
    return int(np.flatnonzero(behind)[0]) + 2


SENSOR = [
    Case("one saturated record among good ones", one_record(NET_FT_SATURATED), "sensor_saturated"),
    Case("one record of an Axia with a gauge out of range", one_record(AXIA_GAUGE), "sensor_saturated", on=("axia",)),
    Case("one record of an Axia with force out of range", one_record(AXIA_RANGE), "sensor_out_of_range", on=("axia",)),
    Case("one record of an Axia with a broken gauge", one_record(AXIA_BROKEN), "sensor_broken_wire", on=("axia",)),
    Case("one record with an error of the analogue board", one_record(NET_FT_ANALOGUE_BOARD), "sensor_device_fault"),
    Case("one record with the supply out of range", one_record(NET_FT_SUPPLY), "sensor_device_fault"),
    Case("busy for five ticks", busy, "sensor_busy", on=("axia",)),
    Case("busy for good", busy_for_good, "sensor_stale", shown=11, also=("sensor_busy",), on=("axia",), ticks=15, silent=True),
    Case("threshold latched in every record", threshold_latched),
    Case("one record missing", missing(1)),
    Case("three records missing", missing(3)),
    Case("a thousand records missing at once", missing(1000), "sensor_lost"),
    Case("every second record missing", every_second_missing, "sensor_lost", shown=2),
    Case("the same record again and again", same_record, "sensor_stale", shown=10, ticks=14, silent=True),
    Case("sample counter frozen", frozen_sample_counter, "sensor_stale", shown=10, ticks=14, silent=True),
    Case("sequence begins again", restarted, "sensor_stale", shown=10, ticks=14, silent=True),
    Case("every record twice", every_record_twice),
    Case("neighbouring records swapped", neighbours_swapped),
    Case("a record overtaken by its successor says saturated", overtaken_record_saturated, "sensor_saturated"),
    Case("one datagram cut and one empty", one_cut_datagram),
    Case("a datagram too long in every tick", cut_datagrams, "sensor_corrupt", shown=5),
    Case("four records in one datagram", records_in_one_datagram),
    Case("records from a stranger", strangers),
    Case("a channel at the upper end of its 32 bits", counts_at(2**31 - 1), "sensor_broken_wire", also=("sensor_saturated", "tare_drift")),
    Case("a channel at the lower end of its 32 bits", counts_at(-(2**31)), "sensor_saturated", also=("tare_drift",)),
    Case("no records any more", silent, "sensor_no_data", shown=10, ticks=14, silent=True),
    Case("three ticks of records held up by the network", held_up),
]
DRIVES = [
    Case("status word in fault, then a good one in the same tick", fault_word_then_good, "drive_device_fault", also=("drive_not_enabled",)),
    Case("trip with emergency", trips, "drive_device_fault"),
    Case("emergency alone", emergency_alone, "drive_device_fault"),
    Case("emergency and its clear in the same tick", emergency_and_clear, "drive_device_fault"),
    Case("one TPDO missing", without_tpdo(when=lambda n: n == 0)),
    Case("a TPDO missing now and then", without_tpdo(when=lambda n: n % 10 == 0)),
    Case("two of three TPDOs missing", without_tpdo(when=lambda n: n % 3 < 2), "drive_lost", shown=7),
    Case("TPDOs missing for good", without_tpdo(when=lambda n: True), "drive_no_data", shown=2),
    Case("one TPDO of the wrong length", short_tpdo(when=lambda n: n == 0)),
    Case("a TPDO of the wrong length beside every good one", short_tpdo(when=lambda n: True, beside=True), "bus_fault", shown=5),
    Case("remote and extended frames", other_frame_kinds),
    Case("frames of a node that no one knows", strangers_on_the_bus),
    Case("the master's own frames come back", echo),
    Case("flood of foreign frames", flood),
    Case("heartbeat of one drive stops", heartbeats_stop(AXIS), "drive_heartbeat_lost", shown=HEARTBEAT_LOST, ticks=HEARTBEAT_LOST + 50),
    Case("heartbeats of all drives stop", heartbeats_stop(*ALL), "drive_heartbeat_lost", shown=HEARTBEAT_LOST, ticks=HEARTBEAT_LOST + 50),
    Case("one heartbeat of each drive missing", heartbeats_stop(*ALL), ticks=HEARTBEAT_MS),
    Case("heartbeat says pre-operational", heartbeat_says(PRE_OPERATIONAL), "drive_not_enabled"),
    Case("heartbeat says stopped, then operational, in one tick", heartbeat_says(STOPPED, OPERATIONAL), "drive_not_enabled"),
    Case("heartbeat with the toggle bit of node guarding", heartbeat_says(0x80 | OPERATIONAL)),
    Case("drive restarts", reset, "drive_not_enabled"),
    Case("boot-up message, then operational, in one tick", heartbeat_says(BOOT_UP, OPERATIONAL), "drive_not_enabled"),
    Case("bit 12 drops: setpoints are not followed", becomes(ignores_target=True), "drive_not_following", on=("cia402",)),
    Case("following error of the drive", following_error_bit, "following_error"),
    Case("internal limit of the drive", internal_limit_bit, "drive_limit_touched"),
    Case("enabled no longer", not_enabled, "drive_not_enabled", also=("drive_not_following",)),
    Case("quick stop active", becomes(drive_state="quick stop active"), "drive_not_enabled", also=("drive_not_following",), on=("cia402",)),
    Case("local control", local_control, "drive_local_control", also=("drive_not_following",)),
    Case("position jumps", position_jumps, "leg_jump", also=("following_error", "platform_unknown")),
    Case("position frozen", position_frozen, "following_error", shown=leg_left_behind, ticks=600),
    Case("bus off", bus_off, "bus_fault"),
    Case("bus off and restarted in one tick", bus_off_and_restart, "bus_fault"),
    Case("form errors on the bus", errors_on_the_bus, "bus_fault", shown=5),
    Case("datagrams that are no frames", no_frames, "bus_fault", shown=5),
    Case("error passive", error_passive),
    Case("answers one tick late", late_by_a_tick),
    Case("every answer twice", answers_twice),
    Case("answers in another order", answers_mixed),
]
RUNS = [(case, profile) for case in SENSOR for profile in (case.on or ("net_ft",))] + [
    (case, profile) for case in DRIVES for profile in (case.on or ("cia402", "cia408"))
]


def test_the_list_is_whole():
    assert len(SENSOR) + len(DRIVES) >= 44
    assert len({case.does for case in SENSOR + DRIVES}) == len(SENSOR) + len(DRIVES)


@pytest.mark.parametrize(("case", "device"), RUNS, ids=lambda x: x.does if isinstance(x, Case) else x)
def test_misbehaviour(tmp_path, case, device):
    products = {"profile" if device.startswith("cia") else "variant": device}

    def turn_after_a_while(turn: Turn) -> None:
        if case.silent:
            stand.let_pass(PASSING_MS)
        case.script(turn)

    with LockstepStand(tmp_path, **products) as stand:
        stand.run(BEFORE)
        assert stand.faults() == [], stand.records[["drive_status", "drive_lost_total", "wrench_status"]][:5]
        stand.run(case.ticks, turn_after_a_while)
        if not case.fault or case.fault in NOTES:
            stand.run(AFTER)
        records, faults = stand.records, stand.faults()

    # what does no harm leaves nothing, a note leaves nothing else
    if not case.fault or case.fault in NOTES:
        assert [name for _, names in faults for name in names] == ([case.fault] if case.fault else [])
    # the first fault is the right one, in time
    if case.fault:
        tick = next((tick for tick, names in faults if case.fault in names), None)
        assert tick is not None, f"no {case.fault} in {faults}"
        until = set().union(*(names for t, names in faults if t <= tick))
        assert until <= {case.fault, *case.also}, f"other faults before it or with it: {until}"
        shown = case.shown(records) if callable(case.shown) else BEFORE + case.shown
        assert BEFORE <= tick <= shown + 2, f"{tick - shown} ticks after the evidence"
    # and nothing that any device reported made a setpoint jump, or the master break the protocol
    step = stand.config.stand["platform"]["leg_rate_max_m_s"] * stand.period_ms * 1e-3 * COUNTS_PER_METRE
    assert max(drive.largest_step for drive in stand.drives) <= step + 1
    assert [drive.refused for drive in stand.drives] == [[]] * 6


@pytest.mark.parametrize("profile", ["cia402", "cia408"])
@pytest.mark.parametrize(
    ("wrong_m", "fault"),
    [(-4.1, "start_legs_unknown"), (1.3, "start_legs_unknown"), (0.35, "start_pose_disagrees"), (0.05, "start_pose_disagrees"),
     (-0.02, "start_pose_disagrees"), (0.005, "start_pose_disagrees"), (-0.005, "start_pose_disagrees")],
)  # fmt: skip
def test_a_leg_measured_wrong_moves_no_drive(tmp_path, profile, wrong_m, fault):
    """One transducer is off by so much: a named fault, and no drive is ever sent anywhere but where it stands."""
    legs = parked_legs()
    legs[AXIS] += wrong_m
    with LockstepStand(tmp_path, profile, legs=legs) as stand:
        stand.run(BEFORE)
        faults = stand.faults()
    assert faults and faults[0][1] == {fault}
    assert [drive.largest_step for drive in stand.drives] == [0] * 6


@pytest.mark.parametrize("profile", ["cia402", "cia408"])
def test_a_fault_from_before_is_reset_by_the_set_up(tmp_path, profile):
    stand = LockstepStand(tmp_path, profile)
    stand.drives[AXIS].trip()
    with stand:
        stand.run(BEFORE)
        assert stand.faults() == [] and [drive.refused for drive in stand.drives] == [[]] * 6
    assert [drive.largest_step > 0 for drive in stand.drives] == [True] * 6


@pytest.mark.parametrize("profile", ["cia402", "cia408"])
@pytest.mark.parametrize(
    ("spoil", "says"),
    [(lambda drive: drive.take_local(), "local control"), (lambda drive: drive.add(0x1017, 0, Entry(16, writable=False)), "heartbeat"),
     (lambda drive: drive.objects.pop((0x1A00, 0)), "TPDO1"), (lambda drive: drive.add(0x1000, 0, Entry(32, 406)), "type is 406")],
    ids=["in local control", "without heartbeat", "without TPDO1", "an encoder"],
)  # fmt: skip
def test_a_drive_that_cannot_be_set_up_is_named_and_none_is_left_enabled(tmp_path, profile, spoil, says):
    stand = LockstepStand(tmp_path, profile)
    spoil(stand.drives[AXIS])
    with pytest.raises(ConnectionError, match=rf"node {AXIS + 1} .*{says}"), stand:
        pass
    assert {drive.objects[0x6041, 0].value & 0x7 for drive in stand.drives} == {0}  # neither switched on nor D, H, M
    assert [drive.largest_step for drive in stand.drives] == [0] * 6


@pytest.mark.parametrize(("profile", "fault"), [("cia402", "fault"), ("cia408", Cia408Drive.FAULT_HOLD)])
@pytest.mark.parametrize("ends", ["heartbeat", "setpoints"])
def test_a_drive_that_is_left_alone_stops_by_itself(tmp_path, profile, fault, ends):
    """Drives written by other hands, set up by ours: nothing comes any more, and after the time that the set-up has told them they are in
    fault; what else they watch is put off."""
    with LockstepStand(tmp_path, profile) as stand:
        stand.run(BEFORE)
        for drive in stand.drives:
            assert drive[0x1016, 1] == 127 << 16 | 60 and drive[0x1029, 1] == 0 and drive[0x1400, 5] == round(5 * stand.period_ms)
            if ends == "heartbeat":
                drive[0x1400, 5], left_ms = 60_000, 60
            else:
                drive[0x1016, 1], left_ms = 127 << 16 | 60_000, drive[0x1400, 5]
            enabled = drive.drive_state
            drive.pass_time(0.5 * left_ms)
            assert drive.drive_state == enabled and drive.state == OPERATIONAL
            drive.pass_time(0.6 * left_ms)
            drive.pass_time(1.0)
            assert drive.drive_state == fault and drive.state == (PRE_OPERATIONAL if ends == "heartbeat" else OPERATIONAL)


def test_a_drive_keeps_the_settings_of_its_own_protection(tmp_path):
    with LockstepStand(tmp_path, "cia402") as stand:
        platform, options = stand.config.stand["platform"], (0x6007, 0x605A, 0x605B, 0x605C, 0x605D, 0x605E)
        for drive in stand.drives:
            assert [drive[index, 0] for index in options] == [1, 2, 0, 1, 1, 2]
            assert [drive[0x607D, sub] for sub in (1, 2)] == [3_000_000, 5_000_000]
            assert drive[0x60C5, 0] == drive[0x60C6, 0] == round(1.25e6 * platform["leg_acceleration_max_m_s2"])
            assert drive[0x607F, 0] == round(1.25e6 * platform["leg_rate_max_m_s"])
            assert (drive[0x6065, 0], drive[0x6066, 0], drive[0x1006, 0]) == (100_000, 100, round(1e3 * stand.period_ms))
        assert stand.ports[-1].notes == []


@pytest.mark.parametrize("profile", ["cia402", "cia408"])
def test_what_a_drive_does_not_have_is_noted(tmp_path, profile):
    stand = LockstepStand(tmp_path, profile)
    for sub in (0, 1):
        stand.drives[AXIS].objects.pop((0x1029, sub))
    with stand:
        (note,) = stand.ports[-1].notes
        assert "no object 0x1029:1 (error behaviour" in note and f"node {AXIS + 1} on" in note


def test_a_value_that_reads_back_otherwise_refuses_the_start(tmp_path):
    class Stubborn(Entry):
        def decode(self, raw):
            pass

    stand = LockstepStand(tmp_path, "cia402")
    stand.drives[AXIS].add(0x6007, 0, Stubborn(16, 2, signed=True))
    with pytest.raises(ConnectionError, match=rf"node {AXIS + 1} .*0x6007:0\) reads back 2 instead of 1; .*left_objects"), stand:
        pass
    assert {drive.objects[0x6041, 0].value & 0x7 for drive in stand.drives} == {0}


def test_what_the_stand_file_leaves_to_the_drive_is_left_and_noted(tmp_path):
    stand = LockstepStand(tmp_path, "cia402")
    stand.config.stand["drives"]["left_objects"] = "0x607D:2 0x6007"
    for drive in stand.drives:
        drive[0x607D, 1], drive[0x607D, 2], drive[0x6007, 0] = 7, 7, 3
    with stand:
        assert all((drive[0x607D, 2], drive[0x6007, 0]) == (7, 3) and drive[0x607D, 1] != 7 for drive in stand.drives)
        assert all(f"{name} (" in " ".join(stand.ports[-1].notes) for name in ("0x607D:2", "0x6007:0"))
    with pytest.raises(ValueError, match="left_objects: '0x6007:one' is not an index and a sub-index"):
        objects_named("0x607D:2 0x6007:one")


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.1, 2.0, 5.0])
def test_a_drive_of_another_feed_refuses_the_start(tmp_path, factor):
    stand = LockstepStand(tmp_path, "cia402")
    stand.config.stand["drives"]["feed_m"] = 0.01
    stand.drives[AXIS][0x6092, 1] = round(factor * 10_000)
    with pytest.raises(ConnectionError, match=rf"node {AXIS + 1} .*position counts per metre by its feed constant"), stand:
        pass
    assert [drive.largest_step for drive in stand.drives] == [0] * 6


@pytest.mark.parametrize(("profile", "index", "value"), [("cia402", (0x60A8, 0), 0xFB010000), ("cia408", (0x6601, 3), -5)])
def test_a_drive_of_another_scale_refuses_the_start(tmp_path, profile, index, value):
    stand = LockstepStand(tmp_path, profile)
    stand.drives[AXIS][index] = value
    with pytest.raises(ConnectionError, match=rf"node {AXIS + 1} .*: 100000 position counts per metre .*counts_per_metre = 1e\+06"), stand:
        pass


KNOWN = [{"vendor": 0x2BAD, "product": 1, "revision": 1, "serial": axis + 1} for axis in range(6)]
PAIRS = [(i, j) for i in range(6) for j in range(i)]


@pytest.mark.parametrize(
    ("identity", "says"),
    [([KNOWN[{i: j, j: i}.get(axis, axis)] for axis in range(6)],
      rf"identity\[{j}\]\.serial .*the one of identity\[{i}\]: are the two exchanged")
     for i, j in PAIRS]
    + [(KNOWN[:AXIS] + [KNOWN[AXIS] | {key: 77}] + KNOWN[AXIS + 1 :],
        rf"identity\[{AXIS}\]\.{key} is \d+ at the device, 77 in the stand file")
       for key in KNOWN[0]],
)  # fmt: skip
def test_another_drive_than_the_stand_file_says_refuses_the_start(tmp_path, identity, says):
    stand = LockstepStand(tmp_path, "cia402")
    stand.config.stand["drives"]["identity"] = identity
    with pytest.raises(ConnectionError, match=says), stand:
        pass
    assert {drive.objects[0x6041, 0].value & 0x7 for drive in stand.drives} == {0}
    assert [drive.largest_step for drive in stand.drives] == [0] * 6


def test_the_drives_that_the_stand_file_says_are_taken(tmp_path):
    stand = LockstepStand(tmp_path, "cia402")
    stand.config.stand["drives"]["identity"] = KNOWN
    with stand:
        assert stand.ports[-1].identities == KNOWN


# ------------------------------------------------------------ what drives log for a server that is killed (tools/unattended_drives.py)


def logged(*happened, enabled=0x27):
    """Rows of the drives' log. happened: (ms, None) for a setpoint frame of all drives, (ms, state) for their new state."""
    log = StatesLog(enabled)
    for ms, state in happened:
        for axis in ALL:
            if state is None:
                log.frame(axis, round(1e6 * ms))
            else:
                log.look(axis, state, round(1e6 * ms))
    return np.array(log.rows)


@pytest.mark.parametrize(
    ("happened", "killed_ms", "unattended_ms", "off_ms", "all_off"),
    [
        ([(1, 0x23), (2, None), (2, 0x27), (5, None), (5, 0x27), (6, None), (6, 0x23)], 0, 3.0, 0.0, True),
        ([(1, 0x23), (2, None), (2, 0x27), (3, None), (9, 0x23)], 0, 6.0, 0.0, True),  # no one told it to go off
        ([(1, 0x23), (2, None), (2, 0x27), (3, None), (53, 0x08)], 4, 0.0, 49.0, True),
        ([(1, 0x23), (2, None), (2, 0x27), (3, None)], 4, 0.0, np.inf, False),
        ([(1, 0x23), (2, 0x27), (900, None), (901, 0x23)], 0, np.inf, 0.0, True),  # enabled before the first frame
    ],
)
def test_how_long_a_drive_was_enabled_without_a_frame(happened, killed_ms, unattended_ms, off_ms, all_off):
    assert judge(logged(*happened), 0x27, round(1e6 * killed_ms), 0) == (unattended_ms, off_ms, all_off, None)


@pytest.mark.parametrize(("profile", "enabled", "down", "fault"), [("cia402", 0x27, 0x23, 0x08), ("cia408", 0xF, 0xB, 0x3)])
def test_a_drive_that_goes_off_by_itself_differs_from_one_that_is_led_down(profile, enabled, down, fault):
    for last, found in ((down, False), (fault, True)):
        happened = [(1, down), (2, None), (2, enabled), (3, None), (3, last)]
        assert by_their_watchdog(profile, logged(*happened, enabled=enabled)) == found


def test_a_slave_falls_out_of_operational_when_its_outputs_have_stopped_for_its_watchdog():
    slave = Slave()
    slave.mem[0x130], slave.word = 8, 0x1237
    slave.mem[0x420:0x422] = (500).to_bytes(2, "little")  # times 100 us
    assert slave.watch(50_000_000) == 50_000_000 and slave.word == 0x1237
    assert slave.watch(70_000_000) == 50_000_000 and (slave.mem[0x130], slave.word & 0x4F) == (0x14, 0x08)
