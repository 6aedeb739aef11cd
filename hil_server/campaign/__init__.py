"""Campaigns: thousands of initial conditions through the simulated line; capture probability, envelope and load statistics."""
