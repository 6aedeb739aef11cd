"""Flexible craft in motion: published and re-created cases, closed forms, invariants, and the errata of the sources.

Cases: six-link flexible chain (Tian et al. 2010), dumbbell rigid - truss - rigid (Wang et al.
2020), spinning beam. Each erratum test compares the corrected form with an independent computation and shows that the printed
form fails.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.sparse import lil_matrix
from scipy.spatial.transform import Rotation

from rt_kernels.model.beam_elements import Section, square_truss, straight_beam
from rt_kernels.model.craft import Link
from rt_kernels.model.craft_file import assumed_beam
from rt_kernels.model.modes import ModalBody, clamped_modes, free_free_modes, lowest_modes
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.integrators import Motion, step_limit

CONFIGS = Path(__file__).parents[2] / "stand_configs"
AXES = (2, 1, 1, 0, 1, 2)
Q0 = np.concatenate([[0.0, 0.4, -0.8, 0.3, 0.6, 0.2], np.zeros(18)])
GIVEN = np.isin(np.arange(24), (1, 3, 4))
LOCKED = [1, 3, 4]


def chain(EI, rates="exact"):
    """The shipped six-link chain with another bending stiffness."""
    links = FlexibleTree.from_toml(CONFIGS / "manipulators" / "flexible_six_link.toml").links
    return FlexibleTree([replace(link, body=assumed_beam(1.0, 2.0, EI)) for link in links], rates=rates)


def torques(t, *_):
    tau = np.zeros(24)
    tau[0], tau[2], tau[5] = -3.0 * np.sin(np.pi * t / 3.0), 0.3 * np.cos(np.pi * t / 6.0), 0.3 * np.cos(np.pi * t / 6.0)
    return tau


# --- six-link flexible chain ---------------------------------------------------------------


@pytest.mark.parametrize("EI", [20.0, 1136.0])
def test_six_links_at_the_start(EI):
    tau, a = chain(EI).hybrid_dynamics(Q0, np.zeros(24), torques(0.0), np.zeros(24), GIVEN)
    np.testing.assert_allclose(a[:6], [0.22293717, 0, 5.1068041, 0, 0, 139.95167426], rtol=0, atol=1e-7)
    np.testing.assert_allclose(tau[[1, 3, 4]], [-0.24874727, 0.07248500, 0.10481030], rtol=0, atol=1e-8)


def test_six_links_frequencies_and_limit():
    tree = FlexibleTree.from_toml(CONFIGS / "manipulators" / "flexible_six_link.toml")
    f = tree.frequencies(Q0, LOCKED)
    assert np.abs(f[:3]).max() < 1e-5
    np.testing.assert_allclose(f[[3, 4, 5, 6, -1]], [1.6285, 2.2710, 3.4906, 8.2827, 232.65], rtol=2e-5)
    assert step_limit(tree, "two_step", Q0, LOCKED) == pytest.approx(1.368e-3, abs=5e-7)
    assert step_limit(chain(20.0), "two_step", Q0, LOCKED) == pytest.approx(10.3e-3, abs=5e-5)


def test_six_links_after_one_second():
    """Digits of an error-controlled integrator with the sources' first-order port rates; RK4 at 31 us."""
    for EI, q_wanted in ((1136.0, [-0.019003, 0.4, -0.781466, 0.3, 0.6, 0.557517]),
                         (20.0, [-0.102611, 0.4, -0.684695, 0.3, 0.6, 0.602748])):
        tree = chain(EI, "first_order")
        motion = Motion(tree, "rk4", 1.0 / 32000 if EI > 100 else 1.0 / 4000)
        motion.apply(tau=torques, known=GIVEN)
        _, q, v = motion.run(Q0, np.zeros(24), 32000 if EI > 100 else 4000)
        np.testing.assert_allclose(q[:6], q_wanted, rtol=0, atol=1e-6)
        if EI > 100:
            tau, _ = tree.hybrid_dynamics(q, v, torques(1.0), np.zeros(24), GIVEN)
            np.testing.assert_allclose(tau[LOCKED], [1.2257, -0.1120, 0.4461], rtol=0, atol=1e-4)


def test_two_step_on_the_chain_is_of_second_order():
    tree = chain(20.0, "first_order")
    reference = np.array([-0.102611, -0.684695, 0.602748])

    def error(steps):
        motion = Motion(tree, "two_step", 1.0 / steps)
        motion.apply(tau=torques, known=GIVEN)
        return np.abs(motion.run(Q0, np.zeros(24), steps)[1][[0, 2, 5]] - reference).max()

    np.testing.assert_allclose([error(200), error(400), error(800), error(1600)], [5.9e-3, 1.7e-3, 3.9e-4, 9.6e-5], rtol=0.05)


# --- dumbbell spacecraft ---------------------------------------------------------------


@pytest.fixture(scope="module")
def paper_craft():
    return FlexibleTree.from_toml(CONFIGS / "vehicles" / "dumbbell_truss_free_free.toml")


@pytest.fixture(scope="module")
def craft():
    return FlexibleTree.from_toml(CONFIGS / "vehicles" / "dumbbell_truss.toml")


def point_reactor(tree):
    """The reactor without rotary inertia (rigid - truss - point)."""
    point = ModalBody.rigid(3500.0, (1.5, 0.0, 0.0))
    return FlexibleTree([replace(link, body=point) if link.name == "reactor" else link for link in tree.links])


TABLE_3 = [0.3304, 0.3304, 0.8935, 0.8935, 1.704, 1.704, 1.814, 2.719, 2.719, 3.622, 3.801]


def stations():
    """41 stations: Timoshenko beam with four lumps a station, generalised stiffness from the table of frequencies."""
    section = Section(1.0, 1.0, 2630671.0, 365545.0, 365545.0, 129387.0, 0.0, 425621.0, 425621.0)
    frame = straight_beam(30.0, section, 40, -15.0)
    mass, c = (1505.0 - 11.496) / 40.0, 0.328593
    for node in range(41):
        total = mass if 0 < node < 40 else mass / 2.0 + 5.748
        for y in (-c, c):
            for z in (-c, c):
                frame.add_point(node, total / 4.0, (0.0, y, z))
    f, X = free_free_modes(frame, 11)
    ports = {"root": frame.port(frame.node_dofs(0), (-15, 0, 0), X), "tip": frame.port(frame.node_dofs(40), (15, 0, 0), X)}
    return f, frame, X, frame.modal_body(X, ports, frequencies_hz=TABLE_3)


