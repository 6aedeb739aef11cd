# cython: wraparound=True
"""Central (probe-cone) docking unit: contact, swinging body, elastic probe, dampers, drive, latches, sensors.

What it computes (dissertation ch. 5.3, 6; errata of the printed formulas applied): from the pose and twist of the active unit's base A in the target
port T it finds all contacts, advances the mechanism's own coordinates by sub-steps and returns the wrench on the target (at and in T), the
wrench on the active vehicle (at and in A), the sensors and some 300 auxiliary channels.

    tree and dependent chains   dynamics.pxd      contact pairs, reaction, latches   rt_kernels.contact
    hysteresis, clutches        hysteresis.pxd               drive, brake tables                common/drive.pxd

Frames: X_T points into the receptacle, X_A along the mechanism; at zero swing the two agree. Free length L of the probe: exit bearing to head centre;
`stroke` s = L - L_0 is negative in compression and the nut turns by phi = -i s, i = 2 pi/lead.

Equations of the stroke (6.1.1): (m + I i^2) s'' = f_H + i m_FR - sign(s') (k |f_H| + i m_MB(i |s'|)), with f_H the axial contact force and the
friction of the ball screw always against the motion (the printed sign adds energy in compression); at rest the friction holds.

Variants: `axial_damper = "spring"` (spring mechanism + friction clutch + magnetic brakes) or "two_brakes" (modified, 6.4); `limiter = "fixed"` or
"movable" (6.5); `levers`; compliance of the hatch cover (6.1.6) for the correlation with stand tests only.
Assumptions: craft accelerations are left out of the transport terms; lever and latch inertia is neglected.
"""

from libc.math cimport sqrt, fabs
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

import math

import numpy as np

from rt_kernels.algebra cimport quat, rot3, vec3
from rt_kernels.algebra.sincos cimport atan2, sincos
from rt_kernels.contact.latches cimport (
    FIRED, FREE, PRESSED, Groove, LatchGeometry, inside_groove, latch_force, latch_in_groove, pressed_angle,
)
from rt_kernels.contact.primitives cimport MAX_VERTICES, Contact, FACE, Profile, prepare_profile, segment_circle, sphere_in_cavity
from rt_kernels.contact.reaction cimport ContactLaw, Reaction, react
from rt_kernels.mechanisms.hysteresis cimport (
    HysteresisState, HysteresisTable, SeriesClutch, beyond_table, fill_series_clutch, fill_table, hysteresis_step, series_clutch_step, stored_energy,
    curve_value,
)
from rt_kernels.mechanisms.common.drive cimport (
    TABLE_POINTS, Drive, DriveState, TorqueTable, drive_angle, drive_rate, drive_step, fill_drive, table_torque,
)
from rt_kernels.mechanisms.probe_cone_sequence cimport DRIVE_EXTEND, DRIVE_ON, EXTRA_BRAKES, RELEASE
from rt_kernels.mechanisms.probe_cone.dynamics cimport (
    Inertias, Motion, add_cross, assemble, base_wrench, chain_gain, factor, place, solve,
)
from rt_kernels.codes cimport MECHANISM_SIGNAL_PLANES_TOGETHER
from rt_kernels.plugs cimport MechanismInput, MechanismOutput, MechanismPart

from rt_kernels.parameters import Aux, Parameter, checked

cdef enum:
    LININGS = 8
    CAM_POINTS = 12
    LATCHES = 4
    LEVERS = 2
    ROLLERS = 3
    PUSHERS = 4
    ENERGIES = 24
    RECORD = 352

# places of the ledger: what is stored, then what is lost
cdef enum:
    E_KINETIC = 0
    E_CONTACT = 1
    E_AXIAL = 2
    E_BEND = 3
    E_TWIST = 4
    E_LATERAL = 5
    E_LATCH = 6
    E_LIMITER = 7
    E_PUSHER = 8
    E_STORED = 9          # sum of the above
    L_CONTACT = 10        # normal dampers
    L_FRICTION = 11       # contact friction, sensor levers along the socket
    L_SCREW = 12
    L_BRAKE = 13          # axial magnetic brakes
    L_AXIAL = 14          # hysteresis and slip of the axial damper
    L_BEND = 15
    L_TWIST = 16
    L_LATERAL = 17        # hysteresis of the lateral springs
    L_LATERAL_BRAKE = 18  # lateral magnetic brakes and structural damping of stops
    L_LATCH = 19
    L_LIMITER = 20
    L_DAMPING = 21        # structural damping of joints and train
    E_LOST = 22           # sum of the losses
    E_SUPPLIED = 23       # work of the target on the mechanism (motion relative to the base) and of the drive


cdef struct State:
    double q[7]
    double v[7]
    HysteresisState bend[2]
    HysteresisState twist
    HysteresisState lateral[2]
    HysteresisState axial
    double train_rate              # deformation rate of the axial gear train, rad/s
    DriveState drive
    double latch_angle[LATCHES]
    double lever_angle[LEVERS]
    double cover_x
    double cover_v
    HysteresisState cover
    double cover_force
    double lost[ENERGIES]          # accumulated losses, J (places L_*)
    double stored[8]               # in the hysteresis elements: axial, bend 2, twist, lateral 2
    double supplied
    double latch_last[LATCHES]     # stored in latches after the last sub-step
    double lever_last[LEVERS]
    double time
    int latch_phase[LATCHES]
    int lever_phase[LEVERS]
    int over_limit                 # ticks in which a law was used beyond its valid range
    int spare


cdef struct Unit:
    State state
    # geometry
    Inertias body
    Profile cone
    double head_radius
    double mouth[3]
    double mouth_radius
    double entry_x, entry_radius, last_cone_x
    int bottom_face
    double lining[3 * LININGS]         # front points, limiter frame
    double lining_run[3 * LININGS]     # from front to rear
    double lining_front, lining_reach
    int rollers
    double roller_radius
    double roller_dir[2 * ROLLERS]
    int cam_points
    double cam_nut[CAM_POINTS]
    double cam_x[CAM_POINTS]
    double cam_rho[CAM_POINTS]
    LatchGeometry latch
    LatchGeometry lever
    Groove groove
    double latch_dir[2 * LATCHES]
    double lever_dir[2 * LEVERS]
    double release_x, lever_friction, lever_viscous
    # contact laws
    ContactLaw head_law
    ContactLaw limiter_law
    ContactLaw roller_law
    ContactLaw latch_law
    ContactLaw plane_law
    double depth_limit
    # elastic elements
    HysteresisTable bend
    HysteresisTable twist
    HysteresisTable lateral
    HysteresisTable axial
    SeriesClutch brakes
    bint two_brakes
    double bend_damping, twist_damping, lateral_damping, train_damping
    # stroke
    double length0, length_min, length_max, stop_stiffness, stop_damping
    double nut_ratio, clutch_ratio, drive_ratio, screw_friction
    TorqueTable axial_brake
    TorqueTable lateral_brake
    double extra_brakes
    double crank_stop, crank_stiffness, crank_damping
    double crank_zero[2]
    Drive drive
    # movable limiter
    bint movable
    double limiter_front, limiter_travel, limiter_force_front, limiter_force_end, limiter_stiffness, limiter_damping, limiter_gap
    double limiter_loss                # power lost in its stops, W
    # docking planes
    double plane_x, pusher_radius, pusher_length, pusher_stiffness, together_gap
    # hatch cover
    bint cover_on
    double cover_mass, cover_damping
    HysteresisTable cover
    int substeps
    # work space of one step (not state)
    Motion motion
    double record[RECORD]
    double force_T[6]                  # on the target, summed over the sub-steps
    double force_A[6]
    double deepest
    double brake_factor                # of the lateral magnetic brakes: extra brakes on or not
    uint32_t signals
    uint32_t status


# places of the auxiliary record; the declaration AUX below follows the same order
cdef enum:
    P_Q = 0
    P_V = 7
    P_ACC = 14
    P_HEAD = 21            # place of the head centre in T
    P_HEAD_V = 24
    P_AXIS = 27            # probe axis in T
    P_HEAD_W = 30
    P_WRENCH = 33          # on the probe, from contacts: force and moment about A, A axes
    P_BODY = 39            # on the body (levers, fixed limiter)
    P_LIMITER = 45         # on the movable limiter
    P_HEADCON = 51         # 3 x (depth, normal force, n, r)
    P_LINING = 75          # 8 x (depth, normal force, n, r)
    P_ROLLER = 139         # 3 x (centre, depth, normal force, contact point)
    P_LATCH = 163          # 4 x (phi, phase, force, tip, groove depth, groove force)
    P_LEVER = 195          # 2 x (phi, phase, force, centre)
    P_SPRING = 207         # 2 x (stroke, rate, force, spare energy)
    P_CRANK = 215          # 2 x (angle, rate, torque, stop torque)
    P_STROKE = 223         # stroke, rate, nut angle, nut rate, clutch angle, moment, slip 2, slip 1, brake force, screw friction limit, friction, end stop
    P_DRIVE = 235          # angle, rate, wheel angles, wheel rates, voltage sign, load
    P_JOINT = 243          # bend moments 2, twist moment, stiffness factor
    P_MOVABLE = 247        # position, rate, spring force, stop force
    P_PUSHER = 251         # 4 x (gap, force)
    P_COVER = 259          # x, v, force
    P_LEDGER = 262         # ENERGIES
    P_BASE = 286           # wrench on the base, last sub-step
    P_TARGET = 292         # wrench on the target, last sub-step
    P_RELATIVE = 298       # position of A in T, angular rate of A relative to T, plane gap
    P_COUNT = 305          # deepest penetration, ticks over the limit, contacts, time
    P_MATRIX = 309         # diagonal of the mass matrix 7, bias 7, generalised forces 7
    P_END = 330


# ------------------------------------------------------------------------------------------------------------------ contact sums

cdef struct Bodies:
    # motion of a body in T axes
    double p[3]            # place of its reference point
    double v[3]
    double w[3]
    double R[9]
    # contact sums on it: force and moment about the origin of A, T axes
    double f[3]
    double m[3]


cdef inline void apply_force(Bodies *body, const double *p_TA, const double *r, const double *force_on_target, double *F_T) noexcept nogil:
    """Pair of forces at r: `force_on_target` on the target, its opposite on the body."""
    cdef double arm[3]
    cdef double moment[3]
    vec3.sub(body.f, force_on_target, body.f)
    vec3.sub(r, p_TA, arm)
    vec3.cross(arm, force_on_target, moment)
    vec3.sub(body.m, moment, body.m)
    vec3.add(F_T, force_on_target, F_T)
    vec3.cross(r, force_on_target, moment)
    vec3.add(F_T + 3, moment, F_T + 3)


cdef inline void contact_reaction(
    Unit *u, const ContactLaw *law, const Contact *c, Bodies *body, const double *p_TA, double *F_T, double h, double *stored, double *normal
) noexcept nogil:
    """Reaction at one contact between a body and the target (at rest in T), its sums and its share of the ledger."""
    cdef double v[3]
    cdef double zero[3]
    cdef double arm[3]
    cdef Reaction out
    vec3.fill(0.0, 0.0, 0.0, zero)
    vec3.sub(c.r, body.p, arm)
    vec3.cross(body.w, arm, v)
    vec3.add(v, body.v, v)
    react(law, c, v, zero, &out)
    apply_force(body, p_TA, c.r, out.force, F_T)
    u.state.lost[L_CONTACT] += h * out.damped_power
    u.state.lost[L_FRICTION] += h * out.friction_power
    stored[0] += 0.5 * law.stiffness * c.depth * c.depth
    if c.depth > u.deepest:
        u.deepest = c.depth
    normal[0] = out.normal


cdef inline void note_contact(double *rec, const Contact *c, double normal) noexcept nogil:
    rec[0] = c.depth
    rec[1] = normal
    vec3.copy(c.n, rec + 2)
    vec3.copy(c.r, rec + 5)


