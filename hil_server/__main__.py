"""`python -m hil_server` is `hil-server`. Ctrl-C is taken before anything else is imported."""

import sys

from hil_server import interrupts


def main() -> int:
    """The command; returns its exit code."""

    def work() -> int:
        from hil_server.cli import main as run

        return run()

    return interrupts.to_the_end(work)


if __name__ == "__main__":
    sys.exit(main())
