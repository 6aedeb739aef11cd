"""Faults with the line to mend, and files that the wrong verb was given."""

import sys
import tomllib

import pytest

from hil_server import cli
from hil_server.config import SHIPPED, named_file
from hil_server.host.installation import import_remedy
from hil_server.terminal.faults import located, places

TEXT = '''# a comment with [brackets] and = signs
top = 1

[test]
name = "a [name] = with # everything"
text = """
[no_table]
no_key = 1
"""
rows = [
  [1.0, 2.0],
  [3.0, 4.0],
]
after = 3

[a.b]
c.d = 5
"quoted" = 6
inline = { x = 1, y = { z = 2 } }

[[variant]]
number = "RT-01"
set = { "initial_conditions.yaw_deg" = 3.0 }

[[variant]]
number = "RT-02"
[variant.set]
mass_kg = 1
'''


def line_with(text, what, nth=0):
    return [i for i, line in enumerate(text.splitlines(), 1) if what in line][nth]


def test_places_are_the_lines_of_the_keys():
    found = places(TEXT)
    for path, what, nth in [
        ("top", "top", 0), ("test", "[test]", 0), ("test.name", "name =", 0), ("test.rows", "rows", 0), ("test.after", "after", 0),
        ("a", "[a.b]", 0), ("a.b", "[a.b]", 0), ("a.b.c.d", "c.d", 0), ("a.b.quoted", "quoted", 0), ("a.b.inline", "inline", 0),
        ("variant[0].number", "RT-01", 0), ("variant[1]", "[[variant]]", 1), ("variant[1].set.mass_kg", "mass_kg", 0),
        ("variant RT-02", "RT-02", 0),
    ]:  # fmt: skip
        assert found[path] == line_with(TEXT, what, nth), path
    assert "test.no_key" not in found and "no_table" not in found


@pytest.mark.parametrize("file", sorted(str(p.relative_to(SHIPPED)) for p in SHIPPED.rglob("*.toml")))
def test_every_key_of_the_shipped_files_has_its_line(file):
    """Against the TOML reader: each key at its path, and its own name in the line that is reported."""
    text = SHIPPED.joinpath(file).read_text()
    found, lines = places(text), text.splitlines()

    def walk(value, path):
        for key, item in value.items():
            full = f"{path}.{key}" if path else key
            if full not in found:  # inside of an inline table
                assert path in found and key in text, full
                continue
            line = lines[found[full] - 1]
            assert key in line, (full, line)
            if isinstance(item, dict):
                walk(item, full)
            elif isinstance(item, list) and item and isinstance(item[0], dict) and line.lstrip().startswith("[["):
                for i, row in enumerate(item):
                    assert lines[found[f"{full}[{i}]"] - 1].lstrip().startswith("[["), full
                    walk(row, f"{full}[{i}]")

    walk(tomllib.loads(text), "")


def test_a_fault_has_its_line(tmp_path):
    file = tmp_path / "a file.toml"
    file.write_text(TEXT)
    assert located(f"{file}: a.b.inline.y.z: must be 3") == f"{file}:{line_with(TEXT, 'inline')}: a.b.inline.y.z: must be 3"
    assert located(f"{file}: test.nothing: is missing").startswith(f"{file}:{line_with(TEXT, '[test]')}: test.nothing")
    assert located(f"{file}: variant RT-02: {file}: test.rows[1]: wrong") == (
        f"{file}:{line_with(TEXT, 'RT-02')}: variant RT-02: {file}:{line_with(TEXT, 'rows')}: test.rows[1]: wrong"
    )
    for same in ("--set: test.name: wrong", "nowhere.toml: test.name: wrong", f"{file}: cannot be read: why", "one\ntwo"):
        assert located(same) == same


CRAFT_TEXT = """name = "c"
[[body]]
name = "hub"
joint = "free"
[body.rigid]
mass_kg = 1.0
[[body]]
name = "wing"
joint = "fixed"
[body.rigid]
mass_kg = 2.0
[[port]]
name = "hub"
body = "wing"
"""


