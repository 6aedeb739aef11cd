"""`hil-server predict`: before the test, what the stand will make of a contact.

From the stand, the vehicles, the mechanism and the delay ledger: stiffness and damping of the mechanism at the first contact (differences
of its own model), in series with them the compliance of an arm that carries a port (`port_compliance_rows` of a vehicle), the modes of
the contact in six degrees of freedom, and per mode frequency, damping, restitution with the configured compensator, critical delay, phase
budget, PSI and the limit of a latched mode. For each other compensator a curve of the restitution over frequency. Exit code 1 when a mode
would leave the band 0.98...1.02.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hil_server import assembly
from hil_server.analysis.stability import (
    BAND,
    Loop,
    Mode,
    contact_modes,
    critical_delay,
    latched_limit,
    one_contact,
    phase_budget,
    stability_indicator,
)
from hil_server.assembly import Assembly
from hil_server.config import TestConfig
from rt_kernels.compensators.effective_mass import relative_inverse_inertia, skew

DEPTHS_M = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
OTHERS = ("none", "phase_lead", "polynomial", "pose_referenced_force", "smith", "lead_and_pose_force")
CURVE_HZ = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
HIGHEST_HZ = 200.0  # a mode above it is not reproduced by any stand: named, not judged


@dataclass(frozen=True)
class ModePrediction:
    """One contact mode. restitution: with the stand and the configured compensator; ideal: as in orbit."""

    frequency_hz: float
    damping_ratio: float
    effective_mass_kg: float
    stiffness_n_m: float
    direction: list[float]
    restitution: float
    ideal: float
    critical_delay_s: float
    phase_budget_deg: float
    delay_budget_s: float
    indicator: float
    latched_limit_hz: float
    judged: bool

    @property
    def ratio(self) -> float:
        return self.restitution / self.ideal

    @property
    def within(self) -> bool:
        return not self.judged or BAND[0] <= self.ratio <= BAND[1]


@dataclass(frozen=True)
class Prediction:
    """modes in rising frequency; ledger (term → s) and where each figure comes from; compensator; speed at the first contact."""

    modes: list[ModePrediction]
    ledger: dict[str, float]
    origins: dict[str, str]
    compensator: str
    speed_m_s: float

    @property
    def within(self) -> bool:
        return all(mode.within for mode in self.modes)

    def as_dict(self) -> dict[str, Any]:
        """For the log and for machines, JSON values only (what is infinite or undefined is None)."""
        modes = [{k: _finite(v) for k, v in (asdict(m) | {"ratio": m.ratio}).items()} | {"within": m.within} for m in self.modes]
        own = {"ledger": self.ledger, "origins": self.origins, "compensator": self.compensator}
        return {"modes": modes, **own, "within": self.within, "verdict": self.verdict()}

    def verdict(self) -> str:
        bad = [m for m in self.modes if not m.within]
        if not bad:
            return "inside the band"
        worst = max(bad, key=lambda m: abs(math.log(max(m.ratio, 1e-9))))
        there = f"contact at {worst.frequency_hz:.2f} Hz would part at {worst.ratio:.3f} of its speed in orbit"
        return f"{there}, outside {BAND[0]}...{BAND[1]}"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


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
        if np.linalg.norm(wrench(zero, zero)[:3]) > 0.0:
            break
    else:
        mechanism.restore(state)
        return np.zeros((6, 6)), np.zeros((6, 6))
    step = 0.2 * depth
    K, B = np.empty((6, 6)), np.empty((6, 6))
    for i in range(6):
        e = np.eye(6)[i]
        K[:, i] = (wrench(step * e, zero) - wrench(-step * e, zero)) / (2 * step)
        B[:, i] = (wrench(zero, 1e-3 * e) - wrench(zero, -1e-3 * e)) / 2e-3
    mechanism.restore(state)
    return 0.5 * (K + K.T), 0.5 * (B + B.T)


def series_compliance(vehicles: Mapping[str, Any], X_TA: np.ndarray) -> np.ndarray:
    """Compliance (6, 6) of what carries both ports, in series with the contact, at and in T: C_T + A^-1 C_A A^-T, where A carries a
    twist from the origin of T to that of A and into its axes."""
    from scipy.spatial.transform import Rotation

    total = np.zeros((6, 6))
    if vehicles["target"]["port_compliance"] is not None:
        total += np.asarray(vehicles["target"]["port_compliance"], float)
    if vehicles["active"]["port_compliance"] is not None:
        R = Rotation.from_quat(X_TA[3:]).as_matrix()
        # v at T's origin = v at A's origin - w x p = R v_A + p x R w_A
        to_T = np.block([[R, skew(X_TA[:3]) @ R], [np.zeros((3, 3)), R]])
        total += to_T @ np.asarray(vehicles["active"]["port_compliance"], float) @ to_T.T
    return total


def _moved(X: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The pose after the small motion d of the body about the origin of T."""
    from scipy.spatial.transform import Rotation

    R = Rotation.from_rotvec(d[3:])
    return np.concatenate([R.apply(X[:3]) + d[:3], (R * Rotation.from_quat(X[3:])).as_quat()])


