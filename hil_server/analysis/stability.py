"""Contact with a delayed force: restitution, critical delay, phase budget (hybrid-stability notes 5.1, 5.2).

    s^2 + (2 zeta w s + w^2) G(s) = 0        e = exp(pi Re s / Im s) at the contact's root        G loop from simulated to real force

Everything is per mode of the contact: frequency f (Hz), damping ratio zeta, and the loop G with its pure delay.
"""

import cmath
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BAND = (0.98, 1.02)


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
    """The real loop from the simulated pose to the force that comes back, and what a compensator believes of it.

    delay_s: pure delay that is really there; frequency_hz, damping: the drive (0: ideal); compensator, keys: as configured;
    believed: the ledger's sums, which the compensator was built from; late_ticks: of the integrator against symplectic Euler (delay_s
    has them)."""

    delay_s: float
    frequency_hz: float
    damping: float
    believed: Mapping[str, float]
    compensator: str = "none"
    keys: Mapping[str, Any] | None = None
    period_s: float = 1e-3
    late_ticks: float = 0.0

    def drive(self, s: complex) -> complex:
        if self.frequency_hz <= 0:
            return 1.0 + 0j
        w = 2 * math.pi * self.frequency_hz
        return w * w / (s * s + 2 * self.damping * w * s + w * w)

    def lead(self, s: complex) -> complex:
        """C(s): set point over simulated pose. The integrator's rates belong to the middle of the tick that has led to the pose, its
        accelerations to the tick's start: half a tick and a whole one before the pose."""
        keys = dict(self.keys or {})
        name = self.compensator
        if name in ("phase_lead", "lead_and_pose_force", "adaptive_time_series"):
            l1, l2 = lead_coefficients(self.believed)
            factor = keys.get("lead_factor", 1.0)
            half = cmath.exp(-0.5 * s * self.period_s)
            return 1.0 + factor * l1 * s * half + (factor * l2 * s * s * half * half if keys.get("order", 2) == 2 else 0.0)
        if name == "polynomial":
            n = keys.get("order", 3)
            horizon = self.believed["total_s"] * keys.get("lead_factor", 1.0)
            h = (keys.get("spacing_ticks", 0) or max(1, round(horizon / self.period_s))) * self.period_s
            out = 0j
            for i in range(n + 1):
                c = math.prod((horizon / h + j) / (j - i) for j in range(n + 1) if j != i)
                out += c * cmath.exp(-i * h * s)
            return out
        return 1.0 + 0j

    def tracking(self, s: complex) -> complex:
        """Pose at which the force arises, over simulated pose, with every delay up to the force's use: C H e^{-st}."""
        return self.lead(s) * self.drive(s) * cmath.exp(-s * self.delay_s)

    def force(self, s: complex, stiffness: float) -> complex:
        """G(s): force in the model over what it would be without the stand."""
        g = self.tracking(s)
        keys = dict(self.keys or {})
        if self.compensator in ("pose_referenced_force", "lead_and_pose_force"):
            # F = K y + K^ (x - y): what is believed of the stiffness comes without delay
            share = keys.get("stiffness_n_m", stiffness) * keys.get("stiffness_factor", 1.0) / stiffness
            return g + share * (1.0 - g)
        if self.compensator == "smith":
            z = self.believed["total_s"] * keys.get("lead_factor", 1.0) * s
            return g * (1.5 * z + 1.0 / (1.0 + 0.5 * z))
        return g

    def root(self, frequency_hz: float, zeta: float, stiffness: float) -> complex:
        """The contact's root: followed from the undelayed one while the loop is brought in, so that no other root is taken for it."""
        w = 2 * math.pi * frequency_hz
        s = complex(-zeta * w, w * math.sqrt(1 - zeta * zeta))
        for part in np.linspace(0.0, 1.0, 41)[1:]:
            for _ in range(30):
                value = self._characteristic(s, w, zeta, stiffness, part)
                step = 1e-6 * w
                slope = (self._characteristic(s + step, w, zeta, stiffness, part) - value) / step
                change = value / slope
                s -= change
                if abs(change) < 1e-12 * w:
                    break
        return s

    def _characteristic(self, s: complex, w: float, zeta: float, stiffness: float, part: float) -> complex:
        g = 1.0 + part * (self.force(s, stiffness) - 1.0)
        return s * s + (2 * zeta * w * s + w * w) * g

    def restitution(self, frequency_hz: float, zeta: float, stiffness: float) -> float:
        if self.compensator == "energy_cap":
            bare = Loop(self.delay_s, self.frequency_hz, self.damping, self.believed)
            return min(1.0, bare.restitution(frequency_hz, zeta, stiffness))
        s = self.root(frequency_hz, zeta, stiffness)
        return math.exp(math.pi * s.real / s.imag) if s.imag > 0 else math.inf


