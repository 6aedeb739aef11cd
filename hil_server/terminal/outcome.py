"""Common to the verbs that run a test: options, one test or a programme of tests, summary for people."""

import argparse
import contextlib
import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hil_server.errors import CUT_THE_POWER
from hil_server.values import Document, Given

MOST_REBOUNDS = 8
MOST_DONE = 12
TABLE_WIDTH = 120  # where the width of the terminal is unknown


def add_configuration_arguments(parser: argparse.ArgumentParser, default: str = "a shipped docking on the virtual stand") -> None:
    """CONFIG, --set and --out: the same for every verb that runs a test."""
    parser.add_argument("config", nargs="?", metavar="CONFIG", help=f"test file, or name of a shipped one (default: {default})")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key, e.g. compensation.part=none; may be repeated"
    )
    parser.add_argument("--out", metavar="DIR", help="folder for log and report (default: runs/<date and time>-<name>)")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that `run` and `simulate` share."""
    parser.add_argument("--quiet", action="store_true", help="prints no progress")
    parser.add_argument("--no-report", action="store_true", help="writes the log only, no report")
    parser.add_argument("--operator", metavar="NAME", help="pilot, for the rehearsal record (same as --set test.operator=NAME)")
    parser.add_argument(
        "--waive", action="append", default=[], metavar="NAME", help="does not judge the requirement of this name; may be repeated"
    )
    parser.add_argument("--junit", metavar="FILE", help="writes the verdicts on the requirements as JUnit XML, for build servers")
    parser.add_argument("--continue-after-trip", action="store_true", help="live programme: runs the next variant after a trip")


def add_from_argument(parser: argparse.ArgumentParser) -> None:
    """--from LOG@TIME of the verbs that can continue a logged run."""
    parser.add_argument(
        "--from", dest="begin", metavar="LOG@TIME", help="continues a logged run: TIME is its run time in s, or an event with an "
        "offset, e.g. contact-30s, capture-5s, trip-2s; --set applies from there"
    )  # fmt: skip
    add_fmu_argument(parser)


def add_fmu_argument(parser: argparse.ArgumentParser) -> None:
    """--run-fmu of the verbs that run the configuration of a log."""
    meaning = "lets the FMU that the log names run although it is not in your list (hil-server fmu)"
    parser.add_argument("--run-fmu", action="store_true", help=meaning)


def go_on(args: argparse.Namespace, run_one: Callable[..., Document]) -> Document:
    """Runs what follows LOG@TIME with `run_one(config, options, begin)`; returns the summary."""
    from hil_server.config import trusted_fmus
    from hil_server.host.installation import check_installation
    from hil_server.run.branch import resumed

    check_installation()
    with trusted_fmus.any_runs(args.run_fmu):
        begin = resumed(args.begin, tuple(args.set), args.config)
    print(f"from      {begin.facts['log']} at {begin.time_s:.3f} s, restored {begin.facts['way']}")
    for key, words in (("changed", "changed there"), ("reset", "reset there")):
        if begin.facts[key]:
            print(f"          {words}: {', '.join(begin.facts[key])}")
    for what in begin.lost:
        print(f"          not restored: {what}")
    summary = run_one(begin.test.config, _options(args, args.out), begin)
    print_summary(summary)
    return summary | {"branch": begin.facts}


def perform(args: argparse.Namespace, run_one: Callable[..., Document], live: bool) -> Document:
    """Runs CONFIG with `run_one(config, options)`: one test, or every variant of a programme. Returns the summary."""
    from hil_server.config import load_test
    from hil_server.config.toml_text import value
    from hil_server.host.installation import check_installation
    from hil_server.run.programme import is_programme

    check_installation()
    if args.operator:
        args.set.append(f"test.operator={value(args.operator)}")
    if is_programme(args.config):
        return _perform_programme(args, run_one, live)
    config = load_test(args.config, args.set, waived=args.waive)
    summary = run_one(config, _options(args, args.out))
    print_summary(summary)
    if args.junit:
        from hil_server.requirements import junit

        junit.write(args.junit, config.setup.test.name, [junit.suite_of(config.setup.test.name, summary)])
    return summary


def _options(args: argparse.Namespace, out: str | None, variant: str = "", desk: str = "") -> Any:
    from hil_server.run.session import Options

    given = getattr(args, "prediction", None) or ()
    predictions = [str(Path(one) / variant / "run.mcap") if variant and Path(one).is_dir() else one for one in given]
    return Options(out=out, quiet=args.quiet, report=not args.no_report, force=getattr(args, "force", False), predictions=predictions,
                   confirmed=getattr(args, "confirm_loads", ""), desk=desk)  # fmt: skip


def _perform_programme(args: argparse.Namespace, run_one: Callable[..., Document], live: bool) -> Document:
    import time

    from hil_server.requirements import junit, violated
    from hil_server.run.claim import claimed
    from hil_server.run.programme import SUMMARY_HEADS, assemble_all, between_of, load_programme, run_programme, summary_rows
    from hil_server.terminal.tables import print_table

    name, variants = load_programme(args.config, args.set, args.waive)
    if not live:  # a live one also has the channels of its devices
        assemble_all(args.config, variants)
    out = Path(args.out) if args.out else Path("runs") / time.strftime(f"%Y%m%d-%H%M%S-{name.replace(' ', '-')}")

    def run_variant(config: Any, folder: Path) -> Document:
        return run_one(config, _options(args, str(folder), folder.name, str(out / "desk.json")))

    between = between_of(args.config, variants[0].config.document["telemetry"], args.hold, out / "desk.json") if live else None
    # the stand stays claimed between two variants
    with claimed(variants[0].config) if live else contextlib.nullcontext():
        summary = run_programme(name, variants, run_variant, out, stop_at_trip=live and not args.continue_after_trip, between=between)
    print()
    print_table(summary_rows(summary), SUMMARY_HEADS)
    print(f"\n{summary['passed']} of {len(variants)} passed; logs in {out}")
    if summary["not_run"]:
        print(f"not run: {', '.join(summary['not_run'])}")
    for row in summary["variants"]:
        if violated(row.get("requirements") or ()):
            print(f"\n{row['number']}")
            print_requirements(row["requirements"])
    _print_side_by_side(summary)
    print(f"overview: {summary['overview']}")
    if args.junit:
        junit.write(args.junit, name, [_suite(row) for row in summary["variants"]])
    return summary | {"out": str(out)}


def _suite(row: Document) -> Any:
    """The JUnit suite of a variant: its expectation is a case beside its requirements."""
    from hil_server.requirements import junit

    message = f"expected {row['expect']}, verdict {row['verdict']}"
    return junit.suite_of(row["number"], row, [junit.Case("expectation", "passed" if row["passed"] else "failed", message)])


def _print_side_by_side(summary: Document) -> None:
    """Comparison of the designs of each case; nothing for a programme without cases."""
    for case in summary.get("side_by_side", []):
        print(f"\n{case['case']}")
        for sentence in case["text"]:
            print(f"  {sentence}")
    if summary.get("page"):
        print(f"\nside by side: {summary['page']}")


def print_summary(summary: Document) -> None:
    """End, capture, health of the loop, peaks, faults, requirements, files: a line each."""
    from hil_server.requirements import counted

    captured = f"captured {summary['capture_time_s']:.3f} s" if summary["captured"] else "not captured"
    logged, ticks = summary["ticks"], summary.get("ticks_run", summary["ticks"])
    ticks = f"{ticks} ticks" + (f", {logged} of them in the log" if ticks != logged else "")
    print(f"end       {summary['end']} ({captured}), {ticks}, exit code {summary['exit_code']}")
    if summary.get("alignment"):
        print(f"units     {_alignment(summary['alignment'])}")
    print(f"loop      missed {summary['missed']}, overflow {summary['overflow']}, {summary['mode']}")
    if "realtime_factor" in summary:
        print(f"          {summary['realtime_factor']:.0f} times real time, {summary['realtime_factor_of_a_core']:.0f} by processor time")
    else:
        late, compute = summary["lateness_us"], summary["compute_us"]
        print(f"          late p50 {late['p50']:.0f} p99 {late['p99']:.0f} max {late['max']:.0f} us, compute p50 {compute['p50']:.1f} us")
        for row in summary.get("late_named", [])[:3]:
            who = f" ({row['who']})" if row["who"] else ""
            print(f"          {row['ticks']} late by {row['cause'].replace('_', ' ')}{who}, at most {row['worst_us']} us: {row['remedy']}")
    for row in summary["peaks"]:
        if row["moment"] not in ("stand", "approach"):
            marks = f"   ({'; '.join(row['marks'])})" if row.get("marks") else ""
            force = f"{row['force_n']:8.4g} N at {row['force_time_s']:.3f} s"
            print(f"peak      {row['moment']:10} {force}, {row['moment_n_m']:.4g} N.m{marks}")
    for worth in (summary["peak_worth"], summary["moment_worth"]):
        if worth:
            print(f"          impact: {worth['text']}")
    for one in summary["done_to_the_run"][:MOST_DONE]:
        print(f"done      {one['text']}")
    if (more := len(summary["done_to_the_run"]) - MOST_DONE) > 0:
        print(f"          and {more} more, in the report")
    for one in summary["not_available"]:
        print(f"          {one['figure']}: not available: {one['reason']}")
    if ledger := summary.get("unit_ledger"):
        print(f"unit      energy {ledger['in_words']}")
    if summary.get("arm"):
        print(f"arm       {summary['arm']['text']}")
    measured = [contact for contact in summary["contacts"] if contact["rebound"] is not None]
    for contact in measured[:MOST_REBOUNDS]:
        expected = contact["rebound_predicted"]
        prediction = "not predicted" if expected is None else f"predicted {expected:.4f}"
        print(f"contact   at {contact['begin_s']:.3f} s: e measured {contact['rebound']:.4f}, {prediction}")
    if len(measured) > MOST_REBOUNDS:
        print(f"          and {len(measured) - MOST_REBOUNDS} more with e, in the report")
    for line in summary["contacts_without_e"]:
        print(f"contact   {line}")
    if summary["cause"]:
        print(f"cause     {summary['cause']['text']} (tick {summary['cause']['tick']}, {summary['cause']['time_s']:.3f} s)")
    listed = [_listed(summary["fault_details"])] if summary["fault_details"] else []
    known = {fault["name"] for fault in summary["fault_details"]}  # a lost record may lack those of the run's end
    print("faults    " + (", ".join([*listed, *(name for name in summary["faults"] if name not in known)]) or "none"))
    if summary["note_details"]:
        print("notes     " + _listed(summary["note_details"]))
    if summary["requirements"]:
        print(f"requirements: {counted(summary['requirements'])}")
        print_requirements(summary["requirements"])
    for words in summary["not_confirmed"]:
        print(f"drives    NOT CONFIRMED AT THE END: {words}")
    if summary["not_confirmed"]:
        print(f"          {CUT_THE_POWER}")
    if summary.get("record_lost"):
        print(f"record    LOST: {summary['record_lost']}")
        if os.strerror(errno.ENOSPC) in summary["record_lost"]:
            print(f"          make room on the disk of {summary['log']}, or choose another folder with --out DIR")
    print(f"log       {summary['log']}")
    if summary.get("report"):
        print(f"report    {summary['report']}")


def print_requirements(rows: Sequence[Given]) -> None:
    """A line each: verdict, value reached, limit, margin, time; in colour where the terminal has colours."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from hil_server.terminal.plain import plain

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head, side in (("requirement", "left"), ("verdict", "left"), ("reached", "right"), ("limit", "right"), ("margin", "right"),
                       ("unit", "left"), ("at s", "right"), ("phase", "left")):  # fmt: skip
        table.add_column(head, justify=side, no_wrap=head != "requirement")  # type: ignore[arg-type]
    colour = {"met": "green", "violated": "bold red", "not judged": "yellow"}

    def number(value: float | None, form: str = ".4g") -> str:
        return "-" if value is None else format(value, form)

    for row in rows:
        words = [number(row[key]) for key in ("value", "limit", "margin")]
        verdict = row["verdict"].upper() if row["verdict"] == "violated" else row["verdict"]
        style = colour[row["verdict"]]
        name, unit = (escape(plain(row[key])) for key in ("name", "unit"))
        table.add_row(name, f"[{style}]{verdict}[/]", *words, unit, number(row["time_s"], ".3f"), row["phase"])
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, TABLE_WIDTH)
    console.print(table)


def _alignment(found: Document) -> str:
    """The two docking units at the end of the retraction, in one line."""
    gaps = [f"{1e3 * gap:.0f}" for name, gap in found["gaps_m"].items() if not name.endswith("plane_gap")]
    text = f"tilt {found['tilt_deg']:.2f} deg, offset {1e3 * found['offset_m']:.1f} mm, roll {found['roll_deg']:.2f} deg"
    text += f", gaps {' '.join(gaps)} mm" if gaps else ""
    return text + ("; together and aligned" if found["aligned"] else f"; NOT ALIGNED: {', '.join(found['missing'])}")


def _listed(details: list[Document]) -> str:
    return ", ".join(f"{one['name']} (tick {one['tick']}, {one['time_s']:.3f} s)" for one in details)
