"""What the tests of the central unit share: the shipped configurations, channels by name, poses, and dockings of the shipped craft."""

from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED
from rt_kernels.layout import BITS
from rt_kernels.mechanisms.probe_cone.unit import ProbeCone
from tests.docking_course import DT, PHASE, run
from tests.mechanisms.shipped import shipped

DECLARED = {p.key: p for p in ProbeCone.PARAMETERS}
NAMES = [a.name.removeprefix("probe.") for a in ProbeCone.AUX]
SIGNAL = BITS["mechanism_signal"]
SLIP_TRAVEL = 0.02 / (0.25 * 2 * np.pi)  # stroke per angle of the clutch, m/rad
# of the shipped craft: 20 t ship, axes and nose
SHIP_INERTIA, SHIP_NOSE = np.array([4e4, 1.2e5, 1.2e5]), np.array([4.0, 0.0, 0.0])


def column(rows, name):
    """A channel of the rows of `glide`."""
    return rows[:, 13 + NAMES.index(name)]


def pose(x=-2.0, y=0.0, z=0.0, angles=(0.0, 0.0, 0.0)):
    return np.array([x, y, z, *Rotation.from_euler("YZX", angles).as_quat()])


def captured(part, compression=0.0):
    """Drive the unit coaxially into the socket at 0.1 m/s and let it rest; the pose of its base."""
    travel = 0.50 - 0.055 - 0.35 - 0.60 + compression
    X, _ = part.glide(pose(travel - 0.06), [0.1, 0, 0, 0, 0, 0], DT, int(round(0.06 / 0.1 / DT)))
    X, rows = part.glide(X, np.zeros(6), DT, 2000)
    return X, rows


# -------------------------------------------------------------------------------------------------------------- whole dockings


def free_flight(X, v, w, t):
    """Pose of the ship's port and its own rate after t: the centre of mass goes straight; the ship, a symmetric top, turns about its
    angular momentum, which stands still, at |H|/I_t, and in its own axes the rate turns about X at (1 - I_x/I_t) w_x."""
    R, I = Rotation.from_quat(X[3:]), SHIP_INERTIA
    nutation = Rotation.from_rotvec([(1 - I[0] / I[1]) * w[0] * t, 0.0, 0.0])
    precession = Rotation.from_rotvec(R.apply(I * w) / I[1] * t)
    turned = precession * R * nutation.inv()
    centre = X[:3] - R.apply(SHIP_NOSE) + np.multiply(v, t)
    return np.array([*(centre + turned.apply(SHIP_NOSE)), *turned.as_quat()]), nutation.apply(w)


@cache
def docking(
    name="probe_cone_existing", channels=(), vx=0.15, miss=(0.0, 0.0), angles=(0.0, 0.0, 0.0), v_lateral=(0.0, 0.0), w=(0.0, 0.0, 0.0),
    duration=20.0, press=200.0, overrides=(),
):
    """A docking of the shipped ship to the shipped station: the head begins 0.1 m before T, with the miss [m], angles [rad] (yaw, pitch,
    roll), velocity of the ship's centre of mass [m/s] and own rate [rad/s] given, and flies freely to the first contact. Returns the closed
    loop up to `duration` seconds after that beginning, as tests.docking_course.run, channels without their prefix; `end` is the run's
    end cause."""
    part = ProbeCone(**shipped(name))
    v, w = np.array([vx, *v_lateral]), np.array(w)
    start = pose(-(shipped(name).get("exit_x_m", 0.35) + 0.6) - 0.1, *miss, angles)
    touches, clear = 1.0, 0.0
    while part.max_penetration(free_flight(start, v, w, touches)[0]) == 0.0:
        clear, touches = touches, touches + 0.1
    while touches - clear > 1e-9:
        middle = 0.5 * (clear + touches)
        clear, touches = (clear, middle) if part.max_penetration(free_flight(start, v, w, middle)[0]) > 0.0 else (middle, touches)
    X, w = free_flight(start, v, w, touches)
    yaw, pitch, roll = Rotation.from_quat(X[3:]).as_euler("YZX", degrees=True)
    values = {"lateral_y_m": X[1], "lateral_z_m": X[2], "yaw_deg": yaw, "pitch_deg": pitch, "roll_deg": roll}
    for axis, speed, rate in zip("xyz", v, w, strict=True):
        values |= {f"velocity_{axis}_m_s": speed, f"rate_{axis}_deg_s": np.degrees(rate)}
    stand = () if name == "probe_cone_existing" else ("test.stand=stands/ideal_stand_long_unit.toml",)
    # the loop is closed half a second before the contact
    given = (*stand, f"test.mechanism=mechanisms/{name}.toml", *(f"initial_conditions.{k}={float(x)!r}" for k, x in values.items()),
             f"active_vehicle.thrust_n={press}", f"guidance.contact_max_s={duration + 0.5 - touches}", *overrides)
    out = run(SHIPPED / "programmes" / "virtual_docking.toml", tuple(f"probe.{c}" for c in channels), given)
    loop = out["phase"] == PHASE["contact"]
    return {key.removeprefix("probe."): values[loop] for key, values in out.items()} | {"end": out["end_cause"][-1]}