def lead_coefficients(delays: Mapping[str, float]) -> tuple[float, float]:
    """(l1 [s], l2 [s2]) as the kernels form them from the ledger's sums."""
    tau, zeta = delays["transport_s"], delays["drive_damping"]
    w = 2.0 * math.pi * delays["drive_frequency_hz"] if delays["drive_frequency_hz"] > 0 else math.inf
    return tau + 2.0 * zeta / w, 1.0 / w**2 + 2.0 * zeta * tau / w + 0.5 * tau**2


def latched_limit(loop: Loop, zeta: float, stiffness: float = 1e6, highest_hz: float = 100.0) -> float:
    """Highest frequency of a two-sided (latched) mode that does not grow, Hz: first crossing of Re s = 0, by bisection on a fine grid."""

    def grows(f: float) -> bool:
        return loop.root(f, zeta, stiffness).real > 0.0

    grid = np.geomspace(0.05, highest_hz, 200)
    low = 0.0
    for f in grid:
        if grows(float(f)):
            high = float(f)
            for _ in range(40):
                middle = 0.5 * (low + high)
                low, high = (low, middle) if grows(middle) else (middle, high)
            return low
        low = float(f)
    return highest_hz


# ------------------------------------------------------------------------------------------------ one contact, tick by tick


def drive_transition(frequency_hz: float, damping: float, dt: float) -> tuple[float, float, float, float]:
    """Exact transition of (y - u, y') of a second-order drive over dt with u held."""
    from scipy.linalg import expm

    w = 2 * math.pi * frequency_hz
    E = expm(np.array([[0.0, 1.0], [-w * w, -2 * damping * w]]) * dt)
    return float(E[0, 0]), float(E[0, 1]), float(E[1, 0]), float(E[1, 1])


def one_contact(loop: Loop, frequency_hz: float, zeta: float, mass: float, speed: float = 0.02, gate_n: float = 0.0,
                hold_s: float = 0.005) -> float:  # fmt: skip
    """Restitution of one contact of the mode, tick by tick: what the root law leaves out, the start of the contact, is in it.

    One dimension: model (symplectic), set point with its lead, drive, one-sided spring, delayed force, compensator. mass: kg, effective;
    speed: m/s; gate_n: force from which the compensator takes it for a contact, until hold_s after it."""
    h, steps = loop.period_s, 10
    dt = h / steps
    K = mass * (2 * math.pi * frequency_hz) ** 2
    B = 2 * zeta * math.sqrt(K * mass)
    keys = dict(loop.keys or {})
    ideal = loop.frequency_hz <= 0
    # the integrator's tick and the hold are made here by themselves; what is left of the ledger is delay
    on_way = loop.delay_s + (0.0 if ideal else 0.5 * h) - loop.late_ticks * h
    sensor = loop.believed["sensor_delay_s"]
    wait = round(max(0.0, on_way - sensor) / dt)
    e00, e01, e10, e11 = drive_transition(loop.frequency_hz, loop.damping, dt) if not ideal else (0.0, 0.0, 0.0, 0.0)
    follow = _Compensator1D(loop, K, keys)
    late = round(sensor / dt)
    ticks_before, x, v, a = round(0.3 / h), 0.0, speed, 0.0
    x = -speed * ticks_before * h
    lag = loop.believed["drive_lag_s"]
    commands = {0: x}
    u, y, yd = x, x - speed * lag, speed
    ys, yds = [y], [yd]
    limit = ticks_before + round((2.0 / frequency_hz + 0.2) / h)
    step, touched, released, held = 0, False, 0, 0
    for _ in range(limit):
        i = max(0, len(ys) - 1 - late)
        depth = ys[i]
        force = K * depth + B * yds[i] if depth > 0 else 0.0
        touched |= force != 0.0
        held = round(hold_s / h) if abs(force) > gate_n and force != 0.0 else held - 1
        f = follow.force(force, x, x - ys[i], v - yds[i], held > 0)
        a = -f / mass
        v += h * a
        x += h * (v - loop.late_ticks * h * a)
        commands[step + wait] = follow.command(x, v, a)
        for _ in range(steps):
            u = commands.pop(step, u)
            if ideal:
                y, yd = u, v
            else:
                d = y - u
                y, yd = u + e00 * d + e01 * yd, e10 * d + e11 * yd
            step += 1
            ys.append(y)
            yds.append(yd)
        # the contact is over when neither the platform touches nor a force is on its way, for a while
        released = released + 1 if touched and v < 0 and force == 0.0 and y < 0 else 0
        if released > 40:
            break
    return -v / speed


