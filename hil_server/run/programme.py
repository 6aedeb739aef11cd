"""A test programme: numbered variants of one test, run one after another, each with its own log and verdict.

    [programme]
    name = "docking variants"
    test = "docking.toml"                    # the test that every variant starts from
    hold = true                              # live: wait for `start` between two variants (hil_server.run.between)

    [[variant]]
    number = "RT-01"                         # kept across facilities
    description = "nominal"
    expect = "captured"                      # captured, not_captured, stalled, complete, not_aligned, separated or tripped
    set = { "initial_conditions.lateral_y_m" = 0.05, "compensation.part" = "none" }
    waive = ["captured in time"]             # requirements that this variant need not meet
    case = "20 t to 420 t"                   # variants of one case are laid side by side (hil_server.report.side_by_side) ...
    design = "existing"                      # ... under these names; what the first one is called, the others are measured against

    [[requirement]]                          # of every variant, beside those of the test, or in the place of one of the same name
    name = "peak force"
    channel = "norm(F_T[0:3])"
    below_n = 2000.0

`set` holds the same keys as `--set`. The expectation is the outcome of the docking, the requirements (docs/requirements.md) what has to
be shown beside: a variant that ends as expected and violates one fails the programme. All variants are loaded and checked before the first
one runs. A live programme stops at a trip: the stand is to be inspected before it continues (unless `--continue-after-trip`). A trip
that the operator has recovered from in the run, which then parked, does not end it: the next variant waits for `start`. Ctrl-C
ends the variant and the programme.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil_server.config import TestConfig, extends, load_test, named_file, toml_text
from hil_server.config.checks import Table, line, missing, must_be, unknown_key
from hil_server.config.loader import named_test
from hil_server.errors import CUT_THE_POWER, ConfigurationError, DeviceError, TripError
from hil_server.line import assembly
from hil_server.report.programme_page import ProgrammePage, peak
from hil_server.requirements import counted, declaration, violated
from hil_server.run.between import Between
from hil_server.values import Document, Given, Value
from rt_kernels.parameters import Parameter

PROGRESS = "programme.json"
VERDICTS = ("captured", "not_captured", "stalled", "complete", "not_aligned", "separated", "tripped")
NUMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

PROGRAMME = Table(
    (
        Parameter("name", "str", "-", "short name, shown in reports"),
        Parameter("description", "str", "-", "what it is", default=""),
        Parameter("test", "str", "-", "test file that every variant starts from"),
        Parameter("hold", "bool", "-", "a live programme waits for the command start between two variants", default=False),
        Parameter("pause_s", "float", "s", "else a live programme waits so long: time to say hold", low=0.0, high=3600.0, default=0.0),
    )
)
TABLES = ("programme", "variant", "requirement")
WAIVE = "waive"  # a list of names, which no kind of parameter is
VARIANT = Table(
    (
        Parameter("number", "str", "-", "number of the variant, as RT-01; also the name of its folder"),
        Parameter("description", "str", "-", "what it is"),
        Parameter("expect", "str", "-", "verdict that counts as passed", choices=VERDICTS),
        Parameter("set", "table", "-", "overrides of the test", default={}),
        Parameter("case", "str", "-", "variants of one case are laid side by side", default=""),
        Parameter("design", "str", "-", "what this one is in its case; the first is the reference", default=""),
    )
)


@dataclass(frozen=True)
class Variant:
    """One checked variant. config: the test with the variant's overrides."""

    number: str
    description: str
    expect: str
    config: TestConfig
    case: str = ""
    design: str = ""


def is_programme(file: str | Path | None) -> bool:
    """Whether a file is a programme rather than a single test; False for anything unreadable (the loader then says why)."""
    try:
        return file is not None and "programme" in extends.tables_of(named_file(file))
    except ConfigurationError:
        return False


