"""Small-signal response of a hydraulic stand: against the tables measured on an independent simulation of the nonlinear machine (sine runs
of 0.5 mm without overlap and Coulomb friction), and against closed forms."""

from pathlib import Path

import numpy as np
import pytest

from hil_server.line.stand_response import StandResponse, root, speed_gain, valve_gain
from rt_kernels.extends import read_tables
from rt_kernels.stewart.platform import Platform

STAND = Path("stand_configs/stands/docking_stand.toml")
KEYS = {
    "piston_area_a_m2": 6.2e-3, "piston_area_b_m2": 6.2e-3, "dead_volume_a_m3": 4e-4, "dead_volume_b_m3": 4e-4,
    "bulk_modulus_pa": 1.4e9, "leakage_internal_m3_per_s_pa": 2e-13, "leakage_external_m3_per_s_pa": 0.0, "supply_pressure_pa": 21e6,
    "tank_pressure_pa": 0.0, "valve_flow_m3_per_s": 200 / 6e4, "valve_pressure_drop_pa": 7e6, "valve_laminar_pressure_pa": 1e5,
    "valve_frequency_hz": 90.0, "valve_damping": 0.8, "friction_viscous_n_s_per_m": 2000.0, "position_gain_per_s": 40.7,
    "velocity_feedforward": 0.136, "pressure_gain_per_pa": 6e-8, "pressure_highpass_hz": 0.5, "drive_delay_s": 0.0,
    "platform_mass_kg": 2500.0, "platform_com_m": [0.15, 0.0, 0.0], "platform_inertia_kg_m2": np.diag([3400.0, 2100.0, 2100.0]).tolist(),
    "cylinder_mass_kg": 180.0, "cylinder_com_m": 0.9, "cylinder_inertia_kg_m2": 232.0, "rod_mass_kg": 70.0, "rod_com_m": 1.0,
    "rod_inertia_kg_m2": 28.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def platform():
    return Platform.from_dict(read_tables(STAND)["platform"])


@pytest.fixture(scope="module")
def neutral(platform):
    return StandResponse(KEYS, platform)


def db_and_degrees(h):
    return 20 * np.log10(np.abs(h)), np.degrees(np.angle(h))


# hydraulic-stand notes, table of section 4: dB and degrees at 1, 3, 5, 7, 10, 15, 20 Hz
SINE_RUNS = {
    0: ((-0.03, -7.6), (-0.23, -22.6), (-0.60, -37.1), (-1.10, -50.9), (-2.00, -70.3), (-3.68, -99.7), (-5.50, -127)),
    1: ((0.17, -7.1), (1.86, -25.3), (4.81, -64.7), (2.23, -128), (-6.1, -165), (-14.7, 175), (-20, 162)),
    3: ((-0.01, -7.6), (-0.09, -22.8), (-0.27, -38.2), (-0.58, -53.8), (-1.35, -77.3), (-3.5, -114), (-6.5, -146)),
}


@pytest.mark.parametrize("axis", SINE_RUNS)
def test_response_is_that_of_sine_runs(neutral, axis):
    """0.02 dB and 0.7 degrees where the table has the digits."""
    f = np.array([1.0, 3, 5, 7, 10, 15, 20])
    for hz, h, (db, degrees) in zip(f, neutral.response(f)[:, axis, axis], SINE_RUNS[axis], strict=True):
        found_db, found_degrees = db_and_degrees(h)
        assert found_db == pytest.approx(db, abs=0.02 if hz < 10 or axis == 0 else 0.2)
        assert found_degrees == pytest.approx(degrees, abs=0.7 if hz < 10 or axis == 0 else 1.0)


def test_directions_across_go_together(neutral):
    """Y and Z, about Y and about Z are alike on this geometry; X goes with nothing, Y with about Z."""
    T = neutral.response(5.0)
    assert abs(T[1, 1] - T[2, 2]) < 5e-3 and abs(T[4, 4] - T[5, 5]) < 5e-3
    assert np.abs(np.delete(T[0], 0)).max() < 1e-4
    assert abs(T[1, 5]) > 0.01


def test_compliance_is_that_of_loaded_runs(neutral):
    """mm/kN along X and Y at 0.1, 0.3, 1, 3, 5, 10, 20, 30 Hz; the tables' last digit."""
    f = np.array([0.1, 0.3, 1, 3, 5, 10, 20, 30])
    found = np.abs(neutral.compliance(f)) * 1e6
    assert found[:, 0, 0] == pytest.approx([0.010, 0.027, 0.047, 0.050, 0.049, 0.041, 0.027, 0.016], abs=0.00055)
    assert found[:, 1, 1] == pytest.approx([0.055, 0.143, 0.253, 0.339, 0.479, 0.136, 0.027, 0.011], abs=0.0006)


def test_oil_springs(platform):
    """Sway, about X, heave, pitch at three heights: with closed valves and nothing damped what swings is the platform on its oil."""
    off = dict.fromkeys(("position_gain_per_s", "velocity_feedforward", "pressure_gain_per_pa", "friction_viscous_n_s_per_m",
                         "leakage_internal_m3_per_s_pa"), 0.0)  # fmt: skip

    def modes(dx=0.0, **keys):
        X = np.array(platform.neutral_pose)
        X[0] += dx
        roots = np.linalg.eigvals(StandResponse(KEYS | off | keys, platform, X).state_space[0])
        return np.sort(roots.imag[(np.abs(roots.real) < 1e-3) & (roots.imag > 1.0)]) / 2 / np.pi

    assert modes() == pytest.approx([10.93, 10.93, 21.87, 24.83, 32.26, 32.26], abs=0.015)
    assert modes(-0.6) == pytest.approx([14.1, 14.1, 26.4, 28.1, 34.3, 34.3], abs=0.06)
    assert modes(0.6) == pytest.approx([11.1, 11.1, 22.2, 29.6, 38.5, 38.5], abs=0.06)
    assert modes(bulk_modulus_pa=0.7e9)[0] == pytest.approx(7.7, abs=0.06)


def test_mass_weight_and_valve(neutral):
    """Mass with the legs along and across; load pressure of the weight; K and K_x."""
    assert np.diag(neutral.mass_matrix)[:3] == pytest.approx([2896, 2846, 2846], abs=0.5)
    assert neutral.leg_loads / KEYS["piston_area_a_m2"] == pytest.approx([0.919e6] * 6, rel=1e-3)
    assert valve_gain(KEYS) == pytest.approx(1.782e-6, rel=1e-3) and speed_gain(KEYS) == pytest.approx(0.931, abs=5e-4)
    assert root(1e7, 1e5) == pytest.approx(np.sqrt(1e7), rel=1e-4) and root(0.0, 1e5) == 0.0


def test_lead_inverts_the_response_at_low_frequency(platform, neutral):
    """In its band the lead leaves what it says and no more; what else is late is led too; along Y it is another one."""
    lead = neutral.lead((0.5, 3.0))
    f = np.geomspace(0.5, 3.0, 60)
    s = (2j * np.pi * f)[:, None, None]
    scale = np.array([1.0] * 3 + [platform.radius] * 3)
    rest = scale[:, None] * (neutral.response(f) @ (np.eye(6) + s * lead.L1 + s * s * lead.L2)) / scale - np.eye(6)
    assert np.abs(rest).max(axis=(0, 1)) == pytest.approx(lead.left)
    assert lead.left[0] < 0.005 and lead.left[1] < 0.03
    # lag of the drive along X at low frequency, 21.2 ms
    assert lead.L1[0, 0] == pytest.approx(21.2e-3, abs=0.3e-3)
    later = neutral.lead((0.5, 3.0), delay_s=2e-3)
    assert (later.L1 - lead.L1)[0, 0] == pytest.approx(2e-3, abs=0.1e-3)
    assert lead.L2[1, 1] > 3 * lead.L2[0, 0]


def test_drive_delay_turns_the_phase_and_nothing_else(platform, neutral):
    late = StandResponse(KEYS | {"drive_delay_s": 3e-3}, platform)
    assert late.response(7.0) == pytest.approx(neutral.response(7.0) * np.exp(-2j * np.pi * 7.0 * 3e-3))
    assert late.compliance(7.0) == pytest.approx(neutral.compliance(7.0))


def test_force_of_the_legs_carries_the_motion(neutral):
    """J' F = M A + K_g q at every frequency: the oil's pressures of the response, less friction, against the rigid body."""
    A, B, B_rate, _ = neutral.state_space
    for hz in (1.0, 8.0, 20.0):
        s = 2j * np.pi * hz
        z = np.linalg.solve(s * np.eye(42) - A, B + s * B_rate)
        q, V, p_a, p_b = (z[at : at + 6] for at in (0, 6, 12, 18))
        assert q == pytest.approx(neutral.response(hz))
        force = KEYS["piston_area_a_m2"] * p_a - KEYS["piston_area_b_m2"] * p_b - KEYS["friction_viscous_n_s_per_m"] * neutral.J @ V
        needed = (s * s * neutral.mass_matrix + neutral.weight_stiffness) @ q
        assert np.abs(neutral.J.T @ force - needed).max() < 1e-8 * np.abs(needed).max()
