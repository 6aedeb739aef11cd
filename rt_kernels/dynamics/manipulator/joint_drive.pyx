"""Joint drive of a manipulator: DC motor, gear with backlash, digital rate controller. All on the motor side of the gear ratio.

Source: Yaskevich 2020 (8.2.1), (8.2.3)-(8.2.5) with its corrections:

    w_m' = (T_m - T_f - T_g*)/J_m,  T_m' = (-T_m + (K_T/R_L)(V - K_B w_m))/tau            motor
    J* w' = b* + T_g,  J* = J_g + I*/i_R^2,  b* = m_IA/i_R,  phi' = w                     gear input shaft, q = phi/i_R
    T_g = T(delta) + c_g (w_m - w),  delta = phi_m - phi                                  gear
    T(delta) = sign(delta) T_D (delta/B_L)^2 for |delta| < B_L, sign(delta) (T_D + k_g (|delta| - B_L)) beyond

I* is the articulated inertia of the joint without the drive and m_IA its inertial load (both on the joint side), constant within a step.

`drive_step` solves motor and gear together, linearised about the old state in the *increment* of delta (the printed (8.2.5) counts k delta
twice). `staggered_step` is the printed order, motor first with the old gear torque; it is stable in the linear zone for
(h^2 k + 2 h c_g)(1/(eta J_m) - 1/J*) < 4 only. delta is a state of its own: shaft angles grow to 1e4 rad, backlash is 1e-2 rad.
"""

import numpy as np

from libc.math cimport fabs
from libc.string cimport memset

from rt_kernels.model.joint_drive import JOINT_DRIVE
from rt_kernels.parameters import checked


cdef inline double gear_torque(const Drive *d, double delta) noexcept nogil:
    """T(delta), N.m: quadratic inside the backlash, linear beyond."""
    cdef double size = fabs(delta)
    cdef double torque
    if size < d.B_L:
        return d.T_D * delta * size / (d.B_L * d.B_L)
    torque = d.T_D + d.k_g * (size - d.B_L)
    return torque if delta > 0.0 else -torque


cdef inline double gear_stiffness(const Drive *d, double delta) noexcept nogil:
    """dT/d delta, N.m/rad."""
    cdef double size = fabs(delta)
    return 2.0 * d.T_D * size / (d.B_L * d.B_L) if size < d.B_L else d.k_g


cdef inline double load_factor(const Drive *d, double power) noexcept nogil:
    """Gear torque felt by the motor per gear torque: 1/eta when the motor drives (power T_g w_m > 0), eta when the load drives it."""
    cdef double share
    if d.eta == 1.0:
        return 1.0
    share = 0.5 + 0.5 * power / d.P_blend
    share = 0.0 if share < 0.0 else (1.0 if share > 1.0 else share)
    return d.eta + share * (1.0 / d.eta - d.eta)


cdef inline double motor_rate(double load, double friction, double damped, double That, double g, double T_max,
                              double *torque) noexcept nogil:
    """w_m of  damped w_m = T_m - friction + load,  T_m = That - g w_m held within +-T_max. T_m falls with w_m, so there is one solution."""
    cdef double w_m = (load - friction + That) / (damped + g)
    torque[0] = That - g * w_m
    if fabs(torque[0]) > T_max:
        torque[0] = T_max if torque[0] > 0.0 else -T_max
        w_m = (load - friction + torque[0]) / damped
    return w_m


cdef inline double motor_rate_with_friction(double load, double friction, double damped, double That, double g, double T_max,
                                            double *torque) noexcept nogil:
    """As above with Coulomb friction: forwards, backwards, or held at rest. Friction rises with w_m, so exactly one case fits."""
    cdef double w_m = motor_rate(load, friction, damped, That, g, T_max, torque)
    if friction == 0.0 or w_m > 0.0:
        return w_m
    w_m = motor_rate(load, -friction, damped, That, g, T_max, torque)
    if w_m < 0.0:
        return w_m
    torque[0] = T_max if That > T_max else (-T_max if That < -T_max else That)
    return 0.0


