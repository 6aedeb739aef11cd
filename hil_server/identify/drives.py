"""How the drives of a stand answer, out of a run in air.

The run (programme `identify`) moves the platform by a slow sine, a multisine and a chirp. Per leg, and for the platform along the
direction of the run:

    frequency response   H(f_k) = Y_k / U_k, Fourier sums over whole periods of the multisine; its scatter over the periods is the noise
    model                g w^2 / (s^2 + 2 zeta w s + w^2) e^{-st}, weighted least squares of H over g, w, zeta, t
    delay of the drive   t less what the ledger knows of ticks, hold and the age of the measured length
    dead band            u(t - lag) - y = lag' v + d sign(v) on the slow sine, lag taken out by the model
    confidence           share of the chirp's motion that the model explains

and the verdict against -2 dB and -70 degrees at 10 Hz, what hydraulic docking stands are built to.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from hil_server import registry
from hil_server.config import TestConfig, extends, toml_text
from hil_server.config.files import whole
from hil_server.errors import ConfigurationError
from hil_server.judge.record_time import every_tick
from hil_server.judge.run import Run
from rt_kernels.layout import CODES

EXPLAINED_MIN = 0.9  # share of a leg's chirp that the model has to explain before anything is written
SPEC_HZ, SPEC_DB, SPEC_DEG = 10.0, 2.0, 70.0
UNSURE_DB, UNSURE_DEG = 0.05, 0.5  # what a measurement may be wrong by: it is held against the figure and this together


@dataclass(frozen=True)
class Response:
    """Frequency response and fitted model of a leg or of the platform. frequency_hz, gain, damping, delay_s of the drive itself;
    *_sigma: one standard deviation; lines_hz, response (complex), noise per line; fit: largest relative distance of model and lines."""

    name: str
    frequency_hz: float
    damping: float
    delay_s: float
    gain: float
    frequency_sigma: float
    damping_sigma: float
    delay_sigma: float
    dead_band_m: float
    dead_band_sigma: float
    confidence: float
    lines_hz: np.ndarray
    response: np.ndarray
    noise: np.ndarray
    known_delay_s: float

    def model(self, f: np.ndarray | float, drive_only: bool = True) -> np.ndarray:
        """Complex response at f, Hz; of the drive alone, or with the known delays as measured."""
        return second_order(np.asarray(f, float), self.gain, self.frequency_hz, self.damping,
                            self.delay_s + (0.0 if drive_only else self.known_delay_s))  # fmt: skip

    def at_spec(self) -> tuple[float, float]:
        """Magnitude (dB) and phase (degrees) at 10 Hz."""
        h = complex(self.model(SPEC_HZ))
        return 20 * math.log10(abs(h)), math.degrees(math.atan2(h.imag, h.real))

    @property
    def dead_band_found(self) -> bool:
        """Whether the dead band is more than noise: above five standard errors and 3 um."""
        return self.dead_band_m > max(5.0 * self.dead_band_sigma, 3e-6)


@dataclass(frozen=True)
class Identification:
    """legs: six responses; platform: along the direction of the run; model: what the stand file gets."""

    legs: list[Response]
    platform: Response
    date: str

    @property
    def model(self) -> dict[str, Any]:
        """The table `[drive_model]` of a stand file: means over the legs, with the spread of what differs between them."""
        def mean(name: str) -> float:
            return float(np.mean([getattr(leg, name) for leg in self.legs]))

        def spread(name: str, own: str) -> float:
            return float(np.hypot(np.std([getattr(leg, name) for leg in self.legs]), np.mean([getattr(leg, own) for leg in self.legs])))

        return {
            "frequency_hz": mean("frequency_hz"), "damping": mean("damping"), "delay_s": max(0.0, mean("delay_s")), "date": self.date,
            "gain": mean("gain"), "dead_band_m": mean("dead_band_m") if any(leg.dead_band_found for leg in self.legs) else 0.0,
            "frequency_sigma_hz": spread("frequency_hz", "frequency_sigma"), "damping_sigma": spread("damping", "damping_sigma"),
            "delay_sigma_s": spread("delay_s", "delay_sigma"), "confidence": min(leg.confidence for leg in self.legs),
        }  # fmt: skip

    @property
    def lacking(self) -> list[str]:
        """Why these figures are not those of the drives; empty where the model explains the run."""
        return [f"{leg.name}: the model explains {100.0 * leg.confidence:.1f} % of its motion, at least {100.0 * EXPLAINED_MIN:g} %"
                for leg in self.legs if not leg.confidence >= EXPLAINED_MIN]  # fmt: skip

    @property
    def within_spec(self) -> bool:
        """Whether every leg meets the demanded amplitude and phase, with the measurement's own uncertainty."""
        return all(meets_spec(abs(db), abs(deg)) for db, deg in self._at_spec())

    def _at_spec(self) -> list[tuple[float, float]]:
        return [leg.at_spec() for leg in self.without_delay]

    def verdict(self) -> str:
        """One line: inside or outside, of which bounds, and the figures that were held against them."""
        db, deg = (max(abs(one[k]) for one in self._at_spec()) for k in (0, 1))
        return verdict_line(self.within_spec, "the legs", db, deg)

    @property
    def without_delay(self) -> list[Response]:
        """The drives by themselves: the figure of 2 dB and 70 degrees is of the drive, the transport delay stands in the ledger."""
        from dataclasses import replace

        return [replace(leg, delay_s=0.0) for leg in self.legs]


