"""Two craft of any kind: against two rigid bodies, dense equations, Pinocchio, closed forms; momentum, energy, modes of joints, replay."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rt_kernels.context import IDENTITY, Orbit, Start, Vehicle, Vehicles
from rt_kernels.control.fmu.description import CHANNEL, READABLE
from rt_kernels.control.fmu.description import place as place_of
from rt_kernels.dynamics.two_bodies import TwoBodies
from rt_kernels.dynamics.two_crafts import TwoCrafts
from rt_kernels.layout import CODES
from rt_kernels.model.craft import Craft, CraftPort, JointSettings, Link
from rt_kernels.model.modes import ModalBody, Port
from rt_kernels.multibody.flexible import FlexibleTree
from tests.first_sample import closed

MOTION = CODES["motion"]
MODE = CODES["joint_mode"]
PERIOD = 1e-3
START = Start(IDENTITY, np.zeros(6))
TILTED = [-0.5, 0.05, -0.03, *Rotation.from_euler("xyz", [2, -3, 4], degrees=True).as_quat()]
TWIST = [0.1, 0.01, -0.02, 0.01, -0.02, 0.03]
ANGLES = (0.3, -0.5, 0.4)
AXES = ((0.0, 1.0, 0.0), (0.0, 0.6, 0.8), (1.0, 0.0, 0.0))
ROOT = ModalBody.rigid(6250.0, (0.3, -0.1, 0.2), [[5000.0, 200.0, -100.0], [200.0, 21000.0, 300.0], [-100.0, 300.0, 22000.0]])
AUX = {}
for channel in TwoCrafts.AUX:
    AUX[channel.name] = slice(sum(s.stop - s.start for s in AUX.values()), sum(s.stop - s.start for s in AUX.values()) + channel.count)


def arm(joints=("revolute", "revolute", "revolute"), angles=ANGLES, port="link2", **settings):
    """A craft with three links of a few hundred kilograms, port on one of them."""
    links, parent = [Link("craft", ROOT, joint="free")], "craft"
    for k, (joint, axis) in enumerate(zip(joints, AXES, strict=True)):
        body = ModalBody.rigid(300.0 - 50.0 * k, (0.6, 0.05, 0.0), (40.0, 120.0, 130.0))
        links.append(Link(f"link{k}", body, parent, None, joint, axis, (2.0 if k == 0 else 1.2, 0.2, 0.1), pitch=0.1))
        parent = f"link{k}"
    moving = [k for k, joint in enumerate(joints) if joint not in ("fixed", "spherical")]
    table = {"stiffness": 500.0, "damping": 5.0} | settings
    joints = tuple(JointSettings(f"link{k}", angle=angles[k], **table) for k in moving)
    rotation = Rotation.from_euler("xyz", [5, -8, 3], degrees=True).as_matrix()
    return Craft("arm", tuple(links), (CraftPort("docking", port, np.array([0.9, 0.1, -0.05]), rotation),), joints)


def flexible_body(seed, modes=4, mass=800.0):
    """A cloud of mass with modes of a few hertz and two ports that move with them."""
    rng = np.random.default_rng(seed)
    rho, phi = rng.normal(scale=2.0, size=(9, 3)), 0.3 * rng.normal(size=(9, 3, modes))
    m = rng.uniform(0.5, 1.5, 9)
    m *= mass / m.sum()
    M = np.einsum("n,nia,nib->ab", m, phi, phi)
    L = np.linalg.cholesky(M)
    K = L @ np.diag((2 * np.pi * np.linspace(1.0, 6.0, modes)) ** 2) @ L.T
    ports = {name: Port(rng.normal(scale=2.0, size=3), Rotation.random(random_state=seed).as_matrix(), 0.3 * rng.normal(size=(3, modes)),
                        0.1 * rng.normal(size=(3, modes))) for name in ("root", "tip")}
    return ModalBody.from_points(m, rho, phi, K, ports)


def flexible(seed=1, modes=4):
    """A rigid root with a flexible appendage on an elastic joint, port at the appendage's tip."""
    links = (Link("craft", ROOT, joint="free"),
             Link("boom", flexible_body(seed, modes), "craft", None, "revolute", (0.0, 0.6, 0.8), (2.0, 0.2, 0.1)))
    return Craft("boom", links, (CraftPort("docking", "boom", np.array([0.3, 0.0, 0.1]), np.eye(3), "tip"),),
                 (JointSettings("boom", angle=0.2, stiffness=2e4, damping=0.0),))


