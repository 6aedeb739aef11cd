"""Loading a test: what is accepted, what is refused and in which words, overrides, and the way back out of a log."""

import math
import os
import tomllib

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server.config import SHIPPED, criticality, load_test, mounting_poses, parse_override, pose, test_from_toml, toml_text
from hil_server.errors import ConfigurationError


def faults(path, overrides=()):
    with pytest.raises(ConfigurationError) as caught:
        load_test(path, overrides)
    assert all("\n" not in line for line in caught.value.faults)
    return list(caught.value.faults)


def test_whole_test_loads_with_defaults(files):
    config = load_test(files())
    assert config.test["rate_hz"] == 1000 and config.test["notes"] == ""
    assert config.initial_conditions["yaw_deg"] == 0.0 and config.initial_conditions["limits"]["lateral_z_m"] == 0.1
    assert config.part("dynamics") == ("fake", {"gain": 10.0})
    assert config.stand["virtual"]["extra"] == {"seed": 1, "noise": [0.1, 0.2]}
    assert set(config.paths) == {"test", "stand", "active_vehicle", "target_vehicle", "mechanism"}
    assert len(config.sources) == 5 and "mass_kg = 6000.0" in config.sources[str(config.paths["target_vehicle"])]


def test_document_survives_the_way_through_the_log(files):
    config = load_test(files(), ["test.notes=quote \" and \\ back"])
    again = test_from_toml(config.as_toml())
    assert again.document == config.document and again.hash == config.hash
    assert test_from_toml(config.as_toml(), ["compensation.gain=11"]).hash != config.hash


def test_gain_changed_in_its_last_digit_changes_the_hash(files):
    config = load_test(files())
    assert load_test(files(), [f"compensation.gain={math.nextafter(10.0, 11.0)!r}"]).hash != config.hash


def test_every_independent_fault_is_reported_at_once(files):
    path = files(
        test=("rate_hz = 1000\nduration_max_s = 20.0", 'rate_hz = "fast"\nduration_max_s = nan\ndescripton = "x"'),
        stand=('"target"\nload_cell_position_m = [3.0, 0.0, 2.0]', '"traget"\nload_cell_position_m = [3.0, inf]'),
        active=("mass_kg = 6000.0", "mass_kg = -6.0"),
        target=("mass_kg = 6000.0", "mas_kg = 6000.0"),
        mechanism=("gain = 5.0", "gain = 5.0\norder = 9\nactive = 1"),
    )  # fmt: skip
    text = "\n".join(faults(path))
    folder = path.parent
    for expected in (
        f"{folder}/test.toml: test.rate_hz: must be a number within 100 ... 4000 Hz, got 'fast'",
        f"{folder}/test.toml: test.duration_max_s: must be a number within 0.01 ... 86400 s, got nan",
        f"{folder}/test.toml: test.descripton: unknown key, value 'x', did you mean 'description'?",
        f"{folder}/stand.toml: mounting.unit_on_load_cell: must be one of target, active, got 'traget'",
        f"{folder}/stand.toml: mounting.load_cell_position_m[1]: must be a number within -50 ... 50 m, got inf",
        f"{folder}/stand.toml: mounting.load_cell_position_m: must be 3 numbers within -50 ... 50 m, got 2: [3.0, inf]",
        f"{folder}/active.toml: mass_kg: must be a number within 1 ... 1e+07 kg, got -6.0",
        f"{folder}/target.toml: mass_kg: required key is missing: a number within 1 ... 1e+07 kg (mass)",
        f"{folder}/target.toml: mas_kg: unknown key, value 6000.0, did you mean 'mass_kg'?",
        f"{folder}/mechanism.toml: order: must be a whole number within 1 ... 8, got 9",
        f"{folder}/mechanism.toml: active: must be true or false, got 1",
    ):
        assert expected in text, f"{expected}\nnot in\n{text}"
    assert len(text.splitlines()) == 11


def test_yes_is_no_number_and_a_number_is_no_text(files):
    assert "must be a number within 1 ... 1e+07 kg, got true" in faults(files(), ["active_vehicle.mass_kg=true"])[0]
    assert "must be text, got 3" in faults(files(), ["test.name=3"])[0]
    assert "must be a whole number within 1 ... 8, got 2.0" in faults(files(), ["dynamics.order=2.0"])[0]


