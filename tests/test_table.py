"""The table holds what it says: a stage has one name and reads what it may, no bit goes by its number."""

import re
from pathlib import Path

import numpy as np
import pytest

from hil_server import registry
from rt_kernels.codes import FAULT_MASKS, STOP_FAULTS, bit_names, bit_number, code_name, fault_names, mask, words
from rt_kernels.control.fmu import description
from rt_kernels.layout import BITS, CODES, FAULTS, FIELDS, INITIAL, RUNS, SAMPLE_DTYPE, WORDS
from rt_kernels.stages import STAGE_ROLES, STAGES
from rt_kernels.stewart.platform import STATUS_WORDS

ROOT = Path(__file__).resolve().parent.parent
WRITER = {field[0]: field[5] for field in FIELDS}


def kernel_text(folder):
    return {file: file.read_text() for file in sorted(ROOT.joinpath(folder).rglob("*.p*")) if file.suffix in (".pyx", ".pxd")}


def code_of(text):
    """The text without docstrings and comments."""
    return re.sub(r'"""(?:.|\n)*?"""|#.*', "", text)


def test_a_stage_has_one_name():
    """Role, folder, table of a test file, call in the tick, writer of its fields: all the same word, in the order of the tick."""
    tick = ROOT.joinpath("rt_kernels/tick.pyx").read_text()
    body = re.search(r"^cdef void tick\(Line \*line\) noexcept nogil:\n((?:    .*\n?)+)", tick, re.MULTILINE)[1]
    assert re.findall(r"    (\w+)\(line\)", body) == list(STAGE_ROLES) and len(body.splitlines()) == len(STAGE_ROLES)
    assert [role for role in registry.ROLES if role in STAGE_ROLES] == list(STAGE_ROLES)
    in_order = list(dict.fromkeys(WRITER.values()))
    assert in_order == ["clock", "ports", "tuning", *STAGE_ROLES, "telemetry"]
    for role in STAGE_ROLES:
        modules = [module.partition(":")[0] for module in registry.PARTS[role].values()]
        assert modules and all(re.fullmatch(rf"rt_kernels\.{role}(\.\w+)+", module) for module in modules), role


@pytest.mark.parametrize(("role", "reads", "previous"), [(role, reads, previous) for role, _, reads, previous in STAGES])
def test_a_stage_reads_what_the_table_says(role, reads, previous):
    """Fields of the sample that the sources of a role touch: its own, and those of the writers that the table names for it."""
    sources = "".join(code_of(text) for text in kernel_text(f"rt_kernels/{role}").values())
    touched = set(re.findall(r"\b(?:sample|o)\.([A-Za-z_]\w*)", sources))
    writers = {WRITER[name] for name in touched if name in WRITER} - {role}
    assert writers <= {*reads, *previous}
    if role == description.ROLE:  # one of its parts reads what a test file names
        writers |= {WRITER[name] for name in WRITER if may_be_named(name)}
    assert writers == {*reads, *previous}


def may_be_named(field):
    """Whether a test file may wire a field of the sample to an input of an FMU."""
    try:
        description.place(f"{field}[0]" if SAMPLE_DTYPE[field].shape else field, description.READABLE)
    except ValueError:
        return False
    return True


def test_words_know_their_names():
    assert code_name("phase", CODES["phase"]["contact"]) == "contact" and code_name("phase", 99) == "99"
    assert bit_names("mechanism_signal", mask("mechanism_signal", "DK1", "latch")) == ["DK1", "latch1", "latch2", "latch3", "latch4"]
    assert bit_number("drive_status", "stale") == 1 and BITS["drive_status"]["stale"] == 2
    assert fault_names(FAULT_MASKS["force_limit"] | FAULT_MASKS["record_lost"]) == ["force_limit", "record_lost"]
    assert STOP_FAULTS == sum(bit for _, bit, severity, *_ in FAULTS if severity == "stop")
    assert words("dynamics_status", 5) == "not_finite, joined" and words("phase", 4) == "contact" and words("condition", 3) == "3"
    assert words("hand_status", 0) == "-"


