"""Auxiliary channels as the kernel writes them.

Generated from ethercat_record.toml by tools/generate_channels.py: do not edit.
"""


cdef struct EthercatRecord:
    double bus_deviation_ns  # [ns] how late the newest frame passed the reference clock against its place before SYNC0
    double bus_grid_error_ns  # [ns] of this deviation, what is the grid's: without what was unusual of the time at which the frame left
    double bus_round_trip_ns  # [ns] from sending the newest answered frame to its arrival in the kernel
    double bus_working_counter  # working counter of the process data in the newest frame
    double bus_al_status  # AL status of all slaves in the newest frame, ORed; 8: all operational
    double bus_late_total  # frames that came after the next one had been sent
    double bus_doubled_total  # frames that came twice, or that nobody had sent