def test_free_table_is_looked_into(files):
    assert "virtual.extra.noise[1]: must be a finite number" in faults(files(stand=("[0.1, 0.2]", "[0.1, inf]")))[0]
    assert "virtual.extra.seed: must be a finite number, text" in faults(files(stand=("seed = 1", "seed = 2024-01-01")))[0]


def test_platform_is_checked_by_its_own_declaration(files):
    assert "platform.leg_rate_max_m_s: must be a number within" in faults(files(stand=("rate_max_m_s = 0.5", "rate_max_m_s = nan")))[0]
    assert "platform.leg_rate_max_ms: unknown key" in "".join(faults(files(stand=("rate_max_m_s =", "rate_max_ms ="))))


def test_keys_that_contradict_each_other(files):
    found = faults(files(), ["stand.platform.leg_length_min_m=4.9"])
    assert len(found) == 1 and "platform" in found[0] and "leg" in found[0]
    assert faults(files(mechanism=("gain = 5.0", "gain = 13.0")))[0].endswith("gain: 13 N/m contradicts order")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("[[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]", "not symmetric"),
        ("[[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]", "not positive definite"),
        ("[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.1]]", "violates the triangle inequality of principal moments"),
        ("[[1.0, 0.0], [0.0, 1.0]]", "must be 3 rows of 3 numbers"),
    ],
)
def test_inertia_must_be_that_of_a_body(files, rows, words):
    found = faults(files(), [f"active_vehicle.inertia_kg_m2={rows}"])
    assert len(found) == 1 and words in found[0] and found[0].startswith("--set: active_vehicle.inertia_kg_m2")


def test_loop_must_close_early_enough_to_blend_over():
    """Both keys are named, whether given or left at their defaults."""
    reported = "guidance.close_before_s: the loop closes too late to blend over before the contact"
    with pytest.raises(ConfigurationError) as error:
        load_test(None, ["guidance.close_before_s=0.2"])
    assert error.value.faults[0] == f"--set: {reported}, value 0.2, limit at least setpoint_kinematics.blend_s = 0.3, unit s"
    with pytest.raises(ConfigurationError, match=r"value 0.5, limit at least setpoint_kinematics.blend_s = 0.6"):
        load_test(None, ["setpoint_kinematics.blend_s=0.6"])
    load_test(None, ["guidance.close_before_s=0.2", "setpoint_kinematics.blend_s=0.2"])


def test_software_limit_must_lie_below_the_analogue_threshold(files):
    found = faults(files(stand=("force_limit_n = [1000.0, 1000.0, 1000.0]", "force_limit_n = [1000.0, 2000.0, 1000.0]")))
    assert found[0].endswith("limits.force_limit_n[1]: not below the analogue threshold, value 2000.0, limit below 2000, unit N")


def test_missing_tables_and_files(files):
    path = files()
    path.parent.joinpath("target.toml").unlink()
    path.write_text(path.read_text().replace("[wrench]", "[wrnch]"))
    text = "\n".join(faults(path))
    assert "test.target_vehicle: no such file, value 'target.toml'" in text
    assert "wrench: required table is missing" in text and "wrnch: unknown key" in text and "did you mean 'wrench'" in text


@pytest.mark.parametrize("content", [b"[test\n", b"\xff\xfe", b"a = " + b"[" * 100000, b"", b"test = 3\n", b"[[test]]\nname = 1\n"])
def test_files_that_are_no_configuration(files, content):
    path = files()
    path.write_bytes(content)
    assert str(path) in faults(path)[0]


def test_folder_and_ghost_are_no_configuration(tmp_path):
    assert "is a folder, not a test" in faults(tmp_path)[0]
    assert "cannot be read: No such file" in faults(tmp_path / "ghost.toml")[0]


def test_part_that_is_not_there(files):
    assert "compensation.part: no such part, value 'fke'" in faults(files(), ["compensation.part=fke"])[0]
    assert faults(files(), ["compensation.part=fke"])[0].endswith("did you mean 'fake'?")
    assert "compensation.part: must be one of" in faults(files(), ["compensation.part=3"])[0]


