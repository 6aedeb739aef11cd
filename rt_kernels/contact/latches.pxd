"""Massless spring-loaded latches and sensor levers of a probe head, and fired latches in the grooves of the socket.

Yaskevich 2020 (5.3) with two corrections: the angle of a pressed latch is the root of the penetration on [0, phi_max] (the printed search
can only open the latch further; the sign of the penetration changes once), and the normals point into the target body. A latch lies in a
half-plane through the head axis X_H; in it a point has an axial coordinate x and a radial one rho,
and a positive angle turns it towards the axis (retracts it into the head).
"""

from libc.math cimport fabs, fmin, sqrt
from rt_kernels.algebra.sincos cimport sincos
from rt_kernels.algebra.values cimport Mat3, Vec3, add, cross, dot, mat_vec, mul, put, sub, vec, xyz
from rt_kernels.contact.primitives cimport Contact, FACE, GROOVE, LATCH, Profile, segment_circle, sphere_in_cavity

cdef enum LatchPhase:
    FREE = 0
    PRESSED = 1
    FIRED = 2


cdef struct LatchGeometry:
    double pivot_x           # pivot in the head frame, m
    double pivot_rho
    double nose_x            # point 1 relative to the pivot at phi = 0, m (a lever: centre of the circle)
    double nose_rho
    double tip_x             # point 2 relative to the pivot, m
    double tip_rho
    double radius            # of a lever's circle; 0 for a latch, whose primitive is the segment 1-2
    double angle_max         # rad
    double torque_preload    # M(0), N.m
    double torque_rate       # dM/dphi, N.m/rad
    double lock_x            # segment 3-4 in the head frame: at this x, from lock_rho_inner to lock_rho_outer, m
    double lock_rho_inner
    double lock_rho_outer


cdef struct Groove:
    double stop_x            # x of the stop's vertex in T, m
    double plane             # distance of the groove plane from the axis, m
    double narrow            # half-width next to the stop, less half a latch width, m
    double wide              # half-width at the open end, less half a latch width, m
    double ramp_start        # axial distance from the vertex to the start of the inclined walls, m
    double ramp_end
    double length            # axial length of the groove, m


cdef struct HeadPlane:
    # half-plane of one latch: the head in T, and the direction (0, uy, uz) of the half-plane in the head
    Vec3 p_TH
    Mat3 R_TH
    double uy
    double uz


cdef inline Vec3 head_point(const HeadPlane *H, double x, double rho) noexcept nogil:
    """Point (x, rho) of the half-plane, in T."""
    return add(H.p_TH, mat_vec(H.R_TH, xyz(x, H.uy * rho, H.uz * rho)))


cdef inline Vec3 latch_point(const HeadPlane *H, const LatchGeometry *g, double s, double c, double x, double rho) noexcept nogil:
    """Point (x, rho) of the latch body, turned by phi (s, c), in T."""
    return head_point(H, g.pivot_x + c * x + s * rho, g.pivot_rho - s * x + c * rho)


cdef inline double latch_penetration(
    const Profile *socket, double entry_x, double entry_R, const HeadPlane *H, const LatchGeometry *g, double phi, Contact *deepest
) noexcept nogil:
    """Greatest penetration of a latch or lever at angle phi; negative (clearance unknown) without contact."""
    cdef Contact found[4]
    cdef Vec3 nose, tip, slope
    cdef Vec3 centre = xyz(entry_x, 0.0, 0.0), axis = xyz(1.0, 0.0, 0.0)
    cdef double s, c
    cdef double worst = -1.0
    cdef int i, n
    sincos(phi, &s, &c)
    nose = latch_point(H, g, s, c, g.nose_x, g.nose_rho)
    if g.radius > 0.0:
        # a lever: the circle, which in its own meridian plane is a sphere of the same radius
        n = sphere_in_cavity(socket, &nose.x, g.radius, found, 4)
    else:
        tip = latch_point(H, g, s, c, g.tip_x, g.tip_rho)
        # the outer end against cone and cylinder
        n = sphere_in_cavity(socket, &tip.x, 0.0, found, 3)
        # the slope against the entry circle
        slope = sub(tip, nose)
        if segment_circle(&nose.x, &slope.x, &centre.x, &axis.x, entry_R, True, 0, &found[n]):
            n += 1
    for i in range(n):
        if found[i].depth > worst:
            worst = found[i].depth
            deepest[0] = found[i]
    return worst


