"""`hil-server export LOG --format FORMAT`: a log for other tools."""

import argparse

from hil_server.errors import UsageError
from hil_server.values import Document

FORMATS = ("parquet", "csv", "hdf5", "mat", "mdf", "ccsds", "foxglove", "operator")
GROUP = "look at results"
ORDER = 46
SUMMARY = "writes a log in the format of another tool"
EXAMPLES = (
    ("hil-server export runs/first/run.mcap --format csv --channels F_T,phase", "wrench and phase as CSV"),
    ("hil-server export runs/first/run.mcap --format mat", "all channels for MATLAB"),
)
REMAINS = "no file was written, an existing one is unchanged"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server export`."""
    parser.add_argument("log", metavar="LOG", help="log of the run")
    parser.add_argument(
        "--format", "--to", choices=FORMATS, default="parquet", metavar="FORMAT", help=f"{', '.join(FORMATS)} (default: parquet)"
    )
    parser.add_argument("--out", metavar="FILE", help="file to write (default: beside LOG)")
    parser.add_argument("--channels", metavar="A,B", help="only these channels, e.g. F_T or F_T[0]; tick and time_ns are always written")
    parser.add_argument("--plain-names", action="store_true", help="names columns F_T_x instead of F_T[0], for queries without quotes")
    parser.add_argument("--scene-hz", type=float, default=50.0, metavar="HZ", help="foxglove: pictures per second (default: 50)")


def run(args: argparse.Namespace) -> Document:
    """Writes the log in the other format; returns where."""
    from hil_server.config.kinds import a_log
    from hil_server.run.progress import working

    a_log(args.log)
    channels = args.channels.split(",") if args.channels else None
    if args.format == "foxglove":
        from hil_server.viewers.foxglove_file import write

        if channels:
            raise UsageError("--channels: not for foxglove, whose file has all channels")
        with working("export") as done:
            path = write(args.log, args.out, args.scene_hz, done)
    else:
        from hil_server.exchange.export import export

        with working("export") as done:
            path = export(args.log, args.format, args.out, channels, args.plain_names, done)
    print(path)
    return {"log": args.log, "format": args.format, "file": str(path), "bytes": path.stat().st_size, "exit_code": 0}
