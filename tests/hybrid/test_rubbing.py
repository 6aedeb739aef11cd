"""Two contacts that rub, off the axis, on the hydraulic stand with a unit that rings: e by energy, and the recommended part."""

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.judge.contact_energy import energy_restitution, free_energy, meeting_energy
from hil_server.line import assembly
from hil_server.predict.prediction import predict
from rt_kernels.compensation.effective_mass import relative_inverse_inertia
from rt_kernels.layout import SAMPLE_DTYPE
from rt_kernels.mechanisms.linear.several_contacts import SeveralContacts
from tests.hybrid.bounce import MASS, overrides
from tests.hybrid.rubbing import OPEN, PROGRAMME, contact_tables, free_bodies, in_orbit, rub, settings

IDEAL = {"test.stand": "stands/docking_stand.toml", "stand.virtual.drive_frequency_hz": 0.0, "stand.virtual.drive_delay_s": 0.0,
         "stand.virtual.setpoint_delay_ticks": 0}  # fmt: skip


def apart(v, w=(0.0, 0.0, 0.0)):
    """A record of both vehicles of the programme, ports together, the active one moving."""
    record = np.zeros(1, SAMPLE_DTYPE)
    record["X_NC"], record["X_NV"] = [-0.5, 0, 0, 0, 0, 0, 1], [0.5, 0, 0, 0, 0, 0, 1]
    record["V_NC"] = [*v, *w]
    return record


def test_the_vehicles_are_those_of_the_programme():
    ours = free_bodies()
    test = assembly.simulation(load_test(PROGRAMME, []))
    for name in ("active", "target"):
        one, other = getattr(ours, name), getattr(test.context["vehicles"], name)
        assert one.mass_kg == other.mass_kg and np.array_equal(one.inertia_kg_m2, other.inertia_kg_m2)
        np.testing.assert_allclose(one.X_port, other.X_port, atol=1e-15)


@pytest.mark.parametrize("frequency", [1.0, 5.0])
def test_the_contacts_have_the_frequency_that_was_asked_for(frequency):
    """Highest root of det(U diag(K) U' - w^2 L), L the inertia of the relative motion: as many equations as directions."""
    tables = contact_tables(frequency, shares=[2.0, 1.0])
    U = np.array([[1.0, 0, 0, *np.cross(t["contact_point_m"], [1.0, 0, 0])] for t in tables]).T
    K = U @ np.diag([t["stiffness_n_per_m"] for t in tables]) @ U.T
    w2 = np.linalg.eigvals(relative_inverse_inertia(free_bodies(), [0, 0, 0, 0, 0, 0, 1]) @ K).real
    assert np.sqrt(w2.max()) / (2 * np.pi) == pytest.approx(frequency, rel=1e-9)


@pytest.mark.parametrize("zeta", [0.0, 0.1])
def test_of_one_contact_without_friction_it_is_the_ratio_of_speeds(zeta):
    """In the middle: e = exp(-pi zeta / sqrt(1 - zeta^2)), and E_c all of the motion."""
    vehicles, table = free_bodies(), contact_tables(3.0, points=((0.0, 0.0, 0.0),), friction=0.0, zeta=zeta)
    table[0]["clamp"] = False  # as in that formula, the damper may pull
    contact, start = SeveralContacts(contacts=table), apart([0.05, 0, 0])
    met = meeting_energy(vehicles, [0, 0, 0, 0, 0, 0, 1], [0.05, 0, 0, 0, 0, 0], contact.lines([0, 0, 0, 0, 0, 0, 1]))
    assert met == pytest.approx(0.5 * MASS * 0.05**2) and met == pytest.approx(free_energy(start, vehicles)[0])
    e = energy_restitution(in_orbit(vehicles, contact, start[0], 0.5), met)
    assert e == pytest.approx(np.exp(-np.pi * zeta / np.sqrt(1 - zeta**2)), rel=1e-3)


def test_friction_of_one_contact_takes_what_the_textbook_says():
    """A ball without spin that slides all the way: the impulse across is mu of that along, and both change the energy."""
    mu, v, slide = 0.05, 0.05, 0.05
    vehicles = free_bodies()
    table = contact_tables(3.0, points=((0.0, 0.0, 0.0),), friction=mu)
    table[0]["bristle_stiffness_n_per_m"] = 50.0 * table[0]["stiffness_n_per_m"]
    contact, start = SeveralContacts(contacts=table), apart([v, slide, 0])
    before, after = in_orbit(vehicles, contact, start[0], 0.5)
    impulse = 2 * MASS * v
    across = 1.0 / relative_inverse_inertia(vehicles, [0, 0, 0, 0, 0, 0, 1])[1, 1]  # what resists a push across at the ports
    lost = mu * impulse * slide - 0.5 * (mu * impulse) ** 2 / across
    assert before - after == pytest.approx(lost, rel=0.03)


def test_without_a_stand_the_line_plays_what_happens_in_orbit():
    """Ideal drives: two contacts that rub, off the axis; what the run keeps of its energy is what the bodies alone keep."""
    r = rub(settings(3.0, compensator="none", **IDEAL))
    assert r.truth < 0.97  # they do rub
    assert r.ratio == pytest.approx(1.0, abs=2e-3)


def test_the_recommended_part_holds_on_the_stand_that_rings_and_none_does_not():
    """30 Hz at 2 % on the hydraulic stand (a cut; the map is made by a tool): within 3 % where bare contact doubles its speed."""
    K = sum(t["stiffness_n_per_m"] for t in contact_tables(3.0))
    r = rub(settings(3.0, **{"compensation.stiffness_n_per_m": K}))
    assert 0.97 < r.ratio < 1.03 and r.truth < 0.97
    assert rub(settings(3.0, compensator="none")).ratio > 1.5


@pytest.mark.parametrize("structure", [True, False])
def test_prediction_plays_the_contacts_that_rub(structure):
    """10 Hz: beside the run and the bodies in orbit, with the observer of the unit's modes and without: e over that in orbit by both the
    same, 5 % too little or 6 % too much, and no run is armed. Before a touch nothing of the mechanism's state has changed."""
    own = {"compensation.stiffness_n_per_m": 0.8 * sum(t["stiffness_n_per_m"] for t in contact_tables(10.0)),
           "compensation.estimate": True, "compensation.structure": structure}  # fmt: skip
    table = {k: v for k, v in settings(10.0, **own).items() if k not in OPEN}
    test = assembly.simulation(load_test(PROGRAMME, overrides(table, PROGRAMME)))
    state = bytes(test.context["mechanism"].snapshot())
    found = predict(test.config, test)
    run = rub(settings(10.0, **own))
    assert found.touch.ideal == pytest.approx(run.truth, abs=1e-3) and found.touch.restitution == pytest.approx(run.e, abs=5e-3)
    assert not found.within and "the mechanism's own contact would rebound at" in found.verdict()
    assert bytes(test.context["mechanism"].snapshot()) == state


def test_prediction_arms_what_is_true():
    """3 Hz with the recommended part: within the band."""
    K = sum(t["stiffness_n_per_m"] for t in contact_tables(3.0))
    table = settings(3.0, **{"compensation.stiffness_n_per_m": 0.8 * K, "compensation.estimate": True})
    found = predict(load_test(PROGRAMME, overrides({k: v for k, v in table.items() if k not in OPEN}, PROGRAMME)))
    assert found.within and found.touch.restitution / found.touch.ideal == pytest.approx(1.0, abs=0.01)
