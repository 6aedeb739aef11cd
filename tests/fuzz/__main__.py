"""`python -m tests.fuzz --count 1000000`: hostile inputs to everything that reads what somebody else wrote.

`--target NAME --first N --count 1` runs one input again; `--show` prints it. The report says per target how many inputs were answered and
refused, the worst memory and the worst processor time; a crash, a hang, an error that no one caught, more than 1 GB or 2 s fails.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz import harness


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="inputs over all targets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", help="only this one (may be given again)")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--show", action="store_true", help="prints the input --first of --target and ends")
    parser.add_argument("--no-limits", action="store_true", help="no limit of memory: for sanitizers")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        harness.work(args.worker, args.seed, args.first, args.count, args.progress, not args.no_limits)
        return 0
    from tests.fuzz.targets import TARGETS

    names = args.target or list(TARGETS)
    if args.show:
        with tempfile.TemporaryDirectory() as folder:
            print(repr(harness.input_of(TARGETS[names[0]](Path(folder)), args.seed, args.first)))
        return 0
    total = sum(TARGETS[name].WEIGHT for name in names)
    began, inputs, bad = time.monotonic(), 0, 0
    for name in names:
        count = max(1, round(args.count * TARGETS[name].WEIGHT / total))
        result = harness.run_target(name, count, args.seed, not args.no_limits, args.first)
        inputs += result.inputs
        bad += not result.good
        print(result.line(), flush=True)
        for kind, (number, text) in result.findings.items():
            print(f"  FAILED {kind}: --target {name} --seed {args.seed} --first {number} --count 1\n{text}", flush=True)
    print(f"{inputs} inputs, {bad} of {len(names)} targets failed, {time.monotonic() - began:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