def test_missing_part_points_at_the_misspelt_one(files):
    found = faults(files(mechanism=('part = "fake"', 'prat = "fake"')))
    assert "part: required key is missing" in found[0] and "prat: unknown key" in found[1]


def test_override_reaches_every_file(files):
    config = load_test(files(), ["active_vehicle.mass_kg=7e3", "stand.limits.force_limit_n.0=900", "test.name=one two", "mechanism.gain=1"])
    assert config.active_vehicle["mass_kg"] == 7000.0 and config.target_vehicle["mass_kg"] == 6000.0
    assert config.stand["limits"]["force_limit_n"] == [900, 1000.0, 1000.0]
    assert config.test["name"] == "one two" and config.mechanism["gain"] == 1


def test_override_of_a_part_drops_the_keys_of_the_former(files):
    config = load_test(files(), ["compensation.part=other", "mechanism.part=other"])
    assert config.part("compensation") == ("other", {})
    assert config.mechanism == {"part": "other", "name": "spring", "synthetic": True}


def test_override_of_the_stand_file(files, tmp_path):
    path = files()
    tmp_path.joinpath("second.toml").write_text(tmp_path.joinpath("stand.toml").read_text().replace('"bench"', '"second"'))
    assert load_test(path, ["test.stand=second.toml"]).stand["name"] == "second"


BAD_OVERRIDES = ["", "=", "a", ".=1", "a..b=1", "test.name=[1", "test.name.x=1", "stand.limits.force_limit_n.7=1", "test.name="]


@pytest.mark.parametrize("item", BAD_OVERRIDES)
def test_bad_override(files, item):
    faults(files(), [item])


def test_override_with_unknown_key_is_named(files):
    assert faults(files(), ["compensation.gian=1"])[0].startswith("--set: compensation.gian: unknown key, value 1, did you mean 'gain'?")


@pytest.mark.parametrize(
    ("item", "value"),
    [("a.b=1", 1), ("a.b=1.5", 1.5), ("a.b=[1, 2]", [1, 2]), ("a.b=true", True), ("a.b=none", "none"), ('a.b="x=y"', "x=y")],
)
def test_override_values_are_toml(item, value):
    assert parse_override(item) == (("a", "b"), value)


def test_huge_numbers_are_refused_in_words(files):
    assert faults(files(), ["active_vehicle.mass_kg=" + "9" * 400])
    assert faults(files(), ["test.rate_hz=1e300"])
    for digits in ("9" * 30, "9" * 5000, "-" + "9" * 5000, "[" + "9" * 5000 + "]"):
        assert "not TOML" in faults(files(), [f"guidance.order={digits}"])[0]
    assert "not TOML" in faults(files(), ["test.name=" + "[" * 5000])[0]


@pytest.mark.parametrize("item", ["stand=3", "stand={}", "test=3", "mechanism=none", "dynamics=[1]"])
def test_a_table_is_no_value(files, item):
    (fault,) = faults(files(), [item])
    assert fault.startswith(f"--set {item.partition('=')[0]}: is a table; set one of its keys, e.g. --set ")


@pytest.mark.parametrize(("item", "what"), [("velocity_x=0.2", "has no table"), ("approach.velocity_x=0.2", "no table 'approach'")])
def test_a_key_without_its_table_is_answered_with_similar_keys(files, item, what):
    (fault,) = faults(files(), [item])
    assert what in fault and "--set initial_conditions.velocity_x_m_s=0.2" in fault and len(fault.splitlines()) == 1


def test_a_file_that_never_ends_is_not_read(tmp_path):
    for path, why in (("/dev/zero", "cannot be read: no regular file"), (str(tmp_path), "is a folder, not a test")):
        with pytest.raises(ConfigurationError, match=why):
            load_test(path)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(ConfigurationError, match="no regular file"):
        load_test(tmp_path / "pipe.toml")
    (tmp_path / "long.toml").write_text("x = " + "9" * 5000)
    with pytest.raises(ConfigurationError, match="long.toml: not TOML"):
        load_test(tmp_path / "long.toml")


def test_toml_text_is_read_back_equal():
    document = {
        "plain": 1,
        "text": "q\"\\\n\t\x7fé",
        "list": [1.0, [2, 3], {"a b": True}],
        "t": {"x": -1e-300, "u": {"key with dot.": "v"}, "empty": {}},
    }
    assert tomllib.loads(toml_text.dumps(document)) == document