cdef inline void body_in_T(const double *p_TA, const double *R_TA, const double *V, const double *local, const double *v_local, const double *w_local,
                           Bodies *b) noexcept nogil:
    """Reference point `local` (A axes, moving at v_local relative to A, body turning at w_local): place and twist in T."""
    cdef double r[3]
    cdef double t[3]
    rot3.apply(R_TA, local, r)
    vec3.add(p_TA, r, b.p)
    vec3.cross(V + 3, r, t)
    vec3.add(V, t, b.v)
    rot3.apply(R_TA, v_local, t)
    vec3.add(b.v, t, b.v)
    rot3.apply(R_TA, w_local, t)
    vec3.add(V + 3, t, b.w)
    vec3.fill(0.0, 0.0, 0.0, b.f)
    vec3.fill(0.0, 0.0, 0.0, b.m)


cdef inline void columns(const double *R_TA, const double *x, const double *y, const double *z, double *R) noexcept nogil:
    # matrix whose columns are the axes x, y, z (A components) taken to T
    cdef double t[3]
    cdef int i
    rot3.apply(R_TA, x, t)
    for i in range(3):
        R[3 * i] = t[i]
    rot3.apply(R_TA, y, t)
    for i in range(3):
        R[3 * i + 1] = t[i]
    rot3.apply(R_TA, z, t)
    for i in range(3):
        R[3 * i + 2] = t[i]


# ----------------------------------------------------------------------------------------------------------- contacts of the parts

cdef inline void head_contacts(Unit *u, Bodies *head, const double *p_TA, double *F_T, double h, double *stored, double *rec) noexcept nogil:
    """Head sphere against cones, edges, socket and bottom; DK1 and DK2."""
    cdef Contact found[4]
    cdef double normal
    cdef int i, n
    n = sphere_in_cavity(&u.cone, head.p, u.head_radius, found, 4)
    for i in range(n):
        contact_reaction(u, &u.head_law, &found[i], head, p_TA, F_T, h, stored, &normal)
        u.signals |= 1
        if found[i].kind == FACE and found[i].index == u.bottom_face:
            u.signals |= 4
        if i < 3:
            note_contact(rec + P_HEADCON + 8 * i, &found[i], normal)


cdef inline void limiter_contacts(Unit *u, Bodies *limiter, const double *p_TA, double *F_T, double h, double *stored, double *rec) noexcept nogil:
    """Linings of the limiter: edges against the mouth circle, front points against the cones."""
    cdef Contact found[3]
    cdef double axis[3]
    cdef double P[3]
    cdef double L[3]
    cdef double normal
    cdef double tilt = limiter.R[3] * limiter.R[3] + limiter.R[6] * limiter.R[6]
    cdef int i, j, n
    # nothing of the limiter has reached the mouth plane
    if limiter.p[0] + limiter.R[0] * u.lining_front + sqrt(tilt) * u.lining_reach < u.mouth[0] - 1e-3:
        return
    vec3.fill(1.0, 0.0, 0.0, axis)
    for i in range(LININGS):
        rot3.apply(limiter.R, u.lining + 3 * i, P)
        vec3.add(P, limiter.p, P)
        rot3.apply(limiter.R, u.lining_run + 3 * i, L)
        n = sphere_in_cavity(&u.cone, P, 0.0, found, 2) if P[0] > u.mouth[0] else 0
        if segment_circle(P, L, u.mouth, axis, u.mouth_radius, True, 3, &found[n]):
            n += 1
        for j in range(n):
            contact_reaction(u, &u.limiter_law, &found[j], limiter, p_TA, F_T, h, stored, &normal)
            u.signals |= 16
            note_contact(rec + P_LINING + 8 * i, &found[j], normal)


cdef inline void roller_contacts(Unit *u, Bodies *body, const double *p_TA, double *F_T, double h, double *stored, double *rec) noexcept nogil:
    """Rollers of the alignment levers: centres from the cam over the nut angle, spheres against the cones."""
    cdef Contact found[2]
    cdef double nut = -u.nut_ratio * (u.state.q[5] - u.length0)
    cdef double share, x, rho, normal
    cdef double local[3]
    cdef double P[3]
    cdef int i, j, n, k = 0
    if u.rollers == 0:
        return
    while k < u.cam_points - 2 and nut > u.cam_nut[k + 1]:
        k += 1
    share = (nut - u.cam_nut[k]) / (u.cam_nut[k + 1] - u.cam_nut[k])
    if share < 0.0:
        share = 0.0
    elif share > 1.0:
        share = 1.0
    x = u.cam_x[k] + share * (u.cam_x[k + 1] - u.cam_x[k])
    rho = u.cam_rho[k] + share * (u.cam_rho[k + 1] - u.cam_rho[k])
    for i in range(u.rollers):
        vec3.fill(x, rho * u.roller_dir[2 * i], rho * u.roller_dir[2 * i + 1], local)
        rot3.apply(body.R, local, P)
        vec3.add(P, body.p, P)
        vec3.copy(P, rec + P_ROLLER + 8 * i)
        # only inside the cone; the rim plane is not theirs
        if P[0] < u.mouth[0]:
            continue
        n = sphere_in_cavity(&u.cone, P, u.roller_radius, found, 2)
        for j in range(n):
            contact_reaction(u, &u.roller_law, &found[j], body, p_TA, F_T, h, stored, &normal)
            u.signals |= 32 << i
            rec[P_ROLLER + 8 * i + 3] = found[j].depth
            rec[P_ROLLER + 8 * i + 4] = normal
            vec3.copy(found[j].r, rec + P_ROLLER + 8 * i + 5)


cdef inline void one_latch(Unit *u, int k, Bodies *head, const double *R_TH, const double *p_TA, double *F_T, double h, double *stored, double *rec) noexcept nogil:
    """Latch k: pressed (massless, spring) or fired (in its groove)."""
    cdef State *s = &u.state
    cdef const LatchGeometry *g = &u.latch
    cdef double uy = u.latch_dir[2 * k], uz = u.latch_dir[2 * k + 1]
    cdef double local[3]
    cdef double tip[3]
    cdef double inner[3]
    cdef double outer[3]
    cdef double force[3]
    cdef double f, normal, energy
    cdef Contact touch
    cdef Contact found[2]
    cdef bint bottomed
    cdef int j, n
    cdef double *r = rec + P_LATCH + 8 * k
    # outermost point and locking segment at rest, in T
    vec3.fill(g.pivot_x + g.tip_x, uy * (g.pivot_rho + g.tip_rho), uz * (g.pivot_rho + g.tip_rho), local)
    rot3.apply(R_TH, local, tip)
    vec3.add(tip, head.p, tip)
    vec3.fill(g.lock_x, uy * g.lock_rho_inner, uz * g.lock_rho_inner, local)
    rot3.apply(R_TH, local, inner)
    vec3.add(inner, head.p, inner)
    vec3.fill(g.lock_x, uy * g.lock_rho_outer, uz * g.lock_rho_outer, local)
    rot3.apply(R_TH, local, outer)
    vec3.add(outer, head.p, outer)
    n = latch_in_groove(&u.groove, k, inner, outer, found)
    if s.latch_phase[k] != FIRED:
        s.latch_angle[k] = pressed_angle(&u.cone, u.entry_x, u.entry_radius, head.p, R_TH, uy, uz, g, s.latch_angle[k], &touch, &bottomed)
        s.latch_phase[k] = PRESSED if s.latch_angle[k] > 0.0 else FREE
        # tip at rest inside the groove's outline and locking face clear of stop and walls: it springs out behind the stop
        if n == 0 and tip[1 + (k & 1)] * (1.0 if k < 2 else -1.0) > u.groove.plane and inside_groove(
            &u.groove, tip[0] - u.groove.stop_x, tip[2 - (k & 1)]
        ):
            s.latch_phase[k] = FIRED
            s.latch_angle[k] = 0.0
        elif s.latch_angle[k] > 0.0:
            f = latch_force(head.p, R_TH, uy, uz, g, s.latch_angle[k], &touch)
            vec3.scale(f, touch.n, force)
            apply_force(head, p_TA, touch.r, force, F_T)
            r[2] = f
            if bottomed:
                contact_reaction(u, &u.latch_law, &touch, head, p_TA, F_T, h, stored, &normal)
                r[2] += normal
        energy = s.latch_angle[k] * (g.torque_preload + 0.5 * g.torque_rate * s.latch_angle[k])
        if s.latch_phase[k] == FIRED:
            s.lost[L_LATCH] += s.latch_last[k]
        s.latch_last[k] = energy
        rec[P_LEDGER + E_LATCH] += energy
    if s.latch_phase[k] == FIRED:
        u.signals |= 512 << k
        for j in range(n):
            contact_reaction(u, &u.latch_law, &found[j], head, p_TA, F_T, h, stored, &normal)
            r[6] = found[j].depth
            r[7] += normal
    r[0] = s.latch_angle[k]
    r[1] = s.latch_phase[k]
    vec3.copy(tip, r + 3)


cdef inline void one_lever(Unit *u, int k, Bodies *head, const double *R_TH, const double *p_TA, double *F_T, double *rec) noexcept nogil:
    """Capture sensor lever k: pressed by the socket until its circle has passed the release depth."""
    cdef State *s = &u.state
    cdef const LatchGeometry *g = &u.lever
    cdef double uy = u.lever_dir[2 * k], uz = u.lever_dir[2 * k + 1]
    cdef double local[3]
    cdef double centre[3]
    cdef double force[3]
    cdef double f
    cdef Contact touch
    cdef bint bottomed
    cdef double *r = rec + P_LEVER + 6 * k
    vec3.fill(g.pivot_x + g.nose_x, uy * (g.pivot_rho + g.nose_rho), uz * (g.pivot_rho + g.nose_rho), local)
    rot3.apply(R_TH, local, centre)
    vec3.add(centre, head.p, centre)
    if s.lever_phase[k] != FIRED:
        s.lever_angle[k] = pressed_angle(&u.cone, u.entry_x, u.entry_radius, head.p, R_TH, uy, uz, g, s.lever_angle[k], &touch, &bottomed)
        s.lever_phase[k] = PRESSED if s.lever_angle[k] > 0.0 else FREE
        if centre[0] >= u.release_x:
            s.lever_phase[k] = FIRED
            s.lever_angle[k] = 0.0
            s.lost[L_LATCH] += s.lever_last[k]
        elif s.lever_angle[k] > 0.0:
            f = latch_force(head.p, R_TH, uy, uz, g, s.lever_angle[k], &touch)
            vec3.scale(f, touch.n, force)
            apply_force(head, p_TA, touch.r, force, F_T)
            r[2] = f
        s.lever_last[k] = s.lever_angle[k] * (g.torque_preload + 0.5 * g.torque_rate * s.lever_angle[k])
        rec[P_LEDGER + E_LATCH] += s.lever_last[k]
    r[0] = s.lever_angle[k]
    r[1] = s.lever_phase[k]
    vec3.copy(centre, r + 3)


cdef inline void latch_contacts(Unit *u, Bodies *head, const double *p_TA, double *F_T, double h, double *stored, double *rec) noexcept nogil:
    """Latches and sensor levers of the head; the beam's end slope is 1.5 sin q, so the head frame is turned by another 1.5 sin q - q."""
    cdef State *s = &u.state
    cdef double s3, c3, s4, c4, friction, speed
    cdef double A[9]
    cdef double R_TH[9]
    cdef double force[3]
    cdef double axis[3]
    cdef int k
    # far from the last cone nothing can touch
    if head.p[0] < u.last_cone_x - 3.0 * u.head_radius:
        for k in range(LATCHES):
            rec[P_LATCH + 8 * k + 1] = s.latch_phase[k]
        return
    sincos(1.5 * u.motion.sin_bend[0] - s.q[2], &s3, &c3)
    sincos(1.5 * u.motion.sin_bend[1] - s.q[3], &s4, &c4)
    # A = (Rz(dq4) Ry(dq3))^T maps the corrected head frame to the probe frame
    A[0] = c4 * c3; A[1] = -s4 * c3; A[2] = s3
    A[3] = s4; A[4] = c4; A[5] = 0.0
    A[6] = -c4 * s3; A[7] = s4 * s3; A[8] = c3
    rot3.multiply(head.R, A, R_TH)
    for k in range(LATCHES):
        one_latch(u, k, head, R_TH, p_TA, F_T, h, stored, rec)
    for k in range(LEVERS):
        one_lever(u, k, head, R_TH, p_TA, F_T, rec)
    # captured: all latches in their grooves and all levers released; their friction along the socket
    if s.lever_phase[0] == FIRED and s.lever_phase[1] == FIRED:
        if s.latch_phase[0] == FIRED and s.latch_phase[1] == FIRED and s.latch_phase[2] == FIRED and s.latch_phase[3] == FIRED:
            u.signals |= 2
        vec3.fill(1.0, 0.0, 0.0, axis)
        speed = head.v[0]
        friction = u.lever_friction / sqrt(speed * speed + 1e-6)
        if friction > u.lever_viscous:
            friction = u.lever_viscous
        vec3.scale(friction * speed, axis, force)
        apply_force(head, p_TA, head.p, force, F_T)
        s.lost[L_FRICTION] += h * friction * speed * speed


