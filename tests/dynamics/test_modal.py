"""Modal propagator against the matrix exponential, closed forms and the golden values of the docking digest."""

import mpmath
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from rt_kernels.dynamics.modal import ModalCraft, damping, deform_port, step_coefficients

DT = 5e-4


def exact_step(omega, log_decrement, dt):
    """c1 c2 c3 c4 c5 c6 of one mode from the matrix exponential of the augmented system, 40 digits."""
    with mpmath.workdps(40):
        w, d = mpmath.mpf(float(omega)), mpmath.mpf(float(log_decrement))
        c = 2 * w * d / mpmath.sqrt(4 * mpmath.pi**2 + d * d)
        E = mpmath.expm(mpmath.matrix([[0, 1, 0], [-w * w, -c, 1], [0, 0, 0]]) * mpmath.mpf(float(dt)), method="taylor")
        return np.array([float(E[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))])


def relative(got, want):
    return np.max(np.abs(got - want) / np.abs(want))


@pytest.mark.parametrize("dt", [1e-4, 5e-4, 1e-3])
def test_coefficients_equal_matrix_exponential(dt):
    rng = np.random.default_rng(3)
    omega = 2 * np.pi * np.concatenate([[0.05, 300.0], 10 ** rng.uniform(np.log10(0.05), np.log10(300.0), 18)])
    delta = np.concatenate([[0.005, 8.0], rng.uniform(0.005, 8.0, 18)])
    c = step_coefficients(omega, delta, dt)
    for k in range(len(omega)):
        want = exact_step(omega[k], delta[k], dt)
        # c1 and c5 pass through zero for stiff modes: measured against 1, the largest they can be
        assert relative(c[[1, 2, 3], k], want[[1, 2, 3]]) < 1e-11
        assert np.max(np.abs(c[[0, 4], k] - want[[0, 4]])) < 1e-14
        assert want[5] == pytest.approx(c[1, k], rel=1e-11)


def test_golden_values():
    c = step_coefficients([2 * np.pi, 20 * np.pi], [0.05, 0.02], 5e-4)
    golden = np.array([
        [9.999950652841010e-01, 4.999866781580177e-04, 1.249978139523784e-07, -1.973868287693768e-02, 9.999450681993114e-01],
        [9.995065932593546e-01, 4.998677691654377e-04, 1.249813874482243e-07, -1.973398853807169, 9.993066471646247e-01],
    ])
    assert relative(c.T, golden) < 5e-12      # the printed digits of c3 carry the cancellation of double precision
    alpha, beta = damping([2 * np.pi], [0.05])
    assert float(alpha[0]) == pytest.approx(-0.0499984169316919, rel=1e-14)
    assert float(beta[0]) == pytest.approx(6.28298637294891, rel=1e-14)


def test_printed_formulas_are_told_apart():
    """Damping (4.2.7) with 4 pi^2 + 1, c3 and c6 of (4.3.4) as printed: each misses the exponential by far more than the tolerance."""
    w, d, h = 2 * np.pi, 0.05, 5e-4
    want = exact_step(w, d, h)
    c_print = 2 * w * d / np.sqrt(4 * np.pi**2 + 1)
    E = expm(np.array([[0, 1, 0], [-w * w, -c_print, 1], [0, 0, 0]]) * h)
    assert abs(E[1, 1] / want[4] - 1) > 1e-7
    a = -w * d / np.sqrt(4 * np.pi**2 + d * d)
    b = np.sqrt(w * w - a * a)
    c3_print = (np.exp(a * h) * (a / b * np.sin(b * h) - np.cos(b * h) + 1)) / w**2
    assert abs(c3_print / want[2] - 1) > 1.0
    c6_print = np.exp(a * h) * np.sin(b * h) * (a * a + b * b) / (b * a * a)
    assert abs(c6_print / want[5] - 1) > 1.0
    # a decrement of 8 is still an oscillation; with the printed form it would not be
    assert 2 * np.pi * 8 / np.sqrt(4 * np.pi**2 + 1) / (2 * np.pi) > 1.0
    assert np.all(damping([w], [8.0])[1] > 0)


