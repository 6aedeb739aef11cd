"""`hil-server check [CONFIG]`: configuration, installation, buses, and missing real-time settings of the host, with the fix for each.

CONFIG: test, programme (all variants), campaign (the ends of all that it varies), stand, craft, docking unit.
`--resolved` prints instead the whole of a file that extends others, as one TOML file, with the source of each key.
`--insertion` adds of a docking unit what force its latches need (`hil_server.predict.insertion`).
`--measure` adds the wake-up latency of the loop's core. It occupies that core at the loop's priority and is refused during a live run.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hil_server.errors import ConfigurationError, UsageError
from hil_server.host.realtime_host import live_runs
from hil_server.values import Document

if TYPE_CHECKING:
    from hil_server.config import TestConfig
    from hil_server.run.examination import Examined

GROUP = "files and parts"
ORDER = 62
SUMMARY = "checks a file, the installation, and the real-time settings of the host"
EXAMPLES = (
    ("hil-server check docking", "the shipped test, all files that it names, and this host"),
    ("hil-server check stand.toml --set limits.force_limit_n=4000", "a stand file, with one limit changed"),
    ("hil-server check mechanisms/berthing_head.toml --insertion", "the force with which an arm has to press, over miss and tilt"),
    ("hil-server check --measure --seconds 10", "with the wake-up latency of the loop's core"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `hil-server check`."""
    parser.add_argument("config", nargs="?", metavar="CONFIG",
                        help="test, programme, campaign, stand, craft or docking unit (default: the shipped docking)")  # fmt: skip
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="overrides one key; may be repeated")
    parser.add_argument("--resolved", action="store_true",
                        help="prints the file together with those that it extends, and the source of each key")  # fmt: skip
    parser.add_argument("--insertion", action="store_true",
                        help="of a docking unit: the axial force that it needs to be captured, over miss and tilt")  # fmt: skip
    parser.add_argument("--measure", action="store_true", help="measures the wake-up latency of the loop's core; not during a live run")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="length of the measurement (default: 2)")
    parser.add_argument("--core", type=int, metavar="N", help="core of the loop (default: chosen as for a run)")


def run(args: argparse.Namespace) -> Document:
    """Examines configuration, installation and host; returns the exit code."""
    from hil_server.host.preflight import examine
    from hil_server.terminal.tables import print_table

    if args.resolved:
        return _resolved(args)
    if args.measure:
        _may_measure(args.seconds)
    summary: Document = {"exit_code": 0}
    summary["installation"] = _installation(summary)
    summary["configuration"] = _configuration(args, summary)
    findings = examine(args.core, args.seconds if args.measure else 0.0)
    summary["host"] = [f._asdict() for f in findings]
    if summary["configuration"]["faults"]:  # nothing is printed behind them: they are to be corrected first
        worse = sum(f.level != "info" for f in findings)
        print(f"\nHost: {worse} findings, shown once the configuration has no faults (or in --json)")
        return summary
    print("\nHost")
    rows = [(f.level, f.item, f"{f.found} -> {f.remedy}" if f.remedy else f.found) for f in findings]
    print_table(rows, ("level", "item", "found -> remedy"))
    if any(f.level == "fail" for f in findings):
        print("\nA live run on this host runs without real-time guarantees (stated in summary and log).")
    return summary


def _resolved(args: argparse.Namespace) -> Document:
    """Prints the file, with those that it extends, as one. Raises UsageError, ConfigurationError."""
    from hil_server.config import extends, named_file
    from hil_server.config.loader import DEFAULT_TEST

    if args.set or args.measure:
        raise UsageError("--resolved: shows what stands in the files: without --set and --measure")
    found = extends.whole(DEFAULT_TEST if args.config is None else named_file(args.config))
    print(extends.resolved_text(found), end="")
    return {"exit_code": 0, "files": [str(file) for file in found.texts], "resolved": found.tables}


def _may_measure(seconds: float) -> None:
    """Raises UsageError for a length out of range, and during a live run, which the measurement would disturb."""
    if not 0.1 <= seconds <= 3600.0:
        raise UsageError(f"--seconds {seconds:g}: a measurement takes 0.1...3600 s")
    if runs := live_runs():
        who = ", ".join(str(pid) for pid in runs)
        raise UsageError(f"--measure: live run in progress (process {who}); wait until it has ended: the measurement needs its core")