def test_truss_has_the_published_modes(paper_craft):
    body = paper_craft.links[0].body
    np.testing.assert_allclose(np.sqrt(np.diag(body.stiffness)) / 2 / np.pi, TABLE_3, rtol=4e-4)
    np.testing.assert_allclose(np.diag(body.inertia), [331.5, 114731, 114731], rtol=1e-4)
    phi, psi = (np.linalg.norm(x, axis=0) for x in (body.ports["root"].phi, body.ports["tip"].psi))
    np.testing.assert_allclose(phi[[0, 2, 4, 7]], [0.0503840, 0.0492107, 0.0478663, 0.0463949], rtol=1e-5)
    np.testing.assert_allclose(psi[[0, 6, 9]], [0.00781551, 0.077638, 0.077536], rtol=1e-5)


def test_table_5_by_the_truss(paper_craft):
    f = paper_craft.frequencies()[6:]
    np.testing.assert_allclose(f[[0, 1, 3, 4, 5, 6]], [0.1022, 0.1022, 0.3414, 0.3417, 0.8656, 0.8667], rtol=6e-4)
    assert f[2] == pytest.approx(0.1699, rel=0.0035)
    f = point_reactor(paper_craft).frequencies()[6:]
    np.testing.assert_allclose(f[:6], [0.1041, 0.1041, 0.3637, 0.3640, 0.9428, 0.9438], rtol=6e-4)


def test_table_5_by_the_beam(paper_craft):
    f, _, _, body = stations()
    np.testing.assert_allclose(f, TABLE_3, rtol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(body.ports["root"].phi, axis=0)[[0, 2, 4]], [0.050281, 0.049012, 0.047571], rtol=1e-4)
    for tree, wanted in ((paper_craft, [0.1022, 0.1022, 0.3414, 0.3417, 0.8656, 0.8667]),
                         (point_reactor(paper_craft), [0.1041, 0.1041, 0.3637, 0.3640, 0.9428, 0.9438])):
        beam = FlexibleTree([replace(link, body=body) if link.name == "truss" else link for link in tree.links])
        f = beam.frequencies()[6:]
        bending = f if tree is not paper_craft else np.delete(f, 2)
        np.testing.assert_allclose(bending[:6], wanted, rtol=3e-3)
        if tree is paper_craft:
            assert f[2] == pytest.approx(0.1699, rel=0.015)     # stations carry no torsion of their own: `test_torsion_of_the_dumbbell`


def shaft_with_discs(length, inertia, first_hz, J_1, J_2):
    """Lowest torsion frequency (Hz) of a uniform shaft with a disc on either end: G J_p theta' = -J_1 w^2 theta and J_2 w^2 theta there.

    inertia: of the shaft about its axis; first_hz: its own first free-free torsion frequency, c / (2 L)."""
    c = 2.0 * length * first_hz
    stiffness = inertia / length * c * c

    def closing(w):
        b = w / c
        s = -J_1 * w * w / (stiffness * b)
        slope = b * (s * np.cos(b * length) - np.sin(b * length))
        return stiffness * slope - J_2 * w * w * (np.cos(b * length) + s * np.sin(b * length))

    return brentq(closing, 0.2, 2.0 * np.pi * 0.9 * first_hz) / (2.0 * np.pi)


def test_torsion_of_the_dumbbell(craft, paper_craft):
    """Torsion is the shaft's between two discs (the truss's own from table 3); every moment of inertia about the axis is where it belongs:
    the rigid-body modes hold the sum, the torsion mode stands still where the momenta of the two halves cancel."""
    wanted = shaft_with_discs(30.0, 331.5, 1.814, 42000.0, 5250.0)
    assert craft.frequencies()[8] == pytest.approx(wanted, rel=0.005)
    for tree in (craft, paper_craft):
        hz, shapes = tree.modes_at("reactor")
        rolling = shapes[:6, 3] @ shapes[:6, 3]
        assert 1.0 / rolling == pytest.approx(42000.0 + 331.5 + 5250.0, rel=2e-5)
        _, at_main = tree.modes_at("main_body")
        momentum = 42000.0 * at_main[8, 3] + 5250.0 * shapes[8, 3]
        assert hz[8] == pytest.approx(tree.frequencies()[8]) and abs(momentum) < 331.5 * abs(shapes[8, 3])


