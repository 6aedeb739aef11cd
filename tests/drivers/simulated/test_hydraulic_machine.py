"""The hydraulic machine against closed forms."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from drivers.simulated.hydraulic_machine import HydraulicMachine
from hil_server.config import SHIPPED, load_test
from rt_kernels.stewart.platform import Platform

STAND = load_test(None, [f"test.stand={SHIPPED}/stands/hydraulic_stand.toml"]).stand
PLATFORM = Platform.from_dict(STAND["platform"])
STIFF = {"accumulator_gas_m3": 0.0, "line_volume_m3": 0.0}  # the supply never gives way
SMOOTH = {"valve_overlap": 0.0, "friction_coulomb_n": 0.0, "friction_static_n": 0.0, **STIFF}
SHUT = {"position_gain_per_s": 0.0, "velocity_feedforward": 0.0, "pressure_gain_per_pa": 0.0}  # the drives leave their spools alone
FREE = SMOOTH | SHUT | {"friction_viscous_n_s_per_m": 0.0, "leakage_internal_m3_per_s_pa": 0.0}
AXES = "X Y Z RX RY RZ".split()


def machine(**keys):
    return HydraulicMachine(platform=PLATFORM, **keys)


def sine(keys, frequency_hz, amplitude, axis, periods=10):
    """Pose against setpoint along one direction, complex; the last half of the run, one step of the drives a plant step."""
    m, X = machine(**keys), PLATFORM.neutral_pose
    step, w, e = m.step_s, 2.0 * np.pi * frequency_hz, np.eye(6)[axis]
    t = step * np.arange(1, round(periods / frequency_hz / step) + 1)
    ramp = np.minimum(t * frequency_hz, 1.0)
    a = amplitude * ramp * np.sin(w * t)
    rate = np.gradient(a, step)
    out = np.empty(len(t))
    for i in range(len(t)):
        pose = X + np.r_[e[:3] * a[i], 0.5 * e[3:] * a[i], 0.0]
        m.set_legs(*PLATFORM.leg_rates(pose / np.r_[np.ones(3), np.full(4, np.linalg.norm(pose[3:]))], e * rate[i]))
        m.advance(1)
        now = m.state()["X_WP"]
        out[i] = now[axis] - X[axis] if axis < 3 else 2.0 * now[axis]
    late = t > (periods // 2) / frequency_hz
    c = np.linalg.lstsq(np.c_[np.sin(w * t), np.cos(w * t), np.ones(len(t))][late], out[late], rcond=None)[0]
    return (c[0] + 1j * c[1]) / amplitude


@pytest.mark.parametrize(
    "axis, frequency_hz, decibel, degrees", [("X", 10.0, -2.00, -70.3), ("Y", 5.0, 4.81, -64.7), ("RX", 10.0, -1.35, -77.3)]
)
def test_small_signal_response_of_the_preset(axis, frequency_hz, decibel, degrees):
    G = sine(SMOOTH, frequency_hz, 5e-4, AXES.index(axis))
    assert 20.0 * np.log10(abs(G)) == pytest.approx(decibel, abs=0.02)
    assert np.degrees(np.angle(G)) == pytest.approx(degrees, abs=0.1)


def ring(m, axis, seconds):
    """Rates along one direction, every step, after a tap."""
    m.set_wrench(1000.0 * np.eye(6)[axis])
    m.advance(10)
    m.set_wrench(np.zeros(6))
    out = np.empty(round(seconds / m.step_s))
    for i in range(len(out)):
        m.advance(1)
        out[i] = m.state()["V_WP"][axis]
    return out


@pytest.mark.parametrize("axis, golden", [("X", 24.83), ("Y", 10.93), ("RX", 21.87)])
def test_oil_springs_ring_at_the_eigenvalues_and_neither_grow_nor_decay(axis, golden):
    """Shut spools: k of a leg is beta (A_a^2 / V_a + A_b^2 / V_b)."""
    m = machine(**FREE)
    J, M, y = m.jacobian(), m.mass_matrix(), PLATFORM.leg_lengths(PLATFORM.neutral_pose) - 3.0
    k = 1.4e9 * 6.2e-3**2 * (1.0 / (4e-4 + 6.2e-3 * y) + 1.0 / (4e-4 + 6.2e-3 * (2.0 - y)))
    modes = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, J.T @ np.diag(k) @ J)).real) / (2.0 * np.pi)
    v = ring(m, AXES.index(axis), 2.0)
    up = np.flatnonzero((v[:-1] < 0.0) & (v[1:] >= 0.0))
    up = up + v[up] / (v[up] - v[up + 1])
    found = (len(up) - 1) / (up[-1] - up[0]) / m.step_s
    assert found == pytest.approx(golden, abs=0.01)
    assert np.min(np.abs(modes / found - 1.0)) < 0.001
    quarter = len(v) // 4
    assert np.abs(v[-quarter:]).max() == pytest.approx(np.abs(v[:quarter]).max(), rel=0.02 if axis == "Y" else 0.002)


def test_oil_spring_of_one_leg_in_the_middle_of_its_stroke():
    X = PLATFORM.forward(np.full(6, 4.0), PLATFORM.neutral_pose)
    m = machine()
    m.rest(X)
    assert m.oil_stiffness() == pytest.approx(np.full(6, 2.0 * 1.4e9 * 6.2e-3**2 / 6.6e-3), rel=1e-9)


@pytest.mark.parametrize("spool", [0.1, 0.5, -0.1, -0.5])
@pytest.mark.parametrize("area_b", [6.2e-3, 4.0e-3])
def test_steady_speed_of_a_held_spool(spool, area_b):
    """Flow over the square root of the drop: s = p_s - p_a = (A_a p_s - F) / (A_a (1 + a^3)) out, with the areas' ratio a; in likewise."""
    keys = {"velocity_feedforward": 1.0, "position_gain_per_s": 0.0, "pressure_highpass_hz": 5.0, "piston_area_b_m2": area_b}
    m = machine(**SMOOTH | keys | {"valve_overlap": 0.002})
    m.rest(PLATFORM.neutral_pose - np.r_[0.3 * np.sign(spool), np.zeros(6)])
    a, K, A, ps = area_b / 6.2e-3, 200.0 / 6e4 / np.sqrt(3.5e6), 6.2e-3, 21e6
    # the drive's own idea of its speed at full spool, by the direction: with equal areas 0.931 m/s
    full = K * np.sqrt(ps / (1.0 + a**3)) / A if spool > 0.0 else K * np.sqrt(a * ps / (1.0 + a**3)) / A
    m.set_legs(np.zeros(6), np.full(6, spool * full))
    m.advance(round((2.0 if abs(spool) < 0.2 else 0.8) / m.step_s))
    s = m.state()
    # what is left of the damping is a hair of the spool
    assert s["spool"] == pytest.approx(np.full(6, spool), abs=2e-3)
    x, F = np.abs(s["spool"]) - 0.002, s["force"]
    left = (A * ps - F) / (A * (1.0 + a**3)) if spool > 0.0 else (A * a * ps + F) / (A * (1.0 + a**3))
    assert s["leg_rate"] == pytest.approx(np.sign(spool) * K * x * np.sqrt(left) / A, rel=0.002)
    if area_b == A:
        assert s["pressure_a"] + s["pressure_b"] == pytest.approx(np.full(6, ps), rel=3e-4)


