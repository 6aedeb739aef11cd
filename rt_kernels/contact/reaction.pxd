"""Reaction at a contact point: spring-damper along the normal, Coulomb friction along the slip (Yaskevich 2020 (4.4))."""

from libc.math cimport sqrt
from rt_kernels.algebra.values cimport Vec3, add, dot, mul, put, sub, vec
from rt_kernels.contact.primitives cimport Contact


cdef struct ContactLaw:
    double stiffness           # k_S, N/m
    double damping             # c_D, N.s/m
    double ramp                # penetration over which the damper comes in, m (0: at once)
    double friction            # mu
    double slip_speed          # v_s of the regularised friction, m/s
    double viscous_limit       # greatest friction force per slip speed, N.s/m: m_eff/h, so that friction cannot reverse the slip
    #                            in one step


cdef struct Reaction:
    double normal              # |f_R|, N
    double damped_power        # lost in the normal damper, W
    double friction_power      # lost in friction, W
    double force[3]            # on the target body, N


cdef inline void react(const ContactLaw *law, const Contact *contact, const double *v_active, const double *v_passive,
                       Reaction *out) noexcept nogil:
    """Force on the target body for the velocities of the *same* spatial point on the two bodies.

    Normal: `max(0, k depth + c depth_rate)`: a contact never pulls. Friction: `mu |f_R| v_T / sqrt(|v_T|^2 + v_s^2)`, zero and smooth at
    zero slip (the printed unit vector v_T/|v_T| is not defined there), acting on the target body along the slip of the active one.
    """
    cdef Vec3 n = vec(contact.n)
    cdef Vec3 v = sub(vec(v_active), vec(v_passive))
    cdef double rate = dot(n, v)
    cdef Vec3 slip = sub(v, mul(rate, n))
    cdef double spring, weight, per_speed
    # spring and damper; the damper comes in with depth so that the first touch is not a jump
    weight = 1.0
    if law.ramp > 0.0 and contact.depth < law.ramp:
        weight = contact.depth / law.ramp
    spring = law.stiffness * contact.depth
    out.normal = spring + weight * law.damping * rate
    if out.normal < 0.0:
        out.normal = 0.0
    out.damped_power = (out.normal - spring) * rate
    # friction as a bounded viscous coefficient times the slip
    per_speed = law.friction * out.normal / sqrt(dot(slip, slip) + law.slip_speed * law.slip_speed)
    if per_speed > law.viscous_limit:
        per_speed = law.viscous_limit
    out.friction_power = per_speed * dot(slip, slip)
    put(add(mul(out.normal, n), mul(per_speed, slip)), out.force)
