"""Keys of a test as `--set` and Tab take them: `table.key` of everything that the checked test has."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from hil_server.values import Given

MOST_NAMED = 5


def keys_of(document: Given, path: str = "") -> Iterator[str]:
    """Paths of all values of a document; a row of an array of tables goes by its name, else by its number."""
    for key, value in document.items():
        full = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from keys_of(value, full)
        elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            for i, row in enumerate(value):
                name = str(row.get("name", i))
                yield from keys_of(row, f"{full}.{name if name.isidentifier() else i}")
        else:
            yield full


def similar(word: str, known: Sequence[str]) -> list[str]:
    """Keys whose last part has the word in it, else one that is spelt nearly so."""
    last = {key: key.rpartition(".")[2] for key in known}
    word = word.rpartition(".")[2]
    named = [key for key in known if word and word in last[key]]
    if not named:
        close = get_close_matches(word, list(last.values()), n=MOST_NAMED, cutoff=0.7)
        named = [key for key in known if last[key] in close]
    return sorted(named, key=lambda key: (key.count("."), len(key)))[:MOST_NAMED]