cdef struct Terms:              # of the system of one step, from the state at its start
    double T                    # gear torque
    double kap
    double e
    double gain                 # of the voltage
    double f                    # load factor
    double friction


cdef inline Terms terms_of(const Drive *d, const DriveState *s, double h) noexcept nogil:
    cdef Terms t
    t.T = gear_torque(d, s.delta)
    t.kap = h * gear_stiffness(d, s.delta) + d.c_g
    t.e = 1.0 + h / d.tau
    t.gain = h / d.tau * d.K_T / d.R
    t.f = load_factor(d, s.T_g * s.w_m)
    t.friction = d.friction + (d.brake if s.braked else 0.0)
    return t


cdef void drive_step(const Drive *d, DriveState *s, double V, double b, double inertia, double h) noexcept nogil:
    """One step of h [s]: motor voltage V [V], b = m_IA/i_R [N.m] inertial load, inertia = J* [kg.m2]; both on the motor side.

    Backward Euler with angles and motor torque eliminated:
        [J_m/h + c_v + g + f kap    -f kap   ] [w_m+]   [J_m w_m/h + That - T_f - f T(delta)]
        [     -kap               J*/h + kap  ] [ w+ ] = [J* w/h + b* + T(delta)             ]
    kap = h k + c_g, e = 1 + h/tau, g = (h/tau) K_T K_B/(R e), That = (T_m + (h/tau)(K_T/R) V)/e, f = load factor.
    Its determinant is positive.
    The second row is eliminated, which leaves a scalar equation for saturation and friction.
    """
    cdef Terms t = terms_of(d, s, h)
    cdef double row = inertia / h + t.kap
    cdef double right = inertia / h * s.w + b + t.T
    # w+ = (right + kap w_m+)/row
    cdef double damped = d.J_m / h + d.viscous + t.f * t.kap * (inertia / h) / row
    cdef double load = d.J_m / h * s.w_m - t.f * t.T + t.f * t.kap * right / row
    s.w_m = motor_rate_with_friction(load, t.friction, damped, (s.T_m + t.gain * V) / t.e, t.gain * d.K_B / t.e, d.T_max, &s.T_m)
    s.w = (right + t.kap * s.w_m) / row
    s.T_g = t.T + t.kap * (s.w_m - s.w)
    s.delta += h * (s.w_m - s.w)
    s.phi += h * s.w


cdef void drive_response(const Drive *d, const DriveState *s, double V, double h, double *A, double *B) noexcept nogil:
    """The gear torque at the end of `drive_step` as a straight line of the driven rate there, T_g+ = A - B w+, B >= 0.

    The first row of the system solved for w_m+; the motor is taken to stay what it was: moving, held by friction, or at its torque limit.
    """
    cdef Terms t = terms_of(d, s, h)
    cdef double damped = d.J_m / h + d.viscous + t.f * t.kap
    cdef double load = d.J_m / h * s.w_m - t.f * t.T
    if t.friction > 0.0 and s.w_m == 0.0:
        A[0] = t.T
        B[0] = t.kap
        return
    if fabs(s.T_m) < d.T_max:
        damped += t.gain * d.K_B / t.e
        load += (s.T_m + t.gain * V) / t.e
    else:
        load += s.T_m
    load -= t.friction if s.w_m > 0.0 else -t.friction
    A[0] = t.T + t.kap * load / damped
    B[0] = t.kap * (1.0 - t.f * t.kap / damped)


