"""Contact with a delayed force: restitution, critical delay, phase budget (hybrid-stability notes 5.1, 5.2).

    s^2 + (2 zeta w s + w^2) G(s) = 0        e = exp(pi Re s / Im s) at the contact's root        G loop from simulated to real force

Everything is per mode of the contact: frequency f (Hz), damping ratio zeta, and the loop G with its pure delay. Explanations in closed
form: the verdict is the contact played through the line (`hil_server.predict.contact_line`).
"""

import cmath
import math
from dataclasses import dataclass, replace

import numpy as np

BAND = (0.98, 1.02)
PRESSED = 0.001  # of a mode's energy: with less in the contact it does not press there


# ------------------------------------------------------------------------------------------------------------- pure delay


def rebound(mass: float, stiffness: float, damping: float, delay: float) -> float:
    """Restitution of a contact whose whole force is `delay` s late: kg, N/m, N.s/m, s. Newton from the undelayed root; raises ValueError
    for a contact that does not oscillate."""
    if not mass > 0 or not stiffness > 0 or damping < 0 or delay < 0:
        raise ValueError(f"mass {mass} kg and stiffness {stiffness} N/m must be above 0, damping {damping} and delay {delay} not below")
    if damping**2 >= 4.0 * mass * stiffness:
        raise ValueError(f"damping {damping} N.s/m is not below the critical {2.0 * math.sqrt(mass * stiffness):.6g} N.s/m")
    s = complex(-damping / (2 * mass), math.sqrt(stiffness / mass - (damping / (2 * mass)) ** 2))
    for _ in range(60):
        late = cmath.exp(-s * delay)
        value = mass * s * s + (damping * s + stiffness) * late
        s -= value / (2 * mass * s + (damping - delay * (damping * s + stiffness)) * late)
    return math.exp(math.pi * s.real / s.imag)


def critical_delay(mass: float, stiffness: float, damping: float) -> float:
    """Delay at which the closed contact neither grows nor decays, s; 0 without damping.

    w_c^2 = (B^2 + sqrt(B^4 + 4 K^2 M^2)) / (2 M^2),  t = atan(B w_c / K) / w_c."""
    if damping == 0.0:
        return 0.0
    w2 = (damping**2 + math.sqrt(damping**4 + 4 * stiffness**2 * mass**2)) / (2 * mass**2)
    w = math.sqrt(w2)
    return math.atan(damping * w / stiffness) / w


def phase_budget(frequency_hz: float, band: float = 0.02) -> tuple[float, float]:
    """Residual phase (degrees) and residual delay (s) that keep |e - 1| within `band`: phi = 2 ln(1 + band)/pi, t = phi / w."""
    phase = 2.0 * math.log(1.0 + band) / math.pi
    return math.degrees(phase), phase / (2.0 * math.pi * frequency_hz)


def stability_indicator(critical_delay_s: float) -> float:
    """PSI = log10(critical delay in ms): above 0.7 slightly, 0...0.7 moderately, below 0 extremely sensitive."""
    return math.log10(critical_delay_s * 1e3) if critical_delay_s > 0 else -math.inf


# --------------------------------------------------------------------------------------------------- any loop, by its root


@dataclass(frozen=True)
class Loop:
    """The loop from the simulated pose to the force that comes back: pure delay, drive, and a setpoint lead x + l1 v + l2 a.

    delay_s: everything but the drive's own lag; frequency_hz, damping: the drive (0: ideal); lead: (l1 [s], l2 [s2]) as the compensator
    publishes it, (0, 0) for none; period_s: of the tick. Compensators that do anything else have no such law: they are played
    (`hil_server.predict.contact_line`)."""

    delay_s: float
    frequency_hz: float
    damping: float
    lead: tuple[float, float] = (0.0, 0.0)
    period_s: float = 1e-3

    def gain(self, s: np.ndarray) -> np.ndarray:
        """G(s), (n,) complex: force in the model over what it would be without the stand, C H e^{-st}.

        The integrator's rates belong to the middle of the tick that has led to the pose, its accelerations to the tick's start: half a
        tick and a whole one before the pose."""
        half = np.exp(-0.5 * s * self.period_s)
        late: np.ndarray = (1.0 + self.lead[0] * s * half + self.lead[1] * s * s * half * half) * np.exp(-s * self.delay_s)
        if self.frequency_hz <= 0:
            return late
        w = 2 * math.pi * self.frequency_hz
        late *= w * w / (s * s + 2 * self.damping * w * s + w * w)
        return late

    @np.errstate(all="ignore")
    def roots(self, frequency_hz: np.ndarray, zeta: float) -> np.ndarray:
        """Roots (n,) of the contact at the frequencies (n,) Hz: each followed from the undelayed one while the loop is brought in, so that
        no other root is taken for it."""
        w = 2 * math.pi * frequency_hz
        s: np.ndarray = w * complex(-zeta, math.sqrt(1 - zeta * zeta))
        for part in np.linspace(0.0, 1.0, 41)[1:].tolist():
            left = np.arange(len(s))
            for _ in range(30):
                at, of = s[left], w[left]
                value = self._characteristic(at, of, zeta, part)
                step = 1e-6 * of
                change = value * step / (self._characteristic(at + step, of, zeta, part) - value)
                s[left] = at - change
                left = left[~(np.abs(change) < 1e-12 * of)]
                if not left.size:
                    break
        return s

    def _characteristic(self, s: np.ndarray, w: np.ndarray, zeta: float, part: float) -> np.ndarray:
        value: np.ndarray = s * s + (2 * zeta * w * s + w * w) * (1.0 + part * (self.gain(s) - 1.0))
        return value

    def restitution(self, frequency_hz: float, zeta: float) -> float:
        """The root law; it leaves out what the start of the contact does."""
        s = complex(self.roots(np.array([frequency_hz]), zeta)[0])
        return math.exp(math.pi * s.real / s.imag) if s.imag > 0 else math.inf


