"""What goes wrong in a world comes from its seed, and reaches the line as it would on a wire, a disk or in a process."""

import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from drivers.simulated import world
from hil_server import interrupts
from hil_server.config.loader import load_test
from hil_server.errors import DeviceError
from hil_server.log.format import LogError
from hil_server.log.reader import read_log
from hil_server.world import hunter
from hil_server.world.events import Disk, Event, drawn
from hil_server.world.flight import fly
from hil_server.world.hunter import NO_BUS, hunt, shrunk
from hil_server.world.oracles import (
    attended,
    beats,
    commands,
    counted,
    frames,
    losses,
    power,
    recoveries,
    ticks,
    unprovoked,
    violations,
    without_record,
)
from hil_server.world.surroundings import ROLES
from rt_kernels.layout import BITS, CODES
from tests.system.line_runs import QUICK


@pytest.fixture(scope="module")
def config():
    return load_test("docking", [*NO_BUS, *QUICK, "test.duration_max_s=12", "guidance.fault_s=0.2"])


def test_a_seed_has_the_same_events_every_time():
    assert [drawn(seed, 9.0) for seed in range(20)] == [drawn(seed, 9.0) for seed in range(20)]
    assert len({tuple(drawn(seed, 9.0)) for seed in range(20)}) == 20


@pytest.mark.parametrize(
    ("event", "end", "fault"),
    [
        (Event("loss", "drives 1", 1.0, 3.0, direction=1), "tripped", "drive_no_data"),
        (Event("loss", "sensor", 1.0, 3.0), "tripped", "sensor_no_data"),
        (Event("stall", "loop", 1.0, amount=500_000_000), "tripped", "loop_overrun"),
        (Event("stall", "server", 1.0, amount=6_000_000_000), "tripped", "supervisor_silent"),
        (Event("inject", "drive_restart:1", 1.0), "tripped", "drive_not_enabled"),
        (Event("command", "abort", 1.0), "tripped", "operator_stop"),
        (Event("kill", "telemetry", 1.0), "record_lost", "record_lost"),
        (Event("disk", "full", 1.0, 1e6), "record_lost", "record_lost"),
        (Event("disk", "short", 0.5, 1e6, amount=1000), "captured", None),
        (Event("clock", "", 1.0, amount=-3_600_000_000_000), "captured", None),
    ],
    ids=lambda value: f"{value.kind} {value.where}" if isinstance(value, Event) else "",
)
def test_each_kind_ends_as_it_should_and_violates_nothing(config, tmp_path, event, end, fault):
    flight = fly(config, 3, tmp_path / "run", [event])
    assert violations(flight, config) == []
    assert end is None or flight.summary["end"] == end
    assert fault is None or fault in flight.summary["faults"]


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (Event("loss", "drives 0", 1.0, 3.0, direction=0), "drive_no_data"),
        (Event("delay", "drives 0", 1.0, 3.0, amount=3_000_000, direction=1), "drive_no_data"),
        (Event("repeat", "drives 0", 1.0, 3.0, amount=100_000, direction=1), None),
        (Event("truncate", "drives 0", 1.0, 3.0, amount=19), "drive_no_data"),
        (Event("corrupt", "drives 0", 1.0, 3.0, direction=1), "bus_fault"),
        (Event("inject", "slave_lost:1", 1.0, 9.0), "bus_fault"),
    ],
    ids=lambda value: f"{value.kind} {value.where}" if isinstance(value, Event) else "",
)
def test_each_fault_of_an_ethercat_line_ends_as_it_should(config, tmp_path, event, fault):
    flight = fly(config, 3, tmp_path / "run", [event], wire="ethercat", force=True)
    assert violations(flight, config) == []
    assert fault in flight.summary["faults"] if fault else flight.summary["end"] == "captured"


def test_wires_of_a_seed_repeat_to_the_byte(config, tmp_path):
    events = [Event("loss", "drives 0", 0.5, 0.7, 0.2), Event("reorder", "sensor", 0.5, 0.7, 0.5, 3_000_000)]
    logs = [fly(config, 4, tmp_path / f"{k}" / "run", events).log for k in range(2)]
    one, other = (read_log(log).records for log in logs)
    assert len(one) > 700 and one.tobytes() == other.tobytes()
    assert one["drive_lost_total"][-1].max() > 10


def test_what_does_not_matter_is_left_out():
    events = [Event("command", name, 1.0) for name in ("hold", "park", "resume", "abort")]
    assert [e.where for e in shrunk(events, lambda fewer: {"park", "abort"} <= {e.where for e in fewer})] == ["park", "abort"]


