"""Elastic-adaptive peripheral docking unit (part `elastic_adaptive`): a ring unit with its own attenuation and retraction.

    accumulator   spring, clutch and backlash of a strut
    retraction    sequence of operation, cables, their drive
    unit          the part
    record        its auxiliary channels, after those of every ring unit
"""
