"""pointing.py as an FMU 2.0 of pythonfmu."""

import pointing
from pythonfmu import Boolean, Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class Pointing2(Fmi2Slave):
    """Pointing of a craft."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        pointing.start(self)
        for name in pointing.NUMBERS:
            self.register_variable(Real(name, causality=Fmi2Causality.input))
        for name in pointing.SWITCHES:
            self.register_variable(Boolean(name, causality=Fmi2Causality.input, variability=Fmi2Variability.discrete))
        for name in pointing.OUTPUTS:
            self.register_variable(Real(name, causality=Fmi2Causality.output))
        self.register_variable(Boolean("holding", causality=Fmi2Causality.output, variability=Fmi2Variability.discrete))
        for name in pointing.PARAMETERS:
            self.register_variable(Real(name, causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable))

    def do_step(self, current_time, step_size):
        """One communication step."""
        pointing.advance(self)
        return True
