"""Contacts on the hydraulic stand through the whole line, with its noise and limits: a small cut of what tools/contact_map.py prints."""

from dataclasses import replace

import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.judge.rebound import speed_along
from hil_server.line import assembly
from hil_server.predict.contact_line import STOP, line, mode_at, records_of
from rt_kernels.layout import CODES
from tests.hybrid.rubbing import contact_tables, rub
from tests.hybrid.rubbing import settings as rubbing

VEHICLES = [f"{vehicle}.{key}" for vehicle in ("active_vehicle", "target_vehicle")
            for key in ("mass_kg=600.0", "inertia_kg_m2=[[150.0,0,0],[0,150.0,0],[0,0,150.0]]",
                        "port_position_m=[0.0,0.0,0.0]")]  # fmt: skip
ALONG = {"x": (1, 0, 0, 0, 0, 0), "y": (0, 1, 0, 0, 0, 0)}


def bounce(axis, frequency_hz, share, speed=0.02, seed=1, known=None, **keys):
    """e of one contact met along the axis, the compensator's stiffness wrong by `share`. known: tables of the stand file that say what is
    known of it, else all is. nan where the run trips."""
    config = load_test("stand_configs/programmes/elastic_contact.toml", ["test.stand=stands/hydraulic_stand.toml", *VEHICLES])
    stand = config.stand | {"virtual": config.stand["virtual"] | {"seed": seed}} | (known or {})
    test = assembly.simulation(replace(config, document=config.document | {"stand": stand}))
    mode = mode_at(test, frequency_hz, 0.0, ALONG[axis])
    compensator = ("lead_and_pose_force", {"stiffness_n_per_m": share * mode.stiffness, "estimate": True} | keys)
    records = records_of(line(test, mode, speed, compensator, as_configured=True))
    if any(int(records["faults"][-1]) & bit for bit in STOP.values()):
        return np.nan
    free = records[records["motion"] == CODES["motion"]["free"]]
    before, after = speed_along(free[[0, -1]], mode.shape)
    return float(-after / before)


@pytest.mark.parametrize(("axis", "frequency", "share"), [("x", 3.0, 0.8), ("x", 5.0, 1.2), ("y", 3.0, 1.2), ("y", 5.0, 0.8)])
def test_contact_is_as_in_orbit_on_the_hydraulic_stand(axis, frequency, share):
    """20 mm/s, where dead band and friction weigh most, along the docking axis and across it, stiffness 20 % wrong."""
    assert 0.98 <= np.mean([bounce(axis, frequency, share, seed=seed) for seed in (1, 2)]) <= 1.02


def test_ten_hertz_across():
    """Where the platform sways on its oil, the lead is a compromise: within 5 %."""
    assert 0.95 <= bounce("y", 10.0, 0.8) <= 1.05


def test_what_is_not_known_of_the_stand_shows():
    """The same with the nearest single drive in the ledger, the prior stiffness kept: far off across the axis, or tripped."""
    drive = {"drive_model": {"frequency_hz": 26.8, "damping": 1.226, "delay_s": 0.00859, "date": ""}}
    assert not 0.95 <= bounce("y", 5.0, 0.8, known=drive, estimate=False) <= 1.05


def test_two_contacts_that_rub_on_a_unit_that_rings():
    """Unit of 30 Hz and 2 %, two contacts at once 0.3 m off the axis, friction 0.1: e over that in orbit at 5 Hz; at 10 Hz it takes the
    observer of the unit's modes."""
    def ratio(f, **keys):
        K = sum(contact["stiffness_n_per_m"] for contact in contact_tables(f))
        own = {"compensation.stiffness_n_per_m": 0.8 * K, "compensation.estimate": True}
        return rub(rubbing(f, 0.05, **own, **keys)).ratio

    assert 0.97 <= ratio(5.0) <= 1.03
    assert 0.95 <= ratio(10.0) <= 1.05
    assert ratio(10.0, **{"compensation.structure": False}) > 1.05
