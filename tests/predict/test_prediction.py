"""The pre-test prediction: laws, modes in six dimensions, the verdict, and the gate in front of a live run."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from hil_server.cli import main
from hil_server.config import load_test
from hil_server.config.model import Part, own_delay
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.predict.contact_line import mobility, mode_at, play, restitution_curve
from hil_server.predict.prediction import contact_matrices, predict, series_compliance
from hil_server.predict.stability import (
    Loop,
    contact_modes,
    critical_delay,
    latched_limit,
    phase_budget,
    rebound,
    stability_indicator,
)
from rt_kernels.compensation.effective_mass import relative_inverse_inertia, rotation, skew
from rt_kernels.context import Vehicle, Vehicles
from rt_kernels.multibody.flexible import FlexibleTree

ELASTIC = "stand_configs/programmes/elastic_contact.toml"


def stiffness_along(stiffness_n_per_m, point, normal):
    """(6, 6) of one spring along `normal` at `point`, at and in T: k u u^T, u = (n, p x n)."""
    n = np.array(normal) / np.linalg.norm(normal)
    u = np.concatenate([n, np.cross(point, n)])
    return stiffness_n_per_m * np.outer(u, u)


def test_the_ratio_that_is_shown_is_the_one_that_is_judged():
    """The shipped docking's slowest mode gives back 0.003 of its speed in orbit: no ratio of 1.34 stands beside "inside the band"."""
    found = predict(load_test())
    slow, fast = found.modes
    assert slow.ideal < 0.1 < fast.ideal and slow.restitution / slow.ideal > 1.02
    assert slow.ratio == pytest.approx(1.0 + (slow.restitution - slow.ideal) / 0.1) and fast.ratio == fast.restitution / fast.ideal
    assert all((0.98 <= mode.ratio <= 1.02) == mode.within for mode in found.modes) and found.verdict() == "inside the band"
    wrong = replace(found, modes=[replace(slow, restitution=0.05)])
    assert "give back 0.0500 of its approach, in orbit 0.0030: a difference of more than 0.002" in wrong.verdict()


BOTA = ["sinc_length=512", "fir=true", "force_range_n=[1e4,1e4,1e4]", "moment_range_n_m=[1e3,1e3,1e3]", "device='/dev/ttyUSB0'"]


@pytest.mark.parametrize(("part", "more"), [("rdt", []), ("bota_serial", BOTA)])
def test_a_delay_that_no_file_gives_is_named(part, more, capsys):
    settings = ["test.stand=stands/ethercat_stand.toml", f"stand.wrench_sensor.part={part}"]
    settings += [f"stand.wrench_sensor.{key}" for key in (more or ["address=127.0.0.1"])]
    found = predict(load_test(None, settings))
    (unknown,) = found.unknown
    assert unknown.startswith(f"wrench_sensor.filter_delay_s (of {part}") and ("sinc_length = 512, fir = True" in unknown) == bool(more)
    assert "if these are 0, which is not known: wrench_sensor.filter_delay_s" in found.verdict()
    assert found.origins["sensor"].endswith("the device's own filter NOT KNOWN")
    main(["check", *(word for one in settings for word in ("--set", one))])
    reported = capsys.readouterr().out
    assert "delay unknown, counted as 0 here; a live run is not armed without it: wrench_sensor.filter_delay_s" in reported
    given = predict(load_test(None, [*settings, "stand.wrench_sensor.filter_delay_s=0.01"]))
    assert given.unknown == () and given.ledger["sensor"] == 0.01 and "not known" not in given.verdict()
    assert given.origins["sensor"] == "configured"


def test_a_delay_that_follows_from_the_settings_is_in_the_ledger():
    """A plain sinc filter of 512 counts gives 100 records/s and is one and a half of them late; an OnRobot without its filter is not."""
    settings = ["test.stand=stands/ethercat_stand.toml", "stand.wrench_sensor.part=bota_serial"]
    found = predict(load_test(None, settings + [f"stand.wrench_sensor.{key}" for key in BOTA if key != "fir=true"]))
    assert found.unknown == () and found.ledger["sensor"] == pytest.approx(0.015) and found.origins["sensor"] == "derived"
    assert not found.within
    for keys, seconds in (({}, 0.001875), ({"sinc_length": 51}, 0.001494140625), ({"chop": True}, None), ({"fast": True}, None),
                          ({"configure": False}, None), ({"fir": True, "filter_delay_s": 0.0}, 0.0)):  # fmt: skip
        assert own_delay(Part("wrench_sensors", "bota_serial", keys)) == pytest.approx(seconds), keys
    assert [own_delay(Part("wrench_sensors", "rdt", {"variant": "onrobot", "filter_index": k})) for k in (-1, 0, 2)] == [None, 0.0, None]
    assert all(own_delay(Part("wrench_sensors", name, {})) is None for name in ("robotiq_ft300", "ati_can"))


