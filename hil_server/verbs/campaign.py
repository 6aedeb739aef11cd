"""`hil-server campaign CAMPAIGN`: thousands of simulated cases, on this machine's cores or on a Dask cluster; resumes an interrupted
one."""

import argparse
import time
from dataclasses import asdict
from pathlib import Path

from hil_server import interrupts
from hil_server.values import Document

GROUP = "run a test"
ORDER = 35
SUMMARY = "simulates many cases: sampling, statistics, sensitivity, rare events"
EXAMPLES = (
    ("hil-server campaign probe_cone_campaign --cases 100", "100 cases; the same command continues an interrupted campaign"),
    ("hil-server campaign design_campaign --workers 8 --junit campaign.xml", "on eight processes, requirements for a build server"),
)
REMAINS = "no case was run; cases of an earlier call are kept"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server campaign`."""
    parser.add_argument("programme", metavar="CAMPAIGN", help="campaign file, or name of a shipped one, e.g. probe_cone_campaign")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key of the test; may be repeated")
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the results, where an unfinished campaign continues (default: runs/campaign-<name>)"
    )
    parser.add_argument("--cases", type=int, metavar="N", help="number of cases (default: that of the file)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine (default: one per core)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler, e.g. tcp://host:8786")
    parser.add_argument("--junit", metavar="FILE", help="writes the verdicts on the requirements as JUnit XML, for build servers")
    parser.add_argument("--quiet", action="store_true", help="prints no progress")


def run(args: argparse.Namespace) -> Document:
    """Runs or resumes the campaign; returns its statistics."""
    import numpy as np

    from hil_server.campaign import execution, report, sensitivity, statistics
    from hil_server.campaign.cores import idle_and_all_time, share_used
    from hil_server.campaign.plan import load_plan
    from hil_server.campaign.worst import rerun
    from hil_server.errors import UsageError, VerdictError
    from hil_server.run.folder import as_file_name
    from hil_server.run.progress import working

    if args.cases is not None and args.cases < 1 or args.workers is not None and args.workers < 1:
        raise UsageError("--cases and --workers must be at least 1")
    plan = load_plan(args.programme, tuple(args.set), args.cases)
    folder = Path(args.out) if args.out else Path("runs") / f"campaign-{as_file_name(plan.name)}"
    began, before = time.monotonic(), idle_and_all_time()
    rare = None
    interrupts.remains(f"completed cases are kept in {folder}; the same command runs the rest")
    with working(f"{plan.cases} cases", args.quiet) as done:
        if plan.rare is None:
            execution.run(plan, folder, args.workers, args.scheduler, done)
        else:
            rare = execution.run_rare(plan, folder, args.workers, args.scheduler, done)
    busy = None if args.scheduler else share_used(time.monotonic() - began)
    unused, passed = (b - a for a, b in zip(before, idle_and_all_time(), strict=True))
    idle = unused / max(1, passed)
    table = execution.read_results(folder)
    demanded = plan.base.document.get("requirement", ())
    summary = statistics.statistics(table, plan.keys, demanded)
    numbers = statistics.worst(table, plan.worst)
    conditions = np.column_stack([statistics.column(table, key) for key in plan.keys])
    with working("the worst cases again", args.quiet):
        logs = rerun(plan, numbers, conditions, folder)
    with working("report", args.quiet):
        indices = sensitivity.analysis(table, plan.keys, plan.sampling, plan.seed) if plan.independent else {}
        report.write(plan, table, summary, logs, folder / "report.html", indices, rare)
    if rare is not None:
        low, high = rare["interval_95"]
        print(f"\n{rare['event']}: probability {rare['probability']:.3g} (95 %: {low:.3g}...{high:.3g}) of {rare['cases']} cases, "
              f"{rare['method'].replace('_', ' ')}, {len(rare['levels'])} levels")  # fmt: skip
        if rare["without_outcome"]:
            print(f"          {rare['without_outcome']} cases without an outcome were counted as the event")
        print(
            "          the figures below are of these cases, which are concentrated near the event, not of the distribution of the campaign"
        )
    low, high = summary["capture_interval_95"]
    print(f"\n{summary['cases']} cases: capture probability {summary['capture_probability']:.4f} (95 %: {low:.4f}...{high:.4f})")
    if summary["no_verdict"]:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary["no_verdict"].items())
        print(f"          of {summary['judged']} cases with a verdict; without one: {reasons}")
    print("ends      " + ", ".join(f"{k} {v}" for k, v in summary["ends"].items()))
    if summary["captured"] != summary["captured_within_limits"]:
        others = "the others tripped or left a model's range after the capture"
        print(f"          {summary['captured_within_limits']} captured within the limits, {others}")
    for name, v in summary["loads"].items():
        print(f"{name:17s}  median {v['p50']:9.1f}  95 % {v['p95']:9.1f}  99 % {v['p99']:9.1f}  max {v['max']:9.1f}")
    broken = _requirements(summary["requirements"])
    if args.junit:
        _write_junit(args.junit, plan.name, summary)
    for outcome, rows in indices.items():
        shares = ", ".join(f"{i.key} {i.first:.2f}" for i in sorted(rows, key=lambda i: -i.first)[:4] if i.first > i.first_half)
        print(f"variance of the {outcome}: {shares or 'no single variable explains it'}")
    cores = "" if busy is None else f", {100 * busy:.0f} % of the processor time used, {100 * idle:.1f} % idle"
    print(f"time      {time.monotonic() - began:.0f} s{cores}")
    for one in logs:
        print(f"worst     case {one['number']}: {one['branch']}")
    print(f"report    {folder / 'report.html'}")
    found = {name: [asdict(i) for i in rows] for name, rows in indices.items()}
    return summary | {"sensitivity": found, "rare": rare, "folder": str(folder), "report": str(folder / "report.html"), "worst": logs,
                      "seconds": time.monotonic() - began, "busy": busy, "idle": idle,
                      "exit_code": VerdictError.exit_code if broken else 0}  # fmt: skip


def _requirements(found: Document) -> list[str]:
    """Prints the verdicts; returns the names of the requirements that more cases violate than allowed."""
    from hil_server.campaign.statistics import standing
    from hil_server.terminal.tables import print_table

    if found:
        head = ("requirement", "", "violated", "met", "not judged", "least margin", "5 %", "median")
        rows = [
            (name, standing(one).replace("violated", "VIOLATED"), *(str(one[key]) for key in ("violated", "met", "not_judged")),
             *(f"{one['margin'][key]:.4g}" if one["margin"] else "-" for key in ("p0", "p5", "p50")))
            for name, one in found.items()
        ]  # fmt: skip
        print()
        print_table(rows, head)
        print()
    return [name for name, one in found.items() if not one["kept"]]


def _write_junit(file: str, name: str, summary: Document) -> None:
    from hil_server.campaign.statistics import standing
    from hil_server.requirements import junit

    outcomes = {"violated": "failed", "kept": "passed", "not judged": "skipped"}
    cases = []
    for key, one in summary["requirements"].items():
        judged = one["met"] + one["violated"]
        counts = f"{one['violated']} of {judged} judged cases violate it, allowed {one['violated_max']:g}"
        least = f", least margin {one['margin']['p0']:.4g}" if one["margin"] else ""
        facts = {k: one[k] for k in ("met", "violated", "not_judged", "source") if one[k] != ""} | one["margin"]
        cases.append(junit.Case(key, outcomes[standing(one)], counts + least, facts))
    errors = summary["errors"]
    ran = junit.Case("cases run", "failed" if errors else "passed", f"{summary['cases']} cases, {errors} with an error")
    junit.write(file, name, [junit.Suite(name, [ran, *cases])])
