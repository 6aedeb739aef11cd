"""The structs of declared parameters: which have a field, its name and type, and what is asked for in vain."""

import pytest

from hil_server import registry
from rt_kernels.parameter_structs import structs
from rt_kernels.parameters import Parameter, Tunable, tuned_parameter

SOURCE = '''
"""A part."""
cdef struct Self:
    FarArmParameters keys

MORE_PARAMETERS = (
    Parameter("reach_m", "float", "m", "a (bracket", 1.0, low=0.0, high=2.0),  # and ) another
)  # fmt: skip

cdef class FarArm(StagePart):
    PARAMETERS = MORE_PARAMETERS + (
        *_others("x"),
        Parameter("rate_m_s", "float", "m/s", "collides", 1.0, tunable=Tunable(1.0, above="reach_m", below='end_m')),
        Parameter("rate_deg_s", "float", "deg/s", "with this", 1.0, tunable=Tunable(1.0)),
        Parameter("double_s", "float", "s", "a word of C"),
        Parameter("switch_on", "bool", "-", "a switch", False),
        Parameter("steps", "int", "-", "some", 2, low=-3, high=2_000_000),
        Parameter("large", "int", "-", "beyond 32 bits", 2, low=0, high=2**40),
        Parameter("turns_deg", "floats", "deg", "a list", (0.0, 0.0), shape=2),
        Parameter("any_s", "floats", "s", "of any length", ()),
        Parameter("gone_m", "float", "m", "may be absent", None, low=0.0),
        Parameter("name", "str", "-", "text", "Parameter('no', 'float', 'm', '')"),
        Parameter("inner", "tables", "-", "tables", [], of=(Parameter("deep_m", "float", "m", "not of the part"),)),
        Parameter(f"{other}_m", "float", "m", "not a literal"),
    )
'''


def made(tmp_path, source, kernel="from parts.arm_parameters cimport FarArmParameters\n"):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "arm.pyx").write_text(kernel + source)
    return structs(tmp_path, ["parts"])


def test_fields_filling_and_tuning(tmp_path):
    ((path, text),) = made(tmp_path, SOURCE).items()
    assert path == tmp_path / "parts" / "arm_parameters.pxd"
    _, more, filled, arm, filled_arm, tuned = text.split("\n\n\n")
    assert more == "cdef struct MoreParameters:\n    double reach  # m" and 'p.reach = keys["reach_m"]' in filled
    assert arm.split("\n") == [
        "cdef struct FarArmParameters:", "    double rate_m_s  # m/s", "    double rate_rad_s  # rad/s", "    double double_s  # s",
        "    double turns[2]  # rad", "    int switch_on", "    int steps",
    ]  # fmt: skip
    assert 'p.rate_rad_s = keys["rate_deg_s"] * 0.017453292519943295' in filled_arm
    assert '    for i in range(2):\n        p.turns[i] = keys["turns_deg"][i] * 0.017453292519943295' in filled_arm
    assert [line.strip() for line in tuned.rstrip().split("\n")] == [
        "cdef inline int tune_far_arm(StagePart part, const FarArmParameters *p, dict keys) except -1:",
        'part.let_tune("rate_m_s", &p.rate_m_s, keys["rate_m_s"], 0.5 * (keys["rate_m_s"] + keys["reach_m"]), '
        '0.5 * (keys["rate_m_s"] + keys["end_m"]), 1.0)',
        'part.let_tune("rate_deg_s", &p.rate_rad_s, keys["rate_deg_s"], None, None, 0.017453292519943295)',
        "return 0",
    ]  # fmt: skip


def test_only_what_a_kernel_asks_for_is_made(tmp_path):
    assert made(tmp_path, SOURCE, "") == {}


def test_a_module_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"leg_parameters\.pxd: .* no leg\.pyx"):
        made(tmp_path, SOURCE, "from parts.leg_parameters cimport LegParameters\n")


@pytest.mark.parametrize(("tunable", "high", "words"), [
    (Tunable(1.0), 9.0, ""), (Tunable(1.0, of_configured=1.0), 3.0, "no higher than configured"),
    (Tunable(1.0, of_configured=2.0, above="b"), 6.0, "from half way to b to twice as configured"),
    (Tunable(1.0, below="b"), 9.0, "no higher than half way to b"),
])
def test_limits_that_follow_from_the_configuration(tunable, high, words):
    declared = [Parameter("a", "float", "-", "a", low=0.0, high=9.0, tunable=tunable)]
    assert (tuned_parameter(declared, "a", 3.0, 0, None, None, 1.0).high, tunable.narrowed) == (high, words)


@pytest.mark.parametrize(("role", "name"), [(role, name) for role, names in registry.PARTS.items() for name in names])
def test_the_keys_that_a_limit_follows_are_declared(role, name):
    declared = registry.part(role, name).PARAMETERS
    named = {key for p in declared if p.tunable for key in (p.tunable.above, p.tunable.below) if key}
    assert named <= {p.key for p in declared}
