"""pointing.py as an FMU 3.0 of pythonfmu3."""

import pointing
from pythonfmu3 import Boolean, Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability


class Pointing3(Fmi3Slave):
    """Pointing of a craft."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        pointing.declare(self, Float64, Boolean, Fmi3Causality, Fmi3Variability)

    def do_step(self, current_time, step_size):
        """One communication step."""
        pointing.advance(self)
        return True
