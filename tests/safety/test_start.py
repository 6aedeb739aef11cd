"""Nothing of ours is sent before the legs are known; a start that cannot be made is a named fault and exit 3."""

import struct

import numpy as np
import pytest

from drivers.drives import cia402, cia408
from hil_server.config import load_test
from hil_server.log.reader import read_log
from hil_server.run.session import Options, simulate
from rt_kernels.layout import BITS, CODES, SAMPLE_DTYPE
from tests.drivers.library_drives import LibraryDrives
from tests.safety.conftest import PERIOD, names
from tests.system.line_runs import QUICK, phases, run_line

STATE, DRIVE = CODES["safety_state"], BITS["drive_status"]
NOT_FRESH = ("no_data", "stale", "lost", "corrupt", "device_fault", "emergency", "bus_fault", "heartbeat_lost")
SHIPPED = ["docking.toml", "elastic_contact.toml", "identify.toml", "virtual_docking.toml", "virtual_docking_ring.toml", "berthing.toml"]


def idle(quiet, n, **fields):
    return quiet(n, phase=CODES["phase"]["idle"], leg_demand=0.0, **fields)


# ---------------------------------------------------------------------------------------------------------- the stage alone


def test_starts_in_the_second_good_tick_at_the_measured_legs(stage, quiet):
    s = idle(quiet, 4)
    s["measured_leg"] += np.random.default_rng(1).uniform(-0.015, 0.015, (4, 6))
    measured = s["measured_leg"].copy()
    stage(leg_jump_m=0.0).through(s)
    assert s["safety_state"].tolist() == [STATE["not_armed"]] + 3 * [STATE["following"]]
    # shown: what the drives report; then the legs of the start, bit by bit
    assert np.array_equal(s["leg_setpoint"][:2], measured[:2]) and np.array_equal(s["leg_setpoint"][2:], measured[[1, 1]])
    assert not s["leg_rate_setpoint"].any() and not s["faults"].any()


BAD_LEGS = {
    "below zero": (-0.7, "start_legs_unknown"),
    "zero": (0.0, "start_legs_unknown"),
    "no number": (np.nan, "start_legs_unknown"),
    "infinite": (np.inf, "start_legs_unknown"),
    "just short of the stroke": (np.nextafter(3.0, 0.0), "start_legs_unknown"),
    "just beyond the stroke": (np.nextafter(5.0, 9.0), "start_legs_unknown"),
    "at the end of the stroke": (3.0, "start_pose_disagrees"),
    "21 mm off": (None, "start_pose_disagrees"),
}


@pytest.mark.parametrize("leg", [0, 3, 5])
@pytest.mark.parametrize("what", BAD_LEGS)
def test_a_leg_that_cannot_be_believed_is_a_fault_when_time_is_over(stage, quiet, what, leg):
    value, fault = BAD_LEGS[what]
    s = idle(quiet, 500)
    s["measured_leg"][:, leg] = s["measured_leg"][:, leg] + 0.021 if value is None else value
    told = np.where(np.isfinite(s["measured_leg"]), s["measured_leg"], 0.0)
    stage(arming_s=0.1).through(s)
    assert (s["safety_state"] == STATE["not_armed"]).all()
    assert np.array_equal(s["leg_setpoint"], told) and not s["leg_rate_setpoint"].any()
    first = int(np.flatnonzero(s["faults"])[0])
    assert first in (99, 100, 101) and names(s["faults"][first]) == {fault} and s["trip_tick"][-1] == first


def test_the_tolerance_of_the_start(stage, quiet):
    for off, arms in ((0.0199, True), (0.0201, False), (-0.0199, True), (-0.0201, False)):
        s = idle(quiet, 3)
        s["measured_leg"][:, 2] += off
        stage().through(s)
        assert bool(s["safety_state"][-1] == STATE["following"]) is arms, off
    s = idle(quiet, 3)
    s["measured_leg"] = [3.3, 3.4, 3.5, 3.6, 3.7, 3.8]
    limits = {"start_leg_m": [3.3, 3.4, 3.5, 3.6, 3.7, 3.8049], "start_tolerance_m": 0.005}
    stage(limits=limits).through(s)
    assert s["safety_state"][-1] == STATE["following"]
    with pytest.raises(ValueError, match="start_leg_m"):
        stage(limits={"start_leg_m": [3.3, 3.4, 3.5, 3.6, 3.7, 2.9]})


@pytest.mark.parametrize("bit", NOT_FRESH)
def test_legs_that_are_not_fresh_do_not_start(stage, quiet, bit):
    s = idle(quiet, 200)
    s["drive_status"][:, 4] = DRIVE[bit]
    stage(arming_s=0.1, drive_missing_periods=1000, damaged_max_per_s=1e4, drive_lost_max_per_s=1e4).through(s)
    assert (s["safety_state"] == STATE["not_armed"]).all()
    if bit in ("no_data", "stale", "lost", "corrupt"):
        assert names(s["faults"][-1]) == {"start_legs_unknown"}
    else:
        assert s["trip_tick"][-1] == 0


@pytest.mark.parametrize("status", [1, 2, 4])
def test_legs_that_fit_no_pose_do_not_start(stage, quiet, status):
    s = idle(quiet, 200, forward_kinematics_status=status)
    stage(arming_s=0.1).through(s)
    assert (s["safety_state"] == STATE["not_armed"]).all() and names(s["faults"][-1]) == {"start_pose_disagrees"}


