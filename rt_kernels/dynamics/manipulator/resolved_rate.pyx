"""Rates of a manipulator's joints from hand-controller rates, one joint, or a stored path; run every outer period (8 ms).

Yaskevich 2020 (8.2) names the inverse problem of rates, slow-down zones and the avoidance of singularities; in formulas:

    w_E = R_NC w,   v_E = R_NC v + w_E x (p_E - p_P)            C axes of the command, P the point whose velocity is commanded
    qd  = J^T (J J^T + lambda^2 S)^-1 [v_E; w_E],  S = diag(L^2, L^2, L^2, 1, 1, 1)
    lambda^2 = lambda_0^2 (1 - sigma/sigma_0)^2 below sigma_0, 0 above; sigma the smallest singular value of S^-1/2 J
    |qd_j| <= rate_max_j, and towards a stop |qd_j| <= -a T + sqrt(a^2 T^2 + 2 a distance), |qd_j| <= k distance

The second keeps room to brake with a after one more period T (the continuous sqrt(2 a distance) passes the stop); the third (k = 1/T unless
given) lets joints with a heavy payload, which lag behind their command, come in without swinging through. One factor scales all
joints, so the direction of the motion stays.  A locked joint has no column in J.
"""

import numpy as np

from libc.math cimport fabs, sqrt

from rt_kernels.algebra.values cimport Mat3, Vec3, add, cross, mat_vec, mul, norm, put, sub, vec, xyz
from rt_kernels.dynamics.manipulator.compliance cimport ArmPlace, arm_place
from rt_kernels.multibody.tree cimport Tree, TREE_REVOLUTE

cdef enum:
    SWEEPS = 8


