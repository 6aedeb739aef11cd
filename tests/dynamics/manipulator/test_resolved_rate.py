"""Resolved-rate control: the commanded velocity is met, singularities, stops, one locked joint, single joint, path."""

import numpy as np
import pytest

from rt_kernels.dynamics.manipulator.resolved_rate import ResolvedRate
from rt_kernels.model.bodies import Body
from rt_kernels.multibody.tree import Tree

CHAIN = [((1, 0, 0), (1.3589, 0, 0)), ((0, 0, 1), (0, 0, 0.7026)), ((0, 1, 0), (0, -0.5692, 0)), ((0, 1, 0), (7.11, -0.475, 0)),
         ((0, 1, 0), (7.11, 0, 0)), ((0, 0, 1), (0, -0.5692, 0)), ((1, 0, 0), (0, 0, -0.7026))]
Q = np.radians([10.0, 20.0, -60.0, 100.0, -50.0, 30.0, 15.0])
T = 0.008
LIMITS = dict(rate_max=np.radians(4.0), low=-np.radians(270.0), high=np.radians(270.0), braking=0.02)
CAMERA = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def arm():
    bodies = [Body(f"link{k}", f"link{k - 1}" if k else None, axis=np.array(axis, dtype=float), p_PJ_P=np.array(offset, dtype=float),
                   mass=100.0, inertia=50.0 * np.eye(3)) for k, (axis, offset) in enumerate(CHAIN)]
    tip = Body("tip", "link6", "fixed", p_PJ_P=np.array([1.3589, 0, 0]))
    camera = Body("camera", "link6", "fixed", p_PJ_P=np.array([1.0, 0.4, 0.3]), R_PJ=CAMERA)
    return Tree([*bodies, tip, camera, Body("port", "link6", "fixed", p_PJ_P=np.array([5.0, 0.5, 0]))], gravity=(0, 0, 0))


COMMAND = np.array([0.02, -0.01, 0.015, 0.002, 0.001, -0.003])


@pytest.mark.parametrize("axes", ["camera", "tip", "target"])
@pytest.mark.parametrize("locked", [None, 0, 3])
@pytest.mark.parametrize("point", [None, "port"])
def test_the_point_moves_as_commanded(axes, locked, point):
    tree = arm()
    R_target = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    R_target *= np.linalg.det(R_target)
    control = ResolvedRate(tree, "tip", R_target if axes == "target" else axes, point, **LIMITS)
    control.lock(locked)
    if locked == 3:
        # with the elbow locked two pitch joints are left: still six independent directions at this pose
        assert np.linalg.matrix_rank(np.delete(tree.jacobian(Q, "tip"), 3, axis=1)) == 6
    rates = control.step(Q, "hand", COMMAND)
    R = R_target if axes == "target" else tree.pose(Q, axes)[0]
    V = tree.velocity(Q, rates, point or "tip")
    assert control.status["factor"] == 1.0
    assert control.status["sigma"] > 0.05
    np.testing.assert_allclose(V, np.concatenate([R @ COMMAND[:3], R @ COMMAND[3:]]), atol=1e-13)
    if locked is not None:
        assert rates[locked] == 0.0


def scaled(J, L=5.0):
    return np.concatenate([J[:3] / L, J[3:]])


