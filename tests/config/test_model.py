"""The configuration as frozen classes: made once, with the values of the document; a changed document makes new ones."""

from dataclasses import FrozenInstanceError, replace

import pytest

from hil_server.config import load_test
from hil_server.config.model import DEVICES, Part, Stand, devices_of
from rt_kernels.stages import STAGE_ROLES


@pytest.fixture(scope="module")
def config():
    return load_test(None, ["test.rate_hz=500", "compensation.part=none"])


def test_it_is_made_once_and_does_not_change(config):
    setup = config.setup
    assert config.setup is setup and setup.stand is setup.stand and setup.stand.mounting is setup.stand.mounting
    with pytest.raises(FrozenInstanceError):
        setup.test.rate_hz = 1000.0


def test_the_figures_are_those_of_the_document(config):
    setup, document = config.setup, config.document
    assert (setup.test.rate_hz, setup.test.period_ns, setup.test.name) == (500.0, 2_000_000, document["test"]["name"])
    assert list(setup.stages) == list(STAGE_ROLES) and setup.stages["compensation"] == Part("compensation", "none", {})
    given = document["initial_conditions"]
    assert setup.initial_conditions.velocity_m_s == tuple(given[f"velocity_{axis}_m_s"] for axis in "xyz")
    assert setup.stand.limits.force_limit_n == document["stand"]["limits"]["force_limit_n"]
    assert setup.vehicles.active.mass_kg == document["active_vehicle"]["mass_kg"]


def test_a_part_has_its_keys_as_given_and_with_defaults(config):
    part = config.setup.commands
    assert "stale_s" not in part.keys and part.values["stale_s"] == 0.2
    unit = config.setup.mechanism
    assert unit.role == "mechanisms" and not {"part", "name", "force_limit_n"} & set(unit.keys)


def test_another_document_makes_another_configuration(config):
    other = replace(config, document={**config.document, "test": {**config.document["test"], "rate_hz": 250.0}})
    assert (config.setup.test.rate_hz, other.setup.test.rate_hz) == (500.0, 250.0)


def test_devices_come_in_the_order_in_which_they_are_read():
    tables = {"drives": {"part": "cia402", "a": 1}, "wrench_sensor": {"part": "rdt"}, "mechanism_signals": {"part": "cia401"}, "limits": {}}
    assert tuple(devices_of(tables)) == DEVICES
    assert Stand(tables).hardware and Stand(tables).devices["drives"] == Part("drives", "cia402", {"a": 1})
    assert Stand({"virtual": {"part": "ideal_stand"}}).virtual == Part("simulated", "ideal_stand", {})
