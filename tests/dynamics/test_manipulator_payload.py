"""Manipulator with payload as a stage: rest, statics, operator's rates, brakes, limits, momentum, replay bits."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from hil_server import assembly
from hil_server.config import load_test
from rt_kernels.dynamics.arm_compliance import ArmCompliance
from rt_kernels.dynamics.elastic_payload import damping_matrix, payload_mass_matrix
from rt_kernels.dynamics.manipulator_file import read_manipulator
from rt_kernels.dynamics.manipulator_payload import ManipulatorPayload
from rt_kernels.layout import CODES, SAMPLE_DTYPE
from rt_kernels.multibody.tree import Tree
from rt_kernels.multibody.tree_model import Body, read_toml

MODES, MOTIONS, FRAMES = CODES["arm_mode"], CODES["motion"], CODES["rate_frame"]
PROGRAMME = "stand_configs/programmes/berthing.toml"
AUX = {}
for channel in ManipulatorPayload.AUX:
    first = sum(c.count for c in ManipulatorPayload.AUX[: ManipulatorPayload.AUX.index(channel)])
    AUX[channel.name] = slice(first, first + channel.count)


@pytest.fixture(scope="module")
def shipped():
    """(keys of the part, context) of the shipped programme."""
    config = load_test(PROGRAMME)
    return dict(config.part("dynamics")[1]), assembly.simulation(config).context


@pytest.fixture
def build(shipped):
    keys, context = shipped
    return lambda **other: ManipulatorPayload(**{k: context[k] for k in ManipulatorPayload.CONTEXT}, **(keys | other))


class Run:
    """A part with its sample; X_TA at rest one metre away, loop closed."""

    def __init__(self, part, X=(-1.0, 0, 0, 0, 0, 0, 1), V=(0,) * 6):
        self.part, self.sample = part, np.zeros(1, SAMPLE_DTYPE)
        for name in SAMPLE_DTYPE.names:
            if name.startswith(("X_", "profile_X")):
                self.sample[name][0, 6] = 1.0
        self.sample["periods"] = 1
        self.sample["X_TA_measured"], self.sample["V_TA_measured"] = X, V
        self.set(motion="close_loop")
        self.aux = part.step(self.sample)
        self.set(motion="free")

    def set(self, motion=None, mode=None, frame=None, rate=None, target=None, F_T=None):
        if motion is not None:
            self.sample["motion"] = MOTIONS[motion]
        if mode is not None:
            self.sample["arm_mode"] = MODES[mode]
        if frame is not None:
            self.sample["rate_frame"] = FRAMES[frame]
        if rate is not None:
            self.sample["operator_rate"][0] = np.resize(rate, 6) if np.size(rate) == 6 else [rate, 0, 0, 0, 0, 0]
        if target is not None:
            self.sample["arm_target"] = target
        if F_T is not None:
            self.sample["F_T_corrected"][0] = F_T

    def steps(self, count):
        self.part.repeat(self.sample, count, self.aux)

    def __getitem__(self, name):
        if name in AUX:
            value = self.aux[AUX[name]]
            return value.copy() if len(value) > 1 else float(value[0])
        value = self.sample[name][0]
        return value.copy() if np.ndim(value) else value.item()


def test_at_rest_it_stays(build):
    run = Run(build())
    before = run["X_TA"]
    run.steps(20_000)
    np.testing.assert_allclose(run["X_TA"], before, rtol=0.0, atol=1e-12)
    assert run["arm_energy"] < 1e-18
    assert run["dynamics_status"] == 0


def test_the_commanded_point_moves_as_commanded(build):
    """After the transient the port has the commanded rate: the booms' oscillation dies away within half a minute."""
    run = Run(build())
    run.set(mode="hand", frame="interface", rate=[0.01, 0.004, -0.002, 0.0, 0.0, 0.0])
    run.steps(60_000)
    X = run["X_TA"]
    run.steps(20_000)
    np.testing.assert_allclose((run["X_TA"][:3] - X[:3]) / 10.0, [0.01, 0.004, -0.002], rtol=0.0, atol=5e-4)