cdef inline void plane_contacts(Unit *u, Bodies *base, const double *p_TA, double *F_T, double h, double *stored, double *rec) noexcept nogil:
    """Docking planes: four spring pushers on the periphery, and the planes themselves. Together only when all four gaps are closed."""
    cdef double local[3]
    cdef double P[3]
    cdef double force[3]
    cdef double gap, f, normal, squeeze
    cdef double widest = -1e9
    cdef Contact c
    cdef int i
    for i in range(PUSHERS):
        vec3.fill(u.plane_x, 0.0, 0.0, local)
        local[1 + (i & 1)] = u.pusher_radius if i < 2 else -u.pusher_radius
        rot3.apply(base.R, local, P)
        vec3.add(P, base.p, P)
        gap = -P[0]
        f = 0.0
        if gap > widest:
            widest = gap
        if gap < u.pusher_length:
            squeeze = u.pusher_length - gap
            f = u.pusher_stiffness * squeeze
            u.signals |= 256
            rec[P_LEDGER + E_PUSHER] += 0.5 * f * squeeze
            vec3.fill(f, 0.0, 0.0, force)
            apply_force(base, p_TA, P, force, F_T)
            if gap < 0.0:
                c.depth = -gap
                vec3.fill(1.0, 0.0, 0.0, c.n)
                vec3.copy(P, c.r)
                contact_reaction(u, &u.plane_law, &c, base, p_TA, F_T, h, stored, &normal)
                f += normal
        rec[P_PUSHER + 2 * i] = gap
        rec[P_PUSHER + 2 * i + 1] = f
    rec[P_RELATIVE + 6] = widest
    if widest <= u.together_gap:
        u.signals |= MECHANISM_SIGNAL_PLANES_TOGETHER


# ------------------------------------------------------------------------------------------------------- forces of joints and chains

cdef inline void joint_forces(Unit *u, double *Q, double *rec) noexcept nogil:
    """Bending, torsion, lateral springs and brakes: moments of the present reactions of their hysteresis states."""
    cdef State *s = &u.state
    cdef Motion *k = &u.motion
    cdef double stiffening = u.length0 / s.q[5]
    cdef double moment, force, angle, torque, stop, excess
    cdef int i, j
    # bending: k ~ 1/L; torsion acts from the crosspiece to the head and is not scaled
    for i in range(2):
        moment = stiffening * s.bend[i].Q + u.bend_damping * s.v[2 + i]
        Q[2 + i] -= moment
        rec[P_JOINT + i] = moment
        # a stiffening beam pushes the probe out: work of the changing length on the stored energy
        Q[5] += u.length0 / (s.q[5] * s.q[5]) * s.stored[1 + i]
    moment = s.twist.Q + u.twist_damping * s.v[4]
    Q[4] -= moment
    rec[P_JOINT + 2] = moment
    rec[P_JOINT + 3] = stiffening
    for i in range(2):
        # spring chain: force along the leg against its stroke
        force = s.lateral[i].Q + u.lateral_damping * k.spring[i].rate
        for j in range(2):
            Q[j] -= force * chain_gain(&k.spring[i], j, False)
        rec[P_SPRING + 4 * i] = k.spring[i].value - u.body.spring[i].length0
        rec[P_SPRING + 4 * i + 1] = k.spring[i].rate
        rec[P_SPRING + 4 * i + 2] = force
        # brake chain: magnetic torque against the crank's rate, stops at both ends
        torque = table_torque(&u.lateral_brake, fabs(k.brake[i].rate))
        if k.brake[i].rate < 0.0:
            torque = -torque
        torque *= u.brake_factor
        angle = atan2(k.brake[i].sine, k.brake[i].cosine) - u.crank_zero[i]
        stop = 0.0
        if fabs(angle) > u.crank_stop:
            excess = angle - u.crank_stop if angle > 0.0 else angle + u.crank_stop
            stop = u.crank_stiffness * excess
            rec[P_LEDGER + E_LATERAL] += 0.5 * stop * excess
            stop += u.crank_damping * k.brake[i].rate
        for j in range(2):
            Q[j] -= (torque + stop) * chain_gain(&k.brake[i], j, True)
        rec[P_CRANK + 4 * i] = angle
        rec[P_CRANK + 4 * i + 1] = k.brake[i].rate
        rec[P_CRANK + 4 * i + 2] = torque
        rec[P_CRANK + 4 * i + 3] = stop
        if k.brake[i].out_of_reach > 0.0:
            u.status |= 1


cdef inline void stroke_forces(Unit *u, double *Q, double *rec) noexcept nogil:
    """Clutch chain and end stops of the ball screw, springs and stops of the movable limiter."""
    cdef State *s = &u.state
    cdef double moment = s.axial.Q + u.train_damping * s.train_rate
    cdef double stop = 0.0, excess = 0.0, spring, rate
    # m_FR on the nut axis; it extends the probe when the clutch angle is positive
    Q[5] += u.nut_ratio * u.clutch_ratio * moment
    if s.q[5] < u.length_min:
        excess = s.q[5] - u.length_min
    elif s.q[5] > u.length_max:
        excess = s.q[5] - u.length_max
    if excess != 0.0:
        stop = -u.stop_stiffness * excess - u.stop_damping * s.v[5]
        rec[P_LEDGER + E_AXIAL] += 0.5 * u.stop_stiffness * excess * excess
    Q[5] += stop
    rec[P_STROKE + 5] = u.clutch_ratio * moment
    rec[P_STROKE + 11] = stop
    if not u.movable:
        return
    # springs push the limiter forward; compression counts from the front position
    excess = u.limiter_front - s.q[6]
    spring = u.limiter_force_front + (u.limiter_force_end - u.limiter_force_front) * excess / u.limiter_travel
    rec[P_LEDGER + E_LIMITER] += excess * 0.5 * (u.limiter_force_front + spring)
    rec[P_MOVABLE + 2] = spring
    stop = 0.0
    rate = s.v[6]
    u.limiter_loss = 0.0
    if excess < 0.0 or excess > u.limiter_travel:
        if excess > 0.0:
            excess -= u.limiter_travel
        stop = u.limiter_stiffness * excess - u.limiter_damping * rate
        u.limiter_loss = u.limiter_damping * rate * rate
        rec[P_LEDGER + E_LIMITER] += 0.5 * u.limiter_stiffness * excess * excess
    Q[6] += spring + stop
    # a fully retracted head holds the limiter back
    excess = s.q[6] + u.limiter_gap - (u.body.exit_x + s.q[5])
    if excess > 0.0:
        rate = s.v[6] - s.v[5]
        spring = u.limiter_stiffness * excess + u.limiter_damping * rate
        rec[P_LEDGER + E_LIMITER] += 0.5 * u.limiter_stiffness * excess * excess
        # like every contact it does not pull
        if spring < 0.0:
            spring = 0.0
        Q[6] -= spring
        Q[5] += spring
        stop -= spring
        u.limiter_loss += (spring - u.limiter_stiffness * excess) * rate
    rec[P_MOVABLE] = s.q[6]
    rec[P_MOVABLE + 1] = s.v[6]
    rec[P_MOVABLE + 3] = stop


cdef inline double hysteresis_commit(const HysteresisTable *t, HysteresisState *s, double q, double scale, double *stored, double *lost) noexcept nogil:
    """Accept q; the work put in less the rise of the stored energy is lost. Returns the stored energy, both times `scale`."""
    cdef double before = s.Q, last = stored[0], dq = q - s.q
    hysteresis_step(t, s, q)
    stored[0] = stored_energy(t, s.q - s.slip, s.Q)
    lost[0] += scale * (0.5 * (before + s.Q) * dq - (stored[0] - last))
    return scale * stored[0]


cdef inline void commit(Unit *u, double h, double *rec) noexcept nogil:
    """Accept the new coordinates in all hysteresis elements."""
    cdef State *s = &u.state
    cdef double before, dq, angle, slipped, last
    cdef double stiffening = u.length0 / s.q[5]
    cdef int i
    for i in range(2):
        rec[P_LEDGER + E_BEND] += hysteresis_commit(&u.bend, &s.bend[i], s.q[2 + i], stiffening, &s.stored[1 + i], &s.lost[L_BEND])
        s.lost[L_DAMPING] += h * u.bend_damping * s.v[2 + i] * s.v[2 + i]
    rec[P_LEDGER + E_TWIST] += hysteresis_commit(&u.twist, &s.twist, s.q[4], 1.0, &s.stored[3], &s.lost[L_TWIST])
    s.lost[L_DAMPING] += h * u.twist_damping * s.v[4] * s.v[4]
    # axial train: clutch angle from nut and drive
    angle = u.clutch_ratio * (-u.nut_ratio * (s.q[5] - u.length0) - drive_angle(&u.drive, &s.drive) / u.drive_ratio)
    before = s.axial.Q
    last = s.stored[0]
    slipped = s.axial.slip + s.axial.slip1
    dq = angle - s.axial.q
    if u.two_brakes:
        series_clutch_step(&u.brakes, &s.axial, angle)
        s.stored[0] = stored_energy(&u.brakes.train, angle - s.axial.slip - s.axial.slip1, s.axial.Q)
    else:
        hysteresis_step(&u.axial, &s.axial, angle)
        s.stored[0] = stored_energy(&u.axial, angle - s.axial.slip, s.axial.Q)
    s.lost[L_AXIAL] += 0.5 * (before + s.axial.Q) * dq - (s.stored[0] - last)
    rec[P_LEDGER + E_AXIAL] += s.stored[0]
    # structural damping works on the deformation of the train, not on the slip
    s.train_rate = (dq - (s.axial.slip + s.axial.slip1 - slipped)) / h
    s.lost[L_DAMPING] += h * u.train_damping * s.train_rate * s.train_rate


cdef inline void axial_friction(Unit *u, const double *M, double f_H, double h, double *acc, double *rec) noexcept nogil:
    """Friction of the ball screw and the axial magnetic brakes, as one force that can stop the stroke within a step but not turn it round."""
    cdef State *s = &u.state
    cdef double column[7]
    cdef double screw = u.screw_friction * fabs(f_H)
    cdef double brake = 0.0, limit, stopping, force, speed
    cdef int i
    if not u.two_brakes:
        brake = u.nut_ratio * table_torque(&u.axial_brake, u.nut_ratio * fabs(s.v[5]))
    limit = screw + brake
    rec[P_STROKE + 8] = brake
    rec[P_STROKE + 9] = screw
    if limit <= 0.0:
        return
    for i in range(7):
        column[i] = 0.0
    column[5] = 1.0
    solve(u.body.dof, M, column)
    # force that would bring the stroke to rest at the end of the step
    stopping = -(s.v[5] + h * acc[5]) / (h * column[5])
    force = stopping
    if force > limit:
        force = limit
    elif force < -limit:
        force = -limit
    for i in range(u.body.dof):
        acc[i] += force * column[i]
    # loss: against the mean speed of the step
    speed = s.v[5] + 0.5 * h * acc[5]
    s.lost[L_SCREW] -= h * force * speed * screw / limit
    s.lost[L_BRAKE] -= h * force * speed * brake / limit
    rec[P_STROKE + 10] = force


# ---------------------------------------------------------------------------------------------------------------------- sub-step

cdef inline void to_A(const double *R_TA, const Bodies *b, double *W) noexcept nogil:
    rot3.apply_transposed(R_TA, b.f, W)
    rot3.apply_transposed(R_TA, b.m, W + 3)