def test_a_hunt_finds_the_same_on_two_cores_and_stops_when_told():
    config, calls = load_test("docking", [*NO_BUS, *QUICK, "test.duration_max_s=1"]), []
    hunts = [hunt(config, range(1, 4), 0.9, print, cores=cores, done=lambda *at: calls.append(at)) for cores in (1, 2)]
    assert hunts[0] == hunts[1] and hunts[0].ticks > 0 and calls == [(k, 3) for k in (1, 2, 3)] * 2
    assert hunt(config, range(1, 4), 0.9, print, until=lambda: len(calls) > 6, done=lambda *at: calls.append(at)).ends.total() == 1


def test_a_log_that_cannot_be_judged_is_a_find(monkeypatch):
    def unreadable(*_):
        raise LogError("chunk 3 is damaged")

    monkeypatch.setattr(hunter, "fly", lambda *_, **__: None)
    monkeypatch.setattr(hunter, "violations", unreadable)
    assert hunter.tried(None, 1, []) == (None, ["not judged: LogError: chunk 3 is damaged"])


def test_a_hunt_that_is_interrupted_says_what_was_flown(monkeypatch):
    def fly_one(config, seed, **_):
        if seed == 3:
            raise KeyboardInterrupt
        return "captured", 1000, 2.0, None

    monkeypatch.setattr(hunter, "one", fly_one)
    with interrupts.owned():
        with pytest.raises(KeyboardInterrupt):
            hunt(None, range(1, 5), 0.9, print)
        assert interrupts.remains() == "2 runs, 2000 ticks, 4 s of world time: {'captured': 2}; 0 violate something"


def test_a_press_in_a_flight_ends_the_hunt_and_is_not_the_flight_s(monkeypatch):
    heard = []

    def flown(*_, **__):
        with interrupts.counted() as operator:
            signal.raise_signal(signal.SIGINT)
        heard.append(operator.count)

    monkeypatch.setattr(hunter, "fly", flown)
    with interrupts.owned():
        with pytest.raises(KeyboardInterrupt):
            hunter.tried(None, 1, [])
        assert heard == [0] and interrupts.stands()


def test_an_enabled_axis_without_frames_is_seen(tmp_path):
    config = load_test("docking", [*NO_BUS, *QUICK, "test.duration_max_s=1"])
    flight = fly(config, 3, tmp_path / "run")
    assert list(attended(flight, config)) == []
    silent = np.abs(flight.frames["at_ns"] - flight.began_ns - 500_000_000) < 2_500_000
    (line, *others) = attended(replace(flight, frames=flight.frames[~silent]), config)
    assert "6.0 periods without a frame" in line and len(others) == 5
    left = flight.drives.copy()
    left[-1, 5] += 4_000_000
    (line,) = attended(replace(flight, drives=left), config)
    assert line.startswith(f"drive {left[-1, 1]} was enabled for ") and line.endswith(" periods without a frame")


def test_records_of_the_sensor_that_are_lost_without_a_word_are_seen(config, tmp_path):
    flight = fly(config, 3, tmp_path / "run", [Event("loss", "sensor", 1.0, 1.3, 0.2, direction=1)])
    log = read_log(flight.log)
    assert list(losses(flight, config, log)) == []
    records = log.records.copy()
    records["wrench_status"] = 0
    (line,) = losses(flight, config, SimpleNamespace(ticks=log.ticks, records=records))
    assert line == "records of the sensor are lost from 1.0 s on, and its status does not say so"


@pytest.fixture(scope="module")
def recovered(tmp_path_factory):
    config = load_test("docking", [*NO_BUS, *QUICK, "test.duration_max_s=6", "guidance.fault_s=0.2", "guidance.recover_s=3"])
    events = [Event("inject", "drive_disabled:0", 0.45, 0.5), Event("command", "recover", 2.1), Event("command", "stop", 4.5),
              Event("command", "resume", 4.7, amount=1)]  # fmt: skip
    flight = fly(config, 3, tmp_path_factory.mktemp("recovered") / "run", events)
    assert violations(flight, config) == []
    return flight, config, read_log(flight.log)


def test_a_recovery_that_fails_though_nothing_is_wrong_is_seen(recovered):
    flight, config, log = recovered
    records = log.records.copy()
    records["safety_state"][records["safety_state"] == CODES["safety_state"]["following"]] = CODES["safety_state"]["held"]
    (line,) = recoveries(flight, config, SimpleNamespace(ticks=log.ticks, records=records))
    assert line.startswith("the recovery of 2.090 s fails")
    silent = replace(flight, events=[*flight.events, Event("loss", "drives 0", 2.0, 2.3)])
    assert list(recoveries(silent, config, SimpleNamespace(ticks=log.ticks, records=records))) == []


