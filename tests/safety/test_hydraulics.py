"""Limits of a hydraulic stand, and the stop of drives that cannot follow."""

import numpy as np
import pytest

from rt_kernels.layout import BITS, CODES
from tests.safety.conftest import PERIOD, names

DRIVE, STATE = BITS["drive_status"], CODES["safety_state"]
LEG_FORCE_MAX_N = 125000.0  # of the docking stand
SUPPLY = {"supply_pressure_min_pa": 14e6}


@pytest.fixture
def started(stage, quiet):
    """Function (**keys) → a stage whose setpoints have started, supply at 21 MPa."""

    def make(**keys):
        made = stage(**keys)
        start = quiet(2, supply_pressure=21e6)
        made.through(start)
        assert not start["faults"].any() and start["safety_state"][-1] == STATE["following"]
        return made

    return make


@pytest.mark.parametrize("leg", [0, 5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_force_of_each_leg(started, quiet, leg, sign):
    beyond = np.nextafter(LEG_FORCE_MAX_N, np.inf)
    for force, expected in ((LEG_FORCE_MAX_N, set()), (beyond, {"leg_force_limit"}), (np.nan, {"leg_force_limit"})):
        s = quiet(3)
        s["leg_force"][1, leg] = sign * force
        started().through(s)
        assert names(s["faults"][-1]) == expected
        assert s["trip_tick"][-1] == (1 if expected else -1)


@pytest.mark.parametrize(("pressure", "good"), [(14e6, True), (np.nextafter(14e6, 0), False), (np.nan, False)])
def test_lowest_supply_pressure(started, quiet, pressure, good):
    s = quiet(3, supply_pressure=21e6)
    s["supply_pressure"][1] = pressure
    started(limits=SUPPLY).through(s)
    assert names(s["faults"][-1]) == (set() if good else {"supply_pressure"})
    # a stand that does not measure it
    s = quiet(3, supply_pressure=pressure)
    started().through(s)
    assert not s["faults"].any()


def test_no_start_without_supply(stage, quiet):
    s = quiet(5)
    stage(limits=SUPPLY).through(s)
    assert names(s["faults"][-1]) == {"supply_pressure"} and (s["safety_state"] == STATE["not_armed"]).all()


@pytest.mark.parametrize("leg", [0, 5])
@pytest.mark.parametrize("how", ["bit", "spool", "spool back", "spool of no number"])
def test_valve_at_its_end_for_some_time(started, quiet, leg, how):
    def at_its_end(s, ticks):
        if how == "bit":
            s["drive_status"][ticks, leg] |= DRIVE["valve_saturated"]
        else:
            s["leg_valve"][ticks, leg] = {"spool": 0.98, "spool back": -1.0, "spool of no number": np.nan}[how]

    for n, expected in ((50, set()), (52, {"valve_saturated"})):
        s = quiet(100)
        at_its_end(s, slice(10, 10 + n))
        started(valve_saturated_s=0.0505).through(s)
        assert names(s["faults"][-1]) == expected
        if expected:
            assert s["trip_tick"][-1] == 10 + 50
    # one tick off the end starts again; a stall is as long as it is
    s = quiet(100)
    at_its_end(s, np.r_[10:55, 56:95])
    started(valve_saturated_s=0.0505).through(s)
    assert not s["faults"].any()
    s = quiet(10)
    at_its_end(s, slice(2, 5))
    s["periods"][3] = 49
    started(valve_saturated_s=0.0505).through(s)
    assert names(s["faults"][-1]) == {"valve_saturated"} and s["trip_tick"][-1] == 4


def moving(quiet, n):
    """Legs that go out, faster by 2 m/s2 up to 0.1 m/s."""
    s = quiet(n, supply_pressure=21e6)
    rate = np.minimum(0.1, 2.0 * PERIOD * np.arange(n))[:, None]
    s["leg_demand"] += np.cumsum(rate, axis=0) * PERIOD
    s["leg_rate_demand"] = rate
    s["measured_leg"] = s["leg_demand"]
    return s


def test_drives_that_lose_their_supply_are_braked_then_blocked(started, quiet):
    """Setpoints decelerate while the accumulator still gives something, rest for the drives' own lag, then the valves close."""
    s = moving(quiet, 400)
    s["supply_pressure"][100:] = 1e6
    made = started(limits=SUPPLY | {"blocking_valves": True}, following_max_m=1.0, blocking_delay_s=0.0305)
    made.through(s)
    states = s["safety_state"]
    rest, blocked = (int(np.flatnonzero(states == STATE[name])[0]) for name in ("held", "blocked"))
    assert (states[100:rest] == STATE["decelerating"]).all() and not s["leg_rate_setpoint"][rest].any()
    assert rest - 100 == 25  # 0.1 m/s at 4 m/s2
    assert blocked - rest == 31 and (states[rest:blocked] == STATE["held"]).all() and (states[blocked:] == STATE["blocked"]).all()
    assert names(s["faults"][-1]) == {"supply_pressure"} and s["trip_tick"][-1] == 100


@pytest.mark.parametrize("fault", ["valve_saturated", "leg_force_limit"])
def test_drives_that_may_not_follow_are_blocked_when_the_setpoints_have_rested(started, quiet, fault):
    s = moving(quiet, 400)
    if fault == "leg_force_limit":
        s["leg_force"][100, 2] = 2.0 * LEG_FORCE_MAX_N
    else:
        s["drive_status"][100:180, 2] |= DRIVE["valve_saturated"]
    limits = {"blocking_valves": True, "power_off": "none"}
    started(limits=limits, following_max_m=1.0, valve_saturated_s=0.0505, blocking_delay_s=0.0305).through(s)
    rest, shut = (int(np.flatnonzero(s["safety_state"] == STATE[name])[0]) for name in ("held", "blocked"))
    assert names(s["faults"][-1]) == {fault} and shut - rest == 31 and blocked(s, shut - 1) == set() and blocked(s, shut) == set(range(6))


def test_what_drives_say_without_power_is_no_further_fault(started, quiet):
    s = moving(quiet, 400)
    s["supply_pressure"][100:] = 1e6
    s["drive_status"][300:] |= DRIVE["not_enabled"] | DRIVE["not_following"] | DRIVE["hydraulics_blocked"]
    started(limits=SUPPLY | {"blocking_valves": True}, following_max_m=1.0).through(blocked := s.copy())
    assert blocked["safety_state"][299] == STATE["blocked"] and names(blocked["faults"][-1]) == {"supply_pressure"}
    # without blocking valves it is the drives' own doing
    started(limits=SUPPLY | {"power_off": "none"}, following_max_m=1.0).through(s)
    assert names(s["faults"][-1]) == {"supply_pressure", "drive_not_enabled", "drive_not_following"}
    assert set(s["safety_state"]) == {STATE["following"], STATE["decelerating"], STATE["held"]}


def test_valves_that_are_closed_already_are_not_waited_for(started, quiet):
    """The setpoints come to rest as in every trip."""
    s = moving(quiet, 200)
    s["drive_status"][100:, 4] |= DRIVE["hydraulics_blocked"]
    started(limits={"blocking_valves": True}, following_max_m=1.0).through(s)
    assert (s["safety_state"][:100] == STATE["following"]).all() and (s["safety_state"][100:] == STATE["blocked"]).all()
    assert names(s["faults"][-1]) == {"supply_pressure"} and s["trip_tick"][-1] == 100
    rate = s["leg_rate_setpoint"]
    assert not rate[-1].any() and np.abs(np.diff(rate[99:], axis=0)).max() <= 4.0 * PERIOD + 1e-12


def test_a_leg_that_does_not_hold_after_a_stop_is_blocked_when_it_shows(started, quiet):
    """Another fault trips; long after the setpoints have come to rest a leg continues: then the valves close."""
    s = moving(quiet, 400)
    s["drive_status"][100] |= DRIVE["device_fault"]
    blocking = {"blocking_valves": True, "power_off": "none"}
    started(limits=blocking, following_max_m=1.0).through(rest := s.copy())
    assert rest["safety_state"][-1] == STATE["held"]  # these drives follow
    s["measured_leg"][100:] = rest["leg_setpoint"][100:]
    s["measured_leg"][200:, 3] += 0.03
    started(limits=blocking, following_max_m=0.02, following_time_s=0.0505, leg_jump_m=0.0).through(s)
    states = s["safety_state"]
    assert (states[200:250] == STATE["held"]).all() and (states[250:] == STATE["blocked"]).all()
    assert names(s["faults"][-1]) == {"drive_device_fault", "following_error"} and s["trip_tick"][-1] == 100


def blocked(s, tick):
    return {leg for leg in range(6) if s["setpoint_status"][tick] >> 24 + leg & 1}


def test_a_leg_behind_its_setpoint_is_blocked_at_once_the_others_with_the_stop(started, quiet):
    """A leg that follows again stays blocked; before the trip, and without blocking valves, none is."""
    for valves in (True, False):
        s = moving(quiet, 400)
        s["measured_leg"][60:130, 3] += 0.03
        limits = {"blocking_valves": valves, "power_off": "none"}
        started(limits=limits, following_max_m=0.02, following_time_s=0.0505, leg_jump_m=0.0).through(s)
        trip = int(s["trip_tick"][-1])
        assert trip == 110 and names(s["faults"][-1]) == {"following_error"}
        assert [blocked(s, k) for k in (109, 110, 200)] == ([set(), {3}, {3}] if valves else [set()] * 3)
        assert blocked(s, 399) == (set(range(6)) if valves else set())
    # what that drive then says calls for no other leg
    s = moving(quiet, 200)
    s["measured_leg"][60:, 3] += 0.03
    s["drive_status"][115:, 3] |= DRIVE["hydraulics_blocked"] | DRIVE["not_enabled"]
    started(limits={"blocking_valves": True}, following_max_m=0.02, following_time_s=0.0505, leg_jump_m=0.0).through(s)
    assert blocked(s, 150) == {3} and names(s["faults"][-1]) == {"following_error"}
