"""The registry: every line resolves, and each kind of failure has a message of its own."""

import sys
import tomllib

import pytest

from hil_server import registry
from hil_server.config import SHIPPED, load_test
from hil_server.errors import ConfigurationError
from rt_kernels.parameters import Parameter


def test_every_role_has_a_section():
    assert list(registry.PARTS) == list(registry.ROLES)


def test_what_the_server_takes_of_itself_is_there():
    constants = {name: value for name, value in vars(registry).items() if name.isupper() and isinstance(value, str)} | registry.FILLED
    names = {part for parts in registry.PARTS.values() for part in parts}
    assert {name for name, value in constants.items() if value not in names} == {"ENTRY_POINT_GROUP"}
    assert all(name in registry.PARTS[role] for role, name in registry.FILLED.items())
    assert set(registry.DYNAMICS) <= set(registry.PARTS["dynamics"])


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ConfigurationError, match="no part 'phase_laed' in role 'compensation', did you mean 'phase_lead'"):
        registry.part("compensation", "phase_laed")


def test_unknown_role_suggests_the_nearest():
    with pytest.raises(ConfigurationError, match="no role 'drive', did you mean 'drives'"):
        registry.part("drive", "cia402")


def test_module_that_cannot_be_imported(monkeypatch):
    monkeypatch.setitem(registry.PARTS["drives"], "ghost", "drivers.drives.ghost:GhostPort")
    with pytest.raises(ConfigurationError, match="drives.ghost: module 'drivers.drives.ghost' cannot be imported: No module named"):
        registry.part("drives", "ghost")


def test_module_that_was_never_built(monkeypatch, tmp_path):
    package = tmp_path / "outside_parts"
    package.mkdir()
    package.joinpath("__init__.py").touch()
    package.joinpath("valve.pyx").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.PARTS["drives"], "valve", "outside_parts.valve:Valve")
    with pytest.raises(ConfigurationError, match="not built: python setup.py build_ext"):
        registry.part("drives", "valve")
    sys.modules.pop("outside_parts", None)


def test_class_that_is_not_there(monkeypatch):
    monkeypatch.setitem(registry.PARTS["drives"], "wrong", "rt_kernels.parameters:Valve")
    with pytest.raises(ConfigurationError, match="module 'rt_kernels.parameters' has no class 'Valve'"):
        registry.part("drives", "wrong")


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Installs a distribution with entry points; returns a function that writes them."""
    info = tmp_path / "valves-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: valves\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def write(line):
        info.joinpath("entry_points.txt").write_text(f"[hil_server.parts]\n{line}\n")

        registry.parts_from_outside.cache_clear()

    yield write
    monkeypatch.undo()
    registry.parts_from_outside.cache_clear()


def test_part_from_outside(outside):
    outside("drives.my_valve = rt_kernels.parameters:Parameter")
    assert registry.part("drives", "my_valve") is Parameter


def test_part_from_outside_cannot_replace_ours(outside):
    outside("compensation.none = rt_kernels.parameters:Parameter")
    assert registry.parts("compensation")["none"] == registry.PARTS["compensation"]["none"]


def test_part_from_outside_with_unknown_role(outside):
    outside("valves.my_valve = rt_kernels.parameters:Parameter")
    with pytest.raises(ConfigurationError, match="ROLE.NAME"):
        registry.parts("drives")


ARM = """
from rt_kernels.parameters import Parameter


class Arm:
    PARAMETERS = (Parameter("model", "str", "-", "file of the arm"), Parameter("model_data", "table", "-", "tables of that file", {}))
"""


def test_model_file_of_a_part_from_outside_is_taken_into_the_configuration(outside, tmp_path, monkeypatch):
    tmp_path.joinpath("arm_from_outside.py").write_text(ARM)
    monkeypatch.syspath_prepend(tmp_path)
    outside("dynamics.arm_from_outside = arm_from_outside:Arm")
    config = load_test(None, ["dynamics.part=arm_from_outside", "dynamics.model=era.toml"])
    sys.modules.pop("arm_from_outside", None)
    assert config.dynamics["model_data"] == tomllib.loads((SHIPPED / "manipulators" / "era.toml").read_text())