THIN = {"piston_area_a_m2": 1e-6, "piston_area_b_m2": 1e-6}  # oil that does not count beside seals and end cushions


@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_the_end_cushion_takes_the_energy_of_the_platform(end):
    """Without damping: sum of k_c pen^3 / 3 at the turning point is what was in motion; with it, what comes back is less by the ledger."""
    across2 = 4.0**2 - PLATFORM.neutral_pose[0] ** 2
    X = PLATFORM.neutral_pose.copy()
    X[0] = np.sqrt((4.0 + 0.94 * end) ** 2 - across2)
    for damping in (0.0, 1e6):
        m = HydraulicMachine(platform=PLATFORM, gravity_m_s2=(0.0, 0.0, 0.0), **FREE | THIN, cushion_damping_n_s_per_m2=damping)
        m.rest(X)
        m.set_motion(X, [0.4 * end, 0, 0, 0, 0, 0])
        before = 0.5 * m.state()["V_WP"] @ m.mass_matrix() @ m.state()["V_WP"]
        while m.state()["V_WP"][0] * end > 0.0:
            m.advance(1)
        y = m.state()["leg"] - 3.0
        pen = np.maximum(0.0, 0.05 - (y if end < 0.0 else 2.0 - y))
        held = 5e8 / 3.0 * np.sum(pen**3)
        assert held == pytest.approx(before, rel=0.01) if damping == 0.0 else held < 0.97 * before
        assert m.energy()["cushion"] == pytest.approx(before, rel=0.01)
        m.advance(round(0.3 / m.step_s))
        after = 0.5 * m.state()["V_WP"] @ m.mass_matrix() @ m.state()["V_WP"]
        assert m.energy()["cushion"] == pytest.approx(before - after, rel=0.01, abs=0.01 * before)
        assert after == pytest.approx(before, rel=0.01) if damping == 0.0 else after < 0.95 * before


