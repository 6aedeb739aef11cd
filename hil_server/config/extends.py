"""Configuration files with the ones that they extend (`rt_kernels.extends`): read, and written out as one file."""

from pathlib import Path

from hil_server.config import files, toml_text
from hil_server.config.checks import line
from hil_server.config.kinds import kind_of, misfit, other_kind
from hil_server.errors import ConfigurationError
from rt_kernels.extends import EXTENDS, ExtendsError, Place, Tables, Whole, read_whole


def whole(file: Path, wanted: str | None = None) -> Whole:
    """A file with those that it extends, all of one kind. Raises ConfigurationError for one that cannot be read or is not of the kind
    wanted."""
    if wanted and (why := misfit(file, wanted)):
        raise ConfigurationError(why)
    try:
        found = read_whole(file, files.read_text, files.parse_toml, _same_kind)
        if wanted and (other := other_kind(found.tables, wanted, str(file))):
            raise ConfigurationError(other)
        return found
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not UTF-8 text: byte {error.start}") from None
    except ExtendsError as error:
        raise ConfigurationError(str(error)) from None
    except ValueError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None


def tables_of(file: Path, wanted: str | None = None) -> Tables:
    """The tables of `whole`. Raises ConfigurationError."""
    return whole(file, wanted).tables


def _same_kind(own: list[tuple[Path, Tables]]) -> None:
    """Raises ExtendsError where a file extends one of another kind."""
    base, tables = own[-1]
    kind = kind_of(tables)
    for (file, given), (below, _) in zip(own, own[1:], strict=False):
        own_kind = kind_of(given) or kind
        if kind is None or own_kind != kind:
            what = f"{below} is {f'a {kind}' if kind else 'neither test nor stand, craft or docking unit'}"
            limit = f"a {own_kind}" if own_kind else "a file of the same kind"
            raise ExtendsError(line(str(file), EXTENDS, what, given[EXTENDS], limit=limit, unit="-"))


# ------------------------------------------------------------------------------------------------------------------ written out
def resolved_text(found: Whole) -> str:
    """The whole as one TOML file: behind each table, or each key of one that several files make, the file that it comes from."""
    names = [one.name for one in found.texts]
    shown = {one: one.name if names.count(one.name) == 1 else str(one) for one in found.texts}
    if len(names) == 1:
        return "\n".join([f"# {names[0]} extends no other file", *_written(found.tables, found.place, "", {}, "")]).rstrip() + "\n"
    lines = [f"# {', which extends '.join(shown.values())}", *_written(found.tables, found.place, "", shown, "")]
    return "\n".join(lines).rstrip() + "\n"


def _written(table: Tables, place: Place, path: str, shown: dict[Path, str], header: str) -> list[str]:
    """The table's keys under its header, then the tables in it."""

    def of(key: str) -> Place:
        return place.inner[key] if isinstance(place.inner, dict) else place

    def remark(file: Path) -> str:
        return f"  # {shown[file]}" if shown else ""

    keys = {key: value for key, value in table.items() if not isinstance(value, dict) and not _is_rows(value)}
    came = {of(key).file for key in keys}
    one = len(came) == 1 and header
    lines = ["", f"{header}{remark(came.pop()) if one else '' if keys else remark(place.file)}"] if header else []
    lines += [f"{toml_text.key_text(key)} = {toml_text.value(value)}{'' if one else remark(of(key).file)}" for key, value in keys.items()]
    for key, value in table.items():
        inner = f"{path}.{toml_text.key_text(key)}" if path else toml_text.key_text(key)
        if isinstance(value, dict):
            lines += _written(value, of(key), inner, shown, f"[{inner}]")
        elif _is_rows(value):
            rows = of(key).inner
            for i, row in enumerate(value):
                lines += _written(row, rows[i] if isinstance(rows, list) else of(key), inner, shown, f"[[{inner}]]")
    return lines


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)
