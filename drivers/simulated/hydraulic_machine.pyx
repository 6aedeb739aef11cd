"""A platform on six hydraulic (or electric) legs that feels contact, weight and inertia.

Leg: y rod position (leg length less its least), v its rate, x spool -1...1, p_a pushes, p_b pulls (Merritt 1967, ch. 3, 5, 6; Jelali and
Kroll 2003, ch. 4):

    V_a = V_a0 + A_a y ,  V_b = V_b0 + A_b (L - y)
    p_a' = beta/V_a (Q_a - A_a v - C_i (p_a - p_b) - C_e (p_a - p_r))
    p_b' = beta/V_b (A_b v - Q_b + C_i (p_a - p_b) - C_e (p_b - p_r))                                                        (1)
    x_e  = x beyond the overlap, else 0 ;  K = Q_n / sqrt(dp_n / 2)
    x_e >= 0:  Q_a = K x_e r(p_l - p_a) ,  Q_b = K x_e r(p_b - p_r)
    x_e <  0:  Q_a = K x_e r(p_a - p_r) ,  Q_b = K x_e r(p_l - p_b)                                                          (2)
    r(d) = d / (d^2 + p_tr^2)^(1/4)          square root with a laminar middle
    x''  = w_v^2 (u - x) - 2 z_v w_v x' ,  |x'| <= slew ,  |x| <= 1 ,  |u| <= 1                                              (3)

Friction of the seals by bristles (LuGre: Canudas de Wit et al. 1995), Stribeck's curve s after Hess and Soom 1990.
Bristles hold at rest, where a smooth sign of the speed creeps; their damping falls with s, so that they never give energy (Olsson 1996):

    z' = v - s0 |v| z / g ,  g = F_c + (F_s - F_c) s ,  s = 1 / (1 + (v/v_s)^2)
    F_f = s0 z + s1 s z' + sigma v                                                                                          (4)
    F_end = k_c pen |pen| - d_c |pen| v      over the last length of the stroke (pen > 0 at the lower end)                    (5)

Supply: pump, gas (p V^kappa constant), one line with a volume each way between accumulator, valves and tank:

    V_g' = Q_out - Q_pump ,  p_s' = -kappa p_s V_g' / V_g ,  Q_pump = limit(g (p_s0 - p_s), 0, Q_max)
    p_l' = beta/V_l (K_l r(p_s - p_l) - Q_used) ,  p_r' = beta/V_l (Q_back - K_l r(p_r - p_t))                               (6)

Drive, a part of the plant, as hydraulic motion systems have it (Koekebakker 2001): position, velocity feed-forward and pressure
difference p_d = p_a - p_b A_b/A_a without its mean p_f (low-pass at w_hp), so that a standing load leaves no error:

    u = (k_f r' + k_v (r - y)) / K_x - k_p (p_d - p_f)                                                                      (7)

K_x: no-load speed at full spool; with unequal areas it depends on the sign: out sqrt((p_s - a p_t) / (1 + a^3)) K / A_a, in
sqrt((a p_s - p_t) / (1 + a^3)) K / A_a, a = A_b / A_a, from (1), (2) at rest with A_a p_a = A_b p_b.

Platform with twist V = (v, w) of P in world axes, J rows (n_i, r_i x n_i), G_i = [1, -r_i x], h and I about P:

    (M_p + sum G_i' B_i G_i) V' = J' F + W + W_gravity - (w x (w x h), w x I w) - sum G_i' (B_i w x (w x r_i) + c_i)          (8)
    B_i = m_2 n n' + A_i (1 - n n') ,  A_i = (J_1 + J_2 + m_2 c^2) / l^2 ,  c = l - a_2
    c_i = m_2 a_2 |n'|^2 n + 2 l'/l (m_2 c - A_i l) n'
    gravity at the joint: m_2 (g.n) n + (m_1 a_1 + m_2 c)/l (g - (g.n) n)

A leg is two slender bodies on the base joint: the cylinder swings, the rod swings and slides; spin about its own axis is left out. B_i
and c_i are Lagrange's equations of T = m_2 l'^2 / 2 + (J_1 + J_2 + m_2 c^2) |n'|^2 / 2. sum G' B G is the inertia of point masses A_i at
the platform joints and (m_2 - A_i) J_i' J_i, which is how it is summed here.

One step (order matters): drive and spool (damping implicit) -> forces with the old pressures -> (8), with the slope of friction and cushion
implicit: (M + dt J' D J) V' = ... -> pose with the new twist -> pressures with the new rod rates, slope of the edges implicit -> supply.
Pressure and speed are a symplectic pair: the undamped oil spring neither grows nor decays. First order in dt; 50 us is usual.

Blocking valves sit at the cylinder's ports, and shut both over `blocking_time_s` when the emergency chain asks for it, the leg's drive has
no power, or the supply falls below the pressure that keeps them open. While they shut a drive with power holds the last setpoint, so that
the platform stops under control; then it lets go of its spool and the leg stands on its oil. A burst line is the hose between valve and
blocking valve, so that a shut blocking valve holds this leg too.

Cavitation: a pressure that would fall below zero is kept there and counted.

Electric cylinder (`actuator = "electric"`): motor and screw are a mass m_m on the rod's line, position q, behind the screw's spring; the
current x (share of its limit, which gives F_max) follows its command as the spool does in (3). The drive is the usual cascade: position,
speed of the motor with an integral that stops at the limit of the current. A brake takes the place of the blocking valves, and shuts
with them:

    F = k_s (q - y) + d_s (q' - v) ,  m_m q'' = F_max x - F - d_m q' - brake                                                (9)
    u = k_w e / F_max + integral of k_w e / (T_n F_max) ,  e = k_v (r - y) + k_f r' - q'                                   (10)
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.math cimport fabs, sqrt
from libc.string cimport memcpy, memset

import math

import numpy as np

from drivers.simulated.hydraulic_machine_parameters cimport fill_hydraulic
from drivers.simulated.injections cimport *
from rt_kernels.algebra cimport spatial
from rt_kernels.algebra.values cimport (Mat3, Vec3, add, cross, mat_vec, mul, normalized, pose_of, put, put_pose, put_quat, quat, rotate,
                                        sub, to_matrix, turned, vec, xyz)
from rt_kernels.stewart.legs cimport all_legs, apply_jacobian, sum_of_products
from rt_kernels.stewart.platform cimport Platform

from rt_kernels.block_check import COUNT, WORD
from rt_kernels.parameters import Parameter, checked

# flow through a burst line: discharge coefficient times sqrt(2 / density) of mineral oil, m/s per sqrt(Pa)
cdef double ORIFICE = 0.6 * sqrt(2.0 / 870.0)
# a supply that is lost falls with this time constant unless the injection says otherwise
cdef double SUPPLY_LOSS_S = 0.05


# ------------------------------------------------------------------------------------------------------ rigid bodies

# What a leg puts on its platform joint, and how its bodies weigh there
cdef struct Joints:
    double axial[6]             # along n, in: of actuator and seals, out: with gravity and centripetal terms
    double weight[6]            # of J_i' J_i in the mass matrix; in: dt times the implicit slope
    double mass[6]              # A_i: point mass at the joint
    double fx[6]                # the force that is not along n
    double fy[6]
    double fz[6]


cdef inline void bodies_of_legs(const HydraulicParams *p, const HydraulicState *s, Joints *j) noexcept nogil:
    """Inertia, gravity and centripetal force of the legs at their platform joints, added to what `axial` and `weight` hold."""
    cdef const Legs *legs = &s.legs
    cdef double vx = s.V_WP[0], vy = s.V_WP[1], vz = s.V_WP[2], wx = s.V_WP[3], wy = s.V_WP[4], wz = s.V_WP[5]
    cdef double gx = p.gravity_W.x, gy = p.gravity_W.y, gz = p.gravity_W.z
    cdef double ww = wx * wx + wy * wy + wz * wz
    cdef double inverse, c, A, hang, dx, dy, dz, wr, cx, cy, cz, turn
    cdef int i
    for i in range(6):
        inverse = 1.0 / legs.length[i]
        c = legs.length[i] - p.keys.rod_com
        A = (p.swing_inertia + p.keys.rod_mass * c * c) * inverse * inverse
        hang = (p.cylinder_moment + p.keys.rod_mass * c) * inverse
        # d/dt of the unit vector
        dx = (vx + (wy * legs.rz[i] - wz * legs.ry[i]) - s.leg_rate[i] * legs.ux[i]) * inverse
        dy = (vy + (wz * legs.rx[i] - wx * legs.rz[i]) - s.leg_rate[i] * legs.uy[i]) * inverse
        dz = (vz + (wx * legs.ry[i] - wy * legs.rx[i]) - s.leg_rate[i] * legs.uz[i]) * inverse
        # w x (w x r)
        wr = wx * legs.rx[i] + wy * legs.ry[i] + wz * legs.rz[i]
        cx = wx * wr - ww * legs.rx[i]
        cy = wy * wr - ww * legs.ry[i]
        cz = wz * wr - ww * legs.rz[i]
        turn = 2.0 * s.leg_rate[i] * (p.keys.rod_mass * c * inverse - A)
        j.mass[i] = A
        j.weight[i] += p.keys.rod_mass - A
        j.axial[i] += ((p.keys.rod_mass - hang) * (gx * legs.ux[i] + gy * legs.uy[i] + gz * legs.uz[i])
                       - (p.keys.rod_mass - A) * (cx * legs.ux[i] + cy * legs.uy[i] + cz * legs.uz[i])
                       - p.keys.rod_mass * p.keys.rod_com * (dx * dx + dy * dy + dz * dz))
        j.fx[i] = hang * gx - A * cx - turn * dx
        j.fy[i] = hang * gy - A * cy - turn * dy
        j.fz[i] = hang * gz - A * cz - turn * dz


cdef inline double sum_of_weighted(const double *w, const double *a, const double *b) noexcept nogil:
    # over the six legs, even and odd legs apart
    return ((w[0] * a[0] * b[0] + w[2] * a[2] * b[2] + w[4] * a[4] * b[4])
            + (w[1] * a[1] * b[1] + w[3] * a[3] * b[3] + w[5] * a[5] * b[5]))


cdef inline double sum_of_six(const double *a) noexcept nogil:
    return (a[0] + a[2] + a[4]) + (a[1] + a[3] + a[5])


cdef inline Vec3 symmetric_times(const double *I, Vec3 w) noexcept nogil:
    # I w, I: xx, xy, xz, yy, yz, zz
    return xyz(I[0] * w.x + I[1] * w.y + I[2] * w.z, I[1] * w.x + I[3] * w.y + I[4] * w.z, I[2] * w.x + I[4] * w.y + I[5] * w.z)


cdef inline void motion_equations(const HydraulicParams *p, const HydraulicState *s, const Joints *j, double *M, double *b) noexcept nogil:
    """(8): mass matrix M (21 numbers, see rt_kernels.algebra.spatial) and right side b."""
    cdef const Legs *legs = &s.legs
    # platform about P, W axes
    cdef Mat3 R = to_matrix(quat(s.X_WP + 3))
    cdef Vec3 h = mat_vec(R, vec(p.inertia_P + 1))
    cdef Vec3 w = vec(s.V_WP + 3)
    cdef double I[6]
    cdef double m, fx, fy, fz
    spatial.rotate_symmetric(<const double *> &R, p.inertia_P + 4, I)
    # f + m g - w x (w x h); moment + h x g - w x (I w)
    put(sub(add(vec(s.wrench), mul(p.inertia_P[0], p.gravity_W)), cross(w, cross(w, h))), b)
    put(sub(add(vec(s.wrench + 3), cross(h, p.gravity_W)), cross(w, symmetric_times(I, w))), b + 3)
    # legs
    fx = sum_of_six(j.fx)
    fy = sum_of_six(j.fy)
    fz = sum_of_six(j.fz)
    b[0] += fx + sum_of_products(j.axial, legs.ux)
    b[1] += fy + sum_of_products(j.axial, legs.uy)
    b[2] += fz + sum_of_products(j.axial, legs.uz)
    b[3] += sum_of_products(j.axial, legs.tx) + sum_of_products(legs.ry, j.fz) - sum_of_products(legs.rz, j.fy)
    b[4] += sum_of_products(j.axial, legs.ty) + sum_of_products(legs.rz, j.fx) - sum_of_products(legs.rx, j.fz)
    b[5] += sum_of_products(j.axial, legs.tz) + sum_of_products(legs.rx, j.fy) - sum_of_products(legs.ry, j.fx)
    # platform and the point masses A_i at the joints
    m = p.inertia_P[0] + sum_of_six(j.mass)
    h.x += sum_of_products(j.mass, legs.rx)
    h.y += sum_of_products(j.mass, legs.ry)
    h.z += sum_of_products(j.mass, legs.rz)
    fx = sum_of_weighted(j.mass, legs.rx, legs.rx)
    fy = sum_of_weighted(j.mass, legs.ry, legs.ry)
    fz = sum_of_weighted(j.mass, legs.rz, legs.rz)
    # rows of [[m, -h x], [h x, I]] and the legs' weight_i J_i' J_i
    M[0] = m + sum_of_weighted(j.weight, legs.ux, legs.ux)
    M[1] = sum_of_weighted(j.weight, legs.ux, legs.uy)
    M[2] = sum_of_weighted(j.weight, legs.ux, legs.uz)
    M[3] = sum_of_weighted(j.weight, legs.ux, legs.tx)
    M[4] = h.z + sum_of_weighted(j.weight, legs.ux, legs.ty)
    M[5] = -h.y + sum_of_weighted(j.weight, legs.ux, legs.tz)
    M[6] = m + sum_of_weighted(j.weight, legs.uy, legs.uy)
    M[7] = sum_of_weighted(j.weight, legs.uy, legs.uz)
    M[8] = -h.z + sum_of_weighted(j.weight, legs.uy, legs.tx)
    M[9] = sum_of_weighted(j.weight, legs.uy, legs.ty)
    M[10] = h.x + sum_of_weighted(j.weight, legs.uy, legs.tz)
    M[11] = m + sum_of_weighted(j.weight, legs.uz, legs.uz)
    M[12] = h.y + sum_of_weighted(j.weight, legs.uz, legs.tx)
    M[13] = -h.x + sum_of_weighted(j.weight, legs.uz, legs.ty)
    M[14] = sum_of_weighted(j.weight, legs.uz, legs.tz)
    M[15] = I[0] + fy + fz + sum_of_weighted(j.weight, legs.tx, legs.tx)
    M[16] = I[1] - sum_of_weighted(j.mass, legs.rx, legs.ry) + sum_of_weighted(j.weight, legs.tx, legs.ty)
    M[17] = I[2] - sum_of_weighted(j.mass, legs.rx, legs.rz) + sum_of_weighted(j.weight, legs.tx, legs.tz)
    M[18] = I[3] + fx + fz + sum_of_weighted(j.weight, legs.ty, legs.ty)
    M[19] = I[4] - sum_of_weighted(j.mass, legs.ry, legs.rz) + sum_of_weighted(j.weight, legs.ty, legs.tz)
    M[20] = I[5] + fx + fy + sum_of_weighted(j.weight, legs.tz, legs.tz)


# -------------------------------------------------------------------------------------------------------------- legs

cdef inline double clip(double x, double limit) noexcept nogil:
    return -limit if x < -limit else (limit if x > limit else x)


cdef inline double way_to_valve(const HydraulicState *s, int i) noexcept nogil:
    """Opening of the way between a leg's chambers and its valve: what the blocking valves leave."""
    return s.own_valve[i] if s.own_valve[i] < s.blocking else s.blocking