def tree_of(craft):
    return FlexibleTree(craft.links, rates=craft.rates)


def start_of(craft):
    """(tree, q) at the start."""
    tree = tree_of(craft)
    q = tree.neutral()
    for s in craft.joints:
        part = tree.coordinates(s.joint)[0]
        q[part] = s.angle if part.stop - part.start == 1 else (np.cos(s.angle), np.sin(s.angle))
    return tree, q


def vehicle_of(craft):
    """Mass, inertia and port of a craft at its start, as a rigid vehicle."""
    tree, q = start_of(craft)
    H = tree.mass_matrix(q)[:6, :6]
    m = H[0, 0]
    inertia = H[3:, 3:] - H[:3, 3:].T @ H[:3, 3:] / m
    centre = np.array([H[1, 5], H[2, 3], H[0, 4]]) / m
    port = craft.ports[0]
    marked = FlexibleTree([*craft.links, Link("mark", ModalBody(0.0, np.zeros(3), np.zeros((3, 3))), port.body, port.node, "fixed",
                                              position=port.position, rotation=port.rotation)])
    R, p = marked.pose(q, "mark")
    return Vehicle(m, ((inertia + inertia.T) / 2).tolist(), [*(p - centre), *Rotation.from_matrix(R).as_quat()], craft=craft)


def station():
    R = Rotation.from_euler("xyz", [10, -20, 30], degrees=True).as_matrix()
    inertia = R @ np.diag([42000.0, 260000.0, 250000.0]) @ R.T
    return Vehicle(20000.0, ((inertia + inertia.T) / 2).tolist(), [-6.2, 0.1, 0, 0, 0, 0, 1.0])


def pair(active=None, target=None):
    one = vehicle_of(active) if isinstance(active, Craft) else active
    other = vehicle_of(target) if isinstance(target, Craft) else target
    return Vehicles(one if one is not None else vehicle_of(arm(("fixed",) * 3)), other if other is not None else station())


def make(vehicles, part=TwoCrafts, start=START, period=PERIOD, **keys):
    return part(period_s=period, vehicles=vehicles, start=start, range_max_m=1e3, **keys)


def begin(part, twist=TWIST):
    return closed(part, TILTED, twist)


def run(part, ticks=400, contact=1.0, thrust=0.0):
    """Records and auxiliary channels of a free flight with a contact pulse and control wrenches, from the closing of the loop."""
    sample, aux = begin(part)
    out, auxes = [sample.copy()], [aux.copy()]
    for k in range(ticks):
        sample["F_T_corrected"] = contact * max(0.0, np.sin(2 * np.pi * k / 200)) * np.array([80.0, -20.0, 15.0, 5.0, 8.0, -6.0])
        sample["control_A"] = thrust * np.array([3.0, -2.0, 1.0, 4.0, -1.0, 2.0]) * (100 <= k < 200)
        sample["control_T"] = thrust * np.array([-1.0, 4.0, 2.0, -3.0, 2.0, 1.0]) * (150 <= k < 250)
        aux = part.step(sample, aux)
        out.append(sample.copy())
        auxes.append(aux.copy())
    return np.concatenate(out), np.array(auxes)


COMPARED = ("X_TA", "V_TA", "X_NC", "V_NC", "X_NV", "V_NV", "momentum", "kinetic_energy")


def farthest(a, b):
    return max(np.abs(a[name] - b[name]).max() / max(1.0, np.abs(b[name]).max()) for name in COMPARED)


# ------------------------------------------------------------------------------------------------- against two rigid bodies


@pytest.mark.parametrize("crafts", ["one body each", "three fixed links", "locked joints"])
def test_what_does_not_move_is_two_bodies(crafts):
    """The same equations by other kernels, with contact and with control of both craft."""
    craft = arm(("fixed",) * 3) if crafts != "locked joints" else arm(mode="locked")
    vehicles = pair(craft, craft)
    if crafts == "one body each":
        vehicles = Vehicles(*(replace(vehicle, craft=None) for vehicle in (vehicles.active, vehicles.target)))
    expected, _ = run(make(vehicles, TwoBodies), thrust=1.0)
    found, _ = run(make(vehicles), thrust=1.0)
    assert farthest(found, expected) < 1e-11
    assert farthest(run(make(vehicles))[0], expected) > 1e-6  # control does show