def latched_limit(loop: Loop, zeta: float, highest_hz: float = 100.0) -> float:
    """Highest frequency of a two-sided (latched) mode that does not grow, Hz: first crossing of Re s = 0, between ever finer grids."""
    low, grid = 0.0, np.geomspace(0.05, highest_hz, 200)
    for _ in range(4):  # to 4e-8 of the frequency
        growing = np.flatnonzero(loop.roots(grid, zeta).real > 0.0)
        if not growing.size:
            return float(grid[-1])
        first = int(growing[0])
        low, high = float(grid[first - 1]) if first else low, float(grid[first])
        grid = np.linspace(low, high, 101)[1:]
    return low


# -------------------------------------------------------------------------------------------------------- six dimensions


@dataclass(frozen=True)
class Mode:
    """One mode of the contact. frequency_hz; effective_mass: 1/(u L^-1 u), kg; shape: screw (force n, moment) at and in T. slowest_hz: with
    crafts that move or bend the lowest frequency at which they press on the contact, 0: the mode's own."""

    frequency_hz: float
    zeta: float
    effective_mass: float
    stiffness: float
    shape: np.ndarray
    slowest_hz: float = 0.0


def contact_modes(inverse_inertia: np.ndarray, stiffness: np.ndarray, damping: np.ndarray | None = None,
                  series: np.ndarray | None = None, least_hz: float = 0.1,
                  inner: tuple[np.ndarray, np.ndarray] | None = None) -> list[Mode]:  # fmt: skip
    """Modes of det(K - w^2 L) = 0: eigenvalues of L^-1 K. inverse_inertia, stiffness, damping: (6, 6) at and in T.

    series: compliance C (6, 6) in series with the contact (arm, load cell, base), at and in T: of a motion d the contact takes
    d1 = S d, S = (1 + C K)^-1, because d = d1 + C K d1; so K <- K S, and the damping, which sees d1' alone, B <- S^T B S.
    inner: modes of crafts that move or bend, squares of their circular frequencies (n,) and shapes (6, n) of the relative motion, with
    L^-1 the sum of their squares: what the ports answer at first."""
    K = np.asarray(stiffness, float)
    if series is not None:
        S = np.linalg.inv(np.eye(6) + np.asarray(series, float) @ K)
        damping = None if damping is None else S.T @ damping @ S
        K = 0.5 * (K @ S + (K @ S).T)
    # L^-1 = A A^T: the symmetric form keeps real modes
    A = np.linalg.cholesky(np.asarray(inverse_inertia, float))
    squares, vectors = np.linalg.eigh(A.T @ K @ A)
    found = []
    if inner is not None:
        count = int(np.sum(squares >= (2 * math.pi * least_hz) ** 2))
        return _coupled(K, damping, *inner, count, least_hz)
    for w2, z in zip(squares, vectors.T, strict=True):
        w = math.sqrt(max(w2, 0.0))
        if w < 2 * math.pi * least_hz:
            continue
        motion = A @ z  # generalised displacement with motion^T L motion = 1
        b = float(motion @ damping @ motion) if damping is not None else 0.0
        screw = K @ motion
        scale = np.linalg.norm(screw[:3])
        screw = screw / (scale if scale > 1e-12 else np.linalg.norm(screw))
        mass = 1.0 / float(screw @ inverse_inertia @ screw)
        found.append(Mode(w / (2 * math.pi), b / (2 * w), mass, mass * w2, screw))
    return sorted(found, key=lambda mode: mode.frequency_hz)


def _coupled(K: np.ndarray, B: np.ndarray | None, squares: np.ndarray, shapes: np.ndarray, count: int, least_hz: float) -> list[Mode]:
    """Modes of the contact with crafts that move or bend: of all modes of both crafts on the contact the `count` of which it holds most of
    the energy. z'' + (W^2 + S^T K S) z = 0, d = S z; energy's share s = d^T K d / w^2. The Mode is a mass m on the contact's own stiffness
    k along its screw, k = |F| / (u . d), F = K d, with m = k / w^2: what seems to move."""
    all_squares, vectors = np.linalg.eigh(shapes.T @ K @ shapes + np.diag(squares))
    found = []
    for w2, z in zip(all_squares, vectors.T, strict=True):
        w = math.sqrt(max(w2, 0.0))
        if w < 2 * math.pi * least_hz:
            continue
        motion = shapes @ z
        force = K @ motion
        taken = float(motion @ force)
        scale = np.linalg.norm(force[:3]) if np.linalg.norm(force[:3]) > 1e-12 else np.linalg.norm(force)
        if not taken > PRESSED * w2:
            continue
        stiffness = float(scale) ** 2 / taken
        b = float(motion @ B @ motion) if B is not None else 0.0
        found.append((taken / w2, Mode(w / (2 * math.pi), b / (2 * w) * w2 / taken, stiffness / w2, stiffness, force / scale)))
    slowest = min((mode.frequency_hz for _, mode in found), default=0.0)
    found.sort(key=lambda one: -one[0])
    return sorted((replace(mode, slowest_hz=slowest) for _, mode in found[:count]), key=lambda mode: mode.frequency_hz)
