"""What every docking mechanism in software promises."""

import numpy as np
import pytest

from hil_server import registry

MECHANISMS = list(registry.PARTS["mechanisms"])
all_mechanisms = pytest.mark.parametrize("name", MECHANISMS)


def path(part, count, seed=1):
    """Relative poses and twists that go from outside into the contact of this mechanism."""
    rng = np.random.default_rng(seed)
    start = np.array([-3.0, 0.01, 0.0, 0.0, 0.0, 0.0, 1.0])
    while start[0] < 3.0 and part.max_penetration(start) <= 0.0:
        start[0] += 0.005
    for k in range(count):
        X = start.copy()
        X[0] += -0.02 + 0.08 * k / count
        X[1:3] += rng.normal(0.0, 1e-3, 2)
        q = X[3:] + rng.normal(0.0, 1e-3, 4)
        X[3:] = q / np.linalg.norm(q)
        yield X, np.concatenate([[0.1, 0.0, 0.0], rng.normal(0.0, 1e-3, 3)])


def run(part, steps):
    aux = np.zeros(max(sum(a.count for a in part.AUX), 1))
    out = []
    for X, V in steps:
        result = part.advance(X, V, 5e-5, aux=aux)
        out.append(b"".join(np.asarray(v).tobytes() for v in result.values()) + aux.tobytes())
    return out


@all_mechanisms
def test_deterministic(build, name):
    first, second, third = (build("mechanisms", name) for _ in range(3))
    assert run(first, path(first, 200)) == run(second, path(second, 200)) != run(third, path(third, 200, seed=2))


@all_mechanisms
def test_snapshot_and_restore_give_the_same_bits(build, name):
    part = build("mechanisms", name)
    run(part, path(part, 100))
    snapshot = part.snapshot()
    once = run(part, path(part, 100, seed=2))
    part.restore(snapshot)
    assert run(part, path(part, 100, seed=2)) == once


@all_mechanisms
def test_far_apart_there_is_no_contact_and_all_is_finite(build, name):
    part = build("mechanisms", name)
    X = np.array([-5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    for _ in range(10):
        result = part.advance(X, np.zeros(6), 5e-5)
        assert not result["F_T"].any()
        assert all(np.isfinite(result[key]).all() for key in ("F_T", "F_A", "analog"))
