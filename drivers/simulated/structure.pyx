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

from rt_kernels.algebra cimport pose, quat, rot3, vec3
from rt_kernels.plugs cimport MechanismOutput

from rt_kernels.model.modal_spring import modal_spring
from rt_kernels.parameters import Parameter


# ---------------------------------------------------------------------------------------------------------- the spring

cdef inline void parent_motion(const StructureParams *p, const StructureState *s, int k, const double *X_WP, const double *V_WP,
                               double *X_W, double *V) noexcept nogil:
    """Pose and twist (of its origin, W axes) of what body k stands on."""
    cdef const BodyState *b
    if k == CELL and p.body[BASE].present:
        b = &s.body[BASE]
        pose.copy(b.X_WB, X_W)
        vec3.copy(b.v, V)
        vec3.copy(b.w, V + 3)
    elif p.cell_on_platform == (k != UNIT):
        pose.copy(X_WP, X_W)
        vec3.copy(V_WP, V)
        vec3.copy(V_WP + 3, V + 3)
    else:
        pose.identity(X_W)
        memset(V, 0, 6 * sizeof(double))


cdef inline void minus_product(const double *A, const double *x, double *F) noexcept nogil:
    # F -= A x
    cdef int i, j
    for i in range(6):
        for j in range(6):
            F[i] -= A[6 * i + j] * x[j]


cdef void spring_force(const ElasticBody *body, BodyState *b, const double *X_W, const double *V) noexcept nogil:
    """Wrench of the spring on the body, from its motion relative to the parent's pose X_W and twist V."""
    cdef double X_WE[7]
    cdef double inverse[4]
    cdef double q[4]
    cdef double d[6]
    cdef double rate[6]
    cdef double F[6]
    cdef double t[3]
    cdef int i
    pose.multiply(X_W, body.X_E, X_WE)
    # deflection
    vec3.sub(b.X_WB, X_WE, d)
    quat.rotate_back(X_WE + 3, d, d)
    quat.conjugate(X_WE + 3, inverse)
    quat.multiply(inverse, b.X_WB + 3, q)
    quat.logarithm(q, d + 3)
    # its rate: against the point of the parent that is where the body's origin is
    vec3.sub(b.X_WB, X_W, t)
    vec3.cross(V + 3, t, t)
    vec3.sub(b.v, V, rate)
    vec3.sub(rate, t, rate)
    vec3.sub(b.w, V + 3, rate + 3)
    quat.rotate_back(X_WE + 3, rate, rate)
    quat.rotate_back(X_WE + 3, rate + 3, rate + 3)
    # elastic part with T(phi), damping, preload
    memset(F, 0, sizeof(F))
    minus_product(body.stiffness, d, F)
    vec3.cross(d + 3, F + 3, t)
    vec3.add_scaled(F + 3, 0.5, t, F + 3)
    minus_product(body.damping, rate, F)
    for i in range(6):
        F[i] += body.preload[i]
    quat.rotate(X_WE + 3, F, b.spring)
    quat.rotate(X_WE + 3, F + 3, b.spring + 3)


# ------------------------------------------------------------------------------------------------------------ one body

cdef inline void angular_rate(const ElasticBody *body, BodyState *b) noexcept nogil:
    # w = R J^-1 R^T L
    cdef double x[3]
    quat.rotate_back(b.X_WB + 3, b.L, x)
    rot3.apply(body.J_inverse, x, x)
    quat.rotate(b.X_WB + 3, x, b.w)


cdef inline void move(const ElasticBody *body, BodyState *b, double dt) noexcept nogil:
    """Kick with the forces of the positions before, then drift."""
    vec3.add_scaled(b.v, dt, b.a, b.v)
    vec3.add_scaled(b.L, dt, b.m, b.L)
    angular_rate(body, b)
    vec3.add_scaled(b.X_WB, dt, b.v, b.X_WB)
    quat.turn(b.w, dt, b.X_WB + 3)
    quat.renormalize(b.X_WB + 3)
    angular_rate(body, b)


