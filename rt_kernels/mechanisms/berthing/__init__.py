"""Berthing devices: a head that swings into a cone (`head`, part `berthing_head`), two pins and a lock (`pins`, part `berthing_pins`).

What both use is in `shared`. Each declares its auxiliary channels in a record of its own.
"""
