"""Restitution of a contact in which six degrees of freedom exchange their energy: by the energy of the free motion on either side.

    e = sqrt(1 + (E_after - E_before) / E_c) ,   E_c = 1/2 s' (U' L^-1 U)^-1 s ,   s = U' V

E kinetic energy of both vehicles in the frame of their common centre of mass. U (6, k) holds the lines of all contacts as screws
(n, p x n) at the origin of T, V is the spatial twist of A relative to T before, L^-1 the inverse inertia of the relative motion
(rt_kernels.compensation.effective_mass): E_c is what the contacts' normals can take out of the motion at most, the energy that is gone
when all points of contact have come to rest against their planes. With one contact without friction e is the ratio of the speeds along its
line, as hil_server.judge.rebound defines it; elastic contacts without friction have e = 1 however translation and rotation share after
them. Friction takes energy: then the truth is that of the same contact in orbit, and the stand is judged by the ratio to it.
"""

import math
from collections.abc import Sequence

import numpy as np

from rt_kernels.compensation.effective_mass import at_active_port, relative_inverse_inertia, rotation
from rt_kernels.context import Vehicles

Vector = Sequence[float] | np.ndarray


def free_energy(records: np.ndarray, vehicles: Vehicles) -> np.ndarray:
    """Kinetic energy of both vehicles in the frame of their common centre of mass, (n,), J."""
    total = np.zeros(len(records))
    for name, vehicle in (("C", vehicles.active), ("V", vehicles.target)):
        V = records[f"V_N{name}"]
        J = np.asarray(vehicle.inertia_kg_m2, float)
        total += 0.5 * vehicle.mass_kg * np.sum(V[:, :3] ** 2, axis=1)
        for i, (X, w) in enumerate(zip(records[f"X_N{name}"], V[:, 3:], strict=True)):
            w_body = rotation(X[3:]).T @ w
            total[i] += 0.5 * w_body @ J @ w_body
    p = vehicles.active.mass_kg * records["V_NC"][:, :3] + vehicles.target.mass_kg * records["V_NV"][:, :3]
    found: np.ndarray = total - 0.5 * np.sum(p * p, axis=1) / (vehicles.active.mass_kg + vehicles.target.mass_kg)
    return found


def meeting_energy(vehicles: Vehicles, X_TA: Vector, V_TA: Vector, lines: Sequence[Sequence[float]] | np.ndarray) -> float:
    """E_c, J: what contacts along `lines`, screws (k, 6) at the origin of T, can take out of the twist V_TA (6,) at X_TA (7,) at most."""
    U = np.atleast_2d(np.asarray(lines, float)).T
    s = U.T @ np.linalg.solve(at_active_port(X_TA), np.asarray(V_TA, float))
    # contacts that say the same are one
    return 0.5 * float(s @ np.linalg.pinv(U.T @ relative_inverse_inertia(vehicles, X_TA) @ U) @ s)


def energy_restitution(energy: Sequence[float] | np.ndarray, met: float) -> float:
    """e of the energies (before, after), J, and of E_c; 0 where more than that is gone."""
    return math.sqrt(max(0.0, 1.0 + (energy[1] - energy[0]) / met))
