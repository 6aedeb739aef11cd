"""`hil-server import CSV|MCAP [CONFIG]`: a wrench recorded elsewhere as a log that replays (`hil_server.exchange.foreign_logs`)."""

import argparse
from pathlib import Path

from hil_server.errors import ConfigurationError
from hil_server.values import Document

GROUP = "files and parts"
ORDER = 68
SUMMARY = "converts a wrench recorded elsewhere into a log that replays"
EXAMPLES = (
    ("hil-server import wrench.csv docking --out imported.mcap", "as the shipped docking would have seen it"),
)
REMAINS = "no log was written"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server import`."""
    parser.add_argument("source", metavar="CSV|MCAP", help="recorded wrench with time stamps, columns fx fy fz tx ty tz")
    parser.add_argument("config", nargs="?", metavar="CONFIG", help="test whose stages process it (default: the shipped docking)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key of the test; may be repeated")
    parser.add_argument("--topic", default="/wrench", help="topic of an MCAP file (default: /wrench)")
    parser.add_argument(
        "--gap-s", type=float, default=0.01, metavar="S", help="longest interval between two records that is not a gap (default: 0.01)"
    )
    parser.add_argument("--rate-hz", type=float, metavar="HZ", help="sample rate of a file without time stamps")
    parser.add_argument("--out", default="imported.mcap", metavar="FILE", help="log to write (default: imported.mcap)")


def run(args: argparse.Namespace) -> Document:
    """Writes the recorded wrench as a log that replays; returns its statistics."""
    from hil_server.config import load_test
    from hil_server.exchange.foreign_logs import WRENCH, at_rate, common_grid, read_csv, read_mcap, report, resample, write_run
    from hil_server.run.progress import working

    config = load_test(args.config, args.set)
    stream = read_mcap(args.source, args.topic) if Path(args.source).suffix == ".mcap" else read_csv(args.source)
    if args.rate_hz is not None:
        stream = at_rate(stream, args.rate_hz)
    grid = common_grid([stream], config.setup.test.period_ns * 1e-9)
    found = resample(stream, WRENCH, grid, args.gap_s)
    print("\n".join(report([found])))
    if Path(args.out).exists():
        raise ConfigurationError(f"--out {args.out}: the file exists: choose another name")
    with working("import") as done:
        result = write_run(config, found, args.out, done)
    print("\n".join(result["notes"]))
    print(f"log       {result['log']}: {result['ticks']} ticks of {result['points']} points, {result['gap_points']} of them in gaps")
    print(f"end       {result['end']}")
    for fault in result["faults"]:
        stops = "a stand would have tripped, the model continued" if fault["severity"] == "stop" else fault["severity"]
        when = f"tick {fault['tick']}, {fault['time_s']:.3f} s"
        print(f"fault     {fault['name']} at {when} ({stops}): {fault['meaning']}; {fault['action']}")
    complete = result["ticks"] == result["points"]
    return result | {"exit_code": 0 if complete and result["trip"] is None else 1}
