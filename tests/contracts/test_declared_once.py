"""A parameter is one line: `Parameter(...)` added to a part is found wherever a parameter is looked for, once that part alone is built."""

import sys

import pytest

from hil_server import cli, registry
from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.line.run_header import header
from hil_server.log.reader import read_log
from hil_server.log.writer import LogWriter
from tests.contracts import guide
from tests.loop.test_tuning import way
from tools import generate_schemas

PACKAGE = "declared_once"
LINE = '''Parameter("share_max_n", "float", "N", "what the test adds", 0.5, 0.25, 2.0, tunable=Tunable(100.0, of_configured=2.0)),'''
KEYS = ["compensation.part='once'", "test.stand=stands/ideal_stand.toml"]


@pytest.fixture(scope="module", autouse=True)
def part(tmp_path_factory):
    """The compensator of the guide with the line in it, as a line of the registry."""
    text = guide.blocks()["scaled.pyx"].replace(guide.PACKAGE, PACKAGE)
    first = "    PARAMETERS = (\n"
    assert text.count(first) == 1
    folder = tmp_path_factory.mktemp("once")
    guide.build(folder / PACKAGE, {"scaled.pyx": text.replace(first, f"{first}        {LINE}\n")})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setitem(registry.PARTS["compensation"], "once", f"{PACKAGE}.scaled:Scaled")
        yield registry.part("compensation", "once")
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


@pytest.fixture
def test():
    return assembly.simulation(load_test(None, KEYS))


def test_the_kernel_has_it(part, test):
    """In the struct of the block, and the step reads beside it what it read before."""
    assert test.line.stages["compensation"].fields()["keys"] == {"share_max": 0.5, "scale": 1.0}


def test_check_refuses_a_wrong_value_and_names_the_limit(capsys):
    assert cli.main(["check", "docking", *(word for key in (*KEYS, "compensation.share_max_n=3") for word in ("--set", key))]) != 0
    assert "compensation.share_max_n: must be a number within 0.25 ... 2 N, got 3" in capsys.readouterr().out.replace("\n", " ")


def test_the_schema_has_it():
    choices = generate_schemas.schemas()["test"]["properties"]["compensation"]["allOf"]
    (table,) = [choice["then"]["properties"] for choice in choices if choice["if"]["properties"].get("part") == {"const": "once"}]
    found = table["share_max_n"]
    assert (found["minimum"], found["maximum"], found["default"]) == (0.25, 2.0, 0.5) and "what the test adds [N]" in found["description"]


def test_the_manual_has_it(capsys):
    assert cli.main(["list", "compensation", "once"]) == 0
    rows = [line for line in capsys.readouterr().out.split("\n") if line.strip().startswith("share_max_n")]
    assert len(rows) == 2 and "what the test adds" in rows[0]
    assert "100 per s" in rows[1] and "0.25 ... 2, no higher than twice as configured" in rows[1]


def test_it_can_be_changed_in_a_run(test):
    (found,) = [one for one in test.tunables if one.name == "compensation.share_max_n"]
    assert (found.low, found.high, found.value, found.unit) == (0.25, 1.0, 0.5, "N")
    way(test.line, test.tunables.index(found), 0.75, 1000)
    assert test.line.stages["compensation"].fields()["keys"] == {"share_max": 0.75, "scale": 1.0}


def test_the_log_has_it(test, tmp_path):
    writer = LogWriter(tmp_path / "run.mcap", header(test, "once", "simulation", {}))
    writer.close({})
    (entry,) = [one for one in read_log(tmp_path / "run.mcap").header.tunables if one["name"] == "compensation.share_max_n"]
    assert (entry["meaning"], entry["rate_per_s"], entry["high"]) == ("what the test adds", 100.0, 1.0)
