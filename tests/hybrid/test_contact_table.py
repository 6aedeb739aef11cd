"""Restitution through the whole line against the published and the measured tables of the hybrid-stability notes (5.5, 5.6)."""

import numpy as np
import pytest

from hil_server.analysis.stability import Loop, critical_delay, one_contact, rebound
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
        sums = test.ledger.sums()
        assert e == pytest.approx(table, rel=0.01)
        # what the pre-test prediction makes of the ledger, at any lag; the root law leaves the start of the contact out
        loop = Loop(sums["transport_s"], sums["drive_frequency_hz"], sums["drive_damping"], sums)
        assert e == pytest.approx(one_contact(loop, f, 0.0, MASS), rel=0.002)
        if f * sums["total_s"] <= 0.05:
            assert e == pytest.approx(loop.restitution(f, 0.0, stiffness(f)), rel=0.005)


@pytest.mark.parametrize(("name", "table", "keys"), [
    ("phase_lead", LEAD, {}),
    ("polynomial", POLYNOMIAL, {"compensators.spacing_ticks": 1}),
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
        e = measured(f, "spec", "lead_and_pose_force", **{"compensators.lead_factor": factor})
        assert 0.98 <= e <= 1.02, f


@pytest.mark.parametrize("factor", [0.9, 1.1])
@pytest.mark.parametrize("share", [0.8, 1.2])
def test_stack_holds_the_band_with_a_wrong_stiffness_too(factor, share):
    for f in (1, 2, 3, 4):
        e = measured(f, "spec", "lead_and_pose_force", **{"compensators.lead_factor": factor, "compensators.stiffness_factor": share})
        assert 0.98 <= e <= 1.02, f


def test_damped_contact_loses_what_it_should():
    """zeta 0.1: 0.7292. The damper makes the force jump at the touch, so that e depends on where in a tick the touch falls, by up to
    0.5 % at 10 Hz: mean over four places within the tick."""
    for f in (1, 3, 10):
        damping = 0.2 * float(np.sqrt(stiffness(f) * MASS))
        keys = {"zeta": 0.1, "compensators.damping_n_s_m": damping}
        es = [measured(f, "spec", "lead_and_pose_force", **keys, **{"guidance.close_before_s": 0.4 + (q + 0.01) * 1e-3})
              for q in ((0.0, 0.25, 0.5, 0.75) if f == 10 else (0.5,))]  # fmt: skip
        assert np.mean(es) == pytest.approx(0.7292, abs=0.005), f


def test_energy_cap_is_a_net_and_not_a_compensator():
    """Undamped: no more than what went in, at any delay. Damped below the cap: it leaves the wrong restitution as it is."""
    assert measured(5, "spec", "energy_cap") == pytest.approx(1.0, abs=1e-3)
    assert measured(3, "ideal", "energy_cap", zeta=0.1) == pytest.approx(measured(3, "ideal", "none", zeta=0.1), abs=1e-6)


def test_smith_predictor_on_a_pure_force_delay():
    assert measured(3, "ideal", "smith") == pytest.approx(1.0, abs=0.002)


def test_changing_between_compensators_makes_no_step():
    """`phased`: nothing before the contact, the stack in it. The command never steps by more than the blend allows."""
    table = settings(3, "spec", "phased")
    table |= {
        "compensators.free.part": "none",
        "compensators.contact.part": "lead_and_pose_force",
        "compensators.contact.stiffness_n_m": float(stiffness(3)),
        "compensators.blend_s": 0.05,
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
    """Held force at 1 kHz, 10 Hz, nothing else late: symplectic 1.000 (the line), constant acceleration 1.051, explicit Euler 1.104."""
    assert measured(10, "ideal", "none", **{"stand.virtual.sensor_delay_s": 0.0}) == pytest.approx(1.000, abs=0.003)

    def contact(step):
        x, v = 0.0, 0.02
        for _ in range(200):
            a = -stiffness(10) / MASS * max(x, 0.0)
            x, v = step(x, v, a)
        return -v / 0.02

    h = 1e-3
    assert contact(lambda x, v, a: (x + h * v + 0.5 * h * h * a, v + h * a)) == pytest.approx(1.051, abs=0.003)
    assert contact(lambda x, v, a: (x + h * v, v + h * a)) == pytest.approx(1.104, abs=0.003)
