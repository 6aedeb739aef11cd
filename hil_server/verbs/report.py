"""`hil-server report LOG`: the page with figures and pictures of a run, from its log."""

import argparse

from hil_server.values import Document

GROUP = "look at results"
ORDER = 40
SUMMARY = "writes the page with figures and pictures of a run"
EXAMPLES = (
    ("hil-server report runs/first/run.mcap", "the page is runs/first/run.html"),
)
REMAINS = "no page was written, an existing one is unchanged"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server report`."""
    parser.add_argument("log", metavar="LOG", help="log of the run")
    parser.add_argument("--out", metavar="DIR", help="folder for the page (default: beside LOG)")
    parser.add_argument(
        "--prediction",
        metavar="LOG",
        help="log of the simulated variant, shown beside the run (default: the prediction the run was armed with)",
    )


def run(args: argparse.Namespace) -> Document:
    """Writes the page of the run; returns its summary."""
    from hil_server.config.kinds import a_log
    from hil_server.judge.run import Run
    from hil_server.judge.summary import summarise
    from hil_server.judge.verdict import verdict
    from hil_server.log.reader import read_log
    from hil_server.report.run_page import make_report
    from hil_server.run.progress import working

    logged = Run(read_log(a_log(args.log)))
    summary = summarise(logged)
    with working("report") as done:
        path = make_report(args.log, args.out, logged, summary, args.prediction, done)
    print(f"{summary.run}: {verdict(summary)}")
    print(f"end       {summary.end}, {summary.ticks} ticks, faults: {', '.join(summary.faults) or 'none'}")
    if summary.cause:
        print(f"cause     {summary.cause['text']} (tick {summary.cause['tick']}, {summary.cause['time_s']:.3f} s)")
    if summary.requirements:
        from hil_server.terminal.outcome import print_requirements

        print_requirements(summary.requirements)
    for reason in summary.incomplete:
        print(f"incomplete: {reason}")
    print(f"report    {path}")
    return {**summary.as_json(), "report": str(path), "run_exit_code": summary.exit_code, "exit_code": 0}
