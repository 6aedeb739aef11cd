"""The shipped docking in process: phases, capture, bumpless closing, commands, elastic contact, the test programme's way."""

import numpy as np
import pytest

from rt_kernels.layout import BITS, CODES
from tests.system.line_runs import QUICK, fault_names, phases, run_line

PHASE, COMMAND, END = CODES["phase"], CODES["command"], CODES["end_cause"]


@pytest.fixture(scope="module")
def docking():
    """The shipped docking, in process."""
    return run_line(QUICK)


def test_the_run_goes_through_its_phases_and_captures(docking):
    assert phases(docking) == ["idle", "position", "approach", "closing", "contact", "finish", "retreat", "park", "ended"]
    last = docking[-1]
    assert last["end_cause"] == END["captured"] and last["capture_time"] > last["first_contact_time"] > 0
    assert not fault_names(last["faults"]) & {"force_limit", "following_error", "stroke_limit", "energy_gain"}


def test_first_contact_comes_when_and_where_the_initial_conditions_say(docking):
    closing = docking["time_ns"][docking["phase"] == PHASE["closing"]][0] * 1e-9
    assert abs(docking[-1]["first_contact_time"] - closing - 0.5) < 0.03


def test_closing_the_loop_makes_no_step(docking):
    k = int(np.flatnonzero(docking["phase"] == PHASE["closing"])[0])
    # second differences of the setpoints: what the noise of the force does through the lead, nothing more
    assert np.abs(np.diff(docking["leg_setpoint"][k - 3 : k + 50], n=2, axis=0)).max() < 1e-6
    # the model starts from the achieved pose, not from the programmed one
    taken = docking[docking["motion"] == CODES["motion"]["close_loop"]]
    assert len(taken) == 1
    np.testing.assert_array_equal(taken["X_TA"], taken["X_TA_measured"])


def test_setpoints_stay_inside_the_legs_limits(docking):
    rate = np.diff(docking["leg_setpoint"], axis=0) / 1e-3
    assert np.abs(rate).max() <= 0.5 + 1e-9
    assert np.abs(np.diff(rate, axis=0)).max() / 1e-3 <= 10.0 + 1e-6


def test_momentum_is_kept_in_the_closed_loop(docking):
    free = docking[(docking["phase"] == PHASE["contact"]) & (docking["sequence"] == 0)]
    p = free["momentum"]
    assert np.abs(p - p[0])[:, :3].max() <= 1e-12 * np.linalg.norm(p[0][:3]) * 10


@pytest.mark.parametrize("when, expected", [(0.4, "position"), (3.2, "contact")])
def test_park_ends_the_run_from_any_phase(when, expected):
    records = run_line(QUICK, at=[(when, lambda block: block.push_command(COMMAND["park"], source=1))])
    assert records[-1]["end_cause"] == END["stopped"] and phases(records)[-1] == "ended"
    k = int(np.flatnonzero(records["command_code"] == COMMAND["park"])[0])
    assert records["command_sequence"][k] == 3
    assert phases(records[:k])[-1] in (expected, "closing", "approach")
    # parked where the run started from
    np.testing.assert_allclose(records["X_TA_measured"][-1][:3], records["X_TA_measured"][0][:3], atol=1e-3)


def test_hold_and_resume_before_the_loop_is_closed():
    actions = [(0.5, lambda b: b.push_command(COMMAND["hold"])), (1.5, lambda b: b.push_command(COMMAND["resume"]))]
    records = run_line(QUICK, at=actions)
    order = phases(records)
    assert "hold" in order and order[-1] == "ended" and records[-1]["end_cause"] == END["captured"]
    k = np.flatnonzero(records["phase"] == PHASE["hold"])
    still = records["leg_setpoint"][k[-200:]]
    assert np.abs(still - still[0]).max() < 1e-6


def test_abort_trips():
    records = run_line(QUICK, at=[(0.5, lambda b: b.push_command(COMMAND["abort"]))])
    assert "operator_stop" in fault_names(records[-1]["faults"]) and records[-1]["end_cause"] == END["tripped"]


def test_no_capture_in_ten_seconds_reverses_the_thrust():
    """The sequence: press thrust from first contact, reversed after 10 s without capture (docking digest N7)."""
    records = run_line((*QUICK, "mechanism.capture_x_m=5.0", "guidance.contact_max_s=16.0", "guidance.finish_on_capture=true"))
    first = records[-1]["first_contact_time"]
    pressing = records[(records["sequence"] == CODES["sequence"]["press"])]
    retreat = records[(records["sequence"] == CODES["sequence"]["retreat"])]
    # pressed until the head has been on the bottom, captured or not
    before = pressing["mechanism_state"] & BITS["mechanism_signal"]["DK2"] == 0
    assert before.any() and not before.all()
    assert (pressing["control_A"][before, 0] == 300.0).all() and (pressing["control_A"][~before, 0] == 0.0).all()
    assert abs(retreat["time_ns"][0] * 1e-9 - first - 10.0) < 0.01
    held = retreat[retreat["phase"] == PHASE["contact"]]
    assert (held["control_A"][:, 0] == -300.0).all()


def test_elastic_contact_without_delay_returns_the_energy():
    """Ideal drive, no delay, linear spring: the relative kinetic energy comes back within 0.1 %."""
    overrides = (
        *QUICK,
        "mechanism.part=bumper", "mechanism.stiffness_n_per_m=100000.0", "mechanism.contact_point_m=[0.6, 0.0, 0.0]",
        "stand.virtual.drive_frequency_hz=0.0", "stand.virtual.drive_delay_s=0.0", "stand.virtual.setpoint_delay_ticks=0",
        "stand.virtual.measured_leg_delay_ticks=0", "stand.virtual.leg_noise_m=0.0", "stand.virtual.leg_resolution_m=0.0",
        "stand.virtual.force_noise_n=0.0", "stand.virtual.moment_noise_n_m=0.0",
        "compensation.part=none", "active_vehicle.thrust_n=0.0", "guidance.contact_max_s=2.0",
        "initial_conditions.velocity_x_m_s=0.05", "initial_conditions.lateral_y_m=0.0", "initial_conditions.lateral_z_m=0.0",
        "initial_conditions.yaw_deg=0.0", "initial_conditions.pitch_deg=0.0", "initial_conditions.velocity_z_m_s=0.0",
        "safety.condition_max=60.0", "guidance.close_before_s=0.8", "stand.platform.leg_acceleration_max_m_s2=1000.0",
    )  # fmt: skip
    records = run_line(overrides)
    loop = records[records["phase"] == PHASE["contact"]]
    touching = np.flatnonzero(np.abs(loop["F_T"][:, 0]) > 1.0)
    before, after = loop["kinetic_energy"][touching[0] - 2], loop["kinetic_energy"][touching[-1] + 2]
    assert loop["kinetic_energy"].min() < 0.05 * before  # it did come to rest in between
    assert abs(after / before - 1.0) < 1e-3
