"""Runs the chunks of a campaign on this machine's cores or on a Dask cluster, and keeps what is done.

Results are Parquet files named by their cases, written beside their place and moved there: a file is whole or not there. A campaign that
was interrupted continues with the missing chunks; nothing is repeated or lost. A chunk whose worker
died is run again; after three deaths it is run case by case, and a case that still kills its worker is recorded as an error.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hil_server import interrupts
from hil_server.campaign.case import Job, failed_chunk, run_chunk
from hil_server.campaign.plan import Plan
from hil_server.campaign.rare import study
from hil_server.config import files
from hil_server.errors import ConfigurationError
from hil_server.host.installation import with_group
from hil_server.values import Document
from hil_server.workers import pool

if TYPE_CHECKING:
    import pyarrow as pa

DEATHS_TOLERATED = 3
Chunk = tuple[int, int]  # first case, one behind the last


def chunks(plan: Plan, first: int = 0, last: int | None = None) -> list[Chunk]:
    """The cases of a plan, or from `first` to before `last`, in pieces (first, one after the last), each the work of one call."""
    last = plan.cases if last is None else last
    return [(at, min(at + plan.chunk, last)) for at in range(first, last, plan.chunk)]


def part_file(folder: Path, chunk: Chunk) -> Path:
    """File of the results of one piece."""
    return folder / "parts" / f"cases-{chunk[0]:07d}-{chunk[1] - 1:07d}.parquet"


def prepare(plan: Plan, folder: Path) -> None:
    """Makes the folder, or takes up the campaign in it. Raises ConfigurationError when the folder holds another campaign."""
    try:
        (folder / "parts").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"--out {folder}: cannot be created: {error.strerror}") from None
    card = folder / "campaign.json"
    mine = {"name": plan.name, "identity": plan.identity, "cases": plan.cases, "seed": plan.seed, "sampling": plan.sampling}
    if card.exists():
        there = _card(card)
        if there.get("identity") != plan.identity:
            raise ConfigurationError(
                f"{folder}: holds campaign {there.get('name')!r} with identity {there.get('identity')}, this one has {plan.identity}: "
                "another test, box, seed or number of cases; choose another --out"
            )
    else:
        for file, text in ((card, json.dumps(mine, indent=2)), (folder / "test.toml", plan.base.as_toml())):
            with files.whole(file) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
    for leftover in (folder / "parts").glob(".*"):  # of a process that was killed
        shutil.rmtree(leftover)


def _card(file: Path) -> Document:
    """What the folder says of its campaign. Raises ConfigurationError when that is damaged."""
    try:
        there = json.loads(files.read_text(file))
        if not isinstance(there, dict):
            raise ValueError("must be a table")
    except (OSError, ValueError, RecursionError) as error:
        hint = "choose another --out, or delete the file if the folder is this campaign's"
        raise ConfigurationError(f"{file}: damaged: {error}; {hint}") from None
    return there


def run(plan: Plan, folder: Path, workers: int | None = None, scheduler: str | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None) -> None:  # fmt: skip
    """Runs what is missing; `progress(done cases, all cases)` after every chunk."""
    prepare(plan, folder)
    run_cases(plan, folder, 0, plan.conditions(), workers, scheduler, progress)


def run_cases(plan: Plan, folder: Path, first: int, conditions: np.ndarray, workers: int | None = None, scheduler: str | None = None,
              progress: Callable[[int, int], None] = lambda done, total: None) -> None:  # fmt: skip
    """Cases `first` and following with these conditions (n, keys), those that the folder does not have yet; `progress(done, first + n)`."""
    last = first + len(conditions)
    todo = [c for c in chunks(plan, first, last) if not part_file(folder, c).exists()]
    done = last - sum(b - a for a, b in todo)
    progress(done, last)
    text = plan.base.as_toml()

    def job(chunk: Chunk) -> Job:
        rows = conditions[chunk[0] - first : chunk[1] - first].tolist()
        return Job(text, list(range(*chunk)), plan.keys, rows, [plan.settings(row) for row in rows], plan.begin)

    source = _on_cluster(todo, job, scheduler) if scheduler else _on_this_machine(todo, job, workers or os.cpu_count() or 1)
    for chunk, rows in source:
        write_part(part_file(folder, chunk), rows)
        done += chunk[1] - chunk[0]
        progress(done, last)


def run_rare(plan: Plan, folder: Path, workers: int | None = None, scheduler: str | None = None,
             progress: Callable[[int, int], None] = lambda done, total: None) -> Document:  # fmt: skip
    """The study of the plan's rare event (`hil_server.campaign.rare.study`), whose levels are run as cases of the campaign."""
    assert plan.rare is not None
    prepare(plan, folder)

    def evaluate(first: int, conditions: np.ndarray) -> list[Document]:
        run_cases(plan, folder, first, conditions, workers, scheduler, lambda done, _: progress(done, plan.cases))
        rows: list[Document] = []
        for chunk in chunks(plan, first, first + len(conditions)):
            rows += _read_part(part_file(folder, chunk)).to_pylist()
        # the same level again, or it is not this study's
        if not np.array_equal([[row[key] for key in plan.keys] for row in rows], conditions):
            raise ConfigurationError(f"{folder / 'parts'}: cases from {first} on are not those of this study; choose another --out")
        return rows

    return study(plan.rare, plan.at, len(plan.keys), plan.cases, plan.seed, evaluate)


