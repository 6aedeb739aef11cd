"""Docking unit made from two drawings: contact of triangle meshes, with springs, latches and stops at named points."""