cdef inline bint driven(const HydraulicState *s, int i) noexcept nogil:
    """Whether a leg's drive moves anything: it has power, and the blocking valves of its leg are not shut."""
    return s.open[i] > 0.0 and not (s.shut >> i) & 1


cdef inline void setpoints(HydraulicState *s) noexcept nogil:
    """What the drives follow: while a leg's blocking valves shut, its last setpoint."""
    cdef int i
    for i in range(6):
        if s.open[i] == 1.0:
            s.hold[i] = s.target[i]
            s.hold_rate[i] = s.target_rate[i]
        else:
            s.hold_rate[i] = 0.0


cdef inline void commands_of_valves(const HydraulicParams *p, HydraulicState *s) noexcept nogil:
    """(7)."""
    cdef double ratio = p.keys.piston_area_b / p.keys.piston_area_a
    cdef double difference, wanted
    cdef int i
    for i in range(6):
        difference = s.pressure_a[i] - ratio * s.pressure_b[i]
        s.highpass[i] += p.highpass * (difference - s.highpass[i])
        wanted = p.keys.velocity_feedforward * s.hold_rate[i] + p.keys.position_gain * (s.hold[i] - s.legs.length[i])
        if (s.runs >> i) & 1:
            wanted = s.run_rate[i]
        wanted *= p.speed_inverse[0] if wanted >= 0.0 else p.speed_inverse[1]
        s.command[i] = clip(wanted - p.keys.pressure_gain * (difference - s.highpass[i]), 1.0) if driven(s, i) else 0.0