def _installation(summary: Document) -> Document:
    from hil_server.host.installation import check_installation

    print("Installation")
    try:
        folders = check_installation()
    except ConfigurationError as error:
        return _faulty(error, summary)
    print(f"  one installation, in {folders['hil_server']}")
    return {"faults": [], "folders": folders}


def _configuration(args: argparse.Namespace, summary: Document) -> Document:
    print("\nConfiguration")
    try:
        found = examined(args.config, args.set)
    except ConfigurationError as error:
        return _faulty(error, summary)
    law = _insertion(found) if args.insertion else {}
    several = f": a {found.kind}" + (f" of {len(found.rows)} variants" if found.kind == "programme" else "") if found.kind != "test" else ""
    print(f"  {found.name}{several}: no faults")
    for words in (*found.about, *law.pop("words", ())):
        print(f"  {words}")
    tests: list[Document] = []
    stands: list[Document] = []
    for row in found.rows:
        config = row.config
        beyond = " (beyond nominal approach)" if row.R1 > 1.0 else ""
        expected = f", expected {row.expect}" if row.expect else ""
        print(f"  {row.label}: hash {config.hash}; criticality R1 {row.R1:.2f}, R2 {row.R2:.2f}{beyond}{expected}")
        for choice in config.chosen:
            print(f"  {choice}")
        facts = {"label": row.label, "hash": config.hash, "chosen": list(config.chosen), "R1": row.R1, "R2": row.R2, "files": config.paths}
        stand = config.document["stand"]
        if stand not in stands:  # once per stand of a programme
            stands.append(stand)
            for table, path in config.paths.items():
                print(f"  {table:15s} {path}")
            _limits(config, summary)
            summary["parked_inside"] = summary.get("parked_inside") or _parked_inside(config)
            late = _delays_not_known(config)
            for key in late:
                print(f"  delay unknown, counted as 0 here; a live run is not armed without it: {key}")
            facts |= {"delays_not_known": late, "buses": _buses(config, summary), "hydraulics": _hydraulics(config, summary)}
        tests.append(facts)
    first = {key: value for key, value in tests[0].items() if key != "label"} if tests else {}
    return {"faults": [], "kind": found.kind, "name": found.name, "about": list(found.about), **law, **first, "tests": tests}


def _insertion(found: "Examined") -> Document:
    """What force a docking unit needs to be captured. Raises UsageError for another file, or a unit without a law of contact."""
    from hil_server.line.assembly import build_part
    from hil_server.predict.insertion import in_words, insertion_law

    if found.kind != "mechanism":
        raise UsageError(f"--insertion: {found.name} is a {found.kind}: give the file of a docking unit")
    part = build_part(*found.rows[0].config.setup.mechanism, {"period_s": 1.0 / found.rows[0].config.setup.test.rate_hz})
    if not hasattr(part, "max_penetration"):
        raise UsageError(f"--insertion: {found.name} has no surfaces that touch")
    law = insertion_law(part)
    return {"insertion": [one._asdict() for one in law], "words": in_words(law)}


def examined(file: str | Path | None, overrides: Sequence[str] = ()) -> "Examined":
    """As `hil_server.run.examination.examine`, and of a campaign its own test and the ends of all that it varies. Raises
    ConfigurationError."""
    from hil_server.run.examination import Examined, build, examine, kind_of_file, row_of

    if file is None or kind_of_file(file) != "campaign":
        return examine(file, overrides)
    from hil_server.campaign.plan import load_plan

    plan = load_plan(file, tuple(overrides))
    try:
        build(plan.base)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: campaign.test: {fault}" for fault in error.faults) from None
    varied = ", ".join(f"{v.name} out of {len(v.values)} values" if v.values else f"{v.name} {v.shown(v.low)} ... {v.shown(v.high)}"
                       for v in plan.variables)  # fmt: skip
    row = row_of(plan.base.setup.test.name, plan.base)
    return Examined("campaign", plan.name, (row,), (f"{plan.cases} cases, {plan.sampling}: {varied}",))


def _delays_not_known(config: "TestConfig") -> list[str]:
    """Keys of the devices' delays that a stand does not give."""
    return list(config.setup.stand.unknown_delays)


