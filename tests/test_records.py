"""Records of auxiliary channels: one declaration gives the struct that a kernel writes and the names under which it is logged."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORDS = sorted([*ROOT.joinpath("rt_kernels").rglob("*record.toml"), *ROOT.joinpath("drivers").rglob("*record.toml")])


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_channels", ROOT / "tools/generate_channels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def structs(text):
    """Number of doubles of each struct of a record.pxd (of one that points to them: 1 each); what it takes from another record must be
    given first."""
    sizes = {}
    for name, body in re.findall(r"^cdef struct (\w+):\n((?:    .*\n)+)", text, re.MULTILINE):
        body = re.sub(r"^ +#.*\n", "", body, flags=re.MULTILINE)  # what was too long for the end of the line
        rows = re.findall(r"^    (\w+) \*?\w+(?:\[(\d+)\])?(?:  #.*)?$", body, re.MULTILINE)
        assert len(rows) == body.count("\n"), body
        sizes[name] = sum((1 if kind == "double" else sizes[kind]) * int(times or 1) for kind, times in rows)
    return sizes


SMALL = """
struct = "ArmRecord"
prefix = "arm."
[group]
Joint = [{name = "angle", unit = "rad", meaning = "angle"}, {name = "load", wrench = true, meaning = "load"}]
[[channel]]
name = "joint"
group = "Joint"
times = 2
[[channel]]
name = "tip"
vector = true
unit = "m"
meaning = "tip in N"
[[channel]]
name = "v"
each = ["left", "right"]
unit = ["m/s", "rad/s"]
meaning = "rate"
[[channel]]
name = "modes"
count = 4
meaning = "modal coordinates"
"""


def test_every_kind_of_channel(generator, tmp_path):
    path = tmp_path / "record.toml"
    path.write_text(SMALL)
    found = generator.aux_channels(generator.load_record(path), path)
    axes = ("x", "y", "z")
    load = [(f"load_{k}_{a}", u, f"load: {w}, {a}", 1) for k, u, w in (("f", "N", "force"), ("m", "N.m", "moment")) for a in axes]
    joint = [("angle", "rad", "angle", 1), *load]
    assert found == [
        *((f"arm.joint{i}_{name}", *rest) for i in (1, 2) for name, *rest in joint),
        *((f"arm.tip_{a}", "m", f"tip in N, {a}", 1) for a in axes),
        ("arm.left", "m/s", "rate", 1), ("arm.right", "rad/s", "rate", 1), ("arm.modes", "-", "modal coordinates", 4),
    ]
    assert structs(generator.record_pxd(path)) == {"ArmJoint": 7, "ArmRecord": 14 + 3 + 2 + 4}
    scope = {}
    exec(generator.record_py(path), scope)
    assert [(a.name, a.unit, a.meaning, a.count) for a in scope["AUX"]] == found


def test_a_record_may_begin_with_another(generator, tmp_path, monkeypatch):
    monkeypatch.setattr(generator, "KERNELS", tmp_path / "rt_kernels")
    folder = tmp_path / "rt_kernels" / "arm"
    folder.mkdir(parents=True)
    folder.joinpath("record.toml").write_text(SMALL)
    path = folder / "long_record.toml"
    own = '[[channel]]\nname = "more"\nmeaning = "more"\n'
    path.write_text('struct = "LongRecord"\n[[channel]]\nname = "arm"\nrecord = "record.toml"\n' + own)
    names = [name for name, *_ in generator.aux_channels(generator.load_record(path), path)]
    assert names[0] == "arm.joint1_angle" and names[-2:] == ["arm.modes", "more"]
    text = generator.record_pxd(path)
    assert "from rt_kernels.arm.record cimport ArmRecord" in text and "    ArmRecord arm\n    double more" in text


def test_channels_of_a_record_that_widens_stand_one_behind_the_other(generator, tmp_path):
    path = tmp_path / "record.toml"
    path.write_text('struct = "WideRecord"\nwidens = true\n' + "".join(
        f'[[channel]]\nname = "{name}"\ncount = {count}\nmeaning = "x"\n' for name, count in (("a", 3), ("b", 1))))  # fmt: skip
    text = generator.record_pxd(path)
    assert "    double *a  # x\n    double *b  # x\n" in text
    assert text.endswith("    record.a = aux\n    aux += width[0]\n    record.b = aux\n    aux += width[1]\n    return record\n")
    path.write_text('struct = "WideRecord"\nwidens = true\n[[channel]]\nname = "a"\nvector = true\nmeaning = "x"\n')
    with pytest.raises(SystemExit, match="widens"):
        generator.load_record(path)


@pytest.mark.parametrize(("change", "word"), [
    (('count = 4', 'count = 4\nvector = true'), "modes"), (('count = 4', 'cuont = 4'), "modes"), (('"right"', '"left"'), "left"),
])
def test_what_is_wrong_in_a_record_is_named(generator, tmp_path, change, word):
    path = tmp_path / "record.toml"
    path.write_text(SMALL.replace(*change))
    with pytest.raises(SystemExit, match=word):
        generator.load_record(path)


@pytest.mark.parametrize("path", RECORDS, ids=[str(p.relative_to(ROOT)) for p in RECORDS])
def test_struct_and_names_of_a_shipped_record_agree(generator, path):
    """The struct has as many doubles as there are names of channels."""
    text = path.with_suffix(".pxd").read_text()
    for other in re.findall(r"^from ([\w.]+) cimport", text, re.MULTILINE):
        text = ROOT.joinpath(*other.split(".")).with_suffix(".pxd").read_text() + text
    scope = {}
    exec(path.with_suffix(".py").read_text(), scope)
    record = generator.load_record(path)
    assert structs(text)[record["struct"]] == (len(scope["AUX"]) if record["widens"] else sum(a.count for a in scope["AUX"]))
    assert all(a.unit and a.meaning for a in scope["AUX"])
