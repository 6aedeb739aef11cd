"""Every fault of the safety stage: just below its limit there is none, just above it there is exactly this one."""

import numpy as np
import pytest

from rt_kernels.codes import FAULT_MASKS
from rt_kernels.layout import BITS, CODES, FAULTS
from tests.safety.conftest import DELAYS, LIMITS, PERIOD, names

SENSOR, DRIVE, SIGNAL = (BITS[name] for name in ("sensor_status", "drive_status", "mechanism_signal"))
PHASE = CODES["phase"]
STOP = {name for name, _, severity, *_ in FAULTS if severity == "stop"}


@pytest.fixture
def judged(stage, quiet):
    """Function (samples, totals, **keys) → names of the faults after these samples, on a stage that has started; totals: field → what
    it stood at before."""

    def judge(samples, totals=None, **keys):
        made = stage(**keys)
        start = quiet(2, phase=PHASE["idle"], **(totals or {}))
        made.through(start)
        assert not start["faults"].any()
        made.through(samples)
        return names(samples["faults"][-1])

    return judge


def test_a_quiet_stand_has_no_fault(judged, quiet):
    assert judged(quiet(3000)) == set()


# --------------------------------------------------------------------------------------------------- status bits and counts

SENSOR_BITS = {
    "stale": "sensor_stale", "saturated": "sensor_saturated", "out_of_range": "sensor_out_of_range", "device_fault": "sensor_device_fault",
    "supply": "sensor_device_fault", "temperature": "sensor_device_fault", "broken_wire": "sensor_broken_wire", "busy": "sensor_busy",
    "no_data": "sensor_no_data", "lost": None, "corrupt": None, "warning": None,
    "frozen": "sensor_frozen", "differs": "records_differ",
}  # fmt: skip
DRIVE_BITS = {
    "device_fault": "drive_device_fault", "emergency": "drive_device_fault", "not_enabled": "drive_not_enabled",
    "following_error": "following_error", "bus_fault": "bus_fault", "limit_touched": "drive_limit_touched",
    "local_control": "drive_local_control", "not_following": "drive_not_following", "heartbeat_lost": "drive_heartbeat_lost",
    "no_data": "drive_no_data", "stale": None, "lost": None, "corrupt": None, "warning": None, "tx_drop": None,
    "valve_saturated": None, "supply_low": "supply_pressure", "hydraulics_blocked": "supply_pressure",
    "differs": "records_differ",
}  # fmt: skip


@pytest.mark.parametrize("bit", SENSOR)
def test_each_status_bit_of_the_sensor(judged, quiet, bit):
    s = quiet(3)
    s["wrench_fault"][1] = SENSOR[bit]
    fault = SENSOR_BITS[bit]
    assert judged(s, sensor_missing_periods=1) == ({fault} if fault else set())
    assert bool(s["trip_tick"][-1] == 1) is (fault in STOP)


@pytest.mark.parametrize("axis", [0, 5])
@pytest.mark.parametrize("bit", DRIVE)
def test_each_status_bit_of_a_drive(judged, quiet, bit, axis):
    s = quiet(3)
    s["drive_status"][1, axis] = DRIVE[bit]
    fault = DRIVE_BITS[bit]
    assert judged(s, drive_missing_periods=1) == ({fault} if fault else set())
    assert bool(s["trip_tick"][-1] == 1) is (fault in STOP)


@pytest.mark.parametrize(("word", "field", "key", "fault"), [
    (SENSOR["no_data"], "wrench_fault", "sensor_missing_periods", "sensor_no_data"),
    (SENSOR["no_data"], "signal_status", "signals_missing_periods", "signals_no_data"),
    (DRIVE["no_data"], "drive_status", "drive_missing_periods", "drive_no_data"),
])  # fmt: skip
def test_silence_counts_in_periods_running(judged, quiet, word, field, key, fault):
    for silent, expected in ((6, set()), (7, {fault})):
        s = quiet(20)
        s[field][3 : 3 + silent] = word
        assert judged(s, **{key: 7}) == expected
    # a stall is as long as it is; an answer in between starts again
    s = quiet(10)
    s[field][3], s["periods"][3] = word, 7
    assert judged(s, **{key: 7}) == {fault}
    s = quiet(30)
    s[field][3:9] = s[field][10:16] = word
    assert judged(s, **{key: 7}) == set()


def test_signals_with_a_device_fault(judged, quiet):
    assert judged(quiet(2, signal_status=SENSOR["device_fault"])) == {"signals_no_data"}


