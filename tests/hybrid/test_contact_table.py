"""Restitution through the whole line against the published and the measured tables of the hybrid-stability notes (5.5, 5.6)."""

import numpy as np
import pytest

from hil_server.predict.contact_line import mode_at, play
from hil_server.predict.prediction import loop_of
from hil_server.predict.stability import critical_delay, latched_limit, rebound
from tests.hybrid.bounce import DRIVES, MASS, closed_loop, rebound_of, run, settings, stiffness

FREQUENCIES = (1, 3, 5, 10)
# e at 1 / 3 / 5 / 10 Hz
UNCOMPENSATED = {
    "ideal": (1.030, 1.093, 1.159, 1.341),
    "60 Hz": (1.053, 1.166, 1.291, 1.650),
    "20 Hz": (1.144, 1.489, 1.906, 3.160),
    "spec": (1.221, 1.772, 2.424, 4.213),
    "resonant": (1.142, 1.526, 2.092, 3.888),
    "7 Hz": (1.399, 2.513, 3.81, 7.23),
}
LEAD = {
    "ideal": (1.000, 1.000, None, 0.999),
    "60 Hz": (1.000, 1.000, 0.999, 0.996),
    "20 Hz": (1.000, 0.998, 0.994, 0.997),
    "spec": (1.000, 0.9985, 0.9976, 1.027),
    "resonant": (1.000, 0.9965, 0.990, 1.038),
    "7 Hz": (1.000, 0.995, 1.007, 1.134),
}
POLYNOMIAL = {
    "ideal": (None, None, None, 1.000),
    "60 Hz": (1.000, 1.000, 1.000, 1.000),
    "20 Hz": (1.000, 1.002, 1.006, 1.002),
    "spec": (1.000, 1.002, 0.999, 0.918),
    "resonant": (1.001, 1.019, 1.097, 1.415),
    "7 Hz": (1.002, 1.022, 1.014, 0.822),
}


def measured(f, drive, compensator, **keys):
    return rebound_of(run(settings(f, drive, compensator, **keys))[1])


def test_published_restitution_law():
    """Li et al. 2026: 300 kg, 106.59 N/mm."""
    K = 106.59e3
    for zeta, published in ((0.0, (1.0, 1.0928, 1.1090, 1.1255)), (0.1, (0.7292, 0.7973, 0.8093, 0.8216))):
        for delay, e in zip((0.0, 0.003, 0.0035, 0.004), published, strict=True):
            assert rebound(MASS, K, 2 * zeta * np.sqrt(K * MASS), delay) == pytest.approx(e, abs=1e-4)


@pytest.mark.parametrize("drive", UNCOMPENSATED)
def test_uncompensated_contact_is_what_the_ledger_predicts(drive):
    for f, table in zip(FREQUENCIES, UNCOMPENSATED[drive], strict=True):
        test, records = run(settings(f, drive, "none"))
        e = rebound_of(records)
        assert e == pytest.approx(table, rel=0.01)
        # what the pre-test prediction makes of the ledger, at any lag; the root law leaves the start of the contact out
        assert e == pytest.approx(play(test, mode_at(test, f, 0.0), 0.02).restitution, rel=0.002)
        if f * test.ledger.total_s <= 0.05:
            assert e == pytest.approx(loop_of(test).restitution(f, 0.0), rel=0.005)


@pytest.mark.parametrize(("name", "table", "keys"), [
    ("phase_lead", LEAD, {}),
    ("polynomial", POLYNOMIAL, {"compensation.spacing_ticks": 1}),
])  # fmt: skip
@pytest.mark.parametrize("drive", DRIVES)
def test_compensated_contact_against_the_table(name, table, keys, drive):
    for f, e in zip(FREQUENCIES, table[drive], strict=True):
        if e is not None:
            assert measured(f, drive, name, **keys) == pytest.approx(e, abs=0.01 if f <= 5 else 0.03), (drive, f)