def test_every_word_of_bits_is_declared():
    """A field of unsigned words has a list of bits, but for those that only a device knows, counters, and numbers of joints; a run has all
    its bits."""
    own = {"wrench_device_status", "drive_device_status", "record_crc", "watchdog", "joint_controlled"}
    assert {name for name, kind, *_ in FIELDS if kind == "u4"} - own == {name for name, (kind, _) in WORDS.items() if kind == "bits"}
    for group, runs in RUNS.items():
        for name, together in runs.items():
            numbered = [bit for bit_name, bit in BITS[group].items() if re.fullmatch(name.replace("_", "[0-9]*_") + "[0-9]*", bit_name)]
            assert len(numbered) > 1 and sum(numbered) == together, (group, name)


def test_the_platform_speaks_in_the_places_of_both_stages():
    forward, inverse = BITS["forward_kinematics_status"], BITS["setpoint_kinematics_status"]
    assert list(STATUS_WORDS) == [forward[name] for name in ("not_converged", "near_singular", "leg_missing")]
    assert list(STATUS_WORDS) == [inverse[name] for name in ("out_of_reach", "near_singular", "not_finite")]


def test_the_sample_before_the_first_tick():
    assert set(INITIAL) <= set(SAMPLE_DTYPE.names)
    for name, value in INITIAL.items():
        assert np.broadcast_shapes(np.shape(value), SAMPLE_DTYPE[name].shape) == SAMPLE_DTYPE[name].shape
    assert all(INITIAL[name] == [0, 0, 0, 0, 0, 0, 1] for name, _, shape, unit, *_ in FIELDS if shape == 7 and unit == "m,-")


# ------------------------------------------------------------------------------------------------------------------ literals

LITERAL = re.compile(r"([\w.\]\)]+) *(&|\||&=|\|=) *(0x[0-9a-fA-F]+|\d+)\b")
WORD_OF_THE_SAMPLE = re.compile(r"\b(?:sample|o|inp|out)\.(\w+)(?:\[\w+\])? *(&|\||&=|\|=|==|!=|=|>>) *(0x[0-9a-fA-F]+|[1-9]\d*)\b")


def masks_by_number(text):
    """Lines that name bits by a number: a field width (all ones: 1, 0xFF, 0x7FF) is none, unless it is held against a word of the table."""
    found = [f"{word} {operator} {number}" for word, operator, number in LITERAL.findall(text) if int(number, 0) & (int(number, 0) + 1)]
    of_the_table = [hit for hit in WORD_OF_THE_SAMPLE.findall(text) if WORDS.get(hit[0], ("",))[0] == "bits"]
    found += [f"{word} {operator} {number}" for word, operator, number in of_the_table]
    return found


def test_masks_by_number_are_found():
    assert masks_by_number("if x & 6: y |= 0x10; z = a >> 3 & 1; b & 0xFF") == ["x & 6", "y |= 0x10"]
    text = "if sample.dynamics_status & 3: o.guidance_fault |= 1; o.condition == 3"
    assert masks_by_number(text) == ["dynamics_status & 3", "guidance_fault |= 1"]


@pytest.mark.parametrize("package", ["rt_kernels", "drivers", "hil_server"])
def test_no_bit_goes_by_its_number(package):
    """A bit of the table has its name there; one of a device or a protocol has a named constant beside its code."""
    files = [file for file in sorted(ROOT.joinpath(package).rglob("*.p*")) if file.suffix in (".py", ".pyx", ".pxd")]
    generated = {ROOT / "rt_kernels/layout.py", ROOT / "rt_kernels/codes.pxd"}
    wrong = {str(file.relative_to(ROOT)): masks_by_number(code_of(file.read_text())) for file in files if file not in generated}
    assert len(files) > 20 and {file: lines for file, lines in wrong.items() if lines} == {}
