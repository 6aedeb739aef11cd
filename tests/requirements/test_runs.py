"""Requirements of whole runs as a user has them: exit code, screen, JSON, JUnit, programme, campaign, bus."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import zmq
from junitparser import Failure, JUnitXml, Skipped

from hil_server import cli
from hil_server.bus.process import TelemetryProcess
from hil_server.bus.settings import TelemetrySettings
from hil_server.bus.wire import unpack
from hil_server.campaign import statistics
from hil_server.campaign.case import run_case
from hil_server.campaign.plan import load_plan
from hil_server.client import Client
from hil_server.config import SHIPPED, load_test
from hil_server.config.files import parse_toml
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from hil_server.line.run_header import configuration
from hil_server.log.header import LogHeader
from hil_server.log.reader import read_log
from hil_server.requirements import MET, NOT_JUDGED, VIOLATED, Result, Watch, of_log
from hil_server.run.programme import assemble_all, is_programme, load_programme
from hil_server.run.session import Options, simulate
from rt_kernels.ring import SharedBlock

DOCKING = SHIPPED / "programmes" / "docking.toml"
QUICK = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.retreat_distance_m=0.05",
         "guidance.contact_max_s=2.0")  # fmt: skip
OWN = """
[[requirement]]
name = "peak <force> & \\"more\\""
channel = "norm(F_T[0:3])"
phase = ["contact"]
below_n = 10.0
source = "unknown"

[[requirement]]
name = "drawn in"
channel = "abs(F_T[0])"
phase = ["hold"]
per = "contact"
below_kn = 5.0
"""


def sets(*items):
    return [word for item in items for word in ("--set", item)]


@pytest.fixture(scope="module")
def test_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("own") / "own.toml"
    file.write_text(DOCKING.read_text() + OWN)
    return file


@pytest.fixture(scope="module")
def ran(test_file):
    """A docking that violates one requirement: exit code, summary, JUnit file."""
    out, files = test_file.parent / "out", {kind: test_file.parent / f"reported.{kind}" for kind in ("json", "xml")}
    code = cli.main(["simulate", str(test_file), "--out", str(out), "--quiet", "--no-report", *sets(*QUICK), "--json", str(files["json"]),
                     "--junit", str(files["xml"])])  # fmt: skip
    return code, json.loads(files["json"].read_text()), files["xml"]


def valid(file):
    """The cases of a JUnit file that keeps the rules of the schema Jenkins publishes: names, counts, at most one result a case."""
    root = ElementTree.parse(file).getroot()
    assert root.tag == "testsuites"
    for node in (root, *root):
        cases = list(node.iter("testcase"))
        assert node.get("name") and int(node.get("tests")) == len(cases) and float(node.get("time")) >= 0.0 and node.get("errors") == "0"
        for word, tag in (("failures", "failure"), ("skipped", "skipped")):
            assert int(node.get(word)) == sum(case.find(tag) is not None for case in cases)
    for case in root.iter("testcase"):
        assert case.get("name") and case.get("classname") and float(case.get("time")) >= 0.0
        assert {child.tag for child in case} <= {"properties", "failure", "skipped", "system-out"}
        assert len(case.findall("failure") + case.findall("skipped")) <= 1
        assert all(one.get("name") and one.get("value") is not None for one in case.iter("property"))
    return {(suite.name, case.name): case for suite in JUnitXml.fromfile(str(file)) for case in suite}


def test_a_violated_requirement_is_exit_code_1_and_reported_with_its_margin(ran):
    code, summary, _ = ran
    assert code == summary["exit_code"] == 1 and summary["captured"]
    found = {row["name"]: row for row in summary["requirements"]}
    peak = found['peak <force> & "more"']
    assert peak["verdict"] == VIOLATED and peak["limit"] == 10.0
    assert peak["margin"] == pytest.approx(10.0 - peak["value"]) and peak["margin"] < 0.0
    assert peak["phase"] == "contact" and peak["source"] == "unknown" and peak["unit"] == "N" and "off by" in peak["words"]
    assert found["drawn in"]["verdict"] == NOT_JUDGED and found["force on the load cell"]["verdict"] == MET


def test_junit_has_every_requirement(ran):
    cases = valid(ran[2])
    assert len(cases) == 1 + len(ran[1]["requirements"])
    bad = cases["docking", 'peak <force> & "more"']
    assert isinstance(bad.result[0], Failure) and "off by" in bad.result[0].message
    assert isinstance(cases["docking", "drawn in"].result[0], Skipped)
    assert cases["docking", "run"].is_passed and cases["docking", "captured in time"].is_passed


def test_the_log_says_the_same_again_and_in_any_pieces(ran):
    log = read_log(ran[1]["log"])
    again = of_log(log)
    reported = [one.as_dict() | {"marks": []} for one in again]  # what was done to the run is of the summary: here nothing
    assert reported == ran[1]["requirements"] and [Result.from_dict(one) for one in reported] == again
    watch = Watch(assembly.simulation(configuration(log)).requirements)
    for at in range(0, log.ticks, 37):
        watch.see(log.records[at : at + 37])
        if at % 370 == 0:
            watch.results(final=False)
    assert watch.results() == again


def test_waived_and_overridden(test_file, capsys):
    arguments = ["simulate", str(test_file), "--out", str(test_file.parent / "waived"), "--quiet", "--no-report", *sets(*QUICK)]
    assert cli.main([*arguments, "--waive", 'peak <force> & "more"']) == 0
    assert "requirements: 4 met, 1 not judged" in capsys.readouterr().out
    assert cli.main([*arguments, *sets('requirement.peak <force> & "more".below_n=9000')]) == 0
    assert cli.main([*arguments, "--waive", "peek"]) == 2
    assert "waive: no requirement 'peek'; there are: " in capsys.readouterr().err


@pytest.mark.parametrize("every", [2, 500])
def test_a_thinned_log_keeps_what_the_run_saw(test_file, every):
    """A channel whose peak lies between two kept ticks."""
    row = {"name": "acceleration", "channel": "max(abs(A_TA[0:3]))", "below_m_s2": 1e-9}
    config = load_test(DOCKING, [*QUICK, f"telemetry.log_every={every}"], [row])
    summary = simulate(config, Options(out=str(test_file.parent / f"thinned{every}"), quiet=True, report=False))
    log = read_log(summary["log"])
    kept = next(one for one in summary["requirements"] if one["name"] == "acceleration")
    alone = of_log(log, [row])[0]
    whole = simulate(load_test(DOCKING, list(QUICK), [row]), Options(out=str(test_file.parent / f"whole{every}"), quiet=True, report=False))
    assert kept == next(one for one in whole["requirements"] if one["name"] == "acceleration")
    assert summary["exit_code"] == 1 and (alone.value < kept["value"] if every == 500 else alone.value <= kept["value"])


PROGRAMME = """
[programme]
name = "two"
test = "{test}"