cdef inline void accelerations(const ElasticBody *body, BodyState *b, const double *F) noexcept nogil:
    """v' and w' under the wrench F and the weight, at the centre of mass, W axes: m v' = f + m g, J w' = m - w x L."""
    cdef double x[3]
    vec3.scale(1.0 / body.mass, F, b.a)
    vec3.add(b.a, body.gravity_W, b.a)
    vec3.copy(F + 3, b.m)
    vec3.cross(b.w, b.L, x)
    vec3.sub(b.m, x, x)
    quat.rotate_back(b.X_WB + 3, x, x)
    rot3.apply(body.J_inverse, x, x)
    quat.rotate(b.X_WB + 3, x, b.dw)


cdef inline void add_at(const double *F, const double *point, const double *origin, double sign, double *total) noexcept nogil:
    """total (at `origin`) += sign * the wrench F at `point`, all in W axes."""
    cdef double r[3]
    cdef double m[3]
    vec3.sub(point, origin, r)
    vec3.cross(r, F, m)
    vec3.add(m, F + 3, m)
    vec3.add_scaled(total, sign, F, total)
    vec3.add_scaled(total + 3, sign, m, total + 3)


# ------------------------------------------------------------------------------------------------------------ the ports

cdef inline void seat_motion(const StructureState *s, const Seat *seat, const double *X_WP, const double *V_WP, double *X,
                             double *V) noexcept nogil:
    """Pose of a port, or of S, in W and its twist (of its origin, W axes)."""
    cdef double r[3]
    cdef const BodyState *b
    if seat.body != RIGID:
        b = &s.body[seat.body]
        pose.multiply(b.X_WB, seat.X, X)
        vec3.sub(X, b.X_WB, r)
        vec3.cross(b.w, r, V)
        vec3.add(V, b.v, V)
        vec3.copy(b.w, V + 3)
    elif seat.on_platform:
        pose.multiply(X_WP, seat.X, X)
        vec3.sub(X, X_WP, r)
        vec3.cross(V_WP + 3, r, V)
        vec3.add(V, V_WP, V)
        vec3.copy(V_WP + 3, V + 3)
    else:
        pose.copy(seat.X, X)
        memset(V, 0, 6 * sizeof(double))


cdef void structure_relative(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP, double *X_TA,
                             double *V_TA) noexcept nogil:
    """Relative pose and twist of the docking ports as a mechanism takes them (T axes)."""
    cdef double V_M[6]
    cdef double V_O[6]
    cdef double *X_WT = s.X_WM
    cdef double *X_WA = s.X_WO
    cdef double *V_T = V_M
    cdef double *V_A = V_O
    cdef double X_TW[7]
    cdef double r[3]
    seat_motion(s, &p.measured, X_WP, V_WP, s.X_WM, V_M)
    seat_motion(s, &p.other, X_WP, V_WP, s.X_WO, V_O)
    if not p.target_on_cell:
        X_WT, X_WA, V_T, V_A = X_WA, X_WT, V_A, V_T
    pose.inverse(X_WT, X_TW)
    pose.multiply(X_TW, X_WA, X_TA)
    # d/dt p_TA = R_TW (v_A - v_T - w_T x (p_A - p_T))
    vec3.sub(X_WA, X_WT, r)
    vec3.cross(V_T + 3, r, r)
    vec3.sub(V_A, V_T, V_TA)
    vec3.sub(V_TA, r, V_TA)
    quat.rotate_back(X_WT + 3, V_TA, V_TA)
    vec3.sub(V_A + 3, V_T + 3, V_TA + 3)
    quat.rotate_back(X_WT + 3, V_TA + 3, V_TA + 3)


# -------------------------------------------------------------------------------------------------------------- the step

cdef void structure_advance(const StructureParams *p, StructureState *s) noexcept nogil:
    """All bodies by one step, with the forces that `structure_forces` has found."""
    cdef int k
    for k in range(BODIES):
        if p.body[k].present:
            move(&p.body[k], &s.body[k], p.dt)


cdef inline void add_port(const StructureState *s, const Seat *seat, const double *X_W, const double *F, const double *X_WP,
                          double total[3][6], double *on_platform) noexcept nogil:
    """The wrench F, at and in a port that is at X_W, goes to what carries the port."""
    cdef double F_W[6]
    quat.rotate(X_W + 3, F, F_W)
    quat.rotate(X_W + 3, F + 3, F_W + 3)
    if seat.body != RIGID:
        add_at(F_W, X_W, s.body[seat.body].X_WB, 1.0, total[seat.body])
    elif seat.on_platform:
        add_at(F_W, X_W, X_WP, 1.0, on_platform)