def test_replay_bits(build):
    """From a snapshot in the middle of everything the same bits follow, in another part too."""
    run = Run(build(), V=(0.01, 0, 0, 0, 0, 0))
    run.set(mode="hand", frame="camera", rate=[0.02, 0.01, -0.01, 0.001, 0.003, -0.002], F_T=[300.0, -40.0, 20.0, 10.0, 5.0, -30.0])
    run.steps(5_003)
    snapshot, sample = run.part.snapshot(), run.sample.copy()
    run.steps(2_000)
    other = Run(build())
    other.part.restore(snapshot)
    other.sample[:] = sample
    other.steps(2_000)
    assert other.part.snapshot() == run.part.snapshot()
    assert other.sample.tobytes() == run.sample.tobytes()
    assert other.aux.tobytes() == run.aux.tobytes()


# ------------------------------------------------------------------------------------------------ the whole beside a stiff solver

ARMS = Path(__file__).resolve().parents[2] / "stand_configs" / "manipulators"


def smooth_arm(folder, name="canadarm2", **other):
    """File of a shipped arm without friction and losses, and with other numbers of its drives."""
    text = (ARMS / f"{name}.toml").read_text()
    for key, value in ({"friction_n_m": 0.0, "efficiency": 1.0, "viscous_n_m_s_per_rad": 0.0} | other).items():
        text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert count == 1, key
    path = folder / "arm.toml"
    path.write_text(text)
    return str(path)


def reference(keys, context, X, F_T, end):
    """End of a run of the limp arm by Radau: articulated bodies, gears, motors without current, elastic link, payload.

    Returns joint angles, motor angles less gear angles, motor rates, place, velocity of the payload's centre of mass in N.
    """
    arm = read_manipulator(Path(keys["model"]), 7)
    tree = Tree.from_toml(keys["model"], gravity=(0.0, 0.0, 0.0))
    d = arm.drives[0]
    ratio, J_g, J_m, k_g, T_D, B, c_g = (d[k] for k in ("gear_ratio", "gear_inertia_kg_m2", "motor_inertia_kg_m2", "gear_stiffness_n_m_per_rad",
                                                        "backlash_torque_n_m", "backlash_rad", "gear_damping_n_m_s_per_rad"))
    q0 = np.radians(keys["joint_angles_deg"])
    vehicles = context["vehicles"]
    m, I = vehicles["active"]["mass_kg"], np.array(vehicles["active"]["inertia_kg_m2"])
    R_CG = Rotation.from_euler("YZX", keys["grapple_angles_deg"], degrees=True)
    p_CG = np.array(keys["grapple_position_m"])
    K = ArmCompliance(tree, "tip", arm.segments).stiffness(q0)
    D = damping_matrix(K, payload_mass_matrix(m, I, -R_CG.inv().apply(p_CG), R_CG.inv().as_matrix()), 0.1)
    X_CA, X_VT = vehicles["active"]["X_port"], vehicles["target"]["X_port"]
    # everything in the axes of V: payload from the ports, base of the arm from the payload
    R_NC = Rotation.from_quat(X_VT[3:]) * Rotation.from_quat(X[3:]) * Rotation.from_quat(X_CA[3:]).inv()
    p_NC = X_VT[:3] + Rotation.from_quat(X_VT[3:]).apply(X[:3]) - R_NC.apply(X_CA[:3])
    R_OE, p_OE = tree.pose(q0, "tip")
    R_NO = R_NC * R_CG * Rotation.from_matrix(R_OE).inv()
    p_NO = p_NC + R_NC.apply(p_CG) - R_NO.apply(p_OE)
    f_C = -Rotation.from_quat(X_VT[3:]).apply(F_T[:3])
    m_C = -Rotation.from_quat(X_VT[3:]).apply(F_T[3:])

    def gear(delta):
        size = np.abs(delta)
        return np.sign(delta) * np.where(size < B, T_D * (delta / B) ** 2, T_D + k_g * (size - B))

    def rates(t, y):
        q, w, delta, w_m = y[:28].reshape(4, 7)
        p, v, quaternion, L = y[28:31], y[31:34], y[34:38], y[38:]
        R = Rotation.from_quat(quaternion)
        omega = R.apply(np.linalg.solve(I, R.inv().apply(L)))
        R_OE, p_OE = tree.pose(q, "tip")
        R_NE = R_NO * Rotation.from_matrix(R_OE)
        lever = R.apply(p_CG)
        r = R_NE.inv().apply(p + lever - p_NO - R_NO.apply(p_OE))
        Q = (R_NE.inv() * R * R_CG).as_matrix()
        phi = 0.5 * np.array([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]])
        J = tree.jacobian(q, "tip", r)
        J = np.vstack([R_OE.T @ J[:3], R_OE.T @ J[3:]])
        u = np.concatenate([R_NE.inv().apply(v + np.cross(omega, lever)), R_NE.inv().apply(omega)])
        F = K @ np.concatenate([r, phi]) + D @ (u - J @ (w / ratio))
        T_g = gear(delta) + c_g * (w_m - w)
        H, bias = tree.mass_matrix(q), tree.inverse_dynamics(q, w / ratio, np.zeros(7))
        a = np.linalg.solve(H + ratio**2 * J_g * np.eye(7), ratio * T_g + J.T @ F - bias)
        f = R_NE.apply(F[:3])
        moment = m_C + np.cross(X_VT[:3] - p, f_C) - R_NE.apply(F[3:]) - np.cross(lever, f)
        spin = 0.5 * np.concatenate([omega * quaternion[3] + np.cross(omega, quaternion[:3]), [-omega @ quaternion[:3]]])
        return np.concatenate([w / ratio, ratio * a, w_m - w, -T_g / J_m, v, (f_C - f) / m, spin, moment])

    y0 = np.concatenate([q0, np.zeros(21), p_NC, np.zeros(3), R_NC.as_quat(), np.zeros(3)])
    y = solve_ivp(rates, (0.0, end), y0, method="Radau", rtol=1e-7, atol=1e-9).y[:, -1]
    return y[:7], y[14:21], y[21:28], y[28:31], y[31:34]