@pytest.mark.parametrize("chain", range(8))
def test_the_analogue_chain_is_healthy_in_one_state_only(judged, quiet, chain):
    assert judged(quiet(2, analogue_chain=chain)) == (set() if chain == 1 else {"analogue_chain"})


COUNTS = [
    ("wrench_lost_total", None, "damaged_max_per_s", "sensor_lost", "wrench_fault", SENSOR["lost"]),
    ("wrench_corrupt_total", None, "damaged_max_per_s", "sensor_corrupt", "wrench_fault", SENSOR["corrupt"]),
    ("drive_lost_total", 2, "drive_lost_max_per_s", "drive_lost", "drive_status", DRIVE["lost"]),
    ("drive_corrupt_total", 5, "damaged_max_per_s", "bus_fault", "drive_status", DRIVE["corrupt"]),
]


@pytest.mark.parametrize(("total", "axis", "key", "fault", "field", "bit"), COUNTS, ids=[row[0] for row in COUNTS])
def test_rates_count_records_not_ticks(judged, quiet, total, axis, key, fault, field, bit):
    where = (slice(None),) if axis is None else (slice(None), axis)

    def totals(steps, begin=0):
        s = quiet(len(steps))
        s[total][where] = begin + np.cumsum(steps)
        return s

    # all in one tick, after a total that other runs have left
    for n, expected in ((5, set()), (6, {fault})):
        assert judged(totals([0, n, 0], begin=1000), {total: 1000}, **{key: 5.0}) == expected
    # a thousand at once with one status bit
    s = totals([0, 1000, 0])
    s[field][(1,) + where[1:]] = bit
    assert fault in judged(s, {total: 0}, **{key: 5.0})
    # four a second continue for ever, eight do not: the count fades with one second
    for spacing, expected in ((250, set()), (125, {fault})):
        steps = np.zeros(6000, int)
        steps[::spacing] = 1
        assert judged(totals(steps), {total: 0}, **{key: 5.0}) == expected
    # a stall lets the count fade as long as it is
    for periods, expected in ((1, {fault}), (300, set())):
        s = totals([0, 5, 0, 1])
        s["periods"][2] = periods
        assert judged(s, {total: 0}, **{key: 5.0}, skipped_periods_max=1000) == expected
    # and one of more than a second lets all of it fade, no more
    for n, expected in ((5, set()), (6, {fault})):
        s = totals([0, 5, 0, n])
        s["periods"][2] = 1500
        assert judged(s, {total: 0}, **{key: 5.0}, skipped_periods_max=10_000) == expected
    # a counter that starts again is no loss; a status bit without a count is one
    assert judged(totals([9, -9, 0], begin=0), {total: 9}, **{key: 5.0}) == set()
    for n, expected in ((5, set()), (6, {fault})):
        s = quiet(20)
        s[field][(slice(3, 3 + n),) + where[1:]] = bit
        assert judged(s, {total: 0}, **{key: 5.0}) == expected


# ------------------------------------------------------------------------------------------------------------------ wrench


@pytest.mark.parametrize("i", range(6))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_limits_of_each_component_of_the_wrench(judged, quiet, i, sign):
    limit = (LIMITS["force_limit_n"] + LIMITS["moment_limit_n_m"])[i]
    fault = "force_limit" if i < 3 else "moment_limit"
    for value, expected in ((limit, set()), (np.nextafter(limit, 1e9), {fault}), (np.nan, {fault}), (np.inf, {fault})):
        s = quiet(2)
        s["F_S"][1, i] = sign * value
        assert judged(s) == expected


def test_drift_is_the_mean_force_of_free_motion(judged, quiet):
    """First-order mean from zero: a force F shows F (1 - (1 - T/tau)^n) after n ticks; 1 N passes 0.5 N after 0.693 tau."""
    s = quiet(2000, contact=0)
    s["F_T"][:, :3] = np.array([0.6, 0.8, 0.0])
    judged(s, drift_time_s=1.0, drift_max_n=0.5)
    first = int(np.flatnonzero(s["faults"])[0])
    assert first == int(np.ceil(np.log(0.5) / np.log(1 - PERIOD))) - 1
    assert names(s["faults"][-1]) == {"tare_drift"} and s["trip_tick"][-1] == -1
    # a stall counts for its time
    s = quiet(100, contact=0)
    s["F_T"][:, 0], s["periods"][10] = 1.0, 40
    judged(s, drift_time_s=0.1, drift_max_n=0.5)
    expected = next(k for k in range(100) if 1 - (1 - 0.01) ** (k if k < 10 else k) * (0.6 / 0.99 if k >= 10 else 1) * 0.99 > 0.5)
    assert int(np.flatnonzero(s["faults"])[0]) == expected


