"""pointing.py as an FMU 2.0 of pythonfmu."""

import pointing
from pythonfmu import Boolean, Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class Pointing2(Fmi2Slave):
    """Pointing of a craft."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        pointing.declare(self, Real, Boolean, Fmi2Causality, Fmi2Variability)

    def do_step(self, current_time, step_size):
        """One communication step."""
        pointing.advance(self)
        return True
