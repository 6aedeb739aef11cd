"""Before the test, what the stand will make of a contact.

From the stand, the vehicles, the mechanism and the delay ledger: stiffness and damping of the mechanism at the first contact (differences
of its own model), in series with them the compliance of an arm that carries a port (`port_compliance_rows` of a vehicle), and the modes of
the contact in six degrees of freedom. Each mode is then played through the line of the test (`contact_line`): its restitution is that of
the free motion on either side. Beside it stand what closed forms say: critical delay, phase budget, PSI, and where a setpoint lead is all
that is compensated the limit of a latched mode. For each other compensator a curve of the restitution over frequency. A stand whose machine
was identified (`[stand_model]`) is played as that machine, nonlinear as it is, with the twist of the test. A mechanism of several contacts
at once, with friction, is played itself, too, and its energy held against that in orbit. Exit code 1 when a mode or that contact would
leave the band 0.98...1.02, cannot be predicted, or would take the stand to one of its limits (`hil_server.judge.margins`).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hil_server import registry
from hil_server.config import TestConfig
from hil_server.config.checks import part_table
from hil_server.config.files import Done, no_progress, whole
from hil_server.config.model import own_delay
from hil_server.errors import ConfigurationError
from hil_server.judge.margins import Margin
from hil_server.line import assembly
from hil_server.line.assembly import Assembly
from hil_server.predict.contact_line import (
    Played,
    Touch,
    inner_modes,
    mobility,
    moves,
    play,
    play_mechanism,
    restitution_curve,
)
from hil_server.predict.stability import (
    BAND,
    Loop,
    Mode,
    contact_modes,
    critical_delay,
    latched_limit,
    phase_budget,
    stability_indicator,
)
from hil_server.values import finite
from rt_kernels.algebra.arrays import pose_multiply, quat_exponential
from rt_kernels.compensation.effective_mass import to_target_port
from rt_kernels.context import Vehicles

DEPTHS_M = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
CURVE_HZ = (1, 2, 3, 5, 7, 10, 15, 20)
LEAST_IDEAL = 0.1  # a contact that gives back less of its speed is judged by what it should not give back
# Stiffness is measured at a depth of some tenths of a millimetre, and the force that presses there turns with the units: up to about this
# share of the stiffest mode's w^2 is that force's and no mode of the touch
PRELOAD = 1e-3
HIGHEST_HZ = 200.0  # a mode above it is not reproduced by any stand: named, not judged
OWN_TWIST = 0.2  # of the speed at first contact: a mode that is met faster than this along its screw is played with the test's own twist


def judged_ratio(restitution: float, ideal: float) -> float:
    """The figure that is held against the band: speed of the rebound over that in orbit; where less than a tenth of the approach comes back
    in orbit, 1 plus the difference of both in tenths of the approach."""
    return 1.0 + (restitution - ideal) / max(ideal, LEAST_IDEAL)


def is_true(restitution: float, ideal: float) -> bool:
    """Whether the judged ratio is inside the band."""
    return BAND[0] <= judged_ratio(restitution, ideal) <= BAND[1]


def _rebound_in_words(restitution: float, ideal: float) -> str:
    """The judged ratio as a sentence's end."""
    ratio = judged_ratio(restitution, ideal)
    if ideal >= LEAST_IDEAL:
        return f"rebound at {ratio:.3f} times its in-orbit speed, outside {BAND[0]}...{BAND[1]}"
    most = (BAND[1] - 1.0) * LEAST_IDEAL
    return f"give back {restitution:.4f} of its approach, in orbit {ideal:.4f}: a difference of more than {most:g}"


@dataclass(frozen=True)
class ModePrediction:
    """One contact mode. restitution: with the stand and the configured compensator, nan where it is not judged or was refused; refused:
    why a judged mode cannot be predicted, or empty; ideal: as in orbit; latched_limit_hz: 0 for an undamped mode, nan where the
    compensator is no mere lead; margins: to the stand's limits, nearest first; sigma: of the restitution of one run under the noise."""

    frequency_hz: float
    damping_ratio: float
    effective_mass_kg: float
    stiffness_n_per_m: float
    screw: list[float]
    restitution: float
    ideal: float
    critical_delay_s: float
    phase_budget_deg: float
    delay_budget_s: float
    indicator: float
    latched_limit_hz: float
    judged: bool
    refused: str = ""
    margins: tuple[Margin, ...] = ()
    sigma: float = 0.0

    @property
    def ratio(self) -> float:
        """`judged_ratio` of restitution and ideal."""
        return judged_ratio(self.restitution, self.ideal)

    @property
    def true(self) -> bool:
        """Whether the ratio is inside the band."""
        return is_true(self.restitution, self.ideal)

    @property
    def within(self) -> bool:
        """Whether the rebound is true; what is not judged is no reason against a run."""
        return not self.judged or self.true