cdef void staggered_step(const Drive *d, DriveState *s, double V, double b, double inertia, double h) noexcept nogil:
    """The same step in the order of (8.2.4), (8.2.5): motor with the gear torque of the step before, then the gear with the new motor."""
    cdef double delta = s.delta
    cdef double k = gear_stiffness(d, delta)
    cdef double offset = gear_torque(d, delta) - k * delta
    cdef double e = 1.0 + h / d.tau
    cdef double gain = h / d.tau * d.K_T / d.R
    cdef double friction = d.friction + (d.brake if s.braked else 0.0)
    cdef double load = d.J_m / h * s.w_m - load_factor(d, s.T_g * s.w_m) * s.T_g
    cdef double w, a = h / inertia
    s.w_m = motor_rate_with_friction(load, friction, d.J_m / h + d.viscous, (s.T_m + gain * V) / e, gain * d.K_B / e, d.T_max, &s.T_m)
    # phi_m+ - phi = delta + h w_m+
    w = (s.w + a * (b + offset + k * (delta + h * s.w_m) + d.c_g * s.w_m)) / (1.0 + a * (d.c_g + h * k))
    s.delta += h * (s.w_m - w)
    s.T_g = offset + k * s.delta + d.c_g * (s.w_m - w)
    s.w = w
    s.phi += h * w


cdef double limited_voltage(const Drive *d, const Controller *c, double V, double w_m, int *limited) noexcept nogil:
    """Voltage [V] that keeps the steady current within T_max/K_T, not against the motion without regeneration, and within V_max (last)."""
    cdef double emf = d.K_B * w_m
    cdef double span = d.R * d.T_max / d.K_T
    cdef double low = emf - span, high = emf + span
    if not c.regenerative:
        if w_m > 0.0:
            low = emf
        elif w_m < 0.0:
            high = emf
    limited[0] = 0
    if V < low:
        V = low
        limited[0] = -1
    elif V > high:
        V = high
        limited[0] = 1
    if V > d.V_max:
        V = d.V_max
        limited[0] = 1
    elif V < -d.V_max:
        V = -d.V_max
        limited[0] = -1
    return V


cdef double control_step(const Drive *d, const Controller *c, ControllerState *k, const DriveState *s, double w_c, double h) noexcept nogil:
    """Motor voltage [V] for the rate command w_c [rad/s, motor side]; called every inner period h, the outer loop runs every `ratio` calls.

    outer: e = w_c - w, I += K_i e T_o, w_ref = w_c + K_p e + I;   inner: V = K_v (w_ref - w_m) + K_B w_m, limited.
    While the voltage is limited the integral only moves out of the limit.
    """
    cdef double e
    if k.count == 0:
        e = w_c - s.w
        if e * k.limited <= 0.0:
            k.integral += c.K_i * e * h * c.ratio
        k.w_ref = w_c + c.K_p * e + k.integral
    k.count = k.count + 1 if k.count + 1 < c.ratio else 0
    return limited_voltage(d, c, c.K_v * (k.w_ref - s.w_m) + d.K_B * s.w_m, s.w_m, &k.limited)


