"""Manipulator with payload as a stage: rest, statics, operator's rates, brakes, limits, momentum, replay bits."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED, load_test, test_from_toml
from hil_server.line import assembly
from rt_kernels.dynamics.manipulator.compliance import ArmCompliance
from rt_kernels.dynamics.manipulator.joint_drive import JointDrive
from rt_kernels.dynamics.manipulator.payload import ManipulatorPayload
from rt_kernels.layout import CODES
from rt_kernels.model import tree_generator as generator
from rt_kernels.model.bodies import Body
from rt_kernels.model.craft_file import read_bodies
from rt_kernels.model.elastic_payload import damping_matrix, payload_mass_matrix
from rt_kernels.model.manipulator_file import read_manipulator
from rt_kernels.multibody.tree import Tree
from tests.first_sample import closed
from tests.multibody.tree_cases import pinocchio_model, relative

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
    keys = dict(config.part("dynamics")[1])
    assert keys.pop("model_data")["manipulator"]["end_effector"] == "tip"
    return keys, assembly.simulation(config).context


@pytest.fixture
def build(shipped):
    keys, context = shipped
    return lambda **other: ManipulatorPayload(**{k: context[k] for k in ManipulatorPayload.CONTEXT}, **(keys | other))


class Run:
    """A part with its sample; X_TA at rest one metre away, loop closed."""

    def __init__(self, part, X=(-1.0, 0, 0, 0, 0, 0, 1), V=(0,) * 6):
        self.part = part
        self.sample, self.aux = closed(part, X, V)

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

ARMS = Path(__file__).resolve().parents[3] / "stand_configs" / "manipulators"


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
    ratio, J_g, J_m, c_g = (d[k] for k in ("gear_ratio", "gear_inertia_kg_m2", "motor_inertia_kg_m2", "gear_damping_n_m_s_per_rad"))
    k_g, T_D, B = (d[k] for k in ("gear_stiffness_n_m_per_rad", "backlash_torque_n_m", "backlash_rad"))
    q0 = np.radians(keys["joint_angles_deg"])
    vehicles = context["vehicles"]
    m, I = vehicles.active.mass_kg, np.array(vehicles.active.inertia_kg_m2)
    R_CG = Rotation.from_euler("YZX", keys["grapple_angles_deg"], degrees=True)
    p_CG = np.array(keys["grapple_position_m"])
    K = ArmCompliance(tree, "tip", arm.segments).stiffness(q0)
    D = damping_matrix(K, payload_mass_matrix(m, I, -R_CG.inv().apply(p_CG), R_CG.inv().as_matrix()), 0.1)
    X_CA, X_VT = vehicles.active.X_port, vehicles.target.X_port
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
    """A quarter of a second under a contact wrench, no motor current: joints, gears and payload, error of first order in the step."""
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
    bodies = read_bodies(ARMS / keys["model"])
    tree = Tree([Body("root", None, "free"), *(replace(b, parent=b.parent or "root") for b in bodies)], gravity=(0.0, 0.0, 0.0))
    for motion in ("free", "joined"):
        run.set(motion=motion)
        run.steps(500)
        R = Rotation.from_quat(run["arm_X_NO"][3:])
        w_N = run["V_NV"][3:]
        v_O = run["V_NV"][:3] + np.cross(w_N, run["arm_X_NO"][:3] - run["X_NV"][:3])
        q = np.concatenate([run["arm_X_NO"], run["arm_q"]])
        v = np.concatenate([R.inv().apply(v_O), R.inv().apply(w_N), run["arm_rate"]])
        total = tree.momentum(q, v, np.zeros(3))
        for vehicle, X, V in (("active", run["X_NC"], run["V_NC"]), ("target", run["X_NV"], run["V_NV"])):
            table = getattr(context["vehicles"], vehicle)
            attitude = Rotation.from_quat(X[3:])
            p = table.mass_kg * V[:3]
            total += np.concatenate([p, np.cross(X[:3], p) + attitude.apply(table.inertia_kg_m2 @ attitude.inv().apply(V[3:]))])
        np.testing.assert_allclose(run["momentum"], total, atol=1e-8)
        np.testing.assert_allclose(tree.pose(q, "tip")[1], run["arm_X_NE"][:3], atol=1e-12)


def test_closed_in_motion_the_arm_moves_along(build):
    """The loop closes while the payload moves: joints and motors have the rates that keep the link at rest."""
    V = np.array([0.01, -0.005, 0.003, 0.001, 0.002, -0.001])
    run = Run(build(locked_joint=""), V=V)
    tree = Tree.from_toml(ARMS / "canadarm2.toml", gravity=(0.0, 0.0, 0.0))
    R_NO = Rotation.from_quat(run["arm_X_NO"][3:])
    tip = tree.velocity(run["arm_q"], run["arm_rate"], "tip")
    np.testing.assert_allclose(R_NO.apply(tip[3:]), V[3:], atol=1e-12)
    # the port moves with V, so the grapple fixture with V and the turn about the port
    port = run["X_NC"][:3] + Rotation.from_quat(run["X_NC"][3:]).apply([3.0, 0.0, 0.0])
    np.testing.assert_allclose(R_NO.apply(tip[:3]), V[:3] + np.cross(V[3:], run["arm_X_NE"][:3] - port), atol=1e-12)
    run.set(mode="limp")
    run.steps(1)
    assert np.abs(run["arm_deflection"]).max() < 1e-7


def test_a_heavy_free_base_is_a_fixed_one(build, shipped):
    """A thousand times the vehicle's mass and inertia: the same motion as on a fixed base, to that order."""
    keys, context = shipped
    target = context["vehicles"].target
    heavy = replace(target, mass_kg=0.99e9, inertia_kg_m2=(2e3 * np.array(target.inertia_kg_m2)).tolist())
    context = {k: context[k] for k in ManipulatorPayload.CONTEXT} | {"vehicles": replace(context["vehicles"], target=heavy)}
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


