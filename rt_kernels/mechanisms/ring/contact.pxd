"""Contact of two androgynous docking rings with guide petals, plungers of the alignment sensors, and ring latches. Equations: ring_contact.pyx."""

from libc.math cimport sqrt, fabs

from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3
from rt_kernels.contact.primitives cimport Contact, FACE, deepest_of_family, segment_circle, segment_segment
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react

cdef enum:
    PETALS = 3
    RING_LATCHES = 6
    MAX_GENERATORS = 257
    RING_CONTACTS = 24       # 6 petal-circle, 6 flanks, 6 plane points, 6 locked latches
    LATCH_CONTACTS = 12


cdef struct RingGeometry:
    double inner_radius              # R_R, inner circle of the ring plane
    double face_radius               # outer edge of the ring face
    double outer_radius              # R_R,max: circle below the plane where generators and upper segments start
    double azimuth[PETALS]           # of the petals in the ring frame
    double R_petal[PETALS][9]        # petal frame in the ring frame (turn about X)
    int levels                       # 2^levels + 1 generators per petal
    double start[MAX_GENERATORS][3]  # generators of a petal: start and vector, petal axes
    double along[MAX_GENERATORS][3]
    double upper[2][2][3]            # flank (minus, plus): start C and vector C to A
    double lower[2][2][3]            # start E and vector E to A
    double outward[2][3]             # outward normal of the flank face
    double plane_point[2][3]         # on the ring plane beside the petal
    double chord_error               # largest distance of the straight flank edge from the true one, m
    double depth_max                 # of a flank contact: beyond it the petals have passed each other


cdef struct RingLatch:
    double tip[3]                    # B, extended, ring axes
    double inner[3]                  # A
    double out[3]                    # n_L, from A to B


cdef struct RingLatchLaw:
    RingLatch latch[RING_LATCHES]
    double mass
    double stiffness                 # spring
    double preload
    double contact_stiffness         # k_LS
    double stop_radius_min           # of the stop's edge
    double stop_radius_max           # guiding cone: radius at x = 0
    double stroke                    # greatest compression


cdef struct RingLatchState:
    double x                         # compression, m
    double v
    double fired                     # 0 or 1


cdef struct RingSensors:
    double position[3][3]            # feet of the plungers on the ring plane, ring axes
    double protrusion                # of a free plunger
    double stiffness
    double preload
    double switch_compression


# Pose and motion of the active ring N in the target port T (the passive ring), T axes.
cdef struct RingPose:
    double p[3]
    double R[9]
    double v[3]
    double w[3]


cdef struct RingLoads:
    double F_T[6]                    # on the passive ring, at T, T axes
    double F_N[6]                    # on the active ring, about its centre, T axes
    double D_N[6]                    # part of F_N from friction and contact damping
    double lost_power                # friction and contact damping at the rates of the start of the step, W
    double stored                    # contact springs and plungers, J
    double depth                     # deepest penetration, m
    int count
    bint aligned[3]
    double plunger[3]


cdef struct Family:
    const RingGeometry *g
    const double *p                  # frame of the petal ring in T
    const double *R                  # petal frame in T
    const double *centre             # circle
    const double *axis


cdef inline void generator(const Family *f, int i, double *P, double *L) noexcept nogil:
    # generator i of a petal in T
    rot3.apply(f.R, f.g.start[i], P)
    vec3.add(f.p, P, P)
    rot3.apply(f.R, f.g.along[i], L)


cdef inline double generator_radius(const void *family, int i) noexcept nogil:
    """Distance from the circle's centre at which generator i, prolonged, crosses the plane of the circle."""
    cdef const Family *f = <const Family *> family
    cdef double P[3]
    cdef double L[3]
    cdef double t, slope
    generator(f, i, P, L)
    vec3.sub(P, f.centre, P)
    slope = vec3.dot(f.axis, L)
    if fabs(slope) < 1e-12:
        return 0.0
    t = -vec3.dot(f.axis, P) / slope
    vec3.add_scaled(P, t, L, P)
    return vec3.norm(P)


