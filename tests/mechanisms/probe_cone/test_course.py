"""Course of a docking with the central unit, through the line on the ideal stand: numbers of the text that only a docking shows."""

import numpy as np
import pytest

from tests.docking_course import first, signal, stops
from tests.mechanisms.probe_cone.shipped import DECLARED, SLIP_TRAVEL, docking


def peaks(out):
    """Greatest and least of the six components of the contact wrench, (12,)."""
    return np.concatenate([out["F_T"].max(axis=0), out["F_T"].min(axis=0)])


def test_N1_same_run_with_two_step_sizes():
    """0.5 ms ticks with four and with eight sub-steps agree within 1 %; two are longer than `substep_max_s`."""
    results = []
    for substeps in (4, 8):
        out = docking(channels=("energy_lost", "stroke"), press=0.0, duration=8.0, overrides=(f"mechanism.substeps={substeps}",))
        capture = first(out, signal(out, "DSG")) - out["first_contact_time"][-1]
        results.append((peaks(out)[0], peaks(out)[6], out["stroke"].min(), out["energy_lost"][-1], capture))
    assert results[0] == pytest.approx(results[1], rel=0.01)


PRESSED = ("penetration", "over_limit", "stroke", "clutch_slip")


def test_N2_stiffness_ratio_and_penetration_limit():
    v = {k: p.default for k, p in DECLARED.items()}
    train = (v["axial_forward"][2][1] - v["axial_forward"][1][1]) / (v["axial_forward"][2][0] - v["axial_forward"][1][0])
    link = train * (v["clutch_ratio"] * 2 * np.pi / v["screw_lead_m"]) ** 2
    bend = v["bend_forward"][2][1] / v["bend_forward"][2][0] / v["probe_length_m"] ** 2
    assert v["head_stiffness_n_per_m"] > 90 * link and v["head_stiffness_n_per_m"] > 500 * bend
    out = docking(channels=PRESSED)
    assert out["penetration"].max() < v["penetration_max_m"] and out["over_limit"][-1] == 0


CENTRAL = ("energy_lost", "energy_stored", "stroke", "clutch_slip")


def test_N11_central_impact_of_20_tonnes():
    """225 J for a fixed partner, 215 J with 420 t; springs and brakes before the clutch; the modified damper is softer both ways."""
    heavy = docking(channels=CENTRAL, press=0.0, overrides=("target_vehicle.mass_kg=1e7",))
    assert heavy["energy_lost"][-1] + heavy["energy_stored"][-1] == pytest.approx(225.0, rel=0.015)
    out = docking(channels=CENTRAL, press=0.0)
    assert out["energy_lost"][-1] + out["energy_stored"][-1] == pytest.approx(215.0, rel=0.015)
    stroke, force, slip = out["stroke"], out["F_T"][:, 0], out["clutch_slip"]
    spring = (stroke < -0.03) & (stroke > -0.065) & (np.arange(len(force)) < np.argmax(slip > 0))
    assert 800 < force[spring].max() < 0.5 * force[slip > 0].max()
    modified = docking("probe_cone_modified", press=0.0)
    assert peaks(modified)[0] < peaks(out)[0] and peaks(modified)[6] > peaks(out)[6]
    assert peaks(out)[6] < -1000.0


def test_N10_rebound_is_weaker_and_second_impact_slower():
    out = docking(channels=PRESSED)
    t, v, force, slip = out["time"], out["V_TA"][:, 0], out["F_T"][:, 0], out["clutch_slip"]
    peak = np.argmax(force)
    turn = peak + np.argmax(v[peak:] < 0)
    rebound = force[turn + 4000:][force[turn + 4000:] > 0]
    # on the way back, spring released: force at the same stroke is below that on the way in
    stroke = out["stroke"] + slip * SLIP_TRAVEL
    level = -0.04
    inward = np.argmax(out["stroke"] < level)
    outward = turn + np.argmax(stroke[turn:] > level)
    assert 0 < force[outward] < 0.6 * force[inward] and len(rebound) and t[outward] > t[inward]
    hits = np.flatnonzero(np.diff(signal(out, "DK2").astype(int)) == 1)
    bottoms = hits[np.diff(hits, prepend=-1000) > 200]          # not its chatter
    assert len(bottoms) >= 2
    assert v[bottoms[1]] < 0.6 * v[bottoms[0]]


# The full values of the text leave the valid range of the shipped unit: penetration, end of the lateral springs' table, load cell. With its
# range widened and the stop's last slope drawn on the unit goes through with it.
BEYOND = (
    "mechanism.penetration_max_m=0.01",
    "mechanism.spring_forward=[[0.0, 0.0], [4e-4, 120.0], [0.030, 360.0], [0.045, 1000.0], [0.050, 4000.0], [0.070, 16000.0]]",
    "mechanism.spring_return=[[0.0, 0.0], [4e-4, 120.0], [0.030, 280.0], [0.045, 800.0], [0.050, 4000.0], [0.070, 16000.0]]",
    "stand.limits.force_limit_n=[24000.0, 24000.0, 24000.0]", "wrench.range_force_n=[25000.0, 25000.0, 25000.0]",
)


def test_N13_peaks_are_weak_below_thirty_percent_of_the_limits():
    """All initial conditions scaled together: limiter contact and lateral peaks at full values, weak or absent at 30 %."""
    limits = dict(vx=(0.2,), miss=(0.20, -0.15), angles=(0.06, -0.06, 0.06), w=(0.005, -0.010, 0.010), v_lateral=(0.02, -0.02))
    found = []
    for share in (0.3, 1.0):
        scaled = {k: tuple(share * x for x in v) for k, v in limits.items()}
        out = docking(channels=("limiter_f_x",), duration=30.0, overrides=BEYOND, **(scaled | {"vx": scaled["vx"][0]}))
        assert signal(out, "DSG").any() and not stops(out)
        found.append(max(np.abs(out["limiter_f_x"]).max(), np.abs(peaks(out)[[1, 2, 7, 8]]).max()))
    assert found[0] < 0.2 * found[1]


def test_energy_of_a_docking_is_the_energy_of_the_craft():
    """Kinetic energy the two craft lose = what the mechanism stores and loses (no thrust)."""
    channels = ("energy_lost", "energy_stored")
    out = docking(channels=channels, vx=0.12, miss=(0.03, -0.02), angles=(0.01, -0.01, 0.0), duration=15.0, press=0.0)
    lost = out["energy_lost"][-1] + out["energy_stored"][-1]
    reduced = 20e3 * 420e3 / 440e3
    assert lost < 0.5 * reduced * 0.12**2
    assert lost > 0.9 * 0.5 * reduced * 0.12**2


def test_hatch_cover_lengthens_the_intervals_between_impacts():
    """Correlation option (6.1.6): a compliant cover delays the latch stop after the first bottom impact."""
    soft = ("mechanism.cover=true", "mechanism.cover_forward=[[0.0, 0.0], [1e-4, 10.0], [0.01, 1500.0], [0.05, 7500.0]]",
            "mechanism.cover_return=[[0.0, 0.0], [1e-4, 10.0], [0.01, 1300.0], [0.045, 6000.0], [0.05, 7500.0]]")
    intervals = []
    for overrides in ((), soft):
        out = docking(duration=12.0, press=0.0, overrides=overrides)
        intervals.append(first(out, out["F_T"][:, 0] < -200.0) - first(out, signal(out, "DK2")))
    assert intervals[1] > intervals[0] + 0.02