def test_limp_arm_against_a_stiff_solver(build, shipped, tmp_path):
    """A quarter of a second under a contact wrench, no motor current: joints, deflected gears and payload, error of first order in the step."""
    keys, context = shipped
    model = smooth_arm(tmp_path)
    X, F_T = np.array([-1.0, 0.02, -0.03, 0, 0, 0, 1]), np.array([800.0, -300.0, 200.0, 100.0, 50.0, -80.0])
    other = {"model": model, "locked_joint": "", "refresh_angle_deg": 360.0, "kernels": "general"}
    q, _, _, p, v = reference(keys | other, context, X, F_T, 0.25)
    errors = []
    for period in (5e-4, 2.5e-4, 1.25e-4):
        context_ = {k: context[k] for k in ManipulatorPayload.CONTEXT} | {"period_s": period}
        run = Run(ManipulatorPayload(**context_, **(keys | other)), X)
        run.set(mode="limp", F_T=F_T)
        run.steps(round(0.25 / period))
        errors.append(np.concatenate([run["arm_q"] - q, run["X_NC"][:3] - p, run["V_NC"][:3] - v]))
    assert np.abs(errors[0]).max() < 2e-5
    np.testing.assert_allclose(np.log2(np.abs(errors[0] / errors[1])), 1.0, atol=0.05)
    np.testing.assert_allclose(np.log2(np.abs(errors[1] / errors[2])), 1.0, atol=0.05)


# ---------------------------------------------------------------------------------------------------------------- a free vehicle