def meets_spec(db: float, deg: float) -> bool:
    """Whether these sizes, to the two decimals that `verdict_line` prints, are within the figure and the measurement's own uncertainty."""
    return round(db, 2) <= SPEC_DB + UNSURE_DB and round(deg, 2) <= SPEC_DEG + UNSURE_DEG


def verdict_line(inside: bool, whose: str, db: float, deg: float) -> str:
    """Inside or outside, of which bounds, and the figures that were held against them."""
    bounds = f"{SPEC_DB + UNSURE_DB:g} dB and {SPEC_DEG + UNSURE_DEG:g} degrees at {SPEC_HZ:g} Hz"
    of_it = f"{SPEC_DB:g} dB and {SPEC_DEG:g} degrees, and the measurement's own uncertainty"
    found = f"{whose} reach {db:.2f} dB and {deg:.2f} degrees without transport delay"
    return f"{'inside' if inside else 'OUTSIDE'} {bounds} ({of_it}): {found}"


# ------------------------------------------------------------------------------------------------------------------- fits


def second_order(f: np.ndarray, gain: float, frequency: float, damping: float, delay: float) -> np.ndarray:
    """Complex response at the frequencies f [Hz] of a second-order drive: frequency [Hz], damping [-], delay [s]."""
    s = 2j * np.pi * f
    w = 2 * np.pi * frequency
    return gain * w * w / (s * s + 2 * damping * w * s + w * w) * np.exp(-s * delay)


def frequency_response(u: np.ndarray, y: np.ndarray, lines_hz: np.ndarray, period_s: float, period: int) -> tuple[np.ndarray, np.ndarray]:
    """H (n lines) and the standard deviation of its mean, from whole periods of `period` samples; u, y: (periods * period,)."""
    t = np.arange(period) * period_s
    kernel = np.exp(-2j * np.pi * np.outer(lines_hz, t))
    U = kernel @ u.reshape(-1, period).T
    Y = kernel @ y.reshape(-1, period).T
    H = Y.mean(axis=1) / U.mean(axis=1)
    each = Y / U
    count = each.shape[1]
    scatter = np.sqrt(np.mean(np.abs(each - H[:, None]) ** 2, axis=1) / max(1, count - 1)) if count > 1 else np.full(len(H), 1e-4)
    return H, np.maximum(scatter, 1e-7)