@pytest.mark.parametrize("seed", range(20))
def test_against_the_singular_values(seed):
    """Smallest singular value and damped rates against NumPy's decomposition, seven joints or one locked, poses near singularities too."""
    rng = np.random.default_rng(seed)
    tree, q = arm(), rng.uniform(-3, 3, 7)
    if seed % 2:
        q[3] = 0.02 * rng.normal()          # the elbow nearly straight
    locked = int(rng.integers(0, 7)) if seed % 4 > 1 else None
    control = ResolvedRate(tree, "tip", np.eye(3), **dict(LIMITS, rate_max=1e6, braking=1e9), lambda_0=0.07, sigma_0=0.4)
    control.lock(locked)
    rates = control.step(q, "hand", COMMAND)
    J = scaled(tree.jacobian(q, "tip"))
    if locked is not None:
        J[:, locked] = 0.0
    sigma = np.linalg.svd(J, compute_uv=False).min()
    assert control.status["sigma"] == pytest.approx(sigma, rel=1e-9, abs=2e-8)
    damping = (0.07 * max(0.0, 1.0 - sigma / 0.4)) ** 2
    expected = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(6), scaled(COMMAND))
    np.testing.assert_allclose(rates, expected, rtol=1e-8, atol=1e-12)


def test_rates_stay_bounded_through_a_singularity():
    """Elbow straight to the last bit and almost: without damping the rates grow like 1/angle, with it they stay below their bound."""
    tree, rng = arm(), np.random.default_rng(9)
    lam, sigma_0 = 0.05, 0.05
    control = ResolvedRate(tree, "tip", np.eye(3), **dict(LIMITS, rate_max=1e6, braking=1e9), lambda_0=lam, sigma_0=sigma_0)
    control.lock(0)
    least = np.linspace(0.0, sigma_0, 2001)
    s = np.linspace(1e-6, 2.0, 4001)[:, None]
    gain = np.where(s >= least, s / (s * s + (lam * (1.0 - least / sigma_0)) ** 2), 0.0).max()
    undamped = 0.0
    for angle in (0.0, 1e-12, 1e-6, 1e-3, 1e-2, 0.05):
        q = np.array([0.0, 0.3, -0.5, angle, 0.7, 0.4, 0.0])
        J = np.delete(scaled(tree.jacobian(q, "tip")), 0, axis=1)
        for _ in range(20):
            x = 0.01 * rng.normal(size=6)
            rates = control.step(q, "hand", x)
            assert np.linalg.norm(rates) <= gain * np.linalg.norm(scaled(x)) * (1 + 1e-3)
            undamped = max(undamped, np.linalg.norm(np.linalg.pinv(J, rcond=1e-15) @ scaled(x)) / np.linalg.norm(scaled(x)))
        if angle < 1e-5:
            assert control.status["sigma"] < 1e-4
    assert undamped > 1e3 * gain


def test_one_factor_keeps_the_direction():
    tree = arm()
    control = ResolvedRate(tree, "tip", "tip", **LIMITS, linear_max=10.0, angular_max=10.0)
    fast = control.step(Q, "hand", 100.0 * COMMAND)
    assert control.status["factor"] < 1.0
    limiting = control.status["limiting"]
    assert abs(fast[limiting]) == pytest.approx(np.radians(4.0), rel=1e-12)
    assert np.abs(fast).max() <= np.radians(4.0) * (1 + 1e-12)
    slow = control.step(Q, "hand", COMMAND)
    np.testing.assert_allclose(fast / np.linalg.norm(fast), slow / np.linalg.norm(slow), atol=1e-12)


def test_hand_command_is_limited_in_size():
    tree = arm()
    control = ResolvedRate(tree, "tip", "tip", **LIMITS, linear_max=0.01, angular_max=0.001)
    V = tree.velocity(Q, control.step(Q, "hand", [3.0, 4.0, 0.0, 0.0, 0.0, -5.0]), "tip")
    R = tree.pose(Q, "tip")[0]
    np.testing.assert_allclose(V, np.concatenate([R @ [0.006, 0.008, 0.0], R @ [0.0, 0.0, -0.001]]), atol=1e-14)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_stop_is_never_passed_and_braking_stays_within_its_limit(sign):
    tree = arm()
    control = ResolvedRate(tree, "tip", **dict(LIMITS, low=-1.0, high=1.0, braking=0.02))
    q, before, rates = np.zeros(7), 0.0, []
    for _ in range(6000):
        rate = control.step(q, "single", sign * 0.05, joint=2)
        q = q + T * rate
        assert abs(q[2]) <= 1.0
        assert before - abs(rate[2]) <= 0.02 * T * (1 + 1e-9)
        before = abs(rate[2])
        rates.append(before)
    assert max(rates) == 0.05
    assert abs(q[2]) > 1.0 - 1e-4
    assert np.all(np.delete(q, 2) == 0.0)
    # away from the stop at once
    assert control.step(q, "single", -sign * 0.05, joint=2)[2] == -sign * 0.05
    # and nothing at or beyond it
    q[2] = sign * 1.001
    assert np.all(control.step(q, "single", sign * 0.05, joint=2) == 0.0)
    assert control.status["limiting"] == 2