@pytest.mark.parametrize("drive", DRIVES)
def test_stack_takes_out_what_is_left_of_every_drive(drive):
    """5.5: 1.000 within 0.005 everywhere (the lead alone is up to 1.13)."""
    for f in (3, 10):
        assert measured(f, drive, "lead_and_pose_force") == pytest.approx(1.0, abs=0.005)


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_stack_holds_the_band_with_a_drive_known_to_ten_per_cent(factor):
    for f in (1, 2, 3, 4, 5, 7, 10):
        e = measured(f, "spec", "lead_and_pose_force", **{"compensation.lead_factor": factor})
        assert 0.98 <= e <= 1.02, f


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("share", [0.8, 1.2])
def test_stack_holds_the_band_with_a_wrong_stiffness_too(factor, share):
    for f in (1, 2, 3, 4):
        e = measured(f, "spec", "lead_and_pose_force", **{"compensation.lead_factor": factor, "compensation.stiffness_factor": share})
        assert 0.98 <= e <= 1.02, f


def test_damped_contact_loses_what_it_should():
    """zeta 0.1: 0.7292. The damper makes the force jump at the touch, so that e depends on where in a tick the touch falls, by up to
    0.5 % at 10 Hz: mean over four places within the tick."""
    for f in (1, 3, 10):
        damping = 0.2 * float(np.sqrt(stiffness(f) * MASS))
        keys = {"zeta": 0.1, "compensation.damping_n_s_per_m": damping}
        es = [measured(f, "spec", "lead_and_pose_force", **keys, **{"guidance.close_before_s": 0.4 + (q + 0.01) * 1e-3})
              for q in ((0.0, 0.25, 0.5, 0.75) if f == 10 else (0.5,))]  # fmt: skip
        assert np.mean(es) == pytest.approx(0.7292, abs=0.005), f


def test_energy_cap_is_a_net_and_not_a_compensator():
    """Undamped: no more than what went in, at any delay. Damped below the cap: it leaves the wrong restitution as it is."""
    assert measured(5, "spec", "energy_cap") == pytest.approx(1.0, abs=1e-3)
    assert measured(3, "ideal", "energy_cap", zeta=0.1) == pytest.approx(measured(3, "ideal", "none", zeta=0.1), abs=1e-6)


def test_smith_predictor_against_the_table():
    """5.4 (6): 1.002 at 3 Hz and 1.20 at 10 Hz on the 20 Hz drive; exact on a pure force delay at 3 Hz."""
    assert measured(3, "ideal", "smith") == pytest.approx(1.0, abs=0.002)
    assert measured(3, "20 Hz", "smith") == pytest.approx(1.002, abs=0.01)
    assert measured(10, "20 Hz", "smith") == pytest.approx(1.20, abs=0.03)


def test_pose_referenced_force_alone_catches_up_with_the_touch():
    """5.5: at most 1.001 behind a pure force delay, stiffness exact, no lead; and what it cannot take out behind a slow drive is the
    fourth power of the angle in the delay."""
    for f in (1, 3, 5, 10):
        assert measured(f, "ideal", "pose_referenced_force") == pytest.approx(1.0, abs=0.001), f
    assert measured(3, "spec", "pose_referenced_force") == pytest.approx(1.0, abs=0.005)
    # 5.4 (4): stiffness wrong, alone, 10 Hz
    for share, e in ((0.8, 1.058), (0.9, 1.029), (1.1, 0.973), (1.2, 0.947)):
        assert measured(10, "ideal", "pose_referenced_force", **{"compensation.stiffness_factor": share}) == pytest.approx(e, abs=1e-3)


@pytest.mark.parametrize("prior", [0.8, 1.2])
def test_recursive_stiffness_with_noise(prior):
    """Prior wrong by 20 %, 2.67 N and 10 um of noise, 20 mm/s: the estimate comes nearer to the truth within one contact, stays within
    its bounds, and the restitution within the band (mean of six seeds)."""
    from tests.hybrid.test_contact_six import NOISY

    es, found = [], []
    for seed in range(1, 7):
        keys = NOISY | {"compensation.estimate": True, "compensation.stiffness_factor": prior, "stand.virtual.seed": seed}
        test, records = run(settings(5, "spec", "lead_and_pose_force", **keys))
        es.append(rebound_of(records))
        found.append(closed_loop(records)["aux"][-1, -1] / stiffness(5))
        assert 0.5 * prior <= found[-1] <= 1.5 * prior
    assert 0.98 <= np.mean(es) <= 1.02
    assert abs(np.mean(found) - 1.0) < 0.5 * abs(prior - 1.0)


