"""The energy monitor counts a contact from free motion to free motion, whatever threshold notices it."""

import numpy as np
import pytest

from rt_kernels.layout import BITS, CODES
from tests.hybrid.bounce import PROGRAMME, closed_loop, run, settings
from tests.safety.conftest import PERIOD, names, through

MASS = 300.0  # kg
SPEED = 0.02  # m/s
ENERGY = 0.5 * MASS * SPEED**2


def bounce(quiet, f=1.0, on=12.0, off=8.0, e=1.0, offset=0.0, noise=0.0, free_s=1.0, seed=1, latched=False):
    """Samples of one contact of a body of 300 kg at 20 mm/s with a spring of f Hz, free motion for `free_s` before and after; the force
    noticed above `on` and lost below `off` as the event detector does. e: restitution, by a spring e^2 as strong on the way out. Symplectic
    Euler, as the model moves; noise and offset are measured and do not move it."""
    rng = np.random.default_rng(seed)
    K = MASS * (2 * np.pi * f) ** 2
    x, v, motion = -SPEED * free_s, SPEED, []
    while v > 0 or x > -SPEED * e * free_s:
        force = (K if v > 0 else e**2 * K) * max(x, 0.0)
        v -= force / MASS * PERIOD
        x += v * PERIOD
        motion.append((x, v, force))
    x, v, force = np.array(motion).T
    n = len(x)
    s = quiet(n)
    s["V_TA"][:, 0], s["X_TA"][:, 0], s["kinetic_energy"] = v, x, 0.5 * MASS * v**2
    s["F_T"][:, :3] = noise * rng.normal(size=(n, 3))
    s["F_T"][:, 0] += force + offset
    s["F_T_corrected"] = s["F_T"]
    size = np.linalg.norm(s["F_T"][:, :3], axis=1)
    touching = False
    for k in range(n):
        touching = size[k] > on if not touching else size[k] >= off
        s["contact"][k] = touching
    if latched:
        s["mechanism_state"] = BITS["mechanism_signal"]["DSG"]
    return s


def ratio(stage, samples, **keys):
    """Energy ratio at the end, and the faults."""
    made = stage(following_max_m=1.0, energy_floor_j=1e-4, **keys, limits={"force_limit_n": [1e6] * 3, "moment_limit_n_m": [1e6] * 3})
    made.through(samples[:2].copy())
    out = through(made, samples)
    return float(out["contact_energy_ratio"][-1]), names(out["faults"][-1]), out


# ------------------------------------------------------------------------------------------------------------ stage alone


@pytest.mark.parametrize(("on", "off"), [(2.0, 1.0), (12.0, 8.0), (18.0, 9.0), (18.0, 18.0)])
def test_an_elastic_contact_gains_nothing_whatever_the_threshold(stage, quiet, on, off):
    """39 N at the most, as the one that was reported with 1.034."""
    value, faults, _ = ratio(stage, bounce(quiet, on=on, off=off))
    assert value == pytest.approx(1.0, abs=0.003) and "energy_warning" not in faults


@pytest.mark.parametrize("e", [0.8, 0.9, 1.1])
@pytest.mark.parametrize(("on", "off"), [(2.0, 1.0), (12.0, 8.0)])
def test_what_is_gained_or_lost_is_reported(stage, quiet, e, on, off):
    value, faults, _ = ratio(stage, bounce(quiet, on=on, off=off, e=e), energy_trip=10.0)
    assert value == pytest.approx(e**2, abs=0.006)
    assert ("energy_warning" in faults) is (e > 1.0)


def test_the_energy_before_is_that_of_the_free_motion(stage, quiet):
    _, _, out = ratio(stage, bounce(quiet))
    turned = int(np.argmax(out["V_TA"][:, 0] <= 0.0))
    # all of it is in the spring when the motion turns
    assert out["contact_work"][turned] == pytest.approx(-ENERGY, rel=0.01)
    assert out["contact_energy_ratio"][turned] == pytest.approx(0.0, abs=0.01)