def test_an_axis_that_is_enabled_elsewhere_or_left_enabled_is_seen(recovered):
    flight, config, log = recovered
    f = flight.frames.copy()
    told = np.flatnonzero((f["wire"] == 0) & (f["id"] == 0x201) & (f["heard"] == 0))
    on = told[np.flatnonzero(np.diff((f["data"][told, 0] == 0x0F).astype(int)) == 1)[-1] + 1]
    f["data"][on, 3] ^= 0x10
    moved, enabled = frames(replace(flight, frames=f), config)
    assert "setpoint moves by" in moved and enabled.startswith("node 1 on drives 0: enabled at") and "counts from where it is" in enabled
    f["data"][told[-1], :2] = 0x0F, 0
    assert list(power(replace(flight, frames=f), config)) == ["the last that node 1 on drives 0 gets leaves it enabled"]


def test_ticks_that_are_not_counted_or_do_not_rise_are_seen(recovered):
    flight, config, log = recovered
    fewer = SimpleNamespace(ticks=log.ticks - 1, records=log.records[:-1], end=log.end)
    assert list(counted(flight, config, fewer)) == [f"{log.ticks} ticks ran, the log has {log.ticks - 1} and counts 0 as lost"]
    again = log.records.copy()
    again["tick"][700] = again["tick"][650]
    (line,) = counted(flight, config, SimpleNamespace(ticks=log.ticks, records=again, end=log.end))
    assert line == f"tick {again['tick'][650]} follows on {again['tick'][699]}"


def test_a_record_that_waits_too_long_and_a_run_that_goes_on_are_seen(recovered):
    flight, config, log = recovered
    waits = replace(flight, events=[Event("stall", "telemetry", 0.0, amount=9_000_000_000)], ran_s=30.0, summary={"end": "captured"})
    assert len(list(without_record(waits, config, log))) == 3
    assert list(without_record(replace(waits, ran_s=4.5), config, log)) == []
    holds = flight.answers[1]._replace(command="hold")
    assert len(list(without_record(replace(waits, answers=[holds]), config, log))) == 2
    records = log.records.copy()
    ended = replace(waits, summary={"end": "record_lost"}, ran_s=15.0)
    (line,) = without_record(ended, config, SimpleNamespace(ticks=log.ticks, records=records))
    assert line == "the record waits from 0.0 s on, and nothing ends the run until 4.300 s"
    records["command_code"][np.searchsorted(records["time_ns"], 4_200_000_000)] = CODES["command"]["record_lost"]
    assert list(without_record(ended, config, SimpleNamespace(ticks=log.ticks, records=records))) == []


def test_what_the_desk_replies_is_held_against_the_log(recovered):
    flight, config, log = recovered
    recover, stop, resume = flight.answers
    assert recover.reply["ok"] and recover.came_s > 2.5 and stop.reply["ok"] and resume.reply["kind"] == "held"

    def seen(answer, **other):
        answer = answer._replace(reply={**answer.reply, **other})
        return list(commands(replace(flight, answers=[answer]), config, log))

    assert seen(stop) == seen(resume) == []
    (line,) = seen(stop, tick=stop.reply["tick"] - 1)
    assert line == f"stop of 4.500 s is called taken at tick {stop.reply['tick'] - 1}, and the log has it not"
    (line,) = seen(stop, ok=False, kind="not_taken", tick=None)
    assert line == f"stop of 4.500 s is called not_taken, and acts at tick {stop.reply['tick']}"
    (line,) = seen(stop._replace(came_s=4.9))
    assert line == "stop of 4.500 s is answered at 4.900 s"
    other = recover._replace(desk=1)
    assert list(commands(replace(flight, answers=[recover, stop._replace(desk=1)]), config, log)) == []
    (line,) = commands(replace(flight, answers=[recover, other]), config, log)
    assert line == "operators [0, 1] are obeyed, and none has left the desk"


