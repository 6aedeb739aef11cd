"""A whole test in files, with parts of its own, so that these tests do not depend on which parts are shipped."""

import pytest

from hil_server import registry
from hil_server.config import checks

PARTS_MODULE = '''
from rt_kernels.parameters import Parameter


class Part:
    def __init__(self, **keys):
        if keys.get("gain") == 13.0:
            raise ValueError("gain: 13 N/m contradicts order")

    AUX = ()
    PARAMETERS = (
        Parameter("gain", "float", "N/m", "a gain", low=0.0, high=1e6),
        Parameter("order", "int", "-", "an order", default=2, low=1, high=8),
        Parameter("active", "bool", "-", "a switch", default=True),
        Parameter("axis", "str", "-", "an axis", default="x", choices=("x", "y", "z")),
        Parameter("offset_m", "floats", "m", "an offset", default=(0.0, 0.0, 0.0), shape=3, low=-1.0, high=1.0),
        Parameter("matrix", "rows", "-", "a matrix", default=((1.0, 0.0), (0.0, 1.0)), shape=(2, 2)),
        Parameter("extra", "table", "-", "free keys", default={}),
        Parameter("copy", "float", "-", "a key that classes have as a method", default=0.0),
    )


class Other:
    AUX = ()
    PARAMETERS = ()
'''

TEST = """
[test]
name = "docking"
rate_hz = 1000
duration_max_s = 20.0
stand = "stand.toml"
active_vehicle = "active.toml"
target_vehicle = "target.toml"
mechanism = "mechanism.toml"

[initial_conditions]
velocity_x_m_s = 0.1
lateral_y_m = 0.02

[initial_conditions.limits]
lateral_y_m = 0.1

[telemetry]
samples_per_message = 20
""" + "".join(f'\n[{role}]\npart = "fake"\ngain = 10.0\n' for role in registry.ROLES if role in (
    "forward_kinematics", "wrench", "events", "guidance", "compensation", "dynamics", "setpoint_kinematics", "safety"))  # fmt: skip

VEHICLE = """
name = "cube"
mass_kg = 6000.0
inertia_kg_m2 = [[9000.0, 0.0, 0.0], [0.0, 20000.0, 100.0], [0.0, 100.0, 20000.0]]
port_position_m = [3.0, 0.0, 0.0]
port_angles_deg = [0.0, 0.0, 0.0]
"""

STAND = """
name = "bench"
[platform]
base_joints_m = [
    [0.0, 2.971, 0.418],
    [0.0, -1.124, 2.782],
    [0.0, -1.847, 2.364],
    [0.0, -1.847, -2.364],
    [0.0, -1.124, -2.782],
    [0.0, 2.971, -0.418],
]
platform_joints_m = [
    [0.0, 1.108, 1.418],
    [0.0, 0.674, 1.669],
    [0.0, -1.782, 0.251],
    [0.0, -1.782, -0.251],
    [0.0, 0.674, -1.669],
    [0.0, 1.108, -1.418],
]
leg_length_min_m = 3.0
leg_length_max_m = 5.0
leg_rate_max_m_s = 0.5
leg_acceleration_max_m_s2 = 10.0
leg_force_max_n = 125000.0
neutral_position_m = [3.395, 0.0, 0.0]
[mounting]
unit_on_load_cell = "target"
load_cell_position_m = [3.0, 0.0, 2.0]
measured_port_position_m = [-0.2, 0.0, 0.0]
other_port_position_m = [0.3, 0.0, 0.0]
carried_mass_kg = 100.0
carried_inertia_kg_m2 = [[3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]]
[limits]
force_limit_n = [1000.0, 1000.0, 1000.0]
moment_limit_n_m = [500.0, 500.0, 500.0]
analogue_force_n = [2000.0, 2000.0, 2000.0]
analogue_moment_n_m = [900.0, 900.0, 900.0]
[virtual]
part = "fake"
gain = 1.0
extra = { seed = 1, noise = [0.1, 0.2] }
"""

MECHANISM = """
part = "fake"
name = "spring"
synthetic = true
gain = 5.0
"""


@pytest.fixture
def fake_parts(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("parts")
    folder.joinpath("fake_parts_of_tests.py").write_text(PARTS_MODULE)
    monkeypatch.syspath_prepend(folder)
    for role in registry.PARTS:
        monkeypatch.setitem(registry.PARTS[role], "fake", "fake_parts_of_tests:Part")
        monkeypatch.setitem(registry.PARTS[role], "other", "fake_parts_of_tests:Other")
    checks.part_table.cache_clear()
    yield
    checks.part_table.cache_clear()


@pytest.fixture
def files(tmp_path, fake_parts):
    """Writes the files of a test, with replacements `{file: (old, new)}`; returns the path of the test file."""
    texts = {"test.toml": TEST, "stand.toml": STAND, "active.toml": VEHICLE, "target.toml": VEHICLE, "mechanism.toml": MECHANISM}

    def write(**changes):
        for file, text in texts.items():
            for old, new in [changes[file.removesuffix(".toml")]] if file.removesuffix(".toml") in changes else []:
                assert old in text
                text = text.replace(old, new)
            tmp_path.joinpath(file).write_text(text)
        return tmp_path / "test.toml"

    return write