def test_stiff_joints_come_near_two_bodies():
    """What is left is the compliance: the stiffer, the nearer; no stiffness is too much for the step."""
    vehicles = [pair(arm(stiffness=k, damping=1e-3 * k)) for k in (1e5, 1e8, 1e11, 1e14)]
    expected, _ = run(make(vehicles[0], TwoBodies))
    errors = [np.abs(run(make(v))[0]["X_TA"] - expected["X_TA"]).max() for v in vehicles]
    assert errors[1] < 1e-5
    assert all(500 * errors[k + 1] < errors[k] for k in range(2))
    assert errors[3] < 1e-11


# ------------------------------------------------------------------------------------------------------------ invariants


CRAFTS = {
    "three revolute": arm(),
    "prismatic": arm(("prismatic", "revolute", "revolute")),
    "screw and continuous": arm(("screw", "continuous", "revolute"), stiffness=0.0),
    "spherical": arm(("spherical", "revolute", "revolute")),
    "flexible": flexible(),
}


@pytest.mark.parametrize("name", CRAFTS)
def test_momentum_is_kept_and_is_that_of_the_bodies(name):
    """To rounding while joints and modes move; and the state's sums are what positions and velocities of all bodies give."""
    craft = CRAFTS[name]
    part = make(pair(craft, flexible(3)))
    records, aux = run(part, 400)
    moved = np.ptp(aux[:, AUX["joint_position"]], axis=0)
    assert (moved[: len(part.joints)] > 1e-5).all()
    sample = records[-1:].copy()
    part.repeat(sample, 30_000)
    before, after = records["momentum"][0], sample["momentum"][0]
    for half in (slice(0, 3), slice(3, 6)):
        assert np.linalg.norm(after[half] - before[half]) <= 1e-12 * np.linalg.norm(before[half])
    linear, angular = np.zeros(3), np.zeros(3)
    for k in range(2):
        momentum = part.trees[k].momentum(*part.coordinates(k), (0.0, 0.0, 0.0))
        linear += momentum[:3]
        angular += momentum[3:]
    np.testing.assert_allclose(linear, after[:3], atol=1e-11 * np.linalg.norm(after[:3]))
    np.testing.assert_allclose(angular, after[3:], atol=1e-11 * np.linalg.norm(after[3:]))


@pytest.mark.parametrize("period", [1e-3, 0.05])
def test_energy_of_undamped_joints_and_modes_stays(period):
    """Kinetic and elastic energy swap; their sum swings by h w of them, as velocities stand half a step before places, but does not grow or
    decay, also where a mode of 6 Hz has three steps a cycle."""
    part = make(pair(flexible()), period=period)
    run(part, 20)
    sample, aux = begin(part)
    rng = np.random.default_rng(0)
    for _ in range(5):
        sample["F_T_corrected"] = 1e3 * rng.normal(size=6)
        part.step(sample, aux)
    sample["F_T_corrected"] = 0.0
    energy, elastic, n = [], [], part.trees[0].nv
    K = part.trees[0].stiffness_matrix()
    K[6, 6] = 2e4
    for _ in range(4000):
        part.step(sample, aux)
        q, v = part.coordinates(0)
        x = np.concatenate([[0.0] * 6, [q[7] - 0.2], q[8:]])
        elastic.append(0.5 * x @ K @ x)
        energy.append(sample["kinetic_energy"][0] + elastic[-1])
    assert len(x) == n
    swing = max(elastic)
    assert swing > 1e-3
    if period == PERIOD:
        assert np.ptp(energy) < PERIOD * 2 * np.pi * 6.0 * swing
    assert abs(np.mean(energy[2000:]) - np.mean(energy[:2000])) < 2e-2 * swing


