"""Gravity of a planet in a frame that falls round it: structs and formulas for the dynamics parts. Equations and frames: orbit.pyx.

Inline: a few sums of three numbers, made twice a step for every body.
"""

from libc.math cimport sqrt

from rt_kernels.algebra cimport quat, rot3, vec3


# what is given: where the origin of N is when the loop closes
cdef struct Orbit:
    double parameter            # gravitational parameter of the planet, m3/s2; 0: no orbit, nothing of this file acts
    double R[3]                 # origin of N from the planet's centre, m, N axes
    double V[3]                 # its velocity, m/s


# where it is now: part of the state of who flies in it
cdef struct Reference:
    double R[3]
    double V[3]


cdef inline void start_reference(const Orbit *orbit, Reference *at) noexcept nogil:
    """The loop closes here."""
    vec3.copy(orbit.R, at.R)
    vec3.copy(orbit.V, at.V)


cdef inline void kick_reference(const Orbit *orbit, double h, Reference *at) noexcept nogil:
    """V += h g(R)."""
    cdef double rr = vec3.dot(at.R, at.R)
    vec3.add_scaled(at.V, -h * orbit.parameter / (rr * sqrt(rr)), at.R, at.V)


cdef inline void drift_reference(double h, Reference *at) noexcept nogil:
    """R += h V."""
    vec3.add_scaled(at.R, h, at.V, at.R)


cdef inline double tide(const Orbit *orbit, const Reference *at, const double *r, double *a, double *u) noexcept nogil:
    """Acceleration `a` relative to N of what falls at `r` (both N axes): g(R + r) - g(R), exact and without cancellation.

    Out: u, the unit vector from the planet's centre to that place. Returns mu / |R + r|^3, 1/s2.
    """
    cdef double RR = vec3.dot(at.R, at.R)
    # |R + r|^2 = |R|^2 (1 + q)
    cdef double q = (vec3.dot(r, r) + 2.0 * vec3.dot(r, at.R)) / RR
    cdef double root = sqrt(1.0 + q)
    cdef double cube = (1.0 + q) * root                        # (1 + q)^(3/2)
    cdef double rate2 = orbit.parameter / (RR * sqrt(RR) * cube)
    cdef double F = q * (3.0 + q * (3.0 + q)) / (1.0 + cube)   # (1 + q)^(3/2) - 1
    cdef double inverse_distance = 1.0 / (sqrt(RR) * root)
    vec3.add(at.R, r, u)
    vec3.scale(inverse_distance, u, u)
    # -mu / |R + r|^3 (r - F R)
    vec3.scale(F, at.R, a)
    vec3.sub(a, r, a)
    vec3.scale(rate2, a, a)
    return rate2


cdef inline void gradient(double rate2, const double *u, double *G) noexcept nogil:
    """Gravity gradient, 1/s2, N axes: G = mu/d^3 (3 u u^T - 1), so that the field near the place is a + G x. From what `tide` gave."""
    cdef int i, j
    for i in range(3):
        for j in range(3):
            G[3 * i + j] = rate2 * (3.0 * u[i] * u[j] - (1.0 if i == j else 0.0))


cdef inline void gradient_moment(const double *J, const double *G, double *m) noexcept nogil:
    """Moment of the gradient about the place: integral of x x (G x) dm. J: inertia about the place, (3, 3); one frame for all.

    With the second moments S = tr(J)/2 1 - J: m_i = e_ijk (S G)_jk = -e_ijk (J G)_jk, as G is symmetric. Right for any J of a deformed
    body too; for one rigid body it is 3 mu/d^3 u x (J u).
    """
    cdef double JG[9]
    rot3.multiply(J, G, JG)
    vec3.fill(JG[7] - JG[5], JG[2] - JG[6], JG[3] - JG[1], m)


cdef inline void rigid_moment(double rate2, const double *u, const double *q, const double *inertia, double *m) noexcept nogil:
    """Gravity-gradient moment on a rigid body, N axes: 3 mu/d^3 u x (I u). q: attitude; inertia: about the centre of mass, body axes."""
    cdef double u_body[3]
    cdef double h[3]
    quat.rotate_back(q, u, u_body)
    rot3.apply(inertia, u_body, h)
    vec3.cross(u_body, h, h)
    vec3.scale(3.0 * rate2, h, h)
    quat.rotate(q, h, m)


cdef void fill_orbit(Orbit *out, orbit)
