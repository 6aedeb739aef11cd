"""Leg setpoints from the demanded pose."""