cdef inline void commands_of_motors(const HydraulicParams *p, HydraulicState *s) noexcept nogil:
    """(10)."""
    cdef double error, u
    cdef int i
    for i in range(6):
        error = p.keys.position_gain * (s.hold[i] - s.legs.length[i]) + p.keys.velocity_feedforward * s.hold_rate[i] - s.motor_rate[i]
        if (s.runs >> i) & 1:
            error = s.run_rate[i] - s.motor_rate[i]
        u = p.speed_gain * error + s.integral[i]
        if not driven(s, i):
            # held by its brake: without current, and the integral waits
            s.command[i] = 0.0
            continue
        s.command[i] = clip(u, 1.0)
        if s.command[i] == u:
            s.integral[i] += p.speed_gain * p.per_reset * error


cdef inline void move_valves(const HydraulicParams *p, HydraulicState *s) noexcept nogil:
    """(3), of spools or currents."""
    cdef double u, rate, x
    cdef uint32_t saturated = 0
    cdef int i
    for i in range(6):
        u = s.command[i]
        rate = clip((s.spool_rate[i] + p.valve_stiffness * (u - s.spool[i])) * p.valve_keep, p.keys.valve_slew) * s.spool_free[i]
        x = s.spool[i] + p.dt * rate
        if fabs(x) > 1.0:
            x = clip(x, 1.0)
            rate = 0.0
        s.spool[i] = x
        s.spool_rate[i] = rate
        saturated |= <uint32_t>(fabs(u) >= 1.0 or fabs(x) >= 1.0) << i
    s.saturated = saturated


# Forces of seals and cushions: their part at the present rate, their slope, and what the new rate makes of the bristles
cdef struct Friction:
    double constant[6]          # of the seals
    double slope[6]
    double keep[6]              # 1 / (1 + dt s0 |v| / g)
    double cushion[6]           # spring of the cushion, pushing is positive
    double cushion_slope[6]


cdef inline void forces_of_legs(const HydraulicParams *p, HydraulicState *s, Friction *f, Joints *j) noexcept nogil:
    """Actuators with the old pressures (or the old place of the motor), (4) and (5) linear in the new rate."""
    cdef double v, curve, damping, y, pen, side
    cdef double per_step = 1.0 / p.dt
    cdef int i
    if p.electric:
        for i in range(6):
            s.force[i] = p.keys.screw_stiffness * (s.motor[i] - s.legs.length[i]) + p.keys.screw_damping * (s.motor_rate[i] - s.leg_rate[i])
    else:
        for i in range(6):
            s.force[i] = p.keys.piston_area_a * s.pressure_a[i] - p.keys.piston_area_b * s.pressure_b[i]
    for i in range(6):
        v = s.leg_rate[i]
        curve = 1.0 / (1.0 + v * v * p.stribeck)
        f.keep[i] = 1.0 / (1.0 + p.dt * p.keys.friction_bristle * fabs(v) / (p.keys.friction_coulomb + p.stiction * curve))
        damping = p.keys.friction_bristle_damping * curve
        f.slope[i] = p.keys.friction_viscous + (p.dt * p.keys.friction_bristle + damping) * f.keep[i]
        f.constant[i] = s.bristle[i] * (p.keys.friction_bristle * f.keep[i] + damping * (f.keep[i] - 1.0) * per_step)
        # depth in the cushion of the nearer end
        y = s.legs.length[i] - p.platform.length_min[i]
        side = p.stroke - y
        pen = p.keys.cushion_length - y if y < side else side - p.keys.cushion_length
        side = 1.0 if y < side else -1.0
        pen = pen if pen * side > 0.0 else 0.0
        f.cushion[i] = p.keys.cushion_stiffness * pen * fabs(pen)
        f.cushion_slope[i] = p.keys.cushion_damping * fabs(pen)
        j.axial[i] = s.force[i] - f.constant[i] + f.cushion[i] - (f.slope[i] + f.cushion_slope[i]) * v
        j.weight[i] = p.dt * (f.slope[i] + f.cushion_slope[i])


cdef inline double root(double d, double laminar2, double *slope) noexcept nogil:
    # d / (d^2 + p_tr^2)^(1/4) and its derivative
    cdef double h = d * d + laminar2
    cdef double inverse = 1.0 / sqrt(sqrt(h))
    slope[0] = inverse - 0.5 * d * d * inverse / h
    return d * inverse


cdef inline void pressures(const HydraulicParams *p, HydraulicState *s, const double *rate, double *used, double *back) noexcept nogil:
    """(1) and (2) with the new rod rates; flows out of the supply line and into the return line, m3/s."""
    cdef double x, k, y, leak, outer_a, outer_b, Va, Vb, ca, cb, slope_a, slope_b, da, db
    cdef bint out
    cdef double dt_beta = p.dt * p.keys.bulk_modulus
    cdef double half_beta = 0.5 / p.keys.bulk_modulus
    cdef double drop_a[6]
    cdef double drop_b[6]
    cdef double flow_a[6]           # over the edge at chamber A, positive from supply to tank
    cdef double flow_b[6]
    cdef double from_supply[6]
    cdef double throttling[6]
    cdef double leakage[6]
    cdef double carried[6]
    cdef double burst[6]
    cdef double burst_slope[6]
    cdef int i
    memset(burst, 0, sizeof(burst))
    memset(burst_slope, 0, sizeof(burst_slope))
    if s.broken:
        # the hose of chamber A is open to the air; its blocking valve may shut
        for i in range(6):
            k = s.burst[i] * way_to_valve(s, i)
            burst[i] = k * root(s.pressure_a[i], p.laminar2, &slope_a)
            burst_slope[i] = k * slope_a
    for i in range(6):
        x = s.spool[i]
        x = x - p.keys.valve_overlap if x > p.keys.valve_overlap else (x + p.keys.valve_overlap if x < -p.keys.valve_overlap else 0.0)
        out = x >= 0.0
        k = p.flow_gain * fabs(x) * s.open[i] * s.share[i]
        # drops over the edges, positive when oil flows from supply to tank
        drop_a[i] = s.line - s.pressure_a[i] if out else s.pressure_a[i] - s.back
        drop_b[i] = s.pressure_b[i] - s.back if out else s.line - s.pressure_b[i]
        flow_a[i] = k * root(drop_a[i], p.laminar2, &slope_a)
        flow_b[i] = k * root(drop_b[i], p.laminar2, &slope_b)
        slope_a *= k
        slope_b *= k
        y = s.legs.length[i] - p.platform.length_min[i]
        Va = p.keys.dead_volume_a + p.keys.piston_area_a * y
        Vb = p.keys.dead_volume_b + p.keys.piston_area_b * (p.stroke - y)
        ca = dt_beta / Va
        cb = dt_beta / Vb
        leak = p.keys.leakage_internal * (s.pressure_a[i] - s.pressure_b[i])
        outer_a = p.keys.leakage_external * (s.pressure_a[i] - p.keys.tank_pressure)
        outer_b = p.keys.leakage_external * (s.pressure_b[i] - p.keys.tank_pressure)
        da = (flow_a[i] if out else -flow_a[i]) - p.keys.piston_area_a * rate[i] - leak - outer_a - burst[i]
        db = p.keys.piston_area_b * rate[i] - (flow_b[i] if out else -flow_b[i]) + leak - outer_b
        da *= ca / (1.0 + ca * (slope_a + p.keys.leakage_internal + p.keys.leakage_external + burst_slope[i]))
        db *= cb / (1.0 + cb * (slope_b + p.keys.leakage_internal + p.keys.leakage_external))
        # what flows with the new pressures
        flow_a[i] -= slope_a * da if out else -slope_a * da
        flow_b[i] += slope_b * db if out else -slope_b * db
        from_supply[i] = flow_a[i] if out else flow_b[i]
        throttling[i] = flow_a[i] * drop_a[i] + flow_b[i] * drop_b[i] + burst[i] * s.pressure_a[i]
        leakage[i] = leak * (s.pressure_a[i] - s.pressure_b[i]) + outer_a * s.pressure_a[i] + outer_b * s.pressure_b[i]
        carried[i] = rate[i] * (p.keys.piston_area_a * s.pressure_a[i] * s.pressure_a[i]
                                - p.keys.piston_area_b * s.pressure_b[i] * s.pressure_b[i])
        s.pressure_a[i] += da
        s.pressure_b[i] += db
    # cavitation: kept at zero and counted; the ledger gets what the oil held below it
    for i in range(6):
        y = s.legs.length[i] - p.platform.length_min[i]
        if s.pressure_a[i] < 0.0:
            s.energy[ENERGY_CAVITATION] -= half_beta * s.pressure_a[i] * s.pressure_a[i] * (p.keys.dead_volume_a + p.keys.piston_area_a * y)
            s.pressure_a[i] = 0.0
            s.cavitation += 1
        if s.pressure_b[i] < 0.0:
            s.energy[ENERGY_CAVITATION] -= half_beta * s.pressure_b[i] * s.pressure_b[i] * (
                p.keys.dead_volume_b + p.keys.piston_area_b * (p.stroke - y))
            s.pressure_b[i] = 0.0
            s.cavitation += 1
    s.energy[ENERGY_THROTTLING] += p.dt * sum_of_six(throttling)
    s.energy[ENERGY_LEAKAGE] += p.dt * sum_of_six(leakage)
    s.energy[ENERGY_CARRIED] -= p.dt * half_beta * sum_of_six(carried)
    used[0] = sum_of_six(from_supply)
    back[0] = sum_of_six(flow_a) + sum_of_six(flow_b) - used[0]