def _at_active_port(V: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.concatenate([V[:3] + np.cross(V[3:], X[:3]), V[3:]])


# ------------------------------------------------------------------------------------------------------ the prediction


def loop_of(test: Assembly, name: str | None = None, keys: Mapping[str, Any] | None = None) -> Loop:
    """The loop of this line as the ledger knows it, with the configured compensator or another one."""
    sums = test.ledger.sums()
    if name is None:
        name, keys = test.config.part("compensators")
    if name == "phased":
        table = dict((keys or {})["contact"])
        name, keys = table.pop("part"), table
    late = getattr(test.line.stages["dynamics"], "integrator_late_ticks", 0.0)
    return Loop(sums["transport_s"], sums["drive_frequency_hz"], sums["drive_damping"], sums, name, dict(keys or {}), test.period_ns * 1e-9,
                late)  # fmt: skip


def predict(config: TestConfig, test: Assembly | None = None) -> Prediction:
    """Prediction for a configuration. test: its line, if there is one already (its ledger then holds what its devices said)."""
    test = test or assembly.simulation(config)
    start = test.context["start"]
    K, B = contact_matrices(test.context["mechanism"], start["X_TA"], test.context["period_s"])
    vehicles = test.context["vehicles"]
    series = series_compliance(vehicles, start["X_TA"])
    modes = contact_modes(relative_inverse_inertia(vehicles, start["X_TA"]), K, B, series) if np.any(K) else []
    speed = max(1e-3, float(np.linalg.norm(start["V_TA"][:3])))
    gate = dict(config.event_detectors).get("contact_on_n", 20.0)
    loop = loop_of(test)
    found = [predict_mode(loop, mode, speed, gate) for mode in modes]
    return Prediction(found, test.ledger.as_dict(), test.ledger.origins(), loop.compensator, speed)


def predict_mode(loop: Loop, mode: Mode, speed: float = 0.02, gate_n: float = 0.0) -> ModePrediction:
    """One mode: the tick-by-tick contact for the restitution, the root laws for the rest."""
    judged = mode.frequency_hz < HIGHEST_HZ and mode.zeta < 0.95
    zeta = min(mode.zeta, 0.95)
    ideal = math.exp(-math.pi * zeta / math.sqrt(1 - zeta * zeta))
    w = 2 * math.pi * mode.frequency_hz
    B = 2 * zeta * w * mode.effective_mass
    phase, delay = phase_budget(mode.frequency_hz)
    critical = critical_delay(mode.effective_mass, mode.stiffness, B)
    e = one_contact(loop, mode.frequency_hz, zeta, mode.effective_mass, speed, gate_n) if judged else math.nan
    return ModePrediction(
        mode.frequency_hz, mode.zeta, mode.effective_mass, mode.stiffness, [float(x) for x in mode.shape[:3]], e, ideal, critical, phase,
        delay, stability_indicator(critical), latched_limit(loop, zeta, mode.stiffness) if judged and zeta > 1e-4 else 0.0, judged,
    )  # fmt: skip


def curves(test: Assembly, mass: float, zeta: float, speed: float = 0.02, names: Sequence[str] = OTHERS) -> dict[str, list[float]]:
    """Restitution over CURVE_HZ for each compensator on this stand, with the true stiffness as its prior."""
    return {name: [one_contact(loop_of(test, name, {}), f, zeta, mass, speed) for f in CURVE_HZ] for name in names}


def picture(test: Assembly, prediction: Prediction, path: str | Path) -> Path:
    """e over frequency for each compensator, with the band and the modes of this contact."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    mass = prediction.modes[0].effective_mass_kg if prediction.modes else 300.0
    figure, axes = plt.subplots(figsize=(8, 5))
    for name, e in curves(test, mass, 0.0, prediction.speed_m_s).items():
        axes.semilogx(CURVE_HZ, np.clip(e, 0.5, 2.0), label=name)
    axes.axhspan(*BAND, color="0.85", label="band 0.98...1.02")
    for mode in prediction.modes:
        if mode.judged:
            axes.axvline(mode.frequency_hz, color="0.5", linestyle=":")
    axes.set(xlabel="contact frequency, Hz", ylabel="restitution of an elastic contact", ylim=(0.8, 1.6))
    axes.legend(fontsize=8)
    axes.grid(True, which="both", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return Path(path)


# ----------------------------------------------------------------------------------------------------------------- verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from hil_server.cli import add_configuration_arguments

    add_configuration_arguments(parser)
    parser.add_argument("--picture", metavar="PNG", help="restitution over frequency for each compensator")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from hil_server.config import load_test

    config = load_test(args.config, args.set)
    test = assembly.simulation(config)
    found = predict(config, test)
    _print(found)
    file = args.picture or (str(Path(args.out) / "prediction.png") if args.out else None)
    if file:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        print(f"picture         {picture(test, found, file)}")
    return found.as_dict() | {"picture": file, "exit_code": 0 if found.within else 1}


def _print(found: Prediction) -> None:
    for name, seconds in found.ledger.items():
        print(f"{name:15s} {seconds * 1e3:8.3f} ms  {found.origins.get(name, '')}".rstrip())
    print(f"compensator     {found.compensator}")
    if not found.modes:
        print("no contact found within 30 mm of the nominal first contact")
    else:
        print("  f, Hz   zeta    mass, kg   e      ideal   ratio   crit. delay  budget          PSI    latched below")
    for m in found.modes:
        head = f"{m.frequency_hz:7.2f}  {m.damping_ratio:.3f}  {m.effective_mass_kg:9.1f}"
        budget = f"{m.phase_budget_deg:.2f} deg {m.delay_budget_s * 1e3:6.3f} ms"
        if not m.judged:
            print(f"{head}   too stiff or too damped for a stand: not judged")
            continue
        limit = f"{m.latched_limit_hz:6.2f} Hz" if m.latched_limit_hz else "undamped: none"
        indicator = f"{m.indicator:5.2f}" if math.isfinite(m.indicator) else "  -  "
        print(f"{head}  {m.restitution:6.4f} {m.ideal:6.4f}  {m.ratio:6.4f}"
              f"  {m.critical_delay_s * 1e3:8.3f} ms  {budget}  {indicator}  {limit}{'' if m.within else '   OUTSIDE'}")  # fmt: skip
    print(f"verdict         {found.verdict()}")