def _limits(config: "TestConfig", summary: Document) -> None:
    """Owner of the limits, and limits that the test makes stricter; exit code 1 for hardware with unsigned limits."""
    from hil_server.config import narrowing

    record = config.setup.stand.table["safety_record"]
    summary["limits"] = record
    print(f"  {narrowing.in_words(record)}")
    for one in record["narrower"]:
        print(f"    stricter {narrowing.narrower_in_words(one)}")
    if config.setup.stand.hardware:
        try:
            narrowing.demand_signed(record, str(config.paths["stand"]))
        except ConfigurationError as error:
            print("\n".join(f"  CANNOT RUN: {fault}" for fault in error.faults))
            summary["exit_code"] = 1


def _parked_inside(config: "TestConfig") -> str:
    """Prints and returns a line if the parked units overlap; "" otherwise."""
    from hil_server.line.assembly import base_context, part_of
    from hil_server.line.overlap import parked_inside

    context = base_context(config)
    inside = parked_inside(context["park"], context["start"].X_TA, part_of(config, "guidance", context), config.paths)
    if inside:
        print(f"  {inside}")
    return inside


def _buses(config: "TestConfig", summary: Document) -> list[Document]:
    """Load of each drive bus at the loop rate, and missing settings of the host; exit code 1 if a bus is overloaded."""
    setup = config.setup
    if not setup.stand.hardware:
        return []
    from hil_server.line.assembly import build_part

    drives = build_part(*setup.stand.devices["drives"], {"period_s": 1.0 / setup.test.rate_hz, "platform": None, "loop_core": -1})
    rows = []
    for number, load in enumerate(drives.bus_loads() if hasattr(drives, "bus_loads") else []):
        verdict = "fits" if load.fits else "OVERLOADED: use fewer axes on this bus, a lower rate, or a faster bus"
        share = 100.0 * load.load_max
        print(f"  bus {number}: {load.cycle_us_min:.0f} ... {load.cycle_us_max:.0f} us a cycle, {share:.0f} % at worst: {verdict}")
        rows.append({"cycle_us_max": load.cycle_us_max, "load_max": load.load_max, "fits": load.fits})
        if not load.fits:
            summary["exit_code"] = max(summary["exit_code"], 1)
    for level, item, found, remedy in drives.host_findings() if hasattr(drives, "host_findings") else []:
        print(f"  {level:4s} {item}: {found}{f' -> {remedy}' if remedy else ''}")
        if level == "fail":
            summary["exit_code"] = max(summary["exit_code"], 1)
    return rows


def _hydraulics(config: "TestConfig", summary: Document) -> Document:
    """Signals of the drives beside their position, and the limits that use them; exit code 1 for a limit without its signal."""
    from hil_server import registry

    stand = config.setup.stand
    limits, drives = stand.limits, stand.table.get("drives")
    if drives is not None:
        signals = [str(table.get("channel")) for table in drives.get("channels", ())]
    else:
        signals = list(getattr(registry.part("simulated", stand.table["virtual"]["part"]), "SAYS", ()))
    found: Document = {"channels": signals}
    if signals:
        every = f", every {drives.get('channels_every', 10)} cycles" if drives is not None else ""
        print(f"  drives report {', '.join(signals)}{every}")
    if "leg_force" in signals:
        found["leg_force_max_n"] = stand.table["platform"]["leg_force_max_n"]
        print(f"  limit of a leg's force: {found['leg_force_max_n']:g} N")
    if "leg_valve" in signals:
        found["valve_saturated_s"] = config.setup.stages["safety"].values.get("valve_saturated_s")
        if found["valve_saturated_s"] is not None:
            print(f"  limit of a valve at its end: {found['valve_saturated_s']:g} s")
    if limits.supply_pressure_min_pa > 0.0:
        found["supply_pressure_min_pa"] = limits.supply_pressure_min_pa
        missing = "supply_pressure" not in signals
        verdict = ": NOT MEASURED, no run would start; add the channel supply_pressure, or omit the limit" if missing else ""
        print(f"  limit of the supply pressure: {limits.supply_pressure_min_pa / 1e6:g} MPa{verdict}")
        if missing:
            summary["exit_code"] = max(summary["exit_code"], 1)
    if limits.blocking_valves:
        print("  drives that cannot follow a stop lose their power, and blocking valves hold the legs")
    return found


def _faulty(error: ConfigurationError, summary: Document) -> Document:
    from hil_server.terminal.faults import located

    faults = [located(fault) for fault in error.faults]
    for fault in faults:
        print(f"  {fault}")
    summary["exit_code"] = error.exit_code
    return {"faults": faults}
