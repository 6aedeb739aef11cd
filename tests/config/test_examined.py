"""`check` of everything that can be run or that a test names: each shipped file is good, and mistakes in programmes and campaigns are
named: file, key, value."""

import copy
import random
import shutil

import pytest

from hil_server.campaign.plan import load_plan
from hil_server.config import SHIPPED, toml_text
from hil_server.config.kinds import kind_of
from hil_server.errors import ConfigurationError
from hil_server.run.programme import load_programme
from hil_server.verbs.check import examined
from rt_kernels.extends import read_tables

KINDS = {path.relative_to(SHIPPED).as_posix(): kind_of(read_tables(path)) for path in sorted(SHIPPED.rglob("*.toml"))}
FILES = [file for file, kind in KINDS.items() if kind]
TESTS = {"programme": 2, "campaign": 1, "stand": 1, "mechanism": 1, "test": 1}


@pytest.mark.parametrize("file", FILES)
def test_a_shipped_file_is_good(file):
    found = examined(SHIPPED / file)
    assert found.kind == KINDS[file] and len({row.config.hash for row in found.rows}) >= min(TESTS.get(found.kind, 0), len(found.rows))
    assert found.rows or "not a vehicle of a docking: " in found.about[0] and file.startswith("manipulators")


def test_every_kind_is_examined_in_its_own_way(tmp_path):
    (tmp_path / "mine").mkdir()
    mine = tmp_path / "mine" / "programme.toml"
    row = '[[variant]]\nnumber = "A"\ndescription = "one"\nexpect = "captured"\n'
    mine.write_text(f'[programme]\nname = "mine"\ntest = "programmes/virtual_docking.toml"\n{row}')
    assert [row.label for row in examined(mine).rows] == ["A"]
    campaign = tmp_path / "mine" / "campaign.toml"
    campaign.write_text('[campaign]\nname = "c"\ntest = "programmes/virtual_docking.toml"\ncases = 3\n[box]\nlateral_y_m = [0.0, 0.1]\n')
    assert examined(campaign).rows[0].label == examined("virtual_docking").name == "virtual_docking"
    stand = tmp_path / "stand.toml"
    stand.write_text((SHIPPED / "stands/ideal_stand.toml").read_text().replace("[virtual]", "[virtual]\nnonsense = 3"))
    with pytest.raises(ConfigurationError, match=rf"{stand}: virtual.nonsense: unknown key"):
        examined(stand)


@pytest.mark.parametrize(("file", "words"), [
    ("[[requirement]]\nname = \"r\"\nchannel = \"probe.nowhere\"\nbelow_m = 1.0\n", "(requirement 'r'), value 'probe.nowhere'"),
    ("[[requirement]]\nname = \"r\"\nchannel = \"signal_analog[0]\"\nbelow_n = 1.0\n", "requirement[0].below_n: not in the unit of"),
])  # fmt: skip
def test_what_only_the_parts_know_is_found_in_every_variant(tmp_path, file, words):
    programme = tmp_path / "p.toml"
    rows = "".join(f'[[variant]]\nnumber = "{n}"\ndescription = "d"\nexpect = "captured"\n' for n in "AB")
    programme.write_text(f'[programme]\nname = "p"\ntest = "virtual_docking.toml"\n{rows}{file}')
    with pytest.raises(ConfigurationError) as caught:
        examined(programme)
    assert all(words in line and str(programme) in line for line in caught.value.faults), caught.value.faults


def test_a_channel_of_the_unit_is_not_judged_where_the_unit_is_not_computed():
    """Hardware has the unit outside of the line: its sensors say less than its channels. A virtual stand has them, too."""
    from hil_server.config import load_test
    from hil_server.line import assembly
    from hil_server.requirements import NOT_JUDGED, Watch, of_configuration

    settings = ["test.stand=stands/docking_stand.toml", "wrench.range_force_n=[5e3,5e3,5e3]", "wrench.range_moment_n_m=[3e3,3e3,3e3]"]
    for more in ([], settings):
        line = assembly.simulation(load_test("virtual_docking", more))
        assert not any(one.absent for one in line.requirements)
    text = (SHIPPED / "programmes" / "virtual_docking.toml").read_text()
    hardware = of_configuration(text, [channel for channel in line.aux if not channel.name.startswith("probe.")])
    gap = next(one for one in Watch(hardware).results() if one.name == "widest gap at the pushers at completion")
    assert gap.verdict == NOT_JUDGED and "'probe.pusher1_gap' is not recorded on this stand" in gap.words


# ------------------------------------------------------------------------------------------------------- mistakes by chance
LOADERS = {"programme": load_programme, "campaign": load_plan}
FREE = {"name", "description", "source", "waive", "signals", "case", "design", "number", "label"}  # any text is good, or none at all
SLOW = ("programmes/docking_crafts.toml", "programmes/large_crafts.toml", "programmes/berthing_rt.toml")
QUICK = [file for file in FILES if KINDS[file] in LOADERS and file not in SLOW]


def places(document):
    """(path of the key, value) of every key but those of a head's `set`, whose keys are the test's."""
    for name, value in document.items():
        for i, table in enumerate(value) if isinstance(value, list) else [(None, value)]:
            for key, inner in table.items():
                path = (name, i, key) if i is not None else (name, key)
                if key == "set":
                    yield from (((*path, "".join(one)), x) for one, x in inner.items() if not isinstance(x, dict))
                elif key != "round":
                    yield path, inner


def mistaken(document, rng):
    """A copy with one mistake, and the words that name it."""
    path, value = rng.choice([(p, v) for p, v in places(document) if p[-1] not in FREE])
    changed = copy.deepcopy(document)
    table = changed
    for step in path[:-1]:
        table = table[step]
    key, kind = path[-1], rng.choice(("misspelt", "another type", "out of range"))
    if kind == "misspelt":
        del table[key]
        table[key + "q"] = value
        return changed, (key.rpartition(".")[2],)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "out of range" and (number or isinstance(value, list) and value and all(isinstance(v, int | float) for v in value)):
        table[key] = -1e300 if number else [float("nan")] * len(value)
        return changed, (key.rpartition(".")[2], "-1e+300" if number else "nan")
    wrong = {"a": "table"} if isinstance(value, str) else "quux"
    table[key] = wrong
    return changed, (key.rpartition(".")[2], "table" if isinstance(value, str) else "quux")


@pytest.mark.parametrize("seed", range(10))
def test_ten_mistakes_by_chance_are_named(tmp_path, seed):
    rng = random.Random(seed)
    home = tmp_path / "stand_configs"
    shutil.copytree(SHIPPED, home, ignore=shutil.ignore_patterns("*.py", "*.pyc", "__pycache__", "schemas"))
    for _ in range(10):
        file = home / rng.choice(QUICK)
        good = file.read_text()
        document = read_tables(file)
        if "variant" in document:
            document["variant"] = document["variant"][:3]
        changed, words = mistaken(document, rng)
        file.write_text(toml_text.dumps(changed))
        with pytest.raises(ConfigurationError) as caught:
            LOADERS[kind_of(document)](file)
        file.write_text(good)
        assert any(str(file) in line and all(word in line for word in words) for line in caught.value.faults), (words, caught.value.faults)
