"""Bodies of a stand that hang on springs: the sensor's base, what the load cell carries, and the unit on the other side.

Each is a rigid body B with its origin in its centre of mass, on a six-axis spring-damper to the frame E of what it stands on: the floor,
the platform, or for what hangs on the load cell the sensor's base. With d = (p, phi) the pose of B in E, phi its rotation vector, and d'
the twist of B relative to E, both in E axes:

    F  = F_0 - T(phi) K d - C d' ,   T = [[1, 0], [0, 1 + [phi] / 2]]           on the body at the origin of B; the opposite on its parent
    m v' = F + m g + F_port - F_child ,   L' = moments about the origin of B ,   w = R J^-1 R^T L                          (W axes)

F_0 carries all weights in the neutral pose, so that the ports are where the stand's file has them. T is what the potential d^T K d / 2 asks
for, up to phi^2. A spring's force acts on both its bodies at the same point of space, so that momentum is kept to rounding.

K and C come from six modes on a parent that stands still: K = M P W^2 P^T M, C = M P (2 zeta W) P^T M, with M = diag(m 1, J) and mode
shapes P of P^T M P = 1. The shapes are the axes (P = M^-1/2), given ones, or those of a given K.

One step (symplectic Euler, 1 order in dt): all bodies are kicked by the forces of the positions before, then they drift; then the forces of
the new positions are found. An undamped mode neither grows nor decays; a damped one falls by sqrt(1 - 2 zeta w dt) a step. The frequency is
too high by (w dt)^2 / 24 + zeta w dt / 2 of itself.

The load cell is the spring of the body on it: it feels contact, weight and inertia of what it carries. Where only the base is elastic, what
the cell carries moves with it.
"""

from libc.string cimport memset

import numpy as np

from rt_kernels.algebra.values cimport (Mat3, Pose, Quat, Twist, Vec3, Wrench, add, compose, conjugate, cross, dot, inverse, logarithm,
                                        mat, mat_vec, mul, neg, pose, pose_of, put, quat_multiply, renormalized, rotate, rotate_back, sub,
                                        turned, twist, twist_of, vec, wrench, wrench_of, wrench_sum, wrench_to_child, xyz, xyzw)
from rt_kernels.plugs cimport MechanismOutput

from rt_kernels.model.modal_spring import modal_spring
from rt_kernels.parameters import Parameter


cdef inline Motion motion_of(Pose X, Twist V) noexcept nogil:
    cdef Motion out
    out.X = X
    out.V = V
    return out


cdef inline Pose placed_at(Vec3 p) noexcept nogil:
    return pose_of(p, xyzw(0.0, 0.0, 0.0, 1.0))


cdef inline Motion at_rest(Pose X) noexcept nogil:
    return motion_of(X, twist_of(xyz(0.0, 0.0, 0.0), xyz(0.0, 0.0, 0.0)))


cdef inline Motion of_body(const BodyState *b) noexcept nogil:
    return motion_of(b.X_WB, twist_of(b.v, b.w))


# ---------------------------------------------------------------------------------------------------------- the spring

cdef inline Motion parent_motion(const StructureParams *p, const StructureState *s, int k, const double *X_WP,
                                 const double *V_WP) noexcept nogil:
    """What body k stands on."""
    if k == CELL and p.body[BASE].present:
        return of_body(&s.body[BASE])
    if p.cell_on_platform == (k != UNIT):
        return motion_of(pose(X_WP), twist(V_WP))
    return at_rest(placed_at(xyz(0.0, 0.0, 0.0)))


cdef inline void take_product(const double *A, const Twist *x, Wrench *F) noexcept nogil:
    # F <- F - A x
    cdef const double *component = <const double *> x
    cdef double *f = <double *> F
    cdef int i, j
    for i in range(6):
        for j in range(6):
            f[i] -= A[6 * i + j] * component[j]


