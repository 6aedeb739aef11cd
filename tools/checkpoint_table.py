"""Restored against uninterrupted, for every shipped programme: equal bytes?

    nice python tools/checkpoint_table.py [--ticks 10] [--to-end 1] [--only NAME ...] [--out checkpoint_table.jsonl]

Every test, every variant of every programme and the base of every campaign in stand_configs/programmes is simulated once without a break;
each of its records is kept as a checksum, its checkpoints as the log would have them. For ten random ticks of each file a line is made
again, restored to the nearest checkpoint at or before the tick and run: all records from the tick on must have the checksums of the
uninterrupted run. The first `--to-end` of them run to the end of the run. The others run through the checkpoint that follows the tick,
where the states of all parts are compared by bytes too: with equal states and inputs the rest is the same computation.

Results are appended to --out, a line each; what is there already is not run again. One process, no log on disk.
"""

import argparse
import json
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hil_server.campaign.plan import load_plan
from hil_server.config import SHIPPED, TestConfig, files, load_test
from hil_server.errors import HilError
from hil_server.line import assembly
from hil_server.line.checkpoints import Keeper, put_back
from hil_server.line.free_run import blocks
from hil_server.log.checkpoint import Checkpoint
from hil_server.log.record import checksums
from hil_server.run.programme import load_programme


def configurations(file: Path) -> Iterator[tuple[str, TestConfig]]:
    """(variant, configuration) of a file."""
    document = files.parse_toml(file.read_text())
    if "campaign" in document:
        yield "base", load_plan(file).base
    elif "programme" in document:
        for variant in load_programme(file)[1]:
            yield variant.number, variant.config
    else:
        yield "-", load_test(file)


def uninterrupted(config: TestConfig, every_s: float) -> tuple[np.ndarray, list[bytes], float]:
    """Checksum of every record, checkpoints as a log has them, seconds."""
    began = time.perf_counter()
    test = assembly.simulation(config)
    keeper, sums = Keeper(test, "table", every_s), []
    for records in blocks(test, keeper.at_pause):
        sums.append(checksums(records))
    if keeper.refused:
        raise ValueError(keeper.refused)
    return np.concatenate(sums), [checkpoint.packed() for checkpoint in keeper.waiting], time.perf_counter() - began


def goes_on(config: TestConfig, tick: int, sums: np.ndarray, checkpoints: list[Checkpoint], to_end: bool, every_s: float) -> dict[str, Any]:
    """One tick: how many records were compared and differ, and whether the states at the next checkpoint are equal."""
    before = [c for c in checkpoints if c.tick <= tick]
    after = next((c for c in checkpoints if c.tick > tick), None)
    test = assembly.simulation(config)
    if before:
        put_back(before[-1], test)
    start = test.line.clock.tick
    stop = len(sums) if to_end or after is None else after.tick
    keeper = Keeper(test, "table", every_s)
    found: list[np.ndarray] = []
    count = start
    for records in blocks(test, keeper.at_pause):
        found.append(checksums(records))
        count += len(records)
        if count >= stop and (stop == len(sums) or any(c.tick >= stop for c in keeper.waiting)):
            break
    got = np.concatenate(found)[: stop - start] if found else np.zeros(0, np.uint32)
    want = sums[start:stop]
    whole = len(got) == len(want)
    differing = int(np.count_nonzero(got[: len(want)] != want[: len(got)])) + abs(len(want) - len(got))
    same = [_same(a, b) for a in keeper.waiting for b in checkpoints if a.tick == b.tick]
    return {"tick": tick, "from": start, "to": stop, "compared": stop - max(start, tick), "differing": differing, "whole": whole,
            "states": len(same), "states_differing": [d for d in same if d]}  # fmt: skip


def _same(a: Checkpoint, b: Checkpoint) -> list[str]:
    return [name for name in a.parts if a.parts[name] != b.parts.get(name)]


def rows(file: Path, done: set[str], ticks: int, to_end: int, every_s: float) -> Iterator[dict[str, Any]]:
    """A row for each variant that is not there yet."""
    given = list(configurations(file))
    each = -(-ticks // len(given))
    for number, (variant, config) in enumerate(given):
        name = f"{file.stem} {variant}"
        if name in done:
            continue
        try:
            sums, packed, seconds = uninterrupted(config, every_s)
            checkpoints = [Checkpoint.unpacked(one) for one in packed]
            chosen = np.random.default_rng(zlib.crc32(name.encode())).integers(0, len(sums), each)
            whole = to_end if number == 0 else 0
            results = [goes_on(config, int(tick), sums, checkpoints, i < whole, every_s) for i, tick in enumerate(chosen)]
        except (HilError, ValueError) as error:
            yield {"name": name, "error": str(error)}
            continue
        yield {
            "name": name, "ticks": len(sums), "time_s": len(sums) * config.setup.test.period_ns * 1e-9, "seconds": round(seconds, 1),
            "checkpoints": len(packed), "bytes": max(map(len, packed), default=0), "results": results,
            "equal": all(not r["differing"] and r["whole"] and not r["states_differing"] for r in results),
        }  # fmt: skip


def main() -> None:
    """Runs what is missing and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ticks", type=int, default=10, help="random ticks of each file, shared by its variants")
    parser.add_argument("--to-end", type=int, default=1, help="of these run to the end (of the first variant)")
    parser.add_argument("--every", type=float, default=5.0, metavar="S", help="run time between two checkpoints")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="files by their names without .toml")
    parser.add_argument("--out", default="checkpoint_table.jsonl")
    args = parser.parse_args()
    out = Path(args.out)
    table = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {row["name"] for row in table}
    chosen = [f for f in sorted((SHIPPED / "programmes").glob("*.toml")) if not args.only or f.stem in args.only]
    for file in chosen:
        for row in rows(file, done, args.ticks, args.to_end, args.every):
            table.append(row)
            with out.open("a") as lines:
                lines.write(json.dumps(row) + "\n")
            shown(row)
    equal = [row for row in table if row.get("equal")]
    ticks = sum(len(row["results"]) for row in table if "results" in row)
    print(f"{len(equal)} of {len(table)} equal, {ticks} ticks")


def shown(row: dict[str, Any]) -> None:
    """A line of the table."""
    if "error" in row:
        print(f"{row['name']:44s} not run: {row['error']}", flush=True)
        return
    ends = sum(r["to"] == row["ticks"] for r in row["results"])
    compared = sum(r["compared"] for r in row["results"])
    verdict = "equal" if row["equal"] else f"DIFFERENT {[r for r in row['results'] if r['differing'] or r['states_differing']][:1]}"
    print(f"{row['name']:44s} {row['time_s']:7.1f} s {row['seconds']:6.1f} s  {row['checkpoints']:4d} checkpoints, {row['bytes']:6d} B  "
          f"{len(row['results']):3d} ticks ({ends} to the end), {compared:8d} records  {verdict}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
