"""From the machine of a stand to the lead of its platform, at the pose of the first contact and in the axes of the docking units.

The response of a machine is that of the platform's pose, P in W axes (`hil_server.line.stand_response`); a compensator moves A in T
axes. With V_TA = S V_WP, L_T = S L_W S^-1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil_server.config import physics
from hil_server.config.model import DriveModel
from hil_server.line.context import Context
from hil_server.line.stand_response import StandResponse
from hil_server.values import Document
from rt_kernels.compensation.effective_mass import rotation, skew
from rt_kernels.context import Mounting

# of the lead: a contact at 10 Hz, too, is met better by what is right below it than by a fit up to there, behind the sway on the oil
BAND_HZ = (0.5, 5.0)
DRIVE_BAND_HZ = (0.5, 10.0)


@dataclass(frozen=True)
class PlatformLead:
    """L1 (6, 6) s, L2 (6, 6) s2 in T axes; left: largest |T (1 + L1 s + L2 s2) - 1| over the band by the platform's direction (6,)."""

    L1: np.ndarray
    L2: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class PlatformModel:
    """A stand's machine at the pose of the first contact."""

    response: StandResponse
    S: np.ndarray
    origin: str

    def lead(self, delay_s: float) -> PlatformLead:
        """What inverts platform and the rest of the loop's delay, s."""
        found = self.response.lead(BAND_HZ, delay_s)
        back = np.linalg.inv(self.S)
        L1, L2 = (_rounded(self.S @ L @ back, digits) for L, digits in ((found.L1, 9), (found.L2, 10)))
        return PlatformLead(L1, L2, np.asarray(found.left))

    def drive(self) -> DriveModel:
        """The second order with delay that is nearest to the response along the docking axis: for parts that model one drive."""
        from scipy.optimize import least_squares

        f = np.geomspace(*DRIVE_BAND_HZ, 40)
        s = 2j * np.pi * f
        T = (self.S @ self.response.response(f) @ np.linalg.inv(self.S))[:, 0, 0]

        def off(z: np.ndarray) -> np.ndarray:
            w, zeta, delay = np.exp(z)
            error = w * w / (s * s + 2.0 * zeta * w * s + w * w) * np.exp(-s * delay) - T
            return np.concatenate([error.real, error.imag])

        w, zeta, delay = np.exp(least_squares(off, np.log([80.0, 0.8, 3e-3]), jac="3-point", xtol=1e-15, ftol=1e-15, gtol=1e-15).x)
        frequency_hz, zeta, delay = (float(_rounded(x, digits)) for x, digits in ((w / (2.0 * np.pi), 4), (zeta, 6), (delay, 8)))
        return DriveModel(frequency_hz, zeta, delay, self.origin)


def _rounded(x: np.ndarray, digits: int) -> np.ndarray:
    """What a fit leaves behind these digits is of the processor: a run starts with the same bits on each."""
    return np.round(x, digits) + 0.0  # no -0


def platform_at(mounting: Mounting, X_TA: Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(X_WP (7,), S (6, 6) with V_TA = S V_WP) for the relative pose X_TA, as rt_kernels.stewart.mounting has it."""
    target_fixed = (mounting.unit_on_load_cell == "target") == (mounting.load_cell_on == "floor")
    X_TA, X_WF, X_PM = (np.asarray(X, float) for X in (X_TA, mounting.X_WF, mounting.X_PM))
    X_WM = physics.multiply(X_WF, X_TA if target_fixed else inverse(X_TA))
    X_WP = physics.multiply(X_WM, inverse(X_PM))
    zero = np.zeros((3, 3))
    if target_fixed:
        # velocity of the moving port A, and its rotation, into T axes
        R = rotation(X_WF[3:]).T
        S = np.block([[R, -R @ skew(X_WM[:3] - X_WP[:3])], [zero, R]])
    else:
        # T moves, A stands: the other way about, of the point of the platform at A
        R = rotation(X_WM[3:]).T
        S = -np.block([[R, -R @ skew(X_WF[:3] - X_WP[:3])], [zero, R]])
    return X_WP, S


def inverse(X: np.ndarray) -> np.ndarray:
    """Of a pose (7,)."""
    q = np.array([-X[3], -X[4], -X[5], X[6]])
    return np.concatenate([-rotation(q) @ X[:3], q])


def platform_model(model: Document, origin: str, context: Context) -> PlatformModel:
    """model, origin: of the machine (`config.model.Machine`); context: of the line, with platform, mounting and start."""
    X_WP, S = platform_at(context["mounting"], context["start"].X_TA)
    return PlatformModel(StandResponse(model, context["platform"], list(X_WP), context["mounting"].gravity_m_s2), S, origin)
