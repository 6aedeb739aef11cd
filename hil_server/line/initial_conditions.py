"""The eleven parameters of a docking, the twelfth found by first contact (Yaskevich 2020, 4.5).

The vehicle that does not approach stands at the origin of N with its axes along N; the port of the other one has the attitude A(yaw, pitch,
roll) against the port of the first, its centre of mass a velocity in the axes of the first one's port, and it turns with a rate in those of
its own port. (`between = "bodies"`: the axes of the root bodies instead; the same where the ports have them.) The ports' lateral miss is
given; the axial distance is where the first point of the mechanism touches with no more than the accepted penetration, found by bisection
along the docking axis.
"""

from collections.abc import Callable

import numpy as np

from hil_server.config.model import InitialConditions
from hil_server.errors import ConfigurationError
from rt_kernels.algebra.arrays import quat_from_yaw_pitch_roll, quat_multiply, quat_rotate, quat_rotate_back
from rt_kernels.context import Start, Vehicles

CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])
UNIT = np.array([0.0, 0.0, 0.0, 1.0])
SEARCH_FROM_M, SEARCH_TO_M, SEARCH_STEPS = -3.0, 1.0, 800


def relative_attitude(conditions: InitialConditions) -> np.ndarray:
    """q_TA for the active vehicle approaching (q_AT otherwise), or q_VC: Ry(yaw) Rz(pitch) Rx(roll), (4.2.2) transposed."""
    found: np.ndarray = quat_from_yaw_pitch_roll(*np.radians(conditions.angles_deg))
    return found


def start(conditions: InitialConditions, vehicles: Vehicles, max_penetration: Callable[[np.ndarray], float] | None) -> Start:
    """Relative pose and twist at the first contact.

    max_penetration(X_TA) of the mechanism; without one the port planes meet (x = 0). Raises ConfigurationError when the two units do not
    touch anywhere on the line.
    """
    X_CA, X_VT = (np.asarray(vehicle.X_port, float) for vehicle in (vehicles.active, vehicles.target))
    q_CA, q_VT = X_CA[3:].copy(), X_VT[3:].copy()
    # from the axes of the initial conditions to those of the ports; arms from the centres of mass to the ports in them
    q_a, q_t, p_A, p_T = q_CA, q_VT, X_CA[:3], X_VT[:3]
    if conditions.between == "ports":
        q_a, q_t, p_A, p_T = UNIT, UNIT, quat_rotate_back(q_CA, p_A), quat_rotate_back(q_VT, p_T)
    active_approaches = conditions.approaching_vehicle == "active"
    attitude = relative_attitude(conditions)
    q_between = attitude if active_approaches else attitude * CONJUGATE
    q_TA = quat_multiply(quat_multiply(q_t * CONJUGATE, q_between), q_a)
    lateral = np.array([0.0, *conditions.lateral_m])

    def pose_at(x: float) -> np.ndarray:
        return np.concatenate([lateral + [x, 0.0, 0.0], q_TA if q_TA[3] >= 0 else -q_TA])

    ports = f"port {vehicles.active.port!r} of the active craft, {vehicles.target.port!r} of the target craft"
    x = 0.0
    if max_penetration is not None:
        x = first_contact(lambda x: max_penetration(pose_at(x)), conditions.first_contact_penetration_m, ports)
    X_TA = pose_at(x)
    # velocities of the two bodies in the axes of the one that stands (V or T for the active approaching, else C or A)
    velocity = np.array(conditions.velocity_m_s)
    rate = np.radians(conditions.rate_deg_s)
    if active_approaches:
        # v_C = v, w_C given in its own axes; port A relative to port T, T at rest
        w_V = quat_rotate(q_between, rate)
        v_A = velocity + np.cross(w_V, quat_rotate(q_between, p_A))
        V_TA = np.concatenate([quat_rotate_back(q_t, v_A), quat_rotate_back(q_t, w_V)])
    else:
        # the target approaches with velocity -v along the docking axis, its rate in its own axes; A at rest
        q_CV = q_between * CONJUGATE
        w_C = quat_rotate(q_CV, rate)
        v_T = -velocity + np.cross(w_C, quat_rotate(q_CV, p_T))
        # d/dt p_TA in T: R_TC (-v_T - w x p_TA_C)
        q_CT = quat_multiply(q_CV, q_t)
        p_TA_C = quat_rotate(q_CT, X_TA[:3])
        V_TA = np.concatenate([quat_rotate_back(q_CT, -v_T - np.cross(w_C, p_TA_C)), quat_rotate_back(q_CT, -w_C)])
    return Start(X_TA, V_TA, np.asarray(conditions.orbital_rate_rad_s, float))


def first_contact(depth: Callable[[float], float], accepted: float, ports: str = "") -> float:
    """Axial offset with 0 < depth <= accepted: walk towards the target until something touches, then bisect. ports: which ones, in words.
    Raises ConfigurationError."""
    grid = np.linspace(SEARCH_FROM_M, SEARCH_TO_M, SEARCH_STEPS + 1)
    touching = next((i for i, x in enumerate(grid) if depth(float(x)) > 0.0), None)
    if touching is None or touching == 0:
        raise ConfigurationError(
            f"initial_conditions: the docking units {'touch already' if touching == 0 else 'do not touch'} between "
            f"{SEARCH_FROM_M} m and {SEARCH_TO_M} m on the docking axis{f' ({ports})' if ports else ''}; check the lateral "
            "miss, the angles and the mechanism's dimensions"
        )
    free, inside = float(grid[touching - 1]), float(grid[touching])
    for _ in range(200):
        d = depth(inside)
        if 0.0 < d <= accepted or inside - free < 1e-15:
            break
        middle = 0.5 * (free + inside)
        free, inside = (free, middle) if depth(middle) > 0.0 else (middle, inside)
    return inside
