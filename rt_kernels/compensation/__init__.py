"""Compensators: what takes the delay of the loop out of wrench and setpoints."""
