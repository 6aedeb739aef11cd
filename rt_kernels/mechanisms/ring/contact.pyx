# distutils: extra_compile_args = -O3
"""Contact of two androgynous docking rings with guide petals, plungers of the alignment sensors, and ring latches.

Source: Yaskevich 2020 (5.4), with the corrections: the normal of a line-circle pair is oriented by the role of the line; the search for the
deepest generator is followed by a climb to its neighbours; flanks are oriented by a stored reference; the latch has an end stop and its
contact spring is inside the implicit step (printed: "as large as one likes", in truth h^2 k/m < 4); the locking face opens away from the
active ring, r = x - x_v with the normal [-1, ...] (printed: the guiding face's own equation, which cannot hold tension). The reaction on a
latch that rides on its stop acts along the normal of the guiding face (printed: along the latch only,
which loses the part that the latch guide carries).

Frames: active ring N at its centre, target ring at the target port T; X of both along the docking axis, into the target. The active
ring's plane is x = 0 of N, its petals point to +X; the target ring is the same ring turned by 180 deg about Z of T. All m, N, rad.

Petal: outer face a cone of half-angle a about X that starts at the ring's inner circle less a clearance; it is bounded by two plane flanks,
each through B (ring plane, outer), A (tip), E (ring plane, inner). 2^N + 1 generators approximate the cone; they start on the circle
R_R,max below the plane, so that a start cannot pass inside the opposite circle. Upper flank edges are prolonged to the same circle.
Excluded as redundant: of the four edge pairs of two flanks, and of a petal's generators against a circle, only the deepest counts:
one region, one point.
"""

import numpy as np

from libc.math cimport fabs, sqrt
from libc.string cimport memset

from rt_kernels.algebra cimport rot3
from rt_kernels.algebra cimport vec3
from rt_kernels.contact.primitives cimport Contact, FACE, deepest_of_family, segment_circle, segment_segment
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react


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
        # too short, over a flank: the radius falls away on both sides, so the first generator within reach on either side is the best of
        # its side
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
    """Flank a of an active petal against flank b of a target one: the deepest of the four pairs of edges (one region, one point)."""
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
    # into the target body: out of the active face, against the target one
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


cdef int ring_contacts(const RingGeometry *g, const double *p_TN, const double *R_TN, Contact *out) noexcept nogil:
    """All contacts of ring on ring, at most RING_CONTACTS - 6. The target ring is the same ring, turned by 180 deg about Z of T."""
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
    # flanks: active plus flank k faces target plus flank (1 - k), active minus flank faces target minus flank (2 - k), modulo 3
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
    # force f on the target ring at the point r (T), and its reaction on the active ring
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


cdef void contact_loads(const ContactLaw *law, const Contact *contacts, int count, const RingPose *N, RingLoads *out) noexcept nogil:
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


cdef void sensor_loads(const RingSensors *s, const RingGeometry *g, const RingPose *N, RingLoads *out) noexcept nogil:
    """Three plungers against the target plane x = 0: spring force along X, switch at a set compression."""
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
    """Implicit Euler of m v' = -k x - f0 + f, x' = v, then x >= 0 (Yaskevich 2020 (5.4), end stop added)."""
    cdef double D0 = 1.0 + h * h * k / m
    cdef double D1 = v[0] + (h / m) * (f - f0 - k * x[0])
    cdef double D2 = x[0] + h * (v[0] + (f - f0) * h / m)
    v[0] = D1 / D0
    x[0] = D2 / D0
    if x[0] < 0.0:
        x[0] = 0.0
        if v[0] < 0.0:
            v[0] = 0.0