@dataclass(frozen=True)
class Prediction:
    """modes in rising frequency; ledger (term → s) and where each figure comes from; compensator; speed at the first contact; touch:
    the first contact of the mechanism itself; unknown: delays that no file gives, counted as 0."""

    modes: list[ModePrediction]
    ledger: dict[str, float]
    origins: dict[str, str]
    compensator: str
    speed_m_s: float
    touch: Touch = Touch()
    unknown: tuple[str, ...] = ()

    @property
    def margins(self) -> tuple[Margin, ...]:
        """Of the first contact of the mechanism itself to the limits, nearest first."""
        return self.touch.margins

    @property
    def itself(self) -> bool:
        """Whether the mechanism's own contact was played to its end or refused: then it is judged, and the modes only describe it."""
        return bool(self.touch.refused) or not math.isnan(self.touch.ideal)

    @property
    def rebounds(self) -> bool:
        """Whether the contact keeps the energy that it keeps in orbit: the mechanism's own where it is judged, else that of every mode."""
        if self.itself:
            return not self.touch.refused and is_true(self.touch.restitution, self.touch.ideal)
        return all(mode.within for mode in self.modes)

    @property
    def touched(self) -> list[Margin]:
        """The limits at which a run would stop in its first contact, or its drives follow no longer."""
        return [margin for margin in self.margins if margin.touched and margin.stops]

    @property
    def within(self) -> bool:
        """Whether a run may be armed: the contact inside the band, and no limit touched."""
        return self.rebounds and not self.touched

    def as_dict(self) -> dict[str, Any]:
        """For the log and for machines, JSON values only (what is infinite or undefined is None)."""
        modes = [
            {k: finite(v) for k, v in (asdict(m) | {"ratio": m.ratio}).items()} | {"direction": m.screw[:3], "within": m.within}
            for m in self.modes
        ]
        own = {"ledger": self.ledger, "origins": self.origins, "compensator": self.compensator,
               "margins": [asdict(margin) for margin in self.margins]}  # fmt: skip
        if self.itself:
            own["touch"] = {key: finite(getattr(self.touch, key)) for key in ("restitution", "ideal", "refused", "sigma")}
        return {"modes": modes, **own, "unknown": list(self.unknown), "within": self.within, "verdict": self.verdict()}

    def verdict(self) -> str:
        """One line: inside the band, or which mode is not and why."""
        rest = f", if these are 0, which is not known: {'; '.join(self.unknown)}" if self.unknown else ""
        if self.within:
            by = " by the mechanism's own contact, to which the modes are a description" if self.itself and self.modes else ""
            return f"inside the band{by}{rest}"
        bad = [] if self.itself else [m for m in self.modes if not m.within]
        reasons = [f"contact at {m.frequency_hz:.2f} Hz cannot be predicted: {m.refused}" for m in bad if m.refused][:1]
        if wrong := [m for m in bad if not m.true and not m.refused]:
            worst = max(wrong, key=lambda m: abs(math.log(max(m.ratio, 1e-9))))
            others = f", the worst of {len(wrong)} such modes" if len(wrong) > 1 else ""
            reasons.append(f"contact at {worst.frequency_hz:.2f} Hz would {_rebound_in_words(worst.restitution, worst.ideal)}{others}")
        if self.touch.refused:
            reasons.append(f"the mechanism's own contact cannot be predicted: {self.touch.refused}")
        elif self.itself and not self.rebounds:
            reasons.append(f"the mechanism's own contact would {_rebound_in_words(self.touch.restitution, self.touch.ideal)}")
        if self.touched:
            reasons.append(f"the first contact would reach a limit: {', '.join(map(str, self.touched))}")
        return "; ".join(reasons) + rest


# ------------------------------------------------------------------------------------------------------- the mechanism


