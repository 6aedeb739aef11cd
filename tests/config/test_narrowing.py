"""Limits only become stricter: every declared one, by a test file, by --set, by tune; and whose they are stands in the stand file."""

import shutil
import tomllib

import pytest

from hil_server import cli, registry
from hil_server.config import SHIPPED, load_test, narrowing, tables, test_from_toml, toml_text
from hil_server.config.checks import part_table
from hil_server.errors import ConfigurationError
from hil_server.line import assembly
from rt_kernels.extends import read_tables
from rt_kernels.parameters import Parameter, Tunable, tuned_parameter
from rt_kernels.stewart.platform import Platform

STAND = SHIPPED / "stands" / "docking_stand.toml"
OWN = tomllib.loads(STAND.read_text())
DOCUMENT = tomllib.loads((SHIPPED / "programmes" / "docking.toml").read_text())


def limits():
    """(path in the document, declaration, what the stand allows) of every limit of the shipped docking."""
    for role in narrowing.GUARDED_ROLES:
        table = DOCUMENT.get(role, {})
        part = table.get("part") or ("latch" if role == "commands" else "two_bodies" if role == "dynamics" else registry.FILLED[role])
        for key, p in narrowing.limits_of(part_table(role, part).parameters.values()).items():
            yield f"{role}.{key}", p, OWN.get(role, {}).get(key, p.default)
    for name, declared in (("limits", tables.LIMITS), ("platform", Platform.PARAMETERS)):
        for key, p in narrowing.limits_of(declared).items():
            yield f"stand.{name}.{key}", p, OWN[name].get(key, p.default)


LIMITS = {path: (p, widest) for path, p, widest in limits()}


def moved(p, value, way):
    """A value of the same shape that is a little higher or lower, inside of the declared span."""
    if isinstance(value, list | tuple):
        return [moved(p, one, way) for one in value]
    if p.kind == "bool":
        return not value
    if p.kind == "str":
        return next(one for one in p.choices if one != value)
    if p.kind == "int":
        return value + (1 if way == "higher" else -1)
    return value * (1.0 + 1e-6 if way == "higher" else 1.0 - 1e-3) if value else 1e-6 if way == "higher" else -1e-6


def wider(p, widest):
    return moved(p, widest, "higher" if p.stricter != "higher" else "lower")


def narrower(p, widest):
    return moved(p, widest, p.stricter)


def within(p, value):
    values = value if isinstance(value, list) else [value]
    return all((p.low is None or x >= p.low) and (p.high is None or x <= p.high) for x in values)


def written(folder, path, value):
    """The shipped test, with this value in the test file itself."""
    role, key = path.split(".")
    document = tomllib.loads((SHIPPED / "programmes" / "docking.toml").read_text())
    document.setdefault(role, {"part": "latch"})[key] = value
    file = folder / "test.toml"
    file.write_text(toml_text.dumps(document))
    return file


def test_there_are_limits_of_every_kind():
    assert {"safety.following_max_m", "safety.energy_trip", "stand.limits.start_tolerance_m", "stand.limits.force_limit_n",
            "stand.platform.leg_rate_max_m_s", "wrench.range_force_n", "commands.stale_s"} <= set(LIMITS)  # fmt: skip


@pytest.mark.parametrize("role", ["safety"])
def test_every_number_of_the_safety_part_says_which_way_is_stricter(role):
    for name in registry.parts(role):
        open_ends = [p.key for p in registry.part(role, name).PARAMETERS if p.kind != "str" and p.stricter is None]
        assert not open_ends, f"{role} {name}: declare `stricter` beside {open_ends}"
    assert not [p.key for p in tables.LIMITS if p.stricter is None]


@pytest.mark.parametrize("path", LIMITS)
def test_wider_is_refused_and_stricter_taken(path, tmp_path):
    p, widest = LIMITS[path]
    if widest is None:
        pytest.skip("the stand has no such limit")
    value = wider(p, widest)
    named = ["commands.part=latch"] if path.startswith("commands.") else []
    ways = [lambda v: load_test(None, [*named, f"{path}={toml_text.value(v)}"])]
    if not path.startswith("stand."):
        ways.append(lambda v: load_test(written(tmp_path, path, v)))
    for load in ways:
        if within(p, value):
            with pytest.raises(ConfigurationError) as error:
                load(value)
            (fault,) = error.value.faults
            assert path.removeprefix("stand.") in fault and "wider than the stand allows" in fault
            assert "docking_stand.toml" in fault and "make a limit stricter: omit it, or change" in fault
        else:  # the span of the key itself ends where the stand's limit does
            with pytest.raises(ConfigurationError, match="must be"):
                load(value)
        if p.stricter == "equal":
            continue
        less = narrower(p, widest)
        if within(p, less):
            record = load(less).stand["safety_record"]
            assert path in [one["key"] for one in record["narrower"]], "the report says so"