cdef void latch_loads(const RingLatchLaw *law, const ContactLaw *contact_law, RingLatchState *states, const RingPose *N, double h,
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


cdef bint ring_captured(const RingLatchState *states) noexcept nogil:
    # latches are doubled: at least one of each pair behind its stop
    cdef int k
    for k in range(PETALS):
        if states[2 * k].fired == 0.0 and states[2 * k + 1].fired == 0.0:
            return False
    return True


# ---------------------------------------------------------------------------------- set-up, and access from Python

def rotation_x(angle):
    """Turn about X by `angle` [rad] (3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def petal_shape(inner_radius, outer_radius, height, half_angle, clearance, base_azimuth, tip_azimuth, thickness, levels):
    """Primitives of one petal, petal axes (petal at azimuth 0). Angles in rad. Returns a dict: start, along (2^N + 1, 3), upper, lower
    (2, 2, 3: flank, start and vector), outward (2, 3), chord_error."""
    tan = np.tan(half_angle)
    base = inner_radius - clearance

    def on_cone(x, azimuth):
        r = base - x * tan
        return np.array([x, r * np.cos(azimuth), r * np.sin(azimuth)])

    upper, lower, outward = np.zeros((2, 2, 3)), np.zeros((2, 2, 3)), np.zeros((2, 3))
    planes = []
    for s, sign in enumerate((-1.0, 1.0)):
        B, A = on_cone(0.0, sign * base_azimuth), on_cone(height, sign * tip_azimuth)
        E = np.array([0.0, (base - thickness) * np.cos(sign * base_azimuth), (base - thickness) * np.sin(sign * base_azimuth)])
        n = np.cross(A - B, E - B)
        n /= np.linalg.norm(n)
        tangent = np.array([0.0, -np.sin(sign * base_azimuth), np.cos(sign * base_azimuth)]) * sign
        outward[s] = n if n @ tangent > 0 else -n
        planes.append((outward[s], B))
        # prolong A -> B to the outer circle
        u = (B - A)[1:]
        b, c, a = u @ B[1:], B[1:] @ B[1:] - outer_radius**2, u @ u
        C = B + (B - A) * (-b + np.sqrt(b * b - a * c)) / a
        upper[s], lower[s] = (C, A - C), (E, A - E)
    x_start = -(outer_radius - base) / tan
    start, along, error = [], [], 0.0
    for azimuth in np.linspace(-base_azimuth, base_azimuth, 2**levels + 1):
        end = height
        for n, B in planes:
            # where the generator pierces the plane of a flank
            P, L = on_cone(0.0, azimuth), on_cone(1.0, azimuth) - on_cone(0.0, azimuth)
            slope = n @ L
            if slope > 1e-12:
                end = min(end, max(0.0, float(n @ (B - P) / slope)))
        P = on_cone(x_start, azimuth)
        start.append(P)
        along.append(on_cone(end, azimuth) - P)
        if end < height:
            for s in range(2):
                tip = on_cone(end, azimuth) - upper[s, 0]
                L = upper[s, 1]
                if abs(planes[s][0] @ (on_cone(end, azimuth) - planes[s][1])) < 1e-9:
                    error = max(error, float(np.linalg.norm(tip - L * (tip @ L) / (L @ L))))
    return {"start": np.array(start), "along": np.array(along), "upper": upper, "lower": lower, "outward": outward, "chord_error": error}


cdef void fill_ring_geometry(object t, RingGeometry *g) except *:
    """From the parameter table `t` of a ring unit (keys of RING_PARAMETERS). Raises ValueError that names the key."""
    cdef int i, j, k, s
    memset(g, 0, sizeof(RingGeometry))
    inner, face = t["inner_radius_m"], t["face_radius_m"]
    if not face > inner:
        raise ValueError(f"face_radius_m: {face} m, must be > inner_radius_m ({inner} m)")
    if not 0 < t["petal_tip_azimuth_deg"] < t["petal_base_azimuth_deg"] <= 30.0:
        raise ValueError(f"petal_tip_azimuth_deg, petal_base_azimuth_deg: {t['petal_tip_azimuth_deg']}, {t['petal_base_azimuth_deg']} deg, "
                         "needed 0 < tip < base <= 30 deg (six petals share the circle)")
    reach = inner - t["petal_clearance_m"] - t["petal_height_m"] * np.tan(np.radians(t["petal_half_angle_deg"]))
    if not reach > 0.2 * inner:
        raise ValueError(f"petal_height_m: {t['petal_height_m']} m, the tip would be at radius {reach:.3f} m")
    outer = inner + 0.5 * (face - inner)
    shape = petal_shape(inner, outer, t["petal_height_m"], np.radians(t["petal_half_angle_deg"]), t["petal_clearance_m"],
                        np.radians(t["petal_base_azimuth_deg"]), np.radians(t["petal_tip_azimuth_deg"]), t["petal_thickness_m"],
                        t["generator_levels"])
    g.inner_radius, g.face_radius, g.outer_radius = inner, face, outer
    g.levels = t["generator_levels"]
    g.chord_error = shape["chord_error"]
    g.depth_max = t["depth_limit_m"]
    cdef double[:, ::1] start = shape["start"], along = shape["along"]
    for i in range((1 << g.levels) + 1):
        for j in range(3):
            g.start[i][j] = start[i, j]
            g.along[i][j] = along[i, j]
    cdef double[:, :, ::1] upper = shape["upper"], lower = shape["lower"]
    cdef double[:, ::1] outward = shape["outward"]
    for s in range(2):
        for j in range(3):
            g.outward[s][j] = outward[s, j]
            for i in range(2):
                g.upper[s][i][j] = upper[s, i, j]
                g.lower[s][i][j] = lower[s, i, j]
        azimuth = np.radians(t["petal_base_azimuth_deg"]) * (1 if s else -1)
        g.plane_point[s][0] = 0.0
        g.plane_point[s][1] = outer * np.cos(azimuth)
        g.plane_point[s][2] = outer * np.sin(azimuth)
    cdef double[:, ::1] R
    for k in range(PETALS):
        g.azimuth[k] = 2.0 * np.pi * k / 3.0
        R = rotation_x(g.azimuth[k])
        for i in range(3):
            for j in range(3):
                g.R_petal[k][3 * i + j] = R[i, j]


cdef void fill_contact_law(object t, ContactLaw *law) except *:
    law.stiffness = t["contact_stiffness_n_per_m"]
    law.damping = t["contact_damping_n_s_per_m"]
    law.ramp = t["contact_ramp_m"]
    law.friction = t["friction"]
    law.slip_speed = t["slip_speed_m_s"]
    # a unit that does not state its friction below the slip speed (older logs) has it from its sub-steps
    stated = t["friction_damping_max_n_s_per_m"]
    law.viscous_limit = 0.5 * <double>t["ring_mass_kg"] / (1e-3 / <int>t["substeps"]) if stated is None else stated


cdef void fill_latches(object t, RingLatchLaw *law) except *:
    cdef int i, j
    law.mass = t["latch_mass_kg"]
    law.stiffness = t["latch_stiffness_n_per_m"]
    law.preload = t["latch_preload_n"]
    law.contact_stiffness = t["latch_contact_stiffness_n_per_m"]
    law.stop_radius_min = t["stop_radius_min_m"]
    law.stop_radius_max = t["stop_radius_max_m"]
    law.stroke = t["latch_stroke_m"]
    if not law.stop_radius_max > law.stop_radius_min:
        raise ValueError(f"stop_radius_max_m: {law.stop_radius_max} m, must be > stop_radius_min_m ({law.stop_radius_min} m)")
    angle = np.radians(t["latch_angle_deg"])
    for i in range(RING_LATCHES):
        azimuth = 2.0 * np.pi * (i // 2) / 3.0 + np.radians(t["latch_azimuth_deg"]) * (1 if i % 2 else -1)
        R = rotation_x(azimuth)
        out = R @ np.array([np.sin(angle), np.cos(angle), 0.0])
        tip = R @ np.array([t["latch_tip_x_m"], t["latch_tip_radius_m"], 0.0])
        inner = tip - t["latch_length_m"] * out
        for j in range(3):
            law.latch[i].tip[j] = tip[j]
            law.latch[i].inner[j] = inner[j]
            law.latch[i].out[j] = out[j]


cdef void fill_sensors(object t, const RingGeometry *g, RingSensors *s) except *:
    cdef int j, k
    s.protrusion = t["plunger_protrusion_m"]
    s.stiffness = t["plunger_stiffness_n_per_m"]
    s.preload = t["plunger_preload_n"]
    s.switch_compression = t["plunger_switch_m"]
    if not s.switch_compression < s.protrusion:
        raise ValueError(f"plunger_switch_m: {s.switch_compression} m, must be < plunger_protrusion_m ({s.protrusion} m)")
    for k in range(3):
        foot = rotation_x(g.azimuth[k] + np.pi / 3) @ np.array([0.0, g.outer_radius, 0.0])
        for j in range(3):
            s.position[k][j] = foot[j]


cdef class RingContact:
    """Contact of two equal rings on arrays: geometry from the parameter table of a ring unit (keys with units)."""

    cdef RingGeometry geometry
    cdef RingLatchLaw latches

    def __init__(self, table):
        fill_ring_geometry(table, &self.geometry)
        fill_latches(table, &self.latches)

    @property
    def chord_error(self):
        """Largest distance of the straight flank edge from the true intersection of cone and flank [m]."""
        return self.geometry.chord_error

    def contacts(self, p_TN, R_TN):
        """List of (depth, n (3,), r (3,), kind, index) of the active ring at p_TN, R_TN."""
        cdef double p[3]
        cdef double R[9]
        cdef Contact found[RING_CONTACTS]
        cdef int i, n
        rotation = np.asarray(R_TN, dtype=float).reshape(-1)
        for i in range(3):
            p[i] = p_TN[i]
        for i in range(9):
            R[i] = rotation[i]
        n = ring_contacts(&self.geometry, p, R, found)
        return [(found[i].depth, np.array([found[i].n[k] for k in range(3)]), np.array([found[i].r[k] for k in range(3)]),
                 found[i].kind, found[i].index) for i in range(n)]

    def petal(self, k, R_TN=None, p_TN=None):
        """Generators of petal k in T: (starts, vectors), (2^N + 1, 3) each; target ring if no pose is given."""
        R = np.diag([-1.0, -1.0, 1.0]) if R_TN is None else np.asarray(R_TN)
        p = np.zeros(3) if p_TN is None else np.asarray(p_TN)
        count = (1 << self.geometry.levels) + 1
        turn = R @ rotation_x(self.geometry.azimuth[k])
        start = np.array([[self.geometry.start[i][j] for j in range(3)] for i in range(count)])
        along = np.array([[self.geometry.along[i][j] for j in range(3)] for i in range(count)])
        return start @ turn.T + p, along @ turn.T


def implicit_latch(h, mass, stiffness, preload, force, v, x):
    """One implicit Euler step of a latch: (v, x)."""
    cdef double v_out = v, x_out = x
    latch_step(h, mass, stiffness, preload, force, &v_out, &x_out)
    return v_out, x_out
