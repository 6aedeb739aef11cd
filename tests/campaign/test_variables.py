"""What a campaign varies: distributions against scipy, correlation, factors and tables of texts in the cases' settings, faults in words."""

import numpy as np
import pytest
from scipy.stats import kstest, norm, spearmanr, truncnorm

from hil_server.campaign import variables
from hil_server.campaign.case import run_case
from hil_server.campaign.plan import load_plan
from hil_server.config import test_from_toml as read_back
from hil_server.errors import ConfigurationError

HEAD = """
[campaign]
name = "varied"
test = "docking.toml"
cases = {cases}
seed = 3
sampling = "{sampling}"
"""
VARY = """
[box]
velocity_x_m_s = [0.08, 0.12]

[[vary]]
name = "ship"
key = ["active_vehicle.mass_kg", "active_vehicle.inertia_kg_m2"]
distribution = "normal"
mean = 1.0
sigma = 0.1
low = 0.85
factor = true

[[vary]]
key = "mechanism.friction"
low = 0.05
high = 0.15

[[vary]]
name = "rule"
key = "compensation.part"
distribution = "table"
values = ["none", "phase_lead"]
weights = [0.75, 0.25]
"""
CORRELATION = """
[[correlation]]
between = ["ship", "mechanism.friction"]
coefficient = -0.8
"""


def load(folder, text=VARY, cases=2000, sampling="latin_hypercube"):
    file = folder / "varied_campaign.toml"
    file.write_text(HEAD.format(cases=cases, sampling=sampling) + text)
    return load_plan(file)


@pytest.mark.parametrize("sampling", ["uniform", "latin_hypercube", "normal"])
def test_values_have_the_distributions_of_their_tables(tmp_path, sampling):
    p = load(tmp_path, sampling=sampling)
    assert p.keys == ("velocity_x_m_s", "ship", "mechanism.friction", "rule")
    x = p.conditions()
    np.testing.assert_array_equal(x, load(tmp_path, sampling=sampling).conditions())
    cut = truncnorm((0.85 - 1.0) / 0.1, 4.0, loc=1.0, scale=0.1)
    assert kstest(x[:, 1], cut.cdf).pvalue > 1e-3 and x[:, 1].min() >= 0.85
    assert kstest(x[:, 2], "uniform", (0.05, 0.1)).pvalue > 1e-3
    assert set(x[:, 3]) == {0.0, 1.0} and abs(np.mean(x[:, 3]) - 0.25) < 0.04


def test_correlation_is_of_the_normal_scores(tmp_path):
    p = load(tmp_path, VARY + CORRELATION, sampling="uniform")
    x = p.conditions()
    # of a Gaussian copula: Spearman's coefficient is 6/pi asin(r/2)
    assert abs(spearmanr(x[:, 1], x[:, 2]).statistic - 6 / np.pi * np.arcsin(-0.4)) < 0.03
    assert abs(spearmanr(x[:, 0], x[:, 2]).statistic) < 0.05
    assert kstest(x[:, 2], "uniform", (0.05, 0.1)).pvalue > 1e-3
    assert p.identity != load(tmp_path).identity


def test_settings_multiply_what_the_test_has_and_name_what_a_table_says(tmp_path):
    p = load(tmp_path)
    config = read_back(p.base.as_toml(), p.settings([0.1, 1.1, 0.07, 1.0]))
    mass, inertia = p.base.active_vehicle["mass_kg"], np.array(p.base.active_vehicle["inertia_kg_m2"])
    assert config.active_vehicle["mass_kg"] == pytest.approx(1.1 * mass, rel=1e-15)
    np.testing.assert_allclose(config.active_vehicle["inertia_kg_m2"], 1.1 * inertia, rtol=1e-15)
    assert config.mechanism["friction"] == 0.07 and config.compensation["part"] == "phase_lead"
    assert config.initial_conditions["velocity_x_m_s"] == 0.1


def test_a_heavier_ship_loads_the_unit_more(tmp_path):
    p = load(tmp_path)
    text = read_back(p.base.as_toml(), ["guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.contact_max_s=1.0",
                                        "test.duration_max_s=5.0"]).as_toml()  # fmt: skip
    light, heavy = (run_case(text, 0, p.keys, row, p.settings(row)) for row in ([0.1, 0.85, 0.1, 0.0], [0.1, 1.4, 0.1, 0.0]))
    assert heavy["peak_fx_n"] > 1.02 * light["peak_fx_n"] > 0.0 and heavy["ship"] == 1.4


def test_quantiles_are_scipys():
    u = np.linspace(0.0, 1.0, 101)
    v = variables.Variable("x", ("a.b",), "normal", -1e9, 1e9, 3.0, 2.0)
    np.testing.assert_allclose(v.quantile(u[1:-1]), norm.ppf(u[1:-1], 3.0, 2.0), rtol=1e-12)
    t = variables.Variable("x", ("a.b",), "table", 0.0, 0.0, 0.0, 0.0, (5.0, 1.0), (0.25, 0.75))
    np.testing.assert_array_equal(t.quantile(np.array([0.0, 0.2499, 0.25, 1.0])), [5.0, 5.0, 1.0, 1.0])


@pytest.mark.parametrize("wrong, reported", [
    (VARY.replace('key = "mechanism.friction"', 'key = "friction"'), r"vary\[1\]\.key: .*active_vehicle\.mass_kg"),
    (VARY.replace("high = 0.15", "high = 0.01"), r"vary\[1\]: ends not in order, value \[0\.05, 0\.01\]"),
    (VARY.replace("sigma = 0.1", ""), r"vary\[0\]: .*`mean` and `sigma`"),
    (VARY.replace("weights = [0.75, 0.25]", "weights = [1.0]"), r"vary\[2\]\.weights"),
    (VARY.replace('"mechanism.friction"', '"mechanism.name"').replace("high = 0.15", "high = 0.15\nfactor = true"),
     "mechanism.name: nothing to be"),
    (VARY.replace('name = "rule"', 'name = "ship"'), "two variables of one name"),
    (VARY + CORRELATION.replace('"ship"', '"shop"'), r"correlation\[0\]\.between"),
    (VARY + CORRELATION.replace("-0.8", "-1.5"), r"correlation\[0\]\.coefficient"),
    (VARY + CORRELATION + CORRELATION.replace('"mechanism.friction"', '"rule"').replace("-0.8", "0.8")
     + CORRELATION.replace('"ship"', '"rule"').replace("-0.8", "0.8"), "cannot be together"),
    (VARY + '[rare]\noutcome = "peak_fx_n"\n', "one of `above` and `below`"),
])  # fmt: skip
def test_what_is_wrong_is_reported(tmp_path, wrong, reported):
    with pytest.raises(ConfigurationError, match=reported):
        load(tmp_path, wrong)