def test_a_sensor_in_front_of_a_virtual_stand_has_its_own_delay():
    """15 ms of a plain filter: the contact is played with them and judged outside; what nothing gives is named there, too."""
    device = ["stand.wrench_sensor.part=bota_serial", *(f"stand.wrench_sensor.{key}" for key in BOTA if not key.startswith("fir"))]
    found = predict(load_test(None, device))
    assert found.ledger["sensor"] == pytest.approx(0.015) and found.origins["sensor"] == "derived"
    assert found.unknown == () and "outside" in found.verdict()
    found = predict(load_test(None, [*device, "stand.wrench_sensor.fir=true"]))
    assert "sinc_length = 512, fir = True" in found.unknown[0] and "which is not known" in found.verdict()
    assert predict(load_test(None, ["test.stand=stands/ideal_stand.toml", "compensation.part=none", *device])).unknown == ()


def test_critical_delay_against_the_published_and_as_the_border_of_growth():
    def of(f, zeta):
        K = 300 * (2 * math.pi * f) ** 2
        return 300.0, K, 2 * zeta * math.sqrt(300 * K)

    for f, zeta, ms in ((3, 0.1, 10.469), (10, 0.1, 3.141), (20, 0.1, 1.570), (3, 0.05, 5.287), (10, 0.02, 0.636)):
        assert critical_delay(*of(f, zeta)) * 1e3 == pytest.approx(ms, abs=6e-4)
    for zeta in (0.02, 0.05, 0.1):
        M, K, B = of(5, zeta)
        t = critical_delay(M, K, B)
        assert rebound(M, K, B, 0.98 * t) < 1.0 < rebound(M, K, B, 1.02 * t)


def test_phase_budget_and_indicator():
    for f, ms in ((1, 2.006), (3, 0.669), (10, 0.201), (30, 0.067)):
        degrees, seconds = phase_budget(f)
        assert degrees == pytest.approx(0.722, abs=1e-3) and seconds * 1e3 == pytest.approx(ms, abs=1e-3)
    assert stability_indicator(10.469e-3) == pytest.approx(1.02, abs=0.001)


@pytest.mark.parametrize(("drive", "compensator", "zeta", "published"), [
    ((13.25, 0.784, 0.002), "none", 0.02, 0.31), ((13.25, 0.784, 0.002), "none", 0.05, 0.76),
    ((13.25, 0.784, 0.002), "phase_lead", 0.02, 14.6), ((13.25, 0.784, 0.002), "phase_lead", 0.05, 17.8),
    ((60.0, 0.7, 0.002), "none", 0.02, 1.1), ((60.0, 0.7, 0.002), "none", 0.05, 2.8),
    ((7.0, 0.7, 0.003), "none", 0.02, 0.18), ((7.0, 0.7, 0.003), "none", 0.05, 0.46),
    ((7.0, 0.7, 0.003), "phase_lead", 0.02, 8.0), ((7.0, 0.7, 0.003), "phase_lead", 0.05, 9.9),
])  # fmt: skip
def test_latched_limit_against_the_table(drive, compensator, zeta, published):
    frequency, damping, delay = drive
    w = 2.0 * math.pi * frequency
    lead = (delay + 2 * damping / w, 1 / w**2 + 2 * damping * delay / w + 0.5 * delay**2) if compensator == "phase_lead" else (0.0, 0.0)
    # the table's lead has continuous rates: no tick
    assert latched_limit(Loop(delay, frequency, damping, lead, period_s=1e-9), zeta) == pytest.approx(published, rel=0.1)


