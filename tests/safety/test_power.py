"""Stop categories: which axes lose their power after a fault, when, and that only a recovery gives it back; watchdog and chain."""

import numpy as np
import pytest

from rt_kernels.layout import BITS, CODES, FAULTS
from tests.safety.any_input import broken
from tests.safety.conftest import DELAYS, PERIOD, names

STATE, PHASE, COMMAND = CODES["safety_state"], CODES["phase"], CODES["command"]
DRIVE, SENSOR, CHAIN, CHAIN_STATE = (BITS[name] for name in ("drive_status", "sensor_status", "analogue_chain", "chain_state"))
POWER = {name: power for name, _, severity, _, _, power in FAULTS if severity == "stop"}
ALL = set(range(6))
DELAY = 0.0305
LAG = DELAYS.drive_lag_s + DELAYS.measured_leg_delay_s
TRIP = 100


def off(samples, tick):
    """Axes that are to have no power."""
    return {leg for leg in range(6) if samples["setpoint_status"][tick] >> 24 + leg & 1}


@pytest.fixture
def day(stage, quiet):
    """Function (change, n, **keys) → samples of a platform whose legs go out at 0.1 m/s, after `change(samples)`."""

    def make(change, n=400, limits=None, **keys):
        s = quiet(n)
        rate = np.minimum(0.1, 2.0 * PERIOD * np.arange(n))[:, None]
        s["leg_demand"] += np.cumsum(rate, axis=0) * PERIOD
        s["leg_rate_demand"] = rate
        s["measured_leg"] = s["leg_demand"]
        start = quiet(2, phase=PHASE["idle"])
        change(s)
        made = stage(limits=limits, **({"following_max_m": 1.0, "blocking_delay_s": DELAY, "drive_missing_periods": 1} | keys))
        made.through(start)
        made.through(s)
        assert not broken(s, made.constants)
        return s

    return make


# fault of one drive -> bit of its status
OF_ONE_DRIVE = {"drive_no_data": "no_data", "drive_device_fault": "device_fault", "drive_not_enabled": "not_enabled",
                "following_error": "following_error", "drive_local_control": "local_control", "drive_not_following": "not_following",
                "drive_heartbeat_lost": "heartbeat_lost"}  # fmt: skip


def test_every_stop_has_a_category_and_those_of_a_drive_take_it_at_once():
    assert set(POWER.values()) == {"kept", "then_off", "off"}
    assert {name for name, power in POWER.items() if power == "off"} == {*OF_ONE_DRIVE, "leg_jump", "analogue_chain", "chain_discrepancy"}


@pytest.mark.parametrize("fault", OF_ONE_DRIVE)
def test_a_fault_of_a_drive_takes_its_own_axis_in_its_tick(day, fault):
    def change(s):
        s["drive_status"][TRIP, 4] = DRIVE[OF_ONE_DRIVE[fault]]
        s["drive_status"][250, 1] = DRIVE["not_enabled"]  # another leaves its state while they rest

    s = day(change)
    assert names(s["faults"][TRIP]) == {fault} and s["trip_tick"][-1] == TRIP
    assert [off(s, k) for k in (TRIP - 1, TRIP, TRIP + 1, 249, 250, 399)] == [set(), {4}, {4}, {4}, {1, 4}, {1, 4}]
    assert s["safety_state"][249] == STATE["held"]
    # the others stop under power, inside the limits
    rate = s["leg_rate_setpoint"]
    assert np.abs(np.diff(rate[TRIP:], axis=0)).max() <= 4.0 * PERIOD + 1e-12 and not rate[200].any()


def test_the_stand_says_whose_power(day):
    def change(s):
        s["drive_status"][TRIP, 4] = DRIVE["not_enabled"]

    s = day(change, limits={"power_off": "all"})
    assert off(s, TRIP - 1) == set() and off(s, TRIP) == ALL and s["safety_state"][-1] == STATE["blocked"]
    s = day(change, limits={"power_off": "none"})
    assert not s["setpoint_status"][TRIP:].any() and s["safety_state"][-1] == STATE["held"]