cdef inline Wrench spring_force(const ElasticBody *body, const BodyState *b, const Motion *parent) noexcept nogil:
    """Wrench of the spring on the body, from its motion relative to the parent's."""
    cdef Pose X_WE = compose(parent.X, body.X_E)
    cdef Quat q = X_WE.q
    cdef Twist d, rate
    cdef Wrench F
    # deflection
    d.v = rotate_back(q, sub(b.X_WB.p, X_WE.p))
    d.w = logarithm(quat_multiply(conjugate(q), b.X_WB.q))
    # its rate: against the point of the parent that is where the body's origin is
    rate.v = rotate_back(q, sub(sub(b.v, parent.V.v), cross(parent.V.w, sub(b.X_WB.p, parent.X.p))))
    rate.w = rotate_back(q, sub(b.w, parent.V.w))
    # elastic part with T(phi), damping, preload
    memset(&F, 0, sizeof(F))
    take_product(body.stiffness, &d, &F)
    F.m = add(F.m, mul(0.5, cross(d.w, F.m)))
    take_product(body.damping, &rate, &F)
    F = wrench_sum(F, body.preload)
    return wrench_of(rotate(q, F.f), rotate(q, F.m))


# ------------------------------------------------------------------------------------------------------------ one body

cdef inline Vec3 per_inertia(const ElasticBody *body, const BodyState *b, Vec3 L) noexcept nogil:
    # R J^-1 R^T L
    return rotate(b.X_WB.q, mat_vec(body.J_inverse, rotate_back(b.X_WB.q, L)))


cdef inline void move(const ElasticBody *body, BodyState *b, double dt) noexcept nogil:
    """Kick with the forces of the positions before, then drift."""
    b.v = add(b.v, mul(dt, b.a))
    b.L = add(b.L, mul(dt, b.m))
    b.w = per_inertia(body, b, b.L)
    b.X_WB.p = add(b.X_WB.p, mul(dt, b.v))
    b.X_WB.q = renormalized(turned(b.X_WB.q, b.w, dt))
    b.w = per_inertia(body, b, b.L)


cdef inline void accelerations(const ElasticBody *body, BodyState *b, Wrench F) noexcept nogil:
    """v' and w' under the wrench F and the weight, at the centre of mass, W axes: m v' = f + m g, J w' = m - w x L."""
    b.a = add(mul(1.0 / body.mass, F.f), body.gravity_W)
    b.m = F.m
    b.dw = per_inertia(body, b, sub(F.m, cross(b.w, b.L)))


cdef inline void add_at(Wrench F, Vec3 point, Vec3 origin, double sign, Wrench *total) noexcept nogil:
    """total (at `origin`) += sign * the wrench F at `point`, all in W axes."""
    total.f = add(total.f, mul(sign, F.f))
    total.m = add(total.m, mul(sign, add(cross(sub(point, origin), F.f), F.m)))


# ------------------------------------------------------------------------------------------------------------ the ports

cdef inline Motion carried_along(Pose X_A, Vec3 v_A, Vec3 w_A, Pose X_AB) noexcept nogil:
    """Motion of B, fixed at X_AB in A: v_B = w_A x (p_B - p_A) + v_A."""
    cdef Pose X_B = compose(X_A, X_AB)
    return motion_of(X_B, twist_of(add(cross(w_A, sub(X_B.p, X_A.p)), v_A), w_A))


cdef inline Motion seat_motion(const StructureState *s, const Seat *seat, const double *X_WP, const double *V_WP) noexcept nogil:
    """Of a port, or of S."""
    cdef const BodyState *b
    if seat.body != RIGID:
        b = &s.body[seat.body]
        return carried_along(b.X_WB, b.v, b.w, seat.X)
    if seat.on_platform:
        return carried_along(pose(X_WP), vec(V_WP), vec(V_WP + 3), seat.X)
    return at_rest(seat.X)


cdef inline Pose seat_pose(const StructureState *s, const Seat *seat, const double *X_WP) noexcept nogil:
    if seat.body != RIGID:
        return compose(s.body[seat.body].X_WB, seat.X)
    return compose(pose(X_WP), seat.X) if seat.on_platform else seat.X


cdef Motion structure_relative(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP) noexcept nogil:
    """X_TA and V_TA, relative pose and twist of the docking ports as a mechanism takes them (T axes)."""
    cdef Motion M = seat_motion(s, &p.measured, X_WP, V_WP)
    cdef Motion O = seat_motion(s, &p.other, X_WP, V_WP)
    s.X_WM = M.X
    s.X_WO = O.X
    return relative_motion(&M, &O) if p.target_on_cell else relative_motion(&O, &M)


