"""Fits out of runs and recordings: drives, hydraulic stand, structure, force sensor."""
