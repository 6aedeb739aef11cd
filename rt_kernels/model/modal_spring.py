"""A spring-damper of six axes under a rigid body, from the modes that the body has on it."""

import numpy as np


def modal_spring(mass, inertia, frequencies_hz, damping, shapes=None, stiffness=None):
    """Stiffness K and damping C, (6, 6) each, of a spring at the centre of mass of a body: mass [kg], inertia (3, 3) [kg.m2]; frequencies
    (6,) [Hz] of the modes along and about the axes or of `shapes` (rows), or None with a stiffness; damping ratios (6,).

    Raises ValueError for shapes that are not independent of each other in the body's inertia (within 5 %), or a stiffness that is not
    symmetric and positive."""
    M = np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = mass * np.eye(3), inertia
    values, axes = np.linalg.eigh(M)
    root, back = (axes * np.sqrt(values)) @ axes.T, (axes / np.sqrt(values)) @ axes.T
    if stiffness is not None:
        K = np.asarray(stiffness, float)
        if not np.allclose(K, K.T, rtol=1e-9, atol=1e-9 * np.abs(K).max()) or not np.linalg.eigvalsh(K).min() > 0.0:
            raise ValueError("must be symmetric and positive")
        w2, Y = np.linalg.eigh(back @ K @ back)
        w = np.sqrt(w2)
    else:
        w, Y = 2.0 * np.pi * np.asarray(frequencies_hz, float), np.eye(6)
        if shapes is not None:
            Y = root @ np.asarray(shapes, float).T
            length = np.linalg.norm(Y, axis=0)
            if not length.min() > 0.0 or np.abs((Y / length).T @ (Y / length) - np.eye(6)).max() > 0.05:
                raise ValueError("the shapes of modes must be independent of each other in the body's inertia, within 5 %")
            # the nearest ones that are so exactly
            U, _, V = np.linalg.svd(Y / length)
            Y = U @ V
    P = root @ Y
    return (P * w**2) @ P.T, (P * (2.0 * np.asarray(damping, float) * w)) @ P.T