class _Compensator1D:
    """The compensators of one_contact: force and set point as the kernels make them."""

    def __init__(self, loop: Loop, stiffness: float, keys: Mapping[str, Any]) -> None:
        self.name, self.h = loop.compensator, loop.period_s
        self.k = keys.get("stiffness_n_m", stiffness) * keys.get("stiffness_factor", 1.0)
        self.b = keys.get("damping_n_s_m", 0.0)
        l1, l2 = lead_coefficients(loop.believed)
        factor = keys.get("lead_factor", 1.0)
        leads = self.name in ("phase_lead", "lead_and_pose_force", "adaptive_time_series")
        self.l1 = factor * l1 if leads else 0.0
        self.l2 = factor * l2 if leads and keys.get("order", 2) == 2 else 0.0
        self.past: list[float] = []
        self.ahead: list[tuple[float, float]] = []  # (x, x - y) of the ticks before
        self.touching = False
        self.total = max(1e-9, loop.believed["total_s"] * factor)
        self.low = self.last = 0.0
        if self.name == "polynomial":
            n = keys.get("order", 3)
            self.spacing = keys.get("spacing_ticks", 0) or max(1, round(self.total / self.h))
            r = self.total / (self.spacing * self.h)
            self.c = [math.prod((r + j) / (j - i) for j in range(n + 1) if j != i) for i in range(n + 1)]

    def force(self, F: float, x: float, error: float, error_rate: float, contact: bool) -> float:
        if self.name in ("pose_referenced_force", "lead_and_pose_force"):
            late = self.missed(F, x - error) if contact and not self.touching and F != 0.0 else 0.0
            self.touching = contact and (self.touching or F != 0.0)
            self.ahead.append((x, error))
            corrected = F + self.k * error + self.b * error_rate + late
            return F if not contact else corrected if corrected * F > 0 else 0.0
        if self.name == "smith":
            keep, slope, change = math.exp(-2 * self.h / self.total), 0.5 * self.total / self.h, F - self.last
            self.low = keep * (self.low - self.last + slope * change) + F - slope * change
            self.last = F
            return 1.5 * self.total / self.h * change + self.low
        return F

    def missed(self, F: float, y: float) -> float:
        """What the model did without before the first force F, that of the pose y."""
        total = 0.0
        for x, error in reversed(self.ahead):
            depth = F / self.k + x - y
            if depth <= 0:
                break
            total += min(error, depth)
        return self.k * total

    def command(self, x: float, v: float, a: float) -> float:
        if self.name != "polynomial":
            return x + self.l1 * v + self.l2 * a
        self.past.append(x)
        if len(self.past) <= self.spacing * len(self.c):
            return x + self.total * v
        return sum(c * self.past[-1 - i * self.spacing] for i, c in enumerate(self.c))


# -------------------------------------------------------------------------------------------------------- six dimensions


@dataclass(frozen=True)
class Mode:
    """One mode of the contact. frequency_hz; effective_mass: 1/(u L^-1 u), kg; shape: screw (force n, moment) at and in T."""

    frequency_hz: float
    zeta: float
    effective_mass: float
    stiffness: float
    shape: np.ndarray


def contact_modes(inverse_inertia: np.ndarray, stiffness: np.ndarray, damping: np.ndarray | None = None,
                  series: np.ndarray | None = None, least_hz: float = 0.1) -> list[Mode]:  # fmt: skip
    """Modes of det(K - w^2 L) = 0: eigenvalues of L^-1 K. inverse_inertia, stiffness, damping: (6, 6) at and in T.

    series: compliance C (6, 6) in series with the contact (arm, load cell, base), at and in T: of a motion d the contact takes
    d1 = S d, S = (1 + C K)^-1, because d = d1 + C K d1; so K <- K S, and the damping, which sees d1' alone, B <- S^T B S."""
    K = np.asarray(stiffness, float)
    if series is not None:
        S = np.linalg.inv(np.eye(6) + np.asarray(series, float) @ K)
        damping = None if damping is None else S.T @ damping @ S
        K = 0.5 * (K @ S + (K @ S).T)
    # L^-1 = A A^T: the symmetric form keeps real modes
    A = np.linalg.cholesky(np.asarray(inverse_inertia, float))
    squares, vectors = np.linalg.eigh(A.T @ K @ A)
    found = []
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


def stiffness_along(stiffness_n_m: float, point: Sequence[float], normal: Sequence[float]) -> np.ndarray:
    """(6, 6) of one spring along `normal` at `point`, at and in T: k u u^T, u = (n, p x n)."""
    n = np.asarray(normal, float) / np.linalg.norm(normal)
    u = np.concatenate([n, np.cross(np.asarray(point, float), n)])
    return stiffness_n_m * np.outer(u, u)


def restitution_curve(loop_of: Callable[[float], Loop], frequencies: Sequence[float], zeta: float, mass: float) -> np.ndarray:
    """e over frequency for a compensator whose keys may depend on it (a stiffness prior), (n,)."""
    return np.array([loop_of(f).restitution(f, zeta, mass * (2 * math.pi * f) ** 2) for f in frequencies])