def test_dense_equations_of_the_paper(paper_craft):
    """Equations (36)-(43) as corrected, assembled over the 164 points of the 41 stations, against the tree with first-order rates."""
    _, frame, X, body = stations()
    masses, rho0, B = frame.point_operator()
    phi0 = np.asarray(B @ X).reshape(-1, 3, 11)
    links = [replace(link, body=body) if link.name == "truss" else link for link in paper_craft.links]
    tree = FlexibleTree(links, rates="first_order")
    rng = np.random.default_rng(8)
    a, a_dot, omega_1 = rng.normal(size=11), 0.5 * rng.normal(size=11), 0.3 * rng.normal(size=3)
    M1, M3 = rng.normal(size=3) * 100.0, rng.normal(size=3) * 100.0
    m1, m3, J1, J3 = 7000.0, 3500.0, 42000.0 * np.eye(3), 5250.0 * np.eye(3)
    R2 = exp3(rng.normal(size=3))
    P2, P3 = body.ports["root"], body.ports["tip"]
    R1, R3 = R2 @ exp3(P2.psi @ a), R2 @ exp3(P3.psi @ a)
    S = skew
    # on inertial axes: arms of the nodes and interfaces in frame 2, mode matrices
    node = (rho0 + phi0 @ a) @ R2.T
    phi, psi_2, psi_3 = np.einsum("ij,njk->nik", R2, phi0), R2 @ P2.psi, R2 @ P3.psi
    phi_2, phi_3, p2, p3 = R2 @ P2.phi, R2 @ P3.phi, R2 @ (P2.position + P2.phi @ a), R2 @ (P3.position + P3.phi @ a)
    to_p2, to_c, own = R1 @ [3.0, 0.0, 0.0], R1 @ [9.2, 0.0, 0.0], R3 @ [-1.5, 0.0, 0.0]
    omega_2 = omega_1 - psi_2 @ a_dot
    omega_3 = omega_2 + psi_3 @ a_dot
    W1, W2, W3 = S(omega_1), S(omega_2), S(omega_3)
    b2, b3, d_psi = W2 @ psi_2 @ a_dot, W2 @ psi_3 @ a_dot, psi_3 - psi_2
    bodies = [(m1, to_c, np.zeros((3, 11)), -W1 @ W1 @ to_c)]
    for m, x, f in zip(masses, node, phi, strict=True):
        eta = (S(x) - S(p2)) @ psi_2 + f - phi_2
        xi = W1 @ W1 @ (to_p2 - to_c) + W2 @ W2 @ (x - p2) + 2 * W2 @ (f - phi_2) @ a_dot + (S(x) - S(p2)) @ b2
        bodies.append((m, to_c - to_p2 + p2 - x, eta, xi))
    eta = (-S(p2) + S(p3) - S(own)) @ psi_2 + S(own) @ psi_3 + phi_3 - phi_2
    xi = (W1 @ W1 @ (to_p2 - to_c) + W2 @ W2 @ (p3 - p2) - W3 @ W3 @ own + 2 * W2 @ (phi_3 - phi_2) @ a_dot
          + (-S(p2) + S(p3) - S(own)) @ b2 + S(own) @ b3)
    bodies.append((m3, to_c - to_p2 + p2 - p3 + own, eta, xi))
    M, w = np.zeros((17, 17)), np.zeros(17)
    for m, arm, eta, xi in bodies:
        J = np.hstack([np.eye(3), S(arm), eta])
        M += m * J.T @ J
        w += m * J.T @ xi
    turn = np.hstack([np.zeros((3, 3)), np.eye(3), d_psi])
    M += turn.T @ J3 @ turn
    M[3:6, 3:6] += J1
    w[3:6] += W1 @ J1 @ omega_1
    w += turn.T @ (W3 @ J3 @ omega_3 + J3 @ W2 @ d_psi @ a_dot)
    force = np.concatenate([np.zeros(3), M1 + M3, d_psi.T @ M3 - body.stiffness @ a])
    expected = np.linalg.solve(M, force - w)
    # the tree: same state, torques on the two bodies
    q, v = tree.neutral(), np.zeros(17)
    x = Rotation.from_matrix(R2).as_quat()
    q[3:7], q[7:], v[3:6], v[6:] = x, a, R2.T @ omega_2, a_dot
    loads = np.zeros((3, 6))
    loads[tree.index("main_body"), 3:], loads[tree.index("reactor"), 3:] = R1.T @ M1, R3.T @ M3
    found = tree.forward_dynamics(q, v, np.zeros(17), loads)
    np.testing.assert_allclose(found[6:], expected[6:], rtol=0, atol=1e-10 * np.abs(expected[6:]).max())
    alpha_1 = R2 @ found[3:6] + psi_2 @ found[6:] + np.cross(omega_2, psi_2 @ a_dot)
    np.testing.assert_allclose(alpha_1, expected[3:6], rtol=0, atol=1e-9 * np.abs(expected[3:6]).max())


def full_finite_elements():
    """Frequencies of the whole craft: truss with rigid end frames, end bodies as mass of the interfaces."""
    section = Section(1.0079e9, 1.0079e9, 6.24e-4, 4.685e-7, 4.685e-7, 2.37e-7, 1505.0 / (412.70562748 * 6.24e-4))
    frame, first, last = square_truss(40, 0.75, section)
    keys = frame.tie(first, (-15, 0, 0)), frame.tie(last, (15, 0, 0))
    M = lil_matrix(frame.mass())
    ends = ModalBody.rigid(7000, (-3, 0, 0), (42000,) * 3), ModalBody.rigid(3500, (1.5, 0, 0), (5250,) * 3)
    for key, body in zip(keys, ends, strict=True):
        dofs = frame.interface(key)
        M[np.ix_(dofs, dofs)] = M[np.ix_(dofs, dofs)].toarray() + body.mass_matrix()
    values, _ = lowest_modes(frame.stiffness(), M.tocsr(), 13, -0.1)
    return np.sqrt(values[6:]) / 2.0 / np.pi


def test_mass_loaded_modes_give_the_finite_elements(craft, paper_craft):
    """Twelve modes within 0.5 % of the whole model; eleven free-free modes are 4 to 38 % off (so the published list is not converged)."""
    full = full_finite_elements()
    np.testing.assert_allclose(full[[0, 2, 3]], [0.098, 0.153, 0.291], rtol=3e-3)
    f = craft.frequencies()[6:13]
    np.testing.assert_allclose(f, full, rtol=5e-3)
    free = paper_craft.frequencies()[6:13] / full - 1.0
    assert 0.03 < free[0] < 0.05 and 0.36 < free[5] < 0.39
    # static deflection under an end load: 24 % short with free-free modes
    flexibility = [_tip_flexibility(tree) for tree in (craft, paper_craft)]
    assert flexibility[1] / flexibility[0] == pytest.approx(0.76, abs=0.02)


def _tip_flexibility(tree):
    """Deflection y of the tip seen from the root frame under the inertial load of a unit angular acceleration about z."""
    body = tree.links[0].body
    held = body.clamped_at("root")
    # uniform angular acceleration about z loads the truss and the reactor with -m x
    reactor = ModalBody.rigid(3500.0, (1.5, 0.0, 0.0), (5250.0,) * 3)
    port = held.ports["tip"]
    load = held.mass_matrix()[6:, 5] + port.phi.T @ (reactor.mass_matrix()[:3] @ [0, 30.0, 0, 0, 0, 1.0]) + port.psi.T @ (
        reactor.mass_matrix()[3:] @ [0, 30.0, 0, 0, 0, 1.0])
    return port.phi[1] @ np.linalg.solve(held.stiffness, load)


