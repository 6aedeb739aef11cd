"""Makes a whole log of one that was cut: `python tools/recover_log.py CUT.mcap WHOLE.mcap`.

Reading a cut log needs no repair (`read_log` does it); this is for programs of others that want an index at the end of the file.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hil_server.errors import HilError
from hil_server.log.recover import recover


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__)
        return 2
    try:
        log = recover(*argv)
    except HilError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{log.ticks} ticks written to {argv[1]}")
    for reason in log.incomplete:
        print(f"  incomplete: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
