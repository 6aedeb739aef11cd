"""Keys and units: one rule, held by every declaration of a part or of a file."""

import re
from types import ModuleType

import pytest

from hil_server import registry
from hil_server.campaign import plan
from hil_server.config import tables
from hil_server.operator_desk import calibration
from hil_server.run import programme
from rt_kernels.model import craft_file, joint_drive, manipulator_file
from rt_kernels.parameters import Parameter
from rt_kernels.stewart.platform import Platform
from rt_kernels.units import NAMED, key_fault, suffix

FACTOR = r"(?:1|%|[A-Za-z]+[2-9]?)"
UNIT = re.compile(rf"-|{FACTOR}(?:\.{FACTOR})*(?:/(?:{FACTOR}|\({FACTOR}(?:\.{FACTOR})+\)))?")


def parameters(value):
    """Every declaration in a module's constant, however deep."""
    if isinstance(value, Parameter):
        yield value
    elif isinstance(value, dict):
        yield from (p for item in value.values() for p in parameters(item))
    elif isinstance(value, list | tuple):
        yield from (p for item in value for p in parameters(item))
    elif hasattr(value, "parameters") and not isinstance(value, ModuleType):
        yield from value.parameters.values()


OF_PARTS = [(f"{role}.{name}", registry.part(role, name).PARAMETERS) for role, names in registry.PARTS.items() for name in names]
OF_FILES = [(module.__name__, tuple(parameters(list(vars(module).values())))) for module in (
    tables, plan, programme, calibration, manipulator_file, craft_file, joint_drive)]  # fmt: skip
ALL = [*OF_PARTS, *OF_FILES, ("platform", Platform.PARAMETERS)]


@pytest.mark.parametrize(("where", "declared"), ALL, ids=[where for where, _ in ALL])
def test_every_key_ends_with_its_unit(where, declared):
    assert [fault for p in declared if (fault := key_fault(p.key, p.unit))] == []


@pytest.mark.parametrize(("where", "declared"), ALL, ids=[where for where, _ in ALL])
def test_units_are_written_one_way(where, declared):
    wrong = [(p.key, p.unit) for p in declared if not all(UNIT.fullmatch(unit) for unit in re.split(", | or ", p.unit))]
    assert wrong == []


def test_there_are_declarations_in_every_module():
    assert all(declared for where, declared in OF_FILES) and sum(len(declared) for _, declared in ALL) > 500


def test_no_name_is_excused_in_vain():
    assert NAMED <= {p.key for _, declared in ALL for p in declared}


@pytest.mark.parametrize(
    ("unit", "ending"),
    [("N.m", "n_m"), ("N/m", "n_per_m"), ("N.s/m", "n_s_per_m"), ("N.m/rad", "n_m_per_rad"), ("N.m.s/rad", "n_m_s_per_rad"),
     ("m/s", "m_s"), ("m/s2", "m_s2"), ("deg/s2", "deg_s2"), ("kg.m2", "kg_m2"), ("1/s", "per_s"), ("-", ""), ("m, N", ""),
     ("1/(N.m)", "per_newton_metre"), ("kg/m", "kg_per_m"), ("Hz", "hz")],
)  # fmt: skip
def test_ending_of_a_unit(unit, ending):
    assert suffix(unit) == ending


@pytest.mark.parametrize(
    ("key", "unit", "good"),
    [("k_n_per_m", "N/m", True), ("k_n_m", "N/m", False), ("moment_n_m", "N.m", True), ("moment_n_per_m", "N.m", False),
     ("damping_n_s_m", "N.s/m", False), ("stiffness", "N/m", False), ("ratio", "-", True), ("ratio_m", "-", False),
     ("load_n", "m, N", True), ("load", "m, N", True), ("load_m", "m, N", False), ("speed_m_per_s", "m/s", False)],
)  # fmt: skip
def test_wrong_endings_are_found(key, unit, good):
    assert (key_fault(key, unit) == "") is good
