"""What the contacts of the unit add up to: wrenches on its bodies and on the target, their share of the energy ledger.

A header, so that contacts.pyx and latches.pyx have it inline: it is called for every pair that touches, in every sub-step.
"""

from rt_kernels.algebra cimport rot3, vec3
from rt_kernels.contact.primitives cimport Contact
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react
from rt_kernels.mechanisms.probe_cone.model cimport Unit


cdef struct Body:
    # motion of a body in T axes
    double p[3]            # place of its reference point
    double v[3]
    double w[3]
    double R[9]
    # contact sums on it: force and moment about the origin of A, T axes
    double f[3]
    double m[3]


cdef struct Sums:
    double p_TA[3]
    double h               # sub-step, s
    double F_T[6]          # on the target, at and in T
    double stored          # energy in the contacts' springs, J


cdef inline void apply_force(Body *body, const double *r, const double *force_on_target, Sums *sums) noexcept nogil:
    """Pair of forces at r: `force_on_target` on the target, its opposite on the body."""
    cdef double arm[3]
    cdef double moment[3]
    vec3.sub(body.f, force_on_target, body.f)
    vec3.sub(r, sums.p_TA, arm)
    vec3.cross(arm, force_on_target, moment)
    vec3.sub(body.m, moment, body.m)
    vec3.add(sums.F_T, force_on_target, sums.F_T)
    vec3.cross(r, force_on_target, moment)
    vec3.add(sums.F_T + 3, moment, sums.F_T + 3)


cdef inline double contact_reaction(Unit *u, const ContactLaw *law, const Contact *c, Body *body, Sums *sums) noexcept nogil:
    """Reaction at one contact between a body and the target (at rest in T), its sums and its share of the ledger.
    Returns the normal force."""
    cdef double v[3]
    cdef double zero[3]
    cdef double arm[3]
    cdef Reaction out
    vec3.fill(0.0, 0.0, 0.0, zero)
    vec3.sub(c.r, body.p, arm)
    vec3.cross(body.w, arm, v)
    vec3.add(v, body.v, v)
    react(law, c, v, zero, &out)
    apply_force(body, c.r, out.force, sums)
    u.state.lost.contact += sums.h * out.damped_power
    u.state.lost.friction += sums.h * out.friction_power
    sums.stored += 0.5 * law.stiffness * c.depth * c.depth
    if c.depth > u.deepest:
        u.deepest = c.depth
        u.deepest_part, u.deepest_number = u.touching_part, u.touching_number
        vec3.copy(c.r, u.deepest_at)
    return out.normal