cdef void structure_forces(const StructureParams *p, StructureState *s, const double *X_WP, const double *V_WP,
                           const MechanismOutput *contact, const double *external_S) noexcept nogil:
    """Springs, contact and what pulls at the load cell (at and in S, on what hangs there): accelerations of the bodies, and the sum on the
    platform."""
    cdef double total[3][6]
    cdef double X_W[7]
    cdef double V[6]
    cdef double F_M[6]
    cdef double F_O[6]
    cdef int k
    memset(total, 0, sizeof(total))
    memset(s.on_platform, 0, sizeof(s.on_platform))
    # springs, each on its body and the opposite on what it stands on
    for k in range(BODIES):
        if not p.body[k].present:
            continue
        parent_motion(p, s, k, X_WP, V_WP, X_W, V)
        spring_force(&p.body[k], &s.body[k], X_W, V)
        add_at(s.body[k].spring, s.body[k].X_WB, s.body[k].X_WB, 1.0, total[k])
        if k == CELL and p.body[BASE].present:
            add_at(s.body[k].spring, s.body[k].X_WB, s.body[BASE].X_WB, -1.0, total[BASE])
        elif p.cell_on_platform == (k != UNIT):
            add_at(s.body[k].spring, s.body[k].X_WB, X_WP, -1.0, s.on_platform)
    # contact at both ports; on the side of the load cell also what pulls at it
    pose.wrench_to_child(p.X_S_port, external_S, F_M)
    for k in range(6):
        F_M[k] += contact.F_T[k] if p.target_on_cell else contact.F_A[k]
        F_O[k] = contact.F_A[k] if p.target_on_cell else contact.F_T[k]
    add_port(s, &p.measured, s.X_WM, F_M, X_WP, total, s.on_platform)
    add_port(s, &p.other, s.X_WO, F_O, X_WP, total, s.on_platform)
    for k in range(BODIES):
        if p.body[k].present:
            accelerations(&p.body[k], &s.body[k], total[k])


# -------------------------------------------------------------------------------------------------------- the load cell

cdef inline void point_acceleration(const double *a, const double *w, const double *dw, const double *r, double *out) noexcept nogil:
    # a + w' x r + w x (w x r)
    cdef double x[3]
    cdef double y[3]
    vec3.cross(w, r, x)
    vec3.cross(w, x, x)
    vec3.cross(dw, r, y)
    vec3.add(a, x, out)
    vec3.add(out, y, out)


cdef void seat_acceleration(const StructureState *s, const Seat *seat, const double *X_WP, const double *V_WP, const double *A_WP,
                            const double *X, double *a, double *w, double *dw) noexcept nogil:
    """Acceleration of the origin of a seat that is at X, its rate and angular acceleration, W axes."""
    cdef double r[3]
    if seat.body != RIGID:
        vec3.copy(s.body[seat.body].w, w)
        vec3.copy(s.body[seat.body].dw, dw)
        vec3.sub(X, s.body[seat.body].X_WB, r)
        point_acceleration(s.body[seat.body].a, w, dw, r, a)
    elif seat.on_platform:
        vec3.copy(V_WP + 3, w)
        vec3.copy(A_WP + 3, dw)
        vec3.sub(X, X_WP, r)
        point_acceleration(A_WP, w, dw, r, a)
    else:
        vec3.fill(0.0, 0.0, 0.0, a)
        vec3.fill(0.0, 0.0, 0.0, w)
        vec3.fill(0.0, 0.0, 0.0, dw)


