"""Auxiliary channels of the part. Generated from ethercat_record.toml by tools/generate_channels.py: do not edit."""

from rt_kernels.parameters import Aux

AUX = (
    Aux("bus_deviation_ns", "ns", "how late the newest frame passed the reference clock against its place before SYNC0"),
    Aux("bus_grid_error_ns", "ns", "of this deviation, what is the grid's: without what was unusual of the time at which the frame left"),
    Aux("bus_round_trip_ns", "ns", "from sending the newest answered frame to its arrival in the kernel"),
    Aux("bus_working_counter", "-", "working counter of the process data in the newest frame"),
    Aux("bus_al_status", "-", "AL status of all slaves in the newest frame, ORed; 8: all operational"),
    Aux("bus_late_total", "-", "frames that came after the next one had been sent"),
    Aux("bus_doubled_total", "-", "frames that came twice, or that nobody had sent"),
)