cdef inline void supply_and_lines(const HydraulicParams *p, HydraulicState *s, double used, double back) noexcept nogil:
    """(6). used: out of the supply line; back: into the return line, m3/s."""
    cdef double out = used, drop, slope, c, change, pump = 0.0, ratio
    if p.keys.line_volume > 0.0:
        c = p.dt * p.keys.bulk_modulus / p.keys.line_volume
        # accumulator to valves
        drop = s.supply - s.line
        out = p.line_gain * root(drop, p.laminar2, &slope)
        slope *= p.line_gain
        change = c * (out - used) / (1.0 + c * slope)
        out -= slope * change
        s.line += change
        s.energy[ENERGY_LINES] += p.dt * out * drop
        # valves to tank
        drop = s.back - p.keys.tank_pressure
        c = p.dt * p.keys.bulk_modulus / p.keys.line_volume
        change = p.line_gain * root(drop, p.laminar2, &slope)
        slope *= p.line_gain
        ratio = change
        change = c * (back - change) / (1.0 + c * slope)
        s.energy[ENERGY_LINES] += p.dt * (ratio + slope * change) * s.back
        s.back += change
    else:
        s.energy[ENERGY_LINES] += p.dt * back * p.keys.tank_pressure
    if p.keys.accumulator_gas > 0.0:
        if s.supply_lost == 0.0:
            pump = p.keys.pump_gain * (p.keys.supply_pressure - s.supply)
            pump = 0.0 if pump < 0.0 else (p.keys.pump_flow if pump > p.keys.pump_flow else pump)
        s.energy[ENERGY_SUPPLY] += p.dt * pump * s.supply
        # p V^kappa over the step by the trapezoidal rule: what it leaves is below rounding
        change = p.dt * (out - pump)
        ratio = 0.5 * p.keys.gas_exponent * change / (s.gas + 0.5 * change)
        s.gas += change
        s.supply *= (1.0 - ratio) / (1.0 + ratio)
    else:
        s.energy[ENERGY_SUPPLY] += p.dt * out * s.supply
    if s.supply_lost > 0.0:
        # what is left flows off elsewhere
        change = s.supply_lost * p.dt * (s.supply - p.keys.tank_pressure)
        if p.keys.accumulator_gas > 0.0:
            s.energy[ENERGY_SUPPLY] -= change * s.gas / (p.keys.gas_exponent - 1.0)
        s.supply -= change
    if p.keys.line_volume == 0.0:
        s.line = s.supply


cdef inline void motors(const HydraulicParams *p, HydraulicState *s, const double *rate) noexcept nogil:
    """(9) with the force that the rod has felt, and the ledger of it; a supply that is lost lets the brakes in."""
    cdef double drive, motor_rate, most, lost = 0.0, given = 0.0
    cdef int i
    for i in range(6):
        drive = p.keys.motor_force_max * s.spool[i] * s.share[i]
        motor_rate = (s.motor_rate[i] + p.dt * (drive - s.force[i]) * p.per_motor_mass) * p.motor_keep
        # the brake stops, it does not push
        most = p.dt * p.keys.brake_force * (1.0 - s.open[i]) * p.per_motor_mass
        lost += p.keys.motor_damping * motor_rate * motor_rate
        given += drive * motor_rate
        if s.open[i] < 1.0:
            drive = clip(motor_rate, most)
            lost += drive * motor_rate / (p.dt * p.per_motor_mass)
            motor_rate -= drive
        # work that the spring does not keep: what its damping takes
        lost += p.keys.screw_damping * (s.motor_rate[i] - s.leg_rate[i]) * (motor_rate - rate[i])
        s.motor_rate[i] = motor_rate
        s.motor[i] += p.dt * motor_rate
    s.energy[ENERGY_SUPPLY] += p.dt * given
    s.energy[ENERGY_FRICTION] += p.dt * lost
    s.supply -= s.supply_lost * p.dt * s.supply
    s.line = s.supply


cdef inline void blocking_valves(const HydraulicParams *p, HydraulicState *s) noexcept nogil:
    """Opening of each leg's way to its valve: the chain, a lost supply, or a drive without power shuts it over a stated time; it opens at
    once."""
    cdef int i
    if s.blocked or s.line < p.keys.blocking_pressure:
        s.blocking -= p.blocking_rate
        if s.blocking < 0.0:
            s.blocking = 0.0
    else:
        s.blocking = 1.0
    for i in range(6):
        if ((s.held | s.shut) >> i) & 1:
            s.own_valve[i] -= p.blocking_rate
            if s.own_valve[i] < 0.0:
                s.own_valve[i] = 0.0
        else:
            s.own_valve[i] = 1.0
        s.open[i] = way_to_valve(s, i)


cdef void place(HydraulicParams *p, HydraulicState *s) noexcept nogil:
    """Legs at the pose, and their rates."""
    all_legs(&p.platform, s.X_WP, &s.legs)
    apply_jacobian(&s.legs, s.V_WP, s.leg_rate)


