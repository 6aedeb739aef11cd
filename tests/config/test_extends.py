"""Files that say only what differs from another one: what is merged and how, what is refused, whose line a fault has, whose values are
signed, and what a log keeps."""

import shutil
import tomllib

import pytest

from hil_server.cli import main
from hil_server.config import SHIPPED, extends, load_test, narrowing
from hil_server.errors import ConfigurationError
from hil_server.identify.drives import write_stand
from hil_server.run.programme import load_programme
from hil_server.run.replay import replay
from hil_server.run.session import Options, simulate
from hil_server.terminal.faults import located
from rt_kernels.extends import ExtendsError, read_tables, read_whole
from rt_kernels.multibody import Tree

BASE = """
title = "base"
list = [1, 2, 3]

[deep.inner]
kept = 1
changed = 1

[of_part]
part = "a"
of_a = 1

[[row]]
name = "first"
kept = 1
changed = 1

[[row]]
name = "second.with dots"
x = 2

[[step]]
at = 1

[[step]]
at = 2

[safety_record]
owner = "somebody"
"""


@pytest.fixture
def folder(tmp_path):
    """Function: writes files, `name=text`, and returns the last one's path."""

    def write(**texts):
        for name, text in texts.items():
            (file := tmp_path / f"{name}.toml").write_text(text)
        return file

    return write


def own(text, folder, base=BASE):
    return read_whole(folder(base=base, own=f'extends = "base.toml"\n{text}'))


def test_tables_merge_and_values_and_lists_are_replaced(folder):
    found = own("title = 'own'\nlist = [4]\nmore = 1\n[deep.inner]\nchanged = 2\nadded = 3\n[deep.other]\nz = 1", folder).tables
    assert found["title"] == "own" and found["list"] == [4] and found["more"] == 1 and "extends" not in found
    assert found["deep"] == {"inner": {"kept": 1, "changed": 2, "added": 3}, "other": {"z": 1}}
    assert found["of_part"] == {"part": "a", "of_a": 1}


def test_named_rows_merge_and_others_are_replaced(folder):
    rows = own('[[row]]\nname = "third"\n[[row]]\nname = "first"\nchanged = 2\n[[step]]\nat = 9', folder).tables
    assert rows["row"] == [{"name": "first", "kept": 1, "changed": 2}, {"name": "second.with dots", "x": 2}, {"name": "third"}]
    assert rows["step"] == [{"at": 9}]
    twice = own('[[row]]\nname = "third"\n[[row]]\nname = "third"', folder).tables
    assert twice["row"] == [{"name": "third"}] * 2  # and the reader of the rows reports it


def test_another_part_takes_no_keys_of_the_former(folder):
    assert own('[of_part]\npart = "b"\nof_b = 1', folder).tables["of_part"] == {"part": "b", "of_b": 1}
    assert own('[of_part]\npart = "a"\nof_b = 1', folder).tables["of_part"] == {"part": "a", "of_a": 1, "of_b": 1}
    assert own('part = "b"\nown = 1', folder, 'part = "a"\nshared = 1').tables == {"part": "b", "shared": 1, "own": 1}  # the top does not


def test_what_is_left_out(folder):
    found = own('without = ["title", "deep.inner.kept", "row.second.with dots", "row.first.changed", "step"]\n[deep.inner]\nx = 1', folder)
    assert found.tables == {"list": [1, 2, 3], "deep": {"inner": {"changed": 1, "x": 1}}, "of_part": {"part": "a", "of_a": 1},
                            "row": [{"name": "first", "kept": 1}]}  # fmt: skip
    assert "safety_record" in own("[safety_record]\ndate = 'today'", folder).tables
    assert own("[safety_record]\ndate = 'today'", folder).tables["safety_record"] == {"date": "today"}