cdef inline void add_generalised(const Motion *k, const double *W, int axes, bint on_probe, double *Q) noexcept nogil:
    """Generalised forces of a wrench (about A, A axes) on a body carried by joints 0 .. axes-1."""
    cdef double moment[3]
    cdef double arm[3]
    cdef int i
    for i in range(2):
        Q[i] += vec3.dot(k.axis + 3 * i, W + 3)
    if on_probe:
        # joints of the probe lie at the exit bearing
        vec3.cross(k.p_exit, W, arm)
        vec3.sub(W + 3, arm, moment)
        for i in range(2, axes):
            Q[i] += vec3.dot(k.axis + 3 * i, moment)
        Q[5] += vec3.dot(k.x1, W)


cdef void substep(Unit *u, const double *p_TA, const double *q_TA, const double *V, const double *w0, double h, uint32_t commands, double *rec) noexcept nogil:
    cdef State *s = &u.state
    cdef Motion *k = &u.motion
    cdef double R_TA[9]
    cdef Bodies head, body, limiter, base
    cdef double W_head[6]
    cdef double W_body[6]
    cdef double W_limiter[6]
    cdef double W_base[6]
    cdef double F_T[6]
    cdef double Q[7]
    cdef double acc[7]
    cdef double zero[3]
    cdef double local[3]
    cdef double v_local[3]
    cdef double t[3]
    cdef double stored_contact = 0.0
    cdef double sign, f_H
    cdef int i, n = u.body.dof
    memset(rec, 0, sizeof(double) * P_END)
    vec3.fill(0.0, 0.0, 0.0, zero)
    for i in range(6):
        F_T[i] = 0.0
    u.brake_factor = u.extra_brakes if commands & EXTRA_BRAKES else 1.0

    # ---- where everything is
    place(&u.body, s.q, s.v, w0, k)
    quat.to_matrix(q_TA, R_TA)
    body_in_T(p_TA, R_TA, V, k.p_head, k.v_head, k.w1_rel, &head)
    columns(R_TA, k.x1, k.y1, k.z1, head.R)
    body_in_T(p_TA, R_TA, V, zero, zero, k.w2_rel, &body)
    columns(R_TA, k.x2, k.y2, k.z2, body.R)
    body_in_T(p_TA, R_TA, V, zero, zero, zero, &base)
    memcpy(base.R, R_TA, sizeof(R_TA))
    # the limiter: at rest on the body, or sliding along it
    vec3.scale(s.q[6], k.x2, local)
    vec3.cross(k.w2_rel, local, v_local)
    vec3.add_scaled(v_local, s.v[6], k.x2, v_local)
    body_in_T(p_TA, R_TA, V, local, v_local, k.w2_rel, &limiter)
    memcpy(limiter.R, body.R, sizeof(body.R))

    # ---- contacts
    head_contacts(u, &head, p_TA, F_T, h, &stored_contact, rec)
    latch_contacts(u, &head, p_TA, F_T, h, &stored_contact, rec)
    limiter_contacts(u, &limiter, p_TA, F_T, h, &stored_contact, rec)
    roller_contacts(u, &body, p_TA, F_T, h, &stored_contact, rec)
    plane_contacts(u, &base, p_TA, F_T, h, &stored_contact, rec)
    to_A(R_TA, &head, W_head)
    to_A(R_TA, &body, W_body)
    to_A(R_TA, &limiter, W_limiter)
    to_A(R_TA, &base, W_base)

    # ---- generalised forces
    assemble(&u.body, s.q, s.v, w0, k)
    for i in range(7):
        Q[i] = 0.0
    add_generalised(k, W_head, 5, True, Q)
    add_generalised(k, W_body, 2, False, Q)
    add_generalised(k, W_limiter, 2, False, Q)
    if u.movable:
        Q[6] += vec3.dot(k.x2, W_limiter)
    f_H = vec3.dot(k.x1, W_head)
    joint_forces(u, Q, rec)
    stroke_forces(u, Q, rec)
    for i in range(7):
        rec[P_MATRIX + i] = k.M[8 * i]
        rec[P_MATRIX + 7 + i] = k.bias[i]
        rec[P_MATRIX + 14 + i] = Q[i]

    # ---- accelerations
    for i in range(7):
        acc[i] = Q[i] - k.bias[i] if i < n else 0.0
    kinetic(u, rec)
    factor(n, k.M)
    solve(n, k.M, acc)
    axial_friction(u, k.M, f_H, h, acc, rec)

    # ---- wrench on the base: external less rate of momentum, and what acts on the base itself
    vec3.add(W_head, W_body, t)
    vec3.add(t, W_limiter, u.record + P_BASE)
    vec3.add(W_head + 3, W_body + 3, t)
    vec3.add(t, W_limiter + 3, u.record + P_BASE + 3)
    base_wrench(&u.body, s.q, k, acc, w0, u.record + P_BASE)
    for i in range(6):
        u.record[P_BASE + i] += W_base[i]
        u.force_A[i] += u.record[P_BASE + i]
        u.force_T[i] += F_T[i]

    # ---- work of the target, whose surface moves at -V relative to the base
    vec3.cross(p_TA, F_T, t)
    vec3.sub(F_T + 3, t, t)
    s.supplied += h * (vec3.dot(F_T, V) + vec3.dot(t, V + 3))
    for i in range(2):
        s.lost[L_LATERAL_BRAKE] += h * rec[P_CRANK + 4 * i + 2] * k.brake[i].rate
        if rec[P_CRANK + 4 * i + 3] != 0.0:
            s.lost[L_LATERAL_BRAKE] += h * u.crank_damping * k.brake[i].rate * k.brake[i].rate
        s.lost[L_LATERAL_BRAKE] += h * u.lateral_damping * k.spring[i].rate * k.spring[i].rate
        rec[P_LEDGER + E_LATERAL] += hysteresis_commit(
            &u.lateral, &s.lateral[i], k.spring[i].value - u.body.spring[i].length0, 1.0, &s.stored[4 + i], &s.lost[L_LATERAL])
    if u.movable:
        s.lost[L_LIMITER] += h * u.limiter_loss

    # ---- drive: retract, extend or held
    sign = 0.0
    if commands & DRIVE_ON:
        sign = -1.0 if commands & DRIVE_EXTEND else 1.0
    if sign > 0.0 and s.q[5] <= u.length_min:
        sign = 0.0
    elif sign < 0.0 and s.q[5] >= u.length0:
        sign = 0.0
    rec[P_DRIVE + 7] = rec[P_STROKE + 5] / u.drive_ratio
    drive_step(&u.drive, &s.drive, sign, rec[P_DRIVE + 7], h)
    s.supplied += h * drive_rate(&u.drive, &s.drive) * -rec[P_DRIVE + 7]
    rec[P_DRIVE + 6] = sign
    if sign != 0.0:
        u.signals |= 8192

    # ---- new rates, new coordinates, new reactions
    for i in range(n):
        s.v[i] += h * acc[i]
        s.q[i] += h * s.v[i]
        rec[P_ACC + i] = acc[i]
    commit(u, h, rec)
    s.time += h
    rec[P_LEDGER + E_CONTACT] = stored_contact
    memcpy(rec + P_WRENCH, W_head, sizeof(W_head))
    memcpy(rec + P_BODY, W_body, sizeof(W_body))
    memcpy(rec + P_LIMITER, W_limiter, sizeof(W_limiter))
    memcpy(rec + P_TARGET, F_T, sizeof(F_T))
    vec3.copy(head.p, rec + P_HEAD)
    vec3.copy(head.v, rec + P_HEAD_V)
    vec3.copy(head.w, rec + P_HEAD_W)
    for i in range(3):
        rec[P_AXIS + i] = head.R[3 * i]


cdef inline void kinetic(Unit *u, double *rec) noexcept nogil:
    # v^T M v / 2 with the lower triangle, motion relative to the base
    cdef double e = 0.0
    cdef const double *v = u.state.v
    cdef int i, j
    for i in range(u.body.dof):
        for j in range(i):
            e += v[i] * u.motion.M[7 * i + j] * v[j]
        e += 0.5 * v[i] * v[i] * u.motion.M[8 * i]
    rec[P_LEDGER + E_KINETIC] = e


cdef inline void implicit_step(double h, double m, double k, double c, double net, double *v, double *x) noexcept nogil:
    """m v' = net - c v - k (x - x_now) by implicit Euler: D0 = 1 + (c + h k) h/m, v+ = (v + net h/m)/D0, x+ = x + h v+."""
    v[0] = (v[0] + net * h / m) / (1.0 + (c + h * k) * h / m)
    x[0] += h * v[0]


cdef inline void cover_step(Unit *u, double force, double h) noexcept nogil:
    """Hatch cover by implicit Euler with the linear segment frozen (6.1.6); `force` the mechanism exerts on its base along X_A."""
    cdef State *s = &u.state
    cdef double k = u.cover.slope_max, up, lo, Q
    # stiffness of the segment in the direction of motion
    up = curve_value(&u.cover.up, s.cover_x + 1e-7) - s.cover.Q
    lo = s.cover.Q - curve_value(&u.cover.lo, s.cover_x - 1e-7)
    if s.cover_v > 0.0 and up < 1e-7 * k:
        k = up / 1e-7
    elif s.cover_v < 0.0 and lo < 1e-7 * k:
        k = lo / 1e-7
    if k < 0.0:
        k = 0.0
    implicit_step(h, u.cover_mass, k, u.cover_damping, force - s.cover.Q, &s.cover_v, &s.cover_x)
    Q = hysteresis_step(&u.cover, &s.cover, s.cover_x)
    s.cover_force = Q + u.cover_damping * s.cover_v


cdef inline bint elastic_beyond(const Unit *u) noexcept nogil:
    """Has an elastic element been deformed further than its table goes? The axial train slips at the ends of its table instead."""
    cdef const State *s = &u.state
    cdef int i
    for i in range(2):
        if beyond_table(&u.bend, s.bend[i].q) or beyond_table(&u.lateral, s.lateral[i].q):
            return True
    return beyond_table(&u.twist, s.twist.q) or u.cover_on and beyond_table(&u.cover, s.cover.q)


# -------------------------------------------------------------------------------------------------------------------------- step