def test_pose_follows_the_order_yaw_pitch_roll():
    psi, theta, phi = np.radians([10.0, -20.0, 30.0])
    c, s = np.cos, np.sin
    # direction cosine matrix A(psi, theta, phi) of Yaskevich 2020, (4.2.2); R_AB is its transpose
    A = np.array(
        [
            [c(theta) * c(psi), s(theta), -c(theta) * s(psi)],
            [-c(phi) * s(theta) * c(psi) + s(phi) * s(psi), c(phi) * c(theta), c(phi) * s(theta) * s(psi) + s(phi) * c(psi)],
            [s(phi) * s(theta) * c(psi) + c(phi) * s(psi), -s(phi) * c(theta), -s(phi) * s(theta) * s(psi) + c(phi) * c(psi)],
        ]
    )
    X = pose([1.0, 2.0, 3.0], [10.0, -20.0, 30.0])
    np.testing.assert_allclose(Rotation.from_quat(X[3:]).as_matrix(), A.T, atol=1e-15)
    assert list(X[:3]) == [1.0, 2.0, 3.0]


def test_mounting_poses_on_floor_and_on_platform(files):
    mounting = load_test(files()).stand["mounting"]
    poses = mounting_poses(mounting)
    np.testing.assert_allclose(poses["X_WF"][:3], [2.8, 0.0, 2.0])
    np.testing.assert_allclose(poses["X_PM"][:3], [0.3, 0.0, 0.0])
    poses = mounting_poses(mounting | {"load_cell_on": "platform", "load_cell_angles_deg": [180.0, 0.0, 0.0]})
    np.testing.assert_allclose(poses["X_PM"][:3], [3.2, 0.0, 2.0], atol=1e-15)
    np.testing.assert_allclose(poses["X_WF"][:3], [0.3, 0.0, 0.0])


def test_criticality_of_a_variant(files):
    conditions = load_test(files(), ["initial_conditions.velocity_x_m_s=0.14", "initial_conditions.yaw_deg=-2"]).initial_conditions
    r1, r2 = criticality(conditions)  # lateral 0.02/0.1, yaw 2/4, velocity 0.04/0.05
    assert r1 == pytest.approx(np.sqrt(0.2**2 + 0.5**2 + 0.8**2)) and r2 == pytest.approx(1.5)


def test_a_shipped_file_may_be_named_without_its_folder():
    assert load_test("programmes/docking.toml").hash == load_test().hash


@pytest.mark.parametrize("value", [3, "file.toml", [1], True])
def test_a_referenced_table_of_a_log_must_be_one(files, value):
    document = dict(load_test(files()).document) | {"active_vehicle": value}
    with pytest.raises(ConfigurationError, match="active_vehicle: must be a table"):
        test_from_toml(toml_text.dumps(document))


def test_a_set_longer_than_a_command_line_is_refused():
    with pytest.raises(ConfigurationError, match=r"--set test\.name=.* characters, limit 131072: put it into the file"):
        load_test(None, ["test.name=" + "[" * 200_000])


def test_a_weight_is_taken_off_once():
    """By the device's own tare or by the server, from the start of a run: both together are a force that is not there."""
    sensor = ["stand.wrench_sensor.part=rdt", "stand.wrench_sensor.address=127.0.0.1"]
    docking = SHIPPED / "programmes" / "docking.toml"
    with pytest.raises(ConfigurationError) as caught:
        load_test(docking, [*sensor, "stand.wrench_sensor.bias_at_open=true"])
    assert len(caught.value.faults) == 1
    assert "wrench_sensor.bias_at_open: the device's tare and the server both take off the weight of 1177 N" in caught.value.faults[0]
    assert "mounting.carried_mass_kg = 0 (now 120 kg)" in caught.value.faults[0]
    unladen = ["stand.mounting.carried_mass_kg=0", "stand.mounting.carried_inertia_kg_m2=[[0,0,0],[0,0,0],[0,0,0]]"]
    load_test(docking, [*sensor, "stand.wrench_sensor.bias_at_open=true", *unladen])
    load_test(docking, sensor)