def test_effective_mass_against_the_closed_form():
    """1/M = sum 1/m + (r x n)^T I^-1 (r x n), for vehicles that stand askew."""
    from scipy.spatial.transform import Rotation

    rng = np.random.default_rng(2)

    def random_vehicle():
        A = rng.normal(size=(3, 3))
        return Vehicle(float(rng.uniform(100, 1000)), A @ A.T * 50 + 100 * np.eye(3),
                       np.concatenate([rng.normal(size=3), Rotation.random(random_state=rng).as_quat()]))  # fmt: skip

    vehicles = Vehicles(active=random_vehicle(), target=random_vehicle())
    X_TA = np.concatenate([0.1 * rng.normal(size=3), Rotation.random(random_state=rng).as_quat()])
    n = rng.normal(size=3)
    n /= np.linalg.norm(n)
    p = 0.2 * rng.normal(size=3)
    inverse = 0.0
    R_VT = Rotation.from_quat(vehicles.target.X_port[3:])
    X_V = vehicles.target.X_port[:3] + R_VT.apply(p)  # contact point in the target's body frame
    R_TA = Rotation.from_quat(X_TA[3:])
    R_CA = Rotation.from_quat(vehicles.active.X_port[3:])
    X_C = vehicles.active.X_port[:3] + R_CA.apply(R_TA.inv().apply(p - X_TA[:3]))
    for vehicle, r, direction in (("target", X_V, R_VT.apply(n)), ("active", X_C, (R_CA * R_TA.inv()).apply(n))):
        arm = np.cross(r, direction)
        v = getattr(vehicles, vehicle)
        inverse += 1 / v.mass_kg + arm @ np.linalg.solve(v.inertia_kg_m2, arm)
    u = np.concatenate([n, np.cross(p, n)])
    assert u @ relative_inverse_inertia(vehicles, X_TA) @ u == pytest.approx(inverse, rel=1e-12)


def test_modes_of_a_spring_and_its_series_compliance():
    K = stiffness_along(1e5, [0, 0.2, 0.1], [1, 0.2, 0])
    L = np.diag([1 / 300] * 3 + [1 / 75] * 3)
    (mode,) = contact_modes(L, K)
    n = np.array([1, 0.2, 0]) / np.linalg.norm([1, 0.2, 0])
    u = np.concatenate([n, np.cross([0, 0.2, 0.1], n)])
    assert mode.effective_mass == pytest.approx(1 / (u @ L @ u), rel=1e-9)
    assert mode.frequency_hz == pytest.approx(math.sqrt(1e5 * (u @ L @ u)) / 2 / math.pi, rel=1e-9)
    np.testing.assert_allclose(mode.shape / mode.shape[0], u / u[0], atol=1e-9)
    # an arm as stiff as the contact along it: half the stiffness
    softer = contact_modes(L, K, series=np.outer(u, u) / (u @ u) ** 2 / 1e5)[0]
    assert softer.frequency_hz == pytest.approx(mode.frequency_hz / math.sqrt(2), rel=1e-6)


def test_modes_with_crafts_that_bend_are_those_of_masses_on_springs():
    """Rigid modes alone: as the whole masses. A mass m on a spring k against M, met on a spring K: the two frequencies of the textbook, of
    which the contact's own is taken; what seems to move is K over its square."""
    K = stiffness_along(1e5, [0, 0.2, 0.1], [1, 0.2, 0]) + stiffness_along(3e4, [0, -0.2, 0.1], [1, 0, 0.1])
    L = np.diag([1 / 300] * 3 + [1 / 75] * 3)
    B = 1e-3 * K
    for whole, same in zip(contact_modes(L, K, B), contact_modes(L, K, B, inner=(np.zeros(6), np.linalg.cholesky(L))), strict=True):
        for name in ("frequency_hz", "zeta", "effective_mass", "stiffness"):
            assert getattr(same, name) == pytest.approx(getattr(whole, name), rel=1e-9), name
        np.testing.assert_allclose(np.abs(same.shape), np.abs(whole.shape), atol=1e-9)
    m, M, k, stiff = 20.0, 600.0, 4e4, 5e5
    squares, z = np.linalg.eigh(np.array([[k / m, -k / math.sqrt(m * M)], [-k / math.sqrt(m * M), k / M]]))
    shapes = np.zeros((6, 2))
    shapes[0] = z[0] / math.sqrt(m)
    closed = np.sort(np.linalg.eigvals(np.array([[(k + stiff) / m, -k / m], [-k / M, k / M]])))
    (mode,) = contact_modes(shapes @ shapes.T + 1e-12 * np.eye(6), np.diag([stiff, 0, 0, 0, 0, 0]), inner=(np.abs(squares), shapes))
    assert mode.frequency_hz == pytest.approx(math.sqrt(closed[1]) / 2 / math.pi, rel=1e-6)
    assert mode.slowest_hz == pytest.approx(math.sqrt(closed[0]) / 2 / math.pi, rel=1e-6)
    assert mode.stiffness == pytest.approx(stiff, rel=1e-9) and mode.effective_mass == pytest.approx(stiff / closed[1], rel=1e-6)