cdef void advance(void *self, const MechanismInput *inp, MechanismOutput *out, double *aux) noexcept nogil:
    cdef Unit *u = <Unit *>self
    cdef State *s = &u.state
    cdef double *rec = u.record
    cdef double h = inp.dt / u.substeps
    cdef double p[3]
    cdef double q[4]
    cdef double V[6]
    cdef double turn[4]
    cdef double step[3]
    cdef double shift[3]
    cdef double total
    cdef int i, j
    vec3.copy(inp.X_TA, p)
    quat.copy(inp.X_TA + 3, q)
    memcpy(V, inp.V_TA, sizeof(V))
    # the hatch cover moves the base along X_A
    if u.cover_on:
        vec3.fill(s.cover_x, 0.0, 0.0, shift)
        quat.rotate(q, shift, shift)
        vec3.add(p, shift, p)
        vec3.cross(V + 3, shift, step)
        vec3.add(V, step, V)
        vec3.fill(s.cover_v, 0.0, 0.0, shift)
        quat.rotate(q, shift, shift)
        vec3.add(V, shift, V)
    for i in range(6):
        u.force_T[i] = 0.0
        u.force_A[i] = 0.0
    u.deepest = 0.0
    u.signals = 0
    u.status = 0
    if inp.commands & RELEASE:
        for i in range(LATCHES):
            s.latch_phase[i] = FREE
        for i in range(LEVERS):
            s.lever_phase[i] = FREE
        u.signals |= 131072
    # rotation of one sub-step, in T axes
    vec3.scale(h, V + 3, step)
    quat.exponential(step, turn)
    for j in range(u.substeps):
        substep(u, p, q, V, inp.w_A, h, inp.commands, rec)
        if u.cover_on:
            cover_step(u, rec[P_BASE], h)
        vec3.add_scaled(p, h, V, p)
        quat.multiply(turn, q, q)
    # mean over the sub-steps: the impulse of the tick is exact
    for i in range(6):
        out.F_T[i] = u.force_T[i] / u.substeps
        out.F_A[i] = u.force_A[i] / u.substeps
    if u.cover_on:
        out.F_A[0] = s.cover_force
    # sensors
    if s.q[5] >= u.length0 - 1e-3:
        u.signals |= 8
    # validity of the laws: penetration of the contacts, tables of the elastic elements
    if u.deepest > u.depth_limit or elastic_beyond(u):
        u.status |= 1
    if u.status & 1:
        s.over_limit += 1
    out.signals = u.signals
    out.status = u.status
    out.analog[0] = u.length0 - s.q[5]
    out.analog[1] = rec[P_SPRING]
    out.analog[2] = rec[P_SPRING + 4]
    out.analog[3] = rec[P_RELATIVE + 6]
    out.analog[4] = s.axial.slip + s.axial.slip1
    out.analog[5] = u.deepest
    out.analog[6] = s.q[6] if u.movable else 0.0
    out.analog[7] = drive_rate(&u.drive, &s.drive)
    # the rest of the record
    for i in range(7):
        rec[P_Q + i] = s.q[i]
        rec[P_V + i] = s.v[i]
    rec[P_STROKE] = s.q[5] - u.length0
    rec[P_STROKE + 1] = s.v[5]
    rec[P_STROKE + 2] = -u.nut_ratio * (s.q[5] - u.length0)
    rec[P_STROKE + 3] = -u.nut_ratio * s.v[5]
    rec[P_STROKE + 4] = s.axial.q
    rec[P_STROKE + 6] = s.axial.slip
    rec[P_STROKE + 7] = s.axial.slip1
    rec[P_DRIVE] = drive_angle(&u.drive, &s.drive)
    rec[P_DRIVE + 1] = drive_rate(&u.drive, &s.drive)
    rec[P_DRIVE + 2] = s.drive.angle[0]
    rec[P_DRIVE + 3] = s.drive.angle[1]
    rec[P_DRIVE + 4] = s.drive.rate[0]
    rec[P_DRIVE + 5] = s.drive.rate[1]
    rec[P_COVER] = s.cover_x
    rec[P_COVER + 1] = s.cover_v
    rec[P_COVER + 2] = s.cover_force
    vec3.copy(p, rec + P_RELATIVE)
    vec3.copy(V + 3, rec + P_RELATIVE + 3)
    rec[P_COUNT] = u.deepest
    rec[P_COUNT + 1] = s.over_limit
    rec[P_COUNT + 2] = inp.commands
    rec[P_COUNT + 3] = s.time
    # ledger
    total = 0.0
    for i in range(E_STORED):
        total += rec[P_LEDGER + i]
    rec[P_LEDGER + E_STORED] = total
    total = 0.0
    for i in range(L_CONTACT, E_LOST):
        rec[P_LEDGER + i] = s.lost[i]
        total += s.lost[i]
    rec[P_LEDGER + E_LOST] = total
    rec[P_LEDGER + E_SUPPLIED] = s.supplied
    memcpy(aux, rec, sizeof(double) * P_END)


# -------------------------------------------------------------------------------------------------------------------- declaration

def _p(key, kind, unit, meaning, default, low=None, high=None, shape=None, choices=None):
    return Parameter(key, kind, unit, meaning, default, low, high, shape, choices)


def _law(part, stiffness, damping, friction):
    return (
        _p(f"{part}_stiffness_n_per_m", "float", "N/m", f"contact stiffness of the {part}", stiffness, 1.0, 1e9),
        _p(f"{part}_damping_n_s_per_m", "float", "N.s/m", f"normal contact damping of the {part}", damping, 0.0, 1e6),
        _p(f"{part}_friction", "float", "-", f"Coulomb friction of the {part}", friction, 0.0, 2.0),
    )


