"""Pairs of geometric primitives: penetration, normal and contact point in closed form.

All vectors are in the axes of the target port T: X points *into* the receptacle, the cone narrows
with growing x. The normal `n` points from the active body into the target one, `depth > 0` is penetration.
Source: Yaskevich 2020, 5.1, 5.2, 5.4. The printed bounding boxes of the sphere pairs lose contacts near edges; the test by projection on
the meridian profile is used instead.
"""

from libc.math cimport sqrt, fabs
from rt_kernels.algebra.values cimport Vec3, add, cross, dot, mul, neg, norm, put, sub, vec, xyz

cdef enum:
    MAX_VERTICES = 16

cdef enum ContactKind:
    FACE = 0
    EDGE = 1
    LINE_CIRCLE = 2
    LINE_LINE = 3
    GROOVE = 4
    LATCH = 5

cdef struct Contact:
    double depth         # penetration along n, m
    double n[3]          # unit normal from the active into the target body
    double r[3]          # contact point, m
    int kind             # ContactKind
    int index            # which face, vertex or primitive of the family


cdef struct Profile:
    # meridian of a cavity of revolution about X: vertices (x, rho) from the outer rim to the middle of the bottom
    int count
    double x[MAX_VERTICES]
    double rho[MAX_VERTICES]
    # per face i (vertex i to i+1): unit tangent, length
    double tx[MAX_VERTICES]
    double tr[MAX_VERTICES]
    double length[MAX_VERTICES]
    # vertex i is an edge that sticks out into the cavity
    bint convex[MAX_VERTICES]


cdef inline void prepare_profile(Profile *p) noexcept nogil:
    """Fill tangents, lengths and convexity from `count`, `x`, `rho`."""
    cdef int i
    cdef double lx, lr, length
    for i in range(p.count - 1):
        lx = p.x[i + 1] - p.x[i]
        lr = p.rho[i + 1] - p.rho[i]
        length = sqrt(lx * lx + lr * lr)
        p.length[i] = length
        p.tx[i] = lx / length
        p.tr[i] = lr / length
        p.convex[i] = False
    p.convex[p.count - 1] = False
    # the outer rim is an edge
    p.convex[0] = True
    for i in range(1, p.count - 1):
        # the profile turns towards the solid: tangent i lies on the solid's side of face i-1, whose normal is (-tr, tx)
        p.convex[i] = -p.tr[i - 1] * p.tx[i] + p.tx[i - 1] * p.tr[i] > 0.0


cdef inline int sphere_in_cavity(const Profile *p, const double *c, double R, Contact *out, int room) noexcept nogil:
    """Contacts of a sphere of radius R (0: a point) centred at c with a cavity of revolution; returns how many were written to `out`.

    In the half-plane through c and the axis every straight piece whose foot of the perpendicular lies inside it is a face contact,
    and every convex vertex whose two neighbours' feet both lie beyond it is an edge contact: cone, edge circle, cylinder and plane in one.
    A concave corner gives two contacts. A centre inside the solid (a point always is) has one contact per edge and corner too: behind both
    faces of a convex edge the nearer face counts, behind a concave corner its vertex. Range:
    less than R plus the face length behind a face.
    """
    cdef int i, found = 0, behind = -2
    cdef double rho = sqrt(c[1] * c[1] + c[2] * c[2])
    cdef double uy = 1.0, uz = 0.0
    cdef double dx, dr, s, distance, depth, nx, nr
    # foot beyond the end of the previous face; before the first face there is only the rim
    cdef bint past_end = True
    if rho > 1e-12:
        uy = c[1] / rho
        uz = c[2] / rho
    for i in range(p.count - 1):
        if found >= room:
            return found
        dx = c[0] - p.x[i]
        dr = rho - p.rho[i]
        # position of the foot along face i
        s = dx * p.tx[i] + dr * p.tr[i]
        if s < 0.0:
            # before this face and beyond the last one: the vertex between them is nearest
            distance = dx * dx + dr * dr
            if past_end and distance > 0.0 and (distance < R * R if p.convex[i] else i > 0):
                distance = sqrt(distance)
                # towards the solid: to a convex edge, away from a concave corner
                if p.convex[i]:
                    distance = -distance
                nx = dx / distance
                nr = dr / distance
                fill_contact(c, R, R + distance, nx, nr * uy, nr * uz, EDGE, i, &out[found])
                found += 1
            past_end = False
        elif s <= p.length[i]:
            # into the solid is (-tr, tx): how far the centre lies behind the face
            nx = -p.tr[i]
            nr = p.tx[i]
            distance = dx * nx + dr * nr
            depth = R + distance
            if depth > 0.0:
                if distance > 0.0 and p.convex[i] and behind == i - 1:
                    # behind the last face as well: the nearer one of the two
                    if depth < out[found - 1].depth:
                        fill_contact(c, R, depth, nx, nr * uy, nr * uz, FACE, i, &out[found - 1])
                else:
                    fill_contact(c, R, depth, nx, nr * uy, nr * uz, FACE, i, &out[found])
                    found += 1
                if distance > 0.0:
                    behind = i
            past_end = False
        else:
            past_end = True
    return found