def test_frequency_of_a_mode_is_that_of_the_trapezoidal_rule():
    """tan(w' h / 2) = w h / 2, no decay, at a step as long as a third of the period: a mode whose shape moves no centre of mass."""
    # two masses on a rigid bar, symmetric breathing mode
    m, rho = np.array([50.0, 50.0]), np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    phi = np.array([[[1.0], [0.0], [0.0]], [[-1.0], [0.0], [0.0]]])
    w, h = 2 * np.pi * 5.0, 0.06
    body = ModalBody.from_points(m, rho, phi, np.array([[w * w * 100.0]]))
    links = (Link("craft", ROOT, joint="free"), Link("bar", body, "craft", None, "fixed"))
    craft = Craft("bar", links, (CraftPort("docking", "craft"),))
    part = make(pair(craft), period=h, modal_start=[{"craft": "active", "body": "bar", "coordinates": [1e-4]}])
    sample, aux = begin(part, np.zeros(6))
    eta = []
    for _ in range(2000):
        part.step(sample, aux)
        eta.append(part.coordinates(0)[0][-1])
    turn = 2.0 * np.arctan(w * h / 2.0)
    k = np.arange(1, 2001)
    A = np.column_stack([np.cos(turn * k), np.sin(turn * k)])
    fit, *_ = np.linalg.lstsq(A, eta, rcond=None)
    assert np.abs(A @ fit - eta).max() < 1e-4 * np.abs(eta).max()
    assert np.abs(eta[-100:]).max() == pytest.approx(np.abs(eta[:100]).max(), rel=1e-3)


def test_modal_coordinates_are_channels_where_they_are_declared():
    """By the names of the bodies, as the part has them itself, and everything else to the bit as without."""
    plain, seen = (make(pair(flexible(), flexible(3, 2)), modal_channels=which) for which in ("none", "all"))
    assert plain.AUX == TwoCrafts.AUX and plain.modes == () and seen.AUX[: len(TwoCrafts.AUX)] == TwoCrafts.AUX
    assert seen.modes == tuple([f"active boom {i}" for i in (1, 2, 3, 4)] + ["target boom 1", "target boom 2"])
    assert f"modes {', '.join(seen.modes)}" in seen.notes and not any(note.startswith("modes") for note in plain.notes)
    (records, aux), (same, more) = run(plain), run(seen)
    width = sum(channel.count for channel in TwoCrafts.AUX)
    assert records.tobytes() == same.tobytes() and aux[:, :width].tobytes() == more[:, :width].tobytes() and more.shape[1] == width + 12
    for part, number in (("modal_coordinate", 0), ("modal_rate", 1)):
        found = np.concatenate([seen.coordinates(craft)[number][-count:] for craft, count in ((0, 4), (1, 2))])
        at = [place_of(f"{part}[{name}]", READABLE, seen) for name in seen.modes]
        assert all(one[1] == CHANNEL for one in at) and more[-1, [one[0] for one in at]].tobytes() == found.tobytes()
        assert np.abs(found).min() > 1e-6
    with pytest.raises(ValueError, match=r"one of modal_coordinate\[active boom 1\], modal_coordinate\[active boom 2\], "):
        place_of("modal_coordinate[active boom 5]", READABLE, seen)
    with pytest.raises(ValueError, match="a channel of the dynamics part: joint_position, .*, latch_drift$"):
        place_of("modal_coordinate[active boom 1]", READABLE, plain)


@pytest.mark.parametrize("craft", [arm(), flexible()])
def test_velocity_is_the_rate_of_the_pose(craft):
    """Of the step that led there: places move with the velocity that the tick's forces have just made, as in `two_bodies`."""
    records, _ = run(make(pair(craft, flexible(3))), 600)
    rate = np.diff(records["X_TA"][:, :3], axis=0) / PERIOD
    assert np.abs(rate - records["V_TA"][1:, :3]).max() < 1e-5
    assert np.abs(np.diff(records["V_TA"][:, :3], axis=0)).max() > 1e-4


# ------------------------------------------------------------------------------------------------------------ starts and stops


def test_closing_the_loop_starts_from_the_achieved_pose_and_twist():
    part = make(pair(arm(), flexible()))
    records, _ = run(part, 1, contact=0.0)
    np.testing.assert_array_equal(records["X_TA"][0], TILTED)
    np.testing.assert_allclose(records["V_TA"][1], TWIST, atol=2e-5)
    np.testing.assert_allclose(records["X_TA"][1][:3], np.add(TILTED[:3], PERIOD * np.array(TWIST[:3])), atol=1e-7)