def potential(X):
    """Height energy of platform and legs at a pose, J: from the masses alone."""
    keys = machine().keys
    R = rotation(X)
    g = np.array([-9.80665, 0.0, 0.0])
    total = -keys["platform_mass_kg"] * g @ (X[:3] + R @ keys["platform_com_m"])
    for base, joint in zip(PLATFORM.base_joints, PLATFORM.platform_joints, strict=True):
        d = X[:3] + R @ joint - base
        n = d / np.linalg.norm(d)
        total -= keys["cylinder_mass_kg"] * g @ (base + keys["cylinder_com_m"] * n)
        total -= keys["rod_mass_kg"] * g @ (base + d - keys["rod_com_m"] * n)
    return total


def rotation(X):
    return Rotation.from_quat(X[3:]).as_matrix()


def moved(X, x):
    """The pose X after the small motion x (6,) of P in W axes."""
    return np.r_[X[:3] + x[:3], (Rotation.from_rotvec(x[3:]) * Rotation.from_quat(X[3:])).as_quat()]


def test_static_leg_forces_under_125_kilonewton():
    """A load that gives each leg 125 kN: the legs settle where pressures times areas are J^-T (weight + load), weight from the gradient of
    the height energy."""
    m = machine(**SMOOTH)
    m.advance(40000)
    X, h = m.state()["X_WP"], 1e-4
    weight = -np.array([(potential(moved(X, h * e)) - potential(moved(X, -h * e))) / (2.0 * h) for e in np.eye(6)])
    assert m.state()["force"] == pytest.approx(-np.linalg.solve(m.jacobian().T, weight), rel=1e-3)
    load = -m.jacobian().T @ np.full(6, 125e3) - weight
    for share in np.linspace(0.02, 1.0, 50):
        m.set_wrench(share * load)
        m.advance(2000)
    m.advance(100000)
    s = m.state()
    X = s["X_WP"]
    weight = -np.array([(potential(moved(X, h * e)) - potential(moved(X, -h * e))) / (2.0 * h) for e in np.eye(6)])
    assert s["force"] == pytest.approx(-np.linalg.solve(m.jacobian().T, weight + load), rel=1e-3)
    assert s["force"] == pytest.approx(np.full(6, 125e3), rel=0.01)
    assert np.abs(X[:3] - PLATFORM.neutral_pose[:3]).max() < 1e-3, "the drives hold it: what is left is the leakage"


def test_free_fall_with_open_valves():
    """Massless legs whose chambers are open to tank and to a supply without pressure: x = -g t^2 / 2."""
    light = {key: 0.0 for key in ("cylinder_mass_kg", "cylinder_inertia_kg_m2", "rod_mass_kg", "rod_inertia_kg_m2")}
    thin = {
        "piston_area_a_m2": 1e-4,
        "piston_area_b_m2": 1e-4,
        "supply_pressure_pa": 1e5,
        "valve_flow_m3_per_s": 0.1,
        "blocking_pressure_pa": 0.0,
    }
    m = machine(**FREE | light | thin | {"velocity_feedforward": 1.0})
    m.rest(PLATFORM.neutral_pose + np.r_[0.5, np.zeros(6)])
    m.set_legs(np.zeros(6), np.full(6, -1e3))
    m.advance(1000)  # the valves open
    start, speed = m.state()["X_WP"][0], m.state()["V_WP"][0]
    m.advance(6000)
    t = 6000 * m.step_s
    assert m.state()["X_WP"][0] - start == pytest.approx(speed * t - 0.5 * 9.80665 * t * t, rel=0.01)