# ------------------------------------------------------------------------------------------------ the arm's tree and its kernels


@pytest.mark.parametrize("name", ["canadarm2", "srms", "era"])
def test_arm_trees_against_pinocchio(name):
    """Mass matrix, bias, and forward dynamics of the shipped arms with the gears' inertia."""
    bodies = read_bodies(ARMS / f"{name}.toml")
    joints = [b for b in bodies if b.joint != "fixed"]
    for b, drive in zip(joints, read_manipulator(ARMS / f"{name}.toml", len(joints)).drives, strict=True):
        b.rotor_inertia, b.gear_ratio = drive["gear_inertia_kg_m2"], drive["gear_ratio"]
    tree = Tree(bodies, gravity=(0.0, 0.0, 0.0))
    model, data = pinocchio_model(tree.bodies)
    model.gravity.linear[:] = 0.0
    rng = np.random.default_rng(1)
    for _ in range(50):
        q, v, tau = rng.uniform(-3, 3, tree.nv), rng.normal(size=tree.nv), 500.0 * rng.normal(size=tree.nv)
        H = pin.crba(model, data, q)
        assert relative(tree.mass_matrix(q), np.triu(H) + np.triu(H, 1).T) < 1e-12
        assert relative(tree.inverse_dynamics(q, v, np.zeros(tree.nv)), pin.rnea(model, data, q, v, np.zeros(tree.nv))) < 1e-12
        assert relative(tree.forward_dynamics(q, v, tau), pin.aba(model, data, q, v, tau)) < 1e-12


@pytest.mark.parametrize("name", ["canadarm2", "srms", "era"])
def test_generated_kernels_are_the_general_ones_with_few_operations(name):
    """What the stage calls, on a thousand random states to 1e-12; at most 10 000 operations a step
    are the limit, a third of it is held."""
    general = Tree.from_toml(ARMS / f"{name}.toml", gravity=(0.0, 0.0, 0.0))
    generated, rng, zero = general.generate(), np.random.default_rng(2), np.zeros(general.nv)
    for _ in range(1000):
        q, v = rng.uniform(-3, 3, general.nv), rng.normal(size=general.nv)
        assert relative(generated.mass_matrix(q), general.mass_matrix(q)) < 1e-12
        assert relative(generated.inverse_dynamics(q, v, zero), general.inverse_dynamics(q, v, zero)) < 1e-12
    text = generator.source(general.constants(), general.nv)
    count = 0
    for what, behind in (("inverse", "inverse_wrenches"), ("mass_matrix", "generated_kernels")):
        body = text[text.index(f"static void {what}(") : text.index(f"void {behind}(")]
        count += len(re.findall(r"(?<=[\w)\]]) [-+*/] (?=[\w(-])", body[body.index("cosine[1]") :]))
    assert 500 < count < 3_000


# --------------------------------------------------------------------------------------------------------- modes of the payload