def respond(tree, reverse, step=0.05):
    """100 s from rest under 50, 600, 600 N.m on the main body (its axes), `reverse` at 50 s; deflections, attitude, energy, work."""
    main, reactor = tree.index("main_body"), tree.index("reactor")
    f = np.zeros((tree.n_bodies, 6))
    f[main, 3:] = 50.0, 600.0, 600.0
    motion = Motion(tree, "rk4", step)
    q, v = tree.neutral(), np.zeros(tree.nv)
    deflection, power = [], []
    half = round(50.0 / step)
    for k in range(2 * half + 1):
        R, p = tree.poses(q)
        deflection.append(R[main].T @ (p[reactor] - p[main]) - [30.0, 0.0, 0.0])
        power.append(R[main] @ f[main, 3:] @ tree.velocities(q, v)[main, 3:])
        motion.apply(f_ext=-f if reverse and k >= half else f)
        if k < 2 * half:
            _, q, v = motion.run(q, v, 1)
    # Simpson on each half: the power jumps at 50 s
    weights = np.ones(half + 1)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    work = step / 3.0 * (weights @ power[: half + 1] + (-1 if reverse else 1) * weights @ power[half:])
    A = R[main].T
    angles = np.degrees([np.arctan2(-A[2, 1], A[1, 1]), np.arctan2(-A[0, 2], A[0, 0]), np.arcsin(A[0, 1])])
    return np.array(deflection), angles, tree.kinetic_energy(q, v) + tree.potential_energy(q), work, tree.momentum(q, v)


def test_response_to_a_constant_torque(paper_craft):
    d, angles, energy, work, b = respond(paper_craft, False)
    assert d[:, 1].min() == pytest.approx(-0.769, rel=0.01) and d[:, 2].max() == pytest.approx(0.791, rel=0.01)
    assert np.linalg.norm(d, axis=1).max() == pytest.approx(0.971, rel=0.01)
    np.testing.assert_allclose(angles, [-58.37, 8.98, 52.38], rtol=0.01)
    assert energy == pytest.approx(work, rel=1e-3)
    assert np.abs(b[:3]).max() < 1e-4


def test_response_with_reversal_and_with_a_point_reactor(paper_craft):
    d, angles, energy, work, _ = respond(paper_craft, True)
    assert d[:, 1].max() == pytest.approx(1.054, rel=0.01) and d[:, 2].min() == pytest.approx(-1.158, rel=0.01)
    assert np.linalg.norm(d, axis=1).max() == pytest.approx(1.305, rel=0.01)
    np.testing.assert_allclose(angles, [127.78, 50.53, 40.33], rtol=0.01)
    assert energy == pytest.approx(work, rel=1e-3)
    d, angles, energy, work, _ = respond(point_reactor(paper_craft), False)
    assert d[:, 1].min() == pytest.approx(-0.765, rel=0.01) and d[:, 2].max() == pytest.approx(0.801, rel=0.01)
    np.testing.assert_allclose(angles, [-21.02, 7.71, 50.63], rtol=0.01)
    assert energy == pytest.approx(work, rel=1e-3)


def test_response_with_mass_loaded_modes(craft):
    d, angles, energy, work, _ = respond(craft, False)
    assert d[:, 1].min() == pytest.approx(-1.041, rel=0.01) and d[:, 2].max() == pytest.approx(1.050, rel=0.01)
    assert np.linalg.norm(d, axis=1).max() == pytest.approx(1.265, rel=0.01)
    np.testing.assert_allclose(angles, [-58.84, 9.48, 52.16], rtol=0.01)
    assert energy == pytest.approx(work, rel=1e-3)


# --- invariants ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["dumbbell", "wings", "chain"])
def test_energy_and_momentum_for_100_seconds(name, craft):
    """Free motion without damping, RK4 at 1 ms, 100 s: energy to 1e-6; momenta of the free craft."""
    rng = np.random.default_rng(5)
    if name == "dumbbell":
        tree, q = craft, craft.neutral()
        v = np.concatenate([0.01 * rng.normal(size=6), 2.0 * rng.normal(size=12)])
    elif name == "wings":
        links = FlexibleTree.from_toml(CONFIGS / "vehicles" / "craft_two_wings.toml").links
        tree = FlexibleTree([replace(link, damping=0.0) for link in links])
        q, v = tree.neutral(), np.concatenate([0.01 * rng.normal(size=8), 0.4 * rng.normal(size=8)])
    else:
        tree, q, v = chain(1136.0), Q0, np.zeros(24)
        v[:6] = 0.03, -0.02, 0.04, 0.01, -0.03, 0.02
    before, start = tree.momentum(q, v, (0, 0, 0)), tree.kinetic_energy(q, v) + tree.potential_energy(q)
    _, q, v = Motion(tree, "rk4", 1e-3).run(q, v, 100_000)
    assert tree.kinetic_energy(q, v) + tree.potential_energy(q) == pytest.approx(start, rel=1e-6)
    if name != "chain":
        assert tree.potential_energy(q) > 0.05 * start
        change, scale = np.abs(tree.momentum(q, v, (0, 0, 0)) - before), tree.mass * 0.03
        assert change[:3].max() < 1e-8 * scale and change[3:].max() < 1e-8 * scale * 30.0


def test_first_order_port_rates_lose_energy_that_exact_ones_keep():
    """Soft chain with large bending: the sources' first-order rates are not the derivative of the positions."""
    drift = {}
    for rates in ("exact", "first_order"):
        tree = chain(20.0, rates)
        v = np.zeros(24)
        v[:6] = 0.3, -0.2, 0.4, 0.1, -0.3, 0.2
        start = tree.kinetic_energy(Q0, v) + tree.potential_energy(Q0)
        _, q, v = Motion(tree, "rk4", 5e-4).run(Q0, v, 4000)
        drift[rates] = abs((tree.kinetic_energy(q, v) + tree.potential_energy(q)) / start - 1.0)
    assert drift["exact"] < 1e-7
    assert drift["first_order"] > 1e-4


# --- spinning beam ---------------------------------------------------------------


