"""Two free spacecraft with modes: without modes the bits of the rigid part; one craft bent, the closed form; kinematics of bent ports."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from hil_server import registry
from hil_server.config.modal_data import ModalData, ModalDataError, csv_text, rigid_of
from hil_server.config.model import vehicle
from hil_server.config.tables import VEHICLE
from rt_kernels.context import IDENTITY, Start, Vehicle, Vehicles
from rt_kernels.dynamics.modal import ModalCraft
from rt_kernels.dynamics.two_bodies import TwoBodies
from rt_kernels.dynamics.two_bodies_flexible import TwoBodiesFlexible
from rt_kernels.layout import BITS, CODES
from tests.first_sample import closed
from tests.stewart.plain_kinematics import matrix_of

MOTION = CODES["motion"]
PERIOD = 1e-3
SHAPES = np.random.default_rng(5).normal(0.0, 0.02, (7, 6))
OMEGA = np.linspace(2.0, 30.0, 7)
TILTED = [-0.5, 0.05, -0.03, *Rotation.from_euler("xyz", [2, -3, 4], degrees=True).as_quat()]
TWIST = [0.1, 0.01, -0.02, 0.01, -0.02, 0.03]


def modes(omega=OMEGA, shapes=SHAPES, decrement=0.05):
    return lambda steps: ModalCraft(omega, np.full(len(omega), decrement), shapes, steps)


def make(part=TwoBodiesFlexible, active=None, target=None, masses=(7000.0, 20000.0)):
    ports = [[3.6, 0.2, -0.1, *Rotation.from_euler("xyz", [5, 10, -5], degrees=True).as_quat()], [-6.2, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]]
    vehicles = Vehicles(*(
        Vehicle(m, np.diag([4.0, 30.0, 31.0]) * m / 5.0, port, modal=craft)
        for m, port, craft in zip(masses, ports, (active, target), strict=True)
    ))  # fmt: skip
    start = Start(IDENTITY, np.zeros(6), [0.0, 1e-3, 0.0])
    return part(period_s=PERIOD, vehicles=vehicles, start=start, range_max_m=1e3)


def begin(part, X_TA=TILTED, V_TA=TWIST):
    return closed(part, X_TA, V_TA)[0]


def test_without_modes_every_bit_is_that_of_the_rigid_part():
    parts = make(TwoBodies), make()
    samples = [begin(part) for part in parts]
    rng = np.random.default_rng(1)
    for motion in ["free"] * 200 + ["joined"] * 50 + ["follow_profile"] * 3:
        wrench = rng.normal(0.0, 300.0, 6)
        for part, sample in zip(parts, samples, strict=True):
            sample["motion"], sample["F_T_corrected"] = MOTION[motion], wrench
            sample["profile_X_TA"] = TILTED
            part.step(sample)
        assert samples[0].tobytes() == samples[1].tobytes()


def test_modes_without_a_shape_move_as_the_rigid_part():
    rigid, still = make(TwoBodies), make(active=modes(shapes=0.0 * SHAPES), target=modes(shapes=0.0 * SHAPES))
    one, two = begin(rigid), begin(still)
    one["F_T_corrected"] = two["F_T_corrected"] = [-400.0, 30.0, -20.0, 5.0, -40.0, 60.0]
    for _ in range(500):
        rigid.step(one)
        still.step(two)
    for name in ("X_TA", "V_TA", "X_NC", "X_NV"):
        np.testing.assert_allclose(two[name], one[name], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("craft", ["active", "target"])
def test_port_displacement_is_the_closed_form_of_its_modes(craft):
    """A wrench held from rest: displacement and rate of the port against the matrix exponential of the modal equations."""
    part = make(**{craft: modes()}, masses=(7e6, 2e7))
    sample = begin(part, [-0.5, 0, 0, 0, 0, 0, 1], [0.0] * 6)
    wrench = 0.01 * np.array([-400.0, 30.0, -20.0, 5.0, -40.0, 60.0])
    load = wrench
    if craft == "active":
        # the craft are so heavy that A stays half a metre behind T
        R = Rotation.from_quat(np.array(sample["X_TA"][0][3:]))
        force = -R.inv().apply(wrench[:3])
        load = np.concatenate([force, -R.inv().apply(wrench[3:] - np.cross(sample["X_TA"][0][:3], wrench[:3]))])
    sample["F_T_corrected"] = wrench
    n = 300
    for _ in range(n):
        aux = part.step(sample)
    at = 0 if craft == "active" else 12
    s = np.sqrt(4 * np.pi**2 + 0.05**2)
    expected, rates = np.zeros(6), np.zeros(6)
    for w, shape in zip(OMEGA, SHAPES, strict=True):
        A = np.zeros((3, 3))
        A[0, 1], A[1, 0], A[1, 1], A[1, 2] = 1.0, -w * w, -2 * w * 0.05 / s, shape @ load
        q = expm(A * n * PERIOD) @ [0.0, 0.0, 1.0]
        expected, rates = expected + shape * q[0], rates + shape * q[1]
    tolerance = 1e-9 if craft == "target" else 2e-4
    np.testing.assert_allclose(aux[at : at + 6], expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    np.testing.assert_allclose(aux[at + 6 : at + 12], rates, rtol=tolerance, atol=tolerance * np.abs(rates).max())
    # the rigid craft of the pair does not bend
    assert not np.any(aux[12 - at : 24 - at])


def test_relative_pose_and_twist_are_those_of_the_bent_ports():
    """X_TA from homogeneous matrices of craft, port and bend; V_TA against its difference quotient."""
    part = make(active=modes(), target=modes(OMEGA * 0.7, SHAPES[::-1]))
    sample = begin(part)
    rng = np.random.default_rng(2)
    ports = [[3.6, 0.2, -0.1, *Rotation.from_euler("xyz", [5, 10, -5], degrees=True).as_quat()], [-6.2, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]]
    sample["F_T_corrected"] = rng.normal(0.0, 10.0, 6)
    for _ in range(150):
        aux = part.step(sample)

    def relative(aux):
        bent = []
        for k, X_body in enumerate((sample["X_NC"][0], sample["X_NV"][0])):
            u = aux[12 * k : 12 * k + 6]
            bend = np.eye(4)
            bend[:3, :3], bend[:3, 3] = Rotation.from_rotvec(u[3:]).as_matrix(), u[:3]
            bent.append(matrix_of(X_body) @ matrix_of(ports[k]) @ bend)
        return np.linalg.inv(bent[1]) @ bent[0]

    assert np.abs(aux[:6]).max() > 1e-4 and np.abs(aux[12:18]).max() > 1e-4
    np.testing.assert_allclose(matrix_of(sample["X_TA"][0]), relative(aux), atol=1e-13)
    # twist: mean of two ticks against the step between them
    sample["F_T_corrected"] = 0.0
    part.step(sample)
    before, V = matrix_of(sample["X_TA"][0]), sample["V_TA"][0].copy()
    part.step(sample)
    after, V = matrix_of(sample["X_TA"][0]), 0.5 * (V + sample["V_TA"][0])
    np.testing.assert_allclose((after[:3, 3] - before[:3, 3]) / PERIOD, V[:3], atol=5e-6)
    turn = Rotation.from_matrix(after[:3, :3] @ before[:3, :3].T).as_rotvec() / PERIOD
    np.testing.assert_allclose(turn, V[3:], atol=5e-6)


def test_momentum_is_kept_with_modes():
    part = make(active=modes(), target=modes())
    sample = begin(part)
    part.step(sample)
    before = sample["momentum"][0].copy()
    rng = np.random.default_rng(3)
    for _ in range(2000):
        sample["F_T_corrected"] = rng.normal(0.0, 2000.0, 6)
        part.step(sample)
    after = sample["momentum"][0]
    assert np.linalg.norm(after[:3] - before[:3]) <= 1e-9 * np.linalg.norm(before[:3])
    assert np.linalg.norm(after[3:] - before[3:]) <= 1e-9 * np.linalg.norm(before[3:])


def test_modes_are_at_rest_again_when_the_loop_is_closed():
    part = make(active=modes(), target=modes())
    sample = begin(part)
    sample["F_T_corrected"] = [-900.0, 30.0, -20.0, 5.0, -40.0, 60.0]
    for _ in range(100):
        aux = part.step(sample)
    assert np.abs(aux).max() > 0.0
    sample["motion"] = MOTION["close_loop"]
    aux = part.step(sample)
    assert not np.any(aux)
    np.testing.assert_array_equal(sample["X_TA"][0], TILTED)


def test_a_snapshot_takes_the_modes_along():
    part = make(active=modes(), target=modes())
    sample = begin(part)
    sample["F_T_corrected"] = [-900.0, 30.0, -20.0, 5.0, -40.0, 60.0]
    for _ in range(50):
        part.step(sample)
    saved, kept = part.snapshot(), sample.copy()
    first = [part.step(sample).tobytes() for _ in range(20)]
    other = make(active=modes(), target=modes())
    for again in (part, other):
        again.restore(saved)
        sample = kept.copy()
        assert [again.step(sample).tobytes() for _ in range(20)] == first


def test_too_many_load_points_are_named():
    with pytest.raises(ValueError, match="further_loads"):
        make(active=modes(shapes=np.zeros((7, 129))))


# ------------------------------------------------------------------------------------- thrusters, initial state of the modes

STRUCTURE = Rotation.from_euler("xyz", [20, -70, 35], degrees=True)  # q_SD: port in the axes of the finite elements
FLEXIBLE_HZ = (0.8, 2.1)
BENT = {"initial_coordinates": [0.4, -0.1], "initial_rates": [0.5, 3.0]}


def flexible_vehicle(**modal):
    """A vehicle's table: six rigid-body modes of its mass, two modes without damping, an engine and two retro engines at node 7."""
    rng = np.random.default_rng(8)
    table = {
        "name": "bending", "mass_kg": 7e6, "inertia_kg_m2": (np.diag([4.0, 30.0, 31.0]) * 1e6).tolist(),
        "port_position_m": [3.6, 0.2, -0.1], "port_angles_deg": [12.0, -7.0, 30.0], "thrust_n": 500.0,
        "thruster": [
            {"name": "press", "position_m": [-3.0, 0.0, 0.0], "direction": [1.0, 0.0, 0.0], "thrust_n": 500.0, "delay_s": 0.04},
            {"name": "back", "position_m": [2.0, 0.0, 0.0], "direction": [-1.0, 0.0, 0.0], "thrust_n": 400.0, "delay_s": 0.04},
        ],
    }  # fmt: skip
    to_structure = np.kron(np.eye(2), STRUCTURE.as_matrix().T)  # rows of shapes in port axes -> structural axes
    at_port = np.vstack([np.linalg.cholesky(np.linalg.inv(rigid_of(table))).T @ to_structure, rng.normal(0.0, 0.02, (2, 6))])
    at_engine = np.vstack([rng.normal(0.0, 1e-4, (6, 6)), rng.normal(0.0, 0.02, (2, 6))])
    data = ModalData(np.array([0.0] * 6 + list(FLEXIBLE_HZ)), {1: at_port, 7: at_engine})
    table["modal"] = {
        "data": csv_text(data), "port_node": 1, "port_axes_xyzw": STRUCTURE.as_quat().tolist(), "frequency_min_hz": 0.01,
        "log_decrement_bands": [[10.0, 0.0]], "thruster_nodes": [7, 7], **modal,
    }  # fmt: skip
    return vehicle(_filled(table)), at_port[6:], at_engine[6:]