cdef struct Bracket:
    # what is known of the sign of the penetration g, which changes once: g > 0 up to `pressed`, g <= 0 from `clear` on
    double pressed
    double clear
    double depth             # g at `pressed`
    Contact *touch           # the contact there


cdef inline bint presses(
    const Profile *socket, double entry_x, double entry_R, const HeadPlane *H, const LatchGeometry *g, double phi, Bracket *known
) noexcept nogil:
    """Whether the latch penetrates at angle phi; computed only between the ends of the bracket, one of which it moves."""
    cdef Contact touch
    cdef double depth
    if phi <= known.pressed:
        return True
    if phi >= known.clear:
        return False
    depth = latch_penetration(socket, entry_x, entry_R, H, g, phi, &touch)
    if depth > 0.0:
        known.pressed, known.depth, known.touch[0] = phi, depth, touch
        return True
    known.clear = phi
    return False


cdef inline void narrow(
    const Profile *socket, double entry_x, double entry_R, const HeadPlane *H, const LatchGeometry *g, Bracket *known
) noexcept nogil:
    """Narrows the bracket to 2e-9 rad by Newton steps from its pressed end: dg/dphi is minus the lever arm of the normal about the pivot.
    The first step ends short of the root, so that the second is exact. Without convergence the bracket stays wide, and bisection computes
    more."""
    cdef Vec3 pivot = head_point(H, g.pivot_x, g.pivot_rho)
    cdef Vec3 axis = mat_vec(H.R_TH, xyz(0.0, -H.uz, H.uy))
    cdef double arm, root, short = 1e-5
    for _ in range(6):
        arm = fabs(dot(cross(sub(vec(known.touch.r), pivot), vec(known.touch.n)), axis))
        if arm < 1e-4:
            return
        root = fmin(known.pressed + known.depth / arm, fmin(g.angle_max, known.clear - short))
        if not presses(socket, entry_x, entry_R, H, g, root - short, known):
            short *= 8.0
        elif short > 1e-6:
            short = 1e-9
        elif not presses(socket, entry_x, entry_R, H, g, root + short, known):
            return


cdef inline double pressed_angle(
    const Profile *socket, double entry_x, double entry_R, const HeadPlane *H, const LatchGeometry *g, double previous, Contact *contact,
    bint *bottomed
) noexcept nogil:
    """Angle at which the latch just touches: root of the penetration g(phi) on [0, phi_max] by bisection, to 1e-9 rad or 40 steps; 0 if
    free. Newton steps find between which angles the bisection has to compute the penetration.

    `contact` is the touching point (of the last angle with penetration); `bottomed` if even phi_max penetrates
    (then the penalty law takes over).
    """
    cdef double low = 0.0, high = g.angle_max, mid
    cdef Bracket known
    bottomed[0] = False
    known.pressed, known.clear, known.touch = 0.0, high + 1.0, contact
    known.depth = latch_penetration(socket, entry_x, entry_R, H, g, 0.0, contact)
    if known.depth <= 0.0:
        return 0.0
    # the last angle halves the bracket at best near its end: one probe on either side of it
    if 2e-3 < previous < high and presses(socket, entry_x, entry_R, H, g, previous - 2e-3, &known):
        low = previous - 2e-3
    narrow(socket, entry_x, entry_R, H, g, &known)
    if 0.0 < previous < high:
        mid = previous + 2e-3
        if mid < high and not presses(socket, entry_x, entry_R, H, g, mid, &known):
            high = mid
    if high == g.angle_max and presses(socket, entry_x, entry_R, H, g, high, &known):
        latch_penetration(socket, entry_x, entry_R, H, g, high, contact)
        bottomed[0] = True
        return g.angle_max
    for _ in range(40):
        if high - low < 1e-9:
            break
        mid = 0.5 * (low + high)
        if presses(socket, entry_x, entry_R, H, g, mid, &known):
            low = mid
        else:
            high = mid
    if known.pressed != low:
        latch_penetration(socket, entry_x, entry_R, H, g, low, contact)
    return high