def test_as_many_levels_as_there_are(folder):
    names = [f"level{i}" for i in range(40)]
    texts = {name: f'extends = "{names[i - 1]}.toml"\n[a]\n{name} = {i}' for i, name in enumerate(names) if i}
    found = read_whole(folder(level0="[a]\nlevel0 = 0", **texts))
    assert found.tables == {"a": {name: i for i, name in enumerate(names)}} and len(found.texts) == 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extends = "own.toml"', r"own\.toml: extends: a circle, value 'own\.toml', limit a file that does not extend"),
        ('extends = "circle.toml"', r"circle\.toml: extends: a circle, value 'own\.toml'.*own\.toml -> .*circle\.toml -> .*own\.toml"),
        ('extends = "nowhere.toml"', r"own\.toml: extends: no such file, value 'nowhere\.toml', limit a file below .* or .*stand_configs"),
        ('extends = ""', r"own\.toml: extends: no such file, value ''"),
        ('extends = "a\\u0000b"', r"own\.toml: extends: no such file"),
        ("extends = 3", r"own\.toml: extends: must be the name of a file, got 3"),
        ('extends = ["base.toml"]', r"own\.toml: extends: must be the name of a file, got \['base\.toml'\]"),
        ('extends = "broken.toml"', r"broken\.toml: not TOML: .*, extended by .*own\.toml"),
        ('without = ["title"]', r"own\.toml: without: nothing to leave out, value \['title'\], limit only beside extends"),
        ('extends = "base.toml"\nwithout = "title"', r"own\.toml: without: must be a list of keys.*, got 'title'"),
        ('extends = "base.toml"\nwithout = ["title", "titel"]', r"own\.toml: without\[1\]: not in the extended file, value 'titel'"),
        ('extends = "base.toml"\nwithout = ["row.first.x"]', r"without\[0\]: not in the extended file, value 'row\.first\.x'"),
    ],
)  # fmt: skip
def test_what_is_refused(folder, text, words):
    file = folder(base=f"mass_kg = 1.0\n{BASE}", circle='extends = "own.toml"', broken="= 1", own=text)
    with pytest.raises(ExtendsError, match=words):
        read_whole(file)
    with pytest.raises(ConfigurationError, match=words):
        extends.whole(file)


def test_only_files_of_one_kind(files, tmp_path):
    files()
    for text, words in [
        ('extends = "stand.toml"\n[test]\nname = "x"', r"stand\.toml is a stand, value 'stand\.toml', limit a test, unit -"),
        ('extends = "stand.toml"\n[campaign]\nname = "x"', r"own\.toml: is a campaign, not a test"),
        ('extends = "nothing.toml"', r"nothing\.toml is neither test nor stand, craft or docking unit"),
    ]:
        (tmp_path / "nothing.toml").write_text("x = 1")
        (tmp_path / "own.toml").write_text(text)
        with pytest.raises(ConfigurationError, match=words):
            load_test(tmp_path / "own.toml")
    (tmp_path / "own.toml").write_text('extends = "stand.toml"')
    with pytest.raises(ConfigurationError, match=r"own\.toml: is a stand, not a test"):
        load_test(tmp_path / "own.toml")


# ------------------------------------------------------------------------------------------------------------------- whole tests
REQUIREMENT = '\n[[requirement]]\nname = "{}"\nchannel = "F_T[0]"\nbelow_n = 1.0\n'


def extending(tmp_path, **texts):
    """The files of a test, each extending the one that `files` has written."""
    for name, text in texts.items():
        shutil.move(tmp_path / f"{name}.toml", tmp_path / f"{name}_base.toml")
        (tmp_path / f"{name}.toml").write_text(f'extends = "{name}_base.toml"\n{text}')


def test_a_test_and_all_that_it_names_may_extend(files, tmp_path):
    whole = load_test(files())
    extending(tmp_path, test="[test]\nrate_hz = 500", stand='name = "second"', active="mass_kg = 7000.0", mechanism="gain = 6.0")
    config = load_test(tmp_path / "test.toml")
    assert (config.test["rate_hz"], config.stand["name"], config.mechanism["gain"]) == (500, "second", 6.0)
    assert config.active_vehicle["mass_kg"] == 7000.0 and config.target_vehicle == whole.target_vehicle
    assert len(config.sources) == 9 and "1000" in config.sources[str(tmp_path / "test_base.toml")]  # the texts, too, are in the log
    former = ["test.rate_hz=1000", "stand.name=bench", "active_vehicle.mass_kg=6000.0", "mechanism.gain=5.0"]
    same = load_test(tmp_path / "test.toml", former)
    assert same.document == whole.document


def test_a_fault_has_file_and_line_of_the_key(files, tmp_path):
    files()
    base = (tmp_path / "test.toml").read_text() + REQUIREMENT.format("one") + REQUIREMENT.format("two")
    (tmp_path / "test.toml").write_text(base.replace("lateral_y_m = 0.02", "lateral_w_m = 0.02").replace('"two"\nchannel', '"two"\nchanel'))
    extending(tmp_path, test='without = ["requirement.one"]\n[test]\nrate_hz = 1e9\n[safety]\ngain = 1e9\n' + REQUIREMENT.format("three")
              .replace("below_n", "below"), stand="[limits]\nforce_limit_n = 3", active="mas_kg = 1")  # fmt: skip
    with pytest.raises(ConfigurationError) as refused:
        load_test(tmp_path / "test.toml", ["guidance.gain=-1"])
    found = [located(fault) for fault in refused.value.faults]

    def line_with(file, words):
        return next(i for i, line in enumerate((tmp_path / file).read_text().splitlines(), 1) if words in line)

    for file, words, path in [
        ("test.toml", "rate_hz", "test.rate_hz"),
        ("test.toml", "gain = 1e9", "safety.gain"),
        ("test_base.toml", "lateral_w_m", "initial_conditions.lateral_w_m"),
        ("test_base.toml", "chanel", "requirement[1].chanel"),
        ("test.toml", "below =", "requirement[0].below"),
        ("stand.toml", "force_limit_n", "limits.force_limit_n"),
        ("active.toml", "mas_kg", "mas_kg"),
    ]:
        begin = f"{tmp_path / file}:{line_with(file, words)}: {path}: "
        assert any(fault.startswith(begin) for fault in found), (begin, found)
    assert any(fault.startswith("--set: guidance.gain: ") for fault in found)
    (tmp_path / "third.toml").write_text('extends = "test.toml"')
    with pytest.raises(ConfigurationError) as refused:
        load_test(tmp_path / "third.toml")
    assert set(map(located, refused.value.faults)) >= {fault for fault in found if "test" in fault and "--set" not in fault}