cdef inline Motion relative_motion(const Motion *T, const Motion *A) noexcept nogil:
    """X_TA, and d/dt p_TA = R_TW (v_A - v_T - w_T x (p_A - p_T)), w_TA."""
    cdef Vec3 v = rotate_back(T.X.q, sub(sub(A.V.v, T.V.v), cross(T.V.w, sub(A.X.p, T.X.p))))
    return motion_of(compose(inverse(T.X), A.X), twist_of(v, rotate_back(T.X.q, sub(A.V.w, T.V.w))))


# -------------------------------------------------------------------------------------------------------------- the step

cdef void structure_advance(const StructureParams *p, StructureState *s) noexcept nogil:
    """All bodies by one step, with the forces that `structure_forces` has found."""
    cdef int k
    for k in range(BODIES):
        if p.body[k].present:
            move(&p.body[k], &s.body[k], p.dt)


cdef inline void add_port(StructureState *s, const Seat *seat, Pose X_W, Wrench F, const double *X_WP, Wrench *total) noexcept nogil:
    """The wrench F, at and in a port that is at X_W, acts on what carries the port."""
    cdef Wrench F_W = wrench_of(rotate(X_W.q, F.f), rotate(X_W.q, F.m))
    if seat.body != RIGID:
        add_at(F_W, X_W.p, s.body[seat.body].X_WB.p, 1.0, &total[seat.body])
    elif seat.on_platform:
        add_at(F_W, X_W.p, vec(X_WP), 1.0, &s.on_platform)


cdef void structure_forces(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP,
                           const MechanismOutput *contact, const double *external_S) noexcept nogil:
    """Springs, contact and what pulls at the load cell (at and in S, on what hangs there): accelerations of the bodies, and the sum on the
    platform."""
    cdef Wrench total[3]
    cdef Wrench F_M, F_O
    cdef Motion parent
    cdef BodyState *b
    cdef int k
    memset(total, 0, sizeof(total))
    memset(&s.on_platform, 0, sizeof(s.on_platform))
    # springs, each on its body and the opposite on what it stands on
    for k in range(BODIES):
        if not p.body[k].present:
            continue
        b = &s.body[k]
        parent = parent_motion(p, s, k, X_WP, V_WP)
        b.spring = spring_force(&p.body[k], b, &parent)
        add_at(b.spring, b.X_WB.p, b.X_WB.p, 1.0, &total[k])
        if k == CELL and p.body[BASE].present:
            add_at(b.spring, b.X_WB.p, s.body[BASE].X_WB.p, -1.0, &total[BASE])
        elif p.cell_on_platform == (k != UNIT):
            add_at(b.spring, b.X_WB.p, vec(X_WP), -1.0, &s.on_platform)
    # contact at both ports; on the side of the load cell also what pulls at it
    F_M = wrench(contact.F_T) if p.target_on_cell else wrench(contact.F_A)
    F_O = wrench(contact.F_A) if p.target_on_cell else wrench(contact.F_T)
    add_port(s, &p.measured, s.X_WM, wrench_sum(wrench_to_child(p.X_S_port, wrench(external_S)), F_M), X_WP, total)
    add_port(s, &p.other, s.X_WO, F_O, X_WP, total)
    for k in range(BODIES):
        if p.body[k].present:
            accelerations(&p.body[k], &s.body[k], total[k])


# -------------------------------------------------------------------------------------------------------- the load cell

# Angular rate, angular acceleration and the acceleration of a point, W axes
cdef struct Acceleration:
    Vec3 w
    Vec3 dw
    Vec3 a


cdef inline Acceleration accelerated(Vec3 w, Vec3 dw, Vec3 a, Vec3 r) noexcept nogil:
    """Of the point at r from the one that has the acceleration a: a + w x (w x r) + w' x r."""
    cdef Acceleration out
    out.w = w
    out.dw = dw
    out.a = add(add(a, cross(w, cross(w, r))), cross(dw, r))
    return out


cdef inline Acceleration seat_acceleration(const StructureState *s, const Seat *seat, const double *X_WP, const double *V_WP,
                                           const double *A_WP, Pose X) noexcept nogil:
    """Of the origin of a seat that is at X."""
    cdef const BodyState *b
    cdef Acceleration still
    if seat.body != RIGID:
        b = &s.body[seat.body]
        return accelerated(b.w, b.dw, b.a, sub(X.p, b.X_WB.p))
    if seat.on_platform:
        return accelerated(vec(V_WP + 3), vec(A_WP + 3), vec(A_WP), sub(X.p, vec(X_WP)))
    memset(&still, 0, sizeof(still))
    return still


