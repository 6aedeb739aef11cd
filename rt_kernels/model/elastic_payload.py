"""Payload on the elastic arm: mass matrix at the end effector, modes, damping from the log decrement. Yaskevich 2020 (8.2), corrected."""

from __future__ import annotations

import numpy as np

from rt_kernels.model.modes import skew


def payload_mass_matrix(mass_kg: float, inertia: np.ndarray, p_EP_E: np.ndarray, R_EP: np.ndarray) -> np.ndarray:
    """(6, 6) of a rigid payload for the twist [v; w] of the end effector at E, axes of E.

    mass kg; inertia (3, 3) kg.m2 about the centre of mass P, payload axes; p_EP_E (3,) m from E to P in E; R_EP (3, 3) from P to E.
    The printed matrix lacks the mass in its off-diagonal blocks and the transfer of the inertia to E. ValueError for a mass not above 0 and
    an inertia that is not positive definite.
    """
    inertia, R = np.asarray(inertia, dtype=float), np.asarray(R_EP, dtype=float)
    if not (np.isfinite(mass_kg) and mass_kg > 0.0):
        raise ValueError(f"mass_kg: {mass_kg} kg is not a finite number > 0")
    if inertia.shape != (3, 3) or not np.allclose(inertia, inertia.T, rtol=1e-9) or not np.linalg.eigvalsh(inertia).min() > 0.0:
        raise ValueError(f"inertia: {inertia.tolist()} kg.m2 is not a symmetric positive definite (3, 3) matrix")
    arm = mass_kg * skew(np.asarray(p_EP_E, dtype=float))
    return np.block([[mass_kg * np.eye(3), -arm], [arm, R @ inertia @ R.T - arm @ arm / mass_kg]])


def payload_modes(K: np.ndarray, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Circular frequencies (6,) rad/s, rising, and modes (6, 6) with Phi^T M Phi = 1, of K Phi = M Phi w^2."""
    from scipy.linalg import eigh

    squares, modes = eigh(K, M)
    if not squares[0] > 0.0:
        raise ValueError(f"K: smallest squared frequency {squares[0]:.3g} 1/s^2, it must be > 0")
    return np.sqrt(squares), modes


def damping_matrix(K: np.ndarray, M: np.ndarray, decrement: float | np.ndarray) -> np.ndarray:
    """C_d (6, 6), symmetric: every mode decays with its log decrement (one number or six): C_d = M Phi diag(2 zeta w) Phi^T M.

    zeta = delta/sqrt(4 pi^2 + delta^2). ValueError for a decrement not above or equal to 0.
    """
    delta = np.broadcast_to(np.asarray(decrement, dtype=float), (6,))
    if not (np.all(np.isfinite(delta)) and np.all(delta >= 0.0)):
        raise ValueError(f"decrement: {delta.tolist()} are not finite numbers >= 0")
    w, modes = payload_modes(K, M)
    shapes = M @ modes
    C = shapes @ np.diag(2.0 * w * delta / np.sqrt(4.0 * np.pi**2 + delta**2)) @ shapes.T
    return 0.5 * (C + C.T)