def _filled(table):
    return {p.key: p.default for p in VEHICLE if not p.required} | table


def test_pulses_of_a_thruster_excite_the_modes_as_the_closed_form_says():
    """Bang-bang at half the period of the first mode. A mode without damping under steps +-F at t_i: q = sum +-F phi/w^2
    (1 - cos w (t - t_i)) (4.2.4); the valve's delay moves every step by 40 ticks."""
    vehicle, at_port, at_engine = flexible_vehicle()
    vehicles, start = Vehicles(vehicle, Vehicle(2e7, np.diag([4.0, 30.0, 31.0]) * 4e6)), Start(IDENTITY, np.zeros(6))
    part = TwoBodiesFlexible(period_s=PERIOD, vehicles=vehicles, start=start, range_max_m=1e3)
    keys = {"press": "thrusters", "active_attitude": "off"}
    control = registry.part("control", "thrusters")(period_s=PERIOD, vehicles=vehicles, start=start, **keys)
    sample = begin(part, [-0.5, 0, 0, 0, 0, 0, 1], [0.0] * 6)
    half = 625  # ticks: the first mode has 0.8 Hz
    asked = np.zeros(5000, bool)
    for k in range(3):
        asked[100 + 2 * k * half : 100 + (2 * k + 1) * half] = True
    found = []
    for press in asked:
        sample["control_request"] = BITS["control_request"]["press"] * press
        control.step(sample)
        found.append(part.step(sample)[:6].copy())
    t = np.arange(1, len(asked) + 1) * PERIOD
    steps = [(tick + 40, 1.0 if asked[tick] else -1.0) for tick in np.flatnonzero(np.diff(asked.astype(int))) + 1]
    R_CD = Rotation.from_quat(vehicle.X_port[3:])
    along = STRUCTURE.apply(R_CD.inv().apply([1.0, 0.0, 0.0]))  # of the thrust, structural axes
    expected = np.zeros((len(t), 6))
    for frequency, port, engine in zip(FLEXIBLE_HZ, at_port, at_engine, strict=True):
        w = 2 * np.pi * frequency
        since = [(np.maximum(t - i * PERIOD, 0.0), sign) for i, sign in steps]
        q = 500.0 * (engine[:3] @ along) / w**2 * sum(sign * (1.0 - np.cos(w * s)) for s, sign in since)
        on_port = np.concatenate([STRUCTURE.inv().apply(port[:3]), STRUCTURE.inv().apply(port[3:])])
        expected += q[:, None] * on_port
    found = np.array(found)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max(), rtol=0)
    # in step with the first mode: three pulses leave six times 500 N phi/w^2, the first one alone has a peak of twice
    assert np.abs(found[-1250:]).max() > 2.8 * np.abs(found[140 : 140 + half]).max()


