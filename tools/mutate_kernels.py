"""Do the tests bite? Changes one constant, sign, comparison, limit, connective, flag or mask of a kernel at a time, builds that module
again and runs the tests that claim it. A mutant that passes all tests has survived: it gets a test, or a reason in tools/mutants_kept.toml.

    python tools/mutate_kernels.py [--module safety] [--count 20] [--seed 1] [--out build/mutants.json] [--only TEXT] [--survivors] [--list]
    python tools/mutate_kernels.py --planted [NAME ...] [--first 1] [--seeds 2000] [--seconds 7200]

--module: names of TARGETS, all without it; --count: mutants per module, spread over its functions (0: all); --survivors: only those that an
earlier run with the same --out left alive. The work is done in a copy of the tree named as the results, without `.json`: those
of another --out can run beside it. The results are kept after each mutant, and a run that was broken off continues where it stopped. Exit
code 1 when a mutant survives without a reason.

--planted: plants the defects of tools/planted_defects.toml, one at a time, and has `hil-server world` hunt each; NAME `nothing` is the tree
as it is. Printed for each: the seed that found it, runs and ticks and processor seconds until then (shrinking included), its events before
and after shrinking, and what was violated. Exit code 1 when one is not found, or its seed violates something without it, or nothing is.

Of a kernel only what runs in a tick is changed: bodies of `nogil` functions, masks of bits. Of a Python module (set-up, session) the
bodies of its functions. Comments, docstrings, declarations and pauses between two looks stay as they are.
"""

import argparse
import contextlib
import json
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.generate_channels import products  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "tools" / "mutants_kept.toml"
PLANTED = ROOT / "tools" / "planted_defects.toml"
TEST_SECONDS = 300  # the longest that tests may take without a change


@dataclass(frozen=True)
class Target:
    """A source that is changed, the extension modules that compile it, and the tests that claim it (folders, files, single tests, and
    options of pytest), those that say most in least time first."""

    source: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


def _target(source: str, *tests: str, modules: tuple[str, ...] = ()) -> Target:
    compiled = () if source.endswith(".py") else (source.removesuffix(".pyx").replace("/", "."),)
    return Target(source, modules or compiled, tests)