def test_freeze_and_joined_hold_the_pose():
    part = make(pair(arm()))
    records, _ = run(part, 10)
    sample = records[-1:].copy()
    for motion, status in (("freeze", 0), ("joined", 4)):
        sample["motion"] = MOTION[motion]
        part.step(sample)
        np.testing.assert_allclose(sample["X_TA"], records["X_TA"][-1:], atol=1e-15)
        assert not sample["V_TA"].any()
        assert sample["dynamics_status"][0] == status


# ----------------------------------------------------------------------------------------------------------------------- joined


def latched(part, ticks=300, released=0, thrust=1.0):
    """Records of a latching after a contact pulse, with thrust, and of the flight after a release."""
    records, auxes = run(part, 60)
    sample, out, aux = records[-1:].copy(), [records[-1:]], [auxes[-1]]
    sample["F_T_corrected"] = 0.0
    for k in range(ticks + released):
        sample["motion"] = MOTION["joined" if k < ticks else "free"]
        sample["control_A"] = thrust * np.array([3.0, -2.0, 1.0, 4.0, -1.0, 2.0]) * (k < 100)
        aux.append(part.step(sample).copy())
        out.append(sample.copy())
    return np.concatenate(out), np.array(aux)


def test_joined_without_joints_it_is_two_bodies():
    vehicles = pair(arm(("fixed",) * 3), arm(("fixed",) * 3))
    expected, _ = latched(make(vehicles, TwoBodies), released=100)
    found, aux = latched(make(vehicles), released=100)
    # velocities stand half a step before places, those of the two craft turn about the common centre; in `two_bodies` they do not
    assert all(np.abs(found[name] - expected[name]).max() < (1e-5 if name.startswith("V_") else 1e-7) for name in COMPARED[:6])
    assert np.abs(found["momentum"] - expected["momentum"]).max() < 1e-8
    assert np.abs(found["kinetic_energy"] - expected["kinetic_energy"]).max() < 1e-6 * expected["kinetic_energy"][0]
    assert np.array_equal(found["dynamics_status"], expected["dynamics_status"])
    assert aux[1:301, AUX["latch_drift"]].max() < 1e-7


@pytest.mark.parametrize("crafts", [(arm(), None), (arm(("prismatic", "revolute", "revolute")), flexible()), (flexible(), flexible(3))])
def test_latching_and_release_keep_momentum_and_do_not_bump(crafts):
    part = make(pair(*crafts))
    records, aux = latched(part, 1500, released=300, thrust=0.0)
    before = records["momentum"][0]
    for half in (slice(0, 3), slice(3, 6)):
        assert np.abs(records["momentum"][:, half] - before[half]).max() <= 1e-12 * np.linalg.norm(before[half])
    joined = records["dynamics_status"] == 4
    assert np.array_equal(np.flatnonzero(joined), np.arange(1, 1501))
    # the pose at latching is held, and left again without a jump
    assert (records["X_TA"][joined] == records["X_TA"][1]).all()
    assert np.abs(records["X_TA"][1] - records["X_TA"][0]).max() < 1e-14
    assert aux[1:1501, AUX["latch_drift"]].max() < 1e-5
    assert np.abs(records["X_TA"][1501] - records["X_TA"][1500]).max() < 1e-5
    # the positions of both vehicles continue as the velocities say
    for place, rate in (("X_NV", "V_NV"), ("X_NC", "V_NC")):
        jump = np.diff(records[place][:, :3], axis=0) / PERIOD - records[rate][1:, :3]
        assert np.abs(jump).max() < 1e-4


def dense(craft, part, k, point):
    """(M, J): mass matrix of a craft where it is, and the map from its velocities to the twist, N axes, of its port's body at `point`."""
    tree, (q, _) = part.trees[k], part.coordinates(k)
    port = craft.ports[0]
    name = f"{port.body}:{port.node}" if port.node else port.body
    R, p = tree.pose(q, name)
    J = tree.jacobian(q, name, R.T @ (point - p))
    return tree.mass_matrix(q), J