@pytest.mark.parametrize(("field", "value"), [("contact", 1), ("mechanism_state", SIGNAL["DSG"]), ("phase", PHASE["latched"]),
                                              ("phase", PHASE["idle"])])  # fmt: skip
def test_a_force_that_belongs_to_a_contact_is_no_drift(judged, quiet, field, value):
    s = quiet(3000, **{field: value})
    s["F_T"][:, 0] = 5.0
    assert judged(s) == set()


# ------------------------------------------------------------------------------------------------------------------ motion


@pytest.mark.parametrize("leg", [0, 5])
def test_following_error_by_size_and_time(judged, quiet, leg):
    beyond = {"following_error"}
    for off, ticks, expected in ((0.0199, 200, set()), (0.0201, 50, set()), (0.0201, 52, beyond), (-0.0201, 52, beyond)):
        s = quiet(260)
        s["measured_leg"][20 : 20 + ticks, leg] += off
        assert judged(s, following_max_m=0.02, following_time_s=0.0505, leg_jump_m=0.0) == expected, (off, ticks)
    # a tick inside the limit starts again
    s = quiet(200)
    s["measured_leg"][20:60, leg] += 0.03
    s["measured_leg"][61:100, leg] += 0.03
    assert judged(s, following_max_m=0.02, following_time_s=0.0505, leg_jump_m=0.0) == set()
    assert s["following_error"][30, leg] == pytest.approx(-0.03, abs=1e-12)


def test_a_length_that_is_not_a_number_does_not_follow(judged, quiet):
    for ticks, expected in ((50, set()), (51, {"following_error"})):
        s = quiet(100)
        s["measured_leg"][20 : 20 + ticks, 3] = np.nan
        assert judged(s, following_max_m=0.02, following_time_s=0.0505, leg_jump_m=0.0) == expected, ticks


def test_the_expected_lag_of_the_drives_is_no_following_error(judged, quiet):
    """0.3 m/s and 19 ms: 5.7 mm."""
    t = PERIOD * np.arange(1, 501)
    s = quiet(500)
    s["leg_demand"] += (0.3 * (0.5 * np.minimum(t, 0.1) ** 2 / 0.1 + np.maximum(t - 0.1, 0.0)))[:, None]
    before = np.concatenate([s["measured_leg"][:1], s["leg_demand"][:-1]])
    s["measured_leg"] = before
    again = s.copy()
    judged(s, following_max_m=0.0056, following_time_s=1.0)
    lag = DELAYS.drive_lag_s + DELAYS.measured_leg_delay_s
    assert -s["following_error"][300, 0] == pytest.approx(0.3 * lag, rel=1e-6)
    s = again.copy()
    assert judged(s, following_max_m=0.0056, following_time_s=0.05) == {"following_error"}
    assert judged(again, following_max_m=0.0058, following_time_s=0.05) == set()


@pytest.mark.parametrize("leg", [0, 4])
def test_a_demand_near_the_end_of_the_stroke(judged, quiet, leg):
    for demand, expected in ((4.99, False), (np.nextafter(4.99, 9), True), (3.01, False), (np.nextafter(3.01, 0), True), (np.nan, True)):
        s = quiet(2)
        s["leg_demand"][1, leg] = demand
        assert ("stroke_limit" in judged(s, stroke_reserve_m=0.01)) is expected, demand


@pytest.mark.parametrize("field", ["leg_demand", "leg_rate_demand"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1e6])
def test_a_demand_that_is_no_number_trips(judged, quiet, field, bad):
    s = quiet(2)
    s[field][1, 3] = bad
    assert "setpoint_not_finite" in judged(s)
    s = quiet(2)
    s["leg_rate_demand"][1, 3] = 0.9e6
    assert judged(s) == set()


def test_rate_beyond_the_limit_for_too_long(judged, quiet):
    """The demand runs away at 0.6 m/s where 0.5 m/s are allowed: the time beyond the limit, to the tick."""
    for seconds, expected in ((0.2, True), (2.0, False)):
        s = quiet(900)
        s["leg_demand"][:, 0] += np.concatenate([0.25 * 10 * (PERIOD * np.arange(200)) ** 2, 0.1 + 0.6 * PERIOD * np.arange(1, 701)])
        found = judged(s, rate_excess_s=seconds, following_max_m=1.0, following_time_s=10.0)
        assert ("rate_limit" in found) is expected
        if expected:
            beyond = (s["setpoint_status"] >> 8 & 1).astype(bool)
            begin = int(np.argmax(beyond))
            assert s["trip_tick"][-1] - begin == pytest.approx(seconds / PERIOD, abs=1.01)


