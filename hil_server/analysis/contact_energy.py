"""Restitution of a contact in which six degrees of freedom exchange their energy: by the energy of the free motion on either side.

    e = sqrt(1 + (E_after - E_before) / E_c) ,   E_c = 1/2 s' (U' L^-1 U)^-1 s ,   s = U' V

E kinetic energy of both vehicles in the frame of their common centre of mass. U (6, k) holds the lines of all contacts as screws
(n, p x n) at the origin of T, V is the spatial twist of A relative to T before, L^-1 the inverse inertia of the relative motion
(rt_kernels.compensation.effective_mass): E_c is what the contacts' normals can take out of the motion at most, the energy that is gone
when all points of contact have come to rest against their planes. With one contact without friction e is the ratio of the speeds along its
line, as hil_server.analysis.rebound defines it; elastic contacts without friction have e = 1 however translation and rotation share after
them. Friction takes energy: then the truth is that of the same contact in orbit (`in_orbit`), and the stand is judged by the ratio to it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rt_kernels.compensation.effective_mass import at_active_port, relative_inverse_inertia, rotation
from rt_kernels.context import Vehicle, Vehicles
from rt_kernels.offline.two_craft import TwoCraft

SHORT_S = 1e-5  # step in orbit


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


def meeting_energy(vehicles: Vehicles, X_TA: Any, V_TA: Any, lines: Any) -> float:
    """E_c, J: what contacts along `lines`, screws (k, 6) at the origin of T, can take out of the twist V_TA (6,) at X_TA (7,) at most."""
    U = np.atleast_2d(np.asarray(lines, float)).T
    s = U.T @ np.linalg.solve(at_active_port(X_TA), np.asarray(V_TA, float))
    # contacts that say the same are one
    return 0.5 * float(s @ np.linalg.pinv(U.T @ relative_inverse_inertia(vehicles, X_TA) @ U) @ s)


def energy_restitution(energy: Sequence[float] | np.ndarray, met: float) -> float:
    """e of the energies (before, after), J, and of E_c; 0 where more than that is gone."""
    return math.sqrt(max(0.0, 1.0 + (energy[1] - energy[0]) / met))


def in_orbit(vehicles: Vehicles, mechanism: Any, record: np.ndarray, duration_s: float, dt: float = SHORT_S) -> tuple[float, float]:
    """Energies before and after of the same two vehicles from the state of `record` on, without a stand: the mechanism between them, in
    steps of `dt`. Its state is changed."""
    pair = TwoCraft(
        mechanism, *(_craft(v, record[f"X_N{n}"], record[f"V_N{n}"]) for v, n in ((vehicles.active, "C"), (vehicles.target, "V")))
    )
    mass = vehicles.active.mass_kg + vehicles.target.mass_kg
    whole = float(np.sum(pair.momentum()[:3] ** 2)) / (2.0 * mass)
    before = pair.kinetic_energy() - whole
    pair.run(duration_s, dt, every=1000)
    return before, pair.kinetic_energy() - whole


def _craft(vehicle: Vehicle, X: np.ndarray, V: np.ndarray) -> dict[str, Any]:
    return {"mass": vehicle.mass_kg, "inertia": vehicle.inertia_kg_m2, "X_port": vehicle.X_port, "X": X, "v": V[:3],
            "w": rotation(X[3:]).T @ V[3:]}  # fmt: skip
