"""Auxiliary channels of the part. Generated from adaptive_time_series_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("adaptive_lead", "-,s,s2", "coefficients a0, a1, a2 of the fit, without the delay of the force", 3),
)
