"""A whole live docking in virtual time: the same bytes for the same seed, and nothing left over."""

import hashlib

import pytest

from hil_server.config.loader import load_test
from hil_server.log.reader import read_log
from hil_server.world.flight import fly

NO_BUS = [f"telemetry.{key}=''" for key in ("publish", "command", "hand_controller")]


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


def test_the_same_seed_gives_the_same_bytes(docking, flight, tmp_path):
    again = fly(docking, 1, tmp_path / "seed-1")
    assert hashlib.sha256(again.log.read_bytes()).digest() == hashlib.sha256(flight.log.read_bytes()).digest()