PARAMETERS = (
    # passive unit
    _p("cone_profile_m", "rows", "m", "meridian (x, rho) from the outer rim to the middle of the bottom; the second vertex is the mouth, the last "
       "four are socket entry, socket bottom edge, bottom; X into the receptacle from the docking plane",
       [[0.0, 0.45], [0.0, 0.40], [0.30, 0.16], [0.42, 0.060], [0.50, 0.060], [0.50, 0.0]], -5.0, 5.0),
    _p("groove_stop_x_m", "float", "m", "x of the stops of the four grooves in the target port frame", 0.425, -5.0, 5.0),
    _p("groove_plane_m", "float", "m", "distance of the groove planes from the axis", 0.064, 1e-3, 2.0),
    _p("groove_narrow_m", "float", "m", "half-width at the stop, less half a latch width", 0.004, 1e-4, 1.0),
    _p("groove_wide_m", "float", "m", "half-width of the open part, less half a latch width", 0.012, 1e-4, 1.0),
    _p("groove_ramp_m", "floats", "m", "distances from the stop to start and end of the inclined walls", [0.003, 0.009], 0.0, 1.0, 2),
    _p("groove_length_m", "float", "m", "axial length", 0.040, 1e-3, 1.0),
    # geometry of the active unit
    _p("head_radius_m", "float", "m", "radius of the head sphere", 0.055, 1e-3, 1.0),
    _p("exit_x_m", "float", "m", "hinge of the swinging body to the exit bearing of the probe", 0.35, 0.0, 3.0),
    _p("probe_length_m", "float", "m", "free length of the extended probe: exit bearing to head centre", 0.60, 0.05, 5.0),
    _p("probe_length_range_m", "floats", "m", "end stops of the free length", [0.385, 0.64], 0.01, 5.0, 2),
    _p("lining_front_m", "floats", "m", "front end of the eight limiter linings (x, rho) in the frame of limiter or body", [0.60, 0.15], -1.0, 5.0, 2),
    _p("lining_rear_m", "floats", "m", "rear end", [0.35, 0.345], -1.0, 5.0, 2),
    _p("levers", "bool", "-", "alignment levers fitted", True),
    _p("roller_radius_m", "float", "m", "rollers of the alignment levers", 0.02, 1e-3, 0.5),
    _p("lever_cam", "rows", "rad, m, m", "nut angle, roller centre x and rho in the body, linear between",
       [[0.0, 0.45, 0.16], [41.0, 0.45, 0.16], [47.0, 0.45, 0.288], [50.0, 0.45, 0.283], [60.0, 0.45, 0.259], [65.0, 0.45, 0.249], [80.0, 0.45, 0.249]], -1e4, 1e4),
    _p("plane_x_m", "float", "m", "docking plane of the active unit in its base frame", 0.30, -5.0, 5.0),
    _p("pusher_radius_m", "float", "m", "radius of the four pushers", 0.60, 0.01, 5.0),
    _p("pusher_length_m", "float", "m", "free length of a pusher above its plane", 0.020, 0.0, 1.0),
    _p("pusher_stiffness_n_per_m", "float", "N/m", "stiffness of one pusher", 1.0e4, 0.0, 1e8),
    _p("together_gap_m", "float", "m", "the planes are together when the gap at every pusher is at most this", 0.010, 0.0, 1.0),
    # latches
    _p("latch_pivot_m", "floats", "m", "pivot (x, rho) in the head frame", [-0.050, 0.040], -1.0, 1.0, 2),
    _p("latch_nose_m", "floats", "m", "point 1 relative to the pivot", [0.056, 0.004], -1.0, 1.0, 2),
    _p("latch_tip_m", "floats", "m", "point 2 relative to the pivot", [0.038, 0.028], -1.0, 1.0, 2),
    _p("latch_lock_m", "floats", "m", "locking segment 3-4: x, inner and outer rho in the head frame", [-0.012, 0.045, 0.068], -1.0, 1.0, 3),
    _p("latch_angle_max_rad", "float", "rad", "end of the latch travel", 0.6, 1e-3, 1.5),
    _p("latch_torque", "floats", "N.m, N.m/rad", "preload and rate of the latch spring", [0.4, 2.0], 0.0, 1e4, 2),
    _p("sensor_pivot_m", "floats", "m", "capture sensor lever: pivot (x, rho) in the head frame", [-0.040, 0.030], -1.0, 1.0, 2),
    _p("sensor_centre_m", "floats", "m", "circle centre relative to the pivot", [0.020, 0.026], -1.0, 1.0, 2),
    _p("sensor_radius_m", "float", "m", "circle radius", 0.006, 1e-4, 0.5),
    _p("sensor_angle_max_rad", "float", "rad", "end of the lever travel", 0.6, 1e-3, 1.5),
    _p("sensor_torque", "floats", "N.m, N.m/rad", "preload and rate of the lever spring", [0.1, 0.5], 0.0, 1e4, 2),
    _p("sensor_release_x_m", "float", "m", "depth in the target port frame at which a lever is released", 0.420, -5.0, 5.0),
    _p("sensor_friction_n", "float", "N", "axial friction of head and levers in the socket after capture", 40.0, 0.0, 1e4),
    # contact
    *_law("head", 2.0e7, 6000.0, 0.10),
    *_law("limiter", 5.0e6, 6000.0, 0.10),
    *_law("roller", 5.0e6, 6000.0, 0.02),
    *_law("latch", 2.0e7, 6000.0, 0.10),
    *_law("plane", 2.0e7, 2.0e4, 0.10),
    _p("slip_speed_m_s", "float", "m/s", "speed of the regularised friction", 1e-3, 1e-6, 1.0),
    _p("damping_ramp_m", "float", "m", "penetration over which the contact damping comes in", 2e-5, 0.0, 0.01),
    _p("contact_mass_kg", "float", "kg", "smallest effective mass at a contact; bounds the friction per slip speed", 4.0, 0.01, 1e5),
    _p("penetration_max_m", "float", "m", "valid penetration: beyond it the model is out of its range", 2e-3, 1e-6, 0.1),
    # inertia
    _p("body_mass_kg", "float", "kg", "swinging body with the axial damper", 45.0, 0.1, 1e4),
    _p("body_centre_x_m", "float", "m", "its centre of mass", 0.12, -3.0, 3.0),
    _p("body_inertia_kg_m2", "floats", "kg.m2", "central inertia about X and across", [0.6, 2.2], 1e-6, 1e5, 2),
    _p("probe_mass_kg", "float", "kg", "probe with head", 12.0, 0.1, 1e4),
    _p("probe_centre_m", "float", "m", "centre of mass behind the head centre", 0.25, -3.0, 3.0),
    _p("probe_inertia_kg_m2", "floats", "kg.m2", "central inertia about X and across", [0.03, 0.6], 1e-6, 1e5, 2),
    _p("axial_inertia_kg_m2", "float", "kg.m2", "rotary inertia of nut, gears, brakes and levers at the nut", 6.1e-5, 0.0, 1.0),
    # elastic probe
    _p("bend_forward", "rows", "rad, N.m", "bending of the extended probe, loading branch", [[0.0, 0.0], [1e-4, 0.8], [0.02, 160.0], [0.2, 1600.0]], 0.0, 1e6),
    _p("bend_return", "rows", "rad, N.m", "return branch", [[0.0, 0.0], [1e-4, 0.8], [0.02, 130.0], [0.17, 1250.0], [0.2, 1600.0]], 0.0, 1e6),
    _p("bend_damping_n_m_s_per_rad", "float", "N.m.s/rad", "structural damping", 4.0, 0.0, 1e5),
    _p("twist_forward", "rows", "rad, N.m", "torsion, loading branch", [[0.0, 0.0], [1e-4, 0.5], [0.02, 100.0], [0.2, 1000.0]], 0.0, 1e6),
    _p("twist_return", "rows", "rad, N.m", "return branch", [[0.0, 0.0], [1e-4, 0.5], [0.02, 80.0], [0.17, 800.0], [0.2, 1000.0]], 0.0, 1e6),
    _p("twist_damping_n_m_s_per_rad", "float", "N.m.s/rad", "structural damping", 0.3, 0.0, 1e5),
    # lateral damper
    _p("spring_base_m", "rows", "m", "base joints of the two spring chains", [[0.05, 0.28, 0.0], [0.05, 0.0, 0.28]], -5.0, 5.0, (2, 3)),
    _p("spring_body_m", "rows", "m", "their joints on the swinging body", [[0.30, 0.12, 0.0], [0.30, 0.0, 0.12]], -5.0, 5.0, (2, 3)),
    _p("spring_link", "floats", "kg, m, kg, m, kg.m2", "cylinder mass and centre from the base joint, rod mass and centre from the body joint, transverse inertia",
       [1.2, 0.08, 0.6, 0.07, 0.012], 0.0, 1e3, 5),
    _p("spring_forward", "rows", "m, N", "reaction over stroke, loading branch: preload, soft spring, stiff spring, stop",
       [[0.0, 0.0], [4e-4, 120.0], [0.030, 360.0], [0.045, 1000.0], [0.050, 4000.0]], 0.0, 1e7),
    _p("spring_return", "rows", "m, N", "return branch", [[0.0, 0.0], [4e-4, 120.0], [0.030, 280.0], [0.045, 800.0], [0.050, 4000.0]], 0.0, 1e7),
    _p("spring_damping_n_s_per_m", "float", "N.s/m", "structural damping", 50.0, 0.0, 1e6),
    _p("brake_base_m", "rows", "m", "crank hinges of the two magnetic brakes",
       [[-0.05, 0.17677669529663687, 0.17677669529663687], [-0.05, -0.17677669529663687, 0.17677669529663687]], -5.0, 5.0, (2, 3)),
    _p("brake_tip_m", "rows", "m", "crank tips at zero swing",
       [[-0.05, 0.24748737341529162, 0.24748737341529162], [-0.05, -0.24748737341529162, 0.24748737341529162]], -5.0, 5.0, (2, 3)),
    _p("brake_axis", "rows", "-", "crank axes", [[0.0, 0.7071067811865475, -0.7071067811865475], [0.0, 0.7071067811865475, 0.7071067811865475]], -1.0, 1.0, (2, 3)),
    _p("brake_body_m", "rows", "m", "rod ends on the swinging body",
       [[0.28, 0.09899494936611666, 0.09899494936611666], [0.28, -0.09899494936611666, 0.09899494936611666]], -5.0, 5.0, (2, 3)),
    _p("brake_link", "floats", "kg.m2, kg, -, kg.m2", "crank and rotor inertia, rod mass, place of its centre from the tip, transverse inertia",
       [0.02, 0.4, 0.5, 0.005], 0.0, 1e3, 4),
    _p("brake_table", "rows", "rad/s, N.m", "torque of a lateral brake over crank speed", [[0.0, 0.0], [1.0, 12.0], [3.0, 24.0]], 0.0, 1e5),
    _p("brake_extra", "float", "-", "factor with the extra controlled brakes on", 2.0, 1.0, 100.0),
    _p("brake_stop_rad", "float", "rad", "crank stops on either side", 0.60, 0.01, 3.0),
    _p("brake_stop_stiffness_n_m_per_rad", "float", "N.m/rad", "stiffness of the crank stops", 4000.0, 0.0, 1e8),
    _p("brake_stop_damping_n_m_s_per_rad", "float", "N.m.s/rad", "damping of the crank stops", 2.0, 0.0, 1e6),
    # axial damper
    _p("axial_damper", "str", "-", "spring: spring mechanism, clutch, magnetic brakes; two_brakes: modified", "spring", choices=("spring", "two_brakes")),
    _p("screw_lead_m", "float", "m", "lead of the ball screw", 0.02, 1e-4, 1.0),
    _p("screw_friction", "float", "-", "friction coefficient of the ball screw", 0.05, 0.0, 0.95),
    _p("clutch_ratio", "float", "-", "clutch input shaft per nut", 0.25, 1e-3, 1e3),
    _p("axial_forward", "rows", "rad, N.m", "clutch angle and moment in compression, loading branch; slips beyond the end",
       [[0.01, 0.0], [0.02, 0.32], [0.248, 7.64], [5.72, 12.73], [6.71, 44.6]], 0.0, 1e6),
    _p("axial_return", "rows", "rad, N.m", "return branch", [[0.01, 0.0], [0.02, 0.32], [0.176, 5.3], [5.62, 8.9], [6.71, 44.6]], 0.0, 1e6),
    _p("axial_pull_forward", "rows", "rad, N.m", "in tension, loading branch", [[0.01, 0.0], [0.02, 0.32], [3.096, 100.0]], 0.0, 1e6),
    _p("axial_pull_return", "rows", "rad, N.m", "in tension, return branch", [[0.01, 0.0], [0.02, 0.32], [1.6, 40.0], [3.096, 100.0]], 0.0, 1e6),
    _p("train_damping_n_m_s_per_rad", "float", "N.m.s/rad", "structural damping of the gear train", 0.05, 0.0, 1e4),
    _p("axial_brake_table", "rows", "rad/s, N.m", "torque of the two axial magnetic brakes at the nut over nut speed",
       [[0.0, 0.0], [20.0, 0.9], [50.0, 1.6]], 0.0, 1e5),
    _p("brake1_moment_n_m", "floats", "N.m", "modified damper: slip moments of brake 1 in compression and back", [16.0, 5.333333333333333], 1e-6, 1e6, 2),
    _p("brake1_stroke_rad", "float", "rad", "modified damper: travel of brake 1", 13.675, 1e-6, 1e4),
    _p("brake2_moment_n_m", "floats", "N.m", "modified damper: slip moments of brake 2 in compression and in tension", [64.0, 100.0], 1e-6, 1e6, 2),
    _p("travel_stop_stiffness_n_per_m", "float", "N/m", "end stops of the stroke", 2.0e6, 0.0, 1e9),
    _p("travel_stop_damping_n_s_per_m", "float", "N.s/m", "end stops of the stroke", 2000.0, 0.0, 1e6),
    # drive
    _p("drive_ratio", "float", "-", "drive output shaft per nut", 0.5, 1e-3, 1e3),
    _p("wheel_radii_m", "floats", "m", "differential: wheels a and b, carrier, satellite", [0.02, 0.02, 0.02, 0.01], 1e-4, 10.0, 4),
    _p("wheel_inertia_kg_m2", "floats", "kg.m2", "a, b, carrier with the satellites' mass, one satellite; rotors and gears reduced", [0.012, 0.012, 1e-4, 1e-6],
       0.0, 1e3, 4),
    _p("satellites", "int", "-", "number of satellites", 3, 1, 12),
    _p("reducer_radii_m", "floats", "m", "planetary reducer: main wheel, fixed wheel, carrier, satellite", [0.010, 0.040, 0.025, 0.015], 1e-4, 10.0, 4),
    _p("reducer_inertia_kg_m2", "floats", "kg.m2", "main wheel, carrier, one satellite", [1e-5, 1e-5, 1e-7], 0.0, 1e3, 3),
    _p("motor_ratio", "floats", "-", "motor per wheel speed, a and b", [100.0, 100.0], 1e-3, 1e5, 2),
    _p("motor_stall_n_m", "float", "N.m", "motor torque at rest and nominal voltage", 0.05, 0.0, 1e4),
    _p("motor_back_emf_n_m_s_per_rad", "float", "N.m.s/rad", "fall of motor torque with speed, structural damping included", 1.5e-4, 0.0, 1e3),
    _p("motor_friction_n_m", "float", "N.m", "friction at the motor", 0.002, 0.0, 1e3),
    _p("drive_efficiency", "float", "-", "efficiency of the reducer", 0.8, 0.01, 1.0),
    # movable limiter
    _p("limiter", "str", "-", "fixed on the swinging body, or movable along it", "fixed", choices=("fixed", "movable")),
    _p("limiter_mass_kg", "float", "kg", "movable limiter", 4.0, 0.1, 1e3),
    _p("limiter_inertia_kg_m2", "floats", "kg.m2", "central inertia about X and across", [0.2, 0.12], 1e-6, 1e4, 2),
    _p("limiter_centre_m", "float", "m", "its centre of mass in the lining frame", 0.40, -5.0, 5.0),
    _p("limiter_front_m", "float", "m", "position of the lining frame on the body when fully forward", 0.08, -5.0, 5.0),
    _p("limiter_travel_m", "float", "m", "spring travel", 0.16, 1e-3, 5.0),
    _p("limiter_force_n", "floats", "N", "spring force forward and fully back", [400.0, 700.0], 0.0, 1e6, 2),
    _p("limiter_stop_stiffness_n_per_m", "float", "N/m", "stops of the travel", 1.0e6, 0.0, 1e9),
    _p("limiter_stop_damping_n_s_per_m", "float", "N.s/m", "stops of the travel", 800.0, 0.0, 1e6),
    _p("limiter_head_gap_m", "float", "m", "lining frame to the place where the head holds the limiter back", 0.72, -5.0, 5.0),
    # hatch cover, correlation with ground tests only
    _p("cover", "bool", "-", "hatch-cover compliance of stand tests; never in the motion model", False),
    _p("cover_mass_kg", "float", "kg", "mass of the mechanism on the cover", 80.0, 0.1, 1e5),
    _p("cover_damping_n_s_per_m", "float", "N.s/m", "structural damping", 3000.0, 0.0, 1e7),
    _p("cover_forward", "rows", "m, N", "force over deformation, loading branch", [[0.0, 0.0], [1e-5, 40.0], [1e-3, 4000.0], [5e-3, 20000.0]], 0.0, 1e8),
    _p("cover_return", "rows", "m, N", "return branch", [[0.0, 0.0], [1e-5, 40.0], [1e-3, 3500.0], [4.4e-3, 16600.0], [5e-3, 20000.0]], 0.0, 1e8),
    # integration
    _p("substeps", "int", "-", "sub-steps of a tick", 2, 1, 64),
)

_AXES = ("x", "y", "z")


