"""Distances of points and segments by coal's closed pairs of sphere and capsule (no iteration, no tolerance), for many poses,
and nearest points of a circle."""

import coal
import numpy as np

SKIN = 1e-4    # radius of the capsules that stand for segments
REQUEST = coal.DistanceRequest()


def frames(axes):
    """(n, 3, 3) rotations whose third column is along `axes` (n, 3)."""
    z = axes / np.linalg.norm(axes, axis=1)[:, None]
    hint = np.where(np.abs(z[:, :1]) < 0.9, [[1.0, 0, 0]], [[0, 1.0, 0]])
    x = np.cross(hint, z)
    x /= np.linalg.norm(x, axis=1)[:, None]
    return np.stack([x, np.cross(z, x), z], axis=2)


def segment_distances(A1, B1, A2, B2):
    """Distance of segments A1 B1 and A2 B2, all (n, 3), and the unit vector from the first to the second (n, 3)."""
    one, two = coal.Capsule(SKIN, 1.0), coal.Capsule(SKIN, 1.0)
    pair, result = coal.ComputeDistance(one, two), coal.DistanceResult()
    places = []
    for A, B in ((A1, B1), (A2, B2)):
        places.append((frames(B - A), (A + B) / 2, np.linalg.norm(B - A, axis=1) / 2))
    t1, t2 = coal.Transform3s(), coal.Transform3s()
    distance, normal = np.zeros(len(A1)), np.zeros((len(A1), 3))
    for i in range(len(A1)):
        for shape, t, (R, p, half) in ((one, t1, places[0]), (two, t2, places[1])):
            shape.halfLength = half[i]
            t.setRotation(R[i])
            t.setTranslation(p[i])
        result.clear()
        pair(t1, t2, REQUEST, result)
        distance[i], normal[i] = result.min_distance + 2 * SKIN, result.normal
    return distance, normal


def face_distances(profile, points, radius):
    """Spheres of `radius` (> 0) centred at `points` (n, 2: x, rho) of a half-plane against every straight piece of a meridian: distance of
    the centres (n, faces) and the unit vectors to the pieces (n, faces, 2)."""
    distance, normal = np.zeros((len(points), len(profile) - 1)), np.zeros((len(points), len(profile) - 1, 2))
    sphere, place, result = coal.Sphere(radius), coal.Transform3s(), coal.DistanceResult()
    centres = np.column_stack([points, np.zeros(len(points))])
    for j, (a, b) in enumerate(zip(profile[:-1], profile[1:], strict=True)):
        A, B = np.array([*a, 0.0]), np.array([*b, 0.0])
        wall = coal.Capsule(SKIN, np.linalg.norm(B - A))
        pair, t = coal.ComputeDistance(sphere, wall), coal.Transform3s(frames((B - A)[None])[0], (A + B) / 2)
        for i, c in enumerate(centres):
            place.setTranslation(c)
            result.clear()
            pair(place, t, REQUEST, result)
            distance[i, j], normal[i, j] = result.min_distance + SKIN + radius, result.normal[:2]
    return distance, normal


def nearest_azimuth(Q, L, R, azimuth):
    """Azimuth of the point of the circle (centre 0, axis X, radius R) nearest to the lines Q + t L, by Newton's method on the distance."""
    u = L / np.linalg.norm(L, axis=1)[:, None]
    for _ in range(30):
        c, s, zero = np.cos(azimuth), np.sin(azimuth), np.zeros(len(azimuth))
        C, dC = R * np.column_stack([zero, c, s]), R * np.column_stack([zero, -s, c])
        w = C - Q - np.sum((C - Q) * u, axis=1)[:, None] * u
        dw = dC - np.sum(dC * u, axis=1)[:, None] * u
        azimuth = azimuth - np.sum(w * dC, axis=1) / (np.sum(dw * dC, axis=1) - np.sum(w * C, axis=1))
    return azimuth
