"""Names that were others once: refused in a user's file with the new name, read without a word out of a log."""

import tomllib

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil_server import registry
from hil_server.config import SHIPPED, former_names, load_test, test_from_toml, toml_text
from hil_server.errors import ConfigurationError
from rt_kernels.model import manipulator_file
from rt_kernels.model.craft_file import bodies_of

FORMER = {new: old for (_, old), new in former_names.KEYS.items()}


def declared(role):
    """All keys that parts of a role, or the table of a file, have now."""
    if role == "manipulator":
        return {p.key for p in manipulator_file.PARAMETERS}
    return {p.key for name in registry.PARTS[role] for p in registry.part(role, name).PARAMETERS}


@pytest.mark.parametrize(("role", "old"), former_names.KEYS)
def test_former_keys_are_gone_and_the_present_ones_are_there(role, old):
    assert former_names.KEYS[role, old] in declared(role) and old not in declared(role)


def test_former_key_in_a_file_is_refused_with_the_new_name(tmp_path):
    text = SHIPPED.joinpath("mechanisms/bumper.toml").read_text()
    file = tmp_path / "old.toml"
    file.write_text(text.replace("stiffness_n_per_m", "stiffness_n_m"))
    with pytest.raises(ConfigurationError) as error:
        load_test(None, [f"test.mechanism={toml_text.value(str(file))}"])
    assert error.value.faults == (f"{file}: stiffness_n_m: was renamed stiffness_n_per_m",)


def test_former_key_of_an_override_is_refused_with_the_new_name():
    with pytest.raises(ConfigurationError) as error:
        load_test(None, ["safety.damaged_per_s_max=3.0"])
    assert error.value.faults == ("--set: safety.damaged_per_s_max: was renamed damaged_max_per_s",)


def test_former_key_of_a_compensator_inside_another_is_refused_with_the_new_name():
    inner = 'compensation.contact={part = "pose_referenced_force", stiffness_n_m = 1e5}'
    with pytest.raises(ConfigurationError) as error:
        load_test(None, ["compensation.part=phased", inner])
    assert len(error.value.faults) == 1 and error.value.faults[0].endswith("contact.stiffness_n_m: was renamed stiffness_n_per_m")


@pytest.mark.parametrize("key", ["vendor_id", "product_code"])
def test_a_key_that_is_part_of_another_one_is_refused_with_what_to_write(tmp_path, key):
    file = tmp_path / "stand.toml"
    text = SHIPPED.joinpath("stands/docking_stand.toml").read_text()
    file.write_text(text[: text.index("[virtual]")] + f'[drives]\npart = "cia402_ethercat"\n{key} = 154\n')
    with pytest.raises(ConfigurationError) as error:
        load_test(None, [f"test.stand={toml_text.value(str(file))}"])
    (line,) = [fault for fault in error.value.faults if key in fault]
    assert line.startswith(f"{file}: drives.{key}: is in identity") and "hil-server run prints the lines" in line


def test_a_damper_that_follows_from_a_restitution_is_refused_with_what_to_write():
    with pytest.raises(ConfigurationError, match="plane_damping_n_s_per_m: follows from plane_restitution and plane_mass_kg"):
        load_test("virtual_docking", ["mechanism.plane_damping_n_s_per_m=2e4"])


def test_a_log_with_a_key_that_is_part_of_another_one_is_read_without_it():
    stand = {"drives": {"part": "cia402_ethercat", "vendor_id": 154, "product_code": 0, "interface": "eth1"}}
    assert former_names.renamed({"stand": stand})["stand"]["drives"] == {"part": "cia402_ethercat", "interface": "eth1"}
    unit = {"part": "probe_cone", "plane_damping_n_s_per_m": 2e4, "plane_friction": 0.1}
    assert former_names.renamed({"mechanism": unit})["mechanism"] == {"part": "probe_cone", "plane_friction": 0.1}


def aged(value):
    """A document with every key that has a former name under it."""
    if not isinstance(value, dict):
        return value
    return {FORMER.get(key, key): aged(item) for key, item in value.items()}


PROGRAMMES = [path for path in sorted(SHIPPED.joinpath("programmes").glob("*.toml")) if "test" in tomllib.loads(path.read_text())]


@pytest.mark.parametrize("file", PROGRAMMES, ids=[path.stem for path in PROGRAMMES])
def test_a_log_with_former_names_is_read_as_one_with_the_present_ones(file):
    new = load_test(file)
    again = test_from_toml(toml_text.dumps(aged(new.document)))
    assert again.document == new.document and again.hash == new.hash


def test_some_logs_had_former_names():
    assert sum(toml_text.dumps(aged(load_test(file).document)) != load_test(file).as_toml() for file in PROGRAMMES) >= 5


def test_a_log_from_before_ports_looked_anywhere_begins_between_bodies():
    document = load_test(None).document
    assert test_from_toml(toml_text.dumps(document)).setup.initial_conditions.between == "ports"
    del document["initial_conditions"]["between"]
    assert test_from_toml(toml_text.dumps(document)).setup.initial_conditions.between == "bodies"


