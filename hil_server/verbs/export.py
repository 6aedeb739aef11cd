"""`hil-server export LOG --format FORMAT`: a log for other tools."""

import argparse
from typing import Any

from hil_server.errors import UsageError

FORMATS = ("parquet", "csv", "hdf5", "mat", "mdf", "ccsds", "foxglove", "operator")
ORDER = 80
SUMMARY = "a log for other tools"
REMAINS = "no file was written, one that was there before is as it was"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server export`."""
    parser.add_argument("log", metavar="LOG", help="log of the run")
    parser.add_argument("--format", "--to", default="parquet", metavar="FORMAT", help=f"{', '.join(FORMATS)} (default: parquet)")
    parser.add_argument("--out", metavar="FILE", help="file to write (default: beside LOG)")
    parser.add_argument("--channels", metavar="A,B", help="only these channels, as F_T or F_T[0]; tick and time_ns always stay")
    parser.add_argument("--plain-names", action="store_true", help="columns of a table as F_T_x, which queries take without quotes")
    parser.add_argument("--scene-hz", type=float, default=50.0, metavar="HZ", help="of foxglove: pictures a second (default: 50)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the log in the other format; returns where."""
    from hil_server.run.progress import working

    channels = args.channels.split(",") if args.channels else None
    if args.format == "foxglove":
        from hil_server.viewers.foxglove_file import write

        if channels:
            raise UsageError("--channels: a file for viewers has all channels")
        with working("export") as done:
            path = write(args.log, args.out, args.scene_hz, done)
    else:
        from hil_server.analysis.export import export

        with working("export") as done:
            path = export(args.log, args.format, args.out, channels, args.plain_names, done)
    print(path)
    return {"log": args.log, "format": args.format, "file": str(path), "bytes": path.stat().st_size, "exit_code": 0}