cdef void structure_cell(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP, const double *A_WP,
                         const double *applied_S, double *F_S) noexcept nogil:
    """What the load cell feels, at and in S. applied_S: contact and what else pulls at it, for a cell without a spring of its own."""
    cdef double X_WS[7]
    cdef double V[6]
    cdef double a[3]
    cdef double w[3]
    cdef double dw[3]
    cdef double f[3]
    cdef double m[3]
    cdef double x[3]
    cdef int i
    seat_motion(s, &p.cell, X_WP, V_WP, X_WS, V)
    if p.body[CELL].present:
        # its own spring, and nothing else: the opposite of what acts on the body
        memset(F_S, 0, 6 * sizeof(double))
        add_at(s.body[CELL].spring, s.body[CELL].X_WB, X_WS, -1.0, F_S)
        quat.rotate_back(X_WS + 3, F_S, F_S)
        quat.rotate_back(X_WS + 3, F_S + 3, F_S + 3)
        return
    for i in range(6):
        F_S[i] = applied_S[i]
    if p.carried_mass <= 0.0:
        return
    # weight and inertia of what moves with S: f = m (g - a_c), moment about the centre of mass -J w' - w x J w
    seat_acceleration(s, &p.cell, X_WP, V_WP, A_WP, X_WS, a, w, dw)
    quat.rotate(X_WS + 3, p.com_S, x)
    point_acceleration(a, w, dw, x, a)
    vec3.sub(p.gravity_W, a, f)
    vec3.scale(p.carried_mass, f, f)
    quat.rotate_back(X_WS + 3, f, f)
    quat.rotate_back(X_WS + 3, w, w)
    quat.rotate_back(X_WS + 3, dw, dw)
    rot3.apply(p.carried_J, dw, m)
    rot3.apply(p.carried_J, w, x)
    vec3.cross(w, x, x)
    vec3.add(m, x, m)
    vec3.cross(p.com_S, f, x)
    vec3.sub(x, m, m)
    vec3.add(F_S, f, F_S)
    vec3.add(F_S + 3, m, F_S + 3)


cdef void structure_acceleration(const StructureParams *p, const StructureState *s, const double *X_WP, const double *V_WP,
                                 const double *A_WP, double *out) noexcept nogil:
    """Accelerometers on what the load cell carries: proper acceleration of S there (at rest the opposite of gravity) and angular
    acceleration, S axes."""
    cdef double X_WS[7]
    cdef double V[6]
    cdef double w[3]
    seat_motion(s, &p.carried, X_WP, V_WP, X_WS, V)
    seat_acceleration(s, &p.carried, X_WP, V_WP, A_WP, X_WS, out, w, out + 3)
    vec3.sub(out, p.gravity_W, out)
    quat.rotate_back(X_WS + 3, out, out)
    quat.rotate_back(X_WS + 3, out + 3, out + 3)


# --------------------------------------------------------------------------------------------------------------- set-up

cdef void structure_rest(const StructureParams *p, StructureState *s, const double *X_WP) noexcept nogil:
    """All bodies at rest where their springs hold them in the neutral pose X_WP."""
    cdef double still[6]
    cdef double X[7]
    cdef double V[6]
    cdef MechanismOutput nothing
    cdef int k
    memset(still, 0, sizeof(still))
    memset(&nothing, 0, sizeof(nothing))
    memset(s, 0, sizeof(StructureState))
    for k in range(BODIES):
        if p.body[k].present:
            # the base comes before what hangs on the cell
            parent_motion(p, s, k, X_WP, still, X, V)
            pose.multiply(X, p.body[k].X_E, s.body[k].X_WB)
    structure_relative(p, s, X_WP, still, X, V)
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
    inverse = np.linalg.inv(inertia)
    for i in range(9):
        body.J[i], body.J_inverse[i] = inertia.flat[i], inverse.flat[i]
    for i in range(36):
        body.stiffness[i], body.damping[i] = stiffness.flat[i], damping.flat[i]
    for i in range(3):
        body.gravity_W[i] = gravity[i]
    return 0


def _moved(inertia, mass, r):
    """Inertia about a point at r from the centre of mass."""
    return np.asarray(inertia, float) + mass * (r @ r * np.eye(3) - np.outer(r, r))