cdef inline void fill_contact(
    const double *c, double R, double depth, double nx, double ny, double nz, int kind, int index, Contact *out
) noexcept nogil:
    # the contact point of a sphere: its radius from the centre along the normal
    cdef Vec3 n = xyz(nx, ny, nz)
    out.depth = depth
    put(n, out.n)
    put(add(vec(c), mul(R, n)), out.r)
    out.kind = kind
    out.index = index


cdef inline bint segment_circle(
    const double *begin, const double *run, const double *centre, const double *normal, double R, bint active_is_line, int refinements,
    Contact *out
) noexcept nogil:
    """Segment P1 + t L, t in [0, 1], against a circle (centre, unit axis, radius R); True and `out` filled if the segment passes outside.

    Yaskevich 2020 (5.2), corrected: the radial direction is taken at the circle's own centre and the normal is oriented by the role of the
    line (`n . n_C > 0` if the active body carries it). With `refinements = 0` the depth is the distance of the segment from the circle's
    tangent at the crossing point (the text's form, first order); each refinement moves the tangent to the point of the circle nearest to
    the line: two give the exact skew distance to 1e-9 m for depths below 1 % of R.
    """
    cdef Vec3 P1 = vec(begin), L = vec(run), C = vec(centre), axis = vec(normal)
    cdef Vec3 Q, n_C, tangent, n, offset
    cdef double along = dot(axis, L), LL = dot(L, L)
    cdef double t, b, w, length
    # crossing point of the segment with the plane of the circle; nearly parallel: no contact
    if along * along < 1e-24 * LL:
        return False
    t = dot(axis, sub(C, P1)) / along
    if t < 0.0 or t > 1.0:
        return False
    Q = add(P1, mul(t, L))
    n_C = sub(Q, C)
    length = norm(n_C)
    if length - R <= 0.0:
        return False
    n_C = mul(1.0 / length, n_C)
    tangent = cross(axis, n_C)
    for _ in range(refinements):
        # Newton step of the azimuth: the distance of circle point and line, w, is least where w . tangent = 0
        offset = sub(add(C, mul(R, n_C)), P1)
        t = dot(L, offset) / LL
        offset = add(offset, mul(-t, L))
        b = dot(L, tangent)
        w = R * (1.0 - b * b / LL) - dot(offset, n_C)
        if w < 1e-12 * R:
            break
        n_C = add(n_C, mul(-dot(offset, tangent) / w, tangent))
        n_C = mul(1.0 / norm(n_C), n_C)
        tangent = cross(axis, n_C)
        # point of the line nearest to the circle
        offset = sub(add(C, mul(R, n_C)), P1)
        Q = add(P1, mul(dot(L, offset) / LL, L))
    # common normal of the line and the tangent, oriented by the role
    n = cross(L, tangent)
    length = norm(n)
    if length * length < 1e-24 * LL:
        return False
    n = mul(1.0 / length, n)
    if (dot(n, n_C) < 0.0) == active_is_line:
        n = neg(n)
    # depth = |(P1 - circle point) . n|; equals the distance of Q from the circle, times |n . n_C|, without refinement
    out.depth = fabs(dot(sub(P1, add(C, mul(R, n_C))), n))
    put(n, out.n)
    put(Q, out.r)
    out.kind = LINE_CIRCLE
    out.index = 0
    return True


