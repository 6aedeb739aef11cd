"""A whole live docking in virtual time: the same bytes for the same seed, and nothing left over."""

import hashlib
import os

import numpy as np
import pytest

from drivers.simulated import world
from hil_server.config import SHIPPED
from hil_server.config.loader import load_test
from hil_server.judge.run import Run
from hil_server.judge.summary import summarise
from hil_server.judge.verdict import verdict
from hil_server.log.reader import read_log
from hil_server.requirements.junit import suite_of
from hil_server.run import leg_check
from hil_server.world.events import Event
from hil_server.world.flight import fly
from hil_server.world.hunter import NO_BUS, PILOTED
from hil_server.world.oracles import violations
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK


@pytest.fixture(scope="module")
def docking():
    return load_test("docking", NO_BUS)


@pytest.fixture(scope="module")
def flight(docking, tmp_path_factory):
    return fly(docking, 1, tmp_path_factory.mktemp("world") / "seed-1")


def test_the_default_docking_is_flown_whole(flight):
    assert flight.error is None and flight.left == []
    assert flight.summary["end"] == "captured" and flight.summary["exit_code"] == 0 and flight.summary["complete"]
    log = read_log(flight.log)
    assert log.ticks == flight.summary["ticks"] > 20_000
    # the loop's grid, and the stand's answers at it
    assert set(log.records["periods"].tolist()) == {1} and not log.records["drive_status"][10:].any()


def test_the_same_seed_gives_the_same_bytes_and_its_prediction_takes_no_world_time(docking, flight, tmp_path):
    again = fly(docking, 1, tmp_path / "seed-1")  # its prediction is at hand
    assert again.world_s == flight.world_s
    assert hashlib.sha256(again.log.read_bytes()).digest() == hashlib.sha256(flight.log.read_bytes()).digest()


@pytest.mark.parametrize("wire", ["can", "ethercat"])
def test_drives_that_do_not_confirm_that_they_are_off_are_reported(tmp_path, wire):
    """Their answers are lost from the last tick on: the docking is a good one, and somebody may walk to the stand."""
    config = load_test("docking", [*NO_BUS, *QUICK])
    last_s = read_log(fly(config, 1, tmp_path / "sound" / "run", wire=wire, force=True).log).time_s[-1]
    silent = fly(config, 1, tmp_path / "run", [Event("loss", "drives 0", last_s, last_s + 5.0, direction=1)], wire=wire, force=True)
    found = silent.summary["not_confirmed"]
    assert (silent.summary["end"], silent.summary["faults"], silent.summary["exit_code"]) == ("captured", [], 4)
    assert sum("does not say that it is off, status word is 0x1237" in words for words in found) == (3 if wire == "can" else 6)
    again = summarise(Run(read_log(silent.log)))
    assert (again.not_confirmed, again.exit_code) == (found, 4) and verdict(again).level == "bad"
    assert suite_of("run", silent.summary).cases[0].outcome == "failed"


def test_a_world_stays_on_one_core_and_gives_the_others_back():
    before = os.sched_getaffinity(0)
    world.begin(1)
    inside = os.sched_getaffinity(0)
    world.end()
    assert len(inside) == 1 and inside <= before and os.sched_getaffinity(0) == before


def test_drives_on_ethercat_are_flown_whole_and_to_the_same_bytes(tmp_path):
    config = load_test("docking", [*NO_BUS, *QUICK])
    flights = [fly(config, 1, tmp_path / f"{k}" / "run", wire="ethercat", force=True) for k in range(2)]
    assert [violations(flight, config) for flight in flights] == [[], []] and flights[0].summary["end"] == "captured"
    log = read_log(flights[0].log)
    line = log.end["devices"]["Cia402EthercatPort"]
    assert line["bus_answered"] >= line["cycles"] - 1 > 8000 and line["axis_lost"] == [0] * 6
    # the grid has found the reference clock of the line, and each frame is seen as what it says to six axes
    assert abs(log.aux("bus_deviation_ns")[1000:]).max() < 100
    reported = flights[0].frames[(flights[0].frames["heard"] == 0) & (flights[0].frames["wire"] == 0)]
    assert all((reported["id"] == 0x201 + axis).sum() > 8000 for axis in range(6))
    one, other = (flight.log.read_bytes() for flight in flights)
    assert one == other


def test_legs_are_moved_one_by_one(tmp_path):
    """`hil-server legs`: judged as a docking is, with a fault and without."""
    config = leg_check.legs_test(SHIPPED / "stands" / "docking_stand.toml", NO_BUS)
    calm = fly(config, 1, tmp_path / "calm" / "run", force=True)
    assert violations(calm, config) == [] and [one.good for one in leg_check.found_in(read_log(calm.log))] == [True] * 6
    events = [Event("inject", "leg_stuck:2", 6.0, 30.0)]
    stuck = fly(config, 2, tmp_path / "stuck" / "run", events, force=True)
    assert violations(stuck, config) == []
    assert [one.good for one in leg_check.found_in(read_log(stuck.log))] == [True] * 2 + [False] + [True] * 3


def test_a_berthing_is_flown_at_the_hand_controllers_to_the_same_bytes(tmp_path):
    keys = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "test.duration_max_s=6")
    config = load_test("berthing_operator", [*PILOTED, *keys])
    one, other = (fly(config, 1, tmp_path / f"{k}" / "run", force=True) for k in range(2))
    assert one.log.read_bytes() == other.log.read_bytes()
    assert violations(one, config) == ["causes: nothing went wrong, and it ended as 'time' with []"]  # six seconds are too few
    r = read_log(one.log).records
    flown = r[r["motion"] == CODES["motion"]["free"]]
    # it turns the module by what it sees, and no record is older than its period and the way
    assert np.abs(flown["hand_axis"][:, 3:6]).max() > 0.5 and np.abs(flown["V_TA"][-1, 3:]).max() > 1e-4
    assert 0 <= flown["hand_age_ns"][:, 0].min() and flown["hand_age_ns"][:, 0].max() < 12_000_000