def random_craft(modes=37, loads=6, instructions="auto", seed=5, steps=(DT, 1e-4)):
    rng = np.random.default_rng(seed)
    omega = 2 * np.pi * 10 ** rng.uniform(-1, 2.3, modes)
    delta = rng.uniform(0.01, 0.3, modes)
    shapes = rng.normal(scale=0.02, size=(modes, loads))
    return ModalCraft(omega, delta, shapes, steps, instructions), omega, delta, shapes


def slow_twin(omega, delta, shapes, steps, loads):
    """Mode by mode with scipy's exponential: displacement and rate at the port after every step."""
    q, v = np.zeros(len(omega)), np.zeros(len(omega))
    out = []
    transitions = {}
    for dt in set(steps):
        c = 2 * omega * delta / np.sqrt(4 * np.pi**2 + delta**2)
        transitions[dt] = np.array([expm(np.array([[0, 1, 0], [-w * w, -ck, 1], [0, 0, 0]]) * dt) for w, ck in zip(omega, c, strict=True)])
    for dt, load in zip(steps, loads, strict=True):
        x = np.stack([q, v, shapes @ load], axis=1)
        x = np.einsum("nij,nj->ni", transitions[dt], x)
        q, v = x[:, 0], x[:, 1]
        out.append(np.concatenate([shapes[:, :6].T @ q, shapes[:, :6].T @ v]))
    return np.array(out)


@pytest.mark.parametrize("modes, loads", [(1, 6), (4, 6), (37, 6), (50, 9)])
def test_craft_equals_slow_twin_and_switches_without_a_jump(modes, loads):
    craft, omega, delta, shapes = random_craft(modes, loads)
    rng = np.random.default_rng(7)
    wrench = rng.normal(scale=200.0, size=(60, loads))
    which = [0] * 20 + [1] * 20 + [0] * 20
    want = slow_twin(omega, delta, shapes, [craft.steps[k] for k in which], wrench)
    got = []
    for k, load in zip(which, wrench, strict=True):
        before = craft.snapshot()
        craft.select_step(k)
        assert craft.snapshot() == before      # a change of step size touches no coordinate
        got.append(np.concatenate(craft.propagate(load)))
    scale = np.max(np.abs(want), axis=0)
    assert np.max(np.abs(np.array(got) - want) / scale) < 1e-11


def test_all_instruction_variants_give_the_same_bits():
    results = []
    for name in ("base", "avx2", "avx512"):
        try:
            craft = random_craft(203, 8, name)[0]
        except ValueError as error:
            assert "processor" in str(error)
            continue
        u, v = craft.run(np.random.default_rng(1).normal(scale=50.0, size=(40, 8)))
        results.append(u.tobytes() + v.tobytes() + craft.snapshot())
    assert len(set(results)) == 1


def test_two_half_steps_are_one_step():
    craft = random_craft(steps=(1e-3, 5e-4))[0]
    half = random_craft(steps=(1e-3, 5e-4))[0]
    half.select_step(1)
    load = np.array([100.0, -50.0, 30.0, 5.0, -8.0, 2.0])
    u, v = craft.propagate(load)
    half.propagate(load)
    u2, v2 = half.propagate(load)
    np.testing.assert_allclose(np.concatenate([u2, v2]), np.concatenate([u, v]), rtol=1e-11)


def test_static_gain_and_log_decrement():
    omega, delta = np.array([2 * np.pi * 2.0]), np.array([0.4])
    shape = np.array([[0.01, 0, 0, 0, 0, 0]])
    craft = ModalCraft(omega, delta, shape, (DT, 1e-4))
    load = np.array([1000.0, 0, 0, 0, 0, 0])
    u, _ = craft.run(np.tile(load, (200_000, 1)))
    assert u[-1, 0] * omega[0]**2 / (shape[0, 0]**2 * load[0]) == pytest.approx(1.0, abs=1e-12)
    # free decay: a step of one damped period multiplies q and q' by exp(-delta) exactly
    period = float(2 * np.pi / damping(omega, delta)[1][0])
    craft = ModalCraft(omega, delta, shape, (period, 1e-4))
    craft.set_state([0.3], [-1.2])
    craft.propagate(np.zeros(6))
    assert craft.q[0] == pytest.approx(0.3 * np.exp(-0.4), rel=1e-12)
    assert craft.q_rate[0] == pytest.approx(-1.2 * np.exp(-0.4), rel=1e-12)


