"""Pose of the platform from the measured legs."""
