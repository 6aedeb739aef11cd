"""The table [orbit]: what is refused and in which words, and the state that it describes."""

import numpy as np
import pytest

from hil_server.config import load_test, physics, test_from_toml
from hil_server.config.tables import EARTH_M3_S2
from hil_server.errors import ConfigurationError
from hil_server.line import assembly

GIVEN = {"radius_km": "6778.0", "radius_direction": "[0.0, 2.0, 0.0]", "flight_direction": "[3.0, 0.5, 0.0]"}


def settings(**changed):
    return [f"orbit.{key}={value}" for key, value in (GIVEN | changed).items() if value is not None]


def loaded(*further, **changed):
    return load_test(None, [*settings(**changed), *further])


@pytest.mark.parametrize("changed, words", [
    ({"radius_km": None}, "radius_km: required key is missing"),
    ({"radius_km": "400.0"}, "orbit.radius_km: inside of the Earth, value 400.0, limit at least 6378.14, from the centre"),
    ({"radius_km": "-1.0"}, "orbit.radius_km: must be a number within 1 ... 1e\\+09 km, got -1.0"),
    ({"radius_km": "'far'"}, "orbit.radius_km: must be a number within 1 ... 1e\\+09 km, got 'far'"),
    ({"radius": "7000.0"}, "orbit.radius: unknown key, value 7000.0, did you mean 'radius_km'?"),
    ({"radius_direction": "[0.0, 0.0, 0.0]"}, "orbit.radius_direction: no direction, value \\[0.0, 0.0, 0.0\\], limit a vector"),
    ({"flight_direction": "[0.0, 0.0, 0.0]"}, "orbit.flight_direction: no direction across the radius"),
    ({"flight_direction": "[0.0, -1.0, 0.0]"}, "orbit.flight_direction: no direction across the radius"),
    ({"flight_direction": "[0.0, 1.0]"}, "orbit.flight_direction: must be 3 numbers"),
    ({"eccentricity": "1.0"}, "orbit.eccentricity: must be a number within 0 ... 0.99"),
    ({"target_attitude": "'free'"}, "orbit.target_attitude: must be one of orbital, inertial"),
    ({"gravitational_parameter_m3_per_s2": "-4e14"}, "orbit.gravitational_parameter_m3_per_s2: must be a number within 1 ... 1e\\+21"),
    ({"radius_km": "6000.0", "gravitational_parameter_m3_per_s2": "1e17"}, "orbit.radius_km: orbital rate 0.0215 rad/s"),
])  # fmt: skip
def test_an_impossible_orbit_is_refused_in_one_line(changed, words):
    with pytest.raises(ConfigurationError, match=words):
        loaded(**changed)


def test_the_orbital_rate_is_that_of_the_orbit():
    expected = -np.sqrt(EARTH_M3_S2 / 6.778e6**3)  # up along Y, flight along X: about -Z
    for further in ((), (f"initial_conditions.orbital_rate_rad_s=[0.0, 0.0, {1.005 * expected}]",)):
        context = assembly.base_context(loaded(*further))
        np.testing.assert_allclose(context["start"].orbital_rate_rad_s, [0.0, 0.0, expected], rtol=1e-12, atol=1e-18)
    at_rest = assembly.base_context(loaded(target_attitude="'inertial'"))
    np.testing.assert_array_equal(at_rest["start"].orbital_rate_rad_s, 0.0)
    for rate, attitude in (([0.0, 0.0, 0.00113], "orbital"), ([0.0, 0.0, -0.00113], "inertial")):
        with pytest.raises(ConfigurationError, match="initial_conditions.orbital_rate_rad_s: not that of the orbit"):
            loaded(f"initial_conditions.orbital_rate_rad_s={rate}", target_attitude=f"'{attitude}'")


def test_a_part_without_gravity_is_refused():
    with pytest.raises(ConfigurationError, match="dynamics.part: a part without gravity, value 'manipulator_payload', limit no table"):
        load_test("programmes/berthing.toml", settings())


def test_without_the_table_there_is_no_orbit():
    context = assembly.base_context(load_test())
    assert context["orbit"] is None and not np.any(context["start"].orbital_rate_rad_s)


def test_the_table_survives_the_way_through_the_log():
    config = loaded(eccentricity="0.1")
    again = test_from_toml(config.as_toml())
    assert again.orbit == config.orbit and again.orbit["target_attitude"] == "orbital" and again.hash == config.hash


@pytest.mark.parametrize("eccentricity, anomaly_deg", [(0.0, 40.0), (0.1, 0.0), (0.3, 75.0), (0.7, 200.0)])
def test_the_state_has_the_elements_of_the_table(eccentricity, anomaly_deg):
    """Eccentricity vector and anomaly, found back from position and velocity."""
    orbit = loaded(eccentricity=eccentricity, true_anomaly_deg=anomaly_deg).orbit
    R, V = physics.orbital_state(orbit)
    mu = orbit["gravitational_parameter_m3_per_s2"]
    np.testing.assert_allclose(R, [0.0, 6.778e6, 0.0])
    assert V[0] > 0.0 and V[2] == 0.0
    vector = np.cross(V, np.cross(R, V)) / mu - R / np.linalg.norm(R)
    assert abs(np.linalg.norm(vector) - eccentricity) < 1e-12
    if eccentricity:
        cosine = vector @ R / np.linalg.norm(R) / np.linalg.norm(vector)
        assert abs(cosine - np.cos(np.radians(anomaly_deg))) < 1e-12
        assert np.sign(R @ V) == np.sign(np.round(np.sin(np.radians(anomaly_deg)), 12))
