"""Lead of the platform's six directions: the axes it is given in, what it inverts, the way through ledger, log and replay."""

import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import load_test, physics
from hil_server.config.model import DriveModel, Stand
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.delay_ledger import ledger
from hil_server.line.platform_lead import inverse, platform_at, platform_model
from hil_server.line.run_header import header
from hil_server.line.stand_response import StandResponse
from hil_server.run.replay import DELAYS, calibration
from rt_kernels.context import Mounting

STAND = ["test.stand=stands/hydraulic_stand.toml"]
PROGRAMME = "stand_configs/programmes/elastic_contact.toml"


@pytest.fixture(scope="module")
def test():
    return assembly.simulation(load_test(PROGRAMME, STAND))


def a_pose(rng):
    return np.concatenate([rng.normal(size=3), Rotation.from_rotvec(rng.normal(size=3)).as_quat()])


@pytest.mark.parametrize("unit", ["target", "active"])
@pytest.mark.parametrize("cell_on", ["floor", "platform"])
def test_twist_of_the_ports_by_that_of_the_platform(unit, cell_on):
    """V_TA = S V_WP against differences of the poses, for all four mountings."""
    rng = np.random.default_rng(4)
    mounting = Mounting(unit_on_load_cell=unit, load_cell_on=cell_on, X_WF=a_pose(rng), X_PM=a_pose(rng))
    X_TA = a_pose(rng)
    X_WP, S = platform_at(mounting, X_TA)
    target_fixed = (unit == "target") == (cell_on == "floor")

    def relative(X):
        X_FM = physics.multiply(inverse(np.asarray(mounting.X_WF)), physics.multiply(X, mounting.X_PM))
        return X_FM if target_fixed else inverse(X_FM)

    at = relative(X_WP)
    assert at[:3] == pytest.approx(X_TA[:3], abs=1e-12)
    assert abs(at[3:] @ X_TA[3:]) == pytest.approx(1.0, abs=1e-12)
    h = 1e-6
    for k in range(6):
        V = np.eye(6)[k]
        moved = np.concatenate([X_WP[:3] + h * V[:3], (Rotation.from_rotvec(h * V[3:]) * Rotation.from_quat(X_WP[3:])).as_quat()])
        X = relative(moved)
        turn = (Rotation.from_quat(X[3:]) * Rotation.from_quat(X_TA[3:]).inv()).as_rotvec()
        assert np.concatenate([X[:3] - X_TA[:3], turn]) / h == pytest.approx(S[:, k], abs=2e-5)


def test_lead_inverts_the_platform_in_six_directions_where_one_drive_does_not(test):
    """|T (1 + L1 s + L2 s^2) exp(-s t) - 1| at 1 and 3 Hz: below 4 % in every direction with the matrices; across the docking axis the lead
    of that axis alone leaves more than that at 1 Hz, and half of the motion at 3 Hz."""
    model = platform_model(test.context["stand_model"], "configured", test.context)
    rest = test.ledger.total_s - test.ledger.as_dict()["transport"] - test.ledger.drive_lag_s
    delays = test.context["delays"]
    L1, L2 = (np.reshape(rows, (6, 6)) for rows in (delays.lead_rate, delays.lead_acceleration))
    X_WP, S = platform_at(test.context["mounting"], test.context["start"].X_TA)
    response = StandResponse(test.context["stand_model"], test.context["platform"], X_WP)
    scale = np.array([1.0] * 3 + [test.context["platform"].radius] * 3)
    w, zeta, tau = 2.0 * math.pi * delays.drive_frequency_hz, delays.drive_damping, delays.transport_s
    l1, l2 = tau + 2.0 * zeta / w, 1.0 / w**2 + 2.0 * zeta * tau / w + 0.5 * tau**2
    for f, most, least in ((1.0, 0.02, 0.03), (3.0, 0.04, 0.4)):
        s = 2j * math.pi * f
        T = S @ response.response(f) @ np.linalg.inv(S) * np.exp(-s * rest)
        error = scale[:, None] * (T @ (np.eye(6) + L1 * s + L2 * s * s) - np.eye(6)) / scale
        assert np.abs(error).max() < most
        alone = T @ (np.eye(6) * (1.0 + l1 * s + l2 * s * s)) - np.eye(6)
        assert abs(alone[0, 0]) < 0.03 and abs(alone[1, 1]) > least
    assert model.lead(rest).L1 == pytest.approx(L1, rel=1e-12)


