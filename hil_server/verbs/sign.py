"""`hil-server sign STAND --owner NAME`: who answers for the limits of a stand file (`hil_server.config.narrowing`)."""

import argparse
import datetime
from typing import Any

ORDER = 47
SUMMARY = "signs the limits of a stand file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server sign`."""
    parser.add_argument("stand", metavar="STAND", help="stand file")
    parser.add_argument("--owner", required=True, metavar="NAME", help="who has checked the limits and answers for them")
    parser.add_argument("--date", metavar="DATE", help="of the signature (default: today)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the table [safety_record] into the file; returns it with what it was before."""
    from hil_server.config.loader import named_file
    from hil_server.config.narrowing import sign

    file = named_file(args.stand, "stands")
    before, record = sign(file, args.owner, args.date or datetime.date.today().isoformat())
    was = {"unsigned": "nobody had signed it", "signed": "it was signed and unchanged", "changed": "it was changed after it was signed"}
    print(f"{file}: signed by {record['owner']}, {record['date']}: {record['checksum']} ({was[before]})")
    return {"stand": str(file), "before": before, **record, "exit_code": 0}
