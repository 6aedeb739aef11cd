"""Parameters of a hydraulic stand out of a run in air.

The run (programme `identify_hydraulic`) moves the platform in its six directions at several rates. The machine of these parameters
(`drivers.simulated.hydraulic_machine`) is given the setpoints of the log, and its legs, pressures, spools and supply are held against what
was measured: least squares over all of the run, each channel weighted by its noise (output error method: Ljung 1999, 7.4, 10.2;
Klein and Morelli 2006, chapter 6),

    x = argmin sum ((measured - played(x)) / noise)^2 + sum ((x - data sheet) / spread)^2

Gauss-Newton; the Jacobian by differences of runs at a coarser step of the machine first, at its own step last. Parameters that must be
above zero go by their logarithm. The last Jacobian is differences to one side and to the other; stretches of the run in which they are
not the same, where a small change of a parameter makes a stuck leg slip, are left out of the last step and of the standard deviations.
The data sheet (`[virtual]` or `[stand_model]` of the stand's file) is the start, with a spread of a factor of two: it decides only what the
run does not. Offsets of the channels are taken out, each part of the run by itself.

Standard deviations are of the inverse of the normal matrix, times what the residuals of half a second at a time scatter more than white
noise would (the model is not the stand): see `_excess`.

The modes of the structure come from the tap (`hil_server.identify.structure_modes`).
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drivers.simulated.hydraulic_machine import HydraulicMachine
from hil_server.config.files import whole
from hil_server.errors import ConfigurationError
from hil_server.identify.drives import SPEC_DB, SPEC_DEG, SPEC_HZ, in_air, meets_spec, verdict_line
from hil_server.identify.structure_modes import Mode, decay_modes
from hil_server.line.stand_response import DIRECTIONS, StandResponse, speed_gain
from rt_kernels.layout import CODES

Array = np.ndarray
Keys = dict[str, Any]  # of a machine's table: numbers, lists of them, a date

# ticks that are averaged to one sample of the residual, and s of the blocks that are held against white noise
EVERY, BLOCK_S = 4, 0.5
# s of the blocks that are left out where the machine does not answer smoothly, and what makes one such
SMOOTH_S, ROUGH = 0.1, 1e-4
COARSE_STEP_S = 5e-4
# channels of HydraulicMachine.play
CHANNELS = {"measured_leg": slice(0, 6), "leg_pressure_a": slice(6, 12), "leg_pressure_b": slice(12, 18), "leg_valve": slice(18, 24),
            "supply_pressure": slice(24, 25)}  # fmt: skip


SPREAD = math.log(2.0)


@dataclass(frozen=True)
class Unknown:
    """One number that is looked for. key: of the machine; index: into its list or rows, flat; scale: unit of x, which counts from the data
    sheet's value, None: x is the logarithm of the ratio to it; twin: the other place of a symmetric entry."""

    key: str
    index: int | None = None
    scale: float | None = None
    twin: int | None = None

    @property
    def name(self) -> str:
        """As it stands in tables."""
        return self.key if self.index is None else f"{self.key}[{self.index}]"

    @property
    def spread(self) -> float:
        """Standard deviation of the data sheet, in x: a factor of two, or five units."""
        return SPREAD if self.scale is None else 5.0

    def of(self, keys: Keys) -> float:
        """Its value."""
        value = keys[self.key]
        return float(value if self.index is None else np.asarray(value).flat[self.index])

    def put(self, keys: Keys, value: float) -> None:
        """Sets its value."""
        if self.index is None:
            keys[self.key] = value
            return
        changed = np.array(keys[self.key], float)
        changed.flat[self.index] = value
        if self.twin is not None:
            changed.flat[self.twin] = value
        keys[self.key] = changed.tolist()

    def value(self, reference: float, x: float) -> float:
        """Its value at x."""
        return reference * math.exp(x) if self.scale is None else reference + self.scale * x

    def sigma(self, value: float, sigma: float) -> float:
        """Standard deviation of the value, of that of x."""
        return abs(value) * sigma if self.scale is None else self.scale * sigma


