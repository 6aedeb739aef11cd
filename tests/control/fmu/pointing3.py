"""pointing.py as an FMU 3.0 of pythonfmu3."""

import pointing
from pythonfmu3 import Boolean, Float64, Fmi3Causality, Fmi3Slave, Fmi3Variability


class Pointing3(Fmi3Slave):
    """Pointing of a craft."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        pointing.start(self)
        for name in pointing.NUMBERS:
            self.register_variable(Float64(name, causality=Fmi3Causality.input))
        for name in pointing.SWITCHES:
            self.register_variable(Boolean(name, causality=Fmi3Causality.input, variability=Fmi3Variability.discrete))
        for name in pointing.OUTPUTS:
            self.register_variable(Float64(name, causality=Fmi3Causality.output))
        self.register_variable(Boolean("holding", causality=Fmi3Causality.output, variability=Fmi3Variability.discrete))
        for name in pointing.PARAMETERS:
            self.register_variable(Float64(name, causality=Fmi3Causality.parameter, variability=Fmi3Variability.tunable))

    def do_step(self, current_time, step_size):
        """One communication step."""
        pointing.advance(self)
        return True