def test_path_is_followed_straight_and_ends_at_rest():
    tree = arm()
    control = ResolvedRate(tree, "tip", **LIMITS)
    path = np.array([Q + np.radians([5, -10, 3, 8, 0, 0, 20]), Q + np.radians([-5, 0, 0, 12, 4, -6, 0]), Q])
    control.set_path(path)
    q, start, leg = Q.copy(), Q.copy(), 0
    for _ in range(20000):
        rates = control.step(q, "path")
        now = control.status["waypoint"]
        if now != leg:
            assert np.abs(q - path[leg]).max() <= 1e-4
            start, leg = q.copy(), now
        if control.status["path_done"]:
            break
        assert np.all(np.abs(rates) <= np.radians(4.0) * (1 + 1e-12))
        q = q + T * rates
        line = path[leg] - start
        off = (q - start) - line * ((q - start) @ line) / (line @ line)
        assert np.abs(off).max() < 1e-12
    assert control.status["path_done"]
    np.testing.assert_allclose(q, Q, atol=1e-4)
    # and is kept there, also when something pushes
    q = Q + np.radians(0.5)
    for _ in range(2000):
        q = q + T * control.step(q, "path")
    np.testing.assert_allclose(q, Q, atol=1e-9)


def test_hold_and_locked_single_joint_do_not_move():
    control = ResolvedRate(arm(), "tip", **LIMITS)
    assert np.all(control.step(Q) == 0.0)
    control.lock(4)
    assert np.all(control.step(Q, "single", 0.01, joint=4) == 0.0)
    assert control.step(Q, "single", 0.01, joint=5)[5] == 0.01


def test_errors_name_value_limit_and_unit():
    tree = arm()
    with pytest.raises(ValueError, match=r"low: .* rad is not below high"):
        ResolvedRate(tree, "tip", **dict(LIMITS, low=5.0))
    with pytest.raises(ValueError, match="sigma_0: 0.0"):
        ResolvedRate(tree, "tip", **LIMITS, sigma_0=0.0)
    with pytest.raises(ValueError, match="point: frame 'link3' is not on the body of 'tip'"):
        ResolvedRate(tree, "tip", point="link3", **LIMITS)
    with pytest.raises(ValueError, match="is not a rotation matrix"):
        ResolvedRate(tree, "tip", np.diag([1.0, 1.0, -1.0]), **LIMITS)
    with pytest.raises(ValueError, match="tree: 6 degrees of freedom"):
        ResolvedRate(Tree([Body("free", joint="free", mass=1.0, inertia=np.eye(3))]), "free", **LIMITS)
    control = ResolvedRate(tree, "tip", **LIMITS)
    with pytest.raises(ValueError, match="path: waypoint 0, joint 2: 6 rad, limits -4.71239...4.71239 rad"):
        control.set_path([[0, 0, 6.0, 0, 0, 0, 0]])
    with pytest.raises(ValueError, match="mode: 'jump'"):
        control.step(Q, "jump")
    with pytest.raises(ValueError, match="locked joint: 7, limits 0...6"):
        control.lock(7)
    with pytest.raises(ValueError, match="command: "):
        control.step(Q, "hand", [np.nan] * 6)