def test_compensators_inside_another_and_arms_are_read_too():
    document = {
        "compensation": {"part": "phased", "contact": {"part": "pose_referenced_force", "stiffness_n_m": 1e5}},
        "dynamics": {"part": "manipulator_payload", "model_data": {"manipulator": {"approach_1_s": 0.2}, "body": []}},
    }
    found = former_names.renamed(document)
    assert found["compensation"]["contact"] == {"part": "pose_referenced_force", "stiffness_n_per_m": 1e5}
    assert found["dynamics"]["model_data"] == {"manipulator": {"approach_per_s": 0.2}, "body": []}
    assert document["dynamics"]["model_data"]["manipulator"] == {"approach_1_s": 0.2}, "the given document is left alone"


def test_a_part_from_outside_keeps_its_keys():
    document = {"mechanism": {"part": "a_part_of_somebody_else", "stiffness_n_m": 1.0}}
    assert former_names.renamed(document) == document


def test_whatever_a_log_says_its_tables_are_left_to_the_checks():
    for document in ({"mechanism": 3, "stand": [1], "compensation": "x", "dynamics": {"model_data": 5}}, {}):
        assert former_names.renamed(document) == document


def test_rows_of_injected_faults_become_tables():
    stand = {"virtual": {"part": "virtual_stand", "faults": [[0.3, 110.0, 3.0, 0.0], {"fault": "clear", "at_s": 1.0}]}}
    found = former_names.renamed({"stand": stand})["stand"]["virtual"]["faults"]
    assert found == [{"fault": "drive_silent", "at_s": 0.3, "index": 3, "value": 0.0}, {"fault": "clear", "at_s": 1.0}]


def test_every_former_number_of_a_fault_has_its_name():
    from drivers.simulated.injections import IN_PROCESS

    assert set(former_names.FAULTS.values()) <= {"clear", *IN_PROCESS}


def aged_arm(tables):
    """The tables of an arm as files of earlier versions had them: mass beside the joint, tensors as six numbers, revolute by default."""
    bodies = []
    for body in tables["body"]:
        body = {key: value for key, value in body.items() if (key, value) != ("joint", "revolute")}
        rigid = body.pop("rigid")
        tensor = rigid.get("inertia_kg_m2", [0.0] * 3)
        if isinstance(tensor[0], list):
            rigid = rigid | {"inertia_kg_m2": [*tensor[0], *tensor[1][1:], tensor[2][2]]}
        bodies.append(body | (rigid if rigid["mass_kg"] else {}))
    return {**tables, "body": bodies}


@pytest.mark.parametrize("file", ["berthing", "berthing_pins"])
def test_an_arm_in_an_old_log_is_the_same_arm(file):
    document = load_test(SHIPPED / "programmes" / f"{file}.toml").document
    old = document | {"dynamics": document["dynamics"] | {"model_data": aged_arm(document["dynamics"]["model_data"])}}
    assert all("rigid" not in body for body in old["dynamics"]["model_data"]["body"])
    again = test_from_toml(toml_text.dumps(old))
    old_bodies, bodies = (bodies_of(d["dynamics"]["model_data"]) for d in (again.document, document))
    assert [vars(a).keys() for a in old_bodies] == [vars(b).keys() for b in bodies] and len(bodies) >= 7
    for a, b in zip(old_bodies, bodies, strict=True):
        assert all(np.array_equal(getattr(a, key), getattr(b, key)) for key in vars(b)), b.name


def test_rotation_and_rotor_of_an_old_arm_are_kept():
    body = {"name": "a", "rotation_rpy_rad": [0.3, -0.4, 0.5], "mass_kg": 2.0, "inertia_kg_m2": [1.0, 1.0, 1.0], "gear_ratio": 10.0,
            "rotor_inertia_kg_m2": 2e-3}  # fmt: skip
    document = {"dynamics": {"part": "manipulator_payload", "model_data": {"body": [body]}}}
    (found,) = bodies_of(former_names.renamed(document)["dynamics"]["model_data"])
    np.testing.assert_allclose(found.R_PJ, Rotation.from_euler("xyz", [0.3, -0.4, 0.5]).as_matrix(), atol=1e-15)
    assert found.joint == "revolute" and found.gear_ratio**2 * found.rotor_inertia == pytest.approx(0.2, rel=1e-15)


def test_the_configuration_of_an_earlier_program_says_what_it_did():
    """Keys that came later stand for what was done before there were any; what a file gives stays."""
    text = load_test(None, ["safety.leg_jump_m=0.005"]).as_toml()
    now, before = test_from_toml(text), test_from_toml(text, former=True)
    assert "frozen_s" not in now.wrench and now.stand["limits"]["power_off"] == "axis"
    assert before.wrench["frozen_s"] == 0.0 and before.events["every_phase"] is False and before.safety["leg_jump_m"] == 0.005
    assert before.safety["tare_max_n"] == 0.0 and before.guidance["hold_acceleration_max_m_s2"] == 0.0