UNKNOWNS = (
    Unknown("platform_mass_kg"),
    *(Unknown("platform_com_m", i, 0.1) for i in range(3)),
    *(Unknown("platform_inertia_kg_m2", 4 * i) for i in range(3)),
    *(Unknown("platform_inertia_kg_m2", i, 100.0, j) for i, j in ((1, 3), (2, 6), (5, 7))),
    Unknown("bulk_modulus_pa"),
    Unknown("leakage_internal_m3_per_s_pa"),
    Unknown("valve_flow_m3_per_s"),
    Unknown("valve_frequency_hz"),
    Unknown("valve_damping"),
    Unknown("valve_overlap"),
    Unknown("friction_viscous_n_s_per_m"),
    Unknown("friction_coulomb_n"),
    Unknown("friction_static_n"),
    Unknown("friction_stribeck_m_s"),
    Unknown("friction_bristle_n_per_m"),
    Unknown("friction_bristle_damping_n_s_per_m"),
    Unknown("position_gain_per_s"),
    Unknown("velocity_feedforward", None, 0.1),
    Unknown("pressure_gain_per_pa"),
    Unknown("pressure_highpass_hz"),
    Unknown("supply_pressure_pa"),
    Unknown("drive_delay_s", None, 1e-3),
)
# a parameter whose standard deviation is more of its spread than this is not decided by the run
KEPT = 0.5
# what a result has to show before it is written: share of the run that is evidence, mean square of the residual of every channel over all
# of the run in units of its noise, and how far the model stands beside what was measured, dB and degrees
EVIDENCE_MIN, RESIDUAL_MAX, BESIDE_DB, BESIDE_DEG = 0.5, 4.0, 1.0, 7.0


# ---------------------------------------------------------------------------------------------------------------------- the run
@dataclass(frozen=True)
class Run:
    """What the evaluation needs of a log. leg, rate: (n, 6) setpoints from the first tick that was sent; measured: (n, 25), channels as
    HydraulicMachine.play, each at the time at which it was true; noise: (25,), 0: a channel that says nothing; parts: name → slice;
    ticks of `period_s`; X_WP: (n, 7) setpoint pose, X_measured: (n, 7)."""

    leg: Array
    rate: Array
    measured: Array
    noise: Array
    parts: dict[str, slice]
    period_s: float
    setpoint_delay_s: float
    X_WP: Array
    X_measured: Array
    wrench: Array
    six_lines: list[tuple[float, int]]
    six_period_s: float
    fade_s: float

    @property
    def played(self) -> int:
        """Ticks that the machine is played: up to the tap."""
        return max(int(part.stop) for name, part in self.parts.items() if name != "tap")


def run_of(records: Array, period_s: float, guidance: Any, setpoint_delay_s: float, measured_leg_delay_s: float) -> Run:
    """From the samples of a log. setpoint_delay_s: from the tick to the drives without their own transport delay. Raises
    ConfigurationError when the run has not been finished or says nothing of six directions."""
    if "six 1" not in guidance.schedule:
        raise ConfigurationError("identification: the run has no part in six directions (guidance.six_rate_rms_m_s), which a hydraulic "
                                 "stand needs: programme identify_hydraulic")  # fmt: skip
    armed = np.flatnonzero(records["safety_state"] != CODES["safety_state"]["not_armed"])
    moving = np.flatnonzero(records["phase"] == CODES["phase"]["approach"])
    needed = max(begin + length for begin, length in guidance.schedule.values())
    if not len(moving) or len(moving) * period_s < needed:
        moved = len(moving) * period_s
        raise ConfigurationError(f"identification: the run has {moved:.1f} s of motion, it needs {needed:.1f} s: it was stopped or tripped")
    first = int(armed[0])
    begin = int(moving[0]) - first
    r = records[first : int(moving[-1]) + 1]
    measured = np.column_stack([np.asarray(r[name], float).reshape(len(r), -1) for name in CHANNELS])
    # a measured length is that of a tick or so before
    late = round(measured_leg_delay_s / period_s)
    if late:
        measured[:-late, :6] = measured[late:, :6]
    parts = {name: slice(begin + round(at / period_s), begin + round((at + length) / period_s))
             for name, (at, length) in guidance.schedule.items()}  # fmt: skip
    still = slice(max(0, begin - round(1.0 / period_s)), begin + round(0.3 / period_s))
    noise = channel_noise(measured[still])
    return Run(
        np.array(r["leg_setpoint"]), np.array(r["leg_rate_setpoint"]), measured, noise, parts, period_s, setpoint_delay_s,
        np.array(r["X_WP"]), np.array(r["X_WP_measured"]), np.array(r["F_S"]), list(guidance.six_lines), guidance.six_period_s,
        guidance.fade_s,
    )  # fmt: skip