def test_another_start_pose_is_refused_where_the_stand_file_has_none():
    with pytest.raises(ConfigurationError, match="start_leg_m: wider than the stand allows"):
        load_test(None, ["stand.limits.start_leg_m=[4.0, 4.0, 4.0, 4.0, 4.0, 4.0]"])


@pytest.mark.parametrize("key", ["safety.following_max_m", "safety.energy_trip"])
def test_tune_only_narrows(key):
    test = assembly.simulation(load_test())
    entry = next(one for one in test.tunables if one.name == key)
    assert entry.high == entry.value == test.config.safety.get(key.split(".")[1], entry.value) and entry.low < entry.value


@pytest.mark.parametrize(("stricter", "span"), [("lower", (0.0, 2.0)), ("higher", (2.0, 9.0)), (None, (0.0, 9.0))])
def test_a_tunable_limit_goes_no_further_than_configured(stricter, span):
    p = Parameter("x", "float", "-", "a limit", 2.0, low=0.0, high=9.0, tunable=Tunable(1.0), stricter=stricter)
    found = tuned_parameter((p,), "x", 2.0, 0, None, None, 1.0)
    assert (found.low, found.high) == span


def test_what_only_may_be_equal_cannot_be_tuned():
    p = Parameter("x", "float", "-", "a limit", 2.0, low=0.0, high=9.0, tunable=Tunable(1.0), stricter="equal")
    assert tuned_parameter((p,), "x", 2.0, 0, None, None, 1.0) is None


def test_a_test_that_says_nothing_has_the_limits_of_the_stand(tmp_path):
    stand = tmp_path / "stand.toml"
    stand.write_text(STAND.read_text().replace("[safety]\n", "[safety]\ncondition_max = 12.0\nenergy_trip = 0.125\n"))
    config = load_test(None, [f'test.stand="{stand}"'])
    assert config.safety["condition_max"] == 12.0 and config.safety["drive_missing_periods"] == 100
    assert next(one.value for one in assembly.simulation(config).tunables if one.name == "safety.energy_trip") == 0.125


@pytest.mark.parametrize(("line", "words"), [
    ("condition_maxx = 12.0", "stand.toml: safety.condition_maxx: unknown key, value 12.0, did you mean 'condition_max'"),
    ("condition_max = 0.5", "stand.toml: safety.condition_max: must be a number within 1 ... 1e+06"),
])  # fmt: skip
def test_a_wrong_limit_of_a_stand_file_is_named(tmp_path, line, words):
    stand = tmp_path / "stand.toml"
    stand.write_text(STAND.read_text().replace("[safety]\n", f"[safety]\n{line}\n"))
    with pytest.raises(ConfigurationError) as error:
        load_test(None, [f'test.stand="{stand}"'])
    assert any(words in fault for fault in error.value.faults), error.value.faults


def test_a_key_of_the_stand_file_that_is_no_limit_belongs_into_the_test(tmp_path):
    stand = tmp_path / "stand.toml"
    stand.write_text(STAND.read_text().replace("[safety]\n", "[wrench]\nfilter_order = 2\n\n[safety]\n"))
    with pytest.raises(ConfigurationError, match="wrench.filter_order: not a limit: it belongs into the test"):
        load_test(None, [f'test.stand="{stand}"'])


def test_the_configuration_of_a_log_is_read_whatever_its_limits_are():
    """With it nothing moves any more: an old log replays, and a what-if may go beyond."""
    text = load_test().as_toml()
    again = test_from_toml(text, ["safety.energy_trip=1e6"])
    assert again.safety["energy_trip"] == 1e6 and again.stand["safety_record"] == load_test().stand["safety_record"]
    assert test_from_toml(text).as_toml() == text


# ------------------------------------------------------------------------------------------------------------------ signature
@pytest.mark.parametrize("file", sorted((SHIPPED / "stands").glob("*.toml")), ids=lambda file: file.stem)
def test_the_shipped_stands_are_signed(file):
    own = read_tables(file)
    assert narrowing.signature(own, (), ())["state"] == "signed", f"hil-server sign {file} --owner 'shipped example'"


def signed(tmp_path, edit=lambda text: text):
    file = tmp_path / "stand.toml"
    file.write_text(edit(STAND.read_text()))
    return file


@pytest.mark.parametrize(("edit", "state"), [
    (lambda text: text, "signed"),
    (lambda text: text.replace("leg_rate_max_m_s = 0.5", "leg_rate_max_m_s = 5e-1  # a comment"), "signed"),
    (lambda text: text.replace('description = "', 'description = "Our '), "signed"),
    (lambda text: text.replace("leg_rate_max_m_s = 0.5", "leg_rate_max_m_s = 0.6"), "changed"),
    (lambda text: text.replace("following_max_m = 0.05", "following_max_m = 0.04"), "changed"),
    (lambda text: text[: text.index("[safety_record]")], "unsigned"),
])  # fmt: skip
def test_the_checksum_is_of_what_it_says_and_not_of_how_it_is_written(tmp_path, edit, state):
    file = signed(tmp_path, edit)
    record = load_test(None, [f'test.stand="{file}"']).stand["safety_record"]
    assert record["state"] == state and record["checksum"].startswith("sha256:")


