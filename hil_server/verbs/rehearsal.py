"""`hil-server rehearsal LOG...`: score sheets of berthing attempts, and their trend for every operator, as one page."""

import argparse
from pathlib import Path

from hil_server.errors import UsageError
from hil_server.values import Document

GROUP = "look at results"
ORDER = 50
SUMMARY = "scores berthing attempts and shows the trend of each operator"
EXAMPLES = (
    ("hil-server rehearsal runs/*/run.mcap --out scores.html", "score sheets of all attempts, as one page"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server rehearsal`."""
    parser.add_argument("logs", nargs="+", metavar="LOG", help="logs of berthing runs")
    parser.add_argument("--out", metavar="FILE", help="page to write (default: rehearsal.html beside the last LOG)")


def run(args: argparse.Namespace) -> Document:
    """Scores the berthing runs and writes the page; returns the scores."""
    from hil_server.config.kinds import a_log
    from hil_server.judge import rehearsal
    from hil_server.judge.run import Run
    from hil_server.log.reader import read_log
    from hil_server.report.rehearsal_page import page
    from hil_server.terminal.tables import print_table

    sheets = []
    for file in args.logs:
        logged = Run(read_log(a_log(file)))
        if not rehearsal.is_rehearsal(logged):
            part = logged.document.get("guidance", {}).get("part", "unknown")
            raise UsageError(f"{file}: not a berthing run: its guidance is {part}; hil-server report {file} shows it")
        sheets.append(rehearsal.score_sheet(logged))
    for name, attempts in rehearsal.trend(sheets).items():
        print(f"operator {name or '(no name)'}: {sum(s['captured'] for s in attempts)} of {len(attempts)} captured")
        print_table([(s["run"], *(rehearsal.shown(s, key) for key in rehearsal.TREND)) for s in attempts],
                    ("run", *(title for title, _ in rehearsal.TREND.values())))  # fmt: skip
    path = Path(args.out) if args.out else Path(args.logs[-1]).parent / "rehearsal.html"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(sheets), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    print(f"page      {path}")
    return {"attempts": sheets, "page": str(path), "exit_code": 0}