def channel_noise(still: Array) -> Array:
    """Standard deviation (channels,) of the white noise on each channel while it stands still: of its first differences, over sqrt 2."""
    return np.diff(still, axis=0).std(axis=0) / math.sqrt(2.0) if len(still) > 10 else np.zeros(still.shape[1])


# ------------------------------------------------------------------------------------------------------------------- the machine
@dataclass(frozen=True)
class Stand:
    """What does not change while parameters are looked for. X_start: (7,) where the platform stood; cores: runs of the machine at once."""

    platform: Any
    gravity_m_s2: Sequence[float]
    carried_mass_kg: float
    carried_com_m: Sequence[float]
    X_start: Array
    cores: int = 2

    def play(self, keys: Keys, run: Run, step_s: float = 5e-5) -> Array:
        """(played, 25): the run's setpoints given to the machine of these keys. Delays that are no multiple of a step go by the slope."""
        own = {p.key for p in HydraulicMachine.PARAMETERS}
        machine = HydraulicMachine(
            platform=self.platform, gravity_m_s2=self.gravity_m_s2, carried_mass_kg=self.carried_mass_kg, carried_com_m=self.carried_com_m,
            X_WP=self.X_start, step_s=step_s, **{k: v for k, v in keys.items() if k in own},
        )  # fmt: skip
        delay = run.setpoint_delay_s + keys["drive_delay_s"]
        steps = max(0, round(delay / step_s))
        out = machine.play(run.leg[: run.played], run.rate[: run.played], round(run.period_s / step_s), steps)
        found: Array = out - (delay - steps * step_s) * np.gradient(out, run.period_s, axis=0)
        return found