def shake(m, amplitude, frequency_hz, seconds, axis=0):
    """Setpoints of a sine along one direction, every millisecond; how far the six legs have gone in all, m."""
    X, w, travel, per = PLATFORM.neutral_pose, 2.0 * np.pi * frequency_hz, 0.0, round(1e-3 / m.step_s)
    for t in np.arange(1, round(seconds * 1e3) + 1) * 1e-3:
        pose, twist = X.copy(), np.zeros(6)
        pose[axis] += amplitude * np.sin(w * t)
        twist[axis] = amplitude * w * np.cos(w * t)
        m.set_legs(*PLATFORM.leg_rates(pose, twist))
        before = m.state()["leg"]
        m.advance(per)
        travel += np.abs(m.state()["leg"] - before).sum()
    return travel


@pytest.mark.parametrize(
    "keys",
    [
        STIFF,
        {},
        {"piston_area_b_m2": 4.5e-3, "leakage_internal_m3_per_s_pa": 1e-11, "leakage_external_m3_per_s_pa": 1e-11},
        {"tank_pressure_pa": 5e5},
    ],
    ids=["stiff", "preset", "unequal", "tank"],
)
def test_the_ledger_closes(keys):
    m = machine(**keys)
    travel = shake(m, 0.02, 2.0, 2.0)
    e = m.energy()
    assert abs(e["residual"]) < 1e-3 * e["supply"]
    if keys is STIFF:
        assert e["supply"] == pytest.approx(21e6 * 6.2e-3 * travel, rel=0.01), "equal areas: all that the pistons sweep"
        # what moves: work of the legs is friction and motion, by itself and not beside the great flows
        s = m.state()
        gained = 0.5 * s["V_WP"] @ m.mass_matrix() @ s["V_WP"] + potential(s["X_WP"]) - potential(PLATFORM.neutral_pose)
        assert e["legs"] == pytest.approx(e["friction"] + gained, rel=0.01)
    # what the residual is follows the step
    fine = HydraulicMachine(platform=PLATFORM, step_s=1e-5, **keys)
    shake(fine, 0.02, 2.0, 2.0)
    assert abs(fine.energy()["residual"]) < 0.4 * abs(e["residual"])


def test_the_ledger_closes_without_a_supply():
    """Shut spools and a heavy tap: oil, motion and height alone, against the energy of the tap."""
    m = machine(**FREE)
    m.set_wrench([2e4, 1e4, 0.0, 0.0, 0.0, 0.0])
    m.advance(200)
    m.set_wrench(np.zeros(6))
    tap = m.energy()["contact"]
    worst = 0.0
    for _ in range(400):
        m.advance(50)
        worst = max(worst, abs(m.energy()["residual"]))
    assert tap > 1.0 and worst < 0.02 * tap


def test_the_step_is_of_first_order():
    """A step of 20 mm, 10 mm and 20 mrad at once, and 3 kN at 0.3 s."""
    legs = machine()
    target = legs.state()["leg"] + legs.jacobian() @ np.array([0.02, 0.01, 0.0, 0.0, 0.02, 0.0])

    def poses(step):
        m = HydraulicMachine(platform=PLATFORM, step_s=step, **STIFF)
        m.set_legs(target)
        out = []
        for ms in range(400):
            if ms == 300:
                m.set_wrench([-3000.0, 1000.0, 0.0, 0.0, 0.0, 200.0])
            m.advance(round(1e-3 / step))
            out.append(m.state()["X_WP"][:3])
        return np.array(out)

    exact = poses(1e-6)
    errors = [np.abs(poses(step) - exact).max() for step in (25e-6, 50e-6, 100e-6)]
    assert errors[1] < 35e-6  # a twentieth of a millisecond at 0.5 m/s
    assert 1.8 < errors[1] / errors[0] < 2.3 and 1.8 < errors[2] / errors[1] < 2.3


def test_gas_is_polytropic_and_the_pump_fills_it_up():
    m = machine()
    shake(m, 0.02, 5.0, 2.0)
    s = m.state()
    assert s["accumulator_pressure"] < 19e6 and s["supply_pressure"] < s["accumulator_pressure"]
    assert s["accumulator_pressure"] * s["gas"] ** 1.3 == pytest.approx(21e6 * 0.05**1.3, rel=1e-9)
    m.set_legs(m.state()["leg"])
    m.advance(round(20.0 / m.step_s))
    assert m.state()["accumulator_pressure"] == pytest.approx(21e6, rel=0.01)


