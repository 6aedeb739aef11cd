"""What the tab key offers beyond verbs and options: shipped files where a verb takes one, roles and parts (argcomplete)."""

import argparse
import os
from typing import Any

# argument → folders of `stand_configs` whose files it may name without a path
SHIPPED_IN = {"config": ("programmes",), "programme": ("programmes",), "stand": ("stands",), "file": ("vehicles", "manipulators")}


def asked_by_the_shell() -> str:
    """The command line of which the shell asks what may follow; empty when the program is simply called."""
    return os.environ.get("COMP_LINE", "hil-server ") if "_ARGCOMPLETE" in os.environ else ""


def complete(parser: argparse.ArgumentParser, verb: argparse.ArgumentParser | None) -> None:
    """Answers the shell and ends the process. verb: the parser of the verb that has been typed."""
    import argcomplete
    from argcomplete.completers import FilesCompleter

    files = FilesCompleter()

    def shipped(action: argparse.Action) -> Any:
        def offer(prefix: str, **more: Any) -> list[str]:
            return [*files(prefix, **more), *(name for name in names_in(SHIPPED_IN[action.dest]) if name.startswith(prefix))]

        return offer

    for action in verb._actions if verb is not None else ():
        if action.dest in SHIPPED_IN and not action.option_strings:
            action.completer = shipped(action)  # type: ignore[attr-defined]
        if action.dest == "role":
            action.completer = lambda **_: _roles()  # type: ignore[attr-defined]
        if action.dest == "name" and not action.option_strings:
            action.completer = lambda parsed_args, **_: _parts(getattr(parsed_args, "role", ""))  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def names_in(folders: tuple[str, ...]) -> list[str]:
    """Files of these folders of `stand_configs`."""
    from importlib.resources import files

    return sorted(one.name for folder in folders for one in files("stand_configs").joinpath(folder).iterdir() if one.name.endswith(".toml"))


def _roles() -> list[str]:
    from hil_server import registry

    return list(registry.ROLES)


def _parts(role: str) -> list[str]:
    from hil_server import registry

    return sorted(registry.parts(role)) if role in registry.ROLES else []
