"""How a hydraulic stand answers small motion and small load at a pose: linear, in closed form from its parameters.

Per leg (rod position y, pressures p_a and p_b, filtered load pressure p_f, spool x), for the platform its displacement q = (dp, dphi) and
twist V at P in W axes, y = J q, setpoint of the legs r = J q_r, everything about rest in the pose under the weight:

    p_a'  = beta/V_a (g_a x - A_a y' - C_i (p_a - p_b) - C_e p_a)           p_b' = beta/V_b (A_b y' - g_b x + C_i (p_a - p_b) - C_e p_b)
    x''   = w_v^2 (u - x) - 2 z_v w_v x'        u = (k_f r' + k_v (r - y))/K_x - k_p (p_L - p_f)        p_f' = w_hp (p_L - p_f)
    M V'  = J' (A_a p_a - A_b p_b - sigma y') + W - K_g q               p_L = p_a - p_b A_b/A_a

g_a, g_b: flow per opening, K sqrt(pressure drop), the mean of what the two directions of the spool have at rest. K_g: what weight and
preload do when the platform is displaced. M: with the legs' mass. Overlap, Coulomb friction, saturation and a falling supply are left out:
this is what the machine does at an amplitude at which they do not count. (Merritt 1967, chapter 6; Koekebakker 2001, chapter 3, for the
legs' mass.)

The setpoint acts after the drive's transport delay; what a tick, a hold or a bus add stands in the ledger.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hil_server.values import Document
from rt_kernels.algebra.arrays import quat_exponential, quat_multiply, quat_to_matrix
from rt_kernels.compensation.effective_mass import skew
from rt_kernels.stewart.platform import Platform

DIRECTIONS = ("X", "Y", "Z", "about X", "about Y", "about Z")
Array = np.ndarray


@dataclass(frozen=True)
class Lead:
    """What inverts the platform's response in a band: T(s) (1 + L1 s + L2 s^2) = 1.

    L1: (6, 6) s, L2: (6, 6) s^2, at P in W axes, as the response. left: per direction the largest |T (1 + L1 s + L2 s^2) - 1| in the band,
    rotations times the radius of the platform's joints. band_hz: where it was fitted."""

    L1: Array
    L2: Array
    left: Array
    band_hz: tuple[float, float]


def moved(X: Array, q: Array) -> Array:
    """A pose displaced by q = (dp, dphi), W axes."""
    return np.concatenate([X[:3] + q[:3], quat_multiply(quat_exponential(q[3:]), X[3:])])