cdef void hydraulic_advance(Hydraulic *machine) noexcept nogil:
    """One step."""
    cdef HydraulicParams *p = &machine.params
    cdef HydraulicState *s = &machine.state
    cdef Friction f
    cdef Joints j
    cdef double M[21]
    cdef double b[6]
    cdef double rate[6]
    cdef double work[6]
    cdef double lost[6]
    cdef double cushion[6]
    cdef double used, back
    cdef int i
    s.step += 1
    blocking_valves(p, s)
    setpoints(s)
    if p.electric:
        commands_of_motors(p, s)
    else:
        commands_of_valves(p, s)
    move_valves(p, s)
    forces_of_legs(p, s, &f, &j)
    bodies_of_legs(p, s, &j)
    motion_equations(p, s, &j, M, b)
    if spatial.symmetric_solve(M, b, s.A_WP) != 0:
        s.status |= MACHINE_SINGULAR
        memset(s.A_WP, 0, sizeof(s.A_WP))
        memset(s.V_WP, 0, sizeof(s.V_WP))
    # platform
    for i in range(6):
        s.V_WP[i] += p.dt * s.A_WP[i]
    put_pose(pose_of(add(vec(s.X_WP), mul(p.dt, vec(s.V_WP))), turned(quat(s.X_WP + 3), vec(s.V_WP + 3), p.dt)), s.X_WP)
    apply_jacobian(&s.legs, s.V_WP, rate)
    if p.electric:
        motors(p, s, rate)
    else:
        pressures(p, s, rate, &used, &back)
        supply_and_lines(p, s, used, back)
    # seals, cushions, work
    for i in range(6):
        s.friction[i] = f.constant[i] + f.slope[i] * rate[i]
        s.bristle[i] = (s.bristle[i] + p.dt * rate[i]) * f.keep[i]
        work[i] = s.force[i] * rate[i]
        lost[i] = s.friction[i] * rate[i]
        cushion[i] = (f.cushion_slope[i] * rate[i] - f.cushion[i]) * rate[i]
    s.energy[ENERGY_LEGS] += p.dt * sum_of_six(work)
    s.energy[ENERGY_FRICTION] += p.dt * sum_of_six(lost)
    s.energy[ENERGY_CUSHION] += p.dt * sum_of_six(cushion)
    s.energy[ENERGY_CONTACT] += p.dt * spatial.power(s.V_WP, s.wrench)
    place(p, s)


cdef void hydraulic_inject(Hydraulic *machine, int code, int index, double value) noexcept nogil:
    """A fault of the machine; the names of the linear drives mean what does the same here."""
    cdef HydraulicState *s = &machine.state
    cdef int i
    if code == INJECTION_CLEAR:
        s.held = 0
        s.runs = 0
        s.broken = 0
        s.blocked = 0
        s.supply_lost = 0.0
        for i in range(6):
            s.share[i] = 1.0
            s.spool_free[i] = 1.0
            s.burst[i] = 0.0
    elif code == INJECTION_LEG_STUCK:
        s.held |= 1u << index
    elif code == INJECTION_LEG_RUNAWAY:
        s.runs |= 1u << index
        s.run_rate[index] = value
    elif code == INJECTION_LEG_SLOW:
        s.share[index] = value
    elif code == INJECTION_SUPPLY_LOSS:
        s.supply_lost = 1.0 / (value if value > 1e-3 else SUPPLY_LOSS_S)
    elif code == INJECTION_LINE_BURST:
        s.broken |= 1u << index
        s.burst[index] = ORIFICE * value
    elif code == INJECTION_VALVE_STUCK:
        s.spool_free[index] = 0.0


cdef int hydraulic_blocked(const Hydraulic *machine, int leg) noexcept nogil:
    """What the drive of a leg knows: the blocking valves of all legs, or its own, which it has let go."""
    return machine.state.blocking < 1.0 or (machine.state.shut >> leg) & 1


cdef int hydraulic_supply_low(const Hydraulic *machine) noexcept nogil:
    return machine.state.line < machine.params.keys.supply_low


# --------------------------------------------------------------------------------------------------------- parameters

HYDRAULIC_PARAMETERS = (
    Parameter("actuator", "str", "-", "hydraulic: cylinders behind servo valves; electric: motors on screws",
              "hydraulic", choices=("hydraulic", "electric")),
    Parameter("platform_mass_kg", "float", "kg", "platform with all that rides on it, but for what hangs on a load cell there", 2500.0,
              low=1.0, high=1e6),
    Parameter("platform_com_m", "floats", "m", "its centre of mass, in P", (0.15, 0.0, 0.0), low=-10.0, high=10.0, shape=3),
    Parameter("platform_inertia_kg_m2", "rows", "kg.m2", "its inertia about that centre, in P axes",
              ((3400.0, 0.0, 0.0), (0.0, 2100.0, 0.0), (0.0, 0.0, 2100.0)), low=-1e7, high=1e7, shape=(3, 3)),
    Parameter("cylinder_mass_kg", "float", "kg", "cylinder of a leg, which swings about the base joint", 180.0, low=0.0, high=1e5),
    Parameter("cylinder_com_m", "float", "m", "its centre of mass from the base joint, along the leg", 0.9, low=0.0, high=10.0),
    Parameter("cylinder_inertia_kg_m2", "float", "kg.m2", "its inertia about the base joint", 232.0, low=0.0, high=1e6),
    Parameter("rod_mass_kg", "float", "kg", "rod of a leg, which slides in the cylinder", 70.0, low=0.0, high=1e5),
    Parameter("rod_com_m", "float", "m", "its centre of mass from the platform joint, along the leg", 1.0, low=0.0, high=10.0),
    Parameter("rod_inertia_kg_m2", "float", "kg.m2", "its inertia about its own centre", 28.0, low=0.0, high=1e6),
    Parameter("piston_area_a_m2", "float", "m2", "piston area of chamber A, which pushes", 6.2e-3, low=1e-6, high=1.0),
    Parameter("piston_area_b_m2", "float", "m2", "ring area of chamber B, which pulls", 6.2e-3, low=1e-6, high=1.0),
    Parameter("dead_volume_a_m3", "float", "m3", "oil of chamber A with the rod in", 4e-4, low=1e-7, high=1.0),
    Parameter("dead_volume_b_m3", "float", "m3", "oil of chamber B with the rod out", 4e-4, low=1e-7, high=1.0),
    Parameter("bulk_modulus_pa", "float", "Pa", "effective bulk modulus of the oil", 1.4e9, low=1e7, high=3e9),
    Parameter("leakage_internal_m3_per_s_pa", "float", "m3/(s.Pa)", "laminar leakage between the chambers", 2e-13, low=0.0, high=1e-8),
    Parameter("leakage_external_m3_per_s_pa", "float", "m3/(s.Pa)", "laminar leakage of a chamber to the tank", 0.0, low=0.0, high=1e-8),
    Parameter("valve_flow_m3_per_s", "float", "m3/s", "rated flow of a servo valve", 200.0 / 6e4, low=1e-6, high=1.0),
    Parameter("valve_pressure_drop_pa", "float", "Pa", "drop over both edges at the rated flow", 7e6, low=1e4, high=1e8),
    Parameter("valve_laminar_pressure_pa", "float", "Pa", "drop below which the flow is laminar", 1e5, low=1.0, high=1e7),
    Parameter("valve_frequency_hz", "float", "Hz", "natural frequency of the spool", 90.0, low=1.0, high=2000.0),
    Parameter("valve_damping", "float", "-", "damping ratio of the spool", 0.8, low=0.05, high=5.0),
    Parameter("valve_slew_per_s", "float", "1/s", "greatest rate of the spool, strokes a second", 100.0, low=0.1, high=1e5),
    Parameter("valve_overlap", "float", "-", "overlap of the edges, share of the spool's stroke", 0.002, low=0.0, high=0.2),
    Parameter("friction_viscous_n_s_per_m", "float", "N.s/m", "viscous friction of a leg", 2000.0, low=0.0, high=1e6),
    Parameter("friction_coulomb_n", "float", "N", "sliding friction of a leg", 300.0, low=0.0, high=1e5),
    Parameter("friction_static_n", "float", "N", "friction of a leg before it slides; not below the sliding one", 450.0, low=0.0, high=1e5),
    Parameter("friction_stribeck_m_s", "float", "m/s", "speed at which it has fallen half way", 0.01, low=1e-5, high=1.0),
    Parameter("friction_bristle_n_per_m", "float", "N/m", "stiffness of the seals at rest", 3e7, low=1e4, high=1e10),
    Parameter("friction_bristle_damping_n_s_per_m", "float", "N.s/m", "damping of the seals at rest", 3e4, low=0.0, high=1e7),
    Parameter("cushion_length_m", "float", "m", "end cushions: length", 0.05, low=0.0, high=1.0),
    Parameter("cushion_stiffness_n_per_m2", "float", "N/m2", "force by square of the depth", 5e8, low=0.0, high=1e12),
    Parameter("cushion_damping_n_s_per_m2", "float", "N.s/m2", "damping by depth", 1e6, low=0.0, high=1e10),
    Parameter("position_gain_per_s", "float", "1/s", "drive: rate by position error", 40.7, low=0.0, high=1e3),
    Parameter("velocity_feedforward", "float", "-", "drive: share of the velocity setpoint that it uses", 0.136, low=-1.0, high=2.0),
    Parameter("pressure_gain_per_pa", "float", "1/Pa", "drive: spool by pressure difference", 6e-8, low=0.0, high=1e-5),
    Parameter("pressure_highpass_hz", "float", "Hz", "drive: a pressure difference below this is let stand", 0.5, low=0.0, high=100.0),
    Parameter("motor_force_max_n", "float", "N", "electric: force on the screw at the limit of the current", 130e3, low=1.0, high=1e7),
    Parameter("motor_mass_kg", "float", "kg", "electric: motor and screw, as a mass on the rod", 1500.0, low=1.0, high=1e6),
    Parameter("motor_damping_n_s_per_m", "float", "N.s/m", "electric: viscous friction of motor and nut", 5e3, low=0.0, high=1e7),
    Parameter("screw_stiffness_n_per_m", "float", "N/m", "electric: screw, nut and bearings", 2e8, low=1e5, high=1e10),
    Parameter("screw_damping_n_s_per_m", "float", "N.s/m", "electric: damping of the same", 6e4, low=0.0, high=1e7),
    Parameter("brake_force_n", "float", "N", "electric: holding force of the brake", 150e3, low=0.0, high=1e7),
    Parameter("speed_gain_n_s_per_m", "float", "N.s/m", "electric: drive: force by error of the motor's speed", 3e5, low=0.0, high=1e8),
    Parameter("speed_reset_s", "float", "s", "electric: drive: reset time of the speed controller", 0.05, low=1e-3, high=100.0),
    Parameter("supply_pressure_pa", "float", "Pa", "supply pressure at rest", 21e6, low=1e5, high=1e8),
    Parameter("tank_pressure_pa", "float", "Pa", "tank pressure", 0.0, low=0.0, high=1e7),
    Parameter("accumulator_gas_m3", "float", "m3", "gas of the accumulator at the supply pressure, 0: stiff supply", 0.05, low=0.0,
              high=10.0),
    Parameter("gas_exponent", "float", "-", "polytropic exponent of the gas", 1.3, low=1.001, high=2.0),
    Parameter("pump_flow_m3_per_s", "float", "m3/s", "greatest flow of the pump", 429.0 / 6e4, low=0.0, high=1.0),
    Parameter("pump_gain_m3_per_s_pa", "float", "m3/(s.Pa)", "flow of the pump by what the pressure lacks", 1e-8, low=0.0, high=1e-4),
    Parameter("line_volume_m3", "float", "m3", "oil in the supply line, and in the return line, 0: no lines", 4e-3, low=0.0, high=1.0),
    Parameter("line_flow_m3_per_s", "float", "m3/s", "flow at which a line loses line_pressure_drop_pa", 0.02, low=1e-6, high=10.0),
    Parameter("line_pressure_drop_pa", "float", "Pa", "loss of a line at line_flow_m3_per_s", 3e5, low=1.0, high=1e8),
    Parameter("blocking_time_s", "float", "s", "blocking valves (electric: brakes): time to shut", 0.15, low=1e-3, high=1.0),
    Parameter("blocking_pressure_pa", "float", "Pa", "blocking valves: they shut when the supply at the valves is below this", 5e6, low=0.0,
              high=1e8),
    Parameter("supply_low_pa", "float", "Pa", "the drives say that the supply is low below this", 9e6, low=0.0, high=1e8),
)