def test_power_that_was_taken_makes_no_further_fault(day):
    def change(s):
        s["drive_status"][TRIP:, 4] = DRIVE["not_following"]
        s["drive_status"][TRIP + 1 :, 4] |= DRIVE["not_enabled"] | DRIVE["hydraulics_blocked"]
        s["measured_leg"][TRIP:] = s["measured_leg"][TRIP]
        s["measured_leg"][TRIP:, 4] -= np.minimum(0.3 * PERIOD * np.arange(len(s) - TRIP), 0.03)  # it sinks

    s = day(change, following_max_m=0.02)
    assert names(s["faults"][-1]) == {"drive_not_following"}


def test_a_leg_that_jumps_loses_its_power(day):
    def change(s):
        s["measured_leg"][TRIP : TRIP + 20, 3] += 0.1

    s = day(change)
    assert names(s["faults"][TRIP]) == {"leg_jump"} and off(s, TRIP) == {3}


def test_a_leg_that_runs_away_loses_its_power_with_its_fault(day):
    """0.2 m/s from TRIP on: 20 mm behind after 0.1 s, a fault 50 ms later."""
    def change(s):
        s["measured_leg"][TRIP:, 2] -= 0.3 * PERIOD * np.arange(len(s) - TRIP)

    s = day(change, following_max_m=0.02)
    found = int(s["trip_tick"][-1])
    assert names(s["faults"][found]) == {"following_error"} and off(s, found - 1) == set() and off(s, found) == {2}
    assert found - TRIP == pytest.approx(((0.02 + 0.1 * LAG) / 0.3 + 0.05) / PERIOD, abs=2)


@pytest.mark.parametrize("fault", ["supply_pressure", "platform_unknown", "drive_lost"])
def test_power_off_when_the_setpoints_have_rested(day, fault):
    def change(s):
        if fault == "supply_pressure":
            s["drive_status"][TRIP:, 0] = DRIVE["supply_low"]
        elif fault == "platform_unknown":
            s["forward_kinematics_status"][TRIP] = 1
        else:
            s["drive_lost_total"][TRIP:, 0] = 100

    s = day(change)
    rest = int(np.flatnonzero(s["safety_state"] == STATE["held"])[0])
    blocked = int(np.flatnonzero(s["safety_state"] == STATE["blocked"])[0])
    assert rest - TRIP == 25 and blocked - rest == pytest.approx(DELAY / PERIOD, abs=1)
    assert off(s, blocked - 1) == set() and off(s, blocked) == ALL == off(s, -1)


def test_periods_that_were_skipped_while_they_rested_count(day):
    def change(s):
        s["drive_status"][TRIP:, 0] = DRIVE["supply_low"]
        s["periods"][TRIP + 30] = 11

    s = day(change, skipped_periods_max=60)
    rest, blocked = (int(np.flatnonzero(s["safety_state"] == STATE[name])[0]) for name in ("held", "blocked"))
    assert rest < TRIP + 30 < blocked and blocked - rest == pytest.approx(DELAY / PERIOD - 10, abs=1)


@pytest.mark.parametrize("fault", ["force_limit", "sensor_stale", "operator_stop"])
def test_power_that_is_kept(day, fault):
    def change(s):
        if fault == "force_limit":
            s["F_S"][TRIP, 0] = 1e4
        elif fault == "sensor_stale":
            s["wrench_fault"][TRIP] = SENSOR["stale"]
        else:
            s["guidance_fault"][TRIP] = 1

    for power in ("axis", "all"):
        s = day(change, limits={"power_off": power})
        assert names(s["faults"][-1]) == {fault} and not (s["setpoint_status"] >> 24).any() and s["safety_state"][-1] == STATE["held"]


def test_only_a_recovery_gives_the_power_back(day):
    def change(s):
        s["phase"][TRIP + 1 :] = PHASE["fault"]
        s["drive_status"][TRIP:300, 4] = DRIVE["not_enabled"]  # it comes back by itself, as after an emergency stop
        s["command_code"][600] = COMMAND["recover"]

    s = day(change, n=1400)
    assert [off(s, k) for k in (TRIP, 299, 301, 599)] == [{4}] * 4
    assert off(s, 600) == set() and s["safety_state"][600] == STATE["recovering"]


