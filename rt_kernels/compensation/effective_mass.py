"""Inverse inertia of the relative motion at the contact: how the two vehicles answer a contact wrench.

    L^-1 = sum over both bodies of [[1/m - c~ I^-1 c~,  c~ I^-1], [-I^-1 c~,  I^-1]]        (6x6, at the origin of T, T axes)

c: centre of mass from the origin of T; I about it (hybrid-stability notes 5.1: 1/M = sum 1/m_i + (r_i x n)^T I_i^-1 (r_i x n) is its
quadratic form with the screw (n, p x n) of a contact at p along n). Set-up only; the vehicles are taken as rigid and as they stand at
the nominal first contact.
"""

from typing import Any

import numpy as np

from rt_kernels.context import Vehicle, Vehicles


def skew(v: Any) -> np.ndarray:
    """v~ with v~ x = v x x. v: (3,)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def rotation(q: Any) -> np.ndarray:
    """Rotation matrix of the quaternion [x, y, z, w]."""
    x, y, z, w = np.asarray(q, float) / np.linalg.norm(q)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def inverse_inertia(vehicle: Vehicle, R: np.ndarray, c: Any) -> np.ndarray:
    """Of one body: wrench at the origin to acceleration there. R: its axes to the origin's frame; c: its centre of mass from there."""
    I_inverse = R @ np.linalg.inv(np.asarray(vehicle.inertia_kg_m2, float)) @ R.T
    c = skew(c)
    return np.block([[np.eye(3) / vehicle.mass_kg - c @ I_inverse @ c, c @ I_inverse], [-I_inverse @ c, I_inverse]])


def relative_inverse_inertia(vehicles: Vehicles, X_TA: Any) -> np.ndarray:
    """L^-1 (6, 6) of both vehicles (the assembly's context `vehicles`) at the relative pose X_TA (7,): 1/kg, 1/(kg.m), 1/(kg.m2)."""
    X_VT, X_CA = (np.asarray(vehicle.X_port, float) for vehicle in (vehicles.target, vehicles.active))
    R_TV = rotation(X_VT[3:]).T
    R_TA = rotation(np.asarray(X_TA, float)[3:])
    R_TC = R_TA @ rotation(X_CA[3:]).T
    p_TV = -R_TV @ X_VT[:3]
    p_TC = np.asarray(X_TA, float)[:3] - R_TC @ X_CA[:3]
    return inverse_inertia(vehicles.target, R_TV, p_TV) + inverse_inertia(vehicles.active, R_TC, p_TC)


def at_active_port(X_TA: Any) -> np.ndarray:
    """(6, 6): spatial velocity at the origin of T to (velocity of the origin of A, angular velocity), as in V_TA."""
    S = np.eye(6)
    S[:3, 3:] = -skew(np.asarray(X_TA, float)[:3])
    return S


def to_target_port(X_TA: Any) -> np.ndarray:
    """(6, 6): twist at and in A to the same motion at and in T. v at T's origin = v at A's origin - w x p = R v_A + p x R w_A."""
    R = rotation(np.asarray(X_TA, float)[3:])
    return np.block([[R, skew(np.asarray(X_TA, float)[:3]) @ R], [np.zeros((3, 3)), R]])
