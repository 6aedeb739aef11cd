# distutils: extra_compile_args = -O3
"""Exact modal propagation of a flexible craft over a step, force held over the step.

Source: Yaskevich 2020, ch. 4 (4.2.3)-(4.2.7) and (4.3.2)-(4.3.5), corrected. One equation per mode, unit modal mass:

    q'' + c q' + w^2 q = T_D^T f_D + R_D^T m_D + (further loads)        c = 2 w delta / sqrt(4 pi^2 + delta^2)
    alpha = -c/2 = -w delta/s,   beta = sqrt(w^2 - alpha^2) = 2 pi w/s,   s = sqrt(4 pi^2 + delta^2)

(the text prints sqrt(4 pi^2 + 1): a damping ratio above one, so no oscillation, from delta = 6.36 on). Over a step dt, with e = exp(alpha
dt), S = sin(beta dt), C = cos(beta dt):

    q+  = c1 q + c2 q' + c3 f        c1 = e (C - alpha/beta S)     c2 = e S/beta      c3 = (1 - c1)/w^2
    q'+ = c4 q + c5 q' + c2 f        c4 = -w^2 c2                  c5 = e (C + alpha/beta S)

(the text prints c3 with 1/c for 1/w^2 and the "+1" inside the exponential, and another c6). There is no stability limit. Two coefficient
sets are kept, for the two steps of the text (contact and free motion); the state is the same for both.

Frames and units: shapes, loads and outputs in the axes of the port D (the set-up turns them there), at the port's node; load [N, N.m],
displacement [m, rad], rate [m/s, rad/s]; shapes mass-normalised [kg^-1/2, rad m^-1 kg^-1/2].
Assumption of the text: the flexible motion does not act back on the rigid one.

Memory: blocks of four modes, each c1..c5 and then one line per load column; with six loads 352 bytes, read once, front to back. The pass is
limited by the bytes it reads (11 doubles and the state, per mode), so projection, update and output are one pass (modal_pass.inc).
Trap: the force is taken at the start of the step. A contact spring k acting through a shape value T adds energy at the rate k T^2 dt/4;
contact damping of k dt/2 takes it away.
"""

import numpy as np

from libc.string cimport memcpy, memset

from rt_kernels.algebra.values cimport pose, put_pose, put_twist

cdef extern from "rt_kernels/dynamics/modal_block.h" nogil:
    modal_pass_function modal_pass(const char *name)


PORT_LOADS = 6
LOG_DECREMENT_MAX = 20.0


def damping(omega, log_decrement):
    """alpha [1/s] and beta [rad/s] of each mode (4.2.6), (4.2.7), from circular frequency [rad/s] and log decrement; long double arrays."""
    w = np.asarray(omega, dtype=np.longdouble)
    delta = np.asarray(log_decrement, dtype=np.longdouble)
    two_pi = 2 * np.arctan2(np.longdouble(0), np.longdouble(-1))
    s = np.sqrt(two_pi * two_pi + delta * delta)
    return -w * delta / s, two_pi * w / s


def step_coefficients(omega, log_decrement, dt):
    """c1 c2 c3 c4 c5 of each mode for the step `dt` [s]: array (5, N). c6 = c2.

    In long double: c3 is a difference of nearly equal numbers (relative loss up to zeta/(omega dt)), and the long double functions of
    the C library do not depend on the vector instructions of the machine as NumPy's double ones do.
    """
    w = np.asarray(omega, dtype=np.longdouble)
    alpha, beta = damping(omega, log_decrement)
    h = np.longdouble(dt)
    e, S, C = np.exp(alpha * h), np.sin(beta * h), np.cos(beta * h)
    S_half = np.sin(beta * h / 2)
    c1 = e * (C - alpha / beta * S)
    c2 = e * S / beta
    c3 = (-np.expm1(alpha * h) + e * (2 * S_half * S_half + alpha / beta * S)) / (w * w)
    c5 = e * (C + alpha / beta * S)
    return np.array([c1, c2, c3, -w * w * c2, c5]).astype(np.float64)


def _checked(name, values, shape, unit):
    array = np.array(values, dtype=np.float64)
    if array.ndim != len(shape) or any(want is not None and want != got for want, got in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name}: shape {array.shape}, needed {shape}")
    if not np.all(np.isfinite(array)):
        where = int(np.flatnonzero(~np.isfinite(array).reshape(array.shape[0], -1).all(axis=1))[0])
        raise ValueError(f"{name}: row {where} is not finite [{unit}]")
    return array