def fit_model(lines_hz: np.ndarray, H: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(gain, frequency, damping, delay) and their standard deviations. A model error floor of 0.1 % keeps one clean line from ruling."""
    weight = 1.0 / np.hypot(noise, 1e-3 * np.abs(H))

    def left(x: np.ndarray) -> np.ndarray:
        d = weight * (second_order(lines_hz, x[0], x[1], x[2], x[3]) - H)
        return np.concatenate([d.real, d.imag])

    # the phase at the first lines gives the lag, the magnitude the resonance; several starts, the best end
    best = None
    bounds = ([0.2, 0.3, 0.02, -0.05], [5.0, 400.0, 5.0, 0.3])
    for frequency in (4.0, 8.0, 16.0, 32.0, 64.0):
        for damping in (0.4, 0.9):
            found = least_squares(left, [1.0, frequency, damping, 0.003], x_scale=[0.1, 5.0, 0.3, 0.003], bounds=bounds)
            if best is None or found.cost < best.cost:
                best = found
    assert best is not None
    covariance = np.linalg.pinv(best.jac.T @ best.jac) * max(1.0, 2 * best.cost / max(1, 2 * len(H) - 4))
    return best.x, np.sqrt(np.diag(covariance))


def simulate_model(u: np.ndarray, period_s: float, gain: float, frequency: float, damping: float, delay: float) -> np.ndarray:
    """Answer of the model to u (n,) from rest, in the frequency domain of a padded record."""
    n = 1 << int(np.ceil(np.log2(2 * len(u))))
    f = np.fft.rfftfreq(n, period_s)
    x = u - u[0]
    # the tail leads back to where the record began, so that the padding is no step
    tail = np.linspace(x[-1], 0.0, n - len(x), endpoint=False)
    answer = np.fft.irfft(np.fft.rfft(np.concatenate([x, tail])) * second_order(f, gain, frequency, damping, delay), n)
    found: np.ndarray = answer[: len(u)] + gain * u[0]
    return found


def find_dead_band(u: np.ndarray, y: np.ndarray, period_s: float, model: tuple[float, float, float, float]) -> tuple[float, float]:
    """Half width of the dead band and its standard deviation: the part of (answer of the linear model - y) that goes with the sign of the
    motion. Samples near the turning points, where the sign is not sure, are left out."""
    expected = simulate_model(u - u.mean(), period_s, *model)
    v = np.gradient(expected, period_s)
    error = expected - (y - y.mean())
    keep = (np.abs(v) > 0.5 * np.abs(v).max()) & (np.arange(len(u)) > len(u) // 6)
    A = np.column_stack([np.sign(v), v, np.ones(len(v))])[keep]
    x, *_ = np.linalg.lstsq(A, error[keep], rcond=None)
    left = error[keep] - A @ x
    sigma = float(np.sqrt(np.linalg.pinv(A.T @ A)[0, 0] * np.var(left)))
    return float(x[0]), sigma


def identify_channel(name: str, u: np.ndarray, y: np.ndarray, parts: dict[str, slice], lines_hz: np.ndarray, period_s: float, period: int,
                     known_delay_s: float) -> Response:  # fmt: skip
    """One input and output, (n,) each; parts: slices of `slow`, `multisine`, `chirp`."""
    H, noise = frequency_response(u[parts["multisine"]], y[parts["multisine"]], lines_hz, period_s, period)
    x, sigma = fit_model(lines_hz, H, noise)
    model = (float(x[0]), float(x[1]), float(x[2]), float(x[3]))
    band, band_sigma = find_dead_band(u[parts["slow"]], y[parts["slow"]], period_s, model)
    if band > max(5.0 * band_sigma, 3e-6):
        # the drive moves on what its error exceeds the dead band by: with the rest taken off the setpoint it is linear again
        moved = u
        for _ in range(3):
            error = u - simulate_model(moved, period_s, 1.0, model[1], model[2], 0.0)
            moved = u - np.clip(error, -band, band)
            H, noise = frequency_response(moved[parts["multisine"]], y[parts["multisine"]], lines_hz, period_s, period)
            x, sigma = fit_model(lines_hz, H, noise)
            model = (float(x[0]), float(x[1]), float(x[2]), float(x[3]))
            band, band_sigma = find_dead_band(u[parts["slow"]], y[parts["slow"]], period_s, model)
        u = moved
    uc, yc = u[parts["chirp"]], y[parts["chirp"]]
    answer = simulate_model(uc - uc[0], period_s, *model)
    error = (yc - yc[0]) - answer
    confidence = max(0.0, 1.0 - float(np.std(error) / max(np.std(yc), 1e-12)))
    return Response(
        name, model[1], model[2], model[3] - known_delay_s, model[0], float(sigma[1]), float(sigma[2]), float(sigma[3]), band, band_sigma,
        confidence, lines_hz, H, noise, known_delay_s,
    )  # fmt: skip


def identify(records: np.ndarray, period_s: float, guidance: Any, known_delay_s: float, date: str | None = None) -> Identification:
    """From the samples of an identification run. guidance: the Excitation part (its schedule and lines); known_delay_s: ticks, hold and age
    of the measured length. Raises ConfigurationError when the run was not finished."""
    if not {"slow", "multisine", "chirp"} <= set(guidance.schedule):
        raise ConfigurationError("identification: the run has no slow sine, multisine and chirp (guidance.slow_periods, periods, chirp_s)")
    r = records[records["phase"] == CODES["phase"]["approach"]]
    needed = max(begin + length for begin, length in guidance.schedule.values())
    if len(r) * period_s < needed:
        moved = len(r) * period_s
        raise ConfigurationError(f"identification: the run has {moved:.1f} s of motion, it needs {needed:.1f} s: it was stopped or tripped")
    lines = np.array([f for f, _ in guidance.lines])
    fade = guidance.fade_s
    period = round(guidance.multisine_s / period_s)

    def part(name: str, before: float, after: float) -> slice:
        begin, length = guidance.schedule[name]
        return slice(round((begin + before) / period_s), round((begin + length - after) / period_s))

    begin, length = guidance.schedule["multisine"]
    count = int((length - 2 * fade) / guidance.multisine_s + 1e-6) - 1
    first = round((begin + fade + guidance.multisine_s) / period_s)
    parts = {"slow": part("slow", fade, fade), "multisine": slice(first, first + count * period), "chirp": part("chirp", 0.0, 0.0)}
    u, y = r["leg_setpoint"], r["measured_leg"]
    legs = [identify_channel(f"leg {i + 1}", u[:, i], y[:, i], parts, lines, period_s, period, known_delay_s) for i in range(6)]
    axis = int(np.argmax(np.ptp(r["X_WP"][:, :3], axis=0)))
    platform = identify_channel("platform", r["X_WP"][:, axis], r["X_WP_measured"][:, axis], parts, lines, period_s, period, known_delay_s)
    return Identification(legs, platform, date or time.strftime("%Y-%m-%d"))


def in_air(path: str | Path) -> tuple[Run, TestConfig, Any]:
    """An identification run, its configuration and its guidance. Raises ConfigurationError for another run, UsageError for a thinned
    log."""
    from hil_server.line import assembly
    from hil_server.log.reader import read_log

    run = Run(read_log(path))
    config = run.configuration
    name, keys = config.part("guidance")
    if not getattr(registry.part("guidance", name), "IN_AIR", False):
        raise ConfigurationError(f"{path}: not an identification run: its guidance is {name!r}, which closes the loop")
    every_tick(run, "frequency response")
    return run, config, assembly.build_part("guidance", name, keys, {"period_s": run.log.header.period_ns * 1e-9})


def identify_log(path: str | Path) -> Identification:
    """Evaluates the log of an identification run."""
    run, _, guidance = in_air(path)
    log = run.log
    ledger, delays = log.header.delay_ledger, log.header.calibration["context"]["delays"]
    # the integrator's tick does not count: nothing is integrated here; an ideal drive's hold is a whole tick
    known = ledger["ticks"] + ledger["hold"] + delays["measured_leg_delay_s"]
    return identify(log.records, log.header.period_ns * 1e-9, guidance, known)


def write_stand(source: str | Path, target: str | Path, model: Mapping[str, object], table: str = "drive_model") -> None:
    """A copy of the stand file with this table in place of the one it had, and of what it has below ([stand_model.sigma]). Of a file that
    extends another one it is the whole. Raises ConfigurationError."""
    given = extends.whole(Path(source))
    text = given.texts[given.file] if len(given.texts) == 1 else extends.resolved_text(given)
    written = toml_text.with_table(text, table, _six_digits(model), source)
    with whole(Path(target)) as unfinished:
        unfinished.write_text(written, encoding="utf-8")


def _six_digits(value: Any) -> Any:
    """Numbers with six digits that count, always as floating-point ones; tables and lists of these, and text as it is."""
    if isinstance(value, Mapping):
        return {k: _six_digits(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_six_digits(v) for v in value]
    return value if isinstance(value, str) else float(f"{value:.6g}")


def picture(found: Identification, path: str | Path) -> Path:
    """Bode plot of the legs and the platform with their models and the figure at 10 Hz."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 7))
    upper, lower = figure.subplots(2, 1, sharex=True)
    fine = np.geomspace(0.3, 25.0, 300)
    for response in (*found.legs, found.platform):
        points = response.response * np.exp(2j * np.pi * response.lines_hz * response.known_delay_s)
        curve = response.model(fine)
        line = upper.semilogx(fine, 20 * np.log10(np.abs(curve)), label=response.name)[0]
        upper.plot(response.lines_hz, 20 * np.log10(np.abs(points)), "o", markersize=3, color=line.get_color())
        lower.semilogx(fine, np.degrees(np.unwrap(np.angle(curve))), color=line.get_color())
        lower.plot(response.lines_hz, np.degrees(np.unwrap(np.angle(points))), "o", markersize=3, color=line.get_color())
    upper.plot([SPEC_HZ] * 2, [-SPEC_DB, SPEC_DB], "k_-", linewidth=2)
    lower.plot([SPEC_HZ], [-SPEC_DEG], "k_", markersize=14)
    upper.set(ylabel="magnitude, dB")
    lower.set(ylabel="phase, degrees", xlabel="frequency, Hz")
    for axes in (upper, lower):
        axes.grid(True, which="both", alpha=0.3)
    upper.legend(fontsize=8)
    figure.tight_layout()
    with whole(Path(path)) as unfinished:
        figure.savefig(unfinished, dpi=110)
    return Path(path)