def test_changing_between_compensators_makes_no_step():
    """`phased`: nothing before the contact, the stack in it. The command never steps by more than the blend allows."""
    table = settings(3, "spec", "phased")
    table |= {
        "compensation.free.part": "none",
        "compensation.contact.part": "lead_and_pose_force",
        "compensation.contact.stiffness_n_per_m": float(stiffness(3)),
        "compensation.blend_s": 0.05,
    }
    _, records = run(table)
    r = closed_loop(records)
    assert set(np.unique(r["lead"][:, 1] > 0.015)) == {False, True}
    step = np.abs(np.diff(r["leg_demand"], axis=0)).max()
    # 20 mm/s is 0.02 mm a tick; 0.4 mm of lead over 50 ticks adds 0.012 mm at the steepest place of the blend
    assert step < 0.04e-3


def test_adaptive_lead_finds_a_drive_that_the_ledger_has_wrong():
    """The ledger says 11.9 Hz, the drive has 13.25: what is learnt on the approach takes that out, and is frozen in the closed loop."""
    wrong = {"stand.drive_model.frequency_hz": 11.9, "stand.drive_model.damping": 0.784, "stand.drive_model.delay_s": 0.002}
    _, records = run(settings(3, "spec", "adaptive_time_series", **wrong))
    assert np.ptp(closed_loop(records)["lead"], axis=0).max() == 0.0
    assert rebound_of(records) == pytest.approx(1.0, abs=0.003)
    assert measured(3, "spec", "phase_lead", **wrong) < 0.95
    assert measured(10, "spec", "adaptive_time_series", **wrong) == pytest.approx(1.027, abs=0.01)


@pytest.mark.parametrize(("zeta", "f"), [(0.02, 3), (0.05, 3), (0.1, 3)])
def test_critical_delay_is_bracketed(zeta, f):
    """2 % below the critical delay a contact loses, 2 % above it gains: with the tick set so that the delay is a whole number of ticks."""
    K = stiffness(f)
    t = critical_delay(MASS, K, 2 * zeta * np.sqrt(MASS * K))
    ticks = max(4, round(t / 3e-4))
    es = []
    for share in (0.98, 1.02):
        tick_ns = round(share * t / ticks * 1e8) * 10
        delay = {"test.rate_hz": 1e9 / tick_ns, "stand.virtual.sensor_delay_s": ticks * tick_ns * 1e-9,
                 "stand.virtual.plant_step_s": tick_ns * 1e-10}  # fmt: skip
        es.append(rebound_of(run(settings(f, "ideal", "none", zeta=zeta, **delay))[1]))
    assert es[0] < 1.0 < es[1]


def test_integrator_terms_of_the_ledger():
    """Held force at 1 kHz, 10 Hz, nothing else late: 1.000 / 1.051 / 1.104, and the ledger knows it: the prediction agrees, and a lead
    by the ledger's sum takes it out again."""
    for integrator, e, ticks in (("symplectic", 1.000, 0.0), ("constant_acceleration", 1.051, 0.5), ("explicit", 1.104, 1.0)):
        keys = {"stand.virtual.sensor_delay_s": 0.0, "dynamics.integrator": integrator}
        test, records = run(settings(10, "ideal", "none", **keys))
        assert rebound_of(records) == pytest.approx(e, abs=0.003)
        assert test.ledger.total_s == pytest.approx(ticks * 1e-3, abs=1e-12)
        assert play(test, mode_at(test, 10, 0.0), 0.02).restitution == pytest.approx(e, abs=0.003)
        assert measured(10, "ideal", "phase_lead", **keys) == pytest.approx(1.0, abs=0.005)