def load_programme(file: str | Path, overrides: Sequence[str] = (), waived: Sequence[str] = ()) -> tuple[str, list[Variant]]:
    """Name and variants of a programme file; `overrides` apply to every variant, after its own, and so do `waived` requirements.

    Raises ConfigurationError with all faults of the file and of every variant, each with the variant's number."""
    file = named_file(file)
    document = extends.tables_of(file, "programme")
    faults = [unknown_key(str(file), k, v, k, TABLES) for k, v in document.items() if k not in TABLES]
    head = document.get("programme")
    faults += PROGRAMME.faults(head, str(file), "programme")
    rows = document.get("variant", [])
    if not isinstance(rows, list) or not rows:
        faults.append(missing(str(file), "variant", "table", "at least one [[variant]]"))
        rows = []
    for i, row in enumerate(rows):
        names = row.pop(WAIVE, []) if isinstance(row, dict) else []
        faults += VARIANT.faults(row, str(file), f"variant[{i}]")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            faults.append(must_be(str(file), f"variant[{i}].{WAIVE}", "a list of names of requirements", names))
        elif isinstance(row, dict):
            row[WAIVE] = names
    demanded = document.get("requirement", [])
    faults += [f"{file}: {fault}" for fault in declaration.faults_of(demanded)]
    if faults:
        raise ConfigurationError(faults)
    assert isinstance(head, dict)
    base = named_test(head["test"], file, "programme.test")
    left_out = [[*row.pop(WAIVE), *waived] for row in rows]
    variants = [_variant(file, base, i, VARIANT.with_defaults(row), overrides, demanded, left_out[i], faults) for i, row in enumerate(rows)]
    numbers = [row["number"] for row in rows]
    twice = [i for i, n in enumerate(numbers) if n in numbers[:i]]
    faults += [line(str(file), f"variant[{i}].number", "used twice", numbers[i], limit="a number of its own", unit="-") for i in twice]
    for i, row in enumerate(rows):
        if bool(row.get("case")) != bool(row.get("design")):
            here, other = ("case", "design") if row.get("case") else ("design", "case")
            faults.append(missing(str(file), f"variant[{i}].{other}", "key", f"with {here} = {row[here]!r}, what it is compared as"))
    if faults:
        raise ConfigurationError(_of_every_variant(file, numbers, faults))
    return head["name"], [v for v in variants if v is not None]


def _of_every_variant(file: Path, numbers: Sequence[str], faults: Sequence[str]) -> list[str]:
    """The faults, each once; one that all of several variants have is a single line."""
    first, *others = (f"{file}: variant {number}: " for number in dict.fromkeys(numbers))
    common = {fault.removeprefix(first) for fault in faults if fault.startswith(first)}
    common = {text for text in common if others and all(other + text in faults for other in others)}
    found: dict[str, None] = {}
    for fault in faults:
        text = fault.partition(": variant ")[2].partition(": ")[2]
        found[f"{file}: every variant: {text}" if text in common else fault] = None
    return list(found)


def assemble_all(file: str | Path, variants: Sequence[Variant], build: Callable[[TestConfig], object] = assembly.simulation) -> None:
    """Assembles every variant and lets it go: what only the parts know, as the channels that a requirement names, is then found before the
    first one runs. Raises ConfigurationError with the faults of all, each with the variant's number."""
    faults: list[str] = []
    for variant in variants:
        try:
            build(variant.config)
        except ConfigurationError as error:
            faults += [f"{file}: variant {variant.number}: {fault}" for fault in error.faults]
    if faults:
        raise ConfigurationError(dict.fromkeys(faults))


def between_of(file: str | Path, telemetry: Document, hold: bool = False, desk: Path | None = None) -> Between:
    """What a live programme does between two variants. file: a programme that `load_programme` has found good; hold: wait in any case;
    desk: file of who holds the desk from variant to variant."""
    head = PROGRAMME.with_defaults(extends.tables_of(named_file(file))["programme"])
    return Between(telemetry, hold or head["hold"], head["pause_s"], desk=desk)


def _variant(
    file: Path, base: Path, index: int, row: Document, overrides: Sequence[str], demanded: Sequence[Given], waived: Sequence[str],
    faults: list[str],
) -> Variant | None:  # fmt: skip
    number = row["number"]
    if not NUMBER.fullmatch(number):
        faults.append(line(str(file), f"variant[{index}].number", "no folder name", number, limit="letters, digits, . _ -", unit="-"))
    settings = [f"{key}={toml_text.value(value)}" for key, value in _flat(row["set"])]
    try:
        config = load_test(base, [*settings, *overrides], demanded, waived)
        return Variant(number, row["description"], row["expect"], config, row["case"], row["design"])
    except ConfigurationError as error:
        faults += [f"{file}: variant {number}: {fault}" for fault in error.faults]
        return None


def _flat(table: Document, path: str = "") -> list[tuple[str, Value]]:
    """Dotted keys may be written quoted or as tables: `a.b = 1` and `"a.b" = 1` are the same here."""
    items: list[tuple[str, Value]] = []
    for key, value in table.items():
        full = f"{path}.{key}" if path else key
        items += _flat(value, full) if isinstance(value, dict) else [(full, value)]
    return items


