"""The one function that holds values against a declaration: what it fills in, what it refuses and in which words."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from hil_server import registry
from rt_kernels.parameters import Parameter, checked, faults, must_be

ROOT = Path(__file__).resolve().parents[1]
DECLARED = (
    Parameter("mass_kg", "float", "kg", "mass", low=1.0, high=1e4),
    Parameter("order", "int", "-", "an order", default=2, low=1, high=8),
    Parameter("active", "bool", "-", "a switch", default=True),
    Parameter("axis", "str", "-", "an axis", default="x", choices=("x", "y")),
    Parameter("name", "str", "-", "a name", default=""),
    Parameter("offset_m", "floats", "m", "an offset", default=(0, 0.0, 0.0), shape=3, low=-1.0, high=1.0),
    Parameter("steps_s", "floats", "s", "any number of steps", default=(), low=0.0),
    Parameter("powers", "ints", "-", "some powers", default=(2, 3), low=2, high=9),
    Parameter("matrix", "rows", "-", "a matrix", default=((1.0, 0.0), (0.0, 1.0)), shape=(2, 2)),
    Parameter("curve", "rows", "m, N", "a curve", default=((0.0, 0.0),), shape=(None, 2), low=0.0),
    Parameter("rate_1_s", "float", "1/s", "a rate", default=None, high=5.0),
    Parameter("extra", "table", "-", "free keys", default={}),
)
GOOD = {"mass_kg": 5}


def test_defaults_are_filled_in_in_the_order_of_the_declaration():
    values = checked(DECLARED, GOOD)
    assert list(values) == [p.key for p in DECLARED]
    assert values == {"mass_kg": 5.0, "order": 2, "active": True, "axis": "x", "name": "", "offset_m": [0.0] * 3, "steps_s": [],
                      "powers": [2, 3],
                      "matrix": [[1.0, 0.0], [0.0, 1.0]], "curve": [[0.0, 0.0]], "rate_1_s": None, "extra": {}}  # fmt: skip
    assert isinstance(values["mass_kg"], float) and all(isinstance(x, float) for x in values["offset_m"])


def test_arrays_tuples_and_numpy_numbers_are_taken():
    given = {"mass_kg": np.float32(2.0), "order": np.int64(3), "active": np.bool_(False), "offset_m": np.array([0.1, 0.2, 0.3]),
             "matrix": np.eye(2), "curve": (np.zeros(2), (1, 2)), "steps_s": [np.float64(1.0)]}  # fmt: skip
    values = checked(DECLARED, given)
    assert values["mass_kg"] == 2.0 and type(values["order"]) is int and values["active"] is False
    assert values["offset_m"] == [0.1, 0.2, 0.3] and values["matrix"] == [[1.0, 0.0], [0.0, 1.0]] and values["curve"][1] == [1.0, 2.0]
    assert checked(DECLARED, values) == values


def test_what_is_given_is_not_what_comes_back():
    """A part may keep and change its values: neither the declaration nor the caller sees it."""
    given = GOOD | {"offset_m": [0.0, 0.0, 0.0]}
    values = checked(DECLARED, given)
    values["offset_m"][0] = values["matrix"][0][0] = 9.0
    assert given["offset_m"] == [0.0] * 3 and checked(DECLARED, GOOD)["matrix"][0][0] == 1.0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "mass_kg: required key is missing: a number within 1 ... 10000 kg (mass)"),
        ({"mass_kg": None}, "mass_kg: must be a number within 1 ... 10000 kg, got None"),
        ({"mass_kg": "5"}, "mass_kg: must be a number within 1 ... 10000 kg, got '5'"),
        ({"mass_kg": True}, "mass_kg: must be a number within 1 ... 10000 kg, got true"),
        ({"mass_kg": math.nan}, "mass_kg: must be a number within 1 ... 10000 kg, got nan"),
        ({"mass_kg": 0.5}, "mass_kg: must be a number within 1 ... 10000 kg, got 0.5"),
        ({"mass_kg": 10**400}, "mass_kg: must be a number within 1 ... 10000 kg, got 1000"),
        ({"order": 2.0}, "order: must be a whole number within 1 ... 8, got 2.0"),
        ({"order": None}, "order: must be a whole number within 1 ... 8, got None"),
        ({"active": 1}, "active: must be true or false, got 1"),
        ({"axis": "z"}, "axis: must be one of x, y, got 'z'"),
        ({"axis": ["x"]}, "axis: must be one of x, y, got ['x']"),
        ({"name": 3}, "name: must be text, got 3"),
        ({"offset_m": 0.1}, "offset_m: must be 3 numbers within -1 ... 1 m, got 0.1"),
        ({"offset_m": "abc"}, "offset_m: must be 3 numbers within -1 ... 1 m, got 'abc'"),
        ({"offset_m": [0.1]}, "offset_m: must be 3 numbers within -1 ... 1 m, got 1: [0.1]"),
        ({"offset_m": [0, 0, 2]}, "offset_m[2]: must be a number within -1 ... 1 m, got 2"),
        ({"steps_s": [-1]}, "steps_s[0]: must be a number of at least 0 s, got -1"),
        ({"steps_s": [math.inf]}, "steps_s[0]: must be a number of at least 0 s, got inf"),
        ({"powers": [2, 3.0]}, "powers[1]: must be a whole number within 2 ... 9, got 3.0"),
        ({"powers": 2}, "powers: must be a list of whole numbers within 2 ... 9, got 2"),
        ({"matrix": [[1, 0]]}, "matrix: must be 2 rows of 2 numbers, got [[1, 0]]"),
        ({"matrix": [[1, 0], [0]]}, "matrix: must be 2 rows of 2 numbers, got [[1, 0], [0]]"),
        ({"curve": [[1.0, 2.0], 1.0]}, "curve: must be rows of 2 numbers of at least 0 (m, N), got [[1.0, 2.0], 1.0]"),
        ({"curve": 1.0}, "curve: must be rows of 2 numbers of at least 0 (m, N), got 1.0"),
        ({"rate_1_s": 6}, "rate_1_s: must be a number of at most 5 (1/s), got 6"),
        ({"extra": 3}, "extra: must be a table, got 3"),
        ({"extra": {"a": [1, math.nan]}}, "extra.a[1]: must be a finite number, text, true or false, a list or a table, got nan"),
        ({"extra": {"a": {"b": None}}}, "extra.a.b: must be a finite number, text, true or false, a list or a table, got None"),
        ({"mas_kg": 1}, "mas_kg: unknown key, value 1, did you mean 'mass_kg'?"),
        ({"qqqqq": 1}, "qqqqq: unknown key, value 1; keys: mass_kg, order"),
    ],
)  # fmt: skip
def test_every_wrong_value_is_named_with_its_limit_and_unit(given, words):
    full = given if "mass_kg" in given or not given else GOOD | given
    found = faults(DECLARED, full)
    assert len(found) == 1 and found[0].startswith(words), found
    with pytest.raises(ValueError) as error:
        checked(DECLARED, full, "unit")
    assert str(error.value) == "unit." + found[0]


def test_independent_faults_are_reported_together():
    given = {"order": 9, "offset_m": [5.0, "a"], "axsi": "x"}
    found = faults(DECLARED, given)
    assert [line.split(":")[0] for line in found] == ["axsi", "mass_kg", "order", "offset_m", "offset_m[0]", "offset_m[1]"]
    with pytest.raises(ValueError) as error:
        checked(DECLARED, given)
    assert str(error.value) == "; ".join(found)


def test_the_words_of_a_number_without_limits():
    assert must_be(Parameter("x_m", "float", "m", "x")) == "a number in m"
    assert must_be(Parameter("x", "float", "-", "x")) == "a number"
    assert must_be(Parameter("x_m", "float", "m", "x"), unit=False) == "a number"


LINES = [(role, name) for role, names in registry.PARTS.items() for name in names]


@pytest.mark.parametrize(("role", "name"), LINES)
def test_no_default_stands_twice(role, name):
    """A constructor takes `**given` and reads its declared keys from `checked`: none is named in its signature."""
    part = registry.part(role, name)
    declared = {p.key for p in part.PARAMETERS}
    module = Path(sys.modules[part.__module__].__file__)
    source = next(p for p in (module.with_name(f"{module.name.partition('.')[0]}{ending}") for ending in (".pyx", ".py")) if p.exists())
    for one in part.__mro__:  # a part that only redeclares has the constructor of the part that it is one of
        own = source.read_text().partition(f"class {one.__name__}(")[2]
        own = re.split(r"(?m)^(?:cdef )?class ", own)[0]
        signature = re.search(r"def __init__\((.*?)\)(?: -> None)?:\n", own, re.DOTALL)
        if signature:
            break
    assert signature, f"{source}: no constructor of {part.__name__}"
    named = {word.split("=")[0].split(":")[0].split()[-1] for word in re.split(r",\s*", signature[1]) if word.strip("*")}
    assert not named & declared, f"{source}: {sorted(named & declared)}"
    assert not declared or ("**" in signature[1] and "checked(" in own), source


def test_limits_of_a_declaration_are_held_in_one_place():
    """Nothing else compares a value with `low` and `high` of a Parameter; the schemas pass them on."""
    here = [path for folder in ("rt_kernels", "drivers", "hil_server") for path in ROOT.joinpath(folder).rglob("*.py*")]
    comparing = {
        str(path.relative_to(ROOT)) for path in here
        if path.suffix in (".py", ".pyx", ".pxd") and re.search(r"\b(p|parameter|declared)\.(low|high) is (not )?None", path.read_text())
    }  # fmt: skip
    assert comparing == {"rt_kernels/parameters.py"}


@pytest.mark.parametrize(("role", "name"), LINES)
def test_every_default_obeys_its_own_declaration(role, name):
    assert faults([p for p in registry.part(role, name).PARAMETERS if not p.required], {}) == []