def test_mobility_of_a_craft_with_joints_is_that_of_its_tree():
    """Both ports of a light unit on two sprung hinges and a rigid target: J M^-1 J^T of the tree where the joints are free, that of the
    whole mass where they are locked."""
    probe = ["test.active_vehicle=manipulators/transport_ship_probe.toml", "test.stand=stands/ideal_stand.toml"]
    test = assembly.simulation(load_test(None, probe))
    X_TA, vehicles = test.context["start"].X_TA, test.context["vehicles"]
    craft, port = vehicles.active.craft, vehicles.active.craft.port("docking")
    tree = FlexibleTree(craft.links)
    q = tree.neutral()
    J = tree.jacobian(q, port.body, port.position)
    R = rotation(X_TA[3:]) @ port.rotation.T @ tree.pose(q, port.body)[0].T  # axes of the root to T
    to_T = np.block([[R, skew(X_TA[:3]) @ R], [np.zeros((3, 3)), R]])  # of the point at the port, root axes
    own = to_T @ J @ np.linalg.solve(tree.mass_matrix(q), J.T) @ to_T.T
    massless = replace(vehicles.active, mass_kg=1e15, inertia_kg_m2=1e15 * np.eye(3))
    expected = own + relative_inverse_inertia(replace(vehicles, active=massless), X_TA)
    np.testing.assert_allclose(mobility(test), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())
    assert mobility(test)[1, 1] > 5.0 * relative_inverse_inertia(vehicles, X_TA)[1, 1]
    held = assembly.simulation(load_test(None, [*probe, "active_vehicle.joint.pitch.mode=locked", "active_vehicle.joint.yaw.mode=locked"]))
    np.testing.assert_allclose(mobility(held), relative_inverse_inertia(vehicles, X_TA), rtol=1e-9, atol=1e-15)


def test_compliance_of_an_arm_is_in_series_with_the_contact():
    """A spring along X at the port: 1/K = 1/K1 + C_xx, wherever the port of the arm points; the contact's damper sees its own share."""
    before = predict(load_test(ELASTIC, ["mechanism.damping_n_s_per_m=400.0"])).modes[0]
    C = np.diag([2e-6, 0.5 / 106590.0, 1e-6, 1e-6, 1e-6, 1e-6])
    rows = "[" + ", ".join(str([float(x) for x in row]) for row in C) + "]"
    softer = 1.0 / (1.0 + 106590.0 * 2e-6)
    for vehicle in ("active_vehicle", "target_vehicle"):
        after = predict(load_test(ELASTIC, ["mechanism.damping_n_s_per_m=400.0", f"{vehicle}.port_compliance_rows={rows}"])).modes[0]
        assert after.effective_mass_kg == pytest.approx(before.effective_mass_kg, rel=1e-6)
        assert after.frequency_hz == pytest.approx(before.frequency_hz * math.sqrt(softer), rel=1e-4)
        assert after.damping_ratio == pytest.approx(before.damping_ratio * softer**1.5, rel=1e-3)
    half = math.sqrt(0.5)
    X = np.array([0.3, 0.1, 0.0, 0.0, 0.0, half, half])  # A turned by 90 degrees about Z: Y_A is -X_T
    found = series_compliance(Vehicles(active=Vehicle(1.0, np.eye(3), port_compliance=C), target=Vehicle(1.0, np.eye(3))), X)
    # a force along X of T through its origin is one along -Y of A, 0.1 m beside A's origin
    assert found[0, 0] == pytest.approx(C[1, 1] + 0.1**2 * C[5, 5], rel=1e-12)
    with pytest.raises(ConfigurationError, match="active_vehicle.port_compliance_rows.*no compliance of a structure"):
        load_test(ELASTIC, ["active_vehicle.port_compliance_rows=" + rows.replace("2e-06", "-2e-06")])


