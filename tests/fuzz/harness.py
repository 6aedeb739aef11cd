"""Runs targets in processes of their own: a crash, a hang, an error that no one caught, too much memory or time is a finding.

An input is its target, the seed and its number: a worker rebuilds it from these three. Before every input the worker writes its number
into a file that the parent reads when the worker dies or stands still; the next worker continues behind it.
"""

import faulthandler
import json
import mmap
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
STILL_S = 60.0  # of wall time with one input: it hangs, however busy the machine
START_S = 600.0  # of wall time until the first one: a target makes its corpus
BEFORE = bytes([0xFF] * 8)  # in the place of the number before the first input
TIME_S = 2.0  # of processor time for one input
MEMORY = 1 << 30  # of resident memory, bytes
ADDRESS_SPACE = 6 << 30  # what a worker may ask for; the libraries it loads reserve two
MOST_FINDINGS = 25  # of one target, each of another kind


@dataclass
class Result:
    """What a target did with its inputs. findings: kind → (number of the first input, text)."""

    target: str
    inputs: int = 0
    answers: int = 0
    refusals: int = 0
    memory: int = 0
    worst_s: float = 0.0
    worst_input: int = -1
    processor_s: float = 0.0
    findings: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not self.findings

    def line(self) -> str:
        counted = f"{self.target:18s} {self.inputs:9d} inputs {self.answers:9d} answers {self.refusals:9d} refusals"
        worst = f"worst {self.memory >> 20:5d} MB {self.worst_s:7.3f} s (input {self.worst_input})"
        return f"{counted}  {worst}, {self.processor_s:7.1f} s in all"


def run_target(name: str, count: int, seed: int, limited: bool = True, first: int = 0) -> Result:
    """`count` inputs of a target; a worker that dies or hangs is a finding, and its successor continues behind the input."""
    result = Result(name)
    at, end = first, first + count
    with tempfile.NamedTemporaryFile() as progress:
        while at < end and len(result.findings) < MOST_FINDINGS:
            Path(progress.name).write_bytes(BEFORE)
            command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz", "--worker", name, "--seed", str(seed), "--first", str(at),
                       "--count", str(end - at), "--progress", progress.name, *([] if limited else ["--no-limits"])]  # fmt: skip
            with tempfile.TemporaryFile() as reported, tempfile.TemporaryFile() as errors:
                worker = subprocess.Popen(command, cwd=ROOT, stdout=reported, stderr=errors)
                hung = _watch(worker, Path(progress.name))
                place = Path(progress.name).read_bytes()[:8]
                last = at - 1 if place == BEFORE else int.from_bytes(place, "little")
                reported.seek(0)
                errors.seek(0)
                report, noise = reported.read().decode(errors="replace"), errors.read().decode(errors="replace")
            if worker.returncode == 0 and report:
                _add(result, json.loads(report.splitlines()[-1]))
                break
            for kind, found in json.loads(report.splitlines()[-1])["findings"].items() if report else ():
                result.findings.setdefault(kind, tuple(found))
            why = "hang" if hung else _death(worker.returncode)
            kind = f"{why}: {_where(noise)}"
            result.findings.setdefault(kind, (last, noise[-4000:]))
            result.inputs += last - at + 1
            if last < at:  # it did not even begin
                break
            at = last + 1
    return result


def _watch(worker: subprocess.Popen, progress: Path) -> bool:
    """Waits for the end of a worker; kills one that stands still. True when it did."""
    ended = os.pidfd_open(worker.pid)
    try:
        seen, left = BEFORE, START_S
        while not select.select([ended], [], [], STILL_S)[0]:
            now = progress.read_bytes()[:8]
            left -= STILL_S
            if left <= 0.0 if now == BEFORE else now == seen:
                worker.send_signal(signal.SIGABRT)  # faulthandler says where it is
                worker.wait(10)
                return True
            seen = now
        worker.wait()
        return False
    finally:
        os.close(ended)


def _death(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def _where(noise: str) -> str:
    """The innermost line of ours in what a dying worker wrote, or the sanitizer's summary."""
    lines = noise.splitlines()
    for line in lines:
        if "SUMMARY:" in line or "runtime error:" in line:
            return line.strip()[:200]
    ours = [line.strip() for line in lines if "File " in line and "/tests/fuzz/" not in line]
    return ours[0] if ours else (lines[-1][:200] if lines else "without a word")


def _add(result: Result, report: dict) -> None:
    result.inputs += report["inputs"]
    result.answers += report["answers"]
    result.refusals += report["refusals"]
    result.processor_s += report["processor_s"]
    result.memory = max(result.memory, report["memory"])
    if report["worst_s"] > result.worst_s:
        result.worst_s, result.worst_input = report["worst_s"], report["worst_input"]
    for kind, found in report["findings"].items():
        result.findings.setdefault(kind, tuple(found))
    if result.worst_s > TIME_S:
        result.findings.setdefault("slow", (result.worst_input, f"{result.worst_s:.1f} s, limit {TIME_S:g} s"))
    if result.memory > MEMORY:
        result.findings.setdefault("memory", (-1, f"{result.memory >> 20} MB, limit {MEMORY >> 20} MB"))


# ------------------------------------------------------------------------------------------------------------------- worker


def input_of(target, seed: int, number: int):
    """The input `number` of a target: always the same."""
    return target.make(random.Random(f"{seed}/{target.name}/{number}"))


def work(name: str, seed: int, first: int, count: int, progress: str, limited: bool) -> None:
    """In the worker: the inputs one after another; prints what came of them."""
    from tests.fuzz.targets import TARGETS, Selftest

    faulthandler.enable()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        os.chdir(folder)
        target = {**TARGETS, Selftest.name: Selftest}[name](Path(folder))
        if limited:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 8) as here:
            report = _run(target, seed, range(first, first + count), here)
        target.close()
        os.chdir("/")
    print(json.dumps(report))


def most_memory() -> int:
    """Bytes that this process has had resident at most. Not getrusage: its figure comes along from the process that started this one."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _run(target, seed: int, numbers: range, here: mmap.mmap) -> dict:
    answers = refusals = done = 0
    worst_s, worst_input = 0.0, -1
    findings: dict[str, tuple[int, str]] = {}
    began = time.process_time()
    for number in numbers:
        here[:8] = number.to_bytes(8, "little")
        given = input_of(target, seed, number)
        before = time.process_time()
        try:
            target.run(given)
            answers += 1
        except target.REFUSALS:
            refusals += 1
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if "/tests/fuzz/" not in f.filename]
            place = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
            findings.setdefault(f"{type(error).__name__} in {place}", (number, traceback.format_exc()[-3000:]))
            print(json.dumps({"findings": findings}), flush=True)  # in case that the worker dies
        seconds = time.process_time() - before
        if seconds > worst_s:
            worst_s, worst_input = seconds, number
        done += 1
        if len(findings) >= MOST_FINDINGS:
            break
    memory = most_memory()
    return {"inputs": done, "answers": answers, "refusals": refusals, "worst_s": worst_s, "worst_input": worst_input, "memory": memory,
            "processor_s": time.process_time() - began, "findings": findings}  # fmt: skip