def test_a_table_is_found_by_its_name_too():
    found = places(CRAFT_TEXT)
    assert [found[f"body.{key}"] for key in ("hub", "hub.joint", "hub.rigid.mass_kg", "wing", "wing.joint", "wing.rigid.mass_kg")] == [
        2, 4, 6, 7, 9, 11]  # fmt: skip
    assert found["body[1].rigid.mass_kg"] == 11 and found["port.hub.body"] == 14


def test_the_command_line_names_the_line(tmp_path, capsys):
    text = SHIPPED.joinpath("programmes", "docking.toml").read_text().replace("rate_hz = 1000", "rate_hz = 1e9\nnonsense = 3")
    file = tmp_path / "docking.toml"
    file.write_text(text)
    assert cli.main(["simulate", str(file)]) == 2
    reported = capsys.readouterr().err
    for key in ("rate_hz", "nonsense"):
        assert f"{file}:{line_with(text, key)}: test.{key}: " in reported
    assert cli.main(["check", str(file)]) == 2
    reported = capsys.readouterr().out
    assert f"{file}:{line_with(text, 'nonsense')}: " in reported
    assert len(reported.partition("nonsense")[2].splitlines()) <= 4, "what is to be mended stands last"


@pytest.mark.parametrize(
    ("verb", "file", "reported"),
    [
        ("run", "idss_campaign.toml", "is a campaign, not a test: hil-server campaign "),
        ("simulate", "probe_cone_campaign", "is a campaign, not a test: hil-server campaign "),
        ("simulate", "stands/docking_stand.toml", "is a stand, not a test: hil-server workspace "),
        ("predict", "docking_variants.toml", "is a programme, not a test: hil-server simulate "),
        ("predict", "transport_ship", "is a craft, not a test: hil-server craft "),
        ("campaign", "docking.toml", "is a test, not a campaign: hil-server simulate "),
        ("campaign", "docking_variants.toml", "is a programme, not a campaign: hil-server simulate "),
        ("simulate", "ring_idss", "is a mechanism, not a test: hil-server check "),
    ],
)
def test_the_wrong_verb_names_the_right_one(verb, file, reported, capsys):
    assert cli.main([verb, file]) == 2
    err = capsys.readouterr().err
    assert reported in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["docking", "docking.toml", "programmes/docking.toml", "programmes/docking"])
def test_a_shipped_file_has_short_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert named_file(name) == SHIPPED / "programmes" / "docking.toml"
    (tmp_path / "docking").write_text("mine")
    assert (named_file(name).read_text() == "mine") == (name == "docking"), "one's own file comes first"


def test_the_folder_that_a_verb_means_comes_first():
    assert named_file("berthing_head").parent.name == "programmes"
    assert named_file("berthing_head", "mechanisms").parent.name == "mechanisms"
    assert str(named_file("no_such_file")) == "no_such_file"