cdef inline double latch_force(const HeadPlane *H, const LatchGeometry *g, double phi, const Contact *contact) noexcept nogil:
    """|f| = M(phi)/arm along the contact normal; the arm about the pivot is kept above 1 mm (self-locking line of action)."""
    cdef Vec3 pivot = head_point(H, g.pivot_x, g.pivot_rho)
    # axis of the latch hinge: X_H x radial
    cdef Vec3 axis = mat_vec(H.R_TH, xyz(0.0, -H.uz, H.uy))
    cdef double arm = fabs(dot(cross(sub(vec(contact.r), pivot), vec(contact.n)), axis))
    if arm < 1e-3:
        arm = 1e-3
    return (g.torque_preload + g.torque_rate * phi) / arm


cdef inline bint inside_groove(const Groove *groove, double along, double lateral) noexcept nogil:
    """Is a point of the groove plane, `along` from the stop and `lateral` from the middle, inside the groove's outline?"""
    cdef double half
    if along < 0.0 or along > groove.length:
        return False
    if along < groove.ramp_start:
        half = groove.narrow
    elif along < groove.ramp_end:
        half = groove.narrow + (groove.wide - groove.narrow) * (along - groove.ramp_start) / (groove.ramp_end - groove.ramp_start)
    else:
        half = groove.wide
    return fabs(lateral) <= half


cdef inline int latch_in_groove(
    const Groove *groove, int k, const double *inner, const double *outer, Contact *out
) noexcept nogil:
    """Contacts (at most two) of the locking segment inner-outer (T axes) of fired latch k = 0..3 with groove k.

    Groove k lies in the plane at distance `plane` from the X axis in the direction +Y, +Z, -Y, -Z. Stop: depth -d1; narrow wall: |d2| -
    narrow; inclined wall: (|d2| - narrow - (d1 - ramp_start) tan b) cos b. The wide part is never reached.

    The printed normals lie in the groove plane. There the crossing of a tilted latch moves along the segment, unlike the latch's own point
    at it, and the force would do more work than its spring takes: it stands on the segment instead, n <- n - a (n.l)/(a.l) with the
    segment's direction l and the axis a of the plane, scaled to one, the depth with it; the depth then grows with n . v of that point.
    """
    cdef int axis_normal = 1 + (k & 1)
    cdef int axis_side = 2 - (k & 1)
    cdef double level = groove.plane if k < 2 else -groove.plane
    cdef double along = outer[axis_normal] - inner[axis_normal]
    cdef double t, d1, d2, side, depth, tangent, cosine
    cdef double P[3]
    cdef int found = 0
    # the latch plane parallel to the groove plane: no crossing
    if fabs(along) < 1e-9:
        return 0
    t = (level - inner[axis_normal]) / along
    put(add(vec(inner), mul(t, sub(vec(outer), vec(inner)))), P)
    d1 = P[0] - groove.stop_x
    d2 = P[axis_side]
    side = 1.0 if d2 >= 0.0 else -1.0
    if d1 < 0.0:
        groove_contact(-d1, P, &out[found], 0)
        out[found].n[0] = -1.0
        found += 1
    if d1 < groove.ramp_start:
        depth = fabs(d2) - groove.narrow
        if depth > 0.0:
            groove_contact(depth, P, &out[found], 1)
            out[found].n[axis_side] = side
            found += 1
    elif d1 <= groove.ramp_end:
        tangent = (groove.wide - groove.narrow) / (groove.ramp_end - groove.ramp_start)
        cosine = 1.0 / sqrt(1.0 + tangent * tangent)
        depth = (fabs(d2) - groove.narrow - (d1 - groove.ramp_start) * tangent) * cosine
        if depth > 0.0:
            groove_contact(depth, P, &out[found], 2)
            out[found].n[0] = -tangent * cosine
            out[found].n[axis_side] = side * cosine
            found += 1
    for k in range(found):
        out[k].n[axis_normal] = -((outer[0] - inner[0]) * out[k].n[0] + (outer[axis_side] - inner[axis_side]) * out[k].n[axis_side]) / along
        cosine = 1.0 / sqrt(1.0 + out[k].n[axis_normal] * out[k].n[axis_normal])
        out[k].depth *= cosine
        put(mul(cosine, vec(out[k].n)), out[k].n)
    return found


cdef inline void groove_contact(double depth, const double *P, Contact *out, int index) noexcept nogil:
    out.depth = depth
    put(xyz(0.0, 0.0, 0.0), out.n)
    put(vec(P), out.r)
    out.kind = GROOVE
    out.index = index
