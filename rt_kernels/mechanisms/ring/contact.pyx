# distutils: extra_compile_args = -O3
"""Contact of two androgynous docking rings with guide petals, plungers of the alignment sensors, and ring latches.

Source: Yaskevich 2020 (5.4), with the corrections: the normal of a line-circle pair is oriented by the role of the line; the search for
the deepest generator is followed by a climb to its neighbours; where that generator ends before the circle's plane the edge of the petal
touches (printed: the next generator that reaches it, whose normal is not the surface's: it gives up to 8 % of the work of a sliding
contact); flanks are oriented by a stored reference; the latch has an end stop and its contact spring is inside the implicit step
(printed: "as large as one likes", in truth h^2 k/m < 4); the locking face opens away from the active ring, r = x - x_v with the normal
[-1, ...] (printed: the guiding face's own equation, which cannot hold tension). The reaction on a latch that rides on its stop acts along
the normal of the guiding face (printed: along the latch only, which loses the part that the latch guide carries).

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

from rt_kernels.algebra.values cimport Mat3, Vec3, add, cross, dot, mat, mat_multiply, mat_vec, mul, norm, put, sub, vec, xyz
from rt_kernels.contact.primitives cimport Contact, FACE, deepest_of_family, segment_circle, segment_segment
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react


cdef struct Circle:
    Vec3 centre
    Vec3 axis


cdef struct Family:
    const RingGeometry *g
    Vec3 p                           # frame of the petal ring in T
    Mat3 R                           # petal frame in T
    Circle circle


cdef inline Vec3 generator_start(const Family *f, int i) noexcept nogil:
    # of generator i of a petal, in T
    return add(f.p, mat_vec(f.R, f.g.start[i]))


cdef inline Vec3 generator_vector(const Family *f, int i) noexcept nogil:
    return mat_vec(f.R, f.g.along[i])


cdef inline double generator_radius(const void *family, int i) noexcept nogil:
    """Distance from the circle's centre at which generator i, prolonged, crosses the plane of the circle."""
    cdef const Family *f = <const Family *> family
    cdef Vec3 L = generator_vector(f, i)
    cdef Vec3 P = sub(generator_start(f, i), f.circle.centre)
    cdef double slope = dot(f.circle.axis, L)
    if fabs(slope) < 1e-12:
        return 0.0
    return norm(add(P, mul(-dot(f.circle.axis, P) / slope, L)))


cdef inline double generator_end(const Family *f, int i) noexcept nogil:
    # crossing parameter t of generator i with the plane of the circle
    return dot(f.circle.axis, sub(f.circle.centre, generator_start(f, i))) / dot(f.circle.axis, generator_vector(f, i))


cdef inline bint within_reach(const Family *f, int i) noexcept nogil:
    cdef double t = generator_end(f, i)
    return 0.0 <= t <= 1.0


cdef inline bint line_circle(const Family *f, Vec3 P, Vec3 L, bint active_is_line, int i, Contact *out) noexcept nogil:
    """Segment P + t L of a petal against the circle; `out` is filled if it is deeper than what stands there."""
    cdef Contact found
    if not segment_circle(&P.x, &L.x, &f.circle.centre.x, &f.circle.axis.x, f.g.inner_radius, active_is_line, 3, &found) or \
            not out.depth < found.depth < f.g.depth_max:
        return False
    found.index = i
    out[0] = found
    return True


cdef inline bint petal_circle(const Family *f, bint active_is_line, Contact *out) noexcept nogil:
    """Cone of a petal against the inner circle of the other ring: the deepest generator that reaches the plane of the circle. Over a flank
    the radius falls away on both sides: there the petal's edge, the line through the ends of the generators, touches it."""
    cdef Vec3 P, L
    cdef double value
    cdef int halvings, i, k, step, last = 1 << f.g.levels
    cdef bint touches = False
    out.depth = 0.0
    # both rings far apart: even the tip does not reach the plane of the circle
    i = deepest_of_family(generator_radius, f, f.g.levels, True, &value, &halvings)
    if value <= f.g.inner_radius:
        return False
    if within_reach(f, i):
        return line_circle(f, generator_start(f, i), generator_vector(f, i), active_is_line, i, out)
    for step in range(-1, 2, 2):
        k = i + step
        while 0 <= k <= last and not within_reach(f, k):
            k += step
        if not 0 <= k <= last:
            continue
        P = generator_start(f, k)
        L = generator_vector(f, k)
        # the tip's edge lies along the circle: there it is the generator still
        if generator_end(f, i) > 1.0 and f.g.along[k].x != f.g.along[k - step].x:
            P = add(P, L)
            L = sub(add(generator_start(f, k - step), generator_vector(f, k - step)), P)
        touches |= line_circle(f, P, L, active_is_line, k, out)
    return touches


