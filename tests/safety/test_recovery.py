"""Recovery after a trip: what is asked of the stand before motion is let go, and that no frame of it leaves the limits."""

import numpy as np
import pytest

from rt_kernels.codes import FAULT_MASKS, mask
from rt_kernels.layout import CODES
from tests.safety.any_input import broken
from tests.safety.conftest import PERIOD, names

STATE, PHASE, COMMAND = CODES["safety_state"], CODES["phase"], CODES["command"]
TRIP, REST, ASKED = 10, 400, 500  # ticks: the stop fault, from when on the setpoints rest, the command
FRESH = 0.1
KEYS = {"recover_fresh_s": FRESH, "recover_limit_s": 0.4}


@pytest.fixture
def day(stage, quiet):
    """Function (change, n, **keys) → (stage, samples): a run that trips at TRIP by an ABORT and gets the recovery command at ASKED, with
    what `change(samples)` does to it."""

    def make(change=lambda s: None, n=1200, **keys):
        made, s = stage(**(KEYS | keys)), quiet(n)
        s["phase"][:3], s["phase"][TRIP + 1 :] = PHASE["idle"], PHASE["fault"]
        s["guidance_fault"][TRIP] = mask("guidance_fault", "operator_stop")
        s["command_code"][ASKED] = COMMAND["recover"]
        change(s)
        made.through(s)
        assert not broken(s, made.constants)
        return made, s

    return make


def test_faults_are_cleared_and_the_demand_followed_after_the_stated_time(day):
    _, s = day()
    assert (s["safety_state"][REST:ASKED] == STATE["held"]).all() and names(s["faults"][ASKED]) == {"operator_stop"}
    goes = ASKED + 1 + int(np.argmax(s["safety_state"][ASKED + 1 :] == STATE["following"]))
    assert goes - ASKED == pytest.approx(FRESH / PERIOD, abs=2)
    assert (s["safety_state"][ASKED:goes] == STATE["recovering"]).all()
    # the bits are latched until then
    assert names(s["faults"][goes - 1]) == {"operator_stop"} and not s["faults"][goes:].any()
    assert (s["trip_tick"][TRIP:] == TRIP).all()


@pytest.mark.parametrize("when", ["before the trip", "while it brakes"])
def test_only_a_stand_that_rests_after_a_trip_recovers(day, when):
    def change(s):
        s["command_code"][ASKED] = 0
        s["command_code"][TRIP - 2 if when == "before the trip" else TRIP + 1] = COMMAND["recover"]
        # on the way at 0.2 m/s when it trips
        s["leg_demand"] += np.clip(0.2 * PERIOD * (np.arange(len(s)) - 3), 0.0, None)[:, None]
        s["measured_leg"] = s["leg_demand"]

    _, s = day(change, following_max_m=1.0)
    assert STATE["recovering"] not in s["safety_state"] and s["safety_state"][-1] == STATE["held"]


@pytest.mark.parametrize("bit", ["not_enabled", "hydraulics_blocked"])
def test_setpoints_go_to_where_the_legs_are_inside_the_limits(day, bit):
    """A drive that lost its power, or whose blocking valve has closed, lets its leg sink by 80 mm and is enabled again while the recovery
    runs; the frames are checked in `day`."""
    sunk, enabled = 0.08, ASKED + 400  # the setpoint needs 0.3 s for the way

    def change(s):
        s["drive_status"][TRIP:enabled, 3] = mask("drive_status", bit)
        s["measured_leg"][TRIP:, 3] -= sunk * np.clip((np.arange(len(s) - TRIP)) / 500.0, 0.0, 1.0)
        s["leg_demand"][ASKED:] = s["measured_leg"][ASKED:]  # as the guidance does: the achieved pose

    _, s = day(change, recover_limit_s=2.0)
    assert (s["leg_setpoint"][REST:ASKED] == s["leg_setpoint"][REST]).all()
    goes = ASKED + int(np.argmax(s["safety_state"][ASKED:] == STATE["following"]))
    assert goes - enabled == pytest.approx(FRESH / PERIOD, abs=3)
    np.testing.assert_allclose(s["leg_setpoint"][goes], s["measured_leg"][enabled], rtol=0, atol=1e-9)
    assert not s["leg_rate_setpoint"][goes].any() and not s["faults"][goes]


