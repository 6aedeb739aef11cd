"""Sobol' indices against a closed form (Ishigami and Homma 1990): random samples and the saltelli design."""

import math

import numpy as np
import pytest

from hil_server.campaign import sensitivity
from hil_server.campaign.plan import load_plan
from hil_server.errors import ConfigurationError

pytest.importorskip("SALib")
KEYS = ("a", "b", "c", "d", "e", "f")
A, B = 7.0, 0.1
V = (0.5 * (1 + B * math.pi**4 / 5) ** 2, A**2 / 8, 0.0)
V13 = B**2 * math.pi**8 * (1 / 18 - 1 / 50)
FIRST = np.array([*V, 0.0, 0.0, 0.0]) / (sum(V) + V13)
TOTAL = FIRST + np.array([V13, 0.0, V13, 0.0, 0.0, 0.0]) / (sum(V) + V13)


def ishigami(u):
    x = (2 * u - 1) * np.pi
    return np.sin(x[:, 0]) + A * np.sin(x[:, 1]) ** 2 + B * x[:, 2] ** 4 * np.sin(x[:, 0])


def test_first_order_of_two_thousand_random_cases():
    u = np.random.default_rng(5).random((2000, 6))
    found = sensitivity.indices(u, ishigami(u), KEYS)
    np.testing.assert_allclose([i.first for i in found], FIRST, atol=0.05)
    assert all(math.isnan(i.total) and abs(i.first - s) < 3 * i.first_half + 0.02 for i, s in zip(found, FIRST, strict=True))


def test_first_order_and_total_of_the_design():
    cases = sensitivity.design_cases(20000, 6, "file")
    assert cases == 2048 * 8
    u = sensitivity.design(KEYS, cases, 1)
    found = sensitivity.indices(u, ishigami(u), KEYS, saltelli=True)
    np.testing.assert_allclose([i.first for i in found], FIRST, atol=0.03)
    np.testing.assert_allclose([i.total for i in found], TOTAL, atol=0.03)


def test_cases_without_an_outcome_are_left_out():
    u = np.random.default_rng(5).random((2000, 6))
    y = ishigami(u)
    y[::50] = math.nan
    np.testing.assert_allclose([i.first for i in sensitivity.indices(u, y, KEYS)], FIRST, atol=0.06)
    assert sensitivity.indices(u, y, KEYS, saltelli=True) == []
    assert sensitivity.indices(u, np.ones(2000), KEYS) == []


def test_the_design_of_a_campaign(tmp_path):
    file = tmp_path / "design.toml"
    text = '[campaign]\nname = "d"\ntest = "docking.toml"\ncases = {}\nsampling = "saltelli"\n'
    text += "[box]\nyaw_deg = [-1.0, 1.0]\nroll_deg = [-2.0, 2.0]\n"
    file.write_text(text.format(100))
    x = load_plan(file).conditions()
    assert x.shape == (64, 2) and np.abs(x[:, 0]).max() <= 1.0 < np.abs(x[:, 1]).max() <= 2.0
    file.write_text(text.format(7))
    with pytest.raises(ConfigurationError, match="too few for sampling 'saltelli'"):
        load_plan(file)