def test_modes_begin_in_the_state_of_the_table_and_the_loop_closes_without_a_jump():
    """4.5: free swinging from q(0), q'(0); the deformed ports have the measured pose and twist at the closing."""
    vehicle, at_port, _ = flexible_vehicle(**BENT)
    for k, vehicles in enumerate((Vehicles(vehicle, Vehicle(2e7, np.eye(3) * 4e8)), Vehicles(Vehicle(2e7, np.eye(3) * 4e8), vehicle))):
        part = TwoBodiesFlexible(period_s=PERIOD, vehicles=vehicles, start=Start(IDENTITY, np.zeros(6), [0.0, 1e-3, 0.0]), range_max_m=1e3)
        sample = begin(part)
        np.testing.assert_array_equal(sample["X_TA"][0], TILTED)
        rows = []
        for _ in range(700):
            before = sample["X_TA"][0].copy()
            rows.append(part.step(sample)[12 * k : 12 * k + 6].copy())
            if len(rows) == 1:
                # one tick later: the port's swing has changed the twist by its acceleration only
                np.testing.assert_allclose(before, TILTED, atol=1e-12)
                swing = 1e-3 * np.abs(at_port).max() * (2 * np.pi * 2.1) * np.hypot(0.5 + 3.0, 2 * np.pi * 2.1 * 0.5)
                np.testing.assert_allclose(sample["V_TA"][0], TWIST, atol=swing)
                assert swing < 0.2 * np.abs(at_port * [[0.5], [3.0]]).max()
        t = np.arange(1, 701)[:, None] * PERIOD
        expected = np.zeros((700, 6))
        for frequency, port, q, rate in zip(FLEXIBLE_HZ, at_port, *BENT.values(), strict=True):
            w = 2 * np.pi * frequency
            on_port = np.concatenate([STRUCTURE.inv().apply(port[:3]), STRUCTURE.inv().apply(port[3:])])
            expected += (q * np.cos(w * t) + rate / w * np.sin(w * t)) * on_port
        np.testing.assert_allclose(np.array(rows), expected, atol=1e-10 * np.abs(expected).max(), rtol=0)
        # another machine takes it over from the log
        other = TwoBodiesFlexible(period_s=PERIOD, vehicles=vehicles, start=Start(IDENTITY, np.zeros(6), [0.0, 1e-3, 0.0]), range_max_m=1e3)
        assert other.dump() != part.dump()
        other.load_unchecked(part.dump())
        assert other.dump() == part.dump()


@pytest.mark.parametrize(("modal", "words"), [
    ({"thruster_nodes": [7]}, "thruster_nodes: 1 nodes, the vehicle has 2 thrusters"),
    ({"thruster_nodes": [7, 9]}, "node 9"),
    ({"initial_coordinates": [1.0]}, "initial_coordinates: .* list of 2 finite numbers"),
    ({"initial_rates": ["a", "b"]}, "initial_rates: .* list of 2 numbers"),
])  # fmt: skip
def test_wrong_thruster_nodes_and_initial_states_are_named(modal, words):
    with pytest.raises(ModalDataError, match=words):
        flexible_vehicle(**modal)[0].modal((1e-3, 1e-3))
    table = flexible_vehicle()[0]
    del table.modal.args[0]["thruster_nodes"]
    with pytest.raises(ModalDataError, match="thruster_nodes: is missing: the vehicle has 2 thrusters"):
        table.modal((1e-3, 1e-3))
    table.modal.args[0]["thruster_nodes"] = []
    assert table.modal((1e-3, 1e-3)).n_thrusters == 0
