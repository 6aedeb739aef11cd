"""What every docking mechanism in software promises."""

import numpy as np
import pytest

from hil_server import registry

MECHANISMS = list(registry.PARTS["mechanisms"])
all_mechanisms = pytest.mark.parametrize("name", MECHANISMS)


def path(simulated, count, seed=1):
    """Relative poses and twists that go from outside into the contact."""
    rng = np.random.default_rng(seed)
    start = np.asarray(simulated.context["start"]["X_TA"], float)
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
def test_deterministic(build, simulated, name):
    assert run(build("mechanisms", name), path(simulated, 200)) == run(build("mechanisms", name), path(simulated, 200))
    assert run(build("mechanisms", name), path(simulated, 200)) != run(build("mechanisms", name), path(simulated, 200, seed=2))


@all_mechanisms
def test_snapshot_and_restore_give_the_same_bits(build, simulated, name):
    part = build("mechanisms", name)
    run(part, path(simulated, 100))
    snapshot = part.snapshot()
    once = run(part, path(simulated, 100, seed=2))
    part.restore(snapshot)
    assert run(part, path(simulated, 100, seed=2)) == once


@all_mechanisms
def test_far_apart_there_is_no_contact_and_all_is_finite(build, name):
    part = build("mechanisms", name)
    X = np.array([-5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    for _ in range(10):
        result = part.advance(X, np.zeros(6), 5e-5)
        assert not result["F_T"].any()
        assert all(np.isfinite(result[key]).all() for key in ("F_T", "F_A", "analog"))