def test_sign_writes_the_record_in_the_place_of_the_former(tmp_path, capsys):
    file = signed(tmp_path, lambda text: text.replace("leg_rate_max_m_s = 0.5", "leg_rate_max_m_s = 0.4"))
    assert cli.main(["sign", str(file), "--owner", 'A. "Nova"', "--date", "2030-01-02"]) == 0
    assert "changed after its signature" in capsys.readouterr().out
    text = file.read_text()
    assert text.count("[safety_record]") == 1 and STAND.read_text().split("[virtual]")[1].split("[safety")[0] in text
    record = load_test(None, [f'test.stand="{file}"']).stand["safety_record"]
    assert (record["state"], record["owner"], record["date"]) == ("signed", 'A. "Nova"', "2030-01-02")
    assert cli.main(["sign", str(file), "--owner", " "]) == 2
    assert cli.main(["sign", str(SHIPPED / "programmes" / "docking.toml"), "--owner", "A"]) == 2
    assert file.read_text() == text


HEADER, RECORD = STAND.read_text().split("[safety_record]\n")


@pytest.mark.parametrize(("text", "stays"), [
    (HEADER + " [safety_record]\n" + RECORD, ""),
    (HEADER + '[ "safety_record" ]  # of the owner\n' + RECORD.rstrip(), ""),
    (HEADER + "[safety_record]\r\n" + RECORD.replace("\n", "\r\n"), ""),
    (HEADER.replace("[limits]", f"[safety_record]\n# of the owner\n{RECORD}\n# of May\n\n[limits]"), "# of May\n[limits]"),
])  # fmt: skip
def test_a_record_is_found_as_toml_allows_it_and_remarks_stay(tmp_path, text, stays):
    (tmp_path / "real.toml").write_text(text, newline="")
    (tmp_path / "real.toml").chmod(0o640)
    (tmp_path / "stand.toml").symlink_to("real.toml")
    assert narrowing.sign(tmp_path / "stand.toml", "A. Nova", "2030-01-02")[0] == "signed"
    written = (tmp_path / "real.toml").read_text()
    assert tomllib.loads(written) == {**OWN, "safety_record": {**OWN["safety_record"], "owner": "A. Nova", "date": "2030-01-02"}}
    assert stays in written and "of the owner" not in written
    assert (tmp_path / "stand.toml").is_symlink() and (tmp_path / "real.toml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("text", [
    'safety_record = {owner = "A", date = "B", checksum = "C"}\n' + HEADER,
    f'{HEADER}[safety_record]\nnote = """\n[x]"""\n{RECORD}',
])  # fmt: skip
def test_a_record_that_is_no_plain_table_is_not_replaced(tmp_path, text):
    (tmp_path / "stand.toml").write_text(text)
    with pytest.raises(ConfigurationError, match="safety_record: cannot be replaced as it is written there: remove it first"):
        narrowing.sign(tmp_path / "stand.toml", "A. Nova", "2030-01-02")
    assert (tmp_path / "stand.toml").read_text() == text


def test_hardware_waits_for_a_person_to_start(tmp_path):
    named = "test.stand=stands/ethercat_stand.toml"
    assert load_test(None, [named]).guidance["auto_start"] is False and "auto_start" not in load_test().guidance
    with pytest.raises(ConfigurationError, match="guidance.auto_start: hardware does not start by itself"):
        load_test(None, [named, "guidance.auto_start=true"])


def test_hardware_runs_on_signed_limits_only(tmp_path):
    shutil.copy(SHIPPED / "stands" / "ethercat_stand.toml", tmp_path / "stand.toml")
    named = f'test.stand="{tmp_path / "stand.toml"}"'

    def demand(*overrides):
        narrowing.demand_signed(load_test(None, [named, *overrides]).stand["safety_record"], "stand.toml")

    demand("stand.limits.force_limit_n=[100.0, 100.0, 100.0]")
    with pytest.raises(ConfigurationError, match="stand.drives.counts_per_metre: belongs to the signed tables"):
        demand("stand.drives.counts_per_metre=2e6")
    text = (tmp_path / "stand.toml").read_text()
    (tmp_path / "stand.toml").write_text(text.replace("counts_per_metre = 1e6", "counts_per_metre = 2e6"))
    with pytest.raises(ConfigurationError, match="changed after signing.*hil-server sign stand.toml"):
        demand()
    (tmp_path / "stand.toml").write_text(text[: text.index("[safety_record]")])
    with pytest.raises(ConfigurationError, match="are not signed"):
        demand()
