"""The eleven parameters of a docking, the twelfth found by first contact (Yaskevich 2020, 4.5).

The vehicle that does not approach stands at the origin of N with its axes along N; the other one has the attitude A(yaw, pitch, roll),
the velocity of its centre of mass and its angular rate. The ports' lateral miss is given; the axial distance is where the first point of
the mechanism touches with no more than the accepted penetration, found by bisection along the docking axis.
"""

from collections.abc import Callable

import numpy as np

from hil_server.config.model import InitialConditions
from hil_server.errors import ConfigurationError
from rt_kernels.algebra.arrays import quat_from_yaw_pitch_roll, quat_multiply, quat_rotate, quat_rotate_back
from rt_kernels.context import Start, Vehicles

CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])
SEARCH_FROM_M, SEARCH_TO_M, SEARCH_STEPS = -3.0, 1.0, 800


def relative_attitude(conditions: InitialConditions) -> np.ndarray:
    """q_VC for the active vehicle approaching (q_CV otherwise): Ry(yaw) Rz(pitch) Rx(roll), (4.2.2) transposed."""
    found: np.ndarray = quat_from_yaw_pitch_roll(*np.radians(conditions.angles_deg))
    return found


def start(conditions: InitialConditions, vehicles: Vehicles, max_penetration: Callable[[np.ndarray], float] | None) -> Start:
    """Relative pose and twist at the first contact.

    max_penetration(X_TA) of the mechanism; without one the port planes meet (x = 0). Raises ConfigurationError when the two units do not
    touch anywhere on the line.
    """
    X_CA, X_VT = (np.asarray(vehicle.X_port, float) for vehicle in (vehicles.active, vehicles.target))
    q_CA, q_VT = X_CA[3:].copy(), X_VT[3:].copy()
    active_approaches = conditions.approaching_vehicle == "active"
    attitude = relative_attitude(conditions)
    q_VC = attitude if active_approaches else attitude * CONJUGATE
    q_TA = quat_multiply(quat_multiply(q_VT * CONJUGATE, q_VC), q_CA)
    lateral = np.array([0.0, *conditions.lateral_m])

    def pose_at(x: float) -> np.ndarray:
        return np.concatenate([lateral + [x, 0.0, 0.0], q_TA if q_TA[3] >= 0 else -q_TA])

    x = 0.0 if max_penetration is None else first_contact(lambda x: max_penetration(pose_at(x)), conditions.first_contact_penetration_m)
    X_TA = pose_at(x)
    # velocities of the two bodies in the axes of the one that stands (V for the active approaching, else C)
    velocity = np.array(conditions.velocity_m_s)
    rate = np.radians(conditions.rate_deg_s)
    if active_approaches:
        # v_C = v, w_C given in C axes; port A relative to port T, T at rest
        w_V = quat_rotate(q_VC, rate)
        v_A = velocity + np.cross(w_V, quat_rotate(q_VC, X_CA[:3]))
        V_TA = np.concatenate([quat_rotate_back(q_VT, v_A), quat_rotate_back(q_VT, w_V)])
    else:
        # the target approaches with velocity -v along the docking axis of C, its rate in V axes; A at rest
        q_CV = q_VC * CONJUGATE
        w_C = quat_rotate(q_CV, rate)
        v_T = -velocity + np.cross(w_C, quat_rotate(q_CV, X_VT[:3]))
        # d/dt p_TA in T: R_TC (-v_T - w x p_TA_C)
        q_CT = quat_multiply(q_CV, q_VT)
        p_TA_C = quat_rotate(q_CT, X_TA[:3])
        V_TA = np.concatenate([quat_rotate_back(q_CT, -v_T - np.cross(w_C, p_TA_C)), quat_rotate_back(q_CT, -w_C)])
    return Start(X_TA, V_TA, np.asarray(conditions.orbital_rate_rad_s, float))


def first_contact(depth: Callable[[float], float], accepted: float) -> float:
    """Axial offset with 0 < depth <= accepted: walk towards the target until something touches, then bisect. Raises ConfigurationError."""
    grid = np.linspace(SEARCH_FROM_M, SEARCH_TO_M, SEARCH_STEPS + 1)
    touching = next((i for i, x in enumerate(grid) if depth(float(x)) > 0.0), None)
    if touching is None or touching == 0:
        raise ConfigurationError(
            f"initial_conditions: the docking units {'touch already' if touching == 0 else 'do not touch'} between "
            f"{SEARCH_FROM_M} m and {SEARCH_TO_M} m on the docking axis; check the lateral miss and the mechanism's dimensions"
        )
    free, inside = float(grid[touching - 1]), float(grid[touching])
    for _ in range(200):
        d = depth(inside)
        if 0.0 < d <= accepted or inside - free < 1e-15:
            break
        middle = 0.5 * (free + inside)
        free, inside = (free, middle) if depth(middle) > 0.0 else (middle, inside)
    return inside