def test_work_of_force_and_moment_on_the_relative_motion(stage, quiet):
    """Wrench at T; of the active unit the velocity of its point at T's origin, v - w x p, and w; force of the tick times the mean twist
    of the step. Ratio: against the energy of the free motion before."""
    rng, n, free = np.random.default_rng(6), 60, 5
    s = quiet(n, kinetic_energy=50.0)
    s["V_TA"], s["X_TA"][:, :3] = rng.normal(size=(n, 6)), rng.normal(size=(n, 3))
    s["F_T"][free:] = s["F_T_corrected"][free:] = [100.0, 50.0, -30.0, 40.0, 60.0, 20.0] + 5.0 * rng.normal(size=(n - free, 6))
    s["contact"][free:] = 1
    _, _, out = ratio(stage, s.copy(), energy_trip=1e6)
    work = np.zeros(n)
    for k in range(free, n):
        V, F = 0.5 * (s["V_TA"][k - 1] + s["V_TA"][k]), s["F_T"][k]
        work[k] = work[k - 1] - PERIOD * (F[:3] @ (V[:3] - np.cross(V[3:], s["X_TA"][k, :3])) + F[3:] @ V[3:])
    np.testing.assert_allclose(out["contact_work"], work, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out["contact_energy_ratio"][free:], 1.0 + work[free:] / (50.0 - work[free]), rtol=1e-9)


def test_a_loop_that_closes_in_contact_counts_from_its_first_tick(stage, quiet):
    """What worked while the model did not move itself is no work of the contact, nor is anything added to it."""
    s = quiet(20, kinetic_energy=ENERGY, contact=1)
    s["V_TA"][:, 0], s["F_T"][:, 0] = SPEED, 39.0
    s["F_T_corrected"] = s["F_T"]
    s["motion"][:10] = CODES["motion"]["close_loop"]
    _, _, out = ratio(stage, s)
    np.testing.assert_allclose(out["contact_work"][10:], -39.0 * SPEED * PERIOD * np.arange(1, 11), rtol=1e-9)
    assert not out["contact_work"][:10].any()


@pytest.mark.parametrize("offset", [-3.0, 1.0, 3.0])
@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
def test_noise_and_a_wrong_tare_are_no_contact(stage, quiet, offset, noise):
    """Ten seconds of free motion before: a tare of 3 N alone would work 0.6 J on it, ten times the energy there is."""
    on, off = 20.0, 12.0
    s = bounce(quiet, on=on, off=off, offset=offset, noise=noise, free_s=10.0)
    value, _, out = ratio(stage, s, drift_time_s=1.0, drift_max_n=100.0)
    # the offset works forth and back alike; 2 N of noise alone work 2 N x 0.02 m/s x 1 ms x sqrt(500 ticks): 1.5 % of the energy, 1 sigma
    assert value == pytest.approx(1.0, abs=0.006 + 0.03 * noise)
    free = np.flatnonzero(out["contact"])[0] - 1
    assert out["contact_work"][free] == 0.0


def test_a_force_that_never_was_quiet_adds_nothing_from_before(stage, quiet):
    """A tare of 3 N that the mean has not learnt yet, threshold 4 N: the beginning is not known, the energy at the threshold counts."""
    s = bounce(quiet, on=4.0, off=3.5, offset=3.0, free_s=2.0)
    value, _, out = ratio(stage, s, drift_time_s=100.0, drift_max_n=100.0)
    noticed = int(np.flatnonzero(out["contact"])[0])
    assert out["contact_work"][noticed] == 0.0
    assert value == pytest.approx(1.0, abs=0.15)


