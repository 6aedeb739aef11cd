"""Set-up of the drive with two motors and a differential (dissertation 6.1.2-6.1.4, corrected: see errata E48-E50); steps are in the header."""

import numpy as np


cdef int fill_drive(object v, Drive *d) except -1:
    """From a parameter table: inertia matrix of the differential (6.1.3) with the reducer's gears on the carrier, inverted."""
    Ra, Rb, RH, Rg = v["wheel_radii_m"]
    Ia, Ib, IH, Ig = v["wheel_inertia_kg_m2"]
    Ga, Gb, GH, Gg = v["reducer_radii_m"]
    JGa, JGH, JGg = v["reducer_inertia_kg_m2"]
    n = v["satellites"]
    i_PG = (Ga / (2.0 * GH)) ** 2
    if not i_PG < 1.0:
        raise ValueError(f"reducer_radii_m: the output shaft must turn slower than the carrier, got the ratio {i_PG}")
    reduced = JGa + (Ga / (Ga + Gb)) ** 2 * JGH + n * (Ga / (2.0 * Gg)) ** 2 * JGg
    IH = IH + (1.0 + i_PG) * reduced
    A = np.array([
        [Ia + Ra**2 * IH / (4 * RH**2) + n * Ra**2 * Ig / (4 * Rg**2), Ra * Rb / 4 * (IH / RH**2 - n * Ig / Rg**2)],
        [Ra * Rb / 4 * (IH / RH**2 - n * Ig / Rg**2), Ib + Rb**2 * IH / (4 * RH**2) + n * Rb**2 * Ig / (4 * Rg**2)],
    ])
    inverse = np.linalg.inv(A).ravel()
    cdef int i
    for i in range(4):
        d.inverse[i] = inverse[i]
    d.carrier_share[0] = Ra / (2 * RH)
    d.carrier_share[1] = Rb / (2 * RH)
    d.motor_ratio[0], d.motor_ratio[1] = v["motor_ratio"]
    d.stall = v["motor_stall_n_m"]
    d.back_emf = v["motor_back_emf_n_m_s_per_rad"]
    d.friction = v["motor_friction_n_m"]
    d.i_PG = i_PG
    d.efficiency = v["drive_efficiency"]
    return 0