def test_every_verb_takes_the_short_names(capsys, tmp_path, monkeypatch):
    from hil_server.campaign.plan import load_plan
    from hil_server.predict.workspace import load_platform
    from hil_server.run.identification import feels_load
    from hil_server.run.programme import is_programme

    monkeypatch.chdir(tmp_path)
    assert cli.main(["craft", "station_module"]) == 0
    assert load_platform("hydraulic_stand").name and feels_load("hydraulic_stand") and not feels_load("docking_stand")
    assert is_programme("docking_variants") and load_plan("design_campaign").name


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["craft", "docking_stand.toml"], "is a stand, not a craft: hil-server workspace stands/docking_stand.toml "),
        (["simulate", "{log}"], "is a log, not a test: hil-server report {log} "),
        (["campaign", "{log}"], "is a log, not a campaign: hil-server report {log} "),
        (["replay", "docking.toml"], "is a test, not a log: hil-server simulate programmes/docking.toml "),
        (["report", "{folder}"], "is a folder, not a log: {log}"),
        (["replay", "{folder}/wrench.csv"], "is a CSV file, not a log: hil-server import {folder}/wrench.csv "),
        (["compare", "docking.toml", "{log}"], "is a test, not a log or recording: "),
        (["compare", "{log}", "{log}", "{log}"], "compare: 3 logs; give two, or a recording.toml and several logs"),
        (["workspace", "docking.toml"], "is a test, not a stand: hil-server simulate "),
        (["identify", "docking.toml"], "is a test, not a stand: hil-server simulate "),
        (["identify", "{log}", "--write", "s.toml"], "is a log: give the stand file instead"),
        (["calibrate", "docking.toml"], "is a test, not a log or CSV file: hil-server simulate "),
        (["sign", "docking.toml", "--owner", "A"], "is a test, not a stand: hil-server simulate "),
        (["run", "--prediction", "docking.toml"], "is a test, not a log: hil-server simulate "),
        (["fly", "docking_variants"], "is a programme, not a test: fly takes one test; hil-server run docking_variants "),
        (["simulate", "dokcing.toml"], "did you mean docking.toml?"),
        (["replay", "{folder}/rum.mcap"], "did you mean {log}?"),
        (["simluate"], "no verb 'simluate', did you mean simulate?"),
        (["simulate", "--quite"], "no option --quite, did you mean --quiet?\nexample: hil-server simulate "),
        (["sign", "docking_stand.toml"], "the following arguments are required: --owner\nexample: hil-server sign stand.toml --owner "),
        (["tune", "compensation.lead_factor", "much"], "VALUE: invalid float value: 'much'\nexample: hil-server tune "),
        (["tune", "compensation.lead_factor"], "the new value is missing, e.g. hil-server tune compensation.lead_factor 0.9"),
        (["export", "{log}", "--format", "xlsx"], "invalid choice: 'xlsx'"),
        (["export", "{log}", "--channels", "Force"], "no channel 'Force'"),
        (["command", "retreet"], "unknown command 'retreet'"),
        (["command", "hold", "3"], "command hold: takes no arguments, got 1"),
        (["simulate", "--set", "velocity=0.2"], "--set velocity: has no table; write TABLE.KEY=VALUE, e.g. --set initial"),
        (["simulate", "--waive", "nothing"], "waive: no requirement 'nothing'; there are: captured in time"),
        (["fmu", "trust", "ghost.fmu"], "ghost.fmu: No such file or directory"),
        (["fmu", "ghost.fmu"], "invalid choice: 'ghost.fmu' (choose from 'list', 'trust', 'forget')\nexample: hil-server fmu trust "),
        (["simulate", "{folder}"], "is a folder, not a test, and has no TOML file in it; its log: hil-server report {log}"),
        (["simulate", "docking", "docking"], "takes no argument docking\nexample: hil-server simulate docking "),
        (["simulate", "--json", "{folder}/no/a.json"], "--json {folder}/no/a.json: cannot be written: No such folder"),
        (["simulate", "--junit", "{folder}"], "--junit {folder}: cannot be written: is a folder"),
        (["simulate", "--out", "/proc/x"], "--out /proc/x: No such file or directory: choose a folder that can be written to"),
        (["simulate", "docking", "--from", "{log}"], "--from: the log holds the configuration; docking cannot be given too"),
        (["simulate", "--set", "initial_conditions"], "must be key=value, as compensation.part=none"),
        (["simulate", "--set", "test"], "must be key=value, as compensation.part=none"),
        (["simulate", "--set", "test=3"], "--set test: is a table; set one of its keys, e.g. --set test.rate_hz=500"),
        (["simulate", "--set", "test.rate_hz=1e6"], "--set: test.rate_hz: must be a number within 100 ... 4000 Hz, got 1000000.0"),
        (["simulate", "--set", "test.rate_hz=fast"], "--set: test.rate_hz: must be a number within 100 ... 4000 Hz, got 'fast'"),
        (["simulate", "--set", "initial_conditions.velocity_x=0.1"], "unknown key, value 0.1, did you mean 'velocity_x_m_s'?"),
        (["simulate", "--set", "compensation.part=smiht"], "compensation.part: no such part, value 'smiht', limit one of "),
        (["simulate", "--set", "stand.wrench_sensor.part=ati"], "robotiq_ft300, unit -, did you mean 'ati_can'?"),
        (["simulate", "--set", "test.mechanism=nowhere.toml"], "test.mechanism: no such file, value 'nowhere.toml', limit a file "),
        (["simulate", "--set", "test.active_vehicle=stands/docking_stand.toml"], "is a stand, not a craft: hil-server workspace "),
        (["simulate", "--set", "test.mechanism=vehicles/large_station.toml"], "is a craft, not a mechanism: hil-server craft "),
        (["simulate", "--set", "test.stand=docking.toml", "--set", "stand.limits.force_limit_n=3"], "is a test, not a stand: hil-server "),
        (["list", "part"], "no role 'part'; roles: clocks, wrench_sensors, "),
        (["list", "compensation", "smiht"], "no part 'smiht'"),
        (["list", "channels", "forc"], "hil-server list channels | grep forc finds channels by their name"),
        (["life", "{log}", "--curve", "steel"], "--curve steel: must be EXPONENT:RANGE@CYCLES, as 5:8000@1e5"),
        (["rehearsal", "{log}"], "not a berthing run: its guidance is docking; hil-server report {log} shows it"),
        (["campaign", "design_campaign", "--cases", "many"], "--cases: invalid int value: 'many'\nexample: hil-server campaign "),
        (["campaign", "design_campaign", "--cases", "0"], "--cases and --workers must be at least 1"),
        (["import", "ghost.csv"], "ghost.csv: cannot be read: No such file or directory"),
        (["import", "{log}"], "a log of hil-server needs no import: hil-server replay {log}"),
        (["workspace", "dokcing_stand"], "no such stand file, nor a shipped stand; shipped are docking_stand, electric_stand, "),
        (["console", "--port", "http"], "--port: invalid int value: 'http'\nexample: hil-server console"),
        (["foxglove", "--port", "99999"], "--port: 99999 must be within 0 ... 65535"),
        (["hand-controller", "--source", "joystick9"], "joystick9: cannot be read: No such file or directory"),
        (["completion", "tcsh"], "invalid choice: 'tcsh' (choose from 'bash', 'zsh', 'fish')"),
        (["new", "{folder}"], "exists and is not empty: choose another name"),
        (["run", "--stand", "docking_stand"], "no option --stand, did you mean --set?\nexample: hil-server run docking"),
    ],
)
def test_a_mistake_is_answered_with_what_to_type(arguments, answer, log, capsys, monkeypatch):
    folder = log.parent
    (folder / "wrench.csv").write_text("t,fx\n0,1\n")
    named = {"log": str(log), "folder": str(folder)}
    assert cli.main([word.format(**named) for word in arguments]) == 2
    err = capsys.readouterr().err
    assert answer.format(**named) in err and "Traceback" not in err and len(err.splitlines()) <= 3


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of a short run, alone in its folder."""
    folder = tmp_path_factory.mktemp("a_log")
    assert cli.main(["simulate", "--quiet", "--no-report", "--out", str(folder), "--set", "test.duration_max_s=0.05"]) == 0
    return folder / "run.mcap"


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ModuleNotFoundError("No module named 'numpy'", name="numpy"), "package 'numpy' is missing in Python "),
        (ModuleNotFoundError("No module named 'rt_kernels.layout_of_another'", name="rt_kernels.clocks"), "kernels: built for "),
        (ImportError("undefined symbol", name="json"), ""),
    ],
)
def test_another_python_is_answered_with_the_right_one(error, answer, monkeypatch):
    monkeypatch.setattr("sysconfig.get_config_var", lambda name: ".cpython-399-x86_64-linux-gnu.so")
    text = import_remedy(error)
    assert text.startswith(answer) and (not answer) == (not text)
    assert not answer or sys.executable in text


def test_a_kernel_that_fails_in_its_own_python_is_an_internal_error():
    assert import_remedy(ImportError("undefined symbol", name="rt_kernels.clocks")) == ""