def _on_this_machine(todo: Sequence[Chunk], job: Callable[[Chunk], Job],
                     workers: int) -> Iterator[tuple[Chunk, list[Document]]]:  # fmt: skip
    """A pool of processes; when a worker dies a new pool runs what is missing."""
    left = list(todo)
    deaths: dict[Chunk, int] = {}
    while left:
        # after a death the chunks go one at a time, so that the guilty one is known
        careful = [c for c in left if deaths.get(c)]
        batch = careful[:1] or left
        with pool(1 if careful else workers) as processes:
            with interrupts.not_passed_on():
                futures = {processes.submit(run_chunk, job(c)): c for c in batch}
            try:
                for future in as_completed(futures):
                    rows = future.result()
                    left.remove(futures[future])
                    yield futures[future], rows
            except BrokenProcessPool:
                for chunk in batch if careful else [c for c in batch if c in left][: 2 * workers]:
                    deaths[chunk] = deaths.get(chunk, 0) + 1
        for chunk in [c for c in left if deaths.get(c, 0) >= DEATHS_TOLERATED]:
            left.remove(chunk)
            yield chunk, failed_chunk(job(chunk), "its worker died three times")


def _on_cluster(todo: Sequence[Chunk], job: Callable[[Chunk], Job],
                scheduler: str) -> Iterator[tuple[Chunk, list[Document]]]:  # fmt: skip
    """A Dask cluster: tasks of a worker that dies go to another one, the scheduler sees to it."""
    try:
        from distributed import Client
        from distributed import as_completed as completed
    except ImportError as error:
        raise ConfigurationError(f"--scheduler needs Dask: {with_group('campaign')}") from error
    try:
        client = Client(scheduler, timeout="5s")
    except OSError as error:
        raise ConfigurationError(f"--scheduler {scheduler}: no Dask scheduler there: {error}") from error
    with client:
        futures = {client.submit(run_chunk, job(c), pure=False, retries=2): c for c in todo}
        for future in completed(list(futures)):
            chunk = futures.pop(future)
            problem = future.exception()
            yield chunk, failed_chunk(job(chunk), f"its worker died: {problem}") if problem else future.result()
            future.release()


# ---------------------------------------------------------------------------------------------------------------- files


def write_part(file: Path, rows: list[Document]) -> None:
    """Writes the rows of one piece as Parquet; the file has its name only when it is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = dict.fromkeys(key for row in rows for key in row)  # a case that failed has no channels
    with files.whole(file) as unfinished:
        pq.write_table(pa.table({key: [row.get(key) for row in rows] for key in columns}), unfinished, compression="zstd")


def _read_part(part: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(part)
    except (OSError, pa.ArrowException) as error:
        raise ConfigurationError(f"{part}: damaged: {' '.join(str(error).split())}; delete it: its cases are run again") from None


def read_results(folder: Path) -> "pa.Table":
    """All rows that are there, a pyarrow table sorted by case number."""
    import pyarrow as pa

    parts = sorted((folder / "parts").glob("cases-*.parquet"))
    if not parts:
        raise ConfigurationError(f"{folder}: no results yet")
    tables = [_read_part(part) for part in parts]
    try:
        return pa.concat_tables(tables, promote_options="permissive").sort_by("number")
    except (pa.ArrowException, UnicodeDecodeError, KeyError) as error:
        raise ConfigurationError(f"{folder / 'parts'}: results of different kinds: {' '.join(str(error).split())}") from None
