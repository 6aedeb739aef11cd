"""Docking planes of two units that meet, and the spring pushers behind four places of them (Yaskevich 2020, 6.1).

Frames: A base of the active unit, T target port, X of both along the docking axis into the target. The planes are x = `x` of A and x = 0
of T; the places Q lie at `radius` on +Y, +Z, -Y, -Z of A. All m, N.

    gap = -x of p_TQ, s = length - gap                 pusher: f = k s + c max(s', 0) while s > 0, along X_T
    depth of the planes = -gap while gap < 0, n = X_T: one contact per place, its reaction by contact.reaction (4.4)

Both dampers follow from a stated restitution (contact.restitution): that of planes which close flat, a quarter of their mass at each place,
and that of a mass on one pusher, whose damper leaves the way out to the spring. The text states neither; its planes are a hundred times as
stiff as the pushers (4.4: two orders above what carries them). All is taken in the middle of the sub-step, the base at constant twist: then
the work of a spring is what it stores, k (d + h d'/2) h d' = k ((d + h d')^2 - d^2)/2, and a blow has the stated restitution.

Who has planes adds both forces to sums of its own.
"""

from rt_kernels.algebra.values cimport Mat3, Twist, Vec3, add, cross, mat_vec, mul, put, xyz
from rt_kernels.contact.primitives cimport FACE, Contact
from rt_kernels.contact.reaction cimport ContactLaw

cdef enum:
    PLACES = 4


cdef struct Planes:
    double x                   # docking plane of the active unit in its base
    double radius              # of the four places
    double pusher_length       # free length above the plane
    double pusher_stiffness    # of one pusher
    double pusher_damping      # of its damper, which acts in compression alone, N.s/m
    int pusher_dead            # number of the pusher that does not push, 0: none
    double together_gap        # the planes are together when the gap of every place is at most this
    ContactLaw law


cdef struct PlanePlace:
    Vec3 p_TQ
    double gap
    double squeeze             # of the pusher, 0: free
    double push                # its force on the target, N
    double damped              # of that, of its damper
    double rate                # at which the gap closes, m/s
    bint pressed               # the planes touch here
    Contact contact            # of the planes, if pressed


cdef inline PlanePlace plane_place(const Planes *p, int i, Vec3 p_TA, Mat3 R_TA, Twist V_TA, double ahead) noexcept nogil:
    """Place i of the docking planes `ahead` seconds after the base is at p_TA, R_TA with the twist V_TA."""
    cdef PlanePlace q
    cdef double side = p.radius if i < 2 else -p.radius
    cdef Vec3 arm = mat_vec(R_TA, xyz(p.x, 0.0 if i & 1 else side, side if i & 1 else 0.0))
    cdef Vec3 v = add(V_TA.v, cross(V_TA.w, arm))
    q.p_TQ = add(add(p_TA, arm), mul(ahead, v))
    q.gap = -q.p_TQ.x
    q.rate = v.x
    q.squeeze = q.push = q.damped = 0.0
    q.pressed = False
    if q.gap < p.pusher_length and i + 1 != p.pusher_dead:
        q.squeeze = p.pusher_length - q.gap
        if q.rate > 0.0:
            q.damped = p.pusher_damping * q.rate
        q.push = p.pusher_stiffness * q.squeeze + q.damped
    if q.gap < 0.0:
        q.pressed = True
        q.contact.depth = -q.gap
        put(xyz(1.0, 0.0, 0.0), q.contact.n)
        put(q.p_TQ, q.contact.r)
        q.contact.kind = FACE
        q.contact.index = i
    return q


cdef inline int fill_planes(Planes *p, dict keys, double plane_damping, double pusher_damping) except -1:
    """Constants from the parameters of a unit with planes, and the dampers of a place of the planes and of a pusher [N.s/m]."""
    p.x, p.radius, p.together_gap = keys["plane_x_m"], keys["pusher_radius_m"], keys["together_gap_m"]
    p.pusher_length, p.pusher_stiffness = keys["pusher_length_m"], keys["pusher_stiffness_n_per_m"]
    p.pusher_damping, p.pusher_dead = pusher_damping, keys["pusher_dead"]
    # no ramp: the restitution is the stated one
    p.law.stiffness, p.law.damping, p.law.ramp = keys["plane_stiffness_n_per_m"], plane_damping, 0.0
    p.law.friction, p.law.slip_speed, p.law.viscous_limit = keys["plane_friction"], keys["slip_speed_m_s"], plane_damping
    return 0