def test_counting_ends_with_the_force(stage, quiet):
    """A force that stays is counted for as long as the contact lasted, and for half a second at the most."""
    for f, longest in ((1.0, None), (0.25, 500), (5.0, None)):
        s = bounce(quiet, f=f, on=2.0, off=1.5, free_s=2.0)
        touched = np.flatnonzero(s["contact"])
        end, lasted = int(touched[-1]), len(touched)
        s["F_T"][end + 1 :, 0] = s["F_T_corrected"][end + 1 :, 0] = 1.4
        _, _, out = ratio(stage, s, drift_time_s=100.0)
        counted = int(np.flatnonzero(np.diff(out["contact_work"]))[-1]) + 1 - end
        assert counted == pytest.approx(longest or lasted, abs=2), f
    s = bounce(quiet, free_s=2.0)
    end = int(np.flatnonzero(s["contact"])[-1])
    _, _, out = ratio(stage, s)
    assert np.ptp(out["contact_work"][end + 60 :]) == 0.0 and out["contact_work"][end + 60] != out["contact_work"][end]


def test_latched_units_stay_in_contact(stage, quiet):
    _, _, out = ratio(stage, bounce(quiet, latched=True, offset=0.2))
    work = out["contact_work"]
    assert np.count_nonzero(np.diff(work[-900:])) == 899


def test_no_work_counts_while_the_model_does_not_move_itself(stage, quiet):
    s = bounce(quiet)
    s["motion"] = CODES["motion"]["close_loop"]
    _, faults, out = ratio(stage, s)
    assert not out["contact_work"].any() and not out["contact_energy_ratio"].any()


@pytest.mark.parametrize(("gain", "fault"), [(1.049, None), (1.051, "energy_warning"), (1.19, "energy_warning"), (1.22, "energy_gain")])
def test_the_thresholds_of_the_monitor(stage, quiet, gain, fault):
    """Softly in, strongly out: the gain is exact in the motion; 5 % warns, 20 % trips."""
    _, faults, _ = ratio(stage, bounce(quiet, on=2.0, off=1.0, e=np.sqrt(gain)))
    assert ("energy_gain" in faults) is (fault == "energy_gain")
    assert ("energy_warning" in faults) is (fault is not None)


def test_the_trip_comes_before_the_limit_is_passed(stage, quiet):
    _, _, out = ratio(stage, bounce(quiet, on=2.0, off=1.0, e=2.0))
    first = int(np.flatnonzero(out["faults"] >> 27 & 1)[0])
    assert out["contact_energy_ratio"][first] <= 1.2 < out["contact_energy_ratio"][first + 1]


def test_small_contacts_are_not_judged(stage, quiet):
    s = bounce(quiet, e=2.0, on=2.0, off=1.0)
    for floor, judged in ((ENERGY * 1.02, False), (ENERGY * 0.98, True)):
        made = stage(following_max_m=1.0, energy_floor_j=floor, limits={"force_limit_n": [1e6] * 3})
        made.through(s[:2].copy())
        assert ("energy_gain" in names(through(made, s.copy())["faults"][-1])) is judged


# --------------------------------------------------------------------------------------------------------------- the line


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize(("on", "off", "hold"), [(12.0, 8.0, 0.004), (18.0, 9.0, 0.0), (2.0, 1.0, 0.0)])
def test_the_contact_that_was_reported_with_a_gain(on, off, hold, noise):
    """1 Hz, 38 N, lead and pose force on the hydraulic drives, noise as shipped: ratio of the free motions before and after."""
    keys = {"events.contact_on_n": on, "events.contact_off_n": off, "events.contact_hold_s": hold,
            "stand.virtual.force_noise_n": noise, "safety.energy_warn": 0.02, "safety.energy_floor_j": 0.001}  # fmt: skip
    _, records = run(settings(1.0, "spec", "lead_and_pose_force") | keys, PROGRAMME)
    free = closed_loop(records)
    touched = np.flatnonzero(free["contact"])
    energy = free["kinetic_energy"]
    true = energy[touched[-1] + 80] / energy[touched[0] - 80]
    assert free["contact_energy_ratio"][-1] == pytest.approx(true, abs=0.002 + 0.016 * noise)
    assert "energy_warning" not in names(records["faults"][-1])