cdef Wrench structure_cell(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP, const double *A_WP,
                           Wrench applied_S) noexcept nogil:
    """What the load cell feels, at and in S. applied_S: contact and what else pulls at it, for a cell without a spring of its own."""
    cdef Pose X_WS = seat_pose(s, &p.cell, X_WP)
    cdef Acceleration S
    cdef Wrench F
    cdef Vec3 f, w, dw, m
    if p.body[CELL].present:
        # its own spring, and nothing else: the opposite of what acts on the body
        memset(&F, 0, sizeof(F))
        add_at(s.body[CELL].spring, s.body[CELL].X_WB.p, X_WS.p, -1.0, &F)
        return wrench_of(rotate_back(X_WS.q, F.f), rotate_back(X_WS.q, F.m))
    if p.carried_mass <= 0.0:
        return applied_S
    # weight and inertia of what moves with S: f = m (g - a_c), moment about the centre of mass -J w' - w x J w
    S = seat_acceleration(s, &p.cell, X_WP, V_WP, A_WP, X_WS)
    S = accelerated(S.w, S.dw, S.a, rotate(X_WS.q, p.com_S))
    f = rotate_back(X_WS.q, mul(p.carried_mass, sub(p.gravity_W, S.a)))
    w = rotate_back(X_WS.q, S.w)
    dw = rotate_back(X_WS.q, S.dw)
    m = add(mat_vec(p.carried_J, dw), cross(w, mat_vec(p.carried_J, w)))
    return wrench_sum(applied_S, wrench_of(f, sub(cross(p.com_S, f), m)))


cdef void structure_acceleration(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP,
                                 const double *A_WP, double *out) noexcept nogil:
    """Accelerometers on what the load cell carries: proper acceleration of S there (at rest the opposite of gravity) and angular
    acceleration, S axes."""
    cdef Pose X_WS = seat_pose(s, &p.carried, X_WP)
    cdef Acceleration S = seat_acceleration(s, &p.carried, X_WP, V_WP, A_WP, X_WS)
    put(rotate_back(X_WS.q, sub(S.a, p.gravity_W)), out)
    put(rotate_back(X_WS.q, S.dw), out + 3)


# --------------------------------------------------------------------------------------------------------------- set-up

cdef void structure_rest(const StructureParams *p, StructureState *s, const double *X_WP) noexcept nogil:
    """All bodies at rest where their springs hold them in the neutral pose X_WP."""
    cdef double still[6]
    cdef MechanismOutput nothing
    cdef int k
    memset(still, 0, sizeof(still))
    memset(&nothing, 0, sizeof(nothing))
    memset(s, 0, sizeof(StructureState))
    for k in range(BODIES):
        if p.body[k].present:
            # the base comes before what hangs on the cell
            s.body[k].X_WB = compose(parent_motion(p, s, k, X_WP, still).X, p.body[k].X_E)
    structure_relative(p, s, X_WP, still)
    structure_forces(p, s, X_WP, still, &nothing, still)


def _of_body(name, what, axes, massive=True):
    mass = (
        Parameter(f"{name}_mass_kg", "float", "kg", f"mass of {what}; none: it is rigid, as are all that have no modes", None, low=0.1,
                  high=1e5),
        Parameter(f"{name}_com_m", "floats", "m", f"its centre of mass, {axes}", (0.0, 0.0, 0.0), low=-10.0, high=10.0, shape=3),
        Parameter(f"{name}_inertia_kg_m2", "rows", "kg.m2", f"its inertia about its centre of mass, {axes}", None, shape=(3, 3), low=-1e6,
                  high=1e6),
    ) if massive else ()
    return (
        *mass,
        Parameter(f"{name}_mode_hz", "floats", "Hz", f"modes of {what} on its spring while its foot stands still: along and about "
                  f"the {axes} through its centre of mass, or of the given shapes; none: rigid", None, low=1.0, high=500.0, shape=6),
        Parameter(f"{name}_mode_damping", "floats", "-", "damping ratio of each mode; with a stiffness in the order of frequency",
                  (0.02,) * 6, low=0.0, high=0.7, shape=6),
        Parameter(f"{name}_mode_shapes", "rows", "m, rad", "a row for each mode: motion of the centre of mass and turn, of any length; "
                  f"none: {axes}", None, shape=(6, 6)),
        Parameter(f"{name}_stiffness", "rows", "N/m, N, N.m/rad", f"instead of {name}_mode_hz: of the spring at the centre of mass, {axes}",
                  None, shape=(6, 6)),
    )