def test_the_limits_of_rate_and_acceleration_are_those_of_the_legs(judged, quiet):
    """0.499 m/s and 9.9 m/s2 from frame to frame are followed; 0.501 m/s and 10.1 m/s2 are clipped."""
    for rate, acceleration, clipped in ((0.499, 9.9, 0), (0.501, 9.9, 1 << 8), (0.499, 10.1, 1 << 16)):
        rates = np.minimum(acceleration * PERIOD * np.arange(1, 301), rate)
        s = quiet(300)
        s["leg_demand"][:, 0] += np.cumsum(rates) * PERIOD
        judged(s, rate_excess_s=10.0, following_max_m=1.0, following_time_s=10.0)
        seen = int(np.bitwise_or.reduce(s["setpoint_status"]))
        assert (seen & clipped == clipped) if clipped else seen == 0, (rate, acceleration)


WORDS = [
    ("setpoint_kinematics_status", 1, "workspace"), ("setpoint_kinematics_status", 2, "near_singular"),
    ("setpoint_kinematics_status", 4, "setpoint_not_finite"), ("setpoint_kinematics_status", 24, None),
    ("forward_kinematics_status", 1, "platform_unknown"), ("forward_kinematics_status", 2, "platform_unknown"),
    ("forward_kinematics_status", 4, None),
    ("dynamics_status", 1, "divergence"), ("dynamics_status", 2, "divergence"), ("dynamics_status", 4, None),
    ("dynamics_status", 256, "divergence"),
    ("dynamics_status", 64, "arm_overload"), ("dynamics_status", 0xFFFFFEB8, None),
    ("guidance_fault", 1, "operator_stop"), ("guidance_fault", 2, "hand_controller_stale"), ("guidance_fault", 4, None),
    ("guidance_fault", 8, "programme_not_reached"), ("guidance_fault", 16, "record_lost"), ("guidance_fault", 32, "record_required"),
    ("guidance_fault", 128, "sequence_interval"),
    ("compensation_status", 4, "compensator_clipped"), ("compensation_status", 0xFFFFFFFB, None),
]  # fmt: skip


@pytest.mark.parametrize(("field", "word", "fault"), WORDS, ids=[f"{row[0]}-{row[1]}" for row in WORDS])
def test_each_bit_of_the_other_stages(judged, quiet, field, word, fault):
    s = quiet(3)
    s[field][1] = word
    assert judged(s) == ({fault} if fault else set())
    assert bool(s["trip_tick"][-1] == 1) is (fault in STOP) and (s["faults"][-1] == FAULT_MASKS[fault] if fault else True)


@pytest.mark.parametrize("word", [1, 2, 8, 16, 32])
def test_what_the_guidance_says_counts_in_idle_too(judged, quiet, word):
    s = quiet(3, phase=PHASE["idle"])
    s["guidance_fault"][1] = word
    assert len(judged(s)) == 1


@pytest.mark.parametrize(("field", "key", "limit", "beyond", "fault"), [
    ("condition", {"condition_max": 30.0}, 30.0, np.nextafter(30.0, 99), "near_singular"),
    ("condition", {"condition_max": 30.0}, 30.0, np.nan, "near_singular"),
    ("periods", {"skipped_periods_max": 50}, 50, 51, "loop_overrun"),
    ("supervisor_age_ns", {"supervisor_s": 5.0}, 5_000_000_000, 5_000_000_001, "supervisor_silent"),
])  # fmt: skip
def test_limits_of_single_numbers(judged, quiet, field, key, limit, beyond, fault):
    for value, expected in ((limit, set()), (beyond, {fault})):
        s = quiet(2)
        s[field][1] = value
        assert judged(s, **key) == expected


# ------------------------------------------------------------------------------------------------------------------- trips


def test_faults_are_latched_and_the_first_stop_is_the_trip(judged, quiet):
    s = quiet(10)
    s["wrench_fault"][2] = SENSOR["busy"]
    s["wrench_fault"][4] = SENSOR["saturated"]
    s["wrench_fault"][6] = SENSOR["stale"]
    judged(s)
    assert [names(word) for word in s["faults"][[1, 2, 4, 6, 9]]] == [
        set(), {"sensor_busy"}, {"sensor_busy", "sensor_saturated"}, *2 * [{"sensor_busy", "sensor_saturated", "sensor_stale"}],
    ]  # fmt: skip
    assert s["trip_tick"].tolist() == 4 * [-1] + 6 * [4]


def test_parameters_that_contradict_the_legs_are_refused(stage):
    stage(braking_m_s2=10.0)
    with pytest.raises(ValueError, match="above the legs' limit"):
        stage(braking_m_s2=10.0001)
