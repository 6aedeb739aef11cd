"""`hil-server export LOG --format FORMAT`: a log for other tools."""

import argparse
from typing import Any

ORDER = 80
SUMMARY = "a log for other tools"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server export`."""
    from hil_server.analysis.export import SUFFIXES

    parser.add_argument("log", metavar="LOG", help="log of the run")
    parser.add_argument("--format", default="parquet", metavar="FORMAT", help=f"{', '.join(SUFFIXES)} (default: parquet)")
    parser.add_argument("--out", metavar="FILE", help="file to write (default: beside LOG)")
    parser.add_argument("--channels", metavar="A,B", help="only these channels, as F_T or F_T[0]; tick and time_ns always stay")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the log in the other format; returns where."""
    from hil_server.analysis.export import export

    channels = args.channels.split(",") if args.channels else None
    path = export(args.log, args.format, args.out, channels)
    print(path)
    return {"log": args.log, "format": args.format, "file": str(path), "bytes": path.stat().st_size, "exit_code": 0}
