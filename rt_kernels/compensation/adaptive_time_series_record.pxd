"""Auxiliary channels as the kernel writes them.

Generated from adaptive_time_series_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct AdaptiveRecord:
    double adaptive_lead[3]  # [-,s,s2] coefficients a0, a1, a2 of the fit, without the delay of the force