cdef inline bint flank_pair(const RingGeometry *g, Vec3 p_A, const Mat3 *R_A, int a, Vec3 p_P, const Mat3 *R_P, int b,
                            Contact *out) noexcept nogil:
    """Flank a of an active petal against flank b of a target one: the deepest of the four pairs of edges (one region, one point)."""
    # into the target body: out of the active face, against the target one
    cdef Vec3 reference = sub(mat_vec(R_A[0], g.outward[a]), mat_vec(R_P[0], g.outward[b]))
    cdef Vec3 OA, LA, OP, LP
    cdef Edge edge
    cdef Contact found
    cdef double best = 0.0
    cdef int i, j
    for i in range(2):
        edge = g.upper[a] if i == 0 else g.lower[a]
        OA = add(p_A, mat_vec(R_A[0], edge.start))
        LA = mat_vec(R_A[0], edge.vector)
        for j in range(2):
            edge = g.upper[b] if j == 0 else g.lower[b]
            OP = add(p_P, mat_vec(R_P[0], edge.start))
            LP = mat_vec(R_P[0], edge.vector)
            if segment_segment(&OA.x, &LA.x, &OP.x, &LP.x, &reference.x, &found) and found.depth > best and found.depth < g.depth_max:
                best = found.depth
                out[0] = found
    return best > 0.0


cdef int ring_contacts(const RingGeometry *g, Vec3 p_TN, Mat3 R_TN, Contact *out) noexcept nogil:
    """All contacts of ring on ring, at most RING_CONTACTS - 6. The target ring is the same ring, turned by 180 deg about Z of T."""
    cdef Mat3 R_A[PETALS]
    cdef Mat3 R_P[PETALS]
    cdef Mat3 R_TP
    cdef Vec3 P, origin = xyz(0.0, 0.0, 0.0), axis_T = xyz(1.0, 0.0, 0.0), axis_N = xyz(R_TN.xx, R_TN.yx, R_TN.zx)
    cdef Family active, target
    cdef double rho2
    cdef int k, s, found = 0
    # rings farther apart than two petals: nothing can touch
    if p_TN.x < -(2.0 * (g.upper[0].start.x + g.upper[0].vector.x)) - 0.5 * g.inner_radius:
        return 0
    memset(&R_TP, 0, sizeof(R_TP))
    R_TP.xx = -1.0; R_TP.yy = -1.0; R_TP.zz = 1.0
    for k in range(PETALS):
        R_A[k] = mat_multiply(R_TN, g.R_petal[k])
        R_P[k] = mat_multiply(R_TP, g.R_petal[k])
    # petal cones in the opposite inner circle, both ways
    active.g = target.g = g
    active.p = target.circle.centre = p_TN
    target.p = active.circle.centre = origin
    active.circle.axis = axis_T
    target.circle.axis = axis_N
    for k in range(PETALS):
        active.R = R_A[k]
        found += petal_circle(&active, True, &out[found])
        target.R = R_P[k]
        found += petal_circle(&target, False, &out[found])
    # flanks: active plus flank k faces target plus flank (1 - k), active minus flank faces target minus flank (2 - k), modulo 3
    for k in range(PETALS):
        found += flank_pair(g, p_TN, &R_A[k], 1, origin, &R_P[(4 - k) % 3], 1, &out[found])
        found += flank_pair(g, p_TN, &R_A[k], 0, origin, &R_P[(5 - k) % 3], 0, &out[found])
    # ring plane on ring plane
    for k in range(PETALS):
        for s in range(2):
            P = add(p_TN, mat_vec(R_A[k], g.plane_point[s]))
            rho2 = P.y * P.y + P.z * P.z
            if 0.0 < P.x < g.depth_max and g.inner_radius * g.inner_radius < rho2 < g.face_radius * g.face_radius:
                out[found].depth = P.x
                put(axis_T, out[found].n)
                put(P, out[found].r)
                out[found].kind = FACE
                out[found].index = 2 * k + s
                found += 1
    return found


