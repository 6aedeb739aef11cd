"""Delay criterion of a contact, tau_d = c/k (berthing notes, section 3): the energy monitor trips beyond it and is silent below."""

import numpy as np
import pytest

from rt_kernels.layout import FAULTS
from tests.hybrid.bounce import closed_loop, run, settings

BIT = {fault[0]: fault[1] for fault in FAULTS}
F = 3.0


def monitored(share):
    """Overrides for a contact of 3 Hz whose damping makes the loop's delay `share` of c/k. The monitor allows a gain of 2 %."""
    keys = {"safety.energy_trip": 0.02, "safety.energy_warn": 0.01, "safety.energy_floor_j": 1e-4}
    test, _ = run(settings(F, "ideal", "none", **keys))
    return settings(F, "ideal", "none", zeta=np.pi * F * test.ledger.total_s / share, **keys)


@pytest.mark.parametrize("share", [0.5, 0.8, 1.25, 2.0])
def test_monitor_trips_beyond_damping_over_stiffness(share):
    _, records = run(monitored(share))
    c = closed_loop(records)
    assert c["contact"].any()
    assert bool((c["faults"] & BIT["energy_gain"]).any()) == (share > 1.0)