class StandResponse:
    """Small-signal response of a hydraulic stand at one pose.

    keys: parameters of the hydraulic machine (`[stand_model]`, or `[virtual]` of a hydraulic stand); platform: Platform; X_WP: pose (7,),
    neutral if not given; gravity_m_s2: (3,) in W. Raises KeyError for a parameter that is not there."""

    def __init__(self, keys: Document, platform: Platform, X_WP: Sequence[float] | Array | None = None,
                 gravity_m_s2: Sequence[float] = (-9.80665, 0.0, 0.0)) -> None:  # fmt: skip
        self.keys, self.platform = keys, platform
        self.X_WP = np.array(platform.neutral_pose if X_WP is None else X_WP, float)
        self.gravity = np.asarray(gravity_m_s2, float)
        self.J = np.asarray(platform.jacobian(self.X_WP))
        self.rod = np.asarray(platform.leg_lengths(self.X_WP)) - platform.leg_length_min
        self.stroke = platform.leg_length_max - platform.leg_length_min

    # ------------------------------------------------------------------------------------------------------------- rigid body
    @cached_property
    def mass_matrix(self) -> Array:
        """(6, 6) of platform, unit and legs at P, W axes; kg, kg.m, kg.m2."""
        return rigid_body(self.keys, self.platform, self.X_WP, self.gravity)[0]

    @cached_property
    def leg_loads(self) -> Array:
        """(6,) N: axial forces that carry the weight."""
        return np.linalg.solve(self.J.T, -rigid_body(self.keys, self.platform, self.X_WP, self.gravity)[1])

    @cached_property
    def weight_stiffness(self) -> Array:
        """(6, 6) K_g: change of -(J' F + weight) with the displacement, forces of the legs held; N/m, N.m/rad."""
        K = np.empty((6, 6))
        for j in range(6):
            step = np.zeros(6)
            step[j] = 1e-4
            ends = []
            for sign in (1.0, -1.0):
                X = moved(self.X_WP, sign * step)
                weight = rigid_body(self.keys, self.platform, X, self.gravity)[1]
                ends.append(np.asarray(self.platform.jacobian(X)).T @ self.leg_loads + weight)
            K[:, j] = -(ends[0] - ends[1]) / 2e-4
        return K

    # ------------------------------------------------------------------------------------------------------------- hydraulics
    @cached_property
    def volumes(self) -> tuple[Array, Array]:
        """m3, (6,) each: V_a, V_b with the dead volumes."""
        k = self.keys
        return (
            k["dead_volume_a_m3"] + k["piston_area_a_m2"] * self.rod,
            k["dead_volume_b_m3"] + k["piston_area_b_m2"] * (self.stroke - self.rod),
        )

    @cached_property
    def rest_pressures(self) -> tuple[Array, Array]:
        """Pa, (6,) each: p_a, p_b that carry the weight."""
        k = self.keys
        A_a, A_b = k["piston_area_a_m2"], k["piston_area_b_m2"]
        p_a = k["tank_pressure_pa"] + (k["supply_pressure_pa"] - k["tank_pressure_pa"]) * A_b / (A_a + A_b) + 0.5 * self.leg_loads / A_a
        return p_a, (A_a * p_a - self.leg_loads) / A_b

    @cached_property
    def flow_gains(self) -> tuple[Array, Array]:
        """m3/s per opening, (6,) each, into a and out of b: mean of the two directions of the spool."""
        k = self.keys
        (p_a, p_b), p_s, p_t = self.rest_pressures, k["supply_pressure_pa"], k["tank_pressure_pa"]
        K, turn = valve_gain(k), k["valve_laminar_pressure_pa"]
        return (0.5 * K * (root(p_s - p_a, turn) + root(p_a - p_t, turn)), 0.5 * K * (root(p_b - p_t, turn) + root(p_s - p_b, turn)))

    # ------------------------------------------------------------------------------------------------------------ state space
    @cached_property
    def state_space(self) -> tuple[Array, Array, Array, Array]:
        """(A, B, B_rate, B_wrench): z' = A z + B q_r + B_rate q_r' + B_wrench W, z = (q, V, p_a, p_b, p_f, x, x'), six of each."""
        k, J = self.keys, self.J
        A_a, A_b = k["piston_area_a_m2"], k["piston_area_b_m2"]
        C_i, C_e = k["leakage_internal_m3_per_s_pa"], k["leakage_external_m3_per_s_pa"]
        (g_a, g_b), (V_a, V_b) = self.flow_gains, self.volumes
        w_v, z_v = 2.0 * np.pi * k["valve_frequency_hz"], k["valve_damping"]
        w_hp, k_p = 2.0 * np.pi * k["pressure_highpass_hz"], k["pressure_gain_per_pa"]
        K_x, ratio, one = speed_gain(k), A_b / A_a, np.eye(6)
        q, V, a, b, f, x, dx = (slice(6 * i, 6 * i + 6) for i in range(7))
        A = np.zeros((42, 42))
        A[q, V] = one
        inverse = np.linalg.inv(self.mass_matrix)
        A[V, q] = -inverse @ self.weight_stiffness
        A[V, V] = -inverse @ J.T @ (k["friction_viscous_n_s_per_m"] * J)
        A[V, a], A[V, b] = inverse @ J.T * A_a, -inverse @ J.T * A_b
        c_a, c_b = np.diag(k["bulk_modulus_pa"] / V_a), np.diag(k["bulk_modulus_pa"] / V_b)
        A[a, V], A[a, a], A[a, b], A[a, x] = -c_a @ J * A_a, -c_a * (C_i + C_e), c_a * C_i, c_a @ np.diag(g_a)
        A[b, V], A[b, b], A[b, a], A[b, x] = c_b @ J * A_b, -c_b * (C_i + C_e), c_b * C_i, -c_b @ np.diag(g_b)
        A[f, a], A[f, b], A[f, f] = w_hp * one, -w_hp * ratio * one, -w_hp * one
        A[x, dx] = one
        A[dx, x], A[dx, dx] = -(w_v**2) * one, -2.0 * z_v * w_v * one
        A[dx, q], A[dx, a] = -(w_v**2) * k["position_gain_per_s"] / K_x * J, -(w_v**2) * k_p * one
        A[dx, b], A[dx, f] = w_v**2 * k_p * ratio * one, w_v**2 * k_p * one
        B, B_rate, B_wrench = np.zeros((42, 6)), np.zeros((42, 6)), np.zeros((42, 6))
        B[dx] = w_v**2 * k["position_gain_per_s"] / K_x * J
        B_rate[dx] = w_v**2 * k["velocity_feedforward"] / K_x * J
        B_wrench[V] = inverse
        return A, B, B_rate, B_wrench

    def _answer(self, frequency_hz: Array | float, load: bool) -> Array:
        """States (..., 42, 6) per setpoint or wrench of each direction at the frequencies."""
        A, B, B_rate, B_wrench = self.state_space
        s = 2j * np.pi * np.asarray(frequency_hz, float)[..., None, None]
        if load:
            right = np.broadcast_to(B_wrench + 0j, (*s.shape[:-2], 42, 6))
        else:
            right = (B + s * B_rate) * np.exp(-s * self.keys.get("drive_delay_s", 0.0))
        answer: Array = np.linalg.solve(s * np.eye(42) - A, right)
        return answer

    def response(self, frequency_hz: Array | float) -> Array:
        """(..., 6, 6) complex: displacement of the platform per displacement of its setpoint, at P in W axes, with the drive's delay."""
        return self._answer(frequency_hz, False)[..., :6, :]

    def compliance(self, frequency_hz: Array | float) -> Array:
        """(..., 6, 6) complex: displacement of the platform per wrench at P, W axes; m/N, rad/(N.m)."""
        return self._answer(frequency_hz, True)[..., :6, :]

    def lead(self, band_hz: tuple[float, float] = (0.5, 10.0), delay_s: float = 0.0, points: int = 60) -> Lead:
        """L1 and L2 by least squares over the band, evenly in the logarithm of the frequency. delay_s: what else lies between the motion of
        the model and the drives' setpoint (ticks, hold, bus, sensor), inverted too."""
        f = np.geomspace(*band_hz, points)
        s = (2j * np.pi * f)[:, None, None]
        scale = np.array([1.0] * 3 + [self.platform.radius] * 3)
        T = scale[:, None] * self.response(f) / scale * np.exp(-s * delay_s)
        left = np.eye(6) - T
        # columns by themselves: T (l1 s + l2 s^2) = e - T e, in units of a mean frequency, so that both unknowns weigh alike
        w = 2.0 * np.pi * np.sqrt(band_hz[0] * band_hz[1])
        matrix = np.concatenate([T * s / w, T * (s / w) ** 2], axis=2).reshape(-1, 12)
        found, *_ = np.linalg.lstsq(np.concatenate([matrix.real, matrix.imag]),
                                    np.concatenate([left.reshape(-1, 6).real, left.reshape(-1, 6).imag]), rcond=None)  # fmt: skip
        rest = left - (matrix @ found).reshape(left.shape)
        back = scale / scale[:, None]
        return Lead(found[:6] / w * back, found[6:] / w**2 * back, np.abs(rest).max(axis=(0, 1)), band_hz)


