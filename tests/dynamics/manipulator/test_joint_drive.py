"""Joint drive: residuals, a stiff ODE solver, the order of the step, stability bound, friction, limits, rate loops, errata."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rt_kernels.dynamics.manipulator.joint_drive import JointDrive
from rt_kernels.model.joint_drive import gains_for_payload

H = 5e-4
RATIO = 1842.0
# synthetic drive of the golden figures; B_L = 2 T_D/k_g makes the stiffness continuous
DRIVE = dict(motor_inertia_kg_m2=5e-4, torque_constant=0.1, back_emf_constant=0.1, resistance_ohm=0.8, electrical_time_s=1e-3,
             gear_ratio=RATIO, gear_inertia_kg_m2=1e-4, gear_stiffness_n_m_per_rad=0.35, backlash_torque_n_m=0.02,
             backlash_rad=2 * 0.02 / 0.35, gear_damping_n_m_s_per_rad=2e-3)
LOAD = -0.05
INERTIA = 5e5 / RATIO**2
LIGHT = INERTIA / 20.0
J = INERTIA + 1e-4


def voltage(h, end=2.0):
    return np.where(np.arange(round(end / h)) * h < 1.0 - 1e-9, 5.0, -2.0)


def gear(delta, k_g=0.35, T_D=0.02, B_L=2 * 0.02 / 0.35):
    size = abs(delta)
    return np.sign(delta) * (T_D * (delta / B_L) ** 2 if size < B_L else T_D + k_g * (size - B_L))


@pytest.fixture(scope="module")
def reference():
    def rates(t, y, V):
        w_m, phi_m, T_m, w, phi = y
        T_g = gear(phi_m - phi) + 2e-3 * (w_m - w)
        return [(T_m - T_g) / 5e-4, w_m, (-T_m + 0.1 / 0.8 * (V - 0.1 * w_m)) / 1e-3, (LOAD + T_g) / J, w]

    y = np.zeros(5)
    for V in (5.0, -2.0):
        y = solve_ivp(rates, (0.0, 1.0), y, method="Radau", rtol=1e-10, atol=1e-12, args=(V,)).y[:, -1]
    return y


def test_golden_values_of_the_reference(reference):
    np.testing.assert_allclose(reference, [1.634628, 3.585122, -0.270460, 1.557258, 4.412347], rtol=0.0, atol=6e-7)


def test_errors_against_the_stiff_solver(reference):
    error = JointDrive(**DRIVE).run(voltage(H), LOAD, INERTIA, H)[-1] - reference
    np.testing.assert_allclose(error, [-2.9e-5, 2.8e-4, 3.6e-7, -2.4e-5, 2.8e-4], rtol=0.03)
    staggered = JointDrive(**DRIVE).run(voltage(H), LOAD, INERTIA, H, staggered=True)[-1] - reference
    np.testing.assert_allclose(staggered[:2], [-1.0e-3, 1.3e-3], rtol=0.05)


@pytest.mark.parametrize("staggered", [False, True])
def test_first_order(reference, staggered):
    steps = [H / 4.0, H / 8.0, H / 16.0]
    errors = [np.abs(JointDrive(**DRIVE).run(voltage(h), LOAD, INERTIA, h, staggered)[-1] - reference)[[1, 4]] for h in steps]
    for coarse, fine in zip(errors, errors[1:], strict=False):
        np.testing.assert_allclose(np.log2(coarse / fine), 1.0, atol=0.05)


def test_printed_linearisation_is_wrong_by_the_golden_amount(reference):
    """(8.2.5) as printed uses T(delta) + k delta+, which counts k delta twice: the error stays for every step."""
    for h in (H, H / 4.0):
        w_m = phi_m = T_m = w = phi = T_g = 0.0
        for V in voltage(h):
            delta = phi_m - phi
            k = 2.0 * 0.02 / (0.04 / 0.35) ** 2 * abs(delta) if abs(delta) < 0.04 / 0.35 else 0.35
            e, a, kap = 1.0 + h / 1e-3, h / 5e-4, h / 1e-3 * 0.01 / 0.8
            b1, b3 = w_m - a * T_g, T_m + h / 1e-3 * 0.125 * V
            w_m, T_m = (b1 * e + a * b3) / (e + a * kap), (b3 - kap * b1) / (e + a * kap)
            phi_m += h * w_m
            Th = gear(delta)
            w = (w + h / J * (LOAD + Th + k * (phi_m - phi) + 2e-3 * w_m)) / (1.0 + h / J * (2e-3 + h * k))
            phi += h * w
            T_g = Th + k * (phi_m - phi) + 2e-3 * (w_m - w)
        assert phi_m - reference[1] == pytest.approx(0.449, abs=0.01)


def states(n=200):
    rng = np.random.default_rng(3)
    for _ in range(n):
        drive = JointDrive(**DRIVE)
        drive.set_state(*rng.normal(size=3) * [5.0, 0.3, 5.0], phi=rng.normal(), delta=0.1 * rng.normal(), T_g=0.05 * rng.normal())
        yield drive, 5.0 * rng.normal(), 0.1 * rng.normal(), INERTIA * rng.uniform(0.2, 5.0)


def test_residuals_of_the_implicit_equations():
    """The new state satisfies backward Euler of motor and gear, linearised in the increment of delta."""
    for drive, V, load, inertia in states():
        old = drive.state
        T, k = drive.torque(old["delta"])
        drive.run([V], load, inertia, H)
        new = drive.state
        T_g = T + k * (new["delta"] - old["delta"]) + 2e-3 * (new["w_m"] - new["w"])
        J_k = inertia + 1e-4
        residuals = [
            new["w_m"] - old["w_m"] - H / 5e-4 * (new["T_m"] - T_g),
            new["T_m"] - old["T_m"] - H / 1e-3 * (-new["T_m"] + 0.125 * (V - 0.1 * new["w_m"])),
            new["w"] - old["w"] - H / J_k * (load + T_g),
            new["phi_m"] - old["phi_m"] - H * new["w_m"],
            new["phi"] - old["phi"] - H * new["w"],
            new["T_g"] - T_g,
        ]
        assert np.abs(residuals).max() < 1e-12


def test_residuals_of_the_staggered_equations():
    for drive, V, load, inertia in states():
        old = drive.state
        T, k = drive.torque(old["delta"])
        drive.run([V], load, inertia, H, staggered=True)
        new = drive.state
        T_g = T + k * (new["delta"] - old["delta"]) + 2e-3 * (new["w_m"] - new["w"])
        residuals = [
            new["w_m"] - old["w_m"] - H / 5e-4 * (new["T_m"] - old["T_g"]),
            new["T_m"] - old["T_m"] - H / 1e-3 * (-new["T_m"] + 0.125 * (V - 0.1 * new["w_m"])),
            new["w"] - old["w"] - H / (inertia + 1e-4) * (load + T_g),
            new["T_g"] - T_g,
        ]
        assert np.abs(residuals).max() < 1e-12


@pytest.mark.parametrize(("factor", "stable"), [(0.9, True), (1.1, False)])
def test_staggered_limit(factor, stable):
    """(h^2 k + 2 h c_g)(1/(eta J_m) - 1/J*) < 4 bounds the staggered step; the joint solution of motor and gear has no such bound."""
    h, c_g = 1e-3, 2e-3
    J_heavy = 1e3
    k = (4.0 * factor / (1.0 / 5e-4 - 1.0 / (J_heavy + 1e-4)) - 2.0 * h * c_g) / h**2
    # an electrically dead motor outside the backlash: the linear zone around a constant load
    drive = dict(DRIVE, gear_stiffness_n_m_per_rad=k, backlash_torque_n_m=1e-3, backlash_rad=2e-3 / k, back_emf_constant=0.0,
                 gear_damping_n_m_s_per_rad=c_g)
    rest = dict(delta=0.5, T_g=JointDrive(**drive).torque(0.5)[0], T_m=JointDrive(**drive).torque(0.5)[0], w_m=1e-6)
    hold = rest["T_m"] * 0.8 / 0.1
    for staggered, expected in ((True, stable), (False, True)):
        one = JointDrive(**drive)
        one.set_state(**rest)
        w_m = one.run(np.full(400, hold), -rest["T_m"], J_heavy, h, staggered)[:, 0]
        assert (np.abs(w_m[-1]) < 1e-6) == expected


def test_stall_and_no_load():
    drive = JointDrive(**DRIVE, friction_n_m=0.0)
    # free: the output turns with V/K_B, nothing in the gear
    last = drive.run(np.full(200000, 2.0), 0.0, LIGHT, H)[-1]
    assert last[0] == pytest.approx(20.0, rel=1e-9)
    # held: motor torque K_T V/R against the load, deflection from the gear's own characteristic
    stall = 0.1 * 2.0 / 0.8
    drive.set_state()
    last = drive.run(np.full(400000, 2.0), -stall, LIGHT, H)[-1]
    assert last[2] == pytest.approx(stall, rel=1e-7)
    assert drive.state["delta"] == pytest.approx((stall - 0.02) / 0.35 + 0.04 / 0.35, rel=1e-6)


def test_gear_characteristic_is_odd_smooth_and_its_stiffness_is_the_slope():
    drive = JointDrive(**DRIVE)
    B_L = 0.04 / 0.35
    for delta in (-0.3, -B_L / 3, 1e-4, B_L / 2, 0.2):
        T, k = drive.torque(delta)
        assert T == pytest.approx(gear(delta), rel=1e-14)
        assert T == -drive.torque(-delta)[0]
        assert k == drive.torque(-delta)[1] > 0.0
        assert k == pytest.approx((drive.torque(delta + 1e-6)[0] - drive.torque(delta - 1e-6)[0]) / 2e-6, rel=1e-6)
    below, above = drive.torque(B_L * (1 - 1e-12)), drive.torque(B_L * (1 + 1e-12))
    np.testing.assert_allclose(below, above, rtol=1e-10)


def test_saturation_keeps_driving():
    """At the torque limit the motor still pushes with it (the printed form of the saturated step leaves the torque out)."""
    drive = JointDrive(**dict(DRIVE, torque_max_n_m=0.05))
    path = drive.run(np.full(400, 50.0), 0.0, INERTIA, H)
    assert path[:, 2].max() == 0.05
    # whole drive accelerates with T_max: momentum balance of motor and load, exact at every step once saturated
    momentum = 5e-4 * path[:, 0] + J * path[:, 3]
    at = path[:, 2] == 0.05
    np.testing.assert_allclose(np.diff(momentum)[at[1:]], 0.05 * H, rtol=1e-9)
    assert at.sum() > 390


def test_friction_holds_without_chatter_and_brakes():
    drive = JointDrive(**dict(DRIVE, friction_n_m=0.03, brake_n_m=1.0, gear_damping_n_m_s_per_rad=0.2))
    # 0.02 N.m of motor torque stays below the friction
    path = drive.run(np.full(2000, 0.02 * 8.0), 0.0, INERTIA, H)
    assert np.all(path[:, 0] == 0.0)
    # turning, then the brake: rest, exactly, and held against a load
    path = drive.run(np.full(4000, 3.0), 0.0, INERTIA, H)
    assert path[-1, 0] > 1.0
    state = drive.state
    state.pop("phi_m")
    drive.set_state(**dict(state, braked=True))
    path = drive.run(np.zeros(80000), -0.1, INERTIA, H)
    assert np.all(path[4000:, 0] == 0.0)
    assert np.abs(path[-1, 3]) < 1e-6
    assert drive.state["T_g"] == pytest.approx(0.1, rel=1e-5)


def test_nothing_grows_without_supply():
    rng = np.random.default_rng(5)
    for eta in (1.0, 0.7):
        drive = JointDrive(**DRIVE, efficiency=eta, friction_n_m=0.0)
        drive.set_state(w_m=5.0, w=-2.0, delta=rng.normal())
        previous = np.inf
        for _ in range(4000):
            drive.run([0.0], 0.0, INERTIA, H)
            s = drive.state
            size, B_L = abs(s["delta"]), 0.04 / 0.35
            spring = 0.02 * min(size, B_L) ** 3 / (3 * B_L**2) + max(size - B_L, 0.0) * (0.02 + 0.175 * max(size - B_L, 0.0))
            # magnetic energy L i^2/2 = tau R (T_m/K_T)^2/2
            energy = 0.5 * (5e-4 * s["w_m"] ** 2 + J * s["w"] ** 2) + spring + 0.5 * 1e-3 * 0.8 * (s["T_m"] / 0.1) ** 2
            assert energy <= previous * (1.0 + 1e-12)
            previous = energy


def test_efficiency_is_on_the_losing_side():
    """Constant rate against a load: the motor gives load/eta; lowering the same load it feels eta load."""
    drive = JointDrive(**DRIVE, efficiency=0.8)
    for V, expected in ((4.0, 0.1 / 0.8), (-1.0, 0.1 * 0.8)):
        drive.set_state()
        last = drive.run(np.full(400000, V), -0.1, LIGHT, H)[-1]
        assert abs(last[0]) > 1.0
        assert last[2] == pytest.approx(expected, rel=1e-6)


LOOP = dict(inner_gain=0.5, outer_gain=0.4, outer_integral_gain=0.8, voltage_max_v=30.0, torque_max_n_m=0.85, friction_n_m=0.02)


def test_rate_loops_follow_under_load_and_friction():
    drive = JointDrive(**DRIVE, **LOOP)
    path = drive.track(np.full(80000, 5.0), LOAD, INERTIA, H)
    assert path[-1, 3] == pytest.approx(5.0, rel=1e-3)
    # the outer loop is held for 16 inner periods: between its turns the voltage changes with the motor's rate only
    voltage_without_rate = path[1:, 5] - (0.1 - 0.5) * path[:-1, 0]
    moved = np.nonzero(np.abs(np.diff(voltage_without_rate)) > 1e-9)[0] + 2
    assert len(moved) > 100
    assert np.all(moved % 16 == 0)


def test_current_and_voltage_limits():
    drive = JointDrive(**DRIVE, **dict(LOOP, torque_max_n_m=0.2, voltage_max_v=3.0))
    path = drive.track(np.full(40000, 400.0), 0.0, INERTIA, H)
    before = np.concatenate([[0.0], path[:-1, 0]])
    current = (path[:, 5] - 0.1 * before) / 0.8
    assert np.abs(current).max() <= 2.0 * (1 + 1e-12)
    assert np.abs(path[:, 5]).max() == 3.0
    # the integral did not wind up on the way: no overshoot worth mentioning after the command falls
    path = drive.track(np.full(40000, 10.0), 0.0, INERTIA, H)
    assert path[-1, 3] == pytest.approx(10.0, rel=5e-3)
    assert path[:, 3].min() > 0.0


def test_without_regeneration_no_current_against_the_motion():
    for regenerative in (False, True):
        drive = JointDrive(**DRIVE, **LOOP, regenerative=regenerative)
        drive.track(np.full(40000, 20.0), 0.0, INERTIA, H)
        before = drive.state["w_m"]
        path = drive.track(np.zeros(100), 0.0, INERTIA, H)
        steady = path[:, 5] - 0.1 * np.concatenate([[before], path[:-1, 0]])
        assert (steady.min() < -1e-3) == regenerative


def test_gains_by_payload():
    table = [[500.0, 0.5, 1.0], [1.0e4, 0.2, 0.4]]
    assert gains_for_payload(table, 0.0) == (0.5, 1.0)
    assert gains_for_payload(table, 8015.0) == (0.2, 0.4)
    with pytest.raises(ValueError, match=r"mass_kg: 20000 kg, limit 10000 kg"):
        gains_for_payload(table, 2e4)
    with pytest.raises(ValueError, match="mass_kg: nan kg"):
        gains_for_payload(table, float("nan"))


def test_errors_name_key_value_limit_unit():
    with pytest.raises(ValueError, match=r"backlash_rad: must be a number within 1e-09 ... 10 rad, got 0"):
        JointDrive(**dict(DRIVE, backlash_rad=0.0))
    with pytest.raises(ValueError, match="motor_inertia_kg_m2: required key is missing"):
        JointDrive(gear_ratio=1.0)
    with pytest.raises(ValueError, match="h: 0.0 s"):
        JointDrive(**DRIVE).run([0.0], 0.0, INERTIA, 0.0)
    with pytest.raises(ValueError, match="inertia: -1.0 kg.m2"):
        JointDrive(**DRIVE).run([0.0], 0.0, -1.0, H)
