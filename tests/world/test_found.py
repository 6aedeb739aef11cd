"""What `hil-server world` has found in the product, each with the fewest events that showed it."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from hil_server.config.loader import load_test
from hil_server.errors import ConfigurationError, DeviceError
from hil_server.log.reader import read_log
from hil_server.world.events import Event
from hil_server.world.flight import fly
from hil_server.world.hunter import NO_BUS
from hil_server.world.oracles import violations
from tests.system.line_runs import QUICK


@pytest.fixture(scope="module")
def config():
    return load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3", "test.duration_max_s=6"])


def test_a_recovery_enables_no_axis_whose_answers_are_lost(config, tmp_path):
    # frames: node 1 on drives 0: enabled at 1.5110 s, its status is 53.0 ms old
    events = [
        Event("inject", "drive_disabled:0", 0.45, 0.5),
        Event("command", "recover", 1.45),
        Event("loss", "drives 0", 1.458, 1.7, direction=1),
    ]
    assert violations(fly(config, 7, tmp_path / "run", events), config) == []


def test_answers_that_are_lost_in_one_recovery_do_not_spoil_the_next(config, tmp_path):
    # recoveries: the recovery of 5.365 s fails, and nothing is wrong any more: ['drive_no_data', 'drive_not_enabled', 'drive_lost']
    events = [
        Event("inject", "drive_restart:0", 0.45, 0.5),
        Event("command", "recover", 0.6),
        Event("loss", "drives 0", 0.61, 1.0, direction=1),
        Event("command", "recover", 2.8),
    ]
    assert violations(fly(config, 352, tmp_path / "run", events), config) == []


def test_a_disk_that_takes_nothing_any_more_keeps_what_it_has(config, tmp_path):
    # kept: the log ends at 0.000 s, all was well until 2.000 s
    assert violations(fly(config, 9, tmp_path / "run", [Event("disk", "full", 2.0, 1e6)]), config) == []


def test_drives_whose_keeper_hangs_at_the_end_are_taken_out_of_operation(config, tmp_path):
    # end: the last that node 1 on drives 0 gets leaves it enabled
    events = [Event("command", "abort", 0.6), Event("stall", "drives keeper", 0.7, amount=19_000_000_000), Event("command", "recover", 1.5)]
    flight = fly(config, 692, tmp_path / "run", events)
    assert violations(flight, config) == []
    given = flight.frames[(flight.frames["heard"] == 0) & (flight.frames["id"] == 0)]["data"]
    last = {int(node): int(command) for command, node, *_ in given}
    assert [last[node] for node in range(1, 7)] == [0x80] * 6


def test_a_log_that_has_no_tick_names_what_stood(config, tmp_path):
    # causes: tripped, and names []
    events = [
        Event("disk", "full", 0.0236, 1e6, amount=69540),
        Event("reorder", "drives 1", 0.0745, 0.2179, 0.1, 12286054, 1),
        Event("command", "recover", 0.9706),
    ]
    flight = fly(config, 402, tmp_path / "run", events)
    assert violations(flight, config) == [] and flight.summary["ticks"] == 0
    assert set(flight.summary["faults"]) == {"records_differ", "record_lost"}


def test_a_trip_behind_a_full_ring_is_named(config, tmp_path):
    # causes: tripped, and names ['record_lost']
    events = [
        Event("kill", "telemetry", 0.8054),
        Event("command", "hold", 1.4561),
        Event("inject", "leg_runaway:1", 10.7927, 10.7946),
    ]
    flight = fly(load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3"]), 3136, tmp_path / "run", events)
    assert violations(flight, config) == [] and {"record_lost", "following_error"} <= set(flight.summary["faults"])


def test_a_log_without_its_first_chunk_is_held_against_the_frames_of_its_ticks(config, tmp_path):
    # ticks: node 1 is sent another setpoint than the log has at tick 84, 1417 ticks
    flight = fly(config, 414, tmp_path / "run", [Event("disk", "full", 0.0876, 0.0985, amount=82226)])
    assert violations(flight, config) == [] and read_log(flight.log).records["tick"][0] > 0


def test_a_record_that_is_lost_after_a_trip_ends_the_run(config, tmp_path):
    # without_record: the record ends at 6.2602 s, the run at 63.347 s
    events = [
        Event("command", "abort", 1.0),
        Event("disk", "error", 1.6, 1e6),
        Event("command", "recover", 2.5),
    ]
    flight = fly(load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3"]), 1053, tmp_path / "run", events)
    assert violations(flight, config) == [] and flight.ran_s < 10.0


def test_a_leg_that_jumped_is_not_enabled_far_from_where_it_was(config, tmp_path):
    # frames: node 2 on drives 0: enabled at 4.3480 s, -2605 counts from where it is
    events = [
        Event("inject", "transducer_offset:1", 2.5208, 2.5398),
        Event("repeat", "drives 0", 2.5328, 6.5209, 0.1, 12754613),
        Event("command", "recover", 4.1871),
    ]
    flight = fly(load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3"]), 1839, tmp_path / "run", events)
    assert violations(flight, config) == [] and "leg_jump" in flight.summary["faults"]


def test_a_drive_that_loses_its_power_in_a_recovery_is_not_enabled_again(config, tmp_path):
    # frames: node 2 on drives 0: enabled at 7.6794 s, -4067 counts from where it is; it runs away, and its setpoint went with it for 0.3 m
    events = [
        Event("inject", "leg_runaway:1", 2.9413, 4.2245),
        Event("command", "recover", 5.3487),
        Event("command", "recover", 7.5372),
        Event("delay", "drives 0", 7.5928, 7.6242, 0.1, 59690925),
    ]
    longer = load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3"])
    flight = fly(longer, 1211, tmp_path / "run", events, wire="ethercat", force=True)
    assert violations(flight, config) == []
    leg = read_log(flight.log).records["measured_leg"][7600:, 1]
    assert np.ptp(leg) < 0.01


def test_a_drive_that_a_recovery_under_way_enables_again_is_not_silent(config, tmp_path):
    # silence: drive_disabled:0 is silent from 1.7215 s, and the setpoints follow at 1.972 s
    events = [
        Event("command", "abort", 0.4169),
        Event("command", "recover", 1.6647),
        Event("inject", "drive_disabled:0", 1.7215, 5.2774),
        Event("command", "stop", 1.9214),
    ]
    assert violations(fly(config, 1395, tmp_path / "run", events), config) == []


def test_a_line_without_a_slave_is_lost(config, tmp_path):
    # ticks: AL status 0x00 at tick 6343, and the log has no bus_fault
    events = [Event("inject", "slave_lost:0", 2.2912, 2.2974)]
    assert violations(fly(config, 32, tmp_path / "run", events, wire="ethercat", force=True), config) == []


def test_an_answer_of_an_earlier_round_of_indices_is_late(config, tmp_path):
    # ticks: node 1 says another position than the log has at tick 4445, 2 ticks
    events = [Event("reorder", "drives 0", 2.5015, 5.8679, 0.5, 104376178)]
    assert violations(fly(config, 541, tmp_path / "run", events, wire="ethercat", force=True), config) == []


@pytest.mark.parametrize(("seed", "events"), [
    (542, [Event("repeat", "drives 0", 5.5215, 6.0453, 0.1, 519694)]),  # another position than the log has at tick 5525
    (3213, [Event("repeat", "drives 0", 3.9081, 6.1753, 0.5, 800044)]),  # says that it is not enabled, the log not, at tick 3981
    # AL status 0x1C at tick 3594, and the log has no bus_fault
    (6062, [Event("repeat", "drives 0", 1.6026, 5.3413, 0.5, 176659), Event("inject", "al_error:1", 3.543, 3.593)]),
])  # fmt: skip
def test_of_two_answers_to_one_frame_the_first_counts(config, tmp_path, seed, events):
    assert violations(fly(config, seed, tmp_path / "run", events, wire="ethercat", force=True), config) == []


def test_a_slave_that_left_op_is_led_back_by_a_recovery(tmp_path):
    # recoveries: the recovery of 13.661 s fails, and nothing is wrong any more: ['drive_device_fault', 'drive_not_enabled', 'bus_fault']
    events = [
        Event("inject", "working_counter:0", 7.8643, 10.7475),
        Event("command", "recover", 8.7821),
        Event("command", "recover", 13.6711),
    ]
    longer = load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3"])
    assert violations(fly(longer, 3374, tmp_path / "run", events, wire="ethercat", force=True), longer) == []


def test_a_log_that_cannot_be_begun_is_named(config, tmp_path):
    # ended by InternalError: telemetry: [Errno 5] Input/output error
    flight = fly(config, 49, tmp_path / "run", [Event("disk", "error", 0.0, 5.0)], from_start=True)
    assert isinstance(flight.error, DeviceError) and flight.left == []
    assert str(flight.error).startswith(f"log {flight.log}: cannot be written: Input/output error")


def test_a_bus_whose_desk_hangs_at_the_end_leaves_no_socket(tmp_path):
    # left over: 5 sockets of the world are open
    longer, events = load_test("docking", [*NO_BUS, *QUICK, "guidance.recover_s=3"]), [Event("stall", "desks", 8.4955, amount=6582511611)]
    assert violations(fly(longer, 2364, tmp_path / "run", events, wire="ethercat", force=True), longer) == []


def test_a_stand_without_drives_is_refused_by_its_name(tmp_path):
    # ended by DeviceError: virtual stand: machine: must be one of linear, hydraulic, got ''
    flight = fly(load_test("berthing", NO_BUS), 1, tmp_path / "run")
    assert isinstance(flight.error, ConfigurationError) and "virtual.part" in str(flight.error) and flight.left == []


def test_silence_of_an_ethercat_line_is_noticed_as_soon_as_of_a_bus(config, tmp_path):
    # silence: drives 0 is silent from 1.0 s, and the setpoints follow at 1.251 s
    events = [Event("loss", "drives 0", 1.0, 2.0, direction=1)]
    assert violations(fly(config, 3, tmp_path / "run", events, wire="ethercat", force=True), config) == []


def test_every_planted_defect_stands_in_a_text_that_is_there():
    root = Path(__file__).resolve().parents[2]
    for name, defect in tomllib.loads((root / "tools" / "planted_defects.toml").read_text()).items():
        assert (root / defect["file"]).read_text().count(defect["old"]) == 1, name


@pytest.mark.parametrize("wire", ["can", "ethercat"])
def test_a_leg_that_runs_away_as_it_is_enabled_loses_its_power_where_it_is_held(config, tmp_path, wire):
    # frames: node 1 on drives 0: setpoint moves by 2696 counts at 0.0126 s; the leg moved 36 mm
    flight = fly(config, 7, tmp_path / "run", [Event("inject", "leg_runaway:0", 0.42)], wire=wire, force=True, from_start=True)
    assert violations(flight, config) == [] and "following_error" in flight.summary["faults"]
    heard = flight.frames[(flight.frames["id"] == 0x181) & (flight.frames["heard"] == 1) & (flight.frames["length"] == 6)]
    counts = heard["data"][:, 2:6].copy().view("<i4")[:, 0]
    assert 1000 < np.ptp(counts) < 4000


def test_an_axis_that_has_not_heard_of_the_trip_is_not_sent_elsewhere(config, tmp_path):
    # frames: node 1 on drives 0: enabled at 8.4523 s, -17424 counts from where it is
    events = [Event("inject", "working_counter:0", 0.3, 1.12), Event("command", "recover", 1.02)]
    assert violations(fly(config, 5018, tmp_path / "run", events, wire="ethercat", force=True), config) == []


def test_a_drive_that_restarts_out_of_its_fault_is_recovered(config, tmp_path):
    # recoveries: the recovery of 10.273 s fails, and nothing is wrong any more: ['drive_device_fault']
    fault = [Event("inject", "drive_fault:0", 0.5, 0.5006), Event("inject", "drive_restart:0", 1.0, 1.05)]
    events = [*fault, Event("command", "recover", 2.9)]
    assert violations(fly(config, 6611, tmp_path / "run", events), config) == []


def test_an_answer_with_a_damaged_time_is_not_the_newest(config, tmp_path):
    # frames: node 4 on drives 0: enabled at 2.3855 s, its status is 16.0 ms old
    wire = [Event("delay", "drives 0", 0.8888, 2.8544, 1.0, 18_931_273, 1), Event("corrupt", "drives 0", 1.1592, 3.8316, 0.5, 73469)]
    events = [Event("delay", "signals", 0.3407, 0.6965, 1.0, 9_848_938, 0), *wire, Event("command", "recover", 2.4678)]
    assert violations(fly(config, 2076, tmp_path / "run", events, wire="ethercat", force=True, from_start=True), config) == []


def test_a_desk_that_hangs_is_not_in_the_next_world(config, tmp_path):
    # commands: resume of -0.228 s is answered at inf s
    hangs = [Event("stall", "desks", 0.4465, amount=19_000_000_000)]
    fly(config, 1107, tmp_path / "one" / "run", hangs, wire="ethercat", force=True, from_start=True)
    flight = fly(config, 1108, tmp_path / "other" / "run", [Event("command", "hold", 0.28)], force=True, from_start=True)
    assert violations(flight, config) == [] and flight.answers == []


def test_an_axis_whose_positions_differ_is_not_enabled(config, tmp_path):
    # frames: node 2 on drives 0: setpoint moves by 939524102 counts at 0.6801 s
    flight = fly(config, 73, tmp_path / "run", [Event("corrupt", "drives 0", 0.6549, 0.6928)], from_start=True)
    assert isinstance(flight.error, DeviceError) and violations(flight, config) == []


def test_a_backlog_of_the_sensor_is_no_delay_of_the_loop(config, tmp_path):
    # ConfigurationError: calibration.json: context.delays.total_s: 10.68, limit a number within -10 ... 10
    events = [Event("stall", "drives keeper", 0.2206, amount=17_591_537_247), Event("stall", "server", 1.0728, amount=18_338_506_281)]
    flight = fly(config, 811, tmp_path / "run", events, wire="ethercat", force=True, from_start=True)
    assert isinstance(flight.error, DeviceError) and "no delay of the loop" in str(flight.error) and violations(flight, config) == []


def test_a_record_that_waits_since_the_set_up_ends_the_run(config, tmp_path):
    # without_record: the record waits from -14.980890021 s on, and nothing ends the run until -10.681 s
    event = Event("stall", "telemetry", 0.3728, amount=14_673_561_865)
    assert violations(fly(config, 82, tmp_path / "run", [event], from_start=True), config) == []


def test_a_run_that_ends_while_a_node_is_set_up_again_lets_every_drive_go(config, tmp_path):
    # left over: Notifier for bus "frames on udp:127.0.0.1:40000": ValueError: file descriptor cannot be a negative integer (-1)
    events = [
        Event("inject", "drive_disabled:1", 2.5207, 2.5707),
        Event("inject", "drive_restart:1", 3.5359, 3.5859),
        Event("command", "recover", 4.1519),
        Event("loss", "drives 0", 4.1608, 4.2564, direction=1),
        Event("kill", "telemetry", 4.2406),
    ]
    flight = fly(config, 10017, tmp_path / "run", events, force=True)
    assert violations(flight, config) == [] and flight.summary["not_confirmed"] == []
