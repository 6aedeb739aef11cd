"""Geometry and kinematics of the six-legged platform."""