cdef void rotate_pair(double A[6][6], double V[6][6], int p, int q) noexcept nogil:
    """One Jacobi rotation: A[p][q] becomes 0. Without a transcendental function: t = tan of the angle, the smaller root."""
    cdef double theta, t, c, s, x, y
    cdef int k
    if A[p][q] == 0.0:
        return
    theta = (A[q][q] - A[p][p]) / (2.0 * A[p][q])
    t = 1.0 / (fabs(theta) + sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
    c = 1.0 / sqrt(t * t + 1.0)
    s = t * c
    for k in range(6):
        x = A[k][p]
        y = A[k][q]
        A[k][p] = c * x - s * y
        A[k][q] = s * x + c * y
    for k in range(6):
        x = A[p][k]
        y = A[q][k]
        A[p][k] = c * x - s * y
        A[q][k] = s * x + c * y
        x = V[k][p]
        y = V[k][q]
        V[k][p] = c * x - s * y
        V[k][q] = s * x + c * y


cdef double damped_rates(int n, double sigma_0, double lambda_0, double J[6][ARM_JOINTS], const double *x, double *rates) noexcept nogil:
    """rates (n) = J^T (J J^T + lambda^2)^-1 x of the row-scaled J and x, by the eigenvectors of J J^T (a fixed number of Jacobi sweeps);
    returns the smallest singular value of J."""
    cdef double A[6][6]
    cdef double V[6][6]
    cdef double y[6]
    cdef double z[6]
    cdef double least, sigma, damping = 0.0
    cdef int i, j, k
    for i in range(6):
        for j in range(6):
            A[i][j] = 0.0
            for k in range(n):
                A[i][j] += J[i][k] * J[j][k]
            V[i][j] = 1.0 if i == j else 0.0
    for _ in range(SWEEPS):
        for i in range(5):
            for j in range(i + 1, 6):
                rotate_pair(A, V, i, j)
    least = A[0][0]
    for i in range(1, 6):
        if A[i][i] < least:
            least = A[i][i]
    sigma = sqrt(least) if least > 0.0 else 0.0
    if sigma < sigma_0:
        damping = lambda_0 * (1.0 - sigma / sigma_0)
        damping *= damping
    for i in range(6):
        z[i] = 0.0
        for j in range(6):
            z[i] += V[j][i] * x[j]
        z[i] /= A[i][i] + damping
    for i in range(6):
        y[i] = 0.0
        for j in range(6):
            y[i] += V[i][j] * z[j]
    for k in range(n):
        rates[k] = 0.0
        for i in range(6):
            rates[k] += J[i][k] * y[i]
    return sigma


cdef inline Vec3 limited(Vec3 a, double largest) noexcept nogil:
    # in its direction, of at most this size
    cdef double size = norm(a)
    return mul(largest / size if size > largest else 1.0, a)


cdef void hand_rates(const TreeModel *model, const RateControl *c, RateState *s, const double *command, const double *q,
                     double *rates) noexcept nogil:
    """Joint rates for the commanded [v; w] of the point, axes of the command."""
    cdef double rows[18 * ARM_SLOTS]
    cdef double Jacobian[6 * ARM_JOINTS]
    cdef double J[6][ARM_JOINTS]
    cdef double x[6]
    cdef Vec3 origin = xyz(0.0, 0.0, 0.0)
    cdef Vec3 p_PE, w_E, v_E
    cdef Mat3 R_NC
    cdef int i, k
    model.operations.motion(model, q, NULL, &origin.x, rows)
    model.operations.jacobian(model, rows, c.E.slot, &c.E.p.x, Jacobian)
    # command within its limits, on inertial axes, at E
    p_PE = sub(arm_place(&c.E, rows).p, arm_place(&c.point, rows).p)
    R_NC = arm_place(&c.axes, rows).R
    w_E = mat_vec(R_NC, limited(vec(command + 3), c.angular_max))
    v_E = add(mat_vec(R_NC, limited(vec(command), c.linear_max)), cross(w_E, p_PE))
    put(mul(1.0 / c.length, v_E), x)
    put(w_E, x + 3)
    for i in range(6):
        for k in range(c.n):
            J[i][k] = 0.0 if k == s.locked else Jacobian[i * c.n + k] * (1.0 / c.length if i < 3 else 1.0)
    s.sigma = damped_rates(c.n, c.sigma_0, c.lambda_0, J, x, rates)


cdef inline double braking_rate(double a, double T, double approach, double distance) noexcept nogil:
    """Largest rate that, held for T, still leaves room to brake with a within the distance, and at most approach times the distance; 0 at
    and beyond its end."""
    cdef double rate
    if not distance > 0.0:
        return 0.0
    rate = sqrt(a * a * T * T + 2.0 * a * distance) - a * T
    return rate if rate < approach * distance else approach * distance


cdef void path_rates(const RateControl *c, RateState *s, const double *q, double *rates) noexcept nogil:
    """Straight line in joint space to the next waypoint, all joints arrive together and at rest; after the last they are kept there."""
    cdef double factor, away, allowed
    cdef int k, at, near = 1
    while near and s.waypoint < c.n_path:
        for k in range(c.n):
            if k != s.locked and fabs(c.path[s.waypoint][k] - q[k]) > c.arrived:
                near = 0
        s.waypoint += near
    if c.n_path == 0:
        return
    at = s.waypoint if s.waypoint < c.n_path else c.n_path - 1
    factor = 1.0 / c.period
    for k in range(c.n):
        rates[k] = 0.0 if k == s.locked else c.path[at][k] - q[k]
        away = fabs(rates[k])
        allowed = braking_rate(c.braking[k], c.period, c.approach, away)
        if allowed > c.rate_max[k]:
            allowed = c.rate_max[k]
        if allowed < factor * away:
            factor = allowed / away
    for k in range(c.n):
        rates[k] *= factor


cdef void limit_rates(const RateControl *c, RateState *s, const double *q, double *rates) noexcept nogil:
    """One factor for all joints: rate limits and slow-down towards the stops. Away from a stop there is no limit but the rate's own."""
    cdef double allowed, room
    cdef int k
    s.factor = 1.0
    s.limiting = -1
    for k in range(c.n):
        room = c.high[k] - q[k] if rates[k] > 0.0 else q[k] - c.low[k]
        allowed = braking_rate(c.braking[k], c.period, c.approach, room)
        if allowed > c.rate_max[k]:
            allowed = c.rate_max[k]
        if fabs(rates[k]) * s.factor > allowed:
            s.factor = allowed / fabs(rates[k])
            s.limiting = k
    for k in range(c.n):
        rates[k] *= s.factor


cdef void rate_step(const TreeModel *model, const RateControl *c, RateState *s, int mode, const double *command, int joint,
                    const double *q, double *rates) noexcept nogil:
    """Joint rates [rad/s] at q. Hand: command[6] = [v m/s; w rad/s]. Single: command[0] rad/s for `joint`.
    Otherwise the command is not read."""
    cdef int k
    for k in range(c.n):
        rates[k] = 0.0
    if mode == RATES_HAND:
        hand_rates(model, c, s, command, q, rates)
    elif mode == RATES_SINGLE and joint != s.locked:
        rates[joint] = command[0]
    elif mode == RATES_PATH:
        path_rates(c, s, q, rates)
    limit_rates(c, s, q, rates)


def _vector(value, n, what, unit, positive=True):
    out = np.broadcast_to(np.asarray(value, dtype=float), (n,))
    if not np.all(np.isfinite(out)) or (positive and not np.all(out > 0.0)):
        raise ValueError(f"{what}: {out.tolist()} {unit}, {n} finite numbers{' > 0' if positive else ''} are needed")
    return out


cdef class ResolvedRate:
    """Rate control of an arm given as a `Tree` of revolute joints on a fixed base.

    end_effector        frame at the arm's end
    point               frame on the same body, whose velocity is commanded; None: the end effector
    axes                frame whose axes the command is given in (camera, end effector), or a matrix R_NT (3, 3) of the target's axes
    rate_max, low, high, braking        per joint or one for all: rad/s, rad, rad, rad/s^2
    """

    def __init__(self, Tree tree, str end_effector, axes=None, point=None, *, rate_max, low, high, braking, double period_s=0.008,
                 double linear_max=1.0, double angular_max=0.2, double length_m=5.0, double lambda_0=0.05, double sigma_0=0.05,
                 double arrived_rad=1e-4, approach_per_s=None):
        cdef int k
        if not 0 < tree.nv <= ARM_JOINTS or tree.n > ARM_SLOTS or tree.nq != tree.nv:
            raise ValueError(f"tree: {tree.nv} degrees of freedom, {tree.n} bodies; "
                             f"limits 1...{ARM_JOINTS} single joints, {ARM_SLOTS} bodies")
        for k in range(tree.n):
            if tree.model.body[k].kind != TREE_REVOLUTE:
                raise ValueError(f"tree: joint {k} is not revolute")
        approach = 1.0 / period_s if approach_per_s is None else approach_per_s
        for name, value, unit in (("approach_per_s", approach, "1/s"), ("period_s", period_s, "s"), ("linear_max", linear_max, "m/s"),
                                  ("angular_max", angular_max, "rad/s"),
                                  ("length_m", length_m, "m"), ("lambda_0", lambda_0, ""), ("sigma_0", sigma_0, ""),
                                  ("arrived_rad", arrived_rad, "rad")):
            if not (np.isfinite(value) and value > 0.0):
                raise ValueError(f"{name}: {value} {unit} is not a finite number > 0")
        self.tree = tree
        self.c.n = tree.nv
        self.c.period, self.c.linear_max, self.c.angular_max, self.c.length = period_s, linear_max, angular_max, length_m
        self.c.lambda_0, self.c.sigma_0, self.c.arrived, self.c.approach = lambda_0, sigma_0, arrived_rad, approach
        rate_max, braking = _vector(rate_max, self.c.n, "rate_max", "rad/s"), _vector(braking, self.c.n, "braking", "rad/s^2")
        low, high = _vector(low, self.c.n, "low", "rad", False), _vector(high, self.c.n, "high", "rad", False)
        if not np.all(low < high):
            raise ValueError(f"low: {low.tolist()} rad is not below high {high.tolist()} rad in every joint")
        for k in range(self.c.n):
            self.c.rate_max[k], self.c.low[k], self.c.high[k], self.c.braking[k] = rate_max[k], low[k], high[k], braking[k]
        self.set_place(&self.c.E, end_effector)
        self.set_place(&self.c.point, end_effector if point is None else point)
        if self.c.E.slot < 0 or self.c.point.slot != self.c.E.slot:
            raise ValueError(f"point: frame '{point}' is not on the body of '{end_effector}', which must be moved by the arm")
        self.set_axes(end_effector if axes is None else axes)
        self.s.locked = -1
        self.s.factor = 1.0
        self.s.limiting = -1

    cdef int set_place(self, ArmPlace *at, name) except -1:
        f = self.tree.frame(name)
        at.slot = -1
        R, p = f.R_BF, f.p_BF_B
        if f.body >= 0:
            at.slot = self.tree.slot_of(f.body)
            align = self.tree._align(at.slot).T
            R, p = align @ R, align @ p
        self.fill(at, R, p)
        return 0

    cdef int fill(self, ArmPlace *at, R, p) except -1:
        cdef int i
        for i in range(9):
            (&at.R.xx)[i] = R[i // 3, i % 3]
        at.p = xyz(p[0], p[1], p[2])
        return 0

    def set_axes(self, axes):
        """Axes of the command: a frame's name, or R_NT (3, 3) of a target fixed in the inertial frame."""
        if isinstance(axes, str):
            self.set_place(&self.c.axes, axes)
            return
        R = np.asarray(axes, dtype=float)
        if R.shape != (3, 3) or not np.allclose(R @ R.T, np.eye(3), atol=1e-9) or not np.linalg.det(R) > 0.0:
            raise ValueError(f"axes: {R.tolist()} is not a rotation matrix")
        self.c.axes.slot = -1
        self.fill(&self.c.axes, R, np.zeros(3))

    def set_path(self, path):
        """Waypoints (n, joints) rad within the stops; the sequence starts again."""
        cdef int i, k
        path = np.array(path, dtype=float)
        if path.ndim != 2 or path.shape[1] != self.c.n or not 0 < len(path) <= ARM_WAYPOINTS or not np.all(np.isfinite(path)):
            raise ValueError(f"path: shape {path.shape}, (1...{ARM_WAYPOINTS}, {self.c.n}) of finite numbers is needed")
        for i in range(path.shape[0]):
            for k in range(self.c.n):
                if not self.c.low[k] <= path[i, k] <= self.c.high[k]:
                    raise ValueError(f"path: waypoint {i}, joint {k}: {path[i, k]:g} rad, "
                                     f"limits {self.c.low[k]:g}...{self.c.high[k]:g} rad")
                self.c.path[i][k] = path[i, k]
        self.c.n_path = path.shape[0]
        self.s.waypoint = 0

    def lock(self, joint):
        """Lock one joint by number, None: none."""
        if joint is not None and not 0 <= joint < self.c.n:
            raise ValueError(f"locked joint: {joint}, limits 0...{self.c.n - 1}")
        self.s.locked = -1 if joint is None else joint

    @property
    def status(self):
        """dict: sigma (smallest singular value of the scaled Jacobian), factor, limiting (joint or None), waypoint, path_done."""
        s = self.s
        return {"sigma": s.sigma, "factor": s.factor, "limiting": None if s.limiting < 0 else s.limiting, "waypoint": s.waypoint,
                "path_done": s.waypoint >= self.c.n_path}

    def step(self, q, str mode="hold", command=None, int joint=0):
        """Joint rates (n,) rad/s at q (n,) rad. mode: hold, hand (command (6,) m/s, rad/s), single (command: rad/s of `joint`), path."""
        modes = {"hold": RATES_HOLD, "hand": RATES_HAND, "single": RATES_SINGLE, "path": RATES_PATH}
        if mode not in modes:
            raise ValueError(f"mode: {mode!r}, one of {', '.join(modes)} is needed")
        if not 0 <= joint < self.c.n:
            raise ValueError(f"joint: {joint}, limits 0...{self.c.n - 1}")
        given = np.zeros(6)
        if mode in ("hand", "single"):
            size = 6 if mode == "hand" else 1
            given[:size] = _vector(command, size, "command", "m/s, rad/s" if size == 6 else "rad/s", False)
        cdef double[::1] x = given
        cdef double[::1] at = _vector(q, self.c.n, "q", "rad", False).copy()
        cdef double[::1] rates = np.empty(self.c.n)
        rate_step(self.tree.model, &self.c, &self.s, modes[mode], &x[0], joint, &at[0], &rates[0])
        return np.asarray(rates)
