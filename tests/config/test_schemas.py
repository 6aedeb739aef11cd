"""JSON Schemas of all kinds of files: of one mind with the shipped files and with the loader."""

import copy
import json
import tomllib

import jsonschema
import pytest

from hil_server.config import SHIPPED
from hil_server.config.kinds import kind_of
from rt_kernels.extends import read_tables
from tools import generate_schemas

FILES = {str(path.relative_to(SHIPPED)): tomllib.loads(path.read_text()) for path in sorted(SHIPPED.rglob("*.toml"))}
WHOLE = {file: read_tables(SHIPPED / file) for file in FILES}  # with those that they extend
VALIDATORS = {kind: jsonschema.Draft7Validator(generate_schemas.with_extends(schema))
              for kind, schema in generate_schemas.schemas().items()}  # fmt: skip


@pytest.mark.parametrize("kind", VALIDATORS)
def test_a_schema_is_one(kind):
    jsonschema.Draft7Validator.check_schema(json.loads(SHIPPED.joinpath("schemas", f"{kind}.json").read_text()))


@pytest.mark.parametrize("file", FILES)
def test_shipped_file_is_valid_and_names_its_schema(file):
    kind = kind_of(WHOLE[file])
    for document in (FILES[file], WHOLE[file]):
        assert [error.message for error in VALIDATORS[kind].iter_errors(document)] == []
    first = SHIPPED.joinpath(file).read_text().split("\n")[0]
    assert first.startswith("#:schema ") and SHIPPED.joinpath(file).parent.joinpath(first.removeprefix("#:schema ")).resolve() == (
        SHIPPED / "schemas" / f"{kind}.json"
    )


def test_there_is_a_shipped_file_of_every_kind():
    assert {kind_of(document) for document in WHOLE.values()} == set(VALIDATORS)


FREE = ("set", "extra", "round")  # tables whose keys no one declares


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key)) if isinstance(item, dict) and key not in FREE else [(*path, key)]


def broken(document, path):
    """The document with the key misspelt, and with values that no key of its kind may have."""
    for what, value in (("misspelt", None), ("a table", {"no": {"such": "thing"}}), ("an empty list", [])):
        changed = copy.deepcopy(document)
        table = changed
        for step in path[:-1]:
            table = table[step]
        if what == "misspelt":
            table[path[-1] + "_q"] = table.pop(path[-1])
        elif path[-1] in FREE or (what == "an empty list" and isinstance(table[path[-1]], list)):
            continue
        else:
            table[path[-1]] = value
        yield what, changed


@pytest.mark.parametrize("file", FILES)
def test_every_broken_key_fails(file):
    document = WHOLE[file]
    kind = kind_of(document)
    if kind == "campaign":
        document = {key: document[key] for key in ("campaign", "box") if key in document}
    tried = 0
    for path in leaves(document):
        if path[0] == "modal":  # its own loader holds the kinds of its values
            continue
        for what, changed in broken(document, path):
            assert not VALIDATORS[kind].is_valid(changed), (path, what)
            tried += 1
    assert tried > 0


@pytest.mark.parametrize("file", [file for file, document in FILES.items() if "extends" in document])
def test_what_is_missing_or_misspelt_in_an_extending_file_fails(file):
    """Without `extends` it lacks what its kind requires; with it, its keys are still held."""
    valid = VALIDATORS[kind_of(WHOLE[file])].is_valid
    own = {key: value for key, value in FILES[file].items() if key not in ("extends", "without")}
    # bodies alone are a craft to a schema, which does not know their parents
    assert kind_of(WHOLE[file]) in ("campaign", "test") or "body" in own or not valid(own)
    tried = 0
    for path in leaves(FILES[file]):
        (_, changed), *_ = broken(FILES[file], path)
        if path[0] != "modal":
            tried += not valid(changed)
            assert not valid(changed), path
    assert tried > 2


def test_a_number_beyond_its_limit_fails():
    document = copy.deepcopy(FILES["programmes/docking.toml"])
    document["test"]["rate_hz"] = 1e5
    assert not VALIDATORS["test"].is_valid(document)
