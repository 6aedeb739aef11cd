"""Linear contacts in the place of a docking unit: the ones that formulas are known for."""