# ------------------------------------------------------------------------------------------------------------------- equations
def root(d: Array, transition: float) -> Array:
    """sqrt of a pressure drop with a laminar middle, Pa -> sqrt(Pa)."""
    found: Array = d / (np.square(d) + transition**2) ** 0.25
    return found


def valve_gain(keys: Document) -> float:
    """K = Q_n/sqrt(dp_n/2), m3/(s sqrt(Pa)): flow over one edge at full opening; the rated drop is that over both."""
    return float(keys["valve_flow_m3_per_s"] / np.sqrt(0.5 * keys["valve_pressure_drop_pa"]))


def speed_gain(keys: Document) -> float:
    """K_x, m/s: no-load speed at full opening, what the drive's controller divides by; of its two directions the mean of the inverse."""
    p_s, p_t, a = keys["supply_pressure_pa"], keys["tank_pressure_pa"], keys["piston_area_b_m2"] / keys["piston_area_a_m2"]
    out, back = np.sqrt((p_s - a * p_t) / (1.0 + a**3)), np.sqrt((a * p_s - p_t) / (1.0 + a**3))
    return float(valve_gain(keys) / keys["piston_area_a_m2"] * 2.0 / (1.0 / out + 1.0 / back))


def rigid_body(keys: Document, platform: Platform, X_WP: Array, gravity: Array) -> tuple[Array, Array]:
    """Mass matrix (6, 6) of platform, unit and legs at P, W axes, and their weight (6,), N, N.m, at rest.

    A leg swings about its base joint and pushes its rod out: B = m_2 n n' + (J_1 + J_2 + m_2 (l - a_2)^2)/l^2 (1 - n n') at its joint."""
    R = quat_to_matrix(X_WP[3:])
    m, com = keys["platform_mass_kg"], R @ np.asarray(keys["platform_com_m"], float)
    C = skew(com)
    inertia = R @ np.asarray(keys["platform_inertia_kg_m2"], float) @ R.T - m * C @ C
    M = np.block([[m * np.eye(3), -m * C], [m * C, inertia]])
    weight = m * np.concatenate([gravity, np.cross(com, gravity)])
    m_1, a_1, J_1 = keys["cylinder_mass_kg"], keys["cylinder_com_m"], keys["cylinder_inertia_kg_m2"]
    m_2, a_2, J_2 = keys["rod_mass_kg"], keys["rod_com_m"], keys["rod_inertia_kg_m2"]
    for joint, base in zip(np.asarray(platform.platform_joints) @ R.T, np.asarray(platform.base_joints), strict=True):
        d = X_WP[:3] + joint - base
        length = np.linalg.norm(d)
        along = np.outer(d, d) / length**2
        out = length - a_2
        G = np.hstack([np.eye(3), -skew(joint)])
        B = m_2 * along + (J_1 + J_2 + m_2 * out**2) / length**2 * (np.eye(3) - along)
        M = M + G.T @ B @ G
        share = m_2 * along + (m_1 * a_1 + m_2 * out) / length * (np.eye(3) - along)
        weight = weight + G.T @ share @ gravity
    return M, weight