def test_an_axis_that_runs_away_while_it_recovers_loses_its_power_again(day):
    """Its setpoint stands where it was when it got its power."""
    def change(s):
        s["phase"][TRIP + 1 :] = PHASE["fault"]
        s["measured_leg"][TRIP:] = s["measured_leg"][TRIP] + 0.0012  # where they come to rest
        s["drive_status"][TRIP:500, 4] = DRIVE["not_enabled"]
        s["command_code"][400] = COMMAND["recover"]
        s["measured_leg"][520:, 4] += np.minimum(0.2 * PERIOD * np.arange(len(s) - 520), 0.2)

    s = day(change, n=1400, following_max_m=0.02, recover_limit_s=2.0)
    assert s["safety_state"][519] == STATE["recovering"] and off(s, 519) == set()
    taken = 520 + int(np.flatnonzero([off(s, k) for k in range(520, 1400)])[0])
    assert taken - 520 == pytest.approx((0.02 / 0.2 + 0.05) / PERIOD, abs=8) and off(s, taken) == {4} == off(s, -1)
    assert s["safety_state"][-1] == STATE["held"] and "following_error" in names(s["faults"][-1])


# lag: ticks for which its answers are those of before its power was taken
@pytest.mark.parametrize(("lag", "bit", "fault"), [(0, "not_enabled", "drive_not_enabled"), (3, "not_enabled", "drive_not_enabled"),
                                                  (0, "device_fault", "drive_device_fault"), (0, "hydraulics_blocked", "supply_pressure")])
def test_a_drive_that_is_enabled_by_a_recovery_and_leaves_that_state_ends_it(day, lag, bit, fault):
    def change(s):
        s["phase"][TRIP + 1 :] = PHASE["fault"]
        s["measured_leg"][TRIP:] = s["measured_leg"][TRIP] + 0.0012
        s["drive_status"][TRIP, 4] = s["drive_status"][401 + lag : 500, 4] = DRIVE["not_enabled"]
        s["command_code"][400] = COMMAND["recover"]
        s["drive_status"][510, 4] = DRIVE[bit]

    s = day(change, n=700, recover_limit_s=2.0)
    assert (s["safety_state"][400:510] == STATE["recovering"]).all() and off(s, 509) == set()
    assert s["safety_state"][510] == STATE["held"] and fault in names(s["faults"][510])
    assert bit == "hydraulics_blocked" or off(s, 510) == {4} == off(s, -1)


def test_before_the_start_power_goes_with_the_fault(stage, quiet):
    s = quiet(20, phase=PHASE["idle"])
    s["drive_status"][0:, 3] = DRIVE["not_enabled"]
    stage().through(s)
    assert (s["safety_state"] == STATE["not_armed"]).all() and off(s, 0) == {3}


# ------------------------------------------------------------------------------------------------------------- watchdog


def test_the_watchdog_counts_healthy_ticks_and_no_others(day):
    def change(s):
        s["periods"][50] = 51
        s["analogue_chain"][TRIP:] = CHAIN["healthy"] | CHAIN["tripped"]

    s = day(change, skipped_periods_max=60)
    moved = np.diff(s["watchdog"].astype(int))
    assert (moved[: TRIP - 1] == 1).all() and not moved[TRIP - 1 :].any()  # the power of all is off
    s = day(lambda s: s["periods"].__setitem__(50, 61), skipped_periods_max=60)
    assert np.flatnonzero(np.diff(s["watchdog"].astype(int)) != 1)[0] == 49
    s = day(lambda s: s["guidance_fault"].__setitem__(TRIP, 1))  # held under power: it must not fall
    assert (np.diff(s["watchdog"].astype(int)) == 1).all()


# ---------------------------------------------------------------------------------------------------------------- chain

STOP, GUARD = CHAIN["emergency_stop_a"] | CHAIN["emergency_stop_b"], CHAIN["guard_a"] | CHAIN["guard_b"]
WHOLE = CHAIN["healthy"] | STOP | GUARD | CHAIN["unit_on"]
WIRED = {"emergency_stop": True, "guard": True, "hydraulic_unit": True, "discrepancy_s": 0.0305}


