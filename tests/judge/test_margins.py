"""Margins of a played contact against limits that are read off by hand."""

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.judge.margins import held, margins
from hil_server.log.record import record_dtype


@pytest.fixture
def records():
    r = np.zeros(1000, record_dtype(0))
    r["tick"] = np.arange(1000)
    r["stroke_margin"], r["contact_energy_ratio"] = 0.9, 1.0
    return r


@pytest.fixture(scope="module")
def config():
    return load_test("stand_configs/programmes/docking.toml")


def of(found, name):
    return next(margin for margin in found if margin.name == name)


def test_held_is_the_level_that_a_value_keeps_for_a_time():
    values = np.zeros((100, 2))
    values[10:30, 1] = -3.0
    values[15, 1] = -1.0  # broken once: 14 ticks from there on
    assert held(values, 0.014, 1e-3) == 3.0 and held(values, 0.015, 1e-3) == 1.0 and held(values, 0.021, 1e-3) == 0.0
    assert held(values[:, 1], 0.014, 1e-3) == 3.0 and held(values, 0.2, 1e-3) == 0.0


def test_every_limit_has_its_figure(records, config):
    platform = config.stand["platform"]
    records["F_S"][400, 1], records["F_S"][500, 5] = -2500.0, 1500.0
    records["leg_rate_demand"][:, 2] = 0.001 * np.minimum(np.arange(1000), 300)
    records["leg_force"][7, 3], records["leg_valve"][8, 5] = -100e3, -1.0
    records["stroke_margin"][30] = 0.2
    records["following_error"][100:200] = 0.03
    records["contact_energy_ratio"][90] = 1.3
    found = margins(records, config, 1e-3)
    assert [margin.share for margin in found] == sorted((margin.share for margin in found), reverse=True)
    assert of(found, "force on the load cell").share == pytest.approx(0.5) and of(found, "moment on the load cell").reached == 1500.0
    assert of(found, "leg rate").share == pytest.approx(0.6) and not of(found, "leg rate").stops
    assert of(found, "leg acceleration").reached == 0.0
    assert of(found, "leg force").share == pytest.approx(100e3 / platform["leg_force_max_n"])
    assert of(found, "valve opening").touched and of(found, "valve opening").stops
    assert of(found, "leg stroke").share == pytest.approx(0.8)
    assert of(found, "following error").share == pytest.approx(0.03 / 0.02) and of(found, "energy gain").reached == pytest.approx(0.3)


def test_what_the_units_springs_may_have_given_is_no_gain(records, config):
    records["contact_energy_ratio"][90:], records["unit_energy_ratio"][90:] = 2.1, 1.05
    assert of(margins(records, config, 1e-3), "energy gain").reached == pytest.approx(0.05)


def test_accelerations_are_those_of_what_the_legs_are_sent(records, config):
    """Where the demand's own rate is smooth, a compensator's lead may not be. A stretch that was thinned, or left out because the loop was
    open, is no jump."""
    limit = config.stand["platform"]["leg_acceleration_max_m_s2"]
    records["leg_rate_demand"][:, 1] = records["leg_rate_setpoint"][:, 1] = 0.05
    records["leg_rate_setpoint"][500:, 4] = -0.001 * limit
    reached = of(margins(records, config, 1e-3), "leg acceleration")
    assert reached.touched and not reached.stops and reached.reached == pytest.approx(limit)
    assert of(margins(records, config, 1e-3), "leg rate").reached == pytest.approx(0.05)
    apart = np.concatenate([records[:490], records[530:]])
    assert of(margins(apart, config, 1e-3), "leg acceleration").share == pytest.approx(1.0 / 41.0)


def test_a_moment_differs_from_a_trip(records, config):
    """A rate limit passed for less than its time is clipped and reported; for longer it stops the run. No valve, no margin of one."""
    limit = config.stand["platform"]["leg_rate_max_m_s"]
    records["leg_rate_demand"][100:140, 0] = 2.0 * limit
    short = of(margins(records, config, 1e-3), "leg rate")
    records["leg_rate_demand"][100:160, 0] = 2.0 * limit
    long = of(margins(records, config, 1e-3), "leg rate")
    assert short.touched and not short.stops and long.touched and long.stops
    assert not [margin for margin in margins(records, config, 1e-3) if margin.name in ("valve opening", "leg force", "supply pressure")]
    assert str(long) == f"leg rate {2 * limit:.3g} of {limit:.3g} m/s"