def spinning_frequencies(stiffening, spin, modes=8):
    """(flap, lag) lowest frequencies over sqrt(EI / (mu L^4)) of a thin beam clamped to a shaft that turns at `spin` (same unit)."""
    EI, mu, L = 50.0, 0.5, 1.5
    unit = np.sqrt(EI / (mu * L**4))
    frame = straight_beam(L, Section(1.0, 1.0, 1e6, EI, EI * (1.0 + 1e-6), 1e4, mu / 1e6, gyration_y=1e-4, gyration_z=1e-4), 16)
    _, X = clamped_modes(frame, modes, frame.node_dofs(0))
    tree = FlexibleTree([Link("beam", frame.modal_body(X, stiffening=stiffening), joint="revolute", axis=(0, 0, 1))])
    n = tree.nv
    v = np.zeros(n)
    v[0] = spin * unit
    zero = np.zeros(n)

    def force(eta, rate):
        q = np.append(0.0, eta)
        return tree.inverse_dynamics(q, v + np.append(0.0, rate), zero)[1:]

    step, s = 1e-4, n - 1
    K = np.stack([(force(step * e, zero[1:]) - force(-step * e, zero[1:])) / (2 * step) for e in np.eye(s)], axis=1)
    G = np.stack([(force(zero[1:], step * e) - force(zero[1:], -step * e)) / (2 * step) for e in np.eye(s)], axis=1)
    M = tree.mass_matrix(np.zeros(n))[1:, 1:]
    assert np.abs(G).max() < 1e-6 * np.abs(K).max()          # transverse modes of a thin beam do not couple at first order
    values, shapes = eigh(0.5 * (K + K.T), M)
    tip = X[frame.node_dofs(16)] @ shapes
    flap = np.abs(tip[2]) > np.abs(tip[1])
    return np.sqrt(values[flap][0]) / unit, np.sqrt(values[~flap][0]) / unit


def spinning_ritz(spin, terms=10):
    """Flap frequency of the same beam by Rayleigh-Ritz on powers xi^2 ... with its own centrifugal tension (1 - xi^2) / 2 spin^2."""
    x, w = np.polynomial.legendre.leggauss(40)
    x, w = 0.5 * (1.0 + x), 0.5 * w
    p = np.arange(terms) + 2
    f, d, dd = x[:, None] ** p, p * x[:, None] ** (p - 1), p * (p - 1) * x[:, None] ** (p - 2)
    K = (dd * w[:, None]).T @ dd + spin**2 * ((d * (w * 0.5 * (1 - x * x))[:, None]).T @ d)
    return np.sqrt(eigh(K, (f * w[:, None]).T @ f, eigvals_only=True)[0])


@pytest.mark.parametrize("spin, published", [(0.0, 3.5160), (1.0, 3.6816), (2.0, 4.1373), (3.0, 4.7973), (6.0, 7.3604)])
def test_spinning_beam(spin, published):
    """With stiffening: flap as published (Wright et al., J. Applied Mechanics 49, 1982) and as Ritz; lag^2 = flap^2 - spin^2.

    Without stiffening (the default): flap does not know of the spin and lag only softens, omega^2 = omega_0^2 - spin^2.
    """
    assert spinning_ritz(spin) == pytest.approx(published, abs=1e-4)
    flap, lag = spinning_frequencies(True, spin)
    assert flap == pytest.approx(published, rel=3e-4)
    assert lag == pytest.approx(np.sqrt(published**2 - spin**2), rel=1e-3)
    if spin < 3.5:
        flap, lag = spinning_frequencies(False, spin)
        assert flap == pytest.approx(3.5160, rel=1e-4)
        assert lag == pytest.approx(np.sqrt(3.5160**2 - spin**2), rel=2e-4)


def test_stiffening_keeps_energy():
    """The stiffening terms come from one kinetic energy: a fast spinning, bending beam on a free hub keeps energy and momentum."""
    frame = straight_beam(4.0, Section(1.0, 1.0, 1e6, 40.0, 60.0, 30.0, 2e-6, gyration_y=0.05, gyration_z=0.02), 10)
    _, X = clamped_modes(frame, 4, frame.node_dofs(0))
    tree = FlexibleTree([Link("hub", ModalBody.rigid(50.0, inertia=(20.0, 20.0, 30.0)), joint="free"),
                         Link("beam", frame.modal_body(X, stiffening=True), "hub", position=(0.5, 0.0, 0.0))])
    q, v = tree.neutral(), np.zeros(tree.nv)
    v[3:6] = 0.2, 0.1, 2.0
    v[6:] = 0.3, -0.4, 0.1, 0.1
    angular, energy = tree.momentum(q, v, (0, 0, 0))[3:], tree.kinetic_energy(q, v) + tree.potential_energy(q)
    _, q, v = Motion(tree, "rk4", 1e-3).run(q, v, 20_000)
    assert tree.kinetic_energy(q, v) + tree.potential_energy(q) == pytest.approx(energy, rel=1e-8)
    np.testing.assert_allclose(tree.momentum(q, v, (0, 0, 0))[3:], angular, rtol=0, atol=1e-8 * np.abs(angular).max())


# --- errata: hybrid recursion of flexible chains ---------------------------------------------------------------


def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def exp3(t):
    angle = np.linalg.norm(t)
    S = skew(t)
    return np.eye(3) + np.sinc(angle / np.pi) * S + 0.5 * np.sinc(angle / 2 / np.pi) ** 2 * S @ S


