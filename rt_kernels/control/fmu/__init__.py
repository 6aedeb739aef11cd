"""A controller from outside, as an FMU in a process of its own."""