@pytest.mark.parametrize("bit", ["no_data", "stale", "lost", "corrupt", "device_fault", "emergency", "bus_fault", "heartbeat_lost"])
def test_setpoint_does_not_go_to_what_a_drive_says_that_does_not_count(day, bit):
    def change(s):
        s["drive_status"][TRIP:, 3] = mask("drive_status", "not_enabled") | mask("drive_status", bit)
        s["measured_leg"][TRIP:, 3] -= 0.08 * np.clip((np.arange(len(s) - TRIP)) / 500.0, 0.0, 1.0)

    _, s = day(change, recover_limit_s=2.0)
    assert STATE["recovering"] in s["safety_state"] and (s["leg_setpoint"][REST:, 3] == s["leg_setpoint"][REST, 3]).all()


def test_leg_that_its_drive_holds_is_not_sent_after_a_wrong_transducer(day):
    """50 mm of offset, the drive enabled: nothing moves, the cause stands."""
    _, s = day(lambda s: s["measured_leg"].__setitem__((slice(TRIP, None), 3), s["measured_leg"][0, 3] + 0.05))
    assert (s["leg_setpoint"][REST:, 3] == s["leg_setpoint"][REST, 3]).all()
    assert names(s["faults"][-1]) == {"following_error", "leg_jump"} and s["safety_state"][-1] == STATE["held"]


@pytest.mark.parametrize("mended", [False, True])
def test_leg_without_power_is_not_led_to_what_its_transducer_reads_after_a_jump(day, mended):
    """50 mm at once; the drive comes up again where it is asked to be."""
    back = ASKED - 50 if mended else None

    def change(s):
        s["measured_leg"][TRIP + 20 : back, 3] += 0.05
        s["drive_status"][TRIP + 20 : ASKED + 100, 3] = mask("drive_status", "not_enabled")

    _, s = day(change, leg_jump_m=0.005, recover_limit_s=2.0)
    assert (s["leg_setpoint"][REST:, 3] == s["leg_setpoint"][REST, 3]).all()
    assert "leg_jump" in names(s["faults"][ASKED]) and (STATE["following"] in s["safety_state"][ASKED:]) == mended
    assert ("leg_jump" in names(s["faults"][-1])) != mended