cdef inline double generator_end(const Family *f, int i) noexcept nogil:
    # crossing parameter t of generator i with the plane of the circle
    cdef double P[3]
    cdef double L[3]
    generator(f, i, P, L)
    vec3.sub(f.centre, P, P)
    return vec3.dot(f.axis, P) / vec3.dot(f.axis, L)


cdef inline bint petal_circle(const Family *f, bint active_is_line, Contact *out) noexcept nogil:
    """Cone of a petal against the inner circle of the other ring: the deepest generator that reaches the plane of the circle."""
    cdef double P[3]
    cdef double L[3]
    cdef double value, radius, t
    cdef int halvings, i, k, deepest, step, last = 1 << f.g.levels
    # both rings far apart: even the tip does not reach the plane of the circle
    i = deepest_of_family(generator_radius, f, f.g.levels, True, &value, &halvings)
    if value <= f.g.inner_radius:
        return False
    t = generator_end(f, i)
    if t < 0.0 or t > 1.0:
        # too short, over a flank: the radius falls away on both sides, so the first generator within reach on either side is the best of its side
        value = f.g.inner_radius
        deepest = i
        i = -1
        for step in range(-1, 2, 2):
            k = deepest + step
            while 0 <= k <= last:
                t = generator_end(f, k)
                if 0.0 <= t <= 1.0:
                    radius = generator_radius(f, k)
                    if radius > value:
                        value = radius
                        i = k
                    break
                k += step
        if i < 0:
            return False
    generator(f, i, P, L)
    if segment_circle(P, L, f.centre, f.axis, f.g.inner_radius, active_is_line, 3, out):
        out.index = i
        return out.depth < f.g.depth_max
    return False


cdef inline bint flank_pair(const RingGeometry *g, const double *p_A, const double *R_A, int a, const double *p_P, const double *R_P, int b,
                            Contact *out) noexcept nogil:
    """Flank a of an active petal against flank b of a passive one: the deepest of the four pairs of edges (one region, one point)."""
    cdef double OA[3]
    cdef double LA[3]
    cdef double OP[3]
    cdef double LP[3]
    cdef double reference[3]
    cdef double t[3]
    cdef const double *edge      # start, then vector
    cdef Contact found
    cdef double best = 0.0
    cdef int i, j
    # into the passive body: out of the active face, against the passive one
    rot3.apply(R_A, g.outward[a], reference)
    rot3.apply(R_P, g.outward[b], t)
    vec3.sub(reference, t, reference)
    for i in range(2):
        edge = <const double *> &g.upper[a][0][0] if i == 0 else &g.lower[a][0][0]
        rot3.apply(R_A, edge, OA)
        vec3.add(p_A, OA, OA)
        rot3.apply(R_A, edge + 3, LA)
        for j in range(2):
            edge = <const double *> &g.upper[b][0][0] if j == 0 else &g.lower[b][0][0]
            rot3.apply(R_P, edge, OP)
            vec3.add(p_P, OP, OP)
            rot3.apply(R_P, edge + 3, LP)
            if segment_segment(OA, LA, OP, LP, reference, &found) and found.depth > best and found.depth < g.depth_max:
                best = found.depth
                out[0] = found
    return best > 0.0


