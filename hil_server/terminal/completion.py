"""What Tab offers beyond verbs and options: shipped files, keys of `--set`, commands, faults, roles and parts (argcomplete)."""

import argparse
import os
from collections.abc import Callable, Iterable

# argument → folders of `stand_configs` whose files it names without a path
SHIPPED_IN = {
    "config": ("programmes",),
    "programme": ("programmes",),
    "stand": ("stands",),
    "file": ("vehicles", "manipulators"),
    "vehicle": ("vehicles",),
    "source": ("programmes/operators",),
}
CAMPAIGNS = "_campaign"


def asked_by_the_shell() -> str:
    """The command line that the shell wants completed; empty when the program is called normally."""
    return os.environ.get("COMP_LINE", "hil-server ") if "_ARGCOMPLETE" in os.environ else ""


def complete(parser: argparse.ArgumentParser, verb: argparse.ArgumentParser | None) -> None:
    """Answers the shell and ends the process. verb: parser of the verb that has been typed."""
    import argcomplete

    for action in verb._actions if verb is not None else ():
        if offer := _offer(action, str(verb.prog if verb is not None else "").rpartition(" ")[2]):
            action.completer = offer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _offer(action: argparse.Action, verb: str) -> Callable[..., Iterable[str]] | None:
    """What completes this argument of the verb; None: argcomplete's own choice (choices, files)."""
    dest, option = action.dest, bool(action.option_strings)
    if dest == "set":
        return _keys
    if verb == "command" and dest == "name":
        return lambda **_: _commands()
    if verb == "command" and dest == "arguments":
        return lambda parsed_args, **_: _arguments(parsed_args)
    if verb == "tune" and dest == "name":
        return lambda **_: _tunables()
    if dest == "waive":
        return lambda parsed_args, **_: _requirements(parsed_args)
    if dest == "role":
        return lambda **_: [*_roles(), "channels", "figures"]
    if verb == "list" and dest == "name":
        return lambda parsed_args, **_: _parts(getattr(parsed_args, "role", "") or "")
    if dest in SHIPPED_IN and (not option or dest in ("vehicle", "source")):
        return _files(SHIPPED_IN[dest], verb)
    return None


def names_in(folders: tuple[str, ...]) -> list[str]:
    """Files of these folders of `stand_configs`."""
    from importlib.resources import files

    return sorted(one.name for folder in folders for one in files("stand_configs").joinpath(folder).iterdir()
                  if one.name.endswith(".csv" if folder.endswith("operators") else ".toml"))  # fmt: skip


def _files(folders: tuple[str, ...], verb: str) -> Callable[..., list[str]]:
    """Files as the shell knows them, and shipped ones by name or by their path below `stand_configs`."""
    from argcomplete.completers import FilesCompleter

    local = FilesCompleter()

    def offer(prefix: str, **more: object) -> list[str]:
        paths = [f"{folder}/{name}" for folder in folders for name in names_in((folder,))] if "/" in prefix else names_in(folders)
        if verb == "campaign":
            paths = [path for path in paths if CAMPAIGNS in path]
        return [*local(prefix, **more), *(path for path in paths if path.startswith(prefix))]

    return offer


def _keys(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """`table.key=` of the test on the command line; behind `.part=` the parts of the role."""
    if "=" in prefix:
        key, _equals, _value = prefix.partition("=")
        role, _dot, last = key.partition(".")
        return [f"{key}={name}" for name in _parts(role)] if last == "part" else []
    return [f"{key}=" for key in _keys_of(_test_of(parsed_args)) if key.startswith(prefix)]


def _test_of(parsed_args: argparse.Namespace) -> str | None:
    """The test whose keys are asked for: that of the verb, none for a log, a stand, or a file that cannot be read."""
    from hil_server.config.files import named_file
    from hil_server.config.kinds import misfit

    file = next((value for dest in ("config", "programme") if (value := getattr(parsed_args, dest, None))), None)
    return file if file is None or misfit(named_file(file), "test") is None else None


def _keys_of(file: str | None) -> list[str]:
    from hil_server.config import load_test
    from hil_server.config.keys import keys_of
    from hil_server.errors import ConfigurationError

    try:
        return sorted(keys_of(load_test(file).document))
    except ConfigurationError:
        return sorted(keys_of(load_test().document))


def _requirements(parsed_args: argparse.Namespace) -> list[str]:
    from hil_server.config import load_test

    return [row["name"] for row in load_test(_test_of(parsed_args)).document.get("requirement", ())]


def _commands() -> list[str]:
    from hil_server.bus.commands import ARGUMENTS

    return list(ARGUMENTS)


def _arguments(parsed_args: argparse.Namespace) -> list[str]:
    """Names that the next argument of the command takes: faults, joint modes."""
    from hil_server.bus.commands import ARGUMENTS

    declared, given = ARGUMENTS.get(getattr(parsed_args, "name", ""), ()), getattr(parsed_args, "arguments", None) or ()
    return list(declared[len(given)].names) if len(given) < len(declared) else []


def _tunables() -> list[str]:
    """`role.key` of every parameter that a part lets a run change."""
    from hil_server import registry
    from hil_server.errors import ConfigurationError

    names = set()
    for role in registry.ROLES:
        for name in registry.parts(role):
            try:
                parameters = registry.part(role, name).PARAMETERS
            except ConfigurationError:  # of another package, which lacks something
                continue
            names |= {f"{role}.{p.key}" for p in parameters if p.tunable is not None}
    return sorted(names)


def _roles() -> list[str]:
    from hil_server import registry

    return list(registry.ROLES)


def _parts(role: str) -> list[str]:
    from hil_server import registry

    return sorted(registry.parts(role)) if role in registry.ROLES else []
