"""Gravity of a planet in a frame that falls round it: structs and formulas for the dynamics parts. Equations and frames: orbit.pyx.

Inline: a few sums of three numbers, made twice a step for every body.
"""

from libc.math cimport sqrt

from rt_kernels.algebra.values cimport Mat3, Quat, Vec3, add, cross, dot, mat_multiply, mat_vec, mul, rotate, rotate_back, sub, xyz


# what is given: where the origin of N is when the loop closes
cdef struct Orbit:
    double parameter            # gravitational parameter of the planet, m3/s2; 0: no orbit, nothing of this file acts
    Vec3 R                      # origin of N from the planet's centre, m, N axes
    Vec3 V                      # its velocity, m/s


# where it is now: part of the state of who flies in it
cdef struct Reference:
    Vec3 R
    Vec3 V


# the difference of gravity at one place, N axes
cdef struct Tide:
    Vec3 a                      # acceleration of what falls there, relative to N, m/s2
    Vec3 u                      # unit vector from the planet's centre to the place
    double rate2                # mu / distance^3, 1/s2


cdef inline Reference start_reference(const Orbit *orbit) noexcept nogil:
    """The loop closes here."""
    cdef Reference at
    at.R = orbit.R
    at.V = orbit.V
    return at


cdef inline void kick_reference(const Orbit *orbit, double h, Reference *at) noexcept nogil:
    """V += h g(R)."""
    cdef double rr = dot(at.R, at.R)
    at.V = add(at.V, mul(-h * orbit.parameter / (rr * sqrt(rr)), at.R))


cdef inline void drift_reference(double h, Reference *at) noexcept nogil:
    """R += h V."""
    at.R = add(at.R, mul(h, at.V))


cdef inline Tide tide(const Orbit *orbit, const Reference *at, Vec3 r) noexcept nogil:
    """What falls at `r` (N axes) feels relative to N: a = g(R + r) - g(R), exact and without cancellation."""
    cdef Tide out
    cdef double RR = dot(at.R, at.R)
    # |R + r|^2 = |R|^2 (1 + q)
    cdef double q = (dot(r, r) + 2.0 * dot(r, at.R)) / RR
    cdef double root = sqrt(1.0 + q)
    cdef double cube = (1.0 + q) * root                        # (1 + q)^(3/2)
    cdef double F = q * (3.0 + q * (3.0 + q)) / (1.0 + cube)   # (1 + q)^(3/2) - 1
    out.rate2 = orbit.parameter / (RR * sqrt(RR) * cube)
    out.u = mul(1.0 / (sqrt(RR) * root), add(at.R, r))
    # -mu / |R + r|^3 (r - F R)
    out.a = mul(out.rate2, sub(mul(F, at.R), r))
    return out


cdef inline Mat3 gradient(double rate2, Vec3 u) noexcept nogil:
    """Gravity gradient, 1/s2, axes of u: G = mu/d^3 (3 u u^T - 1), so that the field near the place is a + G x. rate2, u: of `tide`."""
    cdef Mat3 G
    G.xx = rate2 * (3.0 * u.x * u.x - 1.0); G.xy = rate2 * (3.0 * u.x * u.y); G.xz = rate2 * (3.0 * u.x * u.z)
    G.yx = rate2 * (3.0 * u.y * u.x); G.yy = rate2 * (3.0 * u.y * u.y - 1.0); G.yz = rate2 * (3.0 * u.y * u.z)
    G.zx = rate2 * (3.0 * u.z * u.x); G.zy = rate2 * (3.0 * u.z * u.y); G.zz = rate2 * (3.0 * u.z * u.z - 1.0)
    return G


cdef inline Vec3 gradient_moment(Mat3 J, Mat3 G) noexcept nogil:
    """Moment of the gradient about the place: integral of x x (G x) dm. J: inertia about the place; one frame for all.

    With the second moments S = tr(J)/2 1 - J: m_i = e_ijk (S G)_jk = -e_ijk (J G)_jk, as G is symmetric. Right for any J of a deformed
    body too; for one rigid body it is 3 mu/d^3 u x (J u).
    """
    cdef Mat3 JG = mat_multiply(J, G)
    return xyz(JG.zy - JG.yz, JG.xz - JG.zx, JG.yx - JG.xy)


cdef inline Vec3 rigid_moment(double rate2, Vec3 u, Quat q, Mat3 inertia) noexcept nogil:
    """Gravity-gradient moment on a rigid body, N axes: 3 mu/d^3 u x (I u). q: attitude; inertia: about the centre of mass, body axes."""
    cdef Vec3 u_body = rotate_back(q, u)
    return rotate(q, mul(3.0 * rate2, cross(u_body, mat_vec(inertia, u_body))))


cdef void fill_orbit(Orbit *out, orbit)
