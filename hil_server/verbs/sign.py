"""`hil-server sign STAND --owner NAME`: the person responsible for the limits of a stand file (`hil_server.config.narrowing`)."""

import argparse
import datetime

from hil_server.values import Document

GROUP = "stand and host"
ORDER = 138
SUMMARY = "signs the limits of a stand file"
EXAMPLES = (
    ('hil-server sign stand.toml --owner "A. Smith"', "a live run on hardware needs signed limits"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server sign`."""
    parser.add_argument("stand", metavar="STAND", help="stand file")
    parser.add_argument("--owner", required=True, metavar="NAME", help="person who has checked the limits and is responsible for them")
    parser.add_argument("--date", metavar="DATE", help="date of the signature (default: today)")


def run(args: argparse.Namespace) -> Document:
    """Writes the table [safety_record] into the file; returns it with the former state."""
    from hil_server.config.files import named_file
    from hil_server.config.narrowing import sign

    file = named_file(args.stand, "stands")
    before, record = sign(file, args.owner, args.date or datetime.date.today().isoformat())
    was = {"unsigned": "before: unsigned", "signed": "before: signed and unchanged", "changed": "before: changed after its signature"}
    print(f"{file}: signed by {record['owner']}, {record['date']}: {record['checksum']} ({was[before]})")
    return {"stand": str(file), "before": before, **record, "exit_code": 0}
