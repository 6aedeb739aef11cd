"""Phases of a run and programmed motion."""
