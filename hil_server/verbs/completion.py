"""`hil-server completion SHELL`: code that makes Tab complete verbs, options, keys, parts and shipped files (argcomplete)."""

import argparse

GROUP = "stand and host"
ORDER = 140
SUMMARY = "prints the code that makes a shell complete this command"
EXAMPLES = (
    ('eval "$(hil-server completion bash)"', 'in ~/.bashrc'),
)
SHELLS = {
    "bash": 'eval "$(hil-server completion bash)"     in ~/.bashrc',
    "zsh": 'eval "$(hil-server completion zsh)"     in ~/.zshrc, after compinit',
    "fish": "hil-server completion fish | source     in ~/.config/fish/config.fish",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server completion`."""
    parser.add_argument("shell", choices=tuple(SHELLS), metavar="SHELL", help="; ".join(f"{name}: {line}" for name, line in SHELLS.items()))


def run(args: argparse.Namespace) -> int:
    """Prints the shell's code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["hil-server"], shell=args.shell))
    return 0