cdef inline int ring_contacts(const RingGeometry *g, const double *p_TN, const double *R_TN, Contact *out) noexcept nogil:
    """All contacts of ring on ring, at most RING_CONTACTS - 6. The passive ring is the same ring, turned by 180 deg about Z of T."""
    cdef double R_A[PETALS][9]
    cdef double R_P[PETALS][9]
    cdef double R_TP[9]
    cdef double origin[3]
    cdef double axis_T[3]
    cdef double axis_N[3]
    cdef double P[3]
    cdef Family family
    cdef double rho2, tip
    cdef int k, s, found = 0
    vec3.fill(0.0, 0.0, 0.0, origin)
    vec3.fill(1.0, 0.0, 0.0, axis_T)
    vec3.fill(R_TN[0], R_TN[3], R_TN[6], axis_N)
    # rings farther apart than two petals: nothing can touch
    tip = 2.0 * (g.upper[0][0][0] + g.upper[0][1][0])
    if p_TN[0] < -tip - 0.5 * g.inner_radius:
        return 0
    rot3.identity(R_TP)
    R_TP[0] = -1.0
    R_TP[4] = -1.0
    for k in range(PETALS):
        rot3.multiply(R_TN, g.R_petal[k], R_A[k])
        rot3.multiply(R_TP, g.R_petal[k], R_P[k])
    # petal cones in the opposite inner circle, both ways
    family.g = g
    for k in range(PETALS):
        family.p = p_TN
        family.R = R_A[k]
        family.centre = origin
        family.axis = axis_T
        if petal_circle(&family, True, &out[found]):
            found += 1
        family.p = origin
        family.R = R_P[k]
        family.centre = p_TN
        family.axis = axis_N
        if petal_circle(&family, False, &out[found]):
            found += 1
    # flanks: active plus flank k faces passive plus flank (1 - k), active minus flank faces passive minus flank (2 - k), modulo 3
    for k in range(PETALS):
        if flank_pair(g, p_TN, R_A[k], 1, origin, R_P[(4 - k) % 3], 1, &out[found]):
            found += 1
        if flank_pair(g, p_TN, R_A[k], 0, origin, R_P[(5 - k) % 3], 0, &out[found]):
            found += 1
    # ring plane on ring plane
    for k in range(PETALS):
        for s in range(2):
            rot3.apply(R_A[k], g.plane_point[s], P)
            vec3.add(p_TN, P, P)
            rho2 = P[1] * P[1] + P[2] * P[2]
            if 0.0 < P[0] < g.depth_max and g.inner_radius * g.inner_radius < rho2 < g.face_radius * g.face_radius:
                out[found].depth = P[0]
                vec3.copy(axis_T, out[found].n)
                vec3.copy(P, out[found].r)
                out[found].kind = FACE
                out[found].index = 2 * k + s
                found += 1
    return found


cdef inline void push(const double *f, const double *r, const RingPose *N, RingLoads *out) noexcept nogil:
    # force f on the passive ring at the point r (T), and its reaction on the active ring
    cdef double t[3]
    vec3.add(out.F_T, f, out.F_T)
    vec3.cross(r, f, t)
    vec3.add(out.F_T + 3, t, out.F_T + 3)
    vec3.sub(out.F_N, f, out.F_N)
    vec3.sub(r, N.p, t)
    vec3.cross(t, f, t)
    vec3.sub(out.F_N + 3, t, out.F_N + 3)


cdef inline void point_velocity(const RingPose *N, const double *r, double *v) noexcept nogil:
    # of the ring's material point at r, relative to T
    cdef double arm[3]
    vec3.sub(r, N.p, arm)
    vec3.cross(N.w, arm, v)
    vec3.add(N.v, v, v)


cdef inline void contact_loads(const ContactLaw *law, const Contact *contacts, int count, const RingPose *N, RingLoads *out) noexcept nogil:
    cdef Reaction reaction
    cdef double v[3]
    cdef double f[3]
    cdef double zero[3]
    cdef int i
    vec3.fill(0.0, 0.0, 0.0, zero)
    for i in range(count):
        point_velocity(N, contacts[i].r, v)
        react(law, &contacts[i], v, zero, &reaction)
        push(reaction.force, contacts[i].r, N, out)
        # what is not the contact spring
        vec3.add_scaled(reaction.force, -law.stiffness * contacts[i].depth, contacts[i].n, f)
        vec3.sub(out.D_N, f, out.D_N)
        vec3.sub(contacts[i].r, N.p, v)
        vec3.cross(v, f, v)
        vec3.sub(out.D_N + 3, v, out.D_N + 3)
        out.lost_power += reaction.damped_power + reaction.friction_power
        out.stored += 0.5 * law.stiffness * contacts[i].depth * contacts[i].depth
        if contacts[i].depth > out.depth:
            out.depth = contacts[i].depth