def contact_matrices(mechanism: Any, X_TA: np.ndarray, period_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Stiffness and damping (6, 6) of the mechanism at and in T: differences of its wrench, pushed in along X until it presses.

    Zeros when it presses nowhere within 30 mm."""
    state = mechanism.snapshot()

    def wrench(d: np.ndarray, V: np.ndarray) -> np.ndarray:
        mechanism.restore(state)
        return np.asarray(mechanism.advance(_moved(X_pressed, d), _at_active_port(V, X_pressed), period_s)["F_T"], float)

    zero = np.zeros(6)
    for depth in DEPTHS_M:
        X_pressed = np.asarray(X_TA, float).copy()
        X_pressed[0] += depth
        force = wrench(zero, zero)[:3]
        if np.linalg.norm(force) > 0.0:
            break
    else:
        mechanism.restore(state)
        return np.zeros((6, 6)), np.zeros((6, 6))
    # what is met aslant is pressed by less than the way along X: no step leaves it, each is at most half of how deep it is pressed
    share = min(1.0, abs(force[0]) / np.linalg.norm(force) / 0.4)
    step, speed = 0.2 * depth * share, 1e-3 * share
    K, B = np.empty((6, 6)), np.empty((6, 6))
    for i in range(6):
        e = np.eye(6)[i]
        K[:, i] = (wrench(step * e, zero) - wrench(-step * e, zero)) / (2 * step)
        B[:, i] = (wrench(zero, speed * e) - wrench(zero, -speed * e)) / (2 * speed)
    mechanism.restore(state)
    return 0.5 * (K + K.T), 0.5 * (B + B.T)


def series_compliance(vehicles: Vehicles, X_TA: np.ndarray) -> np.ndarray:
    """Compliance (6, 6) of what carries both ports, in series with the contact, at and in T: C_T + A^-1 C_A A^-T, where A carries a
    twist from the origin of T to that of A and into its axes."""
    total = np.zeros((6, 6))
    if vehicles.target.port_compliance is not None:
        total += np.asarray(vehicles.target.port_compliance, float)
    if vehicles.active.port_compliance is not None:
        to_T = to_target_port(X_TA)
        total += to_T @ np.asarray(vehicles.active.port_compliance, float) @ to_T.T
    return total


def _moved(X: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The pose after the small motion d of the body about the origin of T."""
    found: np.ndarray = pose_multiply(np.concatenate([d[:3], quat_exponential(d[3:])]), X)
    return found


def _at_active_port(V: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.concatenate([V[:3] + np.cross(V[3:], X[:3]), V[3:]])


# ------------------------------------------------------------------------------------------------------ the prediction


def predict(config: TestConfig, test: Assembly | None = None, done: Done = no_progress) -> Prediction:
    """Prediction for a configuration. test: its line, if there is one already (its ledger then holds what its devices reported). done:
    called with the amount done and the total."""
    test = test or assembled(config)
    start = test.context["start"]
    K, B = contact_matrices(test.context["mechanism"], start.X_TA, test.context["period_s"])
    vehicles = test.context["vehicles"]
    series = series_compliance(vehicles, start.X_TA)
    modes = contact_modes(mobility(test), K, B, series, inner=inner_modes(test)) if np.any(K) else []
    modes = [mode for mode in modes if mode.frequency_hz**2 >= PRELOAD * modes[-1].frequency_hz ** 2]
    speed = max(1e-3, float(np.linalg.norm(start.V_TA[:3])))
    # a shape has no sign of its own: the side from which it is met
    modes = [replace(mode, shape=-mode.shape) if _along(test, mode) < 0.0 else mode for mode in modes]
    found = []
    for mode in modes:
        found.append(predict_mode(test, mode, speed))
        done(len(found), len(modes) + 1)
    touch = _first_contact(test, modes[0]) if modes else Touch()
    return Prediction(found, test.ledger.as_dict(), test.ledger.origins(), config.part("compensation")[0], speed, touch,
                      test.ledger.unknown)  # fmt: skip


def assembled(config: TestConfig) -> Assembly:
    """The line whose contacts are played. A stand that cannot be simulated but whose drives are known ([drive_model]) gets a linear plant
    made from them, setpoints and measured legs a tick late as on a bus. A sensor that the stand names has its own delay, as given or as it
    follows from its settings, behind a virtual stand, too. Raises ConfigurationError where nothing is known of the drives."""
    stand = config.setup.stand
    sensor, virtual = stand.devices.get("wrench_sensor"), config.document["stand"].get("virtual")
    if virtual is not None and sensor is None:
        return assembly.simulation(config)
    late = None if sensor is None else own_delay(sensor)
    if virtual is None:
        known = stand.drive
        virtual = {"part": registry.LINEAR_STAND, "drive_frequency_hz": known.frequency_hz, "drive_damping": known.damping,
                   "drive_delay_s": known.delay_s}  # fmt: skip
    if "sensor_delay_s" in part_table("simulated", virtual["part"]).parameters:  # the ideal stand has none
        virtual = {**virtual, "sensor_delay_s": late or 0.0}
    test = assembly.simulation(TestConfig({**config.document, "stand": {**config.stand, "virtual": virtual}}, config.sources, config.paths))
    derived = sensor is not None and late is not None and sensor.keys.get("filter_delay_s") is None
    terms = tuple(replace(term, origin="derived") if derived and term.name == "sensor" else term for term in test.ledger.terms)
    return replace(test, ledger=replace(test.ledger, terms=terms, unknown=stand.unknown_delays))


def predict_mode(test: Assembly, mode: Mode, speed: float) -> ModePrediction:
    """One mode: the contact through the line for the restitution, closed forms for the rest. speed: along the mode, m/s."""
    judged = mode.frequency_hz < HIGHEST_HZ and mode.zeta < 0.95
    zeta = min(mode.zeta, 0.95)
    ideal = math.exp(-math.pi * zeta / math.sqrt(1 - zeta * zeta))
    phase, delay = phase_budget(mode.frequency_hz)
    critical = critical_delay(mode.effective_mass, mode.stiffness, 2 * zeta * 2 * math.pi * mode.frequency_hz * mode.effective_mass)
    played = _played(test, mode, speed, own_twist(test, mode)) if judged else Played(math.nan, "", None, 0.0)
    if judged and moves(test):
        # what joints and modes keep has no closed form
        orbit = _played(test, mode, speed, own_twist(test, mode), ideal=True)
        ideal = orbit.restitution
        played = replace(played, refused=f"without a stand: {orbit.refused}") if orbit.refused else played
    if not judged or zeta <= 1e-4:
        latched = 0.0
    else:
        latched = latched_limit(loop_of(test, played.lead), zeta) if played.lead is not None else math.nan
    return ModePrediction(
        mode.frequency_hz, mode.zeta, mode.effective_mass, mode.stiffness, [float(x) for x in mode.shape], played.restitution, ideal,
        critical, phase, delay, stability_indicator(critical), latched, judged, played.refused,
        played.margins, played.sigma,
    )  # fmt: skip


def own_twist(test: Assembly, mode: Mode) -> np.ndarray | None:
    """V_TA (6,) of the test where its stand is played as the identified machine, whose answer depends on how fast each leg moves, and the
    mode is met by it; else None: the mode's own."""
    if test.config.setup.stand.machine is None:
        return None
    V = np.asarray(test.context["start"].V_TA, float)
    return V if _along(test, mode) > OWN_TWIST * float(np.linalg.norm(V[:3])) else None


def _along(test: Assembly, mode: Mode) -> float:
    """Speed of the first contact along the mode's screw, m/s."""
    start = test.context["start"]
    V = np.asarray(start.V_TA, float)
    return float(mode.shape @ np.concatenate([V[:3] - np.cross(V[3:], start.X_TA[:3]), V[3:]]))


def _first_contact(test: Assembly, slowest: Mode) -> Touch:
    """The mechanism's own first contact; nothing for a line that cannot be built, which the modes say."""
    try:
        return play_mechanism(test, slowest)
    except ConfigurationError:
        return Touch()


def _played(test: Assembly, mode: Mode, speed: float, twist: np.ndarray | None, ideal: bool = False) -> Played:
    """A line that cannot be built for the mode is a refusal with its reason, as one that cannot play it to the end."""
    try:
        return play(test, mode, speed, None, twist, ideal)
    except ConfigurationError as error:
        return Played(math.nan, str(error), None, 0.0)


def loop_of(test: Assembly, lead: tuple[float, float] = (0.0, 0.0)) -> Loop:
    """The loop of this line as the ledger knows it, behind a setpoint lead."""
    ledger = test.ledger
    return Loop(ledger.transport_s, ledger.drive_frequency_hz, ledger.drive_damping, lead, test.period_ns * 1e-9)


def curves(test: Assembly, prediction: Prediction, frequencies: Sequence[float] = CURVE_HZ) -> dict[str, np.ndarray]:
    """Restitution over the frequency for the test's compensator ("as configured") and for every other of the registry with its own
    defaults, along the first judged mode; those that cannot be built without keys are left out."""
    mode = next((m for m in prediction.modes if m.judged), None)
    screw = mode.screw if mode is not None else (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    found = {f"{prediction.compensator}, as configured": restitution_curve(test, frequencies, 0.0, prediction.speed_m_s, None, screw)}
    for name in sorted(registry.parts("compensation")):
        try:
            found[name] = restitution_curve(test, frequencies, 0.0, prediction.speed_m_s, (name, {}), screw)
        except ConfigurationError:
            continue
    return found


def picture(test: Assembly, prediction: Prediction, path: str | Path) -> Path:
    """e over frequency for each compensator, with the band and the modes of this contact."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5))
    axes = figure.subplots()
    for name, e in curves(test, prediction).items():
        axes.semilogx(CURVE_HZ, np.clip(e, 0.5, 2.0), marker=".", label=name, linewidth=2.5 if name.endswith("as configured") else 1.0)
    axes.axhspan(*BAND, color="0.85", label="band 0.98...1.02")
    for mode in prediction.modes:
        if mode.judged:
            axes.axvline(mode.frequency_hz, color="0.5", linestyle=":")
    axes.set(xlabel="contact frequency, Hz", ylabel="restitution of an elastic contact", ylim=(0.8, 1.6))
    axes.legend(fontsize=8)
    axes.grid(True, which="both", alpha=0.3)
    figure.tight_layout()
    with whole(Path(path)) as unfinished:
        figure.savefig(unfinished, dpi=110)
    return Path(path)