CAUSES = {
    "drive_not_enabled": ("drive_status", mask("drive_status", "not_enabled")),
    "analogue_chain": ("analogue_chain", 2),
    "sensor_no_data": ("wrench_fault", mask("sensor_status", "no_data")),
    "signals_no_data": ("signal_status", mask("sensor_status", "device_fault")),
    "platform_unknown": ("forward_kinematics_status", mask("forward_kinematics_status", "not_converged")),
    "force_limit": ("F_S", 1e4),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_that_stands_is_named_and_a_second_try_without_it_succeeds(day, cause):
    field, value = CAUSES[cause]
    gone, again = 1000, 1100

    def change(s):
        s[field][TRIP:gone] = value
        s["command_code"][again] = COMMAND["recover"]

    _, s = day(change, n=1400)
    given_up = ASKED + int(np.argmax(s["safety_state"][ASKED + 1 :] != STATE["recovering"])) + 1
    assert given_up - ASKED == pytest.approx(0.4 / PERIOD, abs=2)
    without_power = cause in ("drive_not_enabled", "analogue_chain")  # at once; of the pose only when the setpoints have rested
    assert s["safety_state"][given_up] == STATE["blocked" if without_power else "held"]
    assert (s["leg_setpoint"][REST:given_up] == s["leg_setpoint"][REST]).all()
    # the ABORT no longer stands, this one does
    assert "operator_stop" in names(s["faults"][given_up - 1])
    assert cause in names(s["faults"][given_up]) and "operator_stop" not in names(s["faults"][given_up])
    assert s["safety_state"][again + 150] == STATE["following"] and not s["faults"][again + 150]


def test_a_fault_in_between_restarts_the_time(day):
    _, s = day(lambda s: s["wrench_fault"].__setitem__(ASKED + 60, mask("sensor_status", "stale")))
    goes = ASKED + int(np.argmax(s["safety_state"][ASKED:] == STATE["following"]))
    assert goes - ASKED == pytest.approx(60 + FRESH / PERIOD, abs=2) and not s["faults"][goes]


def test_an_abort_ends_the_recovery(day):
    _, s = day(lambda s: s["guidance_fault"].__setitem__(ASKED + 20, mask("guidance_fault", "operator_stop")))
    assert s["safety_state"][ASKED + 20] == STATE["held"] and s["safety_state"][-1] == STATE["held"]
    assert names(s["faults"][-1]) == {"operator_stop"}


@pytest.mark.parametrize("fault", ["record_required", "record_lost"])
def test_nothing_recovers_without_a_record(day, fault):
    _, s = day(lambda s: s["guidance_fault"].__setitem__(TRIP + 1, mask("guidance_fault", fault)))
    assert STATE["recovering"] not in s["safety_state"] and s["faults"][-1] & FAULT_MASKS[fault]


def test_losses_before_do_not_count_and_losses_after_do(day):
    """A second of lost answers fades in many seconds; a recovery begins with a clean count, and a new loss trips as the first did."""
    lost = np.arange(1200)

    def change(s):
        s["drive_lost_total"][:, 2] = np.clip(lost - TRIP, 0, ASKED - 20 - TRIP) + np.clip(lost - 900, 0, None)

    _, s = day(change)
    assert "drive_lost" in names(s["faults"][ASKED]) and not s["faults"][ASKED + 150]
    assert names(s["faults"][-1]) == {"drive_lost"} and s["trip_tick"][-1] > 900 and s["safety_state"][-1] == STATE["blocked"]


def test_losses_that_continue_are_seen_in_the_time_of_the_recovery(day):
    """Half of a drive's answers missing, where 300 in a second are tolerated: too many, though not yet 300 since the count restarted."""
    def change(s):
        s["drive_lost_total"][:, 2] = np.clip(np.arange(len(s)) // 2 - TRIP, 0, None)

    _, s = day(change, drive_lost_max_per_s=300.0)
    assert "drive_lost" in names(s["faults"][-1]) and s["safety_state"][-1] == STATE["blocked"]


def test_blocking_valves_open_again_and_close_again_on_a_cause_that_stands(day):
    """The ports give the power back when the bits `blocked` go; supply pressure that does not come closes the valves again."""
    low, limits = mask("drive_status", "supply_low"), {"blocking_valves": True}

    def change(s):
        s["drive_status"][TRIP:700] = low

    _, s = day(change, n=1600, limits=limits, recover_limit_s=0.15)
    blocked = mask("setpoint_status", "blocked1")
    assert s["safety_state"][ASKED - 1] == STATE["blocked"] and s["setpoint_status"][ASKED - 1] & blocked
    assert s["safety_state"][ASKED] == STATE["recovering"] and not s["setpoint_status"][ASKED] & blocked
    assert s["safety_state"][-1] == STATE["blocked"] and s["setpoint_status"][-1] & blocked


def test_a_trip_before_the_start_is_not_recovered(stage, quiet):
    made, s = stage(arming_s=0.05, **KEYS), quiet(600, phase=PHASE["idle"])
    s["drive_status"][:, 1] = mask("drive_status", "device_fault")
    s["command_code"][300] = COMMAND["recover"]
    made.through(s)
    assert s["faults"][-1] and (s["safety_state"] == STATE["not_armed"]).all()


def test_time_for_a_recovery_must_leave_room(stage):
    with pytest.raises(ValueError, match=r"safety\.recover_limit_s: 0\.5 s leaves no room"):
        stage(recover_fresh_s=0.5, recover_limit_s=0.5)
