"""Generated kernels against the general ones they stand for."""

import ctypes
import shutil

import numpy as np
import pytest

from rt_kernels.model import tree_generator as generator
from rt_kernels.multibody import Body, Tree
from tests.multibody.tree_cases import pinocchio_model, random_state, random_tree, relative

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

TREES = [  # (bodies, floating, chain, joint kinds): together every kind, with branches and drives
    (7, True, 1.0, ["revolute"]),
    (5, False, 0.5, ["revolute", "prismatic", "screw", "continuous"]),
    (4, True, 0.3, ["spherical", "universal", "planar"]),
    (3, True, 1.0, ["revolute", "free"]),
]
STATES = 250  # per tree: 1000 in all


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.mark.parametrize("case", range(len(TREES)))
def test_generated_equals_general(case, cache):
    n, floating, chain, kinds = TREES[case]
    rng = np.random.default_rng(20 + case)
    bodies = random_tree(rng, n, floating, chain, kinds)
    general = Tree(bodies, gravity=(0.3, -0.2, -1.6))
    generated = general.generate(cache)
    model, _ = pinocchio_model(bodies)
    for _ in range(STATES):
        q, v, tau, a = random_state(rng, model)
        f_ext = rng.normal(size=(n, 6)) if rng.random() < 0.5 else None
        assert relative(generated.forward_dynamics(q, v, tau, f_ext), general.forward_dynamics(q, v, tau, f_ext)) < 1e-12
        assert relative(generated.inverse_dynamics(q, v, a, f_ext), general.inverse_dynamics(q, v, a, f_ext)) < 1e-12
        assert relative(generated.mass_matrix(q), general.mass_matrix(q)) < 1e-12


def test_interface_is_the_same_and_it_follows_events(cache):
    rng = np.random.default_rng(30)
    bodies = [
        Body("craft", None, "free", mass=5.0, inertia=np.eye(3)),
        Body("arm", "craft", "revolute", p_PJ_P=[1, 0, 0], mass=1.0, inertia=np.eye(3)),
        Body("payload", None, "free", mass=2.0, inertia=np.eye(3)),
    ]
    general = Tree(bodies, gravity=(0, 0, 0))
    generated = general.generate(cache)
    assert generated.generated.exists() and general.generated is None and generated.joint_names == general.joint_names
    q, v, tau = general.integrate(general.neutral(), rng.normal(size=13), 1.0), rng.normal(size=13), rng.normal(size=13)
    for tree in (general, generated):
        tree.gravity = (0.0, 0.1, 0.0)
    assert relative(generated.forward_dynamics(q, v, tau), general.forward_dynamics(q, v, tau)) < 1e-12
    for event in (lambda t: t.lock(q, v, "arm"), lambda t: t.attach(q, v, "payload", "arm")[1]):
        v_general, v_generated = event(general), event(generated)
        assert np.array_equal(v_general, v_generated)
        assert np.array_equal(generated.forward_dynamics(q, v_general, tau), general.forward_dynamics(q, v_general, tau))
        assert relative(generated.inverse_dynamics(q, v_general, tau), general.inverse_dynamics(q, v_general, tau)) < 1e-12
        assert relative(generated.mass_matrix(q), general.mass_matrix(q)) < 1e-12


def test_text_is_deterministic_and_cached(cache):
    bodies = random_tree(np.random.default_rng(31), 3, True)
    trees = [Tree(bodies), Tree(bodies)]
    texts = [generator.source(t.constants(), t.nv) for t in trees]
    assert texts[0] == texts[1]
    first = trees[0].generate(cache).generated
    stamp = first.stat().st_mtime_ns
    assert trees[1].generate(cache).generated == first and first.stat().st_mtime_ns == stamp
    heavier = [*bodies[:-1], Body(**{**bodies[-1].__dict__, "mass": bodies[-1].mass * 1.001})]
    assert Tree(heavier).generate(cache).generated != first


def test_constants_zeros_and_repeats_are_folded():
    table = generator.Table()
    x, y = table.given("x"), table.given("y")
    assert x * 0.0 == 0.0 and (x * 1.0).row == x.row and (x + 0.0) is x and x - x == 0.0
    assert (-1.0 * x).sign == -1 and (x * y).row == (y * x).row and (x + y).row == (y + x).row
    difference, opposite = x - y, y - x
    assert difference.row == opposite.row and difference.sign == -opposite.sign
    rows = len(table.rows)
    assert (-x) * (-y) is not None and len(table.rows) == rows  # signs make no new row
    unused = x * 3.0
    lines = table.emit([("out[0]", (x + y) * 2.0), ("out[1]", -(x - y)), ("out[2]", 0.0)])
    assert not any(f"t{unused.row} " in line for line in lines)
    code = "double f(double x, double y, double *out) {" + " ".join(lines) + "}"
    assert code.count("=") == 2 + 3 + 3  # two inputs, three operations, three outputs


def test_fewer_operations_than_the_blocks(cache):
    """The planar arm: axes parallel, offsets along one axis; most of the 3x3 arithmetic must be gone."""
    arm = [
        Body(f"b{i}", f"b{i - 1}" if i else None, "revolute", p_PJ_P=[1.0, 0, 0], mass=1.0, com=[0.5, 0, 0], inertia=np.diag([0, 0.1, 0.1]))
        for i in range(3)
    ]
    tree = Tree(arm)
    text = generator.source(tree.constants(), tree.nv)
    body = text[text.index("static void mass_matrix") : text.index("void generated_kernels")]
    # closed form of a planar 3R mass matrix needs about 30 operations
    assert body.count("const double t") < 60


def test_default_is_generated_only_where_it_pays(cache, tmp_path, monkeypatch):
    rng = np.random.default_rng(33)
    short, long = Tree(random_tree(rng, 2, True)), Tree(random_tree(rng, 40, True, kinds=["revolute"]))
    made = short.fastest(cache).generated
    assert made is not None
    assert long.fastest(cache) is long
    monkeypatch.setenv("PATH", str(tmp_path))
    assert short.fastest(cache).generated == made  # kept from before
    assert short.fastest(tmp_path) is short


def test_no_compiler_is_reported(tmp_path, monkeypatch):
    tree = Tree(random_tree(np.random.default_rng(32), 1, False))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(generator.GenerationError, match=f"no C compiler .* {tmp_path} has none compiled before"):
        tree.generate(tmp_path)


def test_refused_text_is_reported(cache):
    with pytest.raises(generator.GenerationError, match="refused"):
        generator.library("not C", "sse2", cache)


def test_library_exports_one_symbol(cache):
    tree = Tree([Body("a", mass=1.0, inertia=np.eye(3))]).generate(cache)
    assert ctypes.CDLL(str(tree.generated)).generated_kernels