def test_where_a_key_stands():
    whole = read_whole(SHIPPED / "vehicles/dumbbell_truss_free_free.toml")
    own_file = "dumbbell_truss_free_free"
    for path, file, there in [
        ("body.truss.truss.modes", own_file, "body.truss.truss.modes"),
        ("body[0].truss.modes", own_file, "body[0].truss.modes"),
        ("body[2].rigid.mass_kg", "dumbbell_truss", "body[2].rigid.mass_kg"),
        ("body.truss.truss.missing", own_file, "body.truss.truss.missing"),
        ("body.unknown.x", own_file, "body.unknown.x"),
        ("body[99].x", own_file, "body[99].x"),
        ("name.inner[3]", own_file, "name.inner[3]"),
        ("port", "dumbbell_truss", "port"),
    ]:
        found, path_there = whole.where(path)
        assert (found.stem, path_there) == (file, there), path


def test_names_of_files_keep_their_meaning(tmp_path):
    """A craft with a modal file beside it, extended from another folder; a test likewise, beside another file of a shipped one's name."""
    (tmp_path / "base").mkdir()
    (tmp_path / "own" / "stands").mkdir(parents=True)
    for name in ("large_station_flexible.toml", "large_station_modes.csv", "large_station.toml"):
        shutil.copy(SHIPPED / "vehicles" / name, tmp_path / "base")
    base = (SHIPPED / "programmes/virtual_docking_flexible.toml").read_text().replace("vehicles/large", "large")
    (tmp_path / "base" / "test.toml").write_text(base)
    (tmp_path / "own" / "test.toml").write_text('extends = "../base/test.toml"')
    (tmp_path / "own" / "stands" / "ideal_stand.toml").write_text("not a stand")
    config = load_test(tmp_path / "own" / "test.toml")
    assert config.paths["target_vehicle"].samefile(tmp_path / "base" / "large_station_flexible.toml")
    assert config.paths["stand"] == SHIPPED / "stands" / "ideal_stand.toml" and config.target_vehicle["modal"]["data"]
    (tmp_path / "own" / "craft.toml").write_text('extends = "../base/large_station_flexible.toml"\nmass_kg = 420001.0')
    assert read_tables(tmp_path / "own" / "craft.toml")["modal"]["file"] == "../base/large_station_modes.csv"


def test_a_copy_of_a_shipped_file_still_finds_what_it_extends(tmp_path):
    for name in ("programmes/berthing_head.toml", "mechanisms/ring_idss.toml", "stands/ideal_stand_long_unit.toml",
                 "manipulators/canadarm2.toml"):  # fmt: skip
        copy = shutil.copy(SHIPPED / name, tmp_path)
        assert read_tables(copy) == read_tables(SHIPPED / name)
    assert Tree.from_toml(tmp_path / "canadarm2.toml").nv == 7
    (tmp_path / "own.toml").write_text('extends = "programmes/docking.toml"')
    assert load_test(tmp_path / "own.toml").document == load_test().document


def test_programmes_may_extend(tmp_path):
    text = '[[variant]]\nnumber = "A"\ndescription = "a"\nexpect = "captured"\n'
    (tmp_path / "base.toml").write_text(f'[programme]\nname = "p"\ntest = "docking.toml"\nhold = true\n{text}{text.replace("A", "B")}')
    (tmp_path / "own.toml").write_text(f'extends = "base.toml"\n[programme]\nname = "q"\n{text}')
    name, variants = load_programme(tmp_path / "own.toml")
    assert name == "q" and [one.number for one in variants] == ["A"]  # rows without a name are replaced