[[requirement]]
name = "force on the load cell"
channel = "max(abs(F_S[0:3]))"
below_n = 20.0

[[variant]]
number = "A"
description = "as it is"
expect = "captured"

[[variant]]
number = "B"
description = "the same, from which less is asked"
expect = "captured"
waive = ["force on the load cell"]
"""


def test_a_programme_stands_on_expectation_and_requirements(tmp_path, capsys):
    file = tmp_path / "two.toml"
    file.write_text(PROGRAMME.format(test=DOCKING))
    code = cli.main(["simulate", str(file), "--out", str(tmp_path / "out"), "--quiet", "--no-report", *sets(*QUICK),
                     "--json", str(tmp_path / "reported.json"), "--junit", str(tmp_path / "reported.xml")])  # fmt: skip
    reported = json.loads((tmp_path / "reported.json").read_text())
    assert code == reported["exit_code"] == 1 and reported["passed"] == 2
    names = [[row["name"] for row in one["requirements"]] for one in reported["variants"]]
    assert names[0].count("force on the load cell") == 1 and "force on the load cell" not in names[1]
    cases = valid(tmp_path / "reported.xml")
    assert cases["A", "expectation"].is_passed and not cases["A", "force on the load cell"].is_passed and ("B", "run") not in cases
    assert "VIOLATED: force on the load cell" in capsys.readouterr().out.replace("\n", " ")
    file.write_text(PROGRAMME.format(test=DOCKING).replace('waive = ["force', 'waive = ["farce').replace("below_n", "below_m"))
    with pytest.raises(ConfigurationError) as caught:
        load_programme(file)
    assert "two.toml: requirement[0].below_m: not in the unit of" in str(caught.value)


def test_a_channel_that_one_variant_lacks_is_found_before_the_first_one_runs(tmp_path, capsys):
    file, out = tmp_path / "two.toml", tmp_path / "out"
    row = '[[requirement]]\nname = "gap"\nchannel = "{}"\nbelow_mm = 900.0\n'
    file.write_text(PROGRAMME.format(test=DOCKING) + row.format("dynamics.nowhere"))
    assert cli.main(["simulate", str(file), "--out", str(out), "--quiet", "--no-report", *sets(*QUICK)]) == 2
    reported = capsys.readouterr().err
    assert all(f"variant {number}: " in reported for number in "AB") and "no channel 'dynamics.nowhere'" in reported and not out.exists()


# without those whose crafts take seconds to read: its unit is that of docking.toml
SHIPPED_PROGRAMMES = [f for f in sorted((SHIPPED / "programmes").glob("*.toml"))
                      if is_programme(f) and f.stem not in ("docking_crafts", "large_crafts")]  # fmt: skip


@pytest.mark.parametrize("file", SHIPPED_PROGRAMMES, ids=[f.stem for f in SHIPPED_PROGRAMMES])
def test_every_shipped_variant_has_the_channels_that_its_requirements_name(file):
    name, variants = load_programme(file)
    units = {(v.config.paths.get("mechanism"), v.config.part("dynamics")[0]): v for v in variants}  # what decides on the channels
    assemble_all(name, list(units.values()))
    assert all(v.config.document.get("requirement") for v in variants)


SINGLE = [f for f in sorted((SHIPPED / "programmes").glob("*.toml")) if not is_programme(f)]


@pytest.mark.parametrize("file", SINGLE, ids=[f.stem for f in SINGLE])
def test_every_shipped_test_and_campaign_states_requirements_with_their_source(file):
    config = load_plan(file).base if "campaign" in parse_toml(file.read_text()) else load_test(file)
    stated = config.document.get("requirement", [])
    assert stated and all(one["source"] for one in stated)


def test_a_case_of_a_campaign_is_judged_and_the_statistics_count():
    rows = [{"name": "force", "channel": "norm(F_T[0:3])", "below_n": 10.0, "violated_max": 0.5},
            {"name": "caught", "value": "captured_after_s", "below_s": 10.0}]  # fmt: skip
    config = load_test(DOCKING, [*QUICK, "test.duration_max_s=8.0"], rows)
    found = run_case(config.as_toml(), 3, ["lateral_y_m"], [0.01], ["initial_conditions.lateral_y_m=0.01"])
    assert found["verdict force"] == VIOLATED and found["margin force"] < 0.0 and found["verdict caught"] == MET

    import pyarrow as pa

    names = ["verdict force", "margin force", "verdict caught", "margin caught", "faults", "error"]
    cases = [(VIOLATED, -1.0, MET, 3.0, "", ""), (MET, 2.0, MET, 4.0, "", ""), (None, None, VIOLATED, float("nan"), "", ""),
             (MET, 4.0, MET, 5.0, "force_high", "")]  # fmt: skip
    table = pa.table({name: [case[i] for case in cases] for i, name in enumerate(names)})
    counted = statistics.demanded(table, rows)
    assert [counted["force"][key] for key in ("met", "violated", "not_judged", "kept")] == [2, 1, 1, True]
    assert counted["force"]["share"] == pytest.approx(1 / 3) and counted["force"]["margin"]["p50"] == 2.0
    assert [statistics.standing(counted[name]) for name in ("force", "caught")] == ["kept", "violated"]
    left = (MET, 0.5, VIOLATED, float("nan"), "mechanism_invalid", "")  # what the rest would have brought is not known
    broken = (VIOLATED, -9.0, VIOLATED, -0.5, "mechanism_invalid", "")
    came = (MET, 0.1, MET, 0.1, "mechanism_invalid", "")
    more = statistics.demanded(pa.table({name: [case[i] for case in (*cases, left, broken, came)] for i, name in enumerate(names)}), rows)
    assert [more["force"][key] for key in ("met", "violated", "not_judged")] == [2, 2, 3] and more["force"]["margin"]["p0"] == -9.0
    assert [more["caught"][key] for key in ("met", "violated", "not_judged")] == [4, 2, 1] and more["caught"]["margin"]["p0"] == -0.5
    nowhere = statistics.demanded(pa.table({name: [None] * 4 for name in names}), rows)
    assert statistics.standing(nowhere["force"]) == "not judged", "what no case came to is not called kept"
    assert counted["caught"]["kept"] is False and counted["caught"]["margin"]["p0"] == 3.0


def test_the_bus_says_live_what_the_log_says_in_the_end(ran, tmp_path):
    """The records of a run through the telemetry process: topic `requirements` comes to the log's results."""
    log = read_log(ran[1]["log"])
    header = LogHeader(run_id="live", mode="live", configuration=log.header.configuration, aux=log.header.aux)
    block = SharedBlock.create(4096, log.header.aux_count)
    any_port = "tcp://127.0.0.1:*"
    settings = TelemetrySettings(log_path=str(tmp_path / "run.mcap"), telemetry_address=any_port, command_address=any_port)
    process = TelemetryProcess.start(block.fd, settings, header)
    told = []
    try:
        ends = process.endpoints
        with zmq.Context() as context, context.socket(zmq.SUB) as heard, Client(*list(ends.values())[:2], timeout_s=20.0) as client:
            heard.connect(ends["telemetry_address"])
            heard.subscribe(b"requirements")
            while not heard.poll(100):  # the first says that nothing has come yet
                assert client.status()["running"]
            for at in range(0, log.ticks, 1000):
                piece = np.ascontiguousarray(log.records[at : at + 1000])
                block.push_records(piece.view(np.uint8), piece.itemsize)
                while client.status()["tick"] < piece["tick"][-1]:  # nothing is passed over, however busy the machine
                    if heard.poll(50):  # politely: too many requests are refused
                        told.append(unpack(heard.recv_multipart()[1]))
            described = client.describe()["requirements"]
            block.finished = True
            closed = process.finish()
            while heard.poll(2000):
                told.append(unpack(heard.recv_multipart()[1]))
                if told[-1]["final"]:
                    break
    finally:
        if process.alive:
            process.kill()
    results = [one.as_dict() for one in of_log(read_log(closed["path"]))]
    assert results == [one.as_dict() for one in of_log(log)] == told[-1]["requirements"]
    first = {one["name"]: one for one in told[0]["requirements"]}
    assert first['peak <force> & "more"']["verdict"] == NOT_JUDGED and told[0]["run"] == "live"
    assert [one["name"] for one in described] == [one["name"] for one in results]