def run_programme(
    name: str,
    variants: Sequence[Variant],
    run_one: Callable[[TestConfig, Path], Document],
    out: Path,
    stop_at_trip: bool,
    say: Callable[[str], None] = print,
    between: Between | None = None,
) -> Document:
    """Runs every variant into a folder of its own below `out`.

    run_one(config, folder) performs one test and returns its summary (keys of `hil-server run --json`). Returns the summary of the
    programme: a row for each variant with its verdict; exit_code 0 if all passed and no requirement is violated, 1 if not, 3 if a trip
    ended the programme, 4 if drives are not confirmed off, 130 if Ctrl-C did. between: asked before every variant but the first whether
    to continue. `programme.json` in `out` tells all the while where it stands, `programme.html` shows what is done, side by side."""
    rows: list[Document] = []
    page = ProgrammePage(name, [(one.number, one.description, one.expect) for one in variants], out)
    exit_code = 0
    waits = False
    try:
        for variant in variants:
            if rows and between is not None and not _goes_on(name, variants, rows, out, variant, between, say, waits):
                say(f"ended by the operator before {variant.number}")
                exit_code = max(exit_code, 1)
                break
            write_progress(name, variants, rows, out, variant)
            r1, r2 = variant.config.setup.criticality
            say(f"{variant.number}  {variant.description}  (R1 {r1:.2f}, R2 {r2:.2f})")
            summary = _one(variant, run_one, out / variant.number)
            passed = as_expected(variant.expect, verdict(summary))
            about = {"number": variant.number, "description": variant.description, "case": variant.case, "design": variant.design}
            rows.append({**about, "R1": r1, "R2": r2, "expect": variant.expect,
                         "verdict": verdict(summary), "passed": passed, **summary})  # fmt: skip
            page.add(rows[-1])
            page.write()
            exit_code = max(exit_code, 0 if passed and not violated(summary.get("requirements") or ()) else 1)
            if summary.get("not_confirmed"):
                say(f"{variant.number}: drives are not confirmed off: the programme stops here; {CUT_THE_POWER}")
                exit_code = DeviceError.exit_code
                break
            if summary.get("interrupted"):  # also where the run has tripped by itself meanwhile, which is its exit code
                say(f"{variant.number} was ended by Ctrl-C: the programme ends here")
                exit_code = max(exit_code, summary["exit_code"])
                break
            if summary.get("end") == "record_lost":
                say(f"{variant.number} could not be recorded to its end: the programme stops here")
                exit_code = TripError.exit_code
                break
            waits = bool(summary.get("recovered")) and between is not None and between.asks
            if summary.get("end") == "tripped" and stop_at_trip and variant.expect != "tripped" and not waits:
                say(f"{variant.number} tripped: the programme stops here; inspect the stand, then continue with the remaining variants")
                exit_code = TripError.exit_code
                break
            if summary.get("end") == "stopped":
                say(f"{variant.number} was stopped by the operator: the programme ends here")
                exit_code = max(exit_code, 1)
                break
    finally:  # a lost device ends the programme, too
        write_progress(name, variants, rows, out)
    not_run = [v.number for v in variants[len(rows) :]]
    found = {"programme": name, "exit_code": exit_code, "passed": sum(r["passed"] for r in rows), "variants": rows, "not_run": not_run}
    found |= _side_by_side(name, rows, out)
    return found | {"overview": str(page.write(not_run))}


def _goes_on(
    name: str, variants: Sequence[Variant], rows: Sequence[Document], out: Path, following: Variant, between: Between,
    say: Callable[[str], None], hold: bool = False,
) -> bool:  # fmt: skip
    """Asks `between` whether the next variant is to run; says, and writes down, that the programme waits for it. hold: it waits in any
    case."""

    def told(waits: bool) -> None:
        write_progress(name, variants, rows, out, following=following, held=waits)
        if waits:
            say(f"{following.number} is next: `hil-server command start --address {between.address}` starts it, `stop` ends the programme")

    return between.wait(following.number, told, hold=hold)


def _side_by_side(name: str, rows: Sequence[Document], out: Path) -> Document:
    """The cases with their designs, and the page; nothing where the programme compares nothing."""
    if not any(row.get("case") for row in rows):
        return {}
    from hil_server.report.side_by_side import compared, write_page

    cases = compared(rows)
    return {"side_by_side": cases, "page": str(write_page(name, cases, out))}


