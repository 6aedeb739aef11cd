"""Peripheral docking units with a ring on six legs: `unit` (part `ring`) and `elastic/` (part `elastic_adaptive`).

    contact      guide petals, latches and alignment sensors of two rings
    platform     ring on six legs: closed kinematics, reduced equations, reactions on the base
    unit         what every such unit has, its tick, and the part `ring`
    parameters   what every such unit declares
    record       its auxiliary channels

The elastic-adaptive unit is a ring unit with another attenuation and retraction: it lives here because contact, platform, ledger,
parameters and record are those of `unit`.
"""