def test_the_latch_gives_joints_and_modes_an_impulse():
    """Against the dense equation of impulses of both craft, without springs and within a short first tick."""
    h = 1e-7
    crafts = (arm(stiffness=0.0, damping=0.0), flexible(3))
    part = make(pair(*crafts), period=h)
    records, _ = run(part, 60)
    sample = records[-1:].copy()
    sample["F_T_corrected"] = 0.0
    T = FlexibleTree([*part.trees[1].links, Link("T", ModalBody(0.0, np.zeros(3), np.zeros((3, 3))), "boom:tip", None, "fixed",
                                                  position=crafts[1].ports[0].position)])
    point = T.pose(part.coordinates(1)[0], "T")[1]
    (M_A, J_A), (M_T, J_T) = (dense(crafts[k], part, k, point) for k in range(2))
    v_A, v_T = (part.coordinates(k)[1] for k in range(2))
    K = J_A @ np.linalg.solve(M_A, J_A.T) + J_T @ np.linalg.solve(M_T, J_T.T)
    impulse = np.linalg.solve(K, J_A @ v_A - J_T @ v_T)
    sample["motion"] = MOTION["joined"]
    aux = part.step(sample)
    for k, (M, J, v, sign) in enumerate(((M_A, J_A, v_A, -1.0), (M_T, J_T, v_T, 1.0))):
        after = v + sign * np.linalg.solve(M, J.T @ impulse)
        assert np.abs(after - v)[6:].max() > 1e-2
        np.testing.assert_allclose(part.coordinates(k)[1], after, atol=2e-5 * np.abs(after - v).max())
    assert np.linalg.norm(h * aux[AUX["latch_wrench"]][:3]) == pytest.approx(np.linalg.norm(impulse[:3]), rel=1e-4)


# ------------------------------------------------------------------------------------------------------------------------- orbit


@pytest.mark.parametrize("joined", [False, True])
def test_in_orbit_what_does_not_move_is_two_bodies(joined):
    """Fixed links: the sum over the bodies of field and gradient is that of the rigid craft; free and joined."""
    orbit = Orbit([6.9e6, 1e5, -2e5], [0.0, 7500.0, 300.0], 3.986004418e14)
    vehicles = pair(arm(("fixed",) * 3), arm(("fixed",) * 3))
    ends = []
    for kind in (TwoBodies, TwoCrafts):
        for field in (orbit, None):
            part = make(vehicles, kind, period=0.01, orbit=field)
            sample, aux = begin(part, np.zeros(6))
            sample["motion"] = MOTION["joined" if joined else "free"]
            part.repeat(sample, 10_000, aux)
            ends.append(sample.copy())
    rigid, without, found, _ = ends
    for name in ("X_NC", "V_NC", "X_NV", "V_NV"):
        felt = np.abs(rigid[name] - without[name]).max()
        assert felt > 1e-6
        assert np.abs(found[name] - rigid[name]).max() < 1e-4 * felt


def test_the_field_loads_the_modes():
    """A bar with a breathing mode stands along the radius: the gradient stretches it by 3 mu/R^3 sum m phi . rho / (K - ...), at rest."""
    m, rho = np.array([500.0, 500.0]), np.array([[10.0, 0.0, 0.0], [-10.0, 0.0, 0.0]])
    phi = np.array([[[1.0], [0.0], [0.0]], [[-1.0], [0.0], [0.0]]])
    R, mu, k = 6.9e6, 3.986004418e14, 1000.0
    body = ModalBody.from_points(m, rho, phi, np.array([[k]]), damping=np.array([[1000.0]]))
    links = (Link("craft", ModalBody.rigid(1.0, inertia=(1.0, 1.0, 1.0)), joint="free"), Link("bar", body, "craft", None, "fixed"))
    rate = np.sqrt(mu / R**3)
    craft = Craft("bar", links, (CraftPort("docking", "craft"),))
    part = make(pair(None, craft), start=Start(IDENTITY, np.zeros(6), [0.0, 0.0, rate]), period=0.05,
                orbit=Orbit([R, 0.0, 0.0], [0.0, R * rate, 0.0], mu))
    sample, aux = begin(part, np.zeros(6))
    part.repeat(sample, 2000, aux)
    # it turns with the orbit: gradient 2 n^2 x outwards and centrifugal n^2 x, both of the stretched bar
    expected = 3.0 * rate**2 * 1000.0 * 10.0 / (k - 3.0 * rate**2 * 1000.0)
    assert part.coordinates(1)[0][-1] == pytest.approx(expected, rel=1e-3)