def linear_system(keys, context, model, gear_stiffness):
    """(mass, stiffness, damping) of braked arm and payload about the start: joint angles, twist of G on the axes of E."""
    tree = Tree.from_toml(model, gravity=(0.0, 0.0, 0.0))
    arm = read_manipulator(Path(model), 7)
    d, q0 = arm.drives[0], np.radians(keys["joint_angles_deg"])
    R_CG, p_CG = Rotation.from_euler("YZX", keys["grapple_angles_deg"], degrees=True).as_matrix(), np.array(keys["grapple_position_m"])
    active = context["vehicles"].active
    M_P = payload_mass_matrix(active.mass_kg, np.array(active.inertia_kg_m2), -R_CG.T @ p_CG, R_CG.T)
    K = ArmCompliance(tree, "tip", arm.segments).stiffness(q0)
    D = damping_matrix(K, M_P, 0.1)
    R, _ = tree.pose(q0, "tip")
    J = tree.jacobian(q0, "tip")
    B = np.hstack([-np.vstack([R.T @ J[:3], R.T @ J[3:]]), np.eye(6)])  # rate of the deflection
    gears = np.diag([d["gear_ratio"] ** 2] * 7 + [0.0] * 6)
    H = np.zeros((13, 13))
    H[:7, :7], H[7:, 7:] = tree.mass_matrix(q0), M_P
    return H + gears * d["gear_inertia_kg_m2"], B.T @ K @ B + gear_stiffness * gears, B.T @ D @ B + d["gear_damping_n_m_s_per_rad"] * gears