def _aux():
    """Auxiliary channels in the order of the record (places P_*)."""
    a = []

    def put(prefix, fields):
        a.extend(Aux(f"probe.{prefix}{name}", unit, meaning) for name, unit, meaning in fields)

    def vector(prefix, unit, meaning):
        put(prefix, [(f"_{axis}", unit, f"{meaning}, {axis}") for axis in _AXES])

    def wrench(prefix, meaning):
        vector(prefix + "_f", "N", meaning + ": force")
        vector(prefix + "_m", "N.m", meaning + ": moment")

    coordinates = (("swing_y", "rad"), ("swing_z", "rad"), ("bend_y", "rad"), ("bend_z", "rad"), ("twist", "rad"), ("length", "m"), ("limiter", "m"))
    for suffix, per, words in (("", "", ""), ("_rate", "/s", "rate of "), ("_acc", "/s2", "acceleration of ")):
        put("", [(name + suffix, unit + per, words + name) for name, unit in coordinates])
    vector("head", "m", "head centre in T")
    vector("head_v", "m/s", "velocity of the head centre in T")
    vector("axis", "-", "probe axis in T")
    vector("head_w", "rad/s", "angular velocity of the probe in T")
    wrench("contact", "contacts on the probe about A, A axes")
    wrench("lever", "contacts on the swinging body about A, A axes")
    wrench("limiter", "contacts on the limiter about A, A axes")
    for name, count in (("head_contact", 3), ("lining", 8)):
        for i in range(1, count + 1):
            put(f"{name}{i}", [("_depth", "m", "penetration"), ("_force", "N", "normal force")])
            vector(f"{name}{i}_n", "-", "normal in T")
            vector(f"{name}{i}_r", "m", "contact point in T")
    for i in range(1, 4):
        vector(f"roller{i}", "m", "roller centre in T")
        put(f"roller{i}", [("_depth", "m", "penetration"), ("_force", "N", "normal force")])
        vector(f"roller{i}_r", "m", "contact point in T")
    for i in range(1, 5):
        put(f"latch{i}", [("_angle", "rad", "rotation into the head"), ("_phase", "-", "0 free, 1 pressed, 2 fired"), ("_force", "N", "spring reaction")])
        vector(f"latch{i}_tip", "m", "outermost point at rest, in T")
        put(f"latch{i}", [("_groove_depth", "m", "penetration in the groove"), ("_groove_force", "N", "normal force in the groove")])
    for i in range(1, 3):
        put(f"sensor{i}", [("_angle", "rad", "lever rotation"), ("_phase", "-", "0 free, 1 pressed, 2 released"), ("_force", "N", "spring reaction")])
        vector(f"sensor{i}_centre", "m", "circle centre at rest, in T")
    for i in range(1, 3):
        put(f"spring{i}", [("_stroke", "m", "stroke of the lateral spring"), ("_rate", "m/s", "its rate"), ("_force", "N", "its force"), ("_spare", "-", "0")])
    for i in range(1, 3):
        put(f"brake{i}", [("_angle", "rad", "crank angle from zero swing"), ("_rate", "rad/s", "crank rate"), ("_torque", "N.m", "magnetic torque"),
                          ("_stop", "N.m", "torque of the stop")])
    put("", [("stroke", "m", "stroke of the probe, negative in compression"), ("stroke_rate", "m/s", "its rate"), ("nut_angle", "rad", "nut angle"),
             ("nut_rate", "rad/s", "nut rate"), ("clutch_angle", "rad", "clutch input relative to output"), ("clutch_moment", "N.m", "m_FR at the nut"),
             ("clutch_slip", "rad", "slip of the main clutch (FrT, FrT2)"), ("clutch_slip1", "rad", "slip of FrT1"),
             ("axial_brake", "N", "limit of the axial magnetic brakes"), ("screw_limit", "N", "limit of the screw friction"),
             ("axial_friction", "N", "friction and brakes on the stroke"), ("travel_stop", "N", "end stop of the stroke")])
    put("drive_", [("angle", "rad", "output shaft"), ("rate", "rad/s", "output shaft"), ("wheel_a", "rad", "wheel a"), ("wheel_b", "rad", "wheel b"),
                   ("wheel_a_rate", "rad/s", "wheel a"), ("wheel_b_rate", "rad/s", "wheel b"), ("sign", "-", "1 retracts, -1 extends"),
                   ("load", "N.m", "load on the output shaft")])
    put("joint_", [("bend_y", "N.m", "moment"), ("bend_z", "N.m", "moment"), ("twist", "N.m", "moment"), ("stiffening", "-", "L_0/L")])
    put("movable_", [("x", "m", "position of the movable limiter"), ("rate", "m/s", "its rate"), ("spring", "N", "spring force"), ("stop", "N", "stop force")])
    for i in range(1, 5):
        put(f"pusher{i}", [("_gap", "m", "gap between the docking planes"), ("_force", "N", "force")])
    put("cover_", [("x", "m", "deformation of the hatch cover"), ("v", "m/s", "its rate"), ("force", "N", "its force")])
    put("energy_", [(n, "J", m) for n, m in (
        ("kinetic", "relative to the base"), ("contact", "stored in contacts"), ("axial", "stored in the axial damper"), ("bend", "stored in bending"),
        ("twist", "stored in torsion"), ("lateral", "stored in the lateral damper"), ("latch", "stored in latches and levers"),
        ("limiter", "stored in the movable limiter"), ("pusher", "stored in the pushers"), ("stored", "sum of the stored energies"),
        ("lost_contact", "normal contact damping"), ("lost_friction", "contact friction"), ("lost_screw", "ball screw friction"),
        ("lost_brake", "axial magnetic brakes"), ("lost_axial", "hysteresis and slip of the axial damper"), ("lost_bend", "hysteresis of bending"),
        ("lost_twist", "hysteresis of torsion"), ("lost_lateral", "hysteresis of the lateral springs"),
        ("lost_lateral_brake", "lateral magnetic brakes and their stops"), ("lost_latch", "latches and levers at release"),
        ("lost_limiter", "movable limiter"), ("lost_damping", "structural damping"), ("lost", "sum of the losses"),
        ("supplied", "work of target and drive on the mechanism"))])
    wrench("base", "wrench on the base, last sub-step, A axes")
    wrench("target", "wrench on the target at T, last sub-step, T axes")
    vector("base_p", "m", "place of A in T")
    vector("base_w", "rad/s", "angular velocity of A relative to T")
    put("", [("plane_gap", "m", "widest gap between the docking planes, of the four at the pushers"), ("penetration", "m", "deepest contact of the tick"),
             ("over_limit", "-", "ticks in which a law was used beyond its valid range"), ("commands", "-", "command bits"), ("time", "s", "time of the unit")])
    for suffix, words in (("mass", "diagonal of the mass matrix"), ("bias", "inertia force without accelerations"), ("generalised", "generalised force")):
        put("", [(f"{suffix}_{name}", "SI", words) for name, _ in coordinates])
    return tuple(a)


cdef int _fill_law(ContactLaw *law, v, str part, double dt) except -1:
    law.stiffness = v[part + "_stiffness_n_per_m"]
    law.damping = v[part + "_damping_n_s_per_m"]
    law.friction = v[part + "_friction"]
    law.ramp = v["damping_ramp_m"]
    law.slip_speed = v["slip_speed_m_s"]
    # half of what would stop the smallest mass in one sub-step of 0.5 ms
    law.viscous_limit = 0.5 * <double>v["contact_mass_kg"] / dt
    return 0


cdef int _fill_torques(TorqueTable *t, str name, rows) except -1:
    if rows.ndim != 2 or rows.shape[1] != 2 or not 2 <= rows.shape[0] <= TABLE_POINTS:
        raise ValueError(f"{name} must be 2 to {TABLE_POINTS} rows (speed, torque), got shape {rows.shape}")
    if rows[0, 0] != 0.0 or rows[0, 1] != 0.0 or np.any(np.diff(rows[:, 0]) <= 0.0):
        raise ValueError(f"{name} must start at (0, 0) with rising speeds (a magnetic brake does not hold at rest), got {rows.tolist()}")
    cdef int i
    t.n = rows.shape[0]
    for i in range(t.n):
        t.speed[i] = rows[i, 0]
        t.torque[i] = rows[i, 1]
        t.slope[i] = (rows[i + 1, 1] - rows[i, 1]) / (rows[i + 1, 0] - rows[i, 0]) if i + 1 < t.n else 0.0
    return 0


cdef int _fill_chains(Unit *u, v) except -1:
    cdef int i, j
    for i in range(2):
        a, b = v["spring_base_m"][i], v["spring_body_m"][i]
        for j in range(3):
            u.body.spring[i].a[j] = a[j]
            u.body.spring[i].b[j] = b[j]
        u.body.spring[i].m1, u.body.spring[i].s1, u.body.spring[i].m2, u.body.spring[i].d2, u.body.spring[i].J = v["spring_link"]
        u.body.spring[i].length0 = np.linalg.norm(b - a)
        if u.body.spring[i].length0 < 0.01:
            raise ValueError(f"spring chain {i + 1}: base and body joint are closer than 0.01 m")
        a, tip, b, n = v["brake_base_m"][i], v["brake_tip_m"][i], v["brake_body_m"][i], v["brake_axis"][i]
        n = n / np.linalg.norm(n)
        arm = tip - a
        if abs(arm @ n) > 1e-9 or np.linalg.norm(arm) < 1e-3:
            raise ValueError(f"brake chain {i + 1}: the crank must be at least 1 mm long and normal to brake_axis")
        ex = arm / np.linalg.norm(arm)
        ey = np.cross(n, ex)
        gain = (b - tip) @ np.cross(n, arm) / np.linalg.norm(b - tip)
        if abs(gain) < 0.2 * np.linalg.norm(arm):
            raise ValueError(f"brake chain {i + 1}: crank and rod are nearly in line (dead point)")
        for j in range(3):
            u.body.brake[i].a[j] = a[j]
            u.body.brake[i].n[j] = n[j]
            u.body.brake[i].ex[j] = ex[j]
            u.body.brake[i].ey[j] = ey[j]
            u.body.brake[i].b[j] = b[j]
        u.body.brake[i].arm = np.linalg.norm(arm)
        u.body.brake[i].rod = np.linalg.norm(b - tip)
        # on which side of the hinge-to-end line the crank lies
        across = b - a
        u.body.brake[i].elbow = 1.0 if n @ np.cross(across, arm) > 0 else -1.0
        u.body.brake[i].I, u.body.brake[i].m, u.body.brake[i].fraction, u.body.brake[i].J = v["brake_link"]
        u.crank_zero[i] = 0.0
    return 0


cdef int _fill_geometry(Unit *u, v) except -1:
    cdef int i
    rows = v["cone_profile_m"]
    if rows.shape[1] != 2 or not 6 <= rows.shape[0] <= MAX_VERTICES:
        raise ValueError(f"cone_profile_m must be 6 to {MAX_VERTICES} rows (x, rho) of rim, mouth, cones, entry, bottom edge, bottom, got {rows.tolist()}")
    if np.any(np.hypot(*np.diff(rows, axis=0).T) < 1e-6) or np.any(rows[:, 1] < 0) or np.any(np.diff(rows[:, 0]) < 0):
        raise ValueError(f"cone_profile_m: vertices must be apart, x must not fall and radii not be negative, got {rows.tolist()}")
    u.cone.count = rows.shape[0]
    for i in range(u.cone.count):
        u.cone.x[i] = rows[i, 0]
        u.cone.rho[i] = rows[i, 1]
    prepare_profile(&u.cone)
    u.mouth[0], u.mouth[1], u.mouth[2] = rows[1, 0], 0.0, 0.0
    u.mouth_radius = rows[1, 1]
    u.bottom_face = u.cone.count - 2
    u.entry_x, u.entry_radius = rows[-3, 0], rows[-3, 1]
    u.last_cone_x = rows[-4, 0]
    u.head_radius = v["head_radius_m"]
    if not u.head_radius < rows[-2, 1]:
        raise ValueError(f"head_radius_m must be below the socket radius {rows[-2, 1]} m, got {u.head_radius}")
    front, rear = v["lining_front_m"], v["lining_rear_m"]
    for i in range(LININGS):
        c, s = math.cos(2 * math.pi * i / LININGS), math.sin(2 * math.pi * i / LININGS)
        u.lining[3 * i], u.lining[3 * i + 1], u.lining[3 * i + 2] = front[0], front[1] * c, front[1] * s
        u.lining_run[3 * i], u.lining_run[3 * i + 1], u.lining_run[3 * i + 2] = rear[0] - front[0], (rear[1] - front[1]) * c, (rear[1] - front[1]) * s
    u.lining_front = max(front[0], rear[0])
    u.lining_reach = max(front[1], rear[1])
    cam = v["lever_cam"]
    if cam.shape[1] != 3 or not 2 <= cam.shape[0] <= CAM_POINTS or np.any(np.diff(cam[:, 0]) <= 0):
        raise ValueError(f"lever_cam must be 2 to {CAM_POINTS} rows (nut angle, x, rho) with rising angles, got {cam.tolist()}")
    u.rollers = ROLLERS if v["levers"] else 0
    u.roller_radius = v["roller_radius_m"]
    u.cam_points = cam.shape[0]
    for i in range(u.cam_points):
        u.cam_nut[i], u.cam_x[i], u.cam_rho[i] = cam[i]
    for i in range(ROLLERS):
        u.roller_dir[2 * i], u.roller_dir[2 * i + 1] = math.cos(2 * math.pi * i / ROLLERS), math.sin(2 * math.pi * i / ROLLERS)
    # latches 1 and 3 in the plane X_H Y_H, 2 and 4 in X_H Z_H; levers between them
    for i, (y, z) in enumerate(((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))):
        u.latch_dir[2 * i], u.latch_dir[2 * i + 1] = y, z
    for i, (y, z) in enumerate(((math.sqrt(0.5), math.sqrt(0.5)), (-math.sqrt(0.5), -math.sqrt(0.5)))):
        u.lever_dir[2 * i], u.lever_dir[2 * i + 1] = y, z
    u.latch.pivot_x, u.latch.pivot_rho = v["latch_pivot_m"]
    u.latch.nose_x, u.latch.nose_rho = v["latch_nose_m"]
    u.latch.tip_x, u.latch.tip_rho = v["latch_tip_m"]
    u.latch.radius = 0.0
    u.latch.angle_max = v["latch_angle_max_rad"]
    u.latch.torque_preload, u.latch.torque_rate = v["latch_torque"]
    u.latch.lock_x, u.latch.lock_rho_inner, u.latch.lock_rho_outer = v["latch_lock_m"]
    u.lever = u.latch
    u.lever.pivot_x, u.lever.pivot_rho = v["sensor_pivot_m"]
    u.lever.nose_x, u.lever.nose_rho = v["sensor_centre_m"]
    u.lever.radius = v["sensor_radius_m"]
    u.lever.angle_max = v["sensor_angle_max_rad"]
    u.lever.torque_preload, u.lever.torque_rate = v["sensor_torque"]
    u.release_x = v["sensor_release_x_m"]
    u.lever_friction = v["sensor_friction_n"]
    start, end = v["groove_ramp_m"]
    u.groove = Groove(stop_x=v["groove_stop_x_m"], plane=v["groove_plane_m"], narrow=v["groove_narrow_m"], wide=v["groove_wide_m"], ramp_start=start,
                      ramp_end=end, length=v["groove_length_m"])
    if not 0.0 <= start < end <= u.groove.length or u.groove.narrow > u.groove.wide:
        raise ValueError(f"groove: needs ramp start < end <= length and narrow <= wide, got ramp {start}, {end}, widths {u.groove.narrow}, {u.groove.wide}")
    if not u.latch.lock_rho_inner < u.groove.plane < u.latch.lock_rho_outer:
        raise ValueError(f"latch_lock_m: the segment must cross the groove plane at {u.groove.plane} m")
    return 0