def test_two_good_ticks_running_are_needed(stage, quiet):
    s = idle(quiet, 100)
    s["measured_leg"][::2, 1] = np.nan
    stage(arming_s=1.0).through(s)
    assert (s["safety_state"] == STATE["not_armed"]).all()


def test_waits_for_legs_that_come_late(stage, quiet):
    s = idle(quiet, 700)
    s["drive_status"][:450, 2] = DRIVE["lost"]
    stage(arming_s=0.5, drive_lost_max_per_s=1e4).through(s)
    assert s["safety_state"][450] == STATE["not_armed"] and s["safety_state"][451] == STATE["following"] and not s["faults"].any()


@pytest.mark.parametrize(("bits", "fault"), [(1, "operator_stop"), (32, "record_required")])
def test_a_trip_before_the_start_ends_the_starting(stage, quiet, bits, fault):
    s = idle(quiet, 20)
    s["guidance_fault"][0] = bits
    stage().through(s)
    assert (s["safety_state"] == STATE["not_armed"]).all() and names(s["faults"][-1]) == {fault} and s["trip_tick"][-1] == 0


def test_a_note_does_not(stage, quiet):
    s = idle(quiet, 20)
    s["guidance_fault"][0] = 16
    stage().through(s)
    assert s["safety_state"][-1] == STATE["following"] and names(s["faults"][-1]) == {"record_lost"} and s["trip_tick"][-1] == -1


# --------------------------------------------------------------------------------------------------------- the whole line


@pytest.mark.parametrize("programme", SHIPPED)
def test_every_shipped_stand_starts_from_its_configuration(programme):
    records = run_line(config=load_test(f"stand_configs/programmes/{programme}", ["test.duration_max_s=0.02"]))
    assert records["safety_state"][:2].tolist() == [STATE["not_armed"], STATE["following"]] and not records["faults"].any()


def test_the_msfc_stand_starts_too():
    records = run_line(("test.stand=stands/msfc_6dof.toml", "test.duration_max_s=0.02"))
    assert records["safety_state"][1] == STATE["following"]


@pytest.mark.parametrize(("offset", "fault"), [(-6.0, "start_legs_unknown"), (1.5, "start_legs_unknown"), (-0.05, "start_pose_disagrees")])
def test_a_wrong_zero_of_a_leg_ends_with_exit_3_and_no_leg_has_moved(tmp_path, offset, fault):
    faults = f"stand.virtual.faults=[{{fault='transducer_offset', at_s=0.0, index=1, value={offset}}}]"
    summary = simulate(load_test(None, [*QUICK, faults, "guidance.fault_s=0.1", "stand.virtual.leg_noise_m=0.0"]),
                       Options(out=str(tmp_path), quiet=True, report=False))  # fmt: skip
    assert summary["exit_code"] == 3 and summary["end"] == "tripped" and fault in summary["faults"]
    r = read_log(summary["log"]).records
    assert (r["safety_state"] == STATE["not_armed"]).all() and np.ptp(r["measured_leg"], axis=0).max() < 1e-9
    assert phases(r) == ["idle", "fault", "ended"]


def test_legs_that_come_late_start_the_run_and_nothing_jumps():
    """A drive answers from 0.3 s on: the programme waits, and the first setpoint is where the leg is."""
    faults = "stand.virtual.faults=[{fault='drive_silent', at_s=0.0, index=3}, {fault='clear', at_s=0.3}]"
    records = run_line((*QUICK, faults, "test.duration_max_s=0.5", "safety.drive_missing_periods=1000"))
    k = int(np.argmax(records["safety_state"] == STATE["following"]))
    assert 300 <= k <= 302 and set(records["phase"][: k + 1]) == {CODES["phase"]["idle"]} and records["phase"][-1] != CODES["phase"]["idle"]
    assert np.array_equal(records["leg_setpoint"][k], records["measured_leg"][k])
    assert np.abs(np.diff(records["leg_setpoint"][k:], axis=0)).max() < 0.4 * PERIOD and not records["faults"].any()


# --------------------------------------------------------------------------------------------------------------- the wire


@pytest.mark.parametrize(("kind", "port"), [(402, cia402.Cia402Port), (408, cia408.Cia408Port)])
def test_before_the_start_the_drives_get_the_positions_they_reported(kind, port):
    """Whatever stands in leg_setpoint: counts as the drive gave them, to the last one."""
    peer = LibraryDrives(kind)
    try:
        axes = port(links=peer.link, zero_m=[-6.0, 0.3, 1.0, 1.0, 1.0, 1.0], timeout_s=2.0, heartbeat_ms=20)
        peer.ports.append(axes)
        axes.open()
        peer.let_go()
        sample = np.zeros(1, SAMPLE_DTYPE)
        sample["safety_state"] = STATE["not_armed"]
        for setpoint in (0.0, 3.9, np.nan, 1e9):
            axes.read(sample)
            peer.take()
            sample["leg_setpoint"], sample["leg_rate_setpoint"] = setpoint, 0.0
            axes.write(sample)
            assert [struct.unpack("<Hi", data)[1] for _, data in peer.take()] == [100, 200, 300, 400, 500, -600]
    finally:
        peer.close()