cdef class HydraulicMachine:
    """Six hydraulic legs and their platform, by themselves: for a plant, for identification and for tests.

    platform: Platform. gravity_m_s2 (3,): in W. carried_mass_kg at carried_com_m (3,) in P: a point mass beside `platform_mass_kg` (what
    hangs on a load cell on the platform). X_WP (7,): where it stands at first, None: the neutral pose. step_s: of `advance`. Keys:
    `PARAMETERS`.
    Raises ValueError naming key, value and limit; also when the legs are not long enough for their bodies.
    """

    PARAMETERS = HYDRAULIC_PARAMETERS

    def __init__(self, *, platform, gravity_m_s2=(-9.80665, 0.0, 0.0), carried_mass_kg=0.0, carried_com_m=(0.0, 0.0, 0.0), X_WP=None,
                 step_s=5e-5, **given):
        cdef HydraulicParams *p = &self.machine.params
        cdef double more[10]
        cdef Vec3 com, carried_com
        cdef double J[6]
        cdef int i
        keys = self.keys = checked(HYDRAULIC_PARAMETERS, given)
        memset(&self.machine, 0, sizeof(Hydraulic))
        self.platform = platform
        fill_hydraulic(&p.keys, keys)
        p.platform = (<Platform?>platform).params
        p.dt = self.step_s = step_s
        inertia = np.array(keys["platform_inertia_kg_m2"])
        if not np.allclose(inertia, inertia.T, rtol=1e-9, atol=1e-9) or np.linalg.eigvalsh(inertia)[0] <= 0.0:
            raise ValueError(f"platform_inertia_kg_m2: must be symmetric and positive definite, got {inertia.tolist()}")
        p.gravity_W = xyz(gravity_m_s2[0], gravity_m_s2[1], gravity_m_s2[2])
        com.x, com.y, com.z = keys["platform_com_m"]
        carried_com.x, carried_com.y, carried_com.z = carried_com_m
        for i, (row, column) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
            J[i] = inertia[row, column]
        spatial.inertia_from_centre(keys["platform_mass_kg"], &com.x, J, p.inertia_P)
        if carried_mass_kg > 0.0:
            memset(J, 0, sizeof(J))
            spatial.inertia_from_centre(carried_mass_kg, &carried_com.x, J, more)
            spatial.inertia_add(p.inertia_P, more, p.inertia_P)
        p.cylinder_moment = p.keys.cylinder_mass * p.keys.cylinder_com
        p.swing_inertia = p.keys.cylinder_inertia + p.keys.rod_inertia
        p.leg_mass = p.keys.cylinder_mass + p.keys.rod_mass
        if p.keys.rod_com >= p.platform.length_min[0]:
            raise ValueError(f"rod_com_m: {p.keys.rod_com:g} m is not below the shortest leg, {p.platform.length_min[0]:g} m")
        p.stroke = p.platform.length_max[0] - p.platform.length_min[0]
        p.flow_gain = keys["valve_flow_m3_per_s"] / math.sqrt(0.5 * keys["valve_pressure_drop_pa"])
        p.laminar2 = keys["valve_laminar_pressure_pa"] ** 2
        w = 2.0 * math.pi * keys["valve_frequency_hz"]
        p.valve_stiffness = w * w * step_s
        p.valve_keep = 1.0 / (1.0 + 2.0 * keys["valve_damping"] * w * step_s)
        p.stiction = p.keys.friction_static - p.keys.friction_coulomb
        if p.stiction < 0.0:
            raise ValueError(f"friction_static_n: {p.keys.friction_static:g} N is below friction_coulomb_n, {p.keys.friction_coulomb:g} N")
        p.stribeck = keys["friction_stribeck_m_s"] ** -2
        if p.keys.friction_static == 0.0:
            # no seals: no bristles
            p.keys.friction_bristle, p.keys.friction_bristle_damping, p.keys.friction_coulomb = 0.0, 0.0, 1.0
        if 2.0 * p.keys.cushion_length > p.stroke:
            raise ValueError(f"cushion_length_m: {p.keys.cushion_length:g} m is more than half of the stroke, {p.stroke:g} m")
        p.highpass = 2.0 * math.pi * keys["pressure_highpass_hz"] * step_s
        supply, tank, a = p.keys.supply_pressure, p.keys.tank_pressure, p.keys.piston_area_b / p.keys.piston_area_a
        drops = (supply - a * tank, a * supply - tank)
        if min(drops) <= 0.0:
            raise ValueError(f"tank_pressure_pa: {tank:g} Pa leaves supply_pressure_pa = {supply:g} Pa nothing to do")
        for i in range(2):
            p.speed_inverse[i] = p.keys.piston_area_a / (p.flow_gain * math.sqrt(drops[i] / (1.0 + a**3)))
        p.electric = keys["actuator"] == "electric"
        p.per_motor_mass = 1.0 / p.keys.motor_mass
        p.motor_keep = 1.0 / (1.0 + step_s * p.keys.motor_damping * p.per_motor_mass)
        p.speed_gain, p.per_reset = p.keys.speed_gain / p.keys.motor_force_max, step_s / p.keys.speed_reset
        p.line_gain = keys["line_flow_m3_per_s"] / math.sqrt(keys["line_pressure_drop_pa"])
        p.blocking_rate = step_s / p.keys.blocking_time
        hydraulic_inject(&self.machine, INJECTION_CLEAR, 0, 0.0)
        self.rest(platform.neutral_pose if X_WP is None else X_WP)

    def rest(self, X_WP=None):
        """Stands at a pose (7,), None: the present one, with spools shut and pressures that carry weight and wrench; the ledger begins
        again. Injected faults stay."""
        cdef HydraulicParams *p = &self.machine.params
        cdef HydraulicState *s = &self.machine.state
        cdef int i
        if X_WP is not None:
            for i in range(7):
                s.X_WP[i] = X_WP[i]
            put_quat(normalized(quat(s.X_WP + 3)), s.X_WP + 3)
        memset(s.V_WP, 0, sizeof(s.V_WP))
        memset(s.A_WP, 0, sizeof(s.A_WP))
        memset(s.spool, 0, sizeof(s.spool))
        memset(s.spool_rate, 0, sizeof(s.spool_rate))
        memset(s.command, 0, sizeof(s.command))
        memset(s.bristle, 0, sizeof(s.bristle))
        memset(s.friction, 0, sizeof(s.friction))
        memset(s.target_rate, 0, sizeof(s.target_rate))
        memset(s.energy, 0, sizeof(s.energy))
        s.cavitation = 0
        s.status = 0
        s.saturated = 0
        s.supply = s.line = p.keys.supply_pressure
        s.back = p.keys.tank_pressure
        s.gas = p.keys.accumulator_gas
        s.blocking = 1.0
        for i in range(6):
            s.own_valve[i] = 1.0
        place(p, s)
        forces = self.leg_forces(np.zeros(6))
        for i in range(6):
            s.force[i] = forces[i]
            s.open[i] = 1.0
            s.target[i] = s.legs.length[i]
            # chambers share the supply so that a leg without load is in balance
            s.pressure_a[i] = (p.keys.tank_pressure + (p.keys.supply_pressure - p.keys.tank_pressure) * p.keys.piston_area_b
                               / (p.keys.piston_area_a + p.keys.piston_area_b) + 0.5 * s.force[i] / p.keys.piston_area_a)
            s.pressure_b[i] = (p.keys.piston_area_a * s.pressure_a[i] - s.force[i]) / p.keys.piston_area_b
            s.highpass[i] = s.force[i] / p.keys.piston_area_a
            if p.electric:
                s.pressure_a[i] = s.pressure_b[i] = 0.0
                s.motor[i] = s.legs.length[i] + s.force[i] / p.keys.screw_stiffness
                s.integral[i] = s.command[i] = s.spool[i] = s.force[i] / p.keys.motor_force_max
            s.motor_rate[i] = 0.0
        s.stored_start = self.stored()

    def advance(self, int64_t steps=1):
        """`steps` steps with the present setpoints and wrench."""
        with nogil:
            for _ in range(steps):
                hydraulic_advance(&self.machine)

    def play(self, leg, rate, int64_t steps, int64_t delay=0):
        """A row of setpoints every `steps` steps, each `delay` steps late; the first holds before. leg, rate: (n, 6) m joint to joint, m/s.

        Returns (n, 25) at the rows' own times: leg lengths m, pressures a and b Pa, spools, six each, and the pressure at the valves."""
        cdef double[:, ::1] u = np.ascontiguousarray(leg, float), du = np.ascontiguousarray(rate, float)
        cdef int64_t n = u.shape[0], k, row, step = 0
        if u.shape[1] != 6 or du.shape[0] != n or du.shape[1] != 6:
            raise ValueError(f"leg and rate: must be (n, 6) both, got ({u.shape[0]}, {u.shape[1]}), ({du.shape[0]}, {du.shape[1]})")
        if n == 0 or steps < 1 or delay < 0:
            raise ValueError(f"steps: must be at least 1, delay at least 0, and a row at least, got {steps}, {delay}, {n}")
        found = np.empty((n, 25))
        cdef double[:, ::1] out = found
        cdef HydraulicState *s = &self.machine.state
        with nogil:
            for k in range(n):
                memcpy(&out[k, 0], s.legs.length, sizeof(s.legs.length))
                memcpy(&out[k, 6], s.pressure_a, sizeof(s.pressure_a))
                memcpy(&out[k, 12], s.pressure_b, sizeof(s.pressure_b))
                memcpy(&out[k, 18], s.spool, sizeof(s.spool))
                out[k, 24] = s.line
                for _ in range(steps):
                    row = (step - delay) // steps if step >= delay else 0
                    memcpy(s.target, &u[row, 0], sizeof(s.target))
                    memcpy(s.target_rate, &du[row, 0], sizeof(s.target_rate))
                    hydraulic_advance(&self.machine)
                    step += 1
        return found

    def set_legs(self, leg, rate=None):
        """Setpoints of the drives, (6,) m joint to joint and (6,) m/s; they act in the next step."""
        cdef int i
        for i in range(6):
            self.machine.state.target[i] = leg[i]
            self.machine.state.target_rate[i] = 0.0 if rate is None else rate[i]

    def set_wrench(self, W):
        """What the contact exerts on the platform, (6,) N and N.m at P in W axes; it acts until the next call."""
        cdef int i
        for i in range(6):
            self.machine.state.wrench[i] = W[i]

    def set_motion(self, X_WP, V_WP):
        """Pose (7,) and twist (6,) as they are from now on; pressures and spools stay."""
        cdef int i
        for i in range(7):
            self.machine.state.X_WP[i] = X_WP[i]
        for i in range(6):
            self.machine.state.V_WP[i] = V_WP[i]
        place(&self.machine.params, &self.machine.state)

    def block(self, bint blocked=True):
        """The emergency chain shuts the blocking valves, or opens them again."""
        self.machine.state.blocked = blocked

    def inject(self, int code, int index=0, double value=0.0):
        """A fault by its number (drivers.simulated.injections)."""
        if not 0 <= index < 6:
            raise ValueError(f"index: must be within 0 ... 5, got {index}")
        hydraulic_inject(&self.machine, code, index, value)

    def snapshot(self):
        """State of the machine as bytes."""
        return PyBytes_FromStringAndSize(<const char *>&self.machine.state, sizeof(HydraulicState))

    def restore(self, bytes snapshot):
        """Takes back what `snapshot` gave. Raises ValueError for one of another size."""
        if <size_t>len(snapshot) != sizeof(HydraulicState):
            raise ValueError(f"snapshot has {len(snapshot)} bytes, the machine's state has {sizeof(HydraulicState)}")
        memcpy(&self.machine.state, PyBytes_AS_STRING(snapshot), sizeof(HydraulicState))

    def state_fields(self):
        return self.machine.state

    def state_bounds(self):
        return ({"cavitation": COUNT, "step": COUNT}
                | {name: WORD for name in ("held", "shut", "broken", "saturated", "blocked", "status", "runs", "unused")})

    def state(self):
        """Pose, twist, d/dt of the twist, legs, pressures, valves, forces, supply: arrays and numbers in SI units."""
        cdef HydraulicState *s = &self.machine.state
        out = {
            "X_WP": _array(s.X_WP, 7), "V_WP": _array(s.V_WP, 6), "A_WP": _array(s.A_WP, 6), "leg": _array(s.legs.length, 6),
            "leg_rate": _array(s.leg_rate, 6), "pressure_a": _array(s.pressure_a, 6), "pressure_b": _array(s.pressure_b, 6),
            "spool": _array(s.spool, 6), "command": _array(s.command, 6), "force": _array(s.force, 6), "friction": _array(s.friction, 6),
        }
        out |= {"time": s.step * self.step_s, "supply_pressure": s.line, "accumulator_pressure": s.supply, "return_pressure": s.back,
                "gas": s.gas, "blocking": s.blocking, "saturated": s.saturated, "cavitation": s.cavitation, "status": s.status}
        return out

    def wrench(self):
        """(6,) N and N.m: what the contact exerts on the platform, at P in W axes."""
        return _array(self.machine.state.wrench, 6)

    def mass_matrix(self):
        """(6, 6): platform and legs at the present pose, at P in W axes; kg, kg.m, kg.m2."""
        return self._equations()[0]

    def jacobian(self):
        """(6, 6): leg rates by the twist."""
        cdef Legs *legs = &self.machine.state.legs
        return np.array([[legs.ux[i], legs.uy[i], legs.uz[i], legs.tx[i], legs.ty[i], legs.tz[i]] for i in range(6)])

    def leg_forces(self, A_WP):
        """(6,) N that the legs must push with, friction and cushions included, for d/dt of the twist A_WP (6,) at the present pose, twist
        and wrench."""
        M, b = self._equations()
        return np.linalg.solve(self.jacobian().T, M @ np.asarray(A_WP, float) - b)

    def base_wrench(self, A_WP, forces):
        """(6,): what the six legs put on the floor, at the origin of W in W axes, for d/dt of the twist A_WP (6,) and `forces` (6,) of the
        legs (see `leg_forces`) at the present pose and twist."""
        cdef HydraulicParams *p = &self.machine.params
        cdef HydraulicState *s = &self.machine.state
        n, v, w = self.jacobian()[:, :3], _array(s.V_WP, 6)[:3], _array(s.V_WP, 6)[3:]
        r = np.column_stack([_array(s.legs.rx, 6), _array(s.legs.ry, 6), _array(s.legs.rz, 6)])
        length, A = _array(s.legs.length, 6)[:, None], np.asarray(A_WP, float)
        g = np.array([p.gravity_W.x, p.gravity_W.y, p.gravity_W.z])
        # velocity and acceleration of the platform joints, then of length and direction
        joint_v = v + np.cross(w, r)
        joint_a = A[:3] + np.cross(A[3:], r) + np.cross(w, np.cross(w, r))
        rate = np.sum(n * joint_v, axis=1, keepdims=True)
        turn = (joint_v - rate * n) / length
        turn2 = np.sum(turn * turn, axis=1, keepdims=True)
        stretch = np.sum(n * joint_a, axis=1, keepdims=True) + length * turn2
        bend = (joint_a - stretch * n - 2.0 * rate * turn) / length
        # momentum of cylinder and rod
        c = length - p.keys.rod_com
        moved = p.cylinder_moment * bend + p.keys.rod_mass * (stretch * n + 2.0 * rate * turn + c * bend)
        # force of the platform on the rod: (8) for one leg; across the leg from the moment about the base joint
        along = p.keys.rod_mass * (stretch - c * turn2 - np.sum(n * g, axis=1, keepdims=True)) - np.asarray(forces, float)[:, None]
        swing = p.swing_inertia + p.keys.rod_mass * c * c
        turning = swing * (bend + turn2 * n) + 2.0 * p.keys.rod_mass * c * rate * turn
        across = (turning - (p.cylinder_moment + p.keys.rod_mass * c) * (g - np.sum(n * g, axis=1, keepdims=True) * n)) / length
        on_floor = along * n + across + p.leg_mass * g - moved
        return np.r_[on_floor.sum(axis=0), np.cross(self.platform.base_joints, on_floor).sum(axis=0)]

    def oil_stiffness(self):
        """(6,) N/m of the shut legs at the present pose: beta (A_a^2 / V_a + A_b^2 / V_b); of electric ones that of the screw."""
        cdef HydraulicParams *p = &self.machine.params
        if p.electric:
            return np.full(6, p.keys.screw_stiffness)
        y = _array(self.machine.state.legs.length, 6) - p.platform.length_min[0]
        return p.keys.bulk_modulus * (p.keys.piston_area_a**2 / (p.keys.dead_volume_a + p.keys.piston_area_a * y)
                                      + p.keys.piston_area_b**2 / (p.keys.dead_volume_b + p.keys.piston_area_b * (p.stroke - y)))

    def stored(self):
        """J in motion, height, oil, lines, gas: what the ledger finds in the machine."""
        cdef HydraulicParams *p = &self.machine.params
        cdef HydraulicState *s = &self.machine.state
        V, X, n = _array(s.V_WP, 6), _array(s.X_WP, 7), self.jacobian()[:, :3]
        y = _array(s.legs.length, 6) - p.platform.length_min[0]
        g = np.array([p.gravity_W.x, p.gravity_W.y, p.gravity_W.z])
        pa, pb = _array(s.pressure_a, 6), _array(s.pressure_b, 6)
        cdef Vec3 h = rotate(quat(s.X_WP + 3), vec(p.inertia_P + 1))
        height = g @ (p.inertia_P[0] * X[:3] + np.array([h.x, h.y, h.z]))
        height += float(np.sum((p.cylinder_moment + p.keys.rod_mass * (y + p.platform.length_min[0] - p.keys.rod_com)) * (n @ g)))
        total = 0.5 * V @ self.mass_matrix() @ V - height
        if p.electric:
            total += 0.5 * np.sum(_array(s.motor_rate, 6) ** 2) / p.per_motor_mass
            return float(total + 0.5 * p.keys.screw_stiffness * np.sum((_array(s.motor, 6) - _array(s.legs.length, 6)) ** 2))
        total += 0.5 / p.keys.bulk_modulus * np.sum((p.keys.dead_volume_a + p.keys.piston_area_a * y) * pa**2
                                                    + (p.keys.dead_volume_b + p.keys.piston_area_b * (p.stroke - y)) * pb**2)
        total += 0.5 / p.keys.bulk_modulus * p.keys.line_volume * (s.line**2 + s.back**2)
        return float(total + (s.supply * s.gas / (p.keys.gas_exponent - 1.0) if p.keys.accumulator_gas > 0.0 else 0.0))

    def energy(self):
        """The ledger since the start or the last `rest`, J: supply + contact + cavitation = lines + throttling + leakage + friction
        + cushion + carried + stored + residual. `legs`: work of the actuators on the rods, a part of it."""
        cdef double *e = self.machine.state.energy
        out = {"supply": e[ENERGY_SUPPLY], "contact": e[ENERGY_CONTACT], "cavitation": e[ENERGY_CAVITATION], "lines": e[ENERGY_LINES],
               "throttling": e[ENERGY_THROTTLING], "leakage": e[ENERGY_LEAKAGE], "friction": e[ENERGY_FRICTION],
               "cushion": e[ENERGY_CUSHION], "carried": e[ENERGY_CARRIED], "stored": self.stored() - self.machine.state.stored_start}
        given = out["supply"] + out["contact"] + out["cavitation"]
        out["residual"] = given - sum(out[key] for key in ("lines", "throttling", "leakage", "friction", "cushion", "carried", "stored"))
        out["legs"] = e[ENERGY_LEGS]
        return out

    def _equations(self):
        """(M, b) of (8) without the forces of the legs."""
        cdef Joints j
        cdef double M[21]
        cdef double b[6]
        memset(&j, 0, sizeof(j))
        bodies_of_legs(&self.machine.params, &self.machine.state, &j)
        motion_equations(&self.machine.params, &self.machine.state, &j, M, b)
        full = np.array([[M[spatial.symmetric_index(i, k)] for k in range(6)] for i in range(6)])
        return full, _array(b, 6)


cdef _array(const double *values, int n):
    return np.array([values[i] for i in range(n)])