# --------------------------------------------------------------------------------------------------------------------- resolved
@pytest.mark.parametrize("file", sorted(str(p.relative_to(SHIPPED)) for p in SHIPPED.rglob("*.toml")))
def test_the_resolved_file_is_whole(file):
    found = extends.whole(SHIPPED / file)
    text = extends.resolved_text(found)
    assert tomllib.loads(text) == found.tables
    assert all(text.splitlines()[0].count(one.name) for one in found.texts)


def test_check_shows_where_each_key_comes_from(files, tmp_path, capsys):
    files()
    extending(tmp_path, test="[test]\nrate_hz = 500\n[telemetry]\nsamples_per_message = 10")
    assert main(["check", str(tmp_path / "test.toml"), "--resolved"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# test.toml, which extends test_base.toml\n")
    for line in ("rate_hz = 500  # test.toml", "duration_max_s = 20.0  # test_base.toml", "[telemetry]  # test.toml",
                 "samples_per_message = 10", "[guidance]  # test_base.toml"):  # fmt: skip
        assert line in shown.splitlines(), line
    (tmp_path / "one.toml").write_text(shown)
    assert load_test(tmp_path / "one.toml").document == load_test(tmp_path / "test.toml").document
    assert main(["check", str(tmp_path / "test_base.toml"), "--resolved"]) == 0
    assert capsys.readouterr().out.startswith("# test_base.toml extends no other file\n")
    assert main(["check", str(tmp_path / "test.toml"), "--resolved", "--set", "test.rate_hz=1"]) == 2
    assert "without --set" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------- signature and log
def test_the_signature_is_of_the_extended_values_too(tmp_path):
    base, own_file = tmp_path / "base.toml", tmp_path / "own.toml"
    shutil.copy(SHIPPED / "stands" / "docking_stand.toml", base)
    own_file.write_text('extends = "base.toml"\nname = "own"\n[limits]\nforce_limit_n = [4000.0, 4000.0, 4000.0]\n')

    def state(file):
        return load_test(None, [f'test.stand="{file}"']).stand["safety_record"]["state"]

    assert state(base) == "signed" and state(own_file) == "unsigned"  # the base's signature is not taken over
    before, record = narrowing.sign(own_file, "A. Nova", "2026-11-27")
    assert before == "unsigned" and state(own_file) == "signed" and 'extends = "base.toml"' in own_file.read_text()
    assert record["checksum"] == narrowing.checksum(extends.tables_of(own_file))
    base.write_text(base.read_text().replace("leg_rate_max_m_s = 0.5", "leg_rate_max_m_s = 0.4"))
    assert state(own_file) == "changed"
    assert narrowing.sign(own_file, "A. Nova", "2026-11-28")[0] == "changed" and state(own_file) == "signed"
    base.write_text(base.read_text().replace("[5000.0, 5000.0, 5000.0]", "[4500.0, 5000.0, 5000.0]"))  # which the own file replaces
    assert state(own_file) == "signed"
    (tmp_path / "whole.toml").write_text(extends.resolved_text(extends.whole(own_file)))
    assert state(tmp_path / "whole.toml") == "signed" and narrowing.sign(tmp_path / "whole.toml", "B", "2026-11-28")[0] == "signed"


def test_an_identified_model_goes_into_the_whole_stand(tmp_path):
    write_stand(SHIPPED / "stands/electric_stand.toml", tmp_path / "found.toml", {"frequency_hz": 12.0, "damping": 0.7, "delay_s": 0.001})
    found, given = extends.tables_of(tmp_path / "found.toml"), extends.tables_of(SHIPPED / "stands/electric_stand.toml")
    assert found.pop("drive_model") == {"frequency_hz": 12.0, "damping": 0.7, "delay_s": 0.001}
    given.pop("drive_model")
    assert found == given


def test_a_log_replays_when_the_files_are_gone(tmp_path):
    (tmp_path / "input").mkdir()
    for name, base in (("test", "programmes/docking.toml"), ("stand", "stands/docking_stand.toml"),
                       ("ship", "vehicles/transport_ship.toml"), ("unit", "mechanisms/probe_cone.toml")):  # fmt: skip
        shutil.copy(SHIPPED / base, tmp_path / "input" / f"{name}_base.toml")
    texts = {"stand": "", "ship": "mass_kg = 7500.0", "unit": "friction = 0.15", "test": '[test]\nname = "gone"\nstand = "stand.toml"\n'
             'active_vehicle = "ship.toml"\nmechanism = "unit.toml"\n[guidance]\ncontact_max_s = 0.5'}  # fmt: skip
    for name, text in texts.items():
        (tmp_path / "input" / f"{name}.toml").write_text(f'extends = "{name}_base.toml"\n{text}')
    config = load_test(tmp_path / "input" / "test.toml")
    log = simulate(config, Options(out=str(tmp_path / "run"), quiet=True, report=False))["log"]
    shutil.rmtree(tmp_path / "input")
    assert replay(log, verify=True)["equal"]
