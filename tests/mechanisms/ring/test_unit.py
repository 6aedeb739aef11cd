"""Ring unit on spring legs: capture, release, retraction, base wrench at rest. Its energy: test_energy.py."""


import numpy as np
import pytest

from rt_kernels.mechanisms.ring.picture import RingPicture
from rt_kernels.mechanisms.ring.unit import Ring
from rt_kernels.offline.two_craft import TwoCraft, aux_index, first_contact
from tests.mechanisms.shipped import shipped

HERE = [0, 0, 0, 0, 0, 0, 1]


@pytest.fixture(scope="module")
def table():
    return shipped("ring")


def test_capture_at_moderate_speed_and_release(table):
    unit = Ring(**table)
    q = [0.01, 0.005, -0.008, 0.99990]
    q = np.array(q) / np.linalg.norm(q)
    X = first_contact(unit, q, 0.03, -0.02)
    X[0] -= 0.02
    mass = 8000.0
    active = dict(mass=mass, inertia=np.diag([1.3e4, 2e4, 2e4]), X_port=[2.0, 0, 0, 0, 0, 0, 1],
                  X=[X[0] - 2.0, X[1], X[2], *q], v=[0.1, 0, 0], w=[0, 0, 0])
    target = dict(mass=4e5, inertia=np.diag([5e7, 1e8, 1e8]), X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
    trial = TwoCraft(unit, active, target)
    out = trial.run(60.0, 5e-4, every=10, stop_signals=1 << 1)
    assert out["signals"][-1] & 2 and out["aux"][-1, aux_index(unit, "capture_time")] > 0
    assert np.all(out["status"] == 0)
    held = trial.run(15.0, 5e-4, every=10)
    assert held["X_TA"][-1, 0] > -0.5 and np.all(held["signals"] & 2)
    # drive draws the neutral point in
    drawn = trial.run(60.0, 5e-4, every=10, commands=1)
    assert drawn["X_TA"][-1, 0] - held["X_TA"][-1, 0] > 0.05
    assert drawn["signals"][-1] & (1 << 13)
    # release command: latches in, nothing holds
    aux = np.zeros(sum(c.count for c in unit.AUX))
    unit.advance(drawn["X_TA"][-1], np.zeros(6), 5e-4, commands=4, aux=aux)
    assert not np.any(aux[aux_index(unit, "latch_fired"):][:6])


def test_base_wrench_of_a_still_mechanism_is_the_load_on_the_ring(table):
    """Statics: pressed and at rest, F_A is what the target gives the ring, moved to A."""
    unit = Ring(**table)
    X = np.array([-0.345, 0.0, 0.0, 0, 0, 0, 1.0])
    for _ in range(20_000):
        out = unit.advance(X, np.zeros(6), 2e-4)
    assert out["F_T"][0] > 20.0
    F = -out["F_T"]
    # T is 0.345 m ahead of A, same axes
    want = np.concatenate([F[:3], F[3:] + np.cross([0.345, 0, 0], F[:3])])
    np.testing.assert_allclose(out["F_A"], want, atol=1e-6 * np.abs(F[0]))


def test_more_substeps_converge(table):
    """Impact force history at 1, 4 and 16 substeps: differences shrink."""
    peaks = []
    for n in (1, 4, 16):
        unit = Ring(**(table | {"substeps": n}))
        active = dict(mass=5000.0, inertia=np.eye(3) * 1e4, X_port=HERE, X=[-0.36, 0, 0, 0, 0, 0, 1], v=[0.08, 0, 0], w=[0, 0, 0])
        target = dict(mass=4e5, inertia=np.eye(3) * 1e8, X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
        trial = TwoCraft(unit, active, target)
        trial.run(1.0, 5e-4, every=10)
        peaks.append(trial.relative_pose()[0])
    assert abs(peaks[1] - peaks[2]) < 0.5 * abs(peaks[0] - peaks[2]) + 1e-7
    assert abs(peaks[0] - peaks[2]) < 2e-3


@pytest.mark.parametrize("name, kinds", [("ring", ("UPS", "SPU")), ("hunt", ("RUS", "RSU"))])
def test_where_the_universal_joint_is_matters_little_and_energy_closes(name, kinds):
    """A spin of thin legs: two kinds of leg differ by less than a fiftieth of the impact, but they differ; each closes its ledger."""
    peaks = []
    for kind in kinds:
        unit = Ring(**(shipped(name) | {"leg_kind": kind}))
        active = dict(mass=7000.0, inertia=np.diag([8e3, 2e4, 2e4]), X_port=HERE, X=[-0.51, 0.02, -0.01, 0, 0, 0, 1], v=[0.1, 0, 0],
                      w=[0.01, 0.002, 0])  # fmt: skip
        target = dict(mass=4e5, inertia=np.eye(3) * 1e8, X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
        out = TwoCraft(unit, active, target).run(8.0, 2.5e-4, every=4)
        work, parts = unit.LEDGER
        last = out["aux"][-1]
        assert last[aux_index(unit, work)] > 30.0
        assert last[aux_index(unit, work)] == pytest.approx(sum(last[aux_index(unit, part)] for part in parts), abs=0.1)
        assert not out["status"].any() and last[aux_index(unit, "capture_time")] > 0.0
        peaks.append(np.abs(out["F_T"]).max(axis=0))
    assert np.abs(peaks[1][:3] - peaks[0][:3]).max() < 0.02 * peaks[0].max() and not np.array_equal(*peaks)


@pytest.mark.parametrize("name", ["ring", "hunt"])
def test_the_picture_draws_the_legs_that_the_kernel_moves(name):
    """With the ring pushed aside: crank and link keep their lengths, the crank turns by its channel, a strut is longer by its own."""
    table = {p.key: p.default for p in Ring.PARAMETERS} | shipped(name)
    unit, aux = Ring(**table), np.zeros(sum(c.count for c in Ring.AUX))
    for _ in range(4000):
        unit.advance([-0.30, 0.02, 0.01, 0, 0, 0, 1.0], np.zeros(6), 2.5e-4, aux=aux)
    names = (("ring_position", 3), ("ring_quaternion", 4), ("stroke", 6))
    position, quaternion, stroke = (aux[aux_index(unit, name):][:n] for name, n in names)
    assert np.ptp(stroke) > 5e-3
    legs = np.array(RingPicture(table).legs({"A": HERE, "ring": [*position, *quaternion]}))
    nominal = np.array(RingPicture(table).legs({"A": HERE, "ring": [table["ready_distance_m"], 0, 0, 0, 0, 0, 1]}))
    lengths, before = (np.linalg.norm(np.diff(one, axis=1), axis=2) for one in (legs, nominal))
    if name == "ring":
        assert lengths[:, 0] == pytest.approx(before[:, 0] + stroke, abs=1e-9)
    else:
        assert lengths == pytest.approx(before, abs=1e-9) and lengths[:, 0] == pytest.approx(table["crank_length_m"])
        turned = np.einsum("ki,ki->k", legs[:, 1] - legs[:, 0], nominal[:, 1] - nominal[:, 0]) / lengths[:, 0] ** 2
        assert np.arccos(turned) == pytest.approx(np.abs(stroke) / table["crank_length_m"], abs=1e-6)


def test_friction_below_its_limit_is_the_rings_own(table):
    """Rings that meet with a turn: what is stated counts whatever the sub-steps; not stated it follows from them (older logs)."""
    def turned(n, limit):
        unit = Ring(**(table | {"substeps": n, "friction": 0.5, "friction_damping_max_n_s_per_m": limit}))
        active = dict(mass=5000.0, inertia=np.eye(3) * 1e4, X_port=HERE, X=[-0.36, 0, 0, 0, 0, 0, 1], v=[0.08, 0.01, 0], w=[0.02, 0, 0])
        target = dict(mass=4e5, inertia=np.eye(3) * 1e8, X_port=HERE, X=HERE, v=[0, 0, 0], w=[0, 0, 0])
        trial = TwoCraft(unit, active, target)
        trial.run(1.0, 5e-4, every=10)
        return trial.relative_pose()

    mass = table["ring_mass_kg"]
    for n in (1, 2):
        assert np.array_equal(turned(n, None), turned(n, 0.5 * mass / (1e-3 / n)))
    assert not np.array_equal(turned(2, None), turned(2, 0.5 * mass / 1e-3))
    assert Ring.longest_substep_s(table | {"friction_damping_max_n_s_per_m": 500.0 * mass}) == pytest.approx(1e-3)


def test_errors_name_the_key(table):
    generates = [[0.0, 0.0], [0.002, 60.0], [0.08, 500.0], [0.15, 900.0]]
    for change, message in ((dict(plunger_switch_m=0.01), "plunger_switch_m: 0.01 m"),
                            (dict(spring_backward_n=generates), "spring_forward_n: the return branch")):
        with pytest.raises(ValueError, match=message):
            Ring(**(table | change))
