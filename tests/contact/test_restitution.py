"""Damping of a contact from its restitution: a mass on a spring and damper that never pull, integrated."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rt_kernels.contact.restitution import damping, restitution


@pytest.mark.parametrize("wanted", [0.15, 0.3, 0.6, 0.95])
def test_a_blow_has_the_restitution_that_the_damper_was_made_for(wanted):
    k, m, v = 4e6, 5200.0, 0.007
    c = damping(k, m, wanted)
    free = lambda t, y: k * y[0] + c * y[1] if t > 0.0 else 1.0  # noqa: E731
    free.terminal, free.direction = True, -1
    end = solve_ivp(lambda t, y: [y[1], -(k * y[0] + c * y[1]) / m], (0.0, 1.0), [0.0, v], events=free, rtol=1e-10, atol=1e-13).y[1, -1]
    assert -end / v == pytest.approx(wanted, rel=1e-6)
    assert restitution(0.5 * c / np.sqrt(k * m)) == pytest.approx(wanted, rel=1e-9)
