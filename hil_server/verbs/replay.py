"""`hil-server replay LOG`: bit-exact check, what-if, or paced playback on the bus."""

import argparse

from hil_server.terminal.outcome import add_fmu_argument
from hil_server.values import Document

GROUP = "look at results"
ORDER = 42
SUMMARY = "computes a logged run again: bit-exact check, what-if, or paced playback"
EXAMPLES = (
    ("hil-server replay runs/first/run.mcap --verify", "exit code 1 unless every tick is equal to the last bit"),
    ("hil-server replay runs/first/run.mcap --set wrench.filter_corner_hz=200", "what another filter would have changed"),
    ("hil-server replay runs/first/run.mcap --rate 1", "published on the bus in real time, for the console"),
)
REMAINS = "nothing was written, the log is unchanged"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server replay`."""
    parser.add_argument("log", metavar="LOG", help="log of a run")
    parser.add_argument("--verify", action="store_true", help="exit code 1 unless every tick is bit-identical")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="what-if: changes one key of the configuration; may be repeated"
    )
    parser.add_argument("--since", dest="start", type=float, metavar="S", help="compares from this run time")
    parser.add_argument("--until", dest="stop", type=float, metavar="S", help="compares up to this run time")
    parser.add_argument("--rate", type=float, metavar="X", help="publishes the run on the bus at X times its speed")
    add_fmu_argument(parser)


def run(args: argparse.Namespace) -> Document:
    """Replays the log: compared with itself, with changed keys, or paced to the bus."""
    from hil_server.config import trusted_fmus
    from hil_server.config.kinds import a_log
    from hil_server.run import replay
    from hil_server.run.progress import working

    a_log(args.log)
    if args.rate is not None:
        result = replay.playback(args.log, args.rate, say=lambda text: print(text, flush=True))
        print(f"published {result['ticks']} ticks")
        return result
    with working("replay") as done, trusted_fmus.any_runs(args.run_fmu):
        result = replay.replay(args.log, verify=args.verify, overrides=tuple(args.set), start_s=args.start, stop_s=args.stop, done=done)
    for reason in result["incomplete"]:
        print(f"incomplete: {reason}")
    if result["absent"]:
        print(f"log of an earlier program version, without these channels, which are not compared: {', '.join(result['absent'])}")
    if result["rebuilt"]:
        print(f"rebuilt from the configuration, because their constants in the log are not this version's: {', '.join(result['rebuilt'])}")
    if result["equal"]:
        print(f"equal: {result['ticks']} ticks, every field, {result['realtime_factor']:.0f} times real time")
        return result
    for gap in result["missing"]:
        print(f"missing: ticks {gap['first']} to {gap['last']}")
    if result["behind_gap"]:
        rest = result["behind_gap"]
        print(f"behind the first gap {rest['differing']} of {rest['ticks']} ticks differ: the states of the stages are unknown there")
    first = result["first_difference"]
    print(f"different: first at tick {first['tick']}, channel {first['channel']} ({first['cause']}); {result['differing']} ticks differ")
    if "logged" in first:
        print(f"  logged {first['logged']!r}, computed {first['computed']!r}")
    if args.set:
        print(f"note: {result['note']}")
        for row in sorted(result["changes"], key=lambda r: -r["largest_difference"] / (r["range"] or 1.0))[:12]:
            print(f"  {row['channel']:18s} differs by up to {row['largest_difference']:.4g} (range in the log {row['range']:.4g})")
    return result