# keys of the bodies on springs: a part of the table [virtual]
STRUCTURE_PARAMETERS = (
    *_of_body("unit", "the unit without a load cell", "axes of its port"),
    *_of_body("base", "the base of the load cell", "axes of S"),
    *_of_body("cell", "what the load cell carries, on the cell's own spring", "axes of S", massive=False),
)


cdef Vec3 _vector(object a) except *:
    return xyz(a[0], a[1], a[2])


cdef Mat3 _matrix(object a) except *:
    cdef double[::1] flat = np.ascontiguousarray(a, float).reshape(-1)
    return mat(&flat[0])


cdef Pose _pose(object X) except *:
    return pose_of(_vector(X), xyzw(X[3], X[4], X[5], X[6]))


cdef int _fill_body(ElasticBody *body, str name, object keys, double mass, object inertia, object gravity, double dt) except -1:
    """Mass, spring and damper of one body."""
    cdef int i
    inertia = np.asarray(inertia, float)
    if not mass > 0.0 or not np.allclose(inertia, inertia.T) or not np.linalg.eigvalsh(inertia).min() > 0.0:
        raise ValueError(f"virtual.{name}_mode_hz: what is on this spring needs a mass above 0 and an inertia that is symmetric and "
                         f"positive, got {mass:g} kg, {inertia.tolist()}")
    hz, K = keys[f"{name}_mode_hz"], keys[f"{name}_stiffness"]
    if hz is not None and K is not None:
        raise ValueError(f"virtual.{name}_stiffness: given beside virtual.{name}_mode_hz; one of the two")
    try:
        stiffness, damping = modal_spring(mass, inertia, hz, keys[f"{name}_mode_damping"], keys[f"{name}_mode_shapes"], K)
    except ValueError as error:
        raise ValueError(f"virtual.{name}_{'stiffness' if hz is None else 'mode_shapes'}: {error}") from None
    M = np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = mass * np.eye(3), inertia
    fastest = float(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, stiffness)).real.max()))
    if fastest * dt > 0.3:
        raise ValueError(f"virtual.plant_step_s: {dt:g} s is too long for a mode of {fastest / (2.0 * np.pi):.4g} Hz of "
                         f"virtual.{name}_...: at most {0.3 / fastest:.3g} s")
    body.present = 1
    body.mass = mass
    J_inverse = np.linalg.inv(inertia)
    body.J, body.J_inverse = _matrix(inertia), _matrix(J_inverse)
    for i in range(36):
        body.stiffness[i], body.damping[i] = stiffness.flat[i], damping.flat[i]
    body.gravity_W = _vector(gravity)
    return 0


def _moved(inertia, mass, r):
    """Inertia about a point at r from the centre of mass."""
    return np.asarray(inertia, float) + mass * (r @ r * np.eye(3) - np.outer(r, r))