def test_seals_hold_at_rest_and_slide_above_their_break_away_force():
    """Legs without oil that counts and without weight: a load of 0.9 of the static friction does not creep, 1.2 of it slides.
    The bristles bend, and slip the more the nearer they are to breaking away: z' = v (1 - s0 z / F_s) up to s0 z = 0.9 F_s."""
    held = {"friction_viscous_n_s_per_m": 2000.0, "friction_coulomb_n": 300.0, "friction_static_n": 450.0}
    m = HydraulicMachine(platform=PLATFORM, gravity_m_s2=(0.0, 0.0, 0.0), **FREE | held | THIN)
    along = m.jacobian().T @ np.ones(6)
    for share in np.linspace(0.0, 0.9, 2001):
        m.set_wrench(share * 450.0 * along)
        m.advance(40)
    m.advance(20000)
    first = m.state()["leg"]
    m.advance(200000)
    assert np.abs(m.state()["leg"] - first).max() < 1e-7
    assert m.state()["leg"] - machine().state()["leg"] == pytest.approx(np.full(6, -450.0 / 3e7 * np.log(1.0 - 0.9)), rel=0.05)
    m.set_wrench(1.2 * 450.0 * along)
    m.advance(2000)
    assert (m.state()["leg_rate"] > 0.01).all()


@pytest.mark.parametrize("speed", [0.02, 0.1])
def test_sliding_friction_falls_with_the_speed(speed):
    """F_c + (F_s - F_c) / (1 + (v / v_s)^2) + sigma v once it slides."""
    open_loop = {"velocity_feedforward": 1.0, "position_gain_per_s": 0.0, "pressure_highpass_hz": 5.0}
    m = machine(**STIFF | open_loop | {"valve_overlap": 0.0, "friction_static_n": 900.0})
    m.set_legs(np.zeros(6), np.full(6, speed))
    m.advance(30000)
    v = m.state()["leg_rate"]
    assert v == pytest.approx(np.full(6, speed), rel=0.2)
    assert m.state()["friction"] == pytest.approx(300.0 + 600.0 / (1.0 + (v / 0.01) ** 2) + 2000.0 * v, rel=0.01)


@pytest.mark.parametrize("axis, speed", [(0, 0.4), (0, -0.4), (1, 0.3), (3, 0.2)])
def test_blocking_valves_stop_the_platform_within_200_milliseconds(axis, speed):
    """Full motion, then the chain: what is left after 0.2 s is the platform on its oil springs, within a tenth of the speed."""
    m = machine()
    X = PLATFORM.neutral_pose
    twist = speed * np.eye(6)[axis]
    for t in np.arange(-0.5, 0.0, 1e-3):
        m.set_legs(*PLATFORM.leg_rates(moved(X, twist * t), twist))
        m.advance(20)
    assert abs(m.state()["V_WP"][axis]) > 0.8 * abs(speed)
    m.block()
    m.advance(4000)
    assert m.state()["blocking"] == 0.0
    rates = []
    for _ in range(100):
        m.advance(20)
        rates.append(m.state()["V_WP"][axis])
    assert np.abs(rates).max() < 0.1 * abs(speed)
    assert m.state()["cavitation"] == 0
    m.advance(20000)
    at = m.state()["X_WP"]
    m.advance(20000)
    assert np.abs(m.state()["X_WP"] - at).max() < 1e-3, "it stands on its oil; leakage lets it sink slowly"


# ------------------------------------------------------------------------------------------------- rigid bodies by another library


