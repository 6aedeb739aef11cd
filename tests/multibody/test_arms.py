"""Shipped manipulators: kinematics against their Denavit-Hartenberg tables, masses, and inertias that a body can have."""

from pathlib import Path

import numpy as np
import pytest

from rt_kernels.multibody.tree import Tree

ARMS = Path(__file__).resolve().parents[2] / "stand_configs" / "manipulators"
# rows a m, alpha deg, d m, theta offset deg (distal); axes of the table's base in the root frame, columns
ROLL_FIRST = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
TABLES = {
    "canadarm2": (ROLL_FIRST, 1e-13, 1375.37, [
        (0, -90, 1.3589, 0), (0, -90, 0.7026, -90), (7.11, 0, -0.5692, 0), (7.11, 0, -0.4750, 0), (0, 90, -0.5692, 0), (0, 90, -0.7026, 90),
        (0, 0, 1.3589, 0)]),
    # table is rounded to 0.1 mm and 1e-4 deg
    "srms": (np.eye(3), 2e-4, 358.52, [
        (0, -90, 0.3048, 0), (6.3785, 0, 0, 1.3691), (7.0615, 0, 0, -2.6057), (0.4572, 90, 0, 1.2366), (0, 90, 0, 90), (0, 0, 1.4224, 0)]),
    "era": (ROLL_FIRST, 1e-13, 630.0, [
        (0, -90, 1.228, 0), (0.340, -90, 0, -90), (4.072, 0, 0, 0), (4.072, 0, 0, 0), (0.340, 90, 0, 0), (0, 90, 0, 90), (0, 0, 1.228, 0)]),
}


def denavit_hartenberg(base, table, q):
    T = np.eye(4)
    T[:3, :3] = base
    for angle, (a, alpha, d, offset) in zip(q, table, strict=True):
        c, s = np.cos(angle + np.radians(offset)), np.sin(angle + np.radians(offset))
        ca, sa = np.cos(np.radians(alpha)), np.sin(np.radians(alpha))
        T = T @ [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]]
    return T[:3, :3], T[:3, 3]


@pytest.mark.parametrize("name", TABLES)
def test_arm_is_its_table(name):
    base, tolerance, mass, table = TABLES[name]
    tree, rng = Tree.from_toml(ARMS / f"{name}.toml", gravity=(0.0, 0.0, 0.0)), np.random.default_rng(1)
    assert tree.nv == len(table)
    turned = tree.pose(np.zeros(tree.nq), "tip")[0].T @ denavit_hartenberg(base, table, np.zeros(tree.nq))[0]
    for _ in range(50):
        q = rng.uniform(-3.0, 3.0, tree.nq)
        R, p = tree.pose(q, "tip")
        R_table, p_table = denavit_hartenberg(base, table, q)
        np.testing.assert_allclose(p, p_table, rtol=0.0, atol=tolerance)
        np.testing.assert_allclose(R @ turned, R_table, rtol=0.0, atol=tolerance)
        assert np.linalg.eigvalsh(tree.mass_matrix(q)).min() > 0.0
    assert sum(b.mass for b in tree.bodies) == pytest.approx(mass, abs=0.01)