cdef int fill_structure(StructureParams *p, object keys, object mounting, const double *neutral, double dt) except -1:
    """From the keys of STRUCTURE_PARAMETERS and a Mounting; neutral: X_WP in which the bodies stand at rest where the file has them. Raises
    ValueError for a body without mass, a spring that is none, or a step too long for it."""
    cdef Pose com
    memset(p, 0, sizeof(StructureParams))
    p.dt = dt
    p.cell_on_platform = mounting.load_cell_on == "platform"
    p.target_on_cell = mounting.unit_on_load_cell == "target"
    given = {name: keys[f"{name}_mode_hz"] is not None or keys[f"{name}_stiffness"] is not None for name in ("unit", "base", "cell")}
    for name in ("unit", "base"):
        if given[name] != (keys[f"{name}_mass_kg"] is not None) or given[name] != (keys[f"{name}_inertia_kg_m2"] is not None):
            raise ValueError(f"virtual.{name}_mass_kg, {name}_inertia_kg_m2 and the modes ({name}_mode_hz or {name}_stiffness): all or "
                             "none")
    p.elastic = sum(given.values())
    gravity = np.asarray(mounting.gravity_m_s2, float)
    carried, c = float(mounting.carried_mass_kg), np.asarray(mounting.carried_com_m, float)
    J = np.asarray(mounting.carried_inertia_kg_m2, float)
    p.carried_mass = carried
    p.com_S, p.gravity_W, p.carried_J = _vector(c), _vector(gravity), _matrix(J)
    p.X_S_port, p.cell.X, p.carried.X = _pose(mounting.X_S_port), _pose(mounting.X_S), _pose(mounting.X_S)
    # all rigid: S and both ports on the platform or in W
    p.cell.body = p.carried.body = p.measured.body = p.other.body = RIGID
    p.cell.on_platform = p.carried.on_platform = p.measured.on_platform = p.cell_on_platform
    p.other.on_platform = not p.cell_on_platform
    p.measured.X = compose(p.cell.X, p.X_S_port)
    p.other.X = _pose(mounting.X_WF if p.cell_on_platform else mounting.X_PM)
    # the base, with what the cell carries where the cell has no spring
    if given["base"]:
        mass, centre = keys["base_mass_kg"], np.asarray(keys["base_com_m"], float)
        inertia = np.asarray(keys["base_inertia_kg_m2"], float)
        if not given["cell"]:
            whole = (mass * centre + carried * c) / (mass + carried)
            inertia = _moved(inertia, mass, centre - whole) + _moved(J, carried, c - whole)
            mass, centre = mass + carried, whole
        _fill_body(&p.body[BASE], "base", keys, mass, inertia, gravity, dt)
        com = placed_at(_vector(centre))
        p.body[BASE].X_E = compose(p.cell.X, com)
        # S in the body
        p.cell.X = inverse(com)
        p.cell.body = BASE
        p.carried = p.cell
        p.measured.body = BASE
        p.measured.X = compose(p.cell.X, p.X_S_port)
    if given["cell"]:
        _fill_body(&p.body[CELL], "cell", keys, carried, J, gravity, dt)
        com = placed_at(_vector(c))
        p.body[CELL].X_E = compose(p.cell.X, com)
        p.carried.X = inverse(com)
        p.carried.body = CELL
        p.measured.body = CELL
        p.measured.X = compose(p.carried.X, p.X_S_port)
    if given["unit"]:
        _fill_body(&p.body[UNIT], "unit", keys, keys["unit_mass_kg"], keys["unit_inertia_kg_m2"], gravity, dt)
        com = placed_at(_vector(keys["unit_com_m"]))
        p.body[UNIT].X_E = compose(p.other.X, com)
        p.other.X = inverse(com)
        p.other.body = UNIT
    _preload(p, neutral)
    return 0


cdef int _preload(StructureParams *p, const double *neutral) except -1:
    """Springs carry all weights in the neutral pose."""
    cdef StructureState s
    cdef Wrench F[3]
    cdef Quat q
    cdef int k
    memset(F, 0, sizeof(F))
    structure_rest(p, &s, neutral)
    for k in range(BODIES):
        if p.body[k].present:
            F[k].f = add(F[k].f, mul(p.body[k].mass, p.gravity_W))
    if p.body[BASE].present and p.body[CELL].present:
        add_at(F[CELL], s.body[CELL].X_WB.p, s.body[BASE].X_WB.p, 1.0, &F[BASE])
    for k in range(BODIES):
        if p.body[k].present:
            q = s.body[k].X_WB.q
            p.body[k].preload = wrench_of(neg(rotate_back(q, F[k].f)), neg(rotate_back(q, F[k].m)))
    return 0


cdef object _numbers(const void *values, int n):
    return np.array([(<const double *> values)[i] for i in range(n)])


cdef object structure_state(const StructureParams *p, const StructureState *s):
    """Name of each body → pose in W (7,), twist (of the centre of mass, W axes), angular momentum, wrench of its spring on it, kinetic
    energy."""
    cdef const BodyState *b
    out = {}
    for k, name in ((BASE, "base"), (CELL, "cell"), (UNIT, "unit")):
        if p.body[k].present:
            b = &s.body[k]
            out[name] = {
                "X_WB": _numbers(&b.X_WB, 7),
                "V": np.concatenate([_numbers(&b.v, 3), _numbers(&b.w, 3)]),
                "L": _numbers(&b.L, 3),
                "spring": _numbers(&b.spring, 6),
                "kinetic": 0.5 * p.body[k].mass * dot(b.v, b.v) + 0.5 * dot(b.w, b.L),
            }
    return out