def leg_of_pinocchio(base, joint, neutral, keys):
    """One leg as a tree: universal joint, slide along the leg; the tip is the platform joint. Its bodies have no inertia about the leg."""
    n = neutral[:3] + joint - base
    n = n / np.linalg.norm(n)
    first = np.cross(n, [0.0, 1.0, 0.3])
    first /= np.linalg.norm(first)
    across = np.eye(3) - np.outer(n, n)
    model = pin.Model()
    model.gravity.linear = np.array([-9.80665, 0.0, 0.0])
    at_base = pin.SE3(np.eye(3), base)
    one = model.addJoint(0, pin.JointModelRevoluteUnaligned(first), at_base, "one")
    two = model.addJoint(one, pin.JointModelRevoluteUnaligned(np.cross(n, first)), pin.SE3.Identity(), "two")
    three = model.addJoint(two, pin.JointModelPrismaticUnaligned(n), pin.SE3.Identity(), "slide")
    a, m = keys["cylinder_com_m"], keys["cylinder_mass_kg"]
    model.appendBodyToJoint(two, pin.Inertia(m, a * n, (keys["cylinder_inertia_kg_m2"] - m * a * a) * across), pin.SE3.Identity())
    rod = pin.Inertia(keys["rod_mass_kg"], -keys["rod_com_m"] * n, keys["rod_inertia_kg_m2"] * across)
    model.appendBodyToJoint(three, rod, pin.SE3.Identity())
    model.addFrame(pin.Frame("tip", three, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    return model, n, first, np.cross(n, first)


def coordinates(d, n, first, second):
    """Angles and length of a leg that points along d: R_first(a) R_second(b) n = d / |d|."""
    u = d / np.linalg.norm(d)
    b = np.arcsin(u @ first)  # turning n about `second` leans it to `first`
    a = np.arctan2(-u @ second, u @ n)
    return np.array([a, b, np.linalg.norm(d)])


LINEAR = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


@pytest.mark.parametrize("seed", range(10))
def test_leg_forces_and_the_floor_against_pinocchio(seed):
    """Any pose, twist and acceleration: the loops are cut at the platform joints, each leg is a tree, virtual work puts them together. At
    these speeds Coriolis and centripetal terms of legs and platform are thousands of newtons. The floor takes the rest of the momentum's
    rate."""
    rng = np.random.default_rng(seed)
    keys = {
        "platform_com_m": [0.15, 0.1, -0.07],
        "platform_inertia_kg_m2": [[3400.0, 90.0, -40.0], [90.0, 2100.0, 60.0], [-40.0, 60.0, 1900.0]],
    }
    m = HydraulicMachine(platform=PLATFORM, **keys)
    keys = m.keys
    X = moved(PLATFORM.neutral_pose, np.r_[rng.uniform(-0.4, 0.4, 3), rng.uniform(-0.25, 0.25, 3)])
    V, A, W = rng.normal(size=6), 5.0 * rng.normal(size=6), 1e4 * rng.normal(size=6)
    m.set_wrench(W)
    m.set_motion(X, V)
    forces = m.leg_forces(A)

    # platform: a free body; its twist and acceleration in its own axes
    R, w = rotation(X), V[3:]
    free = pin.Model()
    free.gravity.linear = np.array([-9.80665, 0.0, 0.0])
    free.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "platform")
    inertia = pin.Inertia(keys["platform_mass_kg"], np.array(keys["platform_com_m"]), np.array(keys["platform_inertia_kg_m2"]))
    free.appendBodyToJoint(1, inertia, pin.SE3.Identity())
    data = free.createData()
    spatial = np.r_[R.T @ (A[:3] - np.cross(w, V[:3])), R.T @ A[3:]]
    own = pin.rnea(free, data, X, np.r_[R.T @ V[:3], R.T @ w], spatial)
    needed = np.r_[R @ own[:3], R @ own[3:]] - W
    floor, rates = np.zeros(6), np.zeros(6)
    for base, joint in zip(PLATFORM.base_joints, PLATFORM.platform_joints, strict=True):
        model, *axes = leg_of_pinocchio(base, joint, PLATFORM.neutral_pose, keys)
        data, r = model.createData(), R @ joint
        q = coordinates(X[:3] + r - base, *axes)
        G = np.c_[np.eye(3), -np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])]
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        assert data.oMf[1].translation == pytest.approx(X[:3] + r, abs=1e-12)
        tip = pin.getFrameJacobian(model, data, 1, LINEAR)[:3]
        K = np.linalg.solve(tip, G)  # joint rates by the twist
        qd = K @ V
        pin.forwardKinematics(model, data, q, qd, np.zeros(3))
        drift = pin.getFrameClassicalAcceleration(model, data, 1, LINEAR).linear
        qdd = np.linalg.solve(tip, G @ A + np.cross(w, np.cross(w, r)) - drift)
        tau = pin.rnea(model, data, q, qd, qdd)
        needed += K.T @ tau
        # floor: the base joint's reaction when joint forces act on the legs as they do here, the rest comes through the tip
        pin.computeCentroidalMomentumTimeVariation(model, data, q, qd, qdd)
        com, mass = data.com[0], keys["cylinder_mass_kg"] + keys["rod_mass_kg"]
        rates += np.r_[data.dhg.linear, data.dhg.angular + np.cross(com, data.dhg.linear)]
        weight = mass * np.array([-9.80665, 0.0, 0.0])
        floor += np.r_[weight, np.cross(com, weight)]
    expected = np.linalg.solve(m.jacobian().T, needed)
    assert forces == pytest.approx(expected, rel=1e-9, abs=1e-9 * np.abs(expected).max())

    # momentum of platform and legs about the origin of W: weight, contact and what the floor gives back
    c = X[:3] + R @ keys["platform_com_m"]
    a = A[:3] + np.cross(A[3:], c - X[:3]) + np.cross(w, np.cross(w, c - X[:3]))
    I = R @ np.array(keys["platform_inertia_kg_m2"]) @ R.T
    mass = keys["platform_mass_kg"]
    rates += np.r_[mass * a, np.cross(c, mass * a) + I @ A[3:] + np.cross(w, I @ w)]
    outside = np.r_[W[:3], W[3:] + np.cross(X[:3], W[:3])]
    weight = mass * np.array([-9.80665, 0.0, 0.0])
    outside += floor + np.r_[weight, np.cross(c, weight)]
    assert rates == pytest.approx(outside - m.base_wrench(A, forces), rel=1e-9, abs=1e-9 * np.abs(outside).max())


