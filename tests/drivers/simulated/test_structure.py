"""What hangs on springs in the virtual stand, against matrices of the tests' own: modes, coupled pair, momentum, weight, energy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from drivers.simulated.injections import BY_NAME, CLEAR
from drivers.simulated.plant import PlantPart
from drivers.simulated.structure import modal_spring
from hil_server import registry
from hil_server.config import load_test
from hil_server.line import assembly
from rt_kernels.context import IDENTITY
from rt_kernels.layout import CODES, SAMPLE_DTYPE

DT = 5e-5
CONTEXT = assembly.base_context(load_test(None, []))
FLOOR = replace(CONTEXT["mounting"], carried_mass_kg=120.0, carried_com_m=(-0.12, 0.02, 0.03),
                carried_inertia_kg_m2=np.array([[6.0, 0.2, 0.0], [0.2, 5.0, -0.1], [0.0, -0.1, 5.5]]))  # fmt: skip
# the same cell on the platform, the other port above it
RIDING = replace(FLOOR, load_cell_on="platform", X_S=(0.3, 0.1, -0.2, 0, 0, 0, 1), X_WF=(4.6, 0, 0, 0, 0, 0, 1), X_PM=IDENTITY)
G_W = np.array(FLOOR.gravity_m_s2)
CELL = {"cell_mode_hz": [70.0, 80.0, 90.0, 60.0, 75.0, 100.0], "cell_mode_damping": [0.02] * 6}
BASE = {"base_mass_kg": 300.0, "base_com_m": [0.4, 0.05, -0.1], "base_inertia_kg_m2": np.diag([50.0, 40.0, 45.0]),
        "base_mode_hz": [35.0, 25.0, 30.0, 45.0, 28.0, 33.0], "base_mode_damping": [0.02, 0.03, 0.02, 0.05, 0.02, 0.04]}  # fmt: skip
UNIT = {"unit_mass_kg": 600.0, "unit_com_m": [-0.3, 0.0, 0.1], "unit_inertia_kg_m2": np.diag([80.0, 90.0, 100.0]),
        "unit_mode_hz": [30.0] * 6, "unit_mode_damping": [0.02] * 6}  # fmt: skip


def plant(mounting=FLOOR, **keys):
    """A plant whose mechanism touches nothing."""
    far = registry.part("mechanisms", "bumper")(stiffness_n_per_m=1e4, plane_point_m=[50.0, 0, 0])
    return PlantPart(platform=CONTEXT["platform"], mounting=mounting, mechanism=far, plant_step_s=DT, **keys)


def tap(stand, wrench, steps):
    """A wrench at and in S on what the cell carries, for so many steps."""
    for i, value in enumerate(wrench):
        stand.inject(BY_NAME["external_force"].number, i, float(value))
    stand.advance(steps)
    stand.inject(CLEAR)


def deflection(stand, name, rest):
    """(6,) of a body from its pose at rest on a foot that stands still: way of the centre of mass, rotation vector, W axes."""
    X = stand.state()["bodies"][name]["X_WB"]
    return np.r_[X[:3] - rest[:3], (Rotation.from_quat(X[3:]) * Rotation.from_quat(rest[3:]).inv()).as_rotvec()]


def skew(r):
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0.0]])


def mass_of(m, J):
    return np.block([[m * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), J]])


@pytest.mark.parametrize("frequency", [20.0, 60.0, 200.0])
def test_frequency_and_logarithmic_decrement_of_one_mode(frequency):
    """The cell's force rings at f sqrt(1 - zeta^2) and decays by 2 pi zeta / sqrt(1 - zeta^2) a period; the step makes it higher by
    zeta w dt / 2 and (w dt)^2 / 24 of itself."""
    zeta = 0.02
    centred = replace(FLOOR, carried_com_m=(0.0, 0, 0))
    stand = plant(centred, cell_mode_hz=[frequency] * 6, cell_mode_damping=[zeta] * 6)
    weight = stand.state()["F_S"][0]
    tap(stand, [1e4, 0, 0, 0, 0, 0], 1)
    force = []
    for _ in range(round(6.0 / frequency / DT)):
        stand.advance(1)
        force.append(stand.state()["F_S"][0] - weight)
    force = np.array(force)
    rising = np.flatnonzero((force[:-1] < 0.0) & (force[1:] >= 0.0))
    cross = rising + force[rising] / (force[rising] - force[rising + 1])
    w = 2 * np.pi * frequency
    expected = frequency * np.sqrt(1 - zeta**2)
    assert (len(cross) - 1) / ((cross[-1] - cross[0]) * DT) == pytest.approx(
        expected * (1 + zeta * w * DT / 2 + (w * DT) ** 2 / 24), rel=1e-4
    )
    peaks = [force[a:b].max() for a, b in zip(rising[:-1], rising[1:], strict=True)]
    decrement = np.log(peaks[0] / peaks[-1]) / (len(peaks) - 1)
    assert decrement == pytest.approx(2 * np.pi * zeta / np.sqrt(1 - zeta**2), rel=0.01)


def chain_matrices():
    """M, C, K (12, 12) of base and carried unit in W axes (S has them too), each about its own centre of mass; what a wrench at S does."""
    m_b, m_c = BASE["base_mass_kg"], FLOOR.carried_mass_kg
    J_b, J_c = BASE["base_inertia_kg_m2"], FLOOR.carried_inertia_kg_m2
    K_b, C_b = modal_spring(m_b, J_b, BASE["base_mode_hz"], BASE["base_mode_damping"])
    K_c, C_c = modal_spring(m_c, J_c, CELL["cell_mode_hz"], CELL["cell_mode_damping"])
    c = np.array(FLOOR.carried_com_m)
    # the cell's spring is stretched by the carried unit's motion less that of the base at its place
    r = c - np.array(BASE["base_com_m"])
    of_base = np.block([[np.eye(3), -skew(r)], [np.zeros((3, 3)), np.eye(3)]])
    stretch = np.hstack([-of_base, np.eye(6)])
    both = [
        np.block([[A, np.zeros((6, 6))], [np.zeros((6, 6)), np.zeros((6, 6))]]) + stretch.T @ B @ stretch
        for A, B in ((C_b, C_c), (K_b, K_c))
    ]
    M = np.block([[mass_of(m_b, J_b), np.zeros((6, 6))], [np.zeros((6, 6)), mass_of(m_c, J_c)]])
    at_com = np.block([[np.eye(3), np.zeros((3, 3))], [skew(-c), np.eye(3)]])
    return M, *both, np.vstack([np.zeros((6, 6)), at_com])


def test_base_and_cell_ring_as_the_coupled_pair_that_they_are():
    """0.15 s after a tap, all twelve coordinates against the matrix exponential; and the cell's force is what its spring passes on."""
    M, C, K, B = chain_matrices()
    # weights that turn with the bodies are left out of the matrices: no gravity
    stand = plant(replace(FLOOR, gravity_m_s2=(0.0, 0, 0)), **CELL, **BASE)
    rest = {name: stand.state()["bodies"][name]["X_WB"] for name in ("base", "cell")}
    pull, steps = np.array([300.0, -200.0, 150.0, 20.0, 40.0, -30.0]), 100
    A = np.block([[np.zeros((12, 12)), np.eye(12)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    b = np.r_[np.zeros(12), np.linalg.solve(M, B @ pull)]
    x = np.linalg.solve(A, (expm(A * steps * DT) - np.eye(24)) @ b)
    tap(stand, pull, steps)
    onward, largest, worst = expm(A * 20 * DT), np.zeros(12), np.zeros(12)
    for _ in range(150):
        stand.advance(20)
        x = onward @ x
        got = np.r_[deflection(stand, "base", rest["base"]), deflection(stand, "cell", rest["cell"])]
        largest, worst = np.maximum(largest, np.abs(x[:12])), np.maximum(worst, np.abs(got - x[:12]))
    assert np.all(worst < 0.04 * largest), worst / largest
    # the frequencies of the pair are others than those of either
    w = np.sqrt(np.sort(np.linalg.eigvals(np.linalg.solve(M, K)).real)) / (2 * np.pi)
    assert w[0] < 0.97 * min(BASE["base_mode_hz"]) and w[-1] > 1.1 * max(CELL["cell_mode_hz"])


def momenta(state, names, masses):
    """Linear momentum and angular momentum about the origin of W."""
    total = np.zeros(6)
    for name, m in zip(names, masses, strict=True):
        body = state["bodies"][name]
        p = m * body["V"][:3]
        total += np.r_[p, np.cross(body["X_WB"][:3], p) + body["L"]]
    return total


def test_momentum_changes_by_the_reaction_of_the_floor_alone():
    """Of base and carried unit together: dt (force of the base's spring and weights) in every step; the cell's spring is inside."""
    stand, masses = plant(**CELL, **BASE), (300.0, 120.0)
    tap(stand, [800.0, 500.0, -300.0, 50.0, 80.0, -20.0], 40)
    stand.advance(1)
    for _ in range(200):
        before = stand.state()
        stand.advance(1)
        outside = np.zeros(6)
        base = before["bodies"]["base"]
        outside += np.r_[base["spring"][:3], base["spring"][3:] + np.cross(base["X_WB"][:3], base["spring"][:3])]
        for name, m in zip(("base", "cell"), masses, strict=True):
            outside += np.r_[m * G_W, np.cross(before["bodies"][name]["X_WB"][:3], m * G_W)]
        got = momenta(stand.state(), ("base", "cell"), masses) - momenta(before, ("base", "cell"), masses)
        np.testing.assert_allclose(got, DT * outside, rtol=0, atol=1e-10)


@pytest.mark.parametrize("keys", [CELL, BASE, CELL | BASE, UNIT], ids=["cell", "base", "both", "unit"])
def test_the_weight_stands_on_the_cell_and_nothing_moves(keys):
    """Springs carry the weights where the file has the ports; a steady pull at the unit is felt as it is, whatever the springs."""
    stand, c = plant(**keys), np.array(FLOOR.carried_com_m)
    R = Rotation.from_quat(FLOOR.X_S[3:])
    f = R.inv().apply(FLOOR.carried_mass_kg * G_W)
    weight = np.r_[f, np.cross(c, f)]
    rest = stand.state()["X_TA"]
    np.testing.assert_allclose(stand.state()["F_S"], weight, atol=1e-9)
    stand.advance(4000)
    np.testing.assert_allclose(stand.state()["F_S"], weight, atol=1e-6)
    np.testing.assert_allclose(stand.state()["X_TA"], rest, atol=1e-12)
    pull = np.array([50.0, -30.0, 20.0, 3.0, -2.0, 1.0])
    for i, v in enumerate(pull):
        stand.inject(BY_NAME["external_force"].number, i, float(v))
    stand.advance(80_000)
    # what has turned leans its weight and the pull by the turn: 1e-4 of them
    np.testing.assert_allclose(stand.state()["F_S"], weight + pull, atol=0.3)


def test_undamped_modes_keep_their_energy():
    """Kinetic energy and that of both springs over 2 s: symplectic, so it swings by w dt and does not drift."""
    still = {"cell_mode_damping": [0.0] * 6, "base_mode_damping": [0.0] * 6}
    stand = plant(replace(FLOOR, gravity_m_s2=(0.0, 0, 0)), **CELL | BASE | still)
    _, _, K, _ = chain_matrices()
    rest = {name: stand.state()["bodies"][name]["X_WB"] for name in ("base", "cell")}
    tap(stand, [800.0, 500.0, -300.0, 50.0, 80.0, -20.0], 40)
    energy = []
    for _ in range(400):
        stand.advance(100)
        d = np.r_[deflection(stand, "base", rest["base"]), deflection(stand, "cell", rest["cell"])]
        energy.append(0.5 * d @ K @ d + sum(b["kinetic"] for b in stand.state()["bodies"].values()))
    energy = np.array(energy)
    assert energy[:100].mean() == pytest.approx(energy[-100:].mean(), rel=2e-3)
    assert np.ptp(energy) < 0.05 * energy.mean()


def shake(stand, hertz, amplitude, seconds, direction, each):
    """Drives the platform by setpoints of the legs along a direction of W, and calls `each` every millisecond."""
    platform, neutral = CONTEXT["platform"], stand.state()["X_WP"]
    for k in range(round(seconds * 1000)):
        X = neutral.copy()
        X[:3] += amplitude * np.sin(2 * np.pi * hertz * k * 1e-3) * np.asarray(direction)
        stand.set_target(platform.leg_lengths(X))
        stand.advance(round(1e-3 / stand.step_s))
        each(stand.state())


def test_the_unit_on_a_moving_platform_follows_as_a_mode_does():
    """10 Hz under a mode of 30 Hz: the port moves by 1 / (1 - (10/30)^2) of the platform once the start has died out."""
    stand = plant(**UNIT | {"unit_com_m": [0.0, 0, 0], "unit_mode_damping": [0.1] * 6}, drive_frequency_hz=0.0, drive_delay_s=0.0)
    foot, port = [], []

    def each(state):
        foot.append(state["X_WP"][1])
        port.append(state["X_TA"][1])

    shake(stand, 10.0, 1e-3, 0.8, [0.0, 1, 0], each)
    foot, port = np.array(foot[-400:]), np.array(port[-400:])
    wave = np.exp(-2j * np.pi * 10.0 * 1e-3 * np.arange(400))
    ratio = (port @ wave) / (foot @ wave)
    s = 1j * 10.0 / 30.0
    assert abs(ratio) == pytest.approx(abs((1 + 0.2 * s) / (1 + 0.2 * s + s * s)), rel=0.01)


@pytest.mark.parametrize(("mounting", "keys"), [(FLOOR, CELL | BASE), (RIDING, CELL | BASE), (RIDING, BASE), (RIDING, {})])
def test_accelerometers_say_what_the_cell_feels(mounting, keys):
    """Newton and Euler of the carried unit from its own accelerometers: all of the cell's force but what is pulled at it, everywhere."""
    stand, c, J = plant(mounting, accelerometers=True, **keys), np.array(mounting.carried_com_m), mounting.carried_inertia_kg_m2
    residual, size = [], []

    def each(state):
        a, dw = state["cell_acceleration"][:3], state["cell_acceleration"][3:]
        held = mounting.carried_mass_kg * (a + np.cross(dw, c))
        felt = -np.r_[held, np.cross(c, held) + J @ dw]
        residual.append(state["F_S"] - felt)
        size.append(state["F_S"])

    tap(stand, [800.0, 500.0, -300.0, 50.0, 80.0, -20.0], 40)
    shake(stand, 6.0, 2e-3, 0.3, [0.3, 0.8, 0.5], each)
    swing = np.ptp(np.array(size), axis=0).max()
    if keys or mounting is RIDING:
        assert swing > 20.0
    # the cell's frame and the unit's differ by the cell's own turn, and S by its deflection
    assert np.abs(residual).max() < 2e-3 * max(swing, FLOOR.carried_mass_kg * 9.81)


@pytest.mark.parametrize(("keys", "words"), [
    ({"unit_mode_hz": [30.0] * 6}, "virtual.unit_mass_kg"),
    (UNIT | {"unit_stiffness": np.eye(6) * 1e6}, "one of the two"),
    ({**UNIT, "unit_mode_shapes": np.ones((6, 6))}, "virtual.unit_mode_shapes: the shapes"),
    ({k: v for k, v in UNIT.items() if k != "unit_mode_hz"} | {"unit_stiffness": -np.eye(6)}, "virtual.unit_stiffness: must be symmetric"),
    (CELL | {"plant_step_s": 1e-3}, "virtual.plant_step_s"),
    (UNIT | {"unit_inertia_kg_m2": np.diag([1.0, 1.0, 0.0])}, "inertia that is symmetric and positive"),
])  # fmt: skip
def test_what_is_no_structure_is_named(keys, words):
    with pytest.raises(ValueError, match=words):
        PlantPart(
            platform=CONTEXT["platform"], mounting=FLOOR, mechanism=registry.part("mechanisms", "bumper")(stiffness_n_per_m=1.0), **keys
        )


def test_modal_data_and_stiffness_say_the_same():
    """Frequencies and shapes of a given stiffness give it back; directions alone are the diagonal."""
    rng = np.random.default_rng(2)
    J = np.diag([3.0, 4.0, 5.0])
    M = mass_of(50.0, J)
    A = rng.normal(size=(6, 6))
    K = 1e6 * (A @ A.T + np.eye(6))
    w2, shapes = np.linalg.eig(np.linalg.solve(M, K))
    order = np.argsort(w2)
    hz, shapes = np.sqrt(w2[order]) / (2 * np.pi), 7.0 * shapes[:, order].T
    zeta = np.linspace(0.01, 0.06, 6)
    one, other = modal_spring(50.0, J, hz, zeta, shapes), modal_spring(50.0, J, None, zeta, None, K)
    np.testing.assert_allclose(one[0], K, rtol=1e-8, atol=1e-6 * K.max())
    np.testing.assert_allclose(one[1], other[1], rtol=1e-8, atol=1e-6 * one[1].max())
    K, _ = modal_spring(50.0, J, [10.0] * 3 + [20.0] * 3, [0.0] * 6)
    np.testing.assert_allclose(K, np.diag([50 * (20 * np.pi) ** 2] * 3 + list(np.diag(J) * (40 * np.pi) ** 2)), atol=1e-9 * K.max())


# ---------------------------------------------------------------------------------------- through port and wrench path


def residual_of_a_shaken_cell(stand, inertia_from, **keys):
    """The load cell rides on the platform, which is shaken at 4 Hz; no contact. Largest force and moment that the wrench path leaves after
    the start, N and N.m, and what the cell itself feels beside the weight at rest."""
    mounting = RIDING
    far = registry.part("mechanisms", "bumper")(stiffness_n_per_m=1e4, plane_point_m=[50.0, 0, 0])
    context = CONTEXT | {"period_s": 1e-3, "mounting": mounting, "mechanism": far, "noiseless": True}
    quiet = {"force_noise_n": 0.0, "moment_noise_n_m": 0.0, "leg_noise_m": 0.0}
    port = assembly.build_part("simulated", stand, quiet | {"accelerometers": True} | keys, context)
    kinematics = assembly.build_part("forward_kinematics", "stewart_forward", {}, context)
    path = assembly.build_part("wrench", "six_axis", {"inertia_from": inertia_from}, context | {"sensor_scale": port.sensor_scale})
    platform, s = CONTEXT["platform"], np.zeros(1, SAMPLE_DTYPE)
    neutral = platform.neutral_pose
    s["safety_state"], s["periods"] = CODES["safety_state"]["following"], 1
    left, felt = [], []
    for k in range(900):
        X = neutral.copy()
        grown = min(1.0, k / 300.0) * np.sin(2 * np.pi * 4.0 * k * 1e-3)
        X[:3] += 2e-3 * grown * np.array([0.5, 0.7, 0.5])
        X[3:] = (Rotation.from_rotvec(1e-3 * grown * np.array([0.6, -0.5, 0.6])) * Rotation.from_quat(neutral[3:])).as_quat()
        s["leg_setpoint"] = platform.leg_lengths(X)
        port.read(s)
        kinematics.step(s)
        path.step(s)
        port.write(s)
        s["tick"] += 1
        s["time_ns"] += 1_000_000
        if k >= 500:
            left.append(s["F_S"][0].copy())
            felt.append(s["wrench_raw"][0] / port.sensor_scale)
    swing = np.ptp(felt, axis=0) / 2
    return np.abs(left).max(axis=0), swing


@pytest.mark.parametrize("stand", ["virtual_stand", "hydraulic_stand"])
def test_accelerometers_leave_nothing_of_a_shaken_unit_where_the_pose_leaves_its_ringing(stand):
    """A unit of 120 kg on a base that rings at 35 Hz, on a moving platform. With accelerometers the rest is a thousandth of what the cell
    feels; the measured pose knows nothing of the base and comes late."""
    base = BASE | {"base_mode_hz": [35.0] * 6}
    by_pose, swing = residual_of_a_shaken_cell(stand, "pose", **base)
    by_feeling, _ = residual_of_a_shaken_cell(stand, "accelerometers", **base)
    assert swing[:3].min() > 30.0
    assert by_feeling[:3].max() < 2e-3 * swing[:3].max() and by_feeling[3:].max() < 2e-3 * swing[3:].max()
    assert by_pose[:3].max() > 50.0 * by_feeling[:3].max()


def test_accelerometers_that_come_late_leave_the_part_of_their_lateness():
    """2 ms between the two devices at 4 Hz: w t of the inertial force, and no more."""
    late, swing = residual_of_a_shaken_cell("virtual_stand", "accelerometers", accelerometer_delay_s=0.002)
    part = 2 * np.pi * 4.0 * 0.002
    assert late[:3].max() == pytest.approx(part * swing[:3].max(), rel=0.25)


# ------------------------------------------------------------------------------------------------- on a loaded machine


def hydraulic(**keys):
    far = registry.part("mechanisms", "bumper")(stiffness_n_per_m=1e4, plane_point_m=[50.0, 0, 0])
    return PlantPart(platform=CONTEXT["platform"], mounting=FLOOR, mechanism=far, machine="hydraulic", **{"plant_step_s": DT, **keys})


def test_platform_and_unit_ring_as_a_coupled_pair_on_the_oil():
    """Spools shut, no friction, no leakage: modes of the platform's mass on its oil springs and of the unit on the platform, by the
    eigenvalues of the twelve equations, found in the spectrum of the platform's own motion after a push at the unit."""
    still = {"friction_viscous_n_s_per_m": 0.0, "friction_coulomb_n": 0.0, "friction_static_n": 0.0, "leakage_internal_m3_per_s_pa": 0.0,
             "position_gain_per_s": 0.1, "velocity_feedforward": 0.0, "pressure_gain_per_pa": 0.0, "valve_overlap": 0.1}  # fmt: skip
    unit = UNIT | {"unit_mode_damping": [0.0] * 6, "unit_com_m": [0.0, 0.0, 0.0]}
    stand = hydraulic(**still, **unit)
    machine = stand.machine
    J = machine.jacobian()
    K_oil, M_p = J.T @ np.diag(machine.oil_stiffness()) @ J, machine.mass_matrix()
    K_u, _ = modal_spring(600.0, UNIT["unit_inertia_kg_m2"], unit["unit_mode_hz"], [0.0] * 6)
    r = np.array(FLOOR.X_PM[:3])
    carried = np.block([[np.eye(3), -skew(r)], [np.zeros((3, 3)), np.eye(3)]])
    stretch = np.hstack([-carried, np.eye(6)])
    K = np.block([[K_oil, np.zeros((6, 6))], [np.zeros((6, 6)), np.zeros((6, 6))]]) + stretch.T @ K_u @ stretch
    M = np.block([[M_p, np.zeros((6, 6))], [np.zeros((6, 6)), mass_of(600.0, UNIT["unit_inertia_kg_m2"])]])
    wanted = np.sort(np.sqrt(np.abs(np.linalg.eigvals(np.linalg.solve(M, K)).real))) / (2 * np.pi)
    # a push at the platform in all directions
    machine.set_wrench([4e3, 3e3, -3e3, 1e3, 2e3, -2e3])
    V = np.linalg.solve(M_p, [40.0, 30.0, -30.0, 10.0, 20.0, -20.0])
    machine.set_motion(stand.state()["X_WP"], V)
    way = []
    for _ in range(8000):
        stand.advance(10)
        way.append(stand.state()["V_WP"])
    way = np.array(way)
    n = 1 << 17
    spectrum = np.abs(np.fft.rfft((way - way.mean(axis=0)) * np.hanning(len(way))[:, None], n, axis=0))
    hz = np.fft.rfftfreq(n, 10 * DT)
    total = (spectrum / spectrum.max(axis=0)).max(axis=1)
    peaks = hz[1:-1][(total[1:-1] > total[:-2]) & (total[1:-1] > total[2:]) & (total[1:-1] > 0.05)]
    for f in wanted:
        # each mode that the platform takes part in has its peak
        assert np.abs(peaks - f).min() < 0.01 * f, (f, peaks, wanted)


def test_what_hangs_on_the_platform_is_in_the_ledger_of_the_machine():
    """Work of the machine on the unit is what the unit's own motion, height and spring have: nothing is invented. Both are summed step by
    step, and differ by the order of the step."""
    for step, share in ((DT, 0.02), (DT / 5, 0.004)):
        worst, largest = ledger_of_the_unit(step)
        assert largest > 5.0 and worst < share * largest


def ledger_of_the_unit(step):
    """Largest difference of the two, and the largest work, J."""
    stand = hydraulic(**UNIT | {"unit_mode_damping": [0.0] * 6, "plant_step_s": step})
    rest = stand.state()["X_WP"]
    K, _ = modal_spring(600.0, UNIT["unit_inertia_kg_m2"], UNIT["unit_mode_hz"], [0.0] * 6)
    before = stand.machine.energy()["contact"]

    def in_unit(state):
        body = state["bodies"]["unit"]
        X, com = state["X_WP"], np.array(FLOOR.X_PM[:3]) + UNIT["unit_com_m"]
        R = Rotation.from_quat(X[3:])
        d = np.r_[R.inv().apply(body["X_WB"][:3] - X[:3]) - com, (R.inv() * Rotation.from_quat(body["X_WB"][3:])).as_rotvec()]
        F_0 = -600.0 * Rotation.from_quat(rest[3:]).inv().apply(G_W)
        return body["kinetic"] + 0.5 * d @ K @ d - F_0 @ d[:3] - 600.0 * G_W @ body["X_WB"][:3]

    start, worst, largest = in_unit(stand.state()), 0.0, 0.0

    def each(state):
        nonlocal worst, largest
        gained, work = in_unit(state) - start, -(stand.machine.energy()["contact"] - before)
        worst, largest = max(worst, abs(gained - work)), max(largest, abs(work))

    shake(stand, 5.0, 5e-3, 1.0, [0.6, 0.6, 0.5], each)
    return worst, largest
