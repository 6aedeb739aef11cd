"""Limits on setpoints, trips and holds."""
