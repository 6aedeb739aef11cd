"""Every line of the registry leads to a class that declares itself."""

import inspect

import pytest

from hil_server import registry
from rt_kernels.layout import CODES
from rt_kernels.parameters import Aux, Command, Parameter

LINES = [(role, name) for role, names in registry.PARTS.items() for name in names]


@pytest.mark.parametrize(("role", "name"), LINES)
def test_line_imports_and_declares_its_parameters(role, name):
    part = registry.part(role, name)
    assert part.PARAMETERS is not None and all(isinstance(p, Parameter) for p in part.PARAMETERS)
    # a part whose channels depend on its parameters declares them as a property of the instance
    assert inspect.isdatadescriptor(part.AUX) or all(isinstance(a, Aux) for a in part.AUX)
    keys = [p.key for p in part.PARAMETERS]
    assert len(set(keys)) == len(keys)
    for p in part.PARAMETERS:
        assert p.meaning and p.unit, f"{role}.{name}.{p.key}"


@pytest.mark.parametrize(("role", "name"), [line for line in LINES if line[0] not in ("mechanisms", "clocks")])
def test_commands_are_those_of_the_table_and_every_guidance_can_be_stopped(role, name):
    declared = registry.part(role, name).COMMANDS
    if inspect.isdatadescriptor(declared):
        return
    assert all(isinstance(c, Command) and c.name in CODES["command"] and set(c.phases) <= set(CODES["phase"]) for c in declared)
    assert role != "guidance" or {"abort", "stop", "park"} <= {c.name for c in declared}
