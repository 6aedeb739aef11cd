"""Frequencies and damping ratios of the structural modes after a tap, from the load cell.

    w(t) = sum_k Re(a_k e^{s_k t}) + constant + noise        s_k = -zeta_k w_k + i w_k sqrt(1 - zeta_k^2), a_k (6,) complex

Start: eigensystem realization (Juang and Pappa 1985) of the six channels' free decay. Then least squares over the poles, with amplitudes
and constants taken out (variable projection, Golub and Pereyra 1973), channels weighted by their noise. The order is the one beyond which
another mode takes away no more than noise does. Standard deviations are those of the least squares with white noise of the size that is
left over.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import hankel
from scipy.optimize import least_squares

Array = np.ndarray
# a pole is a mode of the structure within these, Hz and -
LOWEST_HZ, HIGHEST_DAMPING = 5.0, 0.3
MODES_MAX = 12


@dataclass(frozen=True)
class Mode:
    """frequency_hz (undamped), damping ratio and their standard deviations; amplitude: (6,) of the decay at its start, N, N.m."""

    frequency_hz: float
    damping: float
    frequency_sigma_hz: float
    damping_sigma: float
    amplitude: Array


def decay_modes(samples: Array, period_s: float, noise: Array, highest_hz: float = 200.0) -> list[Mode]:
    """Modes in a free decay, ascending. samples: (n, 6) after the tap has ended; noise: (6,) standard deviation of each channel; channels
    without noise or signal are left out. Empty when nothing rings."""
    use = np.flatnonzero((noise > 0.0) & (np.ptp(samples, axis=0) > 0.0))
    if not len(use) or len(samples) < 100:
        return []
    y = (samples[:, use] - samples[:, use].mean(axis=0)) / noise[use]
    t = np.arange(len(y)) * period_s
    realization = _realization(y, period_s, highest_hz)
    poles: Array = np.empty(0, complex)
    left = _projected(poles, t, y)[0]
    for order in range(1, MODES_MAX + 1):
        start = _realized(realization, order, highest_hz)
        if len(start) < order:
            break
        found = _refined(start, t, y)
        rest = _projected(found, t, y)[0]
        # a mode has 2 numbers and 2 amplitudes a channel: noise alone would take away as many units
        if left @ left - rest @ rest < 4.0 * (2 + 2 * y.shape[1]):
            break
        poles, left = found, rest
    if not len(poles):
        return []
    return _modes(poles, t, y, noise[use], use)


def _realization(y: Array, period_s: float, highest_hz: float) -> tuple[Array, Array, Array, Array, float]:
    """(U, s, V', H_1, step in s): singular values of the block Hankel matrix of the decay, and the same matrix one step later."""
    step = max(1, int(0.4 / (highest_hz * period_s)))
    y = y[::step]
    rows = min(len(y) // 3, 40)
    columns = min(len(y) - rows, 400)
    H = [hankel(y[: rows + 1, c], y[rows : rows + columns, c]) for c in range(y.shape[1])]
    H_0, H_1 = np.vstack([h[:-1] for h in H]), np.vstack([h[1:] for h in H])
    return (*np.linalg.svd(H_0, full_matrices=False), H_1, step * period_s)


def _realized(realization: tuple[Array, Array, Array, Array, float], order: int, highest_hz: float) -> Array:
    """Poles (order,) with positive imaginary part by the eigensystem realization; fewer where there are none to be had."""
    U, s, V, H_1, step_s = realization
    best: Array = np.empty(0, complex)
    # a pole more than asked for takes up what is no mode
    for states in (2 * order, 2 * order + 1, 2 * order + 2, 2 * order + 4):
        root = 1.0 / np.sqrt(s[:states])
        A = (root[:, None] * U[:, :states].T) @ H_1 @ (V[:states].T * root)
        z = np.log(np.linalg.eigvals(A).astype(complex)) / step_s
        fit = z[(z.imag > 2 * np.pi * LOWEST_HZ) & (z.imag < 2 * np.pi * highest_hz) & (-z.real < HIGHEST_DAMPING * np.abs(z))]
        fit = fit[np.argsort(fit.real)[::-1]][:order]
        if len(fit) > len(best):
            best = fit
        if len(best) == order:
            break
    damped: Array = best.real.clip(max=-1e-2) + 1j * best.imag
    return damped


def _basis(poles: Array, t: Array) -> Array:
    waves = np.exp(np.multiply.outer(t, poles))
    return np.hstack([waves.real, waves.imag, np.ones((len(t), 1))])


def _projected(poles: Array, t: Array, y: Array) -> tuple[Array, Array, Array]:
    """What is left of y, flat, the amplitudes (2 n + 1, channels), and an orthonormal basis of the waves."""
    Q, R = np.linalg.qr(_basis(poles, t))
    share = Q.T @ y
    return (y - Q @ share).ravel(), np.linalg.solve(R, share), Q


def _slopes(poles: Array, t: Array, amplitudes: Array, Q: Array, by: Array) -> Array:
    """(samples, unknowns) of the signal by the poles, amplitudes and constants taken out (Kaufman 1975). by: (n, unknowns a pole) complex,
    d pole / d unknown; pole by pole."""
    n = len(poles)
    columns = []
    for k in range(n):
        wave = np.multiply.outer(np.exp(t * poles[k]) * t, amplitudes[k] - 1j * amplitudes[n + k])  # Re(a e^{st}) = a_r Re - a_i Im
        for slope in by[k]:
            d = (wave * slope).real
            columns.append((d - Q @ (Q.T @ d)).ravel())
    return np.column_stack(columns)


def _refined(start: Array, t: Array, y: Array) -> Array:
    scale = np.abs(start)

    def poles_of(x: Array) -> Array:
        found: Array = scale * (x[::2] + 1j * x[1::2])
        return found

    def left(x: Array) -> Array:
        return _projected(poles_of(x), t, y)[0]

    def slopes(x: Array) -> Array:
        _, amplitudes, Q = _projected(poles_of(x), t, y)
        return -_slopes(poles_of(x), t, amplitudes, Q, scale[:, None] * np.array([1.0, 1j]))

    x0 = np.column_stack([start.real, start.imag]).ravel() / np.repeat(scale, 2)
    low, high = np.tile([-HIGHEST_DAMPING, 0.2], len(start)), np.tile([-1e-6, 3.0], len(start))
    return poles_of(least_squares(left, np.clip(x0, low + 1e-9, high - 1e-9), jac=slopes, bounds=(low, high), x_scale=1e-2).x)


def _modes(poles: Array, t: Array, y: Array, noise: Array, use: Array) -> list[Mode]:
    """Figures and standard deviations: Jacobian of all unknowns, amplitudes included, in frequency and damping."""
    left, amplitudes, Q = _projected(poles, t, y)
    n, channels = len(poles), y.shape[1]
    w, zeta = np.abs(poles), -poles.real / np.abs(poles)
    root = np.sqrt(1.0 - zeta**2)
    J = _slopes(poles, t, amplitudes, Q, np.column_stack([-zeta + 1j * root, w * (-1.0 - 1j * zeta / root)]))
    free = len(left) - channels * Q.shape[1] - 2 * n
    covariance = np.linalg.inv(J.T @ J) * max(1.0, float(left @ left) / max(1, free))
    sigma = np.sqrt(np.diag(covariance)).reshape(n, 2)
    modes = []
    for k in np.argsort(w):
        amplitude = np.zeros(6)
        amplitude[use] = noise * np.hypot(amplitudes[k], amplitudes[n + k])
        modes.append(Mode(w[k] / 2 / np.pi, float(zeta[k]), sigma[k, 0] / 2 / np.pi, float(sigma[k, 1]), amplitude))
    return modes