def recursion(EI, q, v, T, a, given, printed=None):
    """The corrected recursion of the paper, node by node on base axes, X = [eta_dot, omega, v]; `printed` puts one erratum back."""
    L, m = 1.0, 2.0
    xi = np.linspace(0.0, 1.0, 5)
    masses = m * np.array([1, 2, 2, 2, 1]) / 8.0
    K = EI / L**3 * np.array([[4.0, 6, 0], [6, 12, 0], [0, 0, 4]])
    phi0 = np.zeros((5, 3, 3))
    phi0[:, 1, 0], phi0[:, 1, 1], phi0[:, 2, 2] = xi**2, xi**3, xi**2
    psi0 = np.zeros((3, 3))
    psi0[2, 0], psi0[2, 1], psi0[1, 2] = 2.0 / L, 3.0 / L, -2.0 / L
    R, omega = np.eye(3), np.zeros(3)
    links = []
    for k in range(6):
        axis = np.eye(3)[AXES[k]]
        outer = omega
        R = R @ exp3(axis * q[k])
        h = R @ axis
        omega = outer + h * v[k]
        eta, rate = q[6 + 3 * k: 9 + 3 * k], v[6 + 3 * k: 9 + 3 * k]
        rho0 = np.column_stack([L * xi, 0 * xi, 0 * xi])
        phi = np.einsum("ij,njk->nik", R, phi0)
        rho = rho0 @ R.T + phi @ eta
        psi = R @ psi0
        M, b = np.zeros((9, 9)), np.zeros(9)
        for i in range(5):
            J = np.hstack([phi[i], -skew(rho[i]), np.eye(3)])
            M += masses[i] * J.T @ J
            b += masses[i] * J.T @ (np.cross(omega, np.cross(omega, rho[i])) + 2.0 * np.cross(omega, phi[i] @ rate))
        C = np.vstack([np.hstack([psi, np.eye(3), np.zeros((3, 3))]), np.hstack([phi[4], -skew(rho[4]), np.eye(3)])])
        turning = np.cross(omega, np.cross(omega, rho[4])) + 2.0 * np.cross(omega, phi[4] @ rate)
        cb = np.concatenate([np.cross(omega, psi @ rate), turning])
        H = np.append(h, np.zeros(3))
        links.append((M, b, C, cb, H, np.append(np.cross(outer, h) * v[k], np.zeros(3)), -K @ eta))
        R = R @ exp3(psi0 @ eta)
        omega = omega + psi @ rate
    P_out, z_out, kept = np.zeros((6, 6)), np.zeros(6), [None] * 6
    for k in reversed(range(6)):
        M, b, C, cb, H, c, t = links[k]
        P, z = M + C.T @ P_out @ C, b + C.T @ (z_out + P_out @ cb)
        X = np.linalg.solve(P[:3, :3], P[:3, 3:])
        locked = printed == "E4.2" and given[k]
        P_a = P[3:, 3:] if locked else P[3:, 3:] - P[3:, :3] @ X
        z_a = z[3:] if locked else z[3:] + X.T @ (t - z[:3])
        D = H @ P_a @ H
        G = P_a @ H / D
        e = T[k] - H @ (z_a + P_a @ c)
        if given[k]:
            P_out, z_out = P_a, z_a + P_a @ (c if printed == "E4.3" else H * a[k] + c)
        else:
            P_out, z_out = P_a - np.outer(G, H @ P_a), z_a + P_a @ c + G * (e / D if printed == "E4.4" else e)
        kept[k] = (P, z, P_a, z_a, G, e / D, X, locked)
    V = np.zeros(6)
    acceleration, torque = np.zeros(24), np.array(T[:24])
    for k in range(6):
        _, _, C, cb, H, c, t = links[k]
        P, z, P_a, z_a, G, nu, X, locked = kept[k]
        qdd = a[k] if given[k] else nu - G @ V
        inner = V + H * qdd + c
        if given[k]:
            torque[k] = H @ (P_a @ (V + c) + z_a) if printed == "E4.5" else H @ (P_a @ inner + z_a)
        eta = np.zeros(3) if locked else np.linalg.solve(P[:3, :3], t - z[:3]) - X @ inner
        acceleration[k], acceleration[6 + 3 * k: 9 + 3 * k] = qdd, eta
        V = C @ np.concatenate([eta, inner]) + cb
    return torque, acceleration


@pytest.fixture(scope="module")
def chain_state():
    rng = np.random.default_rng(11)
    q, v = np.concatenate([Q0[:6], 0.02 * rng.normal(size=18)]), 0.4 * rng.normal(size=24)
    T, a = np.zeros(24), np.zeros(24)
    T[:6], a[:6] = rng.normal(size=6), rng.normal(size=6)
    return q, v, T, a


def test_corrected_recursion_of_the_paper(chain_state):
    q, v, T, a = chain_state
    tau, acceleration = chain(20.0, "first_order").hybrid_dynamics(q, v, T, a, GIVEN)
    torque, motion = recursion(20.0, q, v, T, a, GIVEN)
    np.testing.assert_allclose(acceleration, motion, rtol=0, atol=1e-10 * np.abs(motion).max())
    np.testing.assert_allclose(tau, torque, rtol=0, atol=1e-10 * np.abs(torque).max())


@pytest.mark.parametrize("erratum", ["E4.2", "E4.3", "E4.4", "E4.5"])
def test_errata_of_the_recursion(erratum, chain_state):
    """(5)-(7): modes locked with an active joint; z+ without P H q_ddot; G nu for G l; active force without q_ddot."""
    q, v, T, a = chain_state
    tree = chain(20.0, "first_order")
    for printed in (None, erratum):
        torque, motion = recursion(20.0, q, v, T, a, GIVEN, printed)
        # judged by the full equations of the tree, which know of no recursion
        residual = np.abs(tree.inverse_dynamics(q, v, motion) - torque).max()
        assert (residual < 1e-9) == (printed is None), (printed, residual)


def test_erratum_active_and_passive_interchanged(chain_state):
    """(8), (10): for k in I_a the acceleration is given and the torque wanted, not the other way round."""
    q, v, T, a = chain_state
    tree = chain(20.0, "first_order")
    tau, motion = tree.hybrid_dynamics(q, v, T, a, GIVEN)
    np.testing.assert_array_equal(motion[GIVEN], a[GIVEN])
    wrong = GIVEN.copy()
    wrong[:6] = ~GIVEN[:6]
    _, printed = tree.hybrid_dynamics(q, v, T, a, wrong)
    assert np.abs(printed[GIVEN] - a[GIVEN]).max() > 0.1


def test_erratum_step_of_5_ms_with_a_steel_bar():
    """4.2 of the paper: dt = 5 ms with E = 210 GPa lies above the limit; the run leaves every bound, at 1.3 ms it does not."""
    tree = chain(1136.0, "first_order")
    slow, fast = Motion(tree, "two_step", 5e-3), Motion(tree, "two_step", 1.3e-3)
    for motion in (slow, fast):
        motion.apply(tau=torques, known=GIVEN)
    with pytest.raises(ValueError, match=r"step 8 \(from t = 0.035 s\).* length is 0.005 s, the limit of two_step is 0.001368"):
        slow.run(Q0, np.zeros(24), 8)
    assert np.abs(fast.run(Q0, np.zeros(24), 400)[1][6:]).max() < 0.01


# --- errata: dumbbell spacecraft ---------------------------------------------------------------


