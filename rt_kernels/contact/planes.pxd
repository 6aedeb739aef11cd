"""Docking planes of two units that meet, and the spring pushers behind four places of them (Yaskevich 2020, 6.1).

Frames: A base of the active unit, T target port, X of both along the docking axis into the target. The planes are x = `x` of A and x = 0
of T; the places Q lie at `radius` on +Y, +Z, -Y, -Z of A. All m, N.

    gap = -x of p_TQ                                   pusher: f = k (length - gap) while gap < length, along X_T
    depth of the planes = -gap while gap < 0, n = X_T: one contact per place, its reaction by contact.reaction (4.4)

Who has planes adds both forces to sums of its own.
"""

from rt_kernels.algebra.values cimport Mat3, Vec3, add, mat_vec, put, xyz
from rt_kernels.contact.primitives cimport FACE, Contact
from rt_kernels.contact.reaction cimport ContactLaw

cdef enum:
    PLACES = 4


cdef struct Planes:
    double x                   # docking plane of the active unit in its base
    double radius              # of the four places
    double pusher_length       # free length above the plane
    double pusher_stiffness    # of one pusher
    double together_gap        # the planes are together when the gap of every place is at most this
    ContactLaw law


cdef struct PlanePlace:
    Vec3 p_TQ
    double gap
    double squeeze             # of the pusher, 0: free
    double push                # its force on the target, N
    bint pressed               # the planes touch here
    Contact contact            # of the planes, if pressed


cdef inline PlanePlace plane_place(const Planes *p, int i, Vec3 p_TA, Mat3 R_TA) noexcept nogil:
    """Place i of the docking planes with the base at p_TA, R_TA."""
    cdef PlanePlace q
    cdef double side = p.radius if i < 2 else -p.radius
    q.p_TQ = add(p_TA, mat_vec(R_TA, xyz(p.x, 0.0 if i & 1 else side, side if i & 1 else 0.0)))
    q.gap = -q.p_TQ.x
    q.squeeze = q.push = 0.0
    q.pressed = False
    if q.gap < p.pusher_length:
        q.squeeze = p.pusher_length - q.gap
        q.push = p.pusher_stiffness * q.squeeze
    if q.gap < 0.0:
        q.pressed = True
        q.contact.depth = -q.gap
        put(xyz(1.0, 0.0, 0.0), q.contact.n)
        put(q.p_TQ, q.contact.r)
        q.contact.kind = FACE
        q.contact.index = i
    return q