def averaged(run: Run, difference: Array, noise: Array) -> Array:
    """(samples, channels): a difference of channels in units of the noise, averaged over `EVERY` ticks, part after part of the run; the
    pauses and the tap left out."""
    use = noise > 0.0
    found = []
    for name, part in run.parts.items():
        if name != "tap":
            d = difference[part][:, use] / noise[use] * math.sqrt(EVERY)
            found.append(d[: len(d) // EVERY * EVERY].reshape(-1, EVERY, d.shape[1]).mean(axis=1))
    return np.concatenate(found)


def centred(run: Run, d: Array, keep: Array) -> Array:
    """(samples, ...) of `averaged` without the mean in each part of the run, of the samples that are kept (samples,); zero elsewhere."""
    d, first = d.copy(), 0
    for name, part in run.parts.items():
        if name != "tap":
            rows = slice(first, first + (part.stop - part.start) // EVERY)
            d[rows] -= d[rows][keep[rows]].mean(axis=0) if keep[rows].any() else 0.0
            first = rows.stop
    d[~keep] = 0.0
    return d


# ------------------------------------------------------------------------------------------------------------------ least squares
@dataclass(frozen=True)
class Fit:
    """keys: the machine's, found; x, sigma: (unknowns,); covariance of x; unknowns in the order of x; misfit: mean square of the residual,
    1: nothing but noise; excess: what the sigmas were multiplied by, squared; noise: (25,) as the residual has it; played: (played, 25) of
    the keys; kept: share of the run that was evidence, see `_smooth`; residual: (25,) mean square of each channel over all of the run, in
    units of its noise, nan for one that says nothing."""

    unknowns: tuple[Unknown, ...]
    keys: Keys
    x: Array
    sigma: Array
    covariance: Array
    misfit: float
    excess: float
    noise: Array
    played: Array
    kept: float
    residual: Array

    def found(self, k: int) -> bool:
        """Whether the run decided the k-th unknown, not the data sheet."""
        return bool(self.sigma[k] < KEPT * self.unknowns[k].spread)

    @property
    def together(self) -> list[tuple[str, str, float]]:
        """Pairs of parameters that the run hardly tells apart: correlation above 0.95."""
        scale = np.sqrt(np.diag(self.covariance))
        C = self.covariance / np.outer(scale, scale)
        return [(self.unknowns[i].name, self.unknowns[j].name, float(C[i, j])) for i in range(len(C)) for j in range(i)
                if abs(C[i, j]) > 0.95]  # fmt: skip


def fit(run: Run, stand: Stand, sheet: Keys, unknowns: Sequence[Unknown] = UNKNOWNS,
        say: Callable[[str], None] = lambda _: None, fine: int = 2) -> Fit:  # fmt: skip
    """The machine's parameters out of the run. sheet: keys to begin with, all of the machine and drive_delay_s; a parameter that is 0 there
    and goes by its logarithm stays 0. fine: iterations with the Jacobian at the machine's own step. Raises ConfigurationError when the
    machine cannot be brought to follow the run."""
    unknowns = tuple(u for u in unknowns if u.scale is not None or u.of(sheet) > 0.0)
    reference = np.array([u.of(sheet) for u in unknowns])
    spread = np.array([u.spread for u in unknowns])
    noise = run.noise.copy()

    def keys_at(x: Array) -> Keys:
        keys = dict(sheet)
        for u, ref, value in zip(unknowns, reference, x, strict=True):
            u.put(keys, u.value(float(ref), float(value)))
        keys["friction_static_n"] = max(keys["friction_static_n"], 1.0001 * keys["friction_coulomb_n"])
        keys["drive_delay_s"] = max(keys["drive_delay_s"], -run.setpoint_delay_s)
        return keys

    def measured_less(played: Array) -> Array:
        return centred(run, averaged(run, run.measured[: run.played] - played, noise), keep)

    def columns(x: Array, played: Array, step_s: float, side: float, pool: ThreadPoolExecutor) -> Array:
        """(samples, channels, unknowns), not centred; side: 1 or -1, to which the parameters are moved."""
        base = played if step_s == 5e-5 else stand.play(keys_at(x), run, step_s)

        def column(k: int) -> Array:
            if unknowns[k].key == "drive_delay_s":
                return averaged(run, -(unknowns[k].scale or 1.0) * np.gradient(played, run.period_s, axis=0), noise)
            h = side * (1e-3 if unknowns[k].scale is None else 1e-2)
            moved = x.copy()
            moved[k] += h
            return averaged(run, (stand.play(keys_at(moved), run, step_s) - base) / h, noise)

        return np.stack(list(pool.map(column, range(len(unknowns)))), axis=-1)

    x = np.zeros(len(unknowns))
    try:
        played = stand.play(keys_at(x), run)
    except ValueError as error:
        raise ConfigurationError(f"identification: the data sheet is no machine: {error}") from error
    keep = np.ones(len(averaged(run, run.measured[: run.played] - played, noise)), bool)
    r = measured_less(played)
    A = prior = np.diag(spread**-2.0)
    near, done = False, 0
    with ThreadPoolExecutor(stand.cores) as pool:
        for iteration in range(14):
            step_s = 5e-5 if near else COARSE_STEP_S
            raw = columns(x, played, step_s, 1.0, pool)
            if near and done == fine - 1:
                # the last one from both sides: where they differ the run is no evidence
                other = columns(x, played, step_s, -1.0, pool)
                keep = _smooth(run, centred(run, raw - other, keep), np.diag(np.linalg.inv(A)))
                raw, r = 0.5 * (raw + other), measured_less(played)
            cost = float(np.sum(r * r) + x @ prior @ x)
            J = centred(run, raw, keep).reshape(-1, len(x))
            A = J.T @ J + prior
            step = np.linalg.solve(A, J.T @ r.ravel() - prior @ x)
            step = np.clip(step, -0.5 * spread, 0.5 * spread)
            share = 1.0
            while True:
                try:
                    trial = stand.play(keys_at(x + share * step), run)
                    after = measured_less(trial)
                    gained = cost - float(np.sum(after * after) + (x + share * step) @ prior @ (x + share * step))
                except ValueError:  # no machine there
                    gained = -math.inf
                if gained > 0.0 or share < 0.05:
                    break
                share *= 0.3
            say(f"step {iteration + 1}: misfit {cost / r.size:.4g}{' at the fine step' if step_s == 5e-5 else ''}")
            if gained > 0.0:
                x, played, r = x + share * step, trial, after
            if near:
                done += 1
                if done == fine:
                    break
            elif gained < 0.02 * cost:
                # near: noise as the residual has it, and the Jacobian at the machine's own step
                near, noise = True, np.where(noise > 0.0, channel_noise(run.measured[: run.played] - played), 0.0)
                r = measured_less(played)
    everywhere = averaged(run, run.measured[: run.played] - played, noise)
    residual = np.full(len(noise), np.nan)
    residual[noise > 0.0] = np.mean(centred(run, everywhere, np.ones(len(everywhere), bool)) ** 2, axis=0)
    covariance = np.linalg.inv(A)
    misfit = float(np.sum(r * r) / max(1, int(keep.sum()) * r.shape[1] - len(x)))
    excess = _excess(run, J, r, covariance)
    return Fit(unknowns, keys_at(x), x, np.sqrt(np.diag(covariance) * excess), covariance * excess, misfit, excess, noise, played,
               float(keep.mean()), residual)  # fmt: skip


def _smooth(run: Run, difference: Array, variance: Array) -> Array:
    """(samples,) False in blocks of `SMOOTH_S` where slopes to both sides differ by so much, `difference` (samples, channels, unknowns),
    that it would add more than `ROUGH` to what is known of a parameter, by its variance (unknowns,). There the machine answers a small
    change with a jump (the drive on its friction and overlap, near a frequency at which it hardly follows): a difference quotient is no
    slope, its size would be taken for knowledge, and the standard deviations would be too small."""
    rows = max(1, round(SMOOTH_S / (EVERY * run.period_s)))
    keep = np.ones(len(difference), bool)
    for k in range(0, len(difference), rows):
        added = np.sum(difference[k : k + rows] ** 2, axis=(0, 1)) * variance
        keep[k : k + rows] = added.max() < ROUGH
    return keep


def _excess(run: Run, J: Array, r: Array, covariance: Array) -> float:
    """How much more the gradient scatters from block to block of `BLOCK_S` than white residuals would make it, mean over the parameters of
    the ratio of their variances; 1 where it does not (the sandwich of Huber and White, by one number)."""
    rows = round(BLOCK_S / (EVERY * run.period_s))
    J = J.reshape(*r.shape, -1)
    meat = np.zeros((J.shape[2], J.shape[2]))
    for k in range(0, len(r) - rows + 1, rows):
        g = np.einsum("tcp,tc->p", J[k : k + rows], r[k : k + rows])
        meat += np.outer(g, g)
    ratio = np.diag(covariance @ meat @ covariance) / np.diag(covariance)
    return max(1.0, float(ratio.mean()))


# ---------------------------------------------------------------------------------------------------------- what was measured, by itself
@dataclass(frozen=True)
class Direct:
    """Response in the six directions as measured at one rate, no model between. lines_hz, direction (lines,); response (lines,) complex of
    the platform along the direction of its line per setpoint there, with the known delays; noise: its standard deviation; played: the
    same of the identified machine."""

    rate_rms_m_s: float
    lines_hz: Array
    direction: Array
    response: Array
    noise: Array
    played: Array


def direct_responses(run: Run, stand: Stand, played: Array) -> list[Direct]:
    """One for each part in six directions. Displacements of the platform from the legs', by the inverse Jacobian where it stood."""
    J_inverse = np.linalg.inv(np.asarray(stand.platform.jacobian(stand.X_start)))
    lines = np.array([f for f, _ in run.six_lines])
    direction = np.array([d for _, d in run.six_lines])
    period = round(run.six_period_s / run.period_s)
    kernel = np.exp(-2j * np.pi * np.outer(lines, np.arange(period) * run.period_s))
    found = []
    for name, part in run.parts.items():
        if not name.startswith("six "):
            continue
        first = part.start + round(run.fade_s / run.period_s) + period
        count = (part.stop - round(run.fade_s / run.period_s) - first) // period

        def lines_of(legs: Array, first: int = first, count: int = count) -> Array:
            """(count, lines, 6) of the displacement."""
            q = (legs[first : first + count * period] - legs[first]) @ J_inverse.T
            return np.array([kernel @ q[k * period : (k + 1) * period] for k in range(count)])

        U = lines_of(run.leg).mean(axis=0)
        power = np.sum(np.abs(U) ** 2, axis=1)
        H = np.einsum("lc,klc->kl", U.conj(), lines_of(run.measured[:, :6])) / power
        model = np.einsum("lc,klc->kl", U.conj(), lines_of(played[:, :6])) / power
        scatter = np.std(H, axis=0) / math.sqrt(max(1, count - 1)) if count > 1 else np.zeros(len(lines))
        rate = float(np.sqrt(0.5 * np.sum((2 * np.pi * lines[direction == 0] * 2 * np.abs(U[direction == 0, 0]) / period) ** 2)))
        found.append(Direct(rate, lines, direction, H.mean(axis=0), scatter, model.mean(axis=0)))
    return found


def tap_modes(run: Run) -> list[Mode]:
    """Modes of what hangs on the load cell, out of its ringing after the hardest tap of the pause; none without a tap."""
    part = run.parts.get("tap")
    if part is None:
        return []
    F = run.wrench[part]
    noise = channel_noise(run.wrench[: max(20, run.parts["slow"].start)])
    if not np.all(noise > 0.0):
        return []
    loud = np.abs((F - np.median(F, axis=0)) / noise).max(axis=1)
    if loud.max() < 20.0:
        return []
    # the tap itself is left out: the ringing counts from where it has passed its peak
    begin = int(np.argmax(loud)) + round(0.03 / run.period_s)
    return decay_modes(F[begin : begin + round(1.5 / run.period_s)], run.period_s, noise)


# ------------------------------------------------------------------------------------------------------------------------- result
@dataclass(frozen=True)
class StandIdentification:
    """fit: the machine; modes: of the structure; direct: measured responses; response: of the found machine where it stood; date."""

    fit: Fit
    modes: list[Mode]
    direct: list[Direct]
    response: StandResponse
    date: str

    @property
    def model(self) -> Keys:
        """The table `[stand_model]` of a stand file."""
        f = self.fit
        own = [p.key for p in HydraulicMachine.PARAMETERS]
        table: Keys = {key: f.keys[key] for key in (*own, "drive_delay_s")}
        sigma: Keys = {}
        for k, u in enumerate(f.unknowns):
            if u.index is None:
                sigma[u.key] = self.sigma(k)
            else:
                sigma.setdefault(u.key, np.zeros_like(np.asarray(f.keys[u.key], float)))
                for at in (u.index, u.twin):
                    if at is not None:
                        sigma[u.key].flat[at] = self.sigma(k)
        if self.modes:
            table["mode_hz"] = [m.frequency_hz for m in self.modes]
            table["mode_damping"] = [m.damping for m in self.modes]
            sigma["mode_hz"] = [m.frequency_sigma_hz for m in self.modes]
            sigma["mode_damping"] = [m.damping_sigma for m in self.modes]
        table["date"], table["misfit"], table["not_separated"] = self.date, f.misfit, "; ".join(self.not_separated)
        table["sigma"] = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in sigma.items()}
        return table

    def sigma(self, k: int) -> float:
        """Standard deviation of the k-th unknown in its own unit."""
        u = self.fit.unknowns[k]
        return u.sigma(u.of(self.fit.keys), float(self.fit.sigma[k]))

    @property
    def not_separated(self) -> list[str]:
        """What the run could not say, in words."""
        f = self.fit
        kept = [f"{u.name}: not decided by the run" for k, u in enumerate(f.unknowns) if not f.found(k)]
        pairs = [f"{a} and {b}: only together (correlation {c:+.2f})" for a, b, c in f.together]
        named = {u.key for u in f.unknowns}
        taken = [p.key for p in HydraulicMachine.PARAMETERS if p.key not in named]
        return [*kept, *pairs, "not looked for, taken from the stand file: " + ", ".join(taken)]

    @property
    def residuals(self) -> list[tuple[str, float]]:
        """(channel, mean square over all of the run in units of its noise), the largest first."""
        found = [(f"{name} {i + 1}" if where.stop - where.start > 1 else name, float(self.fit.residual[where][i]))
                 for name, where in CHANNELS.items() for i in range(where.stop - where.start)]  # fmt: skip
        return sorted(((name, value) for name, value in found if math.isfinite(value)), key=lambda one: -one[1])

    def beside(self) -> list[tuple[float, float, float, int]]:
        """(rate rms m/s, dB, degrees, lines) by which the model stands beside what was measured, at most, to 15 Hz, for each rate. Both
        have met friction and dead band."""
        found = []
        for d in self.direct:
            ratio = d.response / d.played
            at = (d.lines_hz <= 15.0) & (d.noise < 0.05 * np.abs(d.response))
            if at.any():
                db, deg = np.abs(20 * np.log10(np.abs(ratio[at]))), np.abs(np.degrees(np.angle(ratio[at])))
                found.append((d.rate_rms_m_s, float(db.max()), float(deg.max()), int(at.sum())))
        return found

    @property
    def lacking(self) -> list[str]:
        """Why these figures are not those of the stand; empty where the model explains the run."""
        f, found = self.fit, []
        if f.kept < EVIDENCE_MIN:
            found.append(f"only {100.0 * f.kept:.1f} % of the run are evidence, at least {100.0 * EVIDENCE_MIN:g} %")
        worst = [(name, value) for name, value in self.residuals if not value <= RESIDUAL_MAX]
        if worst:
            listed = ", ".join(f"{name} {math.sqrt(value):.3g}" for name, value in worst[:3])
            found.append(f"{len(worst)} channels are left unexplained, more than {math.sqrt(RESIDUAL_MAX):g} times their noise: {listed}; "
                         "the model has six equal legs, so look for one unlike the others, or for what moves the platform beside them")
        for rate, db, deg, _ in self.beside():
            if db > BESIDE_DB or deg > BESIDE_DEG:
                found.append(f"at {1e3 * rate:.1f} mm/s rms the model stands {db:.2f} dB and {deg:.1f} degrees beside what was measured, "
                             f"at most {BESIDE_DB:g} dB and {BESIDE_DEG:g} degrees")  # fmt: skip
        return found

    def table(self, frequency_hz: float = 10.0) -> list[tuple[str, float, float]]:
        """(direction, dB, degrees) of the small-signal response, with the drive's delay."""
        T = np.diag(self.response.response(frequency_hz))
        return [(name, 20 * math.log10(abs(h)), math.degrees(math.atan2(h.imag, h.real))) for name, h in zip(DIRECTIONS, T, strict=True)]

    @property
    def within_spec(self) -> bool:
        """Whether every direction meets 2 dB and 70 degrees at 10 Hz, the drive's transport delay apart, within 0.05 dB and 0.5 degrees."""
        db, deg = self._at_spec()
        return meets_spec(db, deg)

    def _at_spec(self) -> tuple[float, float]:
        """Largest amplitude error, dB, and phase, degrees, of the six directions at 10 Hz, the transport delay taken off."""
        turned = 360.0 * SPEC_HZ * self.fit.keys["drive_delay_s"]
        rows = list(self.table(SPEC_HZ))
        return max(abs(db) for _, db, _ in rows), max(abs((deg + turned + 180.0) % 360.0 - 180.0) for *_, deg in rows)

    def report(self) -> list[str]:
        """What was found, as lines for a person."""
        f = self.fit
        worst = ", ".join(f"{name} {math.sqrt(value):.2f}" for name, value in self.residuals[:3])
        lines = [
            f"residual                         largest, in units of the noise (1: nothing but noise), over all of the run: {worst}",
            f"evidence                         {100.0 * f.kept:.1f} % of the run used, misfit there {f.misfit:.3f}, standard deviations "
            f"times {math.sqrt(f.excess):.2f} for what is no noise",
            *(f"NOT EXPLAINED                    {text}" for text in self.lacking),
        ]  # fmt: skip
        for k, u in enumerate(f.unknowns):
            undecided = " (an estimate that the run does not decide)"
            lines.append(f"{u.name:32s} {u.of(f.keys):12.6g} +- {self.sigma(k):.2g}{'' if f.found(k) else undecided}")
        lines += [f"mode of the structure            {m.frequency_hz:9.3f} +- {m.frequency_sigma_hz:.3f} Hz  zeta {m.damping:.4f} "
                  f"+- {m.damping_sigma:.4f}" for m in self.modes]  # fmt: skip
        if not self.modes:
            lines.append("mode of the structure            none: no tap, or no decaying oscillation after it")
        shares = (1.0, 3.0, 5.0, SPEC_HZ, 15.0)
        lines.append("small signal, dB / degrees       " + "".join(f"{f'{hz:g} Hz':>16s}" for hz in shares))
        tables = [self.table(hz) for hz in shares]
        for i, name in enumerate(DIRECTIONS):
            lines.append(f"  {name:31s}" + "".join(f"{t[i][1]:+8.2f} /{t[i][2]:6.1f}" for t in tables))
        lines += [f"measured against the model       at {1e3 * rate:.1f} mm/s rms: at most {db:.2f} dB, {deg:.1f} degrees over {count} "
                  "lines to 15 Hz" for rate, db, deg, count in self.beside()]  # fmt: skip
        band = f.keys["valve_overlap"] * speed_gain(f.keys) / max(f.keys["position_gain_per_s"], 1e-9)
        lines.append(f"dead band of a leg               +-{1e6 * band:.1f} um")
        lines += [f"not separated                    {text}" for text in self.not_separated]
        lines.append("verdict   " + verdict_line(self.within_spec, "the six directions", *self._at_spec()))
        return lines


def picture(found: StandIdentification, path: str | Path) -> Path:
    """Small-signal response of the six directions as lines, what was measured at each rate as points, and the figure at 10 Hz."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 6))
    axes = figure.subplots(2, 6, sharex=True, sharey="row")
    fine = np.geomspace(0.5, 25.0, 200)
    T = found.response.response(fine)
    for i, name in enumerate(DIRECTIONS):
        upper, lower = axes[0, i], axes[1, i]
        h = T[:, i, i]
        upper.semilogx(fine, 20 * np.log10(np.abs(h)), "k")
        lower.semilogx(fine, np.degrees(np.unwrap(np.angle(h))), "k")
        for d in found.direct:
            own = d.direction == i
            upper.plot(d.lines_hz[own], 20 * np.log10(np.abs(d.response[own])), ".", label=f"{1e3 * d.rate_rms_m_s:.1f} mm/s")
            lower.plot(d.lines_hz[own], np.degrees(np.unwrap(np.angle(d.response[own]))), ".")
        upper.plot([SPEC_HZ] * 2, [-SPEC_DB, SPEC_DB], "k_-", linewidth=2)
        lower.plot([SPEC_HZ], [-SPEC_DEG], "k_", markersize=14)
        upper.set(title=name)
        lower.set(xlabel="frequency, Hz")
        for a in (upper, lower):
            a.grid(True, which="both", alpha=0.3)
    axes[0, 0].set(ylabel="magnitude, dB")
    axes[1, 0].set(ylabel="phase, degrees")
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    with whole(Path(path)) as unfinished:
        figure.savefig(unfinished, dpi=110)
    return Path(path)


def is_hydraulic(stand: Mapping[str, Keys]) -> bool:
    """Whether a stand file is that of a hydraulic stand: by its `[stand_model]`, or by the stand in software that takes its place. Legs
    that are motors on screws are drives with a response of their own, `[drive_model]`."""
    from hil_server import registry

    keys = stand.get("stand_model")
    if keys is None:
        keys = stand.get("virtual", {})
        if "part" not in keys or getattr(registry.part("simulated", keys["part"]), "MACHINE", "") != "hydraulic":
            return False
    return bool(keys.get("actuator", "hydraulic") == "hydraulic")


def data_sheet(stand: Mapping[str, Keys]) -> Keys:
    """What is known of a hydraulic stand before it is identified: `[stand_model]`, else `[virtual]`, the machine's defaults for the rest.
    Raises ConfigurationError when the stand file has neither."""
    known = (stand.get("stand_model") or stand["virtual"]) if is_hydraulic(stand) else None
    if known is None:
        raise ConfigurationError("stand: a hydraulic stand is identified from its data sheet, [stand_model] or the [virtual] of one")
    sheet = {p.key: np.array(p.default).tolist() if isinstance(p.default, tuple) else p.default for p in HydraulicMachine.PARAMETERS}
    return {**sheet, "drive_delay_s": 0.002, **{k: v for k, v in known.items() if k in sheet or k == "drive_delay_s"}}


def identify_stand_log(path: str | Path, sheet: Keys | None = None, say: Callable[[str], None] = lambda _: None,
                       unknowns: Sequence[Unknown] = UNKNOWNS) -> StandIdentification:  # fmt: skip
    """Evaluates the log of a run of `identify_hydraulic`. sheet: of the log's own stand file if not given. Raises ConfigurationError."""
    from rt_kernels.stewart.platform import Platform

    logged, config, guidance = in_air(path)
    log, period_s = logged.log, logged.log.header.period_ns * 1e-9
    ledger, delays = log.header.delay_ledger, log.header.calibration["context"]["delays"]
    run = run_of(log.records, period_s, guidance, ledger["ticks"], delays["measured_leg_delay_s"])
    platform = Platform.from_dict(config.stand["platform"])
    mounting = config.setup.stand.mounting
    start = run.measured[: run.parts["slow"].start, :6].mean(axis=0)
    on_platform = mounting.load_cell_on == "platform"
    stand = Stand(
        platform, mounting.gravity_m_s2, mounting.carried_mass_kg if on_platform else 0.0,
        place(mounting.X_S, mounting.carried_com_m) if on_platform else (0.0, 0.0, 0.0), platform.forward(start, steps=10),
        len(os.sched_getaffinity(0)),
    )  # fmt: skip
    found = fit(run, stand, sheet or data_sheet(config.stand), unknowns, say)
    response = StandResponse(found.keys, platform, stand.X_start, mounting.gravity_m_s2)
    return StandIdentification(found, tap_modes(run), direct_responses(run, stand, found.played), response, time.strftime("%Y-%m-%d"))


def place(X: Sequence[float], r: Sequence[float]) -> list[float]:
    """A point r of the frame X in X's parent."""
    from scipy.spatial.transform import Rotation

    found: list[float] = (np.asarray(X[:3]) + Rotation.from_quat(X[3:]).apply(r)).tolist()
    return found