def test_erratum_sign_of_the_rotation_in_the_velocity(craft):
    """(5): a node moves at r_dot - S(rho) omega + Phi a_dot; with +S(rho) it does not."""
    rng = np.random.default_rng(2)
    q, v = craft.neutral(), 0.1 * rng.normal(size=craft.nv)
    q[7:] = rng.normal(size=12)
    port = craft.links[0].body.ports["tip"]
    rho = port.position + port.phi @ q[7:]
    # the velocity of the tip by a difference of positions (no velocity formula in it)
    h = 1e-5
    ends = [Motion(craft, "rk4", abs(s)).run(q, v * np.sign(s), 1)[1] for s in (h, -h)]
    p = [craft.pose(x, "reactor")[1] for x in ends]
    measured = (p[0] - p[1]) / (2 * h)
    for sign in (-1.0, 1.0):
        velocity = v[:3] + sign * skew(rho) @ v[3:6] + port.phi @ v[6:]
        assert (np.abs(velocity - measured).max() < 1e-6) == (sign < 0)


def test_erratum_arm_of_the_reactor(craft):
    """(16): the centripetal term of body 3 has rho_30 (its own centre to P3), not rho_2^P3; judged by the reaction force m a."""
    rng = np.random.default_rng(4)
    q, v = craft.neutral(), 0.2 * rng.normal(size=craft.nv)
    zero = np.zeros(craft.nv)
    force = craft.joint_reactions(q, v, craft.forward_dynamics(q, v, zero))[craft.index("reactor"), :3]
    h = 1e-4
    twists = []
    for s in (h, -h):
        # backward in time: run the reversed motion
        _, x, u = Motion(craft, "rk4", h).run(q, v * np.sign(s), 1)
        twists.append(craft.velocity(x, u * np.sign(s), "reactor"))
    R = craft.pose(q, "reactor")[0]
    linear, angular = ((twists[0] - twists[1]) / (2 * h)).reshape(2, 3) @ R
    w = R.T @ craft.velocity(q, v, "reactor")[3:]
    own, other = np.array([1.5, 0.0, 0.0]), np.array([15.0, 0.0, 0.0])
    for arm, right in ((own, True), (other, False)):
        acceleration = linear + np.cross(angular, own) + np.cross(w, np.cross(w, arm))
        assert (np.abs(3500.0 * acceleration - force).max() < 1e-4 * np.abs(force).max()) == right


def test_erratum_third_unknown_is_modal(craft):
    """(18): the unknowns are [r_ddot, omega_1_dot, a_ddot]: the mass matrix times [.., omega_2_dot] cannot balance the forces."""
    rng = np.random.default_rng(6)
    q, v, tau = craft.neutral(), 0.1 * rng.normal(size=craft.nv), rng.normal(size=craft.nv)
    a = craft.forward_dynamics(q, v, tau)
    right = tau - craft.inverse_dynamics(q, v, np.zeros(craft.nv))
    M = craft.mass_matrix(q)
    assert np.abs(M @ a - right).max() < 1e-9 * np.abs(right).max()
    psi = craft.links[0].body.ports["root"].psi
    printed = np.concatenate([a[:6], np.resize(a[3:6] - psi @ a[6:], 12)])
    assert np.abs(M @ printed - right)[6:].max() > 0.1 * np.abs(right[6:]).max()


def test_erratum_youngs_modulus(paper_craft):
    """Table 2: E = 5.0e-8 Pa (nor 5e8) does not give the frequencies of table 3 with the printed area and mass; stiffness goes with E."""
    fitted = paper_craft.links[0].body.stiffness[0, 0]
    for E, right in ((1.0079e9, True), (5.0e8, False), (5.0e-8, False)):
        first = np.sqrt(fitted * E / 1.0079e9) / 2.0 / np.pi
        assert (abs(first / 0.3304 - 1.0) < 1e-3) == right


def test_erratum_torsion_of_the_point_model(paper_craft):
    """Table 5: 1.053 is not the torsion of the point model (0.989), the axial mode near 1.035 is missing from the list; 1.050 appears
    only without the second torsion mode."""
    f = point_reactor(paper_craft).frequencies()[6:]
    assert np.abs(f - 0.98976).min() < 1e-4 and np.abs(f - 1.0354).min() < 1e-3
    assert np.abs(f / 1.053 - 1.0).min() > 0.015
    body = paper_craft.links[0].body
    keep = np.delete(np.arange(11), 9)
    ports = {k: replace(p, phi=p.phi[:, keep], psi=p.psi[:, keep]) for k, p in body.ports.items()}
    less = replace(body, P=body.P[keep], N=body.N[keep], Q=body.Q[np.ix_(keep, keep)], stiffening=None,
                   stiffness=body.stiffness[np.ix_(keep, keep)], damping=None, ports=ports)
    links = [replace(link, body=less) if link.name == "truss" else link for link in point_reactor(paper_craft).links]
    assert np.abs(FlexibleTree(links).frequencies() - 1.05032).min() < 1e-4


def test_erratum_error_of_the_point_model(paper_craft):
    """2.2: the error of a point reactor is 1.9, 6.5 and 8.9 %, not about 2 %."""
    rigid, point = paper_craft.frequencies()[6:], point_reactor(paper_craft).frequencies()[6:]
    error = 100.0 * (point[[0, 2, 4]] / rigid[[0, 3, 5]] - 1.0)
    np.testing.assert_allclose(error, [1.9, 6.5, 8.9], atol=0.1)
    assert np.any(np.abs(error - 2.0) > 1.0)


def test_erratum_torque_profile_decides_the_peak(paper_craft):
    """2.1: without profile, damping and start state '1.2 m' cannot be tested: constant torque 0.79 m, reversal 1.16 m on the same axis."""
    peaks = [np.abs(respond(paper_craft, reverse, 0.1)[0][:, 2]).max() for reverse in (False, True)]
    np.testing.assert_allclose(peaks, [0.791, 1.160], rtol=0.01)
    assert not abs(peaks[0] - 1.2) < 0.1


# --- shipped craft and their files ---------------------------------------------------------------