@pytest.fixture
def chain(stage, quiet):
    """Function (inputs, **limits) → samples of a stand with these inputs of its chain, tick by tick."""

    def make(inputs, **limits):
        s = quiet(len(inputs), phase=PHASE["idle"])
        s["analogue_chain"] = inputs
        made = stage(limits=WIRED | limits, arming_s=10.0)
        made.through(s)
        return s

    return make


def test_a_whole_chain_says_nothing(chain):
    s = chain([WHOLE] * 50)
    assert not s["chain_state"].any() and not s["faults"].any() and s["safety_state"][-1] == STATE["following"]
    s = chain([CHAIN["healthy"]] * 50, emergency_stop=False, guard=False, hydraulic_unit=False)
    assert not s["chain_state"].any() and not s["faults"].any()


@pytest.mark.parametrize(("channels", "state"), [(STOP, "emergency_stop"), (GUARD, "guard_open")])
def test_an_open_input_trips_and_takes_all_power(chain, channels, state):
    s = chain([WHOLE] * 10 + [WHOLE & ~channels] * 10)
    assert s["chain_state"][9] == 0 and s["chain_state"][10] & CHAIN_STATE[state]
    assert names(s["faults"][10]) == {"analogue_chain"} and off(s, 10) == ALL


@pytest.mark.parametrize("channel", ["emergency_stop_a", "emergency_stop_b", "guard_a", "guard_b"])
def test_two_channels_that_differ(chain, channel):
    """One open channel is an open input at once; a discrepancy when it lasts."""
    s = chain([WHOLE] * 10 + [WHOLE & ~CHAIN[channel]] * 31)
    assert names(s["faults"][10]) == {"analogue_chain"} and names(s["faults"][39]) == {"analogue_chain"}
    assert names(s["faults"][40]) == {"analogue_chain", "chain_discrepancy"}
    assert s["chain_state"][40] & CHAIN_STATE[f"{channel[:-2]}_differs"]


@pytest.mark.parametrize(("inputs", "state"), [(WHOLE & ~CHAIN["unit_on"], "unit_off"), (WHOLE | CHAIN["unit_low"], "unit_low"),
                                               (WHOLE | CHAIN["unit_high"], "unit_high"),
                                               (WHOLE | CHAIN["unit_interlock"], "unit_interlock")])  # fmt: skip
def test_states_of_the_hydraulic_unit(chain, inputs, state):
    s = chain([WHOLE] * 10 + [inputs] * 200)
    assert s["chain_state"][10] == CHAIN_STATE[state] and names(s["faults"][10]) == {"hydraulic_unit"}
    assert off(s, 10) == set() and off(s, -1) == ALL  # it brakes first


def test_proof_test_before_the_first_motion(chain):
    """Nothing starts before each input with two channels was operated and closed again; what is open until then is no fault."""
    asked = CHAIN_STATE["proof_asked"]
    inputs = [WHOLE] * 10 + [WHOLE & ~STOP] * 10 + [WHOLE] * 10 + [WHOLE & ~GUARD] * 10 + [WHOLE] * 10
    s = chain(inputs, proof_test=True)
    assert not s["faults"].any()
    assert (s["safety_state"][:40] == STATE["not_armed"]).all() and s["chain_state"][39] & asked
    assert s["safety_state"][-1] == STATE["following"] and not s["chain_state"][-1] & asked and s["chain_state"][-1] & CHAIN_STATE["proven"]
    # operated again it is a stop
    s = chain([*inputs, WHOLE & ~STOP], proof_test=True)
    assert names(s["faults"][-1]) == {"analogue_chain"}


def test_a_welded_contact_does_not_pass_the_proof_test(chain):
    s = chain([WHOLE] * 10 + [WHOLE & ~CHAIN["emergency_stop_a"]] * 10 + [WHOLE] * 20, proof_test=True, guard=False)
    assert (s["safety_state"] == STATE["not_armed"]).all() and s["chain_state"][-1] & CHAIN_STATE["proof_asked"]


def test_a_proof_test_of_nothing_is_refused(stage):
    with pytest.raises(ValueError, match="proof_test: there is no input with two channels"):
        stage(limits={"proof_test": True})
