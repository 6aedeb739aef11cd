"""Compensators of the loop delay, in wrench and setpoints."""