def growth(f, drive, compensator, zeta, **keys):
    """Change of the logarithm of the amplitude over half a period of the latched joint, mean over the later half periods."""
    latched = {"mechanism.clamp": False, "mechanism.latches": True, "guidance.contact_max_s": 0.5 + 6 / f, "guidance.capture_limit_s": 90.0}
    v = np.abs(closed_loop(run(settings(f, drive, compensator, zeta, speed=0.002, **latched, **keys))[1])["V_TA"][:, 0])
    peaks = v[1:-1][(v[1:-1] >= v[:-2]) & (v[1:-1] > v[2:])]
    return np.mean(np.diff(np.log(peaks))[3:])


@pytest.mark.parametrize(("drive", "compensator", "zeta", "keys"), [
    ("spec", "none", 0.05, {}), ("spec", "phase_lead", 0.02, {}), ("60 Hz", "phase_lead", 0.02, {}), ("7 Hz", "phase_lead", 0.05, {}),
])  # fmt: skip
def test_latched_mode_limit_of_the_line(drive, compensator, zeta, keys):
    """A joint that holds both ways decays 10 % below the limit of the closed form and grows 10 % above it. The lead is what the played
    contact shows of the compensator."""
    test = run(settings(3, drive, compensator, zeta, **keys))[0]
    limit = latched_limit(loop_of(test, play(test, mode_at(test, 3, zeta), 0.02).lead), zeta)
    assert growth(0.9 * limit, drive, compensator, zeta, **keys) < 0.0 < growth(1.1 * limit, drive, compensator, zeta, **keys)


def test_latched_mode_is_held_by_the_stack():
    """Lead 10 % and stiffness 20 % too low, spec drive: no closed form; it decays at 16 Hz, where uncompensated 1 Hz grows."""
    wrong = {"compensation.lead_factor": 0.9, "compensation.stiffness_factor": 0.8}
    assert growth(16.0, "spec", "lead_and_pose_force", 0.02, **wrong) < 0.0 < growth(1.0, "spec", "none", 0.02)


def rebound_behind_dead_zone(zeta, zone, speed, K):
    """e of a contact whose force is not felt below `zone` N: the body flies on to the depth at which K x + B v = zone, swings there, and
    is free again where the force falls below the zone."""
    from scipy.optimize import brentq

    w = np.sqrt(K / MASS)
    B, wd = 2 * zeta * w * MASS, w * np.sqrt(1 - zeta**2)
    x1 = max(0.0, (zone - B * speed) / K)

    def swing(t):
        C = (speed + zeta * w * x1) / wd
        x, s = x1 * np.cos(wd * t) + C * np.sin(wd * t), -x1 * np.sin(wd * t) + C * np.cos(wd * t)
        return np.exp(-zeta * w * t) * x, np.exp(-zeta * w * t) * (wd * s - zeta * w * x)

    def ends(t):
        x, v = swing(t)
        return K * x + B * v - zone if zone else x

    return -swing(brentq(ends, 1.4 / wd, 3.7 / wd))[1] / speed


@pytest.mark.parametrize("zeta", [0.0, 0.1])
def test_dead_zone_of_the_sensor_takes_energy_out_of_a_damped_contact(zeta):
    """Nothing late, 3 Hz, 5 mm/s; at 4 kHz, because the zone is crossed within a tick."""
    K = 106.59e3
    for zone in (0.0, 4.0, 8.0, 12.0):
        keys = {"stand.virtual.sensor_delay_s": 0.0, "stand.virtual.sensor_dead_zone_n": zone, "test.rate_hz": 4000.0}
        keys["stand.mounting.gravity_m_s2"] = [0.0, 0.0, 0.0]  # a weight on the cell would lift the force out of the zone
        e = measured(np.sqrt(K / MASS) / (2 * np.pi), "ideal", "none", zeta=zeta, speed=0.005, **keys)
        assert e == pytest.approx(rebound_behind_dead_zone(zeta, zone, 0.005, K), abs=0.003), zone