def _aligned(n):
    # float64 zeros that begin on a cache line
    raw = np.zeros(n + 8)
    offset = (-raw.ctypes.data // 8) % 8
    return raw[offset:offset + n]


cdef class ModalCraft:
    """Modes of one craft seen at its docking port, with their state.

    omega: circular frequencies [rad/s], shape (N,), all > 0 (drop rigid-body modes before). log_decrement: (N,) in 0...20.
    shapes: (N, L), L >= 6: mass-normalised shapes at the port in port axes, three translations then three rotations, then one column per
    further load component (wheels: rotation columns); the last `n_thrusters` of them are thrusters, in the order of the craft's file: shape
    along the thruster's force at its node. steps: (dt of set 0, dt of set 1) [s].
    instructions: "auto", "base", "avx2" or "avx512"; all give the same bits.
    Raises ValueError that names the argument and the row.
    """

    def __init__(self, omega, log_decrement, shapes, steps, instructions="auto", n_thrusters=0):
        omega = _checked("omega", omega, (None,), "rad/s")
        cdef int n = omega.shape[0]
        delta = _checked("log_decrement", log_decrement, (n,), "1")
        table = _checked("shapes", shapes, (n, None), "kg^-1/2")
        if n == 0:
            raise ValueError("omega: no mode left (0 modes, at least 1 needed)")
        if table.shape[1] < PORT_LOADS:
            raise ValueError(f"shapes: {table.shape[1]} columns, at least {PORT_LOADS} needed")
        if not 0 <= n_thrusters <= table.shape[1] - PORT_LOADS:
            raise ValueError(f"n_thrusters: {n_thrusters}, limits 0...{table.shape[1] - PORT_LOADS} columns beyond those of the port")
        if np.any(omega <= 0.0):
            row = int(np.flatnonzero(omega <= 0.0)[0])
            raise ValueError(f"omega: mode {row} has {omega[row]:g} rad/s, must be > 0 rad/s (drop rigid-body modes)")
        if np.any((delta < 0.0) | (delta > LOG_DECREMENT_MAX)):
            row = int(np.flatnonzero((delta < 0.0) | (delta > LOG_DECREMENT_MAX))[0])
            raise ValueError(f"log_decrement: mode {row} has {delta[row]:g}, limits 0...{LOG_DECREMENT_MAX:g}")
        if len(steps) != 2 or not all(np.isfinite(dt) and 0.0 < dt <= 1.0 for dt in steps):
            raise ValueError(f"steps: {steps!r}, two step sizes in 0...1 s needed")
        self.modal.run = modal_pass(instructions.encode())
        if self.modal.run == NULL:
            raise ValueError(f"instructions: {instructions!r} is not one of auto, base, avx2, avx512, or this processor does not have it")

        self.n_modes = n
        self.n_loads = table.shape[1]
        self.n_thrusters = n_thrusters
        self.steps = (float(steps[0]), float(steps[1]))
        self.instructions = instructions
        self.modal.n_loads = self.n_loads
        self.modal.n_blocks = (n + MODAL_LANES - 1) // MODAL_LANES
        self.modal.active = 0

        # lanes beyond the last mode stay zero: no coefficients, no shapes, no state
        sets = [self._blocks(step_coefficients(omega, delta, dt), table) for dt in self.steps]
        cdef double[::1] state = _aligned(self.modal.n_blocks * 2 * MODAL_LANES)
        cdef double[::1] set0 = sets[0], set1 = sets[1]
        self.modal.state = &state[0]
        self.modal.state_size = state.nbytes
        self.modal.coefficients[0] = &set0[0]
        self.modal.coefficients[1] = &set1[0]
        self._keep = (state, set0, set1, table[:, :PORT_LOADS].copy())

    def _blocks(self, coefficients, shapes):
        # (5, N) and (N, L) -> blocks of [column][lane]
        columns = np.vstack([coefficients, shapes.T])
        padded = np.zeros((columns.shape[0], self.modal.n_blocks * MODAL_LANES))
        padded[:, :self.n_modes] = columns
        blocks = _aligned(padded.size)
        blocks[:] = padded.reshape(columns.shape[0], self.modal.n_blocks, MODAL_LANES).transpose(1, 0, 2).reshape(-1)
        return blocks

    def select_step(self, int which):
        """Use the coefficients of `steps[which]` from the next step on."""
        if which not in (0, 1):
            raise ValueError(f"which: {which}, must be 0 or 1")
        select_step(&self.modal, which)

    def propagate(self, load):
        """One step with `load` (L,) [N, N.m] held: (displacement (6,) [m, rad], rate (6,) [m/s, rad/s]) at its end, port axes."""
        displacement, rate = self.run(np.reshape(load, (1, -1)))
        return displacement[0], rate[0]

    def run(self, loads):
        """Steps with `loads` (n, L): displacements (n, 6) and rates (n, 6)."""
        cdef double[:, ::1] f = np.ascontiguousarray(loads, dtype=np.float64)
        if f.shape[1] != self.n_loads:
            raise ValueError(f"loads: {f.shape[1]} columns, {self.n_loads} needed")
        out_u, out_v = np.empty((f.shape[0], 6)), np.empty((f.shape[0], 6))
        if f.shape[0] == 0:
            return out_u, out_v
        cdef double[:, ::1] u = out_u, v = out_v
        cdef Py_ssize_t i
        with nogil:
            for i in range(f.shape[0]):
                propagate(&self.modal, &f[i, 0], &u[i, 0], &v[i, 0])
        return out_u, out_v

    @property
    def q(self):
        """Modal coordinates (N,) [kg^1/2 m]; a copy."""
        return np.asarray(self._keep[0]).reshape(-1, 2, MODAL_LANES)[:, 0].reshape(-1)[:self.n_modes].copy()

    @property
    def q_rate(self):
        """Modal rates (N,) [kg^1/2 m/s]; a copy."""
        return np.asarray(self._keep[0]).reshape(-1, 2, MODAL_LANES)[:, 1].reshape(-1)[:self.n_modes].copy()

    def set_state(self, q, q_rate):
        """Set modal coordinates and rates, (N,) each."""
        for row, (name, values) in enumerate((("q", q), ("q_rate", q_rate))):
            lanes = np.zeros(self.modal.n_blocks * MODAL_LANES)
            lanes[:self.n_modes] = _checked(name, values, (self.n_modes,), "kg^1/2 m")
            np.asarray(self._keep[0]).reshape(-1, 2, MODAL_LANES)[:, row] = lanes.reshape(-1, MODAL_LANES)

    def port(self):
        """Displacement (6,) [m, rad] and rate (6,) [m/s, rad/s] of the port in the present state, port axes."""
        return self._keep[3].T @ self.q, self._keep[3].T @ self.q_rate

    def snapshot(self):
        """The flat state as bytes."""
        return (<char *> self.modal.state)[:self.modal.state_size]

    def restore(self, bytes state):
        """Take back what `snapshot` gave. Raises ValueError for another size."""
        if <size_t> len(state) != self.modal.state_size:
            raise ValueError(f"state: {len(state)} bytes, {self.modal.state_size} needed")
        memcpy(self.modal.state, <char *> state, self.modal.state_size)

    def reset(self):
        """No deformation, no rates."""
        memset(self.modal.state, 0, self.modal.state_size)


def deform_port(X_CD0, displacement, rate):
    """`deformed_port` and `deformation_twist` for arrays: (X_CD (7,), V_CD (6,)) of the deformed port in the craft frame."""
    cdef double[::1] X0 = np.ascontiguousarray(X_CD0, dtype=np.float64)
    cdef double[::1] u = np.ascontiguousarray(displacement, dtype=np.float64)
    cdef double[::1] v = np.ascontiguousarray(rate, dtype=np.float64)
    if X0.shape[0] != 7 or u.shape[0] != 6 or v.shape[0] != 6:
        raise ValueError(f"X_CD0, displacement, rate: lengths {X0.shape[0]}, {u.shape[0]}, {v.shape[0]}, needed 7, 6, 6")
    X, V = np.empty(7), np.empty(6)
    cdef double[::1] X_view = X, V_view = V
    put_pose(deformed_port(pose(&X0[0]), &u[0]), &X_view[0])
    put_twist(deformation_twist(pose(&X0[0]), &v[0]), &V_view[0])
    return X, V