# of the proof those that run the compiled step; the solvers never see it
SAFETY = (
    "tests/safety/test_faults.py", "tests/safety/test_setpoints.py",
    "tests/safety/test_proof.py::test_compiled_frame_and_formula_have_the_same_bits",
    "tests/safety/test_proof.py::test_compiled_following_and_formula_have_the_same_bits",
    "tests/safety/test_proof.py::test_it_continues_holding_frame_after_frame",
    "tests/safety/test_power.py", "tests/safety/test_start.py", "tests/safety/test_hydraulics.py", "tests/safety/test_recovery.py",
    "tests/safety/test_sense.py", "tests/safety/test_energy_monitor.py", "tests/safety/test_any_input.py",
)  # fmt: skip
# all but the cost, which a mutant built with less optimization would miss
COMPENSATORS = (
    "tests/compensation/test_closed_form.py", "tests/compensation/test_parts.py",
    "--deselect=tests/compensation/test_parts.py::test_recommended_stack_costs_less_than_a_microsecond",
)  # fmt: skip
ETHERCAT = ("tests/drivers/drives/test_ethercat_axes.py", "tests/drivers/drives/test_ethercat_setup.py")
SERIAL = ("tests/drivers/wrench_sensors/test_serial_sensors.py", "tests/drivers/wrench_sensors/test_damaged_streams.py")
# without those that need a stand
RDT = ("tests/drivers/wrench_sensors/test_rdt.py", "-knot (simulated or faults_show or change_nothing)")
TARGETS: dict[str, Target] = {
    "safety": _target("rt_kernels/safety/limits.pyx", *SAFETY),
    "forward_kinematics": _target("rt_kernels/forward_kinematics/stewart.pyx", "tests/forward_kinematics"),
    "setpoint_kinematics": _target("rt_kernels/setpoint_kinematics/stewart.pyx", "tests/setpoint_kinematics"),
    "wrench": _target("rt_kernels/wrench/six_axis.pyx", "tests/wrench"),
    "docking": _target("rt_kernels/guidance/docking.pyx", "tests/guidance/test_docking.py", "tests/guidance/test_stand_phases.py"),
    "stand_phases": _target("rt_kernels/guidance/stand_phases.pxd", "tests/guidance/test_stand_phases.py", "tests/guidance/test_docking.py",
                            modules=("rt_kernels.guidance.docking",)),
    "berthing": _target("rt_kernels/guidance/berthing.pyx", "tests/guidance/test_berthing.py"),
    "recovery": _target("rt_kernels/recovery.pxd", "tests/safety/test_recovery.py", "tests/guidance/test_stand_phases.py",
                        modules=("rt_kernels.safety.limits", "rt_kernels.guidance.docking")),
    "recoverer": _target("hil_server/run/recovery.py", *(f"tests/system/test_recovery.py::test_{name}" for name in (
        "a_recovery_has_the_devices_set_up_once_and_is_told", "a_recovery_that_is_given_up_says_what_stands_and_a_later_one_is_another",
        "a_recovery_that_begins_nothing_says_why", "no_record_is_missed_however_many_came_and_none_is_seen_twice",
        "devices_that_are_being_set_up_are_not_begun_again_and_one_that_fails_leaves_the_others"))),
    "unit_energy": _target("rt_kernels/safety/unit_energy.pyx", "tests/safety/test_unit_energy.py::test_what_a_unit_may_give_is_the_"
                           "balance_of_its_tank", "tests/safety/test_unit_energy.py"),
    "tuning": _target("rt_kernels/tuning.pxd", "tests/loop/test_tuning.py", modules=("rt_kernels.loop", "rt_kernels.tuning")),
    "command_latch": _target("rt_kernels/command_latch.pyx", "tests/system/test_end_of_time.py::test_the_latch_gives_its_commands_once_and_"
                             "lets_others_go_first", "tests/operator_desk/test_hand_controller.py"),
    "events": _target("rt_kernels/events/docking.pyx", "tests/events/test_docking.py"),
    "excitation": _target("rt_kernels/guidance/excitation.pyx", "tests/guidance/test_excitation.py"),
    "recording": _target("rt_kernels/guidance/recording.pyx", "tests/guidance/test_recording.py"),
    "recorded_operator": _target("rt_kernels/recorded_operator.pyx", "tests/loop/test_recorded_operator.py"),
    "log_port": _target("drivers/replayed/log_port.pyx", "tests/drivers/replayed"),
    "ideal_stand": _target("drivers/simulated/ideal_stand.pyx", "tests/drivers/simulated/test_ideal_stand.py"),
    "virtual_stand": _target("drivers/simulated/virtual_stand.pyx", "tests/drivers/simulated/test_virtual_stand.py"),
    "rdt": _target("drivers/wrench_sensors/rdt.pyx", *RDT),
    "ati_can": _target("drivers/wrench_sensors/ati_can.pyx", "tests/drivers/wrench_sensors/test_ati_can.py",
                       "tests/drivers/wrench_sensors/test_damaged_streams.py"),
    "bus_errors": _target("drivers/raw_frames/bus_errors.pxd", "tests/drivers/mechanism_signals/test_cia401.py",
                          "tests/drivers/wrench_sensors/test_ati_can.py",
                          modules=("drivers.mechanism_signals.cia401", "drivers.wrench_sensors.ati_can")),
    "serial_stream": _target("drivers/wrench_sensors/serial_stream.pyx", *SERIAL),
    "record_check": _target("drivers/wrench_sensors/record_check.pxd", *SERIAL, "tests/drivers/wrench_sensors/test_ati_can.py",
                            modules=("drivers.wrench_sensors.serial_stream", "drivers.wrench_sensors.ati_can")),
    "sensor_output": _target("drivers/wrench_sensors/sensor_output.pxd", SERIAL[0], *RDT,
                             modules=("drivers.wrench_sensors.serial_stream", "drivers.wrench_sensors.rdt")),
    "bota_serial": _target("drivers/wrench_sensors/bota_serial.pyx", *SERIAL),
    "robotiq_ft300": _target("drivers/wrench_sensors/robotiq_ft300.pyx", *SERIAL),
    "ethercat_axes": _target("drivers/drives/ethercat_axes.pyx", *ETHERCAT),
    "ethercat_frame": _target("drivers/raw_frames/ethercat_frame.pxd", *ETHERCAT, modules=("drivers.drives.ethercat_axes",)),
    "keeper": _target("drivers/drives/keeper.pxd", *ETHERCAT, modules=("drivers.drives.ethercat_axes",)),
    "watchdog_output": _target("drivers/watchdog_output.pxd", *ETHERCAT, modules=("drivers.drives.ethercat_axes",)),
    "axis_values": _target("drivers/drives/axis_values.pxd", *ETHERCAT, "tests/drivers/drives/test_can_axes.py",
                           modules=("drivers.drives.ethercat_axes", "drivers.drives.cyclic_axes")),
    "cia402_words": _target("drivers/drives/cia402_words.pxd", *ETHERCAT,
                            modules=("drivers.drives.ethercat_axes", "drivers.drives.cia402_ethercat")),
    "axes_session": _target("drivers/drives/axes_session.py", "tests/drivers/drives/test_axes_session.py",
                            "tests/drivers/drives/test_ethercat_setup.py::test_the_slaves_that_the_stand_file_says_are_taken",
                            *(f"tests/drivers/drives/test_can_axes.py::test_{name}" for name in (
                                "set_up_of_library_drives", "wrong_device_and_state_not_reached_are_named", "wrong_parameters_are_named",
                                "absent_drives_and_links_are_named", "node_that_lost_its_set_up_gets_it_again_beside_the_loop"))),
    "supervision": _target("drivers/drives/supervision.py", "tests/drivers/drives/test_axes_session.py",
                           "tests/drivers/drives/test_ethercat_setup.py::test_way_up_and_down",
                           *(f"tests/drivers/test_misbehaviour.py::test_{name}" for name in (
                               "what_the_stand_file_leaves_to_the_drive_is_left_and_noted", "what_a_drive_does_not_have_is_noted",
                               "a_value_that_reads_back_otherwise_refuses_the_start"))),
    "canopen_setup": _target("drivers/drives/canopen_setup.py", "tests/drivers/drives/test_can_axes.py::test_set_up_of_library_drives",
                             "tests/drivers/drives/test_can_axes.py::test_an_emergency_that_stands_refuses_the_start",
                             *(f"tests/drivers/drives/test_can_axes.py::test_{name}" for name in (
                                 "an_object_that_is_too_short_is_refused_and_a_longer_one_is_read",
                                 "an_object_that_a_drive_may_lack_is_left_out",
                                 "a_value_that_is_refused_ends_the_set_up_also_of_an_object_that_a_drive_may_lack",
                                 "an_emergency_counts_until_it_is_taken_back",
                                 "a_node_that_beats_in_another_state_is_waited_for_no_longer_than_its_time"))),
    "ethercat_setup": _target("drivers/drives/ethercat_setup.py", "tests/drivers/drives/test_ethercat_setup.py"),
    "identity": _target("drivers/identity.py", "tests/drivers/drives/test_ethercat_setup.py", *(
        f"tests/drivers/test_identity.py::test_{name}" for name in (
            "every_part_of_an_identity_counts", "a_key_that_a_device_does_not_say_is_none", "a_part_that_a_device_does_not_have_is_none",
            "drives_that_say_the_same_are_named"))),
    "session": _target("hil_server/run/session.py", "tests/system/test_session.py",
                       "tests/system/test_branch.py::test_what_follows_is_what_followed",
                       "tests/requirements/test_runs.py::test_a_thinned_log_keeps_what_the_run_saw",
                       "tests/system/test_again.py",
                       "tests/system/test_end_of_time.py::test_an_error_of_the_supervisor_leads_the_platform_home_and_keeps_the_record"),
    "claim": _target("hil_server/run/claim.py", "tests/system/test_one_stand_one_run.py"),
    "drive_channels": _target("drivers/drives/drive_channels.py", "tests/drivers/drives/test_drive_channels.py"),
    "axes": _target("drivers/drives/cyclic_axes.pyx", "tests/drivers/drives/test_can_axes.py", modules=("drivers.drives.cyclic_axes",)),
    "cia402": _target("drivers/drives/cia402.pyx", "tests/drivers/drives/test_can_axes.py"),
    "cia408": _target("drivers/drives/cia408.pyx", "tests/drivers/drives/test_can_axes.py"),
    "cia401": _target("drivers/mechanism_signals/cia401.pyx", "tests/drivers/mechanism_signals/test_cia401.py"),
    **{
        name: _target(f"rt_kernels/compensation/{name}.pyx", *COMPENSATORS)
        for name in ("phase_lead", "polynomial", "adaptive_time_series", "smith", "energy_cap", "pose_referenced_force",
                     "lead_and_pose_force", "phased")
    },
    "pose_force": _target("rt_kernels/compensation/pose_force.pxd", *COMPENSATORS,
                          modules=("rt_kernels.compensation.pose_referenced_force", "rt_kernels.compensation.lead_and_pose_force")),
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- mutants


@dataclass(frozen=True)
class Mutant:
    """One change: line number (from 0), function it stands in, kind, the line before and after, and which of the same ones it is."""

    number: int
    function: str
    kind: str
    before: str
    after: str
    copy: int = 1

    @property
    def key(self) -> str:
        """Independent of line numbers, so that a reason outlives an edit elsewhere in the file."""
        which = f" ({self.copy})" if self.copy > 1 else ""
        return f"{self.function}: {self.before.strip()} -> {self.after.strip()}{which}"


# kind → pattern, replacement. Pointer casts and ranges have no blanks about `<`, so only comparisons match.
SWAPS = (
    ("comparison", r" < ", " > "), ("comparison", r" > ", " < "), ("comparison", r" <= ", " >= "), ("comparison", r" >= ", " <= "),
    ("comparison", r" == ", " != "), ("comparison", r" != ", " == "),
    ("sign", r" \+ ", " - "), ("sign", r" - ", " + "), ("sign", r" \+= ", " -= "), ("sign", r" -= ", " += "),
    ("sign", r"(?<=[=(,] )-(?=[\w.(])", ""), ("sign", r"(?<=return )-(?=[\w.(])", ""),
    ("constant", r" \* ", " * 1.25 * "), ("factor", r" \* \w+\.periods\b", ""),
    ("connective", r" and ", " or "), ("connective", r" or ", " and "),
    ("connective", r"\bnot (?=[\w(])", ""), ("flag", r" \|= ", " &= "), ("flag", r" & (?=\d|~)", " | "),
)  # fmt: skip
# a name that is or-ed to others, dropped; also where a mask is declared
TERM = re.compile(r"(?:^| )\| [A-Z][A-Z0-9_]+\b")
NUMBER = re.compile(r"(?<![\w.\[])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.\]])")
WHOLE = re.compile(r"(?<=[=<>] )(\d+)(?=u?(?:$|[\s:)]))")
PAUSE = re.compile(r"\s*\w+\.(?:sleep|join)\([\d.]+\)$")
LIMIT = re.compile(r"\b(?:\w+\.)*(p(?:\.[a-z_]+)+(?:\[\w+\])?)(?![\w.\[(])")
HEAD = re.compile(r"^(\s*)(?:cdef|cpdef|def)\b.*?(\w+)\(")


def bodies(text: str, python: bool = False) -> Iterator[tuple[int, str, str]]:
    """(line number, function, line) of every line of code inside a `nogil` function; python: inside any function."""
    lines = text.split("\n")
    function, indent, quoted, head = "", 0, False, ""
    for number, line in enumerate(lines):
        if head:  # a signature of several lines
            head += line
            if line.rstrip().endswith(":"):
                function = function if python or "nogil" in head else ""
                head = ""
            continue
        if line.count('"""') == 1:
            quoted = not quoted
            continue
        if quoted or '"""' in line or not line.strip() or line.lstrip().startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        match = HEAD.match(line)
        if match and "(" in line and not re.match(r"\s*cdef\s+(const\s+)?\w+[\s*]+\w+\s*=", line):
            function, indent, head = match.group(2), depth, line
            if line.rstrip().endswith(":"):
                function = function if python or "nogil" in line else ""
                head = ""
            continue
        if function and depth <= indent:
            function = ""
        if function:
            yield number, function, line


def mutants(text: str, python: bool = False) -> list[Mutant]:
    """Every mutant of a source, in the order of its lines; python: of Python."""
    found: list[Mutant] = []
    for number, function, line in bodies(text, python):
        code, mark, comment = line.partition("  #")

        def add(kind: str, start: int, stop: int, new: str, code: str = code, tail: str = mark + comment, at: int = number,
                where: str = function, whole: str = line) -> None:  # fmt: skip
            changed = code[:start] + new + code[stop:] + tail
            inside = code[:start].count("[") > code[:start].count("]")
            moved = kind == "sign" and re.match(r" [+-] 3[,)]", code[start:])
            quoted = code[:start].count('"') % 2
            # no index, no address of a moment's or a rotation's half, no message
            if changed != whole and not (inside or moved or quoted):
                found.append(Mutant(at, where, kind, whole, changed))

        declared = re.match(r"\s*cdef [^=]*$", code)
        if declared or PAUSE.match(code) or re.match(r"\s*for \w+ in range\(", code):
            continue
        for kind, pattern, new in SWAPS:
            for match in re.finditer(pattern, code):
                add(kind, match.start(), match.end(), new)
        for match in TERM.finditer(code):
            add("term", match.start(), match.end(), "")
        for match in NUMBER.finditer(code):
            value = float(match.group(1))
            add("constant", match.start(), match.end(), repr(value * 1.25 if value else 0.01))
        for match in WHOLE.finditer(code):
            if re.search(r"\bfd (?:>=|<) $", code[: match.start()]):
                continue  # of a descriptor: 0 is the standard input
            # a flag that is set: only whether it is 0 is asked
            flag = match.group(1) == "1" and code[: match.start()].endswith(" = ") and match.end() == len(code)
            add("constant", match.start(), match.end(), "0" if flag else str(int(match.group(1)) + 1))
        for match in LIMIT.finditer(code):
            left = code[: match.start(1)]
            if "=" in code and not re.search(r"[=(<>,]|\bif\b|\breturn\b|\band\b|\bor\b", left) or left.rstrip().endswith("&"):
                continue  # the side that is assigned to, or an address
            if re.match(r" (?:[<>]=?|[=!]=) 0(?:\.0)?\b", code[match.end() :]):
                continue  # of its size nothing is asked
            add("limit", match.start(), match.end(), f"(1.5 * {match.group(0)})")
    inside_bodies = {number for number, *_ in bodies(text, python)}
    for number, line in enumerate(text.split("\n")):
        code, mark, comment = line.partition("  #")
        if number in inside_bodies or python or "cimport" in code:
            continue
        found += [Mutant(number, "masks", "term", line, code[: match.start()] + code[match.end() :] + mark + comment)
                  for match in TERM.finditer(code)]  # fmt: skip
    seen: Counter[str] = Counter()
    for k, mutant in enumerate(found):
        seen[mutant.key] += 1
        found[k] = replace(mutant, copy=seen[mutant.key])
    return found


def mutants_of(source: str) -> list[Mutant]:
    """Those of a file of the tree."""
    return mutants(ROOT.joinpath(source).read_text(), source.endswith(".py"))


def chosen(found: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """`count` of them, in turn from every function, so that no function goes without."""
    if not count or count >= len(found):
        return found
    rng = random.Random(seed)
    by_function: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_function.setdefault(mutant.function, []).append(mutant)
    for group in by_function.values():
        rng.shuffle(group)
    picked: list[Mutant] = []
    while len(picked) < count:
        for group in by_function.values():
            if group and len(picked) < count:
                picked.append(group.pop())
    return sorted(picked, key=lambda m: m.number)


# -------------------------------------------------------------------------------------------------------------- the trial

BUILD = """
import runpy, sys
from Cython.Build import cythonize
from setuptools import setup
build = runpy.run_path("setup.py")
wanted = set(sys.argv[1:])
modules = [e for e in build["extensions"]() if e.name in wanted]
assert len(modules) == len(wanted), wanted
for e in modules:
    e.extra_compile_args.append("-O1")
built = cythonize(modules, compiler_directives=build["DIRECTIVES"], shared_utility_qualified_name=build["SHARED"], force=True, quiet=True)
setup(script_args=["--quiet", "build_ext", "--inplace"], ext_modules=built)
"""


def workshop(where: Path) -> None:
    """A copy of the tracked files and of the built kernels, refreshed from the tree."""
    where.mkdir(parents=True, exist_ok=True)
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = [str(p.relative_to(ROOT)) for package in ("rt_kernels", "drivers") for p in ROOT.joinpath(package).rglob("*.so")]
    table = [str(p.relative_to(ROOT)) for p in products()]  # not tracked, but included
    for name in [*tracked.splitlines(), *table, *built]:
        source, copy = ROOT / name, where / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def build(modules: tuple[str, ...], where: Path) -> str:
    """Errors of the compiler, empty when it built, or where there is nothing to build."""
    if not modules:
        return ""
    done = subprocess.run([sys.executable, "-c", BUILD, *modules], cwd=where, capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stderr.strip() or done.stdout.strip() or "no word")


def tests_pass(tests: tuple[str, ...], where: Path, seconds: float) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *tests]
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode in (2, 3, 4, 5) and "error" in (done.stdout + done.stderr).lower() and "passed" not in done.stdout:
        print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode == 0


def restore(target: Target, where: Path) -> None:
    """The module as it is in the tree: its source and its built form, which is not compiled again."""
    shutil.copy2(ROOT / target.source, where / target.source)
    for module in target.modules:
        for built in ROOT.joinpath(*module.split(".")[:-1]).glob(f"{module.split('.')[-1]}.*.so"):
            shutil.copy2(built, where / built.relative_to(ROOT))


def try_mutants(name: str, target: Target, picked: list[Mutant], results: dict[str, dict[str, str]], keep: Path) -> None:
    where = keep.with_suffix("")
    there = tuple(t for t in target.tests if t.startswith("-") or ROOT.joinpath(t.split("::")[0]).exists())
    if all(t.startswith("-") for t in there):
        there = ()
    began = time.monotonic()
    if not there:
        print(f"{name}: no test claims {target.source}: every mutant survives")
    elif not tests_pass(there, where, TEST_SECONDS):
        sys.exit(f"{name}: the tests fail without any change: {' '.join(there)}")
    patience = 30 + 5 * (time.monotonic() - began)  # s, for a mutant that goes round for ever
    text = ROOT.joinpath(target.source).read_text()
    for number, mutant in enumerate(picked, 1):
        if mutant.key in results[name]:
            continue
        began = time.monotonic()
        lines = text.split("\n")
        lines[mutant.number] = mutant.after
        where.joinpath(target.source).write_text("\n".join(lines))
        errors = build(target.modules, where)
        verdict = "not built" if errors else "survived" if not there or tests_pass(there, where, patience) else "killed"
        results[name][mutant.key] = verdict
        keep.write_text(json.dumps(results, indent=1))
        print(f"{name} {number}/{len(picked)} {verdict:9s} {mutant.kind:10s} line {mutant.number + 1}  {mutant.key}"
              f"  ({time.monotonic() - began:.0f} s)", flush=True)  # fmt: skip
    restore(target, where)


# ------------------------------------------------------------------------------------------------------- planted defects

# a docking that takes a third of the time, and whose trips may be recovered from
HUNTED = ("guidance.speed_max_m_s=0.4", "guidance.acceleration_max_m_s2=1.0", "guidance.settle_s=0.1", "guidance.retreat_distance_m=0.05",
          "guidance.recover_s=3")  # fmt: skip
WITHIN_S = 9.0
HUNT = """
import json, logging, sys, time
from hil_server.config import load_test
from hil_server.world.hunter import NO_BUS, hunt
logging.disable(logging.CRITICAL)
wire, within, first, seeds, seconds, *more = sys.argv[1:]
config, found = load_test("docking", [*NO_BUS, *more]), []
over = lambda: bool(found) or time.process_time() > float(seconds)
result = hunt(config, range(int(first), int(first) + int(seeds)), float(within), found.append, force=True, wire=wire, until=over)
told = [{"seed": f.seed, "events": len(f.events), "least": [list(e) for e in f.least], "violated": f.violated} for f in result.found]
print(json.dumps({"runs": result.ends.total(), "ticks": result.ticks, "world_s": result.world_s, "seconds": time.process_time(),
                  "found": told}))
"""


def hunt_planted(names: list[str], first: int, seeds: int, seconds: float, where: Path) -> int:
    """Plants each and lets the world hunt it; results by name go to `planted.json` beside the copy, too. Returns the exit code."""
    keep = where.with_name("planted.json")
    defects: dict[str, dict[str, Any]] = {"nothing": {}, **tomllib.loads(PLANTED.read_text())}
    results: dict[str, Any] = json.loads(keep.read_text()) if keep.exists() else {}
    wrong = 0
    for name in names or [name for name in defects if name != "nothing"]:
        defect = defects[name]
        file = defect.get("file", "")
        modules = (*_target(file).modules, *defect.get("also", ())) if file.endswith(".pyx") else tuple(defect.get("also", ()))
        with _planted(defect, modules, where):
            if errors := build(modules, where):
                sys.exit(f"{name}: {errors}")
            result = _hunted(name, defect, first, seeds, seconds, where)
        without = bool(defect) and any(_hunted(name, defect, one["seed"], 1, seconds, where)["found"] for one in result["found"])
        results[name] = result | {"without": without}
        keep.write_text(json.dumps(results, indent=1))
        wrong += without or bool(result["found"]) == (name == "nothing")
        print(f"{name}: {result['runs']} runs, {result['ticks']} ticks, {result['seconds']:.0f} s of a processor,", end=" ")
        for one in result["found"]:
            print(f"seed {one['seed']}, {one['events']} events, {len(one['least'])} after shrinking: {one['violated'][0]}", flush=True)
        if without or not result["found"]:
            print("the same seed violates something without it, too" if without else "nothing found", flush=True)
    return 1 if wrong else 0


def _hunted(name: str, defect: dict[str, Any], first: int, seeds: int, seconds: float, where: Path) -> dict[str, Any]:
    """What a hunt through the copy of the tree finds, as it is now."""
    given = (defect.get("wire", "can"), WITHIN_S, first, seeds, seconds, *HUNTED, *defect.get("set", ()))
    done = subprocess.run([sys.executable, "-c", HUNT, *map(str, given)], cwd=where, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextlib.contextmanager
def _planted(defect: dict[str, Any], modules: Sequence[str], where: Path) -> Iterator[None]:
    """The copy of the tree with this defect until the end of the block."""
    if not defect:
        yield
        return
    path = where / defect["file"]
    built = [p for m in modules for p in where.joinpath(*m.split(".")[:-1]).glob(f"{m.split('.')[-1]}.*.so")]
    before = {kept: kept.read_bytes() for kept in [*built, path]}
    text = path.read_text()
    if text.count(defect["old"]) != 1:
        sys.exit(f"{defect['file']}: stands there {text.count(defect['old'])} times, must once: {defect['old']}")
    try:
        path.write_text(text.replace(defect["old"], defect["new"]))
        yield
    finally:
        for kept, data in before.items():
            kept.write_bytes(data)


def reasons() -> dict[str, dict[str, str]]:
    return tomllib.loads(KEPT.read_text()) if KEPT.exists() else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--module", nargs="*", choices=TARGETS, default=list(TARGETS), metavar="NAME", help=", ".join(TARGETS))
    parser.add_argument("--count", type=int, default=20, help="mutants per module, 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.json")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose printed change has this text")
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument("--list", action="store_true", help="print the mutants and stop")
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="defects of tools/planted_defects.toml, all without a name")
    parser.add_argument("--first", type=int, default=1, help="seed of each hunt")
    parser.add_argument("--seeds", type=int, default=2000, help="of each hunt, at most")
    parser.add_argument("--seconds", type=float, default=7200.0, help="of a processor for each hunt, after which it begins no seed")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    where = args.out.with_suffix("")
    if args.planted is not None:
        workshop(where)
        return hunt_planted(args.planted, args.first, args.seeds, args.seconds, where)
    picked = {name: chosen([m for m in mutants_of(TARGETS[name].source) if args.only in m.key], args.count, args.seed)
              for name in args.module}  # fmt: skip
    if args.list:
        for name, some in picked.items():
            for mutant in some:
                print(f"{name} {mutant.kind:10s} line {mutant.number + 1}  {mutant.key}")
        return 0
    results: dict[str, dict[str, str]] = json.loads(args.out.read_text()) if args.out.exists() else {}
    for name in args.module:
        results.setdefault(name, {})
        if args.survivors:
            results[name] = {key: verdict for key, verdict in results[name].items() if verdict != "survived"}
    workshop(where)
    for name, some in picked.items():
        try_mutants(name, TARGETS[name], some, results, args.out)
    return report(picked, results)


def report(picked: dict[str, list[Mutant]], results: dict[str, dict[str, str]]) -> int:
    """The table, and what survived without a reason."""
    kept, open_ones, tried = reasons(), [], 0
    print("\nmodule                  mutants  killed  kept with reason  survived  not built")
    for name, some in picked.items():
        verdicts = [results[name][m.key] for m in some]
        alive = [m for m in some if results[name][m.key] == "survived"]
        explained = [m for m in alive if m.key in kept.get(name, {})]
        open_ones += [(name, m) for m in alive if m not in explained]
        tried += len(some) - verdicts.count("not built")
        print(f"{name:22s} {len(some):8d} {verdicts.count('killed'):7d} {len(explained):17d} {len(alive) - len(explained):9d}"
              f" {verdicts.count('not built'):10d}")  # fmt: skip
    print(f"{tried} mutants, {len(open_ones)} survived without a reason")
    for name, mutant in open_ones:
        print(f"  {name} line {mutant.number + 1}: {mutant.key}")
    for name in picked:
        for key in kept.get(name, {}).keys() - {m.key for m in mutants_of(TARGETS[name].source)}:
            print(f"  {name}: a reason for no mutant: {key}")
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main())
