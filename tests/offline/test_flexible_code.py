"""Generated code of flexible trees against the general recursion: all joints, active and passive, every sign and term."""

from dataclasses import replace

import numpy as np
import pytest

from rt_kernels.model.craft import Link
from rt_kernels.model.craft_file import assumed_beam
from rt_kernels.model.modes import ModalBody
from rt_kernels.multibody.flexible import FlexibleTree
from rt_kernels.offline.flexible_code import FlexibleCode
from tests.multibody.test_flexible_tree import TYPES, random_state, random_tree


def compare(code, tree, compiled, rng, times=5):
    active = np.zeros(tree.nv, dtype=bool)
    for name in code.given:
        active[tree.coordinates(tree.links[tree.index(name)].joint_name)[1]] = True
    for _ in range(times):
        q, v = random_state(rng, tree)
        x = rng.normal(size=tree.nv)
        tau, a = tree.hybrid_dynamics(q, v, np.where(active, 0.0, x), np.where(active, x, 0.0), active)
        tau_code, a_code = compiled.dynamics(q, v, x)
        scale = max(1.0, np.abs(a).max(), np.abs(tau).max())
        np.testing.assert_allclose(a_code, a, rtol=0, atol=1e-11 * scale)
        np.testing.assert_allclose(tau_code, tau, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rates", ["exact", "first_order"])
def test_random_trees(seed, rates, tmp_path):
    """Every kind of joint, ports on flexible and rigid parents, gravity; a random half of the joints active."""
    rng = np.random.default_rng(seed)
    gravity = (0.3, -0.2, 0.9)
    tree, _ = random_tree(rng, 3, max_modes=2, base=("free", "revolute", "fixed")[seed % 3], types=(*TYPES, "screw"))
    given = [link.name for link in tree.links if rng.random() < 0.5]
    code = FlexibleCode(tree.links, gravity, rates, given)
    compare(code, FlexibleTree(tree.links, gravity, rates), code.compile("tree", tmp_path), rng)


def chain(links, **more):
    beam = assumed_beam(1.0, 2.0, 20.0)
    axes = np.eye(3)[[2, 1, 1, 0, 1, 2]]
    return [Link(f"link{k + 1}", beam, f"link{k}" if k else None, "tip" if k else None, "revolute", axes[k], **more) for k in range(links)]


def test_a_chain_with_active_joints_springs_and_drives(tmp_path):
    """Three links of the paper's kind; constants fold, so a chain on axes has a shorter code than one at an angle."""
    rng = np.random.default_rng(1)
    links = chain(3, armature=0.02, stiffness=3.0, damping=0.1)
    code = FlexibleCode(links, given=("link2",))
    compare(code, FlexibleTree(links), code.compile("chain", tmp_path), rng)
    tilted = FlexibleCode([replace(link, axis=link.axis + 0.3) for link in links], given=("link2",))
    assert code.operations < 0.9 * tilted.operations
    # the same model, the same text; no function but sqrt and the two of its own
    assert code.emit_c("chain") == FlexibleCode(links, given=("link2",)).emit_c("chain")
    body = code.emit_c("chain").partition("chain_dynamics")[2]
    assert not any(word in body for word in ("sin(", "cos(", "pow(", "for (", "if ("))


def test_a_wheel_on_a_bending_boom(tmp_path):
    """A continuous joint keeps cosine and sine of its angle."""
    wheel = ModalBody.rigid(3.0, (0.02, 0.0, 0.01), (0.1, 0.2, 0.1))
    links = [*chain(1), Link("wheel", wheel, "link1", "tip", "continuous", (0.0, 1.0, 0.0), damping=0.01)]
    tree, compiled = FlexibleTree(links), FlexibleCode(links).compile("wheel", tmp_path)
    rng = np.random.default_rng(3)
    for angle in (0.4, 2.5, -1.9):
        q, v, x = 0.3 * rng.normal(size=tree.nq), rng.normal(size=tree.nv), rng.normal(size=tree.nv)
        q[tree.coordinates("wheel")[0]] = np.cos(angle), np.sin(angle)
        np.testing.assert_allclose(compiled.dynamics(q, v, x)[1], tree.forward_dynamics(q, v, x), rtol=1e-11, atol=1e-11)


def test_errors_are_named(tmp_path):
    with pytest.raises(ValueError, match="no body named 'link9'"):
        FlexibleCode(chain(2), given=("link9",))
    code = FlexibleCode(chain(1))
    with pytest.raises(ValueError, match="not an identifier"):
        code.emit_c("a b")
    with pytest.raises(RuntimeError, match="no C compiler found"):
        code.compile("x", tmp_path, compiler="no-such-compiler")
    with pytest.raises(ValueError, match=r"v: shape \(2,\) given, \(4,\) expected"):
        code.compile("x", tmp_path).dynamics(np.zeros(4), np.zeros(2), np.zeros(4))
