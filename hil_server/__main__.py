"""`python -m hil_server` is `hil-server`. Ctrl-C is taken before anything else is imported."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  an older one gets here from a source tree
    sys.exit(f"hil-server needs Python 3.11 or later, this is {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable})")

from hil_server import interrupts  # noqa: E402


def main() -> int:
    """The command; returns its exit code."""

    def work() -> int:
        from hil_server.cli import main as run

        return run()

    return interrupts.to_the_end(work)


if __name__ == "__main__":
    sys.exit(main())