# ------------------------------------------------------------------------------------------------------------- a contact, felt by the legs


def rebound(m, axis, frequency_hz, v0, lead=(0.0, 0.0)):
    """Speed after over before of 300 kg on an elastic contact, by a server of 1 kHz (symplectic Euler) whose setpoints come 2 ms late."""
    mass, tick, per, late = 300.0, 1e-3, 20, 40
    k, e = mass * (2.0 * np.pi * frequency_hz) ** 2, np.eye(6)[axis]
    X = PLATFORM.neutral_pose
    m.rest(X - np.r_[e[:3] * 0.4 * v0, np.zeros(4)])
    x, v, F, step, held, sent, touched = -0.4 * v0, v0, 0.0, 0, None, [], None
    last = x + lead[0] * v - v * tick
    for t in range(3000):
        a = -F / mass
        v += tick * a
        x += tick * v
        touched = t if F > 0.0 else touched
        c = x + lead[0] * v + lead[1] * a
        last = c - v * tick if t == 0 else last
        sent.append((c, (c - last) / tick))
        last = c
        for _ in range(per):
            now = (step - late) // per
            if now != held:
                place, rate = sent[now] if now >= 0 else (-0.4 * v0, 0.0)
                m.set_legs(*PLATFORM.leg_rates(X + np.r_[e[:3] * place, np.zeros(4)], e * rate))
                held = now
            m.set_wrench(-F * e)
            m.advance(1)
            step += 1
            depth = m.state()["X_WP"][axis] - X[axis]
            F = k * depth if depth > 0.0 else 0.0
        if touched is not None and t - touched > 100:
            return -v / v0
    raise AssertionError("the contact never ended")


def lead_of(frequency_hz, zeta, delay_s):
    """Lead of a drive with delay, of 2 ms of transport and of what a tick holds."""
    w, t = 2.0 * np.pi * frequency_hz, delay_s + 2e-3 - 0.5e-3
    return t + 2.0 * zeta / w, 1.0 / w**2 + 2.0 * zeta * t / w + 0.5 * t * t


@pytest.mark.parametrize(
    "axis, frequency_hz, lead, golden",
    [
        ("X", 3.0, (0.0, 0.0), 1.865),
        ("X", 3.0, lead_of(26.80, 1.226, 6.59e-3), 0.998),
        ("X", 10.0, lead_of(26.80, 1.226, 6.59e-3), 1.020),
        ("Y", 3.0, (0.0, 0.0), 2.206),
        ("Y", 3.0, lead_of(26.80, 1.226, 6.59e-3), 1.166),
    ],
)
def test_a_contact_that_the_legs_feel(axis, frequency_hz, lead, golden):
    """Against a separate program of the same equations (C, its own friction and integration order of the supply): no friction, no overlap;
    0.1 m/s along X and with no lead, 0.02 m/s along Y with the lead of X, which does not fit there."""
    v0 = 0.02 if axis == "Y" and lead[0] else 0.1
    assert rebound(machine(**SMOOTH), AXES.index(axis), frequency_hz, v0, lead) == pytest.approx(golden, abs=0.004)
