"""Every fault that the virtual stand can have, in process: the right bit, in time, a trip that decelerates inside the limits."""

import numpy as np
import pytest

from drivers.simulated.injections import IN_PROCESS
from rt_kernels.codes import FAULT_MASKS
from rt_kernels.layout import CODES
from tests.system.line_runs import QUICK, STOPPING, fault_names, run_line

STRICT = ("safety.sensor_missing_periods=1", "safety.drive_missing_periods=1", "safety.signals_missing_periods=1")
AT = 0.3
# fault, index, value -> bit; ticks from what the sample shows to the bit
MATRIX = [
    ("sensor_silent", 0, 0.0, "sensor_no_data"),
    ("sensor_stale", 0, 0.0, "sensor_stale"),
    ("sensor_lost", 0, 0.0, "sensor_lost"),
    ("sensor_corrupt", 0, 0.0, "sensor_corrupt"),
    ("sensor_device_fault", 0, 0.0, "sensor_device_fault"),
    ("sensor_busy", 0, 0.0, "sensor_busy"),
    ("gauge_broken", 2, 0.0, "sensor_broken_wire"),
    ("gauge_saturated", 1, 2147483647.0, "sensor_saturated"),
    ("external_force", 0, 5600.0, "force_limit"),
    ("external_force", 4, 3600.0, "moment_limit"),
    ("sensor_bias", 1, 9000.0, "sensor_out_of_range"),
    ("sensor_bias", 1, 5.0, "tare_drift"),
    ("sensor_bias", 1, 30.0, "tare_wrong"),
    ("sensor_drift", 0, 100.0, "tare_wrong"),
    ("sensor_frozen", 0, 0.0, "sensor_frozen"),
    ("drive_silent", 3, 0.0, "drive_no_data"),
    ("drive_fault", 0, 0.0, "drive_device_fault"),
    ("drive_emergency", 0, 0.0, "drive_device_fault"),
    ("drive_disabled", 5, 0.0, "drive_not_enabled"),
    ("drive_following_error", 1, 0.0, "following_error"),
    ("drive_limit_touched", 1, 0.0, "drive_limit_touched"),
    ("drive_local", 4, 0.0, "drive_local_control"),
    ("bus_fault", 0, 0.0, "bus_fault"),
    ("drive_lost", 2, 0.0, "drive_lost"),
    ("drive_corrupt", 2, 0.0, "bus_fault"),
    ("drive_not_following", 3, 0.0, "drive_not_following"),
    ("drive_heartbeat_lost", 5, 0.0, "drive_heartbeat_lost"),
    ("leg_stuck", 2, 0.0, "following_error"),
    ("leg_slow", 2, 0.2, "following_error"),
    ("transducer_offset", 0, 0.05, "leg_jump"),
    ("leg_runaway", 4, 0.2, "following_error"),
    ("transducer_offset", 0, 5.0, "leg_jump"),
    ("signals_silent", 0, 0.0, "signals_no_data"),
    ("chain_tripped", 0, 0.0, "analogue_chain"),
    ("chain_unhealthy", 0, 0.0, "analogue_chain"),
    ("analogue_chain_unread", 0, 0.0, "analogue_chain"),
    ("emergency_stop", 0, 0.0, "analogue_chain"),
    ("guard_open", 0, 0.0, "analogue_chain"),
    ("chain_discrepant", 1, 0.0, "chain_discrepancy"),
    ("unit_fault", 1, 0.0, "hydraulic_unit"),
]
WIRED = tuple(f"stand.limits.{key}=true" for key in ("emergency_stop", "guard", "hydraulic_unit"))
# show in a contact only, against a prediction: test_wrong_sensors
IN_CONTACT = {"sensor_gain", "sensor_exchanged"}


def test_the_matrix_names_every_injectable_fault():
    assert {row[0] for row in MATRIX} | IN_CONTACT == set(IN_PROCESS)


@pytest.mark.parametrize("name, index, value, bit", MATRIX, ids=[f"{r[0]}-{r[3]}" for r in MATRIX])
def test_fault_sets_its_bit_and_the_legs_decelerate_inside_limits(name, index, value, bit):
    wired = WIRED if name in ("emergency_stop", "guard_open", "chain_discrepant", "unit_fault") else ()
    records = run_line((*QUICK, *STRICT, *wired, f"stand.virtual.faults=[{{fault='{name}', at_s={AT}, index={index}, value={value}}}]",
                        "guidance.fault_s=0.3", "test.duration_max_s=8.0"))  # fmt: skip
    assert bit in fault_names(records[-1]["faults"])
    first = int(np.flatnonzero(records["faults"] & FAULT_MASKS[bit])[0])
    assert records["time_ns"][first] * 1e-9 >= AT
    shown = _first_shown(records, bit)
    if shown is not None:
        assert first - shown <= 2
    if bit not in STOPPING:
        assert records[-1]["trip_tick"] == -1
        return
    assert records[-1]["trip_tick"] == records["tick"][first] or records[-1]["trip_tick"] < records["tick"][first]
    assert records[-1]["end_cause"] == CODES["end_cause"]["tripped"]
    # at rest at the end, and never faster to brake than allowed; no jump of a setpoint
    rate = np.diff(records["leg_setpoint"], axis=0) / 1e-3
    assert np.abs(rate[-1]).max() == 0.0
    after = rate[first:]
    assert np.abs(np.diff(after, axis=0)).max() / 1e-3 <= 10.0 + 1e-6


def _first_shown(records, bit):
    """First tick whose inputs show a fault that acts at once (status words); None where a time or a rate has to pass."""
    status = {"sensor_no_data": 0, "sensor_stale": 1, "sensor_device_fault": 6, "sensor_busy": 7}
    drive = {"drive_no_data": 0, "drive_not_enabled": 5, "drive_limit_touched": 7, "drive_local_control": 8, "bus_fault": 9,
             "drive_not_following": 13, "drive_heartbeat_lost": 14}  # fmt: skip
    if bit in status:
        return int(np.flatnonzero((records["wrench_status"] >> status[bit]) & 1)[0])
    if bit in drive:
        found = np.flatnonzero(((records["drive_status"] >> drive[bit]) & 1).any(axis=1))
        return int(found[0]) if len(found) else None  # a bus fault may come of a rate of damaged frames, too
    if bit == "drive_device_fault":
        return int(np.flatnonzero(((records["drive_status"] >> 4) & 1 | (records["drive_status"] >> 11) & 1).any(axis=1))[0])
    if bit == "signals_no_data":
        return int(np.flatnonzero(records["signal_status"])[0])
    if bit == "analogue_chain":
        return int(np.flatnonzero(records["analogue_chain"] != records["analogue_chain"][0])[0])
    if bit in ("sensor_saturated", "sensor_out_of_range", "sensor_broken_wire"):
        return int(np.flatnonzero(records["wrench_channel_fault"])[0])
    if bit == "force_limit":
        return int(np.flatnonzero((np.abs(records["F_S"][:, :3]) > 5000.0).any(axis=1))[0])
    if bit == "moment_limit":
        return int(np.flatnonzero((np.abs(records["F_S"][:, 3:]) > 3000.0).any(axis=1))[0])
    if bit == "platform_unknown":
        return int(np.flatnonzero(records["forward_kinematics_status"] & 3)[0])
    return None