cdef inline void sensor_loads(const RingSensors *s, const RingGeometry *g, const RingPose *N, RingLoads *out) noexcept nogil:
    """Three plungers against the passive plane x = 0: spring force along X, switch at a set compression."""
    cdef double P[3]
    cdef double f[3]
    cdef double rho2, x
    cdef int k
    for k in range(3):
        out.plunger[k] = 0.0
        out.aligned[k] = False
        rot3.apply(N.R, s.position[k], P)
        vec3.add(N.p, P, P)
        rho2 = P[1] * P[1] + P[2] * P[2]
        x = P[0] + s.protrusion
        if x > 0.0 and g.inner_radius * g.inner_radius < rho2 < g.face_radius * g.face_radius:
            if x > s.protrusion:
                x = s.protrusion
            out.plunger[k] = x
            out.aligned[k] = x >= s.switch_compression
            vec3.fill(s.preload + s.stiffness * x, 0.0, 0.0, f)
            push(f, P, N, out)
            out.stored += s.preload * x + 0.5 * s.stiffness * x * x


cdef inline void latch_step(double h, double m, double k, double f0, double f, double *v, double *x) noexcept nogil:
    """Implicit Euler of m v' = -k x - f0 + f, x' = v, then x >= 0 (dissertation (5.4), end stop added)."""
    cdef double D0 = 1.0 + h * h * k / m
    cdef double D1 = v[0] + (h / m) * (f - f0 - k * x[0])
    cdef double D2 = x[0] + h * (v[0] + (f - f0) * h / m)
    v[0] = D1 / D0
    x[0] = D2 / D0
    if x[0] < 0.0:
        x[0] = 0.0
        if v[0] < 0.0:
            v[0] = 0.0


cdef inline void latch_loads(const RingLatchLaw *law, const ContactLaw *contact_law, RingLatchState *states, const RingPose *N, double h,
                             RingLoads *out) noexcept nogil:
    """One step of the six latches: guiding face, firing, locking face of the stops."""
    cdef double B[3]
    cdef double A[3]
    cdef double C[3]
    cdef double E[3]
    cdef double n_L[3]
    cdef double n[3]
    cdef double f[3]
    cdef double x_tip = law.stop_radius_max - law.stop_radius_min
    cdef double x_v = x_tip - law.stop_radius_min
    cdef double sqrt_half = sqrt(0.5)
    cdef double d_C, d_E, depth, share, kap, f_n
    cdef double t = 0.0
    cdef Contact locked[2]
    cdef int i, count
    for i in range(RING_LATCHES):
        rot3.apply(N.R, law.latch[i].tip, B)
        vec3.add(N.p, B, B)
        rot3.apply(N.R, law.latch[i].out, n_L)
        # far from the stops: the spring holds the latch out
        if B[0] < -0.05:
            states[i].x = 0.0
            states[i].v = 0.0
            continue
        rot3.apply(N.R, law.latch[i].inner, A)
        vec3.add(N.p, A, A)
        # crossing of the latch line with the plane of the stop's edge
        d_C = 1e9
        vec3.copy(A, E)
        if fabs(n_L[0]) > 1e-9:
            t = (x_tip - A[0]) / n_L[0]
            vec3.add_scaled(A, t, n_L, E)
            d_C = sqrt(E[1] * E[1] + E[2] * E[2])
        if states[i].fired == 0.0 and d_C < law.stop_radius_min and B[0] > x_tip:
            states[i].fired = 1.0
            states[i].v = 0.0
        if states[i].fired != 0.0:
            # behind the stop the spring drives the latch out as far as the locking face r = x - x_v lets it, and it never goes back in
            tip_on_locking_face(law, &states[i], B, n_L, x_v, E, &d_E, &depth)
            count = 0
            if 0.0 < depth < 0.03 and d_E > law.stop_radius_min:
                locking_contact(depth, E, d_E, &locked[count])
                count += 1
            # the segment at the stop's edge
            if fabs(n_L[0]) > 1e-9:
                vec3.add_scaled(A, t, n_L, C)
                depth = (d_C - law.stop_radius_min) * sqrt_half
                if 0.0 < depth < 0.03 and A[0] < x_tip < E[0]:
                    locking_contact(depth, C, d_C, &locked[count])
                    count += 1
            contact_loads(contact_law, locked, count, N, out)
            out.stored += states[i].x * (law.preload + 0.5 * law.stiffness * states[i].x)
            continue
        # guiding face: 45 deg cone r = R_max - x against the tip at its present compression
        vec3.add_scaled(B, -states[i].x, n_L, E)
        d_E = sqrt(E[1] * E[1] + E[2] * E[2])
        vec3.fill(sqrt_half, sqrt_half * E[1] / d_E, sqrt_half * E[2] / d_E, n)
        depth = (d_E - (law.stop_radius_max - E[0])) * sqrt_half
        share = vec3.dot(n_L, n)
        if depth + share * states[i].x > 0.0 and E[0] < x_tip + 0.01:
            # the contact spring inside the implicit step: depth = depth0 - share (x - x_now)
            kap = law.contact_stiffness * share * share if depth > 0.0 else 0.0
            f_n = law.contact_stiffness * (depth + share * states[i].x) if depth > 0.0 else 0.0
            latch_step(h, law.mass, law.stiffness + kap, law.preload, share * f_n, &states[i].v, &states[i].x)
            vec3.add_scaled(B, -states[i].x, n_L, E)
            d_E = sqrt(E[1] * E[1] + E[2] * E[2])
            depth = (d_E - (law.stop_radius_max - E[0])) * sqrt_half
            if states[i].x > law.stroke:
                states[i].x = law.stroke
                states[i].v = 0.0
            if depth > 0.0:
                vec3.scale(law.contact_stiffness * depth, n, f)
                push(f, E, N, out)
        else:
            latch_step(h, law.mass, law.stiffness, law.preload, 0.0, &states[i].v, &states[i].x)
        out.stored += states[i].x * (law.preload + 0.5 * law.stiffness * states[i].x) + 0.5 * law.mass * states[i].v * states[i].v