cdef inline void push(Vec3 f, Vec3 r, const RingPose *N, RingLoads *out) noexcept nogil:
    # force f on the target ring at the point r (T), and its reaction on the active ring
    out.F_T.f = add(out.F_T.f, f)
    out.F_T.m = add(out.F_T.m, cross(r, f))
    out.F_N.f = sub(out.F_N.f, f)
    out.F_N.m = sub(out.F_N.m, cross(sub(r, N.p), f))


cdef void contact_loads(const ContactLaw *law, const Contact *contacts, int count, const RingPose *N, RingLoads *out) noexcept nogil:
    cdef Reaction reaction
    cdef Vec3 v, arm, damped, zero = xyz(0.0, 0.0, 0.0)
    cdef int i
    for i in range(count):
        # the ring's material point, relative to T
        arm = sub(vec(contacts[i].r), N.p)
        v = add(N.v, cross(N.w, arm))
        react(law, &contacts[i], &v.x, &zero.x, &reaction)
        push(vec(reaction.force), vec(contacts[i].r), N, out)
        # what is not the contact spring
        damped = add(vec(reaction.force), mul(-law.stiffness * contacts[i].depth, vec(contacts[i].n)))
        out.D_N.f = sub(out.D_N.f, damped)
        out.D_N.m = sub(out.D_N.m, cross(arm, damped))
        out.lost_power += reaction.damped_power + reaction.friction_power
        out.stored += 0.5 * law.stiffness * contacts[i].depth * contacts[i].depth
        if contacts[i].depth > out.depth:
            out.depth = contacts[i].depth


cdef void sensor_loads(const RingSensors *s, const RingGeometry *g, const RingPose *N, RingLoads *out) noexcept nogil:
    """Three plungers against the target plane x = 0: spring force along X, switch at a set compression."""
    cdef Vec3 P
    cdef double rho2, x
    cdef int k
    for k in range(3):
        out.plunger[k] = 0.0
        out.aligned[k] = False
        P = add(N.p, mat_vec(N.R, s.position[k]))
        rho2 = P.y * P.y + P.z * P.z
        x = P.x + s.protrusion
        if x > 0.0 and g.inner_radius * g.inner_radius < rho2 < g.face_radius * g.face_radius:
            if x > s.protrusion:
                x = s.protrusion
            out.plunger[k] = x
            out.aligned[k] = x >= s.switch_compression and k + 1 != s.dead
            push(xyz(s.preload + s.stiffness * x, 0.0, 0.0), P, N, out)
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


cdef inline bint one_of(int number, int i) noexcept nogil:
    # whether latch i is of the pair of this number, from 1, or all are meant
    return number == i // 2 + 1 or number > PETALS