cdef inline bint segment_segment(
    const double *begin_A, const double *run_A, const double *begin_P, const double *run_P, const double *reference, Contact *out
) noexcept nogil:
    """Active segment OA + t LA against target OP + s LP; True if both nearest points lie inside and the active one is beyond the target's.

    The normal is the cross product of the segments, oriented by the pair's `reference` vector (into the target body), so that touching
    segments need no division by their distance (Yaskevich 2020 (5.2), the 1e-6 mm threshold is not needed).
    `out.depth` is set (negative: gap) whenever the crossing is inside both segments.
    """
    cdef Vec3 OA = vec(begin_A), LA = vec(run_A), OP = vec(begin_P), LP = vec(run_P)
    cdef Vec3 w = sub(OA, OP)
    cdef Vec3 n, CA, CP
    cdef double a = dot(LA, LA), b = dot(LA, LP), c = dot(LP, LP), d = dot(LA, w), e = dot(LP, w)
    cdef double den = a * c - b * b
    cdef double ta, tp
    out.depth = -1.0
    # near-parallel segments have no common normal
    if den < 1e-12 * a * c:
        return False
    ta = (b * e - c * d) / den
    tp = (a * e - b * d) / den
    if ta < 0.0 or ta > 1.0 or tp < 0.0 or tp > 1.0:
        return False
    n = cross(LA, LP)
    n = mul(1.0 / norm(n), n)
    if dot(n, vec(reference)) < 0.0:
        n = neg(n)
    CA = add(OA, mul(ta, LA))
    CP = add(OP, mul(tp, LP))
    out.depth = dot(sub(CA, CP), n)
    put(n, out.n)
    put(CP, out.r)
    out.kind = LINE_LINE
    out.index = 0
    return out.depth > 0.0


# distance of primitive i of a family from the circle centre, or any unimodal measure of depth
ctypedef double (*FamilyMeasure)(const void *family, int i) noexcept nogil


cdef inline int deepest_of_family(
    FamilyMeasure measure, const void *family, int levels, bint climb, double *value, int *halvings
) noexcept nogil:
    """Index in 0 .. 2^levels of the primitive with the greatest measure, by halving (Yaskevich 2020 (5.4)), then a climb to the neighbours.

    The text's rule (keep the two largest of begin, middle, end) alone misses the best primitive in up to 0.3 % of poses; the climb repairs
    it. Equal values within 1e-12 relative mean coincident axes: the middle one. One new primitive is measured per halving.
    """
    cdef int first = 0, last = 1 << levels, middle = 1 << (levels - 1)
    cdef int size = last
    cdef double d_first = measure(family, first)
    cdef double d_last = measure(family, last)
    cdef double d_middle = measure(family, middle)
    cdef double d
    cdef int best
    halvings[0] = 0
    if fabs(d_first - d_middle) <= 1e-12 * fabs(d_middle) and fabs(d_last - d_middle) <= 1e-12 * fabs(d_middle):
        value[0] = d_middle
        return middle
    while last - first > 1:
        halvings[0] += 1
        # drop the smallest of the two ends, unless the middle is the smallest of all: then drop the smaller end all the same
        if d_first <= d_last:
            first = middle
            d_first = d_middle
        else:
            last = middle
            d_last = d_middle
        if last - first > 1:
            middle = (first + last) >> 1
            d_middle = measure(family, middle)
    if d_first >= d_last:
        best = first
        d = d_first
    else:
        best = last
        d = d_last
    if climb:
        while best < size:
            d_last = measure(family, best + 1)
            if d_last <= d:
                break
            best += 1
            d = d_last
        while best > 0:
            d_first = measure(family, best - 1)
            if d_first <= d:
                break
            best -= 1
            d = d_first
    value[0] = d
    return best