@pytest.mark.parametrize("normal", [[1.0, 0.3, 0.0], [0.1, 0.0, -1.0], [0.03, -0.6, 0.8]])
def test_stiffness_of_the_mechanism_is_measured_on_its_own_model(normal):
    keys = [f"mechanism.normal={normal}", "mechanism.contact_point_m=[0.0, 0.1, 0.05]", "mechanism.damping_n_s_per_m=200.0"]
    config = load_test(ELASTIC, keys)
    test = assembly.simulation(config)
    K, B = contact_matrices(test.context["mechanism"], test.context["start"].X_TA, 1e-3)
    p = test.context["start"].X_TA[:3] + [0.0, 0.1, 0.05]
    np.testing.assert_allclose(K, stiffness_along(106590.0, p, normal), rtol=1e-3, atol=20.0)
    np.testing.assert_allclose(B, stiffness_along(200.0, p, normal), rtol=1e-3, atol=0.05)


def test_prediction_of_the_programme_and_its_verdict(capsys, tmp_path):
    assert main(["predict", ELASTIC, "--picture", str(tmp_path / "p.png"), "--json", str(tmp_path / "reported.json")]) == 0
    found = json.loads((tmp_path / "reported.json").read_text())
    assert found["modes"][-1]["frequency_hz"] == pytest.approx(3.0, abs=1e-3) and found["within"]
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert main(["predict", ELASTIC, "--set", "compensation.part=none"]) == 1
    reported = capsys.readouterr().out
    assert "OUTSIDE" in reported and "outside 0.98...1.02" in reported
    assert "2.000 ms  configured" in reported and "-1.000 ms  derived" in reported


def test_live_run_does_not_arm_against_the_prediction_unless_told():
    from hil_server.errors import VerdictError
    from hil_server.run.session import Options, _foreseen, _permitted

    config, quiet = load_test(ELASTIC, ["compensation.part=none"]), Options(quiet=True)
    foreseen = _foreseen(config, assembly.simulation(config), quiet)
    with pytest.raises(VerdictError, match="not armed: contact at 3.00 Hz"):
        _permitted(foreseen, quiet)
    (note,) = _permitted(foreseen, Options(quiet=True, force=True))
    assert "armed by --force" in note
    assert _permitted(_foreseen(load_test(ELASTIC), assembly.simulation(load_test(ELASTIC)), quiet), quiet) == []
    air = load_test("stand_configs/programmes/identify.toml")
    assert _foreseen(air, assembly.simulation(air), quiet) is None


def test_damped_contact_without_any_delay_is_the_closed_form():
    """Ideal stand: e of the played contact is exp(-pi zeta / sqrt(1 - zeta^2)), along X and along an oblique screw."""
    test = assembly.simulation(load_test(ELASTIC, ["test.stand=stands/ideal_stand.toml", "compensation.part=none", "test.rate_hz=4000"]))
    for zeta in (0.0, 0.05, 0.1):
        for screw in ((1, 0, 0, 0, 0, 0), (0.9, 0.2, -0.3, 0.0, 0.1, 0.05)):
            played = play(test, mode_at(test, 3.0, zeta, screw), 0.02)
            assert played.restitution == pytest.approx(math.exp(-math.pi * zeta / math.sqrt(1 - zeta**2)), rel=3e-3)
            assert played.lead == (0.0, 0.0) and not played.refused


def test_curve_over_the_frequency_gives_a_compensator_the_true_stiffness():
    test = assembly.simulation(load_test(ELASTIC))
    for name, keys, band in (("none", {}, (1.2, 2.0)), ("lead_and_pose_force", {}, (0.98, 1.02)), ("smith", {}, (0.98, 1.02))):
        assert all(band[0] < e < band[1] for e in restitution_curve(test, (1, 3), compensator=(name, keys))), name
    with pytest.raises(ConfigurationError, match="contact"):
        restitution_curve(test, (3,), compensator=("phased", {}))


def test_no_compensator_is_known_by_name():
    """The prediction asks the part that is configured; a name in it would be a second description of it."""
    import re
    from pathlib import Path

    from hil_server import predict as room
    from hil_server import registry

    names = set(registry.PARTS["compensation"]) - {"none"}
    for module in ("prediction", "stability", "contact_line"):
        text = Path(room.__path__[0], f"{module}.py").read_text()
        assert not [name for name in names if re.search(rf"\b{name}\b", text)], module
        assert '"none"' not in text and "'none'" not in text