def test_a_full_disk_takes_what_it_has_room_for_and_what_is_cut_off_again(tmp_path):
    world.begin(1)
    try:
        world.arm()
        file = Disk([Event("disk", "full", 0.0, 1e6, amount=10)]).new_file(str(tmp_path / "file"))
        assert file.write(memoryview(b"1234567")) == 7 and file.write(memoryview(b"89abc")) == 3
        with pytest.raises(OSError, match="No space"):
            file.write(memoryview(b"bc"))
        file.seek(6)
        file.truncate()
        assert file.write(memoryview(b"ABCDEF")) == 4
        file.close()
    finally:
        world.end()
    assert (tmp_path / "file").read_bytes() == b"123456ABCD"


@pytest.mark.parametrize("wire", ["can", "ethercat"])
def test_what_differs_between_wire_and_log_is_seen(tmp_path, wire):
    config = load_test("docking", [*NO_BUS, *QUICK, "test.duration_max_s=1"])
    flight = fly(config, 3, tmp_path / "run", wire=wire, force=True)
    log, f = read_log(flight.log), flight.frames
    assert [*ticks(flight, config, log), *beats(flight, config)] == []
    moment_ns = f["at_ns"][(f["wire"] == 0) & (f["role"] == ROLES.index("loop")) & (f["id"] == 0x202) & (f["heard"] == 0)][490]
    of_node = (f["wire"] == 0) & (np.abs(f["at_ns"] - moment_ns) < 500_000)
    sent, heard = of_node & (f["id"] == 0x202) & (f["heard"] == 0), of_node & (f["id"] == 0x182) & (f["heard"] == 1)
    assert sent.sum() == heard.sum() == 1

    def seen(frames):
        return "; ".join(ticks(replace(flight, frames=frames), config, log))

    assert "node 2 is sent 2 setpoints at tick 490" in seen(np.insert(f, np.flatnonzero(sent), f[sent]))
    assert "node 2 is sent 0 setpoints at tick 490" in seen(f[~sent])
    assert "node 2 is not heard at tick 490, and not lost" in seen(f[~heard])
    for place, words in ((2, "another setpoint"), (3, "another setpoint")):
        other = f.copy()
        other["data"][sent, place] ^= 4
        assert f"node 2 is sent {words} than the log has at tick 490, 1 ticks" in seen(other)
    if wire == "ethercat":
        (asked,) = np.flatnonzero((f["id"] == 0x700) & (np.abs(f["at_ns"] - moment_ns) < 500_000))
        other = f.copy()
        other["data"][asked, 0] = 4
        assert "AL status 0x04 at tick 490, and the log has no bus_fault" in seen(other)
    for place, words in ((0, "says another status word"), (2, "says another position"), (0, "says that it is not enabled")):
        other = f.copy()
        other["data"][heard, place] ^= 4
        assert f"node 2 {words}" in seen(other)


def test_silence_of_the_server_and_a_trip_without_a_reason_are_seen(config, tmp_path):
    flight = fly(config, 3, tmp_path / "run", [Event("command", "abort", 1.5)])
    log = read_log(flight.log)
    assert [*beats(flight, config), *unprovoked(flight, config, log)] == []
    silent = replace(flight, frames=flight.frames[flight.frames["id"] != 0x77F])
    assert [line.partition(" for")[0] for line in beats(silent, config)] == [
        f"no heartbeat of the server on drives {k}" for k in range(2)
    ]
    (line,) = unprovoked(replace(flight, events=[Event("command", "abort", 2.0)]), config, log)
    assert line == "['operator_stop'] at 1.490 s, before anything went wrong"


def test_faults_of_the_set_up_are_flown_and_judged(tmp_path):
    config = load_test("docking", [*NO_BUS, *QUICK, "test.duration_max_s=1"])
    silent = Event("inject", "drive_silent:0", 0.0, 30.0)
    flight = fly(config, 3, tmp_path / "silent" / "run", [silent], from_start=True)
    assert isinstance(flight.error, DeviceError) and "node 1" in str(flight.error) and flight.ran_s == 0.0
    assert violations(flight, config) == []
    left = flight.drives.copy()
    left[-1, 2] = 0x27
    assert list(power(replace(flight, events=[], drives=left), config)) == [f"drive {left[-1, 1]} is enabled after the end"]
    # the time of one that comes after the set-up counts from the loop's begin
    flight = fly(config, 3, tmp_path / "late" / "run", [silent._replace(from_s=1.0)], from_start=True)
    assert violations(flight, config) == [] and "drive_no_data" in flight.summary["faults"]
    r = read_log(flight.log).records
    (event,), at_s = flight.events, 1e-9 * r["time_ns"][r["drive_status"][:, 0] & BITS["drive_status"]["no_data"] != 0][0]
    assert 0.0 < event.from_s < 1.0 and abs(at_s - event.from_s) < 0.02
