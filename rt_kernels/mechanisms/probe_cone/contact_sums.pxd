"""What the contacts of the unit add up to: wrenches on its bodies and on the target, their share of the energy ledger.

A header, so that contacts.pyx and latches.pyx have it inline: it is called for every pair that touches, in every sub-step.
"""

from rt_kernels.algebra.values cimport Mat3, Vec3, Wrench, add, cross, sub, vec, xyz
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react
from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef struct Body:
    # motion of a body in T axes; p: place of its reference point
    Vec3 p, v, w
    Mat3 R
    # contact sums on it: force and moment about the origin of A, T axes
    Wrench F


cdef struct Sums:
    Vec3 p_TA
    double h               # sub-step, s
    Wrench F_T             # on the target, at and in T
    double stored          # energy in the contacts' springs, J


cdef inline void apply_force(Body *body, Vec3 r, Vec3 f, Sums *sums) noexcept nogil:
    """Pair of forces at r: f on the target, its opposite on the body."""
    body.F.f = sub(body.F.f, f)
    body.F.m = sub(body.F.m, cross(sub(r, sums.p_TA), f))
    sums.F_T.f = add(sums.F_T.f, f)
    sums.F_T.m = add(sums.F_T.m, cross(r, f))


cdef inline double contact_reaction(Unit *u, const ContactLaw *law, const Contact *c, Body *body, Sums *sums) noexcept nogil:
    """Reaction at one contact between a body and the target (at rest in T), its sums and its share of the ledger.
    Returns the normal force."""
    cdef Vec3 r = vec(c.r)
    cdef Vec3 v = add(cross(body.w, sub(r, body.p)), body.v), v_target = xyz(0.0, 0.0, 0.0)
    cdef Reaction out
    react(law, c, &v.x, &v_target.x, &out)
    apply_force(body, r, vec(out.force), sums)
    u.state.lost.contact += sums.h * out.damped_power
    u.state.lost.friction += sums.h * out.friction_power
    sums.stored += 0.5 * law.stiffness * c.depth * c.depth
    if c.depth > u.deepest:
        u.deepest = c.depth
        u.deepest_part, u.deepest_number = u.touching_part, u.touching_number
        u.deepest_at = r
    return out.normal
