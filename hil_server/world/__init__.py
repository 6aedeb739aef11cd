"""The live system in virtual time: production code in one process, whose clock, tasks, wires and disk obey one seed."""
