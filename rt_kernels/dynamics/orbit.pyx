"""Gravity of a planet in a frame that falls round it (Battin 1999: Encke's method; Hughes 2004: gravitational moments).

N keeps its directions; its origin moves on the reference orbit, so in N only differences of gravity are felt. R, V: origin of N from the
planet's centre and its velocity; r: place of a body's centre of mass in N; d = R + r, u = d/|d|; mu: gravitational parameter.

    R'' = g(R) = -mu R/|R|^3
    a   = g(R + r) - g(R) = -mu/|d|^3 (r - F R)       q = r.(r + 2 R)/|R|^2,   F = (1 + q)^(3/2) - 1 = q (3 + 3q + q^2)/(1 + (1 + q)^(3/2))
    G   = mu/|d|^3 (3 u u^T - 1)                      field at x from that place: a + G x
    m   = 3 mu/|d|^3 u x (I u)                        moment of G about the centre of mass

`a` is Encke's form: the two gravities, equal to five digits and more, are never subtracted, so that it is as exact for 1 mm as for 100 km.

How a part steps with it (velocity Verlet, second order; h: step): half a kick, its own step, half a kick.

    kick:   v += h/2 a(r),  L += h/2 m,  V += h/2 g(R)        `tide`, `rigid_moment`, `kick_reference`
    step:   contact and control as without orbit, r += h v,   R += h V     `drift_reference`

A full kick before the drift would be first order: in a constant field the way is too long by h/t, 1e-5 after 100 s at 1 ms.

Units m, s, kg; all vectors on N axes. Neglected: the planet's oblateness (J2), other planets, drag, light, what the field's curvature
does to one extended body (size/|d| of its gradient).
"""

import numpy as np

from rt_kernels.algebra.values cimport mat, put, put_mat, vec, xyz

LEAST_RADIUS_M = 1e3


cdef void fill_orbit(Orbit *out, orbit):
    """Out of a `rt_kernels.context.Orbit`, or None for no orbit. Raises ValueError."""
    out.parameter = 0.0
    out.R = out.V = xyz(0.0, 0.0, 0.0)
    if orbit is None:
        return
    R, V = (np.asarray(x, float) for x in (orbit.position_m, orbit.velocity_m_s))
    if R.shape != (3,) or V.shape != (3,) or not np.all(np.isfinite(V)) or not np.linalg.norm(R) >= LEAST_RADIUS_M:
        raise ValueError(f"orbit: position_m {R.tolist()}, velocity_m_s {V.tolist()}: three numbers each, limit |position_m| at least "
                         f"{LEAST_RADIUS_M:g} m")
    if not 0.0 < orbit.gravitational_parameter_m3_per_s2 < float("inf"):
        raise ValueError(f"orbit: gravitational_parameter_m3_per_s2 {orbit.gravitational_parameter_m3_per_s2}, limit above 0")
    out.parameter = orbit.gravitational_parameter_m3_per_s2
    out.R = xyz(R[0], R[1], R[2])
    out.V = xyz(V[0], V[1], V[2])


def field(orbit, place):
    """Tidal acceleration (3,) [m/s2] and gradient (3, 3) [1/s2] in N at `place` (3,) [m] of a `rt_kernels.context.Orbit`."""
    cdef Orbit given
    cdef double[::1] r = np.ascontiguousarray(place, float)
    fill_orbit(&given, orbit)
    cdef Reference at = start_reference(&given)
    cdef Tide felt = tide(&given, &at, vec(&r[0]))
    a, G = np.empty(3), np.empty(9)
    cdef double[::1] a_view = a, G_view = G
    put(felt.a, &a_view[0])
    put_mat(gradient(felt.rate2, felt.u), &G_view[0])
    return a, G.reshape(3, 3)


def moment(inertia, G):
    """Moment (3,) of a gradient `G` (3, 3) [1/s2] on a body of this inertia (3, 3) [kg.m2], one frame for all."""
    cdef double[::1] J_view = np.ascontiguousarray(inertia, float).ravel()
    cdef double[::1] G_view = np.ascontiguousarray(G, float).ravel()
    m = np.empty(3)
    cdef double[::1] m_view = m
    put(gradient_moment(mat(&J_view[0]), mat(&G_view[0])), &m_view[0])
    return m