def test_free_base_keeps_momentum(build):
    """Contact, operator and joining are internal: the momentum of everything stays to rounding, over ten seconds of motion."""
    run = Run(build(base="free", locked_joint=""), V=(0.01, -0.005, 0.003, 0.001, 0.002, -0.001))
    before = run["momentum"]
    run.set(mode="hand", frame="interface", rate=[0.05, 0.02, -0.03, 0.005, 0.003, 0.01], F_T=[900.0, -400.0, 300.0, 100.0, 200.0, -150.0])
    run.steps(10_000)
    assert np.abs(run["V_NV"]).max() > 1e-3
    scale = np.array([900.0 * 5.0] * 3 + [900.0 * 5.0 * 15.0] * 3)
    np.testing.assert_allclose((run["momentum"] - before) / scale, 0.0, atol=1e-12)
    run.set(motion="joined")
    run.steps(5_000)
    assert run["dynamics_status"] & 4
    X = run["X_TA"]
    run.steps(5_000)
    np.testing.assert_allclose(run["X_TA"], X, atol=1e-12)
    np.testing.assert_allclose(run["V_TA"], 0.0, atol=1e-12)
    run.set(motion="free")
    run.steps(1_000)
    np.testing.assert_allclose((run["momentum"] - before) / scale, 0.0, atol=1e-12)


def test_momentum_is_that_of_the_bodies(build, shipped):
    """The momentum shown, from states, beside the sum over vehicle, payload and arm from their motion."""
    keys, context = shipped
    run = Run(build(base="free", locked_joint=""), V=(0.01, -0.005, 0.003, 0.001, 0.002, -0.001))
    run.set(mode="hand", rate=[0.05, 0.02, -0.03, 0.005, 0.003, 0.01], F_T=[900.0, -400.0, 300.0, 100.0, 200.0, -150.0])
    run.steps(4_000)
    bodies = read_toml(ARMS / keys["model"])
    tree = Tree([Body("root", None, "free"), *(replace(b, parent=b.parent or "root") for b in bodies)], gravity=(0.0, 0.0, 0.0))
    R = Rotation.from_quat(run["arm_X_NO"][3:])
    w_N = run["V_NV"][3:]
    v_O = run["V_NV"][:3] + np.cross(w_N, run["arm_X_NO"][:3] - run["X_NV"][:3])
    q = np.concatenate([run["arm_X_NO"], run["arm_q"]])
    v = np.concatenate([R.inv().apply(v_O), R.inv().apply(w_N), run["arm_rate"]])
    total = tree.momentum(q, v, np.zeros(3))
    for vehicle, X, V in (("active", run["X_NC"], run["V_NC"]), ("target", run["X_NV"], run["V_NV"])):
        table = context["vehicles"][vehicle]
        attitude = Rotation.from_quat(X[3:])
        p = table["mass_kg"] * V[:3]
        total += np.concatenate([p, np.cross(X[:3], p) + attitude.apply(table["inertia_kg_m2"] @ attitude.inv().apply(V[3:]))])
    # gear inertia turns with its joint and, by assumption, not with the base
    np.testing.assert_allclose(run["momentum"], total, atol=1e-8)
    np.testing.assert_allclose(tree.pose(q, "tip")[1], run["arm_X_NE"][:3], atol=1e-12)


def test_a_heavy_free_base_is_a_fixed_one(build, shipped):
    """A thousand times the vehicle's mass and inertia: the same motion as on a fixed base, to that order."""
    keys, context = shipped
    target = context["vehicles"]["target"]
    heavy = target | {"mass_kg": 0.99e9, "inertia_kg_m2": (2e3 * np.array(target["inertia_kg_m2"])).tolist()}
    context = {k: context[k] for k in ManipulatorPayload.CONTEXT} | {"vehicles": context["vehicles"] | {"target": heavy}}
    ends = []
    for base in ("fixed", "free"):
        run = Run(ManipulatorPayload(**context, **(keys | {"base": base})))
        run.set(mode="hand", frame="interface", rate=[0.05, 0.02, -0.03, 0.005, 0.003, 0.01], F_T=[300.0, -100.0, 100.0, 50.0, 20.0, -50.0])
        run.steps(4_000)
        ends.append(np.concatenate([run["X_TA"], run["arm_q"], run["arm_wrench_E"] / 1e4]))
    moved = np.abs(ends[0][:3] - [-1.0, 0.0, 0.0]).max()
    assert moved > 0.03
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-4)
    assert not np.array_equal(ends[1], ends[0])