cdef void latch_loads(const RingLatchLaw *law, const ContactLaw *contact_law, RingLatchState *states, const RingPose *N, bint grip,
                      double h, RingLoads *out) noexcept nogil:
    """One step of the six latches: guiding face, firing, locking face of the stops. `grip` false draws them in (release)."""
    cdef double x_tip = law.stop_radius_max - law.stop_radius_min
    cdef double x_v = x_tip - law.stop_radius_min
    cdef double sqrt_half = sqrt(0.5)
    cdef double d_C, d_E, depth, share, kap, f_n
    cdef Vec3 A, B, C, E, n_L, n, f, arm
    cdef Contact locked[2]
    cdef int i, count
    for i in range(RING_LATCHES):
        if one_of(law.jammed, i) or not grip and not one_of(law.stays, i):
            memset(&states[i], 0, sizeof(RingLatchState))
            continue
        B = add(N.p, mat_vec(N.R, law.latch[i].tip))
        n_L = mat_vec(N.R, law.latch[i].out)
        # far from the stops: the spring holds the latch out
        if B.x < -0.05:
            states[i].x = 0.0
            states[i].v = 0.0
            continue
        A = add(N.p, mat_vec(N.R, law.latch[i].inner))
        # crossing of the latch line with the plane of the stop's edge
        d_C = 1e9
        C = A
        if fabs(n_L.x) > 1e-9:
            C = add(A, mul((x_tip - A.x) / n_L.x, n_L))
            d_C = from_axis(C)
        if states[i].fired == 0.0 and d_C < law.stop_radius_min and B.x > x_tip:
            states[i].fired = 1.0
            states[i].v = 0.0
        if states[i].fired != 0.0:
            # behind the stop the spring drives the latch out as far as the locking face r = x - x_v lets it, and it never goes back in
            E = tip_on_locking_face(law, &states[i], B, n_L, x_v, &depth)
            d_E = from_axis(E)
            count = 0
            if 0.0 < depth < 0.03 and d_E > law.stop_radius_min:
                locking_contact(depth, E, d_E, &locked[count])
                count += 1
            # the segment at the stop's edge
            if fabs(n_L.x) > 1e-9:
                depth = (d_C - law.stop_radius_min) * sqrt_half
                if 0.0 < depth < 0.03 and A.x < x_tip < E.x:
                    locking_contact(depth, C, d_C, &locked[count])
                    count += 1
            contact_loads(contact_law, locked, count, N, out)
            out.latches += states[i].x * (law.preload + 0.5 * law.stiffness * states[i].x)
            continue
        # guiding face: 45 deg cone r = R_max - x against the tip at its present compression
        E = add(B, mul(-states[i].x, n_L))
        d_E = from_axis(E)
        n = xyz(sqrt_half, sqrt_half * E.y / d_E, sqrt_half * E.z / d_E)
        depth = (d_E - (law.stop_radius_max - E.x)) * sqrt_half
        share = dot(n_L, n)
        if depth + share * states[i].x > 0.0 and E.x < x_tip + 0.01:
            # the contact spring inside the implicit step: depth = depth0 - share (x - x_now)
            kap = law.contact_stiffness * share * share if depth > 0.0 else 0.0
            f_n = law.contact_stiffness * (depth + share * states[i].x) if depth > 0.0 else 0.0
            latch_step(h, law.mass, law.stiffness + kap, law.preload, share * f_n, &states[i].v, &states[i].x)
            E = add(B, mul(-states[i].x, n_L))
            depth = (from_axis(E) - (law.stop_radius_max - E.x)) * sqrt_half
            if states[i].x > law.stroke:
                states[i].x = law.stroke
                states[i].v = 0.0
            if depth > 0.0:
                f = mul(law.contact_stiffness * depth, n)
                push(f, E, N, out)
                # all that the ring gives a latch which it does not keep is lost
                arm = sub(E, N.p)
                out.D_N.f = sub(out.D_N.f, f)
                out.D_N.m = sub(out.D_N.m, cross(arm, f))
                out.lost_power += dot(f, add(N.v, cross(N.w, arm)))
        else:
            latch_step(h, law.mass, law.stiffness, law.preload, 0.0, &states[i].v, &states[i].x)
        out.latches += states[i].x * (law.preload + 0.5 * law.stiffness * states[i].x) + 0.5 * law.mass * states[i].v * states[i].v


cdef inline double from_axis(Vec3 P) noexcept nogil:
    return sqrt(P.y * P.y + P.z * P.z)


cdef inline Vec3 tip_on_locking_face(const RingLatchLaw *law, RingLatchState *s, Vec3 B, Vec3 n_L, double x_v,
                                     double *depth) noexcept nogil:
    """Tip of a fired latch: its compression shrinks to where the tip touches the locking face; `depth`: penetration along the face's
    normal."""
    cdef Vec3 E = add(B, mul(-s.x, n_L))
    cdef double d_E = from_axis(E)
    # outward motion of the tip against the face, per extension of the latch
    cdef double gain = (n_L.y * E.y + n_L.z * E.z) / d_E - n_L.x
    depth[0] = d_E - (E.x - x_v)
    if depth[0] < 0.0 and s.x > 0.0 and gain > 1e-3:
        s.x += depth[0] / gain
        if s.x < 0.0:
            s.x = 0.0
        E = add(B, mul(-s.x, n_L))
        depth[0] = from_axis(E) - (E.x - x_v)
    depth[0] *= sqrt(0.5)
    return E