@pytest.mark.parametrize("gear_stiffness", [0.35, 3.5e5])
def test_modes_against_a_dense_eigen_solution(shipped, tmp_path, gear_stiffness):
    """Braked arm under random pushes. A linear map fitted to its samples has the eigenvalues of the dense system: with stiff gears the
    frequencies of the payload's six modes to 1e-6 and the decrement that was asked for, with soft ones to the order of the gears' step."""
    keys, context = shipped
    # a backlash far below the motion, whose torque continues into the linear part
    model = smooth_arm(tmp_path, gear_stiffness_n_m_per_rad=gear_stiffness, backlash_rad=1e-8, backlash_torque_n_m=1e-8 * gear_stiffness)
    M, K, C = linear_system(keys, context, model, gear_stiffness)
    S = np.block([[np.zeros((13, 13)), np.eye(13)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    exact = np.linalg.eigvals(S)
    exact = exact[exact.imag > 0]
    exact = exact[np.argsort(np.abs(exact))][:6]
    period, every, count = 1e-4, 80, 3000
    context = {k: context[k] for k in ManipulatorPayload.CONTEXT} | {"period_s": period}
    run = Run(ManipulatorPayload(**context, **(keys | {"model": model, "locked_joint": "", "refresh_angle_deg": 360.0})))
    run.set(mode="brakes")
    q0, X0, rng = run["arm_q"], run["X_NC"], np.random.default_rng(3)
    states, pushes = [], rng.normal(size=(count, 6)) * ([0.1] * 3 + [0.5] * 3)
    for push in pushes:
        turn = (Rotation.from_quat(run["X_NC"][3:]) * Rotation.from_quat(X0[3:]).inv()).as_rotvec()
        states.append(np.concatenate([run["X_NC"][:3] - X0[:3], turn, run["V_NC"], run["arm_q"] - q0, run["arm_rate"]]))
        run.set(F_T=push)
        run.steps(every)
    # x+ = A x + B push, all of the state is seen; scaled, so that no column counts more than another
    x = np.hstack([np.array(states)[:-1], pushes[:-1]])
    scale = np.abs(x).max(axis=0)
    A = np.linalg.lstsq(x / scale, np.array(states)[1:] / scale[:26], rcond=1e-13)[0][:26]
    z = np.linalg.eigvals(A).astype(complex)
    found = np.log(z[np.abs(z) > 1e-6]) / (period * every)
    for mode in exact:
        near = found[np.argmin(np.abs(found - mode))]
        # one step of a mode, velocity first with the damper at its end: z^2 - (1 + (1 - h^2 w^2)/(1 + h c)) z + 1/(1 + h c) = 0
        w, c = np.abs(mode), -2.0 * mode.real
        z = np.roots([1.0, -1.0 - (1.0 - (period * w) ** 2) / (1.0 + period * c), 1.0 / (1.0 + period * c)])
        step = np.log(z[np.argmax(z.imag)]) / period
        frequency, decay = (1e-6, 5e-5) if gear_stiffness > 1.0 else (1e-5, 1e-2)
        assert near.imag == pytest.approx(step.imag, rel=frequency)
        assert near.real == pytest.approx(step.real, rel=decay)
        if gear_stiffness > 1.0:
            assert -2.0 * np.pi * near.real / near.imag == pytest.approx(0.1, rel=1e-4)


# -------------------------------------------------------------------------------------------------------------- loads and energy


def expected_twist(run, frame, rate, keys):
    """(R, p_P): axes of the command in N, and the point it is for; the payload carries camera and interface."""
    R_NC = Rotation.from_quat(run["X_NC"][3:])
    if frame == "end_effector":
        return Rotation.from_quat(run["arm_X_NE"][3:]), run["arm_X_NE"][:3]
    if frame == "camera":
        turned = Rotation.from_euler("YZX", keys["camera_angles_deg"], degrees=True)
        return R_NC * turned, run["X_NC"][:3] + R_NC.apply(keys["camera_position_m"])
    port = run["X_NC"][:3] + R_NC.apply([3.0, 0.0, 0.0])
    return (R_NC, port) if frame == "interface" else (Rotation.identity(), port)


@pytest.mark.parametrize("locked", ["", "shoulder_roll"])
@pytest.mark.parametrize("frame", ["end_effector", "camera", "target", "interface"])
def test_rates_are_for_the_point_and_axes_of_the_frame(build, shipped, frame, locked):
    keys, _ = shipped
    keys = keys | {"camera_position_m": [2.5, -0.7, 0.4], "camera_angles_deg": [20.0, -10.0, 30.0], "locked_joint": locked}
    run = Run(build(**keys), X=[-1.0, 0.1, -0.05, *Rotation.from_rotvec([0.05, -0.1, 0.08]).as_quat()])
    R, point = expected_twist(run, frame, None, keys)
    rate = np.array([0.01, -0.004, 0.006, 0.001, -0.002, 0.0015])
    run.set(mode="hand", frame=frame, rate=rate)
    run.steps(1)
    tree = Tree.from_toml(ARMS / "canadarm2.toml", gravity=(0.0, 0.0, 0.0))
    R_NO, p_NO = Rotation.from_quat(run["arm_X_NO"][3:]), run["arm_X_NO"][:3]
    R_OE, p_OE = tree.pose(run["arm_q"], "tip")
    V = tree.velocity(run["arm_q"], run["arm_rate_command"], "tip", R_OE.T @ (R_NO.inv().apply(point - p_NO) - p_OE))
    np.testing.assert_allclose(R_NO.apply(V[:3]), R.apply(rate[:3]), atol=1e-9)
    np.testing.assert_allclose(R_NO.apply(V[3:]), R.apply(rate[3:]), atol=1e-9)
    assert run["arm_limiting_joint"] == -1.0


def test_static_deflection(build, shipped, tmp_path):
    """Brakes on, constant contact wrench, strong damping: the link deflects by C F, the joints by F through linear gears."""
    keys, context = shipped
    model = smooth_arm(tmp_path, backlash_rad=1e-8, backlash_torque_n_m=0.35e-8, gear_damping_n_m_s_per_rad=0.3)
    run = Run(build(model=model, locked_joint="", log_decrement=4.0, refresh_angle_deg=360.0))
    F_T = np.array([30.0, -20.0, 10.0, 20.0, -10.0, 15.0])
    tree, q0 = Tree.from_toml(model, gravity=(0.0, 0.0, 0.0)), np.radians(keys["joint_angles_deg"])
    C = ArmCompliance(tree, "tip", read_manipulator(Path(model), 7).segments).compliance(q0)
    run.set(mode="brakes", F_T=F_T)
    run.steps(160_000)
    assert np.abs(run["arm_rate"]).max() < 1e-8
    # the wrench of the contact, carried to E: -F_T at the origin of T (and of N, 15 m ahead of it)
    R_NE, p_NE = Rotation.from_quat(run["arm_X_NE"][3:]), run["arm_X_NE"][:3]
    F_E = np.concatenate([R_NE.inv().apply(-F_T[:3]), R_NE.inv().apply(-F_T[3:] + np.cross([-15.0, 0.0, 0.0] - p_NE, -F_T[:3]))])
    np.testing.assert_allclose(run["arm_wrench_E"], F_E, atol=1e-5 * np.abs(F_E).max())
    at_G = F_E - np.concatenate([np.zeros(3), np.cross(run["arm_deflection"][:3], F_E[:3])])
    np.testing.assert_allclose(run["arm_deflection"], C @ at_G, rtol=0.0, atol=1e-5 * np.abs(C @ at_G).max())
    R_OE, _ = tree.pose(run["arm_q"], "tip")
    torques = tree.jacobian(run["arm_q"], "tip").T @ np.concatenate([R_OE @ F_E[:3], R_OE @ F_E[3:]])
    np.testing.assert_allclose(run["arm_q"] - q0, torques / (0.35 * 1842.0**2), atol=2e-5 * np.abs(torques).max() / (0.35 * 1842.0**2))


def test_stiffness_follows_the_configuration(build, shipped, tmp_path):
    """After a joint has moved by 40 degrees, the deflection under a load is that of the new configuration, not of the old one."""
    keys, _ = shipped
    model = smooth_arm(tmp_path)
    run = Run(build(model=model, log_decrement=4.0, refresh_angle_deg=0.1, locked_joint=""))
    run.set(mode="single_joint", target=3, rate=np.radians(4.0))
    run.steps(100_000)
    run.set(mode="brakes", F_T=[40.0, -30.0, 20.0, 20.0, -10.0, 15.0])
    run.steps(120_000)
    q = run["arm_q"]
    assert abs(q[3] - np.radians(keys["joint_angles_deg"][3])) > np.radians(30.0)
    assert run["arm_stiffness_refreshed"] > 10
    compliance = ArmCompliance(Tree.from_toml(model, gravity=(0.0, 0.0, 0.0)), "tip", read_manipulator(Path(model), 7).segments)
    F = run["arm_wrench_E"].copy()
    F[3:] -= np.cross(run["arm_deflection"][:3], F[:3])
    now, before = compliance.compliance(q) @ F, compliance.compliance(np.radians(keys["joint_angles_deg"])) @ F
    size = np.abs(now).max()
    np.testing.assert_allclose(run["arm_deflection"], now, atol=5e-3 * size)
    assert np.abs(run["arm_deflection"] - before).max() > 0.05 * size


@pytest.mark.parametrize("mode", ["limp", "brakes"])
def test_energy_never_grows_without_supply(build, tmp_path, mode):
    """No friction in the motors, no damping in the link: after a push the energy of everything stays or falls."""
    run = Run(build(model=smooth_arm(tmp_path), log_decrement=0.0, locked_joint="", refresh_angle_deg=360.0))
    run.set(mode=mode, F_T=[500.0, -300.0, 200.0, 100.0, 50.0, -80.0])
    run.steps(1_000)
    run.set(F_T=np.zeros(6))
    run.steps(1)
    energies = [run["arm_energy"]]
    for _ in range(200):
        run.steps(100)
        energies.append(run["arm_energy"])
    energies = np.array(energies)
    assert energies[0] > 1.0
    # a symplectic step's energy swings by h w/2 of what goes to and fro, here 5e-4
    assert (energies[1:] / np.minimum.accumulate(energies)[:-1]).max() < 1.001
    assert energies[-1] < energies[0]


def test_held_arm_comes_to_rest(build):
    """Sticks at zero after a push: the rate loops take the energy out, hardly anything is left after a minute."""
    run = Run(build())
    run.set(mode="hold", F_T=[300.0, -100.0, 50.0, 20.0, 10.0, -20.0])
    run.steps(1_000)
    run.set(F_T=np.zeros(6))
    largest = []
    for _ in range(6):
        energies = []
        for _ in range(20):
            run.steps(1_000)
            energies.append(run["arm_energy"])
        largest.append(max(energies))
    assert largest[0] > 0.5
    assert np.all(np.diff(largest) < 0.0)
    assert largest[-1] < 0.02 * largest[0]


def test_a_stop_is_not_passed(build, shipped):
    """A joint driven at its stop slows down inside its braking zone and stays on this side of it; the status says so."""
    keys, _ = shipped
    angles = list(keys["joint_angles_deg"])
    angles[6] = 262.0
    run = Run(build(joint_angles_deg=angles, stop_margin_deg=3.0))
    run.set(mode="single_joint", target=6, rate=1.0)
    statuses, highest = set(), 0.0
    for _ in range(120):
        run.steps(500)
        highest = max(highest, run["arm_q"][6])
        statuses.add(bool(run["dynamics_status"] & 16))
        # the share of 8 t
        assert np.abs(run["arm_rate_command"]).max() <= np.radians(0.8) * (1.0 + 1e-12)
    assert np.radians(269.0) < highest < np.radians(270.0)
    assert run["arm_limiting_joint"] == 6.0
    assert statuses == {False, True}


def test_brakes_stop_the_arm_sooner_than_the_loops(build):
    """From the same motion: with brakes the motors stand after a second, without current."""
    run = Run(build(), V=(0.03, 0, 0, 0, 0, 0))
    run.set(mode="hand", frame="interface", rate=0.03)
    run.steps(10_000)
    assert np.abs(run["arm_rate"]).max() > 1e-3
    run.set(mode="brakes")
    run.steps(2_000)
    assert np.abs(run["arm_motor_torque"]).max() < 0.05
    q = run["arm_q"]
    run.steps(60_000)
    # what still moves is the gears and the link
    assert np.abs(run["arm_q"] - q).max() < 0.01
    assert np.abs(run["arm_rate"]).max() < 1e-3


def test_saturated_drives_and_overload_are_reported(build):
    run = Run(build())
    assert run["dynamics_status"] == 0
    run.set(F_T=[-4000.0, 1500.0, 0.0, 0.0, 0.0, 0.0])
    seen, torque = 0, 0.0
    for _ in range(60):
        run.steps(100)
        seen |= run["dynamics_status"]
        torque = max(torque, np.abs(run["arm_motor_torque"]).max())
    assert seen & 8
    assert seen & 64
    assert torque == 1.266


def test_singularity_is_reported(build, shipped):
    """The elbow driven straight by its own joint: the status follows the smallest singular value."""
    keys, _ = shipped
    angles = list(keys["joint_angles_deg"])
    angles[3] = 12.0
    run = Run(build(joint_angles_deg=angles, singular_value_min=0.02))
    run.steps(100)
    tree = Tree.from_toml(ARMS / keys["model"], gravity=(0.0, 0.0, 0.0))
    J = np.delete(tree.jacobian(run["arm_q"], "tip"), 0, axis=1)
    J[:3] /= 5.0
    assert run["arm_sigma"] == pytest.approx(np.linalg.svd(J, compute_uv=False)[-1], rel=1e-3)
    assert not run["dynamics_status"] & 32
    run.set(mode="single_joint", target=3, rate=-0.05)
    run.steps(30_000)
    assert run["dynamics_status"] & 32


def test_stored_path_is_flown_to_its_end(build, shipped):
    keys, _ = shipped
    first = np.array(keys["joint_angles_deg"]) + [0, 2, 0, -2, 0, 1, 0]
    last = first + [0, 0, 1, 0, -2, 0, 3]
    run = Run(build(paths_deg=[[1, *first], [1, *last]]))
    run.set(mode="path", target=1)
    run.steps(4_000)
    assert run["arm_waypoint"] == 0.0
    assert not run["dynamics_status"] & 128
    run.steps(120_000)
    assert run["arm_waypoint"] == 2.0
    assert run["dynamics_status"] & 128
    run.steps(80_000)
    np.testing.assert_allclose(run["arm_q"], np.radians(last), atol=np.radians(0.05))
    # chosen again it starts again
    run.set(mode="hold")
    run.steps(16)
    run.set(mode="path")
    run.steps(16)
    assert run["arm_waypoint"] == 0.0


def test_joined_to_a_fixed_vehicle_the_payload_stays(build):
    run = Run(build(), V=(0.02, 0, 0, 0, 0, 0))
    run.set(mode="hand", frame="interface", rate=0.02)
    run.steps(2_000)
    X = run["X_TA"]
    run.set(motion="joined", mode="limp")
    run.steps(4_000)
    np.testing.assert_allclose(run["X_TA"], X, atol=2e-5)
    assert np.array_equal(run["V_TA"], np.zeros(6))
    assert run["dynamics_status"] & 4


def test_frozen_it_stands(build):
    run = Run(build(), V=(0.02, 0, 0, 0, 0, 0))
    run.steps(100)
    X, q = run["X_TA"], run["arm_q"]
    run.set(motion="freeze")
    run.steps(100)
    assert np.array_equal(run["X_TA"], X)
    assert np.array_equal(run["arm_q"], q)


# -------------------------------------------------------------------------------------------------------------- errata, wrong input


def test_joint_acceleration_has_the_ratio_squared():
    """q'' = (m_IA + m_J)/(i_R^2 J*) of one drive step; the printed (m_IA + m_J)/J* is i_R^2 = 3.4e6 times too large."""
    ratio, inertia, J_g, load, h = 1842.0, 0.15, 1e-4, -0.05, 1e-6
    drive = JointDrive(motor_inertia_kg_m2=5e-4, torque_constant=0.1, back_emf_constant=0.1, resistance_ohm=0.8, electrical_time_s=1e-3,
                       gear_ratio=ratio, gear_inertia_kg_m2=J_g, gear_stiffness_n_m_per_rad=0.35, backlash_torque_n_m=0.02,
                       backlash_rad=2 * 0.02 / 0.35)  # fmt: skip
    drive.set_state(delta=0.2, w=1.0, w_m=1.0)
    drive.run([0.0], load, inertia, h)
    acceleration = (drive.state["w"] - 1.0) / h / ratio
    moments = ratio * (load + drive.state["T_g"])
    assert acceleration == pytest.approx(moments / (ratio**2 * (inertia + J_g)), rel=1e-6)
    assert acceleration != pytest.approx(moments / (inertia + J_g), rel=0.99)


WRONG = [
    ({"model": "no_such.toml"}, "model: no file"),
    ({"model": "puma560.toml"}, r"puma560.toml: no table \[manipulator\]"),
    ({"joint_angles_deg": [0.0] * 6}, r"joint_angles_deg: 6 numbers, limit 7"),
    ({"joint_angles_deg": [0.0, 300.0, 0.0, 90.0, 0.0, 0.0, 0.0]}, r"joint_angles_deg: shoulder_yaw at 300 deg, limits -270...270 deg"),
    ({"joint_angles_deg": [0.0] * 7}, r"joint_angles_deg: smallest singular value"),
    ({"locked_joint": "knee"}, r"locked_joint: no joint 'knee', limit one of shoulder_roll"),
    ({"paths_deg": [[0.5] + [0.0] * 7]}, r"paths_deg: row \[0.5"),
    ({"paths_deg": [[0, 0, 0, 0, 0, 280, 0, 0]]}, r"paths_deg: path 0, wrist_pitch: 280 deg, limits"),
]


@pytest.mark.parametrize(("other", "message"), WRONG)
def test_wrong_keys_are_named(build, other, message):
    with pytest.raises(ValueError, match=message):
        build(**other)


BROKEN = [
    ("end_effector", '"thumb"', "manipulator.end_effector: no body 'thumb'"),
    ("low_deg", "300.0", "manipulator.low_deg: 300.0 deg, limit below high_deg"),
    ("rate_max_deg_s", "[1.0, 2.0]", r"manipulator.rate_max_deg_s: must be 7 numbers within 1e-06 ... 1000 deg/s, got 2: "),
    ("force_max_n", "-1.0", "manipulator.force_max_n: must be a number within 0.001 ... 1e.* N, got -1"),
    ("gains", "[[100.0, 1.0, 1.0, 1.0]]", "mass_kg: 8015 kg, limit 100 kg"),
    ("gear_ratio", "0.5", "manipulator.drive, joint 0: gear_ratio: must be a number within 1 ... 1e.*, got 0.5"),
    ("motor_inertia_kg_m2", '"heavy"', "manipulator.drive, joint 0: motor_inertia_kg_m2: must be a number"),
    ("kind", '"rope"', r"manipulator.segment\[0\].kind: must be one of beam, lumped, got 'rope'"),
    ("bending_n_m2", "-3.0", r"manipulator.segment\[1\]"),
    ("length_m", "5.0\nheight_m = 2.0", "manipulator.height_m: unknown key"),
    ("inner_gain", "0.7\nouter_gain = 1.0", "manipulator.drive, joint 0: outer_gain: unknown key"),
    ("gains", "[[1e5, 1.0, 1.0]]", r"manipulator.gains: must be rows of 4 numbers"),
]


@pytest.mark.parametrize(("key", "value", "message"), BROKEN)
def test_broken_arm_files_are_named(build, tmp_path, key, value, message):
    text, count = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", (ARMS / "canadarm2.toml").read_text(), count=1)
    assert count == 1
    (tmp_path / "arm.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        build(model=str(tmp_path / "arm.toml"))


def test_links_too_stiff_for_the_step_are_refused(build, tmp_path):
    text = re.sub(r"(?m)^(bending|torsion|stretching)(.*) = .*$", r"\1\2 = 1e13", (ARMS / "canadarm2.toml").read_text())
    (tmp_path / "arm.toml").write_text(text)
    with pytest.raises(ValueError, match=r"links are too stiff for a step of 0.0005 s: h\^2 w\^2 = .*, limit 1"):
        build(model=str(tmp_path / "arm.toml"))


def test_orbiting_vehicle_needs_a_free_base(shipped):
    keys, context = shipped
    start = replace(context["start"], orbital_rate_rad_s=np.array([0.0, 0.0, 1.1e-3]))
    context = {k: context[k] for k in ManipulatorPayload.CONTEXT} | {"start": start}
    with pytest.raises(ValueError, match="orbital_rate_rad_s: .*limit 0 with base = 'fixed'"):
        ManipulatorPayload(**context, **keys)
    assert Run(ManipulatorPayload(**context, **(keys | {"base": "free"})))["V_NV"][5] == pytest.approx(1.1e-3)


# -------------------------------------------------------------------------------------------------------- periods, the other arms


def test_a_longer_period_is_more_inner_steps(shipped):
    """Ticks of 1 ms, ticks of 0.5 ms, and ticks of 0.5 ms of which every other one was lost: the same bits."""
    keys, context = shipped
    ends = []
    for period, periods, steps in ((1e-3, 1, 1500), (5e-4, 1, 3000), (5e-4, 2, 1500)):
        run = Run(ManipulatorPayload(**({k: context[k] for k in ManipulatorPayload.CONTEXT} | {"period_s": period}), **keys))
        run.sample["periods"] = periods
        run.set(mode="hand", frame="camera", rate=[0.02, 0.01, -0.01, 0.001, 0.003, -0.002], F_T=[300.0, -40.0, 20.0, 10.0, 5.0, -30.0])
        run.steps(steps)
        ends.append(run["X_TA"].tobytes() + run["V_TA"].tobytes() + run.aux.tobytes())
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize(("name", "angles", "locked"), [
    ("srms", [20.0, -60.0, 80.0, -30.0, 10.0, 0.0], ""),
    ("srms", [20.0, -60.0, 80.0, -30.0, 25.0, 0.0], ""),
    ("era", [0.0, 20.0, -60.0, 100.0, -50.0, 10.0, 0.0], "shoulder_roll"),
    ("era", [10.0, 20.0, -60.0, 100.0, -50.0, 30.0, 0.0], ""),
])  # fmt: skip
def test_every_shipped_arm_moves_and_comes_to_rest(build, name, angles, locked, base):
    run = Run(build(model=f"{name}.toml", joint_angles_deg=angles, locked_joint=locked, base=base))
    run.set(mode="hand", frame="interface", rate=[0.01, 0.003, 0.0, 0.0, 0.0, 0.0])
    run.steps(60_000)
    moved = run["X_TA"][:3] - [-1.0, 0.0, 0.0]
    np.testing.assert_allclose(moved / 30.0, [0.01, 0.003, 0.0], atol=2e-3)
    run.set(mode="hold")
    run.steps(60_000)
    assert run["arm_energy"] < 0.05
    assert not run["dynamics_status"] & 3


def test_no_payload_is_too_heavy_for_the_damper(shipped, tmp_path):
    """116 t, a decrement of 6, gears without inertia: an explicit damper throws the light wrist about, the one in the inertia not."""
    keys, context = shipped
    model = smooth_arm(tmp_path, gear_inertia_kg_m2=1e-9, gear_damping_n_m_s_per_rad=0.0)
    active = context["vehicles"].active
    heavy = replace(active, mass_kg=1.16e5, inertia_kg_m2=(14.5 * np.array(active.inertia_kg_m2)).tolist())
    context = {k: context[k] for k in ManipulatorPayload.CONTEXT} | {"vehicles": replace(context["vehicles"], active=heavy)}
    run = Run(ManipulatorPayload(**context, **(keys | {"model": model, "log_decrement": 6.0, "locked_joint": ""})))
    run.set(mode="limp", F_T=[500.0, -300.0, 200.0, 100.0, 50.0, -80.0])
    run.steps(1_000)
    run.set(F_T=np.zeros(6))
    run.steps(1)
    energies = [run["arm_energy"]]
    for _ in range(100):
        run.steps(20)
        energies.append(run["arm_energy"])
    assert energies[0] > 0.1
    assert np.all(np.diff(energies) < 1e-6 * energies[0])


def test_a_new_stiffness_comes_in_without_a_jump(build, tmp_path):
    """The loaded arm moves on: blended over 0.1 s the wrench at its end changes by little from step to step, at once (0 s) it jumps."""
    jumps = []
    for blend in (0.1, 0.0):
        run = Run(build(model=smooth_arm(tmp_path), blend_s=blend, refresh_angle_deg=10.0, locked_joint=""))
        run.set(mode="single_joint", target=3, rate=0.05, F_T=[100.0, -60.0, 40.0, 20.0, -10.0, 15.0])
        q = run["arm_q"][3]
        while abs(run["arm_q"][3] - q) < np.radians(9.95):
            run.steps(20)
        largest, before = 0.0, run["arm_wrench_E"]
        for _ in range(1000):
            run.steps(1)
            largest, before = max(largest, np.abs(run["arm_wrench_E"] - before).max()), run["arm_wrench_E"]
        assert run["arm_stiffness_refreshed"] == 1.0
        jumps.append(largest)
    assert jumps[0] < 0.02 * jumps[1]


def test_a_log_carries_the_arm(tmp_path):
    """An arm's file beside the test: its tables become part of the configuration, and the line is built again without any file."""
    text = Path(SHIPPED / "programmes" / "berthing.toml").read_text().replace('model = "canadarm2.toml"', 'model = "my_arm.toml"')
    (tmp_path / "test.toml").write_text(text)
    (tmp_path / "my_arm.toml").write_text(Path(smooth_arm(tmp_path)).read_text())
    config = load_test(tmp_path / "test.toml")
    first = assembly.simulation(config).line.stages["dynamics"]
    for file in tmp_path.iterdir():
        file.unlink()
    second = assembly.simulation(test_from_toml(config.as_toml())).line.stages["dynamics"]
    second.load(first.dump())
    assert second.dump() == first.dump()
    # another arm by --set is another arm
    other = assembly.simulation(test_from_toml(config.as_toml(), ["dynamics.model=canadarm2.toml"])).line.stages["dynamics"]
    with pytest.raises(ValueError, match="other constants"):
        other.load(first.dump())
