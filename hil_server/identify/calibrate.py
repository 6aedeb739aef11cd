"""What the force sensor carries and how it stands, out of still poses.

    F = b_f + m R g            T = b_t + c x (m R g)            g: gravity in the sensor's assumed frame

Least squares in two linear steps (mass and force bias; then centre of mass and torque bias) and a rotation R of the sensor against its
assumed frame (Kabsch), with the residuals and the condition of each step. A pose that the others contradict is found by its deletion
(Cook and Weisberg 1982, section 2.2). In motion the same load is felt with g - a instead of g.

Input: a CSV of still poses with columns fx fy fz tx ty tz (N, N.m) and gx gy gz (m/s2, gravity in the sensor frame) or r11...r33 (sensor
to world), or a log of a run, out of which the still stretches without contact are taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hil_server.errors import ConfigurationError
from hil_server.exchange.foreign_logs import WRENCH, Resampled, Stream, common_grid, resample

GRAVITY_M_S2 = 9.80665
WELL_POSED = 30.0  # condition number beyond which the poses do not tell a parameter
TOLD_APART = 5.0  # sigma by which a mass is more than none
TURNED_MOST_DEG = 5.0  # the steps take R as none: beyond it the mass is more than 0.25 % off, (1 + 2 cos) / 3
CHANCE = 1e-3  # with which one of all poses is called contradicted although only noise moved it
ROUNDING = 1e-9  # of the largest value: what is left of a fit without noise


@dataclass(frozen=True)
class Calibration:
    """bias_n, bias_n_m (3,); mass_kg; com_m (3,) in the sensor frame; rotation_deg (3,) of the sensor against its assumed frame;
    mass_sigma_kg, com_sigma_m (3,): of the fit; residuals: rms of what the model leaves; condition of both steps (1 is best); poses;
    contradicted: number of a pose, from 1, and how far it is from where the others put it, N and N.m."""

    mass_kg: float
    com_m: np.ndarray
    bias_n: np.ndarray
    bias_n_m: np.ndarray
    rotation_deg: np.ndarray
    residual_n: float
    residual_n_m: float
    residual_turned_n: float
    condition_mass: float
    condition_com: float
    poses: int
    mass_sigma_kg: float
    com_sigma_m: np.ndarray
    contradicted: tuple[tuple[int, float, float], ...]

    @property
    def well_posed(self) -> bool:
        """Whether the poses determine mass and centre of mass: both condition numbers are below `WELL_POSED`."""
        return max(self.condition_mass, self.condition_com) < WELL_POSED

    @property
    def lacking(self) -> list[str]:
        """Why the result cannot be used, one line each; nothing when it can."""
        found = [f"pose {number} is {force:.3g} N and {moment:.3g} N.m from where the others put it: touched, or not at rest? repeat it "
                 "or leave it out" for number, force, moment in self.contradicted]  # fmt: skip
        turned = float(np.linalg.norm(self.rotation_deg))
        if not self.well_posed:
            found.append("these poses do not determine all parameters; add poses with other attitudes")
        elif turned > TURNED_MOST_DEG and self.residual_turned_n < 0.5 * self.residual_n:
            found.append(f"the sensor is turned by {turned:.1f} deg against the assumed frame, at most {TURNED_MOST_DEG:g}: correct that "
                         "frame, then calibrate again")  # fmt: skip
        elif abs(self.mass_kg) <= TOLD_APART * self.mass_sigma_kg:
            found.append(f"no mass beyond the noise ({self.mass_kg:.2g} +- {self.mass_sigma_kg:.2g} kg): centre of mass and orientation "
                         "are unknown, the bias is not")  # fmt: skip
        elif self.mass_kg < 0.0:
            found.append("the carried mass is negative: wrench or gravity has the opposite sign (a load shows m g)")
        return found

    def load(self, gravity: np.ndarray) -> np.ndarray:
        """Wrench (n, 6) that the sensor shows with nothing touching; gravity (n, 3) in the sensor frame, or g - a in motion."""
        f = self.mass_kg * gravity
        return np.hstack([self.bias_n + f, self.bias_n_m + np.cross(self.com_m, f)])


def skew(v: np.ndarray) -> np.ndarray:
    """v~ (n, 3, 3) with v~ x = v x x."""
    out = np.zeros((len(v), 3, 3))
    out[:, 0, 1], out[:, 0, 2], out[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return out - out.transpose(0, 2, 1)


def solve(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Least squares: solution and its sigma, rms of the residual, condition number with columns of unit length."""
    x, *_ = np.linalg.lstsq(matrix, right, rcond=None)
    lengths = np.linalg.norm(matrix, axis=0)
    condition = np.linalg.cond(matrix / np.where(lengths > 0, lengths, 1.0)) if np.all(lengths > 0) else np.inf
    left = matrix @ x - right
    variance = left @ left / max(1, len(right) - len(x))
    sigma = np.sqrt(variance * np.diag(np.linalg.pinv(matrix.T @ matrix)))
    return x, sigma, float(np.sqrt(np.mean(left**2))), float(condition)