def test_one_drive_is_the_nearest_along_the_docking_axis(test):
    """Second order and delay: within 2 % of the response along the axis up to 10 Hz; the terms add up."""
    X_WP, S = platform_at(test.context["mounting"], test.context["start"].X_TA)
    response = StandResponse(test.context["stand_model"], test.context["platform"], X_WP)
    entries = test.ledger
    w, zeta = 2.0 * math.pi * entries.drive_frequency_hz, entries.drive_damping
    for f in (0.5, 2.0, 5.0, 10.0):
        s = 2j * math.pi * f
        model = w * w / (s * s + 2.0 * zeta * w * s + w * w) * np.exp(-s * entries.as_dict()["transport"])
        assert abs(model - (S @ response.response(f) @ np.linalg.inv(S))[0, 0]) < 0.02
    assert entries.total_s == pytest.approx(sum(term.seconds for term in entries.terms), rel=1e-12)
    assert entries.origins()["drive"] == "configured"


def test_a_processor_without_fused_multiplication_finds_the_same_bits():
    """The C library and numpy choose by what the processor has: here it has less for them."""
    print_them = (
        "from hil_server.config import load_test; from hil_server.line import assembly; "
        f"print(repr(assembly.simulation(load_test(None, {STAND!r})).ledger.sums()))"
    )
    less = {
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX,-FMA4,-AVX512F",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
        "OPENBLAS_CORETYPE": "Nehalem",
    }
    found = subprocess.run([sys.executable, "-c", print_them], env=os.environ | less, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == repr(assembly.simulation(load_test(None, STAND)).ledger.sums())


def test_a_linear_stand_has_no_matrices():
    entries = ledger(DriveModel(13.25, 0.784, 0.002, "configured"), period_s=1e-3, filter_delay_s=0.0)
    assert entries.platform is None and entries.sums().lead_rate is None
    assert Stand({"virtual": {"part": "virtual_stand"}}).machine is None


def test_identified_model_comes_before_the_virtual_stand_and_a_drive_model_before_neither():
    stand = load_test(PROGRAMME, STAND).stand
    own, origin = Stand(stand).machine
    assert origin == "configured" and own["valve_overlap"] == 0.002
    other, origin = Stand({**stand, "stand_model": {**stand["virtual"], "valve_overlap": 0.003, "date": "2026-11-20"}}).machine
    assert origin == "identified 2026-11-20" and other["valve_overlap"] == 0.003
    assert Stand({**stand, "drive_model": {"frequency_hz": 10.0, "damping": 1.0, "delay_s": 0.0}}).machine is None


def test_matrices_go_through_the_log_into_a_replay(test):
    from dataclasses import asdict

    kept = asdict(test.context["delays"])

    def log(**change):
        calibration = {"context": {"delays": kept | change, "sensor_scale": None}}
        return SimpleNamespace(path="a.mcap", header=SimpleNamespace(calibration=calibration))

    assert asdict(calibration(log())["delays"]) == kept
    old = {key: kept[key] for key in DELAYS}
    without = SimpleNamespace(path="a", header=SimpleNamespace(calibration={"context": {"delays": old, "sensor_scale": None}}))
    assert calibration(without)["delays"].lead_rate is None
    for bad in ([1.0] * 35, [math.nan] * 36, "x", [1e9] * 36):
        with pytest.raises(ConfigurationError, match="lead_rate.*36 numbers"):
            calibration(log(lead_rate=bad))


def test_run_says_its_lag_by_direction(test):
    """In the header, and so in report and description of the run; of drives alone there is none."""
    (reported,) = [note for note in header(test, "run", "simulation", {}).notes if note.startswith("lag by direction")]
    lag = test.ledger.platform.L1[1, 1]
    assert f"Y {1e3 * lag:.1f} ms" in reported and "about Z" in reported
    linear = assembly.simulation(load_test("stand_configs/programmes/elastic_contact.toml"))
    assert not any(note.startswith("lag by direction") for note in header(linear, "run", "simulation", {}).notes)