def test_energy_balance_of_the_modes():
    """Work of the held force equals the change of modal energy for undamped modes."""
    rng = np.random.default_rng(11)
    omega = 2 * np.pi * rng.uniform(0.3, 40.0, 20)
    shapes = rng.normal(scale=0.02, size=(20, 6))
    craft = ModalCraft(omega, np.zeros(20), shapes, (DT, 1e-4))
    work, u_old = 0.0, np.zeros(6)
    for load in rng.normal(scale=100.0, size=(400, 6)):
        u, _ = craft.propagate(load)
        work += load @ (u - u_old)
        u_old = u
    energy = 0.5 * np.sum(craft.q_rate**2 + (omega * craft.q)**2)
    assert work == pytest.approx(energy, rel=1e-10)


def test_snapshot_restores_the_same_bits():
    craft = random_craft()[0]
    loads = np.random.default_rng(2).normal(size=(30, 6))
    craft.run(loads)
    saved = craft.snapshot()
    first = craft.run(loads)
    craft.restore(saved)
    second = craft.run(loads)
    assert first[0].tobytes() == second[0].tobytes() and first[1].tobytes() == second[1].tobytes()
    with pytest.raises(ValueError, match="bytes"):
        craft.restore(saved[:-8])
    craft.reset()
    assert not np.any(craft.q)


def passive_dcm(theta):
    """A_D of the digest, first order: components of a vector from the undeformed to the deformed port, theta = (x, y, z)."""
    x, y, z = theta
    return np.eye(3) - np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def test_deformed_port_pose_and_twist():
    rng = np.random.default_rng(4)
    q0 = Rotation.random(random_state=1).as_quat()
    X0 = np.concatenate([[3.0, -1.0, 0.5], q0])
    R0 = Rotation.from_quat(q0).as_matrix()
    for _ in range(20):
        d, rate = rng.normal(scale=1e-4, size=6), rng.normal(scale=1e-2, size=6)
        X, V = deform_port(X0, d, rate)
        # digest 2.4: A_CD = A_D G_CD (passive) and r_CD = l_CD + G u; theta is a vector (x, y, z), not the printed (yaw, pitch, roll)
        A_CD = passive_dcm(d[3:]) @ R0.T
        R = Rotation.from_quat(X[3:]).as_matrix()
        assert np.max(np.abs(R.T - A_CD)) < 1e-7
        printed = np.array([[1, d[4], -d[3]], [-d[4], 1, d[5]], [d[3], -d[5], 1]]) @ R0.T      # (psi, theta, phi) read from (x, y, z)
        assert np.max(np.abs(R.T - printed)) > 1e-6
        assert np.linalg.norm(X[3:]) == pytest.approx(1.0, abs=1e-15)
        np.testing.assert_allclose(X[:3], X0[:3] + R0 @ d[:3], atol=1e-15)
        # twist against central differences of the pose
        h = 1e-5
        Xp, Xm = deform_port(X0, d + h * rate, rate)[0], deform_port(X0, d - h * rate, rate)[0]
        np.testing.assert_allclose(V[:3], (Xp[:3] - Xm[:3]) / (2 * h), atol=1e-9)
        spin = (Rotation.from_quat(Xp[3:]) * Rotation.from_quat(Xm[3:]).inv()).as_rotvec() / (2 * h)
        np.testing.assert_allclose(V[3:], spin, atol=5e-6)      # first order in theta (1e-4), as the text


@pytest.mark.parametrize("change, message", [
    (dict(omega=[0.0, 1.0]), "omega: mode 0"),
    (dict(omega=[1.0, np.nan]), "omega: row 1 is not finite"),
    (dict(log_decrement=[0.1, -0.1]), "log_decrement: mode 1 has -0.1, limits 0...20"),
    (dict(log_decrement=[0.1, 30.0]), "log_decrement: mode 1"),
    (dict(shapes=np.zeros((2, 5))), "shapes: 5 columns"),
    (dict(shapes=np.zeros((3, 6))), "shapes: shape"),
    (dict(steps=(0.0, 1e-4)), "steps"),
    (dict(instructions="mmx"), "instructions: 'mmx'"),
])
def test_wrong_parameters_are_named(change, message):
    arguments = dict(omega=[1.0, 2.0], log_decrement=[0.1, 0.1], shapes=np.zeros((2, 6)), steps=(DT, 1e-4), instructions="auto") | change
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        ModalCraft(**arguments)