cdef int fill_structure(StructureParams *p, object keys, object mounting, const double *neutral, double dt) except -1:
    """From the keys of STRUCTURE_PARAMETERS and a Mounting; neutral: X_WP in which the bodies stand at rest where the file has them. Raises
    ValueError for a body without mass, a spring that is none, or a step too long for it."""
    cdef double com[7]
    cdef double X_BS[7]
    cdef int i
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
    for i in range(3):
        p.com_S[i], p.gravity_W[i] = c[i], gravity[i]
    for i in range(9):
        p.carried_J[i] = J.flat[i]
    for i in range(7):
        p.X_S_port[i] = mounting.X_S_port[i]
        p.cell.X[i] = p.carried.X[i] = mounting.X_S[i]
    # all rigid: S and both ports on the platform or in W
    p.cell.body = p.carried.body = p.measured.body = p.other.body = RIGID
    p.cell.on_platform = p.carried.on_platform = p.measured.on_platform = p.cell_on_platform
    p.other.on_platform = not p.cell_on_platform
    pose.multiply(p.cell.X, p.X_S_port, p.measured.X)
    for i in range(7):
        p.other.X[i] = mounting.X_WF[i] if p.cell_on_platform else mounting.X_PM[i]
    # the base, with what the cell carries where the cell has no spring
    pose.identity(com)
    if given["base"]:
        mass, centre = keys["base_mass_kg"], np.asarray(keys["base_com_m"], float)
        inertia = np.asarray(keys["base_inertia_kg_m2"], float)
        if not given["cell"]:
            whole = (mass * centre + carried * c) / (mass + carried)
            inertia = _moved(inertia, mass, centre - whole) + _moved(J, carried, c - whole)
            mass, centre = mass + carried, whole
        _fill_body(&p.body[BASE], "base", keys, mass, inertia, gravity, dt)
        for i in range(3):
            com[i] = centre[i]
        pose.multiply(p.cell.X, com, p.body[BASE].X_E)
        # S in the body
        pose.inverse(com, X_BS)
        pose.copy(X_BS, p.cell.X)
        p.cell.body = BASE
        p.carried = p.cell
        p.measured.body = BASE
        pose.multiply(X_BS, p.X_S_port, p.measured.X)
    pose.identity(com)
    if given["cell"]:
        _fill_body(&p.body[CELL], "cell", keys, carried, J, gravity, dt)
        for i in range(3):
            com[i] = c[i]
        pose.multiply(p.cell.X, com, p.body[CELL].X_E)
        pose.inverse(com, p.carried.X)
        p.carried.body = CELL
        p.measured.body = CELL
        pose.multiply(p.carried.X, p.X_S_port, p.measured.X)
    pose.identity(com)
    if given["unit"]:
        _fill_body(&p.body[UNIT], "unit", keys, keys["unit_mass_kg"], keys["unit_inertia_kg_m2"], gravity, dt)
        for i in range(3):
            com[i] = keys["unit_com_m"][i]
        pose.multiply(p.other.X, com, p.body[UNIT].X_E)
        pose.inverse(com, p.other.X)
        p.other.body = UNIT
    _preload(p, neutral)
    return 0


cdef int _preload(StructureParams *p, const double *neutral) except -1:
    """Springs carry all weights in the neutral pose."""
    cdef StructureState s
    cdef double F[3][6]
    cdef int i, k
    memset(F, 0, sizeof(F))
    structure_rest(p, &s, neutral)
    for k in range(BODIES):
        if p.body[k].present:
            vec3.add_scaled(F[k], p.body[k].mass, p.gravity_W, F[k])
    if p.body[BASE].present and p.body[CELL].present:
        add_at(F[CELL], s.body[CELL].X_WB, s.body[BASE].X_WB, 1.0, F[BASE])
    for k in range(BODIES):
        if p.body[k].present:
            quat.rotate_back(s.body[k].X_WB + 3, F[k], p.body[k].preload)
            quat.rotate_back(s.body[k].X_WB + 3, F[k] + 3, p.body[k].preload + 3)
            for i in range(6):
                p.body[k].preload[i] = -p.body[k].preload[i]
    return 0


cdef object structure_state(const StructureParams *p, const StructureState *s):
    """Name of each body → pose in W (7,), twist (of the centre of mass, W axes), angular momentum, wrench of its spring on it, kinetic
    energy."""
    cdef const BodyState *b
    out = {}
    for k, name in ((BASE, "base"), (CELL, "cell"), (UNIT, "unit")):
        if p.body[k].present:
            b = &s.body[k]
            out[name] = {
                "X_WB": np.array([b.X_WB[i] for i in range(7)]),
                "V": np.array([b.v[i] for i in range(3)] + [b.w[i] for i in range(3)]),
                "L": np.array([b.L[i] for i in range(3)]),
                "spring": np.array([b.spring[i] for i in range(6)]),
                "kinetic": 0.5 * p.body[k].mass * vec3.dot(b.v, b.v) + 0.5 * vec3.dot(b.w, b.L),
            }
    return out