cdef inline void tip_on_locking_face(const RingLatchLaw *law, RingLatchState *s, const double *B, const double *n_L, double x_v, double *E,
                                     double *d_E, double *depth) noexcept nogil:
    """Tip of a fired latch: its compression shrinks to where the tip touches the locking face; penetration along the face's normal."""
    cdef double gain
    vec3.add_scaled(B, -s.x, n_L, E)
    d_E[0] = sqrt(E[1] * E[1] + E[2] * E[2])
    depth[0] = d_E[0] - (E[0] - x_v)
    # outward motion of the tip against the face, per extension of the latch
    gain = (n_L[1] * E[1] + n_L[2] * E[2]) / d_E[0] - n_L[0]
    if depth[0] < 0.0 and s.x > 0.0 and gain > 1e-3:
        s.x += depth[0] / gain
        if s.x < 0.0:
            s.x = 0.0
        vec3.add_scaled(B, -s.x, n_L, E)
        d_E[0] = sqrt(E[1] * E[1] + E[2] * E[2])
        depth[0] = d_E[0] - (E[0] - x_v)
    depth[0] *= sqrt(0.5)


cdef inline void locking_contact(double depth, const double *P, double d, Contact *out) noexcept nogil:
    cdef double c = sqrt(0.5)
    out.depth = depth
    vec3.fill(-c, c * P[1] / d, c * P[2] / d, out.n)
    vec3.copy(P, out.r)
    out.kind = FACE
    out.index = 0


cdef inline bint ring_captured(const RingLatchState *states) noexcept nogil:
    # latches are doubled: at least one of each pair behind its stop
    cdef int k
    for k in range(PETALS):
        if states[2 * k].fired == 0.0 and states[2 * k + 1].fired == 0.0:
            return False
    return True


# set-up, with the interpreter
cdef void fill_ring_geometry(object t, RingGeometry *g) except *
cdef void fill_contact_law(object t, double mass, double h, ContactLaw *law) except *
cdef void fill_latches(object t, RingLatchLaw *law) except *
cdef void fill_sensors(object t, const RingGeometry *g, RingSensors *s) except *
