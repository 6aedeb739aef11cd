"""What `hil-server world` has found in the product, each with the fewest events that showed it."""

import pytest

from hil_server.config.loader import load_test
from hil_server.errors import ConfigurationError
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


def test_a_disk_that_takes_nothing_any_more_keeps_what_it_has(config, tmp_path):
    # kept: the log ends at 0.000 s, all was well until 2.000 s
    assert violations(fly(config, 9, tmp_path / "run", [Event("disk", "full", 2.0, 1e6)]), config) == []


def test_a_stand_without_drives_is_refused_by_its_name(tmp_path):
    # ended by DeviceError: virtual stand: machine: must be one of linear, hydraulic, got ''
    flight = fly(load_test("berthing", NO_BUS), 1, tmp_path / "run")
    assert isinstance(flight.error, ConfigurationError) and "virtual.part" in str(flight.error) and flight.left == []


def test_silence_of_an_ethercat_line_is_noticed_as_soon_as_of_a_bus(config, tmp_path):
    # silence: drives 0 is silent from 1.0 s, and the setpoints follow at 1.251 s
    events = [Event("loss", "drives 0", 1.0, 2.0, direction=1)]
    assert violations(fly(config, 3, tmp_path / "run", events, wire="ethercat", force=True), config) == []