def test_shipped_wings():
    tree = FlexibleTree.from_toml(CONFIGS / "vehicles" / "craft_two_wings.toml")
    f = tree.frequencies()
    assert np.abs(f[:6]).max() < 1e-4 and 0.15 < f[6] < 0.3
    R, p = tree.poses(tree.neutral())
    np.testing.assert_allclose(p[tree.index("left_wing")], [0.0, 0.9, 0.0])
    np.testing.assert_allclose(R[tree.index("right_wing")][:, 0], [0.0, -1.0, 0.0], atol=1e-15)
    assert tree.mass == pytest.approx(1200.0 + 2 * 54.0)


def test_a_straight_chain_of_thin_bars_is_named_as_singular():
    """Joint 4 of the straight six-link chain turns massless lines about themselves."""
    tree = chain(1136.0)
    with pytest.raises(ValueError, match="moves no mass in this configuration"):
        tree.forward_dynamics(np.zeros(24), np.zeros(24), np.ones(24))


def test_errors_that_no_key_shows_by_itself_are_named(tmp_path):
    good = (CONFIGS / "vehicles" / "craft_two_wings.toml").read_text()
    for old, new, message in (
        ("elements = 20\n", "", None),
        ("angles_deg = [0.0, 90.0, 0.0]", "rotation_xyzw = [0.0, 0.0, 0.7, 0.7]", "left_wing.rotation_xyzw: .* norm 0.98.*limit 1"),
        ("angles_deg = [0.0, 90.0, 0.0]", "angles_deg = [0.0, 90.0, 0.0]\nrotation_xyzw = [0.0, 0.0, 0.0, 1.0]", "limit one of the two"),
        ('parent = "hub"', 'parent = "hub"\nnode = "top"', "body.left_wing.node: no node of body 'hub' 'top'; there are none"),
        ('parent = "hub"', 'parent = "hup"', "body.left_wing.parent: no body 'hup', did you mean 'hub'"),
        ('[[joint]]\nname = "left_drive"', '[[joint]]\nname = "left_drivee"', "left_drivee.name: no joint .* mean 'left_drive'"),
        ("axis = [1.0, 0.0, 0.0]", "axis = [1.0, 0.0]", r"axis: must be 3 numbers"),
        ("[body.rigid]", "[body.rigid", "craft.toml: "),
        ("length_m = 7.5", "length_m = 99999999999999999999", "length_m: must be a number within .*, got 99999999999999999999"),
        ("inertia_kg_m2 = [900.0,", "inertia_kg_m2 = [1.0,", "body.hub.rigid: inertia: .* triangle"),
    ):
        path = tmp_path / "craft.toml"
        path.write_text(good.replace(old, new, 1))
        if message is None:
            assert FlexibleTree.from_toml(path).nv == 16
            continue
        with pytest.raises(ValueError, match=message):
            FlexibleTree.from_toml(path)


WING = """
name = "one wing"

[[body]]
name = "hub"
joint = "free"
rigid = {{ mass_kg = 300.0, inertia_kg_m2 = [200.0, 200.0, 200.0] }}

[[body]]
name = "wing"
parent = "hub"
joint = "fixed"
position_m = [0.5, 0.0, 0.0]
{shape}

[[body]]
name = "tip"
parent = "wing"
joint = "fixed"
node = "tip"
rigid = {{ mass_kg = 4.0, inertia_kg_m2 = [0.5, 0.5, 0.5] }}
"""
BEAM = """length_m = 5.0
elements = 8
mass_per_length_kg_per_m = 3.0
axial_stiffness_n = 1e7
bending_stiffness_y_n_m2 = 2000.0
bending_stiffness_z_n_m2 = 5000.0
torsion_stiffness_n_m2 = 900.0
gyration_y_m = 0.2
gyration_z_m = 0.05
"""


def test_one_wing_by_every_road(tmp_path):
    """All clamped or all free-free modes span the finite elements and agree; twelve mass-loaded ones are as good; a file is the same."""
    path, found = tmp_path / "craft.toml", {}
    for mode_set, modes in (("clamped", 48), ("mass_loaded", 12), ("free_free", 48)):
        path.write_text(WING.format(shape=f'[body.beam]\n{BEAM}mode_set = "{mode_set}"\nmodes = {modes}'))
        tree = FlexibleTree.from_toml(path)
        found[mode_set] = tree.frequencies()[6:10]
        assert tree.centre_of_mass(tree.neutral())[0] == pytest.approx((15.0 * 3.0 + 4.0 * 5.5) / 319.0, rel=1e-9)
        if mode_set == "mass_loaded":
            tree.links[1].body.save(tmp_path / "wing.npz")
    path.write_text(WING.format(shape='[body.modal_file]\nfile = "wing.npz"'))
    found["file"] = FlexibleTree.from_toml(path).frequencies()[6:10]
    np.testing.assert_allclose(found["file"], found["mass_loaded"], rtol=1e-12)
    np.testing.assert_allclose(found["clamped"], found["free_free"], rtol=1e-6)
    np.testing.assert_allclose(found["mass_loaded"], found["free_free"], rtol=1e-3)
    assert np.all(found["mass_loaded"] >= found["free_free"] * (1.0 - 1e-6))
    path.write_text(WING.format(shape='[body.modal_file]\nfile = "none.npz"'))
    with pytest.raises(ValueError, match="body.wing.modal_file: .*none.npz"):
        FlexibleTree.from_toml(path)


def test_truss_held_at_its_root(tmp_path):
    """Clamped truss by its own modes against the mass-loaded set held at the root."""
    truss = ("[body.truss]\nbays = 4\nside_m = 0.75\nmass_kg = 150.0\nyoungs_modulus_pa = 1.0079e9\nshear_modulus_pa = 1.0079e9\n"
             "member_area_m2 = 6.24e-4\nmember_bending_m4 = 4.685e-7\nmember_torsion_m4 = 2.37e-7\n")
    path, found = tmp_path / "craft.toml", []
    for choice in ('mode_set = "clamped"\nmodes = 10', 'mode_set = "mass_loaded"\nmodes = 46'):
        path.write_text('name = "held"\n[[body]]\nname = "hub"\njoint = "fixed"\nrigid = { mass_kg = 1.0 }\n'
                        '[[body]]\nname = "truss"\nparent = "hub"\njoint = "fixed"\n' + truss + choice)
        found.append(FlexibleTree.from_toml(path).frequencies()[:3])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3)
    assert np.all(found[1] >= found[0])