cdef class ProbeCone(MechanismPart):
    """Central docking unit. Keyword arguments: `PARAMETERS`; `AUX` names the auxiliary channels. Raises ValueError for a wrong parameter.

    Signals: bits of `mechanism_signal` in the channel table. Analogue signals: LPS (compression of the probe, m), BPR and BPT (strokes of the two lateral
    rods, m), widest gap of the docking planes (m), clutch slip (rad), deepest penetration (m), position of the movable limiter (m), drive rate (rad/s).
    Commands: bit 0 drive on, bit 1 extra lateral brakes, bit 2 release the latches, bit 3 drive extends instead of retracting.
    """

    cdef Unit unit

    PARAMETERS = PARAMETERS
    AUX = _aux()

    def __init__(self, **given):
        cdef Unit *u = &self.unit
        memset(u, 0, sizeof(Unit))
        v = checked(self.PARAMETERS, given)
        # lists as arrays, tables of rows as (n, columns)
        v |= {p.key: np.array(v[p.key]) for p in self.PARAMETERS if p.kind in ("floats", "rows")}
        u.substeps = v["substeps"]
        _fill_geometry(u, v)
        # inertia
        u.movable = v["limiter"] == "movable"
        u.body.dof = 7 if u.movable else 6
        u.body.exit_x = v["exit_x_m"]
        u.body.m2, u.body.c2 = v["body_mass_kg"], v["body_centre_x_m"]
        u.body.Jx2, u.body.Jt2 = v["body_inertia_kg_m2"]
        u.body.m1, u.body.d1 = v["probe_mass_kg"], v["probe_centre_m"]
        u.body.Jx1, u.body.Jt1 = v["probe_inertia_kg_m2"]
        u.body.m3, u.body.c3 = v["limiter_mass_kg"], v["limiter_centre_m"]
        u.body.Jx3, u.body.Jt3 = v["limiter_inertia_kg_m2"]
        u.nut_ratio = 2.0 * math.pi / v["screw_lead_m"]
        u.body.axial_inertia = <double>v["axial_inertia_kg_m2"] * u.nut_ratio * u.nut_ratio
        _fill_chains(u, v)
        # contact
        step = 5e-4 / u.substeps
        _fill_law(&u.head_law, v, "head", step)
        _fill_law(&u.limiter_law, v, "limiter", step)
        _fill_law(&u.roller_law, v, "roller", step)
        _fill_law(&u.latch_law, v, "latch", step)
        _fill_law(&u.plane_law, v, "plane", step)
        u.lever_viscous = u.head_law.viscous_limit
        u.depth_limit = v["penetration_max_m"]
        # elastic elements
        fill_table(&u.bend, "bend", v["bend_forward"], v["bend_return"], None, None, False)
        fill_table(&u.twist, "twist", v["twist_forward"], v["twist_return"], None, None, False)
        fill_table(&u.lateral, "spring", v["spring_forward"], v["spring_return"], None, None, False)
        fill_table(&u.cover, "cover", v["cover_forward"], v["cover_return"], None, None, False)
        fill_table(&u.axial, "axial", v["axial_forward"], v["axial_return"], v["axial_pull_forward"], v["axial_pull_return"], True)
        u.two_brakes = v["axial_damper"] == "two_brakes"
        if u.two_brakes:
            fill_series_clutch(&u.brakes, "axial", v["axial_pull_forward"], v["axial_pull_return"], v["brake1_moment_n_m"][0], v["brake1_moment_n_m"][1],
                               v["brake1_stroke_rad"], v["brake2_moment_n_m"][0], v["brake2_moment_n_m"][1])
        u.bend_damping = v["bend_damping_n_m_s_per_rad"]
        u.twist_damping = v["twist_damping_n_m_s_per_rad"]
        u.lateral_damping = v["spring_damping_n_s_per_m"]
        u.train_damping = v["train_damping_n_m_s_per_rad"]
        # stroke
        u.length0 = v["probe_length_m"]
        u.length_min, u.length_max = v["probe_length_range_m"]
        if not u.length_min < u.length0 <= u.length_max:
            raise ValueError(f"probe_length_m must lie inside probe_length_range_m, got {u.length0} and {v['probe_length_range_m'].tolist()}")
        u.stop_stiffness = v["travel_stop_stiffness_n_per_m"]
        u.stop_damping = v["travel_stop_damping_n_s_per_m"]
        u.clutch_ratio = v["clutch_ratio"]
        u.drive_ratio = v["drive_ratio"]
        u.screw_friction = v["screw_friction"]
        _fill_torques(&u.axial_brake, "axial_brake_table", v["axial_brake_table"])
        _fill_torques(&u.lateral_brake, "brake_table", v["brake_table"])
        u.extra_brakes = v["brake_extra"]
        u.crank_stop = v["brake_stop_rad"]
        u.crank_stiffness = v["brake_stop_stiffness_n_m_per_rad"]
        u.crank_damping = v["brake_stop_damping_n_m_s_per_rad"]
        fill_drive(v, &u.drive)
        # movable limiter
        u.limiter_front = v["limiter_front_m"]
        u.limiter_travel = v["limiter_travel_m"]
        u.limiter_force_front, u.limiter_force_end = v["limiter_force_n"]
        u.limiter_stiffness = v["limiter_stop_stiffness_n_per_m"]
        u.limiter_damping = v["limiter_stop_damping_n_s_per_m"]
        u.limiter_gap = v["limiter_head_gap_m"]
        # docking planes, cover
        u.plane_x = v["plane_x_m"]
        u.pusher_radius = v["pusher_radius_m"]
        u.pusher_length = v["pusher_length_m"]
        u.pusher_stiffness = v["pusher_stiffness_n_per_m"]
        u.together_gap = v["together_gap_m"]
        u.cover_on = v["cover"]
        u.cover_mass = v["cover_mass_kg"]
        u.cover_damping = v["cover_damping_n_s_per_m"]
        # undisturbed state: probe extended, limiter forward
        u.state.q[5] = u.length0
        u.state.q[6] = u.limiter_front if u.movable else 0.0
        self.plug.self = <void *>u
        self.plug.state = <void *>&u.state
        self.plug.state_size = sizeof(State)
        self.plug.advance = advance

    def max_penetration(self, X_TA):
        """Deepest contact [m] of head, limiter and rollers at the pose X_TA (position m, quaternion xyzw) in the present state; 0 without contact."""
        cdef Unit *u = &self.unit
        cdef Unit copy
        cdef double p[3]
        cdef double q[4]
        cdef double V[6]
        cdef double w[3]
        cdef int i
        memcpy(&copy, u, sizeof(Unit))
        for i in range(3):
            p[i] = X_TA[i]
            w[i] = 0.0
        for i in range(4):
            q[i] = X_TA[3 + i]
        for i in range(6):
            V[i] = 0.0
        copy.deepest = 0.0
        substep(&copy, p, q, V, w, 1e-9, 0, copy.record)
        return copy.deepest

    def glide(self, X_TA, V_TA, double dt, int ticks, unsigned int commands=0, int every=1):
        """`ticks` steps with the base on the constant twist V_TA from the pose X_TA. Returns (pose after it, samples): every `every`-th tick a row of
        F_T 6, F_A 6, signals, then the auxiliary channels."""
        if ticks < 0 or every < 1 or not dt > 0.0:
            raise ValueError(f"glide needs ticks >= 0, every >= 1 and dt > 0 s, got {ticks}, {every}, {dt}")
        cdef MechanismInput inp
        cdef MechanismOutput out
        cdef double turn[4]
        cdef double step[3]
        cdef double aux[RECORD]
        rows = np.zeros((ticks // every, 13 + P_END))
        cdef double[:, ::1] r = rows
        cdef int i, j, n = 0
        memset(&inp, 0, sizeof(inp))
        for i in range(7):
            inp.X_TA[i] = X_TA[i]
        for i in range(6):
            inp.V_TA[i] = V_TA[i]
        inp.dt = dt
        inp.commands = commands
        vec3.scale(dt, inp.V_TA + 3, step)
        quat.exponential(step, turn)
        with nogil:
            for i in range(ticks):
                advance(&self.unit, &inp, &out, aux)
                vec3.add_scaled(inp.X_TA, dt, inp.V_TA, inp.X_TA)
                quat.multiply(turn, inp.X_TA + 3, inp.X_TA + 3)
                if (i + 1) % every == 0:
                    memcpy(&r[n, 0], out.F_T, sizeof(out.F_T))
                    memcpy(&r[n, 6], out.F_A, sizeof(out.F_A))
                    r[n, 12] = out.signals
                    memcpy(&r[n, 13], aux, sizeof(double) * P_END)
                    n += 1
        return np.array([inp.X_TA[i] for i in range(7)]), rows

    def set_state(self, coordinates=None, rates=None):
        """Set the seven coordinates (swing y, z, bend y, z, twist [rad], free length, limiter position [m]) and rates; hysteresis is left as it is."""
        cdef int i
        for i in range(7):
            if coordinates is not None:
                self.unit.state.q[i] = coordinates[i]
            if rates is not None:
                self.unit.state.v[i] = rates[i]

    @property
    def coordinates(self):
        return np.array([self.unit.state.q[i] for i in range(7)])

    @property
    def rates(self):
        return np.array([self.unit.state.v[i] for i in range(7)])


def multibody_step(ProbeCone part, q, v, w0, Q, external=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)):
    """Dynamics alone, for tests: accelerations for coordinates q, rates v, base rate w0 (rad/s, A axes) and generalised forces Q.

    `external` is the wrench (about A, A axes) that belongs to Q. Returns (accelerations, wrench on the base, mass matrix, bias, chain values and rates).
    """
    cdef Unit *u = &part.unit
    cdef Motion k
    cdef double[::1] q_ = np.ascontiguousarray(q, dtype=float)
    cdef double[::1] v_ = np.ascontiguousarray(v, dtype=float)
    cdef double[::1] w_ = np.ascontiguousarray(w0, dtype=float)
    cdef double[::1] W = np.array(external, dtype=float)
    cdef double[::1] acc = np.zeros(7)
    cdef int i, j, n = u.body.dof
    place(&u.body, &q_[0], &v_[0], &w_[0], &k)
    assemble(&u.body, &q_[0], &v_[0], &w_[0], &k)
    M = np.array([[k.M[7 * max(i, j) + min(i, j)] for j in range(n)] for i in range(n)])
    bias = np.array([k.bias[i] for i in range(n)])
    for i in range(n):
        acc[i] = Q[i] - k.bias[i]
    factor(n, k.M)
    solve(n, k.M, &acc[0])
    base_wrench(&u.body, &q_[0], &k, &acc[0], &w_[0], &W[0])
    chains = [(k.spring[i].value, k.spring[i].rate) for i in range(2)] + [(atan2(k.brake[i].sine, k.brake[i].cosine), k.brake[i].rate) for i in range(2)]
    return np.asarray(acc)[:n].copy(), np.asarray(W).copy(), M, bias, chains


def implicit_euler(double h, double m, double k, double c, double net, double v, double x):
    """(v+, x+) of the hatch cover's implicit step, for tests: `net` is the outer force less the spring's present force, N."""
    implicit_step(h, m, k, c, net, &v, &x)
    return v, x