cdef inline void locking_contact(double depth, Vec3 P, double d, Contact *out) noexcept nogil:
    cdef double c = sqrt(0.5)
    out.depth = depth
    put(xyz(-c, c * P.y / d, c * P.z / d), out.n)
    put(P, out.r)
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


cdef Vec3 _vector(object a) except *:
    return xyz(a[0], a[1], a[2])


cdef void fill_ring_geometry(object t, RingGeometry *g) except *:
    """From the parameter table `t` of a ring unit (keys of RING_PARAMETERS). Raises ValueError that names the key."""
    cdef int i, k, s
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
        g.start[i] = vec(&start[i, 0])
        g.along[i] = vec(&along[i, 0])
    cdef double[:, :, ::1] upper = shape["upper"], lower = shape["lower"]
    cdef double[:, ::1] outward = shape["outward"]
    for s in range(2):
        g.outward[s] = vec(&outward[s, 0])
        g.upper[s].start, g.upper[s].vector = vec(&upper[s, 0, 0]), vec(&upper[s, 1, 0])
        g.lower[s].start, g.lower[s].vector = vec(&lower[s, 0, 0]), vec(&lower[s, 1, 0])
        azimuth = np.radians(t["petal_base_azimuth_deg"]) * (1 if s else -1)
        g.plane_point[s] = xyz(0.0, outer * np.cos(azimuth), outer * np.sin(azimuth))
    cdef double[:, ::1] R
    for k in range(PETALS):
        g.azimuth[k] = 2.0 * np.pi * k / 3.0
        R = rotation_x(g.azimuth[k])
        g.R_petal[k] = mat(&R[0, 0])


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
    cdef int i
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
        law.latch[i].tip = _vector(tip)
        law.latch[i].inner = _vector(inner)
        law.latch[i].out = _vector(out)


cdef void fill_sensors(object t, const RingGeometry *g, RingSensors *s) except *:
    cdef int k
    s.protrusion = t["plunger_protrusion_m"]
    s.stiffness = t["plunger_stiffness_n_per_m"]
    s.preload = t["plunger_preload_n"]
    s.switch_compression = t["plunger_switch_m"]
    if not s.switch_compression < s.protrusion:
        raise ValueError(f"plunger_switch_m: {s.switch_compression} m, must be < plunger_protrusion_m ({s.protrusion} m)")
    for k in range(3):
        foot = rotation_x(g.azimuth[k] + np.pi / 3) @ np.array([0.0, g.outer_radius, 0.0])
        s.position[k] = _vector(foot)


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
        cdef double[::1] rotation = np.ascontiguousarray(R_TN, dtype=float).reshape(-1)
        cdef Contact found[RING_CONTACTS]
        cdef int i, n
        n = ring_contacts(&self.geometry, _vector(p_TN), mat(&rotation[0]), found)
        return [(found[i].depth, np.array([found[i].n[k] for k in range(3)]), np.array([found[i].r[k] for k in range(3)]),
                 found[i].kind, found[i].index) for i in range(n)]

    def petal(self, k, R_TN=None, p_TN=None):
        """Generators of petal k in T: (starts, vectors), (2^N + 1, 3) each; target ring if no pose is given."""
        R = np.diag([-1.0, -1.0, 1.0]) if R_TN is None else np.asarray(R_TN)
        p = np.zeros(3) if p_TN is None else np.asarray(p_TN)
        count = (1 << self.geometry.levels) + 1
        turn = R @ rotation_x(self.geometry.azimuth[k])
        start = np.array([[self.geometry.start[i].x, self.geometry.start[i].y, self.geometry.start[i].z] for i in range(count)])
        along = np.array([[self.geometry.along[i].x, self.geometry.along[i].y, self.geometry.along[i].z] for i in range(count)])
        return start @ turn.T + p, along @ turn.T


def implicit_latch(h, mass, stiffness, preload, force, v, x):
    """One implicit Euler step of a latch: (v, x)."""
    cdef double v_out = v, x_out = x
    latch_step(h, mass, stiffness, preload, force, &v_out, &x_out)
    return v_out, x_out