def write_progress(
    name: str, variants: Sequence[Variant], rows: Sequence[Document], out: Path, running: Variant | None = None,
    following: Variant | None = None, held: bool = False,
) -> None:  # fmt: skip
    """`programme.json` in `out`: every variant with its state (done, running, next, waiting) and, when done, its `key_figures`: numbers
    are numbers, `units` has their units. following: what comes next while none runs; held: it waits for `start`."""
    done = {row["number"]: row for row in rows}
    table = []
    for variant in variants:
        row = done.get(variant.number)
        state = "done" if row else "running" if variant is running else "next" if variant is following else "waiting"
        figures = {} if row is None else key_figures(row)
        about = {"description": variant.description, "expect": variant.expect}
        table.append({**about, **figures, "variant": variant.number, "state": state})
    out.mkdir(parents=True, exist_ok=True)
    part = out / f"{PROGRESS}.part"
    ended = running is None and following is None
    part.write_text(json.dumps({"programme": name, "ended": ended, "held": held, "units": UNITS, "variants": table}, allow_nan=False))
    part.replace(out / PROGRESS)  # a reader sees the old one or the new one


def _one(variant: Variant, run_one: Callable[[TestConfig, Path], Document], folder: Path) -> Document:
    """One variant; an error of ours ends the variant, not the programme, unless the configuration or a device is at fault."""
    try:
        return run_one(variant.config, folder)
    except TripError as error:
        return {"end": "tripped", "exit_code": error.exit_code, "faults": list(error.faults), "captured": False}


def verdict(summary: Document) -> str:
    """Outcome of the docking: the end of the run where it says more than the capture does, else whether it captured; stalled: an arm
    pressed to the end and the latches held out."""
    end = summary.get("end")
    if end in ("tripped", "complete", "not_aligned", "separated"):
        return str(end)
    if summary.get("captured"):
        return "captured"
    return "stalled" if (summary.get("arm") or {}).get("outcome") == "stalled" else "not_captured"


def as_expected(expect: str, found: str) -> bool:
    """A completed docking has also captured, and so has one that was undocked again; a stalled berthing has not; a retraction that did not
    align the units is only what it is."""
    return found == expect or (expect, found) in (("captured", "complete"), ("captured", "separated"), ("not_captured", "stalled"))


def key_figures(row: Document) -> Document:
    """Figures of a variant that is done by SUMMARY_HEADS, numbers to as many digits as say something and None for what it does not have;
    `violated`: names of requirements; `report`: its page."""

    def rounded(value: object, digits: int) -> float | None:
        return round(float(value), digits) if isinstance(value, int | float) and math.isfinite(value) else None

    return {
        "R1": rounded(row["R1"], 3),
        "verdict": row["verdict"],
        "capture s": rounded(row.get("capture_time_s"), 4),
        "impact N": rounded(peak(row, 0), 1),
        "impact N.m": rounded(peak(row, 1), 1),
        "arm margin": rounded((row.get("arm") or {}).get("margin"), 3),
        "result": "passed" if row["passed"] else f"FAILED (expected {row['expect']})",
        "requirements": _requirements(row),
        "violated": violated(row.get("requirements") or ()),
        "report": row.get("report"),
    }


def summary_rows(summary: Document) -> list[tuple[str, ...]]:
    """The table for people: one row a variant."""

    def number(value: object, form: str) -> str:
        return format(value, form) if isinstance(value, int | float) else "-"

    return [
        (
            row["number"],
            number(row["R1"], ".2f"),
            row["verdict"],
            number(row.get("capture_time_s"), ".3f"),
            number(peak(row, 0), ".0f"),
            number(peak(row, 1), ".0f"),
            number((row.get("arm") or {}).get("margin"), ".2f"),
            _requirements(row),
            "passed" if row["passed"] else f"FAILED (expected {row['expect']})",
        )
        for row in summary["variants"]
    ]


SUMMARY_HEADS = ("variant", "R1", "verdict", "capture s", "impact N", "impact N.m", "arm margin", "requirements", "result")
UNITS = {"R1": "-", "capture s": "s", "impact N": "N", "impact N.m": "N.m", "arm margin": "-"}


def _requirements(row: Document) -> str:
    """Verdicts on the requirements: the names of those that are violated, else how many were met."""
    rows = row.get("requirements") or ()
    names = violated(rows)
    return "VIOLATED: " + ", ".join(names) if names else counted(rows) if rows else "-"