cdef class JointDrive:
    """One joint drive for set-up, tests and parameter studies. Parameters: `JointDrive.PARAMETERS`, as keyword arguments;
    ValueError for limits.

    Everything is on the motor side: rates [rad/s], torques [N.m]; `inertia` arguments are I*/i_R^2 [kg.m2] without J_g.
    """

    PARAMETERS = JOINT_DRIVE

    def __init__(self, **given):
        t = checked(JOINT_DRIVE, given)
        memset(&self.s, 0, sizeof(DriveState))
        memset(&self.k, 0, sizeof(ControllerState))
        self.d.J_m = t["motor_inertia_kg_m2"]
        self.d.tau = t["electrical_time_s"]
        self.d.K_T = t["torque_constant"]
        self.d.K_B = t["back_emf_constant"]
        self.d.R = t["resistance_ohm"]
        self.d.V_max = t["voltage_max_v"]
        self.d.T_max = t["torque_max_n_m"]
        self.d.friction = t["friction_n_m"]
        self.d.viscous = t["viscous_n_m_s_per_rad"]
        self.d.brake = t["brake_n_m"]
        self.d.i_R = t["gear_ratio"]
        self.d.J_g = t["gear_inertia_kg_m2"]
        self.d.k_g = t["gear_stiffness_n_m_per_rad"]
        self.d.T_D = t["backlash_torque_n_m"]
        self.d.B_L = t["backlash_rad"]
        self.d.c_g = t["gear_damping_n_m_s_per_rad"]
        self.d.eta = t["efficiency"]
        self.d.P_blend = t["blend_power_w"]
        self.c.K_v = t["inner_gain"]
        self.c.K_p = t["outer_gain"]
        self.c.K_i = t["outer_integral_gain"]
        self.c.ratio = t["outer_ratio"]
        self.c.regenerative = t["regenerative"]

    @property
    def state(self):
        """dict: w_m, w [rad/s]; T_m, T_g [N.m]; phi_m, phi, delta [rad]; braked."""
        s = self.s
        return {"w_m": s.w_m, "phi_m": s.phi + s.delta, "T_m": s.T_m, "w": s.w, "phi": s.phi, "delta": s.delta, "T_g": s.T_g,
                "braked": bool(s.braked)}

    def set_state(self, w_m=0.0, T_m=0.0, w=0.0, phi=0.0, delta=0.0, T_g=0.0, braked=False):
        """Set all of the state; the controller restarts."""
        values = np.array([w_m, T_m, w, phi, delta, T_g], dtype=float)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"state: {values} is not finite")
        self.s.w_m, self.s.T_m, self.s.w, self.s.phi, self.s.delta, self.s.T_g = values
        self.s.braked = bool(braked)
        memset(&self.k, 0, sizeof(ControllerState))

    def torque(self, double delta):
        """(T, dT/d delta) of the gear at delta [rad]: N.m, N.m/rad."""
        return gear_torque(&self.d, delta), gear_stiffness(&self.d, delta)

    def run(self, voltage, double load, double inertia, double h, bint staggered=False):
        """Steps of h [s] with the voltages (n,) [V], inertial load b* [N.m] and I*/i_R^2 [kg.m2]. Returns (n, 5): w_m, phi_m, T_m, w,
        phi."""
        cdef double[::1] V = np.array(voltage, dtype=float).reshape(-1)
        cdef double[:, ::1] out = np.empty((V.shape[0], 5))
        cdef double J = self.checked_inertia(inertia, h)
        cdef Py_ssize_t i
        with nogil:
            for i in range(V.shape[0]):
                if staggered:
                    staggered_step(&self.d, &self.s, V[i], load, J, h)
                else:
                    drive_step(&self.d, &self.s, V[i], load, J, h)
                self.record(&out[i, 0])
        return np.asarray(out)

    def track(self, rate, double load, double inertia, double h):
        """The controller follows rate commands (n,) [rad/s], one inner period h [s] each. Returns (n, 6): as `run`, and the voltage [V]."""
        cdef double[::1] w_c = np.array(rate, dtype=float).reshape(-1)
        cdef double[:, ::1] out = np.empty((w_c.shape[0], 6))
        cdef double J = self.checked_inertia(inertia, h)
        cdef Py_ssize_t i
        with nogil:
            for i in range(w_c.shape[0]):
                out[i, 5] = control_step(&self.d, &self.c, &self.k, &self.s, w_c[i], h)
                drive_step(&self.d, &self.s, out[i, 5], load, J, h)
                self.record(&out[i, 0])
        return np.asarray(out)

    cdef void record(self, double *row) noexcept nogil:
        row[0] = self.s.w_m
        row[1] = self.s.phi + self.s.delta
        row[2] = self.s.T_m
        row[3] = self.s.w
        row[4] = self.s.phi

    cdef double checked_inertia(self, double inertia, double h) except? -1.0:
        if not (inertia >= 0.0 and np.isfinite(inertia) and inertia + self.d.J_g > 0.0):
            raise ValueError(f"inertia: {inertia} kg.m2, needed: finite, >= 0, with the gear's inertia > 0")
        if not (h > 0.0 and np.isfinite(h)):
            raise ValueError(f"h: {h} s is not a finite number > 0")
        return inertia + self.d.J_g
