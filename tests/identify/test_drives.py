"""Identification on the virtual stand: what it finds against what the stand was given."""


import numpy as np
import pytest

from hil_server.config import load_test
from hil_server.errors import ConfigurationError
from hil_server.identify.drives import fit_model, meets_spec, second_order, verdict_line, write_stand
from hil_server.identify.stand import identify_stand_log
from hil_server.run.identification import feels_load, run_on
from rt_kernels.extends import read_tables

STAND = "stand_configs/stands/docking_stand.toml"
ELECTRIC = "stand_configs/stands/electric_stand.toml"
NOISE = ("stand.virtual.leg_noise_m=1e-5",)


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return run_on(STAND, NOISE, out=str(tmp_path_factory.mktemp("spec")))


def test_model_of_the_default_stand(spec):
    """13.25 Hz, 0.784, 2 ms under 10 um of noise on the legs: 2 %, 2 %, 0.2 ms; -2 dB and -70 degrees at 10 Hz."""
    found, _ = spec
    for leg in (*found.legs, found.platform):
        assert leg.frequency_hz == pytest.approx(13.25, rel=0.02)
        assert leg.damping == pytest.approx(0.784, rel=0.02)
        assert leg.delay_s == pytest.approx(0.002, abs=0.2e-3)
        assert leg.gain == pytest.approx(1.0, abs=0.002)
        assert not leg.dead_band_found
        assert leg.confidence > 0.97
    db, degrees = found.without_delay[0].at_spec()
    assert db == pytest.approx(-2.0, abs=0.1) and degrees == pytest.approx(-70.0, abs=1.0)
    assert found.within_spec


def test_uneven_resonant_drives_with_dead_band(tmp_path):
    """Every leg its own frequency; a dead band of 50 um is found and measured."""
    spread = (0.95, 1.0, 1.05, 1.0, 0.9, 1.1)
    keys = ("stand.virtual.drive_dead_band_m=5e-5", f"stand.virtual.drive_spread={list(spread)}")
    found, _ = run_on(STAND, (*NOISE, *keys), out=str(tmp_path))
    for leg, share in zip(found.legs, spread, strict=True):
        assert leg.dead_band_found
        assert leg.dead_band_m == pytest.approx(5e-5, rel=0.1)
        assert leg.frequency_hz == pytest.approx(13.25 * share, rel=0.02)
    assert found.model["dead_band_m"] == pytest.approx(5e-5, rel=0.1)


def test_fast_and_slow_drives_with_a_sensor_delay_of_their_own(tmp_path):
    keys = ("stand.virtual.drive_frequency_hz=7.0", "stand.virtual.drive_damping=0.7", "stand.virtual.drive_delay_s=0.003")
    found, _ = run_on(STAND, (*NOISE, *keys, "stand.virtual.sensor_delay_s=0.003"), out=str(tmp_path))
    assert found.model["frequency_hz"] == pytest.approx(7.0, rel=0.02)
    assert found.model["damping"] == pytest.approx(0.7, rel=0.02)
    assert found.model["delay_s"] == pytest.approx(0.003, abs=0.2e-3)
    assert not found.within_spec


def test_result_goes_into_the_stand_file_and_into_the_ledger(spec, tmp_path):
    found, _ = spec
    target = tmp_path / "identified.toml"
    write_stand(STAND, target, found.model)
    write_stand(target, target, found.model)  # over itself
    assert target.read_text().count("[drive_model]") == 1
    config = load_test("stand_configs/programmes/elastic_contact.toml", (f'test.stand="{target}"',))
    from hil_server.line import assembly

    test = assembly.simulation(config)
    assert test.ledger.drive_frequency_hz == pytest.approx(found.model["frequency_hz"], rel=1e-5)
    drive = next(term for term in test.ledger.terms if term.name == "drive")
    assert drive.origin == f"identified {found.date}"


def test_fit_says_how_sure_it_is():
    """Scatter of the fit over noisy responses is what it claims, on the safe side."""
    rng = np.random.default_rng(1)
    f = np.array([0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20.0])
    true = second_order(f, 1.0, 13.25, 0.784, 0.004)
    noise = np.full(len(f), 2e-3)
    fits = []
    for _ in range(25):
        x, sigma = fit_model(f, true + noise / np.sqrt(2) * (rng.normal(size=len(f)) + 1j * rng.normal(size=len(f))), noise)
        fits.append((x - [1.0, 13.25, 0.784, 0.004]) / sigma)
    scale = np.sqrt(np.mean(np.square(fits), axis=0))
    assert np.all(scale > 0.3) and np.all(scale < 1.5)


def test_the_verdict_is_of_the_figures_that_it_prints():
    """What is printed as the bound is inside; the next figure is not. 70.1 degrees are not called inside "70 degrees"."""
    for db, deg, inside in ((2.0499, 70.5, True), (2.0501, 70.5049, True), (2.06, 10.0, False), (0.1, 70.51, False)):
        assert meets_spec(db, deg) is inside
        line = verdict_line(meets_spec(db, deg), "the legs", db, deg)
        assert line.startswith(("inside" if inside else "OUTSIDE") + " 2.05 dB and 70.5 degrees at 10 Hz")
        assert f"reach {db:.2f} dB and {deg:.2f} degrees" in line


def test_electric_cylinders_are_identified_as_drives(tmp_path):
    """Ten times the noise of the stand: each figure of its file within four standard deviations. Its run is no evidence of a hydraulic
    machine, and says why. (A whole run: the fit needs all of the excitation.)"""
    assert not feels_load(ELECTRIC)
    known = read_tables(ELECTRIC)["drive_model"]
    found, log = run_on(ELECTRIC, ("stand.virtual.leg_noise_m=2e-5", "stand.virtual.seed=2"), out=str(tmp_path))
    assert found.lacking == [] and found.model["confidence"] > 0.95
    for key, sigma in (("frequency_hz", "frequency_sigma_hz"), ("damping", "damping_sigma"), ("delay_s", "delay_sigma_s")):
        assert abs(found.model[key] - known[key]) <= 4.0 * np.hypot(found.model[sigma], known[sigma]), key
    assert found.model["gain"] == pytest.approx(known["gain"], abs=0.005)
    with pytest.raises(ConfigurationError, match=r"no part in six directions \(guidance.six_rate_rms_m_s\), which a hydraulic stand needs"):
        identify_stand_log(log)