def deletions(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each pose (three rows of the fit) is from where the fit to all others puts it (n,), and the chance of that, as the F test of
    its deletion, for one pose under noise."""
    from scipy.stats import f

    n, k = len(right) // 3, matrix.shape[1]
    q, _ = np.linalg.qr(matrix)
    left = (right - q @ (q.T @ right)).reshape(n, 3)
    blocks = q.reshape(n, 3, k)
    # a direction that one pose alone determines is contradicted by no other
    deleted = (np.linalg.pinv(np.eye(3) - blocks @ blocks.transpose(0, 2, 1), ROUNDING, hermitian=True) @ left[..., None])[..., 0]
    taken = np.einsum("ni,ni->n", left, deleted)
    free = 3 * n - 3 - k
    noise = np.maximum((np.sum(left**2) - taken) / free, (ROUNDING * np.abs(right).max()) ** 2 + np.finfo(float).tiny)
    return np.linalg.norm(deleted, axis=1), f.sf(taken / 3.0 / noise, 3, free)


def calibrate(force: np.ndarray, torque: np.ndarray, gravity: np.ndarray) -> Calibration:
    """force, torque, gravity: (n, 3) in the sensor frame, N, N.m, m/s2. Raises ConfigurationError for fewer than four poses."""
    n = len(force)
    if n < 4:
        raise ConfigurationError(f"calibration needs at least 4 still poses with different attitudes, got {n}")
    if not (np.all(np.isfinite(force)) and np.all(np.isfinite(torque)) and np.all(np.isfinite(gravity))):
        raise ConfigurationError("calibration: a value is not a finite number")
    identity = np.tile(np.eye(3), (n, 1))
    of_force, of_torque = np.column_stack([gravity.ravel(), identity]), np.hstack([-skew(gravity).reshape(-1, 3), identity])
    mass, mass_sigma, rms_f, condition_f = solve(of_force, force.ravel())
    moment, moment_sigma, rms_t, condition_t = solve(of_torque, torque.ravel())
    # rotation of the sensor against its assumed frame: R of (F - mean) = m R (g - mean)
    P, Q = force - force.mean(axis=0), gravity - gravity.mean(axis=0)
    U, _, Vt = np.linalg.svd(P.T @ Q)
    R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
    from scipy.spatial.transform import Rotation

    turned = P - Q @ R.T * np.sum(P * (Q @ R.T)) / np.sum(Q**2)
    return Calibration(
        mass_kg=float(mass[0]), com_m=moment[:3] / mass[0], bias_n=mass[1:], bias_n_m=moment[3:],
        rotation_deg=Rotation.from_matrix(R).as_rotvec(degrees=True), residual_n=rms_f, residual_n_m=rms_t,
        residual_turned_n=float(np.sqrt(np.mean(turned**2))), condition_mass=condition_f, condition_com=condition_t, poses=n,
        mass_sigma_kg=float(mass_sigma[0]), com_sigma_m=moment_sigma[:3] / abs(mass[0]),
        contradicted=_contradicted(((of_force, force.ravel()), (of_torque, torque.ravel())), n),
    )  # fmt: skip


def _contradicted(fits: Sequence[tuple[np.ndarray, np.ndarray]], n: int) -> tuple[tuple[int, float, float], ...]:
    """As `Calibration.contradicted`: the worst pose is left out until none is worse than chance; four stay."""
    kept, found = np.arange(n), []
    while len(kept) > 4:
        rows = (3 * kept[:, None] + np.arange(3)).ravel()
        (force, of_force), (moment, of_moment) = (deletions(matrix[rows], right[rows]) for matrix, right in fits)
        chance = np.minimum(of_force, of_moment)
        worst = int(np.argmin(chance))
        if not chance[worst] < CHANCE / (2 * len(kept)):
            break
        found.append((int(kept[worst]) + 1, float(force[worst]), float(moment[worst])))
        kept = np.delete(kept, worst)
    return tuple(sorted(found))


# ----------------------------------------------------------------------------------------------------------------- inputs


def gravity_of(stream: Stream, gravity_m_s2: float = GRAVITY_M_S2) -> np.ndarray:
    """(n, 3) in the sensor frame: columns gx gy gz, else from r11...r33 (sensor to world, world Z up)."""
    if "gx" in stream.columns:
        return stream.stack(("gx", "gy", "gz"))
    R = stream.stack([f"r{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3)]).reshape(-1, 3, 3)
    found: np.ndarray = R.transpose(0, 2, 1) @ np.array([0.0, 0.0, -gravity_m_s2])
    return found


def still_poses_of_log(path: str | Path, least_s: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Wrench (n, 6) without bias and load compensation, N and N.m, and gravity (n, 3) in S of each still stretch of a log."""
    from hil_server.config.physics import multiply
    from hil_server.line.run_header import configuration
    from hil_server.log.reader import read_log

    log = read_log(path)
    config = configuration(log)
    mounted = config.setup.stand.mounting
    r = log.records
    _, keys = config.part("wrench")
    scale = log.header.calibration["context"]["sensor_scale"]
    C = np.asarray(keys["calibration"]) if keys.get("calibration") else np.diag(1.0 / np.asarray(scale, float))
    raw = r["wrench_raw"] @ C.T
    speed = np.linalg.norm(r["V_WP"], axis=1)
    still = (speed < 1e-6) & (r["contact"] == 0) & (r["wrench_status"] == 0) & (r["phase"] > 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(int), [0]])))
    until = np.append(log.time_s[1:], log.time_s[-1:])  # a record stands for the time to the next one
    wrenches, gravities = [], []
    from scipy.spatial.transform import Rotation

    for a, b in zip(edges[::2], edges[1::2], strict=True):
        if until[b - 1] - log.time_s[a] < least_s:
            continue
        middle = slice(a + (b - a) // 3, b)  # the platform settles first
        X_WP = r["X_WP_measured"][middle].mean(axis=0)
        X_WS = multiply(X_WP, mounted.X_S) if mounted.load_cell_on == "platform" else mounted.X_S
        wrenches.append(raw[middle].mean(axis=0))
        gravities.append(Rotation.from_quat(X_WS[3:]).inv().apply(mounted.gravity_m_s2))
    if not wrenches:
        raise ConfigurationError(f"{path}: no stretch of {least_s} s without motion and contact")
    return np.array(wrenches), np.array(gravities)


# ------------------------------------------------------------------------------------------------------------ in motion


@dataclass(frozen=True)
class Accelerometer:
    """a = A g + b out of still poses: A (3, 3) turns and scales, b (3,). `felt` gives g - a in the sensor frame."""

    matrix: np.ndarray
    bias: np.ndarray
    residual: float

    def felt(self, reading: np.ndarray) -> np.ndarray:
        """g - a [m/s2] in the sensor frame, of a raw reading (3,) or of several (n, 3)."""
        found: np.ndarray = (reading - self.bias) @ np.linalg.inv(self.matrix)
        return found


def calibrate_accelerometer(reading: np.ndarray, gravity: np.ndarray) -> Accelerometer:
    """reading (n, 3) in any unit and frame, gravity (n, 3) in the sensor frame."""
    x, *_ = np.linalg.lstsq(np.column_stack([gravity, np.ones(len(gravity))]), reading, rcond=None)
    left = np.column_stack([gravity, np.ones(len(gravity))]) @ x - reading
    return Accelerometer(x[:3], x[3], float(np.sqrt(np.mean(left**2))))


def find_offset(reference: np.ndarray, other: np.ndarray, period_s: float, most_s: float = 0.05) -> float:
    """By how much `other` (n, k) is later than `reference` (n, k), s: the shift with the largest correlation, to a part of a period."""
    most = round(most_s / period_s)
    shifts = np.arange(-most, most + 1)
    a = reference[most:-most] - reference[most:-most].mean(axis=0)
    score = np.array([np.sum(a * (other[most + s : len(other) - most + s] - other.mean(axis=0))) for s in shifts])
    i = int(np.clip(np.argmax(score), 1, len(score) - 2))
    curve = score[i - 1] - 2 * score[i] + score[i + 1]
    return float((shifts[i] + (0.5 * (score[i - 1] - score[i + 1]) / curve if curve < 0 else 0.0)) * period_s)


@dataclass(frozen=True)
class Motion:
    """A free-motion run with the load taken off. residual (n, 6), NaN in gaps; mean, bound, rms (6,); streams: what was resampled."""

    time_s: np.ndarray
    residual: np.ndarray
    mean: np.ndarray
    bound: np.ndarray
    rms: np.ndarray
    rms_gravity_only: np.ndarray
    offset_s: float
    streams: list[Resampled]


def compensate_motion(found: Calibration, wrench: Stream, orientation: Stream, accelerometer: Stream | None = None,
                      sensor: Accelerometer | None = None, period_s: float = 1.0 / 700.0, gap_s: float = 0.02) -> Motion:  # fmt: skip
    """Takes bias, weight and inertia off a run without contact. The accelerometer's clock offset is found by correlation and taken off.

    Bound of the mean: three times the calibration's own residual. The sensor's noise averages out over the run, and so does the tool's
    acceleration between two rests; what stays is the model error of single poses, and that is what the residual measures."""
    used = [s for s in (wrench, orientation, accelerometer) if s is not None]
    grid = common_grid(used, period_s)
    names = [f"r{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3)]
    F = resample(wrench, WRENCH, grid, gap_s)
    R = resample(orientation, names, grid, gap_s)
    gravity = R.values.reshape(-1, 3, 3).transpose(0, 2, 1) @ np.array([0.0, 0.0, -GRAVITY_M_S2])
    streams, felt, offset = [F, R], gravity, 0.0
    still = F.values - found.load(gravity)
    if accelerometer is not None and sensor is not None:
        axes = ("ax", "ay", "az")
        first = resample(accelerometer, axes, grid, gap_s)
        inertia = np.nan_to_num(still[:, :3] / found.mass_kg)
        offset = find_offset(inertia, np.nan_to_num(sensor.felt(first.values) - gravity), period_s)
        shifted = resample(accelerometer, axes, grid, gap_s, offset)
        felt = sensor.felt(shifted.values)
        streams.append(shifted)
    residual = F.values - found.load(felt)
    ok = np.all(np.isfinite(residual), axis=1)
    bound = np.repeat([3.0 * found.residual_n, 3.0 * found.residual_n_m], 3)
    return Motion(grid, residual, residual[ok].mean(axis=0), bound, residual[ok].std(axis=0),
                  still[ok].std(axis=0), offset, streams)  # fmt: skip
